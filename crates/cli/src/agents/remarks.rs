//! What a person is told of definition files that can be used, though not in all that they say: one line for
//! each kind of it, however many files there are.

use std::collections::BTreeMap;
use std::fmt;

/// How many places are named of one thing.
const PLACES: usize = 3;

/// What about a file is remarkable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum About {
    /// Its front matter is no YAML.
    Lines,
    /// Its name is none of ours.
    Name,
    /// It doesn't say when to use it.
    Description,
    /// A model that can't be had.
    Model,
    /// A tool that there is not.
    Tool,
    /// A tool that is forbidden in part.
    Whole,
    /// A tool of the coordinator, which everybody has.
    Everybodys,
    /// A key that isn't obeyed.
    Key,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lines => "no valid YAML, so read line by line",
            Self::Name => "names made fit",
            Self::Description => "no description, so the first line of text stands for it",
            Self::Model => "models that can't be had, so the parent's is used",
            Self::Tool => "tools that are not there",
            Self::Whole => "tools forbidden in part, so taken away whole",
            Self::Everybodys => "tools that can't be taken away",
            Self::Key => "keys that are not obeyed",
        })
    }
}

/// One thing to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) about: About,
    /// What it is, in the file's own words.
    pub(crate) what: String,
    /// `FILE:LINE`.
    pub(crate) place: String,
}

/// The lines of all that is to be told.
pub(crate) fn told(remarks: &[Remark]) -> Vec<String> {
    let mut all: BTreeMap<About, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for Remark { about, what, place } in remarks {
        all.entry(*about).or_default().entry(what).or_default().push(place);
    }
    let line = |(about, things): (About, BTreeMap<&str, Vec<&str>>)| {
        let things: Vec<String> =
            things.iter().map(|(what, places)| format!("{what} ({})", shown(places))).collect();
        format!("agent files: {about}: {}", things.join(", "))
    };
    all.into_iter().map(line).collect()
}

fn shown(places: &[&str]) -> String {
    let more = places.len().saturating_sub(PLACES);
    let named = places[..places.len() - more].join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}
