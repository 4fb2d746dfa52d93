use super::{BaseModel, Model};
use crate::config::DecoderConfig;

/// A decoder with or without a head.
pub trait Decoder: Model<Config: DecoderConfig> {
    /// The model without its head.
    type Base: BaseModel;

    /// The model without its head.
    fn base(&self) -> &Self::Base;

    /// The model without its head, to change it.
    fn base_mut(&mut self) -> &mut Self::Base;
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
