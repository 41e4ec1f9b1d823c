//! The lines a person types while a run is under way, as a pure function: what a line means,
//! given the agents there are. It sends nothing and knows no terminal.

mod word;

use midturn_core::rules::characters::is_blank;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Urgency;

pub(crate) use word::{Word, choose};

/// The longest line, in bytes: a message has at most 256 KiB (semantics.md, section 4), and a
/// name stands before it.
pub(crate) const LINE_MAX: usize = (256 << 10) + 80;

/// What a line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// Nothing.
    Blank,
    /// A message to the lead: a bare line. `unknown` is the name it seems to be for, if that
    /// is no agent's: the person is told who got it.
    ToLead {
        /// The whole line.
        text: String,
        /// The name before a `:`, `>` or `!` that no agent has.
        unknown: Option<String>,
    },
    /// `NAME: text`, `NAME> text` or `NAME! text`.
    ToAgent {
        /// To whom.
        to: AgentName,
        /// The text behind the mark.
        text: String,
        /// What the mark says (semantics.md, section 2); `:` leaves it to the receiver.
        urgency: Option<Urgency>,
    },
    /// `/ps`: who is there and what they do.
    Ps,
    /// `/stop NAME`.
    Stop(AgentName),
    /// `/supersede NAME TEXT`: stop, and begin anew with this.
    Supersede(AgentName, String),
    /// `/close NAME`.
    Close(AgentName),
    /// `/yes`, `/always`, `/no`: a word on what an agent asks.
    Answer(Word),
    /// `/quit`: stop all and end.
    Quit,
}

/// Why a line can't be understood. The run goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LineError {
    /// A slash and no command of ours.
    #[error(
        "there is no command `{0}`: /yes, /always, /no, /ps, /stop NAME, /supersede NAME TEXT, /close NAME, /quit; a line that begins with a space goes to the lead as it is"
    )]
    UnknownCommand(String),
    /// A command that needs a name, or one that takes none.
    #[error("`{0}` is written {1}")]
    Form(&'static str, &'static str),
    /// Nobody has that name.
    #[error("there is no agent `{0}`; /ps lists them")]
    UnknownAgent(String),
    /// Nobody waits for a word.
    #[error("nobody asks for anything now")]
    NothingAsked,
    /// This agent doesn't.
    #[error("`{0}` doesn't ask for anything now")]
    NotAsking(String),
    /// A name and a mark, and nothing behind.
    #[error("the message to `{0}` is empty")]
    Empty(AgentName),
    /// Longer than a message may be.
    #[error("the line has more than {LINE_MAX} bytes and was not sent")]
    TooLong,
    /// Not text.
    #[error("the line is not UTF-8 and was not sent")]
    NotText,
}

/// Reads a line. `is_agent` says whether there is an agent of that name: `NAME:` steers only
/// if there is one, since a sentence may well begin with a word and a colon.
///
/// # Errors
/// [`LineError`]: a command that is none, or a message that can't be sent.
pub(crate) fn parse(line: &str, is_agent: impl Fn(&str) -> bool) -> Result<Line, LineError> {
    let line = line.trim_end_matches(['\n', '\r']);
    if is_blank(line) {
        return Ok(Line::Blank);
    }
    if line.starts_with('/') {
        return command(line, is_agent);
    }
    let Some((name, urgency, text)) = addressed(line) else {
        return Ok(Line::ToLead { text: line.trim().to_owned(), unknown: None });
    };
    if !is_agent(name.as_str()) {
        // `http://x` and `a::b` were never meant as addresses.
        let unknown = text.starts_with(char::is_whitespace).then(|| name.to_string());
        return Ok(Line::ToLead { text: line.trim().to_owned(), unknown });
    }
    match text.trim() {
        blank if is_blank(blank) => Err(LineError::Empty(name)),
        text => Ok(Line::ToAgent { to: name, text: text.to_owned(), urgency }),
    }
}

/// `NAME: text`, `NAME> text` or `NAME! text` in its parts, if the line is of that form.
fn addressed(line: &str) -> Option<(AgentName, Option<Urgency>, &str)> {
    let (name, rest) = line.split_at(line.find([':', '>', '!'])?);
    let (mark, text) = rest.split_at(1);
    let urgency = match mark {
        "!" => Some(Urgency::Urgent),
        ">" => Some(Urgency::NextBoundary),
        _ => None,
    };
    Some((AgentName::new(name).ok()?, urgency, text))
}

fn command(line: &str, is_agent: impl Fn(&str) -> bool) -> Result<Line, LineError> {
    let mut words = line.split_whitespace();
    let (command, name, more) = (words.next().unwrap_or_default(), words.next(), words.next());
    if let Some(word) = word::read(line) {
        return word.map(Line::Answer);
    }
    match (command, name, more) {
        ("/ps", None, None) => Ok(Line::Ps),
        ("/quit", None, None) => Ok(Line::Quit),
        ("/stop", Some(name), None) => named(name, is_agent).map(Line::Stop),
        ("/close", Some(name), None) => named(name, is_agent).map(Line::Close),
        ("/supersede", Some(name), Some(_)) => {
            let text = line.split_once(name).map_or("", |(_, text)| text.trim());
            named(name, is_agent).map(|name| Line::Supersede(name, text.to_owned()))
        }
        ("/ps", ..) => Err(LineError::Form("/ps", "/ps, without anything behind it")),
        ("/quit", ..) => Err(LineError::Form("/quit", "/quit, without anything behind it")),
        ("/stop", ..) => Err(LineError::Form("/stop", "/stop NAME")),
        ("/close", ..) => Err(LineError::Form("/close", "/close NAME")),
        ("/supersede", ..) => Err(LineError::Form("/supersede", "/supersede NAME TEXT")),
        (other, ..) => Err(LineError::UnknownCommand(shortened(other))),
    }
}

/// An agent that there is.
fn named(name: &str, is_agent: impl Fn(&str) -> bool) -> Result<AgentName, LineError> {
    let unknown = || LineError::UnknownAgent(shortened(name));
    AgentName::new(name).ok().filter(|_| is_agent(name)).ok_or_else(unknown)
}

fn shortened(word: &str) -> String {
    word.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Line, LineError> {
        parse(line, |name| ["lead", "worker", "w-2"].contains(&name))
    }

    #[test]
    fn a_line_steers_an_agent_that_there_is() {
        let (next, urgent) = (Some(Urgency::NextBoundary), Some(Urgency::Urgent));
        for (line, to, text, urgency) in [
            ("worker: use `load`", "worker", "use `load`", None),
            ("worker! stop that", "worker", "stop that", urgent),
            ("lead> not a.rs", "lead", "not a.rs", next),
            ("worker>x: y", "worker", "x: y", next),
            ("w-2:\tx: y! z\r\n", "w-2", "x: y! z", None),
            ("lead: hello", "lead", "hello", None),
            ("worker:x", "worker", "x", None),
        ] {
            let expected = Line::ToAgent { to: AgentName::new(to).unwrap(), text: text.into(), urgency };
            assert_eq!(read(line), Ok(expected), "{line:?}");
        }
    }

    #[test]
    fn any_other_text_goes_to_the_lead_as_it_is() {
        for (line, unknown) in [
            ("use tabs", None),
            ("note: use tabs", Some("note")),
            ("wow! great", Some("wow")),
            ("a> b", Some("a")),
            ("a -> b", None),
            ("a:x", None),
            ("http://example.org/ is the page", None),
            ("Worker: capital", None),
            (" worker: indented", None),
            (" /ps", None),
            ("all: stop", None),
            ("a worker: x", None),
            ("é: x", None),
        ] {
            let expected = Line::ToLead { text: line.trim().into(), unknown: unknown.map(str::to_owned) };
            assert_eq!(read(line), Ok(expected), "{line:?}");
        }
    }

    #[test]
    fn commands_are_read() {
        for (line, expected) in [
            ("", Line::Blank),
            (" \t\n", Line::Blank),
            ("\u{200b}\n", Line::Blank),
            ("/ps", Line::Ps),
            ("/quit \n", Line::Quit),
            ("/stop  worker", Line::Stop(AgentName::new("worker").unwrap())),
            ("/close worker", Line::Close(AgentName::new("worker").unwrap())),
            (
                "/supersede  w-2  do  it w-2 ",
                Line::Supersede(AgentName::new("w-2").unwrap(), "do  it w-2".into()),
            ),
            ("/yes", Line::Answer(Word::Yes(None))),
            ("/yes  worker ", Line::Answer(Word::Yes(Some("worker".into())))),
            ("/always", Line::Answer(Word::Always(None))),
            ("/always w-2", Line::Answer(Word::Always(Some("w-2".into())))),
            ("/no", Line::Answer(Word::No(String::new()))),
            ("/no  worker  use  tabs ", Line::Answer(Word::No("worker  use  tabs".into()))),
        ] {
            assert_eq!(read(line), Ok(expected), "{line:?}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_an_error_that_says_why() {
        for (line, expected) in [
            ("/stpo worker", "there is no command `/stpo`"),
            ("/", "there is no command `/`"),
            ("/stop", "`/stop` is written /stop NAME"),
            ("/stop a b", "`/stop` is written /stop NAME"),
            ("/stop nobody", "there is no agent `nobody`"),
            ("/stop All!", "there is no agent `All!`"),
            ("/close", "`/close` is written /close NAME"),
            ("/close nobody", "there is no agent `nobody`"),
            ("/supersede worker", "`/supersede` is written /supersede NAME TEXT"),
            ("/supersede nobody go", "there is no agent `nobody`"),
            ("worker> ", "the message to `worker` is empty"),
            ("/ps x", "`/ps` is written /ps"),
            ("/quit now", "`/quit` is written /quit"),
            ("/yes worker now", "`/yes` is written /yes or /yes NAME"),
            ("/always a b", "`/always` is written /always or /always NAME"),
            ("/nope", "there is no command `/nope`"),
            ("worker:", "the message to `worker` is empty"),
            ("worker!   ", "the message to `worker` is empty"),
            ("worker: \u{200b}", "the message to `worker` is empty"),
        ] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
