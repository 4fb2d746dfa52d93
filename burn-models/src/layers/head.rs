use super::embedding::is_host;
use super::linear::product;
use super::{linear, new_linear};
use crate::config::{ConfigError, DecoderConfig};
use crate::error::ForwardError;
use crate::inputs::LogitsToKeep;
use burn::nn::{Embedding, Linear};
use burn::tensor::{Device, Int, Tensor};

/// A language model head, or nothing where the config says that it is the embedding's weight.
///
/// A tied head has no parameter of its own: there is one value, counted once, trained as one and saved once.
pub fn new_lm_head<C: DecoderConfig>(config: &C, device: &Device) -> Option<Linear> {
    let own = || {
        let std = config.initializer_range();
        new_linear(config.hidden_size(), config.vocab_size(), false, std, device)
    };
    (!config.tie_word_embeddings()).then(own)
}

/// The logits of hidden states, `[batch, seq, hidden]` to `[batch, seq, vocabulary]`: by the head, or if there is
/// none, by the embedding's weight.
pub fn lm_logits(head: Option<&Linear>, table: &Embedding, hidden: Tensor<3>) -> Tensor<3> {
    match head {
        Some(head) => linear(head, hidden),
        None => tied_logits(table.weight.val(), hidden),
    }
}

/// The logits of hidden states, `[batch, seq, hidden]` to `[batch, seq, vocabulary]`, by a table of embeddings
/// `[vocabulary, hidden]`.
pub fn tied_logits(table: Tensor<2>, hidden: Tensor<3>) -> Tensor<3> {
    let [batch, seq, size] = hidden.dims();
    let [vocabulary, _] = table.dims();
    product(hidden.reshape([batch * seq, size]), table.transpose()).reshape([batch, seq, vocabulary])
}

/// How likely each token is the first of an answer and the last, `[batch, seq, hidden]` to twice `[batch, seq]`.
///
/// # Errors
///
/// [`ConfigError::OutOfRange`] for a head that does not give just these two.
pub fn span_logits(head: &Linear, hidden: Tensor<3>) -> Result<[Tensor<2>; 2], ForwardError> {
    let logits = linear(head, hidden);
    let [_, _, found] = logits.dims();
    if found != 2 {
        let expected = "2: that a token is the first of an answer, and the last";
        return Err(ConfigError::out_of_range("num_labels", found, expected).into());
    }
    let one = |at| logits.clone().slice_dim(2, at..at + 1).squeeze_dim(2);
    Ok([one(0), one(1)])
}

/// Keeps some positions of `[batch, seq, hidden]`.
///
/// As the reference's `logits_to_keep`: the last 0 are all, and so are more than there are.
///
/// # Errors
///
/// [`ForwardError::IndexOutOfRange`] for a position that there is not, on devices whose memory is the program's own.
/// Elsewhere positions are clamped into the sequence, as [`embed`](super::embed) does with token ids.
pub fn select_positions(hidden: Tensor<3>, keep: LogitsToKeep) -> Result<Tensor<3>, ForwardError> {
    let [_, seq, _] = hidden.dims();
    match keep {
        LogitsToKeep::All => Ok(hidden),
        LogitsToKeep::Last(last) if last >= seq || last == 0 => Ok(hidden),
        LogitsToKeep::Last(last) => Ok(hidden.slice_dim(1, seq - last..seq)),
        LogitsToKeep::Positions(positions) => {
            let positions = super::embedding::safe_ids("logits_to_keep", positions, seq)?;
            Ok(hidden.select(1, positions))
        }
    }
}

/// The hidden state that stands for each sequence: the one of its last token.
pub struct Pooled<'a> {
    /// The tokens, `[batch, seq]`, if the model was given tokens.
    pub input_ids: Option<&'a Tensor<2, Int>>,
    /// The token that is padding.
    pub pad_token_id: Option<i64>,
}

/// The hidden state of each sequence's last token that is not padding, `[batch, seq, hidden]` to `[batch, hidden]`.
///
/// Without tokens it is the last position, as in the reference.
///
/// # Errors
///
/// [`ForwardError::NoPadToken`] for several sequences whose padding is not known.
pub fn last_tokens(hidden: Tensor<3>, by: Pooled<'_>) -> Result<Tensor<2>, ForwardError> {
    let [batch, seq, _] = hidden.dims();
    let (Some(pad), Some(ids)) = (by.pad_token_id, by.input_ids) else {
        if by.pad_token_id.is_none() && batch != 1 {
            return Err(ForwardError::NoPadToken { batch });
        }
        return Ok(hidden.slice_dim(1, seq - 1..seq).squeeze_dim(1));
    };
    let columns = Tensor::<1, Int>::arange(0..seq as i64, &ids.device()).reshape([1, seq]);
    let real = ids.clone().not_equal_scalar(pad).int();
    let last = (real * columns).max_dim(1);
    Ok(one_of_each(hidden, last))
}

/// The hidden state at the first position, which in some families stands for the whole, `[batch, seq, hidden]` to
/// `[batch, hidden]`.
pub fn first_of(hidden: Tensor<3>) -> Tensor<2> {
    hidden.slice_dim(1, 0..1).squeeze_dim(1)
}

/// The hidden state at one position of each sequence, `[batch, seq, hidden]` to `[batch, hidden]`; `positions` is
/// `[batch, 1]`.
pub fn one_of_each(hidden: Tensor<3>, positions: Tensor<2, Int>) -> Tensor<2> {
    let [batch, _, size] = hidden.dims();
    let index = positions.reshape([batch, 1, 1]).expand([batch, 1, size]);
    hidden.gather(1, index).squeeze_dim(1)
}

/// The position of the first token of each sequence that is marked with 1 rather than 0, `[batch, seq]` to `[batch, 1]`;
/// 0 where none is.
pub fn first_marked(marks: Tensor<2, Int>) -> Tensor<2, Int> {
    let [_, seq] = marks.dims();
    let seq = seq as i64;
    // the first has most positions behind it
    let behind = Tensor::<1, Int>::arange(0..seq, &marks.device()).neg() + seq;
    let most = (marks * behind.reshape([1, seq])).max_dim(1);
    (most.neg() + seq).remainder_scalar(seq)
}

/// The hidden state of each sequence at its last token `end`, `[batch, seq, hidden]` to `[batch, hidden]`.
///
/// # Errors
///
/// When there are not as many tokens as hidden states; on devices whose memory is the program's own, also when sequences
/// have no such token or not equally many. Elsewhere a sequence without one is taken at its first position.
pub fn last_of(hidden: Tensor<3>, ids: &Tensor<2, Int>, end: i64) -> Result<Tensor<2>, ForwardError> {
    let [batch, seq, _] = hidden.dims();
    if ids.dims() != [batch, seq] {
        let expected = format!("{:?}, as the encoder's tokens", ids.dims());
        return Err(ForwardError::Shape { name: "decoder_input_ids", found: vec![batch, seq], expected });
    }
    let ends = ids.clone().equal_scalar(end).int();
    if is_host(&ids.device()) {
        let found: Vec<i64> = ends.clone().sum_dim(1).to_data().iter::<i64>().collect();
        if found.iter().any(|count| *count == 0 || Some(count) != found.first()) {
            return Err(ForwardError::Ends { end, found });
        }
    }
    let columns = Tensor::<1, Int>::arange(0..seq as i64, &ids.device()).reshape([1, seq]);
    Ok(one_of_each(hidden, (ends * columns).max_dim(1)))
}
