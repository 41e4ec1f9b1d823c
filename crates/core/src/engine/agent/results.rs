//! What a turn's calls came to: their results are recorded and told, with what they took to tell in them.

use std::sync::Arc;

use super::Driver;
use crate::engine::deliver;
use crate::engine::journal::Draft;
use crate::engine::output::{SHOWN, capped};
use crate::engine::ports::Phase;
use crate::engine::report::Report;
use crate::engine::session::{Activity, ActivityKind, Claimed};
use crate::rules::conversation::{MessageKey, ToolResult};
use crate::rules::event::EventKind;
use crate::rules::id::{AgentName, CallId};
use crate::rules::mail::{Mail, Point};
use crate::rules::record::Line;

impl Driver {
    /// Records the results that are new, and the mail that `wait_agents` took for its own.
    pub(super) async fn tell_results(&mut self) {
        let committed: Arc<[MessageKey]> = match self.run.tools().is_some_and(|turn| turn.has_cost_news()) {
            true => self.mailbox().committed().into(),
            false => Arc::default(),
        };
        let news = self.run.tools().map(|turn| turn.news(&committed)).unwrap_or_default();
        let resolved = self.bench.requests.take_resolved();
        if news.is_empty() && resolved.is_empty() {
            return;
        }
        self.stops_are_told().await;
        let mut draft = Draft::default();
        resolved.into_iter().for_each(|kind| draft.tell(self.place(), kind));
        self.no_longer(&news);
        for result in &news {
            draft.tell(self.place(), finished(result));
            self.line(&mut draft, Line::Result(result.clone()));
            let claimed = self.cell.state.lock().claims.remove(&result.id);
            if let Some(claimed) = claimed {
                self.told_in(&mut draft, result, claimed);
            }
        }
        // What mail has cost is durable before it is read: who ends the process in between finds it
        // committed (semantics.md, section 3).
        if news.iter().any(|result| !result.cost.is_empty()) {
            self.record_or_end(draft).await;
        } else {
            self.put_off(draft).await;
        }
    }

    /// What a call took to tell in its result is told by that, or if it was cut, by mail after all.
    fn told_in(&mut self, draft: &mut Draft, result: &ToolResult, claimed: Claimed) {
        let is_told = !result.messages.is_empty();
        match claimed {
            Claimed::Answers(taken) if is_told => {
                let mail: Vec<Arc<Mail>> = taken.into_iter().map(|queued| queued.mail).collect();
                self.injection(draft, self.run.free(Point::Wait), &mail);
            }
            Claimed::Answers(taken) => self.mailbox().restore(taken),
            Claimed::Report(..) if is_told => {}
            Claimed::Report(about, report) => self.tells_after_all(&about, report),
            Claimed::Awaited(about, mut coming) => {
                if let Ok(report) = coming.try_recv() {
                    self.tells_after_all(&about, report);
                }
            }
        }
    }

    fn tells_after_all(&self, about: &AgentName, report: Report) {
        if let Some(about) = self.session.agent(about.as_str()) {
            deliver::report(Phase::Caused, &self.session, &about, &self.cell.name, report);
        }
    }

    fn no_longer(&self, ended: &[ToolResult]) {
        let has_ended = |call: &CallId| ended.iter().any(|result| result.id == *call);
        let is_over =
            |activity: &Activity| matches!(&activity.what, ActivityKind::Tool { id, .. } if has_ended(id));
        self.cell.state.lock().activity.retain(|activity| !is_over(activity));
    }
}

fn finished(result: &ToolResult) -> EventKind {
    EventKind::ToolFinished {
        tool: result.id.clone(),
        name: result.name.clone(),
        status: result.status,
        is_error: result.is_error,
        bytes: result.text.len() as u64,
        output: capped(&result.text, SHOWN),
    }
}
