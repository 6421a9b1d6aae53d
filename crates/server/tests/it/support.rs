//! A server on a directory of its own, and a client that says exactly what it is told to.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_runtime::clock::SystemClock;
use baton_runtime::harness::{AgentSpec, Drive, Waits};
use baton_runtime::session::{Broker, SessionBounds, Setting as Sessions, Surroundings};
use baton_runtime::{Engine, Fault, Ground, Settings};
use baton_server::access::{Tokens, Who};
use baton_server::house::{Call, Commands, Done, Handed, House, Ran, Scheduling};
use baton_server::limits::Patience;
use baton_server::listen::{Listening, Setting};
use baton_server::problem::Problem;
use baton_store::journal::Options;
use baton_store::{Layout, Workspace};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::DuplexStream;

/// Nothing takes longer, whatever else the machine has to do. Less than the server's own patience, so that what only that ends fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// An agent of the protocol, as far as it is needed: every method says how it is answered.
const AGENT: &str = r#"
echo $$ >pid; n=0
answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$n,\"result\":{\"protocolVersion\":1}}"; }
while read -r line; do
  n=$((n+1))
  case $line in
    *'"slow"'*) read -r go <go; answer ;;
    *'"never"'*) ;;
    *'"ask"'*) echo '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s"}}'; read -r reply; answer ;;
    *'"exit"'*) exit 3 ;;
    *) answer ;;
  esac
done
"#;

/// A server that listens.
pub(crate) struct Served {
    listening: Option<Listening>,
    pub(crate) address: SocketAddr,
    token: String,
    pub(crate) work: PathBuf,
    _workspace: Workspace,
    _dir: TempDir,
}

/// A body that comes in pieces.
pub(crate) struct Pieces(BufReader<TcpStream>);

impl Iterator for Pieces {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut size = String::new();
        self.0.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let mut piece = vec![0; size + 2];
        self.0.read_exact(&mut piece).unwrap();
        piece.truncate(size);
        (size > 0).then(|| String::from_utf8(piece).unwrap())
    }
}

/// What a client is answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// No command is done here: nothing that is tested needs one.
#[derive(Debug)]
struct NoCommands;

impl Commands for NoCommands {
    fn run(&self, _: Call) -> Ran {
        Ran { exit: 1, out: Vec::new(), err: Vec::new() }
    }

    fn begin(&self, _: Handed, _: Done) -> Result<(), Problem> {
        Err(Problem::unexpected("no commands"))
    }

    fn tools(&self, _: &Who) -> Result<DuplexStream, Problem> {
        Err(Problem::unexpected("no tools"))
    }

    fn explain(&self, fault: Fault) -> Problem {
        Problem::unexpected(fault.to_string())
    }

    fn changed(&self) {}
}

impl Served {
    /// With two agents: `agent`, and `mute`, which never says anything.
    pub(crate) fn start(patience: Patience, waits: Waits) -> Served {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (data, work, state) = (root.join("data"), root.join("work"), root.join("state"));
        std::fs::create_dir(&work).unwrap();
        std::fs::write(work.join("agent.sh"), AGENT).unwrap();
        let layout = Layout::new(&data);
        let workspace = Workspace::create(&layout, &state, Options::default(), Duration::ZERO).unwrap();
        let ground = Ground::of(&workspace, work.clone(), Arc::new(SystemClock)).unwrap();
        let engine = Arc::new(Engine::open(ground, Settings::default()).unwrap());
        let broker = Broker::new(sessions(&workspace, &engine, &root, waits));
        let tokens = Arc::new(Tokens::new(workspace.keys.dir()));
        let token = tokens.own().unwrap();
        let scheduling = Scheduling {
            is_dispatching: false,
            poll: Duration::from_secs(1),
            max_concurrent: 1,
            wake: Arc::default(),
        };
        let commands = Arc::new(NoCommands);
        let house = House { engine, broker, commands, scheduling, dir: data.join("server") };
        let setting = Setting {
            listen: "127.0.0.1:0".parse().unwrap(),
            is_port_free: false,
            tls: None,
            hosts: Vec::new(),
            is_exposed: false,
            patience,
        };
        let listening = Listening::start(&setting, house, tokens).unwrap();
        let address = listening.address;
        Served { listening: Some(listening), address, token, work, _workspace: workspace, _dir: dir }
    }

    /// Opens a connection and asks, and gives the status and the pieces of the body as they come.
    pub(crate) fn open(&self, head: &str, body: &str) -> (u16, Pieces) {
        let (status, is_chunked, reader) = self.say(&self.request(head, body));
        assert!(is_chunked);
        (status, Pieces(reader))
    }

    /// Sends a request, and reads the head of the answer: its status, and whether its body comes in pieces.
    fn say(&self, request: &str) -> (u16, bool, BufReader<TcpStream>) {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let (mut head, mut line) = (String::new(), String::new());
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
            head.push_str(&line);
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_ascii_lowercase().contains("transfer-encoding: chunked"), reader)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    /// A request as it goes over the wire.
    pub(crate) fn request(&self, head: &str, body: &str) -> String {
        let (address, token, length) = (self.address, &self.token, body.len());
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        format!(
            "{head} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{kind}Content-Length: {length}\r\n\r\n{body}"
        )
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), "")
    }

    /// Sends an agent a message, and gives the answer to it.
    pub(crate) fn post(&self, path: &str, message: &Value) -> Answer {
        self.ask(&format!("POST /v1/acp/{path}"), &message.to_string())
    }

    fn ask(&self, head: &str, body: &str) -> Answer {
        let request = self.request(head, body).replacen("\r\n", "\r\nConnection: close\r\n", 1);
        let (status, is_chunked, mut reader) = self.say(&request);
        let mut text = String::new();
        match is_chunked {
            true => text.extend(Pieces(reader)),
            false => drop(reader.read_to_string(&mut text).unwrap()),
        }
        Answer { status, body: serde_json::from_str(&text).unwrap_or(Value::String(text)) }
    }

    /// Begins an agent under a name.
    pub(crate) fn begin(&self, server: &str) {
        let begun = self.post(&format!("{server}?agent=agent"), &call(0, "initialize"));
        assert_eq!((begun.status, &begun.body["result"]["protocolVersion"]), (200, &json!(1)), "{begun:?}");
    }

    /// The names of the agents that live.
    pub(crate) fn listed(&self) -> Vec<String> {
        let servers = self.get("/v1/acp").body["servers"].as_array().unwrap().clone();
        servers.iter().map(|server| server["serverId"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.end();
        }
    }
}

pub(crate) fn call(id: u64, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}})
}

/// Waits for a condition.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < DEADLINE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn sessions(workspace: &Workspace, engine: &Engine, root: &std::path::Path, waits: Waits) -> Sessions {
    let spec = |name: &str, words: &[&str]| {
        let command = words.iter().map(|word| (*word).to_owned()).collect();
        let name = name.parse().unwrap();
        let spec = AgentSpec { waits, ..AgentSpec::new(name, Drive::Acp { command }) };
        (spec.name.clone(), spec)
    };
    let second = Duration::from_secs(1);
    Sessions {
        journal: workspace.journal.clone(),
        key: workspace.ledger_key.clone(),
        artifacts: Arc::new(workspace.artifacts.clone()),
        clock: engine.ground().clock.clone(),
        dir: root.join("data/sessions"),
        boot: engine.ground().boot.clone(),
        agents: BTreeMap::from([spec("agent", &["sh", "agent.sh"]), spec("mute", &["cat"])]),
        bounds: SessionBounds {
            max_sessions: 16,
            llm_timeout: second,
            tool_timeout: second,
            tool_timeouts: BTreeMap::new(),
            permission_timeout: second,
            stop_grace: second,
            exit_grace: second,
            stderr_lines: 10,
            output_bytes: 1 << 16,
            home_read: Vec::new(),
            resume: false,
        },
        hooks: Ok(Vec::new()),
        surroundings: Surroundings {
            program: "baton".into(),
            data_dir: root.join("data"),
            state_dir: root.join("state"),
            own: Vec::new(),
            variable: Box::new(|name| std::env::var(name).ok()),
        },
    }
}
