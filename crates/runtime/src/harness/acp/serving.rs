//! What an agent asks of its client besides permissions: files and terminals, through the same wall as every tool.
//!
//! A file that does not exist is answered with -32002. One agent (Gemini) then cannot make new files; for it `fs` stays off, and it writes by itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse,
    ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest, ReleaseTerminalResponse,
    TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest, WaitForTerminalExitResponse,
    WriteTextFileRequest, WriteTextFileResponse,
};
use agent_client_protocol::{Error as RpcError, JsonRpcResponse};

use serde_json::json;

use super::Setup;
use super::terminals::{Account, Terminals};
use crate::limits::FILE_ANSWER_BYTES_MAX;
use crate::session::{Entry, Gave, ToolGate, Wish};
use crate::tools::{Refused, ToolRunner};

/// A resource that is not there, as the protocol has it.
const NOT_FOUND: i32 = -32002;

/// What is offered to one agent.
#[derive(Debug, Clone)]
pub(super) struct Serving {
    files: Option<Arc<ToolRunner>>,
    terminals: Option<Arc<Terminals>>,
    gate: Option<Arc<dyn ToolGate>>,
    /// Ends waiting at the gate when the conversation is over.
    is_over: Arc<AtomicBool>,
}

impl Serving {
    pub(super) fn new(setup: &Setup) -> Self {
        let files = setup.tools.clone().filter(|_| setup.fs);
        let terminals = setup.tools.clone().filter(|_| setup.terminal);
        let terminals = terminals.map(|tools| Arc::new(Terminals::new(tools)));
        Serving { files, terminals, gate: setup.gate.clone(), is_over: Arc::default() }
    }

    /// Does something for the agent and answers: at once, or where there is a gate once that lets it through.
    fn through<R: JsonRpcResponse + Send>(
        &self,
        responder: Responder<R>,
        wish: impl FnOnce() -> Wish,
        act: impl FnOnce(&Serving, Option<Entry>) -> Result<R, RpcError> + Send + 'static,
    ) -> Result<(), RpcError> {
        let Some(gate) = self.gate.clone() else { return responder.respond_with_result(act(self, None)) };
        let (serving, wish) = (self.clone(), wish());
        let work = move || {
            let answer = match gate.enter(&wish, &serving.is_over) {
                Ok(entry) => act(&serving, Some(entry)),
                Err(why) => Err(RpcError::invalid_params().data(why)),
            };
            // Whoever is gone is not answered.
            drop(responder.respond_with_result(answer));
        };
        let spawned = std::thread::Builder::new().name("gate".into()).spawn(work);
        // Without a thread nobody is answered: the agent's own deadline ends it.
        spawned.map(drop).map_err(|error| RpcError::internal_error().data(error.to_string()))
    }

    fn leave<R>(
        &self,
        entry: Option<Entry>,
        answer: &Result<R, RpcError>,
        output: impl FnOnce(&R) -> String,
    ) {
        if let (Some(gate), Some(entry)) = (&self.gate, entry) {
            let gave = match answer {
                Ok(answer) => Gave { output: output(answer), ..Gave::default() },
                Err(error) => Gave { output: error.to_string(), is_error: true, ..Gave::default() },
            };
            gate.leave(entry, &gave);
        }
    }

    pub(super) fn has_files(&self) -> bool {
        self.files.is_some()
    }

    pub(super) fn has_terminals(&self) -> bool {
        self.terminals.is_some()
    }

    /// Ends every terminal.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(terminals) = &self.terminals {
            terminals.end();
        }
    }

    pub(super) fn read(
        &self,
        request: ReadTextFileRequest,
        responder: Responder<ReadTextFileResponse>,
    ) -> Result<(), RpcError> {
        if let Err(error) = files(self) {
            return responder.respond_with_error(error);
        }
        let input = json!({"path": request.path, "line": request.line, "limit": request.limit});
        let wish = || Wish { tool: "read_file".to_owned(), input, ..Wish::default() };
        self.through(responder, wish, move |serving, entry| {
            let read = serving.read_now(&request);
            serving.leave(entry, &read, |read| read.content.clone());
            read
        })
    }

    fn read_now(&self, request: &ReadTextFileRequest) -> Result<ReadTextFileResponse, RpcError> {
        let (line, limit) = (request.line.map(u64::from), request.limit.map(u64::from));
        // Some count from 0; nothing is before the first line.
        let read = files(self)?.read_lines(absolute(&request.path)?, line.map(|line| line.max(1)), limit);
        let text = read.map_err(|refused| refusal(&refused))?;
        if text.len() > FILE_ANSWER_BYTES_MAX {
            let (max, got) = (FILE_ANSWER_BYTES_MAX, text.len());
            let why = format!("expected at most {max} bytes at a time, got {got}: ask with line and limit");
            return Err(RpcError::invalid_params().data(why));
        }
        Ok(ReadTextFileResponse::new(text))
    }

    pub(super) fn write(
        &self,
        request: WriteTextFileRequest,
        responder: Responder<WriteTextFileResponse>,
    ) -> Result<(), RpcError> {
        if let Err(error) = files(self) {
            return responder.respond_with_error(error);
        }
        let input = json!({"path": request.path, "content": request.content});
        let wish = || Wish { tool: "write_file".to_owned(), input, ..Wish::default() };
        self.through(responder, wish, move |serving, entry| {
            let written = serving.write_now(&request);
            serving.leave(entry, &written, |_| format!("wrote {} bytes", request.content.len()));
            written
        })
    }

    fn write_now(&self, request: &WriteTextFileRequest) -> Result<WriteTextFileResponse, RpcError> {
        let written = files(self)?.write_text(absolute(&request.path)?, &request.content);
        written.map(|()| WriteTextFileResponse::new()).map_err(|refused| refusal(&refused))
    }

    pub(super) fn create(
        &self,
        request: CreateTerminalRequest,
        responder: Responder<CreateTerminalResponse>,
    ) -> Result<(), RpcError> {
        if let Err(error) = terminals(self) {
            return responder.respond_with_error(error);
        }
        let env: BTreeMap<&str, &str> =
            request.env.iter().map(|variable| (variable.name.as_str(), variable.value.as_str())).collect();
        let input = json!({"command": request.command, "args": request.args, "env": env, "cwd": request.cwd});
        let wish = || Wish { tool: "run_command".to_owned(), input, ..Wish::default() };
        self.through(responder, wish, move |serving, entry| {
            // What a program gave is known when it has ended.
            let account = entry
                .zip(serving.gate.clone())
                .map(|(entry, gate)| -> Account { Box::new(move |gave| gate.leave(entry, &gave)) });
            serving.create_now(request, account)
        })
    }

    fn create_now(
        &self,
        request: CreateTerminalRequest,
        account: Option<Account>,
    ) -> Result<CreateTerminalResponse, RpcError> {
        let mut words = vec![request.command];
        words.extend(request.args);
        let env = request.env.into_iter().map(|variable| (variable.name, variable.value));
        let limit = request.output_byte_limit.and_then(|limit| usize::try_from(limit).ok());
        let made = terminals(self)?.create(words, env.collect(), request.cwd.as_deref(), limit, account);
        made.map(CreateTerminalResponse::new).map_err(|why| RpcError::invalid_params().data(why))
    }

    pub(super) fn output(&self, request: &TerminalOutputRequest) -> Result<TerminalOutputResponse, RpcError> {
        let (text, is_cut, ended) =
            terminals(self)?.output(&request.terminal_id.0).ok_or_else(|| unknown(&request.terminal_id.0))?;
        Ok(TerminalOutputResponse::new(text, is_cut).exit_status(ended))
    }

    /// Answers once the program has ended.
    pub(super) fn wait(
        &self,
        request: &WaitForTerminalExitRequest,
        responder: Responder<WaitForTerminalExitResponse>,
    ) {
        let known = terminals(self).and_then(|terminals| {
            terminals.get(&request.terminal_id.0).ok_or_else(|| unknown(&request.terminal_id.0))
        });
        // Whoever is gone is not answered.
        let _ = match known {
            Ok(terminal) => {
                let answer = move |ended| drop(responder.respond(WaitForTerminalExitResponse::new(ended)));
                terminal.wait(Box::new(answer));
                Ok(())
            }
            Err(error) => responder.respond_with_error(error),
        };
    }

    pub(super) fn kill(&self, request: &KillTerminalRequest) -> Result<KillTerminalResponse, RpcError> {
        let is_known = terminals(self)?.kill(&request.terminal_id.0);
        if is_known { Ok(KillTerminalResponse::new()) } else { Err(unknown(&request.terminal_id.0)) }
    }

    pub(super) fn release(
        &self,
        request: &ReleaseTerminalRequest,
    ) -> Result<ReleaseTerminalResponse, RpcError> {
        let is_known = terminals(self)?.release(&request.terminal_id.0);
        if is_known { Ok(ReleaseTerminalResponse::new()) } else { Err(unknown(&request.terminal_id.0)) }
    }
}

fn files(serving: &Serving) -> Result<&ToolRunner, RpcError> {
    serving.files.as_deref().ok_or_else(RpcError::method_not_found)
}

fn terminals(serving: &Serving) -> Result<&Terminals, RpcError> {
    serving.terminals.as_deref().ok_or_else(RpcError::method_not_found)
}

/// The protocol has absolute paths only.
fn absolute(path: &Path) -> Result<&Path, RpcError> {
    let why = || RpcError::invalid_params().data(format!("path: expected an absolute path, got {path:?}"));
    if path.is_absolute() { Ok(path) } else { Err(why()) }
}

fn unknown(id: &str) -> RpcError {
    RpcError::new(NOT_FOUND, format!("there is no terminal {id:?}"))
}

fn refusal(refused: &Refused) -> RpcError {
    match refused {
        Refused::Missing(_) => RpcError::new(NOT_FOUND, refused.to_string()),
        Refused::Io(..) | Refused::OldKernel => RpcError::internal_error().data(refused.to_string()),
        _ => RpcError::invalid_params().data(refused.to_string()),
    }
}
