//! `baton config show` and `baton config schema`: every key with its value and its origin; what a file may hold.

use baton_core::json::Sorted;
use serde_json::{Map, Value, json};

use crate::args::ConfigShow;
use crate::commands::Ended;
use crate::config::{self, AGENT, Key, Resolved, SECTIONS, Setting, TABLE, quoted_key};
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::Ui;
use crate::ui::text::printable;

pub(super) fn show(ctx: &Context, ui: &mut Ui, args: &ConfigShow) -> Ended {
    let resolved = ctx.config(ctx.find_data_dir().as_deref())?;
    for name in ctx.env.names() {
        if let Some(near) = config::misspelt(&name) {
            ui.warn(&format!("the variable {name} sets nothing; did you mean {near}?"));
        }
    }
    let tables = tables(&resolved);
    if ui.json {
        ui.object(&to_json(&tables))?;
        return Ok(Exit::Ok);
    }
    for (n, table) in tables.iter().enumerate() {
        if n > 0 {
            ui.line("")?;
        }
        for line in table.lines(args.origin) {
            ui.line(&line)?;
        }
    }
    Ok(Exit::Ok)
}

pub(super) fn schema(ui: &mut Ui) -> Ended {
    if ui.json {
        ui.object(&json!({"v": 1, "schema": config::schema()}))?;
    } else {
        ui.line(&format!("{:#}", Sorted(&config::schema())))?;
    }
    Ok(Exit::Ok)
}

/// A table of the file: its path, and its keys in order.
struct Table<'a> {
    path: Vec<&'a str>,
    rows: Vec<(&'static Key, Option<&'a Setting>)>,
}

/// Every section, and every agent with the keys that its harness has.
fn tables(resolved: &Resolved) -> Vec<Table<'_>> {
    let sections = SECTIONS.iter().filter(|(section, _)| *section != "agents").map(|(section, _)| Table {
        path: vec![section],
        rows: TABLE
            .iter()
            .filter(|key| key.section == *section)
            .map(|key| (key, resolved.get(key)))
            .collect(),
    });
    let agents = resolved.agents().map(|(name, values)| {
        let harness = values.get("harness").map(|setting| setting.value.to_json());
        let harness = harness.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        let applies = |key: &&Key| key.only.is_empty() || key.only.contains(&harness.as_str());
        let rows = AGENT.iter().filter(applies).map(|key| (key, values.get(key.name))).collect();
        Table { path: vec!["agents", name.as_str()], rows }
    });
    sections.chain(agents).collect()
}

impl Table<'_> {
    fn head(&self) -> String {
        self.path.iter().map(|part| quoted_key(part)).collect::<Vec<_>>().join(".")
    }

    fn lines(&self, with_origin: bool) -> Vec<String> {
        let mut lines = vec![format!("[{}]", self.head())];
        let text =
            |key: &Key, setting: &Setting| format!("{} = {}", key.name, setting.value.masked().to_toml());
        let width =
            self.rows.iter().filter_map(|(key, setting)| Some(text(key, (*setting)?).chars().count()));
        let width = width.max().unwrap_or(0).min(60);
        for (key, setting) in &self.rows {
            lines.push(match setting {
                Some(setting) if with_origin => {
                    let origin = printable(&setting.origin.to_string());
                    format!("{:width$}  # {origin}", text(key, setting))
                }
                Some(setting) => text(key, setting),
                None => format!("# {} is not set: {}", key.name, key.absence()),
            });
        }
        lines
    }
}

fn to_json(tables: &[Table<'_>]) -> Value {
    let (mut config, mut origins) = (json!({}), Map::new());
    for table in tables {
        for (key, setting) in &table.rows {
            let mut place = &mut config;
            for part in table.path.iter().copied().chain(key.name.split('.')) {
                place = &mut place[part];
            }
            *place = setting.map_or(Value::Null, |setting| setting.value.masked().to_json());
            let origin = setting.map_or("built in".to_owned(), |setting| setting.origin.to_string());
            origins.insert(format!("{}.{}", table.head(), key.name), origin.into());
        }
    }
    json!({"v": 1, "config": config, "origins": origins})
}
