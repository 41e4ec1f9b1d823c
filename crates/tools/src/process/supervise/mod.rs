//! The supervisor: our binary, executed again, between us and one command.
//!
//! It starts the command, waits for its end or for our word, and reports only when nothing of
//! the tree is alive (semantics.md, section 5). It is a process of one thread that waits in
//! one `poll`, never for the end of a pipe that the command's offspring could hold. It must
//! be entered before the program starts anything else: no thread, no runtime, no logging.

mod fork;
mod loopback;
mod namespace;
mod scales;
mod start;
mod tree;
mod watch;

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::process::ExitCode;

use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use self::tree::Tree;
use super::wire::{LaunchOrder, Report};
use crate::sandbox::view;

/// The hidden argument that makes our binary a supervisor.
pub const SUPERVISE: &str = "__supervise";

/// How a tree is held together, best first (semantics.md, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Supervision {
    /// The supervisor is process 1 of a PID namespace that the caller's privileges made.
    Namespace,
    /// As before, inside a user namespace of its own, for those without privileges.
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

    /// The next best, when this one can't be had.
    pub fn weaker(self) -> Option<Self> {
        match self {
            Self::Namespace => Some(Self::UserNamespace),
            Self::UserNamespace => Some(Self::Subreaper),
            Self::Subreaper | Self::Inside => None,
        }
    }
}

/// The whole life of a supervisor: standard input is the control socket, standard output and error
/// are the command's.
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
    // A session of its own: no terminal to read from, no Ctrl-C meant for us. It fails only
    // for a process that leads its group, and that has both already.
    if let Err(error) = nix::unistd::setsid()
        && error != Errno::EPERM
    {
        return Err(error.into());
    }
    let order = LaunchOrder::receive(control()?)?;
    if order.supervision == Supervision::Inside {
        // The program came in through standard output: there is no safer way past bubblewrap.
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    }
    let tree = match contain(&order) {
        Ok(Watcher::Us(tree)) => tree,
        Ok(Watcher::Child(child)) => {
            drop(order);
            return namespace::wait_for(child);
        }
        Err(_) => return say(Report::Unavailable),
    };
    if let Some(view) = &order.sandbox.view
        && let Err(error) = view::make(view)
    {
        return say(Report::NotLocked(format!("its own view of the file system could not be made: {error}")));
    }
    let signals = watch::block_signals()?;
    match start::start(&order) {
        Ok(command) => {
            let (grace, bounds) = (order.grace, order.sandbox.bounds);
            drop(order);
            say(watch::Watch::new(tree, command, grace, &bounds).until_none_is_left(&signals)?)
        }
        Err(report) => say(report),
    }
}

/// Who watches the tree.
enum Watcher {
    Us(Tree),
    Child(Pid),
}

fn contain(order: &LaunchOrder) -> io::Result<Watcher> {
    let also = order.sandbox.view.as_ref().map_or(CloneFlags::empty(), namespace::of_a_view);
    match order.supervision {
        Supervision::Namespace => namespace::as_first(also).map(|()| Watcher::Us(Tree::Namespace)),
        Supervision::UserNamespace => match namespace::fork_first()? {
            Some(child) => Ok(Watcher::Child(child)),
            None => namespace::as_first(also).map(|()| Watcher::Us(Tree::Namespace)),
        },
        Supervision::Inside => namespace::inside().map(|()| Watcher::Us(Tree::Namespace)),
        Supervision::Subreaper => {
            nix::sys::prctl::set_child_subreaper(true)?;
            Ok(Watcher::Us(Tree::Descendants))
        }
    }
}

/// The control socket.
fn control() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
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
