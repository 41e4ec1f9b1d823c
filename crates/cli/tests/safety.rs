//! Modes, sandboxes, prices and `midturn doctor` as a person meets them: the real binary.

#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

mod common;
#[path = "../../../tests/needs.rs"]
mod needs;

use std::os::unix::fs::PermissionsExt;

use common::{Place, Running};
use needs::has_place_apart;
use serde_json::Value;

/// A lead that runs one command and ends.
fn scenario(command: &str) -> String {
    format!(
        "midturn: 1\nname: x\nagents:\n  - name: lead\n    role: lead\n    model:\n      - tools:\n          \
         - {{id: b, name: bash, input: {{command: \"{command}\"}}}}\n      - text: Done.\n"
    )
}

fn said(place: &Place, words: &[&str], env: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let said = place.midturn("repo", words).envs(env.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (said.status.code(), text(said.stdout), text(said.stderr))
}

/// A folder for `PATH` in which these programs are, and nothing else; in no folder where everybody
/// can write, since no program of ours is taken from there.
fn path_with(programs: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = std::env::var("PATH").unwrap();
    for program in programs {
        let found =
            std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.exists());
        std::os::unix::fs::symlink(found.unwrap(), folder.path().join(program)).unwrap();
    }
    folder
}

/// C5: an agent can write in the project, whose `.venv/bin` is first in the person's `PATH`.
#[test]
fn programs_that_an_agent_could_have_planted_are_not_run_and_that_is_said() {
    let place = Place::new();
    place.write("scenario.yaml", &scenario("true"));
    let planted = |name: &str| {
        let path = place.path("repo/.venv/bin").join(name);
        place.write(
            &format!("repo/.venv/bin/{name}"),
            &format!("#!/bin/sh\necho {name} >> {}\nexit 1\n", place.path("ran").display()),
        );
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    };
    let planted = ["bwrap", "git", "sh"].map(planted);
    let path = format!("{}:{}", place.path("repo/.venv/bin").display(), std::env::var("PATH").unwrap());
    for words in [&["run", "x"][..], &["doctor"]] {
        let (status, text, told) = said(&place, &[words, &MODEL].concat(), &[("PATH", &path)]);
        assert_eq!(status, Some(0), "{text}{told}");
        assert!(!place.path("ran").exists(), "{:?} ran", std::fs::read_to_string(place.path("ran")));
        for planted in &planted {
            let expected = format!("`{}` is not used", planted.display());
            assert!(format!("{text}{told}").contains(&expected), "{expected}: {text}{told}");
        }
    }
}

const MODEL: [&str; 2] = ["--model", "scripted:../scenario.yaml"];

#[test]
fn the_start_says_what_holds() {
    for (flags, config, expected) in [
        (&[][..], "", "note: mode auto: agents change files and run commands without asking"),
        (&["--mode", "plan"], "", "note: mode plan: agents read, and change nothing"),
        (
            &[],
            "approvals.mode = 'ask'",
            "note: mode ask: agents ask before they change files or run commands",
        ),
        (&["--no-sandbox"], "", "note: no sandbox: commands can do all that you can"),
        (&["--set", "sandbox.tier=landlock"], "", "note: sandbox: "),
        (
            &[],
            "approvals.allow = [\n'bash']",
            "midturn.toml:1: `approvals.allow` is not taken from a project's file",
        ),
        (&[], "approvals.deny = ['read',\n'read(x)']", "midturn.toml:2) adds nothing"),
    ] {
        let place = Place::new();
        place.write("scenario.yaml", &scenario("true"));
        place.write("repo/midturn.toml", config);
        let words = [&["run", "x"], &MODEL[..], flags].concat();
        let (status, _, told) = said(&place, &words, &[]);
        assert!(status == Some(0) && told.contains(expected), "{expected}\n{status:?} {told}");
    }
}

#[test]
fn without_a_sandbox_nothing_runs_unasked_unless_a_person_says_so() {
    if !has_place_apart() {
        return;
    }
    let place = Place::new();
    place.write("scenario.yaml", &scenario("echo hi > out.txt"));
    let programs = path_with(&["git", "bash", "sh"]);
    let path = programs.path().to_str().unwrap();
    let run = |flags: &[&str]| {
        let words = [&["run", "x"], &MODEL[..], flags].concat();
        said(&place, &words, &[("PATH", path)])
    };
    let bubblewrap = ["--set", "sandbox.tier=bubblewrap"];
    let (status, _, told) = run(&bubblewrap);
    assert_eq!(status, Some(2), "{told}");
    for needed in ["there is no `bwrap`", "apt install bubblewrap", "--no-sandbox"] {
        assert!(told.contains(needed), "{needed}: {told}");
    }
    assert!(!place.path("repo/out.txt").exists(), "nothing was begun");
    let (status, listed, _) = said(&place, &["sessions"], &[]);
    assert!(status == Some(0) && listed.starts_with("no session is kept"), "{listed}");
    let (status, _, told) = run(&[&bubblewrap[..], &["--no-sandbox"]].concat());
    assert_eq!(status, Some(0), "{told}");
    assert!(place.path("repo/out.txt").exists());
}

#[test]
fn a_cost_limit_needs_a_price() {
    let place = Place::new();
    place.write("scenario.yaml", &scenario("true"));
    let words = [&["run", "x", "--set", "max_cost=1.5"], &MODEL[..]].concat();
    let (status, _, told) = said(&place, &words, &[]);
    assert_eq!(status, Some(2), "{told}");
    for needed in ["`max_cost` is set (flag --set)", "[models.\"scripted\"]", "US dollars per million"] {
        assert!(told.contains(needed), "{needed}: {told}");
    }
    let prices = ["--set", "models.scripted.input=3.0", "--set", "models.scripted.output=15"];
    let (status, _, told) = said(&place, &[&words[..], &prices].concat(), &[]);
    assert_eq!(status, Some(0), "{told}");
}

#[test]
fn a_resumed_session_keeps_its_mode_and_takes_another() {
    let place = Place::new();
    place.write("scenario.yaml", &scenario("echo hi > out.txt"));
    let words = [&["run", "x", "--mode", "plan"], &MODEL[..]].concat();
    let (status, _, told) = said(&place, &words, &[]);
    assert!(status == Some(0) && told.contains("the mode is `plan`"), "{told}");
    assert!(!place.path("repo/out.txt").exists());
    for (flags, mode) in [(&[][..], "mode plan"), (&["--mode", "ask"], "mode ask")] {
        let (status, _, told) = said(&place, &[&["resume"], flags].concat(), &[]);
        assert!(status == Some(0), "{told}");
        assert!(told.contains("has nothing to go on with") || told.contains(mode), "{told}");
    }
}

#[test]
fn the_doctor_finds_what_is_well_and_what_is_not() {
    let place = Place::new();
    place.write("scenario.yaml", &scenario("true"));
    let (status, text, told) =
        said(&place, &[&["doctor"], &MODEL[..]].concat(), &[("OPENAI_API_KEY", "sk-hidden")]);
    assert_eq!((status, told.as_str()), (Some(0), ""), "{text}");
    for line in [
        "ok      git: ",
        "ok      sandbox: used: ",
        "OPENAI_API_KEY is set",
        "ANTHROPIC_API_KEY is not set",
        "agents can work here",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("sk-hidden"));
    assert!(!place.path("state").exists(), "it changes nothing");

    let words = [&["doctor", "--json"], &MODEL[..]].concat();
    let (status, text, _) = said(&place, &words, &[("PATH", "/nowhere")]);
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &shown["ok"]), (Some(1), &Value::from(false)), "{text}");
    let state = |about: &str| {
        let all = shown["findings"].as_array().unwrap();
        all.iter().find(|finding| finding["about"] == about).unwrap()["state"].clone()
    };
    assert_eq!([state("git"), state("bubblewrap"), state("store")], ["missing", "weak", "ok"]);
}

#[test]
fn the_doctor_tells_how_to_mend_it() {
    for (config, words, expected) in [
        ("max_turns = x", &[][..], "missing configuration: "),
        ("approvals.deny = ['read', 'read(x)']", &[], "midturn.toml:1) adds nothing"),
        ("approvals.deny = ['wob']", &[], "the rule `wob` never holds: there is no such tool"),
        ("sandbox.network = true", &[], "midturn.toml:1: `sandbox.network` is not taken"),
        ("sandbox.network = ['a.example']", &[], "midturn.toml:1: `sandbox.network` is not taken"),
        ("", &["--set", "sandbox.network=0x7f.1"], "it is an address in disguise"),
        ("", &["--set", "sandbox.network=true"], "weak    network: open to commands"),
        ("", &["--no-sandbox"], "weak    sandbox: none, as it is configured"),
        ("", &["--model", "openai/x"], "missing model: "),
        ("", &["--store", "mysql://x"], "missing store: "),
    ] {
        let place = Place::new();
        place.write("repo/midturn.toml", config);
        let (status, text, _) = said(&place, &[&["doctor"], words].concat(), &[]);
        assert!(text.contains(expected), "{expected}\n{text}");
        assert_eq!(status, Some(i32::from(text.contains("missing "))), "{text}");
    }
}

#[test]
fn the_doctor_sees_who_may_look_at_the_token() {
    let place = Place::new();
    place.write("scenario.yaml", &scenario("true"));
    assert_eq!(said(&place, &[&["run", "x"], &MODEL[..]].concat(), &[]).0, Some(0));
    let projects = place.path("state/midturn/projects");
    let project = std::fs::read_dir(projects).unwrap().next().unwrap().unwrap().path();
    std::fs::set_permissions(&project, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (_, text, _) = said(&place, &["doctor"], &[]);
    assert!(text.contains("weak    state: others can look into") && text.contains("-> chmod 700"), "{text}");
    assert!(text.contains("sessions kept: 1"), "{text}");
}

/// C8: a daemon is killed while a command runs that has planted settings; one of them would stop the
/// next start.
#[test]
fn what_a_killed_process_left_is_gone_after_the_next_start() {
    let place = Place::new();
    place.write("repo/known/.vscode/tasks.json", "{}");
    let command = "mkdir -p sub/.vscode known/.idea; echo junk > sub/midturn.toml; touch sub/.vscode/x known/.idea/x; \
                   git init -q inner; git -C inner config core.pager x; echo ready; sleep 600";
    let mut run = Running::start(&place, &scenario(command), &[]);
    run.until("tool_output", &[("tool", "b")]);
    run.signal("KILL");
    run.end();
    // As if it had been writing a file.
    place.write("repo/sub/.midturn-tmp-write-1", "half");
    let is_there = |path: &str| place.path("repo").join(path).exists();
    assert_eq!(["sub/midturn.toml", "sub/.vscode", "known/.idea"].map(is_there), [true; 3]);
    // Nothing stands in for anything in a sandbox without mounts.
    let stood = ["midturn.toml", ".mcp.json", ".claude"].map(is_there);
    assert!(stood == [true; 3] || stood == [false; 3], "{stood:?}");
    if stood[0] {
        // A person comes before the next start, and puts something there.
        place.write("repo/.claude/settings.json", "{}");
    }
    place.write("scenario.yaml", &scenario("true"));
    let words = ["run", "x", "--cwd", "sub", "--model", "scripted:../scenario.yaml"];
    for told_again in [false, true] {
        let (status, _, told) = said(&place, &words, &[]);
        assert_eq!(status, Some(0), "{told}");
        let [file, folder, known] = ["sub/midturn.toml", "sub/.vscode", "known/.idea"];
        let expected = [file, folder, known].map(|path| format!("`{path}` was put aside"));
        assert_eq!(expected.map(|expected| told.contains(&expected)), [!told_again; 3], "{told}");
        assert_eq!(told.contains("`inner/.git/config` has settings"), !told_again, "{told}");
        let gone = ["midturn.toml", ".mcp.json", file, folder, known, "sub/.midturn-tmp-write-1"];
        assert_eq!(gone.map(is_there), [false; 6]);
        assert!(is_there("known/.vscode/tasks.json") && is_there(".claude/settings.json") == stood[0]);
    }
    let records = std::fs::read_dir(place.path("state/midturn/under-way")).unwrap().count();
    let temporary = std::fs::read_dir(place.path("state/midturn/tmp")).unwrap();
    let temporary = temporary.flatten().filter(|session| session.path().join("lead").exists()).count();
    assert_eq!((records, temporary), (0, 0));
}

/// C15: nothing of it is read, and nothing is begun.
#[test]
fn a_state_folder_that_another_user_could_have_filled_stops_every_command_with_what_to_do() {
    let place = Place::new();
    let folder = place.path("state/midturn");
    std::fs::create_dir_all(folder.join("projects")).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let shown = folder.display();
    let says = format!(
        "other users can write into {shown} (mode 777): look whether all that is in it is yours, then `chmod go-w \
         {shown}`, or set XDG_STATE_HOME to a folder that only you can write"
    );
    for words in [
        &["run", "x", "--model", "scripted:x.yaml"][..],
        &["serve"],
        &["resume"],
        &["ps"],
        &["sessions"],
        &["log", "s1"],
        &["doctor"],
    ] {
        let (status, text, errors) = said(&place, words, &[]);
        assert_eq!(status, Some(1), "{words:?}: {errors}");
        assert!([text, errors].concat().contains(&says), "{words:?}");
    }
    assert_eq!(std::fs::read_dir(folder.join("projects")).unwrap().count(), 0, "nothing was made");
}
