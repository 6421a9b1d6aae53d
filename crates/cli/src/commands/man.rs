//! `baton man`: manual pages, generated from the same arguments that are parsed.

use std::path::Path;

use baton_store::disk::write_atomic;
use serde_json::json;

use crate::args::Man;
use crate::commands::Ended;
use crate::context::disk;
use crate::error::{CliError, Stop};
use crate::exit::Exit;
use crate::help;
use crate::ui::Ui;
use crate::ui::output_error;
use crate::ui::text::count;

pub(super) fn run(ui: &mut Ui, args: &Man) -> Ended {
    let mut command = help::command().disable_help_subcommand(true);
    // Gives every command its full name.
    command.build();
    let Some(dir) = &args.dir else {
        let page = String::from_utf8_lossy(&render(&command)?).into_owned();
        if ui.json {
            ui.object(&json!({"v": 1, "page": page}))?;
        } else {
            ui.raw(&page)?;
        }
        return Ok(Exit::Ok);
    };
    std::fs::create_dir_all(dir).map_err(|error| CliError::io("make", dir, &error))?;
    let mut written = Vec::new();
    write_all(&command, dir, &mut written)?;
    if ui.json {
        ui.object(&json!({"v": 1, "pages": written}))?;
    } else {
        ui.note(&format!("wrote {} to {}", count(written.len() as u64, "page"), dir.display()));
    }
    Ok(Exit::Ok)
}

/// Writes the page of a command and those of all below it.
fn write_all(command: &clap::Command, dir: &Path, written: &mut Vec<String>) -> Result<(), Stop> {
    let path = dir.join(format!("{}.1", name(command)));
    let page = render(command)?;
    write_atomic(&*disk(), &path, &page).map_err(|error| CliError::io("write", &path, &error))?;
    written.push(path.display().to_string());
    // What is hidden is for Baton itself.
    let mut shown = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    shown.try_for_each(|subcommand| write_all(subcommand, dir, written))
}

fn name(command: &clap::Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn render(command: &clap::Command) -> Result<Vec<u8>, Stop> {
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(command.clone())
        .title(name(command).to_uppercase())
        .source(concat!("baton ", env!("CARGO_PKG_VERSION")))
        .manual("Baton");
    man.render(&mut page).map_err(|error| output_error(&error))?;
    Ok(page)
}
