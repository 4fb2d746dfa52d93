//! The few file operations that everything here shares.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

use super::error::ReadError;

/// Opens a regular file.
///
/// Symbolic links are followed: a downloaded snapshot commonly consists of them. What they lead to must be a file;
/// opening a pipe or a device could block for ever.
pub(crate) fn open_regular(path: &Path) -> Result<(File, Metadata), ReadError> {
    let failed = |source| ReadError::io(path, "open", source);
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(ReadError::NotAFile { path: path.to_owned() });
    }
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    Ok((file, metadata))
}

/// Reads a text file of at most `limit` bytes.
///
/// # Errors
///
/// When it cannot be read, is no regular file, is larger, or is not UTF-8.
pub fn read_text(path: impl AsRef<Path>, limit: u64) -> Result<String, ReadError> {
    let path = path.as_ref();
    let (file, metadata) = open_regular(path)?;
    let too_large = |size| ReadError::TooLarge { path: path.to_owned(), size, limit };
    if metadata.len() > limit {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::new();
    // The length may be wrong (a file that grows, a synthetic file system), so the read is bounded as well.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|source| ReadError::io(path, "read", source))?;
    if bytes.len() as u64 > limit {
        return Err(too_large(bytes.len() as u64));
    }
    String::from_utf8(bytes).map_err(|_| ReadError::NotText { path: path.to_owned() })
}

/// Fills `buffer` from `offset` on, without moving a shared cursor.
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
    }
    #[cfg(windows)]
    {
        let (mut buffer, mut offset) = (buffer, offset);
        while !buffer.is_empty() {
            let count = std::os::windows::fs::FileExt::seek_read(file, buffer, offset)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            buffer = &mut buffer[count..];
            offset += count as u64;
        }
        Ok(())
    }
}

/// Makes renames and removals in `dir` durable, where the platform has a way to.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        File::open(dir)?.sync_all()
    }
    #[cfg(not(unix))]
    {
        let _ = dir;
        Ok(())
    }
}

/// What tells one version of a file from the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    inode: u64,
}

impl Stamp {
    /// The stamp of the file at `path`, or `None` where there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            len: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(&metadata),
        })
    }
}
