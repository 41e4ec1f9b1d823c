//! Our binary, executed again, between us and commands: one thread, no runtime, no logging. It must be entered before
//! the program starts anything else.
//!
//! A **supervisor** looks after one command: it starts it, waits for its end or for our word, and reports only when
//! nothing of the tree is alive (semantics.md, section 5). It waits in one `poll`, never for the end of a pipe that
//! the command's offspring could hold.
//!
//! Where there are namespaces nobody executes a supervisor. One **seed** is executed for all agents of a session and
//! forks a **anchor** for each, which makes namespaces and view once (`anchor`); a command's supervisor is forked by
//! the anchor as process 1 of namespaces of its own.

mod anchor;
mod fork;
mod loopback;
mod namespace;
mod scales;
mod serve;
mod start;
mod tree;
mod watch;

use std::fs::File;
use std::io::{self, Write as _};
use std::process::ExitCode;

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use self::anchor::First;
use self::fork::{Alone, inherit_nothing, leave};
use self::tree::Tree;
use super::wire::{LaunchOrder, Report, Role, Setting};
use crate::sandbox::orders::Orders;

/// The hidden argument that makes our binary a supervisor.
pub const SUPERVISE: &str = "__supervise";

/// How a tree is held together, best first (semantics.md, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Supervision {
    /// The supervisor is process 1 of a PID namespace; the caller's privileges made it.
    Namespace,
    /// As before, inside a user namespace of the anchor's, for those without privileges.
    UserNamespace,
    /// The supervisor adopts what is orphaned and finds its descendants by looking.
    Subreaper,
    /// The supervisor is process 1 of the namespaces that bubblewrap made for it.
    Inside,
}

impl Supervision {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::UserNamespace => "user-namespace",
            Self::Subreaper => "subreaper",
            Self::Inside => "inside",
        }
    }

    /// Whether an anchor makes the namespaces, and its supervisors are forked.
    pub(crate) fn is_held(self) -> bool {
        matches!(self, Self::Namespace | Self::UserNamespace)
    }

    /// The next best, when this one can't be had.
    pub fn weaker(self) -> Option<Self> {
        match self {
            Self::Namespace => Some(Self::UserNamespace),
            Self::UserNamespace => Some(Self::Subreaper),
            Self::Subreaper | Self::Inside => None,
        }
    }
}

/// The whole life of a seed or a supervisor: standard input is the control socket; a supervisor's standard output and
/// error are the command's.
pub fn supervise_main() -> ExitCode {
    match supervise() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("midturn: the supervisor failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn supervise() -> io::Result<()> {
    let alone = Alone::check()?;
    inherit_nothing()?;
    own_session()?;
    match Role::receive(&control()?)? {
        Role::Supervisor(of_command) => executed(alone, &of_command.0, &of_command.1),
        Role::Seed => {
            let Some(anchor) = anchor::seed(alone)? else { return Ok(()) };
            let Some(first) = anchor::hold(alone, anchor)? else { return Ok(()) };
            forked(alone, first)
        }
    }
}

/// No terminal to read from, no Ctrl-C meant for us. It fails only for a process that leads its group, and that has
/// both already.
fn own_session() -> io::Result<()> {
    match nix::unistd::setsid() {
        Ok(_) | Err(Errno::EPERM) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// One that was executed for its command, which has come with it.
fn executed(alone: Alone, setting: &Setting, order: &LaunchOrder) -> io::Result<()> {
    if setting.supervision == Supervision::Inside {
        // The program came in through standard output: there is no safer way past bubblewrap.
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    }
    let Ok(tree) = contain(setting.supervision) else { return Err(end_with(Report::Unavailable)) };
    watch(alone, tree, &setting.sandbox, order)
}

fn contain(supervision: Supervision) -> io::Result<Tree> {
    match supervision {
        Supervision::Inside => namespace::inside().map(|()| Tree::Namespace),
        Supervision::Subreaper => {
            nix::sys::prctl::set_child_subreaper(true)?;
            Ok(Tree::Descendants)
        }
        Supervision::Namespace | Supervision::UserNamespace => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Process 1, forked by its anchor.
fn forked(alone: Alone, first: First) -> io::Result<()> {
    let orders = first.settle()?;
    let order = LaunchOrder::receive(&control()?)?;
    match anchor::enter(&orders, &order) {
        Ok(()) => watch(alone, Tree::Namespace, &orders, &order),
        Err(report) => Err(end_with(report)),
    }
}

fn watch(alone: Alone, tree: Tree, orders: &Orders, order: &LaunchOrder) -> io::Result<()> {
    let signals = watch::block_signals()?;
    let report = match start::start(alone, orders, order) {
        Ok(command) => {
            watch::Watch::new(tree, command, order.grace, &orders.bounds).until_none_is_left(&signals)?
        }
        Err(report) => report,
    };
    Err(end_with(report))
}

/// The control socket.
fn control() -> io::Result<File> {
    Ok(File::from(rustix::stdio::stdin().try_clone_to_owned()?))
}

/// Says how it went, and is over. Returns only when that fails.
fn end_with(report: Report) -> io::Error {
    match say(report) {
        Ok(()) => leave(0),
        Err(error) => error,
    }
}

/// A report is far smaller than a socket's buffer: it is written at once or not at all. That
/// nobody is there any more to read it is no failure: the tree is gone, which was the point.
///
/// Keeps still until the report is read: winding up a namespace at once would take the processor
/// from the one that waits for the report.
fn say(report: Report) -> io::Result<()> {
    let mut control = control()?;
    let said = control.write_all(&report.line()?);
    match said.and_then(|()| io::copy(&mut control, &mut io::sink())) {
        Err(error)
            if ![io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset].contains(&error.kind()) =>
        {
            Err(error)
        }
        Ok(_) | Err(_) => Ok(()),
    }
}
