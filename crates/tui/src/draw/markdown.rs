//! Markdown as lines: what models write, half finished or odd as it may be.
//!
//! Nothing is fetched and nothing is hidden: HTML is text, and a link shows where it leads.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::table::Table;
use super::text::{hard, width, wrap};
use crate::look::{Look, Tone};

/// How deep quotes and lists are shown in one another. Deeper ones are plain text.
const DEPTH: usize = 16;

/// A text in markdown as lines that are at most that wide.
pub fn markdown(text: &str, width: u16, look: Look) -> Vec<Line<'static>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Page::new(width, look);
    for event in Parser::new_ext(text, options) {
        page.add(event);
    }
    page.flush();
    page.lines
}

/// Lines in the making.
struct Page {
    look: Look,
    width: usize,
    lines: Vec<Line<'static>>,
    /// An empty line belongs before the next block.
    gap: bool,
    /// What the block holds so far.
    spans: Vec<Span<'static>>,
    /// How many bytes of text there were.
    bytes: usize,
    /// What stands before each line: of the quotes and list items that the block is in.
    margins: Vec<Margin>,
    /// How wide those are together.
    margin: usize,
    lists: Vec<List>,
    inline: Inline,
    links: Vec<Link>,
    code: Option<String>,
    table: Option<Table>,
}

/// What stands before the lines of a quote or a list item.
struct Margin {
    /// Before the next line only.
    once: Option<String>,
    always: String,
}

/// A list that is open.
struct List {
    /// The number of its next item, if they are numbered.
    next: Option<u64>,
    /// Its items are apart.
    is_loose: bool,
}

/// In how many of each the text is.
#[derive(Default)]
struct Inline {
    strong: usize,
    emphasis: usize,
    struck: usize,
    title: bool,
}

/// A link or an image that is open.
struct Link {
    url: String,
    /// Where its text begins: among the spans, and in bytes.
    from: (usize, usize),
}

impl Page {
    fn new(width: u16, look: Look) -> Self {
        Self {
            look,
            width: width.max(1).into(),
            lines: Vec::new(),
            gap: false,
            spans: Vec::new(),
            bytes: 0,
            margins: Vec::new(),
            margin: 0,
            lists: Vec::new(),
            inline: Inline::default(),
            links: Vec::new(),
            code: None,
            table: None,
        }
    }

    fn add(&mut self, event: Event) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Code(text) => self.inline_code(&text),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.text("\n"),
            Event::Rule => self.rule(),
            Event::TaskListMarker(true) => self.text("[x] "),
            Event::TaskListMarker(false) => self.text("[ ] "),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::FootnoteReference(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.text(&text),
        }
    }

    fn start(&mut self, tag: Tag) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => {
                self.open();
                if let Some(list) = self.lists.last_mut() {
                    list.is_loose = true;
                }
            }
            Tag::Heading { level, .. } => {
                self.open();
                self.inline.strong += 1;
                self.inline.title = level == HeadingLevel::H1;
            }
            Tag::BlockQuote(_) => {
                self.open();
                let bar = self.look.sign("│ ", "| ");
                self.enter(bar.to_owned(), bar.to_owned());
            }
            Tag::CodeBlock(_) => {
                self.open();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                // Under the text of an item there is no gap.
                self.gap &= self.lists.is_empty();
                self.open();
                self.lists.push(List { next: first, is_loose: false });
            }
            Tag::Item => self.item(),
            Tag::Table(alignments) => {
                self.open();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                self.inline.strong += usize::from(tag == Tag::TableHead);
                if let Some(table) = &mut self.table {
                    table.row();
                }
            }
            Tag::Strong => self.inline.strong += 1,
            Tag::Emphasis => self.inline.emphasis += 1,
            Tag::Strikethrough => self.inline.struck += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                let from = (self.spans.len(), self.bytes);
                self.links.push(Link { url: dest_url.into_string(), from });
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.close(),
            TagEnd::Heading(_) => {
                self.close();
                self.inline.strong -= 1;
                self.inline.title = false;
            }
            TagEnd::BlockQuote(_) => {
                self.close();
                self.leave();
            }
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.gap = true;
            }
            TagEnd::Item => self.end_item(),
            TagEnd::TableHead => self.inline.strong -= 1,
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::Table => {
                let (room, look) = (self.room(), self.look);
                let lines = self.table.take().map(|table| table.lines(room, look));
                self.put(lines.unwrap_or_default());
                self.gap = true;
            }
            TagEnd::Strong => self.inline.strong -= 1,
            TagEnd::Emphasis => self.inline.emphasis -= 1,
            TagEnd::Strikethrough => self.inline.struck -= 1,
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// Before a block.
    fn open(&mut self) {
        self.flush();
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() {
            self.put(vec![Line::default()]);
        }
    }

    /// Behind a block.
    fn close(&mut self) {
        self.flush();
        self.gap = true;
    }

    /// Wraps what the block holds.
    fn flush(&mut self) {
        if !self.spans.is_empty() {
            let spans = std::mem::take(&mut self.spans);
            self.put(wrap(spans, self.room(), ""));
        }
    }

    fn put(&mut self, lines: Vec<Line<'static>>) {
        let quiet = self.look.style(Tone::Quiet);
        for mut line in lines {
            let margins = self.margins.iter_mut().take(DEPTH);
            let before = margins.map(|margin| margin.once.take().unwrap_or_else(|| margin.always.clone()));
            let before = before.filter(|text| !text.is_empty()).map(|text| Span::styled(text, quiet));
            line.spans.splice(0..0, before.collect::<Vec<_>>());
            self.lines.push(line);
        }
    }

    /// What is left of the width beside the margins.
    fn room(&self) -> u16 {
        u16::try_from(self.width.saturating_sub(self.margin).max(1)).unwrap_or(u16::MAX)
    }

    /// Into a quote or an item. Together their margins take half of the width at most: beyond it, what marks an item
    /// is a part of its text.
    fn enter(&mut self, once: String, always: String) {
        let wide = width(&once);
        if self.margins.len() < DEPTH && self.margin + wide <= self.width / 2 {
            self.margin += wide;
            self.margins.push(Margin { once: Some(once), always });
            return;
        }
        if once != always {
            self.text(&once);
        }
        self.margins.push(Margin { once: None, always: String::new() });
    }

    fn leave(&mut self) {
        if let Some(margin) = self.margins.pop() {
            self.margin -= width(&margin.always);
        }
    }

    fn item(&mut self) {
        self.gap &= self.lists.last().is_none_or(|list| list.is_loose);
        self.open();
        let mark = match self.lists.last_mut() {
            Some(List { next: Some(number), .. }) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => self.look.sign("• ", "- ").to_owned(),
        };
        let always = " ".repeat(width(&mark));
        self.enter(mark, always);
    }

    fn end_item(&mut self) {
        self.flush();
        let is_empty = self
            .margins
            .last()
            .is_some_and(|margin| margin.once.as_ref().is_some_and(|once| *once != margin.always));
        if is_empty && self.margins.len() <= DEPTH {
            self.put(vec![Line::default()]);
        }
        self.leave();
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.push_str(text),
            None => self.push(text, self.style()),
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        self.bytes += text.len();
        self.spans.push(Span::styled(text.to_owned(), style));
    }

    fn style(&self) -> Style {
        let Inline { strong, emphasis, struck, title } = self.inline;
        let style = self.look.style(if strong > 0 { Tone::Strong } else { Tone::Plain });
        [(emphasis > 0, Modifier::ITALIC), (struck > 0, Modifier::CROSSED_OUT), (title, Modifier::UNDERLINED)]
            .into_iter()
            .filter(|(is_on, _)| *is_on)
            .fold(style, |style, (_, modifier)| style.add_modifier(modifier))
    }

    /// Without colours its quotes tell what it is.
    fn inline_code(&mut self, text: &str) {
        let style = self.style().patch(self.look.style(Tone::Code));
        match self.look.colours {
            true => self.push(text, style),
            false => self.push(&format!("`{text}`"), style),
        }
    }

    fn code_block(&mut self) {
        let code = self.code.take().unwrap_or_default();
        let style = self.look.style(Tone::Code);
        let indent = if self.room() < 8 { "" } else { "  " };
        for line in code.lines() {
            let spans = vec![Span::raw(indent), Span::styled(line.to_owned(), style)];
            self.put(hard(spans, self.room(), indent));
        }
        self.gap = true;
    }

    fn rule(&mut self) {
        self.open();
        let line = self.look.sign("─", "-").repeat(self.room().into());
        self.put(vec![Line::styled(line, self.look.style(Tone::Quiet))]);
        self.gap = true;
    }

    /// Where a link leads stands behind its text, unless it is its text.
    fn end_link(&mut self) {
        let Some(Link { url, from: (span, bytes) }) = self.links.pop() else { return };
        let length = self.bytes - bytes;
        // Who compares only texts of the same length reads each address once.
        let text = || self.spans.iter().skip(span).map(|span| span.content.as_ref()).collect::<String>();
        let is_shown = url.is_empty() || length == url.len() && text() == url;
        let style = self.look.style(Tone::Quiet);
        match (is_shown, length) {
            (true, _) => {}
            (false, 0) => self.push(&url, style),
            (false, _) => self.push(&format!(" ({url})"), style),
        }
    }
}

#[cfg(test)]
mod tests;
