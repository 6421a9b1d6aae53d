//! Every key of the configuration, once: section, name, what may stand there, what is built in, what it means.

use baton_core::limits::INTEGER_MAX;

use self::BuiltIn::{Absent, Value};
use super::value::{Form, Kind, WORDS};

/// One key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) section: &'static str,
    /// Dotted where it lies in a table of its own, such as `tls.cert`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: BuiltIn,
    pub(crate) doc: &'static str,
    /// Of an agent: the harnesses that use it. Empty: all.
    pub(crate) only: &'static [&'static str],
}

/// What holds where nobody says anything.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BuiltIn {
    /// This value, as a variable would give it.
    Value(&'static str),
    /// No value, and what that means.
    Absent(&'static str),
}

impl Key {
    /// `section.name`.
    pub(crate) fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// The environment variable. Agents have none: their names hold what a variable's cannot.
    pub(crate) fn variable(&self) -> Option<String> {
        let name = self.path().replace('.', "_").to_ascii_uppercase();
        (self.section != "agents").then(|| format!("BATON_{name}"))
    }

    /// What it means that the key has no value.
    pub(crate) fn absence(&self) -> &'static str {
        match self.default {
            BuiltIn::Value(_) => "none",
            BuiltIn::Absent(meaning) => meaning,
        }
    }

    const fn only(mut self, harnesses: &'static [&'static str]) -> Key {
        self.only = harnesses;
        self
    }
}

const fn key(
    section: &'static str,
    name: &'static str,
    kind: Kind,
    default: BuiltIn,
    doc: &'static str,
) -> Key {
    Key { section, name, kind, default, doc, only: &[] }
}

/// The sections in the order in which they are shown, with what each is about.
pub(crate) const SECTIONS: [(&str, &str); 11] = [
    ("scheduler", "When tasks are handed to agents, and for how long."),
    ("session", "Bounds of one session of an agent."),
    ("ci", "What Baton runs in the phase CI_PENDING."),
    ("notify", "Who is told that a task went to review, blocked, done or deadletter."),
    ("ledger", "How the journal is written."),
    ("server", "Where `baton serve` listens."),
    ("telemetry", "Where spans are sent; numbers are at `/metrics`."),
    ("store", "Where the ledger is kept."),
    ("team", "Which agent plays which role of a guarded task."),
    ("policy", "What a guarded task has to observe."),
    ("agents", "The agents by name, each a table `[agents.NAME]`."),
];

/// The key that this version refuses: what it keeps is in the data directory, whoever asks for another place.
pub(super) const REFUSED: &str = "store.url";

/// What a section is about, and whether it is used.
pub(super) fn about(section: &str, doc: &str) -> String {
    match section {
        "store" => format!("{doc} Not used by this version: setting `url` is an error."),
        _ => doc.to_owned(),
    }
}

/// The four kinds of agents.
pub(crate) const HARNESSES: [&str; 4] = ["acp", "llm", "exec", "mock"];

const SECOND: u64 = 1000;
const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;

/// Long enough for anything that is waited for; what never ends is not a time-out.
const WAIT: Kind = Kind::Duration { min: 100, max: 7 * DAY };
/// A grace may be none at all.
const GRACE: Kind = Kind::Duration { min: 0, max: HOUR };
const WEB: Kind = Kind::Text(Form::Url(&["http", "https"]));
const AGENT_NAME: Kind = Kind::Text(Form::Agent);
const VARIABLE: Kind = Kind::Text(Form::Variable);
const RISK: Kind = Kind::OneOf(&["low", "medium", "high"]);

const fn integer(min: i64, max: i64) -> Kind {
    Kind::Integer { min, max }
}

const AS_PROFILE: BuiltIn = Absent("as the profile says");

/// Every key but those of agents.
#[rustfmt::skip]
pub(crate) const TABLE: &[Key] = &[
    key("scheduler", "poll", Kind::Duration { min: 10, max: DAY }, Value("30s"), "How often the scheduler looks for work that no event announced."),
    key("scheduler", "max_concurrent", integer(1, 256), Value("4"), "Sessions for tasks that may run at the same time."),
    key("scheduler", "lease_ttl", Kind::Duration { min: 100, max: 30 * DAY }, Value("10m"), "How long a claim lasts without a beat."),
    key("scheduler", "heartbeat_ttl", Kind::Duration { min: 100, max: 30 * DAY }, Value("5m"), "How long after a beat a run counts as alive."),
    key("scheduler", "max_attempts", integer(1, 100), Value("3"), "Failed attempts after which a task goes to deadletter."),

    key("session", "llm_timeout", WAIT, Value("2m"), "How long a model may make no progress."),
    key("session", "tool_timeout", WAIT, Value("5m"), "How long a tool may run."),
    key("session", "tool_timeouts", Kind::Map { names: Form::Name, of: &WAIT }, Value("{}"), "The same for single tools, by name."),
    key("session", "permission_timeout", WAIT, Value("5m"), "How long a permission is waited for before it counts as denied."),
    key("session", "stop_grace", GRACE, Value("2s"), "How long a process that was asked to stop has before it is killed."),
    key("session", "exit_grace", GRACE, Value("10s"), "How long a process has to end by itself after its exit signal."),
    key("session", "stderr_lines", integer(1, 10_000), Value("50"), "Lines of standard error that are kept from the beginning, and as many from the end."),
    key("session", "output_bytes", integer(1024, 64 << 20), Value("262144"), "Bytes of a tool's output that are kept in its record; the whole is an artifact."),
    key("session", "home_read", Kind::List { of: &Kind::Text(Form::Path), min: 0 }, Value("[]"), "What programs of tools may read besides the workspace and the system's directories, such as \".cargo\"; relative to your home. Baton's own directories never."),
    key("session", "resume", Kind::Bool, Value("false"), "Whether the next attempt at a task goes on with the conversation that Baton's end cut short, where the agent can."),

    key("ci", "command", Kind::Command, Absent("the phase waits for `baton ci report`"), "What to run in the workspace: a text for `sh -c`, or an array of a program and its arguments, run as it is."),
    key("ci", "timeout", WAIT, Value("30m"), "How long it may run."),
    key("ci", "on_failure", Kind::OneOf(&["block", "rework"]), Value("block"), "Where a failure leads: \"block\" waits for a person, \"rework\" goes back to IMPLEMENTATION."),

    key("notify", "command", Kind::Command, Absent("nothing is run"), "What to run for each notification, which it gets as JSON on standard input; written like `ci.command`."),
    key("notify", "webhook.url", WEB, Absent("nothing is posted"), "Where each notification is posted."),
    key("notify", "webhook.secret_env", VARIABLE, Absent("nothing is posted"), "The variable that holds the secret with which posts are signed; needed with `webhook.url`."),

    key("ledger", "durability", Kind::OneOf(&["commit", "interval", "none"]), Value("commit"), "When events are on the disk: \"commit\" before they are acknowledged, \"interval\" within a second, \"none\" when the system likes."),
    // A smaller segment would hold less than a handful of events.
    key("ledger", "segment_bytes", integer(4096, INTEGER_MAX), Value("67108864"), "Bytes after which a new file of events is begun."),
    key("ledger", "checkpoint_every", integer(1, INTEGER_MAX), Value("1024"), "Events after which a checkpoint is signed."),

    key("server", "listen", Kind::Text(Form::Address), Value("127.0.0.1:7433"), "The address and port of the API and the page."),
    key("server", "hosts", Kind::List { of: &Kind::Text(Form::Name), min: 0 }, Value("[]"), "Names under which the server may be called, beside those of the machine for itself."),
    key("server", "tls.cert", Kind::Text(Form::Path), Absent("no TLS"), "The file with the certificate chain, PEM; relative to the file that says so."),
    key("server", "tls.key", Kind::Text(Form::Path), Absent("no TLS"), "The file with its private key, PEM; likewise."),

    key("telemetry", "otlp_endpoint", WEB, Absent("nothing is sent"), "The OTLP collector that spans go to, over HTTP; `/v1/traces` is added."),

    key("store", "url", Kind::Text(Form::Url(&["postgres", "postgresql"])), Absent("in the data directory"), "The PostgreSQL database that holds the ledger. A password belongs in the variable or in PGPASSWORD, not in a file."),

    key("team", "planner", AGENT_NAME, Absent("nobody"), "The agent that proposes."),
    key("team", "executor", AGENT_NAME, Absent("the task's own agent"), "The agent that does the work."),
    key("team", "critic", AGENT_NAME, Absent("the built-in rules where policy.critics has them, else a person"), "The agent that reviews proposals, intents and claims."),
    key("team", "auditor", AGENT_NAME, Absent("the built-in verifier"), "The agent that verifies at the end."),

    key("policy", "profile", Kind::OneOf(&["strict", "default", "lenient"]), Value("default"), "The set of rules that holds where no other key of this section says otherwise."),
    key("policy", "guarded", Kind::Bool, Value("false"), "Whether new tasks are guarded without being asked to."),
    key("policy", "risk_threshold", RISK, AS_PROFILE, "The class from which on an intent waits for its review."),
    key("policy", "tool_risks", Kind::Map { names: Form::Name, of: &RISK }, Value("{}"), "The class of single tools, by name, beside those that every profile knows."),
    key("policy", "min_evidence", integer(0, 1000), AS_PROFILE, "Artifacts that a claim has to cite."),
    key("policy", "open_disputes", Kind::OneOf(&["fail", "warn"]), AS_PROFILE, "What a challenge that nobody answered does to the final statement."),
    key("policy", "critics", Kind::List { of: &Kind::OneOf(&["agent", "person", "rules"]), min: 0 }, AS_PROFILE, "Who may act as critic."),
    key("policy", "approvals", integer(1, 100), AS_PROFILE, "Approvals that a proposal needs."),
    key("policy", "max_fallbacks", integer(0, 100), AS_PROFILE, "Fallback proposals that may follow failed tools."),
    key("policy", "budgets.wall_clock", WAIT, Absent("no bound"), "How long one run of a guarded task may take."),
    key("policy", "budgets.tool_calls", integer(1, INTEGER_MAX), Absent("no bound"), "Tools it may call."),
    key("policy", "budgets.tokens", integer(1, INTEGER_MAX), Absent("no bound"), "Tokens it may use."),
];

/// Every key of an agent.
#[rustfmt::skip]
pub(crate) const AGENT: &[Key] = &[
    key("agents", "harness", Kind::OneOf(&HARNESSES), Absent("must be given; \"mock\" for the agent `mock`"), "How the agent is driven."),
    key("agents", "command", WORDS, Absent("must be given"), "The program and its arguments.").only(&["acp", "exec"]),
    key("agents", "profile", Kind::OneOf(&["claude", "codex", "gemini", "plain"]), Value("plain"), "How what it prints is understood.").only(&["exec"]),
    key("agents", "api", Kind::OneOf(&["openai", "anthropic"]), Absent("must be given"), "The protocol that the model's server speaks.").only(&["llm"]),
    key("agents", "base_url", WEB, Absent("the provider's own"), "Where that server is.").only(&["llm"]),
    key("agents", "model", Kind::Text(Form::Any), Absent("must be given"), "The name of the model.").only(&["llm"]),
    key("agents", "api_key_env", VARIABLE, Absent("no key is sent"), "The variable that holds the key.").only(&["llm"]),
    key("agents", "env", Kind::Map { names: Form::Variable, of: &Kind::Text(Form::Open) }, Value("{}"), "Variables that are set for it. No secrets: those come through `env_pass`."),
    key("agents", "env_pass", Kind::List { of: &VARIABLE, min: 0 }, Value("[]"), "Variables that it inherits beside the few that every process needs."),
    key("agents", "mode", Kind::Text(Form::Any), Absent("the agent's own"), "The session mode that is asked for. Of a model: \"ask\" lets somebody be asked before a tool changes something.").only(&["acp", "llm", "mock"]),
    key("agents", "fs", Kind::Bool, Value("false"), "Whether it may read and write files through Baton."),
    key("agents", "terminal", Kind::Bool, Value("false"), "Whether it may run commands through Baton."),
    key("agents", "mcp", Kind::Bool, Value("true"), "Whether it is given Baton's MCP server."),
    key("agents", "roles", Kind::List { of: &Kind::Text(Form::Name), min: 0 }, Value("[]"), "Roles whose tasks it takes beside those without a role."),
    key("agents", "exit_protocol", Kind::Bool, Value("false"), "Whether it has to end each phase with an exit signal."),
    key("agents", "max_sessions", integer(1, 256), Absent("`scheduler.max_concurrent`"), "Sessions of it that may run at the same time."),
    key("agents", "workspace", Kind::OneOf(&["shared", "worktree"]), Value("shared"), "Where it works: in the repository itself, or in a git worktree for each task."),
    key("agents", "deadlines.handshake", WAIT, Value("30s"), "How long it may take to be ready after its start."),
    key("agents", "deadlines.inactivity", WAIT, Value("10m"), "How long a turn may pass without a sign of it."),
    key("agents", "deadlines.cancel", WAIT, Value("10s"), "How long it may take to end a turn that was cancelled."),
    key("agents", "deadlines.exit", WAIT, Value("5s"), "How long it may take to end once its input is closed."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_together() {
        let mut paths: Vec<String> = TABLE.iter().chain(AGENT).map(Key::path).collect();
        let count = paths.len();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), count, "each key stands once");
        let mut variables: Vec<String> = TABLE.iter().filter_map(Key::variable).collect();
        variables.sort();
        variables.dedup();
        assert_eq!(variables.len(), TABLE.len(), "each variable means one key");
        for key in TABLE.iter().chain(AGENT) {
            assert!(SECTIONS.iter().any(|(section, _)| *section == key.section), "{key:?}");
            assert!(key.doc.ends_with('.') && !key.doc.contains('|'), "{key:?}");
            if let Value(text) = key.default {
                assert!(key.kind.parse(text).is_some(), "{}: {text}", key.path());
            }
        }
        assert!(AGENT.iter().all(|key| key.section == "agents" && key.variable().is_none()));
        assert_eq!(TABLE[0].variable().as_deref(), Some("BATON_SCHEDULER_POLL"));
    }
}
