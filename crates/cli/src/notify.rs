//! A person's own way to be told what waits for them: `notify.command`, run once for each need while nobody looks.
//!
//! The command's text is the person's and nobody else's: what agents say reaches it as variables and on its standard
//! input, never as a part of it.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use midturn_client::events::{Told as Heard, read};
use midturn_core::engine::Coordinator;
use midturn_core::rules::view::View;
use midturn_server::feed::{Follower, News};
use midturn_tui::run::Notifier;
use midturn_view::inbox::{Need, Told, needs};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::AbortOnDropHandle;

/// So long one may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// So long the end of a session waits for it.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// So many wait for a terminal's; more are dropped, and that is said.
const QUEUE: usize = 64;

/// One at a time in a process.
static ONE: Semaphore = Semaphore::const_new(1);

/// A person's own way to be told.
#[derive(Debug, Clone)]
pub(crate) struct Own(String);

impl Own {
    /// What is configured, if it is.
    pub(crate) fn of(command: Option<&str>) -> Option<Self> {
        Some(Self(command.filter(|command| !command.trim().is_empty())?.to_owned()))
    }

    /// Tells one thing, and waits until that is done or has taken too long.
    async fn tell(&self, session: &str, need: &Need) {
        let Ok(_one) = ONE.acquire().await else { return };
        if let Err(why) = self.run(session, need).await {
            tracing::warn!(session, need = %need.id, "notify.command: {why}");
        }
    }

    async fn run(&self, session: &str, need: &Need) -> Result<(), String> {
        let mut child = self.begin(session, need).map_err(|error| format!("not started: {error}"))?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let facts = facts(session, need);
        let whole = async {
            if let Some(mut stdin) = child.stdin.take() {
                // One that reads nothing has closed it.
                let _ = stdin.write_all(facts.as_bytes()).await;
            }
            child.wait().await
        };
        match tokio::time::timeout(PATIENCE, whole).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("it failed: {status}")),
            Ok(Err(error)) => Err(format!("it can't be waited for: {error}")),
            Err(_) => {
                // With all that it has started.
                let ended = group.map(|group| kill_process_group(group, Signal::KILL));
                let _ = child.wait().await;
                Err(format!("it took more than {} s and was ended ({ended:?})", PATIENCE.as_secs()))
            }
        }
    }

    fn begin(&self, session: &str, need: &Need) -> std::io::Result<Child> {
        Command::new("sh")
            .args(["-c", &self.0])
            // No agent's folder: what stands there is not the person's.
            .current_dir("/")
            .envs(variables(session, need))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
    }

    /// For a terminal, which can't wait.
    pub(crate) fn notifier(self) -> Notifier {
        let (queue, mut waiting): (mpsc::Sender<(String, Need)>, _) = mpsc::channel(QUEUE);
        // It ends with the terminal that has the other end.
        tokio::spawn(async move {
            while let Some((session, need)) = waiting.recv().await {
                self.tell(&session, &need).await;
            }
        });
        Arc::new(move |session, need| {
            if queue.try_send((session.to_owned(), need.clone())).is_err() {
                tracing::warn!(session, need = %need.id, "notify.command: not run, too many wait already");
            }
        })
    }

    /// Follows a session to its end, and tells what waits for a person while nobody is attached to it, and what nobody looks
    /// at who is. What `known` knows of was there before.
    async fn follow(self, mut follower: Follower, known: View, coordinator: Coordinator, mut unseen: Unseen) {
        let (mut view, mut due) = (known, Due::default());
        due.known(&needs(&view));
        let session = coordinator.session_id().to_string();
        loop {
            let news = tokio::select! {
                news = follower.next() => news,
                Some(id) = unseen.recv() => {
                    due.unseen(id);
                    self.tell_all(&session, due.now(&needs(&view), true)).await;
                    continue;
                }
            };
            let event = match news {
                Ok(Some(News::Event(json))) => read(String::from_utf8_lossy(&json).into_owned()),
                Ok(Some(News::Delta(_) | News::Rejoined)) => continue,
                Ok(None) => return,
                Err(error) => return tracing::warn!(session, "nobody is notified any more: {error}"),
            };
            let Heard::Event(_, event) = event else { continue };
            if !view.event(&event) {
                continue;
            }
            self.tell_all(&session, due.now(&needs(&view), coordinator.is_attended())).await;
        }
    }

    async fn tell_all(&self, session: &str, needs: Vec<Need>) {
        for need in &needs {
            self.tell(session, need).await;
        }
    }
}

/// The ids of what waits and nobody looks at.
type Unseen = mpsc::Receiver<String>;

/// What is told now, each once: what came while nobody was there, and what those who are say that they don't look at.
#[derive(Default)]
struct Due {
    /// What came while nobody was there, or was seen by who was.
    told: Told,
    /// What was told.
    run: Told,
    /// What nobody looks at, as far as it was not told: it may be said before the event has come here.
    unseen: BTreeSet<String>,
}

impl Due {
    /// What was there before.
    fn known(&mut self, needs: &[Need]) {
        self.told.news(needs, true);
        self.run.news(needs, true);
    }

    fn unseen(&mut self, id: String) {
        if self.unseen.len() < QUEUE {
            self.unseen.insert(id);
        }
    }

    /// What is told now of all that waits.
    fn now(&mut self, needs: &[Need], attended: bool) -> Vec<Need> {
        let new: BTreeSet<&str> =
            self.told.news(needs, attended).iter().map(|need| need.id.as_str()).collect();
        let is_due = |need: &&Need| new.contains(need.id.as_str()) || self.unseen.contains(&need.id);
        let due: Vec<Need> = needs.iter().filter(is_due).cloned().collect();
        self.unseen.retain(|id| due.iter().all(|need| need.id != *id));
        self.run.news(&due, false).into_iter().cloned().collect()
    }
}

/// Tells what waits in a session, to its end.
pub(crate) struct Telling {
    task: Mutex<Option<AbortOnDropHandle<()>>>,
    unseen: mpsc::Sender<String>,
}

impl Telling {
    /// Begins to. What `known` knows of was there before.
    pub(crate) fn start(
        (own, follower, known): (Own, Follower, View),
        coordinator: Coordinator,
    ) -> Arc<Self> {
        let (unseen, waiting) = mpsc::channel(QUEUE);
        let task = tokio::spawn(own.follow(follower, known, coordinator, waiting));
        Arc::new(Self { task: Mutex::new(Some(AbortOnDropHandle::new(task))), unseen })
    }

    /// Nobody looks at this who could see it; `telling` is of its session, where something is told at all.
    pub(crate) fn unseen(telling: Option<Arc<Self>>, need: String) {
        let taken = telling.map(|telling| telling.unseen.try_send(need));
        if taken.is_some_and(|taken| taken.is_err()) {
            tracing::warn!("notify.command: not run, too many wait already");
        }
    }

    /// The session has ended: what it told last is told soon, or not at all. A command that was begun goes on.
    pub(crate) async fn end(&self) {
        let task = self.task.lock().take();
        if let Some(task) = task
            && tokio::time::timeout(LAST_WORDS, task).await.is_err()
        {
            tracing::warn!("notify.command: not run for all that waits, its session has ended");
        }
    }
}

fn variables(session: &str, need: &Need) -> [(&'static str, String); 6] {
    [
        ("NEED_LINE", need.line()),
        ("NEED_AGENT", need.agent.to_string()),
        ("NEED_WHAT", need.what.as_str().to_owned()),
        ("NEED_WORDS", need.words.clone()),
        ("NEED_SESSION", session.to_owned()),
        // Ids of calls are a model's words.
        ("NEED_ID", midturn_view::clean::one_line(&need.id)),
    ]
}

fn facts(session: &str, need: &Need) -> String {
    let facts = json!({
        "line": need.line(), "agent": need.agent, "what": need.what.as_str(), "words": need.words,
        "session": session, "id": need.id,
    });
    format!("{facts}\n")
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::id::AgentName;
    use midturn_core::rules::time::Micros;

    use super::*;

    fn need(run: u64) -> Need {
        Need::conflict(&AgentName::new("w").unwrap(), run, Micros(0), &["a".to_owned()])
    }

    #[test]
    fn what_waits_is_told_once_while_nobody_is_there_or_nobody_who_is_looks() {
        let mut due = Due::default();
        let [first, second, third] = [need(1), need(2), need(3)];
        due.known(std::slice::from_ref(&first));
        let all = [first.clone(), second.clone(), third.clone()];
        assert_eq!(due.now(&all[..2], false), all[1..2], "nobody is there");
        assert!(due.now(&all, true).is_empty(), "somebody is there");
        due.unseen(third.id.clone());
        due.unseen(second.id.clone());
        assert_eq!(due.now(&all, true), [third], "it was not told, and the second was");
        due.unseen(need(4).id);
        assert!(due.now(&all, true).is_empty(), "its event has not come yet");
        assert_eq!(due.now(&[need(4)], true), [need(4)]);
        due.unseen(need(4).id);
        assert!(due.now(&[need(4)], false).is_empty(), "it was told");
    }
}
