//! What a picture of 10,000 events costs (figures for docs/performance.md): folded, laid out and drawn, beside what else
//! could be done with the same events in the same run: reading them, and writing the picture as JSON for another drawer.
//!
//! `cargo bench -p midturn-view`

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use midturn_core::rules::event::Event;
use midturn_core::rules::time::Micros;
use midturn_view::svg::svg;
use midturn_view::timeline::Timeline;
use serde_json::{Value, json};

const EVENTS: usize = 10_000;

/// What happens in a session, written down as it comes.
#[derive(Default)]
struct Log(Vec<String>);

impl Log {
    fn add(&mut self, agent: &str, mut fields: Value) {
        let seq = self.0.len() + 1;
        // A third of a second between two, and a minute now and then.
        let t = seq as f64 * 0.33 + (seq / 500) as f64 * 60.0;
        (fields["v"], fields["seq"], fields["t"]) = (json!(1), json!(seq), json!(t));
        (fields["agent"], fields["run"], fields["turn"]) = (json!(agent), json!(1), json!(1));
        self.0.push(fields.to_string());
    }

    /// A turn of three calls, each of which ends in its own way, and a message that skips a fourth.
    fn turn(&mut self, agent: &str, turn: usize) {
        self.add(agent, json!({"type": "model_started", "call": turn, "messages": turn}));
        self.add(agent, json!({"type": "model_finished", "stop_reason": "tool_use", "usage": {}, "text": "I go on.", "thinking": [], "tools": []}));
        for (at, status) in ["completed", "failed", "interrupted"].into_iter().enumerate() {
            let tool = format!("c{turn}-{at}");
            let input = json!({"command": "cargo test --workspace"});
            self.add(
                agent,
                json!({"type": "tool_started", "tool": tool, "name": "bash", "input": input, "batch": 1}),
            );
            self.add(agent, json!({"type": "tool_finished", "tool": tool, "name": "bash", "status": status, "is_error": false, "bytes": 0, "output": ""}));
        }
        let message = format!("m{turn}");
        self.add(agent, json!({"type": "message_queued", "message": message, "from": "user", "to": agent, "urgency": "next_boundary", "text": "Only the parser, please."}));
        self.add(agent, json!({"type": "message_injected", "messages": [message], "point": "C", "text": "", "skipped": [], "interrupted": []}));
    }
}

/// The events of so many agents, as they stand in a store.
fn lines(agents: usize) -> Vec<String> {
    let mut log = Log::default();
    let names: Vec<String> = (0..agents).map(|n| format!("worker-{n}")).collect();
    for name in &names {
        log.add(name, json!({"type": "agent_spawned", "parent": null, "role": "subagent", "model": null, "prompt": null}));
        log.add(name, json!({"type": "run_started", "trigger": "prompt"}));
    }
    let mut turn = 0;
    while log.0.len() < EVENTS {
        log.turn(&names[turn % agents], turn);
        turn += 1;
    }
    log.0
}

fn read(lines: &[String]) -> Vec<Event> {
    lines.iter().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

fn drawing(c: &mut Criterion) {
    for agents in [1, 20, 400] {
        let lines = lines(agents);
        let events = read(&lines);
        let now = Micros::default();
        let timeline = Timeline::of(&events);
        let picture = timeline.picture(now, now);
        assert!(
            picture.bars.len() > EVENTS / 4 && picture.letters.len() > EVENTS / 20,
            "{}",
            picture.letters.len()
        );
        let mut group = c.benchmark_group(format!("{} events of {agents} agents", events.len()));
        group.sample_size(30);
        group.bench_function("folded, laid out, drawn", |b| {
            b.iter(|| black_box(svg(&Timeline::of(&events).picture(now, now), "all of it").len()));
        });
        group.bench_function("of that: folded", |b| b.iter(|| black_box(Timeline::of(&events))));
        group.bench_function("of that: laid out", |b| b.iter(|| black_box(timeline.picture(now, now))));
        group.bench_function("of that: drawn", |b| b.iter(|| black_box(svg(&picture, "all of it").len())));
        group.bench_function("beside it: the events read", |b| b.iter(|| black_box(read(&lines).len())));
        group.bench_function("beside it: the picture as JSON", |b| {
            b.iter(|| black_box(serde_json::to_string(&picture).expect("JSON").len()));
        });
        group.finish();
    }
}

criterion_group!(benches, drawing);
criterion_main!(benches);
