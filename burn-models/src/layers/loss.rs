use super::embedding::safe_ids;
use crate::error::ForwardError;
use crate::inputs::Labels;
use burn::tensor::{DType, Int, Tensor, activation};

/// The label of a position where no token is expected.
pub(crate) const IGNORED: i64 = -100;

/// The mean cross entropy of each next token, `[1]`.
///
/// Labels beyond the vocabulary are an error on devices whose memory is the program's own, and clamped into it
/// elsewhere, as [`embed`](super::embed) does with token ids.
///
/// # Shapes
///
/// - `logits`: `[batch, seq, vocabulary]`
/// - `labels`: `[batch, seq]`, `-100` where no token is expected
///
/// # Errors
///
/// When the labels are not tokens or do not fit the logits.
pub fn causal_lm_loss(logits: Tensor<3>, labels: Labels) -> Result<Tensor<1>, ForwardError> {
    let Labels::Tokens(labels) = labels else {
        return Err(wrong_kind(&labels, "tokens of shape [batch, seq]"));
    };
    let [batch, seq, vocabulary] = logits.dims();
    if labels.dims() != [batch, seq] || seq < 2 {
        return Err(ForwardError::Shape {
            name: "labels",
            found: labels.dims().to_vec(),
            expected: format!("[{batch}, {seq}] as the logits, with at least 2 positions"),
        });
    }
    let scores = logits.slice_dim(1, 0..seq - 1);
    let next = labels.slice_dim(1, 1..seq);
    let rows = batch * (seq - 1);
    cross_entropy(scores.reshape([rows, vocabulary]), next.reshape([rows]))
}

/// The mean cross entropy of the tokens at their own positions, `[1]`: for models that fill in hidden tokens, classify
/// tokens, or whose inputs are already moved to the right.
///
/// Labels beyond what there is to choose from are an error where [`causal_lm_loss`] says so.
///
/// # Shapes
///
/// - `logits`: `[batch, seq, choices]`
/// - `labels`: `[batch, seq]`, `-100` where none is expected
///
/// # Errors
///
/// When the labels are not tokens or do not fit the logits.
pub fn token_loss(logits: Tensor<3>, labels: Labels) -> Result<Tensor<1>, ForwardError> {
    let Labels::Tokens(labels) = labels else {
        return Err(wrong_kind(&labels, "tokens of shape [batch, seq]"));
    };
    let [batch, seq, choices] = logits.dims();
    if labels.dims() != [batch, seq] {
        return Err(labels_shape(labels.dims().to_vec(), format!("[{batch}, {seq}] as the logits")));
    }
    cross_entropy(logits.reshape([batch * seq, choices]), labels.reshape([batch * seq]))
}

/// The loss of a model that marks where an answer begins and ends, `[1]`: the mean of both cross entropies.
///
/// An answer whose place is beyond the sequence is left out, as one that does not fit in.
///
/// # Shapes
///
/// - `start_logits`, `end_logits`: `[batch, seq]`
///
/// # Errors
///
/// When the labels are no spans or do not fit the logits.
pub fn span_loss(start_logits: Tensor<2>, end_logits: Tensor<2>, labels: Labels) -> Result<Tensor<1>, ForwardError> {
    let (start, end) = match labels {
        Labels::Spans { start, end } => (start, end),
        other => return Err(wrong_kind(&other, "spans: a start and an end of shape [batch]")),
    };
    let one = |logits: Tensor<2>, places: Tensor<1, Int>| {
        let [batch, seq] = logits.dims();
        if places.dims() != [batch] {
            return Err(labels_shape(places.dims().to_vec(), format!("[{batch}]")));
        }
        let outside = places.clone().greater_equal_scalar(seq as i64);
        cross_entropy(logits, places.clamp_min(0).mask_fill(outside, IGNORED))
    };
    Ok((one(start_logits, start)? + one(end_logits, end)?) / 2.0)
}

/// The loss of a classifier, `[1]`: mean squared error for `regression`, cross entropy for
/// `single_label_classification`, binary cross entropy for `multi_label_classification`. Where the config does not say
/// which, one label means regression, and otherwise the labels decide.
///
/// # Shapes
///
/// - `logits`: `[batch, labels]`
///
/// # Errors
///
/// When the labels are not of the kind that the problem needs, or do not fit the logits.
pub fn classification_loss(
    logits: Tensor<2>,
    labels: Labels,
    problem_type: Option<&str>,
) -> Result<Tensor<1>, ForwardError> {
    let [batch, count] = logits.dims();
    let problem = match (problem_type, &labels) {
        (Some(problem), _) => problem,
        (None, _) if count == 1 => "regression",
        (None, Labels::Classes(_)) => "single_label_classification",
        (None, _) => "multi_label_classification",
    };
    match (problem, labels) {
        ("single_label_classification", Labels::Classes(classes)) => {
            if classes.dims() != [batch] {
                return Err(labels_shape(classes.dims().to_vec(), format!("[{batch}]")));
            }
            cross_entropy(logits, classes)
        }
        ("regression" | "multi_label_classification", Labels::Targets(targets)) => {
            if targets.dims() != [batch, count] {
                return Err(labels_shape(targets.dims().to_vec(), format!("[{batch}, {count}]")));
            }
            let logits = logits.cast(DType::F32);
            let targets = targets.cast(DType::F32);
            Ok(if problem == "regression" {
                (logits - targets).square().mean()
            } else {
                // log(1 + e^x) - x * target, without overflow
                let softplus = activation::relu(logits.clone()) + (logits.clone().abs().neg().exp() + 1.0).log();
                (softplus - logits * targets).mean()
            })
        }
        (problem, labels) => {
            let expected = match problem {
                "single_label_classification" => "classes of shape [batch]".to_owned(),
                "regression" | "multi_label_classification" => "targets of shape [batch, labels]".to_owned(),
                other => format!(
                    "a problem_type of regression, single_label_classification or multi_label_classification, not `{other}`"
                ),
            };
            Err(wrong_kind(&labels, &expected))
        }
    }
}

/// The loss of pairs that were to be found among all combinations, `[1]`: the mean of both ways to choose.
///
/// # Shapes
///
/// - `logits`: `[pairs, pairs]`, the right ones on the diagonal
///
/// # Errors
///
/// When there are more of the one than of the other.
pub fn contrastive_loss(logits: Tensor<2>) -> Result<Tensor<1>, ForwardError> {
    let [rows, columns] = logits.dims();
    if rows != columns {
        return Err(ForwardError::Shape {
            name: "logits",
            found: vec![rows, columns],
            expected: "[pairs, pairs], as many of the one as of the other for `return_loss`".to_owned(),
        });
    }
    let pairs = || Tensor::<1, Int>::arange(0..rows as i64, &logits.device());
    let one_way = cross_entropy(logits.clone(), pairs())?;
    let other_way = cross_entropy(logits.clone().transpose(), pairs())?;
    Ok((one_way + other_way) / 2.0)
}

fn cross_entropy(scores: Tensor<2>, labels: Tensor<1, Int>) -> Result<Tensor<1>, ForwardError> {
    let [rows, classes] = scores.dims();
    let ignored = labels.clone().equal_scalar(IGNORED);
    let labels = labels.mask_fill(ignored.clone(), 0);
    let labels = safe_ids("labels", labels, classes)?;
    let log_probabilities = activation::log_softmax(scores.cast(DType::F32), 1);
    let chosen = log_probabilities.gather(1, labels.reshape([rows, 1]));
    let counted = ignored.bool_not().float().cast(DType::F32);
    let sum = (chosen.reshape([rows]) * counted.clone()).sum();
    Ok(sum.neg() / counted.sum())
}

fn labels_shape(found: Vec<usize>, expected: String) -> ForwardError {
    ForwardError::Shape { name: "labels", found, expected }
}

fn wrong_kind(labels: &Labels, expected: &str) -> ForwardError {
    ForwardError::Labels { found: labels.description(), expected: expected.to_owned() }
}
