//! The macros of `patching-core`, which re-exports them: depend on that crate, or on one that re-exports it.
//!
//! | macro | written on | what it does |
//! | --- | --- | --- |
//! | [`#[module_class]`](macro@module_class) | an `impl` block with `new` and `forward` | makes a kind of submodule that slots can hold |
//! | [`#[replaces(Class)]`](macro@replaces) | an `impl` block with `new` and `forward` | lets a module stand in for a class |
//! | [`#[derive(CanRecordOutputs)]`](derive@CanRecordOutputs) | a base model's struct | declares what it can record |
//! | [`#[capture_outputs]`](macro@capture_outputs) | a base model's `forward` | records what a call asks for |
//! | [`#[merge_with_config_defaults]`](macro@merge_with_config_defaults) | a method of a model | fills optional arguments from the config |
//! | [`#[derive(ModelOutput)]`](derive@ModelOutput) | an output struct | makes it fillable by name |
//! | [`#[derive(ConfigDefaults)]`](derive@ConfigDefaults) | a config struct | lets it answer where a caller says nothing |
//!
//! A mistake is a compile error at the tokens that are wrong, all mistakes of an item at once. The item itself stays
//! in the program, so that one mistake does not hide what it defines.
//!
//! Each macro has a folder: `args` reads its arguments, `model` is what was understood of the item, `validate` has
//! the rules, `expand` only quotes. Whatever can be a function at run time is one, in `patching_core::__private`.
#![forbid(unsafe_code)]

mod can_record_outputs;
mod capture_outputs;
mod config_defaults;
mod merge_with_config_defaults;
mod model_output;
mod module_class;
mod replaces;
mod shared;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use shared::{Failure, root};

/// Makes a struct's `new` and `forward` a module class: a kind of submodule that slots can hold, patches can replace
/// and recorders can observe.
///
/// ```ignore
/// #[derive(Module, Debug)]
/// pub struct MyAttention { q_proj: Linear }
///
/// #[module_class]
/// impl MyAttention {
///     pub fn new(config: &MyConfig, layer_idx: usize, init: &Init) -> Self { /* … */ }
///     pub fn forward(&self, hidden_states: Tensor<3>) -> (Tensor<3>, Option<Tensor<4>>) { /* … */ }
/// }
/// ```
///
/// - `new` takes one `&Init`, besides whatever it needs, and returns `Self`.
/// - `forward` takes `&self` and returns tensors: one, an option of one, or a tuple of those, bare or in a `Result`.
/// - The block may hold other methods, which belong to the struct alone.
///
/// Generated are `MyAttention::slot`, which takes the arguments of `new` and makes a `Slot<MyAttention>`, and the
/// `forward` of that slot, with the same arguments.
///
/// A slot decides at run time what it calls. Therefore neither function may be generic, `async`, `unsafe` or take
/// `impl Trait`, and `forward` returns owned values.
#[proc_macro_attribute]
pub fn module_class(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(args, item, module_class::entry)
}

/// Lets a module stand in for module classes: slots of theirs can hold it, and patches can put it there.
///
/// ```ignore
/// #[derive(Module, Debug)]
/// pub struct FusedAttention { qkv_proj: Linear, o_proj: Linear }
///
/// #[replaces(LlamaAttention)]
/// impl FusedAttention {
///     pub fn new(config: &LlamaConfig, layer_idx: usize, init: &Init) -> Self { /* … */ }
///     pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) { /* … */ }
/// }
///
/// register_patch_mapping([("LlamaAttention", class::<FusedAttention>())])?;
/// ```
///
/// `new` and `forward` take and return what those of the class do; the compiler checks it. They may be generic, as
/// long as they fit: `#[replaces(LlamaAttention, MistralAttention)]` with `new<C: DecoderConfig>(config: &C, …)` stands in
/// for both. What it returns is recorded as the class's would be.
///
/// A replacement that wraps what it replaces has a field `Slot<LlamaAttention>` and makes it with `LlamaAttention::slot(…)`
/// in its own `new`: there the original is meant. Such a field adds nothing to the keys of a checkpoint.
#[proc_macro_attribute]
pub fn replaces(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(args, item, replaces::entry)
}

/// Records, in a call of a base model's `forward`, what the call asks for, and puts it into the output struct.
///
/// ```ignore
/// #[capture_outputs]
/// pub fn forward(&self, input_ids: Tensor<2, Int>, kwargs: &ForwardKwargs) -> Result<BaseModelOutput, CaptureError> {
///     /* … */
///     Ok(BaseModelOutput::new(hidden_states))
/// }
/// ```
///
/// The method takes `&self` and a `ForwardKwargs`, and returns a `Result` of a `ModelOutput` whose error is
/// `From<CaptureError>`. Arguments named `output_<key>` are requests too, the `ForwardKwargs` comes first.
///
/// Arguments of the macro, all optional:
///
/// - `tie_last_hidden_states = false`: the last hidden state is what the last layer returned. By default it is the
///   output's `last_hidden_state`. The config's `tie_last_hidden_states` beats both.
/// - `config = self.settings`: where the config is, if it is not the field `config`.
/// - `kwargs = name`: which argument holds the request, where several could.
///
/// Besides `forward` there will be
///
/// - `forward_captures`, with the same arguments: the recorded values alone; the run stops once it has them;
/// - `forward_returned`, with the same arguments: the output struct, or the tuple of its present fields, as
///   `return_dict` says;
/// - `forward_plan(&kwargs)`: which slots would record what, without running anything.
///
/// Loops of the body look at each turn whether a run that may stop early has everything; loops in closures, `async`
/// blocks, nested functions and macro calls do not.
#[proc_macro_attribute]
pub fn capture_outputs(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(args, item, capture_outputs::entry)
}

/// Fills optional arguments that the caller left `None` from the model's config.
///
/// ```ignore
/// #[merge_with_config_defaults]
/// #[capture_outputs]
/// pub fn forward(&self, input_ids: Tensor<2, Int>, use_cache: Option<bool>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
///     // `use_cache` and `kwargs.get_use_cache()` are the caller's, else those of `self.config`
/// }
/// ```
///
/// Arguments named `use_cache`, `is_causal`, `vision_feature_layer`, `vision_feature_select_strategy` and
/// `vision_aspect_ratio` take the config's field of the same name; `#[merge_with_config_defaults(mine, other)]` adds
/// names. In a `ForwardKwargs` argument, `use_cache` and `is_causal` are filled. `use_cache` is off while training
/// with gradient checkpointing. A `vision_feature_select_strategy` other than `default` and `full` is an error.
///
/// `config = self.settings` says where the config is, `kwargs = name` which `ForwardKwargs` is meant where there are
/// several. It works above and below `#[capture_outputs]`.
#[proc_macro_attribute]
pub fn merge_with_config_defaults(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(args, item, merge_with_config_defaults::entry)
}

/// Declares what a base model can record.
///
/// ```ignore
/// #[derive(Module, Debug, CanRecordOutputs)]
/// #[can_record_outputs(
///     hidden_states = MyBlock,
///     attentions = MyAttention,
///     cross_attentions = OutputRecorder(MyAttention, layer_name = "crossattention", index = 1),
///     router_logits = [MyRouter, "TheirRouter"],
/// )]
/// pub struct MyModel {
///     layers: Vec<Slot<MyBlock>>,
///     #[module(skip)]
///     config: MyConfig,
///     recorders: OutputRecorders,
/// }
/// ```
///
/// A key names a `Captured` field of the output struct. Its value is a module class, the name of one in quotes,
/// `OutputRecorder(class, …)`, or a list of those. Arguments of `OutputRecorder`, all optional:
///
/// - `index = 1`: which element of what the class returns; negative counts from the end. The default is 0 for keys
///   that contain `hidden_states`, else 1.
/// - `layer_name = "mlp.gate"`: only slots whose path contains these whole segments.
/// - `capture_initial_hidden_state = false`: hidden states begin with what the first layer returned, not with what
///   it was given.
/// - `num_hidden_layers_key = "num_layers"`: the field of `self.config` that says how many values there will be,
///   for layers that are called several times.
///
/// The struct has one field of type `OutputRecorders`; its `forward` carries `#[capture_outputs]`.
#[proc_macro_derive(CanRecordOutputs, attributes(can_record_outputs))]
pub fn can_record_outputs(item: TokenStream) -> TokenStream {
    derive(item, can_record_outputs::entry)
}

/// Makes a struct with named fields the output of a model.
///
/// A field of type `Captured<…>` is a key that can be recorded, an `Option<…>` may be absent, and every other field
/// is an argument of the generated `new`, in the order of the fields.
#[proc_macro_derive(ModelOutput)]
pub fn model_output(item: TokenStream) -> TokenStream {
    derive(item, model_output::entry)
}

/// Lets a config answer where a caller says nothing.
///
/// Fields named `output_<key>` (a `bool`, a `Flag`, an `Option` of those, or anything else that is `Into<Flag>` and
/// `Clone`) say what to record; `return_dict`, `tie_last_hidden_states`, `use_cache` and `is_causal` (a `bool` or an
/// `Option<bool>`) answer for themselves. Other fields are left alone.
#[proc_macro_derive(ConfigDefaults)]
pub fn config_defaults(item: TokenStream) -> TokenStream {
    derive(item, config_defaults::entry)
}

type AttributeEntry = fn(Tokens, Tokens, &Tokens) -> Result<Tokens, Failure>;
type DeriveEntry = fn(Tokens, &Tokens) -> Result<Tokens, Failure>;

fn attribute(args: TokenStream, item: TokenStream, entry: AttributeEntry) -> TokenStream {
    let item = Tokens::from(item);
    let result = root().map_err(Failure::from).and_then(|core| entry(args.into(), item.clone(), &core));
    result.unwrap_or_else(|failure| failure.beside(item)).into()
}

fn derive(item: TokenStream, entry: DeriveEntry) -> TokenStream {
    let result = root().map_err(Failure::from).and_then(|core| entry(item.into(), &core));
    // the compiler keeps the struct itself
    result.unwrap_or_else(|failure| failure.beside(Tokens::new())).into()
}
