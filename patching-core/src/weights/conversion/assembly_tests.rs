//! Each operation against one that is written element by element.

use proptest::prelude::*;

use super::super::scatter::{Copying, strides};
use super::*;

/// Elements with their shape.
#[derive(Debug, Clone, PartialEq)]
struct Dense(Vec<usize>, Vec<u16>);

impl Dense {
    fn numbered(shape: &[usize], from: u16) -> Self {
        let count = count(shape).expect("small");
        Self(shape.to_vec(), (0..count as u16).map(|number| from + number).collect())
    }

    fn at(&self, index: &[usize]) -> u16 {
        self.1[index.iter().zip(strides(&self.0)).map(|(index, stride)| index * stride).sum::<usize>()]
    }

    /// The tensor of `shape` whose elements are `value` of their coordinates.
    fn of(shape: Vec<usize>, value: impl Fn(&[usize]) -> u16) -> Self {
        let mut index = vec![0; shape.len()];
        let elements = (0..count(&shape).expect("small")).map(|_| {
            let element = value(&index);
            for dim in (0..shape.len()).rev() {
                index[dim] += 1;
                if index[dim] < shape[dim] {
                    break;
                }
                index[dim] = 0;
            }
            element
        });
        let elements = elements.collect();
        Self(shape, elements)
    }

    fn swap(&self, dim0: usize, dim1: usize) -> Self {
        let mut shape = self.0.clone();
        shape.swap(dim0, dim1);
        Self::of(shape, |index| {
            let mut index = index.to_vec();
            index.swap(dim0, dim1);
            self.at(&index)
        })
    }

    fn slice(&self, dim: usize, range: Range<usize>) -> Self {
        let mut shape = self.0.clone();
        shape[dim] = range.len();
        Self::of(shape, |index| {
            let mut index = index.to_vec();
            index[dim] += range.start;
            self.at(&index)
        })
    }

    fn concatenate(items: &[Self], dim: usize) -> Self {
        let mut shape = items[0].0.clone();
        shape[dim] = items.iter().map(|item| item.0[dim]).sum();
        Self::of(shape, |index| {
            let mut index = index.to_vec();
            for item in items {
                if index[dim] < item.0[dim] {
                    return item.at(&index);
                }
                index[dim] -= item.0[dim];
            }
            unreachable!("within the sum")
        })
    }

    fn stack(items: &[Self], dim: usize) -> Self {
        let mut shape = items[0].0.clone();
        shape.insert(dim, items.len());
        Self::of(shape, |index| {
            let mut index = index.to_vec();
            let item = index.remove(dim);
            items[item].at(&index)
        })
    }

    fn halves(&self, head_dim: usize) -> Self {
        Self::of(self.0.clone(), |index| {
            let mut index = index.to_vec();
            let (head, row) = (index[0] / head_dim, index[0] % head_dim);
            index[0] = head * head_dim + 2 * (row % (head_dim / 2)) + row / (head_dim / 2);
            self.at(&index)
        })
    }
}

/// Carries out `assembly`; every element must be written exactly once.
fn carried_out(assembly: &Assembly, sources: &[Dense]) -> Dense {
    let elements = count(&assembly.shape).expect("small");
    assert_eq!(assembly.covered(), elements, "{assembly:?}");
    let mut bytes = vec![0xff; elements * 2];
    for piece in &assembly.pieces {
        let source = &sources[piece.source];
        let origin = vec![0; source.0.len()];
        let copying = Copying::new(piece, &strides(&source.0), &origin, &strides(&assembly.shape));
        copying.copy(2, bytemuck::cast_slice(&source.1), &mut bytes);
    }
    let elements = bytes.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    Dense(assembly.shape.clone(), elements)
}

/// A tensor and how it was made.
type Made = (Assembly, Dense);

fn check(made: &[Made], sources: &[Dense]) {
    for (assembly, dense) in made {
        assert_eq!(carried_out(assembly, sources), *dense);
    }
    // and back
    let targets: Vec<_> = made.iter().map(|(_, dense)| dense.clone()).collect();
    for (number, source) in sources.iter().enumerate() {
        let back = Assembly::backwards(made.iter().map(|(assembly, _)| assembly), number, source.0.clone());
        assert_eq!(carried_out(&back, &targets), *source);
    }
}

fn whole(sources: &[Dense]) -> Vec<Made> {
    sources.iter().enumerate().map(|(at, dense)| (Assembly::whole(at, dense.0.clone()), dense.clone())).collect()
}

/// One random step: what is not possible changes nothing.
fn step(made: Vec<Made>, kind: usize, dim: usize, size: usize) -> Vec<Made> {
    let rank = made[0].0.shape.len();
    match kind {
        0 if rank > 1 => made
            .into_iter()
            .map(|(assembly, dense)| {
                let (dim0, dim1) = (dim % rank, (dim + 1) % rank);
                (assembly.swap(dim0, dim1).expect("in range"), dense.swap(dim0, dim1))
            })
            .collect(),
        1 if rank > 0 => {
            let dim = dim % rank;
            let items: Vec<_> = made.iter().map(|(assembly, _)| assembly.clone()).collect();
            let dense: Vec<_> = made.iter().map(|(_, dense)| dense.clone()).collect();
            match Assembly::concatenate(items, dim) {
                Ok(assembly) => vec![(assembly, Dense::concatenate(&dense, dim))],
                Err(_) => made,
            }
        }
        2 if rank < 4 => {
            let dim = dim % (rank + 1);
            let items: Vec<_> = made.iter().map(|(assembly, _)| assembly.clone()).collect();
            let dense: Vec<_> = made.iter().map(|(_, dense)| dense.clone()).collect();
            match Assembly::stack(items, dim) {
                Ok(assembly) => vec![(assembly, Dense::stack(&dense, dim))],
                Err(_) => made,
            }
        }
        3 if rank > 0 => {
            let dim = dim % rank;
            let split = |(assembly, dense): Made| {
                let whole = assembly.shape[dim];
                let at = size.min(whole);
                [0..at, at..whole]
                    .map(|range| (assembly.slice(dim, range.clone()).expect("in range"), dense.slice(dim, range)))
            };
            made.into_iter().flat_map(split).collect()
        }
        4 if rank > 1 => {
            let dim = dim % rank;
            let take = |(assembly, dense): Made| {
                let parts = (0..assembly.shape[dim]).map(|index| {
                    let mut part = dense.slice(dim, index..index + 1);
                    part.0.remove(dim);
                    (assembly.take(dim, index).expect("in range"), part)
                });
                parts.collect::<Vec<_>>()
            };
            if made.iter().all(|(assembly, _)| assembly.shape[dim] > 0) {
                made.into_iter().flat_map(take).collect()
            } else {
                made
            }
        }
        5 if rank > 0 => {
            let head = 2 * size.max(1);
            let halves = |(assembly, dense): Made| match assembly.clone().halves(head) {
                Ok(changed) => (changed, dense.halves(head)),
                Err(_) => (assembly, dense),
            };
            made.into_iter().map(halves).collect()
        }
        _ => made,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn chains_there_and_back(
        shape in prop::collection::vec(1_usize..9, 0..4),
        others in prop::collection::vec(0_usize..4, 0..3),
        steps in prop::collection::vec((0_usize..6, 0_usize..4, 0_usize..4), 0..7),
    ) {
        let mut sources = vec![Dense::numbered(&shape, 0)];
        for (number, grow) in others.iter().enumerate() {
            let mut shape = shape.clone();
            if let Some(size) = shape.last_mut() {
                *size = (*size + grow) % 9;
            }
            sources.push(Dense::numbered(&shape, 5000 * (number as u16 + 1)));
        }
        let mut made = whole(&sources);
        for (kind, dim, size) in steps {
            made = step(made, kind, dim, size);
        }
        check(&made, &sources);
    }
}

#[test]
fn unequal_parts_and_heads() {
    let sources = [Dense::numbered(&[8, 3], 0), Dense::numbered(&[4, 3], 100), Dense::numbered(&[4, 3], 200)];
    let mut made = whole(&sources);
    for (assembly, dense) in made.iter_mut().take(2) {
        *assembly = assembly.clone().halves(4).expect("two heads and one");
        *dense = dense.halves(4);
    }
    check(&made, &sources);
    let made = step(made, 1, 0, 0);
    assert_eq!(made[0].0.shape, [16, 3]);
    assert_eq!(made[0].1.1[..6], [0, 1, 2, 6, 7, 8]);
    check(&made, &sources);
}

#[test]
fn adjacent_elements_are_one_run() {
    let joined = Assembly::concatenate(vec![Assembly::whole(0, vec![2, 3]), Assembly::whole(1, vec![1, 3])], 0);
    let joined = joined.expect("they fit");
    let runs: Vec<_> = joined
        .pieces
        .iter()
        .map(|piece| Copying::new(piece, &[3, 1], &[0, 0], &strides(&joined.shape)).single())
        .collect();
    assert_eq!(runs, [Some((0, 0, 6)), Some((0, 6, 3))]);
    assert_eq!(Assembly::whole(1, vec![4, 2]).is_whole(), Some(1));
    assert_eq!(joined.is_whole(), None);
}

#[test]
fn what_does_not_fit_is_said() {
    let whole = |shape: &[usize]| Assembly::whole(0, shape.to_vec());
    let error = |result: Result<Assembly, String>| result.expect_err("it does not fit");
    assert_eq!(error(whole(&[2]).swap(0, 1)), "there is no dimension 1 in [2]");
    assert_eq!(error(Assembly::stack(vec![whole(&[2]), whole(&[3])], 0)), "the shapes [2] and [3] differ");
    assert_eq!(error(Assembly::stack(vec![whole(&[2])], 2)), "there is no dimension 2 in [2]");
    let joined = Assembly::concatenate(vec![whole(&[2, 3]), whole(&[2, 4])], 0);
    assert_eq!(error(joined), "the shapes [2, 3] and [2, 4] differ in another dimension than 0");
    assert_eq!(error(whole(&[6]).halves(4)), "6 rows are no heads of 4 rows");
    assert_eq!(error(whole(&[6]).slice(0, 4..7)), "4..7 is not within dimension 0 of [6]");
    let huge = Assembly::concatenate(vec![Assembly::outline(vec![usize::MAX]), Assembly::outline(vec![1])], 0);
    assert_eq!(error(huge), "the result would be too large to exist");
}
