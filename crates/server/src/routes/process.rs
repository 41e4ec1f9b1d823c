//! The process itself: health, the document, figures.

use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use midturn_wire::agent::Agent;
use midturn_wire::process::Health;
use midturn_wire::spent::Spent;
use midturn_wire::stats::Stats;

use crate::app::App;
use crate::metrics::CONTENT_TYPE;

/// That it is well, and what it is.
#[utoipa::path(get, path = "/v1/health", responses((status = 200, body = Health)))]
pub(super) async fn health(State(app): State<Arc<App>>) -> Json<Health> {
    Json(Health {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        sessions: app.host.live().len(),
        store: app.host.archive().name().to_owned(),
        safety: app.host.safety(),
    })
}

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", responses((status = 200, body = Object)))]
pub(super) async fn document() -> impl IntoResponse {
    static DOCUMENT: LazyLock<String> =
        LazyLock::new(|| serde_json::to_string(&super::openapi()).unwrap_or_default());
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str())
}

/// Figures, as text that Prometheus scrapes.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, body = String, content_type = "application/openmetrics-text"))
)]
pub(super) async fn metrics(State(app): State<Arc<App>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], app.metrics.prometheus())
}

/// Figures, as JSON.
#[utoipa::path(get, path = "/v1/stats", responses((status = 200, body = Stats)))]
pub(super) async fn stats(State(app): State<Arc<App>>) -> Json<Stats> {
    let agents = app.host.live().into_iter().flat_map(|live| live.coordinator.agents());
    let agents: Vec<Agent> = agents.map(Agent::from).collect();
    Json(Stats { spent: Spent::of_agents(&agents), ..app.metrics.summary() })
}
