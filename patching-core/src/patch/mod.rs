//! Replacing classes of submodules, by name or by pattern, without touching a model's source.
//!
//! A replacement is a module with the constructor and the `forward` of the class whose place it takes, which
//! [`#[replaces]`](crate::replaces) has the compiler check. It is registered for the class's name, for all constructions
//! through `from_pretrained`, `from_config` and [`apply_patches`]:
//!
//! ```
//! # use burn::{module::Module, nn::{Linear, LinearConfig}, tensor::{Device, Tensor}};
//! # use patching_core::prelude::*;
//! # use patching_core::patch::PatchError;
//! # #[derive(Module, Debug)]
//! # pub struct MyMlp { up_proj: Linear }
//! # #[module_class]
//! # impl MyMlp {
//! #     pub fn new(size: usize, init: &Init) -> Self { Self { up_proj: LinearConfig::new(size, size).init(init.device()) } }
//! #     pub fn forward(&self, x: Tensor<2>) -> Tensor<2> { self.up_proj.forward(x) }
//! # }
//! # #[derive(Module, Debug)]
//! # pub struct MyBlock { mlp: Slot<MyMlp> }
//! #[derive(Module, Debug)]
//! pub struct Identity {}
//!
//! #[replaces(MyMlp)]
//! impl Identity {
//!     pub fn new(_size: usize, _init: &Init) -> Self { Self {} }
//!     pub fn forward(&self, x: Tensor<2>) -> Tensor<2> { x }
//! }
//!
//! # let device = Device::flex();
//! register_patch_mapping([("MyMlp", class::<Identity>())])?;
//! let patched = apply_patches(&device, |init| MyBlock { mlp: MyMlp::slot(8, init) })?;
//! assert!(patched.mlp.implementation::<Identity>().is_some());
//!
//! // Outside, the originals are used, whatever happened inside.
//! let plain = MyBlock { mlp: MyMlp::slot(8, &Init::new(&device)) };
//! assert!(plain.mlp.implementation::<MyMlp>().is_some());
//! # clear_patch_mapping();
//! # Ok::<(), PatchError>(())
//! ```
//!
//! A [`PatchSet`] is the same as a value, for one construction and without the registry. The slots of a model that is
//! there already are replaced with [`replace_slots`].

mod construct;
mod error;
mod key;
mod live;
mod recorders;
mod registry;
mod replacement;
mod report;
mod set;

pub(crate) use construct::{Inside, Patching};
pub use error::{PatchError, Unfit};
pub use live::{ReplacedSlots, replace_slots};
pub use recorders::patch_output_recorders;
pub use registry::{
    apply_patches, clear_patch_mapping, get_patch_mapping, register_patch_mapping, register_patch_mapping_with,
    unregister_patch_mapping,
};
pub use replacement::{Replacement, ReplacementBuilder, ReplacementClass, class, original};
pub use report::{PatchReport, ReplacedSlot, UnmatchedKey, UnmatchedReason};
pub use set::PatchSet;
