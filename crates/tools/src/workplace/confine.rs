//! What an agent's commands may write and read: decided here, as lists of paths, from what is
//! known of its folder and of the repository. It looks only at what is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::layout::RepositoryLayout;
use super::place::GitAccess;
use super::submodules;
use crate::sandbox::Confinement;

/// In git's common folder, what no command may make or change: settings, programs, and what
/// leads git to other folders, objects or commits.
pub(super) const OF_COMMON: [&str; 16] = [
    "config",
    "config.worktree",
    "hooks",
    "info",
    "modules",
    "worktrees",
    "branches",
    "remotes",
    "commondir",
    "gitdir",
    "shallow",
    "objects/info",
    "objects/pack",
    "refs/replace",
    "refs/heads/midturn",
    "logs/refs/heads/midturn",
];

/// Of that, what nobody else makes or changes while a command runs: what came to be then was made
/// by the command, and goes.
pub(super) const SETTINGS: [&str; 11] = [
    "config",
    "config.worktree",
    "hooks",
    "info",
    "modules",
    "branches",
    "remotes",
    "commondir",
    "gitdir",
    "objects/info/alternates",
    "objects/info/http-alternates",
];

/// The same in git's own folder for one worktree.
pub(super) const OF_OWN: [&str; 4] = ["config.worktree", "commondir", "gitdir", "locked"];

/// Of that, what nobody changes where it was there before a command.
pub(super) const OF_OTHERS: [&str; 3] = ["config.worktree", "commondir", "gitdir"];

/// What is kept from commands in a person's folder: keys, passwords, and what was typed.
const OF_HOME: [&str; 66] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/op",
    ".config/doctl",
    ".config/git/credentials",
    ".config/containers",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".mozilla",
    ".thunderbird",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".pgpass",
    ".my.cnf",
    ".terraform.d",
    ".vault-token",
    ".claude",
    ".claude.json",
    ".codex",
    ".config/github-copilot",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".local/share/fish/fish_history",
    ".local/share/atuin",
    ".local/share/opencode",
    ".local/share/uv/credentials",
    ".mysql_history",
    ".node_repl_history",
    ".psql_history",
    ".sqlite_history",
    ".cache/huggingface/token",
    ".config/midturn",
    ".config/rclone",
    ".config/sops",
    ".config/pypoetry/auth.toml",
    ".databrickscfg",
    ".dotnet/corefx/cryptography",
    ".gemini",
    ".huggingface",
    ".kaggle",
    ".m2/settings-security.xml",
    ".oci",
    ".pulumi",
    ".rclone.conf",
    ".s3cfg",
];

/// Whether a path is one where people keep keys, wherever it lies.
pub(super) fn is_key(path: &Path) -> bool {
    let is_of_env = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".env"));
    is_of_env || OF_HOME.iter().any(|name| path.ends_with(name))
}

/// Where other programs listen, some of which would run a command for whoever asks.
const OF_SYSTEM: [&str; 12] = [
    "/run/user",
    "/run/dbus",
    "/run/systemd/private",
    "/run/docker.sock",
    "/run/docker",
    "/run/containerd",
    "/run/podman",
    "/run/crio",
    "/run/libvirt",
    "/run/snapd.socket",
    "/run/snapd-snap.socket",
    "/run/secrets",
];

/// For an agent with a repository of its own: of the project's it sees what it borrows.
pub(super) fn of_worktree(layout: &RepositoryLayout, top: &Path) -> Confinement {
    let common = &layout.common;
    let borrowed = ["objects", "lfs/objects"].map(|name| common.join(name));
    Confinement {
        writable: vec![top.to_owned()],
        readable: layout.borrowed.clone(),
        read_only: borrowed.into_iter().chain(submodules::objects(common)).collect(),
        private: vec![common.clone()],
        ..Confinement::default()
    }
}

/// For an agent that works in the project folder.
pub(super) fn of_project(folder: &Path, layout: Option<&RepositoryLayout>, git: GitAccess) -> Confinement {
    let (mut writable, mut read_only) = (vec![folder.to_owned()], Vec::new());
    if let (Some(layout), GitAccess::Read) = (layout, git) {
        read_only.extend(of_git(layout));
        read_only.extend(layout.sources.iter().cloned());
    } else if let Some(RepositoryLayout { common, own, top, sources, .. }) = layout {
        // Each by itself, so that with mounts none can be renamed and another put in its place.
        writable.extend(["", "objects", "refs", "logs"].map(|name| common.join(name)));
        read_only.extend(OF_COMMON.iter().map(|name| common.join(name)));
        read_only.extend(sources.iter().cloned());
        if own != common {
            // The project folder is a worktree itself, or a submodule.
            writable.push(own.clone());
            // Those are another work tree's.
            read_only.extend(["HEAD", "index"].map(|name| common.join(name)));
            read_only.extend(OF_OWN.iter().map(|name| own.join(name)).chain([top.join(".git")]));
        }
    }
    // All of the repository, where the project is a part of it.
    let all = |layout: &RepositoryLayout| {
        let RepositoryLayout { top, own, common, hooks, borrowed, .. } = layout;
        [top, own, common, hooks].into_iter().chain(borrowed).cloned().collect()
    };
    Confinement {
        writable,
        readable: layout.map(all).unwrap_or_default(),
        read_only,
        ..Confinement::default()
    }
}

/// Git's own folders, and what leads there from the top of the work tree, where it isn't one of them.
pub(super) fn of_git(layout: &RepositoryLayout) -> BTreeSet<PathBuf> {
    [layout.common.clone(), layout.own.clone(), layout.top.join(".git")].into()
}

/// For our own git commands, in the project, in the worktrees, and in our scratch folder.
pub(super) fn of_ourselves(layout: &RepositoryLayout, worktrees: &Path) -> Confinement {
    let RepositoryLayout { top, common, own, .. } = layout;
    // Ours are the branches, and git's own folders for worktrees.
    let not_ours = |name: &&&str| !name.ends_with("midturn") && **name != "worktrees";
    let mut read_only: Vec<_> = OF_COMMON.iter().filter(not_ours).map(|name| common.join(name)).collect();
    read_only.extend(layout.sources.iter().cloned());
    let writable = vec![common.clone(), own.clone(), top.clone(), worktrees.to_owned()];
    let readable = layout.sources.iter().chain(&layout.borrowed).cloned().collect();
    Confinement { writable, readable, read_only, ..Confinement::default() }
}

/// What is kept from an agent that works in `folder`: secrets, and the folders of this program.
pub(super) fn hidden(home: Option<&Path>, ours: &[PathBuf], folder: &Path) -> Vec<PathBuf> {
    let of_home = home.into_iter().flat_map(|home| OF_HOME.iter().map(|name| home.join(name)));
    let of_system = OF_SYSTEM.iter().map(PathBuf::from);
    let others = of_home.chain(of_system).filter(|path| !folder.starts_with(path));
    let hidden = ours.iter().cloned().chain(others).filter_map(|path| path.canonicalize().ok());
    hidden.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(own: &str) -> RepositoryLayout {
        RepositoryLayout {
            top: "/p".into(),
            prefix: String::new(),
            own: own.into(),
            common: "/p/.git".into(),
            settings: [].into(),
            of_agents: [].into(),
            objects: "sha1".to_owned(),
            refs: "files".to_owned(),
            sources: vec!["/p/.husky".into()],
            hooks: "/p/.husky".into(),
            filters: Vec::new(),
            borrowed: Vec::new(),
        }
    }

    /// C4: wherever it is.
    #[test]
    fn in_the_project_folder_gits_own_folders_are_read_only_whole() {
        let linked = ["/p/.git", "/p/.git/worktrees/x", "/p/.husky"];
        for (own, read_only) in [("/p/.git", &["/p/.git", "/p/.husky"][..]), ("/p/.git/worktrees/x", &linked)]
        {
            let paths = of_project(Path::new("/p/sub"), Some(&layout(own)), GitAccess::Read);
            assert_eq!(paths.writable, [PathBuf::from("/p/sub")]);
            assert_eq!(paths.read_only, read_only.iter().map(PathBuf::from).collect::<Vec<_>>());
        }
    }

    #[test]
    fn where_a_person_says_so_commits_can_be_made_in_the_project_folder_and_settings_cannot() {
        let paths = of_project(Path::new("/p/sub"), Some(&layout("/p/.git")), GitAccess::Write);
        let writable = ["/p/sub", "/p/.git", "/p/.git/objects", "/p/.git/refs", "/p/.git/logs"];
        assert_eq!(paths.writable, writable.map(PathBuf::from));
        for path in ["/p/.git/hooks", "/p/.git/config", "/p/.git/info", "/p/.git/worktrees", "/p/.husky"] {
            assert!(paths.read_only.contains(&path.into()), "{path}");
        }
        let linked = of_project(Path::new("/p"), Some(&layout("/p/.git/worktrees/x")), GitAccess::Write);
        assert!(linked.read_only.contains(&"/p/.git/worktrees/x/commondir".into()));
        assert!(linked.read_only.contains(&"/p/.git".into()));
        let alone = of_project(Path::new("/p"), None, GitAccess::Write);
        assert_eq!((alone.writable, alone.read_only), (vec!["/p".into()], vec![]));
    }

    #[test]
    fn what_is_hidden_is_there_and_holds_not_the_agents_own_folder() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().canonicalize().unwrap().join(name);
        for name in [".ssh", ".aws", "state"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        let home = home.path().canonicalize().unwrap();
        let hidden = |folder: &str| {
            let mut all = hidden(Some(&home), &[path("state"), path("none")], &path(folder));
            all.retain(|path| path.starts_with(&home));
            all
        };
        assert_eq!(hidden("work"), [path(".aws"), path(".ssh"), path("state")]);
        assert_eq!(hidden(".ssh/keys"), [path(".aws"), path("state")]);
    }
}
