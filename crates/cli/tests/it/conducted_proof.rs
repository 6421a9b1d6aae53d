//! What a guarded run leaves is what happened: whole outputs, true exit codes, and an end in every case.

use std::fs;

use serde_json::{Value, json};

use crate::conducted::{expect_accounted, expect_passes, steps, team};
use crate::runs::configure;
use crate::support::{Home, until, wait};
use crate::task_support::{text, texts};

/// An executor that has programs run by Baton, and does what its task says in one word.
const HAND: &str = r#"
import json, os, subprocess, sys, time
def say(message): print(json.dumps(message), flush=True)
def update(**fields): say({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": fields}})
asked = 0
def ask(method, **params):
    global asked
    asked += 1
    say({"jsonrpc": "2.0", "id": "q%d" % asked, "method": method, "params": dict(sessionId="s", **params)})
    while True:
        answer = json.loads(sys.stdin.readline())
        if answer.get("id") == "q%d" % asked:
            return answer.get("result")
def run(script, **more):
    terminal = ask("terminal/create", command="sh", args=["-c", script], **more)["terminalId"]
    ask("terminal/wait_for_exit", terminalId=terminal)
    return ask("terminal/output", terminalId=terminal)["output"]
def submit(answer):
    return subprocess.Popen([sys.argv[1], "session", "submit", os.environ["BATON_SESSION_ID"]],
                            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=open("submit.log", "a")), json.dumps(answer).encode()
answers = {}
def answer(how, asked, nth):
    one = {"claim_text": "it works", "confidence": 1}
    if asked == "claims" and how == "answers" and nth == 1:
        # The second one rests on nothing that is there: of this answer nothing stands.
        return {"claims": [one, {"claim_text": "and more", "confidence": 1, "evidence": ["ab" * 32]}]}
    if asked == "claims" and how == "answers":
        return {"claims": [{"claim_text": "said anew", "confidence": 1}, {"claim_text": "and more", "confidence": 1}]}
    if asked.startswith("an answer about claim") and nth == 1:
        # It does not say what it answers.
        return {"claims": [{"claim_text": "something else", "confidence": 0.5}]}
    if asked.startswith("an answer about claim"):
        return {"claims": [{"claim_text": "said anew", "confidence": 0.6, "executions": ["i1"], "revises": asked.split()[-1]}]}
    return {"claims": [one]}
is_leaving = False
def turn(how):
    global is_leaving
    if how == "quiet":
        shown = run("echo TESTS FAILED; yes '%s' | head -n 30000; exit 101" % ("x" * 99), outputByteLimit=0)
        open("shown", "w").write(shown)
    elif how == "leaving":
        run("true")
        is_leaving = True
    elif how == "many":
        run("true")
        started = [submit({"claims": [{"claim_text": "part %d" % n, "confidence": 0.5}]}) for n in range(6)]
        for process, answer in started:
            process.stdin.write(answer)
            process.stdin.close()
        for process, _ in started:
            process.wait()
    elif how == "answers":
        run("true")
    elif how == "keyless":
        run("touch begun; while [ ! -e go ]; do sleep 0.05; done")
        run("true")
    elif how in ("revoked", "waiting"):
        run("touch begun; while [ ! -e go ]; do sleep 0.05; done")
    elif how == "overhears":
        run("true")
        listed = subprocess.run([sys.argv[1], "session", "ls", "--json"], capture_output=True, text=True).stdout
        for session in json.loads(listed)["sessions"]:
            heard = subprocess.run([sys.argv[1], "session", "show", session["id"], "--transcript"], capture_output=True, text=True)
            with open("heard", "a") as log:
                log.write("%s %d\n" % (session["id"] == os.environ["BATON_SESSION_ID"], heard.returncode))
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
    elif method == "session/new":
        result = {"sessionId": "s"}
    elif method == "session/prompt":
        blocks = [block["text"] for block in message["params"]["prompt"]]
        asked_for = [line[len("Asked for: "):] for line in blocks[-1].splitlines() if line.startswith("Asked for: ")]
        if asked_for:
            answers[" ".join(asked_for)] = answers.get(" ".join(asked_for), 0) + 1
        if asked_for and asked_for[0] != "the work":
            reply = answer(how, asked_for[0], answers[" ".join(asked_for)])
            update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": json.dumps(reply)})
        else:
            how = blocks[0].split()[0]
            turn(how)
        result = {"stopReason": "end_turn"}
    else:
        continue
    say({"jsonrpc": "2.0", "id": message["id"], "result": result})
if is_leaving:
    update(sessionUpdate="tool_call", toolCallId="late", title="run_command", kind="execute", status="completed", rawInput={"command": "rm -rf important"})
"#;

fn team_with_hand(more: &str) -> Home {
    let home = team(more);
    let (script, exe) = (home.path("hand.py"), env!("CARGO_BIN_EXE_baton"));
    fs::write(&script, HAND).unwrap();
    let command = format!("command = [\"python3\", {script:?}, {exe:?}]\nterminal = true\nmcp = false");
    configure(&home, &format!("[agents.hand]\nharness = \"acp\"\n{command}\n"));
    home.recast("executor = \"bob\"", "executor = \"hand\"");
    home
}

fn of<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == name).collect()
}

#[test]
fn evidence_is_all_that_a_program_printed_however_little_its_agent_wants_of_it() {
    let home = team_with_hand("");
    let task = home.guarded("quiet");
    home.conducted(&task, "needs_review");
    assert_eq!(fs::read_to_string(home.work().join("shown")).unwrap(), "", "the agent wanted nothing of it");
    let events = home.told(&home.guard_of(&task));
    let ended = of(&events, "tool_execution_completed")[0];
    assert_eq!(ended["payload"]["exit_status"], 101);
    let output = &ended["artifacts"][0];
    assert_eq!(text(&output["sha256"]), texts(&ended["payload"]["artifacts"])[0]);
    let hash = text(&output["sha256"]);
    let kept = home.data().join("artifacts/sha256").join(&hash[..2]).join(&hash);
    let kept = fs::read_to_string(kept).unwrap();
    assert_eq!(kept.len(), "TESTS FAILED\n".len() + 30_000 * 100);
    assert!(kept.starts_with("TESTS FAILED\n"));
    let claim = of(&events, "claim_issued")[0];
    assert!(texts(&claim["payload"]["evidence"]).contains(&text(&output["sha256"])), "{claim}");
    let story = home.run(&["trace", "show", &home.guard_of(&task)]).stdout;
    assert!(story.contains("exit 101"), "{story}");
    expect_passes(&home, &home.guard_of(&task));
    home.verifies();
}

#[test]
fn what_an_executor_does_on_its_way_out_is_looked_at_before_its_work_is_stated_to_be_done() {
    let home = team_with_hand("");
    let task = home.guarded("leaving");
    let end = home.conducted(&task, "blocked");
    assert!(text(&end["why"]).contains("hand ran run_command without being allowed to"), "{end}");
    let events = home.told(&home.guard_of(&task));
    assert_eq!(of(&events, "final_statement_signed").len(), 0);
    assert_eq!(of(&events, "verification_run_completed")[0]["payload"]["status"], "fail");
    assert_eq!(home.refusals(&task)[0].0, "intent-approved");
    assert_eq!(home.status(&task), "blocked");
    home.verifies();
}

#[test]
fn answers_that_come_at_once_each_get_an_id_of_their_own() {
    let home = team_with_hand("");
    let task = home.guarded("many");
    home.conducted(&task, "needs_review");
    let events = home.told(&home.guard_of(&task));
    let ids: Vec<String> =
        of(&events, "claim_issued").iter().map(|claim| text(&claim["payload"]["claim_id"])).collect();
    let refused = fs::read_to_string(home.work().join("submit.log")).unwrap();
    assert_eq!(ids, ["c1", "c2", "c3", "c4", "c5", "c6"], "{refused}");
    assert_eq!(home.refusals(&task), []);
    expect_passes(&home, &home.guard_of(&task));
}

#[test]
fn a_run_whose_executor_may_not_sign_any_more_comes_to_an_end_all_the_same() {
    let home = team_with_hand("");
    let task = home.guarded("revoked");
    let mut run = home.command(&["run", "--task", &task, "--json"]).spawn().unwrap();
    until("its tool runs", || home.work().join("begun").exists());
    home.run(&["agent", "key", "hand", "--revoke", "--reason", "lost"]).expect(0);
    fs::write(home.work().join("go"), "").unwrap();
    wait(&mut run);
    let verified = home.last(&task, "task.verified");
    assert_eq!(verified["payload"]["state"], "failed");
    assert_eq!(home.status(&task), "blocked");
    let events = home.told(&home.guard_of(&task));
    assert_eq!(steps(&events).last().unwrap(), "trace.closed");
    expect_accounted(&events);
    home.verifies();
}

#[test]
fn of_an_answer_all_stands_or_nothing_and_a_challenge_is_answered_by_what_says_so() {
    let home = team_with_hand("[policy]\nprofile = \"strict\"\n");
    let task = home.guarded("answers doubtful");
    home.conducted(&task, "needs_review");
    let events = home.told(&home.guard_of(&task));
    let claims: Vec<(String, String)> = of(&events, "claim_issued")
        .iter()
        .map(|claim| (text(&claim["payload"]["claim_text"]), claim["payload"]["revises"].to_string()))
        .collect();
    let said = |what: &str, revises: &str| (what.to_owned(), revises.to_owned());
    let expected = [
        said("said anew", "null"),
        said("and more", "null"),
        said("something else", "null"),
        // With the same words: what it rests on is what was doubted.
        said("said anew", "\"c1\""),
        said("said anew", "\"c2\""),
        said("said anew", "\"c3\""),
    ];
    assert_eq!(claims, expected);
    let end = &of(&events, "final_statement_signed")[0]["payload"];
    assert_eq!((&end["claim_ids"], &end["disputed"]), (&json!(["c4", "c5", "c6"]), &json!([])));
    expect_passes(&home, &home.guard_of(&task));
}

#[test]
fn a_key_that_is_gone_fails_the_attempt_and_not_the_run() {
    let home = team_with_hand("");
    let key = text(&home.json(&["agent", "key", "hand", "--role", "executor"])["key"]);
    let task = home.guarded("keyless");
    let mut run = home.command(&["run", "--task", &task, "--json"]).spawn().unwrap();
    until("its tool runs", || home.work().join("begun").exists());
    let kept = home.private_key(&key);
    fs::rename(&kept, home.path("aside")).unwrap();
    fs::write(home.work().join("go"), "").unwrap();
    wait(&mut run);
    assert_eq!(home.status(&task), "ready", "{}", home.run(&["task", "show", &task]).stdout);
    assert!(home.run(&["task", "show", &task]).stdout.contains("the executor's key is not on this machine"));
    fs::rename(home.path("aside"), &kept).unwrap();
    home.run(&["task", "retry", &task]).expect(0);
    home.conducted(&task, "needs_review");
    expect_passes(&home, &home.guard_of(&task));
}

#[test]
fn nobody_reads_what_others_were_told_while_a_run_is_open() {
    let home = team_with_hand("");
    let task = home.guarded("overhears");
    home.conducted(&task, "needs_review");
    let heard = fs::read_to_string(home.work().join("heard")).unwrap();
    let mut lines: Vec<&str> = heard.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    // Its own, and none of the others.
    assert_eq!(lines, ["False 4", "True 0"], "{heard}");
    assert!(home.refusals(&task).iter().all(|(_, why)| why.contains("reads no other session")));
}

#[test]
fn a_claim_whose_evidence_is_missing_goes_into_the_audit_and_fails_there() {
    let home = team_with_hand("[policy]\nprofile = \"strict\"\n");
    home.recast("critic = \"cleo\"\n", "");
    let task = home.guarded("quiet");
    let mut run = home.command(&["run", "--task", &task, "--json"]).spawn().unwrap();
    let opened = || home.types(&task).contains(&"task.guard_opened".to_owned());
    let has = |name: &str| opened() && steps(&home.told(&home.guard_of(&task))).contains(&name.to_owned());
    let approve = |id: &str| {
        home.run(&["trace", "review", &home.guard_of(&task), id, "approve", "--reason", "fine"]).expect(0);
    };
    until("it is proposed", || has("proposal_created"));
    approve("p1");
    until("a tool waits", || has("tool_intent_signed"));
    approve("i1");
    until("it is claimed", || has("claim_issued"));
    let trace = home.guard_of(&task);
    let events = home.told(&trace);
    let (last, missing) = (events.last().unwrap(), "ab".repeat(32));
    let claim = json!({
        "type": "claim_issued",
        "seen": {"seq": last["seq"], "hash": last["hash"]},
        "payload": {"claim_id": "other", "claim_text": "and more", "confidence": 1, "evidence": [missing]},
        "artifacts": [{"sha256": missing, "bytes": 1, "media_type": "text/plain", "name": "log"}],
    });
    home.run_with(&["trace", "append", &trace, "--agent", "hand"], claim.to_string()).expect(0);
    approve("c1");
    approve("other");
    wait(&mut run);
    let end = home.last(&task, "task.verified");
    assert_eq!(end["payload"]["state"], "failed", "{end}");
    assert!(text(&end["payload"]["why"]).contains("ARTIFACT_MISSING"), "{end}");
    assert_eq!(home.status(&task), "blocked");
}

#[test]
fn a_run_whose_records_were_changed_while_it_was_open_fails_in_its_audit() {
    let home = team_with_hand("");
    let task = home.guarded("waiting");
    let mut run = home.command(&["run", "--task", &task, "--json"]).spawn().unwrap();
    until("its tool runs", || home.work().join("begun").exists());
    // Somebody who can write the file has the critic say something else; the length stays, and the line reads.
    let segment = home.segment();
    let before = fs::read_to_string(&segment).unwrap();
    let (was, is) = ("the mock critic says approved", "the mock critic says disproved");
    assert!(before.contains(was), "{before}");
    fs::write(&segment, before.replacen(was, &is[..was.len()], 1)).unwrap();
    fs::write(home.work().join("go"), "").unwrap();
    wait(&mut run);
    let after = fs::read_to_string(&segment).unwrap();
    let verified = after.lines().find(|line| line.contains("\"task.verified\"")).unwrap();
    let verified: Value = serde_json::from_str(verified).unwrap();
    let end = &verified["payload"];
    assert_eq!((&end["state"], &end["verdict"]), (&json!("failed"), &json!("fail")), "{end}");
    // Whoever reads it from now on is told where it does not hold.
    let report = home.run(&["verify"]);
    assert!(report.expect(7).stdout.contains("HASH_MISMATCH"), "{report:?}");
}

#[test]
fn what_is_let_through_while_something_else_is_done_is_done_too() {
    let home = team_with_hand("");
    let task = home.guarded("waiting");
    let mut run = home.command(&["run", "--task", &task, "--json"]).spawn().unwrap();
    until("its tool runs", || home.work().join("begun").exists());
    let trace = home.guard_of(&task);
    let other = json!({"type": "proposal_created", "payload": {
        "proposal_id": "p2", "objective": "quite other work", "revises": "p1", "required_tools": ["run_command"],
    }});
    home.run_with(&["trace", "append", &trace, "--agent", "ada"], other.to_string()).expect(0);
    home.run(&["trace", "review", &trace, "p2", "approve", "--reason", "rather this"]).expect(0);
    fs::write(home.work().join("go"), "").unwrap();
    wait(&mut run);
    let events = home.told(&trace);
    expect_accounted(&events);
    let on = |of: &str| of_type(&events, "tool_intent_signed", "proposal_id", of);
    assert_eq!((on("p1"), on("p2")), (1, 1), "{events:?}");
    expect_passes(&home, &trace);
}

fn of_type(events: &[Value], name: &str, member: &str, value: &str) -> usize {
    of(events, name).iter().filter(|event| event["payload"][member] == value).count()
}

#[test]
fn a_person_who_is_the_critic_challenges_claims_and_lets_them_stand() {
    let home = team_with_hand("[policy]\nprofile = \"strict\"\n");
    home.recast("critic = \"cleo\"\n", "");
    let task = home.guarded("quiet");
    let mut run = home.command(&["run", "--task", &task, "--json"]).spawn().unwrap();
    let waits = |id: &str| {
        until(&format!("{id} waits"), || {
            home.run(&["task", "show", &task]).stdout.contains(&format!(" {id} approve --reason"))
        });
    };
    let review = |id: &str, verdict: &str| {
        home.run(&["trace", "review", &home.guard_of(&task), id, verdict, "--reason", "because"])
    };
    for id in ["p1", "i1"] {
        waits(id);
        review(id, "approve").expect(0);
    }
    waits("c1");
    // A run that is under way is not altered by that.
    let open = home.run(&["verify", &home.guard_of(&task), "--json"]);
    let open: Value = serde_json::from_str(&open.expect(7).stdout).unwrap();
    assert_eq!(
        (&open["verdict"], &open["integrity"], &open["completeness"]),
        (&json!("fail"), &json!("intact"), &json!("incomplete"))
    );
    review("c1", "block").expect(0);
    review("c1", "approve").refused(4, "G001", "c1 ");
    // It answers in a way that answers nothing, and then as it should.
    for id in ["c2", "c3"] {
        waits(id);
        review(id, "approve").expect(0);
    }
    wait(&mut run);
    let events = home.told(&home.guard_of(&task));
    assert_eq!(of_type(&events, "claim_issued", "revises", "c1"), 1);
    let end = &of(&events, "final_statement_signed")[0]["payload"];
    assert_eq!((&end["claim_ids"], &end["disputed"]), (&json!(["c2", "c3"]), &json!([])));
    expect_passes(&home, &home.guard_of(&task));
}
