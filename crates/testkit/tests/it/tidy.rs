//! House rules as code: who may use whom, what the pure crates may not touch, licences, lengths, links.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn metadata() -> Value {
    let version = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    // What is built here has been fetched; what other platforms need has not.
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", host])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn files(dir: &Path, extension: &str, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "corpus" {
                files(&path, extension, out);
            }
        } else if path.extension().is_some_and(|e| e == extension) {
            out.push(path);
        }
    }
}

fn sources(dir: &str, extension: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    files(&root().join(dir), extension, &mut out);
    out.sort();
    out
}

#[test]
fn the_crates_depend_on_each_other_in_one_direction_only() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("baton-core", &[][..]),
        ("baton-ledger", &["baton-core"][..]),
        ("baton-store", &["baton-core", "baton-ledger"][..]),
        ("baton-runtime", &["baton-core", "baton-ledger", "baton-store"][..]),
        ("baton-server", &["baton-core", "baton-ledger", "baton-store", "baton-runtime"][..]),
        ("baton-cli", &["baton-core", "baton-ledger", "baton-store", "baton-runtime", "baton-server"][..]),
        ("baton-testkit", &["baton-core", "baton-ledger", "baton-store"][..]),
        (
            "baton-benches",
            &["baton-core", "baton-ledger", "baton-store", "baton-runtime", "baton-testkit"][..],
        ),
    ]);
    let metadata = metadata();
    let mut seen = BTreeSet::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let Some(may_use) = allowed.get(name) else {
            assert!(!name.starts_with("baton-"), "{name} has no place in the direction yet");
            continue;
        };
        seen.insert(name);
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            let is_dev = dependency["kind"] == "dev";
            let fits =
                !used.starts_with("baton-") || may_use.contains(&used) || (is_dev && used == "baton-testkit");
            assert!(fits, "{name} must not use {used}");
        }
    }
    assert_eq!(seen.len(), allowed.len());
}

#[test]
fn core_needs_nothing_but_json_and_errors() {
    let metadata = metadata();
    let core = metadata["packages"].as_array().unwrap().iter().find(|p| p["name"] == "baton-core").unwrap();
    let normal: BTreeSet<&str> = core["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|dependency| dependency["kind"].is_null())
        .map(|dependency| dependency["name"].as_str().unwrap())
        .collect();
    assert_eq!(normal, BTreeSet::from(["serde", "serde_json", "thiserror"]));
}

#[test]
fn the_pure_crates_touch_no_clock_no_randomness_and_no_outside_world() {
    let banned = [
        "std::fs",
        "std::net",
        "std::env",
        "std::process",
        "std::os",
        "std::io",
        "SystemTime",
        "Instant",
        "HashMap",
        "HashSet",
        "getrandom",
        "rand::",
        "OsRng",
        "thread::sleep",
        "println!",
        "eprintln!",
        "tokio",
    ];
    for dir in ["crates/core/src", "crates/ledger/src"] {
        for path in sources(dir, "rs") {
            if path.ends_with("tests.rs") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            // What follows the tests of a file is tests; they may be checked against the outside world.
            let code = text.split("#[cfg(test)]").next().unwrap();
            for (number, line) in
                code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
            {
                for word in banned {
                    assert!(
                        !line.contains(word),
                        "{}:{}: {word} has no place here",
                        path.display(),
                        number + 1
                    );
                }
            }
        }
    }
}

#[test]
fn the_ledger_is_built_without_a_source_of_randomness() {
    let metadata = metadata();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let name = |id: &str| {
        let packages = metadata["packages"].as_array().unwrap();
        packages.iter().find(|p| p["id"] == id).unwrap()["name"].as_str().unwrap().to_owned()
    };
    let mut todo: Vec<String> = nodes
        .iter()
        .map(|n| n["id"].as_str().unwrap().to_owned())
        .filter(|id| name(id) == "baton-ledger")
        .collect();
    let mut reached = BTreeSet::new();
    while let Some(id) = todo.pop() {
        if !reached.insert(id.clone()) {
            continue;
        }
        let node = nodes.iter().find(|n| n["id"] == id.as_str()).unwrap();
        for dependency in node["deps"].as_array().unwrap() {
            let is_normal =
                dependency["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].is_null());
            if is_normal {
                todo.push(dependency["pkg"].as_str().unwrap().to_owned());
            }
        }
    }
    let names: BTreeSet<String> = reached.iter().map(|id| name(id)).collect();
    for banned in ["getrandom", "rand", "tokio", "libc", "rustix"] {
        assert!(!names.contains(banned), "baton-ledger reaches {banned}");
    }
}

#[test]
fn serde_json_is_never_built_with_arbitrary_precision() {
    let metadata = metadata();
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let is_serde_json = node["id"].as_str().unwrap().contains("serde_json@");
        let features = node["features"].as_array().unwrap();
        assert!(!is_serde_json || !features.iter().any(|f| f == "arbitrary_precision"));
    }
}

#[test]
fn every_dependency_has_a_licence_that_ours_can_live_with() {
    let fits = [
        "MIT",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "ISC",
        "Zlib",
        "Unicode-3.0",
        "Unlicense",
        "CC0-1.0",
        "BSL-1.0",
        "0BSD",
    ];
    for package in metadata()["packages"].as_array().unwrap() {
        let licence = package["license"].as_str().unwrap_or("none");
        let name = package["name"].as_str().unwrap();
        assert!(fits.iter().any(|ok| licence.contains(ok)), "{name}: {licence}");
    }
}

#[test]
fn no_source_file_has_outgrown_its_reader() {
    for dir in ["crates", "benches", "fuzz/fuzz_targets"] {
        for path in sources(dir, "rs") {
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            assert!(lines <= 800, "{} has {lines} lines; look for the seam", path.display());
            if lines > 600 {
                println!("long: {} has {lines} lines", path.display());
            }
        }
    }
}

#[test]
fn every_test_file_is_part_of_a_test_binary() {
    for main in sources("crates", "rs").into_iter().filter(|path| path.ends_with("tests/it/main.rs")) {
        let text = fs::read_to_string(&main).unwrap();
        for entry in fs::read_dir(main.parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(
                name == "main" || text.contains(&format!("mod {name};")),
                "{} is in no test binary",
                path.display()
            );
        }
    }
}

#[test]
fn every_link_in_the_documents_leads_somewhere() {
    let mut pages = sources("docs", "md");
    pages.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
            .map(|n| root().join(n)),
    );
    for page in pages {
        let text = fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            assert!(page.parent().unwrap().join(target).exists(), "{}: {link} leads nowhere", page.display());
        }
    }
}

#[test]
fn every_file_that_the_architecture_names_exists() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut named = 0;
    for quoted in text.split('`').skip(1).step_by(2) {
        let is_ours = ["crates/", "docs/", "tools/", "benches/"].iter().any(|dir| quoted.starts_with(dir));
        if is_ours && !quoted.contains(' ') {
            assert!(root().join(quoted).exists(), "ARCHITECTURE.md names {quoted}");
            named += 1;
        }
    }
    assert!(named > 15, "only {named} files are named");
}
