//! Programs that an agent has run by its client: each with a thread that follows it, the end of its output kept, ended with the session.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema::TerminalExitStatus;

use crate::limits::{TERMINAL_BYTES_MAX, TERMINAL_TIME, TERMINALS_MAX};
use crate::process::Ended;
use crate::session::Gave;
use crate::tools::{ToolRunner, variables};

/// Is told how a program ended.
pub(super) type Answer = Box<dyn FnOnce(TerminalExitStatus) + Send>;

/// Is told how a program ended, with everything that it printed.
pub(super) type Account = Box<dyn FnOnce(Gave) + Send>;

/// The terminals of one agent.
#[derive(Debug)]
pub(super) struct Terminals {
    tools: Arc<ToolRunner>,
    open: Mutex<BTreeMap<String, Arc<Terminal>>>,
    last: AtomicU64,
}

pub(super) struct Terminal {
    stop: AtomicBool,
    state: Mutex<State>,
}

struct State {
    output: VecDeque<u8>,
    limit: usize,
    is_cut: bool,
    ended: Option<TerminalExitStatus>,
    waiting: Vec<Answer>,
}

/// For whoever answers for a program: all that it prints, however little of it its agent wants to see.
struct Kept {
    spool: io::Result<File>,
    account: Account,
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal").field("stop", &self.stop).finish_non_exhaustive()
    }
}

impl Terminals {
    pub(super) fn new(tools: Arc<ToolRunner>) -> Self {
        Terminals { tools, open: Mutex::default(), last: AtomicU64::new(0) }
    }

    /// Starts a program and gives the name of its terminal. `account` is told what came of it, also where it cannot be started.
    pub(super) fn create(
        &self,
        words: Vec<String>,
        env: Vec<(String, String)>,
        dir: Option<&Path>,
        limit: Option<usize>,
        mut account: Option<Account>,
    ) -> Result<String, String> {
        let created = self.start(words, env, dir, limit, &mut account);
        if let (Err(why), Some(account)) = (&created, account) {
            account(Gave { output: why.clone(), is_error: true, ..Gave::default() });
        }
        created
    }

    fn start(
        &self,
        words: Vec<String>,
        env: Vec<(String, String)>,
        dir: Option<&Path>,
        limit: Option<usize>,
        account: &mut Option<Account>,
    ) -> Result<String, String> {
        let dir =
            self.tools.place(dir.unwrap_or(Path::new("."))).map_err(|refused| format!("cwd: {refused}"))?;
        let env = variables::checked(env)?;
        let mut open = lock(&self.open);
        if open.len() >= TERMINALS_MAX {
            return Err(format!("expected at most {TERMINALS_MAX} terminals at a time, got another"));
        }
        let limit = limit.unwrap_or(TERMINAL_BYTES_MAX).min(TERMINAL_BYTES_MAX);
        let (output, waiting) = (VecDeque::new(), Vec::new());
        let state = State { output, limit, is_cut: false, ended: None, waiting };
        let terminal = Arc::new(Terminal { stop: AtomicBool::new(false), state: Mutex::new(state) });
        let command = self.tools.command(words, dir, TERMINAL_TIME, &env);
        let mut kept = account.take().map(|account| Kept { spool: self.tools.spool(), account });
        let (followed, tools) = (terminal.clone(), self.tools.clone());
        let follow = move || {
            let mut copy = Copy { terminal: &followed, kept: kept.as_mut() };
            let ran = command.run(Some(&mut copy), &mut || followed.stop.load(Ordering::Relaxed));
            if let Err(error) = &ran {
                let _ = copy.write(format!("{error}\n").as_bytes());
            }
            let ended = ran.map(|ran| ran.ended);
            // It is told of before its agent is: what the agent does next may rest on it.
            if let Some(kept) = kept {
                kept.tell(&tools, ended.as_ref().ok().copied());
            }
            followed.end(&match ended {
                Ok(Ended::Exit(code)) => TerminalExitStatus::new().exit_code(u32::try_from(code).ok()),
                Ok(Ended::Signal(signal)) => TerminalExitStatus::new().signal(signal.to_string()),
                Ok(Ended::Stopped | Ended::TimedOut) => {
                    TerminalExitStatus::new().signal("SIGTERM".to_owned())
                }
                Err(_) => TerminalExitStatus::new().exit_code(127),
            });
        };
        let started = std::thread::Builder::new().name("terminal".into()).spawn(follow);
        started.map_err(|error| error.to_string())?;
        let id = format!("term_{}", self.last.fetch_add(1, Ordering::Relaxed) + 1);
        open.insert(id.clone(), terminal);
        Ok(id)
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Terminal>> {
        lock(&self.open).get(id).cloned()
    }

    /// What it printed so far, whether its beginning is missing, and how it ended if it has.
    pub(super) fn output(&self, id: &str) -> Option<(String, bool, Option<TerminalExitStatus>)> {
        let terminal = self.get(id)?;
        let state = lock(&terminal.state);
        Some((state.text(), state.is_cut, state.ended.clone()))
    }

    /// Ends the program; what it printed can still be asked for.
    pub(super) fn kill(&self, id: &str) -> bool {
        self.get(id).map(|terminal| terminal.stop.store(true, Ordering::Relaxed)).is_some()
    }

    /// Ends the program and forgets it.
    pub(super) fn release(&self, id: &str) -> bool {
        let released = lock(&self.open).remove(id);
        released.map(|terminal| terminal.stop.store(true, Ordering::Relaxed)).is_some()
    }

    pub(super) fn end(&self) {
        for terminal in std::mem::take(&mut *lock(&self.open)).into_values() {
            terminal.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Terminals {
    fn drop(&mut self) {
        self.end();
    }
}

impl Kept {
    /// Tells how the program ended; `None` where it did not begin.
    fn tell(self, tools: &ToolRunner, ended: Option<Ended>) {
        let unkept = |error: io::Error| format!("what it printed could not be kept: {error}");
        let kept = self.spool.and_then(|spool| tools.keep(spool)).map_err(unkept);
        let cut_short = match ended {
            Some(Ended::Signal(signal)) => Some(format!("it was ended by signal {signal}")),
            Some(Ended::Stopped | Ended::TimedOut) => Some("it was stopped".to_owned()),
            Some(Ended::Exit(_)) | None => None,
        };
        let exit_code = ended.map_or(Some(127), Ended::exit_code);
        let is_error = exit_code != Some(0);
        (self.account)(match kept {
            Ok((output, whole)) => Gave { output, whole, exit_code, is_error, failed: cut_short },
            Err(why) => Gave { exit_code, is_error, failed: Some(why), ..Gave::default() },
        });
    }
}

impl State {
    fn text(&self) -> String {
        let bytes: Vec<u8> = self.output.iter().copied().collect();
        // A character that was cut at the beginning is left out.
        let start = bytes.iter().take(3).take_while(|byte| self.is_cut && **byte & 0xc0 == 0x80).count();
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }
}

impl Terminal {
    /// Answers once it has ended.
    pub(super) fn wait(&self, answer: Answer) {
        let mut state = lock(&self.state);
        match state.ended.clone() {
            Some(ended) => {
                drop(state);
                answer(ended);
            }
            None => state.waiting.push(answer),
        }
    }

    fn push(&self, bytes: &[u8]) {
        let mut state = lock(&self.state);
        state.output.extend(bytes);
        let excess = state.output.len().saturating_sub(state.limit);
        if excess > 0 {
            state.output.drain(..excess);
            state.is_cut = true;
        }
    }

    fn end(&self, ended: &TerminalExitStatus) {
        let mut state = lock(&self.state);
        state.ended = Some(ended.clone());
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for answer in waiting {
            answer(ended.clone());
        }
    }
}

/// Takes what a program prints.
struct Copy<'a> {
    terminal: &'a Terminal,
    kept: Option<&'a mut Kept>,
}

impl Write for Copy<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.terminal.push(bytes);
        // What cannot be kept does not stop the program; whoever answers for it is told at the end.
        if let Some(kept) = &mut self.kept
            && let Ok(spool) = &mut kept.spool
            && let Err(error) = spool.write_all(bytes)
        {
            kept.spool = Err(error);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::ToolSettings;

    fn variables(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_agent_sets_variables_of_its_program_but_not_whose_it_is() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        let mut settings = ToolSettings::new(dir.path().join("work"), dir.path().join("private"));
        settings.marks = variables(&[("BATON_SESSION_ID", "sess_1")]).into_iter().collect();
        let terminals = Terminals::new(Arc::new(ToolRunner::new(settings, None).unwrap()));
        let create = |env: &[(&str, &str)]| {
            let words = ["sh", "-c", "echo $BATON_SESSION_ID $WHAT"].map(str::to_owned).to_vec();
            terminals.create(words, variables(env), None, None, None)
        };
        let why = create(&[("WHAT", "x"), ("BATON_SESSION_ID", "sess_2")]).unwrap_err();
        assert_eq!(why, "env[1].name: expected none of Baton's own (BATON_*), got \"BATON_SESSION_ID\"");
        let id = create(&[("WHAT", "x")]).unwrap();
        let (say, ended) = std::sync::mpsc::channel();
        terminals.get(&id).unwrap().wait(Box::new(move |status| say.send(status).unwrap()));
        ended.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        assert_eq!(terminals.output(&id).unwrap().0, "sess_1 x\n");
    }
}
