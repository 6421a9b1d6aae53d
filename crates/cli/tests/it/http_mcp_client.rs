//! The tools over HTTP as the official client meets them.

use rmcp::model::{CallToolRequestParams, CallToolResult, JsonObject};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Value, json};

use crate::support::{Home, until};
use crate::web_support::Web;

type Client = RunningService<RoleClient, ()>;

/// Shakes hands with a token.
async fn begin(web: &Web, token: &str) -> Result<Client, Box<ClientInitializeError>> {
    let url = format!("http://{}/v1/mcp", web.address);
    let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(token);
    ().serve(StreamableHttpClientTransport::from_config(config)).await.map_err(Box::new)
}

async fn call(client: &Client, name: &'static str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let call = CallToolRequestParams::new(name).with_arguments(arguments as JsonObject);
    client.call_tool(call).await.unwrap()
}

/// What a tool says, and whether that is an error.
fn said(result: &CallToolResult) -> (String, bool) {
    let text = serde_json::to_value(&result.content).unwrap()[0]["text"].as_str().unwrap().to_owned();
    (text, result.is_error == Some(true))
}

fn token(home: &Home, name: &str, more: &[&str]) -> String {
    home.json(&[&["token", "new", name], more].concat())["token"].as_str().unwrap().to_owned()
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

#[test]
fn a_person_lists_the_tools_and_calls_them() {
    let home = Home::new();
    let web = Web::start(&home);
    let id = web.task("Fix the login");
    let operator = token(&home, "o", &["--scope", "operator"]);
    wait(async {
        let client = begin(&web, &operator).await.unwrap();
        assert_eq!(client.peer_info().unwrap().server_info.as_ref().unwrap().name, "baton");
        let tools = client.list_all_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        // Who holds no lease has no use for the others.
        assert_eq!(names, ["get_task", "list_ready", "create_task", "verify_trace"]);
        assert!(tools.iter().all(|tool| tool.description.is_some() && tool.input_schema["type"] == "object"));
        // Several at once, each with its own answer.
        let (ready, task) = tokio::join!(
            call(&client, "list_ready", json!({})),
            call(&client, "get_task", json!({"task": id})),
        );
        let ((ready, is_error), (task, is_other_error)) = (said(&ready), said(&task));
        assert!(!is_error && ready.contains(&id), "{ready}");
        assert!(!is_other_error && task.contains("Fix the login"), "{task}");
        let (made, is_error) = said(&call(&client, "create_task", json!({"title": "Another"})).await);
        assert!(!is_error && made.contains("TASK-"), "{made}");
        // What a tool refuses is an answer that says what to do; what is no tool is an error of the protocol.
        let (refused, is_error) = said(&call(&client, "get_task", json!({"task": "7"})).await);
        assert!(is_error && refused.contains("TASK-2026-02-09-057"), "{refused}");
        assert!(client.call_tool(CallToolRequestParams::new("no_such_tool")).await.is_err());
        let (still, is_error) = said(&call(&client, "get_task", json!({"task": id})).await);
        assert!(!is_error && still.contains(&id), "the conversation goes on: {still}");
        client.cancel().await.unwrap();
    });
    assert!(home.events().iter().any(|event| event["payload"]["title"] == "Another"));
    web.serving.stop();
}

#[test]
fn an_agent_works_on_its_task_with_its_token() {
    let home = Home::new();
    let web = Web::start(&home);
    let (own, other) = (web.task("own"), web.task("other"));
    let agents = token(&home, "ada", &["--scope", "agent", "--agent", "ada", "--task", &own]);
    web.post(&format!("/v1/tasks/{own}/claim"), &json!({"agent": "ada"})).expect(200);
    wait(async {
        let client = begin(&web, &agents).await.unwrap();
        let (progress, is_error) =
            said(&call(&client, "report_progress", json!({"progress": "half done"})).await);
        assert!(!is_error, "{progress}");
        let (beaten, is_error) = said(&call(&client, "heartbeat", json!({})).await);
        assert!(!is_error, "{beaten}");
        let (refused, is_error) = said(&call(&client, "get_task", json!({"task": other})).await);
        assert!(is_error && refused.contains("nothing else"), "{refused}");
        let done = json!({"outcome": "done", "summary": "It is done."});
        let (done, is_error) = said(&call(&client, "report_completion", done).await);
        assert!(!is_error, "{done}");
        client.cancel().await.unwrap();
    });
    let logged = home.events().into_iter().rfind(|event| event["type"] == "task.logged").unwrap();
    assert_eq!((&logged["actor"]["agent"], &logged["task"]), (&json!("ada"), &json!(own)));
    web.serving.stop();
}

#[test]
fn a_wrong_token_opens_no_conversation() {
    let home = Home::new();
    let web = Web::start(&home);
    let viewer = token(&home, "v", &["--scope", "viewer"]);
    let revoked = token(&home, "r", &["--scope", "operator"]);
    wait(async {
        // One that is open when its token is taken away ends with it.
        let open = begin(&web, &revoked).await.unwrap();
        home.run(&["token", "revoke", "r"]).expect(0);
        let late = open.call_tool(CallToolRequestParams::new("list_ready")).await;
        assert!(late.is_err(), "{late:?}");
        for wrong in ["wrong", &revoked, &viewer] {
            let error = begin(&web, wrong).await.err().unwrap();
            let told = format!("{error:?}");
            let expected = if wrong == viewer { "403" } else { "AuthRequired" };
            assert!(told.contains(expected), "{wrong}: {told}");
        }
    });
    until("everybody has gone", || web.get("/v1/tasks").expect(200)["tasks"] == json!([]));
    web.serving.stop();
}
