use super::{CLIPAttention, CLIPEncoder, CLIPEncoderConfig, CLIPEncoderLayer, CLIPTextConfig, CLIPTextEmbeddings};
use crate::config::TokenIds;
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::layers::{Causality, LayerContext, Stack, Tokens, first_marked, layer_norm, new_layer_norm, one_of_each};
use crate::models::base_tower;
use crate::outputs::BaseModelOutputWithPooling;
use burn::module::Module;
use burn::nn::LayerNorm;
use burn::tensor::{Bool, Int, Tensor};
use patching_core::prelude::*;

/// CLIP's text tower without a projection.
#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = CLIPEncoderLayer, attentions = CLIPAttention)]
pub struct CLIPTextModel {
    /// Where tokens become vectors.
    pub embeddings: Slot<CLIPTextEmbeddings>,
    /// The layers.
    pub encoder: CLIPEncoder,
    /// After the last layer.
    pub final_layer_norm: LayerNorm,
    #[module(skip)]
    config: CLIPTextConfig,
    recorders: OutputRecorders,
}

impl CLIPTextModel {
    /// Fresh parameters.
    pub fn new(config: &CLIPTextConfig, init: &Init) -> Self {
        Self {
            embeddings: CLIPTextEmbeddings::slot(config, init),
            encoder: CLIPEncoder::new(&CLIPEncoderConfig::from(config), init),
            final_layer_norm: new_layer_norm(config.hidden_size, config.layer_norm_eps, init.device()),
            config: config.clone(),
            recorders: OutputRecorders::default(),
        }
    }

    /// Runs the model; what `kwargs` and the config ask for is recorded. The pooled output is the hidden state of the
    /// token that ends each text.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, or are such that the model has no use for; when the config names an implementation
    /// that is not registered; when something that was asked for cannot be recorded.
    #[merge_with_config_defaults]
    #[capture_outputs(tie_last_hidden_states = false)]
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<BaseModelOutputWithPooling, ForwardError> {
        let mut inputs = inputs.into();
        let config = &self.config;
        let input_ids = self.ids(&mut inputs)?;
        let stack = Stack {
            causality: Causality::AlwaysCausal,
            max_positions: Some(config.max_position_embeddings),
            ..Stack::encoder(&config.general, config.num_hidden_layers)
        };
        let dtype = self.final_layer_norm.gamma.val().dtype();
        let extent = Tokens::Ids(input_ids.clone()).extent_in(dtype);
        let mut context = LayerContext::for_stack(&stack, &extent, inputs, kwargs)?;
        let mut hidden_states = self.embeddings.forward(input_ids.clone(), context.position_ids());
        for layer in &self.encoder.layers {
            hidden_states = layer.forward(hidden_states, &mut context);
        }
        let last_hidden_state = layer_norm(&self.final_layer_norm, hidden_states);
        let mut output = BaseModelOutputWithPooling::new(last_hidden_state.clone());
        output.pooler_output = Some(one_of_each(last_hidden_state, self.ends(input_ids)));
        Ok(output)
    }

    /// Takes the ids, which this model cannot do without, and refuses what it has no use for.
    fn ids(&self, inputs: &mut TextInputs) -> Result<Tensor<2, Int>, ForwardError> {
        let model = || self.config.general.model_type.clone();
        let needless = [("inputs_embeds", inputs.inputs_embeds.is_some()), ("labels", inputs.labels.is_some())];
        if let Some((name, _)) = needless.into_iter().find(|(_, is_given)| *is_given) {
            return Err(ForwardError::Unused { model: model(), name, because: "" });
        }
        let Some(ids) = inputs.input_ids.take() else {
            return Err(ForwardError::Absent { model: model(), name: "input_ids", because: "" });
        };
        let (table, dtype) =
            ([self.config.vocab_size, self.config.hidden_size], self.final_layer_norm.gamma.val().dtype());
        match Tokens::within(Some(ids), None, table, dtype)? {
            Tokens::Ids(ids) => Ok(ids),
            Tokens::Embeds(_) => Err(ForwardError::Absent { model: model(), name: "input_ids", because: "" }),
        }
    }

    /// The position of the token that ends each text, `[batch, 1]`: the first such token.
    ///
    /// Configs of the first release say 2, which no text ends with; there it is the token with the highest id.
    fn ends(&self, input_ids: Tensor<2, Int>) -> Tensor<2, Int> {
        let marks: Tensor<2, Bool> = match &self.config.eos_token_id {
            Some(TokenIds::One(2)) | None => {
                let shape = input_ids.dims();
                input_ids.clone().equal(input_ids.max_dim(1).expand(shape))
            }
            Some(ids) => {
                let is = |id: &i64| input_ids.clone().equal_scalar(*id);
                let any = ids.as_slice().iter().map(is).reduce(Tensor::bool_or);
                any.unwrap_or_else(|| input_ids.equal_scalar(-1))
            }
        };
        first_marked(marks.int())
    }
}

base_tower! {
    CLIPTextModel(CLIPTextConfig): TextInputs => BaseModelOutputWithPooling;
    prefix: "text_model",
    inputs: &["input_ids", "attention_mask", "position_ids"]
}
