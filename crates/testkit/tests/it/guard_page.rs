//! The table of rules in `docs/reference/guarded.md` is the code's.

use std::fs;

use baton_core::guard::Rule;
use baton_ledger::verify::code_of;

const PAGE: &str = "../../docs/reference/guarded.md";
const TESTS: &str = include_str!("../../../core/src/guard/tests/rules.rs");
const BEGIN: &str = "<!-- made from the rules: begin -->\n";
const END: &str = "<!-- made from the rules: end -->";

/// The test that breaks a rule: the first that names it.
fn test_of(rule: Rule) -> &'static str {
    let named = format!("Rule::{rule:?}");
    let is_whole = |at: &usize| !TESTS[at + named.len()..].starts_with(char::is_alphanumeric);
    let at = TESTS.match_indices(&named).map(|(at, _)| at).find(is_whole).expect("a test for every rule");
    let before = &TESTS[..at];
    let name = before.rsplit("#[test]\nfn ").next().expect("a test");
    name.split('(').next().expect("a name")
}

#[test]
fn the_page_has_every_rule() {
    let mut table = "| rule | asks for | found as | what satisfies it | kept and broken by |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for rule in Rule::ALL {
        let (code, test) = (code_of(*rule).as_str(), test_of(*rule));
        table.push_str(&format!(
            "| `{}` | {} | [`{code}`](../errors/{code}.md) | {} | `{test}` |\n",
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
