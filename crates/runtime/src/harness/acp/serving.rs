//! What an agent asks of its client besides permissions: files and terminals, through the same wall as every tool.
//!
//! A file that does not exist is answered with -32002. One agent (Gemini) then cannot make new files; for it `fs` stays off, and it writes by itself.

use std::path::Path;
use std::sync::Arc;

use agent_client_protocol::Error as RpcError;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse,
    ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest, ReleaseTerminalResponse,
    TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest, WaitForTerminalExitResponse,
    WriteTextFileRequest, WriteTextFileResponse,
};

use super::Setup;
use super::terminals::Terminals;
use crate::limits::FILE_ANSWER_BYTES_MAX;
use crate::tools::{Refused, ToolRunner};

/// A resource that is not there, as the protocol has it.
const NOT_FOUND: i32 = -32002;

/// What is offered to one agent.
#[derive(Debug, Clone)]
pub(super) struct Serving {
    files: Option<Arc<ToolRunner>>,
    terminals: Option<Arc<Terminals>>,
}

impl Serving {
    pub(super) fn new(setup: &Setup) -> Self {
        let files = setup.tools.clone().filter(|_| setup.fs);
        let terminals = setup.tools.clone().filter(|_| setup.terminal);
        Serving { files, terminals: terminals.map(|tools| Arc::new(Terminals::new(tools))) }
    }

    pub(super) fn has_files(&self) -> bool {
        self.files.is_some()
    }

    pub(super) fn has_terminals(&self) -> bool {
        self.terminals.is_some()
    }

    /// Ends every terminal.
    pub(super) fn end(&self) {
        if let Some(terminals) = &self.terminals {
            terminals.end();
        }
    }

    pub(super) fn read(&self, request: &ReadTextFileRequest) -> Result<ReadTextFileResponse, RpcError> {
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

    pub(super) fn write(&self, request: &WriteTextFileRequest) -> Result<WriteTextFileResponse, RpcError> {
        let written = files(self)?.write_text(absolute(&request.path)?, &request.content);
        written.map(|()| WriteTextFileResponse::new()).map_err(|refused| refusal(&refused))
    }

    pub(super) fn create(&self, request: CreateTerminalRequest) -> Result<CreateTerminalResponse, RpcError> {
        let mut words = vec![request.command];
        words.extend(request.args);
        let env = request.env.into_iter().map(|variable| (variable.name, variable.value));
        let limit = request.output_byte_limit.and_then(|limit| usize::try_from(limit).ok());
        let made = terminals(self)?.create(words, env.collect(), request.cwd.as_deref(), limit);
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
