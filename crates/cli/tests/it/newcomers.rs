//! What people meet in their first hour: slips of the pen, empty answers, a narrow terminal. Nothing is silent, and every hint works.

use std::fs::{self, File};
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::thread;

use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;

use crate::serve::Serving;
use crate::support::{Ended, Home, finish, terminal, wait};
use crate::task_support::text;

/// The line of standard error that starts with a word.
#[track_caller]
fn line<'a>(ended: &'a Ended, word: &str) -> &'a str {
    let found = ended.stderr.lines().find_map(|line| line.strip_prefix(word));
    found.unwrap_or_else(|| panic!("no line {word:?}: {ended:?}"))
}

/// Runs what was printed as a shell would, with `baton` on PATH.
pub(crate) fn paste(home: &Home, line: &str) -> Ended {
    let baton = std::path::Path::new(env!("CARGO_BIN_EXE_baton"));
    let command = home.command(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(home.work()).env_clear();
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.env("PATH", format!("{}:/usr/bin:/bin", baton.parent().unwrap().display()));
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(shell.spawn().unwrap(), None)
}

/// What a command prints to a terminal with so many columns.
pub(crate) fn on_terminal(home: &Home, columns: u16, args: &[&str]) -> Vec<String> {
    let (ours, theirs) = terminal();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&theirs, size).unwrap();
    let mut child = home.command(args).stdout(theirs).stderr(Stdio::null()).spawn().unwrap();
    let reader = thread::spawn(move || {
        let (mut terminal, mut bytes) = (File::from(ours), Vec::new());
        // A terminal that nobody writes to any more ends with an error.
        let _ = terminal.read_to_end(&mut bytes);
        String::from_utf8(bytes).unwrap()
    });
    assert_eq!(wait(&mut child).code(), Some(0));
    reader.join().unwrap().lines().map(str::to_owned).collect()
}

const TITLE: &str = "Take uploads of more than ten mebibytes, and say in a sentence why one is refused";

#[test]
fn lists_fit_the_terminal_and_are_whole_in_a_pipe() {
    let home = Home::new();
    let made = home.run(&["task", "new", TITLE, "--ready"]);
    let id = made.stdout.trim();
    home.run(&["trace", "new", "--title", TITLE]).expect(0);
    for command in [&["task", "ls"][..], &["trace", "ls"], &[]] {
        let narrow = on_terminal(&home, 100, command);
        let cut = narrow.iter().find(|line| line.contains("Take uploads")).unwrap();
        assert!(cut.contains('…') && cut.chars().count() <= 100, "{command:?}: {cut}");
        let wide = on_terminal(&home, 250, command);
        assert!(wide.iter().any(|line| line.contains(TITLE)), "{command:?}: {wide:?}");
        let piped = home.run(command).stdout;
        assert!(piped.contains(TITLE), "{command:?}: {piped}");
    }
    // What people copy is never cut, however narrow it gets.
    let narrow = on_terminal(&home, 30, &["task", "ls"]);
    assert!(narrow.iter().any(|line| line.starts_with(id)), "{narrow:?}");
}

#[test]
fn a_setting_that_the_server_does_not_heed_is_named() {
    let home = Home::new();
    let alone = home.run(&["task", "new", "a", "--set", "scheduler.lease_ttl=1m"]);
    assert!(!alone.stderr.contains("has no effect"), "{}", alone.stderr);
    let serving = Serving::start_with(&home, &["--set", "scheduler.lease_ttl=20m"]);
    let set = |more: &[&str]| home.run(&[&["task", "new", "b"], more].concat());
    let ended = set(&["--set", "scheduler.lease_ttl=1m", "--set", "ci.timeout=2m"]);
    ended.expect(0);
    let told: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("has no effect")).collect();
    assert_eq!(told.len(), 2, "one for each key: {told:?}");
    assert!(told[1].starts_with("warning: --set scheduler.lease_ttl has no effect"), "{told:?}");
    assert!(told[1].ends_with("with scheduler.lease_ttl = \"20m\""), "what rules: {told:?}");
    let json = set(&["--json", "--set", "scheduler.lease_ttl=1m"]);
    assert!(
        json.stderr.starts_with("{\"warning\":{\"message\":\"--set scheduler.lease_ttl "),
        "{}",
        json.stderr
    );
    // The same value is no difference, and quiet is quiet.
    assert!(!set(&["--set", "scheduler.lease_ttl=20m"]).stderr.contains("no effect"));
    assert_eq!(set(&["-q", "--set", "scheduler.lease_ttl=1m"]).stderr, "");
    set(&["--set", "scheduler.lease_tll=1m"]).refused(2, "U001", "did you mean `scheduler.lease_ttl`?");
    serving.stop();
}

#[test]
fn events_of_an_unknown_task_or_type_are_not_just_nothing() {
    let home = Home::new();
    let id = home.task(&[]);
    let trace = home.trace();
    home.append(&trace, "a", &json!({"type": "step.done", "task": "elsewhere-7"}));
    home.run(&["events", "--task", "TASK-2001-01-01-001"]).refused(3, "T001", "no task TASK-2001-01-01-001");
    home.run(&["events", "--task", "nobody", "--json"]).refused_json(3, "T001");
    // Events may be about tasks of other systems; and a beginning of an id will do.
    assert_eq!(home.run(&["events", "--task", "elsewhere-7"]).expect(0).stdout.lines().count(), 1);
    let later = home.run(&["events", "--task", "elsewhere-7", "--since", "99"]);
    assert_eq!(
        (later.code, later.stdout.as_str(), later.stderr.as_str()),
        (Some(0), "", "No events match.\n")
    );
    let beginning = &id[..id.len() - 1];
    assert_eq!(
        home.run(&["events", "--task", beginning]).stdout,
        home.run(&["events", "--task", &id]).stdout
    );

    let typo = home.run(&["events", "--type", "task.craeted"]);
    typo.expect(0);
    assert_eq!(line(&typo, "warning: "), "no event has the type task.craeted; did you mean task.created?");
    assert!(typo.stderr.ends_with("No events match.\n"), "{}", typo.stderr);
    let invented = home.run(&["events", "--type", "step.dnoe"]);
    assert!(line(&invented, "warning: ").ends_with("did you mean step.done?"), "{}", invented.stderr);
    // A type that there is, and that nothing has: no warning.
    let none = home.run(&["events", "--type", "trace.closed"]);
    assert_eq!((none.code, none.stderr.as_str()), (Some(0), "No events match.\n"));
    let none = home.run(&["events", "--type", "trace.closed", "--json"]);
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("", ""), "a program sees that for itself");
}

#[test]
fn an_empty_list_of_tasks_says_why_it_is_empty() {
    let home = Home::new();
    let none = home.run(&["task", "ls"]);
    assert!(none.stdout.is_empty() && none.stderr.starts_with("There are no tasks yet.\n"), "{none:?}");
    paste(&home, line(&none, "hint: ")).expect(0);
    let none = home.run(&["task", "ls", "--status", "review,done"]);
    assert_eq!(none.stdout, "");
    assert!(
        none.stderr.starts_with("No task has the status review or done; 1 has another one.\n"),
        "{none:?}"
    );
    assert!(paste(&home, line(&none, "hint: ")).expect(0).stdout.contains("TASK-"));
    let json = home.run(&["task", "ls", "--status", "review", "--json"]);
    assert_eq!((json.value(0)["tasks"].clone(), json.stderr.as_str()), (json!([]), ""));
}

#[test]
fn a_mistyped_word_is_answered_with_the_nearest_one() {
    let home = Home::new();
    let id = home.task(&[]);
    for (args, near) in [
        (&["task", "ls", "--status", "redy"][..], "ready"),
        (&["task", "ls", "--status", "done,in_progress"], "in-progress"),
        (&["task", "move", &id, "blokced", "--reason", "x"], "blocked"),
        (&["task", "new", "x", "--priority", "hihg"], "high"),
        (&["task", "edit", &id, "--priority", "crtical"], "critical"),
        (&["task", "new", "x", "--phase", "DRFT"], "DRAFT"),
        (&["agent", "key", "pat", "--role", "plannr"], "planner"),
    ] {
        let ended = home.changes_nothing(|home| home.run(args));
        ended.expect(2);
        let tip = format!("tip: a similar value exists: '{near}'");
        assert!(ended.stderr.contains(&tip), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("[possible values: "), "{args:?}: {}", ended.stderr);
    }
    // A folder that is called like no status.
    fs::create_dir(home.data().join("tasks/redy")).unwrap();
    fs::write(home.data().join("tasks/redy/TASK-2026-02-09-001.md"), "x").unwrap();
    fs::write(home.data().join("tasks/ready/TASK-2026-02-09-002.md"), "x").unwrap();
    let listed = home.run(&["task", "ls"]);
    assert!(listed.stderr.contains("redy is no status; did you mean ready?"), "{}", listed.stderr);
}

#[test]
fn sending_nothing_shows_a_message_that_works() {
    let home = Home::new();
    let nothing = home.run_with(&["send"], "");
    nothing.refused(4, "U004", "standard input is empty: expected one AOF/1 message");
    paste(&home, line(&nothing, "hint: ")).expect(0);
    let id = home.task(&[]);
    home.claim(&id, "it");
    fs::write(home.work().join("empty.json"), " \n").unwrap();
    for ended in [home.run_with(&["send"], "\n"), home.run(&["send", "empty.json"])] {
        ended.refused(4, "U004", "is empty");
        let sent = paste(&home, line(&ended, "hint: "));
        assert_eq!(sent.expect(0).stdout, "accepted\n");
    }
    assert!(text(&home.show(&id)["body"]).contains("half done"));
    // Programs get the answer that the protocol has for it.
    home.rejected("", "not_a_message");
}

#[test]
fn a_verb_in_the_place_of_an_agent_makes_no_key() {
    let home = Home::new();
    for verb in ["ls", "list", "show", "new", "rotate", "revoke", "help"] {
        let ended = home.changes_nothing(|home| home.run(&["agent", "key", verb]));
        ended.refused(2, "U009", &format!("got the verb {verb}"));
    }
    home.run(&["agent", "key", "pat"]).expect(0);
    let listed = home.run(&["agent", "key", "ls"]);
    assert!(paste(&home, line(&listed, "hint: ")).expect(0).stdout.contains("\"agent\":\"pat\""));
    // Whoever is really called so gets a key, and is shown it.
    home.run(&["agent", "key", "ls", "--role", "executor"]).expect(0);
    assert_eq!(home.json(&["agent", "key", "ls"])["agent"], "ls");
}

#[test]
fn a_refused_edit_names_a_file_that_is_there() {
    let home = Home::new();
    let id = home.task(&[]);
    let path = home.task_file(&id);
    let saved = fs::read_to_string(&path).unwrap().replace("priority: normal", "priority: soon");
    fs::write(&path, &saved).unwrap();
    let edited = home.run(&["--data-dir", "../data", "task", "edit", &id, "--no-editor"]);
    edited.refused(4, "T003", "priority: expected critical, high, normal or low");
    let (_, kept) = edited.stderr.lines().next().unwrap().split_once("it is kept in ").unwrap();
    assert_eq!(fs::read_to_string(home.work().join(kept)).unwrap(), saved);
    let doctor = home.run(&["doctor"]).stdout;
    assert!(doctor.contains(&format!("kept in {}: ", home.data().join("quarantine").display())), "{doctor}");
}

#[test]
fn bare_baton_names_the_broken_line_of_the_configuration() {
    let home = Home::new();
    let path = home.data().join("baton.toml");
    fs::write(&path, "[scheduler]\npoll = \"5s\"\nlease_tll = \"1m\"\n").unwrap();
    let ended = home.run(&[]);
    ended.expect(0);
    let place = format!("{}:3:1: unknown key `lease_tll`", path.display());
    let warning = line(&ended, "warning: the configuration cannot be used: ");
    assert!(warning.starts_with(&place), "{warning}");
    assert_eq!(ended.stderr.lines().count(), 1, "one line: {}", ended.stderr);
    let next = ended.stdout.lines().find(|line| line.contains("what is wrong with the configuration"));
    let next = next.unwrap().trim_start().split("  ").next().unwrap();
    paste(&home, next).refused(2, "U001", "lease_tll");
    assert!(home.run(&["--json"]).stderr.contains("lease_tll"));
    fs::write(&path, "").unwrap();
    assert_eq!(home.run(&[]).stderr, "");
}

#[test]
fn bare_baton_shows_every_task_once() {
    let home = Home::new();
    let [blocked, dead] = [0; 2].map(|_| home.task(&[]));
    let [waits, lost] = [&blocked, &dead].map(|id| home.task(&["--depends-on", id]));
    home.run(&["task", "move", &blocked, "blocked", "--reason", "no credentials"]).expect(0);
    home.run(&["task", "move", &lost, "blocked", "--reason", "no idea"]).expect(0);
    home.run(&["task", "move", &dead, "cancelled", "--reason", "not needed"]).expect(0);
    let shown = home.run(&[]).stdout;
    let board: Vec<&str> = shown.split("\n\n").next().unwrap().lines().collect();
    for (id, why) in
        [(&blocked, "blocked: no credentials"), (&lost, "blocked: no idea"), (&waits, "normal, ready")]
    {
        let lines: Vec<&&str> = board.iter().filter(|line| line.contains(id.as_str())).collect();
        assert_eq!(lines.len(), 1, "{id} once:\n{shown}");
        assert!(lines[0].contains(why), "{shown}");
    }
    let needs = home.json(&[])["tasks"]["needsPerson"].as_array().unwrap().len();
    assert_eq!(needs, 2, "each once");
}
