//! Whether traces are wanted and where they go: the standard variables of OpenTelemetry.
//!
//! Headers, timeouts, sampling, the queue's size and the resource's attributes are read by the
//! SDK itself, by their standard names; this file only knows what has to be decided before
//! there is an SDK.

use crate::env::Env;
use crate::failure::Failure;

use super::genai::CAPTURE;

const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_PROTOCOL: &str = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const DISABLED: &str = "OTEL_SDK_DISABLED";
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";

/// The only protocol that is spoken.
const SPOKEN: &str = "http/protobuf";

/// Where traces go, and what of the texts goes with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// The URL that takes traces.
    pub(super) endpoint: String,
    /// Whether texts are told: messages, arguments, results, replies.
    pub(super) texts: bool,
}

impl Settings {
    /// `None`: nobody asked for traces, or somebody switched them off.
    ///
    /// # Errors
    /// [`Failure::Usage`]: a protocol is asked for that is not spoken here, or a variable is
    /// no UTF-8.
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
        for variable in [TRACES_PROTOCOL, PROTOCOL] {
            match env.text(variable)? {
                None => {}
                Some(SPOKEN) => break,
                Some(other) => {
                    let other: String = other.chars().take(40).collect();
                    return Err(Failure::usage(format!(
                        "{variable} is `{other}`: only {SPOKEN} is spoken; set it to that and the endpoint to the collector's HTTP port (4318)"
                    )));
                }
            }
        }
        Ok(Some(Self { endpoint, texts: is(env, CAPTURE, "true")? }))
    }
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
        let some = |endpoint: &str, texts| Some(Settings { endpoint: endpoint.to_owned(), texts });
        for (variables, expected) in [
            (vec![], None),
            (vec![(PROTOCOL, "grpc")], None),
            (vec![base], some("http://c:4318/v1/traces", false)),
            (vec![base, (TRACES_ENDPOINT, "http://t/x")], some("http://t/x", false)),
            (vec![base, (CAPTURE, "TRUE")], some("http://c:4318/v1/traces", true)),
            (vec![base, (CAPTURE, "yes")], some("http://c:4318/v1/traces", false)),
            (vec![base, (DISABLED, "true")], None),
            (vec![base, (EXPORTER, "none")], None),
            (
                vec![base, (TRACES_PROTOCOL, SPOKEN), (PROTOCOL, "grpc")],
                some("http://c:4318/v1/traces", false),
            ),
        ] {
            assert_eq!(Settings::of(&Env::of(variables.clone())), Ok(expected), "{variables:?}");
        }
        let refused = Settings::of(&Env::of([base, (PROTOCOL, "grpc")])).unwrap_err();
        assert!(refused.to_string().contains("http/protobuf"), "{refused}");
    }
}
