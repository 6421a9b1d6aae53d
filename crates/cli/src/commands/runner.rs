//! Runs a command of ours, within bounds of time and output: as a process of its own, or in the process that owns the data directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::sync::oneshot;

use crate::limits::MCP_OUTPUT_BYTES_MAX;
use crate::serve::{Acting, Owner, in_house};

/// Our own commands, about one data directory.
#[derive(Debug, Clone)]
pub(super) struct Runner {
    way: Way,
    data_dir: PathBuf,
}

/// How they are done.
#[derive(Debug, Clone)]
enum Way {
    /// By this program, as a process.
    Process(PathBuf),
    /// By this very process, in the name of an agent where one asks.
    InHouse(Arc<Owner>, Option<Acting>),
}

/// A command to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Invocation {
    pub(super) args: Vec<String>,
    pub(super) stdin: String,
    pub(super) wait: Duration,
}

/// A command that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ran {
    /// The exit code; nothing where a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Runner {
    pub(super) fn new(exe: PathBuf, data_dir: PathBuf) -> Self {
        Runner { way: Way::Process(exe), data_dir }
    }

    pub(super) fn in_house(owner: Arc<Owner>, acting: Option<Acting>, data_dir: PathBuf) -> Self {
        Runner { way: Way::InHouse(owner, acting), data_dir }
    }

    pub(super) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Runs it to its end, or until it takes too long.
    pub(super) async fn run(&self, invocation: Invocation) -> Result<Ran, String> {
        let wait = invocation.wait;
        let ran = async {
            match &self.way {
                Way::Process(exe) => self.run_process(exe, invocation).await,
                Way::InHouse(owner, acting) => run_here(owner, acting.as_ref(), invocation).await,
            }
        };
        let late = |_| Err(format!("not done after {} s; whether it was done is not known", wait.as_secs()));
        tokio::time::timeout(wait, ran).await.unwrap_or_else(late)
    }

    /// Whoever stops waiting ends the process.
    async fn run_process(&self, exe: &Path, invocation: Invocation) -> Result<Ran, String> {
        let Invocation { args, stdin, .. } = invocation;
        let mut data_dir = OsString::from("--data-dir=");
        data_dir.push(&self.data_dir);
        let mut command = Command::new(exe);
        command.arg("--json").arg(data_dir).args(args).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("baton cannot be started: {error}"))?;
        let (input, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = async move {
            if let Some(mut input) = input {
                // A command that refuses early stops reading; what it says then is the answer.
                let _ = input.write_all(stdin.as_bytes()).await;
                let _ = input.shutdown().await;
            }
        };
        let ((), stdout, stderr) = tokio::join!(feed, read(out), read(err));
        let (stdout, stderr) = (stdout?, stderr?);
        let status = child.wait().await.map_err(|error| format!("baton cannot be waited for: {error}"))?;
        Ok(Ran { code: status.code(), stdout, stderr })
    }
}

/// Runs a command on a thread of its own in this process. It goes on to its end, also where nobody waits for it any more: what waits for a person ends with
/// its session.
async fn run_here(
    owner: &Arc<Owner>,
    acting: Option<&Acting>,
    invocation: Invocation,
) -> Result<Ran, String> {
    let Invocation { args, stdin, .. } = invocation;
    let (owner, acting) = (owner.clone(), acting.cloned());
    let (done, ran) = oneshot::channel();
    let work = move || {
        let ran = in_house::run(&owner, &args, stdin.as_bytes(), acting);
        owner.wake.wake();
        drop(owner);
        let _ = done.send(ran);
    };
    let spawned = std::thread::Builder::new().name("call".into()).spawn(work);
    spawned.map_err(|error| format!("no thread for it: {error}"))?;
    let ran = ran.await.map_err(|_| "the command came to grief".to_owned())?;
    let text = |bytes: Vec<u8>| match bytes.len() as u64 > MCP_OUTPUT_BYTES_MAX {
        true => Err(format!("baton printed more than {MCP_OUTPUT_BYTES_MAX} bytes")),
        false => Ok(String::from_utf8_lossy(&bytes).into_owned()),
    };
    Ok(Ran { code: Some(ran.exit.into()), stdout: text(ran.out)?, stderr: text(ran.err)? })
}

/// Everything that comes, as text, as long as it is not too much.
async fn read(pipe: Option<impl AsyncRead + Unpin>) -> Result<String, String> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let mut pipe = pipe.take(MCP_OUTPUT_BYTES_MAX + 1);
        pipe.read_to_end(&mut bytes).await.map_err(|error| format!("baton cannot be read: {error}"))?;
    }
    if bytes.len() as u64 > MCP_OUTPUT_BYTES_MAX {
        return Err(format!("baton printed more than {MCP_OUTPUT_BYTES_MAX} bytes"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Instant;

    use super::*;

    /// A runner of a shell script instead of our program, and where it lies.
    pub(in crate::commands) fn scripted(script: &str) -> (tempfile::TempDir, Runner) {
        let dir = tempfile::tempdir().unwrap();
        let exe = dir.path().join("baton");
        fs::write(&exe, format!("#!/bin/sh\n[ \"$1\" = probe ] && exit 0\n{script}\n")).unwrap();
        fs::set_permissions(&exe, fs::Permissions::from_mode(0o755)).unwrap();
        // While another test forks it may hold this file open for writing, and then it cannot be started.
        while std::process::Command::new(&exe).arg("probe").status().is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let runner = Runner::new(exe, dir.path().join("data"));
        (dir, runner)
    }

    pub(in crate::commands) fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    fn run(script: &str, stdin: &str, wait: Duration) -> Result<Ran, String> {
        let (_dir, runner) = scripted(script);
        let asked = Invocation { args: vec!["a b".to_owned()], stdin: stdin.to_owned(), wait };
        block_on(runner.run(asked))
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_command_is_told_where_and_heard_to_its_end() {
        let ran = run("echo \"$1 ${2##*/} $3\"; cat; echo oops >&2; exit 4", "in", LONG).unwrap();
        assert_eq!(ran, Ran { code: Some(4), stdout: "--json data a b\nin".into(), stderr: "oops\n".into() });
        let unread = run("exit 0", &"x".repeat(1 << 20), LONG).unwrap();
        assert_eq!(unread.code, Some(0), "nobody need read it");
    }

    #[test]
    fn a_command_that_hangs_or_floods_is_ended() {
        let began = Instant::now();
        let late = run("exec sleep 1000", "", Duration::from_millis(200)).unwrap_err();
        assert!(late.starts_with("not done after 0 s"), "{late}");
        let flood = run("exec cat /dev/zero", "", LONG).unwrap_err();
        assert!(flood.contains("printed more than"), "{flood}");
        assert!(began.elapsed() < Duration::from_secs(30));
        let (dir, runner) = scripted("exit 0");
        fs::remove_file(dir.path().join("baton")).unwrap();
        let asked = Invocation { args: Vec::new(), stdin: String::new(), wait: LONG };
        assert!(block_on(runner.run(asked)).unwrap_err().contains("cannot be started"));
    }
}
