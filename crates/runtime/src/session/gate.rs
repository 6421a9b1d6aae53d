//! What stands between a guarded session and its tools: asked before one runs, told what came of it.
//!
//! [`ToolGate`] is who decides; [`Gating`] is what the session's own thread keeps of calls that an agent runs by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_core::Digest;
use baton_core::ids::Token;
use baton_core::session::{Answer, Cause, Input, PermissionKind, RunStatus};
use baton_store::AppendError;
use serde_json::{Value, json};

use super::actor::{Letter, Running};
use crate::harness::{Failure, Progress, ToolSeen};
use crate::limits::{CALL_NAMES_MAX, TURN_TOOLS_MAX};

/// A tool that somebody wants to run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wish {
    /// What it is called.
    pub tool: String,
    /// What else it was called, and of which kind it is: a name alone is whatever an agent wants it to be.
    pub others: Vec<String>,
    pub input: Value,
    /// What else it was said to be given: some ask in other words than they announce.
    pub announced: Vec<Value>,
    /// What it would change, where that was said.
    pub diffs: Option<Value>,
    /// What for, as far as that was said.
    pub why: String,
}

impl Wish {
    /// Everything that is known of what it is given, as one object.
    pub fn whole(&self) -> Value {
        let announced = (!self.announced.is_empty()).then(|| Value::Array(self.announced.clone()));
        let more = [(ANNOUNCED, announced), (DIFFS, self.diffs.clone())];
        let more: Vec<_> = more.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        if more.is_empty() {
            return self.input.clone();
        }
        let mut members = match &self.input {
            Value::Object(members) if !more.iter().any(|(name, _)| members.contains_key(*name)) => {
                members.clone()
            }
            input => serde_json::Map::from_iter([("input".to_owned(), input.clone())]),
        };
        members.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Value::Object(members)
    }

    /// Keeps what it was said to be given before, unless what it is given now is the same, or more of it.
    fn announce(&mut self, before: Value) {
        let is_known =
            is_empty(&before) || grows_into(&before, &self.input) || self.announced.contains(&before);
        if !is_known {
            self.announced.push(before);
        }
    }

    /// Whether what is said of it later was known when it was let through: what it is given, member by member, and the files that it changes.
    pub fn covers(&self, later: &Wish) -> bool {
        let known = |given: &Value| {
            let mut all = self.announced.iter().chain([&self.input]);
            all.any(|before| match (before, given) {
                (Value::Object(before), Value::Object(given)) => {
                    given.iter().all(|(name, value)| before.get(name) == Some(value))
                }
                (before, given) => before == given,
            })
        };
        let mut given = later.announced.iter().chain([&later.input]);
        let whole = self.whole();
        let mut paths = later.diffs.iter().filter_map(Value::as_array).flatten();
        given.all(|given| is_empty(given) || known(given))
            && paths.all(|diff| diff["path"].as_str().is_none_or(|path| names(&whole, path)))
    }

    /// Takes in what else it was called.
    fn learn(&mut self, more: impl IntoIterator<Item = Option<String>>) {
        for name in more.into_iter().flatten() {
            if name != self.tool && !self.others.contains(&name) {
                self.others.push(name);
            }
        }
    }

    /// The same with what was said of the call before. Some ask for a tool without saying again what it is given.
    fn and(mut self, told: Wish) -> Wish {
        self.learn(std::iter::once(told.tool).chain(told.others).map(Some));
        if is_empty(&self.input) {
            (self.input, self.announced) = (told.input, told.announced);
        } else {
            told.announced.into_iter().chain([told.input]).for_each(|before| self.announce(before));
        }
        self.diffs = self.diffs.or(told.diffs);
        self
    }

    /// Whether both are about the same, by every name and by what it is given.
    fn is_same(&self, other: &Wish) -> bool {
        let names =
            |wish: &Wish| -> BTreeSet<String> { wish.others.iter().chain([&wish.tool]).cloned().collect() };
        self.whole() == other.whole() && names(self) == names(other)
    }
}

/// The members that what was announced and what would be changed stand in.
const ANNOUNCED: &str = "announced";
const DIFFS: &str = "diffs";

/// Whether one input is the beginning of another: some tell bit by bit what a tool is given.
fn grows_into(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.iter().all(|(name, value)| after.get(name).is_some_and(|after| grows_into(value, after)))
        }
        (Value::String(before), Value::String(after)) => after.starts_with(before.as_str()),
        (before, after) => before == after,
    }
}

/// Whether a text within a value names this file, be it from another directory.
fn names(value: &Value, path: &str) -> bool {
    let ends = |longer: &str, end: &str| {
        longer.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    match value {
        Value::String(text) => {
            !text.is_empty() && (ends(path, text.trim_start_matches("./")) || ends(text, path))
        }
        Value::Array(items) => items.iter().any(|item| names(item, path)),
        Value::Object(members) => members.values().any(|member| names(member, path)),
        _ => false,
    }
}

/// Whether an input says nothing.
fn is_empty(input: &Value) -> bool {
    input.is_null() || input.as_object().is_some_and(serde_json::Map::is_empty)
}

/// That a tool may run: the intent that it runs for.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry(pub Option<Token>);

/// What came of a tool that ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gave {
    pub output: String,
    /// The whole output, where it is longer and stored already.
    pub whole: Option<(Digest, u64)>,
    /// With which code its program ended, where Baton ran one.
    pub exit_code: Option<i32>,
    /// It ran, and has bad news.
    pub is_error: bool,
    /// Why it was not run to its end.
    pub failed: Option<String>,
}

/// Decides whether tools run.
///
/// What breaks if an implementation lies: a tool that `enter` lets through without having recorded that it begins is one that nobody can account for.
pub trait ToolGate: Send + Sync + std::fmt::Debug {
    /// Waits until the tool may run, or says why it may not. `stop` ends the waiting.
    fn enter(&self, wish: &Wish, stop: &AtomicBool) -> Result<Entry, String>;

    /// The same for a tool that the agent says it runs already: nobody is waited for. As long as it has not ended, one that needs a review may still be
    /// asked for, and is let be; agents say that a tool runs and ask for it then.
    fn observe(&self, wish: &Wish, has_ended: bool) -> Result<Option<Entry>, String>;

    /// Whether a call turns out to be worse than what was let through: then it is not what was let through.
    fn is_worse(&self, entered: &Wish, now: &Wish) -> bool {
        let _ = (entered, now);
        false
    }

    /// Takes note of a tool that the agent says failed, and that it never asked for.
    fn missed(&self, wish: &Wish) {
        let _ = wish;
    }

    /// Whether somebody waits for its answer: then whoever is waited for may be silent.
    fn is_waiting(&self) -> bool {
        false
    }

    /// Takes what came of it.
    fn leave(&self, entry: Entry, gave: &Gave);
}

/// Calls of an agent that runs its own tools, as far as the gate is concerned.
#[derive(Debug, Default)]
pub(super) struct Gating {
    /// What was told of a call before it was asked for or ran.
    told: BTreeMap<String, Wish>,
    /// Calls that were asked for.
    asked: BTreeSet<String>,
    /// Calls that were let through and have not ended, as what they were let through.
    entered: BTreeMap<String, (Wish, Vec<Entry>)>,
    /// The same of those that have ended.
    ended: BTreeMap<String, Wish>,
    /// What ends the waiting for an answer, by the permission that waits for it.
    waiting: BTreeMap<String, Arc<AtomicBool>>,
}

impl Gating {
    /// Keeps what is told of a call. Whatever it was called counts: nobody makes a call harmless by another name. What an agent says of a call that is known, in
    /// a sentence, is no name of it. False where it says more than anybody could keep.
    fn hear(&mut self, seen: &ToolSeen) -> bool {
        let is_known = self.told.contains_key(&seen.call_id);
        let tool = seen.tool.clone().or_else(|| seen.name.clone().filter(|_| !is_known));
        if tool.is_none() && !is_known {
            return true;
        }
        if !is_known && self.told.len() >= TURN_TOOLS_MAX {
            return false;
        }
        let told = self.told.entry(seen.call_id.clone()).or_default();
        let tool_again = tool.unwrap_or_else(|| told.tool.clone());
        if told.tool.is_empty() {
            told.tool.clone_from(&tool_again);
        }
        told.learn([Some(tool_again), seen.kind.clone()]);
        if let Some(input) = seen.arguments.as_ref().filter(|input| !is_empty(input)) {
            let before = std::mem::replace(&mut told.input, input.clone());
            told.announce(before);
        }
        if seen.diffs.is_some() {
            told.diffs.clone_from(&seen.diffs);
        }
        told.others.len() <= CALL_NAMES_MAX && told.announced.len() <= CALL_NAMES_MAX
    }
}

impl Running {
    /// Asks the gate about a permission, beside everything else.
    pub(super) fn ask_gate(&mut self, id: &str, call: Option<&str>, asked: Option<Wish>) {
        let Some(gate) = self.start.gate.clone() else { return };
        self.gating.asked.extend(call.map(str::to_owned));
        let told = call.and_then(|call| self.gating.told.get(call)).cloned();
        let wish = match (asked, told) {
            (Some(asked), Some(told)) => Some(asked.and(told)),
            (asked, told) => asked.or(told),
        };
        if let (Some(call), Some(wish)) = (call, &wish)
            && self.gating.entered.get(call).is_some_and(|(before, _)| before.is_same(wish))
        {
            // It was let through, as what it is, when the agent said that it runs.
            let (id, call, wish) = (id.to_owned(), call.to_owned(), Box::new(wish.clone()));
            self.own.push_back(Letter::Gated { id, call, wish, entered: Ok(Entry(None)) });
            return;
        }
        let wish = wish.map(|wish| match is_empty(&wish.input) && wish.diffs.is_none() {
            true => Wish { input: json!({"asked": wish.why}), ..wish },
            false => wish,
        });
        let Some(wish) = wish else {
            self.own.push_back(Letter::Gated {
                id: id.to_owned(),
                call: String::new(),
                wish: Box::default(),
                entered: Err("it does not say which tool it is about".to_owned()),
            });
            return;
        };
        let (mailbox, stop) = (self.mailbox.clone(), Arc::<AtomicBool>::default());
        self.gating.waiting.insert(id.to_owned(), stop.clone());
        let (id, call) = (id.to_owned(), call.unwrap_or_default().to_owned());
        let wish = Box::new(wish);
        let gated = (id.clone(), call.clone(), wish.clone());
        let work = move || {
            let entered = gate.enter(&wish, &stop);
            // Where nobody takes it any more, the tool does not run either: the session's end settles what was entered.
            let _ = mailbox.send(Letter::Gated { id, call, wish, entered });
        };
        if std::thread::Builder::new().name("gate".into()).spawn(work).is_err() {
            let (id, call, wish) = gated;
            self.own.push_back(Letter::Gated { id, call, wish, entered: Err("no thread for it".to_owned()) });
        }
    }

    /// Takes what the gate said of a permission.
    pub(super) fn gated(
        &mut self,
        id: String,
        call: String,
        wish: Wish,
        entered: Result<Entry, String>,
    ) -> Result<(), AppendError> {
        self.gating.waiting.remove(&id);
        let is_pending = self.machine.permissions().iter().any(|pending| pending.id == id);
        // While somebody looked at it, it may have become something else.
        let now = self.gating.told.get(&call).cloned();
        let is_worse = |gate: &Arc<dyn ToolGate>| now.as_ref().is_some_and(|now| gate.is_worse(&wish, now));
        let answer = match entered {
            Ok(entry) if is_pending && self.start.gate.as_ref().is_some_and(is_worse) => {
                let failed = Some("it is another tool than the one that was looked at".to_owned());
                self.leave_gate(entry, &Gave { failed, ..Gave::default() });
                Answer::Deny
            }
            Ok(entry) if is_pending => {
                self.gating.entered.entry(call).or_insert_with(|| (wish, Vec::new())).1.push(entry);
                Answer::Allow
            }
            Ok(entry) => {
                let failed = Some("nobody waited for it any more".to_owned());
                self.leave_gate(entry, &Gave { failed, ..Gave::default() });
                return Ok(());
            }
            Err(why) => {
                self.stream_event("status", &json!({"message": why}));
                Answer::Deny
            }
        };
        self.decide(Input::PermissionAnswered { id, answer, by: "guard".to_owned() })
    }

    /// Looks at a call that the agent runs by itself. One that runs and may not ends the agent.
    pub(super) fn watch_gate(&mut self, seen: &ToolSeen) {
        let Some(gate) = self.start.gate.clone() else { return };
        let call = &seen.call_id;
        if !self.gating.hear(seen) {
            return self.condemn_for("more tools than a turn may have, or one of them under too many names");
        }
        let Some(told) = self.gating.told.get(call).cloned() else { return };
        let before = self.gating.entered.get(call).map(|(before, _)| before);
        if before.or(self.gating.ended.get(call)).is_some_and(|before| gate.is_worse(before, &told)) {
            return self.condemn_for("another tool than it was let through for");
        }
        let runs = matches!(seen.progress, Some(Progress::Running | Progress::Succeeded | Progress::SaysNo));
        let has_ended = matches!(seen.progress, Some(Progress::Succeeded | Progress::SaysNo));
        if has_ended && self.gating.ended.contains_key(call) {
            // The same end, told once more.
            return;
        }
        // A call that runs once more after its end is another one, whatever its id.
        if runs {
            self.gating.ended.remove(call);
        }
        if runs && !self.gating.entered.contains_key(call) {
            // What was denied, or what could not even be asked for, is told to have failed, and did not run.
            if seen.progress == Some(Progress::SaysNo) {
                let run = self.machine.run_of(call).map(|run| run.status);
                let has_run = run.is_some_and(|status| !status.is_terminal() && status != RunStatus::Queued);
                if has_run && !self.gating.asked.contains(call) {
                    gate.missed(&told);
                }
                return;
            }
            match gate.observe(&told, has_ended) {
                Ok(Some(entry)) => drop(self.gating.entered.insert(call.clone(), (told, vec![entry]))),
                Ok(None) => return,
                Err(why) => return self.condemn_for(&format!("a tool that nobody had allowed: {why}")),
            }
        }
        if has_ended && let Some((wish, entries)) = self.gating.entered.remove(call) {
            self.gating.ended.insert(call.clone(), wish);
            let is_error = seen.progress == Some(Progress::SaysNo);
            let gave = Gave { output: seen.output.clone().unwrap_or_default(), is_error, ..Gave::default() };
            entries.into_iter().for_each(|entry| self.leave_gate(entry, &gave));
        }
    }

    /// Whether a permission is the gate's to answer.
    pub(super) fn is_gated(&self, id: &str) -> bool {
        let mut pending = self.machine.permissions().iter();
        self.start.gate.is_some() && pending.any(|asked| asked.id == id && asked.kind == PermissionKind::Tool)
    }

    /// A permission was answered, by whomever: nobody waits for the gate's answer any more.
    pub(super) fn resolve_gate(&mut self, id: &str) {
        if let Some(stop) = self.gating.waiting.remove(id) {
            stop.store(true, Ordering::Relaxed);
        }
    }

    fn condemn_for(&mut self, what: &str) {
        let message = format!("the agent ran {what}");
        self.blamed.get_or_insert_with(|| Failure::of(Cause::Protocol, message));
        self.condemn();
    }

    fn leave_gate(&self, entry: Entry, gave: &Gave) {
        if let Some(gate) = &self.start.gate {
            gate.leave(entry, gave);
        }
    }

    /// The turn is over: nobody waits for an answer any more, and what never ended did not end well.
    pub(super) fn settle_gate(&mut self) {
        self.gating.waiting.values().for_each(|stop| stop.store(true, Ordering::Relaxed));
        let gating = std::mem::take(&mut self.gating);
        for entry in gating.entered.into_values().flat_map(|(_, entries)| entries) {
            let failed = Some("the agent never said how it ended".to_owned());
            self.leave_gate(entry, &Gave { failed, ..Gave::default() });
        }
    }
}
