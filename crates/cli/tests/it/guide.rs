//! The guide is true: its commands are run in order in one directory, and print what the page shows.
//!
//! A block of `sh` is run; a block of `text` right after it is what it prints. In such a block `…` stands for anything within a line, and a
//! line of nothing else for any number of lines.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::{Home, finish};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/first-task.md");
const AGENT_GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/first-agent.md");
const PROOF_GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/prove-what-an-agent-did.md");
const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");

/// Commands, and what they print where the page shows it.
struct Block {
    line: usize,
    commands: String,
    shown: Option<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut out: Vec<Block> = Vec::new();
    let mut open: Option<(usize, &str, String)> = None;
    for (number, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some((number + 1, info, String::new())),
            (None, None) => {}
            (Some((at, info, text)), Some(_)) => {
                match (*info, out.last_mut()) {
                    ("sh", _) => out.push(Block { line: *at, commands: text.clone(), shown: None }),
                    ("text", Some(last)) if last.shown.is_none() => last.shown = Some(text.clone()),
                    _ => {}
                }
                open = None;
            }
            (Some((_, _, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    assert!(open.is_none(), "a block that does not end");
    out
}

/// Whether a line is as it is shown.
fn fits(line: &str, shown: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn all_fit(lines: &[&str], shown: &[&str]) -> bool {
    match (lines, shown) {
        ([], []) => true,
        (_, ["…", shown @ ..]) => (0..=lines.len()).any(|skipped| all_fit(&lines[skipped..], shown)),
        ([line, lines @ ..], [first, shown @ ..]) => fits(line.trim_end(), first) && all_fit(lines, shown),
        _ => false,
    }
}

/// Runs the blocks of a page one after the other in one shell.
fn check(page: &str) {
    let text = fs::read_to_string(page).unwrap();
    let blocks = blocks(&text);
    assert!(!blocks.is_empty(), "{page} has nothing to run");
    let mut script = String::from("set -e\nexec 2>&1\n");
    for (number, block) in blocks.iter().enumerate() {
        script.push_str(&format!("{}\necho; echo '@@ {number}'\n", block.commands));
    }
    let home = Home::empty();
    fs::create_dir(home.path("home")).unwrap();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_baton")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let child = Command::new("sh")
        .args(["-c", &script])
        .current_dir(home.work())
        .env_clear()
        .env("PATH", path)
        .env("HOME", home.path("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ended = finish(child, None);
    let mut rest = ended.stdout.as_str();
    for (number, block) in blocks.iter().enumerate() {
        let mark = format!("\n@@ {number}\n");
        let Some((printed, after)) = rest.split_once(&mark) else {
            panic!("{page}:{}: the commands failed\n{rest}\n{}", block.line, ended.stderr);
        };
        rest = after;
        if let Some(shown) = &block.shown {
            let lines = |text: &'_ str| text.trim_end().lines().map(str::to_owned).collect::<Vec<_>>();
            let (printed, shown) = (lines(printed), lines(shown));
            let (printed_lines, shown_lines): (Vec<&str>, Vec<&str>) =
                (printed.iter().map(String::as_str).collect(), shown.iter().map(String::as_str).collect());
            assert!(
                all_fit(&printed_lines, &shown_lines),
                "{page}:{}: it prints\n{}\nand the page shows\n{}",
                block.line,
                printed.join("\n"),
                shown.join("\n")
            );
        }
    }
    ended.expect(0);
}

#[test]
fn the_first_task_goes_as_the_guide_says() {
    check(GUIDE);
}

#[test]
fn the_first_agent_goes_as_the_guide_says() {
    check(AGENT_GUIDE);
}

#[test]
fn what_an_agent_did_is_proved_as_the_guide_says() {
    check(PROOF_GUIDE);
}

#[test]
fn the_start_in_the_readme_is_true() {
    check(README);
}

#[test]
fn what_is_shown_is_compared_line_by_line() {
    assert!(fits("TASK-1 is x's", "TASK-… is x's") && !fits("TASK-1 is x's now", "TASK-… is x's"));
    assert!(fits("abc", "abc") && !fits("abcd", "abc") && fits("", "…"));
    assert!(all_fit(&["a", "b", "c"], &["…", "c"]) && !all_fit(&["a", "b"], &["a"]));
}
