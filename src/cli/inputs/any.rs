//! Inputs where none, or not all, were given: by what the model takes and its config.

use super::{Given, one_sequence, tokens};
use burn::tensor::TensorData;
use burnlens::burn_models::auto::{AnyModel, ModelClass, NamedInputs};
use serde_json::Value;

/// A field of the config, or of that of one of its parts.
fn field<'c>(config: &'c Value, name: &str) -> Option<&'c Value> {
    let own = config.get(name).filter(|value| !value.is_null());
    own.or_else(|| ["vision_config", "text_config"].iter().find_map(|part| field(config.get(part)?, name)))
}

fn size(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}

fn number(config: &Value, name: &str) -> Option<usize> {
    field(config, name).and_then(size)
}

/// The height and width of an image that the model was trained on: one number, or both.
fn image_size(config: &Value) -> Option<[usize; 2]> {
    match field(config, "image_size")? {
        Value::Array(sides) => Some([size(sides.first()?)?, size(sides.get(1)?)?]),
        side => size(side).map(|side| [side, side]),
    }
}

/// One of everything that `model` cannot do without, all zeros: `length` tokens at most.
pub(super) fn inputs(length: usize, model: &AnyModel) -> NamedInputs {
    let config = model.config_json();
    let takes = |name: &str| model.input_names().contains(&name);
    let zeros = |shape: Vec<usize>| TensorData::zeros::<f32, _>(shape);
    let mut inputs = NamedInputs::new();
    if takes("input_ids") {
        // models that look positions up have no more than these; others only say what they were trained on
        let most = ["max_position_embeddings", "n_positions"].iter().find_map(|name| number(&config, name));
        inputs = one_sequence(vec![0; length.min(most.filter(|most| *most > 0).unwrap_or(length))]);
    }
    if takes("pixel_values") {
        let channels = number(&config, "num_channels").unwrap_or(3);
        let [height, width] = image_size(&config).unwrap_or([224, 224]);
        inputs = inputs.with("pixel_values", zeros(vec![1, channels, height, width]));
    }
    if takes("input_features") {
        let bins = number(&config, "num_mel_bins").unwrap_or(80);
        let positions = number(&config, "max_source_positions").unwrap_or(1500);
        inputs = inputs.with("input_features", zeros(vec![1, bins, 2 * positions]));
    }
    inputs
}

/// Lets a decoder that answers an encoder begin with its start token, if nothing is given for it. Heads that generate
/// nothing let it read the encoder's tokens once more by themselves.
pub(super) fn begin_decoder(mut given: Given, model: &AnyModel) -> Given {
    const NAMES: [&str; 3] = ["decoder_input_ids", "decoder_inputs_embeds", "labels"];
    let is_given = NAMES.iter().any(|name| given.tensors.get(name).is_some());
    let is_base = || ModelClass::all().iter().any(|class| class.is_base && class.name == model.class_name());
    let begins = model.input_names().contains(&"decoder_input_ids") && (model.generates() || is_base());
    if is_given || !begins {
        return given;
    }
    let config = model.config_json();
    let Some(start) = config.get("decoder_start_token_id").and_then(Value::as_i64) else { return given };
    let batch = given.tensors.iter().find_map(|(_, data)| data.shape().first().copied()).unwrap_or(1);
    let begin = TensorData::new(vec![start; batch], [batch, 1]);
    given.tensors = given.tensors.with("decoder_input_ids", begin);
    given.begun = true;
    given.decoder_tokens =
        tokens(&given.tensors, ["decoder_input_ids", "decoder_attention_mask"], given.tokenizer.as_ref());
    given
}
