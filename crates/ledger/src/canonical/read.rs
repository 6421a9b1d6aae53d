//! Reads foreign JSON: the strict reader of `core`, with its error as one of the canonical form's.

use serde_json::Value;

use super::Error;

/// Parses one JSON text, or says what is wrong with it and where.
pub fn parse(text: &[u8]) -> Result<Value, Error> {
    baton_core::json::parse(text).map_err(|e| Error::Json(e.to_string()))
}
