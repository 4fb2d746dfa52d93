//! What `#[capture_outputs]` wraps around a base model's `forward`.

use super::captured::{Origin, Raw};
use super::collector::Collector;
use super::defaults::ConfigDefaults;
use super::error::CaptureError;
use super::kwargs::ForwardKwargs;
use super::output::{Captures, ModelOutput, Returned};
use super::plan::{Asked, CapturePlan};
use super::recorder::CanRecordOutputs;
use super::scope::Open;
use super::selection::Flag;
use crate::names::near;
use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What `forward` under `#[capture_outputs]` returns.
///
/// Implemented for [`Result`], and for outputs that should be in one: that mistake is reported once, by [`IsResult`].
pub trait Fallible: Sized {
    /// The output struct.
    type Output;
    /// The error.
    type Error;
    #[doc(hidden)]
    fn into_result(self) -> Result<Self::Output, Self::Error>;
    #[doc(hidden)]
    fn from_result(result: Result<Self::Output, Self::Error>) -> Self;
}

impl<O, E> Fallible for Result<O, E> {
    type Output = O;
    type Error = E;
    fn into_result(self) -> Self {
        self
    }
    fn from_result(result: Self) -> Self {
        result
    }
}

impl<O: ModelOutput> Fallible for O {
    type Output = O;
    type Error = CaptureError;
    fn into_result(self) -> Result<O, CaptureError> {
        Ok(self)
    }
    fn from_result(_: Result<O, CaptureError>) -> Self {
        unreachable!("a `forward` without a `Result` does not compile")
    }
}

/// A request may fail, so `forward` may.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`#[capture_outputs]` needs a `forward` that returns a `Result`, not `{Self}`",
    label = "must be `Result<_, E>` with `E: From<CaptureError>`",
    note = "a request that cannot be met is an error: write `-> Result<{Self}, CaptureError>`"
)]
pub trait IsResult {}
impl<O, E> IsResult for Result<O, E> {}

/// What the macro's methods do. One bound for all of them, on [`Runner`], so that a mistake in the types of a `forward`
/// is one error.
#[doc(hidden)]
pub trait Runs<O, E> {
    /// Runs the body of a base model's `forward` and puts what was asked for into its output.
    fn run<M: CanRecordOutputs>(
        &self,
        model: &M,
        config: &impl ConfigDefaults,
        kwargs: &ForwardKwargs,
        options: &Options<'_>,
        body: impl FnOnce() -> Result<O, E>,
    ) -> Result<O, E>;

    /// Only the recorded values; the run stops as soon as they are there, where that can be known.
    fn run_captures<M: CanRecordOutputs>(
        &self,
        model: &M,
        config: &impl ConfigDefaults,
        kwargs: &ForwardKwargs,
        options: &Options<'_>,
        body: impl FnOnce() -> Result<O, E>,
    ) -> Result<Captures<O>, E>;

    /// What `forward` gives, as the caller or the config wants it.
    fn returned(
        &self,
        config: &impl ConfigDefaults,
        kwargs: &ForwardKwargs,
        forward: impl FnOnce() -> Result<O, E>,
    ) -> Result<Returned<O>, E>;
}

/// See [`Runs`].
#[doc(hidden)]
pub struct Runner(());

impl Runner {
    /// For a `forward` that returns `R`.
    pub fn of<R: IsResult>() -> Self {
        Self(())
    }
}

impl<O: ModelOutput, E: From<CaptureError>> Runs<O, E> for Runner {
    #[inline]
    fn run<M: CanRecordOutputs>(
        &self,
        model: &M,
        config: &impl ConfigDefaults,
        kwargs: &ForwardKwargs,
        options: &Options<'_>,
        body: impl FnOnce() -> Result<O, E>,
    ) -> Result<O, E> {
        let asked = resolve::<M>(config, kwargs, options)?;
        if asked.is_empty() {
            let _blind = Open::blind();
            return body();
        }
        record(model, &asked, kwargs, tie(config, options), body)
    }

    fn run_captures<M: CanRecordOutputs>(
        &self,
        model: &M,
        config: &impl ConfigDefaults,
        kwargs: &ForwardKwargs,
        options: &Options<'_>,
        body: impl FnOnce() -> Result<O, E>,
    ) -> Result<Captures<O>, E> {
        let asked = resolve::<M>(config, kwargs, options)?;
        let tie = tie(config, options);
        let plan = CapturePlan::new(model, &asked, kwargs.expected())?;
        let collector = Arc::new(Collector::new(plan, kwargs.keep(), true, tie));
        let result = {
            let _open = Open::new(Some(collector.clone()));
            body()
        };
        let values = match result {
            Ok(mut output) => {
                fill(&mut output, &collector, tie, kwargs)?;
                O::KEYS.iter().filter_map(|key| Some((*key, output.__take(key)?))).collect::<BTreeMap<_, Raw>>()
            }
            Err(_) if collector.has_left() => collector.finish()?,
            Err(error) => return Err(error),
        };
        Ok(Captures::new(values))
    }

    fn returned(
        &self,
        config: &impl ConfigDefaults,
        kwargs: &ForwardKwargs,
        forward: impl FnOnce() -> Result<O, E>,
    ) -> Result<Returned<O>, E> {
        // read before the call: `forward` may fill `kwargs` for itself
        let return_dict = kwargs.get_return_dict().or_else(|| config.return_dict());
        forward().map(|output| output.returned(return_dict))
    }
}

/// What the macro knows of a `forward`.
#[doc(hidden)]
pub struct Options<'a> {
    /// `tie_last_hidden_states` of the macro.
    pub tie: bool,
    /// Flags that are arguments of their own.
    pub arguments: &'a [(&'static str, Flag)],
}

/// Keys that follow `attentions` unless something is said about them.
const FOLLOWERS: [&str; 2] = ["cross_attentions", "mask_decoder_attentions"];

/// What is asked for: the caller's word, else the config's, else nothing. Allocates nothing where that is nothing.
fn resolve<M: CanRecordOutputs>(
    config: &impl ConfigDefaults,
    kwargs: &ForwardKwargs,
    options: &Options<'_>,
) -> Result<Vec<Asked>, CaptureError> {
    let recorders = M::RECORDERS;
    let asked_by_argument = options.arguments.iter().filter(|(_, flag)| flag.is_asked()).map(|(key, _)| *key);
    for key in kwargs.keys().chain(kwargs.expected().map(|(key, _)| key)).chain(asked_by_argument) {
        if !recorders.iter().any(|recorder| recorder.key == key) {
            return Err(unknown::<M>(key, recorders.iter().map(|recorder| recorder.key)));
        }
    }
    let said = |key: &str| {
        let argument =
            || options.arguments.iter().find(|(name, _)| *name == key).map_or(Flag::Unset, |(_, flag)| flag.clone());
        let candidates: [&dyn Fn() -> Flag; 3] =
            [&|| kwargs.flag(key).clone(), &argument, &|| config.output_flag(key).unwrap_or_default()];
        candidates.iter().map(|candidate| candidate()).find(|flag| *flag != Flag::Unset)
    };
    let mut asked = Vec::new();
    for (n, recorder) in recorders.iter().enumerate() {
        let key = recorder.key;
        if recorders.iter().take(n).any(|earlier| earlier.key == key) {
            continue;
        }
        let (flag, follows) = match said(key) {
            Some(flag) => (flag, false),
            None if FOLLOWERS.contains(&key) => (said("attentions").unwrap_or_default(), true),
            None => (Flag::Off, false),
        };
        if flag.is_asked() {
            asked.push(Asked { key, flag, follows });
        }
    }
    let is_asked = |key: &str| asked.iter().any(|asked| asked.key == key);
    if let Some((key, expected)) = kwargs.expected().find(|(key, count)| *count > 0 && !is_asked(key)) {
        return Err(CaptureError::Count { key: key.to_owned(), expected, found: 0 });
    }
    Ok(asked)
}

fn unknown<M: CanRecordOutputs>(key: &str, declared: impl Iterator<Item = &'static str>) -> CaptureError {
    let mut known: Vec<&'static str> = Vec::new();
    for key in declared {
        if !known.contains(&key) {
            known.push(key);
        }
    }
    if known.is_empty() {
        return CaptureError::NothingDeclared { model: M::MODEL, key: key.to_owned() };
    }
    // people write the flag's name for the key's
    let bare = key.strip_prefix("output_").unwrap_or(key);
    CaptureError::UnknownKey { model: M::MODEL, key: key.to_owned(), near: near(bare, known.iter().copied()), known }
}

/// What a request would record, without running anything.
#[doc(hidden)]
pub fn plan<M: CanRecordOutputs>(
    model: &M,
    config: &impl ConfigDefaults,
    kwargs: &ForwardKwargs,
) -> Result<CapturePlan, CaptureError> {
    let asked = resolve::<M>(config, kwargs, &Options { tie: false, arguments: &[] })?;
    CapturePlan::new(model, &asked, kwargs.expected())
}

fn tie(config: &impl ConfigDefaults, options: &Options<'_>) -> bool {
    config.tie_last_hidden_states().unwrap_or(options.tie)
}

fn record<M: CanRecordOutputs, O: ModelOutput, E: From<CaptureError>>(
    model: &M,
    asked: &[Asked],
    kwargs: &ForwardKwargs,
    tie: bool,
    body: impl FnOnce() -> Result<O, E>,
) -> Result<O, E> {
    let plan = CapturePlan::new(model, asked, kwargs.expected())?;
    let collector = Arc::new(Collector::new(plan, kwargs.keep(), false, tie));
    let mut output = {
        let _open = Open::new(Some(collector.clone()));
        body()?
    };
    fill(&mut output, &collector, tie, kwargs)?;
    Ok(output)
}

fn fill<O: ModelOutput>(
    output: &mut O,
    collector: &Collector,
    tie: bool,
    kwargs: &ForwardKwargs,
) -> Result<(), CaptureError> {
    let mut values = collector.finish()?;
    for (key, expected) in kwargs.expected() {
        let found = values.get(key).map_or(0, |raw| raw.len);
        if found != expected {
            return Err(CaptureError::Count { key: key.to_owned(), expected, found });
        }
    }
    let keys = collector.plan.keys();
    for (order, planned) in keys.iter().enumerate() {
        if let Some(mut raw) = values.remove(planned.key) {
            raw.origin = Some(Origin { output: TypeId::of::<O>(), order });
            output.__fill(planned.key, raw)?;
        }
    }
    // hidden states that `forward` took from a model inside are that model's
    if tie && keys.iter().any(|planned| planned.key == "hidden_states") {
        output.__tie(kwargs.keep());
    }
    Ok(())
}
