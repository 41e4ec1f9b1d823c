//! What a command met, read from what it said: its own words first, then the system's. Pure.

use std::fmt;

/// How much is told of an output that says nothing known.
const TOLD_MAX: usize = 80;

/// What a command met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// The system refused it.
    Refused,
    /// There is nothing of that in its view.
    NotThere,
    /// It did something to what is its own; yours is as it was.
    Own,
    /// It did it, and when it was over that was taken back.
    TakenBack,
    /// What it left running was ended with it.
    Ended,
    /// So far and no further.
    Bounded(String),
    /// There is nothing of that on this machine.
    NoneHere,
    /// It did it.
    Can,
    /// What it sent left, and nobody answered.
    Unanswered,
    /// It wasn't tried.
    Untried(String),
    /// It said something else.
    Unclear(String),
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("refused"),
            Self::NotThere => f.write_str("not there"),
            Self::Own => f.write_str("its own, not yours"),
            Self::TakenBack => f.write_str("taken back after the command"),
            Self::Ended => f.write_str("ended with the command"),
            Self::Bounded(at) => write!(f, "bounded at {at}"),
            Self::NoneHere => f.write_str("there is none here"),
            Self::Can => f.write_str("can"),
            Self::Unanswered => f.write_str("can send; nobody answered"),
            Self::Untried(why) => write!(f, "not tried: {why}"),
            Self::Unclear(said) => write!(f, "nobody can say: {said}"),
        }
    }
}

/// The system's words, in small letters, where something is not to be seen.
const NOT_THERE: [&str; 5] = [
    "no such file or directory",
    "no such process",
    "network is unreachable",
    "connection refused",
    "not a directory",
];

/// And where it may not be done.
const REFUSED: [&str; 9] = [
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "function not implemented",
    "invalid cross-device link",
    "device or resource busy",
    "is a directory",
    "address family not supported",
    "must be superuser",
];

/// And where the means are missing.
const NO_MEANS: [&str; 3] = ["command not found", "modulenotfounderror", "no space left on device"];

impl Met {
    /// From what the tool `bash` returned.
    pub(super) fn of(said: &str) -> Self {
        let lines = || said.lines().map(str::trim);
        if let Some(met) = lines().find_map(Self::of_word) {
            return met;
        }
        let small = said.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|words| small.contains(words));
        let has = |line: &str| NO_MEANS.iter().any(|words| line.to_lowercase().contains(words));
        if let Some((_, limit)) = said.split_once("it used more than ") {
            return Self::Bounded(limit.split(" of ").next().unwrap_or(limit).to_owned());
        }
        if says(&["timed out after"]) {
            return Self::Untried("it took too long".to_owned());
        }
        if says(&REFUSED) {
            return Self::Refused;
        }
        if says(&NOT_THERE) {
            return Self::NotThere;
        }
        match lines().find(|line| has(line)) {
            Some(line) => Self::Untried(short(line)),
            None => Self::Unclear(short(&lines().collect::<Vec<_>>().join(" "))),
        }
    }

    /// What commands of ours say themselves.
    fn of_word(line: &str) -> Option<Self> {
        match line {
            "can" => Some(Self::Can),
            "own" => Some(Self::Own),
            "none" => Some(Self::NotThere),
            "unanswered" => Some(Self::Unanswered),
            _ => {
                let bounded = line.strip_prefix("bounded ").map(|at| Self::Bounded(at.to_owned()));
                let needs = || Some(Self::Untried(format!("{} is not there", line.strip_prefix("needs ")?)));
                bounded.or_else(needs)
            }
        }
    }

    /// Whether the command was held.
    pub(super) fn is_held(&self) -> bool {
        match self {
            Self::Refused | Self::NotThere | Self::Own | Self::TakenBack | Self::Ended | Self::NoneHere => {
                true
            }
            Self::Bounded(_) => true,
            Self::Can | Self::Unanswered | Self::Untried(_) | Self::Unclear(_) => false,
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(TOLD_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_s_own_word_counts_before_the_system_s() {
        let untried = |why: &str| Met::Untried(why.to_owned());
        for (said, met) in [
            ("can\n", Met::Can),
            ("cut: /proc/7/stat: No such file or directory\nnone\n", Met::NotThere),
            ("bash: line 1: /etc/x: Read-only file system\n[exit status 1]", Met::Refused),
            (
                "bash: connect: Connection refused\nbash: line 1: /dev/tcp/127.0.0.1/1: Connection refused",
                Met::NotThere,
            ),
            ("[Errno 1] Operation not permitted", Met::Refused),
            ("mount: /p/mounted: permission denied.", Met::Refused),
            ("bounded 512 MiB\n", Met::Bounded("512 MiB".to_owned())),
            (
                "[exit status 137]\n[ended: it used more than 2 GiB of memory]",
                Met::Bounded("2 GiB".to_owned()),
            ),
            ("needs python3\n", untried("python3 is not there")),
            ("bash: line 1: unshare: command not found", untried("bash: line 1: unshare: command not found")),
            ("[Timed out after 5 s; it was ended, with all it started]", untried("it took too long")),
            ("(no output)", Met::Unclear("(no output)".to_owned())),
            // Not a word, though it begins like one.
            ("cannot", Met::Unclear("cannot".to_owned())),
        ] {
            assert_eq!(Met::of(said), met, "{said}");
        }
    }
}
