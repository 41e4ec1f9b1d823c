//! What is said to lines of a diff: the page reads diffs, makes messages and finds lines again as `crates/view` does.

use std::collections::BTreeMap;

use midturn_tests::root;
use midturn_view::patch::{Kind, Patch, Row};
use midturn_view::review::{self, Comment};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::page::Page;

/// `review.json`.
#[derive(Deserialize)]
struct Cases {
    patches: BTreeMap<String, String>,
    comments: BTreeMap<String, Comment>,
    none: Vec<String>,
}

fn cases() -> Cases {
    let text = std::fs::read_to_string(root().join("tests/fold/review.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A patch as the page has it.
fn rows(text: &str) -> Value {
    let patch = Patch::read(text);
    let all = patch.rows.iter().enumerate().map(|(at, row)| match row {
        Row::File { heading, .. } => json!({ "kind": "file", "text": heading }),
        Row::Text(text) => json!({ "kind": "text", "text": text }),
        Row::Code(code) => {
            let kind = match code.kind {
                Kind::Kept => "kept",
                Kind::Removed => "removed",
                Kind::Added => "added",
            };
            let mut row = json!({ "kind": kind, "text": code.text, "number": code.number });
            if let Some(place) = patch.place(at) {
                row["file"] = json!(place.file);
            }
            row
        }
    });
    json!({ "rows": all.collect::<Vec<_>>(), "left_out": patch.left_out })
}

/// Asks the page this of each, and holds its answers to these.
fn agree(asked: &[(Value, Value)]) {
    let Some(mut page) = Page::begin() else { return };
    let all: Vec<Value> = asked.iter().map(|(asked, _)| asked.clone()).collect();
    for ((asked, here), there) in asked.iter().zip(page.say(&all)) {
        assert_eq!(*here, there, "{asked}");
    }
}

#[test]
fn the_page_reads_a_diff_as_the_terminal_does() {
    let Cases { patches, .. } = cases();
    let mut long = "diff --git a/x b/x\n@@ -0,0 +1,99999 @@\n".to_owned();
    (0..30_000).for_each(|n| long.push_str(&format!("+{n}\n")));
    long.push_str(&"w".repeat(9_000));
    let wide = format!("diff --git a/{0} b/{0}\n@@ -0,0 +1,2 @@\n+{1}", "n".repeat(400), "😀".repeat(3_000));
    let all = patches.into_values().chain([long, wide]);
    agree(&all.map(|text| (json!(["readPatch", text]), rows(&text))).collect::<Vec<_>>());
}

#[test]
fn a_comment_makes_the_same_message_on_the_page_and_is_read_back_the_same() {
    let Cases { comments, none, .. } = cases();
    let all: Vec<Comment> = comments.into_values().collect();
    let mut asked = Vec::new();
    for some in [&all[..1], &all[..2], &all[..]] {
        let text = review::message(some);
        assert_eq!(review::read(&text).as_deref(), Some(some), "{text}");
        asked.push((json!(["messageOf", some]), json!(text)));
        asked.push((json!(["readComments", text]), json!(some)));
    }
    for text in none {
        assert_eq!(review::read(&text), None, "{text}");
        asked.push((json!(["readComments", text]), Value::Null));
    }
    for text in ["x".repeat(2_000), "😀".repeat(2_001)] {
        asked.push((json!(["tooLongComment", text]), json!(review::too_long(&text))));
    }
    asked.push((json!(["full"]), json!(review::full())));
    agree(&asked);
}

#[test]
fn a_comment_stands_at_its_line_where_that_has_moved_too_and_nowhere_once_it_has_changed() {
    let Cases { patches, comments, .. } = cases();
    let mut asked = Vec::new();
    for (comment, patch, expected) in [
        ("added", "edit", Some(4)),
        ("kept", "edit", Some(2)),
        ("removed", "edit", Some(3)),
        ("brace", "edit", Some(7)),
        ("last", "edit", Some(10)),
        ("added", "moved", Some(5)),
        ("brace", "moved", None),
        ("added", "changed", None),
        ("removed", "changed", Some(3)),
        ("added", "other file", None),
        ("added", "empty", None),
        ("hostile", "hostile", Some(2)),
    ] {
        let (comment, text) = (&comments[comment], &patches[patch]);
        let here = review::Lines::of(&Patch::read(text)).row_of(comment);
        assert_eq!(here, expected, "{comment:?} in {patch}");
        asked.push((json!(["standsIn", comment, text]), json!(here)));
    }
    agree(&asked);
}
