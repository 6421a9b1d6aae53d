//! The mock agent as a player of guarded work: it does what its part asks for, and words of the task, or of the variable `MOCK_SAYS`, say where it
//! does not.
//!
//! | word in what it is told | what it does |
//! | --- | --- |
//! | `propose-again` | rejects the first proposal |
//! | `only:TOOL` | approves a proposal for this tool alone |
//! | `forbidden` | blocks an intent whose input has it |
//! | `doubtful` | challenges every claim that revises none |
//! | `mumble` | proposes only when it is told that what it said was no proposal |
//! | `stammer` | says something of no form before it says it in the right one |
//! | `stubborn` | keeps a claim that is challenged |
//! | `by-tool` | answers through Baton's tools |
//! | `severe` | gives the verdict fail |

use serde_json::{Value, json};

/// How an answer is given.
pub(super) enum Said {
    Text(String),
    /// Tools of the server that the client named, and what they are given.
    ByTool(Vec<(&'static str, Value)>),
}

/// The answer to what is asked for; `None` where it is the work itself.
pub(super) fn answer(asked: &str, told: &str) -> Option<Said> {
    let has = |word: &str| told.contains(word);
    if asked == "a proposal" && has("mumble") && !has("was not taken") {
        return Some(Said::Text("I shall think about it.".to_owned()));
    }
    if asked != "the work" && has("stammer") && !has("was not taken") {
        return Some(Said::Text(json!({"stands": 7}).to_string()));
    }
    let id = |after: &str| {
        let rest = asked.strip_prefix(after)?;
        rest.split(|c: char| !c.is_ascii_alphanumeric()).next().map(str::to_owned)
    };
    let answer = if asked == "a proposal" {
        proposal(told)
    } else if let Some(id) = id("a review of proposal ") {
        let only = word_after(told, "only:");
        let status = match only {
            _ if has("propose-again") && id == "p1" => "rejected",
            Some(_) => "conditional",
            None => "approved",
        };
        json!({"review": {
            "proposal_id": id, "status": status, "conditions": only.into_iter().collect::<Vec<_>>(),
            "risk": "small", "rationale": format!("the mock critic says {status}"),
        }})
    } else if let Some(id) = id("a review of intent ") {
        let input = told.split("would be given:").nth(1).unwrap_or_default();
        let status = if input.contains("forbidden") { "blocked" } else { "approved" };
        json!({"review": {"intent_id": id, "status": status, "rationale": format!("the mock critic says {status}")}})
    } else if asked == "claims" {
        json!({"claims": [{"claim_text": "It is done, says the mock agent.", "confidence": 0.9}]})
    } else if let Some(ids) = asked.strip_prefix("challenges of ") {
        let revises = |id: &str| {
            let claim = told.split("This is claim ").find(|claim| claim.starts_with(&format!("{id}:")));
            claim.is_some_and(|claim| claim.contains("\"revises\""))
        };
        let doubted = ids.split(", ").filter(|id| has("doubtful") && !revises(id));
        let reason = "The mock critic wants it said more carefully.";
        let challenges = doubted.map(|id| json!({"claim_id": id, "reason": reason}));
        json!({"challenges": challenges.collect::<Vec<_>>()})
    } else if asked.starts_with("an answer about claim ") && has("stubborn") {
        json!({"stands": "the mock agent says so"})
    } else if let Some(id) = id("an answer about claim ") {
        json!({"claims": [{
            "claim_text": "It is done as far as its tools show, says the mock agent.", "confidence": 0.7, "revises": id,
        }]})
    } else if asked == "a verdict" {
        let status = if has("severe") { "fail" } else { "pass" };
        json!({"verdict": {"status": status, "summary": format!("the mock auditor says {status}")}})
    } else {
        return None;
    };
    Some(match has("by-tool") {
        true => Said::ByTool(calls(&answer)),
        false => Said::Text(format!("Here it is:\n```json\n{answer}\n```\n")),
    })
}

/// The calls of Baton's tools that say the same as an answer.
fn calls(answer: &Value) -> Vec<(&'static str, Value)> {
    let each = |name: &str, tool: &'static str| {
        let all = answer[name].as_array().cloned().unwrap_or_else(|| vec![answer[name].clone()]);
        all.into_iter().filter(|one| one.is_object()).map(move |one| (tool, one)).collect::<Vec<_>>()
    };
    let tools = [
        ("proposal", "submit_proposal"),
        ("review", "submit_review"),
        ("claims", "submit_claim"),
        ("challenges", "challenge_claim"),
    ];
    tools.into_iter().flat_map(|(name, tool)| each(name, tool)).collect()
}

fn proposal(told: &str) -> Value {
    let title = told.lines().find(|line| !line.trim().is_empty() && !line.starts_with("This is the task"));
    let tools =
        word_after(told, "tools:").unwrap_or_else(|| "write_file,read_file,run_command,execute".to_owned());
    json!({"proposal": {
        "objective": title.unwrap_or("what the task says"), "assumptions": ["the mock agent does what it is told"],
        "required_tools": tools.split(',').collect::<Vec<_>>(), "expected_evidence": ["what the tools print"],
    }})
}

/// What follows a mark up to the next blank.
fn word_after(text: &str, mark: &str) -> Option<String> {
    let rest = text.split(mark).nth(1)?;
    rest.split_whitespace().next().map(str::to_owned)
}
