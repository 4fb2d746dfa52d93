//! For each class of each family, a replacement that only calls its original, and can write back what that gave earlier.

mod bert;
mod clip;
mod decoders;
mod dinov2;
mod gpt2;
mod llava;
mod t5;
pub mod tape;
mod vit;
mod whisper;

use patching_core::patch::ReplacementClass;

/// Defines a class around class `$class`, with the arguments of its constructor and of its `forward`.
macro_rules! wrapper {
    (
        $wrapper:ident($class:ident),
        new($($new:ident: $new_ty:ty),*),
        forward($($argument:ident: $ty:ty),*) -> $output:ty
    ) => {
        #[derive(Module, Debug)]
        pub(crate) struct $wrapper {
            original: Slot<$class>,
        }

        #[replaces($class)]
        impl $wrapper {
            fn new($($new: $new_ty,)* init: &Init) -> Self {
                Self { original: $class::slot($($new,)* init) }
            }

            fn forward(&self, $($argument: $ty),*) -> $output {
                $crate::wrappers::tape::written_back(self.original.forward($($argument),*))
            }
        }
    };
}
pub(crate) use wrapper;

/// The wrappers of all families, by the names of the classes that they are around.
pub fn all() -> Vec<(&'static str, ReplacementClass)> {
    [
        bert::wrappers(),
        clip::wrappers(),
        decoders::wrappers(),
        dinov2::wrappers(),
        gpt2::wrappers(),
        llava::wrappers(),
        t5::wrappers(),
        vit::wrappers(),
        whisper::wrappers(),
    ]
    .concat()
}
