//! Where guarded runs end: budgets, failures, disputes, people who want it otherwise; and what they come to.

use std::fs;

use baton_testkit::model_server::ModelServer;
use serde_json::{Value, json};

use crate::conducted::{expect_accounted, expect_passes, steps, team, team_saying};
use crate::runs::{configure, lines};
use crate::serve::Serving;
use crate::support::{Home, until};
use crate::task_support::text;

#[test]
fn a_condition_lets_only_its_tools_through() {
    let home = team("");
    let task = home.guarded("only:write_file edit good.txt term true complete done");
    home.conducted(&task, "done");
    let rules: Vec<String> = home.refusals(&task).into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(rules, ["conditions"]);
    expect_accounted(&home.told(&home.guard_of(&task)));
}

#[test]
fn an_executor_that_gives_up_and_one_that_ran_nothing_end_the_run() {
    let home = team("[policy]\nmax_fallbacks = 0\n");
    for (title, why) in
        [("edit a.txt complete blocked", "the executor is blocked"), ("complete done", "ran nothing")]
    {
        let task = home.guarded(title);
        let end = home.conducted(&task, "blocked");
        assert!(text(&end["why"]).contains(why), "{end}");
        assert_eq!(home.status(&task), "blocked");
        let shown = home.show(&task);
        assert!(text(&shown["metadata"]["blockReason"]).contains(why), "{shown}");
    }
}

#[test]
fn a_run_stops_at_its_budgets() {
    for (budget, title) in [
        ("budgets = { tool_calls = 1 }", "edit one.txt edit two.txt complete done"),
        ("budgets = { tokens = 25 }", "slow edit one.txt complete done"),
        ("budgets = { wall_clock = \"1s\" }", "slow edit one.txt complete done"),
    ] {
        let home = team(&format!("[policy]\n{budget}\n"));
        let task = home.guarded(title);
        let ended = home.run(&["run", "--task", &task, "--json"]);
        let (_, last) = lines(&ended);
        let events = home.told(&home.guard_of(&task));
        let started = events.iter().filter(|event| event["type"] == "tool_execution_started").count();
        if budget.contains("tool_calls") {
            assert_eq!((started, &last["outcome"]), (1, &json!("done")), "{last}");
            assert_eq!(home.refusals(&task)[0].0, "budget");
            assert!(!home.work().join("two.txt").exists());
        } else {
            assert!(text(&last["why"]).contains("budget"), "{budget}: {last}");
            assert_eq!(home.status(&task), "blocked");
        }
    }
}

#[test]
fn nothing_is_finished_with_an_open_challenge_where_the_policy_is_strict() {
    for (profile, outcome) in [("strict", "blocked"), ("default", "done")] {
        // The executor keeps its claim, whatever the critic says.
        let home = team_saying("bob", "stubborn", &format!("[policy]\nprofile = {profile:?}\n"));
        let task = home.guarded("edit good.txt complete done doubtful");
        let end = home.conducted(&task, outcome);
        let events = home.told(&home.guard_of(&task));
        let statement = events.iter().find(|event| event["type"] == "final_statement_signed");
        match statement {
            None => {
                assert!(text(&end["why"]).contains("nobody answered the challenge of c1"), "{end}");
                assert_eq!(home.last(&task, "task.verified")["payload"]["state"], "failed");
                assert_eq!(profile, "strict");
            }
            Some(statement) => {
                assert_eq!((&statement["payload"]["disputed"], profile), (&json!(["c1"]), "default"));
                let verdict = &home.last(&task, "task.verified")["payload"]["verdict"];
                assert_eq!(verdict, "pass-with-warnings");
            }
        }
        home.verifies();
    }
}

#[test]
fn an_auditor_may_be_stricter_than_the_verifier() {
    let home = team_saying("dora", "severe", "");
    let task = home.guarded("edit good.txt complete done");
    let end = home.conducted(&task, "blocked");
    assert!(text(&end["why"]).contains("the mock auditor says fail"), "{end}");
    assert_eq!(home.last(&task, "task.verified")["payload"]["verdict"], "fail");
}

/// A model whose tools Baton runs.
fn model(home: &Home, name: &str, server: &ModelServer) {
    let base = server.base_url();
    let how = "harness = \"llm\"\napi = \"openai\"\nmodel = \"fake-model\"";
    configure(home, &format!("[agents.{name}]\n{how}\nbase_url = \"{base}\"\n"));
}

#[test]
fn a_model_runs_no_tool_that_nobody_approved() {
    let (home, server) = (team(""), ModelServer::start().unwrap());
    model(&home, "gpt", &server);
    home.recast("executor = \"bob\"", "executor = \"gpt\"");
    let good = home.guarded("write good.txt fine");
    home.conducted(&good, "needs_review");
    assert_eq!(fs::read_to_string(home.work().join("good.txt")).unwrap(), "fine");
    let events = home.told(&home.guard_of(&good));
    expect_accounted(&events);
    let intent = events.iter().find(|event| event["type"] == "tool_intent_signed").unwrap();
    assert_eq!(intent["payload"]["tool_name"], "write_file");
    expect_passes(&home, &home.guard_of(&good));
    // What the critic blocks is not run, and nothing is left that could be claimed.
    let bad = home.guarded("write forbidden.txt no");
    let end = home.conducted(&bad, "blocked");
    assert!(text(&end["why"]).contains("ran nothing"), "{end}");
    assert!(!home.work().join("forbidden.txt").exists());
    home.verifies();
}

#[test]
fn an_answer_that_had_to_be_corrected_counts_like_any_other() {
    // What an auditor says in the second attempt is what it says.
    let home = team_saying("dora", "severe stammer", "");
    let task = home.guarded("edit good.txt complete done");
    let end = home.conducted(&task, "blocked");
    assert!(text(&end["why"]).contains("the mock auditor says fail"), "{end}");
    // So is what a critic says of a claim, and what an executor says to that.
    for (who, says, title) in [
        ("cleo", "doubtful stammer", "edit good.txt complete done"),
        ("bob", "stammer", "edit good.txt complete done doubtful"),
    ] {
        let home = team_saying(who, says, "");
        let task = home.guarded(title);
        home.conducted(&task, "done");
        let events = home.told(&home.guard_of(&task));
        let revised = |event: &&Value| event["payload"]["revises"] == "c1";
        assert!(events.iter().any(|event| event["type"] == "claim_challenged"), "{who}: {events:?}");
        assert!(events.iter().any(|event| revised(&event)), "{who}: {events:?}");
    }
}

#[test]
fn a_run_that_nobody_plays_is_aborted_and_one_that_is_open_is_not_let_through() {
    let home = team("");
    let task = home.guarded("crash 1 1");
    home.conducted(&task, "failed");
    home.run(&["task", "move", &task, "review", "--reason", "it looks fine"]).expect(4);
    home.run(&["task", "approve", &task]).expect(4);
    home.run(&["trace", "abort", &home.guard_of(&task), "--reason", "not any more"]).expect(0);
    assert_eq!(home.status(&task), "cancelled");
    assert_eq!(home.last(&task, "task.verified")["payload"]["state"], "aborted");
    home.verifies();
}

#[test]
fn a_critic_that_changes_its_mind_has_the_planner_propose_anew() {
    let home = team("");
    let task = home.guarded("slow edit good.txt complete done");
    let serving = Serving::start(&home);
    until("it is at work", || {
        let opened = home.types(&task).contains(&"task.guard_opened".to_owned());
        opened && steps(&home.told(&home.guard_of(&task))).contains(&"proposal_reviewed".to_owned())
    });
    let trace = home.guard_of(&task);
    home.run(&["trace", "review", &trace, "p1", "block", "--reason", "not like this"]).expect(0);
    until("it is verified", || home.types(&task).contains(&"task.verified".to_owned()));
    serving.stop();
    let events = home.told(&trace);
    let proposed = events.iter().rfind(|event| event["type"] == "proposal_created").unwrap();
    assert_eq!(proposed["payload"]["revises"], "p1");
    assert_eq!(home.last(&task, "task.verified")["payload"]["state"], "completed");
    expect_passes(&home, &trace);
}

#[test]
fn what_needs_no_review_by_people_is_done_once_it_is_verified() {
    for title in ["edit good.txt complete done", "edit good.txt complete done doubtful"] {
        let home = team("");
        let made = home.run(&["task", "new", title, "--guarded", "--ready", "--no-review", "--json"]);
        let task = text(&made.value(0)["id"]);
        home.conducted(&task, "done");
        assert_eq!(home.status(&task), "done");
    }
}

#[test]
fn a_tool_that_failed_is_followed_by_another_proposal_as_often_as_the_policy_says() {
    for (most, proposals, outcome) in [(0, 1, "blocked"), (1, 2, "blocked")] {
        let home = team(&format!("[policy]\nmax_fallbacks = {most}\n"));
        let task = home.guarded("fail complete done");
        home.conducted(&task, outcome);
        let events = home.told(&home.guard_of(&task));
        let count = |name: &str| events.iter().filter(|event| event["type"] == name).count();
        assert_eq!(
            count("proposal_created"),
            proposals,
            "{}",
            home.run(&["trace", "show", &home.guard_of(&task)]).stdout
        );
        assert_eq!(count("tool_execution_failed"), proposals);
        // The same words after another proposal are another report.
        let reports = home.types(&task).iter().filter(|name| *name == "task.completed").count();
        assert_eq!(reports, proposals);
        expect_accounted(&events);
    }
}

#[test]
fn two_approvals_are_a_critic_s_and_a_person_s() {
    let home = team("[policy]\napprovals = 2\n");
    let task = home.guarded("edit good.txt complete done");
    let serving = Serving::start(&home);
    let reviews = || {
        let opened = home.types(&task).contains(&"task.guard_opened".to_owned());
        let told = if opened { home.told(&home.guard_of(&task)) } else { Vec::new() };
        told.iter().filter(|event| event["type"] == "proposal_reviewed").count()
    };
    until("the critic has approved", || reviews() == 1);
    home.run(&["trace", "review", &home.guard_of(&task), "p1", "approve", "--reason", "fine"]).expect(0);
    until("it is verified", || home.types(&task).contains(&"task.verified".to_owned()));
    serving.stop();
    expect_passes(&home, &home.guard_of(&task));
}
