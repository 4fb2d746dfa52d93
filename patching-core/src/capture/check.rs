//! Compile-time checks of `#[derive(CanRecordOutputs)]`. Nothing here runs.

use super::captured::Captured;
use super::element::ElementAt;
use super::output::ModelOutput;
use crate::class::ModuleClass;

/// A recorded value that a field of type `F` can hold.
#[diagnostic::on_unimplemented(
    message = "the field of this key is `{F}`, which cannot hold the recorded `{Self}`",
    label = "its class records `{Self}` for a field `{F}`",
    note = "make the field `Captured<{Self}>`, or choose another element with `OutputRecorder(Class, index = …)`"
)]
pub trait GoesInto<F> {}
#[diagnostic::do_not_recommend]
impl<T> GoesInto<Captured<T>> for T {}

/// A field that can hold recorded values of some type, known only when the model runs.
#[diagnostic::on_unimplemented(
    message = "the field of this key is `{Self}`, which cannot hold recorded values",
    label = "not a `Captured<…>`",
    note = "make the field `Captured<Tensor<3>>` or a `Captured` of what is recorded"
)]
pub trait HoldsSomething {}
#[diagnostic::do_not_recommend]
impl<T> HoldsSomething for Captured<T> {}

/// A field `Self` holds element `I` of class `C`: one bound, so that one mistake is one error. Of a field that does
/// not exist it says nothing.
#[diagnostic::on_unimplemented(
    message = "the field of this key is `{Self}`, which cannot hold element {I} of `{C}`",
    label = "recorded into a field `{Self}`",
    note = "make the field a `Captured<…>` of what the class returns there"
)]
// no `do_not_recommend` on the impl: it would hide which condition failed
pub trait Records<C, const I: isize> {
    /// The class's name.
    const CLASS: &'static str;
}
impl<C: ModuleClass, F, const I: isize> Records<C, I> for F
where
    C::Output: ElementAt<I>,
    <C::Output as ElementAt<I>>::Value: GoesInto<F>,
{
    const CLASS: &'static str = C::NAME;
}

/// A model whose `forward` carries `#[capture_outputs]`. Nothing implements it: the macro writes an inherent function
/// instead, so whoever needs this trait lacks the macro.
#[diagnostic::on_unimplemented(
    message = "`{Self}` declares what it can record, but no method of it records",
    label = "write `#[capture_outputs]` on its `forward`"
)]
pub trait CapturesOutputs {
    /// The output struct.
    type Output: 'static;
}

/// Answers for models without `#[capture_outputs]`, whose macro writes an inherent function of the same name.
pub trait NoCaptureOutputs {
    /// The output struct, in the form that the macro's own function gives it.
    fn __capture_output() -> &'static <Self as CapturesOutputs>::Output
    where
        Self: CapturesOutputs,
    {
        unreachable!("only its type is looked at")
    }
}
impl<T> NoCaptureOutputs for T {}

/// Reads the output struct out of what a `forward` returns, whichever alias it is written with. Only its type is
/// looked at.
pub trait InResult {
    /// The output struct.
    type Output: 'static;
    /// The output struct.
    fn __capture_read(&'static self) -> &'static Self::Output {
        unreachable!("only its type is looked at")
    }
}
impl<O: 'static, E> InResult for Result<O, E> {
    type Output = O;
}
/// A wrong output, which is reported where it is written.
impl<O: 'static> InResult for Option<O> {
    type Output = O;
}

/// The same for an output that should be in a `Result` and is not, which is reported elsewhere.
pub trait NotInResult {
    /// The output struct.
    fn __capture_read(&'static self) -> &'static Self {
        unreachable!("only its type is looked at")
    }
}
impl<O: ModelOutput> NotInResult for O {}

/// A config's number of layers, for `num_hidden_layers_key`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of layers",
    note = "`num_hidden_layers_key` names a field of the config that is a `usize` or another unsigned integer"
)]
pub trait LayerCount {
    /// The number; `None` if the config leaves it out.
    fn layer_count(&self) -> Option<usize>;
}
impl LayerCount for usize {
    fn layer_count(&self) -> Option<usize> {
        Some(*self)
    }
}
macro_rules! layer_count {
    ($($int:ty),*) => { $(
        impl LayerCount for $int {
            fn layer_count(&self) -> Option<usize> {
                usize::try_from(*self).ok()
            }
        }
    )* };
}
layer_count!(u16, u32, u64, i32, i64);
impl<T: LayerCount> LayerCount for Option<T> {
    fn layer_count(&self) -> Option<usize> {
        self.as_ref().and_then(T::layer_count)
    }
}
