//! What commands see of our environment: names on a list, and nothing else. A list of what to
//! keep back would have a hole for every name that nobody thought of.

use std::ffi::{OsStr, OsString};

use midturn_core::rules::secrets;

/// Names whose values commands get: where things are, who the user is, how text is shown.
const ALLOWED: [&str; 38] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "TZDIR",
    "CI",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "CC",
    "CXX",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOMODCACHE",
    "JAVA_HOME",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "RBENV_ROOT",
    "GEM_HOME",
    "NIX_PATH",
    "NIX_SSL_CERT_FILE",
];

/// How names begin whose values commands get.
const ALLOWED_BEGINNING: &str = "LC_";

/// The environment of commands: of `all` what is on the list, and what `more` names besides.
/// Even then a URL with a password in it is left out.
pub(crate) fn command_environment(
    all: impl IntoIterator<Item = (OsString, OsString)>,
    more: &[String],
) -> Vec<(OsString, OsString)> {
    let has_a_password = |value: &OsStr| secrets::has_a_password(&value.to_string_lossy());
    all.into_iter().filter(|(name, value)| is_allowed(name, more) && !has_a_password(value)).collect()
}

fn is_allowed(name: &OsStr, more: &[String]) -> bool {
    let Some(name) = name.to_str() else { return false };
    ALLOWED.contains(&name) || name.starts_with(ALLOWED_BEGINNING) || more.iter().any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_get_what_is_on_the_list_and_nothing_else() {
        let rows = [
            ("PATH", true),
            ("HOME", true),
            ("LC_ALL", true),
            ("CARGO_HOME", true),
            ("MY_FLAG", true),
            ("MY_FLAG_2", false),
            ("path", false),
            ("TOKENIZERS", false),
            ("GIT_AUTHOR_NAME", false),
            ("ANTHROPIC_API_KEY", false),
            ("GITHUB_TOKEN", false),
            ("PGPASSWORD", false),
            ("OTEL_EXPORTER_OTLP_HEADERS", false),
            ("SSH_AUTH_SOCK", false),
            ("DBUS_SESSION_BUS_ADDRESS", false),
            ("XDG_RUNTIME_DIR", false),
            ("LD_PRELOAD", false),
            ("GIT_DIR", false),
            ("BASH_ENV", false),
            ("TMPDIR", false),
            ("MIDTURN_MODEL", false),
        ];
        for (name, seen) in rows {
            let environment = command_environment([(name.into(), "x".into())], &["MY_FLAG".to_owned()]);
            assert_eq!(!environment.is_empty(), seen, "{name}");
        }
    }

    #[test]
    fn urls_with_passwords_are_not_handed_to_commands() {
        for (value, seen) in [
            ("postgres://ann:secret@db.example.org/x", false),
            ("https://ann:secret@proxy.example.org", false),
            ("http://a.example.org,http://ann:secret@b.example.org", false),
            ("postgres://ann@db.example.org/x?a=b:c@d", true),
            ("http://localhost:8080/a:b@c", true),
            ("not a url: a@b", true),
        ] {
            let more = ["DATABASE_URL".to_owned()];
            let environment = command_environment([("DATABASE_URL".into(), value.into())], &more);
            assert_eq!(!environment.is_empty(), seen, "{value}");
        }
    }
}
