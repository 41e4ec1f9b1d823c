//! The statements that write, each for any number of rows at once.
//!
//! A driver costs much per statement and little per value, so the rows of a whole group go
//! into a few statements, whose numbers of rows are powers of two: that way a prepared one is
//! nearly always there.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::cell::Kind::{self, Int, Json, Text};

/// The most rows of one statement: with the 18 values of the widest row far below the number
/// of values that either database takes.
pub(crate) const MOST_ROWS: usize = 128;

/// How a statement is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// A statement with a list of rows in its middle.
#[derive(Debug)]
pub(crate) struct Statement {
    before: &'static str,
    pub(crate) kinds: &'static [Kind],
    after: &'static str,
}

/// The statements of a group, in the order in which they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Into {
    Agents,
    Messages,
    Receipts,
    ChatMessages,
    RunStarts,
    RunEnds,
    Progress,
    Events,
}

impl Into {
    pub(crate) fn statement(self) -> &'static Statement {
        match self {
            Self::Agents => &Statement {
                before: "INSERT INTO agents (session, name, position, role, parent, prompt, model, system, settings, memo) VALUES ",
                kinds: &[Text, Text, Int, Text, Text, Text, Text, Text, Json, Json],
                after: "",
            },
            // The same id from the same sender to the same receiver is the same message (semantics.md,
            // section 8).
            Self::Messages => &Statement {
                before: "INSERT INTO messages (session, sender, id, receiver, text, urgency, kind, address, asked_urgency, only_run, expires_at, seq, accepted_at, state, receipt, rank, settled) VALUES ",
                kinds: &[
                    Text, Text, Text, Text, Text, Text, Text, Text, Text, Int, Int, Int, Int, Text, Json,
                    Int, Int,
                ],
                after: " ON CONFLICT DO NOTHING",
            },
            // States only move forward.
            Self::Receipts => &Statement {
                before: "UPDATE messages SET state = v.column5, receipt = v.column6, rank = v.column7, settled = v.column8 FROM (VALUES ",
                kinds: &[Text, Text, Text, Text, Text, Json, Int, Int],
                after: ") AS v WHERE messages.session = v.column1 AND messages.sender = v.column2 AND messages.id = v.column3 AND messages.receiver = v.column4 AND messages.rank < v.column7",
            },
            Self::ChatMessages => &Statement {
                before: "INSERT INTO chat_messages (session, agent, seq, run, turn, epoch, role, message_type, content, tool_name, tool_call_id, tool_result, metadata, created_at) VALUES ",
                kinds: &[Text, Text, Int, Int, Int, Int, Text, Text, Text, Text, Text, Json, Json, Int],
                after: "",
            },
            Self::RunStarts => &Statement {
                before: "INSERT INTO runs (session, agent, run, epoch, started_seq) VALUES ",
                kinds: &[Text, Text, Int, Int, Int],
                after: " ON CONFLICT (session, agent, run) DO NOTHING",
            },
            // The first end of a run stands.
            Self::RunEnds => &Statement {
                before: "INSERT INTO runs (session, agent, run, epoch, outcome, reason, text, changes, owed_to, restarts, ended_seq) VALUES ",
                kinds: &[Text, Text, Int, Int, Text, Text, Text, Json, Text, Int, Int],
                after: " ON CONFLICT (session, agent, run) DO UPDATE SET outcome = excluded.outcome, reason = excluded.reason, text = excluded.text, changes = excluded.changes, owed_to = excluded.owed_to, restarts = excluded.restarts, ended_seq = excluded.ended_seq WHERE runs.outcome IS NULL",
            },
            Self::Progress => &Statement {
                before: "INSERT INTO agent_progress (session, agent, run, turn, turn_seq, stop_seq, turns, calls, closed, resumed, plan) VALUES ",
                kinds: &[Text, Text, Int, Int, Int, Int, Int, Int, Int, Int, Json],
                after: " ON CONFLICT (session, agent) DO UPDATE SET run = excluded.run, turn = excluded.turn, turn_seq = excluded.turn_seq, stop_seq = excluded.stop_seq, turns = excluded.turns, calls = excluded.calls, closed = excluded.closed, resumed = excluded.resumed, plan = excluded.plan",
            },
            Self::Events => &Statement {
                before: "INSERT INTO events (session, seq, t, agent, run, turn, type, data) VALUES ",
                kinds: &[Text, Int, Int, Text, Int, Int, Text, Text],
                after: "",
            },
        }
    }
}

/// How many rows the next statement takes when so many are left.
pub(crate) fn rows_at_once(left: usize) -> usize {
    let least = left.min(MOST_ROWS);
    1 << least.max(1).ilog2()
}

impl Statement {
    /// Its text with so many rows.
    pub(crate) fn text(&self, dialect: Dialect, rows: usize) -> String {
        let mut text = self.before.to_owned();
        for row in 0..rows {
            text.push_str(if row == 0 { "(" } else { ",(" });
            for (column, kind) in self.kinds.iter().enumerate() {
                if column > 0 {
                    text.push(',');
                }
                placeholder(&mut text, dialect, row * self.kinds.len() + column + 1, *kind);
            }
            text.push(')');
        }
        text.push_str(self.after);
        text
    }
}

fn placeholder(text: &mut String, dialect: Dialect, number: usize, kind: Kind) {
    // Writing to a string can't fail.
    let _ = match (dialect, kind) {
        (Dialect::Sqlite, _) => text.write_char('?'),
        (Dialect::Postgres, Kind::Json) => write!(text, "${number}::json"),
        (Dialect::Postgres, Kind::Int | Kind::Text) => write!(text, "${number}"),
    };
}

/// A query that is written with `?`, and `?::json` for JSON that is kept, in the way of the dialect.
pub(crate) fn in_dialect(dialect: Dialect, query: &'static str) -> Cow<'static, str> {
    if dialect == Dialect::Sqlite {
        // It has no such type, and would take the cast for one to a number.
        return if query.contains("::json") { query.replace("::json", "").into() } else { query.into() };
    }
    let mut text = String::with_capacity(query.len() + 16);
    for (number, part) in query.split('?').enumerate() {
        if number > 0 {
            placeholder(&mut text, dialect, number, Kind::Text);
        }
        text.push_str(part);
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_dialects_number_their_values_through_all_rows() {
        let sqlite = Into::RunStarts.statement().text(Dialect::Sqlite, 2);
        assert!(sqlite.contains("VALUES (?,?,?,?,?),(?,?,?,?,?) ON"));
        let postgres = Into::Receipts.statement().text(Dialect::Postgres, 2);
        assert!(postgres.contains("($1,$2,$3,$4,$5,$6::json,$7,$8),($9,"));
        let query = "a = ? AND b > ?::json";
        assert_eq!(in_dialect(Dialect::Postgres, query), "a = $1 AND b > $2::json");
        assert_eq!(in_dialect(Dialect::Sqlite, query), "a = ? AND b > ?");
    }

    #[test]
    fn any_number_of_rows_is_a_sum_of_few_powers_of_two() {
        for rows in [1, 2, 3, 64, 100, 128, 1_000] {
            let (mut left, mut statements) = (rows, 0);
            while left > 0 {
                left -= rows_at_once(left);
                statements += 1;
            }
            assert!(statements <= rows / MOST_ROWS + 7, "{rows}: {statements}");
        }
    }
}
