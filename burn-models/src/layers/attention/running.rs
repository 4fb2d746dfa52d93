use crate::layers::vector::{Kernel, exp, widest};
use burn::tensor::{DType, Tensor};

/// What is done to scores before the softmax.
pub(super) trait Prepare {
    /// Changes the scores of a row; how many of them count. To be always inlined.
    fn prepare(&self, row: usize, scores: &mut [f32]) -> usize;
}

/// A softmax over blocks of columns, and its product with values, for some rows.
pub(super) struct Running {
    maxima: Vec<f32>,
    sums: Vec<f32>,
    products: Vec<f32>,
    width: usize,
}

impl Running {
    pub(super) fn new(rows: usize, width: usize) -> Self {
        Self { maxima: vec![f32::NEG_INFINITY; rows], sums: vec![0.0; rows], products: Vec::new(), width }
    }

    /// Takes in a block of scores and the values that belong to it.
    pub(super) fn add(&mut self, scores: Tensor<4>, values: Tensor<4>, rows: impl Prepare) {
        let device = scores.device();
        let mut scores = scores.into_data();
        let mut corrections = vec![0.0; self.maxima.len()];
        let Ok(all) = scores.as_mut_slice::<f32>() else { unreachable!("they were found to be f32") };
        widest(Softmax { scores: all, running: self, corrections: &mut corrections, rows });
        let product = Tensor::<4>::from_data(scores, (&device, DType::F32)).matmul(values).into_data();
        if self.products.is_empty() {
            let Ok(product) = product.try_into_vec::<f32>() else { unreachable!("they were found to be f32") };
            self.products = product;
            return;
        }
        let Ok(product) = product.as_slice::<f32>() else { unreachable!("they were found to be f32") };
        widest(Correct { old: &mut self.products, new: product, corrections: &corrections, width: self.width });
    }

    /// Divides by the sums and writes each row where `place` says.
    pub(super) fn write(&self, place: impl Fn(usize) -> usize, output: &mut [f32]) {
        for ((row, product), sum) in self.products.chunks_exact(self.width).enumerate().zip(&self.sums) {
            let start = place(row);
            let scale = 1.0 / sum;
            let output = &mut output[start..start + self.width];
            output.iter_mut().zip(product).for_each(|(output, value)| *output = value * scale);
        }
    }
}

/// The step of a softmax for each row: scores become exponentials, and what earlier blocks have to be multiplied by is
/// noted down.
struct Softmax<'a, P> {
    scores: &'a mut [f32],
    running: &'a mut Running,
    corrections: &'a mut [f32],
    rows: P,
}

impl<P: Prepare> Kernel for Softmax<'_, P> {
    #[inline(always)]
    fn run(self) {
        let columns = self.scores.len() / self.corrections.len();
        let Running { maxima, sums, .. } = self.running;
        let each = self.scores.chunks_exact_mut(columns).zip(maxima).zip(sums).zip(self.corrections);
        for (row, (((scores, maximum), sum), correction)) in each.enumerate() {
            let count = self.rows.prepare(row, scores);
            let (scores, rest) = scores.split_at_mut(count);
            let highest = largest(scores, *maximum);
            // so far nothing may have counted at all
            let base = if highest == f32::NEG_INFINITY { 0.0 } else { highest };
            *correction = exp_or_zero(*maximum - base);
            *sum = *sum * *correction + exponentials(scores, base);
            *maximum = highest;
            rest.fill(0.0);
        }
    }
}

/// `old * correction + new`, row by row.
struct Correct<'a> {
    old: &'a mut [f32],
    new: &'a [f32],
    corrections: &'a [f32],
    width: usize,
}

impl Kernel for Correct<'_> {
    #[inline(always)]
    fn run(self) {
        let rows = self.old.chunks_exact_mut(self.width).zip(self.new.chunks_exact(self.width));
        for ((old, new), correction) in rows.zip(self.corrections) {
            for (old, new) in old.iter_mut().zip(new) {
                *old = *old * correction + new;
            }
        }
    }
}

/// The largest of all values and `start`, in any order.
#[inline(always)]
fn largest(values: &[f32], start: f32) -> f32 {
    let (wide, rest) = values.as_chunks::<32>();
    let (narrow, rest) = rest.as_chunks::<8>();
    let start = rest.iter().copied().fold(start, larger);
    largest_of_chunks(narrow, largest_of_chunks(wide, start))
}

#[inline(always)]
fn largest_of_chunks<const LANES: usize>(chunks: &[[f32; LANES]], start: f32) -> f32 {
    let mut lanes = [start; LANES];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, *value);
        }
    }
    lanes.into_iter().fold(start, larger)
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

/// Replaces values by `exp(value - highest)`; their sum, in any order.
#[inline(always)]
fn exponentials(values: &mut [f32], highest: f32) -> f32 {
    let (wide, rest) = values.as_chunks_mut::<32>();
    let (narrow, rest) = rest.as_chunks_mut::<8>();
    let mut sum = exponentials_of_chunks(wide, highest) + exponentials_of_chunks(narrow, highest);
    for value in rest {
        *value = exp_or_zero(*value - highest);
        sum += *value;
    }
    sum
}

#[inline(always)]
fn exponentials_of_chunks<const LANES: usize>(chunks: &mut [[f32; LANES]], highest: f32) -> f32 {
    if chunks.is_empty() {
        return 0.0;
    }
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *value = exp_or_zero(*value - highest);
            *lane += *value;
        }
    }
    lanes.into_iter().fold(0.0, |sum, lane| sum + lane)
}

/// `exp`, and nothing at all where that would not be a normal number: what is masked has no weight.
#[inline(always)]
fn exp_or_zero(x: f32) -> f32 {
    let found = exp(x);
    if x < -87.0 { 0.0 } else { found }
}
