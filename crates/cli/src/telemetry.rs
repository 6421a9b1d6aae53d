//! What is logged, on standard error: with `-v`, or where BATON_LOG names a level.

use std::io::Write as _;
use std::sync::OnceLock;

use baton_runtime::telemetry::{Lines, Spans, Watching};
use tracing::Level;

use crate::config::Telemetry;
use crate::context::Environment;

/// The variable that names a level: error, warn, info or debug. Only the last one shows what tools are called with.
const VARIABLE: &str = "BATON_LOG";

/// Whoever watches this process.
static WATCHING: OnceLock<Watching> = OnceLock::new();

/// Begins to write what is logged in this process, where that is asked for.
pub(crate) fn install(env: &Environment, is_verbose: bool) {
    let named = env.get(VARIABLE).and_then(|word| level(&word));
    let level = named.or(is_verbose.then_some(Level::INFO));
    // Standard error may be gone, which stops nothing.
    let lines =
        level.map(|level| Lines::new(level, |line| drop(writeln!(std::io::stderr().lock(), "{line}"))));
    if lines.is_some() {
        WATCHING.get_or_init(|| Watching::new(lines)).install();
    }
}

/// Sends spans to a collector from now on, where the configuration names one.
pub(crate) fn send(telemetry: &Telemetry) -> std::io::Result<()> {
    if let Some(endpoint) = &telemetry.otlp_endpoint {
        let watching = WATCHING.get_or_init(Watching::default);
        watching.install();
        watching.send_to(Spans::start(endpoint)?);
    }
    Ok(())
}

/// Sends what is left.
pub(crate) fn end() {
    if let Some(watching) = WATCHING.get() {
        watching.end();
    }
}

/// A level by its name. What is none counts as none: a log is no reason to refuse work.
fn level(word: &str) -> Option<Level> {
    match word {
        "error" => Some(Level::ERROR),
        "warn" => Some(Level::WARN),
        "info" => Some(Level::INFO),
        "debug" => Some(Level::DEBUG),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_has_a_name_and_nothing_else_is_one() {
        assert_eq!((level("debug"), level("warn")), (Some(Level::DEBUG), Some(Level::WARN)));
        assert_eq!((level("trace"), level(""), level("INFO")), (None, None, None));
    }
}
