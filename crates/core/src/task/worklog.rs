//! The work log: one section at the end of a task's body, one line for each entry.

use crate::time::Timestamp;

/// The heading of the section.
pub const HEADING: &str = "## Work Log";

/// One entry, as a line with its line feed. `None` where there is nothing to say.
pub fn line(
    at: Timestamp,
    progress: Option<&str>,
    notes: Option<&str>,
    blockers: &[String],
) -> Option<String> {
    let mut parts = Vec::new();
    let mut say = |name: &str, text: &str| {
        if !text.trim().is_empty() {
            parts.push(format!("{name}: {}", one_line(text)));
        }
    };
    say("Progress", progress.unwrap_or_default());
    say("Notes", notes.unwrap_or_default());
    say("Blockers", &blockers.join(", "));
    (!parts.is_empty()).then(|| format!("- {at} {}\n", parts.join(" | ")))
}

/// A text without line breaks or other control characters.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        if !word.is_empty() {
            if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
            out.push_str(word);
        }
    }
    out.trim().to_owned()
}

/// A body of a text and a log.
pub fn join(text: &str, log: &str) -> String {
    if log.is_empty() {
        return text.to_owned();
    }
    let gap = if text.is_empty() { "" } else { "\n" };
    format!("{text}{gap}{HEADING}\n\n{log}")
}

/// The text and the log of a body: the log is what follows the last heading of it, if no other section does.
pub fn split(body: &str) -> (String, String) {
    let mut at = 0;
    let mut found = None;
    for line in body.split_inclusive('\n') {
        let bare = line.trim_end();
        if bare == HEADING {
            found = Some((at, at + line.len()));
        } else if bare.starts_with("# ") || bare.starts_with("## ") {
            found = None;
        }
        at += line.len();
    }
    match found {
        Some((start, end)) => (tidy(&body[..start]), tidy(body[end..].trim_start_matches(['\n', '\r']))),
        None => (tidy(body), String::new()),
    }
}

/// A text with one line feed at its end.
pub fn tidy(text: &str) -> String {
    match text.trim_end() {
        "" => String::new(),
        text => format!("{text}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Timestamp {
        "2026-02-09T21:05:00.000Z".parse().unwrap()
    }

    #[test]
    fn an_entry_is_one_line_with_the_parts_that_are_there() {
        let blockers = ["Awaiting API key".to_owned(), "No\nnetwork".to_owned()];
        assert_eq!(
            line(at(), Some("Implemented core logic"), Some("ETA later"), &blockers).unwrap(),
            "- 2026-02-09T21:05:00.000Z Progress: Implemented core logic | Notes: ETA later | Blockers: Awaiting API key, No network\n"
        );
        assert_eq!(
            line(at(), None, Some("line one\r\nline two"), &[]).unwrap(),
            "- 2026-02-09T21:05:00.000Z Notes: line one line two\n"
        );
        assert_eq!(line(at(), Some(" "), None, &[]), None);
    }

    #[test]
    fn a_body_divides_into_text_and_log_and_joins_again() {
        for (text, log) in
            [("", ""), ("Do it.\n", ""), ("", "- a\n"), ("Do it.\n\n## Notes\n\nx\n", "- a\n- b\n")]
        {
            assert_eq!(split(&join(text, log)), (text.to_owned(), log.to_owned()));
        }
        let (text, log) = split("a\n\n## Work Log\n\n- x\n\n## After\n\nmore\n");
        assert_eq!((text.lines().count(), log.as_str()), (9, ""), "a log that is not at the end is text");
    }
}
