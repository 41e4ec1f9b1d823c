//! A terminal that is emulated: the state is drawn, what that writes is read, and what is seen then is told.

use std::io::Write;
use std::sync::{Arc, Mutex};

use midturn_tui::draw::draw;
use midturn_tui::state::State;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Rect, Size};
use ratatui::{Terminal, TerminalOptions, Viewport};

/// What was written and not yet read.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A terminal of a size that it is told.
pub(crate) struct Seen {
    terminal: Terminal<CrosstermBackend<Written>>,
    written: Written,
    parser: vt100::Parser,
    size: Size,
}

impl Seen {
    pub(crate) fn new(size: Size) -> Self {
        let (terminal, written) = terminal(size);
        Self { terminal, written, parser: parser(size), size }
    }

    /// Draws, and gives what was written for it.
    pub(crate) fn draw(&mut self, state: &State) -> Vec<u8> {
        if state.size != self.size {
            // Each terminal does something else with what it shows: this one empties itself.
            *self = Self::new(state.size);
        }
        self.terminal.draw(|frame| draw(state, frame)).unwrap();
        let written = std::mem::take(&mut *self.written.0.lock().unwrap());
        self.parser.process(&written);
        written
    }

    /// The lines that are seen.
    pub(crate) fn lines(&self) -> Vec<String> {
        let all = self.parser.screen().rows(0, self.size.width);
        all.map(|line| line.trim_end().to_owned()).collect()
    }

    pub(crate) fn text(&self) -> String {
        let text = self.lines().join("\n");
        format!("{}\n", text.trim_end())
    }

    /// The same with what is coloured, bold, dim or reversed in brackets that say so.
    pub(crate) fn styled(&self) -> String {
        let lines = (0..self.size.height).map(|row| self.styled_line(row));
        lines.collect::<Vec<_>>().join("\n") + "\n"
    }

    fn styled_line(&self, row: u16) -> String {
        let (mut line, mut last) = (String::new(), String::new());
        for column in 0..self.size.width {
            let Some(cell) = self.parser.screen().cell(row, column) else { continue };
            if cell.is_wide_continuation() {
                continue;
            }
            let style = style(cell);
            if style != last {
                line.push_str(if last.is_empty() { "" } else { "⟩" });
                line.push_str(&if style.is_empty() { String::new() } else { format!("⟨{style}: ") });
                last = style;
            }
            line.push_str(if cell.has_contents() { cell.contents() } else { " " });
        }
        line.push_str(if last.is_empty() { "" } else { "⟩" });
        line.trim_end().to_owned()
    }

    /// Where the cursor is, if it is shown: the row and the column.
    pub(crate) fn cursor(&self) -> Option<(u16, u16)> {
        let screen = self.parser.screen();
        (!screen.hide_cursor()).then(|| screen.cursor_position())
    }
}

fn terminal(size: Size) -> (Terminal<CrosstermBackend<Written>>, Written) {
    let written = Written::default();
    let viewport = Viewport::Fixed(Rect::new(0, 0, size.width, size.height));
    let backend = CrosstermBackend::new(written.clone());
    (Terminal::with_options(backend, TerminalOptions { viewport }).unwrap(), written)
}

fn parser(size: Size) -> vt100::Parser {
    vt100::Parser::new(size.height.try_into().unwrap(), size.width.try_into().unwrap(), 0)
}

fn style(cell: &vt100::Cell) -> String {
    let colour = match cell.fgcolor() {
        vt100::Color::Default => "",
        vt100::Color::Idx(1) => "red",
        vt100::Color::Idx(2) => "green",
        vt100::Color::Idx(3) => "yellow",
        vt100::Color::Idx(4) => "blue",
        vt100::Color::Idx(6) => "cyan",
        other => panic!("{other:?} is no colour of ours"),
    };
    let marks = [
        ("bold", cell.bold()),
        ("dim", cell.dim()),
        ("italic", cell.italic()),
        ("underlined", cell.underline()),
        ("reversed", cell.inverse()),
    ];
    let marks = marks.into_iter().filter(|(_, is_it)| *is_it).map(|(word, _)| word);
    marks.chain((!colour.is_empty()).then_some(colour)).collect::<Vec<_>>().join(" ")
}

/// What is seen of a state at its size.
pub(crate) fn seen(state: &State) -> String {
    let mut seen = Seen::new(state.size);
    seen.draw(state);
    seen.text()
}
