//! A daemon that was started for somebody ends when nobody needs it any more.

use std::time::{Duration, Instant};

use midturn_core::rules::mail::Standing;
use midturn_core::rules::time::Span;
use midturn_server::{Host, Use};

use super::Carrier;

/// How often it looks whether an agent works: by so much it may end too early.
const LOOK: Duration = Duration::from_secs(5);

/// Waits until no agent has worked and no connection was open for so long; for ever without a span.
pub(super) async fn for_so_long(carrier: &Carrier, used: &Use, span: Option<Span>) {
    let Some(span) = span.map(Span::duration) else { return std::future::pending().await };
    let mut worked = Instant::now();
    loop {
        let now = Instant::now();
        if is_at_work(carrier) {
            worked = now;
        }
        match rests(now, worked, used.idle_since(), span) {
            None => return,
            Some(left) => tokio::time::sleep(left.min(LOOK)).await,
        }
    }
}

/// How long it has to go on being idle; `None`: no longer.
fn rests(now: Instant, worked: Instant, idle_since: Option<Instant>, span: Duration) -> Option<Duration> {
    let since = worked.max(idle_since.unwrap_or(now));
    let left = span.saturating_sub(now.saturating_duration_since(since));
    (!left.is_zero()).then_some(left)
}

fn is_at_work(carrier: &Carrier) -> bool {
    let mut agents = carrier.live().into_iter().flat_map(|live| live.coordinator.agents());
    agents.any(|agent| !matches!(agent.standing, Standing::Resting(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_whoever_asks_begin_the_span_anew() {
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        let at = |seconds: u32| begun + second * seconds;
        for (now, worked, idle_since, left) in [
            (10, 0, Some(0), None),
            (10, 0, Some(1), Some(1)),
            (10, 4, Some(1), Some(4)),
            (10, 10, Some(1), Some(10)),
            (10, 0, None, Some(10)),
        ] {
            let rests = rests(at(now), at(worked), idle_since.map(at), second * 10);
            assert_eq!(rests, left.map(|left| second * left), "{now} {worked} {idle_since:?}");
        }
    }
}
