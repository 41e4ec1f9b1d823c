//! The inbox: what in a session waits for a person, the newest first, and what of it is still to be told.
//!
//! Whether anybody looks is told to it, and how it is said is whoever shows it's; it decides only what waits, and that
//! each is told once.

use std::collections::BTreeSet;

use midturn_core::rules::event::Outcome;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Role;
use midturn_core::rules::time::Micros;
use midturn_core::rules::view::{Agent, Ask, View};

use crate::clean::one_line;
use crate::words::{asked, short};

/// So many that were told are remembered; of more those are forgotten that nobody waits with any more.
const TOLD_MAX: usize = 1_024;

/// What somebody waits with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// For a word on a call.
    Asks,
    /// For the next word: the lead has answered, and nobody works.
    Ended,
    /// Its run has failed.
    Failed,
    /// It has reached a limit.
    Limit,
    /// Its branch could not be merged.
    Conflict,
}

impl What {
    /// In a word, for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asks => "asks",
            Self::Ended => "ended",
            Self::Failed => "failed",
            Self::Limit => "limit",
            Self::Conflict => "conflict",
        }
    }
}

/// Something that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Who waits.
    pub agent: AgentName,
    /// With what.
    pub what: What,
    /// Since when; unknown of what was there before the first event that was told.
    pub since: Option<Micros>,
    /// What it is about, on one line that nothing in it acts in.
    pub words: String,
    /// What tells it from every other need of its session, in every face and process.
    pub id: String,
}

impl Need {
    /// Who waits with what, on one line.
    pub fn line(&self) -> String {
        match (self.what, self.words.is_empty()) {
            (What::Asks, _) => format!("{} asks: {}", self.agent, self.words),
            (What::Ended, true) => format!("{} has ended", self.agent),
            (What::Ended, false) => format!("{} has ended: {}", self.agent, self.words),
            (What::Failed, true) => format!("{} failed", self.agent),
            (What::Failed, false) => format!("{} failed: {}", self.agent, self.words),
            (What::Limit, _) => format!("{} is at a limit: {}", self.agent, self.words),
            (What::Conflict, _) => format!("{} could not be merged: conflicts in {}", self.agent, self.words),
        }
    }

    /// A request for a person's word.
    pub fn asks(ask: &Ask) -> Self {
        Self {
            agent: ask.agent.clone(),
            what: What::Asks,
            since: Some(ask.since),
            words: asked(&ask.name, &ask.input),
            id: format!("{} asks {} {}", ask.agent, ask.since.0, ask.tool.as_str()),
        }
    }

    /// A merge of an agent's branch that was tried when this was its run, and the files that conflict.
    pub fn conflict(agent: &AgentName, run: u64, since: Micros, files: &[String]) -> Self {
        let files: Vec<String> = files.iter().map(|file| one_line(file)).collect();
        Self {
            agent: agent.clone(),
            what: What::Conflict,
            since: Some(since),
            words: short(&files.join(", ")),
            id: format!("{agent} conflict {run}"),
        }
    }

    /// How an agent's last run has ended, if that waits for somebody. `rest`: nobody in its session works.
    pub fn ended(end: &End<'_>, rest: bool) -> Option<Self> {
        let (what, words) = match end.outcome {
            Outcome::Failed => (What::Failed, end.error),
            Outcome::Limit => (What::Limit, end.error),
            Outcome::Finished if end.is_lead && rest => (What::Ended, end.text),
            // Who was stopped was stopped by somebody; a subagent that has finished is its parent's matter.
            Outcome::Finished | Outcome::Stopped => return None,
        };
        Some(Self {
            agent: end.agent.clone(),
            what,
            since: end.at,
            words: short(words),
            id: format!("{} {} {}", end.agent, what.as_str(), end.run),
        })
    }
}

/// How an agent's last run has ended.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// The agent.
    pub agent: &'a AgentName,
    /// Whether a person talks to it.
    pub is_lead: bool,
    /// The run.
    pub run: u64,
    /// How.
    pub outcome: Outcome,
    /// When, if that is known.
    pub at: Option<Micros>,
    /// What failed, or the limit.
    pub error: &'a str,
    /// What it said last.
    pub text: &'a str,
}

/// All that waits for a person in a session, the newest first.
pub fn needs(view: &View) -> Vec<Need> {
    let rest = !view.agents().any(|(_, agent)| agent.is_working());
    let ended = view.agents().filter_map(|(name, agent)| Need::ended(&end(name, agent)?, rest));
    newest_first(view.open_asks().iter().map(Need::asks).chain(ended))
}

/// The newest first; of what nobody knows the age, after them, by who waits.
pub fn newest_first(needs: impl IntoIterator<Item = Need>) -> Vec<Need> {
    let mut needs: Vec<Need> = needs.into_iter().collect();
    needs.sort_by(|a, b| b.since.cmp(&a.since).then_with(|| a.id.cmp(&b.id)));
    needs
}

fn end<'a>(name: &'a AgentName, agent: &'a Agent) -> Option<End<'a>> {
    let outcome = agent.outcome.filter(|_| !agent.is_working() && !agent.is_closed)?;
    Some(End {
        agent: name,
        is_lead: agent.role == Some(Role::Lead),
        run: agent.ended,
        outcome,
        at: agent.ended_at,
        error: agent.error.as_deref().unwrap_or_default(),
        text: &agent.text,
    })
}

/// What was told, or seen by whoever looked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told(BTreeSet<String>);

impl Told {
    /// Those that are to be told now, each once. What is there while somebody looks was seen, and is never told.
    pub fn news<'a>(&mut self, needs: &'a [Need], looks: bool) -> Vec<&'a Need> {
        let new: Vec<&Need> = needs.iter().filter(|need| !self.0.contains(&need.id)).collect();
        self.0.extend(new.iter().map(|need| need.id.clone()));
        if self.0.len() > TOLD_MAX {
            let open: BTreeSet<&str> = needs.iter().map(|need| need.id.as_str()).collect();
            self.0.retain(|id| open.contains(id.as_str()));
        }
        if looks { Vec::new() } else { new }
    }
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::event::{Event, EventKind, Place, Trigger, VERSION};
    use midturn_core::rules::id::CallId;
    use serde_json::json;

    use super::*;

    fn name(text: &str) -> AgentName {
        AgentName::new(text).unwrap()
    }

    /// A session with a lead and the agent `w`, and what happens to whom in which second.
    struct Played(View, u64);

    impl Played {
        fn new() -> Self {
            let mut played = Self(View::default(), 0);
            for (agent, role) in [("lead", Role::Lead), ("w", Role::Subagent)] {
                let spawned = json!({"type": "agent_spawned", "role": role, "prompt": "x"});
                played.told(agent, serde_json::from_value(spawned).unwrap());
                played.begins(agent);
            }
            played
        }

        fn told(&mut self, agent: &str, kind: EventKind) -> &mut Self {
            self.1 += 1;
            let run = self.0.agent(&name(agent)).map_or(1, |agent| agent.run.max(1));
            let run = run + u64::from(matches!(kind, EventKind::RunStarted { .. }) && self.ended(agent));
            let at = Place::of(&name(agent), run, 1);
            self.0.event(&Event { v: VERSION, seq: self.1, t: Micros(self.1 * 1_000_000), at, kind });
            self
        }

        fn ended(&self, agent: &str) -> bool {
            self.0.agent(&name(agent)).is_some_and(|agent| agent.ended > 0)
        }

        fn begins(&mut self, agent: &str) -> &mut Self {
            self.told(agent, EventKind::RunStarted { trigger: Trigger::Prompt })
        }

        fn asks(&mut self, agent: &str, id: &str, command: &str) -> &mut Self {
            let (tool, input) = (CallId::new(id), json!({ "command": command }));
            self.told(
                agent,
                EventKind::ApprovalRequested { tool, name: "bash".into(), input, always: "bash".into() },
            )
        }

        fn answered(&mut self, agent: &str, id: &str) -> &mut Self {
            let json = json!({"type": "approval_resolved", "tool": id, "decision": "once", "by": "user"});
            self.told(agent, serde_json::from_value(json).unwrap())
        }

        fn ends(&mut self, agent: &str, outcome: Outcome, error: Option<&str>) -> &mut Self {
            let error = error.map(Into::into);
            self.told(agent, EventKind::RunFinished { outcome, error, turns: 1, usage: Default::default() })
        }

        fn lines(&self) -> Vec<String> {
            needs(&self.0).iter().map(Need::line).collect()
        }
    }

    #[test]
    fn what_waits_for_a_person_is_listed_with_the_newest_first() {
        let mut played = Played::new();
        assert_eq!(played.lines(), [""; 0]);
        played.asks("w", "a", "rm -r build").asks("lead", "b", "git push");
        assert_eq!(played.lines(), ["lead asks: bash: git push", "w asks: bash: rm -r build"]);
        played.answered("w", "a").ends("w", Outcome::Failed, Some("overloaded"));
        assert_eq!(played.lines(), ["w failed: overloaded", "lead asks: bash: git push"]);
        played.answered("lead", "b").begins("w").ends("w", Outcome::Limit, Some("max_turns"));
        assert_eq!(played.lines(), ["w is at a limit: max_turns"]);
        played.told("w", EventKind::AgentClosed {});
        assert_eq!(played.lines(), [""; 0]);
    }

    #[test]
    fn a_merge_that_would_not_go_names_its_files_and_is_another_after_the_next_run() {
        let files = ["a.rs".to_owned(), "b\u{1b}[31m\n.rs".to_owned()];
        let need = Need::conflict(&name("w"), 2, Micros(5), &files);
        assert!(need.line().starts_with("w could not be merged: conflicts in a.rs, b"), "{}", need.line());
        assert!(!need.line().contains(|c: char| c.is_control()), "{:?}", need.line());
        assert_ne!(need.id, Need::conflict(&name("w"), 3, Micros(9), &files).id);
    }

    #[test]
    fn a_lead_waits_for_a_word_once_nobody_works_and_nobody_stopped_it() {
        let mut played = Played::new();
        played.ends("lead", Outcome::Finished, None);
        assert_eq!(played.lines(), [""; 0], "w works, and the lead is told how that ends");
        played.ends("w", Outcome::Finished, None);
        assert_eq!(played.lines(), ["lead has ended"]);
        played.begins("lead").ends("lead", Outcome::Stopped, None);
        assert_eq!(played.lines(), [""; 0], "who stopped it knows");
    }

    #[test]
    fn each_need_is_told_once_and_what_was_looked_at_never() {
        let (mut played, mut told) = (Played::new(), Told::default());
        let mut news = |played: &Played, looks| -> Vec<String> {
            let needs = needs(&played.0);
            told.news(&needs, looks).iter().map(|need| need.line()).collect()
        };
        played.asks("w", "a", "one");
        assert_eq!(news(&played, true), [""; 0], "somebody looks");
        assert_eq!(news(&played, false), [""; 0], "it was seen");
        played.asks("lead", "b", "two");
        assert_eq!(news(&played, false), ["lead asks: bash: two"]);
        assert_eq!(news(&played, false), [""; 0], "it was told");
        // The same call, asked about again, is another request.
        played.answered("lead", "b").asks("lead", "b", "two");
        assert_eq!(news(&played, false), ["lead asks: bash: two"]);
        played.ends("w", Outcome::Failed, None);
        assert_eq!(news(&played, false), ["w failed"]);
        played.begins("w").ends("w", Outcome::Failed, None);
        assert_eq!(news(&played, false), ["w failed"], "another run");
    }

    #[test]
    fn what_is_remembered_as_told_has_a_bound_and_what_is_open_stays_in_it() {
        let (mut played, mut told) = (Played::new(), Told::default());
        played.asks("w", "open", "stays");
        for round in 0..TOLD_MAX + 10 {
            played.asks("lead", "b", "goes");
            let before = needs(&played.0);
            assert_eq!(told.news(&before, false).len(), if round == 0 { 2 } else { 1 });
            assert!(told.0.len() <= TOLD_MAX + 1);
            played.answered("lead", "b");
        }
    }

    #[test]
    fn nothing_in_a_line_acts_on_a_terminal_and_what_hides_is_named() {
        let mut played = Played::new();
        played.asks("w", "a", "ls \u{1b}]0;evil\u{7}\u{202e}x").ends(
            "lead",
            Outcome::Failed,
            Some("a\u{1b}[31mb\u{9c}c\nd"),
        );
        for line in played.lines() {
            assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
        }
    }
}
