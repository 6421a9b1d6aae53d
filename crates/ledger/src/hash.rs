//! The digests of the format, each with its domain.

use baton_core::Digest;
use sha2::{Digest as _, Sha256};

/// What an agent's signature covers, before the body's digest.
pub const EVENT_DOMAIN: &[u8; 15] = b"baton/event/v1\n";
/// What a link's hash begins with.
pub const LINK_DOMAIN: &[u8; 14] = b"baton/link/v1\n";

/// SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// SHA-256 taken piece by piece.
#[derive(Debug, Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// The tree's leaf for an event's hash.
pub fn leaf(hash: &Digest) -> Digest {
    let mut input = [0; 33];
    input[1..].copy_from_slice(&hash.0);
    sha256(&input)
}

/// The tree's node over two others.
pub fn node(left: &Digest, right: &Digest) -> Digest {
    let mut input = [1; 65];
    input[1..33].copy_from_slice(&left.0);
    input[33..].copy_from_slice(&right.0);
    sha256(&input)
}

/// The bytes that an actor signs for an event.
pub fn signed_bytes(body: &Digest) -> [u8; 47] {
    let mut out = [0; 47];
    out[..15].copy_from_slice(EVENT_DOMAIN);
    out[15..].copy_from_slice(&body.0);
    out
}
