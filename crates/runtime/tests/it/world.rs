//! A machine in memory, for tests that cut its power or turn its clock.

use std::sync::Arc;

use baton_core::Role;
use baton_ledger::key::SecretKey;
use baton_runtime::clock::VirtualClock;
use baton_runtime::engine::OperatorKey;
use baton_runtime::{Engine, Fault, Ground, Settings};
use baton_store::artifacts::ArtifactDir;
use baton_store::journal::Keeping;
use baton_store::registry::{self, AgentKey};
use baton_store::{FsJournal, Journal, Layout, Options};
use baton_testkit::builders::{agent, identity, secret};
use baton_testkit::sim_disk::SimDisk;
use baton_testkit::sim_tree::SimTree;

/// A person's key that needs no file.
#[derive(Debug)]
struct FixedKey;

impl OperatorKey for FixedKey {
    fn get(
        &self,
        journal: &dyn Journal,
        ledger_key: &SecretKey,
    ) -> Result<(Arc<SecretKey>, AgentKey), Fault> {
        let (name, key) = (agent("operator"), secret(7));
        if registry::agent_key(journal, &name)?.is_none() {
            registry::bind(journal, ledger_key, &name, key.public(), &[Role::Operator])?;
        }
        let registered = registry::agent_key(journal, &name)?.ok_or(registry::Error::NoKey(name))?;
        Ok((key, registered))
    }
}

fn options() -> Options {
    Options { segment_bytes: 64_000, checkpoint_every: 50, keeping: Keeping::Inline, ..Options::default() }
}

/// A machine that exists in memory alone: its disk, the files of tasks, its clock.
pub(crate) struct World {
    pub(crate) disk: SimDisk,
    pub(crate) tree: SimTree,
    pub(crate) clock: Arc<VirtualClock>,
    /// Counts the starts of the machine.
    pub(crate) boot: u64,
}

impl World {
    /// A machine with an empty ledger.
    pub(crate) fn new(seed: u64) -> World {
        let clock = Arc::new(VirtualClock::new("2026-02-09T21:00:00.000Z".parse().unwrap(), seed));
        let disk = SimDisk::new(seed);
        let key = secret(1);
        FsJournal::create(Arc::new(disk.clone()), &Layout::new("/sim"), identity(&key), &key, options())
            .unwrap()
            .close()
            .unwrap();
        World { tree: SimTree::new(&disk), disk, clock, boot: 0 }
    }

    pub(crate) fn open(&self, why: &str) -> (Arc<FsJournal>, Result<Engine, Fault>) {
        let layout = Layout::new("/sim");
        let disk = Arc::new(self.disk.clone());
        let (journal, _) = FsJournal::open(disk.clone(), &layout, |_| Ok(secret(1)), options())
            .unwrap_or_else(|error| panic!("{why}: the journal is refused: {error}"));
        let journal = Arc::new(journal);
        (journal.clone(), self.engine(journal))
    }

    fn engine(&self, journal: Arc<FsJournal>) -> Result<Engine, Fault> {
        let layout = Layout::new("/sim");
        let disk = Arc::new(self.disk.clone());
        let ground = Ground {
            artifacts: ArtifactDir::new(disk.clone(), layout.artifacts()),
            disk,
            layout,
            journal,
            ledger_key: secret(1),
            operator: Arc::new(FixedKey),
            tree: Arc::new(self.tree.clone()),
            workspace: "/nonexistent".into(),
            boot: self.boot.to_string(),
            clock: self.clock.clone(),
        };
        Engine::open(ground, Settings::default())
    }
}
