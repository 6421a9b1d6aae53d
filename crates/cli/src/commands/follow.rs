//! A session, live in the terminal: its words, its tools and hooks, what it asks for.

use std::collections::VecDeque;
use std::io::Read as _;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use baton_core::ids::SessionId;
use baton_core::session::{Answer, PermissionKind, StateKind};
use baton_runtime::session::{Ask, Channel, Item, Live, Next};
use serde_json::{Value, json};

use super::driven::{Driver, Order};
use crate::console::Stdin;
use crate::error::Stop;
use crate::limits::{ANSWER_BYTES_MAX, WORDS_WAITING_MAX};
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
    /// A program that drives the run.
    Program(Driver),
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
    /// What a person typed beside answers and is to be sent, once the session takes it; `None` where nothing is sent.
    words: Option<VecDeque<String>>,
    /// Whether the last thing on the screen is a text without its line end.
    is_in_text: bool,
    usage: Option<Value>,
}

impl Follower {
    pub(super) fn new(live: Live, answers: Answers, by: &str) -> Self {
        let (by, asked) = (by.to_owned(), Vec::new());
        Follower { live, answers, by, position: 0, asked, words: None, is_in_text: false, usage: None }
    }

    /// One that also sends what a person types while nothing is asked for.
    pub(super) fn talking(self) -> Self {
        Follower { words: Some(VecDeque::new()), ..self }
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

    /// Whether the program that drives this has ended its input.
    pub(super) fn is_left(&self) -> bool {
        matches!(&self.answers, Answers::Program(driver) if driver.has_left())
    }

    fn show(&mut self, ui: &mut Ui, item: &Item) -> Result<(), Stop> {
        let value = &*item.value;
        self.heed(value);
        if ui.json {
            return ui.object(&object(self.live.handle.id(), item));
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
            // Of what happened before somebody began to follow, most is answered.
            Some("permission_requested") if !self.is_open(&id()) => {}
            Some("permission_requested") => {
                // What was typed before the question is no answer to it.
                self.take_words();
                self.asked.push((id(), value["kind"] == "question"));
            }
            Some("permission_resolved") => self.asked.retain(|(asked, _)| *asked != id()),
            Some("metadata" | "completed") if !value["payload"]["usage"].is_null() => {
                self.usage = Some(value["payload"]["usage"].clone());
            }
            _ => {}
        }
    }

    /// Whether something that was asked for still waits for its answer.
    fn is_open(&self, id: &str) -> bool {
        self.live.handle.view().permissions.iter().any(|asked| asked.id == id)
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
                    _ if !self.is_open(value["id"].as_str().unwrap_or_default()) => {
                        format!("{line}  which is answered")
                    }
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
            Some("status") => {
                self.break_line(ui)?;
                let message = value["payload"]["message"].as_str().unwrap_or_default();
                let line = ui.paint.mark(Mark::Dim, &printable(message));
                ui.line(&line)
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

    /// Takes what was typed so far, to be sent or for nothing.
    fn take_words(&mut self) {
        let Answers::Person(lines) = &self.answers else { return };
        let typed = lines.try_iter().filter(|line| !line.is_empty());
        match &mut self.words {
            Some(words) => words.extend(typed.take(WORDS_WAITING_MAX.saturating_sub(words.len()))),
            None => typed.for_each(drop),
        }
    }

    /// Sends what was typed next, where the session is ready for it.
    fn talk(&mut self, ui: &Ui) {
        self.take_words();
        if self.live.handle.state() != StateKind::Ready {
            return;
        }
        let Some(line) = self.words.as_mut().and_then(VecDeque::pop_front) else { return };
        if let Err(why) = self.live.handle.ask(Ask::Send(line)) {
            ui.note(&format!("not sent: {why}"));
        }
    }

    /// Hands on the answers of a program, each to what it names.
    fn answer_as_told(&mut self, ui: &Ui) {
        let Answers::Program(driver) = &mut self.answers else { return };
        let orders: Vec<_> = std::iter::from_fn(|| driver.next()).collect();
        for order in orders {
            let (id, text) = match order {
                Ok(Order::Permit { id, answer }) => (id, answer),
                Ok(Order::Prompt { .. }) => {
                    ui.warn("a run has one prompt; the second one is not heeded");
                    continue;
                }
                Err(why) => {
                    ui.warn(&why);
                    continue;
                }
            };
            let Some(at) = self.asked.iter().position(|(asked, _)| *asked == id) else {
                ui.warn(&format!("{}: nothing of that name is asked for", printable(&id)));
                continue;
            };
            let answer = match (text.as_str(), self.asked[at].1) {
                ("deny", _) => Answer::Deny,
                (_, true) => Answer::Text(text),
                ("allow", false) => Answer::Allow,
                _ => {
                    ui.warn(&format!("{}: expected allow or deny", printable(&id)));
                    continue;
                }
            };
            self.asked.remove(at);
            // Somebody else may have been quicker.
            let _ = self.live.handle.ask(Ask::Permit { id, answer, by: self.by.clone() });
        }
    }

    /// Answers the first thing that is asked for.
    fn answer(&mut self, ui: &Ui) {
        if matches!(self.answers, Answers::Program(_)) {
            return self.answer_as_told(ui);
        }
        let Some((id, is_question)) = self.asked.first().cloned() else {
            if self.words.is_some() {
                self.talk(ui);
            }
            return;
        };
        let (answer, by) = match &self.answers {
            Answers::Others | Answers::Program(_) => return,
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

/// What a session said, as an object for programs.
pub(super) fn object(session: SessionId, item: &Item) -> Value {
    let mut object = json!({"v": 1, "channel": channel_name(item.channel)});
    if item.channel == Channel::Ended {
        object["type"] = channel_name(item.channel).into();
        object["sessionId"] = session.to_string().into();
    }
    if let (Some(object), Some(fields)) = (object.as_object_mut(), item.value.as_object()) {
        object.extend(fields.clone());
    }
    object
}

fn channel_name(channel: Channel) -> &'static str {
    match channel {
        Channel::State => "agent:state_event",
        Channel::Stream => "agent:stream_event",
        Channel::Ended => "session.ended",
    }
}
