//! The ledger as it grows.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use baton_core::limits::INTEGER_MAX;
use baton_ledger::record::Line;
use baton_store::ReadError;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::access::Needs;
use crate::asked::{Answer, Asked};
use crate::field::{Kind, may};
use crate::house::Commands;
use crate::limits::{HEARTBEAT, LAG_EVENTS_MAX};
use crate::problem::Problem;
use crate::routes::{Gives, Route, Takes, Verb, handler};
use crate::stream::sse;
use crate::stream::tail::Tail;

pub const ROUTES: &[Route] = &[Route {
    verb: Verb::Get,
    path: "/v1/events",
    name: "followEvents",
    summary: "The ledger, from a position on, and then what is added to it. `id` is the position; Last-Event-ID goes on after it.",
    needs: Needs::LookAtAll,
    query: &[
        may(
            "since",
            Kind::Number(0, INTEGER_MAX.unsigned_abs()),
            "Events after this position; all, if nothing is said.",
        ),
        may("type", Kind::List(32, 80), "Only events of this type; may stand several times."),
        may("task", Kind::Text(128), "Only events about this task."),
        may("follow", Kind::Flag, "Whether to wait for more at the end; true, if nothing is said."),
    ],
    takes: Takes::Nothing,
    gives: Gives::Events,
    handler: handler!(follow),
}];

/// Who reads, and where.
struct Reader {
    tail: Tail,
    commands: Arc<dyn Commands>,
    size: watch::Receiver<u64>,
    ending: watch::Receiver<bool>,
    position: u64,
    /// Whether it has been at the end.
    is_live: bool,
    is_over: bool,
    follows: bool,
    types: Vec<String>,
    task: Option<String>,
    heard: Instant,
}

async fn follow(asked: Asked) -> Answer {
    sse::expect_accepted(&asked.headers)?;
    let since = asked.query.number("since").unwrap_or(0);
    let position = sse::last_event_id(&asked.headers)?.unwrap_or(since);
    let tail = asked.server.tail.clone();
    let size = tail.size();
    let end = *size.borrow();
    if position > end {
        let what = format!("the ledger has {end} events, and {position} is none of them");
        return Err(Problem::of_exit(3, "L034", what).hint("baton events"));
    }
    let follows = asked.query.get("follow").is_none() || asked.query.is_set("follow");
    let reader = Reader {
        tail,
        commands: asked.server.house.commands.clone(),
        size,
        ending: asked.server.ending.clone(),
        position,
        is_live: false,
        is_over: false,
        follows,
        types: asked.query.list("type").map(str::to_owned).collect(),
        task: asked.query.text("task").map(str::to_owned),
        heard: Instant::now(),
    };
    Ok(sse::live(
        &asked,
        futures::stream::unfold(reader, |mut reader| async move {
            let chunk = reader.next().await?;
            Some((Ok(Bytes::from(chunk)), reader))
        }),
    ))
}

impl Reader {
    /// The next piece for whoever reads; asked for when there is room for it, and not before.
    async fn next(&mut self) -> Option<String> {
        let mut out = String::new();
        while !self.is_over {
            let end = *self.size.borrow_and_update();
            if self.is_live && end.saturating_sub(self.position) > LAG_EVENTS_MAX {
                // Told once it reads again: nothing was kept for it meanwhile.
                self.is_over = true;
                sse::event(
                    &mut out,
                    "gap",
                    None,
                    &json!({"resumeFrom": self.position, "end": end}).to_string(),
                );
                return Some(out);
            }
            if *self.ending.borrow() {
                // Also where it is still far behind: it goes on from there.
                self.is_over = true;
                sse::event(&mut out, "end", None, &json!({"reason": "the server ends"}).to_string());
                return Some(out);
            }
            if end > self.position {
                match self.tail.after(self.position).await {
                    Ok(events) => {
                        for (position, text) in events {
                            self.position = position;
                            if self.is_wanted(&text) {
                                sse::event(&mut out, "", Some(position), &text);
                            }
                        }
                    }
                    Err(error) => {
                        self.is_over = true;
                        sse::event(&mut out, "error", None, &self.explained(error));
                    }
                }
                if !out.is_empty() {
                    self.heard = Instant::now();
                    return Some(out);
                }
                continue;
            }
            if !self.is_live {
                self.is_live = true;
                sse::event(&mut out, "live", None, &json!({"position": self.position}).to_string());
                self.is_over = !self.follows;
                return Some(out);
            }
            match self.wait().await {
                Woken::Grown | Woken::Ending => {}
                Woken::Silent => {
                    self.heard = Instant::now();
                    return Some(sse::ALIVE.to_owned());
                }
            }
        }
        None
    }

    /// What went wrong, as a problem document.
    fn explained(&self, error: ReadError) -> String {
        self.commands.explain(error.into()).to_json().to_string()
    }

    async fn wait(&mut self) -> Woken {
        let _waiting = self.tail.waits();
        let silent = tokio::time::sleep_until(self.heard + HEARTBEAT);
        tokio::select! {
            grown = self.size.changed() => if grown.is_ok() { Woken::Grown } else { Woken::Ending },
            () = ended(&mut self.ending) => Woken::Ending,
            () = silent => Woken::Silent,
        }
    }

    fn is_wanted(&self, text: &str) -> bool {
        if self.types.is_empty() && self.task.is_none() {
            return true;
        }
        Line::parse(text.as_bytes()).is_ok_and(|line| {
            (self.types.is_empty() || self.types.iter().any(|known| known == line.event_type))
                && self.task.as_ref().is_none_or(|task| line.task == Some(task.as_str()))
        })
    }
}

enum Woken {
    Grown,
    Silent,
    Ending,
}

/// Waits until the server ends.
pub(crate) async fn ended(ending: &mut watch::Receiver<bool>) {
    if ending.wait_for(|ends| *ends).await.is_err() {
        // Whoever says so is gone, which says the same; a moment later, so that nobody spins.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
