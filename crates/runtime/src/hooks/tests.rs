//! What reads, what does not, and where the error points.

use super::*;
use baton_core::session::{FailurePolicy, ToolFilter};

/// The example of the reference.
const WHOLE: &str = r#"{
  "hooks": [
    {
      "name": "auto_commit",
      "command": ["git", "commit", "-am", "Auto-commit\nby a hook"],
      "timeout_ms": 5000,
      "failure_policy": { "type": "retry", "max_attempts": 3, "delay_ms": 500 },
      "tool_filter": { "type": "tool_names", "names": ["edit_file", "grep"] }
    },
    { "name": "check", "command": ["make", ""], "failure_policy": { "type": "warn_continue" } }
  ]
}"#;

fn check(text: &str, error: &str) {
    let flaw = parse(text.as_bytes()).expect_err(text);
    assert_eq!(flaw.to_string(), error, "{text}");
}

/// A file with one hook of these members.
fn one(members: &str) -> String {
    format!("{{\"hooks\":[{{\"name\":\"a\",\"command\":[\"b\"],{members}}}]}}")
}

#[test]
fn a_whole_file_reads_and_what_is_left_out_has_the_defaults() {
    let hooks = parse(WHOLE.as_bytes()).unwrap();
    assert_eq!(hooks[0].command[3], "Auto-commit\nby a hook");
    assert_eq!(hooks[0].failure_policy, FailurePolicy::Retry { max_attempts: 3, delay_ms: 500 });
    assert_eq!(hooks[0].tool_filter, ToolFilter::ToolNames(vec!["edit_file".into(), "grep".into()]));
    assert_eq!((hooks[0].timeout_ms, hooks[1].timeout_ms), (5000, 120_000));
    assert_eq!(hooks[1].failure_policy, FailurePolicy::WarnContinue);
    assert_eq!(hooks[1].tool_filter, ToolFilter::AnyMutating);
    let least = parse(br#"{"hooks":[{"name":"a","command":["b"]}]}"#).unwrap();
    assert_eq!(least[0].failure_policy, FailurePolicy::FailSession);
    assert_eq!(parse(b" {\"hooks\" : [ ] } \n").unwrap(), []);
    for same in
        ["\"failure_policy\":{\"type\":\"fail_session\"}", "\"tool_filter\":{\"type\":\"any_mutating\"}"]
    {
        assert_eq!(parse(one(same).as_bytes()).unwrap(), least);
    }
}

#[test]
fn what_is_no_json_says_where() {
    check("", "1:1: EOF while parsing a value");
    check("{\n  \"hooks\": [\n", "3:1: EOF while parsing a list");
    check("{\"hooks\": [],}", "1:14: trailing comma");
    check("{\"hooks\": [],\n \"hooks\": []}", "2:8: member \"hooks\" occurs twice");
}

#[test]
fn what_does_not_fit_says_where_what_was_expected_and_what_came() {
    check("[]", "1:1: expected an object, got []");
    check("\n {}", "2:2: expected hooks, a list of hooks, got none");
    check("{\"hooks\": {}}", "1:11: hooks: expected a list, got {}");
    check("{\"hook\": []}", "1:2: hook: unknown name; did you mean hooks?");
    check("{\n\"hooks\": [],\n\"zzzzzzzzz\": 1}", "3:1: zzzzzzzzz: unknown name; known here: hooks");
    check("{\"hooks\": [7]}", "1:12: hooks[0]: expected an object, got 7");
    check("{\"hooks\":[{\"command\":[\"b\"]}]}", "1:11: hooks[0]: expected name, a name, got none");
    check(
        "{\"hooks\":[{\"name\":\"a\"}]}",
        "1:11: hooks[0]: expected command, a program and its arguments, got none",
    );
    check("{\"hooks\":[{\"name\":1,\"command\":[\"b\"]}]}", "1:19: hooks[0].name: expected a text, got 1");
    check(
        "{\"hooks\":[{\"name\":\" \",\"command\":[\"b\"]}]}",
        "1:19: hooks[0].name: expected a text without control characters that is not blank, got \" \"",
    );
    check(
        "{\"hooks\":[{\"name\":\"a\",\"command\":\"make\"}]}",
        "1:33: hooks[0].command: expected a list, got \"make\"",
    );
    check(
        "{\"hooks\":[{\"name\":\"a\",\"command\":[]}]}",
        "1:33: hooks[0].command: expected a program and its arguments, got an empty list",
    );
    check(
        "{\"hooks\":[{\"name\":\"a\",\"command\":[\"b\", null]}]}",
        "1:39: hooks[0].command[1]: expected a text, got null",
    );
    check(
        "{\"hooks\":[{\"name\":\"a\",\"command\":[\"b\", \"\\u0000\"]}]}",
        "1:39: hooks[0].command[1]: expected a text without NUL, got \"\\u0000\"",
    );
    check(
        "{\"hooks\":[\n{\"name\":\"a\",\"command\":[\"b\"]},\n{\"name\":\"a\",\"command\":[\"b\"]}]}",
        "3:9: hooks[1].name: expected a name of its own, got \"a\" again",
    );
    for (members, error) in [
        ("\"timeout_ms\":0", "1:52: hooks[0].timeout_ms: expected a whole number from 1 to 86400000, got 0"),
        (
            "\"timeout_ms\":\"5s\"",
            "1:52: hooks[0].timeout_ms: expected a whole number from 1 to 86400000, got \"5s\"",
        ),
        (
            "\"timeout_ms\":1.5",
            "1:52: hooks[0].timeout_ms: expected a whole number from 1 to 86400000, got 1.5",
        ),
        ("\"timeout\":5", "1:39: hooks[0].timeout: unknown name; did you mean timeout_ms?"),
        (
            "\"tool_filter\":\"any\"",
            "1:53: hooks[0].tool_filter: expected an object with a type, got \"any\"",
        ),
        (
            "\"tool_filter\":{}",
            "1:53: hooks[0].tool_filter: expected type, any_mutating or tool_names, got none",
        ),
        (
            "\"tool_filter\":{\"type\":\"all\"}",
            "1:61: hooks[0].tool_filter.type: expected any_mutating or tool_names, got \"all\"",
        ),
        (
            "\"tool_filter\":{\"type\":\"tool_names\"}",
            "1:53: hooks[0].tool_filter: expected names, names of tools, got none",
        ),
        (
            "\"tool_filter\":{\"type\":\"tool_names\",\"names\":[]}",
            "1:82: hooks[0].tool_filter.names: expected names of tools, got an empty list: it would never run",
        ),
        (
            "\"tool_filter\":{\"type\":\"any_mutating\",\"names\":[\"x\"]}",
            "1:76: hooks[0].tool_filter.names: unknown name; known here: type",
        ),
        (
            "\"failure_policy\":{\"type\":\"ignore\"}",
            "1:64: hooks[0].failure_policy.type: expected fail_session or warn_continue or retry, got \"ignore\"",
        ),
        (
            "\"failure_policy\":{\"type\":\"retry\"}",
            "1:56: hooks[0].failure_policy: expected max_attempts, how often it is tried, got none",
        ),
        (
            "\"failure_policy\":{\"type\":\"retry\",\"max_attempts\":11,\"delay_ms\":0}",
            "1:87: hooks[0].failure_policy.max_attempts: expected a whole number from 1 to 10, got 11",
        ),
        (
            "\"failure_policy\":{\"type\":\"retry\",\"max_attempts\":1,\"delay_ms\":-1}",
            "1:100: hooks[0].failure_policy.delay_ms: expected a whole number from 0 to 3600000, got -1",
        ),
        (
            "\"failure_policy\":{\"type\":\"fail_session\",\"delay_ms\":1}",
            "1:79: hooks[0].failure_policy.delay_ms: unknown name; known here: type",
        ),
    ] {
        check(&one(members), error);
    }
}

#[test]
fn every_length_is_bounded() {
    let list = |count: usize, item: &dyn Fn(usize) -> String| {
        format!("{{\"hooks\":[{}]}}", (0..count).map(item).collect::<Vec<_>>().join(","))
    };
    let hook = |n: usize| format!("{{\"name\":\"h{n}\",\"command\":[\"b\"]}}");
    assert_eq!(parse(list(64, &hook).as_bytes()).unwrap().len(), 64);
    check(&list(65, &hook), "1:10: hooks: expected at most 64 items, got 65");
    let named =
        |chars: usize| format!("{{\"hooks\":[{{\"name\":\"{}\",\"command\":[\"b\"]}}]}}", "ä".repeat(chars));
    assert!(parse(named(64).as_bytes()).is_ok());
    check(&named(65), "1:19: hooks[0].name: expected at most 64 characters, got 65");
    let large = " ".repeat(HOOKS_FILE_BYTES_MAX as usize) + "{}";
    check(&large, "1:1: expected at most 262144 bytes, got more");
    let long = format!("{{\"{}\":1}}", "x".repeat(100_000));
    assert!(parse(long.as_bytes()).unwrap_err().to_string().len() < 200);
}

#[test]
fn a_file_is_loaded_and_its_errors_have_codes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hooks.json");
    assert_eq!(load(&path), Ok(Vec::new()), "no file, no hooks");
    std::fs::write(&path, WHOLE).unwrap();
    assert_eq!(load(&path).unwrap().len(), 2);
    std::fs::write(&path, "{\"hooks\": 1}").unwrap();
    let error = load(&path).unwrap_err();
    assert_eq!(error.code.as_str(), "hook_config_invalid");
    assert_eq!(error.message, format!("{}:1:11: hooks: expected a list, got 1", path.display()));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let error = load(&path).unwrap_err();
    assert_eq!(error.code.as_str(), "hook_config_read_failed");
    assert!(error.message.ends_with("hooks.json: cannot be read: not a regular file"), "{error}");
}

#[test]
fn places_are_found_in_whatever_form_the_text_has() {
    use place::{Step, locate};
    let text = b"{ \"a\\u0062\" : [ 1 , {\"x\":\"}],{\\\"\"} ,\n [[]], true ] }";
    let list = Step::Member("ab");
    assert_eq!(locate(text, &[list]), (1, 15));
    assert_eq!(locate(text, &[list, Step::Item(1), Step::Name("x")]), (1, 22));
    assert_eq!(locate(text, &[list, Step::Item(1), Step::Member("x")]), (1, 26));
    assert_eq!(locate(text, &[list, Step::Item(2), Step::Item(0)]), (2, 3));
    assert_eq!(locate(text, &[list, Step::Item(3)]), (2, 8));
    assert_eq!(locate(text, &[Step::Name("ab")]), (1, 3));
    assert_eq!(locate(text, &[list, Step::Item(9)]), (1, 15), "as far as it leads");
    assert_eq!(locate(b"", &[list]), (1, 1));
}
