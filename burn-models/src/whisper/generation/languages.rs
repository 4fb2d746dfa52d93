use super::SpeechError;
use std::collections::BTreeMap;

/// The languages that Whisper was trained on, by name.
#[rustfmt::skip]
const LANGUAGES: [(&str, &str); 100] = [
    ("afrikaans", "af"), ("albanian", "sq"), ("amharic", "am"), ("arabic", "ar"), ("armenian", "hy"),
    ("assamese", "as"), ("azerbaijani", "az"), ("bashkir", "ba"), ("basque", "eu"), ("belarusian", "be"),
    ("bengali", "bn"), ("bosnian", "bs"), ("breton", "br"), ("bulgarian", "bg"), ("cantonese", "yue"),
    ("catalan", "ca"), ("chinese", "zh"), ("croatian", "hr"), ("czech", "cs"), ("danish", "da"), ("dutch", "nl"),
    ("english", "en"), ("estonian", "et"), ("faroese", "fo"), ("finnish", "fi"), ("french", "fr"), ("galician", "gl"),
    ("georgian", "ka"), ("german", "de"), ("greek", "el"), ("gujarati", "gu"), ("haitian creole", "ht"),
    ("hausa", "ha"), ("hawaiian", "haw"), ("hebrew", "he"), ("hindi", "hi"), ("hungarian", "hu"), ("icelandic", "is"),
    ("indonesian", "id"), ("italian", "it"), ("japanese", "ja"), ("javanese", "jw"), ("kannada", "kn"),
    ("kazakh", "kk"), ("khmer", "km"), ("korean", "ko"), ("lao", "lo"), ("latin", "la"), ("latvian", "lv"),
    ("lingala", "ln"), ("lithuanian", "lt"), ("luxembourgish", "lb"), ("macedonian", "mk"), ("malagasy", "mg"),
    ("malay", "ms"), ("malayalam", "ml"), ("maltese", "mt"), ("maori", "mi"), ("marathi", "mr"), ("mongolian", "mn"),
    ("myanmar", "my"), ("nepali", "ne"), ("norwegian", "no"), ("nynorsk", "nn"), ("occitan", "oc"), ("pashto", "ps"),
    ("persian", "fa"), ("polish", "pl"), ("portuguese", "pt"), ("punjabi", "pa"), ("romanian", "ro"),
    ("russian", "ru"), ("sanskrit", "sa"), ("serbian", "sr"), ("shona", "sn"), ("sindhi", "sd"), ("sinhala", "si"),
    ("slovak", "sk"), ("slovenian", "sl"), ("somali", "so"), ("spanish", "es"), ("sundanese", "su"),
    ("swahili", "sw"), ("swedish", "sv"), ("tagalog", "tl"), ("tajik", "tg"), ("tamil", "ta"), ("tatar", "tt"),
    ("telugu", "te"), ("thai", "th"), ("tibetan", "bo"), ("turkish", "tr"), ("turkmen", "tk"), ("ukrainian", "uk"),
    ("urdu", "ur"), ("uzbek", "uz"), ("vietnamese", "vi"), ("welsh", "cy"), ("yiddish", "yi"), ("yoruba", "yo"),
];

/// Other names of some of them.
#[rustfmt::skip]
const OTHER_NAMES: [(&str, &str); 12] = [
    ("burmese", "my"), ("castilian", "es"), ("flemish", "nl"), ("haitian", "ht"), ("letzeburgesch", "lb"),
    ("mandarin", "zh"), ("moldavian", "ro"), ("moldovan", "ro"), ("panjabi", "pa"), ("pushto", "ps"),
    ("sinhalese", "si"), ("valencian", "ca"),
];

/// The token of a language that is called by its name (`german`), its code (`de`) or its token (`<|de|>`), in a model whose
/// language tokens are `tokens`.
pub(super) fn language_token(language: &str, tokens: &BTreeMap<String, i64>) -> Result<i64, SpeechError> {
    let found = language.to_lowercase();
    let by_name = || LANGUAGES.iter().chain(&OTHER_NAMES).find(|(name, _)| *name == found).map(|(_, code)| *code);
    let token = tokens.get(&found).or_else(|| {
        let code = by_name().unwrap_or(&found);
        tokens.get(&format!("<|{code}|>"))
    });
    token.copied().ok_or_else(|| SpeechError::UnknownLanguage { found: language.to_owned(), known: known(tokens) })
}

/// The names of the languages that a model has tokens for, or the tokens of those without a name.
fn known(tokens: &BTreeMap<String, i64>) -> Vec<String> {
    let name = |token: &String| {
        let code = token.trim_start_matches("<|").trim_end_matches("|>");
        LANGUAGES.iter().find(|(_, known)| *known == code).map_or_else(|| token.clone(), |(name, _)| (*name).to_owned())
    };
    tokens.keys().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_names_codes_and_tokens() {
        let tokens = BTreeMap::from([("<|de|>".to_owned(), 7), ("<|es|>".to_owned(), 8)]);
        for (language, token) in [("german", 7), ("German", 7), ("de", 7), ("<|de|>", 7), ("castilian", 8)] {
            assert_eq!(language_token(language, &tokens), Ok(token), "{language}");
        }
        let message = |language| language_token(language, &tokens).expect_err("unknown").to_string();
        let expected = "unknown language `spannish`, did you mean `spanish`? (expected one of: german, spanish)";
        assert_eq!(message("spannish"), expected);
        // known, but not to this model
        assert!(message("fr").starts_with("unknown language `fr`"), "{}", message("fr"));
    }
}
