//! Finds the best sandbox that works here, by running a command in each.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::cgroup::Groups;
use super::rights::Abilities;
use super::seccomp::{Around, Filter, Sockets, filter};
use super::{Confinement, Engine, InForce, LimitsBy, NetworkState, NoSandbox, Sandbox, Tier, Wanted};
use crate::network::Network;
use crate::process::{Command, ExitStatus, Streams, Supervision, Supervisor};
use crate::programs::{self, Program};

/// A sandbox in which `true` takes longer is none.
const PATIENCE: Duration = Duration::from_secs(20);

const GET_BUBBLEWRAP: &str = "install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`, …)";

const GET_NAMESPACES: &str = "allow user namespaces (`sysctl kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu, \
     `sysctl user.max_user_namespaces=10000` elsewhere)";

const GET_CGROUP: &str = "a command's memory is looked at every 100 ms, so for a moment it can have more than its limit; so \
     that it can't, start midturn in a cgroup of its own (`systemd-run --user --scope -p Delegate=yes midturn …`)";

impl Sandbox {
    /// Tries what the machine has, by running `true` in it, and keeps the best. `program` is
    /// what supervisors are: `/proc/self/exe` unless in a test.
    ///
    /// # Errors
    /// When nothing works, or not the kind that is wanted: what is missing, how to get it.
    pub async fn probe(wanted: &Wanted, program: &Path) -> Result<Self, NoSandbox> {
        Self::probe_at_best(wanted, program, Supervision::UserNamespace).await
    }

    /// As [`Sandbox::probe`], with no more namespaces than this for [`Tier::Landlock`].
    ///
    /// # Errors
    /// As for [`Sandbox::probe`].
    pub async fn probe_at_best(
        wanted: &Wanted,
        program: &Path,
        best: Supervision,
    ) -> Result<Self, NoSandbox> {
        let mut refused = Vec::new();
        for engine in engines(wanted.tier, best, &mut refused) {
            if engine == Engine::Nobody {
                return Ok(Self::off(wanted));
            }
            let name = engine.name();
            let tried = match Self::build(wanted, engine) {
                Ok(sandbox) => sandbox.works(program).await.map(|()| sandbox),
                Err(error) => Err(error),
            };
            match tried {
                Ok(sandbox) => return Ok(sandbox),
                Err(error) => refused.push(format!("{name}: {error}")),
            }
        }
        Err(NoSandbox(format!(
            "no sandbox can be built here, so no command is run. {}. To get one: {GET_BUBBLEWRAP}; or {GET_NAMESPACES}; or \
             use a Linux with Landlock (6.2 or later). To go on without any, at your own risk: --no-sandbox",
            refused.join(". ")
        )))
    }

    /// None: for `--no-sandbox`. Limits hold all the same.
    pub fn off(wanted: &Wanted) -> Self {
        Self::new(wanted, Engine::Nobody, Abilities::default(), None)
    }

    fn build(wanted: &Wanted, engine: Engine) -> Result<Self, String> {
        let abilities = Abilities::of_this_system();
        let alone = engine.has_no_namespaces();
        if matches!(engine, Engine::Landlock(_)) && !abilities.files {
            return Err("this system has no Landlock, or one from before Linux 6.2".to_owned());
        }
        // Without namespaces the network of the machine is theirs, and the sockets of its services
        // can be kept from them only by letting them have none.
        let sockets =
            Sockets { network: wanted.network == Network::On || !alone, unix: !alone || abilities.sockets };
        let around = if alone { Around::Machine } else { Around::Own };
        let filter = match filter(sockets, around) {
            Ok(filter) => Some(filter),
            Err(_) if engine == Engine::Bubblewrap => None,
            Err(error) => return Err(error),
        };
        Ok(Self::new(wanted, engine, abilities, filter))
    }

    fn new(wanted: &Wanted, engine: Engine, abilities: Abilities, filter: Option<Filter>) -> Self {
        Self { wanted: wanted.clone(), engine, abilities, filter, groups: Groups::find(wanted.limits) }
    }

    /// Runs `true` in it.
    async fn works(&self, program: &Path) -> Result<(), String> {
        let temporary =
            tempfile::tempdir().map_err(|error| format!("no temporary folder can be made: {error}"))?;
        let confinement = Confinement { temporary: temporary.path().to_owned(), ..Confinement::default() };
        let shell = programs::find(Program::Shell).map_err(|none| none.to_string())?;
        let command = Command {
            words: vec![shell.into(), "-c".into(), "true".into()],
            folder: PathBuf::from("/"),
            environment: Arc::new([]),
            timeout: PATIENCE,
            confinement: Some(Arc::new(confinement)),
            gate: None,
            streams: Streams::default(),
        };
        let supervisor = Supervisor::with_program(program).sandbox(self.clone());
        let mut said = Vec::new();
        let mut hear = |bytes: &[u8]| {
            if said.len() < 4_096 {
                said.extend_from_slice(bytes);
            }
        };
        match supervisor.run(&command, &CancellationToken::new(), &mut hear).await {
            Ok(ended) if ended.status == ExitStatus::Exited(0) => Ok(()),
            Ok(ended) => {
                let said = String::from_utf8_lossy(&said);
                Err(format!("`true` ended as {:?} in it: {}", ended.status, said.trim()))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Those that can be tried, best first: of two that hold the same, ours lets tools keep their caches, and costs less
/// (docs/decisions/0053).
fn engines(tier: Option<Tier>, best: Supervision, refused: &mut Vec<String>) -> Vec<Engine> {
    let mut engines = Vec::new();
    let (bubblewrap, landlock) =
        [Tier::Bubblewrap, Tier::Landlock].map(|one| tier.is_none_or(|tier| tier == one)).into();
    if landlock {
        let kinds: &[Supervision] = match (best, rustix::process::geteuid().is_root()) {
            (Supervision::Subreaper, _) => &[],
            (_, true) => &[Supervision::UserNamespace, Supervision::Namespace],
            (_, false) => &[Supervision::UserNamespace],
        };
        engines.extend(kinds.iter().copied().map(Engine::Landlock));
    }
    if bubblewrap {
        match programs::find(Program::Bubblewrap) {
            Ok(_) => engines.push(Engine::Bubblewrap),
            Err(none) => refused.push(format!("bubblewrap: {none}")),
        }
    }
    engines.extend(landlock.then_some(Engine::Landlock(Supervision::Subreaper)));
    if tier == Some(Tier::None) {
        engines.push(Engine::Nobody);
    }
    engines
}

impl Engine {
    fn name(&self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock(Supervision::Subreaper) => "Landlock without namespaces",
            Self::Landlock(_) => "Landlock with namespaces",
            Self::Nobody => "none",
        }
    }
}

impl Sandbox {
    /// What is in force.
    pub fn in_force(&self) -> InForce {
        let engine = &self.engine;
        let nobody = *engine == Engine::Nobody;
        let own = !nobody && !engine.has_no_namespaces();
        InForce {
            tier: match engine {
                Engine::Bubblewrap => Tier::Bubblewrap,
                Engine::Landlock(_) => Tier::Landlock,
                Engine::Nobody => Tier::None,
            },
            user_namespace: own && *engine != Engine::Landlock(Supervision::Namespace),
            mount_namespace: own,
            network: match (self.is_open(), self.hosts(), own) {
                (true, ..) => NetworkState::Open,
                (false, Some(hosts), _) => NetworkState::Hosts(hosts.clone()),
                (false, None, true) => NetworkState::Off,
                (false, None, false) => NetworkState::FilteredBySeccomp,
            },
            scoped: !nobody && self.abilities.scopes,
            seccomp: self.filter.is_some(),
            limits: match &self.groups {
                Some(groups) if groups.is_v2() => LimitsBy::CgroupV2,
                Some(_) => LimitsBy::CgroupV1,
                None => LimitsBy::Looking,
            },
            notes: self.notes(),
        }
    }

    /// Why the hosts of a list can't be reached.
    fn no_hosts(&self) -> String {
        let takes = match &self.engine {
            Engine::Bubblewrap => "a sandbox of Landlock with namespaces",
            Engine::Landlock(_) | Engine::Nobody => "namespaces",
        };
        format!(
            "the network is off, and the hosts of `sandbox.network` can't be reached: that takes {takes}: {GET_NAMESPACES}"
        )
    }

    fn notes(&self) -> Vec<String> {
        let Self { wanted, engine, abilities, filter, groups } = self;
        let nobody = *engine == Engine::Nobody;
        let alone = engine.has_no_namespaces();
        let root = rustix::process::geteuid().is_root();
        let is_list = matches!(wanted.network, Network::Hosts(_));
        let all = [
            (is_list && nobody, "without a sandbox `sandbox.network` holds nobody: all hosts can be reached".to_owned()),
            (is_list && !nobody && self.hosts().is_none(), self.no_hosts()),
            (nobody, "commands can do all that you can do: --no-sandbox was given".to_owned()),
            (alone, format!("a stronger one can be had: {GET_BUBBLEWRAP}")),
            (
                alone || *engine == Engine::Bubblewrap,
                "what tools keep in caches of yours can be read, and commands can't add to it: that takes a sandbox of \
                 Landlock with namespaces"
                    .to_owned(),
            ),
            (
                alone,
                format!(
                    "without namespaces commands see other processes' names, can change modes, owners and times of files \
                     that are yours anywhere, make no new file in a folder that holds a protected one, list no folder \
                     that holds a hidden one, write no /tmp but their own TMPDIR, and have their HOME elsewhere: \
                     {GET_NAMESPACES}"
                ),
            ),
            (alone && !abilities.sockets, "commands can make no Unix sockets".to_owned()),
            (
                alone && !abilities.scopes,
                "commands can signal your other processes: that takes Linux 6.12 or namespaces".to_owned(),
            ),
            (
                !nobody && self.is_open() && !abilities.scopes,
                "commands can reach abstract sockets of your other programs: that takes Linux 6.12, or no network".to_owned(),
            ),
            (!nobody && filter.is_none(), format!("system calls are not filtered on {}", std::env::consts::ARCH)),
            (groups.is_none(), GET_CGROUP.to_owned()),
            (
                !nobody && groups.is_none() && root,
                "for root, the number of processes is not limited without a cgroup".to_owned(),
            ),
        ];
        all.into_iter().filter(|(holds, _)| *holds).map(|(_, note)| note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Hosts;

    /// Who can't be held to a list of hosts reaches none of them, and a person is told why.
    #[test]
    fn where_hosts_can_not_be_told_apart_the_network_is_off_and_that_is_said() {
        let hosts = Hosts::parse(["a.example"]).unwrap();
        let wanted = Wanted { network: Network::hosts(hosts), ..Wanted::default() };
        for (engine, state, says) in [
            (Engine::Bubblewrap, NetworkState::Off, "takes a sandbox of Landlock with namespaces"),
            (Engine::Landlock(Supervision::Subreaper), NetworkState::FilteredBySeccomp, "takes namespaces"),
            (Engine::Nobody, NetworkState::Open, "holds nobody"),
        ] {
            let force = Sandbox::new(&wanted, engine, Abilities::default(), None).in_force();
            assert_eq!(force.network, state);
            assert!(force.notes.iter().any(|note| note.contains(says)), "{:?}", force.notes);
        }
    }
}
