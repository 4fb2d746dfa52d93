//! Patches are not for the library's models only: a model of one's own, its classes replaced by pattern, by value, and
//! while it lives.
//!
//! `cargo run --example patched_model`

use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::prelude::*;
use burn::tensor::activation::{gelu, relu};
use burnlens::patching_core::class::known_classes;
use burnlens::patching_core::patch::{PatchSet, replace_slots};
use burnlens::prelude::*;
use std::error::Error;

// The model, as its author wrote it: nothing in it knows of patches.

#[derive(Clone, Debug, Default, ConfigDefaults)]
pub struct TinyConfig {
    pub hidden_size: usize,
    pub num_layers: usize,
}

#[derive(Module, Debug)]
pub struct TinyMlp {
    pub up: Linear,
    pub down: Linear,
}

#[module_class]
impl TinyMlp {
    pub fn new(config: &TinyConfig, init: &Init) -> Self {
        let size = config.hidden_size;
        Self {
            up: LinearConfig::new(size, 4 * size).init(init.device()),
            down: LinearConfig::new(4 * size, size).init(init.device()),
        }
    }

    /// `[batch, hidden]` to the same.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.down.forward(gelu(self.up.forward(x)))
    }
}

#[derive(Module, Debug)]
pub struct TinyNorm {
    norm: LayerNorm,
}

#[module_class]
impl TinyNorm {
    pub fn new(size: usize, init: &Init) -> Self {
        Self { norm: LayerNormConfig::new(size).init(init.device()) }
    }

    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.norm.forward(x)
    }
}

#[derive(Module, Debug)]
pub struct TinyBlock {
    norm: Slot<TinyNorm>,
    mlp: Slot<TinyMlp>,
}

#[module_class]
impl TinyBlock {
    pub fn new(config: &TinyConfig, init: &Init) -> Self {
        Self { norm: TinyNorm::slot(config.hidden_size, init), mlp: TinyMlp::slot(config, init) }
    }

    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x.clone() + self.mlp.forward(self.norm.forward(x))
    }
}

#[derive(ModelOutput, Clone, Debug)]
pub struct TinyOutput {
    pub last_hidden_state: Tensor<2>,
    pub hidden_states: Captured<Tensor<2>>,
    pub mlp_outputs: Captured<Tensor<2>>,
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = TinyBlock, mlp_outputs = OutputRecorder(TinyMlp, index = 0))]
pub struct TinyModel {
    layers: Vec<Slot<TinyBlock>>,
    #[module(skip)]
    config: TinyConfig,
    recorders: OutputRecorders,
}

impl TinyModel {
    pub fn new(config: &TinyConfig, init: &Init) -> Self {
        let layers = (0..config.num_layers).map(|_| TinyBlock::slot(config, init)).collect();
        Self { layers, config: config.clone(), recorders: OutputRecorders::default() }
    }

    #[capture_outputs]
    pub fn forward(&self, x: Tensor<2>, kwargs: &ForwardKwargs) -> Result<TinyOutput, CaptureError> {
        Ok(TinyOutput::new(self.layers.iter().fold(x, |x, layer| layer.forward(x))))
    }
}

// What its user writes, in another crate if need be.

/// Half the width, and another activation.
#[derive(Module, Debug)]
pub struct NarrowMlp {
    up: Linear,
    down: Linear,
}

#[replaces(TinyMlp)]
impl NarrowMlp {
    pub fn new(config: &TinyConfig, init: &Init) -> Self {
        let size = config.hidden_size;
        Self {
            up: LinearConfig::new(size, 2 * size).init(init.device()),
            down: LinearConfig::new(2 * size, size).init(init.device()),
        }
    }

    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.down.forward(relu(self.up.forward(x)))
    }
}

/// Nothing at all: one type can stand in for classes that are alike.
#[derive(Module, Debug)]
pub struct Nothing {}

#[replaces(TinyNorm)]
impl Nothing {
    pub fn new(_size: usize, _init: &Init) -> Self {
        Self {}
    }

    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex();
    let config = TinyConfig { hidden_size: 8, num_layers: 3 };
    let names: Vec<_> = known_classes().map(|class| class.name).filter(|name| name.starts_with("Tiny")).collect();
    println!("classes to choose from: {}", names.join(", "));

    // A set of patches is a value: no registry, nothing to clean up. One of these keys has a mistake in it.
    let patches = PatchSet::new([("Mlp$", class::<NarrowMlp>()), ("TinyNrm", class::<Nothing>())])?;
    let (mut model, report) = patches.apply(&device, |init| TinyModel::new(&config, init))?;
    println!("{report}");
    assert_eq!(report.replaced.len(), 3);
    assert_eq!(report.unmatched[0].key, "TinyNrm");

    // What a replacement returns is recorded like what it stands for.
    let x = Tensor::ones([2, 8], &device);
    let kwargs = ForwardKwargs::new().output_hidden_states(true).output("mlp_outputs", [0, -1]);
    let output = model.forward(x.clone(), &kwargs)?;
    assert_eq!((output.hidden_states.len(), output.mlp_outputs.len()), (4, 3));
    for (layer, path, value) in output.mlp_outputs.iter() {
        println!("mlp_outputs[{layer}] from {path}: {:?}", value.dims());
    }

    // A pattern that reaches too far is an error that says what to write instead.
    let too_wide = PatchSet::new([("^Tiny", class::<Nothing>())])?;
    let error = too_wide.apply(&device, |init| TinyModel::new(&config, init)).map(|_| ()).err();
    println!("{}", error.ok_or("the pattern matches classes that are no norms")?);

    // Slots of a model that lives: the middle block without its norm, and back.
    let before = model.forward(x.clone(), &kwargs)?.last_hidden_state;
    let norms = replace_slots::<TinyNorm, _>(&mut model, "layers.1", |_path, _norm| Slot::of(Nothing {}))?;
    let without = model.forward(x.clone(), &kwargs)?.last_hidden_state;
    norms.put_back(&mut model)?;
    let after = model.forward(x, &kwargs)?.last_hidden_state;
    let differs = |one: &Tensor<2>, other: &Tensor<2>| (one.clone() - other.clone()).abs().max().into_scalar::<f32>();
    println!("without the norm of layer 1 the result differs by {:.3}", differs(&before, &without));
    assert_eq!(differs(&before, &after), 0.0);
    Ok(())
}
