//! Commands of the command line that come from elsewhere, over a WebSocket: what `baton --server URL` does.
//!
//! The first message is text, `{"v": 1, "args": […], "isTerminal": bool}`. From then on bytes are standard input, and an empty message is its end. What comes
//! back: `{"begun": true}`, or `{"refused": {…}}`; bytes whose first one is 1 for standard output and 2 for standard error; at last `{"exit": N}`.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use axum::response::IntoResponse as _;
use futures::{SinkExt as _, StreamExt as _};
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{mpsc, oneshot, watch};

use crate::access::{Needs, Who};
use crate::app::Server;
use crate::asked::{Answer, Asked};
use crate::house::{Handed, PIECE_HEAD};
use crate::limits::{ARGUMENTS_BYTES_MAX, ARGUMENTS_WAIT, COMMANDS_WAIT, PIECE_BYTES_MAX};
use crate::problem::Problem;
use crate::routes::{Gives, Route, Takes, Verb, handler};
use std::sync::Arc;

pub const ROUTES: &[Route] = &[Route {
    verb: Verb::Get,
    path: "/v1/commands",
    name: "giveCommand",
    summary: "Does a command of the command line, with its streams over a WebSocket.",
    needs: Needs::Operate,
    query: &[],
    takes: Takes::Nothing,
    gives: Gives::Socket,
    handler: handler!(open),
}];

async fn open(mut asked: Asked) -> Answer {
    let who = asked.who.clone().ok_or_else(|| Problem::token("a token is needed"))?;
    let upgrade =
        asked.upgrade.take().ok_or_else(|| Problem::form("expected a WebSocket: Upgrade: websocket"))?;
    let upgrade = upgrade.max_message_size(ARGUMENTS_BYTES_MAX).max_frame_size(ARGUMENTS_BYTES_MAX);
    let place = asked.server.enter_streams()?;
    let server = asked.server.clone();
    let talk = move |socket| async move {
        talk(server, who, socket).await;
        drop(place);
    };
    Ok(upgrade.on_upgrade(talk).into_response())
}

async fn talk(server: Arc<Server>, who: Who, mut socket: WebSocket) {
    match begin(&server, who, &mut socket).await {
        Ok(Some(running)) => running.relay(socket, server.ending.clone()).await,
        Ok(None) => {}
        Err(problem) => {
            let refused = json!({"refused": problem.to_json()}).to_string();
            let _ = socket.send(Message::Text(refused.into())).await;
            let _ = socket.send(Message::Close(None)).await;
        }
    }
}

/// A command that runs, and our ends of its streams.
struct Running {
    stdin: Sender,
    printed: Receiver,
    exit: oneshot::Receiver<u8>,
    /// As long as this is there, so is whoever gave the command.
    caller: UnixStream,
}

/// Reads what is to be done, and begins. `None` where nobody is there any more.
async fn begin(server: &Arc<Server>, who: Who, socket: &mut WebSocket) -> Result<Option<Running>, Problem> {
    let first = tokio::time::timeout(ARGUMENTS_WAIT, socket.recv()).await;
    let first = first.map_err(|_| Problem::too_slow("no command came"))?;
    let Some(Ok(Message::Text(text))) = first else { return Ok(None) };
    let request: Value = serde_json::from_str(text.as_str())
        .map_err(|error| Problem::form(format!("the first message does not read as JSON: {error}")))?;
    let args = request.get("args").and_then(Value::as_array);
    let words: Option<Vec<String>> =
        args.and_then(|args| args.iter().map(|arg| arg.as_str().map(str::to_owned)).collect());
    let words = words.ok_or_else(|| Problem::form("args: expected a list of texts"))?;
    let is_terminal = request.get("isTerminal") == Some(&Value::Bool(true));
    let Streams { running, stdin, printed, caller, done } = streams()
        .map_err(|error| Problem::unexpected(format!("the command cannot be given streams: {error}")))?;
    let handed = Handed { words, who, stdin, printed, is_terminal, caller };
    let commands = server.house.commands.clone();
    let begun = tokio::task::spawn_blocking(move || {
        let done = move |code| {
            let _ = done.send(code);
        };
        commands.begin(handed, Box::new(done))
    });
    begun.await.map_err(|_| Problem::unexpected("the command came to grief"))??;
    let said = socket.send(Message::Text(json!({"begun": true}).to_string().into())).await;
    Ok(said.is_ok().then_some(running))
}

/// Our ends of a command's streams, and those that it gets.
struct Streams {
    running: Running,
    stdin: OwnedFd,
    printed: OwnedFd,
    caller: UnixStream,
    done: oneshot::Sender<u8>,
}

fn streams() -> io::Result<Streams> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC);
    let ((stdin, our_in), (our_out, printed)) = (pipe()?, pipe()?);
    for ours in [&our_in, &our_out] {
        rustix::fs::fcntl_setfl(ours, rustix::fs::fcntl_getfl(ours)? | rustix::fs::OFlags::NONBLOCK)?;
    }
    let (ours, caller) = UnixStream::pair()?;
    let (done, exit) = oneshot::channel();
    let running = Running {
        stdin: Sender::from_owned_fd(our_in)?,
        printed: Receiver::from_owned_fd(our_out)?,
        exit,
        caller: ours,
    };
    Ok(Streams { running, stdin, printed, caller, done })
}

impl Running {
    /// Passes on what is typed and what is printed, until the command ends or whoever gave it goes. When the server ends, a command has a while to end too.
    async fn relay(self, socket: WebSocket, mut ending: watch::Receiver<bool>) {
        let Running { stdin, printed: pipe, exit, caller } = self;
        let (mut sink, mut source) = socket.split();
        let (sender, mut printed) = mpsc::channel::<Message>(4);
        let feeding = async move {
            let mut stdin = Some(stdin);
            while let Some(Ok(message)) = source.next().await {
                match message {
                    Message::Binary(bytes) if bytes.is_empty() => stdin = None,
                    Message::Binary(bytes) => {
                        // A command that reads no more is not spoken to any more.
                        if let Some(pipe) = &mut stdin
                            && pipe.write_all(&bytes).await.is_err()
                        {
                            stdin = None;
                        }
                    }
                    Message::Close(_) => break,
                    Message::Text(_) | Message::Ping(_) | Message::Pong(_) => {}
                }
            }
        };
        let printing = async move {
            pump(pipe, &sender).await;
            let code = exit.await.unwrap_or(1);
            let _ = sender.send(Message::Text(json!({"exit": code}).to_string().into())).await;
            let _ = sender.send(Message::Close(None)).await;
        };
        let sending = async {
            while let Some(message) = printed.recv().await {
                if sink.send(message).await.is_err() {
                    break;
                }
            }
        };
        let printed = async { tokio::join!(printing, sending) };
        // Whichever is first: the end of the command, or of whoever gave it. The other one learns of it by what is dropped here.
        let overdue = async {
            crate::api::streams::ended(&mut ending).await;
            tokio::time::sleep(COMMANDS_WAIT).await;
        };
        let is_overdue = tokio::select! {
            _ = printed => false,
            () = feeding => false,
            () = overdue => true,
        };
        drop(caller);
        if is_overdue {
            let word = CloseFrame { code: close_code::AWAY, reason: "the server ends".into() };
            let _ = sink.send(Message::Close(Some(word))).await;
        }
    }
}

/// Passes on what a command prints, in the order in which it does.
async fn pump(mut pipe: Receiver, sender: &mpsc::Sender<Message>) {
    let mut head = [0; PIECE_HEAD];
    while pipe.read_exact(&mut head).await.is_ok() {
        let [stream, length @ ..] = head;
        let length = (u32::from_be_bytes(length) as usize).min(PIECE_BYTES_MAX);
        let mut piece = vec![stream; 1 + length];
        if pipe.read_exact(&mut piece[1..]).await.is_err()
            || sender.send(Message::Binary(piece.into())).await.is_err()
        {
            return;
        }
    }
}
