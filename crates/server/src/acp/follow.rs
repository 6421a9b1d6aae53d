//! Everything that an agent says, as server-sent events.

use std::future::poll_fn;

use axum::body::Bytes;
use baton_runtime::relay::{Kind, Next, Reader};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{no_server, server_id, wait_for};
use crate::api::streams::ended;
use crate::asked::{Answer, Asked};
use crate::limits::HEARTBEAT;
use crate::stream::sse;

/// Who follows.
struct Follower {
    reader: Reader,
    ending: watch::Receiver<bool>,
    heard: Instant,
    is_over: bool,
}

pub(super) async fn follow(asked: Asked) -> Answer {
    sse::expect_accepted(&asked.headers)?;
    let server = server_id(asked.part("server_id"))?;
    let after = sse::last_event_id(&asked.headers)?;
    let relay = wait_for(&asked, &server).await.ok_or_else(|| no_server(&server))?;
    let follower = Follower {
        reader: relay.read(after),
        ending: asked.server.ending.clone(),
        heard: Instant::now(),
        is_over: false,
    };
    Ok(sse::live(
        &asked,
        futures::stream::unfold(follower, |mut follower| async move {
            let chunk = follower.next().await?;
            Some((Ok(Bytes::from(chunk)), follower))
        }),
    ))
}

impl Follower {
    /// The next piece. The stream ends as a stream does, and never in the middle: clients come again only then.
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        let reader = &mut self.reader;
        let next = tokio::select! {
            // What was said before the end is told before it.
            biased;
            next = poll_fn(|cx| reader.poll_next(cx)) => Some(next),
            () = ended(&mut self.ending) => None,
            () = tokio::time::sleep_until(self.heard + HEARTBEAT) => {
                self.heard = Instant::now();
                return Some(sse::ALIVE.to_owned());
            }
        };
        self.heard = Instant::now();
        let mut out = String::new();
        match next {
            Some(Next::Items { items, is_shared }) => {
                for item in items {
                    // Clients count their requests from zero: what another one was answered would be taken for one's own.
                    let name = if is_shared && item.kind == Kind::Response { "response" } else { "message" };
                    sse::event(&mut out, name, Some(item.at), &item.text);
                }
            }
            Some(Next::Gap(upto)) => {
                sse::event(&mut out, "gap", Some(upto), &json!({"resumeFrom": upto}).to_string());
            }
            Some(Next::Over) => return None,
            None => {
                self.is_over = true;
                sse::event(&mut out, "end", None, &json!({"reason": "the server ends"}).to_string());
            }
        }
        Some(out)
    }
}
