//! Many signatures at once: a pre-filter that may only say yes where the strict rule would.
//!
//! The usual batch equation is blind to parts of small order: a key's holder can craft a signature that a batch accepts and the strict rule
//! refuses, and later disown it. Here every R must also be free of such a part, which is shown for all of them together by random
//! subset sums, each caught wrong with a probability of at least one half. Whatever the batch does not accept, the strict rule judges one by one.
//!
//! The random numbers come from a hash of the whole batch, so the same input gives the same answer.

use std::collections::BTreeMap;

use baton_core::Digest;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, IsIdentity, VartimeMultiscalarMul};
use sha2::{Digest as _, Sha512};

use crate::hash::signed_bytes;
use crate::key::{PublicKey, Signature};

/// A signature to be checked: who, over what.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub key: PublicKey,
    pub body: Digest,
    pub signature: Signature,
}

impl AsRef<Task> for Task {
    fn as_ref(&self) -> &Task {
        self
    }
}

/// Subset sums per batch: a crafted signature passes with a probability of at most 2^-64.
const ROUNDS: usize = 64;
const BYTES: usize = ROUNDS / 8;

/// Below this many, one by one is as quick.
const BATCH_MIN: usize = 32;

/// Checks signatures and remembers which keys lie in the prime-order group.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    one_by_one: bool,
    /// By the whole key: ids are short enough that two keys with the same one can be made.
    torsion_free: BTreeMap<[u8; 32], bool>,
}

impl Checker {
    pub(crate) fn new(one_by_one: bool) -> Self {
        Checker { one_by_one, torsion_free: BTreeMap::new() }
    }

    /// The numbers of the tasks whose signature does not check.
    pub(crate) fn failing<T: AsRef<Task>>(&mut self, tasks: &[T]) -> Vec<usize> {
        if !self.one_by_one && tasks.len() >= BATCH_MIN && self.accepts(tasks) {
            return Vec::new();
        }
        let holds = |task: &Task| task.key.verify_event(&task.body, &task.signature);
        (0..tasks.len()).filter(|i| !holds(tasks[*i].as_ref())).collect()
    }

    /// Whether all of them certainly satisfy the strict rule. `false` says nothing about any one of them.
    fn accepts<T: AsRef<Task>>(&mut self, tasks: &[T]) -> bool {
        let mut points = Vec::with_capacity(tasks.len());
        for task in tasks.iter().map(AsRef::as_ref) {
            let free = self.torsion_free.entry(*task.key.as_bytes());
            let free = free.or_insert_with(|| is_torsion_free(&task.key.point()));
            let Some(point) = free.then(|| decode(&task.signature)).flatten() else { return false };
            points.push(point);
        }
        let mut random = Randomness::from_batch(tasks);
        equation_holds(tasks, &points, &mut random) && all_torsion_free(&points, &mut random)
    }
}

/// R as a point, where its encoding is canonical and not of small order.
fn decode(signature: &Signature) -> Option<EdwardsPoint> {
    let bytes: [u8; 32] = signature.0[..32].try_into().ok()?;
    if !is_canonical(&bytes) {
        return None;
    }
    let point = CompressedEdwardsY(bytes).decompress()?;
    // Everything else of small order has a part that the subset sums find; the identity alone has none.
    (!point.is_identity()).then_some(point)
}

/// Whether the lower 255 bits are a number below 2^255 − 19.
fn is_canonical(bytes: &[u8; 32]) -> bool {
    bytes[0] < 0xed || bytes[1..31].iter().any(|b| *b != 0xff) || bytes[31] & 0x7f != 0x7f
}

fn is_torsion_free(point: &EdwardsPoint) -> bool {
    // [L − 1]P = −P says that the group order annihilates P.
    let minus = EdwardsPoint::vartime_double_scalar_mul_basepoint(&-Scalar::ONE, point, &Scalar::ZERO);
    (minus + point).is_identity()
}

/// Σ z·S · B = Σ z·R + Σ (Σ z·k) · A, with the terms of equal keys put together.
fn equation_holds<T: AsRef<Task>>(tasks: &[T], points: &[EdwardsPoint], random: &mut Randomness) -> bool {
    let mut base = Scalar::ZERO;
    let mut by_key: BTreeMap<[u8; 32], (EdwardsPoint, Scalar)> = BTreeMap::new();
    let mut scalars = Vec::with_capacity(tasks.len() + 17);
    for task in tasks.iter().map(AsRef::as_ref) {
        let (r, s) = task.signature.0.split_at(32);
        let s: Option<Scalar> = s.try_into().ok().and_then(|s| Scalar::from_canonical_bytes(s).into());
        let Some(s) = s else { return false };
        let mut hash = Sha512::new();
        hash.update(r);
        hash.update(task.key.as_bytes());
        hash.update(signed_bytes(&task.body));
        let k = Scalar::from_bytes_mod_order_wide(&hash.finalize().into());
        let z = random.scalar();
        base += z * s;
        by_key.entry(*task.key.as_bytes()).or_insert_with(|| (task.key.point(), Scalar::ZERO)).1 += z * k;
        scalars.push(z);
    }
    scalars.extend(by_key.values().map(|(_, sum)| *sum));
    scalars.push(-base);
    let keys = by_key.values().map(|(point, _)| point);
    let base_point = [curve25519_dalek::constants::ED25519_BASEPOINT_POINT];
    let all = points.iter().chain(keys).chain(&base_point);
    EdwardsPoint::vartime_multiscalar_mul(&scalars, all).is_identity()
}

/// Whether no point has a part of small order: 64 random subset sums, eight at a time by buckets.
fn all_torsion_free(points: &[EdwardsPoint], random: &mut Randomness) -> bool {
    let mut buckets = vec![EdwardsPoint::identity(); BYTES * 256];
    for point in points {
        for (group, choice) in random.bytes().into_iter().enumerate() {
            let bucket = &mut buckets[group * 256 + usize::from(choice)];
            *bucket += point;
        }
    }
    buckets.chunks_exact_mut(256).all(|group| {
        let mut length = 256;
        while length > 1 {
            // The upper half holds the points whose highest bit is set: their sum is one subset; then fold it away.
            let (lower, upper) = group[..length].split_at_mut(length / 2);
            let sum = upper.iter().fold(EdwardsPoint::identity(), |sum, point| sum + point);
            if !is_torsion_free(&sum) {
                return false;
            }
            lower.iter_mut().zip(upper.iter()).for_each(|(low, high)| *low += high);
            length /= 2;
        }
        true
    })
}

/// Numbers that nobody can choose without choosing the whole batch.
struct Randomness {
    seed: [u8; 64],
    counter: u64,
}

impl Randomness {
    fn from_batch<T: AsRef<Task>>(tasks: &[T]) -> Self {
        let mut hash = Sha512::new();
        hash.update(b"baton/batch/v1\n");
        for task in tasks.iter().map(AsRef::as_ref) {
            hash.update(task.key.as_bytes());
            hash.update(task.body.0);
            hash.update(task.signature.0);
        }
        Randomness { seed: hash.finalize().into(), counter: 0 }
    }

    fn block(&mut self) -> [u8; 64] {
        let mut hash = Sha512::new();
        hash.update(self.seed);
        hash.update(self.counter.to_le_bytes());
        self.counter += 1;
        hash.finalize().into()
    }

    /// A scalar of 128 bits.
    fn scalar(&mut self) -> Scalar {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.block()[..16]);
        Scalar::from_bytes_mod_order(bytes)
    }

    fn bytes(&mut self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(&self.block()[..BYTES]);
        bytes
    }
}

#[cfg(test)]
mod tests;
