//! What a player answers when it is asked for its part: one JSON object with one member that says what it is. The published schema is
//! `docs/reference/roles.schema.json`; ids are given by Baton, never by whoever answers.

use serde_json::{Map, Value};

use super::read::{Fields, Read};
use super::run::Run;
use super::step::{Challenge, Claim, IntentReview, Proposal, ProposalReview};
use super::words::{Outcome, Risk};
use crate::event::PayloadError;
use crate::ids::Token;
use crate::limits::{GUARD_REPLY_ITEMS_MAX, GUARD_REPLY_TRIES_MAX};

/// An answer that reads.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// `{"proposal": {…}}`
    Proposal(Proposal),
    /// `{"review": {"proposal_id": …}}`
    Review(ProposalReview),
    /// `{"review": {"intent_id": …}}`
    IntentReview(IntentReview),
    /// `{"intent": {…}}`
    Intent(Declared),
    /// `{"claims": […]}`
    Claims(Vec<Claim>),
    /// `{"challenges": […]}`: none says that there is nothing to challenge.
    Challenges(Vec<Challenge>),
    /// `{"stands": "…"}`: a claim is kept in spite of its challenge.
    Stands(String),
    /// `{"verdict": {…}}`
    Verdict { status: Outcome, summary: String },
}

/// A tool that an executor says it is going to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    pub tool_name: String,
    pub input: Value,
    pub risk_class: Option<Risk>,
    pub justification: String,
    pub retry_of: Option<Token>,
}

/// The members of which an answer has exactly one.
const KINDS: [&str; 7] = ["proposal", "review", "intent", "claims", "challenges", "stands", "verdict"];

impl Reply {
    /// The last object of a text that can be an answer; around it may stand anything.
    pub fn find(text: &str) -> Option<Map<String, Value>> {
        // The last of them: what stands before may be code.
        let begins: Vec<usize> = text.match_indices('{').map(|(at, _)| at).collect();
        let skipped = begins.len().saturating_sub(GUARD_REPLY_TRIES_MAX);
        let (mut found, mut at) = (None, 0);
        for &start in &begins[skipped..] {
            if start < at {
                continue;
            }
            let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
            if let Some(Ok(Value::Object(object))) = values.next() {
                at = start + values.byte_offset();
                if KINDS.iter().any(|kind| object.contains_key(*kind)) {
                    found = Some(object);
                }
            }
        }
        found
    }

    /// Reads an answer, for a run that has its names already.
    pub fn read(object: &Map<String, Value>, run: &Run) -> Result<Reply, PayloadError> {
        let of = Fields(object);
        let mut kinds = KINDS.iter().filter(|kind| object.contains_key(**kind));
        let (Some(kind), None) = (kinds.next(), kinds.next()) else {
            return Err(of.refuse("answer", format!("an object with one of {}", KINDS.join(", "))));
        };
        match *kind {
            "proposal" => {
                let fields = with_id(of.object("proposal")?, "proposal_id", &run.fresh("p", 0));
                Ok(Reply::Proposal(Fields(&fields).proposal()?))
            }
            "review" => {
                let fields = of.object("review")?;
                match fields.contains_key("intent_id") {
                    true => Ok(Reply::IntentReview(Fields(fields).intent_review()?)),
                    false => Ok(Reply::Review(Fields(fields).proposal_review()?)),
                }
            }
            "intent" => Ok(Reply::Intent(Fields(of.object("intent")?).declared()?)),
            "claims" => {
                let one = |(i, fields)| Fields(&with_id(fields, "claim_id", &run.fresh("c", i))).claim();
                Ok(Reply::Claims(
                    of.objects("claims", 1)?.into_iter().enumerate().map(one).collect::<Read<_>>()?,
                ))
            }
            "challenges" => {
                let one = |fields| Fields(fields).challenge();
                Ok(Reply::Challenges(of.objects("challenges", 0)?.into_iter().map(one).collect::<Read<_>>()?))
            }
            "stands" => Ok(Reply::Stands(of.said("stands")?)),
            _ => {
                let of = Fields(of.object("verdict")?);
                Ok(Reply::Verdict { status: of.word("status")?, summary: of.said("summary")? })
            }
        }
    }
}

impl Fields<'_> {
    fn object(&self, field: &'static str) -> Read<&Map<String, Value>> {
        self.0.get(field).and_then(Value::as_object).ok_or_else(|| self.refuse(field, "an object"))
    }

    fn objects(&self, field: &'static str, least: usize) -> Read<Vec<&Map<String, Value>>> {
        let items = self.0.get(field).and_then(Value::as_array);
        let items = items.filter(|items| (least..=GUARD_REPLY_ITEMS_MAX).contains(&items.len()));
        let objects: Option<Vec<_>> = items.and_then(|items| items.iter().map(Value::as_object).collect());
        let expected = || format!("an array of {least} to {GUARD_REPLY_ITEMS_MAX} objects");
        objects.ok_or_else(|| self.refuse(field, expected()))
    }

    fn declared(&self) -> Read<Declared> {
        Ok(Declared {
            tool_name: self.said("tool_name")?,
            input: self.0.get("input").cloned().unwrap_or_default(),
            risk_class: self.0.contains_key("risk_class").then(|| self.word("risk_class")).transpose()?,
            justification: self.said("justification")?,
            retry_of: self.maybe_id("retry_of")?,
        })
    }
}

fn with_id(fields: &Map<String, Value>, name: &str, id: &Token) -> Map<String, Value> {
    let mut fields = fields.clone();
    fields.insert(name.to_owned(), id.to_string().into());
    fields
}
