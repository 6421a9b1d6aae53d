//! What players are told: each what it needs for its part, and nothing of the others' conversations.
//!
//! The first line of the last part says what is asked for, in one form for people, models and programs: `Asked for: …`.

use std::io::Read as _;

use baton_core::guard::{Claimed, Intended, Proposed, Run};
use baton_core::ids::Token;
use baton_store::ArtifactStore;

use super::scene::Standing;
use crate::limits::{
    GUARD_INPUT_BYTES_MAX, GUARD_INPUT_MEMBERS_MAX, GUARD_INPUT_SHOWN_BYTES, GUARD_SHOWN_BYTES_MAX,
    GUARD_SHOWN_EACH_BYTES,
};

/// What the form of every answer is.
const FORM: &str = "Answer with one JSON object of this form, and nothing after it; words in capitals are for you to fill in:";

/// For the planner: how to do the task.
pub(super) fn propose(
    text: &str,
    tools: &[String],
    before: Option<(&Proposed, &str)>,
    failed: &[String],
) -> Vec<String> {
    let mut parts = vec![format!("This is the task:\n\n{text}")];
    if let Some((proposed, why)) = before {
        let id = &proposed.proposal.proposal_id;
        parts.push(format!("Your proposal {id} ({}) was rejected: {why}", proposed.proposal.objective));
    }
    if !failed.is_empty() {
        parts.push(format!("What was tried and failed:\n{}", failed.join("\n")));
    }
    parts.push(format!(
        "Asked for: a proposal\nYou are the planner. Others review your proposal and do the work; you change nothing. Name every tool that the work \
         needs, by these names: {}. {FORM}\n\
         {{\"proposal\": {{\"objective\": \"WHAT IS TO BE TRUE IN THE END\", \"assumptions\": [\"…\"], \"required_tools\": [\"…\"], \
         \"expected_evidence\": [\"WHAT WOULD PROVE IT\"]}}}}",
        tools.join(", ")
    ));
    parts
}

/// For the critic: a proposal.
pub(super) fn review(text: &str, proposed: &Proposed) -> Vec<String> {
    let proposal = &proposed.proposal;
    let id = &proposal.proposal_id;
    let shown = serde_json::to_string_pretty(proposal).unwrap_or_default();
    vec![
        format!("This is the task:\n\n{text}"),
        format!("This is proposal {id}:\n\n{shown}"),
        format!(
            "Asked for: a review of proposal {id}\nYou are the critic. Look for what is unsafe, missing or more than the task needs. Conditions \
             let only the tools through that they begin with. {FORM}\n\
             {{\"review\": {{\"proposal_id\": \"{id}\", \"status\": \"approved|conditional|rejected\", \"conditions\": [\"TOOL: WHAT FOR\"], \
             \"risk\": \"WHAT MAY GO WRONG\", \"rationale\": \"WHY\"}}}}"
        ),
    ]
}

/// For the critic: a tool that is to be run.
pub(super) fn review_intent(run: &Run, intended: &Intended, input: &str) -> Vec<String> {
    let intent = &intended.intent;
    let (id, tool) = (&intent.intent_id, &intent.tool_name);
    let objective = run.proposal(&intent.proposal_id).map(|proposed| proposed.proposal.objective.clone());
    let retry =
        intent.retry_of.as_ref().map(|id| format!(" It takes the place of {id}.")).unwrap_or_default();
    vec![
        format!(
            "The executor wants to run {tool} (class {}) for this objective: {}\nIt says why: {}{retry}",
            intent.risk_class,
            quoted(&objective.unwrap_or_default()),
            quoted(&intent.justification)
        ),
        format!("This is what the tool would be given:\n\n{input}"),
        format!(
            "Asked for: a review of intent {id} ({tool})\nYou are the critic. The tool waits for you, and does not run if you block it. {FORM}\n\
             {{\"review\": {{\"intent_id\": \"{id}\", \"status\": \"approved|blocked\", \"rationale\": \"WHY\"}}}}"
        ),
    ]
}

/// For the executor: the task itself first, as with any other, then the proposal and the rules.
pub(super) fn execute(text: &str, standing: &Standing, takes_tools: bool) -> Vec<String> {
    let run = &standing.run;
    let mut parts = vec![text.to_owned()];
    if let Some(proposed) = run.approved() {
        let shown = serde_json::to_string_pretty(&proposed.proposal).unwrap_or_default();
        let only = proposed.only.as_ref().map(|only| {
            format!(
                "\nOnly these tools were let through: {}",
                only.iter().cloned().collect::<Vec<_>>().join(", ")
            )
        });
        parts.push(format!("This proposal was approved:\n\n{shown}{}", only.unwrap_or_default()));
    }
    let done = history(standing);
    if !done.is_empty() {
        parts.push(format!("This was done before, and is not done again without need:\n{}", done.join("\n")));
    }
    let end = match takes_tools {
        true => {
            "When you are through, call Baton's tool report_completion with an honest outcome and a summary; what you \
             claim is checked against what your tools left."
        }
        false => "When you are through, say so; you are asked then what you claim.",
    };
    parts.push(format!(
        "Asked for: the work\nYou are the executor. Every tool that you run is recorded before it runs, and some wait for a review; one that is \
         blocked is not run, and you do it in another way or not at all. Ask for permission before every tool that changes something. {end}"
    ));
    parts
}

/// What is asked of an executor whose turn ended without a word about its work.
pub(super) fn remind() -> Vec<String> {
    let how = "If the work is finished, or cannot go on, call Baton's tool report_completion now.";
    vec!["There is no report yet.".to_owned(), format!("Your turn ended. {how}")]
}

/// For the executor: what it claims.
pub(super) fn claims(standing: &Standing) -> Vec<String> {
    vec![
        "What came of the work?".to_owned(),
        format!("These tools were run:\n{}", history(standing).join("\n")),
        format!(
            "Asked for: claims\nSay what is true now, each with what it rests on. {FORM}\n\
             {{\"claims\": [{{\"claim_text\": \"WHAT IS TRUE\", \"confidence\": 0.9, \"executions\": [\"IDS OF THE TOOLS THAT SHOW IT\"]}}]}}"
        ),
    ]
}

/// For the critic: claims and what they rest on.
pub(super) fn examine(
    text: &str,
    standing: &Standing,
    claims: &[&Claimed],
    store: &dyn ArtifactStore,
) -> Vec<String> {
    let mut parts = vec![format!("This is the task:\n\n{text}")];
    let mut left = GUARD_SHOWN_BYTES_MAX;
    for claimed in claims {
        let shown = serde_json::to_string_pretty(&claimed.claim).unwrap_or_default();
        let mut part = format!("This is claim {}:\n\n{shown}", claimed.claim.claim_id);
        for hash in &claimed.claim.evidence {
            let name =
                standing.aside.artifacts.get(hash).map_or("evidence", |artifact| artifact.name.as_str());
            let text = beginning(store, hash, left.min(GUARD_SHOWN_EACH_BYTES));
            left = left.saturating_sub(text.len());
            let bytes = standing.aside.artifacts.get(hash).map_or(0, |artifact| artifact.bytes);
            let is_cut = bytes > text.len() as u64;
            let text = if is_cut { format!("{text} … (cut: {bytes} bytes in all)") } else { text };
            part.push_str(&format!("\n\n{name} ({hash}):\n{text}"));
        }
        parts.push(part);
    }
    let ids: Vec<&str> = claims.iter().map(|claimed| claimed.claim.claim_id.as_str()).collect();
    parts.push(format!(
        "Asked for: challenges of {}\nYou are the critic. Challenge a claim whose evidence is weak or says otherwise; an empty list challenges \
         nothing. {FORM}\n{{\"challenges\": [{{\"claim_id\": \"ID\", \"reason\": \"WHAT IS WRONG WITH IT\"}}]}}",
        ids.join(", ")
    ));
    parts
}

/// For the executor: a challenge.
pub(super) fn answer(claimed: &Claimed, why: &str) -> Vec<String> {
    let id = &claimed.claim.claim_id;
    vec![
        format!("Claim {id} ({}) is challenged: {why}", claimed.claim.claim_text),
        format!(
            "Asked for: an answer about claim {id}\nRevise the claim so that its evidence carries it, or keep it, disputed. {FORM}\n\
             {{\"claims\": [{{\"claim_text\": \"WHAT IS TRUE\", \"confidence\": 0.8, \"executions\": [\"…\"], \"revises\": \"{id}\"}}]}}\n\
             or {{\"stands\": \"WHY IT STANDS\"}}"
        ),
    ]
}

/// For an auditor that is an agent: what the verifier says.
pub(super) fn verdict(report: &str) -> Vec<String> {
    vec![
        format!(
            "The verifier has checked everything that was recorded about this run. Its report:\n\n{report}"
        ),
        format!(
            "Asked for: a verdict\nYou are the auditor, and sign what you say. You may be stricter than the verifier, and never milder. {FORM}\n\
             {{\"verdict\": {{\"status\": \"pass|pass-with-warnings|fail\", \"summary\": \"WHY\"}}}}"
        ),
    ]
}

/// What an answer that does not fit is told.
pub(super) fn correct(asked: &[String], why: &str) -> Vec<String> {
    let asked = asked.last().map(String::as_str).unwrap_or_default();
    vec![format!("Your answer was not taken: {why}"), asked.to_owned()]
}

/// The tools that were run, a line each.
fn history(standing: &Standing) -> Vec<String> {
    let mut all: Vec<&Intended> =
        standing.run.intents().filter(|intended| intended.started.is_some()).collect();
    all.sort_unstable_by_key(|intended| intended.seq);
    let line = |intended: &Intended| {
        let (id, tool) = (&intended.intent.intent_id, &intended.intent.tool_name);
        let how = match (intended.ended, intended.has_failed) {
            (None, _) => "is running".to_owned(),
            (Some(_), false) => "completed".to_owned(),
            (Some(_), true) => format!("failed: {}", word(standing, id)),
        };
        format!("{id}  {tool}  {how}")
    };
    all.into_iter().map(line).collect()
}

pub(super) fn word<'a>(standing: &'a Standing, id: &Token) -> &'a str {
    standing.aside.words.get(id).map_or("", String::as_str)
}

/// Somebody's words, so that nothing in them can be taken for ours.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What a tool would be given: each member by itself, the short ones first, so that nothing hides behind something long.
pub(super) fn input(store: &dyn ArtifactStore, hash: &baton_core::Digest) -> String {
    let whole = beginning(store, hash, GUARD_INPUT_BYTES_MAX);
    // Both ends: what matters may stand at either of them.
    let cut = |text: String| match text.len() > 2 * GUARD_INPUT_SHOWN_BYTES {
        true => format!(
            "{} … (cut: {} bytes in all; block it unless what you see is enough) … {}",
            &text[..text.floor_char_boundary(GUARD_INPUT_SHOWN_BYTES)],
            text.len(),
            &text[text.ceil_char_boundary(text.len() - GUARD_INPUT_SHOWN_BYTES)..]
        ),
        false => text,
    };
    let Ok(serde_json::Value::Object(members)) = serde_json::from_str(&whole) else { return cut(whole) };
    let mut lines: Vec<String> =
        members.iter().map(|(name, value)| format!("{}: {value}", quoted(name))).collect();
    lines.sort_by_key(String::len);
    let shown: Vec<String> = lines.into_iter().take(GUARD_INPUT_MEMBERS_MAX).map(cut).collect();
    let more = members.len().saturating_sub(shown.len());
    let more = if more > 0 {
        format!("\n… and {more} members more, which are not shown: block it unless what you see is enough")
    } else {
        String::new()
    };
    format!("{}{more}", shown.join("\n"))
}

/// The beginning of an artifact, as text.
pub(super) fn beginning(store: &dyn ArtifactStore, hash: &baton_core::Digest, max: usize) -> String {
    let mut bytes = Vec::new();
    let read = store.open(hash).and_then(|file| file.take(max as u64).read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("(it cannot be read: {error})"),
    }
}
