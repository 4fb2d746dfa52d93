//! Memory for tensors that are read or put together.

use burn::tensor::{AllocationProperty, Bytes};
use bytemuck::Pod;
use memmap2::MmapMut;

/// From this size on, memory is taken in large pages where the system has them. Getting hundreds of thousands of small
/// ones costs as much as copying into them.
const LARGE: usize = 4 << 20;

/// `len` bytes, filled by `fill`, that lie right for elements of `size` bytes.
pub(crate) fn aligned<E>(size: usize, len: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Bytes, E> {
    if let Some(mut pages) = large_pages(len) {
        fill(&mut pages)?;
        return Ok(Bytes::from_shared(bytes::Bytes::from_owner(pages), AllocationProperty::Native));
    }
    match size {
        1 => elements::<u8, E>(len, fill),
        2 => elements::<u16, E>(len, fill),
        4 => elements::<u32, E>(len, fill),
        _ => elements::<u64, E>(len, fill),
    }
}

fn elements<T: Pod + Send + Sync, E>(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Bytes, E> {
    let mut elements = vec![T::zeroed(); len / size_of::<T>()];
    fill(bytemuck::cast_slice_mut(&mut elements))?;
    Ok(Bytes::from_elems(elements))
}

/// Fresh pages, large ones if the system gives any; `None` where there is no gain in it.
fn large_pages(len: usize) -> Option<MmapMut> {
    if !cfg!(target_os = "linux") || len < LARGE {
        return None;
    }
    let pages = MmapMut::map_anon(len).ok()?;
    // a wish, which a system without large pages does not grant
    #[cfg(target_os = "linux")]
    pages.advise(memmap2::Advice::HugePage).ok();
    Some(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_buffers_hold_what_they_are_filled_with() {
        for len in [0, 8, LARGE - 8, LARGE, LARGE + 24] {
            let fill = |buffer: &mut [u8]| {
                assert_eq!(buffer.len(), len);
                buffer.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
                Ok::<(), ()>(())
            };
            let bytes = aligned(4, len, fill).expect("filled");
            assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == at as u8), "{len}");
            assert_eq!(aligned(4, len, |_| Err(())).map(drop), Err(()));
        }
    }
}
