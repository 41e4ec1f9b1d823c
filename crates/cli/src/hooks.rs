//! `midturn hooks`: the hooks of Claude Code, by which Midturn corrects its agents. What is done to settings is
//! `midturn-bridges`'; here are the folders, and what a person is told.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use midturn_bridges::claude::install::{
    self, Done, Install, Line, Look, PrefixDone, Settings, State, Status, TESTED, Trouble, Undone,
};
use midturn_tools::programs;

use crate::args::{HooksArgs, HooksCommand, HooksInstallArgs, HooksStatusArgs, LayerArgs, WhichSettingsArgs};
use crate::commands;
use crate::env::{self, Env};
use crate::failure::{End, Failure};

/// Where an administrator's settings are.
const MANAGED: &str = "/etc/claude-code";

/// The environment's prefix of Claude Code.
const PREFIX: &str = "CLAUDE_CODE_SHELL_PREFIX";

/// How long `claude --version` may take: it is a large file on a cold disk.
const VERSION_WAIT: Duration = Duration::from_secs(10);

/// `midturn hooks`.
///
/// # Errors
/// [`Failure::Usage`]: the settings must not be written, or can't be read; they are as they were.
pub(crate) fn hooks(args: &HooksArgs, env: &Env) -> Result<End, Failure> {
    match &args.command {
        HooksCommand::Install(args) => put_in(args, env),
        HooksCommand::Uninstall(which) => take_out(which, env),
        HooksCommand::Status(args) => status(args, env),
        HooksCommand::Plugin { folder } => plugin(folder, env),
    }
}

fn put_in(args: &HooksInstallArgs, env: &Env) -> Result<End, Failure> {
    let settings = settings(&args.which, env)?;
    let with_prefix = if args.which.project { args.with_prefix } else { !args.no_prefix };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let program = program(env)?;
    let done = settings.install(&Install { program, with_prefix, version }).map_err(failed)?;
    commands::print(&told_of_install(args, &settings, &done))
}

fn told_of_install(args: &HooksInstallArgs, settings: &Settings, done: &Done) -> String {
    let path = settings.path.display();
    let mut told = match (done.is_changed, &done.backup) {
        (false, _) => format!("{path}: the hooks are there already\n"),
        (true, Some(backup)) => {
            format!("{path}: the hooks are in; what there was before is in {}\n", backup.display())
        }
        (true, None) => format!("{path}: the hooks are in; there was no such file before\n"),
    };
    told += &match &done.prefix {
        PrefixDone::Ours(exec) => format!("Bash commands start by {}\n", exec.display()),
        PrefixDone::NotAsked if args.which.project && !args.no_prefix => {
            "no prefix is set: it would fail every Bash command of whoever hasn't the file (--with-prefix sets it)\n"
                .to_owned()
        }
        PrefixDone::NotAsked => "no prefix is set\n".to_owned(),
        PrefixDone::Other(other) => format!(
            "the prefix `{other}` is there already and stays: an urgent message can't end a command by ours\n"
        ),
        PrefixDone::Path(path) => format!(
            "no prefix is set: a shell would take the path {} apart; a XDG_STATE_HOME without blanks mends that\n",
            path.display()
        ),
    };
    if args.which.project {
        told += "whoever works with this file runs what stands in it: look before you commit it\n";
    }
    if done.has_comments {
        told += &format!(
            "{path} has a comment or a last comma in it: Claude Code {TESTED} reads no such file, take them out\n"
        );
    }
    told += "sessions that are open now may have to be started again; `midturn hooks status` says whether all is well\n";
    told
}

fn take_out(which: &WhichSettingsArgs, env: &Env) -> Result<End, Failure> {
    let settings = settings(which, env)?;
    let path = settings.path.display();
    let told = match settings.uninstall().map_err(failed)? {
        Undone::Nothing => format!("{path}: nothing of Midturn's is there\n"),
        Undone::Restored => format!("{path}: it is what it was before the install, byte for byte\n"),
        Undone::Removed => format!("{path}: removed, as there was none before the install\n"),
        Undone::TakenOut => {
            format!("{path}: Midturn's entries are out; what was edited since the install stays\n")
        }
    };
    let exec = settings.state.join("bin/midturn-exec");
    let left = format!(
        "{} stays, for sessions that are open now start their commands by it; remove it when they have ended\n",
        exec.display()
    );
    commands::print(&(told + if exec.exists() { &left } else { "" }))
}

fn status(args: &HooksStatusArgs, env: &Env) -> Result<End, Failure> {
    let folder = work_folder(args.cwd.as_deref())?;
    let Status { lines, .. } = look(&folder, env)?;
    let works = lines.iter().all(|line| line.state < State::Missing);
    let text = if args.json {
        format!("{:#}\n", serde_json::json!({"ok": works, "tested": TESTED, "lines": lines}))
    } else {
        let last =
            if works { "corrections will work" } else { "corrections won't work: see what is missing" };
        let lines: Vec<String> = lines.iter().map(shown).collect();
        format!("{}\n\n{last}\n", lines.join("\n"))
    };
    commands::print(&text)?;
    Ok(if works { End::Finished } else { End::Failed })
}

/// One line, and one more that says what to do, as `midturn doctor` has them.
fn shown(line: &Line) -> String {
    let state = match line.state {
        State::Ok => "ok",
        State::Weak => "weak",
        State::Missing => "missing",
    };
    let mend = line.mend.as_ref().map(|mend| format!("\n        -> {mend}")).unwrap_or_default();
    format!("{state:7} {}: {}{mend}", line.about, line.found)
}

/// What `midturn hooks status` and `midturn doctor` say.
///
/// # Errors
/// [`Failure::Usage`]: there is no home, or this program isn't there any more.
pub(crate) fn look(folder: &Path, env: &Env) -> Result<Status, Failure> {
    let state = state(env)?;
    let project = env::repository(folder).unwrap_or(folder).to_owned();
    // As for every program that we start: an agent of an earlier session may have left one here.
    programs::keep_out_of([folder, &project, &state]);
    Ok(install::look(&Look {
        user: user_settings(env),
        project,
        managed: PathBuf::from(MANAGED),
        state,
        program: program(env)?,
        prefix: env.text(PREFIX)?.map(str::to_owned),
        claude: programs::find(programs::Program::Claude).map_err(|none| none.to_string()).map(|path| {
            let version = version(&path).unwrap_or_else(|| "of a version that it doesn't say".to_owned());
            (path, version)
        }),
        now: SystemTime::now(),
    }))
}

fn plugin(folder: &Path, env: &Env) -> Result<End, Failure> {
    let program = program(env)?;
    let name = program.to_str().ok_or_else(|| failed(Trouble::Program(program.clone())))?;
    install::write_plugin(folder, name, env!("CARGO_PKG_VERSION")).map_err(Failure::usage)?;
    let shown = folder.display();
    commands::print(&format!("{shown}: written; `claude --plugin-dir {shown}` starts a session with it\n"))
}

fn failed(trouble: Trouble) -> Failure {
    Failure::usage(trouble)
}

fn settings(which: &WhichSettingsArgs, env: &Env) -> Result<Settings, Failure> {
    let nowhere = || Failure::usage("neither CLAUDE_CONFIG_DIR nor HOME names a folder for your settings");
    let path = if which.project {
        let folder = work_folder(which.cwd.as_deref())?;
        env::repository(&folder).unwrap_or(&folder).join(".claude/settings.json")
    } else {
        user_settings(env).ok_or_else(nowhere)?
    };
    Ok(Settings { path, state: state(env)? })
}

fn work_folder(asked: Option<&Path>) -> Result<PathBuf, Failure> {
    commands::work_folder(&LayerArgs { cwd: asked.map(Path::to_owned), ..LayerArgs::default() })
}

fn user_settings(env: &Env) -> Option<PathBuf> {
    Some(env.claude_folder()?.join("settings.json"))
}

fn state(env: &Env) -> Result<PathBuf, Failure> {
    env.state_folder()
        .ok_or_else(|| Failure::usage("neither XDG_STATE_HOME nor HOME names a folder for our state"))
}

/// This program by the path that will last: a package puts a new version where `PATH` leads, not always where the old
/// one was.
fn program(env: &Env) -> Result<PathBuf, Failure> {
    let gone = |_| Failure::failed("this program was replaced while it ran: try again");
    let real = std::env::current_exe().and_then(|path| path.canonicalize()).map_err(gone)?;
    let in_path = env.text("PATH")?.unwrap_or_default();
    let named = std::env::split_paths(in_path).filter(|folder| folder.is_absolute());
    let named = named.map(|folder| folder.join("midturn"));
    let mut same = named.filter(|path| path.canonicalize().is_ok_and(|path| path == real));
    Ok(same.next().unwrap_or(real))
}

/// What a `claude` says of its version.
fn version(program: &Path) -> Option<String> {
    let mut asked = Command::new(program);
    asked.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = asked.spawn().ok()?;
    let said = within(&mut child, VERSION_WAIT);
    let _ = child.kill();
    let _ = child.wait();
    said.and_then(|said| Some(said.lines().next()?.trim().to_owned())).filter(|line| !line.is_empty())
}

/// What a process writes until it ends, if that is soon.
fn within(child: &mut Child, wait: Duration) -> Option<String> {
    let out = child.stdout.take()?;
    let (tell, told) = mpsc::sync_channel(1);
    // It ends with the process, which is killed.
    std::thread::spawn(move || {
        let mut said = String::new();
        let whole = out.take(4_096).read_to_string(&mut said).is_ok();
        tell.send(whole.then_some(said)).ok();
    });
    told.recv_timeout(wait).ok().flatten()
}
