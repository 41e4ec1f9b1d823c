//! The main states, as they are seen at three sizes; without colours, without Unicode, and on the smallest terminals.

use midturn_tui::look::Look;
use midturn_tui::settings::Settings;
use ratatui::layout::Size;

use crate::seen::Seen;
use crate::states::{ALL, state};

const SIZES: [Size; 3] = [Size::new(80, 24), Size::new(120, 40), Size::new(200, 60)];

fn with(colours: bool, unicode: bool) -> Settings {
    Settings { look: Look { colours, unicode }, ..Settings::default() }
}

fn drawn(name: &str, settings: Settings, size: Size) -> (Seen, Vec<u8>) {
    let play = state(name, settings, size);
    let mut seen = Seen::new(size);
    let written = seen.draw(&play.state);
    (seen, written)
}

fn is_as_kept(folder: &str, name: &str, screen: &str) {
    insta::with_settings!({snapshot_path => format!("../snapshots/{folder}"), prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, screen);
    });
}

#[test]
fn the_main_states_look_as_they_did() {
    for size in SIZES {
        for (name, _) in ALL {
            let (seen, _) = drawn(name, with(true, true), size);
            is_as_kept(&format!("{}x{}", size.width, size.height), name, &seen.text());
        }
    }
}

#[test]
fn what_is_coloured_and_bold_is_as_it_was() {
    for name in ["injected", "asks_edit", "results", "diff"] {
        let (seen, _) = drawn(name, with(true, true), SIZES[0]);
        is_as_kept("styled", name, &seen.styled());
    }
}

#[test]
fn without_colours_no_colour_is_ever_written() {
    for (name, _) in ALL {
        let (seen, written) = drawn(name, with(false, true), SIZES[0]);
        let coloured = colours(&written);
        assert!(coloured.is_empty(), "{name}: {coloured:?}");
        if ["injected", "asks_edit", "results"].contains(name) {
            is_as_kept("no_color", name, &seen.styled());
        }
    }
}

/// The codes that choose a colour: none of those that go back to the terminal's own.
fn colours(written: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(written);
    let all = text.split("\u{1b}[").skip(1).filter_map(|rest| rest.split_once('m'));
    let codes = all
        .map(|(codes, _)| codes)
        .filter(|codes| codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'));
    let is_colour = |code: &str| matches!(code.parse(), Ok(30..=38 | 40..=48 | 90..=107));
    codes.filter(|codes| codes.split(';').any(is_colour)).map(str::to_owned).collect()
}

#[test]
fn with_ascii_no_sign_of_ours_is_beyond_it() {
    for size in SIZES {
        for (name, _) in ALL {
            let (seen, _) = drawn(name, with(true, false), size);
            let text = seen.text();
            // What agents and people say is theirs.
            let ours = text.lines().find(|line| !line.replace('…', "").is_ascii());
            assert_eq!(ours, None, "{name} at {size}");
            if size == SIZES[0] && ["queue", "injected", "asks_command", "plan", "diff"].contains(name) {
                is_as_kept("ascii", name, &text);
            }
        }
    }
}

#[test]
fn small_terminals_have_what_matters() {
    for size in [Size::new(40, 12), Size::new(20, 5)] {
        for name in ["streaming", "queue", "asks_command", "stopped", "help", "completion"] {
            let (seen, _) = drawn(name, with(true, true), size);
            is_as_kept(&format!("{}x{}", size.width, size.height), name, &seen.text());
        }
    }
}
