//! `--generate`: continuing the input, and recording each step.

use super::record::Recorded;
use super::save::Saved;
use crate::cli::args::CaptureArgs;
use crate::cli::error::CliError;
use crate::cli::inputs::Given;
use crate::cli::model::Source;
use burn::tensor::Device;
use burnlens::burn_models::auto::AnyModel;
use burnlens::burn_models::config::TokenIds;
use burnlens::burn_models::generation::GenerationConfig;
use burnlens::patching_core::capture::ForwardKwargs;
use std::borrow::Cow;

/// What was generated.
pub(crate) struct Generated {
    /// The prompts with what was added, one row for each sequence.
    pub(crate) sequences: Vec<Vec<i64>>,
    /// What was added, as long as was asked for; sequences that ended are filled up with padding.
    pub(crate) added: Vec<Vec<i64>>,
    /// What each step gave, if that was asked for.
    pub(crate) steps: Vec<Recorded>,
}

pub(crate) fn run(
    model: &AnyModel,
    source: &Source,
    given: &Given,
    device: &Device,
    kwargs: &ForwardKwargs,
    args: &CaptureArgs,
    tokens: usize,
) -> Result<Generated, CliError> {
    if !model.generates() {
        return Err(CliError::NoGeneration { class: model.class_name() });
    }
    // a decoder that answers an encoder begins by itself, and there is nothing to compare labels with
    let needless = ["labels", "decoder_input_ids", "decoder_attention_mask", "decoder_position_ids"];
    let inputs = needless.iter().fold(given.tensors.clone(), |inputs, name| inputs.without(name));
    for name in needless.iter().filter(|name| given.is_callers(name)) {
        eprintln!("warning: `{name}` is not used for `--generate`");
    }

    let mut config = GenerationConfig::from_pretrained(&source.dir)?;
    config.max_new_tokens = Some(tokens);
    config.do_sample = false;
    config.use_cache = true;
    config.output_logits = args.steps;
    if let Some(id) = args.eos_token_id {
        config.eos_token_id = Some(TokenIds::One(id));
    }
    if args.pad_token_id.is_some() {
        config.pad_token_id = args.pad_token_id;
    }
    let output = model.generate(&inputs, device, &config, kwargs)?;
    let [_, length] = output.sequences.dims();
    let ids: Vec<i64> = output.sequences.to_data().iter::<i64>().collect();
    let sequences: Vec<Vec<i64>> = ids.chunks(length.max(1)).map(<[i64]>::to_vec).collect();
    // Sequences are as long as the longest of them, what was added is as long as was asked for.
    let padding = padding(&config, model);
    let added = |row: &Vec<i64>| {
        let mut added = row.get(output.prompt_length..).unwrap_or_default().to_vec();
        added.resize(tokens, padding);
        added
    };
    let added = sequences.iter().map(added).collect();
    let steps = if args.steps { output.steps.as_slice() } else { &[] };
    let steps = steps
        .iter()
        .enumerate()
        .map(|(step, output)| Recorded::with_prefix(&format!("step.{step}."), output))
        .collect();
    Ok(Generated { sequences, added, steps })
}

/// What sequences that have ended are filled up with: as in `generate`, the first token that ends one if nothing else
/// is said, and by the model where the settings say nothing.
fn padding(config: &GenerationConfig, model: &AnyModel) -> i64 {
    let of_model = model.config_json();
    let ids = |name: &str| of_model.get(name).cloned().and_then(|ids| serde_json::from_value::<TokenIds>(ids).ok());
    let first = |ids: &TokenIds| ids.as_slice().first().copied();
    let padding = config.pad_token_id.or_else(|| ids("pad_token_id").as_ref().and_then(first));
    let end = || config.eos_token_id.as_ref().and_then(first).or_else(|| ids("eos_token_id").as_ref().and_then(first));
    // Without a token that ends sequences there is nothing to fill up.
    padding.or_else(end).unwrap_or(0)
}

impl Generated {
    /// `generated_ids`, `sequences` and the values of each step.
    pub(crate) fn saved(&self) -> Result<Vec<Saved<'_>>, CliError> {
        let mut saved = vec![Saved::rows("generated_ids", &self.added), Saved::rows("sequences", &self.sequences)];
        for value in self.steps.iter().flat_map(|step| &step.values) {
            saved.push(match value.shape() {
                // There is one position: the reference leaves its dimension out.
                [batch, 1, vocabulary] if value.recorded.is_none() => {
                    Saved::new(value.name.clone(), vec![*batch, *vocabulary], Cow::Borrowed(&value.data))?
                }
                _ => Saved::of(value)?,
            });
        }
        Ok(saved)
    }
}
