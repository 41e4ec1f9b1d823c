//! Long work says how far it is (docs/decisions/0049): nothing for its first two seconds, then a bar on a terminal, and a
//! line every two seconds where there is none. It writes to standard error only, decides nothing about the work, and
//! leaves no bar behind.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::{MissedTickBehavior, interval_at};

use crate::env::Env;
use crate::log;

/// What is done within this time needs no words.
const BEFORE: Duration = Duration::from_secs(2);

/// Between two lines.
const APART: Duration = Duration::from_secs(2);

/// Between two looks at what there is to say.
const PACE: Duration = Duration::from_millis(200);

/// How many signs a full bar has.
const WIDTH: u64 = 20;

/// From the line's beginning on, without a new line at the terminal's edge; then as before. What another writes meanwhile
/// begins where the bar did.
const BEGIN: &str = "\r\u{1b}[?7l";
const END: &str = "\u{1b}[K\r\u{1b}[?7h";

/// The line is empty again.
const WIPE: &str = "\r\u{1b}[K";

/// How far some work is, and what was said of it. It has no clock: whoever asks says how long the work has been going on.
#[derive(Debug, Default)]
struct Account {
    what: String,
    done: u64,
    of: Option<u64>,
    is_terminal: bool,
    /// When the last line was told.
    told: Option<Duration>,
    /// The bar that is there.
    drawn: String,
}

impl Account {
    fn new(what: &str, is_terminal: bool) -> Self {
        Self { what: what.to_owned(), is_terminal, ..Self::default() }
    }

    /// What is to be written now, if anything.
    fn tell(&mut self, after: Duration) -> Option<String> {
        if !self.is_terminal {
            return self.line(after).map(|line| format!("midturn: {line}\n"));
        }
        let bar = self.bar(after);
        let is_due = after >= BEFORE && bar != self.drawn;
        is_due.then(|| {
            self.drawn = bar;
            format!("{BEGIN}{}{END}", self.drawn)
        })
    }

    /// The line that is due, if one is.
    fn line(&mut self, after: Duration) -> Option<String> {
        let is_due = after >= self.told.map_or(BEFORE, |told| told + APART);
        is_due.then(|| {
            self.told = Some(after);
            format!("{}: {}{} s", self.what, self.count(", "), after.as_secs())
        })
    }

    fn bar(&self, after: Duration) -> String {
        let mut bar = format!("{}  ", self.what);
        if let Some(of) = self.of.filter(|of| *of > 0) {
            let full = (self.done.min(of).saturating_mul(WIDTH) / of) as usize;
            // Writing to a text can't fail.
            let _ = write!(bar, "[{}{}]  ", "#".repeat(full), "-".repeat(WIDTH as usize - full));
        }
        bar + &self.count("  ") + &format!("{} s", after.as_secs())
    }

    /// `12 of 40`, and what stands behind it.
    fn count(&self, behind: &str) -> String {
        match (self.done, self.of) {
            (done, Some(of)) => format!("{done} of {of}{behind}"),
            (0, None) => String::new(),
            (done, None) => format!("{done}{behind}"),
        }
    }

    /// What takes away the bar that is there, if one is.
    fn wipe(&mut self) -> Option<&'static str> {
        (!std::mem::take(&mut self.drawn).is_empty()).then_some(WIPE)
    }
}

/// Tells of some work for as long as this is there.
pub(crate) struct Meanwhile {
    account: Arc<Mutex<Account>>,
    /// Goes when the work is done.
    goes_on: Option<SyncSender<()>>,
    teller: Option<JoinHandle<()>>,
}

impl Meanwhile {
    /// From now on. The words say what is being done: `replaying`.
    pub(crate) fn begin(what: &str, env: &Env) -> Self {
        let is_dumb = matches!(env.text("TERM"), Ok(Some("dumb") | None));
        let account = Account::new(what, !is_dumb && io::stderr().is_terminal());
        let account = Arc::new(Mutex::new(account));
        let (goes_on, ended) = sync_channel(0);
        let (began, of) = (Instant::now(), account.clone());
        let teller = std::thread::Builder::new().name("meanwhile".to_owned()).spawn(move || {
            while ended.recv_timeout(PACE) == Err(RecvTimeoutError::Timeout) {
                // Under the lock: nobody else writes between a look and its words.
                let mut account = of.lock();
                if let Some(text) = account.tell(began.elapsed()) {
                    log::offer(&text);
                }
            }
        });
        // Where no thread is to be had the work is done all the same.
        Self { account, goes_on: Some(goes_on), teller: teller.ok() }
    }

    /// So much is done, of so much.
    pub(crate) fn at(&self, done: usize, of: usize) {
        let mut account = self.account.lock();
        (account.done, account.of) = (done as u64, Some(of as u64));
    }

    /// So much is done, of nobody knows how much.
    pub(crate) fn has(&self, done: usize) {
        self.account.lock().done = done as u64;
    }

    /// Something else is being done now.
    pub(crate) fn now(&self, what: &str) {
        let mut account = self.account.lock();
        (account.what, account.done, account.of) = (what.to_owned(), 0, None);
    }

    /// Lets somebody else write to the terminal, where the bar was.
    pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        let mut account = self.account.lock();
        if let Some(wipe) = account.wipe() {
            log::offer(wipe);
        }
        write()
    }

    /// Does the same for all that is written there.
    pub(crate) fn beside<W: Write>(&self, out: W) -> Beside<'_, W> {
        Beside { meanwhile: self, out }
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        self.goes_on = None;
        if let Some(teller) = self.teller.take() {
            // Whatever became of it: it tells nothing more.
            let _ = teller.join();
        }
        self.aside(|| ());
    }
}

/// Writes whole lines to a terminal on which a bar may be.
pub(crate) struct Beside<'a, W> {
    meanwhile: &'a Meanwhile,
    out: W,
}

impl<W: Write> Write for Beside<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.meanwhile.aside(|| self.out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The same where somebody else writes to the terminal: lines, told as they are due while the work is done.
pub(crate) async fn telling<T>(what: &str, work: impl Future<Output = T>, tell: impl AsyncFn(String)) -> T {
    let (mut account, began) = (Account::new(what, false), tokio::time::Instant::now());
    let mut due = interval_at(began + BEFORE, APART);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            _ = due.tick() => {
                if let Some(line) = account.line(began.elapsed()) {
                    tell(line).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::timeout;

    use super::*;

    /// How far it was after so many milliseconds, and what was written then.
    fn told(is_terminal: bool, rows: &[(u64, u64, Option<&str>)]) -> Account {
        let mut account = Account::new("replaying", is_terminal);
        account.of = Some(40);
        for (ms, done, expected) in rows {
            account.done = *done;
            assert_eq!(account.tell(Duration::from_millis(*ms)).as_deref(), *expected, "after {ms} ms");
        }
        account
    }

    #[test]
    fn nothing_is_told_for_two_seconds_and_then_a_line_every_two_seconds() {
        let mut account = told(
            false,
            &[
                (0, 0, None),
                (1_999, 9, None),
                (2_100, 10, Some("midturn: replaying: 10 of 40, 2 s\n")),
                (2_300, 11, None),
                (4_099, 12, None),
                (4_100, 12, Some("midturn: replaying: 12 of 40, 4 s\n")),
                (9_000, 39, Some("midturn: replaying: 39 of 40, 9 s\n")),
            ],
        );
        assert_eq!(account.wipe(), None, "lines stay");
    }

    #[test]
    fn a_terminal_has_a_bar_that_is_drawn_when_it_changes_and_taken_away() {
        let bar = |text: &str| format!("\r\u{1b}[?7lreplaying  {text}\u{1b}[K\r\u{1b}[?7h");
        let (ten, all) =
            (bar("[#####---------------]  10 of 40  2 s"), bar("[####################]  41 of 40  3 s"));
        let mut account = told(
            true,
            &[(1_999, 9, None), (2_000, 10, Some(&ten)), (2_200, 10, None), (3_000, 41, Some(&all))],
        );
        assert_eq!((account.wipe(), account.wipe()), (Some(WIPE), None), "it is taken away once");
        assert_eq!(account.tell(Duration::from_millis(3_100)), Some(all), "and is there again");
        let mut quick = told(true, &[(1_500, 40, None)]);
        assert_eq!(quick.wipe(), None, "what never was needs not be taken away");
    }

    #[test]
    fn what_cannot_be_counted_is_told_by_its_time() {
        let mut account = Account::new("undoing", false);
        assert_eq!(account.line(Duration::from_secs(3)).unwrap(), "undoing: 3 s");
        account.done = 7;
        assert_eq!(account.line(Duration::from_secs(5)).unwrap(), "undoing: 7, 5 s");
        assert_eq!(account.bar(Duration::from_secs(5)), "undoing  7  5 s");
        account.of = Some(0);
        assert_eq!(account.bar(Duration::from_secs(5)), "undoing  7 of 0  5 s");
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_waits_is_told_by_somebody_elses_lines() {
        let said = Mutex::new(Vec::new());
        let tell = async |line: String| said.lock().push(line);
        let work = async |secs| timeout(Duration::from_secs(secs), pending::<()>()).await.is_err();
        assert!(telling("taking up", work(1), tell).await);
        assert_eq!(*said.lock(), [""; 0]);
        assert!(telling("taking up", work(5), tell).await);
        assert_eq!(*said.lock(), ["taking up: 2 s", "taking up: 4 s"]);
    }
}
