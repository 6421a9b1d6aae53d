//! The tree against two other implementations of RFC 6962, over all sizes up to 300 and all positions.

use baton_core::Digest;
use baton_ledger::hash::{leaf, sha256};
use baton_ledger::merkle::{
    Frontier, check_consistency, check_inclusion, prove_consistency, prove_inclusion, stored_count,
    stored_index,
};
use ct_merkle::mem_backed_tree::MemoryBackedTree;
use tlog_tiles::tlog::{self, Hash, HashReader};

const SIZE_MAX: u64 = 300;

/// A tree grown leaf by leaf, with its stored nodes and the root at each size.
struct Tree {
    nodes: Vec<Digest>,
    roots: Vec<Digest>,
}

fn content(n: u64) -> Digest {
    sha256(&n.to_be_bytes())
}

fn grown(size: u64) -> Tree {
    let mut frontier = Frontier::default();
    let (mut nodes, mut roots) = (Vec::new(), vec![frontier.root()]);
    for n in 0..size {
        frontier.push(leaf(&content(n)), |node| nodes.push(node));
        roots.push(frontier.root());
    }
    Tree { nodes, roots }
}

impl Tree {
    fn inclusion(&self, index: u64, size: u64) -> Vec<Digest> {
        prove_inclusion(index, size, |at| self.nodes.get(at as usize).copied().ok_or(at)).unwrap()
    }

    fn consistency(&self, old: u64, new: u64) -> Vec<Digest> {
        prove_consistency(old, new, |at| self.nodes.get(at as usize).copied().ok_or(at)).unwrap()
    }

    fn includes(&self, index: u64, size: u64, proof: &[Digest]) -> bool {
        check_inclusion(index, size, leaf(&content(index)), proof, &self.roots[size as usize])
    }

    fn extends(&self, old: u64, new: u64, proof: &[Digest]) -> bool {
        check_consistency(old, new, &self.roots[old as usize], &self.roots[new as usize], proof)
    }
}

/// The same tree as the other implementation stores it.
struct Theirs(Vec<Hash>);

impl HashReader for Theirs {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<Hash>, tlog::Error> {
        Ok(indexes.iter().map(|at| self.0[*at as usize]).collect())
    }
}

fn theirs(size: u64) -> Theirs {
    let mut stored = Theirs(Vec::new());
    for n in 0..size {
        let more = tlog::stored_hashes(n, &content(n).0, &stored).unwrap();
        stored.0.extend(more);
    }
    stored
}

fn to_theirs(hashes: &[Digest]) -> Vec<Hash> {
    hashes.iter().map(|hash| Hash(hash.0)).collect()
}

fn to_ours(hashes: &[Hash]) -> Vec<Digest> {
    hashes.iter().map(|hash| Digest(hash.0)).collect()
}

/// Everything one step away from a proof: a bit flipped, a hash gone, doubled, exchanged or added.
fn mutations(proof: &[Digest], every_bit: bool) -> Vec<Vec<Digest>> {
    let mut out = Vec::new();
    for at in 0..proof.len() {
        let bits = if every_bit { (0..256).collect() } else { vec![at * 37 % 256, 255] };
        for bit in bits {
            let mut flipped = proof.to_vec();
            flipped[at].0[bit / 8] ^= 1 << (bit % 8);
            out.push(flipped);
        }
        let mut without = proof.to_vec();
        let removed = without.remove(at);
        out.push(without);
        let mut doubled = proof.to_vec();
        doubled.insert(at, removed);
        out.push(doubled);
        if at > 0 {
            let mut swapped = proof.to_vec();
            swapped.swap(at - 1, at);
            out.push(swapped);
        }
    }
    out.push([proof, &[Digest::ZERO]].concat());
    out.push([&[Digest::ZERO], proof].concat());
    out
}

#[test]
fn nodes_and_roots_are_those_of_both_other_implementations() {
    let (ours, theirs) = (grown(SIZE_MAX), theirs(SIZE_MAX));
    assert_eq!(to_theirs(&ours.nodes), theirs.0);
    let mut third: MemoryBackedTree<sha2::Sha256, Vec<u8>> = MemoryBackedTree::new();
    for size in 0..=SIZE_MAX {
        let root = ours.roots[size as usize];
        assert_eq!(tlog::tree_hash(size, &theirs).unwrap(), Hash(root.0), "{size}");
        assert_eq!(third.root().as_bytes().as_slice(), root.0, "{size}");
        third.push(content(size).0.to_vec());
    }
}

#[test]
fn nodes_lie_where_the_other_implementation_puts_them() {
    for size in 0..5000 {
        assert_eq!(stored_count(size), tlog::stored_hash_count(size), "{size}");
    }
    for level in 0..20u8 {
        for n in (0..200).chain([1 << 20, (1 << 30) + 7, 1 << 40]) {
            assert_eq!(stored_index(u32::from(level), n), tlog::stored_hash_index(level, n), "{level} {n}");
        }
    }
}

#[test]
fn a_frontier_is_taken_up_again_from_stored_nodes() {
    let tree = grown(SIZE_MAX);
    let mut grown = Frontier::default();
    for size in 0..=SIZE_MAX {
        let mut read =
            |at: u64| tree.nodes[..stored_count(size) as usize].get(at as usize).copied().ok_or(at);
        assert_eq!(Frontier::load(size, &mut read), Ok(grown.clone()), "{size}");
        grown.push(leaf(&content(size)), |_| ());
    }
    assert_eq!(Frontier::load(5, &mut |at| Err::<Digest, u64>(at)), Err(6), "a node that cannot be read");
}

#[test]
fn inclusion_proofs_are_the_same_and_each_side_accepts_the_others() {
    let (ours, theirs) = (grown(SIZE_MAX), theirs(SIZE_MAX));
    for size in 1..=SIZE_MAX {
        let root = Hash(ours.roots[size as usize].0);
        for index in 0..size {
            let proof = ours.inclusion(index, size);
            let other = tlog::prove_record(size, index, &theirs).unwrap();
            assert_eq!(to_theirs(&proof), other, "{index} of {size}");
            assert!(ours.includes(index, size, &to_ours(&other)), "{index} of {size}");
            let theirs = tlog::check_record(
                &to_theirs(&proof),
                size,
                root,
                index,
                tlog::record_hash(&content(index).0),
            );
            assert!(theirs.is_ok(), "{index} of {size}");
        }
    }
}

#[test]
fn consistency_proofs_are_the_same_and_each_side_accepts_the_others() {
    let (ours, theirs) = (grown(SIZE_MAX), theirs(SIZE_MAX));
    for new in 1..=SIZE_MAX {
        let new_root = Hash(ours.roots[new as usize].0);
        for old in 1..=new {
            let proof = ours.consistency(old, new);
            let other = tlog::prove_tree(new, old, &theirs).unwrap();
            assert_eq!(to_theirs(&proof), other, "{old} in {new}");
            assert!(ours.extends(old, new, &to_ours(&other)), "{old} in {new}");
            let old_root = Hash(ours.roots[old as usize].0);
            assert!(
                tlog::check_tree(&to_theirs(&proof), new, new_root, old, old_root).is_ok(),
                "{old} in {new}"
            );
        }
    }
}

#[test]
fn no_inclusion_proof_survives_a_change() {
    let tree = grown(SIZE_MAX);
    for size in 1..=SIZE_MAX {
        for index in 0..size {
            let proof = tree.inclusion(index, size);
            for wrong in mutations(&proof, size <= 20) {
                assert!(!tree.includes(index, size, &wrong), "{index} of {size}");
            }
            let (leaf_hash, root) = (leaf(&content(index)), &tree.roots[size as usize]);
            assert!(!check_inclusion(index, size, leaf(&content(index + 1)), &proof, root), "another leaf");
            assert!(!check_inclusion(index, size, content(index), &proof, root), "the content itself");
            assert!(
                !check_inclusion(index, size, leaf_hash, &proof, &tree.roots[size as usize - 1]),
                "another root"
            );
            assert!(!check_inclusion(size, size, leaf_hash, &proof, root), "beyond the end");
        }
    }
}

#[test]
fn no_consistency_proof_survives_a_change() {
    let tree = grown(SIZE_MAX);
    for new in (1..=SIZE_MAX).filter(|new| *new <= 130 || new % 7 == 0 || *new >= 250) {
        for old in 1..=new {
            let proof = tree.consistency(old, new);
            for wrong in mutations(&proof, new <= 20) {
                assert!(!tree.extends(old, new, &wrong), "{old} in {new}");
            }
            let (old_root, new_root) = (&tree.roots[old as usize], &tree.roots[new as usize]);
            assert!(!check_consistency(old, new, &tree.roots[old as usize - 1], new_root, &proof));
            assert!(!check_consistency(old, new, old_root, &tree.roots[new as usize - 1], &proof));
            assert!(
                !check_consistency(0, new, &tree.roots[0], new_root, &proof),
                "nothing is older than everything"
            );
            assert!(
                old == new || !check_consistency(new, old, new_root, old_root, &proof),
                "the other way round"
            );
        }
    }
}

#[test]
fn a_wrong_place_is_judged_as_the_other_implementation_judges_it() {
    let tree = grown(40);
    for size in 1..=40u64 {
        for index in 0..size {
            let proof = tree.inclusion(index, size);
            let (leaf_hash, root) = (leaf(&content(index)), tree.roots[size as usize]);
            for (i, n) in (0..44).flat_map(|n| (0..n + 2).map(move |i| (i, n))) {
                let ours = check_inclusion(i, n, leaf_hash, &proof, &root);
                let theirs =
                    tlog::check_record(&to_theirs(&proof), n, Hash(root.0), i, Hash(leaf_hash.0)).is_ok();
                assert_eq!(ours, theirs, "proof of {index} in {size} taken for {i} in {n}");
                // A path has the same turns in some trees of other sizes; the size is what the checkpoint's signature vouches for.
                assert!(!ours || i == index || n != size, "another index");
            }
        }
    }
}

#[test]
fn wrong_sizes_of_a_consistency_proof_are_judged_as_the_other_implementation_judges_them() {
    let tree = grown(24);
    for new in 1..=24u64 {
        for old in 1..=new {
            let proof = tree.consistency(old, new);
            let (old_root, new_root) = (tree.roots[old as usize], tree.roots[new as usize]);
            for (o, n) in (0..28).flat_map(|n| (0..28).map(move |o| (o, n))) {
                let ours = check_consistency(o, n, &old_root, &new_root, &proof);
                let theirs =
                    tlog::check_tree(&to_theirs(&proof), n, Hash(new_root.0), o, Hash(old_root.0)).is_ok();
                assert_eq!(ours, theirs, "proof of {old} in {new} taken for {o} in {n}");
            }
        }
    }
}
