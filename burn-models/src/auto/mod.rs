//! Loading by what a checkpoint says it is: the family by `model_type`, the head by the caller or by `architectures`.

mod error;
mod models;
mod select;

pub use error::AutoError;
pub use models::{AnyModel, AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification};
pub use select::{Family, Head};
