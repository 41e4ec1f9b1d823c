//! The driver of one agent: it waits, tells [`Run`] what happened and does what it decides.
//!
//! It exists only while the agent works. It never decides what a message may interrupt:
//! that is `rules::boundary`.

mod asking;
mod budget;
mod compaction;
mod ending;
mod guard;
mod left;
mod model_phase;
mod queue;
mod records;
mod results;
mod stream;
mod tool_phase;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::body::{Body, Equipment};
use super::journal::Draft;
use super::mailbox::Mailbox;
use super::output::Telling;
use super::ports::{Phase, StoreError, ToolSpec};
use super::session::{Activity, ActivityKind, AgentCell, Session};
use super::tools;
use crate::fail;
use crate::rules::conversation::{Entry, Injected, Usage};
use crate::rules::event::{EventKind, Place, Trigger};
use crate::rules::id::TurnId;
use crate::rules::mail::{Injection, Mail, Point, ReceiptState, Standing};
use crate::rules::record::Line;
use crate::rules::recovery::OpenRun;
use crate::rules::run::{Run, Step};
use crate::rules::time::{Micros, Span};
use crate::rules::wording;

/// Drives the agent until it rests. Called once for each time it is woken.
pub(crate) async fn drive(session: &Arc<Session>, cell: &Arc<AgentCell>) {
    loop {
        // What replaces the message that asked for the run is on its way: it is injected at its start.
        cell.mailbox.until_replaced().await;
        if !cell.mailbox.begins() {
            session.rested.notify_waiters();
            break;
        }
        let body = cell.body.lock().take().unwrap_or_default();
        let mut driver = Driver::new(session.clone(), cell.clone(), body);
        if !driver.run_guarded().await {
            driver.goes_back();
            break;
        }
        if driver.settle().await != Standing::Running {
            break;
        }
    }
}

/// An agent at work on one run.
struct Driver {
    session: Arc<Session>,
    cell: Arc<AgentCell>,
    body: Box<Body>,
    run: Run,
    /// Cancelled by a stop alone, and then the run ends.
    run_token: CancellationToken,
    /// The stream's token, then the one of the turn's tools.
    work: CancellationToken,
    bench: tool_phase::Bench,
    ahead: records::Ahead,
    usage: Usage,
    /// When this run began to be driven, and how long all before it had worked.
    began: Micros,
    worked_before: Span,
    /// The limit because of which the last reply might be no longer.
    shortened: Option<&'static str>,
    /// How the run goes on, if it is one that was left.
    goes_on: Option<OpenRun>,
}

impl Driver {
    fn new(session: Arc<Session>, cell: Arc<AgentCell>, mut body: Box<Body>) -> Self {
        let left = body.left.take();
        let run = match &left {
            Some(open) => Run::recovered(open, cell.settings.clone()),
            None => Run::new(cell.mailbox.run(), cell.settings.clone()),
        };
        let run_token = cell.mailbox.run_token();
        let began = session.clock.now();
        let worked_before = cell.state.lock().budget.spent().time;
        Self {
            session,
            cell,
            body,
            run,
            work: run_token.child_token(),
            run_token,
            bench: tool_phase::Bench::default(),
            ahead: records::Ahead::default(),
            usage: left.as_ref().map(|open| open.usage).unwrap_or_default(),
            began,
            worked_before,
            shortened: None,
            goes_on: left,
        }
    }

    fn mailbox(&self) -> &Mailbox {
        &self.cell.mailbox
    }

    fn place(&self) -> Place {
        Place::of(&self.cell.name, self.run.id(), self.run.turn())
    }

    /// Where the agent is, for whoever asks.
    fn is_at(&self, turn: TurnId) {
        let mut state = self.cell.state.lock();
        (state.run, state.turn) = (self.run.id(), turn);
    }

    /// For whoever asks what the agent is doing.
    fn begins(&self, what: ActivityKind) {
        let since = self.session.clock.now();
        self.cell.state.lock().activity.push(Activity { what, since });
    }

    /// Waits for the agent's turn to pass its boundary.
    async fn at_boundary(&self) {
        self.session.clock.turn(Phase::Boundary(self.cell.index)).await;
    }

    /// A broken store ends the run: what it refused has not happened. `false`: it has.
    fn obey(&mut self, recorded: Result<(), StoreError>) -> bool {
        if let Err(error) = &recorded {
            tracing::error!(agent = %self.cell.name, %error, "the run ends");
            self.run.failed("store");
        }
        recorded.is_ok()
    }

    /// `false`: the process ends, and the run has not begun.
    async fn run_to_its_end(&mut self) -> bool {
        let _timer = self.timer();
        let begins = match self.goes_on.take() {
            Some(open) => self.go_on(open.left).await,
            None => self.begin().await,
        };
        if !begins {
            return false;
        }
        if self.body.equipment.is_none() {
            self.equip().await;
        }
        loop {
            let turn = self.run.turn();
            let step = self.next_step();
            self.tell_results().await;
            if !matches!(step, Step::RunTools(_)) {
                self.bench.queue.leave();
                self.session.workplace.turn_ended(&self.cell.name, self.run.id(), turn);
            }
            match step {
                Step::CallModel(injection) => {
                    if self.inject(injection).await {
                        self.call_model().await;
                    }
                }
                Step::RunTools(start) => self.run_tools(start).await,
                Step::Finish(ending) => {
                    if self.finish(ending).await {
                        return true;
                    }
                }
            }
        }
    }

    fn next_step(&mut self) -> Step {
        if let Some(order) = self.cell.mailbox.stop_order() {
            self.run.stop(&order.by);
            self.apply_cuts();
        }
        if let Some(limit) = self.cell.mailbox.timed_out() {
            self.run.times_out(limit);
            self.apply_cuts();
        }
        self.run.step(&self.cell.mailbox)
    }

    /// Records that the run has begun. `false`: the process ends, and it begins at the next start.
    async fn begin(&mut self) -> bool {
        self.is_at(0);
        let asked = self.cell.state.lock().prompt.clone();
        let trigger = match &asked {
            Some(_) => Trigger::Prompt,
            None => Trigger::Mail(self.mailbox().ids()),
        };
        let mut draft = Draft::event(self.place(), EventKind::RunStarted { trigger });
        if let Some(text) = asked {
            self.line(&mut draft, Line::Prompt(text));
        }
        let recorded = self.record_begin(draft).await;
        if matches!(recorded, Ok(false)) {
            return false;
        }
        // Also where the store has refused it: the run ends, and the next one answers the prompt.
        let prompt = self.cell.state.lock().prompt.take();
        if let Some(text) = prompt {
            self.append(Entry::User(Injected::prompt(text)));
        }
        if self.obey(recorded.map(drop)) {
            self.cell.state.lock().begun = self.run.id();
            self.session.rested.notify_waiters();
        }
        true
    }

    /// The first run opens the agent's workplace and its model.
    async fn equip(&mut self) {
        let name = &self.cell.name;
        let model = self.cell.model.as_deref().unwrap_or_default();
        let toolbox = self.session.workplace.open(name).await;
        let model = self.session.models.model(name, model).await;
        match (toolbox, model) {
            (Ok(toolbox), Ok(model)) => {
                let mut specs = tools::specs(&self.session);
                specs.extend(toolbox.specs());
                let spec_bytes = specs.iter().map(|spec| bytes_of(spec)).sum();
                let output = Telling::of_setup(self.session.clone(), self.place());
                let place = self.session.workplace.settle(name, &self.run_token, &output).await;
                output.ends();
                let system = format!("{}{}", self.cell.system, self.session.secrets.redacted(place));
                self.body.equipment = Some(Equipment { model, toolbox, system, specs, spec_bytes });
            }
            (Err(error), _) => self.run.failed(&self.session.secrets.redacted(error.to_string())),
            (_, Err(error)) => self.run.failed(&self.session.secrets.redacted(error.to_string())),
        }
    }

    /// Appends to the prompt.
    fn append(&mut self, entry: Entry) {
        self.body.prompt.push(Arc::new(entry));
    }

    /// Appends to the record.
    fn line(&self, draft: &mut Draft, line: Line) {
        draft.line(&self.cell.name, self.run.id(), self.run.turn(), line);
    }

    /// Takes the mail of a point and puts it into the conversation, with the turn's results
    /// if there are any: one transaction, which is durable before the next request leaves. `false`:
    /// there was nothing after all, look again.
    async fn inject(&mut self, injection: Injection) -> bool {
        let point = injection.point;
        let taken = self.mailbox().take(point.takes());
        fail::point("mail_taken");
        if taken.is_empty() && point == Point::B {
            return false;
        }
        let mail: Vec<Arc<Mail>> = taken.iter().map(|queued| queued.mail.clone()).collect();
        let mut draft = Draft::default();
        let injected = self.injection(&mut draft, injection, &mail);
        let results = self.run.tools().map(|turn| turn.results());
        if let Some(injected) = injected.clone() {
            let line = if results.is_some() { Line::Beside } else { Line::Alone };
            self.line(&mut draft, line(injected, point));
        }
        match (results, injected) {
            (Some(results), mail) => self.append(Entry::ToolResults { results, mail }),
            (None, Some(mail)) => self.append(Entry::User(mail)),
            (None, None) => {}
        }
        self.put_off_taking(draft, taken).await
    }

    /// Moves the receipts of what is injected and tells of it.
    fn injection(&mut self, draft: &mut Draft, injection: Injection, mail: &[Arc<Mail>]) -> Option<Injected> {
        if mail.is_empty() {
            return None;
        }
        let text: Arc<str> = wording::injected(injection.point, mail.iter().map(|mail| &**mail)).into();
        for mail in mail {
            draft.moves(mail, ReceiptState::Injected(injection.clone()));
            self.body.unsent.push((mail.clone(), injection.clone()));
        }
        let kind = EventKind::MessageInjected {
            messages: mail.iter().map(|mail| mail.id.clone()).collect(),
            point: injection.point,
            text: text.clone(),
            skipped: injection.skipped,
            interrupted: injection.interrupted,
        };
        draft.tell(self.place(), kind);
        Some(Injected { text, messages: mail.iter().map(|mail| mail.key()).collect() })
    }
}

fn bytes_of(spec: &ToolSpec) -> u64 {
    (spec.name.len() + spec.description.len() + spec.input_schema.to_string().len()) as u64
}
