//! What was changed for a task, asked over HTTP of a repository that agents write: every kind of change, and whatever they put in the way.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use baton_runtime::tools::{Walled, wall_report};
use serde_json::{Value, json};

use crate::support::Home;
use crate::task_support::text;
use crate::web_support::Web;

/// Git as a person runs it, without their own configuration.
#[track_caller]
fn git(dir: &Path, words: &[&str]) -> String {
    let who = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
    let mut command = Command::new("git");
    command.args(who).args(words).current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

/// A workspace that is a repository, and a task with a worktree as Baton makes it.
struct Place {
    home: Home,
    web: Web,
    id: String,
    tree: PathBuf,
    base: String,
}

const LINES: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

impl Place {
    fn new() -> Place {
        let home = Home::new();
        let work = home.work();
        for (name, text) in [
            ("kept.txt", LINES),
            ("edited.txt", LINES),
            ("staged.txt", LINES),
            ("moved.txt", LINES),
            ("gone.txt", "gone\n"),
            (".gitignore", "*.log\n"),
        ] {
            fs::write(work.join(name), text).unwrap();
        }
        git(&work, &["init", "-q", "-b", "main"]);
        git(&work, &["add", "."]);
        git(&work, &["commit", "-q", "-m", "first"]);
        let base = git(&work, &["rev-parse", "HEAD"]);
        let web = Web::start(&home);
        let id = web.task("change things");
        let tree = home.path("work.worktrees").join(&id);
        git(&work, &["worktree", "add", "-q", "-b", &format!("baton/{id}"), tree.to_str().unwrap()]);
        Place { home, web, id, tree: tree.canonicalize().unwrap(), base }
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.tree.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, words: &[&str]) -> String {
        git(&self.tree, words)
    }

    #[track_caller]
    fn changes(&self) -> Value {
        self.web.get(&format!("/v1/tasks/{}/changes", self.id)).expect(200)
    }
}

fn file<'a>(changes: &'a Value, path: &str) -> &'a Value {
    let files = changes["files"].as_array().unwrap();
    files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("no {path}: {changes}"))
}

fn names(changes: &Value) -> Vec<String> {
    changes["files"].as_array().unwrap().iter().map(|file| text(&file["path"])).collect()
}

#[test]
fn every_kind_of_change_is_shown_committed_or_not() {
    let place = Place::new();
    assert_eq!(place.changes()["files"], json!([]));
    place.write("edited.txt", LINES.replace("four", "vier"));
    place.write("new/added.txt", "new\n");
    place.git(&["mv", "moved.txt", "elsewhere.txt"]);
    place.git(&["rm", "-q", "gone.txt"]);
    place.write("picture.bin", b"\0\x01\x02");
    place.git(&["add", "-A"]);
    place.git(&["commit", "-q", "-m", "work"]);
    place.write("edited.txt", LINES.replace("four", "vier").replace("eight", "acht"));
    place.write("staged.txt", format!("{LINES}nine\n"));
    place.git(&["add", "staged.txt"]);
    place.write("untracked.txt", "a\nb");
    place.write("naïve file \"x\".txt", "ü\n");
    place.write("noise.log", "left alone");
    place.write("blob.bin", b"x\0y");
    // What others commit meanwhile is not the task's.
    fs::write(place.home.work().join("other.txt"), "other\n").unwrap();
    git(&place.home.work(), &["add", "other.txt"]);
    git(&place.home.work(), &["commit", "-q", "-m", "other"]);
    let changes = place.changes();
    assert_eq!((&changes["where"], &changes["base"]), (&json!("worktree"), &json!(place.base)));
    assert_eq!(changes["branch"], format!("baton/{}", place.id));
    assert_eq!(changes["path"], place.tree.to_str().unwrap());
    assert_eq!(changes["isTruncated"], false, "{changes}");
    let mut found = names(&changes);
    found.sort();
    let expected = [
        "blob.bin",
        "edited.txt",
        "elsewhere.txt",
        "gone.txt",
        "naïve file \"x\".txt",
        "new/added.txt",
        "picture.bin",
        "staged.txt",
        "untracked.txt",
    ];
    assert_eq!(found, expected);
    let check = |path: &str, status: &str, added: u64, removed: u64, has: &[&str]| {
        let file = file(&changes, path);
        assert_eq!(
            (&file["status"], &file["added"], &file["removed"]),
            (&json!(status), &json!(added), &json!(removed)),
            "{file}"
        );
        assert_eq!(file["isTruncated"], false, "{file}");
        match has {
            [] => assert!(file.get("patch").is_none() && file["isBinary"] == true, "{file}"),
            has => {
                let patch = text(&file["patch"]);
                assert!(file["isBinary"] == false && has.iter().all(|line| patch.contains(line)), "{patch}");
            }
        }
    };
    check(
        "edited.txt",
        "modified",
        2,
        2,
        &["--- a/edited.txt\n+++ b/edited.txt\n", "-four\n+vier\n", "-eight\n+acht\n"],
    );
    check("new/added.txt", "added", 1, 0, &["--- /dev/null\n", "@@ -0,0 +1 @@\n+new\n"]);
    check("elsewhere.txt", "renamed", 0, 0, &["rename from moved.txt\nrename to elsewhere.txt\n"]);
    check("gone.txt", "deleted", 0, 1, &["-gone\n"]);
    check("picture.bin", "added", 0, 0, &[]);
    check("staged.txt", "modified", 1, 0, &["+nine\n"]);
    check("untracked.txt", "untracked", 2, 0, &["@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"]);
    check("naïve file \"x\".txt", "untracked", 1, 0, &["+ü\n"]);
    check("blob.bin", "untracked", 0, 0, &[]);
    assert_eq!(file(&changes, "elsewhere.txt")["oldPath"], "moved.txt");
    place.web.serving.stop();
}

#[test]
fn nothing_that_the_repository_is_configured_with_runs_or_changes_what_is_shown() {
    let place = Place::new();
    place.write(".gitattributes", "*.txt diff=evil\n");
    place.write("edited.txt", LINES.replace("four", "vier"));
    place.git(&["mv", "moved.txt", "öäü.txt"]);
    let mark = place.home.path("ran");
    let trap = format!("sh -c 'touch {}' --", mark.display());
    for (key, value) in [
        ("diff.external", trap.as_str()),
        ("diff.evil.command", &trap),
        ("diff.evil.textconv", &trap),
        ("core.fsmonitor", &trap),
        ("core.pager", &trap),
        ("core.hooksPath", "."),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("color.ui", "always"),
        ("diff.relative", "true"),
        ("diff.context", "0"),
        ("diff.submodule", "log"),
        ("diff.renames", "false"),
        ("core.quotePath", "true"),
    ] {
        place.git(&["config", key, value]);
    }
    let changes = place.changes();
    assert!(!mark.exists(), "something ran");
    let patch = text(&file(&changes, "edited.txt")["patch"]);
    let expected = "--- a/edited.txt\n+++ b/edited.txt\n@@ -1,7 +1,7 @@\n one\n two\n three\n-four\n+vier\n five\n six\n seven\n";
    assert!(patch.ends_with(expected), "{patch}");
    assert_eq!(file(&changes, "öäü.txt")["status"], "renamed");
    // A filter is run to compare, and held: it writes nothing outside.
    if matches!(wall_report(), Walled::Landlock(_)) {
        place.git(&["config", "filter.evil.clean", &format!("touch {}; cat", mark.display())]);
        place.write(".gitattributes", "*.txt filter=evil\n");
        place.changes();
        assert!(!mark.exists(), "a filter left the wall");
    }
    place.web.serving.stop();
}

#[test]
fn links_pipes_and_what_leads_elsewhere_give_nothing_away() {
    let place = Place::new();
    let secret = place.home.path("secret");
    fs::write(&secret, "SECRET\n").unwrap();
    symlink(&secret, place.tree.join("link.txt")).unwrap();
    symlink(place.home.path(""), place.tree.join("dir")).unwrap();
    fs::remove_file(place.tree.join("edited.txt")).unwrap();
    symlink(&secret, place.tree.join("edited.txt")).unwrap();
    assert!(Command::new("mkfifo").arg(place.tree.join("pipe")).status().unwrap().success());
    fs::create_dir(place.tree.join("inner")).unwrap();
    git(&place.tree.join("inner"), &["init", "-q"]);
    fs::write(place.tree.join("inner/x"), "x").unwrap();
    let changes = place.changes();
    assert!(!changes.to_string().contains("SECRET"), "{changes}");
    let link = text(&file(&changes, "link.txt")["patch"]);
    assert!(link.contains(&format!("+{}\n", secret.display())), "a link is where it leads to: {link}");
    assert_eq!(file(&changes, "edited.txt")["status"], "modified");
    place.web.serving.stop();
}

#[test]
fn another_repository_in_its_place_is_not_asked() {
    let place = Place::new();
    fs::remove_file(place.tree.join(".git")).unwrap();
    git(&place.tree, &["init", "-q"]);
    let changes = place.changes();
    assert_eq!((&changes["where"], &changes["files"]), (&json!("none"), &json!([])));
    assert!(text(&changes["note"]).contains("not the repository's"), "{changes}");
    place.web.serving.stop();
}

#[test]
fn much_is_cut_and_that_is_said() {
    let place = Place::new();
    place.write("edited.txt", "x\n".repeat(400_000));
    place.git(&["add", "."]);
    place.write("large.txt", "y\n".repeat(400_000));
    place.write("huge.bin", vec![b'z'; 40 << 20]);
    place.git(&["add", "huge.bin"]);
    let changes = place.changes();
    let edited = file(&changes, "edited.txt");
    assert_eq!((&edited["isTruncated"], &edited["added"]), (&json!(true), &json!(400_000)));
    let patch = text(&edited["patch"]);
    assert!(patch.len() <= 256 << 10 && patch.ends_with('\n'), "{}", patch.len());
    let large = file(&changes, "large.txt");
    assert!(large["isTruncated"] == true && large.get("patch").is_none(), "{}", large["status"]);
    assert_eq!(file(&changes, "huge.bin")["isBinary"], true, "what is very large is not compared");
    place.git(&["rm", "-q", "-f", "--cached", "huge.bin"]);
    fs::remove_file(place.tree.join("huge.bin")).unwrap();
    for n in 0..700 {
        place.write(&format!("many/{n}.txt"), "x\n");
    }
    let changes = place.changes();
    assert_eq!((names(&changes).len(), &changes["isTruncated"]), (500, &json!(true)));
    place.web.serving.stop();
}

#[test]
fn where_there_is_nothing_to_compare_it_is_said_why() {
    let home = Home::new();
    let web = Web::start(&home);
    let id = web.task("x");
    let changes = || web.get(&format!("/v1/tasks/{id}/changes")).expect(200);
    let none = |has: &str| {
        let found = changes();
        assert_eq!((&found["where"], &found["files"]), (&json!("none"), &json!([])));
        assert!(text(&found["note"]).contains(has), "{found}");
    };
    none("nobody has worked on it");
    web.post(&format!("/v1/tasks/{id}/claim"), &json!({"agent": "ada"})).expect(200);
    none("has no repository of git");
    git(&home.work(), &["init", "-q"]);
    none("has no commit yet");
    fs::write(home.work().join("a.txt"), "a\n").unwrap();
    git(&home.work(), &["add", "."]);
    git(&home.work(), &["commit", "-q", "-m", "a"]);
    fs::write(home.work().join("a.txt"), "b\n").unwrap();
    let found = changes();
    assert_eq!((&found["where"], names(&found)), (&json!("workspace"), vec!["a.txt".to_owned()]), "{found}");
    assert!(text(&found["note"]).contains("no worktree"), "{found}");
    web.post(&format!("/v1/tasks/{id}/transition"), &json!({"to": "cancelled", "reason": "no"})).expect(200);
    none("has ended");
    web.get("/v1/tasks/TASK-2001-01-01-001/changes").refuses(404, "T001");
    web.serving.stop();
}

#[test]
fn the_files_of_a_task_are_its_own_and_nobody_elses() {
    let home = Home::new();
    let web = Web::start(&home);
    let (id, other) = (web.task("mine"), web.task("another's"));
    web.post(&format!("/v1/tasks/{id}/claim"), &json!({"agent": "ada"})).expect(200);
    let files = || web.get(&format!("/v1/tasks/{id}/files")).expect(200);
    let own = home.task_file(&id);
    let found = files();
    assert_eq!(found["files"][0]["name"], format!("tasks/in-progress/{id}.md"));
    assert_eq!(found["files"][0]["text"], fs::read_to_string(own).unwrap());
    assert!(
        found["files"].as_array().unwrap().iter().any(|one| one["name"] == format!("runs/{id}/run.json")),
        "{found}"
    );
    let folder = home.folder("in-progress", &id);
    fs::create_dir_all(folder.join("outputs/deep")).unwrap();
    fs::write(folder.join("outputs/summary.md"), "what was done\n").unwrap();
    fs::write(folder.join("outputs/deep/picture.bin"), b"\xff\xfe\0").unwrap();
    fs::write(folder.join("outputs/large.txt"), "ä".repeat(400_000)).unwrap();
    let secret = home.path("secret");
    fs::write(&secret, "SECRET").unwrap();
    symlink(&secret, folder.join("outputs/link.txt")).unwrap();
    symlink(home.data(), folder.join("all")).unwrap();
    symlink(home.data().join("runs"), folder.join("outputs/runs")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
    let found = files();
    let one = |name: &str| {
        let name = format!("tasks/in-progress/{id}/{name}");
        found["files"].as_array().unwrap().iter().find(|one| one["name"] == name).cloned()
    };
    assert_eq!(one("outputs/summary.md").unwrap()["text"], "what was done\n");
    let picture = one("outputs/deep/picture.bin").unwrap();
    assert_eq!((picture.get("text"), &picture["bytes"]), (None, &json!(3)));
    let large = one("outputs/large.txt").unwrap();
    assert_eq!((&large["isTruncated"], &large["bytes"]), (&json!(true), &json!(800_000)));
    assert_eq!(text(&large["text"]).len(), 256 << 10);
    assert!(!found.to_string().contains("SECRET") && !found.to_string().contains(&other), "{found}");
    for name in ["outputs/link.txt", "pipe", "all", "outputs/runs"] {
        assert_eq!(one(name), None, "{name}");
    }
    for n in 0..300 {
        fs::write(folder.join(format!("outputs/deep/{n}")), "x").unwrap();
    }
    let found = files();
    assert!(found["files"].as_array().unwrap().len() <= 200 && found["isTruncated"] == true);
    web.get("/v1/tasks/TASK-2001-01-01-001/files").refuses(404, "T001");
    web.serving.stop();
}
