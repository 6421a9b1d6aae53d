//! What an agent is told of its task: the task's own text alone, then everything that Baton has to say about it.

use baton_core::protocol::exit_signal::PROTOCOL;
use baton_core::protocol::handoff_md;
use baton_core::task::{EARLIER, Papers, Phase, Task};

use crate::harness::AgentSpec;
use crate::limits::PROMPT_LOG_BYTES_MAX;

/// The parts of the first prompt.
pub(super) fn first(task: &Task, papers: &Papers, spec: &AgentSpec) -> Vec<String> {
    let text = text_of(task, papers);
    let (own, earlier) = text.split_at(text.find(EARLIER).unwrap_or(text.len()));
    let mut parts = vec![own.to_owned()];
    if !earlier.is_empty() {
        parts.push(earlier.trim_start().to_owned());
    }
    if let Some(request) = &papers.handoff {
        parts.push(handoff_md(request));
    }
    parts.push(instructions(task, papers, spec));
    parts
}

/// What is asked of an agent whose turn ended without a word about its task.
pub(super) fn reminder(task: &Task, spec: &AgentSpec) -> Vec<String> {
    vec![format!("Task {} has no report yet.", task.id), {
        let how = how_to_end(task, spec);
        format!("Your turn ended. If the work is finished, or cannot go on, say so now. {how}")
    }]
}

/// Title and body; the title alone where the body says it already, or says nothing.
pub(crate) fn text_of(task: &Task, papers: &Papers) -> String {
    let (title, body) = (task.title.trim(), papers.text.trim());
    match body {
        "" => title.to_owned(),
        _ if body.starts_with(title) => body.to_owned(),
        _ => format!("{title}\n\n{body}"),
    }
}

fn instructions(task: &Task, papers: &Papers, spec: &AgentSpec) -> String {
    let mut text = format!(
        "You are agent {}, working on task {} (phase {}) for Baton, which keeps your lease while this session lives. \
         Work in the current directory.",
        spec.name, task.id, task.phase
    );
    if matches!(task.phase, Phase::ReadyForReview | Phase::Review | Phase::ReadyForMerge) {
        text.push_str(&format!(
            "\n\nThis is a review of work that others have done: look at it, change nothing that you need not change, and say what you think of it. \
             What is known of it is in the work log:\n{}",
            tail(&papers.log)
        ));
    } else if task.attempts > 0 {
        text.push_str(&format!(
            "\n\nThis is attempt {}. What was done before is in the work tree; what is known of it is in the work log:\n{}",
            task.attempts + 1,
            tail(&papers.log)
        ));
    }
    text.push_str("\n\n");
    text.push_str(&how_to_end(task, spec));
    text
}

/// As it stands it is no signal: an agent that repeats what it was told has said nothing.
const REASONS: &str = "completed|blocked|error";

fn how_to_end(task: &Task, spec: &AgentSpec) -> String {
    if spec.exit_protocol {
        return format!(
            "End with this JSON object on a line of its own, with one of the three words as its exit_reason: \
             {{\"protocol\":\"{PROTOCOL}\",\"version\":\"1.0.0\",\"phase_completed\":\"{}\",\"exit_reason\":\"{REASONS}\"}}",
            task.phase
        );
    }
    let tool = "report_completion with the outcome done, partial, needs_review or blocked, and a summary";
    match spec.takes_mcp() {
        true => format!(
            "When you are done, call Baton's tool {tool}. Without a report the task goes to a person."
        ),
        false => "When you are done, say in a few words what you did; a person looks at it.".to_owned(),
    }
}

/// The end of a text, from the beginning of a line.
fn tail(text: &str) -> &str {
    let Some(from) = text.len().checked_sub(PROMPT_LOG_BYTES_MAX) else { return text };
    text.char_indices().find(|(at, c)| *at >= from && *c == '\n').map_or("", |(at, _)| &text[at + 1..])
}
