//! Everything that listens: the harness counts who came through.

use std::io::ErrorKind;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::PathBuf;

use anyhow::Result;

use crate::world::World;

/// Sockets of every kind.
pub(crate) struct Doors {
    tcp: TcpListener,
    udp: UdpSocket,
    path: UnixListener,
    datagrams: UnixDatagram,
    without_path: UnixListener,
    folder: PathBuf,
    pub(crate) name: String,
}

impl Doors {
    pub(crate) fn open(world: &World) -> Result<Self> {
        let folder = world.path("outside");
        let name = format!("hostile-{}", world.mark);
        let doors = Self {
            tcp: TcpListener::bind("0.0.0.0:0")?,
            udp: UdpSocket::bind("127.0.0.1:0")?,
            path: UnixListener::bind(folder.join("listener"))?,
            datagrams: UnixDatagram::bind(folder.join("datagrams"))?,
            without_path: UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?,
            folder,
            name,
        };
        for file in [doors.stream_path(), doors.datagram_path()] {
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o777))?;
        }
        doors.tcp.set_nonblocking(true)?;
        doors.udp.set_nonblocking(true)?;
        doors.path.set_nonblocking(true)?;
        doors.datagrams.set_nonblocking(true)?;
        doors.without_path.set_nonblocking(true)?;
        Ok(doors)
    }

    pub(crate) fn tcp_port(&self) -> Result<u16> {
        Ok(self.tcp.local_addr()?.port())
    }

    pub(crate) fn udp_port(&self) -> Result<u16> {
        Ok(self.udp.local_addr()?.port())
    }

    pub(crate) fn stream_path(&self) -> PathBuf {
        self.folder.join("listener")
    }

    pub(crate) fn datagram_path(&self) -> PathBuf {
        self.folder.join("datagrams")
    }

    /// Which of them somebody came through since the last time.
    pub(crate) fn passed(&self) -> Vec<String> {
        let mut buffer = [0; 64];
        let mut passed = Vec::new();
        let mut count = |what: &str, came: &mut dyn FnMut() -> std::io::Result<()>| {
            let times =
                std::iter::from_fn(|| came().err().map_or(Some(()), |error| wait(&error))).take(100).count();
            if times > 0 {
                passed.push(format!("{times} came through {what}"));
            }
        };
        count("TCP", &mut || self.tcp.accept().map(drop));
        count("UDP", &mut || self.udp.recv(&mut buffer).map(drop));
        count("a socket with a path", &mut || self.path.accept().map(drop));
        count("a datagram socket with a path", &mut || self.datagrams.recv(&mut buffer).map(drop));
        count("an abstract socket", &mut || self.without_path.accept().map(drop));
        passed
    }
}

/// Nobody is there any more; anything else is somebody who left.
fn wait(error: &std::io::Error) -> Option<()> {
    (error.kind() != ErrorKind::WouldBlock).then_some(())
}

/// An address of this machine that is not loopback, if it has one. Nothing is sent.
pub(crate) fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_loopback())
}
