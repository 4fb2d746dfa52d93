use crate::layers::Activation;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{Error as _, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// T5's `feed_forward_proj`: an activation, as in `relu`, or one with a gate, as in `gated-gelu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct T5FeedForwardProj {
    /// Whether there is a gate.
    pub is_gated: bool,
    /// The activation as it is named.
    pub named: Activation,
}

impl T5FeedForwardProj {
    /// The activation that is computed: with a gate, `gelu` stands for its approximation, with which those checkpoints were
    /// trained.
    pub fn activation(self) -> Activation {
        match self {
            Self { is_gated: true, named: Activation::Gelu } => Activation::GeluNew,
            Self { named, .. } => named,
        }
    }
}

impl Default for T5FeedForwardProj {
    fn default() -> Self {
        Self { is_gated: false, named: Activation::Relu }
    }
}

impl<'de> Deserialize<'de> for T5FeedForwardProj {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (is_gated, name) = match text.split_once('-') {
            Some(("gated", name)) => (true, name),
            _ => (false, text.as_str()),
        };
        let name: StrDeserializer<'_, Error> = name.into_deserializer();
        let named = Activation::deserialize(name).map_err(|error| {
            D::Error::custom(format_args!("found `{text}`, expected an activation or `gated-` and one: {error}"))
        })?;
        Ok(Self { is_gated, named })
    }
}

impl Serialize for T5FeedForwardProj {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let name = serde_json::to_value(self.named).map_err(S::Error::custom)?;
        let name = name.as_str().unwrap_or_default();
        let gate = if self.is_gated { "gated-" } else { "" };
        serializer.collect_str(&format_args!("{gate}{name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<T5FeedForwardProj, String> {
        serde_json::from_value(json!(text)).map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_read_and_written() {
        for (text, is_gated, activation) in [
            ("relu", false, Activation::Relu),
            ("gelu", false, Activation::Gelu),
            ("gated-gelu", true, Activation::GeluNew),
            ("gated-silu", true, Activation::Silu),
            ("gated-relu", true, Activation::Relu),
            ("gelu_new", false, Activation::GeluNew),
        ] {
            let read = read(text).expect("known");
            assert_eq!((read.is_gated, read.activation()), (is_gated, activation), "{text}");
            assert_eq!(serde_json::to_value(read).expect("written"), json!(text));
        }
    }

    #[test]
    fn other_names_are_refused() {
        for text in ["", "gated-", "gated-gelu-x", "plain-relu", "reul"] {
            let error = read(text).expect_err("no activation");
            assert!(error.starts_with(&format!("found `{text}`, expected an activation")), "{error}");
        }
    }
}
