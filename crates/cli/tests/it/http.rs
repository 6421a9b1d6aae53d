//! The interface over HTTP does what the command line does, and says the same.

use serde_json::{Value, json};

use crate::support::{Home, until};
use crate::task_support::without;
use crate::web_support::Web;

#[test]
fn a_task_is_the_same_over_http_and_on_the_command_line() {
    let home = Home::new();
    let web = Web::start(&home);
    let made = web.post(
        "/v1/tasks",
        &json!({
            "title": "Fix the login", "body": "It fails.\n", "status": "ready", "priority": "high",
            "routing": {"agent": "ada", "tags": ["web"]}, "metadata": {"reviewRequired": false},
        }),
    );
    let made = made.expect(201);
    let id = made["id"].as_str().unwrap();
    let path = format!("/v1/tasks/{id}");
    let shown = web.get(&path);
    assert_eq!(shown.expect(200), made);
    let by_command: Value = serde_json::from_str(&home.run(&["task", "show", id, "--json"]).stdout).unwrap();
    let by_http = without(made.clone(), "card");
    assert_eq!(by_command, by_http, "the command line shows the same object, but for the card");
    assert_eq!(shown.header("etag").unwrap(), format!("\"{}\"", made["rev"]));

    let claimed = web.post(&format!("{path}/claim"), &json!({"agent": "ada", "ttl": "5m"})).expect(200);
    assert_eq!((&claimed["taskId"], &claimed["fence"]), (&json!(id), &json!(1)));
    web.post(&format!("{path}/claim"), &json!({"agent": "bob"})).refuses(409, "T008");
    let holder = json!({"agent": "ada", "fence": 1});
    assert!(web.post(&format!("{path}/beat"), &holder).expect(200)["expiresAt"].is_string());
    web.post(&format!("{path}/log"), &json!({"text": "half done"})).expect(200);
    let released = web.post(&format!("{path}/release"), &holder).expect(200);
    assert_eq!(released["status"], "ready");
    web.post(&format!("{path}/release"), &holder).refuses(409, "T011");
    let moved = web.post(&format!("{path}/transition"), &json!({"to": "blocked", "reason": "no keys"}));
    assert_eq!(moved.expect(200)["status"], "blocked");
    let refused = web.post(&format!("{path}/transition"), &json!({"to": "done", "reason": "x"}));
    refused.refuses(422, "T004");
    let by_command = home.run(&["task", "move", id, "done", "--reason", "x", "--json"]);
    let by_command: Value = serde_json::from_str(by_command.stderr.trim()).unwrap();
    assert_eq!(refused.json()["title"], by_command["error"]["message"], "in the same words");
    web.serving.stop();
}

#[test]
fn a_change_of_something_that_changed_is_refused() {
    let home = Home::new();
    let web = Web::start(&home);
    let id = web.task("one");
    let path = format!("/v1/tasks/{id}");
    let tag = web.get(&path).header("etag").unwrap().to_owned();
    let patch = |tag: &str, title: &str| {
        web.ask_as(&web.token, "PATCH", &path, Some(&json!({"title": title})), &[("If-Match", tag)])
    };
    assert_eq!(patch(&tag, "two").expect(200)["title"], "two");
    patch(&tag, "three").refuses(412, "W010");
    assert_eq!(web.get(&path).expect(200)["title"], "two");
    let new = web.get(&path).header("etag").unwrap().to_owned();
    assert_eq!(web.ask_as(&web.token, "GET", &path, None, &[("If-None-Match", &new)]).status, 304);
    web.serving.stop();
}

#[test]
fn tasks_come_page_by_page_and_none_twice() {
    let home = Home::new();
    let web = Web::start(&home);
    let made: Vec<String> = (0..7).map(|n| web.task(&format!("task {n}"))).collect();
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = web.get(&format!("/v1/tasks?limit=3&status=ready{cursor}")).expect(200);
        found.extend(
            page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, made);
    web.get("/v1/tasks?status=finished").refuses(400, "W004");
    web.get("/v1/tasks?limit=0").refuses(400, "W004");
    web.get("/v1/tasks?colour=red").refuses(400, "W004");
    web.serving.stop();
}

#[test]
fn what_does_not_read_names_the_field_what_was_expected_and_what_came() {
    let home = Home::new();
    let web = Web::start(&home);
    for (body, says) in [
        (json!({}), "title is missing"),
        (json!({"title": 7}), "title: expected a text, got 7"),
        (json!({"title": "x", "priority": "urgent"}), "priority: expected one of critical"),
        (json!({"titel": "x"}), "there is no argument \"titel\"; did you mean title?"),
        (json!({"title": "x", "dependsOn": ["abc"]}), "dependsOn: expected ids of tasks"),
        (json!([]), "the body: expected an object"),
    ] {
        let answer = web.post("/v1/tasks", &body);
        answer.refuses(400, "W004");
        let title = answer.json()["title"].as_str().unwrap().to_owned();
        assert!(title.contains(says), "{body}: {title}");
    }
    web.post("/v1/tasks", &json!({"title": "x", "parentId": "TASK-2020-01-01-001"})).refuses(404, "T006");
    web.get("/v1/tasks/TASK-2020-01-01-001").refuses(404, "T001");
    web.get("/v1/tasks/%2e%2e%2fetc").refuses(404, "T001");
    web.get("/v1/nothing").refuses(404, "W006");
    let wrong = web.ask("DELETE", "/v1/tasks", None);
    wrong.refuses(405, "W007");
    assert_eq!(wrong.header("allow"), Some("GET, POST"));
    let headers = [("Host", web.address.as_str()), ("Authorization", &format!("Bearer {}", web.token))];
    web.say("POST", "/v1/tasks", &headers, b"title=x").refuses(415, "W009");
    web.say("POST", "/v1/tasks", &headers, b"").refuses(415, "W009");
    assert_eq!(web.get("/v1/tasks").expect(200)["tasks"], json!([]), "nothing was made");
    // Where nothing has to be said, nothing need be said: what is refused is the task, which does not wait for it.
    let id = web.task("one");
    web.say("POST", &format!("/v1/tasks/{id}/retry"), &headers, b"").refuses(422, "T013");
    web.serving.stop();
}

#[test]
fn the_same_key_is_done_once_also_after_a_kill() {
    let home = Home::new();
    let web = Web::start(&home);
    let (token, body) = (web.token.clone(), json!({"title": "once", "status": "ready"}));
    let make = |web: &Web, body: &Value| {
        web.ask_as(&token, "POST", "/v1/tasks", Some(body), &[("Idempotency-Key", "k-1")])
    };
    let first = make(&web, &body);
    let again = make(&web, &body);
    assert_eq!(again.expect(201), first.expect(201));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    make(&web, &json!({"title": "other"})).refuses(422, "W011");
    web.serving.signal("-KILL");
    drop(web);
    let web = Web::start(&home);
    assert_eq!(make(&web, &body).expect(201), first.expect(201));
    assert_eq!(web.get("/v1/tasks").expect(200)["tasks"].as_array().unwrap().len(), 1);
    web.serving.stop();
}

#[test]
fn what_cannot_be_told_after_a_death_is_not_done_twice() {
    let home = Home::new();
    let web = Web::start(&home);
    let token = web.token.clone();
    let open =
        |web: &Web| web.ask_as(&token, "POST", "/v1/traces", Some(&json!({})), &[("Idempotency-Key", "k")]);
    open(&web).expect(201);
    web.serving.signal("-KILL");
    drop(web);
    // As if it had died before the answer was kept.
    let kept = home.data().join("server/requests.jsonl");
    let text = std::fs::read_to_string(&kept).unwrap();
    let begun: Vec<&str> = text.lines().filter(|line| !line.contains("\"answer\"")).collect();
    std::fs::write(&kept, format!("{}\n", begun.join("\n"))).unwrap();
    let web = Web::start(&home);
    let before = web.get("/v1/traces").expect(200);
    for _ in 0..2 {
        open(&web).refuses(409, "S001");
    }
    assert_eq!(web.get("/v1/traces").expect(200), before);
    web.serving.stop();
}

#[test]
fn messages_signals_and_verdicts_of_ci_are_taken_as_on_the_command_line() {
    let home = Home::new().with_env("AGENT_EXIT_PROTOCOL_ENABLED", "true");
    let web = Web::start(&home);
    let id = web.task("report me");
    web.post(&format!("/v1/tasks/{id}/claim"), &json!({"agent": "ada"})).expect(200);
    let update = json!({
        "protocol": "aof", "version": 1, "type": "status.update", "taskId": id, "fromAgent": "ada",
        "toAgent": "baton", "sentAt": "2026-02-09T10:00:00Z", "fence": 1,
        "payload": {"taskId": id, "agentId": "ada", "progress": "half done"},
    });
    let sent = web.post("/v1/messages", &update).expect(200);
    assert_eq!(sent["accepted"], true);
    assert!(sent["position"].as_u64().unwrap() > 0 && !sent["events"].as_array().unwrap().is_empty());
    let mut late = update;
    late["fence"] = 0.into();
    late["payload"]["progress"] = "done".into();
    let refused = web.post("/v1/messages", &late).expect(422);
    assert_eq!((&refused["accepted"], refused["reason"].is_string()), (&json!(false), true));
    let signal = json!({"task": id, "signal": {"nonsense": 1}});
    assert_eq!(web.post("/v1/exit-signals", &signal).expect(422)["accepted"], false);
    web.post("/v1/ci-reports", &json!({"task": id, "passed": true})).refuses(422, "T013");
    web.serving.stop();
}

#[test]
fn a_session_is_begun_spoken_to_and_followed() {
    let home = Home::new();
    let web = Web::start(&home);
    let session = web.post("/v1/sessions", &json!({"agent": "mock"})).expect(201);
    let id = session["id"].as_str().unwrap().to_owned();
    let events = web.events(&format!("/v1/sessions/{id}/events"), None);
    web.post(&format!("/v1/sessions/{id}/input"), &json!({"text": "echo hello"})).expect(200);
    let mut last = 0;
    for event in events {
        let at = event.id.unwrap();
        assert_eq!(at, last + 1, "every event once and in order");
        last = at;
        if event.data.to_string().contains("hello") && event.name == "stream_event" {
            break;
        }
    }
    // Whoever comes again goes on after what it had.
    let again = web.events(&format!("/v1/sessions/{id}/events"), Some(last)).next();
    assert!(again.is_none_or(|event| event.id == Some(last + 1)));
    let stopped = web.post(&format!("/v1/sessions/{id}/stop"), &json!({})).expect(200);
    assert_eq!(stopped["terminationInfo"]["reason"], "terminated");
    // What it became is told also to those who come when it is over, and that they missed something to those who followed it.
    let over: Vec<_> = web.events(&format!("/v1/sessions/{id}/events"), None).collect();
    let (ended, states) = over.split_last().unwrap();
    assert_eq!((ended.name.as_str(), &ended.data["reason"]), ("ended", &json!("terminated")));
    assert!(states.len() > 2 && states.iter().all(|event| event.name == "state_event"), "{states:?}");
    assert_eq!(web.events(&format!("/v1/sessions/{id}/events"), Some(last)).next().unwrap().name, "gap");
    assert_eq!(web.get("/v1/sessions").expect(200)["sessions"][0]["id"], json!(id));
    web.post(&format!("/v1/sessions/{id}/input"), &json!({"text": "more"})).refuses(422, "A003");
    web.get("/v1/sessions/sess_nothing").refuses(404, "A001");
    web.post("/v1/sessions", &json!({"agent": "nobody"})).refuses(404, "A002");
    web.serving.stop();
}

#[test]
fn of_a_long_transcript_the_end_is_given() {
    let home = Home::new();
    let web = Web::start(&home);
    let session = web.post("/v1/sessions", &json!({"agent": "mock"})).expect(201);
    let id = session["id"].as_str().unwrap().to_owned();
    web.post(&format!("/v1/sessions/{id}/input"), &json!({"text": "echo first"})).expect(200);
    let get = || web.get(&format!("/v1/sessions/{id}/transcript")).expect(200);
    until("it has said so", || get()["lines"].as_array().unwrap().iter().any(|line| line["kind"] == "text"));
    web.post(&format!("/v1/sessions/{id}/stop"), &json!({})).expect(200);
    let short = get();
    assert_eq!((&short["isTruncated"], &short["lines"][0]["kind"]), (&json!(false), &json!("prompt")));
    let of = |kinds: &str| web.get(&format!("/v1/sessions/{id}/transcript?{kinds}")).expect(200);
    let prompts = of("kind=prompt");
    assert_eq!(prompts["lines"].as_array().unwrap().len(), 1, "{prompts}");
    assert!(prompts["lines"][0]["streamId"].as_str().unwrap().starts_with("turn_"), "{prompts}");
    assert_eq!(of("kind=prompt&kind=text")["lines"].as_array().unwrap().len(), 2);
    assert_eq!(of("kind=nothing")["lines"], json!([]));
    // More than is given, and more than any command may print.
    let path = home.data().join("sessions").join(&id).join("transcript.jsonl");
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    let text = "x".repeat(1 << 20);
    for n in 0..80 {
        let line = json!({"at": "2099-01-01T00:00:00.000Z", "kind": "text", "n": n, "text": text});
        std::io::Write::write_all(&mut file, format!("{line}\n").as_bytes()).unwrap();
    }
    let long = get();
    let numbers: Vec<u64> =
        long["lines"].as_array().unwrap().iter().map(|line| line["n"].as_u64().unwrap()).collect();
    assert_eq!((&long["isTruncated"], &numbers[..]), (&json!(true), &[77, 78, 79][..]));
    web.serving.stop();
}

#[test]
fn traces_are_read_proved_exported_and_verified() {
    let home = Home::new();
    let web = Web::start(&home);
    let trace =
        web.post("/v1/traces", &json!({"title": "work"})).expect(201)["trace"].as_str().unwrap().to_owned();
    let event = json!({"type": "note", "payload": {"text": "hello"}});
    let appended = web.post(&format!("/v1/traces/{trace}/events?agent=ada"), &event).expect(201);
    let event = appended["events"][0]["id"].as_str().unwrap();
    let shown = web.get(&format!("/v1/traces/{trace}?limit=1")).expect(200);
    assert_eq!((shown["events"].as_array().unwrap().len(), &shown["next"]), (1, &json!(2)));
    assert!(web.get(&format!("/v1/events/{event}/proof")).expect(200)["proof"].is_string());
    assert!(web.get("/v1/checkpoint").expect(200)["size"].as_u64().unwrap() >= 3);
    let report = web.post(&format!("/v1/traces/{trace}/verify"), &json!({})).expect(200);
    assert!(report["verdict"].as_str().unwrap().starts_with("pass"), "{report}");
    let bundle = web.get(&format!("/v1/traces/{trace}/bundle"));
    assert_eq!(bundle.status, 200);
    let headers = [("Host", web.address.as_str()), ("Authorization", &format!("Bearer {}", web.token))];
    let verified = web.say("POST", "/v1/verify", &headers, &bundle.body).expect(200);
    assert!(verified["verdict"].as_str().unwrap().starts_with("pass"), "{verified}");
    let mut tampered = bundle.body.clone();
    let at = tampered.windows(5).position(|bytes| bytes == b"hello").unwrap();
    tampered[at] = b'j';
    assert_eq!(web.say("POST", "/v1/verify", &headers, &tampered).expect(200)["verdict"], "fail");
    let task = web.task("with a trace");
    web.post(&format!("/v1/tasks/{task}/claim"), &json!({"agent": "ada"})).expect(200);
    let of_task = web.get(&format!("/v1/tasks/{task}/trace")).expect(200);
    assert!(of_task["size"].as_u64().unwrap() >= 2);
    let runs = web.get(&format!("/v1/tasks/{task}/runs")).expect(200);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
    assert!(runs["runs"][0].get("ended").is_none(), "{runs}");
    let moved = json!({"to": "blocked", "reason": "taken back"});
    web.post(&format!("/v1/tasks/{task}/transition"), &moved).expect(200);
    let runs = web.get(&format!("/v1/tasks/{task}/runs")).expect(200);
    assert_eq!(runs["runs"][0]["ended"]["by"], "lease.released", "{runs}");
    web.serving.stop();
}

#[test]
fn artifacts_are_stored_under_their_digest_and_under_no_other() {
    let home = Home::new();
    let web = Web::start(&home);
    let bytes = b"<script>alert(1)</script>".as_slice();
    let digest = baton_ledger::hash::sha256(bytes).to_string();
    let headers = [("Host", web.address.as_str()), ("Authorization", &format!("Bearer {}", web.token))];
    let path = format!("/v1/artifacts/{digest}");
    web.get(&path).refuses(404, "L026");
    assert_eq!(web.say("PUT", &path, &headers, bytes).expect(200)["bytes"], bytes.len());
    let found = web.get(&path);
    assert_eq!(found.body, bytes);
    assert_eq!(found.header("content-type"), Some("application/octet-stream"), "never as a page");
    assert_eq!(found.header("x-content-type-options"), Some("nosniff"));
    web.say("PUT", &path, &headers, b"other").refuses(400, "W004");
    web.get("/v1/artifacts/..%2f..%2fbaton.toml").refuses(400, "W004");
    web.serving.stop();
}

#[test]
fn the_ledger_is_followed_from_any_position_without_loss_or_repetition() {
    let home = Home::new();
    let web = Web::start(&home);
    for n in 0..5 {
        web.task(&format!("task {n}"));
    }
    let size = web.get("/v1/checkpoint").expect(200)["size"].as_u64().unwrap();
    let mut events = web.events("/v1/events", None);
    let mut seen: Vec<u64> = Vec::new();
    for event in events.by_ref() {
        if event.name == "live" {
            break;
        }
        assert_eq!(event.data["pos"].as_u64(), event.id);
        seen.push(event.id.unwrap());
    }
    assert_eq!(seen, (1..=size).collect::<Vec<_>>());
    web.task("while it is followed");
    assert_eq!(events.next().unwrap().id, Some(size + 1));
    let resumed = web.events("/v1/events", Some(size - 1)).next().unwrap();
    assert_eq!(resumed.id, Some(size));
    let only = web.events("/v1/events?type=task.created&follow=false", None);
    assert_eq!(only.filter(|event| event.name.is_empty()).count(), 6);
    let headers = [("Last-Event-ID", "99999")];
    web.ask_as(&web.token, "GET", "/v1/events", None, &headers).refuses(404, "L034");
    web.ask_as(&web.token, "GET", "/v1/events", None, &[("Accept", "application/json")]).refuses(406, "W008");
    // The end of the server is told.
    web.serving.signal("-TERM");
    assert!(events.any(|event| event.name == "end"));
    web.serving.stop_signalled();
}

#[test]
fn the_description_is_what_is_committed() {
    let home = Home::new();
    let web = Web::start(&home);
    let served = web.get("/v1/openapi.json").expect(200);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");
    if std::env::var_os("BATON_REGENERATE").is_some() {
        let text = format!("{}\n", serde_json::to_string_pretty(&sorted(served.clone())).unwrap());
        std::fs::write(path, text).unwrap();
    }
    let committed: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(committed == served, "BATON_REGENERATE=1 writes it anew");
    web.serving.stop();
}

/// The same with its keys in order, whoever built it.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<(String, Value)> =
                map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(pairs.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        value => value,
    }
}
