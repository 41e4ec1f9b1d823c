//! What an agent's own repository takes over of its project's settings, and how a file of settings is
//! written. It is a list of what is wanted: programs and passwords are on none.

use std::fmt::Write as _;

use super::layout::Setting;

/// Whole names.
const NAMES: [&str; 32] = [
    "user.name",
    "user.email",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.quotepath",
    "core.trustctime",
    "core.checkstat",
    "core.bigfilethreshold",
    "core.whitespace",
    "core.abbrev",
    "core.protecthfs",
    "core.protectntfs",
    "core.excludesfile",
    "core.attributesfile",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "index.sparse",
    "extensions.partialclone",
    "submodule.active",
    "merge.conflictstyle",
    "merge.ff",
    "pull.rebase",
    "pull.ff",
    "push.default",
    "rebase.autosquash",
    "init.defaultbranch",
    "apply.whitespace",
];

/// Beginnings and ends of those that name something in between.
const PARTS: [(&str, &[&str]); 4] = [
    ("branch.", &[".remote", ".merge", ".rebase", ".description"]),
    ("remote.", &[".url", ".pushurl", ".fetch", ".tagopt", ".promisor", ".partialclonefilter"]),
    ("submodule.", &[".active", ".branch", ".ignore", ".shallow"]),
    ("lfs.", &["url", "fetchinclude", "fetchexclude", "locksverify", "repositoryformatversion"]),
];

/// Whether a setting of the project is one of its agents' repositories, too.
pub(super) fn is_handed_on(key: &str, value: &str) -> bool {
    let of_parts = |(begin, ends): &(&str, &[&str])| {
        key.strip_prefix(begin).is_some_and(|rest| ends.iter().any(|end| rest.ends_with(end)))
    };
    // Hooks that are in the work tree are in an agent's, too.
    let hooks = key == "core.hookspath" && !value.starts_with(['/', '~']);
    hooks || NAMES.contains(&key) || PARTS.iter().any(of_parts)
}

/// A value as agents may read it: an address without who asks there, and by which password.
pub(super) fn without_password(key: &str, value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://").filter(|_| key.ends_with("url")) else {
        return value.to_owned();
    };
    let host = rest.split('/').next().unwrap_or(rest);
    match host.rfind('@') {
        // A name alone is none, and SSH needs it.
        Some(at) if host[..at].contains(':') || scheme.starts_with("http") => {
            format!("{scheme}://{}", &rest[at + 1..])
        }
        _ => value.to_owned(),
    }
}

/// A file of settings that holds these.
pub(super) fn written(settings: &[Setting]) -> String {
    let (mut text, mut section) = (String::new(), String::new());
    for (key, value) in settings {
        let (Some((first, rest)), Some((_, name))) = (key.split_once('.'), key.rsplit_once('.')) else {
            continue;
        };
        let middle = rest.strip_suffix(name).and_then(|middle| middle.strip_suffix('.'));
        let middle = middle.map(|middle| format!(" \"{}\"", escaped(middle))).unwrap_or_default();
        let header = format!("[{first}{middle}]\n");
        if header != section {
            text.push_str(&header);
            section = header;
        }
        let value = escaped(value).replace('\n', "\\n");
        // Writing to a string can't fail.
        let _ = writeln!(text, "\t{name} = \"{value}\"");
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_passwords_are_not_handed_on() {
        for (key, value, is) in [
            ("user.name", "A", true),
            ("branch.main.remote", "origin", true),
            ("remote.o.x.fetch", "+refs/heads/*:refs/remotes/o.x/*", true),
            ("core.hookspath", ".husky", true),
            ("core.hookspath", "/opt/hooks", false),
            ("core.hookspath", "~/hooks", false),
            ("core.fsmonitor", "x", false),
            ("core.sshcommand", "x", false),
            ("core.worktree", "..", false),
            ("credential.helper", "store", false),
            ("filter.x.clean", "y", false),
            ("remote.origin.uploadpack", "x", false),
            ("http.https://h.extraheader", "Authorization: x", false),
            ("alias.x", "!y", false),
            ("include.path", "z", false),
            ("submodule.x.update", "!z", false),
        ] {
            assert_eq!(is_handed_on(key, value), is, "{key}");
        }
        for (value, shown) in [
            ("https://me:secret@h/x", "https://h/x"),
            ("https://token@h/x@y", "https://h/x@y"),
            ("ssh://git@h/x", "ssh://git@h/x"),
            ("ssh://git:pw@h/x", "ssh://h/x"),
            ("git@h:x", "git@h:x"),
            ("/a/b", "/a/b"),
        ] {
            assert_eq!(without_password("remote.origin.url", value), shown);
        }
    }

    #[test]
    fn what_is_written_git_reads_back() {
        let settings = [
            ("user.name", "A \"B\" \\ # ; C"),
            ("branch.a.b \"c\\.merge", "refs/heads/a"),
            ("remote.o.fetch", "one"),
            ("remote.o.fetch", "two\nlines\t"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), written(&settings)).unwrap();
        let words = ["config", "--file", file.path().to_str().unwrap(), "--list", "-z"];
        let said = std::process::Command::new("git").args(words).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let read: Vec<_> = said.split_terminator('\0').map(|entry| entry.split_once('\n').unwrap()).collect();
        let expected: Vec<_> = settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(read, expected);
    }
}
