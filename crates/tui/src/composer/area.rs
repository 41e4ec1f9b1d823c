//! The text of a draft and its cursor: what keys do to it, and how it is drawn.
//!
//! The editor is ratatui-textarea. It is drawn here, because it draws no cursor of the terminal's, which is where
//! input methods and screen readers look, and because it leaves none behind a row that is full.

use std::cell::Cell;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use midturn_view::clean::clean;
use ratatui::Frame;
use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Widget;
use ratatui_textarea::{CursorMove, TextArea, WrapMode};
use unicode_segmentation::UnicodeSegmentation;

use crate::look::{Look, Tone};

/// How many changes undo takes back.
const UNDO_MAX: usize = 100;
const TAB: usize = 4;
/// The editor counts the rows that it draws in 16 bits.
const ROWS_MAX: usize = 65_000;

/// A text that is edited.
#[derive(Debug)]
pub(super) struct Area {
    text: TextArea<'static>,
    was_touched: bool,
    /// The first row that was drawn last: it stays while the cursor is in view.
    top: Cell<usize>,
}

impl Default for Area {
    fn default() -> Self {
        Self::new("", false)
    }
}

/// What a key of the editor does.
enum Act {
    Type(char),
    Go(CursorMove),
    Change(fn(&mut TextArea<'static>) -> bool),
    PutBack,
}

impl Area {
    /// A text with the cursor at its end, which undo doesn't take out.
    pub(super) fn of(text: &str) -> Self {
        Self::new(text, true)
    }

    fn new(text: &str, was_touched: bool) -> Self {
        let mut text: TextArea<'static> = text.split('\n').collect();
        text.set_wrap_mode(WrapMode::WordOrGlyph);
        text.set_max_histories(UNDO_MAX);
        text.move_cursor(CursorMove::Bottom);
        text.move_cursor(CursorMove::End);
        Self { text, was_touched, top: Cell::new(0) }
    }

    pub(super) fn text(&self) -> String {
        self.text.lines().join("\n")
    }

    pub(super) fn bytes(&self) -> usize {
        let lines = self.text.lines();
        lines.iter().map(String::len).sum::<usize>() + lines.len() - 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether something was ever written.
    pub(super) fn was_touched(&self) -> bool {
        self.was_touched
    }

    /// The cursor's line and character.
    pub(super) fn cursor(&self) -> (usize, usize) {
        let at = self.text.cursor();
        (at.0, at.1)
    }

    pub(super) fn move_to(&mut self, (line, character): (usize, usize)) {
        let short = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        self.text.move_cursor(CursorMove::Jump(short(line), short(character)));
    }

    /// The text up to the cursor.
    pub(super) fn before_cursor(&self) -> String {
        let (line, character) = self.cursor();
        let mut before: String = self.text.lines().iter().take(line).flat_map(|line| [line, "\n"]).collect();
        before.extend(self.text.lines()[line].chars().take(character));
        before
    }

    pub(super) fn insert(&mut self, text: &str) {
        self.was_touched = true;
        self.text.insert_str(text);
    }

    pub(super) fn replace(&mut self, text: &str) {
        self.clear();
        self.insert(text);
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
    }

    /// Does what a key does, where there is room for so many bytes more. `false`: that changes nothing.
    pub(super) fn edit(&mut self, key: KeyEvent, room: usize) -> bool {
        let before = self.text.cursor();
        let changed = match act(key) {
            None => false,
            Some(Act::Type(c)) => self.write(&clean(c.encode_utf8(&mut [0; 4])), room),
            Some(Act::PutBack) => self.write(&self.text.yank_text(), room),
            Some(Act::Change(change)) => change(&mut self.text),
            Some(Act::Go(movement)) => {
                self.text.move_cursor(movement);
                false
            }
        };
        changed || self.text.cursor() != before
    }

    fn write(&mut self, text: &str, room: usize) -> bool {
        let fits = !text.is_empty() && text.len() <= room;
        if fits {
            self.insert(text);
        }
        fits
    }

    /// The rows that the text needs, at least one and at most `max`.
    pub(super) fn height(&self, width: u16, max: u16) -> u16 {
        let max = max.max(1);
        if self.is_empty() || !self.wrap(width) {
            return 1;
        }
        self.rows_from(0, max)
    }

    pub(super) fn draw(&self, frame: &mut Frame, area: Rect, look: Look, placeholder: &str) {
        if area.is_empty() {
            return;
        }
        if self.is_empty() {
            frame.render_widget(Line::styled(placeholder, look.style(Tone::Quiet)), area);
            return frame.set_cursor_position(area);
        }
        if !self.wrap(area.width) {
            let lines = self.text.lines().len();
            let text = format!("{} bytes, {lines} lines: kept, too long to show here", self.bytes());
            frame.render_widget(Line::styled(text, look.style(Tone::Cut)), area);
            return frame.set_cursor_position(area);
        }
        let cursor = self.text.screen_cursor().row;
        self.top.set(self.top_for(cursor, area.height));
        for (y, row) in area.rows().zip(self.top.get()..) {
            self.draw_row(frame, y, row, look);
        }
        self.set_cursor(frame, area, cursor);
    }

    /// Wraps the text to this width, but for a column in which the cursor stands behind a full row. `false`: it
    /// has more rows than can be.
    fn wrap(&self, width: u16) -> bool {
        let width = width.saturating_sub(1).max(1);
        if self.rows_at_most(width) > ROWS_MAX {
            return false;
        }
        // To draw is the only way to tell the editor its width.
        let scratch = Rect::new(0, 0, width, 1);
        (&self.text).render(scratch, &mut Buffer::empty(scratch));
        true
    }

    /// A word that is too long takes a row more than it fills, and one for the space before it.
    fn rows_at_most(&self, width: u16) -> usize {
        let lines = self.text.lines();
        let tabs: usize = lines.iter().map(|line| line.matches('\t').count()).sum();
        lines.len() + 3 * (self.bytes() + TAB * tabs) / usize::from(width)
    }

    /// How many rows there are from this one on, up to `max`.
    fn rows_from(&self, top: usize, max: u16) -> u16 {
        let last = self.text.screen_to_data(usize::MAX, 0);
        let mut rows = (1..max).zip(top..);
        rows.find(|(_, row)| self.text.screen_to_data(*row, 0) == last).map_or(max, |(rows, _)| rows)
    }

    /// The first row to draw: the last one, moved as little as it must be.
    fn top_for(&self, cursor: usize, height: u16) -> usize {
        let lowest = (cursor + 1).saturating_sub(usize::from(height));
        let top = self.top.get().clamp(lowest, cursor);
        let blank = height - self.rows_from(top, height);
        top.saturating_sub(usize::from(blank))
    }

    /// A row's line and characters, or none below the last.
    fn row(&self, row: usize) -> Option<(usize, std::ops::Range<usize>)> {
        let start = self.text.screen_to_data(row, 0);
        if row > 0 && self.text.screen_to_data(row - 1, 0) == start {
            return None;
        }
        let next = self.text.screen_to_data(row + 1, 0);
        let goes_on = next.0 == start.0 && next.1 > start.1;
        let end = if goes_on { next.1 } else { self.text.lines()[start.0].chars().count() };
        Some((start.0, start.1..end))
    }

    fn draw_row(&self, frame: &mut Frame, area: Rect, row: usize, look: Look) {
        let Some((line, characters)) = self.row(row) else { return };
        let text = self.piece(line, characters);
        frame.render_widget(Line::styled(text, look.style(Tone::Plain)), area);
    }

    fn set_cursor(&self, frame: &mut Frame, area: Rect, row: usize) {
        let Some((line, characters)) = self.row(row) else { return };
        let before = self.piece(line, characters.start..self.text.cursor().1);
        let column = before.cell_width().min(area.width - 1);
        let down = u16::try_from(row - self.top.get()).unwrap_or(u16::MAX).min(area.height - 1);
        frame.set_cursor_position((area.x + column, area.y + down));
    }

    /// These characters of a line as they are drawn.
    fn piece(&self, line: usize, characters: std::ops::Range<usize>) -> String {
        let line = self.text.lines()[line].chars();
        with_spaces(&line.skip(characters.start).take(characters.len()).collect::<String>())
    }
}

/// A row with spaces for its tabs.
fn with_spaces(row: &str) -> String {
    let (mut shown, mut column) = (String::with_capacity(row.len()), 0);
    for piece in row.graphemes(true) {
        let spaces = TAB - column % TAB;
        match piece {
            "\t" => shown.extend(std::iter::repeat_n(' ', spaces)),
            _ => shown.push_str(piece),
        }
        column += if piece == "\t" { spaces } else { usize::from(piece.cell_width()) };
    }
    shown
}

fn act(key: KeyEvent) -> Option<Act> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let held = key.modifiers.difference(KeyModifiers::SHIFT);
    match (key.code, held) {
        (KeyCode::Char(c), KeyModifiers::NONE) => Some(Act::Type(c)),
        (KeyCode::Char(c), KeyModifiers::CONTROL) => with_control(c.to_ascii_lowercase()),
        (KeyCode::Char(c), KeyModifiers::ALT) => with_alt(c.to_ascii_lowercase()),
        (code, KeyModifiers::NONE) => by_itself(code),
        (code, KeyModifiers::CONTROL | KeyModifiers::ALT) => over_words(code),
        _ => None,
    }
}

fn by_itself(code: KeyCode) -> Option<Act> {
    Some(match code {
        KeyCode::Left => Act::Go(CursorMove::Back),
        KeyCode::Right => Act::Go(CursorMove::Forward),
        KeyCode::Up => Act::Go(CursorMove::Up),
        KeyCode::Down => Act::Go(CursorMove::Down),
        KeyCode::Home => Act::Go(CursorMove::Head),
        KeyCode::End => Act::Go(CursorMove::End),
        KeyCode::Backspace => Act::Change(TextArea::delete_char),
        KeyCode::Delete => Act::Change(TextArea::delete_next_char),
        _ => return None,
    })
}

fn over_words(code: KeyCode) -> Option<Act> {
    Some(match code {
        KeyCode::Left => Act::Go(CursorMove::WordBack),
        KeyCode::Right => Act::Go(CursorMove::WordForward),
        KeyCode::Home => Act::Go(CursorMove::Jump(0, 0)),
        KeyCode::End => Act::Go(CursorMove::Jump(u16::MAX, u16::MAX)),
        KeyCode::Backspace => Act::Change(TextArea::delete_word),
        KeyCode::Delete => Act::Change(TextArea::delete_next_word),
        _ => return None,
    })
}

fn with_control(c: char) -> Option<Act> {
    Some(match c {
        'a' => Act::Go(CursorMove::Head),
        'e' => Act::Go(CursorMove::End),
        'b' => Act::Go(CursorMove::Back),
        'f' => Act::Go(CursorMove::Forward),
        'p' => Act::Go(CursorMove::Up),
        'n' => Act::Go(CursorMove::Down),
        'h' => Act::Change(TextArea::delete_char),
        'd' => Act::Change(TextArea::delete_next_char),
        'w' => Act::Change(TextArea::delete_word),
        'u' => Act::Change(TextArea::delete_line_by_head),
        'k' => Act::Change(TextArea::delete_line_by_end),
        // Terminals say Ctrl+7 for Ctrl+_ and Ctrl+/.
        '_' | '/' | '7' => Act::Change(TextArea::undo),
        _ => return None,
    })
}

fn with_alt(c: char) -> Option<Act> {
    Some(match c {
        'b' => Act::Go(CursorMove::WordBack),
        'f' => Act::Go(CursorMove::WordForward),
        'd' => Act::Change(TextArea::delete_next_word),
        '<' => Act::Go(CursorMove::Jump(0, 0)),
        '>' => Act::Go(CursorMove::Jump(u16::MAX, u16::MAX)),
        '_' | '/' => Act::Change(TextArea::redo),
        'y' => Act::PutBack,
        _ => return None,
    })
}
