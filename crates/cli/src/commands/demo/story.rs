//! What the demo tells, in order. A step that does not do what the story says ends it.

use baton_store::clock;
use serde_json::{Value, json};

use super::stage::{Stage, Told};

/// What the server runs for tasks in CI_PENDING.
const CONFIG: &str = "[ci]\ncommand = \"sh checks.sh\"\n";

const CHECKS: &str = "grep -q '10 MB' limit.txt && echo '1 test, 1 passed'\n";

const BODY: &str = "Refuse uploads over 10 MB, with a message that says the limit.\n";

const SIGNAL: &str = r#"{"protocol":"apm2_agent_exit","version":"1.0.0","phase_completed":"IMPLEMENTATION","exit_reason":"completed",
 "evidence_bundle_ref":"outputs/evidence.yaml","notes":"Uploads over 10 MB are refused"}
"#;

const REVIEW: &str = r#"{"protocol":"apm2_agent_exit","version":"1.0.0","phase_completed":"READY_FOR_REVIEW","exit_reason":"completed",
 "notes":"Read it; fine with me"}
"#;

/// Who plays which part of guarded tasks: the built-in agent, four times.
const TEAM: &str = r#"[agents]
ivy = { harness = "mock" }
joe = { harness = "mock" }
kim = { harness = "mock" }
lou = { harness = "mock" }

[team]
planner = "ivy"
executor = "joe"
critic = "kim"
auditor = "lou"
"#;

/// Runs after every batch of tools that changed something.
const HOOKS: &str = r#"{"hooks": [{"name": "count", "command": ["sh", "-c", "wc -l < mock.txt"],
            "failure_policy": {"type": "warn_continue"}, "timeout_ms": 5000}]}
"#;

/// An agent that is a script: takes a task, gives a sign of life, and is then never heard of again. With a third word it leaves a result.
const AGENT: &str = r#"# usage: sh agent.sh TASK AGENT [OUTCOME]
claim=$(baton task claim "$1" --agent "$2" --json) || exit
fence=${claim##*\"fence\":} fence=${fence%%[,\}]*}
run=${claim##*\"runId\":\"} run=${run%%\"*}
baton task beat "$1" --agent "$2" --fence "$fence" || exit
if [ -n "$3" ]; then
  cat > result.tmp <<END
{"taskId":"$1","agentId":"$2","runId":"$run","fence":$fence,"completedAt":"2026-01-31T09:30:00.000Z",
 "outcome":"$3","summaryRef":"outputs/summary.md","tests":{"total":4,"passed":3,"failed":1},"notes":"one test is left"}
END
  mv result.tmp ".baton/runs/$1/run_result.json"
fi
echo thinking
read -r never
"#;

/// Tells everything.
pub(super) fn tell(stage: &mut Stage<'_>) -> Told<()> {
    open(stage)?;
    let task = work(stage)?;
    finish(stage, &task)?;
    sessions(stage)?;
    deaths(stage)?;
    guarded(stage)?;
    prove(stage, &task)?;
    stage.heading("Done. Nothing of this is left behind.")
}

fn open(stage: &mut Stage<'_>) -> Told<()> {
    stage.heading("A data directory, and somebody who does what is due")?;
    stage.run("baton init -q")?;
    stage.file(".baton/baton.toml", CONFIG)?;
    stage.file(".baton/hooks.json", HOOKS)?;
    stage.file("checks.sh", CHECKS)?;
    stage.file("agent.sh", AGENT)?;
    stage.run("cat .baton/baton.toml checks.sh")?;
    // Whoever owns the data directory decides whether exit signals are taken.
    stage.serve("env AGENT_EXIT_PROTOCOL_ENABLED=true baton serve")
}

fn work(stage: &mut Stage<'_>) -> Told<String> {
    stage.heading("A task is created")?;
    stage.file("task.md", BODY)?;
    let id = stage.run("baton task new \"Limit the upload size\" -f task.md --ready")?;
    let task = id.trim().to_owned();
    stage.run(&format!("cat .baton/tasks/ready/{task}.md"))?;

    stage.heading("Ada claims it; Bob comes too late")?;
    stage.run(&format!("baton task claim {task} --agent ada"))?;
    stage.run_to(5, &format!("baton task claim {task} --agent bob"))?;

    stage.heading("Ada reports progress")?;
    let progress = json!({"taskId": task, "agentId": "ada", "progress": "The limit is checked", "notes": "Tests are next"});
    message(stage, "progress.json", "status.update", &task, ("ada", "baton"), &progress)?;
    stage.run("cat progress.json")?;
    stage.run("baton send progress.json")?;
    stage.run(&format!("baton task show {task}"))?;

    stage.heading("Ada hands the tests over to Bob")?;
    let child = stage.run(&format!("baton task new \"Test the upload limit\" --ready --parent {task}"))?;
    let child = child.trim().to_owned();
    let request = json!({
        "taskId": child, "parentTaskId": task, "fromAgent": "ada", "toAgent": "bob",
        "acceptanceCriteria": ["10 MB is taken, one byte more is refused"],
        "expectedOutputs": ["outputs/summary.md"],
        "contextRefs": ["limit.txt"],
        "dueBy": "2030-01-31T12:00:00.000Z",
    });
    message(stage, "handoff.json", "handoff.request", &child, ("ada", "bob"), &request)?;
    stage.run("baton send handoff.json")?;
    stage.run(&format!("cat .baton/tasks/ready/{child}/inputs/handoff.md"))?;
    let accepted = json!({"taskId": child, "accepted": true});
    message(stage, "accepted.json", "handoff.accepted", &child, ("bob", "ada"), &accepted)?;
    stage.run("baton send accepted.json")?;

    stage.heading("Bob does his part and reports it; a person lets it through")?;
    stage.run(&format!("baton task claim {child} --agent bob"))?;
    stage.file(&format!(".baton/tasks/in-progress/{child}/outputs/summary.md"), "Four cases, all pass.\n")?;
    let report = json!({
        "outcome": "needs_review", "summaryRef": "outputs/summary.md",
        "tests": {"total": 4, "passed": 4, "failed": 0}, "notes": "Four cases, all pass",
    });
    message(stage, "report.json", "completion.report", &child, ("bob", "baton"), &report)?;
    stage.run("baton send report.json")?;
    stage.run(&format!("cat .baton/runs/{child}/run_result.json"))?;
    stage.run(&format!("baton task approve {child}"))?;
    expect_task(stage, &child, "done", "COMPLETED")?;
    Ok(task)
}

fn finish(stage: &mut Stage<'_>, task: &str) -> Told<()> {
    stage.heading("Ada ends her phase with an exit signal")?;
    stage.run("echo 'limit = 10 MB' > limit.txt")?;
    let folder = format!(".baton/tasks/in-progress/{task}");
    stage.file(
        &format!("{folder}/outputs/evidence.yaml"),
        "work: upload-limit\nphase: IMPLEMENTATION\nitems:\n  - name: the limit\n    path: limit.txt\n    kind: config\n",
    )?;
    stage.file("signal.json", SIGNAL)?;
    stage.run("cat signal.json")?;
    stage.run(&format!("baton exit submit --task {task} signal.json"))?;

    stage.heading("CI: the configured command decides")?;
    run_ci(stage, task)?;
    expect_task(stage, task, "review", "READY_FOR_REVIEW")?;

    stage.heading("Review: not by whoever did the work")?;
    stage.run_to(4, &format!("baton task claim {task} --agent ada"))?;
    stage.run(&format!("baton task claim {task} --agent eve"))?;
    stage.file("review.json", REVIEW)?;
    stage.run("cat review.json")?;
    stage.run(&format!("baton exit submit --task {task} review.json"))?;

    stage.heading("A person approves it, and it is done")?;
    stage.run(&format!("baton task approve {task}"))?;
    stage.run(&format!("baton task approve {task}"))?;
    stage.run("baton task ls")?;
    expect_task(stage, task, "done", "COMPLETED")
}

fn run_ci(stage: &mut Stage<'_>, task: &str) -> Told<()> {
    let has_verdict = |stage: &mut Stage<'_>| Ok(show(stage, task)?["phase"] != "CI_PENDING");
    stage.wait("CI gives its verdict", has_verdict)?;
    stage.run(&format!("baton events --task {task} --type ci.reported"))?;
    Ok(())
}

/// The built-in agent: what single words of its prompt say, it does.
fn sessions(stage: &mut Stage<'_>) -> Told<()> {
    stage.heading("Baton drives an agent itself: tools, a hook after them, a report")?;
    stage.run("cat .baton/hooks.json")?;
    let ran = stage.run("baton run \"tool write complete done\" --agent mock -q")?;
    stage.expect(ran.contains("hook  count  succeeded"), "the hook ran after the tools")?;
    let task = last_session(stage)?.1;
    let has_verdict = |stage: &mut Stage<'_>| Ok(show(stage, &task)?["phase"] != "CI_PENDING");
    stage.wait("CI gives its verdict", has_verdict)?;
    stage.run(&format!("baton task approve {task}"))?;

    stage.heading("An agent asks before it does something; a person answers")?;
    let id = stage.run("baton session start --agent mock -q")?;
    let session = id.trim().to_owned();
    stage.run(&format!("baton session send {session} \"permission\""))?;
    stage.wait("the agent asks", |stage| Ok(pending(stage, &session)?.is_some()))?;
    stage.run(&format!("baton session show {session}"))?;
    let request = pending(stage, &session)?.unwrap_or_default();
    stage.run(&format!("baton session permit {session} {request} allow"))?;
    stage
        .wait("the turn ends", |stage| Ok(stage.look(&["session", "show", &session])?["state"] == "ready"))?;
    stage.run(&format!("cat .baton/sessions/{session}/transcript.jsonl"))?;
    stage.run(&format!("baton session stop {session} -q > stopped.txt"))?;

    stage.heading("An agent crashes: how, after which tool, and what it wrote, within a second")?;
    stage.run_to(6, "baton run \"tool crash 3 4\" --agent mock -q")?;
    let (session, task) = last_session(stage)?;
    let shown = stage.run(&format!("baton session show {session}"))?;
    stage.expect(shown.contains("exit code 3, cause crash"), "the end has its cause")?;
    stage.run(&format!("baton task show {task}"))?;
    stage.expect(show(stage, &task)?["attempts"] == 1, "one attempt failed")?;
    stage.run(&format!("baton task move {task} cancelled --reason \"it was only for show\""))?;
    Ok(())
}

/// What a session waits for.
fn pending(stage: &Stage<'_>, session: &str) -> Told<Option<String>> {
    let shown = stage.look(&["session", "show", session])?;
    Ok(shown["pendingPermissions"][0]["id"].as_str().map(str::to_owned))
}

/// The newest session and its task.
fn last_session(stage: &Stage<'_>) -> Told<(String, String)> {
    let listed = stage.look(&["session", "ls"])?;
    let last = &listed["sessions"][0];
    Ok((text(last, "id"), text(last, "taskId")))
}

fn deaths(stage: &mut Stage<'_>) -> Told<()> {
    stage.heading("From now on an agent that is silent for two seconds is taken for dead")?;
    stage.stop_server()?;
    stage.serve("baton serve --set scheduler.heartbeat_ttl=2s")?;

    stage.heading("An agent dies without a word: its task is ready again")?;
    stage.run("cat agent.sh")?;
    let id = stage.run("baton task new \"Write the release notes\" --ready")?;
    let task = id.trim().to_owned();
    let agent = stage.start(&format!("sh agent.sh {task} gus"))?;
    stage.kill_when_thinking(agent)?;
    stage.wait("the task of a dead agent is ready again", |stage| {
        Ok(show(stage, &task)?["status"] == "ready")
    })?;
    stage.run(&format!("baton events --task {task} --type task.transitioned"))?;
    stage.run(&format!("cat .baton/runs/{task}/run.json"))?;
    stage.run(&format!("baton task show {task}"))?;
    stage.expect(show(stage, &task)?["attempts"] == 1, "one attempt failed")?;

    stage.heading("Another one leaves a result before it dies: its work goes to review")?;
    let id = stage.run("baton task new \"Translate the messages\" --ready")?;
    let task = id.trim().to_owned();
    let agent = stage.start(&format!("sh agent.sh {task} hal partial"))?;
    stage.kill_when_thinking(agent)?;
    stage.wait("the result of a dead agent counts", |stage| Ok(show(stage, &task)?["status"] == "review"))?;
    let moved =
        stage.run(&format!("baton events --task {task} --type task.completed --type task.transitioned"))?;
    stage.expect(moved.contains("task.completed"), "the result was taken in")?;
    stage.stop_server()?;
    stage.run("baton")?;
    Ok(())
}

/// Four agents, each with a key of its own. The critic blocks what is `forbidden`, and challenges the first claim where the task is `doubtful`.
fn guarded(stage: &mut Stage<'_>) -> Told<()> {
    stage.heading("A guarded task: one plans, one works, one doubts, one verifies, and each signs")?;
    stage.file("team.toml", TEAM)?;
    stage.run("cat team.toml && cat team.toml >> .baton/baton.toml")?;
    let title = "edit forbidden.txt edit good.txt complete done doubtful";
    let id = stage.run(&format!("baton task new \"{title}\" --guarded --ready"))?;
    let task = id.trim().to_owned();
    let told = stage.run(&format!("baton run --task {task} -q"))?;
    for words in ["kim blocks i1", "instead of i1", "kim challenges c1", "joe revises c1 as c2", ": pass"] {
        stage.expect(told.contains(words), words)?;
    }

    stage.heading("What was blocked did not run, and that it was tried is recorded")?;
    stage.run_to(1, "test -e forbidden.txt")?;
    stage.run(&format!("baton events --task {task} --type guard.refused"))?;

    stage.heading("The run keeps every rule, whoever asks; its claims are attested to others")?;
    let verified = stage.look(&["events", "--task", &task, "--type", "task.verified"])?;
    let trace = text(&verified["payload"], "trace");
    stage.run(&format!("baton trace checkpoint {trace} > head.txt && cat .baton/keys/*.pub > keys.txt"))?;
    let line = format!("baton verify {trace} --checkpoint head.txt --trust keys.txt");
    let verified = stage.run(&line)?;
    stage.expect(verified.contains("guarded       completed"), "the run came to its end")?;
    stage.run(&format!("baton trace export {trace} --format in-toto -o claims.jsonl"))?;
    stage.run("tail -n 1 claims.jsonl | grep -o '\"payload\":\"[^\"]*' | cut -d '\"' -f 4 | base64 -d | grep -o '\"predicateType.*'")?;
    Ok(())
}

fn prove(stage: &mut Stage<'_>, task: &str) -> Told<()> {
    stage.heading("Everything that happened to the first task, exported and verified")?;
    stage.run(&format!("baton trace show {task}"))?;
    stage.run(&format!("baton trace export {task} -o task.bundle"))?;
    let verified = stage.run("baton verify task.bundle")?;
    stage.expect(verified.contains("intact"), "the trace is intact")?;

    stage.heading("One event, proved from a checkpoint alone")?;
    stage.run("baton trace checkpoint > kept.txt && cat kept.txt")?;
    let event = stage.look(&["events", "--task", task, "--type", "AgentSessionCompleted"])?;
    stage.run(&format!("baton trace prove {} > event.proof", text(&event, "id")))?;
    stage.run("baton verify --proof event.proof --checkpoint kept.txt --trust keys.txt")?;

    stage.heading("Somebody turns the verdict of CI around in a copy")?;
    stage.run("cp -r .baton copy")?;
    stage.run(
        "sed 's/\"passed\":true/\"passed\":false/' .baton/events/0*.jsonl > copy/events/$(ls .baton/events)",
    )?;
    stage.run_to(7, "baton verify copy --checkpoint kept.txt")?;

    stage.heading("Or cuts off the end, and the checkpoints beside it: only the one that was kept tells")?;
    stage.run("cp -r .baton cut && rm -r cut/checkpoints")?;
    stage.run("sed '$d' .baton/events/0*.jsonl > cut/events/$(ls .baton/events)")?;
    stage.run_to(7, "baton verify cut --checkpoint kept.txt -q")?;
    Ok(())
}

/// Writes one message of an agent.
fn message(
    stage: &mut Stage<'_>,
    file: &str,
    kind: &str,
    task: &str,
    (from, to): (&str, &str),
    payload: &Value,
) -> Told<()> {
    let now = clock::now();
    stage.file(
        file,
        &format!(
            "{{\n  \"protocol\": \"aof\", \"version\": 1, \"type\": \"{kind}\", \"taskId\": \"{task}\",\n  \
             \"fromAgent\": \"{from}\", \"toAgent\": \"{to}\", \"sentAt\": \"{now}\",\n  \"payload\": {payload}\n}}\n"
        ),
    )
}

fn show(stage: &Stage<'_>, task: &str) -> Told<Value> {
    stage.look(&["task", "show", task])
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn expect_task(stage: &Stage<'_>, task: &str, status: &str, phase: &str) -> Told<()> {
    let now = show(stage, task)?;
    let holds = now["status"] == status && now["phase"] == phase;
    stage.expect(holds, &format!("{task} is in {status}, {phase}"))
}
