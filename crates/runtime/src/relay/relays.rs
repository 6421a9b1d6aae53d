//! All relays of one data directory, by the names that clients give them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use baton_core::Timestamp;
use baton_core::ids::{AgentName, SessionId};

use super::state::Relay;
use crate::clock::Clock;
use crate::limits::{KILLED_WAIT, RELAY_ENDED_KEPT, RELAY_IDLE_MAX, RELAY_LOOK, RELAYS_MAX};
use crate::session::{Broker, NotBegun};

/// How long relays are kept that nobody uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// One that has ended, for whoever comes later.
    pub ended: Duration,
    /// One that nobody follows and nobody speaks to.
    pub idle: Duration,
    /// Between two looks at them.
    pub look: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { ended: RELAY_ENDED_KEPT, idle: RELAY_IDLE_MAX, look: RELAY_LOOK }
    }
}

/// All relays.
#[derive(Debug)]
pub struct Relays {
    broker: Arc<Broker>,
    clock: Arc<dyn Clock>,
    /// Where agents are started.
    cwd: PathBuf,
    patience: Patience,
    known: Mutex<Known>,
    /// One begins at a time: two clients that come at once get the same one.
    beginning: Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    relays: BTreeMap<String, Arc<Relay>>,
    /// Deleted, and not ended yet.
    leaving: Vec<Weak<Relay>>,
    /// Whoever waits for one to begin.
    waiting: Vec<Waker>,
    is_ending: bool,
}

/// One that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub server: String,
    pub agent: AgentName,
    pub session: SessionId,
    pub created_at: Timestamp,
}

/// Why there is no relay.
#[derive(Debug, thiserror::Error)]
pub enum NotOpened {
    #[error("there is no server {0}, and the first message has to name an agent: ?agent=A")]
    NoAgent(String),
    #[error("server {server} has agent {has}, not {asked}")]
    OtherAgent { server: String, has: AgentName, asked: AgentName },
    #[error("{RELAYS_MAX} servers are there, and no more may be")]
    TooMany,
    #[error(transparent)]
    NotBegun(#[from] NotBegun),
}

impl Relays {
    pub fn new(broker: Arc<Broker>, clock: Arc<dyn Clock>, cwd: PathBuf, patience: Patience) -> Arc<Self> {
        let (known, beginning) = (Mutex::default(), Mutex::default());
        let relays = Arc::new(Relays { broker, clock, cwd, patience, known, beginning });
        let looked_after = Arc::downgrade(&relays);
        // Without it nothing is lost but what nobody uses.
        let _ = std::thread::Builder::new().name("relays".into()).spawn(move || {
            loop {
                std::thread::park_timeout(patience.look);
                let Some(relays) = looked_after.upgrade() else { return };
                relays.let_go_of_unused();
            }
        });
        relays
    }

    pub fn get(&self, server: &str) -> Option<Arc<Relay>> {
        self.known().relays.get(server).cloned()
    }

    /// The relay of this name, once it is there.
    pub fn poll_get(&self, server: &str, cx: &mut Context<'_>) -> Poll<Arc<Relay>> {
        let mut known = self.known();
        match known.relays.get(server) {
            Some(relay) => Poll::Ready(relay.clone()),
            None => {
                known.waiting.retain(|waker| !waker.will_wake(cx.waker()));
                known.waiting.push(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The relay of this name, begun where there is none. Blocks while it begins.
    pub fn open(&self, server: &str, agent: Option<&AgentName>) -> Result<Arc<Relay>, NotOpened> {
        if let Some(relay) = self.get(server) {
            return expect_agent(relay, agent);
        }
        let Some(agent) = agent else { return Err(NotOpened::NoAgent(server.to_owned())) };
        let _one = self.beginning.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(relay) = self.get(server) {
            return expect_agent(relay, Some(agent));
        }
        self.make_room()?;
        let spec = self.broker.agents().get(agent).ok_or_else(|| NotBegun::UnknownAgent(agent.clone()))?;
        let cwd = self.cwd.canonicalize().unwrap_or_else(|_| self.cwd.clone());
        let (recorded, launch) = self.broker.begin_relayed(agent, &cwd)?;
        let relay = Relay::start(server, agent, spec.waits, self.clock.clone(), recorded, launch);
        let led = Arc::downgrade(&relay);
        let stop = move || led.upgrade().iter().for_each(|relay| relay.stop());
        self.broker.relayed_ends_by(relay.session, Arc::new(stop));
        let mut known = self.known();
        known.relays.insert(server.to_owned(), relay.clone());
        let waiting = std::mem::take(&mut known.waiting);
        let is_ending = known.is_ending;
        drop(known);
        if is_ending {
            relay.cut_short();
        }
        waiting.into_iter().for_each(Waker::wake);
        Ok(relay)
    }

    /// Room for one more: of those that have ended the oldest goes.
    fn make_room(&self) -> Result<(), NotOpened> {
        let mut known = self.known();
        if known.is_ending {
            return Err(NotBegun::Ending.into());
        }
        if known.relays.len() < RELAYS_MAX {
            return Ok(());
        }
        let ended = known.relays.values().filter(|relay| !relay.is_alive());
        let oldest = ended.min_by_key(|relay| relay.created_at).map(|relay| relay.server.clone());
        match oldest.and_then(|server| known.relays.remove(&server)) {
            Some(relay) => {
                drop(known);
                relay.close();
                Ok(())
            }
            None => Err(NotOpened::TooMany),
        }
    }

    /// Ends a relay and forgets it. One that is not there is ended.
    pub fn delete(&self, server: &str) {
        let removed = {
            let mut known = self.known();
            let removed = known.relays.remove(server);
            known.leaving.retain(|relay| relay.strong_count() > 0);
            known.leaving.extend(removed.as_ref().map(Arc::downgrade));
            removed
        };
        if let Some(relay) = removed {
            relay.leave_when_ended();
            relay.stop();
        }
    }

    /// Those that live, the oldest first.
    pub fn list(&self) -> Vec<Listed> {
        let mut listed: Vec<Listed> = self
            .known()
            .relays
            .values()
            .filter(|relay| relay.is_alive())
            .map(|relay| Listed {
                server: relay.server.clone(),
                agent: relay.agent.clone(),
                session: relay.session,
                created_at: relay.created_at,
            })
            .collect();
        listed.sort_by_key(|listed| listed.created_at);
        listed
    }

    /// Ends all of them because Baton ends, and waits for their ends as long as their grace allows.
    pub fn end_all(&self) {
        let all: Vec<Arc<Relay>> = {
            let mut known = self.known();
            known.is_ending = true;
            let leaving: Vec<Arc<Relay>> = known.leaving.iter().filter_map(Weak::upgrade).collect();
            known.relays.values().cloned().chain(leaving).collect()
        };
        all.iter().filter(|relay| relay.is_alive()).for_each(|relay| relay.cut_short());
        let until = Instant::now() + self.broker.bounds().stop_grace + 2 * KILLED_WAIT;
        for relay in &all {
            relay.wait(until);
            // Whoever sees one to its end holds this until nothing of it is left.
            if !relay.is_alive() {
                drop(relay.recorded());
            }
        }
    }

    /// Ends what nobody has used for long, and forgets what has ended long ago.
    fn let_go_of_unused(&self) {
        let unused: Vec<String> = {
            let known = self.known();
            let is_unused = |relay: &Relay| {
                let most = if relay.is_alive() { self.patience.idle } else { self.patience.ended };
                relay.idle() > most
            };
            known.relays.values().filter(|relay| is_unused(relay)).map(|relay| relay.server.clone()).collect()
        };
        unused.iter().for_each(|server| self.delete(server));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn expect_agent(relay: Arc<Relay>, agent: Option<&AgentName>) -> Result<Arc<Relay>, NotOpened> {
    match agent {
        Some(asked) if *asked != relay.agent => Err(NotOpened::OtherAgent {
            server: relay.server.clone(),
            has: relay.agent.clone(),
            asked: asked.clone(),
        }),
        _ => Ok(relay),
    }
}
