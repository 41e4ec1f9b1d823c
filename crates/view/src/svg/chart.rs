//! How long messages waited, by urgency: the middle and the slowest hundredth, on a scale on which each step is ten times the last.

use midturn_core::rules::time::Span;

use super::pen::{Pen, fits};
use super::{BAR, MARGIN, SIGN};
use crate::figures;

/// Where the scale begins.
const LEFT: u64 = 150;

/// How wide ten times as long is.
const DECADE: u64 = 90;

/// The scale, from a tenth of a millisecond on: seven times ten times as long.
const FIRST: f64 = 1e-4;
const DECADES: u64 = 7;

/// How high one line is.
const LINE: u64 = 40;

/// Where the first line begins.
const TOP: u64 = 64;

/// How a quantity is spread.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Of what.
    pub name: String,
    /// How many were counted.
    pub count: u64,
    /// Half took at most so many seconds; none where nothing was counted.
    pub p50: Option<f64>,
    /// All but one in a hundred took at most so many.
    pub p99: Option<f64>,
}

/// Draws spreads below each other.
pub fn chart(title: &str, spreads: &[Spread]) -> String {
    let width = LEFT + DECADES * DECADE + 110;
    let bottom = TOP + spreads.len() as u64 * LINE;
    let mut pen = Pen::new();
    let told: Vec<String> = spreads.iter().map(says).collect();
    pen.begins(width, bottom + 2 * LINE, title, &told.join(" "));
    pen.text("title", MARGIN, 24, title);
    for decade in 0..=DECADES {
        let x = LEFT + decade * DECADE;
        pen.path("tick", &format!("M{x} {}V{bottom}", TOP - 8));
        pen.text("time", x, TOP - 14, &figures::short(micros(FIRST * 10_f64.powi(decade as i32))));
    }
    for (spread, line) in spreads.iter().zip(0..) {
        draws(&mut pen, spread, TOP + line * LINE);
    }
    legend(&mut pen, bottom + LINE / 2);
    pen.ends()
}

fn draws(pen: &mut Pen, spread: &Spread, y: u64) {
    let middle = y + LINE / 2;
    pen.titled(&says(spread), |pen| {
        pen.text("name", MARGIN, middle + 4, &fits(&spread.name, 16));
        let (Some(p50), Some(p99)) = (spread.p50, spread.p99) else {
            return pen.text("time", LEFT + 8, middle + 4, "none yet");
        };
        let (from, to) = (x(p50), x(p99).max(x(p50)));
        pen.path("way sooner", &format!("M{from} {middle}H{to}"));
        pen.circle("point", from, middle, SIGN - 2);
        pen.path("way sooner", &format!("M{to} {}V{}", middle - BAR / 2, middle + BAR / 2));
        pen.text("time", to + 12, middle + 4, &format!("{}×", figures::count(spread.count)));
    });
}

fn legend(pen: &mut Pen, y: u64) {
    pen.circle("point", LEFT + 8, y, SIGN - 2);
    pen.text("time", LEFT + 24, y + 4, "half waited at most so long");
    pen.path("way sooner", &format!("M{} {}v{BAR}", LEFT + 250, y - BAR / 2));
    pen.text("time", LEFT + 262, y + 4, "all but one in a hundred");
}

fn says(spread: &Spread) -> String {
    match (spread.p50, spread.p99) {
        (Some(p50), Some(p99)) => format!(
            "{}: {} messages, half waited at most {}, all but one in a hundred at most {}.",
            spread.name,
            spread.count,
            figures::short(micros(p50)),
            figures::short(micros(p99))
        ),
        _ => format!("{}: no messages.", spread.name),
    }
}

fn micros(seconds: f64) -> Span {
    Span((seconds * 1e6).round() as u64)
}

/// Where so many seconds stand.
fn x(seconds: f64) -> u64 {
    let decades = (seconds.max(FIRST) / FIRST).log10().min(DECADES as f64);
    LEFT + (decades * DECADE as f64).round() as u64
}
