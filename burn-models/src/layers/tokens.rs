use super::embedding::safe_ids;
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use burn::nn::Embedding;
use burn::tensor::{DType, Device, Int, Tensor};

/// What a model reads: token ids, or their embeddings. Checked, so that looking them up cannot fail any more.
#[derive(Clone, Debug)]
pub enum Tokens {
    /// `[batch, seq]`, all in the vocabulary.
    Ids(Tensor<2, Int>),
    /// `[batch, seq, hidden]`
    Embeds(Tensor<3>),
}

impl Tokens {
    /// Takes whichever of both is given, and checks that it fits the table of embeddings.
    ///
    /// # Errors
    ///
    /// When neither or both are given, a dimension is zero, ids are not in the vocabulary (as [`embed`](super::embed) says), or
    /// embeddings have another size or element type than the table's.
    pub fn new(
        input_ids: Option<Tensor<2, Int>>,
        inputs_embeds: Option<Tensor<3>>,
        table: &Embedding,
    ) -> Result<Self, ForwardError> {
        let weight = table.weight.val();
        Self::within(input_ids, inputs_embeds, weight.dims(), weight.dtype())
    }

    /// [`new`](Self::new) for a table `[vocabulary, hidden]` of elements `dtype` that lies inside a replaceable class, so
    /// that only its size is known.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn within(
        input_ids: Option<Tensor<2, Int>>,
        inputs_embeds: Option<Tensor<3>>,
        [vocab_size, hidden_size]: [usize; 2],
        expected: DType,
    ) -> Result<Self, ForwardError> {
        let shape = |name, found: Vec<usize>, expected: String| Err(ForwardError::Shape { name, found, expected });
        match (input_ids, inputs_embeds) {
            (Some(ids), None) => match ids.dims() {
                [0, _] | [_, 0] => {
                    shape("input_ids", ids.dims().to_vec(), "[batch, seq], neither of them zero".to_owned())
                }
                _ => safe_ids("input_ids", ids, vocab_size).map(Self::Ids),
            },
            (None, Some(embeds)) => {
                check_embeds(&embeds, hidden_size)?;
                let found = embeds.dtype();
                if found != expected {
                    return Err(ForwardError::DType { name: "inputs_embeds", found, expected });
                }
                Ok(Self::Embeds(embeds))
            }
            (None, None) => Err(ForwardError::Inputs { found: "neither" }),
            (Some(_), Some(_)) => Err(ForwardError::Inputs { found: "both" }),
        }
    }

    /// The embeddings, `[batch, seq, hidden]`: ids are looked up in `table`.
    pub fn embed(self, table: &Embedding) -> Tensor<3> {
        match self {
            Self::Ids(ids) => burn::tensor::module::embedding(table.weight.val(), ids),
            Self::Embeds(embeds) => embeds,
        }
    }

    /// How many there are and where, for a model that computes in the type of `table`.
    pub fn extent(&self, table: &Embedding) -> Extent {
        self.extent_in(table.weight.val().dtype())
    }

    /// How many there are and where, for a model that computes in `dtype`.
    pub fn extent_in(&self, dtype: DType) -> Extent {
        let ([batch, seq], device) = match self {
            Self::Ids(ids) => (ids.dims(), ids.device()),
            Self::Embeds(embeds) => {
                let [batch, seq, _] = embeds.dims();
                ([batch, seq], embeds.device())
            }
        };
        Extent { batch, seq, dtype, device }
    }
}

/// The same inputs with embeddings in place of token ids.
///
/// # Errors
///
/// As [`Tokens::new`].
pub fn embedded(mut inputs: TextInputs, table: &Embedding) -> Result<TextInputs, ForwardError> {
    let tokens = Tokens::new(inputs.input_ids.take(), inputs.inputs_embeds.take(), table)?;
    inputs.inputs_embeds = Some(tokens.embed(table));
    Ok(inputs)
}

/// The embeddings, `[batch, seq, hidden]`, that a stack of layers is given which has no table for ids.
///
/// # Errors
///
/// When there are ids, or no embeddings, or embeddings of another size.
pub fn given_embeds(
    input_ids: Option<Tensor<2, Int>>,
    inputs_embeds: Option<Tensor<3>>,
    hidden_size: usize,
    model: &str,
) -> Result<Tensor<3>, ForwardError> {
    let model = || model.to_owned();
    if input_ids.is_some() {
        let because = ": the model around it embeds tokens";
        return Err(ForwardError::Unused { model: model(), name: "input_ids", because });
    }
    let embeds = inputs_embeds.ok_or_else(|| ForwardError::Absent {
        model: model(),
        name: "inputs_embeds",
        because: ": it has no embedding of its own",
    })?;
    check_embeds(&embeds, hidden_size)?;
    Ok(embeds)
}

fn check_embeds(embeds: &Tensor<3>, hidden_size: usize) -> Result<(), ForwardError> {
    match embeds.dims() {
        [batch, seq, size] if batch > 0 && seq > 0 && size == hidden_size => Ok(()),
        found => Err(ForwardError::Shape {
            name: "inputs_embeds",
            found: found.to_vec(),
            expected: format!("[batch, seq, {hidden_size}], none of them zero"),
        }),
    }
}

/// How much a stack of layers is given, and where.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The number of sequences.
    pub batch: usize,
    /// The number of positions in each.
    pub seq: usize,
    /// What is computed in.
    pub dtype: DType,
    /// Where.
    pub device: Device,
}

impl Extent {
    /// That of hidden states `[batch, seq, hidden]`.
    pub fn of(hidden_states: &Tensor<3>) -> Self {
        let [batch, seq, _] = hidden_states.dims();
        Self { batch, seq, dtype: hidden_states.dtype(), device: hidden_states.device() }
    }
}

/// Checks indices into a table that a caller gave for each token, such as token types, `[batch, seq]`.
///
/// # Errors
///
/// When the shape is not `extent`'s, or an index is not below `rows`, the size of the table (as [`embed`](super::embed)
/// says).
pub fn checked_indices(
    name: &'static str,
    rows: usize,
    indices: Tensor<2, Int>,
    extent: &Extent,
) -> Result<Tensor<2, Int>, ForwardError> {
    if indices.dims() != [extent.batch, extent.seq] {
        return Err(ForwardError::Shape {
            name,
            found: indices.dims().to_vec(),
            expected: format!("[{}, {}]", extent.batch, extent.seq),
        });
    }
    safe_ids(name, indices, rows)
}
