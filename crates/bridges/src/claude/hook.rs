//! `midturn hook`: one look into an agent's mailbox, from inside Claude Code.
//!
//! It comes first in the program, asks no daemon, waits for no other hook and never holds the session up: whatever goes
//! wrong, it says nothing and ends well, and then the program goes on as without it.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use midturn_core::rules::boundary::{Moment, closing_point, look};
use midturn_core::rules::id::MessageId;
use midturn_core::rules::mail::{Point, Urgency};
use midturn_core::rules::settings::Settings;
use midturn_core::rules::wording::{self, Cause};

use super::sweep::forgets_subagents;
use super::wire::{Answer, Bash, Call, Input, SendMessage};
use super::{agents, transcript, wait};
use crate::spool::{
    By, Count, Joined, Landed, MAIN, Mailbox, Message, Program, Refused, Spool, is_name, state_folder, told,
};

/// Longer input is that of a call with megabytes in it: it runs.
const LONGEST: u64 = 16 * 1024 * 1024;

/// No hook takes longer than this: it ends well, and says nothing.
const PATIENCE_SECONDS: u32 = 1;

/// At this many starved turns the next one takes `next_boundary` as `after_tools` (semantics.md, section 3).
const STARVED: u32 = 2;

/// So often in a row the program lets hooks put an agent's end off; what one more gives is in its transcript and
/// never sent. A call between two of them sets its count to 0.
const PUT_OFF: u32 = 8;

/// Hooks of one event that are installed twice are started within this time.
const AT_ONCE_MICROS: u64 = 1_000_000;

/// What a hook has to know of its surroundings.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// Midturn's state folder.
    pub state: PathBuf,
    /// In microseconds since 1970.
    pub now: u64,
    /// The program that calls it.
    pub program: u32,
    /// Whether somebody sits in front of the session.
    pub attended: bool,
    /// The program and its version, as it names itself.
    pub agent: String,
    /// Whether its commands go through us, so that one can be cut.
    pub holds_commands: bool,
}

impl Around {
    /// As the process finds it. `None`: there is no home.
    pub fn of_process() -> Option<Self> {
        let text = |name| std::env::var(name).ok();
        Some(Self {
            state: state_folder()?,
            now: now(),
            program: text("CLAUDE_PID").and_then(|pid| pid.parse().ok()).unwrap_or_default(),
            attended: text("CLAUDE_CODE_SESSION_ATTENDED").is_some_and(|word| word != "0"),
            agent: text("AI_AGENT").unwrap_or_default(),
            holds_commands: text("CLAUDE_CODE_SHELL_PREFIX")
                .is_some_and(|path| Path::new(&path).file_name().is_some_and(|name| name == "midturn-exec")),
        })
    }
}

/// In microseconds since 1970, by the machine's clock.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// The whole of `midturn hook` and `midturn hook wait`.
pub fn main(words: &[std::ffi::OsString]) -> ExitCode {
    let waits = words.first().is_some_and(|word| word == "wait");
    // A hook that can't be bounded doesn't look.
    if !waits && !bounded() {
        return ExitCode::SUCCESS;
    }
    let Some(around) = Around::of_process() else { return ExitCode::SUCCESS };
    let Some(bytes) = input(io::stdin().lock()) else { return ExitCode::SUCCESS };
    if waits {
        return wait::main(&around, &bytes);
    }
    if let Ok(Some(answer)) = answer(&around, &bytes) {
        // Nobody is there to be told that nobody listens.
        return match io::stdout().write_all(&answer) {
            Ok(()) | Err(_) => ExitCode::SUCCESS,
        };
    }
    ExitCode::SUCCESS
}

/// Ends this process well when its time is up, whatever it does then.
fn bounded() -> bool {
    let due = Arc::new(AtomicBool::new(true));
    let ends = signal_hook::flag::register_conditional_shutdown(signal_hook::consts::SIGALRM, 0, due);
    ends.is_ok() && nix::unistd::alarm::set(PATIENCE_SECONDS).is_none()
}

fn input(from: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LONGEST + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= LONGEST).then_some(bytes)
}

/// What a hook answers to an input; `None`: nothing.
///
/// # Errors
/// The spool can't be used: nothing is said.
pub fn answer(around: &Around, bytes: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let Ok(input) = serde_json::from_slice::<Input<'_>>(bytes) else { return Ok(None) };
    let Some(hook) = Hook::of(around, &input) else { return Ok(None) };
    let answer = hook.answer()?;
    answer.map(|answer| serde_json::to_vec(&answer).map_err(io::Error::from)).transpose()
}

impl Landed {
    /// Behind the results of these calls.
    fn behind(calls: &[Call<'_>]) -> Self {
        let ids = |which: fn(&Call<'_>) -> bool| -> Vec<String> {
            calls.iter().filter(|call| which(call)).map(|call| call.tool_use_id.to_string()).collect()
        };
        let (skipped, interrupted) = (ids(|call| call.was_skipped()), ids(|call| call.was_cut()));
        Self { point: closing_point(calls.len(), skipped.len(), interrupted.len()), skipped, interrupted }
    }
}

/// One event of one agent.
struct Hook<'a> {
    around: &'a Around,
    input: &'a Input<'a>,
    spool: Spool,
    joined: Joined,
    agent: &'a str,
    mailbox: Mailbox,
}

impl<'a> Hook<'a> {
    fn of(around: &'a Around, input: &'a Input<'a>) -> Option<Self> {
        let spool = Spool::of(&around.state, around.now);
        let joined = spool.session(&input.session_id)?;
        let agent = input.agent_id.as_deref().unwrap_or(MAIN);
        let mailbox = joined.mailbox(agent)?;
        Some(Self { around, input, spool, joined, agent, mailbox })
    }

    fn answer(&self) -> io::Result<Option<Answer>> {
        self.joined.is_ours(&self.mailbox)?;
        let answer = self.acts()?;
        // What was found is told, whether or not that can be noted.
        let (Ok(()) | Err(_)) = self.joined.looks(self.agent).and_then(|()| self.spool.touched());
        Ok(answer)
    }

    fn acts(&self) -> io::Result<Option<Answer>> {
        match &*self.input.hook_event_name {
            "SessionStart" => self.begins().map(|()| None),
            _ if !self.joined.is_known() => {
                // Installed while the session ran.
                self.joins()?;
                self.looks()
            }
            _ => self.looks(),
        }
    }

    /// Until its first prompt it rests. In the middle of a turn its conversation is compacted: then it works on.
    fn begins(&self) -> io::Result<()> {
        self.joins()?;
        if self.input.source == "compact" { Ok(()) } else { self.joined.rests(self.agent, true) }
    }

    fn joins(&self) -> io::Result<()> {
        self.spool.touched()?;
        let (known, program) = (self.joined.program(), self.program());
        if known.is_some_and(|known| !known.is_same_process(&program)) {
            forgets_subagents(&self.joined)?;
        }
        self.joined.joins(&program)?;
        self.mailbox.made()
    }

    /// Of two programs that have taken one session up it is the one's that is given a prompt.
    fn is_still_the_one(&self) -> io::Result<()> {
        let (known, program) = (self.joined.program(), self.program());
        let is_noted = known.is_some_and(|known| known.is_same_process(&program));
        if is_noted || !program.lives() { Ok(()) } else { self.joins() }
    }

    fn program(&self) -> Program {
        Program {
            pid: self.around.program,
            started: crate::spool::started(self.around.program).unwrap_or_default(),
            cwd: self.input.cwd.to_string(),
            transcript: PathBuf::from(&*self.input.transcript_path),
            agent: self.around.agent.clone(),
            attended: self.around.attended,
        }
    }

    fn looks(&self) -> io::Result<Option<Answer>> {
        match &*self.input.hook_event_name {
            "UserPromptSubmit" => {
                self.is_still_the_one()?;
                self.works()?;
                self.injects(Landed::at(Point::Start), Urgency::FollowUp)
            }
            "SubagentStart" => self.works().map(|()| None),
            "PreToolUse" => self.before_call(),
            "PostToolBatch" => self.behind_tools(),
            "Stop" | "SubagentStop" => self.ends(),
            _ => Ok(None),
        }
    }

    /// It has something to do. What the program was to deliver it has delivered: that is what woke it.
    fn works(&self) -> io::Result<()> {
        self.mailbox.made()?;
        self.joined.rests(self.agent, false)?;
        self.mailbox.forget_own()
    }

    /// Points A and C: a call is about to start.
    fn before_call(&self) -> io::Result<Option<Answer>> {
        if self.joined.is_resting(self.agent) {
            self.joined.rests(self.agent, false)?;
        }
        let guarded = self.joined.counted(self.agent, Count::Starved) >= STARVED;
        let acts = look(Moment::BetweenCalls, guarded, &Settings::default(), &self.mailbox);
        if let Some(error) = self.mailbox.trouble() {
            return Err(error);
        }
        if let Some(committed) = acts {
            return Ok(Some(Answer::deny(wording::skipped(&Cause::Mail(committed.sender)))));
        }
        match &*self.input.tool_name {
            "SendMessage" => self.notes_message()?,
            "Bash" if self.around.holds_commands => self.notes_command()?,
            _ => {}
        }
        Ok(None)
    }

    /// Point A, C or D: all results of the turn are in.
    fn behind_tools(&self) -> io::Result<Option<Answer>> {
        let calls = self.input.tool_calls.map(|calls| serde_json::from_str::<Vec<Call<'_>>>(calls.get()));
        let calls = calls.and_then(Result::ok).unwrap_or_default();
        self.counts_starved(&calls)?;
        self.joined.forgets_calls(self.agent)?;
        self.joined.counts(self.agent, Count::PutOff, 0)?;
        self.injects(Landed::behind(&calls), Urgency::AfterTools)
    }

    /// The progress guard: what `next_boundary` mail has emptied is counted, what `urgent` has emptied is not, and
    /// where the hook is installed twice the second one finds no mail any more.
    fn counts_starved(&self, calls: &[Call<'_>]) -> io::Result<()> {
        let is_emptied = !calls.is_empty() && calls.iter().all(Call::was_skipped);
        let highest = self.mailbox.pending()?.iter().map(|name| name.urgency).max();
        let count = self.joined.counted(self.agent, Count::Starved);
        match (is_emptied, highest) {
            (true, None | Some(Urgency::Urgent)) => Ok(()),
            (true, Some(_)) => self.joined.counts(self.agent, Count::Starved, count + 1),
            (false, _) if count > 0 && !calls.is_empty() => self.joined.counts(self.agent, Count::Starved, 0),
            (false, _) => Ok(()),
        }
    }

    /// Point B: the agent would end.
    fn ends(&self) -> io::Result<Option<Answer>> {
        let put_off = self.joined.counted(self.agent, Count::PutOff);
        let answer =
            if put_off < PUT_OFF { self.injects(Landed::at(Point::B), Urgency::FollowUp)? } else { None };
        self.mailbox.made()?;
        match answer {
            Some(_) => self.joined.counts(self.agent, Count::PutOff, put_off + 1)?,
            None => {
                self.joined.counts(self.agent, Count::PutOff, 0)?;
                self.joined.counts(self.agent, Count::Starved, 0)?;
                if !self.is_told_by_another()? {
                    self.joined.rests(self.agent, true)?;
                }
            }
        }
        Ok(answer)
    }

    /// Whether the hook of a second install has told something at this very end: then the agent goes on. What
    /// woke the agent began the turn that ends here, however short that was.
    fn is_told_by_another(&self) -> io::Result<bool> {
        let at_once = |at: u64| self.around.now.saturating_sub(at) < AT_ONCE_MICROS;
        Ok(self.mailbox.handed()?.iter().any(|(handed, _)| !handed.by.woke && at_once(handed.at)))
    }

    /// Takes what waits, and gives it to the model.
    fn injects(&self, landed: Landed, least: Urgency) -> io::Result<Option<Answer>> {
        transcript::settle(&self.joined, self.agent, &self.mailbox)?;
        let pending = self.mailbox.pending()?;
        if !pending.iter().any(|name| name.urgency >= least) {
            return Ok(None);
        }
        let offset =
            self.joined.transcript(self.agent).map_or(0, |transcript| transcript::length(&transcript));
        let by = By { woke: false, pid: self.around.program, started: self.program().started };
        let messages = self.mailbox.take(least, offset, by, &landed)?;
        if messages.is_empty() {
            return Ok(None);
        }
        if landed.point == Point::B {
            self.joined.rests(self.agent, false)?;
        }
        Ok(Some(Answer::context(&self.input.hook_event_name, told(&messages))))
    }

    /// A coordinator writes to an agent of its: the program delivers that behind all its tools, so what the
    /// receiver has not started is skipped.
    fn notes_message(&self) -> io::Result<()> {
        let Some(Ok(said)) =
            self.input.tool_input.map(|input| serde_json::from_str::<SendMessage>(input.get()))
        else {
            return Ok(());
        };
        let agents = agents::known(&self.joined);
        let Some(receiver) = agents::meant(&agents, &said.to) else { return Ok(()) };
        // One that rests is woken by it, and reads it first.
        if !agents::is_above(&agents, self.agent, &receiver.id) || self.joined.is_resting(&receiver.id) {
            return Ok(());
        }
        let Some(mailbox) = self.joined.mailbox(&receiver.id) else { return Ok(()) };
        let is_urgent = [&said.summary, &said.message].iter().any(|text| text.starts_with("URGENT"));
        let own_name =
            agents.iter().find(|agent| agent.id == self.agent).map_or(MAIN, |agent| agent.called());
        let message = Message {
            id: MessageId::new(&*self.input.tool_use_id),
            from: own_name.to_owned(),
            text: said.message,
            urgency: if is_urgent { Urgency::Urgent } else { Urgency::NextBoundary },
            sent_at: self.around.now,
            expires_at: None,
            own: true,
        };
        // A full mailbox has enough in it that acts.
        match mailbox.send(&message, None, false) {
            Ok(_) | Err(Refused::Full | Refused::Reused | Refused::TooLate) => Ok(()),
            Err(Refused::Broken(error)) => Err(error),
        }
    }

    /// Leaves word of a command, so that the process that will hold it knows whose it is.
    fn notes_command(&self) -> io::Result<()> {
        let Some(Ok(bash)) = self.input.tool_input.map(|input| serde_json::from_str::<Bash>(input.get()))
        else {
            return Ok(());
        };
        if !is_name(&self.input.tool_use_id) {
            return Ok(());
        }
        self.mailbox.made()?;
        self.joined.notes_call(self.agent, &self.input.tool_use_id, &bash.command, bash.run_in_background)
    }
}
