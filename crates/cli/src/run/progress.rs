//! What the command line adds to the words of `midturn-view`: an agent's standing, and colours.

use midturn_view::words::Tone;
use midturn_wire::agent::State;

/// What an agent is doing, in a word.
pub(crate) fn standing(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Ending => "ending",
        State::Idle => "idle",
        State::Stopped => "stopped",
        State::Closed => "closed",
        State::Suspended => "suspended",
        State::Unknown => "?",
    }
}

/// The line with the colour of its tone.
pub(crate) fn coloured(tone: Tone, line: &str) -> String {
    let code = match tone {
        Tone::Plain => return line.to_owned(),
        Tone::Quiet => "2",
        Tone::Mail => "34",
        Tone::Good => "32",
        Tone::Cut => "33",
        Tone::Bad => "31",
        Tone::Asks => "1",
    };
    format!("\u{1b}[{code}m{line}\u{1b}[0m")
}
