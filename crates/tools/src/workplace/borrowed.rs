//! What the project has when an agent begins, seen in one look: what is copied for the agent is then what is
//! kept for it, and git is asked twice, not for each thing.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use super::back::BY_US;
use super::git::{Git, GitError};
use super::snapshot::Scratch;
use super::worktree::{NoWorktree, Repository, part_of_branch};

/// A ref is moved in milliseconds, and packed with all others in seconds: a lock that is older is a dead git's.
const LOCKED_AT_MOST: Duration = Duration::from_secs(10);

/// How much all tags with a text may be, in bytes.
const TAGS_MAX: u64 = 256 << 20;

/// A ref of the project's.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ref {
    pub(super) name: String,
    pub(super) object: String,
    /// Of an annotated tag: the commit that it names.
    pub(super) tagged: Option<String>,
}

impl Ref {
    /// A line of `for-each-ref`, and the commit that it leads to. `None`: it leads to none, or is only another
    /// name of one that does.
    pub(super) fn read(line: &str, commit: Option<&str>) -> Option<Self> {
        let (name, rest) = line.split_once('\0')?;
        let (object, symbolic) = rest.split_once('\0')?;
        let commit = commit.filter(|_| symbolic.is_empty())?;
        let tagged = (commit != object).then(|| commit.to_owned());
        Some(Self { name: name.to_owned(), object: object.to_owned(), tagged })
    }

    pub(super) fn commit(&self) -> &str {
        self.tagged.as_deref().unwrap_or(&self.object)
    }
}

/// What the project had at one moment.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Its branches, tags and what it knows of other repositories, as far as there are commits to them: one
    /// that is damaged keeps no agent from the others.
    pub(super) refs: Vec<Ref>,
    /// The names of all, damaged ones too.
    names: HashSet<String>,
    head: Option<String>,
    /// The files of that commit.
    tree: Option<String>,
    pin: Option<Pin>,
    /// Whether all of it is pinned by now.
    is_pinned: AtomicBool,
    /// Where there is a pack of all tags with a text, if there are any.
    tags: Arc<OnceCell<Option<Packed>>>,
}

/// What holds the project's commits for the agents of a session: a commit whose parents they are.
#[derive(Debug)]
struct Pin {
    commit: String,
    parents: HashSet<String>,
}

/// A pack in a folder of its own, as long as it is held.
#[derive(Debug)]
struct Packed {
    folder: PathBuf,
    _scratch: Scratch,
}

impl Found {
    /// The commit at HEAD.
    pub(super) fn head(&self) -> Result<&str, NoWorktree> {
        let none = || NoWorktree::NotPossible("its git repository has no commit yet".to_owned());
        self.head.as_deref().ok_or_else(none)
    }

    pub(super) fn has(&self, reference: &str) -> bool {
        self.names.contains(reference)
    }

    /// With the pack of tags that was made before, if they are the same.
    pub(super) fn after(mut self, before: Option<&Self>) -> Self {
        if let Some(before) = before.filter(|before| before.tags_with_text().eq(self.tags_with_text())) {
            self.tags = before.tags.clone();
        }
        self
    }

    fn tags_with_text(&self) -> impl Iterator<Item = &str> {
        self.refs.iter().filter(|tag| tag.tagged.is_some()).map(|tag| &*tag.object)
    }

    /// The commits that have to be held, and that no pin holds yet.
    fn unpinned(&self) -> Option<BTreeSet<&str>> {
        if self.is_pinned.load(Ordering::Relaxed) {
            return None;
        }
        let commits: BTreeSet<_> = self.refs.iter().map(Ref::commit).chain(self.head.as_deref()).collect();
        let is_held = |pin: &Pin| commits.iter().all(|commit| pin.parents.contains(*commit));
        (!self.pin.as_ref().is_some_and(is_held)).then_some(commits)
    }
}

impl Repository {
    /// Looks at what the project has.
    pub(super) async fn look(&self) -> Result<Found, GitError> {
        let format = "--format=%(refname)%00%(objectname)%00%(symref)";
        let listed =
            self.git().text(&["for-each-ref", format, "refs/heads", "refs/remotes", "refs/tags"]).await?;
        let mut asked =
            format!("info HEAD^{{commit}}\ninfo HEAD^{{tree}}\ncontents {}^{{commit}}\n", self.pin_name());
        for object in listed.lines().filter_map(|line| line.split('\0').nth(1)) {
            // Writing to a string can't fail.
            let _ = writeln!(asked, "info {object}^{{commit}}");
        }
        let asked = self.file("refs", asked.as_bytes())?;
        let git = self.git().fed(asked.path().to_owned());
        let answer = git.bytes(&["cat-file", "--batch-command", "--buffer"]).await?;
        let mut answers = Answers(&answer);
        let (head, tree) = (answers.next(), answers.next());
        let pin = answers.next_with_content().map(|(commit, text)| Pin { commit, parents: parents(text) });
        let refs = listed.lines().filter_map(|line| Ref::read(line, answers.next().as_deref())).collect();
        let names = listed.lines().filter_map(|line| line.split('\0').next()).map(str::to_owned).collect();
        Ok(Found { refs, names, head, tree, pin, ..Found::default() })
    }

    /// Sees to it that the project keeps what its agents borrow, whatever is amended, deleted or cleaned up
    /// there: a branch for the agent, if it is a new one, and a ref of the session's that holds all others as
    /// they were found.
    ///
    /// # Errors
    /// Somebody else took the name meanwhile.
    pub(super) async fn pin(&self, found: &Found, new: Option<(&str, &str)>) -> Result<(), GitError> {
        let mut moves = String::new();
        if let Some((branch, start)) = new {
            let _ = writeln!(moves, "create {branch} {start}");
        }
        if let Some(commits) = found.unpinned() {
            let pin = self.hold(found, &commits).await?;
            // The old value is not asked for: a pin more is no harm, and one that failed would be.
            let _ = writeln!(moves, "update {} {pin}", self.pin_name());
        }
        if moves.is_empty() {
            return Ok(());
        }
        let moves = self.file("moves", moves.as_bytes())?;
        let message = format!("{BY_US}an agent begins");
        let words = ["update-ref", "--create-reflog", "-m", &message, "--stdin"];
        let (pin, branch) = (self.pin_name(), new.map(|(branch, _)| branch));
        let refs: Vec<&str> = branch.into_iter().chain([&*pin]).collect();
        self.moved(&refs, &self.git().fed(moves.path().to_owned()), &words).await?;
        found.is_pinned.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Has git move refs that nobody else moves. A lock that a killed one left there is taken away.
    pub(super) async fn moved(&self, refs: &[&str], git: &Git<'_>, words: &[&str]) -> Result<(), GitError> {
        let locks = refs.iter().map(|name| self.layout.common.join(format!("{name}.lock")));
        match git.bytes(words).await {
            Err(GitError::Failed { .. }) if are_unlocked(locks).await => git.bytes(words).await.map(drop),
            moved => moved.map(drop),
        }
    }

    /// A folder with a pack of all tags with a text. `None`: there are none.
    ///
    /// # Errors
    /// They are too much, too.
    pub(super) async fn tags(&self, found: &Found) -> Result<Option<PathBuf>, GitError> {
        let make = || async {
            let tags: String = found.tags_with_text().map(|tag| format!("{tag}\n")).collect();
            if tags.is_empty() { Ok(None) } else { self.pack(&tags).await.map(Some) }
        };
        let packed = found.tags.get_or_try_init(make).await?;
        Ok(packed.as_ref().map(|packed| packed.folder.clone()))
    }

    async fn pack(&self, objects: &str) -> Result<Packed, GitError> {
        let scratch = Scratch::of_project(self).await?;
        let folder = scratch.objects().join("pack");
        std::fs::create_dir(&folder)?;
        let objects = self.file("tags", objects.as_bytes())?;
        let git = scratch.git(&self.git().at(&folder)).fed(objects.path().to_owned());
        git.bytes(&["pack-objects", "--quiet", "pack"]).await?;
        let mut size = 0;
        for file in std::fs::read_dir(&folder)? {
            size += file?.metadata()?.len();
        }
        match size {
            0..=TAGS_MAX => Ok(Packed { folder, _scratch: scratch }),
            _ => Err(GitError::Refused(format!("its tags have more than {} MiB", TAGS_MAX >> 20))),
        }
    }

    /// A commit whose parents are these. Its files are those of HEAD, which are there anyway: to whoever looks
    /// at all commits it changes none.
    async fn hold(&self, found: &Found, commits: &BTreeSet<&str>) -> Result<String, GitError> {
        let tree = match &found.tree {
            Some(tree) => tree.clone(),
            // HEAD is on no commit yet: one of the agents of before comes back.
            None => self.git().text(&["hash-object", "-w", "-t", "tree", "--stdin"]).await?,
        };
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut text = format!("tree {tree}\n");
        let before = found.pin.as_ref().map(|pin| &*pin.commit);
        for commit in before.into_iter().chain(commits.iter().copied()) {
            let _ = writeln!(text, "parent {commit}");
        }
        for who in ["author", "committer"] {
            let _ = writeln!(text, "{who} midturn <midturn@midturn.invalid> {seconds} +0000");
        }
        text.push_str("\nWhat the agents of this session borrow from the project\n");
        let text = self.file("pin", text.as_bytes())?;
        let words = ["hash-object", "-w", "-t", "commit", "--stdin"];
        self.git().fed(text.path().to_owned()).text(&words).await
    }

    fn pin_name(&self) -> String {
        format!("refs/midturn/{}", part_of_branch(&self.records.session))
    }

    /// A file for our git in the project to read, as long as it is held.
    pub(super) fn file(&self, name: &str, content: &[u8]) -> io::Result<tempfile::NamedTempFile> {
        let file = tempfile::Builder::new().prefix(name).tempfile_in(&self.scratch)?;
        std::fs::write(file.path(), content)?;
        Ok(file)
    }
}

/// Whether git is to be asked once more: one of these locks was there, and is gone or another one.
async fn are_unlocked(locks: impl Iterator<Item = PathBuf>) -> bool {
    let mut is_another_way = false;
    for lock in locks {
        let made = || std::fs::metadata(&lock).and_then(|lock| lock.modified()).ok();
        let Some(seen) = made() else { continue };
        let given_up = Instant::now() + LOCKED_AT_MOST.saturating_sub(seen.elapsed().unwrap_or_default());
        while made() == Some(seen) && Instant::now() < given_up {
            sleep(Duration::from_millis(50)).await;
        }
        // One that is there all this time is removed.
        is_another_way |= made() != Some(seen) || std::fs::remove_file(&lock).is_ok();
    }
    is_another_way
}

/// The parents that a commit's text names.
fn parents(text: &[u8]) -> HashSet<String> {
    let head = text.split(|&b| b == b'\n').take_while(|line| !line.is_empty());
    let parents = head.filter_map(|line| line.strip_prefix(b"parent "));
    parents.map(|parent| String::from_utf8_lossy(parent).into_owned()).collect()
}

/// The answers of `cat-file --batch-command`, one after the other.
struct Answers<'a>(&'a [u8]);

impl<'a> Answers<'a> {
    /// The object that was asked for. `None`: there is none.
    fn next(&mut self) -> Option<String> {
        self.header().map(|(object, _)| object)
    }

    /// The same, and what is in it, which was asked for too.
    fn next_with_content(&mut self) -> Option<(String, &'a [u8])> {
        let (object, size) = self.header()?;
        let (content, rest) = self.0.split_at_checked(size)?;
        // A line break that isn't part of it follows.
        self.0 = rest.get(1..)?;
        Some((object, content))
    }

    fn header(&mut self) -> Option<(String, usize)> {
        let end = self.0.iter().position(|&b| b == b'\n')?;
        let line = String::from_utf8_lossy(&self.0[..end]);
        self.0 = &self.0[end + 1..];
        // In their place it says what is missing.
        let [object, _kind, size] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        let is_object = !object.is_empty() && object.bytes().all(|b| b.is_ascii_hexdigit());
        is_object.then_some((object.to_owned(), size.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_that_name_commits_are_taken_over_and_others_are_not() {
        for (line, commit, expected) in [
            ("refs/heads/main\0a1\0", Some("a1"), Some(("refs/heads/main", "a1", "a1"))),
            ("refs/tags/v1\0b1\0", Some("a1"), Some(("refs/tags/v1", "b1", "a1"))),
            ("refs/tags/blob\0c1\0", None, None),
            ("refs/remotes/origin/HEAD\0a1\0refs/remotes/origin/main", Some("a1"), None),
            ("", Some("a1"), None),
        ] {
            let read = Ref::read(line, commit);
            let told = read.as_ref().map(|known| (&*known.name, &*known.object, known.commit()));
            assert_eq!(told, expected, "{line}");
        }
    }

    #[test]
    fn answers_are_read_one_after_the_other_whatever_is_missing() {
        let text = "tree e1\nparent a1\nparent b1\nauthor x\n\nparent c1\n";
        let said = format!(
            "a1 commit 7\nHEAD^{{tree}} missing\nf1 commit {}\n{text}\n\nb1 commit 9\nb2 commit",
            text.len()
        );
        let mut answers = Answers(said.as_bytes());
        assert_eq!((answers.next().as_deref(), answers.next()), (Some("a1"), None));
        let (pin, content) = answers.next_with_content().unwrap();
        assert_eq!((&*pin, parents(content)), ("f1", ["a1", "b1"].map(str::to_owned).into()));
        let rest: Vec<_> = std::iter::repeat_with(|| answers.next()).take(4).collect();
        assert_eq!(rest, [None, Some("b1".to_owned()), None, None]);
    }

    #[test]
    fn what_a_pin_holds_already_is_not_held_once_more() {
        let found = |parents: Option<&[&str]>| Found {
            refs: vec![Ref { name: "refs/tags/v1".into(), object: "b1".into(), tagged: Some("a1".into()) }],
            names: HashSet::new(),
            head: Some("d1".to_owned()),
            tree: Some("e1".to_owned()),
            pin: parents.map(|parents| Pin {
                commit: "f1".into(),
                parents: parents.iter().map(|&parent| parent.to_owned()).collect(),
            }),
            ..Found::default()
        };
        for (parents, is_held) in
            [(None, false), (Some(&["a1"][..]), false), (Some(&["c1", "d1", "a1"][..]), true)]
        {
            let found = found(parents);
            assert_eq!(found.unpinned(), (!is_held).then(|| ["a1", "d1"].into()), "{parents:?}");
        }
    }

    async fn in_a_second(then: impl FnOnce()) {
        tokio::time::advance(Duration::from_secs(1)).await;
        then();
    }

    /// Time is the test's, and goes on of itself where everybody waits.
    #[tokio::test(start_paused = true)]
    async fn a_young_lock_is_waited_for_and_one_made_anew_meanwhile_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("s1.lock");
        let locked = |ago: u64| {
            let file = std::fs::File::create(&lock).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(ago)).unwrap();
        };
        let asked = || are_unlocked(std::iter::once(lock.clone()));
        let waited = Instant::now();
        assert!(!asked().await, "none is there");
        locked(60);
        assert!(asked().await && !lock.exists(), "a dead git's");
        assert!(waited.elapsed() < Duration::from_secs(1), "{:?}", waited.elapsed());

        locked(0);
        let (again, ()) = tokio::join!(asked(), in_a_second(|| std::fs::remove_file(&lock).unwrap()));
        assert!(again && waited.elapsed() < Duration::from_secs(2), "{:?}", waited.elapsed());
        locked(0);
        let (again, ()) = tokio::join!(asked(), in_a_second(|| locked(5)));
        assert!(again && lock.exists() && waited.elapsed() < Duration::from_secs(4), "another one");
        locked(0);
        let waited = Instant::now();
        assert!(asked().await && !lock.exists(), "one that stays");
        assert!(waited.elapsed() > Duration::from_secs(2), "{:?}", waited.elapsed());
    }
}
