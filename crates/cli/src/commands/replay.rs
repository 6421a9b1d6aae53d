//! `baton replay`: the state rebuilt from the first line on, compared with what the index says.

use std::collections::BTreeMap;

use baton_core::task::{Board, Task};
use baton_core::{Digest, TraceId};
use baton_ledger::body::KeyEvent;
use baton_ledger::hash::leaf;
use baton_ledger::keyring::{KeyRing, LedgerIdentity};
use baton_ledger::merkle::{Frontier, stored_index};
use baton_ledger::record::Line;
use baton_ledger::verify::identity;
use baton_store::journal::recover::Tail;
use baton_store::tasks::fold::Fact;
use baton_store::{History as _, Visit};
use serde_json::json;

use crate::args::Replay;
use crate::commands::Ended;
use crate::commands::events::parse;
use crate::context::Context;
use crate::error::{CliError, Code, Stop};
use crate::exit::Exit;
use crate::lines::{Lines, Next};
use crate::tasks::read_board;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::text::{count, printable};

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &Replay) -> Ended {
    let visit = ctx.visit()?;
    let size = visit.reader.size();
    let until = args.until.unwrap_or(size);
    if until > size {
        let what = format!("the ledger has {}; there is no position {until}", count(size, "event"));
        return Err(CliError::new(Code::NoPosition, what).hint("baton events").into());
    }
    let mut differences = Differences::default();
    let state = rebuild(&visit, until, &mut differences)?;
    if until == size {
        if let Tail::Damaged { line, why } = &visit.reader.tail {
            differences.push(format!("line {line} does not fit: {why}"));
        }
        compare_live(&visit, &state, &mut differences)?;
    } else {
        compare_past(&visit, &state, &mut differences)?;
    }
    report(ui, &state, &differences)
}

fn report(ui: &mut Ui, state: &State, differences: &Differences) -> Ended {
    let equal = differences.list.is_empty();
    let (root, traces) = (state.tree.root(), state.traces.len() as u64);
    if ui.json {
        ui.object(&json!({
            "v": 1,
            "equal": equal,
            "pos": state.tree.size(),
            "differences": differences.list,
            "traces": traces,
            "root": root.to_string(),
        }))?;
    } else {
        let events = count(state.tree.size(), "event");
        ui.line(&format!("replayed {events} in {}", count(traces, "trace")))?;
        ui.line(&format!("root {root}"))?;
        for difference in &differences.list {
            ui.line(&format!("differs: {}", printable(difference)))?;
        }
        let (mark, verdict) = if equal {
            (Mark::Good, "equal to the live state")
        } else {
            (Mark::Bad, "not equal to the live state")
        };
        ui.line(&ui.paint.mark(mark, verdict))?;
        if !equal {
            ui.hint("baton verify");
        }
    }
    Ok(if equal { Exit::Ok } else { Exit::VerificationFailed })
}

/// What does not agree, up to a bound.
#[derive(Debug, Default)]
struct Differences {
    list: Vec<String>,
}

const DIFFERENCES_MAX: usize = 100;

impl Differences {
    fn push(&mut self, difference: String) {
        if self.list.len() < DIFFERENCES_MAX {
            self.list.push(difference);
        }
    }

    fn compare<T: Copy + PartialEq + std::fmt::Display>(&mut self, what: &str, rebuilt: T, live: T) {
        if rebuilt != live {
            self.push(format!("{what}: rebuilt {rebuilt}, live {live}"));
        }
    }
}

/// A trace as far as it was replayed.
#[derive(Debug)]
struct Rebuilt {
    seq: u64,
    head: Digest,
    last_pos: u64,
    is_closed: bool,
    keys: KeyRing,
}

/// Everything that the journal's lines lead to.
#[derive(Debug, Default)]
struct State {
    ledger: Option<LedgerIdentity>,
    traces: BTreeMap<TraceId, Rebuilt>,
    tree: Frontier,
    board: Board,
}

impl State {
    /// Takes the next line in.
    fn fold(&mut self, line: &Line<'_>, differences: &mut Differences) {
        if self.ledger.is_none() {
            match identity(line) {
                Ok(ledger) => self.ledger = Some(ledger),
                Err(why) => differences.push(format!("line {}: {why}", line.pos)),
            }
        }
        let trace = self.traces.entry(line.trace).or_insert_with(|| Rebuilt {
            seq: 0,
            head: Digest::ZERO,
            last_pos: 0,
            is_closed: false,
            keys: KeyRing::default(),
        });
        if line.seq != trace.seq + 1 || line.prev != trace.head || trace.is_closed {
            differences.push(format!("line {} does not follow the end of {}", line.pos, line.trace));
        }
        (trace.seq, trace.head, trace.last_pos) = (line.seq, line.hash, line.pos);
        trace.is_closed |= line.event_type == "trace.closed";
        if matches!(line.event_type, "key_bound" | "key_rotated" | "key_revoked") {
            let event = line.to_payload().ok().as_ref().and_then(KeyEvent::of);
            let applied = match (&self.ledger, event) {
                (Some(ledger), Some(event)) => trace
                    .keys
                    .apply(ledger, &event, line.sig.map(|sig| sig.key))
                    .map_err(|fault| fault.to_string()),
                _ => Err("the key event does not read".to_owned()),
            };
            if let Err(why) = applied {
                differences.push(format!("line {}: {why}", line.pos));
            }
        }
        self.tree.push(leaf(&line.hash), |_| {});
        self.fold_task(line, differences);
    }
}

impl State {
    /// Takes in what a line says about a task.
    fn fold_task(&mut self, line: &Line<'_>, differences: &mut Differences) {
        let applied = Fact::of(line).and_then(|fact| {
            let at = fact.at;
            self.board.apply(fact.task.as_deref(), &fact.payload, at)
        });
        if let Err(why) = applied {
            differences.push(format!("line {}: {why}", line.pos));
        }
    }
}

fn rebuild(visit: &Visit, until: u64, differences: &mut Differences) -> Result<State, Stop> {
    let mut state = State::default();
    let mut lines = Lines::open(&visit.layout, 1)?;
    while state.tree.size() < until {
        let stored = match lines.next()? {
            Next::Line(stored) => stored,
            Next::Bad { pos, why } => {
                differences.push(format!("line {pos} does not read: {why}"));
                break;
            }
            Next::End => {
                differences.push(format!("the journal ends after {}", count(state.tree.size(), "event")));
                break;
            }
        };
        let line = parse(&stored)?;
        state.fold(&line, differences);
        let live = visit.reader.node(stored_index(0, line.pos - 1))?;
        differences.compare(&format!("leaf of line {}", line.pos), leaf(&line.hash), live);
    }
    Ok(state)
}

/// Compares with everything that the index says now.
fn compare_live(visit: &Visit, state: &State, differences: &mut Differences) -> Result<(), Stop> {
    let live = &visit.reader;
    differences.compare("size", state.tree.size(), live.size());
    differences.compare("root", state.tree.root(), live.tree()?.root());
    if state.ledger.as_ref() != Some(&live.ledger()) {
        differences.push("the ledger's name or key".to_owned());
    }
    for (id, trace) in &state.traces {
        let Some(summary) = live.trace(*id) else {
            differences.push(format!("{id}: rebuilt, and unknown to the live state"));
            continue;
        };
        differences.compare(&format!("{id}: number of events"), trace.seq, summary.seq);
        differences.compare(&format!("{id}: head"), trace.head, summary.head);
        differences.compare(&format!("{id}: position of the last event"), trace.last_pos, summary.last_pos);
        differences.compare(&format!("{id}: closed"), trace.is_closed, summary.is_closed);
        match live.keys(*id) {
            Ok(keys) if keys == trace.keys => {}
            Ok(_) => differences.push(format!("{id}: keys")),
            Err(error) => differences.push(format!("{id}: keys: {error}")),
        }
    }
    compare_tasks(visit, &state.board, differences);
    for summary in live.traces().iter().filter(|summary| !state.traces.contains_key(&summary.trace)) {
        differences.push(format!("{}: in the live state, and not in the journal", summary.trace));
    }
    Ok(())
}

/// Compares with the tasks that the next command would start from.
fn compare_tasks(visit: &Visit, rebuilt: &Board, differences: &mut Differences) {
    let live = match read_board(visit) {
        Ok(saved) => saved.board,
        Err(_) => return differences.push("the tasks of the live state do not read".to_owned()),
    };
    let live_of = |id| live.get(id).map(Task::to_json);
    for task in rebuilt.tasks() {
        match live.get(&task.id) {
            None => differences.push(format!("{}: rebuilt, and unknown to the live state", task.id)),
            Some(other) if other == task => {}
            Some(_) => {
                let (mine, other) = (task.to_json(), live_of(&task.id).unwrap_or_default());
                let keys: Vec<&str> =
                    mine.keys().filter(|key| mine.get(*key) != other.get(*key)).map(String::as_str).collect();
                differences.push(format!(
                    "{}: {}",
                    task.id,
                    if keys.is_empty() { "inner state".into() } else { keys.join(", ") }
                ));
            }
        }
    }
    for task in live.tasks().filter(|task| rebuilt.get(&task.id).is_none()) {
        differences.push(format!("{}: in the live state, and not in the journal", task.id));
    }
}

/// Compares an earlier state with what the index still says about that time: the tree's root, and the event at each head's position.
fn compare_past(visit: &Visit, state: &State, differences: &mut Differences) -> Result<(), Stop> {
    let live = Frontier::load(state.tree.size(), &mut |index| visit.reader.node(index))?;
    differences.compare("root", state.tree.root(), live.root());
    for (id, trace) in &state.traces {
        let lines = visit.reader.read(trace.last_pos, 1);
        let head = lines.ok().and_then(|lines| Some(parse(lines.first()?).ok()?.hash));
        if head != Some(trace.head) {
            differences.push(format!("{id}: the event at position {} is another one", trace.last_pos));
        }
    }
    Ok(())
}
