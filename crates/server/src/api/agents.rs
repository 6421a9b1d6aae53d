//! Who can be given work, and where.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::access::Needs;
use crate::asked::{Answer, Asked, ok};
use crate::routes::{Gives, Route, Takes, Verb, handler};
use crate::schema::Shape;

pub const ROUTES: &[Route] = &[
    Route {
        verb: Verb::Get,
        path: "/v1/agents",
        name: "listAgents",
        summary: "The agents of the configuration.",
        needs: Needs::LookAtAll,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Agents),
        handler: handler!(list),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/nodes",
        name: "listNodes",
        summary: "The processes that work on this board: this one.",
        needs: Needs::LookAtAll,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::Nodes),
        handler: handler!(nodes),
    },
];

async fn list(asked: Asked) -> Answer {
    let running = asked.server.house.broker.load(usize::MAX).running;
    let agents: Vec<Value> = asked
        .server
        .house
        .broker
        .agents()
        .iter()
        .map(|(name, spec)| {
            let count = running.get(name).copied().unwrap_or(0);
            json!({
                // `id` and `installed` are what clients of the ACP transport read.
                "id": name.as_str(), "name": name.as_str(), "harness": spec.harness(),
                "installed": true, "sessions": count,
            })
        })
        .collect();
    ok(&json!({"v": 1, "agents": agents}))
}

async fn nodes(asked: Asked) -> Answer {
    let house = &asked.server.house;
    let sessions: usize = house.broker.load(usize::MAX).running.values().sum();
    let node = json!({
        "id": house.engine.ground().boot, "pid": std::process::id(), "version": env!("CARGO_PKG_VERSION"),
        "sessions": sessions,
    });
    ok(&json!({"v": 1, "nodes": [node]}))
}
