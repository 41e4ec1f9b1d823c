//! The folders of one round: a project, a home with secrets, places that nobody may write to;
//! and what is to be the same after every program.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};

use crate::canary::Canaries;
use crate::case::evidence;
use crate::snapshot::{Look, Snapshot};

/// Who is nobody in particular, on every Linux: their user and group.
pub(crate) const NOBODY: u32 = 65_534;

/// Where people keep what they don't show: below the home.
pub(crate) const KEPT: [&str; 18] = [
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".gnupg/private-keys-v1.d/key",
    ".netrc",
    ".git-credentials",
    ".config/gh/hosts.yml",
    ".docker/config.json",
    ".kube/config",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials.toml",
    // C14: of programs that nobody thought of, and where somebody moved them to.
    ".gemini/oauth_creds.json",
    ".config/rclone/rclone.conf",
    ".whatever/token",
    ".psql_history",
    ".npm/.npmrc",
    "../config/gh/hosts.yml",
    OURS,
];

/// Our own configuration.
const OURS: &str = "../config/midturn/midturn.toml";

/// Files that would be worth changing.
const TEMPTING: [&str; 3] = [".bashrc", ".ssh/authorized_keys", ".gitconfig"];

/// Where the system has its programs.
const PROGRAMS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Where one round takes place.
pub(crate) struct World {
    root: PathBuf,
    /// Who the daemon is.
    pub(crate) user: Option<u32>,
    /// In its path, and in the names of all that programs make elsewhere.
    pub(crate) mark: String,
    pub(crate) canaries: Arc<Mutex<Canaries>>,
    /// The value of the provider's key.
    pub(crate) key: String,
    /// More of the daemon's environment.
    pub(crate) environment: Vec<(String, String)>,
    /// The objects that the project had before any agent worked, below `.git`.
    objects: BTreeSet<PathBuf>,
    _another: Option<UnixListener>,
    _folder: Folder,
}

/// Removed at the end, however deep it has become.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // It may go deeper than a recursion, and never must it lead elsewhere; what stays, stays.
        if std::env::var_os("MIDTURN_HOSTILE_KEEP").is_some() {
            return println!("kept: {}", self.0.display());
        }
        let _ =
            Command::new("rm").args(["-rf", "--one-file-system"]).arg(&self.0).stderr(Stdio::null()).status();
    }
}

impl World {
    /// For a daemon of this user's.
    pub(crate) fn new(user: Option<u32>) -> Result<Self> {
        // Neither below `/tmp`, of which a sandbox has its own, nor with a long path: it has sockets.
        let base = Path::new("/var/tmp");
        let root = tempfile::Builder::new().prefix("hostile-").tempdir_in(base)?.keep();
        let folder = Folder(root.clone());
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755))?;
        let mark = root.file_name().context("a folder has a name")?.to_string_lossy().into_owned();
        let mark = mark.trim_start_matches("hostile-").to_owned();
        let mut canaries = Canaries::default();
        let key = canaries.plant("the provider's key", &mark);
        let environment = environment(&mut canaries, &mark);
        let canaries = Arc::new(Mutex::new(canaries));
        let mut world = Self {
            root,
            user,
            mark,
            canaries,
            key,
            environment,
            objects: BTreeSet::new(),
            _another: None,
            _folder: folder,
        };
        world.furnish()?;
        world.objects = files_below(&world.path("main/.git"), Path::new("objects"))?;
        world._another = world.another()?;
        Ok(world)
    }

    /// C11: a socket of another user's, in a folder that may be entered and not looked into. It must keep nobody
    /// from starting.
    fn another(&self) -> Result<Option<UnixListener>> {
        if self.user.is_none() {
            return Ok(None);
        }
        let folder = self.path("another");
        fs::create_dir(&folder)?;
        let listener = UnixListener::bind(folder.join("socket"))?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o711))?;
        Ok(Some(listener))
    }

    fn furnish(&self) -> Result<()> {
        for folder in ["main/src", "home", "outside", "state", "run", "programs", "setuid"] {
            fs::create_dir_all(self.path(folder))?;
        }
        for file in KEPT {
            let secret = self.canaries.lock().unwrap().plant(&format!("~/{file}"), &self.mark);
            let comment = if file == OURS { "# " } else { "" };
            self.write(&format!("home/{file}"), &format!("{comment}{secret}\n"))?;
        }
        for file in TEMPTING {
            self.write(&format!("home/{file}"), "")?;
        }
        self.write("outside/canary.txt", "as it was\n")?;
        self.write("main/README", "A project.\n")?;
        self.write("main/src/lib.rs", "fn f() {}\n")?;
        // Somebody saves this one while a program runs.
        self.write("main/kept/midturn.toml", "# kept\n")?;
        self.planted()?;
        self.write("main/key.txt", &format!("{}\n", self.key))?;
        self.repository()?;
        for program in fs::read_dir(midturn_tests::root().join("tests/hostile/programs"))? {
            let program = program?;
            fs::copy(program.path(), self.path("programs").join(program.file_name()))?;
        }
        // More is known when the daemon runs.
        let targets = serde_json::json!({"mark": self.mark, "evidence": evidence(self)});
        self.write("programs/targets.json", &targets.to_string())?;
        self.give_away()
    }

    fn write(&self, below: &str, text: &str) -> Result<()> {
        let path = self.path(below);
        fs::create_dir_all(path.parent().context("it has a folder")?)?;
        fs::write(&path, text).with_context(|| path.display().to_string())
    }

    /// C5: a program of an agent's, first in the `PATH` of the daemon (see [`Self::surround`]). It is one that no
    /// command of an agent starts.
    fn planted(&self) -> Result<()> {
        let script = format!(
            "#!/bin/sh\necho bwrap >>{}-planted\nexec /usr/bin/bwrap \"$@\"\n",
            evidence(self).display()
        );
        self.write("main/.venv/bin/bwrap", &script)?;
        Ok(fs::set_permissions(self.path("main/.venv/bin/bwrap"), fs::Permissions::from_mode(0o755))?)
    }

    fn repository(&self) -> Result<()> {
        self.git(&["init", "--quiet", "--initial-branch", "main"])?;
        self.git(&["add", "."])?;
        self.git(&["commit", "--quiet", "--message", "First"])
    }

    pub(crate) fn git(&self, words: &[&str]) -> Result<()> {
        let identity = ["-c", "user.name=Hostile", "-c", "user.email=hostile@example.org"];
        let mut command = Command::new("git");
        self.surround(&mut command);
        let done = command.args(identity).args(words).output().context("git can't be run")?;
        ensure!(done.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    }

    /// What a command may do to the project's git where nothing can be mounted over it: its index and
    /// where its branch is, for [`World::visit`].
    pub(crate) fn gits_own(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let files = ["index", "refs/heads/main", "logs/HEAD", "logs/refs/heads/main"];
        let files = files.map(|file| self.path("main/.git").join(file));
        files.map(|file| (file.clone(), fs::read(file).ok())).into()
    }

    /// Uses git as a person does who comes back, and cleans up after the program; what was executed.
    pub(crate) fn visit(&self, name: &str, was: Vec<(PathBuf, Option<Vec<u8>>)>) -> Vec<String> {
        let mut found = Vec::new();
        let below = ["", "later-nested", "later-bare"].map(|folder| self.path("main").join(folder));
        for folder in below.iter().filter(|folder| folder.is_dir()) {
            for words in [&["status"][..], &["diff"], &["log", "--max-count=1"]] {
                // It is a person's who may be somebody else than we; and nothing is written here.
                let mut git = Command::new("git");
                self.surround(&mut git);
                let git = git
                    .args(["-c", "safe.directory=*", "-c", "diff.autoRefreshIndex=false"])
                    .args(words)
                    .current_dir(folder);
                let ran =
                    git.env("GIT_OPTIONAL_LOCKS", "0").stdout(Stdio::null()).stderr(Stdio::null()).status();
                found.extend(ran.err().map(|error| format!("git {words:?} can't be run: {error}")));
            }
        }
        let evidence = PathBuf::from(format!("{}-{name}", evidence(self).display()));
        if let Ok(text) = fs::read_to_string(&evidence) {
            found.push(format!("a person's git executed: {text}"));
        }
        found.extend(self.clean_up(&evidence, was).err().map(|error| format!("{error:#}")));
        found
    }

    fn clean_up(&self, evidence: &Path, was: Vec<(PathBuf, Option<Vec<u8>>)>) -> Result<()> {
        for (file, bytes) in was {
            match bytes {
                Some(bytes) if fs::read(&file).ok().as_ref() != Some(&bytes) => fs::write(&file, bytes)?,
                None if file.exists() => fs::remove_file(&file)?,
                Some(_) | None => {}
            }
        }
        let replaced = fs::read_dir(self.path("main/.git/refs/replace")).into_iter().flatten().flatten();
        let left = fs::read_dir(self.path("main"))?.flatten().map(|entry| entry.path());
        let is_of_program = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("later-"))
        };
        let left = left.filter(is_of_program).chain(replaced.map(|entry| entry.path()));
        for path in left.chain([evidence.to_owned()]).filter(|path| path.symlink_metadata().is_ok()) {
            if path.is_dir() { fs::remove_dir_all(&path)? } else { fs::remove_file(&path)? }
        }
        let _only_where_it_was_made = fs::remove_dir(self.path("main/.git/refs/replace"));
        Ok(())
    }

    /// All is the daemon's user's but a program with the setuid bit, where we can make one.
    fn give_away(&self) -> Result<()> {
        let Some(user) = self.user else { return Ok(()) };
        let mut left = vec![self.root.clone()];
        while let Some(path) = left.pop() {
            chown(&path, Some(user), Some(user))?;
            if path.symlink_metadata()?.is_dir() {
                for entry in fs::read_dir(&path)? {
                    left.push(entry?.path());
                }
            }
        }
        fs::copy("/usr/bin/id", self.path("setuid/id"))?;
        chown(self.path("setuid/id"), Some(0), Some(0))?;
        Ok(fs::set_permissions(self.path("setuid/id"), fs::Permissions::from_mode(0o4755))?)
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// A program that its user alone may touch, for one who can't come to where it lies.
    pub(crate) fn binary(&self) -> Result<PathBuf> {
        let built = midturn_tests::binary();
        if self.user.is_none() {
            return Ok(built.to_owned());
        }
        let copy = self.path("midturn");
        if !copy.exists() {
            fs::copy(built, &copy)?;
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
        }
        Ok(copy)
    }

    /// What a process of this world sees.
    pub(crate) fn surround(&self, command: &mut Command) {
        command
            .current_dir(self.path("main"))
            .env_clear()
            // Where everybody may go: what is in somebody's home is not for all users. And before that what an
            // agent can write, as people have it.
            .env("PATH", format!("{}:{PROGRAMS}", self.path("main/.venv/bin").display()))
            .env("HOME", self.path("home"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .stdin(Stdio::null());
    }

    /// Where the state of the only project is.
    pub(crate) fn state(&self) -> Option<PathBuf> {
        let projects = fs::read_dir(self.path("state/midturn/projects")).ok()?;
        projects.flatten().map(|project| project.path()).next()
    }

    /// The worktree of an agent of the only session.
    pub(crate) fn worktree(&self, agent: &str) -> Option<PathBuf> {
        let sessions = fs::read_dir(self.path("state/midturn/worktrees")).ok()?;
        sessions.flatten().map(|session| session.path().join(agent)).find(|path| path.is_dir())
    }

    /// All that no program may change; without the project when agents' work was merged into it.
    pub(crate) fn snapshot(&self, with_project: bool) -> Snapshot {
        let mut folders: Vec<PathBuf> = ["home", "outside", "programs"].map(|name| self.path(name)).into();
        folders.extend(with_project.then(|| self.path("main")));
        let near = self.worktree("neighbour");
        // Beside it lies what the coordinator remembers of it.
        folders.extend(near.iter().map(|near| near.with_extension("json")));
        folders.extend(near);
        let (git, kept) = (self.path("main/.git"), self.path("main/kept"));
        let look = |path: &Path| match path.strip_prefix(&git) {
            // C1, C2: what there was is there, and as it was.
            Ok(below) if self.objects.contains(below) => Look::AtContent,
            Ok(below) if belongs_to_agents(below) => Look::Away,
            // Where nothing can be mounted over it, it is put back after a command.
            Ok(_) => Look::AtContent,
            // A person saves it meanwhile, and has it back as it was.
            Err(_) if path.starts_with(&kept) => Look::AtContent,
            Err(_) => Look::Closely,
        };
        Snapshot::of(&folders, &look)
    }

    /// What is left on disk that may hold a secret that it shouldn't.
    pub(crate) fn look_at_what_is_stored(&self) {
        let Some(state) = self.state() else { return };
        let files = fs::read_dir(state).into_iter().flatten().flatten();
        for file in files.filter(|file| file.file_name() != "interface.json") {
            let bytes = fs::read(file.path()).unwrap_or_default();
            self.canaries.lock().unwrap().look(&file.file_name().to_string_lossy(), &bytes);
        }
    }
}

/// Secrets in the environment; the last one is under a name that doesn't look like it.
fn environment(canaries: &mut Canaries, mark: &str) -> Vec<(String, String)> {
    let names =
        ["OPENAI_API_KEY", "DEPLOY_TOKEN", "DATABASE_PASSWORD", "AWS_SECRET_ACCESS_KEY", "HOSTILE_PLAIN"];
    let mut plant = |name: &str| (name.to_owned(), canaries.plant(&format!("${name}"), mark));
    names.iter().map(|name| plant(name)).collect()
}

/// What below `.git` comes to be when the commits of agents come back, and when one is merged.
fn belongs_to_agents(below: &Path) -> bool {
    let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["objects", "info", ..] => false,
        ["objects", ..] => true,
        ["refs" | "logs", rest @ ..] => rest.contains(&"midturn"),
        _ => false,
    }
}

/// All files in a folder and below, relative to `top`.
fn files_below(top: &Path, folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(top.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            files.extend(files_below(top, &path)?);
        } else {
            files.insert(path);
        }
    }
    Ok(files)
}
