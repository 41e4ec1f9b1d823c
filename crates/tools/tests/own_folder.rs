//! Whose a folder of state or of sockets is: what another user made in its place is refused, before anything of
//! it is read or written (C15).
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::fs::{Permissions, create_dir, create_dir_all, set_permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use midturn_tools::own_folder::{look, make};
use rustix::process::geteuid;
use support::needs::{Need, has};
use support::project::Project;

/// The user `nobody`.
const NOBODY: u32 = 65_534;

/// Where the folders are made: `BASE/midturn/projects/key`.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        create_dir(place.base()).unwrap();
        place
    }

    fn base(&self) -> PathBuf {
        self.path("base")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// What is said of it, both by who looks and by who makes; nothing: it is taken.
    fn said(&self) -> String {
        let below = Path::new("midturn/projects/key");
        let [looked, made] = [look(&self.base(), below), make(&self.base(), below)]
            .map(|done| done.map_or_else(|not_ours| not_ours.to_string(), |()| String::new()));
        assert_eq!(looked, made, "who looks says the same as who makes");
        made.replace(&self.0.path().display().to_string(), "…")
    }
}

fn mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// What somebody did before us, and what is said of it.
type Row = (&'static str, fn(&Place), &'static str);

fn all_as_said(rows: &[Row]) {
    for (claim, before, says) in rows {
        let place = Place::new();
        before(&place);
        assert_eq!(place.said(), *says, "{claim}");
        let made = place.base().join("midturn/projects/key").is_dir();
        assert!(made || !says.is_empty(), "{claim}: it is not there");
    }
}

#[test]
fn what_others_can_write_and_a_link_in_the_last_place_are_refused() {
    all_as_said(&[
        ("nothing is there", |_| (), ""),
        ("no base either", |place| std::fs::remove_dir(place.base()).unwrap(), ""),
        ("a base for everybody, as /tmp is", |place| mode(&place.base(), 0o1777), ""),
        (
            "a base in which others can put theirs in the place of ours",
            |place| mode(&place.base(), 0o777),
            "other users can write into …/base (mode 777)",
        ),
        (
            "one of ours that the group can write",
            |place| {
                create_dir_all(place.path("base/midturn/projects")).unwrap();
                mode(&place.path("base/midturn/projects"), 0o770);
            },
            "other users can write into …/base/midturn/projects (mode 770)",
        ),
        (
            "one that others can look into is closed",
            |place| {
                create_dir_all(place.path("base/midturn/projects/key")).unwrap();
                mode(&place.path("base/midturn/projects/key"), 0o755);
            },
            "",
        ),
        (
            "a person's own link above",
            |place| {
                create_dir(place.path("disk")).unwrap();
                symlink(place.path("disk"), place.path("base/midturn")).unwrap();
            },
            "",
        ),
        (
            "a link in the last place",
            |place| {
                create_dir_all(place.path("base/midturn/projects")).unwrap();
                symlink(place.path("base"), place.path("base/midturn/projects/key")).unwrap();
            },
            "…/base/midturn/projects/key is a link, not a folder",
        ),
        (
            "a file",
            |place| std::fs::write(place.path("base/midturn"), "").unwrap(),
            "…/base/midturn is something else, not a folder",
        ),
    ]);
}

#[test]
fn what_another_user_made_in_its_place_is_refused() {
    if !has(Need::Root, geteuid().is_root()) {
        return;
    }
    fn anothers(path: PathBuf) {
        create_dir_all(&path).unwrap();
        mode(&path, 0o755);
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    fn linked(to: &Path, path: PathBuf) {
        symlink(to, &path).unwrap();
        lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    all_as_said(&[
        (
            "our folder",
            |place| anothers(place.path("base/midturn")),
            "…/base/midturn belongs to another user (uid 65534)",
        ),
        (
            "the last folder",
            |place| anothers(place.path("base/midturn/projects/key")),
            "…/base/midturn/projects/key belongs to another user (uid 65534)",
        ),
        ("the base", |place| anothers(place.base()), "…/base belongs to another user (uid 65534)"),
        (
            "a link to a folder of ours",
            |place| {
                create_dir(place.path("ours")).unwrap();
                linked(&place.path("ours"), place.path("base/midturn"));
            },
            "…/base/midturn belongs to another user (uid 65534)",
        ),
        (
            "a link for the base",
            |place| {
                std::fs::rename(place.base(), place.path("ours")).unwrap();
                linked(&place.path("ours"), place.base());
            },
            "…/base belongs to another user (uid 65534)",
        ),
        (
            "our own link to a folder of another's",
            |place| {
                anothers(place.path("theirs"));
                symlink(place.path("theirs"), place.path("base/midturn")).unwrap();
            },
            "…/base/midturn belongs to another user (uid 65534)",
        ),
    ]);
}

#[tokio::test]
async fn agents_get_no_worktrees_in_a_state_folder_of_another_user() {
    use midturn_core::engine::ports::Workplace as _;
    if !has(Need::Root, geteuid().is_root()) {
        return;
    }
    let project = Project::new();
    let state = project.state.path().join("midturn");
    create_dir(&state).unwrap();
    chown(&state, Some(NOBODY), Some(NOBODY)).unwrap();
    let error = project.workplace_at(&state).open(&support::name("w")).await.err().unwrap().to_string();
    assert!(error.contains("belongs to another user (uid 65534)"), "{error}");
    assert_eq!(std::fs::read_dir(&state).unwrap().count(), 0, "nothing was made there");

    // A person's own link is theirs to make.
    let link = project.state.path().join("link");
    let disk = project.state.path().join("disk");
    create_dir(&disk).unwrap();
    symlink(&disk, &link).unwrap();
    support::project::run(&project.workplace_at(&link), "w", "true").await;
}
