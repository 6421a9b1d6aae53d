//! The page, and the way in for people: the link that `baton serve` prints has a token in it, which becomes a cookie, so that it is in no address any more.
//!
//! What is served here holds nothing: everything that the page shows it asks for like any other client. Whoever browses without a token, or with a wrong one,
//! gets the page too, which says so and asks for one.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

use crate::access::{Needs, cookie};
use crate::asked::{Answer, Asked, shown};
use crate::field::{Field, Kind, may};
use crate::pages;
use crate::problem::Problem;
use crate::routes::{Gives, Handler, Route, Takes, Verb, handler};

const TOKEN: Field = may("token", Kind::Text(256), "A token, as in the link that `baton serve` prints.");

pub const ROUTES: &[Route] = &[Route {
    name: "getPage",
    summary: "The page. With a token in the query, that becomes a cookie of this server's own pages.",
    ..screen("/")
}];

/// The other addresses of the page, and what it is made of: for browsers, and so described nowhere.
pub const ASIDE: &[Route] = &[
    screen("/tasks/{id}"),
    screen("/sessions"),
    screen("/sessions/{id}"),
    screen("/traces"),
    screen("/traces/{id}"),
    screen("/health"),
    plain("/assets/{file}", &[], handler!(asset)),
];

/// Any other address that a person may come by: the page says that there is nothing.
const NOWHERE: Route = plain("", &[TOKEN], handler!(nowhere));

/// The page, for a person who came to an address that no route has. Programs are told that in their own way, and what is below `/v1/` is theirs.
pub(crate) fn beside(methods: &[&'static Route], head: &Parts) -> Option<&'static Route> {
    let is_asked = methods.is_empty() && matches!(head.method, Method::GET | Method::HEAD);
    (is_asked && is_for_people(&head.headers) && !head.uri.path().starts_with("/v1/")).then_some(&NOWHERE)
}

/// Whether a browser asks for something to be shown, rather than a program: these take anything, or say nothing.
pub(crate) fn is_for_people(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|line| line.split(',')).any(|kind| kind.trim_start().starts_with("text/html"))
}

const fn screen(path: &'static str) -> Route {
    plain(path, &[TOKEN], handler!(page))
}

const fn plain(path: &'static str, query: &'static [Field], handler: Handler) -> Route {
    Route {
        verb: Verb::Get,
        path,
        name: "",
        summary: "",
        needs: Needs::Nothing,
        query,
        takes: Takes::Nothing,
        gives: Gives::Page,
        handler,
    }
}

/// What stands there where the page was not built.
const UNBUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Baton</title>\
    <p>Baton answers here. This build has no page: <code>make page</code> builds it, and <code>/v1/openapi.json</code> describes what else there is.</p></html>\n";

/// Nothing from elsewhere, nothing within a page of somebody else, and no text that becomes a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'none'; connect-src 'self'; base-uri 'none'; \
    form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// How long a browser remembers that a token was not accepted: until the page has said so.
const REFUSED_S: u32 = 60;

async fn page(asked: Asked) -> Answer {
    show(asked, StatusCode::OK).await
}

async fn nowhere(asked: Asked) -> Answer {
    show(asked, StatusCode::NOT_FOUND).await
}

/// The page, which holds nothing, for everybody; or the way in, where the address has a token.
async fn show(asked: Asked, status: StatusCode) -> Answer {
    if let Some(token) = token_of(&asked) {
        return enter(asked, token).await;
    }
    index(asked, status).await
}

async fn enter(asked: Asked, token: String) -> Answer {
    let server = asked.server.clone();
    let key = asked
        .apart(move |server| {
            let key = server.tokens.key_of(&token, &server.cookie);
            key.map_err(|error| Problem::unexpected(error.to_string()))
        })
        .await?;
    let cookie = match key {
        Some(key) => format!("{}={key}", server.cookie),
        None => {
            server.count_refusal()?;
            if !is_for_people(&asked.headers) {
                return Err(Problem::token("the token of this link is not known here, or its time is over"));
            }
            // Beside the other: a link that somebody made up logs nobody out.
            format!("{}=1; Max-Age={REFUSED_S}", cookie::refusal_cookie(&server.cookie))
        }
    };
    // To the same place without it: what is in an address is kept in histories and shown on screens.
    let mut response = html(StatusCode::SEE_OTHER, Body::empty());
    let headers = response.headers_mut();
    let unread = |_| Problem::token("the token of this link does not read");
    headers.insert(header::LOCATION, HeaderValue::from_str(&without_token(&asked)).map_err(unread)?);
    let secure = if server.is_tls { "; Secure" } else { "" };
    let cookie = format!("{cookie}; Path=/; HttpOnly; SameSite=Strict{secure}");
    headers.insert(header::SET_COOKIE, HeaderValue::from_str(&cookie).map_err(unread)?);
    Ok(response)
}

/// The token of the address, as it stands there: a page is shown whatever somebody put there.
fn token_of(asked: &Asked) -> Option<String> {
    let query = asked.uri.query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "token")
        .map(|(_, token)| token.into_owned())
}

/// The address that was asked for, but for the token.
fn without_token(asked: &Asked) -> String {
    // Two slashes would lead to another server.
    let is_elsewhere = |path: &&str| path.starts_with("//") || path.starts_with("/\\");
    let path = Some(asked.uri.path()).filter(|path| !is_elsewhere(path)).unwrap_or("/");
    let query = asked.uri.query().unwrap_or_default();
    let rest = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != "token");
    let rest = form_urlencoded::Serializer::new(String::new()).extend_pairs(rest).finish();
    if rest.is_empty() { path.to_owned() } else { format!("{path}?{rest}") }
}

async fn index(asked: Asked, status: StatusCode) -> Answer {
    let takes_gzip = pages::takes_gzip(&asked.headers);
    let found = asked.apart(move |_| Ok(pages::find("index.html", takes_gzip))).await?;
    let Some(file) = found else { return Ok(html(status, Body::from(UNBUILT))) };
    let is_gzip = file.is_gzip;
    let mut response = html(status, Body::from(file.bytes));
    encoded(response.headers_mut(), is_gzip);
    Ok(response)
}

async fn asset(asked: Asked) -> Answer {
    let name = asked.part("file").to_owned();
    let none = Problem::no_route(format!("there is nothing at /assets/{}", shown(&name)));
    if !pages::is_plain(&name) {
        return Err(none);
    }
    let (takes_gzip, path) = (pages::takes_gzip(&asked.headers), format!("assets/{name}"));
    let file = asked.apart(move |_| Ok(pages::find(&path, takes_gzip))).await?.ok_or(none)?;
    let mut response = Response::new(Body::from(file.bytes));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(pages::media_type(&name)));
    let kept = match pages::is_hashed(&name) {
        true => "public, max-age=31536000, immutable",
        // The next version has another one under the same name.
        false => "no-cache",
    };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    encoded(headers, file.is_gzip);
    Ok(response)
}

fn encoded(headers: &mut HeaderMap, is_gzip: bool) {
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if is_gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
}

fn html(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    // No address is passed on.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
