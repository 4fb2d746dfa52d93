use super::{ExpertRouting, RoutingError};
use crate::config::ExpertsShape;
use crate::layers::embedding::is_readable;
use burn::tensor::{Device, Int, Tensor};

/// A routing on its way through one call.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    routing: ExpertRouting,
    /// The layers that have experts, and whether each asked for those that are forced on it.
    layers: Vec<(usize, bool)>,
    /// The first layer that was told and did otherwise.
    disobeyed: Option<usize>,
}

impl Replay {
    /// Checks that `routing` is one for a call of `tokens` tokens.
    pub(crate) fn new(routing: ExpertRouting, experts: &ExpertsShape, tokens: usize) -> Result<Self, RoutingError> {
        for (what, found, expected) in [
            ("sparse layers", routing.layers(), experts.layers.len()),
            ("experts for each token", routing.top_k(), experts.top_k),
            ("tokens", routing.tokens(), tokens),
        ] {
            if found != expected {
                return Err(RoutingError::Mismatch { what, found, expected });
            }
        }
        let num_experts = experts.num_experts;
        match routing.largest() {
            Some((token, layer, expert)) if expert as usize >= num_experts => {
                Err(RoutingError::OutOfRange { token, layer, found: i64::from(expert), num_experts })
            }
            _ => {
                let layers = experts.layers.iter().map(|layer| (*layer, false)).collect();
                Ok(Self { routing, layers, disobeyed: None })
            }
        }
    }

    /// The experts that are forced on layer `layer`, `[tokens, top k]`.
    pub(crate) fn take(&mut self, layer: usize, device: &Device) -> Option<Tensor<2, Int>> {
        let at = self.layers.iter().position(|(known, _)| *known == layer)?;
        self.layers[at].1 = true;
        Some(self.routing.layer_on(at, device))
    }

    /// Whether the router of layer `layer` did as it was told.
    pub(crate) fn check(&mut self, layer: usize, indices: &Tensor<2, Int>) {
        let Some(at) = self.layers.iter().position(|(known, _)| *known == layer) else { return };
        if self.disobeyed.is_some() || !is_readable(&indices.device()) {
            return;
        }
        let found = indices.clone().try_into_data().map(|data| data.iter::<i64>().collect::<Vec<_>>());
        if found.is_ok_and(|found| found != self.routing.layer(at)) {
            self.disobeyed = Some(layer);
        }
    }

    /// Whether every layer that has experts used those that were forced on it.
    pub(crate) fn finish(&self) -> Result<(), RoutingError> {
        let forgotten = self.layers.iter().find(|(_, asked)| !asked).map(|(layer, _)| *layer);
        match self.disobeyed.or(forgotten) {
            Some(layer) => Err(RoutingError::Ignored { layer }),
            None => Ok(()),
        }
    }
}
