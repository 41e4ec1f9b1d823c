//! Calls over real connections, to a server that does whatever a test wants.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::Mutex;

use super::server::{Answer, Server};
use midturn_core::engine::ports::model::{ErrorKind, Model, ModelFailure, Progress, Request};
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{Entry, Injected, Reply};
use midturn_core::rules::time::Span;
use midturn_providers::{Config, Dialect, Endpoint, Providers, Written};
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-this-is-the-key";

const START: &str = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"H\u{e9}\"}}\n\n";
const END: &str = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n";
const STOP: &str = "data: {\"type\":\"message_stop\"}\n\n";

fn config(url: &str) -> Config {
    let mut config = Config::default();
    config.0.values_mut().for_each(|endpoint| url.clone_into(&mut endpoint.base_url));
    config.read_environment(|_| Ok::<_, Infallible>(Some(KEY.to_owned()))).unwrap();
    config
}

fn providers(server: &Server) -> Providers {
    Providers::new(config(&server.url))
}

/// Notes what it is told, and cuts the call when it is told `cut_at`.
#[derive(Default)]
struct Told {
    said: Mutex<Vec<String>>,
    cut_at: Option<&'static str>,
    cancel: CancellationToken,
}

impl Told {
    fn say(&self, what: String) {
        if self.cut_at == Some(what.as_str()) {
            self.cancel.cancel();
        }
        self.said.lock().unwrap().push(what);
    }

    fn all(&self) -> String {
        self.said.lock().unwrap().join(",")
    }
}

impl Progress for Told {
    fn sent(&self) {
        self.say("sent".to_owned());
    }
    fn text(&self, delta: &str) {
        self.say(format!("text {delta}"));
    }
    fn thinking(&self, delta: &str) {
        self.say(format!("thinking {delta}"));
    }
    fn thinking_done(&self) {}
    fn tokens(&self, _: u64) {
        if self.cut_at == Some("tokens") {
            self.cancel.cancel();
        }
    }
}

async fn call(model: &mut dyn Model, told: &Told) -> Result<Reply, ModelFailure> {
    let entries = [Arc::new(Entry::User(Injected::prompt("hello")))];
    let request = Request {
        messages: 1,
        purpose: Purpose::Turn,
        compactions: 0,
        max_output: None,
        agent_index: 0,
        call: 1,
        system: "",
        tools: &[],
        entries: &entries,
        cancel: &told.cancel,
        progress: told,
    };
    model.call(request).await
}

async fn one(server: &Server, told: &Told) -> Result<Reply, ModelFailure> {
    call(providers(server).make("anthropic/m").unwrap().as_mut(), told).await
}

fn bytewise(text: &str) -> Vec<Vec<u8>> {
    text.bytes().map(|byte| vec![byte]).collect()
}

fn answered(status: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    Answer::Whole(format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}"))
}

#[tokio::test]
async fn a_reply_comes_through_byte_by_byte_and_the_connection_is_used_again() {
    let reply = [START, END, STOP].concat();
    let mut server =
        Server::start([Answer::Stream(bytewise(&reply)), Answer::Stream(vec![reply.into()])]).await;
    let providers = providers(&server);
    for agent in 0..2 {
        let told = Told::default();
        let mut model = providers.make("anthropic/m").unwrap();
        let reply = call(model.as_mut(), &told).await.unwrap();
        assert_eq!((reply.text().as_str(), reply.usage.output), ("Hé", 3));
        assert_eq!(told.all(), "sent,text Hé");
        let asked = server.asked.recv().await.unwrap();
        assert_eq!(asked.connection, 0, "agent {agent}");
        assert!(asked.head.starts_with("POST /v1/messages HTTP/1.1"));
    }
}

#[tokio::test]
async fn two_compatible_servers_each_get_their_own_key_and_headers() {
    let mut config = Config(BTreeMap::new());
    let mut servers = Vec::new();
    for (name, key_env) in [("one", Some("ONE_KEY")), ("two", Some("TWO_KEY")), ("open", None)] {
        let server = Server::start([answered("500 No", "", "")]).await;
        let mut endpoint = Endpoint::new(Dialect::Chat, &server.url);
        endpoint.key_env = key_env.map(str::to_owned);
        let tenant = Written::header("x-tenant", &format!("of-{name} ${{TENANT_{name}}}")).unwrap();
        endpoint.headers.insert("x-tenant".to_owned(), tenant);
        endpoint.query.insert("v".to_owned(), Written::parameter("v", name).unwrap());
        config.0.insert(name.to_owned(), endpoint);
        servers.push((name, server));
    }
    config.read_environment(|name| Ok::<_, Infallible>(Some(format!("value-of-{name}")))).unwrap();
    let providers = Providers::new(config);
    for (name, mut server) in servers {
        let mut model = providers.make(&format!("{name}/m")).unwrap();
        assert!(call(model.as_mut(), &Told::default()).await.is_err());
        let head = server.asked.recv().await.unwrap().head;
        assert!(head.starts_with(&format!("POST /v1/chat/completions?v={name} ")), "{head}");
        assert!(head.contains(&format!("x-tenant: of-{name} value-of-TENANT_{name}\r\n")), "{head}");
        let keys: Vec<&str> =
            head.split("authorization: ").skip(1).filter_map(|rest| rest.lines().next()).collect();
        let own: &[&str] = match name {
            "one" => &["Bearer value-of-ONE_KEY"],
            "two" => &["Bearer value-of-TWO_KEY"],
            _ => &[],
        };
        assert_eq!((keys.as_slice(), head.matches("value-of-").count()), (own, 1 + own.len()), "{head}");
    }
}

#[tokio::test]
async fn a_refused_login_names_what_to_check_and_repeats_nothing_that_was_sent() {
    for (key_env, header, expected) in [
        (Some("A_KEY"), "x", "(check A_KEY)"),
        (None, "${B}", "(check B)"),
        (None, "x", "(no key is sent: `providers.mine.key_env` names"),
    ] {
        let server = Server::start([answered("401 No", "", "what-A_KEY-holds what-B-holds")]).await;
        let mut mine = Endpoint::new(Dialect::Chat, &server.url);
        mine.key_env = key_env.map(str::to_owned);
        mine.headers.insert("x-login".to_owned(), Written::header("x-login", header).unwrap());
        let mut config = Config([("mine".to_owned(), mine)].into());
        config.read_environment(|name| Ok::<_, Infallible>(Some(format!("what-{name}-holds")))).unwrap();
        let named: Vec<String> = config.0["mine"].environment.keys().cloned().collect();
        let mut model = Providers::new(config).make("mine/m").unwrap();
        let failure = call(model.as_mut(), &Told::default()).await.unwrap_err();
        assert!(
            failure.message.contains("mine answered 401") && failure.message.contains(expected),
            "{failure}"
        );
        assert!(
            named.iter().all(|name| !failure.message.contains(&format!("what-{name}-holds"))),
            "{failure}"
        );
    }
}

#[tokio::test]
async fn the_key_goes_into_the_header_its_provider_wants() {
    for (model, header) in [
        ("anthropic/m", "x-api-key: sk-this-is-the-key"),
        ("openai/m", "authorization: Bearer sk-this-is-the-key"),
        ("openai-chat/m", "authorization: Bearer sk-this-is-the-key"),
    ] {
        let mut server = Server::start([answered("500 No", "", "")]).await;
        let mut model = providers(&server).make(model).unwrap();
        assert!(call(model.as_mut(), &Told::default()).await.is_err());
        let asked = server.asked.recv().await.unwrap();
        assert!(asked.head.contains(header), "{}", asked.head);
        assert!(!asked.body.contains(KEY));
    }
}

#[tokio::test]
async fn a_status_is_a_failure_of_its_kind_with_what_the_body_says_and_no_key() {
    let said = format!(r#"{{"type":"error","error":{{"type":"x","message":"bad {KEY}"}}}}"#);
    for (status, headers, kind, wait) in [
        ("400 Bad", "request-id: req_7\r\n", ErrorKind::InvalidRequest, None),
        ("401 No", "", ErrorKind::InvalidRequest, None),
        ("404 No", "", ErrorKind::InvalidRequest, None),
        ("302 Found", "location: http://127.0.0.1:1/\r\n", ErrorKind::InvalidRequest, None),
        ("429 Slow", "retry-after: 7\r\n", ErrorKind::RateLimited, Some(Span::secs(7))),
        ("429 Slow", "retry-after-ms: 20\r\n", ErrorKind::RateLimited, Some(Span::millis(20))),
        ("529 Full", "", ErrorKind::Overloaded, None),
        ("500 Oops", "", ErrorKind::Server, None),
        ("503 Oops", "retry-after: 1\r\n", ErrorKind::Server, Some(Span::secs(1))),
    ] {
        let server = Server::start([answered(status, headers, &said)]).await;
        let failure = one(&server, &Told::default()).await.unwrap_err();
        assert_eq!((failure.kind, failure.retry_after), (kind, wait), "{failure}");
        assert!(failure.message.contains("bad [key]"), "{failure}");
        assert!(failure.message.contains(&status[..3]), "{failure}");
        assert_eq!(headers.contains("req_7"), failure.message.contains("req_7"));
        assert!(!format!("{failure:?}").contains(KEY));
    }
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_an_error_that_is_not_tried_again() {
    let page = answered("200 OK", "content-type: text/html\r\n", "<html>");
    let server = Server::start([page]).await;
    let failure = one(&server, &Told::default()).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::InvalidRequest);
}

#[tokio::test]
async fn a_stream_that_ends_or_breaks_before_the_stop_reason_is_a_broken_connection() {
    let part = || vec![START.into()];
    for answer in [Answer::Stream(part()), Answer::Break(part()), Answer::Stream(vec![])] {
        let server = Server::start([answer]).await;
        let failure = one(&server, &Told::default()).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Connection, "{failure}");
    }
}

#[tokio::test]
async fn a_reply_is_whole_once_its_stop_reason_has_come_whatever_the_connection_does_then() {
    let whole = || vec![START.into(), END.into()];
    for (answer, cut_at) in [
        (Answer::Stream(whole()), None),
        (Answer::Break(whole()), None),
        // Cut while figures were waited for.
        (Answer::Hang(whole()), Some("tokens")),
    ] {
        let server = Server::start([answer]).await;
        let told = Told { cut_at, ..Told::default() };
        assert_eq!(one(&server, &told).await.unwrap().text(), "Hé");
    }
}

#[tokio::test]
async fn a_cut_drops_the_connection_at_once_and_keeps_what_was_told() {
    for (cut_at, told_all) in [("sent", "sent"), ("text Hé", "sent,text Hé")] {
        let answer = if cut_at == "sent" { Answer::Silence } else { Answer::Hang(vec![START.into()]) };
        let mut server = Server::start([answer]).await;
        let told = Told { cut_at: Some(cut_at), ..Told::default() };
        let failure = one(&server, &told).await.unwrap_err();
        assert_eq!((failure.kind, told.all().as_str()), (ErrorKind::Cancelled, told_all));
        assert_eq!(server.closed.recv().await, Some(0));
    }
}

#[tokio::test]
async fn a_call_that_is_cut_before_it_begins_sends_nothing() {
    let mut server = Server::start([]).await;
    let told = Told::default();
    told.cancel.cancel();
    assert_eq!(one(&server, &told).await.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(told.all(), "");
    assert!(server.asked.try_recv().is_err());
}

#[tokio::test]
async fn silence_is_a_broken_connection_after_the_idle_timeout() {
    for answer in [Answer::Silence, Answer::Hang(vec![START.into()])] {
        let server = Server::start([answer]).await;
        let mut config = config(&server.url);
        config.0.get_mut("anthropic").unwrap().idle_timeout = Span::millis(1);
        let mut model = Providers::new(config).make("anthropic/m").unwrap();
        let failure = call(model.as_mut(), &Told::default()).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Connection);
        assert!(failure.message.contains("`timeouts.idle`"), "{failure}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_broken_connection_and_nothing_was_sent() {
    let gone = Server::start([]).await.url;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_ne!(gone, format!("http://{free}"));
    let told = Told::default();
    let providers = Providers::new(config(&format!("http://{free}")));
    let failure = call(providers.make("anthropic/m").unwrap().as_mut(), &told).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Connection);
    assert_eq!(told.all(), "");
    assert!(failure.message.contains("no connection to 127.0.0.1"), "{failure}");
}

#[tokio::test]
async fn an_event_beyond_the_limit_is_an_error_that_names_the_setting() {
    let server = Server::start([Answer::Stream(vec![vec![b'x'; 2_000]])]).await;
    let mut config = config(&server.url);
    config.0.get_mut("anthropic").unwrap().max_event_bytes = 1_000;
    let mut model = Providers::new(config).make("anthropic/m").unwrap();
    let failure = call(model.as_mut(), &Told::default()).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::InvalidRequest);
    assert!(failure.message.contains("max_event_bytes"), "{failure}");
}

#[tokio::test]
async fn who_waits_for_another_call_s_limit_can_be_cut() {
    let limited = answered("429 Slow", "retry-after: 100\r\n", "");
    let mut server = Server::start([limited]).await;
    let providers = providers(&server);
    let mut first = providers.make("openai/m").unwrap();
    let failure = call(first.as_mut(), &Told::default()).await.unwrap_err();
    assert_eq!(failure.retry_after, Some(Span::secs(100)));
    assert!(server.asked.recv().await.is_some());
    // The other protocol has the same key, so it waits too.
    let mut second = providers.make("openai-chat/m").unwrap();
    let told = Told::default();
    let waiting = call(second.as_mut(), &told);
    let cut = async {
        tokio::task::yield_now().await;
        told.cancel.cancel();
    };
    let (result, ()) = tokio::join!(waiting, cut);
    assert_eq!(result.unwrap_err().kind, ErrorKind::Cancelled);
    assert!(server.asked.try_recv().is_err());
}
