//! `baton run --driven`: a program says what to do and answers what is asked for, in JSON lines.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::runs::lines;
use crate::serve::Serving;
use crate::support::{Home, finish};
use crate::task_support::text;

/// Drives a run: says the first line, and an answer to each permission; gives what it printed, and its exit code.
fn drive(home: &Home, first: &Value, answer: &str) -> (Vec<Value>, Option<i32>) {
    let mut command = home.command(&["run", "--driven", "--json", "--agent", "mock"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{first}").unwrap();
    let mut all = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line["type"] == "permission_requested" {
            writeln!(input, "{}", json!({"permit": "no such", "answer": "allow"})).unwrap();
            writeln!(input, "{}", json!({"permit": line["id"], "answer": answer})).unwrap();
        }
        all.push(line);
    }
    (all, finish(child, None).code)
}

fn check(home: &Home) {
    let first = json!({"prompt": "permission", "metadata": {"from": "a test"}});
    for (answer, status) in [("allow", "succeeded"), ("deny", "canceled")] {
        let (all, code) = drive(home, &first, answer);
        let last = all.last().unwrap();
        assert_eq!((code, &last["outcome"]), (Some(0), &json!("needs_review")));
        let resolved = all.iter().find(|line| line["type"] == "permission_resolved").unwrap();
        assert_eq!((&resolved["answer"], &resolved["by"]), (&json!(answer), &json!("operator")));
        let tool =
            all.iter().rfind(|line| line["toolName"] == "run_command" && !line["status"].is_null()).unwrap();
        assert_eq!(tool["status"], status);
        assert_eq!(home.show(&text(&last["taskId"]))["metadata"]["from"], "a test");
    }
}

#[test]
fn a_program_prompts_and_answers_with_and_without_a_server() {
    let home = Home::new();
    check(&home);
    let serving = Serving::start_with(&home, &["--no-dispatch"]);
    check(&home);
    assert!(!serving.stop().contains("panicked"));
}

#[test]
fn the_end_of_the_input_stops_the_attempt() {
    let home = Home::new();
    let args = ["run", "--driven", "--json", "--agent", "mock"];
    let ended = home.run_with(&args, "{\"prompt\":\"hang\"}\n");
    let (_, last) = lines(&ended);
    assert_eq!((ended.code, &last["outcome"]), (Some(130), &json!("stopped")), "{ended:?}");
    assert_eq!(home.status(&text(&last["taskId"])), "ready");
}

#[test]
fn a_first_line_that_is_no_prompt_is_refused() {
    let home = Home::new();
    let run = |input: &str| home.run_with(&["run", "--driven", "--agent", "mock"], input);
    run("").refused(4, "U004", "standard input ended before there was a prompt");
    run("hello\n").refused(4, "U004", "standard input, line 1: expected {\"prompt\": TEXT}");
    run("{\"prompt\":[]}\n").refused(4, "U004", "prompt: expected a text, got a list");
    run("{\"permit\":\"1\",\"answer\":\"allow\"}\n").refused(4, "U004", "the first line is no prompt");
    run("{\"prompt\":\" \"}\n").refused(2, "U012", "the prompt is empty");
    let own = "{\"prompt\":\"a\",\"metadata\":{\"blockReason\":\"mine\"}}\n";
    assert!(run(own).stderr.contains("blockReason"), "what is Baton's to say stays so");
    assert_eq!(home.json(&["task", "ls"])["tasks"], json!([]));
}
