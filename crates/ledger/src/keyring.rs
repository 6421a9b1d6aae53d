//! The keys of one trace, judged at the place where they are used.
//!
//! One rule for both sides: the sequencer asks before it seals, the verifier asks again afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_core::roles::OWN_AGENT;
use baton_core::{AgentName, KeyGrant, KeyId, Origin, Role};

use crate::body::KeyEvent;
use crate::key::PublicKey;

/// The name of a ledger and the key that it signs with. Its key signs in every trace as `baton`, in role `system`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerIdentity {
    pub origin: Origin,
    pub key: PublicKey,
}

/// The keys that a trace knows, valid or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRing {
    bound: BTreeMap<KeyId, Bound>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    is_valid: bool,
    binding: Arc<Binding>,
}

/// What a key is bound to. Agents use theirs in many traces, and in each it is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Binding {
    public: PublicKey,
    agent: AgentName,
    roles: Vec<Role>,
}

/// Bindings that traces share, for whoever holds the keys of many traces at once.
#[derive(Debug, Default)]
pub struct SharedBindings(BTreeMap<KeyId, Arc<Binding>>);

/// Why a key may not be used, or a key event does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("key {0} is not bound in this trace")]
    NotBound(KeyId),
    #[error("key {key} is bound to agent {bound}, not to {actor}")]
    OtherAgent { key: KeyId, bound: String, actor: String },
    #[error("key {0} was rotated away or revoked before this event")]
    NotValid(KeyId),
    #[error("key {key} is bound for {allowed}, not for {role}")]
    Role { key: KeyId, role: Role, allowed: String },
    #[error("{0}")]
    Event(String),
}

impl KeyRing {
    /// The public key behind an id, whether it is still valid or not.
    pub fn public(&self, ledger: &LedgerIdentity, key: KeyId) -> Option<PublicKey> {
        if key == ledger.key.id() {
            Some(ledger.key)
        } else {
            self.bound.get(&key).map(|bound| bound.binding.public)
        }
    }

    /// Whether this key may sign here for this actor. A wrong role is told apart: it is the last thing looked at.
    pub fn judge(
        &self,
        ledger: &LedgerIdentity,
        key: KeyId,
        agent: &str,
        role: Role,
    ) -> Result<(PublicKey, Result<(), Fault>), Fault> {
        if key == ledger.key.id() {
            if agent != OWN_AGENT {
                let bound = OWN_AGENT.to_owned();
                return Err(Fault::OtherAgent { key, bound, actor: agent.to_owned() });
            }
            return Ok((ledger.key, check_role(key, role, &[Role::System])));
        }
        let Bound { is_valid, binding } = self.bound.get(&key).ok_or(Fault::NotBound(key))?;
        if binding.agent.as_str() != agent {
            let bound = binding.agent.to_string();
            return Err(Fault::OtherAgent { key, bound, actor: agent.to_owned() });
        }
        if !is_valid {
            return Err(Fault::NotValid(key));
        }
        Ok((binding.public, check_role(key, role, &binding.roles)))
    }

    /// Takes a key event in, or says why it does not fit. `signer` is who signed it.
    pub fn apply(
        &mut self,
        ledger: &LedgerIdentity,
        event: &KeyEvent,
        signer: Option<KeyId>,
    ) -> Result<(), Fault> {
        if signer.is_some_and(|signer| signer != ledger.key.id()) {
            return Err(Fault::Event("a key event is signed by the ledger's own key".into()));
        }
        match event {
            KeyEvent::Bound(grant) => self.bind(ledger, grant),
            KeyEvent::Rotated { old, new } => {
                self.expect_valid(*old)?;
                self.bind(ledger, new)?;
                self.invalidate(*old)
            }
            KeyEvent::Revoked(key) => self.invalidate(*key),
        }
    }

    fn bind(&mut self, ledger: &LedgerIdentity, grant: &KeyGrant) -> Result<(), Fault> {
        let public = PublicKey::parse(grant.public.as_str()).map_err(|e| Fault::Event(e.to_string()))?;
        if public.id() != grant.key {
            return Err(Fault::Event(format!(
                "key id {} is not that of the public key beside it",
                grant.key
            )));
        }
        if grant.roles.is_empty() {
            return Err(Fault::Event(format!("key {} is bound for no role", grant.key)));
        }
        if grant.key == ledger.key.id() || self.bound.contains_key(&grant.key) {
            return Err(Fault::Event(format!("key {} is already known in this trace", grant.key)));
        }
        let binding = Binding { public, agent: grant.agent.clone(), roles: grant.roles.clone() };
        self.bound.insert(grant.key, Bound { is_valid: true, binding: Arc::new(binding) });
        Ok(())
    }

    fn expect_valid(&self, key: KeyId) -> Result<(), Fault> {
        match self.bound.get(&key) {
            Some(bound) if bound.is_valid => Ok(()),
            Some(_) => Err(Fault::Event(format!("key {key} is no longer valid in this trace"))),
            None => Err(Fault::Event(format!("key {key} is not bound in this trace"))),
        }
    }

    fn invalidate(&mut self, key: KeyId) -> Result<(), Fault> {
        self.expect_valid(key)?;
        if let Some(bound) = self.bound.get_mut(&key) {
            bound.is_valid = false;
        }
        Ok(())
    }

    /// Whether the key is bound here and valid.
    pub fn is_valid(&self, key: KeyId) -> bool {
        self.bound.get(&key).is_some_and(|bound| bound.is_valid)
    }

    /// Whether the key is bound here at all.
    pub fn knows(&self, key: KeyId) -> bool {
        self.bound.contains_key(&key)
    }

    /// Every key with its agent, roles and validity, in the order of the ids.
    pub fn iter(&self) -> impl Iterator<Item = (PublicKey, &AgentName, &[Role], bool)> {
        self.bound.values().map(|Bound { is_valid, binding }| {
            (binding.public, &binding.agent, binding.roles.as_slice(), *is_valid)
        })
    }

    /// Uses what another trace already has, where that is the same.
    pub fn share(&mut self, shared: &mut SharedBindings) {
        for (key, bound) in &mut self.bound {
            let known = shared.0.entry(*key).or_insert_with(|| bound.binding.clone());
            if *known == bound.binding {
                bound.binding = known.clone();
            }
        }
    }
}

fn check_role(key: KeyId, role: Role, allowed: &[Role]) -> Result<(), Fault> {
    if allowed.contains(&role) {
        return Ok(());
    }
    let allowed = allowed.iter().map(|r| r.as_str()).collect::<Vec<_>>().join(", ");
    Err(Fault::Role { key, role, allowed })
}
