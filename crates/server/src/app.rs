//! The way of every request: where it comes from, whose it is, what it may, what it holds; then its handler, once.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use baton_ledger::hash::sha256;
use baton_runtime::relay::Relays;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::Value;
use std::sync::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::access::cookie::Shown;
use crate::access::{Hosts, Needs, Tokens, Who, cookie, is_cross_site, login_cookie};
use crate::api::mcp::Conversations;
use crate::api::page;
use crate::api::status::Looks;
use crate::asked::{Answer, Asked, Begun, shown};
use crate::field::Arguments;
use crate::house::House;
use crate::limits::{
    BODY_WAIT, COMPARING_MAX, DRAIN_WAIT, HELD_MAX, JSON_BODY_BYTES_MAX, JSON_VALUES_MAX, KEY_CHARS_MAX,
    Patience, RAW_BODY_BYTES_MAX, REFUSALS_PER_SECOND_MAX, REQUESTS_MAX, STREAMS_MAX,
};
use crate::once::{Before, Once};
use crate::problem::Problem;
use crate::routes::{self, Gives, Route, Takes};
use crate::stream::tail::Tail;
use crate::wishes::Wishes;

/// A server, as its handlers know it.
#[derive(Debug)]
pub struct Server {
    pub house: House,
    pub tokens: Arc<Tokens>,
    pub once: Once,
    pub tail: Tail,
    pub wishes: Wishes,
    pub relays: Arc<Relays>,
    pub patience: Patience,
    hosts: Hosts,
    pub(crate) cookie: String,
    pub(crate) is_tls: bool,
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    held: Arc<Semaphore>,
    /// Wrong tokens of this second.
    refusals: Mutex<(Option<Instant>, u32)>,
    /// Says when it ends.
    pub ending: watch::Receiver<bool>,
    pub counts: Counts,
    pub mcp: Conversations,
    pub looks: Looks,
    /// Whoever has git compare what was changed.
    pub comparing: Arc<Semaphore>,
}

/// What was answered, by the class of its status.
#[derive(Debug, Default)]
pub struct Counts {
    pub by_class: [AtomicU64; 5],
}

/// Under which names and at which port a server is found.
#[derive(Debug)]
pub struct Address {
    pub hosts: Hosts,
    pub port: u16,
    pub is_tls: bool,
}

impl Server {
    pub fn new(
        house: House,
        tokens: Arc<Tokens>,
        address: Address,
        patience: Patience,
        ending: watch::Receiver<bool>,
    ) -> std::io::Result<Arc<Self>> {
        let once = Once::open(&house.dir)?;
        let tail = Tail::start(house.engine.ground().journal.clone())?;
        let ground = house.engine.ground();
        let (broker, clock) = (house.broker.clone(), ground.clock.clone());
        let relays = Relays::new(broker, clock, ground.workspace.clone(), patience.relays);
        let looks = Looks::new(ground.clock.now());
        let wishes = Wishes::start(house.clone())?;
        Ok(Arc::new(Server {
            wishes,
            relays,
            patience,
            house,
            tokens,
            once,
            tail,
            hosts: address.hosts,
            cookie: login_cookie(address.port),
            is_tls: address.is_tls,
            requests: Arc::new(Semaphore::new(REQUESTS_MAX)),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            held: Arc::new(Semaphore::new(HELD_MAX)),
            refusals: Mutex::default(),
            ending,
            counts: Counts::default(),
            mcp: Conversations::default(),
            looks,
            comparing: Arc::new(Semaphore::new(COMPARING_MAX)),
        }))
    }

    /// The router over all routes.
    pub fn router(self: &Arc<Self>) -> Router {
        let mut by_path: BTreeMap<&str, Vec<&'static Route>> = BTreeMap::new();
        for route in routes::served() {
            by_path.entry(route.path).or_default().push(route);
        }
        let mut router = Router::new();
        for (path, methods) in by_path {
            let server = self.clone();
            router = router.route(
                path,
                any(move |params: Result<RawPathParams, RawPathParamsRejection>, request: Request| {
                    server.clone().take(methods.clone(), parts(params), request)
                }),
            );
        }
        let server = self.clone();
        router.fallback(move |request: Request| server.clone().take(Vec::new(), Ok(Vec::new()), request))
    }

    /// Answers a request, whatever it is.
    async fn take(
        self: Arc<Self>,
        methods: Vec<&'static Route>,
        path: Result<Parts, Problem>,
        request: Request,
    ) -> Response {
        let is_head = request.method() == Method::HEAD;
        let answer = self.clone().answer(&methods, path, request).await;
        let mut response = answer.unwrap_or_else(Problem::into_response);
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            let allowed: Vec<&str> = methods.iter().map(|route| route.verb.as_str()).collect();
            if let Ok(allowed) = HeaderValue::from_str(&allowed.join(", ")) {
                response.headers_mut().insert(header::ALLOW, allowed);
            }
        }
        let headers = response.headers_mut();
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let class = usize::from(response.status().as_u16() / 100).clamp(1, 5) - 1;
        self.counts.by_class[class].fetch_add(1, Ordering::Relaxed);
        if is_head {
            *response.body_mut() = Body::empty();
        }
        response
    }

    async fn answer(
        self: Arc<Self>,
        methods: &[&'static Route],
        path: Result<Parts, Problem>,
        request: Request,
    ) -> Answer {
        let (mut head, body) = request.into_parts();
        self.hosts.expect(&head.headers).map_err(Problem::origin)?;
        let route = methods.iter().copied().find(|route| route.verb.is(&head.method));
        let route = route.or_else(|| page::beside(methods, &head));
        let needs = route.map_or(Needs::Token, |route| route.needs);
        let who = match needs {
            Needs::Nothing => None,
            needs => {
                // Whoever has a WebSocket can change something by it, though it is asked for with a GET.
                let changes = route.is_some_and(|route| matches!(route.gives, Gives::Socket));
                let changes = changes || !matches!(head.method, Method::GET | Method::HEAD);
                let who = self.admit(&head.headers, changes)?;
                self.expect_scope(&who, needs, changes.then(|| head.uri.path()))?;
                Some(who)
            }
        };
        let Some(route) = route else {
            return Err(match methods.is_empty() {
                true => Problem::no_route(format!("there is nothing at {}", shown(head.uri.path())))
                    .hint("see /v1/openapi.json"),
                false => Problem::method(format!("{} is not possible here", head.method)),
            });
        };
        let path = path?;
        let place = self.enter(route)?;
        let query = form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes());
        let mut query: Vec<(String, String)> = query.into_owned().collect();
        if matches!(route.gives, Gives::Page) {
            // What else is in the address of a page is the page's own; and people are answered by it, whatever is there.
            let is_person = page::is_for_people(&head.headers);
            query.retain(|(name, _)| !is_person && route.query.iter().any(|field| field.name == name));
        }
        let query = Arguments::check_text(route.query, &query).map_err(Problem::form)?;
        let body = read_body(route, &head.headers, body).await?;
        let (fields, json) = match route.takes {
            Takes::Fields(fields) => {
                let Value::Object(given) = parse(&body)? else {
                    return Err(Problem::form("the body: expected an object"));
                };
                (Arguments::check(fields, given).map_err(Problem::form)?, Value::Null)
            }
            Takes::Json(_) => (Arguments::default(), parse(&body)?),
            Takes::Nothing | Takes::Bytes => (Arguments::default(), Value::Null),
        };
        let key = match route.takes_key() {
            true => idempotency_key(&head.headers, who.as_ref(), route, &path)?,
            false => None,
        };
        let upgrade = match route.gives {
            Gives::Socket => WebSocketUpgrade::from_request_parts(&mut head, &()).await.ok(),
            _ => None,
        };
        let digest = sha256(&body);
        let asked = Asked {
            server: self.clone(),
            who,
            uri: head.uri,
            path,
            query,
            headers: head.headers,
            fields,
            json,
            body,
            upgrade,
            moment: None,
            begun: None,
        };
        if route.needs == Needs::Work {
            asked.expect_lease().await?;
        }
        let done = once(self, route, asked, key, digest, place);
        let done = match route.verb.changes() {
            // On a task of its own: whoever goes away does not leave half of it undone.
            true => tokio::spawn(done).await.ok(),
            false => AssertUnwindSafe(done).catch_unwind().await.ok(),
        };
        done.unwrap_or_else(|| Err(Problem::unexpected("the request came to grief; it is in the log")))
    }

    /// Whose request it is.
    pub(crate) fn admit(&self, headers: &HeaderMap, changes: bool) -> Result<Who, Problem> {
        let unknown = || {
            let what = "the token was not accepted: it is not known here, or its time is over";
            Problem::token(what).hint("baton token ls")
        };
        let Some(shown) = cookie::shown(headers, &self.cookie) else {
            // It was counted when it came.
            let was_refused = cookie::find(headers, &cookie::refusal_cookie(&self.cookie)).is_some();
            let missing = || {
                Problem::token("a token is needed")
                    .cause("expected Authorization: Bearer TOKEN")
                    .hint("baton token new NAME --scope SCOPE")
            };
            return Err(if was_refused { unknown() } else { missing() });
        };
        let found = match &shown {
            Shown::Token(token) => self
                .tokens
                .find(token)
                .map(|found| found.or_else(|| self.house.broker.admitted(token).map(Who::of_session))),
            Shown::Key(key) => self.tokens.find_key(key, &self.cookie),
        };
        let Some(who) = found.map_err(|error| Problem::unexpected(error.to_string()))? else {
            self.count_refusal()?;
            return Err(unknown());
        };
        if matches!(shown, Shown::Key(_)) && changes && is_cross_site(headers) {
            return Err(Problem::origin("a page of another site may not do this"));
        }
        Ok(who)
    }

    /// Whether a token opens what is asked for. What an agent tries to change in vain is recorded where it plays a part in a guarded run.
    fn expect_scope(&self, who: &Who, needs: Needs, changed: Option<&str>) -> Result<(), Problem> {
        if needs.is_met_by(who.scope) {
            return Ok(());
        }
        let what = format!("a token of scope {} does not open this", who.scope.as_str());
        if let (Some(bound), Some(path)) = (&who.bound, changed) {
            let (engine, agent) = (self.house.engine.clone(), bound.agent.clone());
            let (path, why) = (shown(path), what.clone());
            // Nobody waits for it: it is refused all the same.
            drop(tokio::task::spawn_blocking(move || engine.refuse_player(&agent, &path, &why)));
        }
        Err(Problem::scope(what).cause(format!("these do: {}", needs.scopes().join(", "))))
    }

    /// Whoever guesses is slowed down, and whoever has a token is not.
    pub(crate) fn count_refusal(&self) -> Result<(), Problem> {
        let mut refusals = self.refusals.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = Instant::now();
        if refusals.0.is_none_or(|since| now.duration_since(since) > Duration::from_secs(1)) {
            *refusals = (Some(now), 0);
        }
        refusals.1 += 1;
        match refusals.1 > REFUSALS_PER_SECOND_MAX {
            true => Err(Problem::too_many("too many wrong tokens: wait a second")),
            false => Ok(()),
        }
    }

    fn enter(&self, route: &Route) -> Result<OwnedSemaphorePermit, Problem> {
        let (places, what) = match route.gives {
            Gives::Events => (&self.streams, "streams"),
            Gives::Reply(_) => (&self.held, "messages"),
            _ => (&self.requests, "requests"),
        };
        place_in(places, what)
    }

    /// Waits until all streams have ended, those over WebSockets too, within a bound.
    pub async fn wait_for_streams(&self) {
        let all = self.streams.acquire_many(u32::try_from(STREAMS_MAX).unwrap_or(u32::MAX));
        let _ = tokio::time::timeout(DRAIN_WAIT, all).await;
    }

    /// A place among the streams, for whoever keeps one by itself.
    pub fn enter_streams(&self) -> Result<OwnedSemaphorePermit, Problem> {
        place_in(&self.streams, "streams")
    }
}

/// The parts of a path that have names.
type Parts = Vec<(String, String)>;

/// The parts of a path as text, or that they are none.
fn parts(params: Result<RawPathParams, RawPathParamsRejection>) -> Result<Parts, Problem> {
    let params = params.map_err(|_| Problem::form("the path: what is written with % is not UTF-8"))?;
    Ok(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn place_in(places: &Arc<Semaphore>, what: &str) -> Result<OwnedSemaphorePermit, Problem> {
    let full = |_| Problem::overloaded(format!("too many {what} at once: try again in a moment"));
    places.clone().try_acquire_owned().map_err(full)
}

/// Runs a handler, unless the same request was answered already.
async fn once(
    server: Arc<Server>,
    route: &'static Route,
    mut asked: Asked,
    key: Option<[u8; 32]>,
    digest: baton_core::Digest,
    place: OwnedSemaphorePermit,
) -> Answer {
    let Some(key) = key else {
        let response = (route.handler)(asked).await?;
        return Ok(match route.gives {
            // A stream keeps its place until it ends, and so does an answer that takes its time.
            Gives::Events | Gives::Reply(_) | Gives::Bytes => keep(response, place),
            _ => response,
        });
    };
    let moment = server.house.engine.ground().clock.moment();
    match server.once.begin(key, digest, moment)? {
        Before::Answered(kept) => return Ok(kept),
        Before::Nothing => asked.moment = Some(moment),
        Before::Begun(moment) => asked.begun = Some(Begun { key, moment }),
    }
    let answer = (route.handler)(asked).await;
    server.once.end(key, answer).await
}

/// Lets something go with the body of a response, and not before.
pub(crate) fn keep<T: Send + 'static>(response: Response, held: T) -> Response {
    let (head, body) = response.into_parts();
    let body = body.into_data_stream().map(move |chunk| {
        let _ = &held;
        chunk
    });
    Response::from_parts(head, Body::from_stream(body))
}

/// What makes two requests the same: who asks, for what, with which key.
fn idempotency_key(
    headers: &HeaderMap,
    who: Option<&Who>,
    route: &Route,
    path: &[(String, String)],
) -> Result<Option<[u8; 32]>, Problem> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= KEY_CHARS_MAX);
    let expected = format!("Idempotency-Key: expected 1 to {KEY_CHARS_MAX} printable characters");
    let key = key.ok_or_else(|| Problem::form(expected))?;
    let token = who.map_or("", |who| who.token.as_str());
    let parts: Vec<&str> = path.iter().map(|(_, value)| value.as_str()).collect();
    let text = [token, route.verb.as_str(), route.path, &parts.join("/"), key].join("\n");
    Ok(Some(sha256(text.as_bytes()).0))
}

async fn read_body(route: &Route, headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let (max, is_json) = match route.takes {
        Takes::Nothing => return Ok(Bytes::new()),
        // Where nothing has to be said, saying nothing will do.
        Takes::Fields(fields) if body.is_end_stream() && !fields.iter().any(|field| field.is_required) => {
            return Ok(Bytes::from_static(b"{}"));
        }
        Takes::Fields(_) | Takes::Json(_) => (JSON_BODY_BYTES_MAX, true),
        Takes::Bytes => (RAW_BODY_BYTES_MAX, false),
    };
    if is_json {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let what = format!("Content-Type: expected application/json, got {:?}", shown(kind));
            return Err(Problem::media_type(what));
        }
    }
    let too_large = || Problem::too_large(format!("the body: expected at most {max} bytes"));
    if body.size_hint().lower() > max as u64 {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let mut chunks = body.into_data_stream();
    let read = async {
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| Problem::form(format!("the body ends early: {error}")))?;
            if bytes.len() + chunk.len() > max {
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(())
    };
    let late =
        |_| Err(Problem::too_slow(format!("the body did not arrive within {} s", BODY_WAIT.as_secs())));
    tokio::time::timeout(BODY_WAIT, read).await.unwrap_or_else(late)?;
    Ok(bytes.into())
}

/// Reads JSON within bounds of depth, which the parser has, and of number.
pub(crate) fn parse(body: &[u8]) -> Result<Value, Problem> {
    // Every value but the first follows one of these.
    let values = body.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{' | b':')).count();
    if values > JSON_VALUES_MAX {
        return Err(Problem::too_large(format!("the body: expected at most {JSON_VALUES_MAX} values")));
    }
    // Strictly: of two members of the same name nobody knows which was meant.
    baton_core::json::parse(body)
        .map_err(|error| Problem::form(format!("the body does not read as JSON: {error}")))
}
