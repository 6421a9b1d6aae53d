//! The second pass: looks for ids that came too late for the window of recent ones.

use std::collections::BTreeMap;

use baton_core::EventId;

use super::OpenSegments;
use super::code::Code;
use super::feed::Feed;
use super::join::{Join, Scope};
use super::lines::Lines;
use super::report::Finding;
use crate::record::Line;

/// Looks for the ids that came too late for the window. An honest ledger has none, or a handful.
pub(super) fn second_pass(open: OpenSegments<'_>, scope: Scope, join: &mut Join) -> Result<(), String> {
    let late = std::mem::take(&mut join.late);
    if late.is_empty() || join.has_stopped {
        return Ok(());
    }
    let mut lines_of: BTreeMap<EventId, u64> = BTreeMap::new();
    let mut doubled = Vec::new();
    for (id, line) in late {
        match lines_of.get(&id) {
            Some(_) => doubled.push((id, line)),
            None => drop(lines_of.insert(id, line)),
        }
    }
    let mut feed = Feed::new(open()?);
    let mut number = 0;
    while let Some(chunk) = feed.next()? {
        for line in Lines::split(&chunk).whole {
            let parsed = Line::parse(line).ok().filter(|line| scope.includes(Some(line.trace)));
            let Some(parsed) = parsed else {
                number += u64::from(scope == Scope::Journal);
                continue;
            };
            number += 1;
            if lines_of.get(&parsed.id).is_some_and(|late| *late > number) {
                doubled.extend(lines_of.remove(&parsed.id).map(|line| (parsed.id, line)));
            }
        }
    }
    for (id, line) in doubled {
        let finding = Finding::new(Code::SequenceGap).expected("an id that occurs once").found(id);
        join.findings.push(finding.at(line).event(id));
    }
    Ok(())
}
