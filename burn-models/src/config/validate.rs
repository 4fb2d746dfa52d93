use super::{ConfigError, DecoderConfig, ExpertsShape, GeneralConfig, LayerType};
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
    let head_dim = config.head_dim();
    if head_dim > MAX_HEAD_DIM {
        return Err(ConfigError::out_of_range("head_dim", head_dim, format!("1 to {MAX_HEAD_DIM}")));
    }
    // before anything is listed layer by layer
    check_layers("num_hidden_layers", config.num_hidden_layers())?;
    if let Some(experts) = config.experts() {
        validate_experts(&experts)?;
    }
    let (per_layer, rest) = parameters(config);
    validate_stack(
        config.general(),
        &StackSizes {
            sizes: &[
                ("vocab_size", config.vocab_size()),
                ("hidden_size", config.hidden_size()),
                ("intermediate_size", config.intermediate_size()),
                ("num_attention_heads", config.num_attention_heads()),
                ("num_key_value_heads", config.num_key_value_heads()),
                ("head_dim", head_dim),
            ],
            layers: ("num_hidden_layers", config.num_hidden_layers()),
            numbers: &[("rms_norm_eps", config.rms_norm_eps()), ("initializer_range", config.initializer_range())],
            keys: &["hidden_states", "attentions", "router_logits", "router_scores", "router_indices"],
            parameters: [per_layer, rest],
        },
    )?;
    multiple_of(
        ("num_attention_heads", config.num_attention_heads()),
        ("num_key_value_heads", config.num_key_value_heads()),
    )?;
    config.rope_parameters().validate(head_dim)?;
    if let Some(layer) = (0..config.num_hidden_layers()).find(|layer| config.sliding_window(*layer) == Some(0)) {
        return Err(ConfigError::out_of_range("sliding_window", 0, format!("at least 1, as layer {layer} uses it")));
    }
    Ok(())
}

/// The sizes of a stack of layers, for the checks that all families share.
pub(crate) struct StackSizes<'a> {
    /// Fields that must be positive and not absurd.
    pub(crate) sizes: &'a [(&'static str, usize)],
    /// The number of layers.
    pub(crate) layers: (&'static str, usize),
    /// Numbers that must be finite and not negative, such as what norms add to the variance.
    pub(crate) numbers: &'a [(&'static str, f64)],
    /// What can be recorded.
    pub(crate) keys: &'a [&'static str],
    /// About how many parameters a layer has, and the rest of the model.
    pub(crate) parameters: [u64; 2],
}

/// Checks that a stack of layers can be built, without building anything.
///
/// # Errors
///
/// Names the first field that does not fit.
pub(crate) fn validate_stack(general: &GeneralConfig, stack: &StackSizes<'_>) -> Result<(), ConfigError> {
    if let Some((field, found)) = stack.sizes.iter().find(|(_, size)| *size == 0 || *size > MAX_SIZE) {
        return Err(ConfigError::out_of_range(field, found, format!("1 to {MAX_SIZE}")));
    }
    let (field, layers) = stack.layers;
    check_layers(field, layers)?;
    if let Some((field, value)) = stack.numbers.iter().find(|(_, value)| !(value.is_finite() && *value >= 0.0)) {
        return Err(ConfigError::out_of_range(field, *value, "zero or a positive number"));
    }
    let labels = general.num_labels();
    if labels == 0 || labels > MAX_LABELS {
        return Err(ConfigError::out_of_range("num_labels", labels, format!("1 to {MAX_LABELS}")));
    }
    for key in stack.keys {
        general.check_output(key)?;
    }
    let [layer, rest] = stack.parameters;
    let found = layer.saturating_mul(layers as u64).saturating_add(rest);
    if found > MAX_PARAMETERS {
        return Err(ConfigError::TooLarge { found, limit: MAX_PARAMETERS });
    }
    Ok(())
}

fn check_layers(field: &'static str, layers: usize) -> Result<(), ConfigError> {
    if layers > MAX_LAYERS {
        return Err(ConfigError::out_of_range(field, layers, format!("at most {MAX_LAYERS}")));
    }
    Ok(())
}

/// The product of sizes, however large.
pub(crate) fn product(sizes: &[usize]) -> u64 {
    sizes.iter().fold(1, |product, size| product.saturating_mul(*size as u64))
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

/// The number of parameters of the large matrices: of a layer without experts, and of everything else.
fn parameters<C: DecoderConfig>(config: &C) -> (u64, u64) {
    let hidden = config.hidden_size();
    let heads = config.num_attention_heads().saturating_add(config.num_key_value_heads());
    let attention = product(&[2, heads, config.head_dim(), hidden]);
    let layer = attention.saturating_add(product(&[3, config.intermediate_size(), hidden]));
    let experts = config.experts().map_or(0, |experts| {
        product(&[3, experts.intermediate_size, hidden, experts.num_experts, experts.layers.len()])
    });
    let embeddings = product(&[2, config.vocab_size(), hidden]);
    (layer, experts.saturating_add(embeddings))
}
