use thiserror::Error;

/// Why a choice of experts cannot be read or forced.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RoutingError {
    /// The number of values is not that of the shape.
    #[error("{found} values do not fill the shape [tokens, layers, top k] of {shape:?}")]
    Count {
        /// How many values there are.
        found: usize,
        /// The shape.
        shape: [usize; 3],
    },

    /// An index that is no expert's.
    #[error(
        "token {token} of sparse layer {layer} goes to expert {found}, expected {}",
        match .num_experts.checked_sub(1) {
            Some(last) => format!("0 to {last}"),
            None => "none: there are no experts".to_owned(),
        }
    )]
    OutOfRange {
        /// The token.
        token: usize,
        /// The layer, counting only those that have experts.
        layer: usize,
        /// The index.
        found: i64,
        /// How many experts there are.
        num_experts: usize,
    },

    /// The type of an array is too narrow for the experts that were chosen.
    #[error("expert {found} does not fit into {type_name}")]
    TooNarrow {
        /// The expert.
        found: i64,
        /// The type.
        type_name: &'static str,
    },

    /// Nothing was recorded, or not every layer.
    #[error(
        "`router_indices` holds {}: record all layers with `output(\"router_indices\", true)`",
        if *present == 0 { "nothing".to_owned() } else { format!("{present} of {expected} layers") }
    )]
    NotRecorded {
        /// How many layers are there.
        present: usize,
        /// How many there should be.
        expected: usize,
    },

    /// Parts that do not belong together.
    #[error("{what} differ: {found} and {expected}")]
    Unlike {
        /// What was compared.
        what: &'static str,
        /// That of one part.
        found: usize,
        /// That of the part before.
        expected: usize,
    },

    /// Another number of sparse layers, tokens or experts for each token than the call has.
    #[error("the routing has {found} {what}, the call has {expected}")]
    Mismatch {
        /// What was compared.
        what: &'static str,
        /// That of the routing.
        found: usize,
        /// That of the call.
        expected: usize,
    },

    /// Tokens that the routing does not have.
    #[error("the routing has {len} tokens, {wanted} were wanted")]
    Tokens {
        /// How many it has.
        len: usize,
        /// How many it would need.
        wanted: usize,
    },

    /// A model without experts.
    #[error("a routing was given to a `{model_type}` model, no layer of which has experts")]
    NoExperts {
        /// The family.
        model_type: String,
    },

    /// A router that did not do as it was told.
    #[error(
        "the router of layer {layer} did not use the experts that were forced on it: a replaced router has to ask its context for them"
    )]
    Ignored {
        /// The layer, counted among all layers.
        layer: usize,
    },

    /// Values could not be read back from the device.
    #[error("cannot read `router_indices` back from the device: {0}")]
    Read(String),
}

patching_core::__debug_as_display!(RoutingError);
