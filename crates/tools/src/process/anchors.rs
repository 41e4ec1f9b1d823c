//! Our side of the seed and its anchors: one seed for all commands of a [`Supervisor`](super::Supervisor) and its
//! clones, one anchor for each agent, made when a command needs it, made anew when what it stands on has changed.

use std::collections::HashMap;
use std::io::{self, PipeWriter};
use std::mem::take;
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::supervise::SUPERVISE;
use super::table::keep_until_dead;
use super::wire::{Built, Message, Role, Setting, encode};
use super::{RunError, Supervisor};
use crate::mark::Mark;
use crate::network::{Gate, Proxy};
use crate::planted;
use crate::sandbox::prepare::{Ground, Kept, make_all};
use crate::sandbox::upper::{Uppers, are_free};

/// So many are kept at most: who has not been used for longest goes first.
const HELD_MAX: usize = 1_024;

/// A seed or anchor that takes longer to answer is taken for dead.
const PATIENCE: Duration = Duration::from_secs(20);

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    seed: Mutex<Option<Seed>>,
    held: Mutex<HashMap<PathBuf, Arc<Place>>>,
    /// Counts uses: who has the lowest was not used for longest.
    clock: AtomicU64,
}

/// One agent's.
#[derive(Debug, Default)]
pub(super) struct Place {
    used: AtomicU64,
    /// What was decided for its last command.
    pub(super) kept: Mutex<Option<Kept>>,
    anchor: Mutex<Option<Arc<Anchor>>>,
}

/// Forks anchors as long as its socket is open.
#[derive(Debug)]
struct Seed {
    socket: UnixStream,
    /// Reaped by the runtime.
    _child: tokio::process::Child,
}

/// Kept by the commands that run in it too.
#[derive(Debug)]
pub(super) struct Anchor {
    socket: Mutex<UnixStream>,
    needs: Needs,
    /// Whether what is changed in a cache can be kept.
    lacks_caches: bool,
    hold: OwnedFd,
    uppers: Uppers,
    way_out: Option<WayOut>,
}

/// The way out of an anchor's network.
#[derive(Debug)]
struct WayOut {
    /// In its namespace.
    listener: OwnedFd,
    serving: Mutex<Option<(Arc<Gate>, Proxy)>>,
}

/// What a command needs an anchor to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) setting: Setting,
    pub(super) ground: Arc<Ground>,
}

/// Process 1 of a command.
#[derive(Debug)]
pub(super) struct First {
    pub(super) anchor: Arc<Anchor>,
    /// Readable when it and all of its namespace is dead.
    pub(super) hold: OwnedFd,
}

impl Anchors {
    /// Starts process 1 of a command that has this control socket and output. `None`: the system refuses namespaces.
    ///
    /// # Errors
    /// The view can't be made, or there can be no seed.
    pub(super) fn start(
        &self,
        supervisor: &Supervisor,
        needs: Needs,
        gate: Option<&Arc<Gate>>,
        command: (&UnixStream, &PipeWriter),
    ) -> Result<Option<First>, RunError> {
        let place = self.place(&needs.ground.whose);
        let mut anchor = place.anchor.lock();
        // One that was killed is noticed when it is spoken to.
        for _ in 0..2 {
            if !anchor.as_ref().is_some_and(|anchor| anchor.fits(&needs)) {
                // Its caches can be had by the next only when it is over.
                drop(anchor.take());
                *anchor = self.build(supervisor, &needs)?.map(Arc::new);
            }
            let Some(there) = anchor.as_ref() else { return Ok(None) };
            there.let_out(gate)?;
            match there.fork(command) {
                Ok(hold) => return Ok(Some(First { anchor: there.clone(), hold })),
                Err(error) if error.kind() == io::ErrorKind::Other => return Err(error.into()),
                Err(_) => drop(anchor.take()),
            }
        }
        Err(io::Error::other("what holds its sandbox is ended again and again").into())
    }

    /// It is of no use any more, for what comes.
    pub(super) fn forget(&self, anchor: &Arc<Anchor>) {
        let place = self.held.lock().get(&anchor.needs.ground.whose).cloned();
        if let Some(mut there) = place.as_ref().map(|place| place.anchor.lock())
            && there.as_ref().is_some_and(|there| Arc::ptr_eq(there, anchor))
        {
            *there = None;
        }
    }

    /// The place of the agent that has this folder for temporary files.
    pub(super) fn place(&self, whose: &Path) -> Arc<Place> {
        let mut held = self.held.lock();
        if held.len() >= HELD_MAX && !held.contains_key(whose) {
            let oldest = held.iter().min_by_key(|(_, place)| place.used.load(Ordering::Relaxed));
            let oldest = oldest.map(|(whose, _)| whose.clone());
            if let Some(oldest) = oldest {
                held.remove(&oldest);
            }
        }
        let place = held.entry(whose.to_owned()).or_default().clone();
        place.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        place
    }

    fn build(&self, supervisor: &Supervisor, needs: &Needs) -> Result<Option<Anchor>, RunError> {
        let no_sandbox = |error: io::Error| RunError::NoSandbox(error.to_string());
        let mut setting = needs.setting.clone();
        make_all(&needs.ground.folders).map_err(no_sandbox)?;
        let view = setting.sandbox.view.as_mut().map(Arc::make_mut);
        let steps = view.map(|view| view.steps.as_mut_slice()).unwrap_or_default();
        let uppers = Uppers::take(steps).map_err(no_sandbox)?;
        let (socket, hold) = self.forked(supervisor)?;
        let order = encode(&setting).map_err(no_sandbox)?;
        Message::send(&socket, &order, &[])?;
        let answer = Message::receive(&socket)?.ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))?;
        match serde_json::from_slice(&answer.bytes).map_err(io::Error::from)? {
            Built::Ready => {}
            Built::Unavailable => return Ok(None),
            Built::Failed(why) => return Err(RunError::NoSandbox(why)),
        }
        let lacks_caches = setting != needs.setting;
        let mut carried = answer.carried.into_iter();
        let socket = carried.next().ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let socket = UnixStream::from(socket);
        socket.set_read_timeout(Some(PATIENCE))?;
        let way_out = carried.next().map(|listener| WayOut { listener, serving: Mutex::default() });
        let (socket, needs) = (Mutex::new(socket), needs.clone());
        Ok(Some(Anchor { socket, needs, lacks_caches, hold, uppers, way_out }))
    }

    /// An anchor that waits for what it is to hold. A seed that was killed is replaced.
    fn forked(&self, supervisor: &Supervisor) -> io::Result<(UnixStream, OwnedFd)> {
        let mut seed = self.seed.lock();
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(PATIENCE))?;
        if let Some(hold) = seed.as_ref().and_then(|seed| carried(&seed.socket, &theirs).ok()) {
            return Ok((ours, hold));
        }
        let sown = seed.insert(Seed::sow(supervisor)?);
        let hold = carried(&sown.socket, &theirs)?;
        Ok((ours, hold))
    }
}

/// Sends a socket for an anchor; a hold on who has it.
fn carried(seed: &UnixStream, socket: &UnixStream) -> io::Result<OwnedFd> {
    Message::send(seed, &[], &[socket.as_fd()])?;
    answered(seed)
}

/// A hold on what was forked, or why nothing was.
fn answered(socket: &UnixStream) -> io::Result<OwnedFd> {
    let answer = Message::receive(socket)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let why = || io::Error::other(String::from_utf8_lossy(&answer.bytes).into_owned());
    answer.carried.into_iter().next().ok_or_else(why)
}

impl Seed {
    fn sow(supervisor: &Supervisor) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let child = tokio::process::Command::new(&supervisor.program)
            .arg(SUPERVISE)
            .current_dir("/")
            .env_clear()
            .envs(supervisor.mark.as_ref().map(Mark::entry))
            .envs(planted::handed_on())
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Message::send(&socket, &encode(&Role::Seed)?, &[])?;
        Ok(Self { socket, _child: child })
    }
}

impl Anchor {
    fn fits(&self, needs: &Needs) -> bool {
        let steps = needs.setting.sandbox.view.as_ref().map(|view| view.steps.as_slice()).unwrap_or_default();
        self.needs == *needs && !(self.lacks_caches && are_free(steps))
    }

    /// Whoever wants out of its network goes by this gate.
    fn let_out(&self, gate: Option<&Arc<Gate>>) -> io::Result<()> {
        let (Some(way_out), Some(gate)) = (&self.way_out, gate) else { return Ok(()) };
        let mut serving = way_out.serving.lock();
        let is_served = |(by, proxy): &(Arc<Gate>, Proxy)| Arc::ptr_eq(by, gate) && proxy.is_alive();
        if !serving.as_ref().is_some_and(is_served) {
            *serving = Some((gate.clone(), Proxy::serve(gate.clone(), way_out.listener.try_clone()?)?));
        }
        Ok(())
    }

    /// Process 1 of a command, with its control socket and output.
    fn fork(&self, (control, output): (&UnixStream, &PipeWriter)) -> io::Result<OwnedFd> {
        let socket = self.socket.lock();
        Message::send(&*socket, &[], &[control.as_fd(), output.as_fd()])?;
        answered(&socket)
    }
}

impl Drop for Anchor {
    /// What it had for caches is free when it is dead, which nobody has to wait for.
    fn drop(&mut self) {
        // One that is gone can't be told.
        let _gone = self.socket.get_mut().shutdown(Shutdown::Both);
        let uppers = take(&mut self.uppers);
        uppers.are_ending();
        if let Ok(hold) = self.hold.try_clone() {
            keep_until_dead(hold, uppers);
        }
    }
}
