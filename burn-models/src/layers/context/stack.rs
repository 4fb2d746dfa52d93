use crate::config::GeneralConfig;
use patching_core::capture::ForwardKwargs;

/// Whether a position looks at later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Causality {
    /// It does not, unless a call says otherwise.
    Causal,
    /// It does, unless a call says otherwise.
    Bidirectional,
    /// It does not, whatever a call says.
    AlwaysCausal,
    /// It does, whatever a call says.
    NeverCausal,
}

impl Causality {
    pub(super) fn is_causal(self, kwargs: &ForwardKwargs) -> bool {
        match self {
            Self::Causal => kwargs.get_is_causal().unwrap_or(true),
            Self::Bidirectional => kwargs.get_is_causal().unwrap_or(false),
            Self::AlwaysCausal => true,
            Self::NeverCausal => false,
        }
    }
}

/// What the context of a stack of layers depends on besides the inputs of a call.
#[derive(Clone, Debug)]
pub struct Stack<'a> {
    /// The part of the config that is not about the architecture.
    pub general: &'a GeneralConfig,
    /// How far back each layer looks.
    pub windows: Vec<Option<usize>>,
    /// The number of key and value heads.
    pub key_heads: usize,
    /// The size of a head.
    pub head_dim: usize,
    /// Whether a position looks at later ones.
    pub causality: Causality,
    /// Whether keys and values are kept unless a call says otherwise; `None`: the stack has no cache.
    pub use_cache: Option<bool>,
    /// The hidden size of the encoder that layers look at; `None`: they look at none.
    pub encoder_size: Option<usize>,
    /// How many positions have embeddings; `None`: positions are not looked up.
    pub max_positions: Option<usize>,
    /// Whether positions that begin anew part a row into sequences that do not see each other.
    pub packs: bool,
}

impl<'a> Stack<'a> {
    /// `layers` layers of an encoder: every position looks at every other, and nothing is kept.
    pub fn encoder(general: &'a GeneralConfig, layers: usize) -> Self {
        Self {
            general,
            windows: vec![None; layers],
            key_heads: 0,
            head_dim: 0,
            causality: Causality::Bidirectional,
            use_cache: None,
            encoder_size: None,
            max_positions: None,
            packs: false,
        }
    }

    /// `layers` layers of a decoder that has as many key heads as query heads.
    pub fn decoder(general: &'a GeneralConfig, layers: usize, [heads, head_dim]: [usize; 2], use_cache: bool) -> Self {
        Self {
            key_heads: heads,
            head_dim,
            causality: Causality::Causal,
            use_cache: Some(use_cache),
            ..Self::encoder(general, layers)
        }
    }
}
