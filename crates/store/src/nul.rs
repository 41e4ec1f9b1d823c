//! Texts with NUL characters, which neither database holds everywhere: a NUL is kept as the
//! two characters `␀0`, and a `␀` that was there as `␀␀`. Nothing is lost, and whoever reads
//! the tables sees where a NUL was.

use std::borrow::Cow;

/// U+2400, the picture of a NUL.
const MARK: char = '␀';

/// The text without NUL characters.
pub(crate) fn hide(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', MARK]) {
        return Cow::Borrowed(text);
    }
    let mut hidden = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            '\0' => hidden.extend([MARK, '0']),
            MARK => hidden.extend([MARK, MARK]),
            other => hidden.push(other),
        }
    }
    Cow::Owned(hidden)
}

/// The text as it was before [`hide`].
pub(crate) fn show(text: String) -> String {
    if !text.contains(MARK) {
        return text;
    }
    replace_marks(&text, "\0")
}

/// JSON text without `\u0000` in any of its strings.
pub(crate) fn hide_json(json: String) -> String {
    if !json.contains("\\u0000") && !json.contains(MARK) {
        return json;
    }
    let mut hidden = String::with_capacity(json.len() + 8);
    let mut rest = json.as_str();
    // A backslash stands only in strings, and always with what it escapes.
    while let Some(at) = rest.find(['\\', MARK]) {
        hidden.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = if let Some(after) = rest.strip_prefix("\\u0000") {
            hidden.extend([MARK, '0']);
            rest.len() - after.len()
        } else if rest.starts_with(MARK) {
            hidden.extend([MARK, MARK]);
            MARK.len_utf8()
        } else {
            let escape: String = rest.chars().take(2).collect();
            hidden.push_str(&escape);
            escape.len()
        };
        rest = &rest[taken..];
    }
    hidden.push_str(rest);
    hidden
}

/// The JSON text as it was before [`hide_json`].
pub(crate) fn show_json(json: String) -> String {
    if !json.contains(MARK) {
        return json;
    }
    replace_marks(&json, "\\u0000")
}

fn replace_marks(text: &str, nul: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            MARK => match letters.next() {
                Some('0') => shown.push_str(nul),
                Some(other) => shown.push(other),
                None => shown.push(MARK),
            },
            other => shown.push(other),
        }
    }
    shown
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
