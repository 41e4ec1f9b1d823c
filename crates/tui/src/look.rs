//! How things look: colours, or none; Unicode's signs, or ASCII's.

use midturn_core::rules::limits::Money;
use ratatui::style::{Color, Modifier, Style};

/// What a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Colours. Without them (`NO_COLOR`) bold, dim and reversed still tell things apart.
    pub colours: bool,
    /// Signs beyond ASCII. Without them (`--ascii`) each has a stand-in.
    pub unicode: bool,
}

/// What a piece of the screen is, for its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Plain,
    /// Beside the point.
    Quiet,
    /// A heading, a name that is chosen.
    Strong,
    /// Mail and what becomes of it.
    Mail,
    /// A good end.
    Good,
    /// Something was cut, skipped or stopped.
    Cut,
    /// An error.
    Bad,
    /// A person is asked.
    Asks,
    /// Code in a text.
    Code,
    /// What was taken out, in a diff.
    Removed,
    /// What was put in.
    Added,
}

impl Look {
    /// The style of a tone.
    pub fn style(self, tone: Tone) -> Style {
        let plain = Style::new();
        let modified = match tone {
            Tone::Plain | Tone::Mail | Tone::Good | Tone::Cut | Tone::Added | Tone::Code => plain,
            Tone::Quiet | Tone::Removed => plain.add_modifier(Modifier::DIM),
            Tone::Strong | Tone::Bad | Tone::Asks => plain.add_modifier(Modifier::BOLD),
        };
        let colour = match tone {
            Tone::Plain | Tone::Quiet | Tone::Strong => None,
            Tone::Mail => Some(Color::Blue),
            Tone::Good | Tone::Added => Some(Color::Green),
            Tone::Cut | Tone::Asks => Some(Color::Yellow),
            Tone::Bad | Tone::Removed => Some(Color::Red),
            Tone::Code => Some(Color::Cyan),
        };
        match colour.filter(|_| self.colours) {
            // What is told by its colour needs no dimming beside.
            Some(colour) => modified.remove_modifier(Modifier::DIM).fg(colour),
            None => modified,
        }
    }

    /// Our own words, with what stands for their signs in ASCII.
    pub fn words(self, words: &str) -> String {
        if self.unicode { words.to_owned() } else { midturn_view::mail::ascii(words) }
    }

    /// A sign, or what stands for it in ASCII: as wide as it.
    pub fn sign(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.unicode { unicode } else { ascii }
    }
}

/// `$0.38`; `~` before what is counted with the table of prices.
pub(crate) fn dollars(cost: Money, is_about: bool) -> String {
    format!("{}${cost}", if is_about { "~" } else { "" })
}
