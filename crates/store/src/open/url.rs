//! What `--store` takes: the address of a PostgreSQL server, or a path.

use std::fmt;
use std::path::PathBuf;

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file.
    Sqlite(PathBuf),
    /// A PostgreSQL database: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. It holds a
    /// password, so it is never shown whole.
    Postgres(String),
}

/// Why a text names no store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Nothing was given.
    #[error("--store is empty: give a path, or postgres://USER@HOST/DATABASE")]
    Empty,
    /// An address of something else.
    #[error("`{0}://` is not a store that midturn knows: give a path, or postgres://USER@HOST/DATABASE")]
    Scheme(String),
}

impl StoreUrl {
    /// The store that a text names: `postgres://…` or `postgresql://…`; everything else without
    /// `://` is a path.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.trim().is_empty() {
            return Err(UrlError::Empty);
        }
        match text.split_once("://") {
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(text.to_owned())),
            Some((scheme, _)) if is_scheme(scheme) => Err(UrlError::Scheme(scheme.to_owned())),
            _ => Ok(Self::Sqlite(PathBuf::from(text))),
        }
    }
}

fn is_scheme(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// The address without user, password and parameters.
pub(super) fn shown(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let server = rest.rsplit_once('@').map_or(rest, |(_, server)| server);
    format!("postgres://{server}")
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            Self::Postgres(url) => f.write_str(&shown(url)),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_server_and_anything_else_is_a_path() {
        for url in ["postgres://u:p@h/d", "postgresql://h:5433/d"] {
            assert_eq!(StoreUrl::parse(url), Ok(StoreUrl::Postgres(url.into())));
        }
        for path in ["store.db", "/a b/store.db", "./x:y", "a/b://c"] {
            assert_eq!(StoreUrl::parse(path), Ok(StoreUrl::Sqlite(path.into())), "{path}");
        }
        assert_eq!(StoreUrl::parse("mysql://h/d"), Err(UrlError::Scheme("mysql".into())));
        assert_eq!(StoreUrl::parse(" "), Err(UrlError::Empty));
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in
            ["postgres://u:se@cret@h:1/d?password=secret", "postgres://u@h:1/d?sslpassword=secret#secret"]
        {
            let url = StoreUrl::parse(url).unwrap();
            assert_eq!(format!("{url} {url:?}"), "postgres://h:1/d postgres://h:1/d");
        }
    }
}
