//! A reader of the ledger's stream that stands still while much is recorded: it is told where to go on, and misses nothing.

use baton_server::limits::LAG_EVENTS_MAX;
use serde_json::{Value, json};

use crate::support::Home;
use crate::web_support::{Event, Web};

/// Events that one request appends: all of one decision.
const BATCH: u64 = 1000;

fn append(web: &Web, trace: &str, events: &[Value]) -> u64 {
    let appended = web.post(&format!("/v1/traces/{trace}/events?agent=ada"), &json!(events)).expect(201);
    appended["events"].as_array().unwrap().last().unwrap()["pos"].as_u64().unwrap()
}

/// Records more than the system keeps for a reader that does not read, in few events; then more events than a reader may be behind by.
fn outrun(web: &Web, trace: &str) -> u64 {
    let large = json!({"type": "note", "payload": {"text": "x".repeat(900 << 10)}});
    for _ in 0..10 {
        append(web, trace, &[large.clone(), large.clone(), large.clone()]);
    }
    let small: Vec<Value> = (0..BATCH).map(|_| json!({"type": "note"})).collect();
    let mut end = 0;
    for _ in 0..LAG_EVENTS_MAX / BATCH + 2 {
        end = append(web, trace, &small);
    }
    end
}

fn position(event: &Event) -> Option<u64> {
    event.id.filter(|_| event.name.is_empty())
}

#[test]
fn a_reader_that_fell_behind_is_told_where_to_go_on_and_gets_every_event_once() {
    let home = Home::new();
    let web = Web::start(&home);
    let trace = web.post("/v1/traces", &json!({})).expect(201)["trace"].as_str().unwrap().to_owned();
    let mut slow = web.events("/v1/events", None);
    let mut seen = Vec::new();
    for event in slow.by_ref() {
        if event.name == "live" {
            break;
        }
        seen.extend(position(&event));
    }
    let end = outrun(&web, &trace);
    assert!(end > LAG_EVENTS_MAX);

    let mut gap = None;
    for event in slow.by_ref() {
        assert!(gap.is_none(), "the gap is the last that it hears: {event:?}");
        match event.name.as_str() {
            "" => seen.extend(position(&event)),
            "gap" => gap = Some(event.data),
            other => panic!("expected events and a gap, got {other}"),
        }
    }
    let gap = gap.expect("it is told");
    let resume_from = gap["resumeFrom"].as_u64().unwrap();
    assert_eq!(Some(&resume_from), seen.last(), "nothing was left out before the gap");
    assert!(gap["end"].as_u64().unwrap() - resume_from > LAG_EVENTS_MAX, "{gap}");

    let mut again = web.events("/v1/events", Some(resume_from));
    for event in again.by_ref() {
        match event.name.as_str() {
            "live" => break,
            "" => seen.extend(position(&event)),
            other => panic!("expected events, got {other}"),
        }
    }
    assert_eq!(seen, (1..=end).collect::<Vec<_>>(), "every one, once, in order");
    web.serving.stop();
}
