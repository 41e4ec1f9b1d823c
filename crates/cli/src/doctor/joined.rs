//! Whether Claude Code's agents can be corrected: what `midturn hooks status` says. None of it keeps Midturn's own agents
//! from working.

use std::path::Path;

use midturn_bridges::claude::install::{Line, State};

use super::Finding;
use crate::env::Env;
use crate::hooks;

/// What was looked at.
const ABOUT: &str = "Claude Code";

/// What is said of Claude Code. Whoever has none of our hooks is told only that there are some.
pub(super) fn findings(folder: &Path, env: &Env) -> Vec<Finding> {
    match hooks::look(folder, env) {
        Ok(status) if status.is_installed => status.lines.into_iter().map(finding).collect(),
        Ok(_) => {
            let none = "its agents aren't corrected by Midturn: `midturn hooks install` would begin that";
            vec![Finding::ok(ABOUT, none)]
        }
        Err(failure) => vec![Finding::weak(ABOUT, failure.to_string())],
    }
}

fn finding(line: Line) -> Finding {
    let found = format!("{}: {}", line.about, line.found);
    let finding = match line.state {
        State::Ok => Finding::ok(ABOUT, found),
        State::Weak | State::Missing => Finding::weak(ABOUT, found),
    };
    Finding { mend: line.mend, ..finding }
}
