//! A model of our own on this machine: what a prompt says, it does. For agents and harnesses that want to talk to one, without a network.
//!
//! It speaks OpenAI's chat completions and Anthropic's messages, streaming and whole. The words are in [`script`]; whoever wrote the last message
//! of the conversation chooses by them. Every request is kept, with its headers.

mod answer;
mod http;
mod script;
mod tools;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use self::answer::Wire;
use self::script::{Fault, Reply};

/// A request as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Null where there was none, or none that is JSON.
    pub body: Value,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Vec<Seen>>,
    /// How often a prompt that fails for a while has failed.
    failed: Mutex<BTreeMap<String, u32>>,
    is_over: AtomicBool,
}

/// Between two words of an answer that takes its time.
const PAUSE: Duration = Duration::from_millis(50);

/// How often an answer that never comes looks whether anybody still waits.
const LOOK: Duration = Duration::from_millis(20);

impl ModelServer {
    /// Starts one on a free port of this machine.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let serving = shared.clone();
        std::thread::Builder::new().name("model-server".into()).spawn(move || {
            for stream in listener.incoming() {
                if serving.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(stream), shared) = (stream, serving.clone()) else { continue };
                // One that cannot be served is closed, which is an answer too.
                let _ = std::thread::Builder::new().spawn(move || drop(serve(stream, &shared)));
            }
        })?;
        Ok(ModelServer { address, shared })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its API begins, as clients want to be told.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the one who listens.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    /// Whether a prompt that fails so many times still does.
    fn still_fails(&self, prompt: &str, times: u32) -> bool {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failed.entry(prompt.to_owned()).or_default();
        *count += 1;
        *count <= times
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let seen = http::read(&mut stream)?;
    shared.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen.clone());
    let path = seen.path.split('?').next().unwrap_or_default();
    let wire = match path.trim_start_matches("/v1") {
        "/models" => {
            let models = json!({"object": "list", "data": [{"id": "fake-model", "object": "model"}]});
            return http::whole(&mut stream, 200, &[], &models);
        }
        "/chat/completions" => Wire::OpenAi,
        "/messages" => Wire::Anthropic,
        _ => return http::whole(&mut stream, 404, &[], &json!({"error": {"message": "no such path"}})),
    };
    let (prompt, reply) = script::decide(wire, &seen.body);
    let is_streaming = seen.body["stream"].as_bool().unwrap_or(false);
    let reply = match reply {
        Reply::Fault(Fault::Unless { times, fault }) => match shared.still_fails(&prompt, times) {
            true => Reply::Fault(*fault),
            false => Reply::Text("recovered".to_owned()),
        },
        other => other,
    };
    let key = ["authorization", "x-api-key"].iter().find_map(|name| seen.headers.get(*name));
    match reply {
        Reply::Fault(Fault::Status { status, retry_after }) => {
            // As careless as a server can be: it repeats the key.
            let message = format!("status {status} on purpose, key {}", key.map_or("none", String::as_str));
            let body = json!({"type": "error", "error": {"type": "on_purpose", "message": message}});
            let wait = retry_after.map(|seconds| ("Retry-After", seconds.to_string()));
            http::whole(&mut stream, status, wait.as_slice(), &body)
        }
        Reply::Fault(Fault::Hang) => hang(&stream, shared),
        Reply::Fault(Fault::Reset) => http::reset(stream),
        Reply::Fault(Fault::Cut) => answer::cut(wire, &mut stream),
        // Resolved above.
        Reply::Fault(Fault::Unless { .. }) => Ok(()),
        reply if is_streaming => answer::stream(wire, &mut stream, &reply, Duration::ZERO),
        reply => http::whole(&mut stream, 200, &[], &answer::whole(wire, &reply)),
    }
}

/// Says nothing for as long as somebody waits.
fn hang(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(LOOK))?;
    let mut byte = [0];
    while !shared.is_over.load(Ordering::Relaxed) {
        match stream.peek(&mut byte) {
            Ok(0) => return Ok(()),
            Ok(_) => std::thread::sleep(LOOK),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
