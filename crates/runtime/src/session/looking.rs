//! Looks at the work tree before and after a turn, where a hook wants to know whether an agent changed files without a word.
//!
//! A look takes its time, so a thread takes it and the session goes on: the prompt waits for the first one, the end of the turn for the second. A stop
//! and the end of the agent wait for neither.

use std::time::Instant;

use baton_core::session::{Input, StreamEnd, ToolFilter, ToolsBy};
use baton_store::AppendError;
use serde_json::{Value, json};

use super::actor::{Letter, Running};
use crate::limits::TREE_LOOK_TIME;
use crate::tools::tree_change::Look;

/// A look that is being taken.
#[derive(Debug)]
pub(super) struct Looking {
    number: u64,
    waits: Waits,
    /// When it has taken too long.
    pub(super) until: Instant,
}

/// What waits for a look.
#[derive(Debug)]
enum Waits {
    Prompt,
    /// The end of a turn, as the agent told it, and how the tree was before.
    End {
        before: Look,
        stop: String,
        usage: Option<Value>,
    },
}

impl Running {
    /// Sends the prompt, after a look at the work tree where somebody wants to know.
    pub(super) fn prompt_after_look(&mut self) -> Result<(), AppendError> {
        self.tree = None;
        let rules = self.machine.rules();
        let is_asked = rules.hooks.iter().any(|hook| hook.tool_filter == ToolFilter::AnyMutating);
        if is_asked && rules.tools_by == ToolsBy::Agent {
            return self.look(Waits::Prompt);
        }
        self.prompt();
        Ok(())
    }

    /// Ends the turn, after a look where no tool of it says that it changed files. What cannot be told is no change.
    pub(super) fn end_turn_after_look(
        &mut self,
        stop: String,
        usage: Option<Value>,
    ) -> Result<(), AppendError> {
        // It has ended, as far as it was asked to.
        self.cancelled = None;
        let is_known = self.machine.calls().any(|(_, run)| run.mutating);
        match self.tree.take().filter(|_| !is_known) {
            Some(before) => self.look(Waits::End { before, stop, usage }),
            None => self.end_turn(&stop, usage.as_ref(), false),
        }
    }

    /// Takes what was seen. A look that nothing waits for any more is of no interest.
    pub(super) fn looked(&mut self, number: u64, seen: Option<Look>) -> Result<(), AppendError> {
        match self.looking.take_if(|looking| looking.number == number) {
            Some(looking) => self.go_on(looking.waits, seen),
            None => Ok(()),
        }
    }

    /// Goes on without a look that takes too long.
    pub(super) fn give_up_look(&mut self) -> Result<(), AppendError> {
        match self.looking.take_if(|looking| looking.until <= Instant::now()) {
            Some(looking) => self.go_on(looking.waits, None),
            None => Ok(()),
        }
    }

    /// Something does not wait for a look: a turn that has ended ends now, a prompt that was not sent never is. Says whether there was one of those.
    pub(super) fn drop_look(&mut self) -> Result<bool, AppendError> {
        match self.looking.take().map(|looking| looking.waits) {
            Some(waits @ Waits::End { .. }) => self.go_on(waits, None).map(|()| false),
            Some(Waits::Prompt) => Ok(true),
            None => Ok(false),
        }
    }

    /// Whether the turn has ended, but for the look.
    pub(super) fn is_turn_ending(&self) -> bool {
        self.looking.as_ref().is_some_and(|looking| matches!(looking.waits, Waits::End { .. }))
    }

    fn look(&mut self, waits: Waits) -> Result<(), AppendError> {
        self.looks += 1;
        let (number, mailbox, tools) = (self.looks, self.mailbox.clone(), self.start.tools.clone());
        let work = move || {
            let seen = tools.and_then(|tools| tools.look());
            // Whoever has ended does not want to know.
            let _ = mailbox.send(Letter::Looked(number, seen));
        };
        if std::thread::Builder::new().name("look".into()).spawn(work).is_err() {
            return self.go_on(waits, None);
        }
        self.looking = Some(Looking { number, waits, until: Instant::now() + TREE_LOOK_TIME });
        Ok(())
    }

    fn go_on(&mut self, waits: Waits, seen: Option<Look>) -> Result<(), AppendError> {
        match waits {
            Waits::Prompt => {
                self.tree = seen;
                self.prompt();
            }
            Waits::End { before, stop, usage } => {
                let is_changed = seen.is_some_and(|after| after != before);
                self.end_turn(&stop, usage.as_ref(), is_changed)?;
            }
        }
        self.watch_silence();
        Ok(())
    }

    fn end_turn(
        &mut self,
        stop: &str,
        usage: Option<&Value>,
        is_tree_changed: bool,
    ) -> Result<(), AppendError> {
        self.end_stream("completed", &json!({"reason": stop, "usage": usage}))?;
        self.decide(Input::StreamEnded(StreamEnd::Completed { is_tree_changed }))
    }
}
