use crate::error::ForwardError;
use burn::module::Initializer;
use burn::nn::Embedding;
use burn::tensor::{Device, Int, Tensor};

/// An embedding with normally distributed rows of standard deviation `std`.
pub fn new_embedding(vocab_size: usize, hidden_size: usize, std: f64, device: &Device) -> Embedding {
    Embedding { weight: Initializer::Normal { mean: 0.0, std }.init([vocab_size, hidden_size], device) }
}

/// Looks up token ids: `[batch, seq]` to `[batch, seq, hidden]`.
///
/// On devices whose memory is the program's own, ids are checked against the vocabulary first. Elsewhere reading them
/// back would stop the device, so there they are clamped into the vocabulary: an id outside gives a wrong row, never
/// an access outside the table.
///
/// # Errors
///
/// [`ForwardError::IndexOutOfRange`] on devices where ids are checked.
pub fn embed(table: &Embedding, input_ids: Tensor<2, Int>) -> Result<Tensor<3>, ForwardError> {
    let weight = table.weight.val();
    let [vocab_size, _] = weight.dims();
    let input_ids = safe_ids("input_ids", input_ids, vocab_size)?;
    Ok(burn::tensor::module::embedding(weight, input_ids))
}

/// Indices that all lie below `limit`: checked on devices where reading them back costs nothing, elsewhere clamped.
pub(crate) fn safe_ids<const D: usize>(
    name: &'static str,
    ids: Tensor<D, Int>,
    limit: usize,
) -> Result<Tensor<D, Int>, ForwardError> {
    if !is_host(&ids.device()) {
        return Ok(clamped(ids, limit));
    }
    let outside = |id: &i64| *id < 0 || *id >= limit as i64;
    match ids.to_data().iter::<i64>().find(outside) {
        Some(found) => Err(ForwardError::IndexOutOfRange { name, found, limit }),
        None => Ok(ids),
    }
}

fn clamped<const D: usize>(ids: Tensor<D, Int>, limit: usize) -> Tensor<D, Int> {
    ids.clamp(0, limit.saturating_sub(1) as i64)
}

/// Whether reading a tensor of `device` back costs no more than a copy.
pub(crate) fn is_host(device: &Device) -> bool {
    is_flex(device) || is_ndarray(device)
}

/// Whether values can be read back from `device` at all: not from one that only records which operations there are.
pub(crate) fn is_readable(device: &Device) -> bool {
    // Two devices of this kind are never the same, so one is told by what only they can: begin a scope.
    #[cfg(feature = "capture")]
    return matches!(
        device.capture_scope(|scope| scope.complete([], [])),
        Err(burn::tensor::CaptureError::InvalidDevice)
    );
    #[cfg(not(feature = "capture"))]
    {
        let _ = device;
        true
    }
}

/// Whether `device` is burn-flex, with or without autodiff.
pub(crate) fn is_flex(device: &Device) -> bool {
    #[cfg(feature = "flex")]
    return *device == Device::flex();
    #[cfg(not(feature = "flex"))]
    {
        let _ = device;
        false
    }
}

/// Whether `device` is burn-ndarray, with or without autodiff.
pub(crate) fn is_ndarray(device: &Device) -> bool {
    #[cfg(feature = "ndarray")]
    #[allow(deprecated, reason = "the backend is supported for as long as it exists")]
    return *device == Device::ndarray();
    #[cfg(not(feature = "ndarray"))]
    {
        let _ = device;
        false
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    #[cfg(feature = "capture")]
    #[test]
    fn what_only_notes_operations_down_is_known() {
        let device = Device::capture();
        assert!(is_readable(&Device::flex()) && !is_readable(&device));
        let noted = device.capture_scope(|scope| {
            assert!(!is_readable(&device), "also while it does");
            scope.complete([], [])
        });
        assert!(noted.is_ok());
    }

    #[test]
    fn ids_are_checked_here_and_clamped_elsewhere() {
        let ids = || Tensor::<1, Int>::from_data([-3, 0, 4, 5], &Device::flex());
        let error = safe_ids("labels", ids(), 5).expect_err("outside").to_string();
        assert!(error.contains("`labels`") && error.contains("-3"), "{error}");
        assert_eq!(clamped(ids(), 5).to_data().iter::<i64>().collect::<Vec<_>>(), [0, 0, 4, 4]);
    }
}
