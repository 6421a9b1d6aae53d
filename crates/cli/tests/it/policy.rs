//! `baton policy check`: the rules as they hold, and what would keep a guarded task from being done.

use std::fs;

use serde_json::json;

use crate::support::Home;

fn home(config: &str) -> Home {
    let home = Home::new();
    fs::write(home.data().join("baton.toml"), config).unwrap();
    home
}

const AGENTS: &str = "[agents.ada]\nharness = \"mock\"\n[agents.bob]\nharness = \"mock\"\n";

#[test]
fn what_holds_is_shown_with_what_the_profile_says_filled_in() {
    let home = home(&format!(
        "[team]\nplanner = \"ada\"\nexecutor = \"bob\"\n[policy]\nprofile = \"strict\"\nmin_evidence = 2\n\
         critics = [\"person\"]\ntool_risks = {{ deploy = \"high\" }}\nbudgets.wall_clock = \"1h\"\n{AGENTS}"
    ));
    let checked = home.json(&["policy", "check"]);
    assert_eq!(checked["valid"], true, "{checked}");
    let policy = &checked["policy"];
    assert_eq!((&policy["profile"], &policy["risk_threshold"]), (&json!("strict"), &json!("low")));
    assert_eq!((&policy["min_evidence"], &policy["critics"]), (&json!(2), &json!(["person"])));
    assert_eq!(policy["budgets"], json!({"wall_clock_ms": 3_600_000}));
    assert_eq!(checked["team"]["critic"], "a person", "the policy lets nobody else");
    let shown = home.run(&["policy", "check"]);
    let shown = &shown.expect(0).stdout;
    for line in ["open_disputes", "deploy high", "1h", "ada", "baton-verifier"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

#[test]
fn what_would_keep_a_task_from_being_done_is_said() {
    for (config, says) in [
        ("", "team.planner: expected the name of an agent, got nothing"),
        ("[team]\nplanner = \"ada\"\nexecutor = \"bob\"\ncritic = \"bob\"\n", "nobody judges what they did"),
        ("[team]\nplanner = \"ada\"\n[policy]\ncritics = [\"agent\"]\n", "nobody may review"),
        (
            "[team]\nplanner = \"ada\"\n[policy]\napprovals = 2\ncritics = [\"rules\"]\n",
            "policy.approvals: expected at most 1",
        ),
        (
            "[team]\nplanner = \"ada\"\n[policy]\napprovals = 3\n",
            "policy.approvals: expected at most 2 where each critic counts once",
        ),
    ] {
        let home = home(&format!("{config}{AGENTS}"));
        let checked = home.run(&["policy", "check"]);
        assert!(checked.expect(2).stdout.contains(says), "{config}: {checked:?}");
    }
    let unknown = home(&format!("[team]\nplanner = \"eve\"\n{AGENTS}"));
    unknown.run(&["policy", "check"]).refused(2, "U001", "there is no [agents.eve]");
    // Keys, too: whoever has none gets one, and what is wrong with one that there is keeps its part from being played.
    let keyed = self::home(&format!("[team]\nplanner = \"ada\"\nexecutor = \"bob\"\n{AGENTS}"));
    keyed.run(&["policy", "check"]).expect(0);
    keyed.json(&["agent", "key", "ada", "--role", "executor"]);
    let bob = keyed.json(&["agent", "key", "bob", "--role", "executor"]);
    let checked = keyed.run(&["policy", "check"]);
    let says = "team.planner: the key";
    assert!(
        checked.expect(2).stdout.contains(says) && checked.stdout.contains("is not bound for role planner")
    );
    keyed.json(&["agent", "key", "ada", "--rotate", "--role", "planner"]);
    let private = keyed.private_key(bob["key"].as_str().unwrap());
    fs::rename(&private, keyed.path("aside")).unwrap();
    let checked = keyed.run(&["policy", "check"]);
    assert!(checked.expect(2).stdout.contains("team.executor: the key of bob is not on this machine"));
    fs::rename(keyed.path("aside"), &private).unwrap();
    keyed.run(&["policy", "check"]).expect(0);
    keyed.json(&["agent", "key", "ada", "--revoke", "--reason", "lost"]);
    let checked = keyed.run(&["policy", "check"]);
    assert!(checked.expect(2).stdout.contains("team.planner: the key of ada was revoked"));
    // The names under which Baton itself judges are nobody else's.
    let home = home("[agents.baton-rules]\nharness = \"mock\"\n");
    home.run(&["policy", "check"]).refused(2, "U001", "baton-rules");
    home.run(&["agent", "key", "baton-verifier", "--role", "auditor"]).expect(4);
}
