//! The pre-filter against the strict rule: honest batches, broken ones, and signatures that were crafted to tell the two apart.

use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT as BASE, EIGHT_TORSION};

use super::*;
use crate::hash::sha256;
use crate::key::SecretKey;

/// Numbers from a seed, so that a failure can be repeated by it.
struct Seeded(u64);

impl Seeded {
    fn bytes(&mut self) -> [u8; 64] {
        self.0 += 1;
        Sha512::digest(self.0.to_be_bytes()).into()
    }

    fn scalar(&mut self) -> Scalar {
        Scalar::from_bytes_mod_order_wide(&self.bytes())
    }

    fn below(&mut self, n: usize) -> usize {
        self.bytes()[0] as usize % n
    }

    fn body(&mut self) -> Digest {
        sha256(&self.bytes())
    }
}

fn honest(count: usize, keys: u8) -> Vec<Task> {
    let secrets: Vec<SecretKey> = (1..=keys).map(|n| SecretKey::from_seed(&[n; 32].into())).collect();
    let task = |i: usize| {
        let (key, body) = (&secrets[i % secrets.len()], sha256(&i.to_be_bytes()));
        Task { key: *key.public(), body, signature: key.sign_event(&body) }
    };
    (0..count).map(task).collect()
}

fn strictly_failing(tasks: &[Task]) -> Vec<usize> {
    let holds = |task: &Task| task.key.verify_strict(&signed_bytes(&task.body), &task.signature);
    (0..tasks.len()).filter(|i| !holds(&tasks[*i])).collect()
}

/// A signature with a part of small order in the nonce's point, in the key, or in both.
fn crafted(random: &mut Seeded, in_key: usize, in_nonce: usize) -> Task {
    let (secret, nonce, body) = (random.scalar(), random.scalar(), random.body());
    let public = (secret * BASE + EIGHT_TORSION[in_key]).compress().0;
    let point = (nonce * BASE + EIGHT_TORSION[in_nonce]).compress().0;
    let s = nonce + challenge(&point, &public, &body) * secret;
    task(&public, body, &point, s.as_bytes())
}

fn challenge(point: &[u8; 32], public: &[u8; 32], body: &Digest) -> Scalar {
    let hash = Sha512::new().chain_update(point).chain_update(public).chain_update(signed_bytes(body));
    Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
}

fn task(public: &[u8; 32], body: Digest, point: &[u8; 32], s: &[u8; 32]) -> Task {
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(point);
    signature[32..].copy_from_slice(s);
    Task { key: PublicKey::from_bytes(public).unwrap(), body, signature: Signature(signature) }
}

/// The cofactored equation, which is all that a usual batch can see.
fn holds_up_to_small_order(task: &Task) -> bool {
    let (point, s) = task.signature.0.split_at(32);
    let point: [u8; 32] = point.try_into().unwrap();
    let s = Scalar::from_canonical_bytes(s.try_into().unwrap()).unwrap();
    let k = challenge(&point, task.key.as_bytes(), &task.body);
    let rest = s * BASE - k * task.key.point() - CompressedEdwardsY(point).decompress().unwrap();
    rest.mul_by_cofactor().is_identity()
}

#[test]
fn a_batch_of_good_signatures_by_several_keys_is_accepted_at_once() {
    let tasks = honest(200, 7);
    let mut checker = Checker::new(false);
    assert!(checker.accepts(&tasks));
    assert_eq!(checker.failing(&tasks), [0usize; 0]);
    assert_eq!(checker.torsion_free.len(), 7);
    for count in [0, 1, BATCH_MIN - 1, BATCH_MIN, BATCH_MIN + 1] {
        assert_eq!(checker.failing(&honest(count, 3)), [0usize; 0], "{count}");
        assert!(checker.accepts(&honest(count, 3)), "{count}");
    }
}

#[test]
fn the_one_broken_signature_of_a_batch_is_named() {
    let good = honest(200, 7);
    let mut checker = Checker::new(false);
    for at in 0..good.len() {
        for way in 0..4 {
            // Every place in one way, the first few in all of them.
            if at >= 8 && at % 4 != way {
                continue;
            }
            let mut tasks = good.clone();
            let bit = at * 29 % 255;
            match way {
                0 => tasks[at].signature.0[bit / 8] ^= 1 << (bit % 8),
                1 => tasks[at].signature.0[32 + bit / 8] ^= 1 << (bit % 8),
                2 => tasks[at].body.0[bit / 8] ^= 1 << (bit % 8),
                _ => tasks[at].key = good[(at + 1) % good.len()].key,
            }
            assert!(!checker.accepts(&tasks), "{at} broken in way {way}");
            assert_eq!(checker.failing(&tasks), [at], "{at} broken in way {way}");
        }
    }
}

#[test]
fn one_by_one_and_in_batches_the_same_are_named() {
    let mut tasks = honest(100, 5);
    for at in [0, 31, 32, 63, 99] {
        tasks[at].signature.0[40] ^= 4;
    }
    let mut each = Checker::new(true);
    assert_eq!(each.failing(&tasks), [0, 31, 32, 63, 99]);
    assert_eq!(each.failing(&honest(100, 5)), [0usize; 0]);
    assert!(each.torsion_free.is_empty(), "one by one, no batch is tried");
    assert_eq!(Checker::new(false).failing(&tasks), [0, 31, 32, 63, 99]);
}

#[test]
fn signatures_with_a_part_of_small_order_are_judged_as_the_strict_rule_judges_them() {
    let good = honest(40, 3);
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..200 {
        let mut random = Seeded(seed * 1000);
        let (in_key, in_nonce) =
            [(0, 1 + random.below(7)), (1 + random.below(7), 0), (1 + random.below(7), 1 + random.below(7))]
                [seed as usize % 3];
        let crafted = crafted(&mut random, in_key, in_nonce);
        assert!(holds_up_to_small_order(&crafted), "seed {seed}: what a usual batch accepts");
        let mut tasks = good.clone();
        let at = random.below(tasks.len());
        tasks[at] = crafted;
        let expected = strictly_failing(&tasks);
        let mut checker = Checker::new(false);
        assert!(!checker.accepts(&tasks), "seed {seed}: the pre-filter leaves it to the strict rule");
        assert_eq!(checker.failing(&tasks), expected, "seed {seed}");
        if expected.is_empty() { accepted += 1 } else { refused += 1 }
    }
    // With a part in the key alone, the strict equation holds where the challenge annihilates it.
    assert!(accepted > 5 && refused > 100, "{accepted} accepted, {refused} refused");
}

#[test]
fn parts_of_small_order_that_cancel_each_other_are_found() {
    let good = honest(40, 3);
    for seed in 0..200 {
        let mut random = Seeded(1_000_000 + seed * 1000);
        let part = 1 + random.below(7);
        let mut tasks = good.clone();
        let (a, b) = (random.below(20), 20 + random.below(20));
        tasks[a] = crafted(&mut random, 0, part);
        tasks[b] = crafted(&mut random, 0, 8 - part);
        assert!(tasks.iter().all(holds_up_to_small_order));
        let sum = decode(&tasks[a].signature).unwrap() + decode(&tasks[b].signature).unwrap();
        assert!(is_torsion_free(&sum), "the parts cancel");
        let mut checker = Checker::new(false);
        assert!(!checker.accepts(&tasks), "seed {seed}");
        assert_eq!(checker.failing(&tasks), [a, b], "seed {seed}");
    }
    // The whole batch crafted, with a sum of zero.
    let mut random = Seeded(7);
    let tasks: Vec<Task> = (0..64).map(|_| crafted(&mut random, 0, 4)).collect();
    assert_eq!(Checker::new(false).failing(&tasks), (0..64).collect::<Vec<_>>());
}

#[test]
fn a_mixed_key_may_sign_what_the_strict_rule_takes() {
    // The nonce's point is shifted so that the cofactorless equation holds exactly.
    let mut random = Seeded(99);
    let (secret, body) = (random.scalar(), random.body());
    let public = (secret * BASE + EIGHT_TORSION[1]).compress().0;
    let found = std::iter::repeat_with(|| random.scalar()).take(100).find_map(|nonce| {
        (0..8).find_map(|part| {
            let point = (nonce * BASE + EIGHT_TORSION[part]).compress().0;
            let k = challenge(&point, &public, &body);
            let needed = (k * EIGHT_TORSION[1] + EIGHT_TORSION[part]).is_identity();
            (needed && part > 0).then(|| task(&public, body, &point, (nonce + k * secret).as_bytes()))
        })
    });
    let mut tasks = honest(40, 3);
    tasks.push(found.unwrap());
    assert_eq!(strictly_failing(&tasks), [0usize; 0]);
    assert_eq!(Checker::new(false).failing(&tasks), [0usize; 0]);
}

#[test]
fn two_keys_with_the_same_id_are_not_taken_for_one_another() {
    // Ids have 64 bits; whoever wants two keys with the same one can find them, and bind them in two traces.
    let victim = *SecretKey::from_seed(&[1; 32].into()).public();
    let mut random = Seeded(5);
    let secret = random.scalar();
    let mine = PublicKey::from_bytes(&(secret * BASE).compress().0).unwrap().with_id(victim.id());
    let mut forge = |claimed: PublicKey| {
        let (nonce, body) = (random.scalar(), random.body());
        let point = (nonce * BASE).compress().0;
        let s = nonce + challenge(&point, claimed.as_bytes(), &body) * secret;
        Task { key: claimed, ..task(claimed.as_bytes(), body, &point, s.as_bytes()) }
    };
    // One good signature by the second key; the rest claim to be the first one's. Put together under the id, the equation would hold.
    let mut tasks = vec![forge(mine)];
    tasks.extend((1..40).map(|_| forge(victim)));
    assert_eq!(strictly_failing(&tasks), (1..40).collect::<Vec<_>>());
    assert_eq!(Checker::new(false).failing(&tasks), (1..40).collect::<Vec<_>>());
    // A key with a part of small order does not hide behind the id of one without.
    let mixed = (secret * BASE + EIGHT_TORSION[3]).compress().0;
    let mixed = PublicKey::from_bytes(&mixed).unwrap().with_id(victim.id());
    let mut checker = Checker::new(false);
    let mut tasks = honest(40, 1);
    assert!(checker.accepts(&tasks));
    tasks[20].key = mixed;
    assert!(!checker.accepts(&tasks));
    assert_eq!(checker.torsion_free.values().filter(|free| !**free).count(), 1);
}

/// 2^255 − 19 + i, another spelling of i.
fn above_the_prime(i: u8) -> [u8; 32] {
    let mut bytes = [0xff; 32];
    (bytes[0], bytes[31]) = (0xed + i, 0x7f);
    bytes
}

/// The encodings of points of small order from the format's page.
const SMALL_ORDER: [&str; 10] = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
];

/// The page's encodings of small order, and every spelling of a number from the prime on.
fn bad_encodings() -> Vec<[u8; 32]> {
    let mut all: Vec<[u8; 32]> =
        SMALL_ORDER.iter().map(|hex| Digest::from_hex(hex.as_bytes()).unwrap().0).collect();
    for i in 0..=18 {
        let bytes = above_the_prime(i);
        all.push(bytes);
        all.push(std::array::from_fn(|at| bytes[at] | if at == 31 { 0x80 } else { 0 }));
    }
    all
}

#[test]
fn points_of_small_order_and_other_spellings_are_no_keys() {
    for bytes in bad_encodings() {
        assert!(PublicKey::from_bytes(&bytes).is_err(), "{bytes:02x?}");
    }
    for point in EIGHT_TORSION {
        assert!(SMALL_ORDER.contains(&Digest(point.compress().0).to_string().as_str()));
    }
}

#[test]
fn points_of_small_order_and_other_spellings_are_no_nonces() {
    let good = honest(40, 3);
    let mut random = Seeded(11);
    for bytes in bad_encodings() {
        let (secret, body) = (random.scalar(), random.body());
        let public = (secret * BASE).compress().0;
        // As if the nonce were zero, which is right for the identity in all its spellings.
        let s = challenge(&bytes, &public, &body) * secret;
        let mut tasks = good.clone();
        tasks[17] = task(&public, body, &bytes, s.as_bytes());
        let mut checker = Checker::new(false);
        assert!(!checker.accepts(&tasks), "{bytes:02x?}");
        assert_eq!(checker.failing(&tasks), [17], "{bytes:02x?}");
        assert_eq!(strictly_failing(&tasks), [17], "{bytes:02x?}");
    }
}

#[test]
fn a_signature_has_one_number_only() {
    // The group order, little-endian: S + L would satisfy the equation as well.
    let order: [u8; 32] = {
        let minus_one = (-Scalar::ONE).to_bytes();
        std::array::from_fn(|at| minus_one[at] + u8::from(at == 0))
    };
    let good = honest(40, 3);
    for at in 0..good.len() {
        let mut tasks = good.clone();
        let mut carry = 0;
        for (byte, more) in tasks[at].signature.0[32..].iter_mut().zip(order) {
            let sum = u16::from(*byte) + u16::from(more) + carry;
            (*byte, carry) = (sum as u8, sum >> 8);
        }
        assert_eq!(carry, 0);
        let mut checker = Checker::new(false);
        assert!(!checker.accepts(&tasks));
        assert_eq!(checker.failing(&tasks), [at]);
    }
}

#[test]
fn the_same_batch_draws_the_same_numbers_and_another_batch_others() {
    let (a, mut b) = (honest(3, 1), honest(3, 1));
    let draw = |tasks: &[Task]| Randomness::from_batch(tasks).block();
    assert_eq!(draw(&a), draw(&b));
    b[2].signature.0[63] ^= 1;
    assert_ne!(draw(&a), draw(&b));
    let mut random = Randomness::from_batch(&a);
    assert_ne!(random.block(), random.block());
}
