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

use super::ports::{CallTraits, Clock, MailWatch, Output, Phase, Returned, Tool, ToolCall, ToolSpec};
use super::session::{AgentCell, Session};
use crate::rules::conversation::ToolUse;
use crate::rules::mail::Urgency;

/// The names, in the order in which they are offered.
pub const NAMES: [&str; 8] = [
    "spawn_agent",
    "send_message",
    "receipts",
    "wait_agents",
    "list_agents",
    "stop_agent",
    "close_agent",
    "update_plan",
];

/// What the model is told of them. They are made once: eight schemas cost more than a turn.
pub(crate) fn specs(session: &Session) -> Vec<Arc<ToolSpec>> {
    static FIXED: LazyLock<Vec<Arc<ToolSpec>>> = LazyLock::new(|| {
        let fixed = NAMES.iter().filter_map(|name| Own::of(name)?.fixed_spec());
        fixed.map(Arc::new).collect()
    });
    // Only this one tells of the session: what can be spawned in it.
    let spawn = session.spawn_spec.get_or_init(|| Arc::new(agents::spawn_spec(session)));
    std::iter::once(spawn).chain(FIXED.iter()).cloned().collect()
}

/// The coordinator's tool of that name.
pub(crate) fn find(session: &Arc<Session>, cell: &Arc<AgentCell>, name: &str) -> Option<Arc<dyn Tool>> {
    let own = Own::of(name)?;
    Some(Arc::new(OwnTool { own, session: session.clone(), cell: cell.clone() }))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Own {
    Spawn,
    Send,
    Receipts,
    Wait,
    List,
    Stop,
    Close,
    Plan,
}

impl Own {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "spawn_agent" => Self::Spawn,
            "send_message" => Self::Send,
            "receipts" => Self::Receipts,
            "wait_agents" => Self::Wait,
            "list_agents" => Self::List,
            "stop_agent" => Self::Stop,
            "close_agent" => Self::Close,
            "update_plan" => Self::Plan,
            _ => return None,
        })
    }

    fn spec(self, session: &Session) -> ToolSpec {
        self.fixed_spec().unwrap_or_else(|| agents::spawn_spec(session))
    }

    /// `None`: it differs from session to session.
    fn fixed_spec(self) -> Option<ToolSpec> {
        Some(match self {
            Self::Spawn => return None,
            Self::Send => spec::<messages::SendInput>("send_message", messages::SEND),
            Self::Receipts => spec::<messages::ReceiptsInput>("receipts", messages::RECEIPTS),
            Self::Wait => spec::<wait::WaitInput>("wait_agents", wait::WAIT),
            Self::List => spec::<agents::ListInput>("list_agents", agents::LIST),
            Self::Stop => spec::<agents::StopInput>("stop_agent", agents::STOP),
            Self::Close => spec::<agents::CloseInput>("close_agent", agents::CLOSE),
            Self::Plan => spec::<plan::PlanInput>("update_plan", plan::PLAN),
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
    /// What the call does to others arrives there in its order among all that arrives.
    async fn arrives(&self) {
        self.session.clock.turn(Phase::Caused).await;
    }

    async fn act(&self, call: &ToolCall) -> Result<Output, Output> {
        match self.own {
            Own::Spawn => {
                let run = self.cell.mailbox.run_token();
                self.arrives().await;
                agents::spawn(&self.session, &self.cell, input(&call.call)?, &run).await
            }
            Own::Send => {
                self.arrives().await;
                messages::send(&self.session, &self.cell, input(&call.call)?).await
            }
            Own::Receipts => messages::receipts(&self.session, &self.cell, input(&call.call)?),
            Own::Wait => wait::wait(&self.session, &self.cell, call).await,
            Own::List => agents::list(&self.session, &self.cell, input(&call.call)?),
            Own::Stop => {
                self.arrives().await;
                agents::stop(&self.session, &self.cell, call, input(&call.call)?).await
            }
            Own::Close => {
                self.arrives().await;
                agents::close(&self.session, &self.cell, call, input(&call.call)?).await
            }
            Own::Plan => plan::update(&self.session, &self.cell, input(&call.call)?).await,
        }
    }
}

#[async_trait]
impl Tool for OwnTool {
    fn spec(&self) -> Arc<ToolSpec> {
        Arc::new(self.own.spec(&self.session))
    }

    fn traits(&self, _: &ToolUse) -> CallTraits {
        match self.own {
            Own::Receipts | Own::List => CallTraits { safe: true, ..CallTraits::COORDINATES },
            Own::Spawn | Own::Send | Own::Wait | Own::Stop | Own::Close | Own::Plan => {
                CallTraits::COORDINATES
            }
        }
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

/// A look at an agent's mailbox.
pub(crate) struct Watch(pub(crate) Arc<AgentCell>);

#[async_trait]
impl MailWatch for Watch {
    fn pending(&self) -> Option<Urgency> {
        self.0.mailbox.pending()
    }

    async fn reached(&self, at_least: Urgency) {
        MailWatch::reached(&self.0.mailbox, at_least).await;
    }
}

/// What answers a call of a tool that doesn't exist.
pub(crate) struct NoSuchTool {
    known: Vec<Arc<str>>,
    clock: Arc<dyn Clock>,
}

impl NoSuchTool {
    pub(crate) fn new(known: Vec<Arc<str>>, clock: Arc<dyn Clock>) -> Self {
        Self { known, clock }
    }
}

#[async_trait]
impl Tool for NoSuchTool {
    fn spec(&self) -> Arc<ToolSpec> {
        Arc::new(ToolSpec { name: "".into(), description: "".into(), input_schema: serde_json::Value::Null })
    }

    fn traits(&self, _: &ToolUse) -> CallTraits {
        CallTraits::COORDINATES
    }

    async fn call(&self, call: ToolCall) -> Returned {
        self.clock.turn(Phase::ToolEnd(call.agent_index, turn_index(&call))).await;
        let text = format!("There is no tool `{}`. There are: {}.", call.call.name, self.known.join(", "));
        Output::error(text).into()
    }
}
