//! `midturn watch`: the events of a session as they come.

use std::io::IsTerminal;
use std::time::Duration;

use midturn_client::events::{Ended, Told, Wanted, follow};
use midturn_client::{SessionClient, Trouble};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::view::Ask;
use midturn_view::words::{self, Line, Tone};
use midturn_wire::session::Session;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Asking;
use super::joined::Watched;
use super::view::View;
use crate::commands::{self, Reader};
use crate::failure::{End, Failure};
use crate::run::input::{self, Typed};
use crate::run::progress;
use crate::run::session::attending::{self, Steered as _};
use crate::run::steering;
use crate::secrets;

/// How often a session is looked at that has joined.
const LOOK: Duration = Duration::from_millis(100);

/// Shows what happens until the session ends, or the person has seen enough.
pub(super) async fn watch(
    asking: &Asking,
    agent: Option<AgentName>,
    colours: bool,
    interrupted: CancellationToken,
) -> Result<End, Failure> {
    let session: Session = asking.client.get(&asking.path(&[])).await?;
    if let Some(agent) = &agent {
        // A name that nobody has would be watched for ever.
        asking.client.get::<Value>(&asking.path(&["agents", agent.as_str()])).await?;
    }
    if !session.live {
        return Err(Failure::failed(format!(
            "the session {0} is not running: `midturn log {0}` shows what happened in it",
            session.session
        )));
    }
    let answers = !asking.json && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let only = agent.clone();
    let wanted = Wanted { session: session.session.clone(), agent, after: session.last_seq, answers };
    let (mut told, _reader) = follow(asking.client.clone(), wanted);
    let mut screen = Screen::new(asking.json, colours, answers);
    screen.head(&session)?;
    let mut typed = if answers { input::lines() } else { mpsc::channel(1).1 };
    let place = SessionClient::new(&asking.client, &session.session);
    if answers {
        screen.asked(&place.requests().await.map_err(Failure::failed)?, only.as_ref())?;
    }
    tokio::select! {
        biased;
        () = interrupted.cancelled() => screen.close().map(|()| End::Interrupted),
        ended = screen.until_ended(&mut told, &mut typed, &place) => match ended? {
            None => Ok(End::Finished),
            Some(trouble) if trouble.is_gone() && asking.has_left() => Ok(End::Finished),
            Some(trouble) => {
                let gone = trouble.is_gone().then(|| "the process that was watched is gone".to_owned());
                let what = gone.unwrap_or_else(|| trouble.to_string());
                Err(Failure::failed(format!("{what}; `midturn sessions` shows what can be resumed")))
            }
        },
    }
}

/// The same for a session that has joined from another program: what it leaves in files is looked at, and no process
/// is asked.
pub(super) async fn joined(
    watched: &mut Watched,
    only: Option<&AgentName>,
    mut screen: Screen,
    interrupted: CancellationToken,
) -> Result<End, Failure> {
    // What has happened before is not told, as for any session.
    watched.look()?;
    if let Some(agent) = only.filter(|agent| !watched.has(agent)) {
        return Err(Failure::failed(format!("there is no agent `{agent}` in the session {}", watched.id)));
    }
    if !screen.json {
        screen.write(&format!("watching {} (Ctrl-C ends)\n", watched.id))?;
    }
    loop {
        tokio::select! {
            biased;
            () = interrupted.cancelled() => return screen.close().map(|()| End::Interrupted),
            () = tokio::time::sleep(LOOK) => {}
        }
        let (events, is_over) = watched.look()?;
        for event in events {
            if only.is_some_and(|only| event.at.agent.as_ref() != Some(only)) {
                continue;
            }
            let raw = serde_json::to_string(&event).map_err(Failure::failed)?;
            if screen.is_told(&Told::Event(raw, Box::new(event)))? == Reader::Gone {
                return Ok(End::Finished);
            }
        }
        if is_over {
            return screen.close().map(|()| End::Finished);
        }
    }
}

/// Standard output, and what is shown on it.
pub(super) struct Screen {
    json: bool,
    colours: bool,
    view: View,
}

impl Screen {
    pub(super) fn new(json: bool, colours: bool, answers: bool) -> Self {
        Self { json, colours: colours && std::io::stdout().is_terminal(), view: View::new(answers) }
    }

    fn head(&self, session: &Session) -> Result<(), Failure> {
        if self.json {
            return Ok(());
        }
        let title = words::short(&session.title);
        self.write(&format!("watching {}: {title} (Ctrl-C ends)\n", session.session)).map(|_| ())
    }

    /// Shows what is asked already, of one agent or of all.
    fn asked(&mut self, open: &[Ask], only: Option<&AgentName>) -> Result<Reader, Failure> {
        let wanted = open.iter().filter(|request| only.is_none_or(|only| request.agent == *only));
        let lines = wanted.map(|request| self.view.shown.asked(request)).collect();
        self.show(lines)
    }

    /// Shows what is told, and does what is typed; at the end why nothing comes any more, if
    /// that is not the session's end.
    async fn until_ended(
        &mut self,
        told: &mut mpsc::Receiver<Told>,
        typed: &mut mpsc::Receiver<Typed>,
        place: &SessionClient,
    ) -> Result<Option<Trouble>, Failure> {
        let mut is_open = true;
        loop {
            let next = tokio::select! {
                biased;
                line = typed.recv(), if is_open => {
                    is_open = line.is_some();
                    let said = match line {
                        Some(line) => obey(place, line, self.view.shown.asking()).await,
                        None => None,
                    };
                    if self.show(said.into_iter().collect())? == Reader::Gone {
                        return Ok(None);
                    }
                    continue;
                }
                next = told.recv() => next,
            };
            let Some(next) = next else { return Ok(None) };
            if self.is_told(&next)? == Reader::Gone {
                return Ok(None);
            }
            match next {
                Told::Ended(Ended::Session) => return self.close().map(|()| None),
                Told::Ended(Ended::Lost(trouble)) => return self.close().map(|()| Some(trouble)),
                Told::Event(..) | Told::Live(_) | Told::Other(..) => {}
            }
        }
    }

    fn is_told(&mut self, told: &Told) -> Result<Reader, Failure> {
        if self.json { self.write(&raw(told)?) } else { self.tell(told) }
    }

    fn tell(&mut self, told: &Told) -> Result<Reader, Failure> {
        let lines = match told {
            Told::Event(_, event) => self.view.event(event),
            Told::Live(event) => self.view.live(event),
            Told::Other(..) | Told::Ended(_) => Vec::new(),
        };
        self.show(lines)
    }

    fn show(&self, lines: Vec<Line>) -> Result<Reader, Failure> {
        let shown = |(tone, line): Line| {
            let line = if self.colours { progress::coloured(tone, &line) } else { line };
            format!("{line}\n")
        };
        self.write(&lines.into_iter().map(shown).collect::<String>())
    }

    /// Shows what was being said.
    fn close(&mut self) -> Result<(), Failure> {
        let rest = self.view.rest();
        self.show(rest).map(|_| ())
    }

    fn write(&self, text: &str) -> Result<Reader, Failure> {
        commands::put(&secrets::clean(text))
    }
}

/// Does what a line says: here only agents' questions are answered.
async fn obey(place: &SessionClient, line: Typed, shown: &[Ask]) -> Option<Line> {
    // Who watches needs no list of agents: a name that doesn't ask is told so.
    let done = match line.and_then(|line| steering::parse(&line, |_| true)) {
        Ok(steering::Line::Blank) => return None,
        Ok(steering::Line::Answer(word)) => attending::answer(place, &word, shown, |_| true).await,
        Ok(_) => {
            Err("here /yes, /always and /no answer what agents ask; `midturn send` writes to them".to_owned())
        }
        Err(error) => Err(error.to_string()),
    };
    Some(match done {
        Ok(done) => (Tone::Plain, done),
        Err(error) => (Tone::Bad, format!("error: {error}")),
    })
}

/// The JSON, one line.
fn raw(told: &Told) -> Result<String, Failure> {
    match told {
        Told::Event(raw, _) | Told::Other(raw, _) => Ok(format!("{raw}\n")),
        Told::Live(event) => {
            let raw = serde_json::to_string(event);
            raw.map(|raw| format!("{raw}\n"))
                .map_err(|error| Failure::failed(format!("an event could not be written: {error}")))
        }
        Told::Ended(_) => Ok(String::new()),
    }
}
