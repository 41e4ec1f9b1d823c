//! Paths, both ways of resolving them, and what is swapped behind our back.

use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};

use super::{PathError, Root};

/// A root with files and links in it, and a folder beside it that must not be reached.
struct Fixture {
    _all: tempfile::TempDir,
    roots: [Root; 2],
    inside: std::path::PathBuf,
    outside: std::path::PathBuf,
}

fn fixture() -> Fixture {
    let all = tempfile::tempdir().unwrap();
    let (inside, outside) = (all.path().join("inside"), all.path().join("outside"));
    std::fs::create_dir_all(inside.join("a/b")).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(inside.join("a/b/file"), "in").unwrap();
    std::fs::write(outside.join("file"), "out").unwrap();
    let links = [
        ("../file", "a/b/dangling"),
        ("b", "a/link"),
        ("a/link/file", "far"),
        ("a/../a/./b//file", "winding"),
        ("../outside", "out"),
        ("../inside/a", "out-and-in"),
        ("/etc", "absolute"),
        ("loop", "loop"),
    ];
    for (target, name) in links {
        symlink(target, inside.join(name)).unwrap();
    }
    symlink(inside.join("a"), inside.join("absolute-in")).unwrap();
    let roots = [Root::open(&inside).unwrap(), Root::open_without_kernel_help(&inside).unwrap()];
    Fixture { _all: all, roots, inside, outside }
}

fn read(root: &Root, path: &str) -> Result<String, PathError> {
    let mut text = String::new();
    root.file(path)?.0.read_to_string(&mut text).unwrap();
    Ok(text)
}

#[test]
fn both_ways_of_resolving_allow_and_refuse_the_same() {
    let fixture = fixture();
    let absolute = fixture.inside.join("a/b/file").display().to_string();
    let good = [
        "a/b/file",
        "./a//b/./file",
        "a/../a/b/file",
        "a/link/file",
        "a/link/../b/file",
        "far",
        "winding",
        &absolute,
    ];
    let outside = fixture.outside.join("file").display().to_string();
    let climbing = format!("{}/../outside/file", fixture.inside.display());
    let refused = [
        "../outside/file",
        "out/file",
        "out-and-in/b/file",
        "absolute/passwd",
        "absolute-in/b/file",
        "a/../../outside/file",
        &outside,
        &climbing,
    ];
    for root in &fixture.roots {
        for path in good {
            assert_eq!(read(root, path).unwrap(), "in", "{path}");
        }
        for path in refused {
            assert!(
                matches!(read(root, path), Err(PathError::Outside(..))),
                "{path}: {:?}",
                read(root, path)
            );
            let placed = root.place(path, true, |place| place.replace(b"x", None));
            assert!(matches!(placed, Err(PathError::Outside(..))), "{path}: {placed:?}");
        }
        assert!(matches!(read(root, "nothing"), Err(PathError::Missing(_))));
        assert!(matches!(read(root, "a/b/dangling"), Err(PathError::Missing(_))));
        assert!(matches!(read(root, "a/b/file/x"), Err(PathError::NotFolder(_))));
        assert!(matches!(read(root, "a"), Err(PathError::Folder(_))));
        assert!(matches!(read(root, "."), Err(PathError::Folder(_))));
        assert!(matches!(read(root, "a/.."), Err(PathError::Folder(_))));
        assert!(matches!(read(root, "loop"), Err(PathError::System(..))));
        assert_eq!(root.folder("a/link").unwrap(), fixture.inside.canonicalize().unwrap().join("a/b"));
    }
    assert_eq!(std::fs::read_dir(&fixture.outside).unwrap().count(), 1);
}

#[test]
fn a_folder_swapped_for_a_link_in_the_middle_of_an_edit_leads_nowhere() {
    for which in [0, 1] {
        let fixture = fixture();
        let done = fixture.roots[which].place("a/b/file", false, |place| {
            let (_, seen) = place.read()?;
            std::fs::rename(fixture.inside.join("a/b"), fixture.inside.join("a/moved")).unwrap();
            symlink(&fixture.outside, fixture.inside.join("a/b")).unwrap();
            place.replace(b"edited", Some(&seen))
        });
        done.unwrap();
        assert_eq!(std::fs::read_to_string(fixture.inside.join("a/moved/file")).unwrap(), "edited");
        assert_eq!(std::fs::read_to_string(fixture.outside.join("file")).unwrap(), "out");
    }
}

#[test]
fn a_file_that_somebody_else_changed_or_swapped_meanwhile_is_not_overwritten() {
    type Meddle = fn(&Path, &Path);
    let rows: [(&str, Meddle); 4] = [
        ("changed", |file, _| std::fs::write(file, "other").unwrap()),
        ("swapped for a link", |file, outside| {
            std::fs::remove_file(file).unwrap();
            symlink(outside.join("file"), file).unwrap();
        }),
        ("replaced", |file, _| {
            std::fs::write(file.with_extension("new"), "in").unwrap();
            std::fs::rename(file.with_extension("new"), file).unwrap();
        }),
        ("removed", |file, _| std::fs::remove_file(file).unwrap()),
    ];
    for (claim, meddle) in rows {
        let fixture = fixture();
        let file = fixture.inside.join("a/b/file");
        let done = fixture.roots[0].place("a/b/file", false, |place| {
            let (_, seen) = place.read()?;
            meddle(&file, &fixture.outside);
            place.replace(b"edited", Some(&seen))
        });
        assert!(matches!(done, Err(PathError::Changed(_))), "{claim}: {done:?}");
        assert_ne!(std::fs::read_to_string(&file).unwrap_or_default(), "edited", "{claim}");
        assert_eq!(std::fs::read_to_string(fixture.outside.join("file")).unwrap(), "out", "{claim}");
        let left = std::fs::read_dir(fixture.inside.join("a/b")).unwrap().filter(|entry| {
            entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(crate::protect::TEMPORARY)
        });
        assert_eq!(left.count(), 0, "{claim}");
    }
}

#[test]
fn a_new_file_does_not_overwrite_one_that_came_first() {
    let fixture = fixture();
    let done = fixture.roots[0].place("new/deep/file", true, |place| {
        std::fs::write(fixture.inside.join("new/deep/file"), "first").unwrap();
        place.replace(b"second", None)
    });
    assert!(matches!(done, Err(PathError::Changed(_))), "{done:?}");
    assert_eq!(std::fs::read_to_string(fixture.inside.join("new/deep/file")).unwrap(), "first");
}

/// Whatever is a link at which instant: a tool that writes is never led out, and what it says
/// it wrote is inside (issue 4, item 2).
#[test]
fn a_hundred_thousand_flips_lead_nowhere() {
    const FLIPS: usize = 100_000;
    let fixture = fixture();
    let done = AtomicBool::new(false);
    // Before anybody writes, who would make it.
    std::fs::create_dir(fixture.inside.join("flip")).unwrap();
    symlink(&fixture.outside, fixture.inside.join("flop")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let folder = rustix::fs::open(&fixture.inside, OFlags::PATH, Mode::empty()).unwrap();
            for _ in 0..FLIPS {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(&folder, "flip", &folder, "flop", flags).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        for root in &fixture.roots {
            scope.spawn(|| {
                let mut written = 0_u64;
                while !done.load(Ordering::Relaxed) {
                    for path in ["flip/new", "flip/deep/er/new", "flop/new", "flip/file"] {
                        let write =
                            root.place(path, true, |place| place.replace(b"x", place.present()?.as_ref()));
                        written += u64::from(write.is_ok());
                        // Whatever it was, it is not what lies outside.
                        assert_ne!(read(root, path).ok().as_deref(), Some("out"), "{path}");
                    }
                }
                assert!(written > 0);
            });
        }
    });
    assert_eq!(std::fs::read_dir(&fixture.outside).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(fixture.outside.join("file")).unwrap(), "out");
}

#[test]
fn what_gives_authority_or_is_hidden_is_not_written_by_whatever_name() {
    let fixture = fixture();
    let [kernel, walking] = fixture.roots;
    symlink(".claude", fixture.inside.join("innocent")).unwrap();
    std::fs::create_dir(fixture.inside.join(".claude")).unwrap();
    let hidden = fixture.inside.canonicalize().unwrap().join("a/b");
    for root in [kernel, walking].map(|root| root.hiding(vec![hidden.clone()])) {
        for path in [".claude/agents/x.md", "innocent/x.md", "innocent/new/x.md", "sub/midturn.toml", ".git"]
        {
            let refused = root.place(path, true, |place| place.replace(b"x", None));
            assert!(matches!(refused, Err(PathError::Protected(..))), "{path}: {refused:?}");
        }
        for path in ["a/b/file", "a/link/file", "far"] {
            assert!(matches!(read(&root, path), Err(PathError::Hidden(_))), "{path}");
            let refused = root.place(path, true, |place| place.replace(b"x", None));
            assert!(matches!(refused, Err(PathError::Hidden(_))), "{path}: {refused:?}");
        }
        assert_eq!(root.meant("innocent/x.md").as_deref(), Some(".claude/x.md"), "what rules look at");
        assert_eq!(root.meant("out/file"), None);
        assert_eq!(root.meant("./new/../a").as_deref(), Some("a"));
    }
    assert_eq!(std::fs::read_dir(fixture.inside.join(".claude")).unwrap().count(), 0);
}
