//! Any command, run once for each prompt: what it prints is what the agent says, and its end is the end of the turn.
//!
//! One process is one turn. It is told of as an agent that lives on: exit 0 ends the turn and not the session; anything else is told as the end that
//! it is, with its errors. A profile says in which form a command prints; what it does not know costs no turn.

mod claude;
mod codex;
mod gemini;
mod profile;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::session::{Answer, ProcessEnd};

use self::profile::{Outcome, Read, Reader};
use super::{Failure, Harness, Ready, Told};
use crate::agent::{Agent, Exit, Heard, Launch, find};
use crate::limits::EXEC_EXIT_GRACE;

pub use self::profile::Profile;

/// What stands for the prompt in the words of a command. Where it does not, the prompt is what the command reads.
pub const PROMPT_WORD: &str = "{prompt}";

/// Makes what is started for a turn: the same each time, with a place of its own for what it writes beside.
pub type Prepare = Box<dyn FnMut() -> io::Result<Launch> + Send>;

/// A command that is run for each prompt.
pub struct ExecHarness {
    prepare: Prepare,
    profile: Profile,
    tell: Arc<dyn Fn(Told) + Send + Sync>,
    /// What is told by a thread of its own, because whoever asks for it is also who listens.
    aside: Sender<Told>,
    turn: Option<Turn>,
}

/// A process and what is wanted of it.
#[derive(Debug)]
struct Turn {
    agent: Agent,
    wanted: Arc<Wanted>,
}

#[derive(Debug, Default)]
struct Wanted {
    is_cancelled: AtomicBool,
    is_stopped: AtomicBool,
    is_over: AtomicBool,
}

impl std::fmt::Debug for ExecHarness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecHarness")
            .field("profile", &self.profile)
            .field("turn", &self.turn)
            .finish_non_exhaustive()
    }
}

impl ExecHarness {
    /// Checks that there is such a program. Nothing is started before the first prompt.
    pub fn start(
        mut prepare: Prepare,
        profile: Profile,
        tell: impl Fn(Told) + Send + Sync + 'static,
    ) -> io::Result<ExecHarness> {
        let launch = prepare()?;
        let program = launch.words.first();
        let program = program.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no command"))?;
        find(program, &launch.dir, &launch.env)?;
        let tell: Arc<dyn Fn(Told) + Send + Sync> = Arc::new(tell);
        let (aside, told) = channel();
        let teller = tell.clone();
        std::thread::Builder::new()
            .name("exec".into())
            .spawn(move || told.into_iter().for_each(|told| teller(told)))?;
        let agent = Some(program.clone());
        // The thread has just been made.
        let _ = aside.send(Told::Ready(Ready { agent, ..Ready::default() }));
        Ok(ExecHarness { prepare, profile, tell, aside, turn: None })
    }

    fn running(&self) -> Option<&Turn> {
        self.turn.as_ref().filter(|turn| !turn.wanted.is_over.load(Ordering::SeqCst))
    }

    /// Ends the process of the moment in this way; without one, the session has its end.
    fn finish(&self, how: impl FnOnce(&Agent)) {
        if let Some(turn) = self.running() {
            turn.wanted.is_stopped.store(true, Ordering::SeqCst);
            how(&turn.agent);
            // It may have been at its end: then nobody else tells of the session's. The first end counts.
            if !turn.wanted.is_over.load(Ordering::SeqCst) {
                return;
            }
        }
        let exit = Exit::without_process(ProcessEnd::Exited(0), true);
        let _ = self.aside.send(Told::Exited(Box::new(exit)));
    }

    fn run(&mut self, prompt: &str) -> io::Result<Turn> {
        let mut launch = (self.prepare)()?;
        let is_argument = place(&mut launch.words, prompt);
        let wanted = Arc::new(Wanted::default());
        let mut listener = Listener {
            reader: self.profile.reader(),
            outcome: None,
            deadline: None,
            agent: Arc::default(),
            wanted: wanted.clone(),
            tell: self.tell.clone(),
        };
        let own = listener.agent.clone();
        let agent = Agent::start(launch, move |heard| listener.hear(heard))?;
        *own.lock().unwrap_or_else(PoisonError::into_inner) = Some(agent.clone());
        if !is_argument {
            // One that does not read it ends in its own way.
            let _ = agent.write(prompt.as_bytes());
        }
        agent.end_input();
        Ok(Turn { agent, wanted })
    }
}

/// Puts the prompt where it belongs; whether that is among the words.
fn place(words: &mut [String], prompt: &str) -> bool {
    let mut is_placed = false;
    // The program itself is never the prompt's to choose.
    for word in words.iter_mut().skip(1).filter(|word| word.contains(PROMPT_WORD)) {
        is_placed = true;
        // A prompt is no option, whatever it begins with.
        let is_option = word == PROMPT_WORD && prompt.starts_with('-');
        *word = word.replace(PROMPT_WORD, prompt);
        if is_option {
            word.insert(0, ' ');
        }
    }
    is_placed
}

impl Harness for ExecHarness {
    fn prompt(&mut self, blocks: &[String]) -> Result<(), Failure> {
        if self.running().is_some() {
            return Err(Failure::new("a turn is under way"));
        }
        match self.run(&blocks.join("\n\n")) {
            Ok(turn) => self.turn = Some(turn),
            Err(error) => {
                let exit = Exit::without_process(ProcessEnd::NotSpawned(error.to_string()), false);
                let _ = self.aside.send(Told::Exited(Box::new(exit)));
            }
        }
        Ok(())
    }

    fn cancel(&mut self) {
        if let Some(turn) = self.running() {
            turn.wanted.is_cancelled.store(true, Ordering::SeqCst);
            turn.agent.stop();
        }
    }

    fn answer(&mut self, _: &str, _: &Answer) {
        // Nothing is asked for: there is no way to.
    }

    fn stop(&mut self) {
        self.finish(Agent::stop);
    }

    fn end(&mut self) {
        self.finish(Agent::end);
    }

    fn pid(&self) -> Option<u32> {
        self.running().map(|turn| turn.agent.pid())
    }
}

/// Listens to one process.
struct Listener {
    reader: Box<dyn Reader>,
    /// What the process said of its turn, held back until it has ended.
    outcome: Option<Outcome>,
    /// Ends the process should it stay after its last word; gone with this.
    deadline: Option<Sender<()>>,
    agent: Arc<Mutex<Option<Agent>>>,
    wanted: Arc<Wanted>,
    tell: Arc<dyn Fn(Told) + Send + Sync>,
}

impl Listener {
    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Line(line) => {
                for read in self.reader.line(&line) {
                    match read {
                        Read::Told(told) => (self.tell)(told),
                        Read::Ended(outcome) => {
                            self.outcome = Some(outcome);
                            self.expect_end();
                        }
                    }
                }
            }
            Heard::TooLong(bytes) => {
                (self.tell)(Told::Unknown { what: "a line", raw: format!("{bytes} bytes in one line") });
            }
            // The process may live; its end is what counts.
            // A command that has read what it needs closes its input.
            Heard::Closed | Heard::Deaf => {}
            Heard::Ended(exit) => self.end(exit),
        }
    }

    /// Gives the process a while to end by itself.
    fn expect_end(&mut self) {
        if self.deadline.is_some() {
            return;
        }
        let (end, ended) = channel::<()>();
        let agent = self.agent.clone();
        let wait = move || {
            if ended.recv_timeout(EXEC_EXIT_GRACE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
                && let Some(agent) = &*agent.lock().unwrap_or_else(PoisonError::into_inner)
            {
                agent.stop();
            }
        };
        // Without a thread the session's own deadline is what is left.
        if std::thread::Builder::new().name("exec-end".into()).spawn(wait).is_ok() {
            self.deadline = Some(end);
        }
    }

    fn end(&mut self, exit: Box<Exit>) {
        self.deadline = None;
        let is = |flag: &AtomicBool| flag.load(Ordering::SeqCst);
        self.wanted.is_over.store(true, Ordering::SeqCst);
        let is_good = exit.process == ProcessEnd::Exited(0) || exit.is_asked;
        let outcome = self.outcome.take().or_else(|| self.reader.silent_outcome());
        let told = match outcome {
            _ if is(&self.wanted.is_stopped) => Told::Exited(exit),
            _ if is(&self.wanted.is_cancelled) => {
                Told::TurnEnded { stop: "cancelled".to_owned(), usage: None }
            }
            Some(Outcome::Ended { stop, usage }) if is_good => Told::TurnEnded { stop, usage },
            Some(Outcome::Failed(failure)) if is_good => Told::TurnFailed(failure),
            Some(Outcome::Failed(failure)) => {
                // What it said of its failure, and then how it ended.
                (self.tell)(Told::Blamed(failure));
                Told::Exited(exit)
            }
            Some(Outcome::Ended { .. }) | None => Told::Exited(exit),
        };
        (self.tell)(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_an_argument_and_never_an_option_or_a_program() {
        let placed = |words: &[&str], prompt: &str| {
            let mut words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let is_placed = place(&mut words, prompt);
            (is_placed, words.join("|"))
        };
        assert_eq!(placed(&["claude", "-p", "{prompt}"], "do it"), (true, "claude|-p|do it".into()));
        assert_eq!(placed(&["claude", "-p", "{prompt}"], "--yolo"), (true, "claude|-p| --yolo".into()));
        assert_eq!(placed(&["x", "--text={prompt}!"], "-a"), (true, "x|--text=-a!".into()));
        assert_eq!(placed(&["{prompt}"], "rm"), (false, "{prompt}".into()));
        assert_eq!(placed(&["cat"], "hi"), (false, "cat".into()));
    }
}
