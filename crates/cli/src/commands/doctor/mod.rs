//! `baton doctor`: a verdict for each thing that can be wrong, and what to do about it. [`checks`] looks, [`fix`] mends.

mod checks;
mod fix;
mod tasks;

use serde_json::{Value, json};

use crate::args::Doctor;
use crate::commands::Ended;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::Ui;
use crate::ui::table::{Align, Table};
use crate::ui::text::printable;

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ok,
    Warn,
    Fail,
}

/// A verdict with a reason, and a command that helps.
#[derive(Debug, Clone)]
struct Verdict {
    check: &'static str,
    status: Status,
    detail: String,
    fix: Option<String>,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "fail",
        }
    }
}

impl Verdict {
    fn new(check: &'static str, status: Status, detail: impl Into<String>) -> Self {
        Verdict { check, status, detail: detail.into(), fix: None }
    }

    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    fn to_json(&self, ui: &Ui) -> Value {
        let mut out = json!({"check": self.check, "status": self.status.as_str(), "detail": self.detail});
        if let Some(fix) = &self.fix {
            out["fix"] = ui.command(fix).into();
        }
        out
    }
}

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &Doctor) -> Ended {
    let layout = ctx.layout()?;
    let mended = if args.fix { fix::run(ctx, ui, &layout)? } else { Vec::new() };
    let verdicts = checks::run(ctx, &layout);
    if ui.json {
        let checks: Vec<Value> = verdicts.iter().map(|verdict| verdict.to_json(ui)).collect();
        let mut out = json!({"v": 1, "checks": checks});
        if args.fix {
            out["fixed"] = mended.into();
        }
        ui.object(&out)?;
    } else {
        for done in &mended {
            ui.note(&format!("fixed: {done}"));
        }
        let mut table =
            Table::new(&[("check", Align::Left), ("status", Align::Left), ("detail", Align::Left)]);
        for verdict in &verdicts {
            let status = ui.paint.status(verdict.status.as_str());
            table.row(vec![verdict.check.into(), status, printable(&verdict.detail)]);
            if let Some(fix) = &verdict.fix {
                table.row(vec![
                    String::new(),
                    String::new(),
                    format!("fix: {}", printable(&ui.command(fix))),
                ]);
            }
        }
        for line in table.lines(None) {
            ui.line(&line)?;
        }
    }
    let fails = verdicts.iter().any(|verdict| verdict.status == Status::Fail);
    Ok(if fails { Exit::Unexpected } else { Exit::Ok })
}
