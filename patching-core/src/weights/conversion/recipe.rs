//! Reading what an assembly says, straight into its place.

use burn::tensor::{Bytes, DType, TensorData};
use std::panic::resume_unwind;

use super::assembly::{Assembly, count};
use super::scatter::{Copying, strides};
use crate::weights::error::ReadError;
use crate::weights::reader::{Checkpoint, aligned};

/// Fewer bytes are read by one thread.
const PARALLEL: usize = 1 << 20;
/// More would wait for the memory.
const MOST_THREADS: usize = 8;

/// A tensor as it is made of those of a checkpoint.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    /// Keys of the checkpoint.
    pub(crate) sources: Vec<String>,
    /// How they are put together; `None` where it is one of them as it is.
    pub(crate) assembly: Option<Assembly>,
    pub(crate) shape: Vec<usize>,
    /// The name of the element type in the file.
    pub(crate) dtype_name: String,
    /// Burn's counterpart of it.
    pub(crate) dtype: Option<DType>,
}

impl Recipe {
    /// One tensor of the checkpoint.
    pub(crate) fn plain(key: &str, checkpoint: &Checkpoint) -> Result<Self, ReadError> {
        let stored = checkpoint.get(key).ok_or_else(|| ReadError::NoTensor { key: key.to_owned() })?;
        Ok(Self {
            sources: vec![key.to_owned()],
            assembly: None,
            shape: stored.shape().to_vec(),
            dtype_name: stored.dtype_name(),
            dtype: stored.dtype(),
        })
    }

    /// Whether it has to be put together.
    pub(crate) fn is_joined(&self) -> bool {
        self.assembly.as_ref().is_some_and(|assembly| assembly.pieces.len() > 1)
    }

    /// The first of its sources, for messages.
    pub(crate) fn name(&self) -> &str {
        self.sources.first().map_or("", String::as_str)
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self, checkpoint: &Checkpoint) -> u64 {
        match (&self.assembly, self.dtype) {
            (Some(_), Some(dtype)) => (count(&self.shape).unwrap_or_default() * dtype.size()) as u64,
            _ => checkpoint.get(self.name()).map_or(0, |stored| stored.len()),
        }
    }

    /// Reads it. At most one source is in memory besides the result, and none where elements that follow each other in
    /// the file do so in the result.
    pub(crate) fn read(&self, checkpoint: &Checkpoint) -> Result<TensorData, ReadError> {
        let Some(assembly) = &self.assembly else {
            return checkpoint.read(self.name());
        };
        let unsupported =
            || ReadError::UnsupportedDtype { key: self.name().to_owned(), dtype: self.dtype_name.clone() };
        let dtype = self.dtype.ok_or_else(unsupported)?;
        let elements = count(&assembly.shape).ok_or_else(unsupported)?;
        let bytes = self.bytes_of(assembly, elements, dtype, checkpoint)?;
        TensorData::try_from_bytes(bytes, assembly.shape.clone(), dtype).map_err(|_| unsupported())
    }

    fn bytes_of(
        &self,
        assembly: &Assembly,
        elements: usize,
        dtype: DType,
        checkpoint: &Checkpoint,
    ) -> Result<Bytes, ReadError> {
        let result = strides(&assembly.shape);
        let mut copies = Vec::with_capacity(assembly.pieces.len());
        for piece in &assembly.pieces {
            let key = self.sources.get(piece.source).map_or("", String::as_str);
            let stored = checkpoint.get(key).ok_or_else(|| ReadError::NoTensor { key: key.to_owned() })?;
            let distances = strides(stored.shape());
            let first = piece.start.iter().zip(&distances).map(|(start, distance)| start * distance).sum::<usize>();
            let last: usize =
                distances.iter().enumerate().map(|(dim, distance)| (piece.extent(dim).end - 1) * distance).sum();
            let copying = Copying::new(piece, &distances, &vec![0; distances.len()], &result);
            copies.push(Copy { key, source: piece.source, copying, span: first..last + 1 });
        }
        if let [copy] = copies.as_slice()
            && let Some((from, 0, run)) = copy.copying.single()
            && run == elements
        {
            return checkpoint.read_elements(copy.key, from..from + run);
        }
        aligned(dtype.size(), elements * dtype.size(), |buffer| match in_runs(&copies, elements) {
            Some(runs) => read_runs(&runs, dtype, checkpoint, buffer),
            None => read_sources(&mut copies, dtype, checkpoint, buffer),
        })
    }
}

/// A piece to be copied.
struct Copy<'a> {
    key: &'a str,
    source: usize,
    copying: Copying,
    /// The elements of the source that it lies within.
    span: std::ops::Range<usize>,
}

/// Elements that follow each other on both sides.
struct Run<'a> {
    key: &'a str,
    from: usize,
    to: usize,
    length: usize,
}

/// The copies in the order of the result, if each is a single run.
fn in_runs<'a>(copies: &[Copy<'a>], elements: usize) -> Option<Vec<Run<'a>>> {
    let run = |copy: &Copy<'a>| {
        let (from, to, length) = copy.copying.single()?;
        Some(Run { key: copy.key, from, to, length })
    };
    let mut runs = copies.iter().map(run).collect::<Option<Vec<_>>>()?;
    runs.sort_by_key(|run| run.to);
    let end = runs.iter().try_fold(0, |end, run| (run.to == end).then(|| end + run.length));
    (end == Some(elements)).then_some(runs)
}

fn read_runs(runs: &[Run<'_>], dtype: DType, checkpoint: &Checkpoint, buffer: &mut [u8]) -> Result<(), ReadError> {
    let total = buffer.len();
    let mut rest = buffer;
    let mut jobs = Vec::with_capacity(runs.len());
    for run in runs {
        let (part, after) = rest.split_at_mut((run.length * dtype.size()).min(rest.len()));
        jobs.push((run, part));
        rest = after;
    }
    let read = |(run, part): &mut (&Run<'_>, &mut [u8])| checkpoint.read_into(run.key, run.from, part);
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get().min(MOST_THREADS));
    if total < PARALLEL || jobs.len() < 2 || threads < 2 {
        return jobs.iter_mut().try_for_each(read);
    }
    // Threads of its own, not those of a pool: a pool's would take up other work while they wait, which may want the
    // parameter that is being made.
    let share = jobs.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let parts: Vec<_> =
            jobs.chunks_mut(share).map(|jobs| scope.spawn(|| jobs.iter_mut().try_for_each(read))).collect();
        parts.into_iter().try_for_each(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Copies out of one source after the other.
fn read_sources(
    copies: &mut [Copy<'_>],
    dtype: DType,
    checkpoint: &Checkpoint,
    buffer: &mut [u8],
) -> Result<(), ReadError> {
    copies.sort_by_key(|copy| copy.source);
    for copies in copies.chunk_by(|one, other| one.source == other.source) {
        let Some(Copy { key, .. }) = copies.first() else {
            continue;
        };
        let first = copies.iter().map(|copy| copy.span.start).min().unwrap_or_default();
        let last = copies.iter().map(|copy| copy.span.end).max().unwrap_or_default();
        let source = checkpoint.read_elements(key, first..last)?;
        for copy in copies {
            copy.copying.after(first).copy(dtype.size(), &source, buffer);
        }
    }
    Ok(())
}

/// Whether two tensors are the same in type, shape and every byte.
pub(crate) fn are_equal(one: &Recipe, other: &Recipe, checkpoint: &Checkpoint) -> Result<bool, ReadError> {
    if one.dtype_name != other.dtype_name || one.shape != other.shape {
        return Ok(false);
    }
    if let (None, None) = (&one.assembly, &other.assembly) {
        return checkpoint.are_equal(one.name(), other.name());
    }
    Ok(one.read(checkpoint)?.bytes()[..] == other.read(checkpoint)?.bytes()[..])
}
