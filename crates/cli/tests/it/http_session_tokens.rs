//! The token that a session gets: made for it, good for its own task, and for nothing once it has ended. The agents are processes.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::runs::configure;
use crate::support::{Home, until};
use crate::web_support::{Answer, Web};

/// Says what it was given, has something written down by the command line, and works until it may end.
fn script() -> String {
    let baton = env!("CARGO_BIN_EXE_baton");
    format!(
        "cat >/dev/null; printf %s \"$BATON_API_URL\" >url.txt; printf %s \"$BATON_API_TOKEN\" >token.txt; \
         {baton} task log \"$BATON_TASK_ID\" 'by the command line' >log.txt 2>&1; echo $? >>log.txt; \
         {baton} task approve \"$BATON_TASK_ID\" >approve.txt 2>&1; echo $? >>approve.txt; \
         [ -p go ] || mkfifo go; touch ready; read -r line <go"
    )
}

/// A session at work.
struct Working {
    home: Home,
    web: Web,
    task: String,
    token: String,
}

impl Working {
    fn start(more: &str) -> Working {
        let home = Home::new();
        fs::write(home.work().join("agent.sh"), script()).unwrap();
        let agent = "[agents.sh]\nharness = \"exec\"\ncommand = [\"sh\", \"agent.sh\"]\nmax_sessions = 1\n";
        configure(&home, &format!("{agent}{more}"));
        let web = Web::start_with(&home, &[]);
        let routed = json!({"title": "own", "status": "ready", "routing": {"agent": "sh"}});
        let task = web.post("/v1/tasks", &routed).expect(201)["id"].as_str().unwrap().to_owned();
        let token = token_of(&home);
        Working { home, web, task, token }
    }

    fn get(&self, path: &str) -> Answer {
        self.web.ask_as(&self.token, "GET", path, None, &[])
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.web.ask_as(&self.token, "POST", path, Some(body), &[])
    }

    fn fence(&self) -> u64 {
        self.get(&format!("/v1/tasks/{}", self.task)).expect(200)["lease"]["fence"].as_u64().unwrap()
    }

    /// A message to the tool server.
    fn mcp(&self, conversation: &str, message: &Value) -> Answer {
        let more = [("Mcp-Session-Id", conversation)];
        self.web.ask_as(&self.token, "POST", "/v1/mcp", Some(message), &more)
    }

    /// Begins to speak to the tool server, and gives the conversation and the tools that there are.
    fn tools(&self) -> (String, Vec<String>) {
        let hello = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
        });
        let answer = self.post("/v1/mcp", &hello);
        answer.expect(200);
        let conversation = answer.header("mcp-session-id").unwrap().to_owned();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.mcp(&conversation, &ready).expect(202);
        let listed = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
        let listed = self.mcp(&conversation, &listed).expect(200);
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        (conversation, tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect())
    }

    /// What a tool says, and whether that is an error.
    fn call(&self, conversation: &str, tool: &str, arguments: &Value) -> (String, bool) {
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params});
        let result = self.mcp(conversation, &message).expect(200)["result"].clone();
        (result["content"][0]["text"].as_str().unwrap_or_default().to_owned(), result["isError"] == true)
    }

    /// Lets the agent end, and waits until its session has.
    fn end(&self) {
        fs::write(self.home.work().join("go"), "\n").unwrap();
        until("the session ends", || {
            let live = self.web.get("/v1/sessions?live=true").expect(200);
            live["sessions"].as_array().unwrap().is_empty()
        });
    }
}

/// The token of the session that has just begun, once its agent has said it.
fn token_of(home: &Home) -> String {
    until("the agent is at work", || home.work().join("ready").exists());
    fs::remove_file(home.work().join("ready")).unwrap();
    fs::read_to_string(home.work().join("token.txt")).unwrap()
}

/// Who did the last thing of this type.
fn actor(home: &Home, kind: &str) -> Value {
    let event = home.events().into_iter().rfind(|event| event["type"] == kind);
    event.unwrap_or_else(|| panic!("no {kind}"))["actor"].clone()
}

/// Every file below a directory that holds this text.
fn files_with(dir: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files_with(&entry.path(), text));
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                found.push(entry.path().display().to_string());
            }
        }
    }
    found
}

#[test]
fn a_sessions_token_opens_its_own_task_and_nothing_after_its_end() {
    let working = Working::start("");
    let (home, web, own) = (&working.home, &working.web, working.task.clone());
    assert_eq!(fs::read_to_string(home.work().join("url.txt")).unwrap(), format!("http://{}", web.address));
    let other = web.post("/v1/tasks", &json!({"title": "other"})).expect(201)["id"].clone();
    let other = other.as_str().unwrap();
    // Its own task, under its own lease and its own name.
    let fence = working.fence();
    let listed = working.get("/v1/tasks").expect(200);
    assert_eq!((listed["tasks"].as_array().unwrap().len(), &listed["tasks"][0]["id"]), (1, &json!(own)));
    working.post(&format!("/v1/tasks/{own}/beat"), &json!({"agent": "sh", "fence": fence})).expect(200);
    working.post(&format!("/v1/tasks/{own}/log"), &json!({"text": "over HTTP"})).expect(200);
    assert_eq!(actor(home, "task.logged")["agent"], "sh");
    working.post("/v1/tasks", &json!({"title": "found on the way"})).expect(201);
    assert_eq!(actor(home, "task.created")["agent"], "sh");
    // No other task, nobody else's name, and nothing that people do.
    working.get(&format!("/v1/tasks/{other}")).refuses(403, "W002");
    working.get(&format!("/v1/tasks/{other}/runs")).refuses(403, "W002");
    for (path, body) in [
        (format!("/v1/tasks/{other}/claim"), json!({"agent": "sh"})),
        (format!("/v1/tasks/{other}/log"), json!({"text": "x"})),
        (format!("/v1/tasks/{own}/beat"), json!({"agent": "mock", "fence": fence})),
        (format!("/v1/tasks/{own}/approve"), json!({})),
        ("/v1/exit-signals".to_owned(), json!({"task": other, "signal": {}})),
        ("/v1/sessions".to_owned(), json!({"agent": "sh"})),
    ] {
        working.post(&path, &body).refuses(403, "W002");
    }
    for path in ["/v1/sessions", "/v1/traces", "/v1/checkpoint"] {
        working.get(path).refuses(403, "W002");
    }
    // After its end it is nobody's.
    let (conversation, _) = working.tools();
    working.end();
    working.get(&format!("/v1/tasks/{own}")).refuses(401, "W001");
    working.post(&format!("/v1/tasks/{own}/log"), &json!({"text": "late"})).refuses(401, "W001");
    let listed = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {}});
    working.mcp(&conversation, &listed).refuses(401, "W001");
    working.web.serving.stop();
}

#[test]
fn the_agents_own_command_line_is_what_it_was() {
    let working = Working::start("");
    let said = |name: &str| fs::read_to_string(working.home.work().join(name)).unwrap();
    assert!(said("log.txt").trim_end().ends_with('0'), "{}", said("log.txt"));
    assert_eq!(actor(&working.home, "task.logged")["agent"], "sh");
    assert!(said("approve.txt").contains("A005"), "{}", said("approve.txt"));
    working.end();
    working.web.serving.stop();
}

#[test]
fn over_mcp_a_session_has_the_tools_of_its_role_and_acts_in_its_own_name() {
    let working = Working::start("");
    let other = working.web.post("/v1/tasks", &json!({"title": "other"})).expect(201)["id"].clone();
    let (conversation, tools) = working.tools();
    let has = |name: &str| tools.iter().any(|tool| tool == name);
    assert!(has("get_task") && has("create_task") && has("ask_human"), "{tools:?}");
    assert!(!has("list_ready") && !has("claim_task"), "{tools:?}");
    let (text, is_error) = working.call(&conversation, "get_task", &json!({}));
    assert!(!is_error && text.contains(&working.task), "{text}");
    let (text, is_error) = working.call(&conversation, "get_task", &json!({"task": other}));
    assert!(is_error && text.contains("nothing else"), "{text}");
    let (text, is_error) = working.call(&conversation, "create_task", &json!({"title": "by a tool"}));
    assert!(!is_error, "{text}");
    assert_eq!(actor(&working.home, "task.created")["agent"], "sh");
    let (text, is_error) = working.call(&conversation, "report_progress", &json!({"progress": "half"}));
    assert!(!is_error, "{text}");
    assert_eq!(actor(&working.home, "task.logged")["agent"], "sh");
    working.end();
    working.web.serving.stop();
}

#[test]
fn conversations_of_a_session_take_no_place_after_its_end() {
    let working = Working::start("");
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    });
    // As many as there may be.
    while working.post("/v1/mcp", &hello).status == 200 {}
    working.web.post("/v1/mcp", &hello).refuses(503, "W014");
    working.end();
    working.web.post("/v1/mcp", &hello).expect(200);
    working.web.serving.stop();
}

#[test]
fn a_critics_session_has_the_tools_of_a_critic() {
    let working = Working::start("env = { BATON_ROLE = \"critic\" }\n");
    let (conversation, tools) = working.tools();
    assert!(tools.iter().any(|tool| tool == "get_task"), "{tools:?}");
    assert!(!tools.iter().any(|tool| tool == "create_task"), "{tools:?}");
    let (text, is_error) = working.call(&conversation, "create_task", &json!({"title": "x"}));
    assert!(is_error, "{text}");
    working.end();
    working.web.serving.stop();
}

#[test]
fn who_has_given_its_task_back_works_on_it_no_more() {
    let working = Working::start("");
    let (own, fence) = (&working.task, working.fence());
    // Not before somebody looks again, so that nobody takes it meanwhile.
    let holder = json!({"agent": "sh", "fence": fence});
    working.post(&format!("/v1/tasks/{own}/release"), &holder).expect(200);
    working.post(&format!("/v1/tasks/{own}/log"), &json!({"text": "x"})).refuses(409, "T011");
    working.post("/v1/tasks", &json!({"title": "x"})).refuses(409, "T011");
    working.post(&format!("/v1/tasks/{own}/claim"), &json!({"agent": "sh"})).refuses(409, "T011");
    working.get(&format!("/v1/tasks/{own}")).expect(200);
    working.web.serving.stop();
}

#[test]
fn a_token_is_written_nowhere_and_another_one_follows_a_restart() {
    let working = Working::start("");
    let Working { home, web, token, .. } = working;
    assert_eq!(web.ask_as(&token, "GET", "/v1/health", None, &[]).status, 200);
    let said = web.serving.stop();
    for dir in [home.data(), home.state()] {
        assert_eq!(files_with(&dir, &token), Vec::<String>::new());
    }
    assert!(!said.contains(&token));
    let web = Web::start_with(&home, &[]);
    web.ask_as(&token, "GET", "/v1/health", None, &[]).refuses(401, "W001");
    let next = token_of(&home);
    assert!(!next.is_empty() && next != token);
    assert_eq!(web.ask_as(&next, "GET", "/v1/health", None, &[]).status, 200);
    web.serving.stop();
}

#[test]
fn an_agent_of_the_protocol_has_one_too_for_a_task_and_none_without() {
    let home = Home::new();
    let baton = env!("CARGO_BIN_EXE_baton");
    let script =
        format!("printf '%s\\n' \"${{BATON_API_TOKEN-none}}\" >>tokens.txt; exec {baton} mock-agent");
    fs::write(home.work().join("agent.sh"), script).unwrap();
    configure(&home, "[agents.wrapped]\nharness = \"acp\"\ncommand = [\"sh\", \"agent.sh\"]\n");
    let web = Web::start(&home);
    let started = web.post("/v1/sessions", &json!({"agent": "wrapped"})).expect(201);
    let session = started["id"].as_str().unwrap();
    web.post(&format!("/v1/sessions/{session}/stop"), &json!({})).expect(200);
    home.run(&["run", "complete done", "--agent", "wrapped"]).expect(0);
    let said = fs::read_to_string(home.work().join("tokens.txt")).unwrap();
    let tokens: Vec<&str> = said.lines().collect();
    assert_eq!((tokens.len(), tokens[0]), (2, "none"), "{said}");
    assert!(tokens[1].starts_with("baton_"), "{said}");
    for dir in [home.data(), home.state()] {
        assert_eq!(files_with(&dir, tokens[1]), Vec::<String>::new());
    }
    web.ask_as(tokens[1], "GET", "/v1/health", None, &[]).refuses(401, "W001");
    web.serving.stop();
}

#[test]
fn an_agents_own_token_acts_in_its_name_over_mcp_too() {
    let home = Home::new();
    let web = Web::start(&home);
    let made = home.json(&["token", "new", "ada", "--scope", "agent", "--agent", "ada"]);
    let token = made["token"].as_str().unwrap().to_owned();
    let working = Working { home, web, task: String::new(), token };
    let (conversation, _) = working.tools();
    let (text, is_error) = working.call(&conversation, "create_task", &json!({"title": "by a tool"}));
    assert!(!is_error, "{text}");
    assert_eq!(actor(&working.home, "task.created")["agent"], "ada");
    working.web.serving.stop();
}
