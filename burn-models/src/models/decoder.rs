use super::BaseModel;
use crate::config::DecoderConfig;
use patching_core::capture::Returned;
use patching_core::prelude::*;

/// A decoder with or without a head.
pub trait Decoder: PreTrainedModel<Config: DecoderConfig> {
    /// The model without its head.
    type Base: BaseModel;

    /// The model without its head.
    fn base(&self) -> &Self::Base;

    /// The model without its head, to change it.
    fn base_mut(&mut self) -> &mut Self::Base;

    /// An output as the caller wants it: the struct, or the tuple of what is present where `return_dict` is `false`.
    /// Where the caller does not say, the config does.
    fn returned<O: ModelOutput>(&self, output: O, kwargs: &ForwardKwargs) -> Returned<O> {
        output.returned(kwargs.get_return_dict().or(self.config().general().return_dict))
    }
}

/// Says where a head's base model is.
macro_rules! decoder_with_head {
    ($head:ident, $model:ident) => {
        impl $crate::models::Decoder for $head {
            type Base = $model;

            fn base(&self) -> &$model {
                &self.model
            }

            fn base_mut(&mut self) -> &mut $model {
                &mut self.model
            }
        }
    };
}
pub(crate) use decoder_with_head;
