//! One history: a session that goes through many lives of its daemon, each ended by SIGKILL or
//! at a fail point, and then is let come to its end and looked at as a whole.

mod last;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use midturn_core::fail::POINTS;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::api::{Answer, Api};
use crate::breach::Promise::{NoSurvivors, OneHolder, OrdersStand, StaysUp, WorkGoesOn};
use crate::breach::{Breach, Breaches};
use crate::checker;
use crate::daemon::{Daemon, Ended, Settings};
use crate::dice::Dice;
use crate::ledger::Ledger;
use crate::life::{Life, Story};
use crate::mail::Mail;
use crate::model::Model;
use crate::rule::{CREW, FINISH, LIMITED, PERSON};
use crate::world::World;

/// The longest a daemon lives after it answers, in milliseconds.
const LIFE: u64 = 350;
/// How long a daemon has for all that was under way to come to its end.
const LAST_LIFE: Duration = Duration::from_secs(30);
/// How long a daemon has to take up a session in which agents run, and one in which none does.
const TAKEN_UP: Duration = Duration::from_secs(20);
const NOTHING_LEFT: Duration = Duration::from_secs(1);
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
}

/// What came of a history.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) breaches: Vec<Breach>,
    /// How many daemons were killed.
    pub(crate) killed: u64,
    /// At which fail points.
    pub(crate) points: Vec<&'static str>,
    pub(crate) events: u64,
    pub(crate) messages: u64,
    pub(crate) requests: u64,
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

/// The types of event that a life can end at.
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
    model: Model,
    settings: Settings,
    dice: Dice,
    session: Option<String>,
    report: Report,
}

/// Plays a history to its end, or to its first breach.
pub(crate) async fn play(plan: &Plan, wanted: &Mutex<BTreeSet<&'static str>>) -> Result<Report> {
    let mut dice = Dice::new(plan.seed);
    let world = World::new(dice.one_in(4))?;
    let breaches = Arc::new(Breaches::default());
    let model = Model::start(world.ground.clone(), breaches.clone()).await?;
    let settings =
        Settings { model_url: model.url.clone(), planted: plan.planted.clone(), ..Settings::default() };
    let story = Arc::new(Story {
        world,
        breaches,
        ledger: Mutex::new(Ledger::default()),
        mail: Mutex::new(Mail::default()),
        told: watch::Sender::new(0),
        closed: Mutex::default(),
        only_sends: AtomicBool::new(false),
        stopping: AtomicU32::new(0),
    });
    let mut history = History { story, model, settings, dice, session: None, report: Report::default() };
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
            13..16 => End::Event(dice.pick(&EVENTS)),
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
            if !self.model.quiet().await {
                bail!("the model server still reads what a daemon sent");
            }
            self.model.prompts.lock().unwrap().next_life();
            return Ok(());
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
        if !self.model.quiet().await {
            bail!("the model server still reads what a dead daemon sent");
        }
        self.model.prompts.lock().unwrap().next_life();
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
        self.story.only_sends.store(false, Ordering::SeqCst);
        let Some(api) = daemon.ready().await else { return self.never_ready(end) };
        let life = tokio::select! {
            life = self.session(api) => life?,
            () = daemon.ended() => None,
        };
        let Some(life) = life else { return Ok(Lived::ItsTime) };
        let _reading = spawn(&life, async move |life: Life| life.read().await);
        life.writes_to_the_limited().await;
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
        self.is_told_to_end(daemon, &life).await?;
        Ok(Lived::Told)
    }

    /// A fail point may have ended it; anything else is a breach that its end tells of.
    fn never_ready(&self, end: &End) -> Result<Lived> {
        if !matches!(end, End::Point(..)) {
            self.story.breaches.add(StaysUp, "it never answered after its start");
        }
        Ok(Lived::ItsTime)
    }

    /// Waits until no person's stop is on its way and none comes any more.
    async fn until_people_only_send(&self) {
        self.story.only_sends.store(true, Ordering::SeqCst);
        let deadline = Instant::now() + ASKED_AGAIN;
        let mut clock = tokio::time::interval(Duration::from_millis(5));
        while self.story.stopping.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
            clock.tick().await;
        }
    }

    /// Tells a daemon to end, while people go on sending.
    async fn is_told_to_end(&mut self, daemon: &mut Daemon, life: &Life) -> Result<()> {
        self.until_people_only_send().await;
        let last = life.get("").await.ok().and_then(|session| session["last_seq"].as_u64());
        let ended = daemon.told_to_end().await?;
        match ended {
            Some(status) if status.success() => {}
            Some(status) => self.story.breaches.add(StaysUp, format!("told to end, it ended with {status}")),
            None => self.story.breaches.add(StaysUp, "told to end, it goes on"),
        }
        if let (Some(last), Some(_)) = (last, ended) {
            checker::is_a_fence(&self.story, &life.session, last)?;
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

    /// The session, begun if need be, with its agents. `None`: the daemon is gone.
    async fn session(&mut self, api: Api) -> Result<Option<Life>> {
        let session = match self.session.clone() {
            Some(session) => session,
            None => match self.begin(&api).await? {
                Some(session) => self.session.insert(session).clone(),
                None => return Ok(None),
            },
        };
        let life = Life { story: self.story.clone(), api, session };
        if !self.goes_on(&life).await? {
            return Ok(None);
        }
        let closed = self.story.closed.lock().unwrap().clone();
        let Some(agents) = life.get("/agents").await.ok() else { return Ok(None) };
        for agent in agents["agents"].as_array().into_iter().flatten() {
            if closed.contains(agent["name"].as_str().unwrap_or_default())
                && !matches!(agent["state"].as_str(), Some("closed" | "ending"))
            {
                self.story.breaches.add(OrdersStand, format!("it was closed, and now it is {agent}"));
            }
        }
        for name in CREW[1..].iter().chain([&LIMITED]) {
            let known = agents["agents"].as_array().into_iter().flatten().any(|agent| agent["name"] == *name);
            let spawn = json!({"name": name, "prompt": format!("{PERSON} Begin, {name}.")});
            if !known && matches!(life.post("/agents", spawn).await, Answer::Lost(_)) {
                return Ok(None);
            }
        }
        if life.has_no_limit(LIMITED) && matches!(life.set_max_turns(LIMITED, 3).await, Answer::Lost(_)) {
            return Ok(None);
        }
        Ok(self.sends_what_is_open(&life).await.then_some(life))
    }

    /// A session may have been begun in a life whose answer was lost.
    async fn begin(&self, api: &Api) -> Result<Option<String>> {
        let Some(known) = api.get("/sessions").await.ok() else { return Ok(None) };
        let id = |session: &Value| session["session"].as_str().map(str::to_owned);
        let sessions = known["sessions"].as_array().context("no list of sessions")?;
        // One that was archived and has no agent yet was never answered for.
        if let Some(session) = sessions.iter().find(|session| session["agents"].as_u64() > Some(0)) {
            return Ok(id(session));
        }
        let task = json!({"task": format!("{PERSON} Begin, lead.")});
        match api.post("/sessions", &task).await {
            Answer::Said(201, session) => Ok(id(&session)),
            Answer::Lost(_) => Ok(None),
            answer => bail!("no session begins: {answer:?}"),
        }
    }

    /// The daemon takes up by itself what has work left. `false`: it is gone.
    async fn goes_on(&self, life: &Life) -> Result<bool> {
        let began = Instant::now();
        let mut clock = tokio::time::interval(Duration::from_millis(5));
        loop {
            let Answer::Said(_, session) = life.get("").await else { return Ok(false) };
            if session["live"] == true {
                return Ok(true);
            }
            let patience = if session["running"].as_u64() > Some(0) { TAKEN_UP } else { NOTHING_LEFT };
            if began.elapsed() > patience {
                break;
            }
            clock.tick().await;
        }
        match life.post("/resume", json!({})).await {
            Answer::Said(200, said) => {
                if said["resumed"].as_array().is_some_and(|names| !names.is_empty()) {
                    let what = format!("the daemon left work lying at its start: {}", said["resumed"]);
                    life.story.breaches.add(WorkGoesOn, what);
                }
                Ok(true)
            }
            Answer::Lost(_) => Ok(false),
            answer if answer.code() == Some("already_live") => Ok(true),
            answer => bail!("the session can't be resumed: {answer:?}"),
        }
    }

    /// What nobody knows the fate of is sent again. `false`: the daemon is gone.
    async fn sends_what_is_open(&self, life: &Life) -> bool {
        let letters = self.story.mail.lock().unwrap().letters.clone();
        for letter in letters.iter().filter(|letter| letter.is_open()) {
            if matches!(life.send_once_more(letter).await, Answer::Lost(_)) {
                return false;
            }
        }
        true
    }

    fn over(self) -> Result<Report> {
        let mut report = self.report;
        report.breaches = self.story.breaches.all();
        report.events = self.story.ledger.lock().unwrap().last();
        report.messages = self.story.mail.lock().unwrap().letters.len() as u64;
        report.requests = self.model.prompts.lock().unwrap().all().map(|(_, sent)| sent.requests).sum();
        drop(self.model);
        if !report.breaches.is_empty() {
            let folder = self.story.world.keep();
            let ledger = self.story.ledger.lock().unwrap();
            let events: Vec<String> = ledger.events.iter().map(Value::to_string).collect();
            std::fs::write(folder.join("events.jsonl"), events.join("\n"))?;
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
