//! Power spectra of overlapping windows.

use super::AudioError;
use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use std::f64::consts::TAU;
use std::sync::Arc;

/// The short-time Fourier transform with a periodic Hann window and mirrored ends.
///
/// It is computed in double precision: the quietest values that count lie eight orders of magnitude below the loudest, where
/// single precision is visible in the logarithm.
#[derive(Clone)]
pub(super) struct PowerSpectrogram {
    window: Vec<f64>,
    hop_length: usize,
    transform: Arc<dyn RealToComplex<f64>>,
}

impl PowerSpectrogram {
    /// Spectra of `n_fft` samples each, `hop_length` samples apart.
    pub(super) fn new(n_fft: usize, hop_length: usize) -> Self {
        let window = (0..n_fft).map(|i| 0.5 - 0.5 * (TAU * i as f64 / n_fft as f64).cos()).collect();
        Self { window, hop_length, transform: RealFftPlanner::new().plan_fft_forward(n_fft) }
    }

    /// The number of frequencies of a spectrum.
    pub(super) fn frequencies(&self) -> usize {
        self.window.len() / 2 + 1
    }

    /// Gives the first `frames` spectra of `samples` to `each`, with their index. Spectrum 0 has sample 0 in its middle.
    ///
    /// A spectrum is `None` if all its samples are zero: most of a chunk may be padding.
    pub(super) fn for_each(
        &self,
        samples: &[f32],
        frames: usize,
        mut each: impl FnMut(usize, Option<&[f64]>),
    ) -> Result<(), AudioError> {
        let padded = mirror(samples, self.window.len() / 2);
        let mut windowed = self.transform.make_input_vec();
        let mut spectrum = self.transform.make_output_vec();
        let mut scratch = self.transform.make_scratch_vec();
        let mut power = vec![0.0; self.frequencies()];
        let spans = padded.windows(self.window.len()).step_by(self.hop_length).take(frames);
        for (frame, span) in spans.enumerate() {
            if span.iter().all(|sample| *sample == 0.0) {
                each(frame, None);
                continue;
            }
            for (to, (sample, weight)) in windowed.iter_mut().zip(span.iter().zip(&self.window)) {
                *to = f64::from(*sample) * weight;
            }
            self.transform
                .process_with_scratch(&mut windowed, &mut spectrum, &mut scratch)
                .map_err(|source| AudioError::Transform { source: Box::new(source) })?;
            for (power, value) in power.iter_mut().zip(&spectrum) {
                *power = Complex::norm_sqr(value);
            }
            each(frame, Some(&power));
        }
        Ok(())
    }
}

/// `samples` with `count` more at each end, mirrored at the first and at the last sample, which are not repeated.
fn mirror(samples: &[f32], count: usize) -> Vec<f32> {
    let before = samples.iter().skip(1).take(count).rev();
    let after = samples.iter().rev().skip(1).take(count);
    before.chain(samples).chain(after).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::{PowerSpectrogram, mirror};

    #[test]
    fn ends_are_mirrored() {
        assert_eq!(mirror(&[1.0, 2.0, 3.0, 4.0], 2), [3.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 2.0]);
    }

    #[test]
    fn a_tone_is_at_its_frequency() {
        for n_fft in [16, 15] {
            let samples: Vec<f32> =
                (0..4 * n_fft).map(|i| (std::f32::consts::TAU * 3.0 * i as f32 / n_fft as f32).cos()).collect();
            let mut count = 0;
            let spectrogram = PowerSpectrogram::new(n_fft, n_fft);
            spectrogram
                .for_each(&samples, 3, |frame, power| {
                    let power = power.expect("not silent");
                    assert_eq!(power.len(), 8 + (n_fft % 2 == 0) as usize);
                    // half of the window's sum, and the window's spectrum has two neighbours of half the height
                    let (middle, side) = ((n_fft as f64 / 4.0).powi(2), (n_fft as f64 / 8.0).powi(2));
                    for (frequency, expected) in [(0, 0.0), (2, side), (3, middle), (4, side), (6, 0.0)] {
                        let found = power[frequency];
                        assert!(frame == 0 || (found - expected).abs() < 1e-4, "{frame}, {frequency}: {found}");
                    }
                    count += 1;
                })
                .expect("transforms");
            assert_eq!(count, 3);
        }
    }
}
