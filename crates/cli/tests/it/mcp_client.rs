//! The tool server as the official client meets it.

use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, JsonObject};
use serde_json::{Value, json};

use crate::support::Home;

fn call(name: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    CallToolRequestParams::new(name).with_arguments(arguments as JsonObject)
}

#[test]
fn the_official_client_lists_the_tools_and_calls_them() {
    let home = Home::new();
    let id = home.task(&[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut command = home.command(&["mcp", "--agent", "ada"]);
        command.stdin(std::process::Stdio::piped());
        let mut child = tokio::process::Command::from(command).spawn().unwrap();
        let streams = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let client = ().serve(streams).await.unwrap();
        let tools = client.list_all_tools().await.unwrap();
        assert_eq!(tools.len(), 11);
        assert!(tools.iter().any(|tool| tool.name == "report_completion"));
        let claimed = client.call_tool(call("claim_task", json!({"task": id}))).await.unwrap();
        assert_eq!(claimed.is_error, Some(false), "{claimed:?}");
        let two = tokio::join!(
            client.call_tool(call("get_task", json!({"task": id}))),
            client.call_tool(call("heartbeat", json!({"task": id}))),
        );
        assert_eq!((two.0.unwrap().is_error, two.1.unwrap().is_error), (Some(false), Some(false)));
        let refused = client.call_tool(call("get_task", json!({"task": "7"}))).await.unwrap();
        assert_eq!(refused.is_error, Some(true));
        assert!(client.call_tool(call("no_such_tool", json!({}))).await.is_err());
        client.cancel().await.unwrap();
        assert!(child.wait().await.unwrap().success(), "it ends with its client");
    });
}
