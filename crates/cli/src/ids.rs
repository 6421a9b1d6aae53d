//! Names that people type: any unique beginning of an id is enough, with or without its prefix.

use baton_core::{EventId, TraceId};
use baton_store::{History, Visit};

use crate::error::{CliError, Code, Stop};
use crate::limits::CANDIDATES_MAX;
use crate::task_names;
use crate::tasks::read_board;

/// Characters of an id that tell traces of one data directory apart for people: the prefix and the whole of its time.
const SHORT_CHARS: usize = 17;

/// An id as it stands in a row of events.
pub(crate) fn short(trace: TraceId) -> String {
    trace.to_string().chars().take(SHORT_CHARS).collect()
}

/// The trace that a text names.
pub(crate) fn trace(journal: &dyn History, text: &str) -> Result<TraceId, CliError> {
    let all = journal.traces();
    if let Ok(id) = text.parse::<TraceId>() {
        return all.iter().any(|known| known.trace == id).then_some(id).ok_or_else(|| no_trace(text));
    }
    if !could_be_prefix(text, "trc_") {
        return Err(no_trace(text).cause("an id is trc_ and hex digits; any unique beginning of it will do"));
    }
    let wanted = format!("trc_{}", text.strip_prefix("trc_").unwrap_or(text));
    let found: Vec<TraceId> =
        all.iter().map(|known| known.trace).filter(|id| id.to_string().starts_with(&wanted)).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(no_trace(text)),
        _ => Err(ambiguous(text, found.iter().map(ToString::to_string).collect())),
    }
}

/// The trace that a text names, by its own id or by that of its task.
pub(crate) fn trace_of(visit: &Visit, text: &str) -> Result<TraceId, CliError> {
    let of_task = || -> Result<TraceId, CliError> {
        let board = read_board(visit).map_err(unread)?.board;
        let id = task_names::find(&board, text)?;
        board.get(&id).map(|task| task.trace).ok_or_else(|| no_trace(text))
    };
    if text.starts_with("TASK-") {
        return of_task();
    }
    trace(&visit.reader, text).or_else(|error| match of_task() {
        Ok(found) if error.code == Code::NoTrace => Ok(found),
        _ => Err(error),
    })
}

/// What is wrong with the tasks, where they are only looked at.
fn unread(stop: Stop) -> CliError {
    match stop {
        Stop::Error(error) => *error,
        Stop::PipeClosed | Stop::HandOver(_) => CliError::new(Code::TaskFiles, "the tasks cannot be read"),
    }
}

/// The event that a text names, and its position.
pub(crate) fn event(visit: &Visit, text: &str) -> Result<(EventId, u64), CliError> {
    if let Ok(id) = text.parse::<EventId>() {
        return visit.reader.find(id)?.map(|pos| (id, pos)).ok_or_else(|| no_event(text));
    }
    if !could_be_prefix(text, "evt_") {
        return Err(no_event(text).cause("an id is evt_ and hex digits; any unique beginning of it will do"));
    }
    let wanted = format!("evt_{}", text.strip_prefix("evt_").unwrap_or(text));
    let found = visit.reader.find_prefix(&wanted, CANDIDATES_MAX + 1)?;
    match found[..] {
        [one] => Ok(one),
        [] => Err(no_event(text)),
        _ => Err(ambiguous(text, found.iter().map(|(id, _)| id.to_string()).collect())),
    }
}

/// Whether a text can be the beginning of an id; nothing else may decide by accident, least of all nothing at all.
fn could_be_prefix(text: &str, prefix: &str) -> bool {
    let rest = text.strip_prefix(prefix).unwrap_or(text);
    !rest.is_empty() && rest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f' | b'-'))
}

fn no_trace(text: &str) -> CliError {
    CliError::new(Code::NoTrace, format!("no trace {text}")).hint("baton trace ls")
}

fn no_event(text: &str) -> CliError {
    CliError::new(Code::NoEvent, format!("no event {text}")).hint("baton events")
}

fn ambiguous(text: &str, mut found: Vec<String>) -> CliError {
    let is_more = found.len() > CANDIDATES_MAX;
    found.truncate(CANDIDATES_MAX);
    let mut error = CliError::new(Code::Ambiguous, format!("{text} names more than one"));
    for candidate in found {
        error = error.cause(candidate);
    }
    if is_more {
        error = error.cause("… and more");
    }
    error.hint("type more characters of the one you mean")
}

/// The length of the shortest beginning that is unique among sorted ids, for each of them.
pub(crate) fn unique_lengths(ids: &[String]) -> Vec<usize> {
    let common = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_unstable_by_key(|i| &ids[*i]);
    let mut lengths = vec![0; ids.len()];
    for (rank, i) in order.iter().enumerate() {
        let before = rank.checked_sub(1).map_or(0, |rank| common(&ids[order[rank]], &ids[*i]));
        let after = order.get(rank + 1).map_or(0, |other| common(&ids[*other], &ids[*i]));
        lengths[*i] = (before.max(after) + 1).min(ids[*i].len());
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_unique_beginning_is_found_in_any_order() {
        let ids = ["trc_b1", "ledger", "trc_a2", "trc_a1"].map(str::to_owned);
        assert_eq!(unique_lengths(&ids), [5, 1, 6, 6]);
        assert_eq!(unique_lengths(&["x".to_owned()]), [1]);
    }

    #[test]
    fn only_the_beginning_of_an_id_is_taken_for_one() {
        for good in ["0", "trc_0192-ab", "ffff"] {
            assert!(could_be_prefix(good, "trc_"), "{good}");
        }
        for bad in ["", "trc_", "evt_01", "xyz", "01*", "../x", "trc_ABC"] {
            assert!(!could_be_prefix(bad, "trc_"), "{bad}");
        }
    }
}
