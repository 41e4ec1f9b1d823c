//! A model of Claude Code: one agent's turns. It asks its hooks and goes on when they have ended, hears those that
//! were not killed, and writes its transcript behind all that. A process of its waits behind its main agent; another
//! agent of its writes to a subagent; and it may die, and be taken up by another process.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use midturn_bridges::claude::hook::{Around, answer};
use midturn_bridges::claude::{Look, Waiter};
use midturn_bridges::spool::MAIN;
use serde_json::{Value, json};

use crate::baton::Dice;
use crate::model::{Key, id, text};
use crate::people::{FIXER, SESSION, World};

/// Where it is in its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Idle,
    Calls(usize),
    Behind,
    Ending,
    Over,
}

/// What comes to the program beside its hooks' answers.
enum Incoming {
    /// What a waiter ended with, and what had been counted of turns when it looked.
    Woken(String, usize),
    /// A message of another agent of its.
    Own(Key),
}

/// What one process of the program hears.
#[derive(Clone, Default)]
struct Ears {
    /// What the hooks of one event said, in the order in which they ended.
    answers: Arc<Mutex<Vec<Vec<u8>>>>,
    incoming: Arc<Mutex<Vec<Incoming>>>,
    /// How often a turn has begun or ended.
    turns: Arc<AtomicUsize>,
    /// Nobody is there any more.
    deaf: Arc<AtomicBool>,
}

/// A hook that is to run.
pub(crate) struct Hook {
    /// When it took what it has taken.
    pub(crate) took: Arc<AtomicU64>,
    /// The program goes on when it has ended.
    pub(crate) is_awaited: bool,
    pub(crate) does: Box<dyn FnOnce() + Send>,
}

pub(crate) struct Program {
    world: World,
    /// The main agent's.
    transcript: PathBuf,
    /// Whose process it is. `None`: ours, and it doesn't end.
    process: Option<Child>,
    /// How many installations of the hooks there are.
    installed: usize,
    at: At,
    /// Prompts that are still to come.
    left: usize,
    calls: Vec<bool>,
    ears: Ears,
    /// What waits until the model can be given it.
    queue: VecDeque<Incoming>,
    /// What is not yet in the transcript.
    unwritten: VecDeque<Vec<u8>>,
    /// Another process will go on.
    pub(crate) resumes: bool,
    /// How often one has.
    pub(crate) generation: usize,
    /// It was killed, or its agent is one that does not go on.
    pub(crate) gone: bool,
}

/// Tells waiters apart, as their processes' numbers do.
static WAITERS: AtomicU32 = AtomicU32::new(0);

fn sleeps() -> Child {
    Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap()
}

/// What the program makes of the words that a waiter ends with.
fn notice(words: &str) -> String {
    format!(
        "<task-notification>\n<summary>Stop hook feedback</summary>\n</task-notification>\n<system-reminder>\n\
         Stop hook blocking error from command \"Stop\": {words}\n\n</system-reminder>"
    )
}

impl Program {
    pub(crate) fn begins(world: &World, transcript: PathBuf, dice: &mut Dice) -> Self {
        let beside = transcript.with_extension("").join("subagents");
        std::fs::create_dir_all(&beside).unwrap();
        let meta = json!({"agentType": "general-purpose", "name": "fixer"});
        std::fs::write(beside.join(format!("agent-{FIXER}.meta.json")), meta.to_string()).unwrap();
        std::fs::write(&transcript, "").unwrap();
        let program = Self {
            world: world.clone(),
            transcript,
            process: dice.once_in(4).then(sleeps),
            installed: 1 + usize::from(dice.once_in(2)),
            at: At::Idle,
            left: 1 + dice.below(3),
            calls: Vec::new(),
            ears: Ears::default(),
            queue: VecDeque::new(),
            unwritten: VecDeque::new(),
            resumes: false,
            generation: 0,
            gone: false,
        };
        std::fs::write(program.own_transcript(), "").unwrap();
        (program.hook("SessionStart", json!({})).does)();
        program
    }

    fn is_main(&self) -> bool {
        self.world.agent == MAIN
    }

    fn own_transcript(&self) -> PathBuf {
        let beside = self.transcript.with_extension("").join("subagents");
        if self.is_main() { self.transcript.clone() } else { beside.join(format!("agent-{FIXER}.jsonl")) }
    }

    pub(crate) fn can_die(&self) -> bool {
        self.process.is_some()
    }

    /// It is killed: what it had not written is lost with it, and what it had in its queue.
    pub(crate) fn dies(&mut self, dice: &mut Dice) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
            self.ears.deaf.store(true, Ordering::Relaxed);
            (self.gone, self.at) = (true, At::Over);
            self.resumes = self.generation < 2 && dice.once_in(2);
            self.world.loses(None);
            self.world.log().has_died = true;
        }
    }

    /// Another process takes the session up: its main agent goes on.
    pub(crate) fn is_resumed(&mut self, dice: &mut Dice) -> Vec<Hook> {
        // It writes line by line.
        let mut file = OpenOptions::new().append(true).open(self.own_transcript()).unwrap();
        file.write_all(b"\n{\"type\":\"resumed\"}\n").unwrap();
        (self.resumes, self.process, self.ears) = (false, Some(sleeps()), Ears::default());
        (self.queue, self.unwritten, self.calls) = Default::default();
        self.generation += 1;
        if self.is_main() {
            (self.gone, self.at, self.left) = (false, At::Idle, dice.below(3));
        }
        let mut hooks = vec![self.hook("SessionStart", json!({"source": "resume"}))];
        hooks.extend(self.waiter());
        hooks
    }

    pub(crate) fn is_over(&self) -> bool {
        self.at == At::Over && !self.resumes
    }

    /// Whoever waits behind it ends.
    pub(crate) fn dismisses(&self) {
        self.ears.deaf.store(true, Ordering::Relaxed);
    }

    fn input(&self, event: &str, more: &Value) -> String {
        let mut input = json!({"hook_event_name": event, "session_id": SESSION, "cwd": "/work",
            "transcript_path": self.transcript, "prompt_id": "p"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input.to_string()
    }

    fn around(&self, now: u64) -> Around {
        let program = self.process.as_ref().map_or_else(std::process::id, Child::id);
        Around { state: self.world.state.clone(), now, program, ..Around::default() }
    }

    fn hook(&self, event: &'static str, mut more: Value) -> Hook {
        if !self.is_main() && event != "SessionStart" {
            more["agent_id"] = json!(FIXER);
        }
        let (world, answers) = (self.world.clone(), Arc::clone(&self.ears.answers));
        let now = world.now(0);
        let (input, around) = (self.input(event, &more), self.around(now));
        let does = Box::new(move || match answer(&around, input.as_bytes()) {
            Ok(said) => answers.lock().unwrap().extend(said),
            Err(error) => world.log().wrong.push(format!("{event}: {error}")),
        });
        Hook { took: Arc::new(AtomicU64::new(now)), is_awaited: true, does }
    }

    /// `midturn hook wait`, which looks again and again.
    pub(crate) fn waiter(&self) -> Option<Hook> {
        if !self.is_main() {
            return None;
        }
        let (world, ears) = (self.world.clone(), self.ears.clone());
        let (input, around) = (self.input("Stop", &json!({})), self.around(world.now(0)));
        let took = Arc::new(AtomicU64::new(0));
        let takes = Arc::clone(&took);
        let own = WAITERS.fetch_add(1, Ordering::Relaxed);
        let waits = move || -> std::io::Result<()> {
            let Some(waiter) = Waiter::begins(&around, input.as_bytes(), own)? else { return Ok(()) };
            while !ears.deaf.load(Ordering::Relaxed) {
                let (turn, now) = (ears.turns.load(Ordering::Relaxed), world.now(0));
                takes.store(now, Ordering::Relaxed);
                match waiter.looks(now)? {
                    Look::Over => return Ok(()),
                    Look::Nothing => {}
                    Look::Wakes(words) => {
                        ears.incoming.lock().unwrap().push(Incoming::Woken(words, turn));
                        return Ok(());
                    }
                }
            }
            Ok(())
        };
        let world = self.world.clone();
        let does = Box::new(move || {
            waits().unwrap_or_else(|error| world.log().wrong.push(format!("wait: {error}")));
        });
        Some(Hook { took, is_awaited: false, does })
    }

    /// The hook of a main agent that writes to the subagent; the program delivers that when it has ended.
    pub(crate) fn coordinates(&self, key: Key) -> Hook {
        let message = json!({"tool_name": "SendMessage", "tool_use_id": id(key).as_str(),
            "tool_input": {"to": "fixer", "message": text(key)}});
        let (world, now) = (self.world.clone(), self.world.now(0));
        let (input, around) = (self.input("PreToolUse", &message), self.around(now));
        let does = Box::new(move || match answer(&around, input.as_bytes()) {
            Ok(None) => {}
            said => world.log().wrong.push(format!("SendMessage: {said:?}")),
        });
        Hook { took: Arc::new(AtomicU64::new(now)), is_awaited: false, does }
    }

    pub(crate) fn delivers(&self, key: Key) {
        self.world.log().own.entry(key).or_default();
        self.ears.incoming.lock().unwrap().push(Incoming::Own(key));
    }

    /// All its hooks have ended: it hears them and goes on, up to what its next hooks are asked.
    pub(crate) fn goes(&mut self, dice: &mut Dice) -> Vec<Hook> {
        let (is_denied, is_told) = self.hears();
        self.is_told_more();
        match self.at {
            At::Idle if self.left == 0 && self.queue.is_empty() => {
                self.at = At::Over;
                Vec::new()
            }
            At::Idle => {
                self.begins_a_turn();
                self.at = At::Calls(dice.below(3));
                let start = if self.is_main() { "UserPromptSubmit" } else { "SubagentStart" };
                self.asks(start, &json!({}))
            }
            At::Calls(left) => {
                self.calls.push(is_denied);
                if left == 0 {
                    self.at = At::Behind;
                    return self.behind();
                }
                if self.calls.len() == 1 {
                    self.replies();
                }
                self.at = At::Calls(left - 1);
                let call =
                    json!({"tool_name": "Bash", "tool_input": {"command": "true"}, "tool_use_id": "t"});
                self.asks("PreToolUse", &call)
            }
            At::Behind => {
                self.empties_its_queue();
                self.replies();
                if dice.once_in(2) {
                    self.at = At::Calls(1 + dice.below(2));
                    return self.goes(dice);
                }
                self.at = At::Ending;
                let mut hooks = self.asks(if self.is_main() { "Stop" } else { "SubagentStop" }, &json!({}));
                hooks.extend((0..self.installed).filter_map(|_| self.waiter()));
                hooks
            }
            At::Ending if is_told => {
                self.at = At::Behind;
                self.goes(dice)
            }
            At::Ending => {
                self.at = At::Idle;
                self.ears.turns.fetch_add(1, Ordering::Relaxed);
                self.goes(dice)
            }
            At::Over => Vec::new(),
        }
    }

    /// What waiters and other agents have brought.
    fn is_told_more(&mut self) {
        let incoming: Vec<Incoming> = self.ears.incoming.lock().unwrap().drain(..).collect();
        for one in incoming {
            if let Incoming::Woken(words, _) = &one {
                let operation =
                    json!({"type": "queue-operation", "operation": "enqueue", "content": notice(words)});
                self.shows(&operation);
            }
            self.queue.push_back(one);
        }
    }

    /// By a prompt, or by the first of what is in its queue.
    fn begins_a_turn(&mut self) {
        let turn = self.ears.turns.fetch_add(1, Ordering::Relaxed);
        match self.queue.pop_front() {
            None => self.left -= 1,
            Some(Incoming::Own(key)) => self.shows_own(key),
            Some(Incoming::Woken(words, looked)) => {
                if looked != turn {
                    self.may_come_late(&words);
                }
                self.shows(&json!({"type": "user", "origin": {"kind": "task-notification"},
                    "message": {"role": "user", "content": notice(&words)}}));
            }
        }
    }

    /// Behind the tools of a turn.
    fn empties_its_queue(&mut self) {
        for one in std::mem::take(&mut self.queue) {
            match one {
                Incoming::Own(key) => self.shows_own(key),
                Incoming::Woken(words, _) => {
                    self.may_come_late(&words);
                    self.shows(&json!({"type": "attachment", "attachment": {"type": "queued_command",
                        "origin": {"kind": "task-notification"}, "prompt": notice(&words)}}));
                }
            }
        }
    }

    fn shows_own(&mut self, key: Key) {
        *self.world.log().own.entry(key).or_default() += 1;
        self.shows(&json!({"type": "attachment",
            "attachment": {"type": "queued_command", "prompt": text(key)}}));
    }

    /// It comes by another way than what hooks tell meanwhile.
    fn may_come_late(&self, words: &str) {
        let keys = self.world.names_in(words);
        self.world.log().lost.extend(keys);
    }

    fn behind(&mut self) -> Vec<Hook> {
        // The first stands for the reply itself.
        let skipped = "PreToolUse:Bash hook error: [Skipped: message received from the user before this ran]";
        let told =
            |denied: &bool| json!({"tool_name": "Bash", "tool_response": if *denied { skipped } else { "" }});
        let calls: Vec<Value> = self.calls.drain(..).skip(1).map(|denied| told(&denied)).collect();
        if calls.is_empty() {
            return Vec::new();
        }
        self.asks("PostToolBatch", &json!({"tool_calls": calls}))
    }

    fn asks(&self, event: &'static str, more: &Value) -> Vec<Hook> {
        (0..self.installed).map(|_| self.hook(event, more.clone())).collect()
    }

    /// Whether one denied, and whether one told the model something.
    fn hears(&mut self) -> (bool, bool) {
        let said: Vec<Vec<u8>> = self.ears.answers.lock().unwrap().drain(..).collect();
        let (mut is_denied, mut is_told) = (false, false);
        for said in said {
            let mut said: Value = serde_json::from_slice(&said).unwrap();
            let output = &mut said["hookSpecificOutput"];
            is_denied |= output["permissionDecision"] == "deny";
            if output["additionalContext"].is_string() {
                is_told = true;
                let context = [output["additionalContext"].take()];
                let attachment = json!({"type": "hook_additional_context", "content": context});
                self.shows(&json!({"type": "attachment", "attachment": attachment}));
            }
        }
        (is_denied, is_told)
    }

    fn replies(&mut self) {
        let now = self.world.now(300);
        let at = jiff::Timestamp::from_microsecond(i64::try_from(now).unwrap()).unwrap();
        self.shows(&json!({"type": "assistant", "timestamp": at.to_string(), "message": {"content": []}}));
    }

    fn shows(&mut self, line: &Value) {
        let line = format!("{line}\n");
        // A look may find half of it.
        let (half, rest) = line.split_at(line.len() / 2);
        self.unwritten.extend([half.as_bytes().to_vec(), rest.as_bytes().to_vec()]);
    }

    pub(crate) fn has_unwritten(&self) -> bool {
        !self.gone && !self.unwritten.is_empty()
    }

    /// Writes a piece of what its transcript lacks.
    pub(crate) fn writes(&mut self) {
        if let Some(piece) = self.unwritten.pop_front() {
            let mut file = OpenOptions::new().append(true).open(self.own_transcript()).unwrap();
            file.write_all(&piece).unwrap();
        }
    }

    /// Another prompt, so that nothing stays behind.
    pub(crate) fn settles(&mut self) {
        let mut dice = Dice::of(0);
        // What a killed waiter has taken is looked for in vain by now.
        self.world.now(20_000_000);
        for _ in 0..3 {
            self.at = At::Calls(1);
            let start = if self.is_main() { "UserPromptSubmit" } else { "SubagentStart" };
            self.asks(start, &json!({})).into_iter().for_each(|hook| (hook.does)());
            while self.at != At::Idle {
                self.left = 0;
                self.goes(&mut dice).into_iter().for_each(|hook| (hook.does)());
                while self.has_unwritten() {
                    self.writes();
                }
                if self.at == At::Over {
                    break;
                }
            }
        }
    }

    /// What its transcript shows that the model was given: at each boundary, for there is a reply between two, or
    /// another process.
    pub(crate) fn told(&self) -> Vec<Vec<String>> {
        let mut told = vec![Vec::new()];
        let text = std::fs::read_to_string(self.own_transcript()).unwrap();
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if line["type"] == "assistant" || line["type"] == "resumed" {
                told.push(Vec::new());
            } else if let Some(boundary) = told.last_mut() {
                let given = line["attachment"]["content"].as_array().into_iter().flatten();
                let given = given.chain([&line["attachment"]["prompt"], &line["message"]["content"]]);
                boundary.extend(given.filter_map(|text| Some(text.as_str()?.to_owned())));
            }
        }
        told
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.dies(&mut Dice::of(0));
    }
}
