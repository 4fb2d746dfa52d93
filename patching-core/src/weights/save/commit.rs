//! Putting new files in the place of old ones.
//!
//! Everything is first written to a folder inside the target and flushed to the disk. Renames then bring it into
//! place, in an order that lets a reader (ours or the reference's: `model.safetensors` first, else the index) find
//! either all of the old weights or all of the new ones at every instant, also after a crash:
//!
//! - One file: renaming it over `model.safetensors` is the switch; old shards are unreachable from then on.
//! - Shards where `model.safetensors` was: it hides them until it is removed, which is the switch.
//! - Shards beside shards of other names: renaming the index over the old one is the switch.
//! - Shards of the same names as old ones: they first get a second, passing name each, and an index with those names
//!   makes the switch. Then the old shards are replaced and an index with the final names follows.
//!
//! `config.json` cannot change in the same instant. It is replaced just before the switch, and only if it differs.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::shards::is_shard;
use crate::weights::config::{CONFIG_NAME, to_sorted_json};
use crate::weights::error::SaveError;
use crate::weights::fs::sync_dir;
use crate::weights::reader::{INDEX_NAME, WEIGHTS_NAME};

/// How the folders begin that files are written to first.
const STAGING: &str = ".saving-";

/// What a commit left as it was.
pub(super) struct Committed {
    /// Old files that could not be removed.
    pub(super) left_over: Vec<PathBuf>,
    /// Files that kept extra ones of the same name, but with other content, out.
    pub(super) kept: Vec<PathBuf>,
}

/// A folder that files are written to before they come into their place.
pub(super) struct Staging {
    target: PathBuf,
    dir: TempDir,
    /// Keeps other saves out as long as it is open, where the platform can lock a folder.
    _lock: Option<File>,
}

impl Staging {
    /// Makes `target` if need be, and a folder in it.
    pub(super) fn new(target: &Path) -> Result<Self, SaveError> {
        fs::create_dir_all(target).map_err(SaveError::io(target, "create"))?;
        let lock = File::open(target).ok().filter(|folder| folder.lock().is_ok());
        if lock.is_some() {
            remove_abandoned(target);
        }
        let dir = tempfile::Builder::new()
            .prefix(STAGING)
            .tempdir_in(target)
            .map_err(SaveError::io(target, "create a folder in"))?;
        Ok(Self { target: target.to_owned(), dir, _lock: lock })
    }

    /// Where to write the file that is to be called `name`.
    pub(super) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a small file.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), SaveError> {
        let path = self.path(name);
        fs::write(&path, text).map_err(SaveError::io(&path, "write"))?;
        flush(&path)
    }

    /// Brings the files into their place: `weights` are the names of one file or of shards, `index` is the index of
    /// the latter, `extra` are files that an existing one of the same name keeps out.
    ///
    /// Returns what was not done as it might be expected.
    pub(super) fn commit(
        self,
        weights: &[String],
        index: Option<&Value>,
        extra: &[PathBuf],
    ) -> Result<Committed, SaveError> {
        let target = self.target.as_path();
        let mut kept = Vec::new();
        for name in extra {
            let there = target.join(name);
            if !there.exists() {
                self.place(name)?;
            } else if !same_content(&self.path(name), &there) {
                kept.push(there);
            }
        }
        if fs::read(self.path(CONFIG_NAME)).ok() != fs::read(target.join(CONFIG_NAME)).ok() {
            self.place(CONFIG_NAME)?;
        }
        match index {
            None => self.switch_to_one(weights)?,
            Some(index) => self.switch_to_shards(weights, index)?,
        }
        self.synced()?;

        let mut old = stale_shards(target, weights);
        if index.is_none() {
            old.push(target.join(INDEX_NAME));
        }
        old.retain(|path| fs::remove_file(path).is_err() && path.exists());
        Ok(Committed { left_over: old, kept })
    }

    fn switch_to_one(&self, weights: &[String]) -> Result<(), SaveError> {
        weights.iter().try_for_each(|name| self.place(name))
    }

    fn switch_to_shards(&self, weights: &[String], index: &Value) -> Result<(), SaveError> {
        let single = self.target.join(WEIGHTS_NAME);
        let hidden = single.exists();
        let taken = weights.iter().any(|name| self.target.join(name).exists());
        if taken && !hidden {
            self.bridge(weights, index)?;
        }
        for name in weights {
            self.place(name)?;
        }
        self.synced()?;
        self.write(INDEX_NAME, &text(index)?)?;
        self.place(INDEX_NAME)?;
        if hidden {
            self.synced()?;
            fs::remove_file(&single).map_err(SaveError::io(&single, "remove"))?;
        }
        Ok(())
    }

    /// Makes the new shards reachable under names that no old shard has.
    fn bridge(&self, weights: &[String], index: &Value) -> Result<(), SaveError> {
        let token = self.dir.path().file_name().and_then(OsStr::to_str).unwrap_or_default();
        let token: String = token.chars().filter(char::is_ascii_alphanumeric).collect();
        let passing = |name: &str| match name.strip_suffix(".safetensors") {
            Some(stem) => format!("{stem}.{token}.safetensors"),
            None => name.to_owned(),
        };
        for name in weights {
            let (from, to) = (self.path(name), self.target.join(passing(name)));
            // Some file systems have no links; there a copy has to do.
            if fs::hard_link(&from, &to).is_err() {
                fs::copy(&from, &to).map_err(SaveError::io(&to, "write"))?;
                flush(&to)?;
            }
        }
        self.synced()?;
        let map = index.get("weight_map").and_then(Value::as_object).cloned().unwrap_or_default();
        let map: Map<_, _> =
            map.into_iter().map(|(key, shard)| (key, json!(passing(shard.as_str().unwrap_or_default())))).collect();
        let metadata = index.get("metadata").cloned().unwrap_or_default();
        self.write(INDEX_NAME, &text(&json!({ "metadata": metadata, "weight_map": map }))?)?;
        self.place(INDEX_NAME)?;
        self.synced()
    }

    /// Renames a file into its place, over one that is there.
    fn place(&self, name: impl AsRef<Path>) -> Result<(), SaveError> {
        let to = self.target.join(&name);
        fs::rename(self.path(&name), &to).map_err(SaveError::io(&to, "replace"))
    }

    fn synced(&self) -> Result<(), SaveError> {
        sync_dir(&self.target).map_err(SaveError::io(&self.target, "flush"))
    }
}

fn text(value: &Value) -> Result<String, SaveError> {
    to_sorted_json(value).map_err(SaveError::Config)
}

/// Whether two files hold the same bytes; not, if one cannot be read.
fn same_content(one: &Path, other: &Path) -> bool {
    let length = |path: &Path| fs::metadata(path).map(|metadata| metadata.len()).ok();
    // Extra files are small, but nothing keeps others from lying beside them; those of other length are not read.
    length(one) == length(other) && matches!((fs::read(one), fs::read(other)), (Ok(one), Ok(other)) if one == other)
}

/// Waits until the file is on the disk.
pub(super) fn flush(path: &Path) -> Result<(), SaveError> {
    let file = File::options().write(true).open(path).map_err(SaveError::io(path, "flush"))?;
    file.sync_all().map_err(SaveError::io(path, "flush"))
}

/// Shards in `target` that are not among `weights`.
fn stale_shards(target: &Path, weights: &[String]) -> Vec<PathBuf> {
    let files = fs::read_dir(target).into_iter().flatten().flatten();
    files
        .filter(|file| {
            let name = file.file_name();
            name.to_str().is_some_and(|name| is_shard(name) && !weights.iter().any(|kept| kept == name))
        })
        .map(|file| file.path())
        .collect()
}

/// Removes what saves that were killed left behind.
fn remove_abandoned(target: &Path) {
    for folder in fs::read_dir(target).into_iter().flatten().flatten() {
        if folder.file_name().to_str().is_some_and(|name| name.starts_with(STAGING)) {
            // Nothing depends on it being gone.
            let _ = fs::remove_dir_all(folder.path());
        }
    }
}
