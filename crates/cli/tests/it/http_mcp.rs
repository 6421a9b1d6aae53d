//! The tools over HTTP: the same as those over standard streams, for whoever has a token, and for an agent's token only what is its own.

use serde_json::{Value, json};

use crate::support::Home;
use crate::web_support::{Answer, Web};

/// One conversation.
struct Talk<'a> {
    web: &'a Web,
    token: String,
    session: String,
}

fn begin<'a>(web: &'a Web, token: &str) -> Result<Talk<'a>, Answer> {
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    });
    let answer = web.ask_as(token, "POST", "/v1/mcp", Some(&hello), &[]);
    if answer.status != 200 {
        return Err(answer);
    }
    assert_eq!(answer.json()["result"]["serverInfo"]["name"], "baton", "{:?}", answer.json());
    let session = answer.header("mcp-session-id").unwrap().to_owned();
    let talk = Talk { web, token: token.to_owned(), session };
    let ready =
        talk.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), "application/json");
    assert_eq!((ready.status, ready.body.len()), (202, 0));
    Ok(talk)
}

impl Talk<'_> {
    fn say(&self, message: &Value, accept: &str) -> Answer {
        let more = [("Mcp-Session-Id", self.session.as_str()), ("Accept", accept)];
        self.web.ask_as(&self.token, "POST", "/v1/mcp", Some(message), &more)
    }

    fn ask(&self, method: &str, params: &Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params});
        self.say(&message, "application/json").expect(200)
    }

    /// The text of what a tool answers, and whether that is an error.
    fn call(&self, tool: &str, arguments: &Value) -> (String, bool) {
        let result = &self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        (text, result["isError"] == true)
    }
}

#[test]
fn the_tools_are_those_of_the_standard_streams() {
    let home = Home::new();
    let web = Web::start(&home);
    let made = web.post("/v1/tasks", &json!({"title": "Fix the login", "status": "ready"})).expect(201);
    let id = made["id"].as_str().unwrap();
    let talk = begin(&web, &web.token).unwrap();
    let tools = talk.ask("tools/list", &json!({}));
    let names: Vec<&str> = tools["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"get_task") && names.contains(&"list_ready"), "{names:?}");
    let (text, is_error) = talk.call("get_task", &json!({"task": id}));
    assert!(!is_error && text.contains("Fix the login"), "{text}");
    let (text, is_error) = talk.call("get_task", &json!({"task": "TASK-2020-01-01-001"}));
    assert!(is_error && text.contains("no task"), "{text}");
    // As a stream, where the client takes one.
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "list_ready", "arguments": {}}});
    let streamed = talk.say(&message, "application/json, text/event-stream");
    assert_eq!(streamed.header("content-type"), Some("text/event-stream"));
    let text = String::from_utf8(streamed.body).unwrap();
    assert!(text.starts_with("event: message\ndata: ") && text.contains("\"id\":7"), "{text}");
    // Conversations are whose they are, and end.
    let other =
        home.json(&["token", "new", "o", "--scope", "operator"])["token"].as_str().unwrap().to_owned();
    let stranger = Talk { web: &web, token: other, session: talk.session.clone() };
    stranger.say(&message, "application/json").refuses(404, "W006");
    web.post("/v1/mcp", &message).refuses(400, "W004");
    web.post("/v1/mcp", &json!([message])).refuses(400, "W004");
    let more = [("Mcp-Session-Id", talk.session.as_str())];
    assert_eq!(web.ask_as(&web.token, "DELETE", "/v1/mcp", None, &more).status, 204);
    talk.say(&message, "application/json").refuses(404, "W006");
    web.get("/v1/mcp").refuses(405, "W007");
    web.serving.stop();
}

#[test]
fn an_agents_token_has_the_tools_of_its_task_and_no_other() {
    let home = Home::new();
    let web = Web::start(&home);
    let (own, other) = (web.task("own"), web.task("other"));
    let made = home.json(&["token", "new", "ada", "--scope", "agent", "--agent", "ada", "--task", &own]);
    let token = made["token"].as_str().unwrap();
    begin(&web, token).err().unwrap().refuses(409, "T011");
    web.post(&format!("/v1/tasks/{own}/claim"), &json!({"agent": "ada"})).expect(200);
    let talk = begin(&web, token).unwrap();
    let (text, is_error) = talk.call("report_progress", &json!({"progress": "half done"}));
    assert!(!is_error, "{text}");
    let (text, is_error) = talk.call("get_task", &json!({"task": other}));
    assert!(is_error && text.contains("nothing else"), "{text}");
    let logged = home.events().into_iter().rfind(|event| event["type"] == "task.logged").unwrap();
    assert_eq!((&logged["actor"]["agent"], &logged["task"]), (&json!("ada"), &json!(own)));
    web.serving.stop();
}
