//! A data directory with an engine on it, and waiting for conditions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_core::TaskId;
use baton_core::task::decide::New;
use baton_core::task::{Status, Task};
use baton_runtime::clock::SystemClock;
use baton_runtime::{Engine, Ground, Settings};
use baton_store::journal::Options;
use baton_store::{History as _, Layout, Workspace};
use serde_json::{Value, json};
use tempfile::TempDir;

/// An engine on a directory of its own, which goes when this does.
pub(crate) struct Bench {
    pub(crate) engine: Arc<Engine>,
    pub(crate) work_dir: PathBuf,
    pub(crate) data_dir: PathBuf,
    workspace: Workspace,
    _dir: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (data_dir, work_dir) = (dir.path().join("data"), dir.path().join("work"));
        std::fs::create_dir(&work_dir).unwrap();
        let workspace = Workspace::create(
            &Layout::new(&data_dir),
            &dir.path().join("state"),
            Options::default(),
            Duration::ZERO,
        );
        let workspace = workspace.unwrap();
        let ground = Ground::of(&workspace, work_dir.clone(), Arc::new(SystemClock)).unwrap();
        let mut settings = Settings::default();
        settings.rules.has_ci = true;
        let engine = Arc::new(Engine::open(ground, settings).unwrap());
        Bench { engine, work_dir, data_dir, workspace, _dir: dir }
    }

    /// Another engine on the same directory, as after one that died.
    pub(crate) fn open_again(&self) -> Engine {
        let ground = Ground::of(&self.workspace, self.work_dir.clone(), Arc::new(SystemClock)).unwrap();
        Engine::open(ground, Settings::default()).unwrap()
    }

    /// A task that is ready.
    pub(crate) fn ready(&self, title: &str) -> TaskId {
        let new = New { status: Status::Ready, ..New::titled(title) };
        self.engine.create(&new).unwrap().0.id
    }

    /// A path below the data directory.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.data_dir.join(path)
    }

    /// What is kept aside.
    pub(crate) fn quarantined(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.at("quarantine")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// A task whose work is reported as done, so that it waits for CI.
    pub(crate) fn task_in_ci(&self, title: &str) -> TaskId {
        let new = New { status: Status::Ready, ..New::titled(title) };
        let (task, _) = self.engine.create(&new).unwrap();
        let agent = "swe-backend".parse().unwrap();
        self.engine.claim(&task.id, &agent, None, None).unwrap();
        let report = json!({
            "protocol": "aof", "version": 1, "type": "completion.report", "taskId": task.id.to_string(),
            "fromAgent": "swe-backend", "toAgent": "dispatcher", "sentAt": "2026-02-09T21:10:00.000Z",
            "payload": {
                "outcome": "done", "summaryRef": "outputs/summary.md", "deliverables": [],
                "tests": {"total": 1, "passed": 1, "failed": 0}, "blockers": [], "notes": "",
            },
        });
        let sent = self.engine.send(report.to_string().as_bytes()).unwrap();
        assert!(sent.rejected.is_none(), "{sent:?}");
        task.id
    }

    pub(crate) fn task(&self, id: &TaskId) -> Task {
        self.engine.task(id).unwrap().0
    }

    /// The events of a type in the ledger, in order.
    pub(crate) fn events(&self, event_type: &str) -> Vec<Value> {
        let journal = &self.workspace.journal;
        let lines = journal.read(1, usize::try_from(journal.size()).unwrap()).unwrap();
        let values = lines.iter().map(|line| serde_json::from_str::<Value>(&line.text).unwrap());
        values.filter(|value| value["type"] == event_type).collect()
    }
}

/// Waits for a condition; a hang is a failure with a name.
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}: still not so");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Words of a command for the shell.
pub(crate) fn sh(text: &str) -> Vec<String> {
    vec!["sh".into(), "-c".into(), text.into()]
}

/// Whether a process that wrote its number into a file is gone.
pub(crate) fn is_gone(file: &Path) -> bool {
    let pid = std::fs::read_to_string(file).unwrap();
    match std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())) {
        // A zombie waits only for whoever adopted it.
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('Z')),
        Err(_) => true,
    }
}
