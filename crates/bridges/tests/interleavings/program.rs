//! A model of Claude Code: one agent's turns. It asks its hooks and goes on when they have ended, hears those that
//! were not killed, and writes its transcript behind all that.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use midturn_bridges::claude::hook::{Around, answer};
use serde_json::{Value, json};

use crate::baton::Dice;
use crate::people::{SESSION, World};

/// Where it is in its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Idle,
    Calls(usize),
    Behind,
    Ending,
    Over,
}

/// What the hooks of one event said, in the order in which they ended.
pub(crate) type Answers = Arc<Mutex<Vec<Vec<u8>>>>;

/// A hook that is to run.
pub(crate) struct Hook {
    /// When it began.
    pub(crate) now: u64,
    pub(crate) does: Box<dyn FnOnce() + Send>,
}

pub(crate) struct Program {
    world: World,
    transcript: PathBuf,
    /// Whose process it is. `None`: ours, and it doesn't end.
    process: Option<Child>,
    /// How many installations of the hooks there are.
    installed: usize,
    at: At,
    /// Prompts that are still to come.
    left: usize,
    calls: Vec<bool>,
    answers: Answers,
    /// What is not yet in the transcript.
    unwritten: VecDeque<Vec<u8>>,
    /// It was killed.
    pub(crate) gone: bool,
}

impl Program {
    pub(crate) fn begins(world: &World, transcript: PathBuf, dice: &mut Dice) -> Self {
        std::fs::write(&transcript, "").unwrap();
        let sleeps = || Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let program = Self {
            world: world.clone(),
            transcript,
            process: dice.once_in(4).then(sleeps),
            installed: 1 + usize::from(dice.once_in(2)),
            at: At::Idle,
            left: 1 + dice.below(3),
            calls: Vec::new(),
            answers: Answers::default(),
            unwritten: VecDeque::new(),
            gone: false,
        };
        (program.hook("SessionStart", json!({})).does)();
        program
    }

    pub(crate) fn can_die(&self) -> bool {
        self.process.is_some()
    }

    /// It is killed: what it had not written is lost with it.
    pub(crate) fn dies(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
            self.gone = true;
            self.at = At::Over;
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.at == At::Over
    }

    fn hook(&self, event: &'static str, more: Value) -> Hook {
        let program = self.process.as_ref().map_or_else(std::process::id, Child::id);
        let (world, answers) = (self.world.clone(), Arc::clone(&self.answers));
        let mut input = json!({"hook_event_name": event, "session_id": SESSION, "cwd": "/work",
            "transcript_path": self.transcript, "prompt_id": "p"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let now = world.now(0);
        let does = Box::new(move || {
            let around = Around { state: world.state.clone(), now, program, ..Around::default() };
            match answer(&around, input.to_string().as_bytes()) {
                Ok(said) => answers.lock().unwrap().extend(said),
                Err(error) => world.log().wrong.push(format!("{event}: {error}")),
            }
        });
        Hook { now, does }
    }

    /// All its hooks have ended: it hears them and goes on, up to what its next hooks are asked.
    pub(crate) fn goes(&mut self, dice: &mut Dice) -> Vec<Hook> {
        let (is_denied, is_told) = self.hears();
        match self.at {
            At::Idle if self.left == 0 => {
                self.at = At::Over;
                Vec::new()
            }
            At::Idle => {
                self.left -= 1;
                self.at = At::Calls(dice.below(3));
                self.asks("UserPromptSubmit", &json!({}))
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
                self.replies();
                if dice.once_in(2) {
                    self.at = At::Calls(1 + dice.below(2));
                    return self.goes(dice);
                }
                self.at = At::Ending;
                self.asks("Stop", &json!({}))
            }
            At::Ending if is_told => {
                self.at = At::Behind;
                self.goes(dice)
            }
            At::Ending => {
                self.at = At::Idle;
                self.goes(dice)
            }
            At::Over => Vec::new(),
        }
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
        let said: Vec<Vec<u8>> = self.answers.lock().unwrap().drain(..).collect();
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
            let mut file = OpenOptions::new().append(true).open(&self.transcript).unwrap();
            file.write_all(&piece).unwrap();
        }
    }

    /// Another prompt, so that nothing stays behind.
    pub(crate) fn settles(&mut self) {
        let mut dice = Dice::of(0);
        for _ in 0..3 {
            self.at = At::Calls(1);
            self.asks("UserPromptSubmit", &json!({})).into_iter().for_each(|hook| (hook.does)());
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

    /// What its transcript shows that the model was given: at each boundary, for there is a reply between two.
    pub(crate) fn told(&self) -> Vec<Vec<String>> {
        let mut told = vec![Vec::new()];
        let text = std::fs::read_to_string(&self.transcript).unwrap();
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if line["type"] == "assistant" {
                told.push(Vec::new());
            } else if let (Some(texts), Some(boundary)) =
                (line["attachment"]["content"].as_array(), told.last_mut())
            {
                boundary.extend(texts.iter().filter_map(|text| Some(text.as_str()?.to_owned())));
            }
        }
        told
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.dies();
    }
}
