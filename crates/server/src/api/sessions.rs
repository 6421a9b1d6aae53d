//! Sessions: begun, spoken to, answered, ended and followed. What changes one is a command; its stream comes from where it is made.

use std::future::poll_fn;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::StatusCode;
use baton_core::ids::SessionId;
use baton_runtime::session::{Channel, Feed, Next, Snapshot, path_in, state_events};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::access::Needs;
use crate::app::Server;
use crate::asked::{Answer, Asked, json as answer, ok, shown, words};
use crate::field::{Kind, may, needed};
use crate::limits::{HEARTBEAT, IDS_MAX, OVER_BYTES_MAX, PAGE_DEFAULT, TRANSCRIPT_BYTES_MAX};
use crate::problem::Problem;
use crate::routes::{Gives, Route, Takes, Verb, handler};
use crate::schema::Shape;
use crate::stream::sse;

use super::streams::ended;
use super::tasks::{CURSOR, LIMIT};

/// Characters of a prompt, or of an answer to a question.
const TEXT_CHARS_MAX: usize = 1 << 20;
const PATH_CHARS_MAX: usize = 4096;

const GIVES_STATE: Gives = Gives::Json(StatusCode::OK, Shape::SessionState);

pub const ROUTES: &[Route] = &[
    Route {
        verb: Verb::Get,
        path: "/v1/sessions",
        name: "listSessions",
        summary: "Sessions, the newest first, page by page. What one wrote on its standard error is with the session itself.",
        needs: Needs::LookAtAll,
        query: &[
            may("live", Kind::Flag, "Only those that run."),
            may("id", Kind::List(IDS_MAX, 64), "Only this session; may stand several times."),
            LIMIT,
            CURSOR,
        ],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Sessions),
        handler: handler!(list),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/sessions",
        name: "startSession",
        summary: "Starts an agent without a task. Answered once it takes input, or has ended.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Fields(&[
            needed("agent", Kind::Agent, "The agent, by the name that it has in the configuration."),
            may("cwd", Kind::Text(PATH_CHARS_MAX), "Where it works; the workspace, if nothing is said."),
            may("resume", Kind::Text(64), "A session that has ended, whose conversation goes on."),
        ]),
        gives: Gives::Json(StatusCode::CREATED, Shape::Session),
        handler: handler!(start),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/sessions/{id}",
        name: "getSession",
        summary: "A session: its state, what it did, what it waits for, and how it ended.",
        needs: Needs::LookAtAll,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Session),
        handler: handler!(show),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/sessions/{id}/transcript",
        name: "getTranscript",
        summary: "What was said in a session, also when it is over; of a long one the end.",
        needs: Needs::LookAtAll,
        query: &[may(
            "kind",
            Kind::List(20, 40),
            "Only lines of this kind, such as `prompt`; may stand several times.",
        )],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Transcript),
        handler: handler!(transcript),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/sessions/{id}/input",
        name: "sendInput",
        summary: "Sends a session a prompt.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Fields(&[needed("text", Kind::Text(TEXT_CHARS_MAX), "What is to be done.")]),
        gives: GIVES_STATE,
        handler: handler!(input),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/sessions/{id}/stop",
        name: "stopSession",
        summary: "Ends a session and all that it started.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Fields(&[]),
        gives: Gives::Json(StatusCode::OK, Shape::Session),
        handler: handler!(stop),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/sessions/{id}/permissions/{req}",
        name: "answerPermission",
        summary: "Answers what a session asks for. The first answer counts.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Fields(&[needed(
            "answer",
            Kind::Text(TEXT_CHARS_MAX),
            "allow, deny, or a text for a question.",
        )]),
        gives: GIVES_STATE,
        handler: handler!(permit),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/sessions/{id}/tools/{run}/retry",
        name: "retryTool",
        summary: "Runs a tool again that failed.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Fields(&[]),
        gives: GIVES_STATE,
        handler: handler!(retry_tool),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/sessions/{id}/hooks/{run}/retry",
        name: "retryHook",
        summary: "Runs a hook again that failed.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Fields(&[]),
        gives: GIVES_STATE,
        handler: handler!(retry_hook),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/sessions/{id}/events",
        name: "followSession",
        summary: "What a session says: state_event and stream_event, then ended. Last-Event-ID goes on after an event.",
        needs: Needs::LookAtAll,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Events,
        handler: handler!(follow),
    },
];

/// The session that the path names.
fn id(asked: &Asked) -> Result<SessionId, Problem> {
    let text = asked.part("id");
    text.parse().map_err(|_| no_session(&shown(text)))
}

fn no_session(text: &str) -> Problem {
    Problem::of_exit(3, "A001", format!("no session {text}")).hint("baton session ls")
}

async fn list(asked: Asked) -> Answer {
    let mut words = words(&["session", "ls"]);
    if asked.query.is_set("live") {
        words.push("--live".to_owned());
    }
    words.push(format!("--limit={}", asked.query.number("limit").unwrap_or(PAGE_DEFAULT)));
    if let Some(text) = asked.query.text("cursor") {
        let before = text.parse::<SessionId>();
        let before = before.map_err(|_| Problem::form("cursor: expected `next` of another page"))?;
        words.push(format!("--before={before}"));
    }
    for text in asked.query.list("id") {
        let id = text.parse::<SessionId>();
        let wrong = |_| Problem::form(format!("id: expected the whole id of a session, got {text:?}"));
        words.push(format!("--id={}", id.map_err(wrong)?));
    }
    ok(&asked.command(words, Vec::new()).await?)
}

async fn start(asked: Asked) -> Answer {
    let agent = asked.fields.text("agent").unwrap_or_default();
    let mut words = words(&["session", "start"]);
    words.push(format!("--agent={agent}"));
    words.extend(asked.fields.text("cwd").map(|cwd| format!("--cwd={cwd}")));
    words.extend(asked.fields.text("resume").map(|id| format!("--resume={id}")));
    let ran = asked.ran(words, Vec::new()).await?;
    // One that ended at once is there too, with how it ended.
    let session = serde_json::from_slice::<Value>(&ran.out).ok();
    match session.filter(|_| matches!(ran.exit, 0 | 6)) {
        Some(session) => Ok(answer(StatusCode::CREATED, &session)),
        None => Err(Problem::of_command(ran.exit, &ran.err)),
    }
}

async fn show(asked: Asked) -> Answer {
    let id = id(&asked)?.to_string();
    ok(&asked.command(words(&["session", "show", &id]), Vec::new()).await?)
}

async fn transcript(asked: Asked) -> Answer {
    let session = id(&asked)?;
    let (id, last) = (session.to_string(), format!("--last={TRANSCRIPT_BYTES_MAX}"));
    // No more than what is given is read of it, however long it is.
    let ran = asked.ran(words(&["session", "show", &id, "--transcript", &last]), Vec::new()).await?;
    if ran.exit != 0 {
        return Err(Problem::of_command(ran.exit, &ran.err));
    }
    let path = path_in(&asked.server.house.broker.dir_of(session));
    let whole = asked.apart(move |_| Ok(path.symlink_metadata().map_or(0, |file| file.len()))).await?;
    let kinds: Vec<&str> = asked.query.list("kind").collect();
    let (mut lines, mut bytes) = (Vec::new(), 0);
    let mut is_truncated = whole > TRANSCRIPT_BYTES_MAX as u64;
    for line in ran.out.rsplit(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        bytes += line.len();
        if bytes > TRANSCRIPT_BYTES_MAX {
            is_truncated = true;
            break;
        }
        let line = serde_json::from_slice::<Value>(line).ok();
        lines.extend(line.filter(|line| {
            kinds.is_empty() || line["kind"].as_str().is_some_and(|kind| kinds.contains(&kind))
        }));
    }
    lines.reverse();
    ok(&json!({"v": 1, "sessionId": id, "lines": lines, "isTruncated": is_truncated}))
}

async fn input(asked: Asked) -> Answer {
    let (id, text) = (id(&asked)?.to_string(), asked.fields.text("text").unwrap_or_default().to_owned());
    ok(&asked.command(words(&["session", "send", &id, "--", &text]), Vec::new()).await?)
}

async fn stop(asked: Asked) -> Answer {
    let id = id(&asked)?.to_string();
    let ran = asked.ran(words(&["session", "stop", &id]), Vec::new()).await?;
    if ran.exit != 0 {
        return Err(Problem::of_command(ran.exit, &ran.err));
    }
    ok(&asked.command(words(&["session", "show", &id]), Vec::new()).await?)
}

async fn permit(asked: Asked) -> Answer {
    let (id, request) = (id(&asked)?.to_string(), asked.part("req").to_owned());
    let given = asked.fields.text("answer").unwrap_or_default().to_owned();
    ok(&asked.command(words(&["session", "permit", &id, "--", &request, &given]), Vec::new()).await?)
}

async fn retry_tool(asked: Asked) -> Answer {
    let (id, run) = (id(&asked)?.to_string(), asked.part("run").to_owned());
    ok(&asked.command(words(&["session", "retry-tool", &id, "--", &run]), Vec::new()).await?)
}

async fn retry_hook(asked: Asked) -> Answer {
    let (id, run) = (id(&asked)?.to_string(), asked.part("run").to_owned());
    ok(&asked.command(words(&["session", "retry-hook", &id, "--", &run]), Vec::new()).await?)
}

/// Who follows a session, and where.
struct Reader {
    feed: Arc<Feed>,
    ending: watch::Receiver<bool>,
    position: u64,
    heard: Instant,
    is_over: bool,
}

async fn follow(asked: Asked) -> Answer {
    sse::expect_accepted(&asked.headers)?;
    let id = id(&asked)?;
    let position = sse::last_event_id(&asked.headers)?.unwrap_or(0);
    let broker = &asked.server.house.broker;
    let feed = broker.get(id).map(|live| live.handle.feed().clone());
    // Of one that is led by clients of its own: where it stands, and its end. Its words are with them.
    let Some(feed) = feed.or_else(|| broker.relayed_feed(id)) else {
        let told = asked.apart(move |server| told_of(server, id, position)).await?;
        return Ok(sse::response(futures::stream::iter([Ok(Bytes::from(told))])));
    };
    let reader =
        Reader { feed, ending: asked.server.ending.clone(), position, heard: Instant::now(), is_over: false };
    Ok(sse::live(
        &asked,
        futures::stream::unfold(reader, |mut reader| async move {
            let chunk = reader.next().await?;
            Some((Ok(Bytes::from(chunk)), reader))
        }),
    ))
}

/// What is left of a session that is over: its state events, from the ledger, and its end. Words that passed by are in its transcript.
fn told_of(server: &Server, id: SessionId, position: u64) -> Result<String, Problem> {
    let snapshot =
        Snapshot::load(&server.house.broker.dir_of(id)).map_err(|_| no_session(&id.to_string()))?;
    let mut out = String::new();
    if position > 0 {
        // Positions went with its process: whoever comes again starts over, and is told so.
        sse::event(&mut out, "gap", None, &json!({"resumeFrom": 0}).to_string());
    }
    let journal = &server.house.engine.ground().journal;
    let told = state_events(&**journal, &snapshot, &mut |event| {
        if out.len() < OVER_BYTES_MAX {
            sse::event(&mut out, "state_event", None, &event.to_string());
        }
    });
    told.map_err(|error| server.house.commands.explain(error.into()))?;
    let ended = serde_json::to_value(&snapshot.ended).unwrap_or_default();
    sse::event(&mut out, "ended", None, &ended.to_string());
    Ok(out)
}

impl Reader {
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        let mut out = String::new();
        let (feed, position) = (&self.feed, self.position);
        let next = tokio::select! {
            // What was said before the end is told before it.
            biased;
            next = poll_fn(|cx| feed.poll_after(position, cx)) => next,
            () = ended(&mut self.ending) => {
                self.is_over = true;
                sse::event(&mut out, "end", None, &json!({"reason": "the server ends"}).to_string());
                return Some(out);
            }
            () = tokio::time::sleep_until(self.heard + HEARTBEAT) => Next::Nothing,
        };
        self.heard = Instant::now();
        match next {
            Next::Items(items) => {
                for item in items {
                    self.position = item.at;
                    let name = match item.channel {
                        Channel::State => "state_event",
                        Channel::Stream => "stream_event",
                        Channel::Ended => "ended",
                    };
                    sse::event(&mut out, name, Some(item.at), item.value.text());
                }
            }
            // Told where it goes on, and goes on there.
            Next::Gap(first) => {
                self.position = first - 1;
                sse::event(&mut out, "gap", Some(first - 1), &json!({"resumeFrom": first - 1}).to_string());
            }
            Next::Nothing => out.push_str(sse::ALIVE),
            Next::Over => return None,
        }
        Some(out)
    }
}
