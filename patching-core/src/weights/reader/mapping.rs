//! The one place that maps files into memory.
//!
//! # Why this is sound
//!
//! A map shows what is in the file, so Rust's promise that a `&[u8]` does not change holds only as long as nobody
//! changes the file in place, and touching a page beyond the end of a file that was shortened raises a signal.
//! No program can exclude that for files that others may write. What is done about it:
//!
//! - The map is read-only and handed out as shared bytes only; writing to a tensor that lies on it copies it first.
//! - The map owns its pages: [`bytes::Bytes`] keeps it until the last tensor on it is gone. The file may be renamed,
//!   replaced by another of its name, or deleted meanwhile; the pages stay.
//! - Nothing in this crate changes a weights file in place: saving writes new files and renames them.
//! - Whatever is read from a map is plain bytes, for which every bit pattern is valid; kinds of elements for which
//!   that is not so (`bool`) are checked and copied.
//! - Who has to share a folder with programs that do rewrite files in place loads with
//!   [`ReadMode::Read`](crate::weights::ReadMode::Read).
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::MmapOptions;

/// The first `len` bytes of `file` as shared bytes.
pub(super) fn map(file: &File, len: usize) -> io::Result<bytes::Bytes> {
    if len == 0 {
        return Ok(bytes::Bytes::new());
    }
    // SAFETY: the map is read-only and only ever seen as shared bytes; that the file is not changed in place
    // is the condition stated above.
    let map = unsafe { MmapOptions::new().len(len).map(file)? };
    Ok(bytes::Bytes::from_owner(map))
}
