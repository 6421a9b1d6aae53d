//! How the terminal is spoken to: data to standard output, everything else to standard error.

pub(crate) mod color;
pub(crate) mod shell;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod time;

use std::cell::RefCell;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use baton_core::json::Sorted;
use serde_json::Value;

use crate::console::Out;
use crate::error::{CliError, Code, Stop};
use color::{Mark, Paint};
use shell::Place;
use table::Table;

/// How much is said beside the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loudness {
    Quiet,
    Normal,
    Verbose,
}

/// Standard output and standard error of one command.
#[derive(Debug)]
pub(crate) struct Ui {
    pub(crate) json: bool,
    /// For standard output.
    pub(crate) paint: Paint,
    paint_err: Paint,
    loudness: Loudness,
    place: Place,
    /// Columns of the terminal that standard output is; `None` where it is none, and nothing is cut.
    width: Option<usize>,
    /// Shared, so that whatever is said on standard error comes after the data before it.
    out: RefCell<BufWriter<Out>>,
    err: Out,
}

impl Ui {
    /// Speaks to these two; `paint` is for the first.
    pub(crate) fn new(
        (out, err): (Out, Out),
        (paint, paint_err): (Paint, Paint),
        json: bool,
        loudness: Loudness,
        place: Place,
    ) -> Self {
        let width = rustix::termios::tcgetwinsize(&out).ok().map(|size| usize::from(size.ws_col));
        let width = width.filter(|width| *width > 0);
        let out = RefCell::new(BufWriter::with_capacity(1 << 16, out));
        Ui { json, paint, paint_err, loudness, place, width, out, err }
    }

    /// Columns of the terminal that standard output is, if it is one. What is piped is never cut.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// A table, as wide as the terminal at most.
    pub(crate) fn table(&mut self, table: Table) -> Result<(), Stop> {
        table.lines(self.width).iter().try_for_each(|line| self.line(line))
    }

    /// A line of data. It reaches the reader at the latest when the command ends.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Stop> {
        writeln!(self.out.get_mut(), "{text}").map_err(|error| output_error(&error))
    }

    /// Data as it is.
    pub(crate) fn raw(&mut self, text: &str) -> Result<(), Stop> {
        self.out.get_mut().write_all(text.as_bytes()).map_err(|error| output_error(&error))
    }

    /// One JSON object in one line.
    pub(crate) fn object(&mut self, value: &Value) -> Result<(), Stop> {
        self.line(&Sorted(value).to_string())
    }

    /// Hands everything so far to the reader.
    pub(crate) fn flush(&mut self) -> Result<(), Stop> {
        self.out.get_mut().flush().map_err(|error| output_error(&error))
    }

    /// Waits, and notices when whoever reads standard output goes away in the meantime.
    pub(crate) fn wait(&self, time: Duration) -> Result<(), Stop> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let out = self.out.borrow();
        // Nothing is asked for; errors and hang-ups are reported anyway.
        let mut watched = [PollFd::new(out.get_ref(), PollFlags::empty())];
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut watched, Some(&timeout)) {
            Ok(0) => Ok(()),
            Ok(_) => Err(Stop::PipeClosed),
            // Without this way of waiting there is still the plain one.
            Err(_) => {
                std::thread::sleep(time);
                Ok(())
            }
        }
    }

    /// Standard output for something that writes by itself.
    pub(crate) fn writer(&mut self) -> &mut dyn Write {
        self.out.get_mut()
    }

    /// Something a person wants to know beside the data.
    pub(crate) fn note(&self, text: &str) {
        if self.is_chatty() {
            self.say(&text::printable(text));
        }
    }

    /// The command to type next.
    pub(crate) fn hint(&self, command: &str) {
        if self.is_chatty() {
            let command = text::printable(&self.command(command));
            self.say(&format!("{}: {command}", self.paint_err.mark(Mark::Hint, "hint")));
        }
    }

    /// A command as it can be pasted: about the data directory that this command was told to use.
    pub(crate) fn command(&self, command: &str) -> String {
        self.place.carry(command)
    }

    /// Whether nothing but data and errors is wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.loudness == Loudness::Quiet
    }

    fn is_chatty(&self) -> bool {
        self.loudness >= Loudness::Normal && !self.json
    }

    /// Something that should not be overlooked, also by scripts.
    pub(crate) fn warn(&self, text: &str) {
        match (self.loudness, self.json) {
            (Loudness::Quiet, _) => {}
            (_, true) => {
                self.say(&text::printable_json(&serde_json::json!({"warning": {"message": text}})));
            }
            (_, false) => {
                self.say(&format!(
                    "{}: {}",
                    self.paint_err.mark(Mark::Warn, "warning"),
                    text::printable(text)
                ));
            }
        }
    }

    /// Something that only `-v` asks for.
    pub(crate) fn detail(&self, text: &str) {
        if self.loudness >= Loudness::Verbose {
            self.say(&self.paint_err.mark(Mark::Dim, &text::printable(text)));
        }
    }

    fn say(&self, text: &str) {
        // Standard error may be gone, which stops nothing; what is wrong with standard output shows at the next use of it.
        let _ = self.out.borrow_mut().flush();
        let _ = (&self.err).write_all(format!("{text}\n").as_bytes());
    }

    pub(crate) fn fail(&self, error: &CliError) {
        error.print(&self.err, self.json, self.paint_err, &self.place);
    }
}

/// What a failed write to standard output means.
pub(crate) fn output_error(error: &io::Error) -> Stop {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Stop::PipeClosed;
    }
    CliError::new(Code::Output, "cannot write to standard output").cause(error.to_string()).into()
}
