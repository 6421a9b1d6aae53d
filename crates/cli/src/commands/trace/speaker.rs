//! On whose behalf events are appended: finds the agent's key, signs or checks, and puts `key_bound` before a key's first use in the trace.

use std::collections::BTreeMap;

use baton_core::limits::CLOCK_SKEW_MS_MAX;
use baton_core::offer::{self, Offer};
use baton_core::roles::{closes, must_be_signed, role_required};
use baton_core::{Actor, AgentName, Event, KeyId, Payload, Role, TraceId};
use baton_ledger::body::Body;
use baton_ledger::key::SecretKey;
use baton_ledger::keyring::Fault;
use baton_ledger::seal::{Checked, Proposal, Receipt, Refusal};
use baton_store::registry::{self, AgentKey};
use baton_store::{AppendError, Journal as _, Workspace, clock, keys};

use super::cite::{self, Foreseen};
use crate::commands::agent::{latest, new_key};
use crate::context::Context;
use crate::error::{CliError, Code};
use crate::input::{Decision, Draft, DraftSig};

/// What is known of an agent's key while the data directory is ours.
#[derive(Debug)]
pub(super) enum Known {
    /// It never had one; what needs no signature may stay without.
    Never,
    /// It had one, and none is valid any more; these are the roles of the last one.
    Ended(Vec<Role>),
    /// It has one, and the private half is not on this machine.
    Elsewhere(AgentKey),
    Here(AgentKey, Box<SecretKey>),
}

impl Known {
    fn registered(&self) -> Option<&AgentKey> {
        match self {
            Known::Elsewhere(key) | Known::Here(key, _) => Some(key),
            Known::Never | Known::Ended(_) => None,
        }
    }
}

/// Where the private half of the key is that an event was signed with.
#[derive(Debug, Clone, Copy)]
enum Kept {
    Here,
    Elsewhere,
}

/// An event whose files are still to be stored.
struct Prepared {
    event: Event,
    artifacts: Vec<Foreseen>,
    sig: Option<DraftSig>,
}

/// On whose behalf events are appended, as far as the command line says.
#[derive(Debug)]
pub(super) struct Speaker<'a> {
    pub(super) ctx: &'a Context,
    pub(super) trace: TraceId,
    pub(super) agent: Option<&'a AgentName>,
    pub(super) role: Option<Role>,
}

impl Speaker<'_> {
    /// Refuses what no state of the ledger would make right, before the ledger is opened.
    pub(super) fn check(&self, draft: &Draft) -> Result<(), CliError> {
        if draft.trace.is_some_and(|trace| trace != self.trace) {
            return Err(CliError::new(
                Code::InputForm,
                format!("trace: expected {} as on the command line", self.trace),
            ));
        }
        if let Some(actor) = &draft.actor {
            if self.agent.is_some_and(|agent| *agent != actor.agent) {
                return Err(CliError::new(
                    Code::InputForm,
                    "actor.agent: expected the agent that --agent names",
                ));
            }
            if self.role.is_some_and(|role| role != actor.role) {
                return Err(CliError::new(
                    Code::InputForm,
                    "actor.role: expected the role that --role names",
                ));
            }
        }
        let offer = Offer {
            event_type: draft.event_type.as_str(),
            agent: draft.actor.as_ref().map(|actor| &actor.agent).or(self.agent).map(AgentName::as_str),
            role: draft.actor.as_ref().map(|actor| actor.role).or(self.role),
            at: draft.at,
            id: draft.id,
        };
        offer.check(clock::now()).map_err(|refusal| self.tell(&refusal))
    }

    fn tell(&self, refusal: &offer::Refusal) -> CliError {
        let text = refusal.to_string();
        match refusal {
            offer::Refusal::Reserved(event_type) => {
                CliError::new(Code::Reserved, text).hint(self.command_for(event_type))
            }
            offer::Refusal::Name(_) => {
                CliError::new(Code::AgentReserved, text).hint("add --agent NAME with a name of its own")
            }
            offer::Refusal::Role => CliError::new(Code::Reserved, text).hint("choose another with --role"),
            offer::Refusal::Clock { .. } | offer::Refusal::IdClock { .. } => {
                let minutes = CLOCK_SKEW_MS_MAX / 60_000;
                CliError::new(Code::ClockSkew, text)
                    .cause(format!("at most {minutes} minutes between them are accepted"))
            }
        }
    }

    fn command_for(&self, event_type: &str) -> String {
        match event_type {
            "ledger.created" => "baton init".to_owned(),
            "ledger.recovered" => "baton doctor --fix".to_owned(),
            "trace.opened" => "baton trace new".to_owned(),
            "trace.closed" => format!("baton trace close {} --reason REASON", self.trace),
            _ => format!("baton agent key {}", self.agent.map_or("NAME", AgentName::as_str)),
        }
    }

    /// Appends one decision and gives the receipts of the events that were handed in, with their types.
    pub(super) fn append(
        &self,
        workspace: &Workspace,
        agents: &mut BTreeMap<AgentName, Known>,
        decision: Decision,
    ) -> Result<Vec<(Receipt, String)>, CliError> {
        self.append_on(workspace, agents, decision, None, None)
    }

    /// The same on a head of the trace that must still be its head, and with an event of Baton's own behind them that nothing may come in front of.
    pub(super) fn append_on(
        &self,
        workspace: &Workspace,
        agents: &mut BTreeMap<AgentName, Known>,
        decision: Decision,
        head: Option<u64>,
        last: Option<Checked>,
    ) -> Result<Vec<(Receipt, String)>, CliError> {
        let decided_on = head.map(|seq| (self.trace, seq)).into_iter().collect();
        let mut proposal = Proposal { events: Vec::new(), decided_on };
        let (mut own, mut signers, mut prepared) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for draft in decision.events {
            // A moved head is then a conflict, not a surprise.
            let seen = draft.seen.filter(|_| closes(draft.event_type.as_str()));
            proposal.decided_on.extend(seen.map(|seen| (self.trace, seen.seq)));
            prepared.push(self.prepare(workspace, agents, draft)?);
        }
        for event in prepared {
            let kept = if event.sig.is_some() { Kept::Elsewhere } else { Kept::Here };
            let checked = self.seal(workspace, agents, event, &mut proposal)?;
            own.insert(checked.body().id, checked.body().event_type.to_string());
            if let Some(sig) = &checked.body().sig {
                signers.insert(sig.key, (checked.body().agent.clone(), kept));
            }
            proposal.events.push(checked);
        }
        if let Some(last) = last {
            own.insert(last.body().id, last.body().event_type.to_string());
            proposal.events.push(last);
        }
        let receipts = workspace.journal.append(proposal).map_err(|error| tell(error, &signers))?;
        let named =
            receipts.into_iter().filter_map(|receipt| own.remove(&receipt.id).map(|name| (receipt, name)));
        Ok(named.collect())
    }

    /// Makes an event of a draft, and refuses what can be refused before its files are copied.
    fn prepare(
        &self,
        workspace: &Workspace,
        agents: &mut BTreeMap<AgentName, Known>,
        mut draft: Draft,
    ) -> Result<Prepared, CliError> {
        let (sig, artifacts) = (draft.sig, cite::foresee(self.ctx, workspace, &mut draft)?);
        let mut event = self.to_event(workspace, agents, draft)?;
        event.artifacts = artifacts.iter().map(|foreseen| foreseen.artifact.clone()).collect();
        if sig.is_none() {
            event.actor.key = None;
            expect_signer(&event, known(workspace, agents, &event.actor.agent)?)?;
        }
        if artifacts.iter().any(Foreseen::is_to_be_stored) {
            // The form that a record needs is judged in one place; a hash that is not known yet is as long as any other.
            Body::unsigned(&event)?;
        }
        Ok(Prepared { event, artifacts, sig })
    }

    /// Stores what the event cites and seals it: signed elsewhere, signed here, or not at all. Binds the key in the trace first where that is
    /// needed.
    fn seal(
        &self,
        workspace: &Workspace,
        agents: &mut BTreeMap<AgentName, Known>,
        prepared: Prepared,
        proposal: &mut Proposal,
    ) -> Result<Checked, CliError> {
        let Prepared { mut event, artifacts, sig } = prepared;
        if let Some(sig) = sig {
            return self.check_signed(workspace, &event, sig, proposal);
        }
        let stored = artifacts.into_iter().map(|foreseen| cite::store(workspace, foreseen));
        event.artifacts = stored.collect::<Result<_, _>>()?;
        if let Known::Here(registered, secret) = known(workspace, agents, &event.actor.agent)? {
            registry::preface(&*workspace.journal, &workspace.ledger_key, self.trace, registered, proposal)?;
            return Ok(Checked::just_signed(Body::signed(event, secret)?, secret));
        }
        Ok(Checked::unsigned(Body::unsigned(&event)?)?)
    }

    /// An event that its actor signed elsewhere, checked strictly with the key that is registered for the actor.
    fn check_signed(
        &self,
        workspace: &Workspace,
        event: &Event,
        sig: DraftSig,
        proposal: &mut Proposal,
    ) -> Result<Checked, CliError> {
        let agent = &event.actor.agent;
        let all = registry::agent_keys(&*workspace.journal)?;
        let Some(registered) = all.iter().find(|key| key.public.id() == sig.key && key.agent == *agent)
        else {
            let what = format!("key {} is not registered for agent {agent}", sig.key);
            return Err(CliError::new(Code::KeyNotAllowed, what)
                .hint(format!("baton agent key {agent} --public FILE")));
        };
        if !registered.is_valid {
            return Err(Fault::NotValid(sig.key).into());
        }
        let checked = Checked::check(Body::signed_elsewhere(event, sig.value)?, &registered.public)?;
        registry::preface(&*workspace.journal, &workspace.ledger_key, self.trace, registered, proposal)?;
        Ok(checked)
    }

    /// The event without its artifacts.
    fn to_event(
        &self,
        workspace: &Workspace,
        agents: &mut BTreeMap<AgentName, Known>,
        draft: Draft,
    ) -> Result<Event, CliError> {
        let actor = match draft.actor {
            Some(actor) => actor,
            None => self.actor(workspace, agents, draft.event_type.as_str())?,
        };
        Ok(Event {
            trace: self.trace,
            id: draft.id.unwrap_or_else(clock::new_event_id),
            at: draft.at.unwrap_or_else(clock::now),
            actor,
            task: draft.task,
            run: draft.run,
            session: draft.session,
            fence: draft.fence,
            payload: Payload::Other { event_type: draft.event_type, fields: draft.payload },
            artifacts: Vec::new(),
            seen: draft.seen,
        })
    }

    /// Who speaks where the event does not say so: the named agent, without a name the operator. Its key decides in which role: the one that
    /// the type requires if the key has it, else the key's first.
    fn actor(
        &self,
        workspace: &Workspace,
        agents: &mut BTreeMap<AgentName, Known>,
        event_type: &str,
    ) -> Result<Actor, CliError> {
        let operator: AgentName =
            Role::Operator.as_str().parse().map_err(|e| CliError::new(Code::Value, format!("{e}")))?;
        let agent = self.agent.cloned().unwrap_or_else(|| operator.clone());
        let role = match self.role {
            Some(role) => role,
            None => {
                let key = known(workspace, agents, &agent)?.registered();
                let roles = key.map(|key| key.roles.as_slice()).unwrap_or_default();
                let required = role_required(event_type).filter(|role| roles.contains(role));
                let without_key = if agent == operator { Role::Operator } else { Role::Executor };
                required.or(roles.first().copied()).unwrap_or(without_key)
            }
        };
        Ok(Actor { agent, role, key: None })
    }
}

fn known<'a>(
    workspace: &Workspace,
    agents: &'a mut BTreeMap<AgentName, Known>,
    agent: &AgentName,
) -> Result<&'a Known, CliError> {
    if !agents.contains_key(agent) {
        let own = registry::agent_keys(&*workspace.journal)?.into_iter().filter(|key| key.agent == *agent);
        let (valid, ended): (Vec<AgentKey>, Vec<AgentKey>) = own.partition(|key| key.is_valid);
        let found = match valid.into_iter().next() {
            None if ended.is_empty() => Known::Never,
            None => {
                Known::Ended(latest(&*workspace.journal, agent)?.map(|key| key.roles).unwrap_or_default())
            }
            Some(key) => match workspace.keys.load(key.public.id()) {
                Ok(secret) => Known::Here(key, Box::new(secret)),
                Err(keys::Error::Missing { .. }) => Known::Elsewhere(key),
                Err(error) => return Err(error.into()),
            },
        };
        agents.insert(agent.clone(), found);
    }
    Ok(&agents[agent])
}

/// A refusal; where a key is not bound for a role, with the way to one that is. A key that is kept elsewhere is not replaced by one here.
fn tell(error: AppendError, signers: &BTreeMap<KeyId, (AgentName, Kept)>) -> CliError {
    let AppendError::Refused(Refusal::Key(Fault::Role { key, role, .. })) = &error else {
        return error.into();
    };
    let hint = signers.get(key).map(|(agent, kept)| match kept {
        Kept::Here => format!("baton agent key {agent} --rotate --role {role}"),
        Kept::Elsewhere => format!("baton agent key {agent}"),
    });
    CliError { hint, ..error.into() }
}

/// Refuses to go without a signature, where there is no key here to make one, and the type needs one, or where the agent has or had a key: whoever reads its unsigned event could
/// not tell it from one that somebody else wrote in its name.
fn expect_signer(event: &Event, known: &Known) -> Result<(), CliError> {
    let event_type = event.payload.event_type();
    let agent = &event.actor.agent;
    match known {
        Known::Here(..) => return Ok(()),
        Known::Never if !must_be_signed(event_type) => return Ok(()),
        Known::Never | Known::Ended(_) | Known::Elsewhere(_) => {}
    }
    let what = if must_be_signed(event_type) {
        format!("an event of type {event_type} must be signed")
    } else {
        format!("an event of agent {agent} must be signed, because it has or had a key")
    };
    let error = CliError::new(Code::SignatureMissing, what);
    if let Some(key) = known.registered() {
        return Err(error
            .cause(format!("the private key of {agent} ({}) is not on this machine", key.public.id()))
            .hint(
                "sign it where the key is, and hand it in with id, at, actor and sig: baton explain L019",
            ));
    }
    let required = role_required(event_type);
    let (why, mut roles) = match known {
        Known::Ended(roles) => ("its key was revoked", roles.clone()),
        _ => ("it never had one", vec![required.unwrap_or(event.actor.role)]),
    };
    // The new key must do for this event too.
    roles.extend(required.filter(|role| !roles.contains(role)));
    Err(error.cause(format!("{agent} has no valid key: {why}")).hint(new_key(agent, &roles)))
}
