//! Paths in messages: judged by their text alone, before anything touches a disk.

/// What a path in a message has to be, in words.
pub(super) const EXPECTED: &str = "a relative path without .. parts, backslashes or control characters";

/// Whether a path, read as text, stays inside whatever folder it is put under.
///
/// Stricter than it must be: `a/../b` would stay inside, but whoever writes it may mean something else than we do. A path that names
/// no file or folder (`.`, `./`) is none. Symbolic links are the business of whoever opens it.
pub fn is_inside(path: &str) -> bool {
    let is_plain = !path.starts_with('/') && !path.chars().any(|c| c == '\\' || c.is_control());
    let mut parts = path.split('/').filter(|part| !matches!(*part, "" | ".")).peekable();
    is_plain && parts.peek().is_some() && parts.all(|part| part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, fits: bool) {
        assert_eq!(is_inside(path), fits, "{path:?}");
    }

    #[test]
    fn relative_paths_that_go_down_are_inside() {
        for path in [
            "a",
            "outputs/summary.md",
            "./a",
            "a/./b",
            "a//b",
            "outputs/",
            "..a/b..",
            "a b",
            "ä",
            "...",
            "C:",
        ] {
            check(path, true);
        }
    }

    #[test]
    fn paths_that_could_lead_elsewhere_are_not() {
        let bad = [
            "",
            ".",
            "./",
            "/",
            "/etc/passwd",
            "//host/x",
            "..",
            "../a",
            "a/..",
            "a/../b",
            "a\\b",
            "..\\a",
            "a\0b",
            "a\nb",
        ];
        for path in bad {
            check(path, false);
        }
        check("a\u{1b}[2J", false);
        check("a\u{85}", false);
    }
}
