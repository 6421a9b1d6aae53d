//! Agents that die under `baton run` and `baton serve`: what a script sees of it, and that it costs Baton no memory.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::Serving;
use crate::support::{Ended, Home, until};
use crate::task_support::text;

/// Beyond what it needs in idleness, whatever agents write.
const MEMORY_MAX: u64 = 64 << 20;

/// A home whose mock agent may not be silent for long, and with agents of other kinds.
fn home(agents: &str) -> Home {
    let home = Home::with_signals();
    let short = "[agents.mock]\ndeadlines = { inactivity = \"700ms\" }\n";
    fs::write(home.data().join("baton.toml"), format!("{short}{agents}")).unwrap();
    home
}

/// Runs a prompt and gives the last line, after looking at the session before and after a restart.
#[track_caller]
fn run(home: &Home, agent: &str, prompt: &str, exit: i32) -> Value {
    let ended = home.run(&["run", prompt, "--agent", agent, "--json"]);
    ended.expect(exit);
    let last = last_line(&ended);
    let session = text(&last["sessionId"]);
    let show = |home: &Home| {
        let shown = home.run(&["session", "show", &session, "--json"]);
        shown.expect(0);
        shown.stdout
    };
    let before = show(home);
    let shown: Value = serde_json::from_str(&before).unwrap();
    assert_eq!((&shown["terminationInfo"], &shown["state"]), (&last["terminationInfo"], &json!("stopped")));
    Serving::start_with(home, &["--no-dispatch"]).stop();
    assert_eq!(show(home), before, "the same before and after");
    last
}

#[track_caller]
fn last_line(ended: &Ended) -> Value {
    let last: Value = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&last["type"], &last["v"]), (&json!("run.ended"), &json!(1)), "{last}");
    last
}

/// What a script finds of the task of a run.
fn task(home: &Home, last: &Value) -> (String, u64, bool) {
    let task = home.show(&text(&last["taskId"]));
    (text(&task["status"]), task["attempts"].as_u64().unwrap_or(0), task.get("notBefore").is_some())
}

#[test]
fn a_script_sees_how_an_agent_died() {
    let home = home("[agents.gone]\nharness = \"acp\"\ncommand = [\"no-such-agent\"]\n");
    let last = run(&home, "mock", "crash 3 120", 6);
    let end = &last["terminationInfo"];
    assert_eq!(
        (&last["outcome"], &end["exit_code"], &end["cause"]),
        (&json!("failed"), &json!(3), &json!("crash"))
    );
    let stderr = &end["stderr"];
    assert_eq!((&stderr["truncated"], &stderr["total_lines"]), (&json!(true), &json!(120)), "{stderr}");
    assert!(text(&stderr["head"]).ends_with("line 50 of 120"), "{stderr}");
    assert!(text(&stderr["tail"]).starts_with("mock: crash line 71 of 120\n"), "{stderr}");
    assert_eq!(task(&home, &last), ("ready".into(), 1, true));

    let last = run(&home, "mock", "signal", 6);
    assert_eq!(last["terminationInfo"]["signal"], json!({"number": 9, "name": "SIGKILL"}), "{last}");
    assert_eq!(task(&home, &last), ("ready".into(), 1, true));

    let last = run(&home, "mock", "fork", 6);
    assert_eq!(last["terminationInfo"]["exit_code"], 3, "{last}");
    assert_eq!(living(&text(&last["sessionId"])), [0; 0], "its child is gone");
    assert_eq!(task(&home, &last), ("ready".into(), 1, true));

    let began = Instant::now();
    let last = run(&home, "mock", "hang", 6);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(last["terminationInfo"]["cause"], "timeout", "{last}");
    assert!(text(&last["why"]).contains("silent in the turn for too long"), "{last}");
    assert_eq!(task(&home, &last), ("ready".into(), 1, true));

    let last = run(&home, "mock", "limit", 6);
    assert_eq!((&last["outcome"], &last["terminationInfo"]["cause"]), (&json!("limited"), &json!("quota")));
    assert_eq!(task(&home, &last), ("ready".into(), 0, true), "it waits, and no attempt is counted");
    assert_eq!(home.show(&text(&last["taskId"]))["notBefore"], last["terminationInfo"]["resets_at"]);

    let last = run(&home, "mock", "garbage", 0);
    assert_eq!(last["outcome"], "needs_review", "{last}");
    assert_eq!(task(&home, &last).0, "review");

    let last = run(&home, "mock", "exit-signal IMPLEMENTATION", 0);
    assert_eq!(
        (&last["outcome"], &last["terminationInfo"]["reason"]),
        (&json!("done"), &json!("terminated"))
    );
    assert_eq!(task(&home, &last).1, 0);

    let last = run(&home, "gone", "whatever", 6);
    let end = &last["terminationInfo"];
    assert_eq!((&end["cause"], &end["terminated_by"]), (&json!("spawn"), &json!("daemon")), "{last}");
    assert_eq!(last["why"], "the agent could not be started: no-such-agent: not found");
    assert_eq!(task(&home, &last).0, "deadletter", "another attempt would fail in the same way");
    home.verifies();
}

/// Processes that live and belong to a session.
pub(crate) fn living(session: &str) -> Vec<u32> {
    let wanted = format!("BATON_SESSION_ID={session}");
    let entries = fs::read_dir("/proc").unwrap().map_while(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_it = |pid: &u32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|part| part == wanted.as_bytes()))
    };
    numbers.filter(has_it).collect()
}

#[test]
fn a_hook_does_not_outlive_the_agent_that_it_checks() {
    let dies = "case \"$line\" in *initialize*) ok '{\"protocolVersion\":1,\"agentCapabilities\":{},\"authMethods\":[]}' ;; *session/new*) ok '{\"sessionId\":\"s\"}' ;; \
        *session/prompt*) tool pending; tool completed; ok '{\"stopReason\":\"end_turn\"}'; read -r go < go; exit 7 ;; esac";
    let home = home("[agents.frail]\nharness = \"acp\"\ncommand = [\"sh\", \"agent.sh\"]\n");
    fs::write(home.work().join("agent.sh"), agent(dies)).unwrap();
    let hook = json!({"hooks": [{
        "name": "slow", "command": ["sh", "-c", "trap '' TERM; echo go > go; while :; do sleep 1000; done"],
        "tool_filter": {"type": "any_mutating"}, "failure_policy": {"type": "fail_session"},
    }]});
    fs::write(home.data().join("hooks.json"), hook.to_string()).unwrap();
    assert!(Command::new("mkfifo").arg(home.work().join("go")).status().unwrap().success());
    let ended = home.run(&["run", "write", "--agent", "frail", "--json"]);
    let last = last_line(ended.expect(6));
    assert_eq!(last["why"], "the agent exited with code 7 while a hook ran", "{last}");
    let session = text(&last["sessionId"]);
    let shown = home.json(&["session", "show", &session]);
    assert_eq!(shown["hookRuns"][0]["status"], "canceled", "{shown}");
    until("the hook is gone", || living(&session).is_empty());
}

/// A small agent that speaks the protocol: `ok RESULT` answers a line.
fn agent(answers: &str) -> String {
    format!(
        r#"
tool() {{ printf '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"tool_call","toolCallId":"c","title":"write_file","kind":"edit","status":"%s"}}}}}}\n' "$1"; }}
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  ok() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
  {answers}
done
"#
    )
}

/// A number of bytes that the kernel has of a process.
fn memory(pid: u32, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    let number = line.trim_start_matches(':').trim().trim_end_matches(" kB");
    number.parse::<u64>().unwrap() << 10
}

#[test]
fn whatever_agents_write_costs_baton_little_memory() {
    let line = "head -c 40000000 /dev/zero | tr '\\0' x; echo";
    let flood = "yes 0123456789 | head -c 200000000 >&2";
    let many = "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 4000000 /dev/zero | tr '\\0' x; echo; done";
    // Messages as long as they may be, each the output of a tool; and one that is long by its values.
    let update = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","#;
    let long = format!(
        r#"for n in 1 2 3 4 5 6; do printf '%s"content":[{{"type":"content","content":{{"type":"text","text":"' '{update}'; head -c 8000000 /dev/zero | tr '\0' x; echo '"}}}}]}}}}}}'; done; ok '{{"stopReason":"end_turn"}}'"#
    );
    let deep = format!(
        r#"printf '%s"rawInput":[0' '{update}'; yes ,0 | tr -d '\n' | head -c 7900000; echo ']}}}}}}'"#
    );
    // Files that are asked for faster than they are answered.
    let reads = r#"head -c 1900000 /dev/zero | tr '\0' x > big; n=0; while [ $n -lt 100 ]; do printf '{"jsonrpc":"2.0","id":%s,"method":"fs/read_text_file","params":{"sessionId":"s","path":"%s/big"}}\n' $n "$PWD"; n=$((n+1)); done; ok '{"stopReason":"end_turn"}'; exec cat > /dev/null"#;
    let exec = |name: &str, what: &str| {
        format!(
            "[agents.{name}]\nharness = \"exec\"\ncommand = [\"sh\", \"-c\", '''cat > /dev/null; {what}''']\n"
        )
    };
    let acp = |name: &str| {
        format!("[agents.{name}]\nharness = \"acp\"\nfs = true\ncommand = [\"sh\", \"{name}.sh\"]\n")
    };
    let agents = [exec("line", line), exec("flood", flood), exec("many", many)];
    let agents = agents.into_iter().chain(["talker", "long", "deep", "reads"].map(acp)).collect::<String>();
    let home = Home::new();
    for (name, what) in [("talker", line), ("long", &long), ("deep", &deep), ("reads", reads)] {
        let speaks = format!(
            "case \"$line\" in *initialize*) ok '{{\"protocolVersion\":1,\"agentCapabilities\":{{}},\"authMethods\":[]}}' ;; *session/new*) ok '{{\"sessionId\":\"s\"}}' ;; *session/prompt*) {what} ;; esac"
        );
        fs::write(home.work().join(format!("{name}.sh")), agent(&speaks)).unwrap();
    }
    fs::write(home.data().join("baton.toml"), agents).unwrap();
    let serving = Serving::start_with(&home, &["--no-dispatch"]);
    let turn = |agent: &str, prompt: &str| {
        let id = text(&home.json(&["session", "start", "--agent", agent])["id"]);
        home.run(&["session", "send", &id, prompt]).expect(0);
        // The end is told a moment before it is kept.
        until("the end of the turn", || {
            let shown = home.json(&["session", "show", &id]);
            shown["state"] == "ready" || shown.get("terminationInfo").is_some()
        });
        let shown = home.json(&["session", "show", &id]);
        if shown["state"] == "ready" {
            home.run(&["session", "stop", &id]).expect(0);
        }
        shown
    };
    turn("mock", "hello");
    let pid = serving.pid();
    // Counted anew from here.
    fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
    let idle = memory(pid, "VmRSS");
    let floods = "flood ".repeat(25);
    for agent in ["mock", "flood", "line", "talker", "many", "long", "deep", "reads"] {
        let prompt = if agent == "mock" { &floods } else { "go" };
        let shown = turn(agent, prompt);
        let most = memory(pid, "VmHWM").saturating_sub(idle);
        eprintln!("{agent}: {} MiB more than in idleness", most >> 20);
        assert!(most < MEMORY_MAX, "{agent}: {most} bytes more than in idleness");
        let errors = home.data().join("sessions").join(text(&shown["id"])).join("stderr.log.1");
        assert_eq!(errors.exists(), matches!(agent, "mock" | "flood"), "{agent}: it did write that much");
        let cause = &shown["terminationInfo"]["cause"];
        assert_eq!(cause == "protocol", matches!(agent, "talker" | "deep"), "{agent}: {shown}");
    }
    serving.stop();
}
