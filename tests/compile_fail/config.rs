//! `#[derive(ConfigDefaults)]`.
mod parts;
use parts::*;

#[derive(ConfigDefaults)]
enum NoStruct {}

#[derive(ConfigDefaults)]
struct Unnamed(bool);

#[derive(ConfigDefaults)]
struct WrongTypes {
    output_attentions: f32,
    use_cache: usize,
}

fn main() {}
