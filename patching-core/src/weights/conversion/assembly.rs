//! Where each element of a tensor comes from, without touching any of them.

use std::ops::Range;

/// A tensor as boxes of elements of other tensors, its sources.
///
/// Every operation maps assemblies to assemblies, so a chain of them is carried out in one pass over the elements, and
/// it can be read backwards: each element of a source goes to one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assembly {
    pub(crate) shape: Vec<usize>,
    pub(crate) pieces: Vec<Piece>,
}

/// A box of elements of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) source: usize,
    /// The source's element that is the first of the box, a coordinate for each dimension of the source.
    pub(crate) start: Vec<usize>,
    /// How the box lies, for each dimension of the result.
    pub(crate) axes: Vec<Axis>,
}

/// How a box lies in one dimension of the result: `size` elements from `place` on, `step` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) place: usize,
    pub(crate) size: usize,
    pub(crate) step: usize,
    /// The dimension of the source that it runs along, if any; without one it has one element.
    pub(crate) from: Option<usize>,
    /// How far apart the elements are in the source.
    pub(crate) stride: usize,
}

impl Axis {
    fn single(place: usize) -> Self {
        Self { place, size: 1, step: 1, from: None, stride: 1 }
    }
}

/// The number of elements, where there is one.
pub(crate) fn count(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size))
}

impl Assembly {
    /// A shape without elements: enough to see whether operations fit.
    pub(crate) fn outline(shape: Vec<usize>) -> Self {
        Self { shape, pieces: Vec::new() }
    }

    /// All of one source.
    pub(crate) fn whole(source: usize, shape: Vec<usize>) -> Self {
        if shape.contains(&0) {
            return Self::outline(shape);
        }
        let axes =
            shape.iter().enumerate().map(|(dim, &size)| Axis { place: 0, size, step: 1, from: Some(dim), stride: 1 });
        let piece = Piece { source, start: vec![0; shape.len()], axes: axes.collect() };
        Self { shape, pieces: vec![piece] }
    }

    /// Whether it is one source, unchanged: which one.
    pub(crate) fn is_whole(&self) -> Option<usize> {
        let [piece] = self.pieces.as_slice() else {
            return None;
        };
        let same = *self == Self::whole(piece.source, self.shape.clone());
        same.then_some(piece.source)
    }

    /// Stacks tensors of one shape along a new dimension.
    pub(crate) fn stack(items: Vec<Self>, dim: usize) -> Result<Self, String> {
        let Some(first) = items.first() else {
            return Err("there is nothing to stack".to_owned());
        };
        let mut shape = first.shape.clone();
        if dim > shape.len() {
            return Err(out_of_range(dim, &shape));
        }
        if let Some(other) = items.iter().find(|item| item.shape != shape) {
            return Err(format!("the shapes {shape:?} and {:?} differ", other.shape));
        }
        shape.insert(dim, items.len());
        let mut pieces = Vec::new();
        for (place, item) in items.into_iter().enumerate() {
            pieces.extend(item.pieces.into_iter().map(|mut piece| {
                piece.axes.insert(dim, Axis::single(place));
                piece
            }));
        }
        Ok(Self { shape, pieces })
    }

    /// Joins tensors along a dimension.
    pub(crate) fn concatenate(items: Vec<Self>, dim: usize) -> Result<Self, String> {
        let Some(first) = items.first() else {
            return Err("there is nothing to join".to_owned());
        };
        let mut shape = first.shape.clone();
        if dim >= shape.len() {
            return Err(out_of_range(dim, &shape));
        }
        let rest = |shape: &[usize]| {
            let mut rest = shape.to_vec();
            (dim < rest.len()).then(|| rest.remove(dim)).map(|_| rest)
        };
        let expected = rest(&shape);
        if let Some(other) = items.iter().find(|item| rest(&item.shape) != expected) {
            return Err(format!("the shapes {shape:?} and {:?} differ in another dimension than {dim}", other.shape));
        }
        let mut total = 0_usize;
        let mut pieces = Vec::new();
        for item in items {
            let size = item.shape.get(dim).copied().unwrap_or_default();
            pieces.extend(item.pieces.into_iter().map(|mut piece| {
                if let Some(axis) = piece.axes.get_mut(dim) {
                    axis.place += total;
                }
                piece
            }));
            total = total.checked_add(size).ok_or("the result would be too large to exist")?;
        }
        if let Some(joined) = shape.get_mut(dim) {
            *joined = total;
        }
        Ok(Self { shape, pieces })
    }

    /// The part `range` of a dimension.
    pub(crate) fn slice(&self, dim: usize, range: Range<usize>) -> Result<Self, String> {
        let mut shape = self.shape.clone();
        let Some(size) = shape.get_mut(dim) else {
            return Err(out_of_range(dim, &shape));
        };
        if range.end > *size || range.start > range.end {
            return Err(format!("{range:?} is not within dimension {dim} of {:?}", self.shape));
        }
        *size = range.end - range.start;
        let pieces = self.pieces.iter().filter_map(|piece| piece.slice(dim, &range)).collect();
        Ok(Self { shape, pieces })
    }

    /// One element of a dimension, which goes away.
    pub(crate) fn take(&self, dim: usize, index: usize) -> Result<Self, String> {
        let mut part = self.slice(dim, index..index.saturating_add(1))?;
        part.shape.remove(dim);
        for piece in &mut part.pieces {
            piece.axes.remove(dim);
        }
        Ok(part)
    }

    /// Exchanges two dimensions.
    pub(crate) fn swap(mut self, dim0: usize, dim1: usize) -> Result<Self, String> {
        if dim0.max(dim1) >= self.shape.len() {
            return Err(out_of_range(dim0.max(dim1), &self.shape));
        }
        self.shape.swap(dim0, dim1);
        for piece in &mut self.pieces {
            piece.axes.swap(dim0, dim1);
        }
        Ok(self)
    }

    /// Reorders the rows of each head of `head_dim` rows: pairs side by side become two halves.
    pub(crate) fn halves(self, head_dim: usize) -> Result<Self, String> {
        let Some(&rows) = self.shape.first() else {
            return Err("a tensor without dimensions has no rows".to_owned());
        };
        if head_dim == 0 || !head_dim.is_multiple_of(2) || !rows.is_multiple_of(head_dim) {
            return Err(format!("{rows} rows are no heads of {head_dim} rows"));
        }
        let half = head_dim / 2;
        let mut pieces = Vec::new();
        for piece in self.pieces.iter().flat_map(Piece::with_adjacent_rows) {
            let Some(&Axis { place, size, .. }) = piece.axes.first() else {
                continue;
            };
            for head in place / head_dim..(place + size).div_ceil(head_dim) {
                let begin = head * head_dim;
                let rows = place.max(begin)..(place + size).min(begin + head_dim);
                for parity in 0..2 {
                    let first = rows.start + usize::from((rows.start - begin) % 2 != parity);
                    if first >= rows.end {
                        continue;
                    }
                    let mut part = piece.clone();
                    part.restrict(0, first - place, (rows.end - first).div_ceil(2), 2);
                    if let Some(axis) = part.axes.first_mut() {
                        axis.place = begin + parity * half + (first - begin) / 2;
                        axis.step = 1;
                    }
                    pieces.push(part);
                }
            }
        }
        Ok(Self { shape: self.shape, pieces })
    }

    /// The source `source` of shape `shape`, read backwards out of the tensors that were made of it: those are the
    /// sources of the result, numbered as they come.
    pub(crate) fn backwards<'a>(targets: impl Iterator<Item = &'a Self>, source: usize, shape: Vec<usize>) -> Self {
        let mut pieces = Vec::new();
        for (target, assembly) in targets.enumerate() {
            pieces.extend(
                assembly.pieces.iter().filter(|piece| piece.source == source).map(|piece| piece.backwards(target)),
            );
        }
        Self { shape, pieces }
    }

    /// How many elements its boxes have.
    pub(crate) fn covered(&self) -> usize {
        self.pieces.iter().map(|piece| piece.axes.iter().map(|axis| axis.size).product::<usize>()).sum()
    }
}

impl Piece {
    /// Keeps `size` elements of a dimension, from the one number `first` on, `every` apart.
    fn restrict(&mut self, dim: usize, first: usize, size: usize, every: usize) {
        let Some(axis) = self.axes.get_mut(dim) else {
            return;
        };
        if let Some(start) = axis.from.and_then(|from| self.start.get_mut(from)) {
            *start += first * axis.stride;
        }
        axis.place += first * axis.step;
        axis.size = size;
        axis.step *= every;
        axis.stride *= every;
    }

    fn slice(&self, dim: usize, range: &Range<usize>) -> Option<Self> {
        let axis = self.axes.get(dim)?;
        let before = |end: usize| end.saturating_sub(axis.place).div_ceil(axis.step).min(axis.size);
        let (first, last) = (before(range.start), before(range.end));
        if first >= last {
            return None;
        }
        let mut part = self.clone();
        part.restrict(dim, first, last - first, 1);
        if let Some(axis) = part.axes.get_mut(dim) {
            axis.place -= range.start;
        }
        Some(part)
    }

    /// The same elements in boxes whose rows follow each other.
    fn with_adjacent_rows(&self) -> Vec<Self> {
        match self.axes.first() {
            Some(axis) if axis.step != 1 && axis.size > 1 => {
                let rows = (0..axis.size).map(|row| {
                    let mut part = self.clone();
                    part.restrict(0, row, 1, 1);
                    if let Some(axis) = part.axes.first_mut() {
                        axis.step = 1;
                    }
                    part
                });
                rows.collect()
            }
            _ => vec![self.clone()],
        }
    }

    /// The box that the elements of the source take, in a dimension of the source.
    pub(crate) fn extent(&self, source_dim: usize) -> Range<usize> {
        let start = self.start.get(source_dim).copied().unwrap_or_default();
        let along = self.axes.iter().find(|axis| axis.from == Some(source_dim));
        start..start + 1 + along.map_or(0, |axis| (axis.size - 1) * axis.stride)
    }

    fn backwards(&self, target: usize) -> Self {
        let axes = self.start.iter().enumerate().map(|(dim, &place)| {
            let along = self.axes.iter().enumerate().find(|(_, axis)| axis.from == Some(dim));
            match along {
                Some((from, axis)) => {
                    Axis { place, size: axis.size, step: axis.stride, from: Some(from), stride: axis.step }
                }
                None => Axis::single(place),
            }
        });
        Self { source: target, axes: axes.collect(), start: self.axes.iter().map(|axis| axis.place).collect() }
    }
}

fn out_of_range(dim: usize, shape: &[usize]) -> String {
    format!("there is no dimension {dim} in {shape:?}")
}

#[cfg(test)]
#[path = "assembly_tests.rs"]
mod tests;
