//! What has to be known of an agent's worktree to find it again in a later process: one small
//! file beside it, written before the worktree is made and again when it is there.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use midturn_core::rules::id::{AgentName, SessionId};
use serde::{Deserialize, Serialize};

use crate::protect::aside::remove;
use crate::protect::head_of;

/// The format of the file.
const VERSION: u32 = 1;

/// How many files are read, and how long one may be, in bytes.
const RECORDS_MAX: usize = 10_000;
const BYTES_MAX: u64 = 64 << 10;

/// How a scratch folder's name begins; no agent's name has a dot.
pub(super) const SCRATCH: &str = ".scratch-";

/// An agent's worktree, as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    /// The session's id in full: two ids may have the same form in a branch's name.
    session: SessionId,
    pub(super) agent: AgentName,
    /// The folder, beside this file.
    pub(super) name: String,
    pub(super) branch: String,
    /// The commit that the branch began at.
    pub(super) start: String,
    /// Whether it was made to the end, so that somebody's work may be in it.
    pub(super) made: bool,
    /// Whether it has yet to be made ready to work in.
    #[serde(default)]
    pub(super) unready: bool,
    /// The commit of the branch whose changes are in the project as one commit of a person's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) squashed: Option<String>,
}

/// The records of one session.
#[derive(Clone, Debug)]
pub(super) struct Records {
    pub(super) folder: PathBuf,
    pub(super) session: SessionId,
}

impl Records {
    /// A worktree that is about to be made.
    pub(super) fn begin(&self, agent: &AgentName, name: &str, branch: &str, start: &str) -> Record {
        Record {
            version: VERSION,
            session: self.session.clone(),
            agent: agent.clone(),
            name: name.to_owned(),
            branch: branch.to_owned(),
            start: start.to_owned(),
            made: false,
            unready: true,
            squashed: None,
        }
    }

    /// Writes a record; it is durable on return.
    pub(super) fn save(&self, record: &Record) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(SCRATCH).tempfile_in(&self.folder)?;
        file.write_all(&serde_json::to_vec(record)?)?;
        file.as_file().sync_all()?;
        file.persist(self.folder.join(format!("{}.json", record.agent)))?;
        std::fs::File::open(&self.folder)?.sync_all()
    }

    /// All records of this session. What another session left there, or what can't be read, is
    /// nobody's: the worktree it speaks of is left alone. Scratch folders of a process that was
    /// killed are removed.
    pub(super) fn load(&self) -> io::Result<HashMap<AgentName, Record>> {
        self.records(true)
    }

    /// The same beside a process that may have the session: nothing is removed.
    pub(super) fn look(&self) -> io::Result<HashMap<AgentName, Record>> {
        self.records(false)
    }

    fn records(&self, tidies: bool) -> io::Result<HashMap<AgentName, Record>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashMap::new()),
            Err(error) => return Err(error),
        };
        let mut records = HashMap::new();
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(SCRATCH) {
                if tidies {
                    remove(&path)?;
                }
            } else if name.ends_with(".json") && records.len() < RECORDS_MAX {
                let ours = |record: &Record| record.version == VERSION && record.session == self.session;
                let record = read(&path)?.filter(ours).filter(|r| name == format!("{}.json", r.agent));
                records.extend(record.map(|record| (record.agent.clone(), record)));
            }
        }
        Ok(records)
    }
}

/// `None`: it holds no record.
fn read(path: &Path) -> io::Result<Option<Record>> {
    let record = serde_json::from_slice::<Record>(&head_of(path, BYTES_MAX)?).ok();
    Ok(record.filter(|record| !record.name.is_empty() && !record.name.contains('/') && record.name != ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_records_of_this_very_session_are_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let agent = AgentName::new("w").unwrap();
        let records =
            |session| Records { folder: folder.path().to_owned(), session: SessionId::new(session) };
        let ours = Record { made: true, ..records("a/b").begin(&agent, "w", "midturn/a-b/w", "0123") };
        records("a/b").save(&ours).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("v.json", "{");
        write("x.json", &serde_json::to_string(&ours).unwrap());
        std::fs::create_dir(folder.path().join(".scratch-1")).unwrap();
        write(".scratch-1/index", "");
        let loaded = records("a/b").load().unwrap();
        assert_eq!(loaded, HashMap::from([(agent.clone(), ours.clone())]));
        assert!(!folder.path().join(".scratch-1").exists());
        assert_eq!(records("a-b").load().unwrap(), HashMap::new(), "another session of the same form");
        for name in ["..", "", "a/b"] {
            records("a/b").save(&Record { name: name.into(), ..ours.clone() }).unwrap();
            assert_eq!(records("a/b").load().unwrap(), HashMap::new(), "{name:?} is not a folder beside it");
        }
        let none = Records { folder: folder.path().join("none"), session: SessionId::new("s") };
        assert_eq!(none.load().unwrap(), HashMap::new());
    }
}
