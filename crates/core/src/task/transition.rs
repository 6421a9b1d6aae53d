//! The two tables of a task: what may follow which status, and where each phase waits. `statuses.md` is their fixture.

use super::{Phase, Status};

impl Status {
    /// Where a task may go from here. The same status again is no transition at all.
    pub fn successors(self) -> &'static [Status] {
        use Status::{Backlog, Blocked, Cancelled, Deadletter, Done, InProgress, Ready, Review};
        match self {
            Backlog => &[Ready, Blocked, Cancelled],
            Ready => &[InProgress, Blocked, Deadletter, Cancelled],
            InProgress => &[Review, Ready, Blocked, Deadletter, Cancelled],
            Blocked => &[Ready, Review, Deadletter, Cancelled],
            Review => &[Done, Ready, InProgress, Blocked, Cancelled],
            Deadletter => &[Ready],
            Done | Cancelled => &[],
        }
    }

    pub fn may_become(self, to: Status) -> bool {
        self.successors().contains(&to)
    }

    /// Whether nothing follows.
    pub fn is_final(self) -> bool {
        self.successors().is_empty()
    }

    /// Whether someone should be told when a task gets here.
    pub fn is_notable(self) -> bool {
        match self {
            Status::Review | Status::Blocked | Status::Done | Status::Deadletter => true,
            Status::Backlog | Status::Ready | Status::InProgress | Status::Cancelled => false,
        }
    }
}

impl Phase {
    /// The status in which a task of this phase waits for whoever goes on with it.
    pub fn waits_in(self) -> Status {
        match self {
            Phase::Draft | Phase::Implementation => Status::Ready,
            Phase::CiPending | Phase::ReadyForReview | Phase::Review | Phase::ReadyForMerge => Status::Review,
            Phase::Completed => Status::Done,
            Phase::Blocked => Status::Blocked,
        }
    }

    /// Whether an agent may take the phase up where it waits. CI is Baton's own; what has ended or is stuck is nobody's.
    pub fn is_claimable(self) -> bool {
        match self {
            Phase::Draft
            | Phase::Implementation
            | Phase::ReadyForReview
            | Phase::Review
            | Phase::ReadyForMerge => true,
            Phase::CiPending | Phase::Completed | Phase::Blocked => false,
        }
    }

    /// Whether the phase is for others than those who made what it is about.
    pub fn is_judgement(self) -> bool {
        matches!(self, Phase::ReadyForReview | Phase::Review | Phase::ReadyForMerge)
    }

    /// The phase whose worker may not do this one.
    pub fn before(self) -> Option<Phase> {
        match self {
            Phase::ReadyForReview => Some(Phase::Implementation),
            Phase::Review => Some(Phase::ReadyForReview),
            Phase::ReadyForMerge => Some(Phase::Review),
            Phase::Draft | Phase::Implementation | Phase::CiPending | Phase::Completed | Phase::Blocked => {
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The cells of every row of the n-th table of the page.
    fn rows(table: usize) -> Vec<Vec<String>> {
        let page = include_str!("statuses.md");
        let mut tables = vec![];
        for line in page.lines() {
            match line.strip_prefix('|') {
                Some(row) if !row.contains("---") => {
                    let cells = row.trim_end_matches('|').split('|').map(|cell| cell.trim().to_owned());
                    let last: &mut Vec<Vec<String>> = tables.last_mut().expect("a heading comes first");
                    last.push(cells.collect());
                }
                Some(_) => {}
                None if line.starts_with('#') => tables.push(vec![]),
                None => {}
            }
        }
        tables.swap_remove(table).split_off(1)
    }

    #[test]
    fn every_pair_of_statuses_is_in_the_table() {
        let mut listed = BTreeSet::new();
        let mut froms = Vec::new();
        for row in rows(0) {
            let from: Status = row[0].parse().unwrap();
            froms.push(from);
            for to in row[1].split(", ").filter(|to| !to.is_empty()) {
                assert!(listed.insert((from, to.parse::<Status>().unwrap())), "{from} → {to} stands twice");
            }
        }
        froms.sort();
        assert_eq!(froms, Status::ALL, "one row for each status");
        for from in Status::ALL {
            for to in Status::ALL {
                let is_listed = listed.contains(&(*from, *to));
                assert_eq!(from.may_become(*to), is_listed, "{from} → {to}");
            }
        }
    }

    #[test]
    fn every_phase_is_in_the_table() {
        let mut phases = Vec::new();
        for row in rows(1) {
            let phase: Phase = row[0].parse().unwrap();
            assert_eq!(phase.waits_in().as_str(), row[1], "{phase}");
            assert_eq!(if phase.is_claimable() { "yes" } else { "no" }, row[2], "{phase}");
            phases.push(phase);
        }
        phases.sort();
        assert_eq!(phases, Phase::ALL, "one row for each phase");
    }
}
