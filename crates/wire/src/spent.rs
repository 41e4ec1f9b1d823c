//! What agents have used together, in tokens and in money.

use std::fmt;

use midturn_core::rules::limits::Money;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::agent::{Agent, Usage};

/// What agents have used together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Spent {
    /// Tokens read and written.
    pub tokens: u64,
    /// The same, by kind.
    pub usage: Usage,
    /// What they have cost, in US dollars. Absent where it isn't known of all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false, example = "0.38")]
    pub cost: Option<Money>,
    /// The day whose prices that is counted with, where any of them is out of Midturn's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "2026-10-20")]
    pub priced_at: Option<String>,
}

impl Spent {
    /// Nothing yet.
    fn nothing() -> Self {
        Self { cost: Some(Money::ZERO), ..Self::default() }
    }

    /// Adds what somebody has used. Who has used nothing makes nothing unknown.
    fn with(self, usage: Usage, cost: Option<Money>, priced_at: Option<&str>) -> Self {
        let tokens = usage.input.saturating_add(usage.output);
        if tokens == 0 {
            return self;
        }
        let Usage { input, output, cached } = self.usage;
        let usage = Usage {
            input: input.saturating_add(usage.input),
            output: output.saturating_add(usage.output),
            cached: cached.saturating_add(usage.cached),
        };
        Self {
            tokens: self.tokens.saturating_add(tokens),
            usage,
            cost: self.cost.zip(cost).map(|(all, one)| all.plus(one)),
            priced_at: self.priced_at.or_else(|| priced_at.map(str::to_owned)),
        }
    }

    /// What these have used, each with what it cost and the day of a price out of the table.
    pub fn of<'a>(all: impl IntoIterator<Item = (Usage, Option<Money>, Option<&'a str>)>) -> Self {
        let all = all.into_iter().fold(Self::nothing(), |all, (usage, cost, at)| all.with(usage, cost, at));
        // What nobody has used has no price either.
        Self { cost: all.cost.filter(|_| all.tokens > 0), ..all }
    }

    /// What these agents have used.
    pub fn of_agents<'a>(agents: impl IntoIterator<Item = &'a Agent>) -> Self {
        Self::of(agents.into_iter().map(|agent| (agent.usage, agent.cost, agent.priced_at.as_deref())))
    }

    /// The money for people, `~` before what is counted with the table; nothing where it isn't known.
    pub fn money(&self) -> String {
        let about = if self.priced_at.is_some() { "~" } else { "" };
        self.cost.map(|cost| format!("{about}${}", rounded(cost))).unwrap_or_default()
    }
}

/// Hundredths of a cent are enough for people.
fn rounded(cost: Money) -> Money {
    const UNIT: u64 = 100_000_000;
    Money::of_picos(cost.picos().div_ceil(UNIT).saturating_mul(UNIT))
}

impl fmt::Display for Spent {
    /// `1234 tokens read (1000 of them cached), 56 written, ~$0.38 (prices of 2026-10-20)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Usage { input, output, cached } = self.usage;
        write!(f, "{input} tokens read")?;
        if cached > 0 {
            write!(f, " ({cached} of them cached)")?;
        }
        write!(f, ", {output} written")?;
        match (&self.cost, &self.priced_at) {
            (None, _) => Ok(()),
            (Some(_), None) => write!(f, ", {}", self.money()),
            (Some(_), Some(date)) => write!(f, ", {} (prices of {date})", self.money()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_known_when_it_is_known_of_all_who_used_anything() {
        let usage = |input, output| Usage { input, output, cached: input / 2 };
        let money = |text: &str| Some(text.parse::<Money>().unwrap());
        for (all, told) in [
            (vec![], "0 tokens read, 0 written"),
            (vec![(usage(9, 1), None, None)], "9 tokens read (4 of them cached), 1 written"),
            (
                vec![(usage(10, 1), money("0.25"), None), (usage(0, 0), None, None)],
                "10 tokens read (5 of them cached), 1 written, $0.25",
            ),
            (vec![(usage(1, 1), money("0.25"), None), (usage(1, 1), None, None)], "2 tokens read, 2 written"),
            (
                vec![
                    (usage(1, 1), money("0.25"), None),
                    (usage(1, 1), money("0.00000001"), Some("2026-10-20")),
                ],
                "2 tokens read, 2 written, ~$0.2501 (prices of 2026-10-20)",
            ),
        ] {
            assert_eq!(Spent::of(all).to_string(), told);
        }
    }
}
