use super::attention::{AttentionImplementation, AttentionInterface};
use super::embedding::is_host;
use super::experts::{ExpertsImplementation, ExpertsInterface};
use super::{AttentionMask, Cache, CacheFits, MaskRequest, Rotary, embed};
use crate::config::{DecoderConfig, check_experts};
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::routing::{ExpertRouting, Replay, RoutingError};
use burn::nn::Embedding;
use burn::tensor::{Device, Int, Tensor};
use patching_core::capture::ForwardKwargs;

/// What all layers of one forward pass share: positions, masks and the cache, each made once.
#[derive(Clone, Debug)]
pub struct LayerContext {
    rotary: Option<Rotary>,
    position_ids: Tensor<2, Int>,
    cache: Option<Cache>,
    keep_cache: bool,
    request: MaskRequest,
    masks: Vec<KnownMask>,
    implementation: AttentionImplementation,
    experts: ExpertsImplementation,
    replay: Option<Replay>,
}

/// A mask that was already made.
#[derive(Clone, Debug)]
struct KnownMask {
    window: Option<usize>,
    keys: usize,
    mask: AttentionMask,
}

impl LayerContext {
    /// Checks a decoder's inputs and prepares what its layers need; gives the embedded tokens `[batch, seq, hidden]`
    /// along with it.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit each other, the model or the cache; when the config's attention or experts
    /// implementation is not registered, or the latter is chosen where no layer has experts; when the inputs force
    /// experts on a model that has none or others ([`ForwardError::Routing`]).
    pub fn for_decoder<C: DecoderConfig>(
        config: &C,
        table: &Embedding,
        inputs: TextInputs,
        kwargs: &ForwardKwargs,
    ) -> Result<(Tensor<3>, Self), ForwardError> {
        let implementation = AttentionInterface::get(config.attn_implementation())?;
        let experts = config.experts_implementation();
        check_experts(config, experts)?;
        let experts = ExpertsInterface::get(experts)?;
        let embedded = embedded(config.hidden_size(), table, inputs.input_ids, inputs.inputs_embeds)?;
        let [batch, seq, _] = embedded.dims();

        let replay = inputs.expert_routing.map(|routing| replay(config, routing, batch * seq)).transpose()?;
        let windows = config.windows();
        if let Some(cache) = &inputs.cache {
            cache.check(&CacheFits {
                batch,
                windows: &windows,
                key_heads: config.num_key_value_heads(),
                head_dim: config.head_dim(),
                dtype: embedded.dtype(),
            })?;
        }
        let keep_cache = kwargs.get_use_cache().unwrap_or_else(|| config.use_cache());
        let cache = match inputs.cache {
            None if keep_cache => Some(Cache::new(windows.iter().copied())),
            cache => cache,
        };
        let past = cache.as_ref().map_or(0, Cache::sequence_length);

        let is_packed = inputs.position_ids.is_some() && inputs.attention_mask.is_none() && cache.is_none();
        let position_ids = positions(inputs.position_ids, [batch, seq], past, &embedded)?;
        let segments = Some(position_ids.clone()).filter(|_| is_packed).and_then(segments);
        let request = MaskRequest {
            batch,
            query_length: seq,
            key_length: past + seq,
            query_offset: past,
            key_offset: 0,
            is_causal: kwargs.get_is_causal().unwrap_or(true),
            window: None,
            padding: padding(inputs.attention_mask, [batch, past + seq])?,
            segments,
            dtype: embedded.dtype(),
            device: embedded.device(),
        };
        let masks = Vec::new();
        let context =
            Self { rotary: None, position_ids, cache, keep_cache, request, masks, implementation, experts, replay };
        Ok((embedded, context))
    }

    /// Where each token stands, `[batch or 1, seq]`.
    pub fn position_ids(&self) -> Tensor<2, Int> {
        self.position_ids.clone()
    }

    /// Makes the layers turn queries and keys by these tables, as [`rotary_tables`](super::rotary_tables) gives them.
    pub fn set_rotary(&mut self, tables: (Tensor<3>, Tensor<3>)) {
        self.rotary = Some(Rotary::new(tables));
    }

    /// By what queries and keys are turned.
    pub fn rotary(&self) -> Option<&Rotary> {
        self.rotary.as_ref()
    }

    /// What the model has seen, to be updated by each layer.
    pub fn cache_mut(&mut self) -> Option<&mut Cache> {
        self.cache.as_mut()
    }

    /// The mask of a layer that looks back as far as `window` says, over its last `keys` keys; made once for all layers
    /// that are alike.
    pub fn mask(&mut self, window: Option<usize>, keys: usize) -> AttentionMask {
        let known = self.masks.iter().find(|known| known.window == window && known.keys == keys);
        if let Some(known) = known {
            return known.mask.clone();
        }
        let mask = self.implementation.mask(&self.request.for_layer(window, keys));
        self.masks.push(KnownMask { window, keys, mask: mask.clone() });
        mask
    }

    /// The attention implementation that the config chose.
    pub fn implementation(&self) -> &AttentionImplementation {
        &self.implementation
    }

    /// The implementation of mixtures of experts that the config chose.
    pub fn experts(&self) -> &ExpertsImplementation {
        &self.experts
    }

    /// Computes the layers that come with another implementation of mixtures of experts, in this call only.
    pub fn set_experts(&mut self, experts: ExpertsImplementation) {
        self.experts = experts;
    }

    /// The experts that the call is forced to use in layer `layer`, `[tokens, top k]`; `None`: the router chooses.
    ///
    /// A router that does not ask makes the call an error where there are such experts.
    pub fn forced_experts(&mut self, layer: usize, device: &Device) -> Option<Tensor<2, Int>> {
        self.replay.as_mut()?.take(layer, device)
    }

    /// Notes whether a router chose the experts that are forced on layer `layer`; to be called with what it gave,
    /// `[tokens, top k]`. They are read back from the device where the call is forced to experts, else not.
    pub fn check_experts(&mut self, layer: usize, indices: &Tensor<2, Int>) {
        if let Some(replay) = &mut self.replay {
            replay.note(layer, indices);
        }
    }

    /// Ends layer `layer`: to be called after each, as a run that records only may stop before [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish), for what this layer did.
    pub fn end_layer(&self, layer: usize) -> Result<(), RoutingError> {
        self.replay.as_ref().map_or(Ok(()), |replay| replay.check(layer))
    }

    /// Ends the call: the cache to give back, if the caller wants it. There is no other way to the cache, so that no
    /// model forgets the check.
    ///
    /// # Errors
    ///
    /// [`RoutingError::Ignored`] if a router did not use the experts that the call was forced to,
    /// [`RoutingError::Read`] if what it used cannot be read back.
    pub fn finish(self) -> Result<Option<Cache>, RoutingError> {
        if let Some(replay) = &self.replay {
            replay.finish()?;
        }
        Ok(self.cache.filter(|_| self.keep_cache))
    }
}

fn replay<C: DecoderConfig>(config: &C, routing: ExpertRouting, tokens: usize) -> Result<Replay, RoutingError> {
    match config.experts() {
        Some(experts) => Replay::new(routing, &experts, tokens),
        None => Err(RoutingError::NoExperts { model_type: config.general().model_type.clone() }),
    }
}

fn embedded(
    hidden_size: usize,
    table: &Embedding,
    input_ids: Option<Tensor<2, Int>>,
    inputs_embeds: Option<Tensor<3>>,
) -> Result<Tensor<3>, ForwardError> {
    let shape = |name, found: Vec<usize>, expected: String| Err(ForwardError::Shape { name, found, expected });
    match (input_ids, inputs_embeds) {
        (Some(ids), None) => match ids.dims() {
            [0, _] | [_, 0] => shape("input_ids", ids.dims().to_vec(), "[batch, seq], neither of them zero".to_owned()),
            _ => embed(table, ids),
        },
        (None, Some(embeds)) => match embeds.dims() {
            [batch, seq, size] if batch > 0 && seq > 0 && size == hidden_size => {
                let (found, expected) = (embeds.dtype(), table.weight.val().dtype());
                if found != expected {
                    return Err(ForwardError::DType { name: "inputs_embeds", found, expected });
                }
                Ok(embeds)
            }
            dims => shape("inputs_embeds", dims.to_vec(), format!("[batch, seq, {hidden_size}], none of them zero")),
        },
        (None, None) => Err(ForwardError::Inputs { found: "neither" }),
        (Some(_), Some(_)) => Err(ForwardError::Inputs { found: "both" }),
    }
}

fn positions(
    given: Option<Tensor<2, Int>>,
    [batch, seq]: [usize; 2],
    past: usize,
    embedded: &Tensor<3>,
) -> Result<Tensor<2, Int>, ForwardError> {
    let Some(given) = given else {
        let range = past as i64..(past + seq) as i64;
        return Ok(Tensor::<1, Int>::arange(range, &embedded.device()).unsqueeze());
    };
    match given.dims() {
        [rows, columns] if (rows == batch || rows == 1) && columns == seq => Ok(given),
        found => Err(ForwardError::Shape {
            name: "position_ids",
            found: found.to_vec(),
            expected: format!("[{batch}, {seq}] or [1, {seq}]"),
        }),
    }
}

/// Which sequence each token belongs to, where positions do not go up one by one: a new sequence begins there.
///
/// That they do can only be known by reading them; where that would stop the device, they are taken as they come.
fn segments(position_ids: Tensor<2, Int>) -> Option<Tensor<2, Int>> {
    let [rows, seq] = position_ids.dims();
    if rows == 0 || seq < 2 {
        return None;
    }
    let steps = position_ids.clone().slice_dim(1, 1..seq) - position_ids.slice_dim(1, 0..seq - 1);
    if is_host(&steps.device()) && steps.to_data().iter::<i64>().all(|step| step == 1) {
        return None;
    }
    let begins = steps.not_equal_scalar(1).int();
    let first = Tensor::zeros([rows, 1], (&begins.device(), begins.dtype()));
    Some(Tensor::cat(vec![first, begins], 1).cumsum(1))
}

fn padding(mask: Option<Tensor<2, Int>>, expected: [usize; 2]) -> Result<Option<Tensor<2, Int>>, ForwardError> {
    match mask {
        Some(mask) if mask.dims() != expected => Err(ForwardError::Shape {
            name: "attention_mask",
            found: mask.dims().to_vec(),
            expected: format!("{expected:?}: batch, and the tokens seen before with those of now"),
        }),
        mask => Ok(mask),
    }
}
