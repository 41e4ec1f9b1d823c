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

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::unistd::Pid;

use self::tree::Tree;
use super::wire::{self, Report};
use crate::sandbox::orders::{Failed, Orders};
use crate::sandbox::view;

/// The hidden argument that makes our binary a supervisor.
pub const SUPERVISE: &str = "__supervise";

/// How a tree is held together, best first (semantics.md, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The word on the supervisor's command line.
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

    fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Namespace, Self::UserNamespace, Self::Subreaper, Self::Inside];
        all.into_iter().find(|s| s.as_str() == word)
    }
}

/// The whole life of a supervisor. `args` are what follows [`SUPERVISE`] on the command line;
/// standard input is the control socket, standard output and error are the command's.
pub fn supervise_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Some((supervision, grace)) = supervision(args) else {
        eprintln!("{SUPERVISE} is not for people: midturn starts it for each command it runs");
        return ExitCode::from(2);
    };
    match supervise(supervision, grace) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("midturn: the supervisor failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn supervision(args: impl IntoIterator<Item = OsString>) -> Option<(Supervision, Duration)> {
    let mut args = args.into_iter();
    let supervision = Supervision::from_word(args.next()?.to_str()?)?;
    let grace = args.next()?.to_str()?.parse().ok()?;
    Some((supervision, Duration::from_millis(grace)))
}

fn supervise(supervision: Supervision, grace: Duration) -> io::Result<()> {
    // A session of its own: no terminal to read from, no Ctrl-C meant for us. It fails only
    // for a process that leads its group, and that has both already.
    if let Err(error) = nix::unistd::setsid()
        && error != Errno::EPERM
    {
        return Err(error.into());
    }
    if supervision == Supervision::Inside {
        // The program came in through standard output: there is no safer way past bubblewrap.
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    }
    let order = LaunchOrder::read()?;
    let tree = match contain(supervision, &order.sandbox) {
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
        // Among the command's output, where there is room for a path.
        eprintln!("midturn: the view of the file system can't be made: {error}");
        return say(Report::NotLocked { failed: Failed::View, errno: start::number(&error) });
    }
    let signals = watch::block_signals()?;
    match start::start(&order) {
        Ok(command) => {
            let memory = order.sandbox.lock.bounds.memory;
            drop(order);
            say(watch::Watch::new(tree, command, grace, memory).until_none_is_left(&signals)?)
        }
        Err(report) => say(report),
    }
}

/// What is to be run, and how.
struct LaunchOrder {
    words: Vec<CString>,
    environment: Vec<CString>,
    sandbox: Orders,
    /// Of the command's cgroups.
    doors: Vec<OwnedFd>,
}

impl LaunchOrder {
    fn read() -> io::Result<Self> {
        let mut control = control()?;
        let doors = wire::receive_doors(&control)?;
        let mut part = || read_part(&mut control);
        let (words, environment) = (wire::entries(&part()?), wire::entries(&part()?));
        Ok(Self { words, environment, sandbox: serde_json::from_slice(&part()?)?, doors })
    }
}

/// Who watches the tree.
enum Watcher {
    Us(Tree),
    Child(Pid),
}

fn contain(supervision: Supervision, orders: &Orders) -> io::Result<Watcher> {
    let also = orders.view.as_ref().map_or(CloneFlags::empty(), namespace::of_a_view);
    match supervision {
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

/// The control socket. It is read without a buffer, which would keep what is not yet asked for.
fn control() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// One part of the order: the command's words come first, then its environment, then what the
/// sandbox needs.
fn read_part(control: &mut File) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    control.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > wire::PART_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the launch order is too long"));
    }
    let mut part = vec![0; length];
    control.read_exact(&mut part)?;
    Ok(part)
}

/// A report is far smaller than a socket's buffer: it is written at once or not at all. That
/// nobody is there any more to read it is no failure: the tree is gone, which was the point.
///
/// Keeps still until the report is read: winding up a namespace at once would take the processor
/// from the one that waits for the report.
fn say(report: Report) -> io::Result<()> {
    let mut control = control()?;
    let said = control.write_all(&report.encode()?);
    match said.and_then(|()| io::copy(&mut control, &mut io::sink())) {
        Err(error)
            if ![io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset].contains(&error.kind()) =>
        {
            Err(error)
        }
        Ok(_) | Err(_) => Ok(()),
    }
}
