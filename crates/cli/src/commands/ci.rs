//! `baton ci report`: what somebody else's CI found.

use baton_core::limits::ARTIFACT_BYTES_MAX;
use baton_core::task::decide::{CiVerdict, operator};

use super::task::change;
use crate::commands::Ended;
use crate::context::Context;
use crate::input::read_bytes;
use crate::task_args::{Ci, CiReport};
use crate::ui::Ui;

pub(super) fn run(ctx: &Context, ui: &mut Ui, command: Ci) -> Ended {
    match command {
        Ci::Report(args) => report(ctx, ui, &args),
    }
}

fn report(ctx: &Context, ui: &mut Ui, args: &CiReport) -> Ended {
    let log = args.log.as_deref().map(|path| read_bytes(ctx, path, ARTIFACT_BYTES_MAX)).transpose()?;
    change(ctx, ui, &args.name.task, |tasks, task| {
        let log = log.map(|bytes| tasks.store_bytes(&bytes, "text/plain", "ci.log")).transpose()?;
        let verdict = CiVerdict {
            task,
            passed: args.verdict.passed,
            exit_code: None,
            reason: String::new(),
            log,
            rework: tasks.settings().ci_rework,
            since: None,
        };
        tasks.ci(&verdict, &operator())
    })
}
