//! Namespaces and a view, made once for an agent and held by a process that does nothing else; each command gets PID,
//! mount and IPC namespaces of its own in them (docs/decisions/0056).
//!
//! The end of the seed is the end of its anchors, and an anchor's that of its commands: the kernel sees to it.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::fork::{Alone, fork, fork_into};
use super::serve::serve;
use super::{Supervision, control, loopback, namespace, own_session, start};
use crate::process::wire::{Built, LaunchOrder, Message, Report, Setting, encode};
use crate::sandbox::orders::{Orders, View};
use crate::sandbox::view;

/// Forks an anchor for each socket that it is sent, and answers with a hold on it. `Some`: this is one, with its socket.
pub(super) fn seed(alone: Alone) -> io::Result<Option<UnixStream>> {
    let control = UnixStream::from(OwnedFd::from(control()?));
    serve(&control, |message| {
        let socket = one(message)?;
        match fork(alone)? {
            None => Ok(Some(UnixStream::from(socket))),
            Some(child) => answer(&control, child.as_raw()).map(|()| None),
        }
    })
}

/// Makes what is asked for, and forks process 1 of a command for each control socket and output that it is sent.
/// `Some`: this is one.
pub(super) fn hold(alone: Alone, socket: UnixStream) -> io::Result<Option<First>> {
    nothing_inherited()?;
    let Some(Message { bytes, .. }) = Message::receive(&socket)? else { return Ok(None) };
    let setting: Setting = serde_json::from_slice(&bytes)?;
    let (built, way_out) = build(&setting);
    // Made in a network of its own: the daemon looks through the sockets of its network for each command, and there
    // is an anchor for each agent.
    let (control, daemons) = UnixStream::pair()?;
    let carried: Vec<_> = [daemons.as_fd()].into_iter().chain(way_out.as_ref().map(AsFd::as_fd)).collect();
    Message::send(&socket, &encode(&built)?, &carried)?;
    // They are the daemon's: no command is to find another end of them.
    drop((socket, daemons, way_out));
    if !matches!(built, Built::Ready) {
        return Ok(None);
    }
    let forked = serve(&control, |message| {
        let mut carried = message.carried.into_iter();
        let (Some(commands), Some(output)) = (carried.next(), carried.next()) else { return Err(wrong()) };
        match fork_into(alone, of_a_command(&setting)) {
            Ok(None) => Ok(Some((commands, output))),
            Ok(Some(child)) => answer(&control, child.as_raw()).map(|()| None),
            // Said by what is not answered with.
            Err(error) => Message::send(&control, error.to_string().as_bytes(), &[]).map(|()| None),
        }
    });
    Ok(forked?.map(|(control, output)| First { control, output, setting }))
}

/// The namespaces and the view; and where those are listened for who want out.
fn build(setting: &Setting) -> (Built, Option<TcpListener>) {
    let view = setting.sandbox.view.as_deref();
    if contain(setting.supervision, view).is_err() {
        return (Built::Unavailable, None);
    }
    let port = setting.sandbox.way_out;
    let made = view.map_or(Ok(()), view::make).map_err(|error| no_view(&error));
    let made = made.and_then(|()| {
        let listener = port.map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port))).transpose();
        listener.map_err(|error| format!("no proxy could be made for its network: {error}"))
    });
    match made {
        Ok(listener) => (Built::Ready, listener),
        Err(why) => (Built::Failed(why), None),
    }
}

fn contain(supervision: Supervision, view: Option<&View>) -> io::Result<()> {
    if supervision == Supervision::UserNamespace {
        namespace::own_user()?;
    }
    // What would take it away is asked for only now: a new user namespace would forget it.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    let also = view.map_or(CloneFlags::empty(), of_a_view);
    unshare(CloneFlags::CLONE_NEWNS | also)?;
    if also.contains(CloneFlags::CLONE_NEWNET) {
        loopback::start()?;
    }
    // As a slave: mounts made outside later are seen, ours is not seen outside.
    Ok(mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM)?)
}

/// The namespaces that all commands of a view share.
fn of_a_view(view: &View) -> CloneFlags {
    let all = CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWCGROUP;
    if view.network_off { all | CloneFlags::CLONE_NEWNET } else { all }
}

/// Those that each command has for itself, so that what it leaves in them is gone.
fn of_a_command(setting: &Setting) -> CloneFlags {
    let all = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
    if setting.sandbox.view.is_some() { all | CloneFlags::CLONE_NEWIPC } else { all }
}

/// Process 1 of a command, just forked.
pub(super) struct First {
    control: OwnedFd,
    output: OwnedFd,
    setting: Setting,
}

impl First {
    /// In the place of the anchor's: it dies with that, and has the command's control socket and output.
    pub(super) fn settle(self) -> io::Result<Orders> {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        own_session()?;
        rustix::stdio::dup2_stdin(&self.control)?;
        rustix::stdio::dup2_stdout(&self.output)?;
        rustix::stdio::dup2_stderr(&self.output)?;
        Ok(self.setting.sandbox)
    }
}

/// What of the view is the command's alone; and whether all that is to be covered still is.
pub(super) fn enter(orders: &Orders, order: &LaunchOrder) -> Result<(), Report> {
    match &orders.view {
        None => namespace::own_processes().map_err(|_| Report::Unavailable)?,
        Some(view) => {
            if let Some(place) = view::uncovered(&view.steps) {
                return Err(Report::Stale(place));
            }
            view::renew(&order.anew).map_err(|error| Report::NotLocked(no_view(&error)))?;
        }
    }
    // Anew: who stands in a folder stands below what is mounted on it.
    std::env::set_current_dir(&order.folder).map_err(|error| start::not_started(&error))
}

fn no_view(error: &io::Error) -> String {
    format!("its own view of the file system could not be made: {error}")
}

/// A child that isn't reaped yet, since that is our own doing, so the number is its.
fn answer(socket: &UnixStream, child: i32) -> io::Result<()> {
    let child = Pid::from_raw(child).ok_or_else(wrong)?;
    let held = pidfd_open(child, PidfdFlags::empty())?;
    Message::send(socket, &[], &[held.as_fd()])
}

fn one(message: Message) -> io::Result<OwnedFd> {
    message.carried.into_iter().next().ok_or_else(wrong)
}

fn wrong() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// The seed's socket is the seed's.
fn nothing_inherited() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(rustix::stdio::dup2_stderr(&null)?)
}
