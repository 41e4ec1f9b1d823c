//! Plays that need more than a file: real workplaces, odd orders, acts that fail.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use midturn_core::engine::ports::{Changes, ToolError, Toolbox};
use midturn_core::rules::id::{AgentName, RunId};

use super::*;
use crate::expect::failures;
use crate::file;

/// A workplace whose tools are all unknown; agents work in the repository itself.
struct Bare(PathBuf);

#[async_trait]
impl Workplace for Bare {
    async fn open(&self, agent: &AgentName) -> Result<Arc<dyn Toolbox>, ToolError> {
        std::fs::write(self.0.join(format!("{agent}.txt")), "was here")
            .map_err(|error| ToolError(error.to_string()))?;
        Ok(Arc::new(Nothing))
    }

    async fn run_ended(&self, _: &AgentName, _: RunId) -> Result<Changes, ToolError> {
        Ok(Changes::default())
    }
}

struct Nothing;

impl Toolbox for Nothing {
    fn specs(&self) -> Vec<Arc<midturn_core::engine::ports::ToolSpec>> {
        Vec::new()
    }

    fn find(
        &self,
        _: &midturn_core::rules::conversation::ToolUse,
    ) -> Option<Arc<dyn midturn_core::engine::ports::Tool>> {
        None
    }
}

struct BareWorkplaces;

impl RealWorkplaces for BareWorkplaces {
    fn open(&self, repository: &Path, state: &Path) -> Result<Box<dyn RealWorkplace>, String> {
        assert!(repository.join(".git").is_dir() && state.is_dir());
        Ok(Box::new(BareAt(repository.to_owned())))
    }
}

struct BareAt(PathBuf);

impl RealWorkplace for BareAt {
    fn workplace(&self) -> Arc<dyn Workplace> {
        Arc::new(Bare(self.0.clone()))
    }

    fn worktree(&self, _: &AgentName) -> Option<PathBuf> {
        Some(self.0.clone())
    }
}

/// A scenario file in a folder of its own, with a workspace beside it.
fn real_scenario(workspace: &str) -> (tempfile::TempDir, Scenario) {
    let folder = tempfile::tempdir().unwrap();
    let sample = folder.path().join("sample");
    std::fs::create_dir_all(sample.join("deep")).unwrap();
    std::fs::write(sample.join("deep/file.txt"), "content").unwrap();
    std::os::unix::fs::symlink("deep/file.txt", sample.join("link")).unwrap();
    let text = format!(
        "midturn: 1\ntools: real\nworkspace: {workspace}\nagents:\n  - name: a\n    prompt: Go.\n    model:\n      \
         - tools: [{{id: x, name: nothing}}]\n      - text: Done.\nmessages:\n  \
         - {{id: late, after: {{agent: a, run_finished: 1, plus: 120ms}}, close: a}}\n  \
         - {{id: timed, at: 300ms, from: user, to: a, text: Hello}}\n  \
         - {{id: none, after: {{agent: a, run_finished: 9}}, stop: a}}\nexpect:\n  \
         - {{agent: a, outcome: finished, tools: {{x: failed}}}}\n  - event: {{agent: a, event: agent_closed}}\n  - {{message: timed, returned: closed}}\n  \
         - file: {{agent: a, path: link, contains: content}}\n  \
         - file: {{agent: a, path: a.txt, contains: was here, absent: [elsewhere]}}\n  \
         - file: {{agent: a, path: gone.txt, absent: true}}\n"
    );
    let path = folder.path().join("real.yaml");
    std::fs::write(&path, text).unwrap();
    let scenario = file::load(&path).unwrap();
    (folder, scenario)
}

#[test]
fn a_folder_is_copied_to_a_repository_that_goes_with_the_replay() {
    let (folder, scenario) = real_scenario("sample");
    let played = play(&scenario, Some(&BareWorkplaces)).unwrap();
    let told: Vec<String> =
        failures(&scenario, &played.record, &*played.worktrees).iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    let repository = (played.worktrees)(&AgentName::new("a").unwrap()).unwrap();
    assert!(repository.join(".git").is_dir());
    drop(played);
    assert!(!repository.exists());
    assert!(!folder.path().join("sample/a.txt").exists(), "the original is not touched");
}

#[test]
fn what_a_file_lacks_is_told() {
    let (_folder, mut scenario) = real_scenario("sample");
    let text = scenario.source.text.replace("contains: was here", "contains: was there");
    let text = text.replace("path: gone.txt", "path: a.txt").replace("elsewhere", "here");
    scenario = file::parse(scenario.source.path.clone(), text.as_bytes()).unwrap();
    let played = play(&scenario, Some(&BareWorkplaces)).unwrap();
    let failures = failures(&scenario, &played.record, &*played.worktrees);
    let told: Vec<&str> = failures.iter().map(|failure| failure.expected.as_str()).collect();
    assert_eq!(
        told,
        [
            "a.txt in the worktree of a with \"was there\"",
            "a.txt in the worktree of a without \"here\"",
            "no a.txt in the worktree of a",
        ]
    );
}

#[test]
fn real_tools_need_somebody_who_has_them_and_a_workspace_that_is_there() {
    let (_folder, scenario) = real_scenario("sample");
    let error = play(&scenario, None).err().unwrap().to_string();
    assert!(error.contains("real tools"), "{error}");
    for missing in ["elsewhere", "{clone: elsewhere}"] {
        let (_folder, scenario) = real_scenario(missing);
        let error = play(&scenario, Some(&BareWorkplaces)).err().unwrap().to_string();
        assert!(error.contains("elsewhere"), "{error}");
    }
}

#[test]
fn a_lead_that_stands_behind_its_children_is_spawned_before_them() {
    let text = "midturn: 1\nagents:\n  - {name: a}\n  - {name: b, role: lead}\n  - {name: c}\n";
    let scenario = file::parse("order.yaml".into(), text.as_bytes()).unwrap();
    let record = play(&scenario, None).unwrap().record;
    let spawned: Vec<String> =
        record.events.iter().filter_map(|event| Some(event.at.agent.as_ref()?.to_string())).collect();
    assert_eq!(spawned, ["b", "a", "c"]);
}

#[test]
fn what_can_not_be_done_is_remarked() {
    let text = "midturn: 1\nagents:\n  - {name: a, role: lead}\n  - {name: b, start: spawned, model: []}\nmessages:\n  \
                - {at: 1s, stop: b}\n  - {at: 1s, by: b, close: a}\n  - {id: x, at: 1s, from: user, to: a, text: Hi}\n  \
                - {at: 2s, by: a, withdraw: x}\n";
    let scenario = file::parse("remarks.yaml".into(), text.as_bytes()).unwrap();
    let remarks = play(&scenario, None).unwrap().record.remarks;
    for (remark, parts) in remarks.iter().zip([
        ["line 6", "there is no agent `b`"],
        ["line 7", "not spawned yet"],
        ["line 9", "no message `x` of yours"],
    ]) {
        assert!(parts.iter().all(|part| remark.contains(part)), "{remark}");
    }
    assert_eq!(remarks.len(), 3, "{remarks:?}");
}

/// What a file's play is refused with.
fn refused(text: &str) -> String {
    let scenario = file::parse("never.yaml".into(), text.as_bytes()).unwrap();
    play(&scenario, None).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn an_event_that_never_comes_is_told_with_its_line() {
    let text = "midturn: 1\nagents:\n  - name: a\n    prompt: Go.\n    model:\n      - tools:\n          - {id: x, name: edit, ends_after: {agent: a, tool_finished: x}}\n";
    let shown = refused(text);
    assert!(
        shown.starts_with("never.yaml:7:45: found an event that never comes: `tool_finished: x` of a"),
        "{shown}"
    );
    // What a stop or a crash ends waits for nothing.
    for ends in ["stop: a", "crash: 1s"] {
        let text = format!("{text}      - text: Done.\nmessages:\n  - {{at: 1s, {ends}}}\n");
        assert_eq!(refused(&text), "", "{ends}");
    }
}

#[test]
fn a_raise_below_what_is_spent_is_told_with_its_line() {
    let text = "midturn: 1\nagents:\n  - name: a\n    prompt: Go.\n    model: [{text: Done., usage: {input: 90, output: 10}}]\nmessages:\n  - {at: 1s, raise: RAISED}\n";
    for (raised, column) in [("a, limits: {max_tokens: 99}", 5), ("session, limits: {max_tokens: 99}", 5)] {
        let shown = refused(&text.replace("RAISED", raised));
        assert!(shown.starts_with(&format!("never.yaml:7:{column}: found a raise")), "{shown}");
        assert!(shown.contains("100"), "it says what is spent: {shown}");
    }
    for raised in ["a, limits: {max_tokens: 100}", "session, limits: {max_tokens: 0}"] {
        assert_eq!(refused(&text.replace("RAISED", raised)), "", "{raised}");
    }
}
