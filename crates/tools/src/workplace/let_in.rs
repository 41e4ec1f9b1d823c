//! What a person lets agents read besides what toolchains need: each entry is looked at before anything begins, and
//! what is wrong with it is said. It only looks.

use std::fs::{FileType, read_dir};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::confine::is_key;
use crate::arguments::listed;

/// How deep an entry is looked through for keys and sockets.
const DEPTH_MAX: usize = 3;

/// And how many names.
const NAMES_MAX: usize = 16_384;

/// How the names of private keys begin.
const PRIVATE: &[u8] = b"id_";

/// What was found of the entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LetIn {
    /// What agents may read.
    pub readable: Vec<PathBuf>,
    /// What in it stays covered: keys, and sockets, by which others' programs could be reached.
    pub covered: Vec<PathBuf>,
    /// What there is to say.
    pub notes: Vec<String>,
}

impl LetIn {
    /// Looks at each entry.
    pub fn of(entries: &[PathBuf]) -> Self {
        let mut all = Self::default();
        for entry in entries {
            match why_not(entry) {
                Some(why) => {
                    all.notes.push(format!("sandbox.read: {} is not let in: {why}", entry.display()))
                }
                None => all.let_in(entry),
            }
        }
        all
    }

    fn let_in(&mut self, entry: &Path) {
        let mut found = Vec::new();
        let mut names = 0;
        look(entry, DEPTH_MAX, &mut names, &mut found);
        let shown: Vec<_> = found.iter().map(|path| path.display().to_string()).collect();
        if let Some(shown) = listed(&shown) {
            self.notes.push(format!(
                "sandbox.read: {} holds keys or sockets, which stay covered: {shown}",
                entry.display()
            ));
        }
        if names >= NAMES_MAX {
            self.notes.push(format!(
                "sandbox.read: of {} only {NAMES_MAX} names were looked at for keys and sockets",
                entry.display()
            ));
        }
        self.readable.push(entry.to_owned());
        self.covered.extend(found);
    }
}

fn why_not(entry: &Path) -> Option<String> {
    if entry.parent().is_none() {
        return Some("it is the whole system: name what is needed of it".to_owned());
    }
    let found = match entry.symlink_metadata() {
        Ok(found) => found,
        Err(error) => return Some(format!("it can't be looked at ({error})")),
    };
    if found.is_symlink() {
        let to = entry.canonicalize().map_or_else(|_| "nothing".to_owned(), |to| to.display().to_string());
        return Some(format!("it is a link; name what it leads to, which is {to}"));
    }
    if !found.is_dir() && !found.is_file() {
        return Some("it is neither a file nor a folder".to_owned());
    }
    let is_kept = entry.ancestors().any(is_secret);
    is_kept.then(|| "it is where people keep keys".to_owned())
}

fn is_secret(path: &Path) -> bool {
    is_key(path) || path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PRIVATE))
}

/// Not through links: what they lead to isn't let in by that.
fn look(folder: &Path, depth: usize, names: &mut usize, found: &mut Vec<PathBuf>) {
    // What can't be looked through can't be read by commands either.
    for entry in read_dir(folder).into_iter().flatten().flatten() {
        *names += 1;
        if *names >= NAMES_MAX {
            return;
        }
        let (path, kind) = (entry.path(), entry.file_type().ok());
        if is_secret(&path) || kind.as_ref().is_some_and(FileType::is_socket) {
            found.push(path);
        } else if depth > 1 && kind.is_some_and(|kind| kind.is_dir()) {
            look(&path, depth - 1, names, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn an_entry_that_is_not_there_or_a_link_or_holds_a_key_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["tools/bin", "tools/.ssh", "clean", ".aws/sso"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        for path in ["tools/bin/.npmrc", "tools/id_rsa", "tools/.env.local", "tools/bin/cc"] {
            fs::write(at(path), "").unwrap();
        }
        let _socket = UnixListener::bind(at("tools/bin/socket")).unwrap();
        symlink(at("clean"), at("link")).unwrap();
        let entries = ["tools", "clean", "nowhere", "link", ".aws/sso", "tools/bin/socket"].map(at);
        let mut let_in = LetIn::of(&[&entries[..], &["/".into()]].concat());
        assert_eq!(let_in.readable, [at("tools"), at("clean")]);
        let_in.covered.sort();
        let covered =
            ["tools/.env.local", "tools/.ssh", "tools/bin/.npmrc", "tools/bin/socket", "tools/id_rsa"];
        assert_eq!(let_in.covered, covered.map(at));
        let says = [
            "holds keys or sockets",
            "can't be looked at",
            "is a link; name",
            "keep keys",
            "neither",
            "whole",
        ];
        assert_eq!(let_in.notes.len(), says.len(), "{:?}", let_in.notes);
        for (note, says) in let_in.notes.iter().zip(says) {
            assert!(note.contains(says), "{note}");
        }
    }
}
