//! Where a repository keeps what it has, and the settings that our git commands take from it:
//! looked up once, before any agent works in it, and never again from files that an agent can
//! write. It makes nothing and changes nothing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::git::{Git, GitError};
use super::worktree::NoWorktree;
use crate::mark::Mark;

/// A person's own settings that our commands keep: who they are, and how their files are written.
const KEPT: [&str; 10] = [
    "user.name",
    "user.email",
    "core.excludesfile",
    "core.attributesfile",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.trustctime",
    "core.checkstat",
    "core.bigfilethreshold",
];

/// Settings of a repository that name the program for one kind of file, and what they are with us. A
/// driver that always fails is a conflict that somebody resolves; a filter that is empty is none.
const PROGRAMS: [(&str, &str, &str); 4] = [
    ("filter.", ".clean", ""),
    ("filter.", ".smudge", ""),
    ("filter.", ".process", ""),
    ("merge.", ".driver", "false"),
];

/// A setting and its value.
pub(super) type Setting = (String, String);

/// A repository's folders, as seen from the project folder.
#[derive(Clone, Debug)]
pub(super) struct RepositoryLayout {
    /// The folder at the top of the work tree.
    pub(super) top: PathBuf,
    /// The project folder, relative to that: empty, or with a slash at its end.
    pub(super) prefix: String,
    /// Where HEAD and the index are.
    pub(super) own: PathBuf,
    /// Where objects, refs and settings are, of all worktrees.
    pub(super) common: PathBuf,
    /// What our commands are told.
    pub(super) settings: Arc<[Setting]>,
    /// Files and folders that git takes settings and programs from, wherever they are.
    pub(super) sources: Vec<PathBuf>,
    /// Where a person's git finds hooks.
    pub(super) hooks: PathBuf,
    /// The names of the filters that a person's git would run.
    pub(super) filters: Vec<String>,
}

impl RepositoryLayout {
    /// Looks it up.
    pub(super) async fn of(project: &Path, mark: Option<&Mark>) -> Result<Self, NoWorktree> {
        let git = Git::of_a_person(project, mark);
        let folder = |bytes: Vec<u8>| PathBuf::from(OsStr::from_bytes(bytes.trim_ascii_end()));
        let top = match git.bytes(&["rev-parse", "--show-toplevel"]).await {
            Ok(top) => folder(top),
            Err(GitError::Failed { complaint, .. }) if complaint.contains("not a git repository") => {
                return Err(NoWorktree::NotPossible("it is not in a git repository".to_owned()));
            }
            // Somebody else's repository, say, or no git at all.
            Err(error) => return Err(NoWorktree::NotPossible(error.to_string())),
        };
        let prefix = git.text(&["rev-parse", "--show-prefix"]).await?;
        let own = folder(git.bytes(&["rev-parse", "--absolute-git-dir"]).await?);
        let common = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        let common = folder(git.bytes(&common).await?);
        let said = git.bytes(&["config", "--list", "--show-scope", "--show-origin", "-z"]).await?;
        let Said { settings, sources, hooks, filters } = Said::read(&said, &top);
        let hooks = hooks.unwrap_or_else(|| common.join("hooks"));
        Ok(Self { top, prefix, own, common, settings: settings.into(), sources, hooks, filters })
    }
}

/// What git says of its settings.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    settings: Vec<Setting>,
    sources: Vec<PathBuf>,
    hooks: Option<PathBuf>,
    filters: Vec<String>,
}

impl Said {
    /// Records are `SCOPE`, `ORIGIN` and `KEY`, a line break and the value; each ends with a NUL.
    fn read(bytes: &[u8], top: &Path) -> Self {
        let mut said = Self::default();
        let mut parts = bytes.split(|&b| b == 0);
        while let (Some(scope), Some(origin), Some(entry)) = (parts.next(), parts.next(), parts.next()) {
            let entry = String::from_utf8_lossy(entry);
            let (key, value) = entry.split_once('\n').unwrap_or((&entry, "true"));
            said.of_anybody(key, value, top);
            match scope {
                b"system" | b"global" if KEPT.contains(&key) => {
                    said.settings.push((key.to_owned(), value.to_owned()));
                }
                b"local" | b"worktree" => said.of_repository(origin, key, value, top),
                _ => {}
            }
        }
        said
    }

    /// What a person's git runs, whoever said so; the last one holds.
    fn of_anybody(&mut self, key: &str, value: &str, top: &Path) {
        if key == "core.hookspath" {
            let below_home = value.strip_prefix("~/").zip(std::env::var_os("HOME"));
            let path = below_home.map_or_else(|| value.into(), |(rest, home)| PathBuf::from(home).join(rest));
            self.hooks = Some(path).filter(|path| !path.as_os_str().is_empty()).map(|path| top.join(path));
        }
        let program = |key: &str| {
            key.strip_suffix(".clean").or_else(|| key.strip_suffix(".process")).map(str::to_owned)
        };
        if let Some(name) =
            key.strip_prefix("filter.").and_then(program).filter(|name| !self.filters.contains(name))
        {
            self.filters.push(name);
        }
    }

    fn of_repository(&mut self, origin: &[u8], key: &str, value: &str, top: &Path) {
        if let Some(file) = origin.strip_prefix(b"file:") {
            self.source(top.join(OsStr::from_bytes(file)));
        }
        if KEPT.contains(&key) {
            // The nearer one holds, and git reads it itself.
            self.settings.retain(|(known, _)| known != key);
        }
        if key == "core.hookspath" && !value.is_empty() {
            self.source(top.join(value));
        }
        let is_program = |(begin, end, _): &&(&str, &str, &str)| key.starts_with(begin) && key.ends_with(end);
        if let Some((_, _, ours)) = PROGRAMS.iter().find(is_program) {
            self.settings.push((key.to_owned(), (*ours).to_owned()));
        }
        // A filter of which only one program is configured, and which can't do without.
        if let Some(name) = key.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.')) {
            self.settings.push((format!("filter.{}.required", name.0), "false".to_owned()));
        }
    }

    fn source(&mut self, path: PathBuf) {
        if !self.sources.contains(&path) {
            self.sources.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_repositorys_settings_no_program_is_left_and_of_a_persons_only_what_is_known() {
        let rows = [
            ("global", "file:/h/.gitconfig", "user.name\nA Person"),
            ("global", "file:/h/.gitconfig", "filter.lfs.clean\ngit-lfs clean"),
            ("global", "file:/h/.gitconfig", "core.fsmonitor\n/h/monitor"),
            ("global", "file:/h/.gitconfig", "user.email\na@example.invalid"),
            ("local", "file:.git/config", "user.email\nb@example.invalid"),
            ("local", "file:.git/config", "core.hookspath\n.husky"),
            ("local", "file:../shared", "filter.a=b.smudge\nx"),
            ("local", "file:.git/config", "filter.c.process\nx"),
            ("local", "file:.git/config", "merge.own.driver\ny"),
            ("local", "file:.git/config", "diff.own.textconv\nz"),
        ];
        let bytes: String =
            rows.iter().map(|(scope, origin, entry)| format!("{scope}\0{origin}\0{entry}\0")).collect();
        let said = Said::read(bytes.as_bytes(), Path::new("/p"));
        let settings: Vec<_> =
            said.settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let expected = [
            ("user.name", "A Person"),
            ("filter.a=b.smudge", ""),
            ("filter.a=b.required", "false"),
            ("filter.c.process", ""),
            ("filter.c.required", "false"),
            ("merge.own.driver", "false"),
        ];
        assert_eq!(settings, expected);
        assert_eq!(said.sources, ["/p/.git/config", "/p/.husky", "/p/../shared"].map(PathBuf::from));
        assert_eq!(said.hooks, Some("/p/.husky".into()));
        assert_eq!(said.filters, ["lfs", "c"]);
    }
}
