use super::hooked::Hooked;
use super::slot::{Erased, Slot};
use crate::capture::ModuleOutput;
use burn::module::{Module, ModuleDisplay};

/// What a module must be to sit in a slot: a Burn module that threads may share. Implemented for all that are.
pub trait SlotModule: Module + ModuleDisplay + Sync + 'static {}
impl<M: Module + ModuleDisplay + Sync + 'static> SlotModule for M {}

/// A kind of submodule: a name, a constructor and a `forward`.
///
/// Written by [`#[module_class]`](crate::module_class) on the `impl` block that holds `new` and `forward`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a module class",
    label = "not a module class",
    note = "write `#[module_class]` on the `impl` block that holds its `new` and `forward`"
)]
pub trait ModuleClass: Implements<Self> {
    /// The class's name, by which patches and string targets find it.
    const NAME: &'static str;
    /// What `forward` returns.
    type Output: ModuleOutput;
    /// `dyn MyAttentionInterface`, which has an inherent `forward`.
    type Interface: ?Sized + Erased<Self> + 'static;
    /// `fn(arguments of new…) -> M`.
    type New<M: 'static>: Copy + Send + Sync + 'static;
    /// `fn(&M, arguments of forward…) -> Output`.
    type Forward<M: 'static>: Copy;

    #[doc(hidden)]
    fn __boxed<M: Implements<Self>>(hooked: Hooked<M>) -> Box<Self::Interface>;
    /// `new` of `M`, its result put into a slot.
    #[doc(hidden)]
    fn __factory<M: Implements<Self>>() -> Self::New<Slot<Self>>;
}

/// `Self` has the constructor and the `forward` of class `C`, so it can stand in a [`Slot<C>`].
///
/// Written by `#[module_class]` for the class itself and by `#[replaces(…)]` for others. By hand it is two lines, which
/// the compiler checks:
/// `const NEW: C::New<Self> = Self::new;` and `const FORWARD: C::Forward<Self> = Self::forward;`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand in for the module class `{C}`",
    label = "does not replace `{C}`",
    note = "write `#[replaces({C})]` on the `impl` block that holds its `new` and `forward`, which must be those of the class"
)]
pub trait Implements<C: ModuleClass>: SlotModule {
    /// Its constructor.
    const NEW: C::New<Self>;
    /// Its `forward`.
    const FORWARD: C::Forward<Self>;
}

/// A module class that the program knows of.
#[derive(Debug)]
pub struct ClassName {
    /// The class's name.
    pub name: &'static str,
    /// The Rust module that defines it.
    pub module: &'static str,
}
inventory::collect!(ClassName);

/// The module classes of all crates in the program, in no particular order.
pub fn known_classes() -> impl Iterator<Item = &'static ClassName> {
    inventory::iter::<ClassName>()
}
