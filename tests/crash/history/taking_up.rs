//! A life's begin: the daemon has taken up what was left, or a session begins in it.

use super::*;

/// The session of a story, begun if need be, with its agents. `None`: the daemon is gone.
pub(super) async fn taken_up(story: &Arc<Story>, api: Api) -> Result<Option<Life>> {
    if story.session.get().is_none() {
        let Some(session) = begun(story, &api).await? else { return Ok(None) };
        story.session.get_or_init(|| session);
    }
    let Some(life) = Life::of(story, &api) else { return Ok(None) };
    if !goes_on(&life).await? {
        return Ok(None);
    }
    let closed = story.closed.lock().unwrap().clone();
    let Some(agents) = life.get("/agents").await.ok() else { return Ok(None) };
    for agent in agents["agents"].as_array().into_iter().flatten() {
        if closed.contains(agent["name"].as_str().unwrap_or_default())
            && !matches!(agent["state"].as_str(), Some("closed" | "ending"))
        {
            story.breaches.add(OrdersStand, format!("it was closed, and now it is {agent}"));
        }
    }
    for name in story.cast.crew[1..].iter().chain(story.cast.limited) {
        let known = agents["agents"].as_array().into_iter().flatten().any(|agent| agent["name"] == *name);
        let spawn = json!({"name": name, "prompt": format!("{PERSON} Begin, {name}.")});
        if !known && matches!(life.post("/agents", spawn).await, Answer::Lost(_)) {
            return Ok(None);
        }
    }
    for name in story.cast.limited {
        if life.has_no_limit(name) && matches!(life.set_max_turns(name, 3).await, Answer::Lost(_)) {
            return Ok(None);
        }
    }
    Ok(sends_what_is_open(&life).await.then_some(life))
}

/// Has `midturn run` begin the session of a story in the daemon, which nothing ends meanwhile.
pub(super) async fn joined(story: &Story, api: &Api, settings: &Settings) -> Result<Child> {
    let run = daemon::run(&story.world, settings, story.cast.task)?;
    let deadline = Instant::now() + TAKEN_UP;
    let mut clock = tokio::time::interval(Duration::from_millis(10));
    while Instant::now() < deadline {
        clock.tick().await;
        if let Some(session) = known(story, api).await? {
            story.session.get_or_init(|| session);
            return Ok(run);
        }
    }
    bail!("midturn run begins no session")
}

/// A session may have been begun in a life whose answer was lost.
async fn begun(story: &Story, api: &Api) -> Result<Option<String>> {
    if let Some(session) = known(story, api).await? {
        return Ok(Some(session));
    }
    let ways = story.ways;
    let task = json!({"task": story.cast.task, "set": ways.settings(), "answers": ways.asks});
    match api.post("/sessions", &task).await {
        Answer::Said(201, session) => Ok(session["session"].as_str().map(str::to_owned)),
        Answer::Lost(_) => Ok(None),
        answer => bail!("no session begins: {answer:?}"),
    }
}

/// The session of a story, if it is kept.
async fn known(story: &Story, api: &Api) -> Result<Option<String>> {
    let Some(known) = api.get("/sessions").await.ok() else { return Ok(None) };
    let mut sessions = known["sessions"].as_array().context("no list of sessions")?.iter();
    // One that was archived and has no agent yet was never answered for.
    let is_it =
        |session: &&Value| session["title"] == story.cast.task && session["agents"].as_u64() > Some(0);
    Ok(sessions.find(is_it).and_then(|session| session["session"].as_str()).map(str::to_owned))
}

/// The daemon takes up by itself what has work left. `false`: it is gone.
async fn goes_on(life: &Life) -> Result<bool> {
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
    // The stream of a session that is only stored ends: then all is known that was told.
    let _ = timeout_at(Instant::now() + TAKEN_UP, life.read()).await;
    match life.post("/resume", json!({})).await {
        Answer::Said(200, said) => {
            let ledger = life.story.ledger.lock().unwrap();
            let names = said["resumed"].as_array().into_iter().flatten().filter_map(Value::as_str);
            for name in names.filter(|name| !ledger.may_rest(name)) {
                life.story
                    .breaches
                    .add(WorkGoesOn, format!("the daemon left work lying at its start: {name}"));
            }
            Ok(true)
        }
        Answer::Lost(_) => Ok(false),
        // Others may tell it to end meanwhile.
        answer if answer.ends() => Ok(false),
        answer if answer.code() == Some("already_live") => Ok(true),
        answer => bail!("the session can't be resumed: {answer:?}"),
    }
}

/// What nobody knows the fate of is sent again. `false`: the daemon is gone.
async fn sends_what_is_open(life: &Life) -> bool {
    let letters = life.story.mail.lock().unwrap().letters.clone();
    for letter in letters.iter().filter(|letter| letter.is_open()) {
        if matches!(life.send_once_more(letter).await, Answer::Lost(_)) {
            return false;
        }
    }
    true
}
