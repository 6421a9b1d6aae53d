//! `baton run`: one attempt at one task, with every kind of agent, and what comes of it.

use std::fs;
use std::process::Command;

use baton_testkit::model_server::ModelServer;
use serde_json::{Value, json};

use crate::serve::Serving;
use crate::support::{Ended, Home, until};

/// Adds to the configuration.
pub(crate) fn configure(home: &Home, text: &str) {
    let path = home.data().join("baton.toml");
    let before = fs::read_to_string(&path).unwrap();
    fs::write(path, format!("{before}\n{text}\n")).unwrap();
}

/// The objects that a command printed, and the last one.
pub(crate) fn lines(ended: &Ended) -> (Vec<Value>, Value) {
    let all: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).expect("one object per line")).collect();
    let last = all.last().cloned().unwrap_or_else(|| panic!("nothing was printed: {ended:?}"));
    (all, last)
}

#[track_caller]
fn ran(home: &Home, args: &[&str], code: i32, outcome: &str) -> (Vec<Value>, Value) {
    let ended = home.run(&[&["run", "--json"], args].concat());
    let (all, last) = lines(&ended);
    assert_eq!((ended.code, &last["outcome"]), (Some(code), &json!(outcome)), "{ended:?}");
    assert_eq!(last["type"], "run.ended");
    assert!(last["taskId"].is_string() && last["sessionId"].is_string(), "{last}");
    (all, last)
}

fn new_task(home: &Home, args: &[&str]) -> String {
    let made = home.run(&[&["task", "new", "--json"], args].concat());
    made.value(0)["id"].as_str().unwrap().to_owned()
}

#[test]
fn each_outcome_has_its_exit_code_and_its_status() {
    let home = Home::new();
    for (prompt, code, outcome, status) in [
        ("complete done", 0, "done", "review"),
        ("complete partial", 0, "partial", "review"),
        ("complete needs_review", 0, "needs_review", "review"),
        ("complete blocked", 4, "blocked", "blocked"),
        ("just words", 0, "needs_review", "review"),
        ("crash 3 2", 6, "failed", "ready"),
    ] {
        let (_, last) = ran(&home, &[prompt, "--agent", "mock"], code, outcome);
        let task = last["taskId"].as_str().unwrap();
        assert_eq!(home.status(task), status, "{prompt}");
    }
    home.verifies();
    home.replays();
}

#[test]
fn what_passes_by_is_shown_in_the_order_of_the_wire() {
    let home = Home::new();
    let (all, _) = ran(&home, &["one two three", "--agent", "mock"], 0, "needs_review");
    let of =
        |channel: &str| all.iter().filter(|line| line["channel"] == channel).cloned().collect::<Vec<_>>();
    let states: Vec<String> = of("agent:state_event")
        .iter()
        .filter(|event| event["type"] == "state_changed")
        .map(|event| event["to"].as_str().unwrap().to_owned())
        .take(5)
        .collect();
    assert_eq!(states, ["starting", "ready", "calling_llm", "processing_response", "ready"]);
    let stream = of("agent:stream_event");
    let first = stream[0]["streamId"].clone();
    let text: String = stream
        .iter()
        .filter(|event| event["type"] == "text_delta" && event["streamId"] == first)
        .map(|event| event["payload"]["text"].as_str().unwrap())
        .collect();
    assert_eq!(text.trim(), "one two three");
    let seqs: Vec<u64> = stream
        .iter()
        .filter(|event| event["streamId"] == first)
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "without a gap");
}

#[test]
fn permissions_are_denied_where_nobody_is_there_and_allowed_with_yes() {
    let home = Home::new();
    let answer = |args: &[&str]| {
        let (all, _) = ran(&home, args, 0, "needs_review");
        let resolved = all.iter().find(|line| line["type"] == "permission_resolved").cloned();
        let tool = all.iter().rfind(|line| line["toolName"] == "run_command").cloned().unwrap();
        (resolved.unwrap()["answer"].clone(), tool["status"].clone(), tool["error"].clone())
    };
    let (answered, status, error) = answer(&["permission", "--agent", "mock"]);
    assert_eq!((answered, status, error), (json!("deny"), json!("canceled"), json!("denied")));
    let (answered, status, _) = answer(&["permission", "--agent", "mock", "--yes"]);
    assert_eq!((answered, status), (json!("allow"), json!("succeeded")));
}

#[test]
fn a_task_that_is_there_is_worked_on_and_the_same_with_a_server() {
    let home = Home::new();
    let task = new_task(&home, &["complete done", "--agent", "mock", "--ready"]);
    ran(&home, &["--task", &task], 0, "done");
    assert_eq!(home.status(&task), "review");
    let serving = Serving::start_with(&home, &["--no-dispatch"]);
    let task = new_task(&home, &["complete done", "--agent", "mock", "--ready"]);
    ran(&home, &["--task", &task], 0, "done");
    assert_eq!(home.status(&task), "review");
    assert_eq!(serving.stop(), "");
    home.verifies();
}

#[test]
fn a_server_hands_ready_tasks_to_their_agents_by_itself() {
    let home = Home::new();
    let serving = Serving::start(&home);
    let first = new_task(&home, &["complete done", "--agent", "mock", "--ready"]);
    let second = new_task(&home, &["complete partial", "--agent", "mock", "--ready"]);
    let nobodys = new_task(&home, &["echo", "--ready"]);
    until("both are worked on", || home.status(&first) == "review" && home.status(&second) == "review");
    assert_eq!(home.status(&nobodys), "ready", "the mock does only what it is asked by name");
    serving.stop();
    home.verifies();
    home.replays();
}

#[test]
fn who_should_do_it_must_be_clear() {
    let home = Home::new();
    home.run(&["run", "x"]).refused(3, "A002", "no agent is configured");
    home.run(&["run", "x", "--agent", "mok"]).refused(3, "A002", "did you mean `mock`");
    home.run(&["run", "--task", "TASK-2020-01-01-001"]).refused(3, "T001", "TASK-2020-01-01-001");
    home.run(&["run"]).expect(2);
    assert!(home.json(&["task", "ls"])["tasks"].as_array().unwrap().is_empty(), "no task was made");
}

#[test]
fn one_at_a_time_works_in_a_shared_workspace() {
    let home = Home::new();
    let _serving = Serving::start_with(&home, &["--no-dispatch"]);
    let hanging = new_task(&home, &["hang", "--agent", "mock", "--ready"]);
    let mut run = home.command(&["run", "--task", &hanging]).spawn().unwrap();
    until("it hangs", || home.run(&["session", "ls", "--live", "--json"]).stdout.contains("calling_llm"));
    let refused = home.run(&["run", "echo", "--agent", "mock"]);
    refused.refused(5, "A006", "one task at a time");
    let made = home.json(&["task", "ls", "--status", "ready"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    assert!(refused.stderr.contains(&format!("{made} was made for it, and waits")), "{refused:?}");
    let session = home.json(&["session", "ls", "--live"])["sessions"][0]["id"].as_str().unwrap().to_owned();
    home.run(&["session", "stop", &session]).expect(0);
    assert_eq!(crate::support::wait(&mut run).code(), Some(130), "a person stopped it");
    assert_eq!(home.status(&hanging), "ready");
    let shown = home.show(&hanging);
    assert_eq!(shown["attempts"], 0, "which is no failed attempt");
    assert!(shown["notBefore"].is_string(), "and nobody is handed it right away: {shown}");
}

#[test]
fn a_hook_that_fails_is_a_failed_attempt_that_names_it() {
    let home = Home::new();
    let hooks =
        json!({"hooks": [{"name": "tests", "command": ["sh", "-c", "cat > seen.json; echo red; exit 7"]}]});
    fs::write(home.data().join("hooks.json"), hooks.to_string()).unwrap();
    let (all, last) = ran(&home, &["write", "--agent", "mock", "--yes"], 6, "failed");
    assert!(last["why"].as_str().unwrap().contains("tests"), "{last}");
    let hook = all.iter().rfind(|line| line["type"] == "hook_lifecycle").unwrap();
    assert_eq!((&hook["status"], &hook["output"]), (&json!("failed"), &json!("red\n")));
    let seen: Value = serde_json::from_slice(&fs::read(home.work().join("seen.json")).unwrap()).unwrap();
    assert_eq!(seen["sessionId"], last["sessionId"]);
    assert_eq!(seen["toolRuns"][0]["toolName"], "write_file");
    let task = last["taskId"].as_str().unwrap();
    assert_eq!((home.status(task).as_str(), &home.show(task)["attempts"]), ("ready", &json!(1)));
}

#[test]
fn hooks_that_do_not_read_are_told_of_and_off() {
    let home = Home::new();
    fs::write(home.data().join("hooks.json"), "{\"hooks\": [{}]}").unwrap();
    let (all, _) = ran(&home, &["write", "--agent", "mock", "--yes"], 0, "needs_review");
    let error = all.iter().find(|line| line["type"] == "session_error").unwrap();
    assert_eq!(error["code"], "hook_config_invalid", "{error}");
    assert!(!all.iter().any(|line| line["type"] == "hook_lifecycle"));
}

#[test]
fn a_model_works_with_baton_s_own_tools() {
    let home = Home::new().with_env("MODEL_KEY", "sk-very-secret");
    let server = ModelServer::start().unwrap();
    for (name, api) in [("gpt", "openai"), ("claude", "anthropic")] {
        let base = server.base_url();
        configure(
            &home,
            &format!(
                "[agents.{name}]\nharness = \"llm\"\napi = \"{api}\"\nmodel = \"fake-model\"\nbase_url = \"{base}\"\napi_key_env = \"MODEL_KEY\"\n"
            ),
        );
        let (all, _) = ran(&home, &[&format!("write {name}.txt hello"), "--agent", name], 0, "needs_review");
        assert_eq!(fs::read_to_string(home.work().join(format!("{name}.txt"))).unwrap().trim(), "hello");
        let tool = all.iter().rfind(|line| line["type"] == "tool_lifecycle").unwrap();
        assert_eq!((&tool["toolName"], &tool["status"]), (&json!("write_file"), &json!("succeeded")));
    }
    let seen = server.seen();
    let headers = format!("{:?}", seen.iter().map(|request| &request.headers).collect::<Vec<_>>());
    assert!(headers.contains("sk-very-secret"), "the server gets the key");
    let kept = Command::new("grep").args(["-r", "sk-very-secret"]).arg(home.data()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&kept.stdout), "", "and nobody else does");
    home.verifies();
}

#[test]
fn a_refusal_or_an_answer_that_is_cut_off_is_a_failed_attempt() {
    let home = Home::new();
    let server = ModelServer::start().unwrap();
    let base = server.base_url();
    configure(
        &home,
        &format!(
            "[agents.gpt]\nharness = \"llm\"\napi = \"openai\"\nmodel = \"fake-model\"\nbase_url = \"{base}\"\n"
        ),
    );
    for (stop, why) in [("content_filter", "refused to go on"), ("length", "was cut off")] {
        let (_, last) = ran(&home, &[&format!("stop {stop} so it goes"), "--agent", "gpt"], 6, "failed");
        assert!(last["why"].as_str().unwrap().contains(why), "{last}");
        let task = last["taskId"].as_str().unwrap();
        assert_eq!((home.status(task).as_str(), &home.show(task)["attempts"]), ("ready", &json!(1)));
    }
    home.verifies();
}

#[test]
fn a_command_that_ends_with_an_exit_signal_ends_its_phase() {
    let home = Home::with_signals();
    let signal = r#"{"protocol":"apm2_agent_exit","version":"1.0.0","phase_completed":"IMPLEMENTATION","exit_reason":"completed"}"#;
    fs::write(home.work().join("signal.json"), signal).unwrap();
    configure(
        &home,
        "[agents.sh]\nharness = \"exec\"\nexit_protocol = true\ncommand = [\"sh\", \"-c\", \"cat >/dev/null; echo working; cat signal.json\"]\n\
         [agents.mute]\nharness = \"exec\"\nexit_protocol = true\ncommand = [\"sh\", \"-c\", \"cat >/dev/null; echo working\"]\n",
    );
    let (_, last) = ran(&home, &["do it", "--agent", "sh"], 0, "done");
    let task = last["taskId"].as_str().unwrap();
    assert_eq!((home.phase(task).as_str(), home.status(task).as_str()), ("CI_PENDING", "review"));
    let (_, last) = ran(&home, &["do it", "--agent", "mute"], 6, "failed");
    assert_eq!(
        home.status(last["taskId"].as_str().unwrap()),
        "ready",
        "the missing signal is a failed attempt"
    );
}

#[test]
fn an_agent_s_own_process_never_acts_as_a_person() {
    let home = Home::new();
    let baton = env!("CARGO_BIN_EXE_baton");
    let script = format!(
        "cat >/dev/null; id=$BATON_TASK_ID; \
         {baton} task move $id cancelled --reason x >move.txt 2>&1; echo $? >>move.txt; \
         {baton} task approve $id >approve.txt 2>&1; echo $? >>approve.txt; \
         (setsid {baton} task reject $id --reason x) >reject.txt 2>&1; echo $? >>reject.txt; \
         {baton} agent add pwn -- sh >add.txt 2>&1; echo $? >>add.txt; \
         env -i HOME=$HOME PATH=$PATH BATON_DATA_DIR=$BATON_DATA_DIR BATON_STATE_DIR=$BATON_STATE_DIR \
         {baton} task approve $id >wiped.txt 2>&1; echo $? >>wiped.txt; \
         env -u BATON_SESSION_ID {baton} agent key evil --role critic >key.txt 2>&1; echo $? >>key.txt; \
         cp {baton} \"$(printf '\\377')\"; ./\"$(printf '\\377')\" task approve $id >named.txt 2>&1; echo $? >>named.txt; \
         BATON_SESSION_ID=$(ls $BATON_DATA_DIR/sessions | grep -v live | grep -v $BATON_SESSION_ID | head -n 1) \
         setsid -f {baton} task log $id 'by another' >other.txt 2>&1; \
         while [ ! -s other.txt ]; do :; done; \
         {baton} task log $id 'half done' >log.txt 2>&1; echo $? >>log.txt; \
         {baton} task show $id >show.txt 2>&1; echo $? >>show.txt"
    );
    fs::write(home.work().join("agent.sh"), script).unwrap();
    configure(&home, "[agents.sh]\nharness = \"exec\"\ncommand = [\"sh\", \"agent.sh\"]\n");
    // Another session, whose name it may try.
    ran(&home, &["complete done", "--agent", "mock"], 0, "done");
    let (_, last) = ran(&home, &["do it", "--agent", "sh"], 0, "needs_review");
    let said = |name: &str| fs::read_to_string(home.work().join(format!("{name}.txt"))).unwrap();
    assert!(said("other").contains("A005"), "{}", said("other"));
    for name in ["move", "approve", "reject", "key", "add", "wiped", "named"] {
        let said = said(name);
        assert!(said.contains("A005") && said.trim_end().ends_with('4'), "{name}: {said}");
    }
    for name in ["log", "show"] {
        assert!(said(name).trim_end().ends_with('0'), "{name}: {}", said(name));
    }
    let task = last["taskId"].as_str().unwrap();
    let log = home.last(task, "task.logged");
    assert_eq!(log["actor"]["agent"], "sh", "what it writes down, it writes under its own name: {log}");
}

#[test]
fn an_agent_that_nobody_watches_any_more_owns_nothing() {
    let home = Home::new();
    let (_, last) = ran(&home, &["complete done", "--agent", "mock"], 0, "done");
    let (task, session) = (last["taskId"].as_str().unwrap(), last["sessionId"].as_str().unwrap());
    let left = home.command(&["task", "approve", task]).env("BATON_SESSION_ID", session).spawn().unwrap();
    crate::support::finish(left, None).refused(4, "A005", "it cannot be told who gives this command");
    // One of another data directory says nothing here.
    let elsewhere = "sess_019b76da-addc-7101-8101-010101010102";
    let other = home.command(&["task", "approve", task]).env("BATON_SESSION_ID", elsewhere).spawn().unwrap();
    crate::support::finish(other, None).expect(0);
}

#[test]
fn an_agent_takes_no_more_places_than_it_needs() {
    let home = Home::new();
    let baton = env!("CARGO_BIN_EXE_baton");
    // Each waits for an input that never ends.
    let script = format!(
        "cat >/dev/null; mkfifo never; n=0; while [ $n -lt 40 ]; do {baton} send - <>never >>calls.txt 2>&1 & n=$((n+1)); done; \
         while [ $(grep -c A005 calls.txt) -lt 24 ]; do :; done; touch full; sleep 1000"
    );
    fs::write(home.work().join("agent.sh"), script).unwrap();
    configure(&home, "[agents.sh]\nharness = \"exec\"\ncommand = [\"sh\", \"agent.sh\"]\n");
    let mut run = home.command(&["run", "do it", "--agent", "sh"]).spawn().unwrap();
    until("it has what it gets", || home.work().join("full").exists());
    let session = home.json(&["session", "ls", "--live"])["sessions"][0]["id"].as_str().unwrap().to_owned();
    home.run(&["session", "stop", &session]).expect(0);
    assert_eq!(crate::support::wait(&mut run).code(), Some(130));
}

#[test]
fn what_an_agent_starts_does_not_outlive_its_session_nor_act_as_a_person() {
    let home = Home::new();
    let baton = env!("CARGO_BIN_EXE_baton");
    // The agent itself, with an environment that says nothing: it is known by its process.
    let wiped =
        "exec env -i HOME=$HOME PATH=$PATH BATON_DATA_DIR=$BATON_DATA_DIR BATON_STATE_DIR=$BATON_STATE_DIR";
    let script = format!(
        "cat >/dev/null; setsid sh -c 'sleep 300; : $BATON_SESSION_ID' >/dev/null 2>&1 & \
         {wiped} sh -c \"{baton} task approve $BATON_TASK_ID --all >wiped.txt 2>&1; echo \\$? >>wiped.txt\""
    );
    fs::write(home.work().join("agent.sh"), script).unwrap();
    configure(&home, "[agents.sh]\nharness = \"exec\"\ncommand = [\"sh\", \"agent.sh\"]\n");
    let (_, last) = ran(&home, &["do it", "--agent", "sh"], 0, "needs_review");
    let said = fs::read_to_string(home.work().join("wiped.txt")).unwrap();
    assert!(said.contains("A005") && said.trim_end().ends_with('4'), "{said}");
    let session = last["sessionId"].as_str().unwrap();
    let wanted = format!("BATON_SESSION_ID={session}");
    let left: Vec<String> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        })
        .collect();
    assert!(left.is_empty(), "still there: {left:?}");
}

#[test]
fn each_task_gets_a_worktree_of_its_own_that_keeps_unsaved_work() {
    let home = Home::new();
    let git = |args: &[&str]| {
        let done = Command::new("git").args(args).current_dir(home.work()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["-c", "user.email=a@example.org", "-c", "user.name=A", "commit", "-q", "--allow-empty", "-m", "a"]);
    configure(
        &home,
        "[agents.apart]\nharness = \"exec\"\nworkspace = \"worktree\"\ncommand = [\"sh\", \"-c\", \"cat > new.txt\"]\n",
    );
    let (_, last) = ran(&home, &["do it", "--agent", "apart"], 0, "needs_review");
    let task = last["taskId"].as_str().unwrap();
    let tree = home.path("work.worktrees").join(task);
    assert!(fs::read_to_string(tree.join("new.txt")).unwrap().starts_with("do it"));
    assert!(!home.work().join("new.txt").exists(), "the repository itself is untouched");
    assert_eq!(home.show(task)["worktree"], tree.to_str().unwrap());
    let shown = home.run(&["task", "show", task]).stdout;
    assert!(shown.contains(&format!("worktree    {}", tree.display())), "{shown}");
    home.run(&["task", "approve", task, "--all"]).expect(0);
    assert_eq!(home.status(task), "done");
    assert!(tree.join("new.txt").exists(), "what nobody committed is kept");
    // Whoever looks at the work does so where it was done.
    configure(
        &home,
        "[agents.maker]\nharness = \"mock\"\nworkspace = \"worktree\"\n\
         [agents.judge]\nharness = \"exec\"\ncommand = [\"sh\", \"-c\", \"cat; pwd; ls\"]\n",
    );
    let (_, last) = ran(&home, &["write complete done", "--agent", "maker"], 0, "done");
    let task = last["taskId"].as_str().unwrap();
    let looked = home.run(&["run", "--task", task, "--agent", "judge"]);
    let tree = home.path("work.worktrees").join(task);
    assert!(looked.stdout.contains(&format!("{}\nmock.txt", tree.display())), "{looked:?}");
    assert!(looked.stdout.contains("This is a review"), "{looked:?}");
}

#[test]
fn a_repository_that_git_would_wait_for_holds_up_nobody_else() {
    let home = Home::new().with_env("BATON_SCHEDULER_MAX_CONCURRENT", "1");
    let sh = |script: &str| {
        let done = Command::new("sh").args(["-c", script]).current_dir(home.work()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    sh("git init -q && git -c user.email=a@example.org -c user.name=A commit -q --allow-empty -m a");
    sh("rm .git/config && mkfifo .git/config");
    configure(&home, "[agents.apart]\nharness = \"mock\"\nworkspace = \"worktree\"\n[agents.mock]\n");
    let serving = Serving::start(&home);
    let stuck = new_task(&home, &["complete done", "--agent", "apart", "--ready"]);
    let other = new_task(&home, &["complete done", "--agent", "mock", "--ready"]);
    let began = std::time::Instant::now();
    until("the other is worked on", || home.status(&other) == "review");
    assert_eq!(home.status(&stuck), "ready");
    let said = serving.stop();
    assert!(began.elapsed() < std::time::Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(said.matches("is not a regular file").count(), 1, "{said}");
}

#[test]
fn a_model_commits_in_its_worktree_and_reads_of_the_home_what_is_configured() {
    let home = Home::new().with_env("BATON_SESSION_HOME_READ", "shown");
    for name in ["shown", "hidden"] {
        fs::create_dir_all(home.path("home").join(name)).unwrap();
        fs::write(home.path("home").join(name).join("file"), format!("{name} text\n")).unwrap();
    }
    let git = |args: &[&str]| {
        let done = Command::new("git").args(args).current_dir(home.work()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["config", "user.email", "a@example.org"]);
    git(&["config", "user.name", "A"]);
    git(&["commit", "-q", "--allow-empty", "-m", "a"]);
    let server = ModelServer::start().unwrap();
    let base = server.base_url();
    configure(
        &home,
        &format!(
            "[agents.gpt]\nharness = \"llm\"\napi = \"openai\"\nmodel = \"m\"\nbase_url = \"{base}\"\nworkspace = \"worktree\"\n"
        ),
    );
    let place = home.path("home").display().to_string();
    let script =
        format!("run cat {place}/hidden/file {place}/shown/file > seen; git add seen; git commit -qm seen");
    let (_, last) = ran(&home, &[&script, "--agent", "gpt"], 0, "needs_review");
    let task = last["taskId"].as_str().unwrap();
    let branch = format!("baton/{task}");
    assert_eq!(git(&["log", "--format=%s by %an", &branch]), "seen by A\na by A\n");
    let is_walled = matches!(baton_runtime::tools::wall_report(), baton_runtime::tools::Walled::Landlock(_));
    let expected = if is_walled { "shown text\n" } else { "hidden text\nshown text\n" };
    assert_eq!(git(&["show", &format!("{branch}:seen")]), expected);
    git(&["merge", "-q", &branch]);
    home.run(&["task", "approve", task, "--all"]).expect(0);
    assert!(!home.path("work.worktrees").join(task).exists(), "what is merged is removed");
}
