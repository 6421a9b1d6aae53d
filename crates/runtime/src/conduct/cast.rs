//! Who plays which part of guarded work, and with which key.

use std::sync::Arc;

use baton_core::guard::{Critic, Policy, Team};
use baton_core::roles::{OPERATOR, RULES, VERIFIER};
use baton_core::{AgentName, Role};
use baton_ledger::key::SecretKey;
use baton_store::keys::{self, KeyStore};
use baton_store::registry::{self, AgentKey};
use baton_store::{History, Journal, ReadError};

use crate::engine::Fault;

/// Who plays which part, as the configuration names them; what nobody is named for, Baton plays itself, or nobody does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TeamNames {
    pub planner: Option<AgentName>,
    pub executor: Option<AgentName>,
    pub critic: Option<AgentName>,
    pub auditor: Option<AgentName>,
}

/// What guarded work goes by.
#[derive(Debug, Clone)]
pub struct Guarding {
    pub team: TeamNames,
    pub policy: Policy,
    pub keys: KeyStore,
}

impl TeamNames {
    /// What would keep a guarded task from being done.
    pub fn problems(&self, policy: &Policy) -> Vec<String> {
        let mut found = Vec::new();
        if self.planner.is_none() {
            found
                .push("team.planner: expected the name of an agent, got nothing: nobody proposes".to_owned());
        }
        if self.critic.is_some() && self.critic == self.executor {
            found.push(
                "team.critic: expected another agent than team.executor: nobody judges what they did"
                    .to_owned(),
            );
        }
        let kind = if self.critic.is_some() { Critic::Agent } else { Critic::Rules };
        if self.critic.is_some() && !policy.critics.contains(&Critic::Agent) {
            found.push(
                "team.critic: expected nobody where policy.critics does not name agent: its reviews would not count"
                    .to_owned(),
            );
        }
        if !policy.critics.contains(&kind) && !policy.critics.contains(&Critic::Person) {
            found.push(format!("policy.critics: expected {kind} or person among them: nobody may review"));
        }
        // Each critic counts once: whoever the team has, and the person who operates Baton.
        let has_person = policy.critics.contains(&Critic::Person);
        let most = (u32::from(policy.critics.contains(&kind)) + u32::from(has_person)).max(1);
        if policy.approvals > most {
            let whom = match has_person {
                true => "each critic counts once, and so does the person",
                false => "no person is among policy.critics",
            };
            let got = policy.approvals;
            found.push(format!("policy.approvals: expected at most {most} where {whom}, got {got}"));
        }
        found
    }

    /// What is wrong with the keys of those whom it names. Whoever has none gets one.
    pub fn key_problems(&self, history: &dyn History, keys: &KeyStore) -> Result<Vec<String>, ReadError> {
        let parts = [
            (Role::Planner, &self.planner),
            (Role::Executor, &self.executor),
            (Role::Critic, &self.critic),
            (Role::Auditor, &self.auditor),
        ];
        let all = registry::agent_keys(history)?;
        let mut found = Vec::new();
        for (role, agent) in parts.into_iter().filter_map(|(role, name)| Some((role, name.as_ref()?))) {
            let signs_here = matches!(role, Role::Executor | Role::Auditor);
            let problem = match registry::agent_key(history, agent)? {
                None => all.iter().any(|key| key.agent == *agent).then(|| revoked(agent, role)),
                Some(key) if !key.roles.contains(&role) => Some(unbound(&key, role)),
                Some(key) if signs_here && !keys.path(key.public.id()).exists() => {
                    Some(format!("the key of {agent} is not on this machine, and Baton signs with it"))
                }
                Some(_) => None,
            };
            found.extend(problem.map(|problem| format!("team.{role}: {problem}")));
        }
        Ok(found)
    }

    /// The team of one run, or what keeps it from being one.
    pub fn team(&self, policy: &Policy, executor: &AgentName) -> Result<Team, String> {
        let executor = self.executor.as_ref().unwrap_or(executor);
        let whole = TeamNames { executor: Some(executor.clone()), ..self.clone() };
        if let Some(problem) = whole.problems(policy).into_iter().next() {
            return Err(problem);
        }
        let own = |name: &str| name.parse().map_err(|error: baton_core::ids::Error| error.to_string());
        // Where the policy does not let the rules judge, a person does.
        let has_rules = policy.critics.contains(&Critic::Rules);
        let critic = match &self.critic {
            Some(agent) => agent.clone(),
            None if has_rules => own(RULES)?,
            None => own(OPERATOR)?,
        };
        let auditor = self.auditor.clone().map_or_else(|| own(VERIFIER), Ok)?;
        let planner = self.planner.clone().ok_or("team.planner: nobody proposes")?;
        Ok(Team { planner, executor: executor.clone(), critic, auditor })
    }
}

fn revoked(agent: &AgentName, role: Role) -> String {
    format!("the key of {agent} was revoked: baton agent key {agent} --role {role}")
}

fn unbound(registered: &AgentKey, role: Role) -> String {
    let (agent, key) = (&registered.agent, registered.public.id());
    let roles: Vec<&str> = registered.roles.iter().chain([&role]).map(|role| role.as_str()).collect();
    let roles = roles.join(",");
    format!(
        "the key {key} of {agent} is not bound for role {role}: baton agent key {agent} --rotate --role {roles}"
    )
}

/// The parts that an agent plays in a team.
pub(super) fn roles_of(team: &Team, agent: &AgentName) -> Vec<Role> {
    let parts = [
        (Role::Planner, &team.planner),
        (Role::Executor, &team.executor),
        (Role::Critic, &team.critic),
        (Role::Auditor, &team.auditor),
    ];
    parts.into_iter().filter(|(_, name)| *name == agent).map(|(role, _)| role).collect()
}

/// Somebody who can sign.
#[derive(Debug, Clone)]
pub(super) struct Signer {
    pub(super) registered: AgentKey,
    pub(super) secret: Arc<SecretKey>,
}

/// Why nothing is signed for an agent.
#[derive(Debug)]
pub(super) enum NoKey {
    /// The private half is not on this machine: whoever has it signs.
    Elsewhere,
    /// The key is not for this part.
    NotFor(String),
    Fault(Fault),
}

impl<E: Into<Fault>> From<E> for NoKey {
    fn from(error: E) -> Self {
        NoKey::Fault(error.into())
    }
}

impl Guarding {
    /// The key of an agent for its part; made and registered where it has none.
    pub(super) fn signer(
        &self,
        journal: &dyn Journal,
        ledger_key: &SecretKey,
        team: &Team,
        (agent, role): (&AgentName, Role),
    ) -> Result<Signer, NoKey> {
        let registered = match registry::agent_key(journal, agent)? {
            Some(registered) => registered,
            // A person ended it, and gives it another one, or does not.
            None if registry::agent_keys(journal)?.iter().any(|key| key.agent == *agent) => {
                return Err(NoKey::NotFor(revoked(agent, role)));
            }
            None => {
                let secret = self.keys.create()?;
                match registry::bind(journal, ledger_key, agent, secret.public(), &roles_of(team, agent)) {
                    // Somebody else made one in the same moment: that is the one.
                    Ok(_) | Err(registry::Error::HasKey { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
                registry::agent_key(journal, agent)?.ok_or_else(|| registry::Error::NoKey(agent.clone()))?
            }
        };
        if !registered.roles.contains(&role) {
            return Err(NoKey::NotFor(unbound(&registered, role)));
        }
        match self.keys.load(registered.public.id()) {
            Ok(secret) => Ok(Signer { registered, secret: Arc::new(secret) }),
            Err(keys::Error::Missing { .. }) => Err(NoKey::Elsewhere),
            Err(error) => Err(error.into()),
        }
    }
}
