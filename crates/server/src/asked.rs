//! One request after everything about it was checked that does not depend on what it is about.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::ws::WebSocketUpgrade;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use baton_core::event::Actor;
use baton_core::ids::{AgentName, TaskId};
use baton_core::moment::Moment;
use baton_core::task::Lease;
use baton_core::task::decide::{executor, operator};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::access::Who;
use crate::app::Server;
use crate::field::Arguments;
use crate::house::{Bound, Call, Ran};
use crate::problem::Problem;

/// What a handler gives.
pub type Answer = Result<Response, Problem>;

/// A request.
#[derive(Debug)]
pub struct Asked {
    pub server: Arc<Server>,
    pub who: Option<Who>,
    /// The address, as it came.
    pub uri: Uri,
    /// The parts of the path that have names.
    pub path: Vec<(String, String)>,
    pub query: Arguments,
    pub headers: HeaderMap,
    /// The fields of a body of JSON that was declared.
    pub fields: Arguments,
    /// A body of JSON that others judge, as it was read.
    pub json: Value,
    /// The body as it came.
    pub body: Bytes,
    /// The way to a WebSocket, where the route gives one and the client wants it.
    pub upgrade: Option<WebSocketUpgrade>,
    /// What everything that is recorded for this request is to be made of, where it has a key.
    pub moment: Option<Moment>,
    /// That it was begun before, by a process that is no more, and may have been done.
    pub begun: Option<Begun>,
}

/// A request that was begun before.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    pub key: [u8; 32],
    /// What was recorded for it then, if anything was, is made of this.
    pub moment: Moment,
}

impl Asked {
    /// A named part of the path.
    pub fn part(&self, name: &str) -> &str {
        self.path.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
    }

    /// The task that the path names. Every route of an agent's token comes by here: other tasks are not its business.
    pub fn task(&self) -> Result<TaskId, Problem> {
        let text = self.part("id");
        let id = text.parse::<TaskId>().map_err(|_| no_task(text))?;
        self.expect_own_task(&id)?;
        Ok(id)
    }

    /// Refuses a task that is not the one of an agent's token.
    pub fn expect_own_task(&self, id: &TaskId) -> Result<(), Problem> {
        match self.bound().and_then(|bound| bound.task.as_ref()) {
            Some(own) if own != id => {
                Err(Problem::scope(format!("this token is for {own} and opens no other task")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses an agent about a task that it does not hold.
    pub async fn expect_holder(&self, task: &TaskId) -> Result<(), Problem> {
        let Some(Bound { agent, .. }) = self.bound().cloned() else { return Ok(()) };
        match self.lease_of(task).await?.is_some_and(|lease| lease.agent == agent) {
            true => Ok(()),
            false => Err(Problem::of_exit(5, "T011", format!("{agent} does not hold {task}"))
                .hint(format!("baton task claim {task} --agent {agent}"))),
        }
    }

    /// Under what a task is held.
    async fn lease_of(&self, task: &TaskId) -> Result<Option<Lease>, Problem> {
        let task = task.clone();
        self.apart(move |server| {
            let lease = server.house.engine.look(|board| board.get(&task)?.lease.clone());
            lease.map_err(|fault| server.house.commands.explain(fault))
        })
        .await
    }

    /// Refuses an agent that acts in the name of another.
    pub fn expect_own_name(&self, agent: &AgentName) -> Result<(), Problem> {
        match self.bound() {
            Some(bound) if bound.agent != *agent => {
                Err(Problem::scope(format!("this token is {}'s, and {agent} is another", bound.agent)))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a session that does not hold its task any more: somebody else may be at work on it.
    pub async fn expect_lease(&self) -> Result<(), Problem> {
        let Some(Bound { task: Some(task), fence: Some(fence), .. }) = self.bound() else { return Ok(()) };
        match self.lease_of(task).await?.is_some_and(|lease| lease.fence == *fence) {
            true => Ok(()),
            false => {
                let what = format!("this session does not hold {task} any more: its lease is over");
                Err(Problem::of_exit(5, "T011", what).hint("baton explain T011"))
            }
        }
    }

    pub fn bound(&self) -> Option<&Bound> {
        self.who.as_ref().and_then(|who| who.bound.as_ref())
    }

    /// In whose name it is recorded.
    pub fn actor(&self) -> Actor {
        self.bound().map_or_else(operator, |bound| executor(&bound.agent))
    }

    /// Does what waits for files and locks on a thread of its own.
    pub async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Server) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let server = self.server.clone();
        let done = tokio::task::spawn_blocking(move || work(&server)).await;
        done.unwrap_or_else(|_| Err(Problem::unexpected("the request came to grief; it is in the log")))
    }

    /// The same, as one of a few at once. Whoever goes away does not make room for the next while the work goes on.
    pub async fn apart_in_turn<T: Send + 'static>(
        &self,
        places: &Arc<Semaphore>,
        work: impl FnOnce(&Server) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let server = self.server.clone();
        let done = in_turn(places, move || work(&server)).await;
        done.ok_or_else(|| Problem::unexpected("the request came to grief; it is in the log"))
    }

    /// Does a command of the command line, and gives what it printed as JSON.
    pub async fn command(&self, words: Vec<String>, input: Vec<u8>) -> Result<Value, Problem> {
        let ran = self.ran(words, input).await?;
        if ran.exit != 0 {
            return Err(Problem::of_command(ran.exit, &ran.err));
        }
        serde_json::from_slice(&ran.out)
            .map_err(|error| Problem::unexpected(format!("the answer does not read: {error}")))
    }

    /// Does a command of the command line, however it ends.
    ///
    /// What a command records is not made of the moment of the request, so that nobody can tell whether one was done whose answer died with its process: that is
    /// said, and it is not done twice.
    pub async fn ran(&self, words: Vec<String>, input: Vec<u8>) -> Result<Ran, Problem> {
        if self.begun.is_some() {
            let what = "whether this request was done before the server died is not known";
            let problem = Problem::new(StatusCode::CONFLICT, "S001", what);
            return Err(problem.cause("look whether it was, and use a new key if not").hint("baton events"));
        }
        let who = self.who.clone().ok_or_else(|| Problem::token("a token is needed"))?;
        self.apart(move |server| {
            let ran = server.house.commands.run(Call { words, input, who });
            server.house.commands.changed();
            Ok(ran)
        })
        .await
    }
}

/// Does something on a thread of its own once there is a place, which it keeps to its end; nothing where it came to grief.
async fn in_turn<T: Send + 'static>(
    places: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let place = places.clone().acquire_owned().await.ok()?;
    let work = move || {
        let _place = place;
        work()
    };
    tokio::task::spawn_blocking(work).await.ok()
}

/// That no task is called so.
pub fn no_task(text: &str) -> Problem {
    Problem::of_exit(3, "T001", format!("no task {}", shown(text))).hint("baton task ls")
}

/// An answer of JSON.
pub fn json(status: StatusCode, value: &Value) -> Response {
    json_text(status, value.to_string())
}

/// An answer of JSON that is written already.
pub fn json_text(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub fn ok(value: &Value) -> Answer {
    Ok(json(StatusCode::OK, value))
}

/// An answer that says nothing beside its status.
pub fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// The beginning of a text that somebody sent, for a message.
pub fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The words of a command.
pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Whether a client takes an answer of one of these kinds; whoever says nothing takes everything.
pub fn accepts(headers: &HeaderMap, wanted: &[&str]) -> bool {
    let mut accepted =
        headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    if accepted.peek().is_none() {
        return true;
    }
    let mut kinds =
        accepted.flat_map(|line| line.split(',')).map(|kind| kind.split(';').next().unwrap_or("").trim());
    kinds.any(|kind| wanted.contains(&kind))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn work_that_nobody_waits_for_any_more_keeps_its_place_to_its_end() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let places = Arc::new(Semaphore::new(1));
        let ((begins, begun), (end, ends)) = (channel(), channel::<()>());
        let own = places.clone();
        let asking = runtime.spawn(async move {
            in_turn(&own, move || {
                begins.send(()).unwrap();
                ends.recv().unwrap();
            })
            .await
        });
        begun.recv().unwrap();
        asking.abort();
        assert!(runtime.block_on(asking).unwrap_err().is_cancelled());
        assert_eq!(places.available_permits(), 0, "it is still at it");
        end.send(()).unwrap();
        assert_eq!(runtime.block_on(in_turn(&places, || 7)), Some(7), "then it is the next one's turn");
    }
}
