//! A picture as SVG: one file, no script, no link, the same bytes for the same events (faces.md, section 4).
//!
//! It is readable without colour: what a call was tells its shape, how it ended its right edge, and how urgent a message
//! was its line. Every text has a width that is said, so that no font makes it leave its place.

mod chart;
mod legend;
mod pen;
mod style;
#[cfg(test)]
mod tests;

pub use self::chart::{Spread, chart};
use self::pen::{Pen, fits, width};
use crate::timeline::{Drawn, End, Kind, LaneDrawn, LetterDrawn, MarkDrawn, Picture, cells};
use midturn_core::rules::mail::Urgency;

/// Left of the lanes, besides their names.
const MARGIN: u64 = 16;

/// The title's and the instants' height.
const HEAD: u64 = 58;

/// The height of what stands above a lane's bars: messages and what happened.
const STRIP: u64 = 22;

/// The height of a row of bars.
const ROW: u64 = 24;

/// Between two lanes.
const GAP: u64 = 8;

/// A bar's height.
const BAR: u64 = 20;

/// The radius of a sign.
const SIGN: u64 = 8;

/// How far a tear goes to each side.
const TEAR: u64 = 4;

/// How far a child's name is moved for each agent above it, and how often at most.
const INDENT: (u64, usize) = (10, 4);

/// The longest name that is shown whole, in characters.
const NAME: usize = 20;

/// No picture is narrower: its legend stands in it.
const NARROWEST: u64 = 620;

/// How many messages are told one by one to who doesn't see the picture.
const TOLD: usize = 50;

/// Draws a picture. `title` says what it is of.
pub fn svg(picture: &Picture, title: &str) -> String {
    let plan = Plan::of(picture);
    let mut pen = Pen::new();
    pen.begins(plan.width, plan.height, title, &told(picture));
    pen.text("title", MARGIN, 24, &fits(title, ((plan.width - 2 * MARGIN) * 5 / 36) as usize));
    plan.ground(&mut pen, picture);
    for letter in &picture.letters {
        plan.letter(&mut pen, letter);
    }
    for bar in &picture.bars {
        plan.bar(&mut pen, bar);
    }
    plan.cuts(&mut pen, picture);
    for mark in &picture.marks {
        plan.mark(&mut pen, mark);
    }
    for bar in &picture.bars {
        plan.label(&mut pen, bar, &picture.cuts);
    }
    legend::legend(&mut pen, plan.width, plan.bottom, picture);
    pen.ends()
}

/// What a picture shows, for who doesn't see it.
fn told(picture: &Picture) -> String {
    let skipped = picture.bars.iter().filter(|bar| bar.end == End::Skipped).count();
    let calls = picture.bars.iter().filter(|bar| bar.kind == Kind::Tool).count();
    let (lanes, letters) = (picture.lanes.len(), picture.letters.len());
    let mut told =
        format!("{lanes} lanes, {calls} calls of tools, {skipped} of them skipped, {letters} messages.");
    for letter in picture.letters.iter().take(TOLD) {
        told.push_str(&format!(" {}.", letter.says));
    }
    told
}

/// Where everything stands from top to bottom, and what is left of the lanes.
struct Plan<'a> {
    lanes: &'a [LaneDrawn],
    /// Where each lane begins.
    tops: Vec<u64>,
    /// Where the lanes begin from the left.
    left: u64,
    width: u64,
    /// Where the lanes end.
    bottom: u64,
    height: u64,
}

impl<'a> Plan<'a> {
    fn of(picture: &'a Picture) -> Self {
        let named = |lane: &LaneDrawn| indent(lane) + width(cells(&lane.name).min(NAME)) as u64;
        let left = MARGIN + picture.lanes.iter().map(named).max().unwrap_or_default() + MARGIN;
        let width = (left + picture.width + 2 * MARGIN).max(NARROWEST);
        let mut top = HEAD;
        let mut tops = Vec::new();
        for lane in &picture.lanes {
            tops.push(top);
            top += STRIP + lane.rows as u64 * ROW + GAP;
        }
        let height = top + legend::height(width, picture);
        Self { lanes: &picture.lanes, tops, left, width, bottom: top, height }
    }

    fn x(&self, x: u64) -> u64 {
        self.left + x
    }

    /// The middle of the strip above a lane's bars.
    fn strip(&self, lane: usize) -> u64 {
        self.tops.get(lane).copied().unwrap_or(HEAD) + STRIP / 2
    }

    fn row(&self, lane: usize, row: usize) -> u64 {
        self.tops.get(lane).copied().unwrap_or(HEAD) + STRIP + row as u64 * ROW
    }

    /// What is beneath everything: names, instants, where a session was taken up again.
    fn ground(&self, pen: &mut Pen, picture: &Picture) {
        for (lane, top) in self.lanes.iter().zip(&self.tops) {
            let height = STRIP + lane.rows as u64 * ROW;
            pen.rect("lane", [self.left - MARGIN / 2, *top, self.width - self.left, height], 4);
            pen.titled(&lane.name, |pen| {
                pen.text("name", MARGIN + indent(lane), top + STRIP / 2 + 4, &fits(&lane.name, NAME));
            });
        }
        for tick in &picture.ticks {
            let x = self.x(tick.x);
            pen.path("tick", &format!("M{x} {}V{}", HEAD - 8, self.bottom - GAP));
            pen.text("time", x, HEAD - 12, &tick.text);
        }
        for life in &picture.lives {
            let x = self.x(*life);
            pen.titled("the session was taken up again", |pen| {
                pen.path("life", &format!("M{x} {}V{}", HEAD - 8, self.bottom - GAP));
            });
        }
    }

    fn bar(&self, pen: &mut Pen, bar: &Drawn) {
        let (x, y) = (self.x(bar.from), self.row(bar.lane, bar.row));
        let wide = (bar.to - bar.from).max(2);
        pen.titled(&bar.says, |pen| {
            pen.path(&class(bar), &outline(x, y, wide, bar.end));
            if wide >= 12 {
                ending(pen, bar.end, x + wide, y + BAR / 2);
            }
        });
    }

    /// The name within a bar, as far as it has room. Where a tear would go through it, it has its bar's ground below it.
    fn label(&self, pen: &mut Pen, bar: &Drawn, cuts: &[(u64, u64)]) {
        let ends = matches!(bar.end, End::Failed | End::Stopped | End::Unknown | End::Interrupted);
        let room = (bar.to - bar.from).saturating_sub(8 + if ends { 8 } else { 0 });
        let beside = if bar.hides == 0 { String::new() } else { format!(" +{}", bar.hides) };
        let label = fits(&format!("{}{beside}", bar.name), (room * 5 / 36) as usize);
        if label.is_empty() {
            return;
        }
        let (x, y, wide) = (self.x(bar.from) + 4, self.row(bar.lane, bar.row), width(cells(&label)) as u64);
        let first = cuts.partition_point(|cut| middle(*cut) + TEAR <= bar.from);
        if cuts.get(first).is_some_and(|cut| middle(*cut) < bar.from + 4 + wide + TEAR) {
            pen.rect(&format!("{} under", class(bar)), [x - 2, y + 2, wide + 4, BAR - 4], 0);
        }
        pen.text("in", x, y + BAR / 2 + 4, &label);
    }

    /// A message: down from its sender when it was sent, then along its receiver until it went in.
    fn letter(&self, pen: &mut Pen, letter: &LetterDrawn) {
        let (from, to) = (self.x(letter.from), self.x(letter.to));
        let end = self.strip(letter.receiver);
        let begin = letter.sender.map_or(end.saturating_sub(SIGN), |sender| self.strip(sender));
        let mut way = format!("M{from} {begin}V{end}H{to}");
        if letter.point.is_none() && !letter.is_back {
            way.push_str("m-5 -4l5 4l-5 4");
        }
        pen.titled(&letter.says, |pen| {
            for class in strokes(letter.urgency) {
                pen.path(class, &way);
            }
            if letter.sender.is_some() {
                pen.circle("from", from, begin, 3);
            }
        });
    }

    /// Where time was left out everything is torn.
    fn cuts(&self, pen: &mut Pen, picture: &Picture) {
        for cut in &picture.cuts {
            let x = self.x(middle(*cut));
            let (top, bottom) = (HEAD - 8, self.bottom - GAP);
            pen.titled("time is left out here", |pen| {
                pen.path("tear", &format!("M{} {top}L{} {bottom}", x + 2, x - 2));
                let (left, right) = (x - TEAR, x + TEAR);
                pen.path("cut", &format!("M{x} {top}L{left} {bottom}M{right} {top}L{x} {bottom}"));
            });
        }
    }

    fn mark(&self, pen: &mut Pen, mark: &MarkDrawn) {
        let (x, y) = (self.x(mark.x), self.strip(mark.lane));
        pen.titled(&mark.says, |pen| {
            pen.circle(if mark.is_point { "point" } else { "mark" }, x, y, SIGN);
            pen.text(if mark.is_point { "letter" } else { "sign" }, x - 3, y + 4, &mark.sign);
        });
    }
}

/// Where a cut is torn.
fn middle((from, to): (u64, u64)) -> u64 {
    u64::midpoint(from, to)
}

fn indent(lane: &LaneDrawn) -> u64 {
    INDENT.0 * lane.depth.min(INDENT.1) as u64
}

/// The lines that make a message's urgency: dotted, thin, thick, double.
fn strokes(urgency: Option<Urgency>) -> &'static [&'static str] {
    match urgency {
        Some(Urgency::FollowUp) => &["way later"],
        Some(Urgency::AfterTools) | None => &["way"],
        Some(Urgency::NextBoundary) => &["way sooner"],
        Some(Urgency::Urgent) => &["way now", "way within"],
    }
}

fn class(bar: &Drawn) -> String {
    let kind = match bar.kind {
        Kind::Model | Kind::Summary => "model",
        Kind::Tool => "tool",
        Kind::Wait => "wait",
    };
    let end = match bar.end {
        End::Open => "open",
        End::Done => "done",
        End::Failed => "failed",
        End::Interrupted => "interrupted",
        End::Stopped => "stopped",
        End::Unknown => "unknown",
        End::Skipped => "skipped",
    };
    format!("{kind} {end}")
}

/// The sign at a bar's right end that says how it ended.
fn ending(pen: &mut Pen, end: End, right: u64, middle: u64) {
    match end {
        End::Failed => pen.path("cross", &format!("M{} {}l6 6m0 -6l-6 6", right - 9, middle - 3)),
        End::Stopped => pen.rect("stop", [right - 9, middle - 3, 6, 6], 0),
        End::Unknown => pen.text("sign", right - 10, middle + 4, "?"),
        End::Open | End::Done | End::Interrupted | End::Skipped => {}
    }
}

/// A bar's outline: torn where a message cut it, open where it goes on.
fn outline(x: u64, y: u64, wide: u64, end: End) -> String {
    let (right, step) = (x + wide, BAR / 4);
    match end {
        End::Interrupted if wide > 8 => {
            format!("M{right} {y}H{x}v{BAR}H{right}l-4 -{step}l4 -{step}l-4 -{step}l4 -{step}z")
        }
        End::Open => format!("M{right} {y}H{x}v{BAR}H{right}"),
        _ => format!("M{x} {y}H{right}v{BAR}H{x}z"),
    }
}
