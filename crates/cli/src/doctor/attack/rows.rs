//! What is tried: one row for each line of the table. Commands say `can` when they could, `own` when it was their own,
//! `none` when it isn't there, `bounded …` when something stopped them; else the system's words are read. None of them
//! prints what it has read.

use std::path::{Path, PathBuf};

use midturn_tools::sandbox::Tier;

use super::met::Met;
use super::promise::By;
use super::scene::{Scene, is_running, was_linked, was_made};
use crate::config::FILE_NAME;

/// More than this is filled by nobody, and no more threads begun.
const FILL_MAX: u64 = 1 << 30;
const THREADS_MAX: u32 = 2_048;

/// How far past a limit it is tried.
const PAST: u64 = 64 << 20;

/// One thing that is tried.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// In plain words.
    pub(super) what: &'static str,
    /// What its promise depends on.
    pub(super) by: By,
    /// How.
    pub(super) tried: fn(&Scene) -> Tried,
    /// How it is known to be true.
    pub(super) after: After,
}

/// How something is tried.
pub(super) enum Tried {
    /// By this command.
    Command(String),
    /// Not at all, for there is nothing to try.
    Not(Met),
}

/// How it is known what a command has really done.
#[derive(Clone, Copy)]
pub(super) enum After {
    /// By what it says.
    Nothing,
    /// By looking from outside; where it isn't so, what it did was this.
    Look(fn(&Scene) -> bool, &'static Met),
    /// By a second command.
    Next(fn(&Scene) -> String),
}

/// A row that is believed.
const fn row(what: &'static str, by: By, tried: fn(&Scene) -> Tried) -> Row {
    Row { what, by, tried, after: After::Nothing }
}

impl Row {
    const fn look(self, is_so: fn(&Scene) -> bool, otherwise: &'static Met) -> Self {
        let Self { what, by, tried, .. } = self;
        Self { what, by, tried, after: After::Look(is_so, otherwise) }
    }

    const fn next(self, command: fn(&Scene) -> String) -> Self {
        let Self { what, by, tried, .. } = self;
        Self { what, by, tried, after: After::Next(command) }
    }
}

/// All of them, in the order in which they are told.
pub(super) static ROWS: [Row; 38] = [
    row("write in your home", By::Sandbox, |s| of(s.home.as_deref(), |home| make(&s.trace(home))))
        .look(|s| s.home.as_deref().is_some_and(|home| was_made(&s.trace(home))), &Met::Own),
    row("write in /etc", By::Sandbox, |s| Tried::Command(make(&s.trace(Path::new("/etc")))))
        .look(|s| was_made(&s.trace(Path::new("/etc"))), &Met::Own),
    row("write in /usr", By::Sandbox, |s| Tried::Command(make(&s.trace(Path::new("/usr")))))
        .look(|s| was_made(&s.trace(Path::new("/usr"))), &Met::Own),
    row("write in a project beside its own", By::Sandbox, |s| {
        Tried::Command(make(&s.trace(&s.at("beside"))))
    })
    .look(|s| was_made(&s.trace(&s.at("beside"))), &Met::Own),
    row("read a file of a project beside its own", By::Sandbox, |s| Tried::Command(open(&canary(s)))),
    row("link such a file into its own", By::Sandbox, |s| {
        Tried::Command(format!("ln {} linked && echo can", quoted(&canary(s))))
    })
    .look(|s| was_linked(&canary(s)), &Met::Own),
    row("list your home", By::Sandbox, |s| of(s.home.as_deref(), list_home)),
    row("look into ~/.ssh", By::Sandbox, |s| below_home(s, ".ssh")),
    row("look into ~/.aws", By::Sandbox, |s| below_home(s, ".aws")),
    row("read Midturn's configuration of yours", By::Sandbox, |s| of(s.configuration.as_deref(), open)),
    row("look into Midturn's state: sessions, the token", By::Sandbox, |s| {
        of(s.state_of_ours.as_deref(), look_into)
    }),
    row("make a git hook in the project", By::View, |s| Tried::Command(make(&hook(s))))
        .look(|s| was_made(&hook(s)), &Met::TakenBack),
    row("change the project's git settings", By::View, |_| {
        Tried::Command("echo '[attack]' >>.git/config && echo can".to_owned())
    })
    .look(|s| holds(&s.at("project/.git/config"), "[attack]"), &Met::TakenBack),
    row("rename the project's midturn.toml", By::View, |_| {
        Tried::Command(format!("mv {FILE_NAME} moved && echo can"))
    })
    .look(|s| !s.at("project").join(FILE_NAME).exists(), &Met::TakenBack),
    row("make .claude/settings.json in the project", By::View, |_| {
        Tried::Command("mkdir -p .claude && : >.claude/settings.json && echo can".to_owned())
    })
    .look(|s| was_made(&s.at("project/.claude/settings.json")), &Met::TakenBack),
    row("make .mcp.json in the project", By::View, |_| Tried::Command(": >.mcp.json && echo can".to_owned()))
        .look(|s| was_made(&s.at("project/.mcp.json")), &Met::TakenBack),
    row("give a file the setuid bit", By::Sandbox, |_| {
        Tried::Command(": >own && chmod u+s own && echo can".to_owned())
    }),
    row("see other processes: this one", By::OwnProcesses, |s| {
        Tried::Command(format!("{}echo can", only_if_seen(s)))
    }),
    row("signal other processes: this one", By::Signals, |s| {
        about_us(s, &format!("kill -0 {} && echo can", pid()))
    }),
    row("read the environment of this process", By::Sandbox, |s| {
        about_us(s, &open(&PathBuf::from(format!("/proc/{}/environ", pid()))))
    }),
    row("trace the process above it", By::Sandbox, |_| python(PTRACE, "")),
    row("make a user namespace", By::Sandbox, |_| {
        Tried::Command("unshare --user true && echo can".to_owned())
    }),
    row("mount a file system", By::Sandbox, |_| {
        Tried::Command(
            "mkdir -p mounted && mount -t tmpfs none mounted && umount mounted && echo can".to_owned(),
        )
    }),
    row("change its root", By::Sandbox, |_| Tried::Command("chroot / true && echo can".to_owned())),
    row("reach a server on this machine's loopback", By::Network, |s| {
        Tried::Command(connect("127.0.0.1", s.port))
    }),
    row("reach a cloud's metadata (169.254.169.254)", By::Network, |_| leave("169.254.169.254")),
    row("reach an address outside (192.0.2.1, nobody's)", By::Network, |_| leave("192.0.2.1")),
    row("look up a name (example.com)", By::Network, |_| Tried::Command(LOOK_UP.to_owned())),
    row("reach another program's socket by its file", By::Sandbox, |s| {
        python(UNIX, &quoted(&s.at("outside/socket")))
    }),
    row("reach another program's abstract socket", By::AbstractSockets, |s| {
        python(UNIX, &format!("@{}", s.abstract_name()))
    }),
    row("fill /dev/shm", By::Sandbox, fill),
    row("leave a file in /dev/shm for the next command", By::Sandbox, |s| {
        Tried::Command(make(&s.trace(Path::new("/dev/shm"))))
    })
    .next(|s| {
        let file = quoted(&s.trace(Path::new("/dev/shm")));
        format!("if [ -e {file} ]; then rm -f {file}; echo can; else echo none; fi")
    }),
    row("leave shared memory of System V behind", By::Sandbox, |s| python(SHARED, &key(s)))
        .next(|s| in_python(SHARED_STILL, &key(s))),
    row("leave a process running", By::Limits, |s| {
        let nap = s.nap();
        Tried::Command(format!("(setsid sleep {nap} >/dev/null 2>&1 &); echo can"))
    })
    .look(|s| is_running(&s.nap()), &Met::Ended),
    row("write a file of any size", By::Limits, |s| {
        let size = s.limits.file_size;
        let past = size.saturating_add(1);
        let bounded = format!("bounded {}", amount(size));
        // A hole: no more than its end is ever on a disk.
        Tried::Command(format!(
            "trap '' XFSZ; truncate -s {past} large 2>&1 | grep -q 'File too large' && echo '{bounded}' || \
             {{ [ \"$(stat -c %s large)\" = {past} ] && echo can; }}; rm -f large"
        ))
    }),
    row("have any number of processes", By::Processes, |s| match s.limits.processes {
        limit if limit > THREADS_MAX => {
            Tried::Not(Met::Untried(format!("its bound is {limit}, too many to try")))
        }
        limit => python(THREADS, &(limit + 8).to_string()),
    }),
    row("take any amount of memory", By::Limits, |s| {
        let all = s.limits.memory.saturating_add(PAST);
        match enough(s, all) {
            true => python(MEMORY, &(all >> 24).to_string()),
            false => too_much(s.limits.memory),
        }
    }),
    row("open any number of files", By::Sandbox, |s| {
        let limit = s.limits.open_files;
        Tried::Command(format!(
            "n=$(ulimit -n); ulimit -n {past} 2>/dev/null; [ \"$(ulimit -n)\" = \"$n\" ] && [ \"$n\" -le {limit} ] && \
             echo \"bounded $n\" || echo can",
            past = u64::from(limit) + 1
        ))
    }),
];

/// About a path of the person's, where there is one.
fn of(path: Option<&Path>, command: impl Fn(&Path) -> String) -> Tried {
    match path.filter(|path| path.symlink_metadata().is_ok()) {
        Some(path) => Tried::Command(command(path)),
        None => Tried::Not(Met::NoneHere),
    }
}

fn below_home(scene: &Scene, name: &str) -> Tried {
    let folder = scene.home.as_ref().map(|home| home.join(name));
    let holds_something = |folder: &PathBuf| folder.read_dir().is_ok_and(|mut all| all.next().is_some());
    of(folder.filter(holds_something).as_deref(), look_into)
}

fn make(path: &Path) -> String {
    format!(": >{} && echo can", quoted(path))
}

fn open(path: &Path) -> String {
    format!(": <{} && echo can", quoted(path))
}

/// An empty folder stands in for one that is covered.
fn look_into(folder: &Path) -> String {
    let folder = quoted(folder);
    format!("names=$(ls -A {folder}) || exit; if [ -n \"$names\" ]; then echo can; else echo none; fi")
}

/// Its own home has the name of yours, and is another folder.
fn list_home(home: &Path) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let is = home.metadata().map(|found| format!("{}:{}", found.dev(), found.ino())).unwrap_or_default();
    let home = quoted(home);
    format!(
        "ls -A {home} >/dev/null || exit; if [ \"$(stat -L -c %d:%i {home})\" = {is} ]; then echo can; else echo own; fi"
    )
}

fn canary(scene: &Scene) -> PathBuf {
    scene.at("outside/canary")
}

fn hook(scene: &Scene) -> PathBuf {
    scene.at("project/.git/hooks/post-checkout")
}

fn holds(file: &Path, text: &str) -> bool {
    std::fs::read_to_string(file).is_ok_and(|all| all.contains(text))
}

fn pid() -> u32 {
    std::process::id()
}

/// Says `none` and ends where this process isn't to be seen: another one may have its number there.
fn only_if_seen(scene: &Scene) -> String {
    let (pid, began) = (pid(), &scene.began);
    format!(
        "[ \"$(sed 's/.*) //' /proc/{pid}/stat 2>/dev/null | cut -d' ' -f20)\" = {began} ] || {{ echo none; exit; }}; "
    )
}

/// In a view of its own a command may have this process's number for another.
fn about_us(scene: &Scene, command: &str) -> Tried {
    let only = if scene.force.mount_namespace { only_if_seen(scene) } else { String::new() };
    Tried::Command(only + command)
}

fn connect(host: &str, port: u16) -> String {
    format!(
        "timeout 1 bash -c ': </dev/tcp/{host}/{port}'; case $? in 0) echo can;; 124) echo unanswered;; esac"
    )
}

/// Whoever is refused by somebody out there has got there.
fn leave(host: &str) -> Tried {
    Tried::Command(format!(
        "said=$({}  2>&1); case \"$said\" in *refused*|*'No route'*) echo can;; *) echo \"$said\";; esac",
        connect(host, 80)
    ))
}

const LOOK_UP: &str = "timeout 1 getent hosts example.com >/dev/null; case $? in 0) echo can;; 124) echo unanswered;; \
     126|127) echo needs getent;; *) echo none;; esac";

fn fill(scene: &Scene) -> Tried {
    let file = quoted(&scene.trace(Path::new("/dev/shm")));
    let limit = scene.limits.memory / 4;
    let all = limit.saturating_add(PAST);
    if scene.force.tier == Tier::None {
        // The machine's, which nobody fills for a test.
        return Tried::Command(format!(": >{file} && rm -f {file} && echo can"));
    }
    if limit > FILL_MAX || !enough(scene, all) {
        return too_much(limit);
    }
    Tried::Command(format!(
        ": >{file} || exit; trap '' XFSZ; head -c {all} /dev/zero >{file} 2>/dev/null; size=$(stat -c %s {file}); rm -f \
         {file}; if [ \"$size\" -lt {all} ]; then echo \"bounded $((size >> 20)) MiB\"; else echo can; fi"
    ))
}

/// Whether this machine has so much to spare that nobody else would miss it.
fn enough(scene: &Scene, bytes: u64) -> bool {
    bytes <= FILL_MAX * 4 && bytes.saturating_mul(2) <= scene.spare
}

fn too_much(limit: u64) -> Tried {
    Tried::Not(Met::Untried(format!("its bound is {}, too much to try on this machine", amount(limit))))
}

fn amount(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 30) {
        format!("{} GiB", bytes >> 30)
    } else {
        format!("{} MiB", bytes >> 20)
    }
}

fn key(scene: &Scene) -> String {
    (scene.unique % (1 << 31)).max(1).to_string()
}

fn python(program: &str, word: &str) -> Tried {
    Tried::Command(in_python(program, word))
}

fn in_python(program: &str, word: &str) -> String {
    format!(
        "command -v python3 >/dev/null || {{ echo needs python3; exit; }}; exec python3 -I -c '{program}' {word}"
    )
}

/// Seizing stops nobody, and ends with whoever does it.
const PTRACE: &str = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print("can" if libc.ptrace(0x4206, os.getppid(), None, None) == 0 else os.strerror(ctypes.get_errno()))
"#;

const UNIX: &str = r#"
import socket, sys
name = sys.argv[1]
try:
    socket.socket(socket.AF_UNIX).connect("\0" + name[1:] if name[0] == "@" else name)
    print("can")
except OSError as error:
    print(error)
"#;

const SHARED: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
print("can" if libc.shmget(int(sys.argv[1]), 4096, 0o1600) >= 0 else os.strerror(ctypes.get_errno()))
"#;

const SHARED_STILL: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
found = libc.shmget(int(sys.argv[1]), 0, 0)
print("can" if found >= 0 else os.strerror(ctypes.get_errno()))
if found >= 0:
    libc.shmctl(found, 0, None)
"#;

/// Threads are counted as processes are, and cost less.
const THREADS: &str = r#"
import sys, threading
threading.stack_size(1 << 16)
over, count = threading.Event(), 1
try:
    while count < int(sys.argv[1]):
        threading.Thread(target=over.wait, daemon=True).start()
        count += 1
    print("can")
except RuntimeError:
    print("bounded", count)
over.set()
"#;

/// Whoever looks at it every 100 ms has to have the time.
const MEMORY: &str = r#"
import ctypes, mmap, sys, time
held = []
try:
    for _ in range(int(sys.argv[1])):
        held.append(mmap.mmap(-1, 1 << 24, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(held[-1])), 1, 1 << 24)
    time.sleep(1)
    print("can")
except (MemoryError, OSError):
    print("bounded", len(held) << 4, "MiB")
"#;

/// A path for a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_one_thing_in_plain_words_and_no_two_the_same() {
        for (at, row) in ROWS.iter().enumerate() {
            assert!(row.what.len() < 50 && !row.what.ends_with('.'), "{}", row.what);
            assert!(ROWS[..at].iter().all(|other| other.what != row.what), "{}", row.what);
        }
        // They are given to a shell between these.
        for program in [PTRACE, UNIX, SHARED, SHARED_STILL, THREADS, MEMORY] {
            assert!(!program.contains('\''), "{program}");
        }
        assert_eq!(quoted(Path::new("/a'b c")), "'/a'\\''b c'");
    }
}
