//! One process owns the data directory and does what others hand over, so that nobody can tell the difference.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Ended, Home, finish, until, wait};

/// A running `baton serve`.
pub(crate) struct Serving {
    child: Child,
    socket: PathBuf,
    /// What it prints after the first line.
    pub(crate) said: Option<BufReader<ChildStdout>>,
}

impl Serving {
    pub(crate) fn start(home: &Home) -> Serving {
        Serving::start_with(home, &[])
    }

    pub(crate) fn start_with(home: &Home, more: &[&str]) -> Serving {
        Serving::start_saying(home, more).0
    }

    /// The same, and what it says first.
    pub(crate) fn start_saying(home: &Home, more: &[&str]) -> (Serving, Value) {
        let mut child = home.command(&[&["serve", "--json"], more].concat()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        if line.is_empty() {
            panic!("it does not serve: {:?}", finish(child, None));
        }
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["pid"], child.id(), "{line}");
        let socket = line["listening"].as_str().unwrap().into();
        (Serving { socket, child, said: Some(said) }, line)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Ends it and gives what it said on standard error.
    pub(crate) fn stop(self) -> String {
        self.signal("-TERM");
        self.stop_signalled()
    }

    /// The same for one that was told already.
    pub(crate) fn stop_signalled(mut self) -> String {
        drop(self.said.take());
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(wait(&mut self.child).code(), Some(0), "{stderr}");
        assert!(!self.socket.exists(), "its socket is gone");
        stderr
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ids, hashes, keys and times differ from one ledger to the next; the rest must not.
pub(crate) fn redact(text: &str, home: &Home) -> String {
    let text = text.replace(&home.path("").display().to_string(), "HOME/");
    let mut out = String::new();
    for word in text.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || "_-:+/=.".contains(c))) {
        let (core, end) = match word.char_indices().next_back() {
            Some((at, c)) if !(c.is_ascii_alphanumeric() || "_-:+/=.".contains(c)) => word.split_at(at),
            _ => (word, ""),
        };
        let is_made = ["trc_", "evt_", "key_", "ed25519", "led_", "baton/led_"].iter().any(|p| core.contains(p))
                || (core.len() >= 20 && !core.contains("HOME") && core.bytes().any(|b| b.is_ascii_digit()))
                // The base64 of a hash; one in some hundred has no digit.
                || (core.len() == 44 && core.ends_with('='));
        // Times, and how long something takes or took.
        let is_time = core.starts_with(|c: char| c.is_ascii_digit())
            && core.bytes().all(|b| b.is_ascii_digit() || b":-.TZsmh".contains(&b))
            && core.bytes().any(|b| b":Zsmh".contains(&b));
        out.push_str(match (is_made, is_time) {
            (true, _) => "MADE",
            (_, true) => "TIME",
            _ => core,
        });
        out.push_str(end);
    }
    // On a slow machine a second passes; columns are as wide as what is in them.
    let out = (1..60).fold(out, |out, n| out.replace(&format!(" {n} s ago"), " just now"));
    out.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Runs the same story and gives everything that was said.
fn story(home: &Home) -> Vec<String> {
    let mut told = Vec::new();
    let mut tell = |ended: &Ended| {
        told.push(redact(&format!("{:?}\n{}\n{}", ended.code, ended.stdout, ended.stderr), home));
    };
    fs::write(
        home.work().join("events.jsonl"),
        "{\"type\":\"note\"}\n{\"type\":\"note\",\"payload\":{\"n\":1}}\n",
    )
    .unwrap();
    fs::write(home.work().join("log.txt"), "a log").unwrap();
    let new = home.run(&["trace", "new", "--title", "a story"]);
    tell(&new);
    let trace = new.stdout.trim();
    tell(&home.run(&["trace", "new", "--title", "", "--json"]));
    tell(&home.run(&["agent", "key", "worker", "--role", "planner"]));
    tell(&home.run(&["agent", "key", "worker", "--role", "executor"]));
    tell(&home.run(&["agent", "key", "other", "--public", "nothing.pub"]));
    tell(&home.run(&["agent", "key", "other", "--public", "log.txt", "--json"]));
    tell(&home.run_with(&["trace", "append", trace], "{\"type\":\"note\"}"));
    tell(&home.run_with(
        &["trace", "append", trace, "--agent", "worker", "--json"],
        "[{\"type\":\"note\"},{\"type\":\"note\"}]",
    ));
    tell(
        &home.run_with(&["trace", "append", trace, "-", "--color", "always"], "{\"type\":\"note\"}\noops\n"),
    );
    tell(&home.run_with(&["trace", "append", trace], ""));
    tell(&home.run(&["trace", "append", trace, "events.jsonl"]));
    tell(&home.run(&["trace", "append", trace, "missing.jsonl"]));
    tell(&home.run(&["trace", "append", trace, "dir/missing.jsonl", "--json"]));
    let cites = json!({"type": "note", "artifacts": [{"path": "log.txt"}]});
    tell(&home.run_with(&["trace", "append", trace, "--json"], cites.to_string()));
    let cites = json!({"type": "note", "artifacts": [{"path": "gone.txt"}]});
    tell(&home.run_with(&["trace", "append", trace], cites.to_string()));
    tell(&home.run_with(
        &["trace", "append", trace, "--color", "always"],
        json!({"type": "ledger.created"}).to_string(),
    ));
    tell(&home.run(&["trace", "checkpoint", "--json"]));
    tell(&home.run(&["trace", "prove", "--consistency", "nothing.txt"]));
    tell(&home.run(&["trace", "prove", "--consistency", "3", "-q"]));
    tell(&home.run(&["trace", "export", trace, "-o", "out.bundle"]));
    tell(&home.run(&["trace", "export", trace, "-o", "nowhere/out.bundle"]));
    tell(&home.run(&["verify", "out.bundle"]));
    tell(&home.run(&["init"]));
    tell(&home.run(&["trace", "close", trace, "--reason", "done"]));
    tell(&home.run_with(&["trace", "append", trace, "--json"], "{\"type\":\"note\"}"));
    tell(&home.run(&["trace", "show", trace]));
    tell(&home.run(&["--data-dir", "elsewhere", "trace", "new"]));
    tell(&home.run(&["--data-dir", "../data", "trace", "close", "trc_ffff", "--reason", "x"]));
    told
}

#[test]
fn commands_through_an_owner_are_the_same_as_without_one() {
    let alone = Home::new();
    let expected = story(&alone);
    let home = Home::new();
    let serving = Serving::start(&home);
    let told = story(&home);
    for (n, (told, expected)) in told.iter().zip(&expected).enumerate() {
        assert_eq!(told, expected, "step {n}");
    }
    assert_eq!(serving.stop(), "");
    assert_eq!(home.events().len(), alone.events().len());
    home.run(&["verify"]).expect(0);
    assert_eq!(home.json(&["replay"])["equal"], true);
}

#[test]
fn what_is_asked_is_done_by_the_owner_and_nobody_waits_for_a_lock() {
    let home = Home::new().with_env("BATON_LOCK_WAIT_MS", "0");
    let serving = Serving::start(&home);
    let trace = home.trace();
    let mode = fs::metadata(&serving.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    home.append(&trace, "me", &json!({"type": "note"}));
    let doctor = home.run(&["doctor", "--fix"]);
    doctor.expect(0);
    assert!(doctor.stderr.contains("the index is in use"), "{}", doctor.stderr);
    assert!(doctor.stdout.contains(&format!("process {}", serving.child.id())), "{}", doctor.stdout);
    serving.stop();
    assert_eq!(home.events().len(), 3);
    home.append(&trace, "me", &json!({"type": "note"}));
}

#[test]
fn sixteen_callers_at_once_are_all_heard() {
    let home = Home::new();
    let serving = Serving::start(&home);
    let trace = home.trace();
    let children: Vec<_> = (0..16)
        .map(|n| {
            // Each makes its key while others append.
            let agent = format!("agent-{n}");
            let key = home.command(&["agent", "key", &agent, "--json"]).spawn().unwrap();
            let mut child = home
                .command(&["trace", "append", &trace, "--agent", &format!("other-{n}"), "--json"])
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            let mut pipe = child.stdin.take().unwrap();
            (0..8).for_each(|i| writeln!(pipe, "{}", json!({"type": "note", "payload": {"i": i}})).unwrap());
            (key, child)
        })
        .collect();
    let mut receipts = BTreeSet::new();
    for (key, child) in children {
        finish(key, None).expect(0);
        let ended = finish(child, None);
        ended.expect(0);
        for line in ended.stdout.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            receipts.insert(line["events"][0]["pos"].as_u64().unwrap());
        }
    }
    assert_eq!(receipts.len(), 128);
    // The same key is made once, whoever asks.
    let same: Vec<_> =
        (0..8).map(|_| home.command(&["agent", "key", "one", "--json"]).spawn().unwrap()).collect();
    let keys: BTreeSet<String> = same
        .into_iter()
        .map(|child| finish(child, None))
        .filter(|ended| ended.code == Some(0))
        .map(|ended| ended.object()["key"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(keys.len(), 1, "{keys:?}");
    serving.stop();
    home.run(&["verify"]).expect(0);
    assert_eq!(home.json(&["replay"])["equal"], true);
}

#[test]
fn an_owner_that_is_killed_leaves_no_caller_hanging_and_nothing_broken() {
    let home = Home::new();
    let trace = home.trace();
    for round in 0..4 {
        let mut serving = Serving::start(&home);
        let children: Vec<_> = (0..8)
            .map(|_| {
                let mut child = home
                    .command(&["trace", "append", &trace, "--json"])
                    .stdin(Stdio::piped())
                    .spawn()
                    .unwrap();
                let mut pipe = child.stdin.take().unwrap();
                let feeder = std::thread::spawn(move || {
                    (0..200).try_for_each(|_| writeln!(pipe, "{{\"type\":\"note\"}}")).is_ok()
                });
                (child, feeder)
            })
            .collect();
        let before = home.events().len();
        until("some are recorded", || home.events().len() > before + round * 5);
        serving.child.kill().unwrap();
        serving.child.wait().unwrap();
        let mut printed = 0;
        for (child, feeder) in children {
            let ended = finish(child, None);
            feeder.join().unwrap();
            printed += ended.stdout.lines().count();
            match ended.code {
                Some(0) => assert_eq!(ended.stderr, ""),
                Some(1) => {
                    ended.refused_json(1, "S001");
                    assert!(ended.stderr.contains("outcome unknown"), "{}", ended.stderr);
                }
                other => panic!("{other:?}: {}", ended.stderr),
            }
        }
        assert!(home.events().len() >= before + printed.saturating_sub(before));
        assert!(serving.socket.exists(), "nobody took it away");
        // The next command finds the lock free and the socket without anybody.
        home.append(&trace, "me", &json!({"type": "note"}));
        home.run(&["verify"]).expect(0);
    }
    // So does the next owner.
    let serving = Serving::start(&home);
    home.append(&trace, "me", &json!({"type": "note"}));
    serving.stop();
}

#[test]
fn a_second_owner_is_refused_and_names_the_first() {
    let home = Home::new();
    let serving = Serving::start(&home);
    let pid = serving.child.id().to_string();
    let start = std::time::Instant::now();
    home.run(&["serve"]).refused(5, "L003", &format!("process {pid}"));
    assert!(start.elapsed().as_secs() < 5, "it does not wait for one that serves");
    home.run(&["serve", "--json"]).refused_json(5, "L003");
    serving.stop();
    let again = Serving::start(&home);
    again.signal("-INT");
    let mut again = again;
    assert_eq!(wait(&mut again.child).code(), Some(0));
}

#[test]
fn nonsense_on_the_socket_hurts_nobody() {
    let home = Home::new();
    let serving = Serving::start(&home);
    let trace = home.trace();
    let frame = |body: &[u8]| [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], body].concat();
    let good = json!({
        "v": 1, "version": env!("CARGO_PKG_VERSION"), "argv": ["baton", "trace", "new"], "cwd": "/", "env": [],
        "fed": false, "terminal": false,
    });
    let other = json!({"v": 1, "version": "9.9.9", "argv": []});
    let cases: [(Vec<u8>, &str); 6] = [
        (u32::MAX.to_be_bytes().to_vec(), "S003"),
        (frame(b"not json"), "S003"),
        (frame(b"\xff\xfe"), "S003"),
        (frame(other.to_string().as_bytes()), "S002"),
        (frame(good.to_string().as_bytes()), "S003"),
        (frame(&[b'['; 100_000]), "S003"),
    ];
    // These say nothing at all, or go away.
    let silent: Vec<UnixStream> = (0..8).map(|_| UnixStream::connect(&serving.socket).unwrap()).collect();
    for (bytes, code) in &cases {
        let mut stream = UnixStream::connect(&serving.socket).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer.first(), Some(&b'-'), "{}", String::from_utf8_lossy(&answer));
        let error: Value = serde_json::from_slice(&answer[5..]).unwrap();
        assert_eq!(error["code"], *code, "{error}");
        let mut gone = UnixStream::connect(&serving.socket).unwrap();
        gone.write_all(&bytes[..2]).unwrap();
    }
    home.append(&trace, "me", &json!({"type": "note"}));
    drop(silent);
    serving.stop();
    home.run(&["verify"]).expect(0);
}

#[test]
fn a_caller_that_vanishes_is_noticed_and_its_pipe_is_let_go() {
    let home = Home::new();
    let serving = Serving::start(&home);
    let trace = home.trace();
    let mut child =
        home.command(&["trace", "append", &trace, "--json"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
    writeln!(pipe, "{{\"type\":\"note\"}}").unwrap();
    printed.next().unwrap().unwrap();
    child.kill().unwrap();
    wait(&mut child);
    // The owner holds the other end of the pipe until it notices.
    until("the pipe is broken", || writeln!(pipe, "{{\"type\":\"note\"}}").is_err());
    home.append(&trace, "me", &json!({"type": "note"}));
    serving.stop();
}

#[test]
fn ctrl_c_ends_the_caller_and_not_the_owner() {
    let home = Home::new();
    let serving = Serving::start(&home);
    let trace = home.trace();
    let mut child = home.command(&["trace", "append", &trace]).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
    writeln!(pipe, "{{\"type\":\"note\"}}").unwrap();
    printed.next().unwrap().unwrap();
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(wait(&mut child).code(), Some(130));
    home.trace();
    serving.stop();
}

#[test]
fn a_stream_that_began_before_the_owner_goes_on_through_it() {
    let home = Home::new().with_env("BATON_LOCK_WAIT_MS", "3000");
    let trace = home.trace();
    let mut child =
        home.command(&["trace", "append", &trace, "--json"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut say = |text: &str| {
        writeln!(pipe, "{text}").unwrap();
    };
    let note = "{\"type\":\"note\"}";
    say(note);
    printed.next().unwrap().unwrap();
    let serving = Serving::start(&home);
    say(note);
    printed.next().unwrap().unwrap();
    say(note);
    printed.next().unwrap().unwrap();
    say("oops");
    drop(printed);
    let ended = finish(child, None);
    ended.refused_json(4, "U004");
    assert!(ended.stderr.contains("in line 4 of the input"), "{}", ended.stderr);
    serving.stop();
    assert_eq!(home.events().len(), 5);
}

#[test]
fn owners_that_come_and_go_in_good_order_cost_no_caller_anything() {
    let home = Home::new();
    let trace = home.trace();
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|n| {
                let (home, trace) = (&home, &trace);
                scope.spawn(move || {
                    (0..25).for_each(|i| {
                        let note = json!({"type": "note", "payload": {"i": i}});
                        home.append(trace, &format!("agent-{n}"), &note);
                    });
                })
            })
            .collect();
        while callers.iter().any(|caller| !caller.is_finished()) {
            Serving::start(&home).stop();
        }
    });
    assert_eq!(home.events().len(), 102);
    home.run(&["verify"]).expect(0);
}

#[test]
fn what_was_typed_before_there_was_an_owner_is_not_lost() {
    let home = Home::new().with_env("BATON_LOCK_WAIT_MS", "3000");
    let mut child = home.command(&["task", "new", "Typed", "-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(b"What was typed.\n").unwrap();
    // When its pipe is empty, it reads.
    until("it has read", || rustix::io::ioctl_fionread(&pipe) == Ok(0));
    let serving = Serving::start(&home);
    drop(pipe);
    let ended = finish(child, None);
    ended.expect(0);
    let shown = home.run(&["task", "show", ended.stdout.trim()]);
    assert!(shown.stdout.contains("What was typed."), "{shown:?}");
    serving.stop();
}

#[test]
fn a_long_path_and_a_runtime_directory_lead_to_the_same_owner() {
    let home = Home::new();
    let long = home.path(&"x".repeat(120));
    fs::create_dir(&long).unwrap();
    fs::set_permissions(&long, fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = home.command(&["serve", "--json"]);
    let mut child = command.env("XDG_RUNTIME_DIR", &long).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let listening: Value = serde_json::from_str(&line).unwrap();
    assert!(Path::new(listening["listening"].as_str().unwrap()).starts_with(&long), "{listening}");
    // With the variable, and without it.
    let mut with = home.command(&["trace", "new"]);
    finish(with.env("XDG_RUNTIME_DIR", &long).env("BATON_LOCK_WAIT_MS", "0").spawn().unwrap(), None)
        .expect(0);
    let mut without = home.command(&["trace", "new"]);
    finish(without.env("BATON_LOCK_WAIT_MS", "0").spawn().unwrap(), None).expect(0);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(wait(&mut child).code(), Some(0));
    assert_eq!(fs::read_dir(&long).unwrap().count(), 0);
}
