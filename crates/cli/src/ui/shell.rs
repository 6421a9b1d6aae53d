//! Commands that are shown to be pasted: quoted for a shell, and about the same data directory as the command that shows them.

use std::path::{Path, PathBuf};

use super::text::printable;

/// What `--data-dir` named on the command line. A command that is pasted without it would look at another ledger.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    flag: Option<PathBuf>,
}

/// Commands that concern no data directory.
const ANYWHERE: [&str; 6] = ["explain", "completions", "help", "--help", "--version", "-V"];

impl Place {
    pub(crate) fn new(flag: Option<PathBuf>) -> Self {
        Place { flag }
    }

    /// The command with the data directory in it, where it needs one and does not name it already. Anything else stays as it is.
    pub(crate) fn carry(&self, text: &str) -> String {
        let Some(flag) = &self.flag else { return text.to_owned() };
        let Some(rest) = text.strip_prefix("baton").filter(|rest| rest.is_empty() || rest.starts_with(' '))
        else {
            return text.to_owned();
        };
        let mut words = rest.split_whitespace();
        let is_settled = match words.next() {
            Some(first) if ANYWHERE.contains(&first) => true,
            // Whatever it names is looked at, wherever it is.
            Some("verify") => words.next().is_some(),
            _ => rest.contains("--data-dir"),
        };
        if is_settled {
            return text.to_owned();
        }
        let dir = path(flag);
        // A value that starts with a dash would be taken for an option.
        let joint = if dir.starts_with('-') { '=' } else { ' ' };
        format!("baton --data-dir{joint}{dir}{rest}")
    }
}

/// A path as one word of a shell.
pub(crate) fn path(path: &Path) -> String {
    word(&printable(&path.display().to_string()))
}

/// A text as one word of a shell: quoted where something in it would be obeyed.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |c: char| {
        c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ',' | ':' | '@' | '%' | '=')
    };
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A command as it is typed.
pub(crate) fn words(words: &[String]) -> String {
    words.iter().map(|text| word(text)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_about_a_data_directory_carry_it_and_others_do_not() {
        let check = |dir: &str, text: &str, expected: &str| {
            assert_eq!(Place::new(Some(dir.into())).carry(text), expected);
        };
        check("copy", "baton verify", "baton --data-dir copy verify");
        check("copy", "baton", "baton --data-dir copy");
        check("copy", "baton trace show trc_1", "baton --data-dir copy trace show trc_1");
        check("my copy", "baton doctor --fix", "baton --data-dir 'my copy' doctor --fix");
        check("it's", "baton doctor", r"baton --data-dir 'it'\''s' doctor");
        check("-x", "baton doctor", "baton --data-dir=-x doctor");
        for same in [
            "baton explain L005",
            "baton --version",
            "baton --help",
            "baton completions bash",
            "baton init --data-dir other",
            "baton verify trace.bundle",
            "baton verify --proof event.proof",
            "batonx verify",
            "ls -l baton",
            "put it back: baton explain L005",
        ] {
            check("copy", same, same);
        }
        assert_eq!(Place::default().carry("baton verify"), "baton verify");
    }

    #[test]
    fn words_are_quoted_only_where_a_shell_would_obey_them() {
        for plain in ["a/b.c", "größe", "x=1,2"] {
            assert_eq!(word(plain), plain);
        }
        for (text, quoted) in
            [("", "''"), ("a b", "'a b'"), ("$x", "'$x'"), ("~a", "'~a'"), ("a'b", r"'a'\''b'")]
        {
            assert_eq!(word(text), quoted);
        }
    }
}
