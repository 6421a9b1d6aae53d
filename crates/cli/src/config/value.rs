//! Kinds of values, and values: how each is read from TOML and from plain text, what was expected instead, and how it is shown.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use baton_core::duration;
use baton_core::limits::INTEGER_MAX;
use baton_core::{AgentName, Token};
use serde_json::json;
use toml::Spanned;
use toml::de::DeValue;

use crate::limits::{SETTING_CHARS_MAX, SETTING_ITEMS_MAX};
use crate::ui::text::escaped;

/// What may stand behind a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Bool,
    Integer {
        min: i64,
        max: i64,
    },
    /// Bounds in milliseconds.
    Duration {
        min: u64,
        max: u64,
    },
    Text(Form),
    OneOf(&'static [&'static str]),
    /// A text that `sh -c` runs, or a program and its arguments.
    Command,
    /// Texts, at least so many.
    List {
        of: &'static Kind,
        min: usize,
    },
    /// Names, each with a value.
    Map {
        names: Form,
        of: &'static Kind,
    },
}

/// What a text has to look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Any,
    /// May be empty.
    Open,
    Path,
    /// With one of these schemes.
    Url(&'static [&'static str]),
    /// The name of an environment variable.
    Variable,
    /// A host and a port.
    Address,
    Agent,
    /// A tool or a role.
    Name,
}

/// A value that fits its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Bool(bool),
    Integer(i64),
    Duration(Duration),
    Text(String),
    /// A command that is one text for `sh -c`.
    Shell(String),
    List(Vec<String>),
    Map(BTreeMap<String, Value>),
}

/// What is wrong with a value in a file: of which key, where, and what it should be.
#[derive(Debug)]
pub(super) struct Flaw {
    pub(super) path: String,
    pub(super) span: Range<usize>,
    pub(super) expected: String,
}

impl Kind {
    /// What belongs there, as the object of "expected".
    pub(crate) fn expected(&self) -> String {
        match self {
            Kind::Bool => "true or false".to_owned(),
            Kind::Integer { min, max } if *max == INTEGER_MAX => format!("an integer of at least {min}"),
            Kind::Integer { min, max } => format!("an integer from {min} to {max}"),
            Kind::Duration { min, max } => {
                let written = |ms| duration::format(Duration::from_millis(ms));
                format!("a duration such as \"1h30m\", from \"{}\" to \"{}\"", written(*min), written(*max))
            }
            Kind::Text(form) => form.expected(),
            Kind::OneOf(words) => one_of(words),
            Kind::Command => "a text for `sh -c`, or an array of a program and its arguments".to_owned(),
            Kind::List { of, min: 0 } => format!("an array, each item {}", of.expected()),
            Kind::List { .. } => "an array of a program and its arguments".to_owned(),
            Kind::Map { of, .. } => format!("a table, each value {}", of.expected()),
        }
    }

    /// Reads a value of a file, or says which part of it does not fit.
    pub(super) fn read(&self, path: &str, value: &Spanned<DeValue<'_>>) -> Result<Value, Flaw> {
        let flaw = || Flaw { path: path.to_owned(), span: value.span(), expected: self.expected() };
        match (self, value.get_ref()) {
            (Kind::Bool, DeValue::Boolean(given)) => Ok(Value::Bool(*given)),
            (Kind::Integer { .. }, DeValue::Integer(digits)) => {
                let number = i64::from_str_radix(digits.as_str(), digits.radix()).ok();
                number.and_then(|number| self.integer(number)).ok_or_else(flaw)
            }
            (Kind::Duration { .. } | Kind::Text(_) | Kind::OneOf(_), DeValue::String(text)) => {
                self.text(text).ok_or_else(flaw)
            }
            (Kind::Command, DeValue::String(text)) => self.text(text).ok_or_else(flaw),
            (Kind::Command, DeValue::Array(_)) => {
                WORDS.read(path, value).map_err(|inner| match inner.path == path {
                    true => flaw(),
                    false => inner,
                })
            }
            (Kind::List { of, min }, DeValue::Array(items)) => {
                if items.len() < *min || items.len() > SETTING_ITEMS_MAX {
                    return Err(flaw());
                }
                let mut list = Vec::new();
                for (n, item) in items.iter().enumerate() {
                    // The arguments of a program may be empty, the program may not.
                    if let (true, DeValue::String(text)) = (*min > 0 && n > 0, item.get_ref())
                        && text.is_empty()
                    {
                        list.push(String::new());
                        continue;
                    }
                    match of.read(&format!("{path}[{n}]"), item)? {
                        Value::Text(text) => list.push(text),
                        _ => return Err(flaw()),
                    }
                }
                Ok(Value::List(list))
            }
            (Kind::Map { names, of }, DeValue::Table(table)) => {
                if table.len() > SETTING_ITEMS_MAX {
                    return Err(flaw());
                }
                let mut map = BTreeMap::new();
                for (name, value) in table.iter() {
                    let key: &str = name.get_ref();
                    if !names.fits(key) {
                        let expected = format!("a key that is {}", names.expected());
                        return Err(Flaw { path: path.to_owned(), span: name.span(), expected });
                    }
                    map.insert(key.to_owned(), of.read(&format!("{path}.{key}"), value)?);
                }
                Ok(Value::Map(map))
            }
            _ => Err(flaw()),
        }
    }

    /// Reads the plain text of a variable, a flag or the table of defaults; `None` where it does not fit. A list is written with commas or
    /// like in TOML, a table only like in TOML.
    pub(super) fn parse(&self, text: &str) -> Option<Value> {
        match self {
            Kind::Bool => text.parse().ok().map(Value::Bool),
            Kind::Integer { .. } => self.integer(text.parse().ok()?),
            Kind::Duration { .. } | Kind::Text(_) | Kind::OneOf(_) => self.text(text),
            // A lone bracket is a command of the shell.
            Kind::Command if !["[\"", "['"].iter().any(|array| text.starts_with(array)) => self.text(text),
            Kind::List { of, min } if !text.starts_with('[') => {
                let items: Vec<&str> =
                    text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
                let fits = items.len() >= *min && items.len() <= SETTING_ITEMS_MAX;
                let fits = fits && items.iter().all(|item| of.text(item).is_some());
                fits.then(|| Value::List(items.into_iter().map(str::to_owned).collect()))
            }
            Kind::Command | Kind::List { .. } | Kind::Map { .. } => {
                self.read("", &DeValue::parse(text).ok()?).ok()
            }
        }
    }

    fn integer(&self, number: i64) -> Option<Value> {
        match self {
            Kind::Integer { min, max } if (*min..=*max).contains(&number) => Some(Value::Integer(number)),
            _ => None,
        }
    }

    fn text(&self, text: &str) -> Option<Value> {
        match self {
            Kind::Duration { min, max } => duration::parse(text)
                .filter(|given| (u128::from(*min)..=u128::from(*max)).contains(&given.as_millis()))
                .map(Value::Duration),
            Kind::Text(form) => form.fits(text).then(|| Value::Text(text.to_owned())),
            Kind::OneOf(words) => words.contains(&text).then(|| Value::Text(text.to_owned())),
            Kind::Command => {
                let fits = Form::Any.fits(text) && !text.trim().is_empty();
                fits.then(|| Value::Shell(text.to_owned()))
            }
            _ => None,
        }
    }
}

/// A program and its arguments.
pub(super) const WORDS: Kind = Kind::List { of: &Kind::Text(Form::Any), min: 1 };

impl Form {
    fn expected(self) -> String {
        match self {
            Form::Any => format!("a text of 1 to {SETTING_CHARS_MAX} characters"),
            Form::Open => format!("a text of at most {SETTING_CHARS_MAX} characters"),
            Form::Path => "the path of a file".to_owned(),
            Form::Url(schemes) => {
                let starts: Vec<String> = schemes.iter().map(|scheme| format!("{scheme}://…")).collect();
                let starts: Vec<&str> = starts.iter().map(String::as_str).collect();
                format!("a URL, {}", one_of(&starts))
            }
            Form::Variable => "the name of an environment variable (A-Z a-z 0-9 _)".to_owned(),
            Form::Address => "an address and a port, such as \"127.0.0.1:7433\"".to_owned(),
            Form::Agent => "the name of an agent".to_owned(),
            Form::Name => "a name (1 to 128 of A-Z a-z 0-9 . _ -)".to_owned(),
        }
    }

    pub(super) fn fits(self, text: &str) -> bool {
        let is_plain = (!text.is_empty() || self == Form::Open)
            && !text.contains('\0')
            && text.chars().count() <= SETTING_CHARS_MAX;
        is_plain
            && match self {
                Form::Any | Form::Open | Form::Path => true,
                Form::Url(schemes) => text.split_once("://").is_some_and(|(scheme, rest)| {
                    let is_clean = !rest.contains(|c: char| c.is_whitespace() || c.is_control());
                    schemes.contains(&scheme) && !rest.is_empty() && !rest.starts_with('/') && is_clean
                }),
                Form::Variable => {
                    let is_word = text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
                    is_word && !text.starts_with(|c: char| c.is_ascii_digit())
                }
                Form::Address => is_address(text),
                Form::Agent => text.parse::<AgentName>().is_ok(),
                Form::Name => text.parse::<Token>().is_ok(),
            }
    }
}

/// A host name, an IPv4 address or an IPv6 address in brackets, and a port.
fn is_address(text: &str) -> bool {
    if text.parse::<std::net::SocketAddr>().is_ok() {
        return true;
    }
    text.rsplit_once(':').is_some_and(|(host, port)| {
        let is_host =
            !host.is_empty() && host.bytes().all(|c| c.is_ascii_alphanumeric() || b".-".contains(&c));
        is_host && port.bytes().all(|c| c.is_ascii_digit()) && port.parse::<u16>().is_ok()
    })
}

impl Value {
    /// As it would stand in a file.
    pub(crate) fn to_toml(&self) -> String {
        match self {
            Value::Bool(given) => given.to_string(),
            Value::Integer(number) => number.to_string(),
            Value::Duration(given) => quoted(&duration::format(*given)),
            Value::Text(text) | Value::Shell(text) => quoted(text),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Map(map) if map.is_empty() => "{}".to_owned(),
            Value::Map(map) => {
                let entries: Vec<String> = map
                    .iter()
                    .map(|(key, value)| format!("{} = {}", quoted_key(key), value.to_toml()))
                    .collect();
                format!("{{ {} }}", entries.join(", "))
            }
        }
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Bool(given) => json!(given),
            Value::Integer(number) => json!(number),
            Value::Duration(given) => json!(duration::format(*given)),
            Value::Text(text) | Value::Shell(text) => json!(text),
            Value::List(items) => json!(items),
            Value::Map(map) => map.iter().map(|(key, value)| (key.clone(), value.to_json())).collect(),
        }
    }

    /// The value without what nobody should read over a shoulder: passwords in URLs, and values whose name says that they are secret.
    pub(crate) fn masked(&self) -> Value {
        match self {
            Value::Text(text) => Value::Text(mask(text)),
            Value::Map(map) => Value::Map(
                map.iter()
                    .map(|(name, value)| match value {
                        Value::Text(_) if is_secret_name(name) => {
                            (name.clone(), Value::Text(MASK.to_owned()))
                        }
                        _ => (name.clone(), value.masked()),
                    })
                    .collect(),
            ),
            _ => self.clone(),
        }
    }

    /// Whether a password stands in it.
    pub(super) fn has_password(&self) -> bool {
        matches!(self, Value::Text(text) if mask(text) != *text)
    }
}

const MASK: &str = "***";

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD"].iter().any(|end| name.ends_with(end))
}

/// A URL with its password replaced; any other text as it is.
fn mask(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, password)) if !password.is_empty() => format!("{name}:{MASK}@{host}"),
            _ => authority.to_owned(),
        },
        None => authority.to_owned(),
    };
    let tail: Vec<String> = tail
        .split_inclusive(['?', '&'])
        .map(|part| match part.split_once('=') {
            Some((name, value)) if is_secret_name(name) => {
                let end = if value.ends_with('&') { "&" } else { "" };
                format!("{name}={MASK}{end}")
            }
            _ => part.to_owned(),
        })
        .collect();
    format!("{scheme}://{authority}{}", tail.concat())
}

/// Words to choose from, quoted, the last one behind "or".
fn one_of(words: &[&str]) -> String {
    let mut quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.pop() {
        Some(last) if !quoted.is_empty() => format!("{} or {last}", quoted.join(", ")),
        last => last.unwrap_or_default(),
    }
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            _ => match escaped(c) {
                Some(escape) => out.push_str(&escape),
                None => out.push(c),
            },
        }
    }
    out.push('"');
    out
}

/// A key as TOML writes it: quoted where it must be.
pub(crate) fn quoted_key(key: &str) -> String {
    let is_bare = !key.is_empty() && key.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c));
    if is_bare { key.to_owned() } else { quoted(key) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_take_what_they_should_and_nothing_else() {
        let check = |form: Form, good: &[&str], bad: &[&str]| {
            good.iter().for_each(|text| assert!(form.fits(text), "{form:?} {text:?}"));
            bad.iter().for_each(|text| assert!(!form.fits(text), "{form:?} {text:?}"));
        };
        let long = "x".repeat(SETTING_CHARS_MAX + 1);
        check(Form::Any, &["x", " ", "é"], &["", "a\0b", &long]);
        check(
            Form::Url(&["http", "https"]),
            &["http://localhost:4317", "https://x/y?z#w"],
            &["ftp://x", "http:/x", "http://", "http:///x", "http://a b", "x", "https://a\nb"],
        );
        check(Form::Variable, &["PATH", "_x1"], &["1A", "A-B", "A B", "Ä", "A=B"]);
        check(
            Form::Address,
            &["127.0.0.1:7433", "[::1]:0", "localhost:80", "box.example:443"],
            &["127.0.0.1", ":80", "::1:80", "x:65536", "x:+1", "x:", "a b:1", "x:y"],
        );
        check(Form::Agent, &["a.b-c_1"], &["A", "-a", "a b"]);
    }

    #[test]
    fn plain_text_is_read_by_kind() {
        let list = Kind::List { of: &Kind::OneOf(&["a", "b"]), min: 0 };
        assert_eq!(list.parse("a, b"), Some(Value::List(vec!["a".into(), "b".into()])));
        assert_eq!(list.parse("[\"a\"]"), Some(Value::List(vec!["a".into()])));
        assert_eq!(list.parse("a,c"), None);
        assert_eq!(Kind::Command.parse("make test"), Some(Value::Shell("make test".into())));
        assert_eq!(
            Kind::Command.parse("[\"make\", \"\"]"),
            Some(Value::List(vec!["make".into(), String::new()]))
        );
        assert_eq!(Kind::Command.parse("[\"\"]"), None);
        assert_eq!(Kind::Command.parse("[ -f x ] && y"), Some(Value::Shell("[ -f x ] && y".into())));
        assert_eq!(Kind::Command.parse("[\"make\", 1]"), None);
        assert_eq!(Kind::Command.parse("  "), None);
        let map = Kind::Map { names: Form::Name, of: &Kind::Duration { min: 1, max: 5000 } };
        let entry = Value::Map([("bash".to_owned(), Value::Duration(Duration::from_secs(5)))].into());
        assert_eq!(map.parse("{ bash = \"5s\" }"), Some(entry.clone()));
        assert_eq!(map.parse("{ bash = \"6s\" }"), None);
        assert_eq!(map.parse("{ bash = \"5s\" }\nx = 1"), None);
        assert_eq!(entry.to_toml(), "{ bash = \"5s\" }");
        assert_eq!(Kind::Bool.parse("yes"), None);
        assert_eq!(Kind::Integer { min: 1, max: 9 }.parse("0x3"), None);
    }

    #[test]
    fn texts_are_written_so_that_they_read_back() {
        let text = "a\"b\\c\n\t\u{1b}\u{7f}\u{202e}é";
        let written = format!("{} = {}", quoted_key("a.b"), quoted(text));
        assert!(written.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{written}");
        let table = toml::de::DeTable::parse(&written).unwrap();
        assert_eq!(table.get_ref().get("a.b").unwrap().get_ref().as_str(), Some(text));
    }

    #[test]
    fn passwords_are_masked_and_the_rest_stays() {
        for (text, masked) in [
            ("postgres://me:pw@db:5432/x", "postgres://me:***@db:5432/x"),
            ("postgres://me:p@w@db/x", "postgres://me:***@db/x"),
            ("postgres://me@db/x", "postgres://me@db/x"),
            ("postgres://db/x?user=a&password=b&c=d", "postgres://db/x?user=a&password=***&c=d"),
            ("https://h/p@q:r@s", "https://h/p@q:r@s"),
            ("plain", "plain"),
        ] {
            assert_eq!(Value::Text(text.into()).masked(), Value::Text(masked.into()));
            assert_eq!(Value::Text(text.into()).has_password(), text != masked);
        }
        let env = Value::Map(
            [("API_KEY".to_owned(), Value::Text("x".into())), ("LANG".to_owned(), Value::Text("C".into()))]
                .into(),
        );
        assert_eq!(env.masked().to_toml(), "{ API_KEY = \"***\", LANG = \"C\" }");
    }
}
