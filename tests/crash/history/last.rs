//! The last life of a history: everybody comes to an end, and the session is looked at as a whole.

use super::*;

impl History {
    /// Everything may come to its end now; then all of it is looked at.
    pub(super) async fn last_life(&mut self) -> Result<()> {
        let mut daemon = Daemon::start(&self.story.world, &self.settings)?;
        let Some(api) = daemon.ready().await else {
            self.story.breaches.add(StaysUp, "the last daemon never answered");
            return Ok(());
        };
        self.is_the_only_one(&api).await?;
        let Some(life) = taking_up::taken_up(&self.story, api.clone()).await? else {
            let ended = daemon.kill(false).await?;
            self.story.breaches.add(StaysUp, format!("the last daemon is gone: {}", ended.said.join("\n")));
            return Ok(());
        };
        let guests = match &self.guests {
            Some(story) if story.session.get().is_some() => taking_up::taken_up(story, api).await?,
            _ => None,
        };
        let lives: Vec<Life> = iter::once(life).chain(guests).collect();
        let reading = lives.iter().map(|life| spawn(life, async move |life: Life| life.read().await));
        let reading = join_all(reading.collect::<Vec<_>>());
        join_all(lives.iter().map(finish)).await;
        for life in &lives {
            checker::receipts(life).await;
        }
        let ended = daemon.terminate().await?;
        match ended {
            Some(ended) if ended.status.success() => {}
            Some(ended) => {
                let what = format!("told to end, it ended with {}: {}", ended.status, ended.said.join("\n"));
                self.story.breaches.add(StaysUp, what);
            }
            None => self.story.breaches.add(StaysUp, "told to end, it goes on"),
        }
        // The stream ends with the daemon: what was told is read to its end.
        if timeout_at(Instant::now() + AFTERLIFE, reading).await.is_err() {
            bail!("the event stream goes on after its daemon");
        }
        for process in self.story.world.processes(None) {
            let what = format!("all is over and {} is alive: {}", process.pid, process.what);
            self.story.breaches.add(NoSurvivors, what);
        }
        self.stories().try_for_each(|story| checker::whole(story, &self.model))
    }

    /// A second daemon for the same store is refused.
    async fn is_the_only_one(&self, first: &Api) -> Result<()> {
        let settings = Settings { elsewhere: self.story.world.store(), ..self.settings.clone() };
        let mut second = Daemon::start(&self.story.world, &settings)?;
        if second.ready().await.is_some() {
            self.story.breaches.add(OneHolder, "a second daemon holds the store beside the first");
        }
        second.kill(false).await?;
        if first.get("/health").await.ok().is_none() {
            self.story.breaches.add(OneHolder, "the first daemon is gone since a second one was started");
        }
        Ok(())
    }
}

/// Has every agent say its last word, those that come meanwhile too. Who has got other work
/// after it is asked again.
async fn finish(life: &Life) {
    let end = Instant::now() + LAST_LIFE * 4;
    let mut deadline = Instant::now() + LAST_LIFE;
    let mut heard = 0;
    let mut told = life.story.told.subscribe();
    let mut asked: BTreeMap<String, Instant> = BTreeMap::new();
    let mut last = Value::Null;
    while Instant::now() < deadline {
        // A slow disk is no hang: as long as more is told, more is waited for, but not for ever.
        let now = life.story.ledger.lock().unwrap().last();
        if now > std::mem::replace(&mut heard, now) {
            deadline = end.min(Instant::now() + LAST_LIFE);
        }
        last = match life.get("/agents").await {
            Answer::Said(200, agents) => agents,
            answer => {
                return life.story.breaches.add(StaysUp, format!("the last daemon says {answer:?}"));
            }
        };
        let agents = last["agents"].as_array().into_iter().flatten();
        let named = agents.filter_map(|agent| Some((agent["name"].as_str()?, rests(agent))));
        let late = |name: &str, rests: bool| match asked.get(name) {
            Some(at) => !rests && at.elapsed() > ASKED_AGAIN,
            None => true,
        };
        let late: Vec<String> =
            named.filter(|(name, rests)| late(name, *rests)).map(|(name, _)| name.to_owned()).collect();
        if late.is_empty() && all_rest(&last) && hears_nothing_more(life).await {
            return;
        }
        // At once: one that waits for the disk is no reason that the others are not asked.
        join_all(late.iter().map(|name| asks_to_finish(life, name))).await;
        asked.extend(late.into_iter().map(|name| (name, Instant::now())));
        let soon = deadline.min(Instant::now() + Duration::from_millis(100));
        let _ = timeout_at(soon, told.changed()).await;
    }
    life.story.breaches.add(WorkGoesOn, format!("told to finish, they did not: {last}"));
}

/// Everybody rests: waits until all that was told of it is read, and a moment longer for
/// what should have been told and was not. `false`: somebody works again.
async fn hears_nothing_more(life: &Life) -> bool {
    let deadline = Instant::now() + ASKED_AGAIN;
    let mut told = life.story.told.subscribe();
    while Instant::now() < deadline {
        let last = life.get("").await.ok().and_then(|session| session["last_seq"].as_u64());
        let ledger_rests = {
            let ledger = life.story.ledger.lock().unwrap();
            Some(ledger.last()) == last && ledger.is_at_rest()
        };
        if ledger_rests {
            return true;
        }
        let soon = deadline.min(Instant::now() + Duration::from_millis(100));
        let _ = timeout_at(soon, told.changed()).await;
    }
    life.get("/agents").await.ok().is_some_and(|agents| all_rest(&agents))
}

/// A long command is not waited for; whoever is stopped is woken, also where somebody has set a
/// limit, whether or not that was told.
async fn asks_to_finish(life: &Life, name: &str) {
    if !life.story.cast.crew.contains(&name) {
        life.set_max_turns(name, 0).await;
    }
    let (words, urgent) = (format!("{PERSON} {FINISH}"), json!({"urgent": true}));
    let letter = life.story.mail.lock().unwrap().write(name, "messages", &words, urgent);
    life.send_once_more(&letter).await;
}

fn rests(agent: &Value) -> bool {
    matches!(agent["state"].as_str(), Some("idle" | "closed")) && agent["pending"] == 0
}

fn all_rest(agents: &Value) -> bool {
    agents["agents"].as_array().is_some_and(|agents| agents.iter().all(rests))
}
