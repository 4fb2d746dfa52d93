use super::{ViTConfig, ViTModel, ViTParts};
use crate::error::ForwardError;
use crate::inputs::PixelInputs;
use crate::layers::{new_patch_projection, patch_projection};
use crate::models::model_head;
use burn::module::Module;
use burn::nn::conv::Conv2d;
use burn::tensor::{DType, Int, Tensor};
use patching_core::prelude::*;

/// ViT as a model that paints hidden patches.
#[derive(Module, Debug)]
pub struct ViTForMaskedImageModeling {
    /// The base model, with a token for hidden patches.
    pub vit: ViTModel,
    /// `[stride * stride * channels, hidden, 1, 1]`, the only one.
    pub decoder: Vec<Conv2d>,
}

/// What a model gives that paints hidden patches.
#[derive(Clone, Debug, ModelOutput)]
pub struct MaskedImageModelingOutput {
    /// The mean difference where patches are hidden, `[1]`, if any are.
    pub loss: Option<Tensor<1>>,
    /// The images as painted, `[images, channels, height, width]`.
    pub reconstruction: Tensor<4>,
    /// The input of the first layer and the output of each, `[images, 1 + patches, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[images, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}

impl ViTForMaskedImageModeling {
    /// Fresh parameters.
    pub fn new(config: &ViTConfig, init: &Init) -> Self {
        let (size, stride) = (config.hidden_size, config.encoder_stride);
        let channels = [size, stride * stride * config.num_channels];
        Self {
            vit: ViTModel::with_parts(config, ViTParts { pooler: false, mask_token: true }, init),
            decoder: vec![new_patch_projection(channels, [1, 1], true, config.initializer_range, init.device())],
        }
    }

    /// Runs the model and paints what it has seen. With hidden patches, their mean difference to the images is the loss.
    ///
    /// # Errors
    ///
    /// As [`ViTModel::forward`], and when patches are hidden but are not painted in the size that they have.
    pub fn forward(
        &self,
        inputs: impl Into<PixelInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<MaskedImageModelingOutput, ForwardError> {
        let inputs = inputs.into();
        let (images, hidden) = (inputs.pixel_values.clone(), inputs.bool_masked_pos.clone());
        if hidden.is_some() {
            self.check_stride()?;
        }
        let mut base = self.vit.forward(inputs, kwargs)?;
        let grid = self.config().grid().of_images(&images);
        let painted = self.paint(base.last_hidden_state.clone(), grid);
        let mut output = MaskedImageModelingOutput::new(painted.clone());
        output.loss = hidden.map(|hidden| self.difference(images, painted, hidden, grid)).transpose()?;
        base.pass_on(&mut output)?;
        Ok(output)
    }

    fn check_stride(&self) -> Result<(), ForwardError> {
        let config = self.config();
        let (stride, patch) = (config.encoder_stride, config.patch_size.pair());
        if patch == [stride, stride] {
            return Ok(());
        }
        let expected = format!("{stride} by {stride}, the `encoder_stride`, to hide patches with `bool_masked_pos`");
        Err(ForwardError::Shape { name: "patch_size", found: patch.to_vec(), expected })
    }

    /// `[images, 1 + patches, hidden]` to `[images, channels, height, width]`: each patch is `stride` pixels high and
    /// wide.
    fn paint(&self, hidden_states: Tensor<3>, [rows, columns]: [usize; 2]) -> Tensor<4> {
        let config = self.config();
        let (stride, channels) = (config.encoder_stride, config.num_channels);
        let [images, positions, size] = hidden_states.dims();
        let patches = hidden_states.slice_dim(1, 1..positions).swap_dims(1, 2).reshape([images, size, rows, columns]);
        let pixels = self.decoder.iter().fold(patches, |patches, layer| {
            let pixels = patch_projection(layer, patches);
            let [_, _, outputs] = pixels.dims();
            pixels.swap_dims(1, 2).reshape([images, outputs, rows, columns])
        });
        // each value of a patch goes to its place in it
        pixels.reshape([images, channels, stride, stride, rows, columns]).permute([0, 1, 4, 2, 5, 3]).reshape([
            images,
            channels,
            rows * stride,
            columns * stride,
        ])
    }

    /// The mean absolute difference of all channels where patches are hidden, `[1]`.
    fn difference(
        &self,
        images: Tensor<4>,
        painted: Tensor<4>,
        hidden: Tensor<2, Int>,
        [rows, columns]: [usize; 2],
    ) -> Result<Tensor<1>, ForwardError> {
        let (stride, channels) = (self.config().encoder_stride, self.config().num_channels);
        let (found, expected) = (images.dims(), painted.dims());
        let [batch, _, height, width] = found;
        if found != expected {
            let expected = format!("{expected:?}: whole patches, to hide some with `bool_masked_pos`");
            return Err(ForwardError::Shape { name: "pixel_values", found: found.to_vec(), expected });
        }
        let mask = hidden.not_equal_scalar(0).float().cast(DType::F32);
        let mask = mask.reshape([batch, rows, 1, columns, 1]).expand([batch, rows, stride, columns, stride]);
        let mask = mask.reshape([batch, 1, height, width]);
        let difference = (images.cast(DType::F32) - painted.cast(DType::F32)).abs();
        Ok((difference * mask.clone()).sum() / (mask.sum() + 1e-5) / channels as f64)
    }
}

model_head! {
    ViTForMaskedImageModeling { vit: ViTModel }(ViTConfig): PixelInputs => MaskedImageModelingOutput;
    prefix: "vit",
    inputs: &["pixel_values", "bool_masked_pos"]
}
