use crate::generation::{GenerateError, Processor};

/// Which times a text may have: they come in pairs, do not go back, and stand where the model thinks that they are likelier
/// than any word.
#[derive(Clone, Debug)]
pub(super) struct TimestampRules {
    /// The token of the time zero; those after it are later times, the one before it says that there are none.
    pub(super) first_time: usize,
    /// The tokens before it are words.
    pub(super) end_of_text: usize,
    /// How late the first time may be.
    pub(super) latest_first: Option<usize>,
}

impl Processor for TimestampRules {
    fn process(&self, chosen: &[i64], scores: &mut [f32]) -> Result<(), GenerateError> {
        let (vocabulary, first) = (scores.len(), self.first_time);
        let mut hide = |tokens: std::ops::Range<usize>| {
            let (start, end) = (tokens.start.min(vocabulary), tokens.end.min(vocabulary));
            scores[start.min(end)..end].fill(f32::NEG_INFINITY);
        };
        hide(first.saturating_sub(1)..first);
        let time = |token: &i64| usize::try_from(*token).ok().filter(|token| *token >= first);
        let is_last = chosen.last().and_then(time).is_some();
        let is_last_but_one = chosen.len() < 2 || chosen.get(chosen.len() - 2).and_then(time).is_some();
        if is_last && is_last_but_one {
            hide(first..vocabulary);
        } else if is_last {
            // a pair has to be finished, or the text ends
            hide(0..self.end_of_text);
        }
        if let Some(latest) = chosen.iter().rev().find_map(time) {
            // the end of one part may be the beginning of the next
            let earliest = if is_last && !is_last_but_one { latest } else { latest.saturating_add(1) };
            hide(first..earliest);
        }
        if chosen.is_empty() {
            hide(0..first);
            if let Some(latest) = self.latest_first {
                hide(first.saturating_add(latest).saturating_add(1)..vocabulary);
            }
        }
        let (words, times) = scores.split_at_mut(first.min(vocabulary));
        let likeliest = words.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if log_sum(times) > f64::from(likeliest) {
            words.fill(f32::NEG_INFINITY);
        }
        Ok(())
    }
}

/// The logarithm of the sum of what `scores` are logarithms of.
fn log_sum(scores: &[f32]) -> f64 {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if !highest.is_finite() {
        return highest.into();
    }
    let sum: f64 = scores.iter().map(|score| f64::from(score - highest).exp()).sum();
    f64::from(highest) + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words are 0 to 3, 4 ends a text, 5 says that there are no times, 6 to 9 are times.
    fn allowed(chosen: &[i64], scores: [f32; 10]) -> Vec<usize> {
        let rules = TimestampRules { first_time: 6, end_of_text: 4, latest_first: Some(1) };
        let mut scores = scores;
        rules.process(chosen, &mut scores).expect("nothing is forced");
        (0..10).filter(|token| scores[*token] > f32::NEG_INFINITY).collect()
    }

    /// Words that are likelier than all times together.
    const WORDS: [f32; 10] = [9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 0.0, 0.0, 0.0, 0.0];

    #[test]
    fn times_come_in_pairs_and_do_not_go_back() {
        assert_eq!(allowed(&[], WORDS), [6, 7]);
        assert_eq!(allowed(&[6], WORDS), [0, 1, 2, 3, 4]);
        assert_eq!(allowed(&[6, 1], WORDS), [0, 1, 2, 3, 4, 7, 8, 9]);
        // the end of the text, the same time again, or a later one
        assert_eq!(allowed(&[6, 1, 8], [0.0; 10]), [8, 9]);
        assert_eq!(allowed(&[6, 1, 8], WORDS), [4, 8, 9]);
        assert_eq!(allowed(&[6, 1, 8, 8], WORDS), [0, 1, 2, 3, 4]);
        assert_eq!(allowed(&[6, 1, 8, 8, 2], WORDS), [0, 1, 2, 3, 4, 9]);
    }

    #[test]
    fn likely_times_leave_no_words() {
        // each is less likely than a word, but not all together
        let close = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5];
        assert_eq!(allowed(&[6, 1], close), [7, 8, 9]);
    }
}
