//! What a run leaves is looked at, merged, pushed and removed by hand, as a person types it (issue 14).

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::common::{Ended, Place, Running};
use super::remote::Serving;

/// A command's status and outputs.
fn say(place: &Place, words: &[&str]) -> (Option<i32>, String, String) {
    let said = place.midturn("repo", words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (said.status.code(), text(said.stdout), text(said.stderr))
}

/// A command that does what it is for, and what it writes.
fn done(place: &Place, words: &[&str]) -> String {
    let (status, out, told) = say(place, words);
    assert_eq!(status, Some(0), "{words:?}: {out}{told}");
    out
}

/// A lead whose worker runs these commands, one after the other; `more` is said after that by both.
fn scenario(commands: &[&str], more: &[(&str, &str)]) -> String {
    let call = |(n, command): (usize, &&str)| {
        let command = Value::from(*command);
        format!("      - tools: [{{id: e{n}, name: bash, input: {{command: {command}}}}}]\n")
    };
    let calls: String = commands.iter().enumerate().map(call).collect();
    let of = |agent: &str| -> String {
        let of = more.iter().filter(|(whose, _)| *whose == agent);
        of.map(|(_, entry)| format!("      - {entry}\n")).collect()
    };
    format!(
        "midturn: 1\nname: test\nagents:\n  - name: lead\n    role: lead\n    model:\n      - tools:\n          \
         - {{id: s, name: spawn_agent, input: {{name: worker, prompt: Go.}}}}\n          \
         - {{id: w, name: wait_agents, input: {{names: [worker]}}}}\n      - text: Done.\n{}  - name: worker\n    parent: lead\n    \
         start: spawned\n    model:\n{calls}      - text: Done.\n{}",
        of("lead"),
        of("worker")
    )
}

/// A project with a first commit.
fn project() -> Place {
    let place = Place::new();
    place.write("repo/a.txt", "one\n");
    place.git(&["add", "a.txt"]);
    place.git(&["commit", "--quiet", "--message", "first"]);
    for (key, value) in [("user.name", "A Person"), ("user.email", "a@example.org")] {
        place.git(&["config", key, value]);
    }
    place
}

/// Runs it to its end: the session's id, and what was told.
fn run(place: &Place, scenario: &str) -> (String, String) {
    let Ended { status, events, told } = Running::start(place, scenario, &[]).end();
    assert_eq!(status, Some(0), "{told}");
    (events[0]["session"].as_str().unwrap().to_owned(), told)
}

fn there(place: &Place, below: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(place.path(below)) else { return Vec::new() };
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn read(place: &Place, below: &str) -> String {
    std::fs::read_to_string(place.path(below)).unwrap()
}

/// > D1: `diff` and `merge` work from the store and git alone when no Midturn runs
#[test]
fn what_a_run_left_is_shown_and_merged_when_nobody_carries_it() {
    for serves in [false, true] {
        let place = project();
        let (id, _) = run(&place, &scenario(&["echo theirs > b.txt"], &[]));
        // Neither a model nor its file is needed.
        std::fs::remove_file(place.path("scenario.yaml")).unwrap();
        let _serving = serves.then(|| Serving::start(&place));
        let patch = done(&place, &["diff", "worker"]);
        assert!(patch.contains("+++ b/b.txt") && patch.contains("+theirs"), "{patch}");
        place.write("repo/a.txt", "two\n");
        assert!(done(&place, &["diff", "lead"]).contains("+two"));
        let json: Value = serde_json::from_str(&done(&place, &["diff", "worker", "--json"])).unwrap();
        assert_eq!(
            (&json["branch"], &json["patch"]),
            (&format!("midturn/{id}/worker").into(), &patch.into())
        );
        let out = done(&place, &["merge", "worker", "--session", &id[..12]]);
        assert!(out.starts_with("merged the branch of worker, HEAD is now "), "{out}");
        assert_eq!(
            (read(&place, "repo/b.txt"), read(&place, "repo/a.txt")),
            ("theirs\n".into(), "two\n".into())
        );
        assert_eq!(
            done(&place, &["merge", "worker"]),
            "nothing to merge: all of worker's work is in already\n"
        );
        for (words, expected) in [
            (["merge", "lead"], "`lead` has no branch of its own"),
            (["diff", "nobody"], "there is no agent `nobody` in session "),
            (["merge", "nobody"], "there is no agent `nobody` in session "),
        ] {
            let (status, _, told) = say(&place, &words);
            assert_eq!((status, told.contains(expected)), (Some(1), true), "{told}");
        }
        assert_eq!(there(&place, "state/midturn/tmp"), Vec::<String>::new(), "nothing is left behind");
    }
}

/// What a running coordinator refuses to merge is refused here, too.
#[test]
fn the_looks_of_a_merge_are_the_same_when_nobody_carries_the_session() {
    let place = project();
    let (id, _) = run(&place, &scenario(&["echo theirs > a.txt"], &[]));
    let late = place.path(&format!("state/midturn/worktrees/{id}/worker/late.txt"));
    std::fs::write(&late, "late").unwrap();
    place.write("repo/a.txt", "mine\n");
    let commands =
        [&["merge", "worker"][..], &["merge", "worker", "--squash", "-m", "x"], &["push", "worker"]];
    for words in commands {
        let (status, _, told) = say(&place, words);
        assert_eq!(
            (status, told.contains("has work that is not committed (late.txt)")),
            (Some(1), true),
            "{told}"
        );
    }
    std::fs::remove_file(late).unwrap();
    for words in &commands[..2] {
        let (status, _, told) = say(&place, words);
        assert_eq!((status, told.contains("are in the way (a.txt)")), (Some(1), true), "{told}");
    }
    assert_eq!(read(&place, "repo/a.txt"), "mine\n");
}

/// > D1: A run ends with the line to type for each branch
#[test]
fn a_run_ends_with_the_line_to_type_for_a_branch_with_something_new() {
    let place = project();
    let (_, told) = run(&place, &scenario(&["echo theirs > b.txt"], &[]));
    let lines: Vec<&str> =
        told.lines().filter_map(|line| line.split_once("midturn diff ")).map(|(_, line)| line).collect();
    assert_eq!(lines, ["worker && midturn merge worker"], "{told}");
    // It does what it says.
    done(&place, &["diff", "worker"]);
    done(&place, &["merge", "worker"]);
    assert_eq!(read(&place, "repo/b.txt"), "theirs\n");
    let (_, told) = run(&place, &scenario(&["true"], &[]));
    assert!(!told.contains("midturn merge"), "there is nothing new: {told}");
}

/// > D14: `merge --resolve` hands a conflict to the agent, with the files and the current HEAD
#[test]
fn a_conflict_is_handed_to_the_agent_whose_branch_it_is() {
    for serves in [false, true] {
        let place = project();
        let first = ["echo theirs > a.txt"];
        run(&place, &scenario(&first, &[]));
        place.write("repo/a.txt", "mine\n");
        place.git(&["commit", "--quiet", "--all", "--message", "mine"]);
        let head = place.git(&["rev-parse", "HEAD"]).trim().to_owned();
        let (status, out, told) = say(&place, &["merge", "worker"]);
        assert_eq!((status, out.as_str()), (Some(1), "conflict: a.txt\n"));
        assert!(told.contains("`midturn merge worker --resolve`"), "{told}");
        let resolves = format!("git merge -q {head}; echo both > a.txt; git commit -qam both");
        let call = format!("tools: [{{id: r, name: bash, input: {{command: {}}}}}]", Value::from(resolves));
        let more = [("worker", &*call), ("worker", "text: Resolved."), ("lead", "text: Good.")];
        place.write("scenario.yaml", &scenario(&first, &more));
        let serving = serves.then(|| Serving::start(&place));
        let (status, out, told) = say(&place, &["merge", "worker", "--resolve"]);
        assert_eq!(status, Some(0), "{out}{told}");
        if serving.is_some() {
            assert!(out.starts_with("worker resolves what conflicts in a.txt: "), "{out}");
            until_it_has_ended(&place, 2);
        } else {
            assert!(told.contains("midturn diff worker && midturn merge worker"), "{told}");
        }
        let log = done(&place, &["log", "last", "--json"]);
        let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let sent = |event: &&Value| {
            event["type"] == "message_queued" && event["from"] == "user" && event["agent"] == "worker"
        };
        let text = events.iter().find(sent).unwrap()["text"].as_str().unwrap();
        assert!(text.contains("- a.txt\n") && text.contains(&format!("`git merge {head}`")), "{text}");
        done(&place, &["merge", "worker"]);
        assert_eq!(read(&place, "repo/a.txt"), "both\n");
        assert_eq!(place.git(&["merge-base", "HEAD", &head]).trim(), head);
    }
}

/// Waits until the worker's run of this number has ended, as its events say.
fn until_it_has_ended(place: &Place, run: u64) {
    let mut command = place.midturn("repo", &["watch", "worker", "--json"]);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let is_over = || {
        let log = done(place, &["log", "last", "--json"]);
        let mut events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events
            .any(|event| event["type"] == "run_finished" && event["agent"] == "worker" && event["run"] == run)
    };
    let mut watch = Running::of(command);
    // What ended before somebody watched is in the store by now.
    if !is_over() {
        while watch.until("run_finished", &[("agent", "worker")])["run"] != run {}
    }
    watch.signal("INT");
    watch.end();
}

/// `--squash`: one commit with that message, of which git knows the person as the author.
#[test]
fn a_merge_as_one_commit_has_one_parent_and_the_message() {
    let place = project();
    let commands = ["echo 1 > b.txt; git add b.txt; git commit -qm one", "echo 2 > c.txt"];
    run(&place, &scenario(&commands, &[]));
    let before = place.git(&["rev-parse", "HEAD"]);
    let (status, _, told) = say(&place, &["merge", "worker", "--squash"]);
    assert_eq!((status, told.contains("--message")), (Some(2), true), "{told}");
    done(&place, &["merge", "worker", "--squash", "--message", "Two files\n\nand why"]);
    assert_eq!(place.git(&["log", "-1", "--format=%B%P"]), format!("Two files\n\nand why\n{before}"));
    assert_eq!((read(&place, "repo/b.txt"), read(&place, "repo/c.txt")), ("1\n".into(), "2\n".into()));
    assert_eq!(
        done(&place, &["merge", "worker", "--squash", "-m", "again"]),
        "nothing to merge: all of worker's work is in already\n"
    );
    // Git itself doesn't know that it is merged.
    let plan = done(&place, &["prune", "--dry-run"]);
    assert!(plan.contains("in all: 1 branch, 1 folder; "), "{plan}");
}

/// `push`: the person's own git, with their hooks, and what to type next.
#[test]
fn a_branch_is_pushed_with_the_persons_own_git() {
    let place = project();
    let (id, _) = run(&place, &scenario(&["echo theirs > b.txt"], &[]));
    let (status, _, told) = say(&place, &["push", "worker"]);
    assert_eq!((status, told.contains("`git remote add origin URL`")), (Some(2), true), "{told}");
    place.git(&["init", "--quiet", "--bare", "../there.git"]);
    place.git(&["remote", "add", "mine", "../there.git"]);
    place.write("repo/.git/hooks/pre-push", "#!/bin/sh\necho hooked >> ../hooked\n");
    let hook = place.path("repo/.git/hooks/pre-push");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let branch = format!("midturn/{id}/worker");
    let out = done(&place, &["push", "worker"]);
    assert_eq!(
        out,
        format!(
            "{branch} is on mine now\nopen a pull request, or a merge request, for the branch {branch} there\n"
        )
    );
    assert_eq!(read(&place, "hooked"), "hooked\n");
    let pushed = place.git(&["--git-dir", "../there.git", "rev-parse", &branch]);
    assert_eq!(pushed, place.git(&["rev-parse", &branch]));
    assert!(place.git(&["--git-dir", "../there.git", "show", &format!("{branch}:b.txt")]).contains("theirs"));
    std::fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    let (status, _, told) = say(&place, &["push", "worker", "mine", "--json"]);
    assert_eq!(
        (status, told.contains(&format!("{branch} was not pushed to mine"))),
        (Some(1), true),
        "{told}"
    );
    // Pushed is not merged.
    place.git(&["fetch", "--quiet", "mine"]);
    assert!(done(&place, &["prune", "--older-than", "0", "--dry-run"]).contains("1 commit not merged"));
}

/// > D13: `sessions rm` says what it will remove and how much, and removes it
#[test]
fn a_session_is_removed_with_what_it_left_and_nothing_before_somebody_agreed() {
    let place = project();
    let (stays, _) = run(&place, &scenario(&["echo 1 > b.txt"], &[]));
    let (goes, _) = run(&place, &scenario(&["head -c 3000000 /dev/zero > c.bin"], &[]));
    done(&place, &["merge", "worker"]);
    let plan = done(&place, &["sessions", "rm", "last", "--dry-run"]);
    for expected in [
        &*format!("{goes}  the task\n  all that is recorded: "),
        &format!("  worker: branch midturn/{goes}/worker; folder "),
        "in all: 1 session, 1 branch, 1 folder; ",
    ] {
        assert!(plan.contains(expected), "{expected}\n{plan}");
    }
    assert!(plan.contains(", 3.0 MB\n") || plan.contains(", 3.1 MB\n"), "{plan}");
    let (status, out, told) = say(&place, &["sessions", "rm", &goes]);
    assert_eq!((status, &out), (Some(2), &plan), "{told}");
    assert!(told.contains("say --yes"), "{told}");
    assert!(done(&place, &["sessions"]).contains(&goes), "nothing was removed");
    let out = done(&place, &["sessions", "rm", &goes, "--yes"]);
    assert!(out.contains("\nremoved: 1 session, 1 branch, 1 folder; "), "{out}");
    assert!(!done(&place, &["sessions"]).contains(&goes));
    assert_eq!(there(&place, "state/midturn/worktrees"), [&*stays]);
    let refs = place.git(&["for-each-ref", "--format=%(refname)", "refs/midturn", "refs/heads/midturn"]);
    assert_eq!(refs, format!("refs/heads/midturn/{stays}/worker\nrefs/midturn/{stays}\n"));
    let (status, _, told) = say(&place, &["sessions", "rm", &goes, "--yes"]);
    assert_eq!((status, told.contains("there is no session")), (Some(2), true), "{told}");
    assert_eq!(read(&place, "repo/c.bin").len(), 3_000_000, "what was merged stays");
}

/// > D13: A branch that isn't merged stays without `--force`
#[test]
fn what_is_not_merged_or_on_no_branch_stays_without_force() {
    let place = project();
    let (id, _) = run(&place, &scenario(&["echo 1 > b.txt"], &[]));
    let branch = format!("midturn/{id}/worker");
    // To be looked at is not to be merged.
    place.git(&["checkout", "--quiet", &branch]);
    assert!(done(&place, &["prune", "--older-than", "0", "--dry-run"]).contains("1 commit not merged"));
    place.git(&["checkout", "--quiet", "main"]);
    let out = done(&place, &["sessions", "rm", &id, "--yes"]);
    assert!(out.contains(&format!("stays: {branch}, 1 commit not merged; --force removes it too")), "{out}");
    assert!(place.git(&["show", &format!("{branch}:b.txt")]).contains('1'));
    assert!(!done(&place, &["sessions"]).contains(&id));
    // What is in a folder only keeps its session.
    let (id, _) = run(&place, &scenario(&["true"], &[]));
    let folder = format!("state/midturn/worktrees/{id}/worker");
    place.write(&format!("{folder}/late.txt"), "late\n");
    for words in [&["sessions", "rm", &id, "--yes"][..], &["prune", "--older-than", "0", "--yes"]] {
        let (_, out, told) = say(&place, words);
        assert!(out.contains("stays: not committed: late.txt"), "{out}{told}");
        assert_eq!(read(&place, &format!("{folder}/late.txt")), "late\n");
        assert!(done(&place, &["sessions"]).contains(&id));
    }
    assert_eq!(say(&place, &["sessions", "rm", &id, "--yes"]).0, Some(1));
    done(&place, &["sessions", "rm", &id, "--yes", "--force"]);
    assert_eq!(there(&place, "state/midturn/worktrees"), Vec::<String>::new());
    let (id, _) = run(&place, &scenario(&["echo 2 > d.txt"], &[]));
    done(&place, &["prune", "--older-than", "0", "--yes", "--force"]);
    let refs = place.git(&["for-each-ref", "--format=%(refname)", &format!("refs/heads/midturn/{id}")]);
    assert_eq!(refs, "", "a person said so");
}

/// > D13: `prune` says what it will remove and how much, and removes merged branches, folders and old sessions
#[test]
fn what_is_merged_and_what_is_old_is_removed_and_what_somebody_carries_is_not() {
    let place = project();
    let (open, _) = run(&place, &scenario(&["echo 1 > b.txt"], &[]));
    let (merged, _) = run(&place, &scenario(&["echo 2 > c.txt"], &[]));
    done(&place, &["merge", "worker"]);
    let out = done(&place, &["prune", "--yes"]);
    assert!(out.contains(&format!("worker: branch midturn/{merged}/worker; folder ")), "{out}");
    assert!(
        out.contains("\nin all: 1 branch, 1 folder; ") && out.contains("\nremoved: 1 branch, 1 folder; "),
        "{out}"
    );
    let refs = || place.git(&["for-each-ref", "--format=%(refname)", "refs/midturn", "refs/heads/midturn"]);
    assert_eq!(refs(), format!("refs/heads/midturn/{open}/worker\nrefs/midturn/{open}\n"));
    assert!(done(&place, &["sessions"]).contains(&merged), "it is not old");
    assert_eq!(done(&place, &["prune", "--older-than", "1h", "--yes"]), "nothing to remove\n");
    // While somebody carries another one, nothing is taken from under them.
    let mut working = Running::start(&place, &scenario(&["sleep 300"], &[]), &[]);
    working.until("tool_started", &[("agent", "worker")]);
    let (status, _, told) = say(&place, &["sessions", "rm", "last", "--yes", "--force"]);
    assert_eq!((status, told.contains(" is live, so it stays: close it first")), (Some(1), true), "{told}");
    // It removes what it doesn't carry itself: the merged one is old now.
    let out = done(&place, &["prune", "--older-than", "0", "--yes"]);
    assert!(out.contains(&format!("{merged}  the task\n  all that is recorded: ")), "{out}");
    assert!(out.contains("\nremoved: 1 session; "), "{out}");
    working.signal("INT");
    working.end();
    // It has work to go on with.
    done(&place, &["prune", "--older-than", "0", "--yes"]);
    let kept = done(&place, &["sessions"]);
    assert!(kept.contains(&open) && !kept.contains(&merged) && kept.lines().count() >= 3, "{kept}");
}

/// A daemon removes what it doesn't carry, and of what it carries only what is closed.
#[test]
fn the_process_that_holds_the_store_removes_what_nobody_carries() {
    let place = project();
    let (open, _) = run(&place, &scenario(&["echo 1 > b.txt"], &[]));
    let (unsaved, _) = run(&place, &scenario(&["true"], &[]));
    place.write(&format!("state/midturn/worktrees/{unsaved}/worker/late.txt"), "late\n");
    let _serving = Serving::start(&place);
    let (live, _) = run(&place, &scenario(&["echo 2 > c.txt"], &[]));
    let (status, out, told) = say(&place, &["sessions", "rm", &live, &open, "--yes"]);
    assert_eq!(
        (status, told.contains(&format!("session {live} is live, so it stays"))),
        (Some(1), true),
        "{told}"
    );
    assert!(out.contains("\nremoved: 1 session, 1 folder; "), "{out}");
    let (status, out, told) = say(&place, &["sessions", "rm", &unsaved, "--yes"]);
    assert_eq!((status, told.contains("is on no branch")), (Some(1), true), "{out}{told}");
    done(&place, &["sessions", "rm", &unsaved, "--yes", "--force"]);
    let kept = done(&place, &["sessions"]);
    assert!(kept.contains(&live) && !kept.contains(&open) && !kept.contains(&unsaved), "{kept}");
    done(&place, &["close", "lead", "--session", &live]);
    done(&place, &["merge", "worker", "--session", &live]);
    let out = done(&place, &["sessions", "rm", "last", "--yes"]);
    assert!(out.contains("\nremoved: 1 session, 1 branch, 1 folder; "), "{out}");
    assert_eq!(there(&place, "state/midturn/worktrees"), Vec::<String>::new());
    assert!(done(&place, &["sessions"]).contains("no session is kept"));
}
