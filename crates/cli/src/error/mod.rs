//! One error for people: what failed, why, what to type next, and a code with a page.
//!
//! [`code`] has the table of codes, [`from_store`] says what each failure below means here. Printed in one place: [`CliError::print`].

mod code;
mod from_runtime;
mod from_store;

use std::io::Write;

use serde_json::json;

pub(crate) use code::{Code, pages};

use crate::exit::Exit;
use crate::serve::HandOver;
use crate::ui::color::{Mark, Paint};
use crate::ui::shell::Place;
use crate::ui::text::{printable, printable_json};

/// An error with everything that is said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CliError {
    pub(crate) code: Code,
    pub(crate) what: String,
    /// Why, one cause or candidate per line.
    pub(crate) causes: Vec<String>,
    /// A command that helps.
    pub(crate) hint: Option<String>,
}

impl CliError {
    pub(crate) fn new(code: Code, what: impl Into<String>) -> Self {
        CliError { code, what: what.into(), causes: Vec::new(), hint: None }
    }

    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn exit(&self) -> Exit {
        self.code.exit()
    }

    /// Prints to standard error, in one piece. What comes from records, files or arguments is made printable here, whatever it went through before.
    pub(crate) fn print(&self, mut err: impl Write, json: bool, paint: Paint, place: &Place) {
        let hint = self.hint.as_deref().map(|hint| place.carry(hint));
        let text = if json {
            let mut error = json!({"code": self.code.as_str(), "message": self.what});
            if !self.causes.is_empty() {
                error["causes"] = self.causes.clone().into();
            }
            if let Some(hint) = hint {
                error["hint"] = hint.into();
            }
            format!("{}\n", printable_json(&json!({ "error": error })))
        } else {
            let head = paint.mark(Mark::Bad, &format!("error[{}]", self.code.as_str()));
            let mut text = format!("{head}: {}\n", printable(&self.what));
            for cause in &self.causes {
                text.push_str(&format!("  {}\n", printable(cause)));
            }
            let hint = hint.unwrap_or_else(|| format!("baton explain {}", self.code.as_str()));
            text.push_str(&format!("{}: {}\n", paint.mark(Mark::Hint, "hint"), printable(&hint)));
            text
        };
        // There is nowhere left to report that standard error is gone.
        let _ = err.write_all(text.as_bytes());
    }
}

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Stop {
    Error(Box<CliError>),
    /// Whoever read standard output has gone away: not our failure.
    PipeClosed,
    /// Another process owns the data directory and takes commands. Nothing was read, printed or written yet: the command is done there.
    HandOver(Box<HandOver>),
}

impl From<CliError> for Stop {
    fn from(error: CliError) -> Self {
        Stop::Error(Box::new(error))
    }
}

/// Makes every error that is understood here end a command.
macro_rules! stop_from {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Stop {
            fn from(error: $error) -> Self {
                CliError::from(error).into()
            }
        }
    )*};
}
stop_from!(
    baton_runtime::Fault,
    baton_store::workspace::Error,
    baton_store::OpenError,
    baton_store::ReadError,
    baton_store::AppendError,
    baton_store::registry::Error,
    baton_store::export::Error,
    baton_store::keys::Error,
    baton_ledger::body::Error,
    baton_ledger::seal::Refusal,
);
