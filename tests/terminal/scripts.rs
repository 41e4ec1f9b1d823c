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

impl Ground {
    /// Lets the command `NAME` of an agent end: it waits for a file in the folder where the agent works.
    pub(crate) fn go(&self, agent: &str, name: &str) {
        let folder = if agent == "lead" { self.path("main") } else { self.worktree(agent) };
        std::fs::write(folder.join(format!("go-{name}")), "").unwrap();
    }

    /// The worktree of an agent of the only session.
    fn worktree(&self, agent: &str) -> PathBuf {
        let sessions = std::fs::read_dir(self.path("state/midturn/worktrees")).unwrap();
        let mut worktrees = sessions.map(|session| session.unwrap().path().join(agent));
        worktrees.find(|path| path.is_dir()).unwrap()
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
