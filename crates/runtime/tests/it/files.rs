//! What people and agents put among the files of tasks: one bad file is that file's trouble alone, and nothing of it is lost.

use std::collections::BTreeSet;
use std::fs;

use baton_core::TaskId;
use baton_core::task::decide::Move;
use baton_core::task::{Status, Task};

use crate::support::Bench;

fn file(bench: &Bench, id: &TaskId) -> std::path::PathBuf {
    bench.at(&format!("tasks/{}/{id}.md", bench.task(id).status))
}

/// Changes the text of a task's file as a person does.
fn edit(bench: &Bench, id: &TaskId, change: impl FnOnce(String) -> String) -> String {
    let path = file(bench, id);
    let before = fs::read_to_string(&path).unwrap();
    let after = change(before.clone());
    assert_ne!(before, after, "the edit changes something");
    fs::write(&path, &after).unwrap();
    after
}

fn title(bench: &Bench, id: &TaskId) -> String {
    let Task { title, .. } = bench.task(id);
    title
}

#[test]
fn a_value_that_no_event_may_have_is_refused_and_the_others_are_taken_in() {
    let bench = Bench::new();
    let (bad, good) = (bench.ready("bad"), bench.ready("good"));
    let (large, fresh) = (bench.ready("large"), "TASK-2026-02-09-700");
    let number = "  id: 9007199254740993\n";
    let saved = edit(&bench, &bad, |text| text.replace("metadata:\n", &format!("metadata:\n{number}")));
    assert!(saved.contains(number), "{saved}");
    edit(&bench, &large, |text| text + &"words ".repeat(190_000) + "\n");
    let new = format!("---\ntitle: new\nmetadata:\n{number}---\n");
    fs::write(bench.at(&format!("tasks/ready/{fresh}.md")), &new).unwrap();
    edit(&bench, &good, |text| text.replace("title: good", "title: better"));
    let found = bench.engine.reconcile().unwrap();
    assert_eq!(title(&bench, &good), "better", "{found:?}");
    for id in [bad.as_str(), fresh] {
        assert_eq!(found.notices.iter().filter(|notice| notice.contains(id)).count(), 1, "{id}: {found:?}");
    }
    assert!(bench.quarantined().iter().any(|path| fs::read_to_string(path).unwrap() == saved), "kept");
    assert!(fs::read_to_string(file(&bench, &bad)).unwrap().contains("title: bad\n"), "written again");
    assert_eq!(fs::read_to_string(bench.at(&format!("tasks/ready/{fresh}.md"))).unwrap(), new, "not touched");
    // The same for one task, and for whoever opens after a crash.
    edit(&bench, &bad, |text| text.replace("metadata:\n", &format!("metadata:\n{number}")));
    bench.engine.look_at(&BTreeSet::from([bad.clone()])).unwrap();
    edit(&bench, &bad, |text| text.replace("metadata:\n", &format!("metadata:\n{number}")));
    let again = bench.open_again();
    assert_eq!(again.task(&bad).unwrap().0.title, "bad");
}

#[test]
fn a_directory_with_the_name_of_an_unfinished_file_is_kept_aside() {
    let bench = Bench::new();
    let id = bench.ready("a task");
    bench.engine.claim(&id, &"swe-backend".parse().unwrap(), None, None).unwrap();
    for dir in ["tasks/ready", "tasks/.spare", &format!("runs/{id}")] {
        let name = if dir.starts_with("runs") { ".run.json.1.tmp".into() } else { format!(".{id}.md.1.tmp") };
        fs::create_dir_all(bench.at(dir).join(&name)).unwrap();
        fs::write(bench.at(dir).join(&name).join("mine.txt"), "keep me").unwrap();
    }
    let again = bench.open_again();
    let move_it = Move { task: id.clone(), to: Status::Blocked, reason: "x".into() };
    again.transition(&move_it).unwrap();
    let kept = bench.quarantined();
    assert_eq!(kept.iter().filter(|path| path.join("mine.txt").is_file()).count(), 3, "{kept:?}");
    assert!(bench.at(&format!("tasks/blocked/{id}.md")).is_file());
}

#[test]
fn one_file_is_taken_in_once_also_where_it_moves_the_task() {
    let bench = Bench::new();
    let id = bench.ready("a task");
    edit(&bench, &id, |text| text.replace("title: a task", "title: moved"));
    fs::rename(file(&bench, &id), bench.at(&format!("tasks/blocked/{id}.md"))).unwrap();
    bench.engine.reconcile().unwrap();
    assert_eq!((bench.task(&id).status, title(&bench, &id)), (Status::Blocked, "moved".to_owned()));
    assert_eq!(bench.events("task.edited").len(), 1);
    assert_eq!(bench.events("task.transitioned").len(), 1);
    // A possible move with an impossible value.
    let saved = edit(&bench, &id, |text| text.replace("title: moved", "title: ''"));
    fs::rename(file(&bench, &id), bench.at(&format!("tasks/ready/{id}.md"))).unwrap();
    bench.engine.reconcile().unwrap();
    assert_eq!(bench.events("task.edit_refused").len(), 1);
    let kept = bench.quarantined();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(fs::read_to_string(&kept[0]).unwrap(), saved);
    bench.engine.reconcile().unwrap();
    assert_eq!((bench.events("task.edit_refused").len(), bench.quarantined().len()), (1, 1));
}
