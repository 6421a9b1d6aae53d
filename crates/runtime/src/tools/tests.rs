//! What tools give, and that the workspace holds them.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::*;

struct Bench {
    dir: tempfile::TempDir,
    tools: ToolRunner,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(|_| {})
    }

    /// A workspace with a data directory in it, and something outside that is nobody's business.
    fn with(change: impl FnOnce(&mut ToolSettings)) -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["work/src", "work/.baton/keys", "state"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("secret"), "outside").unwrap();
        fs::write(at("state/key"), "outside").unwrap();
        fs::write(at("work/.baton/keys/k"), "inside").unwrap();
        fs::write(at("work/src/a.rs"), "fn one() {}\nfn two() {}\n").unwrap();
        let mut settings = ToolSettings::new(at("work"), at("private"));
        settings.own = vec![at("work/.baton"), at("state")];
        change(&mut settings);
        let store = baton_store::artifacts::ArtifactDir::new(
            Arc::new(baton_store::disk::RealDisk),
            at("work/.baton/artifacts"),
        );
        let tools = ToolRunner::new(settings, Some(Arc::new(store))).unwrap();
        Bench { dir, tools }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, name: &str, arguments: Value) -> ToolRan {
        let call = ToolCall { call_id: "c".into(), name: name.into(), arguments, mutating: true };
        self.tools.run(&call, &AtomicBool::new(false))
    }

    #[track_caller]
    fn good(&self, name: &str, arguments: Value) -> String {
        let ran = self.run(name, arguments);
        assert!(!ran.is_error && ran.failed.is_none(), "{ran:?}");
        ran.output
    }

    #[track_caller]
    fn bad(&self, name: &str, arguments: Value, contains: &str) {
        let ran = self.run(name, arguments);
        assert!(ran.is_error && ran.failed.is_none() && ran.output.contains(contains), "{ran:?}");
    }
}

#[test]
fn files_are_read_listed_and_found() {
    let bench = Bench::new();
    assert_eq!(bench.good("read_file", json!({"path": "src/a.rs", "line": 2, "limit": 1})), "fn two() {}\n");
    let absolute = bench.tools.root().path().join("src/a.rs");
    assert_eq!(bench.good("read_file", json!({"path": absolute})).lines().count(), 2);
    assert_eq!(bench.good("list_files", json!({})), "src/\n");
    assert_eq!(bench.good("list_files", json!({"recursive": true})), "src/\nsrc/a.rs\n");
    assert_eq!(bench.good("grep", json!({"pattern": "t.o"})), "src/a.rs:2:fn two() {}\n");
    assert_eq!(
        bench.good("grep", json!({"pattern": "ONE", "ignore_case": true, "path": "src/a.rs"})),
        "src/a.rs:1:fn one() {}\n"
    );
    assert_eq!(
        bench.good("grep", json!({"pattern": "inside"})),
        "nothing found\n",
        "the data directory is not searched"
    );
    assert_eq!(bench.good("search", json!({"glob": "*.rs"})), "src/a.rs\n");
    bench.bad("read_file", json!({"path": "none"}), "path: \"none\" does not exist");
    bench.bad("read_file", json!({"path": "src"}), "a directory, not a file");
    bench.bad("read_file", json!({}), "path: expected a path, got nothing");
    bench.bad("fly", json!({}), "there is no tool \"fly\"");
}

#[test]
fn an_edit_is_exact_and_leaves_other_names_alone() {
    let bench = Bench::new();
    let (file, other) = (bench.at("work/src/a.rs"), bench.at("outside-name"));
    fs::hard_link(&file, &other).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
    bench.bad("edit_file", json!({"path": "src/a.rs", "old": "fn", "new": "x"}), "there 2 times");
    bench.bad("edit_file", json!({"path": "src/a.rs", "old": "three", "new": "x"}), "not in it");
    bench.bad("edit_file", json!({"path": "src/a.rs", "old": "", "new": "x"}), "old: expected text");
    let said = bench.good("edit_file", json!({"path": "src/a.rs", "old": "two", "new": "three"}));
    assert!(said.contains("line 2"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "fn one() {}\nfn three() {}\n");
    assert!(fs::read_to_string(&other).unwrap().contains("two"), "the other name keeps the old text");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o751);
    bench.good("write_file", json!({"path": "new/deep/file", "content": "x"}));
    assert_eq!(fs::read_to_string(bench.at("work/new/deep/file")).unwrap(), "x");
    let left: Vec<_> = fs::read_dir(bench.at("work/src")).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left beside it: {left:?}");
}

#[test]
fn a_patch_is_whole_or_nothing() {
    let bench = Bench::new();
    let good = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,2 @@\n fn one() {}\n-fn two() {}\n+fn three() {}\n\
                --- /dev/null\n+++ b/src/b.rs\n@@ -0,0 +1 @@\n+new\n";
    let bad = good.replace(
        "@@ -0,0 +1 @@\n+new",
        "@@ -0,0 +1 @@\n+new\n--- a/src/c.rs\n+++ b/src/c.rs\n@@ -1 +1 @@\n-x\n+y",
    );
    bench.bad("apply_patch", json!({"patch": bad}), "\"src/c.rs\" does not exist");
    bench.bad("apply_patch", json!({"patch": "hello"}), "patch: expected a unified diff");
    assert!(!bench.at("work/src/b.rs").exists());
    assert!(fs::read_to_string(bench.at("work/src/a.rs")).unwrap().contains("two"));
    assert_eq!(bench.good("apply_patch", json!({"patch": good})), "changed src/a.rs\ncreated src/b.rs\n");
    assert!(fs::read_to_string(bench.at("work/src/a.rs")).unwrap().contains("three"));
    let delete = "--- a/src/b.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-new\n";
    assert_eq!(bench.good("apply_patch", json!({"patch": delete})), "deleted src/b.rs\n");
    for path in ["../secret", ".baton/keys/k", "/etc/passwd"] {
        let patch = format!("--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+new\n");
        let ran = bench.run("apply_patch", json!({"patch": patch}));
        assert!(ran.is_error, "{path}: {ran:?}");
    }
}

#[test]
fn nothing_leads_out_of_the_workspace_or_into_what_is_batons_own() {
    let bench = Bench::new();
    let work = bench.at("work");
    symlink(bench.at("secret"), work.join("to-secret")).unwrap();
    symlink("../state", work.join("to-state")).unwrap();
    symlink(".baton", work.join("to-data")).unwrap();
    symlink("src/a.rs", work.join("to-a")).unwrap();
    symlink("/proc/self/root", work.join("to-root")).unwrap();
    symlink("to-loop", work.join("to-loop")).unwrap();
    let secret = bench.at("secret");
    for path in [
        "../secret",
        "src/../../secret",
        secret.to_str().unwrap(),
        "to-secret",
        "to-state/key",
        "to-data/keys/k",
        ".baton/keys/k",
        "src/../.baton/keys/k",
        "/proc/self/root/etc/passwd",
        "/proc/self/environ",
        "to-root/etc/passwd",
        "to-loop",
        "src/../..",
        "/",
    ] {
        for (tool, arguments) in [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "changed"})),
            ("edit_file", json!({"path": path, "old": "side", "new": "x"})),
            ("grep", json!({"pattern": "side", "path": path})),
            ("list_files", json!({"path": path})),
            ("run_command", json!({"command": ["pwd"], "dir": path})),
        ] {
            let ran = bench.run(tool, arguments);
            assert!(ran.is_error, "{tool} {path}: {ran:?}");
        }
    }
    assert_eq!(
        bench.good("read_file", json!({"path": "to-a"})).lines().count(),
        2,
        "what stays inside is followed"
    );
    bench.bad("write_file", json!({"path": "to-a", "content": "x"}), "is a symbolic link");
    assert_eq!(fs::read_to_string(bench.at("secret")).unwrap(), "outside");
    assert_eq!(fs::read_to_string(bench.at("work/.baton/keys/k")).unwrap(), "inside");
}

#[test]
fn a_directory_that_is_swapped_for_a_link_meanwhile_leads_nowhere() {
    let bench = Bench::new();
    let work = bench.at("work");
    fs::create_dir(work.join("real")).unwrap();
    fs::create_dir(bench.at("outside")).unwrap();
    fs::write(bench.at("outside/f"), "outside").unwrap();
    fs::write(work.join("real/f"), "inside").unwrap();
    symlink("../outside", work.join("link")).unwrap();
    symlink(".baton/keys", work.join("link-data")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            while !done.load(Ordering::Relaxed) {
                for link in ["link", "link-data"] {
                    let (a, b) = (work.join("real"), work.join(link));
                    for _ in 0..2 {
                        let _ = rustix::fs::renameat_with(rustix::fs::CWD, &a, rustix::fs::CWD, &b, flags);
                    }
                }
            }
        });
        for n in 0..3000 {
            let read = bench.run("read_file", json!({"path": "real/f"}));
            assert!(read.is_error || read.output == "inside", "{read:?}");
            let read = bench.run("read_file", json!({"path": "real/k"}));
            assert!(read.is_error, "{read:?}");
            bench.run("write_file", json!({"path": format!("real/w{}", n % 7), "content": "x"}));
            bench.run("write_file", json!({"path": "real/f", "content": "inside"}));
        }
        done.store(true, Ordering::Relaxed);
    });
    let names = |dir: PathBuf| fs::read_dir(dir).unwrap().count();
    assert_eq!((names(bench.at("outside")), names(bench.at("work/.baton/keys"))), (1, 1));
    assert_eq!(fs::read_to_string(bench.at("outside/f")).unwrap(), "outside");
}

#[test]
fn programs_give_both_outputs_and_how_they_ended() {
    let bench = Bench::new();
    assert_eq!(bench.good("bash", json!({"command": "echo out; echo err >&2; pwd -P"})).lines().count(), 3);
    bench.bad("bash", json!({"command": "echo no; exit 3"}), "no\n\n[exit 3]");
    bench.bad("run_command", json!({"command": ["no-such-program"]}), "not found: no-such-program");
    bench.bad("run_command", json!({"command": []}), "command: expected a program");
    assert_eq!(bench.good("run_command", json!({"command": ["cat"], "stdin": "x", "dir": "src"})), "x");
    bench.bad("git_-c", json!({}), "there is no tool");
}

#[test]
fn git_works_without_asking_anybody() {
    let bench = Bench::with(|settings| {
        let identity = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"];
        settings.env.extend(identity.map(|name| (name.to_owned(), "a@b".to_owned())));
    });
    bench.good("git_init", json!({"args": ["-q"]}));
    bench.good("git_add", json!({"args": ["src"]}));
    bench.good("git_commit", json!({"args": ["-qm", "first"]}));
    assert!(bench.good("git_log", json!({"args": ["--oneline"]})).contains("first"));
    let patch =
        "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,2 @@\n fn one() {}\n-fn two() {}\n+fn three() {}\n";
    bench.good("git_apply", json!({"stdin": patch}));
    assert!(bench.good("git_diff", json!({})).contains("+fn three"));
    bench.good("git_checkout", json!({"args": ["-q", "src/a.rs"]}));
    assert_eq!(bench.good("git_diff", json!({})), "");
}

#[test]
fn what_does_not_end_in_time_is_ended_with_all_that_it_started() {
    let bench = Bench::with(|settings| {
        settings.timeouts.insert("bash".into(), Duration::from_millis(300));
    });
    let began = Instant::now();
    let ran = bench.run("bash", json!({"command": "sleep 1000 & echo $! > pid; wait"}));
    assert_eq!(ran.failed.as_deref(), Some("timed out after 300ms"));
    assert!(began.elapsed() < Duration::from_secs(10));
    let pid = fs::read_to_string(bench.at("work/pid")).unwrap();
    // Killed is not gone yet: the kernel takes a moment.
    let status = || fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap_or_default();
    let is_gone = || status().is_empty() || status().contains("State:\tZ");
    while !is_gone() {
        assert!(began.elapsed() < Duration::from_secs(10), "{}", status());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn much_output_is_cut_and_the_whole_is_an_artifact() {
    let bench = Bench::with(|settings| settings.output_bytes = 1000);
    let ran = bench.run("bash", json!({"command": "seq 1 10000"}));
    let (digest, bytes) = ran.artifact.unwrap();
    assert_eq!(bytes, 48894);
    assert!(ran.output.starts_with("1\n2\n") && ran.output.ends_with("10000\n"), "{}", ran.output);
    assert!(ran.output.contains(&format!("sha256:{digest}")));
    assert!(ran.output.len() < 1300);
}

#[test]
fn programs_get_nothing_of_the_environment_but_what_is_allowed() {
    let bench = Bench::with(|settings| {
        settings.env.insert("GIVEN".into(), "yes".into());
    });
    let said = bench.good("bash", json!({"command": "env"}));
    let names: Vec<&str> =
        said.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    for name in &names {
        let is_known = crate::process::PASSED.contains(name)
            || name.starts_with("GIT_")
            || ["GIVEN", "PAGER", "SSH_ASKPASS_REQUIRE", "PWD", "SHLVL", "_", "OLDPWD"].contains(name);
        assert!(is_known, "{name}");
    }
    assert!(names.contains(&"GIVEN") && !names.contains(&"CARGO_MANIFEST_DIR"), "{names:?}");
    assert!(said.contains(&format!("HOME={}", bench.at("private/home").display())), "{said}");
}

#[test]
fn every_tool_that_is_offered_is_known_and_says_what_it_takes() {
    let bench = Bench::new();
    for definition in definitions() {
        let ran = bench.run(definition.name, json!({"no such argument": 1}));
        assert!(ran.is_error && !ran.output.contains("there is no tool"), "{}: {ran:?}", definition.name);
        assert_eq!(definition.parameters["additionalProperties"], false);
        assert_eq!(Some(definition.mutating), baton_core::session::is_mutating(definition.name));
    }
}

#[test]
fn a_private_directory_in_what_is_hidden_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = ToolSettings::new(dir.path(), dir.path().join(".baton/tmp"));
    settings.own = vec![dir.path().join(".baton")];
    fs::create_dir(dir.path().join(".baton")).unwrap();
    let refused = ToolRunner::new(settings, None).unwrap_err();
    assert!(refused.to_string().contains("which programs never see"), "{refused}");
}
