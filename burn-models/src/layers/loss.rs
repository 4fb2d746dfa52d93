use super::embedding::safe_ids;
use crate::error::ForwardError;
use crate::inputs::Labels;
use burn::tensor::{DType, Int, Tensor, activation};

/// The label of a position where no token is expected.
const IGNORED: i64 = -100;

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

/// The loss of marking an answer in a text, `[1]`: the mean of the cross entropies of where it begins and where it ends.
///
/// # Shapes
///
/// - `start_logits`, `end_logits`: `[batch, seq]`
/// - `labels`: tokens' places `[batch, 2]`, the first and the last of the answer; a place beyond the text does not count
///
/// # Errors
///
/// When the labels are no such places.
pub fn span_loss([start_logits, end_logits]: [Tensor<2>; 2], labels: Labels) -> Result<Tensor<1>, ForwardError> {
    let Labels::Tokens(places) = labels else {
        return Err(wrong_kind(&labels, "places of shape [batch, 2]"));
    };
    let [batch, seq] = start_logits.dims();
    if places.dims() != [batch, 2] {
        return Err(labels_shape(places.dims().to_vec(), format!("[{batch}, 2]: where each answer begins and ends")));
    }
    let places = places.clamp(0, seq as i64);
    let places = places.clone().mask_fill(places.equal_scalar(seq as i64), IGNORED);
    let at = |column: usize| places.clone().slice_dim(1, column..column + 1).reshape([batch]);
    Ok((cross_entropy(start_logits, at(0))? + cross_entropy(end_logits, at(1))?) / 2.0)
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
    let (kind, shape) = match labels {
        Labels::Tokens(tokens) => ("tokens", tokens.dims().to_vec()),
        Labels::Classes(classes) => ("classes", classes.dims().to_vec()),
        Labels::Targets(targets) => ("targets", targets.dims().to_vec()),
    };
    ForwardError::Labels { found: format!("{kind} of shape {shape:?}"), expected: expected.to_owned() }
}
