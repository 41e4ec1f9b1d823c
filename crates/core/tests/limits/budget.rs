//! The sums alone: requests that hold and settle in a random order.

use midturn_core::rules::conversation::Usage;
use midturn_core::rules::limits::{Bound, Budget, Grant, Hold, Money, Prices, SHORTEST_REPLY, Spent, Whose};
use midturn_core::rules::settings::Limits;
use proptest::prelude::*;

/// What happens next. Shares are in thousandths of what is possible.
#[derive(Clone, Debug)]
enum Deed {
    Ask {
        input: u64,
        output: u64,
    },
    /// The oldest request but `nth` ends, and has used so much of its bound.
    End {
        nth: usize,
        read: u64,
        written: u64,
        cached: u64,
    },
    Turn,
}

fn deed() -> impl Strategy<Value = Deed> {
    let share = 0..=1_000u64;
    prop_oneof![
        4 => (0..20_000u64, 1..16_000u64).prop_map(|(input, output)| Deed::Ask { input, output }),
        3 => (0..8usize, share.clone(), share.clone(), share)
            .prop_map(|(nth, read, written, cached)| Deed::End { nth, read, written, cached }),
        1 => Just(Deed::Turn),
    ]
}

fn prices() -> impl Strategy<Value = Prices> {
    let price = (0..40u64).prop_map(|millionths| Money::of_picos(millionths * 1_000_000));
    (price.clone(), price.clone(), price).prop_map(|(input, output, cached)| Prices { input, output, cached })
}

fn caps() -> impl Strategy<Value = Limits> {
    let tokens = prop_oneof![Just(0), 1..200_000u64];
    let cost = prop_oneof![Just(0), 1..3_000_000_000_000u64].prop_map(Money::of_picos);
    (prop_oneof![Just(0), 1..6u64], tokens, cost).prop_map(|(max_turns, max_tokens, max_cost)| Limits {
        max_turns,
        max_tokens,
        max_cost,
        ..Limits::default()
    })
}

/// A request under way.
struct Flying {
    hold: Hold,
    input: u64,
    output: u64,
}

fn within(caps: Limits, spent: Spent) -> bool {
    (caps.max_tokens == 0 || spent.tokens <= caps.max_tokens)
        && (caps.max_cost == Money::ZERO || spent.cost <= caps.max_cost)
        && (caps.max_turns == 0 || spent.turns <= caps.max_turns)
}

/// What all that are under way can still use.
fn at_most(flying: &[Flying], prices: Prices, spent: Spent) -> Spent {
    let dearest = prices.input.max(prices.cached);
    flying.iter().fold(spent, |spent, request| Spent {
        turns: spent.turns,
        tokens: spent.tokens + request.input + request.output,
        cost: spent.cost.plus(dearest.times(request.input)).plus(prices.output.times(request.output)),
        ..spent
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_under_way_can_pass_no_limit(
        caps in caps(), prices in prices(), deeds in proptest::collection::vec(deed(), 1..60)
    ) {
        let mut budget = Budget::new(Whose::Agent, caps, Spent::default());
        let mut flying: Vec<Flying> = Vec::new();
        let mut counted = Spent::default();
        for deed in deeds {
            match deed {
                Deed::Ask { input, output } => {
                    match budget.hold(Bound { input, output: Some(output) }, prices) {
                        Grant::Held(hold) => {
                            // Without a cap nothing is said of the reply.
                            let may = hold.output.unwrap_or(output);
                            prop_assert!(may == output || hold.shortened.is_some());
                            prop_assert!(may >= output.min(SHORTEST_REPLY) && may <= output);
                            flying.push(Flying { hold, input, output: may });
                        }
                        Grant::Wait => prop_assert!(!flying.is_empty(), "nobody is there to wait for"),
                        Grant::Reached(limit) => {
                            prop_assert!(limit != "max_time");
                            prop_assert!(flying.is_empty() || budget.reached().is_some(), "others may give some back");
                        }
                    }
                }
                Deed::End { nth, read, written, cached } if !flying.is_empty() => {
                    let request = flying.remove(nth % flying.len());
                    let input = request.input * read / 1_000;
                    let usage = Usage { input, output: request.output * written / 1_000, cached: input * cached / 1_000 };
                    counted.tokens += usage.total();
                    counted.cost = counted.cost.plus(prices.cost(&usage));
                    budget.settle(request.hold, usage.total(), prices.cost(&usage));
                }
                Deed::End { .. } => {}
                Deed::Turn => {
                    let may = budget.begin_turn();
                    counted.turns += u64::from(may.is_ok());
                }
            }
            prop_assert_eq!(budget.spent(), counted);
            let most = at_most(&flying, prices, counted);
            prop_assert!(within(caps, most), "{:?} may be used of {:?}", most, caps);
        }
        everything_comes_back(budget, flying, caps, prices)?;
    }
}

/// Requests that were cut before they used anything give back all that was held: afterwards
/// one may have whatever is left.
fn everything_comes_back(
    mut budget: Budget,
    flying: Vec<Flying>,
    caps: Limits,
    prices: Prices,
) -> Result<(), TestCaseError> {
    for request in flying {
        budget.settle(request.hold, 0, Money::ZERO);
    }
    let tokens = if caps.max_tokens == 0 { u64::MAX } else { caps.max_tokens - budget.spent().tokens };
    let money = if caps.max_cost == Money::ZERO {
        u64::MAX
    } else {
        caps.max_cost.minus(budget.spent().cost).over(prices.output)
    };
    let left = tokens.min(money).min(1 << 40);
    let grant = budget.hold(Bound { input: 0, output: Some(left.max(1)) }, prices);
    let whole = matches!(grant, Grant::Held(hold) if hold.output.is_none_or(|may| may == left.max(1)));
    let used_up = matches!(grant, Grant::Reached(_)) && (left == 0 || budget.reached().is_some());
    prop_assert!(whole || used_up, "{:?} of {} left", grant, left);
    Ok(())
}
