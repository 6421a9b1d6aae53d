//! Leases: one winner of many, fences that only grow, and nothing for whoever held it before.

use std::process::Child;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Ended, Home, finish, until};
use crate::task_support::{handoff, report, signal, text, update, with};

/// Processes that claim one task at the same time.
const CLAIMANTS: usize = 64;

/// Numbers that look random and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, max: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % max
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

/// Starts everybody; in a dangerous round some are killed at any moment.
fn race(home: &Home, id: &str, dice: &mut Dice, is_dangerous: bool) -> Vec<(usize, Option<Ended>)> {
    let mut children: Vec<(usize, Option<Child>)> = (0..CLAIMANTS)
        .map(|i| {
            let agent = format!("agent-{i}");
            let args = ["task", "claim", id, "--agent", &agent, "--json"];
            (i, Some(home.command(&args).spawn().unwrap()))
        })
        .collect();
    let mut killed = Vec::new();
    if is_dangerous {
        for _ in 0..8 {
            thread::sleep(Duration::from_millis(dice.below(12)));
            let victim = dice.below(CLAIMANTS as u64) as usize;
            if let Some(mut child) = children[victim].1.take() {
                child.kill().unwrap();
                child.wait().unwrap();
                killed.push(victim);
            }
        }
    }
    children.into_iter().map(|(i, child)| (i, child.map(|child| finish(child, None)))).collect()
}

/// Frees the task, each time in another way.
fn free(home: &Home, id: &str, round: u64, lease: &Value) {
    let fence = lease["fence"].to_string();
    match round % 3 {
        0 => {
            let agent = text(&lease["agent"]);
            home.run(&["task", "release", id, "--agent", &agent, "--fence", &fence]).expect(0);
        }
        1 => drop(home.run(&["task", "move", id, "ready", "--reason", "next round"]).expect(0)),
        _ => {
            home.accepted(update(id, &text(&lease["agent"]), &json!({"status": "ready", "notes": "yours"})));
        }
    }
}

#[test]
fn of_64_processes_that_claim_one_task_exactly_one_wins_and_fences_only_grow() {
    let rounds = number("BATON_CLAIM_ROUNDS", 20);
    let seed = number("BATON_CLAIM_SEED", u64::from(std::process::id()));
    println!("to repeat: BATON_CLAIM_SEED={seed} BATON_CLAIM_ROUNDS={rounds} cargo test -p baton-cli of_64");
    let mut dice = Dice(seed);
    let home = Home::new();
    let id = home.task(&[]);
    let mut fence = 0;
    for round in 0..rounds {
        let is_dangerous = round % 4 == 3;
        let all = race(&home, &id, &mut dice, is_dangerous);
        let ended: Vec<&Ended> = all.iter().filter_map(|(_, ended)| ended.as_ref()).collect();
        let winners: Vec<&&Ended> = ended.iter().filter(|ended| ended.code == Some(0)).collect();
        let acquired: Vec<Value> =
            home.records(&id).into_iter().filter(|record| record["type"] == "lease.acquired").collect();
        assert_eq!(acquired.len() as u64, round + 1, "one lease for each round, {round}");
        let lease = &acquired[round as usize]["payload"];
        match winners[..] {
            [one] => {
                let won = one.object();
                assert_eq!(
                    (&won["agent"], &won["fence"]),
                    (&lease["agent"], &lease["fence"]),
                    "round {round}"
                );
                assert_eq!((&won["taskId"], &won["runId"]), (&json!(id), &lease["runId"]));
            }
            // It won and was killed before it could say so.
            [] => {
                assert!(is_dangerous, "nobody won round {round}");
                let winner: usize = text(&lease["agent"])["agent-".len()..].parse().unwrap();
                assert!(all[winner].1.is_none(), "{winner} lives and was not told");
            }
            _ => panic!("{} winners in round {round}", winners.len()),
        }
        let now = lease["fence"].as_u64().unwrap();
        assert!(now > fence, "fence {now} after {fence}");
        fence = now;
        let says = format!("{} holds it until {} with fence {now}", text(&lease["agent"]), ends_at(lease));
        for loser in ended.iter().filter(|ended| ended.code != Some(0)) {
            loser.refused_json(5, "T008");
            assert!(loser.stderr.contains(&says), "expected {says:?} in round {round}: {}", loser.stderr);
            assert!(loser.stdout.is_empty());
        }
        free(&home, &id, round, lease);
    }
    home.verifies();
    home.replays();
    assert_eq!(home.status(&id), "ready");
    assert!(home.task_file(&id).ends_with(format!("tasks/ready/{id}.md")));
}

/// When a lease is over: the earlier of its two ends.
fn ends_at(lease: &Value) -> String {
    text(&lease["expiresAt"]).min(text(&lease["beatUntil"]))
}

#[test]
fn whoever_held_it_before_is_refused_everything() {
    let home = Home::with_signals();
    let id = home.task(&[]);
    let old = home.claim(&id, "first");
    let fence = old["fence"].to_string();
    home.run(&["task", "release", &id, "--agent", "first", "--fence", &fence]).expect(0);
    let refuse = |who: &str| {
        for command in ["beat", "release"] {
            let ended = home.run(&["task", command, &id, "--agent", "first", "--fence", &fence]);
            ended.refused_with(5, "T011", who);
            let args = ["task", command, &id, "--agent", "first", "--fence", &fence, "--json"];
            home.run(&args).refused_json(5, "T011");
        }
    };
    home.appends_nothing(|_| refuse("nobody does"));
    let new = home.claim(&id, "second");
    assert!(new["fence"].as_u64() > old["fence"].as_u64());
    home.appends_nothing(|_| refuse("second does with fence 2"));
    // The right name with the old fence is as wrong as the wrong name with the new one.
    for (agent, fence) in [("second", "1"), ("first", "2"), ("second", "3"), ("second", "0")] {
        let ended = home.run(&["task", "beat", &id, "--agent", agent, "--fence", fence]);
        ended.refused_with(5, "T011", "second does with fence 2");
    }
    home.rejected(report(&id, "first", "done"), "unauthorized_agent");
    home.rejected(with(report(&id, "first", "done"), "fence", old["fence"].clone()), "stale_fence");
    home.rejected(with(report(&id, "second", "done"), "fence", old["fence"].clone()), "stale_fence");
    home.rejected(update(&id, "first", &json!({"status": "blocked", "notes": "x"})), "unauthorized_agent");
    let child = home.task(&[]);
    home.rejected(handoff(&child, &id, "first", "third"), "unauthorized_agent");
    assert_eq!(home.status(&id), "in-progress");
    assert_eq!(home.show(&id)["lease"]["agent"], "second");
    assert_eq!(home.run_file(&id, "run.json")["runId"], new["runId"]);
    home.run(&["task", "beat", &id, "--agent", "second", "--fence", "2"]).expect(0);
}

#[test]
fn ones_own_claim_again_raises_the_fence_and_begins_a_new_run() {
    let home = Home::new();
    let id = home.task(&[]);
    let first = home.claim(&id, "swe-backend");
    let second = home.claim(&id, "swe-backend");
    assert_eq!((&first["fence"], &second["fence"]), (&json!(1), &json!(2)));
    assert_ne!(first["runId"], second["runId"]);
    let ended = home.run(&["task", "beat", &id, "--agent", "swe-backend", "--fence", "1"]);
    ended.refused_with(5, "T011", "fence 2");
    assert_eq!(home.types(&id)[4..], ["lease.expired", "lease.acquired"], "no transition: it is in progress");
    assert_eq!(home.last(&id, "lease.expired")["payload"]["reason"], "claimed_again");
    let history = home.data().join("runs").join(&id).join("history").join(text(&first["runId"]));
    assert!(history.join("run.json").is_file());
    assert_eq!(home.show(&id)["attempts"], 0, "that is no failure");
}

#[test]
fn a_lease_is_as_long_as_asked_for_and_another_is_told_until_when() {
    let home = Home::new().with_env("BATON_SCHEDULER_HEARTBEAT_TTL", "1h");
    let id = home.task(&[]);
    let lease = home.run(&["task", "claim", &id, "--agent", "a", "--ttl", "90s", "--json"]).value(0);
    let acquired = home.last(&id, "lease.acquired");
    assert_eq!(crate::task_support::ms_between(&acquired["at"], &lease["expiresAt"]), 90_000);
    let until = text(&lease["expiresAt"]);
    let ended = home.run(&["task", "claim", &id, "--agent", "b"]);
    ended.refused(5, "T008", &format!("a holds it until {until} with fence 1"));
    for ttl in ["0s", "999ms", "8d", "soon", "-1s"] {
        let ttl = format!("--ttl={ttl}");
        home.run(&["task", "claim", &id, "--agent", "a", &ttl]).expect(2);
    }
    for agent in ["Agent", "", "-a", "a b", "a/b", &"a".repeat(65)] {
        let agent = format!("--agent={agent}");
        home.run(&["task", "claim", &id, &agent]).expect(2);
    }
}

#[test]
fn an_expired_lease_is_somebody_elses_with_a_higher_fence() {
    let home = Home::with_short_beats();
    let id = home.task(&[]);
    let first = home.claim(&id, "first");
    until("the first one's time is over", || {
        let ended = home.run(&["task", "claim", &id, "--agent", "second", "--json"]);
        if ended.code == Some(0) {
            assert_eq!(ended.object()["fence"], 2);
        } else {
            ended.refused_json(5, "T008");
        }
        ended.code == Some(0)
    });
    home.run(&["task", "beat", &id, "--agent", "first", "--fence", "1"]).expect(5);
    // What it wrote afterwards into the files of its run is not the new run's.
    assert_ne!(home.run_file(&id, "run.json")["runId"], first["runId"]);
}

#[test]
fn beats_renew_the_lease_and_are_recorded_when_they_move_it_far() {
    let home = Home::new().with_env("BATON_SCHEDULER_HEARTBEAT_TTL", "800ms");
    let id = home.task(&[]);
    home.claim(&id, "swe-backend");
    let mut renewed = 0;
    let mut last = 0;
    until("three beats are far enough apart", || {
        thread::sleep(Duration::from_millis(60));
        let ended = home.run(&["task", "beat", &id, "--agent", "swe-backend", "--fence", "1", "--json"]);
        ended.expect(0);
        let count = home.run_file(&id, "run_heartbeat.json")["beatCount"].as_u64().unwrap();
        assert!(count > last, "every beat is written");
        last = count;
        renewed = home.types(&id).iter().filter(|t| *t == "lease.renewed").count();
        renewed >= 3
    });
    assert!(last as usize > renewed, "{last} beats, {renewed} recorded");
    let task = home.show(&id);
    assert_eq!(task["status"], "in-progress", "kept alive well beyond its heartbeat");
    assert_eq!(task["lease"]["renewCount"], renewed);
    home.verifies();
    home.replays();
}

#[test]
fn review_is_claimed_by_others_only_and_never_while_ci_is_pending() {
    let home = Home::with_signals();
    let id = home.task(&[]);
    home.claim(&id, "implementer");
    home.submitted(&id, &signal("IMPLEMENTATION", "completed"));
    for agent in ["implementer", "reviewer"] {
        home.run(&["task", "claim", &id, "--agent", agent]).refused_with(4, "T009", "CI_PENDING");
    }
    home.run(&["ci", "report", &id, "--passed"]).expect(0);
    let own = home.run(&["task", "claim", &id, "--agent", "implementer"]);
    own.refused_with(4, "T010", "implementer did the work before it and cannot do READY_FOR_REVIEW too");
    home.claim(&id, "usher");
    assert_eq!((home.status(&id), home.phase(&id)), ("in-progress".into(), "READY_FOR_REVIEW".into()));
    // Given back, it waits where its phase waits.
    home.run(&["task", "release", &id, "--agent", "usher", "--fence", "2"]).expect(0);
    assert_eq!((home.status(&id), home.phase(&id)), ("review".into(), "READY_FOR_REVIEW".into()));
    home.claim(&id, "usher");
    home.submitted(&id, &signal("READY_FOR_REVIEW", "completed"));
    for agent in ["usher", "implementer"] {
        home.run(&["task", "claim", &id, "--agent", agent]).refused_with(4, "T010", "REVIEW");
    }
    home.claim(&id, "reviewer");
    home.submitted(&id, &signal("REVIEW", "completed"));
    home.run(&["task", "claim", &id, "--agent", "reviewer"]).refused_with(4, "T010", "READY_FOR_MERGE");
    // Who may not be claimed at all.
    for status in ["blocked", "cancelled", "deadletter"] {
        let other = home.task(&[]);
        home.run(&["task", "move", &other, status, "--reason", "x"]).expect(0);
        home.run(&["task", "claim", &other, "--agent", "a"]).refused_with(4, "T009", status);
    }
    let backlog = text(&home.run(&["task", "new", "later", "--json"]).value(0)["id"]);
    home.run(&["task", "claim", &backlog, "--agent", "a"]).refused_with(4, "T009", "backlog");
}

#[test]
fn a_reviewer_that_dies_leaves_the_task_in_review() {
    let home = Home::with_signals().with_env("BATON_SCHEDULER_HEARTBEAT_TTL", "200ms");
    let id = home.task(&[]);
    home.claim(&id, "implementer");
    home.submitted(&id, &signal("IMPLEMENTATION", "completed"));
    home.run(&["ci", "report", &id, "--passed"]).expect(0);
    home.claim(&id, "reviewer");
    let other = home.task(&[]);
    until("the reviewer is given up", || {
        home.run(&["task", "log", &other, "?"]).expect(0);
        home.status(&id) != "in-progress"
    });
    assert_eq!((home.status(&id), home.phase(&id)), ("review".into(), "READY_FOR_REVIEW".into()));
    assert_eq!(home.show(&id)["attempts"], 1);
}

#[test]
fn a_claim_that_is_killed_happened_wholly_or_not_at_all() {
    let seed = number("BATON_CLAIM_SEED", u64::from(std::process::id()));
    println!("to repeat: BATON_CLAIM_SEED={seed} cargo test -p baton-cli a_claim_that_is_killed");
    let mut dice = Dice(seed);
    let home = Home::new();
    let id = home.task(&[]);
    let mut fence = 0;
    for _ in 0..40 {
        let mut child = home.command(&["task", "claim", &id, "--agent", "mayfly"]).spawn().unwrap();
        thread::sleep(Duration::from_micros(dice.below(30_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let task = home.show(&id);
        let lease = task.get("lease");
        assert_eq!(
            task["status"],
            if lease.is_some() || fence > 0 { "in-progress" } else { "ready" },
            "{task}"
        );
        if let Some(lease) = lease {
            let now = lease["fence"].as_u64().unwrap();
            assert!(now == fence || now == fence + 1, "{now} after {fence}");
            fence = now;
        }
        home.task_file(&id);
    }
    // Somebody who writes afterwards finds everything in its place.
    home.run(&["task", "log", &id, "after all that"]).expect(0);
    if fence > 0 {
        let run = home.run_file(&id, "run.json");
        assert_eq!((&run["fence"], &run["status"]), (&json!(fence), &json!("running")));
    }
    let next = home.claim(&id, "mayfly");
    assert_eq!(next["fence"], fence + 1);
    home.verifies();
    home.replays();
}
