//! What is in force, in the words that people see.

use std::fmt;
use std::sync::Arc;

use super::Tier;
use crate::network::Hosts;

/// What commands can do with the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkState {
    /// There is none for them but a loopback of their own.
    Off,
    /// They can make no socket that leads to it.
    FilteredBySeccomp,
    /// Of all hosts they reach these, by a proxy of ours.
    Hosts(Arc<Hosts>),
    /// All that the machine can.
    Open,
}

/// Who holds a command's tree to its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitsBy {
    /// A cgroup for each command.
    CgroupV2,
    /// One in each of the two old hierarchies.
    CgroupV1,
    /// The tree's memory by looking at it, ten times a second and more often when it is much;
    /// processes and threads together with all others of the user that the system counts.
    Looking,
}

/// The sandbox that is in force, in the words that people see. Shown on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Which kind of sandbox it is.
    pub tier: Tier,
    /// Commands are in a user namespace of their own.
    pub user_namespace: bool,
    /// They have a view of the file system of their own, and see no processes but their own.
    pub mount_namespace: bool,
    /// What of the network they have.
    pub network: NetworkState,
    /// Landlock keeps signals, and abstract sockets, from processes that aren't theirs.
    pub scoped: bool,
    /// System calls are filtered.
    pub seccomp: bool,
    /// Who holds them to their limits.
    pub limits: LimitsBy,
    /// What is weaker than it could be, and how to get it.
    pub notes: Vec<String>,
}

impl fmt::Display for InForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Kept(self).fmt(f)?;
        match self.notes.len() {
            0 => Ok(()),
            1 => f.write_str("; 1 note (midturn doctor)"),
            n => write!(f, "; {n} notes (midturn doctor)"),
        }
    }
}

/// What holds, for who tells the notes besides.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a>(pub &'a InForce);

impl fmt::Display for Kept<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(force) = self;
        f.write_str(match force.tier {
            Tier::Bubblewrap => "bubblewrap",
            Tier::Landlock => "Landlock",
            Tier::None => "no sandbox",
        })?;
        f.write_str(match (force.tier, force.mount_namespace, force.user_namespace) {
            (Tier::None, ..) => "",
            (_, false, _) => ", no namespaces",
            (_, true, false) => ", own process, mount namespaces",
            (_, true, true) => ", own user, process, mount namespaces",
        })?;
        if force.seccomp {
            f.write_str(", seccomp")?;
        }
        match &force.network {
            NetworkState::Off => f.write_str(", network off")?,
            NetworkState::FilteredBySeccomp => f.write_str(", network off (by seccomp)")?,
            NetworkState::Hosts(hosts) if hosts.count() == 1 => f.write_str(", network: 1 host")?,
            NetworkState::Hosts(hosts) => write!(f, ", network: {} hosts", hosts.count())?,
            NetworkState::Open => f.write_str(", network open")?,
        }
        f.write_str(match force.limits {
            LimitsBy::CgroupV2 | LimitsBy::CgroupV1 => ", limits by cgroup",
            LimitsBy::Looking => ", limits by looking every 100 ms",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_hosts_can_be_reached_stands_where_the_sandbox_is_told() {
        for (entries, says) in [
            (&["a.example", "a.example:22"][..], "network: 1 host, "),
            (&["a.example", "b.example"], "network: 2 hosts, "),
        ] {
            let hosts = Hosts::parse(entries.iter().copied()).unwrap();
            let force = InForce {
                tier: Tier::Landlock,
                user_namespace: true,
                mount_namespace: true,
                network: NetworkState::Hosts(Arc::new(hosts)),
                scoped: true,
                seccomp: true,
                limits: LimitsBy::Looking,
                notes: Vec::new(),
            };
            assert!(force.to_string().contains(says), "{force}");
        }
    }
}
