//! What is sent, how soon, and what becomes of it.

use midturn_core::rules::mail::Urgency;

use super::*;
use crate::state::{SENDING_MAX, Scroll};

#[test]
fn each_key_sends_as_soon_as_it_says() {
    let rows = [
        ("enter", None),
        ("ctrl+s", Some(Urgency::NextBoundary)),
        ("ctrl+x", Some(Urgency::Urgent)),
        ("alt+enter", Some(Urgency::FollowUp)),
    ];
    for (key, urgency) in rows {
        let mut tried = Tried::new();
        let sent = tried.types("Hi there").press(key).sent();
        let expected = Outgoing {
            to: name("lead"),
            id: MessageId::new("x-1"),
            text: "Hi there".into(),
            urgency,
            replaces: None,
        };
        assert_eq!(sent, expected, "{key}");
        assert_eq!(tried.draft(), "", "{key}");
        assert_eq!(tried.press(key).nothing().says(), "nothing is typed yet", "{key}");
    }
}

#[test]
fn words_do_what_keys_do_and_a_name_says_for_whom() {
    let (soon, now) = (Some(Urgency::NextBoundary), Some(Urgency::Urgent));
    let rows = [
        ("/now stop that", "lead", now, "stop that"),
        ("/soon  look ", "lead", soon, "look"),
        ("/later x", "lead", Some(Urgency::FollowUp), "x"),
        ("//etc is a folder", "lead", None, "/etc is a folder"),
        ("@w look here", "w", None, "look here"),
        ("@w /etc/hosts", "w", None, "/etc/hosts"),
        ("/now @w stop that", "w", now, "stop that"),
        ("@nobody hello", "lead", None, "@nobody hello"),
    ];
    for (draft, to, urgency, text) in rows {
        let sent = Tried::new().types(draft).press("enter").sent();
        assert_eq!((sent.to, sent.urgency, sent.text), (name(to), urgency, text.to_owned()), "{draft}");
    }
}

#[test]
fn a_switch_that_one_sees_says_how_soon_enter_acts() {
    let mut tried = Tried::new();
    let levels = ["after_tools", "next_boundary", "urgent", "follow_up"].map(Some);
    for level in levels.into_iter().chain([None]) {
        let sent = tried.press("alt+u").types("x").press("enter").sent();
        assert_eq!(sent.urgency.map(|urgency| urgency.as_str()), level);
    }
    for (word, level) in [("/soon", Some(Urgency::NextBoundary)), ("/send", None)] {
        tried.types(word).press("enter").nothing();
        assert_eq!((tried.state.level, tried.draft()), (level, String::new()), "{word}");
    }
}

#[test]
fn in_queue_mode_enter_is_follow_up() {
    let mut tried = Tried::with(Standing::Theirs, Settings { queue_mode: true, ..Settings::default() });
    assert_eq!(tried.types("x").press("enter").sent().urgency, Some(Urgency::FollowUp));
}

#[test]
fn the_first_shift_enter_sends_nothing_and_says_what_it_does() {
    let mut tried = Tried::new();
    tried.types("half a sen").press("shift+enter").nothing();
    assert!(tried.says().starts_with("nothing was sent: Shift+Enter sends sooner"), "{}", tried.says());
    assert_eq!(tried.draft(), "half a sen");
    assert_eq!(tried.press("shift+enter").sent().urgency, Some(Urgency::NextBoundary));
}

#[test]
fn stop_and_send_is_one_key() {
    for keys in ["alt+x", "enter"] {
        let mut tried = Tried::new();
        tried.types(if keys == "enter" { "/instead the other file" } else { "the other file" });
        let [Effect::Instead(sent)] = tried.press(keys).effects() else { panic!("{keys}") };
        assert_eq!((sent.text.as_str(), tried.draft().as_str()), ("the other file", ""));
    }
}

#[test]
fn an_actions_words_are_never_a_message() {
    for (draft, says) in [
        ("/stop", "not sent: an action is done by Enter"),
        ("/stpo", "there is no action `/stpo`"),
        ("/now x", "not sent: an action"),
    ] {
        for key in ["ctrl+s", "ctrl+x", "alt+enter", "alt+x"] {
            let mut tried = Tried::new();
            tried.types(draft).press(key).nothing();
            assert!(tried.says().starts_with(says), "{draft} {key}: {}", tried.says());
            assert_eq!(tried.draft(), draft, "{key}");
        }
    }
}

#[test]
fn a_refused_message_is_a_draft_again_and_takes_nothing_from_what_was_typed_since() {
    for (since, shown, more) in [("", "one", 0), ("two", "two", 1)] {
        let mut tried = Tried::new();
        let sent = tried.types("one").press("enter").sent();
        tried.types(since).done(Done::Sent(sent, Err(refusal("mailbox_full"))));
        assert_eq!((tried.draft().as_str(), tried.state.composer.stacked()), (shown, more));
        assert!(tried.says().starts_with("not sent to lead, and kept as a draft: The mailbox is full"));
    }
    let mut tried = Tried::new();
    let sent = tried.types("@w one").press("enter").sent();
    tried.types("two").done(Done::Sent(sent, Err(refusal("limit"))));
    assert_eq!((tried.draft().as_str(), tried.state.composer.stacked()), ("two", 0));
    assert!(tried.says().ends_with("raise it with /limit"), "{}", tried.says());
    assert_eq!(tried.press("tab").draft(), "one", "it is a draft for whom it was meant for");
}

#[test]
fn no_id_is_used_twice() {
    let mut tried = Tried::new();
    let first = tried.waits("one");
    let Effect::Send(second) = &tried.press("alt+r").effects()[0] else { panic!() };
    let second = second.id.clone();
    let third = tried.types("@w three").press("enter").sent().id;
    assert!(first != second && second != third && first != third);
}

#[test]
fn the_last_message_that_waits_is_taken_back_or_edited() {
    for (key, edit) in [("alt+backspace", false), ("alt+up", true)] {
        let mut tried = Tried::new();
        let ids = [tried.waits("one"), tried.waits("two")];
        tried.queued("lead", "x9", "user", "after_tools", "another terminal's");
        // Pressed twice before anything came of it, it means two messages.
        tried.press(&format!("{key} {key}"));
        let expected = [(&ids[1], "two"), (&ids[0], "one")].map(|(id, text)| Effect::Withdraw {
            to: name("lead"),
            id: id.clone(),
            text: text.into(),
            edit,
        });
        assert_eq!(tried.effects, expected);
        tried.effects.clear();
        tried.press(key).nothing();
        assert!(tried.says().starts_with("nothing of yours waits for lead"), "{}", tried.says());
        for (id, text) in [(&ids[1], "two"), (&ids[0], "one")] {
            let (to, id, text) = (name("lead"), id.clone(), text.into());
            tried.done(Done::Withdrawn { to, id, text, edit, result: Ok(()) });
        }
        let (draft, more) = if edit { ("two", 1) } else { ("", 0) };
        assert_eq!((tried.draft().as_str(), tried.state.composer.stacked()), (draft, more));
    }
}

#[test]
fn what_can_not_be_taken_back_says_why_and_is_not_edited() {
    let mut tried = Tried::new();
    let id = tried.waits("one");
    tried.press("alt+up").effects();
    let (to, text) = (name("lead"), "one".into());
    tried.done(Done::Withdrawn { to, id, text, edit: true, result: Err(refusal("too_late")) });
    assert_eq!(tried.draft(), "");
    assert!(tried.says().starts_with("not taken back: Too late: it was read already"), "{}", tried.says());
    // It is still there as far as is known: it can be tried again.
    assert!(matches!(tried.press("alt+up").effects(), [Effect::Withdraw { .. }]));
}

#[test]
fn nothing_is_edited_over_a_draft() {
    let mut tried = Tried::new();
    tried.waits("one");
    tried.types("two").press("alt+up").nothing();
    assert!(tried.says().starts_with("not taken back: send or clear what is typed first"));
    assert_eq!(tried.draft(), "two");
}

#[test]
fn a_message_that_waits_acts_a_step_sooner_in_its_own_place() {
    let mut tried = Tried::new();
    let mut before = tried.waits("one");
    let steps = [Urgency::NextBoundary, Urgency::Urgent];
    for urgency in steps {
        let sent = tried.press("alt+r").sent();
        assert_eq!((sent.urgency, sent.replaces.as_ref()), (Some(urgency), Some(&before)));
        assert_eq!(sent.text, "one");
        // Until it is known what came of it nothing is sent for it again.
        assert!(tried.press("alt+r").nothing().says().starts_with("one moment"));
        let (id, word) = (sent.id.clone(), urgency.as_str());
        let returned =
            json!({"type": "message_returned", "message": before.as_str(), "reason": "superseded"});
        tried.told("lead", returned).queued("lead", id.as_str(), "user", word, "one");
        tried.done(Done::Sent(sent, Ok(())));
        before = id;
    }
    assert_eq!(tried.press("alt+r").nothing().says(), "it is as urgent as can be");
    // What took its place is ours as well.
    assert!(
        matches!(&tried.press("alt+backspace").effects()[0], Effect::Withdraw { id, .. } if *id == before)
    );
}

#[test]
fn too_late_to_be_sooner_brings_nothing_back() {
    let mut tried = Tried::new();
    let id = tried.waits("one");
    let sent = tried.press("alt+r").sent();
    tried.done(Done::Sent(sent, Err(refusal("too_late"))));
    assert!(tried.says().starts_with("not sooner: Too late: it was read already"), "{}", tried.says());
    assert_eq!(tried.draft(), "");
    assert_eq!(
        tried.state.last.get(&name("lead")),
        Some(&id),
        "the status line tells the fate of what waits"
    );
}

#[test]
fn after_a_stop_each_of_our_messages_is_a_draft_of_its_own() {
    let mut tried = Tried::new();
    let ids = [tried.waits("one"), tried.waits("two")];
    tried.queued("lead", "m9", "user", "after_tools", "another terminal's");
    tried.queued("lead", "m10", "w", "after_tools", "an agent's");
    let ours = ids.into_iter().zip(["one".to_owned(), "two".to_owned()]).collect();
    assert_eq!(tried.press("esc").effects(), [Effect::Stop { agent: name("lead"), ours }]);
    let back = vec!["one".to_owned(), "two".to_owned()];
    tried.types("typed meanwhile").done(Done::Stopped { agent: name("lead"), result: Ok(true), back });
    assert_eq!((tried.draft().as_str(), tried.state.composer.stacked()), ("typed meanwhile", 2));
    assert!(tried.says().starts_with("lead is stopped; your 2 messages that waited are drafts again"));
    tried.press("enter");
    assert_eq!(tried.draft(), "one");
    tried.press("enter");
    assert_eq!(tried.draft(), "two");
}

#[test]
fn what_was_sent_just_before_a_stop_comes_back_too() {
    let mut tried = Tried::new();
    tried.types("one").press("enter");
    let [Effect::Send(sent)] = tried.effects() else { panic!() };
    let ours = vec![(sent.id.clone(), "one".to_owned())];
    assert_eq!(tried.press("esc").effects(), [Effect::Stop { agent: name("lead"), ours: ours.clone() }]);
    // It was told of before it was known that it arrived: it is still one message.
    tried.queued("lead", sent.id.as_str(), "user", "after_tools", "one");
    assert_eq!(tried.press("esc").effects(), [Effect::Stop { agent: name("lead"), ours: ours.clone() }]);
    tried.done(Done::Sent(sent, Ok(())));
    assert_eq!(tried.press("esc").effects(), [Effect::Stop { agent: name("lead"), ours }]);
}

#[test]
fn what_may_have_arrived_is_sent_again_as_the_same_message() {
    let lost = || Trouble::Broken("reset".into());
    for (trouble, again, is_same) in [
        (lost(), "one", true),
        (Trouble::Nobody, "one", true),
        (lost(), "one and more", false),
        (refusal("mailbox_full"), "one", false),
    ] {
        let mut tried = Tried::new();
        tried.types("one").press("enter");
        let [Effect::Send(first)] = tried.effects() else { panic!() };
        tried.done(Done::Sent(first.clone(), Err(trouble.clone())));
        assert_eq!(tried.draft(), "one");
        tried.types(again.strip_prefix("one").unwrap()).press("enter");
        let [Effect::Send(second)] = tried.effects() else { panic!() };
        assert_eq!(second.text, again);
        assert_eq!(second.id == first.id, is_same, "{trouble} {again}");
        tried.done(Done::Sent(second.clone(), Ok(()))).types("one").press("enter");
        let [Effect::Send(third)] = tried.effects() else { panic!() };
        assert!(
            third.id != first.id && third.id != second.id,
            "the same words once more are another message"
        );
    }
}

#[test]
fn sending_goes_to_the_end_of_the_conversation() {
    let mut tried = Tried::new();
    tried.state.looking_mut().unwrap().scroll = Scroll::At { entry: 0, line: 0, seen: 0 };
    tried.types("x").press("enter");
    assert_eq!(tried.state.looking().scroll, Scroll::End);
}

#[test]
fn where_nobody_is_spoken_to_a_draft_stays_and_says_why() {
    for standing in
        [Standing::Stored("only kept: resume it".into()), Standing::Lost("the way is lost".into())]
    {
        let (Standing::Stored(why) | Standing::Lost(why)) = standing.clone() else { panic!() };
        for (draft, key) in [
            ("hi", "enter"),
            ("hi", "ctrl+s"),
            ("hi", "ctrl+x"),
            ("hi", "alt+enter"),
            ("hi", "alt+x"),
            ("/now hi", "enter"),
            ("/instead hi", "enter"),
            ("/no not that", "enter"),
            ("/limit max_turns=3", "enter"),
        ] {
            let mut tried = Tried::with(standing.clone(), Settings::default());
            tried.types(draft).press(key).nothing();
            assert_eq!((tried.says(), tried.draft().as_str()), (why.as_str(), draft), "{draft} {key}");
        }
        for key in ["esc", "alt+r", "alt+up", "alt+backspace", "ctrl+y", "alt+a", "ctrl+n"] {
            let mut tried = Tried::with(standing.clone(), Settings::default());
            assert_eq!(tried.press(key).nothing().says(), why, "{key}");
        }
        let mut tried = Tried::with(standing, Settings::default());
        assert_eq!(tried.types("/resume").press("enter").nothing().says(), why);
    }
}

#[test]
fn limits_are_set_of_one_and_of_all() {
    for (draft, agent) in [("/limit max_turns=60", Some(name("lead"))), ("/limit all max_turns=60", None)] {
        let mut tried = Tried::new();
        let [Effect::Limit(whose, limits)] = tried.types(draft).press("enter").effects() else { panic!() };
        assert_eq!((whose.clone(), limits.max_turns.is_some()), (agent, true), "{draft}");
        tried.done(Done::Limited(whose, limits, Err(refusal("bad_request"))));
        assert!(tried.says().starts_with("not set: "), "{}", tried.says());
    }
    let mut tried = Tried::new();
    tried.types("/limit max_trns=60").press("enter").nothing();
    assert_eq!(tried.draft(), "/limit max_trns=60", "it is mended, not written anew");
    assert_ne!(tried.says(), "");
}

#[test]
fn a_lost_session_keeps_the_draft_and_comes_back() {
    let mut tried = Tried::new();
    tried.types("half").input(Input::Told(Told::Ended(midturn_client::events::Ended::Lost(Trouble::Nobody))));
    assert!(tried.says().starts_with("the way to the session is lost") && tried.draft() == "half");
    tried.press("enter").nothing();
    assert_eq!(tried.draft(), "half");
    tried.state.found_again(Standing::Theirs);
    assert_eq!(tried.press("enter").sent().text, "half");
}

#[test]
fn a_text_that_comes_as_keys_does_not_become_a_thousand_messages() {
    let mut tried = Tried::new();
    for _ in 0..1000 {
        tried.types("x").press("enter");
    }
    let sent = std::mem::take(&mut tried.effects);
    assert_eq!(sent.len(), SENDING_MAX);
    assert_eq!(tried.draft(), "x".repeat(1000 - SENDING_MAX), "nothing is lost");
    assert!(tried.says().starts_with("not sent: too many messages are on their way"), "{}", tried.says());
    let Effect::Send(first) = sent[0].clone() else { panic!() };
    tried.done(Done::Sent(first, Ok(()))).press("enter");
    assert_eq!(tried.sent().text, "x".repeat(1000 - SENDING_MAX));
}
