//! The table of rules in `docs/reference/guarded.md` is the code's.

use std::fs;

use baton_core::guard::Rule;
use baton_ledger::verify::code_of;

const PAGE: &str = "../../docs/reference/guarded.md";
const TESTS: &str = include_str!("../../../core/src/guard/tests/rules.rs");
const FORGED: &str = include_str!("guarded.rs");
const BEGIN: &str = "<!-- made from the rules: begin -->\n";
const END: &str = "<!-- made from the rules: end -->";

/// The test that breaks a rule: the first that names it so.
fn test_of(tests: &'static str, named: &str) -> &'static str {
    let is_whole = |at: &usize| !tests[at + named.len()..].starts_with(char::is_alphanumeric);
    let at = tests.match_indices(named).map(|(at, _)| at).find(is_whole).expect("a test for every rule");
    let before = &tests[..at];
    let name = before.rsplit("#[test]\nfn ").next().expect("a test");
    name.split('(').next().expect("a name")
}

#[test]
fn the_page_has_every_rule() {
    let head = ["rule", "asks for", "found as", "what satisfies it", "kept and broken by", "forged by"];
    let mut table = format!("| {} |\n|{}\n", head.join(" | "), " --- |".repeat(head.len()));
    for rule in Rule::ALL {
        let (code, test) = (code_of(*rule).as_str(), test_of(TESTS, &format!("Rule::{rule:?}")));
        let forged = test_of(FORGED, &format!("breaks(Rule::{rule:?}"));
        table.push_str(&format!(
            "| `{}` | {} | [`{code}`](../errors/{code}.md) | {} | `{test}` | `{forged}` |\n",
            rule.as_str(),
            rule.says(),
            rule.remedy(),
        ));
    }
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let fresh = format!("{before}{BEGIN}\n{table}\n{END}{after}");
    if std::env::var_os("BATON_REGENERATE").is_some() {
        fs::write(PAGE, fresh).unwrap();
        return;
    }
    assert_eq!(page, fresh, "BATON_REGENERATE=1 writes it");
}
