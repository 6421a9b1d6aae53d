//! The configuration as the rest of Baton uses it: typed, whole, and without a question left open.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use baton_core::{AgentName, Durability, guard};
use baton_runtime::conduct::TeamNames;
use baton_store::Options;

use super::read::{Origin, Resolved, Values};
use super::value::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) scheduler: Scheduler,
    pub(crate) session: Session,
    pub(crate) ci: Ci,
    pub(crate) notify: Notify,
    pub(crate) ledger: Options,
    pub(crate) server: Server,
    pub(crate) telemetry: Telemetry,
    pub(crate) store: Store,
    pub(crate) team: TeamNames,
    pub(crate) policy: Policy,
    /// With `mock`, always.
    pub(crate) agents: BTreeMap<AgentName, Agent>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scheduler {
    pub(crate) poll: Duration,
    pub(crate) max_concurrent: u32,
    pub(crate) lease_ttl: Duration,
    pub(crate) heartbeat_ttl: Duration,
    pub(crate) max_attempts: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) llm_timeout: Duration,
    pub(crate) tool_timeout: Duration,
    /// By the name of the tool; others have `tool_timeout`.
    pub(crate) tool_timeouts: BTreeMap<String, Duration>,
    pub(crate) permission_timeout: Duration,
    pub(crate) stop_grace: Duration,
    pub(crate) exit_grace: Duration,
    pub(crate) stderr_lines: u32,
    pub(crate) output_bytes: u64,
    /// What programs of tools may read besides; relative to the home.
    pub(crate) home_read: Vec<String>,
    /// Whether a conversation that Baton's end cut short is gone on with.
    pub(crate) resume: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ci {
    /// A program and its arguments; a text of the configuration is `sh -c` and the text.
    pub(crate) command: Option<Vec<String>>,
    pub(crate) timeout: Duration,
    pub(crate) on_failure: OnFailure,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notify {
    pub(crate) command: Option<Vec<String>>,
    pub(crate) webhook: Option<Webhook>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Webhook {
    pub(crate) url: String,
    /// The variable that holds the secret.
    pub(crate) secret_env: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) listen: String,
    pub(crate) hosts: Vec<String>,
    pub(crate) tls: Option<Tls>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tls {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Telemetry {
    pub(crate) otlp_endpoint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Store {
    /// `None`: embedded, in the data directory.
    pub(crate) url: Option<String>,
}

/// What guarded tasks have to observe, and which tasks are guarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Whether new tasks are guarded without being asked to.
    pub(crate) guarded: bool,
    /// The profile, with what the configuration changes of it.
    pub(crate) rules: guard::Policy,
}

/// Declares an enum of words that stand in the table.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident $text:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name { $($variant),* }

        impl $name {
            fn of(text: &str) -> $name {
                match text {
                    $($text => $name::$variant,)*
                    _ => unreachable!("the table does not let {text:?} through"),
                }
            }
        }
    )*};
}

words! {
    /// Where a failed CI leads.
    OnFailure { Block "block", Rework "rework" }
    /// How what a program prints is understood.
    ExecProfile { Claude "claude", Codex "codex", Gemini "gemini", Plain "plain" }
    Api { OpenAi "openai", Anthropic "anthropic" }
    Workspace { Shared "shared", Worktree "worktree" }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Agent {
    pub(crate) harness: Harness,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) env_pass: Vec<String>,
    pub(crate) mode: Option<String>,
    pub(crate) fs: bool,
    pub(crate) terminal: bool,
    pub(crate) mcp: bool,
    pub(crate) roles: Vec<String>,
    pub(crate) exit_protocol: bool,
    /// `None`: as many as there may be in all.
    pub(crate) max_sessions: Option<u32>,
    pub(crate) workspace: Workspace,
    pub(crate) deadlines: Deadlines,
}

/// How an agent is driven, with what only that needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Harness {
    Acp { command: Vec<String> },
    Llm { api: Api, base_url: Option<String>, model: String, api_key_env: Option<String> },
    Exec { command: Vec<String>, profile: ExecProfile },
    Mock,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deadlines {
    pub(crate) handshake: Duration,
    pub(crate) inactivity: Duration,
    pub(crate) cancel: Duration,
    pub(crate) exit: Duration,
}

impl Resolved {
    /// The typed result.
    pub(crate) fn settings(&self) -> Settings {
        let section = |name: &str| Reader(&self.sections[name]);
        let (scheduler, session, ci, notify) =
            (section("scheduler"), section("session"), section("ci"), section("notify"));
        let (ledger, server, telemetry, store) =
            (section("ledger"), section("server"), section("telemetry"), section("store"));
        let (team, policy) = (section("team"), section("policy"));
        Settings {
            scheduler: Scheduler {
                poll: scheduler.duration("poll"),
                max_concurrent: scheduler.small("max_concurrent"),
                lease_ttl: scheduler.duration("lease_ttl"),
                heartbeat_ttl: scheduler.duration("heartbeat_ttl"),
                max_attempts: scheduler.small("max_attempts"),
            },
            session: Session {
                llm_timeout: session.duration("llm_timeout"),
                tool_timeout: session.duration("tool_timeout"),
                tool_timeouts: session.map("tool_timeouts", as_duration),
                permission_timeout: session.duration("permission_timeout"),
                stop_grace: session.duration("stop_grace"),
                exit_grace: session.duration("exit_grace"),
                stderr_lines: session.small("stderr_lines"),
                output_bytes: session.integer("output_bytes"),
                home_read: session.one("home_read", as_list),
                resume: session.bool("resume"),
            },
            ci: Ci {
                command: ci.optional("command", as_command),
                timeout: ci.duration("timeout"),
                on_failure: OnFailure::of(&ci.text("on_failure")),
            },
            notify: Notify {
                command: notify.optional("command", as_command),
                webhook: notify
                    .optional("webhook.url", as_text)
                    .map(|url| Webhook { url, secret_env: notify.text("webhook.secret_env") }),
            },
            ledger: Options {
                durability: ledger.one("durability", |value| Durability::parse(&as_text(value)?)),
                segment_bytes: ledger.integer("segment_bytes"),
                checkpoint_every: ledger.integer("checkpoint_every"),
                ..Options::default()
            },
            server: Server {
                listen: server.text("listen"),
                hosts: server.one("hosts", as_list),
                tls: server
                    .path("tls.cert")
                    .and_then(|cert| Some(Tls { cert, key: server.path("tls.key")? })),
            },
            telemetry: Telemetry { otlp_endpoint: telemetry.optional("otlp_endpoint", as_text) },
            store: Store { url: store.optional("url", as_text) },
            team: TeamNames {
                planner: team.optional("planner", as_agent),
                executor: team.optional("executor", as_agent),
                critic: team.optional("critic", as_agent),
                auditor: team.optional("auditor", as_agent),
            },
            policy: Policy { guarded: policy.bool("guarded"), rules: rules(&policy) },
            agents: self.agents().map(|(name, values)| (name.clone(), agent(&Reader(values)))).collect(),
        }
    }
}

/// The profile, with what stands beside it.
fn rules(of: &Reader<'_>) -> guard::Policy {
    let profile = guard::Policy::of(known(&of.text("profile")));
    let or = |key: &str, profile: u32| of.optional(key, as_small).unwrap_or(profile);
    let mut tool_risks = profile.tool_risks;
    tool_risks.extend(of.map("tool_risks", as_known));
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    guard::Policy {
        risk_threshold: of.optional("risk_threshold", as_known).unwrap_or(profile.risk_threshold),
        tool_risks,
        min_evidence: or("min_evidence", profile.min_evidence),
        open_disputes: of.optional("open_disputes", as_known).unwrap_or(profile.open_disputes),
        critics: match of.optional("critics", as_list) {
            Some(list) => list.iter().map(|text| known(text)).collect(),
            None => profile.critics,
        },
        approvals: or("approvals", profile.approvals),
        max_fallbacks: or("max_fallbacks", profile.max_fallbacks),
        budgets: guard::Budgets {
            wall_clock_ms: of.optional("budgets.wall_clock", as_duration).map(milliseconds),
            tool_calls: of.optional("budgets.tool_calls", as_integer),
            tokens: of.optional("budgets.tokens", as_integer),
        },
        ..profile
    }
}

/// A word of the rules, which the table has let through.
fn known<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| unreachable!("the table does not let {text:?} through"))
}

fn agent(of: &Reader<'_>) -> Agent {
    let harness = match of.text("harness").as_str() {
        "acp" => Harness::Acp { command: of.one("command", as_list) },
        "llm" => Harness::Llm {
            api: Api::of(&of.text("api")),
            base_url: of.optional("base_url", as_text),
            model: of.text("model"),
            api_key_env: of.optional("api_key_env", as_text),
        },
        "exec" => Harness::Exec {
            command: of.one("command", as_list),
            profile: ExecProfile::of(&of.text("profile")),
        },
        _ => Harness::Mock,
    };
    Agent {
        harness,
        env: of.map("env", as_text),
        env_pass: of.one("env_pass", as_list),
        mode: of.optional("mode", as_text),
        fs: of.bool("fs"),
        terminal: of.bool("terminal"),
        mcp: of.bool("mcp"),
        roles: of.one("roles", as_list),
        exit_protocol: of.bool("exit_protocol"),
        max_sessions: of.optional("max_sessions", as_small),
        workspace: Workspace::of(&of.text("workspace")),
        deadlines: Deadlines {
            handshake: of.duration("deadlines.handshake"),
            inactivity: of.duration("deadlines.inactivity"),
            cancel: of.duration("deadlines.cancel"),
            exit: of.duration("deadlines.exit"),
        },
    }
}

/// Takes values out of a section. That each key is there and of its kind is what the table and the checks see to.
struct Reader<'a>(&'a Values);

impl Reader<'_> {
    fn optional<T>(&self, key: &str, take: fn(&Value) -> Option<T>) -> Option<T> {
        let setting = self.0.get(key)?;
        let taken = take(&setting.value);
        Some(taken.unwrap_or_else(|| unreachable!("the table gives {key} another kind")))
    }

    fn one<T>(&self, key: &str, take: fn(&Value) -> Option<T>) -> T {
        self.optional(key, take).unwrap_or_else(|| unreachable!("the table or a check gives {key} a value"))
    }

    fn duration(&self, key: &str) -> Duration {
        self.one(key, as_duration)
    }

    fn small(&self, key: &str) -> u32 {
        self.one(key, as_small)
    }

    fn integer(&self, key: &str) -> u64 {
        self.one(key, as_integer)
    }

    fn text(&self, key: &str) -> String {
        self.one(key, as_text)
    }

    /// A path in a file starts where the file is, any other where the command was typed.
    fn path(&self, key: &str) -> Option<PathBuf> {
        let text = self.optional(key, as_text)?;
        Some(match self.0.get(key).map(|setting| &setting.origin) {
            Some(Origin::File { source, .. }) => source.resolve(&text),
            _ => text.into(),
        })
    }

    fn bool(&self, key: &str) -> bool {
        self.one(key, |value| if let Value::Bool(given) = value { Some(*given) } else { None })
    }

    fn map<T>(&self, key: &str, take: fn(&Value) -> Option<T>) -> BTreeMap<String, T> {
        let Some(Value::Map(map)) = self.0.get(key).map(|setting| &setting.value) else {
            return BTreeMap::new();
        };
        map.iter().filter_map(|(name, value)| Some((name.clone(), take(value)?))).collect()
    }
}

fn as_duration(value: &Value) -> Option<Duration> {
    if let Value::Duration(duration) = value { Some(*duration) } else { None }
}

fn as_integer(value: &Value) -> Option<u64> {
    if let Value::Integer(number) = value { u64::try_from(*number).ok() } else { None }
}

fn as_small(value: &Value) -> Option<u32> {
    as_integer(value).and_then(|number| u32::try_from(number).ok())
}

fn as_text(value: &Value) -> Option<String> {
    if let Value::Text(text) = value { Some(text.clone()) } else { None }
}

fn as_list(value: &Value) -> Option<Vec<String>> {
    if let Value::List(items) = value { Some(items.clone()) } else { None }
}

fn as_agent(value: &Value) -> Option<AgentName> {
    as_text(value)?.parse().ok()
}

fn as_known<T: std::str::FromStr>(value: &Value) -> Option<T> {
    as_text(value).map(|text| known(&text))
}

fn as_command(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Shell(text) => Some(vec!["sh".to_owned(), "-c".to_owned(), text.clone()]),
        _ => as_list(value),
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
