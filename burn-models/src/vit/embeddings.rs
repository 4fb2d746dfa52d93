use super::ViTConfig;
use crate::layers::{PatchGrid, after_class_token, hide_patches, patch_embeddings_class, stretched_positions};
use burn::module::{Initializer, Module, Param};
use burn::tensor::{Int, Tensor};
use patching_core::prelude::*;

patch_embeddings_class!(
    /// Where patches become vectors.
    ViTPatchEmbeddings,
    ViTConfig
);

/// Where images become vectors, one for each patch after one for the whole image.
#[derive(Module, Debug)]
pub struct ViTEmbeddings {
    /// `[1, 1, hidden]`
    pub cls_token: Param<Tensor<3>>,
    /// What stands for a patch that is hidden, `[1, 1, hidden]`; none in a model that sees all.
    pub mask_token: Option<Param<Tensor<3>>>,
    /// Where patches become vectors.
    pub patch_embeddings: Slot<ViTPatchEmbeddings>,
    /// `[1, 1 + patches, hidden]`
    pub position_embeddings: Param<Tensor<3>>,
    #[module(skip)]
    grid: PatchGrid,
}

#[module_class]
impl ViTEmbeddings {
    /// Fresh parameters.
    pub fn new(config: &ViTConfig, use_mask_token: bool, init: &Init) -> Self {
        let (grid, size) = (config.grid(), config.hidden_size);
        let normal = Initializer::Normal { mean: 0.0, std: config.initializer_range };
        Self {
            cls_token: normal.init([1, 1, size], init.device()),
            mask_token: use_mask_token.then(|| Initializer::Zeros.init([1, 1, size], init.device())),
            patch_embeddings: ViTPatchEmbeddings::slot(config, init),
            position_embeddings: normal.init([1, 1 + grid.patches(), size], init.device()),
            grid,
        }
    }

    /// Images `[batch, channels, height, width]` to `[batch, 1 + patches, hidden]`; patches that are not zero in
    /// `bool_masked_pos`, `[batch, patches]`, are hidden if there is something to stand for them. The positions are
    /// stretched to images of another size.
    pub fn forward(&self, pixel_values: Tensor<4>, bool_masked_pos: Option<Tensor<2, Int>>) -> Tensor<3> {
        let found = self.grid.of_images(&pixel_values);
        let mut patches = self.patch_embeddings.forward(pixel_values);
        if let (Some(hidden), Some(token)) = (bool_masked_pos, &self.mask_token) {
            patches = hide_patches(patches, hidden, token.val());
        }
        let positions = self.position_embeddings.val().squeeze_dim::<2>(0);
        let positions = stretched_positions(positions, self.grid.trained(), found);
        after_class_token(self.cls_token.val(), patches, positions)
    }
}
