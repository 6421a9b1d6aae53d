//! Every check of a signal, in its order, with its text; and the table of phases.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;

fn signal() -> Value {
    json!({"protocol": PROTOCOL, "version": "1.0.0", "phase_completed": "IMPLEMENTATION", "exit_reason": "completed"})
}

fn with(changes: &[(&str, Value)]) -> String {
    let mut signal = signal();
    for (name, value) in changes {
        signal[*name] = value.clone();
    }
    signal.to_string()
}

/// The refusal of a text, or `ok`.
fn check(text: &str, expected: &str) {
    let answer = ExitSignal::from_json(text).map_or_else(|e| e.to_string(), |_| "ok".to_owned());
    assert_eq!(answer, expected, "{text}");
}

fn check_field(name: &str, value: Value, expected: &str) {
    check(&with(&[(name, value)]), expected);
}

#[test]
fn a_built_signal_is_valid_and_survives_the_round_trip() {
    let signal = ExitSignal::new(WorkPhase::Implementation, ExitReason::Completed)
        .with_pr_url("https://github.com/org/repo/pull/123")
        .with_evidence_bundle_ref("evidence/work/W-00042/phase_implementation.yaml")
        .with_notes("Implementation complete");
    assert_eq!(signal.validate(), Ok(()));
    let text = serde_json::to_string_pretty(&signal).unwrap();
    assert_eq!(
        text,
        r#"{
  "protocol": "apm2_agent_exit",
  "version": "1.0.0",
  "phase_completed": "IMPLEMENTATION",
  "exit_reason": "completed",
  "pr_url": "https://github.com/org/repo/pull/123",
  "evidence_bundle_ref": "evidence/work/W-00042/phase_implementation.yaml",
  "notes": "Implementation complete"
}"#
    );
    assert_eq!(ExitSignal::from_json(&text), Ok(signal));
}

#[test]
fn optional_fields_are_absent_when_written_and_may_be_null_when_read() {
    let plain = ExitSignal::new(WorkPhase::Review, ExitReason::Error);
    let text = serde_json::to_string(&plain).unwrap();
    assert!(!text.contains("null") && !text.contains("notes"), "{text}");
    assert_eq!(ExitSignal::from_json(&text.replace('}', ",\"notes\":null}")), Ok(plain));
}

#[test]
fn a_signal_is_refused_where_the_protocol_is_off() {
    let off = ExitSignal::from_json_if_enabled("not even JSON", false).unwrap_err();
    assert_eq!(off.to_string(), "exit signal validation is disabled (AGENT_EXIT_PROTOCOL_ENABLED=false)");
    assert!(ExitSignal::from_json_if_enabled(&with(&[]), true).is_ok());
}

#[test]
fn the_flag_is_off_unless_it_says_otherwise() {
    for on in ["true", "TRUE", "True", "1", "yes", "YES"] {
        assert!(parse_flag(Some(on)), "{on}");
    }
    for off in [None, Some(""), Some("false"), Some("0"), Some("no"), Some("on"), Some(" true"), Some("11")] {
        assert!(!parse_flag(off), "{off:?}");
    }
}

#[test]
fn the_size_is_judged_before_the_text() {
    let mut text = with(&[]);
    text += &" ".repeat(EXIT_SIGNAL_BYTES_MAX - text.len());
    check(&text, "ok");
    check(&"x".repeat(EXIT_SIGNAL_BYTES_MAX + 1), "exit signal too large: more than 65536 bytes");
}

#[test]
fn what_is_not_json_says_where() {
    check(
        "{\n  \"protocol\": \"apm2_agent_exit\",\n  version: 1}",
        "invalid JSON: key must be a string at line 3 column 3",
    );
    check("", "invalid JSON: EOF while parsing a value at line 1 column 0");
    check("[1]", "invalid JSON: expected an object, got an array of 1");
    let twice = with(&[]).replace('}', ",\"version\":\"1.0.0\"}");
    let error = ExitSignal::from_json(&twice).unwrap_err().to_string();
    assert!(error.starts_with("invalid JSON: member \"version\" occurs twice at line 1 column "), "{error}");
}

#[test]
fn fields_that_do_not_exist_are_missing_or_of_another_type_are_named() {
    check_field("extra", json!(1), "invalid JSON: unknown field \"extra\"");
    for name in ["protocol", "version", "phase_completed", "exit_reason"] {
        let mut signal = signal();
        signal.as_object_mut().unwrap().remove(name);
        check(&signal.to_string(), &format!("invalid JSON: {name}: expected a string, got nothing"));
        check_field(name, json!(null), &format!("invalid JSON: {name}: expected a string, got null"));
    }
    for name in ["pr_url", "evidence_bundle_ref", "notes"] {
        check_field(
            name,
            json!(["x"]),
            &format!("invalid JSON: {name}: expected a string, got an array of 1"),
        );
    }
}

#[test]
fn words_are_case_sensitive_and_the_refusal_repeats_the_word() {
    let phases =
        "DRAFT, IMPLEMENTATION, CI_PENDING, READY_FOR_REVIEW, REVIEW, READY_FOR_MERGE, COMPLETED or BLOCKED";
    for word in ["implementation", "Review", "DONE"] {
        let expected = format!("invalid JSON: phase_completed: expected {phases}, got \"{word}\"");
        check_field("phase_completed", json!(word), &expected);
    }
    let expected = "invalid JSON: exit_reason: expected completed, blocked or error, got \"COMPLETED\"";
    check_field("exit_reason", json!("COMPLETED"), expected);
    for phase in WorkPhase::ALL {
        check_field("phase_completed", json!(phase.as_str()), "ok");
    }
    for reason in ExitReason::ALL {
        check_field("exit_reason", json!(reason.as_str()), "ok");
    }
}

#[test]
fn another_protocol_is_refused_before_the_version() {
    let expected = "unknown protocol: expected 'apm2_agent_exit', got 'wrong_protocol'";
    check(&with(&[("protocol", json!("wrong_protocol")), ("version", json!("2.0.0"))]), expected);
}

#[test]
fn only_versions_of_one_and_two_numbers_are_supported() {
    for version in ["1.0.0", "1.1.0", "1.12.345"] {
        check_field("version", json!(version), "ok");
    }
    for version in [
        "2.0.0", "1", "1.", "1.0", "1.bad", "1.0.0.0", "1.0.x", "1..0", "1.0.", "v1.0.0", "1.0.0-rc", "",
        " 1.0.0",
    ] {
        check_field(
            "version",
            json!(version),
            &format!("unsupported version: expected '1.x', got '{version}'"),
        );
    }
    let long = format!("1.{}.0", "9".repeat(EXIT_VERSION_BYTES_MAX - 4));
    check_field("version", json!(long), "ok");
    let error = ExitSignal::from_json(&with(&[("version", json!(format!("{long}0")))])).unwrap_err();
    assert!(matches!(error, ExitSignalError::UnsupportedVersion { .. }));
}

#[test]
fn an_address_is_https_short_and_harmless() {
    let url = |length: usize| format!("https://{}", "a".repeat(length - 8));
    check_field("pr_url", json!(url(EXIT_URL_BYTES_MAX)), "ok");
    check_field(
        "pr_url",
        json!(url(EXIT_URL_BYTES_MAX + 1)),
        "pr_url: expected at most 2048 bytes, got 2049",
    );
    for bad in ["http://x", "", "https://", "https:///x", "HTTPS://x", "javascript:alert(1)", " https://x"] {
        check_field("pr_url", json!(bad), &format!("pr_url: expected an https:// address, got {bad:?}"));
    }
    for bad in [';', '|', '`', '$', ' ', '\n', '\t', '\u{a0}', '\u{1b}', '\0'] {
        let expected =
            format!("pr_url: expected none of ; | ` $, white space and control characters, got {bad:?}");
        check_field("pr_url", json!(format!("https://x/{bad}y")), &expected);
    }
    let changes = [("pr_url", json!("http://x")), ("evidence_bundle_ref", json!("/x"))];
    check(&with(&changes), "pr_url: expected an https:// address, got \"http://x\"");
}

#[test]
fn evidence_is_a_short_path_that_stays_inside() {
    check_field("evidence_bundle_ref", json!("a".repeat(EXIT_EVIDENCE_BYTES_MAX)), "ok");
    check_field("evidence_bundle_ref", json!("a..b/c"), "ok");
    let long = json!("a".repeat(EXIT_EVIDENCE_BYTES_MAX + 1));
    check_field("evidence_bundle_ref", long, "evidence_bundle_ref: expected at most 2048 bytes, got 2049");
    for bad in ["/etc/passwd", "../x", "a/../x", "a/..", ""] {
        let expected = paths::EXPECTED;
        check_field(
            "evidence_bundle_ref",
            json!(bad),
            &format!("evidence_bundle_ref: expected {expected}, got {bad:?}"),
        );
    }
    let changes =
        [("evidence_bundle_ref", json!("/x")), ("notes", json!("n".repeat(EXIT_NOTES_BYTES_MAX + 1)))];
    let error = ExitSignal::from_json(&with(&changes)).unwrap_err();
    assert!(matches!(error, ExitSignalError::EvidencePath { .. }));
}

#[test]
fn notes_are_counted_in_bytes() {
    check_field("notes", json!("ä".repeat(EXIT_NOTES_BYTES_MAX / 2)), "ok");
    let long = json!("ä".repeat(EXIT_NOTES_BYTES_MAX / 2 + 1));
    check_field("notes", long, "notes: expected at most 10240 bytes, got 10242");
}

#[test]
fn what_a_refusal_repeats_is_short() {
    for name in ["protocol", "version", "phase_completed", "exit_reason"] {
        let error = ExitSignal::from_json(&with(&[(name, json!("x".repeat(5000)))])).unwrap_err();
        assert!(error.to_string().len() < 300, "{name}");
    }
}

#[test]
fn the_table_of_phases_is_the_function() {
    let mut coded = BTreeSet::new();
    for phase in WorkPhase::ALL {
        for reason in ExitReason::ALL {
            let next = next_phase(*phase, reason).map_or("refused", WorkPhase::as_str);
            coded.insert(format!("| {phase} | {} | {next} |", reason.as_str()));
        }
    }
    let rows: Vec<String> = include_str!("../phases.md")
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| ---") && !line.starts_with("| phase"))
        .map(str::to_owned)
        .collect();
    assert_eq!(rows.iter().cloned().collect::<BTreeSet<_>>(), coded);
    assert_eq!(rows.len(), coded.len(), "a row is there twice");
}

#[test]
fn the_event_of_a_signal_carries_its_fields_and_the_next_phase() {
    let signal = ExitSignal::new(WorkPhase::Implementation, ExitReason::Completed).with_notes("done");
    let event = AgentSessionCompleted::from_exit_signal("session-123", "actor-456", signal).unwrap();
    assert_eq!(
        Value::Object(event.fields()),
        json!({
            "session_id": "session-123", "actor_id": "actor-456", "phase_completed": "IMPLEMENTATION",
            "exit_reason": "completed", "next_phase": "CI_PENDING", "notes": "done",
        })
    );
    let signal = ExitSignal::new(WorkPhase::Blocked, ExitReason::Completed);
    let refusal = AgentSessionCompleted::from_exit_signal("s", "a", signal).unwrap_err();
    assert_eq!(refusal.to_string(), "phase BLOCKED cannot be completed: no phase follows it");
}

#[test]
fn the_names_of_the_guide_lead_here() {
    use crate::agent::exit;
    let signal = exit::ExitSignal::new(exit::WorkPhase::Draft, exit::ExitReason::Blocked);
    assert!(exit::AgentSessionCompleted::from_exit_signal("s", "a", signal).is_ok());
}
