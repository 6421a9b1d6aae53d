//! Tasks: whole lifecycles against a raw loop, and how little they mind how many others there are.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use baton_core::Timestamp;
use baton_core::task::decide::New;
use baton_core::task::{Status, Task};
use baton_runtime::clock::{Clock, SystemClock};
use baton_runtime::{Engine, Ground, Settings};
use baton_store::{Layout, Options, Workspace};
use serde_json::json;
use tempfile::TempDir;

use crate::append::raw_loop;
use crate::fixture::temp_dir;
use crate::{Figure, Goal, median};

const FEW: usize = 100;
const MANY: usize = 10_000;
const CALLERS: usize = 8;
/// Lifecycles of each caller in one round.
const PER_CALLER: usize = 30;
const ROUNDS: usize = 5;
/// About what a task's events have.
const LINE_BYTES: usize = 800;

/// The machine's clock, some milliseconds ahead.
#[derive(Debug, Default)]
struct Ahead(AtomicI64);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus_ms(self.0.load(Ordering::Relaxed))
    }

    fn seed(&self) -> [u8; 10] {
        SystemClock.seed()
    }
}

/// A data directory with some tasks in it.
struct Board {
    dir: TempDir,
    workspace: Workspace,
    engine: Engine,
    clock: Arc<Ahead>,
}

impl Board {
    fn with(count: usize) -> Board {
        let dir = temp_dir();
        let layout = Layout::new(dir.path().join("data"));
        let wait = Duration::from_secs(1);
        let workspace = Workspace::create(&layout, &dir.path().join("state"), Options::default(), wait)
            .expect("a ledger");
        let clock = Arc::new(Ahead::default());
        let board = Board::open(dir, workspace, clock);
        // Made by many at once, so that making them is not what is measured.
        thread::scope(|scope| {
            for caller in 0..CALLERS {
                let engine = &board.engine;
                scope.spawn(move || (caller..count).step_by(CALLERS).for_each(|n| drop(create(engine, n))));
            }
        });
        board
    }

    fn open(dir: TempDir, workspace: Workspace, clock: Arc<Ahead>) -> Board {
        let ground = Ground::of(&workspace, dir.path().to_owned(), clock.clone()).expect("a ground");
        let engine = Engine::open(ground, Settings::default()).expect("an engine");
        Board { dir, workspace, engine, clock }
    }

    fn close(self) -> TempDir {
        self.engine.close().expect("closed");
        self.workspace.close().expect("closed");
        self.dir
    }
}

/// A data directory with ten thousand tasks, after a clean end.
pub(crate) fn many() -> TempDir {
    Board::with(10_000).close()
}

fn create(engine: &Engine, n: usize) -> Task {
    let mut new = New::titled(format!("task number {n}"));
    new.status = Status::Ready;
    new.body = "What is to be done, in a few words.\n".repeat(4);
    new.metadata.insert("reviewRequired".into(), false.into());
    engine.create(&new).expect("created").0
}

/// A task made, claimed and reported done, each step durable.
fn lifecycle(engine: &Engine, n: usize) {
    let task = create(engine, n);
    let agent = "bench-agent".parse().expect("a name");
    engine.claim(&task.id, &agent, None, None).expect("claimed");
    let message = json!({
        "protocol": "aof", "version": 1, "type": "completion.report", "taskId": task.id.as_str(), "fromAgent": "bench-agent",
        "toAgent": "dispatcher", "sentAt": "2026-02-09T21:00:00.000Z",
        "payload": {"outcome": "done", "summaryRef": "outputs/summary.md", "deliverables": ["src/a.rs"],
                    "tests": {"total": 3, "passed": 3, "failed": 0}, "blockers": [], "notes": "All done."},
    });
    let sent = engine.send(message.to_string().as_bytes()).expect("sent");
    assert!(sent.rejected.is_none(), "{sent:?}");
}

fn lifecycles(engine: &Engine) -> f64 {
    let start = Instant::now();
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            scope.spawn(move || (0..PER_CALLER).for_each(|n| lifecycle(engine, caller * PER_CALLER + n)));
        }
    });
    (CALLERS * PER_CALLER) as f64 / start.elapsed().as_secs_f64()
}

pub(crate) fn run() -> Vec<Figure> {
    let (few, many) = (Board::with(FEW), Board::with(MANY));
    let (mut raw, mut with_few, mut with_many) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        raw.push(raw_loop(LINE_BYTES));
        with_few.push(lifecycles(&few.engine));
        with_many.push(lifecycles(&many.engine));
    }
    let (raw, with_few, with_many) = (median(raw), median(with_few), median(with_many));
    let poll = poll_ratio(&few, &many);
    let (few, many) = (few.close(), many.close());
    eprintln!(
        "lifecycles/s: {with_few:.0} with {FEW} tasks, {with_many:.0} with {MANY}; raw appends/s {raw:.0}"
    );
    let mut figures = vec![
        Figure { name: "tasks.lifecycles_vs_raw", value: with_few / raw, goal: Goal::AtLeast(0.05) },
        Figure { name: "tasks.lifecycles_vs_raw_stretch_0.1", value: with_few / raw, goal: Goal::None },
        Figure {
            name: "tasks.lifecycles_100_vs_10000",
            value: with_few / with_many,
            goal: Goal::AtMost(1.3),
        },
        Figure { name: "tasks.poll_10_due_of_10000_vs_100", value: poll, goal: Goal::AtMost(3.0) },
    ];
    figures.extend(commands(few.path(), many.path()));
    figures
}

/// Lifecycles for a while, to be looked at with a profiler.
pub(crate) fn profile() {
    let board = Board::with(std::env::var("TASKS").ok().and_then(|n| n.parse().ok()).unwrap_or(FEW));
    for _ in 0..6 {
        eprintln!("{:.0} lifecycles/s", lifecycles(&board.engine));
    }
    let dir = board.close();
    if std::env::var_os("KEEP").is_some() {
        eprintln!("kept in {}", dir.keep().display());
    }
}

/// How much longer a round of the scheduler takes with many tasks, where as many need something.
fn poll_ratio(few: &Board, many: &Board) -> f64 {
    let measure = |board: &Board| {
        let times = (0..5).map(|_| {
            for n in 0..10 {
                let task = create(&board.engine, n);
                board
                    .engine
                    .claim(&task.id, &"bench-agent".parse().expect("a name"), None, None)
                    .expect("claimed");
            }
            board.clock.0.fetch_add(20 * 60_000, Ordering::Relaxed);
            let start = Instant::now();
            let ticked = board.engine.tick().expect("a round");
            let time = start.elapsed().as_secs_f64();
            assert_eq!(ticked.acted.len(), 10, "a round does work for those that need it");
            time
        });
        median(times.collect())
    };
    measure(many) / measure(few)
}

/// The commands as a person runs them, each a process of its own.
fn commands(few: &Path, many: &Path) -> Vec<Figure> {
    let binary = binary();
    let time = |dir: &Path, arguments: &[&str]| {
        let start = Instant::now();
        let output = Command::new(&binary)
            .args(arguments)
            .env("BATON_DATA_DIR", dir.join("data"))
            .env("BATON_STATE_DIR", dir.join("state"))
            .output()
            .expect("baton runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        start.elapsed().as_secs_f64()
    };
    let id = |dir: &Path| {
        let name = std::fs::read_dir(dir.join("data/tasks/ready")).expect("tasks").find_map(|entry| {
            let name = entry.expect("an entry").file_name().into_string().ok()?;
            name.strip_suffix(".md").map(str::to_owned)
        });
        name.expect("a task")
    };
    let (id_few, id_many) = (id(few), id(many));
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..15 {
        times[0].push(time(few, &["task", "show", &id_few, "--json"]));
        times[1].push(time(many, &["task", "show", &id_many, "--json"]));
        times[2].push(time(few, &["task", "ls", "--json"]));
        times[3].push(time(many, &["task", "ls", "--json"]));
    }
    let [show_few, show_many, list_few, list_many] = times.map(median);
    eprintln!(
        "ms: task show {:.1} and {:.1}, task ls {:.1} and {:.1}",
        show_few * 1e3,
        show_many * 1e3,
        list_few * 1e3,
        list_many * 1e3
    );
    vec![
        Figure { name: "tasks.show_10000_vs_100", value: show_many / show_few, goal: Goal::AtMost(1.5) },
        Figure { name: "tasks.show_10000_ms", value: show_many * 1e3, goal: Goal::AtMost(100.0) },
        Figure { name: "tasks.ls_10000_vs_100", value: list_many / list_few, goal: Goal::AtMost(20.0) },
    ]
}

/// The command line that was built with this bench.
pub(crate) fn binary() -> PathBuf {
    let path = std::env::current_exe().expect("a path").with_file_name("baton");
    assert!(path.exists(), "build it first: cargo build --release -p baton-cli");
    path
}
