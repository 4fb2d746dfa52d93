//! What can be written on the command line.

use super::files::parse_size;
use burn::tensor::FloatDType;
use burnlens::patching_core::capture::{Flag, ParseFlagError};
use burnlens::patching_core::weights::CheckpointLayout;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Looks inside transformer models: records what their layers compute, plans what would be recorded, and rewrites
/// checkpoints. Without `--model`, a tiny trained model that comes along is used.
#[derive(Debug, Parser)]
#[command(name = "burnlens", version, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a model once and show, or save, what it computes inside
    Capture(CaptureArgs),
    /// Show what would be recorded, without weights and without running anything
    Plan(PlanArgs),
    /// Write a checkpoint anew: other files, another element type, another layout
    Convert(ConvertArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// Folder with `config.json` and `model.safetensors`, or shards with an index [default: a tiny trained model]
    #[arg(long, value_name = "DIR")]
    pub(crate) model: Option<PathBuf>,

    /// `auto`: the class that the config's `architectures` name; `base`: its base model; or a class by name
    #[arg(long, value_name = "TASK", default_value = "auto")]
    pub(crate) task: Task,

    /// How attention is computed: `sdpa`, `eager` [default: the config's, else `sdpa`]
    #[arg(long, value_name = "NAME")]
    pub(crate) attn_implementation: Option<String>,

    /// How a mixture of experts is computed: `grouped_mm`, `eager`, `batched_mm` [default: the config's, else
    /// `grouped_mm`]
    #[arg(long, value_name = "NAME")]
    pub(crate) experts_implementation: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// Record `hidden_states`, `attentions` or another key that the model declares; SELECTION: `0,-1`, `2..`, `..3`,
    /// `1..=4`, or `false`. Keys that are not named are recorded as the config says
    #[arg(long = "output", value_name = "KEY[=SELECTION]", action = ArgAction::Append)]
    pub(crate) outputs: Vec<OutputRequest>,

    /// Whether keys and values are kept [default: the config's]
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub(crate) use_cache: Option<bool>,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct InputArgs {
    /// Tensors named as the arguments of `forward`: `input_ids`, `attention_mask`, …
    #[arg(long, value_name = "FILE.safetensors")]
    pub(crate) inputs: Option<PathBuf>,

    /// Token ids of one sequence
    #[arg(long, value_name = "ID,ID,…", value_delimiter = ',')]
    pub(crate) ids: Option<Vec<i64>>,

    /// A text, for models with a `tokenizer.json`
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CaptureArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,

    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) request: RequestArgs,

    /// Continue each sequence by N tokens, always the most probable one. A decoder that answers an encoder begins by
    /// itself, whatever the inputs say of it
    #[arg(long, value_name = "N", value_parser = parse_length)]
    pub(crate) generate: Option<usize>,

    /// Record every step of the generation
    #[arg(long, requires = "generate")]
    pub(crate) steps: bool,

    /// The token that ends a generated sequence [default: the model's]
    #[arg(long, value_name = "ID", requires = "generate")]
    pub(crate) eos_token_id: Option<i64>,

    /// What generated sequences that have ended are filled up with [default: the model's]
    #[arg(long, value_name = "ID", requires = "generate")]
    pub(crate) pad_token_id: Option<i64>,

    /// What computes [default: the first that was built in]
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Option<Backend>,

    /// The element type to compute in
    #[arg(long, value_name = "DTYPE", default_value = "f32")]
    pub(crate) dtype: Dtype,

    /// Save the outputs: `logits`, `hidden_states.0`, …
    #[arg(long, value_name = "FILE.safetensors")]
    pub(crate) save: Option<PathBuf>,

    /// Save the order of the outputs and which positions are present
    #[arg(long, value_name = "FILE.json")]
    pub(crate) meta: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,

    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Plan for this many tokens, where no input is given
    #[arg(long, value_name = "N", value_parser = parse_length, conflicts_with_all = ["inputs", "ids", "text"])]
    pub(crate) length: Option<usize>,

    #[command(flatten)]
    pub(crate) request: RequestArgs,

    /// The element type that the model would compute in
    #[arg(long, value_name = "DTYPE", default_value = "f32")]
    pub(crate) dtype: Dtype,

    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The checkpoint to read
    #[arg(long, value_name = "DIR")]
    pub(crate) model: PathBuf,

    /// Where to write
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,

    /// The class to load it as: `auto`, `base`, or a name
    #[arg(long, value_name = "TASK", default_value = "auto")]
    pub(crate) task: Task,

    /// Divide the weights into files of at most this size: `40KB`, `5GB`
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_shard_size: Option<u64>,

    /// The element type to write [default: as it is]
    #[arg(long, value_name = "DTYPE")]
    pub(crate) dtype: Option<Dtype>,

    /// `original`: names and shapes as they are in `--model`; `published`: as the reference publishes them, such as a
    /// tensor for each expert; `model`: as the parameters are in this program, such as all experts in one
    #[arg(long, value_name = "LAYOUT", default_value = "original")]
    pub(crate) layout: Layout,
}

/// More tokens than any model takes, and few enough to hold their ids.
const MAX_LENGTH: usize = 1 << 24;

/// A number of tokens.
fn parse_length(text: &str) -> Result<usize, String> {
    let length = text.parse().ok().filter(|length| (1..=MAX_LENGTH).contains(length));
    length.ok_or_else(|| format!("expected a number from 1 to {MAX_LENGTH}"))
}

/// Which of its family's classes a checkpoint is loaded as.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    Auto,
    Base,
    Class(String),
}

impl FromStr for Task {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "auto" => Self::Auto,
            "base" => Self::Base,
            name => Self::Class(name.to_owned()),
        })
    }
}

/// `KEY` or `KEY=SELECTION`.
#[derive(Clone, Debug)]
pub(crate) struct OutputRequest {
    pub(crate) key: String,
    pub(crate) flag: Flag,
}

impl FromStr for OutputRequest {
    type Err = ParseFlagError;

    fn from_str(text: &str) -> Result<Self, ParseFlagError> {
        let (key, flag) = match text.split_once('=') {
            Some((key, selection)) => (key, selection.parse()?),
            None => (text, Flag::On),
        };
        Ok(Self { key: key.trim().to_owned(), flag })
    }
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    Flex,
    Ndarray,
    Wgpu,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flex => "flex",
            Self::Ndarray => "ndarray",
            Self::Wgpu => "wgpu",
        })
    }
}

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dtype {
    F32,
    Bf16,
    F16,
}

impl Dtype {
    pub(crate) fn float(self) -> FloatDType {
        match self {
            Self::F32 => FloatDType::F32,
            Self::Bf16 => FloatDType::BF16,
            Self::F16 => FloatDType::F16,
        }
    }
}

/// How a checkpoint is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    Original,
    Published,
    Model,
}

impl Layout {
    pub(crate) fn checkpoint(self) -> CheckpointLayout {
        match self {
            Self::Original => CheckpointLayout::Original,
            Self::Published => CheckpointLayout::Published,
            Self::Model => CheckpointLayout::Model,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn selections_may_be_negative() {
        let cli = Cli::try_parse_from(["burnlens", "capture", "--output", "hidden_states=-1", "--output=attentions"]);
        let Ok(Cli { command: Command::Capture(args) }) = cli else { panic!("{cli:?}") };
        assert_eq!(args.request.outputs[0].flag, Flag::from(-1));
        assert_eq!(args.request.outputs[1].flag, Flag::On);
    }
}
