//! Names in messages.

/// `names` in quotes, with commas.
pub(crate) fn list(names: &[&str]) -> String {
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    }
}

/// Names in `known` that look like `name`, the nearest first.
pub(crate) fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let lower = name.to_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .map(|other| (strsim::jaro_winkler(&lower, &other.to_lowercase()), other))
        .filter(|(score, _)| *score > 0.84)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// `; did you mean …?`, if there is anything to mean.
pub(crate) fn did_you_mean(near: &[&str]) -> String {
    let near: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

/// Lets an error's `Debug` say what its `Display` says: it is what a `main` that returns the error prints.
#[doc(hidden)]
#[macro_export]
macro_rules! __debug_as_display {
    ($error:ident) => {
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    };
}

/// A type's name without the modules that it is in (`burn::nn::Linear` is `Linear`).
pub(crate) fn short_name(type_name: &'static str) -> &'static str {
    // the arguments of a generic type have modules of their own
    let end = type_name.find('<').unwrap_or(type_name.len());
    let start = type_name.get(..end).and_then(|name| name.rfind("::")).map_or(0, |at| at + 2);
    type_name.get(start..).unwrap_or(type_name)
}

#[cfg(test)]
mod tests {
    use super::short_name;

    #[test]
    fn short_names_keep_arguments() {
        assert_eq!(short_name("a::b::C"), "C");
        assert_eq!(short_name("C"), "C");
        assert_eq!(short_name("a::C<b::D>"), "C<b::D>");
    }
}
