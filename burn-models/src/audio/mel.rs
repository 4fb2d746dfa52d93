//! Filters that sum up a power spectrum into mel bins.

/// The highest frequency that the filters reach, in Hz.
const MAX_FREQUENCY: f64 = 8000.0;

/// Slaney's mel scale: linear below, logarithmic from here on.
const LOG_FROM_HERTZ: f64 = 1000.0;
const LOG_FROM_MEL: f64 = 15.0;
const HERTZ_PER_MEL: f64 = 200.0 / 3.0;

/// How many mels above `LOG_FROM_MEL` multiply the frequency by e.
fn mels_per_e() -> f64 {
    27.0 / 6.4_f64.ln()
}

fn hertz_to_mel(hertz: f64) -> f64 {
    if hertz < LOG_FROM_HERTZ {
        hertz / HERTZ_PER_MEL
    } else {
        LOG_FROM_MEL + (hertz / LOG_FROM_HERTZ).ln() * mels_per_e()
    }
}

fn mel_to_hertz(mel: f64) -> f64 {
    if mel < LOG_FROM_MEL { mel * HERTZ_PER_MEL } else { LOG_FROM_HERTZ * ((mel - LOG_FROM_MEL) / mels_per_e()).exp() }
}

/// One triangle over the frequencies of a spectrum.
#[derive(Clone, Debug)]
struct MelFilter {
    /// The first frequency that counts.
    start: usize,
    /// How much it and those after it count.
    weights: Vec<f64>,
}

/// Triangles of equal area whose corners have equal distances on Slaney's mel scale, from 0 to 8000 Hz.
///
/// Only what is not zero is kept: two weights for each frequency, however many filters there are.
#[derive(Clone, Debug)]
pub(super) struct MelFilterBank(Vec<MelFilter>);

impl MelFilterBank {
    /// `filters` filters for spectra of `frequencies` values, from 0 Hz to half of `sampling_rate`.
    pub(super) fn new(filters: usize, frequencies: usize, sampling_rate: u32) -> Self {
        let step = hertz_to_mel(MAX_FREQUENCY) / (filters + 1) as f64;
        let corner = |index: usize| mel_to_hertz(step * index as f64);
        // Whole Hz, as in the reference.
        let width = f64::from(sampling_rate / 2) / frequencies.saturating_sub(1).max(1) as f64;
        let filter = |index: usize| {
            let (left, middle, right) = (corner(index), corner(index + 1), corner(index + 2));
            let scale = 2.0 / (right - left);
            let start = (left / width).ceil().min(frequencies as f64) as usize;
            let weights = (start..frequencies)
                .map(|frequency| frequency as f64 * width)
                .take_while(|hertz| *hertz < right)
                .map(|hertz| {
                    let (up, down) = ((hertz - left) / (middle - left), (right - hertz) / (right - middle));
                    scale * up.min(down).max(0.0)
                })
                .collect();
            MelFilter { start, weights }
        };
        Self((0..filters).map(filter).collect())
    }

    /// What each filter lets through of a power spectrum, in order.
    pub(super) fn apply<'a>(&'a self, power: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        self.0.iter().map(|filter| {
            let power = power.get(filter.start..).unwrap_or_default();
            filter.weights.iter().zip(power).map(|(weight, power)| weight * power).sum()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{MelFilterBank, hertz_to_mel, mel_to_hertz};

    #[test]
    fn the_scale_goes_both_ways() {
        for hertz in [0.0, 1.0, 440.0, 999.9, 1000.0, 1000.1, 4000.0, 8000.0] {
            assert!((mel_to_hertz(hertz_to_mel(hertz)) - hertz).abs() < 1e-9, "{hertz}");
        }
        assert!((hertz_to_mel(500.0) - 7.5).abs() < 1e-12);
        assert!((hertz_to_mel(6400.0) - 42.0).abs() < 1e-12);
    }

    #[test]
    fn every_filter_has_the_same_area() {
        let bank = MelFilterBank::new(20, 4001, 16_000);
        // with 2 Hz between frequencies the sum is the area, but for what the corners cut off
        for (index, area) in bank.apply(&vec![2.0; 4001]).enumerate() {
            assert!((area - 1.0).abs() < 1e-3, "{index}: {area}");
        }
    }

    #[test]
    fn filters_beyond_the_spectrum_are_empty() {
        let bank = MelFilterBank::new(80, 129, 4000);
        let passed: Vec<f64> = bank.apply(&[1.0; 129]).collect();
        assert_eq!(passed.len(), 80);
        assert!(passed[10] > 0.0);
        assert_eq!(passed[79], 0.0);
    }
}
