//! The description of the interface, made from the table of routes: what is described is what is served.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use crate::access::Needs;
use crate::field::{self, Field};
use crate::routes::{self, Gives, Route, Takes};
use crate::schema::{Shape, shapes};

/// The whole document, OpenAPI 3.1.
pub fn document() -> Value {
    let mut paths = Map::new();
    for route in routes::all() {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.verb.as_str().to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Baton",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A control plane for AI coding agents. Errors are problem documents with the codes of the command line.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": shapes(),
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}}))
        .collect();
    parameters.extend(route.query.iter().map(query));
    if route.takes_key() {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "The same request with the same key is done once.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
        }));
    }
    if route.verb.changes() && route.path.starts_with("/v1/tasks/{id}") {
        parameters.push(json!({
            "name": "If-Match", "in": "header", "required": false,
            "description": "The change is made only to the task of this ETag, else answered with 412.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[!-~]+$"},
        }));
    }
    if matches!(route.gives, Gives::Events) {
        parameters.push(json!({
            "name": "Last-Event-ID", "in": "header", "required": false,
            "description": "Goes on after this event.",
            "schema": {"type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_u64},
        }));
    }
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.summary,
        "tags": [tag(route.path)],
        "parameters": parameters,
        "responses": responses(route),
    });
    match route.takes {
        Takes::Nothing => {}
        Takes::Fields(fields) => {
            operation["requestBody"] = body("application/json", &Value::Object(field::schema(fields)));
            operation["requestBody"]["required"] = fields.iter().any(|field| field.is_required).into();
        }
        Takes::Json(shape) => operation["requestBody"] = body("application/json", &reference(shape)),
        Takes::Bytes => {
            operation["requestBody"] =
                body("application/octet-stream", &json!({"type": "string", "format": "binary"}))
        }
    }
    match route.needs {
        Needs::Nothing => operation["security"] = json!([]),
        needs => operation["x-scopes"] = needs.scopes().into(),
    }
    operation
}

/// What a route belongs to: the first word behind the version.
fn tag(path: &str) -> &str {
    let mut parts = path.split('/').skip(1);
    match parts.next() {
        Some("v1") => parts.next().unwrap_or("server"),
        _ => "server",
    }
}

fn query(field: &Field) -> Value {
    json!({
        "name": field.name, "in": "query", "required": field.is_required, "description": field.help,
        "schema": field.kind.schema(),
    })
}

fn body(kind: &str, schema: &Value) -> Value {
    json!({"required": true, "content": {kind: {"schema": schema}}})
}

fn reference(shape: Shape) -> Value {
    json!({"$ref": format!("#/components/schemas/{}", shape.0)})
}

fn responses(route: &Route) -> Value {
    let (status, content) = match route.gives {
        Gives::Json(status, shape) => (status, json!({"application/json": {"schema": reference(shape)}})),
        Gives::Judged(shape) => (StatusCode::OK, json!({"application/json": {"schema": reference(shape)}})),
        Gives::Text => (StatusCode::OK, json!({"text/plain": {"schema": {"type": "string"}}})),
        Gives::Page => (StatusCode::OK, json!({"text/html": {"schema": {"type": "string"}}})),
        Gives::Bytes => (
            StatusCode::OK,
            json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}),
        ),
        Gives::Events => (StatusCode::OK, json!({"text/event-stream": {"schema": {"type": "string"}}})),
        Gives::Empty => (StatusCode::NO_CONTENT, Value::Null),
        Gives::Reply(shape) => (StatusCode::OK, json!({"application/json": {"schema": reference(shape)}})),
        Gives::Socket => (StatusCode::SWITCHING_PROTOCOLS, Value::Null),
    };
    let mut well = json!({"description": "As it should be."});
    if !content.is_null() {
        well["content"] = content;
    }
    let mut responses = json!({
        status.as_str(): well,
        "default": {
            "description": "What went wrong.",
            "content": {"application/problem+json": {"schema": reference(Shape::Problem)}},
        },
    });
    if matches!(route.gives, Gives::Page) {
        responses["303"] = json!({
            "description": "To the page itself, with a cookie.",
            "content": {"text/html": {"schema": {"type": "string"}}},
        });
    }
    if let Gives::Judged(shape) = route.gives {
        responses["422"] = json!({
            "description": "It was refused, and why.",
            "content": {
                "application/json": {"schema": reference(shape)},
                "application/problem+json": {"schema": reference(Shape::Problem)},
            },
        });
    }
    if matches!(route.gives, Gives::Reply(_)) {
        responses[StatusCode::ACCEPTED.as_str()] = json!({"description": "Taken; nothing comes back."});
    }
    responses
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_has_a_name_of_its_own_and_every_shape_is_there() {
        let known = shapes();
        let mut names = BTreeSet::new();
        for route in routes::all() {
            assert!(names.insert(route.name), "{} twice", route.name);
            assert!(route.summary.ends_with('.'), "{}: a sentence", route.name);
            if let Gives::Json(_, shape) | Gives::Judged(shape) = route.gives {
                assert!(known.contains_key(shape.0), "{}", shape.0);
            }
        }
        let text = document().to_string();
        for (at, _) in text.match_indices("#/components/schemas/") {
            let name: String = text[at + 21..].chars().take_while(char::is_ascii_alphanumeric).collect();
            assert!(known.contains_key(&name), "{name}");
        }
    }
}
