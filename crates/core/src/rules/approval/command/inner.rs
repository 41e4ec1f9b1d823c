//! Commands that are given to others: `env A=1 git push`, `find -exec …`, `sh -c '…'`.

use super::{Part, Read, Reader, Simple, Unreadable, Word};

/// A program that runs what it is given.
struct Runner {
    name: &'static str,
    /// Options that have a value in the next word.
    values: &'static [&'static str],
    /// How many words stand before the command, options apart.
    operands: usize,
}

const fn runner(name: &'static str, values: &'static [&'static str], operands: usize) -> Runner {
    Runner { name, values, operands }
}

const RUNNERS: &[Runner] = &[
    runner("builtin", &[], 0),
    runner("chrt", &["-p", "-T", "-P", "-D"], 1),
    runner("command", &[], 0),
    runner("coproc", &[], 0),
    runner("doas", &["-u", "-C", "-a"], 0),
    runner("env", &["-u", "--unset", "-C", "--chdir", "-S", "--split-string"], 0),
    runner("exec", &["-a"], 0),
    runner("ionice", &["-c", "-n", "-p", "-P", "-u", "--class", "--classdata"], 0),
    runner("nice", &["-n", "--adjustment"], 0),
    runner("nohup", &[], 0),
    runner("setsid", &[], 0),
    runner("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"], 0),
    runner(
        "sudo",
        &[
            "-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "-r", "-t", "--user", "--group", "--host",
            "--chdir",
        ],
        0,
    ),
    runner("time", &["-f", "-o", "--format", "--output"], 0),
    runner("timeout", &["-s", "-k", "--signal", "--kill-after"], 1),
    runner(
        "xargs",
        &[
            "-a",
            "-d",
            "-E",
            "-I",
            "-L",
            "-n",
            "-P",
            "-s",
            "--arg-file",
            "--delimiter",
            "--replace",
            "--max-lines",
            "--max-args",
            "--max-procs",
            "--max-chars",
        ],
        0,
    ),
];

/// Shells: what they are given is a script.
const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "rbash", "busybox"];

/// Options of shells that have a value in the next word.
const SHELL_VALUES: &[&str] = &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"];

/// At so many places a command may begin behind options that are not known.
const PLACES_MAX: usize = 16;

impl Reader {
    /// A command with these words, and those that it runs.
    pub(super) fn runs(&mut self, words: Vec<Word>, is_plain: bool) -> Read {
        // Each may run another.
        if self.deep >= super::DEEP_MAX {
            return Err(Unreadable::Content);
        }
        self.deep += 1;
        let read = self.given(&words);
        self.deep -= 1;
        self.found.push(Simple { words, is_plain });
        read
    }

    fn given(&mut self, words: &[Word]) -> Read {
        let Some((name, rest)) = words.split_first() else { return Ok(()) };
        let name = name.known().map_or("", base);
        match name {
            "eval" => self.literal(rest),
            "alias" => rest.iter().try_for_each(|word| match word.known() {
                Some(text) => text.split_once('=').map_or(Ok(()), |(_, script)| self.script(script)),
                None => Err(Unreadable::Content),
            }),
            "trap" => self.trap(rest),
            "find" => self.found_files(rest),
            "." | "source" => match rest.first().map(Word::known) {
                Some(Some(file)) if !is_input(file) => Ok(()),
                _ => Err(Unreadable::Content),
            },
            _ if SHELLS.contains(&name) => self.shell(rest),
            _ => RUNNERS
                .iter()
                .find(|runner| runner.name == name)
                .map_or(Ok(()), |runner| self.runner(runner, rest)),
        }
    }

    /// Words that are put together and read.
    fn literal(&mut self, words: &[Word]) -> Read {
        let known: Option<Vec<&str>> = words.iter().map(Word::known).collect();
        self.script(&known.ok_or(Unreadable::Content)?.join(" "))
    }

    fn trap(&mut self, words: &[Word]) -> Read {
        let mut words = words
            .iter()
            .skip_while(|word| word.known().is_some_and(|text| text.starts_with('-') && text.len() > 1));
        match words.next().map(Word::known) {
            Some(Some(script)) if script != "-" => self.script(script),
            Some(None) => Err(Unreadable::Content),
            Some(Some(_)) | None => Ok(()),
        }
    }

    /// `-exec git {} ;`
    fn found_files(&mut self, words: &[Word]) -> Read {
        let mut rest = words;
        while let Some(at) = rest.iter().position(is_exec) {
            rest = rest.get(at + 1..).unwrap_or_default();
            let end =
                rest.iter().position(|word| matches!(word.known(), Some(";" | "+"))).unwrap_or(rest.len());
            let (command, after) = rest.split_at(end);
            self.runs(command.iter().map(|word| filled(word, "{}")).collect(), true)?;
            rest = after;
        }
        Ok(())
    }

    fn shell(&mut self, words: &[Word]) -> Read {
        let mut at = 0;
        let mut reads_command = false;
        while let Some(word) = words.get(at) {
            let Some(text) = word.known() else { return Err(Unreadable::Content) };
            let is_option = text.len() > 1 && text.starts_with(['-', '+']);
            if text == "--" || !is_option {
                at += usize::from(text == "--");
                break;
            }
            reads_command |= text.starts_with('-') && !text.starts_with("--") && text.contains('c');
            if text.starts_with('-') && !text.starts_with("--") && text.contains('s') && !reads_command {
                return Err(Unreadable::Content);
            }
            at += if SHELL_VALUES.contains(&text) { 2 } else { 1 };
        }
        match words.get(at).map(Word::known) {
            Some(Some(script)) if reads_command => self.script(script),
            // The script is a file: what stands in it nobody sees here.
            Some(Some(file)) if !is_input(file) => Ok(()),
            // It reads what it is sent.
            _ => Err(Unreadable::Content),
        }
    }

    fn runner(&mut self, runner: &Runner, words: &[Word]) -> Read {
        if runner.name == "env" {
            self.split_strings(words)?;
        }
        if runner.name == "sudo" && words.iter().all(|word| word.begin().starts_with('-')) {
            // A shell, or an editor.
            return if words.is_empty() { Ok(()) } else { Err(Unreadable::Content) };
        }
        let filling = if runner.name == "xargs" { Some(replaced(words)) } else { None };
        let places = operands(words, runner.values);
        if places.len() > PLACES_MAX {
            return Err(Unreadable::Content);
        }
        for at in places {
            let at =
                words.iter().skip(at).take_while(|word| is_assignment(word)).count() + at + runner.operands;
            let Some(command) = words.get(at..).filter(|command| !command.is_empty()) else { continue };
            let mut command = command.to_vec();
            if let Some(sign) = &filling {
                command = command.iter().map(|word| filled(word, sign)).collect();
                command.push(Word::unknown());
            }
            self.runs(command, true)?;
        }
        Ok(())
    }

    /// `env -S 'git push'`
    fn split_strings(&mut self, words: &[Word]) -> Read {
        for (at, word) in words.iter().enumerate() {
            let Some(text) = word.known() else { continue };
            let script = match text {
                "-S" | "--split-string" => {
                    words.get(at + 1).map(|next| next.known().ok_or(Unreadable::Content)).transpose()?
                }
                _ => text.strip_prefix("--split-string=").or_else(|| text.strip_prefix("-S")),
            };
            script.map_or(Ok(()), |script| self.script(script))?;
        }
        Ok(())
    }
}

/// Programs whose options may stand before what they are told to do, with those that have a value in the next word.
const SUBCOMMANDS: &[(&str, &[&str])] = &[
    ("cargo", &["--color", "--config", "-Z", "-C"]),
    ("docker", &["-H", "--host", "-c", "--context", "-l", "--log-level", "--config"]),
    ("gh", &["-R", "--repo"]),
    (
        "git",
        &[
            "-C",
            "-c",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--config-env",
            "--attr-source",
            "--super-prefix",
        ],
    ),
    ("kubectl", &["-n", "--namespace", "--context", "--kubeconfig", "--cluster", "--user", "-s", "--server"]),
    ("npm", &["--prefix", "-C", "--workspace", "-w"]),
    ("pip", &["--python", "--log", "--proxy"]),
    ("podman", &["-c", "--connection", "--log-level", "--root"]),
    ("systemctl", &["-H", "--host", "-M", "--machine", "-p"]),
];

/// How else a command may be written that a rule is to deny: its program without the path, and what that is told to do
/// without the options before it.
pub(in super::super) fn spellings(command: &Simple) -> Vec<Vec<Word>> {
    let mut all = vec![command.words.clone()];
    let Some((name, rest)) = command.words.split_first() else { return all };
    let Some(name) = name.known().map(base) else { return all };
    let named = |rest: &[Word]| std::iter::once(Word::of(name)).chain(rest.iter().cloned()).collect();
    all.push(named(rest));
    if let Some((_, values)) = SUBCOMMANDS.iter().find(|(program, _)| *program == name) {
        // `cargo +nightly`
        let rest =
            if rest.first().is_some_and(|word| word.begin().starts_with('+')) { &rest[1..] } else { rest };
        all.extend(operands(rest, values).into_iter().take(PLACES_MAX).map(|at| named(&rest[at..])));
    }
    all
}

/// The name of a program, wherever it lies.
pub(in super::super) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// A file that is not one: what is written there is not known.
fn is_input(file: &str) -> bool {
    file == "-" || file.starts_with("/dev/") || file.starts_with("/proc/")
}

fn is_exec(word: &Word) -> bool {
    matches!(word.known(), Some("-exec" | "-execdir" | "-ok" | "-okdir"))
}

fn is_assignment(word: &Word) -> bool {
    let Some((name, _)) = word.begin().split_once('=') else { return false };
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What `xargs` puts its input in the place of.
fn replaced(words: &[Word]) -> String {
    let mut options = words.iter().filter_map(Word::known);
    let mut sign = "{}".to_owned();
    while let Some(option) = options.next() {
        if option == "-I" || option == "--replace" {
            sign = options.next().unwrap_or("{}").to_owned();
        } else if let Some(given) = option.strip_prefix("-I").or_else(|| option.strip_prefix("--replace=")) {
            given.clone_into(&mut sign);
        } else if let Some(given) = option.strip_prefix("-i").filter(|given| !given.is_empty()) {
            given.clone_into(&mut sign);
        }
    }
    sign
}

/// A word in which others are put.
fn filled(word: &Word, sign: &str) -> Word {
    let holds = |part: &Part| matches!(part, Part::Text(text) if !sign.is_empty() && text.contains(sign));
    if word.0.iter().any(holds) { Word::unknown() } else { word.clone() }
}

/// Where the first word may stand that is no option: options that are not known may have a value, or none.
pub(in super::super) fn operands(words: &[Word], values: &[&str]) -> Vec<usize> {
    let mut open = vec![0];
    let mut seen = vec![false; words.len()];
    let mut found = Vec::new();
    while let Some(at) = open.pop() {
        let Some(word) = words.get(at) else { continue };
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let text = word.begin();
        let is_option = text.len() > 1 && text.starts_with('-');
        let next: &[usize] = match word.known() {
            _ if !is_option => {
                found.push(at);
                continue;
            }
            Some("--") => {
                found.push(at + 1);
                continue;
            }
            Some(option) if values.contains(&option) => &[at + 2],
            _ if text.contains('=') => &[at + 1],
            _ if text.starts_with("--") => &[at + 1, at + 2],
            _ => &[at + 1],
        };
        open.extend(next);
    }
    found.sort_unstable();
    found.dedup();
    found
}
