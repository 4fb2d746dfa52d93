//! Module classes, the slots that hold their implementations, and how both are constructed.

mod edit;
pub(crate) mod erase;
mod failed;
mod hooked;
mod init;
mod module_class;
mod paths;
mod slot;
mod walk;

pub(crate) use edit::{Edits, edit, edited, edited_recorders};
#[doc(hidden)]
pub use erase::{DynMapper, DynVisitor, Inward, Outward};
#[doc(hidden)]
pub use failed::Failed;
pub use hooked::{Hooked, SlotId};
pub use init::{Construct, Init};
pub use module_class::{ClassName, Implements, ModuleClass, SlotModule, known_classes};
pub(crate) use paths::is_within;
#[doc(hidden)]
pub use slot::Identity;
pub use slot::{Erased, Slot};
pub(crate) use walk::{
    BaseModel, OwnSlots, Survey, base_models, field_name, is_variant, meet_recorders, own_slots, slots_of, survey,
};
pub use walk::{SlotInfo, all_slots, slots};
