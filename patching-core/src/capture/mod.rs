//! Recording: what a base model declares, what a caller asks for, and how one call collects it.

mod any_tensor;
mod captured;
pub(crate) mod check;
mod collector;
mod defaults;
mod element;
mod error;
mod kwargs;
pub(crate) mod merge;
mod output;
mod parts;
mod plan;
mod recorder;
pub(crate) mod run;
mod scope;
mod selection;

pub use crate::class::erase::Kind as TensorKind;
pub use any_tensor::AnyTensor;
pub use captured::{Captured, CapturedTensors, Raw};
pub use defaults::ConfigDefaults;
pub use element::{Argument, Element, ElementAt, ModuleOutput, NoTensor, Value};
pub use error::CaptureError;
pub use kwargs::{ForwardKwargs, Keep};
pub use output::{AnyOutput, Captures, Field, ModelOutput, OutputField, OutputTuple, OutputValue, Returned};
pub use parts::Part;
pub use plan::{CapturePlan, PlannedKey, PlannedValue};
#[doc(hidden)]
pub use recorder::Key;
pub use recorder::{CanRecordOutputs, OutputRecorder, OutputRecorders, PointedAt, Target};
pub use run::Fallible;
pub use scope::{Call, Scope, enter, is_complete, is_wanted};
pub use selection::{Flag, ParseFlagError, Selection};
