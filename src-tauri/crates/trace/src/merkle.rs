//! The Merkle tree of RFC 6962 §2.1 over the leaves' bytes.

use sha2::{Digest as _, Sha256};

/// A node of the tree.
pub type Hash = [u8; 32];

/// The hash of a leaf: SHA-256 over `0x00` and its bytes.
pub fn leaf_hash(bytes: &[u8]) -> Hash {
    Sha256::new().chain_update([0]).chain_update(bytes).finalize().into()
}

/// The hash of an inner node: SHA-256 over `0x01` and both children.
fn node_hash(left: &Hash, right: &Hash) -> Hash {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

fn empty_root() -> Hash {
    Sha256::digest([]).into()
}

/// The complete subtrees of a growing tree, largest first: enough to add a leaf and to know the root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontier {
    size: u64,
    peaks: Vec<Hash>,
}

impl Frontier {
    /// How many leaves.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf by its hash.
    pub fn push(&mut self, leaf: Hash) {
        let mut node = leaf;
        // Each complete subtree of the same height as the new node is merged with it: one for
        // every trailing 1 of the size.
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.peaks.pop() {
                node = node_hash(&left, &node);
            }
        }
        self.peaks.push(node);
        self.size += 1;
    }

    /// The tree's root.
    pub fn root(&self) -> Hash {
        let mut peaks = self.peaks.iter().rev();
        let Some(last) = peaks.next() else { return empty_root() };
        peaks.fold(*last, |right, left| node_hash(left, &right))
    }
}

/// The whole tree, for proofs. Holds 64 bytes for each leaf.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// `levels[h][i]` is the complete subtree of height `h` over the leaves from `i << h`.
    levels: Vec<Vec<Hash>>,
}

impl Tree {
    /// How many leaves.
    pub fn size(&self) -> u64 {
        self.levels.first().map_or(0, |level| level.len() as u64)
    }

    /// Adds a leaf by its hash.
    pub fn push(&mut self, leaf: Hash) {
        let mut node = leaf;
        let mut height = 0;
        loop {
            if self.levels.len() == height {
                self.levels.push(Vec::new());
            }
            let Some(level) = self.levels.get_mut(height) else { return };
            level.push(node);
            if level.len() % 2 == 1 {
                return;
            }
            let [.., left, right] = level.as_slice() else { return };
            node = node_hash(left, right);
            height += 1;
        }
    }

    /// The hash of a leaf, counted from 0.
    pub fn leaf(&self, index: u64) -> Option<Hash> {
        self.levels.first()?.get(usize::try_from(index).ok()?).copied()
    }

    /// The root over the first `size` leaves, if there are as many.
    pub fn root(&self, size: u64) -> Option<Hash> {
        if size == 0 { Some(empty_root()) } else { self.range(0, size) }
    }

    /// The proof that leaf `index` (from 0) is in the tree of `size` leaves (RFC 6962 §2.1.1).
    pub fn inclusion(&self, index: u64, size: u64) -> Option<Vec<Hash>> {
        if index >= size || size > self.size() {
            return None;
        }
        let (mut start, mut end, mut path) = (0, size, Vec::new());
        while end - start > 1 {
            let middle = start + split(end - start);
            if index < middle {
                path.push(self.range(middle, end)?);
                end = middle;
            } else {
                path.push(self.range(start, middle)?);
                start = middle;
            }
        }
        path.reverse();
        Some(path)
    }

    /// The proof that the tree of `old` leaves is the beginning of that of `size` (RFC 6962 §2.1.2).
    pub fn consistency(&self, old: u64, size: u64) -> Option<Vec<Hash>> {
        if old == 0 || old > size || size > self.size() {
            return None;
        }
        let (mut start, mut end, mut path, mut whole) = (0, size, Vec::new(), true);
        while old != end {
            let middle = start + split(end - start);
            if old <= middle {
                path.push(self.range(middle, end)?);
                end = middle;
            } else {
                path.push(self.range(start, middle)?);
                start = middle;
                whole = false;
            }
        }
        if !whole {
            path.push(self.range(start, end)?);
        }
        path.reverse();
        Some(path)
    }

    /// The subtree over the leaves from `start` to before `end`.
    fn range(&self, start: u64, end: u64) -> Option<Hash> {
        let count = end.checked_sub(start).filter(|count| *count > 0)?;
        if count.is_power_of_two() && start.is_multiple_of(count) {
            let level = self.levels.get(count.trailing_zeros() as usize)?;
            return level.get(usize::try_from(start / count).ok()?).copied();
        }
        let middle = start + split(count);
        Some(node_hash(&self.range(start, middle)?, &self.range(middle, end)?))
    }
}

/// The largest power of two below `count`, which is at least 2.
const fn split(count: u64) -> u64 {
    1 << (u64::BITS - 1 - (count - 1).leading_zeros())
}

/// Whether `path` proves that a leaf stands at `index` (from 0) in the tree of `size` with `root`.
pub fn verify_inclusion(leaf: &Hash, index: u64, size: u64, path: &[Hash], root: &Hash) -> bool {
    if index >= size {
        return false;
    }
    let (mut node, mut at, mut last) = (*leaf, index, size - 1);
    for step in path {
        if last == 0 {
            return false;
        }
        if at % 2 == 1 || at == last {
            node = node_hash(step, &node);
            while at.is_multiple_of(2) && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            node = node_hash(&node, step);
        }
        at >>= 1;
        last >>= 1;
    }
    last == 0 && node == *root
}

/// Whether `path` proves that the tree of `old` leaves is the beginning of the tree of `size`.
pub fn verify_consistency(old: u64, size: u64, path: &[Hash], old_root: &Hash, root: &Hash) -> bool {
    if old == size {
        return path.is_empty() && old_root == root;
    }
    if old == 0 || old > size {
        return false;
    }
    let mut steps = path.iter();
    // Where the old tree is complete its root is the first node and isn't repeated in the proof.
    let first = if old.is_power_of_two() { Some(old_root) } else { steps.next() };
    let Some(first) = first else { return false };
    let (mut at, mut last) = (old - 1, size - 1);
    while at % 2 == 1 {
        at >>= 1;
        last >>= 1;
    }
    let (mut old_node, mut node) = (*first, *first);
    for step in steps {
        if last == 0 {
            return false;
        }
        if at % 2 == 1 || at == last {
            old_node = node_hash(step, &old_node);
            node = node_hash(step, &node);
            while at.is_multiple_of(2) && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            node = node_hash(&node, step);
        }
        at >>= 1;
        last >>= 1;
    }
    last == 0 && old_node == *old_root && node == *root
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition of RFC 6962 §2.1, word for word.
    fn naive_root(leaves: &[Vec<u8>]) -> Hash {
        match leaves.len() {
            0 => Sha256::digest([]).into(),
            1 => leaf_hash(&leaves[0]),
            n => {
                let k = n.next_power_of_two() / 2;
                node_hash(&naive_root(&leaves[..k]), &naive_root(&leaves[k..]))
            }
        }
    }

    fn naive_path(m: usize, leaves: &[Vec<u8>]) -> Vec<Hash> {
        let n = leaves.len();
        if n == 1 {
            return Vec::new();
        }
        let k = n.next_power_of_two() / 2;
        let (mut path, other) = if m < k {
            (naive_path(m, &leaves[..k]), naive_root(&leaves[k..]))
        } else {
            (naive_path(m - k, &leaves[k..]), naive_root(&leaves[..k]))
        };
        path.push(other);
        path
    }

    fn naive_subproof(m: usize, leaves: &[Vec<u8>], whole: bool) -> Vec<Hash> {
        let n = leaves.len();
        if m == n {
            return if whole { Vec::new() } else { vec![naive_root(leaves)] };
        }
        let k = n.next_power_of_two() / 2;
        let (mut path, other) = if m <= k {
            (naive_subproof(m, &leaves[..k], whole), naive_root(&leaves[k..]))
        } else {
            (naive_subproof(m - k, &leaves[k..], false), naive_root(&leaves[..k]))
        };
        path.push(other);
        path
    }

    fn leaves(count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|i| format!("leaf {i}").into_bytes()).collect()
    }

    fn tree(leaves: &[Vec<u8>]) -> Tree {
        let mut tree = Tree::default();
        leaves.iter().for_each(|leaf| tree.push(leaf_hash(leaf)));
        tree
    }

    #[test]
    fn the_test_vectors_of_rfc_6962_hold() {
        let inputs: [&[u8]; 8] = [
            &[],
            &[0x00],
            &[0x10],
            &[0x20, 0x21],
            &[0x30, 0x31],
            &[0x40, 0x41, 0x42, 0x43],
            &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
            &[0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f],
        ];
        let mut frontier = Frontier::default();
        assert_eq!(hex::encode(frontier.root()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        inputs.iter().for_each(|input| frontier.push(leaf_hash(input)));
        assert_eq!(hex::encode(frontier.root()), "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328");
    }

    #[test]
    fn every_proof_of_small_trees_is_the_naive_one_and_holds() {
        for size in 1..=33_usize {
            let leaves = leaves(size);
            let tree = tree(&leaves);
            let root = naive_root(&leaves);
            assert_eq!(tree.root(size as u64).unwrap(), root);
            for index in 0..size {
                let path = tree.inclusion(index as u64, size as u64).unwrap();
                assert_eq!(path, naive_path(index, &leaves));
                assert!(verify_inclusion(&leaf_hash(&leaves[index]), index as u64, size as u64, &path, &root));
            }
            for old in 1..=size {
                let path = tree.consistency(old as u64, size as u64).unwrap();
                assert_eq!(path, naive_subproof(old, &leaves, true));
                let old_root = naive_root(&leaves[..old]);
                assert!(verify_consistency(old as u64, size as u64, &path, &old_root, &root));
            }
        }
    }

    proptest! {
        #[test]
        fn the_frontier_and_the_tree_agree_with_the_definition(count in 0_usize..300) {
            let leaves = leaves(count);
            let mut frontier = Frontier::default();
            leaves.iter().for_each(|leaf| frontier.push(leaf_hash(leaf)));
            let root = naive_root(&leaves);
            prop_assert_eq!(frontier.root(), root);
            prop_assert_eq!(frontier.size(), count as u64);
            prop_assert_eq!(tree(&leaves).root(count as u64).unwrap(), root);
        }

        #[test]
        fn a_changed_inclusion_proof_fails(size in 1_usize..200, seed: usize, byte in 0_usize..32, extra: bool) {
            let leaves = leaves(size);
            let (tree, index) = (tree(&leaves), seed % size);
            let (root, leaf) = (naive_root(&leaves), leaf_hash(&leaves[index]));
            let path = tree.inclusion(index as u64, size as u64).unwrap();
            let check = |leaf: &Hash, index: usize, path: &[Hash]| {
                verify_inclusion(leaf, index as u64, size as u64, path, &root)
            };
            prop_assert!(check(&leaf, index, &path));
            let mut other_leaf = leaf;
            other_leaf[byte] ^= 1;
            prop_assert!(!check(&other_leaf, index, &path));
            for other in (0..size).filter(|other| *other != index) {
                prop_assert!(!check(&leaf, other, &path));
            }
            for step in 0..path.len() {
                let mut bent = path.clone();
                bent[step][byte] ^= 1;
                prop_assert!(!check(&leaf, index, &bent));
            }
            let mut long = path.clone();
            if extra { long.push([0; 32]) } else { long.insert(0, [0; 32]) }
            prop_assert!(!check(&leaf, index, &long));
        }

        #[test]
        fn a_changed_consistency_proof_fails(size in 2_usize..200, seed: usize, byte in 0_usize..32) {
            let leaves = leaves(size);
            let (tree, old) = (tree(&leaves), 1 + seed % (size - 1));
            let (root, old_root) = (naive_root(&leaves), naive_root(&leaves[..old]));
            let path = tree.consistency(old as u64, size as u64).unwrap();
            let check = |path: &[Hash], old_root: &Hash, root: &Hash| {
                verify_consistency(old as u64, size as u64, path, old_root, root)
            };
            prop_assert!(check(&path, &old_root, &root));
            let mut bent = root;
            bent[byte] ^= 1;
            prop_assert!(!check(&path, &old_root, &bent));
            let mut bent = old_root;
            bent[byte] ^= 1;
            prop_assert!(!check(&path, &bent, &root));
            for step in 0..path.len() {
                let mut bent = path.clone();
                bent[step][byte] ^= 1;
                prop_assert!(!check(&bent, &old_root, &root));
            }
        }
    }
}
