//! One actor at a time: each is a thread that goes on for as many steps as it is let, and can be killed before
//! any of them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use midturn_bridges::spool::steps::before_each;

/// How an actor that was let go has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// Before a step of its.
    Between,
    /// It has done all that it had to do.
    Done,
    /// Where it was killed.
    Killed,
    /// It panicked: the test has.
    Panicked,
}

/// What an actor dies of.
struct Kill;

/// An actor, as whoever lets it go sees it.
pub(crate) struct Actor {
    /// So many steps; none: it dies.
    go: Sender<u32>,
    stopped: Receiver<Stopped>,
    thread: Option<JoinHandle<()>>,
}

/// Nobody listens any more once the history has ended.
fn says(to: &Sender<Stopped>, how: Stopped) {
    match to.send(how) {
        Ok(()) | Err(_) => {}
    }
}

impl Actor {
    pub(crate) fn begins(does: impl FnOnce() + Send + 'static) -> Self {
        let (go, goes) = channel::<u32>();
        let (stops, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let ends = stops.clone();
            let Ok(first @ 1..) = goes.recv() else {
                return says(&ends, Stopped::Killed);
            };
            let left = Cell::new(first);
            before_each(move || {
                if left.get() == 0 {
                    says(&stops, Stopped::Between);
                    left.set(goes.recv().unwrap_or(0));
                    if left.get() == 0 {
                        resume_unwind(Box::new(Kill));
                    }
                }
                left.set(left.get() - 1);
            });
            let stopped = match catch_unwind(AssertUnwindSafe(does)) {
                Ok(()) => Stopped::Done,
                Err(why) if why.is::<Kill>() => Stopped::Killed,
                Err(_) => Stopped::Panicked,
            };
            says(&ends, stopped);
        });
        Self { go, stopped, thread: Some(thread) }
    }

    /// Lets it go on for so many steps.
    pub(crate) fn goes(&self, steps: u32) -> Stopped {
        if self.go.send(steps).is_err() {
            return Stopped::Panicked;
        }
        self.stopped.recv().unwrap_or(Stopped::Panicked)
    }

    pub(crate) fn dies(&self) -> Stopped {
        self.goes(0)
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // Whoever still waits to be let go hears that nobody will.
        self.go = channel().0;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Splitmix64.
#[derive(Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bf0_3635)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `sides`.
    pub(crate) fn below(&mut self, sides: usize) -> usize {
        usize::try_from(self.next() % sides.max(1) as u64).unwrap_or_default()
    }

    /// Once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}
