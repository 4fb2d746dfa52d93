use super::selection::Flag;
use burn::tensor::FloatDType;
use std::collections::BTreeMap;

/// What a caller asks of one `forward`: the values to record and how to keep them, and the arguments that fall back
/// to the config.
///
/// ```
/// use patching_core::capture::ForwardKwargs;
/// let kwargs = ForwardKwargs::new().output_hidden_states([0, -1]).output_attentions(true).use_cache(false);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForwardKwargs {
    flags: BTreeMap<String, Flag>,
    expected: BTreeMap<String, usize>,
    use_cache: Option<bool>,
    is_causal: Option<bool>,
    return_dict: Option<bool>,
    keep: Keep,
}

/// How a recorded value is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Taken off the autodiff graph.
    pub detach: bool,
    /// Cast to this type, at the moment of recording.
    pub cast: Option<FloatDType>,
}

impl ForwardKwargs {
    /// Asks for nothing; allocates nothing.
    pub const fn new() -> Self {
        Self {
            flags: BTreeMap::new(),
            expected: BTreeMap::new(),
            use_cache: None,
            is_causal: None,
            return_dict: None,
            keep: Keep { detach: false, cast: None },
        }
    }

    /// What to record for `key`: `true`, `false`, an index, a list, a range, or an `Option` of those, where `None`
    /// leaves it to the config.
    pub fn output(mut self, key: impl Into<String>, flag: impl Into<Flag>) -> Self {
        match flag.into() {
            Flag::Unset => self.flags.remove(&key.into()),
            flag => self.flags.insert(key.into(), flag),
        };
        self
    }

    /// What to record of the hidden states.
    pub fn output_hidden_states(self, flag: impl Into<Flag>) -> Self {
        self.output("hidden_states", flag)
    }

    /// What to record of the attention weights. Cross-attentions follow, unless they are given explicitly.
    pub fn output_attentions(self, flag: impl Into<Flag>) -> Self {
        self.output("attentions", flag)
    }

    /// What to record of the attention weights over another sequence.
    pub fn output_cross_attentions(self, flag: impl Into<Flag>) -> Self {
        self.output("cross_attentions", flag)
    }

    /// What to record of the router logits.
    pub fn output_router_logits(self, flag: impl Into<Flag>) -> Self {
        self.output("router_logits", flag)
    }

    /// Asserts that `key` has `count` values, kept or not; anything else is an error.
    pub fn expect(mut self, key: impl Into<String>, count: usize) -> Self {
        self.expected.insert(key.into(), count);
        self
    }

    /// Whether the model keeps keys and values for the next call; `None` leaves it to the config.
    pub fn use_cache(mut self, on: impl Into<Option<bool>>) -> Self {
        self.use_cache = on.into();
        self
    }

    /// Whether attention looks at earlier positions only; `None` leaves it to the config. Holds for this call.
    pub fn is_causal(mut self, on: impl Into<Option<bool>>) -> Self {
        self.is_causal = on.into();
        self
    }

    /// Whether the result is the output struct or the tuple of what is present; `None` leaves it to the config.
    pub fn return_dict(mut self, on: impl Into<Option<bool>>) -> Self {
        self.return_dict = on.into();
        self
    }

    /// Takes recorded tensors off the autodiff graph.
    pub fn detach(mut self, on: bool) -> Self {
        self.keep.detach = on;
        self
    }

    /// Casts recorded float tensors at the moment of recording.
    pub fn cast(mut self, dtype: impl Into<Option<FloatDType>>) -> Self {
        self.keep.cast = dtype.into();
        self
    }

    /// What was said about `key`.
    pub fn flag(&self, key: &str) -> &Flag {
        self.flags.get(key).unwrap_or(&Flag::Unset)
    }

    /// The keys that something was said about.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.flags.keys().map(String::as_str)
    }

    /// See [`use_cache`](Self::use_cache); below `#[merge_with_config_defaults]` the config's value is filled in.
    pub fn get_use_cache(&self) -> Option<bool> {
        self.use_cache
    }

    /// See [`is_causal`](Self::is_causal); below `#[merge_with_config_defaults]` the config's value is filled in.
    pub fn get_is_causal(&self) -> Option<bool> {
        self.is_causal
    }

    /// See [`return_dict`](Self::return_dict).
    pub fn get_return_dict(&self) -> Option<bool> {
        self.return_dict
    }

    /// How recorded values are kept.
    pub fn keep(&self) -> Keep {
        self.keep
    }

    /// The same with recorded values as they are, neither taken off the graph nor cast: for a call that computes with
    /// what it records. What goes to the caller is [`kept`](super::Captured::kept) as was asked.
    #[must_use]
    pub fn as_they_are(mut self) -> Self {
        self.keep = Keep::default();
        self
    }

    /// The same that asks for nothing to be recorded.
    pub(crate) fn without_outputs(&self) -> Self {
        Self { flags: BTreeMap::new(), expected: BTreeMap::new(), ..self.clone() }
    }

    pub(crate) fn expected(&self) -> impl Iterator<Item = (&str, usize)> {
        self.expected.iter().map(|(key, count)| (key.as_str(), *count))
    }
}
