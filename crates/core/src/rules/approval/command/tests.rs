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
        ("cat <(a) > >(b)", &["a", "b", "cat …"]),
        ("cat <<E\n$(a)\n'`b`'\nE", &["a", "b", "cat"]),
        ("cat <<'E'\n$(a)\nE", &["cat"]),
        ("echo \"${x:-$(a)}\"", &["a", "echo …"]),
        ("f() { a; }", &["…", "a"]),
        ("[[ -n $(a) ]]", &["a"]),
        ("( ( a ) )", &["a"]),
        ("env -u X A=1 a b", &["a b", "env -u X A=1 a b"]),
        ("timeout -s KILL 5 nice -n 5 a", &["a", "nice -n 5 a", "timeout -s KILL 5 nice -n 5 a"]),
        ("ls | xargs -n 1 a", &["ls", "a …", "xargs -n 1 a"]),
        ("find . -name x -exec a {} \\; -exec b {} +", &["a …", "b …", "find . -name x -exec a {} ; -exec b {} +"]),
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
        "a | bash", "bash", "sh -s", "bash < x", "bash <<E\na\nE", "bash -c \"$x\"", "eval $x", "eval \"$(cat y)\"", "bash <(a)",
        "bash /dev/stdin", ". /dev/stdin", "trap \"$x\" EXIT", "alias a=\"$b\"", "xargs -I% sh -c 'git %'", "find . -exec sh -c 'x {}' \\;",
        "sudo -s", "if", "a 'b", "select x in y; do a; done", "echo \"${x:-'$(a)'}\"",
    ] {
        assert_eq!(commands(text), None, "{text}");
    }
}

#[test]
fn a_text_that_descends_without_end_ends_nothing_else() {
    let nested = |open: &str, close: &str, times: usize| format!("{}a{}", open.repeat(times), close.repeat(times));
    for (open, close) in [
        ("{ ", "; }"), ("( ", " )"), ("if true; then ", "; fi"), ("while b; do ", "; done"), ("$(", ")"), ("\"$(", ")\""), ("${a:-", "}"),
        ("case x in x) ", ";; esac"), ("f() { ", "; }"), ("[[ ! ", " ]]"), ("`", "`"), ("eval ", ""), ("bash -c '", "'"), ("$((", "))"), ("! ", ""),
        ("env ", ""), ("{a,", "}"), ("a[", "]=1 "),
    ] {
        for times in [7, 999, 5_000, 100_000] {
            let t = std::time::Instant::now();
            read(&nested(open, close, times));
            eprintln!("{open} {times} {:?}", t.elapsed());
            read(&open.repeat(times));
            eprintln!("{open} {times} {:?}", t.elapsed());
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

/// C13: the ways around a rule that denies.
#[test]
fn no_spelling_of_a_command_gets_past_a_rule_that_denies_it() {
    for command in [
        "git push", "git push origin main", "git  push origin", "git\tpush", " git push", "{ git push; }", "( git push )", "( ( git push ) )",
        "if true; then git push; fi", "for x in 1; do git push; done", "while git push; do :; done", "! git push", "time git push",
        "A=1 git push", "> log git push", "2>&1 git push", "a && git push", "a | git push", "a & git push", "a\ngit push", "echo $(git push)",
        "echo `git push`", "echo \"$(git push)\"", "cat <(git push)", "x=$(git push)", "\\git push", "'git' push", "g\"i\"t push", "git 'push'",
        "git p\\ush", "/usr/bin/git push", "git -C x push", "git -c a=b --no-pager push", "git --git-dir=x push", "env A=1 git push",
        "command git push", "exec git push", "builtin git push", "nohup git push", "nice -n 5 git push", "timeout 5 git push", "stdbuf -oL git push",
        "setsid git push", "sudo -u x git push", "doas git push", "echo x | xargs git", "xargs git push", "xargs -I{} git {}", "find . -exec git push \\;",
        "eval git push", "eval 'git push'", "bash -c 'git push'", "sh -ec 'git push'", "bash <<< 'git push'", "echo git push | bash", "trap 'git push' EXIT",
        "alias x='git push'", "f() { git push; }", "f() { git \"$@\"; }", "x=git; $x push", "git $x", "git $(echo push)", "${x} push", "{git,push}", "{git$x,push}", "gi[t$x] push", "g${x}t] push", "g?t push", "gi[t] push",
        "$'git' push", "$'\\x67it' push", "git pu\\\nsh", "coproc git push", "case x in x) git push;; esac", "[[ -n $(git push) ]]", "echo ${x:-$(git push)}",
        "cat <<E\n$(git push)\nE", "select x in y; do git push; done", "git 'push", "echo $(( $(git push) ))", "a[$(git push)]=1", "env -S 'git push'",
    ] {
        assert_eq!(judged(&["bash"], &["bash(git push *)"], command), "denied", "{command}");
    }
    for command in [
        "git pull", "git log --grep push", "echo git push", "echo 'git push'", "git pushx", "grep -r 'git push' .", "git commit -m 'push'", "# git push",
        "git stash push", "cat <<'E'\n$(git push)\nE", "git-push x", "echo $((1 + 2))", "echo {a,b}", "ls *.rs", "cargo test $X",
    ] {
        assert_eq!(judged(&["bash"], &["bash(git push *)"], command), "allowed", "{command}");
    }
}

/// C13: the ways around a rule that allows.
#[test]
fn no_command_is_allowed_by_a_rule_for_another() {
    for command in [
        "cargo test; rm x", "cargo test && rm x", "cargo test || rm x", "cargo test | rm x", "cargo test & rm x", "cargo test\nrm x", "cargo test $(rm x)",
        "cargo test `rm x`", "cargo test <(rm x)", "cargo test > /etc/x", "cargo test >> x", "cargo test &> x", "cargo test 2> x", "cargo test >| x", "cargo test <> x",
        "PATH=. cargo test", "PATH=.; cargo test", "cargo() { rm x; }; cargo test", "$x test", "cargo$x test", "c?rgo test", "./cargo test", "/tmp/cargo test", "env cargo test",
        "bash -c 'cargo test; rm x'", "eval cargo test", "{ cargo test; rm x; }", "if cargo test; then rm x; fi", "cargo test \"$(rm x)\"", "cargo test ${x:-$(rm x)}",
        "cargo test <<E\n$(rm x)\nE", "cargo 'test x", "'cargo test' x", "cargo  $x", "cargo testx", "{ cargo test; } > x", "time -o x rm y", "cargo test | tee x", "export PATH=.; cargo test",
        "cargo +nightly test", "cargo --config x test", "sudo cargo test", "alias cargo=rm; cargo test",
    ] {
        assert_ne!(judged(&["bash(cargo test *)"], &[], command), "allowed", "{command}");
    }
    for command in [
        "cargo test", "cargo test -p core", "cargo  test 'a b'", "cargo test $X \"$HOME\"", "cargo test 2>&1", "cargo test > /dev/null", "cargo test && cargo test -r", "( cargo test )",
        "time cargo test", "! cargo test", "cargo test < x", "if cargo test; then cargo test; fi", "cargo test *.rs",
    ] {
        assert_eq!(judged(&["bash(cargo test *)"], &[], command), "allowed", "{command}");
    }
    assert_eq!(judged(&["bash(cargo test:*)"], &[], "cargo test -p x"), "allowed");
    assert_eq!(judged(&["bash(cargo *)", "bash(timeout *)"], &[], "timeout 5 cargo test"), "allowed");
    assert_ne!(judged(&["bash(timeout *)"], &[], "timeout 5 rm x"), "allowed");
}
