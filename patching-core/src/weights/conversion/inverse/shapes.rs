//! The shapes that a converter's sources must have had.

use std::collections::BTreeMap;

use crate::weights::conversion::mapping::Converter;
use crate::weights::conversion::operations::{Chunk, Concatenate, ConversionOperation, Parts, Split};
use crate::weights::conversion::steps::streams;

/// Why shapes are not known.
pub(super) enum Unknown {
    /// Nothing tells the sizes of what was joined, or what was said of them is wrong.
    Sizes(String),
    /// An operation cannot have made such tensors.
    Operation(String),
}

/// Shapes by pattern and index.
type Shapes = Vec<Vec<Vec<usize>>>;

/// The shapes of the sources, given those of the targets; `key` names a source.
///
/// Sizes that were joined come from the rule, else from the model without patches; they are never guessed.
pub(super) fn source_shapes<'a>(
    converter: &Converter,
    targets: Shapes,
    key: &dyn Fn(usize, usize) -> String,
    unpatched: &dyn Fn() -> &'a BTreeMap<String, Vec<usize>>,
) -> Result<Shapes, Unknown> {
    let unknown = converter.operations.iter().any(|operation| {
        matches!(operation, ConversionOperation::Concatenate(Concatenate { parts: Parts::Unknown, .. }))
    });
    // one part joined with none needs no sizes
    if unknown && converter.sources.len() > 1 {
        let known = unpatched();
        let shapes = (0..converter.sources.len()).map(|source| {
            let list = (0..).map_while(|index| known.get(&key(source, index)).cloned());
            let list: Vec<_> = if converter.merges { list.collect() } else { list.take(1).collect() };
            if list.is_empty() {
                return Err(Unknown::Sizes(format!(
                    "the sizes of its parts are not known, and the model without patches has no `{}`",
                    key(source, 0)
                )));
            }
            Ok(list)
        });
        return shapes.collect();
    }
    let mut shapes = targets;
    let counts = streams(&converter.operations, converter.sources.len(), converter.targets.len());
    for (operation, inputs) in converter.operations.iter().zip(counts).rev() {
        shapes = before(operation, shapes, inputs)?;
    }
    Ok(shapes)
}

fn before(operation: &ConversionOperation, mut shapes: Shapes, inputs: usize) -> Result<Shapes, Unknown> {
    let outside = |dim: usize, shape: &[usize]| {
        Unknown::Operation(format!("{operation}: there is no dimension {dim} in {shape:?}"))
    };
    let unequal = |reason: String| Unknown::Sizes(format!("{operation}: {reason}"));
    match operation {
        ConversionOperation::PermuteForRope(_) => {}
        ConversionOperation::Transpose(transpose) => {
            for shape in shapes.iter_mut().flatten() {
                let (dim0, dim1) = (transpose.dim0, transpose.dim1);
                if dim0.max(dim1) >= shape.len() {
                    return Err(outside(dim0.max(dim1), shape));
                }
                shape.swap(dim0, dim1);
            }
        }
        ConversionOperation::MergeModulelist(merge) => {
            for stream in &mut shapes {
                let mut list = Vec::new();
                for mut shape in std::mem::take(stream) {
                    if merge.dim >= shape.len() {
                        return Err(outside(merge.dim, &shape));
                    }
                    let length = shape.remove(merge.dim);
                    list.extend(std::iter::repeat_n(shape, length));
                }
                *stream = list;
            }
        }
        ConversionOperation::SplitModulelist(split) => {
            for stream in &mut shapes {
                let length = stream.len();
                stream.truncate(1);
                for shape in stream {
                    if split.dim > shape.len() {
                        return Err(outside(split.dim, shape));
                    }
                    shape.insert(split.dim, length);
                }
            }
        }
        ConversionOperation::Chunk(Chunk { dim }) | ConversionOperation::Split(Split { dim }) => {
            let mut joined = shapes.first().cloned().unwrap_or_default();
            for (index, shape) in joined.iter_mut().enumerate() {
                let size = |stream: &Vec<Vec<usize>>| stream.get(index).and_then(|shape| shape.get(*dim).copied());
                let sum = shapes.iter().map(size).try_fold(0_usize, |sum, size| sum.checked_add(size?));
                match (shape.get_mut(*dim), sum) {
                    (Some(size), Some(sum)) => *size = sum,
                    _ => return Err(outside(*dim, shape)),
                }
            }
            shapes = vec![joined];
        }
        ConversionOperation::Concatenate(Concatenate { dim, parts }) => {
            let joined = shapes.first().cloned().unwrap_or_default();
            let mut divided = vec![Vec::with_capacity(joined.len()); inputs];
            for shape in joined {
                let Some(&size) = shape.get(*dim) else {
                    return Err(outside(*dim, &shape));
                };
                let sizes = match parts {
                    Parts::Sizes(sizes) => sizes.clone(),
                    Parts::Equal if size.is_multiple_of(inputs) => vec![size / inputs; inputs],
                    Parts::Equal => return Err(unequal(format!("{size} is not {inputs} equal parts"))),
                    Parts::Unknown => vec![size],
                };
                if sizes.iter().try_fold(0_usize, |sum, &size| sum.checked_add(size)) != Some(size) {
                    return Err(unequal(format!("{size}, dimension {dim} of {shape:?}, is not the sum of {sizes:?}")));
                }
                for (part, size) in divided.iter_mut().zip(sizes) {
                    let mut shape = shape.clone();
                    if let Some(own) = shape.get_mut(*dim) {
                        *own = size;
                    }
                    part.push(shape);
                }
            }
            shapes = divided;
        }
    }
    Ok(shapes)
}
