//! What may run unasked, what is asked about, and what never runs.
//!
//! One table, [`Policy::judge`], decides for every call; it is pure, so that the whole policy
//! can be tested with plain values. Rules are a courtesy to whoever has to answer, not a
//! wall: a command can do more than its text says, and the sandbox is what holds it.

mod command;
mod explained;
mod like;
mod pattern;

use std::sync::Arc;

use super::time::Span;
use super::words::words;

pub use self::explained::{Explained, Part};
use self::pattern::Case;
pub use self::pattern::{Rule, RuleError};

words! {
    /// How much is done without asking.
    #[derive(Default)]
    pub enum Mode {
        /// Everything that no rule denies.
        #[default]
        Auto = "auto",
        /// Reads and edits; commands are asked about.
        AcceptEdits = "accept-edits",
        /// Reads; edits and commands are asked about.
        Ask = "ask",
        /// Reads only: nothing is changed, and nobody is asked.
        Plan = "plan",
    }
}

/// What a call does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Looks at files.
    Reads,
    /// Changes files that it names.
    Edits,
    /// Runs a command, or anything else that may do whatever it likes.
    Runs,
    /// Talks to the coordinator: mail, agents, plans.
    Coordinates,
}

/// A call as the rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The tool.
    pub name: &'a str,
    /// What patterns are held against: the command, or the path.
    pub subject: Option<&'a str>,
    /// What it does.
    pub effect: Effect,
}

/// What becomes of a call that is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It starts.
    Allowed,
    /// It does not; the text says by what.
    Denied(String),
    /// A person is asked first.
    Ask,
}

/// Everything that is configured about approvals.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What is done unasked.
    pub mode: Mode,
    /// What is done unasked besides.
    pub allow: Vec<Rule>,
    /// What is never done; it wins over everything else.
    pub deny: Vec<Rule>,
    /// How long an answer is waited for.
    pub patience: Span,
}

impl Default for Policy {
    fn default() -> Self {
        Self { mode: Mode::Auto, allow: Vec::new(), deny: Vec::new(), patience: Span::secs(600) }
    }
}

impl Policy {
    /// The whole policy. `granted` is what a person has allowed for this session.
    pub fn judge(&self, call: &Asked<'_>, granted: &[Rule]) -> Verdict {
        let case = Case::of(call);
        if let Some(rule) = self.deny.iter().find(|rule| rule.denies(&case)) {
            return Verdict::Denied(format!("the rule {rule} forbids it"));
        }
        let allowed = || case.is_allowed_by(self.allow.iter().chain(granted));
        match (self.mode, call.effect) {
            (_, Effect::Coordinates | Effect::Reads) | (Mode::Auto, _) => Verdict::Allowed,
            (Mode::AcceptEdits, Effect::Edits) => Verdict::Allowed,
            (Mode::Plan, Effect::Edits | Effect::Runs) => {
                Verdict::Denied("the mode is `plan`, in which nothing is changed".to_owned())
            }
            (Mode::AcceptEdits | Mode::Ask, Effect::Edits | Effect::Runs) if allowed() => Verdict::Allowed,
            (Mode::AcceptEdits, Effect::Runs) | (Mode::Ask, Effect::Edits | Effect::Runs) => Verdict::Ask,
        }
    }

    /// The files that no tool shows.
    pub fn unread(&self) -> Unread {
        Unread(self.deny.clone().into())
    }

    /// Rules that can't do what they seem to, each in a sentence that names the rule and where
    /// it is written.
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        let wins: [(&[Rule], &[Rule], &str); 2] =
            [(&self.allow, &self.deny, "allows"), (&self.deny, &[], "denies")];
        for (rules, stronger, does) in wins {
            for (at, rule) in rules.iter().enumerate() {
                if let Some(deny) = stronger.iter().find(|deny| deny.covers(rule)) {
                    complaints.push(format!(
                        "the rule {rule} never allows anything: {deny} denies the same, and deny wins"
                    ));
                } else if let Some(earlier) = rules[..at].iter().find(|earlier| earlier.covers(rule)) {
                    complaints.push(format!("the rule {rule} adds nothing: {earlier} {does} the same"));
                }
            }
        }
        let idle = matches!(self.mode, Mode::Auto | Mode::Plan) && !self.allow.is_empty();
        if idle {
            let mode = self.mode.as_str();
            complaints.push(format!(
                "the {} `allow` rules have no effect: in the mode `{mode}` nobody is asked",
                self.allow.len()
            ));
        }
        complaints
    }
}

/// The files that rules deny to read: searches leave them out.
#[derive(Clone, Debug)]
pub struct Unread(Arc<[Rule]>);

impl Unread {
    /// Whether this file is one, by its path from the agent's folder.
    pub fn hides(&self, path: &str) -> bool {
        self.0.iter().any(|rule| rule.is_about_reading(path))
    }
}

impl Default for Unread {
    fn default() -> Self {
        Self(Arc::new([]))
    }
}

/// What a person says to a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// This call may run.
    Once,
    /// This call may run, and all that the rule allows while the session lives in this process.
    Session(Rule),
    /// It may not; the model reads why.
    No(Option<String>),
}

words! {
    /// What became of a request, as events have it.
    pub enum Decision {
        /// This call runs.
        Once = "once",
        /// This call runs, and others like it.
        Session = "session",
        /// It doesn't.
        Denied = "denied",
        /// Nobody answered: a message or a stop withdrew the request, or its time was up.
        NotAnswered = "not_answered",
    }
}

/// The result of a call that may not run.
pub fn denied(why: &str) -> String {
    format!("[Denied: {why}. It did not run.]")
}

/// The result of a call that a person said no to.
pub fn refused(by: &str, reason: Option<&str>) -> String {
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("[Denied by {by}: {}. It did not run.]", reason.trim_end_matches('.')),
        None => format!("[Denied by {by}. It did not run.]"),
    }
}

/// Why an edit is denied whose arguments hold what stands in a secret's place.
pub fn would_lose(mark: &str) -> String {
    format!(
        "its arguments hold `{mark}`, which stands for a secret that agents are not shown, and the file would lose \
         the secret to it: leave that line as it is, and change the others with edit"
    )
}

/// Why a call is denied that nobody is there to approve.
pub fn nobody(mode: Mode) -> String {
    format!("the mode is `{}` and nobody is attached who could approve it", mode.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Vec<Rule> {
        texts.iter().map(|text| Rule::parse(text).unwrap()).collect()
    }

    fn policy(mode: Mode, allow: &[&str], deny: &[&str]) -> Policy {
        Policy { mode, allow: rules(allow), deny: rules(deny), ..Policy::default() }
    }

    fn judged(policy: &Policy, name: &str, subject: &str, granted: &[&str]) -> &'static str {
        let effect = match name {
            "bash" => Effect::Runs,
            "edit" | "write" => Effect::Edits,
            "read" => Effect::Reads,
            _ => Effect::Coordinates,
        };
        let call = Asked { name, subject: Some(subject), effect };
        match policy.judge(&call, &rules(granted)) {
            Verdict::Allowed => "allowed",
            Verdict::Denied(_) => "denied",
            Verdict::Ask => "ask",
        }
    }

    #[test]
    fn the_mode_says_what_is_asked_about() {
        for (mode, read, edit, bash, mail) in [
            (Mode::Auto, "allowed", "allowed", "allowed", "allowed"),
            (Mode::AcceptEdits, "allowed", "allowed", "ask", "allowed"),
            (Mode::Ask, "allowed", "ask", "ask", "allowed"),
            (Mode::Plan, "allowed", "denied", "denied", "allowed"),
        ] {
            let policy = policy(mode, &[], &[]);
            let got = ["read", "edit", "bash", "send_message"].map(|name| judged(&policy, name, "x", &[]));
            assert_eq!(got, [read, edit, bash, mail], "{mode:?}");
        }
    }

    #[test]
    fn deny_wins_over_every_mode_and_every_allowance() {
        for mode in [Mode::Auto, Mode::AcceptEdits, Mode::Ask, Mode::Plan] {
            let policy =
                policy(mode, &["bash", "edit", "read"], &["bash(rm *)", "edit(*.lock)", "read(secrets/**)"]);
            assert_eq!(judged(&policy, "bash", "rm -rf x", &["bash"]), "denied", "{mode:?}");
            assert_eq!(judged(&policy, "bash", "true && rm x", &["bash"]), "denied", "{mode:?}");
            assert_eq!(judged(&policy, "edit", "Cargo.lock", &["edit"]), "denied", "{mode:?}");
            assert_eq!(judged(&policy, "read", "secrets/a/b", &[]), "denied", "{mode:?}");
        }
    }

    #[test]
    fn what_is_allowed_or_granted_is_not_asked_about() {
        let policy = policy(Mode::Ask, &["bash(cargo test *)", "edit(src/**)"], &[]);
        for (name, subject, granted, expected) in [
            ("bash", "cargo test -p core", &[][..], "allowed"),
            ("bash", "cargo build", &[], "ask"),
            ("bash", "cargo test -p core; curl x", &[], "ask"),
            ("bash", "cargo test; cargo build", &["bash(cargo build)"], "allowed"),
            ("bash", "cargo build", &["bash(cargo build)"], "allowed"),
            ("bash", "cargo build -r", &["bash(cargo build)"], "ask"),
            ("edit", "src/a/b.rs", &[], "allowed"),
            ("edit", "tests/a.rs", &[], "ask"),
            ("write", "src/a.rs", &[], "allowed"),
            ("edit", "tests/a.rs", &["edit"], "allowed"),
        ] {
            assert_eq!(judged(&policy, name, subject, granted), expected, "{name}({subject})");
        }
    }

    #[test]
    fn plan_changes_nothing_whatever_is_allowed() {
        let policy = policy(Mode::Plan, &["bash", "edit"], &[]);
        assert_eq!(judged(&policy, "bash", "true", &["bash"]), "denied");
        assert_eq!(judged(&policy, "edit", "a", &["edit"]), "denied");
    }

    #[test]
    fn rules_that_do_nothing_are_told() {
        for (mode, allow, deny, expected) in [
            (Mode::Ask, &["bash(ls *)"][..], &["bash(rm *)"][..], &[][..]),
            (Mode::Ask, &["bash(ls *)"], &["bash"], &["never allows anything"]),
            (Mode::Ask, &["bash(ls *)", "bash(ls *)"], &[], &["adds nothing"]),
            (Mode::Ask, &["edit", "edit(src/**)"], &[], &["adds nothing"]),
            (Mode::Auto, &["bash"], &[], &["have no effect"]),
        ] {
            let complaints = policy(mode, allow, deny).complaints();
            assert_eq!(complaints.len(), expected.len(), "{complaints:?}");
            assert!(complaints.iter().zip(expected).all(|(got, want)| got.contains(want)), "{complaints:?}");
        }
    }
}
