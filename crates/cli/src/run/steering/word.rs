//! A person's word on what an agent asks, as it is typed: `/yes`, `/always`, `/no`. Which
//! request a word is about depends on who asks when it is read; it answers nothing itself.

use midturn_client::Said;
use midturn_core::rules::id::AgentName;

use super::{LineError, shortened};

/// A word, before it is known who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// `/yes [NAME]`.
    Yes(Option<String>),
    /// `/always [NAME]`.
    Always(Option<String>),
    /// `/no [NAME] [REASON]`: all that stands behind it.
    No(String),
}

/// The word on a line that begins with a slash; none if the line is another command.
pub(super) fn read(line: &str) -> Option<Result<Word, LineError>> {
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let name = (!rest.is_empty()).then(|| rest.to_owned());
    let is_one_word = !rest.contains(char::is_whitespace);
    Some(match command {
        "/yes" if is_one_word => Ok(Word::Yes(name)),
        "/yes" => Err(LineError::Form("/yes", "/yes or /yes NAME")),
        "/always" if is_one_word => Ok(Word::Always(name)),
        "/always" => Err(LineError::Form("/always", "/always or /always NAME")),
        "/no" => Ok(Word::No(rest.to_owned())),
        _ => return None,
    })
}

/// Which request a word is about, and what it says. `asking` has the agent of each open
/// request, the oldest first; without a name the oldest is meant.
///
/// # Errors
/// [`LineError`]: nobody asks, or the one that was named doesn't.
pub(crate) fn choose(
    word: &Word,
    asking: &[AgentName],
    is_agent: impl Fn(&str) -> bool,
) -> Result<(usize, Said), LineError> {
    let (name, said) = match word {
        Word::Yes(name) => (name.as_deref(), Said::Once),
        Word::Always(name) => (name.as_deref(), Said::Always(None)),
        Word::No(rest) => no(rest, asking, &is_agent),
    };
    let at = match name {
        None => (!asking.is_empty()).then_some(0).ok_or(LineError::NothingAsked)?,
        Some(name) => asking
            .iter()
            .position(|agent| agent.as_str() == name)
            .ok_or_else(|| nothing_of(name, is_agent(name)))?,
    };
    Ok((at, said))
}

fn nothing_of(name: &str, is_agent: bool) -> LineError {
    let shown = shortened(name);
    if is_agent { LineError::NotAsking(shown) } else { LineError::UnknownAgent(shown) }
}

/// The first word is a name if that agent asks, or if it is all there is and an agent's:
/// a reason may well begin with the name of an agent that doesn't ask.
fn no<'a>(rest: &'a str, asking: &[AgentName], is_agent: &impl Fn(&str) -> bool) -> (Option<&'a str>, Said) {
    let reason = |text: &str| Said::No((!text.is_empty()).then(|| text.to_owned()));
    let (first, more) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let more = more.trim_start();
    let asks = asking.iter().any(|agent| agent.as_str() == first);
    if asks || (more.is_empty() && is_agent(first)) {
        return (Some(first), reason(more));
    }
    (None, reason(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `w` and then `lead` ask; there is `idle` besides.
    fn chosen(line: &str, asking: &[&str]) -> Result<(usize, Said), String> {
        let asking: Vec<AgentName> = asking.iter().map(|name| AgentName::new(name).unwrap()).collect();
        let word = read(line).unwrap().unwrap();
        let is_agent = |name: &str| ["w", "lead", "idle"].contains(&name);
        choose(&word, &asking, is_agent).map_err(|error| error.to_string())
    }

    #[test]
    fn a_word_is_about_the_oldest_request_or_that_of_the_agent_it_names() {
        let no = |reason: &str| Said::No(Some(reason.to_owned()));
        for (line, at, said) in [
            ("/yes", 0, Said::Once),
            ("/yes lead", 1, Said::Once),
            ("/always", 0, Said::Always(None)),
            ("/always w", 0, Said::Always(None)),
            ("/no", 0, Said::No(None)),
            ("/no lead", 1, Said::No(None)),
            ("/no lead  use `load`", 1, no("use `load`")),
            ("/no not now", 0, no("not now")),
            ("/no later", 0, no("later")),
            ("/no idle does that", 0, no("idle does that")),
            ("/no W is wrong", 0, no("W is wrong")),
        ] {
            assert_eq!(chosen(line, &["w", "lead", "lead"]), Ok((at, said)), "{line}");
        }
    }

    #[test]
    fn a_word_that_nobody_waits_for_says_so() {
        for (line, asking, expected) in [
            ("/yes", &[][..], "nobody asks for anything now"),
            ("/no because", &[], "nobody asks for anything now"),
            ("/yes idle", &["w"], "`idle` doesn't ask for anything now"),
            ("/no idle", &["w"], "`idle` doesn't ask for anything now"),
            ("/always nobody", &["w"], "there is no agent `nobody`; /ps lists them"),
        ] {
            assert_eq!(chosen(line, asking), Err(expected.to_owned()), "{line}");
        }
    }
}
