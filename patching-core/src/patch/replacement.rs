use crate::class::{Implements, ModuleClass, Slot};
use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

/// A module that stands in for module classes.
///
/// Written by [`#[replaces(…)]`](crate::replaces) on the `impl` block that holds its `new` and `forward`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which module classes it replaces",
    label = "no `#[replaces(…)]`",
    note = "write `#[replaces(SomeClass)]` on the `impl` block that holds its `new` and `forward`"
)]
pub trait Replacement: Sized + 'static {
    /// Its name in reports.
    const NAME: &'static str;

    /// The replacement as a value.
    fn replacement_class() -> ReplacementClass;
}

/// A replacement as a value: what a patch puts into the slots of the classes that its key matches.
///
/// Made by [`class`] for types with `#[replaces(…)]`. A type that implements [`Implements`] by hand says which classes
/// are meant: `ReplacementClass::new::<MyAttention>("MyAttention").standing_in_for::<LlamaAttention, MyAttention>()`.
#[derive(Clone)]
pub struct ReplacementClass {
    name: &'static str,
    /// `None`: the original.
    implementation: Option<TypeId>,
    stand_ins: Arc<Vec<StandIn>>,
}

/// How one class is constructed by the replacement.
#[derive(Clone)]
struct StandIn {
    id: TypeId,
    class: &'static str,
    /// A `C::New<Slot<C>>`.
    new: Arc<dyn Any + Send + Sync>,
}

/// The replacement `M`, for a patch.
pub fn class<M: Replacement>() -> ReplacementClass {
    M::replacement_class()
}

/// No replacement: classes that the key matches stay what they are, whatever patterns after it say.
pub fn original() -> ReplacementClass {
    ReplacementClass { name: "the original", implementation: None, stand_ins: Arc::default() }
}

impl ReplacementClass {
    /// The replacement `M`, which stands in for nothing yet.
    pub fn new<M: 'static>(name: &'static str) -> Self {
        Self { name, implementation: Some(TypeId::of::<M>()), stand_ins: Arc::default() }
    }

    /// Lets it stand in for `C`. `M` is the type that it was made with; another one is left out.
    #[must_use]
    pub fn standing_in_for<C: ModuleClass, M: Implements<C>>(mut self) -> Self {
        if self.implementation == Some(TypeId::of::<M>()) {
            let stand_in =
                StandIn { id: TypeId::of::<C>(), class: C::NAME, new: Arc::new(C::__factory::<M>()) as Arc<_> };
            Arc::make_mut(&mut self.stand_ins).push(stand_in);
        }
        self
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The names of the classes that it stands in for.
    pub fn stands_in_for(&self) -> impl Iterator<Item = &'static str> {
        self.stand_ins.iter().map(|stand_in| stand_in.class)
    }

    pub(crate) fn is_original(&self) -> bool {
        self.implementation.is_none()
    }

    pub(crate) fn implementation(&self) -> Option<TypeId> {
        self.implementation
    }

    /// The constructor for slots of `C`.
    pub(crate) fn constructor<C: ModuleClass>(&self) -> Option<C::New<Slot<C>>> {
        let stand_in = self.stand_ins.iter().find(|stand_in| stand_in.id == TypeId::of::<C>())?;
        stand_in.new.downcast_ref().copied()
    }
}

impl PartialEq for ReplacementClass {
    fn eq(&self, other: &Self) -> bool {
        self.implementation == other.implementation
    }
}

impl fmt::Debug for ReplacementClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplacementClass")
            .field("name", &self.name)
            .field("stands_in_for", &self.stands_in_for().collect::<Vec<_>>())
            .finish()
    }
}

impl fmt::Display for ReplacementClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
