//! Proofs, checkpoints and bundles, made by one command and checked by another with nothing else at hand.

use std::fs;

use serde_json::json;

use crate::support::Home;

/// A place without a data directory, where only what was carried there is at hand.
fn elsewhere(home: &Home, args: &[&str]) -> crate::support::Ended {
    let child =
        home.command(args).env_remove("BATON_DATA_DIR").current_dir(home.path("work")).spawn().unwrap();
    crate::support::finish(child, None)
}

#[test]
fn one_event_is_proved_from_its_proof_alone() {
    let home = Home::new();
    let trace = home.trace();
    for n in 0..20 {
        home.append(&trace, "a", &json!({"type": "note", "payload": {"n": n}}));
    }
    let id = home.events()[7]["id"].as_str().unwrap().to_owned();
    let proof = home.run(&["trace", "prove", &id]).stdout;
    assert_eq!(home.json(&["trace", "prove", &id])["proof"], proof.as_str());
    assert!(proof.starts_with("baton/proof/v1\n") && proof.contains(&id));
    let file = home.work().join("event.proof");
    fs::write(&file, &proof).unwrap();
    elsewhere(&home, &["verify", "--proof", "event.proof"]).expect(0);
    elsewhere(&home, &["verify", "event.proof"]).refused(2, "U009", "baton verify --proof event.proof");
    let key = fs::read_dir(home.data().join("keys")).unwrap().next().unwrap().unwrap().path();
    fs::copy(key, home.work().join("trusted")).unwrap();
    let ended =
        elsewhere(&home, &["verify", "--proof", "event.proof", "--trust", "trusted", "--strict", "--json"]);
    ended.expect(0);
    assert_eq!(ended.object()["completeness"], "self-consistent");
    // Against a checkpoint that the reader kept, and against one of another history.
    let kept = home.run(&["trace", "checkpoint"]).stdout;
    for (note, code, completeness) in
        [(kept.clone(), 0, "complete"), (kept.replacen("22\n", "21\n", 1), 7, "unknown")]
    {
        fs::write(home.work().join("kept"), note).unwrap();
        let args =
            ["verify", "--proof", "event.proof", "--trust", "trusted", "--checkpoint", "kept", "--json"];
        let ended = elsewhere(&home, &args);
        ended.expect(code);
        assert_eq!(ended.object()["completeness"], completeness);
    }
    let hash = home.events()[7]["hash"].as_str().unwrap().to_owned();
    for (bad, exit) in [
        (proof.replace(&hash, &"0".repeat(64)), 7),
        (proof.replace("\"n\":5", "\"n\":6"), 7),
        (proof.replace("index 7", "index 6"), 7),
        (proof[..proof.len() - 20].to_owned(), 7),
        (String::new(), 7),
        ("x".repeat(3 << 20), 7),
    ] {
        fs::write(&file, bad).unwrap();
        elsewhere(&home, &["verify", "--proof", "event.proof"]).expect(exit);
    }
    elsewhere(&home, &["verify", "--proof", "nowhere"]).refused(3, "U005", "nowhere");

    // Names of events.
    assert_eq!(home.run(&["trace", "prove", &id[4..]]).stdout, proof);
    home.run(&["trace", "prove", "evt_0"]).refused(2, "L016", "more than one");
    home.run(&["trace", "prove", "evt_ffffffff"]).refused(3, "L015", "no event");
    home.run(&["trace", "prove", "nonsense"]).refused(3, "L015", "no event");
    home.run(&["trace", "prove"]).expect(2);
}

#[test]
fn growth_is_proved_from_a_kept_checkpoint_or_a_size() {
    let home = Home::new();
    let trace = home.trace();
    let kept = home.run(&["trace", "checkpoint"]).stdout;
    fs::write(home.work().join("kept"), &kept).unwrap();
    let as_json = home.json(&["trace", "checkpoint"]);
    assert_eq!((&as_json["checkpoint"], &as_json["size"]), (&json!(kept), &json!(2)));
    home.append(&trace, "a", &json!({"type": "note"}));
    for old in ["kept", "1", "2", "3"] {
        let proof = home.run(&["trace", "prove", "--consistency", old]);
        proof.expect(0);
        fs::write(home.work().join("growth"), &proof.stdout).unwrap();
        elsewhere(&home, &["verify", "--proof", "growth"]).expect(0);
    }
    let proof = fs::read_to_string(home.work().join("growth")).unwrap();
    fs::write(home.work().join("growth"), proof.replacen("\n3\n", "\n2\n", 1)).unwrap();
    elsewhere(&home, &["verify", "--proof", "growth"]).expect(7);
    home.run(&["trace", "prove", "--consistency", "0"]).refused(3, "L034", "no position 0");
    home.run(&["trace", "prove", "--consistency", "9"]).refused(3, "L034", "no position 9");
    home.run(&["trace", "prove", "--consistency", "nowhere"]).refused(3, "U005", "nowhere");
    fs::write(home.work().join("junk"), "hello").unwrap();
    home.run(&["trace", "prove", "--consistency", "junk"]).refused(2, "U009", "not a checkpoint");
    // Another ledger's checkpoint, and a trace's head.
    fs::write(home.work().join("other"), Home::new().run(&["trace", "checkpoint"]).stdout).unwrap();
    home.run(&["trace", "prove", "--consistency", "other"]).refused(7, "L035", "origin");
    fs::write(home.work().join("head"), home.run(&["trace", "checkpoint", &trace]).stdout).unwrap();
    home.run(&["trace", "prove", "--consistency", "head"]).refused(7, "L035", "head of a trace");
}

#[test]
fn what_an_interrupted_export_left_is_removed_by_the_next() {
    let home = Home::new();
    let trace = home.trace();
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let (gone, alive) = (ended.id(), std::process::id());
    let leftover = format!(".one.{gone}.tmp");
    let kept =
        [format!(".one.{alive}.tmp"), format!(".two.{gone}.tmp"), ".one.tmp".into(), ".one.x.tmp".into()];
    for name in kept.iter().chain([&leftover]) {
        fs::write(home.work().join(name), "half").unwrap();
    }
    home.run(&["trace", "export", &trace, "-o", "one"]).expect(0);
    assert!(!home.work().join(&leftover).exists(), "its process is gone");
    for name in &kept {
        assert!(home.work().join(name).exists(), "{name} may be in use, or is not ours");
    }
    home.run(&["verify", "one"]).expect(0);
}

#[test]
fn a_bundle_carries_a_trace_and_all_that_verifies_it() {
    let home = Home::new();
    let trace = home.trace();
    home.json(&["agent", "key", "worker"]);
    fs::write(home.work().join("result.txt"), "42\n").unwrap();
    home.append(&trace, "worker", &json!({"type": "note", "artifacts": [{"path": "result.txt"}]}));
    let made = home.json(&["trace", "export", &trace, "-o", "one"]);
    assert_eq!((&made["events"], &made["file"]), (&json!(3), &json!("one")));
    home.run(&["trace", "export", &trace[..20], "-o", "two"]).expect(0);
    let one = fs::read(home.work().join("one")).unwrap();
    assert_eq!(one, fs::read(home.work().join("two")).unwrap(), "equal to the byte");
    assert_eq!(home.run(&["trace", "export", &trace, "-o", "-"]).stdout.as_bytes(), one);
    let names: Vec<String> =
        fs::read_dir(home.work()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 3, "nothing is left beside: {names:?}");
    elsewhere(&home, &["verify", "one"]).expect(0);
    let streamed =
        home.command(&["verify", "-"]).stdin(fs::File::open(home.work().join("one")).unwrap()).spawn();
    crate::support::finish(streamed.unwrap(), None).expect(0);
    let text = String::from_utf8(one).unwrap();
    fs::write(home.work().join("bad"), text.replace("\"agent\":\"worker\"", "\"agent\":\"forger\"")).unwrap();
    elsewhere(&home, &["verify", "bad"]).expect(7);

    home.run(&["trace", "export", &trace, "-o", "-", "--json"]).refused_json(2, "U009");
    // A rename would take these away from whoever uses them.
    let segment = home.data().join("events/00000000000000000001.jsonl");
    let before = std::fs::read(&segment).unwrap();
    for target in [segment.to_str().unwrap(), home.data().join("new").to_str().unwrap()] {
        home.run(&["trace", "export", &trace, "-o", target]).refused(4, "U011", "outside");
    }
    assert_eq!(std::fs::read(&segment).unwrap(), before);
    let link = home.data().parent().unwrap().join("link");
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    home.run(&["trace", "export", &trace, "-o", link.to_str().unwrap()]).refused(4, "U011", "-o -");
    home.run(&["trace", "export", &trace, "-o", "."]).refused(1, "U008", "is a directory");
    home.run(&["trace", "export", &trace, "-o", "no/where"]).refused(1, "U008", "no/where");
    home.run(&["trace", "export", &trace]).expect(2);
    home.run(&["trace", "export", "ffff", "-o", "x"]).refused(3, "L014", "no trace");
    home.run(&["trace", "export", "ledger", "-o", "ledger"]).expect(0);
    elsewhere(&home, &["verify", "ledger"]).expect(0);
    // The head of the trace, kept by the reader, makes it complete.
    fs::write(home.work().join("head"), home.run(&["trace", "checkpoint", &trace]).stdout).unwrap();
    let key = home.json(&["trace", "show", "ledger"])["events"][0]["payload"]["public"]
        .as_str()
        .unwrap()
        .to_owned();
    fs::write(home.work().join("trust"), key).unwrap();
    let args = ["verify", "one", "--checkpoint", "head", "--trust", "trust", "--strict", "--json"];
    let ended = elsewhere(&home, &args);
    ended.expect(0);
    assert_eq!(
        (&ended.object()["verdict"], &ended.object()["completeness"]),
        (&json!("pass"), &json!("complete"))
    );
}
