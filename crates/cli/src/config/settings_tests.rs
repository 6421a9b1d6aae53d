//! What is built in, and what a full file gives.

use baton_core::guard::{Critic, Disputes, Profile, Risk};

use super::*;
use crate::config::of_text;

fn settings(text: &str) -> Settings {
    of_text(text).unwrap()
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn what_is_built_in_is_what_the_documents_say() {
    let built_in = settings("");
    assert_eq!(built_in.ledger, Options::default());
    assert_eq!(
        built_in.scheduler,
        Scheduler {
            poll: MINUTE / 2,
            max_concurrent: 4,
            lease_ttl: 10 * MINUTE,
            heartbeat_ttl: 5 * MINUTE,
            max_attempts: 3,
        }
    );
    assert_eq!(
        built_in.session,
        Session {
            llm_timeout: 2 * MINUTE,
            tool_timeout: 5 * MINUTE,
            tool_timeouts: BTreeMap::new(),
            permission_timeout: 5 * MINUTE,
            stop_grace: Duration::from_secs(2),
            exit_grace: Duration::from_secs(10),
            stderr_lines: 50,
            output_bytes: 256 << 10,
            home_read: Vec::new(),
            resume: false,
        }
    );
    assert_eq!(built_in.ci, Ci { command: None, timeout: 30 * MINUTE, on_failure: OnFailure::Block });
    assert_eq!(built_in.notify, Notify { command: None, webhook: None });
    assert_eq!(built_in.server, Server { listen: "127.0.0.1:7433".into(), hosts: Vec::new(), tls: None });
    assert_eq!((built_in.store.url, built_in.telemetry.otlp_endpoint), (None, None));
    assert_eq!(built_in.policy, Policy { guarded: false, rules: guard::Policy::of(Profile::Default) });
    let names: Vec<&str> = built_in.agents.keys().map(AgentName::as_str).collect();
    assert_eq!(names, ["mock"]);
    let mock = &built_in.agents[&"mock".parse().unwrap()];
    assert_eq!((&mock.harness, mock.workspace, mock.mcp), (&Harness::Mock, Workspace::Shared, true));
}

#[test]
fn paths_in_a_file_start_where_the_file_is() {
    let source = crate::config::source::Source::new("/d/.baton/baton.toml", "");
    assert_eq!(source.resolve("tls/cert.pem"), PathBuf::from("/d/.baton/tls/cert.pem"));
    assert_eq!(source.resolve("/etc/cert.pem"), PathBuf::from("/etc/cert.pem"));
}

#[test]
fn a_full_file_is_taken_over_whole() {
    let full = settings(include_str!("full.toml"));
    assert_eq!(full.session.tool_timeouts, BTreeMap::from([("bash".to_owned(), 10 * MINUTE)]));
    assert_eq!(full.session.home_read, [".cargo", "/srv/data"]);
    let sh = |text: &str| Some(vec!["sh".to_owned(), "-c".to_owned(), text.to_owned()]);
    assert_eq!(full.ci, Ci { command: sh("make test"), timeout: 90 * MINUTE, on_failure: OnFailure::Rework });
    let webhook = Webhook { url: "https://example.org/hook".into(), secret_env: "HOOK_SECRET".into() };
    let command = Some(vec!["notify-send".to_owned(), "Baton".to_owned()]);
    assert_eq!(full.notify, Notify { command, webhook: Some(webhook) });
    assert_eq!(full.ledger.durability, Durability::Interval);
    assert_eq!((full.ledger.segment_bytes, full.ledger.checkpoint_every), (1 << 20, 16));
    assert_eq!(full.server.tls, Some(Tls { cert: "cert.pem".into(), key: "key.pem".into() }));
    assert_eq!(full.team.planner.as_ref().map(AgentName::as_str), Some("local"));
    assert_eq!(
        full.policy,
        Policy {
            guarded: true,
            rules: guard::Policy {
                risk_threshold: Risk::Medium,
                tool_risks: guard::Policy::of(Profile::Strict).tool_risks,
                min_evidence: 2,
                open_disputes: Disputes::Fail,
                critics: vec![Critic::Person, Critic::Rules],
                approvals: 2,
                max_fallbacks: 0,
                budgets: guard::Budgets {
                    wall_clock_ms: Some(3_600_000),
                    tool_calls: Some(100),
                    tokens: Some(1_000_000),
                },
                ..guard::Policy::of(Profile::Strict)
            },
        }
    );
    let agent = |name: &str| &full.agents[&name.parse().unwrap()];
    let command = vec!["claude".to_owned()];
    assert_eq!(agent("claude").harness, Harness::Exec { command, profile: ExecProfile::Claude });
    assert_eq!(
        agent("local").harness,
        Harness::Llm {
            api: Api::OpenAi,
            base_url: Some("http://localhost:8080/v1".into()),
            model: "qwen".into(),
            api_key_env: Some("LOCAL_KEY".into()),
        }
    );
    let opencode = Agent {
        harness: Harness::Acp { command: vec!["opencode".into(), "acp".into()] },
        env: BTreeMap::from([("LANG".to_owned(), "C.UTF-8".to_owned())]),
        env_pass: vec!["OPENCODE_KEY".into()],
        mode: Some("build".into()),
        fs: true,
        terminal: true,
        mcp: false,
        roles: vec!["executor".into(), "backend".into()],
        exit_protocol: true,
        max_sessions: Some(2),
        workspace: Workspace::Worktree,
        deadlines: Deadlines {
            handshake: MINUTE,
            inactivity: 20 * MINUTE,
            cancel: Duration::from_secs(5),
            exit: Duration::from_millis(1500),
        },
    };
    assert_eq!(*agent("open.code"), opencode);
    assert!(full.agents.contains_key(&"mock".parse().unwrap()));
}
