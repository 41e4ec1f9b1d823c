//! Limits that a person gives with a session that goes on: those who rest at one of them, and those alone,
//! get it (semantics.md, section 7). What may be spent is decided in `midturn-core`.

use midturn_core::engine::Coordinator;
use midturn_core::rules::settings::{self, LimitsPatch, Settings};

/// What was set, of an agent and of the session.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Limits {
    agent: LimitsPatch,
    session: LimitsPatch,
}

/// The limits among the keys that were set (`KEY=VALUE`), with the values that the configuration made of them.
pub(super) fn of(settings: &Settings, set: &[String]) -> Limits {
    let is_set =
        |key: &str| set.iter().any(|said| said.split_once('=').is_some_and(|(name, _)| name.trim() == key));
    let settings::Limits { max_turns, max_tokens, max_cost, max_time } = settings.session;
    Limits {
        agent: LimitsPatch {
            max_turns: Some(settings.max_turns.into()).filter(|_| is_set("max_turns")),
            max_tokens: Some(settings.max_tokens).filter(|_| is_set("max_tokens")),
            max_cost: Some(settings.max_cost).filter(|_| is_set("max_cost")),
            max_time: Some(settings.max_time).filter(|_| is_set("max_time")),
        },
        session: LimitsPatch {
            max_turns: Some(max_turns).filter(|_| is_set("session.max_turns")),
            max_tokens: Some(max_tokens).filter(|_| is_set("session.max_tokens")),
            max_cost: Some(max_cost).filter(|_| is_set("session.max_cost")),
            max_time: Some(max_time).filter(|_| is_set("session.max_time")),
        },
    }
}

/// Sets them where they hold somebody back. Says what could not be set, and why.
pub(super) async fn raise(coordinator: &Coordinator, limits: &Limits) -> Vec<String> {
    let mut refused = Vec::new();
    let held: Vec<_> =
        coordinator.agents().into_iter().filter_map(|agent| Some((agent.name, agent.limit?))).collect();
    let session = held.iter().any(|(_, limit)| limit.contains('.') && limits.session.sets(limit));
    if session && let Err(error) = coordinator.raise(None, limits.session.clone()).await {
        refused.push(error.to_string());
    }
    for (name, limit) in held.iter().filter(|(_, limit)| !limit.contains('.') && limits.agent.sets(limit)) {
        if let Err(error) = coordinator.raise(Some(name.as_str()), limits.agent.clone()).await {
            refused.push(format!("the limit {limit} of {name}: {error}"));
        }
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_named_is_set() {
        let settings = Settings { max_turns: 9, ..Settings::default() };
        let set = ["max_turns=9", "approvals.mode=ask", "max_turns_x=1"].map(str::to_owned);
        let agent = LimitsPatch { max_turns: Some(9), ..LimitsPatch::default() };
        assert_eq!(of(&settings, &set), Limits { agent, ..Limits::default() });
        assert_eq!(of(&settings, &[]), Limits::default());
    }
}
