//! Configuration: flag over `BATON_*` over the data directory's `baton.toml` over the user's file over what is built in.
//!
//! Every key that there is stands once, in [`table`]. What reads a file, the JSON Schema, the reference page and `baton config show` are
//! made from it. [`read`] lays the layers over each other, [`check`] judges what concerns several keys, [`settings`] is what the rest of
//! Baton uses. Values never hold secrets: they name the environment variables that do.

mod check;
mod read;
#[cfg(test)]
mod reference;
mod schema;
mod settings;
mod source;
mod table;
mod value;
mod variables;

use std::path::Path;
use std::rc::Rc;

pub(crate) use baton_core::duration::parse as parse_duration;
use read::Layers;
pub(crate) use read::{Flag, Resolved, Setting, did_you_mean};
pub(crate) use schema::schema;
pub(crate) use settings::Server as Listen;
pub(crate) use settings::{
    Agent, Api, ExecProfile, Harness, OnFailure, Settings, Telemetry, Workspace as AgentWorkspace,
};
pub(crate) use table::{AGENT, Key, SECTIONS, TABLE};
pub(crate) use value::{Value, quoted_key};
pub(crate) use variables::misspelt;

use crate::context::Environment;
use crate::error::CliError;
use source::Source;

/// Every key with its value and where that came from. Without a data directory its layer is left out.
pub(crate) fn load(data_dir: Option<&Path>, env: &Environment, flags: &[Flag]) -> Result<Resolved, CliError> {
    let paths = [
        env.config_home().map(|dir| dir.join("baton/config.toml")),
        data_dir.map(|dir| dir.join("baton.toml")),
    ];
    let mut files = Vec::new();
    for path in paths.into_iter().flatten() {
        files.extend(Source::read(&path)?.map(Rc::new));
    }
    let variable = |name: &str| env.raw(name);
    read::resolve(&Layers { files, variable: &variable, flags })
}

/// Judges what `--set` says, also for commands that use no configuration.
pub(crate) fn expect_flags(flags: &[Flag]) -> Result<(), CliError> {
    flags.iter().try_for_each(|flag| read::read_flag(flag).map(drop))
}

/// What a file alone gives.
pub(crate) fn of_text(text: &str) -> Result<Settings, CliError> {
    let files = vec![Rc::new(Source::new("baton.toml", text))];
    Ok(read::resolve(&Layers { files, variable: &|_| None, flags: &[] })?.settings())
}
