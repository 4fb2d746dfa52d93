//! Loading by what a checkpoint says it is: the family by `model_type`, the head by the caller or by `architectures`.

mod any;
mod error;
mod models;
mod named;
mod outputs;
mod select;

pub use any::RunError;
pub use error::AutoError;
pub use models::{AnyModel, AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification};
pub use named::{InputError, NamedInputs};
pub use outputs::{AutoCaptures, AutoCausalLMOutput, AutoModelOutput, AutoSequenceClassifierOutput};
pub use select::{Family, Head};
