//! Saving over a checkpoint: at every instant a reader finds all of the old one or all of the new one.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use burn::tensor::Device;
use patching_core::weights::{Checkpoint, PreTrainedModel, ReadMode, SaveOptions};

use crate::support::{ToyConfig, ToyForCausalLM, fixture, values};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .expect("it lists")
        .map(|file| file.expect("it lists").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    names
}

fn save(model: &ToyForCausalLM, dir: &Path, shard: u64) -> Vec<String> {
    let report = model.save_pretrained_with(dir, &SaveOptions::new().max_shard_size(shard)).expect("saves");
    assert_eq!(report.left_over, Vec::<std::path::PathBuf>::new());
    report.files
}

fn random() -> ToyForCausalLM {
    ToyForCausalLM::from_config(&ToyConfig::small(), &Device::flex()).expect("constructs")
}

#[test]
fn every_change_of_form_leaves_only_the_new_files() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("tokenizer.json"), "{}").expect("writes");
    let sizes = [u64::MAX, 200, 200, 90, u64::MAX, u64::MAX, 90, 200, 90];
    for size in sizes {
        let model = random();
        let mut expected = save(&model, folder.path(), size);
        if expected.len() > 1 {
            expected.push("model.safetensors.index.json".into());
        }
        expected.extend(["config.json".into(), "tokenizer.json".into()]);
        expected.sort();
        assert_eq!(names(folder.path()), expected);
        let loaded = ToyForCausalLM::from_pretrained(folder.path(), &Device::flex()).expect("loads");
        assert_eq!(values(&loaded), values(&model));
    }
}

#[test]
fn a_model_can_be_saved_over_the_files_that_it_lies_on() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["config.json", "model.safetensors"] {
        fs::copy(fixture("llama").join(file), folder.path().join(file)).expect("copies");
    }
    let load = || ToyForCausalLM::from_pretrained(folder.path(), &Device::flex()).expect("loads");
    let model = load();
    let expected = values(&load());
    for size in [u64::MAX, 20_000, 20_000, u64::MAX] {
        save(&model, folder.path(), size);
        assert_eq!(values(&model), expected, "the model still has its values");
        assert_eq!(values(&load()), expected);
    }
    assert_eq!(
        fs::read(folder.path().join("model.safetensors")).expect("reads"),
        fs::read(fixture("llama").join("model.safetensors")).expect("reads")
    );
}

#[test]
fn a_save_that_fails_leaves_the_old_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = random();
    save(&old, folder.path(), 200);
    let before: Vec<_> = names(folder.path());

    // The callback stands for whatever may go wrong after some of the files have been written.
    let options = SaveOptions::new().progress(|progress| assert!(progress.tensors < 4, "far enough"));
    let failing = std::panic::AssertUnwindSafe(|| random().save_pretrained_with(folder.path(), &options));
    assert!(std::panic::catch_unwind(failing).is_err());
    assert_eq!(names(folder.path()), before);
    let loaded = ToyForCausalLM::from_pretrained(folder.path(), &Device::flex()).expect("loads");
    assert_eq!(values(&loaded), values(&old));

    // What a killed save left is no obstacle, and goes.
    fs::create_dir(folder.path().join(".saving-abc")).expect("makes");
    fs::write(folder.path().join(".saving-abc/model.safetensors"), "half").expect("writes");
    fs::write(folder.path().join("model-00001-of-00009.abc.safetensors"), "half").expect("writes");
    let new = random();
    save(&new, folder.path(), 200);
    assert_eq!(names(folder.path()), before);
}

#[test]
fn readers_never_see_a_mixture() {
    let folder = tempfile::tempdir().expect("a folder");
    let constant = |value: f64| {
        use burn::module::Module;
        struct Fill(f64);
        impl burn::module::ModuleMapper for Fill {
            fn map_float<const D: usize>(
                &mut self,
                param: burn::module::Param<burn::tensor::Tensor<D>>,
            ) -> burn::module::Param<burn::tensor::Tensor<D>> {
                param.map(|tensor| tensor.zeros_like() + self.0)
            }
        }
        random().map(&mut Fill(value))
    };
    let models = [constant(1.0), constant(2.0)];
    save(&models[0], folder.path(), 200);

    let done = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let (done, path) = (Arc::clone(&done), folder.path().to_owned());
        move || {
            let mut read = 0;
            while !done.load(Ordering::Relaxed) {
                let mode = if read % 2 == 0 { ReadMode::Map } else { ReadMode::Read };
                let checkpoint = match Checkpoint::open(&path, mode) {
                    Ok(checkpoint) => checkpoint,
                    // Replaced faster than it could be opened, which is told and not a mixture.
                    Err(patching_core::weights::ReadError::Changing { .. }) => continue,
                    Err(error) => panic!("{error}"),
                };
                let mut seen: Vec<f32> = Vec::new();
                for (key, _) in checkpoint.tensors() {
                    seen.extend(checkpoint.read(key).expect("reads").try_to_vec::<f32>().expect("floats"));
                }
                assert!(seen.iter().all(|value| *value == seen[0]), "old and new together");
                read += 1;
            }
            read
        }
    });
    let sizes = [200, 200, u64::MAX, 90, 200, u64::MAX, u64::MAX];
    for round in 0..70 {
        save(&models[round % 2], folder.path(), sizes[round % sizes.len()]);
    }
    done.store(true, Ordering::Relaxed);
    assert!(reader.join().expect("no mixture") > 0);
}
