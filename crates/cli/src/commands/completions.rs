//! `baton completions SHELL`: generated from the same arguments that are parsed.

use crate::args::Completions;
use crate::commands::Ended;
use crate::exit::Exit;
use crate::help;
use crate::ui::Ui;

pub(super) fn run(ui: &mut Ui, args: &Completions) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut help::command(), "baton", &mut script);
    ui.raw(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
