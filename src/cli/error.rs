use super::args::Backend;
use burnlens::burn_models::auto::{AutoError, InputError, RunError};
use burnlens::burn_models::config::ConfigError;
use burnlens::burn_models::did_you_mean;
use burnlens::burn_models::generation::GenerateError;
use burnlens::patching_core::capture::CaptureError;
use burnlens::patching_core::weights::SaveError;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a command failed.
#[derive(Debug, Error)]
pub(crate) enum CliError {
    #[error("{problem}")]
    Usage { command: &'static str, problem: String },

    #[error("cannot {action} `{}`", path.display())]
    File { action: &'static str, path: PathBuf, source: io::Error },

    #[error("cannot write to standard output")]
    Print { source: io::Error },

    #[error("`{}` is not a valid safetensors file", path.display())]
    Safetensors { path: PathBuf, source: safetensors::SafeTensorError },

    #[error("`{name}` in `{}` holds {found:?}, which cannot be an input", path.display())]
    InputDtype { path: PathBuf, name: String, found: safetensors::Dtype },

    #[error("`{}` holds no tensors", path.display())]
    NoInputs { path: PathBuf },

    #[error("there is no tokenizer in `{}`: expected `tokenizer.json`; pass `--ids` or `--inputs` instead", dir.display())]
    NoTokenizer { dir: PathBuf },

    #[cfg(feature = "text")]
    #[error("the tokenizer in `{}` failed", path.display())]
    Tokenizer { path: PathBuf, source: Box<dyn Error + Send + Sync> },

    #[cfg(not(feature = "text"))]
    #[error("`--text` was not built in: build with `--features text`")]
    NoText,

    #[cfg(feature = "text")]
    #[error("the text has no tokens")]
    EmptyText,

    #[error("the backend `{backend}` was not built in: build with `--features {backend}`{}", built_in(.available))]
    NoBackend { backend: Backend, available: Vec<Backend> },

    #[error("no backend was built in: build with `--features flex`")]
    NoBackends,

    #[error("the backend `{backend}` does not work on this machine: {problem}")]
    BrokenBackend { backend: Backend, problem: String },

    #[error("the family of `{}` has no class `{found}`{} (expected `auto`, `base` or one of: {})", dir.display(), did_you_mean(.found, .known), .known.join(", "))]
    UnknownClass { dir: PathBuf, found: String, known: Vec<String> },

    #[error("`{class}` does not generate text: leave out `--generate`, or choose a class that does with `--task`")]
    NoGeneration { class: &'static str },

    #[error("`--to` is the folder of the checkpoint itself, `{}`: choose another", path.display())]
    SameFolder { path: PathBuf },

    #[cfg(feature = "capture")]
    #[error("cannot find out the shapes: {problem}")]
    Shapes { problem: String },

    #[error("cannot save the outputs to `{}`", path.display())]
    SaveOutputs { path: PathBuf, source: safetensors::SafeTensorError },

    #[error("`{name}` has element type {found:?}, which cannot be saved")]
    OutputDtype { name: String, found: burn::tensor::DType },

    #[error("cannot write JSON")]
    Json(#[from] serde_json::Error),

    #[error("cannot load `{}`", dir.display())]
    Load { dir: PathBuf, source: Box<AutoError> },

    #[error("cannot save to `{}`", dir.display())]
    Save { dir: PathBuf, source: Box<SaveError> },

    #[error(transparent)]
    Config(#[from] ConfigError),

    #[error(transparent)]
    Input(#[from] InputError),

    #[error(transparent)]
    Run(#[from] RunError),

    #[error(transparent)]
    Capture(#[from] CaptureError),

    #[error(transparent)]
    Generate(#[from] GenerateError),
}

fn built_in(available: &[Backend]) -> String {
    let names: Vec<String> = available.iter().map(ToString::to_string).collect();
    if names.is_empty() { String::new() } else { format!(", or choose one of: {}", names.join(", ")) }
}

/// An error and what caused it, a line for each. Causes that an error tells in its own words already are left out.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut last = text.clone();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        if !last.contains(&message) {
            text.push_str("\n  because: ");
            text.push_str(&message);
            last = message;
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_told_once() {
        let source = io::Error::new(io::ErrorKind::NotFound, "gone");
        let error = CliError::File { action: "open", path: PathBuf::from("a"), source };
        assert_eq!(chain(&error), "cannot open `a`\n  because: gone");
    }
}
