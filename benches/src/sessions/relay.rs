//! What Baton adds to a turn: the same agent driven by lines over pipes, and by a session.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use baton_core::event::Durability;
use baton_core::session::StateKind;
use serde_json::{Value, json};

use super::live::{Live, Place, is_state};
use crate::{Figure, Goal, median};

const ROUNDS: usize = 7;
const TURNS: usize = 400;

/// The agent and nothing between.
struct Direct {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Direct {
    fn start(words: &[String]) -> Direct {
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the agent starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut direct = Direct { child, input, output, asked: 0 };
        direct.ask("initialize", &json!({"protocolVersion": 1}));
        direct.ask("session/new", &json!({"cwd": "/", "mcpServers": []}));
        direct
    }

    /// Asks and reads lines until the answer.
    fn ask(&mut self, method: &str, params: &Value) {
        self.asked += 1;
        let id = self.asked;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let input = self.input.as_mut().expect("its input");
        input.write_all(format!("{request}\n").as_bytes()).expect("it reads");
        let mut line = String::new();
        loop {
            line.clear();
            self.output.read_line(&mut line).expect("it answers");
            let message: Value = serde_json::from_str(&line).expect("a message");
            if message["id"] == id {
                return;
            }
        }
    }

    fn end(mut self) {
        self.input = None;
        self.child.wait().expect("it ends");
    }
}

pub(super) fn run() -> Vec<Figure> {
    let words = [agent()];
    let mut direct = Direct::start(&words);
    let (unsynced, durable) = (Place::new(Durability::None), Place::new(Durability::Commit));
    let (mut fast, mut safe) = (unsynced.session(&words), durable.session(&words));
    let mut times: [Vec<f64>; 3] = Default::default();
    let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "go on"}]});
    for _ in 0..ROUNDS {
        times[0].push(middle(|| direct.ask("session/prompt", &params)));
        times[1].push(middle(|| turn(&mut fast)));
        times[2].push(middle(|| turn(&mut safe)));
    }
    direct.end();
    [fast, safe].iter().for_each(Live::stop);
    unsynced.close();
    durable.close();
    let [direct, fast, safe] = times.map(median);
    eprintln!(
        "a turn, p50: {:.3} ms directly, {:.3} ms through Baton without sync, {:.3} ms with",
        direct * 1e3,
        fast * 1e3,
        safe * 1e3
    );
    vec![
        Figure { name: "sessions.relay_adds_ms", value: (fast - direct) * 1e3, goal: Goal::AtMost(0.3) },
        Figure { name: "sessions.relay_adds_ms_durable", value: (safe - direct) * 1e3, goal: Goal::None },
    ]
}

/// The middle of the times of several turns.
fn middle(mut turn: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        turn();
        start.elapsed().as_secs_f64()
    };
    median((0..TURNS).map(time).collect())
}

/// From the prompt until the session is ready for the next one.
fn turn(live: &mut Live) {
    live.prompt("go on");
    live.until(|item| is_state(item, StateKind::Ready));
}

/// The agent that was built with this bench.
fn agent() -> String {
    let path = std::env::current_exe().expect("a path").with_file_name("echo_acp");
    assert!(path.exists(), "build it first: cargo build --release -p baton-testkit --bin echo_acp");
    path.display().to_string()
}
