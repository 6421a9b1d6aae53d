//! Verifying guarded runs: a thousand of them, a hundred events each, with keys, artifacts and every rule.

use std::sync::Arc;
use std::time::Instant;

use baton_core::event::Durability;
use baton_core::guard::{
    Audit, Bare, Begun, Claim, Execution, FinalStatement, Intent, Outcome, Policy, Profile, Proposal,
    ProposalReview, Review, Risk, Step, Team,
};
use baton_core::{Actor, AgentName, ArtifactRef, Event, KeyGrant, Origin, Payload, Role, Seen, TraceId};
use baton_ledger::body::Body;
use baton_ledger::hash::sha256;
use baton_ledger::key::SecretKey;
use baton_ledger::keyring::LedgerIdentity;
use baton_ledger::seal::{Checked, Proposal as Decision};
use baton_ledger::verify::{Artifacts, OpenSegments, Options, Segments, Verdict, verify_journal};
use baton_store::disk::RealDisk;
use baton_store::journal::segments::SegmentReader;
use baton_store::registry::signed_own;
use baton_store::{ArtifactStore as _, FsJournal, Journal as _, Layout, Options as Keeping, clock};

use crate::fixture::{Closed, temp_dir};
use crate::verify::{artifacts_of, peak_memory};
use crate::{Figure, Goal, median};

const ROUNDS: usize = 3;
const RUNS: usize = 1000;
/// Enough that what the verifier reads ahead is full.
const FEW_RUNS: usize = 100;
/// Tools of one run: with what stands around them, a hundred events.
const TOOLS: usize = 29;
/// What every audit says it found.
const REPORT: &[u8] = b"{\"verdict\":\"pass\"}";
const PARTS: [(&str, Role); 4] =
    [("ada", Role::Planner), ("bob", Role::Executor), ("cleo", Role::Critic), ("dora", Role::Auditor)];

/// A run that is being written.
struct Telling<'a> {
    journal: &'a FsJournal,
    ledger_key: &'a SecretKey,
    keys: &'a [SecretKey; 4],
    trace: TraceId,
    head: Option<Seen>,
}

impl Telling<'_> {
    fn append(&mut self, checked: Checked) {
        let receipts = self.journal.append(Decision { events: vec![checked], decided_on: Vec::new() });
        let receipt = receipts.expect("appended").pop().expect("a receipt");
        self.head = Some(Seen { seq: receipt.seq, hash: receipt.hash });
    }

    fn own(&mut self, payload: Payload) {
        self.append(signed_own(self.trace, payload, self.ledger_key).expect("an event"));
    }

    fn say(&mut self, part: usize, step: &Step, cites: &[&[u8]]) {
        let (name, role) = PARTS[part];
        let event = Event {
            trace: self.trace,
            id: clock::new_event_id(),
            at: clock::now(),
            actor: Actor { agent: name.parse().expect("a name"), role, key: None },
            task: None,
            run: None,
            session: None,
            fence: None,
            payload: step.to_payload(),
            artifacts: cites.iter().map(|content| cited(content)).collect(),
            seen: self.head,
        };
        // Also what need not be: that is how the conductor writes it.
        let key = &self.keys[part];
        let checked = Checked::just_signed(Body::signed(event, key).expect("a body"), key);
        self.append(checked);
    }
}

fn cited(content: &[u8]) -> ArtifactRef {
    let (bytes, media_type) = (content.len() as u64, "application/json".to_owned());
    ArtifactRef { sha256: sha256(content), bytes, media_type, name: "x".to_owned() }
}

fn input(run: usize) -> Vec<u8> {
    format!("{{\"command\":[\"cargo\",\"test\"],\"run\":{run}}}").into_bytes()
}

fn output(run: usize) -> Vec<u8> {
    format!("run {run}\n{}", "test result: ok\n".repeat(60)).into_bytes()
}

/// A closed ledger of so many runs.
fn make(runs: usize) -> Closed {
    eprintln!("making a ledger of {runs} guarded runs …");
    let dir = temp_dir();
    let key = Arc::new(SecretKey::from_seed(&clock::new_seed()));
    let origin: Origin = "baton/bench".parse().expect("an origin");
    let identity = LedgerIdentity { origin, key: *key.public() };
    let keeping = Keeping { durability: Durability::None, ..Keeping::default() };
    let layout = Layout::new(dir.path());
    let journal = FsJournal::create(Arc::new(RealDisk), &layout, identity, &key, keeping).expect("a ledger");
    let keys = [(); 4].map(|()| SecretKey::from_seed(&clock::new_seed()));
    for run in 0..runs {
        let trace = TraceId::Work(clock::new_uuid());
        let mut telling = Telling { journal: &journal, ledger_key: &key, keys: &keys, trace, head: None };
        tell(&mut telling, run);
    }
    let events = baton_store::History::size(&journal);
    journal.close().expect("closed");
    let artifacts = artifacts_of(&layout);
    let contents = (0..runs).flat_map(|run| [input(run), output(run)]).chain([REPORT.to_vec()]);
    for content in contents {
        artifacts.put(&mut content.as_slice()).expect("stored");
    }
    Closed { dir, events, key }
}

fn tell(telling: &mut Telling<'_>, run: usize) {
    let (input, output) = (input(run), output(run));
    let name = |name: &str| -> AgentName { name.parse().expect("a name") };
    let id = |text: &str| text.parse().expect("an id");
    let team =
        Team { planner: name("ada"), executor: name("bob"), critic: name("cleo"), auditor: name("dora") };
    let mut policy = Policy::of(Profile::Default);
    policy.tool_risks.insert("make_it".to_owned(), Risk::Low);
    telling.own(Step::Begun(Begun { policy, team }).to_payload());
    for ((agent, role), key) in PARTS.iter().zip(telling.keys) {
        let (public, roles) = (key.public().to_text(), vec![*role]);
        telling.own(Payload::KeyBound(KeyGrant { key: key.id(), public, agent: name(agent), roles }));
    }
    let proposal = Proposal {
        proposal_id: id("p1"),
        objective: "make the tests pass".to_owned(),
        assumptions: vec!["the tests say what is wanted".to_owned()],
        required_tools: vec!["make_it".to_owned()],
        expected_evidence: vec!["what the tests print".to_owned()],
        revises: None,
    };
    telling.say(0, &Step::Proposed(proposal), &[]);
    let review = ProposalReview {
        proposal_id: id("p1"),
        status: Review::Approved,
        conditions: Vec::new(),
        risk: "little".to_owned(),
        rationale: "it changes nothing outside".to_owned(),
    };
    telling.say(2, &Step::Reviewed(review), &[]);
    for n in 0..TOOLS {
        let intent_id = id(&format!("i{n}"));
        let execution = |artifacts: &[&[u8]], exit_status| Execution {
            intent_id: id(&format!("i{n}")),
            artifacts: artifacts.iter().map(|content| sha256(content)).collect(),
            exit_status,
            failure: None,
        };
        let intent = Intent {
            intent_id,
            proposal_id: id("p1"),
            tool_name: "make_it".to_owned(),
            normalized_input_hash: sha256(&input),
            risk_class: Risk::Low,
            justification: "to see where it stands".to_owned(),
            retry_of: None,
        };
        telling.say(1, &Step::Intended(intent), &[]);
        telling.say(1, &Step::Started(execution(&[&input], None)), &[&input]);
        telling.say(1, &Step::Completed(execution(&[&output], Some(0))), &[&output]);
    }
    let claim = Claim {
        claim_id: id("c1"),
        claim_text: "the tests pass".to_owned(),
        confidence: 0.9,
        evidence: vec![sha256(&output)],
        executions: vec![id("i0")],
        revises: None,
    };
    telling.say(1, &Step::Claimed(claim), &[&output]);
    let statement =
        FinalStatement { claim_ids: vec![id("c1")], verdict_text: "done".to_owned(), disputed: Vec::new() };
    telling.say(1, &Step::Finished(statement), &[]);
    telling.say(3, &Step::AuditStarted(Bare {}), &[]);
    let head = telling.head.expect("a head").hash;
    let audit = Audit { status: Outcome::Pass, report: sha256(REPORT), head };
    telling.say(3, &Step::Audited(audit), &[REPORT]);
    telling.own(Payload::TraceClosed { reason: "completed".to_owned() });
}

pub(crate) fn run() -> Vec<Figure> {
    let (few, many) = (make(FEW_RUNS), make(RUNS));
    let layout = Layout::new(many.dir.path());
    let artifacts = artifacts_of(&layout);
    let rate = |options: &Options, artifacts: Option<&dyn Artifacts>| {
        let open = || -> Result<Box<dyn Segments>, String> {
            Ok(Box::new(SegmentReader::open(Arc::new(RealDisk), &layout).map_err(|e| e.to_string())?))
        };
        let start = Instant::now();
        let report = verify_journal(&open as OpenSegments<'_>, artifacts, options);
        assert_eq!(report.verdict, Verdict::PassWithWarnings, "{:?}", report.findings);
        many.events as f64 / start.elapsed().as_secs_f64()
    };
    let links = Options { links_only: true, threads: 2, ..Options::default() };
    let whole = Options { threads: 2, ..Options::default() };
    let (mut of_links, mut of_whole) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_links.push(rate(&links, None));
        of_whole.push(rate(&whole, Some(&artifacts)));
    }
    let (of_links, of_whole) = (median(of_links), median(of_whole));
    eprintln!("guarded events/s of {}: links only {of_links:.0}, everything {of_whole:.0}", many.events);
    let (memory_few, memory_many) = (peak_memory(&few), peak_memory(&many));
    eprintln!("peak memory: {memory_few:.0} kB of {FEW_RUNS} runs, {memory_many:.0} kB of {RUNS}");
    vec![
        Figure { name: "guarded.verify_vs_links_only", value: of_whole / of_links, goal: Goal::AtLeast(0.3) },
        Figure {
            name: "guarded.memory_1000_runs_vs_100",
            value: memory_many / memory_few,
            goal: Goal::AtMost(1.5),
        },
    ]
}
