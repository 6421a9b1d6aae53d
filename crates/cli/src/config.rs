//! Configuration: environment over the data directory's `baton.toml` over the user's file over what is built in.
//!
//! Only `[ledger]` is used yet. The other sections are known, so that one file serves later versions too; they are not read. A name that is
//! not known is an error that says which one is near.

use std::path::{Path, PathBuf};

use baton_core::Durability;
use baton_core::limits::{INTEGER_MAX, SMALL_FILE_BYTES_MAX};
use baton_store::Options;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::context::Environment;
use crate::error::{CliError, Code};
use crate::input::file::{open_regular, read_bounded};
use crate::nearest::nearest;
use crate::ui::shell;

const SECTIONS: [&str; 11] = [
    "agents",
    "ci",
    "ledger",
    "notify",
    "policy",
    "scheduler",
    "server",
    "session",
    "store",
    "team",
    "telemetry",
];

/// A setting of `[ledger]`: its key and its variable.
const SETTINGS: [(&str, &str); 3] = [
    ("durability", "BATON_LEDGER_DURABILITY"),
    ("segment_bytes", "BATON_LEDGER_SEGMENT_BYTES"),
    ("checkpoint_every", "BATON_LEDGER_CHECKPOINT_EVERY"),
];

/// A smaller segment would hold less than a handful of events.
const SEGMENT_BYTES_MIN: i64 = 4096;

/// How the journal writes, from every layer.
pub(crate) fn load(data_dir: Option<&Path>, env: &Environment) -> Result<Options, CliError> {
    let mut options = Options::default();
    let files = [
        env.config_home().map(|dir| dir.join("baton/config.toml")),
        data_dir.map(|dir| dir.join("baton.toml")),
    ];
    for path in files.into_iter().flatten() {
        if let Some(text) = read(&path)? {
            File { path, text: &text }.apply(&mut options)?;
        }
    }
    for (key, variable) in SETTINGS {
        if let Some(value) = env.get(variable) {
            // A variable has no types: what looks like a number is one.
            let parsed = value.parse().map_or(Value::Text(&value), Value::Integer);
            set(&mut options, key, parsed).map_err(|expected| {
                CliError::new(Code::Config, format!("{variable}: expected {expected}, got {value:?}"))
                    .hint(format!("unset {variable}"))
            })?;
        }
    }
    Ok(options)
}

fn read(path: &Path) -> Result<Option<String>, CliError> {
    let fail = |why: String| {
        let what = format!("cannot read the configuration {}", path.display());
        CliError::new(Code::Config, what).cause(why).hint(format!("ls -l {}", shell::path(path)))
    };
    // Nobody named this file: a pipe in its place would make every command wait for whoever put it there.
    match open_regular(path).and_then(|file| read_bounded(file, SMALL_FILE_BYTES_MAX)) {
        Ok(Some(bytes)) => String::from_utf8(bytes).map(Some).map_err(|_| fail("it is not text".into())),
        Ok(None) => Err(fail(format!("it has more than {SMALL_FILE_BYTES_MAX} bytes"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fail(error.to_string())),
    }
}

/// A value as far as `[ledger]` has any.
#[derive(Debug, Clone, Copy)]
enum Value<'a> {
    Text(&'a str),
    Integer(i64),
    Other,
}

/// Takes one setting over, or says what was expected.
fn set(options: &mut Options, key: &str, value: Value<'_>) -> Result<(), String> {
    let at_least = |min: i64| match value {
        Value::Integer(n) if (min..=INTEGER_MAX).contains(&n) => Ok(n.unsigned_abs()),
        _ => Err(format!("an integer of at least {min}")),
    };
    match key {
        "durability" => {
            let parsed = match value {
                Value::Text(text) => Durability::parse(text),
                Value::Integer(_) | Value::Other => None,
            };
            options.durability = parsed.ok_or_else(|| "\"commit\", \"interval\" or \"none\"".to_owned())?;
        }
        "segment_bytes" => options.segment_bytes = at_least(SEGMENT_BYTES_MIN)?,
        _ => options.checkpoint_every = at_least(1)?,
    }
    Ok(())
}

/// One file of configuration.
struct File<'a> {
    path: PathBuf,
    text: &'a str,
}

impl File<'_> {
    fn apply(&self, options: &mut Options) -> Result<(), CliError> {
        let table = DeTable::parse(self.text).map_err(|error| {
            let message = error.message().lines().next().unwrap_or("not TOML").to_owned();
            self.fail(message, error.span().unwrap_or(0..0))
        })?;
        for (name, value) in table.get_ref().iter() {
            let section: &str = name.get_ref();
            if !SECTIONS.contains(&section) {
                let what = format!("unknown section [{section}]{}", did_you_mean(section, SECTIONS));
                return Err(self.fail(what, name.span()));
            }
            if section == "ledger" {
                self.apply_ledger(options, value)?;
            }
        }
        Ok(())
    }

    fn apply_ledger(&self, options: &mut Options, section: &Spanned<DeValue<'_>>) -> Result<(), CliError> {
        let Some(table) = section.get_ref().as_table() else {
            let what = format!("ledger: expected a table, got {}", section.get_ref().type_str());
            return Err(self.fail(what, section.span()));
        };
        for (name, value) in table.iter() {
            let key: &str = name.get_ref();
            let known = SETTINGS.map(|(key, _)| key);
            if !known.contains(&key) {
                let what = format!("unknown key `{key}` in [ledger]{}", did_you_mean(key, known));
                return Err(self.fail(what, name.span()));
            }
            let parsed = match value.get_ref() {
                DeValue::String(text) => Value::Text(text),
                DeValue::Integer(n) => {
                    i64::from_str_radix(n.as_str(), n.radix()).map_or(Value::Other, Value::Integer)
                }
                _ => Value::Other,
            };
            set(options, key, parsed).map_err(|expected| {
                let got = self.text.get(value.span()).unwrap_or("another value");
                let got: String = got.chars().take(60).collect();
                self.fail(format!("ledger.{key}: expected {expected}, got {got}"), value.span())
            })?;
        }
        Ok(())
    }

    /// The error with an excerpt of the file and a caret under the place.
    fn fail(&self, what: String, span: std::ops::Range<usize>) -> CliError {
        let start = span.start.min(self.text.len());
        let before = self.text.get(..start).unwrap_or_default();
        let number = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let line = self.text.lines().nth(number - 1).unwrap_or_default();
        let marked = self.text.get(span).unwrap_or_default().lines().next().unwrap_or_default();
        let room = line.chars().count().saturating_sub(column - 1).max(1);
        let carets = "^".repeat(marked.chars().count().clamp(1, room).min(60));
        let gutter = number.to_string();
        let blank = " ".repeat(gutter.len());
        let excerpt: String = line.chars().take(100).collect();
        CliError::new(Code::Config, what)
            .cause(format!("{}:{number}:{column}", self.path.display()))
            .cause(format!("{gutter} | {excerpt}"))
            .cause(format!("{blank} | {}{carets}", " ".repeat((column - 1).min(100))))
            .hint("baton explain U001")
    }
}

fn did_you_mean<const N: usize>(name: &str, known: [&str; N]) -> String {
    match nearest(name, known, 1).first() {
        Some(near) => format!("; did you mean `{near}`?"),
        None => format!("; known are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Options, CliError> {
        let mut options = Options::default();
        File { path: "baton.toml".into(), text }.apply(&mut options).map(|()| options)
    }

    fn refused(text: &str, what: &str, place: &str) {
        let error = check(text).unwrap_err();
        assert_eq!((error.what.as_str(), error.causes[0].as_str()), (what, place), "{text}");
    }

    #[test]
    fn the_ledger_section_is_taken_over_and_others_are_left_alone() {
        let text = "[ledger]\ndurability = \"interval\"\nsegment_bytes = 1_048_576\ncheckpoint_every = 0x10\n[agents.x]\ncommand = [\"x\"]\n";
        let options = check(text).unwrap();
        assert_eq!(options.durability, Durability::Interval);
        assert_eq!((options.segment_bytes, options.checkpoint_every), (1 << 20, 16));
    }

    #[test]
    fn unknown_names_say_which_one_is_near() {
        refused("[leger]\n", "unknown section [leger]; did you mean `ledger`?", "baton.toml:1:2");
        refused(
            "[ledger]\nsegment_byte = 5\n",
            "unknown key `segment_byte` in [ledger]; did you mean `segment_bytes`?",
            "baton.toml:2:1",
        );
    }

    #[test]
    fn wrong_values_say_field_expected_and_got() {
        refused(
            "[ledger]\nsegment_bytes = 4095\n",
            "ledger.segment_bytes: expected an integer of at least 4096, got 4095",
            "baton.toml:2:17",
        );
        refused(
            "[ledger]\ndurability = true\n",
            "ledger.durability: expected \"commit\", \"interval\" or \"none\", got true",
            "baton.toml:2:14",
        );
        refused("ledger = 3\n", "ledger: expected a table, got integer", "baton.toml:1:10");
        assert!(check("[ledger\n").is_err());
        assert!(check("[ledger]\ncheckpoint_every = 0\n").is_err());
        assert!(check("[ledger]\ncheckpoint_every = 99999999999999999999\n").is_err());
    }
}
