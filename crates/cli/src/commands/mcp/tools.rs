//! The tools, one after the other: what each is for, what it takes, and to whom it is offered.

use std::sync::Arc;

use baton_core::Role;
use baton_core::limits::{
    BLOCKERS_MAX, BODY_BYTES_MAX, DEPENDENCIES_MAX, EXIT_EVIDENCE_BYTES_MAX, EXIT_NOTES_BYTES_MAX,
    EXIT_URL_BYTES_MAX, GUARD_ITEMS_MAX, GUARD_TEXT_CHARS_MAX, INTEGER_MAX, LIST_ITEM_CHARS_MAX,
    LIST_ITEMS_MAX, NOTES_CHARS_MAX, PATH_CHARS_MAX, PROGRESS_CHARS_MAX, REASON_CHARS_MAX, TITLE_CHARS_MAX,
};
use rmcp::model::{Tool as Offered, ToolAnnotations};

use super::binding::Binding;
use crate::limits::{MCP_LIST_MAX, MCP_QUESTION_CHARS_MAX, MCP_SUMMARY_CHARS_MAX};
use baton_server::field::{Field, Kind, may, needed, schema};

/// What a tool is called and what it does; the descriptions are read by models.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: Name,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) about: About,
    pub(super) fields: &'static [Field],
    pub(super) roles: &'static [Role],
    pub(super) does: Does,
}

/// Which task a tool is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// None that exists: not for a session that has one task.
    Board,
    /// A task that is taken with it: not for a session that holds one.
    Claim,
    /// One task, whoever holds it.
    Task,
    /// One task, in the name of an agent.
    Work,
    /// A task that is made.
    New,
    /// A person, by way of the session.
    Session,
    /// The guarded run that the session plays a part in.
    Guard,
}

/// What a call changes, for clients that ask people before some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    Reads,
    Adds,
    Moves,
}

macro_rules! names {
    ($($variant:ident = $word:literal),+ $(,)?) => {
        /// Every tool.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Name { $($variant),+ }

        impl Name {
            pub(super) fn as_str(self) -> &'static str {
                match self { $(Name::$variant => $word),+ }
            }
        }
    };
}
names! {
    GetTask = "get_task",
    ListReady = "list_ready",
    ClaimTask = "claim_task",
    Heartbeat = "heartbeat",
    ReportProgress = "report_progress",
    ReportCompletion = "report_completion",
    RequestHandoff = "request_handoff",
    AnswerHandoff = "answer_handoff",
    CreateTask = "create_task",
    AskHuman = "ask_human",
    SubmitProposal = "submit_proposal",
    SubmitReview = "submit_review",
    DeclareIntent = "declare_intent",
    SubmitClaim = "submit_claim",
    ChallengeClaim = "challenge_claim",
    FinishPhase = "finish_phase",
    VerifyTrace = "verify_trace",
}

const EVERYBODY: &[Role] = &[Role::Planner, Role::Executor, Role::Critic, Role::Auditor];
const WORKERS: &[Role] = &[Role::Planner, Role::Executor];

const TASK: Field = needed("task", Kind::Task, "The whole id of the task.");
const OWN_TASK: Field =
    may("task", Kind::Task, "Your task. Not needed: this server is bound to it and takes no other.");
const FENCE: Field = may(
    "fence",
    Kind::Number(0, INTEGER_MAX.unsigned_abs()),
    "The fence that claim_task gave. Not needed where the claim was made through this server.",
);
const BLOCKERS: Field = may(
    "blockers",
    Kind::List(BLOCKERS_MAX, LIST_ITEM_CHARS_MAX),
    "What stands in the way, one sentence each.",
);
const ITEMS: Kind = Kind::List(GUARD_ITEMS_MAX, GUARD_TEXT_CHARS_MAX);
const NOTES: Field = may("notes", Kind::Text(NOTES_CHARS_MAX), "Anything the next reader should know.");

/// All of them, in the order of a task's life.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: Name::GetTask,
        title: "Read a task",
        description: "Reads a task: title, text, status, phase, priority, dependencies, who holds it, and its work log. \
                      Call it first, before you start, and again when you are told that something about the task changed.",
        about: About::Task,
        fields: &[],
        roles: EVERYBODY,
        does: Does::Reads,
    },
    Tool {
        name: Name::ListReady,
        title: "List tasks to take",
        description: "Lists tasks that are ready to be worked on. Call it to find work; then take one with claim_task.",
        about: About::Board,
        fields: &[may(
            "limit",
            Kind::Number(1, MCP_LIST_MAX),
            "At most this many; 20 where nothing is said.",
        )],
        roles: EVERYBODY,
        does: Does::Reads,
    },
    Tool {
        name: Name::ClaimTask,
        title: "Take a task",
        description: "Takes a ready task for you, so that nobody else works on it. Gives a fence and the time by which the \
                      first heartbeat must come. Call it before you change anything; if somebody else holds the task, take another.",
        about: About::Claim,
        fields: &[may(
            "ttl",
            Kind::Text(16),
            "Hold it for this long, such as 90s or 10m; as configured where nothing is said.",
        )],
        roles: EVERYBODY,
        does: Does::Moves,
    },
    Tool {
        name: Name::Heartbeat,
        title: "Say that you are alive",
        description: "Says that you are alive and keeps the task yours. Call it every few minutes during long work. \
                      If it is refused the task is somebody else's by now: stop working on it.",
        about: About::Work,
        fields: &[],
        roles: EVERYBODY,
        does: Does::Adds,
    },
    Tool {
        name: Name::ReportProgress,
        title: "Report progress",
        description: "Writes what happens into the task's work log, while you go on. Call it after each notable step. With \
                      status blocked, review or ready it also ends your work: the task goes there and is not yours any more. \
                      Say at least one of progress, blockers, notes and status.",
        about: About::Work,
        fields: &[
            may("progress", Kind::Text(PROGRESS_CHARS_MAX), "What is done so far, in a line."),
            may(
                "status",
                Kind::Word(&["blocked", "review", "ready"]),
                "Only to give the task away: blocked (with blockers), review, or ready for somebody else.",
            ),
            BLOCKERS,
            NOTES,
        ],
        roles: EVERYBODY,
        does: Does::Moves,
    },
    Tool {
        name: Name::ReportCompletion,
        title: "Report how the work ended",
        description: "Reports how your work on the task ended, and gives the task back. Call it once, as the last thing: with \
                      done only where everything asked for is there and checked; partial where a part is missing; \
                      needs_review where a person should look first; blocked where you cannot go on (with blockers).",
        about: About::Work,
        fields: &[
            needed(
                "outcome",
                Kind::Word(&["done", "blocked", "needs_review", "partial"]),
                "How the work ended.",
            ),
            may(
                "summary",
                Kind::Text(MCP_SUMMARY_CHARS_MAX),
                "What was done and how it was checked, in Markdown; becomes outputs/summary.md of the task.",
            ),
            may(
                "summary_path",
                Kind::Text(PATH_CHARS_MAX),
                "Instead of summary: a file that has it, relative to the task's folder or the workspace.",
            ),
            may(
                "deliverables",
                Kind::List(LIST_ITEMS_MAX, PATH_CHARS_MAX),
                "Files that you made or changed, as relative paths.",
            ),
            may(
                "tests",
                Kind::Counts,
                "How many tests there are, passed and failed; nothing where none were run.",
            ),
            BLOCKERS,
            NOTES,
        ],
        roles: EVERYBODY,
        does: Does::Moves,
    },
    Tool {
        name: Name::RequestHandoff,
        title: "Hand a part to another agent",
        description: "Asks another agent to do a part of your task, which must be a task of its own: make it with create_task \
                      first. Call it where somebody else is better placed; a part that was handed to you is not handed on.",
        about: About::Work,
        fields: &[
            needed("child", Kind::Task, "The task that is handed over, as create_task gave it."),
            needed("to_agent", Kind::Text(64), "The agent that should take it."),
            needed("due_by", Kind::Text(64), "By when, as a time of RFC 3339, such as 2026-02-01T12:00:00Z."),
            may(
                "acceptance_criteria",
                Kind::List(LIST_ITEMS_MAX, LIST_ITEM_CHARS_MAX),
                "When it is done, one sentence each.",
            ),
            may(
                "expected_outputs",
                Kind::List(LIST_ITEMS_MAX, PATH_CHARS_MAX),
                "Files that should come of it, as relative paths.",
            ),
            may(
                "context_refs",
                Kind::List(LIST_ITEMS_MAX, PATH_CHARS_MAX),
                "Files worth reading first, as relative paths.",
            ),
            may(
                "constraints",
                Kind::List(LIST_ITEMS_MAX, LIST_ITEM_CHARS_MAX),
                "What must not happen, one sentence each.",
            ),
        ],
        roles: WORKERS,
        does: Does::Adds,
    },
    Tool {
        name: Name::AnswerHandoff,
        title: "Accept or refuse a handoff",
        description: "Answers a request to take over a task that was handed to you. Call it before you start on such a task. \
                      A refusal needs a reason, and blocks the task until somebody looks.",
        about: About::Work,
        fields: &[
            needed("accept", Kind::Flag, "Whether you take it."),
            may("reason", Kind::Text(REASON_CHARS_MAX), "Why not; needed for a refusal."),
        ],
        roles: WORKERS,
        does: Does::Moves,
    },
    Tool {
        name: Name::CreateTask,
        title: "Make a task",
        description: "Makes a new task and gives its id. Call it for work that you found and should not do now, or for a part \
                      that you want to hand over. In a session the new task is a part of yours. It waits in backlog unless ready is true.",
        about: About::New,
        fields: &[
            needed("title", Kind::Text(TITLE_CHARS_MAX), "What is to be done, in a line."),
            may(
                "text",
                Kind::Text(BODY_BYTES_MAX),
                "Everything that whoever takes it must know, in Markdown.",
            ),
            may("priority", Kind::Word(&["critical", "high", "normal", "low"]), "How soon."),
            may("agent", Kind::Text(64), "Offer it to this agent."),
            may("role", Kind::Text(64), "Offer it to agents of this role."),
            may("depends_on", Kind::List(DEPENDENCIES_MAX, 128), "Ids of tasks that must be done before."),
            may("parent", Kind::Task, "The task that it is a part of."),
            may("ready", Kind::Flag, "Let agents take it at once."),
        ],
        roles: WORKERS,
        does: Does::Adds,
    },
    Tool {
        name: Name::AskHuman,
        title: "Ask a person",
        description: "Asks a person and waits up to 10 minutes for the answer. Call it only where you cannot go on without a \
                      decision that is not yours to make; ask one question that can be answered in a sentence.",
        about: About::Session,
        fields: &[needed(
            "question",
            Kind::Text(MCP_QUESTION_CHARS_MAX),
            "The question, with what the person must know.",
        )],
        roles: EVERYBODY,
        does: Does::Adds,
    },
    Tool {
        name: Name::SubmitProposal,
        title: "Propose how to do a guarded task",
        description: "Proposes how the task of a guarded run is to be done, for others to review and to do. Call it when you are \
                      asked for a proposal, instead of answering in text.",
        about: About::Guard,
        fields: &[
            needed("objective", Kind::Text(GUARD_TEXT_CHARS_MAX), "What is to be true in the end."),
            may("assumptions", ITEMS, "What you take for granted, one sentence each."),
            may("required_tools", ITEMS, "Every tool that the work needs, by the names that you were told."),
            may("expected_evidence", ITEMS, "What would prove that it is done, one sentence each."),
        ],
        roles: &[Role::Planner],
        does: Does::Adds,
    },
    Tool {
        name: Name::SubmitReview,
        title: "Review a proposal or an intent",
        description: "Says whether a proposal, or a tool that is to be run, is let through. Call it when you are asked for a review: \
                      with proposal_id and approved, conditional or rejected, or with intent_id and approved or blocked.",
        about: About::Guard,
        fields: &[
            may("proposal_id", Kind::Text(128), "The proposal that it is about."),
            may("intent_id", Kind::Text(128), "The intent that it is about."),
            needed(
                "status",
                Kind::Word(&["approved", "conditional", "rejected", "blocked"]),
                "What you say of it.",
            ),
            may(
                "conditions",
                ITEMS,
                "Where it is conditional: the tools that are let through, each with what for after a colon.",
            ),
            may("risk", Kind::Text(GUARD_TEXT_CHARS_MAX), "What may go wrong."),
            needed("rationale", Kind::Text(GUARD_TEXT_CHARS_MAX), "Why."),
        ],
        roles: &[Role::Critic],
        does: Does::Adds,
    },
    Tool {
        name: Name::DeclareIntent,
        title: "Say which tool you are going to run",
        description: "Signs the intent to run a tool with exactly this input, before you run it. Not needed: a call that nobody \
                      declared gets an intent of its own. Call it where you can say why, or where the tool is riskier than its name tells.",
        about: About::Guard,
        fields: &[
            needed("tool_name", Kind::Text(64), "The tool."),
            needed("input", Kind::Object, "What it will be given, exactly."),
            may(
                "risk_class",
                Kind::Word(&["low", "medium", "high"]),
                "What may go wrong, where it is more than the tool's own class.",
            ),
            needed("justification", Kind::Text(GUARD_TEXT_CHARS_MAX), "What it is needed for."),
            may(
                "retry_of",
                Kind::Text(128),
                "The intent that it takes the place of, where that was blocked or failed.",
            ),
        ],
        roles: &[Role::Executor],
        does: Does::Adds,
    },
    Tool {
        name: Name::SubmitClaim,
        title: "Claim what came of the work",
        description: "Claims that something is true now, with the executions that show it. Call it after the tools that it rests on \
                      have ended, or with revises when a claim of yours was challenged.",
        about: About::Guard,
        fields: &[
            needed("claim_text", Kind::Text(GUARD_TEXT_CHARS_MAX), "What is true."),
            needed("confidence", Kind::Share, "How sure you are."),
            may("evidence", ITEMS, "Hashes of artifacts; what the executions left, where nothing is said."),
            may(
                "executions",
                ITEMS,
                "Ids of the intents whose executions it rests on; all that ended well, where nothing is said.",
            ),
            may("revises", Kind::Text(128), "The claim that it takes the place of."),
        ],
        roles: &[Role::Executor],
        does: Does::Adds,
    },
    Tool {
        name: Name::ChallengeClaim,
        title: "Challenge a claim",
        description: "Challenges a claim whose evidence is weak or says otherwise. Call it once for each such claim when you are asked \
                      for challenges; then end your turn with {\"challenges\": []}.",
        about: About::Guard,
        fields: &[
            needed("claim_id", Kind::Text(128), "The claim."),
            needed("reason", Kind::Text(GUARD_TEXT_CHARS_MAX), "What is wrong with it."),
            may("evidence", ITEMS, "Hashes of artifacts that show it."),
        ],
        roles: &[Role::Critic],
        does: Does::Adds,
    },
    Tool {
        name: Name::FinishPhase,
        title: "End the phase",
        description: "Ends the phase that the task is in, so that a fresh agent may take the next one. Call it instead of \
                      report_completion where you were told to work on one phase; the phase is the one that get_task shows.",
        about: About::Work,
        fields: &[
            needed(
                "phase",
                Kind::Word(&[
                    "DRAFT",
                    "IMPLEMENTATION",
                    "CI_PENDING",
                    "READY_FOR_REVIEW",
                    "REVIEW",
                    "READY_FOR_MERGE",
                    "COMPLETED",
                    "BLOCKED",
                ]),
                "The phase that you finished, as get_task shows it.",
            ),
            needed("exit_reason", Kind::Word(&["completed", "blocked", "error"]), "How it ended."),
            may(
                "pr_url",
                Kind::Text(EXIT_URL_BYTES_MAX),
                "Where the change can be looked at; an https address.",
            ),
            may(
                "evidence_path",
                Kind::Text(EXIT_EVIDENCE_BYTES_MAX),
                "A file with evidence, relative to the task's folder.",
            ),
            may("notes", Kind::Text(EXIT_NOTES_BYTES_MAX), "Anything the next agent should know."),
        ],
        roles: EVERYBODY,
        does: Does::Moves,
    },
    Tool {
        name: Name::VerifyTrace,
        title: "Verify what was recorded",
        description: "Verifies everything that was recorded about a task: hashes, order, signatures. Gives the verdict (pass, \
                      pass-with-warnings, fail, unknown) and every finding with what to do about it. Call it before you rely on what others did.",
        about: About::Task,
        fields: &[],
        roles: EVERYBODY,
        does: Does::Reads,
    },
];

impl Tool {
    /// Why it is not offered to whoever is bound so; nothing where it is.
    pub(super) fn refusal(&self, binding: &Binding) -> Option<String> {
        let name = self.name.as_str();
        let is_free = matches!(binding.role, Role::Operator | Role::System);
        if !is_free && !self.roles.contains(&binding.role) {
            return Some(format!(
                "{name} is not a tool of the role {}: use the tools that tools/list names",
                binding.role
            ));
        }
        match (self.about, &binding.task) {
            // Whoever plays another part does not speak for the work.
            (About::Work, _) if binding.guard.is_some() && binding.role != Role::Executor => Some(format!(
                "{name} is for the executor of a guarded run: answer what you were asked for as its {}",
                binding.role
            )),
            (About::Board | About::Claim, Some(bound)) => Some(format!(
                "{name} is not for a session: {} is yours already; read it with get_task and work on it",
                bound.task
            )),
            (About::Claim | About::Work, None) if binding.agent.is_none() => Some(format!(
                "{name} needs to know who acts: start the server as baton mcp --agent NAME, or set BATON_AGENT"
            )),
            (About::Guard, _) if binding.guard.is_none() => {
                Some(format!("{name} is for the players of a guarded run: this session plays no part in one"))
            }
            (About::Session, _) if binding.session.is_none() => Some(format!(
                "{name} works in a session of Baton only: ask the person who uses this client directly"
            )),
            _ => None,
        }
    }

    /// What it takes from whoever is bound so.
    pub(super) fn fields(&self, binding: &Binding) -> Vec<Field> {
        let is_bound = binding.task.is_some();
        let before: &[Field] = match (self.about, is_bound) {
            (About::Board | About::New | About::Session | About::Guard, _) => &[],
            (_, true) => &[OWN_TASK],
            (About::Claim | About::Task, false) => &[TASK],
            (About::Work, false) => &[TASK, FENCE],
        };
        // A part of the bound task is a part of no other.
        let own = self.fields.iter().filter(|field| !(is_bound && field.name == "parent"));
        before.iter().chain(own).copied().collect()
    }

    /// As clients see it.
    pub(super) fn offered(&self, binding: &Binding) -> Offered {
        let hints = ToolAnnotations::new().read_only(self.does == Does::Reads);
        let hints = match self.does {
            Does::Reads => hints,
            Does::Adds | Does::Moves => hints.destructive(false),
        };
        Offered::new(self.name.as_str(), self.description, Arc::new(schema(&self.fields(binding))))
            .with_title(self.title)
            .with_annotations(hints.open_world(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_is_what_the_rules_know_as_baton_s_own() {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, baton_core::guard::OWN_TOOLS);
    }
}
