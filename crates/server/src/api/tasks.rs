//! Tasks: looked at, made, changed and held. Each call is one wish of the engine; who may wish for what is checked here, what comes of it is decided there.

use std::collections::BTreeSet;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use baton_core::ids::{AgentName, TaskId};
use baton_core::limits::{BODY_BYTES_MAX, INTEGER_MAX, LOG_CHARS_MAX, REASON_CHARS_MAX, TITLE_CHARS_MAX};
use baton_core::moment::Moment;
use baton_core::task::decide::{Approve, Edit, Holder, Log, Move, New, Reject, Retry, read_routing};
use baton_core::task::{Papers, Phase, Priority, Status, Task};
use baton_ledger::record::Line;
use baton_runtime::Fault;
use baton_runtime::conduct::Asks;
use baton_runtime::engine::{Wish, Wished};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::access::Needs;
use crate::app::Server;
use crate::asked::{Answer, Asked, Begun, json_text, ok};
use crate::field::{Field, Kind, may, needed};
use crate::limits::{IDS_MAX, PAGE_DEFAULT, PAGE_MAX};
use crate::once::first_events;
use crate::problem::Problem;
use crate::routes::{Gives, Route, Takes, Verb, handler};
use crate::schema::Shape;

const STATUSES: &[&str] =
    &["backlog", "ready", "in-progress", "blocked", "review", "done", "cancelled", "deadletter"];
const PRIORITIES: &[&str] = &["critical", "high", "normal", "low"];

pub(crate) const LIMIT: Field = may("limit", Kind::Number(1, PAGE_MAX), "How many, at most.");
pub(crate) const CURSOR: Field = may("cursor", Kind::Text(200), "Where to go on: `next` of the page before.");
pub(crate) const REASON: Field = needed("reason", Kind::Text(REASON_CHARS_MAX), "Why, in a few words.");
const AGENT: Field = needed("agent", Kind::Agent, "The agent that holds the task.");
const FENCE: Field =
    needed("fence", Kind::Number(0, INTEGER_MAX.unsigned_abs()), "The fence that the claim gave.");

const GIVES_TASK: Gives = Gives::Json(StatusCode::OK, Shape::Task);

pub const ROUTES: &[Route] = &[
    Route {
        verb: Verb::Get,
        path: "/v1/tasks",
        name: "listTasks",
        summary: "Tasks in the order of their ids, page by page.",
        needs: Needs::Look,
        query: &[
            may("status", Kind::List(8, 20), "Only tasks with this status; may stand several times."),
            may("id", Kind::List(IDS_MAX, 128), "Only this task; may stand several times."),
            LIMIT,
            CURSOR,
        ],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Tasks),
        handler: handler!(list),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/tasks",
        name: "createTask",
        summary: "Makes a task.",
        needs: Needs::Work,
        query: &[],
        takes: Takes::Fields(&[
            needed("title", Kind::Text(TITLE_CHARS_MAX), "What is to be done, in one line."),
            may("body", Kind::Text(BODY_BYTES_MAX), "The text of the task, in Markdown."),
            may("status", Kind::Word(&["backlog", "ready"]), "Where it begins; backlog, if nothing is said."),
            may("phase", Kind::Word(&["DRAFT", "IMPLEMENTATION"]), "Its first phase."),
            may("priority", Kind::Word(PRIORITIES), "How urgent it is."),
            may("routing", Kind::Object, "Whom it is for: agent, role, tags."),
            may("dependsOn", Kind::List(100, 128), "Tasks that come first."),
            may("parentId", Kind::Task, "The task that it is a part of."),
            may("guarded", Kind::Flag, "Whether its work is recorded role by role."),
            may("metadata", Kind::Object, "Keys of your own."),
        ]),
        gives: Gives::Json(StatusCode::CREATED, Shape::Task),
        handler: handler!(create),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/tasks/{id}",
        name: "getTask",
        summary: "A task with its text. The ETag is for If-Match.",
        needs: Needs::Look,
        query: &[],
        takes: Takes::Nothing,
        gives: GIVES_TASK,
        handler: handler!(show),
    },
    Route {
        verb: Verb::Patch,
        path: "/v1/tasks/{id}",
        name: "editTask",
        summary: "Changes fields of a task, as somebody who edits its file would.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Fields(&[
            may("title", Kind::Text(TITLE_CHARS_MAX), "What is to be done, in one line."),
            may("body", Kind::Text(BODY_BYTES_MAX), "The text of the task, in Markdown."),
            may("priority", Kind::Word(PRIORITIES), "How urgent it is."),
            may("routing", Kind::Object, "Whom it is for: agent, role, tags."),
            may("dependsOn", Kind::List(100, 128), "Tasks that come first."),
            may("parentId", Kind::Task, "The task that it is a part of."),
            may("notBefore", Kind::Time, "When it may be handed out at the earliest."),
            may("metadata", Kind::Object, "Keys of your own."),
        ]),
        gives: GIVES_TASK,
        handler: handler!(edit),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/tasks/{id}/transition",
        name: "moveTask",
        summary: "Gives a task another status.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Fields(&[needed("to", Kind::Word(STATUSES), "The status that it is to have."), REASON]),
        gives: GIVES_TASK,
        handler: handler!(transition),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/tasks/{id}/claim",
        name: "claimTask",
        summary: "Takes a task for an agent. Whoever holds it shows the fence.",
        needs: Needs::Work,
        query: &[],
        takes: Takes::Fields(&[AGENT, may("ttl", Kind::Text(20), "For how long, such as 10m.")]),
        gives: Gives::Json(StatusCode::OK, Shape::Claimed),
        handler: handler!(claim),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/tasks/{id}/beat",
        name: "beatTask",
        summary: "Says that whoever holds a task is at work.",
        needs: Needs::Work,
        query: &[],
        takes: Takes::Fields(&[AGENT, FENCE]),
        gives: Gives::Json(StatusCode::OK, Shape::Beaten),
        handler: handler!(beat),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/tasks/{id}/release",
        name: "releaseTask",
        summary: "Gives a task back.",
        needs: Needs::Work,
        query: &[],
        takes: Takes::Fields(&[AGENT, FENCE]),
        gives: GIVES_TASK,
        handler: handler!(release),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/tasks/{id}/log",
        name: "logTask",
        summary: "Adds a line to the work log of a task.",
        needs: Needs::Work,
        query: &[],
        takes: Takes::Fields(&[needed("text", Kind::Text(LOG_CHARS_MAX), "What to write down.")]),
        gives: GIVES_TASK,
        handler: handler!(log),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/tasks/{id}/approve",
        name: "approveTask",
        summary: "Says yes to what waits for a review.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Fields(&[may("all", Kind::Flag, "Through every phase that is left.")]),
        gives: GIVES_TASK,
        handler: handler!(approve),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/tasks/{id}/reject",
        name: "rejectTask",
        summary: "Says no to what waits for a review, and why.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Fields(&[REASON]),
        gives: GIVES_TASK,
        handler: handler!(reject),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/tasks/{id}/retry",
        name: "retryTask",
        summary: "Gives a task another chance that failed too often, or that waits.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Fields(&[]),
        gives: GIVES_TASK,
        handler: handler!(retry),
    },
];

async fn list(asked: Asked) -> Answer {
    let statuses: Result<Vec<Status>, Problem> = asked
        .query
        .list("status")
        .map(|word| {
            let status = word.parse::<Status>();
            status.map_err(|_| {
                Problem::form(format!("status: expected one of {}, got {word:?}", STATUSES.join(", ")))
            })
        })
        .collect();
    let statuses = statuses?;
    let ids: Result<BTreeSet<TaskId>, Problem> = asked
        .query
        .list("id")
        .map(|text| {
            text.parse()
                .map_err(|_| Problem::form(format!("id: expected the whole id of a task, got {text:?}")))
        })
        .collect();
    let ids = ids?;
    let limit = usize::try_from(asked.query.number("limit").unwrap_or(PAGE_DEFAULT)).unwrap_or(usize::MAX);
    let after = asked.query.text("cursor").map(|text| {
        text.parse::<TaskId>().map_err(|_| Problem::form("cursor: expected `next` of another page"))
    });
    let after = after.transpose()?;
    let own = asked.bound().and_then(|bound| bound.task.clone());
    let page = asked
        .apart(move |server| {
            let look = server.house.engine.look(|board| {
                let is_wanted = |task: &&Task| {
                    (statuses.is_empty() || statuses.contains(&task.status))
                        && (ids.is_empty() || ids.contains(&task.id))
                        && after.as_ref().is_none_or(|after| task.id > *after)
                        && own.as_ref().is_none_or(|own| task.id == *own)
                };
                let (mut found, mut runs): (Vec<Value>, Vec<(usize, Task)>) = (Vec::new(), Vec::new());
                let mut last = None;
                let mut tasks: Vec<&Task> = board.tasks().filter(is_wanted).collect();
                tasks.sort_by(|a, b| a.id.cmp(&b.id));
                let has_more = tasks.len() > limit;
                for task in tasks.into_iter().take(limit) {
                    last = Some(task.id.clone());
                    let mut keys = task.to_json();
                    keys.insert("card".to_owned(), task.card());
                    runs.extend(task.guard.map(|_| (found.len(), task.clone())));
                    found.push(Value::Object(keys));
                }
                (found, runs, last.filter(|_| has_more))
            });
            let (mut found, runs, last) = look.map_err(|fault| server.house.commands.explain(fault))?;
            for (at, task) in runs {
                found[at]["card"] = card(server, &task);
            }
            Ok((found, last))
        })
        .await?;
    let (tasks, next) = page;
    let mut object = json!({"v": 1, "tasks": tasks});
    if let Some(next) = next {
        object["next"] = next.as_str().into();
    }
    ok(&object)
}

async fn show(asked: Asked) -> Answer {
    let id = asked.task()?;
    let (task, papers) = match asked.server.house.engine.task_at_once(&id) {
        Some(found) => found,
        None => {
            asked
                .apart(move |server| {
                    server.house.engine.task(&id).map_err(|fault| server.house.commands.explain(fault))
                })
                .await?
        }
    };
    if asked.headers.get(header::IF_NONE_MATCH).is_some_and(|tag| tag.as_bytes() == etag(&task).as_bytes()) {
        let mut response = Response::new(axum::body::Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return Ok(response);
    }
    if task.guard.is_none() {
        return Ok(shown(StatusCode::OK, &task, &papers));
    }
    let (card, task) = asked.apart(move |server| Ok((card(server, &task), task))).await?;
    Ok(shown_with(StatusCode::OK, &task, &papers, Some(card)))
}

/// What the card of a task shows; of a guarded run also what of it waits for a person.
fn card(server: &Server, task: &Task) -> Value {
    let mut card = task.card();
    if let Some(asks) = Asks::of(&*server.house.engine.ground().journal, task) {
        card["asks"] = asks.id.as_str().into();
    }
    card
}

async fn create(asked: Asked) -> Answer {
    let fields = &asked.fields;
    let routing = match fields.object("routing") {
        Some(map) => read_routing(&Value::Object(map.clone()))
            .map_err(|refusal| asked.server.house.commands.explain(Fault::Refused(refusal)))?,
        None => baton_core::task::Routing::default(),
    };
    let depends_on: Result<Vec<TaskId>, Problem> = fields
        .list("dependsOn")
        .map(|text| {
            text.parse().map_err(|_| Problem::form(format!("dependsOn: expected ids of tasks, got {text:?}")))
        })
        .collect();
    let depends_on = depends_on?;
    let parent: Option<TaskId> = fields.parsed("parentId");
    // Whoever has one task ties new ones to that and to no other.
    depends_on.iter().chain(&parent).try_for_each(|id| asked.expect_own_task(id))?;
    let new = New {
        body: fields.text("body").unwrap_or_default().to_owned(),
        status: fields.parsed("status").unwrap_or(Status::Backlog),
        phase: fields.parsed("phase").unwrap_or(Phase::Implementation),
        priority: fields.parsed("priority").unwrap_or(Priority::Normal),
        routing,
        depends_on,
        parent,
        guarded: fields.is_set("guarded"),
        metadata: fields.object("metadata").cloned().unwrap_or_default(),
        ..New::titled(fields.text("title").unwrap_or_default())
    };
    grant(asked, StatusCode::CREATED, Wish::Create(Box::new(new))).await
}

async fn edit(asked: Asked) -> Answer {
    let task = asked.task()?;
    // What was `null` is to be taken away, which only the text of the body says.
    let given: Map<String, Value> = serde_json::from_slice(&asked.body).unwrap_or_default();
    let edit = Edit { task, fields: given, file: None };
    grant(asked, StatusCode::OK, Wish::Edit(edit)).await
}

async fn transition(asked: Asked) -> Answer {
    let task = asked.task()?;
    let to = asked.fields.parsed("to").ok_or_else(|| Problem::form("to is missing"))?;
    let reason = asked.fields.text("reason").unwrap_or_default().to_owned();
    grant(asked, StatusCode::OK, Wish::Move(Move { task, to, reason })).await
}

async fn log(asked: Asked) -> Answer {
    let task = asked.task()?;
    asked.expect_holder(&task).await?;
    let text = asked.fields.text("text").unwrap_or_default().to_owned();
    grant(asked, StatusCode::OK, Wish::Log(Log { task, text })).await
}

async fn approve(asked: Asked) -> Answer {
    let approve = Approve { task: asked.task()?, all: asked.fields.is_set("all") };
    grant(asked, StatusCode::OK, Wish::Approve(approve)).await
}

async fn reject(asked: Asked) -> Answer {
    let reason = asked.fields.text("reason").unwrap_or_default().to_owned();
    let reject = Reject { task: asked.task()?, reason };
    grant(asked, StatusCode::OK, Wish::Reject(reject)).await
}

async fn retry(asked: Asked) -> Answer {
    let retry = Retry { task: asked.task()? };
    grant(asked, StatusCode::OK, Wish::Retry(retry)).await
}

/// Has a wish granted, once.
pub(crate) async fn grant(asked: Asked, status: StatusCode, wish: Wish) -> Answer {
    if let Some((task, papers)) = asked.done_before().await? {
        return Ok(shown(status, &task, &papers));
    }
    let revs = asked.headers.get(header::IF_MATCH).and_then(expected_revs);
    let wished = Wished { wish, by: asked.actor(), moment: asked.new_moment()?, revs };
    let granted = asked.server.wishes.grant(wished).await?;
    let (task, papers) = granted.map_err(|fault| match fault {
        Fault::Changed { task, rev } => has_changed(&asked, &task, rev),
        fault => asked.server.house.commands.explain(fault),
    })?;
    Ok(shown(status, &task, &papers))
}

impl Asked {
    /// What is recorded for this request is made of this. One that was begun before and not done is done now, with all times that follow from it; that is written down first.
    fn new_moment(&self) -> Result<Option<Moment>, Problem> {
        let Some(Begun { key, .. }) = self.begun else { return Ok(self.moment) };
        let moment = self.server.house.engine.ground().clock.moment();
        self.server.once.renew(key, moment)?;
        Ok(Some(moment))
    }

    /// The task that this request was about, if a process did it that is no more and whose answer nobody got.
    async fn done_before(&self) -> Result<Option<(Task, Papers)>, Problem> {
        let Some(Begun { moment, .. }) = self.begun else { return Ok(None) };
        self.apart(move |server| {
            let Some(id) = server.done_at(moment)? else { return Ok(None) };
            server.house.engine.task(&id).map(Some).map_err(|fault| server.house.commands.explain(fault))
        })
        .await
    }
}

impl Server {
    /// The task about which something was recorded that was made of this moment.
    fn done_at(&self, moment: Moment) -> Result<Option<TaskId>, Problem> {
        let journal = &self.house.engine.ground().journal;
        let explain = |error| self.house.commands.explain(Fault::Read(error));
        for id in first_events(moment) {
            let Some(pos) = journal.find(id).map_err(explain)? else { continue };
            for stored in journal.read(pos, 1).map_err(explain)? {
                let line = Line::parse(stored.text.as_bytes()).ok();
                if let Some(task) = line.and_then(|line| line.task.and_then(|task| task.parse().ok())) {
                    return Ok(Some(task));
                }
            }
        }
        Ok(None)
    }
}

async fn claim(asked: Asked) -> Answer {
    let task = asked.task()?;
    let agent: AgentName = asked.fields.parsed("agent").ok_or_else(|| Problem::form("agent is missing"))?;
    asked.expect_own_name(&agent)?;
    let ttl = asked.fields.text("ttl").map(|text| {
        let expected = || Problem::form(format!("ttl: expected a duration such as 10m, got {text:?}"));
        baton_core::duration::parse(text).ok_or_else(expected)
    });
    let ttl_ms = ttl.transpose()?.map(|ttl| i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
    if let Some((found, _)) = asked.done_before().await? {
        let own = found.live_run().zip(found.lease.as_ref()).filter(|(run, _)| run.agent == agent);
        let over = || format!("{task} was claimed by this request, and the lease is over");
        let (run, lease) = own.ok_or_else(|| Problem::of_exit(5, "T011", over()))?;
        return ok(&claimed_json(&task, &run.id.to_string(), lease));
    }
    let moment = asked.new_moment()?;
    let claimed = asked
        .apart(move |server| {
            let claimed = server.house.engine.claim_at(&task, &agent, ttl_ms, None, moment);
            let claimed = claimed.map_err(|fault| server.house.commands.explain(fault))?;
            server.house.commands.changed();
            Ok(claimed_json(&claimed.task, &claimed.run.to_string(), &claimed.lease))
        })
        .await?;
    ok(&claimed)
}

fn claimed_json(task: &TaskId, run: &str, lease: &baton_core::task::Lease) -> Value {
    json!({
        "v": 1,
        "taskId": task.as_str(),
        "agent": lease.agent.as_str(),
        "fence": lease.fence,
        "expiresAt": lease.expires_at.to_string(),
        "heartbeatBy": lease.beat_until.to_string(),
        "runId": run,
    })
}

fn holder(asked: &Asked) -> Result<Holder, Problem> {
    let task = asked.task()?;
    let agent: AgentName = asked.fields.parsed("agent").ok_or_else(|| Problem::form("agent is missing"))?;
    asked.expect_own_name(&agent)?;
    let fence = asked.fields.number("fence").ok_or_else(|| Problem::form("fence is missing"))?;
    Ok(Holder { task, agent, fence, beaten_until: None })
}

async fn beat(asked: Asked) -> Answer {
    let holder = holder(&asked)?;
    let object = asked
        .apart(move |server| {
            let until =
                server.house.engine.beat(&holder).map_err(|fault| server.house.commands.explain(fault))?;
            Ok(json!({
                "v": 1, "taskId": holder.task.as_str(), "agent": holder.agent.as_str(),
                "fence": holder.fence, "expiresAt": until.to_string(),
            }))
        })
        .await?;
    ok(&object)
}

async fn release(asked: Asked) -> Answer {
    let holder = holder(&asked)?;
    let (task, papers) = match asked.done_before().await? {
        Some(done) => done,
        None => {
            let moment = asked.new_moment()?;
            asked
                .apart(move |server| {
                    let released = server.house.engine.release_at(&holder, moment);
                    let released = released.map_err(|fault| server.house.commands.explain(fault))?;
                    server.house.commands.changed();
                    Ok(released)
                })
                .await?
        }
    };
    Ok(shown(StatusCode::OK, &task, &papers))
}

/// A task as scripts see it: the keys of its file, the body, and what its card shows.
fn shown(status: StatusCode, task: &Task, papers: &Papers) -> Response {
    shown_with(status, task, papers, None)
}

/// The same with a card that says more.
fn shown_with(status: StatusCode, task: &Task, papers: &Papers, card: Option<Value>) -> Response {
    let keys = Keys { task, papers, card: card.unwrap_or_else(|| task.card()) };
    // Texts, numbers and lists always write.
    let mut response = json_text(status, serde_json::to_vec(&keys).unwrap_or_default());
    if let Ok(tag) = HeaderValue::from_str(&etag(task)) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// A task as it is answered, written without another copy of it.
struct Keys<'a> {
    task: &'a Task,
    papers: &'a Papers,
    card: Value,
}

impl Serialize for Keys<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let more = [("body", Some(self.papers.body().into())), ("card", Some(self.card.clone()))];
        let keys = self.task.frontmatter().into_iter().chain(more);
        serializer.collect_map(keys.filter_map(|(key, value)| Some((key, value?))))
    }
}

fn etag(task: &Task) -> String {
    format!("\"{}\"", task.rev())
}

/// The revisions that an If-Match names; nothing where any will do.
fn expected_revs(expected: &HeaderValue) -> Option<Vec<u64>> {
    let tags = expected.to_str().unwrap_or_default().split(',').map(str::trim);
    let rev = |tag: &str| tag.strip_prefix('"')?.strip_suffix('"')?.parse().ok();
    match tags.clone().any(|tag| tag == "*") {
        true => None,
        false => Some(tags.filter_map(rev).collect()),
    }
}

/// That something was asked of another state of the task.
fn has_changed(asked: &Asked, task: &TaskId, rev: u64) -> Problem {
    let got = asked.headers.get(header::IF_MATCH);
    Problem::precondition(format!("{task} has changed: its ETag is \"{rev}\"")).cause(format!(
        "If-Match: expected \"{rev}\", got {}",
        got.map_or_else(String::new, |got| format!("{got:?}"))
    ))
}
