//! How people's editors save: in pieces, to where the file was, while everything goes on. One save is taken in whole, once, or is refused once.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::serve::Serving;
use crate::support::{Home, until};
use crate::task_support::text;

/// A save in place: truncated and half written, with the other half to come.
struct HalfSaved {
    file: File,
    rest: String,
}

impl HalfSaved {
    fn of(home: &Home, id: &str, change: impl FnOnce(&str) -> String) -> HalfSaved {
        let path = home.task_file(id);
        let whole = change(&fs::read_to_string(&path).unwrap());
        let (half, rest) = whole.split_at(whole.find("line 2").unwrap());
        let mut file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(0).unwrap();
        file.rewind().unwrap();
        file.write_all(half.as_bytes()).unwrap();
        HalfSaved { file, rest: rest.to_owned() }
    }

    fn finish(mut self) {
        self.file.write_all(self.rest.as_bytes()).unwrap();
    }
}

fn with_lines(home: &Home) -> String {
    let id = home.task(&[]);
    home.run(&["task", "log", &id, "worth keeping"]).expect(0);
    id
}

fn add_lines(text: &str) -> String {
    text.replacen("\n## Work Log", "\nline 1\nline 2\nline 3\n\n## Work Log", 1)
}

fn count(home: &Home, id: &str, event_type: &str) -> usize {
    home.types(id).iter().filter(|name| *name == event_type).count()
}

/// Makes what lies aside look as if nobody had touched it for a while.
fn age_leftovers(home: &Home) {
    for entry in fs::read_dir(home.data().join("tasks/.spare")).unwrap() {
        let file = OpenOptions::new().write(true).open(entry.unwrap().path()).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(10)).unwrap();
    }
}

#[test]
fn half_a_save_is_nobody_s_text() {
    let home = Home::new();
    let id = with_lines(&home);
    let saving = HalfSaved::of(&home, &id, add_lines);
    for args in [["task", "show", &id], ["task", "ls", "--json"]] {
        home.run(&args).expect(0);
    }
    assert_eq!((count(&home, &id, "task.edited"), count(&home, &id, "task.edit_refused")), (0, 0));
    saving.finish();
    let shown = text(&home.show(&id)["body"]);
    assert!(shown.contains("line 1\nline 2\nline 3\n") && shown.contains("worth keeping"), "{shown}");
    assert_eq!((count(&home, &id, "task.edited"), count(&home, &id, "task.edit_refused")), (1, 0));
}

#[test]
fn half_a_save_that_something_happens_to_meanwhile_is_taken_in_when_it_is_whole() {
    let home = Home::new();
    let id = with_lines(&home);
    let saving = HalfSaved::of(&home, &id, add_lines);
    home.run(&["task", "log", &id, "meanwhile"]).expect(0);
    assert_eq!((count(&home, &id, "task.edited"), count(&home, &id, "task.edit_refused")), (0, 0));
    saving.finish();
    age_leftovers(&home);
    let shown = text(&home.show(&id)["body"]);
    for part in ["line 1\nline 2\nline 3\n", "worth keeping", "meanwhile"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!((count(&home, &id, "task.edited"), count(&home, &id, "task.edit_refused")), (1, 0));
}

#[test]
fn a_server_takes_in_what_was_saved_into_a_file_that_it_had_set_aside() {
    let home = Home::new();
    let id = with_lines(&home);
    let serving = Serving::start(&home);
    let saving = HalfSaved::of(&home, &id, add_lines);
    home.run(&["task", "log", &id, "meanwhile"]).expect(0);
    saving.finish();
    until("taken in", || text(&home.show(&id)["body"]).contains("line 3"));
    assert_eq!(count(&home, &id, "task.edit_refused"), 0);
    serving.stop();
}

#[test]
fn half_a_save_survives_the_death_of_the_server() {
    let home = Home::new();
    let id = with_lines(&home);
    let serving = Serving::start(&home);
    let saving = HalfSaved::of(&home, &id, add_lines);
    home.run(&["task", "log", &id, "meanwhile"]).expect(0);
    // Killed, not asked.
    drop(serving);
    home.run(&["task", "log", &id, "afterwards"]).expect(0);
    saving.finish();
    age_leftovers(&home);
    let shown = text(&home.show(&id)["body"]);
    for part in ["line 1\nline 2\nline 3\n", "meanwhile", "afterwards"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// Saves a text of a task's file to where the file was before the task moved.
fn save_where_it_was(home: &Home, id: &str) -> PathBuf {
    let before = home.task_file(id);
    let edited = fs::read_to_string(&before).unwrap().replace("title: a task", "title: edited");
    home.claim(id, "ada");
    assert!(!before.exists());
    fs::write(&before, edited).unwrap();
    before
}

#[test]
fn a_save_to_where_the_file_was_is_taken_in() {
    let home = Home::new();
    let id = home.task(&[]);
    let before = save_where_it_was(&home, &id);
    let told = home.run(&["doctor"]).stdout;
    assert!(told.contains(&format!("1 file where no task of that name is: tasks/ready/{id}.md")), "{told}");
    let shown = home.show(&id);
    assert_eq!((text(&shown["title"]), text(&shown["status"])), ("edited".into(), "in-progress".into()));
    assert!(!before.exists(), "one task, one file");
    let home = Home::new();
    let id = home.task(&[]);
    save_where_it_was(&home, &id);
    home.run(&["task", "log", &id, "a line"]).expect(0);
    assert_eq!(count(&home, &id, "task.edited"), 1, "whoever changes the task takes it in first");
    let home = Home::new();
    let id = home.task(&[]);
    let serving = Serving::start(&home);
    let before = save_where_it_was(&home, &id);
    until("taken in", || home.show(&id)["title"] == "edited" && !before.exists());
    serving.stop();
}

#[test]
fn what_was_refused_once_is_not_taken_in_later() {
    let home = Home::new();
    let id = home.task(&[]);
    let file = fs::read_to_string(home.task_file(&id)).unwrap();
    let edited = file.replace("status: ready", "status: done").replace("priority: normal", "priority: low");
    fs::write(home.task_file(&id), edited).unwrap();
    home.run(&["task", "ls"]).expect(0);
    assert_eq!(count(&home, &id, "task.edit_refused"), 1);
    let kept = || fs::read_dir(home.data().join("quarantine")).unwrap().count();
    assert_eq!(kept(), 1);
    age_leftovers(&home);
    let events = home.types(&id);
    home.run(&["doctor", "--fix"]).expect(0);
    fs::remove_dir_all(home.data().join("index")).unwrap();
    home.run(&["task", "ls"]).expect(0);
    let serving = Serving::start(&home);
    drop(serving);
    home.run(&["task", "log", &id, "a line"]).expect(0);
    assert_eq!(text(&home.show(&id)["priority"]), "normal");
    assert_eq!(kept(), 1, "kept once");
    assert_eq!(home.types(&id)[..events.len()], events);
    assert_eq!((count(&home, &id, "task.edit_refused"), count(&home, &id, "task.edited")), (1, 0));
}
