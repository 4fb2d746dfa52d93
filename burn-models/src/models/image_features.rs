//! How models of texts and images take features from a vision tower.

use super::Tower;
use crate::error::ForwardError;
use crate::inputs::PixelInputs;
use crate::layers::embedding::is_readable;
use crate::outputs::{BaseModelOutputWithPooling, ImageOutputs};
use burn::tensor::{Bool, Int, Tensor};
use patching_core::capture::CapturePlan;
use patching_core::prelude::*;
use serde::{Deserialize, Serialize};

/// What hidden states are called.
const HIDDEN_STATES: &str = "hidden_states";

/// The hidden states of a tower that features are made of, as `vision_feature_layer` may be: 0 is the input of the first
/// layer, and negative numbers count from the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FeatureLayers {
    /// `"vision_feature_layer": -2`
    One(isize),
    /// `"vision_feature_layer": [-2, -5]`: side by side, in this order.
    Many(Vec<isize>),
}

impl FeatureLayers {
    /// Their indices in order.
    pub fn as_slice(&self) -> &[isize] {
        match self {
            Self::One(index) => std::slice::from_ref(index),
            Self::Many(indices) => indices,
        }
    }
}

impl From<isize> for FeatureLayers {
    fn from(index: isize) -> Self {
        Self::One(index)
    }
}

impl From<Vec<isize>> for FeatureLayers {
    fn from(indices: Vec<isize>) -> Self {
        Self::Many(indices)
    }
}

impl<const N: usize> From<[isize; N]> for FeatureLayers {
    fn from(indices: [isize; N]) -> Self {
        Self::Many(indices.to_vec())
    }
}

/// Runs a vision tower for the features of images, `[images, positions, hidden * layers]`, which are the output's
/// `pooler_output`: hidden states of some `layers`, without the first position if `strategy` is `default` and with it if
/// that is `full`.
///
/// The tower keeps the hidden states that are needed and no others, and stops when it has them, unless `kwargs` or its
/// config asks for more.
///
/// # Errors
///
/// As the tower's `forward`; when there is no such layer or strategy.
pub fn image_features<T>(
    tower: &T,
    images: PixelInputs,
    layers: &FeatureLayers,
    strategy: &str,
    kwargs: &ForwardKwargs,
) -> Result<ImageOutputs, ForwardError>
where
    T: Tower<Inputs = PixelInputs, Output = BaseModelOutputWithPooling>,
{
    let first = match strategy {
        "default" => 1,
        "full" => 0,
        found => return Err(CaptureError::SelectStrategy { found: found.to_owned() }.into()),
    };
    let asked = tower.tower_plan(kwargs)?;
    let needed = positions(tower, layers)?;
    let wanted = planned(&asked);
    let all: Vec<usize> = needed.iter().chain(&wanted).copied().collect();
    // computed with, so not yet as the caller wants to have them
    let request = kwargs.clone().as_they_are().output_hidden_states(all);
    let (mut states, attentions, last_hidden_state) = if asked.keys().is_empty() {
        let mut captures = tower.tower_captures(images, &request)?;
        (captures.take(HIDDEN_STATES)?, Captured::default(), None)
    } else {
        let output = tower.run_tower(images, &request)?;
        (output.hidden_states, output.attentions, Some(output.last_hidden_state))
    };
    let features = needed.iter().map(|position| feature(&states, *position, first));
    let features = Tensor::cat(features.collect::<Result<Vec<_>, _>>()?, 2);
    let mut output = ImageOutputs::new(features);
    output.last_hidden_state = last_hidden_state;
    output.attentions = attentions.kept(kwargs.keep());
    if asked.keys().iter().any(|planned| planned.key() == HIDDEN_STATES) {
        states.retain(|position| wanted.contains(&position));
        output.hidden_states = states.kept(kwargs.keep());
    }
    Ok(output)
}

/// The positions of `layers` among all hidden states that the tower has, as they are numbered from the first: where the
/// last of them is known, the tower can stop there.
fn positions<T: Tower>(tower: &T, layers: &FeatureLayers) -> Result<Vec<usize>, CaptureError> {
    let plan = tower.tower_plan(&ForwardKwargs::new().output_hidden_states(layers.as_slice()))?;
    let states = plan.keys().iter().find(|planned| planned.key() == HIDDEN_STATES);
    let len = states.map_or(0, |planned| planned.len());
    let position = |index: &isize| usize::try_from(*index).ok().or_else(|| len.checked_add_signed(*index));
    // the plan has checked that they are there
    Ok(layers.as_slice().iter().filter_map(position).collect())
}

/// The positions of the hidden states that a plan keeps.
fn planned(plan: &CapturePlan) -> Vec<usize> {
    let states = plan.keys().iter().find(|planned| planned.key() == HIDDEN_STATES);
    states.map(|planned| (0..planned.len()).filter(|at| planned.keeps(*at)).collect()).unwrap_or_default()
}

fn feature(states: &Captured<Tensor<3>>, position: usize, first: usize) -> Result<Tensor<3>, CaptureError> {
    // a position that does not fit is one that is not there
    let state = states.at(isize::try_from(position).unwrap_or(isize::MAX))?.clone();
    let [_, positions, _] = state.dims();
    Ok(if first == 0 { state } else { state.slice_dim(1, first..positions) })
}

/// The embeddings of texts with features in place of those of image tokens, both in their order.
///
/// That there are as many of the one as of the other is checked, for which the device is waited for; a device that only
/// records operations is not asked.
///
/// # Shapes
///
/// - `embeds`: `[batch, seq, hidden]`
/// - `marks`: `[batch, seq]`, true where a token stands for a feature
/// - `features`: `[images, tokens, hidden]`
///
/// # Errors
///
/// [`ForwardError::ImageTokens`] if there are more of the one than of the other, [`ForwardError::Shape`] if their sizes
/// differ, [`ForwardError::Read`] if the count cannot be read back.
pub fn placed_features(
    embeds: Tensor<3>,
    marks: Tensor<2, Bool>,
    features: Tensor<3>,
) -> Result<Tensor<3>, ForwardError> {
    let ([batch, seq, hidden], [images, tokens, size]) = (embeds.dims(), features.dims());
    if size != hidden {
        let expected = format!("[images, tokens, {hidden}]");
        return Err(ForwardError::Shape { name: "image_features", found: vec![images, tokens, size], expected });
    }
    let (count, marked) = (images * tokens, marks.clone().int().reshape([batch * seq]));
    if is_readable(&marked.device()) {
        let found = counted(marked.clone())?;
        if found != count {
            return Err(ForwardError::ImageTokens { tokens: found, features: count });
        }
    }
    if count == 0 {
        return Ok(embeds);
    }
    // the number of each mark, less one, is the number of its feature
    let number = marked.cumsum(0).sub_scalar(1).clamp(0, count as i64 - 1);
    let placed = features.cast(embeds.dtype()).reshape([count, hidden]).select(0, number);
    let marks = marks.unsqueeze_dim::<3>(2).expand([batch, seq, hidden]);
    Ok(embeds.mask_where(marks, placed.reshape([batch, seq, hidden])))
}

fn counted(marked: Tensor<1, Int>) -> Result<usize, ForwardError> {
    let unreadable = |problem: String| ForwardError::Read { name: "input_ids", problem };
    let sum = marked.sum().try_into_data().map_err(|error| unreadable(error.to_string()))?;
    Ok(sum.iter::<i64>().next().and_then(|sum| usize::try_from(sum).ok()).unwrap_or_default())
}
