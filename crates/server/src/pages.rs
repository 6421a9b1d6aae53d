//! The files of the page: in the binary, or in debug builds in a folder that is read at each request.

use std::borrow::Cow;

use axum::http::{HeaderMap, header};

/// A file as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub bytes: Cow<'static, [u8]>,
    pub is_gzip: bool,
}

/// A file of the page by its name below `web/dist`, packed where there is such a one and the client takes it.
pub fn find(name: &str, takes_gzip: bool) -> Option<File> {
    let packed = || bytes(&format!("{name}.gz")).map(|bytes| File { bytes, is_gzip: true });
    let plain = || bytes(name).map(|bytes| File { bytes, is_gzip: false });
    takes_gzip.then(packed).flatten().or_else(plain)
}

/// Whether a name is one of a file and leads nowhere else. What is packed has no name of its own.
pub fn is_plain(name: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty() && !name.starts_with('.') && !name.ends_with(".gz") && name.chars().all(is_known)
}

/// Whether a name is made of what is in the file, as the bundler makes them: `NAME-HASH.END`. Only such a file never changes.
pub fn is_hashed(name: &str) -> bool {
    let hash = name.rsplit_once('.').and_then(|(start, _)| start.rsplit_once('-')).map(|(_, hash)| hash);
    let is_hash = |hash: &str| {
        hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte))
    };
    hash.is_some_and(is_hash)
}

/// What a file is, by the end of its name.
pub fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Whether a client takes answers that are packed by gzip. Whoever says nothing takes what is not packed.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    let mut any = false;
    for item in lines.flat_map(|line| line.split(',')) {
        let mut parts = item.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let is_taken = weight.is_none_or(|weight| weight.parse::<f32>().is_ok_and(|weight| weight > 0.0));
        match name.to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => return is_taken,
            "*" => any = is_taken,
            _ => {}
        }
    }
    any
}

#[cfg(not(debug_assertions))]
fn bytes(name: &str) -> Option<Cow<'static, [u8]>> {
    const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));
    let at = FILES.binary_search_by_key(&name, |(name, _)| *name).ok()?;
    FILES.get(at).map(|(_, bytes)| Cow::Borrowed(*bytes))
}

/// Reads the folder that the page was built into, so that a page that is built anew is there at once. `BATON_PAGE_DIR` names another.
#[cfg(debug_assertions)]
fn bytes(name: &str) -> Option<Cow<'static, [u8]>> {
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/dist");
    let dir = std::env::var_os("BATON_PAGE_DIR").unwrap_or_else(|| built.into());
    std::fs::read(std::path::Path::new(&dir).join(name)).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_names_of_files_are_looked_for() {
        for name in ["app-1A2b.js", "a", "a_b.css", "a..b"] {
            assert!(is_plain(name), "{name}");
        }
        for name in ["", ".", "..", ".env", "a/b", "../a", "a\\b", "a%2fb", "a\0", "a b", "ä", "app.js.gz"] {
            assert!(!is_plain(name), "{name:?}");
        }
    }

    #[test]
    fn only_a_name_with_a_hash_is_made_of_what_is_in_the_file() {
        for name in ["page-GXA3ASOQ.js", "page-RPWVLWVC.css", "a-b-ABCD2345.js"] {
            assert!(is_hashed(name), "{name}");
        }
        for name in [
            "icon.svg",
            "page.js",
            "page-GXA3ASOQ",
            "my-icon.svg",
            "page-GXA3ASO1.js",
            "GXA3ASOQ.js",
            "page-gxa3asoq.js",
        ] {
            assert!(!is_hashed(name), "{name}");
        }
    }

    #[test]
    fn what_a_client_takes_is_read_as_it_was_meant() {
        let takes = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static(line));
            }
            takes_gzip(&headers)
        };
        for lines in [&["gzip"][..], &["br, GZIP;q=0.5"], &["*"], &["br", "gzip"], &["gzip; q=1"]] {
            assert!(takes(lines), "{lines:?}");
        }
        for lines in [&[][..], &["br"], &["gzip;q=0"], &["*, gzip;q=0.0"], &["*;q=0"], &["gzip;q=x"], &[""]] {
            assert!(!takes(lines), "{lines:?}");
        }
    }
}
