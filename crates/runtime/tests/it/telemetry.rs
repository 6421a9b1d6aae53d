//! What a real session logs: the fields of its lines, the spans of its turns, and the numbers after it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use baton_core::session::{FailurePolicy, Hook, StateKind, ToolFilter};
use baton_runtime::session::Ask;
use baton_runtime::telemetry::metrics;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::session::Live;

/// Everything that this process logs, kept.
#[derive(Debug, Default)]
struct Kept {
    next: AtomicU64,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    lines: Vec<Fields>,
    spans: BTreeMap<u64, Noted>,
}

/// A span: its name, its parent, what it says, and whether it has ended.
#[derive(Debug, Clone)]
struct Noted {
    name: &'static str,
    parent: Option<u64>,
    fields: Fields,
    is_over: bool,
}

type Fields = BTreeMap<String, String>;

struct Reader<'a>(&'a mut Fields);

impl Visit for Reader<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl Subscriber for &'static Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "baton::session"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = Fields::new();
        span.record(&mut Reader(&mut fields));
        let (name, parent) = (span.metadata().name(), span.parent().map(Id::into_u64));
        self.seen.lock().unwrap().spans.insert(id, Noted { name, parent, fields, is_over: false });
        Id::from_u64(id)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Reader(&mut fields));
        self.seen.lock().unwrap().lines.push(fields);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}

    fn try_close(&self, span: Id) -> bool {
        if let Some(span) = self.seen.lock().unwrap().spans.get_mut(&span.into_u64()) {
            span.is_over = true;
        }
        true
    }
}

fn kept() -> &'static Kept {
    static KEPT: OnceLock<Kept> = OnceLock::new();
    let mut is_new = false;
    let kept = KEPT.get_or_init(|| {
        is_new = true;
        Kept::default()
    });
    if is_new {
        tracing::subscriber::set_global_default(kept).unwrap();
    }
    kept
}

/// The lines of one session, and its spans.
fn of(session: &str) -> (Vec<Fields>, BTreeMap<u64, Noted>) {
    let seen = kept().seen.lock().unwrap();
    let is_its = |fields: &Fields| fields.get("session_id").is_some_and(|id| id == session);
    let lines = seen.lines.iter().filter(|line| is_its(line)).cloned().collect();
    let spans = seen.spans.iter().filter(|(_, span)| is_its(&span.fields));
    (lines, spans.map(|(id, span)| (*id, span.clone())).collect())
}

/// Everything of a session once its last line is there.
#[track_caller]
fn whole(session: &str) -> (Vec<Fields>, BTreeMap<u64, Noted>) {
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        let (lines, spans) = of(session);
        if lines.iter().any(|line| get(line, "message") == "harness exited") {
            return (lines, spans);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{session} never ended");
}

fn get<'a>(line: &'a Fields, name: &str) -> &'a str {
    line.get(name).map_or("", String::as_str)
}

fn check() -> Hook {
    Hook {
        name: "check".into(),
        command: vec!["true".into()],
        timeout_ms: 30_000,
        failure_policy: FailurePolicy::FailSession,
        tool_filter: ToolFilter::AnyMutating,
    }
}

#[test]
fn a_session_logs_what_seed_and_spec_ask_for() {
    kept();
    let live = Live::hooked(vec![check()]);
    let id = live.id();
    live.until_state(StateKind::Ready);
    live.prompt("tool");
    live.until_state(StateKind::PostToolsHook);
    live.until_state(StateKind::Ready);
    live.prompt("crash");
    live.end();
    let (lines, spans) = whole(&id);

    let moves: Vec<(&str, &str)> = lines
        .iter()
        .filter(|line| get(line, "message") == "state changed")
        .map(|line| (get(line, "from"), get(line, "to")))
        .collect();
    assert_eq!(
        moves[..7],
        [
            ("idle", "starting"),
            ("starting", "ready"),
            ("ready", "calling_llm"),
            ("calling_llm", "processing_response"),
            ("processing_response", "executing_tools"),
            ("executing_tools", "post_tools_hook"),
            ("post_tools_hook", "ready"),
        ]
    );
    let line = |message: &str| {
        let found = lines.iter().find(|line| get(line, "message") == message);
        found.unwrap_or_else(|| panic!("no {message}: {lines:#?}"))
    };
    let called = lines.iter().find(|line| get(line, "to") == "calling_llm").unwrap();
    assert!(get(called, "stream_id").starts_with("turn_"), "{called:?}");
    assert_eq!(get(called, "reason"), "user_input");
    for (what, name, value, run) in
        [("tool", "tool_name", "write_file", "toolrun_"), ("hook", "hook_name", "check", "hookrun_")]
    {
        let (started, ended) = (line(&format!("{what} started")), line(&format!("{what} ended")));
        for line in [started, ended] {
            assert!(get(line, "run_id").starts_with(run), "{line:?}");
            assert_eq!((get(line, name), get(line, "attempt")), (value, "1"));
        }
        assert_eq!(get(ended, "status"), "succeeded");
        assert!(get(ended, "duration_ms").parse::<u64>().is_ok(), "{ended:?}");
    }
    assert_eq!(get(line("session error"), "error_code"), "harness_failed");
    let exited = line("harness exited");
    assert_eq!((get(exited, "exit_code"), get(exited, "reason")), ("3", "error"));
    assert!(line("tool requested").contains_key("arguments"), "for whoever debugs");

    let tree = |wanted: &str| -> Vec<&str> {
        let turn = spans.iter().find(|(_, span)| span.name == "turn" && span.fields["stream_id"] == wanted);
        let (turn, span) = turn.unwrap_or_else(|| panic!("no turn {wanted}: {spans:#?}"));
        assert_eq!(span.parent, None);
        spans.values().filter(|span| span.parent == Some(*turn)).map(|span| span.name).collect()
    };
    let streams: Vec<&str> = lines
        .iter()
        .filter(|line| get(line, "to") == "calling_llm")
        .map(|line| get(line, "stream_id"))
        .collect();
    assert_eq!(tree(streams[0]), ["llm_request", "tool_run", "hook_run"]);
    assert_eq!(tree(streams[1]), ["llm_request"]);
    assert!(spans.values().all(|span| span.is_over), "{spans:#?}");
    let tool = spans.values().find(|span| span.name == "tool_run").unwrap();
    assert_eq!(tool.fields["tool_name"], "write_file");
    assert_eq!(tool.fields["run_id"], line("tool started")["run_id"]);

    let text = metrics().render();
    for name in [
        "agent_state_transitions_total{from=\"post_tools_hook\",to=\"ready\"}",
        "session_errors_total{code=\"harness_failed\"}",
        "tool_run_duration_ms_count",
        "hook_run_duration_ms_count",
    ] {
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        let count = found.and_then(|rest| rest.trim().parse::<u64>().ok());
        assert!(count.is_some_and(|count| count > 0), "{name}:\n{text}");
    }
}

#[test]
fn a_session_that_is_stopped_ends_its_spans() {
    kept();
    let live = Live::new();
    let id = live.id();
    live.until_state(StateKind::Ready);
    live.prompt("hang");
    live.until_state(StateKind::CallingLlm);
    live.handle.ask(Ask::Stop).unwrap();
    live.end();
    let (lines, spans) = whole(&id);
    let exited = lines.iter().find(|line| get(line, "message") == "harness exited").unwrap();
    assert_eq!((get(exited, "reason"), get(exited, "terminated_by")), ("terminated", "daemon"));
    assert_eq!(spans.values().map(|span| span.name).collect::<Vec<_>>(), ["turn", "llm_request"]);
    assert!(spans.values().all(|span| span.is_over), "{spans:#?}");
}
