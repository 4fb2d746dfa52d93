use crate::class::{Implements, ModuleClass, Slot};
use crate::names::short_name;
use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::marker::PhantomData;
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
    /// The replacement as a value.
    fn replacement_class() -> ReplacementClass;
}

/// A replacement as a value: what a patch puts into the slots of the classes that its key matches.
///
/// Made by [`class`] for types with `#[replaces(…)]`. For a type that implements [`Implements`] by hand it says which
/// classes are meant: `ReplacementClass::of::<MyAttention>().standing_in_for::<LlamaAttention>().build()`.
#[derive(Clone)]
pub struct ReplacementClass {
    name: &'static str,
    /// `None`: the original.
    implementation: Option<TypeId>,
    stand_ins: Arc<[StandIn]>,
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
    ReplacementClass { name: "the original", implementation: None, stand_ins: Arc::new([]) }
}

impl ReplacementClass {
    /// Begins a replacement by `M`, which stands in for nothing yet.
    pub fn of<M: 'static>() -> ReplacementBuilder<M> {
        ReplacementBuilder { stand_ins: Vec::new(), module: PhantomData }
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

    /// Whether it can stand in for the class with this id.
    pub(crate) fn fits(&self, class: TypeId) -> bool {
        self.stand_ins.iter().any(|stand_in| stand_in.id == class)
    }

    /// The constructor for slots of `C`.
    pub(crate) fn constructor<C: ModuleClass>(&self) -> Option<C::New<Slot<C>>> {
        let stand_in = self.stand_ins.iter().find(|stand_in| stand_in.id == TypeId::of::<C>())?;
        stand_in.new.downcast_ref().copied()
    }
}

/// A [`ReplacementClass`] that is being put together.
pub struct ReplacementBuilder<M> {
    stand_ins: Vec<StandIn>,
    module: PhantomData<fn() -> M>,
}

impl<M: 'static> ReplacementBuilder<M> {
    /// Lets `M` stand in for `C`.
    #[must_use]
    pub fn standing_in_for<C: ModuleClass>(mut self) -> Self
    where
        M: Implements<C>,
    {
        self.stand_ins.push(StandIn { id: TypeId::of::<C>(), class: C::NAME, new: Arc::new(C::__factory::<M>()) });
        self
    }

    /// The replacement. It is called what `M` is called.
    pub fn build(self) -> ReplacementClass {
        ReplacementClass {
            name: short_name(type_name::<M>()),
            implementation: Some(TypeId::of::<M>()),
            stand_ins: self.stand_ins.into(),
        }
    }
}

/// The same type, whatever it stands in for.
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
