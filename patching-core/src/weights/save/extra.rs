//! The files beside weights and config.

use std::fs;
use std::path::{Path, PathBuf};

use super::commit::{Staging, flush};
use crate::weights::config::CONFIG_NAME;
use crate::weights::error::SaveError;

/// Formats of weights, which saving replaces.
const WEIGHTS: [&str; 10] = ["safetensors", "bin", "pt", "pth", "ckpt", "h5", "msgpack", "gguf", "onnx", "onnx_data"];

/// Copies the extra files of the folder `from`; returns their names.
pub(super) fn copy(from: &Path, staging: &Staging) -> Result<Vec<PathBuf>, SaveError> {
    let mut names = Vec::new();
    for file in fs::read_dir(from).map_err(SaveError::io(from, "list"))? {
        let path = file.map_err(SaveError::io(from, "list"))?.path();
        // What a link leads to counts: downloaded folders consist of links.
        let is_file = fs::metadata(&path).is_ok_and(|metadata| metadata.is_file());
        let Some(name) = path.file_name().filter(|name| is_file && is_extra(name.to_str())) else {
            continue;
        };
        let to = staging.path(name);
        fs::copy(&path, &to).map_err(SaveError::io(&path, "copy"))?;
        flush(&to)?;
        names.push(PathBuf::from(name));
    }
    Ok(names)
}

fn is_extra(name: Option<&str>) -> bool {
    let Some(name) = name else {
        return false;
    };
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    name != CONFIG_NAME
        && !name.starts_with('.')
        && !name.ends_with(".index.json")
        && !WEIGHTS.contains(&extension.as_str())
}

#[cfg(test)]
mod tests {
    use super::is_extra;

    #[test]
    fn weights_and_the_config_are_not_extra() {
        for name in ["tokenizer.json", "generation_config.json", "merges.txt", "LICENSE", "vocab.json"] {
            assert!(is_extra(Some(name)), "{name}");
        }
        for name in [
            "config.json",
            "model.safetensors",
            "pytorch_model.bin",
            "pytorch_model.bin.index.json",
            ".gitattributes",
            "tf_model.h5",
            "MODEL.SAFETENSORS",
        ] {
            assert!(!is_extra(Some(name)), "{name}");
        }
    }
}
