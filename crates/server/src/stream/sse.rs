//! Server-sent events: how they are written, and where a reader was.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use futures::{Stream, StreamExt as _};

use crate::app::Server;
use crate::asked::{Asked, accepts};
use crate::limits::WELCOME_EVERY;
use crate::problem::Problem;

/// Writes one event. The data is one line, as all JSON is here.
pub fn event(out: &mut String, name: &str, id: Option<u64>, data: &str) {
    if !name.is_empty() {
        let _ = writeln!(out, "event: {name}");
    }
    if let Some(id) = id {
        let _ = writeln!(out, "id: {id}");
    }
    let _ = write!(out, "data: {data}\n\n");
}

/// Says that the stream is alive.
pub const ALIVE: &str = ": alive\n\n";

/// Where a reader was that comes again.
pub fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(given) = headers.get("last-event-id") else { return Ok(None) };
    let number = given.to_str().ok().and_then(|text| text.trim().parse().ok());
    number
        .map(Some)
        .ok_or_else(|| Problem::form(format!("Last-Event-ID: expected a whole number, got {given:?}")))
}

/// Refuses who does not want events.
pub fn expect_accepted(headers: &HeaderMap) -> Result<(), Problem> {
    match accepts(headers, &["text/event-stream", "text/*", "*/*"]) {
        true => Ok(()),
        false => Err(Problem::not_acceptable("Accept: expected text/event-stream")),
    }
}

/// An answer that goes on as long as whoever asked for it would be let in: a stream outlives the look at its token.
pub fn live(
    asked: &Asked,
    chunks: impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send + 'static,
) -> Response {
    response(chunks.take_until(Box::pin(locked_out(asked.server.clone(), asked.headers.clone()))))
}

/// Waits until a token that was good is not any more.
async fn locked_out(server: Arc<Server>, headers: HeaderMap) {
    loop {
        tokio::time::sleep(WELCOME_EVERY).await;
        let (server, headers) = (server.clone(), headers.clone());
        let looked = tokio::task::spawn_blocking(move || server.admit(&headers, false)).await;
        if matches!(looked, Ok(Err(problem)) if problem.status == StatusCode::UNAUTHORIZED) {
            return;
        }
    }
}

/// An answer that goes on.
pub fn response(
    chunks: impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send + 'static,
) -> Response {
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy that collects would hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_written_as_browsers_read_them() {
        let mut out = String::new();
        event(&mut out, "gap", Some(7), "{}");
        event(&mut out, "", None, "1");
        assert_eq!(out, "event: gap\nid: 7\ndata: {}\n\ndata: 1\n\n");
    }

    #[test]
    fn who_comes_again_says_where_it_was() {
        let with = |name: &'static str, value: &str| {
            HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
        };
        assert_eq!(last_event_id(&with("last-event-id", "12")).unwrap(), Some(12));
        assert_eq!(last_event_id(&HeaderMap::new()).unwrap(), None);
        for bad in ["-1", "abc", "", "1.5", "99999999999999999999"] {
            assert!(last_event_id(&with("last-event-id", bad)).is_err(), "{bad}");
        }
        assert!(expect_accepted(&with("accept", "text/event-stream")).is_ok());
        assert!(expect_accepted(&with("accept", "application/json, */*;q=0.1")).is_ok());
        assert!(expect_accepted(&with("accept", "application/json")).is_err());
    }
}
