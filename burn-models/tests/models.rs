//! The models against numbers from the reference, and the properties that hold without it.

#[path = "models/attention.rs"]
mod attention;
#[path = "models/audio.rs"]
mod audio;
#[path = "models/auto.rs"]
mod auto;
#[path = "models/bert.rs"]
mod bert;
#[path = "models/clip.rs"]
mod clip;
#[path = "models/composite.rs"]
mod composite;
#[path = "models/configs.rs"]
mod configs;
#[path = "models/dinov2.rs"]
mod dinov2;
#[cfg(feature = "capture")]
#[path = "models/dry_run.rs"]
mod dry_run;
#[path = "models/experts.rs"]
mod experts;
#[path = "models/families.rs"]
mod families;
#[path = "models/generation.rs"]
mod generation;
#[path = "models/gpt2.rs"]
mod gpt2;
#[path = "models/heads.rs"]
mod heads;
#[path = "models/inputs.rs"]
mod inputs;
#[path = "models/llava.rs"]
mod llava;
#[path = "models/mixtures.rs"]
mod mixtures;
#[path = "models/parity.rs"]
mod parity;
#[path = "models/patched.rs"]
mod patched;
#[cfg(feature = "flex")]
#[path = "models/precision.rs"]
mod precision;
#[path = "models/real.rs"]
mod real;
#[path = "models/replacements.rs"]
mod replacements;
#[path = "models/routing.rs"]
mod routing;
mod support;
#[path = "models/t5.rs"]
mod t5;
#[cfg(feature = "autodiff")]
#[path = "models/training.rs"]
mod training;
#[path = "models/vit.rs"]
mod vit;
#[cfg(feature = "wgpu")]
#[path = "models/wgpu.rs"]
mod wgpu;
#[path = "models/whisper.rs"]
mod whisper;
#[path = "models/wrappers/mod.rs"]
mod wrappers;
