//! `update_plan`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::engine::journal::Draft;
use crate::engine::ports::Output;
use crate::engine::session::{AgentCell, Session};
use crate::rules::event::{EventKind, PlanStep};

pub(super) const PLAN: &str = "Replaces your plan. People see it; say what is done and what comes next.";

/// So many steps a plan may have.
const STEPS: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanInput {
    /// All steps, in order.
    steps: Vec<PlanStep>,
}

pub(super) async fn update(
    session: &Session,
    cell: &Arc<AgentCell>,
    input: PlanInput,
) -> Result<Output, Output> {
    if input.steps.len() > STEPS {
        return Err(Output::error(format!("A plan has at most {STEPS} steps.")));
    }
    cell.state.lock().plan = input.steps.clone();
    let draft = Draft::event(cell.place(), EventKind::PlanUpdated { steps: input.steps });
    session.journal.record(draft).await.map_err(|error| Output::error(error.to_string()))?;
    Ok(Output::ok("The plan is updated."))
}
