//! A load leaves other models alone, whatever happens on its thread meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use burn::module::{Module, ModuleMapper};
use burn::tensor::Device;
use patching_core::weights::{
    Concatenate, LoadOptions, WeightConverter, register_checkpoint_conversion_mapping as register,
    unregister_checkpoint_conversion_mapping as unregister,
};

use super::bag::{Bag, BagConfig, converting, counting, folder, load, saved};

struct Unchanged;
impl ModuleMapper for Unchanged {}

fn keys(model: &Bag) -> Vec<String> {
    saved(model).into_keys().collect()
}

#[test]
fn a_callback_may_map_load_and_save_other_models() {
    let name = "others_callback";
    let config = BagConfig::new(&[("qk", &[3])]).model_type(name);
    let rule = WeightConverter::new(["q", "k"], "qk").with(Concatenate::dim(0).sizes([2, 1]));
    register(name, [rule]).expect("registers");
    let whole = folder(&[counting("qk", &[3], 0)]);
    let parts = Arc::new(folder(&[counting("q", &[2], 0), counting("k", &[1], 2)]));
    let found = Arc::new(Mutex::new(Vec::new()));
    let options = LoadOptions::new().progress({
        let (found, config, parts) = (Arc::clone(&found), config.clone(), Arc::clone(&parts));
        move |_| {
            let fresh = Bag::on(&config, &Device::flex());
            let (loaded, _) = load(&config, parts.path(), &LoadOptions::new()).expect("loads");
            for other in [fresh.clone(), fresh.map(&mut Unchanged), loaded.clone(), loaded.map(&mut Unchanged)] {
                found.lock().expect("no panic").push(keys(&other));
            }
        }
    });
    let (model, _) = load(&config, whole.path(), &options).expect("loads");
    let found = found.lock().expect("no panic");
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|keys| *keys == ["k", "q"]), "{found:?}");
    // and they leave it alone
    assert_eq!(keys(&model), ["qk"]);
    unregister(name).expect("is registered");
}

#[test]
fn work_that_a_load_takes_over_is_not_part_of_it() {
    let config = BagConfig::new(&[("ab", &[1024, 512])]);
    let parts = folder(&[counting("a", &[512, 512], 0), counting("b", &[512, 512], 1)]);
    // the thread of a load does other work of its pool meanwhile, as it does where it waits for a part
    let options = converting([WeightConverter::new(["a", "b"], "ab").with(Concatenate::dim(0))])
        .progress(|_| while rayon::yield_now() == Some(rayon::Yield::Executed) {});
    let other = Bag::on(&config, &Device::flex());
    let done = AtomicUsize::new(0);
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|_| {
                    let (model, _) = load(&config, parts.path(), &options).expect("loads");
                    assert_eq!(keys(&model), ["a", "b"]);
                });
                scope.spawn(|_| {
                    assert_eq!(keys(&other.clone().map(&mut Unchanged)), ["ab"]);
                    done.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
    }
    assert_eq!(done.into_inner(), 12);
}
