//! Whether traces are wanted and where they go: the standard variables of OpenTelemetry.
//!
//! Headers, sampling, the queue's size and the resource's attributes are read by the
//! SDK itself, by their standard names; this file only knows what has to be decided before
//! there is an SDK.

use std::time::Duration;

use crate::env::Env;
use crate::failure::Failure;

use super::genai::CAPTURE;

const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_PROTOCOL: &str = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const TRACES_TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT";
const TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
const DISABLED: &str = "OTEL_SDK_DISABLED";
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";

/// The only protocol that is supported.
const SPOKEN: &str = "http/protobuf";

/// How long a delivery may take, unless a variable says otherwise: the standard's default.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where traces go, and what of the texts goes with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// The URL that takes traces.
    pub(super) endpoint: String,
    /// How long a delivery may take, with all its attempts.
    pub(super) timeout: Duration,
    /// Whether texts are told: messages, arguments, results, replies.
    pub(super) texts: bool,
}

impl Settings {
    /// `None`: nobody asked for traces, or somebody switched them off.
    ///
    /// # Errors
    /// [`Failure::Usage`]: a protocol is asked for that is not spoken here, a timeout is no
    /// number, or a variable is no UTF-8.
    pub(super) fn of(env: &Env) -> Result<Option<Self>, Failure> {
        let off = is(env, DISABLED, "true")? || is(env, EXPORTER, "none")?;
        let endpoint = match (env.text(TRACES_ENDPOINT)?, env.text(ENDPOINT)?) {
            (Some(traces), _) => traces.to_owned(),
            (None, Some(base)) => format!("{}/v1/traces", base.trim_end_matches('/')),
            (None, None) => return Ok(None),
        };
        if off {
            return Ok(None);
        }
        let texts = is(env, CAPTURE, "true")?;
        speaks(env)?;
        Ok(Some(Self { endpoint, timeout: timeout(env)?, texts }))
    }
}

/// Whether the protocol that is asked for is ours.
fn speaks(env: &Env) -> Result<(), Failure> {
    let Some((variable, asked)) = first(env, [TRACES_PROTOCOL, PROTOCOL])? else { return Ok(()) };
    if asked == SPOKEN {
        return Ok(());
    }
    let asked: String = asked.chars().take(40).collect();
    Err(Failure::usage(format!(
        "{variable} is `{asked}`: only {SPOKEN} is supported; set it to that and the endpoint to the collector's HTTP port (4318)"
    )))
}

fn timeout(env: &Env) -> Result<Duration, Failure> {
    let Some((variable, asked)) = first(env, [TRACES_TIMEOUT, TIMEOUT])? else { return Ok(PATIENCE) };
    asked
        .parse()
        .map(Duration::from_millis)
        .map_err(|_| Failure::usage(format!("{variable} has to be a number of milliseconds")))
}

/// The first of these variables that is set, with its value.
fn first<'a>(env: &'a Env, variables: [&'static str; 2]) -> Result<Option<(&'static str, &'a str)>, Failure> {
    for variable in variables {
        if let Some(value) = env.text(variable)? {
            return Ok(Some((variable, value)));
        }
    }
    Ok(None)
}

fn is(env: &Env, variable: &str, word: &str) -> Result<bool, Failure> {
    Ok(env.text(variable)?.is_some_and(|value| value.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_go_where_the_standard_variables_say_and_nowhere_without_them() {
        let base = (ENDPOINT, "http://c:4318/");
        let settings = |endpoint: &str, secs, texts| {
            let timeout = Duration::from_secs(secs);
            Some(Settings { endpoint: endpoint.to_owned(), timeout, texts })
        };
        let plain = || settings("http://c:4318/v1/traces", 10, false);
        for (variables, expected) in [
            (vec![], None),
            (vec![(PROTOCOL, "grpc")], None),
            (vec![base], plain()),
            (vec![base, (TRACES_ENDPOINT, "http://t/x")], settings("http://t/x", 10, false)),
            (vec![base, (CAPTURE, "TRUE")], settings("http://c:4318/v1/traces", 10, true)),
            (vec![base, (CAPTURE, "yes")], plain()),
            (vec![base, (TIMEOUT, "3000")], settings("http://c:4318/v1/traces", 3, false)),
            (vec![base, (DISABLED, "true")], None),
            (vec![base, (EXPORTER, "none")], None),
            (vec![base, (TRACES_PROTOCOL, SPOKEN), (PROTOCOL, "grpc")], plain()),
        ] {
            assert_eq!(Settings::of(&Env::of(variables.clone())), Ok(expected), "{variables:?}");
        }
        for (variable, value, told) in [(PROTOCOL, "grpc", SPOKEN), (TIMEOUT, "3s", "milliseconds")] {
            let refused = Settings::of(&Env::of([base, (variable, value)])).unwrap_err().to_string();
            assert!(refused.contains(variable) && refused.contains(told), "{refused}");
        }
    }
}
