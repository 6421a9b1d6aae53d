//! The wall around what tools run, with the real binary between: what a program may not do it cannot do.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use baton_core::session::ToolCall;
use baton_runtime::tools::{ToolRan, ToolRunner, ToolSettings, Walled, wall_report};
use serde_json::json;

use crate::support::terminal;

/// A workspace with a data directory in it, a state directory beside it, and a home.
struct Place {
    dir: tempfile::TempDir,
    tools: ToolRunner,
}

impl Place {
    fn new() -> Place {
        Place::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ToolSettings)) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["work/src", "work/.baton/events", "state", "home/readable"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["work/.baton/events/1", "state/key", "home/private", "home/readable/file", "secret"] {
            fs::write(at(name), "SECRET").unwrap();
        }
        fs::write(at("work/src/a"), "text").unwrap();
        let mut settings = ToolSettings::new(at("work"), at("private"));
        settings.own = vec![at("work/.baton"), at("state")];
        settings.home_read = vec![at("home/readable")];
        settings.timeout = Duration::from_secs(30);
        settings.myself = Some(env!("CARGO_BIN_EXE_baton").into());
        change(&mut settings);
        let tools = ToolRunner::new(settings, None).unwrap();
        Place { dir, tools }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn bash(&self, script: &str) -> ToolRan {
        let call = ToolCall {
            call_id: "c".into(),
            name: "bash".into(),
            arguments: json!({"command": script}),
            mutating: true,
        };
        self.tools.run(&call, &AtomicBool::new(false))
    }

    #[track_caller]
    fn works(&self, script: &str) -> String {
        let ran = self.bash(script);
        assert!(!ran.is_error && ran.failed.is_none(), "{script}: {ran:?}");
        ran.output
    }

    #[track_caller]
    fn fails(&self, script: &str) {
        let ran = self.bash(script);
        assert!(ran.is_error && ran.failed.is_none() && !ran.output.contains("SECRET"), "{script}: {ran:?}");
    }
}

/// Whether namespaces are to be had: without, the names in the data directory are seen.
fn has_own_view(place: &Place) -> bool {
    !place.bash("ls -A .baton").output.contains("events")
}

/// Nothing to see where the kernel has nothing to offer.
fn is_walled() -> bool {
    matches!(wall_report(), Walled::Landlock(_))
}

#[test]
fn a_program_works_in_the_workspace_as_if_there_were_no_wall() {
    if !is_walled() {
        return;
    }
    let place = Place::new();
    assert!(matches!(place.tools.walled(), Walled::Landlock(_)));
    place.works("cd src; echo new > file && mkdir -p d/e && mv file d/e/ && cat d/e/file a && rm -r d && ls");
    place.works(
        "echo x > $TMPDIR/x && cat $TMPDIR/x && echo y > ~/y && echo z > /dev/null && head -c 4 /dev/urandom",
    );
    place.works("cat /etc/hostname /proc/self/status > /dev/null; sed --version | head -1; (exit 0) | cat");
    assert!(place.works(&format!("cat {}", place.at("home/readable/file").display())).contains("SECRET"));
    place.works(
        "cd src; git init -q . && git add a && git -c user.name=a -c user.email=b commit -qm one && git log",
    );
    place.fails("no-such-program");
    place.fails("exit 7");
}

#[test]
fn a_program_neither_writes_nor_reads_outside() {
    if !is_walled() {
        return;
    }
    let place = Place::new();
    let outside = place.dir.path().display();
    for script in [
        format!("echo x > {outside}/escaped"),
        format!("echo x >> {outside}/secret"),
        format!("mv src/a {outside}/escaped"),
        format!("ln {outside}/secret linked && cat linked"),
        format!("ln -s {outside}/secret linked-to && cat linked-to"),
        format!("rm {outside}/secret"),
        format!("truncate -s 0 {outside}/secret"),
        format!("cat {outside}/secret"),
        format!("cat {outside}/home/private"),
        format!("cat {outside}/state/key"),
        format!("ls {outside}/state"),
        format!("cat /proc/self/root{outside}/state/key"),
        "cat ../secret".to_owned(),
        "echo x > /tmp/baton-wall-escaped".to_owned(),
        "echo x > /etc/baton-wall-escaped".to_owned(),
        "mknod device c 1 3".to_owned(),
        // Baton's own environment has what nobody else should.
        format!("cat /proc/{}/environ", std::process::id()),
    ] {
        place.fails(&script);
    }
    assert_eq!(fs::read_to_string(place.at("secret")).unwrap(), "SECRET");
    assert!(!place.at("escaped").exists());
}

#[test]
fn the_data_directory_in_the_workspace_is_out_of_sight() {
    if !is_walled() {
        return;
    }
    let place = Place::new();
    for script in [
        "cat .baton/events/1".to_owned(),
        "echo x > .baton/events/1".to_owned(),
        "echo x > .baton/new".to_owned(),
        "mv .baton elsewhere".to_owned(),
        "rm -r .baton/events".to_owned(),
        "umount .baton".to_owned(),
        "ln -s .baton/events e && cat e/1".to_owned(),
        // Whoever is outside the wall still sees it; the way through that is closed.
        format!("cat /proc/{}/root$PWD/.baton/events/1", std::process::id()),
        format!("cat /proc/{}/cwd/../../../../../..$PWD/.baton/events/1", std::process::id()),
        format!("nsenter -t {} -m cat $PWD/.baton/events/1", std::process::id()),
    ] {
        place.fails(&script);
    }
    assert_eq!(fs::read_to_string(place.at("work/.baton/events/1")).unwrap(), "SECRET");
}

#[test]
fn new_names_can_be_made_beside_the_data_directory_where_it_can_be_covered() {
    let place = Place::new();
    // Without namespaces nothing new can be made beside it.
    if !is_walled() || !has_own_view(&place) {
        return;
    }
    place.works("echo new > file && mkdir d && mv file d && cat d/file && rm -r d && ls -la");
    assert_eq!(place.works("ls -A"), ".baton\nsrc\n");
    // What is covered is not even there: Landlock alone would let its sockets be spoken to.
    place.fails(&format!("test -e {}", place.at("state/key").display()));
}

#[test]
fn a_person_s_terminal_is_neither_read_nor_written() {
    if !is_walled() {
        return;
    }
    let place = Place::new();
    let (_ours, theirs) = terminal();
    let name = fs::read_link(format!("/proc/self/fd/{}", theirs.as_raw_fd())).unwrap();
    let denied = |path: &str| {
        for script in [format!("echo x > {path}"), format!("head -c 1 {path}")] {
            let ran = place.bash(&script);
            let is_denied = ["Permission denied", "No such file"].iter().any(|why| ran.output.contains(why));
            assert!(ran.is_error && is_denied, "{script}: {ran:?}");
        }
    };
    denied(&name.display().to_string());
    denied("/dev/tty");
    denied("/dev/console");
    place.works("ls /dev && echo x > /dev/null && echo x | cat /dev/stdin && cat <(echo x)");
}

#[test]
fn a_program_has_terminals_of_its_own_where_it_has_a_view_of_its_own() {
    let place = Place::new();
    let has_script = || !place.bash("command -v script").is_error;
    if !is_walled() || !has_own_view(&place) || !has_script() {
        return;
    }
    assert_eq!(place.works("ls /dev/pts"), "ptmx\n");
    let said = place.works("script -qec 'tty; test -t 0 && echo yes' /dev/null </dev/null");
    assert_eq!(said.replace('\r', ""), "/dev/pts/0\nyes\n");
}

#[test]
fn modes_owners_and_times_outside_stay_as_they_are() {
    let place = Place::new();
    if !is_walled() || !has_own_view(&place) {
        return;
    }
    let outside = place.dir.path().display();
    let stamps = |name: &str| {
        let found = fs::metadata(place.at(name)).unwrap();
        (found.mode(), found.uid(), found.gid(), found.mtime(), found.ctime())
    };
    let names = ["secret", "home", "home/readable/file", "state"];
    let before = names.map(stamps);
    for name in names {
        for what in ["chmod 0777", "chown $(id -u)", "chgrp $(id -g)", "touch -d 1999-01-01", "touch"] {
            place.fails(&format!("{what} {outside}/{name}"));
        }
    }
    place.fails(&format!("chmod 0700 {outside}"));
    place.fails("chmod 0666 /dev/null");
    assert_eq!(names.map(stamps), before);
    // Inside, all of it works, by whatever name.
    place.works(
        "chmod 0700 src/a && touch -d 1999-01-01 src/a src . && touch $PWD/src/b && mv src/b . && rm b",
    );
    place.works("touch $TMPDIR/x && chmod 0600 $TMPDIR/x && mv $TMPDIR/x src/ && mv src/x $HOME/ && rm ~/x");
    assert_eq!(place.works("cd src && pwd -P"), format!("{}\n", place.at("work/src").display()));
}

#[test]
fn a_program_cannot_end_who_started_it() {
    if !matches!(wall_report(), Walled::Landlock(6..)) {
        return;
    }
    let place = Place::new();
    place.fails(&format!("kill -0 {}", std::process::id()));
    place.works("sleep 100 & kill $!");
}

#[test]
fn variables_of_a_program_mean_nothing_to_whoever_stands_before_it() {
    if !is_walled() {
        return;
    }
    let variables = |all: &[(&str, &str)]| {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let place = Place::with(|settings| {
        settings.env = variables(&[("LD_PRELOAD", "/nowhere/nothing.so"), ("HOME", "/elsewhere")]);
        settings.marks = variables(&[("BATON_SESSION_ID", "sess_1")]);
    });
    let said = place.works("echo $HOME $BATON_SESSION_ID; export -p | grep -c BATON_");
    // The loader complains for each program that it starts: here the shell, then `grep`.
    let complaints = said.lines().filter(|line| line.contains("/nowhere/nothing.so")).count();
    assert_eq!(complaints, 2, "{said}");
    assert!(said.contains("/elsewhere sess_1\n") && said.ends_with("1\n"), "{said}");
    let mut settings = ToolSettings::new(place.at("work"), place.at("private"));
    settings.env = variables(&[("BATON_SESSION_ID", "sess_2")]);
    let why = ToolRunner::new(settings, None).unwrap_err().to_string();
    assert!(why.contains("expected none of Baton's own"), "{why}");
}

#[test]
fn a_data_directory_whose_name_is_no_text_is_out_of_sight_too() {
    use std::os::unix::ffi::OsStrExt as _;
    if !is_walled() {
        return;
    }
    let mut own = PathBuf::new();
    let place = Place::with(|settings| {
        own = settings.root.join(std::ffi::OsStr::from_bytes(b"data-\xff"));
        fs::create_dir(&own).unwrap();
        fs::write(own.join("key"), "SECRET").unwrap();
        settings.own.push(own.clone());
    });
    place.fails("cat data-*/key");
    place.fails("echo x > data-*/new");
    assert_eq!(fs::read_to_string(own.join("key")).unwrap(), "SECRET");
}

#[test]
fn what_may_be_read_besides_never_shows_what_is_baton_s() {
    if !is_walled() {
        return;
    }
    let place = Place::with(|settings| {
        let dir = settings.root.parent().unwrap().to_owned();
        settings.home_read = vec![dir, settings.own[1].clone()];
    });
    let outside = place.dir.path().display();
    assert!(place.works(&format!("cat {outside}/home/private")).contains("SECRET"));
    place.fails(&format!("cat {outside}/state/key"));
    place.fails(&format!("cat {outside}/work/.baton/events/1"));
    place.fails(&format!("echo x > {outside}/home/private"));
}
