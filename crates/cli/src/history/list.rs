//! The list of sessions, as a table and as JSON. Pure, but for the clock of [`Now`].

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use midturn_core::engine::ports::archive::SessionSummary;
use midturn_core::rules::time::{Micros, Span};
use midturn_view::words::{self};
use midturn_wire::spent::Spent;
use serde_json::{Value, json};

use super::SessionState;
use crate::client::table::{Side, count, duration, table};
use crate::env;

/// What the agents of each session have used, by its id.
pub(super) type Used = BTreeMap<String, Spent>;

/// The instant of the list, and whose clock it is read on.
pub(super) struct Now {
    /// Microseconds since 1970.
    pub(super) micros: u64,
    /// The time zone.
    pub(super) zone: TimeZone,
}

impl Now {
    /// The machine's clock and time zone.
    pub(super) fn of_machine() -> Self {
        Self { micros: env::now().0, zone: TimeZone::system() }
    }

    fn since(&self, micros: u64) -> Span {
        Micros(self.micros).since(Micros(micros))
    }

    /// Day and minute.
    pub(super) fn day(&self, micros: u64) -> String {
        let instant = i64::try_from(micros).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
        let Some(instant) = instant else { return "?".to_owned() };
        instant.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
    }
}

/// The table.
pub(super) fn text(sessions: &[SessionSummary], live: &BTreeSet<String>, used: &Used, now: &Now) -> String {
    let columns = [
        ("SESSION", Side::Left),
        ("BEGAN", Side::Left),
        ("AGE", Side::Right),
        ("AGENTS", Side::Right),
        ("TOKENS", Side::Right),
        ("COST", Side::Right),
        ("STATE", Side::Left),
        ("TASK", Side::Left),
    ];
    let row = |session: &SessionSummary| {
        let began = session.record.began_at;
        let spent = used.get(session.record.id.as_str()).filter(|spent| spent.tokens > 0);
        vec![
            session.record.id.to_string(),
            now.day(began),
            duration(now.since(began)),
            session.agents.to_string(),
            spent.map(|spent| count(spent.tokens)).unwrap_or_default(),
            spent.map(Spent::money).unwrap_or_default(),
            state(session, live),
            words::short(&session.record.title),
        ]
    };
    let rows: Vec<Vec<String>> = sessions.iter().map(row).collect();
    let resumable = sessions.iter().any(|session| SessionState::of(session, live) == SessionState::Resumable);
    let hint = if resumable {
        "\n`midturn resume SESSION` goes on with one that was cut off or shut down\n"
    } else {
        ""
    };
    table(&columns, &rows) + hint
}

fn state(session: &SessionSummary, live: &BTreeSet<String>) -> String {
    match SessionState::of(session, live) {
        SessionState::Running => format!("running ({} at work)", session.running),
        SessionState::Idle => "idle".to_owned(),
        SessionState::Resumable => {
            format!("can be resumed ({} at work)", session.running + session.shut_down)
        }
        SessionState::Ended => "ended".to_owned(),
    }
}

/// All of them, one object: of each the fields of the interface's `Session` (docs/protocol.md) that
/// are kept, and its `state`.
pub(super) fn json(sessions: &[SessionSummary], live: &BTreeSet<String>, used: &Used) -> Value {
    let listed = |session: &SessionSummary| {
        let SessionSummary { record, epoch, agents, running, last_seq, .. } = session;
        json!({
            "session": record.id,
            "title": record.title,
            "folder": record.folder,
            "began_at": Micros(record.began_at),
            "epoch": epoch,
            "live": live.contains(record.id.as_str()),
            "agents": agents,
            "running": running,
            "last_seq": last_seq,
            "spent": used.get(record.id.as_str()),
            "state": SessionState::of(session, live),
        })
    };
    json!({"sessions": sessions.iter().map(listed).collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use midturn_core::engine::ports::archive::SessionRecord;
    use midturn_core::rules::id::SessionId;

    use super::*;

    fn session(id: &str, began_at: u64, running: u64, title: &str) -> SessionSummary {
        let record = SessionRecord {
            id: SessionId::new(id),
            began_at: began_at * 1_000_000,
            folder: "/w".into(),
            title: title.into(),
            memo: Value::Null,
        };
        SessionSummary {
            record,
            epoch: 1,
            agents: 3,
            running,
            shut_down: 0,
            waiting: 0,
            last_seq: 9,
            last_t: Micros(5),
        }
    }

    fn all() -> Vec<SessionSummary> {
        vec![
            session("d", 1_795_300_000, 2, "Rename open()\nto load()"),
            session("c", 1_795_299_000, 0, "Review"),
            session("b", 1_795_200_000, 1, "Fix \u{1b}[31mthe test"),
            SessionSummary { shut_down: 2, ..session("b2", 1_795_100_000, 0, "Port") },
            session("a", 1_795_000_000, 0, "Look"),
        ]
    }

    #[test]
    fn a_session_runs_idles_was_cut_off_or_has_ended() {
        let live = ["d", "c"].map(str::to_owned).into();
        let now = Now { micros: 1_795_300_042_000_000, zone: TimeZone::UTC };
        let expected = "\
SESSION  BEGAN                     AGE  AGENTS  TOKENS    COST  STATE                       TASK
d        2026-11-21 22:26         42 s       3                  running (2 at work)         Rename open()…
c        2026-11-21 22:10  17 min 22 s       3   12.3k  ~$0.25  idle                        Review
b        2026-11-20 18:40      1 d 3 h       3                  can be resumed (1 at work)  Fix the test
b2       2026-11-19 14:53      2 d 7 h       3                  can be resumed (2 at work)  Port
a        2026-11-18 11:06     3 d 11 h       3                  ended                       Look

`midturn resume SESSION` goes on with one that was cut off or shut down
";
        let usage = midturn_wire::agent::Usage { input: 12_000, output: 345, cached: 0 };
        let used =
            Used::from([("c".to_owned(), Spent::of([(usage, "0.25".parse().ok(), Some("2026-10-20"))]))]);
        assert_eq!(text(&all(), &live, &used, &now), expected);
        let states: Vec<_> =
            all().iter().map(|session| json(std::slice::from_ref(session), &live, &used)).collect();
        let states: Vec<_> =
            states.iter().map(|json| json["sessions"][0]["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["running", "idle", "resumable", "resumable", "ended"]);
    }
}
