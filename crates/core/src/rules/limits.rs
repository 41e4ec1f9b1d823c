//! Budgets: what may be used in all, what is used, and what is held for requests under way.
//!
//! Before a request leaves, the most that it can use is held; when it has ended, what it did
//! use is counted instead. So however many agents ask at once, nothing is overshot
//! (semantics.md, section 7). Pure: who waits, and for how long, is the engine's.

use super::conversation::Usage;
use super::settings::{Limits, LimitsPatch, Patched, Settings};
use super::time::Span;

pub use super::money::{BadMoney, Money};

/// What a model's tokens cost, each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// A token read.
    pub input: Money,
    /// A token written.
    pub output: Money,
    /// A token read from the provider's cache.
    pub cached: Money,
}

impl Prices {
    /// What a call costs.
    pub fn cost(&self, usage: &Usage) -> Money {
        let fresh = usage.input.saturating_sub(usage.cached);
        self.input.times(fresh).plus(self.cached.times(usage.cached)).plus(self.output.times(usage.output))
    }
}

impl Settings {
    /// What one agent may use.
    pub fn caps(&self) -> Limits {
        let Self { max_turns, max_tokens, max_cost, max_time, .. } = *self;
        Limits { max_turns: max_turns.into(), max_tokens, max_cost, max_time }
    }
}

/// What has been used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Turns begun.
    pub turns: u64,
    /// Tokens read and written.
    pub tokens: u64,
    /// What they cost.
    pub cost: Money,
    /// How long was worked.
    pub time: Span,
}

impl Spent {
    fn add(&mut self, tokens: u64, cost: Money) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.cost = self.cost.plus(cost);
    }
}

/// Which limit was reached. Settings of the session have `session.` before their name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Turns.
    Turns,
    /// Tokens.
    Tokens,
    /// Cost.
    Cost,
    /// Time.
    Time,
}

impl Limit {
    /// The name of the setting.
    pub fn setting(self, whose: Whose) -> &'static str {
        match (whose, self) {
            (Whose::Agent, Self::Turns) => "max_turns",
            (Whose::Agent, Self::Tokens) => "max_tokens",
            (Whose::Agent, Self::Cost) => "max_cost",
            (Whose::Agent, Self::Time) => "max_time",
            (Whose::Session, Self::Turns) => "session.max_turns",
            (Whose::Session, Self::Tokens) => "session.max_tokens",
            (Whose::Session, Self::Cost) => "session.max_cost",
            (Whose::Session, Self::Time) => "session.max_time",
        }
    }
}

/// The limit that the end of a run names first, as [`reached`] writes it.
pub fn named_in(text: &str) -> Option<&'static str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let named = text.strip_prefix(REACHED)?;
    let name = named.split(|c| !is_name(c)).next().unwrap_or_default();
    setting(name.trim_end_matches('.'))
}

/// The limit of that name, an agent's or the session's.
pub fn setting(name: &str) -> Option<&'static str> {
    let all = [Limit::Turns, Limit::Tokens, Limit::Cost, Limit::Time];
    let both =
        all.into_iter().flat_map(|limit| [Whose::Agent, Whose::Session].map(|whose| limit.setting(whose)));
    both.chain([CONTEXT]).find(|setting| *setting == name)
}

/// What a parent reads of a run that a limit has ended.
pub fn reached(why: &str) -> String {
    format!("{REACHED}{why}")
}

const REACHED: &str = "limit reached: ";

/// The limit that a conversation reaches when no summary makes room: no person raises it, but
/// `resume` tries once more.
pub const CONTEXT: &str = "context_tokens";

/// A limit can't be set below what is spent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{limit} can't be less than what is spent: {spent}; 0 is no limit")]
pub struct BelowSpent {
    /// The setting.
    pub limit: &'static str,
    /// What is spent, in the setting's unit.
    pub spent: String,
}

/// Whose budget it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Whose {
    /// One agent's.
    #[default]
    Agent,
    /// All agents' of a session together.
    Session,
}

/// The most that a request can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Tokens read.
    pub input: u64,
    /// Tokens written; `None`: nobody can say.
    pub output: Option<u64>,
}

/// The shortest reply that is worth a request, in tokens: with less left the limit is reached.
pub const SHORTEST_REPLY: u64 = 1_024;

/// What is kept for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    tokens: u64,
    cost: Money,
    /// How long the reply may be; `None`: as long as it would be without a budget.
    pub output: Option<u64>,
    /// The setting that made it shorter than was asked for.
    pub shortened: Option<&'static str>,
}

/// What a budget says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// It may leave; so much is held for it.
    Held(Hold),
    /// What is left is held for others: some of it will come back when one of them has ended.
    Wait,
    /// There is not enough left: of what this setting limits.
    Reached(&'static str),
}

/// A budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    whose: Whose,
    caps: Limits,
    spent: Spent,
    held_tokens: u64,
    held_cost: Money,
    /// How many requests hold a part of it.
    holders: u32,
}

impl Budget {
    /// A budget of which so much is used.
    pub fn new(whose: Whose, caps: Limits, spent: Spent) -> Self {
        Self { whose, caps, spent, ..Self::default() }
    }

    /// What was used before counts too.
    pub fn restore(&mut self, spent: Spent) {
        self.spent.turns = self.spent.turns.saturating_add(spent.turns);
        self.spent.time = Span(self.spent.time.0.saturating_add(spent.time.0));
        self.spent.add(spent.tokens, spent.cost);
    }

    /// What is used.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// So long was worked in all.
    pub fn worked(&mut self, time: Span) {
        self.spent.time = time;
    }

    /// How long may be worked in all, and the setting that says so; none is without end.
    pub fn time(&self) -> Option<(Span, &'static str)> {
        let Limits { max_time, .. } = self.caps;
        (max_time != Span::ZERO).then_some((max_time, Limit::Time.setting(self.whose)))
    }

    /// Sets what the patch names; nothing, if one of them is less than what is spent.
    ///
    /// # Errors
    /// [`BelowSpent`], with the first that is.
    pub fn set(&mut self, patch: &LimitsPatch) -> Result<(), BelowSpent> {
        let Spent { turns, tokens, cost, time } = self.spent;
        let is_below = |cap: Option<u64>, spent| cap.is_some_and(|cap| cap != 0 && cap < spent);
        let amounts = [
            (Limit::Turns, is_below(patch.max_turns, turns), turns.to_string()),
            (Limit::Tokens, is_below(patch.max_tokens, tokens), tokens.to_string()),
            (Limit::Cost, is_below(patch.max_cost.map(Money::picos), cost.picos()), cost.to_string()),
            (Limit::Time, is_below(patch.max_time.map(|time| time.0), time.0), time.to_string()),
        ];
        if let Some((limit, _, spent)) = amounts.into_iter().find(|(_, is_below, _)| *is_below) {
            return Err(BelowSpent { limit: limit.setting(self.whose), spent });
        }
        self.caps.patch(patch);
        Ok(())
    }

    /// How much is used of what a setting limits; `None` if the setting is another budget's.
    pub fn used_of(&self, setting: &str) -> Option<String> {
        let Self { spent, caps, .. } = self;
        let all = [Limit::Turns, Limit::Tokens, Limit::Cost, Limit::Time];
        let limit = all.into_iter().find(|limit| limit.setting(self.whose) == setting)?;
        let (used, of) = match limit {
            Limit::Turns => (spent.turns.to_string(), format!("{} turns", caps.max_turns)),
            Limit::Tokens => (spent.tokens.to_string(), format!("{} tokens", caps.max_tokens)),
            Limit::Cost => (spent.cost.to_string(), format!("{} US dollars", caps.max_cost)),
            Limit::Time => (spent.time.to_string(), caps.max_time.to_string()),
        };
        Some(format!("{setting}: {used} of {of} are used"))
    }

    /// The setting that forbids another turn, if one does.
    pub fn reached(&self) -> Option<&'static str> {
        self.limit().map(|limit| limit.setting(self.whose))
    }

    fn limit(&self) -> Option<Limit> {
        let Self { spent, caps, .. } = self;
        let amounts = [
            (Limit::Turns, spent.turns, caps.max_turns),
            (Limit::Tokens, spent.tokens, caps.max_tokens),
            (Limit::Cost, spent.cost.picos(), caps.max_cost.picos()),
            (Limit::Time, spent.time.0, caps.max_time.0),
        ];
        let over = amounts.into_iter().find(|(_, spent, cap)| *cap != 0 && spent >= cap);
        over.map(|(limit, ..)| limit)
    }

    /// A turn begins, if one may: looking and counting are one step.
    pub fn begin_turn(&mut self) -> Result<(), &'static str> {
        if let Some(limit) = self.reached() {
            return Err(limit);
        }
        self.spent.turns += 1;
        Ok(())
    }

    /// Holds the most that a request can use, or as much of it as makes sense.
    pub fn hold(&mut self, bound: Bound, prices: Prices) -> Grant {
        let grant = self.grant(bound, prices);
        if let Grant::Held(hold) = grant {
            self.held_tokens = self.held_tokens.saturating_add(hold.tokens);
            self.held_cost = self.held_cost.plus(hold.cost);
            self.holders += 1;
        }
        grant
    }

    fn grant(&self, bound: Bound, prices: Prices) -> Grant {
        if let Some(limit @ (Limit::Tokens | Limit::Cost)) = self.limit() {
            return Grant::Reached(limit.setting(self.whose));
        }
        if !self.is_capped() {
            return Grant::Held(Hold::default());
        }
        let (tokens, cost) = (self.tokens_left(), self.cost_left());
        let Some(output) = bound.output else {
            // It may use all there is, so it goes alone.
            if self.holders > 0 {
                return Grant::Wait;
            }
            let (tokens, cost) = (tokens.unwrap_or_default(), cost.unwrap_or_default());
            return Grant::Held(Hold { tokens, cost, ..Hold::default() });
        };
        // Nobody knows beforehand what the cache has.
        let input_cost = prices.input.max(prices.cached).times(bound.input);
        let by_tokens = tokens.map_or(u64::MAX, |left| left.saturating_sub(bound.input));
        let by_cost = cost.map_or(u64::MAX, |left| left.minus(input_cost).over(prices.output));
        let affordable = output.min(by_tokens).min(by_cost);
        let scarce = if by_tokens <= by_cost { Limit::Tokens } else { Limit::Cost }.setting(self.whose);
        if affordable < output.min(SHORTEST_REPLY) || cost.is_some_and(|left| left < input_cost) {
            return if self.holders > 0 { Grant::Wait } else { Grant::Reached(scarce) };
        }
        Grant::Held(Hold {
            tokens: bound.input.saturating_add(affordable),
            cost: input_cost.plus(prices.output.times(affordable)),
            output: Some(affordable),
            shortened: (affordable < output).then_some(scarce),
        })
    }

    fn is_capped(&self) -> bool {
        self.caps.max_tokens != 0 || self.caps.max_cost != Money::ZERO
    }

    /// `None`: as many as one likes.
    fn tokens_left(&self) -> Option<u64> {
        let used = self.spent.tokens.saturating_add(self.held_tokens);
        (self.caps.max_tokens != 0).then(|| self.caps.max_tokens.saturating_sub(used))
    }

    fn cost_left(&self) -> Option<Money> {
        let used = self.spent.cost.plus(self.held_cost);
        (self.caps.max_cost != Money::ZERO).then(|| self.caps.max_cost.minus(used))
    }

    /// A request has ended: what it used counts instead of what was held for it, whose bound
    /// it can't have passed.
    pub fn settle(&mut self, hold: Hold, tokens: u64, cost: Money) {
        self.holders = self.holders.saturating_sub(1);
        self.held_tokens = self.held_tokens.saturating_sub(hold.tokens);
        self.held_cost = self.held_cost.minus(hold.cost);
        self.spent.add(tokens, cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Prices = Prices { input: Money::ZERO, output: Money::ZERO, cached: Money::ZERO };

    fn budget(tokens: u64) -> Budget {
        Budget::new(Whose::Agent, Limits { max_tokens: tokens, ..Limits::default() }, Spent::default())
    }

    fn bound(input: u64, output: u64) -> Bound {
        Bound { input, output: Some(output) }
    }

    fn held(grant: Grant) -> Hold {
        match grant {
            Grant::Held(hold) => hold,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_held_for_one_is_not_there_for_another() {
        let mut budget = budget(10_000);
        let first = held(budget.hold(bound(1_000, 8_000), FREE));
        assert_eq!(budget.hold(bound(1_000, 8_000), FREE), Grant::Wait);
        budget.settle(first, 1_500, Money::ZERO);
        assert_eq!(held(budget.hold(bound(1_000, 8_000), FREE)).output, Some(7_500));
    }

    #[test]
    fn a_reply_is_cut_to_what_is_left_but_not_to_nothing() {
        for (left, output) in
            [(20_000, Some(8_000)), (5_000, Some(4_000)), (2_024, Some(1_024)), (2_023, None)]
        {
            let mut budget = budget(left);
            let got = match budget.hold(bound(1_000, 8_000), FREE) {
                Grant::Held(hold) => hold.output,
                Grant::Wait | Grant::Reached(_) => None,
            };
            assert_eq!(got, output, "{left}");
        }
        assert_eq!(
            held(budget(600).hold(bound(100, 200), FREE)).output,
            Some(200),
            "a short reply is enough"
        );
    }

    #[test]
    fn who_may_use_all_goes_alone() {
        let mut budget = budget(100);
        let unknown = Bound { input: 1, output: None };
        let first = held(budget.hold(unknown, FREE));
        assert_eq!(budget.hold(unknown, FREE), Grant::Wait);
        assert_eq!(budget.hold(bound(1, 1), FREE), Grant::Wait);
        budget.settle(first, 99, Money::ZERO);
        let second = held(budget.hold(unknown, FREE));
        budget.settle(second, 1, Money::ZERO);
        assert_eq!(budget.hold(unknown, FREE), Grant::Reached("max_tokens"));
        let mut free = Budget::default();
        assert!(matches!(
            (free.hold(unknown, FREE), free.hold(unknown, FREE)),
            (Grant::Held(_), Grant::Held(_))
        ));
    }

    #[test]
    fn money_is_a_limit_of_its_own() {
        let prices = Prices {
            input: Money::of_picos(3_000_000),
            output: Money::of_picos(15_000_000),
            cached: Money::of_picos(300_000),
        };
        let costing = |most: &str| Limits { max_cost: most.parse().unwrap(), ..Limits::default() };
        let mut budget = Budget::new(Whose::Agent, costing("0.10"), Spent::default());
        // 0.03 for what is read leaves 0.07: 4,666 tokens.
        assert_eq!(held(budget.hold(bound(10_000, 32_000), prices)).output, Some(4_666));
        let mut poor = Budget::new(Whose::Session, costing("0.02"), Spent::default());
        assert_eq!(poor.hold(bound(10_000, 32_000), prices), Grant::Reached("session.max_cost"));
        let usage = Usage { input: 10_000, output: 100, cached: 9_000 };
        assert_eq!(prices.cost(&usage), "0.0072".parse().unwrap());
    }

    #[test]
    fn turns_are_counted_when_they_begin() {
        let caps = Limits { max_turns: 2, ..Limits::default() };
        let mut budget = Budget::new(Whose::Agent, caps, Spent::default());
        assert_eq!([budget.begin_turn(), budget.begin_turn()], [Ok(()), Ok(())]);
        assert_eq!(budget.begin_turn(), Err("max_turns"));
        assert_eq!(budget.spent().turns, 2);
    }
}
