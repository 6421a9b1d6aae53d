//! The public vectors of RFC 8785, and the rules that the ledger adds to it, at all three doors.

use baton_ledger::canonical::{Error, parse, scan, to_bytes};
use serde_json::{Value, json};

const INTEGER_MAX: i64 = 9_007_199_254_740_991;

/// Foreign text becomes exactly this canonical text, which the scanner takes and the reader reads to the same value.
fn check(foreign: &str, canonical: &str) {
    let value = parse(foreign.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(to_bytes(&value).unwrap()).unwrap(), canonical);
    assert_eq!(scan::check(canonical), Ok(()), "{canonical}");
    assert_eq!(to_bytes(&parse(canonical.as_bytes()).unwrap()).unwrap(), canonical.as_bytes());
    assert_eq!(foreign == canonical, scan::check(foreign).is_ok(), "{foreign}");
}

fn refused(foreign: &str, why: &str) {
    let error = parse(foreign.as_bytes()).unwrap_err().to_string();
    assert!(error.contains(why), "{foreign}: {error}");
    assert!(scan::check(foreign).is_err(), "{foreign}");
}

#[test]
fn the_numbers_of_appendix_b_print_as_the_rfc_says() {
    for (bits, expected) in [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        let value = Value::from(f64::from_bits(bits));
        assert_eq!(String::from_utf8(to_bytes(&value).unwrap()).unwrap(), expected, "{bits:016x}");
        assert_eq!(scan::check(expected), Ok(()), "{expected}");
        let read = parse(expected.as_bytes()).unwrap().as_f64().unwrap();
        assert_eq!(read, f64::from_bits(bits), "{expected} is read exactly");
    }
}

#[test]
fn the_numbers_of_appendix_b_that_print_as_large_integers_are_refused_everywhere() {
    for (bits, text) in [
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
    ] {
        let printed = to_bytes(&Value::from(f64::from_bits(bits)));
        assert!(matches!(printed, Err(Error::IntegerRange(_))), "{text}");
        refused(text, "outside ±(2^53−1)");
        assert_eq!(scan::check(text), Err(Error::IntegerRange(text.to_owned())));
    }
}

#[test]
fn integers_too_long_for_any_type_are_refused_and_not_rounded() {
    for digits in [20, 22, 30, 400] {
        let integer = "1".repeat(digits);
        for text in
            [integer.clone(), format!("-{integer}"), format!("[1,{integer}]"), format!("{{\"a\":{integer}}}")]
        {
            refused(&text, "outside ±(2^53−1)");
        }
        // Digits in a text are a text; a double is a double however it is written.
        assert!(parse(format!("{{\"a\":\"{integer}\",\"\\\"{integer}\":1}}").as_bytes()).is_ok());
    }
    assert!(parse(b"1.2345678901234567890123e+29").is_ok());
}

#[test]
fn infinities_and_what_overflows_to_them_have_no_form() {
    for text in ["1e309", "-1e309", "1e999999999", "NaN", "Infinity", "-Infinity"] {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
        assert!(scan::check(text).is_err(), "{text}");
    }
}

#[test]
fn names_are_sorted_by_utf_16_as_in_the_rfc() {
    check(
        r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",
            "\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#,
        concat!(
            r#"{"\r":"Carriage Return","1":"One",""#,
            "\u{80}",
            r#"":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","#,
            r#""😀":"Emoji: Grinning Face",""#,
            "\u{fb33}",
            r#"":"Hebrew Letter Dalet With Dagesh"}"#
        ),
    );
    // UTF-8 would put these two the other way round.
    check("{\"\u{ffff}\":1,\"\u{10000}\":2}", "{\"\u{10000}\":2,\"\u{ffff}\":1}");
    check(r#"{"b":1,"a":2,"":3,"aa":4}"#, r#"{"":3,"a":2,"aa":4,"b":1}"#);
    check(r#"{"\n":1,"\t":2,"\u001f":3,"\u0000":4}"#, r#"{"\u0000":4,"\t":2,"\n":1,"\u001f":3}"#);
}

#[test]
fn the_sample_of_the_rfc_comes_out_as_printed_there() {
    check(
        r#"{
          "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
          "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
          "literals": [null, true, false]
        }"#,
        concat!(
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
            r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
        ),
    );
}

#[test]
fn every_control_character_has_its_one_escape() {
    let all: String = (0..0x20u8).map(char::from).chain("\"\\/\u{7f}\u{80}\u{2028}".chars()).collect();
    let expected = concat!(
        r#""\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f"#,
        r#"\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f"#,
        "\\\"\\\\/\u{7f}\u{80}\u{2028}\""
    );
    assert_eq!(String::from_utf8(to_bytes(&Value::from(all)).unwrap()).unwrap(), expected);
    check(expected, expected);
}

#[test]
fn an_escape_by_number_is_canonical_only_where_there_is_no_shorter_one() {
    for code in 0..0x100u32 {
        let text = format!("\"\\u{code:04x}\"");
        let canonical = code < 0x20 && ![0x08, 0x09, 0x0a, 0x0c, 0x0d].contains(&code);
        assert_eq!(scan::check(&text).is_ok(), canonical, "{text}");
        assert_eq!(
            to_bytes(&parse(text.as_bytes()).unwrap()).unwrap() == text.as_bytes(),
            canonical,
            "{text}"
        );
        let upper = format!("\"\\u{code:04X}\"");
        assert_eq!(scan::check(&upper).is_ok(), canonical && upper == text, "{upper}");
    }
    for escape in ["\\a", "\\v", "\\0", "\\'", "\\/", "\\x41", "\\u001", "\\U0001", "\\"] {
        assert!(scan::check(&format!("\"{escape}\"")).is_err(), "{escape}");
    }
}

#[test]
fn other_spellings_of_the_same_value_are_not_canonical() {
    for (text, canonical) in [
        ("-0", "0"),
        ("-0.0", "0"),
        ("1.0", "1"),
        ("1e0", "1"),
        ("10e-1", "1"),
        ("1E+21", "1e+21"),
        ("1e21", "1e+21"),
        ("100e19", "1e+21"),
        ("0.0000010", "0.000001"),
        ("1e-6", "0.000001"),
        (" 1", "1"),
        ("1\n", "1"),
        ("[1, 2]", "[1,2]"),
        ("{\"a\" :1}", "{\"a\":1}"),
        (r#""\/""#, r#""/""#),
        (r#""\u0041""#, r#""A""#),
        (r#""\u000A""#, r#""\n""#),
        (r#""\u001F""#, r#""\u001f""#),
        (r#""\u007f""#, "\"\u{7f}\""),
    ] {
        check(text, canonical);
    }
    for text in [
        "01",
        "+1",
        ".5",
        "1.",
        "1e",
        "--1",
        "1-1",
        "tru",
        "nulll",
        "[1,]",
        "{,}",
        "'a'",
        "",
        "\"\n\"",
        "\"\\ud800\"",
    ] {
        assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        assert!(scan::check(text).is_err(), "{text:?}");
    }
}

#[test]
fn integers_end_at_two_to_the_53_minus_one() {
    for n in [INTEGER_MAX, -INTEGER_MAX, INTEGER_MAX - 1, 0, -1] {
        check(&n.to_string(), &n.to_string());
        assert_eq!(parse(n.to_string().as_bytes()), Ok(json!(n)));
    }
    for n in [INTEGER_MAX + 1, -INTEGER_MAX - 1, i64::MAX, i64::MIN] {
        refused(&n.to_string(), "outside ±(2^53−1)");
        assert_eq!(to_bytes(&json!(n)), Err(Error::IntegerRange(n.to_string())));
        assert_eq!(scan::check(&n.to_string()), Err(Error::IntegerRange(n.to_string())));
    }
    assert_eq!(to_bytes(&json!(u64::MAX)), Err(Error::IntegerRange(u64::MAX.to_string())));
    refused("18446744073709551616", "outside");
    refused("[{\"a\":9007199254740992}]", "outside");
    // The same numbers in disguise: a fraction or an exponent does not smuggle them in.
    refused("9007199254740992.0", "outside");
    refused("9.007199254740992e15", "outside");
    check("9007199254740991.0", "9007199254740991");
}

#[test]
fn a_name_that_occurs_twice_is_refused_in_every_spelling_and_at_every_depth() {
    for text in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"b":2,"a":3}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"\n":1,"\u000a":2}"#,
        r#"{"😀":1,"\ud83d\ude00":2}"#,
        r#"{"":1,"":2}"#,
        r#"{"x":{"a":1,"a":2}}"#,
        r#"[[{"y":[{"a":null,"\u0061":null}]}]]"#,
    ] {
        refused(text, "occurs twice");
    }
    check(r#"{"a":{"a":{"a":1}}}"#, r#"{"a":{"a":{"a":1}}}"#);
}

#[test]
fn nesting_ends_at_sixty_four_at_every_door() {
    let arrays = |depth: usize, inner: &str| format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth));
    let objects =
        |depth: usize, inner: &str| format!("{}{inner}{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    for good in [arrays(64, ""), arrays(64, "1"), arrays(63, "{}"), objects(64, "1"), objects(63, "[]")] {
        check(&good, &good);
    }
    for deep in [arrays(65, ""), arrays(65, "1"), arrays(64, "{}"), objects(65, "1"), objects(64, "[]")] {
        refused(&deep, "deeper than 64");
        assert_eq!(scan::check(&deep), Err(Error::Depth(64)));
        // Without the first door's bound the value exists; the printer has its own.
        let value: Value = serde_json::from_str(&deep).unwrap();
        assert_eq!(to_bytes(&value), Err(Error::Depth(64)));
    }
    refused(&"[".repeat(1 << 20), "deeper than 64");
    refused(&"{\"a\":".repeat(1 << 18), "deeper than 64");
}

#[test]
fn doubles_are_read_exactly_and_not_only_because_a_dev_dependency_asks_for_it() {
    // Cargo unites features, so the exact reader could be on in the tests and off in the product.
    assert!(include_str!("../../Cargo.toml").contains(r#"features = ["float_roundtrip"]"#));
    for text in ["6.934698245112694e+276", "8.383658838626809e-78", "-7.803913958627244e+173"] {
        check(text, text);
    }
}

#[test]
fn a_character_in_a_long_string_is_judged_wherever_it_stands() {
    // The scanner looks at eight bytes at once; every place in a word and every byte beside it must give the same answer.
    for filler in ["a", "é", "\u{7f}", "!"] {
        for before in 0..20 {
            for c in (0..=0x100).filter_map(char::from_u32) {
                let inside = format!("{}{c}{}", filler.repeat(before), filler.repeat(20 - before));
                let bare = scan::check(&format!("\"{inside}\"")).is_ok();
                assert_eq!(bare, c >= ' ' && c != '"' && c != '\\', "{c:?} after {before} of {filler:?}");
                let printed = String::from_utf8(to_bytes(&Value::from(inside.as_str())).unwrap()).unwrap();
                assert_eq!(scan::check(&printed), Ok(()), "{c:?} after {before} of {filler:?}");
                assert_eq!(parse(printed.as_bytes()), Ok(Value::from(inside)));
            }
        }
    }
}
