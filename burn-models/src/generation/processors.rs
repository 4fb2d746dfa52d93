//! What changes the scores of the next token before one is chosen, in the reference's order.

use super::{GenerateError, GenerationConfig};

/// A rule about the scores of the next token of one sequence.
pub(crate) trait Processor {
    /// Changes the scores of a sequence that has the tokens `chosen` after its prompt.
    ///
    /// # Errors
    ///
    /// When it forces a token that the vocabulary does not have.
    fn process(&self, chosen: &[i64], scores: &mut [f32]) -> Result<(), GenerateError>;
}

/// All rules of one generation.
pub(super) struct Processors<'a> {
    own: Vec<Rule>,
    /// Those of the family; they come after those that every model has.
    of_family: &'a [&'a dyn Processor],
    forced: Option<Forced>,
}

impl<'a> Processors<'a> {
    /// The rules of `config` for prompts of `prompt` tokens, to which at most `new_tokens` are added.
    pub(super) fn new(
        config: &GenerationConfig,
        prompt: usize,
        new_tokens: usize,
        of_family: &'a [&'a dyn Processor],
    ) -> Self {
        let mut own = Vec::new();
        let bos = config.forced_bos_token_id;
        if let (Some(bos), 1) = (bos, prompt) {
            own.push(Rule::Force { at: 0, tokens: vec![bos], name: "forced_bos_token_id" });
        }
        if let (Some(eos), Some(at)) = (&config.forced_eos_token_id, new_tokens.checked_sub(1)) {
            own.push(Rule::Force { at, tokens: eos.as_slice().to_vec(), name: "forced_eos_token_id" });
        }
        if let Some(tokens) = &config.suppress_tokens {
            own.push(Rule::Suppress { at: None, tokens: tokens.clone() });
        }
        if let Some(tokens) = &config.begin_suppress_tokens {
            // a text that is made to begin with a token begins after it
            let at = usize::from(prompt == 1 && bos.is_some());
            own.push(Rule::Suppress { at: Some(at), tokens: tokens.clone() });
        }
        let forced = config.forced_decoder_ids.clone().map(|tokens| Forced { prompt, tokens });
        Self { own, of_family, forced }
    }
}

impl Processor for Processors<'_> {
    fn process(&self, chosen: &[i64], scores: &mut [f32]) -> Result<(), GenerateError> {
        for rule in &self.own {
            rule.process(chosen, scores)?;
        }
        for rule in self.of_family {
            rule.process(chosen, scores)?;
        }
        self.forced.as_ref().map_or(Ok(()), |forced| forced.process(chosen, scores))
    }
}

enum Rule {
    /// The token after `at` new ones is one of `tokens`.
    Force {
        at: usize,
        tokens: Vec<i64>,
        /// The field of the generation config.
        name: &'static str,
    },
    /// These tokens are not chosen: never, or only after `at` new ones. Those outside the vocabulary mean nothing.
    Suppress { at: Option<usize>, tokens: Vec<i64> },
}

impl Processor for Rule {
    fn process(&self, chosen: &[i64], scores: &mut [f32]) -> Result<(), GenerateError> {
        match self {
            Self::Force { at, tokens, name } if *at == chosen.len() => force(name, tokens, scores),
            Self::Suppress { at, tokens } if at.is_none_or(|at| at == chosen.len()) => {
                for token in tokens {
                    if let Some(score) = usize::try_from(*token).ok().and_then(|token| scores.get_mut(token)) {
                        *score = f32::NEG_INFINITY;
                    }
                }
                Ok(())
            }
            Self::Force { .. } | Self::Suppress { .. } => Ok(()),
        }
    }
}

/// Tokens at places of the whole sequence, its prompt included.
struct Forced {
    prompt: usize,
    tokens: Vec<(usize, Option<i64>)>,
}

impl Processor for Forced {
    fn process(&self, chosen: &[i64], scores: &mut [f32]) -> Result<(), GenerateError> {
        let at = self.prompt + chosen.len();
        // of two for one place the later counts
        match self.tokens.iter().rev().find(|(place, _)| *place == at) {
            Some((_, Some(token))) => force("forced_decoder_ids", &[*token], scores),
            _ => Ok(()),
        }
    }
}

/// Leaves nothing to choose but `tokens`, which are as likely as each other.
fn force(name: &'static str, tokens: &[i64], scores: &mut [f32]) -> Result<(), GenerateError> {
    let vocabulary = scores.len();
    scores.fill(f32::NEG_INFINITY);
    for token in tokens {
        let score = usize::try_from(*token).ok().and_then(|token| scores.get_mut(token));
        let outside = || GenerateError::OutsideVocabulary { name, found: *token, vocabulary };
        *score.ok_or_else(outside)? = 0.0;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TokenIds;

    /// Which tokens of a vocabulary of five can be chosen at each step.
    fn choices(config: &GenerationConfig, prompt: usize, steps: usize) -> Vec<Vec<usize>> {
        let processors = Processors::new(config, prompt, steps, &[]);
        (0..steps)
            .map(|step| {
                let mut scores = [1.0; 5];
                processors.process(&vec![4; step], &mut scores).expect("in the vocabulary");
                (0..5).filter(|token| scores[*token] > f32::NEG_INFINITY).collect()
            })
            .collect()
    }

    fn all() -> Vec<usize> {
        (0..5).collect()
    }

    #[test]
    fn suppressed_tokens_are_never_chosen_and_others_not_at_the_beginning() {
        let config = GenerationConfig {
            suppress_tokens: Some(vec![0, 77, -1]),
            begin_suppress_tokens: Some(vec![2]),
            ..GenerationConfig::default()
        };
        assert_eq!(choices(&config, 3, 2), [vec![1, 3, 4], vec![1, 2, 3, 4]]);
    }

    #[test]
    fn a_forced_beginning_moves_what_no_text_begins_with() {
        let config = GenerationConfig {
            forced_bos_token_id: Some(2),
            begin_suppress_tokens: Some(vec![2]),
            ..GenerationConfig::default()
        };
        assert_eq!(choices(&config, 1, 3), [vec![2], vec![0, 1, 3, 4], all()]);
        // a longer prompt has begun already
        assert_eq!(choices(&config, 2, 2), [vec![0, 1, 3, 4], all()]);
    }

    #[test]
    fn the_last_token_may_be_forced_to_be_an_end() {
        let eos = |ids| GenerationConfig { forced_eos_token_id: Some(ids), ..GenerationConfig::default() };
        assert_eq!(choices(&eos(TokenIds::One(3)), 4, 3), [all(), all(), vec![3]]);
        assert_eq!(choices(&eos([3, 1].into()), 4, 1), [[1, 3]]);
    }

    #[test]
    fn forced_places_count_from_the_beginning_and_beat_all_else() {
        let config = GenerationConfig {
            forced_decoder_ids: Some(vec![(1, Some(4)), (2, None), (3, Some(0))]),
            suppress_tokens: Some(vec![0]),
            ..GenerationConfig::default()
        };
        assert_eq!(choices(&config, 1, 4), [vec![4], vec![1, 2, 3, 4], vec![0], vec![1, 2, 3, 4]]);
    }

    #[test]
    fn a_token_outside_the_vocabulary_cannot_be_forced() {
        let config = GenerationConfig { forced_bos_token_id: Some(5), ..GenerationConfig::default() };
        let error = Processors::new(&config, 1, 1, &[]).process(&[], &mut [0.0; 5]);
        let message = error.expect_err("there is no such token").to_string();
        assert_eq!(message, "`forced_bos_token_id` is 5, expected a token of the vocabulary, 0 to 4");
    }
}
