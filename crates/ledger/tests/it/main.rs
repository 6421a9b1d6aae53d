//! The ledger from outside: foreign vectors and implementations, journals that are honest, journals that are not.
//!
//! [`writer`] makes honest journals with the crate itself, [`forger`] dishonest ones from the format's page alone, [`reader`] holds the
//! bytes for the verifier.

#[cfg(test)]
mod bundle;
#[cfg(test)]
mod canonical;
#[cfg(test)]
mod canonical_random;
#[cfg(test)]
mod code_keys;
#[cfg(test)]
mod codes;
#[cfg(test)]
mod forged;
#[cfg(test)]
mod forger;
#[cfg(test)]
mod late;
#[cfg(test)]
mod merkle;
#[cfg(test)]
mod note;
#[cfg(test)]
mod order;
#[cfg(test)]
mod packer;
#[cfg(test)]
mod panics;
#[cfg(test)]
mod proof;
#[cfg(test)]
mod reader;
#[cfg(test)]
mod record;
#[cfg(test)]
mod refusal;
#[cfg(test)]
mod robust;
#[cfg(test)]
mod seal;
#[cfg(test)]
mod segments;
#[cfg(test)]
mod tamper;
#[cfg(test)]
mod writer;
