//! The tensors of a checkpoint as they are made of a model's, one at a time.

use std::collections::BTreeMap;
use std::ops::Range;

use burn::tensor::Bytes;
use safetensors::tensor::Dtype;

use super::collect::Saved;
use crate::weights::conversion::{Assembly, Copying, Piece, Tensor, Written, count, strides};
use crate::weights::error::SaveError;
use crate::weights::reader::{METADATA_KEY, aligned};

/// One tensor to be written.
pub(super) struct Output<'a> {
    pub(super) key: String,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) bytes: u64,
    parts: Vec<&'a Saved>,
    /// How it is put together of them; `None` where it is the first as it is.
    assembly: Option<Assembly>,
}

impl<'a> Output<'a> {
    /// A parameter under its own name.
    pub(super) fn plain(saved: &'a Saved) -> Self {
        let Saved { key, dtype, shape, bytes, .. } = saved;
        let (key, shape) = (key.clone(), shape.clone());
        Self { key, dtype: *dtype, shape, bytes: *bytes, parts: vec![saved], assembly: None }
    }

    /// A tensor made of some of `saved`.
    pub(super) fn written(written: Written, saved: &[&'a Saved]) -> Result<Self, SaveError> {
        let Written { key, parts, assembly } = written;
        if key == METADATA_KEY {
            return Err(SaveError::ReservedKey { key });
        }
        let parts: Vec<_> = parts.iter().filter_map(|&part| saved.get(part).copied()).collect();
        let Some(first) = parts.first() else {
            let reason = "no parameter is left for it".to_owned();
            return Err(SaveError::Tensor { path: key, reason });
        };
        let plain = Self::plain(first);
        Ok(match assembly {
            None => Self { key, ..plain },
            Some(assembly) => {
                let elements = count(&assembly.shape).unwrap_or_default() as u64;
                let bytes = elements * element_size(first) as u64;
                Self { key, shape: assembly.shape.clone(), bytes, parts, assembly: Some(assembly), ..plain }
            }
        })
    }

    /// The elements in the order and the type of the file. Of the parameters only what is needed is read, one after the
    /// other.
    pub(super) fn read(&self) -> Result<Bytes, SaveError> {
        let (Some(assembly), Some(first)) = (&self.assembly, self.parts.first()) else {
            let data = self.parts.first().map(|part| part.read()).transpose()?;
            return Ok(data.map_or_else(|| Bytes::from_elems(Vec::<u8>::new()), |data| data.into_parts().0));
        };
        let size = element_size(first);
        let result = strides(&assembly.shape);
        let mut by_part = BTreeMap::<usize, Vec<&Piece>>::new();
        for piece in &assembly.pieces {
            by_part.entry(piece.source).or_default().push(piece);
        }
        aligned(size, self.bytes as usize, |buffer| {
            for (number, pieces) in by_part {
                let Some(part) = self.parts.get(number) else {
                    continue;
                };
                let ranges = around(&pieces, part.shape.len());
                let data = part.read_box(&ranges)?;
                let sizes: Vec<_> = ranges.iter().map(Range::len).collect();
                let origin: Vec<_> = ranges.iter().map(|range| range.start).collect();
                for piece in pieces {
                    Copying::new(piece, &strides(&sizes), &origin, &result).copy(size, data.bytes(), buffer);
                }
            }
            Ok(())
        })
    }
}

/// The bytes of one element.
fn element_size(saved: &Saved) -> usize {
    saved.dtype.bitsize() / 8
}

/// The smallest box that all pieces lie within.
fn around(pieces: &[&Piece], dims: usize) -> Vec<Range<usize>> {
    let around = |dim: usize| {
        let extents = || pieces.iter().map(|piece| piece.extent(dim));
        let start = extents().map(|extent| extent.start).min().unwrap_or_default();
        let end = extents().map(|extent| extent.end).max().unwrap_or_default();
        start..end
    };
    (0..dims).map(around).collect()
}

/// What the conversion has to know of the parameters.
pub(super) fn tensors<'a>(saved: &[&'a Saved]) -> Vec<Tensor<'a>> {
    let tensor = |saved: &&'a Saved| Tensor { key: &saved.key, shape: &saved.shape, dtype: saved.dtype.to_string() };
    saved.iter().map(tensor).collect()
}
