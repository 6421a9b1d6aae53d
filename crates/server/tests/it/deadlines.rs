//! What happens by the passing of time to those who lead agents: the head of an answer that takes long, silence, and agents that nobody uses.

use std::time::Duration;

use baton_runtime::harness::Waits;
use baton_runtime::relay;
use baton_server::limits::Patience;
use serde_json::json;

use crate::support::{Served, call, until};

const SHORT: Duration = Duration::from_millis(100);

/// Long enough for what is to be in time, also where the machine has much else to do.
const LONGER: Duration = Duration::from_secs(1);

/// How patient a server is with those who hold requests.
fn held() -> Patience {
    Patience { held_head: SHORT, held_blank: SHORT / 4, ..Patience::default() }
}

fn waits(inactivity: Duration) -> Waits {
    Waits { inactivity, ..Waits::default() }
}

#[test]
fn nothing_is_less_patient_than_it_is_said_to_be() {
    let (patience, seconds) = (Patience::default(), Duration::from_secs);
    assert_eq!((patience.held_head, patience.held_blank), (seconds(45), seconds(15)));
    assert_eq!(patience.write, seconds(30));
    assert_eq!((patience.relays.idle, patience.relays.ended), (seconds(3600), seconds(3600)));
}

#[test]
fn an_answer_that_takes_long_has_its_head_first_and_blanks_until_it_comes() {
    let served = Served::start(held(), Waits::default());
    served.begin("one");
    let status = std::process::Command::new("mkfifo").arg(served.work.join("go")).status().unwrap();
    assert!(status.success());
    // The head is here, and the agent has not been let go on.
    let (status, mut pieces) = served.open("POST /v1/acp/one", &call(7, "slow").to_string());
    assert_eq!(status, 200);
    let blanks: Vec<String> = pieces.by_ref().take(3).collect();
    assert_eq!(blanks, [" ", " ", " "]);
    std::fs::write(served.work.join("go"), "\n").unwrap();
    let rest: String = pieces.collect();
    let answer: serde_json::Value = serde_json::from_str(&rest).unwrap();
    assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!(7), &json!(1)));
}

#[test]
fn a_call_to_an_agent_that_is_silent_fails_and_the_agent_goes_on() {
    let served = Served::start(Patience::default(), waits(LONGER));
    served.begin("one");
    let late = served.post("one", &call(7, "never"));
    assert_eq!(
        (late.status, &late.body["id"], &late.body["error"]["code"]),
        (200, &json!(7), &json!(-32603))
    );
    let message = late.body["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("agent agent did not answer within"), "{message}");
    let next = served.post("one", &call(8, "quick"));
    assert_eq!((&next.body["id"], &next.body["result"]["protocolVersion"]), (&json!(8), &json!(1)));
    assert_eq!(served.listed(), ["one"]);
}

#[test]
fn silence_after_the_head_fails_in_the_body() {
    let served = Served::start(held(), waits(LONGER));
    served.begin("one");
    let (status, pieces) = served.open("POST /v1/acp/one", &call(7, "never").to_string());
    let body: String = pieces.collect();
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert!(status == 200 && body.starts_with(' '), "{body}");
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32603)));
}

#[test]
fn an_agent_that_waits_for_a_client_is_waited_for() {
    let served = Served::start(held(), waits(LONGER));
    served.begin("one");
    let (_, mut pieces) = served.open("POST /v1/acp/one", &call(7, "ask").to_string());
    // As many blanks as take twice as long as it may be silent.
    let blanks: String = pieces.by_ref().take(80).collect();
    assert_eq!(blanks.trim(), "", "{blanks}");
    let reply = json!({"jsonrpc": "2.0", "id": "agent-1", "result": {"outcome": {"outcome": "selected", "optionId": "a"}}});
    assert_eq!(served.post("one", &reply).status, 202);
    let rest: String = pieces.collect();
    let answer: serde_json::Value = serde_json::from_str(&rest).unwrap();
    assert_eq!(answer["result"]["protocolVersion"], 1);
}

#[test]
fn an_agent_that_does_not_shake_hands_is_a_gateway_that_does_not_answer() {
    let served = Served::start(Patience::default(), Waits { handshake: SHORT, ..Waits::default() });
    let late = served.post("one?agent=mute", &call(0, "initialize"));
    assert_eq!((late.status, &late.body["code"]), (504, &json!("W032")), "{late:?}");
}

#[test]
fn an_agent_that_nobody_uses_is_ended_and_one_that_is_followed_is_not() {
    let relays = relay::Patience { idle: LONGER, look: SHORT / 10, ..relay::Patience::default() };
    let served = Served::start(Patience { relays, ..Patience::default() }, Waits::default());
    served.begin("followed");
    let (status, stream) = served.open("GET /v1/acp/followed", "");
    assert_eq!(status, 200);
    served.begin("idle");
    let pid = std::fs::read_to_string(served.work.join("pid")).unwrap();
    assert_eq!(served.listed(), ["followed", "idle"]);
    until("the idle one is ended", || served.listed() == ["followed"]);
    until("its process is gone", || !std::path::Path::new("/proc").join(pid.trim()).exists());
    // Its name is free, and whoever follows has lost nothing.
    assert_eq!(served.post("idle", &call(1, "quick")).status, 400);
    assert_eq!(served.post("followed", &call(1, "quick")).body["result"]["protocolVersion"], 1);
    drop(stream);
    until("nobody follows it any more", || served.listed().is_empty());
}

#[test]
fn an_agent_that_has_ended_is_kept_for_whoever_comes_later_and_not_for_ever() {
    let relays = relay::Patience { ended: LONGER, look: SHORT / 10, ..relay::Patience::default() };
    let served = Served::start(Patience { relays, ..Patience::default() }, Waits::default());
    served.begin("one");
    let ended = served.post("one", &call(7, "exit"));
    assert_eq!(
        (&ended.body["error"]["code"], &ended.body["error"]["data"]["exit_code"]),
        (&json!(-32000), &json!(3))
    );
    assert_eq!(served.post("one", &call(8, "quick")).body["error"]["code"], -32000);
    // Another agent has no place under the name while it is taken, and asking for one does not keep it.
    let other = || served.post("one?agent=mute", &json!({"jsonrpc": "2.0", "method": "hello"})).status;
    assert_eq!(other(), 409);
    until("it is forgotten", || other() == 202);
}
