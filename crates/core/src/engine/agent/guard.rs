//! Drivers under a guard that hears panics: whatever a model, a tool or a rule of ours does, a
//! run ends, is recorded and told like any other (semantics.md, section 7).

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;

use super::Driver;
use crate::engine::journal::Draft;
use crate::engine::ports::Phase;
use crate::rules::conversation::Entry;
use crate::rules::event::Outcome;
use crate::rules::run::Ending;

impl Driver {
    /// Runs to the run's end, also when something panics on the way. `false`: it has not begun.
    pub(super) async fn run_guarded(&mut self) -> bool {
        let panic = match unwinding(self.run_to_its_end()).await {
            Ok(began) => return began,
            Err(panic) => panic,
        };
        let what = format!("internal: {}", words_of(&*panic));
        tracing::error!(agent = %self.cell.name, panic = %what, "a driver panicked: its run ends");
        if let Err(panic) = unwinding(self.close_after_panic(&what)).await {
            tracing::error!(agent = %self.cell.name, panic = %words_of(&*panic), "and so did its end");
            self.end_bare(&what).await;
        }
        true
    }

    /// Ends the calls, closes the open turn as after a crash, and ends the run.
    async fn close_after_panic(&mut self, what: &str) {
        self.mailbox().wind_down();
        self.sync().await;
        self.end_calls().await;
        self.forget_requests();
        self.cell.state.lock().activity.clear();
        if self.run.is_calling() {
            self.call_was_lost().await;
        }
        self.tell_results().await;
        let ending = self.ending_of(what);
        self.finish(ending).await;
    }

    /// Tells the running calls to abort, and waits no longer than the deadline.
    async fn end_calls(&mut self) {
        self.work.cancel();
        let until = self.session.clock.now().after(self.cell.settings.abort_deadline);
        let deadline = Phase::Deadline(self.cell.index);
        self.bench.cancel_all();
        let clock = self.session.clock.clone();
        let mut given_up = pin!(clock.until(until, deadline));
        while self.bench.is_busy() {
            tokio::select! {
                biased;
                () = self.bench.drained() => {}
                () = &mut given_up => break,
            }
        }
        self.bench.abandon();
        if let Some(turn) = self.run.tools() {
            turn.lost();
        }
    }

    fn ending_of(&self, what: &str) -> Ending {
        match self.mailbox().stop_order() {
            Some(_) => Ending { outcome: Outcome::Stopped, error: None },
            None => Ending { outcome: Outcome::Failed, error: Some(Arc::from(what)) },
        }
    }

    /// The least that has to be told of a run: that it is over.
    async fn end_bare(&mut self, what: &str) {
        self.mailbox().wind_down();
        self.bench.abandon();
        self.close_prompt();
        let ending = self.ending_of(what);
        self.ends_with(Draft::default(), ending, what.into(), Default::default()).await;
    }

    /// The calls of the last reply have their results in the prompt, unless they have them already.
    fn close_prompt(&mut self) {
        let is_open =
            matches!(self.body.prompt.entries().last().map(|last| &**last), Some(Entry::Assistant(_)));
        let results = self.run.tools().map(|turn| turn.results()).unwrap_or_default();
        if is_open && !results.is_empty() {
            self.append(Entry::ToolResults { results, mail: None });
        }
    }
}

/// Polls a future, and gives the panic if it panics.
async fn unwinding<T>(work: impl Future<Output = T>) -> Result<T, Box<dyn Any + Send>> {
    // Whoever looks at what the panic left is this module, and it takes nothing for granted.
    AssertUnwindSafe(work).catch_unwind().await
}

/// What a panic says.
pub(super) fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}
