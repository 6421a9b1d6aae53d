//! A command that a server elsewhere does is the same command: what it prints, how it ends, and what it reads and writes.

use std::fs::{self, File};
use std::io::Read as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Ended, Home, finish, wait};
use crate::web_support::Web;

/// Somebody without a data directory, who knows a server.
fn elsewhere(web: &Web) -> Home {
    Home::empty()
        .with_env("BATON_SERVER", &format!("http://{}", web.address))
        .with_env("BATON_TOKEN", &web.token)
        .with_env("BATON_DATA_DIR", "")
}

fn without_times(ended: &Ended) -> (Option<i32>, String, String) {
    let plain = |text: &str| {
        text.lines()
            .map(|line| line.split("ago").next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    };
    (ended.code, plain(&ended.stdout), plain(&ended.stderr))
}

#[test]
fn commands_print_and_end_as_they_do_here() {
    let home = Home::new();
    let web = Web::start(&home);
    let away = elsewhere(&web);
    let id = away.run(&["task", "new", "Fix the login", "--ready"]).stdout.trim().to_owned();
    assert!(id.starts_with("TASK-"), "{id}");
    let mut compared = 0;
    for args in [
        &["task", "show", &id, "--json"][..],
        &["task", "ls"],
        &["task", "ls", "--status", "done"],
        &["task", "move", &id, "done", "--reason", "x"],
        &["task", "move", &id, "done", "--reason", "x", "--json"],
        &["task", "show", "TASK-2020-01-01-001"],
        &["task", "claim", "nothing", "--agent", "ada"],
        &["trace", "ls", "--json"],
        &["events", "--json"],
        &["agent", "ls"],
        &["session", "ls"],
        &["hooks", "check"],
        &["replay", "--json"],
        &["config", "show", "--json"],
        &["task", "frobnicate"],
    ] {
        let (here, there) = (home.run(args), away.run(args));
        assert_eq!(without_times(&there), without_times(&here), "{args:?}");
        compared += 1;
    }
    assert!(compared > 10);
    // A flag is the same as a variable.
    let url = format!("http://{}", web.address);
    let plain = Home::empty().with_env("BATON_DATA_DIR", "");
    plain.run(&["task", "show", &id, "--server", &url, "--token", &web.token]).expect(0);
    plain.run(&["task", "show", &id, "--server", &url, "--token", "wrong"]).expect(4);
    plain.run(&["task", "show", &id, "--server", &url]).expect(4);
    plain.run(&["task", "ls", "--server", "http://127.0.0.1:1", "--token", "t"]).expect(1);
    plain.run(&["task", "ls", "--server", "localhost", "--token", "t"]).expect(2);
    web.serving.stop();
}

#[test]
fn what_a_command_reads_is_sent_along_and_what_it_writes_comes_back() {
    let home = Home::new();
    let web = Web::start(&home);
    let away = elsewhere(&web);
    fs::write(away.work().join("text.md"), "The text.\n").unwrap();
    let by_file = away.run(&["task", "new", "One", "-f", "text.md"]).stdout.trim().to_owned();
    let by_pipe =
        away.run_with(&["task", "new", "Two", "-f", "-"], "Another text.\n").stdout.trim().to_owned();
    let body = |id: &str| {
        let shown: Value = serde_json::from_str(&home.run(&["task", "show", id, "--json"]).stdout).unwrap();
        shown["body"].as_str().unwrap().to_owned()
    };
    assert_eq!((body(&by_file), body(&by_pipe)), ("The text.\n".to_owned(), "Another text.\n".to_owned()));
    away.run(&["task", "new", "Three", "-f", "missing.md"]).refused(3, "U005", "missing.md");
    // Files of the server are none of their business.
    fs::write(home.work().join("secret"), "{\"secret\": 1}").unwrap();
    let sent = away.run(&["send", home.work().join("secret").to_str().unwrap(), "--json"]);
    assert!(sent.stdout.contains("accepted") && !sent.stdout.contains("secret"), "{sent:?}");
    let trace = away.json(&["trace", "new"])["trace"].as_str().unwrap().to_owned();
    let note = json!({"type": "note", "payload": {"text": "hello"}});
    away.run_with(&["trace", "append", &trace, "--agent", "ada"], note.to_string()).expect(0);
    let exported = away.run(&["trace", "export", &trace, "-o", "out.bundle"]);
    assert!(exported.expect(0).stderr.contains(&format!("wrote 2 events of {trace}")), "{exported:?}");
    let told = away.json(&["trace", "export", &trace, "-o", "told.bundle"]);
    assert_eq!((&told["trace"], &told["events"]), (&json!(trace), &json!(2)), "{told}");
    away.run(&["verify", "out.bundle"]).expect(0);
    assert!(!home.work().join("out.bundle").exists());
    away.run(&["trace", "export", &trace, "-o", "out.bundle"]).expect(1);
    away.run(&["trace", "export", "trc_nothing", "-o", "no.bundle"]).expect(3);
    assert!(!away.work().join("no.bundle").exists(), "half a bundle is not left behind");
    away.run(&["token", "new", "x", "--scope", "admin"]).expect(4);
    web.serving.stop();
}

#[test]
fn an_agent_is_run_and_followed_from_elsewhere() {
    let home = Home::new();
    let web = Web::start(&home);
    let away = elsewhere(&web);
    let ran = away.run(&["run", "echo hello", "--agent", "mock", "--json"]);
    ran.expect(0);
    let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["type"], "run.ended");
    away.run(&["run", "crash", "--agent", "mock"]).expect(6);
    web.serving.stop();
}

#[test]
fn what_is_printed_comes_in_the_order_in_which_it_is_printed() {
    let home = Home::new();
    let web = Web::start(&home);
    let away = elsewhere(&web);
    // Both streams in one file, as with 2>&1: names differ from run to run, and the order of the rest does not.
    let printed = |who: &Home| {
        let file = File::create(who.work().join("all")).unwrap();
        let mut command = who.command(&["run", "tool crash 3 2", "--agent", "mock"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        assert_eq!(wait(&mut child).code(), Some(6));
        let text = fs::read_to_string(who.work().join("all")).unwrap();
        let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
        text.lines().map(first).filter(|word| !word.contains("TASK")).collect::<Vec<String>>()
    };
    let here = printed(&home);
    assert!(here.len() > 4, "{here:?}");
    for _ in 0..4 {
        assert_eq!(printed(&away), here);
    }
    web.serving.stop();
}

#[test]
fn what_is_for_this_machine_is_not_done_elsewhere_and_whoever_only_looked_missed_nothing() {
    let home = Home::new();
    let web = Web::start(&home);
    let url = format!("http://{}", web.address);
    let plain = Home::empty().with_env("BATON_DATA_DIR", "");
    for name in ["init", "serve", "demo", "mcp", "acp", "mock-agent"] {
        plain.run(&[name, "--server", &url, "--token", "t"]).refused(2, "U009", "works on this machine");
    }
    let away = elsewhere(&web);
    let init = away.run(&["init"]);
    assert!(init.expect(0).stderr.contains("BATON_SERVER is set"), "{init:?}");
    let tls = url.replace("http://", "https://");
    plain.run(&["task", "ls", "--server", &tls, "--token", "t"]).refused(1, "S004", "does not encrypt");
    // Whoever follows learns that the server ended, and that there is nothing to worry about.
    let mut command = away.command(&["events", "--follow"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    web.serving.signal("-TERM");
    finish(child, None).refused(5, "W016", "nothing was changed");
    web.serving.stop_signalled();
}
