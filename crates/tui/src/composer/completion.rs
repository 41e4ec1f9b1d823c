//! What can be completed where the cursor is, and whom a draft names.

use midturn_core::rules::id::AgentName;

/// An action is searched for by so many letters in what is said of it: fewer are in every sentence.
const LETTERS_MIN: usize = 3;

/// What an open list of completions offers. It is made anew with each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// What there is to choose from, at least one.
    pub items: Vec<Item>,
    /// Which of them is chosen.
    pub chosen: usize,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The whole word, its sign in front: `@tester`, `/stop`.
    pub word: String,
    /// What an action does. Of a name nothing.
    pub help: String,
}

/// Whom a draft names at its beginning, and what it says to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addressed {
    /// The agent.
    pub agent: AgentName,
    /// The text without the name. It may be empty.
    pub text: String,
}

impl Item {
    /// Names are known by their beginning, actions by what they do, too.
    pub(super) fn matches(&self, typed: &str) -> bool {
        let letters = typed.trim_start_matches('/').to_lowercase();
        let says = || self.word.contains(&letters) || self.help.to_lowercase().contains(&letters);
        self.word.starts_with(typed) || (letters.len() >= LETTERS_MIN && self.word.starts_with('/') && says())
    }
}

impl Completion {
    /// Chooses the next one, behind the last the first.
    pub fn next(&mut self) {
        self.chosen = (self.chosen + 1) % self.items.len().max(1);
    }

    /// Chooses the one before.
    pub fn previous(&mut self) {
        let last = self.items.len().saturating_sub(1);
        self.chosen = self.chosen.checked_sub(1).unwrap_or(last).min(last);
    }

    /// What is to be typed yet of the chosen word, and a space.
    pub(super) fn rest(&self, before: &str) -> Option<String> {
        let word = &self.items.get(self.chosen)?.word;
        let typed = last_word(before)?;
        Some(format!("{} ", word.strip_prefix(typed)?))
    }
}

/// What completes the word before the cursor. `before`: the draft up to there.
pub(super) fn find(before: &str, agents: &[AgentName], actions: &[(&str, &str)]) -> Option<Completion> {
    let word = last_word(before)?;
    let items: Vec<Item> = match word.chars().next()? {
        '@' => agents.iter().map(|agent| item(format!("@{agent}"), "")).collect(),
        // An action is all that a draft is: elsewhere a slash begins a path.
        '/' if word == before => actions.iter().map(|(name, help)| item(slashed(name), help)).collect(),
        _ => return None,
    };
    let mut items: Vec<Item> = items.into_iter().filter(|item| item.matches(word)).collect();
    items.sort_by_key(|item| !item.word.starts_with(word));
    (!items.is_empty()).then_some(Completion { items, chosen: 0 })
}

/// The word that the text ends with, if it doesn't end with a space.
fn last_word(text: &str) -> Option<&str> {
    text.rsplit(char::is_whitespace).next().filter(|word| !word.is_empty())
}

fn item(word: String, help: &str) -> Item {
    Item { word, help: help.to_owned() }
}

/// An action's name, with or without its slash, as it is typed.
fn slashed(name: &str) -> String {
    format!("/{}", name.trim_start_matches('/'))
}

/// Whom a draft names at its beginning, if there is such an agent.
pub(crate) fn addressee(text: &str, agents: &[AgentName]) -> Option<Addressed> {
    let named = text.strip_prefix('@')?;
    let (name, text) = named.split_once(char::is_whitespace)?;
    let agent = agents.iter().find(|agent| agent.as_str() == name)?.clone();
    Some(Addressed { agent, text: text.trim_start().to_owned() })
}
