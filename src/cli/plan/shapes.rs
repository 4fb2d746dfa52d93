//! Shapes by running the model on a device that computes nothing: it only notes down which operations there are.

use super::{Implementations, Source};
use crate::cli::args::Dtype;
use crate::cli::error::CliError;
use crate::cli::inputs::Given;
use burnlens::patching_core::capture::ForwardKwargs;
use std::collections::BTreeMap;

/// The shape of a value, and its size.
pub(super) struct Shape {
    pub(super) dims: Vec<usize>,
    pub(super) bytes: u64,
}

/// By key, then by position.
pub(super) type Shapes = BTreeMap<String, BTreeMap<usize, Shape>>;

/// The shapes of everything that is recorded; `None` only where the device for it was not built in.
#[cfg(feature = "capture")]
pub(super) fn of(
    source: &Source,
    implementations: Implementations<'_>,
    dtype: Dtype,
    given: &Given,
    kwargs: &ForwardKwargs,
) -> Result<Option<Shapes>, CliError> {
    use burn::tensor::{DType, Device};
    use burnlens::patching_core::capture::OutputTuple;

    let device = Device::capture();
    let mut result: Option<Result<OutputTuple, CliError>> = None;
    let noted = device.capture_scope(|scope| {
        let run = || Ok(source.describe(&device, implementations)?.forward(&given.tensors, &device, kwargs)?);
        result = Some(run());
        scope.complete(Vec::new(), Vec::new())
    });
    // The model's own error says more than that of the device.
    let output = result.transpose()?;
    noted.map_err(|source| CliError::Shapes { problem: source.to_string() })?;
    let output = output.ok_or_else(|| CliError::Shapes { problem: "nothing was run".to_owned() })?;
    let width = DType::from(dtype.float()).size() as u64;
    let mut shapes = Shapes::new();
    collect("", &output, width, &mut shapes);
    Ok(Some(shapes))
}

#[cfg(feature = "capture")]
fn collect(
    prefix: &str,
    output: &burnlens::patching_core::capture::OutputTuple,
    float_width: u64,
    shapes: &mut Shapes,
) {
    use burnlens::patching_core::capture::OutputValue;
    for (field, value) in output.iter() {
        match value {
            OutputValue::Captured(captured) => {
                let of_key = shapes.entry(format!("{prefix}{field}")).or_default();
                for (position, _, tensor) in captured.iter() {
                    let dims = tensor.shape().to_vec();
                    let elements: u64 = dims.iter().map(|dim| *dim as u64).product();
                    let width = if tensor.dtype().is_float() { float_width } else { tensor.dtype().size() as u64 };
                    of_key.insert(position, Shape { dims, bytes: elements * width });
                }
            }
            OutputValue::Nested(nested) => collect(&format!("{prefix}{field}."), nested, float_width, shapes),
            _ => {}
        }
    }
}

/// Without such a device nothing is known.
#[cfg(not(feature = "capture"))]
pub(super) fn of(
    _source: &Source,
    _implementations: Implementations<'_>,
    _dtype: Dtype,
    _given: &Given,
    _kwargs: &ForwardKwargs,
) -> Result<Option<Shapes>, CliError> {
    Ok(None)
}
