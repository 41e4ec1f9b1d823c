//! The sessions that have joined, and the programs that they run in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::mailbox::Mailbox;
use super::place::{
    MAIN, is_name, is_ours, is_ours_or_none, names, own_folder, read, removed, touch, write_whole,
};
use super::steps::step;

/// All joined sessions.
#[derive(Clone, Debug)]
pub struct Spool {
    root: PathBuf,
    now: u64,
}

/// The program that a session runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its process.
    pub pid: u32,
    /// When that process began, in the kernel's ticks: a number is used again, this is not.
    pub started: u64,
    /// Where it works.
    pub cwd: String,
    /// The main agent's transcript.
    pub transcript: PathBuf,
    /// The program and its version, as it names itself.
    pub agent: String,
    /// Whether somebody sits in front of it.
    pub attended: bool,
}

impl Program {
    /// The program and its version, for people: it calls itself `claude-code_2-1-331_harness`.
    pub fn named(&self) -> String {
        let mut words = self.agent.split('_');
        match (words.next(), words.next()) {
            (Some("claude-code"), Some(version)) => format!("Claude Code {}", version.replace('-', ".")),
            _ => "Claude Code".to_owned(),
        }
    }

    /// Whether it is the same process, wherever that works by now.
    pub fn is_same_process(&self, other: &Self) -> bool {
        (self.pid, self.started) == (other.pid, other.started)
    }

    /// Whether it still runs.
    pub fn lives(&self) -> bool {
        self.pid != 0 && started(self.pid) == Some(self.started)
    }
}

/// When a process began, in ticks since the machine did; `None`: there is none, or it is dead.
pub(crate) fn started(pid: u32) -> Option<u64> {
    step();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name, and may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let is_dead = matches!(fields.first(), Some(&("Z" | "X")));
    fields.get(19)?.parse().ok().filter(|_| !is_dead)
}

/// What is counted of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// Turns in a row that `next_boundary` mail has emptied (semantics.md, section 3).
    Starved,
    /// Ends in a row that mail has put off, without a call between them.
    PutOff,
}

impl Count {
    fn file(self) -> &'static str {
        match self {
            Self::Starved => "starved",
            Self::PutOff => "put_off",
        }
    }
}

/// A command that is about to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// As the model gave it.
    pub command: String,
    /// Whether it is to go on beside the agent's next calls: then it is never cut.
    #[serde(default)]
    pub background: bool,
    /// Another agent began one of the same text at once: neither is cut.
    #[serde(default)]
    pub ambiguous: bool,
}

impl Call {
    fn read(file: &Path) -> Option<Self> {
        serde_json::from_slice(&read(file).ok()?).ok()
    }

    fn write(&self, file: &Path) -> io::Result<()> {
        write_whole(file, &serde_json::to_vec(self).map_err(io::Error::from)?, false)
    }

    /// Whether urgent mail may end it.
    pub(crate) fn can_be_cut(&self) -> bool {
        !self.background && !self.ambiguous
    }
}

/// A session that has joined.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The program's id of it.
    pub id: String,
    folder: PathBuf,
    now: u64,
}

impl Spool {
    /// The spool below the state folder of Midturn; `now` in microseconds since 1970.
    pub fn of(state: &Path, now: u64) -> Self {
        Self { root: state.join("joined"), now }
    }

    /// What time it is, in microseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The session with this id, whether or not it has joined; `None`: that is no id.
    pub fn session(&self, id: &str) -> Option<Joined> {
        is_name(id).then(|| Joined { id: id.to_owned(), folder: self.root.join(id), now: self.now })
    }

    /// Those that have joined, the newest first.
    ///
    /// # Errors
    /// The spool can't be read, or is somebody else's.
    pub fn sessions(&self) -> io::Result<Vec<Joined>> {
        match is_ours(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            ours => ours?,
        }
        let ids = names(&self.root)?.into_iter().filter_map(|id| self.session(&id));
        let ids = ids.filter(|joined| is_ours(&joined.folder).is_ok());
        let mut sessions: Vec<_> = ids.filter_map(|joined| Some((joined.joined_at()?, joined))).collect();
        sessions.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Ok(sessions.into_iter().map(|(_, joined)| joined).collect())
    }

    /// Notes that a hook has run: `midturn hooks status` says when that was.
    ///
    /// # Errors
    /// The spool can't be written, or is somebody else's.
    pub(crate) fn touched(&self) -> io::Result<()> {
        if let Some(state) = self.root.parent() {
            step();
            fs::create_dir_all(state)?;
        }
        own_folder(&self.root)?;
        touch(&self.root.join("last"), self.now)
    }
}

impl Joined {
    /// Notes which program the session runs in.
    ///
    /// # Errors
    /// The spool can't be written, or is somebody else's.
    pub fn joins(&self, program: &Program) -> io::Result<()> {
        if self.program().as_ref() == Some(program) {
            return Ok(());
        }
        self.made()?;
        let bytes = serde_json::to_vec(program).map_err(io::Error::from)?;
        write_whole(&self.folder.join("session.json"), &bytes, false)
    }

    /// Makes its folder.
    ///
    /// # Errors
    /// It is a link, somebody else's, or can't be made.
    pub(crate) fn made(&self) -> io::Result<()> {
        own_folder(&self.folder)
    }

    /// Whether it can be used, down to the mailbox of an agent.
    ///
    /// # Errors
    /// Somebody has put a link, or a folder that others can write, in the place of one of ours.
    pub(crate) fn is_ours(&self, mailbox: &Mailbox) -> io::Result<()> {
        self.folder.parent().map_or(Ok(()), is_ours_or_none)?;
        is_ours_or_none(&self.folder)?;
        mailbox.is_ours()
    }

    /// Whether it has been noted.
    pub fn is_known(&self) -> bool {
        step();
        self.folder.join("session.json").exists()
    }

    /// Removes all of it.
    pub(crate) fn remove(&self) -> io::Result<()> {
        step();
        fs::remove_dir_all(&self.folder)
    }

    fn joined_at(&self) -> Option<std::time::SystemTime> {
        step();
        fs::symlink_metadata(self.folder.join("session.json")).and_then(|found| found.modified()).ok()
    }

    /// The program it runs in, or ran in last.
    pub fn program(&self) -> Option<Program> {
        serde_json::from_slice(&read(&self.folder.join("session.json")).ok()?).ok()
    }

    /// The mailbox of an agent of its: an id of the program's, or `main`. `None`: that is no id.
    pub fn mailbox(&self, agent: &str) -> Option<Mailbox> {
        is_name(agent).then(|| Mailbox::at(self.folder.join(agent), self.now))
    }

    /// The agents that a hook has seen or somebody has written to, `main` first.
    ///
    /// # Errors
    /// The spool can't be read.
    pub fn agents(&self) -> io::Result<Vec<String>> {
        let mut agents: Vec<String> = names(&self.folder)?
            .into_iter()
            .filter(|name| is_name(name) && is_ours(&self.folder.join(name)).is_ok())
            .filter(|name| Mailbox::at(self.folder.join(name), self.now).is_ours().is_ok())
            .collect();
        agents.sort_by_key(|agent| (agent != MAIN, agent.clone()));
        Ok(agents)
    }

    /// Notes whether an agent rests, between its last word and what it is asked next.
    ///
    /// # Errors
    /// The spool can't be written.
    pub(crate) fn rests(&self, agent: &str, rests: bool) -> io::Result<()> {
        let mark = self.resting(agent);
        if rests { write_whole(&mark, b"", false) } else { removed(&mark).map(drop) }
    }

    /// Whether it rests.
    pub fn is_resting(&self, agent: &str) -> bool {
        step();
        self.resting(agent).exists()
    }

    /// Since when it rests, in microseconds since 1970, if it does.
    pub(crate) fn rests_since(&self, agent: &str) -> Option<u64> {
        let modified = fs::symlink_metadata(self.resting(agent)).and_then(|found| found.modified()).ok()?;
        let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
        u64::try_from(since.as_micros()).ok()
    }

    /// Whether a hook waits behind it, to wake it when somebody writes.
    pub fn is_waited_for(&self) -> bool {
        let waiter = read(&self.folder.join(MAIN).join("waiter")).ok();
        let waiter = waiter.and_then(|bytes| String::from_utf8(bytes).ok()?.parse().ok());
        waiter.is_some_and(|pid| started(pid).is_some())
    }

    /// Notes that a hook of the agent's has looked. One call of the system's where it has before: it is the most that
    /// is done at most hooks.
    ///
    /// # Errors
    /// The spool can't be written.
    pub(crate) fn looks(&self, agent: &str) -> io::Result<()> {
        touch(&self.folder.join(agent).join("looked"), self.now)
    }

    /// When a hook of the agent's has looked last, in microseconds since 1970.
    pub fn looked(&self, agent: &str) -> Option<u64> {
        step();
        let looked = fs::symlink_metadata(self.folder.join(agent).join("looked")).ok()?.modified().ok()?;
        u64::try_from(looked.duration_since(UNIX_EPOCH).ok()?.as_micros()).ok()
    }

    pub(crate) fn resting(&self, agent: &str) -> PathBuf {
        self.folder.join(agent).join("resting")
    }

    /// Leaves word of a command that is about to start, for `claude::exec`. Where another agent's of the same text
    /// waits, too, nobody can tell which process is whose: that is said, and neither is ever cut.
    ///
    /// # Errors
    /// The spool can't be written.
    pub(crate) fn notes_call(
        &self,
        agent: &str,
        id: &str,
        command: &str,
        background: bool,
    ) -> io::Result<()> {
        let mut call = Call { command: command.to_owned(), background, ambiguous: false };
        let own = self.folder.join(agent).join("calls").join(id);
        // Before it looks: of two that come at once one at least sees the other.
        call.write(&own)?;
        for other in self.agents()?.into_iter().filter(|other| other != agent) {
            let calls = self.folder.join(other).join("calls");
            for file in names(&calls)?.iter().map(|file| calls.join(file)) {
                if let Some(mut twin) = Call::read(&file).filter(|found| found.command == command) {
                    (twin.ambiguous, call.ambiguous) = (true, true);
                    twin.write(&file)?;
                }
            }
        }
        if call.ambiguous { call.write(&own) } else { Ok(()) }
    }

    /// All calls of the agent's turn have their results: what still runs has become nobody's, and is never cut.
    ///
    /// # Errors
    /// The spool can't be written.
    pub(crate) fn forgets_calls(&self, agent: &str) -> io::Result<()> {
        for part in ["calls", "running"] {
            let folder = self.folder.join(agent).join(part);
            names(&folder)?.iter().try_for_each(|id| removed(&folder.join(id)).map(drop))?;
        }
        Ok(())
    }

    /// What is counted of an agent; 0 where nothing is.
    pub(crate) fn counted(&self, agent: &str, what: Count) -> u32 {
        let count = read(&self.folder.join(agent).join(what.file())).ok();
        count.and_then(|bytes| String::from_utf8(bytes).ok()?.parse().ok()).unwrap_or_default()
    }

    /// # Errors
    /// The spool can't be written.
    pub(crate) fn counts(&self, agent: &str, what: Count, count: u32) -> io::Result<()> {
        let file = self.folder.join(agent).join(what.file());
        if count == 0 {
            removed(&file).map(drop)
        } else {
            write_whole(&file, count.to_string().as_bytes(), false)
        }
    }

    /// The main agent's transcript, and those of subagents beside it.
    pub fn transcript(&self, agent: &str) -> Option<PathBuf> {
        let of_main = self.program()?.transcript;
        let beside = of_main.with_extension("").join("subagents").join(format!("agent-{agent}.jsonl"));
        Some(if agent == MAIN { of_main } else { beside })
    }
}
