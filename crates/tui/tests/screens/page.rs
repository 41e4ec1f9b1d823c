//! docs/terminal.md: its screens and its table of keys are made here. `MIDTURN_TIDY_WRITE=1` writes them, otherwise
//! they are compared.

use std::fmt::Write as _;
use std::path::PathBuf;

use midturn_tui::keys::{Action, TABLE};
use midturn_tui::settings::Settings;
use ratatui::layout::Size;

use crate::seen::seen;
use crate::states::state;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/terminal.md")
}

/// What stands behind a marker: `screen NAME WIDTHxHEIGHT` or `keys`.
fn made(what: &str) -> String {
    let mut words = what.split(' ');
    match (words.next(), words.next(), words.next()) {
        (Some("screen"), Some(name), Some(size)) => {
            let (width, height) = size.split_once('x').expect("a size");
            let size = Size::new(width.parse().expect("a width"), height.parse().expect("a height"));
            let play = state(name, Settings::default(), size);
            format!("```text\n{}```\n", seen(&play.state))
        }
        (Some("keys"), None, None) => keys(),
        _ => panic!("{what} is nothing that is made"),
    }
}

fn keys() -> String {
    let mut table = "| key | as a word | does |\n| --- | --- | --- |\n".to_owned();
    // Nine rows alike are one.
    for row in TABLE.iter().filter(|row| !matches!(row.action, Action::AgentAt(2..))) {
        let mut keys = row.keys.iter().map(|key| format!("`{}`", key.shown())).collect::<Vec<_>>().join(", ");
        let mut help = row.help.to_owned();
        if row.action == Action::AgentAt(1) {
            keys += " … `Alt+9`";
            help += " of the roster … the ninth";
        }
        writeln!(table, "| {keys} | `{}` | {help} |", row.written()).expect("a string");
    }
    table
}

/// The page with what is made in the place of what stands between the markers.
fn anew(page: &str) -> String {
    let mut pieces = page.split("<!-- made: ");
    let mut anew = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (what, rest) = piece.split_once(" -->\n").expect("a marker's end");
        let (_, after) = rest.split_once("<!-- end -->").expect("the end of what is made");
        write!(anew, "<!-- made: {what} -->\n{}<!-- end -->{after}", made(what)).expect("a string");
    }
    anew
}

#[test]
fn the_page_shows_what_the_terminal_shows() {
    let page = std::fs::read_to_string(path()).expect("docs/terminal.md");
    let anew = anew(&page);
    if std::env::var_os("MIDTURN_TIDY_WRITE").is_some() {
        std::fs::write(path(), &anew).expect("docs/terminal.md can be written");
    }
    assert!(
        page == anew || std::env::var_os("MIDTURN_TIDY_WRITE").is_some(),
        "docs/terminal.md is not what the terminal shows: MIDTURN_TIDY_WRITE=1 cargo test -p midturn-tui --test screens page"
    );
}
