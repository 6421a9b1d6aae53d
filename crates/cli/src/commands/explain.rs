//! `baton explain [CODE]`: the page of an error or a finding, from the binary itself.

use baton_core::nearest::nearest;
use serde_json::{Value, json};

use crate::args::Explain;
use crate::commands::Ended;
use crate::error::{CliError, Code, pages};
use crate::exit::Exit;
use crate::ui::Ui;
use crate::ui::table::{Align, Table};

/// Wider lines are hard to read, however wide the terminal is.
const WIDTH_MAX: usize = 100;

pub(super) fn run(ui: &mut Ui, args: &Explain) -> Ended {
    let Some(wanted) = &args.code else { return list(ui) };
    // What an error prints may be pasted as it is.
    let plain = wanted.trim().trim_start_matches("error").trim_matches(['[', ']', ':']);
    let Some(page) = pages().find(|page| page.code.eq_ignore_ascii_case(plain)) else {
        let mut error = CliError::new(Code::NoPage, format!("no code {wanted}")).hint("baton explain");
        for near in nearest(plain, pages().map(|page| page.code), 3) {
            error = error.cause(format!("did you mean {near}?"));
        }
        return Err(error.into());
    };
    if ui.json {
        ui.object(&json!({"v": 1, "code": page.code, "text": page.text}))?;
    } else if let Some(width) = ui.width() {
        ui.raw(&wrapped(page.text, width.min(WIDTH_MAX)))?;
    } else {
        ui.raw(page.text)?;
    }
    Ok(Exit::Ok)
}

/// A page as a terminal shows it: lines that fit, and no marks around what stands out.
fn wrapped(page: &str, width: usize) -> String {
    let (mut out, mut in_code) = (String::new(), false);
    for line in page.lines() {
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        if in_code || is_fence || line.starts_with('|') || line.starts_with("    ") {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let line = line.trim_start_matches("# ").replace("**", "");
        let indent = if line.starts_with("- ") { "  " } else { "" };
        let mut shown = String::new();
        for word in line.split(' ') {
            if !shown.is_empty() && shown.chars().count() + 1 + word.chars().count() > width {
                out.push_str(&shown);
                out.push('\n');
                shown = format!("{indent}{word}");
            } else if shown.is_empty() {
                shown = word.to_owned();
            } else {
                shown = format!("{shown} {word}");
            }
        }
        out.push_str(&shown);
        out.push('\n');
    }
    out
}

fn list(ui: &mut Ui) -> Ended {
    if ui.json {
        let codes: Vec<Value> =
            pages().map(|page| json!({"code": page.code, "title": page.title()})).collect();
        ui.object(&json!({"v": 1, "codes": codes}))?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&[("code", Align::Left), ("means", Align::Left)]);
    pages().for_each(|page| table.row(vec![page.code.to_owned(), page.title().to_owned()]));
    ui.table(table)?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_shows_pages_in_lines_that_fit_and_without_marks() {
        let page = "# T003: a value\n\n**Why.** The message names the field.\n- one two three four\n```\nlong code stays as it is\n```\n";
        let expected = "T003: a value\n\nWhy. The message\nnames the field.\n- one two three\n  four\n```\nlong code stays as it is\n```\n";
        assert_eq!(wrapped(page, 16), expected);
        for page in pages() {
            let shown = wrapped(page.text, WIDTH_MAX);
            assert!(!shown.contains("**"), "{}", page.code);
            let words =
                |text: &str| text.replace("**", "").split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&shown), words(page.text.trim_start_matches("# ")), "{}", page.code);
        }
    }
}
