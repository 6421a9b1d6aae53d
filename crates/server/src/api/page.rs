//! The way in for people: the link that `baton serve` prints has a token in it, which becomes a cookie, so that it is in no address any more.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use crate::access::Needs;
use crate::asked::{Answer, Asked};
use crate::field::{Kind, may};
use crate::problem::Problem;
use crate::routes::{Gives, Route, Takes, Verb, handler};

pub const ROUTES: &[Route] = &[Route {
    verb: Verb::Get,
    path: "/",
    name: "getPage",
    summary: "The page. With a token in the query, that becomes a cookie of this server's own pages.",
    needs: Needs::Nothing,
    query: &[may("token", Kind::Text(256), "A token, as in the link that `baton serve` prints.")],
    takes: Takes::Nothing,
    gives: Gives::Page,
    handler: handler!(page),
}];

/// What stands there until the page does.
const TEXT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Baton</title>\
    <p>Baton answers here. This build has no page; <code>/v1/openapi.json</code> describes what there is.</p></html>\n";

async fn page(asked: Asked) -> Answer {
    let Some(token) = asked.query.text("token").map(str::to_owned) else {
        return Ok(html(StatusCode::OK, TEXT));
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
    let mut response = html(StatusCode::SEE_OTHER, "");
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::from_static("/"));
    let secure = if server.is_tls { "; Secure" } else { "" };
    let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Strict{secure}", server.cookie);
    match HeaderValue::from_str(&cookie) {
        Ok(cookie) => drop(headers.insert(header::SET_COOKIE, cookie)),
        Err(_) => return Err(Problem::token("the token of this link does not read")),
    }
    Ok(response)
}

fn html(status: StatusCode, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    // Nothing from elsewhere, nothing within a page of somebody else, and no address passed on.
    let policy = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
