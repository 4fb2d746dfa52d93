use super::{BertConfig, BertCrossAttention, BertEmbeddings, BertLayer, BertSelfAttention};
use crate::auto::NamedInputs;
use crate::layers::{LayerContext, Tokens, checked_indices, first_of, float_dtype_of, linear, matrix_of, new_linear};
use crate::models::base_tower;
use crate::{BaseModelOutputWithPoolingAndCrossAttentions, ForwardError, TextInputs};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{DType, Tensor};
use patching_core::prelude::*;

/// BERT's layers.
#[derive(Module, Debug)]
pub struct BertEncoder {
    /// In order.
    pub layer: Vec<Slot<BertLayer>>,
}

/// What makes one vector of a sequence: of its first token.
#[derive(Module, Debug)]
pub struct BertPooler {
    /// `[hidden, hidden]`
    pub dense: Linear,
}

#[module_class]
impl BertPooler {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        let size = config.hidden_size;
        Self { dense: new_linear(size, size, true, config.initializer_range, init.device()) }
    }

    /// `[batch, seq, hidden]` to `[batch, hidden]`.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<2> {
        linear(&self.dense, first_of(hidden_states)).tanh()
    }
}

/// BERT without a head: an encoder, or a decoder where the config says so.
#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(
    hidden_states = BertLayer,
    attentions = BertSelfAttention,
    cross_attentions = BertCrossAttention,
)]
pub struct BertModel {
    /// Those of tokens, token types and positions.
    pub embeddings: Slot<BertEmbeddings>,
    /// The layers.
    pub encoder: BertEncoder,
    /// What makes one vector of a sequence; some heads do without.
    pub pooler: Option<Slot<BertPooler>>,
    #[module(skip)]
    config: BertConfig,
    recorders: OutputRecorders,
}

impl BertModel {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        Self { pooler: Some(BertPooler::slot(config, init)), ..Self::without_pooler(config, init) }
    }

    /// The same without what makes one vector of a sequence.
    pub fn without_pooler(config: &BertConfig, init: &Init) -> Self {
        let layers = 0..config.num_hidden_layers;
        Self {
            embeddings: BertEmbeddings::slot(config, init),
            encoder: BertEncoder { layer: layers.map(|layer_idx| BertLayer::slot(config, layer_idx, init)).collect() },
            pooler: None,
            config: config.clone(),
            recorders: OutputRecorders::default(),
        }
    }

    /// The table of token embeddings, `[vocabulary, hidden]`; `None` if a replacement of the embeddings has none.
    pub fn word_embeddings(&self) -> Option<Tensor<2>> {
        match self.embeddings.implementation::<BertEmbeddings>() {
            Some(own) => Some(own.word_embeddings.weight.val()),
            None => matrix_of(&self.embeddings, "word_embeddings.weight"),
        }
    }

    /// What is computed in.
    fn dtype(&self) -> DType {
        match self.embeddings.implementation::<BertEmbeddings>() {
            Some(own) => own.word_embeddings.weight.val().dtype(),
            None => float_dtype_of(&self.embeddings).unwrap_or(DType::F32),
        }
    }

    /// Runs the model; what `kwargs` and the config ask for is recorded.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was asked
    /// for cannot be recorded.
    #[merge_with_config_defaults]
    #[capture_outputs]
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<BaseModelOutputWithPoolingAndCrossAttentions, ForwardError> {
        let (mut inputs, config, dtype) = (inputs.into(), &self.config, self.dtype());
        let table = [config.vocab_size, config.hidden_size];
        let tokens = Tokens::within(inputs.input_ids.take(), inputs.inputs_embeds.take(), table, dtype)?;
        let extent = tokens.extent_in(dtype);
        let types = inputs.token_type_ids.take();
        let types = types.map(|types| checked_indices("token_type_ids", config.type_vocab_size, types, &extent));
        let mut context = LayerContext::for_stack(&config.stack(), &extent, inputs, kwargs)?;
        let mut hidden_states = self.embeddings.forward(tokens, types.transpose()?, context.position_ids());
        for (layer_idx, layer) in self.encoder.layer.iter().enumerate() {
            hidden_states = layer.forward(hidden_states, &mut context);
            context.end_layer(layer_idx)?;
        }
        let pooled = self.pooler.as_ref().map(|pooler| pooler.forward(hidden_states.clone()));
        let mut output = BaseModelOutputWithPoolingAndCrossAttentions::new(hidden_states);
        output.pooler_output = pooled;
        output.cache = context.finish()?;
        Ok(output)
    }
}

base_tower! {
    BertModel(BertConfig): TextInputs => BaseModelOutputWithPoolingAndCrossAttentions;
    prefix: "bert",
    inputs: NamedInputs::TEXT_WITH_TYPES_BASE
}
