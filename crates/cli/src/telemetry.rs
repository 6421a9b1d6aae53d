//! What is logged, on standard error: with `-v`, or where BATON_LOG names a level.

use std::io::Write as _;

use baton_runtime::telemetry::Lines;
use tracing::Level;

use crate::context::Environment;

/// The variable that names a level: error, warn, info or debug. Only the last one shows what tools are called with.
const VARIABLE: &str = "BATON_LOG";

/// Begins to write what is logged in this process, where that is asked for.
pub(crate) fn install(env: &Environment, is_verbose: bool) {
    let named = env.get(VARIABLE).and_then(|word| level(&word));
    if let Some(level) = named.or(is_verbose.then_some(Level::INFO)) {
        // Standard error may be gone, which stops nothing.
        Lines::new(level, |line| drop(writeln!(std::io::stderr().lock(), "{line}"))).install();
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
