//! Memory for tensors that are read or put together.

use burn::tensor::Bytes;
use bytemuck::Pod;

/// `len` bytes, filled by `fill`, that lie right for elements of `size` bytes.
pub(crate) fn aligned<E>(size: usize, len: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Bytes, E> {
    match size {
        1 => elements::<u8, E>(len, fill),
        2 => elements::<u16, E>(len, fill),
        4 => elements::<u32, E>(len, fill),
        _ => elements::<u64, E>(len, fill),
    }
}

// Large pages were tried: four times faster where the machine has them at hand, and four times slower on a virtual
// machine that has to get them from its host.
fn elements<T: Pod + Send + Sync, E>(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Bytes, E> {
    let mut elements = vec![T::zeroed(); len / size_of::<T>()];
    fill(bytemuck::cast_slice_mut(&mut elements))?;
    Ok(Bytes::from_elems(elements))
}
