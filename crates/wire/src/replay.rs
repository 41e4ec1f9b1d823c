//! What if: a scenario or a session that was recorded, played again with messages moved.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// What is to be played: a scenario's text, a session that rests, or a replay that is kept. Exactly one of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// A scenario, as its file has it (docs/scenarios.md), without real tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub scenario: Option<String>,
    /// A session's id: what was recorded of it is played, with simulated tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub session: Option<String>,
    /// A replay that is kept: its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub replay: Option<String>,
    /// Messages and actions to move, at most 64: `ID=+500ms`, `ID=-2s`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub shift: Vec<String>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Played {
    /// What the scenario is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// As it was.
    pub before: Events,
    /// With the messages moved.
    pub after: Events,
    /// What differs, in lines: outcomes of calls, injections, ends of runs.
    pub changes: Vec<String>,
    /// What would not have been done.
    pub spared: Spared,
}

/// What happened in a play.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Events {
    /// The events, in order (docs/scenarios.md, section 4).
    #[schema(value_type = Vec<Object>)]
    pub events: Vec<Box<RawValue>>,
}

/// What the moved play doesn't do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Spared {
    /// Calls that started as it was and don't now.
    pub calls: u64,
    /// The files that those would have written and no other call does.
    pub files: Vec<String>,
    /// How many tokens fewer; negative: more.
    pub tokens: i64,
}

/// What is kept for a page to show.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// A scenario, as its file has it (docs/scenarios.md).
    pub scenario: String,
}

/// A replay that is kept for a page to show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Kept {
    /// What it is asked for by. The newest few are kept, as long as the process lives.
    pub id: String,
}
