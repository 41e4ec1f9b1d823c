//! A table of a text: columns, or a line for each of its cells where those are too wide.

use std::iter::repeat_n;

use pulldown_cmark::Alignment;
use ratatui::text::{Line, Span};

use super::text::{cut, hard, width, wrap};
use crate::look::{Look, Tone};

/// How wide a column's name is where it stands before each of its cells.
const NAME: usize = 24;

type Cell = Vec<Span<'static>>;

/// A table in the making.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    /// The first is the head.
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    /// The next row.
    pub(super) fn row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// The next cell of the row.
    pub(super) fn cell(&mut self, cell: Cell) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    pub(super) fn lines(&self, room: u16, look: Look) -> Vec<Line<'static>> {
        let mut columns = vec![0; self.alignments.len()];
        for (column, cell) in self.rows.iter().flat_map(|row| columns_of(row)) {
            if let Some(wide) = columns.get_mut(column) {
                *wide = measure(cell).max(*wide);
            }
        }
        let wide = columns.iter().sum::<usize>() + 3 * columns.len().saturating_sub(1);
        match wide <= room.into() {
            true => self.aligned(&columns, room, look),
            false => self.listed(room, look),
        }
    }

    fn aligned(&self, columns: &[usize], room: u16, look: Look) -> Vec<Line<'static>> {
        let quiet = look.style(Tone::Quiet);
        let rule: Vec<String> = columns.iter().map(|wide| look.sign("─", "-").repeat(*wide)).collect();
        let rule = Line::styled(rule.join(look.sign("─┼─", "-+-")), quiet);
        let mut lines = Vec::new();
        for (n, row) in self.rows.iter().enumerate() {
            let mut spans = Vec::new();
            // What is empty behind the last text needs no room.
            let cells = row.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
            for (column, cell) in columns_of(&row[..cells]) {
                if column > 0 {
                    spans.push(Span::styled(look.sign(" │ ", " | "), quiet));
                }
                let wide = columns.get(column).copied().unwrap_or_default();
                self.place(column, cell, wide, column + 1 < cells, &mut spans);
            }
            lines.extend(hard(spans, room, ""));
            if n == 0 {
                lines.push(rule.clone());
            }
        }
        lines
    }

    /// Puts a cell where its column's alignment says.
    fn place(&self, column: usize, cell: &Cell, wide: usize, is_filled: bool, spans: &mut Cell) {
        let missing = wide.saturating_sub(measure(cell));
        let before = match self.alignments.get(column) {
            Some(Alignment::Right) => missing,
            Some(Alignment::Center) => missing / 2,
            _ => 0,
        };
        let after = if is_filled { missing - before } else { 0 };
        let space = |cells| Span::raw(repeat_n(' ', cells).collect::<String>());
        spans.push(space(before));
        spans.extend(cell.iter().cloned());
        spans.push(space(after));
    }

    /// A row's first cell on a line, the others below it with the names of their columns.
    fn listed(&self, room: u16, look: Look) -> Vec<Line<'static>> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let names: Vec<String> = head.iter().map(|cell| cut(&text(cell), NAME, look)).collect();
        if rows.is_empty() {
            let style = look.style(Tone::Strong);
            return wrap(vec![Span::styled(names.join(" | "), style)], room, "  ");
        }
        let mut lines = Vec::new();
        for row in rows {
            for (column, cell) in columns_of(row).filter(|(_, cell)| !cell.is_empty()) {
                let name = names.get(column).map(String::as_str).unwrap_or_default();
                let before = if column == 0 { String::new() } else { format!("  {name}: ") };
                let mut spans = vec![Span::styled(before, look.style(Tone::Quiet))];
                spans.extend(cell.iter().cloned());
                lines.extend(wrap(spans, room, "    "));
            }
        }
        lines
    }
}

fn columns_of(row: &[Cell]) -> impl Iterator<Item = (usize, &Cell)> {
    row.iter().enumerate()
}

fn measure(cell: &Cell) -> usize {
    cell.iter().map(|span| width(&span.content)).sum()
}

fn text(cell: &Cell) -> String {
    cell.iter().map(|span| span.content.as_ref()).collect()
}
