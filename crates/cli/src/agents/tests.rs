//! Definition files and instructions, as rows.

use super::remarks::Remark;
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
    assert_eq!(definition.tools, Some(vec!["Read".into(), "Grep".into()]));
    assert_eq!((definition.model.as_deref(), definition.lines), (Some("sonnet"), (6, 1, 7)));
    assert_eq!(definition.isolation, Some(midturn_tools::workplace::Isolation::Worktree));
    assert_eq!(definition.system, "You review.\n---\nMore.");
    let told = told(&definition.remarks);
    assert_eq!(told, ["agent files: keys that are not obeyed: `color` (a.md:9), `hooks` (a.md:10)"]);
}

#[test]
fn lists_empty_values_and_windows_lines_are_read() {
    for (source, tools) in [
        ("---\nname: a\ndescription: b\ntools: [Read, Bash]\n---\n", Some(2)),
        ("---\nname: a\ndescription: b: c\ntools:\n  - Read\n\t- Bash(a, b)\n---\n", Some(2)),
        ("---\nname: a\ndescription: b: c\ntools: []\n---\n", Some(0)),
        ("---\nname: a\ndescription: b: c\ntools:\n---\n", None),
        ("---\nname: a\ndescription: b\ntools: {'*': false, read: true, bash: false}\n---\n", Some(1)),
        ("---\nname: a\ndescription: b\ntools: {bash: false}\n---\n", None),
        ("---\r\nname: a\r\ndescription: b\r\ntools:\r\nmodel:\r\n---\r\nBody\r\n", None),
        ("---\nname: a\ndescription: b\ntools: []\n---", Some(0)),
    ] {
        let definition = parse(source).unwrap();
        assert_eq!(definition.tools.map(|names| names.len()), tools, "{source:?}");
        assert_eq!(definition.model, None);
    }
}

#[test]
fn a_bad_definition_is_an_error_with_its_line() {
    for (source, expected) in [
        ("", "a.md:1:1: it has neither"),
        ("---\nname: a\n", "a.md:1:1: the front matter has no end"),
        ("---\n---\n", "a.md:1:1: it has neither"),
        ("---\nname: a\n---\n", "a.md:1:1: it has neither"),
        ("---\n- a\n---\n", "a.md:2:1: "),
    ] {
        let error = parse(source).unwrap_err();
        assert_eq!(error.end(), End::Usage);
        assert!(error.to_string().starts_with(expected), "{error}\n{expected}");
    }
}

#[test]
fn what_is_no_yaml_is_read_line_by_line() {
    for (source, name, description) in [
        ("name: a\ndescription: b: c", "a", "b: c"),
        ("name: 'A b'\ndescription: \"b: \"c\"\"", "a-b", "b: \"c\""),
        ("description: |\n  b: c\n\td\nname: a", "a", "b: c\nd"),
        ("name: a\ndescription: b: c\nuser: \"x\"\ncolor: red", "a", "b: c\nuser: \"x\""),
        ("name: a\nname: b\ndescription: c", "b", "c"),
        ("name: [a]\ndescription: b", "a", "b"),
        ("description: b: c\\nd", "a", "b: c\nd"),
    ] {
        let definition = parse(&format!("---\n{source}\n---\nText.\n")).unwrap();
        assert_eq!((definition.name.as_str(), definition.description.as_str()), (name, description));
        assert!(told(&definition.remarks).iter().any(|told| told.contains("read line by line")), "{source}");
    }
}

#[test]
fn many_places_are_counted() {
    let of = |file: &str| Remark { about: About::Key, what: "`color`".into(), place: file.into() };
    let told = told(&["a:1", "b:1", "c:1", "d:1", "e:1"].map(of));
    assert_eq!(told, ["agent files: keys that are not obeyed: `color` (a:1, b:1, c:1 and 2 more)"]);
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
        let found = definitions(&tree.path().join("repo/sub"), &Env::of([("HOME", home.as_str())]));
        assert_eq!(
            found.definitions.values().map(|definition| definition.system.as_str()).collect::<Vec<_>>(),
            [expected]
        );
    }
}

#[test]
fn of_two_of_one_name_in_one_folder_the_first_counts_and_both_are_named() {
    let body = "---\nname: a\ndescription: b\n---\n";
    let tree = tree(&[(".claude/agents/x.md", body), (".claude/agents/y.md", body)]);
    let found = definitions(tree.path(), &Env::default());
    let (told, used) = (found.left_out.concat(), found.definitions.values().next().unwrap());
    assert!(told.contains("y.md: ") && told.contains("x.md too") && used.path.ends_with("x.md"), "{told}");
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
        let left_out = definitions(tree.path(), &Env::default()).left_out.concat();
        let instructions =
            Instructions::read(tree.path()).map_or_else(|error| error.to_string(), |_| String::new());
        assert!(left_out.contains(expected) || instructions.ends_with(expected), "{left_out}{instructions}");
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
