//! What a caller gave, checked against the stack of layers that it is for.

use super::Stack;
use crate::error::ForwardError;
use crate::inputs::{LogitsToKeep, TextInputs};
use crate::layers::Extent;
use crate::layers::embedding::{is_host, safe_ids};
use crate::routing::RoutingError;
use burn::tensor::{Int, Tensor};

/// Refuses what the stack would ignore.
pub(super) fn check_use(stack: &Stack<'_>, inputs: &TextInputs) -> Result<(), ForwardError> {
    let needless = [
        ("token_type_ids", inputs.token_type_ids.is_some(), ""),
        // heads take them out before
        ("labels", inputs.labels.is_some(), ": no head here computes a loss"),
        (
            "logits_to_keep",
            !matches!(inputs.logits_to_keep, LogitsToKeep::All),
            ": no head here computes logits of some positions only",
        ),
        ("cache", inputs.cache.is_some() && stack.use_cache.is_none(), ": it is no decoder"),
        (
            "encoder_hidden_states",
            inputs.encoder_hidden_states.is_some() && stack.encoder_size.is_none(),
            ": it has no cross-attention (`is_decoder` and `add_cross_attention` in the config)",
        ),
    ];
    if let Some((name, _, because)) = needless.into_iter().find(|(_, is_given, _)| *is_given) {
        return Err(unused(stack, name, because));
    }
    match inputs.expert_routing {
        Some(_) => Err(RoutingError::NoExperts { model_type: stack.general.model_type.clone() }.into()),
        None => Ok(()),
    }
}

pub(super) fn unused(stack: &Stack<'_>, name: &'static str, because: &'static str) -> ForwardError {
    ForwardError::Unused { model: stack.general.model_type.clone(), name, because }
}

pub(super) fn encoded(stack: &Stack<'_>, states: Tensor<3>, batch: usize) -> Result<Tensor<3>, ForwardError> {
    match (states.dims(), stack.encoder_size) {
        ([rows, source, size], Some(expected)) if rows == batch && source > 0 && size == expected => Ok(states),
        (found, expected) => Err(ForwardError::Shape {
            name: "encoder_hidden_states",
            found: found.to_vec(),
            expected: format!("[{batch}, source, {}], none of them zero", expected.unwrap_or_default()),
        }),
    }
}

pub(super) fn positions(
    stack: &Stack<'_>,
    given: Option<Tensor<2, Int>>,
    past: usize,
    Extent { batch, seq, device, .. }: &Extent,
) -> Result<Tensor<2, Int>, ForwardError> {
    const NAME: &str = "position_ids";
    let Some(given) = given else {
        let end = past + seq;
        if let Some(limit) = stack.max_positions.filter(|limit| end > *limit) {
            return Err(ForwardError::TooLong { found: end, limit });
        }
        return Ok(Tensor::<1, Int>::arange(past as i64..end as i64, device).unsqueeze());
    };
    match given.dims() {
        [rows, columns] if (rows == *batch || rows == 1) && columns == *seq => match stack.max_positions {
            Some(limit) => safe_ids(NAME, given, limit),
            None => Ok(given),
        },
        found => Err(ForwardError::Shape {
            name: NAME,
            found: found.to_vec(),
            expected: format!("[{batch}, {seq}] or [1, {seq}]"),
        }),
    }
}

/// Which sequence each token belongs to, where positions do not go up one by one: a new sequence begins there.
///
/// That they do can only be known by reading them; where that would stop the device, they are taken as they come.
pub(super) fn segments(position_ids: Tensor<2, Int>) -> Option<Tensor<2, Int>> {
    let [rows, seq] = position_ids.dims();
    if rows == 0 || seq < 2 {
        return None;
    }
    let steps = position_ids.clone().slice_dim(1, 1..seq) - position_ids.slice_dim(1, 0..seq - 1);
    if is_host(&steps.device()) && steps.to_data().iter::<i64>().all(|step| step == 1) {
        return None;
    }
    let begins = steps.not_equal_scalar(1).int();
    let first = Tensor::zeros([rows, 1], (&begins.device(), begins.dtype()));
    Some(Tensor::cat(vec![first, begins], 1).cumsum(1))
}

/// Which positions are padding, `[batch, positions]` as expected; `what` says which positions those are.
pub(super) fn padding(
    name: &'static str,
    mask: Option<Tensor<2, Int>>,
    expected: [usize; 2],
    what: &str,
) -> Result<Option<Tensor<2, Int>>, ForwardError> {
    match mask {
        Some(mask) if mask.dims() != expected => Err(ForwardError::Shape {
            name,
            found: mask.dims().to_vec(),
            expected: format!("{expected:?}: batch, and {what}"),
        }),
        mask => Ok(mask),
    }
}
