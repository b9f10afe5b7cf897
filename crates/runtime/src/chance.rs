//! Everything random, from one number.
//!
//! A [`Seed`] hands out named streams. A stream depends on the seed and its own name only, so that a new consumer does
//! not shift what the others draw, and a failing seed stays a failing seed.

use std::fmt;
use std::num::ParseIntError;
use std::ops::Range;
use std::str::FromStr;

/// The number that decides everything random in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seed(pub u64);

impl Seed {
    /// The seed of a part of the system, from which it may hand out streams of its own.
    #[must_use]
    pub fn child(self, name: &str) -> Self {
        Self(mix(self.0 ^ mix(fnv1a(&[name]))))
    }

    /// The stream of this name: the same one each time it is asked for, from the start.
    pub fn stream(self, name: &str) -> Chance {
        Chance { state: self.child(name).0 }
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Seed {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// A stream of chance: splitmix64, which passes the usual batteries of tests and is no use as a secret.
#[derive(Debug, Clone)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// Any number.
    pub fn u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number below `bound`, or 0 when there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high word of the product is uniform up to a bias of bound/2^64, and needs no division.
        high_word(u128::from(self.u64()) * u128::from(bound))
    }

    /// A number in the range, or its start when it is empty.
    pub fn range(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    /// A number in `0.0..1.0`.
    #[allow(clippy::cast_precision_loss, reason = "53 bits are exactly what an f64 holds")]
    pub fn f64(&mut self) -> f64 {
        (self.u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts the items in any order (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// The numbers below `len` in any order.
    pub fn permutation(&mut self, len: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..len).collect();
        self.shuffle(&mut order);
        order
    }

    /// An id in the form of a random (version 4) UUID.
    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.u64(), self.u64());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0x0fff,
            low >> 48 & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff,
        )
    }

    #[allow(clippy::cast_possible_truncation, reason = "smaller than len, which is a usize")]
    fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }
}

/// 2^64 divided by the golden ratio, odd: the step of splitmix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of splitmix64: every bit of the input moves about half of the output.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[allow(clippy::cast_possible_truncation, reason = "the shift leaves 64 bits")]
fn high_word(wide: u128) -> u64 {
    (wide >> 64) as u64
}

/// FNV-1a over the parts: a hash that is the same in every process and every release, unlike the standard library's.
/// Each part ends with a byte that no UTF-8 text contains, so that `["ab", "c"]` and `["a", "bc"]` differ.
pub(crate) fn fnv1a(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_gives_the_numbers_of_its_reference_implementation() {
        let mut chance = Chance { state: 1_234_567 };
        let drawn: Vec<u64> = (0..3).map(|_| chance.u64()).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn a_stream_depends_on_its_seed_and_its_name_only() {
        let first = |seed, name| Seed(seed).stream(name).u64();
        assert_eq!(first(1, "uids"), first(1, "uids"));
        assert_ne!(first(1, "uids"), first(2, "uids"));
        assert_ne!(first(1, "uids"), first(1, "names"));
        assert_ne!(Seed(1).child("a").stream("b").u64(), Seed(1).child("b").stream("a").u64());
    }

    #[test]
    fn ranges_are_covered_and_never_left() {
        let mut chance = Seed(7).stream("ranges");
        let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| chance.range(3..8)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
        assert_eq!(chance.range(5..5), 5);
        assert_eq!(chance.below(0), 0);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&chance.f64())));
    }

    #[test]
    fn a_permutation_holds_every_number_once_and_differs_by_seed() {
        let permutation = |seed| Seed(seed).stream("order").permutation(50);
        let mut sorted = permutation(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
        assert_eq!(permutation(1), permutation(1));
        assert_ne!(permutation(1), permutation(2));
    }

    #[test]
    fn ids_have_the_form_of_a_version_4_uuid() {
        let mut chance = Seed(0).stream("uids");
        for _ in 0..100 {
            let id = chance.uuid();
            let lengths: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(id.as_bytes()[14], b'4', "{id}");
            assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
        }
        assert_ne!(chance.uuid(), chance.uuid());
    }

    #[test]
    fn the_hash_tells_apart_where_parts_end() {
        assert_ne!(fnv1a(&["ab", "c"]), fnv1a(&["a", "bc"]));
        assert_ne!(fnv1a(&["a", ""]), fnv1a(&["a"]));
    }
}
