//! What the terminal's work costs (figures for docs/performance.md): a frame of twenty agents who speak, a key in a long
//! draft, a long session that is loaded, markdown while it streams, a request of many lines, timelines, a long diff with comments.
//!
//! `cargo bench -p midturn-tui`

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{Sink, sink};

use common::{Play, command};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use midturn_client::events::Told;
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::mail::Urgency;
use midturn_tui::draw::draw;
use midturn_tui::effect::Done;
use midturn_tui::update::Input;
use midturn_view::patch::{Place, Side};
use midturn_view::review::{COMMENTS_MAX, Comment, message};
use midturn_wire::work::Diff;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

const SIZE: (u16, u16) = (200, 60);

/// A paragraph, a list, code and a table: about 600 bytes.
const MARKDOWN: &str = "The parser has **three** callers, of which `open()` is one; the others are in the tests and read \
    the same file twice.\n\n- the first is in `src/lib.rs`, and is public\n- the second is not\n  - and has one of its \
    own\n\n```rust\nfn open(path: &Path) -> Result<File, Error> {\n    File::open(path).map_err(Error::from)\n}\n```\n\n\
    | call | where | why |\n| --- | --- | --- |\n| open | lib | public |\n| read | tests | twice |\n\n> It was so before.\n\n";

type Screen = Terminal<CrosstermBackend<Sink>>;

fn screen() -> Screen {
    let viewport = Viewport::Fixed(Rect::new(0, 0, SIZE.0, SIZE.1));
    Terminal::with_options(CrosstermBackend::new(sink()), TerminalOptions { viewport }).expect("a sink")
}

fn frame(screen: &mut Screen, play: &Play) {
    screen.draw(|frame| draw(&play.state, frame)).expect("a sink");
}

fn names() -> Vec<String> {
    (1..=20).map(|n| format!("worker-{n}")).collect()
}

/// Twenty agents who have worked, and speak.
fn twenty() -> (Play, Screen) {
    let mut play = Play::of_size(SIZE.0, SIZE.1);
    for name in names() {
        play.begins(&name, "Write the page.");
        for n in 0..20 {
            let call = format!("c{n}");
            play.replies(&name, MARKDOWN, &[(&call, "bash", command("ls"))]).starts(
                &name,
                &call,
                "bash",
                command("ls"),
            );
            play.ends(&name, &call, "bash", ToolStatus::Completed, "a\nb\n").asks_model(&name);
        }
        play.says(&name, MARKDOWN);
    }
    let mut screen = screen();
    frame(&mut screen, &play);
    (play, screen)
}

fn speaking(bench: &mut Criterion) {
    let names = names();
    bench.bench_function("20 agents x 20 deltas, folded and drawn", |bench| {
        let speak = |(mut play, mut screen): (Play, Screen)| {
            for _ in 0..20 {
                for name in &names {
                    play.says(name, " word");
                }
            }
            frame(&mut screen, &play);
            (play, screen)
        };
        bench.iter_batched(twenty, speak, BatchSize::PerIteration);
    });
}

fn typing(bench: &mut Criterion) {
    let (mut play, mut screen) = twenty();
    play.input(Input::Paste("a word and another one, ".repeat(85)));
    frame(&mut screen, &play);
    bench.bench_function("a key in a draft of 2 kB, and one that takes it out, each drawn", |bench| {
        bench.iter(|| {
            play.press(&["x"]);
            frame(&mut screen, &play);
            play.press(&["backspace"]);
            frame(&mut screen, &play);
        });
    });
}

/// So many events of twenty agents at work.
fn events(count: usize) -> Vec<Told> {
    let (mut play, names) = (Play::of_size(SIZE.0, SIZE.1), names());
    let told = |event| Told::Event(String::new(), Box::new(event));
    let mut all = Vec::with_capacity(count + 8);
    for name in &names {
        all.extend(play.beginning(name).map(told));
    }
    let mut n = 0;
    while all.len() < count {
        all.extend(play.turn(&names[n % 20], n).map(told));
        n += 1;
    }
    all
}

fn loading(bench: &mut Criterion) {
    let all = events(100_000);
    let mut group = bench.benchmark_group("loading");
    group.sample_size(10);
    group.bench_function("100,000 events, folded, and a frame", |bench| {
        let load = |all: Vec<Told>| {
            let (mut play, mut screen) = (Play::of_size(SIZE.0, SIZE.1), screen());
            all.into_iter().for_each(|told| {
                play.input(Input::Told(told));
            });
            frame(&mut screen, &play);
            play
        };
        bench.iter_batched(|| all.clone(), load, BatchSize::PerIteration);
    });
}

fn markdown(bench: &mut Criterion) {
    let (mut play, mut screen) = (Play::of_size(SIZE.0, SIZE.1), screen());
    play.begins("lead", "Write the page.").says("lead", &MARKDOWN.repeat(54));
    frame(&mut screen, &play);
    bench.bench_function("a word more of 32 KiB of markdown, drawn", |bench| {
        bench.iter(|| {
            play.says("lead", " word");
            frame(&mut screen, &play);
        });
    });
}

fn asking(bench: &mut Criterion) {
    let (mut play, mut screen) = (Play::of_size(SIZE.0, SIZE.1), screen());
    let script = command(&"cargo test --package midturn-core -- --nocapture\n".repeat(1_300));
    play.begins("lead", "Go.").replies("lead", "", &[("c1", "bash", script.clone())]);
    play.asks("lead", "c1", "bash", script, "bash(cargo:*)");
    bench.bench_function("a frame while a command of 64 KiB is asked for", |bench| {
        bench.iter(|| frame(&mut screen, &play));
    });
}

/// A frame is drawn for each word that one of twenty agents says, while the timeline of all is looked at, or the last minute of it.
fn timeline(bench: &mut Criterion) {
    for (says, keys) in [("beside the conversation", &[][..]), ("of all", &["ctrl+t"])] {
        let (mut play, mut screen) = twenty();
        play.press(keys);
        frame(&mut screen, &play);
        bench.bench_function(&format!("a word more, drawn with the timeline {says}"), |bench| {
            bench.iter(|| {
                play.says("worker-1", " word");
                frame(&mut screen, &play);
            });
        });
    }
}

/// A diff of 10 MiB with 50 comments: it is looked at while its agent speaks.
fn reviewing(bench: &mut Criterion) {
    let (mut play, mut screen) = (Play::of_size(SIZE.0, SIZE.1), screen());
    let line = "x".repeat(500);
    let lines = (10 << 20) / line.len();
    let added = format!("+{line}\n").repeat(lines);
    let patch = format!("diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -0,0 +1,{lines} @@\n{added}");
    let comment = |at| {
        let place = Place { file: "a.rs", side: Side::New, line: at, code: &line };
        Comment::on(&place, "Why?")
    };
    play.begins("lead", "Go.");
    let comments: Vec<Comment> = (1..=50).map(|n| comment(n * 300)).collect();
    for (n, some) in comments.chunks(COMMENTS_MAX).enumerate() {
        play.queued("lead", &format!("m{n}"), "user", Urgency::AfterTools, &message(some));
    }
    play.press(&["alt+d"]);
    let (branch, start) = (String::new(), String::new());
    let diff = Diff { branch, start, patch, truncated: false };
    play.input(Input::Done(Done::Diff(common::name("lead"), Ok(diff))));
    frame(&mut screen, &play);
    bench.bench_function("a word more, drawn with a diff of 10 MiB that has 50 comments", |bench| {
        bench.iter(|| {
            play.says("lead", " word");
            frame(&mut screen, &play);
        });
    });
}

criterion_group!(benches, speaking, typing, loading, markdown, asking, timeline, reviewing);
criterion_main!(benches);
