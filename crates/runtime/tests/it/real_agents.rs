//! Real agents over ACP, against the fake model: `make agents` installs them and names them in the environment.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use baton_core::session::{Answer, Cause, EndReason, StateKind, TerminatedBy, ToolsBy};
use baton_runtime::agent::{Launch, environment};
use baton_runtime::harness::acp::{AcpHarness, Setup};
use baton_runtime::harness::{Harness, Told};
use baton_runtime::session::Ask;
use baton_testkit::model_server::ModelServer;
use baton_testkit::real_agents::{AGENTS, Find, Installed, opencode};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::live::{Kind, Live, SOON};

/// Its whole environment: what every agent of Baton gets, and its own.
fn whole(own: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut env = environment(&[], &BTreeMap::new());
    env.extend(own);
    env
}

/// Everything that one agent is tried with.
struct Tried {
    live: Live,
    server: ModelServer,
    pid: std::sync::Arc<Mutex<Option<u32>>>,
    _home: tempfile::TempDir,
}

impl Tried {
    fn start(find: Find) -> Option<Tried> {
        let (server, home) = (ModelServer::start().unwrap(), tempfile::tempdir().unwrap());
        let Installed { words, env, mode } = find(home.path(), &server).unwrap()?;
        let env = whole(env);
        let kind = Kind { harness: "acp", tools_by: ToolsBy::Agent, inactivity: SOON };
        let pid = std::sync::Arc::new(Mutex::new(None));
        let shown = pid.clone();
        let live = Live::start(&kind, move |dir: PathBuf, tell| {
            let (stderr_lines, grace) = (50, Duration::from_secs(2));
            let launch = Launch { words, dir: dir.clone(), env, stderr_lines, stderr_copy: None, grace };
            let harness = AcpHarness::start(launch, Setup { cwd: dir, mode, ..Setup::default() }, tell)?;
            *shown.lock().unwrap() = harness.pid();
            Ok(Box::new(harness) as Box<dyn Harness>)
        });
        live.until_state(StateKind::Ready);
        Some(Tried { live, server, pid, _home: home })
    }

    /// A file that the agent is asked to write, with this answer to its question.
    fn write(&self, name: &str, answer: Answer) -> PathBuf {
        let file = self.live.workspace.join(name);
        self.live.prompt(&format!("write {} made-by-an-agent", file.display()));
        let asked = self.live.until("a question", |_, value| value["type"] == "permission_requested");
        let id = asked["id"].as_str().unwrap().to_owned();
        assert!(!file.exists(), "it waits for the answer");
        self.live.handle.ask(Ask::Permit { id, answer, by: "operator".into() }).unwrap();
        self.live.until_state(StateKind::Ready);
        file
    }
}

fn each(test: impl Fn(&str, &Tried)) {
    for (name, find) in AGENTS {
        if let Some(tried) = Tried::start(find) {
            println!("{name}");
            test(name, &tried);
        }
    }
}

#[test]
#[ignore = "needs real agents: make agents"]
fn a_real_agent_talks_and_writes_only_what_it_may() {
    each(|name, tried| {
        let said = tried.live.turn("say hello from the model");
        assert!(said.contains("hello from the model"), "{name}: {said}");
        assert!(!tried.server.seen().is_empty());
        let file = tried.write("yes.txt", Answer::Allow);
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(text.contains("made-by-an-agent"), "{name}: {text:?}\n{}", tried.live.transcript());
        let file = tried.write("no.txt", Answer::Deny);
        assert!(!file.exists(), "{name}");
        let (data, view) = tried.live.stop();
        assert_eq!(
            (data.reason, data.terminated_by),
            (EndReason::Terminated, TerminatedBy::Daemon),
            "{name}"
        );
        assert!(view.tool_runs.iter().all(|run| run.status.is_terminal()), "{name}");
    });
}

#[test]
#[ignore = "needs real agents: make agents"]
fn a_real_agent_that_is_killed_ends_as_what_it_is() {
    each(|name, tried| {
        tried.live.prompt("slow");
        tried.live.until("text", |_, value| value["type"] == "text_delta");
        let pid = tried.pid.lock().unwrap().unwrap();
        let start = Instant::now();
        kill_process_group(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
        let (data, _) = tried.live.end();
        assert!(start.elapsed() < Duration::from_secs(1), "{name}: {:?}", start.elapsed());
        assert_eq!((data.reason, data.terminated_by), (EndReason::Error, TerminatedBy::Agent), "{name}");
        assert_eq!(data.signal.map(|signal| signal.number), Some(9), "{name}");
        assert_eq!(data.cause, Some(Cause::Crash), "{name}");
        assert!(data.message.unwrap().ends_with("in a turn"), "{name}");
    });
}

#[test]
#[ignore = "needs real agents: make agents"]
fn a_turn_of_a_real_agent_can_be_ended_early() {
    for (name, find) in AGENTS {
        let (server, home) = (ModelServer::start().unwrap(), tempfile::tempdir().unwrap());
        let Some(Installed { words, env, mode }) = find(home.path(), &server).unwrap() else { continue };
        let env = whole(env);
        let dir = home.path().join("work");
        std::fs::create_dir_all(&dir).unwrap();
        let (stderr_lines, grace) = (50, Duration::from_secs(2));
        let launch = Launch { words, dir: dir.clone(), env, stderr_lines, stderr_copy: None, grace };
        let (say, told) = std::sync::mpsc::channel();
        let setup = Setup { cwd: dir, mode, ..Setup::default() };
        let mut harness = AcpHarness::start(launch, setup, move |it| drop(say.send(it))).unwrap();
        let until = |what: &str, is_it: &dyn Fn(&Told) -> bool| loop {
            let it = told.recv_timeout(SOON).unwrap_or_else(|_| panic!("{name}: {what} does not come"));
            if is_it(&it) {
                return;
            }
            assert!(!matches!(it, Told::TurnFailed(_) | Told::Broken(_) | Told::Exited(_)), "{name}: {it:?}");
        };
        until("ready", &|it| matches!(it, Told::Ready(_)));
        harness.prompt(&["slow".into()]).unwrap();
        until("text", &|it| matches!(it, Told::Text { .. }));
        harness.cancel();
        until("the end", &|it| matches!(it, Told::TurnEnded { stop, .. } if stop == "cancelled"));
        harness.prompt(&["say and on".into()]).unwrap();
        until("the next end", &|it| matches!(it, Told::TurnEnded { stop, .. } if stop == "end_turn"));
        harness.stop();
        until("its end", &|it| matches!(it, Told::Exited(exit) if exit.is_asked));
    }
}

#[test]
#[ignore = "needs real agents: make agents"]
fn a_real_agent_whose_key_is_refused_says_so() {
    let Some(tried) = Tried::start(opencode) else { return };
    tried.live.prompt("refuse-401");
    let error: Value =
        tried.live.until("the refusal", |_, value| value["type"] == "error" && value["payload"].is_object());
    println!("{}", error["payload"]);
    assert_eq!(error["payload"]["cause"], "auth", "{error}");
    tried.live.stop();
}
