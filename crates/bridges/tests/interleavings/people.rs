//! Those who send, take back and ask, and those who look at every session.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use midturn_bridges::claude::sweep;
use midturn_bridges::spool::{Joined, Mailbox, Message, Refused, Spool};
use midturn_core::rules::mail::Urgency;

use crate::baton::Dice;
use crate::model::{Key, Log, id, text};

pub(crate) const SESSION: &str = "0e7c0a3c-4a52-4a7a-9d6b-000000000001";
/// A subagent of its, beside `main`.
pub(crate) const FIXER: &str = "a0123456789abcdef";
const SENDERS: [&str; 2] = ["user", "lead"];
const IDS: usize = 4;

/// What all of a history share.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) state: PathBuf,
    clock: Arc<AtomicU64>,
    log: Arc<Mutex<Log>>,
    /// How each message is sent, always the same.
    kinds: u64,
    /// Whose mailbox it is.
    pub(crate) agent: &'static str,
}

impl World {
    pub(crate) fn at(state: PathBuf, kinds: u64, agent: &'static str) -> Self {
        let clock = Arc::new(AtomicU64::new(1_800_000_000_000_000));
        Self { state, clock, log: Arc::default(), kinds, agent }
    }

    /// Later each time.
    pub(crate) fn now(&self, passes: u64) -> u64 {
        self.clock.fetch_add(passes + 1, Ordering::Relaxed) + passes + 1
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        // Whoever was killed held nothing: it is let go only between two steps.
        self.log.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn spool(&self, now: u64) -> Spool {
        Spool::of(&self.state, now)
    }

    pub(crate) fn joined(&self, now: u64) -> Joined {
        self.spool(now).session(SESSION).unwrap()
    }

    pub(crate) fn mailbox(&self, now: u64) -> Mailbox {
        self.joined(now).mailbox(self.agent).unwrap()
    }

    fn folder(&self, part: &str) -> PathBuf {
        self.state.join("joined").join(SESSION).join(self.agent).join(part)
    }

    /// A hook that began then was killed, or nobody hears it: what it had taken comes again, and may do so behind
    /// younger ones. `None`: all that was taken.
    pub(crate) fn loses(&self, began: Option<u64>) {
        let mark = began.map_or("@".to_owned(), |began| format!("@{began}-"));
        let files = std::fs::read_dir(self.folder("handed")).into_iter().flatten().flatten();
        let of_it = files.filter(|file| file.file_name().to_string_lossy().contains(&mark));
        let texts: Vec<String> = of_it.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect();
        let keys = SENDERS.iter().flat_map(|from| (0..2 * IDS).map(move |id| (*from, id)));
        let lost = keys.filter(|key| texts.iter().any(|of_file| of_file.contains(&text(*key))));
        self.log().lost.extend(lost);
    }

    /// A message of which there are two files.
    pub(crate) fn twice(&self) -> Option<Key> {
        let folders = ["new", "handed", "taken", "returned"].map(|part| std::fs::read_dir(self.folder(part)));
        let files = folders.into_iter().flatten().flatten().flatten();
        let whole = files.filter(|file| !file.file_name().to_string_lossy().starts_with('.'));
        let texts: Vec<String> = whole.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect();
        let mut keys = SENDERS.iter().flat_map(|from| (0..2 * IDS).map(move |id| (*from, id)));
        keys.find(|key| texts.iter().filter(|of_file| of_file.contains(&text(*key))).count() > 1)
    }

    /// What a sender has left that isn't whole.
    pub(crate) fn left(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.folder("new")).into_iter().flatten().flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with('.')).collect()
    }

    fn message(&self, key: Key, now: u64) -> Message {
        let sender = SENDERS.iter().position(|from| *from == key.0).unwrap_or_default();
        let mut dice = Dice::of(self.kinds ^ (key.1 * 2 + sender) as u64);
        let urgency = dice.one(&[
            Urgency::FollowUp,
            Urgency::AfterTools,
            Urgency::AfterTools,
            Urgency::AfterTools,
            Urgency::NextBoundary,
            Urgency::Urgent,
        ]);
        Message {
            id: id(key),
            from: key.0.to_owned(),
            text: text(key),
            urgency,
            sent_at: now,
            expires_at: dice.once_in(6).then_some(now + 1_500),
            own: false,
        }
    }

    /// A person, or an agent: does some things, one behind the other.
    pub(crate) fn sends(&self, mut dice: Dice) {
        let from = dice.one(&SENDERS);
        // Somebody's clock is behind.
        let behind = if dice.once_in(4) { 2_000 } else { 0 };
        for _ in 0..=dice.below(4) {
            let key = (from, dice.below(IDS));
            let now = self.now(0) - behind;
            match dice.below(8) {
                0 => self.withdraws(key, now),
                1 => self.asks(key, now),
                2 => self.replaces((from, IDS + dice.below(IDS)), key, dice.once_in(2), now),
                3 => self.send((from, IDS + dice.below(IDS)), now),
                _ => self.send(key, now),
            }
        }
    }

    fn broken(&self, what: &str, error: &dyn std::fmt::Display) {
        self.log().wrong.push(format!("{what}: {error}"));
    }

    /// The words of a message of its, among others.
    pub(crate) fn names_in(&self, words: &str) -> Vec<Key> {
        let keys = SENDERS.iter().flat_map(|from| (0..2 * IDS).map(move |id| (*from, id)));
        keys.filter(|key| words.contains(&text(*key))).collect()
    }

    pub(crate) fn send(&self, key: Key, now: u64) {
        let message = self.message(key, now);
        let began = self.log().begins(key, message.urgency);
        match self.mailbox(now).send(&message, None, false) {
            Ok(accepted) => self.log().accepted(key, began, accepted.state),
            Err(error) => self.broken("send", &error),
        }
    }

    pub(crate) fn replaces(&self, key: Key, old: Key, if_queued: bool, now: u64) {
        let message = self.message(key, now);
        let is_new = self.log().of(key).begun.is_none();
        let began = self.log().begins(key, message.urgency);
        self.log().instead.entry(old).or_default().insert(key);
        match self.mailbox(now).send(&message, Some(&id(old)), if_queued) {
            Ok(accepted) => {
                let mut log = self.log();
                log.accepted(key, began, accepted.state);
                // Nobody else can have sent it since: it is told apart by who began first.
                if is_new && !accepted.too_late && !log.of(key).shared {
                    log.of(old).superseded = true;
                }
            }
            Err(Refused::TooLate) if if_queued => {}
            Err(error) => self.broken("replace", &error),
        }
    }

    fn withdraws(&self, key: Key, now: u64) {
        let began = self.log().tick();
        match self.mailbox(now).withdraw(key.0, &id(key)) {
            Ok(what) => self.log().withdrew(key, began, what),
            Err(error) => self.broken("withdraw", &error),
        }
    }

    fn asks(&self, key: Key, now: u64) {
        let began = self.log().tick();
        match self.mailbox(now).state(key.0, &id(key)) {
            Ok(state) => self.log().told(key, began, state),
            Err(error) => self.broken("ask", &error),
        }
    }

    /// A client, before it asks.
    pub(crate) fn sweeps(&self, mut dice: Dice) {
        for _ in 0..=dice.below(3) {
            let now = self.now(0);
            if let Err(error) = sweep(&self.spool(now)) {
                self.broken("sweep", &error);
            }
        }
    }
}
