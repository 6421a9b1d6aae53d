//! Lays the layers over each other: each key gets the value of the highest layer that has one, and remembers which that was.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::rc::Rc;

use baton_core::AgentName;
use baton_core::nearest::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check;
use super::source::Source;
use super::table::{AGENT, BuiltIn, Key, REFUSED, SECTIONS, TABLE};
use super::value::Value;
use crate::error::{CliError, Code};
use crate::ui::text::shorten;

/// Everything but what is built in.
pub(crate) struct Layers<'a> {
    /// From the weakest to the strongest.
    pub(crate) files: Vec<Rc<Source>>,
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
    pub(crate) flags: &'a [Flag],
}

/// A key that a flag of the command line sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flag {
    /// As it was typed, such as `--set`.
    pub(crate) flag: &'static str,
    /// `section.name`.
    pub(crate) path: String,
    pub(crate) value: String,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    BuiltIn,
    File { source: Rc<Source>, span: Range<usize> },
    Variable(String),
    Flag(&'static str),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::BuiltIn => f.write_str("built in"),
            Origin::File { source, span } => f.write_str(&source.line(span)),
            Origin::Variable(name) => f.write_str(name),
            Origin::Flag(flag) => f.write_str(flag),
        }
    }
}

impl Origin {
    /// An error about a value from here.
    pub(super) fn fail(&self, what: impl Into<String>) -> CliError {
        match self {
            Origin::File { source, span } => source.fail(what, span),
            Origin::Variable(name) => {
                CliError::new(Code::Config, what).cause(name).hint(format!("unset {name}"))
            }
            Origin::BuiltIn | Origin::Flag(_) => {
                CliError::new(Code::Config, what).hint("baton config show --origin")
            }
        }
    }
}

/// A value, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// The keys that have a value, by name.
pub(crate) type Values = BTreeMap<&'static str, Setting>;

/// Every key that has a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// By section, then by name.
    pub(super) sections: BTreeMap<&'static str, Values>,
    pub(super) agents: BTreeMap<AgentName, Agent>,
}

/// An agent as far as it was configured.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Agent {
    pub(super) values: Values,
    /// Where it was named last.
    pub(super) place: Origin,
}

impl Agent {
    fn new(place: Origin) -> Self {
        let mut values = Values::new();
        AGENT.iter().for_each(|key| set_default(&mut values, key));
        Agent { values, place }
    }
}

impl Resolved {
    /// The value of a key of the table, if it has one.
    /// Whether somebody said something about a key, so that it is not what is built in.
    pub(crate) fn is_set(&self, section: &str, name: &str) -> bool {
        let setting = self.sections.get(section).and_then(|values| values.get(name));
        setting.is_some_and(|setting| !matches!(setting.origin, Origin::BuiltIn))
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Setting> {
        self.sections.get(key.section)?.get(key.name)
    }

    /// The agents by name, each with its values.
    pub(crate) fn agents(&self) -> impl Iterator<Item = (&AgentName, &Values)> {
        self.agents.iter().map(|(name, agent)| (name, &agent.values))
    }
}

fn set_default(values: &mut Values, key: &'static Key) {
    if let BuiltIn::Value(text) = key.default
        && let Some(value) = key.kind.parse(text)
    {
        values.insert(key.name, Setting { value, origin: Origin::BuiltIn });
    }
}

/// Every key with the value of the highest layer that has one.
///
/// Fails at the first thing that is wrong in any layer, also where a higher one would have hidden it.
pub(crate) fn resolve(layers: &Layers<'_>) -> Result<Resolved, CliError> {
    let mut resolved = Resolved { sections: BTreeMap::new(), agents: BTreeMap::new() };
    for key in TABLE {
        set_default(resolved.sections.entry(key.section).or_default(), key);
    }
    if let Ok(mock) = check::MOCK.parse() {
        resolved.agents.insert(mock, Agent::new(Origin::BuiltIn));
    }
    for source in &layers.files {
        File(source.clone()).apply(&mut resolved)?;
    }
    for key in TABLE {
        let Some((variable, value)) =
            key.variable().and_then(|name| (layers.variable)(&name).map(|value| (name, value)))
        else {
            continue;
        };
        let fail = |got: &str| {
            let what = format!("{variable}: expected {}, got {got}", key.kind.expected());
            CliError::new(Code::Config, what).hint(format!("unset {variable}"))
        };
        if key.path() == REFUSED {
            return Err(
                CliError::new(Code::Config, not_kept_elsewhere(&variable)).hint(format!("unset {variable}"))
            );
        }
        let text = value.to_str().ok_or_else(|| fail("what is not UTF-8"))?;
        let value = key.kind.parse(text).ok_or_else(|| fail(&shown(text)))?;
        let origin = Origin::Variable(variable.clone());
        resolved.sections.entry(key.section).or_default().insert(key.name, Setting { value, origin });
    }
    for flag in layers.flags {
        let (key, value) = read_flag(flag)?;
        let origin = Origin::Flag(flag.flag);
        resolved.sections.entry(key.section).or_default().insert(key.name, Setting { value, origin });
    }
    check::check(&mut resolved)?;
    Ok(resolved)
}

/// The key that a flag of the command line sets, and its value.
pub(super) fn read_flag(flag: &Flag) -> Result<(&'static Key, Value), CliError> {
    let fail = |what: String| {
        CliError::new(Code::Config, format!("{}: {what}", flag.flag)).hint("baton config show")
    };
    let Some(key) = TABLE.iter().find(|key| key.path() == flag.path) else {
        if flag.path.starts_with("agents.") {
            return Err(fail("agents are configured in a file".to_owned()));
        }
        let paths: Vec<String> = TABLE.iter().map(Key::path).collect();
        let near = did_you_mean(&flag.path, paths.iter().map(String::as_str));
        return Err(fail(format!("unknown key `{}`{near}", shorten(&flag.path, 60))));
    };
    if flag.path == REFUSED {
        return Err(fail(not_kept_elsewhere(REFUSED)));
    }
    let value = key.kind.parse(&flag.value).ok_or_else(|| {
        fail(format!("{}: expected {}, got {}", flag.path, key.kind.expected(), shown(&flag.value)))
    })?;
    Ok((key, value))
}

/// Nobody should believe that their ledger is in a database while it is not.
fn not_kept_elsewhere(name: &str) -> String {
    format!("{name}: not used by this version, which keeps everything in the data directory")
}

/// A text that did not fit, cut short and without a password that it may hold.
fn shown(text: &str) -> String {
    if Value::Text(text.to_owned()).has_password() || (text.contains("://") && text.contains('@')) {
        return "a URL with credentials".to_owned();
    }
    format!("{:?}", shorten(text, 60))
}

struct File(Rc<Source>);

impl File {
    fn apply(&self, resolved: &mut Resolved) -> Result<(), CliError> {
        let source = &self.0;
        let table = DeTable::parse(source.text()).map_err(|error| {
            let message = error.message().lines().next().unwrap_or("not TOML").to_owned();
            source.fail(message, &error.span().unwrap_or(0..0))
        })?;
        for (name, value) in table.get_ref().iter() {
            let given: &str = name.get_ref();
            let Some((section, _)) = SECTIONS.iter().find(|(section, _)| *section == given) else {
                let near = did_you_mean(given, SECTIONS.map(|(section, _)| section));
                return Err(
                    source.fail(format!("unknown section [{}]{near}", shorten(given, 60)), &name.span())
                );
            };
            let inner = self.table(section, value)?;
            if *section == "agents" {
                self.apply_agents(resolved, inner)?;
            } else {
                let values = resolved.sections.entry(section).or_default();
                self.apply_keys(values, TABLE, section, section, "", inner)?;
            }
        }
        Ok(())
    }

    fn table<'a, 'i>(
        &self,
        path: &str,
        value: &'a Spanned<DeValue<'i>>,
    ) -> Result<&'a DeTable<'i>, CliError> {
        value.get_ref().as_table().ok_or_else(|| {
            let what = format!("{path}: expected a table, got {}", value.get_ref().type_str());
            self.0.fail(what, &value.span())
        })
    }

    fn apply_agents(&self, resolved: &mut Resolved, table: &DeTable<'_>) -> Result<(), CliError> {
        for (name, value) in table.iter() {
            let given: &str = name.get_ref();
            let agent: AgentName = given.parse().map_err(|_| {
                let what = format!(
                    "agents: expected an agent name (a-z 0-9, then also . _ -, at most 64), got {:?}",
                    shorten(given, 60)
                );
                self.0.fail(what, &name.span())
            })?;
            let path = format!("agents.{agent}");
            let inner = self.table(&path, value)?;
            let place = Origin::File { source: self.0.clone(), span: name.span() };
            let entry = resolved.agents.entry(agent).or_insert_with(|| Agent::new(Origin::BuiltIn));
            entry.place = place;
            self.apply_keys(&mut entry.values, AGENT, "agents", &path, "", inner)?;
        }
        Ok(())
    }

    /// Takes the keys of a section over. `prefix` is the way to a table inside of it, with a full stop at its end.
    fn apply_keys(
        &self,
        values: &mut Values,
        keys: &'static [Key],
        section: &str,
        path: &str,
        prefix: &str,
        table: &DeTable<'_>,
    ) -> Result<(), CliError> {
        let known = || keys.iter().filter(|key| key.section == section);
        for (name, value) in table.iter() {
            let given: &str = name.get_ref();
            let full = format!("{prefix}{given}");
            if let Some(key) = known().find(|key| key.name == full) {
                let setting = self.value(key, &format!("{path}.{full}"), value)?;
                values.insert(key.name, setting);
            } else if known()
                .any(|key| key.name.strip_prefix(&full).is_some_and(|rest| rest.starts_with('.')))
            {
                let inner = self.table(&format!("{path}.{full}"), value)?;
                self.apply_keys(values, keys, section, path, &format!("{full}."), inner)?;
            } else {
                let mut names: Vec<&str> = known()
                    .filter_map(|key| key.name.strip_prefix(prefix))
                    .map(|rest| rest.split('.').next().unwrap_or(rest))
                    .collect();
                names.dedup();
                let here = format!("{path}.{prefix}");
                let what = format!(
                    "unknown key `{}` in [{}]{}",
                    shorten(given, 60),
                    here.trim_end_matches('.'),
                    did_you_mean(given, names)
                );
                return Err(self.0.fail(what, &name.span()));
            }
        }
        Ok(())
    }

    fn value(&self, key: &Key, path: &str, value: &Spanned<DeValue<'_>>) -> Result<Setting, CliError> {
        let source = &self.0;
        if key.path() == REFUSED {
            // What stands there may hold a password.
            return Err(source.fail_unshown(not_kept_elsewhere(path), &value.span()));
        }
        let read = key.kind.read(path, value).map_err(|flaw| {
            let got = source.part(flaw.span.clone());
            let what = |got: &str| format!("{}: expected {}, got {got}", flaw.path, flaw.expected);
            // An address with a slip of the pen may still hold a password that works.
            if got.contains("://") && (got.contains('@') || got.contains("password")) {
                return source.fail_unshown(what("a URL with credentials"), &flaw.span);
            }
            source.fail(what(&got), &flaw.span)
        })?;
        if read.has_password() {
            let instead = key.variable().map(|name| format!(", {name} may")).unwrap_or_default();
            let what =
                format!("{path}: expected a URL without a password; a file does not hold secrets{instead}");
            return Err(source.fail_unshown(what, &value.span()));
        }
        Ok(Setting { value: read, origin: Origin::File { source: source.clone(), span: value.span() } })
    }
}

/// The nearest of the known names, or all of them where none is near and they are few.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(name, known.iter().copied(), 1).first() {
        Some(near) => format!("; did you mean `{near}`?"),
        None if known.len() <= 24 => format!("; known are {}", known.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
