//! The Merkle tree of RFC 6962: a frontier that grows leaf by leaf, and proofs from stored nodes.
//!
//! Complete subtrees never change, so their roots can be stored in the order in which they are completed; a proof reads a
//! handful of them. [`stored_index`] says where each one lies.

use baton_core::Digest;

use crate::hash::node;

/// The roots of the complete subtrees of a tree, largest first: all that is needed to grow it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    roots: Vec<Digest>,
}

impl Frontier {
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf and hands out every subtree root that it completes, lowest first (the leaf itself is one).
    pub fn push(&mut self, leaf: Digest, mut completed: impl FnMut(Digest)) {
        completed(leaf);
        let mut root = leaf;
        for _ in 0..self.size.trailing_ones() {
            // The number of roots is the number of one bits of the size, so there is one to take for each.
            if let Some(left) = self.roots.pop() {
                root = node(&left, &root);
                completed(root);
            }
        }
        self.roots.push(root);
        self.size += 1;
    }

    /// The tree's root; that of the empty tree is the SHA-256 of nothing.
    pub fn root(&self) -> Digest {
        let mut from_right = self.roots.iter().rev();
        match from_right.next() {
            None => crate::hash::sha256(b""),
            Some(last) => from_right.fold(*last, |right, left| node(left, &right)),
        }
    }

    /// Takes a frontier up again from stored nodes.
    pub fn load<E>(size: u64, read: &mut impl FnMut(u64) -> Result<Digest, E>) -> Result<Self, E> {
        let mut roots = Vec::new();
        let mut before = 0;
        for level in (0..64).rev() {
            if size >> level & 1 == 1 {
                roots.push(read(stored_index(level, before >> level))?);
                before += 1 << level;
            }
        }
        Ok(Frontier { size, roots })
    }
}

/// Where the root of the `n`-th complete subtree of 2^level leaves lies among the nodes stored in order of completion.
pub fn stored_index(level: u32, n: u64) -> u64 {
    // The subtree is completed by the leaf (n + 1)·2^level − 1; `level` nodes of that leaf's chain come before it.
    let last_leaf = ((n + 1) << level) - 1;
    stored_count(last_leaf) + u64::from(level)
}

/// How many nodes are stored for a tree of `size` leaves.
pub fn stored_count(size: u64) -> u64 {
    2 * size - u64::from(size.count_ones())
}

/// The root of the leaves `from..to` from stored nodes, where `from` is a multiple of the largest power of two below the length.
fn range_root<E>(from: u64, to: u64, read: &mut impl FnMut(u64) -> Result<Digest, E>) -> Result<Digest, E> {
    let length = to - from;
    if length.is_power_of_two() {
        let level = length.trailing_zeros();
        return read(stored_index(level, from >> level));
    }
    let split = from + split_point(length);
    Ok(node(&range_root(from, split, read)?, &range_root(split, to, read)?))
}

/// The largest power of two below `n`, for n ≥ 2.
fn split_point(n: u64) -> u64 {
    1 << (63 - (n - 1).leading_zeros())
}

/// The inclusion proof of a leaf in the tree of `size` leaves. `index` must be below `size`.
pub fn prove_inclusion<E>(
    index: u64,
    size: u64,
    mut read: impl FnMut(u64) -> Result<Digest, E>,
) -> Result<Vec<Digest>, E> {
    let (mut from, mut to) = (0, size);
    let mut siblings = Vec::new();
    while to - from > 1 {
        let split = from + split_point(to - from);
        if index < split {
            siblings.push(range_root(split, to, &mut read)?);
            to = split;
        } else {
            siblings.push(range_root(from, split, &mut read)?);
            from = split;
        }
    }
    siblings.reverse();
    Ok(siblings)
}

/// The proof that the tree of `old` leaves is a beginning of the tree of `new` leaves; 0 < old ≤ new.
pub fn prove_consistency<E>(
    old: u64,
    new: u64,
    mut read: impl FnMut(u64) -> Result<Digest, E>,
) -> Result<Vec<Digest>, E> {
    let (mut from, mut to) = (0, new);
    let mut out = Vec::new();
    // Walk down to the subtree that the old tree ends with, collecting the other side of each split.
    while old != to {
        let split = from + split_point(to - from);
        if old <= split {
            out.push(range_root(split, to, &mut read)?);
            to = split;
        } else {
            out.push(range_root(from, split, &mut read)?);
            from = split;
        }
    }
    // The old root itself is known to the reader where the old tree is a left-most complete subtree.
    if from != 0 {
        out.push(range_root(from, to, &mut read)?);
    }
    out.reverse();
    Ok(out)
}

/// Whether a proof leads from a leaf at `index` to the root of a tree of `size` leaves.
pub fn check_inclusion(index: u64, size: u64, leaf: Digest, proof: &[Digest], root: &Digest) -> bool {
    if index >= size {
        return false;
    }
    let mut path = proof.iter();
    let (mut at, mut last, mut hash) = (index, size - 1, leaf);
    while last > 0 {
        if at % 2 == 1 || at < last {
            let Some(sibling) = path.next() else { return false };
            hash = if at % 2 == 1 { node(sibling, &hash) } else { node(&hash, sibling) };
        }
        // A right-most node without a sibling moves up unchanged.
        at /= 2;
        last /= 2;
    }
    path.next().is_none() && hash == *root
}

/// Whether a proof shows that the tree with `old_root` is a beginning of the one with `new_root`.
pub fn check_consistency(old: u64, new: u64, old_root: &Digest, new_root: &Digest, proof: &[Digest]) -> bool {
    if old == 0 || old > new {
        return false;
    }
    if old == new {
        return proof.is_empty() && old_root == new_root;
    }
    let mut path = proof.iter();
    let (mut at, mut last) = (old - 1, new - 1);
    while at % 2 == 1 {
        at /= 2;
        last /= 2;
    }
    // A complete old tree is its own starting node.
    let start = if at == 0 { Some(old_root) } else { path.next() };
    let Some(start) = start else { return false };
    let (mut old_hash, mut new_hash) = (*start, *start);
    while last > 0 {
        if at % 2 == 1 {
            let Some(sibling) = path.next() else { return false };
            old_hash = node(sibling, &old_hash);
            new_hash = node(sibling, &new_hash);
        } else if at < last {
            let Some(sibling) = path.next() else { return false };
            new_hash = node(&new_hash, sibling);
        }
        at /= 2;
        last /= 2;
    }
    path.next().is_none() && old_hash == *old_root && new_hash == *new_root
}
