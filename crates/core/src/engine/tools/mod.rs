//! The coordinator's own tools (semantics.md, section 9). They are offered to every agent,
//! act on the session, and take no time of their own.

mod agents;
mod messages;
mod plan;
mod wait;

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::ports::{CallTraits, Output, Phase, Returned, Tool, ToolCall, ToolSpec};
use super::session::{AgentCell, Session};
use crate::rules::conversation::ToolUse;
use crate::rules::words::words;

words! {
    /// The coordinator's tools by their names, in the order in which they are offered.
    enum Own {
        Spawn = "spawn_agent",
        Send = "send_message",
        Receipts = "receipts",
        Wait = "wait_agents",
        List = "list_agents",
        Stop = "stop_agent",
        Close = "close_agent",
        Plan = "update_plan",
    }
}

/// The work tools that only read.
const READERS: [&str; 3] = ["read", "grep", "glob"];

/// The names, in the order in which they are offered.
pub fn names() -> impl Iterator<Item = &'static str> {
    Own::WORDS.iter().copied()
}

/// Whether it is the coordinator that runs calls of this tool.
pub fn is_own(name: &str) -> bool {
    Own::of(name).is_some()
}

/// Whether calls of a tool of this name may run beside others (semantics.md, section 5).
pub fn is_safe(name: &str) -> bool {
    READERS.contains(&name) || Own::of(name).is_some_and(Own::only_looks)
}

/// What the model is told of them. They are made once: eight schemas cost more than a turn.
pub(crate) fn specs(session: &Session) -> Vec<Arc<ToolSpec>> {
    static FIXED: LazyLock<Vec<Arc<ToolSpec>>> =
        LazyLock::new(|| Own::ALL.into_iter().filter_map(Own::fixed_spec).map(Arc::new).collect());
    // Only this one tells of the session: what can be spawned in it.
    let spawn = session.spawn_spec.get_or_init(|| Arc::new(agents::spawn_spec(session)));
    std::iter::once(spawn).chain(FIXED.iter()).cloned().collect()
}

/// The coordinator's tool of that name.
pub(crate) fn find(session: &Arc<Session>, cell: &Arc<AgentCell>, name: &str) -> Option<Arc<dyn Tool>> {
    let own = Own::of(name)?;
    Some(Arc::new(OwnTool { own, session: session.clone(), cell: cell.clone() }))
}

impl Own {
    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.as_str() == name)
    }

    /// Whether it changes nothing.
    fn only_looks(self) -> bool {
        match self {
            Self::Receipts | Self::List => true,
            Self::Spawn | Self::Send | Self::Wait | Self::Stop | Self::Close | Self::Plan => false,
        }
    }

    /// Whether what it does to others arrives there in its order among all that arrives.
    fn reaches_others(self) -> bool {
        match self {
            Self::Spawn | Self::Send | Self::Stop | Self::Close => true,
            Self::Receipts | Self::Wait | Self::List | Self::Plan => false,
        }
    }

    /// `None`: it differs from session to session.
    fn fixed_spec(self) -> Option<ToolSpec> {
        let name = self.as_str();
        Some(match self {
            Self::Spawn => return None,
            Self::Send => spec::<messages::SendInput>(name, messages::SEND),
            Self::Receipts => spec::<messages::ReceiptsInput>(name, messages::RECEIPTS),
            Self::Wait => spec::<wait::WaitInput>(name, wait::WAIT),
            Self::List => spec::<agents::ListInput>(name, agents::LIST),
            Self::Stop => spec::<agents::StopInput>(name, agents::STOP),
            Self::Close => spec::<agents::CloseInput>(name, agents::CLOSE),
            Self::Plan => spec::<plan::PlanInput>(name, plan::PLAN),
        })
    }
}

fn spec<T: JsonSchema>(name: &str, description: &str) -> ToolSpec {
    let mut schema = schemars::schema_for!(T).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
    }
    ToolSpec { name: name.into(), description: description.into(), input_schema: schema }
}

/// The arguments, or a text that says what is wrong and where.
fn input<T: DeserializeOwned>(call: &ToolUse) -> Result<T, Output> {
    serde_path_to_error::deserialize(&call.input).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!(" at `{path}`") };
        Output::error(format!("The arguments don't fit{place}: {}", error.inner()))
    })
}

struct OwnTool {
    own: Own,
    session: Arc<Session>,
    cell: Arc<AgentCell>,
}

impl OwnTool {
    async fn act(&self, call: &ToolCall) -> Result<Output, Output> {
        let (session, cell) = (&self.session, &self.cell);
        // By the time the call arrives its run may have ended.
        let run = cell.mailbox.run_token();
        if self.own.reaches_others() {
            session.clock.turn(Phase::Caused).await;
        }
        match self.own {
            Own::Spawn => agents::spawn(session, cell, input(&call.call)?, &run).await,
            Own::Send => messages::send(session, cell, input(&call.call)?).await,
            Own::Receipts => messages::receipts(session, cell, input(&call.call)?),
            Own::Wait => wait::wait(session, cell, call).await,
            Own::List => agents::list(session, cell, input(&call.call)?),
            Own::Stop => agents::stop(session, cell, call, input(&call.call)?).await,
            Own::Close => agents::close(session, cell, call, input(&call.call)?).await,
            Own::Plan => plan::update(session, cell, input(&call.call)?).await,
        }
    }
}

#[async_trait]
impl Tool for OwnTool {
    fn spec(&self) -> Arc<ToolSpec> {
        Arc::new(self.own.fixed_spec().unwrap_or_else(|| agents::spawn_spec(&self.session)))
    }

    fn traits(&self, _: &ToolUse) -> CallTraits {
        CallTraits { safe: self.own.only_looks(), ..CallTraits::COORDINATES }
    }

    async fn call(&self, call: ToolCall) -> Returned {
        let output = self.act(&call).await.unwrap_or_else(|error| error);
        // `wait_agents` has waited for its turn itself: what it takes is taken at its end.
        if self.own != Own::Wait {
            ends(&self.session, &call).await;
        }
        output.into()
    }
}

/// Waits for the call's turn to end in this instant.
async fn ends(session: &Session, call: &ToolCall) {
    session.clock.turn(Phase::ToolEnd(call.agent_index, turn_index(call))).await;
}

fn turn_index(call: &ToolCall) -> u32 {
    u32::try_from(call.index).unwrap_or(u32::MAX)
}

/// What answers a call of a tool that doesn't exist; `known` are those that do.
pub(crate) async fn no_such_tool(session: &Session, known: &[Arc<ToolSpec>], call: &ToolCall) -> Returned {
    ends(session, call).await;
    let known: Vec<&str> = known.iter().map(|spec| &*spec.name).collect();
    let text = format!("There is no tool `{}`. There are: {}.", call.call.name, known.join(", "));
    Output::error(text).into()
}
