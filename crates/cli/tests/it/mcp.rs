//! The tool server as a client meets it, over real pipes: what it offers to whom, what each tool does, and what it refuses.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Home, wait};
use crate::task_support::{text, texts};

const SOON: Duration = Duration::from_secs(60);

/// A client that speaks JSON-RPC by hand.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last: u64,
    hello: Value,
}

impl Client {
    fn start(home: &Home, args: &[&str], env: &[(&str, &str)]) -> Client {
        let mut command = home.command(&[&["mcp"], args].concat());
        command.envs(env.iter().copied()).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (say, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| say.send(line))
        });
        let mut client = Client { child, input, lines, last: 0, hello: Value::Null };
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        client.hello = client.ask("initialize", &params)["result"].clone();
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    /// Bound to a task that was claimed for an agent.
    fn bound(home: &Home, id: &str, agent: &str) -> Client {
        let fence = home.claim(id, agent)["fence"].to_string();
        Client::start(
            home,
            &[],
            &[
                ("BATON_TASK_ID", id),
                ("BATON_AGENT", agent),
                ("BATON_FENCE", &fence),
                ("BATON_RUN_ID", "run_1"),
            ],
        )
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        self.last
    }

    #[track_caller]
    fn message(&self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(SOON).unwrap()).unwrap()
    }

    #[track_caller]
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        let answer = self.message();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    #[track_caller]
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool that does it, and gives what it says.
    #[track_caller]
    fn good(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.call(tool, arguments);
        let said = text(&answer["result"]["content"][0]["text"]);
        assert_eq!(answer["result"]["isError"], false, "{tool}: {said}");
        serde_json::from_str(said.lines().next().unwrap()).unwrap_or_else(|_| said.into())
    }

    /// Calls a tool that refuses it in words that name this and say what to do next.
    #[track_caller]
    fn bad(&mut self, tool: &str, arguments: &Value, names: &str) -> String {
        let answer = self.call(tool, arguments);
        assert_eq!(answer["result"]["isError"], true, "{tool}: {answer}");
        let said = text(&answer["result"]["content"][0]["text"]);
        assert!(said.contains(names), "expected {names:?} of {tool}: {said}");
        assert!(said.len() < 4096, "bounded: {}", said.len());
        said
    }

    #[track_caller]
    fn tools(&mut self) -> Vec<Value> {
        self.ask("tools/list", &json!({}))["result"]["tools"].as_array().unwrap().clone()
    }

    #[track_caller]
    fn names(&mut self) -> BTreeSet<String> {
        self.tools().iter().map(|tool| text(&tool["name"])).collect()
    }

    /// Closes its input and waits for its end.
    #[track_caller]
    fn end(mut self) -> Duration {
        let began = Instant::now();
        drop(self.input.take());
        assert_eq!(wait(&mut self.child).code(), Some(0));
        began.elapsed()
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

const ALL: [&str; 12] = [
    "get_task",
    "list_ready",
    "claim_task",
    "heartbeat",
    "report_progress",
    "report_completion",
    "request_handoff",
    "answer_handoff",
    "create_task",
    "ask_human",
    "finish_phase",
    "verify_trace",
];

#[test]
fn it_says_who_it_is_and_every_tool_says_what_it_takes() {
    let home = Home::new();
    let mut client = Client::start(&home, &["--agent", "ada"], &[("BATON_SESSION_ID", "sess_1")]);
    assert_eq!(client.hello["serverInfo"]["name"], "baton");
    assert_eq!(client.hello["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(text(&client.hello["instructions"]).contains("claim_task"));
    let tools = client.tools();
    assert_eq!(tools.iter().map(|tool| text(&tool["name"])).collect::<BTreeSet<_>>(), set(&ALL));
    for tool in &tools {
        assert!(text(&tool["description"]).contains("Call it"), "says when: {tool}");
        let schema = &tool["inputSchema"];
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
        for (name, field) in schema["properties"].as_object().unwrap() {
            assert!(!text(&field["description"]).is_empty(), "{name}");
            let is_bounded = match field["type"].as_str().unwrap() {
                "string" => field.get("maxLength").is_some() || field.get("enum").is_some(),
                "array" => field.get("maxItems").is_some() && field["items"].get("maxLength").is_some(),
                "integer" => field.get("maximum").is_some(),
                _ => true,
            };
            assert!(is_bounded, "{name}: {field}");
        }
    }
    assert!(client.end() < Duration::from_secs(5));
}

#[test]
fn what_is_offered_depends_on_who_asks() {
    let home = Home::new();
    let names = |args: &[&str], env: &[(&str, &str)]| Client::start(&home, args, env).names();
    assert_eq!(names(&[], &[]), set(&["get_task", "list_ready", "create_task", "verify_trace"]));
    let without_session = names(&["--agent", "ada"], &[]);
    assert_eq!(without_session.len(), ALL.len() - 1);
    assert!(!without_session.contains("ask_human"));
    let id = home.task(&[]);
    let mut bound = Client::bound(&home, &id, "ada");
    assert!(text(&bound.hello["instructions"]).contains(&id));
    let offered = bound.names();
    let all: BTreeSet<String> = set(&ALL);
    let hidden: Vec<&String> = all.difference(&offered).collect();
    assert_eq!(hidden, ["ask_human", "claim_task", "list_ready"]);
    bound.bad("list_ready", &json!({}), "is not for a session");
    bound.bad("claim_task", &json!({}), &id);
    bound.bad("ask_human", &json!({"question": "why?"}), "in a session of Baton only");
    let critic = names(&["--agent", "ada", "--role", "critic"], &[]);
    assert!(!critic.contains("create_task") && critic.contains("report_completion"), "{critic:?}");
    let env = [("BATON_AGENT", "ada"), ("BATON_ROLE", "critic")];
    assert_eq!(names(&[], &env), critic);
    let mut nobody = Client::start(&home, &[], &[]);
    nobody.bad("heartbeat", &json!({"task": id}), "baton mcp --agent NAME");
    for (args, env) in [
        (&[][..], &[("BATON_TASK_ID", id.as_str())][..]),
        (&[], &[("BATON_TASK_ID", "7")]),
        (&["--agent", "--x"], &[]),
    ] {
        let ended = home.command(&[&["mcp"], args].concat()).envs(env.iter().copied()).output().unwrap();
        assert_eq!(ended.status.code(), Some(2), "{env:?}");
    }
    Home::empty().run(&["mcp"]).refused(3, "L001", "no ledger");
}

#[test]
fn a_session_reads_reports_and_completes_its_task() {
    let home = Home::new();
    let id = home.task(&[]);
    let mut client = Client::bound(&home, &id, "ada");
    assert_eq!(client.good("get_task", &json!({}))["id"], json!(id));
    assert_eq!(client.good("get_task", &json!({ "task": id }))["status"], "in-progress");
    assert_eq!(client.good("heartbeat", &json!({}))["agent"], "ada");
    assert_eq!(client.good("report_progress", &json!({"progress": "half done"}))["accepted"], true);
    let part = client.good("create_task", &json!({
        "title": "--not an option", "text": "All of it.\n", "priority": "high", "depends_on": [], "ready": true,
    }));
    assert_eq!((&part["title"], &part["parentId"]), (&json!("--not an option"), &json!(id)));
    assert_eq!((&part["status"], &part["priority"]), (&json!("ready"), &json!("high")));
    let part = text(&part["id"]);
    let asked = json!({
        "child": part, "to_agent": "bob", "due_by": "2030-01-01T00:00:00Z",
        "acceptance_criteria": ["it works"], "context_refs": ["src/upload.rs"],
    });
    assert_eq!(client.good("request_handoff", &asked)["accepted"], true);
    assert_eq!(home.show(&part)["routing"]["agent"], "bob");
    let mut bob = Client::start(&home, &["--agent", "bob"], &[]);
    assert_eq!(bob.good("answer_handoff", &json!({"task": part, "accept": true}))["accepted"], true);
    let report = json!({
        "outcome": "done", "summary": "All done.", "deliverables": ["src/a.rs"], "notes": "none",
        "tests": {"total": 1, "passed": 1, "failed": 0},
    });
    let events = texts(&client.good("report_completion", &report)["events"]);
    assert!(!events.contains(&"protocol.message.warning".to_owned()), "the summary is there: {events:?}");
    assert_eq!(home.status(&id), "review");
    let summary = home.folder("review", &id).join("outputs/summary.md");
    assert_eq!(std::fs::read_to_string(summary).unwrap(), "All done.\n");
    let sent = home.last(&id, "protocol.message.received");
    assert!(sent.to_string().contains("\"ada\""), "{sent}");
    assert!(client.bad("heartbeat", &json!({}), "T011").contains("next: stop working"));
    home.verifies();
}

#[test]
fn a_person_finds_takes_and_finishes_a_task() {
    let home = Home::with_signals();
    let (first, second) = (home.task(&[]), home.task(&[]));
    let mut client = Client::start(&home, &["--agent", "ada"], &[]);
    let list = client.good("list_ready", &json!({"limit": 1}));
    assert_eq!((list["tasks"].as_array().unwrap().len(), &list["more"]), (1, &json!(1)));
    assert!(client.bad("heartbeat", &json!({"task": first}), "fence is missing").contains("next: "));
    let lease = client.good("claim_task", &json!({"task": first, "ttl": "10m"}));
    assert_eq!(lease["agent"], "ada");
    assert_eq!(
        client.good("heartbeat", &json!({"task": first}))["fence"],
        lease["fence"],
        "it is remembered"
    );
    client.bad("heartbeat", &json!({"task": first, "fence": 0}), "T011");
    let mut bob = Client::start(&home, &["--agent", "bob"], &[]);
    assert!(bob.bad("claim_task", &json!({"task": first}), "T008").contains("next: somebody else holds it"));
    bob.bad("report_progress", &json!({"task": first, "progress": "mine"}), "unauthorized_agent");
    let done = json!({"task": first, "phase": "IMPLEMENTATION", "exit_reason": "completed", "notes": "x"});
    assert!(
        client
            .bad(
                "finish_phase",
                &json!({"task": first, "phase": "REVIEW", "exit_reason": "completed"}),
                "REVIEW"
            )
            .contains("next: read the task")
    );
    let ended = client.good("finish_phase", &done);
    assert_eq!((&ended["accepted"], &ended["phase"]), (&json!(true), &json!("IMPLEMENTATION")));
    client.good("claim_task", &json!({"task": second}));
    let blocked = json!({"task": second, "status": "blocked", "blockers": ["no key"]});
    assert_eq!(client.good("report_progress", &blocked)["accepted"], true);
    assert_eq!(home.status(&second), "blocked");
}

#[test]
fn what_was_recorded_of_a_task_is_verified_and_damage_is_told() {
    let home = Home::new();
    let id = home.task(&[]);
    let mut client = Client::bound(&home, &id, "ada");
    let report = client.good("verify_trace", &json!({}));
    assert!(text(&report["verdict"]).starts_with("pass"), "{report}");
    // Somebody changes what was recorded.
    let segment = fs::read_dir(home.data().join("events")).unwrap().next().unwrap().unwrap().path();
    let lines = fs::read_to_string(&segment).unwrap();
    let changed = lines.replacen("lease.acquired", "lease.acquirec", 1);
    assert_ne!(lines, changed);
    fs::write(&segment, changed).unwrap();
    client.bad("verify_trace", &json!({}), "its hash does not fit its content");
}

#[test]
fn signals_that_are_off_are_answered_with_the_other_way() {
    let home = Home::new();
    let id = home.task(&[]);
    let mut client = Client::bound(&home, &id, "ada");
    let said = client.bad(
        "finish_phase",
        &json!({"phase": "IMPLEMENTATION", "exit_reason": "completed"}),
        "disabled",
    );
    assert!(said.contains("report_completion"), "{said}");
}

#[test]
fn a_question_that_nobody_can_answer_says_so() {
    let home = Home::new();
    let id = home.task(&[]);
    let fence = home.claim(&id, "ada")["fence"].to_string();
    let env = [
        ("BATON_TASK_ID", id.as_str()),
        ("BATON_AGENT", "ada"),
        ("BATON_FENCE", &fence),
        ("BATON_SESSION_ID", "sess_0190f3c4-0000-7000-8000-000000000000"),
    ];
    let mut client = Client::start(&home, &[], &env);
    assert!(client.names().contains("ask_human"));
    let said = client.bad("ask_human", &json!({"question": "May I?"}), "nobody answered");
    assert!(said.contains("next: go on with what is safest"), "{said}");
    client.bad("ask_human", &json!({"question": " "}), "question is empty");
    client.bad("ask_human", &json!({"question": "x".repeat(5000)}), "at most 4000 characters");
}

#[test]
fn a_session_is_let_at_no_other_task() {
    let home = Home::new();
    let (own, other) = (home.task(&[]), home.task(&[]));
    let mut client = Client::bound(&home, &own, "ada");
    for (tool, more) in [
        ("get_task", json!({})),
        ("heartbeat", json!({})),
        ("report_progress", json!({"progress": "x"})),
        ("report_completion", json!({"outcome": "done", "summary": "x"})),
        ("answer_handoff", json!({"accept": true})),
    ] {
        let mut arguments = more.clone();
        arguments["task"] = other.clone().into();
        let said = client.bad(tool, &arguments, &own);
        assert!(said.contains("next: leave task out"), "{said}");
        client.bad(
            tool,
            &{
                arguments["fence"] = 1.into();
                arguments
            },
            "there is no argument \"fence\"",
        );
    }
    let fake = json!({"title": "x", "parent": other});
    client.bad("create_task", &fake, "there is no argument \"parent\"");
}

#[test]
fn hostile_arguments_are_refused_in_words_and_cost_nothing() {
    let home = Home::new();
    let id = home.task(&[]);
    let mut client = Client::bound(&home, &id, "ada");
    let huge = "x".repeat(5 << 20);
    for (tool, arguments, names) in [
        ("report_progress", json!({ "progress": huge }), "at most 1000 characters"),
        ("report_progress", json!({}), "at least one of"),
        ("report_progress", json!({"progress": 1}), "expected a text, got 1"),
        ("report_progress", json!({"status": "done"}), "expected one of blocked, review, ready"),
        ("report_progress", json!({"progres": "x"}), "did you mean progress?"),
        ("report_completion", json!({"outcome": "done"}), "summary is missing"),
        ("report_completion", json!({"outcome": "perfect", "summary": "x"}), "expected one of done"),
        ("report_completion", json!({"outcome": "done", "summary": "x", "summary_path": "y"}), "not both"),
        ("report_completion", json!({"outcome": "done", "summary_path": "../x"}), "summaryRef"),
        (
            "report_completion",
            json!({"outcome": "done", "summary": "x", "tests": {"total": -1}}),
            "whole numbers",
        ),
        (
            "request_handoff",
            json!({"child": "TASK-1999-01-01-001", "to_agent": "bob", "due_by": "2030-01-01T00:00:00Z"}),
            "task_not_found",
        ),
        (
            "request_handoff",
            json!({"child": id, "to_agent": "Not A Name", "due_by": "2030-01-01T00:00:00Z"}),
            "toAgent",
        ),
        ("request_handoff", json!({"child": id, "to_agent": "bob", "due_by": "soon"}), "dueBy"),
        ("answer_handoff", json!({"accept": false}), "reason is missing"),
        ("answer_handoff", json!({"accept": true}), "no_handoff"),
        ("create_task", json!({"title": ""}), "next: mend"),
        ("create_task", json!({"title": "x", "depends_on": ["--ready"]}), "next: "),
        ("create_task", json!({"title": "x", "agent": "--help"}), "next: "),
        ("create_task", json!({"title": "x\u{0}y"}), "cannot be started"),
        ("get_task", json!({"task": "--help"}), "the whole id of a task"),
        ("get_task", json!({"task": {"a": []}}), "the whole id of a task"),
        ("finish_phase", json!({"phase": "DONE", "exit_reason": "completed"}), "expected one of DRAFT"),
    ] {
        client.bad(tool, &arguments, names);
    }
    let tasks = home.json(&["task", "ls"]);
    assert_eq!(
        (tasks["tasks"].as_array().unwrap().len(), &tasks["tasks"][0]["status"]),
        (1, &json!("in-progress"))
    );
    let mut free = Client::start(&home, &["--agent", "ada"], &[]);
    free.bad("get_task", &json!({"task": "TASK-1999-01-01-001"}), "T001");
    free.bad("claim_task", &json!({"task": "TASK-1999-01-01-001"}), "T001");
    free.bad("claim_task", &json!({"task": id, "ttl": "for ever"}), "next: mend");
    free.bad("get_task", &json!({}), "task is missing");
}

#[test]
fn what_breaks_the_protocol_is_an_error_of_the_protocol_and_the_server_lives() {
    let home = Home::new();
    let mut client = Client::start(&home, &["--agent", "ada"], &[]);
    let unknown = client.call("get_tsak", &json!({}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(text(&unknown["error"]["message"]).contains("did you mean get_task?"), "{unknown}");
    assert!(client.ask("no/such/method", &json!({})).get("error").is_some());
    for params in [json!({"name": "get_task", "arguments": "text"}), json!({"name": 7}), json!([])] {
        client.request("tools/call", &params);
        assert!(client.message().get("error").is_some(), "{params}");
    }
    let input = client.input.as_mut().unwrap();
    input.write_all(b"this is no message\n\n{\"neither\": is this}\n").unwrap();
    assert_eq!(client.good("list_ready", &json!({}))["tasks"], json!([]), "it lives");
    assert!(client.end() < Duration::from_secs(5));
}

#[test]
fn calls_do_not_wait_for_each_other() {
    let home = Home::new();
    let id = home.task(&[]);
    let mut client = Client::start(&home, &["--agent", "ada"], &[]);
    let asked: BTreeSet<u64> = (0..20)
        .map(|n| {
            let tool = if n % 2 == 0 { "get_task" } else { "list_ready" };
            let arguments = if n % 2 == 0 { json!({ "task": id }) } else { json!({}) };
            client.request("tools/call", &json!({"name": tool, "arguments": arguments}))
        })
        .collect();
    let answered: BTreeSet<u64> = asked
        .iter()
        .map(|_| {
            let message = client.message();
            assert_eq!(message["result"]["isError"], false, "{message}");
            message["id"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(answered, asked);
}

#[test]
fn an_owner_does_what_the_tools_ask_for() {
    let home = Home::new();
    let id = home.task(&[]);
    let mut serve = home.command(&["serve"]).spawn().unwrap();
    crate::support::until("it serves", || home.data().join("lock").exists());
    let mut client = Client::start(&home, &["--agent", "ada"], &[]);
    client.good("claim_task", &json!({"task": id}));
    client.good("report_completion", &json!({"task": id, "outcome": "needs_review", "summary": "Look."}));
    assert_eq!(home.status(&id), "review");
    client.end();
    rustix::process::kill_process(rustix::process::Pid::from_child(&serve), rustix::process::Signal::TERM)
        .unwrap();
    wait(&mut serve);
}

#[test]
fn the_mock_agent_completes_its_task_through_it() {
    let home = Home::new();
    let id = home.task(&[]);
    let fence = home.claim(&id, "mock")["fence"].to_string();
    let mut child = home.command(&["mock-agent"]).stdin(Stdio::piped()).spawn().unwrap();
    let env = [("BATON_TASK_ID", id.as_str()), ("BATON_AGENT", "mock"), ("BATON_FENCE", &fence)];
    let env: Vec<Value> = env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let server =
        json!({"name": "baton", "command": env!("CARGO_BIN_EXE_baton"), "args": ["mcp"], "env": env});
    let mut input = child.stdin.take().unwrap();
    for (id, method, params) in [
        (1, "initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})),
        (2, "session/new", json!({"cwd": home.work(), "mcpServers": [server]})),
        (
            3,
            "session/prompt",
            json!({"sessionId": "mock-session-1", "prompt": [{"type": "text", "text": "complete done"}]}),
        ),
    ] {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .unwrap();
    }
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let answer = lines
        .map(|line| serde_json::from_str::<Value>(&line).unwrap())
        .find(|message| message["id"] == 3)
        .unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(home.status(&id), "review");
    drop(input);
    wait(&mut child);
}
