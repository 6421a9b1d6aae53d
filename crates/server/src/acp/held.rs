//! A request that waits for its answer: as long as it takes, and never for one that cannot come.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use baton_runtime::relay::{Answered, ERROR_INTERNAL, Relay, error};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use crate::api::streams::ended;
use crate::asked::{Answer, Asked};
use crate::limits::TOLD_WAIT;
use crate::problem::Problem;

/// Where the answer comes from.
type Answering = futures::channel::oneshot::Receiver<Answered>;

/// A request that waits.
struct Held {
    relay: Arc<Relay>,
    answering: Answering,
    ending: watch::Receiver<bool>,
    id: Value,
    /// Whether it is the one by which an agent shows that it speaks the protocol.
    is_first: bool,
    since: Instant,
}

/// What came of waiting.
enum Settled {
    Answer(Arc<str>),
    /// Nothing, in more time than there is.
    Late(String),
}

/// Answers with what the agent answers. After a while the head is sent, then a blank now and then, so that nobody on the way gives up.
pub(super) async fn answer(
    asked: &Asked,
    relay: Arc<Relay>,
    answering: Answering,
    id: Value,
    is_first: bool,
) -> Answer {
    let ending = asked.server.ending.clone();
    let mut held = Held { relay, answering, ending, id, is_first, since: Instant::now() };
    let patience = asked.server.patience;
    match timeout_at(held.since + patience.held_head, held.settle()).await {
        Ok(Settled::Answer(text)) => Ok(json(Body::from(text.to_string()))),
        Ok(Settled::Late(why)) if is_first => Err(Problem::no_answer(why)),
        Ok(Settled::Late(why)) => Ok(json(Body::from(held.failure(&why)))),
        Err(_) => {
            let pieces = futures::stream::unfold(Some(held), move |held| async move {
                let mut held = held?;
                match timeout(patience.held_blank, held.settle()).await {
                    Err(_) => Some((Ok::<_, std::convert::Infallible>(Bytes::from_static(b" ")), Some(held))),
                    Ok(Settled::Answer(text)) => Some((Ok(Bytes::from(text.to_string())), None)),
                    Ok(Settled::Late(why)) => Some((Ok(Bytes::from(held.failure(&why))), None)),
                }
            });
            Ok(json(Body::from_stream(pieces)))
        }
    }
}

impl Held {
    /// Waits for the answer, for the end of the server, or until nothing more is to be expected.
    async fn settle(&mut self) -> Settled {
        loop {
            let Some(left) = self.left() else {
                let (agent, waits) = (&self.relay.agent, self.relay.waits);
                let most = if self.is_first { waits.handshake } else { waits.inactivity };
                return Settled::Late(format!("agent {agent} did not answer within {} s", most.as_secs()));
            };
            tokio::select! {
                answered = &mut self.answering => {
                    let Ok(Answered { text, after }) = answered else {
                        return Settled::Answer(self.failure("the agent was let go").into());
                    };
                    // Whoever follows hears first what came before: most are one and the same client.
                    let told = std::future::poll_fn(|cx| self.relay.poll_told(after, cx));
                    let _ = timeout(TOLD_WAIT, told).await;
                    return Settled::Answer(text);
                }
                () = ended(&mut self.ending) => return Settled::Answer(self.failure("the server ends").into()),
                () = tokio::time::sleep(left) => {}
            }
        }
    }

    /// How long is waited before it is looked again; nothing where it has been too long.
    fn left(&self) -> Option<Duration> {
        let (most, passed) = match self.is_first {
            true => (self.relay.waits.handshake, self.since.elapsed()),
            // A request cannot have been silent for longer than it is there; one that waits for a client is patient.
            false => {
                let silence = self.relay.silence().unwrap_or_default().min(self.since.elapsed());
                (self.relay.waits.inactivity, silence)
            }
        };
        most.checked_sub(passed).filter(|left| !left.is_zero())
    }

    fn failure(&self, why: &str) -> String {
        error(&self.id, ERROR_INTERNAL, why, None).to_string()
    }
}

fn json(body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
