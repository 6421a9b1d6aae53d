//! The standard streams as messages: a thread reads them, a thread writes them. What is no message is answered here, whatever else goes on.

use std::convert::Infallible;
use std::future::Future;
use std::io::{self, BufRead, Read as _, Write as _};
use std::sync::mpsc;
use std::thread::JoinHandle;

use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;

use crate::limits::{MCP_LINE_BYTES_MAX, MCP_WAITING_MAX};

/// Messages to and from one client.
#[derive(Debug)]
pub(super) struct Messages {
    incoming: Receiver<RxJsonRpcMessage<RoleServer>>,
    outgoing: Outgoing,
}

/// Takes lines to be written; nothing is the end.
type Outgoing = mpsc::Sender<Option<String>>;

/// Ends once everything that was to be said has been written.
#[derive(Debug)]
pub(super) struct Writing {
    outgoing: Outgoing,
    thread: JoinHandle<()>,
}

impl Writing {
    pub(super) fn finish(self) {
        // Where it has ended already, nobody reads.
        let _ = self.outgoing.send(None);
        let _ = self.thread.join();
    }
}

impl Messages {
    /// Begins to read and to write. `gone` is told when the client closes its side.
    pub(super) fn start(gone: watch::Sender<bool>) -> io::Result<(Messages, Writing)> {
        let (take, incoming) = channel(MCP_WAITING_MAX);
        let (outgoing, lines) = mpsc::channel::<Option<String>>();
        let write = move || {
            let mut out = io::stdout().lock();
            while let Ok(Some(line)) = lines.recv() {
                if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("mcp-out".into()).spawn(write)?;
        let (answers, writing) = (outgoing.clone(), Writing { outgoing: outgoing.clone(), thread });
        let read = move || {
            read(&mut io::stdin().lock(), &take, &answers);
            gone.send_replace(true);
        };
        std::thread::Builder::new().name("mcp-in".into()).spawn(read)?;
        Ok((Messages { incoming, outgoing }, writing))
    }
}

/// Reads until the client goes. A line that is longer than any message is passed over, and answered.
fn read(input: &mut impl BufRead, take: &Sender<RxJsonRpcMessage<RoleServer>>, answers: &Outgoing) {
    let mut line = Vec::new();
    loop {
        line.clear();
        let max = MCP_LINE_BYTES_MAX as u64 + 1;
        match input.by_ref().take(max).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.len() as u64 == max && !line.ends_with(b"\n") => {
                if input.skip_until(b'\n').is_err() {
                    return;
                }
                let message = format!("a message has at most {MCP_LINE_BYTES_MAX} bytes");
                let _ = answers.send(Some(refusal(&Value::Null, -32600, &message)));
                continue;
            }
            Ok(_) => {}
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(message) => {
                if take.blocking_send(message).is_err() {
                    return;
                }
            }
            Err(_) => {
                if let Some(answer) = answer_to(&line) {
                    let _ = answers.send(Some(answer));
                }
            }
        }
    }
}

/// What is said to a line that is no message. One that is no JSON is passed over, as others do: an answer could be taken for another such line.
fn answer_to(line: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let id = value.get("id").filter(|id| id.is_string() || id.is_number()).unwrap_or(&Value::Null);
    match value.get("method").and_then(Value::as_str) {
        Some(method) if !id.is_null() => {
            let message = format!("{method}: the parameters are not what this method takes");
            Some(refusal(id, -32602, &message))
        }
        // A notification is not answered.
        Some(_) => None,
        None => Some(refusal(id, -32600, "this is no message of JSON-RPC 2.0")),
    }
}

fn refusal(id: &Value, code: i64, message: &str) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

impl Transport<RoleServer> for Messages {
    type Error = Infallible;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        if let Ok(text) = serde_json::to_string(&item) {
            // Whoever does not read any more is gone.
            let _ = self.outgoing.send(Some(text + "\n"));
        }
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.incoming.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is taken, and what is answered at once.
    fn of(text: &str) -> (usize, Vec<Value>) {
        let (take, mut taken) = channel(16);
        let (answers, answered) = mpsc::channel();
        read(&mut text.as_bytes(), &take, &answers);
        drop((take, answers));
        let count = std::iter::from_fn(|| taken.try_recv().ok()).count();
        (count, answered.iter().flatten().map(|line| serde_json::from_str(&line).unwrap()).collect())
    }

    #[test]
    fn what_is_no_message_is_answered_and_what_is_no_json_is_passed_over() {
        let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        assert_eq!(of(ping).0, 1);
        assert_eq!(of("hello\n\n  \n{\"a\":\n"), (0, Vec::new()));
        let (taken, answered) =
            of(&format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":[]}}\n{ping}"));
        assert_eq!((taken, answered.len()), (1, 1));
        assert_eq!((&answered[0]["id"], &answered[0]["error"]["code"]), (&json!(7), &json!(-32602)));
        let (_, answered) = of("{\"id\":\"x\"}\n[1]\n");
        assert_eq!(
            answered.iter().map(|answer| answer["id"].clone()).collect::<Vec<_>>(),
            [json!("x"), Value::Null]
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_answered_and_the_next_one_taken() {
        let text = format!(
            "{}\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}\n",
            "x".repeat(MCP_LINE_BYTES_MAX + 10)
        );
        let (taken, answered) = of(&text);
        assert_eq!((taken, &answered[0]["error"]["code"]), (1, &json!(-32600)));
    }
}
