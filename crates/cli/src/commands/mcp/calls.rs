//! Which command does what a tool is asked for, and what is made of its answer.

use baton_core::roles::OWN_AGENT;
use baton_core::task::Status;
use baton_core::{AgentName, TaskId};
use baton_store::clock;
use baton_store::tasks::tree::{Found, RealTree, Tree as _};
use serde_json::{Map, Value, json};

use super::answer::{self, Answer};
use super::server::Server;
use super::tools::Name;
use crate::commands::runner::{Invocation, Ran};
use crate::limits::{MCP_CALL_WAIT, MCP_LIST_DEFAULT, MCP_QUESTION_WAIT};
use baton_server::field::Arguments;

/// Where the summary of a completion lies in the folder of its task.
const SUMMARY: &str = "outputs/summary.md";

/// One call, of whom and about what.
pub(super) struct Call<'a> {
    pub(super) server: &'a Server,
    pub(super) arguments: &'a Arguments,
    /// The task that it is about, where it is about one.
    pub(super) task: Option<TaskId>,
    pub(super) fence: Option<u64>,
}

impl Call<'_> {
    /// Does what a tool is asked for.
    pub(super) async fn run(&self, name: Name) -> Answer {
        match name {
            Name::GetTask => self.command(&["task", "show", self.task()?.as_str()]).await,
            Name::ListReady => self.list().await,
            Name::ClaimTask => self.claim().await,
            Name::Heartbeat => self.beat().await,
            Name::ReportProgress => self.progress().await,
            Name::ReportCompletion => self.complete().await,
            Name::RequestHandoff => self.hand_over().await,
            Name::AnswerHandoff => self.answer_handoff().await,
            Name::CreateTask => self.create().await,
            Name::AskHuman => self.ask().await,
            Name::SubmitProposal => self.submit(|fields| json!({"proposal": fields})).await,
            Name::SubmitReview => self.submit(|fields| json!({"review": fields})).await,
            Name::DeclareIntent => self.submit(|fields| json!({"intent": fields})).await,
            Name::SubmitClaim => self.submit(|fields| json!({"claims": [fields]})).await,
            Name::ChallengeClaim => self.submit(|fields| json!({"challenges": [fields]})).await,
            Name::FinishPhase => self.finish().await,
            Name::VerifyTrace => self.verify().await,
        }
    }

    fn task(&self) -> Result<&TaskId, String> {
        self.task.as_ref().ok_or_else(|| "task is missing: say which task is meant".to_owned())
    }

    fn agent(&self) -> Result<&AgentName, String> {
        self.server.binding.agent.as_ref().ok_or_else(|| "nobody is named who acts".to_owned())
    }

    fn fence(&self) -> Result<u64, String> {
        let missing = "fence is missing: the task was not claimed through this server\n\
                       next: claim it with claim_task, or say the fence that the claim gave";
        self.fence.ok_or_else(|| missing.to_owned())
    }

    /// Runs a command that takes nothing on its standard input.
    async fn command(&self, args: &[&str]) -> Answer {
        answer::of(&self.ran(args.iter().map(|&arg| arg.to_owned()).collect(), String::new()).await?)
    }

    async fn ran(&self, args: Vec<String>, stdin: String) -> Result<Ran, String> {
        self.server.run(Invocation { args, stdin, wait: MCP_CALL_WAIT }).await
    }

    /// A verdict is an answer, whatever it is.
    async fn verify(&self) -> Answer {
        let ran = self.ran(vec!["verify".to_owned(), self.task()?.to_string()], String::new()).await?;
        match ran.code {
            Some(7 | 8) if !ran.stdout.trim().is_empty() => Ok(ran.stdout.trim().to_owned()),
            _ => answer::of(&ran),
        }
    }

    async fn list(&self) -> Answer {
        let printed = self.command(&["task", "ls", "--status", "ready"]).await?;
        let limit = self.arguments.number("limit").unwrap_or(MCP_LIST_DEFAULT);
        let Ok(Value::Object(mut list)) = serde_json::from_str::<Value>(&printed) else { return Ok(printed) };
        if let Some(Value::Array(tasks)) = list.get_mut("tasks") {
            let more = tasks.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
            tasks.truncate(tasks.len() - more);
            list.insert("more".to_owned(), more.into());
        }
        Ok(Value::Object(list).to_string())
    }

    async fn claim(&self) -> Answer {
        let mut args = vec!["task".to_owned(), "claim".to_owned(), self.task()?.to_string()];
        args.push(format!("--agent={}", self.agent()?));
        args.extend(self.arguments.text("ttl").map(|ttl| format!("--ttl={ttl}")));
        let ran = self.ran(args, String::new()).await?;
        let lease: Option<Value> = serde_json::from_str(ran.stdout.trim()).ok();
        if let Some(fence) = lease.and_then(|lease| lease["fence"].as_u64()) {
            self.server.remember(self.task()?.clone(), fence);
        }
        answer::of(&ran)
    }

    async fn beat(&self) -> Answer {
        let (agent, fence) = (format!("--agent={}", self.agent()?), format!("--fence={}", self.fence()?));
        self.command(&["task", "beat", self.task()?.as_str(), &agent, &fence]).await
    }

    /// Sends a message about a task in the name of whoever acts.
    async fn send(&self, kind: &str, about: &TaskId, to: &str, payload: Map<String, Value>) -> Answer {
        let mut message = json!({
            "protocol": "aof",
            "version": 1,
            "type": kind,
            "taskId": about.as_str(),
            "fromAgent": self.agent()?.as_str(),
            "toAgent": to,
            "sentAt": clock::now().to_string(),
            "payload": payload,
        });
        if let Some(fence) = self.fence {
            message["fence"] = fence.into();
        }
        answer::of(&self.ran(vec!["send".to_owned(), "-".to_owned()], message.to_string()).await?)
    }

    /// The arguments that are there, under the names that a message has for them.
    fn payload(&self, names: &[(&str, &str)]) -> Map<String, Value> {
        let given = names.iter().filter_map(|(ours, theirs)| {
            self.arguments.get(ours).map(|value| ((*theirs).to_owned(), value.clone()))
        });
        given.collect()
    }

    async fn progress(&self) -> Answer {
        let task = self.task()?;
        let names =
            [("progress", "progress"), ("status", "status"), ("blockers", "blockers"), ("notes", "notes")];
        let mut payload = self.payload(&names);
        if payload.is_empty() {
            return Err(
                "there is nothing to report: say at least one of progress, blockers, notes and status"
                    .to_owned(),
            );
        }
        payload.insert("taskId".to_owned(), task.as_str().into());
        payload.insert("agentId".to_owned(), self.agent()?.as_str().into());
        self.send("status.update", task, OWN_AGENT, payload).await
    }

    async fn complete(&self) -> Answer {
        let task = self.task()?;
        let (summary, path) = (self.arguments.text("summary"), self.arguments.text("summary_path"));
        let summary_ref = match (summary, path) {
            (Some(_), Some(_)) => return Err("say either summary or summary_path, not both".to_owned()),
            (None, None) => {
                return Err("summary is missing: say what was done and how it was checked".to_owned());
            }
            (Some(text), None) => {
                self.write_summary(task, text).await?;
                SUMMARY
            }
            (None, Some(path)) => path,
        };
        let names = [("outcome", "outcome"), ("deliverables", "deliverables"), ("blockers", "blockers")];
        let mut payload = self.payload(&names);
        payload.insert("summaryRef".to_owned(), summary_ref.into());
        let none = json!({"total": 0, "passed": 0, "failed": 0});
        payload.insert("tests".to_owned(), self.arguments.get("tests").cloned().unwrap_or(none));
        payload.insert("notes".to_owned(), self.arguments.text("notes").unwrap_or_default().into());
        self.send("completion.report", task, OWN_AGENT, payload).await
    }

    /// Puts the summary where the report says it is: into the folder of the task, wherever that is now.
    async fn write_summary(&self, task: &TaskId, text: &str) -> Result<(), String> {
        let shown = self.command(&["task", "show", task.as_str()]).await?;
        let status = serde_json::from_str::<Value>(&shown).ok();
        let status = status.and_then(|shown| shown["status"].as_str()?.parse::<Status>().ok());
        let status = status.ok_or("the task does not say where it stands")?;
        let folder = format!("tasks/{status}/{task}");
        let (root, text) = (self.server.data_dir(), format!("{}\n", text.trim_end()));
        let write = move || -> std::io::Result<()> {
            let tree = RealTree::open(&root)?;
            let path = format!("{folder}/{SUMMARY}");
            tree.make_dir(&folder)?;
            tree.make_dir(&format!("{folder}/outputs"))?;
            match tree.look(&path)? {
                Some(Found::File(_)) => tree.rewrite(&path, text.as_bytes(), None).map(drop),
                _ => tree.create(&path, text.as_bytes()).map(drop),
            }
        };
        let written = tokio::task::spawn_blocking(write).await.map_err(|error| error.to_string())?;
        written.map_err(|error| {
            format!(
                "the summary cannot be written to {SUMMARY} of the task: {error}\n\
                 next: write it to a file in the workspace yourself, and name it with summary_path"
            )
        })
    }

    async fn hand_over(&self) -> Answer {
        let names = [
            ("child", "taskId"),
            ("to_agent", "toAgent"),
            ("due_by", "dueBy"),
            ("acceptance_criteria", "acceptanceCriteria"),
            ("expected_outputs", "expectedOutputs"),
            ("context_refs", "contextRefs"),
            ("constraints", "constraints"),
        ];
        let mut payload = self.payload(&names);
        let child: TaskId = self.arguments.text("child").unwrap_or_default().parse().map_err(not_an_id)?;
        let to = self.arguments.text("to_agent").unwrap_or_default().to_owned();
        payload.insert("parentTaskId".to_owned(), self.task()?.as_str().into());
        payload.insert("fromAgent".to_owned(), self.agent()?.as_str().into());
        self.send("handoff.request", &child, &to, payload).await
    }

    async fn answer_handoff(&self) -> Answer {
        let task = self.task()?;
        let accepted = self.arguments.is_set("accept");
        let mut payload = self.payload(&[("reason", "reason")]);
        if accepted {
            payload.remove("reason");
        } else if self.arguments.text("reason").is_none_or(|reason| reason.trim().is_empty()) {
            return Err("reason is missing: a refusal says why".to_owned());
        }
        payload.insert("taskId".to_owned(), task.as_str().into());
        payload.insert("accepted".to_owned(), accepted.into());
        let kind = if accepted { "handoff.accepted" } else { "handoff.rejected" };
        self.send(kind, task, OWN_AGENT, payload).await
    }

    async fn create(&self) -> Answer {
        let mut args = vec!["task".to_owned(), "new".to_owned()];
        for name in ["priority", "agent", "role", "parent"] {
            args.extend(self.arguments.text(name).map(|value| format!("--{name}={value}")));
        }
        if let Some(bound) = &self.server.binding.task {
            args.push(format!("--parent={}", bound.task));
        }
        args.extend(self.arguments.list("depends_on").map(|id| format!("--depends-on={id}")));
        if self.arguments.is_set("ready") {
            args.push("--ready".to_owned());
        }
        let text = self.arguments.text("text").unwrap_or_default();
        if !text.is_empty() {
            args.push("--file=-".to_owned());
        }
        // Whatever it begins with, it is the title.
        args.extend(["--".to_owned(), self.arguments.text("title").unwrap_or_default().to_owned()]);
        answer::of(&self.ran(args, text.to_owned()).await?)
    }

    async fn ask(&self) -> Answer {
        let nobody = |why: &str| {
            format!(
                "nobody answered{why}\nnext: go on with what is safest and can be undone, and say in your report what you \
                 assumed; where that is not possible, report the outcome blocked with the question as blocker"
            )
        };
        let session = self.server.binding.session.as_ref().ok_or_else(|| nobody(": there is no session"))?;
        let question = self.arguments.text("question").unwrap_or_default();
        if question.trim().is_empty() {
            return Err("question is empty: say what you want to know".to_owned());
        }
        let args = ["session", "ask", session.as_str(), "--text", "-"].map(str::to_owned).to_vec();
        let asked = Invocation { args, stdin: question.to_owned(), wait: MCP_QUESTION_WAIT };
        let ran = self.server.question(asked).await.map_err(|why| nobody(&format!(": {why}")))?;
        let said: Value = serde_json::from_str(ran.stdout.trim()).unwrap_or_default();
        match (ran.code, said["answered"].as_bool(), said["text"].as_str()) {
            (Some(0), Some(true), Some(text)) => Ok(text.to_owned()),
            (Some(0), Some(false), _) => Ok(nobody(" within 10 minutes")),
            _ => Err(nobody(&answer::of(&ran).err().map(|why| format!(": {why}")).unwrap_or_default())),
        }
    }

    /// Hands in what a player of a guarded run says.
    async fn submit(&self, answer: impl FnOnce(&Map<String, Value>) -> Value) -> Answer {
        let session = self.server.binding.session.as_ref();
        let session = session.ok_or_else(|| "there is no session: nobody plays a part here".to_owned())?;
        let args = vec!["session".to_owned(), "submit".to_owned(), session.to_string()];
        answer::of(&self.ran(args, answer(self.arguments.all()).to_string()).await?)
    }

    async fn finish(&self) -> Answer {
        let names = [
            ("phase", "phase_completed"),
            ("exit_reason", "exit_reason"),
            ("pr_url", "pr_url"),
            ("evidence_path", "evidence_bundle_ref"),
            ("notes", "notes"),
        ];
        let mut signal = self.payload(&names);
        signal.insert("protocol".to_owned(), "apm2_agent_exit".into());
        signal.insert("version".to_owned(), "1.0.0".into());
        let mut args = vec!["exit".to_owned(), "submit".to_owned(), format!("--task={}", self.task()?)];
        args.push(format!("--agent={}", self.agent()?));
        args.push(format!("--fence={}", self.fence()?));
        args.extend(self.server.binding.session.as_ref().map(|session| format!("--session={session}")));
        args.push("-".to_owned());
        answer::of(&self.ran(args, Value::Object(signal).to_string()).await?)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "handed over by map_err")]
fn not_an_id(error: baton_core::ids::Error) -> String {
    format!("child: {error}")
}
