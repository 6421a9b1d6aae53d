//! A run that a program drives: what it wants stands on standard input, one JSON object on each line, and its end is the end of the run.

use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::console::Stdin;
use crate::error::{CliError, Code};
use crate::limits::{DRIVEN_LINE_BYTES_MAX, WORDS_WAITING_MAX};

/// What a program says.
#[derive(Debug, PartialEq)]
pub(super) enum Order {
    /// What is to be done, and what is kept with its task.
    Prompt { text: String, metadata: Map<String, Value> },
    /// An answer to what the agent asks for.
    Permit { id: String, answer: String },
}

/// The program that drives a run.
#[derive(Debug)]
pub(super) struct Driver {
    lines: Receiver<Result<Order, String>>,
    has_left: bool,
}

impl Driver {
    /// Begins to read. The thread ends with the input, with whoever handed the command over, or when nobody listens any more.
    pub(super) fn start(stdin: Stdin) -> Result<Driver, CliError> {
        let (send, lines) = sync_channel(WORDS_WAITING_MAX);
        let read = move || {
            let mut input = BufReader::new(stdin);
            let (mut line, mut count) = (Vec::new(), 0_u64);
            loop {
                line.clear();
                count += 1;
                let max = DRIVEN_LINE_BYTES_MAX as u64 + 1;
                let order = match input.by_ref().take(max).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) if line.len() as u64 == max && !line.ends_with(b"\n") => {
                        if input.skip_until(b'\n').is_err() {
                            return;
                        }
                        Err(format!("it has more than {DRIVEN_LINE_BYTES_MAX} bytes"))
                    }
                    Ok(_) if line.iter().all(u8::is_ascii_whitespace) => continue,
                    Ok(_) => order(&line),
                };
                if send.send(order.map_err(|why| format!("standard input, line {count}: {why}"))).is_err() {
                    return;
                }
            }
        };
        let spawned = std::thread::Builder::new().name("driver".into()).spawn(read);
        spawned.map_err(|error| {
            CliError::new(Code::Io, "standard input cannot be read").cause(error.to_string())
        })?;
        Ok(Driver { lines, has_left: false })
    }

    /// The first line, which is a prompt.
    pub(super) fn prompt(&mut self) -> Result<(String, Map<String, Value>), CliError> {
        let hint = "echo '{\"prompt\":\"what is to be done\"}' | baton run --driven --json";
        match self.lines.recv() {
            Ok(Ok(Order::Prompt { text, metadata })) => Ok((text, metadata)),
            Ok(Ok(Order::Permit { .. })) => {
                Err(CliError::new(Code::InputForm, "the first line is no prompt, but an answer").hint(hint))
            }
            Ok(Err(why)) => Err(CliError::new(Code::InputForm, why).hint(hint)),
            Err(_) => {
                Err(CliError::new(Code::InputForm, "standard input ended before there was a prompt")
                    .hint(hint))
            }
        }
    }

    /// What was said since; `Err` is a line that says nothing.
    pub(super) fn next(&mut self) -> Option<Result<Order, String>> {
        match self.lines.try_recv() {
            Ok(order) => Some(order),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.has_left = true;
                None
            }
        }
    }

    /// Waits for as long at most, and says whether it has left. Nothing is asked yet: what it says is for nothing.
    pub(super) fn leaves_within(&mut self, time: Duration) -> bool {
        if let Err(RecvTimeoutError::Disconnected) = self.lines.recv_timeout(time) {
            self.has_left = true;
        }
        self.has_left
    }

    /// Whether its input has ended.
    pub(super) fn has_left(&self) -> bool {
        self.has_left
    }
}

/// Reads a line.
fn order(line: &[u8]) -> Result<Order, String> {
    let form = "expected {\"prompt\": TEXT} or {\"permit\": ID, \"answer\": TEXT}";
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(line) else { return Err(form.to_owned()) };
    let mut text = |key: &str| match fields.remove(key) {
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("{key}: expected a text, got {}", kind(&other))),
        None => Ok(None),
    };
    let order = match (text("prompt")?, text("permit")?) {
        (Some(text), None) => {
            let metadata = match fields.remove("metadata") {
                None => Map::new(),
                Some(Value::Object(metadata)) => metadata,
                Some(other) => return Err(format!("metadata: expected an object, got {}", kind(&other))),
            };
            Order::Prompt { text, metadata }
        }
        (None, Some(id)) => {
            let answer = text("answer")?.ok_or("answer: expected allow, deny or a text, got nothing")?;
            Order::Permit { id, answer }
        }
        _ => return Err(form.to_owned()),
    };
    match fields.keys().next() {
        Some(unknown) => {
            Err(format!("{}: there is no such field", unknown.chars().take(80).collect::<String>()))
        }
        None => Ok(order),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Result<Order, &str>) {
        assert_eq!(order(line.as_bytes()), expected.map_err(str::to_owned), "{line}");
    }

    #[test]
    fn lines_are_read_strictly_and_refusals_name_the_field() {
        let prompt = |metadata| Order::Prompt { text: "do it".to_owned(), metadata };
        check(r#"{"prompt":"do it"}"#, Ok(prompt(Map::new())));
        let mut metadata = Map::new();
        metadata.insert("a".to_owned(), 1.into());
        check(r#"{"prompt":"do it","metadata":{"a":1}}"#, Ok(prompt(metadata)));
        let permit = Order::Permit { id: "0".to_owned(), answer: "allow".to_owned() };
        check(r#"{"permit":"0","answer":"allow"}"#, Ok(permit));
        let form = "expected {\"prompt\": TEXT} or {\"permit\": ID, \"answer\": TEXT}";
        for line in ["", "hello", "[]", "{}", r#"{"prompt":"a","permit":"b","answer":"c"}"#] {
            check(line, Err(form));
        }
        check(r#"{"prompt":1}"#, Err("prompt: expected a text, got a number"));
        check(r#"{"prompt":"a","metadata":[]}"#, Err("metadata: expected an object, got a list"));
        check(r#"{"permit":"0"}"#, Err("answer: expected allow, deny or a text, got nothing"));
        check(r#"{"prompt":"a","more":1}"#, Err("more: there is no such field"));
    }
}
