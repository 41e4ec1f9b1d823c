//! Urgent mail in an agent's mailbox: files named `ORDER-URGENCY[c]-ID`, with a `c` from when something was done
//! because of them and they can't be taken back any more.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Sender;
use serde::Deserialize;

use super::folder::Folder;

const URGENT: &str = "3";
const URGENT_COMMITTED: &str = "3c";
const ORDER_DIGITS: usize = 20;

/// How often what was there is withdrawn while we look, at most.
const LOOKS: u32 = 100;

#[derive(Deserialize)]
struct Mail {
    from: String,
}

/// The sender of the first urgent message, which is committed now.
pub(super) fn commit_urgent(new: &Folder) -> Option<Sender> {
    for _ in 0..LOOKS {
        let mut names = new.names().ok()?;
        names.sort_unstable();
        let urgent = names.iter().filter_map(|name| Some((name, committed(name)?)));
        // One that can't be read can't be committed either: half of it may be missing yet.
        let mut readable = urgent.filter_map(|(name, committed)| {
            let (Mail { from }, _) = new.read(name.as_ref()).ok()?;
            Some((name, committed, from))
        });
        let (name, committed, from) = readable.next()?;
        match new.rename(name.as_ref(), new, committed.as_ref()) {
            Ok(()) => return Some(sender(&from)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    None
}

/// The name that it has once it is committed. `None`: it isn't urgent.
fn committed(name: &OsStr) -> Option<String> {
    let name = std::str::from_utf8(name.as_bytes()).ok()?;
    let (order, rest) = name.split_once('-')?;
    let (urgency, id) = rest.split_once('-')?;
    let is_order = order.len() == ORDER_DIGITS && order.bytes().all(|b| b.is_ascii_digit());
    let is_urgent = [URGENT, URGENT_COMMITTED].contains(&urgency);
    (is_order && is_urgent && !id.is_empty()).then(|| format!("{order}-{URGENT_COMMITTED}-{id}"))
}

/// Other programs' names may hold anything; what reaches a model's eyes is a name of ours.
fn sender(from: &str) -> Sender {
    if from == "user" {
        return Sender::User;
    }
    let tame = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let name: String = from.chars().map(tame).collect();
    let name: String = name.trim_start_matches(['-', '_']).chars().take(50).collect();
    let named = AgentName::new(from).or_else(|_| AgentName::new(&name));
    let named = named.or_else(|_| AgentName::new(format!("agent-{name}")));
    named.map_or(Sender::User, Sender::Agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_urgent_is_committed() {
        let order = "00000000000000000012";
        for (rest, expected) in [
            ("3-m1", Some("3c-m1")),
            ("3c-m1", Some("3c-m1")),
            ("3-m-1", Some("3c-m-1")),
            ("2-m1", None),
            ("2c-m1", None),
            ("3-", None),
            ("3", None),
            ("33-m", None),
        ] {
            let expected = expected.map(|rest| format!("{order}-{rest}"));
            assert_eq!(committed(format!("{order}-{rest}").as_ref()), expected, "{rest}");
        }
        assert_eq!(committed("12-3-m1".as_ref()), None);
    }

    #[test]
    fn a_sender_s_name_holds_nothing_but_a_name() {
        for (from, expected) in [
            ("user", "the user"),
            ("lead", "lead"),
            ("mcp:Cursor", "mcp-cursor"),
            ("a]\n[x", "a---x"),
            ("parent", "agent-parent"),
            ("", "agent-"),
        ] {
            assert_eq!(sender(from).spoken(), expected);
        }
    }
}
