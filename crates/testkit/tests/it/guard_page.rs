//! The table of rules in `docs/reference/guarded.md` is the code's.

use std::fs;

use baton_core::guard::Rule;
use baton_ledger::verify::code_of;

const PAGE: &str = "../../docs/reference/guarded.md";
const TESTS: &str = include_str!("../../../core/src/guard/tests/rules.rs");
const FORGED: &str = include_str!("guarded.rs");
const BEGIN: &str = "<!-- made from the rules: begin -->\n";
const END: &str = "<!-- made from the rules: end -->";

/// Tests of what holds for every trace, guarded or not.
const ELSEWHERE: [&str; 6] = [
    include_str!("../../../ledger/tests/it/refusal.rs"),
    include_str!("../../../ledger/tests/it/forged.rs"),
    include_str!("../../../ledger/tests/it/codes.rs"),
    include_str!("../../../ledger/tests/it/code_keys.rs"),
    include_str!("../../../ledger/tests/it/tamper.rs"),
    include_str!("../../../cli/tests/it/append.rs"),
];

/// Where an append has no place for what would break a rule.
const NOBODY: &str = "nobody can ask for it";

/// What seed rules ask for that hold everywhere: what it is found as, the test that has it refused and the one that forges it.
const EVERYWHERE: [(&str, &str, &str, &str); 7] = [
    (
        "The types that must be signed are.",
        "SIG_MISSING",
        "a_type_that_must_be_signed_is_refused_without_a_signature",
        "sig_missing",
    ),
    (
        "A signature is the actor's own, and of exactly this.",
        "SIG_INVALID",
        "a_signature_counts_only_with_the_key_that_made_it",
        "any_change_of_a_signed_body_breaks_its_signature",
    ),
    (
        "A key is bound for the role that it speaks in.",
        "ROLE_VIOLATION",
        "a_key_must_be_bound_in_this_trace_to_this_agent_for_this_role",
        "role_violation_by_type_or_by_key",
    ),
    (
        "A key that was rotated or revoked signs nothing more.",
        "KEY_REVOKED",
        "a_key_that_went_signs_nothing_more",
        "a_key_that_went_is_found_where_it_signs_again",
    ),
    (
        "Each event names the hash of the one before it; none is changed.",
        "CHAIN_BREAK",
        NOBODY,
        "chain_break_by_predecessor_or_seen",
    ),
    ("Events are numbered without a gap.", "SEQUENCE_GAP", NOBODY, "a_removed_line_leaves_a_gap"),
    (
        "What an execution cites is stored before it.",
        "ARTIFACT_MISSING",
        "files_are_stored_before_the_event_that_cites_them",
        "artifacts_missing_differing_or_not_at_hand",
    ),
];

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
    let head =
        ["rule", "guard", "asks for", "found as", "what satisfies it", "kept and broken by", "forged by"];
    let mut table = format!("| {} |\n|{}\n", head.join(" | "), " --- |".repeat(head.len()));
    for rule in Rule::ALL {
        let (code, test) = (code_of(*rule).as_str(), test_of(TESTS, &format!("Rule::{rule:?}")));
        let forged = test_of(FORGED, &format!("breaks(Rule::{rule:?}"));
        table.push_str(&format!(
            "| `{}` | {} | {} | [`{code}`](../errors/{code}.md) | {} | `{test}` | `{forged}` |\n",
            rule.as_str(),
            rule.question().guard(),
            rule.says(),
            rule.remedy(),
        ));
    }
    let head = ["of every trace", "found as", "refused by", "forged by"];
    table.push_str(&format!("\n| {} |\n|{}\n", head.join(" | "), " --- |".repeat(head.len())));
    for (says, code, refused, forged) in EVERYWHERE {
        for name in [refused, forged].into_iter().filter(|name| *name != NOBODY) {
            let is_there = ELSEWHERE.iter().any(|tests| tests.contains(&format!("fn {name}()")));
            assert!(is_there, "there is no test {name}");
        }
        table.push_str(&format!("| {says} | [`{code}`](../errors/{code}.md) | `{refused}` | `{forged}` |\n"));
    }
    let table = table.replace(&format!("`{NOBODY}`"), NOBODY);
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
