//! What a failure of the layers below means to a person: its code, and the command that helps.

use std::io;
use std::path::Path;

use baton_ledger::keyring::Fault;
use baton_ledger::seal::Refusal;
use baton_store::tasks::obstacles::{self, InTheWay};
use baton_store::{AppendError, OpenError, ReadError, export, keys, lock, registry, workspace};

use super::{CliError, Code};
use crate::ui::shell;

impl CliError {
    /// A failed operation on a file of the data directory.
    pub(crate) fn io(action: &str, path: &Path, source: &io::Error) -> CliError {
        let what = format!("cannot {action} {}", path.display());
        let code = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::DiskFull,
            io::ErrorKind::ReadOnlyFilesystem => Code::NotWritable,
            io::ErrorKind::PermissionDenied if !matches!(action, "read" | "list") => Code::NotWritable,
            _ => Code::Io,
        };
        let error = CliError::new(code, what).cause(source.to_string());
        match code {
            Code::DiskFull => error.hint(format!("df -h {}", shell::path(path))),
            Code::NotWritable => error.hint(format!("ls -ld {}", shell::path(path))),
            _ => error.hint("baton doctor"),
        }
    }

    /// Something else lies in the place of a file or directory of Baton's own.
    pub(crate) fn in_the_way(code: Code, found: &InTheWay) -> CliError {
        CliError::new(code, format!("{} is not {}", found.path.display(), found.expected))
            .cause(format!("{} is in its place, and was left alone", obstacles::kind(found.found)))
            .hint("baton doctor --fix")
    }
}

impl From<workspace::Error> for CliError {
    fn from(error: workspace::Error) -> Self {
        match error {
            workspace::Error::Exists(path) => {
                CliError::new(Code::LedgerExists, format!("{} already holds a ledger", path.display()))
                    .hint("baton")
            }
            workspace::Error::Lock(error) => error.into(),
            workspace::Error::Open(error) => error.into(),
            workspace::Error::Key(error) => error.into(),
            workspace::Error::InTheWay(found) => CliError::in_the_way(Code::Io, &found),
        }
    }
}

impl From<lock::Error> for CliError {
    fn from(error: lock::Error) -> Self {
        match error {
            lock::Error::Held { pid, command, waited_ms } => {
                let owner = if pid == 0 {
                    "a process that did not say its name".into()
                } else {
                    format!("process {pid}")
                };
                let error = CliError::new(Code::LockHeld, format!("the data directory is in use by {owner}"))
                    .cause(format!("its command is: {command}"))
                    .cause(format!("waited {waited_ms} ms for it to end"));
                if pid == 0 { error.hint("baton doctor") } else { error.hint(format!("ps -p {pid}")) }
            }
            lock::Error::Io { path, source } => CliError::io("lock", &path, &source),
            lock::Error::Left => CliError::new(Code::LockHeld, error.to_string()).hint("baton doctor"),
        }
    }
}

impl From<OpenError> for CliError {
    fn from(error: OpenError) -> Self {
        let text = error.to_string();
        match error {
            OpenError::NotFound(path) => {
                CliError::new(Code::NoLedger, text).hint(format!("baton init --data-dir {}", shell::path(&path)))
            }
            OpenError::Io { action, path, source } => CliError::io(action, &path, &source),
            OpenError::Full(path) => {
                CliError::new(Code::DiskFull, text).hint(format!("df -h {}", shell::path(&path)))
            }
            OpenError::Damaged { .. } => CliError::new(Code::Damaged, text)
                .cause("nothing was changed, and nothing is written until this is understood")
                .hint("baton verify"),
            OpenError::Cut { .. } => CliError::new(Code::Cut, text)
                .cause("nothing was changed, and nothing is written until the missing events are back")
                .cause("what is left may be intact: verifying it tells, with TAIL_CUT where a checkpoint covers more")
                .hint("keep this directory, put a copy that has all events in its place: baton explain L005"),
            OpenError::Newer(_) => CliError::new(Code::Newer, text).hint("baton --version"),
            OpenError::Key(error) => error.into(),
            OpenError::Recovery(_) => CliError::new(Code::Io, text).hint("baton doctor"),
        }
    }
}

impl From<ReadError> for CliError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io { path, source } => CliError::io("read", &path, &source),
            ReadError::Damaged { .. } => {
                CliError::new(Code::RecordDamaged, error.to_string()).hint("baton verify")
            }
            ReadError::Index(_) => CliError::new(Code::Io, error.to_string()).hint("baton doctor --fix"),
        }
    }
}

impl From<keys::Error> for CliError {
    fn from(error: keys::Error) -> Self {
        let text = error.to_string();
        match error {
            keys::Error::Missing { .. } => CliError::new(Code::KeyMissing, text)
                .cause("private keys are kept outside the data directory and do not travel with it")
                .hint("baton explain L007"),
            keys::Error::Exposed { path, .. } => {
                CliError::new(Code::KeyExposed, text).hint(format!("chmod 600 {}", shell::path(&path)))
            }
            keys::Error::Form { .. } | keys::Error::OtherKey { .. } => {
                CliError::new(Code::KeyUnusable, text).hint("baton explain L009")
            }
            keys::Error::Io { action, path, source } => {
                let error = CliError::io(action, &path, &source);
                if error.code == Code::Io { CliError { code: Code::KeyUnusable, ..error } } else { error }
            }
        }
    }
}

impl From<AppendError> for CliError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Refused(refusal) => refusal.into(),
            AppendError::Full(why) => CliError::new(Code::DiskFull, "the disk is full; nothing was recorded")
                .cause(why)
                .hint("df -h"),
            AppendError::Write(why) => CliError::new(Code::Io, "writing failed; nothing was recorded")
                .cause(why)
                .hint("baton doctor"),
            AppendError::Unreadable(why) => {
                CliError::new(Code::Io, "the ledger's past could not be read; nothing was recorded")
                    .cause(why)
                    .hint("baton doctor --fix")
            }
            AppendError::Poisoned(why) => CliError::new(
                Code::Stopped,
                "the journal stopped; whether the events are recorded is unknown",
            )
            .cause(why)
            .hint("baton events --since 0"),
        }
    }
}

impl From<Refusal> for CliError {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        match refusal {
            Refusal::HeadMoved { trace, .. } => {
                CliError::new(Code::HeadMoved, text).hint(format!("baton trace show {trace}"))
            }
            Refusal::Closed(_) => CliError::new(Code::TraceClosed, text).hint("baton trace new"),
            Refusal::SignatureMissing { .. } => {
                CliError::new(Code::SignatureMissing, text).hint("baton agent key NAME")
            }
            Refusal::SignatureInvalid { .. } => CliError::new(Code::SignatureInvalid, text),
            Refusal::Key(fault) => fault.into(),
            Refusal::Role { required, .. } => {
                CliError::new(Code::RoleNotAllowed, text).hint(format!("add --role {required}"))
            }
            Refusal::Seen { trace, .. } => {
                CliError::new(Code::SeenUnknown, text).hint(format!("baton trace show {trace}"))
            }
            Refusal::IdTaken(id) => {
                CliError::new(Code::IdTaken, text).hint(format!("baton trace prove {id}"))
            }
            Refusal::Guard(breach) => CliError::new(Code::Guard, text).cause(breach.rule.remedy()),
            Refusal::Form(_) => CliError::new(Code::EventForm, text),
            Refusal::Unreadable(_) => CliError::new(Code::Io, text).hint("baton doctor --fix"),
        }
    }
}

impl From<Fault> for CliError {
    fn from(fault: Fault) -> Self {
        let text = fault.to_string();
        match fault {
            Fault::OtherAgent { actor, .. } => {
                CliError::new(Code::KeyNotAllowed, text).hint(format!("baton agent key {actor}"))
            }
            // Which agent a key for another role is needed for, only the speaker knows.
            Fault::Role { .. } | Fault::NotBound(_) | Fault::NotValid(_) | Fault::Event(_) => {
                CliError::new(Code::KeyNotAllowed, text)
            }
        }
    }
}

impl From<baton_ledger::body::Error> for CliError {
    fn from(error: baton_ledger::body::Error) -> Self {
        CliError::new(Code::EventForm, error.to_string())
    }
}

impl From<registry::Error> for CliError {
    fn from(error: registry::Error) -> Self {
        let text = error.to_string();
        match error {
            registry::Error::Append(error) => error.into(),
            registry::Error::Read(error) => error.into(),
            registry::Error::OwnRole => {
                CliError::new(Code::Reserved, text).hint("choose another with --role")
            }
            registry::Error::OwnName(_) => CliError::new(Code::AgentReserved, text),
            registry::Error::NoKey(agent) => {
                CliError::new(Code::NoKey, text).hint(format!("baton agent key {agent}"))
            }
            registry::Error::HasKey { agent, .. } => {
                CliError::new(Code::HasKey, text).hint(format!("baton agent key {agent} --rotate"))
            }
        }
    }
}

impl From<export::Error> for CliError {
    fn from(error: export::Error) -> Self {
        let text = error.to_string();
        match error {
            export::Error::Read(error) => error.into(),
            export::Error::Artifact { .. } => {
                CliError::new(Code::Artifact, text).hint("baton trace export ID -o FILE --no-artifacts")
            }
            // Where a bundle goes to standard output, the writer tells the two apart before this is reached.
            export::Error::Write(source) => match source.kind() {
                io::ErrorKind::StorageFull => CliError::new(Code::DiskFull, text).hint("df -h"),
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                    CliError::new(Code::NotWritable, text).hint("baton doctor")
                }
                _ => CliError::new(Code::Io, text).hint("baton doctor"),
            },
            export::Error::NoSuchPosition { .. } => {
                CliError::new(Code::NoPosition, text).hint("baton events")
            }
        }
    }
}
