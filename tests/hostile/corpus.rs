//! The hostile programs and what is expected of each. The limits are those of
//! `sandbox::TreeLimits`: 512 processes, 2 GiB of memory, 1 GiB in a file, 1,024 open files.

use serde_json::json;

use crate::case::{Bare, Case, Expect, bash, python, shell};

/// How many megabytes of memory a program may get: the limit and what was under way when it was met.
const MEMORY: u64 = (2 << 10) + 512;

/// All of them. Those of one kind run beside each other, but for those that want to be alone.
pub(crate) fn corpus() -> Vec<Case> {
    [processes(), greed(), files(), tools(), kernel(), secrets(), git(), settings(), attacks()].concat()
}

/// Some that do get out where there is no sandbox; what they do is easily seen, and harms nothing.
pub(crate) fn seen() -> Vec<Case> {
    let cases = [python("writes-outside", "write_outside.py {outside}"), python("secrets", "secrets.py")];
    cases.into_iter().map(|case| case.bare(Bare::Holds)).collect()
}

/// Processes that don't want to end (invariant 9).
fn processes() -> Vec<Case> {
    vec![
        python("orphans", "orphans.py").bare(Bare::Holds).says("it left running"),
        shell("stubborn", "stubborn.sh").bare(Bare::Holds).timeout(1.0).says("Timed out"),
        python("nameless", "nameless.py").bare(Bare::Holds).timeout(1.0).says("Timed out"),
        shell("stopped", "stopped.sh").bare(Bare::Holds).timeout(1.0).says("Timed out"),
        shell("holds-pipe", "holds_pipe.sh").bare(Bare::Holds).says("it left running"),
        python("relay", "relay.py").bare(Bare::Holds).timeout(1.5).says("Timed out"),
        python("ends-its-supervisor", "supervisor.py kill").timeout(2.0).says("Timed out"),
        python("stops-its-supervisor", "supervisor.py stop").timeout(2.0).says("Timed out"),
    ]
}

/// Programs that take what they can get.
fn greed() -> Vec<Case> {
    let hungry = |case: Case| case.alone().bare(Bare::Holds);
    vec![
        hungry(python("fork-bomb", "fork_bomb.py")).timeout(4.0).expect(Expect::TreeReached(512)),
        hungry(python("threads", "threads.py")).expect(Expect::TreeReached(512)),
        python("memory", "memory.py 1").alone().expect(Expect::Reached(MEMORY)),
        python("memory-shared", "memory.py 1 shared").alone().expect(Expect::Reached(MEMORY)),
        python("memory-of-many", "memory.py 8").alone().expect(Expect::Reached(MEMORY)),
        python("memory-without-a-head", "memory.py 1 shared headless")
            .alone()
            .expect(Expect::Reached(MEMORY)),
        hungry(python("disk", "disk.py")).expect(Expect::Reached(1 << 10)),
        python("shared-memory", "in_memory.py /dev/shm").alone().expect(Expect::Reached(512)),
        hungry(python("open-files", "open_files.py")).expect(Expect::Reached(1 << 10)),
        hungry(bash("yes", "yes")).timeout(3.0).says("y\ny\n").says("Timed out"),
        hungry(bash("a-line-of-1-gib", "head -c 1073741824 /dev/zero | tr '\\0' x"))
            .timeout(60.0)
            .says("xxxx")
            .expect(Expect::IsError(false)),
        hungry(bash("noise", "head -c 67108864 /dev/urandom")).timeout(60.0).expect(Expect::IsError(false)),
    ]
}

/// Ways out of the worktree.
fn files() -> Vec<Case> {
    vec![
        python("writes-outside", "write_outside.py"),
        python("writes-outside-as-lead", "write_outside.py / {main}").lead(),
        python("doors-of-proc", "proc_doors.py"),
        python("inherited", "inherited.py"),
        python("devices", "devices.py"),
        python("namespaces", "namespaces.py"),
        python("privileges", "privileges.py"),
        python("programs-of-its-owner", "as_owner.py"),
    ]
}

/// The coordinator's own tools, led on by links, pipes and names.
fn tools() -> Vec<Case> {
    let write = |path: &str| json!({"path": path, "content": "hostile\n"});
    // A link may be replaced by a file; what it names stays.
    let replaced =
        "ln -s {outside}/canary.txt file; ln -s {outside}/new new; ln {outside}/canary.txt hard; echo done";
    let replaced = bash("links-replaced", replaced).says("done").expect(Expect::OthersEnd);
    let names = python("names", "names.py").merged().bare(Bare::Holds).expect(Expect::OthersEnd);
    // A name of two lines (C18): the second looks like a find in a file that isn't there.
    let forged =
        bash("names-that-forge", "printf 'hostile\\n' >$'x\\nforged.rs:1: hostile'; echo done").says("done");
    // `~` is no folder of this name, nor the home; what stands for a secret is no text to be written (C19).
    let home = json!({"path": "~/by-tool", "content": "hostile\n"});
    let marked = json!({"path": "key.txt", "content": "[redacted: ANTHROPIC_API_KEY]\n"});
    vec![
        ["forged.rs:1: hostile", "forged.rs:1:hostile"].into_iter().fold(
            forged
                .bare(Bare::Holds)
                .then("grep", json!({"pattern": "hostile"}))
                .then("glob", json!({"pattern": "**/*"})),
            |case, line| case.expect(Expect::OthersHaveNoLine(line)),
        ),
        bash("by-tilde-and-mark", "cat key.txt; echo done")
            .bare(Bare::Holds)
            .says("[redacted: ANTHROPIC_API_KEY]")
            .expect(Expect::OthersRefused)
            .then("write", home)
            .then("read", json!({"path": "~/.ssh/id_ed25519"}))
            .then(
                "edit",
                json!({"path": "src/lib.rs", "old": "fn f() {}", "new": "[redacted: ANTHROPIC_API_KEY]"}),
            )
            .then("write", marked),
        followed(shell("links", "links_out.sh {outside} {outside}/canary.txt {home}/.ssh/id_ed25519")),
        followed(shell(
            "links-made",
            "links_out.sh {outside} {outside}/canary.txt {home}/.ssh/id_ed25519 only-made",
        ))
        .bare(Bare::Holds),
        ["file", "new", "hard"].iter().fold(replaced, |case, path| case.then("write", write(path))),
        names
            .then("glob", json!({"pattern": "**/bottom"}))
            .then("grep", json!({"pattern": "hostile"}))
            // Whoever removes the folders later can't go so deep.
            .then("bash", json!({"command": "rm -rf d"})),
    ]
}

/// Every tool that takes a path is led out by every link, and refuses.
fn followed(case: Case) -> Case {
    let written = [
        "folder/by-tool",
        "folder-by-proc/by-tool",
        "deep/er/there/by-tool",
        "pipe",
        "loop",
        "{outside}/by-tool",
    ];
    let written = written.iter().chain(&[
        "../by-tool",
        "/proc/self/cwd/by-tool",
        "{main}/by-tool",
        ".git/hooks/by-tool",
    ]);
    let edited = ["folder/canary.txt", "{outside}/canary.txt", "deep/er/there/canary.txt"];
    let read =
        ["secret", "by-proc", "pipe", "{home}/.ssh/id_ed25519", "/proc/self/environ", "folder/canary.txt"];
    let calls = written.map(|path| ("write", json!({"path": path, "content": "hostile\n"})));
    let calls = calls.chain(
        edited.iter().map(|path| ("edit", json!({"path": path, "old": "as it was", "new": "hostile"}))),
    );
    let calls = calls.chain(read.iter().map(|path| ("read", json!({"path": path}))));
    let searches = [
        ("grep", json!({"pattern": "as it was", "path": "folder"})),
        ("glob", json!({"pattern": "*", "path": "folder"})),
    ];
    calls
        .chain(searches)
        .fold(case.expect(Expect::OthersRefused), |case, (tool, input)| case.then(tool, input))
}

/// Ways around the sandbox.
fn kernel() -> Vec<Case> {
    vec![
        python("kernel-doors", "kernel_doors.py"),
        python("left-in-the-kernel", "ipc.py"),
        python("network", "network.py"),
        bash("types-into-the-terminal", "exec 3<>/dev/tty && echo escaped: a terminal; tty; echo done")
            .says("done"),
    ]
}

fn secrets() -> Vec<Case> {
    vec![
        python("secrets", "secrets.py"),
        shell("spy", "spy.sh").bare(Bare::Holds),
        python("secrets-as-lead", "secrets.py").lead(),
    ]
}

/// Git's folders, which the coordinator's own git reads and writes.
fn git() -> Vec<Case> {
    let bare = |case: Case| case.bare(Bare::NothingIsExecuted).merged();
    let elsewhere = |name: &'static str, words: &'static str| bare(shell(name, words));
    vec![
        elsewhere("git-replaced", "git_elsewhere.sh replaced {evidence}-git-replaced"),
        elsewhere("git-pointed", "git_elsewhere.sh pointed {evidence}-git-pointed"),
        elsewhere("git-linked", "git_elsewhere.sh linked {evidence}-git-linked"),
        elsewhere("git-nested", "git_elsewhere.sh nested {evidence}-git-nested"),
        elsewhere("git-main", "git_elsewhere.sh main {evidence}-git-main"),
        elsewhere("git-neighbour", "git_elsewhere.sh neighbour {evidence}-git-neighbour"),
        elsewhere("git-work-tree", "git_elsewhere.sh work-tree {evidence}-git-work-tree {outside}"),
        bare(python("git-settings", "git_settings.py")),
        // C1 to C3: what the project and other agents have.
        shell("git-objects", "git_objects.sh {main}/.git").merged(),
        python("git-link-index", "git_links.py index"),
        python("git-link-index-lock", "git_links.py index.lock"),
        python("git-link-head", "git_links.py head"),
        python("git-link-head-log", "git_links.py head-log"),
        python("git-link-logs", "git_links.py logs"),
        python("git-link-branch", "git_links.py branch"),
        python("git-link-branch-lock", "git_links.py branch.lock"),
        python("git-link-branch-log", "git_links.py branch-log"),
        python("git-link-branch-folder", "git_links.py branch-folder"),
        python("git-link-branch-log-folder", "git_links.py branch-log-folder"),
        python("git-link-message", "git_links.py message"),
        python("git-link-orig-head", "git_links.py orig-head"),
        python("git-link-merge-head", "git_links.py merge-head"),
        python("git-link-own-index", "git_links.py own-index"),
        python("git-link-folder", "git_links.py folder"),
        python("git-link-objects", "git_links.py objects"),
    ]
}

/// What would be trusted at the next start.
fn settings() -> Vec<Case> {
    let written = |path: &str| json!({"path": path, "content": "x = 1\n"});
    let planted = bash("planted-by-tools", "echo done").lead().says("done").expect(Expect::OthersRefused);
    let planted = [
        "midturn.toml",
        ".claude/agents/evil.md",
        ".git/hooks/pre-commit",
        ".git/config.worktree",
        "src/../midturn.toml",
    ]
    .iter()
    .fold(planted, |case, path| case.then("write", written(path)));
    // More than are found in one look (C7).
    let many = "mkdir many; for n in $(seq 400); do mkdir -p many/$n/.vscode; echo {} >many/$n/.vscode/tasks.json; done; echo done";
    let many = bash("planted-many", many).lead().says("done").expect(Expect::OthersRefused);
    let is_left = json!({"command": "find many -name .vscode | grep -q .; left=$?; rm -rf many; exit $left"});
    let visited = |name: &'static str, words: &'static str| shell(name, words).lead().visited();
    let committed = json!({"message": "All"});
    // Junk in a subfolder stopped the next start (C8).
    let below = "mkdir -p below/.idea; echo junk >below/midturn.toml; echo {} >below/.mcp.json; echo done";
    let below = bash("planted-below", below).lead().says("done").expect(Expect::OthersRefused);
    let left_below = json!({"command": "ls -A below | grep -q .; left=$?; rm -rf below; exit $left"});
    vec![
        // C4: what a person's next git would obey.
        visited("for-a-person-replace", "git_as_lead.sh replace {evidence}-for-a-person-replace"),
        visited("for-a-person-include", "git_as_lead.sh include {evidence}-for-a-person-include"),
        visited("for-a-person-hooks", "git_as_lead.sh hooks {evidence}-for-a-person-hooks"),
        visited("for-a-person-gitlink", "git_as_lead.sh gitlink {evidence}-for-a-person-gitlink"),
        visited("for-a-person-bare", "git_as_lead.sh bare {evidence}-for-a-person-bare"),
        visited("for-a-person-committed", "git_as_lead.sh gitlink {evidence}-for-a-person-committed")
            .then("commit", committed),
        python("planted", "planted.py").lead(),
        below.then("bash", left_below),
        // An editor, and git, save by renaming, which takes a mount away.
        python("replaced", "replaced.py kept/midturn.toml").lead().replaced("kept/midturn.toml"),
        python("replaced-git", "replaced.py .git/config").lead().replaced(".git/config"),
        many.then("bash", is_left),
        planted.then(
            "edit",
            json!({"path": ".git/config", "old": "[core]", "new": "[core]\n\tfsmonitor = ./evil"}),
        ),
    ]
}

/// What may end the daemon, so it comes last.
fn attacks() -> Vec<Case> {
    vec![python("daemon", "daemon.py").alone(), python("daemon-as-lead", "daemon.py").alone().lead()]
}
