//! One history: a session that goes through many lives of its daemon, each ended by SIGKILL or
//! at a fail point, and then is let come to its end and looked at as a whole.

mod last;
mod taking_up;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::future::join_all;
use midturn_core::fail::POINTS;
use serde_json::{Value, json};
use tokio::process::Child;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::api::{Answer, Api};
use crate::breach::Promise::{NoSurvivors, OneHolder, OrdersStand, StaysUp, WorkGoesOn};
use crate::breach::{Breach, Breaches};
use crate::checker;
use crate::daemon::{self, Daemon, Ended, Settings};
use crate::dice::Dice;
use crate::life::Life;
use crate::met::Met;
use crate::model::Model;
use crate::rule::{FINISH, PERSON};
use crate::story::{GUESTS, HOSTS, Story, Ways};
use crate::world::World;

/// The longest a daemon lives after it answers, in milliseconds.
const LIFE: u64 = 350;
/// How long nothing may be told while all that was under way comes to its end; and four times that for
/// all of it.
const LAST_LIFE: Duration = Duration::from_secs(30);
/// How long a daemon has to take up a session in which agents run, and one in which none does.
const TAKEN_UP: Duration = Duration::from_secs(20);
const NOTHING_LEFT: Duration = Duration::from_millis(100);
/// When somebody who works on is told to finish once more.
const ASKED_AGAIN: Duration = Duration::from_secs(2);
/// How long what a daemon's commands started may outlive it.
const AFTERLIFE: Duration = Duration::from_secs(5);

/// What a history is made of.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// How many lives there are before the last.
    pub(crate) lives: u64,
    pub(crate) planted: Option<String>,
    pub(crate) ways: Ways,
}

/// What came of a history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) breaches: Vec<Breach>,
    /// How many daemons were killed.
    pub(crate) killed: u64,
    /// At which fail points.
    pub(crate) points: Vec<&'static str>,
    pub(crate) events: u64,
    pub(crate) messages: u64,
    pub(crate) requests: u64,
    pub(crate) met: Met,
    /// Where everything lies, if there is something to look at.
    pub(crate) kept: Option<String>,
}

/// How a life ends.
#[derive(Clone, Debug)]
enum End {
    /// At a pass of a fail point, else when its time is up.
    Point(&'static str, u64),
    /// So long after its start, ready or not.
    Starting(Duration),
    /// So long after it answered.
    Living(Duration),
    /// When an event of a type has come.
    Event(&'static str),
    /// So long after it answered it is told to end, while people go on sending.
    Told(Duration),
}

/// What has ended a life so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lived {
    /// It is over, or about to be.
    ItsTime,
    /// It was told to end, and has.
    Told,
}

/// The types of event that a life can end at in every history.
const EVENTS: [&str; 8] = [
    "model_started",
    "model_finished",
    "tool_started",
    "tool_finished",
    "message_queued",
    "message_injected",
    "stop_requested",
    "run_finished",
];

struct History {
    story: Arc<Story>,
    /// Those who come into the daemon beside the others, if any do.
    guests: Option<Arc<Story>>,
    /// The process that began their session.
    run: Option<Child>,
    model: Model,
    settings: Settings,
    dice: Dice,
    report: Report,
}

/// Plays a history to its end, or to its first breach.
pub(crate) async fn play(plan: &Plan, wanted: &Mutex<BTreeSet<&'static str>>) -> Result<Report> {
    let mut dice = Dice::new(plan.seed);
    let world = Arc::new(World::new(dice.one_in(4))?);
    let breaches = Arc::new(Breaches::default());
    let model = Model::start(world.ground.clone(), breaches.clone()).await?;
    let settings =
        Settings { model_url: model.url.clone(), planted: plan.planted.clone(), ..Settings::default() };
    let story = Story::new(&world, &breaches, &HOSTS, plan.ways);
    // They are asked nothing: their agents' commands run beside those that a person is asked about.
    let guests = plan.ways.has_guests.then(|| Story::new(&world, &breaches, &GUESTS, Ways::default()));
    let report = Report::default();
    let mut history = History { story, guests, run: None, model, settings, dice, report };
    for _ in 0..plan.lives {
        if history.story.breaches.any() {
            break;
        }
        history.one_life(wanted).await?;
    }
    if !history.story.breaches.any() {
        history.last_life().await?;
    }
    history.over()
}

impl History {
    fn end_of_life(&mut self, wanted: &Mutex<BTreeSet<&'static str>>) -> End {
        let dice = &mut self.dice;
        match dice.below(20) {
            0..10 => {
                let wanted: Vec<&str> = wanted.lock().unwrap().iter().copied().collect();
                // Those that were never met come first, and at their first pass.
                if wanted.is_empty() || dice.one_in(4) {
                    End::Point(dice.pick(POINTS), 1 + dice.below(6))
                } else {
                    End::Point(dice.pick(&wanted), 1)
                }
            }
            10 => End::Starting(Duration::from_millis(dice.below(120))),
            11 | 12 => End::Told(Duration::from_millis(dice.below(LIFE))),
            13..16 => {
                let events: Vec<&str> = EVENTS.into_iter().chain(self.story.ways.events()).collect();
                End::Event(dice.pick(&events))
            }
            _ => End::Living(Duration::from_millis(dice.below(LIFE))),
        }
    }

    /// From a start to a kill.
    async fn one_life(&mut self, wanted: &Mutex<BTreeSet<&'static str>>) -> Result<()> {
        let end = self.end_of_life(wanted);
        let fail_point = match &end {
            End::Point(name, pass) => Some(format!("{name}:{pass}")),
            End::Starting(_) | End::Living(_) | End::Event(_) | End::Told(_) => None,
        };
        let settings = Settings { fail_point, ..self.settings.clone() };
        let mut daemon = Daemon::start(&self.story.world, &settings)?;
        if let End::Starting(after) = end {
            let _ = timeout_at(Instant::now() + after, daemon.ended()).await;
        } else if self.live(&mut daemon, &end).await? == Lived::Told {
            daemon.kill(false).await?;
            self.report.killed += 1;
            return self.is_over().await;
        }
        // Who outlives a daemon and its supervisors is what this fault leaves.
        let planted = self.settings.planted.as_deref();
        let wanted_dead = planted == Some("no_leftovers");
        // What these leave is seen only where a long command ran, its supervisor lives, and
        // nobody comes after the daemon: rare enough without being left to chance as well.
        let is_looked_for = matches!(planted, Some("supervisor_ignores_pipe" | "group_kill_only"));
        let with_children = wanted_dead || (!is_looked_for && self.dice.one_in(5));
        let ended = daemon.kill(with_children).await?;
        self.ended(&end, &ended, wanted);
        self.is_over().await?;
        // Now and then nobody comes after it: what it had started ends all the same.
        if is_looked_for || (!with_children && self.dice.one_in(3)) {
            let story = self.story.clone();
            let left = tokio::task::spawn_blocking(move || story.world.until_empty(AFTERLIFE)).await?;
            for process in left {
                let what = format!("the daemon is dead and {} is alive: {}", process.pid, process.what);
                self.story.breaches.add(NoSurvivors, what);
            }
        }
        Ok(())
    }

    /// All that a dead daemon has sent is read before the next one begins.
    async fn is_over(&mut self) -> Result<()> {
        if !self.model.quiet().await {
            bail!("the model server still reads what a dead daemon sent");
        }
        self.model.prompts.lock().unwrap().next_life();
        self.run_is_over().await
    }

    fn ended(&mut self, end: &End, ended: &Ended, wanted: &Mutex<BTreeSet<&'static str>>) {
        self.report.killed += 1;
        match end {
            End::Point(name, _) if ended.at_fail_point() => {
                self.report.points.push(name);
                wanted.lock().unwrap().remove(name);
            }
            _ if ended.was_killed() => {}
            _ => {
                let what = format!("it ended by itself, {}: {}", ended.status, ended.said.join("\n"));
                self.story.breaches.add(StaysUp, what);
            }
        }
    }

    /// From when it answers until its time is up.
    async fn live(&mut self, daemon: &mut Daemon, end: &End) -> Result<Lived> {
        self.stories().for_each(|story| story.only_sends.store(false, Ordering::SeqCst));
        let Some(api) = daemon.ready().await else { return self.never_ready(end) };
        let life = tokio::select! {
            life = taking_up::taken_up(&self.story, api.clone()) => life?,
            () = daemon.ended() => None,
        };
        let Some(life) = life else { return Ok(Lived::ItsTime) };
        let _guests = self.guests_come(&api, end).await?;
        let _reading = spawn(&life, async move |life: Life| life.read().await);
        life.writes_to_the_limited().await;
        let _answering = self.story.ways.asks.then(|| {
            let dice = self.dice.split();
            spawn(&life, async move |life: Life| life.answers(dice).await)
        });
        let people: Vec<_> = (0..2).map(|_| self.dice.split()).collect();
        let _acting: Vec<_> = people
            .into_iter()
            .map(|dice| spawn(&life, async move |life: Life| life.act(dice).await))
            .collect();
        let time = match end {
            End::Living(time) | End::Starting(time) | End::Told(time) => *time,
            End::Point(..) | End::Event(_) => Duration::from_millis(LIFE),
        };
        let deadline = Instant::now() + time;
        tokio::select! {
            () = daemon.ended() => {}
            () = self.until_event(end, deadline) => {}
        }
        if !matches!(end, End::Told(_)) {
            return Ok(Lived::ItsTime);
        }
        self.is_told_to_end(daemon, &api).await?;
        Ok(Lived::Told)
    }

    /// A fail point may have ended it; anything else is a breach that its end tells of.
    fn never_ready(&self, end: &End) -> Result<Lived> {
        if !matches!(end, End::Point(..)) {
            self.story.breaches.add(StaysUp, "it never answered after its start");
        }
        Ok(Lived::ItsTime)
    }

    fn stories(&self) -> impl Iterator<Item = &Arc<Story>> {
        iter::once(&self.story).chain(&self.guests)
    }

    /// Guests play on beside the others. Their session begins in a life that we end: `midturn run`
    /// that finds no daemon would hold the store itself.
    async fn guests_come(&mut self, api: &Api, end: &End) -> Result<Option<AbortOnDropHandle<()>>> {
        let Some(story) = self.guests.clone() else { return Ok(None) };
        if story.session.get().is_none() && !matches!(end, End::Point(..)) {
            self.run = Some(taking_up::joined(&story, api, &self.settings).await?);
        }
        if story.session.get().is_none() {
            return Ok(None);
        }
        let (api, dice) = (api.clone(), self.dice.split());
        Ok(Some(AbortOnDropHandle::new(tokio::spawn(async move {
            match taking_up::taken_up(&story, api).await {
                Ok(Some(life)) => _ = tokio::join!(life.read(), life.act(dice)),
                Ok(None) => {}
                Err(error) => story.breaches.add(StaysUp, format!("the guests' session: {error:#}")),
            }
        }))))
    }

    /// `midturn run` ends with the daemon that its session lives in.
    async fn run_is_over(&mut self) -> Result<()> {
        let Some(mut run) = self.run.take() else { return Ok(()) };
        if timeout_at(Instant::now() + AFTERLIFE, run.wait()).await.is_err() {
            self.story.breaches.add(StaysUp, "midturn run goes on after the daemon of its session");
        }
        Ok(())
    }

    /// Waits until no person's stop is on its way and none comes any more.
    async fn until_people_only_send(&self) {
        self.stories().for_each(|story| story.only_sends.store(true, Ordering::SeqCst));
        let deadline = Instant::now() + ASKED_AGAIN;
        let mut clock = tokio::time::interval(Duration::from_millis(5));
        let stops = || self.stories().map(|story| story.stopping.load(Ordering::SeqCst)).sum::<u32>();
        while stops() > 0 && Instant::now() < deadline {
            clock.tick().await;
        }
    }

    /// Tells a daemon to end, while people go on sending.
    async fn is_told_to_end(&mut self, daemon: &mut Daemon, api: &Api) -> Result<()> {
        self.until_people_only_send().await;
        let mut last = Vec::new();
        for story in self.stories() {
            let Some(life) = Life::of(story, api) else { continue };
            let session = life.get("").await.ok();
            last.extend(session.and_then(|session| session["last_seq"].as_u64()).map(|seq| (life, seq)));
        }
        let ended = daemon.told_to_end().await?;
        match ended {
            Some(status) if status.success() => {}
            Some(status) => self.story.breaches.add(StaysUp, format!("told to end, it ended with {status}")),
            None => self.story.breaches.add(StaysUp, "told to end, it goes on"),
        }
        for (life, last) in last.iter().filter(|_| ended.is_some()) {
            checker::is_a_fence(life, *last)?;
        }
        Ok(())
    }

    async fn until_event(&self, end: &End, deadline: Instant) {
        let mut told = self.story.told.subscribe();
        let mut seen = *told.borrow_and_update();
        while let Ok(Ok(())) = timeout_at(deadline, told.changed()).await {
            let last = *told.borrow_and_update();
            if let End::Event(kind) = end {
                let ledger = self.story.ledger.lock().unwrap();
                let new = ledger.events.get(seen as usize..last as usize).unwrap_or_default();
                if new.iter().any(|event| event["type"] == *kind) {
                    return;
                }
            }
            seen = last;
        }
    }

    fn over(self) -> Result<Report> {
        let mut report = self.report.clone();
        report.breaches = self.story.breaches.all();
        report.requests = self.model.prompts.lock().unwrap().requests();
        for story in self.stories() {
            let ledger = story.ledger.lock().unwrap();
            report.events += ledger.last();
            report.messages += story.mail.lock().unwrap().letters.len() as u64;
            report.met = report.met.and(&Met::of(story, &ledger.events));
        }
        if !report.breaches.is_empty() {
            let folder = self.story.world.keep();
            for story in self.stories() {
                let events = story.ledger.lock().unwrap();
                let events: Vec<String> = events.events.iter().map(Value::to_string).collect();
                let file = format!("events-of-{}.jsonl", story.cast.model);
                std::fs::write(folder.join(file), events.join("\n"))?;
            }
            report.kept = Some(folder.display().to_string());
        }
        Ok(report)
    }
}

/// Has somebody do something beside the others, until they are told to stop.
fn spawn<F>(life: &Life, work: impl FnOnce(Life) -> F) -> AbortOnDropHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    AbortOnDropHandle::new(tokio::spawn(work(life.clone())))
}
