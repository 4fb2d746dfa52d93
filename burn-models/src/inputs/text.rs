use crate::layers::Cache;
use crate::routing::ExpertRouting;
use burn::tensor::{Int, Tensor};

/// What a text model's `forward` is given.
///
/// Token ids alone turn into it: `model.forward(input_ids, &kwargs)`. The rest is added by name.
///
/// ```no_run
/// # use burn::tensor::{Int, Tensor};
/// # fn with(input_ids: Tensor<2, Int>, mask: Tensor<2, Int>) {
/// use burn_models::TextInputs;
/// let inputs = TextInputs::new(input_ids).attention_mask(mask);
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct TextInputs {
    /// `[batch, seq]`; or else `inputs_embeds`.
    pub input_ids: Option<Tensor<2, Int>>,
    /// `[batch, seq, hidden]`; or else `input_ids`.
    pub inputs_embeds: Option<Tensor<3>>,
    /// `[batch, past + seq]`, zero where a token is padding; none: no padding.
    pub attention_mask: Option<Tensor<2, Int>>,
    /// `[batch or 1, seq]`; none: counted from the first column, padding included.
    ///
    /// Without a mask and a cache, positions that begin anew part a row into sequences that do not see each other. A
    /// call makes a cache unless it is told not to, so such packed rows need `use_cache(false)`.
    pub position_ids: Option<Tensor<2, Int>>,
    /// Which of two texts each token belongs to, `[batch, seq]`; none: all to the first. Only models that have such
    /// embeddings take it.
    pub token_type_ids: Option<Tensor<2, Int>>,
    /// What an encoder gave, `[batch, source, hidden]`, for a decoder that looks at it.
    pub encoder_hidden_states: Option<Tensor<3>>,
    /// `[batch, source]`, zero where the encoder's input is padding; none: no padding.
    pub encoder_attention_mask: Option<Tensor<2, Int>>,
    /// What the model has seen before; it comes back in the output, grown.
    pub cache: Option<Cache>,
    /// The experts that this call is forced to, one set for each token and sparse layer; none: the routers choose.
    ///
    /// That the routers obey is checked, by reading back what each used: the device is waited for once for each sparse
    /// layer. A device that only records operations is not asked.
    pub expert_routing: Option<ExpertRouting>,
    /// The expected answers, for a loss.
    pub labels: Option<Labels>,
    /// The positions for which a language model head computes logits.
    pub logits_to_keep: LogitsToKeep,
}

/// The expected answers that a loss is computed from.
#[derive(Clone, Debug)]
pub enum Labels {
    /// For a language model: the tokens themselves, `[batch, seq]`, `-100` where none is expected. One that predicts
    /// what comes next shifts them inside; where an encoder is answered or hidden tokens are filled in, they stand where
    /// they are expected. For a classifier of tokens: the index of each token's class.
    Tokens(Tensor<2, Int>),
    /// For a classifier: the index of each sequence's class, `[batch]`.
    Classes(Tensor<1, Int>),
    /// For a classifier: a number for each sequence and label, `[batch, labels]`; for regression, or for several
    /// labels at once.
    Targets(Tensor<2>),
    /// For a model that marks the answer to a question: the tokens at which it begins and ends, `[batch]` each.
    Spans {
        /// The index of its first token.
        start: Tensor<1, Int>,
        /// The index of its last token.
        end: Tensor<1, Int>,
    },
    /// For a model with a head for tokens and one for sequences: the tokens, `[batch, seq]`, `-100` where none is
    /// expected, and the index of each sequence's class, `[batch]`.
    TokensAndClasses {
        /// The tokens.
        tokens: Tensor<2, Int>,
        /// The classes.
        classes: Tensor<1, Int>,
    },
}

impl Labels {
    /// Their kind and shape, for messages.
    pub(crate) fn description(&self) -> String {
        let (kind, shape) = match self {
            Self::Tokens(tokens) => ("tokens", tokens.dims().to_vec()),
            Self::Classes(classes) => ("classes", classes.dims().to_vec()),
            Self::Targets(targets) => ("targets", targets.dims().to_vec()),
            Self::Spans { start, .. } => ("spans", start.dims().to_vec()),
            Self::TokensAndClasses { tokens, .. } => ("tokens and classes", tokens.dims().to_vec()),
        };
        format!("{kind} of shape {shape:?}")
    }
}

/// The positions for which a language model head computes logits.
#[derive(Clone, Debug, Default)]
#[allow(clippy::large_enum_variant, reason = "there is one for each call")]
pub enum LogitsToKeep {
    /// All.
    #[default]
    All,
    /// The last so many; 0 or more than there are: all.
    Last(usize),
    /// These, `[positions]`, counted from 0, the same for each sequence.
    Positions(Tensor<1, Int>),
}

impl TextInputs {
    /// Token ids, `[batch, seq]`.
    pub fn new(input_ids: Tensor<2, Int>) -> Self {
        Self { input_ids: Some(input_ids), ..Self::default() }
    }

    /// Embeddings in place of token ids, `[batch, seq, hidden]`.
    pub fn from_embeds(inputs_embeds: Tensor<3>) -> Self {
        Self { inputs_embeds: Some(inputs_embeds), ..Self::default() }
    }

    /// Says which tokens are padding (zero), `[batch, past + seq]`.
    pub fn attention_mask(mut self, mask: impl Into<Option<Tensor<2, Int>>>) -> Self {
        self.attention_mask = mask.into();
        self
    }

    /// Says where each token stands, `[batch or 1, seq]`.
    pub fn position_ids(mut self, positions: impl Into<Option<Tensor<2, Int>>>) -> Self {
        self.position_ids = positions.into();
        self
    }

    /// Says which of two texts each token belongs to, `[batch, seq]`.
    pub fn token_type_ids(mut self, types: impl Into<Option<Tensor<2, Int>>>) -> Self {
        self.token_type_ids = types.into();
        self
    }

    /// Gives a decoder what it looks at, `[batch, source, hidden]`.
    pub fn encoder_hidden_states(mut self, states: impl Into<Option<Tensor<3>>>) -> Self {
        self.encoder_hidden_states = states.into();
        self
    }

    /// Says which positions of the encoder are padding (zero), `[batch, source]`.
    pub fn encoder_attention_mask(mut self, mask: impl Into<Option<Tensor<2, Int>>>) -> Self {
        self.encoder_attention_mask = mask.into();
        self
    }

    /// Goes on after what `cache` has seen.
    pub fn cache(mut self, cache: impl Into<Option<Cache>>) -> Self {
        self.cache = cache.into();
        self
    }

    /// Forces this call to these experts; nothing of it stays in the model. It costs a wait for the device for each
    /// sparse layer; see [`expert_routing`](Self::expert_routing).
    pub fn expert_routing(mut self, routing: impl Into<Option<ExpertRouting>>) -> Self {
        self.expert_routing = routing.into();
        self
    }

    /// Asks for a loss.
    pub fn labels(mut self, labels: impl Into<Labels>) -> Self {
        self.labels = Some(labels.into());
        self
    }

    /// Computes logits for some positions only.
    pub fn logits_to_keep(mut self, keep: impl Into<LogitsToKeep>) -> Self {
        self.logits_to_keep = keep.into();
        self
    }
}

impl From<Tensor<2, Int>> for TextInputs {
    fn from(input_ids: Tensor<2, Int>) -> Self {
        Self::new(input_ids)
    }
}

impl From<Tensor<2, Int>> for Labels {
    fn from(tokens: Tensor<2, Int>) -> Self {
        Self::Tokens(tokens)
    }
}

impl From<Tensor<1, Int>> for Labels {
    fn from(classes: Tensor<1, Int>) -> Self {
        Self::Classes(classes)
    }
}

impl From<Tensor<2>> for Labels {
    fn from(targets: Tensor<2>) -> Self {
        Self::Targets(targets)
    }
}

/// `0` keeps all, as in the reference.
impl From<usize> for LogitsToKeep {
    fn from(last: usize) -> Self {
        if last == 0 { Self::All } else { Self::Last(last) }
    }
}

impl From<Tensor<1, Int>> for LogitsToKeep {
    fn from(positions: Tensor<1, Int>) -> Self {
        Self::Positions(positions)
    }
}
