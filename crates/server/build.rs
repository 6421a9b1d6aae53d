//! Puts the page into the binary: a table of the files of `web/dist`, by name. Without that folder the table is empty, and the build is as good.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let mut files = BTreeMap::new();
    // Debug builds read the folder when they are asked for a file.
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
        let web = here.join("../../web");
        let dist = web.join("dist");
        // What is not there counts as changed with every build: then whatever may make it is watched.
        let watched = if dist.exists() { &dist } else { &web };
        println!("cargo:rerun-if-changed={}", watched.display());
        if let Ok(dist) = dist.canonicalize() {
            for name in ["index.html", "index.html.gz"] {
                add(&mut files, name, &dist.join(name));
            }
            let assets = dist.join("assets");
            for entry in assets.read_dir().into_iter().flatten() {
                let entry = entry?;
                if let Some(name) = entry.file_name().to_str().filter(|name| is_plain(name)) {
                    add(&mut files, &format!("assets/{name}"), &entry.path());
                }
            }
        }
    }
    let mut table = String::from("&[\n");
    for (name, path) in files {
        let _ = writeln!(table, "    ({name:?}, include_bytes!({path:?})),");
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    fs::write(out.join("page.rs"), table)
}

fn add(files: &mut BTreeMap<String, PathBuf>, name: &str, path: &Path) {
    if path.is_file() {
        files.insert(name.to_owned(), path.to_owned());
    }
}

/// A name that is asked for as it is.
fn is_plain(name: &str) -> bool {
    !name.starts_with('.') && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}
