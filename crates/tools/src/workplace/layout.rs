//! Where a repository keeps what it has, and the settings that our git commands take from it:
//! looked up once, before any agent works in it, and never again from files that an agent can
//! write. It makes nothing and changes nothing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::git::{Git, GitError};
use super::handed_on::{self, is_handed_on};
use super::worktree::NoWorktree;
use crate::mark::Mark;
use crate::programs;
use crate::protect::head_of;

/// A person's own settings that our commands keep: who they are, and how their files are written.
const KEPT: [&str; 12] = [
    "user.name",
    "user.email",
    "author.name",
    "author.email",
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

/// What names a large file's content in place of it, in nearly all repositories that do: an agent's
/// repository has it where the project, or the person, has.
const LFS: &str = "filter.lfs.";
const OF_LFS: [(&str, &str); 4] = [
    ("filter.lfs.clean", "git-lfs clean -- %f"),
    ("filter.lfs.smudge", "git-lfs smudge -- %f"),
    ("filter.lfs.process", "git-lfs filter-process"),
    ("filter.lfs.required", "true"),
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
    /// What an agent's repository is told.
    pub(super) of_agents: Arc<[Setting]>,
    /// How objects are named: `sha1`, `sha256`.
    pub(super) objects: String,
    /// How refs are kept: `files`, `reftable`.
    pub(super) refs: String,
    /// Files and folders that git takes settings and programs from, wherever they are.
    pub(super) sources: Vec<PathBuf>,
    /// Where a person's git finds hooks.
    pub(super) hooks: PathBuf,
    /// The names of the filters that a person's git would run.
    pub(super) filters: Vec<String>,
    /// Files of the person's, and folders with objects of other repositories, that git reads for this one.
    pub(super) borrowed: Vec<PathBuf>,
}

impl RepositoryLayout {
    /// Looks it up.
    pub(super) async fn of(project: &Path, mark: Option<&Mark>) -> Result<Self, NoWorktree> {
        let git = Git::of_a_person(project, mark);
        let [top, prefix, own, common, objects, refs] = places(&git).await.map_err(no_top)?;
        let [top, own, common] = [top, own, common].map(|path| folder(&path));
        let [prefix, objects, refs] =
            [prefix, objects, refs].map(|text| String::from_utf8_lossy(&text).into_owned());
        // Git before 2.45 knows neither the question nor another answer.
        let refs = if refs == "reftable" { refs } else { "files".to_owned() };
        let said = git.bytes(&["config", "--list", "--show-scope", "--show-origin", "-z"]).await?;
        let Said { settings, of_agents, sources, hooks, filters } = Said::read(&said, &top);
        let hooks = hooks.unwrap_or_else(|| common.join("hooks"));
        let mut borrowed = alternates(&common.join("objects"));
        borrowed.extend(personal(&settings));
        Ok(Self {
            top,
            prefix,
            own,
            common,
            settings: settings.into(),
            of_agents: of_agents.into(),
            objects,
            refs,
            sources,
            hooks,
            filters,
            borrowed,
        })
    }

    /// Whether what is in large files lies beside git.
    pub(super) fn has_large_files(&self) -> bool {
        self.of_agents.iter().any(|(key, _)| key.starts_with(LFS))
    }

    /// What an agent's own git is told of the person: who they are, and how files are written.
    pub(super) fn settings_of_person(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter().filter(|(key, _)| KEPT.contains(&&**key))
    }

    /// What our own git is told in an agent's repository: who the person is and how files are written,
    /// whatever is said there; and what names large files by.
    pub(super) fn settings_inside(&self) -> impl Iterator<Item = Setting> {
        self.settings_of_person()
            .chain(self.of_agents.iter().filter(|(key, _)| key.starts_with(LFS)))
            .cloned()
    }
}

/// The folder at the top of the work tree, if there is one that git takes for the person's.
pub(super) async fn top(git: &Git<'_>) -> Result<PathBuf, NoWorktree> {
    git.bytes(&["rev-parse", "--show-toplevel"]).await.map(|top| folder(line(&top))).map_err(no_top)
}

fn no_top(error: GitError) -> NoWorktree {
    match error {
        GitError::Failed { complaint, .. } if complaint.contains("not a git repository") => {
            NoWorktree::NotPossible("it is not in a git repository".to_owned())
        }
        // Somebody else's repository, say, or no git at all.
        error => NoWorktree::NotPossible(error.to_string()),
    }
}

/// Where things are and how they are kept: what git is asked for each.
const PLACES: [&[&str]; 6] = [
    &["--show-toplevel"],
    &["--show-prefix"],
    &["--absolute-git-dir"],
    &["--path-format=absolute", "--git-common-dir"],
    &["--show-object-format"],
    &["--show-ref-format"],
];

async fn places(git: &Git<'_>) -> Result<[Vec<u8>; 6], GitError> {
    let words = [&["rev-parse"], PLACES.concat().as_slice()].concat();
    let answer = git.bytes(&words).await?;
    let lines: Vec<_> = line(&answer).split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
    if let Ok(places) = lines.try_into() {
        return Ok(places);
    }
    // A path with a line break in it: one after the other.
    let mut places = [const { Vec::new() }; 6];
    for (place, words) in places.iter_mut().zip(PLACES) {
        *place = line(&git.bytes(&[&["rev-parse"], words].concat()).await?).to_vec();
    }
    Ok(places)
}

/// An answer without the line break at its end.
fn line(answer: &[u8]) -> &[u8] {
    answer.strip_suffix(b"\n").unwrap_or(answer)
}

fn folder(answer: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(answer))
}

/// How many folders of objects git goes on to from one.
const ALTERNATES_MAX: usize = 5;

/// Where else objects are, as git looks for them.
fn alternates(objects: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut next = vec![objects.to_owned()];
    for _ in 0..ALTERNATES_MAX {
        let lines = std::mem::take(&mut next).into_iter().flat_map(|objects| {
            let text = head_of(&objects.join("info/alternates"), 64 << 10).unwrap_or_default();
            let lines =
                text.split(|&b| b == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"#"));
            lines.map(|line| objects.join(OsStr::from_bytes(line))).collect::<Vec<_>>()
        });
        next.extend(lines.filter_map(|path| path.canonicalize().ok()));
        next.retain(|path| !found.contains(path));
        found.extend(next.iter().cloned());
    }
    found
}

/// Files that say what git leaves alone, and how it treats files.
fn personal(settings: &[Setting]) -> impl Iterator<Item = PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let path = move |value: &str| match (value.strip_prefix("~/"), &home) {
        (Some(rest), Some(home)) => home.join(rest),
        (Some(_), None) | (None, _) => value.into(),
    };
    let named = |key: &str| ["core.excludesfile", "core.attributesfile"].contains(&key);
    settings
        .iter()
        .filter(move |(key, _)| named(key))
        .map(move |(_, value)| path(value))
        .filter(|path| path.is_absolute())
}

/// Settings by which an agent's repository, of these, would run nothing; large files apart.
pub(super) fn without_programs<'a>(keys: impl Iterator<Item = &'a str>) -> impl Iterator<Item = Setting> {
    keys.filter(|key| !key.starts_with(LFS)).flat_map(disarmed)
}

/// What is said in place of a setting that names a program.
fn disarmed(key: &str) -> impl Iterator<Item = Setting> {
    let is_program = |(begin, end, _): &&(&str, &str, &str)| key.starts_with(begin) && key.ends_with(end);
    let ours = PROGRAMS.iter().find(is_program).map(|(_, _, ours)| (key.to_owned(), (*ours).to_owned()));
    // A filter of which only one program is configured, and which can't do without.
    let filter = key.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.'));
    let not_required = filter.map(|(name, _)| (format!("filter.{name}.required"), "false".to_owned()));
    ours.into_iter().chain(not_required)
}

/// What git says of its settings.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    settings: Vec<Setting>,
    of_agents: Vec<Setting>,
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
            said.names_large_files(key);
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
        if is_handed_on(key, value) {
            self.of_agents.push((key.to_owned(), handed_on::without_password(key, value)));
        }
        if key == "core.hookspath" && !value.is_empty() {
            self.source(top.join(value));
        }
        self.settings.extend(disarmed(key));
    }

    fn names_large_files(&mut self, key: &str) {
        let is_known = self.of_agents.iter().any(|(known, _)| known.starts_with(LFS));
        if key.starts_with(LFS) && !is_known && programs::is_in_path("git-lfs") {
            self.of_agents.extend(OF_LFS.map(|(key, value)| (key.to_owned(), value.to_owned())));
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
