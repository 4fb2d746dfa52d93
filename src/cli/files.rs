//! Writing files whole or not at all, and sizes as people write them.

use super::error::CliError;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Writes `path` by way of a temporary file beside it, so that what was there stays whole until the new content is
/// complete. What is no regular file (`/dev/stdout`) is written to directly.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&Path) -> Result<(), CliError>) -> Result<(), CliError> {
    let failed = |action, source| CliError::File { action, path: path.to_owned(), source };
    // A link stays a link, and what it leads to is replaced. A link that leads nowhere is replaced itself.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_special = fs::metadata(&target).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    if is_special {
        return write(&target);
    }
    if target.is_dir() {
        return Err(failed("write", io::Error::from(io::ErrorKind::IsADirectory)));
    }
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = builder().tempfile_in(folder).map_err(|source| failed("write", source))?.into_temp_path();
    write(&temporary)?;
    temporary.persist(&target).map_err(|error| failed("write", error.error))
}

/// Temporary files that others may read, as far as the user's mask lets them: they become the real ones.
fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".burnlens-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder
}

/// Writes a text file whole or not at all.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), CliError> {
    replace(path, |temporary| {
        fs::write(temporary, text).map_err(|source| CliError::File { action: "write", path: path.to_owned(), source })
    })
}

/// Whether both lead to the same folder.
pub(crate) fn same_folder(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    real(one).is_some_and(|path| real(other) == Some(path))
}

/// Whether both files hold the same bytes.
pub(crate) fn same_content(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (fs::File::open(one)?, fs::File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(one), BufReader::new(other));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let common = left.len().min(right.len());
        if common == 0 {
            return Ok(left.len() == right.len());
        }
        if left[..common] != right[..common] {
            return Ok(false);
        }
        one.consume(common);
        other.consume(common);
    }
}

/// `path` without the current folder in front of it.
pub(crate) fn shown(path: &Path) -> PathBuf {
    let here = std::env::current_dir().ok();
    let relative = here.as_deref().and_then(|here| path.strip_prefix(here).ok());
    match relative {
        Some(relative) if relative.as_os_str().is_empty() => PathBuf::from("."),
        Some(relative) => relative.to_owned(),
        None => path.to_owned(),
    }
}

/// Reads `40KB`, `5GB` or a number of bytes; units are powers of 1000 (`KiB`: of 1024), as in the reference.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no size: expected a number and a unit, such as `40KB` or `5GB`");
    let text_ = text.trim();
    let digits = text_.find(|c: char| !c.is_ascii_digit()).unwrap_or(text_.len());
    let (number, unit) = text_.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let factor: u64 = match unit.trim().to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KIB" => 1 << 10,
        "MIB" => 1 << 20,
        "GIB" => 1 << 30,
        "TIB" => 1 << 40,
        _ => return Err(wrong()),
    };
    match number.checked_mul(factor) {
        Some(0) => Err(format!("`{text}` is no size: a file must hold something")),
        Some(bytes) => Ok(bytes),
        None => Err(format!("`{text}` is too large")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("40KB"), Ok(40_000));
        assert_eq!(parse_size("5 gb"), Ok(5_000_000_000));
        assert_eq!(parse_size("2MiB"), Ok(2 << 20));
        assert_eq!(parse_size("17"), Ok(17));
        for wrong in ["", "KB", "-1KB", "1.5GB", "3 apples", "0GB", "99999999999TB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn contents_are_compared_to_the_end() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        // more than a buffer
        let mut bytes = vec![7; 20_000];
        fs::write(&one, &bytes)?;
        fs::write(&other, &bytes)?;
        assert!(same_content(&one, &other)?);
        bytes[19_999] = 8;
        fs::write(&other, &bytes)?;
        assert!(!same_content(&one, &other)?);
        fs::write(&other, &bytes[..19_999])?;
        assert!(!same_content(&one, &other)?);
        Ok(())
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.json");
        write_text(&path, "old")?;
        let failed = replace(&path, |temporary| {
            fs::write(temporary, "half").map_err(|source| CliError::Print { source })?;
            Err(CliError::NoBackends)
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path)?, "old");
        write_text(&path, "new")?;
        assert_eq!(fs::read_to_string(&path)?, "new");
        assert_eq!(fs::read_dir(folder.path())?.count(), 1, "temporary files are gone");
        Ok(())
    }
}
