//! In which form a command prints, and what its lines mean.

use serde_json::Value;

use super::{claude::Claude, codex::Codex, gemini::Gemini};
use crate::harness::bounds::{beginning, is_simple};
use crate::harness::{Failure, Progress, Told, ToolSeen};

/// The form of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// `claude -p --output-format stream-json --verbose`, and what has taken it over, such as Qwen Code.
    Claude,
    /// `codex exec --json`.
    Codex,
    /// `gemini -p … --output-format stream-json`.
    Gemini,
    /// Text.
    Plain,
}

impl Profile {
    pub(super) fn reader(self) -> Box<dyn Reader> {
        match self {
            Profile::Claude => Box::new(Claude::default()),
            Profile::Codex => Box::new(Codex),
            Profile::Gemini => Box::new(Gemini),
            Profile::Plain => Box::new(Plain),
        }
    }
}

/// How a turn ended, as the command itself says.
#[derive(Debug)]
pub(super) enum Outcome {
    Ended { stop: String, usage: Option<Value> },
    Failed(Failure),
}

/// What a line means.
#[derive(Debug)]
pub(super) enum Read {
    Told(Told),
    Ended(Outcome),
}

/// Reads the lines of one turn.
pub(super) trait Reader: Send {
    /// What a line means; nothing where it means nothing.
    fn line(&mut self, line: &[u8]) -> Vec<Read>;

    /// What it means that a command ended well and said nothing of its turn: that something is missing.
    fn silent_outcome(&self) -> Option<Outcome> {
        None
    }
}

/// Text, line by line; the end of the process says all about the turn.
#[derive(Debug)]
struct Plain;

impl Reader for Plain {
    fn line(&mut self, line: &[u8]) -> Vec<Read> {
        vec![text(format!("{}\n", String::from_utf8_lossy(line)))]
    }

    fn silent_outcome(&self) -> Option<Outcome> {
        Some(Outcome::Ended { stop: "end_turn".to_owned(), usage: None })
    }
}

/// A line that should be an object with a type; else it is told as what it is.
pub(super) fn object(line: &[u8]) -> Result<Value, Vec<Read>> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Err(Vec::new());
    }
    match serde_json::from_slice::<Value>(if is_simple(line) { line } else { b"" }) {
        Ok(value) if value["type"].is_string() => Ok(value),
        _ => Err(vec![unknown("a line that is no message", line)]),
    }
}

pub(super) fn unknown(what: &'static str, line: &[u8]) -> Read {
    Read::Told(Told::Unknown { what, raw: beginning(line) })
}

pub(super) fn text(text: impl Into<String>) -> Read {
    Read::Told(Told::Text { text: text.into(), is_thought: false })
}

pub(super) fn thought(text: impl Into<String>) -> Read {
    Read::Told(Told::Text { text: text.into(), is_thought: true })
}

pub(super) fn tool(seen: ToolSeen) -> Read {
    Read::Told(Told::Tool(seen))
}

/// Text of a field, or nothing.
pub(super) fn field<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// What a tool gave, as text, in whichever form.
pub(super) fn output(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) if parts.iter().any(|part| part["text"].is_string()) => {
            Some(parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"))
        }
        other => Some(other.to_string()),
    }
}

pub(super) fn progress(is_good: bool) -> Option<Progress> {
    Some(if is_good { Progress::Succeeded } else { Progress::SaysNo })
}

/// Whether a tool changes something, by the names that these commands give their own.
pub(super) fn is_mutating(name: &str) -> Option<bool> {
    let lower = name.to_ascii_lowercase();
    match lower.as_str() {
        "read"
        | "glob"
        | "grep"
        | "ls"
        | "webfetch"
        | "websearch"
        | "todowrite"
        | "read_file"
        | "read_many_files"
        | "list_directory"
        | "search_file_content"
        | "web_fetch"
        | "google_web_search" => Some(false),
        "write" | "edit" | "multiedit" | "notebookedit" | "bash" | "replace" | "run_shell_command" => {
            Some(true)
        }
        _ => baton_core::session::is_mutating(&lower),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What lines mean, in a few words each.
    pub(crate) fn shown(profile: Profile, lines: &[&str]) -> Vec<String> {
        let mut reader = profile.reader();
        let mut all = Vec::new();
        for line in lines {
            for read in reader.line(line.as_bytes()) {
                all.push(match read {
                    Read::Told(Told::Text { text, is_thought: false }) => format!("text {text}"),
                    Read::Told(Told::Text { text, .. }) => format!("thought {text}"),
                    Read::Told(Told::Tool(seen)) => format!(
                        "tool {} {} {:?} {}",
                        seen.call_id,
                        seen.name.unwrap_or_default(),
                        seen.progress.unwrap(),
                        seen.output.unwrap_or_default()
                    ),
                    Read::Told(Told::Usage(usage)) => format!("usage {usage}"),
                    Read::Told(Told::Unknown { what, .. }) => format!("unknown {what}"),
                    Read::Told(other) => panic!("{other:?}"),
                    Read::Ended(Outcome::Ended { stop, .. }) => format!("ended {stop}"),
                    Read::Ended(Outcome::Failed(failure)) => format!("failed {}", failure.message),
                });
            }
        }
        all
    }

    #[test]
    fn what_no_profile_knows_costs_no_turn() {
        for profile in [Profile::Claude, Profile::Codex, Profile::Gemini] {
            let lines = ["hello", "", "{\"a\":1}", "{\"type\":\"hologram\"}", "{\"type\":", "\u{0}"];
            let shown = shown(profile, &lines);
            assert_eq!(shown.len(), 5, "{profile:?}: {shown:?}");
            assert!(shown.iter().all(|line| line.starts_with("unknown")), "{shown:?}");
        }
    }

    #[test]
    fn text_is_text() {
        assert_eq!(shown(Profile::Plain, &["one", ""]), ["text one\n", "text \n"]);
    }
}
