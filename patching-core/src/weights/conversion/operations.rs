//! What a converter does with tensors.

use std::fmt;

/// One step of a [`WeightConverter`](super::WeightConverter). Dimensions are those of the checkpoint's layout.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConversionOperation {
    /// Joins all tensors along a dimension.
    Concatenate(Concatenate),
    /// Divides one tensor into equal parts.
    Chunk(Chunk),
    /// Divides one tensor into parts as large as their targets.
    Split(Split),
    /// Stacks the tensors of a module list.
    MergeModulelist(MergeModulelist),
    /// Divides a stack into the tensors of a module list.
    SplitModulelist(SplitModulelist),
    /// Exchanges two dimensions.
    Transpose(Transpose),
    /// Reorders rows for rotary positions.
    PermuteForRope(PermuteForRope),
}

/// Joins the tensors of all source patterns, in the order of the patterns: `[2, 4]` and `[1, 4]` to `[3, 4]`.
///
/// Undoing it takes the sizes of the parts. A model that was loaded remembers them; for one that was not they come from
/// [`sizes`](Self::sizes), from [`equal`](Self::equal), or from the model without patches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concatenate {
    pub(crate) dim: usize,
    pub(crate) parts: Parts,
}

/// How large the parts are that were joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Parts {
    Unknown,
    Equal,
    Sizes(Vec<usize>),
}

impl Concatenate {
    /// Joins along the dimension `dim`.
    pub const fn dim(dim: usize) -> Self {
        Self { dim, parts: Parts::Unknown }
    }

    /// The parts have these sizes, in the order of the source patterns.
    #[must_use]
    pub fn sizes(mut self, sizes: impl Into<Vec<usize>>) -> Self {
        self.parts = Parts::Sizes(sizes.into());
        self
    }

    /// The parts are all of one size.
    #[must_use]
    pub fn equal(mut self) -> Self {
        self.parts = Parts::Equal;
        self
    }
}

/// Divides one tensor into as many equal parts as there are target patterns: `[4, 2]` to `[2, 2]` and `[2, 2]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    pub(crate) dim: usize,
}

impl Chunk {
    /// Divides along the dimension `dim`.
    pub const fn dim(dim: usize) -> Self {
        Self { dim }
    }
}

/// Divides one tensor into a part for each target pattern, each of the size that its parameter has.
///
/// So it is right for queries, keys and values of different sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    pub(crate) dim: usize,
}

impl Split {
    /// Divides along the dimension `dim`.
    pub const fn dim(dim: usize) -> Self {
        Self { dim }
    }
}

/// Stacks the tensors of a module list, one list for each source pattern: `n` times `[2, 4]` to `[n, 2, 4]`.
///
/// The last `*` of a source pattern is the index in the list; targets have one star less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeModulelist {
    pub(crate) dim: usize,
}

impl MergeModulelist {
    /// Stacks along a new dimension `dim`.
    pub const fn dim(dim: usize) -> Self {
        Self { dim }
    }
}

/// Divides a stack into the tensors of a module list: `[n, 2, 4]` to `n` times `[2, 4]`.
///
/// The last `*` of a target pattern is the index in the list; sources have one star less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitModulelist {
    pub(crate) dim: usize,
}

impl SplitModulelist {
    /// Divides along the dimension `dim`, which goes away.
    pub const fn dim(dim: usize) -> Self {
        Self { dim }
    }
}

/// Exchanges two dimensions of each tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transpose {
    pub(crate) dim0: usize,
    pub(crate) dim1: usize,
    pub(crate) if_needed: bool,
}

impl Transpose {
    /// Exchanges the dimensions `dim0` and `dim1`.
    pub const fn dims(dim0: usize, dim1: usize) -> Self {
        Self { dim0, dim1, if_needed: false }
    }

    /// Leaves a tensor alone whose shape fits already. Where both would fit, loading is an error.
    #[must_use]
    pub const fn if_needed(mut self) -> Self {
        self.if_needed = true;
        self
    }
}

/// Reorders the rows of each head from pairs side by side, as original Llama weights have them, to two halves, as the
/// models here rotate them.
///
/// The number of heads is that of the rows divided by the size of a head, so queries, fewer keys, and biases are right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PermuteForRope {
    pub(crate) head_dim: Option<usize>,
}

impl PermuteForRope {
    /// With the size of a head from the config: `head_dim`, else `hidden_size / num_attention_heads`; also in a
    /// `text_config`.
    pub const fn new() -> Self {
        Self { head_dim: None }
    }

    /// With heads of `head_dim` rows.
    pub const fn head_dim(head_dim: usize) -> Self {
        Self { head_dim: Some(head_dim) }
    }
}

impl fmt::Display for ConversionOperation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Concatenate(Concatenate { dim, parts }) => match parts {
                Parts::Unknown => write!(formatter, "Concatenate(dim={dim})"),
                Parts::Equal => write!(formatter, "Concatenate(dim={dim}, equal)"),
                Parts::Sizes(sizes) => write!(formatter, "Concatenate(dim={dim}, sizes={sizes:?})"),
            },
            Self::Chunk(Chunk { dim }) => write!(formatter, "Chunk(dim={dim})"),
            Self::Split(Split { dim }) => write!(formatter, "Split(dim={dim})"),
            Self::MergeModulelist(MergeModulelist { dim }) => write!(formatter, "MergeModulelist(dim={dim})"),
            Self::SplitModulelist(SplitModulelist { dim }) => write!(formatter, "SplitModulelist(dim={dim})"),
            Self::Transpose(Transpose { dim0, dim1, if_needed }) => {
                let note = if *if_needed { ", if needed" } else { "" };
                write!(formatter, "Transpose(dim0={dim0}, dim1={dim1}{note})")
            }
            Self::PermuteForRope(PermuteForRope { head_dim }) => match head_dim {
                Some(head_dim) => write!(formatter, "PermuteForRope(head_dim={head_dim})"),
                None => formatter.write_str("PermuteForRope"),
            },
        }
    }
}

macro_rules! operations {
    ($($operation:ident),*) => {$(
        impl From<$operation> for ConversionOperation {
            fn from(operation: $operation) -> Self {
                Self::$operation(operation)
            }
        }
    )*};
}
operations!(Concatenate, Chunk, Split, MergeModulelist, SplitModulelist, Transpose, PermuteForRope);
