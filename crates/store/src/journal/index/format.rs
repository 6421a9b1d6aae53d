//! The index's files to the byte: entries, rows of traces and keys, and `meta`, which says how much of them is good.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_core::limits::LINE_BYTES_MAX;
use baton_core::{Digest, EventId, TraceId, Uuid7};
use baton_ledger::key::{PublicKey, SecretKey, Signature};

use crate::ports::TraceSummary;

pub(super) const ENTRY: usize = 72;
pub(super) const NODE: usize = 32;
pub(super) const TRACE: usize = 96;
pub(super) const KEY: usize = 16;

/// Where one event lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub id: EventId,
    /// Position in the name of its segment.
    pub segment: u64,
    pub offset: u64,
    /// Bytes of the line without its line feed.
    pub length: u32,
    pub trace_no: u32,
    pub seq: u64,
    /// Position of the event before it in its trace, or 0.
    pub prev_pos: u64,
    /// Position of an event further back, so that any number of a trace is found in a few steps: see [`skip_target`].
    pub skip_pos: u64,
}

impl Entry {
    /// The check covers the position too: an entry in another's place is no entry.
    pub(super) fn write(&self, pos: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.id.uuid().as_bytes());
        out.extend_from_slice(&self.segment.to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&self.trace_no.to_le_bytes());
        out.extend_from_slice(&self.seq.to_le_bytes());
        out.extend_from_slice(&self.prev_pos.to_le_bytes());
        out.extend_from_slice(&self.skip_pos.to_le_bytes());
        let check = fnv1a(pos, &out[out.len() - (ENTRY - 8)..]);
        out.extend_from_slice(&check.to_le_bytes());
    }

    pub(super) fn read(pos: u64, bytes: &[u8; ENTRY]) -> Option<Entry> {
        if number(&bytes[64..72])? != fnv1a(pos, &bytes[..64]) {
            return None;
        }
        let entry = Entry {
            id: EventId::new(Uuid7::from_bytes(bytes[..16].try_into().ok()?)?),
            segment: number(&bytes[16..24])?,
            offset: number(&bytes[24..32])?,
            length: u32::from_le_bytes(bytes[32..36].try_into().ok()?),
            trace_no: u32::from_le_bytes(bytes[36..40].try_into().ok()?),
            seq: number(&bytes[40..48])?,
            prev_pos: number(&bytes[48..56])?,
            skip_pos: number(&bytes[56..64])?,
        };
        let fits = entry.length as usize <= LINE_BYTES_MAX && entry.offset <= 1 << 53;
        fits.then_some(entry)
    }
}

/// The end of a trace.
pub(super) fn write_row(out: &mut Vec<u8>, summary: &TraceSummary) {
    out.extend_from_slice(&summary.trace.to_key());
    for n in [summary.first_pos, summary.last_pos, summary.seq] {
        out.extend_from_slice(&n.to_le_bytes());
    }
    out.extend_from_slice(&summary.head.0);
    out.push(u8::from(summary.is_closed));
    out.extend_from_slice(&[0; TRACE - 73]);
}

pub(super) fn read_row(row: &[u8]) -> Option<TraceSummary> {
    Some(TraceSummary {
        trace: TraceId::from_key(row[..16].try_into().ok()?)?,
        first_pos: number(&row[16..24])?,
        last_pos: number(&row[24..32])?,
        seq: number(&row[32..40])?,
        head: Digest(row[40..72].try_into().ok()?),
        is_closed: row[72] == 1,
    })
}

/// FNV-1a of 64 bits: notices every change of a single byte. Against decay, not against malice.
fn fnv1a(pos: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    pos.to_le_bytes().iter().chain(bytes).fold(0xcbf2_9ce4_8422_2325, step)
}

pub(super) fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// How much of each file is good, and how to tell.
pub(super) struct Meta {
    pub(super) count: u64,
    pub(super) generation: u64,
    pub(super) trace_log: u64,
    pub(super) key_log: u64,
    pub(super) id_max: Option<EventId>,
    pub(super) trace_hash: Digest,
    pub(super) key_hash: Digest,
    pub(super) root: Digest,
}

const META_HEADER: &str = "baton-index 3";

impl Meta {
    /// The text of `meta`, signed: whoever can write the index could otherwise bring an ended key back, or make Baton go on behind the end of a trace.
    pub(super) fn to_text(&self, key: &SecretKey) -> String {
        let id = self.id_max.map_or("none".to_owned(), |id| id.to_string());
        let numbers = format!("{} {} {} {}", self.count, self.generation, self.trace_log, self.key_log);
        let hashes = format!("{} {} {}", self.trace_hash, self.key_hash, self.root);
        let body = format!("{META_HEADER}\n{numbers}\n{id}\n{hashes}\n");
        format!("{body}{}\n", BASE64.encode(key.sign(body.as_bytes()).0))
    }

    pub(super) fn parse(bytes: &[u8], key: &PublicKey) -> Option<Meta> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (body, signature) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let body = format!("{body}\n");
        let signature = Signature(BASE64.decode(signature).ok()?.try_into().ok()?);
        let mut lines = body.lines();
        if lines.next()? != META_HEADER || !key.verify_strict(body.as_bytes(), &signature) {
            return None;
        }
        let numbers: Option<Vec<u64>> = lines.next()?.split(' ').map(|n| n.parse().ok()).collect();
        let [count, generation, trace_log, key_log] = numbers?[..] else { return None };
        // No file is that long: nothing is computed from such numbers.
        if [count, generation, trace_log, key_log].iter().any(|number| *number > 1 << 48) {
            return None;
        }
        let id_max = match lines.next()? {
            "none" => None,
            id => Some(id.parse().ok()?),
        };
        let hashes = lines.next()?.split(' ').map(|hash| Digest::from_hex(hash.as_bytes()));
        let [trace_hash, key_hash, root] = hashes.collect::<Option<Vec<_>>>()?[..] else { return None };
        Some(Meta { count, generation, trace_log, key_log, id_max, trace_hash, key_hash, root })
    }
}
