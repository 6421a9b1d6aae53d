//! Spans reach a collector, and nobody waits for one that is away.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Home;

/// Takes bundles of spans until one has a span of this name.
fn collect(listener: &TcpListener, wanted: &str) -> Vec<Value> {
    let mut spans: Vec<Value> = Vec::new();
    while !spans.iter().any(|span| span["name"] == wanted) {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut reader = BufReader::new(stream);
        let (mut length, mut first) = (0, String::new());
        reader.read_line(&mut first).unwrap();
        assert!(first.starts_with("POST /v1/traces "), "{first}");
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        let bundle: Value = serde_json::from_slice(&body).unwrap();
        let resource = &bundle["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "baton");
        spans.extend(resource["scopeSpans"][0]["spans"].as_array().unwrap().iter().cloned());
    }
    spans
}

#[test]
fn a_turn_is_a_trace_with_its_tools_as_children() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let home = Home::new().with_env("BATON_TELEMETRY_OTLP_ENDPOINT", &endpoint);
    let collector = std::thread::spawn(move || collect(&listener, "turn"));
    home.run(&["run", "tool", "--agent", "mock", "--yes"]).expect(0);
    let spans = collector.join().unwrap();
    let named = |name: &str| {
        spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{name}: {spans:?}"))
    };
    let (turn, tool) = (named("turn"), named("tool_run"));
    assert_eq!((&tool["traceId"], &tool["parentSpanId"]), (&turn["traceId"], &turn["spanId"]));
    assert!(turn.get("parentSpanId").is_none());
    let nanos = |span: &Value, name: &str| span[name].as_str().unwrap().parse::<u128>().unwrap();
    assert!(nanos(turn, "startTimeUnixNano") <= nanos(tool, "startTimeUnixNano"));
    assert!(nanos(tool, "endTimeUnixNano") <= nanos(turn, "endTimeUnixNano"));
    let keys: Vec<&str> =
        tool["attributes"].as_array().unwrap().iter().map(|a| a["key"].as_str().unwrap()).collect();
    assert!(keys.contains(&"session_id") && keys.contains(&"tool_name"), "{keys:?}");
}

#[test]
fn a_collector_that_is_away_holds_nobody_up() {
    // It takes connections, and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let home = Home::new().with_env("BATON_TELEMETRY_OTLP_ENDPOINT", &endpoint);
    let began = Instant::now();
    home.run(&["run", "echo hello", "--agent", "mock"]).expect(0);
    assert!(began.elapsed() < Duration::from_secs(30));
    drop(listener);
}
