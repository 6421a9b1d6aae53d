//! The JSON Schema (2020-12) of `baton.toml`, for editors, made from the table.

use baton_core::duration;
use serde_json::{Map, Value, json};

use super::check::{NEEDS, TAKEN};
use super::table::{AGENT, BuiltIn, HARNESSES, Key, SECTIONS, TABLE, about};
use super::value::{Form, Kind};
use crate::limits::{SETTING_CHARS_MAX, SETTING_ITEMS_MAX};

/// Text that an agent's name has to match.
const AGENT_PATTERN: &str = "^[a-z0-9][a-z0-9._-]{0,63}$";

/// The whole schema.
pub(crate) fn schema() -> Value {
    let mut properties = Map::new();
    for (section, doc) in SECTIONS {
        let mut of = match section {
            "agents" => agents(),
            _ => object(TABLE.iter().filter(|key| key.section == section)),
        };
        of["description"] = json!(about(section, doc));
        properties.insert(section.to_owned(), of);
    }
    properties["server"]["properties"]["tls"]["required"] = json!(["cert", "key"]);
    properties["notify"]["properties"]["webhook"]["required"] = json!(["url", "secret_env"]);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "baton.toml",
        "description": "Configuration of Baton. Made from the table in crates/cli/src/config/table.rs.",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}

/// A table with these keys and no others; a dotted name lies in a table of its own.
fn object<'a>(keys: impl Iterator<Item = &'a Key>) -> Value {
    let empty = || json!({"type": "object", "additionalProperties": false, "properties": {}});
    let mut object = empty();
    for key in keys {
        let mut place = &mut object;
        let mut parts = key.name.split('.').peekable();
        while let Some(part) = parts.next() {
            place = &mut place["properties"][part];
            if parts.peek().is_some() && place.is_null() {
                *place = empty();
            }
        }
        *place = describe(key);
    }
    object
}

fn describe(key: &Key) -> Value {
    let mut value = kind(&key.kind);
    let mut doc = key.doc.to_owned();
    if !key.only.is_empty() {
        doc.push_str(&format!(" Harness {} only.", key.only.join(", ")));
    }
    match key.default {
        BuiltIn::Value(text) => {
            value["default"] = key.kind.parse(text).map_or(Value::Null, |value| value.to_json());
        }
        BuiltIn::Absent(meaning) => doc.push_str(&format!(" Not set: {meaning}.")),
    }
    value["description"] = json!(doc);
    value
}

fn kind(of: &Kind) -> Value {
    match of {
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Integer { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Duration { .. } => json!({"type": "string", "pattern": duration::PATTERN}),
        Kind::Text(of) => form(*of),
        Kind::OneOf(words) => json!({"enum": words}),
        Kind::Command => json!({"anyOf": [form(Form::Any), kind(&super::value::WORDS)]}),
        Kind::List { of, min: 0 } => {
            json!({"type": "array", "items": kind(of), "maxItems": SETTING_ITEMS_MAX})
        }
        Kind::List { of, min } => json!({
            "type": "array",
            "prefixItems": [kind(of)],
            "items": {"type": "string"},
            "minItems": min,
            "maxItems": SETTING_ITEMS_MAX,
        }),
        Kind::Map { names, of } => {
            json!({"type": "object", "propertyNames": form(*names), "additionalProperties": kind(of)})
        }
    }
}

fn form(of: Form) -> Value {
    let pattern = |pattern: &str| json!({"type": "string", "pattern": pattern});
    match of {
        Form::Any | Form::Path => json!({"type": "string", "minLength": 1, "maxLength": SETTING_CHARS_MAX}),
        Form::Open => json!({"type": "string", "maxLength": SETTING_CHARS_MAX}),
        Form::Url(schemes) => pattern(&format!("^({})://[^/\\s]\\S*$", schemes.join("|"))),
        Form::Variable => pattern("^[A-Za-z_][A-Za-z0-9_]*$"),
        Form::Address => pattern("^(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9.-]+):[0-9]{1,5}$"),
        Form::Agent => pattern(AGENT_PATTERN),
        Form::Name => pattern("^[A-Za-z0-9._-]{1,128}$"),
    }
}

fn agents() -> Value {
    let mut agent = object(AGENT.iter());
    let mut mock = agent.clone();
    agent["required"] = json!(["harness"]);
    let mut rules = Vec::new();
    for harness in HARNESSES {
        let others: Map<String, Value> = AGENT
            .iter()
            .filter(|key| !key.only.is_empty() && !key.only.contains(&harness))
            .map(|key| (key.name.to_owned(), json!(false)))
            .collect();
        let mut then = json!({"properties": others});
        if let Some((_, keys)) = NEEDS.iter().find(|(of, keys)| *of == harness && !keys.is_empty()) {
            then["required"] = json!(keys);
        }
        rules.push(json!({
            "if": {"properties": {"harness": {"const": harness}}, "required": ["harness"]},
            "then": then,
        }));
    }
    agent["allOf"] = json!(rules);
    mock["properties"]["harness"] =
        json!({"const": "mock", "default": "mock", "description": "How the agent is driven."});
    for key in AGENT.iter().filter(|key| !key.only.is_empty() && !key.only.contains(&"mock")) {
        mock["properties"][key.name] = json!(false);
    }
    json!({
        "type": "object",
        "propertyNames": {"pattern": AGENT_PATTERN, "not": {"enum": TAKEN}},
        "properties": {"mock": mock},
        "additionalProperties": agent,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_in_the_schema_with_its_meaning() {
        let schema = schema();
        let check = |root: &Value, key: &Key| {
            let path = format!("/properties/{}", key.name.replace('.', "/properties/"));
            let found = root.pointer(&path).unwrap_or_else(|| panic!("{}", key.path()));
            assert!(found["description"].as_str().unwrap().starts_with(key.doc), "{}", key.path());
        };
        TABLE.iter().for_each(|key| check(&schema["properties"][key.section], key));
        AGENT.iter().for_each(|key| check(&schema["properties"]["agents"]["additionalProperties"], key));
    }
}
