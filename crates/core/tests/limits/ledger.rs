//! What requests really use, written down by the models that use it. It knows nothing of
//! budgets but their size, and breaks the test in the very instant in which one is passed.

use std::collections::BTreeMap;

use midturn_core::rules::limits::Money;
use parking_lot::Mutex;

/// Tokens and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) tokens: u64,
    pub(crate) cost: Money,
}

impl Use {
    fn plus(self, other: Self) -> Self {
        Self { tokens: self.tokens + other.tokens, cost: self.cost.plus(other.cost) }
    }

    /// 0 is no limit.
    fn is_within(self, cap: Self) -> bool {
        (cap.tokens == 0 || self.tokens <= cap.tokens) && (cap.cost == Money::ZERO || self.cost <= cap.cost)
    }
}

/// What one agent, or all of them, have used and are about to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    pub(crate) cap: Use,
    /// Of requests that gave a whole reply.
    pub(crate) settled: Use,
    /// Of those under way.
    pub(crate) flying: Use,
    /// The most that the engine may have counted for those that were cut or failed.
    pub(crate) lost: Use,
    /// The most requests that were under way at once.
    pub(crate) most: usize,
    now: usize,
}

/// The accounts of a session.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Accounts>);

#[derive(Debug, Default)]
struct Accounts {
    session: Account,
    agents: BTreeMap<u32, Account>,
    breaches: Vec<String>,
}

/// How a request ended.
pub(crate) enum End {
    Whole,
    /// Cut or failed; the most that was held for it.
    Lost(Use),
}

impl Ledger {
    pub(crate) fn new(session: Use, agents: impl IntoIterator<Item = Use>) -> Self {
        let account = |cap| Account { cap, ..Account::default() };
        let agents = (0..).zip(agents.into_iter().map(account)).collect();
        Self(Mutex::new(Accounts { session: account(session), agents, breaches: Vec::new() }))
    }

    /// A request leaves that will use so much.
    pub(crate) fn begins(&self, agent: u32, used: Use) {
        self.with(agent, |account| {
            account.flying = account.flying.plus(used);
            account.now += 1;
            account.most = account.most.max(account.now);
        });
    }

    pub(crate) fn ends(&self, agent: u32, used: Use, end: &End) {
        self.with(agent, |account| {
            account.flying.tokens -= used.tokens;
            account.flying.cost = account.flying.cost.minus(used.cost);
            account.now -= 1;
            match end {
                End::Whole => account.settled = account.settled.plus(used),
                End::Lost(most) => account.lost = account.lost.plus(*most),
            }
        });
    }

    fn with(&self, agent: u32, change: impl Fn(&mut Account)) {
        let mut accounts = self.0.lock();
        let Accounts { session, agents, breaches } = &mut *accounts;
        for (whose, account) in [("the session", session), ("an agent", agents.entry(agent).or_default())] {
            change(account);
            if !account.settled.plus(account.flying).is_within(account.cap) {
                breaches.push(format!("{whose} overshoots: {account:?}"));
            }
        }
    }

    /// The session's account.
    pub(crate) fn session(&self) -> Account {
        self.0.lock().session
    }

    /// Every limit that was passed.
    pub(crate) fn breaches(&self) -> Vec<String> {
        self.0.lock().breaches.clone()
    }
}
