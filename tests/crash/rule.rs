//! What the harness's model says: a pure function of the conversation it is sent. So the same
//! prompt gets the same reply after a crash, and the checker can tell for every reply in a
//! prompt whether it is one that was given.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::dice::{hashed, mixed};

/// In a message after which the agent says one thing and rests.
pub(crate) const FINISH: &str = "@finish";

/// In a message that has a lead spawn an agent of the name that follows.
pub(crate) const SPAWN: &str = "@spawn=";

/// In every message of a person and in every prompt: such work may cause messages to others.
/// Without it two agents would write to each other for ever.
pub(crate) const PERSON: &str = "@p";

/// What the models of two sessions are called.
pub(crate) const HOST: &str = "host";
pub(crate) const GUEST: &str = "guest";

/// The agents that there are from the start.
pub(crate) const CREW: [&str; 4] = ["lead", "a1", "a2", "a3"];

/// Those whom agents of the guests' session know. Whoever isn't spawned yet is an error of theirs.
const GUEST_CREW: [&str; 4] = ["lead", "b0", "b1", "b2"];

/// One more, who may take a few turns only.
pub(crate) const LIMITED: &str = "limited";

/// What the commands of one world have in common.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    /// Every command appends to it when it begins and when it ends.
    pub(crate) marker: PathBuf,
    /// In the environment or the words of every process of a command, before the call's id.
    pub(crate) mark: String,
}

/// What the model says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
}

/// A call it asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: &'static str,
    pub(crate) input: Value,
}

/// How the model says it. Errors are made once for a prompt, so that a retry gets further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    AtOnce,
    /// Word by word.
    Slowly,
    /// Silent for a moment first.
    Late,
    /// The first time 529.
    Overloaded,
    /// The first time the connection breaks in the middle.
    Broken,
    /// Always 400: the run fails.
    Refused,
}

/// A conversation as it came, cache markers taken out.
pub(crate) struct Conversation<'a> {
    pub(crate) model: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) messages: &'a [Value],
    pub(crate) wants_summary: bool,
}

/// How many bytes are a token: what is counted in a request decides when it is compacted.
const BYTES_PER_TOKEN: usize = 5;

impl<'a> Conversation<'a> {
    pub(crate) fn of(model: &'a str, agent: &'a str, messages: &'a [Value]) -> Self {
        Self { model, agent, messages, wants_summary: false }
    }

    /// What it counts for.
    pub(crate) fn tokens(&self) -> usize {
        serde_json::to_string(self.messages).map_or(0, |text| text.len() / BYTES_PER_TOKEN)
    }

    fn number(&self) -> u64 {
        let messages = serde_json::to_string(self.messages).unwrap_or_default();
        hashed(&format!("{} {} {messages}", self.model, self.agent))
    }

    /// The text of the last user message that has one, and how many replies came since.
    fn last_text(&self) -> (String, u64) {
        let mut replies = 0;
        for message in self.messages.iter().rev() {
            if message["role"] == "assistant" {
                replies += 1;
                continue;
            }
            let text = texts(message);
            if !text.is_empty() {
                return (text, replies);
            }
        }
        (String::new(), replies)
    }

    pub(crate) fn manner(&self) -> Manner {
        let (last, _) = self.last_text();
        if last.contains(FINISH) {
            return Manner::AtOnce;
        }
        match mixed(self.number() ^ 1) % 24 {
            // Else no run of its agent's would ever come to a request again.
            3 | 10 if self.wants_summary => Manner::Late,
            0 | 1 => Manner::Overloaded,
            2 => Manner::Broken,
            3 | 10 => Manner::Refused,
            4..8 => Manner::Slowly,
            8 | 9 => Manner::Late,
            _ => Manner::AtOnce,
        }
    }

    pub(crate) fn reply(&self, ground: &Ground) -> Reply {
        let (last, replies) = self.last_text();
        let number = self.number();
        if self.wants_summary {
            let text = format!("So far it was about this and that, namely {number:016x} and no more.");
            return Reply { text, calls: Vec::new() };
        }
        let text = format!("I have read it and say this about it, namely {number:016x} and no more.");
        // A person's words give some turns of work, a report at most one.
        let turns = hashed(&last) % if last.contains(PERSON) { 4 } else { 2 };
        if last.contains(FINISH) || replies >= turns {
            return Reply { text, calls: Vec::new() };
        }
        let asked = 1 + mixed(number ^ 2) % 4;
        let call = |i| self.call(number, i, &last, i + 1 == asked, ground);
        Reply { text, calls: (0..asked).map(call).collect() }
    }

    fn call(&self, number: u64, i: u64, last: &str, ends_turn: bool, ground: &Ground) -> Call {
        let id = format!("{}{number:016x}-{i}", self.model);
        let of_person = last.contains(PERSON);
        let n = mixed(number ^ (i << 8) ^ 3);
        if i == 0
            && self.agent == "lead"
            && let Some(name) = wanted_agent(last)
        {
            let input = json!({"name": name, "prompt": format!("{PERSON} Begin, {name}.")});
            return Call { id, name: "spawn_agent", input };
        }
        // What comes while a lead's other calls run is there to be taken by its last one.
        let waits = if ends_turn && self.agent == "lead" { 4..12 } else { 4..6 };
        let (name, input) = match n % 16 {
            0 => ("list_agents", json!({})),
            1 => ("receipts", json!({})),
            2 if of_person => ("send_message", self.letter(n, &id)),
            3 => ("update_plan", json!({"steps": [{"text": id, "status": "in_progress"}]})),
            n if waits.contains(&n) => ("wait_agents", self.wait(mixed(number ^ i))),
            _ => ("bash", json!({"command": ground.command(n >> 8, &id, of_person)})),
        };
        Call { id, name, input }
    }

    fn others(&self) -> Vec<&'static str> {
        let crew = if self.model == GUEST { GUEST_CREW } else { CREW };
        crew.into_iter().filter(|name| *name != self.agent).collect()
    }

    /// Some of the others, in some order. Who is waited for may wait, too, and some such waits are
    /// refused; none lasts so long that it holds a history up.
    fn wait(&self, n: u64) -> Value {
        let mut names = self.others();
        names.rotate_left((n >> 16) as usize % 3);
        names.truncate(1 + (n >> 20) as usize % 3);
        let mode = ["all", "any"][(n >> 24) as usize % 2];
        let timeout = ["60ms", "150ms", "300ms"][(n >> 28) as usize % 3];
        json!({"names": names, "mode": mode, "timeout": timeout})
    }

    /// A message to another agent.
    fn letter(&self, n: u64, id: &str) -> Value {
        let others = self.others();
        let to = others[(n >> 16) as usize % others.len()];
        let urgency = ["follow_up", "after_tools", "next_boundary"][(n >> 24) as usize % 3];
        json!({"to": to, "text": format!("word of {}: «{id}»", self.agent), "id": format!("l-{id}"), "urgency": urgency})
    }
}

impl Ground {
    /// A command that says when it begins and when it has done all it should.
    fn command(&self, n: u64, id: &str, may_be_long: bool) -> String {
        let (marker, mark) = (self.marker.display(), &self.mark);
        let begin = format!("export CRASH_MARK={mark}/{id}; echo begin {id} >>{marker}; echo at work");
        let end = format!("echo end {id} >>{marker}");
        let leaves = "setsid sleep 300 & (setsid sleep 301 &)";
        match n % 12 {
            // Only mail, a stop or a crash ends it.
            7 if may_be_long => format!("{begin}; sleep 40; {end}"),
            0..4 | 7 => format!("{begin}; {end}"),
            4 | 5 => format!("{begin}; sleep 0.0{}; {end}", 2 + n / 12 % 8),
            6 => format!("{begin}; sleep 0.3; {end}"),
            8 => format!("{begin}; {leaves}; {end}"),
            9 => format!("{begin}; {leaves}; sleep 0.2; {end}"),
            10 => format!("{begin}; trap '' TERM; sleep 0.25; {end}"),
            _ => format!("{begin}; {end}; exit 3"),
        }
    }
}

fn wanted_agent(text: &str) -> Option<&str> {
    let rest = text.split(SPAWN).nth(1)?;
    rest.split(|c: char| !c.is_ascii_alphanumeric()).next().filter(|name| !name.is_empty())
}

/// The text blocks of a message, joined.
pub(crate) fn texts(message: &Value) -> String {
    let blocks = message["content"].as_array().into_iter().flatten();
    let texts = blocks.filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": [{"type": "text", "text": text}]})
    }

    #[test]
    fn the_same_conversation_gets_the_same_reply_and_another_one_other_ids() {
        let ground = Ground { marker: "/m".into(), mark: "w".to_owned() };
        let mut ids = std::collections::HashSet::new();
        for n in 0..64 {
            let messages = [user(&format!("{PERSON} do {n}"))];
            for agent in CREW {
                let reply = Conversation::of(HOST, agent, &messages).reply(&ground);
                assert_eq!(reply, Conversation::of(HOST, agent, &messages).reply(&ground));
                assert!(reply.calls.iter().all(|call| ids.insert(call.id.clone())));
            }
        }
        assert!(ids.len() > 64);
    }

    #[test]
    fn who_is_told_to_finish_asks_for_nothing_and_is_not_failed() {
        let ground = Ground { marker: "/m".into(), mark: "w".to_owned() };
        for n in 0..64 {
            let messages = [user(&format!("{PERSON} {FINISH} {n}"))];
            let conversation = Conversation::of(HOST, "a1", &messages);
            assert_eq!(conversation.reply(&ground).calls, []);
            assert_eq!(conversation.manner(), Manner::AtOnce);
        }
    }

    #[test]
    fn a_lead_that_is_told_to_spawn_does() {
        assert_eq!(wanted_agent("do @spawn=b7, then rest"), Some("b7"));
        assert_eq!(wanted_agent("do nothing"), None);
    }
}
