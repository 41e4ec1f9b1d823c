//! The loop, counted on a clock that nobody waits for: how much is taken in before a key is seen, how often
//! it draws, and that it rests when nothing comes.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use midturn_core::rules::event::{Event, EventKind, LiveEvent, LiveKind, Place, Trigger, VERSION};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Role;

use super::*;

/// A drawing: how far the session was told then, and what was typed.
#[derive(Debug, Clone, PartialEq)]
struct Frame {
    seq: u64,
    draft: String,
    at: Instant,
}

/// Draws nothing, and remembers that it was to.
#[derive(Default)]
struct Recorder(Vec<Frame>);

impl Surface for Recorder {
    fn draw(&mut self, state: &State) -> io::Result<()> {
        let (seq, draft) = (state.session.view().seq(), state.composer.text());
        self.0.push(Frame { seq, draft, at: Instant::now() });
        Ok(())
    }

    fn redraw(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn lend(&mut self, to: &mut dyn FnMut()) -> io::Result<()> {
        to();
        Ok(())
    }

    fn title(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn tell(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn copy(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

/// The loop with all that it waits for in the test's hand.
struct Bench {
    state: State,
    running: Running,
    screen: Recorder,
    keys: Keys,
    pressing: mpsc::Sender<io::Result<Typed>>,
    telling: mpsc::Sender<Told>,
    ended: CancellationToken,
}

impl Bench {
    fn new(standing: Standing) -> Self {
        let (telling, told) = mpsc::channel(20_000);
        let (pressing, keys) = mpsc::channel(QUEUE);
        let opening = Opening {
            id: "s".to_owned(),
            title: "t".to_owned(),
            lead: AgentName::new("lead").unwrap(),
            began_at: now(),
            last_seq: 0,
            standing,
            can_ask: true,
            seed: "t".to_owned(),
            notes: Vec::new(),
        };
        let state = State::new(opening, Settings::default(), Saved::default(), Size::new(80, 24), now());
        let replayer: Replayer = Arc::new(|shift| Box::pin(async move { Err(format!("{shift}: not here")) }));
        let running = Running::new(Source::Read { told, plays: false, replayer }, None);
        let (screen, ended) = (Recorder::default(), CancellationToken::new());
        Self { state, running, screen, keys, pressing, telling, ended }
    }

    fn press(&self, character: char) {
        let key = KeyEvent::new(KeyCode::Char(character), KeyModifiers::NONE);
        self.pressing.try_send(Ok(Typed::Key(key))).unwrap();
    }

    /// Events of an agent that works: the first two bring it to life, the others are what it prints.
    fn tell(&self, seqs: std::ops::RangeInclusive<u64>) {
        for seq in seqs {
            self.telling.try_send(told(seq)).unwrap();
        }
    }

    /// Until `ended`, or for so long.
    async fn goes_on(&mut self, time: Duration) {
        let Self { state, running, screen, keys, ended, .. } = self;
        let loops = running.until_lent(state, screen, keys, ended);
        // An error here is that the time is over, which is what ends it.
        let _ = tokio::time::timeout(time, loops).await;
    }

    /// One round of the loop.
    async fn round(&mut self) {
        let Self { state, running, screen, keys, ended, .. } = self;
        for input in running.next(state, screen, keys, ended).await.unwrap() {
            running.take(state, input);
        }
    }
}

fn told(seq: u64) -> Told {
    let role = Role::Lead;
    let kind = match seq {
        1 => EventKind::AgentSpawned { parent: None, role, model: None, prompt: None },
        2 => EventKind::RunStarted { trigger: Trigger::Prompt },
        _ => EventKind::PlanUpdated { steps: Vec::new() },
    };
    let at = Place::of(&AgentName::new("lead").unwrap(), u64::from(seq > 1), 0);
    let event = Event { v: VERSION, seq, t: Micros(seq), at, kind };
    Told::Event(String::new(), Box::new(event))
}

fn says(n: u64) -> Told {
    let at = Place::of(&AgentName::new("lead").unwrap(), 1, 0);
    let kind = LiveKind::TextDelta { text: "word ".to_owned() };
    Told::Live(LiveEvent { v: VERSION, seq: 2, n, t: Micros(n), at, kind })
}

fn stored() -> Standing {
    Standing::Stored("it is only read".to_owned())
}

#[tokio::test(start_paused = true)]
async fn with_ten_thousand_events_waiting_the_next_frame_shows_the_key() {
    for rounds in [0, 1, 2, 7, 30] {
        let mut bench = Bench::new(Standing::Ours);
        bench.tell(1..=10_000);
        for _ in 0..rounds {
            bench.round().await;
        }
        let (frames, before) = (bench.screen.0.len(), bench.state.session.view().seq());
        bench.press('x');
        while bench.screen.0.len() == frames {
            bench.round().await;
        }
        let frame = bench.screen.0.last().unwrap().clone();
        assert_eq!(frame.draft, "x", "after {rounds} rounds");
        assert!(frame.seq - before <= BATCH as u64, "{} events were taken in before it", frame.seq - before);
        assert!(before < 10_000, "none waits");
    }
}

#[tokio::test(start_paused = true)]
async fn all_that_waits_is_shown_in_the_end_and_no_key_is_lost() {
    let mut bench = Bench::new(Standing::Ours);
    bench.tell(1..=10_000);
    "a whole sentence".chars().for_each(|character| bench.press(character));
    bench.goes_on(Duration::from_millis(500)).await;
    let last = bench.screen.0.last().unwrap();
    assert_eq!((last.seq, &*last.draft), (10_000, "a whole sentence"));
}

#[tokio::test(start_paused = true)]
async fn where_nobody_works_nothing_wakes_it_and_nothing_is_drawn() {
    for standing in [Standing::Ours, Standing::Theirs, stored()] {
        let mut bench = Bench::new(standing.clone());
        bench.goes_on(Duration::from_secs(5)).await;
        assert_eq!(wakes_at(&bench.state), None, "{standing:?}");
        assert_eq!(bench.running.wake(&bench.state, None), None, "{standing:?}");
        let drawn = bench.screen.0.len();
        assert_eq!(drawn, 1, "{standing:?}");
        bench.goes_on(Duration::from_secs(24 * 3600)).await;
        assert_eq!(bench.screen.0.len(), drawn, "{standing:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_works_moves_its_clock_once_a_second_and_no_more() {
    let mut bench = Bench::new(Standing::Ours);
    bench.tell(1..=2);
    bench.goes_on(Duration::from_secs(1)).await;
    let before = bench.screen.0.len();
    bench.goes_on(Duration::from_secs(20)).await;
    let drawn = bench.screen.0.len() - before;
    assert!((19..=22).contains(&drawn), "{drawn} frames in 20 s");
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_drawn_at_most_thirty_times_a_second() {
    let mut bench = Bench::new(Standing::Ours);
    bench.tell(1..=2);
    let telling = bench.telling.clone();
    let speaks = async move {
        let mut clock = tokio::time::interval(Duration::from_millis(1));
        for n in 1..=2_000 {
            clock.tick().await;
            telling.send(says(n)).await.unwrap();
        }
    };
    tokio::join!(speaks, bench.goes_on(Duration::from_secs(2)));
    let drawn = bench.screen.0.len();
    assert!((50..=62).contains(&drawn), "{drawn} frames in 2 s");
}

#[tokio::test(start_paused = true)]
async fn a_key_is_drawn_at_once_however_short_ago_the_last_frame_was() {
    let mut bench = Bench::new(Standing::Ours);
    let pressing = bench.pressing.clone();
    let types = async move {
        let mut pressed = Vec::new();
        let mut clock = tokio::time::interval(Duration::from_millis(5));
        clock.tick().await;
        for character in "abc".chars() {
            clock.tick().await;
            let key = KeyEvent::new(KeyCode::Char(character), KeyModifiers::NONE);
            pressing.send(Ok(Typed::Key(key))).await.unwrap();
            pressed.push(Instant::now());
        }
        pressed
    };
    let (pressed, ()) = tokio::join!(types, bench.goes_on(Duration::from_millis(100)));
    let drawn: Vec<Instant> = ["a", "ab", "abc"]
        .iter()
        .map(|draft| bench.screen.0.iter().find(|frame| frame.draft == *draft).unwrap().at)
        .collect();
    assert_eq!(drawn, pressed);
}
