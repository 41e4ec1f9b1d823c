//! Whether corrections will work in Claude Code, in lines for a person. It looks, and changes nothing; what is in
//! settings that it can't read it says, and goes on.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;

use super::entries::{EVENTS, Handler, PREFIX};
use super::json::Text;
use super::manifest::{Kept, Manifest};
use super::{edit, entries, file, prefix};

/// The version of Claude Code that we are tried with.
pub const TESTED: &str = "2.1.331";

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// Corrections come, and something could be better.
    Weak,
    /// No correction comes, or Claude Code's own work is hindered.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// How it is.
    pub state: State,
    /// What was looked at.
    pub about: &'static str,
    /// What was found.
    pub found: String,
    /// What to do, where something is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

/// Where to look, and what only whoever asks can know.
#[derive(Debug, Clone)]
pub struct Look {
    /// The person's settings, if they have a folder.
    pub user: Option<PathBuf>,
    /// The folder of the project.
    pub project: PathBuf,
    /// The folder of what an administrator has set.
    pub managed: PathBuf,
    /// The folder of our state.
    pub state: PathBuf,
    /// This program, as an install would name it.
    pub program: PathBuf,
    /// The environment's prefix.
    pub prefix: Option<String>,
    /// The `claude` that is there, and what it says of its version; or why none is asked.
    pub claude: Result<(PathBuf, String), String>,
    /// The time.
    pub now: SystemTime,
}

/// A file of settings that is there and can be read.
struct Seen {
    whose: Whose,
    path: PathBuf,
    text: Text,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    User,
    Project,
    Managed,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Whether our hooks are in any settings here.
    pub is_installed: bool,
    /// All that there is to say.
    pub lines: Vec<Line>,
}

/// Looks at everything.
pub fn look(at: &Look) -> Status {
    let mut lines = vec![claude(at)];
    let (seen, unread) = settings(at);
    lines.extend(unread);
    lines.extend(seen.iter().filter(|seen| !seen.text.is_strict()).map(lenient));
    let hooks: Vec<Line> = seen.iter().filter_map(|seen| hooks_of(at, seen)).collect();
    let is_installed = !hooks.is_empty();
    lines.extend(if is_installed { hooks } else { vec![no_hooks()] });
    lines.extend(seen.iter().filter_map(switched_off));
    lines.extend(strangers(at, &seen));
    lines.extend(prefixes(at, &seen));
    lines.push(last_run(at));
    Status { is_installed, lines }
}

fn line(state: State, about: &'static str, found: String) -> Line {
    Line { state, about, found, mend: None }
}

impl Line {
    fn mended_by(self, mend: impl Into<String>) -> Self {
        Self { mend: Some(mend.into()), ..self }
    }
}

fn claude(at: &Look) -> Line {
    let (path, version) = match &at.claude {
        Ok(found) => found,
        Err(why) => {
            let mend = "npm install -g @anthropic-ai/claude-code, to where nobody else can write";
            let found = format!("{why}; Midturn is tried with {TESTED}");
            return line(State::Weak, "claude", found).mended_by(mend);
        }
    };
    let version = version.trim();
    let found = format!("{} in {}; Midturn is tried with {TESTED}", version, path.display());
    let is_tested = version.split_whitespace().next() == Some(TESTED);
    line(if is_tested { State::Ok } else { State::Weak }, "claude", found)
}

/// All settings that Claude Code would read here, and a line for each that nobody can.
fn settings(at: &Look) -> (Vec<Seen>, Vec<Line>) {
    let of_project =
        ["settings.json", "settings.local.json"].map(|name| at.project.join(".claude").join(name));
    let user = at.user.iter().map(|path| (Whose::User, path.clone()));
    let project = of_project.into_iter().filter(|path| Some(path) != at.user.as_ref());
    let project = project.map(|path| (Whose::Project, path));
    let managed = managed(&at.managed).into_iter().map(|path| (Whose::Managed, path));
    let (mut seen, mut unread) = (Vec::new(), Vec::new());
    for (whose, path) in user.chain(project).chain(managed) {
        match read(&path) {
            Ok(Some(text)) => seen.push(Seen { whose, path, text }),
            Ok(None) => {}
            Err(why) => unread.push(
                line(State::Missing, "settings", format!("{why}, so Claude Code obeys nothing in it"))
                    .mended_by("mend or remove the file"),
            ),
        }
    }
    (seen, unread)
}

/// An administrator's file, and the files of the folder beside it.
fn managed(folder: &Path) -> Vec<PathBuf> {
    let more = std::fs::read_dir(folder.join("managed-settings.d"));
    let more = more.into_iter().flatten().flatten().map(|entry| entry.path());
    let more = more.filter(|path| path.extension().is_some_and(|kind| kind == "json"));
    [folder.join("managed-settings.json")].into_iter().chain(more).collect()
}

fn read(path: &Path) -> Result<Option<Text>, String> {
    // A link is refused where we write; Claude Code reads what it leads to, and so does this.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let Some(found) = file::look(&real).map_err(|refused| refused.to_string())? else { return Ok(None) };
    let told = |why: &str| format!("{}: {why}", path.display());
    let text = String::from_utf8(found.bytes).map_err(|_| told("it is not UTF-8"))?;
    Text::of(text).map(Some).map_err(|why| told(&why.to_string()))
}

fn lenient(seen: &Seen) -> Line {
    let found = format!("{}: there is a comment or a last comma in it", seen.path.display());
    let found = format!("{found}, and Claude Code {TESTED} reads no such file");
    line(State::Missing, "settings", found).mended_by("take them out")
}

fn no_hooks() -> Line {
    let found = "neither in your settings nor in the project's; a plugin can't be seen from here".to_owned();
    line(State::Missing, "hooks", found).mended_by("midturn hooks install")
}

/// Our hooks in one file: whose program they start.
fn hooks_of(at: &Look, seen: &Seen) -> Option<Line> {
    let known = Kept::of(&at.state, &seen.path).read();
    let ours = Manifest::ours(known.as_ref());
    let found = edit::alike(&seen.text).into_iter();
    let found: Vec<(String, Handler)> = found
        .filter(|(_, hook)| ours.has(hook) && (seen.whose == Whose::User || is_this(at, &hook.command)))
        .collect();
    let program = found.first().map(|(_, hook)| hook.command.clone())?;
    let lacking: Vec<&str> =
        EVENTS.into_iter().filter(|event| !found.iter().any(|(of, _)| of == event)).collect();
    let where_and_by = format!("in {}, by {program}", seen.path.display());
    let again = match seen.whose {
        Whose::Project => "midturn hooks install --project",
        Whose::User | Whose::Managed => "midturn hooks install",
    };
    let (state, more) = match () {
        () if !Path::new(&program).is_file() => (State::Missing, ", which is gone".to_owned()),
        () if !lacking.is_empty() => (State::Missing, format!("; none for {}", lacking.join(", "))),
        () if !is_this(at, &program) => (State::Weak, format!(", and this is {}", at.program.display())),
        () => (State::Ok, String::new()),
    };
    let line = line(state, "hooks", where_and_by + &more);
    Some(if state == State::Ok { line } else { line.mended_by(again) })
}

fn is_this(at: &Look, program: &str) -> bool {
    Path::new(program) == at.program || prefix::is_same(Path::new(program), &at.program)
}

/// Settings that keep hooks from running. A project's word holds for the user's hooks too.
fn switched_off(seen: &Seen) -> Option<Line> {
    let key = match seen.whose {
        _ if edit::says(&seen.text, "disableAllHooks") => "disableAllHooks",
        Whose::Managed if edit::says(&seen.text, "allowManagedHooksOnly") => "allowManagedHooksOnly",
        _ => return None,
    };
    let found = format!("`{key}` in {}: no hook of ours runs", seen.path.display());
    let mend = match seen.whose {
        Whose::Managed => "ask whoever administers this machine",
        Whose::User | Whose::Project => "take it out if you want corrections",
    };
    Some(line(State::Missing, "switch", found).mended_by(mend))
}

/// What a repository's file starts that is called as our hooks are: whoever wrote it decides what it does.
fn strangers(at: &Look, seen: &[Seen]) -> Vec<Line> {
    let of_project = seen.iter().filter(|seen| seen.whose == Whose::Project);
    let mut lines = Vec::new();
    for seen in of_project {
        let mut programs: Vec<String> =
            edit::alike(&seen.text).into_iter().map(|(_, handler)| handler.command).collect();
        programs.sort();
        programs.dedup();
        for program in programs.into_iter().filter(|program| !is_this(at, program)) {
            let found = format!("{}: a repository's file runs {program} as a hook", seen.path.display());
            lines.push(
                line(State::Weak, "stranger", found).mended_by("look what that is, and who put it there"),
            );
        }
    }
    lines
}

/// The prefix that will be in force. Without it corrections come; only an urgent one can't end a command by it.
fn prefixes(at: &Look, seen: &[Seen]) -> Vec<Line> {
    let of_settings =
        seen.iter().filter_map(|seen| Some((seen.path.display().to_string(), edit::prefix_of(&seen.text)?)));
    let of_variable = at.prefix.iter().map(|prefix| (format!("the environment ({PREFIX})"), prefix.clone()));
    let exec = prefix::path(&at.state);
    let lines: Vec<Line> = of_settings
        .chain(of_variable)
        .map(|(place, prefix)| prefix_line(at, &exec, &place, &prefix))
        .collect();
    if !lines.is_empty() {
        return lines;
    }
    let found = "not set: an urgent message skips what has not started, and waits for the command that runs"
        .to_owned();
    let mend = match exec.to_str().is_some_and(entries::can_be_a_prefix) {
        true => "midturn hooks install",
        false => "a XDG_STATE_HOME without blanks, then midturn hooks install",
    };
    vec![line(State::Weak, "prefix", found).mended_by(mend)]
}

fn prefix_line(at: &Look, exec: &Path, place: &str, prefix: &str) -> Line {
    let path = Path::new(prefix);
    let is_ours = path.file_name() == exec.file_name();
    let found = format!("{prefix} by {place}");
    match () {
        () if is_ours && !path.is_file() => {
            line(State::Missing, "prefix", format!("{found}, which is gone: every Bash command fails"))
                .mended_by("midturn hooks install, or midturn hooks uninstall")
        }
        () if is_ours && prefix::is_same(path, &at.program) => line(State::Ok, "prefix", found),
        () if is_ours => {
            let found = format!("{found}, of another version than this one");
            line(State::Weak, "prefix", found).mended_by("midturn hooks install")
        }
        () => {
            let found = format!("{found}, which is not ours: an urgent message can't end a command by it");
            line(State::Weak, "prefix", found).mended_by("take it out, then midturn hooks install")
        }
    }
}

/// A hook touches this file whenever it runs.
fn last_run(at: &Look) -> Line {
    let touched = std::fs::metadata(at.state.join("joined/last")).and_then(|about| about.modified());
    let found = match touched {
        Ok(when) => {
            format!("a hook last ran {} ago", age(at.now.duration_since(when).unwrap_or_default().as_secs()))
        }
        Err(_) => "no hook has run yet; sessions that are open now may have to be started again".to_owned(),
    };
    line(State::Ok, "last", found)
}

fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
