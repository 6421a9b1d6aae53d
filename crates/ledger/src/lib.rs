//! Proves. Canonical bytes, hash chain, signatures, Merkle tree, checkpoints, bundles, attestations and the verifier.
//!
//! Nothing here touches a disk, a clock or a source of randomness: bytes arrive through the traits in [`verify`], keys and
//! times as values. `docs/protocol/ledger.md` describes every byte. Start at [`record`] and [`body`], then [`seal`], then [`verify`].

pub mod attest;
pub mod body;
pub mod bundle;
pub mod canonical;
pub mod guard;
pub mod hash;
pub mod id_window;
pub mod key;
pub mod keyring;
pub mod merkle;
pub mod note;
pub mod order;
pub mod proof;
pub mod record;
pub mod seal;
pub mod verify;
