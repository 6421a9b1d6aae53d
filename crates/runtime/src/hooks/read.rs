//! From the text of `hooks.json` to hooks: everything in it is known and fits, or nothing counts.

use std::collections::BTreeSet;

use baton_core::json;
use baton_core::nearest::nearest;
use baton_core::session::{FailurePolicy, Hook, ToolFilter};
use serde_json::{Map, Value};

use super::Flaw;
use super::place::{Step, locate};
use crate::limits::{
    HOOK_ATTEMPTS_MAX, HOOK_DELAY_MS_MAX, HOOK_NAME_CHARS_MAX, HOOK_TIMEOUT_MS, HOOK_TIMEOUT_MS_MAX,
    HOOK_TOOL_CHARS_MAX, HOOK_TOOLS_MAX, HOOK_WORD_CHARS_MAX, HOOK_WORDS_MAX, HOOKS_FILE_BYTES_MAX,
    HOOKS_MAX,
};

/// Most of a value that an error repeats, in characters.
const SHOWN_CHARS: usize = 60;

/// Reads the text of `hooks.json`.
pub fn parse(text: &[u8]) -> Result<Vec<Hook>, Flaw> {
    if text.len() as u64 > HOOKS_FILE_BYTES_MAX {
        let what = format!("expected at most {HOOKS_FILE_BYTES_MAX} bytes, got more");
        return Err(Flaw { line: 1, column: 1, field: String::new(), what });
    }
    let root = json::parse(text).map_err(|error| {
        let json::Error { what, line, column } = error;
        // Before the first character of a line is at it.
        Flaw { line: line.max(1), column: column.max(1), field: String::new(), what }
    })?;
    let file = Spot { text, steps: Vec::new(), value: &root };
    let members = file.members(&["hooks"])?;
    let list = file.needed(members, "hooks", "a list of hooks")?;
    let items = list.items(HOOKS_MAX)?;
    let mut names = BTreeSet::new();
    let mut hooks = Vec::new();
    for item in items {
        let hook = hook(&item)?;
        if !names.insert(hook.name.clone()) {
            let name = item.member("name");
            return Err(name
                .unwrap_or(item)
                .flaw(format!("expected a name of its own, got {:?} again", hook.name)));
        }
        hooks.push(hook);
    }
    Ok(hooks)
}

/// One of the hooks.
fn hook(at: &Spot<'_>) -> Result<Hook, Flaw> {
    let members = at.members(&["name", "command", "timeout_ms", "failure_policy", "tool_filter"])?;
    let timeout_ms = match at.member("timeout_ms") {
        Some(time) => time.number(1, HOOK_TIMEOUT_MS_MAX)?,
        None => HOOK_TIMEOUT_MS,
    };
    let failure_policy = at.member("failure_policy").map(|policy| failure_policy(&policy)).transpose()?;
    let tool_filter = at.member("tool_filter").map(|filter| tool_filter(&filter)).transpose()?;
    let name = at.needed(members, "name", "a name")?.text(HOOK_NAME_CHARS_MAX)?;
    let command = at.needed(members, "command", "a program and its arguments")?;
    let words = command.items(HOOK_WORDS_MAX)?;
    if words.is_empty() {
        return Err(command.flaw("expected a program and its arguments, got an empty list"));
    }
    let words: Result<Vec<String>, Flaw> = words
        .iter()
        .enumerate()
        .map(|(n, word)| if n == 0 { word.text(HOOK_WORD_CHARS_MAX) } else { word.argument() })
        .collect();
    Ok(Hook {
        name,
        command: words?,
        timeout_ms,
        failure_policy: failure_policy.unwrap_or(FailurePolicy::FailSession),
        tool_filter: tool_filter.unwrap_or(ToolFilter::AnyMutating),
    })
}

fn failure_policy(at: &Spot<'_>) -> Result<FailurePolicy, Flaw> {
    let words = ["fail_session", "warn_continue", "retry"];
    let is_retry = at.kind(&words)? == "retry";
    if !is_retry {
        let kind = at.kind(&words)?;
        at.members(&["type"])?;
        return Ok(if kind == "warn_continue" {
            FailurePolicy::WarnContinue
        } else {
            FailurePolicy::FailSession
        });
    }
    let members = at.members(&["type", "max_attempts", "delay_ms"])?;
    let attempts =
        at.needed(members, "max_attempts", "how often it is tried")?.number(1, HOOK_ATTEMPTS_MAX)?;
    let delay_ms = at.needed(members, "delay_ms", "how long is waited")?.number(0, HOOK_DELAY_MS_MAX)?;
    Ok(FailurePolicy::Retry { max_attempts: u32::try_from(attempts).unwrap_or(u32::MAX), delay_ms })
}

fn tool_filter(at: &Spot<'_>) -> Result<ToolFilter, Flaw> {
    if at.kind(&["any_mutating", "tool_names"])? == "any_mutating" {
        at.members(&["type"])?;
        return Ok(ToolFilter::AnyMutating);
    }
    let members = at.members(&["type", "names"])?;
    let names = at.needed(members, "names", "names of tools")?;
    let items = names.items(HOOK_TOOLS_MAX)?;
    if items.is_empty() {
        return Err(names.flaw("expected names of tools, got an empty list: it would never run"));
    }
    let names: Result<Vec<String>, Flaw> = items.iter().map(|item| item.text(HOOK_TOOL_CHARS_MAX)).collect();
    Ok(ToolFilter::ToolNames(names?))
}

/// A value, and the way to it.
#[derive(Debug, Clone)]
struct Spot<'a> {
    text: &'a [u8],
    steps: Vec<Step<'a>>,
    value: &'a Value,
}

impl<'a> Spot<'a> {
    fn step(&self, step: Step<'a>, value: &'a Value) -> Spot<'a> {
        let mut steps = self.steps.clone();
        steps.push(step);
        Spot { text: self.text, steps, value }
    }

    /// What is wrong here.
    fn flaw(&self, what: impl Into<String>) -> Flaw {
        let (line, column) = locate(self.text, &self.steps);
        let mut field = String::new();
        for step in &self.steps {
            match step {
                Step::Item(n) => field.push_str(&format!("[{n}]")),
                Step::Member(name) | Step::Name(name) => {
                    let name: String = name.chars().take(SHOWN_CHARS).collect();
                    field.push_str(if field.is_empty() { "" } else { "." });
                    field.push_str(&name);
                }
            }
        }
        Flaw { line, column, field, what: what.into() }
    }

    fn expected(&self, what: &str) -> Flaw {
        self.flaw(format!("expected {what}, got {}", shown(self.value)))
    }

    /// The members of an object, all of which are known.
    fn members(&self, known: &[&str]) -> Result<&'a Map<String, Value>, Flaw> {
        let Some(members) = self.value.as_object() else { return Err(self.expected("an object")) };
        match members.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(members),
            Some((name, value)) => {
                let near = nearest(name, known.iter().copied(), 1);
                let meant = match near.first() {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("known here: {}", known.join(", ")),
                };
                Err(self.step(Step::Name(name), value).flaw(format!("unknown name; {meant}")))
            }
        }
    }

    /// A member that need not be there.
    fn member(&self, name: &'static str) -> Option<Spot<'a>> {
        let value = self.value.as_object()?.get(name)?;
        Some(self.step(Step::Member(name), value))
    }

    /// A member that must be there.
    fn needed(
        &self,
        members: &'a Map<String, Value>,
        name: &'static str,
        what: &str,
    ) -> Result<Spot<'a>, Flaw> {
        match members.get(name) {
            Some(value) => Ok(self.step(Step::Member(name), value)),
            None => Err(self.flaw(format!("expected {name}, {what}, got none"))),
        }
    }

    fn items(&self, max: usize) -> Result<Vec<Spot<'a>>, Flaw> {
        let Some(items) = self.value.as_array() else { return Err(self.expected("a list")) };
        if items.len() > max {
            return Err(self.flaw(format!("expected at most {max} items, got {}", items.len())));
        }
        Ok(items.iter().enumerate().map(|(n, item)| self.step(Step::Item(n), item)).collect())
    }

    /// A text that says something, in one line.
    fn text(&self, chars_max: usize) -> Result<String, Flaw> {
        let Some(text) = self.value.as_str() else { return Err(self.expected("a text")) };
        let count = text.chars().count();
        if count > chars_max {
            return Err(self.flaw(format!("expected at most {chars_max} characters, got {count}")));
        }
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            return Err(self.expected("a text without control characters that is not blank"));
        }
        Ok(text.to_owned())
    }

    /// A word of a command line: anything that the system can pass on.
    fn argument(&self) -> Result<String, Flaw> {
        let Some(text) = self.value.as_str() else { return Err(self.expected("a text")) };
        let count = text.chars().count();
        if count > HOOK_WORD_CHARS_MAX {
            return Err(self.flaw(format!("expected at most {HOOK_WORD_CHARS_MAX} characters, got {count}")));
        }
        match text.contains('\0') {
            true => Err(self.expected("a text without NUL")),
            false => Ok(text.to_owned()),
        }
    }

    fn number(&self, min: u64, max: u64) -> Result<u64, Flaw> {
        let number = self.value.as_u64().filter(|number| (min..=max).contains(number));
        number.ok_or_else(|| self.expected(&format!("a whole number from {min} to {max}")))
    }

    /// The `type` of an object.
    fn kind(&self, words: &[&'static str]) -> Result<&'static str, Flaw> {
        let Some(members) = self.value.as_object() else {
            return Err(self.expected("an object with a type"));
        };
        let kind = self.needed(members, "type", &words.join(" or "))?;
        let found = words.iter().find(|word| kind.value.as_str() == Some(word));
        found.copied().ok_or_else(|| kind.expected(&words.join(" or ")))
    }
}

/// The beginning of a value.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    let start: String = text.chars().take(SHOWN_CHARS).collect();
    if start.len() < text.len() { format!("{start}…") } else { start }
}
