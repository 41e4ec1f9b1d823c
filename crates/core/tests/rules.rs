//! Rules that deny, held against bash itself (docs/configuration.md, "Approvals"): whatever makes bash run `git push` is denied by
//! `bash(git push *)`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use midturn_core::rules::approval::{Asked, Effect, Policy, Rule, Verdict};

/// Ways to write `git push`.
const SPELLINGS: &[&str] = &[
    "git push",
    "git  push -f",
    "\\git push",
    "g'i't \"push\"",
    "git -C . push",
    "git --no-pager push",
    "\"$PWD\"/bin/git push",
    "bin/git push",
    "x=git; $x push",
    "x=push; git $x",
    "x='git push'; $x",
    "git $(echo push)",
    "git `echo push`",
    "{git,push}",
    "git pu{s,}h",
    "bin/g?t push",
    "bin/gi[t] push",
    "$'\\x67it' push",
    "git pu\\\nsh",
    "y=it; g$y push",
    "git ${nothing:-push}",
    "git \"${nothing:-push}\"",
    "A=1 git push",
    "2>&1 git push",
    "> log git push",
    "command git push",
    "env git push",
    "env -u A B=1 git push",
    "env -S 'git push'",
    "nohup git push",
    "nice -n 1 git push",
    "timeout 5 git push",
    "stdbuf -oL git push",
    "setsid git push",
    "exec git push",
    "echo push | xargs git",
    "echo | xargs git push",
    "echo push | xargs -I% git %",
    "find bin -name git -exec git push \\;",
    "find bin -name git -exec {} push \\;",
    "echo git push | bash",
    "bash <<< 'git push'",
    "bash <(echo git push)",
    ". <(echo git push)",
    "alias p='git push'; shopt -s expand_aliases\np",
    "p() { git \"$@\"; }; p push",
    "(( $(git push) ))",
    "a[$(git push)]=1",
    "[[ -n $(git push) ]]",
    "case $(git push) in *) ;; esac",
    "cat <<E\n$(git push)\nE",
    "for x in $(git push); do :; done",
    "echo ${nothing:-$(git push)}",
    "echo ${nothing:-`git push`}",
    "echo \"${nothing:-'$(git push)'}\"",
    "echo $(( $(git push) + 1 ))",
    "trap 'git push' EXIT",
    "eval git push",
    "eval \"git push\"",
    "coproc git push; wait",
    "select x in a; do git push; break; done <<< 1",
    "for ((i = 0; i < 1; i++)); do git push; done",
    "read -r x <<< push; git $x",
    "set -- push; git \"$1\"",
    "printf -v x push; git $x",
    "git push & wait",
];

/// What a text is put into, at `@`, or quoted at `Q`.
const AROUND: &[&str] = &[
    "@",
    "true; @",
    "true && { @\n}",
    "false || ( @\n)",
    "true | { @\n}",
    "{ @\n}",
    "( @\n)",
    "( ( @\n) )",
    "if true; then @\nfi",
    "if @\nthen :; fi",
    "if false; then :; else @\nfi",
    "for z in 1; do @\ndone",
    "while @\ndo break; done",
    "until ! { @\n}; do break; done",
    "! { @\n}",
    "time { @\n}",
    "z=$(@\n)",
    "echo \"$(@\n)\" > /dev/null",
    "cat <(@\n) > /dev/null",
    "f() { @\n}; f",
    "case z in z) @\n;; esac",
    "eval Q",
    "bash -c Q",
    "sh -ec 'bash -c \"$0\"' Q",
    "timeout 5 bash -c Q",
    "env A=1 bash -c Q",
    "trap Q EXIT",
    "bash <<'E'\n@\nE",
    "# nothing\n@",
];

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn around(shape: &str, text: &str) -> String {
    shape.replace('Q', &quoted(text)).replace('@', text)
}

/// Whether bash runs `git push` of this.
fn pushes(folder: &Path, script: &str) -> bool {
    let log = folder.join("pushed");
    fs::write(&log, "").unwrap();
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(script).current_dir(folder).env("PATH", path).env("PUSHED", &log);
    bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    bash.status().unwrap();
    !fs::read_to_string(log).unwrap().is_empty()
}

/// A `git` that only says that it was told to push.
fn make_git(folder: &Path) {
    let bin = folder.join("bin");
    fs::create_dir(&bin).unwrap();
    let git = bin.join("git");
    fs::write(
        &git,
        "#!/bin/sh\nfor word; do [ \"$word\" = push ] && echo pushed >> \"$PUSHED\"; done\nexit 0\n",
    )
    .unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
}

/// C13 of the attacks: bash is the oracle.
#[test]
fn whatever_makes_bash_push_is_denied() {
    let folder = tempfile::tempdir().unwrap();
    make_git(folder.path());
    let policy = Policy { deny: vec![Rule::parse("bash(git push *)").unwrap()], ..Policy::default() };
    let is_denied = |script: &str| {
        let call = Asked { name: "bash", subject: Some(script), effect: Effect::Runs };
        matches!(policy.judge(&call, &[]), Verdict::Denied(_))
    };
    let mut tried: Vec<String> = Vec::new();
    for spelling in SPELLINGS {
        tried.extend(AROUND.iter().map(|shape| around(shape, spelling)));
    }
    for (n, outer) in AROUND.iter().enumerate() {
        for (m, inner) in AROUND.iter().enumerate() {
            let spelling = SPELLINGS[(n * AROUND.len() + m) % SPELLINGS.len()];
            tried.push(around(outer, &around(inner, spelling)));
        }
    }
    let through: Vec<&String> = tried
        .iter()
        .filter(|script| !is_denied(script))
        .filter(|script| pushes(folder.path(), script))
        .collect();
    assert!(through.is_empty(), "{} of {}: {through:#?}", through.len(), tried.len());
    // A rule that denies everything would pass, too. Of some shapes nobody knows what they run, whatever it is.
    let others =
        AROUND.iter().map(|shape| around(shape, "git pull")).filter(|script| is_denied(script)).count();
    assert!(others <= 3, "{others} of {} that only pull are denied", AROUND.len());
    // The oracle knows a push when it sees one.
    let seen = SPELLINGS.iter().filter(|script| pushes(folder.path(), script)).count();
    assert!(seen > SPELLINGS.len() * 9 / 10, "{seen} of {}", SPELLINGS.len());
}
