use super::selection::Flag;

/// What a model's config says where the caller says nothing. Every answer may be absent.
///
/// A config without defaults of its own needs one line: `impl ConfigDefaults for MyConfig {}`. Or derive it: fields
/// named `output_<key>`, `return_dict`, `tie_last_hidden_states`, `use_cache` and `is_causal` answer for themselves.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what a call falls back to",
    label = "not the config of a model",
    note = "write `#[derive(ConfigDefaults)]` on it, or `impl ConfigDefaults for {Self} {{}}` if it has no defaults"
)]
pub trait ConfigDefaults {
    /// What to record for `key`.
    fn output_flag(&self, _key: &str) -> Option<Flag> {
        None
    }
    /// Whether results are output structs (`true`) or tuples of what is present (`false`).
    fn return_dict(&self) -> Option<bool> {
        None
    }
    /// Whether the last hidden state is the model's `last_hidden_state`; beats the macro's argument.
    fn tie_last_hidden_states(&self) -> Option<bool> {
        None
    }
    /// Whether keys and values are kept for the next call.
    fn use_cache(&self) -> Option<bool> {
        None
    }
    /// Whether attention looks at earlier positions only.
    fn is_causal(&self) -> Option<bool> {
        None
    }
}
