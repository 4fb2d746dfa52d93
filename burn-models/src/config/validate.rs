use super::{ConfigError, DecoderConfig, ExpertsShape, LayerType};
use crate::layers::experts::ExpertsInterface;

/// More layers than any model has.
pub const MAX_LAYERS: usize = 4096;

/// More parameters than any model has.
pub const MAX_PARAMETERS: u64 = 1 << 44;

/// More experts than any layer has.
const MAX_EXPERTS: usize = 1 << 16;

/// More labels than any classifier has.
const MAX_LABELS: usize = 1 << 24;

/// More than any single size of a model is.
pub(crate) const MAX_SIZE: usize = 1 << 28;

/// More than any head has values; the rotary frequencies of one are computed when a model is constructed.
const MAX_HEAD_DIM: usize = 1 << 16;

/// Checks that a decoder can be built from `config`, without building anything.
///
/// The attention implementation is left to the construction: until then it may be replaced by another.
///
/// # Errors
///
/// Names the first field that does not fit.
pub fn validate_decoder<C: DecoderConfig>(config: &C) -> Result<(), ConfigError> {
    let sizes = [
        ("vocab_size", config.vocab_size(), MAX_SIZE),
        ("hidden_size", config.hidden_size(), MAX_SIZE),
        ("intermediate_size", config.intermediate_size(), MAX_SIZE),
        ("num_attention_heads", config.num_attention_heads(), MAX_SIZE),
        ("num_key_value_heads", config.num_key_value_heads(), MAX_SIZE),
        ("head_dim", config.head_dim(), MAX_HEAD_DIM),
    ];
    for (field, found, limit) in sizes {
        if found == 0 || found > limit {
            return Err(ConfigError::out_of_range(field, found, format!("1 to {limit}")));
        }
    }
    let layers = config.num_hidden_layers();
    if layers > MAX_LAYERS {
        return Err(ConfigError::out_of_range("num_hidden_layers", layers, format!("at most {MAX_LAYERS}")));
    }
    multiple_of(
        ("num_attention_heads", config.num_attention_heads()),
        ("num_key_value_heads", config.num_key_value_heads()),
    )?;
    config.rope_parameters().validate(config.head_dim())?;
    for (field, value) in [("rms_norm_eps", config.rms_norm_eps()), ("initializer_range", config.initializer_range())] {
        if !(value.is_finite() && value >= 0.0) {
            return Err(ConfigError::out_of_range(field, value, "zero or a positive number"));
        }
    }
    if let Some(layer) = (0..layers).find(|layer| config.sliding_window(*layer) == Some(0)) {
        return Err(ConfigError::out_of_range("sliding_window", 0, format!("at least 1, as layer {layer} uses it")));
    }
    let labels = config.general().num_labels();
    if labels == 0 || labels > MAX_LABELS {
        return Err(ConfigError::out_of_range("num_labels", labels, format!("1 to {MAX_LABELS}")));
    }
    if let Some(experts) = config.experts() {
        validate_experts(&experts)?;
    }
    for key in ["hidden_states", "attentions", "router_logits", "router_scores", "router_indices"] {
        config.general().check_output(key)?;
    }
    let found = parameters(config);
    if found > MAX_PARAMETERS {
        return Err(ConfigError::TooLarge { found, limit: MAX_PARAMETERS });
    }
    Ok(())
}

fn validate_experts(experts: &ExpertsShape) -> Result<(), ConfigError> {
    let ExpertsShape { num_experts, top_k, intermediate_size, aux_loss_coef, fields, .. } = experts;
    for (field, found, limit) in
        [(fields.num_experts, *num_experts, MAX_EXPERTS), (fields.intermediate_size, *intermediate_size, MAX_SIZE)]
    {
        if found == 0 || found > limit {
            return Err(ConfigError::out_of_range(field, found, format!("1 to {limit}")));
        }
    }
    if *top_k == 0 || top_k > num_experts {
        let expected = format!("1 to {num_experts}, which is `{}`", fields.num_experts);
        return Err(ConfigError::out_of_range(fields.top_k, top_k, expected));
    }
    if !(aux_loss_coef.is_finite() && *aux_loss_coef >= 0.0) {
        return Err(ConfigError::out_of_range(fields.aux_loss_coef, aux_loss_coef, "zero or a positive number"));
    }
    Ok(())
}

/// Checks the name of an experts implementation: it must be registered, and there must be experts.
pub(crate) fn check_experts<C: DecoderConfig>(config: &C, name: Option<&str>) -> Result<(), ConfigError> {
    match name {
        Some(name) if config.experts().is_none() => {
            Err(ConfigError::NoExperts { name: name.to_owned(), model_type: config.general().model_type.clone() })
        }
        name => ExpertsInterface::check(name),
    }
}

/// Checks that the first is a multiple of the second.
pub(crate) fn multiple_of(
    (field, found): (&'static str, usize),
    (divisor_field, divisor): (&'static str, usize),
) -> Result<(), ConfigError> {
    if divisor == 0 || !found.is_multiple_of(divisor) {
        return Err(ConfigError::NotAMultiple { field, found, divisor_field, divisor });
    }
    Ok(())
}

/// The window of layer `layer` where each layer may have one: as `layer_types` says, or else from
/// `max_window_layers` on.
pub(crate) fn layered_window(
    window: Option<usize>,
    max_window_layers: usize,
    layer_types: Option<&[LayerType]>,
    layer: usize,
) -> Option<usize> {
    let slides = match layer_types {
        Some(types) => types.get(layer) == Some(&LayerType::SlidingAttention),
        None => layer >= max_window_layers,
    };
    window.filter(|_| slides)
}

/// Checks that there is one layer type for each layer, and a window where one slides.
pub(crate) fn validate_layer_types(
    layer_types: Option<&[LayerType]>,
    layers: usize,
    window: Option<usize>,
) -> Result<(), ConfigError> {
    let Some(types) = layer_types else {
        return Ok(());
    };
    if types.len() != layers {
        return Err(ConfigError::WrongLength { field: "layer_types", found: types.len(), expected: layers });
    }
    if window.is_none() && types.contains(&LayerType::SlidingAttention) {
        return Err(ConfigError::Missing {
            field: "sliding_window",
            because: "`sliding_attention` in `layer_types` (with `use_sliding_window`)".to_owned(),
        });
    }
    Ok(())
}

/// The number of parameters of the large matrices.
fn parameters<C: DecoderConfig>(config: &C) -> u64 {
    let heads = (config.num_attention_heads() as u64)
        .saturating_add(config.num_key_value_heads() as u64)
        .saturating_mul(2 * config.head_dim() as u64);
    let hidden = config.hidden_size() as u64;
    let layer = heads.saturating_add(3 * config.intermediate_size() as u64).saturating_mul(hidden);
    let experts = config.experts().map_or(0, |experts| {
        let of_one = (3 * experts.intermediate_size as u64).saturating_mul(hidden);
        of_one.saturating_mul(experts.num_experts as u64).saturating_mul(experts.layers.len() as u64)
    });
    let embeddings = (2 * config.vocab_size() as u64).saturating_mul(hidden);
    layer.saturating_mul(config.num_hidden_layers() as u64).saturating_add(experts).saturating_add(embeddings)
}
