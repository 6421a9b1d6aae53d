//! Worktrees of a repository whose configuration an agent has written: what it names runs behind the wall, and a session in a worktree can commit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use baton_core::TaskId;
use baton_core::session::ToolCall;
use baton_runtime::tools::{ToolRan, ToolRunner, ToolSettings, Walled, Walling, wall_report};
use baton_runtime::work::{Removed, Worktrees};
use serde_json::json;

/// A repository with one file, a data directory in it, and something outside.
struct Place {
    dir: tempfile::TempDir,
    trees: Worktrees,
}

fn is_walled() -> bool {
    matches!(wall_report(), Walled::Landlock(_))
}

fn id() -> TaskId {
    "TASK-2026-02-09-001".parse().unwrap()
}

/// Git as a person runs it, without their own configuration.
#[track_caller]
fn git(dir: &Path, words: &[&str]) -> String {
    let who = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
    let mut command = Command::new("git");
    command.args(who).args(words).current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("project");
        fs::create_dir_all(project.join(".baton")).unwrap();
        fs::write(project.join(".baton/key"), "SECRET").unwrap();
        fs::write(project.join(".gitattributes"), "*.txt filter=x\n").unwrap();
        fs::write(project.join("a.txt"), "a\n").unwrap();
        git(&project, &["init", "-q", "-b", "main"]);
        git(&project, &["add", "a.txt", ".gitattributes"]);
        git(&project, &["commit", "-q", "-m", "a"]);
        let own = vec![project.join(".baton"), dir.path().join("state")];
        let walling = Walling { myself: env!("CARGO_BIN_EXE_baton").into(), own };
        let trees = Worktrees::new(&project, Some(walling));
        Place { dir, trees }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn configure(&self, key: &str, value: &str) {
        git(&self.at("project"), &["config", key, value]);
    }

    /// A script that says where it ran, in the repository and outside of it, reads what it should not, and goes on as `then` says.
    fn trap(&self, name: &str, then: &str) -> String {
        let (outside, inside) = (self.at("outside").display().to_string(), self.at("project/.git"));
        let (key, inside) = (self.at("project/.baton/key"), inside.display());
        let script = format!(
            "#!/bin/sh\nfor at in {inside} \"$GIT_DIR\"; do\ncat {key} >$at/stolen-{name}\necho x >$at/ran-{name}\ndone 2>/dev/null\n\
             (echo x >{outside}-{name}) 2>/dev/null\n{then}\n",
            key = key.display(),
        );
        let path = self.at(&format!("project/{name}.sh"));
        fs::write(&path, script).unwrap();
        format!("sh {}", path.display())
    }

    /// It ran, and it was held: what it wrote is in this directory of the repository.
    #[track_caller]
    fn assert_held(&self, name: &str, dir: &str) {
        assert!(self.at(&format!("{dir}/ran-{name}")).exists(), "{name} did not run");
        assert!(!self.at(&format!("outside-{name}")).exists(), "{name} wrote outside");
        let stolen = fs::read_to_string(self.at(&format!("{dir}/stolen-{name}"))).unwrap_or_default();
        assert_eq!(stolen, "", "{name} read what is Baton's");
    }
}

#[test]
fn filters_that_a_repository_names_run_behind_the_wall() {
    if !is_walled() {
        return;
    }
    let place = Place::new();
    place.configure("filter.x.smudge", &place.trap("smudge", "exec cat"));
    place.configure("filter.x.clean", &place.trap("clean", "exec cat"));
    let path = place.trees.open(&id()).unwrap();
    assert_eq!(fs::read_to_string(path.join("a.txt")).unwrap(), "a\n");
    place.assert_held("smudge", "project/.git");
    // Another size, or the index alone would answer.
    fs::write(path.join("a.txt"), "b\n").unwrap();
    fs::File::open(path.join("a.txt")).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let kept = place.trees.close(&id()).unwrap();
    assert!(matches!(&kept, Removed::Kept(why) if why.contains("not committed")), "{kept:?}");
    // To look at a worktree nothing of the repository is written but what is that worktree's own.
    place.assert_held("clean", &format!("project/.git/worktrees/{}", id()));
    assert!(!place.at("project/.git/ran-clean").exists());
}

#[test]
fn a_worktree_that_a_filter_swaps_for_a_link_is_refused_and_nothing_lives_on() {
    if !is_walled() {
        return;
    }
    let place = Place::new();
    let (tree, elsewhere) = (place.trees.path(&id()), place.at("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join(".git"), "").unwrap();
    let (shown, to) = (tree.display(), elsewhere.display());
    let swap = format!(
        "cat; setsid sh -c 'echo $$ > {shown}.pid; exec sleep 1000' >/dev/null 2>&1 </dev/null & sleep 0.2; rm -rf {shown}; ln -s {to} {shown}"
    );
    place.configure("filter.x.smudge", &place.trap("swap", &swap));
    place.trees.open(&id()).unwrap_err();
    assert!(tree.is_symlink(), "it was not swapped");
    // Also for whoever comes next.
    place.trees.open(&id()).unwrap_err();
    let pid = fs::read_to_string(format!("{shown}.pid")).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap_or_default();
    assert!(status.is_empty() || status.contains("State:\tZ"), "{status}");
}

#[test]
fn a_repository_that_an_agent_put_in_the_place_of_a_worktree_s_own_is_not_asked() {
    if !is_walled() {
        return;
    }
    let place = Place::new();
    let path = place.trees.open(&id()).unwrap();
    let link = fs::read_to_string(path.join(".git")).unwrap();
    let hook = place.at("project/.git/hooks/post-checkout");
    let evil = format!("sh -c 'echo x > {}; cat'", hook.display());
    let attributes = |git_dir: &Path| {
        fs::create_dir_all(git_dir.join("info")).unwrap();
        fs::write(git_dir.join("info/attributes"), "* filter=evil\n").unwrap();
    };
    fs::remove_file(path.join(".git")).unwrap();
    git(&path, &["init", "-q", "."]);
    git(&path, &["add", "."]);
    git(&path, &["commit", "-q", "-m", "x"]);
    git(&path, &["config", "filter.evil.clean", &evil]);
    attributes(&path.join(".git"));
    fs::write(path.join("a.txt"), "another size\n").unwrap();
    let kept = place.trees.close(&id()).unwrap();
    assert!(matches!(&kept, Removed::Kept(why) if why.contains("is not the repository's")), "{kept:?}");
    place.trees.open(&id()).unwrap_err();
    // A directory of its own that it may write says that something else is shared.
    let own = PathBuf::from(link.trim().strip_prefix("gitdir: ").unwrap());
    fs::rename(path.join(".git"), place.at("another")).unwrap();
    fs::write(path.join(".git"), link).unwrap();
    fs::write(own.join("commondir"), place.at("another").display().to_string()).unwrap();
    let kept = place.trees.close(&id()).unwrap();
    assert!(matches!(&kept, Removed::Kept(why) if why.contains("is not the repository's")), "{kept:?}");
    // What looks at a genuine one writes no hooks either.
    fs::write(own.join("commondir"), "../..\n").unwrap();
    place.configure("filter.x.clean", &evil);
    let kept = place.trees.close(&id()).unwrap();
    assert!(matches!(&kept, Removed::Kept(why) if why.contains("not committed")), "{kept:?}");
    assert!(!hook.exists(), "its filter has written the repository");
}

#[test]
fn a_remote_that_is_asked_for_what_is_missing_is_asked_behind_the_wall() {
    if !is_walled() {
        return;
    }
    let place = Place::new();
    let project = place.at("project");
    place.configure("core.repositoryFormatVersion", "1");
    place.configure("extensions.partialClone", "origin");
    place.configure("remote.origin.url", &place.at("nowhere").display().to_string());
    place.configure("remote.origin.promisor", "true");
    place.configure("remote.origin.uploadpack", &place.trap("uploadpack", "exit 1"));
    let blob = git(&project, &["rev-parse", "HEAD:a.txt"]);
    let (first, rest) = blob.trim().split_at(2);
    fs::remove_file(project.join(".git/objects").join(first).join(rest)).unwrap();
    place.trees.open(&id()).unwrap_err();
    place.assert_held("uploadpack", "project/.git");
}

#[test]
fn a_filter_of_a_person_s_own_is_not_there_and_files_stay_as_they_are() {
    if !is_walled() {
        return;
    }
    let place = Place::new();
    // As git-lfs is set up: named in the repository, configured at home.
    let path = place.trees.open(&id()).unwrap();
    assert_eq!(fs::read_to_string(path.join("a.txt")).unwrap(), "a\n");
    assert_eq!(place.trees.open(&id()).unwrap(), path);
    assert_eq!(place.trees.close(&id()).unwrap(), Removed::Yes);
    assert!(!path.exists());
    assert_eq!(git(&place.at("project"), &["branch", "--list", "baton/*"]), "");
}

#[test]
fn a_repository_that_points_elsewhere_is_refused() {
    if !is_walled() {
        return;
    }
    let place = Place::new();
    let (git_dir, moved) = (place.at("project/.git"), place.at("elsewhere"));
    fs::rename(&git_dir, &moved).unwrap();
    fs::write(&git_dir, format!("gitdir: {}\n", moved.display())).unwrap();
    let why = place.trees.open(&id()).unwrap_err().to_string();
    assert!(why.contains("has no repository of git that knows it"), "{why}");
    assert!(!moved.join("worktrees").exists());
}

#[test]
fn tools_commit_in_a_worktree_and_leave_the_repository_s_settings_alone() {
    if !is_walled() {
        return;
    }
    let place = Place::new();
    let path = place.trees.open(&id()).unwrap();
    let mut settings = ToolSettings::new(&path, place.at("private"));
    settings.own = vec![place.at("project/.baton")];
    settings.myself = Some(env!("CARGO_BIN_EXE_baton").into());
    let tools = ToolRunner::new(settings, None).unwrap();
    let run = |name: &str, arguments| -> ToolRan {
        let call = ToolCall { call_id: "c".into(), name: name.into(), arguments, mutating: true };
        tools.run(&call, &AtomicBool::new(false))
    };
    let works = |name: &str, arguments| {
        let ran = run(name, arguments);
        assert!(!ran.is_error && ran.failed.is_none(), "{name}: {ran:?}");
    };
    works("write_file", json!({"path": "b.txt", "content": "b\n"}));
    works("git_add", json!({"args": ["b.txt"]}));
    works(
        "bash",
        json!({"command": "git -c user.name=A -c user.email=b commit -qm b && git tag t && git stash list"}),
    );
    works("git_status", json!({}));
    works("git_log", json!({"args": ["-1"]}));
    let project = place.at("project");
    assert_eq!(git(&project, &["log", "--format=%s", "baton/TASK-2026-02-09-001"]), "b\na\n");
    let before = fs::read_to_string(project.join(".git/config")).unwrap();
    for script in [
        "git config filter.x.smudge evil",
        "echo x >> \"$(git rev-parse --git-common-dir)/config\"",
        "echo x > \"$(git rev-parse --git-common-dir)/hooks/pre-commit\"",
        "rm -f \"$(git rev-parse --git-common-dir)/config\"",
    ] {
        let ran = run("bash", json!({"command": script}));
        assert!(ran.is_error, "{script}: {ran:?}");
    }
    let escape = format!("echo x > {}", project.join("a.txt").display());
    assert!(run("bash", json!({"command": escape})).is_error);
    assert_eq!(fs::read_to_string(project.join(".git/config")).unwrap(), before);
    assert!(!project.join(".git/hooks/pre-commit").exists());
    git(&project, &["merge", "-q", "baton/TASK-2026-02-09-001"]);
    assert_eq!(place.trees.close(&id()).unwrap(), Removed::Yes);
}
