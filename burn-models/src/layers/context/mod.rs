mod given;
mod stack;

pub use stack::{Causality, Stack};

use self::given::{check_use, encoded, padding, positions, segments, unused};
use super::attention::{AttentionImplementation, AttentionInterface};
use super::experts::{ExpertsImplementation, ExpertsInterface};
use super::{AttentionMask, Cache, CacheFits, Extent, MaskRequest, Rotary, Tokens};
use crate::config::{DecoderConfig, GeneralConfig, check_experts};
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::routing::{ExpertRouting, Replay, RoutingError};
use burn::nn::Embedding;
use burn::tensor::{Device, Int, Tensor};
use patching_core::capture::ForwardKwargs;

/// What all layers of one forward pass share: positions, masks, the cache and what an encoder gave, each made once.
#[derive(Clone, Debug)]
pub struct LayerContext {
    rotary: Option<Rotary>,
    position_ids: Tensor<2, Int>,
    cache: Option<Cache>,
    keep_cache: bool,
    request: MaskRequest,
    masks: Vec<KnownMask>,
    encoder: Option<Encoder>,
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

/// What the layers of a decoder look at besides their own sequence.
#[derive(Clone, Debug)]
struct Encoder {
    /// `[batch, source, hidden]`; none: the cache has what layers need of it.
    hidden_states: Option<Tensor<3>>,
    request: MaskRequest,
    mask: Option<AttentionMask>,
}

impl LayerContext {
    /// Checks a decoder's inputs and prepares what its layers need; gives the embedded tokens `[batch, seq, hidden]`
    /// along with it.
    ///
    /// # Errors
    ///
    /// As [`for_stack`](Self::for_stack), and when the experts implementation is not registered or is chosen where no
    /// layer has experts; when the inputs force experts on a model that has none or others ([`ForwardError::Routing`]).
    pub fn for_decoder<C: DecoderConfig>(
        config: &C,
        table: &Embedding,
        mut inputs: TextInputs,
        kwargs: &ForwardKwargs,
    ) -> Result<(Tensor<3>, Self), ForwardError> {
        let experts = config.experts_implementation();
        check_experts(config, experts)?;
        let experts = ExpertsInterface::get(experts)?;
        let tokens = Tokens::new(inputs.input_ids.take(), inputs.inputs_embeds.take(), table)?;
        let extent = tokens.extent(table);
        let routing = inputs.expert_routing.take();
        let replay = routing.map(|routing| replay(config, routing, extent.batch * extent.seq)).transpose()?;
        let stack = Stack {
            windows: config.windows(),
            packs: true,
            ..Stack::decoder(config.general(), 0, [config.num_key_value_heads(), config.head_dim()], config.use_cache())
        };
        let context = Self::for_stack(&stack, &extent, inputs, kwargs)?;
        Ok((tokens.embed(table), Self { experts, replay, ..context }))
    }

    /// Checks the inputs of a stack of layers, less the tokens themselves, and prepares what its layers need.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit each other, the model or the cache, or are such that the stack has no use for; when the
    /// config's attention implementation is not registered.
    pub fn for_stack(
        stack: &Stack<'_>,
        extent: &Extent,
        inputs: TextInputs,
        kwargs: &ForwardKwargs,
    ) -> Result<Self, ForwardError> {
        let Extent { batch, seq, dtype, device } = extent.clone();
        let implementation = AttentionInterface::get(stack.general.attn_implementation.as_deref())?;
        check_use(stack, &inputs)?;
        let source = inputs.encoder_hidden_states.as_ref().map(|states| states.dims()[1]);
        if let Some(cache) = &inputs.cache {
            cache.check(&CacheFits {
                batch,
                windows: &stack.windows,
                key_heads: stack.key_heads,
                head_dim: stack.head_dim,
                dtype,
                has_encoder: stack.encoder_size.is_some(),
                source,
            })?;
        }
        let keep_cache = stack.use_cache.is_some_and(|by_config| kwargs.get_use_cache().unwrap_or(by_config));
        let cache = match inputs.cache {
            None if keep_cache => Some(Cache::new(stack.windows.iter().copied())),
            cache => cache,
        };
        let past = cache.as_ref().map_or(0, Cache::sequence_length);

        let is_packed =
            stack.packs && inputs.position_ids.is_some() && inputs.attention_mask.is_none() && cache.is_none();
        let position_ids = positions(stack, inputs.position_ids, past, extent)?;
        let segments = Some(position_ids.clone()).filter(|_| is_packed).and_then(segments);
        let request = MaskRequest {
            batch,
            query_length: seq,
            key_length: past + seq,
            query_offset: past,
            key_offset: 0,
            is_causal: stack.causality.is_causal(kwargs),
            window: None,
            padding: padding(
                "attention_mask",
                inputs.attention_mask,
                [batch, past + seq],
                "the tokens seen before with those of now",
            )?,
            segments,
            dtype,
            device,
        };
        let held = cache.as_ref().and_then(Cache::source_length);
        let encoder = match inputs.encoder_hidden_states {
            None => held.map(|length| (None, length)),
            Some(states) => Some((Some(encoded(stack, states, batch)?), source.unwrap_or_default())),
        };
        let encoder = match (encoder, inputs.encoder_attention_mask) {
            (None, None) => None,
            (None, Some(_)) => {
                let because = ": there are no `encoder_hidden_states`";
                return Err(unused(stack, "encoder_attention_mask", because));
            }
            (Some((hidden_states, length)), mask) => {
                let padding = padding("encoder_attention_mask", mask, [batch, length], "the encoder's positions")?;
                let request =
                    MaskRequest { key_length: length, is_causal: false, padding, segments: None, ..request.clone() };
                Some(Encoder { hidden_states, request, mask: None })
            }
        };
        let experts = ExpertsInterface::get(None)?;
        let masks = Vec::new();
        Ok(Self {
            rotary: None,
            position_ids,
            cache,
            keep_cache,
            request,
            masks,
            encoder,
            implementation,
            experts,
            replay: None,
        })
    }

    /// What the layers of an encoder need that is given nothing but hidden states, `[batch, seq, hidden]`.
    ///
    /// # Errors
    ///
    /// When the config's attention implementation is not registered.
    pub fn for_encoder(
        general: &GeneralConfig,
        hidden_states: &Tensor<3>,
        kwargs: &ForwardKwargs,
    ) -> Result<Self, ForwardError> {
        Self::for_stack(&Stack::encoder(general, 0), &Extent::of(hidden_states), TextInputs::default(), kwargs)
    }

    /// How many positions each sequence had before this call.
    pub fn past(&self) -> usize {
        self.request.query_offset
    }

    /// Whether layers look at what an encoder gave.
    pub fn has_encoder(&self) -> bool {
        self.encoder.is_some()
    }

    /// What the encoder gave, as keys and values of layer `layer`: `project` makes them of its hidden states
    /// `[batch, source, hidden]`, unless the cache has them. With them comes what queries may look at.
    ///
    /// `None` without an encoder.
    pub(crate) fn of_encoder(
        &mut self,
        layer: usize,
        project: impl FnOnce(Tensor<3>) -> [Tensor<4>; 2],
    ) -> Option<([Tensor<4>; 2], AttentionMask)> {
        let encoder = self.encoder.as_mut()?;
        let mask = match &encoder.mask {
            Some(mask) => mask.clone(),
            None => encoder.mask.insert(self.implementation.mask(&encoder.request)).clone(),
        };
        let [keys, values] = match (&mut self.cache, encoder.hidden_states.clone()) {
            (Some(cache), Some(states)) => cache.of_encoder(layer, || project(states)),
            (None, Some(states)) => project(states),
            // without hidden states there is a cache that has all of its layers' keys and values
            (Some(cache), None) => cache.layers().get(layer)?.of_encoder()?,
            (None, None) => return None,
        };
        Some(([keys, values], mask))
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
