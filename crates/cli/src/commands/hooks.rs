//! `baton hooks check`: what would run after tools, or why nothing would.

use std::time::Duration;

use baton_core::session::{ErrorCode, FailurePolicy, Hook, ToolFilter};
use baton_runtime::hooks;
use baton_runtime::process::Command;
use serde_json::{Value, json};

use crate::commands::Ended;
use crate::context::Context;
use crate::error::{CliError, Code};
use crate::exit::Exit;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::shell;
use crate::ui::table::{Align, Table};
use crate::ui::text::printable;

pub(super) fn check(ctx: &Context, ui: &mut Ui) -> Ended {
    let layout = ctx.layout()?;
    let path = layout.hooks();
    let hooks = match hooks::load(&path) {
        Ok(hooks) => hooks,
        Err(error) => {
            let code = match error.code {
                ErrorCode::HookConfigReadFailed => Code::FileUnreadable,
                _ => Code::HooksFile,
            };
            if ui.json {
                let said = json!({"code": error.code.as_str(), "message": error.message});
                ui.object(&json!({"v": 1, "valid": false, "hooks": [], "error": said}))?;
                return Ok(code.exit());
            }
            let what = match code {
                Code::HooksFile => "the hooks do not read: sessions run without any",
                _ => "the hooks cannot be read: sessions run without any",
            };
            return Err(CliError::new(code, what).cause(error.message).hint(shell_edit(&path)).into());
        }
    };
    let dir = ctx.work_dir(layout.root());
    let is_found = |hook: &Hook| {
        Command::new(hook.command.clone(), &dir, Duration::from_millis(hook.timeout_ms)).is_found()
    };
    if ui.json {
        let hooks: Vec<Value> = hooks.iter().map(|hook| to_json(hook, is_found(hook))).collect();
        ui.object(&json!({"v": 1, "valid": true, "hooks": hooks}))?;
        return Ok(Exit::Ok);
    }
    if hooks.is_empty() {
        ui.note(&match path.exists() {
            true => "There are no hooks in hooks.json.".to_owned(),
            false => format!("There is no {}: nothing runs after tools.", path.display()),
        });
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&[
        ("hook", Align::Left),
        ("after", Align::Left),
        ("time-out", Align::Right),
        ("on failure", Align::Left),
        ("program", Align::Left),
        ("command", Align::Left),
    ]);
    for hook in &hooks {
        let program = match is_found(hook) {
            true => ui.paint.mark(Mark::Good, "found"),
            false => ui.paint.mark(Mark::Warn, "not found"),
        };
        table.row(vec![
            printable(&hook.name),
            printable(&after(&hook.tool_filter)),
            in_words(hook.timeout_ms),
            on_failure(hook.failure_policy),
            program,
            printable(&shell::words(&hook.command)),
        ]);
    }
    ui.table(table)?;
    Ok(Exit::Ok)
}

fn shell_edit(path: &std::path::Path) -> String {
    format!("${{EDITOR:-vi}} {}", shell::path(path))
}

fn after(filter: &ToolFilter) -> String {
    match filter {
        ToolFilter::AnyMutating => "any change".to_owned(),
        ToolFilter::ToolNames(names) => names.join(", "),
    }
}

fn on_failure(policy: FailurePolicy) -> String {
    match policy {
        FailurePolicy::FailSession => "the turn fails".to_owned(),
        FailurePolicy::WarnContinue => "a warning".to_owned(),
        FailurePolicy::Retry { max_attempts, delay_ms } => {
            format!("up to {max_attempts} times, {} apart", in_words(delay_ms))
        }
    }
}

/// As the configuration has it: `2m`.
fn in_words(ms: u64) -> String {
    baton_core::duration::format(Duration::from_millis(ms))
}

/// A hook in the words of its file, with every default filled in.
fn to_json(hook: &Hook, is_found: bool) -> Value {
    let failure_policy = match hook.failure_policy {
        FailurePolicy::FailSession => json!({"type": "fail_session"}),
        FailurePolicy::WarnContinue => json!({"type": "warn_continue"}),
        FailurePolicy::Retry { max_attempts, delay_ms } => {
            json!({"type": "retry", "max_attempts": max_attempts, "delay_ms": delay_ms})
        }
    };
    let tool_filter = match &hook.tool_filter {
        ToolFilter::AnyMutating => json!({"type": "any_mutating"}),
        ToolFilter::ToolNames(names) => json!({"type": "tool_names", "names": names}),
    };
    json!({
        "name": hook.name,
        "command": hook.command,
        "timeout_ms": hook.timeout_ms,
        "failure_policy": failure_policy,
        "tool_filter": tool_filter,
        "found": is_found,
    })
}
