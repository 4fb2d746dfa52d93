//! `#[derive(ModelOutput)]`.
mod parts;
use parts::*;

#[derive(ModelOutput)]
struct Unnamed(Tensor<3>);

#[derive(ModelOutput)]
enum NoStruct {}

#[derive(ModelOutput)]
struct Generic<T> {
    value: T,
}

#[derive(ModelOutput)]
struct Doubly {
    last_hidden_state: Tensor<3>,
    attentions: Option<Captured<Tensor<4>>>,
}

#[derive(ModelOutput)]
struct NoField {
    last_hidden_state: Tensor<3>,
    name: String,
}

fn uses(doubly: &Doubly) -> usize {
    doubly.to_tuple().len()
}

fn main() {}
