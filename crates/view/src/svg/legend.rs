//! What the shapes of a picture mean, below it: those that stand in it, and no others.

use super::pen::{Pen, width};
use super::{BAR, MARGIN, SIGN, ending, outline, strokes};
use crate::timeline::{End, Kind, Picture};
use midturn_core::rules::mail::Urgency;

/// How high a line of it is.
const LINE: u64 = 28;

/// How wide a sample is, with what is beside it.
const SAMPLE: u64 = 44;

/// What is explained: a sample, and what it means.
const WORDS: [(Sample, &str); 22] = [
    (Sample::Bar("model done", End::Done), "model"),
    (Sample::Bar("tool done", End::Done), "tool"),
    (Sample::Bar("wait done", End::Done), "waits"),
    (Sample::Bar("tool open", End::Open), "goes on"),
    (Sample::Bar("tool failed", End::Failed), "failed"),
    (Sample::Bar("tool interrupted", End::Interrupted), "interrupted"),
    (Sample::Bar("tool stopped", End::Stopped), "stopped"),
    (Sample::Bar("tool unknown", End::Unknown), "unknown"),
    (Sample::Bar("tool skipped", End::Skipped), "skipped, never ran"),
    (Sample::Way(Urgency::FollowUp), "follow_up"),
    (Sample::Way(Urgency::AfterTools), "after_tools"),
    (Sample::Way(Urgency::NextBoundary), "next_boundary"),
    (Sample::Way(Urgency::Urgent), "urgent"),
    (Sample::Point, "went in, at this point"),
    (Sample::Sign("⊘"), "came back"),
    (Sample::Sign("✓"), "run finished"),
    (Sample::Sign("■"), "a stop"),
    (Sample::Sign("□"), "run stopped"),
    (Sample::Sign("✕"), "run failed"),
    (Sample::Sign("▲"), "run at a limit"),
    (Sample::Sign("‖"), "closed"),
    (Sample::Cut, "time left out"),
];

#[derive(Clone, Copy)]
enum Sample {
    Bar(&'static str, End),
    Way(Urgency),
    Point,
    Sign(&'static str),
    Cut,
}

/// A sample in its place: from the left, and in which line.
struct Placed {
    x: u64,
    line: u64,
    sample: Sample,
    word: &'static str,
}

/// How high it is, in a picture of this width.
pub(super) fn height(width: u64, picture: &Picture) -> u64 {
    let lines = lines(&places(width, picture));
    MARGIN + (lines + u64::from(!left_out(picture).is_empty())) * LINE
}

fn lines(placed: &[Placed]) -> u64 {
    placed.last().map_or(0, |last| last.line + 1)
}

/// Where each sample stands that is needed.
fn places(wide: u64, picture: &Picture) -> Vec<Placed> {
    let (mut x, mut line) = (MARGIN, 0);
    let mut places = Vec::new();
    for (sample, word) in WORDS.into_iter().filter(|(sample, _)| stands(*sample, picture)) {
        let needs = SAMPLE + width(word.len()) as u64 + MARGIN;
        if x + needs > wide && x > MARGIN {
            (x, line) = (MARGIN, line + 1);
        }
        places.push(Placed { x, line, sample, word });
        x += needs;
    }
    places
}

/// Whether it stands in the picture.
fn stands(sample: Sample, picture: &Picture) -> bool {
    let kind = |kinds: &[Kind]| picture.bars.iter().any(|bar| kinds.contains(&bar.kind));
    match sample {
        Sample::Bar("model done", _) => kind(&[Kind::Model, Kind::Summary]),
        Sample::Bar("tool done", _) => kind(&[Kind::Tool]),
        Sample::Bar("wait done", _) => kind(&[Kind::Wait]),
        Sample::Bar(_, end) => picture.bars.iter().any(|bar| bar.end == end),
        Sample::Way(urgency) => {
            picture.letters.iter().any(|letter| strokes(letter.urgency) == strokes(Some(urgency)))
        }
        Sample::Point => picture.marks.iter().any(|mark| mark.is_point),
        Sample::Sign(sign) => picture.marks.iter().any(|mark| !mark.is_point && mark.sign == sign),
        Sample::Cut => !picture.cuts.is_empty(),
    }
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
    let places = places(width, picture);
    for Placed { x, line, sample, word } in &places {
        let y = top + MARGIN / 2 + line * LINE;
        draws(pen, *sample, *x, y);
        pen.text("time", x + SAMPLE, y + BAR / 2 + 4, word);
    }
    let left_out = left_out(picture);
    if !left_out.is_empty() {
        let y = top + MARGIN / 2 + lines(&places) * LINE;
        pen.text("time", MARGIN, y + BAR / 2 + 4, &left_out);
    }
}

fn draws(pen: &mut Pen, sample: Sample, x: u64, y: u64) {
    let (middle, centre) = (y + BAR / 2, x + SAMPLE / 2 - 5);
    match sample {
        Sample::Bar(class, end) => {
            pen.path(class, &outline(x, y, SAMPLE - 10, end));
            ending(pen, end, x + SAMPLE - 10, middle);
        }
        Sample::Way(urgency) => {
            strokes(Some(urgency)).iter().for_each(|class| pen.path(class, &format!("M{x} {middle}h34")))
        }
        Sample::Point => {
            pen.circle("point", centre, middle, SIGN);
            pen.text("letter", centre - 3, middle + 4, "C");
        }
        Sample::Sign(sign) => {
            pen.circle("mark", centre, middle, SIGN);
            pen.text("sign", centre - 3, middle + 4, sign);
        }
        Sample::Cut => pen.path("cut", &format!("M{centre} {y}l-2 {BAR}m6 -{BAR}l-2 {BAR}")),
    }
}
