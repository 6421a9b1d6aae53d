//! Canonical JSON (RFC 8785): the only road by which JSON reaches hashed bytes.
//!
//! Three doors: [`to_bytes`] prints a value, [`parse`] reads foreign JSON strictly, [`scan`] checks that bytes *are*
//! canonical without building anything. None of them depends on how `serde_json` keeps its maps.

mod read;
pub mod scan;
mod write;

pub use read::parse;
pub use scan::Scanner;
pub(crate) use write::{push_integer, write_members};
pub use write::{push_string, settle, to_bytes, write_value};

/// Why JSON has no canonical form here, or bytes are not canonical.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("integer {0} is outside ±(2^53−1); send it as a string")]
    IntegerRange(String),
    #[error("nested deeper than {0} levels")]
    Depth(usize),
    #[error("{0}")]
    Json(String),
    #[error("not canonical at byte {at}: expected {expected}")]
    NotCanonical { at: usize, expected: &'static str },
}
