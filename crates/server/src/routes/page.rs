//! The page: how it is opened and signs in, and its files (docs/protocol.md, "The page").

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use midturn_core::engine::Coordinator;
use midturn_core::rules::mail::Sender;
use midturn_wire::page::{Left, Page, SignIn, SignedIn, Unseen};
use midturn_wire::work::Empty;
use tokio_util::sync::CancellationToken;

use super::{Change, Reply, SessionPath};
use crate::app::App;
use crate::extract::Brought;
use crate::pages::NoPage;
use crate::problem::Refused;
use crate::security::{Asker, GOOD_FOR, NoEntry};

/// Makes a link that signs a page in, and has it listened to on loopback from now on.
#[utoipa::path(post, path = "/v1/page", responses((status = 200, body = Page)))]
pub(super) async fn open(State(app): State<Arc<App>>, asker: Asker) -> Reply<Page> {
    asker.must_be_a_person()?;
    let (address, code) = app.pages.open().await.map_err(not_opened)?;
    let code = code.secret().to_owned();
    Ok(Json(Page { address: address.to_string(), code, seconds: GOOD_FOR.as_secs() }))
}

fn not_opened(error: NoPage) -> Refused {
    match error {
        NoPage::Ends => Refused::shutting_down("the process ends: open the page again"),
        NoPage::Bind(_) | NoPage::Token(_) => {
            Refused::new(StatusCode::SERVICE_UNAVAILABLE, "failed", format!("the page: {error}"))
        }
    }
}

/// Signs a page in: its code for a token of its own.
#[utoipa::path(
    post,
    path = "/v1/sign_in",
    request_body = SignIn,
    security(()),
    responses((status = 200, body = SignedIn))
)]
pub(super) async fn sign_in(
    State(app): State<Arc<App>>,
    Brought(SignIn { code }): Brought<SignIn>,
) -> Reply<SignedIn> {
    app.pages.count().map_err(|seconds| {
        Refused::too_many("too_many_requests", "too many tries to sign in; wait", seconds)
    })?;
    app.pages.enter(&code).map_err(|why| {
        let detail = match why {
            NoEntry::Unknown => "the link was used already, or is not of this process: open the page again with `midturn open`",
            NoEntry::Late => "the link came too late, it is good for a minute: open the page again with `midturn open`",
        };
        Refused::new(StatusCode::FORBIDDEN, "wrong_code", detail)
    })?;
    let token = app.tokens.of_page().map_err(|error| not_opened(error.into()))?;
    Ok(Json(SignedIn { token: token.secret().to_owned() }))
}

/// Says that a page of a session is about to be closed, or loaded anew: nobody can tell before it is back.
#[utoipa::path(post, path = "/leave", request_body = Empty, responses((status = 200, body = Left)))]
pub(super) async fn leave(State(app): State<Arc<App>>, change: Change<SessionPath, Empty>) -> Reply<Left> {
    let Change { live, asker, .. } = change;
    asker.must_be_a_person()?;
    if let Some(after) = app.stops_when_left {
        app.tasks.spawn(stop_unless_back(live.coordinator, after, app.shutdown.clone()));
    }
    Ok(Json(Left { stops_in: app.stops_when_left.map(|after| after.as_secs()) }))
}

/// Says that a page was told of something that waits for a person, and that nobody looks at it: somebody is there, so the
/// process itself would tell nobody.
#[utoipa::path(post, path = "/unseen", request_body = Unseen, responses((status = 200, body = Empty)))]
pub(super) async fn unseen(State(app): State<Arc<App>>, change: Change<SessionPath, Unseen>) -> Reply<Empty> {
    let Change { live, asker, body, .. } = change;
    asker.must_be_a_person()?;
    app.host.unseen(&live.record.id, body.need.0);
    Ok(Json(Empty {}))
}

/// Stops a session that nobody follows any more. The end of the process comes first: it stops all of them itself.
async fn stop_unless_back(coordinator: Coordinator, after: Duration, shutdown: CancellationToken) {
    if tokio::time::timeout(after, shutdown.cancelled()).await.is_ok() || coordinator.is_attended() {
        return;
    }
    if let Err(error) = coordinator.stop_all(Sender::User).await {
        tracing::warn!(%error, "a session that its page has left could not be stopped");
    }
}

/// A file of the page.
struct File {
    path: &'static str,
    bytes: &'static [u8],
}

/// The files of the page: those that a browser asks for.
macro_rules! files {
    ($($file:literal,)*) => {
        const FILES: &[File] = &[
            $(File { path: concat!("/", $file), bytes: include_bytes!(concat!("../../page/", $file)) },)*
        ];
    };
}

/// What is shown at the address itself.
const INDEX: File = File { path: "/", bytes: include_bytes!("../../page/index.html") };

files! {
    "api.js",
    "app.css",
    "app.js",
    "chart.js",
    "deeds.js",
    "fold.js",
    "fold/agent.js",
    "fold/axis.js",
    "fold/conversation.js",
    "fold/lane.js",
    "fold/picture.js",
    "fold/said.js",
    "fold/text.js",
    "fold/timeline.js",
    "fold/types.js",
    "fold/view.js",
    "folded.js",
    "icon.svg",
    "inbox.js",
    "kept.js",
    "keys.js",
    "markdown.js",
    "notes.js",
    "page.js",
    "parts/ask.js",
    "parts/board.js",
    "parts/call.js",
    "parts/chart.js",
    "parts/composer.js",
    "parts/dialog.js",
    "parts/diff.js",
    "parts/head.js",
    "parts/inbox.js",
    "parts/plan.js",
    "parts/playing.js",
    "parts/prose.js",
    "parts/queue.js",
    "parts/review.js",
    "parts/shell.js",
    "parts/start.js",
    "parts/talk.js",
    "parts/thought.js",
    "parts/timeline.js",
    "patch.js",
    "places.js",
    "playback.js",
    "player.js",
    "replayed.js",
    "review.js",
    "roster.js",
    "shown.js",
    "sse.js",
    "told.js",
    "vendor/lit-html/directive-helpers.js",
    "vendor/lit-html/directive.js",
    "vendor/lit-html/directives/guard.js",
    "vendor/lit-html/directives/keyed.js",
    "vendor/lit-html/directives/live.js",
    "vendor/lit-html/directives/repeat.js",
    "vendor/lit-html/lit-html.js",
    "vendor/marked/marked.esm.js",
    "watched.js",
    "ways.js",
    "whatif.js",
    "words.js",
    "words/clean.js",
    "words/figures.js",
    "words/gist.js",
    "words/inbox.js",
    "words/timeline.js",
}

impl File {
    fn kind(&self) -> &'static str {
        match self.path.rsplit_once('.').map(|(_, kind)| kind) {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        }
    }
}

/// What the page may do: nothing but itself. No script that isn't a file of it, no frame around it, and no
/// text that becomes a script.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html",
);

/// The files, each at its path. They hold nothing of anybody, so they are there without a token.
pub(super) fn files() -> Router<Arc<App>> {
    let all = FILES.iter().chain([&INDEX]);
    all.fold(Router::new(), |router, file| router.route(file.path, get(|| async { serve(file) })))
}

fn serve(file: &'static File) -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(file.kind())),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (
            header::HeaderName::from_static("cross-origin-opener-policy"),
            HeaderValue::from_static("same-origin"),
        ),
        (
            header::HeaderName::from_static("cross-origin-resource-policy"),
            HeaderValue::from_static("same-origin"),
        ),
    ];
    (headers, file.bytes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn names(folder: &Path, below: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                names(&entry.path(), &name, found);
            } else if [".js", ".css", ".svg"].iter().any(|kind| name.ends_with(kind)) {
                found.push(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_page_is_served() {
        let mut there = Vec::new();
        names(&Path::new(env!("CARGO_MANIFEST_DIR")).join("page"), "", &mut there);
        there.sort();
        let mut served: Vec<&str> = FILES.iter().map(|file| file.path).collect();
        served.sort_unstable();
        assert_eq!(served, there);
    }
}
