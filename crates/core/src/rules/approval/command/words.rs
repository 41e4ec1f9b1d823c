//! Words as the shell hands them over: without quotes, and with what nobody knows before it runs.

use brush_parser::word::{self, WordPiece, WordPieceWithSource};

use super::{Read, Reader, Unreadable, options};

/// A word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Word(pub(in super::super) Vec<Part>);

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Part {
    /// This text.
    Text(String),
    /// Any text, none, or several words: what a variable holds, a command prints, a pattern finds.
    Unknown,
}

impl Word {
    /// A word of which nothing is known.
    pub(super) fn unknown() -> Self {
        Self(vec![Part::Unknown])
    }

    pub(super) fn of(text: impl Into<String>) -> Self {
        Self(vec![Part::Text(text.into())])
    }

    /// The word, if all of it is known.
    pub(in super::super) fn known(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// What it begins with, as far as that is known.
    pub(super) fn begin(&self) -> &str {
        match self.0.first() {
            Some(Part::Text(text)) => text,
            Some(Part::Unknown) | None => "",
        }
    }

    fn push(&mut self, part: Part) {
        match (self.0.last_mut(), part) {
            (Some(Part::Text(known)), Part::Text(text)) => known.push_str(&text),
            (Some(Part::Unknown), Part::Unknown) => {}
            (_, Part::Text(text)) if text.is_empty() => {}
            (_, part) => self.0.push(part),
        }
    }
}

impl Reader {
    /// A word, and what is run to make it.
    pub(super) fn word(&mut self, text: &str) -> Result<Word, Unreadable> {
        let mut made = Word(Vec::new());
        let pieces = word::parse(text, &options()).map_err(|_| Unreadable::Content)?;
        for piece in &pieces {
            self.piece(text, piece, &mut made)?;
        }
        let is_pattern =
            |piece: &WordPieceWithSource| matches!(&piece.piece, WordPiece::Text(text) if expands(text));
        // Of one of its parts all of it becomes something else: `gi[t]`, `{git,push}`.
        Ok(if pieces.iter().any(is_pattern) { Word::unknown() } else { made })
    }

    /// What is run to make a text that is not a word of a command.
    pub(super) fn text(&mut self, text: &str) -> Read {
        self.word(text).map(|_| ())
    }

    /// A here-document has no words, only what is run to make it.
    pub(super) fn here_document(&mut self, text: &str) -> Read {
        let mut made = Word(Vec::new());
        for piece in word::parse_heredoc(text, &options()).map_err(|_| Unreadable::Content)? {
            self.piece(text, &piece, &mut made)?;
        }
        Ok(())
    }

    fn piece(&mut self, source: &str, piece: &WordPieceWithSource, made: &mut Word) -> Read {
        match &piece.piece {
            WordPiece::Text(text) | WordPiece::SingleQuotedText(text) => made.push(Part::Text(text.clone())),
            // What its escapes stand for is the shell's to know.
            WordPiece::AnsiCQuotedText(text) if !text.contains('\\') => made.push(Part::Text(text.clone())),
            WordPiece::AnsiCQuotedText(_) => made.push(Part::Unknown),
            WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                inner.iter().try_for_each(|piece| self.piece(source, piece, made))?;
            }
            WordPiece::TildeExpansion(_) => {
                made.push(Part::Text(
                    source.get(piece.start_index..piece.end_index).ok_or(Unreadable::Content)?.to_owned(),
                ));
            }
            WordPiece::EscapeSequence(text) => {
                // Behind a backslash a line goes on.
                let stands_for = text.strip_prefix('\\').unwrap_or(text);
                made.push(Part::Text(stands_for.replace('\n', "")));
            }
            WordPiece::ParameterExpansion(_) => {
                made.push(Part::Unknown);
                self.parameter(source.get(piece.start_index..piece.end_index).ok_or(Unreadable::Content)?)?;
            }
            WordPiece::CommandSubstitution(script) | WordPiece::BackquotedCommandSubstitution(script) => {
                made.push(Part::Unknown);
                self.script(script)?;
            }
            WordPiece::ArithmeticExpression(expression) => {
                made.push(Part::Unknown);
                self.arithmetic(expression)?;
            }
        }
        Ok(())
    }

    /// `${a:-$(b)}`: what stands in it is made, too. Which quotes count there depends on those around it, so that
    /// nothing with both is read.
    fn parameter(&mut self, expansion: &str) -> Read {
        let runs = expansion.contains("$(")
            || expansion.contains('`')
            || expansion.contains("<(")
            || expansion.contains(">(");
        let Some(inner) = expansion.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) else {
            return if runs { Err(Unreadable::Content) } else { Ok(()) };
        };
        if !runs {
            return Ok(());
        }
        if self.deep >= super::DEEP_MAX || inner.contains(['\'', '"', '\\']) {
            return Err(Unreadable::Content);
        }
        self.deep += 1;
        let read = self.text(inner);
        self.deep -= 1;
        read
    }
}

/// Whether a text without quotes may become another one, or several words. A bracket may close what a variable opens.
fn expands(text: &str) -> bool {
    let is_braces = text != "{}" && text.contains('{');
    is_braces || text.contains(['*', '?', '[', ']', '(', ')', '$', '`'])
}
