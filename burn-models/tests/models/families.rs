//! What holds for every family, on every fixture: one test for all of them, through what any model offers.
//!
//! A case is found by its folder; whoever adds a family adds folders, and wrappers of its classes.

use crate::support::{Case, TOLERANCE, assert_close_data, devices, flat, recorded, tensors};
use crate::wrappers::{self, tape};
use burn::tensor::{Device, FloatDType, TensorData};
use burn_models::auto::{AnyModel, ModelClass, NamedInputs, RunError};
use burn_models::generation::GenerationConfig;
use patching_core::capture::OutputTuple;
use patching_core::class::all_slots;
use patching_core::patch::{PatchSet, ReplacementClass};
use patching_core::prelude::*;
use patching_core::weights::{LoadOptions, SaveOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Every folder with inputs and outputs of the reference; of those, if `BURN_MODELS_CASES` is set, the ones whose names begin
/// with it.
fn cases() -> Vec<Case> {
    let prefix = std::env::var("BURN_MODELS_CASES").unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut names: Vec<String> = std::fs::read_dir(&root)
        .expect("there are fixtures")
        .map(|entry| entry.expect("readable").path())
        .filter(|folder| folder.join("meta.json").exists() && folder.join("outputs.safetensors").exists())
        .map(|folder| folder.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.retain(|name| name.starts_with(&prefix));
    names.sort();
    assert!(!names.is_empty(), "no fixture's name begins with `{prefix}`");
    names.into_iter().map(|name| Case::new(name.leak())).collect()
}

/// The checkpoints of a case: as published, and in other layouts where the reference wrote them.
fn checkpoints(case: &Case) -> Vec<PathBuf> {
    let folders = [case.weights().to_owned(), case.checkpoint().to_owned(), case.folder().join("prefixed")];
    let mut known: Vec<PathBuf> = folders.into_iter().filter(|folder| folder.join("config.json").exists()).collect();
    known.dedup();
    known
}

fn inputs(case: &Case) -> NamedInputs {
    let all = tensors(&case.weights().join("inputs.safetensors"));
    all.into_iter().fold(NamedInputs::new(), |inputs, (name, data)| inputs.with(name, data))
}

/// The class that the reference was run with, whatever the checkpoint was saved from.
fn class(case: &Case, folder: &Path) -> &'static ModelClass {
    let name = case.meta["model_class"].as_str().expect("a name");
    ModelClass::named(folder, name).unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

fn load(case: &Case, folder: &Path, device: &Device, options: &LoadOptions) -> AnyModel {
    // the config is the case's own: several share the weights of one
    let dir = tempfile::tempdir().expect("a folder");
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path()) {
        let name = entry.file_name().expect("a name").to_owned();
        if entry.is_file() && (name.to_string_lossy().starts_with("model") || name == "generation_config.json") {
            std::os::unix::fs::symlink(&entry, dir.path().join(name)).expect("linked");
        }
    }
    std::fs::copy(case.folder().join("config.json"), dir.path().join("config.json")).expect("copied");
    let loaded = AnyModel::from_pretrained_as(dir.path(), class(case, dir.path()), device, options);
    loaded.unwrap_or_else(|error| panic!("{}: {error}", case.name)).0
}

fn run(case: &Case, model: &AnyModel, device: &Device, kwargs: &ForwardKwargs) -> OutputTuple {
    model.forward(&inputs(case), device, kwargs).unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

/// The keys that the reference has as empty tuples, which are left out here: nothing records them in this model.
fn empty(case: &Case) -> BTreeSet<String> {
    let entries = case.meta["entries"].as_object().expect("an object");
    let empty = entries.iter().filter(|(_, entry)| entry["length"] == 0);
    empty.map(|(key, _)| key.clone()).collect()
}

/// Every key of `outputs.safetensors`, the recorded positions, and the order of the tuple.
fn check_parity(case: &Case, found: &OutputTuple, order: &str, on: &str) {
    let values = flat(found);
    for (key, expected) in &case.expected("outputs.safetensors") {
        let name = format!("{} on {on}: {key}", case.name);
        let value = values.get(key).unwrap_or_else(|| panic!("{name} is missing"));
        assert_close_data(&name, value, expected, TOLERANCE);
    }
    let empty = empty(case);
    let keys = recorded(found);
    let entries = case.meta["entries"].as_object().expect("an object");
    let expected: Vec<&String> = entries.keys().filter(|key| !empty.contains(*key)).collect();
    assert_eq!(keys.keys().collect::<BTreeSet<_>>(), expected.iter().copied().collect(), "{} on {on}", case.name);
    for key in expected {
        assert_eq!(keys.get(key).cloned(), case.entries(key), "{} on {on}: {key}", case.name);
    }
    let order: Vec<String> = case.strings(order).into_iter().filter(|key| !empty.contains(key)).collect();
    assert_eq!(found.names().collect::<Vec<_>>(), order, "{} on {on}", case.name);
}

/// The values without attention weights, as the recording of these takes another implementation than a fused one.
fn check_unseen(case: &Case, model: &AnyModel, attention: &str, on: &str, device: &Device) {
    if !model.recordable_keys().iter().any(|key| key == "attentions") {
        return;
    }
    let expected = case.expected("outputs.safetensors");
    for (key, value) in flat(&run(case, model, device, &case.kwargs().output("attentions", false))) {
        if let Some(expected) = expected.get(&key) {
            let name = format!("{} on {on}, {attention} without weights: {key}", case.name);
            assert_close_data(&name, &value, expected, TOLERANCE);
        }
    }
}

/// Every checkpoint of a case, with each attention implementation, with a cache and without.
pub fn check_case(case: &Case, on: &str, device: &Device) {
    for folder in checkpoints(case) {
        let mut model = load(case, &folder, device, &LoadOptions::new().dtype(FloatDType::F32));
        for attention in ["sdpa", "eager"] {
            model.set_attn_implementation(attention).expect("built in");
            check_parity(case, &run(case, &model, device, &case.kwargs()), "tuple_order", on);
            check_unseen(case, &model, attention, on, device);
            if case.meta["tuple_order_with_cache"].is_array() {
                let output = run(case, &model, device, &case.kwargs().use_cache(true));
                check_parity(case, &output, "tuple_order_with_cache", on);
            }
        }
    }
}

#[test]
fn every_recorded_value_is_the_reference_s() {
    for (on, device) in devices() {
        for case in cases() {
            check_case(&case, on, &device);
        }
    }
}

#[test]
fn greedy_text_is_the_reference_s() {
    for (on, device) in devices() {
        for case in cases().into_iter().filter(Case::generates) {
            let model = load(&case, case.checkpoint(), &device, &LoadOptions::new());
            let expected = case.expected("generate.safetensors");
            let new = expected["generated_ids"].shape()[1];
            for use_cache in [true, false] {
                let mut config = GenerationConfig::from_pretrained(case.checkpoint()).expect("settings");
                config.max_new_tokens = Some(new);
                config.use_cache = use_cache;
                let mut given = inputs(&case);
                // a decoder that answers an encoder begins by itself
                for name in ["labels", "decoder_input_ids"] {
                    given = given.without(name);
                }
                let output = model.generate(&given, &device, &config, &ForwardKwargs::new());
                let output = output.unwrap_or_else(|error| panic!("{}: {error}", case.name));
                let name = format!("{} on {on}, use_cache {use_cache}", case.name);
                let found: Vec<i64> = output.sequences.to_data().iter::<i64>().collect();
                assert_eq!(found, expected["sequences"].iter::<i64>().collect::<Vec<_>>(), "{name}");
                let added: Vec<i64> = output.new_tokens.concat();
                assert_eq!(added, expected["generated_ids"].iter::<i64>().collect::<Vec<_>>(), "{name}");
            }
        }
    }
}

#[test]
fn a_model_that_generates_no_text_says_so() {
    let (_, device) = devices().remove(0);
    for case in cases() {
        let model = load(&case, case.checkpoint(), &device, &LoadOptions::new());
        let result = model.generate(&inputs(&case), &device, &GenerationConfig::greedy(1), &ForwardKwargs::new());
        let refused = match result {
            Err(error @ RunError::NoGeneration { .. }) => Some(error.to_string()),
            _ => None,
        };
        assert_eq!(refused.is_some(), !model.generates(), "{}", case.name);
        assert!(!(case.generates() && refused.is_some()), "{}", case.name);
        assert!(refused.is_none_or(|message| message.contains(model.class_name())), "{}", case.name);
    }
}

/// All values of a run, bit by bit, and how many of each key were recorded where.
#[derive(PartialEq)]
struct Ran {
    values: BTreeMap<String, (Vec<usize>, Vec<u8>)>,
    recorded: BTreeMap<String, (usize, Vec<usize>)>,
}

impl Ran {
    fn new(case: &Case, model: &AnyModel, device: &Device, kwargs: &ForwardKwargs) -> Self {
        let tuple = run(case, model, device, kwargs);
        let bits = |data: TensorData| (data.shape().to_vec(), data.as_bytes().to_vec());
        let values = flat(&tuple).into_iter().map(|(key, data)| (key, bits(data))).collect();
        Self { values, recorded: recorded(&tuple) }
    }

    /// Panics where the two differ, with the name of what does.
    #[track_caller]
    fn assert_same(&self, other: &Self, what: &str) {
        assert_eq!(self.recorded, other.recorded, "{what}");
        assert_eq!(self.values.keys().collect::<Vec<_>>(), other.values.keys().collect::<Vec<_>>(), "{what}");
        self.assert_has(other, what);
    }

    /// The same for the values that the other has.
    #[track_caller]
    fn assert_has(&self, other: &Self, what: &str) {
        for (key, value) in &other.values {
            assert!(self.values.get(key) == Some(value), "{what}: `{key}` has other bits");
        }
    }
}

/// Keys that follow `attentions`, which cannot be asked for where nothing records them.
const FOLLOWERS: [&str; 1] = ["cross_attentions"];

/// Everything that a model can record, or everything but `attentions` and what follows them.
fn everything(model: &AnyModel, attentions: bool) -> ForwardKwargs {
    let keys = model.recordable_keys().into_iter().filter(|key| !FOLLOWERS.contains(&key.as_str()));
    keys.fold(ForwardKwargs::new(), |kwargs, key| {
        // said, since a config may ask for them
        let is_on = attentions || key != "attentions";
        kwargs.output(key, is_on)
    })
}

/// Nothing, whatever the config says.
fn nothing(model: &AnyModel) -> ForwardKwargs {
    model.recordable_keys().into_iter().fold(ForwardKwargs::new(), |kwargs, key| kwargs.output(key, false))
}

/// What a model does with each attention implementation: with everything recorded, and that recording changes nothing.
fn behaviour(case: &Case, model: &mut AnyModel, device: &Device, what: &str) -> [Ran; 2] {
    ["sdpa", "eager"].map(|attention| {
        model.set_attn_implementation(attention).expect("built in");
        let all = Ran::new(case, model, device, &everything(model, true));
        let mut off = Ran::new(case, model, device, &nothing(model));
        assert!(off.recorded.values().all(|(_, present)| present.is_empty()), "{what}");
        // a fused implementation has no weights to give, so that recording them takes another
        let on = Ran::new(case, model, device, &everything(model, attention == "eager"));
        assert!(on.recorded.values().any(|(_, present)| !present.is_empty()), "{what}");
        if on.values.contains_key("aux_loss") {
            // it is part of the loss, where routers are recorded
            off.values.remove("loss");
        }
        on.assert_has(&off, &format!("{what}, {attention}, recorded or not"));
        all
    })
}

fn weights(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path());
    let is_weights = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "safetensors");
    let named = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let of_model = files.filter(is_weights).filter(|path| named(path).starts_with("model"));
    of_model.map(|path| (named(&path), std::fs::read(&path).expect("readable"))).collect()
}

/// One set of patches for each class of the model, and one for all of them.
fn sets(classes: &BTreeSet<&str>, each: bool) -> Vec<Vec<(&'static str, ReplacementClass)>> {
    let all = wrappers::all();
    let of_model: Vec<_> = all.into_iter().filter(|(name, _)| classes.contains(name)).collect();
    let missing: Vec<_> = classes.iter().filter(|class| !of_model.iter().any(|(name, _)| name == *class)).collect();
    assert!(missing.is_empty(), "classes without a wrapper: {missing:?}");
    let singles = of_model.iter().filter(|_| each).map(|one| vec![one.clone()]);
    singles.chain([of_model.clone()]).collect()
}

/// A replacement that only calls its original changes nothing, whichever class of whichever family it stands in for; nor
/// does recording, or writing back what was recorded; and what was loaded is saved as it was.
#[test]
fn wrapping_any_class_and_recording_change_nothing() {
    for (at, (on, device)) in devices().into_iter().enumerate() {
        for case in cases() {
            for folder in checkpoints(&case) {
                let options = LoadOptions::new().patches(PatchSet::default());
                let mut plain = load(&case, &folder, &device, &options);
                let slots = all_slots(&plain);
                let classes: BTreeSet<&str> = slots.iter().map(|slot| slot.class).collect();
                let expected = behaviour(&case, &mut plain, &device, case.name);
                // a second device computes the same graph: once with all of them
                for set in sets(&classes, at == 0) {
                    let names: Vec<&str> = set.iter().map(|(name, _)| *name).collect();
                    let what = format!("{} on {on}, {}", case.name, names.join(" and "));
                    let patches = PatchSet::new(set.clone()).expect("valid");
                    let mut model = load(&case, &folder, &device, &LoadOptions::new().patches(patches.clone()));
                    let count = slots.iter().filter(|slot| names.contains(&slot.class)).count();
                    assert_eq!(model.patch_report(&patches).replaced.len(), count, "{what}");

                    let saved = tempfile::tempdir().expect("a folder");
                    let report = model.save_pretrained_with(saved.path(), &SaveOptions::new());
                    report.unwrap_or_else(|error| panic!("{what}: {error}"));
                    let (found, expected_files) = (weights(saved.path()), weights(&folder));
                    if expected_files.len() == 1 && !casts(&case) {
                        assert!(found == expected_files, "{what}: other bytes in the checkpoint");
                    }

                    let everything = everything(&model, true);
                    let (once, again, written) = tape::twice(|| Ran::new(&case, &model, &device, &everything));
                    assert!(written >= count, "{what}: {written} values were written back");
                    again.assert_same(&once, &format!("{what}, written back"));

                    let found = behaviour(&case, &mut model, &device, &what);
                    for (found, expected) in found.iter().zip(&expected) {
                        found.assert_same(expected, &what);
                    }
                }
            }
        }
    }
}

/// Whether the checkpoint is in a type that a device may not compute in, so that it is not saved as it was.
fn casts(case: &Case) -> bool {
    case.meta["checkpoint_dtype"].as_str().is_some_and(|dtype| dtype != "float32")
}

/// The class of each case is found by its name, and so is the base model of its family; a name that is near is offered.
#[test]
fn classes_are_found_by_name() {
    for case in cases() {
        let folder = case.folder();
        let class = class(&case, folder);
        assert_eq!(ModelClass::named(folder, class.name).expect("known").name, class.name);
        let wrong = format!("{}x", class.name);
        let error = ModelClass::named(folder, &wrong).expect_err("unknown").to_string();
        assert!(error.contains(&format!("did you mean `{}`?", class.name)), "{error}");
        assert!(ModelClass::base_of(folder).expect("known").is_base);
    }
}
