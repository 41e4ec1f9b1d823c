//! The mark that all processes of a session carry in their environment, so that a later daemon
//! finds them when the one that started them is dead. It survives `setsid` and double forks.
//! It holds no secret, and it is not one of the `MIDTURN_` variables: those are settings, which
//! a `midturn` that an agent's command runs would read.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::process::table::Process;

/// The variable's name.
pub(crate) const MARK: &str = "_MIDTURN_TREE";

/// What a process was started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    /// An agent's command, its supervisor, or anything it started.
    Command,
    /// A git command of ours, which leaves locks behind when it is killed.
    Git,
}

/// The process that started others: this very one, no later one with its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub(crate) pid: i32,
    pub(crate) started: u64,
    /// The POSIX session it was in.
    pub(crate) session: i32,
    /// The PID namespace in which these numbers hold, as the system names it; and with it the
    /// machine's start.
    pub(crate) namespace: String,
}

impl Owner {
    /// This very process, as those who come later know it.
    pub(crate) fn ourselves() -> io::Result<Self> {
        let Process { pid, started, session, .. } = Process::ourselves()?;
        let namespace = std::fs::read_link("/proc/self/ns/pid")?;
        Ok(Self { pid, started, session, namespace: namespace.to_string_lossy().into_owned() })
    }

    /// Whether it is dead for sure. One of another namespace can't be looked at from here.
    pub(crate) fn is_dead(&self, ours: &Self) -> bool {
        self.namespace == ours.namespace
            && Process::read(self.pid).is_none_or(|now| now.started != self.started || !now.is_alive())
    }
}

/// The mark of one session's processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) owner: Owner,
    pub(crate) purpose: Purpose,
    pub(crate) session: Arc<str>,
}

impl Mark {
    pub(crate) fn new(session: &str, purpose: Purpose) -> io::Result<Self> {
        Ok(Self { owner: Owner::ourselves()?, purpose, session: session.into() })
    }

    /// For an environment. No variable holds a NUL; as JSON none of these texts does.
    pub(crate) fn entry(&self) -> (OsString, OsString) {
        (MARK.into(), serde_json::json!(self).to_string().into())
    }

    /// The mark in an environment as `/proc/PID/environ` shows it.
    pub(crate) fn find(environ: &[u8]) -> Option<Self> {
        let value = |entry: &'_ [u8]| {
            let value = entry.strip_prefix(MARK.as_bytes())?.strip_prefix(b"=")?;
            serde_json::from_slice(value).ok()
        };
        environ.split(|&b| b == 0).find_map(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_in_an_environment_as_it_was_made() {
        for (session, purpose) in
            [("s1", Purpose::Command), ("a b=c/é", Purpose::Git), ("\0\n\"", Purpose::Git)]
        {
            let mark = Mark::new(session, purpose).unwrap();
            let (name, value) = mark.entry();
            let entry = format!("{}={}", name.to_str().unwrap(), value.to_str().unwrap());
            let environ = format!("PATH=/bin\0X{entry}\0{entry}\0A=b\0");
            assert_eq!(Mark::find(environ.as_bytes()), Some(mark));
        }
        for environ in ["", "_MIDTURN_TREE=\0", "_MIDTURN_TREE={\"session\":\"s\"}\0", "A=_MIDTURN_TREE=1\0"]
        {
            assert_eq!(Mark::find(environ.as_bytes()), None);
        }
    }

    #[test]
    fn only_an_owner_that_can_be_looked_at_and_is_gone_is_dead() {
        let us = Owner::ourselves().unwrap();
        assert!(!us.is_dead(&us));
        assert!(Owner { started: us.started + 1, ..us.clone() }.is_dead(&us));
        assert!(!Owner { started: us.started + 1, namespace: "pid:[1]".into(), ..us.clone() }.is_dead(&us));
    }
}
