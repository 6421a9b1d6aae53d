//! Attestations: claims and final statements for readers who know in-toto and nothing of ledgers. `docs/reference/guarded.md` has their form.
//!
//! Each is an in-toto Statement v1 in a DSSE envelope that the ledger's key signs. Its predicate is the record as it stands, so that what the agent
//! itself signed comes along and can be checked. Nothing that the ledger's key signs elsewhere begins as an envelope does.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_core::guard::Step;
use baton_core::{Digest, Origin, Token};
use serde_json::json;

use crate::canonical::{push_string, to_bytes};
use crate::guard::Heard;
use crate::key::SecretKey;
use crate::record::Line;

/// What the payload of every envelope is.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// Makes the statements of one trace. It is shown every line in order, because a final statement is about the evidence of claims before it.
#[derive(Debug)]
pub struct Attestor<'a> {
    origin: &'a Origin,
    evidence: BTreeMap<Token, Vec<Evidence>>,
}

/// An artifact that a claim rests on, by the name under which it was cited.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Evidence {
    sha256: Digest,
    name: String,
}

impl<'a> Attestor<'a> {
    pub fn new(origin: &'a Origin) -> Self {
        Attestor { origin, evidence: BTreeMap::new() }
    }

    /// The statement that a line gives, as canonical JSON; `None` for whatever is neither a claim nor a final statement.
    pub fn statement(&mut self, line: &Line<'_>) -> Option<Vec<u8>> {
        let predicate_type = match line.event_type {
            "claim_issued" => "urn:baton:claim:v1",
            "final_statement_signed" => "urn:baton:final-statement:v1",
            _ => return None,
        };
        let mut out = Vec::with_capacity(line.text.len() + 1024);
        out.extend_from_slice(b"{\"_type\":");
        push_string(&mut out, STATEMENT_TYPE);
        out.extend_from_slice(b",\"predicate\":{\"origin\":");
        push_string(&mut out, self.origin.as_str());
        // Stored lines are canonical, so the whole is.
        out.extend_from_slice(b",\"record\":");
        out.extend_from_slice(line.text.as_bytes());
        out.extend_from_slice(b"},\"predicateType\":");
        push_string(&mut out, predicate_type);
        out.extend_from_slice(b",\"subject\":[");
        push_subjects(line, &self.evidence_of(line), &mut out);
        out.extend_from_slice(b"]}");
        Some(out)
    }

    fn evidence_of(&mut self, line: &Line<'_>) -> Vec<Evidence> {
        match Heard::of_line(line).step.map(|step| *step) {
            Some(Ok(Step::Claimed(claim))) => {
                let evidence: Vec<_> = claim.evidence.iter().map(|sha256| cited_as(line, *sha256)).collect();
                self.evidence.insert(claim.claim_id, evidence.clone());
                evidence
            }
            Some(Ok(Step::Finished(statement))) => {
                let claims = statement.claim_ids.iter();
                claims.filter_map(|id| self.evidence.get(id)).flatten().cloned().collect()
            }
            // Outside of guarded runs these types are anybody's own, and what they cite is all that is known.
            _ => line.artifacts.iter().map(|cited| cited_as(line, cited.sha256)).collect(),
        }
    }
}

/// The name under which a line cites an artifact; its hash where it does not.
fn cited_as(line: &Line<'_>, sha256: Digest) -> Evidence {
    let cited = line.artifacts.iter().find(|cited| cited.sha256 == sha256);
    Evidence { sha256, name: cited.map_or_else(|| sha256.to_string(), |cited| cited.name.unescaped()) }
}

/// Each artifact once, each under a name of its own. A statement has to be about something: where nothing is cited, about the record.
fn push_subjects(line: &Line<'_>, evidence: &[Evidence], out: &mut Vec<u8>) {
    let (mut hashes, mut names) = (BTreeSet::new(), Names::default());
    for Evidence { sha256, name } in evidence.iter().filter(|evidence| hashes.insert(evidence.sha256)) {
        if !names.given.is_empty() {
            out.push(b',');
        }
        push_subject("sha256", sha256, &names.give(name), out);
    }
    if evidence.is_empty() {
        push_subject("batonRecord", &line.hash, &line.id.to_string(), out);
    }
}

/// Names that are given once; whoever comes later gets a number.
#[derive(Default)]
struct Names {
    given: BTreeSet<String>,
    /// How often each name was asked for, so that nobody counts from the beginning.
    asked: BTreeMap<String, u64>,
}

impl Names {
    fn give(&mut self, name: &str) -> String {
        let asked = self.asked.entry(name.to_owned()).or_default();
        loop {
            *asked += 1;
            let given = if *asked == 1 { name.to_owned() } else { format!("{name} ({asked})") };
            if self.given.insert(given.clone()) {
                return given;
            }
        }
    }
}

fn push_subject(algorithm: &str, digest: &Digest, name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"digest\":{");
    push_string(out, algorithm);
    out.extend_from_slice(b":\"");
    digest.push_hex(out);
    out.extend_from_slice(b"\"},\"name\":");
    push_string(out, name);
    out.push(b'}');
}

/// The envelope around a payload, as one line.
pub fn envelope(payload: &[u8], key: &SecretKey) -> Vec<u8> {
    let signature = key.sign(&pre_authentication(PAYLOAD_TYPE, payload));
    let envelope = json!({
        "payload": BASE64.encode(payload),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": key.id().to_string(), "sig": BASE64.encode(signature.0)}],
    });
    #[expect(clippy::expect_used, reason = "an envelope holds strings only")]
    let mut bytes = to_bytes(&envelope).expect("canonical");
    bytes.push(b'\n');
    bytes
}

/// What is signed of an envelope: DSSE's pre-authentication encoding, in which nothing can be shifted from one part into the other.
fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use baton_core::{Actor, ArtifactRef, Event, EventId, Payload, Role, Timestamp, TraceId, Uuid7};
    use serde_json::Value;
    use zeroize::Zeroizing;

    use super::*;
    use crate::body::{Body, Link};
    use crate::canonical;
    use crate::hash::sha256;
    use crate::key::Signature;

    fn key() -> SecretKey {
        SecretKey::from_seed(&Zeroizing::new([1; 32]))
    }

    /// A line of an executor with these fields, which cites contents under these names.
    fn sealed(event_type: &str, fields: Value, cites: &[(&str, &str)]) -> String {
        let at = Timestamp::from_unix_ms(1_800_000_000_000).unwrap();
        let Value::Object(fields) = fields else { panic!("{fields}") };
        let cited = |(name, content): &(&str, &str)| ArtifactRef {
            sha256: sha256(content.as_bytes()),
            bytes: content.len() as u64,
            media_type: "text/plain".to_owned(),
            name: (*name).to_owned(),
        };
        let event = Event {
            trace: TraceId::Work(Uuid7::from_parts(at, [1; 10])),
            id: EventId::new(Uuid7::from_parts(at, [2; 10])),
            at,
            actor: Actor { agent: "cy".parse().unwrap(), role: Role::Executor, key: None },
            task: None,
            run: None,
            session: None,
            fence: None,
            payload: Payload::Other { event_type: event_type.parse().unwrap(), fields },
            artifacts: cites.iter().map(cited).collect(),
            seen: None,
        };
        let mut out = Vec::new();
        let link = Link { pos: 7, seq: 3, prev: sha256(b"before"), batch: None, commit: None };
        Body::signed(event, &key()).unwrap().seal(&link, &mut out);
        String::from_utf8(out).unwrap().trim_end().to_owned()
    }

    fn claim(id: &str, evidence: &[&str], cites: &[(&str, &str)]) -> String {
        let evidence: Value = evidence.iter().map(|content| sha256(content.as_bytes()).to_string()).collect();
        let fields =
            json!({"claim_id": id, "claim_text": "it works", "confidence": 0.5, "evidence": evidence});
        sealed("claim_issued", fields, cites)
    }

    fn subjects(statement: &[u8]) -> Vec<(String, Value)> {
        let statement: Value = canonical::parse(statement).unwrap();
        let subjects = statement["subject"].as_array().unwrap().clone();
        subjects
            .into_iter()
            .map(|subject| (subject["name"].as_str().unwrap().to_owned(), subject["digest"].clone()))
            .collect()
    }

    fn named(name: &str, content: &str) -> (String, Value) {
        (name.to_owned(), json!({"sha256": sha256(content.as_bytes()).to_string()}))
    }

    #[test]
    fn what_is_signed_is_the_encoding_of_dsse() {
        let encoded = pre_authentication("http://example.com/HelloWorld", b"hello world");
        assert_eq!(encoded, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
        let line = envelope(b"{}", &key());
        let envelope: Value = canonical::parse(line.strip_suffix(b"\n").unwrap()).unwrap();
        let signature = BASE64.decode(envelope["signatures"][0]["sig"].as_str().unwrap()).unwrap();
        let message = b"DSSEv1 28 application/vnd.in-toto+json 2 {}";
        assert!(key().public().verify_strict(message, &Signature(signature.try_into().unwrap())));
        assert_eq!(envelope["signatures"][0]["keyid"], key().id().to_string());
        assert_eq!(envelope["payload"], "e30=");
    }

    #[test]
    fn a_claim_is_about_its_evidence_and_a_final_statement_about_that_of_its_claims() {
        let origin = "baton/test".parse().unwrap();
        let mut attestor = Attestor::new(&origin);
        // What is cited beside the evidence is not what the claim is about.
        let first = claim("c1", &["a", "b"], &[("x", "a"), ("x", "b"), ("log", "c")]);
        let line = Line::parse(first.as_bytes()).unwrap();
        let statement = attestor.statement(&line).unwrap();
        assert_eq!(subjects(&statement), [named("x", "a"), named("x (2)", "b")]);
        let read: Value = canonical::parse(&statement).unwrap();
        assert_eq!(to_bytes(&read).unwrap(), statement, "it is canonical");
        assert_eq!(
            (&read["_type"], &read["predicateType"]),
            (&json!(STATEMENT_TYPE), &json!("urn:baton:claim:v1"))
        );
        assert_eq!(read["predicate"]["origin"], "baton/test");
        assert!(String::from_utf8(statement).unwrap().contains(&first), "the record is in it as it stands");
        let second = claim("c2", &["b", "d"], &[("y", "b"), ("x (2)", "d")]);
        attestor.statement(&Line::parse(second.as_bytes()).unwrap()).unwrap();
        let third = claim("c3", &["e"], &[("z", "e")]);
        attestor.statement(&Line::parse(third.as_bytes()).unwrap()).unwrap();
        let fields = json!({"claim_ids": ["c1", "c2"], "verdict_text": "done"});
        let last = sealed("final_statement_signed", fields, &[]);
        let statement = attestor.statement(&Line::parse(last.as_bytes()).unwrap()).unwrap();
        assert_eq!(subjects(&statement), [named("x", "a"), named("x (2)", "b"), named("x (2) (2)", "d")]);
        let read: Value = canonical::parse(&statement).unwrap();
        assert_eq!(read["predicateType"], "urn:baton:final-statement:v1");
        let other = sealed("note", json!({}), &[("x", "a")]);
        assert_eq!(attestor.statement(&Line::parse(other.as_bytes()).unwrap()), None);
    }

    #[test]
    fn what_cites_nothing_is_about_its_own_record_and_what_does_not_read_about_what_it_cites() {
        let origin = "baton/test".parse().unwrap();
        let mut attestor = Attestor::new(&origin);
        let bare = claim("c1", &[], &[("x", "a")]);
        let line = Line::parse(bare.as_bytes()).unwrap();
        let record = (line.id.to_string(), json!({"batonRecord": line.hash.to_string()}));
        assert_eq!(subjects(&attestor.statement(&line).unwrap()), [record]);
        let own = sealed("claim_issued", json!({"claim_id": 1}), &[("x", "a")]);
        let statement = attestor.statement(&Line::parse(own.as_bytes()).unwrap()).unwrap();
        assert_eq!(subjects(&statement), [named("x", "a")]);
        let uncited = claim("c2", &["a"], &[]);
        let statement = attestor.statement(&Line::parse(uncited.as_bytes()).unwrap()).unwrap();
        assert_eq!(subjects(&statement), [named(&sha256(b"a").to_string(), "a")]);
    }
}
