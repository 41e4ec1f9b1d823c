//! Whether anybody asks: a process that was only started for somebody ends when nobody does any more.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

/// How an interface is used.
#[derive(Debug)]
pub struct Use {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    open: usize,
    last: Instant,
}

impl Use {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { inner: Mutex::new(Inner { open: 0, last: Instant::now() }) })
    }

    /// Since when no connection is open; `None` while one is.
    pub fn idle_since(&self) -> Option<Instant> {
        let inner = self.inner.lock();
        (inner.open == 0).then_some(inner.last)
    }

    pub(super) fn begin(self: &Arc<Self>) -> Open {
        self.inner.lock().open += 1;
        Open(self.clone())
    }
}

/// A connection, as long as it is open.
pub(super) struct Open(Arc<Use>);

impl Drop for Open {
    fn drop(&mut self) {
        let mut inner = self.0.inner.lock();
        inner.open -= 1;
        inner.last = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_idle_from_the_end_of_the_last_connection_on() {
        let used = Use::new();
        let begun = used.idle_since().unwrap();
        let (one, two) = (used.begin(), used.begin());
        drop(one);
        assert_eq!(used.idle_since(), None);
        drop(two);
        assert!(used.idle_since().unwrap() >= begun);
    }
}
