//! Requests to several base models at once, and what they recorded in one output.

use crate::model::*;
use burn::prelude::*;
use patching_core::capture::{CapturePlan, OutputValue, Part};
use patching_core::prelude::*;

#[derive(ModelOutput, Debug)]
pub struct WholeOutput {
    pub last_hidden_state: Tensor<3>,
    pub decoder_hidden_states: Captured<Tensor<3>>,
    pub decoder_attentions: Captured<Tensor<3>>,
    pub cross_attentions: Captured<Tensor<3>>,
    pub encoder_hidden_states: Captured<Tensor<3>>,
    pub encoder_attentions: Captured<Tensor<3>>,
}

fn parts() -> [Part; 2] {
    [Part::of::<ToyModel>("encoder_").without("cross_attentions"), Part::of::<ToyModel>("decoder_")]
}

/// What each part is asked, as `key: flag`.
fn split_by(kwargs: &ForwardKwargs, config: &ToyConfig) -> Result<[Vec<(String, Flag)>; 2], CaptureError> {
    let requests = kwargs.split("Whole", config, &parts())?;
    Ok(requests.map(|request| request.keys().map(|key| (key.to_owned(), request.flag(key).clone())).collect()))
}

fn split(kwargs: &ForwardKwargs) -> [Vec<(String, Flag)>; 2] {
    split_by(kwargs, &ToyConfig::tiny()).expect("known keys")
}

fn asked<const N: usize>(flags: [(&str, Flag); N]) -> Vec<(String, Flag)> {
    flags.into_iter().map(|(key, flag)| (key.to_owned(), flag)).collect()
}

#[test]
fn a_key_reaches_every_part_that_declares_it() {
    let new = ForwardKwargs::new;
    let on = || Flag::On;
    // what a part never has does not follow there either
    let never = || asked([("cross_attentions", Flag::Off)]);
    assert_eq!(split(&new()), [never(), asked([])]);
    let [encoder, decoder] = split(&new().output_hidden_states(true));
    assert_eq!(encoder, [never(), asked([("hidden_states", on())])].concat());
    assert_eq!(decoder, asked([("hidden_states", on())]));
    assert_eq!(split(&new().output_cross_attentions(true)), [never(), asked([("cross_attentions", on())])]);
}

#[test]
fn a_prefix_means_one_part_and_wins_there() {
    let kwargs = ForwardKwargs::new()
        .output_hidden_states([0])
        .output("decoder_hidden_states", [1])
        .output("encoder_attentions", true)
        .output("decoder_cross_attentions", false);
    assert_eq!(
        split(&kwargs),
        [
            asked([("attentions", Flag::On), ("cross_attentions", Flag::Off), ("hidden_states", Flag::from([0]))]),
            asked([("cross_attentions", Flag::Off), ("hidden_states", Flag::from([1]))]),
        ]
    );
}

#[test]
fn the_composite_s_config_speaks_where_the_caller_does_not() {
    let config =
        ToyConfig { output_hidden_states: Some(true), output_attentions: Some(Flag::from(0)), ..ToyConfig::tiny() };
    let each = |kwargs: ForwardKwargs| split_by(&kwargs, &config).expect("known keys");
    let both = || asked([("attentions", Flag::from(0)), ("hidden_states", Flag::On)]);
    let [mut encoder, decoder] = each(ForwardKwargs::new());
    encoder.retain(|(key, _)| key != "cross_attentions");
    assert_eq!([encoder, decoder], [both(), both()]);
    let [mut encoder, decoder] =
        each(ForwardKwargs::new().output("encoder_attentions", false).output_hidden_states(-1));
    encoder.retain(|(key, _)| key != "cross_attentions");
    assert_eq!(encoder, asked([("attentions", Flag::Off), ("hidden_states", Flag::from(-1))]));
    assert_eq!(decoder, asked([("attentions", Flag::from(0)), ("hidden_states", Flag::from(-1))]));
}

#[test]
fn everything_else_of_a_request_reaches_all_parts() {
    let kwargs = ForwardKwargs::new().use_cache(true).is_causal(false).return_dict(false).detach(true);
    let parts = ["encoder_", "decoder_"].map(Part::of::<ToyModel>);
    for part in kwargs.split("Whole", &ToyConfig::tiny(), &parts).expect("known keys") {
        assert_eq!(part, kwargs);
    }
}

#[test]
fn counts_are_expected_of_the_parts_that_are_named() {
    let kwargs = ForwardKwargs::new().output_hidden_states(true).output_attentions(true);
    let check = |kwargs: &ForwardKwargs| {
        let [encoder, decoder] = kwargs.split("Whole", &ToyConfig::tiny(), &parts()).expect("known keys");
        [encoder, decoder].map(|request| ToyModel::tiny().forward(input(), &with_memory(), &request).is_ok())
    };
    assert_eq!(check(&kwargs.clone().expect("hidden_states", 4)), [true, true]);
    assert_eq!(check(&kwargs.clone().expect("hidden_states", 3)), [false, false]);
    assert_eq!(check(&kwargs.clone().expect("encoder_hidden_states", 3)), [false, true]);
    assert_eq!(check(&kwargs.expect("decoder_cross_attentions", 2)), [true, false]);
}

#[test]
fn a_key_that_no_part_declares_is_an_error() {
    let error = |kwargs: ForwardKwargs| split_by(&kwargs, &ToyConfig::tiny()).expect_err("unknown").to_string();
    let known = "it declares `hidden_states`, `attentions`, `cross_attentions`";
    for (key, near) in [
        ("attention", "attentions"),
        ("encoder_attention", "attentions"),
        ("output_decoder_hidden_states", "hidden_states"),
    ] {
        let message = error(ForwardKwargs::new().output(key, true));
        assert!(message.starts_with(&format!("`Whole` cannot record `{key}`: {known}")), "{message}");
        assert!(message.contains(&format!("did you mean `{near}`")), "{message}");
    }
    assert!(error(ForwardKwargs::new().output("encoder_cross_attentions", true)).contains("cannot record"));
    assert!(error(ForwardKwargs::new().expect("router_logits", 1)).contains("`router_logits`"));
    // a prefix alone is no key, and no prefix is none
    assert!(error(ForwardKwargs::new().output("encoder_", true)).contains("`encoder_`"));
    let nameless = ForwardKwargs::new().output("hidden_states", true);
    let [only] = nameless.split("Whole", &ToyConfig::tiny(), &[Part::of::<ToyModel>("")]).expect("known");
    assert_eq!(only, nameless);
    let none: Result<[ForwardKwargs; 0], _> = nameless.split("Whole", &ToyConfig::tiny(), &[]);
    assert!(matches!(none, Err(CaptureError::NothingDeclared { .. })));
}

#[test]
fn a_part_that_is_left_out_takes_its_requests_along() {
    let kwargs = ForwardKwargs::new()
        .output_hidden_states(true)
        .output("encoder_attentions", true)
        .expect("encoder_attentions", 3)
        .expect("hidden_states", 4)
        .use_cache(true);
    let left = kwargs.without_prefix("encoder_");
    assert_eq!(left, ForwardKwargs::new().output_hidden_states(true).expect("hidden_states", 4).use_cache(true));
    assert_eq!(kwargs.without_prefix("vision_"), kwargs);
}

fn whole(kwargs: &ForwardKwargs) -> Result<WholeOutput, CaptureError> {
    let (encoder, decoder) = (ToyModel::tiny(), ToyModel::tiny());
    let [of_encoder, of_decoder] = kwargs.split("Whole", &ToyConfig::tiny(), &parts())?;
    let mut encoded = encoder.forward(input(), &Context::default(), &of_encoder)?;
    let context = Context { memory: Some(encoded.last_hidden_state.clone()), ..Context::default() };
    let mut decoded = decoder.forward(input(), &context, &of_decoder)?;
    let mut output = WholeOutput::new(decoded.last_hidden_state.clone());
    decoded.pass_on_as("decoder_", &mut output)?;
    encoded.pass_on_as("encoder_", &mut output)?;
    Ok(output)
}

#[test]
fn recorded_values_get_the_part_s_prefix_or_a_field_without() {
    let output = whole(&ForwardKwargs::new().output_hidden_states([0, -1]).output_attentions(true)).expect("runs");
    let tuple = output.to_tuple();
    let recorded = tuple.iter().filter_map(|(name, value)| match value {
        OutputValue::Captured(captured) => Some((name, captured.len(), captured.iter().count())),
        _ => None,
    });
    // in the order of the fields
    let expected = [
        ("decoder_hidden_states", 4, 2),
        ("decoder_attentions", 3, 3),
        ("cross_attentions", 3, 3),
        ("encoder_hidden_states", 4, 2),
        ("encoder_attentions", 3, 3),
    ];
    assert_eq!(recorded.collect::<Vec<_>>(), expected);
    assert_eq!(paths(&output.encoder_attentions), paths(&output.decoder_attentions));
}

#[test]
fn nothing_is_handed_on_twice() {
    let kwargs = ForwardKwargs::new().output_attentions(true);
    let mut part = ToyModel::tiny().forward(input(), &with_memory(), &kwargs).expect("runs");
    let mut output = WholeOutput::new(part.last_hidden_state.clone());
    part.pass_on_as("decoder_", &mut output).expect("has the fields");
    assert!(!part.attentions.is_recorded() && output.decoder_attentions.len() == 3);
    part.pass_on_as("encoder_", &mut output).expect("nothing is left");
    assert!(!output.encoder_attentions.is_recorded());
}

#[test]
fn a_value_without_a_field_is_an_error() {
    let kwargs = ForwardKwargs::new().output_attentions(true);
    let mut part = ToyModel::tiny().forward(input(), &with_memory(), &kwargs).expect("runs");
    let mut output = WholeOutput::new(part.last_hidden_state.clone());
    let error = part.pass_on_as("vision_", &mut output).expect_err("would go missing").to_string();
    assert!(error.contains("`WholeOutput` has no field for the recorded `vision_attentions`"), "{error}");
    assert!(error.contains("`decoder_attentions`"), "{error}");
}

#[test]
fn plans_of_parts_are_one_with_the_fields_names_and_whole_paths() {
    let kwargs = ForwardKwargs::new().output_attentions([1]).output("encoder_hidden_states", 0);
    let [of_encoder, of_decoder] = kwargs.split("Whole", &ToyConfig::tiny(), &parts()).expect("known keys");
    let model = ToyModel::tiny();
    let [encoder, decoder] = [of_encoder, of_decoder].map(|request| model.forward_plan(&request).expect("can be met"));
    let plan = CapturePlan::of_parts::<WholeOutput>(
        "Whole",
        [("decoder_", "decoder", decoder), ("encoder_", "towers.encoder", encoder)],
    );
    let kept = plan.keys().iter().map(|key| {
        let values = key.values().filter(|value| value.is_kept);
        (key.key(), key.len(), values.map(|value| value.path.to_owned()).collect::<Vec<_>>())
    });
    let path = |path: &str| vec![path.to_owned()];
    let expected = [
        ("decoder_attentions", 3, path("decoder.layers.1.self_attn")),
        ("cross_attentions", 3, path("decoder.layers.1.crossattention")),
        ("encoder_hidden_states", 4, path("towers.encoder.layers.0")),
        ("encoder_attentions", 3, path("towers.encoder.layers.1.self_attn")),
    ];
    let mut kept: Vec<_> = kept.collect();
    kept.sort_by_key(|(key, ..)| expected.iter().position(|(name, ..)| name == key));
    assert_eq!(kept, expected);
}
