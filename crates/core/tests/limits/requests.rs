//! The engine with models that read and write at random, fail, are cut and are stopped, all at
//! once, on virtual time: overshoot 0.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{
    Clock, ErrorKind, Model, ModelFactory, ModelFailure, Observer, Phase, Request,
};
use midturn_core::engine::scripted::{ScriptedCall, ScriptedReply, Scripts, SimulatedTools};
use midturn_core::engine::{AgentSpec, Coordinator, Message, VirtualClock};
use midturn_core::rules::conversation::{Block, Entry, Reply, StopReason, ToolUse, Usage};
use midturn_core::rules::event::{Event, EventKind, Outcome, Scope};
use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::limits::{Money, Prices};
use midturn_core::rules::mail::{Sender, Urgency};
use midturn_core::rules::settings::{Limits, Settings};
use midturn_core::rules::time::{Micros, Span};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::json;

use crate::ledger::{End, Ledger, Use};

/// The longest reply of these models.
const LONGEST: u64 = 4_096;

/// More than a request of one short message can hold: the tools' descriptions above all.
const A_REQUEST: u64 = 40_000;

/// What a model does when it is called.
#[derive(Clone, Debug)]
struct Step {
    takes: u64,
    fails: bool,
    /// Whether the request is handed over before it fails or is cut.
    sends: bool,
    /// How much it would like to write.
    writes: u64,
    /// How long the command takes that it asks for; `None`: it asks for nothing.
    command: Option<u64>,
}

fn step() -> impl Strategy<Value = Step> {
    let command = prop_oneof![3 => (0..20u64).prop_map(Some), 1 => Just(None)];
    (0..30u64, proptest::bool::weighted(0.15), proptest::bool::weighted(0.9), 1..LONGEST, command)
        .prop_map(|(takes, fails, sends, writes, command)| Step { takes, fails, sends, writes, command })
}

#[derive(Clone, Debug)]
struct Agent {
    steps: Vec<Step>,
    cap: Use,
    /// How many thousandths of a token a byte is.
    density: u64,
    /// Whether its model says how long its replies may be.
    is_bounded: bool,
}

#[derive(Clone, Debug)]
enum Person {
    Urgent(usize),
    Stop(usize),
}

#[derive(Clone, Debug)]
struct Plan {
    agents: Vec<Agent>,
    cap: Use,
    person: Vec<(u64, Person)>,
}

fn cap(tokens: std::ops::Range<u64>) -> impl Strategy<Value = Use> {
    // A dollar for each hundred thousand tokens is about what they cost below.
    let cost = tokens.clone().prop_map(|tokens| Money::of_picos(tokens * 10_000_000));
    prop_oneof![
        2 => tokens.prop_map(|tokens| Use { tokens, cost: Money::ZERO }),
        1 => cost.prop_map(|cost| Use { tokens: 0, cost }),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let own = prop_oneof![2 => Just(Use::default()), 1 => cap(10_000..150_000)];
    let agent = (proptest::collection::vec(step(), 1..8), own, 100..=1_000u64)
        .prop_map(|(steps, cap, density)| Agent { steps, cap, density, is_bounded: true });
    let person = prop_oneof![
        3 => (0..8usize).prop_map(Person::Urgent),
        1 => (0..8usize).prop_map(Person::Stop),
    ];
    (
        proptest::collection::vec(agent, 1..8),
        cap(15_000..200_000),
        proptest::collection::vec((0..90u64, person), 0..10),
    )
        .prop_map(|(agents, cap, person)| Plan { agents, cap, person })
}

fn prices() -> Prices {
    let price = Money::of_picos;
    Prices { input: price(5_000_000), output: price(20_000_000), cached: price(500_000) }
}

/// Models that write down what they use.
struct Factory {
    plan: Plan,
    clock: Arc<VirtualClock>,
    ledger: Arc<Ledger>,
}

#[async_trait]
impl ModelFactory for Factory {
    async fn model(&self, agent: &AgentName, _: &str) -> Result<Box<dyn Model>, ModelFailure> {
        let index: usize = agent.as_str()[1..].parse().unwrap();
        let plan = &self.plan.agents[index];
        let (clock, ledger) = (self.clock.clone(), self.ledger.clone());
        let steps = plan.steps.iter().cloned().enumerate().collect();
        Ok(Box::new(Spender { steps, density: plan.density, is_bounded: plan.is_bounded, clock, ledger }))
    }

    fn prices(&self, _: &str) -> Prices {
        prices()
    }
}

struct Spender {
    steps: VecDeque<(usize, Step)>,
    density: u64,
    is_bounded: bool,
    clock: Arc<VirtualClock>,
    ledger: Arc<Ledger>,
}

impl Spender {
    /// What the request is for whoever counts tokens: no byte is more than one.
    fn reads(&self, request: &Request<'_>) -> u64 {
        let tool = |spec: &Arc<midturn_core::engine::ports::ToolSpec>| {
            spec.name.len() + spec.description.len() + spec.input_schema.to_string().len()
        };
        let around = request.system.len() + request.tools.iter().map(tool).sum::<usize>();
        let tokens = |bytes: usize| bytes as u64 * self.density / 1_000;
        let entries = request.entries.iter().map(|entry| match &**entry {
            Entry::User(text) => tokens(text.text.len()),
            // As it was counted when it was written.
            Entry::Assistant(reply) => reply.usage.output,
            Entry::Interrupted(_) => 0,
            Entry::ToolResults { results, mail } => {
                let mail = mail.as_ref().map_or(0, |mail| mail.text.len());
                tokens(results.iter().map(|result| result.text.len()).sum::<usize>() + mail)
            }
        });
        tokens(around) + entries.sum::<u64>()
    }

    /// Waits until the call has taken its time. `false`: it was cut.
    async fn works(&self, request: &Request<'_>, takes: u64) -> bool {
        let end = self.clock.now().after(Span::secs(takes));
        let ends = self.clock.until(end, Phase::ModelEnd(request.agent_index));
        tokio::select! {
            biased;
            () = ends => true,
            () = request.cancel.cancelled() => {
                self.clock.turn(Phase::ModelEnd(request.agent_index)).await;
                false
            }
        }
    }
}

#[async_trait]
impl Model for Spender {
    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        let (number, step) = self.steps.pop_front().unwrap_or_else(|| {
            (usize::MAX, Step { takes: 1, fails: false, sends: true, writes: 1, command: None })
        });
        let most = request.max_output.unwrap_or(LONGEST).min(LONGEST);
        let output = step.writes.min(most);
        let input = self.reads(&request);
        let usage = Usage { input, output, cached: input / 3 };
        let used = Use { tokens: usage.total(), cost: prices().cost(&usage) };
        let agent = request.agent_index;
        self.ledger.begins(agent, used);
        if step.sends {
            request.progress.sent();
        }
        let whole = self.works(&request, step.takes).await;
        if !whole || step.fails {
            request.progress.text("half a reply");
            request.progress.tokens(output / 2);
            // No more is ever counted than was held, whatever the density is.
            let held = input * 1_000 / self.density.max(1) + 1_000;
            let cost = prices().input.times(held).plus(prices().output.times(most));
            self.ledger.ends(agent, used, &End::Lost(Use { tokens: held + most, cost }));
            let kind = if whole { ErrorKind::Overloaded } else { ErrorKind::Cancelled };
            return Err(ModelFailure::new(kind, ""));
        }
        self.ledger.ends(agent, used, &End::Whole);
        Ok(reply(number, &step, usage))
    }

    fn max_output(&self) -> Option<u64> {
        self.is_bounded.then_some(LONGEST)
    }

    fn jitters(&self) -> bool {
        false
    }
}

fn reply(number: usize, step: &Step, usage: Usage) -> Reply {
    let mut blocks = vec![Block::Text("A reply.".into())];
    let is_whole = usage.output == step.writes;
    if let Some(call) = command(number, step).filter(|_| is_whole) {
        blocks.push(Block::ToolUse(ToolUse { id: call.id, name: call.name, input: call.input }));
    }
    let stop_reason = match (is_whole, blocks.len()) {
        (false, _) => StopReason::from_word("max_tokens"),
        (true, 1) => StopReason::EndTurn,
        (true, _) => StopReason::ToolUse,
    };
    Reply { blocks, stop_reason, usage }
}

fn command(number: usize, step: &Step) -> Option<ScriptedCall> {
    let takes = Span::secs(step.command?);
    let call = ScriptedCall::new(&format!("c{number}"), "bash", json!({"command": "true"}));
    Some(ScriptedCall { takes, result: "some words of a result".into(), ..call })
}

/// The simulated tools' part: what each command does.
fn scripts(plan: &Plan) -> Scripts {
    let script = |(index, agent): (usize, &Agent)| {
        let calls = agent.steps.iter().enumerate().filter_map(|(number, step)| command(number, step));
        (name(index), calls.map(ScriptedReply::calls).collect())
    };
    plan.agents.iter().enumerate().map(script).collect::<HashMap<_, _>>()
}

fn name(agent: usize) -> AgentName {
    AgentName::new(format!("a{agent}")).unwrap()
}

#[derive(Default)]
struct Log(Mutex<Vec<Event>>);

impl Observer for Log {
    fn event(&self, event: &Event) {
        self.0.lock().push(event.clone());
    }
}

/// What came of a plan.
struct Played {
    ledger: Arc<Ledger>,
    events: Vec<Event>,
}

fn played(plan: &Plan) -> Played {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let ledger = Arc::new(Ledger::new(plan.cap, plan.agents.iter().map(|agent| agent.cap)));
    let log = Arc::new(Log::default());
    runtime.block_on(async {
        let clock = Arc::new(VirtualClock::default());
        let models = Arc::new(Factory { plan: plan.clone(), clock: clock.clone(), ledger: ledger.clone() });
        let tools = Arc::new(SimulatedTools::new(clock.clone(), scripts(plan)));
        let (max_tokens, max_cost) = (plan.cap.tokens, plan.cap.cost);
        let session = Limits { max_tokens, max_cost, ..Limits::default() };
        let builder = Coordinator::builder(models, tools).clock(clock.clone()).observer(log.clone());
        let coordinator =
            builder.settings(Settings { session, ..Settings::default() }).start().await.unwrap();
        let last = plan.agents.len() - 1;
        for (index, agent) in plan.agents[..last].iter().enumerate() {
            coordinator.cast_agent(spec(index, agent)).await.unwrap();
        }
        for ((at, person), order) in plan.person.iter().cloned().zip(0..) {
            let (clock, coordinator) = (clock.clone(), coordinator.clone());
            tokio::spawn(async move {
                clock.until(Micros(at * 1_000_000), Phase::Arrival(order)).await;
                acts(&coordinator, &person).await;
            });
        }
        clock.drive().await.unwrap();
        // The last one comes when the others rest: what they held must be there again.
        coordinator.cast_agent(spec(last, &plan.agents[last])).await.unwrap();
        clock.drive().await.unwrap();
    });
    let events = std::mem::take(&mut *log.0.lock());
    Played { ledger, events }
}

fn spec(index: usize, agent: &Agent) -> AgentSpec {
    let (max_tokens, max_cost) = (agent.cap.tokens, agent.cap.cost);
    let settings = Settings { max_tokens, max_cost, ..Settings::default() };
    AgentSpec { prompt: Some("Go.".into()), settings, ..AgentSpec::new(name(index), "spender") }
}

async fn acts(coordinator: &Coordinator, person: &Person) {
    // There may be no such agent, or nothing to stop.
    match person {
        Person::Urgent(agent) => {
            let message = Message::new(Sender::User, name(*agent).as_str(), "quick");
            let _ = coordinator.send(Message { urgency: Some(Urgency::Urgent), ..message }).await;
        }
        Person::Stop(agent) => {
            let _ = coordinator.stop(name(*agent).as_str(), Sender::User, Scope::Agent).await;
        }
    }
}

/// The last agent, which asks for one short reply when all others rest.
fn modest() -> Agent {
    let step = Step { takes: 1, fails: false, sends: true, writes: 1, command: None };
    Agent { steps: vec![step], cap: Use::default(), density: 500, is_bounded: true }
}

fn ends(events: &[Event]) -> Vec<(String, Outcome, Option<String>)> {
    let end = |event: &Event| match &event.kind {
        EventKind::RunFinished { outcome, error, .. } => {
            Some((event.at.agent.as_ref()?.to_string(), *outcome, error.as_deref().map(str::to_owned)))
        }
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

fn holds(plan: &Plan) -> Result<Played, TestCaseError> {
    let played = played(plan);
    prop_assert_eq!(played.ledger.breaches(), Vec::<String>::new());
    let began =
        played.events.iter().filter(|event| matches!(event.kind, EventKind::RunStarted { .. })).count();
    let ends = ends(&played.events);
    prop_assert_eq!(began, ends.len(), "somebody waits for ever");
    for (agent, outcome, error) in &ends {
        let named = ["max_tokens", "max_cost", "session.max_tokens", "session.max_cost"];
        let said = error.as_deref().unwrap_or_default();
        let is_limit = *outcome == Outcome::Limit;
        prop_assert!(!is_limit || named.iter().any(|name| said.contains(name)), "{agent}: {said}");
    }
    Ok(played)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_at_once_use_no_more_than_the_budgets_have(mut plan in plan()) {
        plan.agents.push(modest());
        holds(&plan)?;
    }

    #[test]
    fn what_was_held_for_requests_that_were_cut_is_there_again(mut plan in plan()) {
        plan.agents.push(modest());
        let last = name(plan.agents.len() - 1).to_string();
        let played = holds(&plan)?;
        let account = played.ledger.session();
        prop_assert_eq!(account.flying, Use::default());
        let (used, cost) = (account.settled.tokens + account.lost.tokens, account.settled.cost.plus(account.lost.cost));
        let need = prices().input.times(A_REQUEST).plus(prices().output.times(LONGEST));
        let has_tokens = plan.cap.tokens == 0 || used + A_REQUEST + LONGEST <= plan.cap.tokens;
        let has_money = plan.cap.cost == Money::ZERO || cost.plus(need) <= plan.cap.cost;
        let end = ends(&played.events).into_iter().rev().find(|(agent, ..)| *agent == last);
        let finished = matches!(&end, Some((_, Outcome::Finished, _)));
        prop_assert!(finished || !has_tokens || !has_money, "{:?}, and {:?} is used of {:?}", end, account, plan.cap);
    }
}

#[test]
fn the_random_plans_reach_limits_and_have_many_requests_at_once() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut limited, mut together, mut lost, mut after) = (0, 0, 0, 0);
    for _ in 0..80 {
        let mut plan = plan().new_tree(&mut runner).unwrap().current();
        plan.agents.push(modest());
        let played = holds(&plan).unwrap();
        let account = played.ledger.session();
        let ends = ends(&played.events);
        limited += usize::from(ends.iter().any(|(_, outcome, _)| *outcome == Outcome::Limit));
        together += usize::from(account.most >= 3);
        lost += usize::from(account.lost.tokens > 0);
        after += usize::from(ends.last().is_some_and(|(_, outcome, _)| *outcome == Outcome::Finished));
    }
    assert!(limited > 20 && together > 15 && lost > 20 && after > 20, "{limited} {together} {lost} {after}");
}

#[test]
fn a_model_that_says_no_bound_goes_alone_and_overshoots_by_its_own_reply_only() {
    let step = |takes| Step { takes, fails: false, sends: true, writes: 3_000, command: Some(1) };
    let agent = Agent { steps: vec![step(5); 6], cap: Use::default(), density: 100, is_bounded: false };
    let cap = Use { tokens: 30_000, cost: Money::ZERO };
    let played = played(&Plan { agents: vec![agent; 5], cap, person: Vec::new() });
    let account = played.ledger.session();
    assert_eq!(account.most, 1, "one at a time");
    assert!(account.settled.tokens < cap.tokens + LONGEST + A_REQUEST, "{account:?}");
}

#[test]
fn the_calls_of_these_models_are_what_the_tools_know() {
    let step = Step { takes: 0, fails: false, sends: true, writes: 1, command: Some(2) };
    assert_eq!(command(3, &step).unwrap().id, CallId::new("c3"));
}
