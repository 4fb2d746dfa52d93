//! Attention on burn-flex in tiles that stay in the caches.
//!
//! Burn's fused attention computes exponentials one at a time, and gives single heads of short sequences to its matrix
//! product one by one. Here a tile of queries meets a block of keys at a time, with running maxima and sums, so that
//! scores never leave the caches; heads of short sequences are taken together. Products are flex's own.

use super::Attention;
use super::bias::Bias;
use super::running::{Prepare, Running};
use crate::layers::memory::keep_for_results;
use burn::tensor::{DType, Tensor, TensorData};
use rayon::prelude::*;

/// Keys of a block.
const KEYS: usize = 512;
/// Queries of a tile, at most.
const QUERIES: usize = 192;
/// Multiplications of one call of a matrix product that flex keeps on the calling thread: of one matrix, and of
/// several.
const SINGLE: usize = 192 * 192 * 192 - 1;
const SEVERAL: usize = 128 * 128 * 128 - 1;

/// Numbers of a call.
#[derive(Clone, Copy)]
struct Sizes {
    heads: usize,
    /// Query heads for each key head.
    group: usize,
    queries: usize,
    keys: usize,
    size: usize,
    value_size: usize,
    scaling: f32,
    is_causal: bool,
}

/// Heads and rows that are computed together, with the part of the output that is theirs.
struct Unit<'a> {
    batch: usize,
    batches: usize,
    query: usize,
    queries: usize,
    output: &'a mut [f32],
}

/// Whether all is of the type that this is for.
pub(super) fn is_for(inputs: &Attention) -> bool {
    let biases = [&inputs.mask.bias, &inputs.position_bias].into_iter().flatten();
    let [_, heads, queries, size] = inputs.query.dims();
    let [batch, key_heads, keys, value_size] = inputs.value.dims();
    let mut types = biases.map(Tensor::dtype).chain([&inputs.query, &inputs.key, &inputs.value].map(Tensor::dtype));
    let has_values = [batch, heads, queries, size, key_heads, keys, value_size].into_iter().all(|number| number > 0);
    let has_order = !inputs.mask.is_causal || queries <= keys;
    types.all(|dtype| dtype == DType::F32) && has_order && has_values && heads.is_multiple_of(key_heads)
}

/// `softmax(query * key^T * scaling + bias) * value`: `[batch, heads, queries, value size]`.
pub(super) fn tiled_attention(inputs: Attention) -> Tensor<4> {
    keep_for_results();
    let device = inputs.query.device();
    let [batch, heads, queries, size] = inputs.query.dims();
    let [_, key_heads, keys, value_size] = inputs.value.dims();
    let sizes = Sizes {
        heads,
        group: heads / key_heads,
        queries,
        keys,
        size,
        value_size,
        scaling: inputs.scaling as f32,
        is_causal: inputs.mask.is_causal && inputs.mask.bias.is_none(),
    };
    let biases: Vec<Bias> = [inputs.mask.bias, inputs.position_bias].into_iter().flatten().map(Bias::new).collect();
    let mut output = vec![0.0; batch * queries * heads * value_size];
    let compute = |unit: Unit| sizes.compute([&inputs.query, &inputs.key, &inputs.value], &biases, unit);
    sizes.units(batch, &mut output).into_par_iter().with_max_len(1).for_each(compute);
    // heads next to each other are what follows
    let output = TensorData::new(output, [batch, queries, heads, value_size]);
    Tensor::from_data(output, (&device, DType::F32)).swap_dims(1, 2)
}

impl Sizes {
    /// Multiplications for a query.
    fn width(&self) -> usize {
        self.keys.min(KEYS) * self.size.max(self.value_size)
    }

    /// Some batches as a whole, or tiles of one.
    fn units<'a>(&self, batch: usize, output: &'a mut [f32]) -> Vec<Unit<'a>> {
        let threads = rayon::current_num_threads();
        let row = self.heads * self.value_size;
        let whole = self.heads * self.queries * self.width();
        if self.is_whole() {
            // as many as one call takes, unless threads would be left without any
            let batches = (SEVERAL / whole.max(1)).min(batch.div_ceil(threads)).max(1);
            let chunks = output.chunks_mut(batches * self.queries * row).enumerate();
            let unit = |(index, output): (usize, &'a mut [f32])| Unit {
                batch: index * batches,
                batches: output.len() / (self.queries * row),
                query: 0,
                queries: self.queries,
                output,
            };
            return chunks.map(unit).collect();
        }
        let most = (SINGLE / self.width()).clamp(1, QUERIES);
        let tiles = self.queries.div_ceil(most).max((2 * threads).div_ceil(batch).min(self.queries.div_ceil(32)));
        let tile = self.queries.div_ceil(tiles);
        let tiles = |(batch, output): (usize, &'a mut [f32])| {
            let chunks = output.chunks_mut(tile * row).enumerate();
            let unit = move |(index, output): (usize, &'a mut [f32])| Unit {
                batch,
                batches: 1,
                query: index * tile,
                queries: output.len() / row,
                output,
            };
            chunks.map(unit)
        };
        output.chunks_mut(self.queries * row).enumerate().flat_map(tiles).collect()
    }

    /// Whether a head's queries are one tile and its keys one block, and no keys are shared: then several heads can be
    /// one call.
    fn is_whole(&self) -> bool {
        self.group == 1 && self.keys <= KEYS && self.queries <= QUERIES && self.queries * self.width() <= SEVERAL
    }

    fn compute(&self, [query, key, value]: [&Tensor<4>; 3], biases: &[Bias], unit: Unit) {
        let Unit { batch, batches, query: first, queries, output } = unit;
        let together = match self.is_whole() {
            true => (SEVERAL / (batches * queries * self.width())).clamp(1, self.heads),
            false => 1,
        };
        let batch_range = batch..batch + batches;
        for head in (0..self.heads).step_by(together) {
            let heads = together.min(self.heads - head);
            let key_head = head / self.group;
            let query = query.clone().slice([batch_range.clone(), head..head + heads, first..first + queries]);
            let mut softmax = Running::new(batches * heads * queries, self.value_size);
            for block in (0..self.keys).step_by(KEYS) {
                let end = (block + KEYS).min(self.keys);
                if self.is_causal && self.limit(first + queries - 1) <= block {
                    break;
                }
                let part =
                    |x: &Tensor<4>| x.clone().slice([batch_range.clone(), key_head..key_head + heads, block..end]);
                let scores = query.clone().matmul(part(key).swap_dims(2, 3));
                let place = [batch, head, first, block];
                let rows = Rows { sizes: self, biases, heads, queries, place };
                softmax.add(scores, part(value), rows);
            }
            softmax.write(
                |row| {
                    let (pair, query) = (row / queries, row % queries);
                    ((pair / heads * queries + query) * self.heads + head + pair % heads) * self.value_size
                },
                output,
            );
        }
    }

    /// How many keys a query may look at in causal order.
    fn limit(&self, query: usize) -> usize {
        (query + 1 + self.keys).saturating_sub(self.queries)
    }
}

/// The rows of some heads' scores for a block of keys.
#[derive(Clone, Copy)]
struct Rows<'a> {
    sizes: &'a Sizes,
    biases: &'a [Bias],
    heads: usize,
    queries: usize,
    /// The first batch, head, query and key.
    place: [usize; 4],
}

impl Prepare for Rows<'_> {
    /// Scales the scores of a row and adds what is to be added.
    #[inline(always)]
    fn prepare(&self, row: usize, scores: &mut [f32]) -> usize {
        for score in &mut *scores {
            *score *= self.sizes.scaling;
        }
        let [batch, head, query, block] = self.place;
        let (pair, query) = (row / self.queries, query + row % self.queries);
        for bias in self.biases {
            bias.add_to(scores, [batch + pair / self.heads, head + pair % self.heads, query, block]);
        }
        let limit = if self.sizes.is_causal { self.sizes.limit(query) } else { self.sizes.keys };
        limit.saturating_sub(block).min(scores.len())
    }
}
