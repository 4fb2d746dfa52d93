use super::{CLIPTextConfig, CLIPVisionConfig};
use crate::layers::{
    PatchGrid, after_class_token, new_embedding, new_patch_projection, patch_projection, stretched_positions,
};
use burn::module::{Initializer, Module, Param};
use burn::nn::Embedding;
use burn::nn::conv::Conv2d;
use burn::tensor::module::embedding;
use burn::tensor::{Int, Tensor};
use patching_core::prelude::*;

/// Where CLIP's tokens and their positions become vectors.
#[derive(Module, Debug)]
pub struct CLIPTextEmbeddings {
    /// `[vocabulary, hidden]`
    pub token_embedding: Embedding,
    /// `[positions, hidden]`
    pub position_embedding: Embedding,
}

#[module_class]
impl CLIPTextEmbeddings {
    /// Fresh parameters.
    pub fn new(config: &CLIPTextConfig, init: &Init) -> Self {
        let std = 0.02 * config.initializer_factor;
        let table = |rows| new_embedding(rows, config.hidden_size, std, init.device());
        Self { token_embedding: table(config.vocab_size), position_embedding: table(config.max_position_embeddings) }
    }

    /// Ids `[batch, seq]` and positions `[batch or 1, seq]`, all within their tables, to `[batch, seq, hidden]`.
    pub fn forward(&self, input_ids: Tensor<2, Int>, position_ids: Tensor<2, Int>) -> Tensor<3> {
        let tokens = embedding(self.token_embedding.weight.val(), input_ids);
        tokens + embedding(self.position_embedding.weight.val(), position_ids)
    }
}

/// Where CLIP's images become vectors, one for each patch after one for the whole image.
#[derive(Module, Debug)]
pub struct CLIPVisionEmbeddings {
    /// `[hidden]`
    pub class_embedding: Param<Tensor<1>>,
    /// `[hidden, channels, height, width]`
    pub patch_embedding: Conv2d,
    /// `[1 + patches, hidden]`
    pub position_embedding: Embedding,
    #[module(skip)]
    grid: PatchGrid,
}

#[module_class]
impl CLIPVisionEmbeddings {
    /// Fresh parameters.
    pub fn new(config: &CLIPVisionConfig, init: &Init) -> Self {
        let (grid, size, device) = (config.grid(), config.hidden_size, init.device());
        let std = config.initializer_range * config.initializer_factor;
        let class = Initializer::Normal { mean: 0.0, std: config.initializer_factor / (size.max(1) as f64).sqrt() };
        Self {
            class_embedding: class.init([size], device),
            patch_embedding: new_patch_projection([grid.channels, size], grid.patch, false, std, device),
            position_embedding: new_embedding(1 + grid.patches(), size, std, device),
            grid,
        }
    }

    /// Images `[batch, channels, height, width]` to `[batch, 1 + patches, hidden]`; the positions are stretched to images
    /// of another size.
    pub fn forward(&self, pixel_values: Tensor<4>) -> Tensor<3> {
        let found = self.grid.of_images(&pixel_values);
        let patches = patch_projection(&self.patch_embedding, pixel_values);
        let positions = stretched_positions(self.position_embedding.weight.val(), self.grid.trained(), found);
        after_class_token(self.class_embedding.val().unsqueeze(), patches, positions)
    }
}
