//! `#[derive(ConfigDefaults)]`.
mod parts;
use parts::*;

#[derive(ConfigDefaults)]
enum NoStruct {}

#[derive(ConfigDefaults)]
struct Unnamed(bool);

#[derive(ConfigDefaults)]
struct WrongType {
    output_attentions: f32,
}

fn main() {}
