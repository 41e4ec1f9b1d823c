//! Commands as models write them, and worse: the same ones each time.

/// Each of these is in every run; what has no end that is the same each time isn't here.
const KNOWN: &[&str] = &[
    "true",
    "cat /proc/self/environ | tr '\\0' '\\n'",
    "env; echo \"$0 $# $- $SHLVL $PWD $OLDPWD $_ [$BASH_EXECUTION_STRING]\"",
    "grep -E '^(SigIgn|Umask|Groups|NoNewPrivs|CapEff)' /proc/$$/status",
    "grep -E '^(SigBlk|SigIgn|SigCgt)' /proc/self/status; ulimit -a; umask",
    "ls /proc/self/fd | wc -l; readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2",
    "kill -TERM $$; echo after",
    "kill -TERM 0; echo after",
    "kill -KILL $$",
    "kill -INT $$; echo after",
    "kill -QUIT $$; echo after",
    "kill -PIPE $$; echo after",
    "kill -SEGV $$",
    "kill -ABRT $$",
    "kill -34 $$; echo after",
    "exec sh -c 'kill -HUP $$'",
    "exec python3 -c 'import os, signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL); os.kill(os.getpid(), 13)'",
    "trap 'echo got TERM; exit 9' TERM; kill -TERM $$; echo after",
    "trap 'echo got' TERM; kill -TERM 0; echo after",
    "trap '' TERM; kill -TERM 0; echo after",
    "trap 'echo bye $?' EXIT; exit 3",
    "(kill -TERM $BASHPID); echo after $?",
    "sh -c 'kill -9 $$'; echo after $?",
    "yes | head -1; echo ${PIPESTATUS[@]}",
    "ulimit -f 10; head -c 100000 /dev/zero > big; echo $?",
    "ulimit -n 20; ulimit -n; ulimit -S -c 0; ulimit -H -n",
    "(sleep 0.05; echo late) & echo early; wait",
    "sleep 0.05 & wait -n; echo $?; jobs",
    "sleep 1 > /dev/null 2>&1 & disown; echo gone on",
    "sleep 1 & kill %1; wait; echo $?",
    "set -m; sleep 0.01 & fg; echo $?",
    "head -c 100 /dev/zero | wc -c; cat; read x; echo \"$? [$x]\"",
    "cat <<'X'\nhere $HOME '\"\nX\ncd /tmp",
    "exec 3< /etc/hostname; read -r x <&3; exec 3<&-; echo ok; readlink /proc/self/fd/3 || echo closed",
    "exec > out 2>&1; echo into a file",
    "exec >&- 2>&-; echo nowhere; echo $? > status",
    "coproc cat; echo hi >&\"${COPROC[1]}\"; read -r x <&\"${COPROC[0]}\"; echo \"$x\"",
    "setsid sh -c 'echo in a session of its own'; nohup echo hup",
    "mkdir gone; cd gone; rmdir ../gone; echo $?",
    "cd /; cd - > /dev/null; cd /usr/bin/..",
    "ln -s /usr here; cd here/bin",
    "f() { local x=$1; ((x > 0)) && { echo $x; f $((x - 1)); }; }; f 5",
    "greet you; ll; type greet; alias",
    "shopt | grep on; set -o | grep on",
    "set -euo pipefail; false | true; echo unreachable",
    "echo \"$(</proc/self/comm)\"; cat /proc/$$/comm; tr '\\0' ' ' < /proc/$$/cmdline",
    "cat /proc/self/oom_score_adj /proc/self/limits; cat /proc/self/timerslack_ns; nice",
    "head -c 1048576 /dev/zero | tr '\\0' 'x'",
    "for i in $(seq 3000); do echo \"line $i\"; echo \"error $i\" >&2; done",
    "printf '\\xff\\xfe\\x00\\x80'; printf 'no line end'",
    "echo 'never closed",
    "if; then",
    "nosuchprogram --here; echo $?",
    "/etc; echo $?; ./nothing; echo $?",
    "bash -c 'echo inner $0; exit 200'; sh -ic 'echo $-' 2>/dev/null; echo $?",
    "timeout 0.05 sleep 5; echo $?; timeout -s KILL 0.05 sleep 5; echo $?",
    "python3 -c 'import os; print(os.getsid(0) == os.getpgid(0), os.environ[\"SHLVL\"], os.environ.get(\"_\"))'",
    "python3 -c 'import signal; print([s for s in range(1, 32) if signal.getsignal(s) == signal.SIG_IGN])'",
    "exit 255",
    "return 4",
    "false",
];

const HUGE: &str = "head -c 104857600 /dev/zero | tr '\\0' 'y'";

/// What the whole has besides.
const IN_FULL: usize = 2_000;

/// So many commands, the known ones first.
pub(crate) fn commands(count: usize) -> Vec<Vec<u8>> {
    let mut commands: Vec<Vec<u8>> = KNOWN.iter().map(|command| command.as_bytes().to_vec()).collect();
    commands.push(b"echo '\xff\xfe' \xe9; printf '%s' \xff > \xff.txt".to_vec());
    if count >= IN_FULL {
        commands.push(HUGE.into());
    }
    let mut dice = Dice(0x5eed_1234_5678_9abc);
    while commands.len() < count {
        commands.push(command(&mut dice).into_bytes());
    }
    commands
}

/// xorshift: nobody has to be surprised.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }

    fn of<'a>(&mut self, these: &[&'a str]) -> &'a str {
        these[self.below(these.len())]
    }
}

fn command(dice: &mut Dice) -> String {
    let mut made = String::new();
    for at in 0..=dice.below(5) {
        if at > 0 {
            made += if made.contains("<<") {
                "\n"
            } else {
                dice.of(&["; ", "\n", " && ", " || ", "\n\n# a word\n"])
            };
        }
        made += &statement(dice, 2);
    }
    made
}

fn statement(dice: &mut Dice, depth: usize) -> String {
    match dice.below(if depth == 0 { 9 } else { 15 }) {
        0..=2 => format!("echo {} {}", word(dice), word(dice)),
        3 => format!("printf '%s|%q\\n' {} {}", word(dice), word(dice)),
        4 => state(dice),
        5 => files(dice),
        6 => reads(dice).to_owned(),
        7 => ends(dice),
        8 => format!("x={}; echo \"[$x]\" ${{#x}}", word(dice)),
        9 => format!(
            "f{0}() {{ {1}; return {2}; }}; f{0} a 'b c'; echo $?",
            dice.below(9),
            inner(dice, depth),
            dice.below(256)
        ),
        10 => format!("( {} ); echo $?", subshell(dice, depth)),
        11 => format!("if {}; then {}; else {}; fi", test(dice), inner(dice, depth), inner(dice, depth)),
        12 => format!("for i in 1 {} 3; do {}; done", word(dice), inner(dice, depth)),
        13 => format!(
            "{{ {}; }} 2>&1 | {}",
            subshell(dice, depth),
            dice.of(&["cat", "sort", "wc -c", "sort -r", "head -2"])
        ),
        _ => format!("echo \"$( {}; )\"", subshell(dice, depth)),
    }
}

fn inner(dice: &mut Dice, depth: usize) -> String {
    let made = statement(dice, depth - 1);
    // A here document in a nested place needs its own line ends.
    if made.contains("<<") { "echo nested".to_owned() } else { made }
}

/// A shell that gets SIGINT from one that it has forked dies of it, or, once it waits for that one, goes on: bash
/// takes the signal as meant for the other. So such a command differs from itself.
fn subshell(dice: &mut Dice, depth: usize) -> String {
    let made = inner(dice, depth);
    if made.contains("kill -INT") { "echo nested".to_owned() } else { made }
}

fn word(dice: &mut Dice) -> &'static str {
    dice.of(&[
        "plain",
        "'single quoted'",
        "\"double $HOME\"",
        "\"it's\"",
        "'a'\"'\"'b'",
        "$'tab\\there'",
        "\\$HOME",
        "\"$nope\"",
        "${nope:-default}",
        "${nope-}",
        "\"${HOME##*/x}\"",
        "*",
        "'*'",
        "~",
        "{a,b}c",
        "$((6 * 7))",
        "\"a\\\\b\"",
        "é",
        "日本",
        "''",
        "\"\"",
        "`echo back`",
        "\"$(echo sub)\"",
        "!",
        "'!x'",
        "a\\ b",
        "$'\\xff'",
        "\"`echo \\\"q\\\"`\"",
        "-n",
        "-e",
        "%s",
        "a=b",
        "'\n'",
        "\"two\nlines\"",
        "#no",
        "'>'",
        "'2>nul'",
        "${BASH_VERSINFO[0]}",
        "$#",
        "$?",
        "$SHLVL",
        "$PWD",
        "\"$@\"",
    ])
}

fn test(dice: &mut Dice) -> &'static str {
    dice.of(&[
        "true",
        "false",
        "[ -f made ]",
        "[[ $x == a* ]]",
        "((1 > 0))",
        "test -d sub",
        "! true",
        "[[ é =~ ^.$ ]]",
    ])
}

fn state(dice: &mut Dice) -> String {
    match dice.below(10) {
        0 => format!("cd {}", dice.of(&["/tmp", "/", "..", "nowhere", "\"$HOME\"", "-", "."])),
        1 => "mkdir -p sub/deep && cd sub/deep".to_owned(),
        2 => format!("set {}", dice.of(&["-e", "-u", "-o pipefail", "-f", "+e", "-- one 'two three'", "-x"])),
        3 => format!("alias al='echo {}'\nal", dice.of(&["one", "two | cat", "\"$HOME\""])),
        4 => format!(
            "trap 'echo trapped {}' {}",
            dice.below(9),
            dice.of(&["EXIT", "USR1", "TERM", "ERR", "DEBUG", "INT"])
        ),
        5 => format!("umask {}; umask", dice.of(&["077", "0", "022", "u=rwx,g=,o="])),
        6 => format!("ulimit -n {0}; ulimit -n", 30 + dice.below(200)),
        7 => format!("export V{}={}; env | grep ^V", dice.below(9), word(dice)),
        8 => format!(
            "shopt -s {}",
            dice.of(&["nullglob", "failglob", "extglob", "dotglob", "globstar", "lastpipe"])
        ),
        _ => "greet $x; ll".to_owned(),
    }
}

fn files(dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => "touch made; ls".to_owned(),
        1 => format!("echo {} >> log; cat log", word(dice)),
        2 => "mkdir -p sub; chmod 700 sub; stat -c '%A %n' *".to_owned(),
        3 => "printf '\\xff\\x00\\xfe' > bytes; wc -c bytes".to_owned(),
        4 => format!("cat <<X\n{} $HOME\nX", word(dice)),
        5 => "cat <<'X'\n'quoted' \"$HOME\" \\\nX".to_owned(),
        6 => "cat <<-X | tr a-z A-Z\n\tmoved $((1 + 1))\n\tX".to_owned(),
        _ => format!("seq {} | tail -3", 10 + dice.below(20_000)),
    }
}

fn reads(dice: &mut Dice) -> &'static str {
    dice.of(&[
        "read x; echo \"$? [$x]\"",
        "cat",
        "wc -c",
        "cat <(echo one) <(echo two)",
        "read -r a b <<< 'x y z'; echo \"$b\"",
        "[ -t 0 ] || [ -t 1 ] || echo no terminal",
        "while read -r l; do echo \"<$l>\"; done < /etc/shells",
        "mapfile -t m < /etc/shells; echo ${#m[@]}",
        "nosuchprogram",
        "ls nowhere",
        "echo to errors >&2",
        "{ sleep 0.01; echo later; } & wait",
        "sleep 0.02 & wait $!; echo $?",
        "sleep 0.1 > /dev/null 2>&1 &",
        "declare -a arr=(1 'two three'); echo \"${arr[@]}\"",
        "head -c 300000 /dev/zero | tr '\\0' z",
    ])
}

fn ends(dice: &mut Dice) -> String {
    match dice.below(12) {
        0 | 1 => format!("exit {}", dice.below(256)),
        2 => format!("(exit {})", dice.below(256)),
        3 => format!(
            "kill -{} $$",
            dice.of(&["TERM", "KILL", "INT", "HUP", "QUIT", "USR1", "USR2", "ALRM", "SEGV", "PIPE", "CONT"])
        ),
        4 => format!("kill -{} 0", dice.of(&["TERM", "HUP", "USR1", "CONT", "WINCH", "INT"])),
        5 => format!(
            "exec {}",
            dice.of(&["echo done", "sh -c 'exit 9'", "true", "> out", "nosuchprogram", "2>&1", "env"])
        ),
        6 => format!("sh -c 'kill -{} $$'", dice.of(&["TERM", "KILL", "HUP", "USR1"])),
        7 => "false".to_owned(),
        8 => "(kill -TERM $BASHPID)".to_owned(),
        9 => "eval 'echo evaluated; false'".to_owned(),
        10 => "bash -c 'exit 77'".to_owned(),
        _ => "echo \"${nope?is not set}\"".to_owned(),
    }
}
