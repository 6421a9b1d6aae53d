//! The public exit codes. Scripts rely on them; `docs/reference/exit-codes.md` is the same table, and a test compares the two.

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Ok,
    Unexpected,
    Usage,
    NotFound,
    Refused,
    Conflict,
    AgentFailed,
    VerificationFailed,
    CannotVerify,
    Interrupted,
}

impl Exit {
    const ALL: [Exit; 10] = [
        Exit::Ok,
        Exit::Unexpected,
        Exit::Usage,
        Exit::NotFound,
        Exit::Refused,
        Exit::Conflict,
        Exit::AgentFailed,
        Exit::VerificationFailed,
        Exit::CannotVerify,
        Exit::Interrupted,
    ];

    /// How a command of ours ended that another one started.
    pub(crate) fn of(code: i32) -> Option<Exit> {
        Exit::ALL.into_iter().find(|exit| i32::from(exit.code()) == code)
    }

    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Unexpected => 1,
            Exit::Usage => 2,
            Exit::NotFound => 3,
            Exit::Refused => 4,
            Exit::Conflict => 5,
            Exit::AgentFailed => 6,
            Exit::VerificationFailed => 7,
            Exit::CannotVerify => 8,
            Exit::Interrupted => 130,
        }
    }

    #[cfg(test)]
    fn meaning(self) -> &'static str {
        match self {
            Exit::Ok => "ok",
            Exit::Unexpected => "unexpected",
            Exit::Usage => "usage",
            Exit::NotFound => "not found",
            Exit::Refused => "refused by a rule",
            Exit::Conflict => "conflict or lost lease",
            Exit::AgentFailed => "agent failed",
            Exit::VerificationFailed => "verification failed",
            Exit::CannotVerify => "cannot verify",
            Exit::Interrupted => "interrupted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_one_in_the_reference() {
        let page = include_str!("../../../docs/reference/exit-codes.md");
        let documented: Vec<(&str, &str)> = page
            .lines()
            .filter_map(|line| {
                let mut cells = line.strip_prefix("| ")?.split(" | ");
                let code = cells.next()?;
                code.bytes().all(|b| b.is_ascii_digit()).then_some((code, cells.next()?))
            })
            .collect();
        let codes = Exit::ALL.map(|exit| (exit.code().to_string(), exit.meaning()));
        let expected: Vec<(&str, &str)> =
            codes.iter().map(|(code, meaning)| (code.as_str(), *meaning)).collect();
        assert_eq!(documented, expected);
    }
}
