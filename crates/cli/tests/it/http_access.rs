//! Who gets in over HTTP, and who does not: every route by every token, and everything that is not a request as it should be.

use std::collections::BTreeMap;
use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::Serving;
use crate::support::{Home, until};
use crate::web_support::{Web, connect, read_answer};

/// Who may do what, written down once more: `a`dmin, `o`perator, a`g`ent, `v`iewer, `c`i; `-` needs no token.
const TABLE: &[(&str, &str, &str)] = &[
    ("GET", "/", "-"),
    ("GET", "/healthz", "-"),
    ("GET", "/readyz", "-"),
    ("GET", "/metrics", "aovc"),
    ("GET", "/v1/status", "aovc"),
    ("POST", "/v1/ledger/verify", "aovc"),
    ("GET", "/v1/health", "aogvc"),
    ("GET", "/v1/openapi.json", "aogvc"),
    ("GET", "/v1/tasks", "aogvc"),
    ("POST", "/v1/tasks", "aog"),
    ("GET", "/v1/tasks/{id}", "aogvc"),
    ("PATCH", "/v1/tasks/{id}", "ao"),
    ("GET", "/v1/tasks/{id}/actions", "aogvc"),
    ("GET", "/v1/tasks/{id}/changes", "aogvc"),
    ("GET", "/v1/tasks/{id}/files", "aogvc"),
    ("POST", "/v1/tasks/{id}/transition", "ao"),
    ("POST", "/v1/tasks/{id}/claim", "aog"),
    ("POST", "/v1/tasks/{id}/beat", "aog"),
    ("POST", "/v1/tasks/{id}/release", "aog"),
    ("POST", "/v1/tasks/{id}/log", "aog"),
    ("POST", "/v1/tasks/{id}/approve", "ao"),
    ("POST", "/v1/tasks/{id}/reject", "ao"),
    ("POST", "/v1/tasks/{id}/retry", "ao"),
    ("GET", "/v1/tasks/{id}/runs", "aogvc"),
    ("GET", "/v1/tasks/{id}/trace", "aogvc"),
    ("POST", "/v1/messages", "aog"),
    ("POST", "/v1/exit-signals", "aog"),
    ("POST", "/v1/ci-reports", "aoc"),
    ("GET", "/v1/sessions", "aovc"),
    ("POST", "/v1/sessions", "ao"),
    ("GET", "/v1/sessions/{id}", "aovc"),
    ("POST", "/v1/sessions/{id}/input", "ao"),
    ("POST", "/v1/sessions/{id}/stop", "ao"),
    ("POST", "/v1/sessions/{id}/permissions/{req}", "ao"),
    ("POST", "/v1/sessions/{id}/tools/{run}/retry", "ao"),
    ("POST", "/v1/sessions/{id}/hooks/{run}/retry", "ao"),
    ("GET", "/v1/sessions/{id}/transcript", "aovc"),
    ("GET", "/v1/sessions/{id}/events", "aovc"),
    ("GET", "/v1/traces", "aovc"),
    ("POST", "/v1/traces", "ao"),
    ("GET", "/v1/traces/{id}", "aovc"),
    ("POST", "/v1/traces/{id}/events", "ao"),
    ("POST", "/v1/traces/{id}/reviews", "ao"),
    ("POST", "/v1/traces/{id}/abort", "ao"),
    ("POST", "/v1/traces/{id}/verify", "aovc"),
    ("POST", "/v1/verify", "aovc"),
    ("GET", "/v1/traces/{id}/bundle", "aovc"),
    ("GET", "/v1/events/{id}/proof", "aovc"),
    ("GET", "/v1/events", "aovc"),
    ("GET", "/v1/checkpoint", "aovc"),
    ("GET", "/v1/artifacts/{sha256}", "aovc"),
    ("PUT", "/v1/artifacts/{sha256}", "ao"),
    ("GET", "/v1/agents", "aovc"),
    ("GET", "/v1/nodes", "aovc"),
    ("GET", "/v1/commands", "ao"),
    ("POST", "/v1/mcp", "aog"),
    ("DELETE", "/v1/mcp", "aog"),
    ("GET", "/v1/acp", "aovc"),
    ("POST", "/v1/acp/{server_id}", "ao"),
    ("GET", "/v1/acp/{server_id}", "ao"),
    ("DELETE", "/v1/acp/{server_id}", "ao"),
    ("GET", "/v1/acp/ws", "ao"),
];

pub(crate) fn token(home: &Home, name: &str, more: &[&str]) -> String {
    home.json(&[&["token", "new", name], more].concat())["token"].as_str().unwrap().to_owned()
}

#[test]
fn every_route_opens_to_the_tokens_that_it_should_and_to_no_other() {
    let home = Home::new();
    let web = Web::start(&home);
    let described = web.get("/v1/openapi.json").expect(200);
    let mut known: Vec<(String, String)> = Vec::new();
    for (path, operations) in described["paths"].as_object().unwrap() {
        known.extend(operations.as_object().unwrap().keys().map(|verb| (verb.to_uppercase(), path.clone())));
    }
    let mut listed: Vec<(String, String)> =
        TABLE.iter().map(|(verb, path, _)| ((*verb).to_owned(), (*path).to_owned())).collect();
    known.sort();
    listed.sort();
    assert_eq!(known, listed, "the table has every route");

    let task = web.post("/v1/tasks", &json!({"title": "x"})).expect(201)["id"].as_str().unwrap().to_owned();
    let scopes = BTreeMap::from([
        ('a', web.token.clone()),
        ('o', token(&home, "o", &["--scope", "operator"])),
        ('g', token(&home, "g", &["--scope", "agent", "--agent", "ada", "--task", &task])),
        ('v', token(&home, "v", &["--scope", "viewer"])),
        ('c', token(&home, "c", &["--scope", "ci"])),
    ]);
    let expired = token(&home, "e", &["--scope", "admin", "--expires", "1s"]);
    until("its time is over", || web.ask_as(&expired, "GET", "/v1/health", None, &[]).status == 401);
    let revoked = token(&home, "r", &["--scope", "admin"]);
    home.run(&["token", "revoke", "r"]).expect(0);
    for (verb, path, opens) in TABLE {
        let path = path.replace("{id}", &task).replace("{req}", "0").replace("{run}", "x");
        let path = path.replace("{sha256}", "0").replace("{server_id}", "none");
        let body = (*verb != "GET").then(|| json!({"nonsense": true}));
        let ask =
            |token: &str| web.ask_as(token, verb, &path, body.as_ref(), &[("Accept", "application/json")]);
        for (letter, token) in &scopes {
            let answer = ask(token);
            let is_in = *opens == "-" || opens.contains(*letter);
            let is_refused = answer.status == 403;
            assert_eq!(!is_in, is_refused, "{verb} {path} {letter}: {}", answer.status);
            if is_refused {
                answer.refuses(403, "W002");
            }
            assert_ne!(answer.status, 401, "{verb} {path} {letter}");
            assert!(answer.status < 500, "{verb} {path} {letter}: {}", answer.status);
        }
        for wrong in ["", "wrong", &expired, &revoked, &web.token[..20]] {
            // Whoever guesses has to wait in between; that is refused just as well.
            until("a wrong token is refused", || {
                let answer = ask(wrong);
                match (*opens, answer.status) {
                    ("-", status) => assert_eq!(status, 200, "{verb} {path}"),
                    (_, 429) => return false,
                    (_, 401) => answer.refuses(401, "W001"),
                    (_, status) => panic!("{verb} {path} opens to {wrong:?}: {status}"),
                }
                true
            });
        }
    }
    web.serving.stop();
}

#[test]
fn an_agents_token_is_for_itself_and_for_its_task() {
    let home = Home::new();
    let web = Web::start(&home);
    let (own, other) = (web.task("own"), web.task("other"));
    let ada = token(&home, "ada", &["--scope", "agent", "--agent", "ada", "--task", &own]);
    let as_ada = |verb: &str, path: &str, body: Value| {
        web.ask_as(&ada, verb, path, (verb != "GET").then_some(&body), &[])
    };
    let claim =
        |id: &str, agent: &str| as_ada("POST", &format!("/v1/tasks/{id}/claim"), json!({"agent": agent}));
    claim(&other, "ada").refuses(403, "W002");
    claim(&own, "bob").refuses(403, "W002");
    as_ada("POST", &format!("/v1/tasks/{own}/log"), json!({"text": "not yet"})).refuses(409, "T011");
    as_ada("GET", &format!("/v1/tasks/{other}"), Value::Null).refuses(403, "W002");
    assert_eq!(claim(&own, "ada").expect(200)["fence"], 1);
    let listed = as_ada("GET", "/v1/tasks", Value::Null).expect(200);
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1, "it sees its own");
    let message = |from: &str, task: &str| {
        json!({
            "protocol": "aof", "version": 1, "type": "status.update", "taskId": task, "fromAgent": from,
            "toAgent": "baton", "sentAt": "2026-02-09T10:00:00Z",
            "payload": {"taskId": task, "agentId": from, "progress": "x"},
        })
    };
    as_ada("POST", "/v1/messages", message("bob", &own)).refuses(403, "W002");
    as_ada("POST", "/v1/messages", message("ada", &other)).refuses(403, "W002");
    as_ada("POST", "/v1/messages", message("ada", &own)).expect(200);
    // What it writes is recorded as its own.
    as_ada("POST", &format!("/v1/tasks/{own}/log"), json!({"text": "at work"})).expect(200);
    let logged = home.events().into_iter().rfind(|event| event["type"] == "task.logged").unwrap();
    assert_eq!(logged["actor"]["agent"], "ada");
    web.serving.stop();
}

#[test]
fn pages_of_other_sites_get_nowhere() {
    let home = Home::new();
    let web = Web::start(&home);
    let bearer = format!("Bearer {}", web.token);
    let own = format!("http://{}", web.address);
    let port = web.address.rsplit(':').next().unwrap();
    let cookie = web.cookie(&web.token);
    let json = ("Content-Type", "application/json");
    let post = |headers: &[(&str, &str)]| web.say("POST", "/v1/tasks", headers, b"{\"title\":\"x\"}");
    let host = ("Host", web.address.as_str());
    let auth = ("Authorization", bearer.as_str());
    let rebound = format!("evil.example:{port}");
    post(&[("Host", &rebound), auth, json]).refuses(403, "W003");
    post(&[host, auth, json, ("Origin", "http://evil.example")]).refuses(403, "W003");
    post(&[host, auth, json, ("Origin", "null")]).refuses(403, "W003");
    let with_cookie = ("Cookie", cookie.as_str());
    post(&[host, with_cookie, json]).refuses(403, "W003");
    post(&[host, with_cookie, json, ("Sec-Fetch-Site", "cross-site")]).refuses(403, "W003");
    post(&[host, with_cookie, json, ("Sec-Fetch-Site", "same-site"), ("Origin", &own)]).refuses(403, "W003");
    post(&[host, with_cookie, json, ("Origin", &own), ("Sec-Fetch-Site", "same-origin")]).expect(201);
    post(&[host, auth, json, ("Origin", &own)]).expect(201);
    web.say("GET", "/v1/tasks", &[host, with_cookie], b"").expect(200);
    let answer = web.say("GET", "/v1/tasks", &[host, auth], b"");
    assert_eq!(answer.header("access-control-allow-origin"), None);
    assert_eq!(web.get("/v1/tasks").expect(200)["tasks"].as_array().unwrap().len(), 2);
    web.serving.stop();
}

#[test]
fn the_link_makes_a_cookie_and_the_token_leaves_the_address() {
    let home = Home::new();
    let web = Web::start(&home);
    let host = ("Host", web.address.as_str());
    let answer = web.say("GET", &format!("/?token={}", web.token), &[host], b"");
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    web.say("GET", "/v1/tasks", &[host, ("Cookie", pair)], b"").expect(200);
    web.say("GET", "/?token=wrong", &[host], b"").refuses(401, "W001");
    let page = web.say("GET", "/", &[host], b"");
    assert_eq!(page.status, 200);
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    web.serving.stop();
}

#[test]
fn the_cookie_is_not_the_token_outlives_the_server_and_ends_with_the_token() {
    let home = Home::new();
    let web = Web::start(&home);
    let guest =
        home.json(&["token", "new", "guest", "--scope", "viewer"])["token"].as_str().unwrap().to_owned();
    let (own, pair) = (web.cookie(&web.token), web.cookie(&guest));
    let (name, key) = pair.split_once('=').unwrap();
    assert!(!own.contains(&web.token) && !pair.contains(&guest) && !own.contains(key), "{own} {pair}");
    // Whoever is shown it can do nothing with it as a token, nor is a token good as a cookie.
    web.ask_as(key, "GET", "/v1/tasks", None, &[]).refuses(401, "W001");
    web.browse("/v1/tasks", &[("Cookie", &format!("{name}={guest}"))]).refuses(401, "W001");
    let asks = |web: &Web, cookie: &str| {
        let port = web.address.rsplit(':').next().unwrap();
        assert!(cookie.starts_with(&format!("baton_{port}=")), "{cookie}");
        web.browse("/v1/health", &[("Cookie", cookie)])
    };
    assert_eq!(asks(&web, &pair).expect(200)["scope"], "viewer");
    assert_eq!(asks(&web, &own).expect(200)["scope"], "admin");
    let from_here = [("Cookie", pair.as_str()), ("Sec-Fetch-Site", "same-origin")];
    web.ask_as("", "POST", "/v1/tasks", Some(&json!({"title": "x"})), &from_here).refuses(403, "W002");
    // At the same port, as a browser that goes on would find it.
    let Web { serving, address, token } = web;
    serving.signal("-KILL");
    drop(serving);
    let (serving, _) = Serving::start_saying(&home, &["--no-dispatch", "--listen", &address]);
    let web = Web { serving, address, token };
    assert_eq!(asks(&web, &pair).expect(200)["scope"], "viewer", "a restart logs nobody out");
    home.run(&["token", "revoke", "guest"]).expect(0);
    asks(&web, &pair).refuses(401, "W001");
    assert_eq!(asks(&web, &own).expect(200)["scope"], "admin");
    web.serving.stop();
}

#[test]
fn what_is_too_large_too_deep_or_too_slow_is_refused_and_others_are_served() {
    let home = Home::new();
    let web = Web::start(&home);
    let bearer = format!("Bearer {}", web.token);
    let headers = [
        ("Host", web.address.as_str()),
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    let large = format!("{{\"title\":\"{}\"}}", "x".repeat(5 << 20));
    web.say("POST", "/v1/tasks", &headers, large.as_bytes()).refuses(413, "W005");
    let deep = format!("{{\"title\":\"x\",\"metadata\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!([400, 413].contains(&web.say("POST", "/v1/tasks", &headers, deep.as_bytes()).status));
    let many = format!("{{\"title\":\"x\",\"dependsOn\":[{}1]}}", "1,".repeat(200_000));
    web.say("POST", "/v1/tasks", &headers, many.as_bytes()).refuses(413, "W005");
    let long = "x".repeat(64 << 10);
    let answer = web.say("GET", &format!("/v1/tasks?cursor={long}"), &headers[..2], b"");
    assert!((400..500).contains(&answer.status), "{}", answer.status);
    // A head that never ends, and one that comes byte by byte.
    let mut slow = connect(&web.address);
    slow.write_all(b"GET /v1/tasks HTTP/1.1\r\nHost: ").unwrap();
    let began = Instant::now();
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest);
    assert!(began.elapsed() < Duration::from_secs(30), "it was let go");
    web.get("/v1/tasks").expect(200);
    web.serving.stop();
}

#[test]
fn however_many_connections_wait_somebody_new_is_served() {
    // Few descriptors, so that they are soon used up.
    let home = Home::new();
    let web = Web::start(&home);
    // Whoever follows waits as long as anybody, and is not idle.
    let mut follower = web.events("/v1/events", None);
    let mut idle: Vec<TcpStream> = Vec::new();
    for _ in 0..1500 {
        match TcpStream::connect(&web.address) {
            Ok(stream) => idle.push(stream),
            Err(_) => break,
        }
    }
    assert!(idle.len() > 900, "{}", idle.len());
    for n in 0..20 {
        let made = web.post("/v1/tasks", &json!({"title": format!("task {n}")}));
        made.expect(201);
    }
    assert!(follower.any(|event| event.data["type"] == "task.created"), "it still hears");
    // One that is being answered keeps its place.
    let mut stream = connect(&web.address);
    let head = format!(
        "GET /v1/tasks HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        web.address, web.token
    );
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(read_answer(&mut BufReader::new(stream)).unwrap().status, 200);
    drop(idle);
    web.serving.stop();
}

#[test]
fn beyond_this_machine_it_listens_only_where_somebody_says_so() {
    let home = Home::new();
    let refused = home.run(&["serve", "--listen", "0.0.0.0:0", "--json"]);
    refused.expect(4);
    assert!(refused.stderr.contains("W018") && refused.stderr.contains("unencrypted"), "{}", refused.stderr);
    let web = Web::start_with(&home, &["--no-dispatch"]);
    let taken = home.run(&["serve", "--listen", &web.address]);
    assert_ne!(taken.code, Some(0));
    web.serving.stop();
}

#[test]
fn no_token_and_no_key_is_in_any_answer_or_line_of_the_log() {
    let home = Home::new();
    let web = Web::start(&home);
    let token = token(&home, "secret", &["--scope", "viewer"]);
    web.ask_as(&token, "GET", "/v1/tasks", None, &[]).expect(200);
    web.ask_as(&format!("{token}x"), "GET", "/v1/tasks", None, &[]).refuses(401, "W001");
    let mut texts: Vec<String> = ["/metrics", "/v1/tasks", "/v1/agents", "/v1/nodes", "/v1/openapi.json"]
        .iter()
        .map(|path| String::from_utf8(web.get(path).body).unwrap())
        .collect();
    texts.push(home.run(&["token", "ls"]).stdout);
    texts.push(home.run(&["events", "--json"]).stdout);
    texts.push(web.serving.stop());
    let kept = std::fs::read_dir(home.data().join("server")).unwrap();
    texts.extend(kept.map(|entry| {
        String::from_utf8_lossy(&std::fs::read(entry.unwrap().path()).unwrap_or_default()).into_owned()
    }));
    for text in texts {
        assert!(!text.contains(&token[6..]), "{text}");
    }
}
