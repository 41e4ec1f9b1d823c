//! The work tools as a model meets them: arguments, results, bounds, errors.
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use midturn_core::engine::ports::{Output, Workplace as _};
use midturn_core::rules::approval::{Effect, Policy, Rule};
use midturn_tools::Limits;
use serde_json::{Value, json};
use support::{Tools, name};

async fn tools() -> Tools {
    Tools::new(Limits::default()).await
}

#[tokio::test]
async fn arguments_that_do_not_fit_say_what_was_wrong_and_where() {
    let tools = tools().await;
    let rows = [
        ("bash", json!({}), "missing field `command`"),
        ("bash", json!({"command": 3}), "`command`: invalid type: integer `3`, expected a string"),
        ("bash", json!({"command": "true", "timeout": "1s"}), "`timeout`: invalid type"),
        (
            "bash",
            json!({"command": "true", "timeout": 120_000}),
            "`timeout`: 120000 is not between 0 and 600 seconds",
        ),
        ("bash", json!({"command": "true", "timeout": 0}), "is not between"),
        ("read", json!({"path": "a", "offset": -1}), "`offset`"),
        ("read", json!([]), "The arguments of read don't fit"),
        ("edit", json!({"path": "a", "old": "b"}), "missing field `new`"),
        ("write", json!({"content": ""}), "missing field `path`"),
        ("grep", json!({"pattern": "("}), "`pattern` is not a regular expression"),
        ("glob", json!({"pattern": "["}), "`pattern` is not a glob pattern"),
        ("grep", json!({"pattern": "a", "glob": "["}), "`glob` is not a glob pattern"),
    ];
    for (tool, input, says) in rows {
        let output = tools.call(tool, input.clone()).await;
        assert!(output.is_error && output.text.contains(says), "{tool} {input}: {}", output.text);
    }
}

/// F5: models write arguments that other programs' tools of the same name have.
#[tokio::test]
async fn arguments_that_a_tool_does_not_know_are_ignored_and_the_result_says_so() {
    let tools = tools().await;
    std::fs::write(tools.folder.path().join("a"), "x\n").unwrap();
    let rows = [
        ("bash", json!({"command": "echo x", "description": "Says x"}), "x"),
        (
            "bash",
            json!({"command": "echo x", "cwd": "/", "run_in_background": true}),
            "x\n[Ignored, since bash has no such argument: `cwd`, `run_in_background`]",
        ),
        (
            "bash",
            json!({"command": "echo x; exit 1", "cwd": "/"}),
            "x\n[exit status 1]\n[Ignored, since bash has no such argument: `cwd`]",
        ),
        (
            "read",
            json!({"path": "a", "pages": 2}),
            "     1\tx\n[Ignored, since read has no such argument: `pages`]",
        ),
        (
            "glob",
            json!({"pattern": "a", "sort": {"by": "name"}}),
            "a\n[Ignored, since glob has no such argument: `sort`]",
        ),
    ];
    for (tool, input, expected) in rows {
        assert_eq!(tools.call(tool, input.clone()).await.text.trim_end(), expected, "{tool} {input}");
    }
}

/// A20: a name that there is no tool of is nobody's, least of all bash's.
#[tokio::test]
async fn a_name_gives_the_tool_of_that_name_and_no_other() {
    let tools = tools().await;
    let offered: Vec<_> = tools.toolbox.specs().iter().map(|spec| spec.name.to_string()).collect();
    assert_eq!(offered, ["bash", "edit", "glob", "grep", "read", "write"]);
    for name in &offered {
        assert_eq!(tools.offered_as(name).as_ref(), Some(name));
    }
    for unknown in ["Bash", "bas", "", "sh", "spawn_agent"] {
        assert_eq!(tools.offered_as(unknown), None, "{unknown}");
    }
}

#[tokio::test]
async fn readers_are_safe_and_edits_name_their_file_however_it_is_written() {
    let tools = tools().await;
    for (tool, safe) in
        [("read", true), ("grep", true), ("glob", true), ("bash", false), ("edit", false), ("write", false)]
    {
        assert_eq!(tools.traits(tool, json!({})).safe, safe, "{tool}");
    }
    let absolute = tools.folder.path().canonicalize().unwrap().join("src/a.rs");
    let written = ["src/a.rs", "./src/a.rs", "src//b/../a.rs", absolute.to_str().unwrap()];
    for path in written {
        for input in [json!({"path": path}), json!({"file_path": path})] {
            assert_eq!(tools.traits("edit", input).edits.as_deref(), Some("src/a.rs"), "{path}");
        }
    }
    assert_eq!(tools.traits("write", json!({"path": "../x"})).edits, None);
}

#[tokio::test]
async fn a_command_runs_in_the_root_without_input_and_without_keys() {
    let tools = tools().await;
    let rows = [
        ("pwd -P", tools.folder.path().canonicalize().unwrap().display().to_string() + "\n", false),
        ("cat", "(no output)".to_owned(), false),
        ("echo out; echo err >&2; exit 4", "out\nerr\n[exit status 4]".to_owned(), true),
        ("printf 'a\\377b'", "a\u{FFFD}b".to_owned(), false),
        ("sleep 300 &", "[1 process it left running was ended]".to_owned(), false),
    ];
    for (command, text, is_error) in rows {
        assert_eq!(
            tools.call("bash", json!({"command": command})).await,
            Output { text, is_error },
            "{command}"
        );
    }
}

#[tokio::test]
async fn a_command_that_is_cut_returns_what_it_said_and_said_it_while_it_ran() {
    let tools = tools().await;
    let command = json!({"command": "echo first; setsid sleep 300 & sleep 300; echo never"});
    let (output, heard) = tools.call_until("first", "bash", command).await;
    assert_eq!((output.text.as_str(), heard.as_str()), ("first\n", "first\n"));
    let late = tools.call("bash", json!({"command": "echo a; sleep 300", "timeout": 0.2})).await;
    assert_eq!(late, Output::error("a\n[Timed out after 0.2 s; it was ended, with all it started]"));
}

#[tokio::test]
async fn output_without_end_is_cut_in_the_middle_and_costs_no_memory() {
    let tools = Tools::new(Limits { timeout: Duration::from_secs(300), ..Limits::default() }).await;
    let output = tools.call("bash", json!({"command": "yes | head -n 100000; echo end"})).await;
    let (front, back) = ("y\n".repeat(8_192), "y\n".repeat(8_190));
    assert_eq!(output.text, format!("{front}\n[… 167236 bytes left out …]\n{back}end\n"));
    let before = peak_memory();
    let mib = 1 << 20;
    let output = tools.call("bash", json!({"command": "head -c 1G /dev/zero | tr '\\0' x"})).await;
    assert!(
        output.text.contains(&format!("[… {} bytes left out …]", (1024 * mib) - (32 << 10))),
        "{}",
        output.text
    );
    let grown = peak_memory().saturating_sub(before);
    assert!(grown < 64 * mib, "{} MiB", grown / mib);
}

/// The most memory this process ever had, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn files_that_are_no_text_or_too_large_are_named_as_that() {
    let tools = tools().await;
    tools.write("binary", b"a\0b");
    tools.write("latin1", b"ab\xE9");
    tools.write("large", "x".repeat((16 << 20) + 1));
    std::fs::create_dir(tools.path("folder")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, tools.path("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let rows = [
        ("binary", "`binary` is a binary file (3 bytes)"),
        ("latin1", "`latin1` is not UTF-8: byte 2"),
        ("large", "at most 16.0 MiB can be read"),
        ("folder", "`folder` is a folder"),
        ("pipe", "`pipe` is neither a file nor a folder"),
        ("missing", "`missing` does not exist"),
        ("binary/x", "`binary/x` is not a folder"),
        ("", "the path is empty"),
        // C18.
        ("a\0b", "the path holds a NUL character"),
    ];
    for (path, says) in rows {
        for (tool, input) in
            [("read", json!({"path": path})), ("edit", json!({"path": path, "old": "a", "new": "b"}))]
        {
            let output = tools.call(tool, input).await;
            let says = says.replace("`binary/x` is not a folder", "is not a folder");
            assert!(output.is_error && output.text.contains(&says), "{tool} {path}: {}", output.text);
        }
    }
}

#[tokio::test]
async fn an_edit_keeps_the_mode_and_the_line_endings() {
    let tools = tools().await;
    tools.write("run.sh", "one\r\ntwo\r\n");
    std::fs::set_permissions(tools.path("run.sh"), PermissionsExt::from_mode(0o751)).unwrap();
    let output = tools.call("edit", json!({"path": "run.sh", "old": "one\ntwo", "new": "1\n2\n3"})).await;
    assert_eq!(output, Output::ok("Edited run.sh."));
    assert_eq!(tools.content("run.sh"), "1\r\n2\r\n3\r\n");
    let output = tools.call("write", json!({"path": "run.sh", "content": "a\nb\n"})).await;
    assert_eq!(output.text, "Replaced run.sh (6 bytes, with its CRLF line endings).");
    assert_eq!(tools.content("run.sh"), "a\r\nb\r\n");
    assert_eq!(tools.path("run.sh").metadata().unwrap().permissions().mode() & 0o7777, 0o751);
    // C18: what an agent writes never runs with its owner's rights.
    std::fs::set_permissions(tools.path("run.sh"), PermissionsExt::from_mode(0o6751)).unwrap();
    tools.call("edit", json!({"path": "run.sh", "old": "a", "new": "b"})).await;
    assert_eq!(tools.path("run.sh").metadata().unwrap().permissions().mode() & 0o7777, 0o751);
}

#[tokio::test]
async fn an_edit_that_fails_leaves_the_file_and_nothing_else() {
    let tools = tools().await;
    tools.write("a", "x y x");
    tools.write("fixed", "x");
    std::fs::set_permissions(tools.path("fixed"), PermissionsExt::from_mode(0o444)).unwrap();
    let rows = [
        ("a", "x", "is in `a` 2 times"),
        ("a", "z", "is not in `a`"),
        ("fixed", "x", "`fixed` is read-only (mode 444)"),
        ("b", "x", "`b` does not exist"),
        ("new/b", "x", "`new/b` does not exist"),
    ];
    for (path, old, says) in rows {
        let output =
            tools.call("edit", json!({"file_path": path, "old_string": old, "new_string": "n"})).await;
        assert!(output.is_error && output.text.contains(says), "{path}: {}", output.text);
    }
    assert_eq!(tools.content("a"), "x y x");
    let mut left: Vec<_> =
        std::fs::read_dir(tools.folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["a", "fixed"]);
    let output = tools.call("edit", json!({"path": "a", "old": "x", "new": "z", "replace_all": true})).await;
    assert_eq!((output.text.as_str(), tools.content("a").as_str()), ("Edited a in 2 places.", "z y z"));
}

#[tokio::test]
async fn no_path_leads_out() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "s").unwrap();
    let tools = tools().await;
    let up = format!("../{}/secret", outside.path().file_name().unwrap().to_str().unwrap());
    symlink(outside.path().join("secret"), tools.path("link")).unwrap();
    symlink(outside.path(), tools.path("folder")).unwrap();
    symlink(&up, tools.path("up")).unwrap();
    let secret = outside.path().join("secret").display().to_string();
    for path in [&secret, &up, "link", "folder/secret", "folder/new", "up", "/etc/passwd", "..", "a/../../x"]
    {
        for (tool, input) in [
            ("read", json!({"path": path})),
            ("write", json!({"path": path, "content": "x"})),
            ("edit", json!({"path": path, "old": "s", "new": "x"})),
            ("grep", json!({"path": path, "pattern": "s"})),
            ("glob", json!({"path": path, "pattern": "*"})),
        ] {
            let output = tools.call(tool, input).await;
            assert!(output.is_error && !output.text.contains("Replaced"), "{tool} {path}: {}", output.text);
        }
    }
    let inside = std::fs::read_dir(outside.path()).unwrap().count();
    assert_eq!((inside, std::fs::read_to_string(secret).unwrap().as_str()), (1, "s"));
    assert!(tools.path("link").is_symlink());
}

#[tokio::test]
async fn what_is_obeyed_later_is_not_written_and_a_sentence_says_so() {
    let tools = tools().await;
    tools.write(".claude/agents/a.md", "s");
    tools.write("sub/x", "s");
    symlink("../.claude", tools.path("sub/link")).unwrap();
    for path in [
        ".claude/agents/a.md",
        "sub/link/agents/a.md",
        "sub/midturn.toml",
        "Midturn.toml",
        ".git",
        ".git/hooks/pre-commit",
        ".vscode/tasks.json",
        ".mcp.json",
    ] {
        for (tool, input) in [
            ("write", json!({"path": path, "content": "x"})),
            ("edit", json!({"path": path, "old": "s", "new": "x"})),
        ] {
            let output = tools.call(tool, input).await;
            // What isn't there can't be edited anyway.
            let missing = tool == "edit" && output.text.contains("does not exist");
            let says = missing || output.text.contains("is protected (");
            assert!(output.is_error && says, "{tool} {path}: {}", output.text);
        }
    }
    assert_eq!(tools.content(".claude/agents/a.md"), "s");
    assert!(!tools.path(".git").exists() && !tools.path(".vscode").exists());
    assert_eq!(tools.call("read", json!({"path": ".claude/agents/a.md"})).await.text, "     1\ts\n");
    for ordinary in ["AGENTS.md", "CLAUDE.md", "Makefile", ".gitattributes"] {
        let output = tools.call("write", json!({"path": ordinary, "content": "x"})).await;
        assert!(!output.is_error, "{}", output.text);
    }
}

#[tokio::test]
async fn calls_say_what_they_do_and_to_what() {
    let tools = tools().await;
    tools.write("src/a.rs", "");
    symlink("src", tools.path("link")).unwrap();
    let rows = [
        ("bash", json!({"command": "ls -l"}), Effect::Runs, Some("ls -l")),
        ("read", json!({"path": "./src/a.rs"}), Effect::Reads, Some("src/a.rs")),
        ("read", json!({"path": "link/a.rs"}), Effect::Reads, Some("src/a.rs")),
        ("edit", json!({"path": "link/../src/a.rs"}), Effect::Edits, Some("src/a.rs")),
        ("write", json!({"file_path": "link/new/b.rs"}), Effect::Edits, Some("src/new/b.rs")),
        ("grep", json!({"pattern": "x"}), Effect::Reads, Some(".")),
        ("glob", json!({"pattern": "x", "path": "src"}), Effect::Reads, Some("src")),
        ("read", json!({"path": "/etc/passwd"}), Effect::Reads, None),
        ("bash", json!({}), Effect::Runs, None),
    ];
    for (tool, input, effect, subject) in rows {
        let traits = tools.traits(tool, input.clone());
        assert_eq!((traits.effect, traits.subject.as_deref()), (effect, subject), "{tool} {input}");
    }
}

#[tokio::test]
async fn links_that_stay_inside_are_followed_and_stay_links() {
    let tools = tools().await;
    tools.write("real/a", "one");
    symlink("real", tools.path("folder")).unwrap();
    symlink("folder/a", tools.path("link")).unwrap();
    tools.call("edit", json!({"path": "link", "old": "one", "new": "two"})).await;
    assert_eq!(tools.call("read", json!({"path": "folder/../real/a"})).await.text, "     1\ttwo\n");
    assert!(tools.path("link").is_symlink() && !tools.path("real/a").is_symlink());
    let made = tools.call("write", json!({"path": "folder/deep/er/b", "content": "x"})).await;
    assert_eq!(made, Output::ok("Created folder/deep/er/b (1 bytes)."));
    assert_eq!(tools.content("real/deep/er/b"), "x");
}

#[tokio::test]
async fn searches_find_what_is_there_and_not_what_is_excluded() {
    let tools = tools().await;
    tools.write("src/main.rs", "fn main() {\n    Open();\n}\n");
    tools.write("src/lib.rs", "pub fn open() {}\r\n");
    tools.write("docs/a.md", "open\n");
    tools.write("target/x.rs", "open\n");
    tools.write(".git/x.rs", "open\n");
    tools.write(".ci/run", "open\n");
    tools.write(".gitignore", "target\n");
    tools.write("image", b"open\0");
    let rows: [(&str, Value, &str); 12] = [
        (
            "grep",
            json!({"pattern": "open"}),
            ".ci/run:1:open\ndocs/a.md:1:open\nsrc/lib.rs:1:pub fn open() {}\n",
        ),
        (
            "grep",
            json!({"pattern": "open", "glob": "*.rs", "ignore_case": true}),
            "src/lib.rs:1:pub fn open() {}\nsrc/main.rs:2:    Open();\n",
        ),
        (
            "grep",
            json!({"pattern": "Open", "context": 1}),
            "src/main.rs-1-fn main() {\nsrc/main.rs:2:    Open();\nsrc/main.rs-3-}\n",
        ),
        ("grep", json!({"pattern": "open", "files_only": true, "path": "src"}), "src/lib.rs\n"),
        ("grep", json!({"pattern": "open", "path": "docs/a.md"}), "docs/a.md:1:open\n"),
        (
            "grep",
            json!({"pattern": "open", "limit": 1}),
            ".ci/run:1:open\n[1 shown, there are more: narrow the search]",
        ),
        ("grep", json!({"pattern": "nowhere"}), "[nothing matches nowhere]"),
        ("glob", json!({"pattern": "*.rs"}), "src/lib.rs\nsrc/main.rs\n"),
        ("glob", json!({"pattern": "src/**/l*.rs"}), "src/lib.rs\n"),
        ("glob", json!({"pattern": "./*.rs", "path": "src"}), "src/lib.rs\nsrc/main.rs\n"),
        (
            "glob",
            json!({"pattern": "**/*", "limit": 2}),
            ".ci/run\n.gitignore\n[2 shown, there are more: narrow the search]",
        ),
        ("glob", json!({"pattern": "*.py"}), "[no file matches *.py]"),
    ];
    for (tool, input, text) in rows {
        assert_eq!(tools.call(tool, input.clone()).await, Output::ok(text), "{tool} {input}");
    }
}

/// C18: a folder called `~` would be taken for somebody's home by the next who sees it.
#[tokio::test]
async fn a_tilde_is_no_folder_unless_it_is_said_to_be_one() {
    let tools = tools().await;
    for path in ["~/.profile", "~", "~/"] {
        for (tool, input) in [
            ("write", json!({"path": path, "content": "x"})),
            ("edit", json!({"path": path, "old": "a", "new": "x"})),
            ("read", json!({"path": path})),
            ("grep", json!({"path": path, "pattern": "x"})),
            ("glob", json!({"path": path, "pattern": "*"})),
        ] {
            let output = tools.call(tool, input).await;
            assert!(output.is_error && output.text.contains("`~` isn't expanded"), "{tool}: {}", output.text);
        }
    }
    assert!(!tools.path("~").exists());
    let made = tools.call("write", json!({"path": "./~/x", "content": "x"})).await;
    assert_eq!(made, Output::ok("Created ./~/x (1 bytes)."));
    let made = tools.call("write", json!({"path": "~x", "content": "x"})).await;
    assert_eq!((made.is_error, tools.content("~/x"), tools.content("~x")), (false, "x".into(), "x".into()));
}

/// C18: a name can't look like another match, and a model that writes back what it reads finds the file.
#[tokio::test]
async fn no_name_forges_a_line_of_a_search() {
    let tools = tools().await;
    let forged = "a\nsrc/main.rs:1:open";
    for name in [forged, "b\u{202e}sr", "~/c", "plain"] {
        tools.write(name, "open\n");
    }
    std::fs::write(tools.path("d\u{200b}"), [&b"x".repeat(17 << 20)[..], b"\nopen"].concat()).unwrap();
    let named = ["\"a\\nsrc/main.rs:1:open\"", "\"b\\u202esr\"", "plain", "./~/c"];
    let lines: Vec<_> = named.iter().map(|name| format!("{name}:1:open\n")).collect();
    let note = "[not searched, because a line is too long or the file can't be read: \"d\\u200b\"]";
    let found = tools.call("grep", json!({"pattern": "open"})).await;
    assert_eq!(found.text, format!("{}{note}", lines.concat()));
    let found = tools.call("grep", json!({"pattern": "open", "files_only": true, "glob": "[!d]*"})).await;
    assert_eq!(found.text, named.join("\n") + "\n");
    let found = tools.call("glob", json!({"pattern": "[!d]*"})).await;
    assert_eq!(found.text, named.join("\n") + "\n");
    for name in named {
        let path = serde_json::from_str::<String>(name).unwrap_or(name.to_owned());
        let read = tools.call("read", json!({"path": path})).await;
        assert_eq!(read, Output::ok("     1\topen\n"), "{name}");
    }
    for name in ["grep", "glob"] {
        assert!(
            tools
                .toolbox
                .specs()
                .iter()
                .any(|spec| &*spec.name == name && spec.description.contains("JSON string"))
        );
    }
}

/// C13: a rule about reading holds for searches, too.
#[tokio::test]
async fn no_search_shows_what_a_rule_denies_to_read() {
    let deny = ["read(secrets/**)", "read(.env)", "bash(x)"].map(|text| Rule::parse(text).unwrap());
    let policy = Policy { deny: deny.into(), ..Policy::default() };
    let tools = Tools::of(Limits::default(), policy.unread()).await;
    for file in ["secrets/a", "secrets/b/c", ".env", "src/a", "src/.env"] {
        tools.write(file, "open\n");
    }
    for (tool, input, text) in [
        ("grep", json!({"pattern": "open"}), "src/.env:1:open\nsrc/a:1:open\n"),
        ("grep", json!({"pattern": "open", "path": "secrets/b"}), "[nothing matches open]"),
        ("grep", json!({"pattern": "open", "path": "secrets/a"}), "[nothing matches open]"),
        ("glob", json!({"pattern": "**/*"}), "src/.env\nsrc/a\n"),
    ] {
        assert_eq!(tools.call(tool, input.clone()).await, Output::ok(text), "{tool} {input}");
    }
}

#[tokio::test]
async fn without_a_worktree_a_run_reports_the_files_that_were_edited() {
    let tools = tools().await;
    tools.call("write", json!({"path": "b", "content": "x"})).await;
    tools.call("write", json!({"path": "./a/../c", "content": "x"})).await;
    tools.call("edit", json!({"path": "b", "old": "x", "new": "y"})).await;
    tools.call("edit", json!({"path": "d", "old": "x", "new": "y"})).await;
    let lead = name("lead");
    let changes = tools.workplace.run_ended(&lead, 1).await.unwrap();
    assert_eq!((changes.branch, changes.files), (None, vec!["b".to_owned()]));
    assert_eq!(tools.workplace.run_ended(&lead, 2).await.unwrap().files, Vec::<String>::new());
}
