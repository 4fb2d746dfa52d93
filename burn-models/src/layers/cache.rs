use crate::error::ForwardError;
use burn::tensor::{DType, Tensor};
use std::fmt::Debug;

/// Buffers grow in steps of this many tokens at least.
const STEP: usize = 64;

/// The keys and values of the tokens that a model has seen.
///
/// A cache moves into a forward pass and comes back in its output. Then nobody else holds its buffers, so new tokens
/// are written in place, into room that doubles when it runs out. A clone is a separate cache: it shares memory until
/// one of both grows. Layers with a sliding window keep only what the window can still reach.
#[derive(Clone, Debug)]
pub struct Cache {
    layers: Vec<CacheLayer>,
}

impl Cache {
    /// An empty cache for layers that look back as far as `windows` says; `None`: to the first token.
    pub fn new(windows: impl IntoIterator<Item = Option<usize>>) -> Self {
        let layers = windows.into_iter().map(CacheLayer::new).collect();
        Self { layers }
    }

    /// How many tokens of each sequence it has seen.
    pub fn sequence_length(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.seen)
    }

    /// How many sequences it holds, once it holds any.
    pub fn batch_size(&self) -> Option<usize> {
        self.layers.first().and_then(CacheLayer::batch_size)
    }

    /// Its layers.
    pub fn layers(&self) -> &[CacheLayer] {
        &self.layers
    }

    /// Adds the keys and values of new tokens to layer `layer`, and gives back all that its attention looks at.
    ///
    /// A layer that the cache does not have keeps nothing: it gets back what it gave.
    ///
    /// # Shapes
    ///
    /// - `keys`, `values`: `[batch, key heads, new tokens, head size]`
    /// - output: the same with the tokens that are kept in front
    pub fn update(&mut self, layer: usize, keys: Tensor<4>, values: Tensor<4>) -> (Tensor<4>, Tensor<4>) {
        match self.layers.get_mut(layer) {
            Some(layer) => layer.update(keys, values),
            None => (keys, values),
        }
    }

    /// The keys and values that layer `layer` computed from an encoder's output: those of an earlier call, or else what
    /// `compute` gives, which is kept for the next.
    ///
    /// # Shapes
    ///
    /// - `compute`, output: twice `[batch, key heads, source, head size]`
    pub fn of_encoder(&mut self, layer: usize, compute: impl FnOnce() -> [Tensor<4>; 2]) -> [Tensor<4>; 2] {
        match self.layers.get_mut(layer) {
            Some(layer) => layer.of_encoder.get_or_insert_with(compute).clone(),
            None => compute(),
        }
    }

    /// How many positions the encoder's output had from which it holds keys and values, if it does.
    pub fn source_length(&self) -> Option<usize> {
        let [keys, _] = self.layers.first()?.of_encoder.as_ref()?;
        Some(keys.dims()[2])
    }

    /// Checks that it fits a batch and a model.
    pub(crate) fn check(&self, fits: &CacheFits<'_>) -> Result<(), ForwardError> {
        let same = |what, found: &dyn Debug, expected: &dyn Debug| {
            let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
            if found == expected { Ok(()) } else { Err(ForwardError::Cache { what, found, expected }) }
        };
        same("layers", &self.layers.len(), &fits.windows.len())?;
        for (layer, window) in self.layers.iter().zip(fits.windows) {
            same("as the window of a layer", &layer.window, window)?;
            if let Some((keys, _)) = &layer.buffers {
                let [batch, key_heads, _, size] = keys.dims();
                same("sequences", &batch, &fits.batch)?;
                same("key heads", &key_heads, &fits.key_heads)?;
                same("values in a head", &size, &fits.head_dim)?;
                same("as its element type", &keys.dtype(), &fits.dtype)?;
            }
            if let Some([keys, _]) = &layer.of_encoder {
                let [batch, key_heads, source, size] = keys.dims();
                let looked_at = if fits.has_encoder { fits.source.unwrap_or(source) } else { 0 };
                same("positions of an encoder", &source, &looked_at)?;
                same("sequences of an encoder", &batch, &fits.batch)?;
                same("key heads for an encoder", &key_heads, &fits.key_heads)?;
                same("values in a head for an encoder", &size, &fits.head_dim)?;
                same("as the element type of an encoder", &keys.dtype(), &fits.dtype)?;
            }
        }
        let expected = self.sequence_length();
        match self.layers.iter().position(|layer| layer.seen != expected) {
            Some(layer) => Err(ForwardError::CacheInconsistent { layer, found: self.layers[layer].seen, expected }),
            None => Ok(()),
        }
    }
}

/// What a cache has to fit.
#[derive(Debug)]
pub(crate) struct CacheFits<'a> {
    pub(crate) batch: usize,
    pub(crate) windows: &'a [Option<usize>],
    pub(crate) key_heads: usize,
    pub(crate) head_dim: usize,
    pub(crate) dtype: DType,
    /// Whether the model looks at an encoder, with as many heads of that size.
    pub(crate) has_encoder: bool,
    /// How many positions the encoder's output has, if one is given.
    pub(crate) source: Option<usize>,
}

/// One layer's part of a [`Cache`].
#[derive(Clone, Debug)]
pub struct CacheLayer {
    window: Option<usize>,
    /// Tokens seen so far, kept or not.
    seen: usize,
    /// The buffers, `[batch, key heads, room, head size]`, and where in the third dimension the kept tokens lie.
    buffers: Option<(Tensor<4>, Tensor<4>)>,
    start: usize,
    end: usize,
    /// The keys and values of an encoder's output, `[batch, key heads, source, head size]` each.
    of_encoder: Option<[Tensor<4>; 2]>,
}

impl CacheLayer {
    fn new(window: Option<usize>) -> Self {
        Self { window, seen: 0, buffers: None, start: 0, end: 0, of_encoder: None }
    }

    /// How far back the layer looks; `None`: to the first token.
    pub fn window(&self) -> Option<usize> {
        self.window
    }

    /// How many tokens it has seen.
    pub fn seen(&self) -> usize {
        self.seen
    }

    /// The keys and values that the next token will look at, `[batch, key heads, kept, head size]`.
    pub fn kept(&self) -> Option<(Tensor<4>, Tensor<4>)> {
        let (keys, values) = self.buffers.as_ref()?;
        let from = self.end - self.reach();
        let part = |buffer: &Tensor<4>| buffer.clone().slice_dim(2, from..self.end);
        Some((part(keys), part(values)))
    }

    /// The keys and values of an encoder's output, `[batch, key heads, source, head size]`, if it holds some.
    pub fn of_encoder(&self) -> Option<[Tensor<4>; 2]> {
        self.of_encoder.clone()
    }

    fn batch_size(&self) -> Option<usize> {
        self.buffers.as_ref().map(|(keys, _)| keys.dims()[0])
    }

    /// How many of the kept tokens the next one can look at.
    fn reach(&self) -> usize {
        let kept = self.end - self.start;
        self.window.map_or(kept, |window| kept.min(window.saturating_sub(1)))
    }

    fn update(&mut self, keys: Tensor<4>, values: Tensor<4>) -> (Tensor<4>, Tensor<4>) {
        let new = keys.dims()[2];
        self.seen += new;
        let Some((old_keys, old_values)) = self.buffers.take() else {
            // The first tokens become the buffer as they are: a pass that is never continued copies nothing.
            (self.start, self.end) = (0, new);
            self.buffers = Some((keys.clone(), values.clone()));
            return (keys, values);
        };

        let reach = self.reach();
        let from = self.end - reach;
        let room = old_keys.dims()[2];
        let (old_keys, old_values, from) = if self.end + new > room {
            let moved = |buffer| moved(buffer, from..self.end, new);
            (moved(old_keys), moved(old_values), 0)
        } else {
            (old_keys, old_values, from)
        };
        let middle = from + reach;
        self.start = from;
        self.end = middle + new;
        let keys = written(old_keys, keys, middle..self.end);
        let values = written(old_values, values, middle..self.end);
        let view = |buffer: &Tensor<4>| buffer.clone().slice_dim(2, from..self.end);
        let views = (view(&keys), view(&values));
        self.buffers = Some((keys, values));
        views
    }
}

/// A larger buffer that begins with the `kept` part of `buffer` and has room for `new` tokens and as much again.
fn moved(buffer: Tensor<4>, kept: std::ops::Range<usize>, new: usize) -> Tensor<4> {
    let [batch, heads, _, size] = buffer.dims();
    let needed = kept.len() + new;
    let room = (2 * needed).next_multiple_of(STEP);
    let larger = Tensor::zeros([batch, heads, room, size], (&buffer.device(), buffer.dtype()));
    if kept.is_empty() {
        return larger;
    }
    let length = kept.len();
    written(larger, buffer.slice_dim(2, kept), 0..length)
}

fn written(buffer: Tensor<4>, values: Tensor<4>, at: std::ops::Range<usize>) -> Tensor<4> {
    let [batch, heads, _, size] = buffer.dims();
    buffer.slice_assign([0..batch, 0..heads, at, 0..size], values)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::{Device, Int};

    /// Keys and values that name their positions: `[1, 1, tokens, 1]`.
    fn tokens(range: std::ops::Range<i64>) -> Tensor<4> {
        let length = range.clone().count();
        Tensor::<1, Int>::arange(range, &Device::flex()).float().reshape([1, 1, length, 1])
    }

    fn values(tensor: &Tensor<4>) -> Vec<i64> {
        tensor.to_data().iter::<i64>().collect()
    }

    /// Feeds `steps` tokens at a time and checks what attention gets.
    fn check(window: Option<usize>, steps: &[usize]) {
        let mut cache = Cache::new([window]);
        let mut seen = 0;
        for step in steps {
            let next = seen + *step as i64;
            let (keys, vals) = cache.update(0, tokens(seen..next), tokens(seen..next));
            let reach = window.map_or(seen, |w| seen.min(w as i64 - 1));
            let expected: Vec<i64> = (seen - reach..next).collect();
            assert_eq!(values(&keys), expected, "window {window:?}, after {seen}");
            assert_eq!(values(&vals), expected);
            seen = next;
            assert_eq!(cache.sequence_length(), seen as usize);
        }
    }

    #[test]
    fn attention_sees_everything_or_the_window() {
        for window in [None, Some(1), Some(3), Some(64), Some(100)] {
            check(window, &[1; 200]);
            check(window, &[70, 1, 1, 1, 130, 1, 1, 64, 1]);
            check(window, &[2, 3, 5, 7, 11, 200, 1, 1]);
        }
    }

    #[test]
    fn a_clone_is_separate() {
        let mut one = Cache::new([None]);
        one.update(0, tokens(0..3), tokens(0..3));
        one.update(0, tokens(3..4), tokens(3..4));
        let mut two = one.clone();
        let (left, _) = one.update(0, tokens(10..11), tokens(10..11));
        let (right, _) = two.update(0, tokens(20..21), tokens(20..21));
        assert_eq!(values(&left), [0, 1, 2, 3, 10]);
        assert_eq!(values(&right), [0, 1, 2, 3, 20]);
    }

    #[test]
    fn a_window_does_not_keep_everything() {
        let mut cache = Cache::new([Some(8)]);
        for step in 0..1000 {
            cache.update(0, tokens(step..step + 1), tokens(step..step + 1));
        }
        let (keys, _) = cache.layers()[0].buffers.clone().unwrap_or_else(|| unreachable!());
        assert!(keys.dims()[2] <= 64, "{:?}", keys.dims());
    }

    #[test]
    fn what_an_encoder_gave_is_computed_once() {
        let mut cache = Cache::new([None, None]);
        assert_eq!(cache.source_length(), None);
        let [keys, _] = cache.of_encoder(0, || [tokens(0..3), tokens(3..6)]);
        assert_eq!(values(&keys), [0, 1, 2]);
        let [keys, vals] = cache.of_encoder(0, || unreachable!("it is there"));
        assert_eq!((values(&keys), values(&vals)), (vec![0, 1, 2], vec![3, 4, 5]));
        assert_eq!((cache.source_length(), cache.sequence_length()), (Some(3), 0));
    }

    fn fits(batch: usize, windows: &[Option<usize>]) -> CacheFits<'_> {
        let (dtype, has_encoder) = (DType::F32, true);
        CacheFits { batch, windows, key_heads: 1, head_dim: 1, dtype, has_encoder, source: None }
    }

    /// What does not fit.
    fn what(result: Result<(), ForwardError>) -> &'static str {
        match result {
            Err(ForwardError::Cache { what, .. }) => what,
            Err(ForwardError::CacheInconsistent { layer: 1, .. }) => "inconsistent",
            _ => "nothing",
        }
    }

    #[test]
    fn what_was_made_of_another_encoder_is_an_error() {
        let mut cache = Cache::new([None]);
        cache.of_encoder(0, || [tokens(0..3), tokens(3..6)]);
        let check = |fits: CacheFits<'_>| what(cache.check(&fits));
        let plain = || fits(1, &[None]);
        assert_eq!(check(plain()), "nothing");
        assert_eq!(check(CacheFits { source: Some(3), ..plain() }), "nothing");
        assert_eq!(check(CacheFits { source: Some(4), ..plain() }), "positions of an encoder");
        assert_eq!(check(CacheFits { has_encoder: false, ..plain() }), "positions of an encoder");
        assert_eq!(check(fits(2, &[None])), "sequences of an encoder");
        assert_eq!(check(CacheFits { key_heads: 2, ..plain() }), "key heads for an encoder");
        assert_eq!(check(CacheFits { head_dim: 2, ..plain() }), "values in a head for an encoder");
        assert_eq!(check(CacheFits { dtype: DType::F64, ..plain() }), "as the element type of an encoder");
    }

    #[test]
    fn another_batch_or_model_is_an_error() {
        let mut cache = Cache::new([None, None]);
        assert_eq!(what(cache.check(&fits(3, &[None, None]))), "nothing");
        assert_eq!(what(cache.check(&fits(3, &[None]))), "layers");
        assert_eq!(what(cache.check(&fits(3, &[None, Some(4)]))), "as the window of a layer");
        cache.update(0, tokens(0..1), tokens(0..1));
        assert_eq!(what(cache.check(&fits(3, &[None, None]))), "sequences");
        assert_eq!(what(cache.check(&CacheFits { key_heads: 2, ..fits(1, &[None, None]) })), "key heads");
        assert_eq!(
            what(cache.check(&CacheFits { dtype: DType::F64, ..fits(1, &[None, None]) })),
            "as its element type"
        );
        assert_eq!(what(cache.check(&fits(1, &[None, None]))), "inconsistent");
    }
}
