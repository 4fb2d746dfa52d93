use serde::{Deserialize, Serialize};

/// The size of an image or a patch, as `image_size` and `patch_size` may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ImageSize {
    /// `"image_size": 224`: as high as wide.
    Square(usize),
    /// `"image_size": [224, 160]`: height, then width.
    Pair([usize; 2]),
}

impl ImageSize {
    /// Height and width.
    pub fn pair(self) -> [usize; 2] {
        match self {
            Self::Square(size) => [size, size],
            Self::Pair(pair) => pair,
        }
    }
}

impl From<usize> for ImageSize {
    fn from(size: usize) -> Self {
        Self::Square(size)
    }
}

impl From<[usize; 2]> for ImageSize {
    fn from(pair: [usize; 2]) -> Self {
        Self::Pair(pair)
    }
}
