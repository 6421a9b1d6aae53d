//! The Agent Client Protocol over HTTP and WebSocket: an agent that clients lead, under a name that they choose. `docs/protocol/acp-http.md` describes it.
//!
//! Clients of this transport take anything but 2xx for the end of everything: what fails of a call is answered as JSON-RPC has it, and a status says only
//! that nothing could be called.

mod follow;
mod held;
mod socket;

use std::future::poll_fn;
use std::sync::Arc;

use axum::http::StatusCode;
use baton_core::ids::AgentName;
use baton_runtime::relay::{ERROR_INTERNAL, Message, NotOpened, Posted, Relay, error};
use baton_runtime::session::NotBegun;
use serde_json::{Value, json};

use crate::access::Needs;
use crate::asked::{Answer, Asked, accepts, empty, json as answer, ok, shown};
use crate::field::{Field, Kind, may, needed};
use crate::limits::{SERVER_ID_CHARS_MAX, SERVER_WAIT};
use crate::problem::Problem;
use crate::routes::{Gives, Route, Takes, Verb, handler};
use crate::schema::Shape;

const AGENT: Field = may(
    "agent",
    Kind::Agent,
    "The agent, by the name that it has in the configuration. Needed where none of this name runs.",
);

pub const ROUTES: &[Route] = &[
    Route {
        verb: Verb::Get,
        path: "/v1/acp",
        name: "listAcpServers",
        summary: "The agents that are led by clients and live.",
        needs: Needs::LookAtAll,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::AcpServers),
        handler: handler!(list),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/acp/{server_id}",
        name: "postAcpMessage",
        summary: "Sends an agent a message of JSON-RPC. A request is held until it is answered; the first starts the agent.",
        needs: Needs::Operate,
        query: &[AGENT],
        takes: Takes::Json(Shape::RpcMessage),
        gives: Gives::Reply(Shape::RpcMessage),
        handler: handler!(post),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/acp/{server_id}",
        name: "followAcpServer",
        summary: "Everything that an agent says, as events called message. Last-Event-ID goes on after a message.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Events,
        handler: handler!(follow::follow),
    },
    Route {
        verb: Verb::Delete,
        path: "/v1/acp/{server_id}",
        name: "deleteAcpServer",
        summary: "Ends an agent and all that it started. One that is not there is ended.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Empty,
        handler: handler!(delete),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/acp/ws",
        name: "openAcpSocket",
        summary: "The same over a WebSocket: each text is one message of JSON-RPC.",
        needs: Needs::Operate,
        query: &[
            needed("server_id", Kind::Text(SERVER_ID_CHARS_MAX), "The name that clients give to the agent."),
            AGENT,
        ],
        takes: Takes::Nothing,
        gives: Gives::Socket,
        handler: handler!(socket::open),
    },
];

async fn list(asked: Asked) -> Answer {
    let servers: Vec<Value> = asked
        .server
        .relays
        .list()
        .iter()
        .map(|listed| {
            json!({
                "serverId": listed.server, "agent": listed.agent.as_str(),
                "createdAtMs": listed.created_at.unix_ms(), "sessionId": listed.session.to_string(),
            })
        })
        .collect();
    ok(&json!({"v": 1, "servers": servers}))
}

async fn post(mut asked: Asked) -> Answer {
    if !accepts(&asked.headers, &["application/json", "application/*", "*/*"]) {
        return Err(Problem::not_acceptable("Accept: expected application/json"));
    }
    let server = server_id(asked.part("server_id"))?;
    let message = Message::read(asked.json.take());
    let message = message.map_err(|why| Problem::form(format!("the body: {why}")))?;
    let agent: Option<AgentName> = asked.query.parsed("agent");
    let relay = match open(&asked, &server, agent, Some(&message)).await {
        Ok(relay) => relay,
        Err(why) => return not_opened(&why, &message),
    };
    let (id, is_first) = match &message {
        Message::Request { id, method, .. } => (id.clone(), method == "initialize"),
        Message::Notification { .. } | Message::Reply { .. } => (Value::Null, false),
    };
    match relay.post(message) {
        Posted::Taken => Ok(empty(StatusCode::ACCEPTED)),
        Posted::Held(answered) => held::answer(&asked, relay, answered, id, is_first).await,
    }
}

async fn delete(asked: Asked) -> Answer {
    asked.server.relays.delete(&server_id(asked.part("server_id"))?);
    Ok(empty(StatusCode::NO_CONTENT))
}

/// What stands in the place of a name in the path of the WebSocket.
const OWN_NAME: &str = "ws";

/// The name that a client gives to its agent.
fn server_id(text: &str) -> Result<String, Problem> {
    if text == OWN_NAME {
        return Err(Problem::form(format!("server_id: {OWN_NAME} is taken by the WebSocket")));
    }
    let is_fit = !text.is_empty()
        && text.chars().count() <= SERVER_ID_CHARS_MAX
        && !text.chars().any(char::is_control);
    match is_fit {
        true => Ok(text.to_owned()),
        false => {
            Err(Problem::form(format!("server_id: expected 1 to {SERVER_ID_CHARS_MAX} printable characters")))
        }
    }
}

/// The agent of this name, begun where there is none. What comes without an agent waits a moment: it may have overtaken the message that begins it.
async fn open(
    asked: &Asked,
    server: &str,
    agent: Option<AgentName>,
    message: Option<&Message>,
) -> Result<Arc<Relay>, NotOpened> {
    let relays = asked.server.relays.clone();
    if agent.is_none() && relays.get(server).is_none() {
        let begins = message.is_some_and(|message| message.method() == Some("initialize"));
        let found = match begins {
            true => None,
            false => wait_for(asked, server).await,
        };
        return found.ok_or_else(|| NotOpened::NoAgent(server.to_owned()));
    }
    let name = server.to_owned();
    let opened = tokio::task::spawn_blocking(move || relays.open(&name, agent.as_ref())).await;
    opened.unwrap_or(Err(NotOpened::NotBegun(NotBegun::Ending)))
}

/// The agent of this name, as soon as it is there.
async fn wait_for(asked: &Asked, server: &str) -> Option<Arc<Relay>> {
    let found = poll_fn(|cx| asked.server.relays.poll_get(server, cx));
    tokio::time::timeout(SERVER_WAIT, found).await.ok()
}

/// What it means that there is no agent: whoever asked for something impossible learns so by the status, and whoever came at a bad time as an answer.
fn not_opened(why: &NotOpened, message: &Message) -> Answer {
    match (problem(why), message) {
        (Some(problem), _) => Err(problem),
        (None, Message::Request { id, .. }) => {
            Ok(answer(StatusCode::OK, &error(id, ERROR_INTERNAL, &why.to_string(), None)))
        }
        (None, _) => Err(Problem::overloaded(why.to_string())),
    }
}

fn problem(why: &NotOpened) -> Option<Problem> {
    match why {
        NotOpened::NoAgent(_) => Some(Problem::form(why.to_string())),
        NotOpened::OtherAgent { .. } => Some(Problem::other_agent(why.to_string())),
        NotOpened::NotBegun(NotBegun::UnknownAgent(_) | NotBegun::NotRelayable(..)) => {
            Some(Problem::form(format!("agent: {why}")).hint("baton agent ls"))
        }
        NotOpened::TooMany | NotOpened::NotBegun(_) => None,
    }
}

fn no_server(server: &str) -> Problem {
    let shown = shown(server);
    Problem::no_server(format!("no server {shown}: the first message begins one, POST /v1/acp/NAME?agent=A"))
}
