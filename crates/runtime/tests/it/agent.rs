//! Agents as processes: what they say comes line by line, and whatever they do, their end is told within a second, with all that they started gone.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use baton_core::session::ProcessEnd;
use baton_runtime::agent::{Agent, Exit, Heard, Launch, NotWritten};

/// More than an answer may take, with room for a busy machine.
const SOON: Duration = Duration::from_secs(20);

struct Talk {
    agent: Agent,
    heard: Receiver<Heard>,
}

fn launch(words: &[&str]) -> Launch {
    let path = std::env::var("PATH").unwrap();
    Launch {
        words: words.iter().map(|&word| word.to_owned()).collect(),
        dir: std::env::temp_dir(),
        env: BTreeMap::from([("PATH".to_owned(), path)]),
        stderr_lines: 50,
        stderr_copy: None,
        grace: Duration::from_secs(2),
    }
}

impl Talk {
    fn with(script: &str) -> Talk {
        let (say, heard) = channel();
        let agent = Agent::start(launch(&["sh", "-c", script]), move |what| drop(say.send(what))).unwrap();
        Talk { agent, heard }
    }

    #[track_caller]
    fn next(&self) -> Heard {
        self.heard.recv_timeout(SOON).unwrap()
    }

    #[track_caller]
    fn line(&self) -> String {
        match self.next() {
            Heard::Line(line) => String::from_utf8(line).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Everything until the end, and the end.
    #[track_caller]
    fn end(&self) -> (Vec<Heard>, Exit) {
        let mut all = Vec::new();
        loop {
            match self.next() {
                Heard::Ended(exit) => return (all, *exit),
                other => all.push(other),
            }
        }
    }
}

fn is_alive(pid: u32) -> bool {
    // A zombie has ended: it only waits for its parent.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

#[test]
fn it_says_lines_and_hears_what_is_written() {
    let talk = Talk::with(r#"while read -r line; do echo "got $line"; done; echo bye; exit 4"#);
    talk.agent.write(b"one\ntwo\n").unwrap();
    assert_eq!(talk.line(), "got one");
    assert_eq!(talk.line(), "got two");
    talk.agent.end_input();
    assert_eq!(talk.agent.write(b"late\n"), Err(NotWritten::Closed));
    assert_eq!(talk.line(), "bye");
    let (rest, exit) = talk.end();
    assert!(matches!(rest[..], [Heard::Closed]), "{rest:?}");
    assert_eq!((exit.process, exit.is_asked), (ProcessEnd::Exited(4), false));
    assert!(exit.max_rss_bytes.unwrap() > 100_000 && exit.cpu_ms.is_some());
    assert_eq!(exit.stderr, None);
}

#[test]
fn its_errors_are_kept_at_both_ends() {
    let talk = Talk::with("seq 1 250 >&2; kill -SEGV $$");
    let (_, exit) = talk.end();
    assert_eq!(exit.process, ProcessEnd::Signalled(11));
    let stderr = exit.stderr.unwrap();
    assert_eq!((stderr.truncated, stderr.total_lines), (true, Some(250)));
    assert!(stderr.head.unwrap().starts_with("1\n2\n") && stderr.tail.unwrap().ends_with("249\n250"));
}

#[test]
fn what_cannot_be_started_says_why() {
    let start = |words: &[&str]| {
        let launch = launch(words);
        Agent::start(launch, |_| {}).unwrap_err().to_string()
    };
    assert_eq!(start(&["no-such-agent"]), "no-such-agent: not found");
    assert_eq!(start(&["/etc/passwd"]), "/etc/passwd: not executable");
    assert_eq!(start(&[]), "no command");
    let mut nowhere = launch(&["true"]);
    nowhere.dir = "/no/such/place".into();
    assert_eq!(Agent::start(nowhere, |_| {}).unwrap_err().to_string(), "no directory /no/such/place");
}

#[test]
fn a_child_that_holds_the_pipes_delays_nothing_and_does_not_stay() {
    let talk = Talk::with(r#"sleep 1000 & echo $!; exit 3"#);
    let child: u32 = talk.line().parse().unwrap();
    let started = Instant::now();
    let (_, exit) = talk.end();
    assert_eq!(exit.process, ProcessEnd::Exited(3));
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    // It has been killed; nobody waits until it is dead.
    crate::support::wait_for("the child's end", || !is_alive(child));
}

#[test]
fn one_that_ignores_requests_is_ended_by_force_with_its_children() {
    let talk =
        Talk::with(r#"trap '' TERM; sh -c 'trap "" TERM; echo $$; sleep 1000' & sleep 1000; sleep 1000"#);
    let child: u32 = talk.line().parse().unwrap();
    let started = Instant::now();
    talk.agent.stop();
    let (_, exit) = talk.end();
    assert_eq!((exit.process, exit.is_asked), (ProcessEnd::Signalled(9), true));
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    assert!(!is_alive(talk.agent.pid()));
    // It has been killed with the group; nobody waits until it is dead.
    crate::support::wait_for("the child's end", || !is_alive(child));
}

#[test]
fn most_end_when_their_input_does() {
    let talk = Talk::with("cat > /dev/null; exit 0");
    talk.agent.stop();
    let (_, exit) = talk.end();
    assert_eq!((exit.process, exit.is_asked), (ProcessEnd::Exited(0), true));
    assert!(exit.took < Duration::from_secs(2));
}

#[test]
fn a_closed_output_is_told_while_the_process_lives() {
    let talk = Talk::with("echo last; exec >&-; read -r line; exit 7");
    assert_eq!(talk.line(), "last");
    assert!(matches!(talk.next(), Heard::Closed));
    assert!(is_alive(talk.agent.pid()));
    talk.agent.write(b"go\n").unwrap();
    assert_eq!(talk.end().1.process, ProcessEnd::Exited(7));
}

#[test]
fn floods_and_endless_lines_are_counted_in_bounded_memory() {
    let talk = Talk::with(
        "head -c 100000000 /dev/zero | tr '\\0' x; echo; echo next; head -c 50000000 /dev/zero >&2",
    );
    match talk.next() {
        Heard::TooLong(bytes) => assert_eq!(bytes, 100_000_000),
        other => panic!("{other:?}"),
    }
    assert_eq!(talk.line(), "next");
    let (_, exit) = talk.end();
    assert_eq!(exit.process, ProcessEnd::Exited(0));
    assert_eq!(exit.stderr.unwrap().total_lines, Some(1));
}

#[test]
fn nothing_of_the_environment_is_passed_on() {
    // Something that is surely set here.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let talk = Talk::with("env | sort | cut -d= -f1");
    let (all, _) = talk.end();
    let names: Vec<String> = all
        .into_iter()
        .filter_map(|heard| match heard {
            Heard::Line(line) => String::from_utf8(line).ok(),
            _ => None,
        })
        // What the shell sets by itself.
        .filter(|name| !matches!(name.as_str(), "PWD" | "OLDPWD" | "SHLVL" | "_"))
        .collect();
    assert_eq!(names, ["PATH"]);
}

#[test]
fn one_that_does_not_read_is_not_waited_for_and_not_without_bound() {
    let talk = Talk::with("echo up; sleep 1000");
    assert_eq!(talk.line(), "up");
    let part = vec![b'x'; 4 << 20];
    let written = (0..10).map(|_| talk.agent.write(&part)).take_while(Result::is_ok).count();
    assert!((3..=5).contains(&written), "{written}");
    assert_eq!(talk.agent.write(&part), Err(NotWritten::Full));
    talk.agent.stop();
    assert!(talk.end().1.is_asked);
}
