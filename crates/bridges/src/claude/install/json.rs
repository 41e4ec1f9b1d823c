//! Where things stand in the text of a JSON file, so that it can be edited as text: what nobody asked us to change keeps
//! every byte. Comments and commas at the end of a list are read too, for a person may have written them, though Claude
//! Code itself reads neither (docs/bridges.md). It knows nothing of hooks.

use std::ops::Range;

use serde::de::IgnoredAny;

/// A text that holds one JSON object, and where that begins.
#[derive(Debug, Clone)]
pub(super) struct Text {
    /// As it is.
    whole: String,
    /// As it is, with blanks in the place of comments: what stands where is the same in both.
    bare: Vec<u8>,
    /// Of the object's brace.
    root: usize,
}

/// Why a text is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoObject {
    #[error("line {0}, column {1}: this is no JSON")]
    Json(usize, usize),
    #[error("it holds something else than a JSON object")]
    Other,
}

/// An object or an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Container {
    /// Of the brace or bracket it begins with.
    pub(super) open: usize,
    /// Of the one that it ends with.
    pub(super) close: usize,
    /// What is in it.
    pub(super) items: Vec<Item>,
}

/// A member of an object or an element of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    /// Of a member.
    pub(super) key: Option<String>,
    /// The whole, with its key.
    pub(super) at: Range<usize>,
    /// Its value.
    pub(super) value: Range<usize>,
    /// Of the comma behind it.
    pub(super) comma: Option<usize>,
}

impl Text {
    /// Reads a text.
    pub(super) fn of(whole: String) -> Result<Self, NoObject> {
        let bare = without_comments(&whole);
        let strict = without_last_commas(&bare);
        let from = if whole.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let json = strict.get(from..).unwrap_or_default();
        if let Err(error) = serde_json::from_slice::<IgnoredAny>(json) {
            return Err(NoObject::Json(error.line(), error.column()));
        }
        let root = skip_blanks(&bare, from);
        if bare.get(root) != Some(&b'{') {
            return Err(NoObject::Other);
        }
        Ok(Self { whole, bare, root })
    }

    /// The text itself.
    pub(super) fn as_str(&self) -> &str {
        &self.whole
    }

    /// Whether there is anything in it that JSON doesn't have.
    pub(super) fn is_strict(&self) -> bool {
        self.bare == self.whole.as_bytes() && without_last_commas(&self.bare) == self.bare
    }

    /// Whether there is a comment in it.
    pub(super) fn has_comment(&self, container: &Container) -> bool {
        let at = container.open..container.close;
        self.bare[at.clone()] != self.whole.as_bytes()[at]
    }

    /// What it holds.
    pub(super) fn root(&self) -> Container {
        container(&self.bare, self.root)
    }

    /// A value that is an object.
    pub(super) fn object(&self, value: &Range<usize>) -> Option<Container> {
        self.of_kind(value, b'{')
    }

    /// A value that is an array.
    pub(super) fn array(&self, value: &Range<usize>) -> Option<Container> {
        self.of_kind(value, b'[')
    }

    fn of_kind(&self, value: &Range<usize>, kind: u8) -> Option<Container> {
        (self.bare.get(value.start) == Some(&kind)).then(|| container(&self.bare, value.start))
    }

    /// A value that can be read as this type.
    pub(super) fn read<T: serde::de::DeserializeOwned>(&self, value: &Range<usize>) -> Option<T> {
        let strict = without_last_commas(self.bare.get(value.clone())?);
        serde_json::from_slice(&strict).ok()
    }

    /// The blanks before a place: of the text, comments not included.
    pub(super) fn blanks_before(&self, at: usize) -> Range<usize> {
        let bytes = &self.whole.as_bytes()[..at];
        let from = bytes.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |last| last + 1);
        from..at
    }

    /// The blanks from a place on.
    pub(super) fn blanks_after(&self, at: usize) -> Range<usize> {
        at..skip_blanks(self.whole.as_bytes(), at)
    }

    /// The same with something else in these places, which stand in order.
    pub(super) fn spliced(&self, splices: &[(Range<usize>, &str)]) -> String {
        let (mut made, mut done) = (String::with_capacity(self.whole.len()), 0);
        for (at, with) in splices {
            made.push_str(&self.whole[done..at.start]);
            made.push_str(with);
            done = at.end;
        }
        made.push_str(&self.whole[done..]);
        made
    }
}

impl Container {
    /// The members of this name: a text may repeat it.
    pub(super) fn members(&self, key: &str) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |item| item.key.as_deref() == Some(key))
    }
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn skip_blanks(bytes: &[u8], from: usize) -> usize {
    bytes[from..].iter().position(|byte| !is_blank(*byte)).map_or(bytes.len(), |blanks| from + blanks)
}

/// Where the string that begins here has ended.
fn after_string(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn without_comments(text: &str) -> Vec<u8> {
    let mut bare = text.as_bytes().to_vec();
    let mut at = 0;
    while at < bare.len() {
        let end = match &bare[at..] {
            [b'"', ..] => {
                at = after_string(&bare, at);
                continue;
            }
            [b'/', b'/', ..] => text[at..].find('\n').map(|length| at + length).unwrap_or(bare.len()),
            // One that doesn't end stays, and so is no JSON.
            [b'/', b'*', rest @ ..] => match rest.windows(2).position(|two| two == b"*/") {
                Some(length) => at + length + 4,
                None => return bare,
            },
            _ => {
                at += 1;
                continue;
            }
        };
        bare[at..end].iter_mut().filter(|byte| !is_blank(**byte)).for_each(|byte| *byte = b' ');
        at = end;
    }
    bare
}

/// Without the comma behind the last of a list, of which nobody can say that it's missing one.
fn without_last_commas(bare: &[u8]) -> Vec<u8> {
    let mut strict = bare.to_vec();
    let (mut at, mut before) = (0, None);
    while at < bare.len() {
        let byte = bare[at];
        if byte == b'"' {
            at = after_string(bare, at);
            before = Some(b'"');
            continue;
        }
        let follows = || bare.get(skip_blanks(bare, at + 1));
        let is_last = byte == b',' && matches!(follows(), Some(b'}' | b']'));
        if is_last && !matches!(before, None | Some(b'[' | b'{' | b',' | b':')) {
            strict[at] = b' ';
        }
        if !is_blank(byte) {
            before = Some(byte);
        }
        at += 1;
    }
    strict
}

/// Where a value ends. The text is known to be sound.
fn after_value(bare: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = bare.get(at) {
        match byte {
            b'"' => {
                at = after_string(bare, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return at + 1,
            b'}' | b']' if depth > 1 => depth -= 1,
            byte if depth == 0 && (is_blank(*byte) || b",]}".contains(byte)) => return at,
            _ => {}
        }
        at += 1;
    }
    bare.len()
}

fn container(bare: &[u8], open: usize) -> Container {
    let has_keys = bare[open] == b'{';
    let mut items = Vec::new();
    let mut at = skip_blanks(bare, open + 1);
    while at < bare.len() && !matches!(bare[at], b'}' | b']') {
        let item = item(bare, at, has_keys);
        at = skip_blanks(bare, item.comma.map_or(item.at.end, |comma| comma + 1));
        items.push(item);
    }
    Container { open, close: at, items }
}

fn item(bare: &[u8], start: usize, has_key: bool) -> Item {
    let mut from = start;
    let mut key = None;
    if has_key {
        let end = after_string(bare, start);
        // A name that is no Unicode is nobody's that we look for.
        key = Some(serde_json::from_slice(&bare[start..end]).unwrap_or_default());
        let colon = skip_blanks(bare, end);
        from = skip_blanks(bare, (colon + 1).min(bare.len()));
    }
    let end = after_value(bare, from);
    let behind = skip_blanks(bare, end);
    let comma = (bare.get(behind) == Some(&b',')).then_some(behind);
    Item { key, at: start..end, value: from..end, comma }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Text, NoObject> {
        Text::of(text.to_owned())
    }

    #[test]
    fn only_an_object_is_one() {
        for sound in ["{}", " \r\n{ }\n", "\u{feff}{\"a\":[1,{\"b\":null}],\"c\":\"\\\"}//\"}"] {
            let text = of(sound).unwrap();
            assert!(text.is_strict() && text.as_str() == sound, "{sound}");
        }
        for lenient in ["// c\n{}", "{/* é */}", "{\"a\":1,}", "{\"a\":[1, /*,*/ ],}"] {
            assert!(!of(lenient).unwrap().is_strict(), "{lenient}");
        }
        for other in ["[]", "1", "\"{}\"", "// c\nnull"] {
            assert_eq!(of(other).unwrap_err(), NoObject::Other, "{other}");
        }
        for broken in [
            "",
            "{",
            "{,}",
            "{\"a\":,}",
            "{\"a\":[,]}",
            "{\"a\":1,,}",
            "{'a':1}",
            "{}x",
            "/*{}",
            "{a:1}",
            "{\"a\" 1}",
        ] {
            assert!(matches!(of(broken), Err(NoObject::Json(..))), "{broken}");
        }
        assert_eq!(of("{\n  x").unwrap_err().to_string(), "line 2, column 3: this is no JSON");
    }

    #[test]
    fn items_know_where_they_stand() {
        let whole = "{ \"a\" : [1,\"]\",{\"x\":{}}] , // c,\n \"\\u0062\":-1e5 ,\n}";
        let text = of(whole).unwrap();
        let root = text.root();
        let told: Vec<_> =
            root.items.iter().map(|item| (item.key.as_deref(), &whole[item.value.clone()])).collect();
        assert_eq!(told, [(Some("a"), "[1,\"]\",{\"x\":{}}]"), (Some("b"), "-1e5")]);
        assert!(root.items.iter().all(|item| whole.as_bytes()[item.comma.unwrap()] == b','));
        assert_eq!(root.close, whole.len() - 1);
        let inner = text.array(&root.items[0].value).unwrap();
        let told: Vec<_> =
            inner.items.iter().map(|item| (&whole[item.at.clone()], item.comma.is_some())).collect();
        assert_eq!(told, [("1", true), ("\"]\"", true), ("{\"x\":{}}", false)]);
        assert!(text.object(&root.items[0].value).is_none());
    }
}
