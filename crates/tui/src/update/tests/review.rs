//! What is said to lines of a diff: typed, kept, sent as one, and back.

use midturn_core::rules::mail::Urgency;
use midturn_view::review::read;
use midturn_wire::work::Diff;

use super::*;
use crate::state::Pane;

const PATCH: &str =
    "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,3 @@\n one\n-two\n+zwei\n+three\n";

impl Tried {
    /// The diff of the lead is open, with the cursor on its first line.
    fn changed(&mut self, patch: &str) -> &mut Self {
        let diff = Diff { branch: "b".into(), start: "s".into(), patch: patch.into(), truncated: false };
        self.done(Done::Diff(name("lead"), Ok(diff)))
    }

    fn reviews() -> Self {
        let mut tried = Self::new();
        tried.press("alt+d").effects();
        tried.changed(PATCH).press("down down down down");
        tried
    }

    fn unsent(&self) -> Vec<(String, String)> {
        let all = self.state.composer.comments();
        all.map(|comment| (comment.whereabouts(), comment.text.clone())).collect()
    }
}

fn pair(place: &str, text: &str) -> (String, String) {
    (place.to_owned(), text.to_owned())
}

#[test]
fn comments_gather_at_their_lines_and_go_as_one_message_at_the_level_that_is_shown() {
    for (keys, urgency) in [
        ("alt+s", None),
        ("alt+u alt+u alt+s", Some(Urgency::NextBoundary)),
        ("alt+m ctrl+x", Some(Urgency::Urgent)),
        ("alt+m alt+enter", Some(Urgency::FollowUp)),
        ("alt+m ctrl+s", Some(Urgency::NextBoundary)),
    ] {
        let mut tried = Tried::reviews();
        tried.press("alt+m").types("Name it").press("ctrl+j").types("well?/").press("enter").nothing();
        tried.press("up alt+m").types("Why not").press("enter").nothing();
        assert_eq!(
            tried.unsent(),
            [pair("a.rs:2", "Name it\nwell?/"), pair("a.rs:2 (taken out)", "Why not")]
        );
        let sent = tried.press(keys).sent();
        let text = "2 comments on your diff:\n\n1. a.rs:2\n   > zwei\n   Name it\n   well?/\n\n2. a.rs:2 (taken out)\n   > two\n   Why not";
        assert_eq!((sent.text.as_str(), sent.urgency, sent.to), (text, urgency, name("lead")), "{keys}");
        assert_eq!((tried.unsent(), tried.draft()), (vec![], String::new()));
        assert!(matches!(tried.state.pane, Pane::Diff(Some(Ok(_)))), "the diff is still looked at");
    }
}

#[test]
fn while_a_comment_is_written_no_key_sends_stops_or_answers_anything_but_it() {
    let mut tried = Tried::reviews();
    // What was begun before stays as it is.
    tried.types("for later").press("alt+m");
    assert_eq!(tried.draft(), "");
    tried.types("/stop?").press("tab up down ctrl+r alt+x alt+up enter").nothing();
    assert_eq!(
        (tried.chosen(), tried.draft().as_str()),
        ("w", ""),
        "Tab is another agent's, and what was typed is kept"
    );
    tried.press("shift+tab");
    assert_eq!((tried.draft().as_str(), tried.unsent()), ("for later", vec![pair("a.rs:2", "/stop?")]));
}

#[test]
fn esc_and_enter_keep_a_comment_and_one_without_words_is_none() {
    let mut tried = Tried::reviews();
    tried.press("alt+m").types("a").press("esc").nothing();
    assert_eq!(tried.unsent(), [pair("a.rs:2", "a")]);
    // Again on the same line: it goes on.
    tried.press("alt+m").types("b").press("alt+d").nothing();
    assert_eq!((tried.unsent(), &tried.state.pane), (vec![pair("a.rs:2", "ab")], &Pane::Talk));
    tried.press("alt+d").effects();
    tried.changed(PATCH).press("down down down down alt+m ctrl+c ctrl+c").nothing();
    assert_eq!((tried.unsent(), tried.state.leaves), (vec![], false));
    tried.press("alt+s").nothing();
    assert_eq!(tried.says(), "there are no comments to send yet");
}

#[test]
fn where_no_comment_can_be_it_says_why() {
    let mut tried = Tried::reviews();
    tried.press("ctrl+home alt+m").nothing();
    assert_eq!(tried.says(), "a comment goes on a line of code: go to one with the arrows");
    tried.press("esc alt+m").nothing();
    assert_eq!(tried.says(), "a comment goes on a line of a diff: open it first (/diff), and go to the line");
    tried.press("alt+d").effects();
    tried.done(Done::Diff(name("lead"), Err(refusal("not_here")))).press("alt+m").nothing();
    assert_eq!(tried.says(), "there is no diff here to comment on");
    let mut stored = Tried::with(Standing::Stored("it is only stored".into()), Settings::default());
    stored.press("alt+d").effects();
    for key in ["alt+m", "alt+s"] {
        stored.changed(PATCH).press("down down").press(key).nothing();
        assert_eq!(stored.says(), "it is only stored");
    }
}

#[test]
fn more_than_a_message_holds_is_not_begun_and_a_text_that_is_too_long_is_not_kept() {
    let mut tried = Tried::reviews();
    let lines: String = (0..25).map(|n| format!("+line {n}\n")).collect();
    tried.changed(&format!("diff --git a/a.rs b/a.rs\n@@ -0,0 +1,25 @@\n{lines}")).press("down");
    for _ in 0..24 {
        tried.press("down alt+m").types("x").press("enter");
    }
    tried.press("down alt+m").nothing();
    assert_eq!(tried.says(), "at most 24 comments go as one: send these first");
    tried.press("up alt+m");
    tried.input(Input::Paste("y".repeat(2_000))).press("enter").nothing();
    assert_eq!(tried.says(), "a comment has at most 2000 characters, and this one has 2001: shorten it");
    assert_eq!(tried.draft().len(), 2_001, "it is still written");
    tried.press("backspace alt+s");
    assert_eq!(read(&tried.sent().text).unwrap().len(), 24);
}

#[test]
fn comments_that_are_refused_withdrawn_or_stopped_are_comments_again() {
    let sent = |tried: &mut Tried| {
        tried.press("alt+m").types("x").press("alt+s");
        let sent = tried.sent();
        tried.done(Done::Sent(sent.clone(), Ok(())));
        tried.queued("lead", sent.id.as_str(), "user", "after_tools", &sent.text);
        sent
    };
    let mut tried = Tried::reviews();
    tried.press("alt+m").types("x").press("alt+s");
    let refused = tried.sent();
    tried
        .press("alt+m")
        .types("newer")
        .press("enter")
        .done(Done::Sent(refused, Err(refusal("mailbox_full"))));
    assert_eq!(tried.unsent(), [pair("a.rs:2", "newer")], "what was written since stays as it is");
    let mut tried = Tried::reviews();
    let message = sent(&mut tried);
    tried.done(Done::Withdrawn {
        to: name("lead"),
        id: message.id,
        text: message.text,
        edit: true,
        result: Ok(()),
    });
    assert_eq!((tried.unsent(), tried.draft()), (vec![pair("a.rs:2", "x")], String::new()));
    let mut tried = Tried::reviews();
    let message = sent(&mut tried);
    tried.done(Done::Stopped {
        agent: name("lead"),
        result: Ok(true),
        back: vec![message.text, "words".into()],
    });
    assert_eq!((tried.unsent(), tried.draft().as_str()), (vec![pair("a.rs:2", "x")], "words"));
}

#[test]
fn what_is_said_to_lines_is_kept_on_disk_with_the_drafts_and_so_is_what_is_being_written() {
    let mut tried = Tried::reviews();
    tried.press("alt+m").types("kept").press("enter down alt+m").types("half");
    let saved = tried.state.composer.unsaved().unwrap();
    let texts: Vec<_> =
        saved.comments.iter().flat_map(|(_, all)| all).map(|comment| comment.text.as_str()).collect();
    assert_eq!(texts, ["kept", "half"]);
    let composer = crate::composer::Composer::new(name("lead"), saved);
    assert_eq!(composer.comments().count(), 2);
}

#[test]
fn a_line_that_has_changed_says_so_above_the_diff_with_what_became_of_the_comment() {
    let mut tried = Tried::reviews();
    tried.press("alt+m").types("sent").press("alt+s");
    let sent = tried.sent();
    tried.queued("lead", sent.id.as_str(), "user", "after_tools", &sent.text);
    tried.done(Done::Sent(sent.clone(), Ok(()))).changed(PATCH);
    let Pane::Diff(Some(Ok(changes))) = &tried.state.pane else { panic!() };
    let remarks = tried.state.remarks(changes);
    assert_eq!((remarks.gone.len(), remarks.at[&4].len()), (0, 1));
    assert_eq!(remarks.at[&4][0].says.as_deref(), Some("⏳ Will inject at next safe point"));
    tried.changed(&PATCH.replace("zwei", "deux"));
    let Pane::Diff(Some(Ok(changes))) = &tried.state.pane else { panic!() };
    assert_eq!(tried.state.remarks(changes).gone.len(), 1);
    assert_eq!((changes.cursor, changes.top), (-1, -1), "it is seen first");
    tried.press("alt+m").nothing();
    assert_eq!(tried.says(), "this line has changed: comment on the one that is there now");
}
