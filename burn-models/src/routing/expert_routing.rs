use super::{ExpertIndex, RoutingError};
use burn::tensor::{Device, Int, Tensor, TensorData};
use patching_core::capture::Captured;
use std::ops::Range;
use std::sync::Arc;

/// For each token, the experts that each sparse layer chose, in the order of their scores.
///
/// Tokens are those of the flattened batch, `[batch * seq]`, as in `router_logits`; layers are those that have experts.
/// Indices are known to be experts. A token may have one several times, as in rows that a serving engine filled with
/// zeros; it then counts as often. A clone shares its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpertRouting {
    shape: [usize; 3],
    /// `[tokens, layers, top k]`
    experts: Arc<[u32]>,
}

impl ExpertRouting {
    /// From what was recorded for `router_indices`, all layers of it, by a model of `num_experts` experts.
    ///
    /// # Errors
    ///
    /// When not all layers were recorded, they differ in shape, or they hold what are no experts.
    pub fn from_recorded(recorded: &Captured<Tensor<2, Int>>, num_experts: usize) -> Result<Self, RoutingError> {
        let (present, expected) = (recorded.iter().count(), recorded.len());
        if present == 0 || present < expected {
            return Err(RoutingError::NotRecorded { present, expected: expected.max(1) });
        }
        let mut layers: Vec<Vec<i64>> = Vec::with_capacity(present);
        let mut of_first: Option<[usize; 2]> = None;
        for (_, _, indices) in recorded.iter() {
            let (dims, first) = (indices.dims(), *of_first.get_or_insert(indices.dims()));
            for (what, found, expected) in
                [("tokens", dims[0], first[0]), ("experts for each token", dims[1], first[1])]
            {
                if found != expected {
                    return Err(RoutingError::Unlike { what, found, expected });
                }
            }
            let data = indices.clone().try_into_data().map_err(|error| RoutingError::Read(error.to_string()))?;
            layers.push(data.iter::<i64>().collect());
        }
        let [tokens, top_k] = of_first.unwrap_or_default();
        let by_token = (0..tokens).flat_map(|token| {
            layers.iter().flat_map(move |layer| layer[token * top_k..(token + 1) * top_k].iter().copied())
        });
        let values: Vec<i64> = by_token.collect();
        Self::from_array(&values, [tokens, layers.len(), top_k], num_experts)
    }

    /// From an array `[tokens, layers, top k]`, as serving engines keep it, for a model of `num_experts` experts.
    ///
    /// # Errors
    ///
    /// When the values do not fill the shape, or one is no expert.
    pub fn from_array<T: ExpertIndex>(
        values: &[T],
        shape: [usize; 3],
        num_experts: usize,
    ) -> Result<Self, RoutingError> {
        let [tokens, layers, top_k] = shape;
        // the width of a token on its own, too: without tokens any width has no values, also one that is no number
        let count = layers.checked_mul(top_k).and_then(|width| width.checked_mul(tokens));
        if count != Some(values.len()) {
            return Err(RoutingError::Count { found: values.len(), shape });
        }
        let mut experts: Vec<u32> = Vec::with_capacity(values.len());
        for (group, chosen) in values.chunks(top_k.max(1)).enumerate() {
            let (token, layer) = (group / layers.max(1), group % layers.max(1));
            for value in chosen {
                let found = value.to_expert();
                let expert = u32::try_from(found).ok().filter(|expert| (*expert as usize) < num_experts);
                let expert = expert.ok_or(RoutingError::OutOfRange { token, layer, found, num_experts })?;
                experts.push(expert);
            }
        }
        Ok(Self { shape, experts: experts.into() })
    }

    /// The experts as an array `[tokens, layers, top k]`.
    ///
    /// # Errors
    ///
    /// [`RoutingError::TooNarrow`] if an expert does not fit into the type.
    pub fn to_array<T: ExpertIndex>(&self) -> Result<Vec<T>, RoutingError> {
        let narrow = |expert: &u32| {
            T::from_expert(*expert).ok_or(RoutingError::TooNarrow { found: i64::from(*expert), type_name: T::NAME })
        };
        self.experts.iter().map(narrow).collect()
    }

    /// Tokens, sparse layers, and experts for each token.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// How many tokens there are.
    pub fn tokens(&self) -> usize {
        self.shape[0]
    }

    /// How many layers there are, counting only those that have experts.
    pub fn layers(&self) -> usize {
        self.shape[1]
    }

    /// How many experts serve a token.
    pub fn top_k(&self) -> usize {
        self.shape[2]
    }

    /// How many experts a token has in all layers together; the product was found to be a number when this was made.
    fn width(&self) -> usize {
        self.layers() * self.top_k()
    }

    /// A part of the tokens, such as those of the prompt.
    ///
    /// # Errors
    ///
    /// [`RoutingError::Tokens`] if there are not so many.
    pub fn slice(&self, tokens: Range<usize>) -> Result<Self, RoutingError> {
        let [len, layers, top_k] = self.shape;
        let width = self.width();
        if tokens.end > len || tokens.start > tokens.end {
            return Err(RoutingError::Tokens { len, wanted: tokens.end.max(tokens.start) });
        }
        let experts = &self.experts[tokens.start * width..tokens.end * width];
        Ok(Self { shape: [tokens.len(), layers, top_k], experts: experts.into() })
    }

    /// Some of the tokens, in this order.
    ///
    /// # Errors
    ///
    /// [`RoutingError::Tokens`] if there is not one of them.
    pub fn select(&self, tokens: &[usize]) -> Result<Self, RoutingError> {
        let [len, layers, top_k] = self.shape;
        let width = self.width();
        if let Some(token) = tokens.iter().find(|token| **token >= len) {
            return Err(RoutingError::Tokens { len, wanted: token.saturating_add(1) });
        }
        let experts = tokens.iter().flat_map(|token| &self.experts[token * width..(token + 1) * width]);
        Ok(Self { shape: [tokens.len(), layers, top_k], experts: experts.copied().collect() })
    }

    /// Parts one after the other, such as the steps of a generation: what `generate` then takes.
    ///
    /// # Errors
    ///
    /// [`RoutingError::Unlike`] if they differ in layers or in experts for each token, [`RoutingError::Count`] if their
    /// tokens cannot be counted.
    pub fn concat<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Result<Self, RoutingError> {
        let mut joined: Option<([usize; 3], Vec<u32>)> = None;
        for part in parts {
            let (shape, experts) = joined.get_or_insert_with(|| ([0, part.layers(), part.top_k()], Vec::new()));
            for (what, found, expected) in
                [("layers", part.layers(), shape[1]), ("experts for each token", part.top_k(), shape[2])]
            {
                if found != expected {
                    return Err(RoutingError::Unlike { what, found, expected });
                }
            }
            let too_many = RoutingError::Count { found: experts.len(), shape: [usize::MAX, shape[1], shape[2]] };
            shape[0] = shape[0].checked_add(part.tokens()).ok_or(too_many)?;
            experts.extend_from_slice(&part.experts);
        }
        let (shape, experts) = joined.unwrap_or_default();
        Ok(Self { shape, experts: experts.into() })
    }

    /// The experts of one layer, `[tokens, top k]`; of one that there is not, nothing.
    pub(crate) fn layer(&self, layer: usize) -> Vec<i64> {
        let top_k = self.top_k();
        let of_token = self.experts.chunks(self.width().max(1));
        let of_layer = of_token.flat_map(|experts| experts.chunks(top_k.max(1)).nth(layer).unwrap_or_default());
        of_layer.map(|expert| i64::from(*expert)).collect()
    }

    /// The same as a tensor.
    pub(crate) fn layer_on(&self, layer: usize, device: &Device) -> Tensor<2, Int> {
        Tensor::from_data(TensorData::new(self.layer(layer), [self.tokens(), self.top_k()]), device)
    }

    /// The largest index, if there is any, and where it is: token and layer.
    pub(crate) fn largest(&self) -> Option<(usize, usize, u32)> {
        let [_, layers, top_k] = self.shape;
        let (at, expert) = self.experts.iter().enumerate().max_by_key(|(_, expert)| **expert)?;
        let group = at / top_k.max(1);
        Some((group / layers.max(1), group % layers.max(1), *expert))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn routing() -> ExpertRouting {
        // 3 tokens, 2 layers, 2 experts each
        ExpertRouting::from_array(&[0_u8, 1, 2, 3, 1, 0, 3, 2, 2, 0, 0, 1], [3, 2, 2], 4).expect("valid")
    }

    #[test]
    fn arrays_there_and_back() {
        let routing = routing();
        assert_eq!(routing.layer(0), [0, 1, 1, 0, 2, 0]);
        assert_eq!(routing.layer(1), [2, 3, 3, 2, 0, 1]);
        let wide: Vec<i32> = routing.to_array().expect("fits");
        assert_eq!(ExpertRouting::from_array(&wide, routing.shape(), 4).expect("valid"), routing);
        let narrow: Vec<u16> = routing.to_array().expect("fits");
        assert_eq!(ExpertRouting::from_array(&narrow, routing.shape(), 4).expect("valid"), routing);
    }

    #[test]
    fn parts() {
        let routing = routing();
        let (one, two) = (routing.slice(0..1).expect("there"), routing.slice(1..3).expect("there"));
        assert_eq!(ExpertRouting::concat([&one, &two]).expect("alike"), routing);
        assert_eq!(routing.select(&[1, 2]).expect("there"), two);
        assert_eq!(routing.select(&[2, 3]), Err(RoutingError::Tokens { len: 3, wanted: 4 }));
        assert_eq!(routing.slice(1..4), Err(RoutingError::Tokens { len: 3, wanted: 4 }));
        let other = ExpertRouting::from_array(&[0_u8, 1], [1, 1, 2], 4).expect("valid");
        let unlike = ExpertRouting::concat([&routing, &other]);
        assert_eq!(unlike, Err(RoutingError::Unlike { what: "layers", found: 1, expected: 2 }));
    }

    #[test]
    fn what_is_no_routing_is_refused() {
        let of = |values: &[i32], shape| ExpertRouting::from_array(values, shape, 4).expect_err("refused");
        assert_eq!(of(&[0, 1, 2], [2, 1, 2]), RoutingError::Count { found: 3, shape: [2, 1, 2] });
        assert_eq!(of(&[], [usize::MAX, 2, 2]), RoutingError::Count { found: 0, shape: [usize::MAX, 2, 2] });
        let outside = RoutingError::OutOfRange { token: 1, layer: 0, found: 4, num_experts: 4 };
        assert_eq!(of(&[0, 1, 4, 1], [2, 1, 2]), outside);
        let negative = of(&[0, 1, 2, -1], [1, 2, 2]).to_string();
        assert_eq!(negative, "token 0 of sparse layer 1 goes to expert -1, expected 0 to 3");
        let wide = ExpertRouting::from_array(&[300_i32, 1], [1, 1, 2], 400).expect("valid");
        assert_eq!(wide.to_array::<u8>(), Err(RoutingError::TooNarrow { found: 300, type_name: "u8" }));
        assert_eq!(wide.to_array::<u16>(), Ok(vec![300, 1]));
    }

    #[test]
    fn shapes_without_values_are_not_too_large() {
        let of = |shape| ExpertRouting::from_array::<u8>(&[], shape, 4);
        for shape in [[0, usize::MAX, 2], [0, 2, usize::MAX], [usize::MAX, usize::MAX, 0]] {
            match of(shape) {
                Err(error) => assert_eq!(error, RoutingError::Count { found: 0, shape }),
                Ok(routing) => assert_eq!(routing.slice(0..1).expect("there").shape(), [1, shape[1], 0]),
            }
        }
        let many = of([usize::MAX, 0, 2]).expect("nothing is missing");
        let joined = ExpertRouting::concat([&many, &many]);
        assert_eq!(joined, Err(RoutingError::Count { found: 0, shape: [usize::MAX, 0, 2] }));
        assert_eq!(of([1, 1, 1]), Err(RoutingError::Count { found: 0, shape: [1, 1, 1] }));
        let none = ExpertRouting::from_array(&[0_u8], [1, 1, 1], 0).expect_err("no experts").to_string();
        assert_eq!(none, "token 0 of sparse layer 0 goes to expert 0, expected none: there are no experts");
    }

    /// Small sizes, and those at which arithmetic ends.
    fn size() -> impl Strategy<Value = usize> {
        prop_oneof![8 => 0..5_usize, 1 => Just(1 << 32), 1 => Just(usize::MAX / 2), 1 => Just(usize::MAX)]
    }

    fn index() -> impl Strategy<Value = i64> {
        prop_oneof![12 => 0..6_i64, 1 => Just(-1), 1 => Just(i64::MIN), 1 => Just(i64::MAX), 1 => Just(1 << 32)]
    }

    fn edge() -> impl Strategy<Value = usize> {
        prop_oneof![9 => 0..6_usize, 1 => Just(usize::MAX)]
    }

    proptest! {
        /// Whatever it is given, there is a routing that can be used or an error that can be read.
        #[test]
        fn nothing_panics(
            values in prop::collection::vec(index(), 0..20),
            shape in [size(), size(), size()],
            fits in any::<bool>(),
            num_experts in size(),
            range in (edge(), edge()),
            tokens in prop::collection::vec(edge(), 0..4),
        ) {
            // half of the shapes are those of the values
            let shape = if fits { [values.len() / shape[2].clamp(1, 4), 1, shape[2].clamp(1, 4)] } else { shape };
            let count = shape.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
            let values = if fits { &values[..count.unwrap_or_default()] } else { &values };
            match ExpertRouting::from_array(values, shape, num_experts) {
                Err(error) => prop_assert!(!error.to_string().is_empty()),
                Ok(routing) => {
                    prop_assert_eq!(routing.to_array::<i64>(), Ok(values.to_vec()));
                    prop_assert!(values.iter().all(|value| *value >= 0 && (*value as usize) < num_experts));
                    let sliced = routing.slice(range.0..range.1);
                    prop_assert_eq!(sliced.is_ok(), range.0 <= range.1 && range.1 <= shape[0]);
                    let selected = routing.select(&tokens);
                    prop_assert_eq!(selected.is_ok(), tokens.iter().all(|token| *token < shape[0]));
                    for part in [sliced, selected].into_iter().flatten() {
                        if let Ok(joined) = ExpertRouting::concat([&routing, &part]) {
                            prop_assert_eq!(joined.slice(0..shape[0]), Ok(routing.clone()));
                            prop_assert_eq!(joined.slice(shape[0]..joined.tokens()), Ok(part));
                        }
                    }
                    for layer in 0..shape[1].min(3) {
                        prop_assert_eq!(routing.layer(layer).len(), if values.is_empty() { 0 } else { shape[0] * shape[2] });
                    }
                    prop_assert_eq!(routing.largest().is_some(), !values.is_empty());
                }
            }
        }
    }
}
