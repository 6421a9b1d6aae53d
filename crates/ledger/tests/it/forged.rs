//! Journals that were rewritten by somebody who knows the format: every hash is correct, and only what he lacks gives him away.

use baton_core::{Payload, Role};
use baton_ledger::verify::{Code, Verdict};
use serde_json::json;

use crate::forger::{Record, lines, read, relink, reseal};
use crate::reader::{codes, options, shown, verify};
use crate::writer::{Writer, event, grant, note, other, sample, secret, signed, trace, unsigned};

/// The sample without batches, commits and `seen`, every hash correct: what a forger starts from.
fn records() -> Vec<Record> {
    let mut records = read(&sample().bytes);
    records[6] = records[6].clone().without("seen").signed(&secret(3));
    reseal(records)
}

/// The forged journal fails at this line with this code; the true checkpoint notices as well.
#[track_caller]
fn found(forged: Vec<Record>, line: u64, code: Code, what: &str) {
    let journal = lines(&reseal(forged));
    let report = verify(&journal, &options(None));
    let first = &report.findings[0];
    assert_eq!(
        (report.verdict, first.code, first.line),
        (Verdict::Fail, code, line),
        "{what}: {}",
        shown(&report)
    );
    assert_eq!(report.first_broken, Some(line), "{what}");
    let against = verify(&journal, &options(Some(&sample().checkpoint())));
    assert!(codes(&against).contains(&Code::CheckpointMismatch), "{what}: {}", shown(&against));
}

#[test]
fn the_forger_can_do_what_the_page_says_he_can() {
    // Without a checkpoint, a journal in which every hash is recomputed is as good as any.
    let report = verify(&lines(&records()), &options(None));
    assert_eq!((report.verdict, codes(&report)), (Verdict::PassWithWarnings, vec![Code::NoCheckpoint]));
    let against = verify(&lines(&records()), &options(Some(&sample().checkpoint())));
    assert_eq!((against.verdict, codes(&against)), (Verdict::Fail, vec![Code::CheckpointMismatch]));
}

#[test]
fn a_signed_seen_gives_away_a_rewritten_past() {
    let mut forged = read(&sample().bytes);
    forged[1] = forged[1].clone().set("payload", json!({"title": "another"}));
    found(forged, 7, Code::ChainBreak, "the seventh event saw the fourth of its trace");
}

#[test]
fn a_stripped_signature_is_missed() {
    for (i, record) in records().iter().enumerate().filter(|(_, record)| record.is_signed()) {
        let mut forged = records();
        forged[i] = record.clone().stripped();
        found(forged, i as u64 + 1, Code::SigMissing, &format!("line {}", i + 1));
    }
}

#[test]
fn exchanged_signatures_do_not_check() {
    let records = records();
    let all: Vec<usize> = (0..records.len()).filter(|i| records[*i].is_signed()).collect();
    for &a in &all {
        for &b in all.iter().filter(|b| **b > a) {
            let mut forged = records.clone();
            forged[a] = records[a].clone().with_signature_of(&records[b]);
            forged[b] = records[b].clone().with_signature_of(&records[a]);
            found(forged, a as u64 + 1, Code::SigInvalid, &format!("lines {} and {}", a + 1, b + 1));
        }
    }
}

#[test]
fn a_signature_by_the_forgers_own_key_is_by_an_unknown_one() {
    let records = records();
    for i in (0..records.len()).filter(|i| records[*i].is_signed()) {
        let mut forged = records.clone();
        forged[i] = records[i].clone().signed(&secret(99));
        found(forged, i as u64 + 1, Code::KeyUnknown, &format!("line {}", i + 1));
    }
}

#[test]
fn any_change_of_a_signed_body_breaks_its_signature() {
    let records = records();
    for (i, record) in records.iter().enumerate().filter(|(_, record)| record.is_signed()) {
        let later = record.text("at").replace("2026", "2027");
        let id = record.text("id").replacen("evt_01", "evt_02", 1);
        let changes = [
            record.clone().set("at", later),
            record.clone().set("id", id),
            record.clone().set("fence", 7),
            record.clone().set("task", "T"),
            record.clone().set("artifacts", json!([])).set("run", "r"),
        ];
        for (n, change) in changes.into_iter().enumerate() {
            let mut forged = records.clone();
            forged[i] = change;
            found(forged, i as u64 + 1, Code::SigInvalid, &format!("line {}, change {n}", i + 1));
        }
    }
}

#[test]
fn an_event_moved_from_another_trace_is_not_its_signers_word_there() {
    let records = records();
    let (a, b) = (trace(0xa).to_string(), trace(0xb).to_string());
    for (i, record) in records.iter().enumerate().filter(|(_, record)| record.is_signed()) {
        let to = if record.text("trace") == a { &b } else { &a };
        if record.text("trace") == "ledger" {
            continue;
        }
        let mut forged = records.clone();
        forged[i] = record.clone().set("trace", to.as_str());
        // By the ledger's own key it is bound everywhere, so the signature tells; by others the key is not bound there.
        let by_ledger = record.0["sig"]["key"] == secret(1).id().to_string();
        let is_key_change = ["key_rotated", "key_revoked"].contains(&record.text("type").as_str());
        let code = if by_ledger && !is_key_change { Code::SigInvalid } else { Code::KeyUnknown };
        // What stood in the closed trace may now stand after its end, but the signature is judged first.
        found(forged, i as u64 + 1, code, &format!("line {}", i + 1));
    }
}

#[test]
fn a_forged_line_needs_a_key_that_it_does_not_have() {
    let forgeries = [
        // Unsigned, where the type must be signed.
        (
            event(50, trace(0xb), "worker", Role::Executor, other("claim_issued", &json!({}))),
            None,
            Code::SigMissing,
        ),
        // By a key that this trace does not know.
        (
            event(50, trace(0xb), "worker", Role::Executor, other("claim_issued", &json!({}))),
            Some(4),
            Code::KeyUnknown,
        ),
        // In the forger's own name, as the ledger.
        (
            event(50, trace(0xb), "baton", Role::System, other("ci.reported", &json!({}))),
            Some(99),
            Code::KeyUnknown,
        ),
        // A binding of the forger's key, signed by it.
        (
            event(
                50,
                trace(0xb),
                "baton",
                Role::System,
                Payload::KeyBound(grant(99, "worker", &[Role::Executor])),
            ),
            Some(99),
            Code::KeyUnknown,
        ),
    ];
    let template = records()[4].clone();
    for (n, (event, key, code)) in forgeries.into_iter().enumerate() {
        let mut record = template.clone().stripped();
        record.0["actor"] = json!({"agent": event.actor.agent.as_str(), "role": event.actor.role.as_str()});
        let record = record
            .set("id", event.id.to_string())
            .set("payload", event.payload.fields().into_owned())
            .set("trace", event.trace.to_string())
            .set("type", event.payload.event_type());
        let record = key.map_or(record.clone(), |key| record.signed(&secret(key)));
        for place in 1..=records().len() {
            let mut forged = records();
            forged.insert(place, record.clone());
            // At the very end the checkpoint still agrees with everything before, so only the first finding is compared.
            let journal = lines(&reseal(forged));
            for checkpoint in [None, Some(sample().checkpoint())] {
                let report = verify(&journal, &options(checkpoint.as_deref()));
                let first = &report.findings[0];
                let what = format!("forgery {n} at {}: {}", place + 1, shown(&report));
                assert_eq!(
                    (report.verdict, first.code, first.line),
                    (Verdict::Fail, code, place as u64 + 1),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn nothing_can_be_forged_behind_the_end_of_a_trace() {
    for event_type in
        ["note", "trace.closed", "trace.opened", "tool_execution_started", "session_initialized"]
    {
        let mut forged = records();
        let role = match event_type {
            "note" => "operator",
            "tool_execution_started" => "executor",
            _ => "system",
        };
        let mut late = forged[11].clone();
        late.0["actor"] = json!({"agent": "baton", "role": role});
        let late = late.set("type", event_type).set("id", crate::writer::id(77).to_string());
        forged.push(late);
        let report = verify(&lines(&reseal(forged)), &options(None));
        let first = &report.findings[0];
        assert_eq!(
            (report.verdict, first.code, first.line),
            (Verdict::Fail, Code::OrderViolation, 14),
            "{event_type}"
        );
    }
}

#[test]
fn a_key_that_went_is_found_where_it_signs_again() {
    let records = records();
    // Key 3 was rotated away at line 9, key 2 revoked at line 11; line 12 closes the trace.
    for (from, key, place) in [(6, 3, 9), (6, 3, 10), (5, 2, 11)] {
        let again = records[from].clone().without("seen").set("id", crate::writer::id(88).to_string());
        let mut forged = records.clone();
        forged.insert(place, again.signed(&secret(key)));
        found(forged, place as u64 + 1, Code::KeyRevoked, &format!("key {key} at line {}", place + 1));
    }
    // One line earlier key 2 is still valid, and the forger who has it can sign.
    let again = records[5].clone().set("id", crate::writer::id(88).to_string()).signed(&secret(2));
    let mut forged = records;
    forged.insert(10, again);
    assert_eq!(verify(&lines(&reseal(forged)), &options(None)).verdict, Verdict::PassWithWarnings);
}

#[test]
fn lines_of_two_traces_exchanged_with_their_positions_are_seen_by_a_checkpoint_only() {
    let mut forged = records();
    forged.swap(4, 5);
    let journal = lines(&reseal(forged));
    assert_eq!(codes(&verify(&journal, &options(None))), [Code::NoCheckpoint]);
    let against = verify(&journal, &options(Some(&sample().checkpoint())));
    assert_eq!((against.verdict, codes(&against)), (Verdict::Fail, vec![Code::CheckpointMismatch]));
}

#[test]
fn a_signature_that_need_not_be_there_can_be_stripped_unless_a_checkpoint_vouches_for_it() {
    let mut writer = Writer::new();
    let remark = event(2, trace(1), "baton", Role::System, other("remark", &json!({})));
    writer.append(vec![signed(remark, 1)]).unwrap();
    let mut forged = read(&writer.bytes);
    forged[1] = forged[1].clone().stripped();
    let journal = lines(&reseal(forged));
    assert_eq!(codes(&verify(&journal, &options(None))), [Code::NoCheckpoint]);
    assert_eq!(codes(&verify(&journal, &options(Some(&writer.checkpoint())))), [Code::CheckpointMismatch]);
}

/// A signed event again, with the same body and id, at the end, with correct hashes.
fn replayed(between: u64) -> (Vec<u8>, u64) {
    let mut writer = Writer::new();
    writer
        .append(vec![signed(event(2, trace(1), "baton", Role::System, other("ci.reported", &json!({}))), 1)])
        .unwrap();
    for n in 3..3 + between {
        writer.append(vec![unsigned(&note(n, trace(2)))]).unwrap();
    }
    let mut forged = read(&writer.bytes);
    forged.push(forged[1].clone());
    let line = forged.len() as u64;
    (lines(&relink(forged)), line)
}

#[test]
fn a_replayed_event_is_found_close_by_and_far_away() {
    for between in [0, 5, 10_050] {
        let (journal, line) = replayed(between);
        for threads in [1, 2] {
            let options = baton_ledger::verify::Options { threads, ..options(None) };
            let report = verify(&journal, &options);
            let first = &report.findings[0];
            assert_eq!(
                (report.verdict, first.code, first.line),
                (Verdict::Fail, Code::SequenceGap, line),
                "{between}"
            );
            assert_eq!(codes(&report), [Code::SequenceGap, Code::NoCheckpoint]);
        }
    }
}

#[test]
fn an_event_that_comes_late_and_once_is_no_replay() {
    let mut writer = Writer::new();
    for n in 100..100 + 10_050 {
        writer.append(vec![unsigned(&note(n, trace(2)))]).unwrap();
    }
    writer.append(vec![unsigned(&note(50, trace(2)))]).unwrap();
    assert_eq!(verify(&writer.bytes, &options(Some(&writer.checkpoint()))).verdict, Verdict::Pass);
}
