//! Agents that clients lead over HTTP and WebSocket, with the mock agent as a real process.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::acp_support::{Acp, Socket, prompt, reply, request, until_method};
use crate::support::{Home, until};
use crate::web_support::{Event, Web};

/// Answers come within a second of a death; the rest is for a machine that has much else to do.
const SOON: Duration = Duration::from_secs(5);

const ENDED: &str = "_sandboxagent/session/ended";
const TERMINATE: &str = "_sandboxagent/session/terminate";

fn said(events: &[Event]) -> String {
    let chunks = events.iter().filter_map(|event| event.data["params"]["update"]["content"]["text"].as_str());
    chunks.collect()
}

/// Reads until the answer to this id comes, and gives all before it.
fn until_answer(events: &mut dyn Iterator<Item = Event>, id: u64) -> Vec<Event> {
    let mut before = Vec::new();
    for event in events {
        let is_it = event.data["id"] == id && event.data.get("method").is_none();
        before.push(event);
        if is_it {
            return before;
        }
    }
    panic!("no answer to {id}: {before:?}");
}

#[test]
fn a_client_leads_an_agent_over_http() {
    let home = Home::new();
    let web = Web::start(&home);
    // The stream is asked for before there is anything to follow, as clients do.
    let (mut events, (acp, session)) = std::thread::scope(|scope| {
        let opening = scope.spawn(|| web.events("/v1/acp/one", None));
        let opened = Acp::open(&web, "one", "mock");
        (opening.join().unwrap(), opened)
    });
    assert_eq!(session, "mock-session-1");
    let answer = acp.prompt(2, &session, "hello there");
    assert_eq!((&answer["id"], &answer["result"]["stopReason"]), (&json!(2), &json!("end_turn")));
    let heard = until_answer(&mut events, 2);
    assert_eq!(said(&heard), "hello there ");
    assert!(heard.iter().all(|event| event.name == "message"), "{heard:?}");
    let ids: Vec<u64> = heard.iter().map(|event| event.id.unwrap()).collect();
    assert!(ids.windows(2).all(|two| two[0] < two[1]), "{ids:?}");

    let listed = web.get("/v1/acp").expect(200);
    let server = &listed["servers"][0];
    assert_eq!((&server["serverId"], &server["agent"]), (&json!("one"), &json!("mock")));
    assert!(server["createdAtMs"].as_u64().unwrap() > 1_700_000_000_000);
    // What Baton makes of it: a session like any other.
    let baton = server["sessionId"].as_str().unwrap();
    let shown = web.get(&format!("/v1/sessions/{baton}")).expect(200);
    assert_eq!((&shown["state"], &shown["agent"]), (&json!("ready"), &json!("mock")));
    let live = web.get("/v1/sessions?live=true").expect(200);
    assert_eq!(
        (&live["sessions"][0]["id"], &live["sessions"][0]["state"]),
        (&server["sessionId"], &json!("ready"))
    );

    acp.delete();
    acp.delete();
    assert!(!acp.is_listed());
    let rest: Vec<Event> = events.collect();
    let ended = rest.iter().find(|event| event.data["method"] == ENDED).unwrap();
    assert_eq!(ended.data["params"]["data"]["reason"], "terminated");
    assert_eq!(ended.data["params"]["data"]["terminated_by"], "daemon");
    let shown = web.get(&format!("/v1/sessions/{baton}")).expect(200);
    assert_eq!(
        (&shown["terminationInfo"]["reason"], &shown["state"]),
        (&json!("terminated"), &json!("stopped"))
    );
    acp.post(&request(0, "initialize", &json!({}))).refuses(400, "W004");
    web.serving.stop();
    home.run(&["verify"]).expect(0);
}

#[test]
fn what_cannot_be_called_is_refused_by_its_status() {
    let home = Home::new();
    let agents = "[agents.other]\nharness = \"mock\"\n[agents.plain]\nharness = \"exec\"\ncommand = [\"cat\"]\n\
                  [agents.mute]\nharness = \"acp\"\ncommand = [\"sleep\", \"1000\"]\n[agents.mute.deadlines]\nhandshake = \"1s\"\n\
                  [agents.gone]\nharness = \"acp\"\ncommand = [\"no-such-agent\"]\n";
    fs::write(home.data().join("baton.toml"), agents).unwrap();
    let web = Web::start(&home);
    let hello = request(0, "initialize", &json!({"protocolVersion": 1}));
    let first = |query: &str| web.post(&format!("/v1/acp/x{query}"), &hello);
    first("").refuses(400, "W004");
    first("?agent=nobody").refuses(400, "W004");
    first("?agent=plain").refuses(400, "W004");
    first("?agent=mute").refuses(504, "W032");
    web.ask("DELETE", "/v1/acp/x", None);
    // One that cannot be started has ended, and says so as any other.
    let gone = web.post("/v1/acp/gone?agent=gone", &hello).expect(200);
    assert_eq!((&gone["error"]["code"], &gone["id"]), (&json!(-32000), &json!(0)));
    assert_eq!(gone["error"]["data"]["cause"], "spawn");

    let (acp, _) = Acp::open(&web, "x", "mock");
    web.post("/v1/acp/x?agent=other", &hello).refuses(409, "W031");
    let bearer = format!("Bearer {}", web.token);
    let host = ("Host", web.address.as_str());
    let auth = ("Authorization", bearer.as_str());
    let json_kind = ("Content-Type", "application/json");
    let post = |headers: &[(&str, &str)], body: &[u8]| web.say("POST", &acp.path, headers, body);
    post(&[host, auth, ("Content-Type", "text/plain")], b"{}").refuses(415, "W009");
    post(&[host, auth, json_kind, ("Accept", "text/html")], b"{\"method\":\"x\"}").refuses(406, "W008");
    for bad in
        ["", "{", "[]", "7", "{}", "{\"id\":{},\"method\":\"x\"}", "{\"jsonrpc\":\"1.0\",\"method\":\"x\"}"]
    {
        post(&[host, auth, json_kind], bad.as_bytes()).refuses(400, "W004");
    }
    let get = |more: (&str, &str)| web.say("GET", &acp.path, &[host, auth, more], b"");
    get(("Last-Event-ID", "first")).refuses(400, "W004");
    get(("Accept", "application/json")).refuses(406, "W008");
    web.get(&format!("/v1/acp/{}", "x".repeat(300))).refuses(400, "W004");
    let began = Instant::now();
    web.get("/v1/acp/nobody").refuses(404, "W030");
    assert!(began.elapsed() > Duration::from_millis(1900), "its first message may be on its way");
    // A method that the agent does not know is an answer.
    let unknown = acp.post(&request(9, "session/fly", &json!({}))).expect(200);
    assert_eq!((&unknown["id"], &unknown["error"]["code"]), (&json!(9), &json!(-32601)));
    assert_eq!(acp.post(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {}})).status, 202);
    assert_eq!(acp.post(&json!({"jsonrpc": "2.0", "id": "agent-99", "result": {}})).status, 202);
    web.serving.stop();
}

#[test]
fn of_several_clients_the_first_to_decide_counts() {
    let home = Home::new();
    let web = Web::start(&home);
    let (one, session) = Acp::open(&web, "shared", "mock");
    let mut first = one.events(None);
    let two = Acp::named(&web, "shared");
    let mut second = two.events(None);
    let again = two.post(&request(0, "initialize", &json!({"protocolVersion": 1}))).expect(200);
    assert_eq!(again["result"]["agentInfo"]["name"], "mock", "of what the first was answered");
    // Both count from the same number, and each gets its own.
    let held = one.prompt_apart(5, &session, "permission");
    let other = two.post(&request(5, "session/new", &json!({"cwd": "/tmp", "mcpServers": []}))).expect(200);
    assert_eq!((&other["id"], &other["result"]["sessionId"]), (&json!(5), &json!("mock-session-2")));
    let asked = until_method(&mut first, "session/request_permission").data;
    assert_eq!(asked, until_method(&mut second, "session/request_permission").data);
    assert!(asked["id"].as_str().unwrap().starts_with("agent-"), "{asked}");
    // Whoever has nobody to ask decides nothing while somebody else is there.
    assert_eq!(one.post(&reply(&asked, &json!({"outcome": "cancelled"}))).status, 202);
    let once = json!({"outcome": "selected", "optionId": "once"});
    assert_eq!(two.post(&reply(&asked, &once)).status, 202);
    let late = json!({"outcome": "selected", "optionId": "no"});
    assert_eq!(one.post(&reply(&asked, &late)).status, 202, "too late, and no error");
    let done = held.join().unwrap().expect(200);
    assert_eq!((&done["id"], &done["result"]["stopReason"]), (&json!(5), &json!("end_turn")));
    let mut second = second.map(|event| (event.name.clone(), event));
    let (name, answer) = second.find(|(_, event)| event.data["result"]["stopReason"] == "end_turn").unwrap();
    assert_eq!((name.as_str(), &answer.data["id"]), ("response", &json!(5)), "not taken for its own");
    // Whoever comes later is not told what is settled.
    let mut third = one.events(None);
    let heard: Vec<Event> = (&mut third).take(3).collect();
    assert!(heard.iter().all(|event| event.data.get("id").is_none()), "{heard:?}");
    assert_eq!(said(&heard), "permission: once ");
    drop((first, third));
    // Once it is alone, giving up counts.
    let held = two.prompt_apart(6, &session, "permission");
    let (_, asked) = second.find(|(_, event)| event.data["method"] == "session/request_permission").unwrap();
    until("it gives up alone", || {
        two.post(&reply(&asked.data, &json!({"outcome": "cancelled"})));
        held.is_finished()
    });
    assert_eq!(held.join().unwrap().expect(200)["result"]["stopReason"], "end_turn");
    web.serving.stop();
}

#[test]
fn an_agent_that_dies_leaves_nobody_waiting() {
    let home = Home::new();
    let web = Web::start(&home);
    for (n, (text, code, signal)) in [
        ("crash 3 120", Some(3), Value::Null),
        ("signal", None, json!("SIGKILL")),
        ("fork", Some(3), Value::Null),
    ]
    .into_iter()
    .enumerate()
    {
        let (acp, session) = Acp::open(&web, &format!("doomed-{n}"), "mock");
        let other = acp.new_session();
        let mut events = acp.events(None);
        let began = Instant::now();
        let answer = acp.prompt(7, &session, text);
        assert!(began.elapsed() < SOON, "{text}: {:?}", began.elapsed());
        let data = &answer["error"]["data"];
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32000)));
        assert_eq!((&data["reason"], &data["terminated_by"]), (&json!("error"), &json!("agent")));
        assert_eq!((&data["exit_code"], &data["signal"]["name"]), (&json!(code), &signal), "{data}");
        assert!(data["message"].as_str().unwrap().ends_with("in a turn"), "{data}");
        if n == 0 {
            assert_eq!(data["stderr"]["total_lines"], 120);
        }
        let exited = until_method(&mut events, "_adapter/agent_exited").data;
        assert_eq!(exited["params"], json!({"success": false, "code": code}));
        let answered = events.next().unwrap();
        assert_eq!((&answered.data["id"], &answered.data["error"]), (&json!(7), &answer["error"]));
        let ended: Vec<Event> = (&mut events).take(2).collect();
        let names: Vec<&Value> = ended.iter().map(|event| &event.data["params"]["session_id"]).collect();
        assert_eq!(names, [&json!(session), &json!(other)], "one for each");
        let params = &ended[0].data["params"];
        assert_eq!((&ended[0].data["method"], &params["sessionId"]), (&json!(ENDED), &json!(session)));
        let baton = params["_meta"]["sandboxagent.dev"]["batonSessionId"].as_str().unwrap();
        // Whoever comes later is told too, and nothing dead is listed.
        assert_eq!(until_method(&mut acp.events(None), ENDED).data, ended[0].data);
        assert!(!acp.is_listed());
        let shown = web.get(&format!("/v1/sessions/{baton}")).expect(200);
        assert_eq!((&shown["terminationInfo"], &shown["state"]), (&params["data"], &json!("stopped")));
        let later = acp.prompt(8, &session, "hello");
        assert_eq!((&later["error"]["code"], &later["id"]), (&json!(-32000), &json!(8)));
        assert_eq!(later["error"]["data"]["exit_code"], json!(code));
        let listed = acp.post(&request(9, "session/list", &json!({}))).expect(200);
        for entry in listed["result"]["sessions"].as_array().unwrap() {
            let meta = &entry["_meta"]["sandboxagent.dev"];
            assert_eq!((&meta["ended"], &meta["terminationInfo"]), (&json!(true), &params["data"]));
        }
        // Under the same name another one can begin.
        acp.delete();
        let (again, _) = Acp::open(&web, &format!("doomed-{n}"), "mock");
        assert!(again.is_listed());
    }
    web.serving.stop();
    home.run(&["verify"]).expect(0);
}

#[test]
fn whoever_comes_again_misses_nothing_and_hears_nothing_twice() {
    let home = Home::new();
    let web = Web::start(&home);
    let (acp, session) = Acp::open(&web, "again", "mock");
    let mut events = acp.events(None);
    acp.prompt(2, &session, "one two three four five six seven eight");
    let heard = until_answer(&mut events, 2);
    drop(events);
    let middle = heard[3].id.unwrap();
    acp.prompt(3, &session, "nine ten");
    let rest = until_answer(&mut acp.events(Some(middle)), 3);
    let ids: Vec<u64> = rest.iter().map(|event| event.id.unwrap()).collect();
    let (first, last) = (ids[0], *ids.last().unwrap());
    assert_eq!(ids, (middle + 1..=last).collect::<Vec<_>>(), "every one, once");
    assert_eq!(first, middle + 1);
    assert_eq!(said(&rest), "five six seven eight nine ten ");
    // What is gone is said: from an old position, and from one of another life.
    let words = "word ".repeat(5000);
    acp.prompt(4, &session, &words);
    for old in [middle, 1_000_000] {
        let mut events = acp.events(Some(old));
        let gap = events.next().unwrap();
        assert_eq!((gap.name.as_str(), gap.id), ("gap", gap.data["resumeFrom"].as_u64()));
        let next = events.next().unwrap();
        assert_eq!(next.id, gap.id.map(|id| id + 1));
    }
    web.serving.stop();
}

#[test]
fn a_session_is_terminated_once_and_with_the_last_one_the_process_ends() {
    let home = Home::new();
    let web = Web::start(&home);
    let (acp, one) = Acp::open(&web, "t", "mock");
    let two = acp.new_session();
    let mut events = acp.events(None);
    let held = acp.prompt_apart(2, &one, "hang");
    let terminate =
        |session: &str| acp.post(&request(3, TERMINATE, &json!({"sessionId": session}))).expect(200);
    let now =
        json!({"terminated": true, "alreadyEnded": false, "reason": "terminated", "terminatedBy": "daemon"});
    let before =
        json!({"terminated": false, "alreadyEnded": true, "reason": "terminated", "terminatedBy": "daemon"});
    let listed = acp.post(&request(4, "session/list", &json!({}))).expect(200);
    assert_eq!(listed["result"]["sessions"].as_array().unwrap().len(), 2);
    // Whether the prompt has reached the agent by now or comes after this: it is answered.
    assert_eq!(terminate(&one)["result"], now);
    let answer = held.join().unwrap().expect(200);
    assert_eq!(answer["error"]["code"], -32000, "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], "terminated");
    assert_eq!(terminate(&one)["result"], before);
    assert_eq!(acp.prompt(5, &one, "hello")["error"]["code"], -32000);
    let told = until_method(&mut events, ENDED).data;
    assert_eq!(told["params"]["session_id"], json!(one));
    assert_eq!(acp.prompt(6, &two, "hello")["result"]["stopReason"], "end_turn", "the other goes on");
    assert!(acp.is_listed());
    assert_eq!(
        acp.post(&request(7, TERMINATE, &json!({"session_id": "x"}))).expect(200)["error"]["code"],
        -32002
    );
    assert_eq!(terminate(&two)["result"], now);
    until_method(&mut events, "_adapter/agent_exited");
    assert!(!acp.is_listed());
    assert_eq!(terminate(&two)["result"], before);
    let told_again = events.by_ref().take_while(|event| event.data["id"] != 3);
    assert_eq!(told_again.filter(|event| event.data["method"] == ENDED).count(), 0, "told once");
    web.serving.stop();
}

#[test]
fn what_is_no_message_is_told_and_a_flood_is_bounded() {
    let home = Home::new();
    let script = "read line\necho '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1}}'\n\
                  echo '{\"jsonrpc\":\"2.0\",\"method\":\"_sandboxagent/session/ended\",\"params\":{}}'\n\
                  yes '{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"x\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}}' | head -n 200000\n\
                  echo done >&2\nread line\n";
    fs::write(home.work().join("flood.sh"), script).unwrap();
    let agents = "[agents.flood]\nharness = \"acp\"\ncommand = [\"sh\", \"flood.sh\"]\n";
    fs::write(home.data().join("baton.toml"), agents).unwrap();
    let web = Web::start(&home);
    let (acp, session) = Acp::open(&web, "g", "mock");
    let mut events = acp.events(None);
    acp.prompt(2, &session, "garbage");
    let first = until_method(&mut events, "_adapter/invalid_stdout").data;
    assert_eq!(first["params"]["raw"], "this is no message");
    assert_eq!(
        until_method(&mut events, "_adapter/invalid_stdout").data["params"]["raw"],
        "{\"neither\": is this}"
    );
    let before = memory(&web);
    let hello = request(0, "initialize", &json!({"protocolVersion": 1}));
    web.post("/v1/acp/f?agent=flood", &hello).expect(200);
    let flood = Acp::named(&web, "f");
    let mut events = flood.events(None);
    assert!(events.any(|event| event.id >= Some(200_000)), "all of it came, or was said to be lost");
    assert!(memory(&web) < before + (64 << 20), "{} and {before}", memory(&web));
    let forged = Acp::named(&web, "f").events(None).take(50).any(|event| event.data["method"] == ENDED);
    assert!(!forged, "what Baton alone says");
    web.serving.stop();
}

/// What the server needs, in bytes.
fn memory(web: &Web) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", web.serving.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn a_client_leads_an_agent_over_a_websocket() {
    let home = Home::new();
    let web = Web::start(&home);
    assert_eq!(
        Socket::open(&web, "server_id=w&agent=mock", "Origin: http://evil.example\r\n").err(),
        Some(403)
    );
    assert_eq!(Socket::open(&web, "server_id=w&agent=nobody", "").err(), Some(400));
    assert_eq!(Socket::open(&web, "agent=mock", "").err(), Some(400));
    web.get("/v1/acp/ws?server_id=w&agent=mock").refuses(400, "W004");
    let mut socket =
        Socket::open(&web, "server_id=w&agent=mock", "").unwrap_or_else(|status| panic!("{status}"));
    socket.send(&request(0, "initialize", &json!({"protocolVersion": 1})));
    assert_eq!(socket.until(|message| message["id"] == 0)["result"]["agentInfo"]["name"], "mock");
    socket.send(&request(1, "session/new", &json!({"cwd": "/tmp", "mcpServers": []})));
    let made = socket.until(|message| message["id"] == 1);
    let session = made["result"]["sessionId"].as_str().unwrap();
    socket.send(&prompt(2, session, "permission"));
    let asked = socket.until(|message| message["method"] == "session/request_permission");
    // Another client over HTTP sees the same, and decides.
    let http = Acp::named(&web, "w");
    assert_eq!(until_method(&mut http.events(None), "session/request_permission").data, asked);
    http.post(&reply(&asked, &json!({"outcome": "selected", "optionId": "always"})));
    let mut text = String::new();
    let done = loop {
        let message = socket.receive().unwrap();
        text.push_str(message["params"]["update"]["content"]["text"].as_str().unwrap_or_default());
        if message["id"] == 2 {
            break message;
        }
    };
    assert_eq!((text.as_str(), &done["result"]["stopReason"]), ("permission: always ", &json!("end_turn")));
    socket.send(&json!([1]));
    assert_eq!(socket.receive().unwrap()["error"]["code"], -32600);
    socket.send(&prompt(3, session, "crash 4"));
    // The answer and the word to all may come in either order.
    let is_last = |message: &Value| message["id"] == 3 || message["method"] == ENDED;
    let mut last = [socket.until(is_last), socket.until(is_last)];
    last.sort_by_key(|message| message["id"].is_null());
    assert_eq!(last[0]["error"]["data"]["exit_code"], 4);
    assert_eq!(last[1]["params"]["data"]["exit_code"], 4);
    http.delete();
    while socket.receive().is_some() {}
    web.serving.stop();
}

/// The published clients, as people install them.
#[test]
fn the_published_clients_work_unchanged() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp_clients");
    if !dir.join("node_modules/sandbox-agent").exists() {
        eprintln!("skipped: the published clients are not installed; `make node` does that");
        return;
    }
    let home = Home::new();
    let web = Web::start(&home);
    for script in ["http-client.mjs", "sdk.mjs"] {
        let mut node = std::process::Command::new("timeout");
        node.args(["100", "node", script, &format!("http://{}", web.address), &web.token]);
        let ran = node.current_dir(&dir).output().unwrap();
        let shown =
            [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).join("\n");
        assert!(ran.status.success(), "{script}: {shown}");
    }
    web.serving.stop();
}

#[test]
fn what_was_led_when_baton_died_is_shown_as_ended_and_nothing_of_it_runs() {
    let home = Home::new();
    let web = Web::start(&home);
    let (_, _) = Acp::open(&web, "cut", "mock");
    let baton = web.get("/v1/acp").expect(200)["servers"][0]["sessionId"].as_str().unwrap().to_owned();
    let pid = web.get(&format!("/v1/sessions/{baton}")).expect(200)["pid"].as_u64().unwrap();
    web.serving.signal("-KILL");
    drop(web);
    let web = Web::start(&home);
    let shown = web.get(&format!("/v1/sessions/{baton}")).expect(200);
    assert_eq!(
        (&shown["terminationInfo"]["reason"], &shown["cutShort"]),
        (&json!("terminated"), &json!(true))
    );
    assert_eq!(web.get("/v1/acp").expect(200)["servers"], json!([]));
    until("it has ended", || !std::path::Path::new(&format!("/proc/{pid}/cwd")).exists());
    // An orderly end tells whoever follows.
    let (acp, _) = Acp::open(&web, "orderly", "mock");
    let mut events = acp.events(None);
    web.serving.signal("-TERM");
    let ended = until_method(&mut events, ENDED).data;
    assert_eq!(ended["params"]["data"]["reason"], "terminated");
    assert_eq!(events.last().map(|event| event.name), Some("end".to_owned()));
    web.serving.stop_signalled();
    home.run(&["verify"]).expect(0);
}
