//! The keys that say what agents may do and what that may cost: approvals, the sandbox, and
//! what is known of models. It reads and checks; it judges no call and starts no sandbox.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use midturn_core::engine::{Slots, tools as coordinators};
use midturn_core::rules::approval::{Mode, Rule};
use midturn_core::rules::limits::{Money, Prices};
use midturn_core::rules::time::Span;
use midturn_tools::network::Network;
use midturn_tools::sandbox::{Tier, TreeLimits};
use midturn_tools::work_tool_names;
use midturn_tools::workplace::{GitAccess, LetIn};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::keys::{Names, Texts};

/// What is done unasked, and what never.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Approvals {
    /// How much is done without asking.
    pub(crate) mode: Mode,
    /// What is done unasked besides.
    pub(crate) allow: Rules,
    /// What is never done. The lists of all layers hold together.
    pub(crate) deny: Rules,
    /// How long an answer is waited for.
    pub(crate) patience: Span,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { mode: Mode::Auto, allow: Rules::default(), deny: Rules::default(), patience: Span::secs(600) }
    }
}

/// Rules as they are written: a list, or one of them.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Rules(#[serde(serialize_with = "as_written")] pub(crate) Vec<Rule>);

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().map(Rule::text).eq(other.0.iter().map(Rule::text))
    }
}

fn as_written<S: Serializer>(rules: &[Rule], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(rules.iter().map(Rule::text))
}

impl<'de> Deserialize<'de> for Rules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a list of rules, such as [\"bash(cargo test *)\", \"edit(src/**)\"]";
        let texts = Texts { expected, one: |text| vec![text.to_owned()] };
        let texts = deserializer.deserialize_any(texts)?;
        texts.iter().map(|text| rule(text).map_err(Error::custom)).collect::<Result<_, _>>().map(Self)
    }
}

/// The names of all tools that there are.
pub(crate) fn tools() -> Vec<&'static str> {
    work_tool_names().chain(coordinators::names()).collect()
}

/// Tools whose calls are about no one path or command.
const WHOLE: [&str; 1] = ["commit"];

/// A rule about a tool that there is: another would never hold.
fn rule(text: &str) -> Result<Rule, String> {
    let rule = Rule::parse(text).map_err(|error| error.to_string())?;
    if rule.is_no_pattern() {
        return Err(format!(
            "the rule {rule} would hold for this very text alone: a pattern is one command's, so leave out what strings it together with others"
        ));
    }
    if has_no_subject(&rule) {
        return Err(format!(
            "the rule {rule} never holds: a call of this tool has nothing to hold a pattern against, so name the tool alone"
        ));
    }
    let tools = tools();
    if rule.names_one_of(&tools) {
        return Ok(rule);
    }
    Err(format!("the rule {rule} never holds: there is no such tool; there are: {}", tools.join(", ")))
}

/// Whether it has a pattern for a tool whose calls have nothing to hold one against.
fn has_no_subject(rule: &Rule) -> bool {
    let text = rule.text().to_ascii_lowercase();
    let pattern = |tool: &&str| text.strip_prefix(tool).is_some_and(|rest| rest.starts_with('('));
    WHOLE.iter().any(pattern) && !text.ends_with("(*)") && !text.ends_with("(**)")
}

/// What the commands of agents run in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Sandboxing {
    /// The kind; absent is the best that works here.
    pub(crate) tier: Option<Tier>,
    /// What of the network commands may use.
    pub(crate) network: Network,
    /// What commands in the project folder may do with git's own folder.
    pub(crate) git: GitAccess,
    /// How many commands of all agents run at once in one process; absent: four for each processor.
    pub(crate) commands: Option<NonZeroU32>,
    /// What one command may use.
    #[serde(flatten)]
    pub(crate) limits: TreeLimits,
    /// Variables of the environment that commands get besides the usual ones.
    pub(crate) environment: Names,
    /// Files and folders that all agents' commands may write in besides their own: whole paths,
    /// or below the home folder by `~/`.
    pub(crate) writable: Names,
    /// Files and folders that all agents' commands may read besides what toolchains need: as
    /// [`Sandboxing::writable`].
    pub(crate) read: Names,
}

/// So many commands run at once for each processor.
const PER_PROCESSOR: usize = 4;

impl Sandboxing {
    /// How many commands run at once.
    pub(crate) fn slots(&self) -> Slots {
        let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let said = self.commands.and_then(|commands| usize::try_from(commands.get()).ok());
        Slots::new(said.unwrap_or_else(|| PER_PROCESSOR * processors()))
    }

    /// Where all agents' commands may write, `~/` followed.
    pub(crate) fn writable(&self) -> Vec<PathBuf> {
        self.writable.0.iter().map(|path| below_home(path)).collect()
    }

    /// What all agents' commands may read besides, as it is found now.
    pub(crate) fn let_in(&self) -> LetIn {
        LetIn::of(&self.read.0.iter().map(|path| below_home(path)).collect::<Vec<_>>())
    }
}

pub(super) fn below_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        (Some(_), None) | (None, _) => path.into(),
    }
}

/// What is known of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelFacts {
    /// How many tokens its context holds.
    pub(crate) context_tokens: Option<u64>,
    /// What it reads, in US dollars per million tokens.
    #[serde(deserialize_with = "price")]
    pub(crate) input: Option<Money>,
    /// What it writes.
    #[serde(deserialize_with = "price")]
    pub(crate) output: Option<Money>,
    /// What it reads from the provider's cache; absent is as [`ModelFacts::input`].
    #[serde(deserialize_with = "price")]
    pub(crate) cached: Option<Money>,
}

/// The fields of [`ModelFacts`].
pub(super) const FACTS: [&str; 4] = ["context_tokens", "input", "output", "cached"];

/// How many tokens prices are written for.
const MILLION: u64 = 1_000_000;

/// A price that is one of a token, too: money has no smaller unit than its share of a million.
fn price<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Money>, D::Error> {
    let Some(written) = Option::<Value>::deserialize(deserializer)? else { return Ok(None) };
    let million = Money::deserialize(&written).ok().filter(|million| million.picos() % MILLION == 0);
    million.map(Some).ok_or_else(|| {
        let text: String = written.as_str().map_or(written.to_string(), str::to_owned);
        let text: String = text.chars().take(40).collect();
        Error::custom(format!(
            "`{text}` is not a price: write US dollars per million tokens with at most six decimals, such as 3.0 or 0.075"
        ))
    })
}

impl ModelFacts {
    /// What its tokens cost; `None` when not all that is needed is said.
    pub(crate) fn prices(&self) -> Option<Prices> {
        let (input, output) = (self.input?, self.output?);
        let each = |million: Money| Money::of_picos(million.picos() / MILLION);
        Some(Prices { input: each(input), output: each(output), cached: each(self.cached.unwrap_or(input)) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_price_is_exact_or_an_error() {
        for (written, picos) in [
            (json!(3), Some(3_000_000)),
            (json!(3.0), Some(3_000_000)),
            (json!(0.3), Some(300_000)),
            (json!(0.1), Some(100_000)),
            (json!(0.075), Some(75_000)),
            (json!("1.25"), Some(1_250_000)),
            (json!(1234567.891), Some(1_234_567_891_000)),
            (json!(0), Some(0)),
            (json!(0.0000001), None),
            (json!(-1), None),
            (json!(-0.5), None),
            (json!(1e300), None),
            (json!("3 USD"), None),
            (json!(".5"), None),
            (json!("5."), None),
            (json!(true), None),
        ] {
            let read = serde_json::from_value::<ModelFacts>(json!({"input": written, "output": 0}));
            let prices = read.as_ref().ok().and_then(ModelFacts::prices);
            assert_eq!(prices.map(|prices| prices.input.picos()), picos, "{written}: {read:?}");
        }
        for (written, shown) in [("3", "3.00"), ("0.075", "0.075"), ("0", "0.00")] {
            assert_eq!(price(json!(written)).unwrap().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn a_model_has_prices_when_input_and_output_are_known() {
        let read = |text: &str| serde_json::from_str::<ModelFacts>(text).unwrap().prices();
        assert_eq!(read(r#"{"input": 3.0}"#), None);
        let prices = read(r#"{"input": 3.0, "output": 15.0}"#).unwrap();
        assert_eq!(
            [prices.input, prices.output, prices.cached].map(Money::picos),
            [3_000_000, 15_000_000, 3_000_000]
        );
        assert_eq!(read(r#"{"input": 3, "output": 1, "cached": 0.3}"#).unwrap().cached.picos(), 300_000);
    }
}
