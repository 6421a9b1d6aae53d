//! A client by WebSocket: each text is one message, in both directions, and what it is answered comes after all that was said before.

use std::future::poll_fn;
use std::sync::Arc;

use axum::extract::ws::{CloseFrame, Message as Frame, WebSocket, close_code};
use baton_core::ids::AgentName;
use baton_runtime::relay::{Answered, Message, Next, Posted, Reader, Relay, error};
use futures::FutureExt as _;
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use super::{open as open_relay, problem, server_id};
use crate::api::streams::ended;
use crate::asked::{Answer, Asked};
use crate::limits::{HEARTBEAT, JSON_BODY_BYTES_MAX, SOCKET_WRITE_BYTES_MAX};
use crate::problem::Problem;

/// What does not read, and what reads and is no message, as JSON-RPC has it.
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

pub(super) async fn open(mut asked: Asked) -> Answer {
    let Some(upgrade) = asked.upgrade.take() else {
        return Err(Problem::form("a WebSocket is opened here: expected Upgrade: websocket"));
    };
    let server = server_id(asked.query.text("server_id").unwrap_or_default())?;
    let agent: Option<AgentName> = asked.query.parsed("agent");
    let place = asked.server.enter_streams()?;
    let relay = open_relay(&asked, &server, agent, None).await;
    let relay = relay.map_err(|why| problem(&why).unwrap_or_else(|| Problem::overloaded(why.to_string())))?;
    let ending = asked.server.ending.clone();
    let upgrade = upgrade
        .max_message_size(JSON_BODY_BYTES_MAX)
        .max_frame_size(JSON_BODY_BYTES_MAX)
        .max_write_buffer_size(SOCKET_WRITE_BYTES_MAX);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let client = Client { socket, reader: relay.read_without_answers(), relay, ending, _place: place };
        client.talk().await;
    }))
}

struct Client {
    socket: WebSocket,
    reader: Reader,
    relay: Arc<Relay>,
    ending: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

/// Whoever is at the other end has gone.
struct Gone;

impl From<axum::Error> for Gone {
    fn from(_: axum::Error) -> Self {
        Gone
    }
}

impl Client {
    async fn talk(mut self) {
        let why = match self.serve().await {
            Ok(why) => why,
            Err(Gone) => return,
        };
        let frame = CloseFrame { code: why.0, reason: why.1.into() };
        let _ = self.socket.send(Frame::Close(Some(frame))).await;
    }

    /// Serves until one side ends it; gives what the other side is told.
    async fn serve(&mut self) -> Result<(u16, &'static str), Gone> {
        let mut answers = FuturesUnordered::new();
        let mut heard = Instant::now();
        loop {
            let reader = &mut self.reader;
            tokio::select! {
                // What was said before the end is told before it.
                biased;
                next = poll_fn(|cx| reader.poll_next(cx)) => {
                    if !self.pass(next).await? {
                        return Ok((close_code::NORMAL, "the agent was ended"));
                    }
                }
                Some(answered) = answers.next(), if !answers.is_empty() => {
                    // Everything that was said before it is there already.
                    let answered: Result<Answered, _> = answered;
                    let Ok(answered) = answered else { continue };
                    while self.reader.position() < answered.after {
                        let Some(next) = poll_fn(|cx| self.reader.poll_next(cx)).now_or_never() else { break };
                        self.pass(next).await?;
                    }
                    self.socket.send(Frame::text(&*answered.text)).await?;
                }
                frame = self.socket.recv() => match frame.ok_or(Gone)?? {
                    Frame::Text(text) => match self.take(&text) {
                        Ok(Posted::Held(answer)) => answers.push(answer),
                        Ok(Posted::Taken) => {}
                        Err(refusal) => self.socket.send(Frame::text(refusal)).await?,
                    },
                    Frame::Binary(_) => return Ok((close_code::UNSUPPORTED, "expected text")),
                    Frame::Close(_) => return Err(Gone),
                    Frame::Ping(_) | Frame::Pong(_) => {}
                },
                () = tokio::time::sleep_until(heard + HEARTBEAT) => {
                    self.socket.send(Frame::Ping(Vec::new().into())).await?;
                }
                () = ended(&mut self.ending) => return Ok((close_code::AWAY, "the server ends")),
            }
            heard = Instant::now();
        }
    }

    /// Takes a message, or says why it is none.
    fn take(&self, text: &str) -> Result<Posted, String> {
        let refuse = |code, why: &str| error(&Value::Null, code, why, None).to_string();
        let value = crate::app::parse(text.as_bytes()).map_err(|why| refuse(PARSE_ERROR, &why.title))?;
        let message = Message::read(value).map_err(|why| refuse(INVALID_REQUEST, &why.to_string()))?;
        Ok(self.relay.post(message))
    }

    /// Passes on what was said; gives whether anything more may come.
    async fn pass(&mut self, next: Next) -> Result<bool, Gone> {
        match next {
            Next::Items { items, .. } => {
                for item in items {
                    self.socket.send(Frame::text(&*item.text)).await?;
                }
            }
            Next::Gap(upto) => {
                let told =
                    json!({"jsonrpc": "2.0", "method": "_adapter/gap", "params": {"resumeFrom": upto}});
                self.socket.send(Frame::text(told.to_string())).await?;
            }
            Next::Over => return Ok(false),
        }
        Ok(true)
    }
}
