use baton_core::limits::{TASK_FILE_BYTES_MAX, TASK_HEAD_BYTES_MAX, YAML_DEPTH_MAX};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn fields(head: &str) -> Value {
    match Document::parse(format!("---\n{head}\n---\n").as_bytes()) {
        Ok(document) => Value::Object(document.fields().clone()),
        Err(problem) => panic!("{head:?}: {problem}"),
    }
}

fn refusal(text: &str) -> String {
    Document::parse(text.as_bytes()).map(|d| d.fields().clone()).unwrap_err().to_string()
}

/// Edits a head between fences, and gives the head.
fn edited(head: &str, want: &[(&str, Option<Value>)]) -> String {
    let text = edit(&format!("---\n{head}---\n\nBody.\n"), want, "Body.\n").unwrap();
    text.strip_prefix("---\n").unwrap().strip_suffix("---\n\nBody.\n").unwrap().to_owned()
}

mod reading {
    use super::*;

    #[test]
    fn a_file_is_split_at_its_fences() {
        for (text, body) in [
            ("---\na: 1\n---\n\nText.\n", "Text.\n"),
            ("---\na: 1\n---\nText.", "Text."),
            ("---\na: 1\n---\n\n\nText.", "\nText."),
            ("---\na: 1\n---\n", ""),
            ("---\na: 1\n---", ""),
            ("---\na: 1\n---\n\n", ""),
            ("---\na: 1\n---\n\n---\nb: 2\n---\n", "---\nb: 2\n---\n"),
            ("---\r\na: 1\r\n---\r\n\r\nText.\r\n", "Text.\r\n"),
            ("--- \na: 1\n---\t\n\n  \nText.", "  \nText."),
            ("\u{feff}---\na: 1\n---\n\nText.", "Text."),
            ("---\na: 1\n---\n\n\r\nText.", "\r\nText."),
        ] {
            let document = Document::parse(text.as_bytes()).unwrap();
            assert_eq!((document.body(), json!(document.fields())), (body, json!({"a": 1})), "{text:?}");
        }
        assert_eq!(fields("# nothing yet"), json!({}));
        assert!(Document::parse(b"---\n---\n").unwrap().fields().is_empty());
    }

    #[test]
    fn plain_scalars_are_read_by_the_core_schema_and_no_further() {
        for (text, value) in [
            ("1", json!(1)),
            ("-17", json!(-17)),
            ("+5", json!(5)),
            ("012", json!(12)),
            ("0o14", json!(12)),
            ("0x1F", json!(31)),
            ("1.5", json!(1.5)),
            ("1e3", json!(1000.0)),
            (".5", json!(0.5)),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!("18446744073709551616")),
            ("1e999", json!("1e999")),
            (".inf", json!(".inf")),
            (".nan", json!(".nan")),
            ("1_000", json!("1_000")),
            ("12:30:00", json!("12:30:00")),
            ("2026-01-01", json!("2026-01-01")),
            ("2026-02-09T21:00:00.000Z", json!("2026-02-09T21:00:00.000Z")),
            ("yes", json!("yes")),
            ("No", json!("No")),
            ("true", json!(true)),
            ("FALSE", json!(false)),
            ("null", json!(null)),
            ("~", json!(null)),
            ("", json!(null)),
            ("'1'", json!("1")),
            ("\"null\"", json!("null")),
            ("=", json!("=")),
            ("|\n  1\n", json!("1\n")),
        ] {
            assert_eq!(fields(&format!("k: {text}")), json!({ "k": value }), "{text:?}");
        }
        assert_eq!(fields("{\"a\": [1, {\"b\":null}]}"), json!({"a": [1, {"b": null}]}));
        assert_eq!(fields("k:\n- a\n-\n- x: 1\n  y: 2"), json!({"k": ["a", null, {"x": 1, "y": 2}]}));
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused_by_place() {
        for (text, message) in [
            ("a: 1\n", "line 1: expected a line of three dashes, got \"a: 1\""),
            ("", "line 1: expected a line of three dashes, got \"\""),
            ("---", "line 1: expected a line of three dashes, got \"---\""),
            ("---\na: 1\n", "line 3: expected a line of three dashes, got the end"),
            ("---\na: &x 1\n---\n", "line 2: a: expected a plain value, got an anchor"),
            ("---\n&x a: 1\n---\n", "line 2: expected a plain value, got an anchor"),
            ("---\na: 1\nb: *x\n---\n", "line 3: b: expected a value, got an alias"),
            ("---\na: !!str 1\n---\n", "line 2: a: expected a plain value, got a tag"),
            ("---\na: !b {c: 1}\n---\n", "line 2: a: expected a plain value, got a tag"),
            ("---\na:\n  <<: {b: 1}\n---\n", "line 3: a: expected a key, got a merge key"),
            ("---\na: 1\nb:\n  c: 1\n  c: 2\n---\n", "line 5: b.c: expected each key once, got it again"),
            ("---\na: 1\n'a': 2\n---\n", "line 3: a: expected each key once, got it again"),
            ("---\n1: a\n---\n", "line 2: expected a key that is text, in quotes if need be, got 1"),
            ("---\n? [a]\n: b\n---\n", "line 2: expected a key that is text, got something else"),
            ("---\n- a\n---\n", "line 2: expected a mapping of fields, got a list"),
            ("---\n~\n---\n", "line 2: expected a mapping of fields, got nothing"),
            ("---\na: 1\n...\n---\n", "line 3: expected a key, got a document marker"),
            ("---\na: 1\n--- b\nc: 1\n---\n", "line 3: expected a key, got a document marker"),
            ("---\n--- {a: 1}\n---\n", "line 2: expected a key, got a document marker"),
            ("---\na: 1\u{1b}[2J\n---\n", "line 2: expected text, got the control character 0x1b"),
            ("---\na: 1\rb: 2\n---\n", "line 2: expected text, got the control character 0x0d"),
            ("---\na: 1\n---\n\n\0", "line 5: expected text, got a NUL byte"),
        ] {
            assert_eq!(refusal(text), message, "{text:?}");
        }
        let open = refusal("---\na: 1\nb: [1, 2\nc: 3\n---\n");
        assert!(open.contains("expected valid YAML (") && open.ends_with("got \"c: 3\""), "{open}");
        let latin = Document::parse(b"---\na: caf\xe9\n---\n").unwrap_err();
        assert_eq!((latin.line, latin.column, latin.got.as_str()), (2, 7, "byte 0xe9"));
    }

    #[test]
    fn bounds_hold_at_their_very_edge() {
        let head = |length: usize| format!("---\na: {}\n---\n", "x".repeat(length - 4));
        assert!(Document::parse(head(TASK_HEAD_BYTES_MAX).as_bytes()).is_ok());
        assert!(Document::parse(head(TASK_HEAD_BYTES_MAX + 1).as_bytes()).is_err());
        let body = |length: usize| format!("---\n---\n{}", "x".repeat(length - 8));
        assert!(Document::parse(body(TASK_FILE_BYTES_MAX).as_bytes()).is_ok());
        assert!(Document::parse(body(TASK_FILE_BYTES_MAX + 1).as_bytes()).is_err());
        let deep = |n: usize| format!("---\na: {}{}\n---\n", "[".repeat(n), "]".repeat(n));
        assert!(Document::parse(deep(YAML_DEPTH_MAX - 1).as_bytes()).is_ok());
        assert!(refusal(&deep(YAML_DEPTH_MAX)).contains("expected at most 16 levels"));
        for bomb in ["- ", "? ", "[", "{a: ", "a: {"] {
            assert!(Document::parse(format!("---\n{}\n---\n", bomb.repeat(12_000)).as_bytes()).is_err());
        }
    }

    #[test]
    fn a_document_says_where_a_field_is() {
        let document = Document::parse(b"---\na: 1\nrouting:\n  agent: 7\n---\n").unwrap();
        let problem = document.refuse("routing.agent", "a name");
        assert_eq!(problem.to_string(), "line 4: routing.agent: expected a name, got 7");
        assert_eq!(problem.column, 3);
        assert_eq!(document.refuse("title", "text").to_string(), "line 1: title: expected text, got nothing");
        assert_eq!(document.refuse("a", "text").to_string(), "line 2: a: expected text, got 1");
    }

    #[test]
    fn a_whole_document_is_yaml_or_json() {
        let read = |text: &str| read_yaml(text.as_bytes(), Bounds::default());
        let bundle = json!({"work": "TASK-1", "items": [{"name": "a", "path": "b"}]});
        let yaml = "---\nwork: TASK-1 # what\nitems:\n  - name: a\n    path: b\n...\n";
        assert_eq!(read(yaml), Ok(bundle.clone()));
        assert_eq!(read(&bundle.to_string()), Ok(bundle));
        assert_eq!(read("{\n\t\"a\":\t\"\\ud83d\\ude00\"\n}"), Ok(json!({"a": "😀"})));
        assert_eq!(read(""), Ok(Value::Null));
        for text in ["{\"a\":1,\"a\":2}", "a: 1\n---\nb: 1\n", "a: &x [1]\nb: *x", "[1", "{\"a\":1} x"] {
            assert!(read(text).is_err(), "{text}");
        }
        let deep = "[".repeat(17) + &"]".repeat(17);
        assert!(read(&deep).is_err());
        assert!(read(&" ".repeat((256 << 10) + 1)).is_err());
        assert!(read_yaml(b"\xff", Bounds::default()).is_err());
    }
}

mod rendering {
    use super::*;

    #[test]
    fn strings_are_quoted_only_where_some_reader_needs_it() {
        for (value, text) in [
            ("Fix the parser", "Fix the parser"),
            ("TASK-2026-02-09-001", "TASK-2026-02-09-001"),
            ("in-progress", "in-progress"),
            ("it's 5 o'clock", "it's 5 o'clock"),
            ("3rd attempt", "3rd attempt"),
            ("http://x/y", "http://x/y"),
            ("Größe prüfen", "Größe prüfen"),
            ("a, b [c]", "a, b [c]"),
            ("yes", "\"yes\""),
            ("Off", "\"Off\""),
            ("1", "\"1\""),
            ("null", "\"null\""),
            ("", "\"\""),
            ("2026-01-01", "\"2026-01-01\""),
            ("2026-01-01T00:00:00.000Z", "\"2026-01-01T00:00:00.000Z\""),
            ("12:30", "\"12:30\""),
            ("- a", "\"- a\""),
            ("# a", "\"# a\""),
            ("a #b", "\"a #b\""),
            ("a#b", "a#b"),
            ("a: b", "\"a: b\""),
            ("a:", "\"a:\""),
            (" a", "\" a\""),
            ("a ", "\"a \""),
            ("a\nb", "\"a\\nb\""),
            ("*a", "\"*a\""),
            ("~", "\"~\""),
            (".inf", "\".inf\""),
            ("\u{1b}\u{202e}", "\"\\u001b\\u202e\""),
        ] {
            assert_eq!(render(&[("k", json!(value))], ""), format!("---\nk: {text}\n---\n"), "{value:?}");
        }
    }

    #[test]
    fn a_task_looks_like_one() {
        let text = render(
            &[
                ("schemaVersion", json!(1)),
                ("id", json!("TASK-2026-02-09-001")),
                ("title", json!("Fix: the parser")),
                ("routing", json!({"agent": "codex", "tags": ["a", "b, c", "1"]})),
                ("lease", json!(null)),
                ("dependsOn", json!([])),
                ("metadata", json!({})),
                ("gates", json!([{"name": "x", "on": [1, 2]}, [{"v": true}], []])),
            ],
            "Text.\n",
        );
        let expected = "---\nschemaVersion: 1\nid: TASK-2026-02-09-001\ntitle: \"Fix: the parser\"\nrouting:\n  agent: codex\n  \
                        tags: [a, \"b, c\", \"1\"]\nlease: null\ndependsOn: []\nmetadata: {}\ngates:\n  - name: x\n    \"on\": [1, 2]\n  \
                        -\n    - v: true\n  - []\n---\n\nText.\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_dash_after_a_space_is_quoted_between_brackets() {
        assert_eq!(render(&[("k", json!(["a -", "a-b"]))], ""), "---\nk: [\"a -\", a-b]\n---\n");
        assert_eq!(render(&[("k", json!("a - b"))], ""), "---\nk: a - b\n---\n");
    }

    #[test]
    fn very_long_keys_read_back() {
        let key = "k".repeat(3000);
        let value = json!({key.clone(): {key.clone(): [{key.clone(): 1}]}});
        let text = render(&[(&key, value.clone())], "");
        assert_eq!(Document::parse(text.as_bytes()).unwrap().fields()[&key], value);
        let text = edit("---\nm: {a: 1}\n---\n", &[("m", Some(json!({"a": 1, &key: value})))], "").unwrap();
        assert_eq!(Document::parse(text.as_bytes()).unwrap().fields()["m"][&key], value);
    }
}

mod editing {
    use super::*;

    const TASK: &str = "# A task of ours.\nid: TASK-1   # never changes\n\"title\": 'It''s here' # quoted\n# Where it stands.\nstatus: ready # for now\nx-team: {lead: ann,   size: 3} # theirs\n\n# Who works on it.\nrouting: # by hand\n    # the agent\n    agent: codex # good\n    x-room: 7 # theirs\n    role: dev\n    # last words\n\nnotes: |\n  # no comment\n  text\n\ntags:\n- a # one\n- b\n# The end.\n";

    #[test]
    fn a_changed_value_changes_nothing_else() {
        let new = edited(
            TASK,
            &[
                ("status", Some(json!("in-progress"))),
                ("title", Some(json!("It is: here"))),
                ("routing", Some(json!({"agent": "claude", "x-room": 7, "role": "dev"}))),
            ],
        );
        let expected = TASK
            .replace("status: ready", "status: in-progress")
            .replace("'It''s here'", "\"It is: here\"")
            .replace("codex", "claude");
        assert_eq!(new, expected);
    }

    #[test]
    fn a_new_key_follows_the_last_one() {
        let new = edited(
            TASK,
            &[
                ("rev", Some(json!(9))),
                ("attempts", Some(json!(1))),
                ("routing", Some(json!({"agent": "codex", "x-room": 7, "role": "dev", "tags": ["x"]}))),
                ("x-team", Some(json!({"lead": "ann", "size": 3, "more": {"a": [1]}}))),
            ],
        );
        let expected = TASK
            .replace("- b\n", "- b\nrev: 9\nattempts: 1\n")
            .replace("role: dev\n", "role: dev\n    tags: [x]\n")
            .replace("size: 3}", "size: 3, more: {a: [1]}}");
        assert_eq!(new, expected);
    }

    #[test]
    fn a_removed_key_takes_its_lines_and_the_comment_beside_it() {
        assert_eq!(
            edited(TASK, &[("status", None), ("tags", None)]),
            TASK.replace("status: ready # for now\n", "").replace("tags:\n- a # one\n- b\n", "")
        );
        assert_eq!(edited(TASK, &[("notes", None)]), TASK.replace("notes: |\n  # no comment\n  text\n", ""));
        let start = TASK.find("routing").unwrap();
        let end = TASK.find("\nnotes").unwrap();
        assert_eq!(edited(TASK, &[("routing", None)]), [&TASK[..start], &TASK[end..]].concat());
        assert_eq!(
            edited(TASK, &[("routing", Some(json!({"x-room": 7, "role": "dev"})))]),
            TASK.replace("    agent: codex # good\n", "")
        );
        assert_eq!(edited("a: 1\n", &[("a", None)]), "");
        assert_eq!(edited("# c\n", &[("a", Some(json!(1)))]), "# c\na: 1\n");
        assert_eq!(edited(TASK, &[("nothing", None)]), TASK);
    }

    #[test]
    fn a_value_of_another_kind_keeps_the_comment_beside_it() {
        for (head, value, expected) in [
            ("a: null # c\nb: 1\n", json!({"x": 1}), "a: # c\n  x: 1\nb: 1\n"),
            ("a: # c\nb: 1\n", json!({"x": 1}), "a: # c\n  x: 1\nb: 1\n"),
            ("a: # c\nb: 1\n", json!(2), "a: 2 # c\nb: 1\n"),
            ("a:\nb: 1\n", json!("x"), "a: x\nb: 1\n"),
            ("a: # c\n  x: 1\nb: 1\n", json!(null), "a: null # c\nb: 1\n"),
            ("a: # c\n  x: 1\nb: 1\n", json!({}), "a: {} # c\nb: 1\n"),
            ("a: |- # c\n  x\n  y\n\n# d\nb: 1\n", json!("z"), "a: z # c\n\n# d\nb: 1\n"),
            ("a: >2\n   x\nb: 1\n", json!([1]), "a: [1]\nb: 1\n"),
            ("a: |\n\n\nb: 1\n", json!("z"), "a: z\n\n\nb: 1\n"),
            ("a: [1,\n  2 # two\n  ] # c\nb: 1\n", json!([3]), "a: [3] # c\nb: 1\n"),
            ("a: [1,\n  2] # c\nb: 1\n", json!([{"x": 1}]), "a: # c\n  - x: 1\nb: 1\n"),
            ("a: \"x\n  # y\" # c\nb: 1\n", json!({"x": 1}), "a: # c\n  x: 1\nb: 1\n"),
            ("a: x\n  y # c\nb: 1\n", json!(true), "a: true # c\nb: 1\n"),
            ("'a': {x: 1}\nb: 1\n", json!({"x": 2}), "'a': {x: 2}\nb: 1\n"),
            ("a: {x: 1, # one\n  y: 2}\nb: 1\n", json!({"y": 3}), "a: {y: 3}\nb: 1\n"),
            ("a: {x: 1, y, z:}\nb: 1\n", json!({"x": 1, "y": 2, "z": 3}), "a: {x: 1, y: 2, z: 3}\nb: 1\n"),
            ("a: {x: 1, y: 2, z: 3}\nb: 1\n", json!({"x": 1, "q": 0}), "a: {x: 1, q: 0}\nb: 1\n"),
            ("a: {x: 1, y: 2,}\nb: 1\n", json!({"q": 0}), "a: {q: 0,}\nb: 1\n"),
            ("a: {}\nb: 1\n", json!({"q": 0}), "a: {q: 0}\nb: 1\n"),
            ("a: {x: 1}\nb: 1\n", json!({}), "a: {}\nb: 1\n"),
            ("? a\n: x\nb: 1\n", json!(2), "a: 2\nb: 1\n"),
            ("?\n  a\n: x: 1\nb: 1\n", json!({"x": 2}), "a:\n  x: 2\nb: 1\n"),
            ("a:\n- x\n# c\n- y\n# d\nb: 1\n", json!(["z"]), "a: [z]\n# d\nb: 1\n"),
            ("  a: 1\n  b: 1\n", json!({"x": 1}), "  a:\n    x: 1\n  b: 1\n"),
        ] {
            assert_eq!(edited(head, &[("a", Some(value))]), expected, "{head:?}");
        }
    }

    #[test]
    fn a_head_between_braces_is_edited_between_them() {
        let head = "{\"a\": 1, # one\n \"b\": [1], \"c\": {\"d\": 1}}\n";
        assert_eq!(
            edited(head, &[("a", Some(json!("x: y"))), ("b", None), ("e", Some(json!({"f": [true]})))]),
            "{\"a\": \"x: y\", # one\n \"c\": {\"d\": 1}, e: {f: [true]}}\n"
        );
        assert_eq!(edited("{a: 1,}\n", &[("a", None)]), "{}\n");
        assert_eq!(
            edited("{a: {b: 1, # ]\n}, c: [d,],}\n", &[("a", Some(json!(1))), ("c", Some(json!(2)))]),
            "{a: 1, c: 2,}\n"
        );
    }

    #[test]
    fn a_text_that_keeps_its_blank_lines_keeps_them() {
        let head = "a: 1\nb: |+\n  text\n\n\n";
        assert_eq!(edited(head, &[("c", Some(json!(2)))]), "a: 1\nb: |+\n  text\n\n\nc: 2\n");
        let head = "b: |+\n  text\nc: 1\n\n# d\n\nd: 1\n";
        assert_eq!(edited(head, &[("c", None)]), "b: |+\n  text\n# d\nd: 1\n");
        let head = "m:\n  b: |+\n    text\n\n\nd: 1\n";
        let new = edited(head, &[("m", Some(json!({"b": "text\n\n\n", "c": 1})))]);
        assert_eq!(fields(&new), json!({"m": {"b": "text\n\n\n", "c": 1}, "d": 1}));
    }

    #[test]
    fn carriage_returns_and_the_byte_order_mark_stay() {
        let base = "\u{feff}---\r\na: 1 # c\r\nm:\r\n  x: ü\r\n---\r\n\r\nText.\r\n";
        let want = [
            ("a", Some(json!(2))),
            ("m", Some(json!({"x": "ü", "v": {"z": 1}}))),
            ("w", Some(json!({"z": [[{"q": 1}]]}))),
        ];
        let new = edit(base, &want, "More.\r\n").unwrap();
        assert_eq!(
            new,
            "\u{feff}---\r\na: 2 # c\r\nm:\r\n  x: ü\r\n  v:\r\n    z: 1\r\nw:\r\n  z:\r\n    -\r\n      - q: 1\r\n---\r\n\r\nMore.\r\n"
        );
    }

    #[test]
    fn a_body_is_replaced_with_a_blank_line_before_it() {
        for (base, body, expected) in [
            ("---\na: 1\n---\nOld.", "Old.", "---\na: 1\n---\nOld."),
            ("---\na: 1\n---\nOld.", "New.", "---\na: 1\n---\n\nNew."),
            ("---\na: 1\n---", "", "---\na: 1\n---"),
            ("---\na: 1\n---", "\nNew.", "---\na: 1\n---\n\n\nNew."),
            ("---\na: 1\n---\r\n\r\nOld.", "", "---\na: 1\n---\r\n\r\n"),
        ] {
            assert_eq!(edit(base, &[], body).as_deref(), Ok(expected), "{base:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_back_is_refused() {
        let base = "---\na: 1\n---\n";
        assert!(edit(base, &[], "\0").is_err());
        assert!(edit(base, &[("b", Some(json!("x".repeat(70_000))))], "").is_err());
        let deep = (0..20).fold(json!(1), |value, _| json!([value]));
        assert!(edit(base, &[("b", Some(deep))], "").is_err());
        assert!(edit("a: 1\n", &[], "").is_err());
    }
}

/// Text of any kind, most of it such as YAML could trip over.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[-#:, \\[\\]{}'\"!&*|>%@`~?a-c0-9.\n\r\t\\\\]{0,12}",
        "[a-z]{1,8}",
        prop::sample::select(vec![
            "yes",
            "1",
            "null",
            "2026-01-01",
            "- a",
            "---",
            "...",
            "",
            "<<",
            "0x1f",
            "1e5",
            ".5",
            "on",
            "a: b",
            "a #b",
            "=",
            "\u{feff}",
            "\u{85}",
            "\u{2028}",
            "\u{0}",
            "\u{10ffff}",
            "-",
            "?",
            ": ",
            "{",
            "%a",
        ])
        .prop_map(str::to_owned),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(7, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn some_fields() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::btree_map(text(), value(), 0..8).prop_map(|map| map.into_iter().collect())
}

fn body() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "(---|\r\n|\n|a|# b| ){0,8}"].prop_map(|body| body.replace('\0', ""))
}

fn rendered(fields: &Map<String, Value>, body: &str) -> String {
    let fields: Vec<(&str, Value)> =
        fields.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    render(&fields, body)
}

/// Lines of a head as people write them: each is an entry whose key is unlike the others, with comments around and inside.
fn written_head() -> impl Strategy<Value = String> {
    let entries = prop::sample::select(vec![
        "KEY: plain # beside KEY\n",
        "KEY: 'quoted # text'\n",
        "'KEY': \"two\n  # lines\" # beside KEY\n",
        "KEY: |\n  # text\n  text\n",
        "KEY: >+\n  text\n\n",
        "KEY:\n",
        "KEY: # beside KEY\n  a: 1 # inside KEY\n  # above b of KEY\n  b: {c: 1}\n  # inside the end of KEY\n",
        "KEY:\n    a:\n      - 1 # inside KEY\n      - x: 1\n        y: 2\n    b: null\n",
        "KEY: {a: 1, b: [2, 3],\n  c: x } # beside KEY\n",
        "KEY: [1, 2] # beside KEY\n",
        "KEY:\n- 1\n# between items of KEY\n- 2\n",
        "? KEY\n: value\n",
        "KEY: plain over\n  two lines # beside KEY\n",
    ]);
    let above = prop::sample::select(vec!["", "\n", "# above KEY\n", "\n# above KEY\n\n"]);
    prop::collection::vec((above, entries), 0..7).prop_map(|entries| {
        let each = entries.iter().enumerate();
        each.map(|(at, (above, entry))| [*above, *entry].concat().replace("KEY", &format!("k{at}"))).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_rendered_reads_back(fields in some_fields(), body in body()) {
        let text = rendered(&fields, &body);
        let read = Document::parse(text.as_bytes());
        prop_assert!(read.is_ok(), "{text}\n{read:?}");
        let read = read.unwrap();
        prop_assert_eq!(read.fields(), &fields, "{}", text);
        prop_assert_eq!(read.body(), body);
    }

    #[test]
    fn a_document_between_braces_reads_back(value in value()) {
        let mut text = String::new();
        render::flow(&mut text, &value);
        prop_assert_eq!(read_yaml(text.as_bytes(), Bounds::default()), Ok(value.clone()), "{}", text);
        prop_assert_eq!(read_yaml(value.to_string().as_bytes(), Bounds::default()), Ok(value));
    }

    #[test]
    fn an_edit_gives_what_was_asked_for(
        fields in some_fields(), other in some_fields(), body in body(), new_body in body(), remove in 0..4usize,
    ) {
        let base = rendered(&fields, &body);
        let same: Vec<_> = fields.iter().map(|(key, value)| (key.as_str(), Some(value.clone()))).collect();
        prop_assert_eq!(edit(&base, &same, &body), Ok(base.clone()));
        let mut want: Vec<_> = other.iter().map(|(key, value)| (key.as_str(), Some(value.clone()))).collect();
        want.extend(fields.keys().take(remove).map(|key| (key.as_str(), None)));
        let mut expected = fields.clone();
        for (key, value) in &want {
            match value {
                Some(value) => drop(expected.insert((*key).to_owned(), value.clone())),
                None => drop(expected.remove(*key)),
            }
        }
        let text = edit(&base, &want, &new_body);
        prop_assert!(text.is_ok(), "{base}\n{want:?}\n{text:?}");
        let read = Document::parse(text.unwrap().as_bytes()).unwrap();
        prop_assert_eq!(read.fields(), &expected);
        prop_assert_eq!(read.body(), new_body);
    }

    #[test]
    fn what_people_wrote_around_an_edit_stays(
        head in written_head(), at in 0..7usize, value in prop::option::of(value()), is_crlf in any::<bool>(),
    ) {
        let mut base = format!("---\n{head}---\n\nBody.\n");
        if is_crlf {
            base = base.replace('\n', "\r\n");
        }
        let body = if is_crlf { "Body.\r\n" } else { "Body.\n" };
        let before = Document::parse(base.as_bytes()).unwrap();
        let same: Vec<_> = before.fields().iter().map(|(key, value)| (key.as_str(), Some(value.clone()))).collect();
        prop_assert_eq!(edit(&base, &same, body), Ok(base.clone()));

        let key = format!("k{at}");
        let new = edit(&base, &[(&key, value.clone())], body);
        prop_assert!(new.is_ok(), "{base}\n{new:?}");
        let new = new.unwrap();
        prop_assert_eq!(new.replace("\r\n", "").contains('\r'), false);
        let mut expected = before.fields().clone();
        match &value {
            Some(value) => drop(expected.insert(key.clone(), value.clone())),
            None => drop(expected.remove(&key)),
        }
        let after = Document::parse(new.as_bytes()).unwrap();
        prop_assert_eq!(after.fields(), &expected);
        for line in base.lines().filter(|line| line.contains(" k") && !line.contains(&key)) {
            prop_assert!(new.lines().any(|kept| kept == line), "{line:?} is gone\n{base}\n{new}");
        }
        let beside = format!("# beside {key}");
        prop_assert!(value.is_none() || new.contains(&beside) == base.contains(&beside), "{base}\n{new}");
        let above = format!("# above {key}");
        prop_assert_eq!(new.contains(&above), base.contains(&above));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), head in "[-#:, \\[\\]{}'\"!&*|>%?ab1\n]{0,60}") {
        let _ = read_yaml(&bytes, Bounds::default());
        let _ = Document::parse(&bytes);
        let base = format!("---\n{head}\n---\n");
        if let Ok(document) = Document::parse(base.as_bytes()) {
            let want: Vec<_> = document.fields().iter().map(|(key, value)| (key.as_str(), Some(value.clone()))).collect();
            prop_assert_eq!(edit(&base, &want, document.body()), Ok(base.clone()));
            for key in document.fields().keys() {
                let _ = edit(&base, &[(key, None)], "");
                let _ = edit(&base, &[(key, Some(json!({"x": 1}))), ("new", Some(json!(1)))], "");
            }
        }
    }
}
