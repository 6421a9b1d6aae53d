//! Tasks that wait for others: what may be written, what it holds back, what it sets free.

use std::fs;

use serde_json::json;

use crate::support::Home;
use crate::task_support::{report, signal, text};

/// A task in backlog.
fn backlog(home: &Home, args: &[&str]) -> String {
    text(&home.run(&[&["task", "new", "later", "--json"], args].concat()).value(0)["id"])
}

fn finish(home: &Home, id: &str) {
    home.claim(id, "swe-backend");
    home.accepted(report(id, "swe-backend", "done"));
    home.run(&["task", "approve", id]).expect(0);
    assert_eq!(home.status(id), "done");
}

#[test]
fn a_cycle_is_refused_by_name_and_so_is_what_does_not_exist() {
    let home = Home::new();
    let a = home.task(&[]);
    let b = home.task(&["--depends-on", &a]);
    let c = home.task(&["--depends-on", &b]);
    let refused = home.appends_nothing(|home| home.run(&["task", "edit", &a, "--depends-on", &c]));
    refused.refused_with(4, "T007", &format!("{a} → {c} → {b} → {a}"));
    home.run(&["task", "edit", &a, "--depends-on", &a]).refused_with(4, "T007", &format!("{a} → {a}"));
    let own = "TASK-2026-02-09-057";
    home.run(&["task", "new", "x", "--id", own, "--depends-on", own]).refused_with(4, "T007", own);
    let missing = "TASK-2020-01-01-001";
    home.run(&["task", "new", "x", "--depends-on", missing]).refused_with(3, "T006", missing);
    home.run(&["task", "edit", &a, "--depends-on", missing]).refused_with(3, "T006", missing);
    home.run(&["task", "new", "x", "--parent", missing]).refused_with(3, "T006", missing);
    home.run(&["task", "new", "x", "--depends-on", "nonsense"]).refused_with(3, "T006", "nonsense");
    assert_eq!(home.show(&a)["dependsOn"], json!([]));
    assert_eq!(home.show(&c)["dependsOn"], json!([b]));
    // Also where a person writes it into the file.
    let file = home.task_file(&a);
    let edited = fs::read_to_string(&file).unwrap().replace("dependsOn: []", &format!("dependsOn: [{c}]"));
    fs::write(&file, edited).unwrap();
    let ended = home.run(&["task", "show", &a, "--json"]);
    assert_eq!(ended.value(0)["dependsOn"], json!([]));
    assert!(ended.stderr.contains(&format!("{a} → {c} → {b} → {a}")), "{}", ended.stderr);
    assert!(text(&home.last(&a, "task.edit_refused")["payload"]["reason"]).contains("circle"));
}

#[test]
fn open_dependencies_hold_back_the_claim_and_the_end() {
    let home = Home::with_signals();
    let first = home.task(&[]);
    let second = home.task(&["--depends-on", &first, "--no-review"]);
    let claim = home.run(&["task", "claim", &second, "--agent", "swe-backend"]);
    claim.refused_with(4, "T005", &format!("it depends on {first}, not done yet"));
    // One that gets its dependency in the middle of the work stops before its end.
    let third = home.task(&["--no-review"]);
    home.claim(&third, "swe-backend");
    home.run(&["task", "edit", &third, "--depends-on", &first]).expect(0);
    home.accepted(report(&third, "swe-backend", "done"));
    assert_eq!(home.status(&third), "review");
    home.run(&["task", "approve", &third]).refused_with(4, "T005", &first);
    home.run(&["task", "move", &third, "done", "--reason", "x"]).refused_with(4, "T005", &first);
    // The same at the end of a merge.
    let fourth = home.task(&[]);
    home.claim(&fourth, "swe-backend");
    home.submitted(&fourth, &signal("IMPLEMENTATION", "completed"));
    home.run(&["ci", "report", &fourth, "--passed"]).expect(0);
    home.run(&["task", "approve", &fourth]).expect(0);
    home.claim(&fourth, "merger");
    home.run(&["task", "edit", &fourth, "--depends-on", &first]).expect(0);
    home.appends_nothing(|home| home.not_submitted(&fourth, &signal("READY_FOR_MERGE", "completed"), &first));
    finish(&home, &first);
    home.submitted(&fourth, &signal("READY_FOR_MERGE", "completed"));
    assert_eq!(home.status(&fourth), "done");
    home.run(&["task", "approve", &third]).expect(0);
    home.claim(&second, "swe-backend");
    home.verifies();
    home.replays();
}

#[test]
fn the_end_of_a_task_promotes_who_waited_for_it_one_link_at_a_time() {
    let home = Home::new();
    let a = home.task(&[]);
    let b = backlog(&home, &["--depends-on", &a]);
    let c = backlog(&home, &["--depends-on", &b]);
    let both = backlog(&home, &["--depends-on", &format!("{a},{b}")]);
    let alone = backlog(&home, &[]);
    let blocked = home.task(&["--depends-on", &a]);
    home.run(&["task", "move", &blocked, "blocked", "--reason", "dependencies"]).expect(0);
    assert_eq!(home.show(&blocked)["metadata"]["blockReason"], "dependencies");
    let other = home.task(&["--depends-on", &a]);
    home.run(&["task", "move", &other, "blocked", "--reason", "no budget"]).expect(0);
    finish(&home, &a);
    assert_eq!(home.moves(&b), ["backlog → ready: dependencies_done"]);
    assert_eq!(home.last(&b, "task.transitioned")["actor"]["role"], "system");
    assert_eq!(home.moves(&blocked)[1], "blocked → ready: dependencies_done");
    let statuses = |ids: &[&String]| ids.iter().map(|id| home.status(id)).collect::<Vec<_>>();
    assert_eq!(
        statuses(&[&c, &both, &alone, &other]),
        ["backlog", "backlog", "backlog", "blocked"],
        "nobody else moves"
    );
    finish(&home, &b);
    assert_eq!(statuses(&[&c, &both]), ["ready", "ready"]);
    // Backlog is where a person put it: one that is made for what is done already stays there.
    let late = backlog(&home, &["--depends-on", &a]);
    home.run(&["task", "log", &alone, "anything"]).expect(0);
    assert_eq!(home.status(&late), "backlog");
    home.verifies();
    home.replays();
}

#[test]
fn who_is_blocked_by_dependencies_goes_on_when_the_open_ones_are_taken_away() {
    let home = Home::new();
    let (a, b) = (home.task(&[]), home.task(&[]));
    finish(&home, &a);
    let waits = home.task(&["--depends-on", &format!("{a},{b}")]);
    home.run(&["task", "move", &waits, "blocked", "--reason", "dependencies"]).expect(0);
    home.run(&["task", "edit", &waits, "--title", "still waiting"]).expect(0);
    assert_eq!(home.status(&waits), "blocked");
    home.run(&["task", "edit", &waits, "--depends-on", &a]).expect(0);
    assert_eq!(home.moves(&waits)[1], "blocked → ready: dependencies_done");
    assert_eq!(home.status(&waits), "ready");
    // Whoever is blocked by something else is not helped by that.
    let other = home.task(&["--depends-on", &b]);
    home.run(&["task", "move", &other, "blocked", "--reason", "no budget"]).expect(0);
    home.run(&["task", "edit", &other, "--depends-on", &a]).expect(0);
    assert_eq!(home.status(&other), "blocked");
    home.replays();
}

#[test]
fn a_dependency_that_will_never_be_done_needs_a_person() {
    let home = Home::with_short_beats().with_env("BATON_SCHEDULER_MAX_ATTEMPTS", "1");
    for status in ["cancelled", "deadletter"] {
        let first = home.task(&[]);
        let waiting = backlog(&home, &["--depends-on", &first]);
        let before = home.json(&[]);
        let needs = |value: &serde_json::Value| {
            let all = value["tasks"]["needsPerson"].as_array().unwrap().clone();
            all.into_iter().find(|need| need["id"] == waiting.as_str())
        };
        assert!(needs(&before).is_none(), "{before}");
        home.run(&["task", "move", &first, status, "--reason", "no use"]).expect(0);
        assert_eq!(home.status(&waiting), "backlog", "it is not promoted");
        let why = text(&needs(&home.json(&[])).expect("it needs a person")["why"]);
        assert_eq!(why, format!("waits for {first}, which is {status}"));
        let shown = home.run(&[]);
        assert!(shown.expect(0).stdout.contains(&why), "{}", shown.stdout);
        assert!(home.run(&["task", "show", &waiting]).stdout.contains(&format!("{first} ({status})")));
    }
}
