use crate::support::{Case, bits, device, devices, difference, for_each_decoder};
use burn::tensor::{Device, Int, Tensor};
use burn_models::auto::{AutoModel, ModelClass};
use burn_models::bert::BertForMaskedLM;
use burn_models::layers::Cache;
use burn_models::llama::{LlamaForCausalLM, LlamaForSequenceClassification};
use burn_models::models::{BaseModel, CausalLM, Decoder};
use burn_models::t5::T5Model;
use burn_models::{ForwardError, Seq2SeqInputs, TextInputs};
use patching_core::prelude::*;

fn llama(device: &Device) -> LlamaForCausalLM {
    Case::new("llama").load(device)
}

fn tokens(device: &Device, shape: [usize; 2]) -> Tensor<2, Int> {
    let count = (shape[0] * shape[1]) as i64;
    Tensor::<1, Int>::arange(3..3 + count, device).reshape(shape)
}

#[test]
fn what_does_not_fit_is_an_error() {
    let device = device();
    let model = llama(&device);
    let run = |inputs: TextInputs| model.forward(inputs, &ForwardKwargs::new()).expect_err("refused").to_string();
    let ids = || TextInputs::new(tokens(&device, [2, 4]));
    let ones = |shape: [usize; 2]| Tensor::<2, Int>::ones(shape, &device);

    assert!(run(TextInputs::default()).contains("found neither"));
    let both = TextInputs { inputs_embeds: Some(Tensor::zeros([2, 4, 32], &device)), ..ids() };
    assert!(run(both).contains("found both"));
    let narrow = TextInputs::from_embeds(Tensor::zeros([2, 4, 31], &device));
    assert!(run(narrow).contains("`inputs_embeds` has shape [2, 4, 31], expected [batch, seq, 32]"));
    let mask = run(ids().attention_mask(ones([2, 5])));
    assert!(mask.contains("`attention_mask` has shape [2, 5], expected [2, 4]"), "{mask}");
    assert!(
        run(ids().position_ids(ones([3, 4]))).contains("`position_ids` has shape [3, 4], expected [2, 4] or [1, 4]")
    );
    let outside = TextInputs::new(Tensor::from_data([[3, 99]], &device));
    assert_eq!(run(outside), "`input_ids` holds 99, expected 0 to 98");
    let negative = TextInputs::new(Tensor::from_data([[3, -1]], &device));
    assert_eq!(run(negative), "`input_ids` holds -1, expected 0 to 98");
    assert_eq!(run(ids().cache(Cache::new([None]))), "the cache has 1 layers, expected 3");
    let half = Tensor::<3>::zeros([2, 4, 32], (&device, burn::tensor::DType::F16));
    assert_eq!(run(TextInputs::from_embeds(half)), "`inputs_embeds` is F16, expected F32 as the model's weights");
}

/// What only a head has a use for does not go missing where there is none, or one without that use.
#[test]
fn what_no_head_uses_is_an_error() {
    let device = device();
    let kwargs = ForwardKwargs::new();
    let refused = |result: Result<(), ForwardError>, expected: &str| match result {
        Err(ForwardError::Unused { name, .. }) => assert_eq!(name, expected),
        other => panic!("expected `{expected}` to be refused, found {other:?}"),
    };
    for name in ["llama", "bert", "gpt2"] {
        let base = AutoModel::from_pretrained(Case::new(name).checkpoint(), &device).expect("loads");
        let ids = || TextInputs::new(tokens(&device, [2, 4]));
        let run = |inputs: TextInputs| base.forward(inputs, &kwargs).map(drop);
        refused(run(ids().labels(tokens(&device, [2, 4]))), "labels");
        refused(run(ids().logits_to_keep(1)), "logits_to_keep");
        run(ids().logits_to_keep(0)).expect("all are kept, as without a word");
    }
    let ids = || TextInputs::new(tokens(&device, [1, 4])).logits_to_keep(1);
    let filling: BertForMaskedLM = Case::new("bert-mlm").load(&device);
    refused(filling.forward(ids(), &kwargs).map(drop), "logits_to_keep");
    let classes: LlamaForSequenceClassification = Case::new("llama-classes").load(&device);
    refused(classes.forward(ids(), &kwargs).map(drop), "logits_to_keep");

    let t5 = T5Model::from_pretrained(Case::new("t5-base").checkpoint(), &device).expect("loads");
    let ids = || tokens(&device, [2, 4]);
    let inputs = Seq2SeqInputs::new(ids()).decoder_input_ids(ids()).labels(ids());
    refused(t5.forward(inputs, &kwargs).map(drop), "labels");
    let inputs = Seq2SeqInputs::new(TextInputs::new(ids()).labels(ids())).decoder_input_ids(ids());
    refused(t5.forward(inputs, &kwargs).map(drop), "labels");
}

/// A tool is told before that a model without a head takes no labels.
#[test]
fn labels_are_inputs_of_heads() {
    for class in ModelClass::all().into_iter().filter(|class| class.is_base) {
        assert!(!class.input_names.contains(&"labels"), "{}", class.name);
    }
    for name in ["LlamaForCausalLM", "BertForMaskedLM", "GPT2LMHeadModel", "T5ForConditionalGeneration"] {
        let class = ModelClass::all().into_iter().find(|class| class.name == name).expect("known");
        assert!(class.input_names.contains(&"labels"), "{name}");
    }
}

#[test]
fn a_cache_of_another_batch_is_an_error() {
    let device = device();
    let model = llama(&device);
    let kwargs = ForwardKwargs::new();
    let cache = model.forward(tokens(&device, [2, 4]), &kwargs).expect("runs").cache.expect("config says so");
    assert_eq!((cache.sequence_length(), cache.batch_size()), (4, Some(2)));
    let next = TextInputs::new(tokens(&device, [3, 1])).cache(cache.clone());
    let error = model.forward(next, &kwargs).expect_err("another batch");
    assert!(matches!(error, ForwardError::Cache { what: "sequences", .. }), "{error}");
    // The mask covers what was seen before, too.
    let short = Tensor::<2, Int>::ones([2, 1], &device);
    let next = TextInputs::new(tokens(&device, [2, 1])).attention_mask(short).cache(cache);
    assert!(matches!(model.forward(next, &kwargs), Err(ForwardError::Shape { name: "attention_mask", .. })));
}

#[test]
fn without_use_cache_none_comes_back() {
    let device = device();
    let model = llama(&device);
    let ids = tokens(&device, [2, 4]);
    assert!(model.forward(ids.clone(), &ForwardKwargs::new().use_cache(false)).expect("runs").cache.is_none());
    let cache = model.forward(ids.clone(), &ForwardKwargs::new()).expect("runs").cache;
    assert!(cache.is_some());
    // One that is given is used, but not given back.
    let next = TextInputs::new(ids).cache(cache);
    let output = model.forward(next, &ForwardKwargs::new().use_cache(false).output_attentions([0])).expect("runs");
    assert_eq!(output.attentions.at(0).expect("recorded").dims()[3], 8);
    assert!(output.cache.is_none());
}

/// In pieces with a cache, and at once without.
#[test]
fn a_cached_run_is_the_whole_run() {
    for (on, device) in devices() {
        for_each_decoder!(case, Model => {
            let model: Model = case.load(&device);
            let ids = tokens(&device, [2, 20]);
            let padded = Tensor::<2, Int>::ones([2, 20], &device).slice_fill([1..2, 0..3], 0);
            for mask in [None, Some(padded)] {
                let whole = TextInputs::new(ids.clone()).attention_mask(mask.clone());
                let whole = model.forward_causal(whole, &ForwardKwargs::new().use_cache(false)).expect("runs").logits;
                for steps in [vec![1; 20], vec![7, 1, 1, 6, 1, 4], vec![19, 1]] {
                    let (mut cache, mut parts, mut start) = (None, Vec::new(), 0);
                    for step in steps {
                        let end = start + step;
                        let inputs = TextInputs::new(ids.clone().slice_dim(1, start..end))
                            .attention_mask(mask.clone().map(|mask| mask.slice_dim(1, 0..end)))
                            .cache(cache);
                        let output = model.forward_causal(inputs, &ForwardKwargs::new().use_cache(true)).expect("runs");
                        cache = output.cache;
                        parts.push(output.logits);
                        start = end;
                    }
                    let parts = Tensor::cat(parts, 1);
                    // A query on padding looks at every key there is, so only the others are the same in pieces.
                    let real = |x: Tensor<3>| if mask.is_some() { x.slice_dim(1, 3..20) } else { x };
                    let difference = difference(&real(parts), &real(whole.clone()));
                    assert!(difference < 1e-5, "{} on {on}: {difference}", case.name);
                }
            }
        });
    }
}

#[test]
fn embeddings_are_as_good_as_tokens() {
    let device = device();
    let model = llama(&device);
    let ids = tokens(&device, [2, 5]);
    let embeds = model.base().embedding().forward(ids.clone());
    let by_ids = model.forward(ids, &ForwardKwargs::new()).expect("runs").logits;
    let by_embeds = model.forward(TextInputs::from_embeds(embeds), &ForwardKwargs::new()).expect("runs").logits;
    assert_eq!(bits(&by_ids), bits(&by_embeds));
}

#[test]
fn positions_can_be_given() {
    let device = device();
    let model = llama(&device);
    let ids = tokens(&device, [1, 5]);
    let run = |inputs: TextInputs| model.forward(inputs, &ForwardKwargs::new()).expect("runs").logits;
    let counted = run(ids.clone().into());
    let given = Tensor::<1, Int>::arange(0..5, &device).unsqueeze();
    assert_eq!(bits(&counted), bits(&run(TextInputs::new(ids.clone()).position_ids(given.clone()))));
    // Only distances matter.
    let later = run(TextInputs::new(ids.clone()).position_ids(given.clone() + 30));
    assert!(difference(&counted, &later) < 1e-4);
    let wider = run(TextInputs::new(ids).position_ids(given * 3));
    assert!(difference(&counted, &wider) > 1e-3);
}

/// Two sequences in one row, told apart by their positions.
#[test]
fn packed_sequences_do_not_see_each_other() {
    for (on, device) in devices() {
        for_each_decoder!(case, Model => {
            let mut model: Model = case.load(&device);
            let kwargs = ForwardKwargs::new().use_cache(false);
            let ids = tokens(&device, [1, 12]);
            let positions = Tensor::<1, Int>::from_data([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6], &device).unsqueeze();
            for attention in ["sdpa", "eager"] {
                model.set_attn_implementation(attention).expect("built in");
                let run = |inputs: TextInputs| model.forward_causal(inputs, &kwargs).expect("runs").logits;
                let packed = run(TextInputs::new(ids.clone()).position_ids(positions.clone()));
                for part in [0..5, 5..12] {
                    let alone = run(TextInputs::new(ids.clone().slice_dim(1, part.clone())));
                    let far = difference(&packed.clone().slice_dim(1, part), &alone);
                    assert!(far < 1e-5, "{} on {on}: {far}", case.name);
                }
            }
        });
    }
}

#[test]
fn attention_need_not_be_causal() {
    let device = device();
    for attention in ["sdpa", "eager"] {
        let mut model = llama(&device);
        model.set_attn_implementation(attention).expect("built in");
        let kwargs = ForwardKwargs::new().is_causal(false).output_attentions(true).use_cache(false);
        let output = model.forward(tokens(&device, [1, 4]), &kwargs).expect("runs");
        let weights = output.attentions.at(0).expect("recorded").to_data();
        assert!(weights.iter::<f32>().all(|weight| weight > 0.0));
        let plain = model.forward(tokens(&device, [1, 4]), &ForwardKwargs::new().is_causal(false)).expect("runs");
        assert!(difference(&plain.logits, &output.logits) < 1e-5);
    }
}
