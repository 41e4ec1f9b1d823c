//! Texts with NUL characters, which neither database holds everywhere: a NUL is kept as the
//! two characters `␀0`, and a `␀` that was there as `␀␀`. Nothing is lost, and whoever reads
//! the tables sees where a NUL was.

use std::borrow::Cow;

/// U+2400, the picture of a NUL.
const MARK: char = '␀';

/// How the mark itself is kept.
const TWICE: &str = "␀␀";

/// How a NUL is kept.
const NUL: &str = "␀0";

/// The text without NUL characters.
pub(crate) fn hide(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', MARK]) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(MARK, TWICE).replace('\0', NUL))
}

/// The text as it was before [`hide`].
pub(crate) fn show(text: String) -> String {
    shown(text, "\0")
}

/// JSON text without `\u0000` in any of its strings.
pub(crate) fn hide_json(json: String) -> String {
    if !json.contains(r"\u0000") && !json.contains(MARK) {
        return json;
    }
    // Between backslashes that are escaped themselves, one that is left escapes what follows it.
    between(&json.replace(MARK, TWICE), r"\\", r"\\", |part| part.replace(r"\u0000", NUL))
}

/// The JSON text as it was before [`hide_json`].
pub(crate) fn show_json(json: String) -> String {
    shown(json, r"\u0000")
}

fn shown(text: String, nul: &str) -> String {
    if !text.contains(MARK) {
        return text;
    }
    between(&text, TWICE, "␀", |part| part.replace(NUL, nul))
}

/// The text with what is between these pairs changed, and the pairs replaced.
fn between(text: &str, pair: &str, by: &str, change: impl Fn(&str) -> String) -> String {
    text.split(pair).map(change).collect::<Vec<_>>().join(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 10] =
        ["", "plain", "\0", "a\0b", "␀", "␀0", "\0␀0\0", "\\u0000", "\\\\u0000", "é ␀␀ 😀 \" \\ \0"];

    #[test]
    fn every_text_comes_back_and_none_has_a_nul_meanwhile() {
        for text in TEXTS {
            let hidden = hide(text).into_owned();
            assert!(!hidden.contains('\0'), "{text:?}");
            assert_eq!(show(hidden), text);
        }
    }

    #[test]
    fn every_json_comes_back_and_none_has_an_escaped_nul_meanwhile() {
        for text in TEXTS {
            let value = serde_json::json!({ text: [text, {"more": text}] });
            let json = value.to_string();
            let hidden = hide_json(json.clone());
            let meanwhile: serde_json::Value = serde_json::from_str(&hidden).unwrap();
            assert!(!format!("{meanwhile:?}").contains("\\0"), "{text:?}: {meanwhile:?}");
            assert_eq!(show_json(hidden), json);
        }
    }
}
