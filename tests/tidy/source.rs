//! Rust files as tidy looks at them: their words with the lines they stand in, without
//! comments and texts, and which of the lines are tests. It judges nothing.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A word, a sign, a bracket or a literal.
pub(crate) struct Token {
    /// How it is written; of a text only its quotes.
    pub(crate) text: String,
    /// Its line, from 1.
    pub(crate) line: usize,
}

/// A Rust file of the project.
pub(crate) struct Source {
    /// Relative to the root of the checkout.
    pub(crate) path: PathBuf,
    /// As it is on the disk.
    pub(crate) text: String,
    /// Its tokens, brackets among them.
    pub(crate) tokens: Vec<Token>,
    /// The lines of `#[cfg(test)]` items.
    test_items: Vec<RangeInclusive<usize>>,
}

/// A function and where it stands.
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// The line of `fn`.
    pub(crate) line: usize,
    /// From there to the closing brace.
    pub(crate) lines: usize,
}

impl Source {
    fn read(root: &Path, path: &Path) -> Self {
        Self::of(path.strip_prefix(root).unwrap_or(path), read(path))
    }

    /// A file of this text.
    pub(crate) fn of(path: &Path, text: String) -> Self {
        let stream = match TokenStream::from_str(&text) {
            Ok(stream) => stream,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let test_items = test_items(&tokens);
        Self { path: path.to_owned(), text, tokens, test_items }
    }

    /// Whether the whole file is test code: a test program, a `tests` module, a benchmark, or what
    /// stores are held to.
    pub(crate) fn is_test(&self) -> bool {
        let in_tests = self
            .path
            .components()
            .any(|part| ["tests", "benches"].iter().any(|name| part.as_os_str() == *name));
        let in_suite = self.path.starts_with("crates/conformance");
        in_tests || in_suite || self.path.file_name() == Some("tests.rs".as_ref())
    }

    /// Whether a line is test code.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.is_test() || self.test_items.iter().any(|item| item.contains(&line))
    }

    /// The lines of code, those of `#[cfg(test)]` items not counted.
    pub(crate) fn lines_without_tests(&self) -> usize {
        let tests = self.test_items.iter().map(|item| item.clone().count());
        self.text.lines().count() - tests.sum::<usize>()
    }

    /// The lines that are neither blank nor a comment nor a test.
    pub(crate) fn lines_of_code(&self) -> usize {
        let lines = self.text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
        let is_code = |line: &str| !line.is_empty() && !line.starts_with("//");
        lines.filter(|(at, line)| is_code(line) && !self.is_test_line(*at)).count()
    }

    /// The lines of test code.
    pub(crate) fn test_text(&self) -> String {
        let lines = self.text.lines().enumerate();
        let lines = lines.filter(|(i, _)| self.is_test_line(i + 1));
        lines.map(|(_, line)| format!("{line}\n")).collect()
    }

    /// Where these tokens follow each other, as `PATH:LINE`; those for which `wanted` holds.
    pub(crate) fn places(&self, words: &[&str], wanted: impl Fn(&Self, usize) -> bool) -> Vec<String> {
        let found = self.tokens.windows(words.len()).filter(|window| {
            let same = window.iter().zip(words).all(|(token, word)| token.text == *word);
            same && wanted(self, window[0].line)
        });
        found.map(|window| self.place(window[0].line)).collect()
    }

    /// A line as `PATH:LINE`.
    pub(crate) fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    /// All functions that have a body.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let heads = self.tokens.windows(2).enumerate();
        let heads = heads.filter(|(_, pair)| pair[0].text == "fn" && is_word(&pair[1].text));
        heads.filter_map(|(at, pair)| self.function(at, pair)).collect()
    }

    fn function(&self, at: usize, head: &[Token]) -> Option<Function> {
        let body = body(&self.tokens, at)?;
        let end = self.tokens[closing(&self.tokens, body)].line;
        let line = head[0].line;
        Some(Function { name: head[1].text.clone(), line, lines: end - line + 1 })
    }

    /// The tokens between the braces that follow these words.
    pub(crate) fn braces_after(&self, words: &[&str]) -> &[Token] {
        let starts = self.tokens.windows(words.len());
        let mut found = starts
            .enumerate()
            .filter(|(_, window)| window.iter().zip(words).all(|(token, word)| token.text == *word));
        let open = found.next().and_then(|(at, _)| body(&self.tokens, at));
        match open {
            Some(open) => &self.tokens[open + 1..closing(&self.tokens, open)],
            None => panic!("{} has no `{}`", self.path.display(), words.join(" ")),
        }
    }
}

/// The words of a list in braces that stand before one of these signs: variants, fields.
pub(crate) fn listed<'a>(tokens: &'a [Token], sign: &str) -> Vec<&'a str> {
    let mut depth = 0;
    let mut names = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            word if depth == 0 && is_word(word) => {
                let next = tokens.get(at + 1).map_or("", |next| next.text.as_str());
                let path = tokens.get(at + 2).is_some_and(|after| next == ":" && after.text == ":");
                if next == sign && !path && (at == 0 || tokens[at - 1].text != ":") {
                    names.push(word);
                }
            }
            _ => {}
        }
    }
    names
}

/// All Rust files of the crates and the tests.
pub(crate) fn sources(root: &Path) -> Vec<Source> {
    let mut paths = Vec::new();
    for folder in ["crates", "tests"] {
        files_below(&root.join(folder), "rs", &mut paths);
    }
    paths.sort();
    paths.iter().map(|path| Source::read(root, path)).collect()
}

/// All files with this extension below a folder. Hidden folders and what tools install are not ours.
pub(crate) fn files_below(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => panic!("{}: {error}", folder.display()),
    };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules" {
            files_below(&path, extension, found);
        } else if path.extension() == Some(extension.as_ref()) {
            found.push(path);
        }
    }
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> String {
    match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let text = match tree {
            TokenTree::Group(group) => {
                flatten_group(&group, tokens);
                continue;
            }
            TokenTree::Literal(literal) => literal.to_string(),
            TokenTree::Ident(word) => word.to_string(),
            TokenTree::Punct(sign) => sign.to_string(),
        };
        // What a text says is no code.
        let text = if text.ends_with('"') { "\"\"".to_owned() } else { text };
        tokens.push(Token { text, line });
    }
}

fn flatten_group(group: &Group, tokens: &mut Vec<Token>) {
    let (open, close) = match group.delimiter() {
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::Parenthesis | Delimiter::None => ("(", ")"),
    };
    let (first, last) = (group.span_open().start().line, group.span_close().start().line);
    tokens.push(Token { text: open.to_owned(), line: first });
    flatten(group.stream(), tokens);
    tokens.push(Token { text: close.to_owned(), line: last });
}

/// The brace that opens the body of the item at `at`; none if a semicolon ends it.
fn body(tokens: &[Token], at: usize) -> Option<usize> {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(at) {
        match token.text.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "{" if depth == 0 => return Some(i),
            ";" if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The bracket that closes the one at `open`.
fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    tokens.len() - 1
}

fn test_items(tokens: &[Token]) -> Vec<RangeInclusive<usize>> {
    let mark = ["#", "[", "cfg", "(", "test", ")", "]"];
    let starts = tokens
        .windows(mark.len())
        .enumerate()
        .filter(|(_, window)| window.iter().zip(mark).all(|(token, word)| token.text == word));
    let item = |(at, window): (usize, &[Token])| {
        let open = body(tokens, at + mark.len())?;
        Some(window[0].line..=tokens[closing(tokens, open)].line)
    };
    starts.filter_map(item).collect()
}
