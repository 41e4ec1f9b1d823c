//! The folders that agents work in, as a person meets them: what agents are told of theirs, how a new one is
//! made ready, what happens where several share one, and what their commits say. The real binary, and a
//! server on loopback in a provider's place, which sees what agents are told.

#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

mod common;
#[path = "../../../tests/needs.rs"]
mod needs;

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use common::Place;
use needs::{Need, has};
use serde_json::{Value, json};

/// A reply of words.
fn words(text: &str) -> String {
    chat(&json!({"content": text}), "stop")
}

/// A reply of calls: name and arguments each.
fn calls(calls: &[(&str, Value)]) -> String {
    let call = |(index, (name, arguments)): (usize, &(&str, Value))| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"index": index, "id": format!("c{index}"), "function": function})
    };
    let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
    chat(&json!({"tool_calls": calls}), "tool_calls")
}

fn chat(delta: &Value, finish: &str) -> String {
    let chunk = json!({"choices": [{"delta": delta, "finish_reason": finish}]});
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

fn bash(command: &str) -> String {
    calls(&[("bash", json!({"command": command}))])
}

/// The lead has a worker do all of it, and waits for it: so requests come in one order.
fn by_a_worker(worker: &[String]) -> Vec<String> {
    let spawn = ("spawn_agent", json!({"name": "worker", "prompt": "Go."}));
    let lead = calls(&[spawn, ("wait_agents", json!({"names": ["worker"]}))]);
    [&[lead][..], worker, &[words("All done.")]].concat()
}

/// A run that has ended: its status, what people were told, and each request.
struct Ended {
    status: Option<i32>,
    told: String,
    requests: Vec<Value>,
}

impl Ended {
    /// What an agent was told of itself in a request.
    fn system(&self, request: usize) -> &str {
        self.requests[request]["messages"][0]["content"].as_str().unwrap()
    }

    /// The result that is last in a request.
    fn result(&self, request: usize) -> &str {
        let messages = self.requests[request]["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].as_str().unwrap()
    }
}

/// Answers as many requests as there are replies, one after the other.
fn server(replies: Vec<String>) -> (String, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answered = std::thread::spawn(move || {
        let next = |reply: String| {
            common::until_ready(&listener, "a request");
            answer(&listener.accept().unwrap().0, &reply)
        };
        replies.into_iter().map(next).collect()
    });
    (url, answered)
}

fn answer(stream: &TcpStream, reply: &str) -> Value {
    let (_, body) = common::request(stream);
    let mut stream = stream;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close";
    write!(stream, "{head}\r\n\r\n{reply}").unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// Runs in `folder` with these replies; `config` stands in the person's own file.
fn run_in(place: &Place, folder: &str, config: &str, more: &[&str], replies: Vec<String>) -> Ended {
    let (url, answered) = server(replies);
    let provider = format!("[providers.north]\ndialect = 'chat'\nbase_url = '{url}'\n");
    place.write("config/midturn/midturn.toml", &format!("model = 'north/m'\n{config}\n{provider}"));
    let said = place.midturn(folder, &["run", "the task", "--once"]).args(more).output().unwrap();
    let told = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(0), "{told}");
    Ended { status: said.status.code(), told, requests: answered.join().unwrap() }
}

fn run(place: &Place, config: &str, replies: Vec<String>) -> Ended {
    run_in(place, "repo", config, &[], replies)
}

/// A repository with a commit.
fn begun() -> Place {
    let place = Place::new();
    place.write("repo/a.txt", "one\n");
    place.write("repo/.gitignore", "node_modules/\n.env*\nmade.txt\nout\n");
    commit(&place);
    place
}

fn commit(place: &Place) {
    place.git(&["add", "."]);
    place.git(&["commit", "--quiet", "--message", "begin"]);
}

/// Where a text stands first.
fn at(text: &str, part: &str) -> usize {
    text.find(part).unwrap_or_else(|| panic!("{part:?} is not in:\n{text}"))
}

/// > D16: An agent is told the date, the system, the branch, the state of git and the sandbox
#[test]
fn an_agent_is_told_where_it_works() {
    let place = begun();
    place.write("repo/new.txt", "x");
    let replies = by_a_worker(&[bash("true"), words("Done.")]);
    let ended = run(&place, "sandbox.writable = ['/var/tmp']", replies);
    let date = std::process::Command::new("date").args(["+%-d %b %Y"]).env("LC_ALL", "C").output().unwrap();
    let date = String::from_utf8(date.stdout).unwrap();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let folder = place.path("repo").canonicalize().unwrap();
    let branch = place.git(&["branch", "--list", "--format=%(refname:short)", "midturn/*/worker"]);
    let of_lead = [
        folder.to_str().unwrap(),
        "on the branch `main`, with 1 changed file as you begin",
        "The person may work here",
    ];
    let of_worker = [&format!("on the branch `{}` from commit ", branch.trim()), ", clean as you begin"];
    for (request, parts) in [(0, &of_lead[..]), (1, &of_worker)] {
        let system = ended.system(request);
        for part in [date.trim(), kernel.trim(), "in /var/tmp", "have no network"].iter().chain(parts) {
            at(system, part);
        }
    }
    assert!(ended.system(1).contains("/worker. Paths are relative to it"), "{}", ended.system(1));
    // The provider's cache holds it.
    assert_eq!(ended.system(1), ended.system(2));
    assert_eq!(ended.system(0), ended.system(3));
    let bare = run_in(&place, "repo", "", &["--no-sandbox"], vec![words("Done.")]);
    at(bare.system(0), "No sandbox holds your commands");
}

/// > D9: Who shares a folder is told before the first agent starts, and so is the person
#[test]
fn agents_that_share_a_folder_are_told_and_so_is_the_person() {
    let outside = |place: &Place| std::fs::create_dir(place.path("plain")).unwrap();
    let bare = |place: &Place| _ = place.git(&["init", "--quiet", "--bare", "../bare"]);
    let foreign = |place: &Place| chown(place.path("repo"), Some(12_345), None).unwrap();
    let (nothing, root) = (|_: &Place| {}, rustix::process::geteuid().is_root());
    type Row<'a> = (&'a str, &'a str, &'a dyn Fn(&Place), &'a str);
    let rows: [Row<'_>; 4] = [
        ("plain", "", &outside, "it is not in a git repository"),
        ("bare", "", &bare, "work tree"),
        ("repo", "", &foreign, "dubious ownership"),
        ("repo", "agents.isolation = 'none'", &nothing, "`agents.isolation` is `none`"),
    ];
    for (folder, config, make, why) in rows {
        // Only root can give a folder away.
        if why.contains("ownership") && !root {
            continue;
        }
        let place = begun();
        make(&place);
        let ended = run_in(&place, folder, config, &[], by_a_worker(&[words("Done.")]));
        let told = "note: all agents work in this one folder";
        let told = at(&ended.told, told);
        assert!(told < at(&ended.told, "lead: "), "{}", ended.told);
        at(&ended.told[told..], why);
        for request in [0, 1] {
            let system = ended.system(request);
            at(&system[at(system, "All agents of this session work in this one folder")..], why);
        }
    }
    let place = begun();
    let apart = run(&place, "", by_a_worker(&[words("Done.")]));
    assert!(!apart.told.contains("one folder") && !apart.system(0).contains("one folder"), "{}", apart.told);
}

/// > D9: An edit of a file that somebody else changed since it was read is refused, and says so
#[test]
fn an_edit_of_a_file_that_another_agent_changed_is_refused_until_it_is_read_again() {
    let place = begun();
    let edit = |old: &str, new: &str| ("edit", json!({"path": "a.txt", "old": old, "new": new}));
    let read = ("read", json!({"path": "a.txt"}));
    let whole = ("write", json!({"path": "a.txt", "content": "mine\n"}));
    let spawn = ("spawn_agent", json!({"name": "worker", "prompt": "Go."}));
    let wait = ("wait_agents", json!({"names": ["worker"]}));
    let replies = vec![
        calls(&[read.clone(), spawn, wait]),
        calls(&[edit("one", "two of the worker")]),
        words("Done."),
        calls(&[whole]),
        calls(&[edit("two", "three")]),
        calls(&[read]),
        calls(&[edit("two", "three")]),
        // What its own command changes it knows.
        bash("echo more >> a.txt"),
        calls(&[edit("more", "four")]),
        words("All done."),
    ];
    let ended = run(&place, "agents.isolation = 'none'", replies);
    for request in [4, 5] {
        let result = ended.result(request);
        at(
            result,
            "`a.txt` was changed by `worker` since you read it, so nothing was written: read it again",
        );
    }
    at(ended.result(7), "Edited a.txt");
    at(ended.result(9), "Edited a.txt");
    assert_eq!(std::fs::read_to_string(place.path("repo/a.txt")).unwrap(), "three of the worker\nfour\n");
}

/// > D9: Submodules are there in an agent's folder, or it is said that they are not
#[test]
fn submodules_are_there_in_an_agents_folder_or_it_is_said_that_they_are_not() {
    let place = begun();
    place.git(&["clone", "--quiet", ".", "../library"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../library", "sub"];
    place.git(&add);
    commit(&place);
    let worker = [bash("cat sub/a.txt"), words("Done.")];
    let ended = run(&place, "", by_a_worker(&worker));
    assert_eq!(ended.result(2), "one\n");
    assert!(!ended.told.contains("submodules are empty"), "{}", ended.told);
    // A clone that nobody filled.
    place.git(&["clone", "--quiet", ".", "../clone"]);
    let ended = run_in(&place, "clone", "", &[], by_a_worker(&worker));
    let said = "submodules are empty in the worktree: sub (the project has nothing of it either)";
    assert!(at(&ended.told, &format!("worker: {said}")) < at(&ended.told, "worker: bash"), "{}", ended.told);
    at(ended.system(1), said);
}

/// > D14: A commit carries the person's identity, its agent's name in a trailer, and a subject from the agent's last words
#[test]
fn a_commit_is_the_persons_names_its_agent_and_says_what_the_agent_said() {
    let person = "[user]\nname = A Person\nemail = person@example.org\n";
    let worker = [bash("echo two > b.txt"), words("## Added the **second** file.\n\nAnd more of it.")];
    let commit = calls(&[("commit", json!({"message": "Third file", "paths": ["c.txt"]}))]);
    let mut replies = by_a_worker(&worker);
    replies.splice(3..3, [bash("echo three > c.txt"), commit]);
    let subject = "Added the **second** file.";
    let (whose, agents) = ("A Person <person@example.org>", "worker <worker@midturn.invalid>");
    for (known, config, author, trailer) in [
        (person, "", whose, "Midturn-Agent: "),
        (person, "folder.trailer = false", whose, ""),
        ("", "", agents, "Midturn-Agent: "),
    ] {
        let place = begun();
        place.write("home/.gitconfig", known);
        run(&place, config, replies.clone());
        let branch = place.git(&["branch", "--list", "--format=%(refname:short)", "midturn/*/worker"]);
        let log = |of: &str, form: &str| {
            place.git(&["log", "-1", &format!("--format={form}"), of]).trim().to_owned()
        };
        let [of_worker, of_lead] = ["worker", "lead"].map(|agent| match trailer {
            "" => String::new(),
            trailer => format!("{trailer}{agent}"),
        });
        assert_eq!(log(branch.trim(), "%an <%ae>%n%cn <%ce>"), format!("{author}\n{author}"));
        assert_eq!(log(branch.trim(), "%s%n%(trailers)"), format!("{subject}\n{of_worker}").trim());
        assert_eq!(log("main", "%s%n%(trailers)"), format!("Third file\n{of_lead}").trim());
    }
}

#[test]
fn a_setup_makes_a_new_folder_ready_before_the_agents_first_call() {
    let place = begun();
    let config = "folder.setup = 'echo building; echo made in $PWD > made.txt'";
    let worker = [bash("cat made.txt"), words("Done.")];
    let ended = run(&place, config, by_a_worker(&worker));
    assert!(ended.result(2).starts_with("made in ") && ended.result(2).contains("/worker"), "{}", ended.told);
    let done = at(&ended.told, "worker: the setup `echo building;");
    at(&ended.told[..done], "worker $ building\n");
    assert!(done < at(&ended.told, "worker: bash"), "{}", ended.told);
    assert!(!place.path("repo/made.txt").exists(), "the lead's is the project folder, and is as it was");
}

#[test]
fn a_setup_that_fails_or_hangs_is_told_to_agent_and_person_and_the_agent_starts() {
    for (setup, more, says) in [
        ("echo no such package >&2; exit 3", "", "exit status 3"),
        ("echo begun; sleep 600", "folder.setup_time = '1s'", "`folder.setup_time` gives it longer"),
        ("touch /etc/midturn-was-here", "", "touch"),
    ] {
        let place = begun();
        let config = format!("folder.setup = '{setup}'\n{more}");
        let ended = run(&place, &config, by_a_worker(&[bash("echo here"), words("Done.")]));
        let failed = format!("the setup `{setup}` failed");
        let told = at(&ended.told, &format!("worker: {failed}"));
        assert!(told < at(&ended.told, "worker: bash"), "{}", ended.told);
        at(&ended.told[told..], says);
        let system = ended.system(1);
        at(&system[at(system, &failed)..], says);
        assert_eq!(ended.result(2), "here\n");
    }
}

#[test]
fn a_setup_that_came_with_the_project_is_a_command_of_an_agents() {
    let allow = "approvals.allow = ['bash(echo *)']";
    for (config, more, runs) in [
        ("", &[][..], true),
        ("approvals.deny = ['bash(echo *)']", &[], false),
        ("", &["--mode", "accept-edits"], false),
        (allow, &["--mode", "accept-edits"], true),
    ] {
        let place = begun();
        place.write("repo/midturn.toml", "[folder]\nsetup = 'echo from the project'\n");
        commit(&place);
        let ended = run_in(&place, "repo", config, more, by_a_worker(&[words("Done.")]));
        let refused = "the setup `echo from the project` of ";
        assert_eq!(ended.told.contains("worker $ from the project"), runs, "{more:?}: {}", ended.told);
        assert_eq!(ended.told.contains(&format!("note: {refused}")), !runs, "{more:?}: {}", ended.told);
    }
}

#[test]
fn what_a_person_names_is_copied_and_what_a_project_names_is_not() {
    let place = begun();
    place.write("repo/node_modules/m/index.js", "x");
    place.write("repo/node_modules/m/.env", "SECRET=1");
    place.write("repo/.env.local", "KEY=1");
    std::os::unix::fs::symlink("/etc", place.path("repo/out")).unwrap();
    let look = "find . -path ./.git -prune -o -type f -print | sort; echo >> node_modules/m/index.js";
    let worker = [bash(look), words("Done.")];
    let config = "folder.copy = ['.env.local', 'node_modules', 'none', 'out', 'a.txt']";
    let ended = run(&place, config, by_a_worker(&worker));
    let files = ["./.env.local", "./.gitignore", "./a.txt", "./node_modules/m/index.js"];
    assert_eq!(ended.result(2).lines().collect::<Vec<_>>(), files, "{}", ended.told);
    assert_eq!(std::fs::read_to_string(place.path("repo/node_modules/m/index.js")).unwrap(), "x");
    for (path, why) in [
        ("none", "it is not in the project folder"),
        ("out", "a link that leads out of the project"),
        ("a.txt", "git doesn't ignore it"),
    ] {
        let said = format!("`{path}` was not copied into the folder: ");
        for told in [ended.told.as_str(), ended.system(1)] {
            at(&told[at(told, &said)..], why);
        }
    }
    at(&ended.told, "node_modules/m/.env (it may hold keys");
    let small = run(&place, &format!("{config}\nfolder.copy_max = 3"), by_a_worker(&[words("Done.")]));
    at(&small.told, "raise `folder.copy_max`, or have `folder.setup` make it");

    place.write("repo/midturn.toml", "[folder]\ncopy = ['.env.local']\nbase = '/var/tmp/theirs'\n");
    commit(&place);
    let ended = run(&place, "", by_a_worker(&[bash("ls -A"), words("Done.")]));
    assert!(!ended.result(2).contains(".env.local"), "{}", ended.result(2));
    for key in ["folder.copy", "folder.base"] {
        at(&ended.told, &format!("`{key}` is not taken from a project's file"));
    }
}

/// What doesn't fit is said before the agent starts, and nothing half copied is left.
#[test]
fn a_full_disk_is_said_before_the_agent_starts() {
    let place = begun();
    let disk = place.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let options = ["-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs"];
    let mounted = Command::new("mount").args(options).arg(&disk).stderr(Stdio::null()).status();
    if !has(Need::Mount, mounted.is_ok_and(|status| status.success())) {
        return;
    }
    place.write("repo/node_modules/m.bin", &"x".repeat(6 << 20));
    let config =
        format!("folder.copy = ['node_modules']\nfolder.base = '{}'", disk.join("folders").display());
    let ended = run(&place, &config, by_a_worker(&[bash("ls"), words("Done.")]));
    let unmounted = Command::new("umount").arg("--lazy").arg(&disk).status().unwrap();
    assert!(unmounted.success());
    let said = "`node_modules` was not copied into the folder: `node_modules/m.bin`: the disk is full";
    assert!(at(&ended.told, said) < at(&ended.told, "worker: bash ls"), "{}", ended.told);
    at(ended.system(1), said);
    assert!(
        ended.result(2).starts_with("a.txt") && !ended.result(2).contains("node_modules"),
        "{}",
        ended.result(2)
    );
}

#[test]
fn folders_lie_where_a_person_says_and_never_in_the_project() {
    let place = begun();
    let base = place.path("disk/folders");
    let config = format!("folder.base = '{}'", base.display());
    let ended = run(&place, &config, by_a_worker(&[bash("pwd"), words("Done.")]));
    let base = base.canonicalize().unwrap();
    assert!(ended.result(2).starts_with(base.to_str().unwrap()), "{}", ended.result(2));
    for (base, says) in [
        (place.path("repo/folders"), "is in the project, or holds it"),
        (place.path(""), "is in the project, or holds it"),
        ("folders".into(), "expected a path that begins with / or ~/"),
    ] {
        let set = format!("folder.base={}", base.display());
        let words = ["run", "x", "--model", "north/m", "--set", &set];
        let said = place.midturn("repo", &words).output().unwrap();
        let told = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(2), "{told}");
        at(&told, says);
    }
    assert_eq!(ended.status, Some(0));
}
