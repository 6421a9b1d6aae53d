//! Steps as they are stored: read back, or refused with the field, what was expected and what came.

use serde_json::json;

use super::story::*;
use crate::guard::*;

#[test]
fn steps_are_read_back_as_they_were_written() {
    let steps = [
        begun(Policy::of(Profile::Strict)),
        proposal("p1"),
        revision("p2", "p1"),
        review("p1", Review::Conditional),
        intent("i1", Risk::High),
        retry("i2", "i1"),
        answer("i1", Answer::Blocked),
        started("i1"),
        completed("i1"),
        failed("i1"),
        Step::Recorded(Bare {}),
        claim("c1"),
        challenge("c1"),
        statement(&["c1"], &["c1"]),
        audit_started(),
        Step::Audited(Audit { status: Outcome::Warnings, report: hash(1), head: hash(2) }),
        Step::Aborted(Abort { reason: "enough".into() }),
        Step::Overridden(Override { target: id("i1"), reason: "enough".into() }),
    ];
    let mut types = std::collections::BTreeSet::new();
    for step in steps {
        types.insert(step.event_type());
        let payload = step.to_payload();
        let read = Step::read(payload.event_type(), &payload.fields()).unwrap();
        assert_eq!(read, Ok(step));
    }
    assert_eq!(types.len(), Step::TYPES.len());
    assert_eq!(Step::read("note", &serde_json::Map::new()), None);
}

#[test]
fn a_step_that_does_not_fit_names_the_field_what_was_expected_and_what_came() {
    let check = |step: &Step, field: &str, value: serde_json::Value, expected: &str| {
        let payload = step.to_payload();
        let mut fields = payload.fields().into_owned();
        match value {
            serde_json::Value::Null => drop(fields.remove(field)),
            value => drop(fields.insert(field.into(), value)),
        }
        let error = Step::read(payload.event_type(), &fields).unwrap().unwrap_err();
        assert_eq!(error.to_string(), format!("payload.{field}: expected {expected}"));
    };
    check(
        &proposal("p1"),
        "objective",
        json!(" "),
        r#"a string of 1 to 10000 characters that is not blank, got " ""#,
    );
    check(&proposal("p1"), "required_tools", json!([1]), "an array of at most 100 texts, got [1]");
    check(
        &review("p1", Review::Approved),
        "status",
        json!("maybe"),
        r#"approved, conditional or rejected, got "maybe""#,
    );
    check(
        &intent("i1", Risk::Low),
        "intent_id",
        json!("a b"),
        r#"an id of 1 to 128 of A-Z a-z 0-9 . _ -, got "a b""#,
    );
    check(
        &intent("i1", Risk::Low),
        "normalized_input_hash",
        json!("AB"),
        r#"a SHA-256 of 64 lower hex digits, got "AB""#,
    );
    check(&completed("i1"), "exit_status", json!(null), "an integer, got nothing");
    check(&failed("i1"), "failure", json!(null), "what went wrong, as text, got nothing");
    check(&claim("c1"), "confidence", json!(1.5), "a number from 0 to 1, got 1.5");
}
