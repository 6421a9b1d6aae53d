//! Many processes at once, and processes that are killed.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Home, finish, wait};

#[test]
fn sixteen_processes_append_at_once_and_everything_is_there() {
    let home = Home::new().with_env("BATON_LOCK_WAIT_MS", "100000");
    let trace = home.trace();
    let children: Vec<_> = (0..16)
        .map(|n| {
            let agent = format!("agent-{n}");
            let mut child = home
                .command(&["trace", "append", &trace, "--agent", &agent, "--json"])
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            let events: Vec<Value> =
                (0..4).map(|i| json!({"type": "note", "payload": {"by": n, "i": i}})).collect();
            child.stdin.take().unwrap().write_all(Value::from(events).to_string().as_bytes()).unwrap();
            child
        })
        .collect();
    // While they write, reading works and never sees anything broken.
    for _ in 0..5 {
        home.run(&["verify"]).expect(0);
        home.run(&["trace", "ls"]).expect(0);
        home.run(&["events"]).expect(0);
    }
    let mut receipts = BTreeSet::new();
    for child in children {
        let ended = finish(child, None);
        ended.expect(0);
        for event in ended.object()["events"].as_array().unwrap() {
            receipts.insert((event["pos"].as_u64().unwrap(), event["id"].as_str().unwrap().to_owned()));
        }
    }
    assert_eq!(receipts.len(), 64);
    let stored: BTreeSet<(u64, String)> = home.events()[2..]
        .iter()
        .map(|event| (event["pos"].as_u64().unwrap(), event["id"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(receipts, stored, "each where its writer was told");
    home.run(&["verify"]).expect(0);
    assert_eq!(home.json(&["replay"])["equal"], true);
}

#[test]
fn the_directory_is_free_between_two_lines_of_a_slow_pipe() {
    let home = Home::new().with_env("BATON_LOCK_WAIT_MS", "2000");
    let trace = home.trace();
    let mut slow =
        home.command(&["trace", "append", &trace, "--json"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = slow.stdin.take().unwrap();
    let mut printed = BufReader::new(slow.stdout.take().unwrap()).lines();
    for round in 0..3 {
        writeln!(pipe, "{}", json!({"type": "note", "payload": {"round": round}})).unwrap();
        let line: Value = serde_json::from_str(&printed.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["events"][0]["pos"], 3 + 2 * round);
        home.append(&trace, "other", &json!({"type": "note"}));
    }
    drop(pipe);
    assert_eq!(wait(&mut slow).code(), Some(0));
    assert_eq!(home.events().len(), 8);
}

#[test]
fn an_endless_stream_leaves_room_for_others() {
    let home = Home::new().with_env("BATON_LOCK_WAIT_MS", "5000");
    let (streamed, other) = (home.trace(), home.trace());
    let mut stream =
        home.command(&["trace", "append", &streamed, "--json"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = stream.stdin.take().unwrap();
    // Faster than it is recorded, and until the pipe breaks: the stream itself never pauses.
    let lines = "{\"type\":\"note\"}\n".repeat(1000);
    let feeder = std::thread::spawn(move || while pipe.write_all(lines.as_bytes()).is_ok() {});
    let mut printed = BufReader::new(stream.stdout.take().unwrap()).lines();
    printed.next().unwrap().unwrap();
    // Somebody has to read what it prints, else it waits and gives the directory back for that reason.
    let reader = std::thread::spawn(move || printed.map_while(Result::ok).count());
    for _ in 0..3 {
        home.append(&other, "other", &json!({"type": "note"}));
    }
    assert!(stream.try_wait().unwrap().is_none(), "it streams all the time");
    stream.kill().unwrap();
    wait(&mut stream);
    feeder.join().unwrap();
    assert!(reader.join().unwrap() > 0);
    home.run(&["verify"]).expect(0);
}

#[test]
fn what_was_printed_before_a_kill_is_there_afterwards() {
    let home = Home::new().with_env("BATON_LEDGER_SEGMENT_BYTES", "8192");
    let trace = home.trace();
    home.json(&["agent", "key", "worker"]);
    let mut printed = BTreeSet::new();
    for round in 0..10 {
        let mut child = home
            .command(&["trace", "append", &trace, "--agent", "worker", "--json"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // Feeds until the pipe breaks.
        let feeder = std::thread::spawn(move || {
            (0u64..)
                .try_for_each(|n| writeln!(pipe, "{}", json!({"type": "note", "payload": {"n": n}})))
                .unwrap_err()
        });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut take = |line: String| {
            // The last line may be cut by the kill; a whole one was acknowledged.
            if let Ok(value) = serde_json::from_str::<Value>(&line) {
                printed.insert(value["events"][0]["id"].as_str().unwrap().to_owned());
            }
        };
        for _ in 0..5 + round * 7 {
            take(lines.next().unwrap().unwrap());
        }
        child.kill().unwrap();
        lines.map_while(Result::ok).for_each(&mut take);
        wait(&mut child);
        feeder.join().unwrap();
        let stored: BTreeSet<String> =
            home.events().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect();
        assert!(printed.is_subset(&stored), "round {round}: something acknowledged is gone");
        home.run(&["verify"]).expect(0);
    }
    home.append(&trace, "worker", &json!({"type": "note"}));
    home.run(&["verify"]).expect(0);
    assert_eq!(home.json(&["replay"])["equal"], true);
}
