//! A session, live in the terminal: its words, its tools and hooks, what it asks for.

use std::io::Read as _;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use baton_core::session::{Answer, PermissionKind, SessionEndedData};
use baton_runtime::session::{Ask, Channel, Item, Live, Next};
use serde_json::{Value, json};

use crate::console::Stdin;
use crate::error::Stop;
use crate::limits::ANSWER_BYTES_MAX;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::text::{printable, printable_lines};

/// How often it is looked whether whoever follows is still there.
const LOOK: Duration = Duration::from_millis(100);

/// Who answers what the session asks for.
#[derive(Debug)]
pub(super) enum Answers {
    /// Everything is allowed, once each.
    Yes,
    /// Whoever sits at the terminal.
    Person(Receiver<String>),
    /// Nobody is there: no.
    Nobody,
    /// Somebody else.
    Others,
}

impl Answers {
    /// Reads answers, a line each, from a terminal.
    pub(super) fn of_person(mut stdin: Stdin) -> Answers {
        let (send, lines) = channel();
        // It ends with the process, or when nobody listens any more.
        let read = move || {
            let (mut line, mut byte) = (Vec::new(), [0]);
            while let Ok(1) = stdin.read(&mut byte) {
                if byte[0] != b'\n' {
                    if line.len() < ANSWER_BYTES_MAX {
                        line.push(byte[0]);
                    }
                    continue;
                }
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                line.clear();
                if send.send(text).is_err() {
                    return;
                }
            }
        };
        match std::thread::Builder::new().name("answers".into()).spawn(read) {
            Ok(_) => Answers::Person(lines),
            Err(_) => Answers::Nobody,
        }
    }
}

/// Follows one session.
#[derive(Debug)]
pub(super) struct Follower {
    live: Live,
    answers: Answers,
    by: String,
    position: u64,
    /// What is asked for and not answered yet, in order: its name, and whether it is a question.
    asked: Vec<(String, bool)>,
    /// Whether the last thing on the screen is a text without its line end.
    is_in_text: bool,
    usage: Option<Value>,
}

impl Follower {
    pub(super) fn new(live: Live, answers: Answers, by: &str) -> Self {
        let by = by.to_owned();
        Follower { live, answers, by, position: 0, asked: Vec::new(), is_in_text: false, usage: None }
    }

    /// Shows what came since the last step, and answers what is asked for; says whether there may be more.
    pub(super) fn step(&mut self, ui: &mut Ui) -> Result<bool, Stop> {
        match self.live.handle.feed().after(self.position, LOOK) {
            Next::Items(items) => {
                for item in &items {
                    self.position = item.at;
                    self.show(ui, item)?;
                }
                ui.flush()?;
            }
            Next::Gap(first) => {
                self.break_line(ui)?;
                ui.warn(&format!("{} were not shown: this terminal is too slow", first - 1 - self.position));
                self.position = first - 1;
                let pending = self.live.handle.view().permissions;
                self.asked = pending
                    .into_iter()
                    .map(|asked| (asked.id, asked.kind == PermissionKind::Question))
                    .collect();
            }
            Next::Nothing => {}
            Next::Over => {
                self.break_line(ui)?;
                return Ok(false);
            }
        }
        self.answer(ui);
        Ok(true)
    }

    /// What was used, where the agent said so.
    pub(super) fn usage(&self) -> Option<&Value> {
        self.usage.as_ref()
    }

    fn show(&mut self, ui: &mut Ui, item: &Item) -> Result<(), Stop> {
        let value = &*item.value;
        self.heed(value);
        if ui.json {
            let mut object = json!({"v": 1, "channel": channel_name(item.channel)});
            if let (Some(object), Some(fields)) = (object.as_object_mut(), value.as_object()) {
                object.extend(fields.clone());
            }
            return ui.object(&object);
        }
        match item.channel {
            Channel::State => self.show_state(ui, value),
            Channel::Stream => self.show_stream(ui, value),
            Channel::Ended => Ok(()),
        }
    }

    /// Takes note of what is asked for, and of what was used.
    fn heed(&mut self, value: &Value) {
        let id = || value["id"].as_str().unwrap_or_default().to_owned();
        match value["type"].as_str() {
            Some("permission_requested") => {
                if let Answers::Person(lines) = &self.answers {
                    // What was typed before the question is no answer to it.
                    lines.try_iter().for_each(drop);
                }
                self.asked.push((id(), value["kind"] == "question"));
            }
            Some("permission_resolved") => self.asked.retain(|(asked, _)| *asked != id()),
            Some("metadata" | "completed") if !value["payload"]["usage"].is_null() => {
                self.usage = Some(value["payload"]["usage"].clone());
            }
            _ => {}
        }
    }

    fn show_state(&mut self, ui: &mut Ui, value: &Value) -> Result<(), Stop> {
        let text = |key: &str| printable(value[key].as_str().unwrap_or_default());
        let line = match value["type"].as_str().unwrap_or_default() {
            "state_changed" => match value["to"].as_str().unwrap_or_default() {
                // Passed through within one decision.
                "processing_response" | "executing_tools" => return Ok(()),
                // For whoever watches; where it goes into a file, the ledger has it.
                _ if ui.width().is_none() => return Ok(()),
                to => format!("state  {}", printable(to)),
            },
            "tool_lifecycle" | "hook_lifecycle" => {
                let what = if value["hookName"].is_string() { "hook" } else { "tool" };
                let name = if what == "hook" { text("hookName") } else { text("toolName") };
                let (status, error) = (text("status"), text("error"));
                if status == "queued" {
                    return Ok(());
                }
                let line = format!("{what}  {name}  {status}");
                if error.is_empty() { line } else { format!("{line}: {error}") }
            }
            "session_error" | "session_warning" => format!("{}  {}", text("code"), text("message")),
            "permission_requested" => {
                let is_question = value["kind"] == "question";
                let what = if is_question { "asks" } else { "wants" };
                let line = format!("{what}  {}  ({})", text("title"), text("id"));
                match self.answers {
                    Answers::Person(_) if is_question => format!("{line}  type an answer:"),
                    Answers::Person(_) => format!("{line}  allow it? [y/n]"),
                    _ => line,
                }
            }
            "permission_resolved" => {
                let answer =
                    value["answer"].as_str().map_or_else(|| value["answer"].to_string(), str::to_owned);
                format!("answered  {}  by {}", printable(&answer), text("by"))
            }
            other => printable(other),
        };
        self.break_line(ui)?;
        let line = ui.paint.mark(Mark::Dim, &line);
        ui.line(&line)
    }

    fn show_stream(&mut self, ui: &mut Ui, value: &Value) -> Result<(), Stop> {
        let text = value["payload"]["text"].as_str().unwrap_or_default();
        match value["type"].as_str() {
            Some("text_delta") => {
                self.is_in_text = !text.ends_with('\n');
                ui.raw(&printable_lines(text))
            }
            Some("completed" | "error") => self.break_line(ui),
            _ => Ok(()),
        }
    }

    fn break_line(&mut self, ui: &mut Ui) -> Result<(), Stop> {
        if std::mem::take(&mut self.is_in_text) && !ui.json {
            return ui.line("");
        }
        Ok(())
    }

    /// Answers the first thing that is asked for.
    fn answer(&mut self, ui: &Ui) {
        let Some((id, is_question)) = self.asked.first().cloned() else { return };
        let (answer, by) = match &self.answers {
            Answers::Others => return,
            Answers::Yes if is_question => (Answer::Deny, "nobody"),
            Answers::Yes => (Answer::Allow, self.by.as_str()),
            Answers::Nobody => (Answer::Deny, "nobody"),
            Answers::Person(lines) => match lines.try_recv() {
                Ok(line) if is_question => (Answer::Text(line), self.by.as_str()),
                Ok(line) => match line.to_ascii_lowercase().as_str() {
                    "y" | "yes" | "allow" => (Answer::Allow, self.by.as_str()),
                    "n" | "no" | "deny" => (Answer::Deny, self.by.as_str()),
                    _ => return ui.note("type y to allow it, or n to deny it"),
                },
                Err(std::sync::mpsc::TryRecvError::Empty) => return,
                Err(std::sync::mpsc::TryRecvError::Disconnected) => (Answer::Deny, "nobody"),
            },
        };
        self.asked.remove(0);
        // Somebody else may have been quicker.
        let _ = self.live.handle.ask(Ask::Permit { id, answer, by: by.to_owned() });
    }
}

fn channel_name(channel: Channel) -> &'static str {
    match channel {
        Channel::State => "agent:state_event",
        Channel::Stream => "agent:stream_event",
        Channel::Ended => "session.ended",
    }
}

/// How a session ended, for people: what, who, and what it wrote last.
pub(super) fn ending_lines(data: &SessionEndedData) -> Vec<String> {
    let mut lines = vec![match &data.message {
        Some(message) => printable(message),
        None => format!("{} by {}", data.reason, data.terminated_by),
    }];
    let mut facts = Vec::new();
    facts.extend(data.exit_code.map(|code| format!("exit code {code}")));
    facts.extend(data.signal.as_ref().map(|signal| format!("signal {} ({})", signal.number, signal.name)));
    facts.extend(data.cause.map(|cause| format!("cause {cause}")));
    facts.extend(data.last_tool.as_ref().map(|tool| format!("last tool {}", printable(tool))));
    facts.extend(data.duration_ms.map(|ms| format!("after {}.{:03} s", ms / 1000, ms % 1000)));
    if !facts.is_empty() {
        lines.push(facts.join(", "));
    }
    if let Some(stderr) = &data.stderr {
        let total = stderr.total_lines.unwrap_or(0);
        lines.push(format!("standard error, {total} lines:"));
        let shown = |part: &Option<String>| {
            let text = part.clone().unwrap_or_default();
            text.lines().map(|line| format!("  {}", printable(line))).collect::<Vec<_>>()
        };
        lines.extend(shown(&stderr.head));
        if stderr.truncated {
            lines.push("  …".to_owned());
        }
        lines.extend(shown(&stderr.tail));
    }
    lines
}
