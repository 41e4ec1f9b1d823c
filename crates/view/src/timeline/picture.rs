//! A timeline laid out from left to right, for whoever draws it: on a page, in a file, on a terminal.

use midturn_core::rules::event::Outcome;
use midturn_core::rules::mail::{Point, Urgency};
use midturn_core::rules::time::Micros;
use midturn_core::rules::wording::COORDINATOR;
use serde::{Deserialize, Serialize};

use super::axis::{Axis, Need};
use super::parts::{Ahead, Bar, End, Kind, Letter, Mark, MarkKind, Moment, Tick};
use super::{Timeline, words};

/// The name of a person's lane.
const YOU: &str = "you";

/// How a person is named who sends.
const USER: &str = "user";

/// How many characters of a name a bar makes room for.
const LABEL: usize = 10;

/// How wide a character is, in fifths of a unit.
const CHARACTER: u64 = 36;

/// What is beside a name within its bar.
const PADDING: u64 = 10;

/// The least room of anything that is drawn.
const LEAST: u64 = 4;

/// The room that the sign of a mark needs.
const SIGN: u64 = 20;

/// What is drawn. Widths are in units from the left, as whole numbers; rows and lanes are counted from the top.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// How wide it is.
    pub width: u64,
    /// A person's, if one had a word; then the agents', in the order in which they were spawned.
    pub lanes: Vec<LaneDrawn>,
    /// What goes on for a while.
    pub bars: Vec<Drawn>,
    /// Messages on their way.
    pub letters: Vec<LetterDrawn>,
    /// What happened at one moment.
    pub marks: Vec<MarkDrawn>,
    /// The instants that are written.
    pub ticks: Vec<Tick>,
    /// Where time was left out: from where to where.
    pub cuts: Vec<(u64, u64)>,
    /// Where the session was taken up again.
    pub lives: Vec<u64>,
    /// How many calls were before those that are drawn.
    pub left_out: u64,
    /// How many agents have no lane.
    pub beyond: u64,
}

/// A lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneDrawn {
    /// Whose.
    pub name: String,
    /// How many agents are above it.
    pub depth: usize,
    /// How many rows it has.
    pub rows: usize,
}

/// A bar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drawn {
    /// In which lane.
    pub lane: usize,
    /// In which row.
    pub row: usize,
    /// From where.
    pub from: u64,
    /// To where.
    pub to: u64,
    /// What kind of thing.
    pub kind: Kind,
    /// How it ended.
    pub end: End,
    /// In a word.
    pub name: String,
    /// How many calls have no row of their own.
    pub hides: u64,
    /// In a sentence.
    pub says: String,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LetterDrawn {
    /// Its id.
    pub id: String,
    /// The sender's lane; none of one who has none.
    pub sender: Option<usize>,
    /// The receiver's lane.
    pub receiver: usize,
    /// From where.
    pub from: u64,
    /// To where.
    pub to: u64,
    /// How soon it acts.
    pub urgency: Option<Urgency>,
    /// The letter of where it went in; none of one that waits or never did.
    pub point: Option<String>,
    /// Whether it will never go in.
    pub is_back: bool,
    /// In a sentence.
    pub says: String,
}

/// What happened at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkDrawn {
    /// In which lane.
    pub lane: usize,
    /// Where.
    pub x: u64,
    /// One or two characters.
    pub sign: String,
    /// Whether messages went in here.
    pub is_point: bool,
    /// In a sentence.
    pub says: String,
}

impl Timeline {
    /// All of it that goes on or comes after `from`, as it is `now`.
    pub fn picture(&self, from: Micros, now: Micros) -> Picture {
        let begin = Moment { order: 0, at: from };
        let now = Moment { order: u64::MAX, at: now.max(self.now.at).max(from) };
        let is_in = |end: Moment| end.at >= from;
        let bars: Vec<&Bar> = self.bars.values().filter(|bar| is_in(bar.to.unwrap_or(now))).collect();
        let letters: Vec<&Letter> =
            self.letters.values().filter(|letter| is_in(arrival(letter, now))).collect();
        let marks: Vec<&Mark> = self.marks.values().filter(|mark| is_in(mark.at)).collect();
        let lives: Vec<Moment> = self.lives.iter().copied().filter(|life| is_in(*life)).collect();
        let mut moments = vec![begin, now];
        moments.extend(bars.iter().flat_map(|bar| [bar.from, bar.to.unwrap_or(now)]));
        moments.extend(letters.iter().flat_map(|letter| [letter.sent, arrival(letter, now)]));
        moments.extend(marks.iter().map(|mark| mark.at).chain(lives.iter().copied()));
        // What began before the picture does begins with it.
        for moment in moments.iter_mut().filter(|moment| moment.at < from) {
            *moment = begin;
        }
        let axis = Axis::new(moments, &needs(&bars, &marks, now));
        let (you, lanes) = self.lanes_drawn(&bars, &letters);
        let place = Place { axis: &axis, begin, now, you, lanes: &lanes };
        Picture {
            width: axis.width(),
            bars: bars.iter().map(|bar| place.bar(bar)).collect(),
            letters: letters.iter().map(|letter| place.letter(letter, self)).collect(),
            marks: marks.iter().map(|mark| place.mark(mark)).collect(),
            ticks: axis.ticks(),
            lives: lives.iter().map(|life| axis.x(*life)).collect(),
            left_out: self.left_out + (self.bars.len() - bars.len()) as u64,
            beyond: self.beyond,
            cuts: axis.cuts,
            lanes,
        }
    }

    /// The lanes, and how many of them are before those of agents.
    fn lanes_drawn(&self, bars: &[&Bar], letters: &[&Letter]) -> (usize, Vec<LaneDrawn>) {
        let has_you = letters.iter().any(|letter| letter.from == USER);
        let you = has_you.then(|| LaneDrawn { name: YOU.to_owned(), depth: 0, rows: 0 });
        let mut lanes: Vec<LaneDrawn> = you.into_iter().collect();
        let before = lanes.len();
        let agent =
            |lane: &super::Lane| LaneDrawn { name: lane.name.to_string(), depth: lane.depth, rows: 1 };
        lanes.extend(self.lanes.iter().map(agent));
        for bar in bars {
            let lane = &mut lanes[before + bar.lane];
            lane.rows = lane.rows.max(bar.row + 1);
        }
        (before, lanes)
    }
}

/// When a message is no longer on its way.
fn arrival(letter: &Letter, now: Moment) -> Moment {
    match &letter.ahead {
        Ahead::Waits => now,
        Ahead::Injected { at, .. } | Ahead::Returned { at, .. } => *at,
        Ahead::Refused { .. } => letter.sent,
    }
}

/// What needs room: names within their bars, and signs beside each other.
fn needs(bars: &[&Bar], marks: &[&Mark], now: Moment) -> Vec<Need> {
    let named = |bar: &&Bar| {
        let cells = cells(&bar.name).min(LABEL) as u64;
        let room = LEAST.max(cells * CHARACTER / 5 + PADDING);
        Need { from: bar.from, to: bar.to.unwrap_or(now), room }
    };
    let mut needs: Vec<Need> = bars.iter().map(named).collect();
    let mut next: std::collections::BTreeMap<usize, Moment> = std::collections::BTreeMap::new();
    for mark in marks.iter().rev() {
        let to = next.insert(mark.lane, mark.at).unwrap_or(now);
        needs.push(Need { from: mark.at, to, room: SIGN });
    }
    needs
}

/// How many columns of a terminal a text takes, as far as that can be said.
pub fn cells(text: &str) -> usize {
    // Alphabets and signs before the Hangul letters are narrow, and so is punctuation; ideographs and pictures are wide.
    let is_narrow = |c: char| c < '\u{1100}' || ('\u{2000}'..'\u{2E80}').contains(&c);
    text.chars().map(|c| if is_narrow(c) { 1 } else { 2 }).sum()
}

/// Where everything stands.
struct Place<'a> {
    axis: &'a Axis,
    begin: Moment,
    now: Moment,
    you: usize,
    lanes: &'a [LaneDrawn],
}

impl Place<'_> {
    fn x(&self, moment: Moment) -> u64 {
        self.axis.x(if moment.at < self.begin.at { self.begin } else { moment })
    }

    fn name(&self, lane: usize) -> &str {
        self.lanes.get(self.you + lane).map_or("", |lane| &lane.name)
    }

    fn bar(&self, bar: &Bar) -> Drawn {
        Drawn {
            lane: self.you + bar.lane,
            row: bar.row,
            from: self.x(bar.from),
            to: self.x(bar.to.unwrap_or(self.now)),
            kind: bar.kind,
            end: bar.end,
            name: bar.name.clone(),
            hides: bar.hides,
            says: words::bar(bar, self.name(bar.lane), self.now),
        }
    }

    fn letter(&self, letter: &Letter, timeline: &Timeline) -> LetterDrawn {
        // The coordinator's report on an agent has its name before the `#`.
        let from = match letter.id.as_str().split_once('#') {
            Some((about, _)) if letter.from == COORDINATOR => about,
            _ => &letter.from,
        };
        let agent = || timeline.place_of(from).map(|lane| self.you + lane);
        let sender = if letter.from == USER && self.you > 0 { Some(0) } else { agent() };
        let point = match &letter.ahead {
            Ahead::Injected { point, .. } => Some(point.as_str().to_owned()),
            _ => None,
        };
        LetterDrawn {
            id: letter.id.to_string(),
            sender,
            receiver: self.you + letter.to,
            from: self.x(letter.sent),
            to: self.x(arrival(letter, self.now)),
            urgency: letter.urgency,
            point,
            is_back: matches!(letter.ahead, Ahead::Returned { .. } | Ahead::Refused { .. }),
            says: words::letter(letter, self.name(letter.to)),
        }
    }

    fn mark(&self, mark: &Mark) -> MarkDrawn {
        MarkDrawn {
            lane: self.you + mark.lane,
            x: self.x(mark.at),
            sign: sign(&mark.kind).to_owned(),
            is_point: matches!(mark.kind, MarkKind::Injected { .. }),
            says: words::mark(&mark.kind, self.name(mark.lane)),
        }
    }
}

/// The sign of a point where messages go in.
pub fn sign_of(point: &str) -> &'static str {
    Point::ALL.into_iter().find(|known| known.as_str() == point).map_or("?", of_point)
}

fn of_point(point: Point) -> &'static str {
    match point {
        Point::Start => "›",
        Point::Stream => "~",
        Point::A => "A",
        Point::B => "B",
        Point::C => "C",
        Point::D => "D",
        Point::Wait => "W",
    }
}

/// The sign of what happened.
fn sign(kind: &MarkKind) -> &'static str {
    match kind {
        MarkKind::Injected { point, .. } => of_point(*point),
        MarkKind::Returned { .. } | MarkKind::Refused { .. } => "⊘",
        MarkKind::Stop { .. } => "■",
        MarkKind::RunEnd { outcome } => match outcome {
            Outcome::Finished => "✓",
            Outcome::Stopped => "□",
            Outcome::Failed => "✕",
            Outcome::Limit => "▲",
        },
        MarkKind::Closed => "‖",
    }
}
