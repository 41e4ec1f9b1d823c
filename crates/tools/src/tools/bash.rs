//! `bash`: a command, under a supervisor, to its end and no process further.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use midturn_core::engine::ports::{CallTraits, Output, Returned, Tool, ToolCall, ToolSpec};
use midturn_core::rules::conversation::ToolUse;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments::{parse, spec};
use crate::capture::{Capture, Decoder};
use crate::ground::Ground;
use crate::process::{Cause, Command, Ended, Status};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command, for `bash -c`.
    command: String,
    /// How long it may run, in seconds.
    #[serde(default)]
    timeout: Option<f64>,
}

/// The tool.
pub(crate) struct Bash {
    spec: Arc<ToolSpec>,
    ground: Arc<Ground>,
}

impl Bash {
    pub(crate) fn new(ground: Arc<Ground>) -> Self {
        let text = format!(
            "Runs a command with bash in the root of your working folder. Each call starts afresh there: a `cd` or \
             a variable is gone with the next. Nothing can be typed into it. Standard output and error come back \
             together, the middle left out when it is long. Whatever it left running when it exits is ended. It may \
             run for {} s unless `timeout` says otherwise, at most {} s.",
            ground.limits.timeout.as_secs(),
            ground.limits.timeout_max.as_secs()
        );
        Self { spec: spec::<Arguments>("bash", &text), ground }
    }

    fn command(&self, arguments: Arguments) -> Result<Command, Output> {
        Ok(Command {
            words: vec!["bash".into(), "-c".into(), arguments.command.into()],
            folder: self.ground.root.path().to_owned(),
            environment: self.ground.environment.clone(),
            timeout: self.timeout(arguments.timeout)?,
        })
    }

    fn timeout(&self, asked: Option<f64>) -> Result<Duration, Output> {
        let max = self.ground.limits.timeout_max;
        let Some(seconds) = asked else { return Ok(self.ground.limits.timeout.min(max)) };
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

    fn traits(&self, _: &ToolUse) -> CallTraits {
        CallTraits::SERIAL
    }

    async fn call(&self, call: ToolCall) -> Returned {
        let command = match parse(&call.call).and_then(|arguments| self.command(arguments)) {
            Ok(command) => command,
            Err(output) => return output.into(),
        };
        let mut capture = Capture::new(self.ground.limits.output_bytes);
        let mut decoder = Decoder::default();
        let mut told = |bytes: &[u8]| {
            capture.write(bytes);
            call.output.write(&decoder.decode(bytes));
        };
        let ended = self.ground.supervisor.run(&command, &call.cancel, &mut told).await;
        let rest = decoder.finish();
        if !rest.is_empty() {
            call.output.write(&rest);
        }
        match ended {
            Ok(ended) => report(capture.finish(), ended, command.timeout).into(),
            Err(error) => Output::error(with_note(capture.finish(), &format!("[{error}]"))).into(),
        }
    }
}

/// The output, and below it in brackets what it doesn't say itself.
fn report(output: String, ended: Ended, timeout: Duration) -> Output {
    let mut note = match (ended.cause, ended.status) {
        // What is said of a call that was cut is the engine's to say.
        (Cause::Cancelled, _) => return Output { text: output, is_error: true },
        (Cause::TimedOut, _) => {
            format!("[Timed out after {} s; it was ended, with all it started]", timeout.as_secs_f64())
        }
        (Cause::Itself, Status::Exited(0)) => String::new(),
        (Cause::Itself, Status::Exited(code)) => format!("[exit status {code}]"),
        (Cause::Itself, Status::Signalled(signal)) => format!("[ended by {}]", signal_name(signal)),
    };
    let is_error = !note.is_empty();
    if ended.left_running > 0 {
        let (processes, were) =
            if ended.left_running == 1 { ("process", "was") } else { ("processes", "were") };
        let separator = if is_error { "\n" } else { "" };
        // Writing to a string can't fail.
        let _ = write!(note, "{separator}[{} {processes} it left running {were} ended]", ended.left_running);
    }
    let text = match (output.is_empty(), note.is_empty()) {
        (true, true) => "(no output)".to_owned(),
        (false, true) => output,
        _ => with_note(output, &note),
    };
    Output { text, is_error }
}

fn with_note(mut output: String, note: &str) -> String {
    if !output.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
    output + note
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
        let itself = |status, left_running| Ended { status, cause: Cause::Itself, left_running };
        let late = Ended { status: Status::Signalled(15), cause: Cause::TimedOut, left_running: 0 };
        let cut = Ended { cause: Cause::Cancelled, ..late };
        let rows = [
            ("a\n", itself(Status::Exited(0), 0), "a\n", false),
            ("", itself(Status::Exited(0), 0), "(no output)", false),
            ("a", itself(Status::Exited(3), 0), "a\n[exit status 3]", true),
            ("", itself(Status::Signalled(9), 0), "[ended by signal 9, SIGKILL]", true),
            ("", itself(Status::Signalled(34), 0), "[ended by signal 34]", true),
            ("a\n", itself(Status::Exited(0), 1), "a\n[1 process it left running was ended]", false),
            (
                "",
                itself(Status::Exited(1), 2),
                "[exit status 1]\n[2 processes it left running were ended]",
                true,
            ),
            ("a", late, "a\n[Timed out after 1.5 s; it was ended, with all it started]", true),
            ("a", cut, "a", true),
        ];
        for (output, ended, text, is_error) in rows {
            let expected = Output { text: text.to_owned(), is_error };
            assert_eq!(report(output.to_owned(), ended, Duration::from_millis(1500)), expected);
        }
    }
}
