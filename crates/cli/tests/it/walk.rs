//! The first walk of somebody new: what they try, what they are told, and that what they are told works.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::hints::after;
use crate::support::{Ended, Home, finish, until, wait};

/// A printed line, run as a shell would with this home's variables.
fn paste(home: &Home, line: &str) -> Ended {
    let baton = std::path::Path::new(env!("CARGO_BIN_EXE_baton"));
    let path = format!("{}:/usr/bin:/bin", baton.parent().unwrap().display());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", line]).current_dir(home.work()).env_clear().env("PATH", path);
    shell
        .env("HOME", home.path("home"))
        .env("BATON_STATE_DIR", home.state())
        .env("BATON_DATA_DIR", home.data());
    shell.stdin(std::process::Stdio::null());
    shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    finish(shell.spawn().unwrap(), None)
}

#[track_caller]
fn hint(ended: &Ended) -> &str {
    after(&ended.stderr, "hint: ")
}

#[track_caller]
fn error_of(ended: &Ended) -> Value {
    let error: Value =
        serde_json::from_str(&ended.stderr).unwrap_or_else(|e| panic!("{e}: {}", ended.stderr));
    error["error"].clone()
}

#[test]
fn a_task_for_one_agent_may_be_claimed_by_another_who_is_told() {
    let home = Home::new();
    let id = home.task(&["--agent", "ada"]);
    let bob = home.run(&["task", "claim", &id, "--agent", "bob"]);
    bob.expect(0);
    assert!(
        bob.stderr.contains(&format!("warning: {id} was offered to ada; bob has it now")),
        "{}",
        bob.stderr
    );
    let other = home.task(&["--agent", "ada"]);
    let ada = home.run(&["task", "claim", &other, "--agent", "ada"]);
    assert!(!ada.stderr.contains("warning"), "{}", ada.stderr);
    for command in ["new", "edit"] {
        let help = home.run(&["task", command, "--help"]).stdout;
        assert!(!help.contains("Let only") && help.contains("Offer it to this agent"), "{help}");
    }
}

#[test]
fn where_signals_are_off_the_way_to_switch_them_on_is_shown() {
    let home = Home::new();
    let id = home.task(&[]);
    home.claim(&id, "ada");
    let signal = r#"{"protocol":"apm2_agent_exit","version":"1.0.0","phase_completed":"IMPLEMENTATION","exit_reason":"completed"}"#;
    fs::write(home.work().join("signal.json"), signal).unwrap();
    let refusal = "exit signal validation is disabled (AGENT_EXIT_PROTOCOL_ENABLED=false)";
    for args in [&["exit", "check", "signal.json"][..], &["exit", "submit", "--task", &id, "signal.json"]] {
        let ended = home.run(args);
        ended.expect(4);
        assert!(ended.stdout.contains(refusal), "{}", ended.stdout);
        paste(&home, &format!("{} && baton {}", hint(&ended), args[..2].join(" ") + " --help")).expect(0);
        assert_eq!(hint(&ended), "export AGENT_EXIT_PROTOCOL_ENABLED=true");
        let json = home.run(&[args, &["--json"]].concat());
        assert_eq!(json.object()["error"], refusal);
    }
    let submit =
        format!("export AGENT_EXIT_PROTOCOL_ENABLED=true; baton exit submit --task {id} signal.json");
    let mut server = home.command(&["serve"]).spawn().unwrap();
    until("it serves", || {
        home.run(&["task", "log", &id, "here"]).code == Some(0) && home.json(&[])["owner"].is_object()
    });
    let ended = paste(&home, &submit);
    server.kill().unwrap();
    wait(&mut server);
    ended.expect(4);
    assert_eq!(hint(&ended), "AGENT_EXIT_PROTOCOL_ENABLED=true baton serve", "{}", ended.stderr);
    assert!(ended.stderr.contains("stop it"), "{}", ended.stderr);
    paste(&home, &submit).expect(0);
}

/// An editor that gives every task another priority.
fn editor(home: &Home) -> String {
    let path = home.path("editor");
    fs::write(&path, "#!/bin/sh\nsed -i 's/^priority: .*/priority: urgent/' \"$1\"\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn an_edit_that_makes_no_sense_can_be_had_back() {
    let home = Home::new();
    let id = home.task(&[]);
    let editor = editor(&home);
    let edit = |args: &[&str]| {
        let args = [&["task", "edit", &id], args].concat();
        finish(home.command(&args).env("EDITOR", &editor).spawn().unwrap(), None)
    };
    let ended = edit(&[]);
    ended.refused(4, "T003", "got \"urgent\"");
    assert!(!ended.stderr.contains("\\\""), "{}", ended.stderr);
    let file = home.data().join(format!("tasks/ready/{id}.md"));
    let priority = || fs::read_to_string(&file).unwrap().contains("priority: urgent");
    assert!(!priority(), "what Baton knows is in its place");
    assert!(hint(&ended).ends_with(&format!(" && baton task edit {id}")), "{}", ended.stderr);
    paste(&home, hint(&ended).split(" && ").next().unwrap()).expect(0);
    assert!(priority(), "what was typed is back");
    let again = home.run(&["task", "edit", &id, "--no-editor"]);
    again.refused(4, "T003", "hint: cp ");
    paste(&home, hint(&again)).expect(0);
    assert!(priority());
    home.run(&["task", "show", &id]).expect(0);
    edit(&["--json"]).refused_json(4, "T003");
    edit(&["--priority", "high"]).expect(0);
}

#[test]
fn a_database_is_refused() {
    let home = Home::new();
    home.run(&["task", "ls", "--set", "store.url=postgres://db/x"]).refused(
        2,
        "U001",
        "not used by this version",
    );
    fs::write(home.data().join("baton.toml"), "[store]\nurl = \"postgres://db/x\"\n").unwrap();
    home.run(&["task", "new", "x"]).refused(2, "U001", "keeps everything in the data directory");
}

#[test]
fn events_tell_people_what_happened() {
    let home = Home::new();
    let id = home.task(&[]);
    home.claim(&id, "ada");
    home.run(&["task", "edit", &id, "--priority", "high"]).expect(0);
    let shown = home.run(&["events", "--task", &id]);
    let line = |word: &str| {
        shown.stdout.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("{}", shown.stdout))
    };
    assert!(line("task.transitioned").contains("ready → in-progress"), "{}", shown.stdout);
    assert!(line("lease.acquired").ends_with("ada  fence 1"), "{}", shown.stdout);
    assert!(line("task.edited").ends_with("priority"), "{}", shown.stdout);
    assert!(
        shown.stdout.lines().all(|line| line.contains(&id) && line.chars().count() < 200),
        "{}",
        shown.stdout
    );
    let all = home.run(&["events"]).stdout;
    assert!(!all.contains("unsigned"), "{all}");
}

#[test]
fn what_is_refused_about_a_task_says_what_to_type_about_that_task() {
    let home = Home::new();
    let id = home.run(&["task", "new", "a task"]).stdout.trim().to_owned();
    let moved = home.run(&["task", "move", &id, "done", "--reason", "x"]);
    moved.refused(4, "T004", "it can go to ");
    assert!(!moved.stderr.contains("in-progress"), "{}", moved.stderr);
    let claimed = home.run(&["task", "claim", &id[..], "--agent", "ada"]);
    claimed.refused(4, "T009", &format!("hint: baton task move {id} ready --reason \""));
    paste(&home, hint(&claimed)).expect(0);
    let moved = home.run(&["task", "move", &id, "in-progress", "--reason", "x"]);
    moved.refused(4, "T004", &format!("hint: baton task claim {id} --agent NAME"));
    let moved = home.run(&["task", "move", &id, "done", "--reason", "x"]);
    assert!(!moved.stderr.contains("in-progress"), "{}", moved.stderr);
    paste(
        &home,
        &hint(&home.run(&["task", "move", &id, "in-progress", "--reason", "x"])).replace("NAME", "ada"),
    )
    .expect(0);
    home.run(&["task", "move", &id, "blocked", "--reason", "no credentials"]).expect(0);
    let lost = home.run(&["task", "beat", &id, "--agent", "ada", "--fence", "1"]);
    lost.refused(5, "T011", &format!("hint: baton task show {id}"));
    let shown = home.run(&["task", "show", &id]);
    assert!(hint(&shown).starts_with(&format!("baton task move {id} ready --reason ")), "{}", shown.stderr);
    paste(&home, hint(&shown)).expect(0);
    assert_eq!(home.status(&id), "ready");
}

#[test]
fn checks_are_not_passed_by_a_hint() {
    let home = Home::with_signals();
    let id = home.task(&[]);
    home.claim(&id, "ada");
    let signal = r#"{"protocol":"apm2_agent_exit","version":"1.0.0","phase_completed":"IMPLEMENTATION","exit_reason":"completed"}"#;
    home.run_with(&["exit", "submit", "--task", &id, "-"], signal).expect(0);
    assert_eq!(home.phase(&id), "CI_PENDING");
    let shown = home.run(&["task", "show", &id]).stderr;
    assert!(shown.contains("--passed\n") && shown.contains("--failed\n"), "{shown}");
    let status = home.run(&[]).stdout;
    assert!(status.contains("--passed ") && status.contains("--failed "), "{status}");
    let approved = home.run(&["task", "approve", &id]);
    approved.refused(4, "T012", &format!("hint: baton task show {id}"));
    fs::write(home.data().join("baton.toml"), "[ci]\ncommand = \"true\"\n").unwrap();
    assert_eq!(hint(&home.run(&["task", "show", &id])), "baton serve");
    assert!(home.run(&[]).stdout.contains("  baton serve  "));
}

#[test]
fn tasks_are_found_by_what_people_type() {
    let home = Home::new();
    let first = home.task(&[]);
    let plain = first.strip_prefix("TASK-").unwrap();
    for typed in ["1", "001", "TASK-001"] {
        let ended = home.run(&["task", "show", typed]);
        ended.refused(3, "T001", &format!("did you mean {first}?"));
        assert!(
            ended.stderr.contains(&format!("a unique beginning of one, names a task: {plain}")),
            "{}",
            ended.stderr
        );
    }
    let other = home.run(&["task", "show", "7"]);
    assert!(!other.stderr.contains("did you mean"), "{}", other.stderr);
    home.named_task("TASK-2020-01-01-001", &[]);
    assert!(!home.run(&["task", "show", "1"]).stderr.contains("did you mean"), "two of them end so");

    let waiting = home.task(&["--depends-on", plain, "--parent", "2020-01"]);
    let shown = home.show(&waiting);
    assert_eq!(
        (&shown["dependsOn"][0], &shown["parentId"]),
        (&first.clone().into(), &"TASK-2020-01-01-001".into())
    );
    home.run(&["task", "edit", &waiting, "--depends-on", "2020-01"]).expect(0);
    assert_eq!(home.show(&waiting)["dependsOn"][0], "TASK-2020-01-01-001");
    home.run(&["task", "new", "x", "--parent", "1999"]).refused(3, "T006", "no task 1999");
    home.run(&["task", "new", "x", "--depends-on", "TASK-1999-01-01-001"]).refused(
        3,
        "T006",
        "does not exist",
    );
}

#[test]
fn a_task_names_its_trace() {
    let home = Home::new();
    let id = home.task(&[]);
    let trace = home.show(&id)["traceId"].as_str().unwrap().to_owned();
    assert_eq!(home.json(&["trace", "show", &id])["trace"], trace.as_str());
    assert_eq!(home.json(&["trace", "show", id.strip_prefix("TASK-").unwrap()])["trace"], trace.as_str());
    assert_eq!(home.json(&["trace", "export", &id, "-o", "x.bundle"])["trace"], trace.as_str());
    let verified = home.run(&["verify", &id]);
    verified.expect(0);
    assert!(verified.stdout.contains(&trace), "{}", verified.stdout);
    home.run(&["trace", "show", "TASK-1999-01-01-001"]).refused(3, "T001", "no task");
    home.run(&["verify", "TASK-1999-01-01-001"]).refused(3, "T001", "no task");
}

#[test]
fn command_lines_that_do_not_read_say_what_was_meant() {
    let home = Home::new();
    for (args, meant) in [
        (&["task", "new", "Fix", "the", "login"][..], "baton task new 'Fix the login'"),
        (&["task", "create", "x"], "baton task new \"…\""),
        (&["task", "delete", "TASK-1"], "baton task move TASK-1 cancelled --reason \"…\""),
        (&["status"], "baton"),
        (&["ls"], "baton task ls"),
        (&["version"], "baton --version"),
    ] {
        let ended = home.run(args);
        ended.expect(2);
        assert_eq!(hint(&ended), meant);
        let json = home.run(&[args, &["--json"]].concat());
        json.refused_json(2, "U012");
        let error = error_of(&json);
        assert_eq!(error["hint"].as_str().unwrap().trim_end_matches(" --json"), meant);
        assert!(!error["message"].as_str().unwrap().contains('\n'), "{error}");
    }
    paste(&home, hint(&home.run(&["task", "new", "Fix", "the", "login"]))).expect(0);
    let missing = error_of(&home.run(&["task", "move", "TASK-1", "--json"]));
    assert!(missing["message"].as_str().unwrap().contains("--reason <REASON>"), "{missing}");
    assert_eq!(missing["hint"], "baton task move --help");
}

#[test]
fn prose_is_answered_with_what_a_message_is() {
    let home = Home::new();
    let ended = home.run_with(&["send", "-"], "hello\n");
    ended.expect(4);
    assert!(
        ended.stdout.starts_with("rejected not_a_message: expected one AOF/1 message"),
        "{}",
        ended.stdout
    );
    paste(&home, hint(&ended)).expect(0);
}

#[test]
fn a_key_that_does_not_exist_is_an_error_for_every_command() {
    let home = Home::new();
    for args in [&["task", "ls"][..], &["events"], &["explain"], &[]] {
        let ended = home.run(&[&["--set", "scheduler.pol=5s"], args].concat());
        ended.refused(2, "U001", "did you mean `scheduler.poll`?");
        assert_eq!(ended.stdout, "");
    }
    home.run(&["--set", "scheduler.poll=5s", "task", "ls"]).expect(0);
}

#[test]
fn a_data_directory_below_another_one_is_made_with_a_warning() {
    let home = Home::empty();
    let init = |dir: &str| {
        fs::create_dir_all(home.work().join(dir)).unwrap();
        let mut command = home.command(&["init"]);
        finish(command.env_remove("BATON_DATA_DIR").current_dir(home.work().join(dir)).spawn().unwrap(), None)
    };
    let first = init("");
    first.expect(0);
    assert_eq!(first.stderr, "");
    for dir in ["a/b", ".baton/tasks"] {
        let nested = init(dir);
        nested.expect(0);
        assert!(nested.stderr.contains("warning: another data directory lies above: "), "{}", nested.stderr);
    }
}

#[test]
fn the_story_of_the_demo_can_be_typed() {
    let home = Home::empty();
    fs::create_dir(home.path("tmp")).unwrap();
    let tmp = home.path("tmp").display().to_string();
    let told = home.with_env("TMPDIR", &tmp).run(&["demo", "--json"]);
    told.expect(0);
    let steps: Vec<Value> = told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let place = |words: &str| {
        let has = |step: &Value| step["command"].as_str().is_some_and(|command| command.contains(words));
        steps.iter().position(has).unwrap_or_else(|| panic!("{words}"))
    };
    assert!(place("baton init") < place("cat .baton/baton.toml"));
    assert!(place("AGENT_EXIT_PROTOCOL_ENABLED=true") < place("baton exit submit"));
}

/// What a terminal of this width shows.
fn on_terminal(home: &Home, columns: usize, command: &str) -> Vec<String> {
    let ended = paste(home, &format!("script -qec 'stty cols {columns}; {command}' /dev/null"));
    ended.expect(0);
    ended.stdout.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn events_and_pages_fit_the_terminal() {
    let home = Home::new();
    let id = home.run(&["task", "new", &"a long title ".repeat(12), "--ready"]).stdout.trim().to_owned();
    home.claim(&id, "ada");
    for columns in [40, 80, 130] {
        let lines = on_terminal(&home, columns, "NO_COLOR=1 baton events");
        assert_eq!(lines.len(), home.events().len(), "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= columns), "{lines:#?}");
    }
    let lines = on_terminal(&home, 80, "NO_COLOR=1 baton events --task 20");
    let moved = lines.iter().find(|line| line.contains("task.transitioned")).unwrap();
    assert!(moved.contains(id.strip_prefix("TASK-").unwrap()) && moved.contains("ready → in"), "{moved}");
    let page = on_terminal(&home, 60, "baton explain T003");
    assert!(page.iter().all(|line| line.chars().count() <= 60 && !line.contains("**")), "{page:#?}");
}

#[test]
fn a_task_that_waits_for_another_shows_the_way_there() {
    let home = Home::new();
    let first = home.task(&[]);
    let second = home.task(&["--depends-on", &first]);
    assert_eq!(hint(&home.run(&["task", "show", &second])), format!("baton task show {first}"));
    home.run(&["task", "move", &second, "blocked", "--reason", "later"]).expect(0);
    assert_eq!(hint(&home.run(&["task", "show", &second])), format!("baton task show {first}"));
}
