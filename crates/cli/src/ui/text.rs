//! Text from records, files, arguments and other processes, made harmless for a terminal.

use baton_core::json::Sorted;
use serde_json::Value;

/// The text in one line, without anything that a terminal obeys: control characters and marks that reorder or hide what follows become U+FFFD, the
/// end of a line a sign for it, and a tab a space.
pub(crate) fn printable(text: &str) -> String {
    let shown = |c| match c {
        '\n' => '⏎',
        '\t' => ' ',
        c if is_hostile(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(shown).collect()
}

/// The same for several lines, which stay lines.
pub(crate) fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// A character that a terminal obeys, as an escape of JSON and TOML; `None` for any other.
pub(crate) fn escaped(c: char) -> Option<String> {
    // All of them lie in the plane that four digits reach.
    is_hostile(c).then(|| format!("\\u{:04x}", u32::from(c)))
}

/// JSON without anything that a terminal obeys, and with the same meaning: what is hostile stands in strings, and is escaped there.
pub(crate) fn printable_json(value: &Value) -> String {
    let mut out = String::new();
    for c in Sorted(value).to_string().chars() {
        match escaped(c) {
            Some(escape) => out.push_str(&escape),
            None => out.push(c),
        }
    }
    out
}

fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// At most this many characters, with an ellipsis where something was left out.
pub(crate) fn shorten(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    text.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect()
}

/// Right for every number: `1 event`, `2 events`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Bytes to two digits, in units that disks are sold in powers of two of.
pub(crate) fn bytes(number: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| number >> shift > 0) {
        Some((unit, shift)) => {
            let whole = number >> shift;
            let tenth = ((number - (whole << shift)) * 10) >> shift;
            format!("{whole}.{tenth} {unit}")
        }
        None => count(number, "byte"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_comes_through() {
        assert_eq!(
            printable("a\u{1b}[31mb\rc\u{9b}d\u{202e}e\n\tf"),
            "a\u{fffd}[31mb\u{fffd}c\u{fffd}d\u{fffd}e⏎ f"
        );
        assert_eq!(printable("größe 日本"), "größe 日本");
        assert_eq!(printable_lines("a\u{1b}[31m\r\nb\n"), "a\u{fffd}[31m\u{fffd}\nb\n");
        let value = serde_json::json!({"a\u{9b}": "\u{1b}\u{7f}\u{202e}ü"});
        let text = printable_json(&value);
        assert_eq!(text, r#"{"a\u009b":"\u001b\u007f\u202eü"}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn lengths_and_numbers_read_well() {
        assert_eq!(shorten("abcdef", 4), "abc…");
        assert_eq!(shorten("abcd", 4), "abcd");
        assert_eq!(count(1, "event"), "1 event");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(12), "12 bytes");
    }
}
