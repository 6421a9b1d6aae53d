//! What the world refuses: a held lock, a read-only directory, a full disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use baton_store::lock::OwnerLock;
use serde_json::json;

use crate::support::{Home, finish};

#[test]
fn a_held_lock_is_a_conflict_that_names_its_owner() {
    let home = Home::new().with_env("BATON_LOCK_WAIT_MS", "50");
    let trace = home.trace();
    let held = OwnerLock::acquire(&baton_store::Layout::new(home.data()), Duration::ZERO).unwrap();
    let pid = std::process::id().to_string();
    let commands: [&[&str]; 8] = [
        &["trace", "new"],
        &["trace", "append", &trace],
        &["trace", "close", &trace, "--reason", "x"],
        &["trace", "checkpoint"],
        &["trace", "prove", "--consistency", "1"],
        &["trace", "export", &trace, "-o", "x"],
        &["agent", "key", "a"],
        &["doctor", "--fix"],
    ];
    for command in commands {
        home.changes_nothing(|home| home.run_with(command, r#"{"type":"note"}"#)).refused(5, "L003", &pid);
    }
    home.run(&["trace", "new", "--json"]).refused_json(5, "L003");
    assert!(home.run(&["doctor"]).stdout.contains(&format!("held by process {pid}")));
    drop(held);
    home.run(&["trace", "new"]).expect(0);
}

#[test]
fn an_owner_that_died_holds_nothing() {
    let home = Home::new().with_env("BATON_LOCK_WAIT_MS", "5000");
    // A pid left in the file by a process that is gone.
    fs::write(home.data().join("lock"), "4194303\nbaton serve\n").unwrap();
    home.run(&["trace", "new"]).expect(0);
    let mut holder =
        Command::new("flock").arg(home.data().join("lock")).args(["sleep", "600"]).spawn().unwrap();
    crate::support::until("the lock is held", || {
        baton_store::lock::holder(&baton_store::Layout::new(home.data())).unwrap().is_some()
    });
    // `flock` runs its command as a child that holds the lock too.
    let children =
        fs::read_to_string(format!("/proc/{0}/task/{0}/children", holder.id())).unwrap_or_default();
    holder.kill().unwrap();
    holder.wait().unwrap();
    for child in children.split_whitespace() {
        let pid = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    home.run(&["trace", "new"]).expect(0);
}

/// A mount that ends with the test; `None` where mounting is not allowed here.
struct Mount(PathBuf);

impl Mount {
    fn new(arguments: &[&str], at: &Path) -> Option<Mount> {
        let mounted = Command::new("mount").args(arguments).arg(at).output().ok()?;
        if mounted.status.success() {
            return Some(Mount(at.to_owned()));
        }
        println!("skipped: mount: {}", String::from_utf8_lossy(&mounted.stderr));
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn a_read_only_directory_can_be_read_and_says_so_when_written() {
    let home = Home::new();
    let trace = home.trace();
    home.append(&trace, "a", &json!({"type": "note"}));
    let data = home.data();
    let Some(_mount) = Mount::new(&["--bind", data.to_str().unwrap()], &data) else { return };
    let remounted = Command::new("mount").args(["-o", "remount,bind,ro"]).arg(&data).status().unwrap();
    if !remounted.success() {
        println!("skipped: this machine does not mount read-only");
        return;
    }
    let read: [&[&str]; 7] = [
        &[],
        &["trace", "ls"],
        &["trace", "show", &trace],
        &["events"],
        &["verify"],
        &["replay"],
        &["doctor"],
    ];
    for command in read {
        home.run(command).expect(0);
    }
    let write: [&[&str]; 5] = [
        &["trace", "new"],
        &["trace", "append", &trace],
        &["trace", "checkpoint"],
        &["agent", "key", "a"],
        &["doctor", "--fix"],
    ];
    for command in write {
        let ended = home.changes_nothing(|home| home.run_with(command, r#"{"type":"note"}"#));
        ended.refused(1, "L011", "Read-only file system");
    }
}

#[test]
fn a_full_disk_is_said_and_nothing_acknowledged_is_lost() {
    let home = Home::empty();
    fs::create_dir(home.data()).unwrap();
    let Some(_mount) = Mount::new(&["-t", "tmpfs", "-o", "size=512k", "tmpfs"], &home.data()) else { return };
    home.run(&["init"]).expect(0);
    let trace = home.trace();
    let event = format!("{{\"type\":\"note\",\"payload\":{{\"text\":\"{}\"}}}}\n", "x".repeat(20_000));
    let ended = home.run_with(&["trace", "append", &trace, "--json"], event.repeat(100));
    ended.refused_json(1, "L010");
    let acknowledged = ended.stdout.lines().count();
    assert!(acknowledged > 5, "{acknowledged}");
    assert_eq!(home.events().len(), 2 + acknowledged, "all that was acknowledged, and nothing else");
    home.run(&["verify"]).expect(0);
    assert_eq!(home.json(&["replay"])["equal"], true);
    // With room again it goes on.
    let larger = Command::new("mount").args(["-o", "remount,size=8m"]).arg(home.data()).status().unwrap();
    assert!(larger.success());
    home.append(&trace, "a", &json!({"type": "note"}));
    home.run(&["verify"]).expect(0);
}

#[test]
fn a_data_directory_on_another_file_system_works_like_any_other() {
    use std::os::unix::fs::MetadataExt as _;
    let home = Home::empty();
    // Memory that every Linux shows as a file system, linked into the place of the data directory.
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return };
    std::os::unix::fs::symlink(other.path(), home.data()).unwrap();
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    assert_ne!(device(&home.data()), device(&home.work()), "two file systems");
    home.run(&["init"]).expect(0);
    let trace = home.trace();
    fs::write(home.work().join("log.txt"), "from here").unwrap();
    home.append(&trace, "a", &json!({"type": "note", "artifacts": [{"path": "log.txt"}]}));
    home.run(&["trace", "export", &trace, "-o", "out.bundle"]).expect(0);
    home.run(&["verify", "out.bundle"]).expect(0);
    home.run(&["trace", "checkpoint"]).expect(0);
    home.run(&["verify"]).expect(0);
    home.run(&["doctor"]).expect(0);
}

#[test]
fn a_file_in_the_place_of_a_directory_is_an_error_with_a_code() {
    let home = Home::empty();
    fs::write(home.data(), "a file").unwrap();
    let ended = home.run(&["init"]);
    ended.expect(1);
    assert!(ended.stderr.contains("error[L012]"), "{}", ended.stderr);
    home.run(&["trace", "ls"]).refused(3, "L001", "no ledger in");
    fs::remove_file(home.data()).unwrap();
    fs::write(home.state(), "a file").unwrap();
    let ended = home.run(&["init"]);
    ended.expect(1);
    assert!(ended.stderr.contains("error[L0"), "{}", ended.stderr);
    fs::remove_file(home.state()).unwrap();
    home.run(&["init"]).expect(0);
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_leaves_nothing_half_done() {
    let home = Home::empty();
    let limited = |blocks: u32, args: &str| {
        let script = format!("ulimit -f {blocks}; exec {} {args}", env!("CARGO_BIN_EXE_baton"));
        let command = home.command(&[]);
        let mut limited = Command::new("sh");
        limited.args(["-c", &script]).current_dir(home.work());
        limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        limited.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(limited.spawn().unwrap(), Some("{\"type\":\"note\"}\n".repeat(200).into_bytes()))
    };
    limited(0, "init").expect(1);
    home.run(&["init"]).expect(0);
    assert_eq!(fs::read_to_string(home.data().join(".gitignore")).unwrap(), "*\n");
    let trace = home.trace();
    let ended = limited(16, &format!("trace append {trace}"));
    ended.expect(1);
    let acknowledged = ended.stdout.lines().count();
    assert!(acknowledged > 0 && ended.stderr.contains("nothing was recorded"), "{}", ended.stderr);
    assert_eq!(home.events().iter().filter(|event| event["type"] == "note").count(), acknowledged);
    home.run(&["verify"]).expect(0);
}
