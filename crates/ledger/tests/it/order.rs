//! Which line may follow which, against the sentences of the format's page.

use baton_ledger::order::{Order, OutOfOrder};
use baton_ledger::record::Line;
use serde_json::{Value, json};

use crate::codes::base;
use crate::forger::Record;

type Batch = Option<(u32, u32)>;

/// A line at this position.
fn line_at(pos: u64, batch: Batch, commit: Option<u64>) -> Vec<u8> {
    let mut record: Record = base().remove(1).without("batch").without("commit").set("pos", pos);
    if let Some((i, n)) = batch {
        record = record.set("batch", json!([i, n]));
    }
    if let Some(commit) = commit {
        record = record.set("commit", Value::from(commit));
    }
    let mut line = record.line();
    line.pop();
    line
}

/// The page: `batch` [i+1, n] follows [i, n] where i < n, [i, n] with i > 1 follows [i−1, n], both in one write; `commit` is absent or that of
/// the line before.
fn may_follow(before: (Batch, u64), batch: Batch, commit: Option<u64>) -> bool {
    let goes_on = matches!((before.0, batch), (Some((i, n)), Some((j, m))) if i + 1 == j && n == m);
    let must_go_on = before.0.is_some_and(|(i, n)| i < n) || batch.is_some_and(|(i, _)| i > 1);
    (!must_go_on || (goes_on && commit == Some(before.1))) && (commit.is_none() || commit == Some(before.1))
}

#[test]
fn lines_follow_each_other_as_the_page_says() {
    let mut batches: Vec<Batch> = vec![None];
    batches.extend((2..5).flat_map(|n| (1..=n).map(move |i| Some((i, n)))));
    let mut good = 0;
    for before in &batches {
        for before_commit in [None, Some(7)] {
            let line = line_at(9, *before, before_commit);
            let order = Order::after(&Line::parse(&line).unwrap());
            assert_eq!(order.unfinished(), before.filter(|(i, n)| i < n));
            for batch in &batches {
                for commit in [None, Some(6), Some(7), Some(8), Some(9)] {
                    let line = line_at(10, *batch, commit);
                    let line = Line::parse(&line).unwrap();
                    let expected = may_follow((*before, before_commit.unwrap_or(9)), *batch, commit);
                    let found = order.follows(&line);
                    assert_eq!(found.is_ok(), expected, "{before:?} {before_commit:?}, {batch:?} {commit:?}");
                    assert!(found.is_err() || found == Ok(Order::after(&line)));
                    good += u32::from(expected);
                }
            }
        }
    }
    assert!(good > 50, "{good}");
}

#[test]
fn a_journal_starts_with_a_write_and_a_decision() {
    let follows = |batch, commit| {
        let line = line_at(2, batch, commit);
        Order::default().follows(&Line::parse(&line).unwrap()).map(|order| order.unfinished())
    };
    assert_eq!(follows(None, None), Ok(None));
    assert_eq!(follows(Some((1, 2)), None), Ok(Some((1, 2))));
    assert_eq!(follows(Some((2, 2)), None), Err(OutOfOrder::Start));
    assert_eq!(follows(None, Some(1)), Err(OutOfOrder::Write));
}
