//! What a request or a tool takes: declared once, as a schema for clients and as a check of what comes.

use baton_core::Timestamp;
use baton_core::ids::{AgentName, TaskId};
use baton_core::limits::INTEGER_MAX;
use baton_core::nearest::nearest;
use serde_json::{Map, Value, json};

/// One argument.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub is_required: bool,
    pub help: &'static str,
}

/// What may stand there.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A text of this many characters at most.
    Text(usize),
    /// One of a few words.
    Word(&'static [&'static str]),
    /// A whole id of a task.
    Task,
    /// Texts: how many, and how long each.
    List(usize, usize),
    /// A number from the first to the second.
    Number(u64, u64),
    Flag,
    /// An agent's name.
    Agent,
    /// A moment, as RFC 3339 has it.
    Time,
    /// An object whose keys others judge.
    Object,
    /// A part of one, from 0 to 1.
    Share,
    /// How many tests there are, and what became of them.
    Counts,
}

/// Names of [`Kind::Counts`].
const COUNTS: [&str; 3] = ["total", "passed", "failed"];

/// Arguments that fit their declaration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// All of them, by name.
    pub fn all(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Checks everything that came, or says what is wrong with the first that does not fit.
    pub fn check(fields: &[Field], mut given: Map<String, Value>) -> Result<Self, String> {
        for name in given.keys() {
            if !fields.iter().any(|field| field.name == name) {
                let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
                let shown: String = name.chars().take(80).collect();
                let near = nearest(name, known.iter().copied(), 1);
                let meant = near.first().map(|near| format!("; did you mean {near}?"));
                let meant = meant.unwrap_or_else(|| match known.is_empty() {
                    true => "; it takes none".to_owned(),
                    false => format!("; it takes {}", known.join(", ")),
                });
                return Err(format!("there is no argument {shown:?}{meant}"));
            }
        }
        let mut taken = Map::new();
        for field in fields {
            match given.remove(field.name) {
                // Clients send `null` for what is not given.
                None | Some(Value::Null) if field.is_required => {
                    return Err(format!("{} is missing: {}", field.name, field.help));
                }
                None | Some(Value::Null) => {}
                Some(value) => {
                    let fits = field.kind.fits(&value);
                    fits.map_err(|why| format!("{}: {why}, got {}", field.name, shown(&value)))?;
                    taken.insert(field.name.to_owned(), value);
                }
            }
        }
        Ok(Arguments(taken))
    }

    /// Checks arguments that came as text, such as those of a query.
    pub fn check_text(fields: &[Field], given: &[(String, String)]) -> Result<Self, String> {
        let mut map = Map::new();
        for (name, text) in given {
            let kind = fields.iter().find(|field| field.name == name).map(|field| field.kind);
            let value = match kind {
                Some(Kind::Number(..)) => {
                    text.parse::<u64>().map_or_else(|_| text.as_str().into(), Value::from)
                }
                Some(Kind::Flag) if text == "true" || text == "false" => (text == "true").into(),
                Some(Kind::List(..)) => {
                    let mut items = map.remove(name).and_then(|before| before.as_array().cloned());
                    items.get_or_insert_default().push(text.as_str().into());
                    items.into()
                }
                _ if map.contains_key(name) => return Err(format!("{name}: expected it once")),
                _ => text.as_str().into(),
            };
            map.insert(name.clone(), value);
        }
        Arguments::check(fields, map)
    }

    /// The value as it came.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// A text that was found to read as this.
    pub fn parsed<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).and_then(|text| text.parse().ok())
    }

    pub fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.get(name).and_then(Value::as_object)
    }

    pub fn is_set(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Bool(true))
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(Value::as_u64)
    }

    pub fn list(&self, name: &str) -> impl Iterator<Item = &str> {
        self.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }
}

impl Kind {
    fn fits(self, value: &Value) -> Result<(), String> {
        let text = |max: usize| match value.as_str() {
            Some(text) if text.chars().count() <= max => Ok(()),
            Some(text) => Err(format!(
                "expected at most {max} characters, which {} characters are not",
                text.chars().count()
            )),
            None => Err("expected a text".to_owned()),
        };
        match self {
            Kind::Text(max) => text(max),
            Kind::Word(words) => match value.as_str() {
                Some(word) if words.contains(&word) => Ok(()),
                _ => Err(format!("expected one of {}", words.join(", "))),
            },
            Kind::Task => match value.as_str().map(str::parse::<TaskId>) {
                Some(Ok(_)) => Ok(()),
                _ => Err("expected the whole id of a task, such as TASK-2026-02-09-057".to_owned()),
            },
            Kind::List(items_max, chars_max) => match value.as_array() {
                Some(items) if items.len() > items_max => Err(format!("expected at most {items_max} items")),
                Some(items) => items.iter().try_for_each(|item| match item.as_str() {
                    Some(text) if text.chars().count() <= chars_max => Ok(()),
                    _ => Err(format!("expected texts of at most {chars_max} characters")),
                }),
                None => Err("expected a list of texts".to_owned()),
            },
            Kind::Number(min, max) => match value.as_u64() {
                Some(number) if (min..=max).contains(&number) => Ok(()),
                _ => Err(format!("expected a whole number from {min} to {max}")),
            },
            Kind::Flag => value.as_bool().map(drop).ok_or_else(|| "expected true or false".to_owned()),
            Kind::Agent => match value.as_str().map(str::parse::<AgentName>) {
                Some(Ok(_)) => Ok(()),
                _ => Err("expected the name of an agent".to_owned()),
            },
            Kind::Time => match value.as_str().map(str::parse::<Timestamp>) {
                Some(Ok(_)) => Ok(()),
                _ => Err("expected a time such as 2026-02-09T12:00:00.000Z".to_owned()),
            },
            Kind::Share => match value.as_f64() {
                Some(share) if (0.0..=1.0).contains(&share) => Ok(()),
                _ => Err("expected a number from 0 to 1".to_owned()),
            },
            Kind::Object => value.as_object().map(drop).ok_or_else(|| "expected an object".to_owned()),
            Kind::Counts => {
                let number = |value: &Value| value.as_u64().filter(|n| *n <= INTEGER_MAX.unsigned_abs());
                let are_known = |map: &Map<String, Value>| {
                    map.len() == COUNTS.len()
                        && COUNTS.iter().all(|name| map.get(*name).and_then(number).is_some())
                };
                match value.as_object().is_some_and(are_known) {
                    true => Ok(()),
                    false => Err("expected {total, passed, failed}, whole numbers".to_owned()),
                }
            }
        }
    }

    /// What may stand there, in words for people.
    pub fn words(self) -> String {
        match self {
            Kind::Text(max) => format!("text, at most {max} characters"),
            Kind::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
            Kind::Task => "id of a task, whole".to_owned(),
            Kind::List(items, chars) => format!("at most {items} texts of at most {chars} characters"),
            Kind::Number(min, max) if max > 1 << 40 => format!("number from {min}"),
            Kind::Number(min, max) => format!("number from {min} to {max}"),
            Kind::Flag => "`true` or `false`".to_owned(),
            Kind::Agent => "name of an agent".to_owned(),
            Kind::Time => "time, such as `2026-02-09T12:00:00.000Z`".to_owned(),
            Kind::Share => "number from 0 to 1".to_owned(),
            Kind::Object => "object".to_owned(),
            Kind::Counts => "{`total`, `passed`, `failed`}, numbers".to_owned(),
        }
    }

    /// The JSON Schema of a value.
    pub fn schema(self) -> Value {
        match self {
            Kind::Text(max) => json!({"type": "string", "maxLength": max}),
            Kind::Word(words) => json!({"type": "string", "enum": words}),
            Kind::Task => {
                json!({"type": "string", "pattern": "^TASK-[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{3,9}$", "maxLength": 128})
            }
            Kind::List(items_max, chars_max) => json!({
                "type": "array", "maxItems": items_max,
                "items": {"type": "string", "maxLength": chars_max},
            }),
            Kind::Number(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
            Kind::Flag => json!({"type": "boolean"}),
            Kind::Agent => json!({"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"}),
            Kind::Time => json!({"type": "string", "format": "date-time", "maxLength": 40}),
            Kind::Share => json!({"type": "number", "minimum": 0, "maximum": 1}),
            Kind::Object => json!({"type": "object"}),
            Kind::Counts => {
                let count = json!({"type": "integer", "minimum": 0});
                let properties: Map<String, Value> =
                    COUNTS.iter().map(|name| ((*name).to_owned(), count.clone())).collect();
                json!({
                    "type": "object", "properties": properties, "required": COUNTS,
                    "additionalProperties": false,
                })
            }
        }
    }
}

/// An argument that has to be there.
pub const fn needed(name: &'static str, kind: Kind, help: &'static str) -> Field {
    Field { name, kind, is_required: true, help }
}

/// An argument that may be there.
pub const fn may(name: &'static str, kind: Kind, help: &'static str) -> Field {
    Field { name, kind, is_required: false, help }
}

/// The JSON Schema of what is taken.
pub fn schema(fields: &[Field]) -> Map<String, Value> {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| {
            let mut schema = field.kind.schema();
            schema["description"] = field.help.into();
            (field.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<&str> =
        fields.iter().filter(|field| field.is_required).map(|field| field.name).collect();
    Map::from_iter([
        ("type".to_owned(), "object".into()),
        ("properties".to_owned(), properties.into()),
        ("required".to_owned(), required.into()),
        ("additionalProperties".to_owned(), false.into()),
    ])
}

/// The beginning of a value, for a message.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    let start: String = text.chars().take(80).collect();
    if start.len() < text.len() { format!("{start}…") } else { start }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [Field; 7] = [
        Field { name: "text", kind: Kind::Text(3), is_required: true, help: "Some text." },
        Field { name: "word", kind: Kind::Word(&["a", "b"]), is_required: false, help: "" },
        Field { name: "task", kind: Kind::Task, is_required: false, help: "" },
        Field { name: "list", kind: Kind::List(2, 3), is_required: false, help: "" },
        Field { name: "number", kind: Kind::Number(1, 9), is_required: false, help: "" },
        Field { name: "flag", kind: Kind::Flag, is_required: false, help: "" },
        Field { name: "tests", kind: Kind::Counts, is_required: false, help: "" },
    ];

    fn check(given: Value) -> Result<Arguments, String> {
        let Value::Object(mut given) = given else { panic!("an object") };
        given.entry("text").or_insert("abc".into());
        Arguments::check(&FIELDS, given)
    }

    #[test]
    fn what_fits_is_taken_and_what_is_null_is_absent() {
        let taken = check(json!({
            "text": "äöü", "word": "b", "task": "TASK-2026-02-09-057", "list": ["x", "yyy"], "number": 9,
            "flag": true, "tests": {"total": 2, "passed": 1, "failed": 0},
        }));
        let taken = taken.unwrap();
        assert_eq!(
            (taken.text("text"), taken.number("number"), taken.is_set("flag")),
            (Some("äöü"), Some(9), true)
        );
        assert_eq!(taken.list("list").collect::<Vec<_>>(), ["x", "yyy"]);
        assert_eq!(check(json!({"word": null})), check(json!({})));
    }

    #[test]
    fn what_does_not_fit_says_what_was_expected_and_what_came() {
        for (given, says) in [
            (json!({"text": null}), "text is missing: Some text."),
            (json!({"text": "abcd"}), "at most 3 characters, which 4 characters are not, got \"abcd\""),
            (json!({"text": ["abc"]}), "text: expected a text, got [\"abc\"]"),
            (json!({"word": "c"}), "word: expected one of a, b, got \"c\""),
            (json!({"task": "--help"}), "task: expected the whole id"),
            (json!({"task": 7}), "task: expected the whole id"),
            (json!({"list": ["a", "b", "c"]}), "list: expected at most 2 items"),
            (json!({"list": ["abcd"]}), "list: expected texts of at most 3 characters"),
            (json!({"list": "a"}), "list: expected a list of texts"),
            (json!({"number": 10}), "number: expected a whole number from 1 to 9, got 10"),
            (json!({"number": 1.5}), "number: expected a whole number from 1 to 9"),
            (json!({"flag": "yes"}), "flag: expected true or false"),
            (json!({"tests": {"total": 1}}), "tests: expected {total, passed, failed}"),
            (json!({"txet": 1}), "there is no argument \"txet\"; did you mean text?"),
            (json!({"zzzzzzzz": 1}), "it takes text, word, task, list, number, flag, tests"),
        ] {
            let error = check(given.clone()).unwrap_err();
            assert!(error.contains(says), "{given}: {error}");
        }
        let long = check(json!({"word": "x".repeat(1 << 20)})).unwrap_err();
        assert!(long.len() < 200, "what is repeated is bounded");
    }
}
