//! What an agent's process gets of Baton's surroundings, and where its program is.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::process::PASSED;

/// The whole environment of an agent: what every command gets, what is passed on by name, and what is set. Nothing else of Baton's own.
pub fn environment(pass: &[String], set: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    environment_of(pass, set, |name| std::env::var(name).ok())
}

/// The same, where somebody else reads Baton's own variables.
pub fn environment_of(
    pass: &[String],
    set: &BTreeMap<String, String>,
    own: impl Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let names = PASSED.iter().copied().chain(pass.iter().map(String::as_str));
    let passed = names.filter_map(|name| Some((name.to_owned(), own(name)?)));
    passed.chain(set.iter().map(|(name, value)| (name.clone(), value.clone()))).collect()
}

/// Where a program is, as the process would find it; or why it cannot be started.
pub fn find(program: &str, dir: &Path, env: &BTreeMap<String, String>) -> io::Result<PathBuf> {
    let candidates: Vec<PathBuf> = if program.contains('/') {
        vec![dir.join(program)]
    } else {
        let path = env.get("PATH").map(String::as_str).unwrap_or_default();
        std::env::split_paths(path).map(|part| dir.join(part).join(program)).collect()
    };
    // A folder that is named is there, and cannot be run; one that only happens to be on the path is passed by.
    let is_there = |path: &PathBuf| path.is_file() || program.contains('/') && path.is_dir();
    let found = candidates.into_iter().filter(is_there);
    let is_fit = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let (fit, unfit): (Vec<_>, Vec<_>) = found.partition(is_fit);
    match (fit.into_iter().next(), unfit.is_empty()) {
        (Some(path), _) => Ok(path),
        (None, true) => Err(io::Error::new(io::ErrorKind::NotFound, format!("{program}: not found"))),
        (None, false) => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{program}: not executable")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_passed_on() {
        let set = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let env = environment(&["CARGO_MANIFEST_DIR".to_owned(), "NO_SUCH_VARIABLE".to_owned()], &set);
        assert!(env.contains_key("PATH") && env.contains_key("CARGO_MANIFEST_DIR") && env["A"] == "1");
        assert!(!env.contains_key("CARGO_PKG_NAME") && !env.contains_key("NO_SUCH_VARIABLE"));
    }

    #[test]
    fn a_program_is_found_or_it_is_said_why_not() {
        let env = environment(&[], &BTreeMap::new());
        let found = |program: &str| find(program, Path::new("/"), &env).map_err(|error| error.to_string());
        assert!(found("sh").unwrap().ends_with("sh"));
        assert_eq!(found("no-such-agent").unwrap_err(), "no-such-agent: not found");
        assert_eq!(found("/etc/passwd").unwrap_err(), "/etc/passwd: not executable");
        assert_eq!(found("/etc/").unwrap_err(), "/etc/: not executable");
    }
}
