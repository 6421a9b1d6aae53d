//! The description and the server agree: schemathesis asks everything that the description allows, and much that it does not.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::Home;
use crate::web_support::Web;

/// Real things for the named parts of paths, beside what is made up.
fn with_known(mut document: Value, known: &[(&str, &str, Value)]) -> Value {
    for (path, operations) in document["paths"].as_object_mut().unwrap() {
        for operation in operations.as_object_mut().unwrap().values_mut() {
            let Some(parameters) = operation["parameters"].as_array_mut() else { continue };
            for parameter in parameters.iter_mut().filter(|parameter| parameter["in"] == "path") {
                let found = known
                    .iter()
                    .find(|(prefix, name, _)| path.starts_with(prefix) && parameter["name"] == *name);
                if let Some((_, _, value)) = found {
                    parameter["schema"] = json!({"type": "string", "enum": [value, "nothing"]});
                }
            }
        }
    }
    document
}

#[test]
fn no_answer_is_off_the_description_and_none_is_a_failure_of_the_server() {
    let python = std::env::var("BATON_PYTHON").unwrap_or_else(|_| "python3".into());
    let probe = Command::new(&python).args(["-c", "import schemathesis"]).output().unwrap();
    assert!(probe.status.success(), "schemathesis is missing; `make test` installs it: {python}");
    let home = Home::new();
    let web = Web::start(&home);
    let id = |value: Value, name: &str| value[name].clone();
    let task = id(web.post("/v1/tasks", &json!({"title": "x", "status": "ready"})).expect(201), "id");
    let trace = id(web.post("/v1/traces", &json!({})).expect(201), "trace");
    let note = json!({"type": "note", "payload": {"text": "hello"}});
    let appended =
        web.post(&format!("/v1/traces/{}/events?agent=ada", trace.as_str().unwrap()), &note).expect(201);
    let session = id(web.post("/v1/sessions", &json!({"agent": "mock"})).expect(201), "id");
    let document = web.get("/v1/openapi.json").expect(200);
    let document = with_known(
        document,
        &[
            ("/v1/tasks/", "id", task),
            ("/v1/traces/", "id", trace),
            ("/v1/sessions/", "id", session),
            ("/v1/events/", "id", appended["events"][0]["id"].clone()),
        ],
    );
    let file = home.work().join("openapi.json");
    fs::write(&file, document.to_string()).unwrap();
    // Streams do not end, and sockets are none of its business.
    let left_out = ["/v1/commands", "/v1/events", "/v1/sessions/{id}/events"];
    let program = Path::new(&python).with_file_name("st");
    let mut command = Command::new(program);
    command.arg("run").arg(&file).arg(format!("--url=http://{}", web.address));
    command.arg("-H").arg(format!("Authorization: Bearer {}", web.token));
    command.args(["--max-examples", "8", "--seed", "1", "--request-timeout", "20", "--no-color"]);
    command.args(["--phases", "coverage,fuzzing"]).args(["--checks", CHECKS]);
    for path in left_out {
        command.args(["--exclude-path", path]);
    }
    let ran = command.current_dir(home.work()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let end: String =
        said.lines().skip_while(|line| !line.contains("FAILURES")).take(120).collect::<Vec<_>>().join("\n");
    assert!(ran.status.success(), "{end}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains("generated"), "it asked something: {said}");
    web.get("/readyz").expect(200);
    web.serving.stop();
}

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,unsupported_method,ignored_auth";
