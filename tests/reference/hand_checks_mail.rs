//! Cases worked out by hand: `supersedes`, `if_queued`, room, committed mail, partial texts, `ends_after`.

use super::hand_checks::*;
use super::model::*;
use super::result::*;

fn changed(mut item: Item, change: impl FnOnce(&mut Message)) -> Item {
    if let Act::Message(m) = &mut item.act {
        change(m);
    }
    item
}

fn returned(reason: &'static str, at: u64) -> Fate {
    Fate::Returned { reason, at: at * MS }
}

fn refused(reason: &'static str, at: u64) -> Fate {
    Fate::Refused { reason, at: at * MS }
}

/// Three workers that hold their mail for a second.
fn three() -> Scenario {
    let mut sc = pair(vec![reply(1000, vec![]), reply(0, vec![]), reply(0, vec![])]);
    for name in ["two", "three"] {
        let mut other = sc.agents[1].clone();
        other.name = name.into();
        sc.agents.push(other);
    }
    sc
}

/// A6. "One's own earlier message, in the mailbox of the new one's receiver only: returned if not yet injected or
/// committed, else the new one is simply accepted …; at others the old one stays."
#[test]
fn supersedes_acts_in_the_mailbox_of_the_new_ones_receiver() {
    let mut sc = three();
    sc.items.push(changed(message("m", 200, None, 1, AFTER), |m| m.to = To::All));
    sc.items.push(changed(message("n", 400, None, 3, AFTER), |m| m.supersedes = Some("m".into())));
    let f = play(&sc);
    assert_eq!(fate(&f, "m", 3), returned("superseded", 400));
    assert_eq!(place(&f, "m", 1), (Point::B, 1, 1, 1000));
    assert_eq!(place(&f, "m", 2), (Point::B, 1, 1, 1000));
    // Too late at all of them: simply accepted.
    sc.items[1] = changed(message("n", 1500, None, 3, AFTER), |m| m.supersedes = Some("m".into()));
    let f = play(&sc);
    assert_eq!(place(&f, "n", 3), (Point::Start, 2, 0, 1500));
    // Another sender's message is not one's own.
    sc.items[1] = changed(message("n", 400, Some(0), 3, AFTER), |m| m.supersedes = Some("m".into()));
    assert_eq!(place(&play(&sc), "m", 3), (Point::B, 1, 1, 1000));
}

/// "`if_queued` (with `supersedes` only: refused as `too_late` instead of accepted, at each receiver by itself)."
#[test]
fn if_queued_is_refused_where_the_old_one_is_gone() {
    let mut sc = three();
    sc.agents[2].model = Some(vec![reply(100, vec![]), reply(5000, vec![])]);
    sc.items.push(changed(message("m", 50, None, 1, AFTER), |m| m.to = To::All));
    let to_all = |m: &mut Message| {
        m.to = To::All;
        m.supersedes = Some("m".into());
        m.if_queued = true;
    };
    sc.items.push(changed(message("n", 400, None, 1, AFTER), to_all));
    let f = play(&sc);
    assert_eq!(fate(&f, "m", 1), returned("superseded", 400));
    assert_eq!(fate(&f, "n", 2), refused("too_late", 400));
    assert_eq!(place(&f, "n", 1), (Point::B, 1, 1, 1000));
}

/// "A message that has cancelled a token or caused a skip is committed: withdraw and `supersedes` answer `too_late`,
/// expiry no longer applies; only what ends the run can still return it."
#[test]
fn committed_mail_stays() {
    let mut slow = call("e", "edit", 5000);
    slow.abort_takes = 1000 * MS;
    let mut sc = pair(vec![reply(0, vec![slow]), reply(0, vec![])]);
    let expires = |m: &mut Message| m.expires_after = Some(500 * MS);
    sc.items.push(changed(message("u", 1000, Some(0), 1, URGENT), expires));
    sc.items.push(changed(message("n", 1200, Some(0), 1, AFTER), |m| m.supersedes = Some("u".into())));
    let f = play(&sc);
    assert_eq!(place(&f, "u", 1), (Point::C, 1, 1, 2000));
    assert_eq!(place(&f, "n", 1), (Point::C, 1, 1, 2000));
    sc.items.push(action("s", 1600, Act::Stop { agent: 1, by: None, subtree: false }));
    assert_eq!(fate(&play(&sc), "u", 1), returned("stopped", 1600));
}

/// A15. "The coordinator's own mail has room of its own, and so has a person's (as much again): no agent can shut a
/// person out. What a message `supersedes` leaves it its own place."
#[test]
fn a_person_has_room_of_their_own() {
    let mut sc = three();
    sc.settings.mailbox_messages = Some(1);
    sc.items.push(message("a", 100, Some(0), 1, AFTER));
    sc.items.push(message("b", 200, Some(0), 1, AFTER));
    sc.items.push(message("p", 300, None, 1, AFTER));
    sc.items.push(message("q", 400, None, 1, AFTER));
    sc.items.push(changed(message("r", 500, None, 1, AFTER), |m| m.supersedes = Some("p".into())));
    let f = play(&sc);
    assert_eq!(fate(&f, "b", 1), refused("mailbox_full", 200));
    assert_eq!(fate(&f, "q", 1), refused("mailbox_full", 400));
    assert_eq!(fate(&f, "p", 1), returned("superseded", 500));
    assert_eq!(f.injection("r", 1).map(|i| i.messages.clone()), Some(vec!["a".to_string(), "r".to_string()]));
    // A9: a supersede is refused because of a person's own mail only.
    sc.items.truncate(1);
    sc.items.push(action("i", 600, Act::Supersede { agent: 1, text: "instead".into() }));
    let f = play(&sc);
    assert_eq!(run(&f, 1), (Outcome::Stopped, 600));
    assert_eq!(fate(&f, "a", 1), returned("superseded", 600));
    sc.items[0] = message("p", 100, None, 1, AFTER);
    let f = play(&sc);
    assert_eq!(fate(&f, "i", 1), refused("mailbox_full", 600));
    assert_eq!(run(&f, 1), (Outcome::Finished, 1000));
}

/// "The n-th of the k words of a reply, its thinking's before its text's, is out at takes · n / k, at that instant too. A
/// reply that is cut goes to the end of its last word that is out, white space kept."
#[test]
fn a_cut_reply_keeps_its_white_space() {
    let mut entry = reply(6000, vec![]);
    entry.thinking = Some("let me  see".into());
    entry.text = Some("  one\n\n two  three\n".into());
    let mut sc = pair(vec![entry, reply(0, vec![])]);
    sc.items.push(message("u", 5000, None, 1, URGENT));
    let said = |f: &Findings| f.calls[0].cut.clone().and_then(|c| c.said);
    assert_eq!(said(&play(&sc)), Some((5, "  one\n\n two".to_string())));
    sc.items[0] = message("u", 3999, None, 1, URGENT);
    assert_eq!(said(&play(&sc)), Some((3, String::new())));
}

/// "What has `ends_after` runs until that event and ends in the next (2): of the same round, when the event came in (1).
/// Until then none of its words is out."
#[test]
fn what_ends_after_an_event_ends_with_it() {
    let anchor = |event: &str, of: &str, plus: u64| {
        Some(Anchor { agent: 1, event: event.into(), of: of.into(), plus: plus * MS })
    };
    let mut call = call("e", "edit", 0);
    call.ends_after = anchor("message_queued", "m", 500);
    let mut last = reply(0, vec![]);
    last.ends_after = anchor("message_queued", "n", 0);
    let mut sc = pair(vec![reply(1000, vec![call]), last, reply(0, vec![])]);
    sc.items.push(message("m", 2000, None, 1, AFTER));
    sc.items.push(message("n", 4000, None, 1, AFTER));
    let f = play(&sc);
    assert_eq!(tool(&f, "e"), (Status::Completed, 2500));
    // The reply ends in (2) of the round in which the message comes: it is there at B.
    assert_eq!(place(&f, "n", 1), (Point::B, 1, 2, 4000));
    sc.items[1] = message("n", 4000, None, 1, URGENT);
    assert_eq!(place(&play(&sc), "n", 1), (Point::B, 1, 2, 4000));
    sc.items[1] = message("x", 3000, None, 1, URGENT);
    let f = play(&sc);
    assert_eq!(f.calls[1].cut.clone().and_then(|c| c.said), Some((0, String::new())));
    // "An `ends_after` that never comes" is an error of the file.
    sc.items.pop();
    assert!(play(&sc).invalid.is_some());
}

/// "The point is A when mail skipped every call, C when it skipped or cut one (given up as `unknown`, too), else D."
#[test]
fn a_call_given_up_as_unknown_was_cut() {
    let mut slow = call("e", "edit", 9000);
    slow.abort_takes = 5000 * MS;
    let mut sc = pair(vec![reply(0, vec![slow]), reply(0, vec![])]);
    sc.items.push(message("u", 1000, None, 1, URGENT));
    let f = play(&sc);
    assert_eq!(place(&f, "u", 1), (Point::C, 1, 1, 3000));
    assert_eq!(f.injection("u", 1).map(|i| i.interrupted.clone()), Some(vec!["e".to_string()]));
}
