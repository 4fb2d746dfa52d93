use crate::config::{ConfigError, MAX_SIZE};
use crate::error::ForwardError;
use burn::tensor::{DType, Int, Tensor};

/// How a model cuts images into patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchGrid {
    /// The number of channels.
    pub channels: usize,
    /// The height and width of the images that the model was trained on.
    pub image: [usize; 2],
    /// The height and width of a patch.
    pub patch: [usize; 2],
}

impl PatchGrid {
    /// The rows and columns of patches in an image of this height and width; what is left at the edges is not used.
    pub fn of(&self, image: [usize; 2]) -> [usize; 2] {
        let [height, width] = self.patch;
        [image[0] / height.max(1), image[1] / width.max(1)]
    }

    /// The rows and columns of patches in the images that the model was trained on.
    pub fn trained(&self) -> [usize; 2] {
        self.of(self.image)
    }

    /// How many patches there are in such an image.
    pub fn patches(&self) -> usize {
        let [rows, columns] = self.trained();
        rows.saturating_mul(columns)
    }

    /// The rows and columns of patches in these images, `[batch, channels, height, width]`.
    pub fn of_images(&self, pixel_values: &Tensor<4>) -> [usize; 2] {
        let [_, _, height, width] = pixel_values.dims();
        self.of([height, width])
    }

    /// Checks the images that a caller gave, and makes them of the type that the model computes in.
    ///
    /// # Errors
    ///
    /// When they have other channels than the model takes, or another size than it was trained on; if
    /// `any_size`, when not even one patch fits.
    pub fn checked(&self, pixel_values: Tensor<4>, any_size: bool, dtype: DType) -> Result<Tensor<4>, ForwardError> {
        let ([batch, channels, height, width], Self { image, patch, .. }) = (pixel_values.dims(), self);
        let fits = if any_size { height >= patch[0] && width >= patch[1] } else { [height, width] == *image };
        if batch > 0 && channels == self.channels && fits {
            return Ok(pixel_values.cast(dtype));
        }
        let (channels, [high, wide]) = (self.channels, image);
        let expected = match any_size {
            true => format!("[batch, {channels}, at least {}, at least {}]", patch[0], patch[1]),
            false => {
                format!("[batch, {channels}, {high}, {wide}] (or any size with `interpolate_pos_encoding`)")
            }
        };
        Err(ForwardError::Shape { name: "pixel_values", found: pixel_values.dims().to_vec(), expected })
    }

    /// Checks that a model can be built with it, without building anything.
    ///
    /// # Errors
    ///
    /// Names the first field that does not fit.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let sizes = [("num_channels", &[self.channels][..]), ("image_size", &self.image), ("patch_size", &self.patch)];
        for (field, sizes) in sizes {
            if let Some(found) = sizes.iter().find(|size| **size == 0 || **size > MAX_SIZE) {
                return Err(ConfigError::out_of_range(field, found, format!("1 to {MAX_SIZE}")));
            }
        }
        match self.patch.iter().zip(self.image).find(|(patch, image)| *patch > image) {
            Some((found, image)) => {
                Err(ConfigError::out_of_range("patch_size", found, format!("1 to {image}, the `image_size`")))
            }
            None => Ok(()),
        }
    }
}

/// Puts `token` in the place of every patch that is hidden.
///
/// # Shapes
///
/// - `patches`, output: `[batch, patches, hidden]`
/// - `hidden`: `[batch, patches]`, not zero where a patch is hidden
/// - `token`: `[1, 1, hidden]`
pub fn hide_patches(patches: Tensor<3>, hidden: Tensor<2, Int>, token: Tensor<3>) -> Tensor<3> {
    let shape = patches.dims();
    let hidden = hidden.not_equal_scalar(0).unsqueeze_dim::<3>(2).expand(shape);
    patches.mask_where(hidden, token.expand(shape))
}

/// Patches after what stands for the whole image, each with its position.
///
/// # Shapes
///
/// - `class`: `[1, 1, hidden]`
/// - `patches`: `[batch, patches, hidden]`
/// - `positions`: `[1 + patches, hidden]`
/// - output: `[batch, 1 + patches, hidden]`
pub fn after_class_token(class: Tensor<3>, patches: Tensor<3>, positions: Tensor<2>) -> Tensor<3> {
    let [batch, _, hidden] = patches.dims();
    Tensor::cat(vec![class.expand([batch, 1, hidden]), patches], 1) + positions.unsqueeze()
}
