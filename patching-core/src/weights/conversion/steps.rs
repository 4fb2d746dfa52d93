//! Carrying out a converter's operations on assemblies.

use super::assembly::Assembly;
use super::operations::{ConversionOperation, Parts};

/// The tensors of one pattern: several for a module list.
pub(crate) type Stream = Vec<Assembly>;

/// A shape as far as it is known.
pub(crate) type Expected = Option<Vec<Option<usize>>>;

/// Why operations do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepError {
    /// An operation does not fit its tensors.
    Operation { operation: String, reason: String },
    /// Whether to transpose cannot be told.
    Ambiguous { dim0: usize, dim1: usize, shape: Vec<usize> },
}

/// What the targets say about the tensors in between.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expectations {
    /// The shapes after each operation, one for each stream.
    after: Vec<Vec<Expected>>,
    /// How many tensors a module list of sources has.
    pub(crate) merged: Option<usize>,
}

impl Expectations {
    /// What `operations` have to make, given the shapes of the targets' parameters.
    pub(crate) fn new(operations: &[ConversionOperation], sources: usize, targets: &[Option<&[usize]>]) -> Self {
        let known = |shape: &[usize]| shape.iter().map(|&size| Some(size)).collect::<Vec<_>>();
        let mut shapes: Vec<Expected> = targets.iter().map(|shape| shape.map(known)).collect();
        let mut after = Vec::with_capacity(operations.len());
        let mut merged = None;
        let streams = streams(operations, sources, targets.len());
        for (operation, inputs) in operations.iter().zip(streams).rev() {
            let before = before(operation, &shapes, inputs, &mut merged);
            after.push(std::mem::replace(&mut shapes, before));
        }
        after.reverse();
        Self { after, merged }
    }

    fn after(&self, operation: usize, stream: usize) -> Option<&[Option<usize>]> {
        self.after.get(operation)?.get(stream)?.as_deref()
    }
}

/// How many streams go into each operation.
pub(super) fn streams(operations: &[ConversionOperation], sources: usize, targets: usize) -> Vec<usize> {
    let mut count = sources;
    let counts = operations.iter().map(|operation| {
        let before = count;
        match operation {
            ConversionOperation::Concatenate(_) => count = 1,
            ConversionOperation::Chunk(_) | ConversionOperation::Split(_) => count = targets,
            _ => {}
        }
        before
    });
    counts.collect()
}

/// The shapes that go into `operation` for `after` to come out.
fn before(
    operation: &ConversionOperation,
    after: &[Expected],
    inputs: usize,
    merged: &mut Option<usize>,
) -> Vec<Expected> {
    let each = |change: &dyn Fn(Vec<Option<usize>>) -> Expected| -> Vec<Expected> {
        after.iter().map(|shape| shape.clone().and_then(change)).collect()
    };
    match operation {
        ConversionOperation::Transpose(transpose) => each(&|mut shape| {
            let (dim0, dim1) = (transpose.dim0, transpose.dim1);
            if dim0.max(dim1) >= shape.len() {
                return None;
            }
            shape.swap(dim0, dim1);
            if transpose.if_needed && shape.get(dim0) != shape.get(dim1) {
                for dim in [dim0, dim1] {
                    *shape.get_mut(dim)? = None;
                }
            }
            Some(shape)
        }),
        ConversionOperation::PermuteForRope(_) => after.to_vec(),
        ConversionOperation::MergeModulelist(merge) => {
            let counts = after.iter().flatten().filter_map(|shape| shape.get(merge.dim).copied().flatten());
            *merged = counts.reduce(usize::max).or(*merged);
            each(&|mut shape| (merge.dim < shape.len()).then(|| shape.remove(merge.dim)).map(|_| shape))
        }
        ConversionOperation::SplitModulelist(split) => {
            each(&|mut shape| (split.dim <= shape.len()).then(|| shape.insert(split.dim, None)).map(|()| shape))
        }
        ConversionOperation::Concatenate(concatenate) => {
            let joined = after.first().cloned().flatten();
            let parts = (0..inputs).map(|part| {
                let mut shape = joined.clone()?;
                let size = shape.get_mut(concatenate.dim)?;
                *size = match &concatenate.parts {
                    Parts::Sizes(sizes) => sizes.get(part).copied(),
                    Parts::Equal => size.and_then(|size| size.checked_div(inputs)),
                    Parts::Unknown => None,
                };
                Some(shape)
            });
            parts.collect()
        }
        ConversionOperation::Chunk(super::operations::Chunk { dim })
        | ConversionOperation::Split(super::operations::Split { dim }) => {
            let size = |shape: &Expected| shape.as_ref().and_then(|shape| shape.get(*dim).copied().flatten());
            let sum = after.iter().map(size).try_fold(0_usize, |sum, size| sum.checked_add(size?));
            let joined = after.iter().flatten().next().cloned().and_then(|mut shape| {
                *shape.get_mut(*dim)? = sum;
                Some(shape)
            });
            vec![joined]
        }
    }
}

/// Carries out `operations` on `streams`; with a list for each of `targets`.
///
/// `head_dim` is the size of a head that the config states, or why it states none. `list` is how many tensors
/// `SplitModulelist` may make.
pub(crate) fn run(
    operations: &[ConversionOperation],
    mut streams: Vec<Stream>,
    expected: &Expectations,
    targets: usize,
    list: usize,
    head_dim: &Result<usize, String>,
) -> Result<Vec<Stream>, StepError> {
    for (number, operation) in operations.iter().enumerate() {
        let failed = |reason: String| StepError::Operation { operation: operation.to_string(), reason };
        streams = match operation {
            ConversionOperation::Concatenate(concatenate) => {
                check_parts(&streams, concatenate.dim, &concatenate.parts).map_err(failed)?;
                let length = streams.first().map_or(0, Vec::len);
                let mut streams: Vec<_> = streams.into_iter().map(Vec::into_iter).collect();
                let joined = (0..length).map(|_| {
                    let items = streams.iter_mut().filter_map(Iterator::next).collect();
                    Assembly::concatenate(items, concatenate.dim).map_err(failed)
                });
                vec![joined.collect::<Result<_, _>>()?]
            }
            ConversionOperation::Chunk(chunk) => {
                let sizes = |shape: &[usize]| {
                    let size = dimension(shape, chunk.dim)?;
                    if !size.is_multiple_of(targets) {
                        return Err(format!(
                            "{size}, dimension {} of {shape:?}, is not {targets} equal parts",
                            chunk.dim
                        ));
                    }
                    Ok(vec![size / targets; targets])
                };
                divide(&streams, chunk.dim, targets, sizes).map_err(failed)?
            }
            ConversionOperation::Split(split) => {
                let wanted: Option<Vec<usize>> = (0..targets)
                    .map(|target| expected.after(number, target)?.get(split.dim).copied().flatten())
                    .collect();
                let sizes = |shape: &[usize]| {
                    let size = dimension(shape, split.dim)?;
                    let wanted = wanted.clone().ok_or("the sizes of its targets are not known")?;
                    if wanted.iter().try_fold(0_usize, |sum, &size| sum.checked_add(size)) != Some(size) {
                        return Err(format!("dimension {} of {shape:?} is not the sum of {wanted:?}", split.dim));
                    }
                    Ok(wanted)
                };
                divide(&streams, split.dim, targets, sizes).map_err(failed)?
            }
            ConversionOperation::MergeModulelist(merge) => {
                let stacked =
                    streams.into_iter().map(|stream| Ok(vec![Assembly::stack(stream, merge.dim).map_err(failed)?]));
                stacked.collect::<Result<_, StepError>>()?
            }
            ConversionOperation::SplitModulelist(split) => {
                let parts = |stream: Stream| {
                    let Some(whole) = stream.first() else {
                        return Err("there is nothing to divide".to_owned());
                    };
                    let size = dimension(&whole.shape, split.dim)?;
                    if size != list {
                        return Err(format!(
                            "dimension {} of {:?} has {size} elements, but the model has {list} in its list",
                            split.dim, whole.shape
                        ));
                    }
                    (0..size).map(|index| whole.take(split.dim, index)).collect()
                };
                streams.into_iter().map(parts).collect::<Result<_, _>>().map_err(failed)?
            }
            ConversionOperation::Transpose(transpose) => {
                let (dim0, dim1) = (transpose.dim0, transpose.dim1);
                let mut swapped = Vec::with_capacity(streams.len());
                for (at, stream) in streams.into_iter().enumerate() {
                    let mut items = Vec::with_capacity(stream.len());
                    for item in stream {
                        let needed = !transpose.if_needed
                            || is_needed(&item.shape, dim0, dim1, expected.after(number, at))
                                .map_err(failed)?
                                .ok_or_else(|| StepError::Ambiguous { dim0, dim1, shape: item.shape.clone() })?;
                        items.push(if needed { item.swap(dim0, dim1).map_err(failed)? } else { item });
                    }
                    swapped.push(items);
                }
                swapped
            }
            ConversionOperation::PermuteForRope(permute) => {
                let head_dim = permute.head_dim.map_or_else(|| head_dim.clone(), Ok).map_err(failed)?;
                let halves = |stream: Stream| stream.into_iter().map(|item| item.halves(head_dim)).collect();
                streams.into_iter().map(halves).collect::<Result<_, _>>().map_err(failed)?
            }
        };
    }
    Ok(streams)
}

fn dimension(shape: &[usize], dim: usize) -> Result<usize, String> {
    shape.get(dim).copied().ok_or_else(|| format!("there is no dimension {dim} in {shape:?}"))
}

/// Whether the parts are as large as it was said, in each tensor of a list.
fn check_parts(streams: &[Stream], dim: usize, parts: &Parts) -> Result<(), String> {
    let length = streams.iter().map(Vec::len).max().unwrap_or_default();
    for item in 0..length {
        let size = |stream: &Stream| stream.get(item).and_then(|item| item.shape.get(dim).copied());
        let Some(found) = streams.iter().map(size).collect::<Option<Vec<_>>>() else {
            // of what cannot be joined at all the joining tells
            continue;
        };
        let expected = match parts {
            Parts::Sizes(sizes) if *sizes != found => format!("{sizes:?}"),
            Parts::Equal if found.iter().any(|size| Some(size) != found.first()) => "equal ones".to_owned(),
            _ => continue,
        };
        let place = if length > 1 { format!(", at {item} in the list") } else { String::new() };
        return Err(format!("the parts have the sizes {found:?} in dimension {dim}{place}, expected {expected}"));
    }
    Ok(())
}

/// Divides the one stream there is into `targets`.
fn divide(
    streams: &[Stream],
    dim: usize,
    targets: usize,
    sizes: impl Fn(&[usize]) -> Result<Vec<usize>, String>,
) -> Result<Vec<Stream>, String> {
    let mut parts = vec![Stream::new(); targets];
    for item in streams.iter().flatten() {
        let mut start = 0;
        for (part, size) in parts.iter_mut().zip(sizes(&item.shape)?) {
            part.push(item.slice(dim, start..start + size)?);
            start += size;
        }
    }
    Ok(parts)
}

/// Whether a tensor has to be transposed to be as expected; `None` where that cannot be told.
fn is_needed(
    shape: &[usize],
    dim0: usize,
    dim1: usize,
    expected: Option<&[Option<usize>]>,
) -> Result<Option<bool>, String> {
    let mut swapped = shape.to_vec();
    if dim0.max(dim1) >= shape.len() {
        return Err(format!("there is no dimension {} in {shape:?}", dim0.max(dim1)));
    }
    swapped.swap(dim0, dim1);
    let fits = |shape: &[usize]| {
        expected.is_none_or(|expected| {
            expected.len() == shape.len()
                && expected
                    .iter()
                    .zip(shape)
                    .all(|(expected, found)| expected.is_none_or(|expected| expected == *found))
        })
    };
    Ok(match (fits(shape), fits(&swapped)) {
        (true, true) => None,
        (true, false) => Some(false),
        // What fits neither way is said of the result.
        (false, _) => Some(true),
    })
}
