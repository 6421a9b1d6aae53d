//! Dishonest journals: records as JSON, changed at will and sealed again with correct hashes.
//!
//! Written from the format's page, not with the crate's own sealing, so that it also checks the page.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_ledger::canonical::to_bytes;
use baton_ledger::hash::sha256;
use baton_ledger::key::SecretKey;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The members that are not part of the body.
const APART: [&str; 7] = ["batch", "commit", "hash", "pos", "prev", "seq", "sig"];

/// A record that can be changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record(pub Map<String, Value>);

impl Record {
    pub(crate) fn read(line: &[u8]) -> Self {
        match serde_json::from_slice(line).unwrap() {
            Value::Object(members) => Record(members),
            other => panic!("not a record: {other}"),
        }
    }

    pub(crate) fn set(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.0[name].as_str().unwrap().to_owned()
    }

    pub(crate) fn is_signed(&self) -> bool {
        self.0.contains_key("sig")
    }

    fn body_digest(&self) -> [u8; 32] {
        let mut body = self.0.clone();
        APART.iter().for_each(|name| drop(body.remove(*name)));
        sha256(&to_bytes(&Value::Object(body)).unwrap()).0
    }

    /// The hash that the members give.
    pub(crate) fn link_hash(&self) -> String {
        let member = |name: &str| self.0.get(name).cloned().unwrap_or(Value::Null);
        let digest: String = self.body_digest().iter().map(|byte| format!("{byte:02x}")).collect();
        let link = json!({
            "batch": member("batch"),
            "bd": digest,
            "commit": member("commit"),
            "prev": member("prev"),
            "seq": member("seq"),
            "sig": member("sig"),
        });
        sha256(&[b"baton/link/v1\n".as_slice(), &to_bytes(&link).unwrap()].concat()).to_string()
    }

    pub(crate) fn rehash(self) -> Self {
        let hash = self.link_hash();
        self.set("hash", hash)
    }

    /// Takes the signature away, as if the event had never had one.
    pub(crate) fn stripped(mut self) -> Self {
        self.0["actor"].as_object_mut().unwrap().remove("key");
        self.without("sig")
    }

    /// Signs the body as it stands now, with a key of the forger's choice.
    pub(crate) fn signed(mut self, key: &SecretKey) -> Self {
        self.0["actor"]["key"] = key.id().to_string().into();
        let signature = key.sign(&[b"baton/event/v1\n".as_slice(), &self.body_digest()].concat());
        let value = BASE64.encode(signature.0);
        self.set("sig", json!({"alg": "ed25519", "key": key.id().to_string(), "value": value}))
    }

    /// Puts another signature under the body, under the key that it claims.
    pub(crate) fn with_signature_of(self, other: &Record) -> Self {
        let mut sig = self.0["sig"].clone();
        sig["value"] = other.0["sig"]["value"].clone();
        self.set("sig", sig)
    }

    pub(crate) fn line(&self) -> Vec<u8> {
        let mut line = to_bytes(&Value::Object(self.0.clone())).unwrap();
        line.push(b'\n');
        line
    }
}

pub(crate) fn read(journal: &[u8]) -> Vec<Record> {
    journal.split(|b| *b == b'\n').filter(|line| !line.is_empty()).map(Record::read).collect()
}

pub(crate) fn lines(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(Record::line).collect()
}

/// Numbers and links all records anew and gives each its correct hash. Batches and commits are taken out: whoever can rewrite the file
/// can do that too.
pub(crate) fn reseal(records: Vec<Record>) -> Vec<Record> {
    let mut heads: BTreeMap<String, (u64, String)> = BTreeMap::new();
    let seal = |(i, record): (usize, Record)| {
        let (seq, prev) = heads.remove(&record.text("trace")).unwrap_or((0, "0".repeat(64)));
        let record = record.without("batch").without("commit");
        let record = record.set("pos", i as u64 + 1).set("seq", seq + 1).set("prev", prev).rehash();
        heads.insert(record.text("trace"), (seq + 1, record.text("hash")));
        record
    };
    records.into_iter().enumerate().map(seal).collect()
}

/// Gives every record after a change its place in the chains again, but leaves batches and commits as they are.
pub(crate) fn relink(records: Vec<Record>) -> Vec<Record> {
    let marks: Vec<[Option<Value>; 2]> =
        records.iter().map(|r| ["batch", "commit"].map(|name| r.0.get(name).cloned())).collect();
    let mut heads: BTreeMap<String, String> = BTreeMap::new();
    let resealed = reseal(records).into_iter().zip(marks);
    resealed
        .map(|(mut record, [batch, commit])| {
            for (name, mark) in [("batch", batch), ("commit", commit)] {
                if let Some(mark) = mark {
                    record = record.set(name, mark);
                }
            }
            let prev = heads.remove(&record.text("trace")).unwrap_or("0".repeat(64));
            let record = record.set("prev", prev).rehash();
            heads.insert(record.text("trace"), record.text("hash"));
            record
        })
        .collect()
}
