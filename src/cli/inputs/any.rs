//! Inputs where none, or not all, were given: by what the model takes and its config.

use super::{Given, one_sequence, tokens};
use burn::tensor::TensorData;
use burnlens::burn_models::auto::{AnyModel, NamedInputs};
use serde_json::Value;

/// A number of the config, or of that of one of its parts.
fn number(config: &Value, names: &[&str]) -> Option<usize> {
    let own = names.iter().find_map(|name| match config.get(name)? {
        // an image's height and width
        Value::Array(sizes) => sizes.first()?.as_u64(),
        size => size.as_u64(),
    });
    let of_parts = || ["vision_config", "text_config"].iter().find_map(|part| number(config.get(part)?, names));
    own.and_then(|number| usize::try_from(number).ok()).or_else(of_parts)
}

/// One of everything that `model` cannot do without, all zeros: `length` tokens at most.
pub(super) fn inputs(length: usize, model: &AnyModel) -> NamedInputs {
    let config = model.config_json();
    let takes = |name: &str| model.input_names().contains(&name);
    let zeros = |shape: Vec<usize>| TensorData::zeros::<f32, _>(shape);
    let mut inputs = NamedInputs::new();
    if takes("input_ids") {
        let most = if takes("pixel_values") { number(&config, &["max_position_embeddings"]) } else { None };
        inputs = one_sequence(vec![0; length.min(most.unwrap_or(length))]);
    }
    if takes("pixel_values") {
        let channels = number(&config, &["num_channels"]).unwrap_or(3);
        let side = number(&config, &["image_size"]).unwrap_or(224);
        inputs = inputs.with("pixel_values", zeros(vec![1, channels, side, side]));
    }
    if takes("input_features") {
        let bins = number(&config, &["num_mel_bins"]).unwrap_or(80);
        let positions = number(&config, &["max_source_positions"]).unwrap_or(1500);
        inputs = inputs.with("input_features", zeros(vec![1, bins, 2 * positions]));
    }
    inputs
}

/// Lets a decoder that answers an encoder begin with its start token, if nothing is given for it.
pub(super) fn begin_decoder(mut given: Given, model: &AnyModel) -> Given {
    const NAMES: [&str; 3] = ["decoder_input_ids", "decoder_inputs_embeds", "labels"];
    let is_given = NAMES.iter().any(|name| given.tensors.get(name).is_some());
    if is_given || !model.input_names().contains(&"decoder_input_ids") {
        return given;
    }
    let config = model.config_json();
    let Some(start) = config.get("decoder_start_token_id").and_then(Value::as_i64) else { return given };
    let batch = given.tensors.iter().find_map(|(_, data)| data.shape().first().copied()).unwrap_or(1);
    let begin = TensorData::new(vec![start; batch], [batch, 1]);
    given.tensors = given.tensors.with("decoder_input_ids", begin);
    given.decoder_tokens =
        tokens(&given.tensors, ["decoder_input_ids", "decoder_attention_mask"], given.tokenizer.as_ref());
    given
}
