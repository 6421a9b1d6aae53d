//! Makes bundles with the crate's own functions, in parts that can be exchanged.

use baton_core::{Digest, Role, TraceId};
use baton_ledger::bundle::{
    Header, Summary, artifact_chunks, artifact_line, checkpoint_line, event_line, head_line, proof_line,
};
use baton_ledger::hash::sha256;
use baton_ledger::merkle::prove_inclusion;
use baton_ledger::record::Line;
use serde_json::json;

use crate::writer::{Writer, artifact, bound, event, grant, ledger, note, other, signed, trace, unsigned};

/// The lines of a bundle, each a piece that can be replaced.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub header: Header,
    pub events: Vec<Vec<u8>>,
    pub artifacts: Vec<Vec<u8>>,
    pub head: String,
    pub checkpoint: String,
    pub index: u64,
    pub path: Vec<Digest>,
    pub summary: Summary,
}

impl Parts {
    /// The bundle of a trace of this journal; `contents` are the cited artifacts, where they are inline.
    pub(crate) fn new(writer: &Writer, trace: TraceId, contents: Option<&[&[u8]]>) -> Self {
        let lines: Vec<Line<'_>> =
            writer.lines().into_iter().map(|line| Line::parse(line).unwrap()).collect();
        let lines: Vec<&Line<'_>> = lines.iter().filter(|line| line.trace == trace).collect();
        let last = lines[lines.len() - 1];
        let mut cited: Vec<Digest> =
            lines.iter().flat_map(|line| &line.artifacts).map(|a| a.sha256).collect();
        cited.sort();
        cited.dedup();
        let mut contents_by_hash: Vec<&[u8]> = contents.unwrap_or_default().to_vec();
        contents_by_hash.sort_by_key(|content| sha256(content));
        let artifacts = contents_by_hash.iter().flat_map(|content| artifact_lines(content)).collect();
        let positions: String = lines.iter().map(|line| format!("{}\n", line.pos)).collect();
        let events = lines.len() as u64;
        Parts {
            header: Header {
                ledger: ledger(),
                trace,
                events,
                size: writer.size(),
                inline: contents.is_some(),
            },
            events: lines.iter().map(|line| event_line(line.text.as_bytes())).collect(),
            artifacts,
            head: writer.head(trace),
            checkpoint: writer.checkpoint(),
            index: last.pos - 1,
            path: prove_inclusion(last.pos - 1, writer.size(), |at| writer.node(at)).unwrap(),
            summary: Summary {
                artifacts: cited.len() as u64,
                closed: last.event_type == "trace.closed",
                events,
                head: last.hash,
                positions: sha256(positions.as_bytes()),
                signed: lines.iter().filter(|line| line.sig.is_some()).count() as u64,
                trace,
            },
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut lines = vec![self.header.to_line()];
        lines.extend(self.events.clone());
        lines.extend(self.artifacts.clone());
        lines.push(head_line(&self.head));
        lines.push(checkpoint_line(&self.checkpoint));
        lines.push(proof_line(self.index, &self.path));
        lines.push(self.summary.to_line());
        lines.concat()
    }

    pub(crate) fn with(&self, change: impl FnOnce(&mut Parts)) -> Vec<u8> {
        let mut parts = self.clone();
        change(&mut parts);
        parts.bytes()
    }
}

pub(crate) fn artifact_lines(content: &[u8]) -> Vec<Vec<u8>> {
    let (hash, bytes) = (sha256(content), content.len() as u64);
    let chunk = |i: u64| {
        let start = (i as usize - 1) * 524_288;
        artifact_line(&hash, bytes, i, &content[start..content.len().min(start + 524_288)])
    };
    (1..=artifact_chunks(bytes)).map(chunk).collect()
}

/// A trace of three events, two of them signed, between events of another one; it cites these contents.
pub(crate) fn citing(contents: &[&[u8]]) -> Writer {
    let mut writer = Writer::new();
    writer.append(vec![signed(bound(2, trace(1), grant(5, "worker", &[Role::Executor])), 1)]).unwrap();
    writer.append(vec![unsigned(&note(3, trace(2)))]).unwrap();
    let mut claim =
        event(4, trace(1), "worker", Role::Executor, other("claim_issued", &json!({"a": "\u{1}€"})));
    claim.artifacts = contents.iter().map(|content| artifact(content, "n")).collect();
    writer.append(vec![signed(claim, 5), unsigned(&note(5, trace(2)))]).unwrap();
    let mut again = note(6, trace(1));
    again.artifacts = contents.iter().take(1).map(|content| artifact(content, "again")).collect();
    writer.append(vec![unsigned(&again)]).unwrap();
    writer.append(vec![unsigned(&note(7, trace(2)))]).unwrap();
    writer
}
