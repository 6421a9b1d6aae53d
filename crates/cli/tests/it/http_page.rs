//! What the page stands on: its own files, and what it asks for of tasks and of the server.

use std::fs;

use serde_json::{Value, json};

use crate::conducted::team;
use crate::runs::configure;
use crate::support::Home;
use crate::task_support::{report, text};
use crate::web_support::{Answer, Web};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const SCREENS: [&str; 7] =
    ["/", "/tasks/TASK-2026-02-09-001", "/sessions", "/sessions/x", "/traces", "/traces/x", "/health"];

/// As a browser asks for what it shows.
const TO_SHOW: (&str, &str) = ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

/// A place with a page in it that was built.
fn with_page() -> Home {
    let home = Home::new();
    let dist = home.path("dist");
    fs::create_dir_all(dist.join("assets")).unwrap();
    for (name, text) in [
        ("index.html", "<!doctype html><title>Baton</title>"),
        ("secret.txt", "not for anybody"),
        ("assets/app-GXA3ASOQ.js", "plain();"),
        ("assets/app-GXA3ASOQ.js.gz", "packed"),
        ("assets/app.css", "body {}"),
        ("assets/icon.svg", "<svg/>"),
    ] {
        fs::write(dist.join(name), text).unwrap();
    }
    let dist = dist.to_str().unwrap().to_owned();
    home.with_env("BATON_PAGE_DIR", &dist)
}

#[test]
fn every_address_of_the_page_gives_the_page_and_needs_no_token() {
    let home = with_page();
    let web = Web::start(&home);
    for path in SCREENS {
        let answer = web.browse(path, &[]);
        assert_eq!(
            (answer.status, &answer.body[..]),
            (200, &b"<!doctype html><title>Baton</title>"[..]),
            "{path}"
        );
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(answer.header("content-security-policy"), Some(POLICY), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
    }
    // What else is in an address is the page's own.
    assert_eq!(web.browse("/traces?of=me&x=1", &[]).status, 200);
    web.browse("/tasks", &[]).refuses(401, "W001");
    web.browse("/nowhere", &[]).refuses(401, "W001");
    let described = web.get("/v1/openapi.json").expect(200);
    assert!(described["paths"].get("/sessions").is_none(), "{described}");
    web.serving.stop();
}

#[test]
fn a_link_with_a_token_becomes_a_cookie_and_leads_to_where_it_led() {
    let home = with_page();
    let web = Web::start(&home);
    let link = |path: &str| web.browse(&format!("{path}?token={}", web.token), &[]);
    for path in SCREENS {
        let answer = link(path);
        assert_eq!((answer.status, answer.header("location")), (303, Some(path)));
        assert!(answer.header("set-cookie").unwrap().contains("HttpOnly; SameSite=Strict"));
    }
    let more = web.browse(&format!("/traces?of=a%26b&token={}", web.token), &[]);
    assert_eq!(more.header("location"), Some("/traces?of=a%26b"));
    web.browse("/sessions?token=wrong", &[]).refuses(401, "W001");
    web.serving.stop();
}

#[test]
fn whoever_browses_gets_the_page_which_asks_for_a_token_also_where_there_is_nothing() {
    let home = with_page();
    let web = Web::start(&home);
    let good = web.cookie(&web.token);
    let bad = format!("{}=nonsense", good.split('=').next().unwrap());
    let shows = |path: &str, cookie: Option<&str>, status: u16| {
        let answer = web.browse(path, &[&[TO_SHOW][..], cookie.map(|it| ("Cookie", it)).as_slice()].concat());
        let is_page = String::from_utf8_lossy(&answer.body).contains("<title>Baton</title>");
        assert_eq!((answer.status, is_page), (status, true), "{path} {cookie:?}");
        assert_eq!(answer.header("content-security-policy"), Some(POLICY), "{path}");
    };
    for cookie in [None, Some(bad.as_str()), Some(good.as_str())] {
        SCREENS.iter().for_each(|path| shows(path, cookie, 200));
        // Addresses that are none are the page's to say so.
        for path in ["/nowhere", "/tasks", "/nowhere/at/all?x=1", "/assets/deep/er.js"] {
            shows(path, cookie, 404);
        }
    }
    // Those of programs are not, nor is whoever takes anything a person.
    for more in [&[][..], &[("Accept", "*/*")]] {
        web.browse("/nowhere", more).refuses(401, "W001");
    }
    web.ask("GET", "/nowhere", None).refuses(404, "W006");
    web.browse("/v1/tasks", &[TO_SHOW]).refuses(401, "W001");
    web.browse("/v1/nowhere", &[TO_SHOW]).refuses(401, "W001");
    web.ask_as("", "POST", "/nowhere", None, &[TO_SHOW]).refuses(401, "W001");
    web.serving.stop();
}

#[test]
fn a_wrong_token_leaves_the_address_too_and_what_was_wrong_is_said_once_asked() {
    let home = with_page();
    let web = Web::start(&home);
    let title = |cookie: &str| {
        let answer = web.browse("/v1/checkpoint", &[("Cookie", cookie)]);
        assert_eq!(answer.status, 401);
        text(&answer.json()["title"])
    };
    assert_eq!(title("other=1"), "a token is needed");
    let long = "x".repeat(1000);
    for (path, clean) in [
        ("/?token=wrong", "/"),
        ("/sessions?token=", "/sessions"),
        ("/traces?of=a%26b&token=one&token=two", "/traces?of=a%26b"),
        (&format!("/health?token={long}"), "/health"),
        ("/nowhere?token=wrong", "/nowhere"),
        ("//evil.example/?token=wrong", "/"),
    ] {
        let answer = web.browse(path, &[TO_SHOW]);
        assert_eq!((answer.status, answer.header("location")), (303, Some(clean)), "{path}");
        let cookie = answer.header("set-cookie").unwrap();
        assert!(cookie.contains("HttpOnly; SameSite=Strict") && cookie.contains("Max-Age=60"), "{cookie}");
        assert!(title(cookie.split(';').next().unwrap()).starts_with("the token was not accepted"), "{path}");
    }
    let answer = web.browse(&format!("//evil.example/?token={}", web.token), &[TO_SHOW]);
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
    // Whoever is in stays in, whatever link somebody made up.
    let refused = web.browse("/?token=wrong", &[TO_SHOW]).header("set-cookie").unwrap().to_owned();
    let refused = refused.split(';').next().unwrap();
    let both = format!("{refused}; {}", web.cookie(&web.token));
    web.browse("/v1/checkpoint", &[("Cookie", &both)]).expect(200);
    web.serving.stop();
}

#[test]
fn whoever_guesses_links_is_slowed_down() {
    let home = with_page();
    let web = Web::start(&home);
    let guess = || (0..25).map(|_| web.browse("/?token=wrong", &[TO_SHOW]).status).collect::<Vec<u16>>();
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let guessing: Vec<_> = (0..8).map(|_| scope.spawn(guess)).collect();
        guessing.into_iter().flat_map(|each| each.join().unwrap()).collect()
    });
    assert!(answers.contains(&429), "{answers:?}");
    web.serving.stop();
}

#[test]
fn files_of_the_page_are_packed_for_those_who_take_it_and_kept_for_ever() {
    let home = with_page();
    let web = Web::start(&home);
    let get = |name: &str, takes: &str| web.browse(&format!("/assets/{name}"), &[("Accept-Encoding", takes)]);
    let packed = get("app-GXA3ASOQ.js", "br, gzip");
    assert_eq!((packed.header("content-encoding"), &packed.body[..]), (Some("gzip"), &b"packed"[..]));
    assert_eq!(packed.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert_eq!(packed.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(packed.header("vary"), Some("Accept-Encoding"));
    for takes in ["br", "gzip;q=0", "identity", ""] {
        let plain = get("app-GXA3ASOQ.js", takes);
        assert_eq!((plain.header("content-encoding"), &plain.body[..]), (None, &b"plain();"[..]), "{takes}");
    }
    let css = get("app.css", "gzip");
    assert_eq!(
        (css.header("content-encoding"), css.header("content-type")),
        (None, Some("text/css; charset=utf-8"))
    );
    // What has no hash in its name may be another one tomorrow.
    for name in ["app.css", "icon.svg"] {
        assert_eq!(get(name, "gzip").header("cache-control"), Some("no-cache"), "{name}");
    }
    web.serving.stop();
}

#[test]
fn a_path_that_is_no_text_is_refused_as_everything_else_is() {
    let home = with_page();
    let web = Web::start(&home);
    for path in ["/tasks/%ff", "/assets/%ff.js", "/sessions/a%80"] {
        let answer = web.browse(path, &[]);
        answer.refuses(400, "W004");
        assert!(answer.json()["title"].as_str().unwrap().contains("not UTF-8"), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    web.get("/v1/tasks/%ff").refuses(400, "W004");
    web.browse("/v1/tasks/%ff", &[]).refuses(401, "W001");
    web.serving.stop();
}

#[test]
fn nothing_beside_the_files_of_the_page_is_given_away() {
    let home = with_page();
    let web = Web::start(&home);
    for name in [
        "nothing.js",
        "../secret.txt",
        "..%2fsecret.txt",
        "%2e%2e%2fsecret.txt",
        "..",
        ".",
        ".hidden",
        "a%00b",
        "app-GXA3ASOQ.js.gz",
        "%5c..%5csecret.txt",
        "app.css%20",
    ] {
        let answer = web.browse(&format!("/assets/{name}"), &[]);
        assert!([401, 404].contains(&answer.status), "{name}: {}", answer.status);
        assert!(!String::from_utf8_lossy(&answer.body).contains("not for anybody"), "{name}");
    }
    web.serving.stop();
}

#[test]
fn where_no_page_was_built_it_is_said_how_to() {
    let home = Home::new().with_env("BATON_PAGE_DIR", "/nonexistent");
    let web = Web::start(&home);
    let answer = web.browse("/", &[]);
    assert_eq!(answer.status, 200);
    assert!(String::from_utf8_lossy(&answer.body).contains("make page"));
    web.serving.stop();
}

#[test]
fn tasks_are_found_by_their_ids() {
    let home = Home::new();
    let web = Web::start(&home);
    let ids: Vec<String> = (0..4).map(|n| web.task(&format!("number {n}"))).collect();
    let list = |query: &str| {
        let page = web.get(&format!("/v1/tasks?{query}")).expect(200);
        page["tasks"].as_array().unwrap().iter().map(|task| text(&task["id"])).collect::<Vec<_>>()
    };
    let (first, last) = (&ids[0], &ids[3]);
    assert_eq!(list(&format!("id={last}&id={first}")), [first.clone(), last.clone()]);
    assert_eq!(list(&format!("id={last}&id={first}&status=done")), [""; 0]);
    assert_eq!(list("id=TASK-2001-01-01-001"), [""; 0]);
    web.get("/v1/tasks?id=nonsense").refuses(400, "W004");
    let many = |count: usize| vec![format!("id={first}"); count].join("&");
    assert_eq!(list(&many(200)), vec![first.clone()]);
    web.get(&format!("/v1/tasks?{}", many(201))).refuses(400, "W004");
    web.serving.stop();
}

#[test]
fn a_card_says_who_is_at_it_and_how_the_last_attempt_went() {
    let home = Home::new();
    let web = Web::start(&home);
    let id = web.task("to be shown");
    let card = || {
        let listed = web.get(&format!("/v1/tasks?id={id}")).expect(200)["tasks"][0]["card"].clone();
        assert_eq!(web.get(&format!("/v1/tasks/{id}")).expect(200)["card"], listed);
        listed
    };
    assert_eq!(card(), json!({}));
    let claimed = web.post(&format!("/v1/tasks/{id}/claim"), &json!({"agent": "ada"})).expect(200);
    let held = card();
    assert_eq!(held["heartbeatBy"], claimed["heartbeatBy"]);
    assert_eq!((&held["leaseTtlMs"], &held["beatTtlMs"]), (&json!(600_000), &json!(300_000)));
    assert_eq!((&held["run"]["id"], &held["run"]["agent"]), (&claimed["runId"], &json!("ada")));
    assert!(held["run"].get("endedAt").is_none() && held.get("tests").is_none(), "{held}");
    web.post("/v1/messages", &report(&id, "ada", "partial")).expect(200);
    let told = card();
    assert_eq!(told["tests"], json!({"total": 3, "passed": 2, "failed": 1}), "{told}");
    assert!(told.get("heartbeatBy").is_none(), "{told}");
    assert_eq!(told["run"]["failed"], false, "{told}");
    web.serving.stop();
    // What is made anew of the ledger says the same.
    fs::remove_dir_all(home.data().join("index")).unwrap();
    let web = Web::start(&home);
    assert_eq!(web.get(&format!("/v1/tasks/{id}")).expect(200)["card"], told);
    web.serving.stop();
}

#[test]
fn a_card_says_what_a_guarded_run_came_to() {
    let home = team("");
    let id = home.guarded("edit good.txt complete done");
    let last = home.conducted(&id, "done");
    let web = Web::start(&home);
    let card = web.get(&format!("/v1/tasks/{id}")).expect(200)["card"].clone();
    assert_eq!(card["verified"]["trace"], home.guard_of(&id), "{card} {last}");
    assert_eq!(card["verified"]["state"], "completed");
    assert!(text(&card["verified"]["verdict"]).starts_with("pass"), "{card}");
    assert!(card.get("guard").is_none(), "{card}");
    web.serving.stop();
}

#[test]
fn what_may_be_done_to_a_task_is_what_is_done_when_it_is_asked_for() {
    let home = Home::new();
    let web = Web::start(&home);
    let before = web.task("comes first");
    let new = json!({"title": "x", "status": "ready", "dependsOn": [before]});
    let make = || text(&web.post("/v1/tasks", &new).expect(201)["id"]);
    let actions = |id: &str| web.get(&format!("/v1/tasks/{id}/actions")).expect(200);
    let ways: [(&str, Vec<&str>); 7] = [
        ("ready", vec![]),
        ("backlog", vec![]),
        ("blocked", vec!["blocked"]),
        ("review", vec!["blocked", "review"]),
        ("deadletter", vec!["deadletter"]),
        ("cancelled", vec!["cancelled"]),
        ("in-progress", vec![]),
    ];
    let statuses = crate::task_support::STATUSES;
    for (status, way) in ways {
        // Each answer is compared with what happens to a task that is just the same.
        let twin = || {
            let id = match status {
                "backlog" => text(&web.post("/v1/tasks", &json!({"title": "x"})).expect(201)["id"]),
                "in-progress" => {
                    let id = web.task("held");
                    web.post(&format!("/v1/tasks/{id}/claim"), &json!({"agent": "ada"})).expect(200);
                    id
                }
                _ => make(),
            };
            for to in &way {
                web.post(&format!("/v1/tasks/{id}/transition"), &json!({"to": to, "reason": "so"}))
                    .expect(200);
            }
            id
        };
        let id = twin();
        let said = web.get(&format!("/v1/tasks/{id}")).expect(200);
        let found = actions(&id);
        assert_eq!((&found["taskId"], &found["rev"]), (&json!(id), &said["rev"]));
        let moves = found["moves"].as_array().unwrap();
        let listed: Vec<&str> = moves.iter().map(|one| one["to"].as_str().unwrap()).collect();
        let expected: Vec<&str> = statuses.into_iter().filter(|one| *one != status).collect();
        assert_eq!((listed, &said["status"]), (expected, &json!(status)));
        let same = |name: &str, shown: &Value, answer: &Answer| {
            let answer_json = answer.json();
            assert_eq!(
                shown["allowed"],
                json!(answer.status == 200),
                "{status} {name}: {shown} {answer_json}"
            );
            if answer.status != 200 {
                assert_eq!(shown["why"], answer_json["title"], "{status} {name}");
                assert_eq!(shown["code"], answer_json["code"], "{status} {name}");
            } else {
                assert!(shown.get("why").is_none(), "{shown}");
            }
        };
        for one in moves {
            let body = json!({"to": one["to"], "reason": "just so"});
            same(&text(&one["to"]), one, &web.post(&format!("/v1/tasks/{}/transition", twin()), &body));
        }
        let ask = |verb: &str, body: Value| web.post(&format!("/v1/tasks/{}/{verb}", twin()), &body);
        same("approve", &found["approve"], &ask("approve", json!({})));
        same("reject", &found["reject"], &ask("reject", json!({"reason": "no"})));
        same("retry", &found["retry"], &ask("retry", json!({})));
    }
    web.get("/v1/tasks/TASK-2001-01-01-001/actions").refuses(404, "T001");
    // Whoever may only look is told that nothing is theirs to do.
    let made = home.json(&["token", "new", "guest", "--scope", "viewer"]);
    let id = web.task("looked at");
    let path = format!("/v1/tasks/{id}/actions");
    let found = web.ask_as(made["token"].as_str().unwrap(), "GET", &path, None, &[]).expect(200);
    let all = found["moves"].as_array().unwrap().iter().chain([&found["approve"], &found["retry"]]);
    for one in all {
        assert_eq!((&one["allowed"], &one["code"]), (&json!(false), &json!("W002")), "{one}");
    }
    web.serving.stop();
}

#[test]
fn asking_what_may_be_done_does_nothing() {
    let home = Home::new();
    let web = Web::start(&home);
    let id = web.task("left alone");
    let events = || home.events().len();
    let before = events();
    web.get(&format!("/v1/tasks/{id}/actions")).expect(200);
    assert_eq!(events(), before);
    web.serving.stop();
}

#[test]
fn the_status_says_who_can_work_and_what_waits() {
    let home = Home::new();
    configure(
        &home,
        "[agents.ghost]\nharness = \"acp\"\ncommand = [\"no-such-program\", \"--flag\"]\nmax_sessions = 2\n",
    );
    let web = Web::start(&home);
    let (waits, held) = (web.task("waits"), web.task("held"));
    let claimed = web.post(&format!("/v1/tasks/{held}/claim"), &json!({"agent": "mock"})).expect(200);
    let status = web.get("/v1/status").expect(200);
    let at = |name: &str| text(&status[name]).parse::<baton_core::Timestamp>().unwrap();
    assert!(at("startedAt") <= at("now"), "{status}");
    let agents = status["agents"].as_array().unwrap();
    let agent = |name: &str| agents.iter().find(|agent| agent["name"] == name).unwrap();
    let ghost = agent("ghost");
    assert_eq!((&ghost["installed"], &ghost["command"]), (&json!(false), &json!("no-such-program --flag")));
    assert_eq!(ghost["maxSessions"], 2);
    assert!(text(&ghost["detail"]).contains("no-such-program"), "{ghost}");
    let mock = agent("mock");
    assert_eq!((&mock["installed"], &mock["failures"]), (&json!(true), &json!(0)));
    assert!(mock.get("lastStartAt").is_some() && ghost.get("lastStartAt").is_none(), "{status}");
    let scheduler = &status["scheduler"];
    assert_eq!((&scheduler["isDispatching"], &scheduler["ready"]), (&json!(false), &json!(1)));
    assert_eq!(scheduler["leases"][0]["taskId"], held);
    assert_eq!(scheduler["leases"][0]["expiresAt"], claimed["expiresAt"]);
    let made = web.get(&format!("/v1/tasks/{waits}")).expect(200);
    assert_eq!(scheduler["oldestReadyAt"], made["lastTransitionAt"]);
    assert!(scheduler["lastAt"].is_string() && scheduler["pollMs"].as_u64() > Some(0), "{scheduler}");
    let (ledger, store) = (&status["ledger"], &status["store"]);
    assert_eq!(ledger["size"].as_u64(), Some(home.events().len() as u64));
    let checkpoint = web.get("/v1/checkpoint").expect(200);
    assert_eq!(ledger["root"], checkpoint["root"]);
    assert!(store["bytes"].as_u64() > Some(0) && store["freeBytes"].as_u64() > Some(0), "{store}");
    let doctor = home.run(&["doctor", "--json"]).object();
    let names = |checks: &Value| -> Vec<String> {
        checks.as_array().unwrap().iter().map(|check| text(&check["check"])).collect()
    };
    assert_eq!(names(&status["checks"]), names(&doctor["checks"]));
    web.serving.stop();
}

#[test]
fn the_status_says_what_an_agent_said_that_it_is_also_after_a_restart() {
    let home = Home::new();
    let web = Web::start(&home);
    let program = |web: &Web| {
        let status = web.get("/v1/status").expect(200);
        let agents = status["agents"].as_array().unwrap().clone();
        agents.iter().find(|agent| agent["name"] == "mock").unwrap().get("program").cloned()
    };
    assert_eq!(program(&web), None, "it has not begun yet");
    // Whoever appends by hand may call an event anything, and says nothing of agents by it.
    let (trace, forged) = (home.trace(), "sess_019c4180-0a00-7000-8000-000000000001");
    for (kind, payload) in [
        ("session.started", json!({"agent": "mock", "harness": "acp"})),
        ("session.ready", json!({"agent": "forged 9.9"})),
    ] {
        let event = json!({"type": kind, "session": forged, "payload": payload}).to_string();
        home.run_with(&["trace", "append", &trace, "--agent", "ada"], event).expect(0);
    }
    assert_eq!(program(&web), None);
    let session = text(&web.post("/v1/sessions", &json!({"agent": "mock"})).expect(201)["id"]);
    let said = Some(json!(format!("mock {}", env!("CARGO_PKG_VERSION"))));
    crate::support::until("it says what it is", || program(&web) == said);
    web.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    web.serving.stop();
    let web = Web::start(&home);
    assert_eq!(program(&web), said);
    web.serving.stop();
}

#[test]
fn the_status_counts_messages_that_were_refused_by_their_reason() {
    let home = Home::new();
    let web = Web::start(&home);
    let id = web.task("x");
    let refused = || web.get("/v1/status").expect(200)["refused"].clone();
    assert_eq!(refused(), json!([]));
    let count = |answer: Answer| text(&answer.expect(422)["reason"]);
    // Nobody holds the task.
    let first = count(web.post("/v1/messages", &report(&id, "ada", "done")));
    assert_eq!(refused(), json!([{"reason": first, "count": 1}]));
    count(web.post("/v1/messages", &report(&id, "bob", "done")));
    let nowhere = count(web.post("/v1/messages", &report("TASK-2001-01-01-001", "ada", "done")));
    assert_ne!(first, nowhere);
    let mut expected = [json!({"reason": first, "count": 2}), json!({"reason": nowhere, "count": 1})];
    expected.sort_by_key(|one| text(&one["reason"]));
    assert_eq!(refused(), json!(expected));
    web.serving.stop();
}

#[test]
fn a_ledger_that_was_altered_is_told_and_remembered() {
    let home = Home::new();
    let web = Web::start(&home);
    web.task("an event or two");
    let last = || web.get("/v1/status").expect(200)["ledger"].get("lastVerified").cloned();
    assert_eq!(last(), None);
    let report = web.post("/v1/ledger/verify", &json!({})).expect(200);
    assert_ne!(report["verdict"], "fail", "{report}");
    let remembered = last().unwrap();
    assert_eq!(
        (&remembered["verdict"], &remembered["events"]),
        (&report["verdict"], &report["subject"]["events"])
    );
    assert!(remembered["at"].is_string());
    // One letter of the first event, where it lies.
    let segment = home.segment();
    let text = fs::read_to_string(&segment).unwrap();
    let altered = text.replacen("\"role\":\"system\"", "\"role\":\"systen\"", 1);
    assert_ne!(text, altered);
    fs::write(&segment, altered).unwrap();
    let report = web.post("/v1/ledger/verify", &json!({})).expect(200);
    assert_eq!(report["verdict"], "fail", "{report}");
    assert_eq!(last().unwrap()["verdict"], "fail");
    fs::write(&segment, text).unwrap();
    web.serving.stop();
}
