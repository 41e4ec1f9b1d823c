//! How the event stream does with many clients: 1,000 that read 50 events a second each, and
//! 10,000 that connect and vanish. `cargo bench -p midturn-server --bench clients`. The
//! clients are a process of their own, so that the memory shown is the server's alone.

use std::error::Error;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use midturn_core::engine::ports::Observer;
use midturn_core::rules::event::{Event, EventKind, Place, VERSION};
use midturn_core::rules::mail::Sender;
use midturn_core::rules::time::Micros;
use midturn_server::{Bounds, Feed, Live, Rate, Token, Tokens};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

#[path = "../tests/support/mod.rs"]
mod support;

const CLIENTS: usize = 1_000;
const PER_SECOND: u64 = 50;
const SECONDS: u64 = 20;
const VISITS: usize = 10_000;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let runtime = tokio::runtime::Runtime::new()?;
    match args.next().as_deref() {
        Some("--clients") => {
            let mut next = || args.next().ok_or("the clients need a socket and a token");
            let (socket, token) = (next()?, next()?);
            runtime.block_on(clients(socket.as_ref(), &token))
        }
        _ => runtime.block_on(serve()),
    }
}

/// The clients' process: reads all events, and prints how late they came, in microseconds.
async fn clients(socket: &Path, token: &str) -> Outcome<()> {
    let mut open = Vec::new();
    for _ in 0..CLIENTS {
        open.push(BufReader::with_capacity(1_024, stream(socket, token).await?));
    }
    println!("open");
    let mut reading = tokio::task::JoinSet::new();
    for client in open {
        reading.spawn(read(client));
    }
    let mut all = Vec::new();
    while let Some(late) = reading.join_next().await {
        all.extend(late??);
    }
    all.sort_unstable();
    let at = |part: f64| all[((all.len() - 1) as f64 * part) as usize];
    println!("{} {} {} {}", all.len(), at(0.5), at(0.99), at(1.0));
    Ok(())
}

async fn stream(socket: &Path, token: &str) -> Outcome<UnixStream> {
    let mut stream = UnixStream::connect(socket).await?;
    let head = format!(
        "GET /v1/sessions/s2/events HTTP/1.1\r\nHost: midturn\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let mut first = [0; 12];
    stream.read_exact(&mut first).await?;
    if first != *b"HTTP/1.1 200" { Err("the stream was refused".into()) } else { Ok(stream) }
}

/// How late each event was: `t` is when it was told, on the clock that both processes share.
async fn read(mut client: BufReader<UnixStream>) -> Outcome<Vec<u64>> {
    let mut late = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        if client.read_until(b'\n', &mut line).await? == 0 {
            return Ok(late);
        }
        if let Some(json) = line.strip_prefix(b"data: ") {
            let event: Event = serde_json::from_slice(json)?;
            late.push(now().saturating_sub(event.t.0));
        }
    }
}

/// Microseconds on a clock of the whole machine.
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64) * 1_000_000 + (now.tv_nsec as u64) / 1_000
}

/// An interface that lets its clients come as fast as they can.
async fn rig() -> Outcome<support::Rig> {
    let often = NonZeroU32::new(1_000_000).ok_or("that is not zero")?;
    let token = Token::random()?;
    let rate = Rate { per_second: often, burst: often };
    let tokens = Tokens::new([(token.clone(), Sender::User)], rate);
    Ok(support::Rig::of(Bounds::default(), support::scripts(), token, tokens).await)
}

async fn serve() -> Outcome<()> {
    let rig = rig().await?;
    let live = rig.host.live.lock()[0].clone();
    let feed = Arc::new(Feed::default());
    let record = support::host::record("s2", "a benchmark");
    rig.archive.add(record.clone());
    rig.host.enter(Live { record, feed: feed.clone(), ..live });

    println!("| | |\n| --- | --- |");
    let before = resident()?;
    let mut child = tokio::process::Command::new(std::env::current_exe()?)
        .arg("--clients")
        .arg(&rig.socket)
        .arg(rig.token.secret())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = child.stdout.take().ok_or("the clients have no output")?;
    let mut lines = BufReader::new(stdout).lines();
    lines.next_line().await?.ok_or("the clients did not come")?;
    let idle = resident()?;
    let cpu = processor()?;
    let most = tell(&feed).await?;
    let spent = processor()? - cpu;
    rig.shutdown.cancel();
    let report = lines.next_line().await?.ok_or("the clients said nothing")?;
    child.wait().await?;
    rig.end().await;
    print_report(&report, before, idle, most, spent)?;
    visits().await
}

/// Tells the events at their pace; the most memory that was resident meanwhile.
async fn tell(feed: &Feed) -> Outcome<u64> {
    let mut tick = tokio::time::interval(Duration::from_micros(1_000_000 / PER_SECOND));
    let mut most = 0;
    for seq in 1..=PER_SECOND * SECONDS {
        tick.tick().await;
        let text = format!("The reply number {seq}, as long as replies are that come fifty times a second.");
        let kind = EventKind::ModelInterrupted {
            reason: midturn_core::rules::conversation::InterruptReason::Error,
            text,
            thinking: Vec::new(),
            partial_tokens: seq,
        };
        let at = Place::of(&support::name("worker"), 1, 1);
        feed.event(&Event { v: VERSION, seq, t: Micros(now()), at, kind });
        if seq % PER_SECOND == 0 {
            most = most.max(resident()?);
        }
    }
    Ok(most)
}

fn print_report(report: &str, before: u64, idle: u64, most: u64, spent: Duration) -> Outcome<()> {
    let figures = report.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let [count, p50, p99, max] = figures[..] else { return Err("the clients said something else".into()) };
    let expected = CLIENTS as u64 * PER_SECOND * SECONDS;
    println!("| events received, of {expected} | {count} |");
    println!("| told → received, p50 / p99 / most | {:.1} / {:.1} / {:.1} ms |", ms(p50), ms(p99), ms(max));
    let each = |now: u64| now.saturating_sub(before) as f64 / CLIENTS as f64 / 1_024.0;
    println!(
        "| memory for each of {CLIENTS} clients, idle / at most | {:.1} / {:.1} KiB |",
        each(idle),
        each(most)
    );
    let share = spent.as_secs_f64() / SECONDS as f64 * 100.0;
    println!("| the server's share of a core | {share:.0} % |");
    Ok(())
}

fn ms(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}

/// Clients that connect, read a bit and vanish: what is left of them?
async fn visits() -> Outcome<()> {
    let rig = rig().await?;
    let path = "/v1/sessions/s1/events";
    let head = rig.head("GET", path);
    let quiet = async |count: usize| -> Outcome<Duration> {
        let begun = Instant::now();
        for n in 0..count {
            let mut stream = UnixStream::connect(&rig.socket).await?;
            match n % 4 {
                0 => {}
                1 => stream.write_all(&head.as_bytes()[..20]).await?,
                2 => stream.write_all(head.as_bytes()).await?,
                _ => {
                    stream.write_all(format!("{head}\r\n").as_bytes()).await?;
                    stream.read_exact(&mut [0; 12]).await?;
                }
            }
        }
        Ok(begun.elapsed())
    };
    // The first thousand fill what stays: pools, arenas, stacks.
    quiet(1_000).await?;
    settle(&rig).await?;
    let (descriptors, memory) = (descriptors()?, resident()?);
    let took = quiet(VISITS).await?;
    settle(&rig).await?;
    println!("| connect and vanish, {VISITS} times | {:.1} s |", took.as_secs_f64());
    println!("| descriptors before / after | {descriptors} / {} |", self::descriptors()?);
    println!("| memory before / after | {} / {} KiB |", memory / 1_024, resident()? / 1_024);
    rig.end().await;
    Ok(())
}

/// Waits until the server has seen that its clients are gone.
async fn settle(rig: &support::Rig) -> Outcome<()> {
    for _ in 0..600 {
        if rig.get("/v1/health").await.status == 200 && descriptors()? < 40 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

fn descriptors() -> Outcome<usize> {
    Ok(std::fs::read_dir("/proc/self/fd")?.count())
}

/// Resident memory, in bytes.
fn resident() -> Outcome<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = text.split(' ').nth(1).ok_or("no such field")?.parse()?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// Processor time that this process has used.
fn processor() -> Outcome<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields = text.rsplit(") ").next().ok_or("no such field")?;
    let mut ticks = fields.split(' ').skip(11).take(2).map(str::parse::<u64>);
    let mut next = || ticks.next().ok_or("no such field");
    let ticks = next()?? + next()??;
    Ok(Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second()))
}
