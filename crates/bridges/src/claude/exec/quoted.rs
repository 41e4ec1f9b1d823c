//! Claude Code's way of quoting: bare where every sign is harmless, else in single quotes.

/// A single quote inside of single quotes.
const QUOTE: &[u8] = b"'\"'\"'";

/// Whether this is the text of a command that runs this one.
pub(super) fn runs(text: &[u8], command: &str) -> bool {
    let command = with_null(command);
    let mut quoted = [b"eval '", command.as_bytes()].concat();
    if command.contains('\'') {
        quoted = [b"eval '", command.replace('\'', "'\"'\"'").as_bytes()].concat();
    }
    quoted.push(b'\'');
    if stands_whole(text, &quoted) {
        return true;
    }
    is_bare(command.as_bytes()) && stands_whole(text, &[b"eval ", command.as_bytes()].concat())
}

/// Whether it stands there and its last word ends there.
fn stands_whole(text: &[u8], part: &[u8]) -> bool {
    let mut from = 0;
    while let Some(at) = position(&text[from..], part) {
        let end = from + at + part.len();
        if text.get(end).is_none_or(|next| next.is_ascii_whitespace()) {
            return true;
        }
        from += at + 1;
    }
    false
}

fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

fn is_bare(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(|b| b.is_ascii_alphanumeric() || b"_./:=@+,-".contains(b))
}

/// `2>nul`, which is meant for another system, becomes `2>/dev/null` where nothing in the command makes it
/// doubtful that it is meant so.
fn with_null(command: &str) -> String {
    if command.contains(['<', '$', '`']) {
        return command.to_owned();
    }
    let mut made = String::new();
    let mut rest = command;
    while let Some(at) = rest.find('>') {
        let (before, target) = rest.split_at(at);
        let blanks = target.len() - target.trim_start_matches('>').trim_start_matches([' ', '\t']).len();
        made += before;
        made += &target[..blanks];
        rest = &target[blanks..];
        let is_null = rest.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("nul"))
            && rest[3..].chars().next().is_none_or(|next| next.is_whitespace() || "|&;)".contains(next));
        if is_null {
            made += "/dev/null";
            rest = &rest[3..];
        }
    }
    made + rest
}

/// The words of a line. `None`: it isn't quoted this way.
pub(super) fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let (word, after) = word(rest)?;
        words.push(word);
        match after {
            [] => return Some(words),
            [b' ', next @ ..] => rest = next,
            _ => return None,
        }
    }
}

fn word(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let Some(mut rest) = line.strip_prefix(b"'") else {
        let end = line.iter().position(|&b| b == b' ').unwrap_or(line.len());
        return is_bare(&line[..end]).then(|| (line[..end].to_vec(), &line[end..]));
    };
    let mut word = Vec::new();
    loop {
        let end = rest.iter().position(|&b| b == b'\'')?;
        word.extend_from_slice(&rest[..end]);
        match rest[end..].strip_prefix(QUOTE) {
            Some(after) => {
                word.push(b'\'');
                rest = after;
            }
            None => return Some((word, &rest[end + 1..])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_known_in_its_text() {
        let text =
            |quoted: &str| format!("source /s.sh || true && eval {quoted} < /dev/null && pwd -P >| /c");
        for (command, quoted, expected) in [
            ("ls", "ls", true),
            ("ls", "'ls'", true),
            ("ls", "ls/x", false),
            ("echo a", "'echo a'", true),
            ("echo a", r#"'echo a'"'"'b'"#, false),
            ("echo a", "'echo ab'", false),
            ("echo 'a b' \"$x\"", r#"'echo '"'"'a b'"'"' "$x"'"#, true),
            ("a 2>nul | b >> NUL; c >null", "'a 2>/dev/null | b >> /dev/null; c >null'", true),
            ("a 2>nul $x", "'a 2>nul $x'", true),
            ("a >&2", "'a >&2'", true),
            ("cat <<'X'\nhi\nX", "'cat <<'\"'\"'X'\"'\"'\nhi\nX'", true),
        ] {
            assert_eq!(runs(text(quoted).as_bytes(), command), expected, "{command} in {quoted}");
        }
    }

    #[test]
    fn a_server_s_line_is_its_words() {
        for (line, expected) in [
            ("/a/b.py one", Some(vec!["/a/b.py", "one"])),
            (r#"npx 'a b' '' 'it'"'"'s'"#, Some(vec!["npx", "a b", "", "it's"])),
            ("a && b", None),
            ("a  b", None),
            ("'a", None),
            ("", None),
        ] {
            let expected =
                expected.map(|words| words.iter().map(|w| w.as_bytes().to_vec()).collect::<Vec<_>>());
            assert_eq!(words(line.as_bytes()), expected, "{line}");
        }
    }
}
