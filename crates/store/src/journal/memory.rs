//! A journal without a disk: the same promises except durability, for tests and for work that may be forgotten.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_core::{Digest, Durability, EventId, Payload, TraceId};
use baton_ledger::body::Body;
use baton_ledger::key::SecretKey;
use baton_ledger::keyring::{KeyRing, LedgerIdentity};
use baton_ledger::merkle::Frontier;
use baton_ledger::record::Line;
use baton_ledger::seal::{Chain, Checked, Past, Proposal, Receipt, Refusal};

use super::fs::own_event;
use super::growth::Growth;
use crate::ports::{AppendError, History, Journal, ReadError, StoredLine, TraceSummary};

/// Everything in one place, behind one lock.
#[derive(Debug)]
pub struct MemoryJournal {
    inner: Mutex<Inner>,
    growth: Growth,
}

#[derive(Debug)]
struct Inner {
    chain: Chain,
    lines: Vec<String>,
    nodes: Vec<Digest>,
    places: Vec<Receipt>,
    firsts: Vec<(TraceId, u64)>,
}

impl MemoryJournal {
    /// A new ledger with this key.
    pub fn new(ledger: LedgerIdentity, key: &SecretKey) -> Result<Self, AppendError> {
        let created = Payload::LedgerCreated {
            origin: ledger.origin.clone(),
            key: ledger.key.id(),
            public: ledger.key.to_text(),
            durability: Durability::None,
        };
        let inner = Inner {
            chain: Chain::new(ledger),
            lines: Vec::new(),
            nodes: Vec::new(),
            places: Vec::new(),
            firsts: Vec::new(),
        };
        let journal = MemoryJournal { inner: Mutex::new(inner), growth: Growth::default() };
        let event = own_event(TraceId::Ledger, created)?;
        let body = Body::signed(event, key).map_err(|e| Refusal::Form(e.to_string()))?;
        journal.append(Proposal { events: vec![Checked::just_signed(body, key)], decided_on: Vec::new() })?;
        Ok(journal)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was there before the decision.
struct Before<'a>(&'a [Receipt]);

impl Past for Before<'_> {
    fn hash_of(&self, trace: TraceId, seq: u64) -> Result<Option<Digest>, String> {
        let found = self.0.iter().find(|place| (place.trace, place.seq) == (trace, seq));
        Ok(found.map(|place| place.hash))
    }

    fn has_id(&self, id: EventId) -> Result<bool, String> {
        Ok(self.0.iter().any(|place| place.id == id))
    }
}

impl Inner {
    fn summary(&self, trace: TraceId, first_pos: u64) -> Option<TraceSummary> {
        let state = self.chain.trace(trace)?;
        Some(TraceSummary {
            trace,
            first_pos,
            last_pos: state.last_pos,
            seq: state.seq,
            head: state.hash,
            is_closed: state.is_closed,
        })
    }

    fn line(&self, pos: u64) -> Option<StoredLine> {
        let text = self.lines.get(usize::try_from(pos.checked_sub(1)?).ok()?)?;
        debug_assert!(Line::parse(text.as_bytes()).is_ok_and(|line| line.pos == pos));
        Some(StoredLine { pos, text: text.clone() })
    }
}

impl Journal for MemoryJournal {
    fn append(&self, proposal: Proposal) -> Result<Vec<Receipt>, AppendError> {
        let mut inner = self.lock();
        let Inner { chain, lines, nodes, places, firsts } = &mut *inner;
        let (mut bytes, mut new_nodes) = (Vec::new(), Vec::new());
        chain.begin_write();
        let start = chain.frontier().size() + 1;
        let receipts =
            chain.seal(&proposal, &Before(places), start, &mut bytes, |node| new_nodes.push(node))?;
        nodes.extend(new_nodes);
        lines.extend(String::from_utf8_lossy(&bytes).lines().map(str::to_owned));
        firsts
            .extend(receipts.iter().filter(|receipt| receipt.seq == 1).map(|first| (first.trace, first.pos)));
        places.extend_from_slice(&receipts);
        let size = places.len() as u64;
        drop(inner);
        self.growth.grew(size);
        Ok(receipts)
    }

    fn wait_beyond(&self, seen: u64, time: Duration) -> u64 {
        self.growth.wait_beyond(seen, time)
    }
}

impl History for MemoryJournal {
    fn ledger(&self) -> LedgerIdentity {
        self.lock().chain.ledger().clone()
    }

    fn size(&self) -> u64 {
        self.lock().chain.frontier().size()
    }

    fn tree(&self) -> Result<Frontier, ReadError> {
        Ok(self.lock().chain.frontier().clone())
    }

    fn settle(&self) -> Result<(), ReadError> {
        Ok(())
    }

    fn node(&self, index: u64) -> Result<Digest, ReadError> {
        let found = usize::try_from(index).ok().and_then(|index| self.lock().nodes.get(index).copied());
        found.ok_or_else(|| ReadError::Damaged { pos: index, why: "no such node".into() })
    }

    fn trace(&self, trace: TraceId) -> Option<TraceSummary> {
        let inner = self.lock();
        let (_, first) = inner.firsts.iter().find(|(known, _)| *known == trace)?;
        inner.summary(trace, *first)
    }

    fn traces(&self) -> Vec<TraceSummary> {
        let inner = self.lock();
        inner.firsts.iter().filter_map(|(trace, first)| inner.summary(*trace, *first)).collect()
    }

    fn keys(&self, trace: TraceId) -> Result<KeyRing, ReadError> {
        Ok(self.lock().chain.trace(trace).map(|state| KeyRing::clone(&state.keys)).unwrap_or_default())
    }

    fn read(&self, from: u64, limit: usize) -> Result<Vec<StoredLine>, ReadError> {
        let inner = self.lock();
        Ok((from.max(1)..).take(limit).map_while(|pos| inner.line(pos)).collect())
    }

    fn read_trace(&self, trace: TraceId, from_seq: u64, limit: usize) -> Result<Vec<StoredLine>, ReadError> {
        let inner = self.lock();
        let wanted = inner.places.iter().filter(|place| place.trace == trace && place.seq >= from_seq);
        Ok(wanted.take(limit).filter_map(|place| inner.line(place.pos)).collect())
    }

    fn find(&self, id: EventId) -> Result<Option<u64>, ReadError> {
        Ok(self.lock().places.iter().find(|place| place.id == id).map(|place| place.pos))
    }
}
