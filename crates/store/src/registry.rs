//! Agents' keys as the ledger knows them: the trace `ledger` is the register, every other trace binds a key before its first use there.

use baton_core::roles::OWN_AGENT;
use baton_core::{AgentName, KeyGrant, KeyId, Payload, Role, TraceId};
use baton_ledger::body::Body;
use baton_ledger::key::{PublicKey, SecretKey};
use baton_ledger::seal::{Checked, Proposal, Receipt, Refusal};

use crate::journal::fs::own_event;
use crate::ports::{AppendError, History, Journal, ReadError};

/// An agent's key in the register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentKey {
    pub agent: AgentName,
    pub public: PublicKey,
    pub roles: Vec<Role>,
    pub is_valid: bool,
}

/// How often a decision about keys is made anew when the ledger moved on meanwhile.
const DECISIONS_MAX: u32 = 64;

/// Why a key operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("agent {0} has no key")]
    NoKey(AgentName),
    #[error("the role `system` is Baton's own")]
    OwnRole,
    #[error("the agent name `{0}` stands for Baton itself")]
    OwnName(AgentName),
    #[error("agent {agent} already has the key {key}")]
    HasKey { agent: AgentName, key: KeyId },
}

/// All keys that were ever registered.
pub fn agent_keys(journal: &dyn History) -> Result<Vec<AgentKey>, ReadError> {
    let keys = journal.keys(TraceId::Ledger)?;
    let list = keys.iter().map(|(public, agent, roles, is_valid)| AgentKey {
        agent: agent.clone(),
        public,
        roles: roles.to_vec(),
        is_valid,
    });
    Ok(list.collect())
}

/// The valid key of an agent.
pub fn agent_key(journal: &dyn History, agent: &AgentName) -> Result<Option<AgentKey>, ReadError> {
    Ok(agent_keys(journal)?.into_iter().find(|key| key.agent == *agent && key.is_valid))
}

/// What is Baton's own is not for others to sign as.
fn expect_others(agent: &AgentName, roles: &[Role]) -> Result<(), Error> {
    match () {
        () if agent.as_str() == OWN_AGENT => Err(Error::OwnName(agent.clone())),
        () if roles.contains(&Role::System) => Err(Error::OwnRole),
        () => Ok(()),
    }
}

fn grant(agent: &AgentName, public: &PublicKey, roles: &[Role]) -> KeyGrant {
    KeyGrant { key: public.id(), public: public.to_text(), agent: agent.clone(), roles: roles.to_vec() }
}

/// An event of Baton's own, signed with the ledger's key.
pub fn signed_own(trace: TraceId, payload: Payload, ledger_key: &SecretKey) -> Result<Checked, AppendError> {
    let event = own_event(trace, payload)?;
    let body = Body::signed(event, ledger_key).map_err(|e| Refusal::Form(e.to_string()))?;
    Ok(Checked::just_signed(body, ledger_key))
}

/// Registers a key for an agent.
pub fn bind(
    journal: &dyn Journal,
    ledger_key: &SecretKey,
    agent: &AgentName,
    public: &PublicKey,
    roles: &[Role],
) -> Result<Vec<Receipt>, Error> {
    expect_others(agent, roles)?;
    let mut tries = 0;
    loop {
        // The head first, then what it says: whatever comes in between moves the head.
        let register = journal.trace(TraceId::Ledger).map_or(0, |register| register.seq);
        if let Some(known) = agent_key(journal, agent)? {
            return Err(Error::HasKey { agent: agent.clone(), key: known.public.id() });
        }
        let bound = Payload::KeyBound(grant(agent, public, roles));
        let events = vec![signed_own(TraceId::Ledger, bound, ledger_key)?];
        tries += 1;
        match journal.append(Proposal { events, decided_on: vec![(TraceId::Ledger, register)] }) {
            Err(AppendError::Refused(Refusal::HeadMoved { .. })) if tries < DECISIONS_MAX => {}
            ended => return Ok(ended?),
        }
    }
}

/// Replaces an agent's key, in the register and in every open trace that binds it, in one decision.
pub fn rotate(
    journal: &dyn Journal,
    ledger_key: &SecretKey,
    agent: &AgentName,
    new: &PublicKey,
    roles: &[Role],
) -> Result<Vec<Receipt>, Error> {
    expect_others(agent, roles)?;
    let old = agent_key(journal, agent)?.ok_or_else(|| Error::NoKey(agent.clone()))?;
    let payload = Payload::KeyRotated { old: old.public.id(), new: grant(agent, new, roles) };
    everywhere(journal, ledger_key, old.public.id(), &payload)
}

/// Ends an agent's key, in the register and in every open trace that binds it, in one decision.
pub fn revoke(
    journal: &dyn Journal,
    ledger_key: &SecretKey,
    agent: &AgentName,
    reason: &str,
) -> Result<Vec<Receipt>, Error> {
    let old = agent_key(journal, agent)?.ok_or_else(|| Error::NoKey(agent.clone()))?;
    let payload = Payload::KeyRevoked { key: old.public.id(), reason: reason.to_owned() };
    everywhere(journal, ledger_key, old.public.id(), &payload)
}

fn everywhere(
    journal: &dyn Journal,
    ledger_key: &SecretKey,
    key: KeyId,
    payload: &Payload,
) -> Result<Vec<Receipt>, Error> {
    let (mut receipts, mut tries) = (Vec::new(), 0);
    loop {
        let (mut events, mut decided_on) = (Vec::new(), Vec::new());
        for summary in journal.traces().into_iter().filter(|summary| !summary.is_closed) {
            if journal.keys(summary.trace)?.is_valid(key) {
                events.push(signed_own(summary.trace, payload.clone(), ledger_key)?);
                decided_on.push((summary.trace, summary.seq));
            }
        }
        // The register is in the first round. A trace that bound the key just before that is in the next; none can bind it afterwards.
        if events.is_empty() {
            return Ok(receipts);
        }
        match journal.append(Proposal { events, decided_on }) {
            Ok(more) => receipts.extend(more),
            // Once the register has it, it is carried through.
            Err(AppendError::Refused(Refusal::HeadMoved { .. })) if !receipts.is_empty() => {}
            // Others append meanwhile, which is no conflict as long as nobody else ended the key.
            Err(AppendError::Refused(Refusal::HeadMoved { .. }))
                if tries < DECISIONS_MAX && journal.keys(TraceId::Ledger)?.is_valid(key) =>
            {
                tries += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Puts `key_bound` before the first use of a key in a trace.
///
/// The decision then also rests on the register: a key that is revoked meanwhile is a conflict, not a key that lives on in one trace.
pub fn preface(
    journal: &dyn Journal,
    ledger_key: &SecretKey,
    trace: TraceId,
    registered: &AgentKey,
    proposal: &mut Proposal,
) -> Result<(), Error> {
    let key = registered.public.id();
    let is_prefaced = |checked: &Checked| {
        checked.body().trace == trace
            && checked.body().key_event.as_ref().is_some_and(|event| event.binds(key))
    };
    if journal.keys(trace)?.knows(key) || proposal.events.iter().any(is_prefaced) {
        return Ok(());
    }
    // The head first, then what it says: whatever comes in between moves the head.
    let register = journal.trace(TraceId::Ledger).map_or(0, |register| register.seq);
    if !journal.keys(TraceId::Ledger)?.is_valid(key) {
        return Err(Error::NoKey(registered.agent.clone()));
    }
    let grant = grant(&registered.agent, &registered.public, &registered.roles);
    proposal.events.push(signed_own(trace, Payload::KeyBound(grant), ledger_key)?);
    proposal.decided_on.push((TraceId::Ledger, register));
    Ok(())
}
