use super::GenerationConfig;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::cmp::Ordering;

/// Chooses tokens by their scores.
pub(super) enum Chooser {
    /// The highest score; of several, the first.
    Greedy,
    /// By probability.
    Sample {
        /// What scores are divided by.
        temperature: f64,
        /// How many tokens are considered.
        top_k: Option<usize>,
        /// The probability that the tokens considered have together.
        top_p: Option<f64>,
        /// Where random numbers come from.
        random: Box<StdRng>,
    },
}

impl Chooser {
    pub(super) fn new(config: &GenerationConfig) -> Self {
        if !config.do_sample {
            return Self::Greedy;
        }
        let random = config.seed.map_or_else(|| StdRng::from_rng(&mut rand::rng()), StdRng::seed_from_u64);
        Self::Sample {
            temperature: config.temperature.unwrap_or(1.0),
            top_k: config.top_k.filter(|k| *k > 0),
            top_p: config.top_p.filter(|p| *p < 1.0),
            random: Box::new(random),
        }
    }

    /// The token for one sequence; none if no score is a number.
    pub(super) fn choose(&mut self, scores: &[f32]) -> Option<usize> {
        match self {
            Self::Greedy => greedy(scores),
            Self::Sample { temperature, top_k, top_p, random } => {
                let mut candidates = candidates(scores, *top_k);
                let total = weigh(&mut candidates, *temperature)?;
                let total = match *top_p {
                    Some(top_p) => nucleus(&mut candidates, top_p * total),
                    None => total,
                };
                let mut left = random.random_range(0.0..1.0) * total;
                let drawn = candidates.iter().find(|(_, weight)| {
                    left -= weight;
                    left < 0.0
                });
                // Rounding may leave a little over at the end.
                drawn.or(candidates.last()).map(|(token, _)| *token)
            }
        }
    }
}

fn greedy(scores: &[f32]) -> Option<usize> {
    let mut best: Option<(usize, f32)> = None;
    for (token, score) in scores.iter().copied().enumerate() {
        if !score.is_nan() && best.is_none_or(|(_, highest)| score > highest) {
            best = Some((token, score));
        }
    }
    best.filter(|(_, score)| *score > f32::NEG_INFINITY).map(|(token, _)| token)
}

/// Tokens with their scores, in no order that means anything; at most `top_k`, and those that tie with the last of them.
fn candidates(scores: &[f32], top_k: Option<usize>) -> Vec<(usize, f64)> {
    let mut candidates: Vec<(usize, f64)> = scores
        .iter()
        .enumerate()
        .filter(|(_, score)| score.is_finite())
        .map(|(token, score)| (token, f64::from(*score)))
        .collect();
    if let Some(k) = top_k
        && k < candidates.len()
    {
        let (_, &mut (_, last), _) = candidates.select_nth_unstable_by(k - 1, best_first);
        candidates.retain(|(_, score)| *score >= last);
    }
    candidates
}

/// The highest score first; of equal ones, the lowest token.
fn best_first(a: &(usize, f64), b: &(usize, f64)) -> Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

/// Turns scores into weights proportional to probabilities; gives their sum.
fn weigh(candidates: &mut [(usize, f64)], temperature: f64) -> Option<f64> {
    let highest = candidates.iter().map(|(_, score)| *score).reduce(f64::max)?;
    for (_, score) in candidates.iter_mut() {
        *score = ((*score - highest) / temperature).exp();
    }
    Some(candidates.iter().map(|(_, weight)| weight).sum())
}

/// Keeps the likeliest candidates that together weigh at least `enough`; gives their sum.
///
/// Mostly a few of a large vocabulary, so only as many are sorted as it takes.
fn nucleus(candidates: &mut Vec<(usize, f64)>, enough: f64) -> f64 {
    let mut sorted = 256;
    loop {
        if sorted < candidates.len() {
            candidates.select_nth_unstable_by(sorted - 1, best_first);
        }
        let end = sorted.min(candidates.len());
        candidates[..end].sort_unstable_by(best_first);
        let mut sum = 0.0;
        let reached = candidates[..end].iter().position(|(_, weight)| {
            sum += weight;
            sum >= enough
        });
        if let Some(last) = reached {
            candidates.truncate(last + 1);
            return sum;
        }
        if end == candidates.len() {
            return sum;
        }
        sorted *= 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(config: GenerationConfig, scores: &[f32], draws: usize) -> Vec<usize> {
        let mut chooser = Chooser::new(&config);
        (0..draws).filter_map(|_| chooser.choose(scores)).collect()
    }

    fn config(seed: u64) -> GenerationConfig {
        GenerationConfig::sample(1, seed)
    }

    #[test]
    fn greedy_takes_the_first_highest_number() {
        assert_eq!(greedy(&[f32::NAN, 1.0, 3.0, 3.0]), Some(2));
        assert_eq!(greedy(&[f32::NAN, f32::NEG_INFINITY]), None);
    }

    #[test]
    fn frequencies_follow_probabilities() {
        let scores = [0.0, 1.0_f32.ln(), 2.0_f32.ln(), f32::NEG_INFINITY];
        let drawn = sample(config(7), &scores, 40_000);
        let share = |token| drawn.iter().filter(|d| **d == token).count() as f64 / 40_000.0;
        assert!((share(0) - 0.25).abs() < 0.01, "{}", share(0));
        assert!((share(2) - 0.5).abs() < 0.01, "{}", share(2));
        assert_eq!(share(3), 0.0);
    }

    #[test]
    fn top_k_and_top_p_cut_the_tail() {
        let scores = [4.0, 1.0, 3.0, 2.0];
        let top_k = GenerationConfig { top_k: Some(2), temperature: Some(10.0), ..config(1) };
        let mut drawn = sample(top_k, &scores, 200);
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, [0, 2]);
        let top_p = GenerationConfig { top_p: Some(0.5), ..config(1) };
        assert!(sample(top_p, &scores, 200).iter().all(|d| *d == 0));
    }

    #[test]
    fn a_nucleus_of_many_is_the_sorted_prefix() {
        let scores: Vec<f32> = (0..5000).map(|i| ((i * 7919) % 5000) as f32 / 2000.0).collect();
        for share in [0.001, 0.1, 0.5, 0.9, 0.999, 1.0] {
            let mut found = candidates(&scores, None);
            let total = weigh(&mut found, 1.0).unwrap_or_default();
            let mut sorted = found.clone();
            sorted.sort_by(best_first);
            let sum = nucleus(&mut found, share * total);
            assert_eq!(found, sorted[..found.len()], "{share}");
            let without_last: f64 = found[..found.len() - 1].iter().map(|(_, weight)| weight).sum();
            assert!(without_last < share * total, "{share}");
            assert!(sum >= share * total * (1.0 - 1e-12), "{share}");
        }
    }

    #[test]
    fn a_seed_repeats_itself() {
        let scores = [0.0; 50];
        assert_eq!(sample(config(3), &scores, 20), sample(config(3), &scores, 20));
        assert_ne!(sample(config(3), &scores, 20), sample(config(4), &scores, 20));
    }
}
