//! Copying the elements of assemblies.

use super::assembly::Piece;

/// Elements that a transposing copy does at a time in each of two dimensions, so that both sides stay in the cache.
const TILE: usize = 32;

/// One of the nested loops that copy a box: counts and distances in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Loop {
    count: usize,
    from: usize,
    to: usize,
}

/// A box as a copy between two buffers: the outermost loop first, those over adjacent elements merged.
#[derive(Debug, Clone)]
pub(crate) struct Copying {
    loops: Vec<Loop>,
    from: usize,
    to: usize,
    /// Elements that follow each other on both sides.
    run: usize,
}

/// How far apart in memory the elements of each dimension are, in elements.
pub(crate) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    let mut stride = 1_usize;
    for (own, size) in strides.iter_mut().zip(shape).rev() {
        *own = stride;
        stride = stride.saturating_mul(*size);
    }
    strides
}

impl Copying {
    /// How to copy `piece` from a source with elements `source` apart, of which `offset` has the coordinates `origin`,
    /// to a result with elements `result` apart.
    pub(crate) fn new(piece: &Piece, source: &[usize], origin: &[usize], result: &[usize]) -> Self {
        let mut from = 0;
        for ((start, origin), stride) in piece.start.iter().zip(origin).zip(source) {
            from += (start - origin) * stride;
        }
        let mut to = 0;
        let mut loops = Vec::<Loop>::new();
        for (axis, stride) in piece.axes.iter().zip(result) {
            to += axis.place * stride;
            if axis.size == 1 {
                continue;
            }
            let source = axis.from.and_then(|from| source.get(from)).copied().unwrap_or_default();
            let next = Loop { count: axis.size, from: source * axis.stride, to: stride * axis.step };
            match loops.last_mut() {
                Some(last) if last.from == next.from * next.count && last.to == next.to * next.count => {
                    *last = Loop { count: last.count * next.count, ..next };
                }
                _ => loops.push(next),
            }
        }
        let run = match loops.last() {
            Some(Loop { count, from: 1, to: 1 }) => *count,
            _ => 1,
        };
        if run > 1 {
            loops.pop();
        }
        Self { loops, from, to, run }
    }

    /// The same, from a buffer that begins at the source's element number `first`.
    pub(crate) fn after(&self, first: usize) -> Self {
        Self { from: self.from - first, ..self.clone() }
    }

    /// Where it goes from and to if it is a single run: the first elements, and the number of them.
    pub(crate) fn single(&self) -> Option<(usize, usize, usize)> {
        self.loops.is_empty().then_some((self.from, self.to, self.run))
    }

    /// Copies elements of `size` bytes. The buffers are as long as the box needs.
    pub(crate) fn copy(&self, size: usize, source: &[u8], result: &mut [u8]) {
        match (size, self.run) {
            (1, 1) => self.elements::<1>(source, result),
            (2, 1) => self.elements::<2>(source, result),
            (4, 1) => self.elements::<4>(source, result),
            (8, 1) => self.elements::<8>(source, result),
            _ => nested(&self.loops, self.from, self.to, &mut |from, to| {
                let length = self.run * size;
                let source = source.get(from * size..).and_then(|source| source.get(..length));
                let result = result.get_mut(to * size..).and_then(|result| result.get_mut(..length));
                if let (Some(source), Some(result)) = (source, result) {
                    result.copy_from_slice(source);
                }
            }),
        }
    }

    fn elements<const SIZE: usize>(&self, source: &[u8], result: &mut [u8]) {
        let (source, _) = source.as_chunks::<SIZE>();
        let (result, _) = result.as_chunks_mut::<SIZE>();
        let mut put = |from: usize, to: usize| {
            if let (Some(source), Some(result)) = (source.get(from), result.get_mut(to)) {
                *result = *source;
            }
        };
        let [outer @ .., first, second] = self.loops.as_slice() else {
            return nested(&self.loops, self.from, self.to, &mut put);
        };
        nested(outer, self.from, self.to, &mut |from, to| {
            for rows in (0..first.count).step_by(TILE) {
                for columns in (0..second.count).step_by(TILE) {
                    for row in rows..(rows + TILE).min(first.count) {
                        for column in columns..(columns + TILE).min(second.count) {
                            put(
                                from + row * first.from + column * second.from,
                                to + row * first.to + column * second.to,
                            );
                        }
                    }
                }
            }
        });
    }
}

/// Calls `body` for every turn of the loops, with both places.
fn nested(loops: &[Loop], from: usize, to: usize, body: &mut impl FnMut(usize, usize)) {
    let Some((outer, inner)) = loops.split_first() else {
        return body(from, to);
    };
    for turn in 0..outer.count {
        nested(inner, from + turn * outer.from, to + turn * outer.to, body);
    }
}
