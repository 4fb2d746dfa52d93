use burn::tensor::{Bool, DType, Device, Int, Tensor};

/// Which keys each query may look at, as an attention function takes it.
#[derive(Clone, Debug, Default)]
pub struct AttentionMask {
    /// Added to the scores: `[batch or 1, 1, query, key]`, zero where a query may look and the most negative finite
    /// number where not.
    ///
    /// Finite, so that a query which may look at nothing (padding on the left) looks at everything alike, as in the
    /// reference, and does not give NaN.
    pub bias: Option<Tensor<4>>,
    /// Without a bias: whether the last query looks at all keys, the one before at all but the last, and so on.
    pub is_causal: bool,
}

impl AttentionMask {
    /// Every query looks at every key.
    pub fn none() -> Self {
        Self::default()
    }

    /// Every query looks at its own key and those before it.
    pub fn causal() -> Self {
        Self { bias: None, is_causal: true }
    }

    /// By a tensor that is added to the scores.
    pub fn biased(bias: Tensor<4>) -> Self {
        Self { bias: Some(bias), is_causal: false }
    }
}

/// What a mask function is told; see [`eager_mask`] and [`sdpa_mask`].
#[derive(Clone, Debug)]
pub struct MaskRequest {
    /// The number of sequences.
    pub batch: usize,
    /// The number of queries.
    pub query_length: usize,
    /// The number of keys.
    pub key_length: usize,
    /// The position of the first query.
    pub query_offset: usize,
    /// The position of the first key; not zero where a sliding window dropped older keys.
    pub key_offset: usize,
    /// Whether a query may only look at its own position and those before.
    pub is_causal: bool,
    /// How far a query looks back, its own position included.
    pub window: Option<usize>,
    /// `[batch, key]`, zero where a key is padding.
    pub padding: Option<Tensor<2, Int>>,
    /// `[batch or 1, key]`, alike for tokens of one sequence, where several were put into one row; then there are as
    /// many keys as queries.
    pub segments: Option<Tensor<2, Int>>,
    /// The dtype of the scores.
    pub dtype: DType,
    /// Where the scores are computed.
    pub device: Device,
}

impl MaskRequest {
    /// The same for a layer whose cache holds the last `keys` keys only, and which looks back as far as `window` says.
    pub(crate) fn for_layer(&self, window: Option<usize>, keys: usize) -> Self {
        let all = self.key_offset + self.key_length;
        let first = all.saturating_sub(keys);
        let padding = self.padding.clone().map(|mask| mask.slice_dim(1, first..all));
        Self { key_length: keys, key_offset: first, window, padding, ..self.clone() }
    }

    /// Whether the window hides anything at all.
    fn is_windowed(&self) -> bool {
        self.window.is_some_and(|window| self.key_length > window)
    }

    /// Whether every query may look at every key.
    fn hides_nothing(&self) -> bool {
        let all_are_past = !self.is_causal || self.query_length == 1;
        self.padding.is_none() && self.segments.is_none() && all_are_past && !self.is_windowed()
    }

    /// The mask as a tensor of `[batch or 1, 1, query, key]` to add to the scores.
    ///
    /// Tensor operations only, with no value read back, so that a model also runs on devices that do not compute.
    pub fn bias(&self) -> Tensor<4> {
        let (queries, keys) = (self.query_length, self.key_length);
        let range = |start: usize, length: usize| start as i64..(start + length) as i64;
        let at_query = Tensor::<1, Int>::arange(range(self.query_offset, queries), &self.device)
            .reshape([1, 1, queries, 1])
            .expand([1, 1, queries, keys]);
        let at_key = Tensor::<1, Int>::arange(range(self.key_offset, keys), &self.device)
            .reshape([1, 1, 1, keys])
            .expand([1, 1, queries, keys]);

        let mut hidden: Vec<Tensor<4, Bool>> = Vec::new();
        if self.is_causal {
            hidden.push(at_key.clone().greater(at_query.clone()));
        }
        if let Some(window) = self.window
            && self.is_windowed()
        {
            hidden.push(at_key.lower_equal(at_query - window as i64));
        }
        if let Some(segments) = &self.segments {
            let [rows, _] = segments.dims();
            let of_query = segments.clone().reshape([rows, 1, queries, 1]).expand([rows, 1, queries, keys]);
            let of_key = segments.clone().reshape([rows, 1, 1, keys]).expand([rows, 1, queries, keys]);
            hidden.push(of_query.not_equal(of_key));
        }
        if let Some(padding) = &self.padding {
            let [rows, _] = padding.dims();
            let padded = padding.clone().equal_scalar(0).reshape([rows, 1, 1, keys]);
            hidden.push(padded.expand([rows, 1, queries, keys]));
        }
        let batch = hidden.iter().map(|part| part.dims()[0]).max().unwrap_or(1);
        let hidden = hidden.into_iter().map(|part| part.expand([batch, 1, queries, keys]));
        let hidden = hidden.reduce(Tensor::bool_or);

        let bias = Tensor::zeros([batch, 1, queries, keys], (&self.device, self.dtype));
        let lowest = self.dtype.finfo().map_or(f64::from(f32::MIN), |info| info.min);
        match hidden {
            Some(hidden) => bias.mask_fill(hidden, lowest),
            None => bias,
        }
    }
}

/// The mask function of `eager`: always a tensor where anything is hidden.
pub fn eager_mask(request: &MaskRequest) -> AttentionMask {
    if request.hides_nothing() {
        return AttentionMask::none();
    }
    AttentionMask::biased(request.bias())
}

/// The mask function of `sdpa`: no tensor where the kernel's own causal order says the same.
pub fn sdpa_mask(request: &MaskRequest) -> AttentionMask {
    if request.hides_nothing() {
        return AttentionMask::none();
    }
    let bottom_right = request.query_offset + request.query_length == request.key_offset + request.key_length;
    let is_plain = request.padding.is_none() && request.segments.is_none() && !request.is_windowed();
    if is_plain && request.is_causal && bottom_right {
        return AttentionMask::causal();
    }
    AttentionMask::biased(request.bias())
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    fn request(query_length: usize, past: usize) -> MaskRequest {
        MaskRequest {
            batch: 1,
            query_length,
            key_length: query_length + past,
            query_offset: past,
            key_offset: 0,
            is_causal: true,
            window: None,
            padding: None,
            segments: None,
            dtype: DType::F32,
            device: Device::flex(),
        }
    }

    /// `1` where a query may look.
    fn allowed(mask: &AttentionMask) -> Vec<u8> {
        let bias = mask.bias.clone().map(|bias| bias.to_data());
        let bias = bias.map(|bias| bias.iter::<f32>().map(|b| u8::from(b == 0.0)).collect());
        bias.unwrap_or_default()
    }

    #[test]
    fn causal_with_a_past() {
        assert_eq!(allowed(&eager_mask(&request(2, 2))), [1, 1, 1, 0, 1, 1, 1, 1]);
        let fused = sdpa_mask(&request(2, 2));
        assert!(fused.is_causal && fused.bias.is_none());
        let single = eager_mask(&request(1, 5));
        assert!(!single.is_causal && single.bias.is_none());
    }

    #[test]
    fn a_window_hides_what_is_too_far_back() {
        let windowed = MaskRequest { window: Some(2), ..request(3, 0) };
        assert_eq!(allowed(&sdpa_mask(&windowed)), [1, 0, 0, 1, 1, 0, 0, 1, 1]);
        let wide = MaskRequest { window: Some(3), ..request(3, 0) };
        assert!(sdpa_mask(&wide).is_causal);
    }

    #[test]
    fn padding_hides_keys_of_its_sequence() {
        let padding = Tensor::from_data([[0, 1], [1, 1]], &Device::flex());
        let padded = MaskRequest { batch: 2, padding: Some(padding), ..request(2, 0) };
        assert_eq!(allowed(&sdpa_mask(&padded)), [0, 0, 0, 1, 1, 0, 1, 1]);
    }
}
