//! What submodules return, element by element.

use super::kwargs::Keep;
use burn::tensor::{Tensor, kind::Basic};
use std::any::Any;

/// A recorded value whose type is known to its field.
pub type Value = Box<dyn Any + Send + Sync>;

/// What `forward` of a module class may return, alone or in a tuple: a tensor, an option of one, or a type of yours.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be recorded",
    label = "not a tensor",
    note = "a class returns tensors, options of tensors, or a tuple of those, bare or in a `Result`; implement `patching_core::capture::Element` for types of your own"
)]
pub trait Element {
    /// What is recorded: for `Option<T>`, a `T`.
    type Value: Send + Sync + 'static;

    /// The value, if there is one. It shares its storage with `self`.
    fn value(&self, keep: Keep) -> Option<Self::Value>;
}

impl<const D: usize, K: Basic + 'static> Element for Tensor<D, K>
where
    Tensor<D, K>: Send + Sync,
{
    type Value = Self;

    fn value(&self, keep: Keep) -> Option<Self> {
        if keep == Keep::default() {
            return Some(self.clone());
        }
        // only float tensors are on a graph and can be cast to a float type
        let Some(float) = (self as &dyn Any).downcast_ref::<Tensor<D>>() else { return Some(self.clone()) };
        let mut kept: Tensor<D> = float.clone();
        if keep.detach {
            kept = kept.detach();
        }
        if let Some(dtype) = keep.cast {
            kept = kept.cast(dtype);
        }
        (&kept as &dyn Any).downcast_ref::<Self>().cloned()
    }
}

impl<E: Element> Element for Option<E> {
    type Value = E::Value;

    fn value(&self, keep: Keep) -> Option<E::Value> {
        self.as_ref().and_then(|element| element.value(keep))
    }
}

/// What `forward` of a module class returns as a whole. Implemented for elements, tuples of elements, and `Result`s
/// of those.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the output of a module class",
    label = "not recordable",
    note = "a class returns a tensor, an option of one, or a tuple of those, bare or in a `Result`"
)]
pub trait ModuleOutput {
    /// How many elements there are; a bare value is one.
    const ARITY: usize;

    /// Element `index`, if there is one and it has a value.
    fn element(&self, index: usize, keep: Keep) -> Option<Value>;
}

/// The type that element `I` of an output records; a negative `I` counts from the end.
#[diagnostic::on_unimplemented(
    message = "index {I} is outside what this class returns: `{Self}`",
    label = "no element {I}",
    note = "a bare output has index 0 (or -1) only; the default is 0 for keys that contain `hidden_states`, else 1: write `OutputRecorder(Class, index = 0)`"
)]
pub trait ElementAt<const I: isize> {
    /// The recorded type.
    type Value: Send + Sync + 'static;
}

fn erased<E: Element>(element: &E, keep: Keep) -> Option<Value> {
    element.value(keep).map(|value| Box::new(value) as Value)
}

// no tuple is an element, so this does not overlap with tuples
#[diagnostic::do_not_recommend]
impl<E: Element> ModuleOutput for E {
    const ARITY: usize = 1;
    fn element(&self, index: usize, keep: Keep) -> Option<Value> {
        if index == 0 { erased(self, keep) } else { None }
    }
}
#[diagnostic::do_not_recommend]
impl<E: Element> ElementAt<0> for E {
    type Value = E::Value;
}
#[diagnostic::do_not_recommend]
impl<E: Element> ElementAt<-1> for E {
    type Value = E::Value;
}

impl<T: ModuleOutput, E> ModuleOutput for Result<T, E> {
    const ARITY: usize = T::ARITY;
    fn element(&self, index: usize, keep: Keep) -> Option<Value> {
        self.as_ref().ok()?.element(index, keep)
    }
}
#[diagnostic::do_not_recommend]
impl<T: ElementAt<I>, E, const I: isize> ElementAt<I> for Result<T, E> {
    type Value = T::Value;
}

macro_rules! tuple {
    ($arity:literal: $($T:ident $index:tt $negative:literal),+) => {
        impl<$($T: Element),+> ModuleOutput for ($($T,)+) {
            const ARITY: usize = $arity;
            fn element(&self, index: usize, keep: Keep) -> Option<Value> {
                match index { $($index => erased(&self.$index, keep),)+ _ => None }
            }
        }
        tuple!(@each ($($T),+) $($T $index $negative),+);
    };
    (@each $all:tt $($T:ident $index:tt $negative:literal),+) => { $( tuple!(@one $all $T $index $negative); )+ };
    (@one ($($A:ident),+) $T:ident $index:tt $negative:literal) => {
        #[diagnostic::do_not_recommend]
        impl<$($A),+> ElementAt<$index> for ($($A,)+) where $T: Element { type Value = <$T as Element>::Value; }
        #[diagnostic::do_not_recommend]
        impl<$($A),+> ElementAt<$negative> for ($($A,)+) where $T: Element { type Value = <$T as Element>::Value; }
    };
}
tuple!(1: A 0 -1);
tuple!(2: A 0 -2, B 1 -1);
tuple!(3: A 0 -3, B 1 -2, C 2 -1);
tuple!(4: A 0 -4, B 1 -3, C 2 -2, D 3 -1);
tuple!(5: A 0 -5, B 1 -4, C 2 -3, D 3 -2, E 4 -1);
tuple!(6: A 0 -6, B 1 -5, C 2 -4, D 3 -3, E 4 -2, F 5 -1);

/// Reads the first argument of a call if it is a tensor, whatever its type: the inherent method wins over the
/// trait's where the argument is one.
#[doc(hidden)]
pub struct Argument<'a, T>(pub &'a T);

impl<const D: usize, K: Basic + 'static> Argument<'_, Tensor<D, K>>
where
    Tensor<D, K>: Send + Sync,
{
    pub fn value(&self, keep: Keep) -> Option<Value> {
        erased(self.0, keep)
    }
}
impl<const D: usize, K: Basic + 'static> Argument<'_, &Tensor<D, K>>
where
    Tensor<D, K>: Send + Sync,
{
    pub fn value(&self, keep: Keep) -> Option<Value> {
        erased(*self.0, keep)
    }
}
#[doc(hidden)]
pub trait NoTensor {
    fn value(&self, _keep: Keep) -> Option<Value> {
        None
    }
}
impl<T> NoTensor for Argument<'_, T> {}
