//! The guide's code runs, and what the guide shows is that code.

#[path = "guide/from_transformers.rs"]
mod from_transformers;

use std::error::Error;
use std::sync::{Mutex, PoisonError};

/// Most of it registers patches and conversions, which hold for the whole program.
fn alone<E: Into<Box<dyn Error>>>(run: fn() -> Result<(), E>) {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = run().map_err(Into::into) {
        panic!("{error}");
    }
}

macro_rules! blocks {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            alone(from_transformers::$name::main);
        }
    )*};
}

blocks!(
    declaring,
    asking,
    defining,
    managing,
    by_value,
    by_hand,
    converting,
    routing,
    conversions_by_value,
    in_a_model_that_lives,
);

/// Names that are all those of one model, as somebody registers who loads the head and the base model.
#[test]
fn a_conversion_may_be_registered_under_several_names() {
    use burn::tensor::Device;
    use burnlens::burn_models::llama::LlamaForCausalLM;
    use burnlens::patching_core::weights::{
        Concatenate, ConversionMapping, LoadOptions, clear_checkpoint_conversion_mapping,
    };
    use burnlens::prelude::*;
    use from_transformers::conversions_by_value::FusedMlp;

    fn run() -> Result<(), Box<dyn Error>> {
        let fuse = || WeightConverter::new(["gate_proj", "up_proj"], "gate_up_proj").with(Concatenate::dim(0));
        let rename = || WeightRenaming::new("mlp", "mlp.feed_forward.mlp");
        for name in ["llama", "LlamaForCausalLM", "LlamaModel"] {
            let mapping =
                ConversionMapping::new([rename().into(), patching_core::weights::WeightTransform::from(fuse())])?;
            register_checkpoint_conversion_mapping(name, mapping.transforms().cloned())?;
        }
        let patches = PatchSet::new([("LlamaMLP", class::<FusedMlp>())])?;
        let options = LoadOptions::new().patches(patches);
        let (_, report) = LlamaForCausalLM::from_pretrained_with("models/tiny-decoder", &Device::flex(), &options)?;
        clear_checkpoint_conversion_mapping();
        assert_eq!(report.converted.len(), 2, "{report}");
        Ok(())
    }
    alone(run);
}

/// Code blocks of a page, each as lines without indentation.
fn shown(page: &str) -> Vec<Vec<&str>> {
    let blocks = page.split("```rust\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    blocks.map(|block| block.lines().map(str::trim).filter(|line| !line.is_empty()).collect()).collect()
}

#[test]
fn what_is_shown_is_what_runs() {
    let page = include_str!("../docs/from-transformers.md");
    let code = include_str!("guide/from_transformers.rs");
    // formatting may break lines in other places
    let squeeze = |text: &str| text.split_whitespace().collect::<String>();
    let code = squeeze(code);
    let blocks = shown(page);
    assert!(blocks.len() >= 8, "the page has its code");
    for block in blocks {
        let mut rest = code.as_str();
        // in this order, with other lines between
        for line in block {
            let line = squeeze(line);
            let at =
                rest.find(&line).unwrap_or_else(|| panic!("`{line}` is not in the tested code, or not in this order"));
            rest = &rest[at + line.len()..];
        }
    }
}
