//! The exit signal: the five examples of its guide, every row of its table, every refusal, the switch, and the evidence.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use baton_ledger::hash::sha256;
use serde_json::{Value, json};

use crate::support::Home;
use crate::task_support::{merged, signal, text, texts, with, without};

const TASK: &str = "TASK-2026-02-09-057";

/// The examples as the guide has them, with the phase that follows.
fn examples() -> Vec<(Value, &'static str)> {
    let more = |phase, reason, fields: Value| merged(&signal(phase, reason), &fields);
    vec![
        (
            more(
                "IMPLEMENTATION",
                "completed",
                json!({
                    "pr_url": "https://github.com/org/repo/pull/123",
                    "evidence_bundle_ref": "evidence/work/W-00042/phase_implementation.yaml",
                    "notes": "Implementation complete, ready for CI",
                }),
            ),
            "CI_PENDING",
        ),
        (
            more(
                "IMPLEMENTATION",
                "completed",
                json!({
                    "pr_url": "https://github.com/org/repo/pull/123",
                    "notes": "Implemented feature X, all tests passing locally",
                }),
            ),
            "CI_PENDING",
        ),
        (
            more(
                "REVIEW",
                "completed",
                json!({
                    "evidence_bundle_ref": "evidence/work/W-00042/review.yaml",
                    "notes": "Code review approved, no issues found",
                }),
            ),
            "READY_FOR_MERGE",
        ),
        (
            more(
                "IMPLEMENTATION",
                "blocked",
                json!({"notes": "Blocked: Waiting for API credentials from infra team"}),
            ),
            "BLOCKED",
        ),
        (
            more(
                "IMPLEMENTATION",
                "error",
                json!({"notes": "Error: Build system configuration issue prevents compilation"}),
            ),
            "BLOCKED",
        ),
    ]
}

#[expect(clippy::needless_pass_by_value, reason = "a message is handed over, whatever it is made of")]
fn check(home: &Home, signal: impl ToString, code: i32) -> Value {
    home.run_with(&["exit", "check", "--json"], signal.to_string()).value(code)
}

/// A task in one of the phases, held by an agent that may end it.
fn in_phase(home: &Home, phase: &str) -> String {
    if phase == "DRAFT" {
        let id = home.task(&["--phase", "DRAFT"]);
        home.claim(&id, "planner");
        return id;
    }
    let id = home.task(&[]);
    home.claim(&id, "implementer");
    if phase == "IMPLEMENTATION" {
        return id;
    }
    home.submitted(&id, &signal("IMPLEMENTATION", "completed"));
    if phase == "CI_PENDING" {
        return id;
    }
    home.run(&["ci", "report", &id, "--passed"]).expect(0);
    for (here, agent) in
        [("READY_FOR_REVIEW", "usher"), ("REVIEW", "reviewer"), ("READY_FOR_MERGE", "merger")]
    {
        home.claim(&id, agent);
        if phase == here {
            return id;
        }
        home.submitted(&id, &signal(here, "completed"));
    }
    panic!("no task gets into {phase} with a lease");
}

#[test]
fn the_five_examples_are_valid_and_say_what_follows() {
    let home = Home::with_signals();
    for (signal, next) in examples() {
        let answer = home.changes_nothing(|home| {
            home.run_with(&["exit", "check", "--json"], serde_json::to_string_pretty(&signal).unwrap())
        });
        assert_eq!(answer.value(0), json!({"v": 1, "valid": true, "next_phase": next}), "{signal}");
    }
    let file = home.work().join("signal.json");
    fs::write(&file, examples()[1].0.to_string()).unwrap();
    let ended = home.run(&["exit", "check", "signal.json"]);
    assert_eq!(ended.expect(0).stdout, "valid: the next phase is CI_PENDING\n");
}

#[test]
fn implementation_complete_is_one_append_signed_by_baton_with_every_field() {
    let home = Home::with_signals();
    home.named_task(TASK, &[]);
    let lease = home.claim(TASK, "swe-backend");
    let (signal, _) = examples().swap_remove(1);
    let answer = home.submitted(TASK, &signal);
    assert_eq!(
        answer,
        json!({"v": 1, "accepted": true, "phase": "IMPLEMENTATION", "next_phase": "CI_PENDING", "warnings": []})
    );
    let records = home.records(TASK);
    let types: Vec<String> = records[4..].iter().map(|record| text(&record["type"])).collect();
    assert_eq!(types, ["AgentSessionCompleted", "task.phase_changed", "task.transitioned", "lease.released"]);
    for (i, record) in records[4..].iter().enumerate() {
        assert_eq!(record["batch"], json!([i + 1, 4]), "one append: all of it or nothing");
        assert_eq!(record["actor"]["role"], "system");
    }
    let completed = &records[4];
    assert_eq!(completed["actor"]["agent"], "baton");
    assert!(completed["sig"]["value"].is_string(), "signed: {completed}");
    assert_eq!(completed["sig"]["key"], records[0]["sig"]["key"], "by the key that opened the trace");
    assert!(text(&completed["id"]).starts_with("evt_"));
    assert_eq!((&completed["fence"], &completed["run"]), (&json!(1), &lease["runId"]));
    let payload = &completed["payload"];
    let expected = json!({
        "session_id": lease["runId"], "actor_id": "swe-backend", "phase_completed": "IMPLEMENTATION",
        "exit_reason": "completed", "next_phase": "CI_PENDING",
        "pr_url": "https://github.com/org/repo/pull/123",
        "notes": "Implemented feature X, all tests passing locally",
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&payload[key], value, "{key}: {payload}");
    }
    let task = home.show(TASK);
    assert_eq!((&task["status"], &task["phase"]), (&json!("review"), &json!("CI_PENDING")));
    assert!(task.get("lease").is_none(), "the lease is released");
    assert_eq!(home.run_file(TASK, "run.json")["status"], "completed");
    home.verifies();

    // The same again is answered in the same way, and in CI_PENDING nobody else's counts.
    let again = home.appends_nothing(|home| home.submitted(TASK, &signal));
    assert_eq!(again, answer);
    home.appends_nothing(|home| {
        home.not_submitted(TASK, &crate::task_support::signal("CI_PENDING", "completed"), "CI_PENDING")
    });
    home.run(&["task", "claim", TASK, "--agent", "anyone"]).refused_with(4, "T009", "CI_PENDING");
}

#[test]
fn review_complete_hands_the_task_on_to_be_merged() {
    let home = Home::with_signals();
    let id = in_phase(&home, "REVIEW");
    let (signal, _) = examples().swap_remove(2);
    let answer = home.submitted(&id, &signal);
    assert_eq!((&answer["phase"], &answer["next_phase"]), (&json!("REVIEW"), &json!("READY_FOR_MERGE")));
    let warnings = texts(&answer["warnings"]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("evidence/work/W-00042/review.yaml: the file is missing"), "{warnings:?}");
    let completed = home.last(&id, "AgentSessionCompleted");
    assert_eq!(completed["payload"]["warnings"], answer["warnings"]);
    assert_eq!(completed["payload"]["actor_id"], "reviewer");
    assert_eq!((home.status(&id), home.phase(&id)), ("review".into(), "READY_FOR_MERGE".into()));
}

#[test]
fn blocked_and_error_block_with_the_notes_and_remember_the_phase() {
    for (i, reason) in [(3, "blocked"), (4, "error")] {
        let home = Home::with_signals();
        let id = in_phase(&home, "IMPLEMENTATION");
        let (signal, _) = examples().swap_remove(i);
        assert_eq!(home.submitted(&id, &signal)["next_phase"], "BLOCKED");
        let task = home.show(&id);
        assert_eq!((&task["status"], &task["phase"]), (&json!("blocked"), &json!("BLOCKED")));
        assert_eq!(task["phaseBeforeBlock"], "IMPLEMENTATION");
        assert_eq!(task["metadata"]["blockReason"], signal["notes"]);
        assert_eq!(home.moves(&id)[1], format!("in-progress → blocked: exit_{reason}"));
        assert_eq!(home.last(&id, "AgentSessionCompleted")["payload"]["exit_reason"], reason);
    }
}

#[test]
fn every_row_of_the_table_is_reached_by_a_task() {
    let rows = [
        ("DRAFT", "IMPLEMENTATION", "ready"),
        ("IMPLEMENTATION", "CI_PENDING", "review"),
        ("READY_FOR_REVIEW", "REVIEW", "review"),
        ("REVIEW", "READY_FOR_MERGE", "review"),
        ("READY_FOR_MERGE", "COMPLETED", "done"),
    ];
    let home = Home::with_signals();
    for (phase, next, status) in rows {
        for reason in ["completed", "blocked", "error"] {
            let (next, status) = if reason == "completed" { (next, status) } else { ("BLOCKED", "blocked") };
            let id = in_phase(&home, phase);
            let answer = home.submitted(&id, &signal(phase, reason));
            assert_eq!((&answer["phase"], &answer["next_phase"]), (&json!(phase), &json!(next)), "{reason}");
            let task = home.show(&id);
            assert_eq!((&task["phase"], &task["status"]), (&json!(next), &json!(status)), "{phase} {reason}");
            assert!(task.get("lease").is_none());
            if next == "BLOCKED" {
                assert_eq!(task["phaseBeforeBlock"], phase);
            }
        }
    }
    // CI_PENDING is completed by the system alone.
    for (verdict, next, status) in
        [("--passed", "READY_FOR_REVIEW", "review"), ("--failed", "BLOCKED", "blocked")]
    {
        let id = in_phase(&home, "CI_PENDING");
        home.run(&["ci", "report", &id, verdict]).expect(0);
        assert_eq!((home.phase(&id), home.status(&id)), (next.into(), status.into()), "{verdict}");
    }
    home.verifies();
    home.replays();
}

#[test]
fn a_signal_for_every_other_phase_is_a_mismatch_that_changes_nothing() {
    let home = Home::with_signals();
    let id = in_phase(&home, "IMPLEMENTATION");
    for phase in
        ["DRAFT", "CI_PENDING", "READY_FOR_REVIEW", "REVIEW", "READY_FOR_MERGE", "COMPLETED", "BLOCKED"]
    {
        for reason in ["blocked", "error"] {
            let error = format!("phase mismatch: task is in IMPLEMENTATION, signal completes {phase}");
            let answer = home.appends_nothing(|home| home.not_submitted(&id, &signal(phase, reason), &error));
            assert_eq!(
                (&answer["phase"], &answer["next_phase"]),
                (&json!("IMPLEMENTATION"), &json!("IMPLEMENTATION"))
            );
        }
    }
    for phase in ["COMPLETED", "BLOCKED"] {
        let answer = check(&home, signal(phase, "completed"), 4);
        assert!(text(&answer["error"]).contains(phase), "{answer}");
    }
    assert_eq!(home.status(&id), "in-progress");
}

#[test]
fn a_signal_needs_a_lease_a_task_and_the_right_session() {
    let home = Home::with_signals();
    let id = home.task(&[]);
    home.appends_nothing(|home| home.not_submitted(&id, &signal("IMPLEMENTATION", "completed"), "no_lease"));
    home.claim(&id, "swe-backend");
    let other = home.run_with(
        &["exit", "submit", "--task", &id, "--session", "sess_other", "--json"],
        signal("IMPLEMENTATION", "completed").to_string(),
    );
    assert!(text(&other.value(4)["error"]).contains("sess_other"));
    let missing = home.submit("TASK-2020-01-01-001", &signal("IMPLEMENTATION", "completed"));
    missing.refused_json(3, "T001");
    let bad = home.submit("TASK-2020-01-01-001", &json!({}));
    bad.refused_json(3, "T001");
    assert_eq!(home.status(&id), "in-progress");
}

#[test]
fn every_refusal_has_the_text_of_the_guide_or_names_the_field() {
    let home = Home::with_signals();
    let base = signal("IMPLEMENTATION", "completed");
    let set = |key: &str, value: Value| with(base.clone(), key, value).to_string();
    let long = |count: usize| "x".repeat(count);
    let cases: Vec<(String, &str)> = vec![
        (set("protocol", json!("wrong_protocol")), "unknown protocol: expected 'apm2_agent_exit', got 'wrong_protocol'"),
        (set("protocol", json!("")), "unknown protocol: expected 'apm2_agent_exit', got ''"),
        (set("version", json!("2.0.0")), "unsupported version: expected '1.x', got '2.0.0'"),
        (set("version", json!("1.0")), "unsupported version: expected '1.x', got '1.0'"),
        (set("version", json!("1.0.0-beta")), "unsupported version"),
        (set("version", json!("1.-1.0")), "unsupported version"),
        (set("version", json!("10.0.0")), "unsupported version"),
        (set("version", json!(" 1.0.0")), "unsupported version"),
        (set("version", json!(1)), "version"),
        ("{oops".into(), "invalid JSON: "),
        ("".into(), "invalid JSON: "),
        ("[]".into(), "invalid JSON: "),
        (format!("{base} {base}"), "invalid JSON: "),
        (
            r#"{"protocol":"apm2_agent_exit","protocol":"apm2_agent_exit","version":"1.0.0","phase_completed":"DRAFT","exit_reason":"completed"}"#.into(),
            "protocol",
        ),
        (set("extra", json!(1)), "unknown field \"extra\""),
        (set("phase_completed", json!("implementation")), "phase_completed"),
        (set("phase_completed", json!(7)), "phase_completed"),
        (set("exit_reason", json!("done")), "exit_reason"),
        (set("exit_reason", Value::Null), "exit_reason"),
        (without(base.clone(), "protocol").to_string(), "protocol"),
        (without(base.clone(), "version").to_string(), "version"),
        (without(base.clone(), "phase_completed").to_string(), "phase_completed"),
        (without(base.clone(), "exit_reason").to_string(), "exit_reason"),
        (set("pr_url", json!("http://github.com/org/repo/pull/1")), "https"),
        (set("pr_url", json!("javascript:alert(1)")), "https"),
        (set("pr_url", json!("https://example.com/;ls")), "pr_url"),
        (set("pr_url", json!("https://example.com/|ls")), "pr_url"),
        (set("pr_url", json!("https://example.com/`ls`")), "pr_url"),
        (set("pr_url", json!("https://example.com/$HOME")), "pr_url"),
        (set("pr_url", json!("https://example.com/a b")), "pr_url"),
        (set("pr_url", json!("https://example.com/a\nb")), "pr_url"),
        (set("pr_url", json!(format!("https://{}", long(2048)))), "pr_url"),
        (set("pr_url", json!(["https://example.com"])), "pr_url"),
        (set("evidence_bundle_ref", json!("/etc/passwd")), "evidence_bundle_ref"),
        (set("evidence_bundle_ref", json!("../a.yaml")), "evidence_bundle_ref"),
        (set("evidence_bundle_ref", json!("a/../b.yaml")), "evidence_bundle_ref"),
        (set("evidence_bundle_ref", json!("")), "evidence_bundle_ref"),
        (set("evidence_bundle_ref", json!(long(2049))), "evidence_bundle_ref"),
        (set("notes", json!(long(10_241))), "notes"),
        (set("notes", json!({})), "notes"),
        (set("notes", json!(long(64 << 10))), "too large"),
    ];
    let id = home.task(&[]);
    home.claim(&id, "swe-backend");
    for (signal, error) in cases {
        let shown: String = signal.chars().take(200).collect();
        let answer = check(&home, &signal, 4);
        assert_eq!(answer["valid"], false, "{shown}");
        assert!(text(&answer["error"]).contains(error), "expected {error:?}: {answer} for {shown}");
        let submitted = home.run_with(&["exit", "submit", "--task", &id, "--json"], signal).value(4);
        assert_eq!(
            (&submitted["accepted"], &submitted["error"]),
            (&json!(false), &answer["error"]),
            "{shown}"
        );
        assert_eq!(submitted["phase"], "IMPLEMENTATION");
    }
    let types = home.types(&id);
    assert_eq!(types.len(), 4, "nothing is recorded: {types:?}");
    for good in
        [set("version", json!("1.7.3")), set("notes", json!(long(10_240))), set("pr_url", Value::Null)]
    {
        assert_eq!(check(&home, good, 0)["valid"], true);
    }
}

#[test]
fn signals_are_read_only_where_the_switch_is_on() {
    let refusal = "exit signal validation is disabled (AGENT_EXIT_PROTOCOL_ENABLED=false)";
    let cases = [
        (None, false),
        (Some(""), false),
        (Some("false"), false),
        (Some("0"), false),
        (Some("on"), false),
        (Some("yes please"), false),
        (Some("true"), true),
        (Some("True"), true),
        (Some("1"), true),
        (Some("yes"), true),
        (Some("YES"), true),
    ];
    for (value, is_on) in cases {
        let home = match value {
            None => Home::new(),
            Some(value) => Home::new().with_env("AGENT_EXIT_PROTOCOL_ENABLED", value),
        };
        let good = signal("IMPLEMENTATION", "completed");
        let answer = check(&home, &good, if is_on { 0 } else { 4 });
        assert_eq!(answer["valid"], is_on, "{value:?}");
        if !is_on {
            assert_eq!(answer["error"], refusal, "{value:?}");
            assert_eq!(check(&home, "{oops", 4)["error"], refusal, "the switch is looked at first");
            let id = home.task(&[]);
            home.claim(&id, "swe-backend");
            home.appends_nothing(|home| home.not_submitted(&id, &good, refusal));
            assert_eq!(home.status(&id), "in-progress");
        }
    }
}

/// Puts a file below a directory.
fn put(dir: &Path, path: &str, content: &str) -> String {
    let file = dir.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, content).unwrap();
    sha256(content.as_bytes()).to_string()
}

fn is_stored(home: &Home, hash: &str) -> bool {
    home.data().join("artifacts/sha256").join(&hash[..2]).join(hash).is_file()
}

#[test]
fn evidence_is_stored_and_what_is_wrong_with_it_is_a_warning() {
    let home = Home::with_signals();
    home.named_task(TASK, &[]);
    home.claim(TASK, "swe-backend");
    let folder = home.folder("in-progress", TASK);
    let secret = home.path("secret.txt");
    fs::write(&secret, "nobody's business").unwrap();
    let report = put(&folder, "evidence/report.txt", "all good\n");
    let other = put(&folder, "evidence/other.txt", "not what was promised\n");
    let of_work = put(&home.work(), "build.log", "built\n");
    symlink(&secret, folder.join("evidence/link.txt")).unwrap();
    symlink(secret.parent().unwrap(), folder.join("evidence/out")).unwrap();
    let bundle = format!(
        "work: W-00042\nphase: IMPLEMENTATION\nitems:\n\
         - {{name: report, path: evidence/report.txt, sha256: {report}, kind: test}}\n\
         - {{name: other, path: evidence/other.txt, sha256: \"{wrong}\", kind: test}}\n\
         - {{name: digits, path: evidence/report.txt, sha256: {wrong}, kind: test}}\n\
         - {{name: build, path: build.log, kind: log}}\n\
         - {{name: gone, path: evidence/gone.txt, kind: log}}\n\
         - {{name: above, path: ../../../secret.txt, kind: log}}\n\
         - {{name: root, path: /etc/hostname, kind: log}}\n\
         - {{name: link, path: evidence/link.txt, kind: log}}\n\
         - {{name: through, path: evidence/out/secret.txt, kind: log}}\n",
        wrong = "0".repeat(64),
    );
    let path = "evidence/work/W-00042/phase_implementation.yaml";
    let bundle_hash = put(&folder, path, &bundle);
    let answer = home.submitted(TASK, &examples()[0].0);
    assert_eq!(answer["next_phase"], "CI_PENDING", "accepted with warnings");
    let warnings = texts(&answer["warnings"]);
    let expected = [
        "other: sha256",
        "digits: sha256",
        "gone: the file is missing",
        "above: ",
        "root: ",
        "link: ",
        "through: ",
    ];
    assert_eq!(warnings.len(), expected.len(), "{warnings:#?}");
    for (warning, expected) in warnings.iter().zip(expected) {
        assert!(warning.starts_with(&format!("evidence {expected}")), "expected {expected:?}: {warning}");
    }
    let completed = home.last(TASK, "AgentSessionCompleted");
    assert_eq!(completed["payload"]["evidence_bundle_ref"], path);
    let items = completed["payload"]["evidence"].as_array().unwrap();
    assert_eq!(items.len(), 9);
    assert_eq!((&items[0]["sha256"], items[0].get("problem")), (&json!(report), None));
    assert!(text(&items[1]["problem"]).contains(&other), "the hash that it has: {}", items[1]);
    assert_eq!(items[3]["sha256"], of_work.as_str(), "looked for in the workspace too");
    assert!(items[4..].iter().all(|item| item["problem"].is_string() && item.get("sha256").is_none()));
    let cited: Vec<String> =
        completed["artifacts"].as_array().unwrap().iter().map(|a| text(&a["sha256"])).collect();
    assert_eq!(cited, [bundle_hash, report, other, of_work]);
    assert!(cited.iter().all(|hash| is_stored(&home, hash)));
    assert!(!is_stored(&home, &sha256(b"nobody's business").to_string()), "nothing from outside is read");
    let trace = text(&home.show(TASK)["traceId"]);
    home.run(&["trace", "show", &trace]).expect(0);
    home.verifies();
    // An artifact that is changed afterwards is found.
    let stored = home.data().join("artifacts/sha256").join(&cited[1][..2]).join(&cited[1]);
    let mut rights = fs::metadata(&stored).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut rights, 0o600);
    fs::set_permissions(&stored, rights).unwrap();
    fs::write(&stored, "all bad!\n").unwrap();
    let data = home.data();
    let ended = home.run(&["verify", data.to_str().unwrap(), "--json"]);
    assert_eq!(ended.value(7)["findings"][0]["code"], "ARTIFACT_HASH_MISMATCH");
}

#[test]
fn a_bundle_in_json_is_one_too_and_lies_in_the_workspace_where_the_task_has_none() {
    let home = Home::with_signals();
    let id = home.task(&[]);
    home.claim(&id, "swe-backend");
    let hash = put(&home.work(), "out/report.txt", "fine\n");
    let item = json!({"name": "report", "path": "out/report.txt", "sha256": hash, "kind": "test"});
    let bundle = json!({"work": "W-1", "phase": "IMPLEMENTATION", "items": [item]});
    put(&home.work(), "evidence/bundle.json", &serde_json::to_string_pretty(&bundle).unwrap());
    let signal =
        with(signal("IMPLEMENTATION", "completed"), "evidence_bundle_ref", json!("evidence/bundle.json"));
    assert_eq!(home.submitted(&id, &signal)["warnings"], json!([]));
    assert!(is_stored(&home, &hash));
    home.verifies();
}

#[test]
fn a_bundle_that_cannot_be_read_is_a_warning_and_never_a_way_out() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\nitems: [*b,*b,*b,*b,*b,*b]\n";
    let cases = [
        ("broken.yaml", "items: [", "broken.yaml"),
        ("no-items.yaml", "work: W-1\n", "items"),
        ("bomb.yaml", bomb, "bomb.yaml"),
        ("large.yaml", &"# nothing\n".repeat(50_000), "large.yaml"),
    ];
    for (name, content, expected) in cases {
        let home = Home::with_signals();
        let id = home.task(&[]);
        home.claim(&id, "swe-backend");
        put(&home.folder("in-progress", &id), name, content);
        let signal = with(signal("IMPLEMENTATION", "completed"), "evidence_bundle_ref", json!(name));
        let warnings = texts(&home.submitted(&id, &signal)["warnings"]);
        assert!(warnings.iter().any(|warning| warning.contains(expected)), "{name}: {warnings:?}");
        home.verifies();
    }
    let home = Home::with_signals();
    let id = home.task(&[]);
    home.claim(&id, "swe-backend");
    let secret = home.path("secret.yaml");
    fs::write(&secret, "items: []\n").unwrap();
    symlink(&secret, home.folder("in-progress", &id).join("bundle.yaml")).unwrap();
    let signal = with(signal("IMPLEMENTATION", "completed"), "evidence_bundle_ref", json!("bundle.yaml"));
    assert_eq!(texts(&home.submitted(&id, &signal)["warnings"]).len(), 1);
    assert!(!is_stored(&home, &sha256(b"items: []\n").to_string()));
}
