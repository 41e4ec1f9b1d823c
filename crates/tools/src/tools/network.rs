//! `network`: asks a person to let commands reach one more host. The question is the call's own request for approval: who
//! says yes lets it run, and what it does is to keep that. It is offered only where a person is asked about such calls.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{CallTraits, Output, Returned, Tool, ToolCall, ToolSpec};
use midturn_core::rules::conversation::ToolUse;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{noted, parse, spec};
use crate::context::ToolContext;
use crate::network::Gate;

/// The name of the tool.
pub(crate) const NETWORK: &str = "network";

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The host: `HOST` for port 443, or `HOST:PORT`.
    host: String,
    /// What it is needed for, in a few words, shown to the person who is asked.
    #[serde(default, rename = "description")]
    _description: Option<String>,
}

/// `network` of one agent.
struct Ask {
    spec: Arc<ToolSpec>,
    gate: Arc<Gate>,
}

/// Where commands are held to some hosts and a person is asked.
pub(crate) fn tool(context: &ToolContext) -> Option<Arc<dyn Tool>> {
    let gate = context.gate.clone().filter(|gate| gate.asks())?;
    let text = "Asks a person to let commands of this session reach a host that was refused: the answer may take long, and \
                may be no. When it is allowed, run again what needs it.";
    Some(Arc::new(Ask { spec: spec::<Arguments>(NETWORK, text), gate }))
}

impl Ask {
    /// What comes of a call that nobody said no to.
    fn answer(&self, host: &str) -> Output {
        match self.gate.would_allow(host) {
            Err(error) => Output::error(format!("Nobody was asked: {error}.")),
            Ok(None) => Output::ok(format!("Commands can reach {host} already.")),
            Ok(Some(site)) if self.gate.allow(host) => {
                Output::ok(format!("Allowed while this session lives: commands reach {site} now."))
            }
            Ok(Some(_)) => Output::error("So many hosts are allowed in this session that no more can be."),
        }
    }
}

#[async_trait]
impl Tool for Ask {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    /// About what would be allowed, in one spelling. Nobody is asked about what changes nothing.
    fn traits(&self, call: &ToolUse) -> CallTraits {
        let host = call.input.get("host").and_then(Value::as_str).unwrap_or_default();
        match self.gate.would_allow(host) {
            Ok(Some(site)) => CallTraits::SERIAL.about(site),
            Ok(None) | Err(_) => CallTraits::COORDINATES,
        }
    }

    async fn call(&self, call: ToolCall) -> Returned {
        let (Arguments { host, .. }, ignored) = match parse(&call.call) {
            Ok(parsed) => parsed,
            Err(output) => return output.into(),
        };
        noted(self.answer(&host), ignored).into()
    }
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::approval::Effect;
    use midturn_core::rules::id::CallId;
    use serde_json::json;

    use super::*;
    use crate::network::{Hosts, Reachable, System};

    fn ask(entries: &[&str]) -> Ask {
        let hosts = Hosts::parse(entries.iter().copied()).unwrap();
        let gate = Gate::new(Arc::new(Reachable::new(Arc::new(hosts))), Arc::new(System), true);
        Ask { spec: spec::<Arguments>(NETWORK, "x"), gate: Arc::new(gate) }
    }

    fn call(host: &str) -> ToolUse {
        ToolUse {
            id: CallId::new("c"),
            name: NETWORK.into(),
            input: json!({"host": host, "description": "x"}),
        }
    }

    #[test]
    fn a_person_is_asked_about_a_host_in_one_spelling_and_about_nothing_else() {
        let ask = ask(&["a.example"]);
        for (host, subject) in [
            ("B.example.", Some("b.example:443")),
            ("b.example:22", Some("b.example:22")),
            ("a.example", None),
            ("localhost:80", None),
            ("0x7f.1", None),
            ("", None),
        ] {
            let traits = ask.traits(&call(host));
            let effect = if subject.is_some() { Effect::Runs } else { Effect::Coordinates };
            assert_eq!((traits.subject.as_deref(), traits.effect), (subject, effect), "{host}");
        }
    }

    #[test]
    fn what_a_person_said_yes_to_can_be_reached_from_then_on() {
        let ask = ask(&["a.example"]);
        for (host, says, is_error) in [
            ("b.example", "Allowed while this session lives: commands reach b.example:443 now.", false),
            ("b.example:443", "Commands can reach b.example:443 already.", false),
            ("*.example", "Nobody was asked: `*.example` can't be reached: a pattern", true),
        ] {
            let output = ask.answer(host);
            assert!(output.text.starts_with(says), "{host}: {}", output.text);
            assert_eq!(output.is_error, is_error, "{host}");
        }
        assert_eq!(ask.gate.would_allow("b.example"), Ok(None));
    }
}
