//! The form of a record, member by member: what the page's table allows, and what stands right beside it.

use baton_ledger::record::{Flaw, Line};
use serde_json::{Value, json};

use crate::forger::{Record, read};
use crate::writer::sample;

/// A record with every optional member.
fn full() -> Record {
    let signed = read(&sample().bytes)[6].clone();
    signed
        .set("batch", json!([1, 2]))
        .set("commit", 3)
        .set("fence", 1)
        .set("run", "r")
        .set("session", "s")
        .set("task", "t")
        .set("artifacts", json!([{"bytes": 0, "media_type": "m", "name": "n", "sha256": "ab".repeat(32)}]))
}

fn parse(record: &Record) -> Result<(), Flaw> {
    let line = record.line();
    Line::parse(&line[..line.len() - 1]).map(drop)
}

/// Puts a value at a path of names.
fn with(path: &str, value: &Value) -> Record {
    let mut record = full();
    match path.split_once('.') {
        None => drop(record.0.insert(path.to_owned(), value.clone())),
        Some((outer, inner)) => {
            let outer = &mut record.0[outer];
            let outer = if outer.is_array() { &mut outer[0] } else { outer };
            outer.as_object_mut().unwrap().insert(inner.to_owned(), value.clone());
        }
    }
    record
}

#[track_caller]
fn accepts(path: &str, values: &[Value]) {
    for value in values {
        assert_eq!(parse(&with(path, value)), Ok(()), "{path} = {value}");
    }
}

#[track_caller]
fn refuses(path: &str, values: &[Value]) {
    for value in values {
        assert!(parse(&with(path, value)).is_err(), "{path} = {value}");
    }
}

#[test]
fn a_full_record_and_the_smallest_one_are_taken() {
    assert_eq!(parse(&full()), Ok(()));
    let names = ["batch", "commit", "fence", "run", "seen", "session", "task"];
    let small =
        names.iter().fold(full().stripped(), |record, name| record.without(name)).set("artifacts", json!([]));
    assert_eq!(parse(&small), Ok(()));
    assert_eq!(small.0.len(), 12);
    for name in small.0.keys() {
        assert!(parse(&small.clone().without(name)).is_err(), "{name} is needed");
        assert!(parse(&small.clone().set(name, Value::Null)).is_err(), "{name} is never null");
    }
    for name in names {
        assert_eq!(parse(&full().without(name)), Ok(()), "{name} may be absent");
        assert!(parse(&full().set(name, Value::Null)).is_err(), "{name} is absent, never null");
    }
}

#[test]
fn no_other_member_is_allowed_at_any_level() {
    for path in ["extra", "A", "actor.name", "sig.extra", "seen.pos", "artifacts.url"] {
        refuses(path, &[json!(1), Value::Null]);
    }
    for path in ["actor.agent", "actor.role", "sig.alg", "sig.key", "sig.value", "seen.hash", "seen.seq"] {
        let (outer, inner) = path.split_once('.').unwrap();
        let mut record = full();
        record.0[outer].as_object_mut().unwrap().remove(inner);
        assert!(parse(&record).is_err(), "{path} is needed");
    }
    for name in ["bytes", "media_type", "name", "sha256"] {
        let mut record = full();
        record.0["artifacts"][0].as_object_mut().unwrap().remove(name);
        assert!(parse(&record).is_err(), "artifacts.{name} is needed");
    }
    accepts("payload", &[json!({}), json!({"anything": [{"at": "all"}]})]);
    refuses("payload", &[json!([]), json!("{}"), json!(1)]);
}

#[test]
fn numbers_are_integers_from_one() {
    for path in ["pos", "seq", "fence", "seen.seq"] {
        accepts(path, &[json!(4), json!(9_007_199_254_740_991_i64)]);
        refuses(path, &[json!(0), json!(-1), json!(1.5), json!("1"), json!([1])]);
    }
    accepts("artifacts.bytes", &[json!(0), json!(9_007_199_254_740_991_i64)]);
    refuses("artifacts.bytes", &[json!(-1), json!(0.5), json!("0")]);
    accepts("v", &[json!(1)]);
    refuses("v", &[json!(0), json!(-2), json!("1"), json!(1.5)]);
    let pos = full().0["pos"].as_u64().unwrap();
    accepts("commit", &[json!(1), json!(pos - 1)]);
    refuses("commit", &[json!(0), json!(pos), json!(pos + 1), json!("1")]);
    accepts("batch", &[json!([1, 2]), json!([2, 2]), json!([1024, 1024])]);
    refuses(
        "batch",
        &[
            json!([]),
            json!([1]),
            json!([0, 2]),
            json!([3, 2]),
            json!([1, 1]),
            json!([1, 2, 3]),
            json!(["1", 2]),
            json!({}),
        ],
    );
}

#[test]
fn a_version_above_one_is_newer_whatever_else_the_line_holds() {
    for version in [2, 3, 1000] {
        assert_eq!(parse(&full().set("v", version)), Err(Flaw::Newer(version)));
        assert_eq!(Line::parse(format!("{{\"v\":{version}}}").as_bytes()).unwrap_err(), Flaw::Newer(version));
        assert_eq!(
            parse(&full().set("v", version).set("new", json!({"member": []}))),
            Err(Flaw::Newer(version))
        );
    }
    for line in [
        "{\"v\":2.5}",
        "{\"v\":\"2\"}",
        "{\"v\":2} ",
        "{\"v\":02}",
        "[2]",
        "{\"x\":{\"v\":2}}",
        "{\"z\":1,\"v\":2}",
    ] {
        assert!(!matches!(Line::parse(line.as_bytes()), Ok(_) | Err(Flaw::Newer(_))), "{line}");
    }
}

#[test]
fn hashes_are_64_lower_hex_digits() {
    for path in ["hash", "prev", "seen.hash", "artifacts.sha256"] {
        accepts(path, &[json!("0".repeat(64)), json!("0123456789abcdef".repeat(4))]);
        refuses(
            path,
            &[
                json!("0".repeat(63)),
                json!("0".repeat(65)),
                json!("A".repeat(64)),
                json!("g".repeat(64)),
                json!(""),
                json!(0),
            ],
        );
    }
}

#[test]
fn ids_are_of_version_7_and_lower_case() {
    let uuid = "0192f0c1-2345-7abc-8def-0123456789ab";
    accepts("id", &[json!(format!("evt_{uuid}"))]);
    accepts("trace", &[json!(format!("trc_{uuid}")), json!("ledger")]);
    for (path, prefix) in [("id", "evt_"), ("trace", "trc_")] {
        let wrong = [
            uuid.to_uppercase(),
            uuid.replace("7abc", "4abc"),
            uuid.replace("8def", "cdef"),
            uuid.replace('-', ""),
            String::new(),
        ];
        refuses(path, &wrong.map(|uuid| json!(format!("{prefix}{uuid}"))));
        refuses(path, &[json!(uuid), json!(format!("xyz_{uuid}")), json!(7)]);
    }
    refuses("id", &[json!("ledger")]);
    refuses("trace", &[json!("Ledger"), json!("")]);
}

#[test]
fn times_are_24_characters_of_a_real_date() {
    accepts(
        "at",
        &[
            json!("0000-01-01T00:00:00.000Z"),
            json!("9999-12-31T23:59:59.999Z"),
            json!("2024-02-29T00:00:00.000Z"),
        ],
    );
    refuses(
        "at",
        &[
            json!("2026-02-29T00:00:00.000Z"),
            json!("2026-01-01T00:00:60.000Z"),
            json!("2026-01-01T24:00:00.000Z"),
            json!("2026-01-01T00:00:00Z"),
            json!("2026-01-01T00:00:00.000+00:00"),
            json!(0),
        ],
    );
}

#[test]
fn names_tokens_and_types_have_their_grammar_and_length() {
    accepts("actor.agent", &[json!("a"), json!("0._-"), json!("a".repeat(64))]);
    refuses(
        "actor.agent",
        &[json!(""), json!("A"), json!("-a"), json!("a b"), json!("é"), json!("a".repeat(65)), json!("a\n")],
    );
    for role in ["planner", "executor", "critic", "auditor", "operator", "system"] {
        accepts("actor.role", &[json!(role)]);
    }
    refuses("actor.role", &[json!("boss"), json!("System"), json!("")]);
    for path in ["run", "session", "task"] {
        accepts(path, &[json!("a"), json!("A-z_0.9"), json!("x".repeat(128))]);
        refuses(path, &[json!(""), json!("a/b"), json!("a b"), json!("x".repeat(129)), json!("ü")]);
    }
    accepts("type", &[json!("a"), json!("Z9_."), json!("x".repeat(64))]);
    refuses("type", &[json!(""), json!("9a"), json!("_a"), json!("a-b"), json!("x".repeat(65))]);
    accepts("artifacts.media_type", &[json!("x"), json!("😀".repeat(127)), json!("\n".repeat(127))]);
    refuses("artifacts.media_type", &[json!(""), json!("x".repeat(128)), json!("\n".repeat(128))]);
    accepts("artifacts.name", &[json!("x"), json!("😀".repeat(255)), json!("\u{1}".repeat(255))]);
    refuses("artifacts.name", &[json!(""), json!("x".repeat(256)), json!("\u{1}".repeat(256)), json!(1)]);
}

#[test]
fn a_signature_has_one_spelling_and_stands_beside_its_key() {
    let key = full().0["sig"]["key"].clone();
    refuses("sig.alg", &[json!("Ed25519"), json!("ed448"), json!("")]);
    refuses("sig.key", &[json!("key_ed25519_0123456789abcdef"), json!(key.as_str().unwrap().to_uppercase())]);
    refuses("actor.key", &[json!("key_ed25519_0123456789abcdef"), json!("key_ed25519_0"), json!(1)]);
    // 64 bytes end with two padding signs; the four bits before them are unused and must be zero.
    let zeros = format!("{}==", "A".repeat(86));
    accepts("sig.value", &[json!(zeros)]);
    let spellings = [
        zeros.replace("A==", "B=="),
        zeros.replace("==", ""),
        zeros.replace("A==", "==="),
        format!("{}A", "A".repeat(87)),
        format!("{}=", "A".repeat(87)),
        zeros.replacen('A', "-", 1),
        zeros.replacen('A', "\n", 1),
        format!("{}==", "A".repeat(90)),
        format!("{}==", "A".repeat(82)),
    ];
    refuses("sig.value", &spellings.map(Value::from));
    assert!(parse(&full().without("sig")).is_err(), "actor.key alone");
    let mut alone = full();
    alone.0["actor"].as_object_mut().unwrap().remove("key");
    assert!(parse(&alone).is_err(), "sig alone");
}

#[test]
fn at_most_256_artifacts_are_cited() {
    let one = full().0["artifacts"][0].clone();
    accepts("artifacts", &[json!([]), json!(vec![one.clone(); 256])]);
    refuses("artifacts", &[json!(vec![one.clone(); 257]), json!({}), json!([1]), one]);
}

#[test]
fn a_line_is_at_most_a_mebibyte_and_nested_at_most_64_deep() {
    let of = |length: usize| full().set("payload", json!({"x": "y".repeat(length)}));
    let short = of(0).line().len() - 1;
    assert_eq!(parse(&of((1 << 20) - short)), Ok(()));
    assert_eq!(parse(&of((1 << 20) - short + 1)), Err(Flaw::TooLong((1 << 20) + 1)));
    // The record is depth 1 and its payload depth 2, which leaves 62 for what is inside.
    let nested = |depth: usize| {
        let inner = (0..depth).fold(json!(1), |inner, _| json!([inner]));
        full().set("payload", json!({"x": inner}))
    };
    assert_eq!(parse(&nested(62)), Ok(()));
    let deep = format!("{{\"actor\":{{}},\"payload\":{{\"x\":{}1{}}}}}", "[".repeat(63), "]".repeat(63));
    assert!(Line::parse(deep.as_bytes()).is_err());
    let line = String::from_utf8(nested(62).line()).unwrap().replace("[1]", "[[1]]");
    assert!(matches!(Line::parse(line.trim_end().as_bytes()), Err(Flaw::Json(_))));
}

#[test]
fn a_line_that_is_not_canonical_is_no_record() {
    let line = String::from_utf8(full().line()).unwrap();
    let line = line.trim_end();
    assert!(Line::parse(line.as_bytes()).is_ok());
    for (from, to) in [
        ("{\"actor\"", "{ \"actor\""),
        ("\"v\":1}", "\"v\":1} "),
        ("\"v\":1}", "\"v\":1.0}"),
        ("\"v\":1}", "\"v\":1,\"v\":1}"),
        ("\"task\"", "\"t\\u0061sk\""),
        ("\"run\":\"r\"", "\"run\":\"\\u0072\""),
        ("rm\\n", "rm\\u000a"),
        ("\"batch\":[1,2]", "\"batch\":[1, 2]"),
    ] {
        assert!(line.contains(from), "{from}");
        assert!(Line::parse(line.replacen(from, to, 1).as_bytes()).is_err(), "{to}");
    }
    let swapped = line.replace("\"task\":\"t\",", "").replace("{\"actor\"", "{\"task\":\"t\",\"actor\"");
    assert!(Line::parse(swapped.as_bytes()).is_err(), "members out of order");
    let mut bytes = line.as_bytes().to_vec();
    bytes[30] = 0xff;
    assert_eq!(Line::parse(&bytes).unwrap_err(), Flaw::NotUtf8(30));
}

#[test]
fn a_typed_payload_is_read_from_its_line() {
    let sample = sample();
    for line in sample.lines() {
        let line = Line::parse(line).unwrap();
        assert_eq!(line.to_payload().unwrap().event_type(), line.event_type);
    }
}
