//! A scenario file that a page is to play back: read and tried here, then handed to the process that answers, which keeps it.

use std::path::Path;

use midturn_client::{Client, Path as Route};
use midturn_scenario::file;
use midturn_scenario::play::play;
use midturn_scenario::scenario::Tools;
use midturn_view::figures;
use midturn_wire::BODY_MAX;
use midturn_wire::replay::{Kept, Scenario};

use crate::failure::Failure;

/// Whether somebody who may name a session or a file means a file: no session has these in its name.
pub(super) fn is_file(asked: &str) -> bool {
    asked.contains(['/', '.'])
}

/// Reads a scenario, and plays it once: what a page could not play is told here, with its place, and not in a browser.
///
/// # Errors
/// [`Failure::Usage`]: it is no scenario, has real tools, or is more than a page takes.
pub(super) fn playable(path: &Path) -> Result<Scenario, Failure> {
    let scenario = file::load(path).map_err(Failure::usage)?;
    let elsewhere = |why: String| {
        let path = path.display();
        Failure::usage(format!("{path}: {why}; `midturn replay --view {path}` plays it on the terminal"))
    };
    if let Tools::Real(_) = scenario.tools {
        return Err(elsewhere("it has real tools, and on a page nothing runs".to_owned()));
    }
    let kept = Scenario { scenario: scenario.source.text.to_string() };
    let size = serde_json::to_vec(&kept).map_err(Failure::failed)?.len();
    if size > BODY_MAX {
        let (size, most) = (figures::bytes(size as u64), figures::bytes(BODY_MAX as u64));
        return Err(elsewhere(format!("that makes {size}, and a page takes at most {most}")));
    }
    play(&scenario, None).map_err(Failure::usage)?;
    Ok(kept)
}

/// Has it kept: what the page asks for it by.
///
/// # Errors
/// [`Failure::Failed`]: it is refused.
pub(super) async fn hand_over(client: &Client, scenario: &Scenario) -> Result<String, Failure> {
    let kept: Kept = client.post(&Route::of(&["replays", "kept"]), scenario).await?;
    Ok(kept.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_dot_or_a_slash_in_its_name_and_a_session_has_none() {
        for (asked, expected) in [
            ("last", false),
            ("current", false),
            ("0mhzk3q1-77ab", false),
            ("a.yaml", true),
            ("./last", true),
        ] {
            assert_eq!(is_file(asked), expected, "{asked}");
        }
    }
}
