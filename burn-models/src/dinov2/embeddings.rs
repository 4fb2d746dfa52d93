use super::Dinov2Config;
use crate::layers::{PatchGrid, after_class_token, hide_patches, patch_embeddings_class, stretched_positions};
use burn::module::{Initializer, Module, Param};
use burn::tensor::{Int, Tensor};
use patching_core::prelude::*;

patch_embeddings_class!(
    /// Where patches become vectors.
    Dinov2PatchEmbeddings,
    Dinov2Config
);

/// Where images become vectors, one for each patch after one for the whole image.
#[derive(Module, Debug)]
pub struct Dinov2Embeddings {
    /// `[1, 1, hidden]`
    pub cls_token: Param<Tensor<3>>,
    /// What stands for a patch that is hidden, `[1, hidden]`, if the config says so.
    pub mask_token: Option<Param<Tensor<2>>>,
    /// Where patches become vectors.
    pub patch_embeddings: Slot<Dinov2PatchEmbeddings>,
    /// `[1, 1 + patches, hidden]`
    pub position_embeddings: Param<Tensor<3>>,
    #[module(skip)]
    grid: PatchGrid,
}

#[module_class]
impl Dinov2Embeddings {
    /// Fresh parameters.
    pub fn new(config: &Dinov2Config, init: &Init) -> Self {
        let (grid, size) = (config.grid(), config.hidden_size);
        let normal = Initializer::Normal { mean: 0.0, std: config.initializer_range };
        Self {
            cls_token: normal.init([1, 1, size], init.device()),
            mask_token: config.use_mask_token.then(|| Initializer::Zeros.init([1, size], init.device())),
            patch_embeddings: Dinov2PatchEmbeddings::slot(config, init),
            position_embeddings: normal.init([1, 1 + grid.patches(), size], init.device()),
            grid,
        }
    }

    /// Images `[batch, channels, height, width]` to `[batch, 1 + patches, hidden]`; patches that are not zero in
    /// `bool_masked_pos`, `[batch, patches]`, are hidden if there is something to stand for them. The positions are
    /// stretched to images of another size.
    pub fn forward(&self, pixel_values: Tensor<4>, bool_masked_pos: Option<Tensor<2, Int>>) -> Tensor<3> {
        let [_, _, height, width] = pixel_values.dims();
        let mut patches = self.patch_embeddings.forward(pixel_values);
        if let (Some(hidden), Some(token)) = (bool_masked_pos, &self.mask_token) {
            patches = hide_patches(patches, hidden, token.val().unsqueeze());
        }
        let mut positions = self.position_embeddings.val().squeeze_dim::<2>(0);
        if !are_as_trained(&self.grid, [height, width]) {
            let side = self.grid.patches().isqrt();
            positions = stretched_positions(positions, [side, side], self.grid.of([height, width]));
        }
        after_class_token(self.cls_token.val(), patches, positions)
    }
}

/// Whether an image of this height and width takes the positions as they are. For any other they are stretched as if they
/// were those of a square, whatever the config's images are: so does the reference.
pub(super) fn are_as_trained(grid: &PatchGrid, [height, width]: [usize; 2]) -> bool {
    let [rows, columns] = grid.of([height, width]);
    height == width && rows * columns == grid.patches()
}
