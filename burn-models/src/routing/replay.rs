use super::{ExpertRouting, RoutingError};
use crate::config::ExpertsShape;
use crate::layers::embedding::is_readable;
use burn::tensor::{Device, Int, Tensor};

/// A routing on its way through one call.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    routing: ExpertRouting,
    /// The layers that have experts, and what is known of each.
    layers: Vec<(usize, Heard)>,
}

/// What a router did with the experts that are forced on its layer.
#[derive(Clone, Debug)]
enum Heard {
    /// It did not ask for them.
    Nothing,
    /// It asked, and as far as is known it used them.
    Asked,
    /// It used others, or what it used cannot be known.
    Failed(RoutingError),
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
                let layers = experts.layers.iter().map(|layer| (*layer, Heard::Nothing)).collect();
                Ok(Self { routing, layers })
            }
        }
    }

    /// The experts that are forced on layer `layer`, `[tokens, top k]`.
    pub(crate) fn take(&mut self, layer: usize, device: &Device) -> Option<Tensor<2, Int>> {
        let at = self.layers.iter().position(|(known, _)| *known == layer)?;
        let heard = &mut self.layers[at].1;
        if matches!(heard, Heard::Nothing) {
            *heard = Heard::Asked;
        }
        Some(self.routing.layer_on(at, device))
    }

    /// Notes whether the router of layer `layer` did as it was told.
    pub(crate) fn note(&mut self, layer: usize, indices: &Tensor<2, Int>) {
        if is_readable(&indices.device()) {
            let found = indices.clone().try_into_data().map(|data| data.iter::<i64>().collect::<Vec<_>>());
            self.note_values(layer, found.map_err(|error| error.to_string()));
        }
    }

    /// The same for what was read back, or why it was not.
    fn note_values(&mut self, layer: usize, found: Result<Vec<i64>, String>) {
        let Some(at) = self.layers.iter().position(|(known, _)| *known == layer) else { return };
        let error = match found {
            Ok(found) if found == self.routing.layer(at) => return,
            Ok(_) => RoutingError::Ignored { layer },
            Err(problem) => RoutingError::Read(problem),
        };
        self.layers[at].1 = Heard::Failed(error);
    }

    /// Whether layer `layer`, which ran, used the experts that were forced on it, if it has any.
    pub(crate) fn check(&self, layer: usize) -> Result<(), RoutingError> {
        match self.layers.iter().find(|(known, _)| *known == layer) {
            Some((_, Heard::Failed(error))) => Err(error.clone()),
            Some((_, Heard::Nothing)) => Err(RoutingError::Ignored { layer }),
            Some((_, Heard::Asked)) | None => Ok(()),
        }
    }

    /// The same for every layer.
    pub(crate) fn finish(&self) -> Result<(), RoutingError> {
        self.layers.iter().try_for_each(|(layer, _)| self.check(*layer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DecoderConfig;
    use crate::mixtral::MixtralConfig;

    /// Two tokens in layers 0 and 1, of which each asked.
    fn asked() -> Replay {
        let config = MixtralConfig { num_hidden_layers: 2, ..MixtralConfig::default() };
        let routing = ExpertRouting::from_array(&[0_u8, 1, 2, 3, 4, 5, 6, 7], [2, 2, 2], 8).expect("valid");
        let mut replay = Replay::new(routing, &config.experts().expect("experts"), 2).expect("fits");
        replay.layers.iter_mut().for_each(|(_, heard)| *heard = Heard::Asked);
        replay
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_obeyed() {
        let mut replay = asked();
        replay.note_values(0, Ok(vec![0, 1, 4, 5]));
        replay.note_values(1, Err("device lost".to_owned()));
        assert_eq!(replay.check(0), Ok(()));
        let error = replay.finish().expect_err("not known");
        assert_eq!(error, RoutingError::Read("device lost".to_owned()));
        assert_eq!(replay.check(1), Err(error));
    }

    #[test]
    fn a_layer_is_judged_by_itself() {
        let mut replay = asked();
        replay.note_values(1, Ok(vec![2, 3, 7, 6]));
        assert_eq!(replay.check(0), Ok(()));
        assert_eq!(replay.check(1), Err(RoutingError::Ignored { layer: 1 }));
        assert_eq!(replay.check(7), Ok(()), "a layer without experts");
        replay.layers[0].1 = Heard::Nothing;
        assert_eq!(replay.check(0), Err(RoutingError::Ignored { layer: 0 }));
    }
}
