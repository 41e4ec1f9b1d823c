//! The kinds of sandbox that this machine has, and a folder with what an agent may and mayn't.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use midturn_tools::process::{Command, Ended, RunError, Supervision};
use midturn_tools::sandbox::{Confinement, Sandbox, Tier, TreeLimits, Wanted};
use tokio_util::sync::CancellationToken;

use super::{Mark, shell, supervisor};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_midturn-supervise");

/// The kinds there can be: the tier, and the best supervision.
const KINDS: [(Tier, Supervision); 3] = [
    (Tier::Bubblewrap, Supervision::UserNamespace),
    (Tier::Landlock, Supervision::UserNamespace),
    (Tier::Landlock, Supervision::Subreaper),
];

/// Those that this machine has.
pub(crate) async fn sandboxes(network: bool, limits: TreeLimits) -> Vec<Sandbox> {
    let mut found = Vec::new();
    for (tier, best) in KINDS {
        let wanted = Wanted { tier: Some(tier), network, limits };
        match Sandbox::probe_at_best(&wanted, Path::new(PROGRAM), best).await {
            Ok(sandbox) => found.push(sandbox),
            Err(none) => eprintln!("{none}"),
        }
    }
    found.dedup_by(|a, b| a.in_force() == b.in_force());
    assert!(!found.is_empty(), "no kind of sandbox works here");
    found
}

/// A folder with what an agent has, and what it must not have.
pub(crate) struct Ground {
    pub(crate) folder: tempfile::TempDir,
}

impl Ground {
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
            private: Vec::new(),
            temporary: self.at("temporary"),
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

pub(crate) async fn run(sandbox: &Sandbox, command: &Command) -> Result<(Ended, String), RunError> {
    let supervisor = supervisor().sandbox(sandbox.clone());
    let mut output = Vec::new();
    let mut hear = |bytes: &[u8]| output.extend_from_slice(bytes);
    let ended = supervisor.run(command, &CancellationToken::new(), &mut hear).await?;
    Ok((ended, String::from_utf8_lossy(&output).into_owned()))
}

pub(crate) async fn says(sandbox: &Sandbox, ground: &Ground, text: &str) -> String {
    let result = run(sandbox, &ground.command(text, ground.confinement())).await;
    match result {
        Ok((_, output)) => output,
        Err(error) => panic!("{}: {error}", sandbox.in_force()),
    }
}

pub(crate) fn has_a_view(sandbox: &Sandbox) -> bool {
    sandbox.in_force().mount_namespace
}
