//! What holds after whatever is told, in whatever order and however often.

use proptest::prelude::*;

use super::*;

/// What may be told, by two numbers.
fn kind(what: u8, which: u8) -> EventKind {
    const IDS: [&str; 3] = ["a", "b", "c"];
    const POINTS: [Point; 4] = [Point::Start, Point::C, Point::D, Point::Wait];
    let id = IDS[usize::from(which) % IDS.len()];
    let other = IDS[usize::from(which / 3) % IDS.len()];
    match what % 18 {
        0 => started(),
        1 => says("Yes.", &[id, other]),
        2 => says("Yes.", &[]),
        3 => cut("Ye"),
        4 => retry(which.into()),
        5 => begins(id),
        6 => ends(id, ToolStatus::ALL[usize::from(which) % ToolStatus::ALL.len()], "ok"),
        7 | 8 => queued(id, other),
        9 => injected(&[id, other], POINTS[usize::from(which) % POINTS.len()], &[id]),
        10 => injected(&[id], Point::B, &[]),
        11 => returned(id),
        12 => word(id, Decision::Once),
        13 => ended(Outcome::ALL[usize::from(which) % Outcome::ALL.len()]),
        14 => spawned(Some("Do it.")),
        15 => EventKind::Compacted {
            messages: Sizes { before: 2, after: 1 },
            tokens: Sizes { before: 2, after: 1 },
        },
        16 => replies("So far.", &[], Purpose::Summary),
        _ if which < 16 => EventKind::AgentClosed {},
        _ => EventKind::SessionResumed { version: "1".into() },
    }
}

/// Events with numbers that repeat and fall back, of runs that are over, of two agents and of none.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = (any::<u8>(), any::<u8>(), 0..4_u64, 0..4_u64, 0..3_u32, 0..9_u8);
    prop::collection::vec(one, 1..120).prop_map(|all| {
        let mut seq = 4;
        let told = |(what, which, step, run, turn, agent): (u8, u8, u64, u64, u32, u8)| {
            seq = (seq + step).saturating_sub(1);
            let at = match agent {
                0 => Place::default(),
                1 => Place { agent: Some(name("w")), ..Place::default() },
                2 => Place::of(&name("other"), run, turn),
                _ => Place::of(&name("w"), run, turn),
            };
            Event { at, ..event(seq, (run, turn), kind(what, which)) }
        };
        all.into_iter().map(told).collect()
    })
}

/// Of each entry its number and the event it began with.
fn numbers(session: &Session) -> BTreeMap<u64, u64> {
    let all = session.conversation(&name("w")).into_iter().flat_map(Conversation::entries);
    all.map(|(number, entry)| (number, entry.seq)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn an_event_told_again_changes_nothing_and_numbers_never_change(events in events()) {
        let mut session = Session::default();
        for event in &events {
            let before = (numbers(&session), session.conversations.clone());
            let changes = session.event(event);
            let after = numbers(&session);
            prop_assert!(before.0.iter().all(|(number, seq)| after.get(number) == Some(seq)));
            prop_assert!(changes || before.1 == session.conversations);
            let mut again = session.clone();
            prop_assert!(!again.event(event));
            prop_assert_eq!(&again, &session);
        }
    }

    #[test]
    fn what_changed_nothing_may_as_well_be_left_out(events in events()) {
        let (mut all, mut some) = (Session::default(), Session::default());
        let told: Vec<&Event> = events.iter().filter(|event| all.event(event)).collect();
        for event in told {
            prop_assert!(some.event(event));
        }
        prop_assert_eq!(&some.conversations, &all.conversations);
    }

    #[test]
    fn a_session_survives_its_json(events in events()) {
        let mut session = Session::default();
        events.iter().for_each(|event| { session.event(event); });
        let text = serde_json::to_string(&session).unwrap();
        let mut read: Session = serde_json::from_str(&text).unwrap();
        // Its timeline is made of events, and of nothing else.
        let kept = |session: &Session| (session.view.clone(), session.conversations.clone());
        prop_assert_eq!(kept(&read), kept(&session));
        // It goes on as the other does.
        let next = event(1_000, (9, 1), says("Yes.", &["a"]));
        prop_assert!(read.event(&next) == session.event(&next) && kept(&read) == kept(&session));
    }
}
