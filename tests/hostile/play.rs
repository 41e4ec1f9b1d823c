//! One round: a daemon in a tier, all programs of the corpus one after the other, and after each
//! a look at the world.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::case::{Bare, Case, Expect, Who};
use crate::daemon::{Daemon, Interface, Settings, Tier};
use crate::doors::Doors;
use crate::model::{Model, STEPS};
use crate::person::Saved;
use crate::snapshot::{Snapshot, take_marked};
use crate::targets::{self, left_in_the_kernel};
use crate::tree::{Process, at_work, bearing, below_us, memory, peak, survivors};
use crate::watch::{Ended, Watch};
use crate::world::World;

/// How long a program's agent may take, its git included.
const PATIENCE: Duration = Duration::from_secs(75);
/// How long what was ended may take to be gone.
const GONE: Duration = Duration::from_secs(5);
/// How many light programs run beside each other.
const BESIDE: usize = 6;
/// How much more memory the daemon may take, in bytes.
const GROWTH: u64 = 32 << 20;
/// How often the interface is asked while a greedy program runs.
const PACE: Duration = Duration::from_millis(100);

/// Whether the tier is there.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// What was found.
    Played(Vec<String>),
    /// The daemon says that the machine doesn't offer it.
    NotOffered(String),
}

/// A round.
pub(crate) struct Round {
    world: World,
    tier: Tier,
    daemon: Daemon,
    interface: Interface,
    session: String,
    watch: Watch,
    doors: Doors,
    before: Snapshot,
    /// Who lived before the first program: the daemon, and a neighbour at work.
    known: Vec<Process>,
    bearing: Vec<String>,
    breaches: Vec<String>,
    model: Model,
}

/// Where programs are played.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) tier: Tier,
    /// Who the daemon is, if it is somebody else than we.
    pub(crate) user: Option<u32>,
    /// Whether the system lets it make namespaces.
    pub(crate) namespaces: bool,
}

/// Plays these programs in a place.
pub(crate) async fn play(place: Place, cases: &[Case]) -> Result<Outcome> {
    let Place { tier, user, namespaces } = place;
    let world = World::new(user)?;
    let model = Model::start(world.canaries.clone()).await?;
    let settings = Settings { tier, namespaces, model: model.port, through: None };
    let mut daemon = Daemon::start(&world, &settings)?;
    let Some(interface) = daemon.ready().await else {
        let said = daemon.terminate().await?.unwrap_or_default().join("\n");
        return Ok(Outcome::NotOffered(said));
    };
    let mut round = Round::begin(world, tier, daemon, interface, model).await?;
    println!("{}", round.tells());
    // What it does to the project's git keeps others from getting a worktree of it.
    let ruins = |case: &&Case| tier == Tier::None && case.bare == Bare::NothingIsExecuted;
    let (last, cases_before): (Vec<&Case>, Vec<&Case>) =
        cases.iter().filter(|case| is_played(tier, case)).partition(ruins);
    let (alone, light): (Vec<&Case>, Vec<&Case>) =
        cases_before.into_iter().partition(|case| case.alone || case.who == Who::Lead);
    let alone = alone.iter().map(std::slice::from_ref);
    for cases in light.chunks(BESIDE).chain(alone).chain(last.chunks(BESIDE)) {
        // What was found before it went wrong is told all the same.
        if let Err(error) = round.batch(cases).await {
            round.breaches.push(format!("the round is over: {error:#}"));
            return Ok(Outcome::Played(round.breaches));
        }
    }
    round.end(cases).await.map(Outcome::Played)
}

impl Round {
    async fn begin(
        world: World,
        tier: Tier,
        daemon: Daemon,
        interface: Interface,
        model: Model,
    ) -> Result<Self> {
        world.canaries.lock().unwrap().add("the interface's token", &interface.api.door.token);
        let doors = Doors::open(&world)?;
        let begun = interface.api.post("/sessions", &json!({"task": format!("{STEPS}[]")})).await?;
        let session = begun["session"].as_str().context("a session has an id")?.to_owned();
        let watch = Watch::start(interface.api.clone(), session.clone(), world.canaries.clone());
        watch.run("lead", 1, PATIENCE).await?;
        let mut round = Self {
            before: Snapshot::default(),
            known: Vec::new(),
            bearing: bearing(interface.pid),
            breaches: Vec::new(),
            world,
            tier,
            daemon,
            interface,
            session,
            watch,
            doors,
            model,
        };
        let neighbour = round.neighbour().await?;
        targets::write(&round.world, &round.interface, &round.doors, (&neighbour, round.model.port))?;
        round.before = round.world.snapshot(true);
        round.known = at_work(round.interface.pid);
        Ok(round)
    }

    /// Another agent, with a secret in its worktree and in the environment of its command.
    async fn neighbour(&mut self) -> Result<Vec<i32>> {
        self.spawn(
            "neighbour",
            &json!([[{"id": "neighbour-first", "name": "bash", "input": {"command": "true"}}]]),
        )
        .await?;
        self.watch.run("neighbour", 1, PATIENCE).await?;
        let worktree = self.world.worktree("neighbour");
        let worktree =
            worktree.with_context(|| format!("no worktree: {:?}", self.watch.calls("neighbour")))?;
        let word = self.world.canaries.lock().unwrap().plant("the neighbour's word", &self.world.mark);
        fs::write(worktree.join("word.txt"), &word)?;
        let command = format!("exec bash {}/neighbour.sh", self.world.path("programs").display());
        let turns =
            json!([[{"id": "neighbour-0", "name": "bash", "input": {"command": command, "timeout": 600}}]]);
        let text = format!("{STEPS}{turns}");
        self.post("/agents/neighbour/messages", json!({"text": text})).await?;
        self.watch.begun("neighbour-0", PATIENCE).await?;
        let mut tried = 0;
        let mut clock = tokio::time::interval(Duration::from_millis(20));
        loop {
            clock.tick().await;
            let sleeps = below_us().into_iter().filter(|process| process.what.starts_with("sleep 300"));
            let sleeps: Vec<i32> = sleeps.map(|process| process.pid).collect();
            tried += 1;
            if !sleeps.is_empty() {
                return Ok(sleeps);
            }
            if tried > 500 {
                bail!("the neighbour doesn't work: {:?}", self.watch.calls("neighbour"));
            }
        }
    }

    fn tells(&self) -> String {
        let said = self.daemon.said();
        let told = said.iter().find(|line| line.contains("sandbox")).cloned().unwrap_or_default();
        format!(
            "{} as {}: {told}",
            self.tier.word(),
            self.world.user.map_or("this user", |_| "an ordinary user")
        )
    }

    /// Whether limits hold for a whole tree here: the daemon says so.
    fn limits_hold_for_trees(&self) -> bool {
        self.daemon.said().iter().any(|line| line.contains("limits by cgroup"))
    }

    async fn post(&self, path: &str, body: Value) -> Result<Value> {
        self.interface.api.post(&format!("/sessions/{}{path}", self.session), &body).await
    }

    async fn spawn(&self, name: &str, turns: &Value) -> Result<()> {
        self.post("/agents", json!({"name": name, "prompt": format!("{STEPS}{turns}")})).await.map(drop)
    }

    /// Runs some programs beside each other and looks at what became of the world.
    async fn batch(&mut self, cases: &[&Case]) -> Result<()> {
        let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
        let had = memory(self.interface.pid);
        let began = Instant::now();
        let ran = async {
            let runs = cases.iter().map(|case| self.run(case));
            futures_util::future::join_all(runs).await
        };
        let (ran, answers) = answering(&self.interface, ran).await;
        let grown = peak(self.interface.pid).saturating_sub(had);
        println!(
            "  {}: {} KiB, {}, {:?}",
            names.join(", "),
            grown >> 10,
            answers.as_ref().map_or_else(|_| "no answer".to_owned(), |answers| slowest(answers)),
            began.elapsed()
        );
        let own = cases
            .iter()
            .zip(ran)
            .flat_map(|(case, found)| found.into_iter().map(|what| format!("{}: {what}", case.name)));
        self.breaches.extend(own);
        let mut found = Vec::new();
        found.extend(answers.err().map(|error| format!("the interface: {error:#}")));
        if grown > GROWTH {
            found.push(format!("the daemon grew by {} MiB", grown >> 20));
        }
        found.extend(self.look(cases));
        self.breaches.extend(found.into_iter().map(|what| format!("{}: {what}", blamed(&names, &what))));
        for case in cases.iter().filter(|case| case.who == Who::Worker && !case.merged) {
            self.post(&format!("/agents/{}/close", case.name), json!({})).await?;
        }
        if !self.daemon.lives() {
            bail!("the daemon is gone");
        }
        Ok(())
    }

    /// Runs one program to its end; what was not as expected of it.
    async fn run(&self, case: &Case) -> Vec<String> {
        let agent = if case.who == Who::Lead { "lead" } else { case.name };
        let before = self.watch.calls(agent).len();
        let turns = case.turns(&self.world);
        let after = before + turns.as_array().map_or(0, Vec::len);
        let begun = match case.who {
            Who::Worker => self.spawn(agent, &turns).await,
            Who::Lead => {
                self.post("/agents/lead/messages", json!({"text": format!("{STEPS}{turns}")})).await.map(drop)
            }
        };
        if let Err(error) = begun {
            return vec![format!("it can't be begun: {error:#}")];
        }
        let git = case.visited.then(|| self.world.gits_own());
        let saved = async {
            match case.replaced {
                Some(file) => Some(tokio::time::timeout(PATIENCE, Saved::by(&self.world, case, file)).await),
                None => None,
            }
        };
        let (made, saved) = tokio::join!(self.watch.calls_made(agent, after, PATIENCE), saved);
        let saved = match saved.transpose() {
            Ok(saved) => saved.transpose(),
            Err(late) => Err(late.into()),
        };
        match made {
            Ok(outcome) if outcome == "finished" => {
                let calls = &self.watch.calls(agent)[before..];
                let said = calls.first().map_or("", |call| call.output.as_str());
                let saved = saved.map(|saved| saved.and_then(|saved| saved.judge(said)));
                let of_saved = saved.unwrap_or_else(|error| Some(format!("nothing was saved: {error:#}")));
                let visited = git.map(|git| self.world.visit(case.name, git));
                let found = self.judge(case, calls).into_iter().chain(of_saved);
                found.chain(visited.into_iter().flatten()).collect()
            }
            Ok(outcome) => vec![format!("its agent's run ended as {outcome}")],
            Err(error) => vec![format!("{error:#}")],
        }
    }

    fn judge(&self, case: &Case, calls: &[Ended]) -> Vec<String> {
        let Some((first, others)) = calls.split_first() else { return vec!["it was not run".to_owned()] };
        let mut found: Vec<String> = first
            .output
            .lines()
            .filter(|line| line.starts_with("escaped: ") && self.tier != Tier::None)
            .map(str::to_owned)
            .collect();
        let unmet = case.expect.iter().filter_map(|expect| self.unmet(expect, first, others));
        found.extend(unmet.map(|what| format!("{what}\n{}", shown(first))));
        if std::env::var_os("MIDTURN_HOSTILE_SHOW").is_some() {
            println!("--- {}: {} {}\n{}", case.name, first.status, first.is_error, first.output);
            others.iter().for_each(|call| println!("    {}: {} {}", call.tool, call.status, call.output));
        }
        found
    }

    fn unmet(&self, expect: &Expect, first: &Ended, others: &[Ended]) -> Option<String> {
        let reached = || {
            let mut numbers =
                first.output.lines().filter_map(|line| line.strip_prefix("reached: ")?.parse::<u64>().ok());
            numbers.next_back()
        };
        let too_far = |limit: u64| match reached() {
            Some(reached) if reached <= limit => None,
            reached => Some(format!("it reached {reached:?}, and {limit} is the limit")),
        };
        match *expect {
            Expect::Says(text) => (!first.output.contains(text)).then(|| format!("it does not say {text:?}")),
            Expect::Reached(limit) => too_far(limit).filter(|_| self.tier != Tier::None || limit <= 1 << 10),
            Expect::TreeReached(limit) if self.limits_hold_for_trees() => too_far(limit),
            Expect::TreeReached(_) => None,
            Expect::IsError(wanted) => {
                (first.is_error != wanted).then(|| format!("its error is {}", first.is_error))
            }
            Expect::OthersRefused => {
                let taken: Vec<&Ended> = others.iter().filter(|call| !call.is_error).collect();
                (!taken.is_empty()).then(|| format!("these were not refused: {taken:?}"))
            }
            Expect::OthersHaveNoLine(line) => {
                let told = others.iter().find(|call| call.output.lines().any(|said| said == line));
                told.map(|call| format!("a name is taken for a line: {call:?}"))
            }
            Expect::OthersEnd => {
                let lost = others.iter().find(|call| !matches!(call.status.as_str(), "completed" | "failed"));
                lost.map(|call| format!("this did not end: {call:?}"))
            }
        }
    }

    /// What is not as it was, and who is alive that should not be.
    fn look(&mut self, cases: &[&Case]) -> Vec<String> {
        let executed = |found: &String| found.contains("outside/executed");
        let mut found = Vec::new();
        let after = self.world.snapshot(true);
        let changed = self.before.differences(&after);
        // Told once, not after every program that follows.
        self.before = after;
        if cases.iter().any(|case| case.bare == Bare::NothingIsExecuted) && self.tier == Tier::None {
            found.extend(changed.into_iter().filter(executed));
        } else {
            found.extend(changed);
        }
        if self.tier != Tier::None {
            found.extend(take_marked(&self.world.mark));
        }
        found.extend(self.doors.passed());
        found.extend(
            survivors(|| at_work(self.interface.pid), &self.known, GONE)
                .into_iter()
                .map(|process| format!("{} lives: {}", process.pid, process.what)),
        );
        let alive = at_work(self.interface.pid);
        let gone = self.known.iter().filter(|known| !alive.contains(known));
        found.extend(gone.map(|process| format!("{} was ended: {}", process.pid, process.what)));
        self.known.retain(|known| alive.contains(known));
        let bearing = bearing(self.interface.pid);
        if bearing != self.bearing {
            found.push(format!("the daemon's bearing was changed: {:?}, now {bearing:?}", self.bearing));
            self.bearing = bearing;
        }
        found.extend(left_in_the_kernel(&self.world.mark));
        found.extend(self.world.canaries.lock().unwrap().take_found());
        found
    }

    /// Has an agent's branch compared and merged. What can't be may be refused; nobody hangs, and
    /// nothing that it planted is executed.
    async fn merge(&self, case: &Case) -> Vec<String> {
        let before = self.world.snapshot(false);
        let path = format!("/sessions/{}/agents/{}/diff", self.session, case.name);
        let compared = self.interface.api.get(&path).await;
        let merged = self.post(&format!("/agents/{}/merge", case.name), json!({})).await;
        let errors = [compared, merged].into_iter().filter_map(Result::err).map(|error| format!("{error:#}"));
        let silent = errors.filter(|error| error.contains("silent"));
        let changed = before.differences(&self.world.snapshot(false));
        silent.chain(changed).map(|what| format!("{}, merged: {what}", case.name)).collect()
    }

    /// Looks at branches, merges them, ends the daemon, and looks at what is stored.
    async fn end(mut self, cases: &[Case]) -> Result<Vec<String>> {
        for case in cases.iter().filter(|case| case.merged && is_played(self.tier, case)) {
            let found = self.merge(case).await;
            self.breaches.extend(found);
        }
        self.post("/agents/neighbour/stop", json!({})).await?;
        let Some(said) = self.daemon.terminate().await? else { bail!("the daemon does not end") };
        let left = survivors(below_us, &[], GONE).into_iter();
        self.breaches
            .extend(left.map(|process| format!("after the daemon {} lives: {}", process.pid, process.what)));
        self.world.look_at_what_is_stored();
        let mut canaries = self.world.canaries.lock().unwrap();
        canaries.look("what the daemon said", said.join("\n").as_bytes());
        self.breaches.extend(canaries.take_found());
        drop(canaries);
        Ok(self.breaches)
    }
}

/// Without a sandbox only what needs none.
fn is_played(tier: Tier, case: &Case) -> bool {
    tier != Tier::None || case.bare != Bare::NotRun
}

/// Asks the interface until the work is done: how long each answer took.
async fn answering<T>(interface: &Interface, work: impl Future<Output = T>) -> (T, Result<Vec<Duration>>) {
    let mut clock = tokio::time::interval(PACE);
    let mut work = std::pin::pin!(work);
    let mut answers = Ok(Vec::new());
    loop {
        tokio::select! {
            biased;
            done = &mut work => return (done, answers),
            _ = clock.tick() => {}
        }
        // The work goes on while the answer is awaited.
        let began = Instant::now();
        let asked = interface.api.get("/health");
        tokio::select! {
            done = &mut work => return (done, answers),
            answer = asked => match (&mut answers, answer) {
                (Ok(answers), Ok(_)) => answers.push(began.elapsed()),
                (Ok(_), Err(error)) => answers = Err(error),
                (Err(_), _) => {}
            },
        }
    }
}

/// How many answers there were, and how long the slowest took: for docs/performance.md, and no
/// claim of a test.
fn slowest(answers: &[Duration]) -> String {
    let most = answers.iter().max().copied().unwrap_or_default();
    format!("{} answers, the slowest after {} ms", answers.len(), most.as_millis())
}

/// Which of the programs that ran beside each other it was: what they make carries their names.
fn blamed(names: &[&str], what: &str) -> String {
    let named: Vec<&str> = names.iter().copied().filter(|name| what.contains(name)).collect();
    if let [one] = *named { one.to_owned() } else { format!("one of {}", names.join(", ")) }
}

fn shown(call: &Ended) -> String {
    let output: String = call.output.chars().take(1_500).collect();
    format!("    [{} {}] {}", call.tool, call.status, output.replace('\n', "\n    "))
}
