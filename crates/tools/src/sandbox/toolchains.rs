//! What toolchains need of a person's home, as a list: what commands may see there, and nothing else. A list of what
//! to hide would have a hole for every program that keeps a key where nobody thought of it. It names
//! places and looks at none; a person extends it (`sandbox.read`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A tool's folder.
struct Tool {
    /// The variable that says where it is, if there is one.
    variable: &'static str,
    /// Where it is otherwise, below the home.
    home: &'static str,
    /// Of that, what commands can read; an empty name is all of it.
    seen: &'static [&'static str],
    /// And what they can change for themselves.
    cached: &'static [&'static str],
    /// And what keys may be in.
    keys: &'static [&'static str],
}

const fn seen(variable: &'static str, home: &'static str) -> Tool {
    Tool { variable, home, seen: &[""], cached: &[], keys: &[] }
}

const fn cached(variable: &'static str, home: &'static str, keys: &'static [&'static str]) -> Tool {
    Tool { variable, home, seen: &[], cached: &[""], keys }
}

const TOOLS: [Tool; 18] = [
    Tool {
        variable: "CARGO_HOME",
        home: ".cargo",
        seen: &["bin"],
        cached: &["registry", "git"],
        keys: &["credentials", "credentials.toml"],
    },
    seen("RUSTUP_HOME", ".rustup"),
    seen("PYENV_ROOT", ".pyenv"),
    Tool { keys: &[".npmrc"], ..seen("NVM_DIR", ".nvm") },
    seen("VOLTA_HOME", ".volta"),
    seen("BUN_INSTALL", ".bun"),
    seen("DENO_INSTALL", ".deno"),
    seen("RBENV_ROOT", ".rbenv"),
    seen("SDKMAN_DIR", ".sdkman"),
    Tool { keys: &["corefx/cryptography"], ..seen("", ".dotnet") },
    seen("", ".local/bin"),
    Tool {
        variable: "XDG_DATA_HOME",
        home: ".local/share",
        seen: &["uv", "pnpm", "mise"],
        cached: &[],
        keys: &["uv/credentials"],
    },
    Tool { variable: "GOPATH", home: "go", seen: &["bin"], cached: &["pkg"], keys: &[] },
    Tool {
        variable: "XDG_CACHE_HOME",
        home: ".cache",
        seen: &[],
        cached: &["pip", "uv", "go-build", "yarn", "pypoetry", "sccache", "ccache"],
        keys: &[],
    },
    cached("", ".npm", &[".npmrc"]),
    cached("", ".m2", &["settings.xml", "settings-security.xml"]),
    cached("GRADLE_USER_HOME", ".gradle", &["gradle.properties", "init.gradle", "init.d"]),
    seen("PNPM_HOME", ".local/share/pnpm"),
];

/// Variables that name whole folders and files of toolchains, where a person has them elsewhere; a value may be a list.
const NAMED: [&str; 10] = [
    "CONDA_PREFIX",
    "GEM_HOME",
    "GOROOT",
    "JAVA_HOME",
    "LD_LIBRARY_PATH",
    "NIX_SSL_CERT_FILE",
    "PKG_CONFIG_PATH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "VIRTUAL_ENV",
];

/// Variables below whose folder commands find nothing of the person's but what the list names.
const EMPTY: [&str; 1] = ["XDG_CONFIG_HOME"];

/// The list, as it is for one person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toolchains {
    /// What commands can read.
    pub readable: Vec<PathBuf>,
    /// What they can change, without changing it for the person.
    pub caches: Vec<PathBuf>,
    /// Folders of which commands see what is listed alone, and have their own in place of: the home first.
    pub emptied: Vec<PathBuf>,
    /// What of all this is a key, if it is there.
    pub keys: Vec<PathBuf>,
}

impl Toolchains {
    /// For a person with this home and these variables.
    pub fn of(home: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let home = home.filter(|home| home.parent().is_some());
        let mut list = Self { emptied: home.map(Path::to_owned).into_iter().collect(), ..Self::default() };
        let said = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        for tool in &TOOLS {
            let moved = said(tool.variable).filter(|path| path.parent().is_some());
            let Some(base) = moved.or_else(|| Some(home?.join(tool.home))) else { continue };
            // All of it would be the home, for one.
            if home.is_some_and(|home| home.starts_with(&base))
                && tool.seen.iter().chain(tool.cached).any(|part| part.is_empty())
            {
                continue;
            }
            let below = |parts: &[&str]| parts.iter().map(|part| base.join(part)).collect::<Vec<_>>();
            list.readable.extend(below(tool.seen));
            list.caches.extend(below(tool.cached));
            list.keys.extend(below(tool.keys));
            let in_part = !tool.seen.iter().chain(tool.cached).any(|part| part.is_empty());
            list.empty(in_part.then_some(base));
        }
        EMPTY.iter().for_each(|name| list.empty(said(name)));
        list.named(home, &variable);
        list
    }

    /// What is in an emptied one is empty anyway.
    fn empty(&mut self, folder: Option<PathBuf>) {
        self.emptied
            .extend(folder.filter(|folder| !self.emptied.iter().any(|empty| folder.starts_with(empty))));
    }

    fn named(&mut self, home: Option<&Path>, variable: &impl Fn(&str) -> Option<OsString>) {
        for value in NAMED.iter().filter_map(|name| variable(name)) {
            let paths = std::env::split_paths(&value);
            let whole = |path: &PathBuf| {
                path.is_absolute()
                    && path.parent().is_some()
                    && !home.is_some_and(|home| home.starts_with(path))
            };
            self.readable.extend(paths.filter(whole));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(variables: &'static [(&str, &str)]) -> Toolchains {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| v.into());
        Toolchains::of(Some(Path::new("/h")), value)
    }

    #[test]
    fn of_the_home_only_toolchains_and_their_caches_are_named() {
        let list = list(&[]);
        assert_eq!(list.emptied, [PathBuf::from("/h")]);
        for path in [".cargo/bin", ".rustup", ".pyenv", ".local/bin", ".local/share/uv", "go/bin"] {
            assert!(list.readable.contains(&Path::new("/h").join(path)), "{path}");
        }
        for path in [".cargo/registry", ".npm", ".cache/pip", "go/pkg", ".m2"] {
            assert!(list.caches.contains(&Path::new("/h").join(path)), "{path}");
        }
        for path in ["", ".config", ".cargo", ".cache", ".local/share"] {
            let path = Path::new("/h").join(path);
            assert!(!list.readable.contains(&path) && !list.caches.contains(&path), "{}", path.display());
        }
        assert!(list.keys.contains(&"/h/.m2/settings.xml".into()));
    }

    /// C14: where a variable says so.
    #[test]
    fn what_is_moved_is_found_there_and_its_surroundings_are_empty() {
        let list = list(&[
            ("CARGO_HOME", "/srv/cargo"),
            ("RUSTUP_HOME", "/"),
            ("XDG_CONFIG_HOME", "/srv/config"),
            ("XDG_CACHE_HOME", "/h/.cache"),
            ("PYENV_ROOT", "/h"),
            ("JAVA_HOME", "/srv/java"),
            ("GOROOT", "/"),
            ("LD_LIBRARY_PATH", "/srv/a:/h:relative:/srv/b"),
        ]);
        assert_eq!(list.emptied, ["/h", "/srv/cargo", "/srv/config"].map(PathBuf::from));
        for path in ["/srv/cargo/bin", "/h/.rustup", "/srv/java", "/srv/a", "/srv/b"] {
            assert!(list.readable.contains(&path.into()), "{path}");
        }
        assert!(list.caches.contains(&"/srv/cargo/registry".into()));
        assert!(list.keys.contains(&"/srv/cargo/credentials.toml".into()));
        for path in ["/", "/h", "/h/", "/srv/config", "/srv/cargo", "relative"] {
            assert!(!list.readable.contains(&path.into()), "{path}");
        }
    }
}
