//! The page, and the way in for people: the link that `baton serve` prints has a token in it, which becomes a cookie, so that it is in no address any more.
//!
//! What is served here holds nothing: everything that the page shows it asks for like any other client.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;

use crate::access::Needs;
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

async fn page(asked: Asked) -> Answer {
    let Some(token) = asked.query.text("token").map(str::to_owned) else {
        return index(asked).await;
    };
    let server = asked.server.clone();
    let known = asked
        .apart(move |server| {
            let found = server.tokens.find(&token).map_err(|error| Problem::unexpected(error.to_string()))?;
            Ok(found.map(|_| token))
        })
        .await?;
    let Some(token) = known else {
        server.count_refusal()?;
        return Err(Problem::token("the token of this link is not known here, or its time is over"));
    };
    // To the same place without it: what is in an address is kept in histories and shown on screens.
    let mut response = html(StatusCode::SEE_OTHER, Body::empty());
    let headers = response.headers_mut();
    let unread = |_| Problem::token("the token of this link does not read");
    headers.insert(header::LOCATION, HeaderValue::from_str(&without_token(&asked)).map_err(unread)?);
    let secure = if server.is_tls { "; Secure" } else { "" };
    let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Strict{secure}", server.cookie);
    headers.insert(header::SET_COOKIE, HeaderValue::from_str(&cookie).map_err(unread)?);
    Ok(response)
}

/// The address that was asked for, but for the token. It is one of ours, since its route was found.
fn without_token(asked: &Asked) -> String {
    let (path, query) = (asked.uri.path(), asked.uri.query().unwrap_or_default());
    let rest = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != "token");
    let rest = form_urlencoded::Serializer::new(String::new()).extend_pairs(rest).finish();
    if rest.is_empty() { path.to_owned() } else { format!("{path}?{rest}") }
}

async fn index(asked: Asked) -> Answer {
    let takes_gzip = pages::takes_gzip(&asked.headers);
    let found = asked.apart(move |_| Ok(pages::find("index.html", takes_gzip))).await?;
    let Some(file) = found else { return Ok(html(StatusCode::OK, Body::from(UNBUILT))) };
    let is_gzip = file.is_gzip;
    let mut response = html(StatusCode::OK, Body::from(file.bytes));
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
