//! Where the tests of `midturn-exec` run commands: a home, a spool, and commands started as Claude Code starts them.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The session, as its environment names it.
pub(crate) const SESSION: &str = "6a0cbb9f-df0c-4f88-8ad2-c0d11653d177";

/// What Claude Code's own snapshots hold: functions, options, aliases.
const SNAPSHOT: &str = "unalias -a 2>/dev/null || true\ngreet () \n{ \n    echo \"hello $1\"\n}\n\
                        shopt -s expand_aliases\nalias -- ll='echo aliased'\nexport PATH=/usr/local/bin:/usr/bin:/bin\n";

pub(crate) struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let ground = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(ground.path("shell-snapshots")).unwrap();
        fs::write(ground.path("shell-snapshots/snapshot-bash-1-x.sh"), SNAPSHOT).unwrap();
        fs::create_dir(ground.path("work")).unwrap();
        let mut folder = ground.path("state");
        for part in ["", "midturn", "joined", SESSION] {
            folder.push(part);
            fs::create_dir(&folder).unwrap();
            fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        }
        ground
    }

    pub(crate) fn path(&self, inner: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(inner)
    }

    /// A file of an agent's in the spool, laid as its writers do: whole.
    pub(crate) fn lay(&self, agent: &str, place: &str, name: &str, text: &str) {
        let folder = self.agent(agent).join(place);
        for folder in [&self.agent(agent), &folder] {
            fs::create_dir_all(folder).unwrap();
            fs::set_permissions(folder, Permissions::from_mode(0o700)).unwrap();
        }
        fs::write(folder.join(".half"), text).unwrap();
        fs::rename(folder.join(".half"), folder.join(name)).unwrap();
    }

    pub(crate) fn agent(&self, agent: &str) -> PathBuf {
        self.path("state/midturn/joined").join(SESSION).join(agent)
    }

    /// The text that Claude Code makes of a command.
    pub(crate) fn text(&self, command: &[u8]) -> Vec<u8> {
        let input: &[u8] = if has_input(command) { b"" } else { b" < /dev/null" };
        let folder = self.folder.path().to_str().unwrap();
        let head = format!(
            "source {folder}/shell-snapshots/snapshot-bash-1-x.sh 2>/dev/null || true && {{ \\builtin shopt -u extglob \
             || \\builtin setopt NO_EXTENDED_GLOB; }} >/dev/null 2>&1 || true && {{ \\builtin unalias -- 'which'; \
             \\builtin unset -f -- 'which'; }} >/dev/null 2>&1 || true && eval "
        );
        let tail = format!(" && pwd -P >| {folder}/cwd");
        [head.as_bytes(), &quote(command), input, tail.as_bytes()].concat()
    }

    /// Starts a command in a session of its own, output and errors in one file, signals as they are there.
    pub(crate) fn start(&self, command: &[u8], prefix: Option<&Path>) -> Child {
        let text = self.text(command);
        let line = match prefix {
            Some(prefix) => [prefix.to_str().unwrap().as_bytes(), b" ", &quote(&text)].concat(),
            None => text,
        };
        let output = File::create(self.path("output")).unwrap();
        let mut start = Command::new("/usr/bin/setsid");
        start
            // Whoever starts the tests may ignore some, and a shell can't trap what is ignored when it starts.
            .args(["/usr/bin/env", "--default-signal=HUP,INT,QUIT", "--ignore-signal=PIPE,XFSZ"])
            .args(["/bin/bash", "-c"])
            .arg(OsString::from_vec(line));
        start.current_dir(self.path("work")).env_clear().envs(self.environment());
        start.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        start.spawn().unwrap()
    }

    fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("AI_AGENT", "claude-code_2-1-331_agent".into()),
            ("CLAUDECODE", "1".into()),
            ("CLAUDE_PID", std::process::id().to_string().into()),
            ("CLAUDE_CODE_SESSION_ID", SESSION.into()),
            ("HOME", self.folder.path().into()),
            ("LANG", "C.UTF-8".into()),
            ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
            ("SHELL", "/bin/bash".into()),
            ("ODD", OsString::from_vec(b"\xff\xfe'\n x".to_vec())),
            ("XDG_STATE_HOME", self.path("state").into()),
        ]
    }

    pub(crate) fn output(&self) -> Vec<u8> {
        fs::read(self.path("output")).unwrap()
    }
}

pub(crate) fn prefix() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_midturn-exec"))
}

/// A here document, or a `<` of its own.
fn has_input(command: &[u8]) -> bool {
    command.windows(2).any(|pair| pair == b"<<" || pair == b"< ")
}

pub(crate) fn quote(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for &byte in text {
        if byte == b'\'' { quoted.extend(b"'\"'\"'") } else { quoted.push(byte) }
    }
    quoted.push(b'\'');
    quoted
}

/// Waits for a condition.
#[allow(dead_code, reason = "not every test waits")]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// The processes that are alive and have this in their words.
#[allow(dead_code, reason = "not every test looks")]
pub(crate) fn alive(mark: &str) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_mark = |pid: &i32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(mark) && is_alive(*pid)
    };
    pids.filter(has_mark).collect()
}

#[allow(dead_code, reason = "not every test looks")]
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat).into_owned();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

#[allow(dead_code, reason = "not every test ends with one")]
pub(crate) fn ended(mut child: Child) -> ExitStatus {
    child.wait().unwrap()
}

#[allow(dead_code, reason = "not every test signals")]
pub(crate) fn signal(pid: i32, signal: &str) {
    let sent = Command::new("kill").args([OsStr::new(signal), pid.to_string().as_ref()]).status().unwrap();
    assert!(sent.success());
}
