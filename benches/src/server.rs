//! The server: a task that is read and one that is moved, at 64 connections, against the bare framework and the bare ledger; and what it takes to be there.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use baton_core::event::Durability;
use serde_json::{Value, json};

use crate::fixture::{self, append_unsigned, temp_dir};
use crate::tasks::binary;
use crate::{Figure, Goal, median};

const CONNECTIONS: usize = 64;
const ROUNDS: usize = 3;
const READS: usize = 100;
/// Enough that the files of tasks become late and are written among them.
const MOVES: usize = 300;
/// Batches until the buffers of a connection that nobody reads are full.
const STALLING: usize = 8;

/// A server, as a process of its own.
struct Running {
    child: Child,
    address: String,
    token: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn baton(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).current_dir(dir);
    command.env("BATON_DATA_DIR", dir.join("data")).env("BATON_STATE_DIR", dir.join("state"));
    command
}

/// Starts `baton serve`, and gives how long it took until it answered.
fn serve(dir: &Path) -> (Running, Duration) {
    let began = Instant::now();
    let mut command = baton(dir, &["serve", "--json", "--no-dispatch", "--listen", "127.0.0.1:0"]);
    let child = command.stdout(Stdio::piped()).spawn().expect("baton serves");
    // From here on it ends with this, whatever goes wrong.
    let mut running = Running { child, address: String::new(), token: String::new() };
    let mut line = String::new();
    BufReader::new(running.child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let said: Value = serde_json::from_str(&line).expect("it says where");
    running.address = said["url"].as_str().expect("a url").trim_start_matches("http://").to_owned();
    let mut states = std::fs::read_dir(dir.join("state")).expect("the state directory");
    let token = states.find_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("admin.token")).ok());
    running.token = token.expect("a token");
    let mut client = Client::new(&running.address, &running.token);
    assert_eq!(client.ask("GET", "/readyz", None).0, 200);
    (running, began.elapsed())
}

/// The bare framework, as a process of its own: with an answer of the same bytes, and with an append to a bare ledger.
fn bare(body: &str) -> Running {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    let mut child = command.args(["server-bare", body]).stdout(Stdio::piped()).spawn().expect("it serves");
    let mut address = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut address).expect("a line");
    Running { child, address: address.trim().to_owned(), token: String::new() }
}

/// What `bare` starts.
pub(crate) fn bare_child(body: &str) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let body = Arc::new(body.to_owned());
        let answer = move || {
            let body = body.clone();
            async move { ([("content-type", "application/json")], body.as_str().to_owned()) }
        };
        let ledger = Arc::new(fixture::make(1, 1, Durability::Commit));
        let append = move |body: String| {
            let ledger = ledger.clone();
            async move {
                let append = move || {
                    append_unsigned(&ledger.journal, ledger.traces[0], &ledger.agents[0], body.len() as u64)
                };
                tokio::task::spawn_blocking(append).await.expect("appended");
                "{}"
            }
        };
        let router = axum::Router::new()
            .route("/v1/tasks/{id}", axum::routing::get(answer))
            .route("/v1/tasks/{id}/transition", axum::routing::post(append));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("{}", listener.local_addr().expect("an address"));
        let _ = axum::serve(listener, router).await;
    });
    ExitCode::SUCCESS
}

/// One connection that is kept.
struct Client {
    reader: BufReader<TcpStream>,
    head: String,
}

impl Client {
    fn new(address: &str, token: &str) -> Client {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        let head = format!("HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
        Client { reader: BufReader::new(stream), head }
    }

    fn ask(&mut self, method: &str, path: &str, body: Option<&Value>) -> (u16, Vec<u8>) {
        let body = body.map(Value::to_string).unwrap_or_default();
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let request =
            format!("{method} {path} {}{kind}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        self.reader.get_mut().write_all(request.as_bytes()).expect("asked");
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).expect("answered");
            match line.trim_end().split_once([' ', ':']) {
                Some((first, rest)) if first.starts_with("HTTP/") => {
                    status = rest.get(..3).and_then(|code| code.parse().ok()).expect("a status");
                }
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().expect("a length");
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut answer = vec![0; length];
        self.reader.read_exact(&mut answer).expect("the whole answer");
        (status, answer)
    }
}

/// Seconds for each request, of all connections together.
fn load(server: &Running, each: usize, ask: impl Fn(usize, usize, &mut Client) + Sync) -> f64 {
    let clients: Vec<Client> =
        (0..CONNECTIONS).map(|_| Client::new(&server.address, &server.token)).collect();
    let began = Instant::now();
    thread::scope(|scope| {
        for (number, mut client) in clients.into_iter().enumerate() {
            let ask = &ask;
            scope.spawn(move || (0..each).for_each(|n| ask(number, n, &mut client)));
        }
    });
    began.elapsed().as_secs_f64() / (CONNECTIONS * each) as f64
}

/// Seconds for each event of 64 threads that append to the bare ledger.
fn append_each(ledger: &fixture::Ledger) -> f64 {
    let began = Instant::now();
    thread::scope(|scope| {
        for writer in 0..CONNECTIONS {
            scope.spawn(move || {
                for n in 0..MOVES as u64 {
                    append_unsigned(&ledger.journal, ledger.traces[0], &ledger.agents[writer], n);
                }
            });
        }
    });
    began.elapsed().as_secs_f64() / (CONNECTIONS * MOVES) as f64
}

pub(crate) fn run() -> Vec<Figure> {
    let dir = temp_dir();
    assert!(baton(dir.path(), &["init"]).output().expect("baton runs").status.success());
    let (server, _) = serve(dir.path());
    let idle_mb = resident_mb(server.child.id());
    let mut client = Client::new(&server.address, &server.token);
    let mut ids = Vec::new();
    for n in 0..CONNECTIONS {
        let (status, made) =
            client.ask("POST", "/v1/tasks", Some(&json!({"title": format!("task {n}"), "status": "ready"})));
        assert_eq!(status, 201);
        let made: Value = serde_json::from_slice(&made).expect("a task");
        ids.push(made["id"].as_str().expect("an id").to_owned());
    }
    let shown = client.ask("GET", &format!("/v1/tasks/{}", ids[0]), None).1;
    let bare = bare(std::str::from_utf8(&shown).expect("text"));
    let ledger = fixture::make(1, CONNECTIONS, Durability::Commit);
    let mut times: [Vec<f64>; 6] = Default::default();
    for round in 0..ROUNDS {
        let get = |number: usize, _: usize, client: &mut Client| {
            assert_eq!(client.ask("GET", &format!("/v1/tasks/{}", ids[number]), None).0, 200);
        };
        times[0].push(load(&bare, READS, get));
        times[1].push(load(&server, READS, get));
        times[2].push(append_each(&ledger));
        let mover = |number: usize, n: usize, client: &mut Client| {
            let to = if (n + round * MOVES).is_multiple_of(2) { "blocked" } else { "ready" };
            let body = json!({"to": to, "reason": "to and fro"});
            let path = format!("/v1/tasks/{}/transition", ids[number]);
            assert_eq!(client.ask("POST", &path, Some(&body)).0, 200);
        };
        times[3].push(load(&bare, MOVES, mover));
        times[4].push(load(&server, MOVES, mover));
        let began = Instant::now();
        let show = baton(dir.path(), &["task", "log", &ids[0], "a line"]).output().expect("baton runs");
        assert!(show.status.success());
        times[5].push(began.elapsed().as_secs_f64());
    }
    let [bare_get, get, appends, bare_post, moved, command] = times.map(median);
    let us = |seconds: f64| (seconds * 1e6).round();
    eprintln!("µs: GET {}, bare {}; transition {}", us(get), us(bare_get), us(moved));
    eprintln!("µs: bare append {} of 64 threads, {} of 64 connections", us(appends), us(bare_post));
    drop(server);
    vec![
        Figure { name: "server.get_task_vs_bare_axum", value: get / bare_get, goal: Goal::AtMost(3.0) },
        // At as many connections, over the bare framework; and, for comparison, without any connection.
        Figure {
            name: "server.transition_vs_bare_append",
            value: moved / bare_post,
            goal: Goal::AtMost(1.5),
        },
        Figure { name: "server.transition_vs_threads_that_append", value: moved / appends, goal: Goal::None },
        Figure { name: "server.idle_mb", value: idle_mb, goal: Goal::AtMost(30.0) },
        Figure { name: "server.ready_ms_with_10000_tasks", value: ready_ms(), goal: Goal::AtMost(200.0) },
        Figure { name: "server.command_ms", value: command * 1e3, goal: Goal::AtMost(30.0) },
        Figure { name: "server.append_with_20_stalled_vs_none", value: stalled(), goal: Goal::AtMost(1.1) },
    ]
}

/// How long a start takes with many tasks, after a clean end.
fn ready_ms() -> f64 {
    let board = crate::tasks::many();
    let times = (0..ROUNDS).map(|_| {
        let (mut server, took) = serve(board.path());
        // A clean end, as after Ctrl-C.
        let pid = server.child.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().expect("kill runs").success());
        let _ = server.child.wait();
        took.as_secs_f64() * 1e3
    });
    median(times.collect())
}

/// How much slower events are appended while twenty read nothing.
fn stalled() -> f64 {
    let dir = temp_dir();
    assert!(baton(dir.path(), &["init"]).output().expect("baton runs").status.success());
    let (server, _) = serve(dir.path());
    let mut client = Client::new(&server.address, &server.token);
    let batch: Vec<Value> =
        (0..100).map(|n| json!({"type": "note", "payload": {"text": format!("{n}")}})).collect();
    let batch = json!(batch);
    // Each time to a trace of its own, so that none is longer than another.
    let append = |client: &mut Client| {
        let trace = client.ask("POST", "/v1/traces", Some(&json!({}))).1;
        let trace: Value = serde_json::from_slice(&trace).expect("a trace");
        let path = format!("/v1/traces/{}/events?agent=ada", trace["trace"].as_str().expect("an id"));
        let began = Instant::now();
        (0..20).for_each(|_| assert_eq!(client.ask("POST", &path, Some(&batch)).0, 201));
        began.elapsed().as_secs_f64()
    };
    let mut ratios = Vec::new();
    append(&mut client);
    for _ in 0..ROUNDS {
        let before = append(&mut client);
        let readers: Vec<TcpStream> = (0..20)
            .map(|_| {
                let mut stream = TcpStream::connect(&server.address).expect("a connection");
                let head = format!(
                    "GET /v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
                    server.address, server.token
                );
                stream.write_all(head.as_bytes()).expect("asked");
                stream
            })
            .collect();
        // Until nothing more goes into what lies between: from then on they read nothing.
        for _ in 0..STALLING {
            append(&mut client);
        }
        let stalled = append(&mut client);
        drop(readers);
        // What else changes with time is on both sides of it.
        ratios.push(stalled / before.midpoint(append(&mut client)));
    }
    median(ratios)
}

fn resident_mb(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("its memory");
    line.split_ascii_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).expect("a number") / 1024.0
}
