//! Settings out of bounds are refused wherever a library's user hands them in.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use midturn_core::engine::ports::RealClock;
use midturn_core::engine::scripted::{ScriptedModels, Scripts, SimulatedTools};
use midturn_core::engine::{AgentSpec, Builder, Coordinator, SpawnError, StartError};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::settings::{OutOfBounds, Patched, Settings};

fn builder() -> Builder {
    let clock = Arc::new(RealClock::start());
    let models = Arc::new(ScriptedModels::new(clock.clone(), Scripts::default()));
    Coordinator::builder(models, Arc::new(SimulatedTools::new(clock, Scripts::default())))
}

/// Settings of which one is beyond its bounds: below and above, for each that has some.
fn beyond() -> Vec<(Settings, OutOfBounds)> {
    let mut all = Vec::new();
    for (key, bounds) in Settings::bounds() {
        for value in [bounds.least.checked_sub(1), bounds.most.checked_add(1)].into_iter().flatten() {
            let json = key.rsplit('.').fold(value.into(), |value, name| serde_json::json!({name: value}));
            let mut settings = Settings::default();
            settings.patch(&serde_json::from_value(json).unwrap());
            all.push((settings, OutOfBounds { key: key.clone(), value, bounds }));
        }
    }
    all
}

/// A22: from the library as from anywhere else.
#[tokio::test]
async fn a_session_and_an_agent_with_settings_beyond_their_bounds_do_not_begin() {
    let coordinator = builder().start().await.unwrap();
    assert!(beyond().len() >= 8);
    for (settings, out) in beyond() {
        let started = builder().settings(settings.clone()).start().await.err();
        assert_eq!(started, Some(StartError::Settings(out.clone())));
        let spec = AgentSpec { settings, ..AgentSpec::new(AgentName::new("a").unwrap(), "scripted") };
        let refused = Err(SpawnError::Settings(out));
        assert_eq!(coordinator.spawn_agent(spec.clone()).await, refused);
        assert_eq!(coordinator.cast_agent(spec).await, refused);
    }
    assert!(coordinator.agents().is_empty());
}
