//! Why something could not be done to tasks.

use std::io;

use baton_core::TaskId;
use baton_core::task::Refusal;
use baton_store::tasks::obstacles::InTheWay;
use baton_store::{AppendError, ReadError, keys, registry};

/// A failure of an engine. What was not recorded did not happen.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A rule forbids it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Registry(#[from] registry::Error),
    #[error(transparent)]
    Key(#[from] keys::Error),
    #[error("{what}: {source}")]
    Files { what: String, source: io::Error },
    /// Something else lies in the place of a file or directory of Baton's own.
    #[error(transparent)]
    InTheWay(#[from] InTheWay),
    /// It was asked of another revision of the task.
    #[error("{task} has changed: its revision is {rev}")]
    Changed { task: TaskId, rev: u64 },
    #[error("the ledger moved on again and again while this was decided")]
    Busy,
    #[error("Baton ends, and gives out no more tasks")]
    Ending,
}

impl Fault {
    pub fn not_found(id: &TaskId) -> Fault {
        Fault::Refused(Refusal::NotFound(id.clone()))
    }

    pub(crate) fn files(what: impl Into<String>) -> impl FnOnce(io::Error) -> Fault {
        let what = what.into();
        move |source| Fault::Files { what, source }
    }
}
