//! A picture as lines of text, for a terminal (faces.md, section 4): one stave below the other, as music is written,
//! each with the lanes in which something happens there.
//!
//! `~` is a model, `[bash══]` a call, `/bash/` one that was skipped, `╌` something that waits, `┄┄C` a message and where it went in.

use std::ops::Range;

use midturn_core::rules::mail::Urgency;

use crate::timeline::{Drawn, End, Kind, LaneDrawn, LetterDrawn, MarkDrawn, Picture};

/// How many units a column is.
const COLUMN: u64 = 8;

/// The longest name that is shown whole.
const NAME: usize = 12;

/// No stave is narrower, in columns.
const NARROWEST: usize = 8;

/// A line: whose, and what stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it shows.
    pub kind: LineKind,
    /// Whose lane; empty where it goes on.
    pub name: String,
    /// As wide as was asked for, or less.
    pub text: String,
    /// The columns of the text in which the chosen message stands.
    pub chosen: Option<Range<usize>>,
}

impl Line {
    /// A line in which no message stands.
    pub fn of(kind: LineKind, text: String) -> Self {
        Self { kind, name: String::new(), text, chosen: None }
    }
}

/// What a line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Instants.
    Time,
    /// Messages on their way.
    Mail,
    /// What an agent does.
    Work,
    /// Nothing: between two staves.
    Between,
}

/// The whole picture in lines of at most so many columns. The message of the id `chosen` is drawn over all others.
pub fn lines(picture: &Picture, width: usize, chosen: Option<&str>) -> Vec<Line> {
    let (left, columns) = room(picture, width);
    let wide = columns * COLUMN as usize;
    let mut lines = Vec::new();
    for from in (0..=picture.width.saturating_sub(1)).step_by(wide) {
        if !lines.is_empty() {
            lines.push(Line::of(LineKind::Between, String::new()));
        }
        Stave { picture, from, to: from + wide as u64, left, columns, chosen }.write(&mut lines);
    }
    lines
}

/// The end of it, as much as has room beside each other.
pub fn last(picture: &Picture, width: usize) -> Vec<Line> {
    let (left, columns) = room(picture, width);
    let wide = columns as u64 * COLUMN;
    let from = picture.width.saturating_sub(wide);
    let mut lines = Vec::new();
    Stave { picture, from, to: from + wide, left, columns, chosen: None }.write(&mut lines);
    lines
}

/// How wide the names are, and how many columns are left.
fn room(picture: &Picture, width: usize) -> (usize, usize) {
    let named = |lane: &LaneDrawn| indent(lane) + lane.name.chars().count();
    let left = picture.lanes.iter().map(named).max().unwrap_or_default().min(NAME) + 1;
    (left, width.saturating_sub(left).max(NARROWEST))
}

/// A part of the picture, from one place to another.
struct Stave<'a> {
    picture: &'a Picture,
    from: u64,
    to: u64,
    /// How wide the names are.
    left: usize,
    columns: usize,
    /// The id of the message that is drawn over all others.
    chosen: Option<&'a str>,
}

impl Stave<'_> {
    fn write(&self, lines: &mut Vec<Line>) {
        lines.push(self.line("", Line::of(LineKind::Time, self.time())));
        for (at, lane) in self.picture.lanes.iter().enumerate() {
            let mut name = format!("{:indent$}{}", "", lane.name, indent = indent(lane));
            for line in self.lane(at, lane) {
                lines.push(self.line(&name, line));
                name.clear();
            }
        }
    }

    fn line(&self, name: &str, line: Line) -> Line {
        let name: String = name.chars().take(self.left - 1).collect();
        Line {
            name: format!("{name:left$}", left = self.left),
            text: line.text.trim_end().to_owned(),
            ..line
        }
    }

    /// The lines of a lane in which anything stands.
    fn lane(&self, at: usize, lane: &LaneDrawn) -> Vec<Line> {
        // What a person writes stands in the person's lane, what agents write in that of who reads it.
        let is_here = |letter: &&LetterDrawn| match lane.rows {
            0 => letter.sender == Some(at),
            _ => letter.receiver == at && !self.is_yours(letter),
        };
        let mut mail = Cells::new(self.columns);
        let is_chosen = |letter: &LetterDrawn| Some(letter.id.as_str()) == self.chosen;
        let letters = || self.picture.letters.iter().filter(is_here);
        letters().filter(|letter| !is_chosen(letter)).for_each(|letter| self.letter(&mut mail, letter));
        letters().filter(|letter| is_chosen(letter)).for_each(|letter| self.letter(&mut mail, letter));
        let stands = letters().filter(|letter| is_chosen(letter) && self.shows(letter.from, letter.to));
        let columns = stands.map(|letter| self.column(letter.from)..self.column(letter.to) + 1);
        let chosen = columns.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end));
        let mut rows: Vec<Cells> = (0..lane.rows).map(|_| Cells::new(self.columns)).collect();
        for bar in self.picture.bars.iter().filter(|bar| bar.lane == at && self.shows(bar.from, bar.to)) {
            if let Some(row) = rows.get_mut(bar.row) {
                self.bar(row, bar);
            }
        }
        if let Some(first) = rows.first_mut() {
            let marks = self.picture.marks.iter().filter(|mark| mark.lane == at && !mark.is_point);
            marks.for_each(|mark| self.mark(first, mark));
        }
        let mail = [(LineKind::Mail, mail, chosen)].into_iter();
        let all = mail.chain(rows.into_iter().map(|row| (LineKind::Work, row, None)));
        let all = all.filter(|(_, cells, _)| !cells.is_empty());
        all.map(|(kind, cells, chosen)| Line { chosen, ..Line::of(kind, cells.text()) }).collect()
    }

    fn is_yours(&self, letter: &LetterDrawn) -> bool {
        letter.sender.is_some_and(|sender| self.picture.lanes[sender].rows == 0)
    }

    fn shows(&self, from: u64, to: u64) -> bool {
        from < self.to && to >= self.from
    }

    fn column(&self, x: u64) -> usize {
        (x.clamp(self.from, self.to) - self.from) as usize / COLUMN as usize
    }

    fn time(&self) -> String {
        let mut cells = Cells::new(self.columns);
        for tick in self.picture.ticks.iter().filter(|tick| (self.from..self.to).contains(&tick.x)) {
            cells.put_where_free(self.column(tick.x), &tick.text);
        }
        for (from, to) in self.picture.cuts.iter().filter(|(from, to)| self.shows(*from, *to)) {
            cells.put_where_free(self.column((from + to) / 2), "⫽");
        }
        cells.text()
    }

    fn letter(&self, cells: &mut Cells, letter: &LetterDrawn) {
        if !self.shows(letter.from, letter.to) {
            return;
        }
        let stroke = match letter.urgency {
            Some(Urgency::FollowUp) => '·',
            Some(Urgency::AfterTools) | None => '┄',
            Some(Urgency::NextBoundary) => '─',
            Some(Urgency::Urgent) => '═',
        };
        let (from, to) = (self.column(letter.from), self.column(letter.to));
        cells.fill(from, to, stroke);
        if letter.to >= self.to {
            return;
        }
        let end = match (&letter.point, letter.is_back) {
            (Some(point), _) => crate::timeline::sign_of(point),
            (None, true) => "⊘",
            (None, false) => "›",
        };
        cells.put(to, end);
    }

    fn bar(&self, cells: &mut Cells, bar: &Drawn) {
        let from = cells.free(self.column(bar.from));
        let to = self.column(bar.to).max(from + 1);
        let goes_on = bar.to > self.to;
        let inside = match bar.kind {
            Kind::Model | Kind::Summary => '~',
            Kind::Wait => '╌',
            Kind::Tool if bar.end == End::Skipped => '/',
            Kind::Tool => '═',
        };
        cells.fill(from, to, inside);
        if matches!(bar.kind, Kind::Model | Kind::Summary) {
            return cells.end(to, if goes_on { None } else { ending(bar.end, '~') });
        }
        let [open, close] = if bar.end == End::Skipped { ['/', '/'] } else { ['[', ']'] };
        if to > from + 1 && bar.from >= self.from {
            cells.put(from, &open.to_string());
        }
        let begin = from + usize::from(bar.from >= self.from);
        let hides = if bar.hides == 0 { String::new() } else { format!("+{}", bar.hides) };
        cells.label(begin, to.saturating_sub(1), &format!("{}{hides}", bar.name));
        if to > from + 1 {
            cells.end(to, if goes_on { None } else { ending(bar.end, close) });
        }
    }

    fn mark(&self, cells: &mut Cells, mark: &MarkDrawn) {
        if (self.from..self.to).contains(&mark.x) {
            cells.put_where_free(self.column(mark.x), &mark.sign);
        }
    }
}

/// The last column of what has ended, and how.
fn ending(end: End, well: char) -> Option<char> {
    match end {
        End::Open => None,
        End::Done | End::Skipped => Some(well),
        End::Failed => Some('✕'),
        End::Interrupted => Some('}'),
        End::Stopped => Some('■'),
        End::Unknown => Some('?'),
    }
}

fn indent(lane: &LaneDrawn) -> usize {
    lane.depth.min(3)
}

/// A line of columns.
struct Cells(Vec<char>);

impl Cells {
    fn new(columns: usize) -> Self {
        Self(vec![' '; columns])
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|cell| *cell == ' ')
    }

    /// The first column from this one on that nothing stands in.
    fn free(&self, from: usize) -> usize {
        let taken = self.0.iter().skip(from).take_while(|cell| **cell != ' ').count();
        from + taken
    }

    fn fill(&mut self, from: usize, to: usize, with: char) {
        let to = to.min(self.0.len());
        if let Some(cells) = self.0.get_mut(from..to) {
            cells.fill(with);
        }
    }

    fn put(&mut self, at: usize, text: &str) {
        for (cell, c) in self.0.iter_mut().skip(at).zip(text.chars()) {
            *cell = c;
        }
    }

    /// The same, where it covers nothing and touches nothing on its left.
    fn put_where_free(&mut self, at: usize, text: &str) {
        let end = at + text.chars().count();
        let begin = at.saturating_sub(usize::from(text.chars().count() > 1));
        if self.0.get(begin..end).is_some_and(|cells| cells.iter().all(|cell| *cell == ' ')) {
            self.put(at, text);
        }
    }

    /// A name, as much of it as fits; its last column stays free for how it ended.
    fn label(&mut self, from: usize, to: usize, name: &str) {
        let room = to.min(self.0.len()).saturating_sub(from);
        let narrow = name
            .chars()
            .map(|c| if crate::timeline::cells(c.encode_utf8(&mut [0; 4])) == 1 { c } else { '?' });
        let text: String = narrow.take(room).collect();
        self.put(from, &text);
    }

    fn end(&mut self, to: usize, with: Option<char>) {
        if let (Some(with), Some(cell)) = (with, to.checked_sub(1).and_then(|at| self.0.get_mut(at))) {
            *cell = with;
        }
    }

    fn text(self) -> String {
        self.0.into_iter().collect()
    }
}
