//! What the shapes of a picture mean, below it.

use super::pen::{Pen, width};
use super::{BAR, MARGIN, SIGN, ending, outline};
use crate::timeline::{End, Picture};

/// How high a line of it is.
const LINE: u64 = 28;

/// How wide a sample is, with what is beside it.
const SAMPLE: u64 = 44;

/// What is explained: a sample, and what it means.
const WORDS: [(Sample, &str); 15] = [
    (Sample::Bar("model done", End::Done), "model"),
    (Sample::Bar("tool done", End::Done), "tool"),
    (Sample::Bar("wait done", End::Done), "waits"),
    (Sample::Bar("tool open", End::Open), "goes on"),
    (Sample::Bar("tool failed", End::Failed), "failed"),
    (Sample::Bar("tool interrupted", End::Interrupted), "interrupted"),
    (Sample::Bar("tool stopped", End::Stopped), "stopped"),
    (Sample::Bar("tool unknown", End::Unknown), "unknown"),
    (Sample::Bar("tool skipped", End::Skipped), "skipped, never ran"),
    (Sample::Way(&["way later"]), "follow_up"),
    (Sample::Way(&["way"]), "after_tools"),
    (Sample::Way(&["way sooner"]), "next_boundary"),
    (Sample::Way(&["way now", "way within"]), "urgent"),
    (Sample::Point, "went in, at this point"),
    (Sample::Back, "came back"),
];

#[derive(Clone, Copy)]
enum Sample {
    Bar(&'static str, End),
    Way(&'static [&'static str]),
    Point,
    Back,
}

/// How high it is, in a picture of this width.
pub(super) fn height(width: u64, picture: &Picture) -> u64 {
    let lines = places(width).last().map_or(0, |(_, line)| line + 1);
    MARGIN + (lines + u64::from(!left_out(picture).is_empty())) * LINE
}

/// Where each sample stands: from the left, and in which line.
fn places(wide: u64) -> Vec<(u64, u64)> {
    let (mut x, mut line) = (MARGIN, 0);
    let mut places = Vec::new();
    for (_, word) in WORDS {
        let needs = SAMPLE + width(word.len()) as u64 + MARGIN;
        if x + needs > wide && x > MARGIN {
            (x, line) = (MARGIN, line + 1);
        }
        places.push((x, line));
        x += needs;
    }
    places
}

/// What of the session isn't drawn.
fn left_out(picture: &Picture) -> String {
    match (picture.left_out, picture.beyond) {
        (0, 0) => String::new(),
        (calls, 0) => format!("{calls} calls before these are not drawn."),
        (0, agents) => format!("{agents} more agents are not drawn."),
        (calls, agents) => format!("{calls} calls before these and {agents} more agents are not drawn."),
    }
}

pub(super) fn legend(pen: &mut Pen, width: u64, top: u64, picture: &Picture) {
    let places = places(width);
    for ((x, line), (sample, word)) in places.iter().zip(WORDS) {
        let y = top + MARGIN / 2 + line * LINE;
        draws(pen, sample, *x, y);
        pen.text("time", x + SAMPLE, y + BAR / 2 + 4, word);
    }
    let left_out = left_out(picture);
    if !left_out.is_empty() {
        let line = places.last().map_or(0, |(_, line)| line + 1);
        pen.text("time", MARGIN, top + MARGIN / 2 + line * LINE + BAR / 2 + 4, &left_out);
    }
}

fn draws(pen: &mut Pen, sample: Sample, x: u64, y: u64) {
    let middle = y + BAR / 2;
    match sample {
        Sample::Bar(class, end) => {
            pen.path(class, &outline(x, y, SAMPLE - 10, end));
            ending(pen, end, x + SAMPLE - 10, middle);
        }
        Sample::Way(classes) => {
            classes.iter().for_each(|class| pen.path(class, &format!("M{x} {middle}h34")))
        }
        Sample::Point => {
            pen.circle("point", x + 22, middle, SIGN);
            pen.text("letter", x + 19, middle + 4, "C");
        }
        Sample::Back => {
            pen.circle("mark", x + 22, middle, SIGN);
            pen.text("sign", x + 19, middle + 4, "⊘");
        }
    }
}
