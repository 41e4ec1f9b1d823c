//! What of an environment is a secret, by its name or by its shape.
//!
//! One list for all: what is redacted, and what commands don't get to see. It reads no
//! environment itself.

use percent_encoding::percent_decode_str;

/// How the names of variables end that hold secrets, in capitals.
const ENDINGS: [&str; 17] = [
    // `_API_KEY`, `_ACCESS_KEY`, `_PRIVATE_KEY`, `_SIGNING_KEY` …
    "_KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "SECRET_KEY_BASE",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "_PASS",
    "_PWD",
    "_PAT",
    "_AUTH",
    "_COOKIE",
    "CREDENTIALS",
    "_DSN",
    "WEBHOOK_URL",
    // Where OpenTelemetry has its keys.
    "_HEADERS",
];

/// Variables whose values everybody knows: a password that is the same (`PGPASSWORD=postgres`
/// beside `USER=postgres`) would blot out every path and every greeting.
const EVERYDAY: [&str; 15] = [
    "DISPLAY",
    "EDITOR",
    "HOME",
    "HOST",
    "HOSTNAME",
    "LANG",
    "LOGNAME",
    "OLDPWD",
    "PATH",
    "PGDATABASE",
    "PGUSER",
    "PWD",
    "SHELL",
    "TERM",
    "USER",
];

/// Whether a variable of this name holds a secret: whatever case it is written in.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Whether everybody knows the value of a variable of this name.
pub fn is_everyday(name: &str) -> bool {
    EVERYDAY.contains(&name)
}

/// Whether a value has a password in it: `postgres://user:password@host`.
pub fn has_a_password(value: &str) -> bool {
    passwords(value).next().is_some()
}

/// The secrets of an environment, each with its variable's name: values under secret-looking
/// names (the header values of a `_HEADERS` variable one by one too), and the passwords of
/// URLs under any name.
pub fn of_environment<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    let variables: Vec<(&str, &str)> = variables.into_iter().collect();
    let everyday =
        |value: &str| variables.iter().any(|(name, known)| is_everyday(name) && known.trim() == value.trim());
    let found = variables.iter().flat_map(|(name, value)| {
        in_variable(name, value).into_iter().map(|secret| ((*name).to_owned(), secret))
    });
    found.filter(|(_, secret)| !everyday(secret)).collect()
}

fn in_variable(name: &str, value: &str) -> Vec<String> {
    let mut found = passwords_of(value);
    if is_secret_name(name) {
        found.push(value.trim().to_owned());
        if name.to_ascii_uppercase().ends_with("_HEADERS") {
            found.extend(headers(value));
        }
    }
    found
}

/// The passwords of a URL, or of a list of URLs: as they stand, and decoded.
pub fn passwords_of(value: &str) -> Vec<String> {
    passwords(value).flat_map(|password| [password.to_owned(), decoded(password)]).collect()
}

fn passwords(value: &str) -> impl Iterator<Item = &str> {
    let urls = value.split([',', ' ', '\n']).filter_map(|word| word.split_once("://"));
    urls.flat_map(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let login = authority.rsplit_once('@').map(|(login, _)| login);
        let in_login = login.and_then(|login| login.split_once(':')).map(|(_, password)| password);
        let query = rest.split_once('?').map_or("", |(_, query)| query);
        let in_query = query.split('&').filter_map(|pair| pair.strip_prefix("password="));
        in_login.into_iter().chain(in_query).filter(|password| !password.is_empty())
    })
}

/// The values of `name=value,name=value`, percent-encoded as OpenTelemetry has them; of
/// `Bearer KEY` the key too, which may stand alone elsewhere.
fn headers(value: &str) -> impl Iterator<Item = String> {
    let values = value.split(',').filter_map(|pair| pair.split_once('=')).map(|(_, value)| decoded(value));
    values.flat_map(|value| {
        let key = value.split_once(' ').map(|(_, key)| key.trim().to_owned());
        [Some(value.trim().to_owned()), key].into_iter().flatten()
    })
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_end_like_a_secret_hold_one() {
        for (name, secret) in [
            ("ANTHROPIC_API_KEY", true),
            ("my_api_key", true),
            ("GITHUB_TOKEN", true),
            ("PGPASSWORD", true),
            ("AWS_SECRET_ACCESS_KEY", true),
            ("OTEL_EXPORTER_OTLP_HEADERS", true),
            ("STRIPE_KEY", true),
            ("SENTRY_DSN", true),
            ("SLACK_WEBHOOK_URL", true),
            ("DB_PWD", true),
            ("PATH", false),
            ("PWD", false),
            ("OLDPWD", false),
            ("TOKENIZERS", false),
            ("KEYBOARD", false),
            ("SSH_AUTH_SOCK", false),
            ("AWS_ACCESS_KEY_ID", false),
        ] {
            assert_eq!(is_secret_name(name), secret, "{name}");
        }
    }

    #[test]
    fn urls_with_passwords_are_seen_for_what_they_are() {
        for (value, expected) in [
            ("postgres://ann:secret@db.example.org/x", &["secret", "secret"][..]),
            ("https://ann:p%40ss@proxy.example.org", &["p%40ss", "p@ss"]),
            ("postgres://db/x?sslmode=require&password=geheim", &["geheim", "geheim"]),
            ("amqp://a:one@h,amqp://b:two@h", &["one", "one", "two", "two"]),
            ("postgres://ann@db.example.org/x?a=b:c@d", &[]),
            ("http://localhost:8080/a:b@c", &[]),
            ("not a url: a@b", &[]),
            ("postgres://ann:@db", &[]),
        ] {
            assert_eq!(passwords_of(value), expected, "{value}");
            assert_eq!(has_a_password(value), !expected.is_empty(), "{value}");
        }
    }

    #[test]
    fn an_environments_secrets_are_those_of_names_urls_and_headers() {
        let found = of_environment([
            ("A_TOKEN", " t0ken-value "),
            ("PATH", "/bin"),
            ("USER", "postgres"),
            ("PGPASSWORD", "postgres"),
            ("STORE", "postgres://ann:geheim@db/x"),
            ("X_HEADERS", "authorization=Bearer%20abc,x=y"),
        ]);
        let values: Vec<&str> = found.iter().map(|(_, value)| value.as_str()).collect();
        let headers = "authorization=Bearer%20abc,x=y";
        assert_eq!(values, ["t0ken-value", "geheim", "geheim", headers, "Bearer abc", "abc", "y"]);
    }
}
