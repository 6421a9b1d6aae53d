//! The Model Context Protocol over streamable HTTP: the same tools as those of `baton mcp`, for whoever has a token.
//!
//! Each conversation has a tool server of its own in this process, which the official library runs; here are its messages and who they belong to. A call of a
//! tool may wait for a person, so it is answered as a stream where the client takes one, with a word every now and then.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use baton_core::ids::SessionId;
use baton_runtime::session::Broker;
use baton_store::clock;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf};
use tokio::sync::{mpsc, oneshot};

use crate::access::{Needs, Who};
use crate::app::Server;
use crate::asked::{Answer, Asked, empty, json as answer};
use crate::limits::{HEARTBEAT, MCP_CALL_WAIT, MCP_CONVERSATIONS_MAX, MCP_IDLE, MCP_PENDING_MAX};
use crate::problem::Problem;
use crate::routes::{Gives, Route, Takes, Verb, handler};
use crate::schema::Shape;
use crate::stream::sse;

pub const ROUTES: &[Route] = &[
    Route {
        verb: Verb::Post,
        path: "/v1/mcp",
        name: "speakMcp",
        summary: "One message of the Model Context Protocol. `initialize` begins a conversation, which Mcp-Session-Id names from then on.",
        needs: Needs::Tools,
        query: &[],
        takes: Takes::Json(Shape::JsonRpc),
        gives: Gives::Json(StatusCode::OK, Shape::JsonRpc),
        handler: handler!(speak),
    },
    Route {
        verb: Verb::Delete,
        path: "/v1/mcp",
        name: "endMcp",
        summary: "Ends a conversation of the Model Context Protocol.",
        needs: Needs::Tools,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Empty,
        handler: handler!(end),
    },
];

const SESSION: &str = "mcp-session-id";

/// All conversations.
#[derive(Debug, Default)]
pub struct Conversations(Mutex<BTreeMap<String, Arc<Conversation>>>);

/// One conversation.
#[derive(Debug)]
struct Conversation {
    /// The token that began it: nobody else's.
    token: String,
    /// The session whose token that is: it ends with it.
    session: Option<SessionId>,
    /// Lines for the tool server. It ends with the last of these.
    lines: mpsc::Sender<String>,
    waiting: Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>>,
    used: Mutex<Instant>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Conversations {
    fn get(&self, headers: &HeaderMap, who: &Who) -> Result<Arc<Conversation>, Problem> {
        let id = headers.get(SESSION).and_then(|id| id.to_str().ok());
        let id = id.ok_or_else(|| Problem::form("Mcp-Session-Id is missing: begin with initialize"))?;
        let found = lock(&self.0).get(id).cloned().filter(|found| found.token == who.token);
        let found =
            found.ok_or_else(|| Problem::no_route("there is no such conversation: begin a new one"))?;
        *lock(&found.used) = Instant::now();
        Ok(found)
    }

    /// Adds one. Those that nobody can speak in any more make room.
    fn add(&self, conversation: Arc<Conversation>, broker: &Broker) -> Result<String, Problem> {
        let mut all = lock(&self.0);
        all.retain(|_, known| {
            let is_over = known.session.is_some_and(|session| !broker.has_pass(session));
            !is_over && lock(&known.used).elapsed() < MCP_IDLE
        });
        if all.len() >= MCP_CONVERSATIONS_MAX {
            return Err(Problem::overloaded(format!(
                "{MCP_CONVERSATIONS_MAX} conversations are going on already"
            )));
        }
        let id = format!("mcp_{}", clock::new_uuid());
        all.insert(id.clone(), conversation);
        Ok(id)
    }
}

async fn speak(mut asked: Asked) -> Answer {
    let who = asked.who.clone().ok_or_else(|| Problem::token("a token is needed"))?;
    let message = asked.json.take();
    if !message.is_object() {
        return Err(Problem::form("the body: expected one JSON-RPC message"));
    }
    let (id, method) = (message.get("id").cloned(), message.get("method").and_then(Value::as_str));
    let (conversation, began) = match method {
        Some("initialize") => {
            let of = who.clone();
            let conversation = asked.apart(move |server| begin(server, &of)).await?;
            let id = asked.server.mcp.add(conversation.clone(), &asked.server.house.broker)?;
            (conversation, Some(id))
        }
        _ => (asked.server.mcp.get(&asked.headers, &who)?, None),
    };
    let (Some(id), Some(method)) = (id, method) else {
        conversation.say(&message).await?;
        return Ok(empty(StatusCode::ACCEPTED));
    };
    let answered = conversation.ask(&id, &message).await?;
    let mut response = match method == "tools/call" && takes_stream(&asked.headers) {
        true => stream(answered),
        false => {
            let late =
                |_| Problem::new(StatusCode::GATEWAY_TIMEOUT, "W015", "the tool server does not answer");
            let value = tokio::time::timeout(MCP_CALL_WAIT, answered).await.map_err(late)?;
            answer(StatusCode::OK, &value.map_err(|_| Problem::ended("the conversation has ended"))?)
        }
    };
    if let Some(Ok(id)) = began.map(|id| HeaderValue::from_str(&id)) {
        response.headers_mut().insert(SESSION, id);
    }
    Ok(response)
}

fn takes_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|line| line.split(',')).any(|kind| kind.trim().starts_with("text/event-stream"))
}

/// An answer that may take long, with a word now and then so that nobody on the way gives up.
fn stream(answered: oneshot::Receiver<Value>) -> Response {
    let until = tokio::time::Instant::now() + MCP_CALL_WAIT;
    sse::response(futures::stream::unfold(Some(answered), move |waiting| async move {
        let mut answered = waiting?;
        let mut out = String::new();
        tokio::select! {
            value = &mut answered => {
                sse::event(&mut out, "message", None, &value.ok()?.to_string());
                Some((Ok(Bytes::from(out)), None))
            }
            () = tokio::time::sleep(HEARTBEAT) => {
                let goes_on = tokio::time::Instant::now() < until;
                Some((Ok(Bytes::from_static(sse::ALIVE.as_bytes())), goes_on.then_some(answered)))
            }
        }
    }))
}

async fn end(asked: Asked) -> Answer {
    let who = asked.who.clone().ok_or_else(|| Problem::token("a token is needed"))?;
    asked.server.mcp.get(&asked.headers, &who)?;
    let id = asked.headers.get(SESSION).and_then(|id| id.to_str().ok()).unwrap_or_default();
    lock(&asked.server.mcp.0).remove(id);
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Starts a tool server for one conversation.
fn begin(server: &Server, who: &Who) -> Result<Arc<Conversation>, Problem> {
    let (read, mut write) = tokio::io::split(server.house.commands.tools(who)?);
    let (lines, mut queue) = mpsc::channel::<String>(MCP_PENDING_MAX);
    tokio::spawn(async move {
        while let Some(line) = queue.recv().await {
            if write.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
        // Nobody will say anything any more, which ends it.
        let _ = write.shutdown().await;
    });
    let waiting: Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>> = Arc::default();
    tokio::spawn(hear(read, waiting.clone()));
    let (token, used) = (who.token.clone(), Mutex::new(Instant::now()));
    let session = who.bound.as_ref().and_then(|bound| bound.session);
    Ok(Arc::new(Conversation { token, session, lines, waiting, used }))
}

/// Hands answers to whoever waits for them. When the tool server has gone, nobody waits any more.
async fn hear(read: ReadHalf<DuplexStream>, waiting: Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>>) {
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(value) = serde_json::from_str::<Value>(&line) else { continue };
        if value.get("method").is_some() {
            continue;
        }
        let asked = value.get("id").map(Value::to_string).and_then(|id| lock(&waiting).remove(&id));
        if let Some(asked) = asked {
            let _ = asked.send(value);
        }
    }
    lock(&waiting).clear();
}

impl Conversation {
    async fn say(&self, message: &Value) -> Result<(), Problem> {
        let line = format!("{message}\n");
        self.lines.send(line).await.map_err(|_| Problem::ended("the conversation has ended"))
    }

    async fn ask(&self, id: &Value, message: &Value) -> Result<oneshot::Receiver<Value>, Problem> {
        let (sender, answered) = oneshot::channel();
        {
            let mut waiting = lock(&self.waiting);
            waiting.retain(|_, asked| !asked.is_closed());
            if waiting.len() >= MCP_PENDING_MAX {
                return Err(Problem::overloaded("too many calls of this conversation wait for an answer"));
            }
            if waiting.contains_key(&id.to_string()) {
                return Err(Problem::form(format!("id: {id} waits for its answer already")));
            }
            waiting.insert(id.to_string(), sender);
        }
        self.say(message).await?;
        Ok(answered)
    }
}
