use super::Labels;
use burn::tensor::Tensor;

/// What an encoder of speech is given. Features alone turn into it.
#[derive(Clone, Debug)]
pub struct SpeechInputs {
    /// The logarithms of a spectrogram, `[batch, mel bins, frames]`.
    pub input_features: Tensor<3>,
    /// The expected answers, for the loss of a classifier.
    pub labels: Option<Labels>,
}

impl SpeechInputs {
    /// A spectrogram, `[batch, mel bins, frames]`.
    pub fn new(input_features: Tensor<3>) -> Self {
        Self { input_features, labels: None }
    }

    /// Asks for a loss.
    pub fn labels(mut self, labels: impl Into<Labels>) -> Self {
        self.labels = Some(labels.into());
        self
    }
}

impl From<Tensor<3>> for SpeechInputs {
    fn from(input_features: Tensor<3>) -> Self {
        Self::new(input_features)
    }
}
