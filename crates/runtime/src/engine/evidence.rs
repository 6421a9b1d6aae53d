//! The exit signal of a task, with the evidence that it names: each item stored before the event that cites it.

use baton_core::event::ArtifactRef;
use baton_core::limits::{EVIDENCE_ITEM_BYTES_MAX, EVIDENCE_ITEMS_MAX, YAML_BYTES_MAX};
use baton_core::protocol::exit_signal::ExitSignal;
use baton_core::protocol::is_inside;
use baton_core::task::decide::Submit;
use baton_core::task::event::Evidence;
use baton_core::task::{Phase, Task};
use baton_core::{AgentName, Digest, TaskId, Token};
use baton_ledger::canonical;
use baton_ledger::hash::sha256;
use baton_store::tasks::files::folder_path;
use baton_store::tasks::tree::{RealTree, Tree};
use baton_store::tasks::{Bounds, read_yaml};
use serde_json::Value;

use super::{Engine, Fault};

/// What a signal led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    pub phase: Phase,
    pub next_phase: Phase,
    pub warnings: Vec<String>,
}

/// Who submits a signal, as far as it is said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct From {
    pub session: Option<Token>,
    pub agent: Option<AgentName>,
    pub fence: Option<u64>,
}

/// A bundle as it was found.
#[derive(Debug, Default)]
struct Gathered {
    evidence: Vec<Evidence>,
    artifacts: Vec<ArtifactRef>,
    warnings: Vec<String>,
}

impl Engine {
    /// Takes an exit signal for the holder of a task's lease.
    pub fn submit(&self, id: &TaskId, from: &From, signal: &ExitSignal) -> Result<Submission, Fault> {
        let digest = {
            let value = serde_json::to_value(signal).unwrap_or(Value::Null);
            sha256(&canonical::to_bytes(&value).unwrap_or_default())
        };
        // Files are read before anything is decided; what is decided does not wait for them.
        drop(self.ready_for(id)?);
        let (task, _) = self.task(id)?;
        let is_news =
            task.lease.is_some() && task.said.signal.as_ref().is_none_or(|before| before.digest != digest);
        let gathered = match &signal.evidence_bundle_ref {
            Some(path) if is_news => self.gather(&task, path)?,
            _ => Gathered::default(),
        };
        let submit = Submit {
            task: id.clone(),
            session: from.session.clone(),
            agent: from.agent.clone(),
            fence: from.fence,
            signal: signal.clone(),
            digest,
            evidence: gathered.evidence,
            artifacts: gathered.artifacts,
            warnings: gathered.warnings.clone(),
        };
        let mut state = self.ready_for(id)?;
        let moment = self.ground.clock.moment();
        let ((phase, next_phase), _) = self.act(&mut state, |board, _| {
            let submitted = board.submit(&submit, moment)?;
            Ok(((submitted.phase, submitted.next_phase), submitted.decided))
        })?;
        self.tick_locked(&mut state)?;
        Ok(Submission { phase, next_phase, warnings: gathered.warnings })
    }

    /// Reads a bundle and stores what it names. What is missing or different is a warning, never a refusal.
    fn gather(&self, task: &Task, path: &str) -> Result<Gathered, Fault> {
        let mut gathered = Gathered::default();
        let bytes = match self.find(task, path, YAML_BYTES_MAX as u64) {
            Ok(bytes) => bytes,
            Err(why) => {
                gathered.warnings.push(format!("evidence bundle {path}: {why}"));
                return Ok(gathered);
            }
        };
        gathered.artifacts.push(self.store_bytes(&bytes, "application/yaml", "evidence-bundle")?);
        let bundle = match read_yaml(&bytes, Bounds::default()) {
            Ok(bundle) => bundle,
            Err(problem) => {
                gathered.warnings.push(format!("evidence bundle {path}: {problem}"));
                return Ok(gathered);
            }
        };
        let items = match bundle.get("items").and_then(Value::as_array) {
            Some(items) if items.len() <= EVIDENCE_ITEMS_MAX => items.as_slice(),
            Some(items) => {
                let count = items.len();
                gathered.warnings.push(format!(
                    "evidence bundle {path}: {count} items, at most {EVIDENCE_ITEMS_MAX} are kept"
                ));
                &items[..EVIDENCE_ITEMS_MAX]
            }
            None => {
                gathered.warnings.push(format!("evidence bundle {path}: expected a list `items`"));
                &[]
            }
        };
        for (i, item) in items.iter().enumerate() {
            self.gather_item(task, i, item, &mut gathered)?;
        }
        Ok(gathered)
    }

    fn gather_item(&self, task: &Task, i: usize, item: &Value, gathered: &mut Gathered) -> Result<(), Fault> {
        let text = |key: &str| {
            item.get(key).and_then(Value::as_str).unwrap_or_default().chars().take(256).collect::<String>()
        };
        let (name, path, kind) = (text("name"), text("path"), text("kind"));
        let mut evidence = Evidence { name, path, kind, sha256: None, problem: None };
        match self.find(task, &evidence.path, EVIDENCE_ITEM_BYTES_MAX) {
            Ok(bytes) => {
                let stored =
                    self.store_bytes(&bytes, "application/octet-stream", &artifact_name(&evidence, i))?;
                // Anything but the digest is not the digest: YAML reads one of digits alone as a number.
                let expected = item.get("sha256").filter(|expected| !expected.is_null());
                let is_same = |expected: &Value| {
                    expected.as_str().and_then(|text| text.parse::<Digest>().ok()) == Some(stored.sha256)
                };
                if let Some(expected) = expected.filter(|expected| !is_same(expected)) {
                    let expected = expected.as_str().map_or_else(|| expected.to_string(), str::to_owned);
                    let expected: String = expected.chars().take(64).collect();
                    evidence.problem =
                        Some(format!("sha256 is {}, the bundle says {expected}", stored.sha256));
                }
                evidence.sha256 = Some(stored.sha256);
                if !gathered.artifacts.iter().any(|known| known.sha256 == stored.sha256) {
                    gathered.artifacts.push(stored);
                }
            }
            Err(why) => evidence.problem = Some(why),
        }
        if let Some(problem) = &evidence.problem {
            let name = if evidence.name.is_empty() { &evidence.path } else { &evidence.name };
            gathered.warnings.push(format!("evidence {name}: {problem}"));
        }
        gathered.evidence.push(evidence);
        Ok(())
    }

    /// A file that a bundle or a signal names: in the task's folder, then in the workspace. Links are not followed.
    fn find(&self, task: &Task, path: &str, max: u64) -> Result<Vec<u8>, String> {
        if !is_inside(path) {
            return Err("expected a relative path that stays inside".into());
        }
        let in_folder = format!("{}/{path}", folder_path(task.status, &task.id));
        match self.files.tree().read(&in_folder, max) {
            Ok((bytes, _)) => return Ok(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.to_string()),
        }
        let workspace = RealTree::open(&self.ground.workspace).map_err(|error| error.to_string())?;
        match workspace.read(path, max) {
            Ok((bytes, _)) => Ok(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err("the file is missing".into()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// What an item is called among the artifacts of its event.
fn artifact_name(evidence: &Evidence, i: usize) -> String {
    let name = evidence.path.rsplit('/').next().unwrap_or_default();
    if name.is_empty() { format!("evidence-{i}") } else { name.to_owned() }
}
