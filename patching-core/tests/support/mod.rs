//! A small decoder that is named as the reference's, and what tests need around it.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use burn::module::{Module, ModuleVisitor, Param};
use burn::nn::{Embedding, EmbeddingConfig, Linear, LinearConfig, RmsNorm, RmsNormConfig};
use burn::tensor::{DType, Device, Int, Tensor};
use patching_core::class::Init;
use patching_core::weights::{PreTrainedModel, PretrainedConfig};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToyConfig {
    pub model_type: String,
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub num_key_value_heads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention_bias: Option<bool>,
    pub tie_word_embeddings: bool,
    pub rope_parameters: RopeParameters,
    #[serde(skip)]
    pub attention: Option<String>,
    /// All else that the file has.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RopeParameters {
    pub rope_theta: f64,
    pub rope_type: String,
}

impl ToyConfig {
    pub fn small() -> Self {
        Self {
            model_type: "llama".into(),
            vocab_size: 7,
            hidden_size: 4,
            intermediate_size: 6,
            num_hidden_layers: 2,
            num_attention_heads: 2,
            num_key_value_heads: 1,
            head_dim: None,
            attention_bias: None,
            tie_word_embeddings: false,
            rope_parameters: RopeParameters { rope_theta: 1e4, rope_type: "default".into() },
            attention: None,
            other: Map::new(),
        }
    }

    pub fn tied() -> Self {
        Self { tie_word_embeddings: true, ..Self::small() }
    }
}

impl PretrainedConfig for ToyConfig {
    const MODEL_TYPES: &'static [&'static str] = &["llama", "mistral", "qwen2", "qwen3"];

    fn set_attn_implementation(&mut self, name: &str) {
        self.attention = Some(name.into());
    }

    fn attn_implementation(&self) -> Option<&str> {
        self.attention.as_deref()
    }

    fn validate(&self) -> Result<(), String> {
        match self.num_hidden_layers {
            0..=1000 => Ok(()),
            many => Err(format!("`num_hidden_layers` is {many}, expected at most 1000")),
        }
    }

    fn nested_in(model_type: &str) -> Option<&'static str> {
        (model_type == "toy_composite").then_some("text_config")
    }
}

#[derive(Module, Debug)]
pub struct ToyAttention {
    pub q_proj: Linear,
    pub k_proj: Linear,
    pub v_proj: Linear,
    pub o_proj: Linear,
    pub q_norm: Option<RmsNorm>,
    pub k_norm: Option<RmsNorm>,
}

#[derive(Module, Debug)]
pub struct ToyMlp {
    pub gate_proj: Linear,
    pub up_proj: Linear,
    pub down_proj: Linear,
}

#[derive(Module, Debug)]
pub struct ToyBlock {
    pub self_attn: ToyAttention,
    pub mlp: ToyMlp,
    pub input_layernorm: RmsNorm,
    pub post_attention_layernorm: RmsNorm,
}

#[derive(Module, Debug)]
pub struct ToyModel {
    pub embed_tokens: Embedding,
    pub layers: Vec<ToyBlock>,
    pub norm: RmsNorm,
    #[module(skip)]
    pub config: ToyConfig,
}

#[derive(Module, Debug)]
pub struct ToyForCausalLM {
    pub model: ToyModel,
    pub lm_head: Linear,
}

impl ToyBlock {
    fn new(config: &ToyConfig, device: &Device) -> Self {
        let hidden = config.hidden_size;
        let head = config.head_dim.unwrap_or(hidden / config.num_attention_heads);
        let (queries, keys) = (head * config.num_attention_heads, head * config.num_key_value_heads);
        let linear = |input, output, bias| LinearConfig::new(input, output).with_bias(bias).init(device);
        let norm = |size| RmsNormConfig::new(size).init(device);
        let qwen3 = config.model_type == "qwen3";
        let attention_bias = config.attention_bias == Some(true);
        let bias = attention_bias || config.model_type == "qwen2";
        Self {
            self_attn: ToyAttention {
                q_proj: linear(hidden, queries, bias),
                k_proj: linear(hidden, keys, bias),
                v_proj: linear(hidden, keys, bias),
                o_proj: linear(queries, hidden, attention_bias),
                q_norm: qwen3.then(|| norm(head)),
                k_norm: qwen3.then(|| norm(head)),
            },
            mlp: ToyMlp {
                gate_proj: linear(hidden, config.intermediate_size, false),
                up_proj: linear(hidden, config.intermediate_size, false),
                down_proj: linear(config.intermediate_size, hidden, false),
            },
            input_layernorm: norm(hidden),
            post_attention_layernorm: norm(hidden),
        }
    }
}

impl PreTrainedModel for ToyModel {
    type Config = ToyConfig;
    const CLASS_NAME: &'static str = "LlamaModel";
    const BASE_MODEL_PREFIX: &'static str = "model";

    fn new(config: &ToyConfig, init: &Init) -> Self {
        Self {
            embed_tokens: EmbeddingConfig::new(config.vocab_size, config.hidden_size).init(init.device()),
            layers: (0..config.num_hidden_layers).map(|_| ToyBlock::new(config, init.device())).collect(),
            norm: RmsNormConfig::new(config.hidden_size).init(init.device()),
            config: config.clone(),
        }
    }

    fn config(&self) -> &ToyConfig {
        &self.config
    }
}

impl ToyForCausalLM {
    /// Something that depends on every parameter but the attention's. `[batch, seq, vocabulary]`
    pub fn forward(&self, ids: Tensor<2, Int>) -> Tensor<3> {
        let mut hidden = self.model.embed_tokens.forward(ids);
        for block in &self.model.layers {
            let normed = block.input_layernorm.forward(hidden.clone());
            let mlp = &block.mlp;
            let inner = mlp.gate_proj.forward(normed.clone()) * mlp.up_proj.forward(normed);
            hidden = hidden + block.post_attention_layernorm.forward(mlp.down_proj.forward(inner));
        }
        self.lm_head.forward(self.model.norm.forward(hidden))
    }
}

impl PreTrainedModel for ToyForCausalLM {
    type Config = ToyConfig;
    const CLASS_NAME: &'static str = "LlamaForCausalLM";
    const BASE_MODEL_PREFIX: &'static str = "model";

    fn new(config: &ToyConfig, init: &Init) -> Self {
        let head = LinearConfig::new(config.hidden_size, config.vocab_size).with_bias(false);
        Self { model: ToyModel::new(config, init), lm_head: head.init(init.device()) }
    }

    fn config(&self) -> &ToyConfig {
        &self.model.config
    }

    fn tied_parameters(config: &ToyConfig) -> Vec<(String, String)> {
        let tie = config.tie_word_embeddings;
        tie.then(|| ("lm_head.weight".into(), "model.embed_tokens.weight".into())).into_iter().collect()
    }
}

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Each tensor of a file: type, shape, bytes. Read by the reference's own library.
pub type Tensors = BTreeMap<String, (String, Vec<usize>, Vec<u8>)>;

/// Every tensor in the weights of `dir`, whatever files they are in.
pub fn tensors(dir: &Path) -> Tensors {
    let mut all = Tensors::new();
    for file in fs::read_dir(dir).expect("the folder is there") {
        let path = file.expect("it lists").path();
        if path.extension().is_some_and(|extension| extension == "safetensors") {
            let bytes = fs::read(&path).expect("it reads");
            let file = safetensors::SafeTensors::deserialize(&bytes).expect("a valid file");
            for (key, tensor) in file.iter() {
                let content = (tensor.dtype().to_string(), tensor.shape().to_vec(), tensor.data().to_vec());
                assert!(all.insert(key.to_owned(), content).is_none(), "{key} is in one file only");
            }
        }
    }
    all
}

/// A file with these float tensors.
pub fn file_of(tensors: &[(&str, &[usize], &[f32])]) -> Vec<u8> {
    let tensors: Vec<_> = tensors
        .iter()
        .map(|(key, shape, values)| {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            (*key, shape.to_vec(), bytes)
        })
        .collect();
    let views = tensors.iter().map(|(key, shape, bytes)| {
        let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes);
        (*key, view.expect("shape and values agree"))
    });
    safetensors::serialize(views, None).expect("it serialises")
}

/// Each float parameter by its path: type and values as `f32`.
pub fn values<M: Module>(model: &M) -> BTreeMap<String, (DType, Vec<f32>)> {
    #[derive(Default)]
    struct Values(Vec<String>, BTreeMap<String, (DType, Vec<f32>)>);
    impl ModuleVisitor for Values {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.0.push(name.to_owned());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.0.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let data = param.val().into_data();
            let dtype = data.dtype();
            let values = data.try_cast(DType::F32).expect("floats").try_to_vec().expect("floats");
            self.1.insert(self.0.join("."), (dtype, values));
        }
    }
    let mut all = Values::default();
    model.visit(&mut all);
    all.1
}

/// The devices that the tests run on.
pub fn devices() -> [(&'static str, Device); 2] {
    [("flex", Device::flex()), ("ndarray", ndarray())]
}

/// A backend that copies what it is given.
#[allow(deprecated, reason = "Burn will drop it, but until then it is one that our users choose")]
pub fn ndarray() -> Device {
    Device::ndarray()
}
