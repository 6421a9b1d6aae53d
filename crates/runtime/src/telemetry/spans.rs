//! Spans on their way to a collector: held while they are open, queued when they end, sent in bundles by a thread of their own. Nobody who works waits for
//! a collector; what finds no room is counted and left out.
//!
//! OTLP over HTTP in its JSON form, which every collector takes.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use baton_store::clock;
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::Attributes;
use ureq::Agent;

use crate::limits::{SPANS_BUNDLE_MAX, SPANS_OPEN_MAX, SPANS_QUEUED_MAX, SPANS_SEND_AFTER, SPANS_SEND_WAIT};
use crate::trust;

/// Collects spans and sends them.
#[derive(Debug)]
pub struct Spans {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<u64, Open>,
    next: u64,
    queue: VecDeque<Value>,
    left_out: u64,
    ends: bool,
}

/// A span that has not ended.
#[derive(Debug)]
struct Open {
    name: &'static str,
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    began: SystemTime,
    fields: Fields,
    /// How many hold it.
    holders: usize,
    error: Option<String>,
}

impl Spans {
    /// Begins to send to a collector, by its base address; what belongs behind it is added.
    pub fn start(endpoint: &str) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let (sending, agent) = (shared.clone(), agent());
        let thread = std::thread::Builder::new().name("spans".into()).spawn(move || {
            while let Some(bundle) = sending.next_bundle() {
                let body = request(bundle).to_string();
                let sent = agent.post(&url).header("Content-Type", "application/json").send(body.as_bytes());
                let is_taken = sent.is_ok_and(|answer| answer.status().is_success());
                if !is_taken {
                    // Whoever collects may be away; spans are for watching, and are not kept for it.
                    sending.lock().left_out += 1;
                }
            }
        })?;
        Ok(Spans { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Sends what is left, within a bound, and ends.
    pub fn end(&self) {
        self.shared.lock().ends = true;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let until = std::time::Instant::now() + SPANS_SEND_WAIT;
        if let Some(thread) = thread {
            while !thread.is_finished() && std::time::Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    pub(super) fn open(&self, span: &Attributes<'_>) -> u64 {
        let mut fields = Fields::default();
        span.record(&mut fields);
        let mut state = self.shared.lock();
        state.next += 1;
        let number = state.next;
        if state.open.len() >= SPANS_OPEN_MAX {
            state.left_out += 1;
            return number;
        }
        let parent = span.parent().and_then(|parent| state.open.get(&parent.into_u64()));
        let (trace, parent) = match parent {
            Some(parent) => (parent.trace, Some(parent.id)),
            None => (*clock::new_uuid().as_bytes(), None),
        };
        let mut id = [0; 8];
        id.copy_from_slice(&clock::random()[..8]);
        let (name, began) = (span.metadata().name(), SystemTime::now());
        state.open.insert(number, Open { name, trace, id, parent, began, fields, holders: 1, error: None });
        number
    }

    pub(super) fn hold(&self, number: u64) {
        if let Some(open) = self.shared.lock().open.get_mut(&number) {
            open.holders += 1;
        }
    }

    pub(super) fn fail(&self, number: u64, error: String) {
        if let Some(open) = self.shared.lock().open.get_mut(&number) {
            open.error = Some(error);
        }
    }

    /// One holder less; the last one ends it.
    pub(super) fn release(&self, number: u64) {
        let mut state = self.shared.lock();
        let Some(open) = state.open.get_mut(&number) else { return };
        open.holders -= 1;
        if open.holders > 0 {
            return;
        }
        let Some(open) = state.open.remove(&number) else { return };
        if state.queue.len() >= SPANS_QUEUED_MAX {
            state.left_out += 1;
            return;
        }
        state.queue.push_back(open.ended());
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for spans, and gives as many as are sent at once: when there are enough, or after a while, or at the end.
    fn next_bundle(&self) -> Option<Vec<Value>> {
        let state = self.lock();
        let waits = |state: &mut State| state.queue.is_empty() && !state.ends;
        let state = self.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        let gathers = |state: &mut State| state.queue.len() < SPANS_BUNDLE_MAX && !state.ends;
        let gathered = self.changed.wait_timeout_while(state, SPANS_SEND_AFTER, gathers);
        let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        let count = state.queue.len().min(SPANS_BUNDLE_MAX);
        match count {
            0 => None,
            count => Some(state.queue.drain(..count).collect()),
        }
    }
}

impl Open {
    fn ended(self) -> Value {
        let nanos =
            |at: SystemTime| at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos()).to_string();
        let mut span = json!({
            "traceId": hex(&self.trace), "spanId": hex(&self.id), "name": self.name, "kind": 1,
            "startTimeUnixNano": nanos(self.began), "endTimeUnixNano": nanos(SystemTime::now()),
            "attributes": self.fields.0,
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = hex(&parent).into();
        }
        if let Some(error) = self.error {
            span["status"] = json!({"code": 2, "message": error});
        }
        span
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn request(spans: Vec<Value>) -> Value {
    let resource = [("service.name", "baton"), ("service.version", env!("CARGO_PKG_VERSION"))];
    let resource: Vec<Value> =
        resource.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "baton"}, "spans": Value::Array(spans)}],
    }]})
}

/// A client that follows nothing and waits no longer than it may.
fn agent() -> Agent {
    let config = Agent::config_builder()
        .tls_config(trust::tls(&trust::authorities()))
        .timeout_global(Some(SPANS_SEND_WAIT))
        .max_redirects(0)
        .http_status_as_error(false)
        .user_agent(concat!("baton/", env!("CARGO_PKG_VERSION")));
    config.build().into()
}

/// The fields of a span as attributes.
#[derive(Debug, Default)]
struct Fields(Vec<Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: &Value) {
        self.0.push(json!({"key": field.name(), "value": value}));
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, &json!({"stringValue": value}));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        // Whole numbers are texts in this form.
        self.put(field, &json!({"intValue": value.to_string()}));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, &json!({"intValue": value.to_string()}));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, &json!({"boolValue": value}));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, &json!({"stringValue": format!("{value:?}")}));
    }
}
