//! `baton task edit`: fields by flags, or the file itself in an editor.

use std::path::Path;
use std::process::Command;

use baton_core::TaskId;
use baton_core::task::Board;
use baton_core::task::decide::Edit;
use baton_store::tasks::files::file_path;
use serde_json::{Map, Value, json};

use super::{change, print};
use crate::commands::Ended;
use crate::context::Context;
use crate::error::{CliError, Code, Stop};
use crate::exit::Exit;
use crate::input::read_text;
use crate::task_args::TaskEdit;
use crate::task_names::{find, other};
use crate::ui::Ui;
use crate::ui::shell;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &TaskEdit) -> Ended {
    let mut fields = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value);
        }
    };
    put("title", args.title.as_deref().map(Into::into));
    put("priority", args.priority.map(|priority| priority.as_str().into()));
    put("body", args.file.as_deref().map(|path| read_text(ctx, path)).transpose()?.map(Into::into));
    if fields.is_empty() && args.agent.is_none() && args.depends_on.is_none() {
        return if args.no_editor { take_in(ctx, ui, args) } else { open_editor(ctx, ui, args) };
    }
    if let Some(names) = &args.depends_on {
        let board = ctx.board()?.board;
        let ids: Result<Vec<Value>, CliError> =
            names.iter().map(|name| Ok(other(&board, name)?.as_str().into())).collect();
        fields.insert("dependsOn".into(), ids?.into());
    }
    change(ctx, ui, &args.name.task, |tasks, task| {
        if let Some(agent) = &args.agent {
            let routing = tasks.look(|board| board.get(&task).map(|task| task.routing.to_json()))?;
            let mut routing = routing.unwrap_or_else(|| json!({}));
            routing["agent"] = agent.as_str().into();
            fields.insert("routing".into(), routing);
        }
        tasks.edit(&Edit { task, fields: fields.clone(), file: None })
    })
}

/// Takes in what was saved in the file.
fn take_in(ctx: &Context, ui: &mut Ui, args: &TaskEdit) -> Ended {
    let tasks = ctx.tasks(ui)?;
    let answer = (|| {
        tasks.reconcile_named(&args.name.task)?;
        let board = tasks.look(Board::clone)?;
        Ok::<_, Stop>(tasks.task(&find(&board, &args.name.task)?)?)
    })();
    let refused: Vec<String> = tasks.take_refused(&args.name.task);
    let (task, papers) = tasks.finish(ui, answer)?;
    if let Some(refused) = refused.first() {
        let file = ctx.layout()?.root().join(file_path(task.status, &task.id));
        let hint = way_back(ctx, ui, refused, &std::path::absolute(&file).unwrap_or(file), &task.id);
        return Err(CliError::new(Code::TaskField, refused.as_str()).hint(hint).into());
    }
    print(ui, &task, &papers)
}

/// The command that puts what was not taken in back into the task's file, and opens it there where an editor is set.
fn way_back(ctx: &Context, ui: &Ui, refused: &str, file: &Path, id: &TaskId) -> String {
    let Some((_, kept)) = refused.rsplit_once("it is kept in ") else {
        return format!("baton task show {id}");
    };
    let copy = format!("cp {} {}", shell::path(Path::new(kept)), shell::path(file));
    let has_editor = ctx.env.get("VISUAL").or_else(|| ctx.env.get("EDITOR")).is_some();
    if has_editor { format!("{copy} && {}", ui.command(&format!("baton task edit {id}"))) } else { copy }
}

/// Opens the task's file, and has what was saved taken in by whoever owns the data directory then.
fn open_editor(ctx: &Context, ui: &Ui, args: &TaskEdit) -> Ended {
    let read = ctx.board()?;
    let id = find(&read.board, &args.name.task)?;
    let status = read.board.get(&id).map(|task| task.status);
    let Some(status) = status else { return Ok(Exit::NotFound) };
    let path = read.visit.layout.root().join(file_path(status, &id));
    let editor = ctx.env.get("VISUAL").or_else(|| ctx.env.get("EDITOR")).ok_or_else(|| {
        CliError::new(Code::Value, "no editor is set, and no flag says what to change")
            .hint(format!("baton task edit {id} --title \"…\""))
    })?;
    let fail = |error: std::io::Error| {
        CliError::new(Code::Value, format!("cannot run the editor {editor}")).cause(error.to_string())
    };
    let ended = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(&path)
        .status()
        .map_err(fail)?;
    if !ended.success() {
        return Err(CliError::new(
            Code::Value,
            format!("the editor ended with {ended}; nothing was taken in"),
        )
        .into());
    }
    let me = std::env::current_exe().map_err(fail)?;
    let root = read.visit.layout.root().to_owned();
    let mut again = Command::new(me);
    again.args(["task", "edit", id.as_str(), "--no-editor"]);
    if ui.json {
        again.arg("--json");
    }
    if ui.is_quiet() {
        again.arg("--quiet");
    }
    // Named as it was for this command, so that what it tells to type next is no longer than it must be.
    if ui.command("baton") == "baton" {
        again.env("BATON_DATA_DIR", root);
    } else {
        again.arg("--data-dir").arg(root);
    }
    let ended = again.status().map_err(fail)?;
    Ok(ended.code().and_then(Exit::of).unwrap_or(Exit::Unexpected))
}
