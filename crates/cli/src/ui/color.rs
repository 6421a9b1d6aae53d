//! Colours by meaning, from one table, in the sixteen that every terminal has. A word always stands beside them.

/// What a piece of text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Good,
    Warn,
    Bad,
    /// An identifier, or the part of one that is enough to name it.
    Id,
    Dim,
    Hint,
}

/// Whether colours are used on one of the two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    pub(crate) on: bool,
}

/// What the person asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum When {
    #[default]
    Auto,
    Always,
    Never,
}

impl Paint {
    /// Without colour.
    pub(crate) fn plain() -> Paint {
        Paint { on: false }
    }

    /// The flag decides, then `NO_COLOR`, then `CLICOLOR_FORCE`, then whether a terminal listens.
    pub(crate) fn decide(when: When, no_color: bool, force: bool, is_terminal: bool) -> Paint {
        let on = match when {
            When::Always => true,
            When::Never => false,
            When::Auto => !no_color && (force || is_terminal),
        };
        Paint { on }
    }

    pub(crate) fn mark(self, mark: Mark, text: &str) -> String {
        if !self.on {
            return text.to_owned();
        }
        let code = match mark {
            Mark::Good => "32",
            Mark::Warn => "33",
            Mark::Bad => "1;31",
            Mark::Id => "1;36",
            Mark::Dim => "2",
            Mark::Hint => "36",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// A word for a status, in its colour.
    pub(crate) fn status(self, status: &str) -> String {
        let mark = match status {
            "pass" | "ok" | "intact" | "complete" | "active" => Mark::Good,
            "warn" | "warning" | "pass-with-warnings" | "self-consistent" | "rotated" => Mark::Warn,
            "fail" | "broken" | "incomplete" | "critical" | "high" | "medium" | "revoked" => Mark::Bad,
            _ => Mark::Dim,
        };
        self.mark(mark, status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_wins_over_the_environment_and_the_terminal_comes_last() {
        let check = |when, no_color, force, is_terminal, on| {
            assert_eq!(Paint::decide(when, no_color, force, is_terminal), Paint { on });
        };
        check(When::Auto, false, false, true, true);
        check(When::Auto, false, false, false, false);
        check(When::Auto, true, true, true, false);
        check(When::Auto, false, true, false, true);
        check(When::Always, true, false, false, true);
        check(When::Never, false, true, true, false);
    }
}
