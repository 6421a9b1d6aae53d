//! Every death is answered within a second: one real process for each way to die and each moment to do it.
//!
//! Cells that make no sense, and why:
//!
//! | cell | why not |
//! | --- | --- |
//! | exec × handshake, idle, hook | its process lives in a turn and at no other time |
//! | exec × permission | it has no way to ask |
//! | exec × exit 0 | the good end of a turn, unless its form of output has a word for that, as the one here has |
//! | spawn failure × any moment | there is no process yet |
//! | silence × idle, hook, permission | it is not its turn to speak |
//! | closed output × exec | is silence: the command may be at work until it ends |
//! | ignores a request × all but a stop and silence | nobody asks the dead |

use std::sync::Mutex;
use std::time::{Duration, Instant};

use baton_core::session::{Cause, EndReason, Rules, SessionEndedData, TerminatedBy, ToolsBy};
use baton_runtime::session::{Ask, Deadlines};

use crate::doomed::{Doomed, GRACE, INACTIVITY, PROMPTLY, spawn};
use crate::session::{Live, SOON, patient};

/// Cells at the same time: they wait more than they work, but a second is not long.
const AT_ONCE: usize = 4;

/// How a process comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Died {
    Code(i32),
    Signal(i32, &'static str),
}

/// Runs cells beside each other, and says which of them failed.
fn each<T: Copy + Send + Sync>(cells: &[T], run: impl Fn(T) + Sync) {
    let left = Mutex::new(cells.iter());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().next().copied();
                    match next {
                        Some(cell) => run(cell),
                        None => return,
                    }
                }
            });
        }
    });
}

/// What was under way, as the message has it.
fn open(at: &str) -> &'static str {
    match at {
        "handshake" => " before it took any input",
        "turn" => " in a turn",
        "tool" | "terminal" => " while a tool ran",
        "permission" => " while it waited for a permission",
        "hook" => " while a hook ran",
        _ => "",
    }
}

/// The whole end of an agent that failed.
fn check_error(data: &SessionEndedData, name: &str, died: Died, cause: Cause, told: &str, at: &str) {
    assert_eq!(
        (data.reason, data.terminated_by),
        (EndReason::Error, TerminatedBy::Agent),
        "{name}: {data:?}"
    );
    let (code, signal, what) = match died {
        Died::Code(code) => (Some(code), None, format!("the agent exited with code {code}")),
        Died::Signal(number, word) => (None, Some((number, word)), format!("the agent was ended by {word}")),
    };
    assert_eq!(data.exit_code, code, "{name}");
    let found = data.signal.as_ref().map(|signal| (signal.number, signal.name.as_str()));
    assert_eq!(found, signal, "{name}");
    assert_eq!(data.cause, Some(cause), "{name}");
    assert_eq!(data.message.as_deref(), Some(&*format!("{told}{what}{}", open(at))), "{name}");
    assert!(data.duration_ms.is_some() && data.max_rss_bytes.is_some() && data.cpu_ms.is_some(), "{name}");
    let last = matches!(at, "tool" | "terminal" | "hook" | "permission");
    assert_eq!(data.last_tool.is_some(), last, "{name}: {:?}", data.last_tool);
}

/// A cell: who, when, how.
type Cell = (&'static str, &'static str, &'static str);

fn check_death((harness, at, how): Cell) {
    let name = format!("{harness} {at} {how}");
    let doomed = Doomed::new(harness, at, how);
    let (data, view, took) = doomed.end();
    assert!(took < PROMPTLY, "{name}: {took:?}");
    let crash = |died| check_error(&data, &name, died, Cause::Crash, "", at);
    match how {
        "zero" if at == "idle" => {
            assert_eq!(
                (data.reason, data.terminated_by),
                (EndReason::Completed, TerminatedBy::Agent),
                "{name}"
            );
            assert_eq!((&data.message, data.exit_code, &data.cause), (&None, None, &None), "{name}");
        }
        "zero" => crash(Died::Code(0)),
        "three" | "garbage" | "flood" => crash(Died::Code(3)),
        "orphan" => crash(Died::Code(4)),
        "kill" => crash(Died::Signal(9, "SIGKILL")),
        "segv" => crash(Died::Signal(11, "SIGSEGV")),
        "closed" => {
            let told = "the agent closed its output; ";
            check_error(&data, &name, Died::Signal(15, "SIGTERM"), Cause::Protocol, told, at);
        }
        "long" if harness == "acp" => {
            let told = "the agent sent a line of 100000000 bytes, which is no message; ";
            check_error(&data, &name, Died::Signal(15, "SIGTERM"), Cause::Protocol, told, at);
        }
        _ => crash(Died::Code(3)),
    }
    let stderr = data.stderr.as_ref();
    match how {
        "three" => {
            let stderr = stderr.unwrap();
            assert_eq!(stderr.head.as_deref(), Some("first line\nlast line"), "{name}");
            assert_eq!(
                (&stderr.tail, stderr.truncated, stderr.total_lines),
                (&None, false, Some(2)),
                "{name}"
            );
        }
        "flood" => {
            let stderr = stderr.unwrap();
            let line = format!("{:0>99}", 7);
            let fifty = vec![line.as_str(); 50].join("\n");
            assert_eq!(
                (stderr.head.as_deref(), stderr.tail.as_deref()),
                (Some(&*fifty), Some(&*fifty)),
                "{name}"
            );
            assert_eq!((stderr.truncated, stderr.total_lines), (true, Some(2_000_000)), "{name}");
        }
        _ => assert_eq!(stderr, None, "{name}: nothing was written, and nothing is told"),
    }
    doomed.check(&data, &view);
}

const MOMENTS: [(&str, &str); 8] = [
    ("acp", "handshake"),
    ("acp", "idle"),
    ("acp", "turn"),
    ("acp", "tool"),
    ("acp", "hook"),
    ("acp", "permission"),
    ("exec", "turn"),
    ("exec", "tool"),
];

fn cells(ways: &[&'static str]) -> Vec<Cell> {
    MOMENTS.iter().flat_map(|&(harness, at)| ways.iter().map(move |&how| (harness, at, how))).collect()
}

#[test]
fn every_death_is_answered_within_a_second_at_every_moment() {
    let mut all = cells(&["zero", "three", "kill", "segv", "garbage", "orphan", "closed"]);
    all.retain(|&(harness, _, how)| (harness, how) != ("exec", "closed"));
    assert_eq!(all.len(), 8 * 7 - 2);
    each(&all, check_death);
}

#[test]
fn floods_and_endless_lines_delay_no_end() {
    // One after the other: each keeps a processor busy.
    cells(&["flood", "long"]).into_iter().for_each(check_death);
}

#[test]
fn programs_that_baton_runs_for_an_agent_end_with_it() {
    each(&["zero", "three", "kill", "orphan", "closed"], |how| check_death(("acp", "terminal", how)));
}

#[test]
fn silence_ends_within_a_second_of_its_deadline_also_for_the_deaf() {
    let mut all = cells(&["silent", "deaf"]);
    all.retain(|&(_, at, _)| matches!(at, "handshake" | "turn" | "tool"));
    all.extend([("exec", "turn", "closed"), ("exec", "tool", "closed")]);
    each(&all, |(harness, at, how)| {
        let name = format!("{harness} {at} {how}");
        let doomed = Doomed::new(harness, at, how);
        let (data, view, took) = doomed.end();
        assert!(took < INACTIVITY + PROMPTLY, "{name}: {took:?}");
        let died = if how == "deaf" { Died::Signal(9, "SIGKILL") } else { Died::Signal(15, "SIGTERM") };
        let what = if at == "handshake" { "the handshake" } else { "the turn" };
        let told = format!("the agent was silent in {what} for too long; ");
        check_error(&data, &name, died, Cause::Timeout, &told, at);
        doomed.check(&data, &view);
    });
}

#[test]
fn one_that_ignores_requests_is_stopped_within_its_grace() {
    each(&cells(&["stubborn"]), |(harness, at, how)| {
        let name = format!("{harness} {at} {how}");
        let doomed = Doomed::new(harness, at, how);
        let (data, view, took) = doomed.end();
        assert!(took < GRACE + PROMPTLY, "{name}: {took:?}");
        assert_eq!(
            (data.reason, data.terminated_by),
            (EndReason::Terminated, TerminatedBy::Daemon),
            "{name}"
        );
        assert_eq!((&data.message, &data.signal, &data.cause), (&None, &None, &None), "{name}");
        doomed.check(&data, &view);
    });
}

#[test]
fn what_cannot_be_started_is_told_at_once_and_why() {
    let dir = tempfile::tempdir().unwrap();
    let (file, folder) = (dir.path().join("file"), dir.path().join("folder"));
    std::fs::write(&file, "no program\n").unwrap();
    std::fs::create_dir(&folder).unwrap();
    let (file, folder) = (file.display().to_string(), folder.display().to_string());
    for harness in ["acp", "exec"] {
        for (word, why) in [
            ("no-such-agent", "not found"),
            ("./no-such-agent", "not found"),
            (&*file, "not executable"),
            (&*folder, "not executable"),
            ("", "not found"),
        ] {
            let name = format!("{harness} {word}");
            let began = Instant::now();
            let live = Live::open(Rules::new(ToolsBy::Agent, Vec::new()), patient(), |start| {
                start.harness = harness;
                start.spawn = spawn(start, &[word], &[]);
            });
            let (data, view) = live.end();
            assert!(began.elapsed() < PROMPTLY, "{name}: {:?}", began.elapsed());
            eprintln!("{harness} spawn {why}: {}", data.message.as_deref().unwrap());
            assert_eq!((data.reason, data.terminated_by), (EndReason::Error, TerminatedBy::Daemon), "{name}");
            assert_eq!(
                (data.cause, data.exit_code, &data.signal),
                (Some(Cause::Spawn), None, &None),
                "{name}"
            );
            let message = format!("the agent could not be started: {word}: {why}");
            assert_eq!(data.message.as_deref(), Some(&*message), "{name}");
            assert_eq!(view.state.as_str(), "stopped", "{name}");
            assert_eq!(live.bench.events("session.ended").len(), 1, "{name}");
        }
    }
}

#[test]
fn one_that_never_pauses_puts_no_deadline_off() {
    // It talks without an end, and does not heed that it should not.
    let script = r#"
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%s}}\n' "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  ok() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) ok '{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}' ;;
    *'"session/new"'*) ok '{"sessionId":"s1"}' ;;
    *) trap '' TERM; yes "$(update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"and "}}')" ;;
  esac
done"#;
    let wait = Duration::from_millis(300);
    let deadlines = Deadlines { handshake: SOON, inactivity: SOON, cancel: wait };
    let live = Live::open(Rules::new(ToolsBy::Agent, Vec::new()), deadlines, |start| {
        start.spawn = spawn(start, &["sh", "-c", script], &[]);
    });
    live.until_state(baton_core::session::StateKind::Ready);
    live.prompt("talk");
    live.until("text", |_, value| value["type"] == "text_delta");
    let began = Instant::now();
    live.handle.ask(Ask::Cancel).unwrap();
    let (data, _) = live.end();
    assert!(began.elapsed() < wait + PROMPTLY, "{:?}", began.elapsed());
    assert_eq!((data.reason, data.cause), (EndReason::Error, Some(Cause::Timeout)), "{data:?}");
    assert!(data.message.unwrap().starts_with("the agent did not end the turn that was cancelled"));
}

#[test]
fn noise_is_no_sign_of_life() {
    let script = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  ok() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) ok '{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}' ;;
    *'"session/new"'*) ok '{"sessionId":"s1"}' ;;
    *) while :; do echo 'still compiling'; sleep 0.05; done ;;
  esac
done"#;
    let deadlines = Deadlines { handshake: SOON, inactivity: INACTIVITY, cancel: SOON };
    let live = Live::open(Rules::new(ToolsBy::Agent, Vec::new()), deadlines, |start| {
        start.spawn = spawn(start, &["sh", "-c", script], &[]);
    });
    live.until_state(baton_core::session::StateKind::Ready);
    let began = Instant::now();
    live.prompt("work");
    let (data, _) = live.end();
    assert!(began.elapsed() < INACTIVITY + PROMPTLY, "{:?}", began.elapsed());
    assert_eq!((data.reason, data.cause), (EndReason::Error, Some(Cause::Timeout)), "{data:?}");
    let kept = live.transcript();
    assert!(kept.iter().any(|piece| piece["raw"] == "still compiling"), "it is kept all the same: {kept:?}");
}
