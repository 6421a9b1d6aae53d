//! Wishes that are granted together: each as if it had come alone, whatever the others are; their files follow.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use baton_core::TaskId;
use baton_core::task::decide::{Edit, Log, Move, New, operator};
use baton_core::task::{Refusal, Status};
use baton_runtime::Fault;
use baton_runtime::engine::{Wish, Wished};
use serde_json::{Map, json};

use crate::support::Bench;

fn wished(wish: Wish) -> Wished {
    Wished { wish, by: operator(), moment: None, revs: None }
}

fn to(task: &TaskId, to: Status) -> Wished {
    wished(Wish::Move(Move { task: task.clone(), to, reason: "why".into() }))
}

fn log(task: &TaskId, text: &str) -> Wished {
    wished(Wish::Log(Log { task: task.clone(), text: text.into() }))
}

#[test]
fn each_wish_gets_its_own_answer_in_the_order_in_which_they_came() {
    let bench = Bench::new();
    let (a, b, c, e) = (bench.ready("a"), bench.ready("b"), bench.ready("c"), bench.ready("e"));
    let missing: TaskId = "TASK-2026-01-01-001".parse().unwrap();
    let depends = Map::from_iter([("dependsOn".to_owned(), json!([a.as_str()]))]);
    let wishes = [
        to(&a, Status::Blocked),
        to(&b, Status::Done),
        log(&missing, "nobody hears this"),
        to(&c, Status::Blocked),
        // It is there already, which is nothing to record.
        to(&e, Status::Ready),
        // The same task again: decided on what the first one made of it.
        to(&a, Status::Ready),
        to(&a, Status::Ready),
        wished(Wish::Create(Box::new(New::titled("d")))),
        wished(Wish::Create(Box::new(New::titled("e")))),
        wished(Wish::Edit(Edit { task: c.clone(), fields: depends, file: None })),
        log(&c, "a line"),
    ];
    let granted = bench.engine.grant_all(&wishes);
    let status = |n: usize| granted[n].as_ref().map(|(task, _)| task.status).map_err(ToString::to_string);
    assert_eq!(granted.len(), wishes.len());
    assert_eq!((status(0), status(3)), (Ok(Status::Blocked), Ok(Status::Blocked)));
    assert!(matches!(&granted[1], Err(Fault::Refused(_))), "not by hand: {:?}", granted[1]);
    assert!(matches!(&granted[2], Err(Fault::Refused(Refusal::NotFound(id))) if *id == missing));
    assert_eq!((status(4), status(5), status(6)), (Ok(Status::Ready), Ok(Status::Ready), Ok(Status::Ready)));
    let ids: Vec<_> = [7, 8].map(|n| granted[n].as_ref().unwrap().0.id.clone()).into();
    assert_ne!(ids[0], ids[1], "each has a number of its own");
    assert_eq!(granted[9].as_ref().unwrap().0.depends_on, std::slice::from_ref(&a));
    assert!(granted[10].as_ref().unwrap().1.log.contains("a line"));
    // What was answered is what the ledger says.
    let again = bench.open_again();
    for id in [&a, &b, &c, &ids[0], &ids[1]] {
        assert_eq!(again.task(id).unwrap().0, bench.task(id), "{id}");
    }
}

#[test]
fn a_task_is_not_blocked_by_what_is_done_in_the_same_moment() {
    let bench = Bench::new();
    let first = bench.ready("first");
    let new = New { status: Status::Ready, depends_on: vec![first.clone()], ..New::titled("second") };
    let second = bench.engine.create(&new).unwrap().0.id;
    bench.engine.claim(&first, &"swe-backend".parse().unwrap(), None, None).unwrap();
    bench.engine.transition(&Move { task: first.clone(), to: Status::Review, reason: "x".into() }).unwrap();
    let block = Move { task: second.clone(), to: Status::Blocked, reason: "dependencies".into() };
    let granted = bench.engine.grant_all(&[to(&first, Status::Done), wished(Wish::Move(block))]);
    assert_eq!(granted[0].as_ref().unwrap().0.status, Status::Done);
    let refused = matches!(&granted[1], Err(Fault::Refused(Refusal::Field { field: "reason", .. })));
    assert!(refused, "it would never end: {:?}", granted[1]);
    assert_eq!(bench.task(&second).status, Status::Ready);
}

#[test]
fn files_follow_what_was_granted_together_and_whoever_needs_them_first_gets_them_first() {
    let bench = Bench::new();
    let ids: Vec<TaskId> = (0..20).map(|n| bench.ready(&format!("task {n}"))).collect();
    let wishes: Vec<Wished> = ids.iter().map(|id| to(id, Status::Blocked)).collect();
    let is_there = |id: &TaskId, status: Status| bench.at(&format!("tasks/{status}/{id}.md")).is_file();
    assert!(bench.engine.grant_all(&wishes).iter().all(Result::is_ok));
    assert_eq!(ids.iter().filter(|id| is_there(id, Status::Blocked)).count(), 0, "later");
    // Whoever is asked about one task writes that one's; a step writes some; a look at everything writes all.
    bench.engine.log(&Log { task: ids[19].clone(), text: "a line".into() }).unwrap();
    assert!(is_there(&ids[19], Status::Blocked));
    assert!(bench.engine.write_late_files(5, Duration::from_secs(3600)), "none has waited for so long");
    assert_eq!(ids.iter().filter(|id| is_there(id, Status::Blocked)).count(), 1);
    assert!(bench.engine.write_files(5), "more wait");
    assert_eq!(ids.iter().filter(|id| is_there(id, Status::Blocked)).count(), 6);
    bench.engine.reconcile().unwrap();
    assert!(ids.iter().all(|id| is_there(id, Status::Blocked) && !is_there(id, Status::Ready)));
    assert!(!bench.engine.write_files(5), "nothing waits");
    // An engine that dies before its files are written leaves them to the next.
    let wishes: Vec<Wished> = ids.iter().map(|id| to(id, Status::Ready)).collect();
    assert!(bench.engine.grant_all(&wishes).iter().all(Result::is_ok));
    let again = bench.open_again();
    assert!(ids.iter().all(|id| is_there(id, Status::Ready) && !is_there(id, Status::Blocked)));
    assert_eq!(again.take_notices(), Vec::<String>::new());
    assert!(bench.quarantined().is_empty());
}

#[test]
fn what_a_person_saves_before_the_files_are_written_is_taken_in() {
    let bench = Bench::new();
    let (a, b) = (bench.ready("a"), bench.ready("b"));
    assert!(
        bench.engine.grant_all(&[to(&a, Status::Blocked), to(&b, Status::Blocked)]).iter().all(Result::is_ok)
    );
    let old = bench.at(&format!("tasks/ready/{a}.md"));
    let text = fs::read_to_string(&old).unwrap();
    fs::write(&old, text.replace("title: a", "title: better")).unwrap();
    let granted = bench.engine.grant_all(&[log(&a, "one"), log(&b, "two")]);
    assert_eq!(granted[0].as_ref().unwrap().0.title, "better");
    while bench.engine.write_files(1) {}
    assert_eq!(bench.task(&a).status, Status::Blocked, "the old place is no wish to go back");
    assert!(!old.exists());
    let text = fs::read_to_string(bench.at(&format!("tasks/blocked/{a}.md"))).unwrap();
    assert!(text.contains("title: better"), "{text}");
}

#[test]
fn of_many_who_ask_of_the_same_revision_one_gets_it() {
    const ASKERS: usize = 16;
    let bench = Bench::new();
    let (id, other) = (bench.ready("wanted"), bench.ready("other"));
    let rev = bench.task(&id).rev();
    let granted = AtomicUsize::new(0);
    thread::scope(|scope| {
        for n in 0..ASKERS {
            let (bench, id, other, granted) = (&bench, &id, &other, &granted);
            scope.spawn(move || {
                let first = Wished { revs: Some(vec![rev]), ..log(id, &format!("asker {n}")) };
                // Beside another wish, and alone.
                let wishes = [first, log(other, "beside it")];
                let answers = bench.engine.grant_all(&wishes[..1 + n % 2]);
                match &answers[0] {
                    Ok(_) => drop(granted.fetch_add(1, Ordering::Relaxed)),
                    Err(Fault::Changed { rev: now, .. }) => assert_eq!(*now, rev + 1),
                    Err(fault) => panic!("{fault}"),
                }
            });
        }
    });
    assert_eq!(granted.into_inner(), 1);
    assert_eq!(bench.task(&id).rev(), rev + 1);
}

#[test]
fn a_decision_that_somebody_else_overtook_is_made_anew() {
    const ASKERS: usize = 8;
    const EACH: usize = 20;
    let bench = Bench::new();
    let ids: Vec<TaskId> = (0..4).map(|n| bench.ready(&format!("task {n}"))).collect();
    thread::scope(|scope| {
        for n in 0..ASKERS {
            let (bench, ids) = (&bench, &ids);
            scope.spawn(move || {
                for round in 0..EACH {
                    let text = format!("{n}/{round}");
                    let wishes: Vec<Wished> = ids.iter().map(|id| log(id, &text)).collect();
                    match n % 2 {
                        0 => assert!(bench.engine.grant_all(&wishes).iter().all(Result::is_ok)),
                        _ => wishes.iter().for_each(|wished| {
                            drop(bench.engine.grant(&wished.wish, &operator()).unwrap());
                        }),
                    }
                    bench.engine.write_files(1);
                }
            });
        }
    });
    let again = bench.open_again();
    for id in &ids {
        let (task, papers) = bench.engine.task(id).unwrap();
        let own = |text: &str| papers.log.lines().filter(|line| line.ends_with(&format!(" {text}"))).count();
        for n in 0..ASKERS {
            (0..EACH).for_each(|round| assert_eq!(own(&format!("{n}/{round}")), 1, "{id}: {n}/{round}"));
        }
        assert_eq!(again.task(id).unwrap(), (task, papers));
    }
}
