use super::Settings;
use super::generate::filled;
use crate::error::ForwardError;
use crate::generation::{GenerateError, GenerateOutput, GenerationConfig};
use crate::inputs::{Seq2SeqInputs, SpeechInputs};
use crate::outputs::Seq2SeqLMOutput;
use crate::whisper::WhisperForConditionalGeneration;
use crate::whisper::config::FRAMES;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// How many frames of a spectrogram a second has.
const FRAMES_PER_SECOND: f64 = 100.0;

/// What was said, part by part.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Transcription {
    /// The parts in order.
    pub segments: Vec<Segment>,
    /// What was heard at once to get them.
    pub windows: Vec<Window>,
}

/// A part of what was said.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Segment {
    /// Where it begins, in seconds.
    pub start: f64,
    /// Where it ends, in seconds.
    pub end: f64,
    /// Its tokens, those for times included.
    pub tokens: Vec<i64>,
    /// The window that it was heard in.
    pub window: usize,
}

/// A stretch of sound that the model heard at once.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Window {
    /// Its first frame.
    pub first_frame: usize,
    /// What was written down, with all that was recorded at each step.
    pub output: GenerateOutput<Seq2SeqLMOutput>,
}

impl Transcription {
    /// The tokens of all parts, as the reference's `generate` gives them.
    pub fn tokens(&self) -> Vec<i64> {
        self.segments.iter().flat_map(|segment| segment.tokens.iter().copied()).collect()
    }
}

impl WhisperForConditionalGeneration {
    /// Writes down what is said in one spectrogram of any length, `[1, mel bins, frames]`, with times: window by window,
    /// each where the last part of the one before ended.
    ///
    /// It is what the reference's `generate` does with `return_timestamps`, at a single temperature. Settings are as in
    /// [`generate`](Self::generate); without a `language`, it is heard in the first window.
    ///
    /// # Errors
    ///
    /// When the spectrogram or the generation config do not fit, the latter does not say which tokens are times, or a
    /// forward pass fails.
    pub fn transcribe(
        &self,
        input_features: Tensor<3>,
        config: &GenerationConfig,
        kwargs: &ForwardKwargs,
    ) -> Result<Transcription, GenerateError> {
        let mut config = config.clone();
        config.extra.insert("return_timestamps".to_owned(), true.into());
        let settings = Settings::of(&config)?;
        let dims = input_features.dims();
        let [sounds, _, frames] = dims;
        if sounds != 1 || frames == 0 {
            let expected = "[1, mel bins, frames]: one sound of at least one frame".to_owned();
            return Err(ForwardError::Shape { name: "input_features", found: dims.to_vec(), expected }.into());
        }
        let window = self.window();
        let cut = |at: usize| {
            let part = input_features.clone().slice_dim(2, at..frames.min(at + window));
            Seq2SeqInputs::new(SpeechInputs::new(filled(part, window)))
        };

        let mut prompt = None;
        let mut transcription = Transcription { segments: Vec::new(), windows: Vec::new() };
        let mut at = 0;
        while at < frames {
            let (mut inputs, mut kwargs) = (cut(at), kwargs.clone());
            inputs.decoder.input_ids = match &prompt {
                Some(known) => Some(Tensor::clone(known)),
                None => Some(prompt.insert(self.prompt(&mut inputs, &settings, &config, &mut kwargs)?).clone()),
            };
            let output = self.generate_after(inputs, &settings, &config, &kwargs)?;
            let cut = Cut { first_frame: at, frames: window.min(frames - at), first_time: settings.first_time() };
            let (parts, next) = cut.segments(self.without_end(&output, &config));
            let place = |part: Part| Segment {
                start: part.start,
                end: part.end,
                tokens: part.tokens,
                window: transcription.windows.len(),
            };
            transcription.segments.extend(parts.into_iter().map(place));
            transcription.windows.push(Window { first_frame: at, output });
            at += next;
        }
        Ok(transcription)
    }

    /// The new tokens of the only sequence, less the one that ended it.
    fn without_end(&self, output: &GenerateOutput<Seq2SeqLMOutput>, config: &GenerationConfig) -> Vec<i64> {
        let mut tokens = output.new_tokens.first().cloned().unwrap_or_default();
        let eos = config.eos_token_id.as_ref().or(self.model.config.eos_token_id.as_ref());
        if tokens.last().is_some_and(|last| eos.is_some_and(|eos| eos.contains(*last))) {
            tokens.pop();
        }
        tokens
    }
}

/// A window, and which tokens are times in it.
struct Cut {
    first_frame: usize,
    /// How many frames of it are sound.
    frames: usize,
    first_time: Option<usize>,
}

/// A part of what was said in a window.
#[derive(Debug, PartialEq)]
struct Part {
    start: f64,
    end: f64,
    tokens: Vec<i64>,
}

impl Cut {
    /// Cuts what was written at each pair of times, and says after how many frames the next window begins.
    fn segments(&self, tokens: Vec<i64>) -> (Vec<Part>, usize) {
        let times: Vec<Option<usize>> = tokens.iter().map(|token| self.time(*token)).collect();
        let mut ends: Vec<usize> =
            (1..tokens.len()).filter(|at| times[*at - 1].is_some() && times[*at].is_some()).collect();
        let ends_once = matches!(times.as_slice(), [.., None, Some(_)]);
        let Some(last) = ends.last_mut() else {
            // without a pair of times it is one part: up to its last time, if that is not the beginning
            let last = times.iter().rev().find_map(|time| *time).filter(|time| *time > 0);
            let end = last.unwrap_or(self.frames / FRAMES);
            return (vec![self.part(&tokens, 0, end)], self.frames);
        };
        if ends_once {
            // nothing is said after the last time
            ends.push(tokens.len());
        } else {
            // both times belong to the last part
            *last += 1;
        }
        let mut begin = 0;
        let mut parts = Vec::new();
        for (index, end) in ends.iter().enumerate() {
            let is_double = index + 1 == ends.len() && !ends_once;
            let time_at = end.saturating_sub(if is_double { 2 } else { 1 });
            let time = |at: usize| times.get(at).copied().flatten().unwrap_or_default();
            parts.push(self.part(&tokens[begin..*end], time(begin), time(time_at)));
            begin = *end;
        }
        if ends_once {
            return (parts, self.frames);
        }
        // what came after the last pair is heard again, from there on
        let last = times.get(begin.saturating_sub(2)).copied().flatten().unwrap_or_default();
        (parts, if last == 0 { self.frames } else { FRAMES * last })
    }

    fn part(&self, tokens: &[i64], start: usize, end: usize) -> Part {
        let seconds = |time: usize| (self.first_frame + FRAMES * time) as f64 / FRAMES_PER_SECOND;
        Part { start: seconds(start), end: seconds(end), tokens: tokens.to_vec() }
    }

    /// The time that a token stands for, in positions of the encoder.
    fn time(&self, token: i64) -> Option<usize> {
        usize::try_from(token).ok()?.checked_sub(self.first_time?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens from 100 on are times of 20 ms.
    fn cut(first_frame: usize, tokens: &[i64]) -> (Vec<Part>, usize) {
        Cut { first_frame, frames: 3000, first_time: Some(100) }.segments(tokens.to_vec())
    }

    fn part(start: f64, end: f64, tokens: &[i64]) -> Part {
        Part { start, end, tokens: tokens.to_vec() }
    }

    #[test]
    fn pairs_of_times_part_what_was_said() {
        let (parts, next) = cut(0, &[100, 1, 2, 150, 150, 3, 200]);
        assert_eq!(parts, [part(0.0, 1.0, &[100, 1, 2, 150]), part(1.0, 2.0, &[150, 3, 200])]);
        assert_eq!(next, 3000);
    }

    #[test]
    fn what_was_begun_is_heard_again() {
        let (parts, next) = cut(1000, &[100, 1, 150, 160, 2, 200, 200, 3]);
        assert_eq!(parts, [part(10.0, 11.0, &[100, 1, 150]), part(11.2, 12.0, &[160, 2, 200, 200])]);
        assert_eq!(next, 200);
    }

    #[test]
    fn without_pairs_it_is_one_part() {
        assert_eq!(cut(0, &[100, 1, 2]), (vec![part(0.0, 30.0, &[100, 1, 2])], 3000));
        assert_eq!(cut(0, &[100, 1, 2, 150]), (vec![part(0.0, 1.0, &[100, 1, 2, 150])], 3000));
        assert_eq!(cut(0, &[]), (vec![part(0.0, 30.0, &[])], 3000));
    }
}
