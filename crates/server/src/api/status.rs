//! Whether all is well: who can work, what waits, when the ledger was last verified, what was refused, and what the doctor says.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use baton_core::Timestamp;
use baton_core::ids::AgentName;
use baton_core::task::{Board, Status, Task};
use baton_ledger::record::Line;
use baton_runtime::engine::Lag;
use baton_runtime::harness::{AgentSpec, Drive};
use baton_runtime::process::Command;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::access::{Needs, Who};
use crate::app::Server;
use crate::asked::{Answer, Asked, ok, words};
use crate::house::Call;
use crate::limits::{CHECKS_KEPT, LEASES_SHOWN_MAX};
use crate::problem::Problem;
use crate::routes::{Gives, Route, Takes, Verb, handler};
use crate::schema::Shape;

use super::heard::{Heard, Worked};
use super::traces::{REPORT, report};

pub const ROUTES: &[Route] = &[
    Route {
        verb: Verb::Get,
        path: "/v1/status",
        name: "getStatus",
        summary: "Whether all is well: agents, what waits, the ledger, what was refused, and what `baton doctor` says.",
        needs: Needs::LookAtAll,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::ServerStatus),
        handler: handler!(status),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/ledger/verify",
        name: "verifyLedger",
        summary: "Verifies the whole ledger, as `baton verify` does. A verdict of fail is an answer, too; `getStatus` tells of the last.",
        needs: Needs::LookAtAll,
        query: &[],
        takes: Takes::Fields(&[]),
        gives: REPORT,
        handler: handler!(verify),
    },
];

/// What a server remembers of what it looked at.
#[derive(Debug)]
pub struct Looks {
    pub started_at: Timestamp,
    /// What the doctor said, and when.
    checks: Mutex<Option<(Instant, Value)>>,
    heard: Mutex<Heard>,
    /// What the verifier said last of the whole ledger.
    verified: Mutex<Option<Value>>,
    /// One at a time has the ledger verified.
    verifying: Semaphore,
}

impl Looks {
    pub fn new(started_at: Timestamp) -> Looks {
        Looks {
            started_at,
            checks: Mutex::default(),
            heard: Mutex::default(),
            verified: Mutex::default(),
            verifying: Semaphore::new(1),
        }
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn verify(asked: Asked) -> Answer {
    let server = asked.server.clone();
    // The permit is kept to the end: whoever comes meanwhile waits, since all of it is read. This is on a task of its own, as is all that is posted, and
    // goes on where whoever asked has gone.
    let _turn = server.looks.verifying.acquire().await;
    let report = report(&asked, words(&["verify"])).await?;
    let at = server.house.engine.now().to_string();
    let events = report["subject"]["events"].clone();
    *lock(&server.looks.verified) = Some(json!({"at": at, "verdict": report["verdict"], "events": events}));
    ok(&report)
}

async fn status(asked: Asked) -> Answer {
    let who = asked.who.clone().ok_or_else(|| Problem::token("a token is needed"))?;
    let object = asked
        .apart(move |server| {
            let engine = &server.house.engine;
            let now = engine.now();
            // Before anybody looks at the board, who brings it up to date by that.
            let lag = engine.lag();
            let looked = engine.look(scheduler);
            let mut scheduler = looked.map_err(|fault| server.house.commands.explain(fault))?;
            let handed = &server.house.scheduling;
            let running = server.house.broker.load(handed.max_concurrent).running;
            scheduler["isDispatching"] = handed.is_dispatching.into();
            scheduler["pollMs"] = u64::try_from(handed.poll.as_millis()).unwrap_or(u64::MAX).into();
            scheduler["running"] = running.values().sum::<usize>().into();
            scheduler["maxConcurrent"] = handed.max_concurrent.into();
            if let Some(last) = handed.wake.last_round() {
                scheduler["lastAt"] = last.to_string().into();
            }
            let mut heard = lock(&server.looks.heard);
            // What does not read takes nothing else away.
            let unread = heard.catch_up(server).err();
            let agents = server.house.broker.agents().iter().map(|(name, spec)| {
                let sessions = running.get(name).copied().unwrap_or(0);
                let mut shown = agent(server, name, spec, sessions, heard.worked(name));
                if let Some(program) = heard.program(name) {
                    shown["program"] = program.into();
                }
                shown
            });
            let agents: Vec<Value> = agents.collect();
            let (refused, counted) = (heard.refused(), heard.counted());
            drop(heard);
            let mut ledger = ledger(server);
            if let Some(Problem { code, title, .. }) = unread {
                ledger["unread"] = format!("{title} ({code})").into();
            }
            Ok(json!({
                "v": 1, "version": env!("CARGO_PKG_VERSION"),
                "startedAt": server.looks.started_at.to_string(), "now": now.to_string(),
                "origin": engine.ground().journal.ledger().origin.as_str(),
                "agents": agents, "scheduler": scheduler, "store": store(server, lag), "ledger": ledger,
                "refused": refused, "counted": counted, "checks": checks(server, who),
            }))
        })
        .await?;
    ok(&object)
}

fn scheduler(board: &Board) -> Value {
    let ready = || board.with_status(Status::Ready);
    let mut held: Vec<(&Task, _)> =
        board.tasks().filter_map(|task| Some((task, task.lease.as_ref()?))).collect();
    held.sort_by_key(|(task, lease)| (lease.ends_at(), task.id.clone()));
    let leases = held.into_iter().take(LEASES_SHOWN_MAX).map(|(task, lease)| {
        json!({
            "taskId": task.id.as_str(), "agent": lease.agent.as_str(), "expiresAt": lease.expires_at.to_string(),
            "heartbeatBy": lease.beat_until.to_string(),
        })
    });
    let mut shown = json!({"ready": ready().count(), "leases": leases.collect::<Vec<Value>>()});
    if let Some(oldest) = ready().map(|task| task.last_transition_at).min() {
        shown["oldestReadyAt"] = oldest.to_string().into();
    }
    shown
}

fn agent(server: &Server, name: &AgentName, spec: &AgentSpec, sessions: usize, worked: Worked) -> Value {
    let mut shown = json!({
        "name": name.as_str(), "harness": spec.harness(), "sessions": sessions, "failures": worked.failures,
    });
    let missing = match &spec.drive {
        Drive::Acp { command } | Drive::Exec { command, .. } | Drive::Mock { command } => {
            shown["command"] = command.join(" ").into();
            let dir = &server.house.engine.ground().workspace;
            let is_found = Command::new(command.clone(), dir, Duration::ZERO).is_found();
            let program = command.first().map_or("", String::as_str);
            (!is_found).then(|| format!("{program} is not found, or may not be run"))
        }
        Drive::Llm { api_key_env, .. } => api_key_env
            .as_ref()
            .filter(|name| !spec.env.contains_key(*name) && std::env::var_os(name).is_none())
            .map(|name| format!("the variable {name} is not set")),
    };
    shown["installed"] = missing.is_none().into();
    if let Some(why) = missing {
        shown["detail"] = why.into();
    }
    if let Some(max) = spec.max_sessions {
        shown["maxSessions"] = max.into();
    }
    if let Some(at) = worked.last_start {
        shown["lastStartAt"] = at.to_string().into();
    }
    if let Some(at) = worked.last_failure {
        shown["lastFailureAt"] = at.to_string().into();
    }
    shown
}

/// How much the ledger takes up, how much room is left, and how far everything is behind what was recorded.
fn store(server: &Server, lag: Lag) -> Value {
    let layout = &server.house.engine.ground().layout;
    let mut shown = json!({"kind": "embedded", "projection": {
        "events": lag.events, "tasks": lag.tasks, "failed": lag.failed,
        "waitingMs": u64::try_from(lag.waited.as_millis()).unwrap_or(u64::MAX),
    }});
    if let Some(lag) = server.house.engine.ground().journal.lag() {
        let durability = lag.durability.as_str();
        shown["journal"] =
            json!({"durability": durability, "unsynced": lag.unsynced, "unsigned": lag.unsigned});
    }
    if let Ok(entries) = layout.events().read_dir() {
        let sizes = entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|found| found.len());
        shown["bytes"] = sizes.sum::<u64>().into();
    }
    if let Ok(stat) = rustix::fs::statvfs(layout.root()) {
        shown["freeBytes"] = stat.f_bavail.saturating_mul(stat.f_frsize).into();
    }
    shown
}

fn ledger(server: &Server) -> Value {
    let journal = &server.house.engine.ground().journal;
    let size = journal.size();
    let mut shown = json!({"size": size, "key": journal.ledger().key.to_text().as_str()});
    // What does not read is for the verifier to say.
    if let Ok(tree) = journal.tree() {
        shown["root"] = tree.root().to_string().into();
    }
    let last = journal.read(size, 1).unwrap_or_default();
    if let Some(line) = last.first().and_then(|stored| Line::parse(stored.text.as_bytes()).ok()) {
        shown["head"] = line.hash.to_string().into();
    }
    if let Some(verified) = lock(&server.looks.verified).clone() {
        shown["lastVerified"] = verified;
    }
    shown
}

/// What the doctor says. Looking takes a while, so that what it said a moment ago will do.
fn checks(server: &Server, who: Who) -> Value {
    let mut kept = lock(&server.looks.checks);
    if let Some((at, checks)) = &*kept
        && at.elapsed() < CHECKS_KEPT
    {
        return checks.clone();
    }
    let ran = server.house.commands.run(Call { words: words(&["doctor"]), input: Vec::new(), who });
    let said = serde_json::from_slice::<Value>(&ran.out).ok();
    let checks = said.and_then(|mut said| said.get_mut("checks").map(Value::take)).unwrap_or_else(|| {
        let why = Problem::of_command(ran.exit, &ran.err);
        json!([{"check": "doctor", "status": "fail", "detail": why.title, "code": why.code}])
    });
    *kept = Some((Instant::now(), checks.clone()));
    checks
}
