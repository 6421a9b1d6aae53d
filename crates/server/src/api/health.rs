//! Whether the server is there, whether it can do its work, and what it counts.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::json;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use crate::access::Needs;
use crate::asked::{Answer, Asked, ok};
use crate::openapi;
use crate::problem::Problem;
use crate::routes::{Gives, Route, Takes, Verb, handler};
use crate::schema::Shape;

pub const ROUTES: &[Route] = &[
    Route {
        verb: Verb::Get,
        path: "/healthz",
        name: "isAlive",
        summary: "Whether the process answers. Needs no token and says nothing else.",
        needs: Needs::Nothing,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Health),
        handler: handler!(alive),
    },
    Route {
        verb: Verb::Get,
        path: "/readyz",
        name: "isReady",
        summary: "Whether requests are taken: the ledger is open and the server does not end.",
        needs: Needs::Nothing,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Health),
        handler: handler!(ready),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/health",
        name: "getHealth",
        summary: "Whether the server answers, and the token is good, and for what.",
        needs: Needs::Token,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Health),
        handler: handler!(alive),
    },
    Route {
        verb: Verb::Get,
        path: "/metrics",
        name: "getMetrics",
        summary: "What is counted, as Prometheus reads it.",
        needs: Needs::LookAtAll,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Text,
        handler: handler!(metrics),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/openapi.json",
        name: "getDescription",
        summary: "The description of this interface.",
        needs: Needs::Token,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Document),
        handler: handler!(description),
    },
];

async fn alive(asked: Asked) -> Answer {
    let mut shown = json!({"status": "ok"});
    if let Some(who) = &asked.who {
        shown["scope"] = who.scope.as_str().into();
    }
    ok(&shown)
}

async fn ready(asked: Asked) -> Answer {
    if *asked.server.ending.borrow() {
        return Err(Problem::ended("the server ends"));
    }
    // A disk that hangs would hold this up, as it would everything else.
    asked
        .apart(|server| {
            server.house.engine.look(|_| ()).map_err(|fault| server.house.commands.explain(fault))
        })
        .await?;
    ok(&json!({"status": "ok"}))
}

async fn description(_: Asked) -> Answer {
    ok(&openapi::document())
}

async fn metrics(asked: Asked) -> Answer {
    let text = asked
        .apart(|server| {
            let mut text = baton_runtime::telemetry::metrics().render();
            let by_status = server.house.engine.look(|board| {
                baton_core::task::Status::ALL
                    .iter()
                    .map(|status| (*status, board.with_status(*status).count()))
                    .collect::<Vec<_>>()
            });
            let by_status = by_status.map_err(|fault| server.house.commands.explain(fault))?;
            let mut say = |line: std::fmt::Arguments<'_>| {
                let _ = writeln!(text, "{line}");
            };
            say(format_args!("# HELP baton_tasks Tasks by status.\n# TYPE baton_tasks gauge"));
            for (status, count) in by_status {
                say(format_args!("baton_tasks{{status=\"{status}\"}} {count}"));
            }
            say(format_args!("# HELP baton_sessions Sessions that run.\n# TYPE baton_sessions gauge"));
            say(format_args!("baton_sessions {}", server.house.broker.live().len()));
            say(format_args!("# HELP baton_events_total Events in the ledger.\n# TYPE baton_events_total counter"));
            say(format_args!("baton_events_total {}", server.house.engine.ground().journal.size()));
            say(format_args!("# HELP baton_http_answers_total Answers by the class of their status.\n# TYPE baton_http_answers_total counter"));
            for (class, count) in (1..).zip(&server.counts.by_class) {
                say(format_args!("baton_http_answers_total{{class=\"{class}xx\"}} {}", count.load(Ordering::Relaxed)));
            }
            Ok(text)
        })
        .await?;
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}
