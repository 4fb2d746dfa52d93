//! The models against numbers from the reference, and the properties that hold without it.

#[path = "models/attention.rs"]
mod attention;
#[path = "models/configs.rs"]
mod configs;
#[path = "models/generation.rs"]
mod generation;
#[path = "models/heads.rs"]
mod heads;
#[path = "models/inputs.rs"]
mod inputs;
#[path = "models/parity.rs"]
mod parity;
mod support;
