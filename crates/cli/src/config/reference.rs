//! The committed files that are made from the table: the reference page and the JSON Schema. `BATON_REGENERATE=1` writes them anew.

use baton_core::json::Sorted;

use super::schema::schema;
use super::table::{AGENT, BuiltIn, Key, SECTIONS, TABLE, about};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/config.md");
const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/baton.schema.json");

const HEAD: &str = include_str!("reference.md");

fn page() -> String {
    let mut page = HEAD.trim_end().to_owned();
    page.push('\n');
    for (section, doc) in SECTIONS {
        let (title, keys) = match section {
            "agents" => ("agents.NAME", AGENT.iter().collect::<Vec<_>>()),
            _ => (section, TABLE.iter().filter(|key| key.section == section).collect()),
        };
        page.push_str(&format!("\n## `[{title}]`\n\n{}\n\n", about(section, doc)));
        let variables = if section == "agents" { "harness" } else { "variable" };
        page.push_str(&format!(
            "| key | takes | built in | meaning | {variables} |\n| --- | --- | --- | --- | --- |\n"
        ));
        keys.into_iter().for_each(|key| page.push_str(&row(key)));
    }
    page
}

fn row(key: &Key) -> String {
    let default = match key.default {
        BuiltIn::Value(text) => format!("`{}`", key.kind.parse(text).unwrap().to_toml()),
        BuiltIn::Absent(meaning) => format!("not set: {meaning}"),
    };
    let last = match key.variable() {
        Some(variable) => format!("`{variable}`"),
        None if key.only.is_empty() => "all".to_owned(),
        None => key.only.join(", "),
    };
    format!("| `{}` | {} | {default} | {} | {last} |\n", key.name, key.kind.expected(), key.doc)
}

fn check(path: &str, made: &str) {
    if std::env::var_os("BATON_REGENERATE").is_some() {
        std::fs::write(path, made).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == made, "{path} is not what the table says; run the test with BATON_REGENERATE=1");
}

#[test]
fn the_reference_page_is_the_table() {
    let page = page();
    for key in TABLE.iter().chain(AGENT) {
        assert!(page.contains(&format!("\n| `{}` | ", key.name)), "{}", key.path());
    }
    check(PAGE, &page);
}

#[test]
fn the_committed_schema_is_the_table() {
    check(SCHEMA, &format!("{:#}\n", Sorted(&schema())));
}
