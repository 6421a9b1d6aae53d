//! `baton doctor`: a verdict for each thing that can be wrong, and what to do about it. [`checks`], [`tasks`] and [`places`] look, [`fix`] mends.

mod agents;
mod checks;
mod fix;
mod places;
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

/// A verdict with a reason, and what comes next.
#[derive(Debug, Clone)]
struct Verdict {
    check: &'static str,
    status: Status,
    detail: String,
    next: Option<Next>,
}

/// What a person does about it. Only what mends it when it is pasted is called a fix.
#[derive(Debug, Clone)]
enum Next {
    /// A command after which it is in order.
    Fix(String),
    /// A command that says more.
    See(String),
    /// What only a person can do.
    Advice(String),
}

impl Next {
    fn word(&self) -> &'static str {
        match self {
            Next::Fix(_) => "fix",
            Next::See(_) => "see",
            Next::Advice(_) => "advice",
        }
    }

    fn text(&self, ui: &Ui) -> String {
        match self {
            Next::Fix(command) | Next::See(command) => ui.command(command),
            Next::Advice(text) => text.clone(),
        }
    }
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
        Verdict { check, status, detail: detail.into(), next: None }
    }

    fn fix(self, command: impl Into<String>) -> Self {
        Verdict { next: Some(Next::Fix(command.into())), ..self }
    }

    fn see(self, command: impl Into<String>) -> Self {
        Verdict { next: Some(Next::See(command.into())), ..self }
    }

    fn advice(self, text: impl Into<String>) -> Self {
        Verdict { next: Some(Next::Advice(text.into())), ..self }
    }

    fn to_json(&self, ui: &Ui) -> Value {
        let mut out = json!({"check": self.check, "status": self.status.as_str(), "detail": self.detail});
        if let Some(next) = &self.next {
            out[next.word()] = next.text(ui).into();
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
            if let Some(next) = &verdict.next {
                let line = format!("{}: {}", next.word(), printable(&next.text(ui)));
                table.row(vec![String::new(), String::new(), line]);
            }
        }
        for line in table.lines(None) {
            ui.line(&line)?;
        }
    }
    let fails = verdicts.iter().any(|verdict| verdict.status == Status::Fail);
    Ok(if fails { Exit::Unexpected } else { Exit::Ok })
}
