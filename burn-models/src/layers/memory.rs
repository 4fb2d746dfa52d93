//! Memory of results.
//!
//! glibc gives freed memory back to the system and takes it anew for the next result, page by page and zeroed: at the
//! sizes of hidden states that costs more than the matrix product which fills them. It keeps memory for itself up to
//! twice the size of the largest block that it has seen freed so far, which is small in a program whose weights are
//! mapped from files.

use std::hint::black_box;
use std::sync::Once;

/// The largest block that glibc learns from.
const LARGEST: usize = 32 * 1024 * 1024;

/// Lets the allocator see a large block freed, so that it keeps what results free for the next ones. Nothing is ever
/// written to the block, so it never gets memory; other allocators do not mind.
pub(super) fn keep_for_results() {
    static SEEN: Once = Once::new();
    // less than the limit by what the allocator adds to it
    SEEN.call_once(|| drop(black_box(Vec::<u8>::with_capacity(LARGEST - 64 * 1024))));
}
