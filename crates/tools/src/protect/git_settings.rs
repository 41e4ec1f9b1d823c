//! Which lines of a repository's settings run programs or lead git elsewhere. It decides, and reads
//! nothing: what is not known to be harmless is not, and what it can't read as git would isn't either.

/// What neither runs a program nor names a file: what `git init`, `clone`, `submodule` and `config`
/// write in a day's work. `*` is any key.
const HARMLESS: [(&str, &str); 59] = [
    ("core", "repositoryformatversion"),
    ("core", "filemode"),
    ("core", "bare"),
    ("core", "logallrefupdates"),
    ("core", "ignorecase"),
    ("core", "precomposeunicode"),
    ("core", "symlinks"),
    ("core", "autocrlf"),
    ("core", "eol"),
    ("core", "safecrlf"),
    ("core", "abbrev"),
    ("core", "quotepath"),
    ("core", "longpaths"),
    ("core", "compression"),
    ("core", "bigfilethreshold"),
    ("core", "commitgraph"),
    ("core", "multipackindex"),
    ("core", "preloadindex"),
    ("core", "untrackedcache"),
    ("core", "splitindex"),
    ("core", "sharedrepository"),
    ("core", "sparsecheckout"),
    ("core", "sparsecheckoutcone"),
    ("extensions", "objectformat"),
    ("extensions", "compatobjectformat"),
    ("extensions", "refstorage"),
    ("extensions", "partialclone"),
    ("extensions", "preciousobjects"),
    ("extensions", "relativeworktrees"),
    ("extensions", "worktreeconfig"),
    ("remote", "url"),
    ("remote", "pushurl"),
    ("remote", "fetch"),
    ("remote", "push"),
    ("remote", "mirror"),
    ("remote", "prune"),
    ("remote", "tagopt"),
    ("remote", "promisor"),
    ("remote", "partialclonefilter"),
    ("branch", "remote"),
    ("branch", "pushremote"),
    ("branch", "merge"),
    ("branch", "rebase"),
    ("branch", "description"),
    ("submodule", "url"),
    ("submodule", "active"),
    ("submodule", "branch"),
    ("user", "name"),
    ("user", "email"),
    ("pull", "rebase"),
    ("pull", "ff"),
    ("fetch", "prune"),
    ("fetch", "prunetags"),
    ("init", "defaultbranch"),
    ("index", "*"),
    ("gc", "auto"),
    ("advice", "*"),
    ("color", "*"),
    ("lfs", "repositoryformatversion"),
];

/// How many characters of a line are shown.
const SHOWN_MAX: usize = 60;

/// What a file of settings says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// The settings that run programs or lead elsewhere, and what can't be read.
    pub(super) risky: Vec<String>,
    /// A file that says the rest.
    pub(super) rest: String,
}

impl Settings {
    /// Reads them. `stays` is whether a work tree of this path, as it stands there, is where it belongs.
    pub(super) fn read(bytes: &[u8], stays: impl Fn(&str) -> bool) -> Self {
        let mut all = Self::default();
        // What stands before the first section belongs to none, and git refuses it.
        let mut section = None;
        for line in String::from_utf8_lossy(bytes).lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if line.starts_with('[') {
                section = read_section(line);
                all.take(line, if section.is_some() { Ok(()) } else { Err(shown(line)) });
                continue;
            }
            all.take(line, harmless(section.as_ref(), line, &stays));
        }
        all
    }

    fn take(&mut self, line: &str, judged: Result<(), String>) {
        match judged {
            Ok(()) => self.rest.extend([line, "\n"]),
            Err(risky) => self.risky.push(risky),
        }
    }
}

/// A section's name, and what stands behind it in quotes.
type Section = (String, Option<String>);

/// Only as git itself writes it, alone on its line.
fn read_section(line: &str) -> Option<Section> {
    let inside = line.strip_prefix('[')?.strip_suffix(']')?;
    let (name, below) = match inside.split_once(" \"") {
        Some((name, below)) => (name, Some(below.strip_suffix('"')?)),
        None => (inside, None),
    };
    let is_plain = below.is_none_or(|below| !below.contains(['"', '\\']));
    (is_name(name) && is_plain).then(|| (name.to_ascii_lowercase(), below.map(str::to_owned)))
}

/// Whether a line is a setting that does no harm; what to call it, if not.
fn harmless(section: Option<&Section>, line: &str, stays: impl Fn(&str) -> bool) -> Result<(), String> {
    let (key, value) = line.split_once('=').unwrap_or((line, ""));
    let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
    let Some((section, below)) = section.filter(|_| is_name(&key)) else { return Err(shown(line)) };
    let called = match below {
        Some(below) => format!("{section}.{below}.{key}"),
        None => format!("{section}.{key}"),
    };
    let is_known = HARMLESS.iter().any(|(of, known)| of == section && (*known == "*" || *known == key));
    let is_work_tree_inside = (section.as_str(), key.as_str()) == ("core", "worktree") && stays(value);
    // A backslash can lead on to the next line, `::` to a program of that name.
    let is_plain = !value.contains('\\') && !value.contains("::") && !value.starts_with('-');
    if is_plain && (is_known || is_work_tree_inside) { Ok(()) } else { Err(shown(&called)) }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// As it can be said in a sentence, whatever it holds.
fn shown(text: &str) -> String {
    text.escape_debug().take(SHOWN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.invalid/x\n\
                         \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n";

    /// C4: what makes git run a program, however it is written.
    #[test]
    fn what_runs_programs_or_leads_elsewhere_is_named_and_the_rest_is_kept() {
        let rows = [
            ("", None),
            ("# [core] fsmonitor = x", None),
            ("[core]\nworktree = ../../../sub", None),
            ("[advice]\ndetachedHead = false", None),
            ("[core]\nfsmonitor = x", Some("core.fsmonitor")),
            ("[CORE]\nFsMonitor=x", Some("core.fsmonitor")),
            ("[core]\nfsmonitor", Some("core.fsmonitor")),
            ("[core]\nhooksPath = x", Some("core.hookspath")),
            ("[core]\nsshCommand = x", Some("core.sshcommand")),
            ("[core]\npager = x", Some("core.pager")),
            ("[core]\nworktree = /home", Some("core.worktree")),
            ("[core]\nattributesFile = x", Some("core.attributesfile")),
            ("[filter \"x\"]\nclean = x", Some("filter.x.clean")),
            ("[diff \"x\"]\ntextconv = x", Some("diff.x.textconv")),
            ("[diff]\nexternal = x", Some("diff.external")),
            ("[alias]\nst = !x", Some("alias.st")),
            ("[include]\npath = x", Some("include.path")),
            ("[includeIf \"gitdir:x\"]\npath = x", Some("includeif.gitdir:x.path")),
            ("[submodule \"x\"]\nupdate = !x", Some("submodule.x.update")),
            ("[remote \"x\"]\nuploadpack = x", Some("remote.x.uploadpack")),
            ("[remote \"x\"]\nurl = ext::sh -c x", Some("remote.x.url")),
            ("[remote \"x\"]\nurl = -x", Some("remote.x.url")),
            ("[credential]\nhelper = !x", Some("credential.helper")),
            ("[gpg]\nprogram = x", Some("gpg.program")),
            ("[pull]\ntwohead = x", Some("pull.twohead")),
            // As git reads them, and we don't.
            ("[core] fsmonitor = x", Some("[core] fsmonitor = x")),
            ("[core]\nbare = false\\\n", Some("core.bare")),
            ("[core.x]\nfsmonitor = x", Some("[core.x]")),
            ("[core \"a\\\"b\"]\nx = y", Some("[core \\\"a\\\\\\\"b\\\"]")),
            ("\u{feff}[core]\nfsmonitor = x", Some("\\u{feff}[core]")),
            ("fsmonitor = x", Some("fsmonitor = x")),
        ];
        for (text, risky) in rows {
            let read = Settings::read(text.as_bytes(), |path| !path.starts_with('/'));
            assert_eq!(read.risky.first().map(String::as_str), risky, "{text}");
            let read = Settings::read(format!("{PLAIN}{text}\n[gc]\nauto = 0\n").as_bytes(), |_| true);
            assert!(read.rest.starts_with(&PLAIN.replace('\t', "")), "{text}: {}", read.rest);
            assert!(read.rest.ends_with("[gc]\nauto = 0\n"), "{text}: {}", read.rest);
            assert!(risky.is_none() || !read.rest.contains("= x"), "{text}: {}", read.rest);
        }
    }
}
