//! What was changed for a task, and the files that Baton has of it.

use axum::http::StatusCode;
use baton_core::task::{Status, Task};
use baton_runtime::work::{Change, ChangePlace, Changes, Worktrees};
use baton_store::tasks::tree::{Found, Tree};
use serde_json::{Value, json};

use crate::access::Needs;
use crate::app::Server;
use crate::asked::{Answer, Asked, ok};
use crate::limits::{
    TASK_FILE_SHOWN_BYTES_MAX, TASK_FILES_DEPTH_MAX, TASK_FILES_SHOWN_BYTES_MAX, TASK_FILES_SHOWN_MAX,
};
use crate::problem::Problem;
use crate::routes::{Gives, Route, Takes, Verb, handler};
use crate::schema::Shape;

pub const ROUTES: &[Route] = &[
    Route {
        verb: Verb::Get,
        path: "/v1/tasks/{id}/changes",
        name: "getTaskChanges",
        summary: "What was changed for a task: its worktree against where its branch left, with what is not committed and not tracked.",
        needs: Needs::Look,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::TaskChanges),
        handler: handler!(changes),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/tasks/{id}/files",
        name: "getTaskFiles",
        summary: "The files of a task in the data directory: its own, and what its runs left beside it.",
        needs: Needs::Look,
        query: &[],
        takes: Takes::Nothing,
        gives: Gives::Json(StatusCode::OK, Shape::TaskFiles),
        handler: handler!(files),
    },
];

async fn found(asked: &Asked) -> Result<Task, Problem> {
    let id = asked.task()?;
    asked
        .apart(move |server| {
            let found =
                server.house.engine.task(&id).map_err(|fault| server.house.commands.explain(fault))?;
            Ok(found.0)
        })
        .await
}

async fn changes(asked: Asked) -> Answer {
    let task = found(&asked).await?;
    // Git is run for it, several times: a few at once will do.
    let object = asked.apart_in_turn(&asked.server.comparing, move |server| compared(server, &task)).await?;
    ok(&object)
}

/// What was changed, or why there is nothing to show.
fn compared(server: &Server, task: &Task) -> Value {
    let (house, id) = (&server.house, &task.id);
    let trees = Worktrees::new(&house.engine.ground().workspace, Some(house.broker.walling()));
    let place = match trees.has(id) {
        true => Ok(ChangePlace::Worktree),
        false => shared_place(server, task),
    };
    let found = place.and_then(|place| match trees.changes(id, place) {
        Ok(changes) => Ok((place, changes)),
        Err(error) => Err(error.to_string()),
    });
    let (place, changes) = match found {
        Ok(found) => found,
        Err(why) => {
            return json!({
                "v": 1, "taskId": id.as_str(), "where": "none", "note": why, "files": [], "isTruncated": false,
            });
        }
    };
    let Changes { path, branch, base, files, is_truncated } = changes;
    let mut object = json!({
        "v": 1, "taskId": id.as_str(), "path": path.display().to_string(), "base": base,
        "files": files.into_iter().map(change).collect::<Vec<Value>>(), "isTruncated": is_truncated,
    });
    if let Some(branch) = branch {
        object["branch"] = branch.into();
    }
    object["where"] = match place {
        ChangePlace::Worktree => "worktree".into(),
        ChangePlace::Workspace => {
            let note = "it has no worktree: this is everything in the workspace that is not committed";
            object["note"] = note.into();
            "workspace".into()
        }
    };
    object
}

/// Where a task without a worktree is worked on; or that there is nothing to compare.
fn shared_place(server: &Server, task: &Task) -> Result<ChangePlace, String> {
    let Some(run) = &task.run else { return Err("nobody has worked on it yet".to_owned()) };
    let agent = server.house.broker.agents().get(&run.agent);
    match task.status {
        _ if agent.is_some_and(|agent| agent.worktree) => {
            Err(format!("{} works in worktrees, and that of the task is not there any more", run.agent))
        }
        Status::Done | Status::Cancelled => {
            Err("it has ended, and what is in the workspace now need not be of it".to_owned())
        }
        _ => Ok(ChangePlace::Workspace),
    }
}

fn change(change: Change) -> Value {
    let mut shown = json!({
        "path": change.path, "status": change.kind.as_str(), "added": change.added, "removed": change.removed,
        "isBinary": change.is_binary, "isTruncated": change.is_truncated,
    });
    if let Some(old) = change.old_path {
        shown["oldPath"] = old.into();
    }
    if let Some(patch) = change.patch {
        shown["patch"] = patch.into();
    }
    shown
}

async fn files(asked: Asked) -> Answer {
    let task = found(&asked).await?;
    let object = asked
        .apart(move |server| {
            let tree = &*server.house.engine.ground().tree;
            let mut kept = Files { files: Vec::new(), room: TASK_FILES_SHOWN_BYTES_MAX, is_truncated: false };
            let folder = format!("tasks/{}/{}", task.status, task.id);
            kept.add(tree, &format!("{folder}.md"));
            kept.walk(tree, &folder, TASK_FILES_DEPTH_MAX);
            kept.walk(tree, &format!("runs/{}", task.id), TASK_FILES_DEPTH_MAX);
            Ok(json!({
                "v": 1, "taskId": task.id.as_str(), "files": kept.files, "isTruncated": kept.is_truncated,
            }))
        })
        .await?;
    ok(&object)
}

/// Files that are shown, and how much more may be.
struct Files {
    files: Vec<Value>,
    room: u64,
    is_truncated: bool,
}

impl Files {
    /// Everything below a directory, in the order of the names. What is no file and no directory is passed over, whatever it leads to.
    fn walk(&mut self, tree: &dyn Tree, dir: &str, depth: usize) {
        let mut names = tree.list(dir).unwrap_or_default();
        names.sort_unstable();
        for name in names {
            if self.files.len() >= TASK_FILES_SHOWN_MAX {
                self.is_truncated = true;
                return;
            }
            let path = format!("{dir}/{name}");
            match tree.look(&path) {
                Ok(Some(Found::File(_))) => self.add(tree, &path),
                Ok(Some(Found::Dir)) if depth > 1 => self.walk(tree, &path, depth - 1),
                Ok(Some(Found::Dir)) => self.is_truncated = true,
                Ok(Some(Found::Other) | None) | Err(_) => {}
            }
        }
    }

    fn add(&mut self, tree: &dyn Tree, path: &str) {
        let max = TASK_FILE_SHOWN_BYTES_MAX.min(self.room);
        let Ok((bytes, stamp)) = tree.read_start(path, max) else { return };
        self.room -= bytes.len() as u64;
        let is_truncated = (bytes.len() as u64) < stamp.bytes;
        self.is_truncated |= is_truncated;
        let mut shown = json!({"name": path, "bytes": stamp.bytes, "isTruncated": is_truncated});
        if let Some(text) = text_of(&bytes, is_truncated) {
            shown["text"] = text.into();
        }
        self.files.push(shown);
    }
}

/// What is text. Where it was cut, it may end in the middle of a character.
fn text_of(bytes: &[u8], is_cut: bool) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}
