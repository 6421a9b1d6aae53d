//! The standard streams as messages of JSON-RPC: a thread reads them, a thread writes them. Everything that an editor sends is bounded, and what
//! is no message is answered here.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{oneshot, watch};

use crate::limits::{ACP_END_WAIT, ACP_LINE_BYTES_MAX, ACP_WAITING_MAX};

/// Errors of JSON-RPC, and the one that the protocol adds for what is not there.
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL: i64 = -32603;
pub(super) const NOT_FOUND: i64 = -32002;

/// A refusal: its code, its words, and what more there is to say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl Refusal {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Refusal { code, message: message.into(), data: None }
    }
}

/// What came from the editor.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    Answer {
        id: Value,
        answer: Value,
    },
    /// No message; this is said to it.
    Wrong(Value),
}

/// Where messages to the editor go, and who waits for its answers. Clones are the same wire.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    out: Sender<String>,
    gone: Arc<watch::Sender<bool>>,
    asked: Arc<Mutex<Asked>>,
}

#[derive(Debug, Default)]
struct Asked {
    last: u64,
    waiting: BTreeMap<u64, oneshot::Sender<Value>>,
}

/// Ends once everything that was to be said has been written, or nobody reads it.
#[derive(Debug)]
pub(super) struct Writing(JoinHandle<()>);

impl Writing {
    pub(super) fn finish(self) {
        let until = Instant::now() + ACP_END_WAIT;
        while !self.0.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Begins to read and to write.
pub(super) fn start() -> io::Result<(Wire, Receiver<Incoming>, Writing)> {
    let (take, incoming) = channel(ACP_WAITING_MAX);
    let (out, mut lines) = channel::<String>(ACP_WAITING_MAX);
    let gone = Arc::new(watch::Sender::new(false));
    let leave = gone.clone();
    let write = move || {
        let mut out = io::stdout().lock();
        while let Some(line) = lines.blocking_recv() {
            if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("acp-out".into()).spawn(write)?;
    let read = move || {
        read(&mut io::stdin().lock(), &take);
        leave.send_replace(true);
    };
    std::thread::Builder::new().name("acp-in".into()).spawn(read)?;
    Ok((Wire { out, gone, asked: Arc::default() }, incoming, Writing(thread)))
}

impl Wire {
    /// Says something. Where the editor does not read, this waits, until it has gone.
    pub(super) async fn say(&self, message: &Value) {
        let Err(TrySendError::Full(line)) = self.out.try_send(format!("{message}\n")) else { return };
        let mut gone = self.gone();
        tokio::select! {
            biased;
            () = told(&mut gone) => {}
            _ = self.out.send(line) => {}
        }
    }

    pub(super) async fn result(&self, id: &Value, result: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    pub(super) async fn refuse(&self, id: &Value, refusal: &Refusal) {
        self.say(&refused(id, refusal)).await;
    }

    pub(super) async fn notify(&self, method: &str, params: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Something new in a session.
    pub(super) async fn update(&self, session: &str, update: &Value) {
        self.notify("session/update", &json!({"sessionId": session, "update": update})).await;
    }

    /// Asks the editor something. The answer comes to whoever waits for it; its name is for taking the question back.
    pub(super) async fn ask(&self, method: &str, params: &Value) -> (u64, oneshot::Receiver<Value>) {
        let (send, answer) = oneshot::channel();
        let id = {
            let mut asked = self.asked();
            asked.last += 1;
            let id = asked.last;
            asked.waiting.insert(id, send);
            id
        };
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        (id, answer)
    }

    /// Takes a question back: nobody waits for its answer any more.
    pub(super) async fn take_back(&self, id: u64) {
        if self.asked().waiting.remove(&id).is_some() {
            self.notify("$/cancel_request", &json!({"requestId": id})).await;
        }
    }

    /// Brings an answer to whoever asked. One to nothing is passed over.
    pub(super) fn answered(&self, id: &Value, answer: Value) {
        let waiting = id.as_u64().and_then(|id| self.asked().waiting.remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }

    /// Told when the editor has closed its side.
    pub(super) fn gone(&self) -> watch::Receiver<bool> {
        self.gone.subscribe()
    }

    /// Says that the editor counts as gone: nothing waits for it any more.
    pub(super) fn leave(&self) {
        self.gone.send_replace(true);
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until something is so.
pub(super) async fn told(is_so: &mut watch::Receiver<bool>) {
    if is_so.wait_for(|is_so| *is_so).await.is_err() {
        // Nobody can say it any more.
        std::future::pending().await
    }
}

fn refused(id: &Value, refusal: &Refusal) -> Value {
    let mut error = json!({"code": refusal.code, "message": refusal.message});
    if let Some(data) = &refusal.data {
        error["data"] = data.clone();
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

/// Reads until the editor goes. A line that is longer than any message is passed over, and answered.
fn read(input: &mut impl BufRead, take: &Sender<Incoming>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        let max = ACP_LINE_BYTES_MAX as u64 + 1;
        let incoming = match input.by_ref().take(max).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.len() as u64 == max && !line.ends_with(b"\n") => {
                if input.skip_until(b'\n').is_err() {
                    return;
                }
                let message = format!("a message has at most {ACP_LINE_BYTES_MAX} bytes");
                Some(Incoming::Wrong(refused(&Value::Null, &Refusal::new(INVALID_REQUEST, message))))
            }
            Ok(_) => sort(&line),
        };
        if incoming.is_some_and(|incoming| take.blocking_send(incoming).is_err()) {
            return;
        }
    }
}

/// What a line is. One that is no JSON is passed over: an answer could be taken for another such line.
fn sort(line: &[u8]) -> Option<Incoming> {
    let message: Value = serde_json::from_slice(line).ok()?;
    let id = message.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    let wrong = |message: &str| {
        let id = id.clone().unwrap_or(Value::Null);
        Some(Incoming::Wrong(refused(&id, &Refusal::new(INVALID_REQUEST, message))))
    };
    let Value::Object(mut fields) = message else { return wrong("this is no message of JSON-RPC 2.0") };
    let params = fields.remove("params").unwrap_or(Value::Null);
    match (fields.remove("method"), id.clone(), fields.contains_key("id")) {
        (Some(Value::String(method)), Some(id), _) => Some(Incoming::Request { id, method, params }),
        (Some(Value::String(method)), None, false) => Some(Incoming::Notification { method, params }),
        (Some(Value::String(_)), None, true) => wrong("id: expected a text or a number"),
        (Some(_), ..) => wrong("method: expected a text"),
        (None, Some(id), _) if fields.contains_key("result") || fields.contains_key("error") => {
            Some(Incoming::Answer { id, answer: Value::Object(fields) })
        }
        // An error that nobody can be told of: an answer would come back as one.
        (None, None, _) if fields.contains_key("error") => None,
        (None, ..) => wrong("this is no message of JSON-RPC 2.0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Incoming> {
        let (take, mut taken) = channel(16);
        read(&mut text.as_bytes(), &take);
        drop(take);
        std::iter::from_fn(|| taken.try_recv().ok()).collect()
    }

    #[track_caller]
    fn wrong(text: &str, id: &Value, names: &str) {
        let [Incoming::Wrong(answer)] = &of(text)[..] else { panic!("{text} is taken") };
        assert_eq!((&answer["id"], &answer["error"]["code"]), (id, &json!(INVALID_REQUEST)), "{text}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(names), "{answer}");
    }

    #[test]
    fn messages_are_told_from_what_is_none() {
        assert_eq!(of("hello\n\n{\"a\":\n\u{0}\n"), []);
        let method = || "m".to_owned();
        let request = Incoming::Request { id: json!(1), method: method(), params: json!({"a": 1}) };
        assert_eq!(of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":1}}"), [request]);
        let told = Incoming::Notification { method: method(), params: Value::Null };
        assert_eq!(of("{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n"), [told]);
        let answer = Incoming::Answer { id: json!("x"), answer: json!({"id": "x", "result": 1}) };
        assert_eq!(of("{\"id\":\"x\",\"result\":1}"), [answer]);
        wrong("[1]", &Value::Null, "no message");
        wrong("{\"id\":7}", &json!(7), "no message");
        wrong("{\"id\":null,\"method\":\"m\"}", &Value::Null, "id: expected");
        wrong("{\"id\":7,\"method\":{}}", &json!(7), "method: expected");
        assert_eq!(of("{\"id\":null,\"error\":{}}"), [], "errors are not answered with errors");
    }

    #[test]
    fn a_line_that_is_too_long_is_answered_and_the_next_one_taken() {
        let text = format!("{}\n{{\"method\":\"m\"}}\n", "x".repeat(ACP_LINE_BYTES_MAX + 10));
        let all = of(&text);
        assert!(matches!(&all[..], [Incoming::Wrong(_), Incoming::Notification { .. }]), "{all:?}");
    }
}
