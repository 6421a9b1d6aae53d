//! Random JSON at the three doors of canonical bytes, compared with another implementation of RFC 8785.

use baton_ledger::canonical::{parse, scan, to_bytes};
use proptest::prelude::*;
use serde_json::{Map, Number, Value};

const INTEGER_MAX: i64 = 9_007_199_254_740_991;

/// Characters where orders and escapes differ: controls, quotes, both sides of the surrogates, beyond them.
fn text() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        '\0',
        '\u{8}',
        '\t',
        '\n',
        '\u{b}',
        '\u{c}',
        '\r',
        '\u{1f}',
        ' ',
        '"',
        '\\',
        '/',
        'a',
        'b',
        '\u{7f}',
        '\u{80}',
        'ö',
        '€',
        '\u{d7ff}',
        '\u{e000}',
        '\u{fb33}',
        '\u{fffd}',
        '\u{ffff}',
        '\u{10000}',
        '😀',
        '\u{10ffff}',
    ]);
    prop::collection::vec(prop_oneof![3 => special, 1 => any::<char>()], 0..6)
        .prop_map(|chars| chars.into_iter().collect())
}

/// Numbers as the reader would build them: what prints without a point is an integer.
fn number() -> impl Strategy<Value = Value> {
    let double = prop_oneof![
        any::<f64>(),
        (-1e6..1e6f64).prop_map(|x| x / 1024.0),
        (-30..30i32, 1..100u32).prop_map(|(exponent, n)| f64::from(n) * 10f64.powi(exponent)),
    ];
    prop_oneof![
        (-INTEGER_MAX..=INTEGER_MAX).prop_map(Value::from),
        (-100..100i64).prop_map(Value::from),
        double.prop_filter_map("prints as an integer or not at all", |x| {
            let fits = x.is_finite() && (x.fract() != 0.0 || x.abs() >= 1e21);
            fits.then(|| Number::from_f64(x).map(Value::Number)).flatten()
        }),
    ]
}

pub(crate) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        text().prop_map(Value::from)
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Whether bytes are canonical, judged the long way: read, printed again, compared.
fn is_canonical(bytes: &[u8]) -> bool {
    parse(bytes).ok().and_then(|value| to_bytes(&value).ok()).is_some_and(|printed| printed == bytes)
}

fn scans(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| scan::check(text).is_ok())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printed_bytes_are_those_of_another_implementation_and_are_read_back(value in json()) {
        let bytes = to_bytes(&value).unwrap();
        prop_assert_eq!(&bytes, &serde_json_canonicalizer::to_vec(&value).unwrap());
        prop_assert!(scans(&bytes));
        prop_assert_eq!(parse(&bytes).unwrap(), value);
    }

    #[test]
    fn the_usual_spelling_of_a_value_is_canonical_exactly_when_it_is_the_printed_one(value in json()) {
        let bytes = to_bytes(&value).unwrap();
        for foreign in [serde_json::to_vec(&value).unwrap(), serde_json::to_vec_pretty(&value).unwrap()] {
            prop_assert_eq!(to_bytes(&parse(&foreign).unwrap()).unwrap(), bytes.clone());
            prop_assert_eq!(scans(&foreign), foreign == bytes);
        }
    }

    #[test]
    fn the_scanner_takes_a_mutated_text_only_where_it_is_canonical(
        value in json(),
        at in any::<prop::sample::Index>(),
        byte in prop_oneof![any::<u8>(), prop::sample::select(b"0123456789-+.eE,:{}[]\"\\ \n".to_vec())],
    ) {
        let mut bytes = to_bytes(&value).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        prop_assert_eq!(scans(&bytes), is_canonical(&bytes), "{:?}", String::from_utf8_lossy(&bytes));
        bytes.remove(at);
        prop_assert_eq!(scans(&bytes), is_canonical(&bytes), "{:?}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_double_is_printed_like_another_implementation_or_refused_as_an_integer_out_of_range(bits in any::<u64>()) {
        let x = f64::from_bits(bits);
        prop_assume!(x.is_finite());
        let value = Value::from(x);
        let theirs = serde_json_canonicalizer::to_string(&value).unwrap();
        let is_large = x.fract() == 0.0 && x.abs() > INTEGER_MAX as f64 && x.abs() < 1e21;
        prop_assert_eq!(scan::check(&theirs).is_ok(), !is_large, "{}", theirs);
        prop_assert_eq!(to_bytes(&value).ok(), (!is_large).then_some(theirs.into_bytes()));
    }

    #[test]
    fn any_integer_is_in_range_or_refused_by_all_three_doors(n in any::<i64>(), shift in 0..64u32) {
        let n = n >> shift;
        let fits = n.unsigned_abs() <= INTEGER_MAX as u64;
        prop_assert_eq!(parse(n.to_string().as_bytes()).is_ok(), fits);
        prop_assert_eq!(to_bytes(&Value::from(n)).is_ok(), fits);
        prop_assert_eq!(scan::check(&n.to_string()).is_ok(), fits);
    }
}

#[test]
fn every_single_byte_change_of_a_rich_text_is_taken_only_where_it_is_canonical() {
    let text = "{\"\\r\":[0.5,-1e+21,5e-324,9007199254740991],\"a\":\"\\u001f\\n\\\\€\",\"b\":{\"\":null,\"ö\":[true,false,{}]}}";
    assert!(scans(text.as_bytes()));
    let mut taken = 0;
    for at in 0..text.len() {
        for byte in 0..=255u8 {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = byte;
            assert_eq!(scans(&bytes), is_canonical(&bytes), "{:?}", String::from_utf8_lossy(&bytes));
            taken += usize::from(scans(&bytes));
        }
    }
    assert!(taken > text.len(), "digits and letters change into one another");
}
