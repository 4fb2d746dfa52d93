use crate::names::{did_you_mean, list};
use std::fmt;

/// A request that cannot be met, or was not.
/// `Debug` says the same as `Display`: it is what a `main` that returns it prints.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The model declares no such key.
    #[error("`{model}` cannot record `{key}`: it declares {}{}", list(known), did_you_mean(near))]
    UnknownKey {
        /// The model's name.
        model: &'static str,
        /// The key asked for.
        key: String,
        /// The keys that it declares.
        known: Vec<&'static str>,
        /// Those that look alike.
        near: Vec<&'static str>,
    },
    /// The model declares nothing.
    #[error("`{model}` cannot record `{key}`: it declares nothing that can be recorded (`#[can_record_outputs(…)]`)")]
    NothingDeclared {
        /// The model's name.
        model: &'static str,
        /// The key asked for.
        key: String,
    },
    /// No slot of the model matches the key's recorders.
    #[error(
        "nothing in this `{model}` matches `{key}`, which records {targets}; its slots hold the classes {}{}",
        list(present),
        did_you_mean(near)
    )]
    NoSlot {
        /// The model's name.
        model: &'static str,
        /// The key asked for.
        key: &'static str,
        /// What the key's recorders look for.
        targets: String,
        /// The classes of the model's slots.
        present: Vec<&'static str>,
        /// Those that look like a class that was named.
        near: Vec<&'static str>,
    },
    /// A recorder asks for an element that its class does not return.
    #[error("`{key}` records element {index} of `{class}` at `{path}`, which returns {arity}")]
    NoElement {
        /// The key asked for.
        key: &'static str,
        /// The class.
        class: &'static str,
        /// Where the slot is.
        path: String,
        /// The element asked for.
        index: isize,
        /// How many there are.
        arity: usize,
    },
    /// A selected index that the sequence does not have.
    #[error("`{key}` has no value {index}: there are {len}, {}{}", valid(*len), hint(*repeats))]
    IndexOutOfRange {
        /// The key asked for.
        key: String,
        /// The index asked for.
        index: isize,
        /// How many values there are.
        len: usize,
        /// Whether the number was predicted from a single slot, which may be called several times.
        repeats: bool,
    },
    /// A selection that selects nothing.
    #[error("the selection for `{key}` selects nothing: leave the key out, or pass `false`{}", hint(*repeats))]
    EmptySelection {
        /// The key asked for.
        key: String,
        /// Whether the number of values was predicted from a single slot, which may be called several times.
        repeats: bool,
    },
    /// The number of values is not the one that was asserted.
    #[error("`{key}` has {found} values, {expected} were expected")]
    Count {
        /// The key.
        key: String,
        /// The number asserted.
        expected: usize,
        /// The number found.
        found: usize,
    },
    /// A number of layers that no model has.
    #[error("`{key}` would have {count} values: the config field that `num_hidden_layers_key` names is wrong")]
    TooMany {
        /// The key.
        key: &'static str,
        /// The number in the config.
        count: usize,
    },
    /// A slot that was planned, but not called in this run, or called on a thread that the scope was not carried to.
    #[error(
        "`{key}` was asked for, but `{path}` was not called in this run (a thread started by `forward` sees the request only inside `Scope::enter`)"
    )]
    NotFired {
        /// The key.
        key: &'static str,
        /// Where the slot is.
        path: String,
    },
    /// A call that did not give the value.
    #[error("`{key}` was asked for, but `{path}` returned no value for it{}", if key.contains("attentions") { ": its attention implementation gives no weights; choose one that does, such as `eager`" } else { "" })]
    NotGiven {
        /// The key.
        key: &'static str,
        /// Where the slot is.
        path: String,
    },
    /// A slot that was called more often than was predicted, so that a position from the end was already dropped.
    #[error(
        "value {position} of `{key}` was not kept: `{path}` was called {calls} times; declare the number of values with `num_hidden_layers_key`, or select with indices from the start"
    )]
    Repeated {
        /// The key.
        key: &'static str,
        /// Where the slot is.
        path: String,
        /// How often it was called.
        calls: usize,
        /// The position that is not there.
        position: usize,
    },
    /// A recorded value that its field cannot hold.
    #[error("`{key}` holds values of type `{expected}`, but `{path}` recorded something else")]
    WrongType {
        /// The key.
        key: String,
        /// Where the slot is.
        path: String,
        /// The type of the field's values.
        expected: &'static str,
    },
    /// The first recorded layer's first argument is no tensor.
    #[error(
        "`{key}` begins with the input of its first layer, but the first argument of `{path}` is no tensor: write `capture_initial_hidden_state = false`"
    )]
    InitialNotTensor {
        /// The key.
        key: &'static str,
        /// Where the slot is.
        path: String,
    },
    /// A captured sequence was asked for a value that it does not hold.
    #[error("there is no value {index}: {}", held(*len, present))]
    NotPresent {
        /// The index asked for.
        index: isize,
        /// The length of the sequence.
        len: usize,
        /// The positions that are held.
        present: Vec<usize>,
    },
    /// An output that has no field for a recorded key.
    #[error("`{output}` has no field for the recorded `{key}`; it has {}", list(fields))]
    NoField {
        /// The output struct.
        output: &'static str,
        /// The key.
        key: String,
        /// The fields for recorded values that it has.
        fields: Vec<&'static str>,
    },
    /// A `vision_feature_select_strategy` that does not exist.
    #[error("`{found}` is no select strategy: expected `default` or `full`")]
    SelectStrategy {
        /// What was given.
        found: String,
    },
    /// Not an error: how a run that may stop early leaves the model. Never seen by callers.
    #[doc(hidden)]
    #[error("everything asked for was recorded")]
    Complete,
}

impl fmt::Debug for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn valid(len: usize) -> String {
    match len {
        0 => "so no index is valid".to_owned(),
        len => format!("valid are 0 to {} and -{len} to -1", len - 1),
    }
}

fn hint(repeats: bool) -> &'static str {
    if repeats {
        " (there is one slot for it: if it is called several times, declare the number with `num_hidden_layers_key`)"
    } else {
        ""
    }
}

fn held(len: usize, present: &[usize]) -> impl fmt::Display {
    match (len, present) {
        (0, _) => "nothing was recorded, since the key was not asked for (`ForwardKwargs::output`)".to_owned(),
        (len, present) if present.len() == len => valid(len),
        (len, present) => format!("of {len} only {present:?} were selected"),
    }
}
