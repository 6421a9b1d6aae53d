//! Baton as an agent in an editor, which is the official client of the protocol: prompts, permissions, cancelling, ends, and loading.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, InitializeRequest, ListSessionsRequest, LoadSessionRequest, NewSessionRequest,
    PromptRequest, PromptResponse, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, SessionId, SessionNotification, StopReason,
};
use agent_client_protocol::{Agent, Client, Error, Lines};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Child;
use tokio::sync::oneshot;

use crate::serve::Serving;
use crate::support::{Home, until};
use crate::task_support::text;

const SOON: Duration = Duration::from_secs(60);

/// What the editor answers to what it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Choose(&'static str),
    Never,
}

/// An editor with `baton acp` as its agent.
struct Editor {
    connection: ConnectionTo<Agent>,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
    child: Child,
    end: oneshot::Sender<()>,
}

impl Editor {
    async fn start(home: &Home, answer: Answer) -> Editor {
        let mut command = home.command(&["acp", "--agent", "mock"]);
        command.stdin(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let outgoing = futures::sink::unfold(input, |mut input, line: String| async move {
            input.write_all(format!("{line}\n").as_bytes()).await?;
            input.flush().await?;
            Ok::<_, std::io::Error>(input)
        });
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let incoming = futures::stream::unfold(lines, |mut lines| async move {
            let line = lines.next_line().await.transpose()?;
            Some((line, lines))
        });
        let seen: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let ((give, connection), (end, ended)) = (oneshot::channel(), oneshot::channel());
        let (noted, asked) = (seen.clone(), seen.clone());
        tokio::spawn(async move {
            let talked = Client
                .v1()
                .name("editor")
                .on_receive_notification(
                    async move |told: SessionNotification, _| {
                        let update = serde_json::to_value(&told.update).unwrap();
                        noted.lock().unwrap().push((told.session_id.to_string(), update));
                        Ok(())
                    },
                    agent_client_protocol::on_receive_notification!(),
                )
                .on_receive_request(
                    async move |request: RequestPermissionRequest, responder, _| {
                        let told = json!({"asked": serde_json::to_value(&request).unwrap()});
                        asked.lock().unwrap().push((request.session_id.to_string(), told));
                        let Answer::Choose(option) = answer else {
                            // Held until the connection ends.
                            std::mem::forget(responder);
                            return Ok(());
                        };
                        let chosen = SelectedPermissionOutcome::new(option);
                        responder.respond(RequestPermissionResponse::new(RequestPermissionOutcome::Selected(
                            chosen,
                        )))
                    },
                    agent_client_protocol::on_receive_request!(),
                )
                .connect_with(Lines::new(Box::pin(outgoing), Box::pin(incoming)), async move |connection| {
                    let _ = give.send(connection);
                    let _: Result<(), _> = ended.await;
                    Ok(())
                })
                .await;
            drop(talked);
        });
        let connection = connection.await.unwrap();
        let editor = Editor { connection, seen, child, end };
        let hello = editor.connection.send_request(InitializeRequest::new(ProtocolVersion::V1));
        let known = hello.block_task().await.unwrap();
        assert_eq!(known.protocol_version, ProtocolVersion::V1);
        assert!(known.agent_capabilities.load_session && known.auth_methods.is_empty());
        assert_eq!(known.agent_info.unwrap().name, "baton");
        editor
    }

    async fn open(&self, home: &Home) -> SessionId {
        let new = NewSessionRequest::new(home.work());
        self.connection.send_request(new).block_task().await.unwrap().session_id
    }

    async fn prompt(&self, session: &SessionId, text: &str) -> Result<PromptResponse, Error> {
        let blocks = vec![text.to_owned().into()];
        let asked = self.connection.send_request(PromptRequest::new(session.clone(), blocks)).block_task();
        tokio::time::timeout(SOON, asked).await.expect("an answer")
    }

    /// A prompt that ends like this; gives its task.
    async fn ends(&self, session: &SessionId, text: &str, stop: StopReason) -> String {
        let ended = self.prompt(session, text).await.unwrap();
        assert_eq!(ended.stop_reason, stop, "{text}: {ended:?}");
        task_of(&ended)
    }

    /// The updates of a kind, of all sessions or of one.
    fn updates(&self, session: Option<&SessionId>, kind: &str) -> Vec<Value> {
        let seen = self.seen.lock().unwrap();
        let of = seen.iter().filter(|(id, _)| session.is_none_or(|session| session.to_string() == *id));
        of.filter(|(_, update)| update["sessionUpdate"] == kind || !update[kind].is_null())
            .map(|(_, update)| update.clone())
            .collect()
    }

    /// The text of all pieces of a kind.
    fn said(&self, session: &SessionId, kind: &str) -> String {
        self.updates(Some(session), kind).iter().map(|update| text(&update["content"]["text"])).collect()
    }

    async fn until(&self, what: &str, holds: impl Fn(&Editor) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            assert!(began.elapsed() < SOON, "never: {what}: {:?}", self.seen.lock().unwrap());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Closes the editor; the agent ends by itself.
    async fn close(mut self) {
        drop(self.end);
        let ended = tokio::time::timeout(SOON, self.child.wait()).await.expect("it ends with its editor");
        assert!(ended.unwrap().success());
    }
}

fn task_of(ended: &PromptResponse) -> String {
    let meta = serde_json::to_value(&ended.meta).unwrap();
    text(&meta["baton"]["taskId"])
}

fn run(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}

/// Whether any process works below a place.
pub(crate) fn is_inhabited(place: &Path) -> bool {
    let place = place.canonicalize().unwrap();
    let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut dirs = all.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok());
    dirs.any(|dir| dir.starts_with(&place))
}

/// Everything that an editor does in an ordinary day.
async fn ordinary_day(home: &Home) {
    let editor = Editor::start(home, Answer::Choose("allow")).await;
    let session = editor.open(home).await;
    let task = editor.ends(&session, "hello world", StopReason::EndTurn).await;
    assert_eq!(home.status(&task), "review");
    let shown = home.show(&task);
    assert_eq!(shown["metadata"]["acpSession"], session.to_string());
    let said = editor.said(&session, "agent_message_chunk");
    assert!(
        said.starts_with("hello world ") && said.contains(&format!("{task} is to be reviewed")),
        "{said}"
    );
    assert!(editor.said(&session, "agent_thought_chunk").contains(&task), "which task it is is said at once");

    let other = editor.open(home).await;
    let task = editor.ends(&other, "plan tool write permission complete done", StopReason::EndTurn).await;
    assert!(editor.said(&other, "agent_message_chunk").contains(&format!("{task} is done")));
    let plan = editor.updates(Some(&other), "plan");
    assert_eq!(plan[0]["entries"][1]["content"], "do it", "{plan:?}");
    let calls = editor.updates(Some(&other), "tool_call");
    let titles: Vec<(String, String)> =
        calls.iter().map(|call| (text(&call["title"]), text(&call["kind"]))).collect();
    let expected = [("read_file", "read"), ("write_file", "edit"), ("run_command", "execute")];
    assert_eq!(titles, expected.map(|(title, kind)| (title.to_owned(), kind.to_owned())));
    assert!(calls[1]["locations"][0]["path"].as_str().unwrap().ends_with("mock.txt"), "{}", calls[1]);
    let updates = editor.updates(Some(&other), "tool_call_update");
    for call in &calls {
        let of = updates.iter().filter(|update| update["toolCallId"] == call["toolCallId"]);
        let statuses: Vec<&Value> =
            of.map(|update| &update["status"]).filter(|status| !status.is_null()).collect();
        assert_eq!(statuses, [&json!("in_progress"), &json!("completed")], "{call}");
    }
    let asked = editor.updates(Some(&other), "asked");
    assert_eq!((asked.len(), &asked[0]["asked"]["toolCall"]["toolCallId"]), (1, &calls[2]["toolCallId"]));
    editor.close().await;
}

#[test]
fn a_prompt_becomes_a_task_and_everything_streams_back() {
    let home = Home::new();
    run(ordinary_day(&home));
    until("nothing is left", || !is_inhabited(&home.work()));
    home.verifies();
}

#[test]
fn the_same_while_a_server_runs() {
    let home = Home::new();
    let serving = Serving::start(&home);
    run(ordinary_day(&home));
    assert_eq!(serving.stop(), "");
    home.verifies();
}

#[test]
fn what_the_editor_answers_is_the_answer_of_the_session() {
    for (option, status, answer) in [("allow", "completed", "allow"), ("deny", "failed", "deny")] {
        let home = Home::new();
        run(async {
            let editor = Editor::start(&home, Answer::Choose(option)).await;
            let session = editor.open(&home).await;
            let task = editor.ends(&session, "permission", StopReason::EndTurn).await;
            let last = editor.updates(Some(&session), "tool_call_update").pop().unwrap();
            assert_eq!(last["status"], status, "{last}");
            let resolved = home.records(&task);
            let resolved = resolved.iter().find(|record| record["type"] == "permission_resolved").unwrap();
            assert_eq!(resolved["payload"]["answer"], answer);
            assert_eq!(resolved["payload"]["by"], "operator");
            editor.close().await;
        });
    }
}

#[test]
fn cancelling_stops_the_attempt_and_calls_the_task_off() {
    let home = Home::new();
    run(async {
        let editor = Editor::start(&home, Answer::Never).await;
        for prompt in ["hang", "permission"] {
            let session = editor.open(&home).await;
            let canceling = async {
                let is_there = |editor: &Editor| {
                    let is_begun = editor.said(&session, "agent_thought_chunk").contains("is worked on by");
                    is_begun && (prompt == "hang" || !editor.updates(Some(&session), "asked").is_empty())
                };
                editor.until("the agent is at work", is_there).await;
                editor.connection.send_notification(CancelNotification::new(session.clone())).unwrap();
            };
            let (task, ()) = tokio::join!(editor.ends(&session, prompt, StopReason::Cancelled), canceling);
            assert_eq!(home.status(&task), "cancelled", "{prompt}");
            let run = home.show(&task)["lastRun"].clone();
            assert_eq!(run["sessionState"], "stopped", "{run}");
            // Nothing is left of it: the same session takes the next one.
            let next = editor.ends(&session, "hello", StopReason::EndTurn).await;
            assert_eq!(home.status(&next), "review");
        }
        editor.close().await;
    });
    until("nothing is left", || !is_inhabited(&home.work()));
}

#[test]
fn an_agent_that_crashes_is_told_with_its_last_words() {
    let home = Home::new();
    run(async {
        let editor = Editor::start(&home, Answer::Never).await;
        let session = editor.open(&home).await;
        let task = editor.ends(&session, "crash 3 2", StopReason::EndTurn).await;
        let said = editor.said(&session, "agent_message_chunk");
        for part in ["failed", "exit code 3", "mock: crash line 2 of 2", &task] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(home.status(&task), "ready");
        let task = editor.ends(&session, "complete blocked", StopReason::EndTurn).await;
        assert_eq!(home.status(&task), "blocked");
        assert!(editor.said(&session, "agent_message_chunk").contains(&format!("{task} is blocked")));
        editor.close().await;
    });
}

#[test]
fn a_conversation_is_loaded_from_the_ledger_after_a_restart() {
    let home = Home::new();
    run(async {
        let editor = Editor::start(&home, Answer::Never).await;
        let session = editor.open(&home).await;
        editor.ends(&session, "plan tool", StopReason::EndTurn).await;
        let unused = editor.open(&home).await;
        editor.close().await;

        let editor = Editor::start(&home, Answer::Never).await;
        let load = LoadSessionRequest::new(session.clone(), home.work());
        editor.connection.send_request(load).block_task().await.unwrap();
        assert_eq!(editor.said(&session, "user_message_chunk"), "plan tool");
        assert_eq!(editor.updates(Some(&session), "plan").len(), 1);
        let calls = editor.updates(Some(&session), "tool_call");
        assert_eq!((calls.len(), &calls[0]["status"]), (1, &json!("completed")));
        assert!(editor.said(&session, "agent_message_chunk").contains("is in review"));
        let listed = editor.connection.send_request(ListSessionsRequest::new().cwd(home.work()));
        let listed = listed.block_task().await.unwrap().sessions;
        assert_eq!((listed.len(), &listed[0].session_id), (1, &session));
        assert_eq!(listed[0].title.as_deref(), Some("plan tool"));

        // It goes on, and whoever works on it is told what was said before.
        let task = editor.ends(&session, "and now hello", StopReason::EndTurn).await;
        assert!(editor.said(&session, "agent_message_chunk").contains("and now hello"));
        let body = text(&home.show(&task)["body"]);
        assert!(
            body.starts_with("and now hello\n\n<!-- earlier in acp_") && body.contains("User: plan tool"),
            "{body}"
        );

        for unknown in [unused, SessionId::new("acp_1"), SessionId::new("../../etc")] {
            let load = LoadSessionRequest::new(unknown, home.work());
            let refused = editor.connection.send_request(load).block_task().await.unwrap_err();
            assert_eq!(i32::from(refused.code), -32002, "{refused:?}");
        }
        editor.close().await;
    });
}

#[test]
fn two_sessions_at_once_both_come_to_their_end() {
    let home = Home::new();
    run(async {
        let editor = Editor::start(&home, Answer::Never).await;
        let (one, other) = (editor.open(&home).await, editor.open(&home).await);
        let later = async {
            editor
                .until("the first is at work", |editor| {
                    !editor.updates(Some(&one), "agent_message_chunk").is_empty()
                })
                .await;
            editor.ends(&other, "hello", StopReason::EndTurn).await
        };
        let (first, second) =
            tokio::join!(editor.ends(&one, "slow complete done", StopReason::EndTurn), later);
        assert_ne!(first, second);
        assert!(editor.said(&one, "agent_message_chunk").contains("slow 20 "));
        let waits = editor.said(&other, "agent_thought_chunk");
        assert!(waits.contains("waits: "), "one at a time works in a workspace: {waits}");
        assert!(editor.said(&other, "agent_message_chunk").starts_with("hello "));
        editor.close().await;
    });
    until("nothing is left", || !is_inhabited(&home.work()));
    home.verifies();
}

#[test]
fn nothing_outlives_the_editor() {
    let home = Home::new();
    for is_killed in [false, true] {
        run(async {
            let mut editor = Editor::start(&home, Answer::Never).await;
            let session = editor.open(&home).await;
            let blocks = vec!["hang".to_owned().into()];
            let prompt =
                editor.connection.send_request(PromptRequest::new(session.clone(), blocks)).block_task();
            let prompt = tokio::spawn(prompt);
            let is_begun =
                |editor: &Editor| editor.said(&session, "agent_thought_chunk").contains("is worked on by");
            editor.until("the agent is at work", is_begun).await;
            if is_killed {
                editor.child.kill().await.unwrap();
            } else {
                editor.close().await;
            }
            assert!(prompt.await.unwrap().is_err(), "nobody answers it any more");
        });
        until("nothing is left", || !is_inhabited(&home.work()));
        let session = home.run(&["session", "ls", "--json"]).object()["sessions"][0].clone();
        assert_eq!(session["state"], "stopped", "{session}");
        assert_eq!(home.status(&text(&session["taskId"])), "ready", "it was not called off");
    }
}
