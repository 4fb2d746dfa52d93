//! Models whose family is known when the program runs.

use crate::replacements::FusedQkvAttention;
use crate::support::{Case, bits, device, difference, flat};
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use burn_models::auto::{
    AnyModel, AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification, Family, ModelClass, NamedInputs,
};
use burn_models::qwen2_moe::Qwen2MoeAttention;
use patching_core::class::{all_slots, slots};
use patching_core::patch::{PatchReport, PatchSet, replace_slots};
use patching_core::prelude::*;
use std::path::PathBuf;

/// The families whose classes are alike but for their names.
const DECODERS: [Family; 6] =
    [Family::Llama, Family::Mistral, Family::Mixtral, Family::Qwen2, Family::Qwen2Moe, Family::Qwen3];

fn folder(family: Family) -> PathBuf {
    Case::new(family.model_type()).checkpoint().to_owned()
}

fn fused() -> PatchSet {
    let keys = ["LlamaAttention", "MixtralAttention", "Qwen2MoeAttention"];
    PatchSet::new(keys.map(|key| (key, class::<FusedQkvAttention>()))).expect("valid")
}

#[test]
fn a_config_alone_is_patched_as_a_checkpoint_is() {
    let (device, patches) = (device(), fused());
    for family in DECODERS {
        let folder = folder(family);
        let base = ModelClass::base_of(&folder).expect("known");
        let attention = format!("{}Attention", base.name.trim_end_matches("Model"));
        let replaceable = patches.get(&attention).is_some();
        let plain = AnyModel::from_config_of(&folder, base, &device).expect("constructs");
        let layers = all_slots(&plain).iter().filter(|slot| slot.class == attention).count();
        let classes = ModelClass::of_family(family.model_type());
        assert_eq!(classes.len(), 3, "a base model, a language model, a classifier");
        for class in classes {
            let name = class.name;
            let check = |report: &PatchReport| {
                assert_eq!(report.replaced.len(), if replaceable { layers } else { 0 }, "{name}");
                assert_eq!(report.unmatched.len(), if replaceable { 2 } else { 3 }, "{name}");
            };
            let plan = AnyModel::patch_plan(&folder, class, &device, &patches).expect("constructs");
            check(&plan);
            let (model, report) = AnyModel::from_config_with(&folder, class, &device, &patches).expect("constructs");
            assert_eq!(report, plan, "{name}");
            assert_eq!(model.patch_report(&patches), plan, "{name}");
            assert_eq!(model.class_name(), name);
            // a set that is given takes the place of what is registered, also an empty one
            let (plain, report) =
                AnyModel::from_config_with(&folder, class, &device, &PatchSet::default()).expect("constructs");
            assert!(report.replaced.is_empty() && !all_slots(&plain).iter().any(|slot| slot.is_replaced()), "{name}");
        }
        let of_type = [
            AutoModel::patch_plan(&folder, &device, &patches),
            AutoModelForCausalLM::patch_plan(&folder, &device, &patches),
            AutoModelForSequenceClassification::patch_plan(&folder, &device, &patches),
        ];
        for plan in of_type {
            assert_eq!(plan.expect("constructs").replaced.len(), if replaceable { layers } else { 0 });
        }
    }
}

/// What can be done with a model's own class can be done with the enum.
#[test]
fn a_model_of_any_family_is_a_module() {
    let device = device();
    for family in DECODERS {
        let folder = folder(family);
        let model = AutoModelForCausalLM::from_pretrained(&folder, &device).expect("loads");
        let paths: Vec<String> = all_slots(&model).into_iter().map(|slot| slot.path).collect();
        assert!(paths.iter().any(|path| path == "model.layers.0.self_attn"), "{paths:?}");
        assert_eq!(Module::num_params(&model), model.num_params());
        assert_eq!(model.devices(), std::slice::from_ref(&device));
        assert!(model.to_string().contains(model.class_name()), "{model}");

        let ids = Tensor::<2, Int>::from_data([[1, 7, 9]], &device);
        let run = |model: &AutoModelForCausalLM| {
            model.forward(ids.clone(), &ForwardKwargs::new()).expect("runs").logits().clone()
        };
        let before = run(&model);
        let moved = model.clone().no_grad().to_device(&device).fork(&device).valid();
        assert_eq!(bits(&run(&moved)), bits(&before));
        // a record's matrices lie in memory the other way round
        let record = model.clone().into_record();
        let fresh = AutoModelForCausalLM::from_config_of(&folder, &device).expect("constructs");
        assert!(difference(&run(&fresh), &before) > 1e-2);
        assert!(difference(&run(&fresh.load_record(record)), &before) < 1e-5, "{}", model.class_name());

        let class = ModelClass::named(&folder, model.class_name()).expect("known");
        let any = AnyModel::from_pretrained_as(&folder, class, &device, &Default::default()).expect("loads").0;
        assert_eq!(all_slots(&any).into_iter().map(|slot| slot.path).collect::<Vec<_>>(), paths);
        let any = any.to_device(&device);
        let data = NamedInputs::new().with("input_ids", ids.to_data());
        let found = flat(&any.forward(&data, &device, &ForwardKwargs::new()).expect("runs"));
        assert_eq!(found["logits"].as_bytes(), before.to_data().as_bytes());
    }
}

#[test]
fn what_routers_choose_is_in_the_outputs_of_those_that_have_some() {
    let device = device();
    let ids = Tensor::<2, Int>::from_data([[1, 7, 9]], &device);
    for family in DECODERS {
        let model = AutoModelForCausalLM::from_pretrained(folder(family), &device).expect("loads");
        let has_experts = model.experts_implementation().is_some();
        assert_eq!(has_experts, ["mixtral", "qwen2_moe"].contains(&family.model_type()));
        let keys = ["router_logits", "router_scores", "router_indices"].into_iter().filter(|_| has_experts);
        let kwargs = keys.fold(ForwardKwargs::new(), |kwargs, key| kwargs.output(key, true));
        let output = model.forward(ids.clone(), &kwargs).expect("runs");
        assert_eq!(output.aux_loss().is_some(), has_experts);
        assert_eq!(
            output.router_indices().map(|indices| indices.at(0).expect("recorded").dims()),
            has_experts.then_some([3, 2])
        );
        assert_eq!(
            output.router_scores().map(|scores| scores.at(0).expect("recorded").dims()),
            has_experts.then_some([3, 2])
        );
        assert_eq!(
            output.router_logits().map(|logits| logits.at(0).expect("recorded").dims()),
            has_experts.then_some([3, 4])
        );
    }
}

/// Slots inside the enum are replaced as in the class that it holds.
#[test]
fn slots_in_the_enum_are_replaced() {
    let device = device();
    let mut model = AutoModelForCausalLM::from_pretrained(folder(Family::Qwen2Moe), &device).expect("loads");
    let before = slots::<Qwen2MoeAttention, _>(&model);
    assert_eq!(before[0].0, "model.layers.0.self_attn");
    let first = before[0].1.clone();
    let replaced = replace_slots::<Qwen2MoeAttention, _>(&mut model, "layers.1", |_, _| first.clone()).expect("there");
    assert_eq!(replaced.paths().collect::<Vec<_>>(), ["model.layers.1.self_attn"]);
    replaced.put_back(&mut model).expect("still there");
}

/// What only some families have is there for those, and not for others.
#[test]
fn text_models_of_other_kinds() {
    let device = device();
    let all = ForwardKwargs::new().output_hidden_states(true).output_attentions(true);
    for (name, is_pooled) in [("bert", true), ("gpt2", false)] {
        let case = Case::new(name);
        let model = AutoModel::from_pretrained(case.folder(), &device).expect("loads");
        let output = model.forward(case.inputs(&device), &all).expect("runs");
        assert_eq!(output.last_hidden_state().dims()[2], 32);
        assert_eq!((output.hidden_states().len(), output.attentions().len()), (3, 2));
        assert_eq!(output.pooler_output().is_some(), is_pooled, "{name}");
        assert_eq!(output.cache().is_some(), !is_pooled, "an encoder keeps nothing");
        let cross = output.cross_attentions().expect("a family that may look at an encoder");
        assert!(!cross.is_recorded() && output.router_logits().is_none());
        let captures = model.captures(case.inputs(&device), &all.clone().output_hidden_states([1])).expect("runs");
        assert_eq!(captures.keys().collect::<Vec<_>>(), ["attentions", "hidden_states"]);
    }
    for name in ["gpt2", "bert-decoder"] {
        let case = Case::new(name);
        let model = AutoModelForCausalLM::from_pretrained(case.folder(), &device).expect("loads");
        let output = model.forward(case.inputs(&device), &all).expect("runs");
        assert!(output.loss().is_none() && output.aux_loss().is_none() && output.cache().is_some(), "{name}");
        assert_eq!(output.logits().dims()[2], 99);
    }
    for name in ["vit", "t5"] {
        let folder = Case::new(name).folder().to_owned();
        let errors = [
            AutoModel::from_pretrained(&folder, &device).map(drop),
            AutoModelForCausalLM::from_pretrained(&folder, &device).map(drop),
            AutoModelForSequenceClassification::from_config_of(&folder, &device).map(drop),
        ];
        for error in errors {
            let error = error.expect_err("a family of another kind").to_string();
            let expected =
                format!("model_type `{name}` is none of the text models of this type (expected one of: bert, ");
            assert!(error.starts_with(&expected) && error.ends_with(", qwen3): `AnyModel` loads it"), "{error}");
        }
        AnyModel::from_pretrained(&folder, &device).expect("it does");
    }
}
