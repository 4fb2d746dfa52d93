#![allow(non_snake_case, reason = "fields are named as in checkpoints")]

use super::BertConfig;
use crate::layers::{Tokens, layer_norm, new_embedding, new_layer_norm};
use burn::module::Module;
use burn::nn::{Embedding, LayerNorm};
use burn::tensor::{Int, Tensor, module::embedding};
use patching_core::prelude::*;

/// BERT's embeddings: the sum of those of tokens, token types and positions, normed.
#[derive(Module, Debug)]
pub struct BertEmbeddings {
    /// `[vocabulary, hidden]`
    pub word_embeddings: Embedding,
    /// `[positions, hidden]`
    pub position_embeddings: Embedding,
    /// `[token types, hidden]`
    pub token_type_embeddings: Embedding,
    /// Of the sum.
    pub LayerNorm: LayerNorm,
}

#[module_class]
impl BertEmbeddings {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        let table = |rows| new_embedding(rows, config.hidden_size, config.initializer_range, init.device());
        Self {
            word_embeddings: table(config.vocab_size),
            position_embeddings: table(config.max_position_embeddings),
            token_type_embeddings: table(config.type_vocab_size),
            LayerNorm: new_layer_norm(config.hidden_size, config.layer_norm_eps, init.device()),
        }
    }

    /// Tokens, their types `[batch, seq]` (none: all of the first) and their positions `[batch or 1, seq]`, which were
    /// checked, to `[batch, seq, hidden]`.
    pub fn forward(
        &self,
        tokens: Tokens,
        token_type_ids: Option<Tensor<2, Int>>,
        position_ids: Tensor<2, Int>,
    ) -> Tensor<3> {
        let types = self.token_type_embeddings.weight.val();
        let types = match token_type_ids {
            Some(ids) => embedding(types, ids),
            None => types.slice_dim(0, 0..1).unsqueeze(),
        };
        let positions = embedding(self.position_embeddings.weight.val(), position_ids);
        layer_norm(&self.LayerNorm, tokens.embed(&self.word_embeddings) + types + positions)
    }
}
