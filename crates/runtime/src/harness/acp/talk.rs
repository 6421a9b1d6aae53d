//! The conversation itself: handshake, session, prompts, permissions, through the library.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    CancelNotification, ClientCapabilities, ContentBlock, CreateTerminalRequest, EnvVariable,
    FileSystemCapabilities, Implementation, InitializeRequest, KillTerminalRequest, LoadSessionRequest,
    McpServer as SchemaServer, McpServerStdio, NewSessionRequest, PermissionOption, PermissionOptionKind,
    PromptRequest, ReadTextFileRequest, ReleaseTerminalRequest, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, ResumeSessionRequest, SelectedPermissionOutcome,
    SessionConfigOption, SessionConfigOptionValue, SessionId, SessionModeState,
    SetSessionConfigOptionRequest, SetSessionModeRequest, TerminalOutputRequest, TextContent,
    WaitForTerminalExitRequest, WriteTextFileRequest,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent as AgentRole, Client, Error as RpcError, Lines};
use baton_core::session::{Answer, Cause};
use futures::StreamExt as _;
use futures::channel::mpsc::{Receiver, UnboundedReceiver};

use super::desk::Desk;
use super::serving::Serving;
use super::{Setup, inbound};
use crate::agent::{Agent, NotWritten};
use crate::harness::bounds::cut;
use crate::harness::{Asked, Failure, Ready, Told, ToolSeen};
use crate::session::Wish;

/// What is asked of the conversation.
#[derive(Debug)]
pub(super) enum Command {
    Prompt(Vec<String>),
    Cancel,
    Answer(String, Answer),
}

/// What agents without modes call their option for it.
const MODE_OPTION: &str = "mode";

/// What was asked for and not answered yet.
type Pending = Arc<Mutex<BTreeMap<String, (Responder<RequestPermissionResponse>, Vec<PermissionOption>)>>>;

pub(super) struct Talk {
    pub(super) agent: Agent,
    pub(super) setup: Setup,
    pub(super) tell: Arc<dyn Fn(Told) + Send + Sync>,
    pub(super) desk: Arc<Desk>,
}

impl Talk {
    pub(super) async fn run(
        self,
        incoming: Receiver<std::io::Result<String>>,
        asked: UnboundedReceiver<Command>,
    ) {
        let (agent, held) = (self.agent.clone(), self.agent.clone());
        let (wire, desk, tell) = (self.setup.wire.clone(), self.desk.clone(), self.tell.clone());
        let outgoing = futures::sink::unfold((agent, wire, desk, tell), |to, mut line: String| async move {
            let (agent, wire, desk, tell) = &to;
            if let Some(wire) = wire {
                wire.keep(">", line.as_bytes());
            }
            desk.sent(&line);
            if !desk.is_crowded() {
                agent.release();
            }
            line.push('\n');
            let written = agent.write(line.as_bytes());
            if let Err(full @ NotWritten::Full) = written {
                // The conversation ends here, and nobody else would say so.
                tell(Told::Broken(Failure::of(Cause::Protocol, full.to_string())));
            }
            written.map_err(std::io::Error::other)?;
            Ok::<_, std::io::Error>(to)
        });
        let pending = Pending::default();
        let serving = Serving::new(&self.setup);
        let [read, write, create, output, wait, kill, release] = std::array::from_fn(|_| serving.clone());
        let (tell, waiting) = (self.tell.clone(), pending.clone());
        let ended = Client
            .v1()
            .name("baton")
            .on_receive_request(
                async move |request: RequestPermissionRequest, responder, _connection| {
                    ask(&tell, &waiting, request, responder);
                    Ok(())
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: ReadTextFileRequest, responder, _| read.read(request, responder),
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: WriteTextFileRequest, responder, _| write.write(request, responder),
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: CreateTerminalRequest, responder, _| create.create(request, responder),
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: TerminalOutputRequest, responder, _| {
                    responder.respond_with_result(output.output(&request))
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: WaitForTerminalExitRequest, responder, _| {
                    wait.wait(&request, responder);
                    Ok(())
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: KillTerminalRequest, responder, _| {
                    responder.respond_with_result(kill.kill(&request))
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: ReleaseTerminalRequest, responder, _| {
                    responder.respond_with_result(release.release(&request))
                },
                agent_client_protocol::on_receive_request!(),
            )
            .connect_with(Lines::new(Box::pin(outgoing), incoming), {
                let serving = serving.clone();
                async move |connection| {
                    self.converse(connection, asked, pending, &serving).await;
                    Ok(())
                }
            })
            .await;
        held.release();
        // Its programs do not outlive it.
        serving.end();
        // Whatever ended it, the process tells how.
        drop(ended);
    }

    async fn converse(
        self,
        connection: ConnectionTo<AgentRole>,
        mut asked: UnboundedReceiver<Command>,
        pending: Pending,
        serving: &Serving,
    ) {
        let session = match self.open(&connection, serving).await {
            Ok((session, ready)) => {
                (self.tell)(Told::Ready(ready));
                session
            }
            Err(failure) => {
                // The end of the process is told by the process.
                if !connection.is_incoming_closed() {
                    (self.tell)(Told::Broken(failure));
                }
                return connection.incoming_closed().await;
            }
        };
        while let Some(command) = asked.next().await {
            match command {
                Command::Prompt(blocks) => self.prompt(&connection, &session, blocks),
                Command::Cancel => {
                    let _ = connection.send_notification(CancelNotification::new(session.clone()));
                }
                Command::Answer(id, answer) => respond(&pending, &id, &answer),
            }
            if connection.is_incoming_closed() {
                break;
            }
        }
    }

    /// The handshake, the session, and its mode.
    async fn open(
        &self,
        connection: &ConnectionTo<AgentRole>,
        serving: &Serving,
    ) -> Result<(SessionId, Ready), Failure> {
        let has_files = serving.has_files();
        let files = FileSystemCapabilities::new().read_text_file(has_files).write_text_file(has_files);
        let hello = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(ClientCapabilities::new().fs(files).terminal(serving.has_terminals()))
            .client_info(Implementation::new("baton", env!("CARGO_PKG_VERSION")));
        let known = connection.send_request(hello).block_task().await.map_err(|error| failure(&error))?;
        if known.protocol_version != ProtocolVersion::V1 {
            let message =
                format!("the agent speaks version {} of the protocol, not 1", known.protocol_version);
            return Err(Failure::of(Cause::Protocol, message));
        }
        let can_resume = known.agent_capabilities.session_capabilities.resume.is_some();
        let servers: Vec<SchemaServer> = self.setup.mcp_servers.iter().map(server).collect();
        let cwd = self.setup.cwd.clone();
        let (session, modes, options) = match &self.setup.load {
            // Rather without its past: that is in the transcript already.
            Some(native) if can_resume => {
                let resume = ResumeSessionRequest::new(native.clone(), cwd).mcp_servers(servers);
                let resumed =
                    connection.send_request(resume).block_task().await.map_err(|error| failure(&error))?;
                (SessionId::new(native.clone()), resumed.modes, resumed.config_options)
            }
            Some(native) => {
                let load = LoadSessionRequest::new(native.clone(), cwd).mcp_servers(servers);
                let loaded =
                    connection.send_request(load).block_task().await.map_err(|error| failure(&error))?;
                (SessionId::new(native.clone()), loaded.modes, loaded.config_options)
            }
            None => {
                let new = NewSessionRequest::new(cwd).mcp_servers(servers);
                let made =
                    connection.send_request(new).block_task().await.map_err(|error| failure(&error))?;
                (made.session_id, made.modes, made.config_options)
            }
        };
        if let Some(mode) = &self.setup.mode {
            self.set_mode(connection, &session, mode, modes.as_ref(), &options).await?;
        }
        let mode = self.setup.mode.clone().or_else(|| modes.map(|modes| modes.current_mode_id.to_string()));
        let agent = known.agent_info.map(|info| format!("{} {}", info.name, info.version));
        let can_load = known.agent_capabilities.load_session || can_resume;
        Ok((session.clone(), Ready { native_id: Some(session.to_string()), agent, can_load, mode }))
    }

    /// Sets the permission mode before anything is asked. Some agents have modes, some have an option of that name.
    async fn set_mode(
        &self,
        connection: &ConnectionTo<AgentRole>,
        session: &SessionId,
        mode: &str,
        modes: Option<&SessionModeState>,
        options: &Option<Vec<SessionConfigOption>>,
    ) -> Result<(), Failure> {
        let option = options.iter().flatten().find(|option| option.id.to_string() == MODE_OPTION);
        let set = match option.filter(|_| modes.is_none()) {
            Some(option) => {
                let value = SessionConfigOptionValue::value_id(mode.to_owned());
                let set = SetSessionConfigOptionRequest::new(session.clone(), option.id.clone(), value);
                connection.send_request(set).block_task().await.map(drop)
            }
            None => {
                let set = SetSessionModeRequest::new(session.clone(), mode.to_owned());
                connection.send_request(set).block_task().await.map(drop)
            }
        };
        set.map_err(|error| {
            let known = modes.iter().flat_map(|modes| &modes.available_modes);
            let known: Vec<String> = known.map(|mode| mode.id.to_string()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Failure::new(format!("mode {mode:?} was refused ({}); it has {known}", error.message))
        })
    }

    fn prompt(&self, connection: &ConnectionTo<AgentRole>, session: &SessionId, blocks: Vec<String>) {
        let blocks = blocks.into_iter().map(|text| ContentBlock::Text(TextContent::new(text))).collect();
        let sent = connection.send_request(PromptRequest::new(session.clone(), blocks));
        let tell = self.tell.clone();
        // Beside whatever else is asked meanwhile.
        let spawned = connection.spawn(async move {
            match sent.block_task().await {
                Ok(answer) => {
                    let stop = serde_json::to_value(answer.stop_reason).ok();
                    let stop = stop.and_then(|stop| stop.as_str().map(str::to_owned)).unwrap_or_default();
                    tell(Told::TurnEnded { stop, usage: None });
                }
                // The end of the process is told by the process.
                Err(error) if agent_client_protocol::is_incoming_transport_closed(&error) => {}
                Err(error) => tell(Told::TurnFailed(failure(&error))),
            }
            Ok(())
        });
        if spawned.is_err() {
            (self.tell)(Told::TurnFailed(Failure::new("the conversation is over")));
        }
    }
}

fn server(server: &super::McpServer) -> SchemaServer {
    let env = server.env.iter().map(|(name, value)| EnvVariable::new(name.clone(), value.clone())).collect();
    let stdio = McpServerStdio::new(server.name.clone(), server.command.clone());
    SchemaServer::Stdio(stdio.args(server.args.clone()).env(env))
}

fn ask(
    tell: &Arc<dyn Fn(Told) + Send + Sync>,
    pending: &Pending,
    request: RequestPermissionRequest,
    responder: Responder<RequestPermissionResponse>,
) {
    let seen = inbound::updated(request.tool_call);
    let asked = Asked {
        id: serde_json::to_value(responder.id()).map_or_else(|_| String::new(), |id| id.to_string()),
        title: title(&seen),
        call_id: Some(seen.call_id.clone()),
        wish: seen.tool.clone().map(|tool| {
            let (input, why) = (seen.arguments.clone().unwrap_or_default(), title(&seen));
            let (others, diffs) = (seen.kind.iter().cloned().collect(), seen.diffs.clone());
            Box::new(Wish { tool, others, input, diffs, why, ..Wish::default() })
        }),
    };
    pending
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(asked.id.clone(), (responder, request.options));
    // Some agents ask about a call that they never announced.
    tell(Told::Tool(seen));
    tell(Told::Asked(asked));
}

/// What is asked for, so that whoever answers knows: the tool, and what it is called with.
fn title(seen: &ToolSeen) -> String {
    let name = seen.name.clone().unwrap_or_else(|| "a tool".into());
    let arguments = seen.arguments.as_ref().filter(|arguments| !arguments.is_null());
    let Some(arguments) = arguments else { return name };
    let text =
        ["command", "path", "file_path", "filePath"].iter().find_map(|key| arguments.get(key)?.as_str());
    let mut text = text.map_or_else(|| arguments.to_string(), str::to_owned);
    cut(&mut text, TITLE_ARGUMENT_BYTES_MAX);
    if name.contains(&text) { name } else { format!("{name}: {text}") }
}

/// Bytes of what a tool is called with that are shown to whoever is asked.
const TITLE_ARGUMENT_BYTES_MAX: usize = 300;

/// Chooses by kind, never by place or name: the narrower one first.
fn respond(pending: &Pending, id: &str, answer: &Answer) {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let Some((responder, options)) = pending.lock().unwrap_or_else(PoisonError::into_inner).remove(id) else {
        return;
    };
    let wanted: &[PermissionOptionKind] = match answer {
        Answer::Allow | Answer::Text(_) => &[AllowOnce, AllowAlways],
        Answer::Deny => &[RejectOnce, RejectAlways],
        Answer::Canceled => &[],
    };
    let chosen = wanted.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind));
    let outcome = match chosen {
        Some(option) => {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        }
        None => RequestPermissionOutcome::Cancelled,
    };
    let _ = responder.respond(RequestPermissionResponse::new(outcome));
}

/// What an error of an agent means, as far as agents are known to say.
fn failure(error: &RpcError) -> Failure {
    let data = error.data.as_ref();
    let kind = data.and_then(|data| data.get("errorKind")).and_then(serde_json::Value::as_str);
    let resets_at = data.and_then(|data| data.get("resetsAt")).and_then(serde_json::Value::as_str);
    let resets_at = resets_at.and_then(|at| baton_core::Timestamp::from_rfc3339(at).ok());
    let code = i64::from(i32::from(error.code));
    let message = format!("{} ({code})", error.message);
    let cause = match (kind, code) {
        (Some("usage_limit"), _) => Some(Cause::Quota),
        (_, -32000 | 401) => Some(Cause::Auth),
        _ => None,
    };
    Failure { message, cause, retryable: false, resets_at }
}
