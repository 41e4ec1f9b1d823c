//! How a command ends badly: which exit status, and what the person is told. Whoever makes
//! a failure decides between the two kinds here; nothing else knows exit codes by number.

use std::process::ExitCode;

use midturn_client::{InterfaceError, Trouble};

/// Why a command did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// The person has to change something: arguments, a file, the environment. Nothing was begun.
    #[error("{0}")]
    Usage(String),
    /// It was begun and did not work out.
    #[error("{0}")]
    Failed(String),
}

impl Failure {
    /// A failure of the person's input.
    pub(crate) fn usage(message: impl ToString) -> Self {
        Self::Usage(message.to_string())
    }

    /// A failure of the work.
    pub(crate) fn failed(message: impl ToString) -> Self {
        Self::Failed(message.to_string())
    }

    /// How the process ends.
    pub(crate) fn end(&self) -> End {
        match self {
            Self::Usage(_) => End::Usage,
            Self::Failed(_) => End::Failed,
        }
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Self::failed(trouble)
    }
}

impl From<InterfaceError> for Failure {
    fn from(error: InterfaceError) -> Self {
        Self::failed(error)
    }
}

/// How a command ends, with the exit status that the shell sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum End {
    /// All went well.
    Finished = 0,
    /// The work failed.
    Failed = 1,
    /// Bad arguments or bad input.
    Usage = 2,
    /// A limit was reached.
    Limit = 4,
    /// A person interrupted it.
    Interrupted = 130,
}

impl From<End> for ExitCode {
    fn from(end: End) -> Self {
        Self::from(end as u8)
    }
}
