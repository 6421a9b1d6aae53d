//! The server as the protocol sees it: who it is, what it offers, and each call on its own, so that none waits for another.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use baton_core::TaskId;
use baton_core::nearest::nearest;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, InitializeResult, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ServerHandler, ServiceExt as _};
use tokio::io::DuplexStream;
use tokio::sync::{Semaphore, watch};

use super::answer::{self, Answer};
use super::binding::Binding;
use super::calls::Call;
use super::tools::{About, TOOLS, Tool};
use super::transport::{Messages, Writing};
use crate::commands::runner::{Invocation, Ran, Runner};
use crate::limits::{MCP_CALLS_MAX, MCP_FENCES_MAX, MCP_QUESTIONS_MAX};
use baton_server::field::Arguments;

/// What a call needs: who acts, and our own program.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) binding: Binding,
    runner: Runner,
    calls: Semaphore,
    questions: Semaphore,
    /// Fences of the claims that were made through it.
    fences: Mutex<BTreeMap<TaskId, u64>>,
    /// Whether the client has gone.
    gone: watch::Sender<bool>,
}

/// Serves one client over the standard streams until it goes.
pub(super) async fn serve(server: Server) -> io::Result<Writing> {
    let (messages, writing) = Messages::start(server.gone.clone())?;
    // A client that goes before it has said who it is wanted nothing.
    if let Ok(running) = server.serve(messages).await {
        let _ = running.waiting().await;
    }
    Ok(writing)
}

/// Serves one client over a stream of lines, on a task of its own, until it goes.
pub(super) fn serve_stream(server: Server, stream: DuplexStream) {
    let gone = server.gone.clone();
    tokio::spawn(async move {
        if let Ok(running) = server.serve(tokio::io::split(stream)).await {
            let _ = running.waiting().await;
        }
        gone.send_replace(true);
    });
}

impl Server {
    pub(super) fn new(binding: Binding, runner: Runner) -> Self {
        Server {
            binding,
            runner,
            calls: Semaphore::new(MCP_CALLS_MAX),
            questions: Semaphore::new(MCP_QUESTIONS_MAX),
            fences: Mutex::default(),
            gone: watch::Sender::new(false),
        }
    }

    pub(super) fn data_dir(&self) -> PathBuf {
        self.runner.data_dir().to_owned()
    }

    /// Runs a command in its turn.
    pub(super) async fn run(&self, invocation: Invocation) -> Result<Ran, String> {
        let _turn = self.calls.acquire().await.map_err(|error| error.to_string())?;
        self.runner.run(invocation).await
    }

    /// Runs a command that waits for a person, as long as the client does.
    pub(super) async fn question(&self, invocation: Invocation) -> Result<Ran, String> {
        let full = "too many questions wait for an answer already";
        let _turn = self.questions.try_acquire().map_err(|_| full.to_owned())?;
        let mut gone = self.gone.subscribe();
        tokio::select! {
            ran = self.runner.run(invocation) => ran,
            _ = gone.wait_for(|is_gone| *is_gone) => Err("the client has gone".to_owned()),
        }
    }

    fn fences(&self) -> std::sync::MutexGuard<'_, BTreeMap<TaskId, u64>> {
        self.fences.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the fence of a claim, for what is said about the task later.
    pub(super) fn remember(&self, task: TaskId, fence: u64) {
        let mut fences = self.fences();
        if fences.len() >= MCP_FENCES_MAX && !fences.contains_key(&task) {
            // The least of them is the oldest claim.
            let oldest = fences.iter().min_by_key(|(_, fence)| **fence).map(|(task, _)| task.clone());
            oldest.map(|task| fences.remove(&task));
        }
        fences.insert(task, fence);
    }

    /// Does one call, or says why not.
    async fn call(&self, tool: &Tool, params: CallToolRequestParams) -> Answer {
        // Whoever plays a part is refused where that is recorded.
        let is_played = self.binding.guard.is_some() && tool.about == About::Guard;
        if let Some(why) = tool.refusal(&self.binding).filter(|_| !is_played) {
            return Err(why);
        }
        let arguments = Arguments::check(&tool.fields(&self.binding), params.arguments.unwrap_or_default())
            .map_err(|why| {
            format!("{why}\nnext: mend the argument, and call {} again", tool.name.as_str())
        })?;
        let given: Option<TaskId> = arguments.text("task").and_then(|text| text.parse().ok());
        let (task, fence) = match &self.binding.task {
            Some(bound) => {
                if let Some(other) = given.filter(|given| *given != bound.task) {
                    return Err(format!(
                        "this session works on {} and on nothing else; {other} is not its task\n\
                         next: leave task out, or say {}",
                        bound.task, bound.task
                    ));
                }
                let is_about_it =
                    !matches!(tool.about, About::Board | About::New | About::Session | About::Guard);
                (is_about_it.then(|| bound.task.clone()), Some(bound.fence))
            }
            None => {
                let remembered = given.as_ref().and_then(|task| self.fences().get(task).copied());
                (given, arguments.number("fence").or(remembered))
            }
        };
        Call { server: self, arguments: &arguments, task, fence }.run(tool.name).await
    }

    fn instructions(&self) -> String {
        let ending = "If a tool says that the task is not yours any more, stop at once.";
        match &self.binding.task {
            Some(bound) => format!(
                "You work on one task, {}, which is yours for now. Read it with get_task before you begin. Say with \
                 report_progress what you have done after each notable step; call heartbeat in long silent work. When you are \
                 through, call report_completion once, as the last thing, with an honest outcome and a summary; or finish_phase \
                 where you were told to end a phase. {ending}",
                bound.task
            ),
            None => format!(
                "Baton keeps tasks for coding agents. Find one with list_ready, take it with claim_task before you change \
                 anything, read it with get_task, say with report_progress what you have done, call heartbeat every few minutes, \
                 and end with report_completion: an honest outcome and a summary. {ending}"
            ),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> InitializeResult {
        InitializeResult::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("baton", env!("CARGO_PKG_VERSION")).with_title("Baton"))
            .with_instructions(self.instructions())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let offered = TOOLS.iter().filter(|tool| tool.refusal(&self.binding).is_none());
        Ok(ListToolsResult::with_all_items(offered.map(|tool| tool.offered(&self.binding)).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name.as_str() == request.name) else {
            let shown: String = request.name.chars().take(80).collect();
            let near = nearest(&request.name, TOOLS.iter().map(|tool| tool.name.as_str()), 1);
            let meant = near.first().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            return Err(ErrorData::invalid_params(format!("there is no tool {shown:?}{meant}"), None));
        };
        Ok(answer::to_result(self.call(tool, request).await).into())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use baton_core::Role;
    use serde_json::{Value, json};

    use super::*;
    use crate::commands::runner::tests::{block_on, scripted};

    /// A server in a session whose questions are answered by this script, and everything else at once.
    fn server(answer: &str) -> (tempfile::TempDir, Server) {
        let script =
            format!("case \"$3\" in session) cat > question; {answer} ;; *) echo '{{\"v\":1}}' ;; esac");
        let (dir, runner) = scripted(&format!("cd \"${{0%/*}}\"; {script}"));
        let (agent, session) = (Some("ada".parse().unwrap()), Some("sess_1".parse().unwrap()));
        let binding = Binding { agent, role: Role::Executor, task: None, session, guard: None };
        (dir, Server::new(binding, runner))
    }

    async fn call(server: &Server, name: &'static str, arguments: Value) -> Answer {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let tool = TOOLS.iter().find(|tool| tool.name.as_str() == name).unwrap();
        server.call(tool, CallToolRequestParams::new(name).with_arguments(arguments)).await
    }

    fn ask(answer: &str) -> (Answer, String) {
        let (dir, server) = server(answer);
        let said = block_on(call(&server, "ask_human", json!({"question": "May I?"})));
        (said, std::fs::read_to_string(dir.path().join("question")).unwrap_or_default())
    }

    #[test]
    fn an_answer_of_a_person_is_given_as_it_is_and_silence_is_said() {
        let (said, asked) = ask("echo '{\"answered\":true,\"text\":\"Yes, do.\"}'");
        assert_eq!((said.unwrap().as_str(), asked.as_str()), ("Yes, do.", "May I?"));
        let (said, _) = ask("echo '{\"answered\":false}'");
        assert!(said.unwrap().starts_with("nobody answered within 10 minutes\nnext: "));
        let (said, _) = ask("echo '{\"error\":{\"code\":\"S004\",\"message\":\"no session\"}}' >&2; exit 3");
        assert!(said.unwrap_err().starts_with("nobody answered: no session [S004]"));
    }

    #[test]
    fn a_question_holds_nothing_up_and_ends_with_its_client() {
        let (_dir, server) = server("exec sleep 1000");
        block_on(async {
            let began = Instant::now();
            let question = call(&server, "ask_human", json!({"question": "May I?"}));
            let meanwhile = async {
                for _ in 0..20 {
                    call(&server, "list_ready", json!({})).await.unwrap();
                }
                server.gone.send_replace(true);
            };
            let (said, ()) = tokio::join!(question, meanwhile);
            assert!(said.unwrap_err().contains("the client has gone"));
            assert!(began.elapsed() < Duration::from_secs(30));
        });
    }

    #[test]
    fn questions_at_once_are_bounded_and_so_are_the_fences() {
        let (_dir, server) = server("exec sleep 1000");
        let _all = server.questions.try_acquire_many(MCP_QUESTIONS_MAX as u32).unwrap();
        let said = block_on(call(&server, "ask_human", json!({"question": "May I?"})));
        assert!(said.unwrap_err().contains("too many questions"));
        let task = |n: usize| format!("TASK-2026-02-09-{n:03}").parse::<TaskId>().unwrap();
        for n in 1..=MCP_FENCES_MAX + 1 {
            server.remember(task(n), n as u64);
        }
        let fences = server.fences();
        assert_eq!(
            (fences.len(), fences.get(&task(1)), fences.get(&task(2))),
            (MCP_FENCES_MAX, None, Some(&2))
        );
    }
}
