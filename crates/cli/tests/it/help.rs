//! The reference of the command line is its own help, committed; `BATON_REGENERATE=1` writes it anew.

use std::fs;

use crate::support::Home;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");

/// Names of the commands that a help lists: two spaces, a word, then its line.
fn commands(help: &str) -> Vec<String> {
    help.lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()) && line.contains("  "))
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .filter(|name| name != "help" && name != "baton")
        .collect()
}

fn describe(home: &Home, path: &[&str], out: &mut String) {
    let ended = home.run(&[path, &["--help"]].concat());
    ended.expect(0);
    let lines: Vec<&str> = ended.stdout.lines().map(str::trim_end).collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 100), "too wide: {path:?}");
    let name = ["baton"].iter().chain(path).copied().collect::<Vec<_>>().join(" ");
    out.push_str(&format!("\n## `{name}`\n\n```\n{}\n```\n", lines.join("\n").trim_end()));
    for command in commands(&ended.stdout) {
        describe(home, &[path, &[&command]].concat(), out);
    }
}

#[test]
fn the_reference_is_the_help() {
    let home = Home::empty();
    let mut page = String::from(
        "# The command line\n\nMade from `baton --help` and the help of every command; `BATON_REGENERATE=1 cargo test -p baton-cli --test it help`\n\
         writes it anew. Exit codes: [exit-codes.md](exit-codes.md).\n",
    );
    describe(&home, &[], &mut page);
    if std::env::var_os("BATON_REGENERATE").is_some() {
        fs::write(PAGE, &page).unwrap();
    }
    let committed = fs::read_to_string(PAGE).unwrap_or_default();
    assert!(committed == page, "docs/reference/cli.md is not the help; run the test with BATON_REGENERATE=1");
    for command in ["init", "trace append", "agent key", "verify", "completions"] {
        assert!(page.contains(&format!("## `baton {command}`")), "{command}");
    }
}

#[test]
fn unknown_commands_and_flags_keep_claps_words() {
    let home = Home::empty();
    for (args, words) in [
        (&["frob"][..], "unrecognized subcommand 'frob'"),
        (&["tarce"], "a similar subcommand exists: 'trace'"),
        (&["events", "--folow"], "unexpected argument '--folow'"),
        (&["trace"], "Usage: baton trace"),
        (&["-q", "-v"], "cannot be used with"),
    ] {
        let ended = home.run(args);
        ended.expect(2);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
    let neither = home.run(&["trace", "prove"]);
    neither.expect(2);
    assert!(neither.stderr.contains("<EVENT|--consistency <OLD>>"), "{}", neither.stderr);
    home.run(&["trace", "prove", "evt_1", "--consistency", "1"]).expect(2);
    let version = home.run(&["--version"]);
    version.expect(0);
    assert!(version.stdout.starts_with("baton "), "{}", version.stdout);
}

#[test]
fn usage_errors_are_json_where_that_is_asked_for() {
    let home = Home::empty();
    for (args, words) in [
        (&["--json", "frob"][..], "unrecognized subcommand 'frob'"),
        (&["events", "--folow", "--json"], "unexpected argument '--folow'"),
        (&["trace", "--json"], "'baton trace' requires a subcommand"),
    ] {
        let ended = home.run(args);
        ended.refused_json(2, "U012");
        let error: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(words) && !message.starts_with("error"), "{message}");
        assert!(!message.contains('\n') && error["error"]["hint"].is_string(), "{error}");
        assert_eq!(ended.stdout, "");
    }
    // It may be a value that only looks like it.
    assert!(home.run(&["frob", "--", "--json"]).stderr.starts_with("error: unrecognized"));
}

#[test]
fn help_names_the_variables_and_every_member_of_an_event() {
    let home = Home::empty();
    let help = |args: &[&str]| home.run(&[args, &["--help"]].concat()).stdout;
    assert!(help(&[]).contains("BATON_DATA_DIR"));
    assert!(
        help(&["init"]).contains("BATON_STATE_DIR") && help(&["agent", "key"]).contains("BATON_STATE_DIR")
    );
    assert!(help(&["trace", "append"]).contains("actor, sig, trace, v\n"));
    assert!(help(&["completions"]).contains("mkdir -p ~/.local/share/bash-completion/completions\n"));
}

#[test]
fn arguments_are_repeated_without_what_a_terminal_obeys() {
    let home = Home::new();
    let evil = "red\u{1b}[31mx\u{9b}2J\u{7}\r\u{202e}";
    let flag = format!("--{evil}");
    let commands: [&[&str]; 9] = [
        &[evil],
        &[&flag],
        &["trace", evil],
        &["events", "--type", evil],
        &["verify", "--threads", evil],
        &["agent", "key", evil],
        &["trace", "show", evil],
        &["verify", evil, "--trust", evil],
        &["trace", "export", "ledger", "-o", evil],
    ];
    for command in commands {
        for extra in [&[][..], &["--json"], &["-v"]] {
            let ended = home.run(&[command, extra].concat());
            let is_harmless = |c: char| (c == '\n' || !c.is_control()) && c != '\u{202e}';
            assert!(ended.stderr.chars().all(is_harmless), "{command:?}: {:?}", ended.stderr);
            assert!(extra == ["--json"] || ended.stderr.contains("red"), "{command:?}: {:?}", ended.stderr);
        }
    }
}

#[test]
fn codes_are_explained_and_typos_find_them() {
    let home = Home::empty();
    let page = home.run(&["explain", "L003"]);
    page.expect(0);
    assert!(page.stdout.starts_with("# L003: "));
    let value = home.json(&["explain", "tail_cut"]);
    assert_eq!(value["code"], "TAIL_CUT");
    assert!(value["text"].as_str().unwrap().starts_with("# TAIL_CUT: "));
    home.run(&["explain", "error[L003]:"]).expect(0);
    home.run(&["explain", "TALE_CUT"]).refused(3, "U007", "did you mean TAIL_CUT?");
    let list = home.run(&["explain"]).stdout;
    assert!(list.contains("L001") && list.contains("SIG_INVALID") && list.lines().count() > 60, "{list}");
    assert!(home.json(&["explain"])["codes"].as_array().unwrap().len() > 60);
}

#[test]
fn completions_are_made_for_every_shell() {
    let home = Home::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = home.run(&["completions", shell]);
        ended.expect(0);
        assert!(ended.stdout.contains("checkpoint"), "{shell}");
    }
    home.run(&["completions", "tcsh"]).expect(2);
}

/// The text of a manual page without what roff writes between letters.
fn plain(page: &str) -> String {
    page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
}

#[test]
fn manual_pages_are_made_for_every_command() {
    let home = Home::empty();
    let ended = home.run(&["man"]);
    ended.expect(0);
    // A definition that roff needs for apostrophes may stand before the title.
    let title = ended.stdout.lines().find(|line| !line.starts_with(".ie") && !line.starts_with(".el"));
    assert_eq!(title, Some(&*format!(".TH BATON 1  \"baton {}\" Baton", env!("CARGO_PKG_VERSION"))));
    let help = home.run(&["--help"]).stdout;
    for command in commands(&help) {
        assert!(plain(&ended.stdout).contains(&format!("\nbaton-{command}(1)\n")), "{command}");
    }

    let pages = home.json(&["man", "--dir", "man/man1"]);
    let pages = pages["pages"].as_array().unwrap();
    let mut reference = String::new();
    describe(&home, &[], &mut reference);
    let names: Vec<&str> =
        reference.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`')).collect();
    assert_eq!(pages.len(), names.len());
    for name in names {
        let page = home.work().join("man/man1").join(format!("{}.1", name.replace(' ', "-")));
        let text = fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        assert!(text.contains(&format!("\n.TH {} 1 ", name.replace(' ', "-").to_uppercase())), "{text}");
        assert!(plain(&text).contains("--data-dir"), "{name}");
    }
    // Again is no mistake; a file in its place is.
    home.run(&["man", "--dir", "man/man1"]).expect(0);
    home.run(&["man", "--dir", "man/man1/baton.1"]).expect(1);
}

#[test]
fn quiet_says_nothing_but_data_and_verbose_says_more() {
    let home = Home::new();
    let trace = home.trace();
    let loud = home.run(&["trace", "export", &trace, "-o", "x"]);
    assert!(
        loud.stderr.contains("wrote 1 event") && loud.stderr.contains("hint: baton verify x"),
        "{}",
        loud.stderr
    );
    let quiet = home.run(&["trace", "export", &trace, "-o", "x", "-q"]);
    assert_eq!((quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()), (Some(0), "", ""));
    fs::remove_dir_all(home.data().join("index")).unwrap();
    assert!(home.run(&["trace", "new", "-v"]).stderr.contains("the index was rebuilt"));
    home.run(&["trace", "show", "ffff", "-q"]).refused(3, "L014", "no trace");
}
