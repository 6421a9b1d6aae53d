//! `baton hooks check`: what it says of a file that reads, of one that does not, and of none.

use std::fs;

use serde_json::json;

use crate::support::Home;

fn home(text: &str) -> Home {
    let home = Home::new();
    fs::write(home.data().join("hooks.json"), text).unwrap();
    home
}

#[test]
fn every_hook_is_shown_with_its_defaults_and_whether_its_program_is_found() {
    let home = home(
        r#"{"hooks": [{"name": "fmt", "command": ["sh", "-c", "make fmt"]},
            {"name": "gone", "command": ["no-such-program"], "timeout_ms": 5,
             "failure_policy": {"type": "retry", "max_attempts": 2, "delay_ms": 10},
             "tool_filter": {"type": "tool_names", "names": ["bash"]}}]}"#,
    );
    let ended = home.changes_nothing(|home| home.run(&["hooks", "check"]));
    ended.expect(0);
    let lines: Vec<Vec<&str>> = ended
        .stdout
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(lines[1], ["fmt", "any change", "2m", "the turn fails", "found", "sh -c 'make fmt'"]);
    assert_eq!(
        lines[2],
        ["gone", "bash", "5ms", "up to 2 times, 10ms apart", "not found", "no-such-program"]
    );
    let json = home.json(&["hooks", "check"]);
    assert_eq!(json["valid"], true);
    assert_eq!(
        json["hooks"][0],
        json!({
            "name": "fmt", "command": ["sh", "-c", "make fmt"], "timeout_ms": 120_000, "found": true,
            "failure_policy": {"type": "fail_session"}, "tool_filter": {"type": "any_mutating"},
        })
    );
    assert_eq!(json["hooks"][1]["found"], false);
}

#[test]
fn a_faulty_file_is_refused_with_its_place() {
    let home = home("{\"hooks\": [\n  {\"name\": \"a\", \"comand\": []}\n]}");
    let ended = home.run(&["hooks", "check"]);
    ended.refused(2, "H001", "hooks.json:2:17: hooks[0].comand: unknown name; did you mean command?");
    let json = home.run(&["hooks", "check", "--json"]);
    json.expect(2);
    let said = json.object();
    assert_eq!((&said["valid"], &said["error"]["code"]), (&json!(false), &json!("hook_config_invalid")));
    fs::remove_file(home.data().join("hooks.json")).unwrap();
    fs::create_dir(home.data().join("hooks.json")).unwrap();
    home.run(&["hooks", "check"]).refused(1, "U006", "not a regular file");
}

#[test]
fn no_file_is_no_mistake() {
    let home = Home::new();
    let ended = home.run(&["hooks", "check"]);
    ended.expect(0);
    assert!(ended.stdout.is_empty() && ended.stderr.contains("nothing runs after tools"), "{ended:?}");
    assert_eq!(home.json(&["hooks", "check"]), json!({"v": 1, "valid": true, "hooks": []}));
    Home::empty().run(&["hooks", "check"]).refused(3, "L001", "no ledger");
}
