//! `bash`: a command, under a supervisor, to its end and no process further.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use midturn_core::engine::ports::{CallTraits, Output, Returned, Tool, ToolCall, ToolSpec};
use midturn_core::rules::capture::{Capture, Decoder};
use midturn_core::rules::conversation::ToolUse;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{noted, parse, spec, with_note};
use crate::confined::Confined;
use crate::context::{OUTPUT_BYTES, ToolContext, off_the_runtime};
use crate::process::{Cause, Command, Ended, ExitStatus};
use crate::protect::guard::Before;
use crate::sandbox::Exceeded;

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
        })
    }

    /// Confines the command, where there is a sandbox; what is to be compared afterwards.
    async fn confine(&self, command: &mut Command) -> Result<Option<Arc<Before>>, Output> {
        let context = self.context.clone();
        let look = move || context.confined.as_ref().map(Confined::before).transpose();
        let looked = off_the_runtime(look).await.flatten().map_err(|error| {
            Output::error(format!(
                "[The command was not started: what has to be kept from it can't be looked up: {error}]"
            ))
        });
        let Some((confinement, before)) = looked? else { return Ok(None) };
        command.confinement = Some(confinement);
        Ok(Some(before))
    }

    /// What a command planted is taken away; what there is to say of it, and what else there is to say.
    async fn look_after(&self, before: Option<Arc<Before>>) -> (Vec<String>, Vec<String>) {
        let Some(before) = before else { return Default::default() };
        let context = self.context.clone();
        let after = move || context.confined.as_ref().map(|confined| confined.after(&before));
        let notes = off_the_runtime(after).await.map(Option::unwrap_or_default);
        notes.unwrap_or_else(|error| {
            (vec![format!("what it planted was not looked for: {error}")], Vec::new())
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
            Some(command) => CallTraits::SERIAL.about(command),
            None => CallTraits::SERIAL,
        }
    }

    async fn call(&self, call: ToolCall) -> Returned {
        let parsed = parse(&call.call);
        let parsed = parsed.and_then(|(arguments, ignored)| Ok((self.command(arguments)?, ignored)));
        let (mut command, ignored) = match parsed {
            Ok(parsed) => parsed,
            Err(output) => return output.into(),
        };
        let before = match self.confine(&mut command).await {
            Ok(before) => before,
            Err(output) => return output.into(),
        };
        let mut capture = Capture::new(OUTPUT_BYTES);
        let mut decoder = Decoder::default();
        let mut told = |bytes: &[u8]| {
            capture.write(bytes);
            call.output.tell(&decoder.decode(bytes));
        };
        let ended = self.context.supervisor.run(&command, &call.cancel, &mut told).await;
        let rest = decoder.finish();
        if !rest.is_empty() {
            call.output.tell(&rest);
        }
        let (planted, notes) = self.look_after(before).await;
        let output = match ended {
            // What is said of a call that was cut is the engine's to say.
            Ok(Ended { cause: Cause::Cancelled, .. }) => Output::error(capture.text()),
            Ok(ended) => noted(report(capture.text(), ended, command.timeout), ignored),
            Err(error) => Output::error(with_note(capture.text(), &error.to_string())),
        };
        // The command did what no command may do.
        let told = |output: Output, note: String| Output::error(with_note(output.text, &note));
        let output = planted.into_iter().fold(output, told);
        notes.into_iter().fold(output, |output, note| noted(output, Some(note))).into()
    }
}

/// The output, and below it in brackets what it doesn't say itself.
fn report(output: String, ended: Ended, timeout: Duration) -> Output {
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
