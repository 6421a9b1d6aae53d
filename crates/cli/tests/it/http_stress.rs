//! The server under load: many readers, some of which do not read; kills in the middle; and an orderly end.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Home, until};
use crate::web_support::{Events, Web, connect, try_say};

/// A number from the surroundings, for the long counts.
fn count(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Events as fast as they can be made, many in one decision.
fn append(web: &Web, trace: &str, events: u64) {
    let batch: Vec<Value> =
        (0..100).map(|n| json!({"type": "note", "payload": {"text": format!("note {n}")}})).collect();
    for _ in 0..events / 100 {
        web.post(&format!("/v1/traces/{trace}/events?agent=ada"), &json!(batch)).expect(201);
    }
}

fn new_trace(web: &Web) -> String {
    web.post("/v1/traces", &json!({})).expect(201)["trace"].as_str().unwrap().to_owned()
}

/// Reads until a position was seen, coming again wherever it was cut off. Gives every position, in the order in which they came.
fn read_until(web: &Web, last: &AtomicU64, cut_every: u64) -> Vec<u64> {
    let mut seen: Vec<u64> = Vec::new();
    loop {
        let mut since_cut = 0;
        for event in web.events("/v1/events", Some(seen.last().copied().unwrap_or(0))) {
            if event.name == "gap" {
                assert_eq!(event.data["resumeFrom"].as_u64(), seen.last().copied(), "nothing was left out");
                break;
            }
            let Some(at) = event.id.filter(|_| event.name.is_empty()) else { continue };
            seen.push(at);
            since_cut += 1;
            let end = last.load(Ordering::Relaxed);
            if end != 0 && at >= end {
                return seen;
            }
            if since_cut == cut_every {
                break;
            }
        }
    }
}

#[test]
fn a_hundred_readers_get_everything_once_and_in_order_while_some_do_not_read() {
    let home = Home::new();
    let web = Arc::new(Web::start(&home));
    let trace = new_trace(&web);
    let (events, last) = (count("BATON_STREAM_EVENTS", 20_000), Arc::new(AtomicU64::new(0)));
    // Twenty that never read anything.
    let stalled: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = connect(&web.address);
            let head = format!(
                "GET /v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
                web.address, web.token
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    let readers: Vec<_> = (0..80_u64)
        .map(|n| {
            let (web, last) = (web.clone(), last.clone());
            // Every fourth is cut off now and then, at places of its own.
            let cut_every = if n % 4 == 0 { 700 + 37 * n } else { u64::MAX };
            std::thread::spawn(move || read_until(&web, &last, cut_every))
        })
        .collect();
    append(&web, &trace, events);
    let end = web.get("/v1/checkpoint").expect(200)["size"].as_u64().unwrap();
    last.store(end, Ordering::Relaxed);
    // Somebody who waits for one more gets there.
    append(&web, &trace, 100);
    for reader in readers {
        let seen = reader.join().unwrap();
        let wanted: Vec<u64> = (1..=seen.last().copied().unwrap()).collect();
        assert_eq!(seen, wanted, "every event once and in order");
    }
    let rss = resident_mb(web.serving.pid());
    assert!(rss < 200, "{rss} MB with twenty who do not read");
    drop(stalled);
    let web = Arc::into_inner(web).unwrap();
    web.serving.stop();
}

fn resident_mb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn nobody_who_appends_waits_for_somebody_who_never_reads() {
    let home = Home::new();
    let web = Web::start(&home);
    let trace = new_trace(&web);
    let mut stream = connect(&web.address);
    let head = format!(
        "GET /v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        web.address, web.token
    );
    stream.write_all(head.as_bytes()).unwrap();
    // Far more than any buffer on the way holds.
    append(&web, &trace, 10_000);
    assert_eq!(web.get("/v1/checkpoint").expect(200)["size"].as_u64().unwrap() / 10_000, 1);
    drop(stream);
    web.serving.stop();
}

/// One of many who make tasks with keys of their own, and ask again until they know.
fn client(
    number: u64,
    address: &Mutex<String>,
    token: &str,
    is_over: &AtomicBool,
) -> BTreeMap<String, String> {
    let (mut made, mut asked) = (BTreeMap::new(), 0_u64);
    while !is_over.load(Ordering::Relaxed) {
        let key = format!("client-{number}-{asked}");
        let body = json!({"title": key, "status": "ready"}).to_string();
        let bearer = format!("Bearer {token}");
        // Until it is known: a connection that breaks says nothing about what was done.
        let id = loop {
            let address = address.lock().unwrap().clone();
            let headers = [
                ("Host", address.as_str()),
                ("Authorization", &bearer),
                ("Content-Type", "application/json"),
                ("Idempotency-Key", &key),
            ];
            match try_say(&address, "POST", "/v1/tasks", &headers, body.as_bytes()) {
                Ok(answer) if answer.status == 201 => break answer.json()["id"].as_str().unwrap().to_owned(),
                Ok(answer) => assert!(matches!(answer.status, 409 | 500 | 503), "{}", answer.status),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        made.insert(key, id);
        asked += 1;
    }
    made
}

#[test]
fn whatever_is_killed_under_load_nothing_is_lost_and_nothing_is_done_twice() {
    let home = Home::new();
    let kills = count("BATON_SERVER_KILLS", 20);
    let first = Web::start(&home);
    let (token, address) = (first.token.clone(), Arc::new(Mutex::new(first.address.clone())));
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..16)
        .map(|number| {
            let (address, token, is_over) = (address.clone(), token.clone(), is_over.clone());
            std::thread::spawn(move || client(number, &address, &token, &is_over))
        })
        .collect();
    let mut web = first;
    for _ in 0..kills {
        // Somewhere in the middle of things: after some of them are recorded.
        let size = home.data().join("events");
        let before = bytes_in(&size);
        until("something is recorded", || bytes_in(&size) > before + 20_000);
        web.serving.signal("-KILL");
        drop(web);
        web = Web::start(&home);
        *address.lock().unwrap() = web.address.clone();
    }
    is_over.store(true, Ordering::Relaxed);
    let mut acknowledged = BTreeMap::new();
    for client in clients {
        acknowledged.extend(client.join().unwrap());
    }
    let mut titles: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for task in home.json(&["task", "ls"])["tasks"].as_array().unwrap() {
        let text = |name: &str| task[name].as_str().unwrap().to_owned();
        titles.entry(text("title")).or_default().push(text("id"));
    }
    assert!(acknowledged.len() > 100, "{} requests", acknowledged.len());
    for (key, id) in &acknowledged {
        assert_eq!(titles.get(key), Some(&vec![id.clone()]), "{key}: once, and under the id that was told");
    }
    let ids: BTreeSet<&String> = titles.values().flatten().collect();
    assert_eq!(ids.len(), titles.len(), "no request made two tasks");
    web.serving.stop();
    home.run(&["replay"]).expect(0);
}

fn bytes_in(dir: &std::path::Path) -> u64 {
    let files = std::fs::read_dir(dir).unwrap();
    // A segment is filled beforehand; what counts is up to where it was written.
    files
        .map(|entry| {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
            bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at as u64 + 1)
        })
        .sum()
}

#[test]
fn an_orderly_end_answers_what_was_begun_and_tells_those_who_follow() {
    let home = Home::new();
    let web = Web::start(&home);
    let mut events: Events = web.events("/v1/events", None);
    assert!(events.by_ref().any(|event| event.name == "live"));
    let session =
        web.post("/v1/sessions", &json!({"agent": "mock"})).expect(201)["id"].as_str().unwrap().to_owned();
    let said = web.events(&format!("/v1/sessions/{session}/events"), None);
    let began = Instant::now();
    web.serving.signal("-TERM");
    let last = events.filter(|event| !event.name.is_empty()).last().unwrap();
    assert_eq!((last.name.as_str(), last.data["reason"].as_str()), ("end", Some("the server ends")));
    let last = said.last().unwrap();
    assert!(matches!(last.name.as_str(), "end" | "ended"), "{last:?}");
    web.serving.stop_signalled();
    assert!(began.elapsed() < Duration::from_secs(20));
    let shown = home.json(&["session", "show", &session]);
    assert!(shown["terminationInfo"].is_object(), "{shown}");
}
