//! What is read of commands, and the ways around rules about them (tests/*.txt).

use super::super::{Asked, Effect, Mode, Policy, Rule, Verdict};
use super::*;

/// The commands in a text, unknown parts as `…`.
fn commands(text: &str) -> Option<Vec<String>> {
    let Script::Commands(all) = read(text) else { return None };
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Unknown => "…".to_owned(),
    };
    let word = |word: &Word| word.0.iter().map(part).collect::<String>();
    Some(all.iter().map(|one| one.words.iter().map(word).collect::<Vec<_>>().join(" ")).collect())
}

#[test]
fn every_command_of_a_text_is_found_wherever_it_stands() {
    for (text, expected) in [
        ("git push", &["git push"][..]),
        ("git   push\t-f", &["git push -f"]),
        ("\\git 'pu'sh", &["git push"]),
        ("a && b || c; d & e | f", &["a", "b", "c", "d", "e", "f"]),
        ("{ a; }; ( b ); if c; then d; elif e; then f; else g; fi", &["a", "b", "c", "d", "e", "f", "g"]),
        ("for x in 1 2; do a; done; while b; do c; done; until d; do e; done", &["a", "b", "c", "d", "e"]),
        ("case x in a|b) c;; *) d;; esac", &["c", "d"]),
        ("! a; time b; coproc c", &["a", "b", "c"]),
        ("echo $(a \"$(b)\") `c`", &["b", "a …", "c", "echo … …"]),
        ("x=$(a) b", &["a", "b"]),
        ("x=1; { a; } > y", &["", "a", ""]),
        ("cat <(a) > >(b)", &["a", "b", "cat …"]),
        ("cat <<E\n$(a)\n'`b`'\nE", &["a", "b", "cat"]),
        ("cat <<'E'\n$(a)\nE", &["cat"]),
        ("echo \"${x:-$(a)}\"", &["a", "echo …"]),
        ("f() { a; }", &["", "a"]),
        ("[[ -n $(a) ]]", &["a"]),
        ("((1 + 2)); echo $((1 + 2))", &["1 + 2", "1 + 2", "echo …"]),
        ("env -u X A=1 a b", &["a b", "env -u X A=1 a b"]),
        ("timeout -s KILL 5 nice -n 5 a", &["a", "nice -n 5 a", "timeout -s KILL 5 nice -n 5 a"]),
        ("ls | xargs -n 1 a", &["ls", "a …", "xargs -n 1 a"]),
        (
            "find . -name x -exec a {} \\; -exec b {} +",
            &["a …", "b …", "find . -name x -exec a {} ; -exec b {} +"],
        ),
        ("bash -ec 'a; b'", &["a", "b", "bash -ec a; b"]),
        ("eval a 'b; c'", &["a b", "c", "eval a b; c"]),
        ("trap 'a' EXIT; alias x='b c'", &["a", "trap a EXIT", "b c", "alias x=b c"]),
        ("env -S 'a b'", &["a b", "env -S a b"]),
        ("a # b", &["a"]),
    ] {
        let found = commands(text).unwrap_or_else(|| panic!("{text} can't be read"));
        let expected: Vec<String> = expected.iter().map(|one| (*one).to_owned()).collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn what_nobody_can_know_is_not_read() {
    for text in [
        "a | bash",
        "bash",
        "sh -s",
        "bash < x",
        "bash <<E\na\nE",
        "bash -c \"$x\"",
        "eval $x",
        "eval \"$(cat y)\"",
        "bash <(a)",
        "bash /dev/stdin",
        ". /dev/stdin",
        "trap \"$x\" EXIT",
        "alias a=\"$b\"",
        "( ( a ) )",
        "xargs -I% sh -c 'git %'",
        "find . -exec sh -c 'x {}' \\;",
        "sudo -s",
        "if",
        "a 'b",
        "select x in y; do a; done",
        "echo \"${x:-'$(a)'}\"",
    ] {
        assert_eq!(commands(text), None, "{text}");
    }
}

#[test]
fn a_text_that_descends_without_end_ends_nothing_else() {
    let nested =
        |open: &str, close: &str, times: usize| format!("{}a{}", open.repeat(times), close.repeat(times));
    for (open, close) in [
        ("{ ", "; }"),
        ("( ", " )"),
        ("if true; then ", "; fi"),
        ("while b; do ", "; done"),
        ("$(", ")"),
        ("\"$(", ")\""),
        ("${a:-", "}"),
        ("case x in x) ", ";; esac"),
        ("f() { ", "; }"),
        ("[[ ! ", " ]]"),
        ("`", "`"),
        ("eval ", ""),
        ("bash -c '", "'"),
        ("$((", "))"),
        ("! ", ""),
        ("env ", ""),
        ("{a,", "}"),
        ("a[", "]=1 "),
    ] {
        for times in [7, 999, 5_000, 100_000] {
            read(&nested(open, close, times));
            read(&open.repeat(times));
        }
    }
}

fn judged(allow: &[&str], deny: &[&str], command: &str) -> &'static str {
    let rules = |texts: &[&str]| texts.iter().map(|text| Rule::parse(text).unwrap()).collect();
    let policy = Policy { mode: Mode::Ask, allow: rules(allow), deny: rules(deny), ..Policy::default() };
    match policy.judge(&Asked { name: "bash", subject: Some(command), effect: Effect::Runs }, &[]) {
        Verdict::Allowed => "allowed",
        Verdict::Denied(_) => "denied",
        Verdict::Ask => "asked",
    }
}

/// Commands, one a line: `⏎` is a line's end in them, `⇥` a tab.
fn lines(table: &str) -> impl Iterator<Item = String> {
    table.lines().map(|line| line.replace('⏎', "\n").replace('⇥', "\t"))
}

/// C13: the ways around a rule that denies.
#[test]
fn no_spelling_of_a_command_gets_past_a_rule_that_denies_it() {
    for command in lines(include_str!("tests/denied.txt")) {
        assert_eq!(judged(&["bash"], &["bash(git push *)"], &command), "denied", "{command}");
    }
    for command in lines(include_str!("tests/not_denied.txt")) {
        assert_eq!(judged(&["bash"], &["bash(git push *)"], &command), "allowed", "{command}");
    }
}

/// C13: the ways around a rule that allows.
#[test]
fn no_command_is_allowed_by_a_rule_for_another() {
    for command in lines(include_str!("tests/not_allowed.txt")) {
        assert_ne!(judged(&["bash(cargo test *)"], &[], &command), "allowed", "{command}");
    }
    for command in lines(include_str!("tests/allowed.txt")) {
        assert_eq!(judged(&["bash(cargo test *)"], &[], &command), "allowed", "{command}");
    }
    assert_eq!(judged(&["bash(cargo test:*)"], &[], "cargo test -p x"), "allowed");
    assert_eq!(judged(&["bash(cargo *)", "bash(timeout *)"], &[], "timeout 5 cargo test"), "allowed");
    assert_ne!(judged(&["bash(timeout *)"], &[], "timeout 5 rm x"), "allowed");
}
