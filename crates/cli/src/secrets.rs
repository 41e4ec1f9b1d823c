//! What of this process nobody is to read: the values that its environment holds under
//! secret-looking names, the passwords of URLs that it was given, and its interface's token.
//!
//! They are known to the whole process, as the places are that they are taken out of: what is
//! logged, what a panic says, what is printed. A session gets them when it is made, and takes them
//! out of everything that comes into it. What they look like, and which values are too
//! common to be taken out, is decided in `midturn-core`'s `rules::secrets`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use midturn_core::rules::secrets::{self, Secrets};
use parking_lot::{RwLock, RwLockUpgradableReadGuard};

use crate::env::Env;
use crate::failure::Failure;

static KNOWN: RwLock<Secrets> = RwLock::new(Secrets::NONE);

/// What is known by now.
pub(crate) fn known() -> Secrets {
    KNOWN.read().clone()
}

/// A text that people or files get, without secrets.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    known().redact(text)
}

/// These are secrets from now on, each under its name.
///
/// # Errors
/// [`Failure::Usage`]: they are too large to be looked for.
pub(crate) fn hide<N, V>(values: impl IntoIterator<Item = (N, V)>) -> Result<(), Failure>
where
    N: Into<String>,
    V: AsRef<str>,
{
    // One adds at a time, and the others read meanwhile, a panic's last words too.
    let known = KNOWN.upgradable_read();
    let all = known.with(values).map_err(Failure::usage)?;
    *RwLockUpgradableReadGuard::upgrade(known) = all;
    Ok(())
}

/// The passwords of URLs are secrets from now on, each under the name of what holds the URL.
///
/// # Errors
/// As [`hide`].
pub(crate) fn hide_passwords<'a>(urls: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), Failure> {
    let passwords = urls
        .into_iter()
        .flat_map(|(name, url)| secrets::passwords_of(url).into_iter().map(move |password| (name, password)));
    hide(passwords)
}

/// The secrets of an environment. The name of a file that is there is not one: it hides
/// nothing, and commands that get it may not be able to read it.
pub(crate) fn of_environment(env: &Env) -> Vec<(String, String)> {
    let all: Vec<(&str, Cow<'_, str>)> = env.all().collect();
    let found = secrets::of_environment(all.iter().map(|(name, value)| (*name, value.as_ref())));
    found.into_iter().filter(|(_, value)| !is_a_file(value)).collect()
}

/// What variables of these names hold: the keys of providers, whatever they are called. What
/// everybody knows is left out, as it is from the others.
pub(crate) fn of_variables(env: &Env, names: impl IntoIterator<Item = String>) -> Vec<(String, String)> {
    let all: BTreeMap<&str, Cow<'_, str>> = env.all().collect();
    let is_everyday = |value: &str| {
        all.iter().any(|(name, known)| secrets::is_everyday(name) && known.trim() == value.trim())
    };
    let found = names.into_iter().filter_map(|name| Some((all.get(name.as_str())?.to_string(), name)));
    let found = found.filter(|(value, _)| !is_everyday(value) && !is_a_file(value));
    found.map(|(value, name)| (name, value)).collect()
}

fn is_a_file(value: &str) -> bool {
    let path = Path::new(value);
    path.is_absolute() && path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_is_no_secret() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let env = Env::of([("A_CREDENTIALS", path), ("B_TOKEN", "/no/such/file"), ("PATH", "/bin")]);
        assert_eq!(of_environment(&env), [("B_TOKEN".to_owned(), "/no/such/file".to_owned())]);
    }

    #[test]
    fn what_a_provider_names_is_a_secret_unless_everybody_knows_it() {
        let env =
            Env::of([("USER", "annabelle"), ("MINE", "hidden-value"), ("WHO", "annabelle"), ("X", "x")]);
        let names = ["MINE", "WHO", "ABSENT"].map(str::to_owned);
        assert_eq!(of_variables(&env, names), [("MINE".to_owned(), "hidden-value".to_owned())]);
    }

    #[test]
    fn what_is_hidden_is_taken_out_of_what_people_get() {
        let url = "postgres://ann:hid%64en-pw@db.example.org/x";
        hide_passwords([("--store", url)]).unwrap();
        assert_eq!(clean(url), "postgres://ann:[redacted: --store]@db.example.org/x");
        assert_eq!(clean("is hidden-pw wrong?"), "is [redacted: --store] wrong?");
    }
}
