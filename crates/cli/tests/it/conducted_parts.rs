//! What each part of a guarded run is shown and asked, as agents see it that write down every prompt.

use std::fs;

use serde_json::{Value, json};

use crate::conducted::{expect_accounted, expect_passes, steps, team};
use crate::runs::configure;
use crate::support::{Home, until, wait};
use crate::task_support::text;

/// An agent that plays whatever part it is asked for, thinks aloud, and writes down what it was told.
const SCRIBE: &str = r#"
import json, os, sys, time
name, how = sys.argv[1], sys.argv[2]
def say(message): print(json.dumps(message), flush=True)
def update(**fields): say({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": fields}})
def speak(text): update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})
def answer(**fields): speak(name + "-thinks\n" + json.dumps(fields))
def work():
    tool = dict(toolCallId="c1", title="write_file", kind="edit", rawInput={"path": "made.txt", "content": "INPUT-MARK"})
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}, {"optionId": "no", "name": "No", "kind": "reject_once"}]
    say({"jsonrpc": "2.0", "id": "q", "method": "session/request_permission", "params": {"sessionId": "s", "toolCall": tool, "options": options}})
    while True:
        heard = json.loads(sys.stdin.readline())
        if heard.get("id") == "q":
            break
    if how == "fails":
        return # without a word about how it ended
    if heard["result"]["outcome"].get("optionId") == "yes":
        open("made.txt", "w").write("INPUT-MARK")
        made = [{"type": "content", "content": {"type": "text", "text": "OUTPUT-MARK"}}]
        update(sessionUpdate="tool_call_update", toolCallId="c1", status="completed", content=made)
def turn(asked):
    # Its prompts before this process count too.
    n = sum(json.loads(line)["asked"] == asked for line in open(sys.argv[3]))
    subject = asked.split()[-1]
    if asked == "a proposal":
        proposal = {"objective": "OBJECTIVE-MARK", "required_tools": ["write_file", "run_command"]}
        if n > 1 and how == "revises":
            proposal["revises"] = "p%d" % (n - 1)
        answer(proposal=proposal)
    elif asked.startswith("a review of proposal"):
        answer(review={"proposal_id": subject, "status": "approved", "rationale": "RATIONALE-MARK"})
    elif asked.startswith("a review of intent"):
        answer(review={"intent_id": asked.split()[4], "status": "approved", "rationale": "RATIONALE-MARK"})
    elif asked == "the work":
        speak(name + "-thinks")
        if n == 1 or how != "fails":
            work()
    elif asked == "claims":
        answer(claims=[{"claim_text": "CLAIM-MARK", "confidence": 0.9, "executions": ["i1"]}])
    elif asked.startswith("challenges of"):
        answer(challenges=[{"claim_id": "c1", "reason": "REASON-MARK"}] if subject == "c1" else [])
    elif asked.startswith("an answer about claim") and how == "waits":
        while not os.path.exists("go"):
            time.sleep(0.01)
        answer(claims=[{"claim_text": "SMALLER-MARK", "confidence": 0.8, "executions": ["i1"], "revises": subject}])
    elif asked.startswith("an answer about claim") and n == 1:
        answer(intent={"tool_name": "read_file", "input": {"path": "a"}, "justification": "to look first"})
    elif asked.startswith("an answer about claim"):
        answer(claims=[{"claim_text": "SMALLER-MARK", "confidence": 0.8, "executions": ["i1"], "revises": subject}])
    elif asked == "a verdict":
        answer(verdict={"status": "pass", "summary": "all of it"})
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
    elif method == "session/new":
        result = {"sessionId": "s"}
    elif method == "session/prompt":
        blocks = [block["text"] for block in message["params"]["prompt"]]
        asked = [line[len("Asked for: "):] for line in blocks[-1].splitlines() if line.startswith("Asked for: ")][0]
        with open(sys.argv[3], "a") as log:
            log.write(json.dumps({"asked": asked, "blocks": blocks}) + "\n")
        turn(asked)
        result = {"stopReason": "end_turn"}
    else:
        continue
    say({"jsonrpc": "2.0", "id": message["id"], "result": result})
"#;

/// Gives a part to an agent that writes down its prompts.
fn cast(home: &Home, part: &str, before: &str, how: &str) {
    let (script, log) = (home.path("scribe.py"), home.path(&format!("{part}.log")));
    fs::write(&script, SCRIBE).unwrap();
    let command = format!("command = [\"python3\", {script:?}, \"{part}\", \"{how}\", {log:?}]");
    configure(home, &format!("[agents.{part}]\nharness = \"acp\"\n{command}\nmcp = false\n"));
    home.recast(&format!("{part} = \"{before}\""), &format!("{part} = \"{part}\""));
}

/// A part, and for each thing that it is asked the marks that it is shown with it.
type Asked = (&'static str, &'static [(&'static str, &'static [&'static str])]);

/// What a part was asked, and everything that it was shown with it.
fn prompts(home: &Home, part: &str) -> Vec<(String, String)> {
    let log = fs::read_to_string(home.path(&format!("{part}.log"))).unwrap();
    let read = |line: &str| {
        let prompt: Value = serde_json::from_str(line).unwrap();
        let blocks = prompt["blocks"].as_array().unwrap();
        (text(&prompt["asked"]), blocks.iter().map(text).collect::<Vec<_>>().join("\n"))
    };
    log.lines().map(read).collect()
}

#[test]
fn each_part_is_shown_what_it_needs_and_nothing_of_the_others_conversations() {
    let home = team("");
    let parts = [("planner", "ada"), ("executor", "bob"), ("critic", "cleo"), ("auditor", "dora")];
    for (part, before) in parts {
        cast(&home, part, before, "");
    }
    let task = home.guarded("do as the TASK-MARK says");
    home.conducted(&task, "needs_review");
    let marks = [
        "TASK-MARK",
        "OBJECTIVE-MARK",
        "RATIONALE-MARK",
        "INPUT-MARK",
        "OUTPUT-MARK",
        "CLAIM-MARK",
        "REASON-MARK",
        "SMALLER-MARK",
        "planner-thinks",
        "executor-thinks",
        "critic-thinks",
        "auditor-thinks",
    ];
    let expected: [Asked; 4] = [
        ("planner", &[("a proposal", &["TASK-MARK"])]),
        (
            "critic",
            &[
                ("a review of proposal p1", &["TASK-MARK", "OBJECTIVE-MARK"]),
                ("a review of intent i1 (write_file)", &["OBJECTIVE-MARK", "INPUT-MARK"]),
                ("challenges of c1", &["TASK-MARK", "OUTPUT-MARK", "CLAIM-MARK"]),
                ("challenges of c2", &["TASK-MARK", "OUTPUT-MARK", "SMALLER-MARK"]),
            ],
        ),
        (
            "executor",
            &[
                ("the work", &["TASK-MARK", "OBJECTIVE-MARK"]),
                ("claims", &[]),
                ("an answer about claim c1", &["CLAIM-MARK", "REASON-MARK"]),
                ("an answer about claim c1", &[]),
            ],
        ),
        ("auditor", &[("a verdict", &[])]),
    ];
    for (part, asked) in expected {
        let prompts = prompts(&home, part);
        let shown = prompts.iter().map(|(asked, whole)| {
            (asked.as_str(), marks.into_iter().filter(|mark| whole.contains(mark)).collect::<Vec<_>>())
        });
        let asked: Vec<_> = asked.iter().map(|(asked, marks)| (*asked, marks.to_vec())).collect();
        assert_eq!(shown.collect::<Vec<_>>(), asked, "{part}: {prompts:?}");
    }
    // What it means to do next is no answer to a challenge.
    let (_, corrected) = &prompts(&home, "executor")[3];
    assert!(corrected.starts_with("Your answer was not taken: it is not what was asked for"), "{corrected}");
    let (_, report) = &prompts(&home, "auditor")[0];
    assert!(report.contains("The verifier has checked everything"), "{report}");
    let events = home.told(&home.guard_of(&task));
    expect_accounted(&events);
    let end = events.iter().find(|event| event["type"] == "final_statement_signed").unwrap();
    assert_eq!((&end["payload"]["claim_ids"], &end["payload"]["disputed"]), (&json!(["c2"]), &json!([])));
    expect_passes(&home, &home.guard_of(&task));
}

#[test]
fn a_planner_that_revises_without_end_is_stopped() {
    let home = team("[policy]\nmax_fallbacks = 1\n");
    cast(&home, "planner", "ada", "revises");
    // What failed once is followed by nothing, again and again.
    cast(&home, "executor", "bob", "fails");
    let task = home.guarded("whatever it takes");
    let end = home.conducted(&task, "blocked");
    let events = home.told(&home.guard_of(&task));
    let made = steps(&events).iter().filter(|name| *name == "proposal_created").count();
    assert_eq!(made, 5, "{end}");
    assert!(text(&end["why"]).contains("5 proposals were made"), "{end}");
    expect_accounted(&events);
    home.verifies();
}

#[test]
fn whoever_signs_for_a_part_that_is_not_its_own_is_refused_and_that_is_recorded() {
    let home = team("[policy]\nprofile = \"strict\"\n");
    home.recast("critic = \"cleo\"\n", "");
    let task = home.guarded("edit good.txt complete done");
    let mut run = home.command(&["run", "--task", &task, "--json"]).spawn().unwrap();
    until("a proposal waits", || {
        let opened = home.types(&task).contains(&"task.guard_opened".to_owned());
        opened && steps(&home.told(&home.guard_of(&task))).contains(&"proposal_created".to_owned())
    });
    let trace = home.guard_of(&task);
    let review = json!({"proposal_id": "p1", "status": "approved", "rationale": "r"});
    let as_critic =
        json!({"type": "proposal_reviewed", "payload": review, "actor": {"agent": "bob", "role": "critic"}});
    home.run_with(&["trace", "append", &trace, "--agent", "bob"], as_critic.to_string()).refused(
        4,
        "L021",
        "not for critic",
    );
    let refusals = home.refusals(&task);
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    let last = home.last(&task, "guard.refused");
    assert_eq!(
        (&last["payload"]["agent"], &last["payload"]["what"]),
        (&json!("bob"), &json!("trace append"))
    );
    assert!(home.run(&["task", "show", &task]).stdout.contains("refused to bob"));
    for subject in ["p1", "i1", "c1"] {
        until(&format!("{subject} waits"), || {
            home.told(&trace).iter().any(|event| {
                let payload = &event["payload"];
                ["proposal_id", "intent_id", "claim_id"].iter().any(|name| payload[*name] == subject)
            })
        });
        home.run(&["trace", "review", &trace, subject, "approve", "--reason", "fine"]).expect(0);
    }
    wait(&mut run);
    expect_passes(&home, &trace);
}

#[test]
fn nobody_finishes_a_strict_run_while_a_challenge_is_open() {
    let home = team("[policy]\nprofile = \"strict\"\n");
    cast(&home, "executor", "bob", "waits");
    cast(&home, "critic", "cleo", "");
    let task = home.guarded("do it");
    let mut run = home.command(&["run", "--task", &task, "--json"]).spawn().unwrap();
    until("a claim is challenged", || {
        let opened = home.types(&task).contains(&"task.guard_opened".to_owned());
        opened && steps(&home.told(&home.guard_of(&task))).contains(&"claim_challenged".to_owned())
    });
    let trace = home.guard_of(&task);
    let last = home.told(&trace).pop().unwrap();
    let statement = json!({"claim_ids": ["c1"], "verdict_text": "it is done", "disputed": ["c1"]});
    let seen = json!({"seq": last["seq"], "hash": last["hash"]});
    let early = json!({"type": "final_statement_signed", "payload": statement, "seen": seen});
    let early = home.run_with(&["trace", "append", &trace, "--agent", "executor"], early.to_string());
    early.refused(4, "G001", "(rule disputes)");
    let (rule, why) = home.refusals(&task).pop().unwrap();
    assert_eq!(rule, "disputes", "{why}");
    assert!(home.run(&["task", "show", &task]).stdout.contains("refused to executor"));
    fs::write(home.work().join("go"), "").unwrap();
    wait(&mut run);
    let events = home.told(&trace);
    let end = events.iter().find(|event| event["type"] == "final_statement_signed").unwrap();
    assert_eq!((&end["payload"]["claim_ids"], &end["payload"]["disputed"]), (&json!(["c2"]), &json!([])));
    expect_passes(&home, &trace);
}

#[test]
fn what_a_guarded_run_came_to_is_for_somebody_else_to_judge() {
    let home = team("");
    let task = home.guarded("edit good.txt complete done");
    home.conducted(&task, "done");
    let again = home.run(&["run", "--task", &task]);
    again.refused(3, "A002", "waits for somebody to judge it");
    assert!(again.stderr.contains(&format!("baton task approve {task}")), "{}", again.stderr);
}
