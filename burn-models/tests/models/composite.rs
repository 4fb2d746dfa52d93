//! Requests to models that are made of several parts: each part records by its own declaration, once.

use crate::support::{Case, bits, device, tensors};
use burn::module::Module;
use burn::tensor::{DType, Device, Int, Tensor};
use burn_models::auto::{AnyModel, NamedInputs};
use burn_models::models::{EncoderDecoder, Model, Tower};
use burn_models::t5::{T5Config, T5EncoderModel, T5ForConditionalGeneration, T5Model};
use burn_models::{ForwardError, Seq2SeqInputs, Seq2SeqLMOutput, TextInputs};
use patching_core::capture::{OutputValue, Returned};
use patching_core::prelude::*;

/// Two layers of encoder, three of decoder.
fn case() -> Case {
    Case::new("t5")
}

/// It computes attention by the formula, recorded or not: a fused kernel rounds differently.
fn model(device: &Device) -> T5ForConditionalGeneration {
    let mut model = T5ForConditionalGeneration::from_pretrained(case().folder(), device).expect("loads");
    model.set_attn_implementation("eager").expect("built in");
    model
}

fn ints(name: &str, device: &Device) -> Tensor<2, Int> {
    let mut all = tensors(&case().folder().join("inputs.safetensors"));
    Tensor::from_data(all.remove(name).expect("there"), (device, DType::I64))
}

fn source(device: &Device) -> TextInputs {
    TextInputs::new(ints("input_ids", device)).attention_mask(ints("attention_mask", device))
}

fn inputs(device: &Device) -> Seq2SeqInputs {
    Seq2SeqInputs::new(source(device)).decoder_input_ids(ints("decoder_input_ids", device))
}

fn run(model: &T5ForConditionalGeneration, kwargs: &ForwardKwargs) -> Seq2SeqLMOutput {
    model.forward(inputs(&device()), kwargs).expect("runs")
}

/// Of each key the length and the positions that were kept, in the order of the fields: hidden states and attentions of the
/// decoder, its attentions to the encoder, hidden states and attentions of the encoder.
fn counts(output: &Seq2SeqLMOutput) -> [Vec<usize>; 5] {
    fn kept<const D: usize>(captured: &Captured<Tensor<D>>) -> Vec<usize> {
        captured.iter().map(|(position, ..)| position).collect()
    }
    [
        kept(&output.decoder_hidden_states),
        kept(&output.decoder_attentions),
        kept(&output.cross_attentions),
        kept(&output.encoder_hidden_states),
        kept(&output.encoder_attentions),
    ]
}

/// `0..n` for each.
fn all(lengths: [usize; 5]) -> [Vec<usize>; 5] {
    lengths.map(|length| (0..length).collect())
}

#[test]
fn a_flag_reaches_all_parts_and_one_with_a_prefix_one_part() {
    let model = model(&device());
    let new = ForwardKwargs::new;
    for (kwargs, expected) in [
        (new(), [0, 0, 0, 0, 0]),
        (new().output_hidden_states(true), [4, 0, 0, 3, 0]),
        (new().output_attentions(true), [0, 3, 3, 0, 2]),
        (new().output("encoder_attentions", true), [0, 0, 0, 0, 2]),
        (new().output("decoder_attentions", true), [0, 3, 3, 0, 0]),
        (new().output("decoder_hidden_states", true), [4, 0, 0, 0, 0]),
        (new().output_cross_attentions(true), [0, 0, 3, 0, 0]),
        (new().output("decoder_cross_attentions", true), [0, 0, 3, 0, 0]),
        // the narrower word wins, whichever it is
        (new().output_attentions(true).output("encoder_attentions", false), [0, 3, 3, 0, 0]),
        (new().output_hidden_states(false).output("encoder_hidden_states", true), [0, 0, 0, 3, 0]),
        (new().output_attentions(true).output_cross_attentions(false), [0, 3, 0, 0, 2]),
    ] {
        assert_eq!(counts(&run(&model, &kwargs)), all(expected), "{kwargs:?}");
        let plan = model.capture_plan(&kwargs).expect("can be recorded");
        let planned: Vec<usize> = plan.keys().iter().map(|key| key.len()).collect();
        assert_eq!(planned, expected.into_iter().filter(|length| *length > 0).collect::<Vec<_>>(), "{kwargs:?}");
    }
}

#[test]
fn each_part_has_its_own_selection() {
    let model = model(&device());
    let kwargs = ForwardKwargs::new()
        .output_hidden_states([0, -1])
        .output("decoder_hidden_states", [1])
        .output_attentions(-1)
        .output_cross_attentions([0, 2]);
    let output = run(&model, &kwargs);
    assert_eq!(counts(&output), [vec![1], vec![2], vec![0, 2], vec![0, 2], vec![1]]);
    // positions count to the end of the part's own layers
    let full = run(&model, &ForwardKwargs::new().output_attentions(true).output_hidden_states(true));
    assert_eq!(
        bits(output.encoder_attentions.at(-1).expect("kept")),
        bits(full.encoder_attentions.at(-1).expect("kept"))
    );
    assert_eq!(
        bits(output.decoder_attentions.at(-1).expect("kept")),
        bits(full.decoder_attentions.at(-1).expect("kept"))
    );
    assert_eq!(bits(&output.logits), bits(&full.logits));
    // one that a part does not reach is that part's error
    let error =
        |kwargs: ForwardKwargs| model.forward(inputs(&device()), &kwargs).expect_err("out of range").to_string();
    let both = error(ForwardKwargs::new().output_attentions([2]));
    assert!(both.contains("`attentions` has no value 2: there are 2"), "{both}");
    let decoder = error(ForwardKwargs::new().output("decoder_attentions", [3]));
    assert!(decoder.contains("there are 3"), "{decoder}");
    assert!(model.forward(inputs(&device()), &ForwardKwargs::new().output("decoder_attentions", [2])).is_ok());
}

#[test]
fn an_unknown_key_is_an_error_before_anything_runs() {
    let model = model(&device());
    for (key, near) in [
        ("attention", "`attentions`"),
        ("output_attentions", "`attentions`"),
        ("encoder_attention", "`attentions`"),
        ("decoder_hidden_state", "`hidden_states`"),
        ("encoder_cross_attentions", "`cross_attentions`"),
    ] {
        let kwargs = ForwardKwargs::new().output(key, true);
        let error = model.forward(inputs(&device()), &kwargs).expect_err("unknown").to_string();
        assert!(error.contains(&format!("cannot record `{key}`")), "{error}");
        assert!(error.contains("did you mean") && error.contains(near), "{error}");
        assert_eq!(model.capture_plan(&kwargs).expect_err("unknown").to_string(), error);
    }
    let expected = ForwardKwargs::new().output_attentions(true).expect("router_logits", 1);
    assert!(model.forward(inputs(&device()), &expected).is_err());
    let counted = ForwardKwargs::new().output_attentions(true).expect("encoder_attentions", 2);
    assert!(model.forward(inputs(&device()), &counted.clone().expect("decoder_attentions", 3)).is_ok());
    assert!(model.forward(inputs(&device()), &counted.expect("decoder_attentions", 2)).is_err());
}

#[test]
fn attention_to_the_encoder_alone_leaves_the_encoder_alone() {
    let model = model(&device());
    let none = run(&model, &ForwardKwargs::new());
    let output = run(&model, &ForwardKwargs::new().output_cross_attentions([1]));
    assert_eq!(counts(&output), [vec![], vec![], vec![1], vec![], vec![]]);
    assert_eq!(output.cross_attentions.iter().map(|(_, path, _)| path).collect::<Vec<_>>(), ["block.1.layer.1"]);
    assert!(!output.encoder_attentions.is_recorded() && !output.decoder_attentions.is_recorded());
    let states = |output: &Seq2SeqLMOutput| bits(output.encoder_last_hidden_state.as_ref().expect("it ran"));
    assert_eq!(states(&output), states(&none));
    let names: Vec<&str> = output.to_tuple().names().collect();
    assert_eq!(names, ["logits", "cache", "cross_attentions", "encoder_last_hidden_state"]);
}

/// Recorded alone or inside the whole, before or after, an encoder gives the same, once.
#[test]
fn a_part_records_the_same_alone_and_inside() {
    let device = device();
    let whole = model(&device);
    let mut alone = T5EncoderModel::from_pretrained(case().folder(), &device).expect("loads");
    alone.set_attn_implementation("eager").expect("built in");
    let kwargs = ForwardKwargs::new().output_hidden_states(true).output_attentions(true);
    let before = alone.forward(source(&device), &kwargs).expect("runs");
    for _ in 0..2 {
        let output = run(&whole, &kwargs);
        assert_eq!(counts(&output), all([4, 3, 3, 3, 2]));
        for at in 0..3 {
            let state = |captured: &Captured<Tensor<3>>| bits(captured.get(at).expect("recorded"));
            assert_eq!(state(&before.hidden_states), state(&output.encoder_hidden_states));
        }
        for at in 0..2 {
            let weights = |captured: &Captured<Tensor<4>>| bits(captured.get(at).expect("recorded"));
            assert_eq!(weights(&before.attentions), weights(&output.encoder_attentions));
        }
        // the part of the whole by itself, as anybody may run it
        let embedded = whole.for_encoder(source(&device)).expect("fits");
        let inside = whole.encoder().run_tower(embedded, &kwargs).expect("runs");
        assert_eq!((inside.hidden_states.len(), inside.attentions.len()), (3, 2));
    }
}

#[derive(ModelOutput, Debug)]
struct PairOutput {
    similarity: Tensor<1>,
    first_attentions: Captured<Tensor<4>>,
    second_attentions: Captured<Tensor<4>>,
}

/// One encoder for two texts.
#[derive(Module, Debug)]
struct Siamese {
    encoder: T5EncoderModel,
}

impl Siamese {
    fn forward(&self, texts: [TextInputs; 2], kwargs: &ForwardKwargs) -> Result<PairOutput, ForwardError> {
        use patching_core::capture::Part;
        let parts = ["first_", "second_"].map(Part::of::<T5EncoderModel>);
        let [of_first, of_second] = kwargs.split("Siamese", self.encoder.config(), &parts)?;
        let [first, second] = texts;
        let mut first = self.encoder.forward(first, &of_first)?;
        let mut second = self.encoder.forward(second, &of_second)?;
        let mean = |states: &Tensor<3>| states.clone().mean_dim(1);
        let product = mean(&first.last_hidden_state) * mean(&second.last_hidden_state);
        let mut output = PairOutput::new(product.sum());
        first.pass_on_as("first_", &mut output)?;
        second.pass_on_as("second_", &mut output)?;
        Ok(output)
    }
}

#[test]
fn a_part_that_is_used_twice_records_each_use() {
    let device = device();
    let mut encoder = T5EncoderModel::from_pretrained(case().folder(), &device).expect("loads");
    encoder.set_attn_implementation("eager").expect("built in");
    let model = Siamese { encoder };
    let text = |length: usize| TextInputs::new(ints("input_ids", &device).slice_dim(1, 0..length));
    let pair = |kwargs: ForwardKwargs| model.forward([text(3), text(5)], &kwargs).expect("runs");
    let sizes = |captured: &Captured<Tensor<4>>| -> Vec<usize> { captured.iter().map(|(.., w)| w.dims()[3]).collect() };
    let both = pair(ForwardKwargs::new().output_attentions(true));
    assert_eq!((sizes(&both.first_attentions), sizes(&both.second_attentions)), (vec![3, 3], vec![5, 5]));
    let second = pair(ForwardKwargs::new().output("second_attentions", [0]));
    assert!(!second.first_attentions.is_recorded());
    assert_eq!(sizes(&second.second_attentions), [5]);
    assert_eq!(bits(&second.similarity), bits(&both.similarity));
    // there is no field for hidden states: they would go missing
    let error = model.forward([text(3), text(5)], &ForwardKwargs::new().output_hidden_states(true));
    let error = error.expect_err("no field").to_string();
    assert!(error.contains("`PairOutput` has no field for the recorded `first_hidden_states`"), "{error}");
}

#[test]
fn threads_get_what_each_asks_for() {
    let model = model(&device());
    let requests = [
        (ForwardKwargs::new().output_attentions(true), all([0, 3, 3, 0, 2])),
        (ForwardKwargs::new().output("encoder_hidden_states", true), all([0, 0, 0, 3, 0])),
        (ForwardKwargs::new().output_cross_attentions([0]), [vec![], vec![], vec![0], vec![], vec![]]),
        (ForwardKwargs::new(), all([0; 5])),
    ];
    let expected = bits(&run(&model, &ForwardKwargs::new()).logits);
    let model = &model;
    std::thread::scope(|scope| {
        for (kwargs, counted) in &requests {
            let expected = &expected;
            scope.spawn(move || {
                for _ in 0..5 {
                    let output = run(model, kwargs);
                    assert_eq!(&counts(&output), counted, "{kwargs:?}");
                    assert_eq!(&bits(&output.logits), expected);
                }
            });
        }
    });
}

#[test]
fn the_config_decides_where_the_caller_says_nothing() {
    let device = device();
    let with = |set: &dyn Fn(&mut T5Config)| {
        let mut config = T5Config::from_pretrained(case().folder()).expect("valid");
        set(&mut config);
        let model = T5ForConditionalGeneration::from_config(&config, &device).expect("constructs");
        model.load_weights(case().folder()).expect("fits")
    };
    let model = with(&|config| {
        config.general.set_output("hidden_states", true);
        config.general.set_output("attentions", [0]);
    });
    assert_eq!(
        counts(&run(&model, &ForwardKwargs::new())),
        [vec![0, 1, 2, 3], vec![0], vec![0], vec![0, 1, 2], vec![0]]
    );
    let kwargs = ForwardKwargs::new().output_hidden_states(false).output("decoder_attentions", false);
    assert_eq!(counts(&run(&model, &kwargs)), [vec![], vec![], vec![], vec![], vec![0]]);
    // a flag for one part alone
    let model = with(&|config| config.general.set_output("cross_attentions", true));
    assert_eq!(counts(&run(&model, &ForwardKwargs::new())), all([0, 0, 3, 0, 0]));
    // a config that wants tuples does not break the parts
    let model = with(&|config| config.general.return_dict = Some(false));
    let kwargs = ForwardKwargs::new().output_attentions(true);
    let output = run(&model, &kwargs);
    let Returned::Tuple(tuple) = model.returned(output, &kwargs) else { panic!("the config wants a tuple") };
    let expected = [
        "logits",
        "cache",
        "decoder_attentions",
        "cross_attentions",
        "encoder_last_hidden_state",
        "encoder_attentions",
    ];
    assert_eq!(tuple.names().collect::<Vec<_>>(), expected);
    let kwargs = kwargs.return_dict(true);
    assert!(matches!(model.returned(run(&model, &kwargs), &kwargs), Returned::Struct(_)));
}

#[test]
fn a_part_may_stop_early() {
    let device = device();
    let model = model(&device);
    let full = run(&model, &ForwardKwargs::new().output_hidden_states(true).output_attentions(true));
    let kwargs = ForwardKwargs::new().output_hidden_states([1]).output_attentions([0]);
    let embedded = model.for_encoder(source(&device)).expect("fits");
    let mut captures = model.encoder().tower_captures(embedded, &kwargs).expect("runs");
    let states = captures.take::<Tensor<3>>("hidden_states").expect("asked for");
    let weights = captures.take::<Tensor<4>>("attentions").expect("asked for");
    assert_eq!(bits(states.get(1).expect("kept")), bits(full.encoder_hidden_states.get(1).expect("kept")));
    assert_eq!(bits(weights.get(0).expect("kept")), bits(full.encoder_attentions.get(0).expect("kept")));
    // the decoder, of what the encoder gave
    let decoder = TextInputs::new(ints("decoder_input_ids", &device))
        .encoder_hidden_states(full.encoder_last_hidden_state.clone())
        .encoder_attention_mask(ints("attention_mask", &device));
    let embedded = model.for_decoder(decoder).expect("fits");
    let kwargs = ForwardKwargs::new().output_cross_attentions([0]);
    let mut captures = model.decoder().tower_captures(embedded, &kwargs).expect("runs");
    let crossed = captures.take::<Tensor<4>>("cross_attentions").expect("asked for");
    assert_eq!(bits(crossed.get(0).expect("kept")), bits(full.cross_attentions.get(0).expect("kept")));
}

/// By names and without types, as tools use models.
#[test]
fn any_model_of_parts_takes_the_same_requests() {
    let device = device();
    let any = AnyModel::from_pretrained(case().folder(), &device).expect("loads");
    assert_eq!(any.recordable_keys(), ["hidden_states", "attentions", "cross_attentions"]);
    let all = tensors(&case().folder().join("inputs.safetensors"));
    let named = all.into_iter().fold(NamedInputs::new(), |inputs, (name, data)| inputs.with(name, data));
    let kwargs = ForwardKwargs::new().output("encoder_attentions", [1]);
    let tuple = any.forward(&named, &device, &kwargs).expect("runs");
    let recorded = tuple.iter().filter_map(|(name, value)| match value {
        OutputValue::Captured(captured) => Some((name, captured.len())),
        _ => None,
    });
    assert_eq!(recorded.collect::<Vec<_>>(), [("encoder_attentions", 2)]);
    let plan = any.capture_plan(&kwargs).expect("can be recorded");
    let paths = plan.keys().iter().flat_map(|key| {
        key.values().filter(|value| value.is_kept).map(|value| value.path.to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(paths.collect::<Vec<_>>(), ["encoder.block.1.layer.0"]);
    let error = any.forward(&named, &device, &ForwardKwargs::new().output("encodr_attentions", true));
    assert!(error.expect_err("unknown").to_string().contains("cannot record `encodr_attentions`"));
}

/// Nothing of the decoder's cache or of a request stays in the model.
#[test]
fn a_model_is_as_before_after_a_request() {
    let device = device();
    let model = T5Model::from_pretrained(case().folder(), &device).expect("loads");
    let state = || {
        let output = model.forward(inputs(&device), &ForwardKwargs::new()).expect("runs");
        bits(&output.last_hidden_state)
    };
    let before = state();
    let unknown = ForwardKwargs::new().output("nothing", true);
    assert!(model.forward(inputs(&device), &unknown).is_err());
    let broken = inputs(&device).decoder_input_ids(Tensor::<2, Int>::from_data([[0]], &device));
    assert!(model.forward(broken, &ForwardKwargs::new().output_attentions(true)).is_err());
    assert_eq!(state(), before);
}
