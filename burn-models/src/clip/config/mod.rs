//! What the `config.json` of a CLIP model says, and that of each of its towers.

mod encoder;
mod text;
mod vision;
mod whole;

pub use encoder::CLIPEncoderConfig;
pub use text::CLIPTextConfig;
pub use vision::CLIPVisionConfig;
pub use whole::CLIPConfig;
