//! What happens in one life of a daemon, from when it answers to its end: a reader of events,
//! and people who send, correct, withdraw, stop and look, at times that the dice choose.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::api::{Answer, Api, Told};
use crate::breach::Promise::{NoSurvivors, NothingDoubled, OneHistory, StaysUp};
use crate::dice::Dice;
use crate::mail::{Letter, Withdrawal};
use crate::rule::{PERSON, SPAWN};
use crate::story::Story;

/// The route of seed 000's request.
const SOFT: &str = "soft_interrupt";

/// The same message as seed 000 has it.
fn softly(body: &Value) -> Value {
    json!({"id": body["id"], "content": body["text"], "urgent": body["urgency"] == "next_boundary"})
}

/// A live daemon that carries the session of a story.
#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) story: Arc<Story>,
    pub(crate) api: Api,
    pub(crate) session: String,
}

impl Life {
    /// `None`: its session has not begun.
    pub(crate) fn of(story: &Arc<Story>, api: &Api) -> Option<Self> {
        let session = story.session.get()?.clone();
        Some(Self { story: story.clone(), api: api.clone(), session })
    }

    fn path(&self, below: &str) -> String {
        format!("/sessions/{}{below}", self.session)
    }

    pub(crate) async fn get(&self, below: &str) -> Answer {
        self.api.get(&self.path(below)).await
    }

    pub(crate) async fn post(&self, below: &str, body: Value) -> Answer {
        let answer = self.api.post(&self.path(below), &body).await;
        match &answer {
            Answer::Said(500.., said) if !answer.ends() => {
                self.story.breaches.add(StaysUp, format!("POST {below} was answered {said}"));
            }
            Answer::Silent => self.story.breaches.add(StaysUp, format!("no answer to POST {below}")),
            Answer::Said(..) | Answer::Lost(_) => {}
        }
        answer
    }

    /// Reads events until the stream ends.
    pub(crate) async fn read(&self) {
        let after = self.story.ledger.lock().unwrap().last();
        // A daemon that was killed meanwhile has none.
        let Ok(mut events) = self.api.events(&self.session, after, self.story.ways.asks).await else {
            return;
        };
        while let Some(told) = events.next().await {
            match told {
                Told::Stored(number, event) => self.told(number, event),
                Told::Resync(last) => {
                    let what = format!("events up to {after} were told, and now there are {last}");
                    self.story.breaches.add(OneHistory, what);
                    return;
                }
            }
        }
    }

    fn told(&self, number: u64, event: Value) {
        let story = &self.story;
        if event["type"] == "tool_finished" && event["status"] != "unknown" {
            let call = event["tool"].as_str().unwrap_or_default();
            for process in story.world.processes(Some(call)) {
                let what =
                    format!("call {call} has its result and {} is alive: {}", process.pid, process.what);
                story.breaches.add(NoSurvivors, what);
            }
        }
        story.ledger.lock().unwrap().told(number, event, &story.breaches);
        story.told.send_replace(number);
    }

    /// A person at work until the daemon is gone.
    pub(crate) async fn act(&self, mut dice: Dice) {
        let mut told = self.story.told.subscribe();
        loop {
            if !self.one_act(&mut dice).await {
                return;
            }
            told.mark_unchanged();
            // Now and then at once, else when something has happened or a moment later.
            let pause = Duration::from_millis(dice.below(30));
            let _ = timeout(pause, told.changed()).await;
        }
    }

    /// `false`: the daemon is gone.
    async fn one_act(&self, dice: &mut Dice) -> bool {
        let most = if self.story.only_sends.load(Ordering::SeqCst) { 48 } else { 100 };
        let answer = match dice.below(most) {
            0..46 => self.send_new(dice).await,
            46..48 => self.interrupt_softly(dice).await,
            48 => self.close(dice).await,
            49 => self.limit(dice).await,
            50..52 => self.send_for_a_run(dice).await,
            52..62 => self.send_again(dice).await,
            62..66 => self.send_otherwise(dice).await,
            66..74 => self.withdraw(dice).await,
            74..78 => self.supersede(dice).await,
            78..82 => self.stop(dice).await,
            82..86 => {
                self.post(&format!("/agents/{}/resume", dice.pick(self.story.cast.crew)), json!({})).await
            }
            86..96 => self.look(dice).await,
            _ => self.send_to_all().await,
        };
        !matches!(answer, Answer::Lost(_))
    }

    async fn send_new(&self, dice: &mut Dice) -> Answer {
        let mut extra = match dice.below(6) {
            0 => json!({"urgency": "follow_up"}),
            1 => json!({"urgency": "after_tools"}),
            2 => json!({"urgency": "next_boundary"}),
            // Some have cut a call when their time is up.
            3 | 4 if dice.one_in(4) => json!({"urgent": true, "expires_after": "60ms"}),
            3 | 4 => json!({"urgent": true}),
            _ => json!({}),
        };
        match dice.below(20) {
            0 => extra["expires_after"] = json!("60ms"),
            1 | 2 => self.some_id(dice).into_iter().for_each(|id| extra["supersedes"] = id.into()),
            _ => {}
        }
        let to = self.somebody(dice);
        let spawn = to == "lead" && dice.one_in(8);
        let words = match spawn {
            true => format!("{PERSON} do it {SPAWN}b{}.", dice.below(4)),
            false => format!("{PERSON} do it."),
        };
        let letter = self.story.mail.lock().unwrap().write(&to, "messages", &words, extra);
        self.send(&letter).await
    }

    /// Mostly one of those that there are from the start, who are never closed.
    fn somebody(&self, dice: &mut Dice) -> String {
        let spawned = self.spawned();
        if spawned.is_empty() || !dice.one_in(8) {
            dice.pick(self.story.cast.crew).to_owned()
        } else {
            dice.pick(&spawned)
        }
    }

    /// Those that the lead has spawned.
    fn spawned(&self) -> Vec<String> {
        let ledger = self.story.ledger.lock().unwrap();
        ledger.agents.keys().filter(|name| !self.story.cast.crew.contains(&name.as_str())).cloned().collect()
    }

    /// As seed 000 has it; sent again it is an ordinary message.
    async fn interrupt_softly(&self, dice: &mut Dice) -> Answer {
        let urgency = if dice.one_in(2) { "next_boundary" } else { "after_tools" };
        let (words, extra) = (format!("{PERSON} do it."), json!({"urgency": urgency}));
        let letter = self.story.mail.lock().unwrap().write("lead", SOFT, &words, extra);
        self.send(&letter).await
    }

    /// For the run that is under way, or the next.
    async fn send_for_a_run(&self, dice: &mut Dice) -> Answer {
        let to = self.somebody(dice);
        let run = self.story.ledger.lock().unwrap().agents.get(&to).map_or(0, |agent| agent.run);
        let extra = json!({"only_run": run + dice.below(2)});
        let words = format!("{PERSON} do it now or never.");
        let letter = self.story.mail.lock().unwrap().write(&to, "messages", &words, extra);
        self.send(&letter).await
    }

    /// Somebody whom the lead has spawned.
    async fn close(&self, dice: &mut Dice) -> Answer {
        let spawned = self.spawned();
        if spawned.is_empty() {
            return self.send_new(dice).await;
        }
        let name = dice.pick(&spawned);
        let answer = self.post(&format!("/agents/{name}/close"), json!({})).await;
        if matches!(answer, Answer::Said(200, _)) {
            self.story.closed.lock().unwrap().insert(name);
        }
        answer
    }

    /// Somebody whom the lead has spawned may take a few turns more, and no others.
    async fn limit(&self, dice: &mut Dice) -> Answer {
        let spawned = self.spawned();
        if spawned.is_empty() {
            return self.send_new(dice).await;
        }
        let name = dice.pick(&spawned);
        let turns = self.story.ledger.lock().unwrap().agents[&name].turns.len() as u64;
        self.set_max_turns(&name, turns + 1 + dice.below(2)).await
    }

    /// 0 is any number.
    pub(crate) async fn set_max_turns(&self, name: &str, turns: u64) -> Answer {
        self.post(&format!("/agents/{name}/limits"), json!({"max_turns": turns})).await
    }

    /// Whether nobody has ever set a limit of its turns, as far as was told.
    pub(crate) fn has_no_limit(&self, name: &str) -> bool {
        let ledger = self.story.ledger.lock().unwrap();
        ledger.agents.get(name).is_none_or(|agent| agent.max_turns.is_none())
    }

    /// Those who may take so many turns and no more.
    pub(crate) fn limited(&self) -> Vec<String> {
        let ledger = self.story.ledger.lock().unwrap();
        let limited = ledger.agents.iter().filter(|(_, agent)| agent.max_turns.is_some_and(|most| most > 0));
        limited.map(|(name, _)| name.clone()).collect()
    }

    /// Who has come to a limit is asked in every life.
    pub(crate) async fn writes_to_the_limited(&self) {
        for name in self.limited() {
            let words = format!("{PERSON} do more.");
            let letter = self.story.mail.lock().unwrap().write(&name, "messages", &words, json!({}));
            self.send(&letter).await;
        }
    }

    async fn send_to_all(&self) -> Answer {
        let words = format!("{PERSON} all of you.");
        let letter = self.story.mail.lock().unwrap().write("all", "messages", &words, json!({}));
        self.send(&letter).await
    }

    async fn supersede(&self, dice: &mut Dice) -> Answer {
        let words = format!("{PERSON} instead of what you do.");
        let letter = self.story.mail.lock().unwrap().write(
            dice.pick(self.story.cast.crew),
            "supersede",
            &words,
            json!({}),
        );
        self.send(&letter).await
    }

    /// Sends a message for the first time.
    async fn send(&self, letter: &Letter) -> Answer {
        self.send_by(letter, letter.route).await
    }

    /// Sends it once more: it stays one message. A supersede is not done twice.
    pub(crate) async fn send_once_more(&self, letter: &Letter) -> Answer {
        self.send_by(letter, "messages").await
    }

    async fn send_by(&self, letter: &Letter, route: &str) -> Answer {
        let asked = self.story.mail.lock().unwrap().sends(&letter.id);
        let (below, body) = match route {
            SOFT => (format!("/{SOFT}"), softly(&letter.body)),
            _ => (format!("/agents/{}/{route}", letter.to), letter.body.clone()),
        };
        let answer = self.api.post(&self.path(&below), &body).await;
        self.story.mail.lock().unwrap().answered(&letter.id, asked, &answer, &self.story.breaches);
        answer
    }

    /// One of the newest messages.
    fn some_letter(&self, dice: &mut Dice) -> Option<Letter> {
        let mail = self.story.mail.lock().unwrap();
        let newest = mail.letters.len().saturating_sub(24);
        let letters = &mail.letters[newest..];
        (!letters.is_empty()).then(|| dice.pick(letters))
    }

    fn some_id(&self, dice: &mut Dice) -> Option<String> {
        self.some_letter(dice).map(|letter| letter.id)
    }

    async fn send_again(&self, dice: &mut Dice) -> Answer {
        match self.some_letter(dice) {
            Some(letter) => self.send_once_more(&letter).await,
            None => self.send_new(dice).await,
        }
    }

    /// The same id with other words: refused, whatever has become of the first.
    async fn send_otherwise(&self, dice: &mut Dice) -> Answer {
        let accepted =
            self.some_letter(dice).filter(|letter| letter.accepted.is_some() && letter.to != "all");
        let Some(letter) = accepted else { return self.send_new(dice).await };
        let body = json!({"id": letter.id, "text": format!("{PERSON} something else")});
        let answer = self.post(&format!("/agents/{}/messages", letter.to), body).await;
        if let Answer::Said(202, said) = &answer {
            let what = format!("message {} was accepted a second time with other words: {said}", letter.id);
            self.story.breaches.add(NothingDoubled, what);
        }
        answer
    }

    async fn withdraw(&self, dice: &mut Dice) -> Answer {
        let Some(letter) = self.some_letter(dice) else { return self.send_new(dice).await };
        let withdrawal =
            |to| self.story.mail.lock().unwrap().with(&letter.id, |letter| letter.withdrawal = to);
        if letter.withdrawal == Withdrawal::Never {
            withdrawal(Withdrawal::Asked);
        }
        let answer = self.post(&format!("/messages/{}/withdraw", letter.id), json!({})).await;
        // Of a message to all some may have come back and some not.
        if answer.clone().ok().is_some_and(|said| said["returned"].as_u64() > Some(0)) && letter.to != "all" {
            withdrawal(Withdrawal::Returned);
        }
        answer
    }

    async fn stop(&self, dice: &mut Dice) -> Answer {
        let scope = if dice.one_in(4) { "subtree" } else { "agent" };
        let below = format!("/agents/{}/stop", dice.pick(self.story.cast.crew));
        self.story.stopping.fetch_add(1, Ordering::SeqCst);
        let answer = match self.story.only_sends.load(Ordering::SeqCst) {
            true => self.send_new(dice).await,
            false => self.post(&below, json!({"scope": scope})).await,
        };
        self.story.stopping.fetch_sub(1, Ordering::SeqCst);
        answer
    }

    async fn look(&self, dice: &mut Dice) -> Answer {
        match self.some_id(dice) {
            Some(id) => self.look_at(&id).await,
            None => self.get("/agents").await,
        }
    }

    /// Sees where a message stands.
    pub(crate) async fn look_at(&self, id: &str) -> Answer {
        let asked = self.story.mail.lock().unwrap().now();
        let answer = self.get(&format!("/messages/{id}")).await;
        if let Answer::Said(200, said) = &answer {
            let mut mail = self.story.mail.lock().unwrap();
            let receipts = said["receipts"].as_array().into_iter().flatten();
            receipts.for_each(|receipt| mail.seen(asked, receipt, &self.story.breaches));
        }
        answer
    }
}
