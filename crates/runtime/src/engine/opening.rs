//! Opening: the saved board, what the journal has beyond it, and the files that a crash left behind.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};

use baton_core::AgentName;
use baton_core::Role;
use baton_core::task::Board;
use baton_core::task::decide::operator;
use baton_ledger::key::SecretKey;
use baton_store::disk::Mode;
use baton_store::keys::KeyStore;
use baton_store::registry::{self, AgentKey};
use baton_store::tasks::files::TaskFiles;
use baton_store::tasks::fold::catch_up;
use baton_store::tasks::obstacles;
use baton_store::tasks::table::Table;
use baton_store::tasks::tree::RealTree;
use baton_store::{Journal, Workspace};

use super::{Engine, Fault, Ground, Settings, State};
use crate::clock::Clock;

/// Where the person's key comes from.
pub trait OperatorKey: Send + Sync + fmt::Debug {
    /// The key and its entry in the register; made and registered where there is none.
    fn get(&self, journal: &dyn Journal, ledger_key: &SecretKey)
    -> Result<(Arc<SecretKey>, AgentKey), Fault>;
}

impl OperatorKey for KeyStore {
    fn get(
        &self,
        journal: &dyn Journal,
        ledger_key: &SecretKey,
    ) -> Result<(Arc<SecretKey>, AgentKey), Fault> {
        let name: AgentName = operator().agent;
        if let Some(registered) = registry::agent_key(journal, &name)? {
            return Ok((Arc::new(self.load(registered.public.id())?), registered));
        }
        let key = self.create()?;
        // A person who reviews does so as a critic.
        match registry::bind(journal, ledger_key, &name, key.public(), &[Role::Operator, Role::Critic]) {
            // Somebody else made one in the same moment: that is the one.
            Ok(_) | Err(registry::Error::HasKey { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let registered = registry::agent_key(journal, &name)?.ok_or(registry::Error::NoKey(name))?;
        Ok((Arc::new(self.load(registered.public.id())?), registered))
    }
}

impl Ground {
    /// The ground of a data directory that this process owns.
    pub fn of(
        workspace: &Workspace,
        work_dir: std::path::PathBuf,
        clock: Arc<dyn Clock>,
    ) -> Result<Ground, Fault> {
        let root = workspace.layout.root();
        let tree = RealTree::open(root).map_err(Fault::files(root.display().to_string()))?;
        Ok(Ground {
            disk: workspace.disk.clone(),
            layout: workspace.layout.clone(),
            journal: workspace.journal.clone(),
            artifacts: workspace.artifacts.clone(),
            ledger_key: workspace.ledger_key.clone(),
            operator: Arc::new(workspace.keys.clone()),
            tree: Arc::new(tree),
            workspace: work_dir,
            boot: boot_id(),
            clock,
        })
    }
}

/// The kernel's name for this start of the machine; without one every opening looks at all files.
fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let id: String = id.trim().chars().filter(char::is_ascii_graphic).take(64).collect();
    if id.is_empty() { "unknown".to_owned() } else { id }
}

impl Engine {
    /// Opens the tasks of a ledger, and finishes what a crash interrupted.
    pub fn open(ground: Ground, settings: Settings) -> Result<Engine, Fault> {
        let files = TaskFiles::new(ground.tree.clone());
        if let Some(obstacle) = obstacles::of_tasks(&*ground.tree).first() {
            return Err(obstacle.at(ground.layout.root()).into());
        }
        files.prepare().map_err(Fault::files("the folders of tasks"))?;
        let key = ground.journal.ledger().key;
        let mut loaded = Table::load(&*ground.disk, &ground.layout.index(), &key);
        if loaded.board.pos() > ground.journal.size() {
            // The journal lost what the rows know: it is the one that counts.
            (loaded.board, loaded.projected) = (Board::default(), BTreeMap::new());
        }
        let is_other_boot = loaded.boot != ground.boot;
        if is_other_boot {
            // Files may not be what they were when the machine stopped, whatever they look like.
            loaded.projected.clear();
        }
        let mark = ground.layout.index().join("tasks.open");
        let was_open = ground.disk.open(&mark, Mode::Read).is_ok();
        let is_unclean = was_open || loaded.board.pos() == 0 || is_other_boot;
        ground.disk.open(&mark, Mode::Create).map_err(Fault::files(mark.display().to_string()))?;
        let touched = catch_up(&mut loaded.board, &*ground.journal)?;
        let state = State {
            board: loaded.board,
            projected: loaded.projected,
            table: loaded.table,
            changed: touched.clone(),
            behind: BTreeSet::new(),
            unwritten: super::together::Unwritten::default(),
            papers: BTreeMap::new(),
            beats: BTreeMap::new(),
            operator: None,
            notices: Vec::new(),
            moved: Vec::new(),
            fresh: BTreeSet::new(),
            ended: Vec::new(),
            taking: None,
            found: VecDeque::new(),
            is_taking_in: false,
            told: BTreeSet::new(),
            unfinished: BTreeMap::new(),
            is_after_crash: is_unclean,
            is_ending: false,
        };
        let engine = Engine { ground, files, settings, turn: Mutex::default(), state: Mutex::new(state) };
        let mut state = engine.lock();
        // Their events were appended, and whether their files were written is not known.
        for id in &touched {
            state.projected.remove(id);
        }
        if is_unclean {
            engine.reconcile_all(&mut state)?;
            state.is_after_crash = false;
        } else {
            touched.iter().for_each(|id| engine.project(&mut state, id));
        }
        drop(state);
        Ok(engine)
    }
}
