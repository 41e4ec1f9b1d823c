//! One agent's mailbox, and the agent's standing, which is decided under the same lock:
//! "ending a run and finding the mailbox empty is one atomic step".
//!
//! Senders push from any thread. The peek is one atomic load and never drains.

mod halts;
mod inner;
mod left;
mod next;
mod room;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::inner::{Begun, Inner, Work};

pub use self::halts::{StopOrder, Stopped};
pub use self::inner::{Queued, Resume};
pub(crate) use self::left::{Kept, Recovered};
use crate::rules::boundary::{Committed, Inbox};
use crate::rules::conversation::MessageKey;
use crate::rules::id::{AgentName, MessageId, RunId};
use crate::rules::mail::{
    Admission, Mail, MailKind, Relation, Rest, ReturnReason, Sender, Standing, Urgency,
};
use crate::rules::wording::Cause;

/// The mailbox of one agent.
#[derive(Debug, Default)]
pub struct Mailbox {
    /// The highest urgency of what is pending; 0 is none.
    pending: AtomicU8,
    inner: Mutex<Inner>,
    arrived: Notify,
}

/// Counts one who waits for something to arrive, as long as it lives.
struct Watcher<'a>(&'a Mailbox);

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        let mut inner = self.0.inner.lock();
        debug_assert!(inner.watchers > 0, "more have left than watched");
        inner.watchers = inner.watchers.saturating_sub(1);
    }
}

/// What became of a message that was pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It waits to be injected.
    Queued,
    /// It waits, and the receiver's next run is to be driven now.
    Wake,
    /// It will not be injected.
    Returned(ReturnReason),
}

/// A message that was taken back.
#[derive(Debug)]
pub struct TakenBack {
    /// The message.
    pub queued: Queued,
    /// Agents' mail that waited for the run that only this message asked for: it goes back.
    pub stranded: Vec<Queued>,
}

impl Mailbox {
    /// The mailbox of an agent that is a name only: its mail stays queued.
    pub fn of_a_name() -> Self {
        let mailbox = Self::default();
        mailbox.inner.lock().is_a_name = true;
        mailbox
    }

    /// The current run's token: cancelled by a stop alone.
    pub fn run_token(&self) -> CancellationToken {
        self.inner.lock().run_token.clone().unwrap_or_default()
    }

    /// Is there mail? Never drains, never locks, never fails: one atomic load.
    #[inline]
    pub fn has_pending_messages(&self) -> bool {
        self.pending.load(Ordering::Acquire) != 0
    }

    /// The highest urgency of what is pending.
    #[inline]
    pub fn pending(&self) -> Option<Urgency> {
        let pending = usize::from(self.pending.load(Ordering::Acquire));
        pending.checked_sub(1).and_then(|at| Urgency::ALL.get(at).copied())
    }

    /// What the agent is doing.
    pub fn standing(&self) -> Standing {
        self.inner.lock().standing
    }

    /// The current run, or the last one.
    pub fn run(&self) -> RunId {
        self.inner.lock().run
    }

    /// Whether a run is under way or about to start.
    pub fn is_running(&self) -> bool {
        self.standing().is_in_a_run()
    }

    /// The run that a message that came now would be injected in.
    pub fn next_run(&self) -> RunId {
        self.inner.lock().next_run()
    }

    /// What becomes of a message that comes now.
    pub fn admits(&self, relation: Relation) -> Admission {
        self.inner.lock().admits(relation)
    }

    /// Puts a message in, unless the receiver's standing sends it back. An urgent one
    /// cancels the work in hand and is committed by that. One that was accepted before a limit
    /// was reached waits.
    pub fn push(&self, mail: Arc<Mail>, relation: Relation) -> Pushed {
        let mut inner = self.inner.lock();
        let admitted = inner.admits(relation);
        // A shutdown returns no mail: what was accepted just before it waits for the next start.
        let waits = inner.shut && admitted == Admission::Return(ReturnReason::Stopped);
        if let Admission::Return(reason) = admitted
            && !waits
        {
            return Pushed::Returned(reason);
        }
        if mail.only_run.is_some_and(|only| only != inner.next_run()) {
            return Pushed::Returned(ReturnReason::Expired);
        }
        let committed = mail.urgency == Urgency::Urgent && inner.cut_by(&mail.from);
        let wakes = inner.asks(relation);
        inner.arrives(mail, committed, wakes);
        let wakes = admitted == Admission::Wake && inner.wake();
        self.publish(&inner);
        let watched = inner.watchers > 0;
        drop(inner);
        if watched {
            self.arrived.notify_waiters();
        }
        if wakes { Pushed::Wake } else { Pushed::Queued }
    }

    /// Told when something arrives after this call.
    pub fn arrived(&self) -> impl Future<Output = ()> + '_ {
        // Both before this returns: what is pushed from now on finds the watcher and tells it.
        self.inner.lock().watchers += 1;
        let (watcher, notified) = (Watcher(self), self.arrived.notified());
        async move {
            notified.await;
            drop(watcher);
        }
    }

    fn publish(&self, inner: &Inner) {
        debug_assert!(inner.is_sound(), "{inner:?}");
        self.pending.store(inner.highest(), Ordering::Release);
    }

    /// Takes what a point takes, in order of arrival. What is not recorded goes back by
    /// [`Mailbox::restore`].
    pub fn take(&self, at_least: Urgency) -> Vec<Queued> {
        if self.pending().is_none_or(|highest| highest < at_least) {
            return Vec::new();
        }
        let mut inner = self.inner.lock();
        let taken = match inner.has_below(at_least) {
            true => inner.remove_where(|queued| queued.mail.urgency >= at_least),
            false => inner.remove_all(),
        };
        self.publish(&inner);
        taken
    }

    /// Takes the ends of these agents' runs: the answers that `wait_agents` returns.
    pub fn take_answers(&self, of: impl Fn(&AgentName) -> bool) -> Vec<Queued> {
        self.take_where(|queued| is_answer(&queued.mail, &of))
    }

    /// Whether an answer of the agent is there.
    pub fn has_answer(&self, of: &AgentName) -> bool {
        self.inner.lock().queue.iter().any(|queued| is_answer(&queued.mail, &|name| name == of))
    }

    /// Whether mail that ends a wait early is there: of `after_tools` or above, and no answer
    /// of these agents. What has cut the work in hand interrupts the wait instead.
    pub fn has_other(&self, than: impl Fn(&AgentName) -> bool) -> bool {
        let inner = self.inner.lock();
        let is_cut = inner.work.as_ref().is_some_and(|work| work.cause.is_some());
        let other = |queued: &Queued| {
            let mail = &queued.mail;
            mail.urgency >= Urgency::AfterTools && !is_answer(mail, &than) && !goes_on(mail)
        };
        !is_cut && inner.queue.iter().any(other)
    }

    fn take_where(&self, wanted: impl Fn(&Queued) -> bool) -> Vec<Queued> {
        let mut inner = self.inner.lock();
        let taken = inner.remove_where(wanted);
        self.publish(&inner);
        taken
    }

    /// Puts back what was taken and not recorded, where it was in the order of arrival.
    pub fn restore(&self, taken: Vec<Queued>) {
        let mut inner = self.inner.lock();
        for queued in taken {
            inner.put_back(queued);
        }
        self.publish(&inner);
    }

    /// Takes one message back that is queued and not committed. What comes of it for the agent's
    /// next run, if it was that which asked for it, happens in the same step. `None`: it is too late,
    /// the message was injected or has already cut or skipped something.
    pub fn take_back(&self, from: &Sender, id: &MessageId) -> Option<TakenBack> {
        let mut inner = self.inner.lock();
        let at = inner.queue.iter().position(|queued| queued.is_loose(from, id))?;
        let queued = inner.remove_at(at)?;
        let stranded = inner.unless_asked();
        self.publish(&inner);
        Some(TakenBack { queued, stranded })
    }

    /// Whether a message is queued and not committed.
    pub fn can_take_back(&self, from: &Sender, id: &MessageId) -> bool {
        self.inner.lock().queue.iter().any(|queued| queued.is_loose(from, id))
    }

    /// The messages that are queued and have acted: what they cost is being recorded.
    pub(crate) fn committed(&self) -> Vec<MessageKey> {
        let inner = self.inner.lock();
        let committed = inner.queue.iter().filter(|queued| queued.committed);
        committed.map(|queued| queued.mail.key()).collect()
    }

    /// The ids of what is pending, in order of arrival.
    pub fn ids(&self) -> Vec<MessageId> {
        self.inner.lock().queue.iter().map(|queued| queued.mail.id.clone()).collect()
    }

    /// Arms new work. The look that follows finds what came before, so nothing is missed
    /// between two tokens; a stop that came before has cancelled the token's parent.
    pub fn arm(&self, token: CancellationToken, urgent_cuts: bool) {
        let mut inner = self.inner.lock();
        let cause = inner.cause_for_good();
        inner.work = Some(Work { token, urgent_cuts, cause });
    }

    /// What first cut the work in hand.
    pub fn cause(&self) -> Option<Cause> {
        self.inner.lock().work.as_ref().and_then(|work| work.cause.clone())
    }

    /// Whether a stop would be what ends the run: nobody has stopped it, or a shutdown has.
    pub(crate) fn takes_a_stop(&self) -> bool {
        let inner = self.inner.lock();
        inner.standing == Standing::Running || inner.is_stopped_by_shutdown()
    }

    /// Who stopped the run, if anybody did.
    pub fn stop_order(&self) -> Option<Arc<StopOrder>> {
        self.inner.lock().stop.clone()
    }

    /// Ends the run if no mail is there: looking and ending are one step.
    pub fn wind_down_if_empty(&self) -> bool {
        let mut inner = self.inner.lock();
        if inner.queue.is_empty() {
            inner.wind_down(Rest::Idle);
        }
        inner.queue.is_empty()
    }

    /// Ends the run whatever is there.
    pub fn wind_down(&self) {
        self.inner.lock().wind_down(Rest::Idle);
    }

    /// Mail for the run that ends now and no other.
    pub fn take_bound_to(&self, run: RunId) -> Vec<Arc<Mail>> {
        mail_of(self.take_where(|queued| queued.mail.only_run == Some(run)))
    }

    /// Mail that goes back to its senders when a run fails (`on_error = "return"`).
    pub fn take_returnable(&self) -> Vec<Arc<Mail>> {
        mail_of(self.take_where(|queued| !queued.mail.is_coordinators()))
    }

    /// The run has ended and everything of it is recorded. `Running`: the next one starts. A resume
    /// asks for it only where the model `awaits` a reply, or mail is there.
    pub fn settle(&self, awaits: bool) -> Standing {
        let mut inner = self.inner.lock();
        let by_shutdown = inner.is_stopped_by_shutdown();
        inner.work = None;
        inner.stop = None;
        inner.timed_out = None;
        inner.tellings.clear();
        inner.run_token = None;
        if !awaits {
            inner.settle_resume();
        }
        if let Standing::Winding { then, restart } = inner.standing {
            inner.standing = Standing::Resting(then);
            inner.begun = Begun::No;
            // What asked for the next run may have been taken back meanwhile.
            if restart && inner.is_asked_for() {
                let goes_on = inner.wake();
                inner.put_off = !goes_on && inner.shut && !by_shutdown;
            }
        }
        inner.standing
    }
}

/// The messages of what was taken.
fn mail_of(taken: Vec<Queued>) -> Vec<Arc<Mail>> {
    taken.into_iter().map(|queued| queued.mail).collect()
}

/// Whether it tells of a run that the next one has followed at once: it ends no wait.
fn goes_on(mail: &Mail) -> bool {
    match mail.kind {
        MailKind::End(end) => end.goes_on(),
        MailKind::Words => false,
    }
}

fn is_answer(mail: &Mail, of: &impl Fn(&AgentName) -> bool) -> bool {
    match (&mail.kind, &mail.from) {
        (MailKind::End(end), Sender::Coordinator(name)) => !end.goes_on() && of(name),
        _ => false,
    }
}

impl Inbox for Mailbox {
    fn pending(&self) -> Option<Urgency> {
        Mailbox::pending(self)
    }

    fn commit(&self, at_least: Urgency) -> Option<Committed> {
        let mut inner = self.inner.lock();
        let mut committed: Option<Committed> = None;
        for queued in inner.queue.iter_mut().filter(|queued| queued.mail.urgency >= at_least) {
            queued.committed = true;
            let urgency = queued.mail.urgency;
            match &mut committed {
                Some(committed) => committed.highest = committed.highest.max(urgency),
                None => committed = Some(Committed { sender: queued.mail.from.clone(), highest: urgency }),
            }
        }
        committed
    }
}
