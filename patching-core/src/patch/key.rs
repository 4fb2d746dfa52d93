use super::error::PatchError;
use regex::Regex;
use std::fmt;

/// What a patch is registered for: a class's name, or an expression for names.
#[derive(Clone, Debug)]
pub(crate) enum Key {
    /// This name.
    Exact(String),
    /// Names in which it matches somewhere.
    Pattern(Regex),
}

impl Key {
    /// A plain identifier is a name, anything else an expression.
    pub(crate) fn new(key: String) -> Result<Self, PatchError> {
        if key.trim().is_empty() {
            return Err(PatchError::EmptyKey { key });
        }
        if is_identifier(&key) {
            return Ok(Self::Exact(key));
        }
        match Regex::new(&key) {
            Ok(pattern) => Ok(Self::Pattern(pattern)),
            Err(source) => Err(PatchError::InvalidExpression { key, source: Box::new(source) }),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Exact(name) => name,
            Self::Pattern(pattern) => pattern.as_str(),
        }
    }

    pub(crate) fn is_exact(&self) -> bool {
        matches!(self, Self::Exact(_))
    }

    pub(crate) fn matches(&self, class: &str) -> bool {
        match self {
            Self::Exact(name) => name == class,
            Self::Pattern(pattern) => pattern.is_match(class),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn is_identifier(key: &str) -> bool {
    key.chars().all(|c| c.is_alphanumeric() || c == '_') && !key.starts_with(|c: char| c.is_numeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(key: &str, class: &str) -> bool {
        Key::new(key.to_owned()).expect("a valid key").matches(class)
    }

    #[test]
    fn identifiers_are_names_and_the_rest_are_expressions() {
        assert!(matches("BertLayer", "BertLayer"));
        assert!(!matches("BertLayer", "MegatronBertLayer"));
        assert!(!matches("BertLayer", "BertLayers"));
        assert!(matches("BertLayer$", "MegatronBertLayer"));
        assert!(!matches("^BertLayer$", "MegatronBertLayer"));
        assert!(matches(".*Attention", "LlamaAttentionFused"));
        assert!(matches(r"^Llama\d+Attention$", "Llama2Attention"));
        assert!(matches("Überschicht", "Überschicht"));
    }

    #[test]
    fn bad_keys_are_refused() {
        for key in ["", " ", "\t\n"] {
            assert!(matches!(Key::new(key.to_owned()), Err(PatchError::EmptyKey { .. })), "{key:?}");
        }
        for key in ["[", "(", "a{2", "*Attention", r"\"] {
            let error = Key::new(key.to_owned()).expect_err(key).to_string();
            assert!(error.contains(&format!("`{key}`")), "{error}");
        }
    }
}
