//! Requests to a model that is made of several base models.

use super::defaults::ConfigDefaults;
use super::error::CaptureError;
use super::kwargs::ForwardKwargs;
use super::recorder::CanRecordOutputs;
use super::selection::Flag;
use crate::names::near;

/// A base model inside a composite one, such as an encoder beside a decoder. It records by its own declaration.
///
/// The composite's output names what a part recorded with the part's prefix: `encoder_` makes `encoder_attentions` of
/// the encoder's `attentions`, and `text_model_output.` says that they lie in the nested output of that name.
#[derive(Clone, Debug)]
pub struct Part {
    prefix: &'static str,
    /// What it declares, in order.
    keys: Vec<&'static str>,
    /// What it declares, but never has.
    absent: Vec<&'static str>,
}

impl Part {
    /// The part that an `M` is, under `prefix`.
    pub fn of<M: CanRecordOutputs>(prefix: &'static str) -> Self {
        let mut keys: Vec<&'static str> = Vec::new();
        for recorder in M::RECORDERS {
            if !keys.contains(&recorder.key) {
                keys.push(recorder.key);
            }
        }
        Self { prefix, keys, absent: Vec::new() }
    }

    /// Leaves out a key that this part declares but, where it is, never has: it cannot be asked of this part, nor does it
    /// follow another there.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        let (absent, keys) = self.keys.into_iter().partition(|declared| *declared == key);
        self.keys = keys;
        self.absent.extend::<Vec<_>>(absent);
        self
    }

    fn declares(&self, key: &str) -> bool {
        self.keys.contains(&key)
    }

    /// The part's own name for a key that is asked of the composite.
    fn own<'k>(&self, key: &'k str) -> Option<&'k str> {
        key.strip_prefix(self.prefix).filter(|own| !self.prefix.is_empty() && self.declares(own))
    }
}

impl ForwardKwargs {
    /// The request to a composite model, as each of its parts gets it.
    ///
    /// A key reaches every part that declares it, so that a flag is given once: `attentions` asks all of them. With a
    /// part's prefix (`encoder_attentions`) it reaches that part alone, and there it beats the key without. What the
    /// caller leaves open is as the composite's config says, and if that says nothing as the part's own does.
    ///
    /// # Errors
    ///
    /// [`CaptureError::UnknownKey`] for a key that no part declares.
    pub fn split<const N: usize>(
        &self,
        model: &'static str,
        config: &impl ConfigDefaults,
        parts: &[Part; N],
    ) -> Result<[Self; N], CaptureError> {
        let expected = self.expected().map(|(key, _)| key);
        for key in self.keys().chain(expected) {
            if !parts.iter().any(|part| part.declares(key) || part.own(key).is_some()) {
                return Err(unknown(model, key, parts));
            }
        }
        Ok(std::array::from_fn(|at| self.of_part(config, &parts[at])))
    }

    /// The same without what is asked for under a name that begins with `prefix`: for a call that leaves that part out.
    #[must_use]
    pub fn without_prefix(&self, prefix: &str) -> Self {
        let kept = self.keys().filter(|key| !key.starts_with(prefix));
        let request = kept.fold(self.without_outputs(), |request, key| request.output(key, self.flag(key).clone()));
        let expected = self.expected().filter(|(key, _)| !key.starts_with(prefix));
        expected.fold(request, |request, (key, count)| request.expect(key, count))
    }

    fn of_part(&self, config: &impl ConfigDefaults, part: &Part) -> Self {
        // the same but for what is recorded
        let mut request = self.without_outputs();
        for key in &part.keys {
            let alone = || self.flag(&format!("{}{key}", part.prefix)).clone();
            let of_all = || self.flag(key).clone();
            let by_config = || config.output_flag(key).unwrap_or_default();
            let words: [&dyn Fn() -> Flag; 3] = [&alone, &of_all, &by_config];
            let flag = words.iter().map(|word| word()).find(|flag| *flag != Flag::Unset);
            request = request.output(*key, flag.unwrap_or_default());
        }
        request = part.absent.iter().fold(request, |request, key| request.output(*key, false));
        let of_all = self.expected().filter(|(key, _)| part.declares(key));
        let of_this = self.expected().filter_map(|(key, count)| Some((part.own(key)?, count)));
        of_all.chain(of_this).fold(request, |request, (key, count)| request.expect(key, count))
    }
}

fn unknown(model: &'static str, key: &str, parts: &[Part]) -> CaptureError {
    let mut known: Vec<&'static str> = Vec::new();
    for key in parts.iter().flat_map(|part| &part.keys) {
        if !known.contains(key) {
            known.push(key);
        }
    }
    if known.is_empty() {
        return CaptureError::NothingDeclared { model, key: key.to_owned() };
    }
    // people write the flag's name for the key's
    let bare = key.strip_prefix("output_").unwrap_or(key);
    let bare = parts.iter().find_map(|part| bare.strip_prefix(part.prefix).filter(|own| *own != bare)).unwrap_or(bare);
    CaptureError::UnknownKey { model, key: key.to_owned(), near: near(bare, known.iter().copied()), known }
}
