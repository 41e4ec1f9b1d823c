//! `bash`: a command, under a supervisor, to its end and no process further.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use midturn_core::engine::ports::{CallTraits, Output, Returned, Tool, ToolCall, ToolSpec};
use midturn_core::rules::conversation::ToolUse;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{noted, parse, spec, with_note};
use crate::commands;
use crate::context::ToolContext;
use crate::process::{Cause, Command, Ended, ExitStatus, Streams};
use crate::sandbox::Exceeded;

/// What the system says where something is read-only: by a mount, or by Landlock.
const REFUSALS: [&str; 2] = ["Read-only file system", "Permission denied"];

/// What git says instead of that, where it can't write its index for a stash.
const NO_INDEX: &str = "error: could not write index";

/// What a model is told that met it.
const USE_COMMIT: &str = "git's own folder is read-only to commands here: use the tool `commit` to commit; what else git writes there \
     (branches, stashes, fetches) is for a person to do";

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The command, for `bash -c`.
    command: String,
    /// What it is for, in a few words, shown to the people who watch.
    #[serde(default, rename = "description")]
    _description: Option<String>,
    /// How long it may run, in seconds.
    timeout: Option<f64>,
}

/// `bash` in the root of one agent.
struct Bash {
    spec: Arc<ToolSpec>,
    context: Arc<ToolContext>,
}

pub(crate) fn tool(context: Arc<ToolContext>) -> Arc<dyn Tool> {
    let text = format!(
        "Runs a command with bash in the root of your working folder. Each call starts afresh there: a `cd` or \
         a variable is gone with the next. Nothing can be typed into it. Standard output and error come back \
         together, the middle left out when it is long. Whatever it left running when it exits is ended. It may \
         run for {} s unless `timeout` says otherwise, at most {} s.",
        context.limits.timeout.as_secs(),
        context.limits.timeout_max.as_secs()
    );
    Arc::new(Bash { spec: spec::<Arguments>("bash", &text), context })
}

impl Bash {
    fn command(&self, arguments: Arguments) -> Result<Command, Output> {
        Ok(Command {
            words: vec!["bash".into(), "-c".into(), arguments.command.into()],
            folder: self.context.root.path().to_owned(),
            environment: self.context.environment.clone(),
            timeout: self.timeout(arguments.timeout)?,
            confinement: None,
            gate: None,
            streams: Streams::default(),
        })
    }

    fn timeout(&self, asked: Option<f64>) -> Result<Duration, Output> {
        let max = self.context.limits.timeout_max;
        let Some(seconds) = asked else { return Ok(self.context.limits.timeout.min(max)) };
        match Duration::try_from_secs_f64(seconds) {
            Ok(timeout) if timeout <= max && !timeout.is_zero() => Ok(timeout),
            Ok(_) | Err(_) => Err(Output::error(format!(
                "The arguments of bash don't fit: `timeout`: {seconds} is not between 0 and {} seconds.",
                max.as_secs()
            ))),
        }
    }
}

#[async_trait]
impl Tool for Bash {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn traits(&self, call: &ToolUse) -> CallTraits {
        match call.input.get("command").and_then(Value::as_str) {
            Some(command) => CallTraits::COMMAND.about(command),
            None => CallTraits::COMMAND,
        }
    }

    async fn call(&self, call: ToolCall) -> Returned {
        let parsed = parse(&call.call);
        let parsed = parsed.and_then(|(arguments, ignored)| Ok((self.command(arguments)?, ignored)));
        let (command, ignored) = match parsed {
            Ok(parsed) => parsed,
            Err(output) => return output.into(),
        };
        let timeout = command.timeout;
        let done = match commands::run(&self.context, command, &call.cancel, &*call.output).await {
            Ok(done) => done,
            Err(error) => {
                let why = "The command was not started: what has to be kept from it can't be looked up";
                return Output::error(format!("[{why}: {error}]")).into();
            }
        };
        let text = done.said.text();
        let refused = git_refused(&text, &self.context.read_only_git).then(|| USE_COMMIT.to_owned());
        let output = match done.ended {
            // What is said of a call that was cut is the engine's to say.
            Ok(Ended { cause: Cause::Cancelled, .. }) => Output::error(text),
            Ok(ended) => noted(noted(report(text, ended, timeout), refused), ignored),
            Err(error) => Output::error(with_note(text, &error.to_string())),
        };
        // The command did what no command may do.
        let told = |output: Output, note: String| Output::error(with_note(output.text, &note));
        let output = done.planted.into_iter().fold(output, told);
        done.notes.into_iter().fold(output, |output, note| noted(output, Some(note))).into()
    }
}

/// Whether the command failed because git's own folders are read-only to it, by what it said: the
/// system's words, in a line that names a path in one of them, as git writes it.
fn git_refused(output: &str, folders: &[PathBuf]) -> bool {
    let names = |line: &str| {
        let whole = |folder: &PathBuf| folder.to_str().is_some_and(|folder| line.contains(folder));
        line.contains(".git/") || folders.iter().any(whole)
    };
    let refused =
        |line: &str| line == NO_INDEX || REFUSALS.iter().any(|words| line.contains(words)) && names(line);
    !folders.is_empty() && output.lines().any(refused)
}

/// The output, and below it in brackets what it doesn't say itself.
pub(crate) fn report(output: String, ended: Ended, timeout: Duration) -> Output {
    let mut notes = match (ended.cause, ended.status) {
        (Cause::Cancelled, _) => return Output::error(output),
        (Cause::TimedOut, _) => {
            vec![format!("Timed out after {} s; it was ended, with all it started", timeout.as_secs_f64())]
        }
        (Cause::Itself, ExitStatus::Exited(0)) => Vec::new(),
        (Cause::Itself, ExitStatus::Exited(code)) => vec![format!("exit status {code}")],
        (Cause::Itself, ExitStatus::Signalled(signal)) => vec![format!("ended by {}", signal_name(signal))],
    };
    let is_error = !notes.is_empty() || matches!(ended.exceeded, Some(Exceeded::Memory(_)));
    match ended.left_running {
        0 => {}
        1 => notes.push("1 process it left running was ended".to_owned()),
        more => notes.push(format!("{more} processes it left running were ended")),
    }
    notes.extend(ended.exceeded.map(limit_reached));
    let nothing = output.is_empty() && notes.is_empty();
    let output = if nothing { "(no output)".to_owned() } else { output };
    Output { text: notes.iter().fold(output, |text, note| with_note(text, note)), is_error }
}

fn limit_reached(exceeded: Exceeded) -> String {
    match exceeded {
        Exceeded::Memory(bytes) if bytes % (1 << 30) == 0 => {
            format!("ended: it used more than {} GiB of memory", bytes >> 30)
        }
        Exceeded::Memory(bytes) => format!("ended: it used more than {} MiB of memory", bytes >> 20),
        Exceeded::Folder(folder, bytes) => format!(
            "{} is full: it is in memory, holds at most {} MiB, and is empty again for the next command; what is large \
             belongs in $TMPDIR",
            folder.path(),
            bytes >> 20
        ),
        Exceeded::Processes(count) => {
            format!("it had {count} processes and threads, the most it may have; others could not be started")
        }
    }
}

fn signal_name(signal: i32) -> String {
    match nix::sys::signal::Signal::try_from(signal) {
        Ok(named) => format!("signal {signal}, {named}"),
        Err(_) => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_was_refused_where_its_own_folder_is_named_beside_the_systems_words() {
        let lock = "fatal: Unable to create '/p/.git/index.lock': Read-only file system\n";
        let rows = [
            (lock, &["/p/.git"][..], true),
            ("a\nerror: cannot open '.git/FETCH_HEAD': Read-only file system", &["/p/.git"], true),
            ("fatal: Unable to create '/q/m/index.lock': Read-only file system", &["/p/.git", "/q/m"], true),
            ("fatal: Unable to create '/q/.git/index.lock': Permission denied", &["/q/.git"], true),
            ("touch: cannot touch '/usr/x': Read-only file system\nsee /p/.git", &["/p/.git"], false),
            ("fatal: Unable to create '/p/.git/index.lock': File exists.", &["/p/.git"], false),
            ("error: could not write index\n", &["/p/.git"], true),
            (lock, &[], false),
        ];
        for (output, folders, refused) in rows {
            let folders: Vec<_> = folders.iter().map(PathBuf::from).collect();
            assert_eq!(git_refused(output, &folders), refused, "{output}");
        }
    }

    #[test]
    fn a_result_says_what_the_output_does_not() {
        let itself =
            |status, left_running| Ended { status, cause: Cause::Itself, left_running, exceeded: None };
        let late = Ended {
            status: ExitStatus::Signalled(15),
            cause: Cause::TimedOut,
            left_running: 0,
            exceeded: None,
        };
        let cut = Ended { cause: Cause::Cancelled, ..late };
        let rows = [
            ("a\n", itself(ExitStatus::Exited(0), 0), "a\n", false),
            ("", itself(ExitStatus::Exited(0), 0), "(no output)", false),
            ("a", itself(ExitStatus::Exited(3), 0), "a\n[exit status 3]", true),
            ("", itself(ExitStatus::Signalled(9), 0), "[ended by signal 9, SIGKILL]", true),
            ("", itself(ExitStatus::Signalled(34), 0), "[ended by signal 34]", true),
            ("a\n", itself(ExitStatus::Exited(0), 1), "a\n[1 process it left running was ended]", false),
            (
                "",
                itself(ExitStatus::Exited(1), 2),
                "[exit status 1]\n[2 processes it left running were ended]",
                true,
            ),
            ("a", late, "a\n[Timed out after 1.5 s; it was ended, with all it started]", true),
            ("a", cut, "a", true),
        ];
        let killed = |exceeded| Ended { exceeded: Some(exceeded), ..itself(ExitStatus::Exited(137), 0) };
        let many = Ended { exceeded: Some(Exceeded::Processes(512)), ..itself(ExitStatus::Exited(0), 0) };
        let rows = rows.into_iter().chain([
            (
                "",
                killed(Exceeded::Memory(2 << 30)),
                "[exit status 137]\n[ended: it used more than 2 GiB of memory]",
                true,
            ),
            (
                "",
                killed(Exceeded::Memory(3 << 20)),
                "[exit status 137]\n[ended: it used more than 3 MiB of memory]",
                true,
            ),
            (
                "a",
                many,
                "a\n[it had 512 processes and threads, the most it may have; others could not be started]",
                false,
            ),
        ]);
        for (output, ended, text, is_error) in rows {
            let expected = Output { text: text.to_owned(), is_error };
            assert_eq!(report(output.to_owned(), ended, Duration::from_millis(1500)), expected);
        }
    }
}
