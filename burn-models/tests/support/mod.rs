//! Fixtures: what the reference returned, read as tensors.

use burn::tensor::{DType, Device, FloatDType, Int, Tensor, TensorData};
use burn_models::models::CausalLM;
use burn_models::{Labels, TextInputs};
use patching_core::capture::{OutputTuple, OutputValue};
use patching_core::prelude::*;
use patching_core::weights::LoadOptions;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How far a value may be from the reference's.
pub const TOLERANCE: f32 = 1e-4;

/// The devices that the tests run on.
pub fn devices() -> Vec<(&'static str, Device)> {
    vec![
        #[cfg(feature = "flex")]
        ("flex", Device::flex()),
        #[cfg(feature = "ndarray")]
        #[allow(deprecated, reason = "supported for as long as it exists")]
        ("ndarray", Device::ndarray()),
    ]
}

/// The first of them.
pub fn device() -> Device {
    devices().remove(0).1
}

/// A folder of fixtures.
pub struct Case {
    pub name: &'static str,
    pub meta: Value,
    /// Where weights and inputs lie; cases that only differ in how they are captured share those of `llama`.
    weights: PathBuf,
    /// Where the checkpoint lies: experts in one tensor a layer, where the reference wrote them so as well.
    checkpoint: PathBuf,
    folder: PathBuf,
}

impl Case {
    pub fn new(name: &'static str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let folder = root.join(name);
        let has_weights = folder.join("model.safetensors").exists();
        let weights = if has_weights { folder.clone() } else { root.join("llama") };
        let fused = weights.join("fused");
        let meta = std::fs::read_to_string(folder.join("meta.json")).expect("every case has a meta.json");
        Self {
            name,
            meta: serde_json::from_str(&meta).expect("meta.json is JSON"),
            checkpoint: if fused.exists() { fused } else { weights.clone() },
            weights,
            folder,
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder with the weights and inputs that the reference was run with.
    pub fn weights(&self) -> &Path {
        &self.weights
    }

    /// The folder to load a model from.
    pub fn checkpoint(&self) -> &Path {
        &self.checkpoint
    }

    /// Whether the reference also generated text.
    pub fn generates(&self) -> bool {
        self.folder.join("generate.safetensors").exists()
    }

    /// The model with this case's config and weights.
    pub fn load<M: PreTrainedModel>(&self, device: &Device) -> M {
        self.load_with(device, "config.json")
    }

    pub fn load_with<M: PreTrainedModel>(&self, device: &Device, config: &str) -> M {
        let config = M::Config::from_json_file(self.folder.join(config)).expect("the config is valid");
        let options = LoadOptions::new().dtype(FloatDType::F32);
        let model = M::new(&config, &Init::new(device));
        model.load_weights_with(&self.checkpoint, &options).expect("the weights fit").0
    }

    pub fn inputs(&self, device: &Device) -> TextInputs {
        let mut all = tensors(&self.weights.join("inputs.safetensors"));
        let mut take =
            |name: &str| all.remove(name).map(|data| Tensor::<2, Int>::from_data(data, (device, DType::I64)));
        let inputs = TextInputs::new(take("input_ids").expect("every case has tokens"));
        TextInputs { labels: self.labels(device), ..inputs.attention_mask(take("attention_mask")) }
    }

    /// The labels that the reference was given, if it was.
    pub fn labels(&self, device: &Device) -> Option<Labels> {
        let data = tensors(&self.weights.join("inputs.safetensors")).remove("labels")?;
        let ints = |data: TensorData| Tensor::<1, Int>::from_data(data, (device, DType::I64));
        Some(match self.meta["labels"].as_str().expect("a kind") {
            "tokens" => Labels::Tokens(Tensor::from_data(data, (device, DType::I64))),
            "classes" => Labels::Classes(ints(data)),
            _ => Labels::Targets(Tensor::from_data(data, (device, DType::F32))),
        })
    }

    /// The flags that the reference was called with.
    pub fn kwargs(&self) -> ForwardKwargs {
        let mut kwargs = ForwardKwargs::new();
        for (name, value) in self.meta["flags"].as_object().expect("flags is an object") {
            kwargs = match name.strip_prefix("output_") {
                Some(key) => kwargs.output(key, serde_json::from_value::<Flag>(value.clone()).expect("a flag")),
                None if name == "use_cache" => kwargs.use_cache(value.as_bool()),
                None => panic!("{}: the test knows no flag `{name}`", self.name),
            };
        }
        kwargs
    }

    pub fn expected(&self, file: &str) -> BTreeMap<String, TensorData> {
        tensors(&self.folder.join(file))
    }

    /// `length` and `present` of a recorded key.
    pub fn entries(&self, key: &str) -> Option<(usize, Vec<usize>)> {
        let entry = self.meta["entries"].get(key)?;
        Some((
            serde_json::from_value(entry["length"].clone()).ok()?,
            serde_json::from_value(entry["present"].clone()).ok()?,
        ))
    }

    pub fn strings(&self, key: &str) -> Vec<String> {
        serde_json::from_value(self.meta[key].clone()).expect("a list of strings")
    }
}

/// Floats of a fixture on a device.
pub fn floats<const D: usize>(data: &TensorData, device: &Device) -> Tensor<D> {
    Tensor::from_data(data.clone(), (device, DType::F32))
}

/// Integers of a fixture on a device.
pub fn ints<const D: usize>(data: &TensorData, device: &Device) -> Tensor<D, Int> {
    Tensor::from_data(data.clone(), (device, DType::I64))
}

/// A copy of a checkpoint with its tensors renamed: the key gives the name in the copy, or none to leave it out. Those
/// in `more` come with it.
pub fn renamed(
    folder: &Path,
    rename: impl Fn(&str) -> Option<String>,
    more: &[(&str, TensorData)],
) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::copy(folder.join("config.json"), dir.path().join("config.json")).expect("a config");
    let bytes = weights(folder);
    let file = SafeTensors::deserialize(&bytes).expect("valid weights");
    let kept = file.tensors().into_iter().filter_map(|(name, view)| Some((rename(&name)?, view)));
    let views = more.iter().map(|(name, data)| {
        let view = TensorView::new(Dtype::I64, data.shape().to_vec(), data.as_bytes()).expect("whole");
        ((*name).to_owned(), view)
    });
    let metadata = [("format".to_owned(), "pt".to_owned())].into();
    let path = dir.path().join("model.safetensors");
    safetensors::serialize_to_file(kept.chain(views), Some(metadata), &path).expect("written");
    dir
}

/// The bytes of a checkpoint's weights.
pub fn weights(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("model.safetensors")).expect("weights")
}

/// The names of all tensors of a checkpoint.
pub fn keys(folder: &Path) -> Vec<String> {
    let bytes = weights(folder);
    let file = SafeTensors::deserialize(&bytes).expect("valid weights");
    let mut names: Vec<String> = file.names().into_iter().map(ToString::to_string).collect();
    names.sort();
    names
}

/// All tensors of a file.
pub fn tensors(path: &Path) -> BTreeMap<String, TensorData> {
    let bytes = std::fs::read(path).expect("the fixture is there");
    let file = SafeTensors::deserialize(&bytes).expect("the fixture is valid");
    let data = file.tensors().into_iter().map(|(name, view)| {
        let shape = view.shape().to_vec();
        let data = match view.dtype() {
            Dtype::F32 => {
                let values = view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                TensorData::new(values.collect::<Vec<_>>(), shape)
            }
            Dtype::I64 => {
                let values =
                    view.data().chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().expect("eight bytes")));
                TensorData::new(values.collect::<Vec<_>>(), shape)
            }
            other => panic!("fixtures hold f32 and i64, not {other:?}"),
        };
        (name, data)
    });
    data.collect()
}

/// Panics if a value is further than `tolerance` from what is expected.
#[track_caller]
pub fn assert_close<const D: usize>(name: &str, found: &Tensor<D>, expected: &TensorData, tolerance: f32) {
    assert_close_data(name, &found.to_data(), expected, tolerance);
}

/// The same for values that were read back.
#[track_caller]
pub fn assert_close_data(name: &str, found: &TensorData, expected: &TensorData, tolerance: f32) {
    // what is one number in the reference is a tensor of one element here
    let expected_shape = if expected.shape().is_empty() { vec![1] } else { expected.shape().to_vec() };
    assert_eq!(found.shape().to_vec(), expected_shape, "{name}: shape");
    let pairs = found.iter::<f32>().zip(expected.iter::<f32>());
    let (mut largest, mut at) = (0.0_f32, 0);
    for (index, (a, b)) in pairs.enumerate() {
        assert!(a.is_finite(), "{name}: element {index} is {a}");
        let difference = (a - b).abs();
        if difference > largest {
            (largest, at) = (difference, index);
        }
    }
    assert!(largest <= tolerance, "{name}: differs by {largest} at element {at}");
}

/// The largest difference of two tensors, by their largest element (at least 1).
pub fn difference<const D: usize>(a: &Tensor<D>, b: &Tensor<D>) -> f32 {
    assert_eq!(a.dims(), b.dims());
    let (a, b) = (a.to_data(), b.to_data());
    let largest = a.iter::<f32>().map(f32::abs).fold(1.0, f32::max);
    a.iter::<f32>().zip(b.iter::<f32>()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max) / largest
}

/// All elements, bit by bit.
pub fn bits<const D: usize>(tensor: &Tensor<D>) -> Vec<u32> {
    tensor.to_data().iter::<f32>().map(f32::to_bits).collect()
}

pub fn ids(tensor: &Tensor<2, Int>) -> Vec<i64> {
    tensor.to_data().iter::<i64>().collect()
}

/// Runs `$body` for each language model, with `$M` as its class.
macro_rules! for_each_decoder {
    ($case:ident, $M:ident => $body:block) => {{
        use burn_models::llama::LlamaForCausalLM;
        use burn_models::mistral::MistralForCausalLM;
        use burn_models::mixtral::MixtralForCausalLM;
        use burn_models::qwen2::Qwen2ForCausalLM;
        use burn_models::qwen2_moe::Qwen2MoeForCausalLM;
        use burn_models::qwen3::Qwen3ForCausalLM;
        $crate::support::for_each_decoder!(@ $case, $M, $body,
            LlamaForCausalLM: ["llama", "llama-tied", "llama3-rope", "llama-linear"],
            MistralForCausalLM: ["mistral"],
            MixtralForCausalLM: ["mixtral", "mixtral-gradients"],
            Qwen2ForCausalLM: ["qwen2", "qwen2-windows"],
            Qwen2MoeForCausalLM: ["qwen2_moe", "qwen2_moe-norm", "qwen2_moe-gradients"],
            Qwen3ForCausalLM: ["qwen3", "qwen3-windows"],
        );
    }};
    (@ $case:ident, $M:ident, $body:block, $($class:ident: $names:expr,)*) => {$(
        for name in $names {
            type $M = $class;
            let $case = $crate::support::Case::new(name);
            $body
        }
    )*};
}
pub(crate) use for_each_decoder;

/// Runs a model on its case's inputs.
pub fn run<M: CausalLM>(case: &Case, model: &M, device: &Device) -> M::Output {
    model.forward_causal(case.inputs(device), &case.kwargs()).unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

/// Every tensor of an output by its key in `outputs.safetensors`: `logits`, `hidden_states.0`,
/// `text_model_output.attentions.1`.
pub fn flat(tuple: &OutputTuple) -> BTreeMap<String, TensorData> {
    let mut flat = BTreeMap::new();
    flatten("", tuple, &mut flat);
    flat
}

fn flatten(prefix: &str, tuple: &OutputTuple, flat: &mut BTreeMap<String, TensorData>) {
    for (name, value) in tuple.iter() {
        let name = format!("{prefix}{name}");
        match value {
            OutputValue::Tensor(tensor) => drop(flat.insert(name, tensor.to_data())),
            OutputValue::Captured(captured) => {
                flat.extend(
                    captured.iter().map(|(position, _, tensor)| (format!("{name}.{position}"), tensor.to_data())),
                );
            }
            OutputValue::Nested(nested) => flatten(&format!("{name}."), nested, flat),
            _ => {}
        }
    }
}

/// The length of every recorded sequence of an output, and which positions are present.
pub fn recorded(tuple: &OutputTuple) -> BTreeMap<String, (usize, Vec<usize>)> {
    let mut keys = BTreeMap::new();
    recorded_in("", tuple, &mut keys);
    keys
}

fn recorded_in(prefix: &str, tuple: &OutputTuple, keys: &mut BTreeMap<String, (usize, Vec<usize>)>) {
    for (name, value) in tuple.iter() {
        let name = format!("{prefix}{name}");
        match value {
            OutputValue::Captured(captured) => {
                let present = captured.iter().map(|(position, ..)| position).collect();
                keys.insert(name, (captured.len(), present));
            }
            OutputValue::Nested(nested) => recorded_in(&format!("{name}."), nested, keys),
            _ => {}
        }
    }
}
