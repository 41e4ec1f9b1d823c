//! A message to a joined agent, and the name of its file: what a hook has to know before it reads anything.

use std::fmt;
use std::str::FromStr;

use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::{Point, Sender, Urgency};
use midturn_core::rules::wording;
use serde::{Deserialize, Serialize};

/// A message, as its file holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its id, unique per sender.
    pub id: MessageId,
    /// `user`, or the agent that sent it, by its name or id.
    pub from: String,
    /// What it says.
    pub text: String,
    /// How soon it acts.
    pub urgency: Urgency,
    /// When it was accepted, in microseconds since 1970.
    pub sent_at: u64,
    /// When it is returned as expired, if it is still queued and not committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// The program delivers it itself: it acts like any other, and is never injected by us.
    #[serde(default, skip_serializing_if = "is_false")]
    pub own: bool,
}

fn is_false(own: &bool) -> bool {
    !own
}

impl Message {
    /// Who sent it; `None`: nobody that can be named.
    pub fn sender(&self) -> Option<Sender> {
        if self.from == "user" { Some(Sender::User) } else { tame(&self.from).map(Sender::Agent) }
    }

    /// What the model reads. A person's words are marked as such: what a hook gives is never the prompt itself.
    pub(crate) fn told(&self) -> String {
        let from = self.sender();
        from.map(|from| wording::words(Point::D, &from, self.urgency, &self.text)).unwrap_or_default()
    }

    pub(crate) fn name(&self, order: u64) -> Name {
        Name { order, urgency: self.urgency, committed: false, own: self.own, key: key(&self.from, &self.id) }
    }
}

/// A name of ours for a word of another program's, which may hold anything: what reaches a model's eyes or a person's
/// is never a person's name. `None`: nothing of it can be in one.
pub(crate) fn tame(word: &str) -> Option<AgentName> {
    let tame = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let name: String = word.chars().map(tame).collect();
    let name: String = name.trim_start_matches(['-', '_']).chars().take(50).collect();
    let named = AgentName::new(word).or_else(|_| AgentName::new(&name));
    named.or_else(|_| AgentName::new(format!("agent-{name}"))).ok()
}

/// The one text of what is handed over together, in order of arrival.
pub(crate) fn told(messages: &[Message]) -> String {
    let all: Vec<String> = messages.iter().map(Message::told).collect();
    all.join("\n\n")
}

/// Tells messages apart in names of files: ids are texts of any kind. Who looks for an id reads the file, too.
pub(crate) fn key(from: &str, id: &MessageId) -> u64 {
    let bytes = from.bytes().chain([0]).chain(id.as_str().bytes());
    // FNV-1a.
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The name of a message's file: `ORDER-URGENCY[c][o]-KEY`. Names sort in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// Its place: later ones are greater.
    pub order: u64,
    /// How soon it acts.
    pub urgency: Urgency,
    /// It has cost a call: it can't be withdrawn any more.
    pub committed: bool,
    /// The program delivers it itself.
    pub own: bool,
    /// Of sender and id.
    pub key: u64,
}

const LADDER: [Urgency; 4] = [Urgency::FollowUp, Urgency::AfterTools, Urgency::NextBoundary, Urgency::Urgent];

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rung = LADDER.iter().position(|rung| *rung == self.urgency).unwrap_or_default();
        let committed = if self.committed { "c" } else { "" };
        let own = if self.own { "o" } else { "" };
        write!(f, "{:020}-{rung}{committed}{own}-{:016x}", self.order, self.key)
    }
}

impl FromStr for Name {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let mut parts = name.split('-');
        let (Some(order), Some(how), Some(key), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(());
        };
        let rung = how.get(..1).and_then(|digit| digit.parse::<usize>().ok()).ok_or(())?;
        let flags = how.get(1..).unwrap_or_default();
        let read = Self {
            order: order.parse().map_err(drop)?,
            urgency: *LADDER.get(rung).ok_or(())?,
            committed: flags.contains('c'),
            own: flags.contains('o'),
            key: u64::from_str_radix(key, 16).map_err(drop)?,
        };
        // Whatever else stands there is not ours.
        if read.to_string() == name { Ok(read) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_senders_name_holds_nothing_but_a_name() {
        for (from, expected) in [
            ("user", "the user"),
            ("lead", "lead"),
            ("mcp:Cursor", "mcp-cursor"),
            ("a]\n[x", "a---x"),
            ("parent", "agent-parent"),
            ("", "agent-"),
        ] {
            let message = Message {
                id: MessageId::new("m"),
                from: from.to_owned(),
                text: String::new(),
                urgency: Urgency::Urgent,
                sent_at: 0,
                expires_at: None,
                own: false,
            };
            assert_eq!(message.sender().unwrap().spoken(), expected);
        }
    }

    #[test]
    fn names_are_read_as_they_are_written_and_sort_by_arrival() {
        for own in [false, true] {
            for committed in [false, true] {
                for urgency in LADDER {
                    let name = Name { order: 7, urgency, committed, own, key: 0xab };
                    assert_eq!(name.to_string().parse(), Ok(name));
                }
            }
        }
        let later = Name { order: 10, urgency: Urgency::FollowUp, committed: false, own: false, key: 0 };
        let sooner = Name { order: 9, urgency: Urgency::Urgent, committed: true, own: false, key: 9 };
        assert!(sooner < later && sooner.to_string() < later.to_string());
        for foreign in ["", "x", "1-2-3", "00000000000000000001-4-00000000000000ab", "../../x"] {
            assert_eq!(foreign.parse::<Name>(), Err(()), "{foreign}");
        }
    }
}
