//! A throw-away data directory, the binary run in it with a deadline, and what there is to compare.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use baton_ledger::hash::Hasher;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

/// No command may take longer; one that does is killed and the test fails.
const DEADLINE: Duration = Duration::from_secs(120);

/// A data directory, a state directory and a working directory beside each other.
pub(crate) struct Home {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

/// How a command ended and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    /// An empty place.
    pub(crate) fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        Home { dir, env: Vec::new() }
    }

    /// With a ledger in it.
    pub(crate) fn new() -> Self {
        let home = Home::empty();
        home.run(&["init"]).expect(0);
        home
    }

    pub(crate) fn with_env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// Where the private half of a key lies.
    pub(crate) fn private_key(&self, key: &str) -> PathBuf {
        let mut all = fs::read_dir(self.state()).unwrap().map(|entry| entry.unwrap().path());
        all.find_map(|dir| Some(dir.join(format!("{key}.key"))).filter(|path| path.exists())).unwrap()
    }

    /// The only segment, or the last one.
    pub(crate) fn segment(&self) -> PathBuf {
        let mut all: Vec<PathBuf> =
            fs::read_dir(self.data().join("events")).unwrap().map(|entry| entry.unwrap().path()).collect();
        all.sort();
        all.pop().unwrap()
    }

    /// The binary with nothing of the surroundings but what is set here.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        command
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("BATON_DATA_DIR", self.data())
            .env("BATON_STATE_DIR", self.state())
            .env("NO_COLOR", "1")
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        finish(self.command(args).spawn().unwrap(), None)
    }

    pub(crate) fn run_with(&self, args: &[&str], stdin: impl Into<Vec<u8>>) -> Ended {
        let child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        finish(child, Some(stdin.into()))
    }

    /// Runs with `--json` and gives the one object that was printed.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let ended = self.run(&[args, &["--json"]].concat());
        ended.expect(0);
        ended.object()
    }

    /// A new trace.
    pub(crate) fn trace(&self) -> String {
        self.json(&["trace", "new"])["trace"].as_str().unwrap().to_owned()
    }

    /// Appends one event and gives its receipt.
    pub(crate) fn append(&self, trace: &str, agent: &str, event: &Value) -> Value {
        let ended = self.run_with(&["trace", "append", trace, "--agent", agent, "--json"], event.to_string());
        ended.expect(0);
        ended.object()["events"][0].clone()
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        let ended = self.run(&["events", "--json"]);
        ended.expect(0);
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Every name and every byte below the data directory.
    pub(crate) fn hash(&self) -> String {
        hash(&self.data())
    }

    /// Asserts that a command changes nothing at all.
    pub(crate) fn changes_nothing(&self, run: impl FnOnce(&Home) -> Ended) -> Ended {
        let before = self.hash();
        let ended = run(self);
        assert_eq!(self.hash(), before, "something was changed: {ended:?}");
        ended
    }
}

impl Ended {
    #[track_caller]
    pub(crate) fn expect(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Asserts an error with this code of ours and this exit code; the text names what is given.
    #[track_caller]
    pub(crate) fn refused(&self, exit: i32, code: &str, names: &str) -> &Self {
        self.expect(exit);
        let is_ours = self.stderr.contains(&format!("error[{code}]: "));
        assert!(is_ours, "expected error[{code}]: {}", self.stderr);
        assert!(self.stderr.contains(names), "expected {names:?} in: {}", self.stderr);
        assert!(self.stderr.contains("hint: "), "expected a hint: {}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    /// Asserts that the error came as JSON with this code.
    #[track_caller]
    pub(crate) fn refused_json(&self, exit: i32, code: &str) -> &Self {
        self.expect(exit);
        let error: Value =
            serde_json::from_str(&self.stderr).unwrap_or_else(|e| panic!("{e}: {}", self.stderr));
        assert_eq!(error["error"]["code"], code, "{error}");
        self
    }

    #[track_caller]
    pub(crate) fn object(&self) -> Value {
        let value: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}: {:?} {:?}", self.stdout, self.stderr));
        assert_eq!(value["v"], 1, "{value}");
        value
    }
}

/// Every name and every byte below a directory.
pub(crate) fn hash(dir: &Path) -> String {
    let mut hasher = Hasher::default();
    let mut todo = vec![dir.to_owned()];
    while let Some(path) = todo.pop() {
        hasher.update(path.as_os_str().as_encoded_bytes());
        if path.is_dir() {
            let mut inner: Vec<PathBuf> =
                fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
            inner.sort();
            todo.extend(inner);
        } else {
            hasher.update(&fs::read(&path).unwrap());
        }
    }
    hasher.finish().to_string()
}

/// Feeds, reads and waits, all within the deadline.
pub(crate) fn finish(mut child: Child, stdin: Option<Vec<u8>>) -> Ended {
    let feeder = stdin.map(|bytes| {
        let mut pipe = child.stdin.take().unwrap();
        // A command that refuses early stops reading; that is its right.
        thread::spawn(move || drop(pipe.write_all(&bytes)))
    });
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let status = wait(&mut child);
    if let Some(feeder) = feeder {
        feeder.join().unwrap();
    }
    Ended { code: status.code(), stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).unwrap();
        }
        String::from_utf8(bytes).expect("everything that is printed is UTF-8")
    })
}

/// Waits for a child and kills it at the deadline.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > DEADLINE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("not done after {DEADLINE:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// A terminal: our end, and the one that a command gets.
pub(crate) fn terminal() -> (OwnedFd, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    (ours, theirs)
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < DEADLINE, "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
