//! `baton policy check`: by which rules the next guarded task would be done, and by whom, or why it would not be.

use std::time::Duration;

use baton_core::guard::{Critic, Policy};
use baton_core::roles::{RULES, VERIFIER};
use baton_core::{AgentName, duration};
use baton_store::History as _;
use baton_store::keys::KeyStore;
use serde_json::{Value, json};

use crate::commands::Ended;
use crate::config::{Harness, Settings};
use crate::context::Context;
use crate::error::Code;
use crate::exit::Exit;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::table::{Align, Table};
use baton_runtime::conduct::TeamNames;

pub(super) fn check(ctx: &Context, ui: &mut Ui) -> Ended {
    let layout = ctx.layout()?;
    let Settings { team, policy, agents, .. } = ctx.settings(Some(layout.root()))?;
    let mut problems = team.problems(&policy.rules);
    let parts = [
        ("planner", &team.planner),
        ("executor", &team.executor),
        ("critic", &team.critic),
        ("auditor", &team.auditor),
    ];
    let is_exec = |name: &AgentName| {
        agents.get(name).is_some_and(|agent| matches!(agent.harness, Harness::Exec { .. }))
    };
    for (part, _) in parts.into_iter().filter(|(_, name)| name.as_ref().is_some_and(is_exec)) {
        problems.push(format!(
            "team.{part}: expected an agent of the harness acp or llm, got exec: its tools run before anybody is asked"
        ));
    }
    let reader = ctx.visit()?.reader;
    let keys = KeyStore::new(&ctx.state_dir()?, &reader.ledger().origin);
    problems.extend(team.key_problems(&reader, &keys)?);
    let exit = if problems.is_empty() { Exit::Ok } else { Code::Config.exit() };
    if ui.json {
        ui.object(&json!({
            "v": 1, "valid": problems.is_empty(), "guarded": policy.guarded, "policy": to_json(&policy.rules),
            "team": players(&team, &policy.rules).map(|(part, name)| (part.to_owned(), Value::from(name))).into_iter().collect::<Value>(),
            "problems": problems,
        }))?;
        return Ok(exit);
    }
    let mut table = Table::new(&[("rule", Align::Left), ("holds", Align::Left)]);
    for (rule, holds) in rows(&policy.rules) {
        table.row(vec![rule.to_owned(), holds]);
    }
    for (part, name) in players(&team, &policy.rules) {
        table.row(vec![part.to_owned(), name]);
    }
    ui.table(table)?;
    for problem in &problems {
        ui.line(&format!("{} {problem}", ui.paint.mark(Mark::Bad, "wrong:")))?;
    }
    Ok(exit)
}

/// Who plays which part; what nobody is named for, Baton plays itself.
fn players(team: &TeamNames, policy: &Policy) -> [(&'static str, String); 4] {
    let judge = if policy.critics.contains(&Critic::Rules) { RULES } else { "a person" };
    let name = |name: &Option<AgentName>, else_: &str| {
        name.as_ref().map_or_else(|| else_.to_owned(), ToString::to_string)
    };
    [
        ("planner", name(&team.planner, "nobody")),
        ("executor", name(&team.executor, "the task's own agent")),
        ("critic", name(&team.critic, judge)),
        ("auditor", name(&team.auditor, VERIFIER)),
    ]
}

fn to_json(policy: &Policy) -> Value {
    // Words, numbers and lists always make an object.
    serde_json::to_value(policy).unwrap_or_default()
}

fn rows(policy: &Policy) -> Vec<(&'static str, String)> {
    let bound = |bound: Option<u64>| bound.map_or("no bound".to_owned(), |bound| bound.to_string());
    let risks = policy.tool_risks.iter().map(|(tool, risk)| format!("{tool} {risk}"));
    let risks: Vec<String> = risks.collect();
    let critics: Vec<&str> = policy.critics.iter().map(|critic| critic.as_str()).collect();
    let wall_clock = policy.budgets.wall_clock_ms.map(|ms| duration::format(Duration::from_millis(ms)));
    vec![
        ("profile", policy.profile.to_string()),
        ("risk_threshold", policy.risk_threshold.to_string()),
        ("tool_risks", if risks.is_empty() { "none".to_owned() } else { risks.join(", ") }),
        ("read_only", policy.read_only.iter().map(String::as_str).collect::<Vec<_>>().join(", ")),
        ("min_evidence", policy.min_evidence.to_string()),
        ("open_disputes", policy.open_disputes.to_string()),
        ("critics", critics.join(", ")),
        ("approvals", policy.approvals.to_string()),
        ("max_fallbacks", policy.max_fallbacks.to_string()),
        ("budgets.wall_clock", wall_clock.unwrap_or_else(|| "no bound".to_owned())),
        ("budgets.tool_calls", bound(policy.budgets.tool_calls)),
        ("budgets.tokens", bound(policy.budgets.tokens)),
    ]
}
