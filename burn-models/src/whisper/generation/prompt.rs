use super::languages::language_token;
use super::{Languages, Settings, SpeechError};

/// The tasks that Whisper was trained on.
const TASKS: [&str; 2] = ["translate", "transcribe"];

/// Tokens, where some may still be open.
type Open = Vec<Option<i64>>;

/// What the decoder is given for each sound of a batch before it writes: where a text begins, its language, the task, and
/// that no times are wanted.
///
/// `forced` are the tokens for certain places of old generation configs, which count where neither language nor task is
/// chosen; `detect` hears which language each sound is in.
pub(super) fn initial_tokens<E: From<SpeechError>>(
    start: i64,
    settings: &Settings,
    forced: Option<&[(usize, Option<i64>)]>,
    batch: usize,
    detect: impl FnOnce() -> Result<Vec<i64>, E>,
) -> Result<Vec<Vec<i64>>, E> {
    let is_chosen = settings.task.is_some() || settings.language.is_some();
    let mut tokens: Open = vec![Some(start)];
    tokens.extend(forced.filter(|_| !is_chosen).map(places).transpose()?.unwrap_or_default());
    let is_open = tokens.get(1).is_none_or(Option::is_none);

    let languages = match (&settings.language, &settings.lang_to_id) {
        (Some(language), Some(table)) => Some(chosen_languages(language, table, batch)?),
        (None, Some(_)) if is_open => Some(detect()?),
        _ => None,
    };
    let rows = (0..batch).map(|row| {
        let mut tokens = tokens.clone();
        if let Some(language) = languages.as_ref().and_then(|languages| languages.get(row).copied()) {
            match tokens.get_mut(1) {
                Some(token) => *token = Some(language),
                None => tokens.push(Some(language)),
            }
        }
        add_task(&mut tokens, settings)?;
        set_timestamps(&mut tokens, settings);
        Ok(tokens.into_iter().flatten().collect())
    });
    rows.collect::<Result<_, SpeechError>>().map_err(E::from)
}

/// The tokens from place 1 on, if those of a generation config begin there.
fn places(forced: &[(usize, Option<i64>)]) -> Result<Open, SpeechError> {
    if forced.first().is_none_or(|(place, _)| *place != 1) {
        return Ok(Vec::new());
    }
    let gap = forced.iter().zip(1..).find(|((place, _), expected)| place != expected);
    match gap {
        Some(((found, _), missing)) => Err(SpeechError::ForcedPlaces { missing, found: *found }),
        None => Ok(forced.iter().map(|(_, token)| *token).collect()),
    }
}

fn chosen_languages(
    language: &Languages,
    table: &std::collections::BTreeMap<String, i64>,
    batch: usize,
) -> Result<Vec<i64>, SpeechError> {
    match language {
        Languages::One(language) => Ok(vec![language_token(language, table)?; batch]),
        Languages::Each(languages) if languages.len() == batch => {
            languages.iter().map(|language| language_token(language, table)).collect()
        }
        Languages::Each(languages) => Err(SpeechError::LanguageCount { found: languages.len(), batch }),
    }
}

/// The chosen task takes the place of another; with a language alone, it is to transcribe.
fn add_task(tokens: &mut Open, settings: &Settings) -> Result<(), SpeechError> {
    let Some(table) = &settings.task_to_id else { return Ok(()) };
    let id = |task: &str| table.get(task).copied();
    let is_task = |token: &Option<i64>| token.is_some_and(|token| table.values().any(|id| *id == token));
    match &settings.task {
        Some(task) => {
            let token = id(task).filter(|_| TASKS.contains(&task.as_str())).ok_or_else(|| {
                let known = TASKS.map(str::to_owned).to_vec();
                SpeechError::UnknownTask { found: task.clone(), known }
            })?;
            tokens.push(Some(token));
        }
        None if settings.language.is_some() && !tokens.iter().any(is_task) => {
            let known = || SpeechError::NoTable { name: "language", table: "task_to_id" };
            tokens.push(Some(id("transcribe").ok_or_else(known)?));
        }
        None => {}
    }
    Ok(())
}

fn set_timestamps(tokens: &mut Open, settings: &Settings) {
    let Some(none) = settings.no_timestamps_token_id else { return };
    let says_none = tokens.last() == Some(&Some(none));
    match settings.wants_timestamps() {
        false if !says_none => tokens.push(Some(none)),
        true if says_none => {
            tokens.pop();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn multilingual() -> Settings {
        let table = |pairs: &[(&str, i64)]| pairs.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect();
        Settings {
            is_multilingual: Some(true),
            lang_to_id: Some(table(&[("<|en|>", 11), ("<|de|>", 12)])),
            task_to_id: Some(table(&[("transcribe", 21), ("translate", 22)])),
            no_timestamps_token_id: Some(30),
            ..Settings::default()
        }
    }

    fn tokens(settings: &Settings, forced: Option<&[(usize, Option<i64>)]>) -> Result<Vec<Vec<i64>>, SpeechError> {
        initial_tokens(1, settings, forced, 2, || Ok(vec![11, 12]))
    }

    #[test]
    fn what_is_heard_and_what_is_chosen() {
        let detected = tokens(&multilingual(), None);
        assert_eq!(detected, Ok(vec![vec![1, 11, 30], vec![1, 12, 30]]));
        let german = Settings { language: Some(Languages::One("german".into())), ..multilingual() };
        assert_eq!(tokens(&german, None), Ok(vec![vec![1, 12, 21, 30]; 2]));
        let each = Settings { language: Some(Languages::Each(vec!["en".into(), "de".into()])), ..multilingual() };
        assert_eq!(tokens(&each, None), Ok(vec![vec![1, 11, 21, 30], vec![1, 12, 21, 30]]));
        let translated = Settings { task: Some("translate".into()), return_timestamps: Some(true), ..german };
        assert_eq!(tokens(&translated, None), Ok(vec![vec![1, 12, 22]; 2]));
    }

    #[test]
    fn old_configs_force_places() {
        let forced = [(1, None), (2, Some(21)), (3, Some(30))];
        assert_eq!(tokens(&multilingual(), Some(&forced)), Ok(vec![vec![1, 11, 21, 30], vec![1, 12, 21, 30]]));
        let german = Settings { language: Some(Languages::One("de".into())), ..multilingual() };
        assert_eq!(tokens(&german, Some(&forced)), Ok(vec![vec![1, 12, 21, 30]; 2]));
        // English only: nothing to hear
        let plain = Settings { no_timestamps_token_id: Some(30), ..Settings::default() };
        assert_eq!(tokens(&plain, Some(&[(1, Some(30))])), Ok(vec![vec![1, 30]; 2]));
        assert_eq!(tokens(&Settings::default(), Some(&[(1, None)])), Ok(vec![vec![1]; 2]));
        assert_eq!(tokens(&Settings::default(), Some(&[(2, Some(9))])), Ok(vec![vec![1]; 2]));
        let gap = tokens(&plain, Some(&[(1, Some(5)), (3, Some(6))]));
        assert_eq!(gap, Err(SpeechError::ForcedPlaces { missing: 2, found: 3 }));
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let each = Settings { language: Some(Languages::Each(vec!["en".into()])), ..multilingual() };
        assert_eq!(tokens(&each, None), Err(SpeechError::LanguageCount { found: 1, batch: 2 }));
        let task = Settings { task: Some("transcribed".into()), ..multilingual() };
        let message = tokens(&task, None).expect_err("unknown").to_string();
        let expected =
            "unknown task `transcribed`, did you mean `transcribe`? (expected one of: translate, transcribe)";
        assert_eq!(message, expected);
        let lacks = Settings {
            task_to_id: Some(BTreeMap::new()),
            language: Some(Languages::One("en".into())),
            ..multilingual()
        };
        assert!(matches!(tokens(&lacks, None), Err(SpeechError::NoTable { .. })));
    }
}
