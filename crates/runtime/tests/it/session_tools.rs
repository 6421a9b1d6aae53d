//! Tools in a session: those that a model asks for, what an agent asks of its client, and what an agent does without a word.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use baton_core::session::{
    Answer, EndReason, FailurePolicy, Hook, ProcessEnd, Rules, RunStatus, StateKind, ToolCall, ToolFilter,
    ToolsBy,
};
use baton_runtime::agent::Exit;
use baton_runtime::harness::acp::Setup;
use baton_runtime::harness::{Failure, Harness, Ready, Told, ToolOutput};
use baton_runtime::limits::{TOOL_GRACE, TREE_LOOK_TIME};
use baton_runtime::session::{Ask, SESSION_VARIABLE, Start, Tell};
use baton_runtime::tools::{ToolRunner, ToolSettings};
use serde_json::{Value, json};

use crate::doomed::processes;
use crate::session::{Live, SOON, acp, patient};

/// What a model does when it is sent something.
enum Turn {
    /// Ends it at once, having done something without a word.
    Does(Box<dyn FnOnce() + Send>),
    /// The same, and goes.
    Leaves(Box<dyn FnOnce() + Send>),
    Calls(Vec<(&'static str, Value)>),
    Fails,
    Done,
}

/// A model by script. It speaks from a thread of its own, as real ones do.
#[derive(Debug)]
struct Model {
    say: Sender<Vec<Told>>,
    turns: VecDeque<Turn>,
    given: Sender<Vec<ToolOutput>>,
    calls: usize,
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Turn")
    }
}

impl Model {
    fn start(tell: Tell, turns: Vec<Turn>, given: Sender<Vec<ToolOutput>>) -> Model {
        let (say, said) = channel::<Vec<Told>>();
        std::thread::spawn(move || said.into_iter().flatten().for_each(tell));
        let model = Model { say, turns: turns.into(), given, calls: 0 };
        model.tell(vec![Told::Ready(Ready::default())]);
        model
    }

    fn tell(&self, told: Vec<Told>) {
        self.say.send(told).unwrap();
    }

    fn turn(&mut self) {
        let ended = || Told::TurnEnded { stop: "end_turn".into(), usage: None };
        let told = match self.turns.pop_front().unwrap_or(Turn::Done) {
            Turn::Done => vec![Told::Text { text: "done".into(), is_thought: false }, ended()],
            Turn::Does(does) => {
                does();
                vec![ended()]
            }
            Turn::Leaves(does) => {
                does();
                vec![ended(), exited(false)]
            }
            Turn::Fails => {
                vec![Told::TurnFailed(Failure { retryable: true, ..Failure::new("overloaded") })]
            }
            Turn::Calls(calls) => {
                let call = |(name, arguments): (&str, Value)| {
                    self.calls += 1;
                    let call_id = format!("call_{}", self.calls);
                    Told::Calls(ToolCall {
                        call_id,
                        name: name.into(),
                        arguments,
                        mutating: name != "read_file",
                    })
                };
                let mut told: Vec<Told> = calls.into_iter().map(call).collect();
                told.push(ended());
                told
            }
        };
        self.tell(told);
    }
}

impl Harness for Model {
    fn prompt(&mut self, _: &[String]) -> Result<(), Failure> {
        self.turn();
        Ok(())
    }

    fn outputs(&mut self, outputs: &[ToolOutput]) -> Result<(), Failure> {
        self.given.send(outputs.to_vec()).unwrap();
        self.turn();
        Ok(())
    }

    fn again(&mut self) -> Result<(), Failure> {
        self.given.send(Vec::new()).unwrap();
        self.turn();
        Ok(())
    }

    fn cancel(&mut self) {}

    fn answer(&mut self, id: &str, _: &Answer) {
        panic!("{id} is no question of the model");
    }

    fn stop(&mut self) {
        self.tell(vec![exited(true)]);
    }

    fn pid(&self) -> Option<u32> {
        None
    }
}

fn exited(is_asked: bool) -> Told {
    Told::Exited(Box::new(Exit::without_process(ProcessEnd::Exited(0), is_asked)))
}

pub(crate) fn tools(start: &Start, change: impl FnOnce(&mut ToolSettings)) -> Arc<ToolRunner> {
    let private = start.workspace.parent().unwrap().join("private");
    let mut settings = ToolSettings::new(start.workspace.clone(), private);
    change(&mut settings);
    Arc::new(ToolRunner::new(settings, None).unwrap())
}

/// A session with a model, ready for its first prompt.
fn model(turns: Vec<Turn>, prepare: impl FnOnce(&mut Start)) -> (Live, Receiver<Vec<ToolOutput>>) {
    let (say, given) = channel();
    let live = Live::open(Rules::new(ToolsBy::Baton, Vec::new()), patient(), |start| {
        start.tools = Some(tools(start, |_| {}));
        start.spawn = Box::new(move |tell| Ok(Box::new(Model::start(tell, turns, say)) as Box<dyn Harness>));
        prepare(start);
    });
    live.until_state(StateKind::Ready);
    (live, given)
}

fn finish(live: &Live) -> Vec<(String, RunStatus)> {
    live.handle.ask(Ask::Stop).unwrap();
    let (_, view) = live.end();
    assert_eq!(view.state, StateKind::Stopped);
    view.tool_runs.into_iter().map(|run| (run.tool_name, run.status)).collect()
}

#[test]
fn tools_run_in_the_order_of_the_answer_and_so_do_their_outputs() {
    let calls = vec![
        ("write_file", json!({"path": "a", "content": "one two"})),
        ("edit_file", json!({"path": "a", "old": "one", "new": "1"})),
        ("edit_file", json!({"path": "a", "old": "two", "new": "2"})),
        ("read_file", json!({"path": "a"})),
        ("read_file", json!({"path": "missing"})),
        ("bash", json!({"command": "exit 3"})),
    ];
    let (live, given) = model(vec![Turn::Calls(calls), Turn::Done], |_| {});
    live.prompt("go");
    let outputs = given.recv_timeout(SOON).unwrap();
    let shown: Vec<(&str, bool)> =
        outputs.iter().map(|output| (output.call_id.as_str(), output.is_error)).collect();
    let expected = [
        ("call_1", false),
        ("call_2", false),
        ("call_3", false),
        ("call_4", false),
        ("call_5", true),
        ("call_6", true),
    ];
    assert_eq!(shown, expected);
    assert_eq!(outputs[3].output, "1 2");
    live.until("the end", |_, value| value["payload"]["text"] == "done");
    live.until_state(StateKind::Ready);
    let pieces: Vec<Value> = live.transcript().into_iter().filter(|piece| piece["kind"] == "tool").collect();
    assert_eq!(pieces.len(), 6);
    assert_eq!((&pieces[3]["output"], &pieces[3]["toolName"]), (&json!("1 2"), &json!("read_file")));
    assert_eq!(live.bench.events("session.started").len(), 1);
    assert!(finish(&live).iter().all(|(_, status)| *status == RunStatus::Succeeded));
}

#[test]
fn where_somebody_is_asked_nothing_changes_without_a_yes() {
    let calls = vec![
        ("write_file", json!({"path": "a", "content": "x"})),
        ("read_file", json!({"path": "b"})),
        ("write_file", json!({"path": "c", "content": "x"})),
    ];
    let (live, given) = model(vec![Turn::Calls(calls), Turn::Done], |start| start.asks_before_tools = true);
    let work = live.bench.at("work");
    live.prompt("go");
    let ask = |answer: Answer| {
        let asked = live.until("a question", |_, value| value["type"] == "permission_requested");
        assert!(asked["title"].as_str().unwrap().starts_with("write_file: "), "{asked}");
        (asked["id"].as_str().unwrap().to_owned(), answer)
    };
    let (first, second) = (ask(Answer::Deny), ask(Answer::Allow));
    assert!(!work.join("a").exists() && !work.join("c").exists());
    for (id, answer) in [first, second] {
        live.handle.ask(Ask::Permit { id, answer, by: "operator".into() }).unwrap();
    }
    let outputs = given.recv_timeout(SOON).unwrap();
    let shown: Vec<(bool, bool)> =
        outputs.iter().map(|output| (output.is_error, output.output == "denied")).collect();
    assert_eq!(shown, [(true, true), (true, false), (false, false)]);
    live.until_state(StateKind::Ready);
    assert!(!work.join("a").exists() && work.join("c").exists());
    // Reading asks nobody, so it may come first.
    let runs = finish(&live);
    assert!(runs.contains(&("write_file".to_owned(), RunStatus::Canceled)), "{runs:?}");
}

#[test]
fn a_stop_ends_the_tool_that_runs_and_all_that_it_started() {
    let script = "sleep 1000 & echo $! > pid; wait";
    let (live, _given) = model(vec![Turn::Calls(vec![("bash", json!({"command": script}))])], |_| {});
    live.prompt("go");
    let file = live.bench.at("work/pid");
    let end = Instant::now() + SOON;
    let pid = loop {
        match fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n')) {
            Some(pid) => break pid.trim().to_owned(),
            None => assert!(Instant::now() < end, "it does not start"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(finish(&live), [("bash".to_owned(), RunStatus::Canceled)]);
    let is_gone = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.is_empty() || status.contains("State:\tZ")
    };
    while !is_gone() {
        assert!(Instant::now() < end, "it lives on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What never ends by itself, and not when it is asked to.
const STUBBORN: &str = "trap '' TERM; while :; do date > f; sleep 0.01; done";

fn marked(start: &Start) -> Arc<ToolRunner> {
    tools(start, |settings| {
        settings.marks = BTreeMap::from([(SESSION_VARIABLE.to_owned(), start.id.to_string())]);
    })
}

/// Stops a session whose program is at work, and sees that nothing of it is left once it has ended.
#[track_caller]
fn nothing_is_left_after_a_stop(live: &Live) {
    crate::support::wait_for("its first words", || live.bench.at("work/f").exists());
    let began = Instant::now();
    live.handle.ask(Ask::Stop).unwrap();
    live.end();
    let left = processes(format!("{SESSION_VARIABLE}={}", live.id()).as_bytes());
    assert!(left.is_empty(), "{left:?}");
    assert!(began.elapsed() < TOOL_GRACE, "{:?}", began.elapsed());
}

#[test]
fn a_tool_that_will_not_end_is_gone_when_its_session_has_ended() {
    let calls = vec![("bash", json!({"command": STUBBORN}))];
    let (live, _given) = model(vec![Turn::Calls(calls)], |start| start.tools = Some(marked(start)));
    live.prompt("go");
    nothing_is_left_after_a_stop(&live);
}

#[test]
fn a_hook_that_will_not_end_is_gone_when_its_session_has_ended() {
    let mut hook = any_change();
    hook.command = crate::support::sh(STUBBORN);
    let calls = vec![("write_file", json!({"path": "a", "content": ""}))];
    let (live, _given) = model(vec![Turn::Calls(calls)], |start| {
        start.rules = Rules::new(ToolsBy::Baton, vec![hook]);
        start.tools = Some(marked(start));
    });
    live.prompt("go");
    nothing_is_left_after_a_stop(&live);
}

#[test]
fn a_tool_that_does_not_end_is_tried_again_and_then_given_up() {
    let calls = vec![
        ("bash", json!({"command": "echo x >> tries; sleep 1000"})),
        ("write_file", json!({"path": "once", "content": ""})),
    ];
    let (live, _given) = model(vec![Turn::Calls(calls)], |start| {
        let tools = tools(start, |settings| settings.timeout = Duration::from_millis(300));
        start.tools = Some(tools);
    });
    live.prompt("go");
    let error = live.until("an error", |_, value| value["type"] == "session_error");
    assert_eq!(error["code"], "tool_execution_failed");
    assert!(error["message"].as_str().unwrap().contains("timed out after 300ms"), "{error}");
    live.until_state(StateKind::ExecutingTools);
    live.until_state(StateKind::Ready);
    assert_eq!(fs::read_to_string(live.bench.at("work/tries")).unwrap(), "x\nx\n");
    let expected = [("bash", RunStatus::Failed), ("write_file", RunStatus::Succeeded)];
    assert_eq!(finish(&live), expected.map(|(name, status)| (name.to_owned(), status)));
}

#[test]
fn a_request_that_fails_is_sent_again() {
    let (live, given) = model(vec![Turn::Fails, Turn::Done], |_| {});
    live.prompt("go");
    assert_eq!(given.recv_timeout(SOON).unwrap(), [], "again, not a prompt");
    live.until("the end", |_, value| value["payload"]["text"] == "done");
    finish(&live);
}

/// An agent that asks its client for files and programs, and says what it was answered.
const CLIENT: &str = r#"
say() { printf '%s\n' "$1"; }
ask() { say "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"$1\",\"params\":{\"sessionId\":\"s1\",$2}}"; read -r answer; }
shown() { printf '%s' "$answer" | sed 's/[\\"]/ /g'; }
text() { say "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}}}}"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  ok() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
  case "$line" in
    *'"initialize"'*) printf '%s' "$line" > hello; ok '{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}' ;;
    *'"session/new"'*) ok '{"sessionId":"s1"}' ;;
    *'"session/prompt"'*)
      case "$line" in
        *silent*) echo changed > quietly ;;
        *)
          ask fs/write_text_file "\"path\":\"$PWD/f\",\"content\":\"one\\ntwo\\nthree\\n\""; text "[write $(shown)]"
          ask fs/read_text_file "\"path\":\"$PWD/f\",\"line\":2,\"limit\":1"; text "[read $(shown)]"
          ask fs/read_text_file "\"path\":\"$PWD/missing\""; text "[missing $(shown)]"
          ask fs/read_text_file "\"path\":\"$PWD/../secret\""; text "[outside $(shown)]"
          ask terminal/create '"command":"sh","args":["-c","echo in terminal; exit 4"]'; text "[create $(shown)]"
          ask terminal/wait_for_exit '"terminalId":"term_1"'; text "[wait $(shown)]"
          ask terminal/output '"terminalId":"term_1"'; text "[output $(shown)]"
          ask terminal/release '"terminalId":"term_1"'; text "[release $(shown)]"
          ask terminal/output '"terminalId":"term_1"'; text "[released $(shown)]"
          ask terminal/create '"command":"sh","args":["-c","echo $$ > pid; exec sleep 1000"]'; text "[second $(shown)]" ;;
      esac
      ok '{"stopReason":"end_turn"}' ;;
  esac
done
"#;

fn client(rules: Rules, is_served: bool) -> Live {
    Live::open(rules, patient(), |start| {
        let tools = tools(start, |_| {});
        let cwd = start.workspace.clone();
        start.tools = Some(tools.clone());
        let setup = Setup { cwd, fs: is_served, terminal: is_served, tools: Some(tools), ..Setup::default() };
        start.spawn = acp(vec!["sh".into(), "-c".into(), CLIENT.into()], setup);
    })
}

#[test]
fn an_agent_gets_files_and_programs_through_the_wall() {
    let live = client(Rules::new(ToolsBy::Agent, Vec::new()), true);
    fs::write(live.bench.at("secret"), "SECRET").unwrap();
    live.until_state(StateKind::Ready);
    live.prompt("all");
    live.until_state(StateKind::Ready);
    let said: String = live.transcript().iter().filter_map(|piece| piece["text"].as_str()).collect();
    for (what, expected) in [
        ("[write ", "result"),
        ("[read ", "two"),
        ("[missing ", "-32002"),
        ("[outside ", "is not in the workspace"),
        ("[create ", "term_1"),
        ("[wait ", "exitCode :4"),
        ("[output ", "in terminal"),
        ("[release ", "result"),
        ("[released ", "-32002"),
        ("[second ", "term_2"),
    ] {
        let start = said.find(what).unwrap_or_else(|| panic!("{what}: {said}"));
        let part = &said[start..start + said[start..].find(']').unwrap()];
        assert!(part.contains(expected), "{what}: {part}");
    }
    assert!(!said.contains("SECRET"));
    let hello = fs::read_to_string(live.bench.at("work/hello")).unwrap();
    assert!(hello.contains(r#""terminal":true"#) && hello.contains(r#""readTextFile":true"#), "{hello}");
    let end = Instant::now() + SOON;
    let pid = loop {
        match fs::read_to_string(live.bench.at("work/pid")).ok().filter(|text| text.ends_with('\n')) {
            Some(pid) => break pid.trim().to_owned(),
            None => assert!(Instant::now() < end),
        }
    };
    live.handle.ask(Ask::Stop).unwrap();
    live.end();
    while fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| !status.contains("State:\tZ"))
    {
        assert!(Instant::now() < end, "its terminal outlives it");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_is_not_offered_is_not_answered() {
    let live = client(Rules::new(ToolsBy::Agent, Vec::new()), false);
    live.until_state(StateKind::Ready);
    live.prompt("all");
    live.until_state(StateKind::Ready);
    let said: String = live.transcript().iter().filter_map(|piece| piece["text"].as_str()).collect();
    assert_eq!(said.matches("-32601").count(), 10, "{said}");
    live.handle.ask(Ask::Stop).unwrap();
    live.end();
}

/// A hook for any change.
fn any_change() -> Hook {
    Hook {
        name: "check".into(),
        command: vec!["true".into()],
        timeout_ms: 30_000,
        failure_policy: FailurePolicy::FailSession,
        tool_filter: ToolFilter::AnyMutating,
    }
}

#[test]
fn a_hook_runs_after_a_turn_that_changed_files_without_a_word() {
    let live = client(Rules::new(ToolsBy::Agent, vec![any_change()]), false);
    live.until_state(StateKind::Ready);
    live.prompt("silent");
    live.until_state(StateKind::PostToolsHook);
    live.until_state(StateKind::Ready);
    // A turn without a change has none.
    live.prompt("all");
    live.until_state(StateKind::Ready);
    live.handle.ask(Ask::Stop).unwrap();
    let (_, view) = live.end();
    assert_eq!(view.hook_runs.len(), 1);
}

/// Makes every look at a work tree of git slow: it has to ask a filter, which takes its time.
fn slow_down(work: &Path) {
    let git = |words: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=b"];
        let mut git = Command::new("git");
        let ran = git.args(who).args(words).current_dir(work).env("GIT_CONFIG_GLOBAL", "/dev/null").output();
        assert!(ran.unwrap().status.success(), "git {words:?}");
    };
    fs::write(work.join(".gitattributes"), "a filter=slow\n").unwrap();
    fs::write(work.join("a"), "one").unwrap();
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "one"]);
    git(&["config", "filter.slow.clean", "sleep 1000"]);
    // As large as before, so that only its content can tell.
    fs::write(work.join("a"), "two").unwrap();
}

/// An agent that runs its own tools, and a hook that wants to know of any change.
fn silent(turns: Vec<Turn>, prepare: impl FnOnce(&mut Start)) -> Live {
    let (live, _given) = model(turns, |start| {
        start.rules = Rules::new(ToolsBy::Agent, vec![any_change()]);
        prepare(start);
    });
    live
}

/// A stop, and how long it took.
#[track_caller]
fn stop_is_quick(live: &Live) {
    let began = Instant::now();
    live.handle.ask(Ask::Stop).unwrap();
    let (_, view) = live.end();
    assert_eq!(view.state, StateKind::Stopped);
    assert!(began.elapsed() < TREE_LOOK_TIME / 2, "{:?}", began.elapsed());
}

#[test]
fn a_stop_does_not_wait_for_the_look_before_a_turn_and_nothing_is_sent() {
    let (say, sent) = channel();
    let does = Turn::Does(Box::new(move || say.send(()).unwrap()));
    let live = silent(vec![does], |start| slow_down(&start.workspace));
    live.prompt("go");
    stop_is_quick(&live);
    assert!(sent.recv().is_err(), "the prompt was sent");
}

#[test]
fn a_stop_does_not_wait_for_the_look_after_a_turn() {
    let (say, done) = channel();
    let live = silent(Vec::new(), |start| {
        let work = start.workspace.clone();
        let does = Turn::Does(Box::new(move || {
            slow_down(&work);
            say.send(()).unwrap();
        }));
        start.spawn = Box::new(move |tell| {
            Ok(Box::new(Model::start(tell, vec![does], channel().0)) as Box<dyn Harness>)
        });
    });
    live.prompt("go");
    done.recv_timeout(SOON).unwrap();
    stop_is_quick(&live);
}

#[test]
fn a_look_that_takes_too_long_counts_as_no_change() {
    let live = silent(vec![Turn::Done], |start| slow_down(&start.workspace));
    live.prompt("go");
    live.until_state(StateKind::Ready);
    live.handle.ask(Ask::Stop).unwrap();
    let (_, view) = live.end();
    assert!(view.hook_runs.is_empty());
}

#[test]
fn a_turn_that_is_cancelled_before_it_was_sent_is_never_sent() {
    let (say, sent) = channel();
    let does = Turn::Does(Box::new(move || say.send(()).unwrap()));
    let live = silent(vec![does], |start| slow_down(&start.workspace));
    live.prompt("go");
    live.handle.ask(Ask::Cancel).unwrap();
    live.until_state(StateKind::Ready);
    stop_is_quick(&live);
    assert!(sent.recv().is_err(), "the prompt was sent");
}

#[test]
fn an_agent_that_goes_after_its_turn_has_ended_it_whatever_the_look_says() {
    let live = silent(Vec::new(), |start| {
        let work = start.workspace.clone();
        let leaves = Turn::Leaves(Box::new(move || slow_down(&work)));
        start.spawn = Box::new(move |tell| {
            Ok(Box::new(Model::start(tell, vec![leaves], channel().0)) as Box<dyn Harness>)
        });
    });
    live.prompt("go");
    let (data, view) = live.end();
    assert_eq!((data.reason, view.state), (EndReason::Completed, StateKind::Stopped));
}
