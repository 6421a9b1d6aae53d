//! The agents of the guide work as they stand there. The one in TypeScript is run by the tests of the SDK.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{Home, finish};
use crate::web_support::Web;

const PAGE: &str = include_str!("../../../../docs/guide/own-agent.md");

/// The block of a language.
fn block(language: &str) -> &'static str {
    let (_, after) = PAGE.split_once(&format!("```{language}\n")).unwrap();
    after.split_once("```").unwrap().0
}

/// Has an agent do a task, and gives what it printed.
fn work(program: &str, language: &str, says: &str) {
    let text = block(language);
    assert!(text.lines().count() <= 32, "thirty lines, more or less");
    let home = Home::new();
    let web = Web::start(&home);
    // The first that is listed cannot be claimed: what it depends on is not done.
    let open = web.post("/v1/tasks", &json!({"title": "Not yet"})).expect(201);
    let waits = json!({"title": "After that", "status": "ready", "dependsOn": [open["id"]]});
    web.post("/v1/tasks", &waits).expect(201);
    let made = web.post("/v1/tasks", &json!({"title": "Write hello.txt", "status": "ready"})).expect(201);
    let id = made["id"].as_str().unwrap();
    let token = home.json(&["token", "new", "ada", "--scope", "agent", "--agent", "ada"]);
    let run = |token: &str| {
        let mut command = Command::new(program);
        command.args(["-c", text]).current_dir(home.work()).stdin(Stdio::null());
        command.env("BATON_URL", format!("http://{}", web.address)).env("BATON_TOKEN", token);
        finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(), None)
    };
    let wrong = run("baton_wrong");
    assert_ne!(wrong.code, Some(0), "{wrong:?}");
    assert!(!home.work().join("hello.txt").exists(), "whoever holds no task does nothing");
    let token = token["token"].as_str().unwrap();
    let ran = run(token);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), says), "{}", ran.stderr);
    let task = web.get(&format!("/v1/tasks/{id}")).expect(200);
    assert_eq!(task["status"], "review", "{task}");
    assert!(home.work().join("hello.txt").exists());
    let again = run(token);
    assert!(format!("{}{}", again.stdout, again.stderr).contains("nothing to do"), "{again:?}");
    web.serving.stop();
}

#[test]
fn the_agent_of_the_shell_does_its_task() {
    work("sh", "sh", "true");
}

#[test]
fn the_agent_of_python_does_its_task() {
    let python = std::env::var("BATON_PYTHON").unwrap_or_else(|_| "python3".into());
    work(&python, "python", "True");
}
