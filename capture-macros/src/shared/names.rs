/// `; did you mean …?` if one of `known` looks like `name`, else the choices.
pub(crate) fn did_you_mean(name: &str, known: &[&str]) -> String {
    let nearest =
        known.iter().map(|other| (strsim::jaro_winkler(name, other), other)).filter(|(score, _)| *score > 0.8);
    match nearest.max_by(|(one, _), (other, _)| one.total_cmp(other)) {
        Some((_, near)) => format!("did you mean `{near}`?"),
        None => format!("there are {}", choices(known)),
    }
}

/// The names as a list in words.
pub(crate) fn choices(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => "none".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}
