//! Traces, their proofs and bundles, and the artifacts that they cite.

use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use baton_core::ids::TaskId;
use baton_core::limits::TITLE_CHARS_MAX;
use baton_core::{Digest, TraceId};
use baton_ledger::hash::sha256;
use baton_ledger::record::Line;
use baton_store::{ArtifactStore as _, clock};
use serde_json::{Value, json};

use crate::access::Needs;
use crate::app::Server;
use crate::asked::{Answer, Asked, json as answer, ok, shown, words};
use crate::field::{Field, Kind, may, needed};
use crate::limits::{PAGE_BYTES_MAX, PAGE_DEFAULT};
use crate::problem::Problem;
use crate::routes::{Gives, Route, Takes, Verb, handler};
use crate::schema::Shape;
use crate::stream::tail::read_within;

use super::tasks::LIMIT;

const FROM: Field =
    may("from", Kind::Number(1, u64::MAX >> 11), "The first event of the page, by its number in the trace.");
pub(super) const REPORT: Gives = Gives::Json(StatusCode::OK, Shape::Report);

pub const ROUTES: &[Route] = &[
    Route {
        verb: Verb::Get,
        path: "/v1/traces",
        name: "listTraces",
        summary: "Every trace, in the order of their first events.",
        needs: Needs::LookAtAll,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Traces),
        handler: handler!(list),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/traces",
        name: "openTrace",
        summary: "Opens a trace.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Fields(&[may("title", Kind::Text(TITLE_CHARS_MAX), "What it is about.")]),
        gives: Gives::Json(StatusCode::CREATED, Shape::TraceOpened),
        handler: handler!(open),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/traces/{id}",
        name: "getTrace",
        summary: "The events of a trace, page by page.",
        needs: Needs::LookAtAll,
        query: &[FROM, LIMIT],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Trace),
        handler: handler!(show),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/tasks/{id}/trace",
        name: "getTaskTrace",
        summary: "The events of a task's trace, page by page.",
        needs: Needs::Look,
        query: &[FROM, LIMIT],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Trace),
        handler: handler!(of_task),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/tasks/{id}/runs",
        name: "getTaskRuns",
        summary: "Every attempt at a task: who, when, and how it ended.",
        needs: Needs::Look,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Runs),
        handler: handler!(runs),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/traces/{id}/events",
        name: "appendEvents",
        summary: "Appends one event, or several as one decision: {type, payload, artifacts?, seen?}.",
        needs: Needs::Operate,
        query: &[
            needed("agent", Kind::Agent, "In whose name."),
            may(
                "role",
                Kind::Word(&["planner", "executor", "critic", "auditor", "operator"]),
                "In which role.",
            ),
        ],
        takes: Takes::Json(Shape::Offered),
        gives: Gives::Json(StatusCode::CREATED, Shape::Appended),
        handler: handler!(append),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/traces/{id}/verify",
        name: "verifyTrace",
        summary: "Verifies a trace of this ledger. A verdict of fail is an answer, too.",
        needs: Needs::LookAtAll,
        query: &[],
        takes: Takes::Fields(&[]),
        gives: REPORT,
        handler: handler!(verify),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/verify",
        name: "verifyBundle",
        summary: "Verifies a bundle, of whatever ledger.",
        needs: Needs::LookAtAll,
        query: &[],
        takes: Takes::Bytes,
        gives: REPORT,
        handler: handler!(verify_bundle),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/traces/{id}/bundle",
        name: "exportTrace",
        summary: "A trace with everything that it takes to verify it offline, or its attestations.",
        needs: Needs::LookAtAll,
        query: &[
            may("artifacts", Kind::Flag, "Whether artifacts come along; true, if nothing is said."),
            may(
                "format",
                Kind::Word(&["bundle", "in-toto"]),
                "What it is: a bundle, or an attestation in each line; a bundle, if nothing is said.",
            ),
        ],
        takes: Takes::Nothing,
        gives: Gives::Bytes,
        handler: handler!(export),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/events/{id}/proof",
        name: "proveEvent",
        summary: "A proof that an event is in the ledger, of a few lines.",
        needs: Needs::LookAtAll,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Proof),
        handler: handler!(prove),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/checkpoint",
        name: "getCheckpoint",
        summary: "The ledger's last word about itself, signed.",
        needs: Needs::LookAtAll,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Checkpoint),
        handler: handler!(checkpoint),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/artifacts/{sha256}",
        name: "getArtifact",
        summary: "The bytes that have this digest.",
        needs: Needs::LookAtAll,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Bytes,
        handler: handler!(artifact),
    },
    Route {
        verb: Verb::Put,
        path: "/v1/artifacts/{sha256}",
        name: "putArtifact",
        summary: "Stores bytes under their digest.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Bytes,
        gives: Gives::Json(StatusCode::OK, Shape::Artifact),
        handler: handler!(put_artifact),
    },
];

/// The trace that the path names.
pub(super) fn id(asked: &Asked) -> Result<TraceId, Problem> {
    let text = asked.part("id");
    text.parse().map_err(|_| no_trace(&shown(text)))
}

fn no_trace(text: &str) -> Problem {
    Problem::of_exit(3, "L014", format!("no trace {text}")).hint("baton trace ls")
}

async fn list(asked: Asked) -> Answer {
    ok(&asked.command(words(&["trace", "ls"]), Vec::new()).await?)
}

async fn open(asked: Asked) -> Answer {
    let mut words = words(&["trace", "new"]);
    words.extend(asked.fields.text("title").map(|title| format!("--title={title}")));
    Ok(answer(StatusCode::CREATED, &asked.command(words, Vec::new()).await?))
}

async fn show(asked: Asked) -> Answer {
    let id = id(&asked)?;
    page(asked, move |_| Ok(id)).await
}

async fn of_task(asked: Asked) -> Answer {
    let task = asked.task()?;
    page(asked, move |server| trace_of(server, &task)).await
}

fn trace_of(server: &Server, task: &TaskId) -> Result<TraceId, Problem> {
    let found = server.house.engine.task(task).map_err(|fault| server.house.commands.explain(fault))?;
    Ok(found.0.trace)
}

/// Records of a trace from a number on.
async fn page(
    asked: Asked,
    trace: impl FnOnce(&Server) -> Result<TraceId, Problem> + Send + 'static,
) -> Answer {
    let from = asked.query.number("from").unwrap_or(1);
    let limit = usize::try_from(asked.query.number("limit").unwrap_or(PAGE_DEFAULT)).unwrap_or(usize::MAX);
    let object = asked
        .apart(move |server| {
            let (trace, journal) = (trace(server)?, &server.house.engine.ground().journal);
            let summary = journal.trace(trace).ok_or_else(|| no_trace(&trace.to_string()))?;
            let read = |have, count| journal.read_trace(trace, from + have, count);
            let lines = read_within((limit, PAGE_BYTES_MAX), read);
            let lines = lines.map_err(|error| server.house.commands.explain(error.into()))?;
            let last = from + lines.len() as u64 - u64::from(!lines.is_empty());
            let events: Result<Vec<Value>, _> =
                lines.iter().map(|line| serde_json::from_str::<Value>(&line.text)).collect();
            let events =
                events.map_err(|error| Problem::unexpected(format!("a record does not read: {error}")))?;
            let mut object = json!({
                "v": 1, "trace": trace.to_string(), "closed": summary.is_closed, "size": summary.seq,
                "events": events,
            });
            if !lines.is_empty() && last < summary.seq {
                object["next"] = (last + 1).into();
            }
            Ok(object)
        })
        .await?;
    ok(&object)
}

/// The attempts at a task, by the events of its trace.
async fn runs(asked: Asked) -> Answer {
    let task = asked.task()?;
    let object = asked
        .apart(move |server| {
            let trace = trace_of(server, &task)?;
            let journal = &server.house.engine.ground().journal;
            let (mut runs, mut seq): (Vec<Value>, u64) = (Vec::new(), 1);
            loop {
                let lines = journal.read_trace(trace, seq, 256);
                let lines = lines.map_err(|error| server.house.commands.explain(error.into()))?;
                for stored in &lines {
                    let Ok(line) = Line::parse(stored.text.as_bytes()) else { continue };
                    seq = line.seq + 1;
                    note_run(&mut runs, &line);
                }
                if lines.len() < 256 {
                    return Ok(json!({"v": 1, "taskId": task.as_str(), "runs": runs}));
                }
            }
        })
        .await?;
    ok(&object)
}

/// Adds what an event says about the attempt that it belongs to.
fn note_run(runs: &mut Vec<Value>, line: &Line<'_>) {
    if matches!(line.event_type, "lease.released" | "lease.expired") {
        note_end(runs, line);
    }
    let Some(run) = line.run else { return };
    if runs.last().is_none_or(|last| last["id"] != run) {
        runs.push(json!({"id": run, "startedAt": line.at.to_string(), "events": 0}));
    }
    let Some(last) = runs.last_mut() else { return };
    last["events"] = (last["events"].as_u64().unwrap_or(0) + 1).into();
    last["lastAt"] = line.at.to_string().into();
    if let Some(fence) = line.fence {
        last["fence"] = fence.into();
    }
    if let Some(session) = line.session {
        last["session"] = session.into();
    }
    if line.agent != baton_core::roles::OWN_AGENT && last.get("agent").is_none() {
        last["agent"] = line.agent.into();
    }
}

/// How an attempt ended. The event may come when the task is nobody's any more, so that only its payload says whose it was.
fn note_end(runs: &mut [Value], line: &Line<'_>) {
    let Ok(baton_core::Payload::Other { fields, .. }) = line.to_payload() else { return };
    let run = fields.get("runId").and_then(Value::as_str).or(line.run);
    if let Some(found) = runs.iter_mut().rev().find(|known| run.is_some_and(|run| known["id"] == run)) {
        found["endedAt"] = line.at.to_string().into();
        found["ended"] = json!({"by": line.event_type});
        fields.into_iter().for_each(|(name, value)| found["ended"][name] = value);
    }
}

async fn append(asked: Asked) -> Answer {
    let id = id(&asked)?.to_string();
    let mut words = words(&["trace", "append", &id, "-"]);
    words.extend(asked.query.text("agent").map(|agent| format!("--agent={agent}")));
    words.extend(asked.query.text("role").map(|role| format!("--role={role}")));
    let body = asked.body.to_vec();
    Ok(answer(StatusCode::CREATED, &asked.command(words, body).await?))
}

/// What a verifier prints is an answer, whatever the verdict.
pub(super) async fn report(asked: &Asked, words: Vec<String>) -> Result<Value, Problem> {
    let ran = asked.ran(words, Vec::new()).await?;
    match serde_json::from_slice::<Value>(&ran.out) {
        Ok(report) if matches!(ran.exit, 0 | 7 | 8) => Ok(report),
        _ => Err(Problem::of_command(ran.exit, &ran.err)),
    }
}

async fn verify(asked: Asked) -> Answer {
    let id = id(&asked)?.to_string();
    ok(&report(&asked, words(&["verify", "--", &id])).await?)
}

async fn verify_bundle(asked: Asked) -> Answer {
    let bytes = asked.body.clone();
    let file = asked.apart(move |_| Temporary::write(&bytes)).await?;
    ok(&report(&asked, words(&["verify", "--", &file.shown()])).await?)
}

async fn export(asked: Asked) -> Answer {
    let id = id(&asked)?.to_string();
    let file = asked.apart(move |_| Temporary::new()).await?;
    let mut words = words(&["trace", "export", &id, "-o", &file.shown()]);
    if asked.query.get("artifacts").is_some() && !asked.query.is_set("artifacts") {
        words.push("--no-artifacts".to_owned());
    }
    let is_attested = asked.query.text("format") == Some("in-toto");
    if is_attested {
        words.push("--format=in-toto".to_owned());
    }
    let ran = asked.ran(words, Vec::new()).await?;
    if ran.exit != 0 {
        return Err(Problem::of_command(ran.exit, &ran.err));
    }
    let opened = asked.apart(move |_| file.open()).await?;
    let kind = if is_attested { "intoto.jsonl" } else { "bundle" };
    Ok(stream(opened, &format!("{id}.{kind}")))
}

async fn prove(asked: Asked) -> Answer {
    let id = asked.part("id").to_owned();
    if id.parse::<baton_core::EventId>().is_err() {
        return Err(Problem::of_exit(3, "L015", format!("no event {}", shown(&id))).hint("baton events"));
    }
    ok(&asked.command(words(&["trace", "prove", "--", &id]), Vec::new()).await?)
}

async fn checkpoint(asked: Asked) -> Answer {
    ok(&asked.command(words(&["trace", "checkpoint"]), Vec::new()).await?)
}

fn digest(asked: &Asked) -> Result<Digest, Problem> {
    let text = asked.part("sha256");
    text.parse().map_err(|_| Problem::form("sha256: expected 64 lower-case hex digits"))
}

async fn artifact(asked: Asked) -> Answer {
    let digest = digest(&asked)?;
    let file = asked
        .apart(move |server| {
            let artifacts = &server.house.engine.ground().artifacts;
            artifacts.open(&digest).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Problem::of_exit(3, "L026", format!("no artifact {digest}")),
                _ => Problem::unexpected(format!("artifact {digest}: {error}")),
            })
        })
        .await?;
    Ok(stream(file, &digest.to_string()))
}

async fn put_artifact(asked: Asked) -> Answer {
    let (digest, bytes) = (digest(&asked)?, asked.body.clone());
    let length = asked
        .apart(move |server| {
            let found = sha256(&bytes);
            if found != digest {
                return Err(Problem::form(format!("sha256: expected {digest}, got {found} of the body")));
            }
            let stored = server.house.engine.ground().artifacts.put(&mut &bytes[..]);
            stored
                .map(|(_, length)| length)
                .map_err(|error| Problem::unexpected(format!("not stored: {error}")))
        })
        .await?;
    ok(&json!({"v": 1, "sha256": digest.to_string(), "bytes": length}))
}

/// Bytes that others made: never shown as a page.
fn stream(source: Box<dyn io::Read + Send>, name: &str) -> Response {
    // Piece by piece, each when there is room for it: whoever reads slowly keeps no thread.
    let chunks = futures::stream::unfold(Some(source), |source| async move {
        let mut source = source?;
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = Vec::new();
            let read = (&mut source).take(CHUNK_BYTES).read_to_end(&mut chunk);
            (read.map(|_| chunk), source)
        });
        match read.await {
            Ok((Ok(chunk), _)) if chunk.is_empty() => None,
            Ok((Ok(chunk), source)) => Some((Ok(chunk), Some(source))),
            Ok((Err(error), _)) => Some((Err(error), None)),
            Err(error) => Some((Err(io::Error::other(error)), None)),
        }
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    response
}

const CHUNK_BYTES: u64 = 64 << 10;

/// A file in a directory of its own, which is gone with this.
struct Temporary {
    dir: PathBuf,
    file: PathBuf,
}

impl Temporary {
    fn new() -> Result<Temporary, Problem> {
        let dir = std::env::temp_dir().join(format!("baton-http-{}", clock::new_uuid()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&dir);
        made.map_err(|error| Problem::unexpected(format!("no room for a file: {error}")))?;
        Ok(Temporary { file: dir.join("bundle"), dir })
    }

    fn write(bytes: &[u8]) -> Result<Temporary, Problem> {
        let made = Temporary::new()?;
        let written = std::fs::write(&made.file, bytes);
        written.map_err(|error| Problem::unexpected(format!("no room for a file: {error}")))?;
        Ok(made)
    }

    fn shown(&self) -> String {
        self.file.display().to_string()
    }

    /// Opens it; what was opened is still there when this is gone.
    fn open(&self) -> Result<Box<dyn std::io::Read + Send>, Problem> {
        let file = std::fs::File::open(&self.file);
        let file = file.map_err(|error| Problem::unexpected(format!("the bundle is gone: {error}")))?;
        Ok(Box::new(file))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
