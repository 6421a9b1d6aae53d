//! Notifications against receivers that work, fail, refuse, stay silent and go away.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_core::Timestamp;
use baton_core::task::Status;
use baton_runtime::clock::{Clock, VirtualClock};
use baton_runtime::engine::Moved;
use baton_runtime::limits::{NOTIFY_DEAD_MAX, NOTIFY_OUTBOX_MAX};
use baton_runtime::notify::{Notifier, Pace, Refused, Secret, Sink, SinkKind, Tally, Webhook};
use baton_store::tasks::tree::RealTree;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use tempfile::TempDir;

use crate::receiver::{Answer, Receiver};
use crate::support::{is_gone, sh, wait_for};

const SECRET: &str = "hunter2-hunter2";
const OK: Answer = Answer::Status(200, "");
const NOW: i64 = 1_770_000_000_000;

/// A test's times: everything that people wait for is a moment.
fn quick() -> Pace {
    Pace {
        first_wait: Duration::from_millis(2),
        wait_factor: 2,
        retry_after_max: Duration::from_millis(150),
        elsewhere_wait: Duration::from_millis(10),
        webhook_timeout: Duration::from_secs(10),
        command_timeout: Duration::from_millis(600),
        command_grace: Duration::from_millis(100),
        ..Pace::default()
    }
}

fn start(dir: &TempDir, sinks: Vec<Sink>, pace: Pace) -> Notifier {
    let tree = Arc::new(RealTree::open(dir.path()).unwrap());
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::new(Timestamp::nearest(NOW), 1));
    Notifier::start(tree, sinks, clock, pace).unwrap()
}

fn webhook(url: &str) -> Vec<Sink> {
    vec![Sink::Webhook(Webhook::new(url, Secret::new(SECRET.into())).unwrap())]
}

fn command(dir: &TempDir, text: &str) -> Vec<Sink> {
    vec![Sink::Command { words: sh(text), dir: dir.path().to_owned(), warden: None }]
}

fn moved(pos: u64) -> Moved {
    Moved {
        pos,
        task: "TASK-2026-02-09-057".parse().unwrap(),
        title: "Users \"API\"".into(),
        from: Status::InProgress,
        to: Status::Review,
        reason: "report".into(),
        at: Timestamp::nearest(NOW - 1000),
    }
}

fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .map(|entries| entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
        .unwrap_or_default();
    names.sort();
    names
}

fn outbox(dir: &TempDir) -> Vec<String> {
    files(&dir.path().join("notifications/outbox"))
}

fn assert_no_secret(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_no_secret(&path);
        } else {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(SECRET), "{}: {text}", path.display());
        }
    }
}

#[test]
fn a_good_receiver_gets_a_signed_event() {
    let (dir, receiver) = (tempfile::tempdir().unwrap(), Receiver::start(&[OK]));
    let notifier = start(&dir, webhook(&receiver.url), quick());
    notifier.tell(&moved(7));
    wait_for("delivered", || notifier.tally().delivered == 1);
    let got = &receiver.got()[0];
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(&got.body);
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(got.headers["x-baton-signature"], format!("sha256={hex}"));
    assert_eq!(got.headers["x-baton-timestamp"], (NOW / 1000).to_string());
    assert_eq!(got.headers["content-type"], "application/json");
    let event: Value = serde_json::from_slice(&got.body).unwrap();
    let expected = json!({
        "v": 1, "type": "task.transitioned", "delivery": got.headers["x-baton-delivery"], "pos": 7,
        "taskId": "TASK-2026-02-09-057", "title": "Users \"API\"", "from": "in-progress", "to": "review",
        "reason": "report", "at": Timestamp::nearest(NOW - 1000).to_string(),
    });
    assert_eq!(event, expected);
    assert_eq!(notifier.stop(Duration::from_secs(5)), 0);
    assert!(outbox(&dir).is_empty() && notifier.take_notices().is_empty());
}

#[test]
fn a_receiver_that_fails_twice_gets_the_same_again() {
    let dir = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&[Answer::Status(500, ""), Answer::Status(503, ""), OK]);
    let notifier = start(&dir, webhook(&receiver.url), quick());
    notifier.tell(&moved(7));
    wait_for("delivered", || notifier.tally().delivered == 1);
    let got = receiver.got();
    assert_eq!(got.len(), 3);
    assert!(got.iter().all(|one| one.body == got[0].body && one.headers == got[0].headers));
}

#[test]
fn a_receiver_that_asks_for_time_gets_it_within_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&[Answer::Status(429, "Retry-After: 3600\r\n"), OK]);
    let pace = quick();
    let notifier = start(&dir, webhook(&receiver.url), pace);
    notifier.tell(&moved(7));
    wait_for("delivered", || notifier.tally().delivered == 1);
    let got = receiver.got();
    let waited = got[1].at - got[0].at;
    assert!(waited >= pace.retry_after_max, "{waited:?}");
    assert!(waited < Duration::from_secs(10), "{waited:?}");
}

#[test]
fn a_refusal_is_final_and_a_person_can_try_again() {
    let dir = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&[Answer::Status(404, ""), OK]);
    let notifier = start(&dir, webhook(&receiver.url), quick());
    notifier.tell(&moved(7));
    wait_for("given up", || notifier.tally().given_up == 1);
    let dead = notifier.dead_letters().unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!(
        (dead[0].reason.as_str(), dead[0].attempts, dead[0].sink),
        ("status 404", 1, SinkKind::Webhook)
    );
    assert_eq!((receiver.got().len(), outbox(&dir).len()), (1, 0));
    assert_no_secret(dir.path());

    assert_eq!(notifier.retry_dead().unwrap(), 1);
    wait_for("delivered", || notifier.tally().delivered == 1);
    let got = receiver.got();
    assert_eq!(got[0].headers["x-baton-delivery"], got[1].headers["x-baton-delivery"]);
    assert!(notifier.dead_letters().unwrap().is_empty());
    assert_eq!(notifier.retry_dead().unwrap(), 0);
}

#[test]
fn a_redirect_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let other = Receiver::start(&[OK]);
    let head: &'static str = format!("Location: {}\r\n", other.url).leak();
    let receiver = Receiver::start(&[Answer::Status(307, head)]);
    let notifier = start(&dir, webhook(&receiver.url), quick());
    notifier.tell(&moved(7));
    wait_for("given up", || notifier.tally().given_up == 1);
    assert_eq!((receiver.got().len(), other.got().len()), (1, 0));
    assert_eq!(notifier.dead_letters().unwrap()[0].reason, "status 307: redirects are not followed");
}

#[test]
fn silence_and_hanging_up_are_tried_again_and_then_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let check = |answer: Answer, pos: u64, reason: &str| {
        let receiver = Receiver::start(&[answer]);
        let pace = Pace { attempts: 2, webhook_timeout: Duration::from_millis(300), ..quick() };
        let notifier = start(&dir, webhook(&receiver.url), pace);
        notifier.tell(&moved(pos));
        wait_for("given up", || notifier.tally().given_up == 1);
        let dead = notifier.dead_letters().unwrap().pop().unwrap();
        assert_eq!((dead.attempts, receiver.got().len()), (2, 2));
        assert!(dead.reason.starts_with(reason), "{}", dead.reason);
        assert!(dead.reason.ends_with(" (tried 2 times)"), "{}", dead.reason);
    };
    check(Answer::Silence, 1, "no answer within 300ms");
    check(Answer::Close, 2, "");
    // Nobody listens there.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let notifier = start(&dir, webhook(&format!("http://{free}/")), quick());
    notifier.tell(&moved(3));
    wait_for("given up", || notifier.tally().given_up == 1);
    let dead = notifier.dead_letters().unwrap().pop().unwrap();
    assert_eq!(dead.reason, "connection refused (tried 5 times)");
    assert_no_secret(dir.path());
}

#[test]
fn a_receiver_that_cannot_show_who_it_is_gets_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&[OK]);
    let url = receiver.url.replace("http:", "https:");
    let webhook = match Webhook::new(&url, Secret::new(SECRET.into())) {
        Ok(webhook) => webhook,
        // As it should be on a machine that trusts nobody.
        Err(refused) => return assert_eq!(refused, Refused::NoAuthorities),
    };
    let notifier = start(&dir, vec![Sink::Webhook(webhook)], Pace { attempts: 1, ..quick() });
    notifier.tell(&moved(7));
    wait_for("given up", || notifier.tally().given_up == 1);
    assert!(receiver.got().is_empty());
}

#[test]
fn what_was_not_delivered_is_sent_in_the_next_life() {
    let dir = tempfile::tempdir().unwrap();
    let broken = Receiver::start(&[Answer::Status(500, "")]);
    let patient = Pace { first_wait: Duration::from_secs(3600), ..quick() };
    let first = start(&dir, webhook(&broken.url), patient);
    first.tell(&moved(7));
    wait_for("tried", || !broken.got().is_empty());
    assert_eq!(first.stop(Duration::from_secs(5)), 1, "what waits for its next attempt is not waited for");
    drop(first);
    assert_eq!(outbox(&dir), ["00000000000000000007-webhook.json"]);
    let file =
        std::fs::read(dir.path().join("notifications/outbox/00000000000000000007-webhook.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&file).unwrap()["attempts"], 1);

    // What a death left of a file, and something that somebody else put there.
    std::fs::write(dir.path().join("notifications/outbox/half.json.tmp"), "{").unwrap();
    std::fs::write(dir.path().join("notifications/outbox/odd.json"), "odd").unwrap();
    let receiver = Receiver::start(&[OK]);
    let second = start(&dir, webhook(&receiver.url), quick());
    wait_for("delivered", || second.tally().delivered == 1);
    let (before, after) = (&broken.got()[0], &receiver.got()[0]);
    assert_eq!(before.headers["x-baton-delivery"], after.headers["x-baton-delivery"]);
    assert_eq!(before.body, after.body);
    assert!(outbox(&dir).is_empty());
    assert_eq!(files(&dir.path().join("notifications/dead")), ["odd.json"]);
}

#[test]
fn what_has_no_receiver_any_more_is_given_up_and_can_wait_for_one() {
    let dir = tempfile::tempdir().unwrap();
    let silent = Receiver::start(&[Answer::Silence]);
    let first =
        start(&dir, webhook(&silent.url), Pace { webhook_timeout: Duration::from_secs(20), ..quick() });
    first.tell(&moved(7));
    wait_for("sent", || silent.got().len() == 1);
    assert_eq!(first.stop(Duration::ZERO), 1, "a post without an answer does not hold up the end");
    let second = start(&dir, Vec::new(), quick());
    assert_eq!(second.tally().given_up, 1);
    assert_eq!(second.retry_dead().unwrap(), 0);
    drop(second);
    let receiver = Receiver::start(&[OK]);
    let third = start(&dir, webhook(&receiver.url), quick());
    assert_eq!(third.retry_dead().unwrap(), 1);
    wait_for("delivered", || third.tally().delivered == 1);
}

#[test]
fn a_full_queue_never_blocks_and_everything_is_accounted_for() {
    let dir = tempfile::tempdir().unwrap();
    let silent = Receiver::start(&[Answer::Silence]);
    let pace = Pace { webhook_timeout: Duration::from_secs(60), ..quick() };
    let notifier = start(&dir, webhook(&silent.url), pace);
    let told = 8000;
    let begin = Instant::now();
    for pos in 1..=told {
        notifier.tell(&moved(pos));
    }
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    notifier.stop(Duration::ZERO);
    let kept = |tally: Tally| tally.pending as u64 + tally.given_up + tally.dropped;
    wait_for("everything is somewhere", || kept(notifier.tally()) == told);
    let tally = notifier.tally();
    assert!(tally.dropped > 0, "{tally:?}");
    assert_eq!((tally.pending, outbox(&dir).len()), (NOTIFY_OUTBOX_MAX, NOTIFY_OUTBOX_MAX));
    let dead = notifier.dead_letters().unwrap();
    assert_eq!(dead.len() as u64 + tally.dead_dropped, tally.given_up);
    assert!(dead.len() <= NOTIFY_DEAD_MAX);
    assert!(dead.iter().all(|dead| dead.reason == "too many wait to be sent"));
    notifier.tell(&moved(told + 1));
    assert_eq!(notifier.tally().dropped, tally.dropped + 1, "after the end nothing is taken");
}

#[test]
fn a_command_gets_the_event_twice_over() {
    let dir = tempfile::tempdir().unwrap();
    let text = "cat > body; printf '%s|%s|%s|%s' \"$BATON_TASK_ID\" \"$BATON_TASK_TO\" \"$BATON_TASK_TITLE\" \"$BATON_DELIVERY\" > said";
    let notifier =
        start(&dir, command(&dir, text), Pace { command_timeout: Duration::from_secs(20), ..quick() });
    notifier.tell(&moved(7));
    wait_for("delivered", || notifier.tally().delivered == 1);
    let event: Value = serde_json::from_slice(&std::fs::read(dir.path().join("body")).unwrap()).unwrap();
    let delivery = event["delivery"].as_str().unwrap();
    let said = std::fs::read_to_string(dir.path().join("said")).unwrap();
    assert_eq!(said, format!("TASK-2026-02-09-057|review|Users \"API\"|{delivery}"));
}

#[test]
fn a_command_that_fails_or_hangs_is_given_up_and_holds_up_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&[OK]);
    let mut sinks = command(&dir, "trap '' TERM; echo $$ > pid; sleep 60; sleep 60");
    sinks.extend(webhook(&receiver.url));
    let notifier = start(&dir, sinks, quick());
    notifier.tell(&moved(7));
    wait_for("delivered by the other", || notifier.tally().delivered == 1);
    wait_for("given up", || notifier.tally().given_up == 1);
    assert_eq!(notifier.dead_letters().unwrap()[0].reason, "timed out after 600ms");
    wait_for("the command is gone", || is_gone(&dir.path().join("pid")));
    drop(notifier);

    let check = |sinks: Vec<Sink>, pos: u64, reason: &str| {
        let notifier = start(&dir, sinks, Pace { command_timeout: Duration::from_secs(20), ..quick() });
        notifier.tell(&moved(pos));
        wait_for("given up", || notifier.tally().given_up == 1);
        assert_eq!(notifier.dead_letters().unwrap().pop().unwrap().reason, reason);
    };
    check(command(&dir, "exit 4"), 8, "exit 4");
    let missing =
        Sink::Command { words: vec!["no-such-program".into()], dir: dir.path().to_owned(), warden: None };
    check(vec![missing], 9, "not found: no-such-program");
}

#[test]
fn a_command_that_runs_at_the_end_is_ended_and_run_again_in_the_next_life() {
    let dir = tempfile::tempdir().unwrap();
    let slow = Pace { command_timeout: Duration::from_secs(60), ..quick() };
    let first = start(&dir, command(&dir, "echo $$ > pid; sleep 60"), slow);
    first.tell(&moved(200));
    wait_for("it runs", || {
        std::fs::read_to_string(dir.path().join("pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    assert_eq!(first.stop(Duration::ZERO), 1);
    assert!(is_gone(&dir.path().join("pid")));
    let second = start(&dir, command(&dir, "touch again"), slow);
    wait_for("delivered", || second.tally().delivered == 1);
    assert!(dir.path().join("again").exists());
}

#[test]
fn telling_twice_is_sending_with_the_same_id() {
    let dir = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&[OK]);
    let notifier = start(&dir, webhook(&receiver.url), quick());
    notifier.tell(&moved(7));
    wait_for("delivered", || notifier.tally().delivered == 1);
    notifier.tell(&moved(7));
    wait_for("delivered again", || notifier.tally().delivered == 2);
    let ids: Vec<_> = receiver.got().iter().map(|got| got.headers["x-baton-delivery"].clone()).collect();
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn what_left_the_group_of_a_command_that_hangs_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let text = "setsid sh -c 'echo $$ > pid; exec sleep 60' & sleep 60";
    let patient = Pace { command_timeout: Duration::from_secs(3), ..quick() };
    let notifier = start(&dir, command(&dir, text), patient);
    notifier.tell(&moved(7));
    wait_for("given up", || notifier.tally().given_up == 1);
    assert!(is_gone(&dir.path().join("pid")));
}

/// One that sends until `go` is there. Whoever sends what another one began ends what is left of that by its id, so each test has its own.
fn waiting(dir: &TempDir, pos: u64, pace: Pace) -> Notifier {
    let text = "echo x >> begun; until test -e go; do sleep 0.01; done";
    let notifier = start(dir, command(dir, text), pace);
    notifier.keep(&[moved(pos)]).unwrap();
    wait_for("it runs", || dir.path().join("begun").exists());
    notifier
}

fn patient() -> Pace {
    Pace { command_timeout: Duration::from_secs(60), ..quick() }
}

#[test]
fn of_two_who_send_from_one_outbox_one_sends_each() {
    let dir = tempfile::tempdir().unwrap();
    let first = waiting(&dir, 201, patient());
    // Finds it in the outbox, and somebody at it.
    let second = start(&dir, command(&dir, "echo x >> begun"), patient());
    wait_for("it looked", || second.tally().elsewhere == 1);
    let third = start(&dir, command(&dir, "echo x >> begun"), patient());
    assert_eq!(third.stop(Duration::from_secs(5)), 1, "whoever ends leaves it to the first one");
    assert_eq!((outbox(&dir).len(), third.tally().elsewhere), (1, 1));
    std::fs::write(dir.path().join("go"), "").unwrap();
    wait_for("delivered", || first.tally().delivered == 1);
    wait_for("the second one sees it", || second.tally().pending == 0);
    assert_eq!((outbox(&dir).len(), second.tally().delivered, second.tally().elsewhere), (0, 0, 0));
    assert_eq!(std::fs::read_to_string(dir.path().join("begun")).unwrap(), "x\n");
    wait_for("no name is left", || files(&dir.path().join("notifications/sending")).is_empty());
}

#[test]
fn what_another_process_began_and_did_not_deliver_is_sent_by_one_that_is_still_there() {
    let dir = tempfile::tempdir().unwrap();
    let first = waiting(&dir, 202, patient());
    let second = start(&dir, command(&dir, "echo y >> begun"), patient());
    wait_for("it looked", || second.tally().elsewhere == 1);
    assert_eq!(first.stop(Duration::ZERO), 1);
    wait_for("delivered", || second.tally().delivered == 1);
    assert_eq!((outbox(&dir).len(), second.tally().pending), (0, 0));
    assert_eq!(std::fs::read_to_string(dir.path().join("begun")).unwrap(), "x\ny\n");
}

#[test]
fn attempts_of_two_processes_are_counted_together() {
    let dir = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&[Answer::Status(500, "")]);
    let pace = Pace { attempts: 3, first_wait: Duration::from_millis(20), ..quick() };
    let first = start(&dir, webhook(&receiver.url), pace);
    first.keep(&[moved(7)]).unwrap();
    let second = start(&dir, webhook(&receiver.url), pace);
    wait_for("given up", || first.tally().pending + second.tally().pending == 0);
    assert_eq!(first.tally().given_up + second.tally().given_up, 1);
    assert_eq!((receiver.got().len(), first.dead_letters().unwrap().len()), (3, 1));
}

#[test]
fn what_another_process_is_sending_is_not_given_up_by_one_without_that_receiver() {
    let dir = tempfile::tempdir().unwrap();
    let first = waiting(&dir, 203, patient());
    let second = start(&dir, Vec::new(), patient());
    assert_eq!((outbox(&dir).len(), second.dead_letters().unwrap().len()), (1, 0));
    assert_eq!(second.tally().given_up, 0);
    std::fs::write(dir.path().join("go"), "").unwrap();
    wait_for("delivered", || first.tally().delivered == 1);
    assert_eq!((outbox(&dir).len(), first.dead_letters().unwrap().len()), (0, 0));
}

#[test]
fn how_far_was_told_is_noted_once_it_is_kept_or_sent() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let dir = tempfile::tempdir().unwrap();
    let text = "touch begun-$BATON_TASK_TO; until test -e go; do sleep 0.01; done";
    let notifier = start(&dir, command(&dir, text), patient());
    let (noted, kept) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let note = || {
        let (noted, kept, path) = (noted.clone(), kept.clone(), dir.path().join("notifications/outbox"));
        notifier.once_kept(Box::new(move || {
            kept.store(files(&path).len(), Ordering::SeqCst);
            noted.fetch_add(1, Ordering::SeqCst);
        }));
    };
    notifier.tell(&moved(7));
    notifier.tell(&moved(8));
    note();
    wait_for("noted", || noted.load(Ordering::SeqCst) == 1);
    assert_eq!(kept.load(Ordering::SeqCst), 2, "both were in the outbox by then");
    // Nothing can be kept any more: what is told is sent, and not noted before.
    let sending = dir.path().join("notifications/sending");
    std::fs::rename(&sending, dir.path().join("away")).unwrap();
    notifier.tell(&moved(9));
    note();
    wait_for("it waits to be sent", || notifier.tally().pending == 3);
    std::fs::write(dir.path().join("go"), "").unwrap();
    wait_for("delivered", || notifier.tally().delivered == 3);
    assert_eq!(noted.load(Ordering::SeqCst), 1, "not while it could have been lost");
    note();
    wait_for("noted once it is sent", || noted.load(Ordering::SeqCst) == 2);
}
