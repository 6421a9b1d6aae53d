//! Sessions in lists: page by page, of thousands that are over, and of those that run.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::Home;
use crate::task_support::text;
use crate::web_support::Web;

/// Sessions that are over, each with long words on its standard error.
const OVER: usize = 3000;
const STDERR_BYTES: usize = 8 << 10;

/// The ids of a list, and where it goes on.
fn listed(page: &Value) -> (Vec<String>, Option<String>) {
    let ids = page["sessions"].as_array().unwrap().iter().map(|one| text(&one["id"])).collect();
    (ids, page.get("next").map(text))
}

/// Writes sessions as one that has crashed left its own, each older than that; gives their ids, the newest first.
fn fill(sessions: &Path, crashed: &str, count: usize) -> Vec<String> {
    let kept = fs::read(sessions.join(crashed).join("session.json")).unwrap();
    let mut kept: Value = serde_json::from_slice(&kept).unwrap();
    kept["ended"]["stderr"]["head"] = "e".repeat(STDERR_BYTES).into();
    let ids = (0..count).rev().map(|n| format!("sess_019c4180-{n:04x}-7000-8000-000000000001"));
    let ids: Vec<String> = ids.collect();
    for id in &ids {
        kept["id"] = id.as_str().into();
        fs::create_dir(sessions.join(id)).unwrap();
        fs::write(sessions.join(id).join("session.json"), kept.to_string()).unwrap();
    }
    ids
}

/// Bytes that a process has read so far, from files and pipes, as the kernel counts them.
fn read_by(pid: u32) -> u64 {
    let told = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let line = told.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
    line.parse().unwrap()
}

/// A session that has crashed.
fn crashed(web: &Web) -> String {
    let id = text(&web.post("/v1/sessions", &json!({"agent": "mock"})).expect(201)["id"]);
    web.post(&format!("/v1/sessions/{id}/input"), &json!({"text": "crash 3"})).expect(200);
    crate::support::until("it has crashed, and nothing of it is left", || {
        let live = web.get("/v1/sessions?live=true").expect(200);
        live["sessions"].as_array().unwrap().is_empty()
    });
    id
}

#[test]
fn a_page_of_sessions_costs_what_is_on_it_however_many_there_are() {
    let home = Home::new();
    let web = Web::start(&home);
    let newest = crashed(&web);
    web.serving.stop();
    let old = fill(&home.data().join("sessions"), &newest, OVER);
    let web = Web::start(&home);
    let live = text(&web.post("/v1/sessions", &json!({"agent": "mock"})).expect(201)["id"]);
    let expected = [vec![live.clone(), newest.clone()], old.clone()].concat();
    // Where nothing is said, as many as of other lists.
    let first = web.get("/v1/sessions").expect(200);
    assert_eq!(listed(&first), (expected[..100].to_vec(), Some(expected[99].clone())));
    let (mut found, mut next) = (Vec::new(), None);
    loop {
        let cursor = next.map(|next: String| format!("&cursor={next}")).unwrap_or_default();
        let before = read_by(web.serving.pid());
        let page = web.get(&format!("/v1/sessions?limit=200{cursor}")).expect(200);
        let read = read_by(web.serving.pid()) - before;
        // A page is a fifteenth of all of them.
        assert!(read < (OVER * STDERR_BYTES / 8) as u64, "{read} bytes were read for a page");
        assert!(!page.to_string().contains("eeee"), "what went to standard error is not in the list");
        let (ids, more) = listed(&page);
        found.extend(ids);
        next = more;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(found, expected, "every session once, the newest first");
    let row = &first["sessions"][2];
    assert_eq!((&row["state"], &row["terminationInfo"]["exit_code"]), (&json!("stopped"), &json!(3)));
    assert_eq!(
        (&row["terminationInfo"]["cause"], row["terminationInfo"].get("stderr")),
        (&json!("crash"), None)
    );
    let whole = web.get(&format!("/v1/sessions/{newest}")).expect(200);
    assert!(text(&whole["terminationInfo"]["stderr"]["head"]).contains("crash line 1"), "{whole}");
    web.serving.stop();
}

#[test]
fn those_that_run_and_those_that_are_named_are_found_among_all_others() {
    let home = Home::new();
    let web = Web::start(&home);
    let over = crashed(&web);
    let sessions = home.data().join("sessions");
    let begin = || text(&web.post("/v1/sessions", &json!({"agent": "mock"})).expect(201)["id"]);
    let (one, other) = (begin(), begin());
    let ids = |query: &str| listed(&web.get(&format!("/v1/sessions?{query}")).expect(200));
    assert_eq!(ids(""), (vec![other.clone(), one.clone(), over.clone()], None));
    assert_eq!(ids("live=true"), (vec![other.clone(), one.clone()], None));
    assert_eq!(ids("live=true&limit=1"), (vec![other.clone()], Some(other.clone())));
    assert_eq!(ids(&format!("live=true&limit=1&cursor={other}")), (vec![one.clone()], None));
    let nobody = "sess_019c4180-0a00-7000-8000-000000000001";
    assert_eq!(ids(&format!("id={over}&id={nobody}&id={one}")), (vec![one.clone(), over.clone()], None));
    // Those that run are known without the disk, and what they wait for with them.
    web.post(&format!("/v1/sessions/{one}/input"), &json!({"text": "permission"})).expect(200);
    fs::rename(sessions.join(&one).join("session.json"), sessions.join("aside")).unwrap();
    crate::support::until("it waits", || {
        let live = web.get("/v1/sessions?live=true").expect(200);
        live["sessions"][1]["pendingPermissions"].is_array()
    });
    fs::rename(sessions.join("aside"), sessions.join(&one).join("session.json")).unwrap();
    // What somebody has taken away to make room is gone from the list.
    fs::remove_dir_all(sessions.join(&over)).unwrap();
    assert_eq!(ids("limit=2"), (vec![other.clone(), one.clone()], None));
    web.get("/v1/sessions?cursor=nothing").refuses(400, "W004");
    web.get("/v1/sessions?id=sess_1").refuses(400, "W004");
    web.get("/v1/sessions?limit=0").refuses(400, "W004");
    web.post(&format!("/v1/sessions/{one}/stop"), &json!({})).expect(200);
    let row = web.get(&format!("/v1/sessions?id={one}")).expect(200)["sessions"][0].clone();
    assert_eq!((&row["state"], &row["terminationInfo"]["reason"]), (&json!("stopped"), &json!("terminated")));
    web.serving.stop();
}

#[test]
fn the_command_line_lists_all_of_them_or_page_by_page() {
    let home = Home::new();
    let web = Web::start(&home);
    let newest = crashed(&web);
    let ask = |words: &[&str]| listed(&home.json(&[&["session", "ls"], words].concat()));
    web.serving.stop();
    let all = [vec![newest.clone()], fill(&home.data().join("sessions"), &newest, 250)].concat();
    let check = || {
        assert_eq!(ask(&[]), (all.clone(), None));
        assert_eq!(ask(&["--limit", "20"]), (all[..20].to_vec(), Some(all[19].clone())));
        assert_eq!(ask(&["--limit", "20", "--before", &all[239]]), (all[240..].to_vec(), None));
        assert_eq!(ask(&["--live"]), (vec![], None));
        assert_eq!(ask(&["--id", &all[7], "--id", &all[3]]), (vec![all[3].clone(), all[7].clone()], None));
    };
    check();
    let shown = home.run(&["session", "ls", "--limit", "2"]);
    shown.expect(0);
    let hint = format!("hint: baton session ls --limit 2 --before {}", all[1]);
    assert!(shown.stderr.contains(&hint), "{shown:?}");
    // With and without a server it is the same.
    let web = Web::start(&home);
    check();
    web.serving.stop();
}
