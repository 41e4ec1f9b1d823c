//! What a drawn picture has to be: the same for the same events, and nothing but text in its texts.

use super::*;

#[test]
fn a_text_that_is_too_long_ends_in_an_ellipsis_and_takes_no_more_than_its_room() {
    for (text, room, expected) in [
        ("bash", 4, "bash"),
        ("bash", 3, "ba…"),
        ("bash", 2, ""),
        ("読み込み", 8, "読み込み"),
        ("読み込み", 6, "読み…"),
        ("", 0, ""),
    ] {
        let fit = fits(text, room);
        assert_eq!(fit, expected);
        assert!(crate::timeline::cells(&fit) <= room);
    }
}

#[test]
fn foreign_text_is_nothing_but_text() {
    let picture = Picture {
        lanes: vec![LaneDrawn { name: "<a href=\"x\">&\u{1b}[31m".to_owned(), depth: 0, rows: 1 }],
        ..Picture::default()
    };
    let drawn = svg(&picture, "]]> <script>alert(1)</script> \u{0} \u{FFFE}");
    assert!(!drawn.contains("<script") && !drawn.contains("<a ") && !drawn.contains('\u{1b}'), "{drawn}");
    assert!(drawn.contains("&lt;script&gt;alert(1)&lt;/script&gt; \u{FFFD} \u{FFFD}"), "{drawn}");
}

#[test]
fn the_legend_says_what_stands_in_the_picture_and_nothing_else() {
    let bare = svg(&Picture::default(), "nothing yet");
    assert!(bare.contains("nothing yet"), "{bare}");
    for word in [">model<", ">urgent<", ">came back<", ">time left out<"] {
        assert!(!bare.contains(word), "{word} in {bare}");
    }
    let mark = |sign: &str, is_point| MarkDrawn {
        lane: 0,
        x: 0,
        sign: sign.to_owned(),
        is_point,
        says: String::new(),
    };
    let picture = Picture {
        cuts: vec![(8, 40)],
        bars: vec![bar("bash", 0, 80)],
        marks: vec![mark("C", true), mark("⊘", false)],
        ..Picture::default()
    };
    let drawn = svg(&picture, "some");
    for word in [">tool<", ">went in, at this point<", ">came back<", ">time left out<"] {
        assert!(drawn.contains(word), "{word} in {drawn}");
    }
    assert!(!drawn.contains(">model<") && !drawn.contains(">failed<"), "{drawn}");
}

fn bar(name: &str, from: u64, to: u64) -> Drawn {
    let (says, name) = (String::new(), name.to_owned());
    Drawn { lane: 0, row: 0, from, to, kind: Kind::Tool, end: End::Done, name, hides: 0, says }
}

#[test]
fn no_tear_goes_through_a_name() {
    let drawn = |cut| {
        let lanes = vec![LaneDrawn { name: "lead".to_owned(), depth: 0, rows: 1 }];
        svg(
            &Picture { lanes, cuts: vec![cut], bars: vec![bar("bash", 100, 300)], ..Picture::default() },
            "torn",
        )
    };
    for (cut, is_under) in [((100, 130), true), ((96, 98), true), ((80, 98), false), ((200, 290), false)] {
        assert_eq!(drawn(cut).contains("class=\"tool done under\""), is_under, "{cut:?}");
    }
}

#[test]
fn a_spread_says_its_figures_and_one_without_any_says_so() {
    let spread = |name: &str, p50, p99, count| Spread { name: name.to_owned(), count, p50, p99 };
    let drawn = chart(
        "How long messages waited",
        &[spread("urgent", Some(0.003), Some(0.025), 12), spread("follow_up", None, None, 0)],
    );
    assert!(drawn.contains("urgent: 12 messages, half waited at most 3 ms"), "{drawn}");
    assert!(drawn.contains("follow_up: no messages.") && drawn.contains("none yet"), "{drawn}");
}
