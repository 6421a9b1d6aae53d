//! The tables of `docs/reference/mcp.md`, which are made from the tools. `BATON_REGENERATE=1` writes them anew.

use std::fs;

use baton_core::Role;

use super::tools::{About, Name, TOOLS, Tool};
use baton_server::field::Field;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/mcp.md");

/// What stands before and after what is made.
const BEGIN: &str = "<!-- made from the tools: begin -->\n";
const END: &str = "<!-- made from the tools: end -->\n";

/// The command that does it.
fn command(name: Name) -> &'static str {
    match name {
        Name::GetTask => "task show",
        Name::ListReady => "task ls --status ready",
        Name::ClaimTask => "task claim",
        Name::Heartbeat => "task beat",
        Name::ReportProgress => "send (status.update)",
        Name::ReportCompletion => "send (completion.report)",
        Name::RequestHandoff => "send (handoff.request)",
        Name::AnswerHandoff => "send (handoff.accepted, handoff.rejected)",
        Name::CreateTask => "task new",
        Name::AskHuman => "session ask",
        Name::SubmitProposal
        | Name::SubmitReview
        | Name::DeclareIntent
        | Name::SubmitClaim
        | Name::ChallengeClaim => "session submit",
        Name::FinishPhase => "exit submit",
        Name::VerifyTrace => "verify",
    }
}

fn to_whom(tool: &Tool) -> &'static str {
    match tool.about {
        About::Board => "without a session",
        About::Claim => "without a session, with an agent",
        About::Task | About::New => "always",
        About::Work => "in a session, or with an agent",
        About::Session => "in a session",
        About::Guard => "in a session of a guarded run",
    }
}

fn tables() -> String {
    let mut out = String::from("| tool | does | offered | roles |\n| --- | --- | --- | --- |\n");
    for tool in TOOLS {
        let roles: Vec<&str> = tool.roles.iter().copied().map(Role::as_str).collect();
        let roles = if roles.len() == 4 { "all".to_owned() } else { roles.join(", ") };
        let (name, does, offered) = (tool.name.as_str(), command(tool.name), to_whom(tool));
        out.push_str(&format!("| `{name}` | `baton {does}` | {offered} | {roles} |\n"));
    }
    for tool in TOOLS {
        out.push_str(&format!("\n### `{}`\n\n{}\n", tool.name.as_str(), tool.description));
        if tool.fields.is_empty() {
            continue;
        }
        out.push_str("\n| argument | needed | value | |\n| --- | --- | --- | --- |\n");
        for Field { name, kind: value, is_required, help } in tool.fields {
            let needed = if *is_required { "yes" } else { "no" };
            out.push_str(&format!("| `{name}` | {needed} | {} | {help} |\n", value.words()));
        }
    }
    out
}

#[test]
fn the_page_has_the_tools_as_they_are() {
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (committed, after) = rest.split_once(END).unwrap();
    let made = tables();
    if std::env::var_os("BATON_REGENERATE").is_some() {
        fs::write(PAGE, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
    } else {
        assert!(
            committed == made,
            "docs/reference/mcp.md is not what the tools say; run the test with BATON_REGENERATE=1"
        );
    }
}
