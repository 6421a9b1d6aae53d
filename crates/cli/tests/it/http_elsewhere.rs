//! Whoever asks over HTTP may be on another machine: no path that they name is read or written here, and only an administrator has programs run.

use std::fs;

use serde_json::{Value, json};

use crate::acp_support::Socket;
use crate::http_access::token;
use crate::support::Home;
use crate::web_support::Web;

/// Does a command over the WebSocket as no client of ours would, and gives what was said of it until its end.
fn command(web: &Web, token: &str, args: &[&str]) -> String {
    let mut socket = Socket::open_at(web, token, "/v1/commands", "").unwrap();
    socket.send(&json!({"v": 1, "args": args}));
    let mut said = String::new();
    while let Some(message) = socket.receive() {
        said.push_str(&message.to_string());
        if message.get("exit").or(message.get("refused")).is_some() {
            break;
        }
    }
    said
}

#[test]
fn no_file_of_the_server_is_cited_by_its_path() {
    let home = Home::new();
    let web = Web::start(&home);
    let operator = token(&home, "olga", &["--scope", "operator"]);
    let made = web.ask_as(&operator, "POST", "/v1/traces", Some(&json!({})), &[]).expect(201);
    let trace = made["trace"].as_str().unwrap();
    let secret = home.work().join("secret.txt");
    fs::write(&secret, "nobody's business").unwrap();
    for path in [secret.to_str().unwrap(), "secret.txt", "/proc/self/environ"] {
        let event = json!({"type": "note", "payload": {}, "artifacts": [{"path": path}]});
        let events = format!("/v1/traces/{trace}/events?agent=olga");
        let refused = web.ask_as(&operator, "POST", &events, Some(&event), &[]);
        assert!((400..500).contains(&refused.status), "{path}: {refused:?}");
        assert!(
            String::from_utf8_lossy(&refused.body).contains("means nothing on the server"),
            "{refused:?}"
        );
    }
    let shown = web.get(&format!("/v1/traces/{trace}")).expect(200);
    assert_eq!(shown["events"].as_array().unwrap().len(), 1, "only that it was opened: {shown}");
    // Whoever is at the machine cites what is there.
    let event = json!({"type": "note", "payload": {}, "artifacts": [{"path": "secret.txt"}]});
    home.run_with(&["trace", "append", trace, "--agent", "ada"], event.to_string()).expect(0);
    web.serving.stop();
}

#[test]
fn no_file_of_the_server_is_written_and_no_program_named() {
    let home = Home::new();
    let web = Web::start(&home);
    let operator = token(&home, "olga", &["--scope", "operator"]);
    let made = web.post("/v1/traces", &json!({})).expect(201);
    let trace = made["trace"].as_str().unwrap();
    let target = home.work().join("out.bundle");
    let proof = fs::canonicalize(home.work()).unwrap().join("ran");
    let touch = format!("touch {}", proof.display());
    for admin in [false, true] {
        let token = if admin { &web.token } else { &operator };
        let said = command(&web, token, &["trace", "export", trace, "-o", target.to_str().unwrap()]);
        assert!(said.contains("S003") && !target.exists(), "{said}");
        let said = command(&web, token, &["trace", "prove", "--consistency", "/etc/passwd"]);
        assert!(said.contains("S003"), "{said}");
        let said =
            command(&web, token, &["agent", "add", "evil", "--profile", "plain", "--", "sh", "-c", &touch]);
        assert_eq!(said.contains("S003"), !admin, "{said}");
        let said = command(&web, token, &["agent", "check", "evil"]);
        assert_eq!(said.contains("S003"), !admin, "{said}");
        assert_eq!(proof.exists(), admin, "{said}");
    }
    let config = fs::read_to_string(home.data().join("baton.toml")).unwrap();
    assert!(config.contains("evil"), "the administrator's was written: {config}");
    web.serving.stop();
}

#[test]
fn a_command_from_elsewhere_is_closed_with_a_word_when_the_server_ends() {
    let home = Home::new();
    let web = Web::start(&home);
    let mut socket = Socket::open_at(&web, &web.token, "/v1/commands", "").unwrap();
    socket.send(&json!({"v": 1, "args": ["events", "--follow"]}));
    assert_eq!(socket.receive().unwrap()["begun"], true);
    web.serving.signal("-TERM");
    let mut last = None;
    while let Some(message) = socket.receive() {
        last = Some(message);
    }
    let word = socket.closed_with.as_deref();
    assert!(word == Some("the server ends") || last.is_some_and(|last| last["exit"].is_u64()), "{word:?}");
    web.serving.stop_signalled();
}

#[test]
fn a_number_without_a_fraction_is_the_same_in_the_ledger_and_beside_it() {
    let home = Home::new();
    let web = Web::start(&home);
    let body =
        r#"{"title": "x", "status": "ready", "metadata": {"a": 2.0, "b": [-0.0, 1e3], "c": {"d": 0.5}}}"#;
    let headers = [
        ("Host", web.address.as_str()),
        ("Authorization", &format!("Bearer {}", web.token)),
        ("Content-Type", "application/json"),
    ];
    let made = web.say("POST", "/v1/tasks", &headers, body.as_bytes()).expect(201);
    let id = made["id"].as_str().unwrap().to_owned();
    let metadata = |task: &Value| (task["metadata"]["a"].clone(), task["metadata"]["b"].clone());
    assert_eq!(metadata(&made), (json!(2), json!([0, 1000])));
    let events = home.events().len();
    // Killed: whoever comes next finds a file that says what the ledger says.
    drop(web.serving);
    home.run(&["task", "log", &id, "still the same"]).expect(0);
    home.run(&["replay"]).expect(0);
    let types: Vec<Value> =
        home.events().into_iter().skip(events).map(|event| event["type"].clone()).collect();
    assert_eq!(types, ["task.logged"], "nobody has edited it");
}
