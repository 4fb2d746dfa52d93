//! A model's output as a flat list of named values.

use burn::tensor::TensorData;
use burnlens::patching_core::capture::{AnyTensor, OutputTuple, OutputValue};
use serde::Serialize;
use std::collections::BTreeMap;

/// One value that a model gave.
pub(crate) struct Value {
    /// `logits`, `hidden_states.0`, `text_model_output.attentions.1`
    pub(crate) name: String,
    /// The name without its position.
    pub(crate) key: String,
    /// Its position in a recorded sequence, and the module it is from.
    pub(crate) recorded: Option<(usize, String)>,
    pub(crate) data: TensorData,
}

/// A recorded sequence, in the form of `meta.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Entry {
    pub(crate) length: usize,
    pub(crate) present: Vec<usize>,
}

/// Everything that a forward pass gave.
#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) values: Vec<Value>,
    /// The names of the output's fields, in order.
    pub(crate) tuple_order: Vec<String>,
    pub(crate) entries: BTreeMap<String, Entry>,
}

impl Recorded {
    /// Reads an output back from the device.
    pub(crate) fn of(output: &OutputTuple) -> Self {
        let tuple_order = output.names().map(str::to_owned).collect();
        let mut recorded = Self { tuple_order, ..Self::default() };
        recorded.add("", output);
        recorded
    }

    /// The same with `prefix` in front of every name.
    pub(crate) fn with_prefix(prefix: &str, output: &OutputTuple) -> Self {
        let mut recorded = Self::default();
        recorded.add(prefix, output);
        recorded
    }

    fn add(&mut self, prefix: &str, output: &OutputTuple) {
        for (field, value) in output.iter() {
            let key = format!("{prefix}{field}");
            match value {
                OutputValue::Tensor(tensor) => self.push(key.clone(), key, None, tensor),
                OutputValue::Captured(captured) => {
                    let present = captured.iter().map(|(position, ..)| position).collect();
                    self.entries.insert(key.clone(), Entry { length: captured.len(), present });
                    for (position, path, tensor) in captured.iter() {
                        self.push(format!("{key}.{position}"), key.clone(), Some((position, path.to_owned())), tensor);
                    }
                }
                OutputValue::Nested(nested) => self.add(&format!("{key}."), nested),
                // A cache and the like: in the order of the fields, but with nothing to compare.
                _ => {}
            }
        }
    }

    fn push(&mut self, name: String, key: String, recorded: Option<(usize, String)>, tensor: &AnyTensor) {
        self.values.push(Value { name, key, recorded, data: tensor.to_data() });
    }
}

impl Value {
    pub(crate) fn shape(&self) -> &[usize] {
        self.data.shape()
    }

    /// Whether it holds the attention weights of a layer, `[batch, heads, query, key]`.
    pub(crate) fn is_attention(&self) -> bool {
        self.key.ends_with("attentions") && self.shape().len() == 4 && self.data.dtype().is_float()
    }

    /// The square root of the sum of squares; `None` for what is no float.
    pub(crate) fn norm(&self) -> Option<f64> {
        let is_float = self.data.dtype().is_float();
        is_float.then(|| self.data.iter::<f64>().map(|value| value * value).sum::<f64>().sqrt())
    }
}
