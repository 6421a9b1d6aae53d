//! Variables that somebody else gives a program: judged before they are passed on.

use std::collections::BTreeMap;

use crate::limits::{PROGRAM_ENV_BYTES_MAX, PROGRAM_ENV_MAX};

/// How the names of Baton's own variables begin. By some of them it knows whose a process is.
const OWN: &str = "BATON_";

/// What was given, by name; the last of several with the same name counts. Or what is wrong with it: field, what was expected, what came.
pub(crate) fn checked(given: Vec<(String, String)>) -> Result<BTreeMap<String, String>, String> {
    if given.len() > PROGRAM_ENV_MAX {
        return Err(format!("env: expected at most {PROGRAM_ENV_MAX} variables, got {}", given.len()));
    }
    let bytes: usize = given.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > PROGRAM_ENV_BYTES_MAX {
        return Err(format!("env: expected at most {PROGRAM_ENV_BYTES_MAX} bytes, got {bytes}"));
    }
    for (at, (name, value)) in given.iter().enumerate() {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(format!("env[{at}].name: expected a name without \"=\" and NUL, got {name:?}"));
        }
        if name.starts_with(OWN) {
            return Err(format!("env[{at}].name: expected none of Baton's own ({OWN}*), got {name:?}"));
        }
        if value.contains('\0') {
            return Err(format!("env[{at}].value: expected text without NUL, got some with it"));
        }
    }
    Ok(given.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(given: &[(&str, &str)], wrong: &str) {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(checked(given), Err(wrong.to_owned()));
    }

    #[test]
    fn what_is_no_variable_or_not_theirs_is_refused_by_its_field() {
        check(&[("A", "1"), ("", "2")], "env[1].name: expected a name without \"=\" and NUL, got \"\"");
        check(&[("A=B", "1")], "env[0].name: expected a name without \"=\" and NUL, got \"A=B\"");
        check(&[("A\0", "1")], "env[0].name: expected a name without \"=\" and NUL, got \"A\\0\"");
        check(&[("A", "1\0")], "env[0].value: expected text without NUL, got some with it");
        let own = "env[0].name: expected none of Baton's own (BATON_*), got \"BATON_SESSION_ID\"";
        check(&[("BATON_SESSION_ID", "sess_1")], own);
        let many = vec![("A", "1"); PROGRAM_ENV_MAX + 1];
        check(&many, "env: expected at most 256 variables, got 257");
        let long = "x".repeat(PROGRAM_ENV_BYTES_MAX);
        check(&[("A", &long)], "env: expected at most 65536 bytes, got 65537");
    }

    #[test]
    fn the_last_of_a_name_counts() {
        let given = [("A", "1"), ("LD_PRELOAD", "x"), ("A", "2")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let expected = [("A", "2"), ("LD_PRELOAD", "x")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(checked(given), Ok(BTreeMap::from(expected)));
    }
}
