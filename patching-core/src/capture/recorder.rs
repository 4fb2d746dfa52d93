use super::check::{HoldsSomething, Records};
use crate::class::{self, SlotInfo};
use crate::names::short_name;
use crate::weights::conversion::LoadedLayout;
use burn::module::{Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor};
use burn::tensor::Device;
use std::any::{Any, TypeId};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Which class a recorder listens to.
#[derive(Clone, Copy)]
pub enum Target {
    /// This class.
    Class(fn() -> TypeId, &'static str),
    /// The class or the replacement of this name, whatever crate it is from.
    Name(&'static str),
}

impl Target {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Class(_, name) | Self::Name(name) => name,
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One source of a key's values: a class, and which element of what it returns. Written by
/// `#[can_record_outputs(…)]`.
#[derive(Clone, Copy, Debug)]
pub struct OutputRecorder {
    pub(crate) key: &'static str,
    pub(crate) target: Target,
    pub(crate) index: isize,
    pub(crate) layer_name: Option<&'static str>,
    pub(crate) capture_initial_hidden_state: bool,
    pub(crate) num_hidden_layers: Option<fn(&dyn Any) -> Option<usize>>,
}

/// A key of a declaration, and the type of its field.
#[doc(hidden)]
pub struct Key<F> {
    key: &'static str,
    field: PhantomData<fn() -> F>,
}

impl<F: 'static> Key<F> {
    /// `field` is never called: it tells the compiler the type of the key's field.
    pub const fn __new(key: &'static str, _field: fn() -> &'static F) -> Self {
        Self { key, field: PhantomData }
    }

    /// Records element `I` of class `C`.
    pub const fn __class<C: 'static, const I: isize>(self) -> OutputRecorder
    where
        F: Records<C, I>,
    {
        self.recorder(Target::Class(TypeId::of::<C>, F::CLASS), I)
    }

    pub const fn __name(self, name: &'static str, index: isize) -> OutputRecorder
    where
        F: HoldsSomething,
    {
        self.recorder(Target::Name(name), index)
    }

    const fn recorder(self, target: Target, index: isize) -> OutputRecorder {
        let Self { key, field: _ } = self;
        OutputRecorder {
            key,
            target,
            index,
            layer_name: None,
            capture_initial_hidden_state: true,
            num_hidden_layers: None,
        }
    }
}

impl OutputRecorder {
    #[doc(hidden)]
    pub const fn __layer_name(mut self, name: &'static str) -> Self {
        self.layer_name = Some(name);
        self
    }

    #[doc(hidden)]
    pub const fn __initial(mut self, capture: bool) -> Self {
        self.capture_initial_hidden_state = capture;
        self
    }

    #[doc(hidden)]
    pub const fn __num_hidden_layers(mut self, count: fn(&dyn Any) -> Option<usize>) -> Self {
        self.num_hidden_layers = Some(count);
        self
    }

    /// The key it records for.
    pub fn key(&self) -> &'static str {
        self.key
    }

    /// `-1` and `1` are the same element of a pair.
    pub(crate) fn element(&self, slot: &SlotInfo) -> Option<usize> {
        super::selection::position(self.index, slot.arity)
    }

    pub(crate) fn matches(&self, slot: &SlotInfo) -> bool {
        let class = match self.target {
            Target::Class(id, _) => id() == slot.class_id,
            Target::Name(name) => name == slot.class || name == short_name(slot.implementation),
        };
        class && self.layer_name.is_none_or(|name| has_segments(&slot.path, name))
    }
}

impl fmt::Display for OutputRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "element {} of `{}`", self.index, self.target.name())?;
        if let Some(name) = self.layer_name { write!(f, " under `{name}`") } else { Ok(()) }
    }
}

/// Whether `name`, one or more whole segments, is somewhere in `path`. Leading and trailing dots do not matter.
fn has_segments(path: &str, name: &str) -> bool {
    let name: Vec<&str> = name.split('.').filter(|segment| !segment.is_empty()).collect();
    let path: Vec<&str> = path.split('.').collect();
    name.is_empty() || path.windows(name.len()).any(|window| window == name)
}

/// A base model: what it declares it can record. Derived.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not declare what it can record",
    label = "no `#[derive(CanRecordOutputs)]`",
    note = "write `#[derive(CanRecordOutputs)]` on the struct, and `#[can_record_outputs(key = Class, …)]` for what it records"
)]
pub trait CanRecordOutputs: Module + 'static {
    /// The model's name.
    const MODEL: &'static str;
    /// What the model declares.
    const RECORDERS: &'static [OutputRecorder];

    /// The field that marks this module as a base model.
    fn output_recorders(&self) -> &OutputRecorders;

    /// The device of the first parameter.
    #[doc(hidden)]
    fn __first_device(&self) -> Option<Device> {
        super::merge::first_device(self)
    }
}

/// The recorders of one model instance: those that its type declares, and what they are pointed at in this instance.
///
/// Every base model has a field `recorders: OutputRecorders`, made with `OutputRecorders::default()`. It also marks
/// where a base model begins: a model nested in another records by its own declaration.
#[derive(Clone, Debug, Default)]
pub struct OutputRecorders {
    pointed_at: Arc<[PointedAt]>,
    /// How the model was loaded, so that it is saved the same way.
    loaded: Option<Arc<LoadedLayout>>,
}

/// What recorders of a class are pointed at in one instance of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PointedAt {
    /// The class, as recorders name it.
    pub class: &'static str,
    /// What slots of the class hold instead.
    pub replacement: &'static str,
}

impl OutputRecorders {
    /// What stands in for which class in this instance, as
    /// [`patch_output_recorders`](crate::patch::patch_output_recorders) found it.
    pub fn pointed_at(&self) -> &[PointedAt] {
        &self.pointed_at
    }
}

impl Module for OutputRecorders {
    fn collect_devices(&self, devices: Devices) -> Devices {
        devices
    }
    fn fork(self, _: &Device) -> Self {
        self
    }
    fn to_device(self, _: &Device) -> Self {
        self
    }
    fn train(self) -> Self {
        self
    }
    fn valid(&self) -> Self {
        self.clone()
    }
    fn materialize(self) -> Self {
        self
    }
    fn num_params(&self) -> usize {
        0
    }
    fn visit<V: ModuleVisitor>(&self, _: &mut V) {
        class::meet_recorders(self.loaded.as_ref());
    }
    fn map<M: ModuleMapper>(self, _: &mut M) -> Self {
        let edited = class::edited_recorders();
        Self { pointed_at: edited.pointed_at.unwrap_or(self.pointed_at), loaded: edited.loaded.or(self.loaded) }
    }
}

impl ModuleDisplayDefault for OutputRecorders {
    fn content(&self, content: Content) -> Option<Content> {
        if self.pointed_at.is_empty() {
            return content.add_formatted(&"as declared").optional();
        }
        let each: Vec<_> = self.pointed_at.iter().map(|at| format!("{} for {}", at.replacement, at.class)).collect();
        content.add_formatted(&each.join(", ")).optional()
    }
}

impl ModuleDisplay for OutputRecorders {}

#[cfg(test)]
mod tests {
    use super::has_segments;

    #[test]
    fn layer_names_are_whole_segments() {
        assert!(has_segments("layers.0.crossattention", "crossattention"));
        assert!(!has_segments("layers.0.crossattention", "attention"));
        assert!(has_segments("layers.1.mlp.gate", "mlp.gate"));
        assert!(has_segments("layers.1.mlp.gate", ".layers.1."));
        assert!(!has_segments("layers.11.mlp", "layers.1"));
        assert!(has_segments("anything", ""));
    }
}
