//! Definition files and instructions, as rows.

use super::*;
use crate::failure::End;

fn parse(source: &str) -> Result<Definition, Failure> {
    Definition::parse(Path::new("a.md"), source)
}

#[test]
fn a_definition_has_its_fields_and_keeps_what_it_does_not_know() {
    let source = "---\nname: reviewer\ndescription: >\n  Reads\n  code.\ntools: Read, Grep\nmodel: sonnet\nisolation: worktree\ncolor: blue\nhooks:\n  a: [1]\n---\n\nYou review.\n---\nMore.\n";
    let definition = parse(source).unwrap();
    assert_eq!(definition.name.as_str(), "reviewer");
    assert_eq!(definition.description, "Reads code.");
    assert_eq!(definition.tools, Some(crate::config::Names(vec!["Read".into(), "Grep".into()])));
    assert_eq!((definition.model.as_deref(), definition.model_line), (Some("sonnet"), 7));
    assert_eq!(definition.isolation, Some(midturn_tools::workplace::Isolation::Worktree));
    assert_eq!(definition.system, "You review.\n---\nMore.");
    assert_eq!(definition.unknown, [(9, "color".to_owned()), (10, "hooks".to_owned())]);
    assert_eq!(definition.note().unwrap(), "a.md: not obeyed here: `color` (line 9), `hooks` (line 10)");
}

#[test]
fn lists_empty_values_and_windows_lines_are_read() {
    for (source, tools) in [
        ("---\nname: a\ndescription: b\ntools: [Read, Bash]\n---\n", Some(2)),
        ("---\r\nname: a\r\ndescription: b\r\ntools:\r\nmodel:\r\n---\r\nBody\r\n", None),
        ("---\nname: a\ndescription: b\ntools: []\n---", Some(0)),
    ] {
        let definition = parse(source).unwrap();
        assert_eq!(definition.tools.map(|names| names.0.len()), tools, "{source:?}");
        assert_eq!((definition.model, definition.unknown.len()), (None, 0));
    }
}

#[test]
fn a_bad_definition_is_an_error_with_its_line() {
    for (source, expected) in [
        ("", "a.md:1:1: the front matter has no end"),
        ("hello", "a.md:1:1: expected `---`"),
        ("---\nname: a\n", "a.md:1:1: the front matter has no end"),
        ("---\n---\n", "a.md:1:1: the front matter has no `name`"),
        ("---\nname: a\n---\n", "a.md:1:1: the front matter has no `description`"),
        ("---\ndescription: b\nname: Some One\n---\n", "a.md:3:7: `Some One` is not an agent's name"),
        ("---\nname: user\ndescription: b\n---\n", "a.md:2:7: `user` is reserved"),
        (
            "---\nname: a\ndescription: b\nisolation: vm\n---\n",
            "a.md:4:12: `isolation`: found `vm`, expected `worktree` or `none`",
        ),
        ("---\nname: a\ndescription: b: c\n---\n", "a.md:3:"),
        ("---\nname: a\nname: b\ndescription: c\n---\n", "a.md:3:1: "),
        ("---\nname: [a]\ndescription: b\n---\n", "a.md:2:7: "),
        (
            "---\nname: a\ndescription: b\ntools: 5\n---\n",
            "a.md:4:1: invalid type: integer `5`, expected a list of names",
        ),
        ("---\n- a\n---\n", "a.md:2:1: "),
        ("---\na: &x [1]\nb: *x\nname: a\n---\n", "a.md:1:1: the front matter has no `description`"),
    ] {
        let error = parse(source).unwrap_err();
        assert_eq!(error.end(), End::Usage);
        assert!(error.to_string().starts_with(expected), "{error}\n{expected}");
    }
}

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    root
}

#[test]
fn the_nearer_definition_wins() {
    let body = |text: &str| format!("---\nname: a\ndescription: b\n---\n{text}");
    let (mine, root, near) = (body("mine"), body("root"), body("near"));
    let files = [
        ("home/.claude/agents/a.md", mine.as_str()),
        ("home/.claude/agents/notes.txt", "not one"),
        ("repo/.git/HEAD", ""),
        ("repo/.claude/agents/x.md", root.as_str()),
        ("repo/sub/.claude/agents/x.md", near.as_str()),
    ];
    for (count, expected) in [(2, "mine"), (4, "root"), (5, "near")] {
        let tree = tree(&files[..count]);
        let home = tree.path().join("home").display().to_string();
        let found = definitions(&tree.path().join("repo/sub"), &Env::of([("HOME", home.as_str())])).unwrap();
        assert_eq!(
            found.values().map(|definition| definition.system.as_str()).collect::<Vec<_>>(),
            [expected]
        );
    }
}

#[test]
fn two_of_one_name_in_one_folder_are_an_error_that_names_both() {
    let body = "---\nname: a\ndescription: b\n---\n";
    let tree = tree(&[(".claude/agents/x.md", body), (".claude/agents/y.md", body)]);
    let error = definitions(tree.path(), &Env::default()).unwrap_err().to_string();
    assert!(error.contains("y.md:2: ") && error.contains("x.md too"), "{error}");
}

#[test]
fn files_that_cannot_be_read_are_errors() {
    for (path, bytes, expected) in [
        (".claude/agents/a.md", b"---\n\xff".to_vec(), "a.md:2: is not UTF-8"),
        (".claude/agents/a.md", vec![b'a'; FILE_MAX + 1], "a.md: has more than 256 KiB"),
        ("AGENTS.md", b"\xff".to_vec(), "AGENTS.md:1: is not UTF-8"),
    ] {
        let tree = tree(&[(path, "")]);
        std::fs::write(tree.path().join(path), bytes).unwrap();
        let said = definitions(tree.path(), &Env::default()).and_then(|_| Instructions::read(tree.path()));
        let error = said.unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
    let tree = tree(&[("AGENTS.md/x", "")]);
    assert!(Instructions::read(tree.path()).unwrap_err().to_string().contains("can't be read"));
}

#[test]
fn instructions_come_in_order_and_claude_md_fills_in() {
    let tree = tree(&[
        (".git/HEAD", ""),
        ("AGENTS.md", "\u{feff}root\n"),
        ("CLAUDE.md", "not read"),
        ("a/CLAUDE.md", "middle"),
        ("a/b/AGENTS.md", "near"),
        ("a/b/c/AGENTS.md", "below"),
    ]);
    let instructions = Instructions::read(&tree.path().join("a/b")).unwrap();
    let texts: Vec<_> = instructions.parts.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["root", "middle", "near"]);
    let prompt = instructions.prompt();
    assert!(
        prompt.find("root") < prompt.find("near") && prompt.ends_with("the later ones hold."),
        "{prompt}"
    );
    assert_eq!(Instructions::default().prompt(), "");
}
