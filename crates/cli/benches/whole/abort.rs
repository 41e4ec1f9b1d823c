//! From the cancelled token to a tree that is dead and reaped, beside kill and wait by hand.

use std::process::Command as Process;
use std::time::{Duration, Instant};

use midturn_tools::process::{Cause, Command, ExitStatus, Streams, Supervision, Supervisor};
use tokio_util::sync::CancellationToken;

use super::stats::{Figures, millis};

const ROUNDS: usize = 40;

pub(crate) fn table() {
    println!("\nurgent to a dead and reaped child  (median, minimum, maximum of {ROUNDS})");
    let (mut hand, mut space, mut reaper) = (vec![], vec![], vec![]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let best = Supervisor::ourselves();
    let fallback = Supervisor::ourselves().at_best(Supervision::Subreaper);
    for _ in 0..ROUNDS {
        hand.push(by_hand());
        space.push(runtime.block_on(ours(&best)));
        reaper.push(runtime.block_on(ours(&fallback)));
    }
    let hand = Figures::new(hand);
    hand.print("spawn before, then kill and wait by hand", "ms", "");
    Figures::new(space).print(&format!("ours, {:?}", best.supervision()), "ms", "target 2 × by hand");
    Figures::new(reaper).print(&format!("ours, {:?}", fallback.supervision()), "ms", "");
}

fn by_hand() -> f64 {
    let mut child = Process::new("sleep").arg("30").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let begin = Instant::now();
    child.kill().unwrap();
    child.wait().unwrap();
    millis(begin.elapsed())
}

async fn ours(supervisor: &Supervisor) -> f64 {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let command = Command {
        words: vec!["sleep".into(), "30".into()],
        folder: std::env::temp_dir(),
        environment: [("PATH".into(), path)].into(),
        timeout: Duration::from_secs(60),
        confinement: None,
        gate: None,
        streams: Streams::default(),
    };
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    let cancelling = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let begin = Instant::now();
        later.cancel();
        begin
    });
    let ended = supervisor.run(&command, &cancel, &mut |_| {}).await.unwrap();
    let end = Instant::now();
    assert_eq!((ended.cause, ended.status), (Cause::Cancelled, ExitStatus::Signalled(15)));
    millis(end - cancelling.await.unwrap())
}
