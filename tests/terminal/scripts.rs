//! What the models of a test answer: scenario files in `scenarios/`, and that each of them is one.

use std::path::{Path, PathBuf};

use crate::ground::Ground;

fn folder() -> PathBuf {
    midturn_tests::root().join("tests/terminal/scenarios")
}

impl Ground {
    /// The model that a file of `scenarios/` scripts, as `--model` takes it.
    pub(crate) fn scripted(&self, name: &str) -> String {
        let file = format!("{name}.yaml");
        // A copy: what stands on the screen says nothing of the checkout.
        std::fs::copy(folder().join(&file), self.path(&file)).unwrap();
        format!("scripted:{}", self.path(&file).display())
    }
}

#[test]
fn every_script_is_sound_and_has_a_lead() {
    let mut files: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let lead = |path: &Path| {
        let scenario = midturn_scenario::file::load(path).unwrap_or_else(|error| panic!("{error}"));
        scenario.agents.iter().any(|agent| agent.name.as_str() == "lead" && agent.model.is_some())
    };
    assert!(files.len() >= 5, "{files:?}");
    let without: Vec<_> = files.iter().filter(|path| !lead(path)).collect();
    assert!(without.is_empty(), "{without:?}");
}
