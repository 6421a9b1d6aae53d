//! The agent as the protocol sees it: who it is, which sessions there are, and each prompt on its own, so that none waits for another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_core::{EventId, Uuid7};
use baton_store::clock;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::content;
use super::program::{Place, Program};
use super::replay::{self, Said};
use super::translate::{chunk, keep_end};
use super::turn::Turn;
use super::wire::{INVALID_PARAMS, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, NOT_FOUND, Refusal, Wire};
use crate::context::Context;
use crate::limits::{ACP_SESSIONS_MAX, ACP_STOP_WAIT, ACP_WORK_MAX};

/// The version of the protocol that is spoken.
const VERSION: u64 = 1;

/// What the ids of conversations begin with.
const PREFIX: &str = "acp_";

/// A conversation that the editor has open.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) place: Place,
    /// The end of what was said, for the next prompt.
    history: Mutex<String>,
    /// Cancels the prompt that is worked on.
    cancel: Mutex<Option<watch::Sender<bool>>>,
}

impl Session {
    fn new(id: String, place: Place) -> Self {
        Session { id, place, history: Mutex::default(), cancel: Mutex::default() }
    }

    fn history(&self) -> MutexGuard<'_, String> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cancel(&self) -> MutexGuard<'_, Option<watch::Sender<bool>>> {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A prompt as the text of a task, with what was said before: whoever works on it knows nothing else of the conversation.
    pub(super) fn with_history(&self, prompt: &str) -> String {
        match self.history().trim() {
            "" => prompt.to_owned(),
            before => format!("{prompt}{}{before}", replay::seam(&self.id)),
        }
    }

    /// Keeps what was said for the next prompt.
    pub(super) fn remember(&self, prompt: &str, said: &str) {
        keep_end(&mut self.history(), &format!("User: {}\n\nAgent: {}\n\n", prompt.trim(), said.trim()));
    }
}

/// What there is while the editor is there.
struct Server<'a> {
    ctx: &'a Context,
    program: Arc<Program>,
    wire: Wire,
    sessions: Arc<Mutex<BTreeMap<String, Arc<Session>>>>,
    /// Everything that goes on beside the reading of messages.
    work: JoinSet<()>,
}

/// Serves until the editor goes, or a signal says so. Then what runs is stopped, and its end waited for.
pub(super) async fn serve(ctx: &Context, program: Program, wire: Wire, mut incoming: Receiver<Incoming>) {
    let program = Arc::new(program);
    let mut server = Server { ctx, program, wire, sessions: Arc::default(), work: JoinSet::new() };
    let mut signals = [SignalKind::terminate(), SignalKind::interrupt()].map(|kind| signal(kind).ok());
    loop {
        let [terminated, interrupted] = signals.each_mut().map(signalled);
        tokio::select! {
            came = incoming.recv() => match came {
                Some(came) => server.take(came).await,
                None => break,
            },
            () = terminated => break,
            () = interrupted => break,
            Some(_) = server.work.join_next(), if !server.work.is_empty() => {}
        }
    }
    server.end().await;
}

/// Waits for a signal; for ever where it cannot be heard.
async fn signalled(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

impl Server<'_> {
    async fn take(&mut self, came: Incoming) {
        match came {
            Incoming::Wrong(answer) => self.wire.say(&answer).await,
            Incoming::Answer { id, answer } => self.wire.answered(&id, answer),
            Incoming::Notification { method, params } => {
                // What is not known is not answered.
                if method == "session/cancel"
                    && let Ok(id) = content::text(&params, "sessionId")
                {
                    self.cancel(id);
                }
            }
            Incoming::Request { id, method, params } => {
                let answered = match method.as_str() {
                    "initialize" => initialize(&params).map(Some),
                    "session/new" => self.new_session(&params).map(Some),
                    "session/load" => self.load(&id, &params, true).map(|()| None),
                    "session/resume" => self.load(&id, &params, false).map(|()| None),
                    "session/list" => self.list(&id, &params).map(|()| None),
                    "session/close" => self.close(&params).map(Some),
                    "session/prompt" => self.prompt(&id, &params).map(|()| None),
                    _ => {
                        let shown: String = method.chars().take(80).collect();
                        Err(Refusal::new(METHOD_NOT_FOUND, format!("there is no method {shown:?}")))
                    }
                };
                match answered {
                    Ok(Some(result)) => self.wire.result(&id, &result).await,
                    Ok(None) => {}
                    Err(refusal) => self.wire.refuse(&id, &refusal).await,
                }
            }
        }
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory that the editor names, and the data directory that is found from there.
    fn place(&self, params: &Value) -> Result<Place, Refusal> {
        let cwd = PathBuf::from(content::text(params, "cwd")?);
        if !cwd.is_absolute() || !cwd.is_dir() {
            return Err(content::wrong("cwd", "an absolute path of a directory", &params["cwd"]));
        }
        if !matches!(params["mcpServers"], Value::Array(_) | Value::Null) {
            return Err(content::wrong("mcpServers", "a list", &params["mcpServers"]));
        }
        self.place_at(&cwd)
    }

    fn place_at(&self, cwd: &Path) -> Result<Place, Refusal> {
        let layout = self.ctx.layout_from(cwd).map_err(|error| {
            let hint = error.hint.clone().unwrap_or_default();
            let message = format!("cwd: {} (try: cd {} && {hint})", error.what, crate::ui::shell::path(cwd));
            let data = json!({"code": error.code.as_str(), "message": error.what, "hint": hint});
            Refusal { code: INVALID_PARAMS, message, data: Some(data) }
        })?;
        let data_dir = std::path::absolute(layout.root())
            .map_err(|error| Refusal::new(INVALID_PARAMS, format!("cwd: {error}")))?;
        Ok(Place { data_dir, cwd: cwd.to_owned() })
    }

    fn expect_room(&self) -> Result<(), Refusal> {
        if self.sessions().len() < ACP_SESSIONS_MAX {
            return Ok(());
        }
        let message =
            format!("at most {ACP_SESSIONS_MAX} sessions are open at once: close one with session/close");
        Err(Refusal::new(INVALID_REQUEST, message))
    }

    fn expect_hands(&self) -> Result<(), Refusal> {
        if self.work.len() < ACP_WORK_MAX {
            return Ok(());
        }
        let message =
            format!("{ACP_WORK_MAX} requests are worked on, which is the most: wait for one of them");
        Err(Refusal::new(INVALID_REQUEST, message))
    }

    fn new_session(&self, params: &Value) -> Result<Value, Refusal> {
        let place = self.place(params)?;
        self.expect_room()?;
        let id = format!("{PREFIX}{}", Uuid7::from_parts(clock::now(), clock::random()));
        self.sessions().insert(id.clone(), Arc::new(Session::new(id.clone(), place)));
        Ok(json!({"sessionId": id}))
    }

    /// Finds a conversation by the tasks that it led to, and tells it again where that is wanted.
    fn load(&mut self, id: &Value, params: &Value, is_told: bool) -> Result<(), Refusal> {
        let name = content::text(params, "sessionId")?.to_owned();
        let place = self.place(params)?;
        self.expect_room()?;
        self.expect_hands()?;
        if self.sessions().get(&name).is_some_and(|session| session.cancel().is_some()) {
            return Err(busy(&name));
        }
        let (program, wire, sessions, id) =
            (self.program.clone(), self.wire.clone(), self.sessions.clone(), id.clone());
        self.work.spawn(async move {
            let session = Session::new(name, place);
            match tell(&program, &wire, &session, is_told).await {
                Ok(()) => {
                    keep(&sessions, session);
                    wire.result(&id, &json!({})).await;
                }
                Err(refusal) => wire.refuse(&id, &refusal).await,
            }
        });
        Ok(())
    }

    fn list(&mut self, id: &Value, params: &Value) -> Result<(), Refusal> {
        self.expect_hands()?;
        let cwd = params.get("cwd").filter(|cwd| !cwd.is_null()).map(|_| content::text(params, "cwd"));
        let cwd = cwd.transpose()?.map(str::to_owned);
        let place = match &cwd {
            Some(_) => self.place(params)?,
            None => {
                let here =
                    self.ctx.here().map_err(|error| Refusal::new(INVALID_PARAMS, error.to_string()))?;
                self.place_at(&here)?
            }
        };
        let (program, wire, id) = (self.program.clone(), self.wire.clone(), id.clone());
        self.work.spawn(async move {
            match replay::list(&program, &place, cwd.as_deref()).await {
                Ok(sessions) => wire.result(&id, &json!({"sessions": sessions})).await,
                Err(refusal) => wire.refuse(&id, &refusal).await,
            }
        });
        Ok(())
    }

    fn session(&self, params: &Value) -> Result<Arc<Session>, Refusal> {
        let id = content::text(params, "sessionId")?;
        self.sessions().get(id).cloned().ok_or_else(|| unknown(id))
    }

    fn prompt(&mut self, id: &Value, params: &Value) -> Result<(), Refusal> {
        let session = self.session(params)?;
        let text = content::prompt(params)?;
        self.expect_hands()?;
        let canceled = {
            let mut cancel = session.cancel();
            if cancel.is_some() {
                return Err(busy(&session.id));
            }
            let (send, canceled) = watch::channel(false);
            *cancel = Some(send);
            canceled
        };
        let (wire, program, id) = (self.wire.clone(), self.program.clone(), id.clone());
        self.work.spawn(async move {
            let turn = Turn { wire: wire.clone(), program, session: session.clone(), text, canceled };
            let answer = turn.run().await;
            // Before the answer: the next prompt may come at once.
            session.cancel().take();
            match answer {
                Ok(result) => wire.result(&id, &result).await,
                Err(refusal) => wire.refuse(&id, &refusal).await,
            }
        });
        Ok(())
    }

    fn cancel(&self, id: &str) {
        let session = self.sessions().get(id).cloned();
        if let Some(cancel) = session.iter().filter_map(|session| session.cancel().clone()).next() {
            cancel.send_replace(true);
        }
    }

    fn close(&self, params: &Value) -> Result<Value, Refusal> {
        let session = self.session(params)?;
        self.cancel(&session.id);
        self.sessions().remove(&session.id);
        Ok(json!({}))
    }

    /// Stops what runs, and waits for its end, within a bound.
    async fn end(mut self) {
        self.wire.leave();
        let all = async { while self.work.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(ACP_STOP_WAIT * 2, all).await;
    }
}

/// Keeps a session that was loaded. One that has begun to work meanwhile stays as it is.
fn keep(sessions: &Mutex<BTreeMap<String, Arc<Session>>>, session: Session) {
    let mut sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
    if sessions.get(&session.id).is_none_or(|known| known.cancel().is_none()) {
        sessions.insert(session.id.clone(), Arc::new(session));
    }
}

/// What can be asked of this agent.
fn initialize(params: &Value) -> Result<Value, Refusal> {
    if !params["protocolVersion"].is_u64() {
        return Err(content::wrong("protocolVersion", "a number", &params["protocolVersion"]));
    }
    Ok(json!({
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": false, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": false, "sse": false},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
        },
        "agentInfo": {"name": "baton", "title": "Baton", "version": env!("CARGO_PKG_VERSION")},
        "authMethods": [],
    }))
}

/// Finds what was said in a conversation, and tells it.
async fn tell(program: &Program, wire: &Wire, session: &Session, is_told: bool) -> Result<(), Refusal> {
    let is_ours =
        session.id.strip_prefix(PREFIX).is_some_and(|rest| format!("evt_{rest}").parse::<EventId>().is_ok());
    let tasks = if is_ours { replay::tasks(program, &session.place, &session.id).await? } else { Vec::new() };
    if tasks.is_empty() {
        return Err(unknown(&session.id));
    }
    let (mut prompt, mut words) = (String::new(), String::new());
    for said in replay::said(program, &session.place, &tasks).await? {
        let update = match said {
            Said::Prompt(text) => {
                session.remember_all(&mut prompt, &mut words);
                prompt.clone_from(&text);
                chunk("user_message_chunk", &text)
            }
            Said::Words(text) => {
                keep_end(&mut words, &text);
                chunk("agent_message_chunk", &text)
            }
            Said::Update(update) => update,
        };
        if is_told {
            wire.update(&session.id, &update).await;
        }
    }
    session.remember_all(&mut prompt, &mut words);
    Ok(())
}

impl Session {
    /// Keeps a prompt and what came of it, where there was one.
    fn remember_all(&self, prompt: &mut String, words: &mut String) {
        if !prompt.is_empty() {
            self.remember(&std::mem::take(prompt), &std::mem::take(words));
        }
    }
}

fn unknown(id: &str) -> Refusal {
    let shown: String = id.chars().take(80).collect();
    let message =
        format!("sessionId: there is no session {shown:?}; one that never had a prompt is not kept");
    Refusal::new(NOT_FOUND, message)
}

fn busy(id: &str) -> Refusal {
    let message =
        format!("session {id} works on a prompt: wait for its end, or cancel it with session/cancel");
    Refusal::new(INVALID_REQUEST, message)
}
