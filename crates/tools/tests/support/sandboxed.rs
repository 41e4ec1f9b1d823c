//! The kinds of sandbox that this machine has, and a folder with what an agent may and mayn't.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use midturn_tools::network::Network;
use midturn_tools::process::{Command, Ended, RunError, Supervision};
use midturn_tools::sandbox::{Confinement, Sandbox, Tier, Toolchains, TreeLimits, Wanted};
use tokio_util::sync::CancellationToken;

use super::needs::{Need, has, has_for_a_part};
use super::{Mark, shell, supervisor};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_midturn-supervise");

/// The kinds there can be: the tier, and the best supervision.
const KINDS: [(Tier, Supervision); 3] = [
    (Tier::Bubblewrap, Supervision::UserNamespace),
    (Tier::Landlock, Supervision::UserNamespace),
    (Tier::Landlock, Supervision::Subreaper),
];

/// Those that this machine has. The test that has none did not run.
pub(crate) async fn sandboxes(network: bool, limits: TreeLimits) -> Vec<Sandbox> {
    let mut found = Vec::new();
    for (tier, best) in KINDS {
        let network = if network { Network::On } else { Network::Off };
        let wanted = Wanted { tier: Some(tier), network, limits };
        let probed = Sandbox::probe_at_best(&wanted, Path::new(PROGRAM), best).await;
        if let Err(none) = &probed {
            eprintln!("{none}");
        }
        if has_for_a_part(need(tier), probed.is_ok()) {
            found.extend(probed);
        }
    }
    found.dedup_by(|a, b| a.in_force() == b.in_force());
    let _ = has(Need::Landlock, !found.is_empty());
    found
}

/// Those in which commands have a view of their own.
pub(crate) async fn sandboxes_with_a_view() -> Vec<Sandbox> {
    let mut found = sandboxes(false, TreeLimits::default()).await;
    found.retain(has_a_view);
    let _ = has(Need::Bubblewrap, !found.is_empty());
    found
}

fn need(tier: Tier) -> Need {
    match tier {
        Tier::Bubblewrap => Need::Bubblewrap,
        Tier::Landlock | Tier::None => Need::Landlock,
    }
}

/// A folder with what an agent has, and what it must not have.
pub(crate) struct Fixture {
    pub(crate) folder: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        for path in ["w/.git/hooks", "w/src", "other", "secret", "temporary"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        fs::write(folder.path().join("secret/key"), "the secret").unwrap();
        fs::write(folder.path().join("token"), "the token").unwrap();
        fs::write(folder.path().join("other/file"), "of another").unwrap();
        Self { folder }
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn confinement(&self) -> Confinement {
        Confinement {
            writable: vec![self.at("w")],
            read_only: vec![self.at("w/.git/hooks")],
            hidden: vec![self.at("secret"), self.at("token")],
            readable: [self.at("other"), self.at("w")].into_iter().chain(toolchains()).collect(),
            temporary: self.at("temporary"),
            ..Confinement::default()
        }
    }

    pub(crate) fn command(&self, text: &str, confinement: Confinement) -> Command {
        let mut command = shell(text, &Mark::new());
        command.folder = self.at("w/src");
        let place = ("G".into(), self.folder.path().into());
        let temporary = ("TMPDIR".into(), self.at("temporary").into());
        command.environment = command.environment.iter().cloned().chain([place, temporary]).collect();
        command.confinement = Some(Arc::new(confinement));
        command
    }
}

/// What whoever runs the tests has of toolchains: the `python3` of the `PATH`, for one.
fn toolchains() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    Toolchains::of(home.as_deref(), |name| std::env::var_os(name)).readable
}

pub(crate) async fn run(sandbox: &Sandbox, command: &Command) -> Result<(Ended, String), RunError> {
    let supervisor = supervisor().sandbox(sandbox.clone());
    let mut output = Vec::new();
    let mut hear = |bytes: &[u8]| output.extend_from_slice(bytes);
    let ended = supervisor.run(command, &CancellationToken::new(), &mut hear).await?;
    Ok((ended, String::from_utf8_lossy(&output).into_owned()))
}

pub(crate) async fn says(sandbox: &Sandbox, fixture: &Fixture, text: &str) -> String {
    let result = run(sandbox, &fixture.command(text, fixture.confinement())).await;
    match result {
        Ok((_, output)) => output,
        Err(error) => panic!("{}: {error}", sandbox.in_force()),
    }
}

pub(crate) fn has_a_view(sandbox: &Sandbox) -> bool {
    sandbox.in_force().mount_namespace
}
