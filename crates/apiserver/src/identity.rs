//! Names and uids that the server makes: all from one seed, so that the same requests get the same answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of uids and name suffixes.
#[derive(Debug)]
pub struct Identities {
    seed: u64,
    counter: Arc<AtomicU64>,
}

impl Identities {
    /// A source that gives the same sequence for the same seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, counter: Arc::default() }
    }

    /// A source that will never give what this one gave, and goes its own way if its seed differs.
    #[must_use]
    pub fn fork(&self, seed: u64) -> Self {
        Self { seed, counter: Arc::new(AtomicU64::new(self.counter.load(Ordering::Relaxed))) }
    }

    /// From now on nothing is given that a source with the same seed gives before its draw of this number.
    pub fn skip_to(&self, draw: u64) {
        self.counter.fetch_max(draw, Ordering::Relaxed);
    }

    /// Where draws are counted.
    pub(crate) fn draws(&self) -> &Arc<AtomicU64> {
        &self.counter
    }

    fn next(&self) -> u64 {
        let n = self.counter.fetch_add(1, Ordering::Relaxed);
        mix(self.seed ^ mix(n.wrapping_add(0x9e37_79b9_7f4a_7c15)))
    }

    /// A uid in the form of a random UUID.
    pub fn uid(&self) -> String {
        let (high, low) = (self.next(), self.next());
        // Version 4 and the RFC 4122 variant: clients may parse it.
        let high = (high & 0xffff_ffff_ffff_0fff) | 0x4000;
        let low = (low & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }

    /// Five characters for `generateName`, from the alphabet that Kubernetes uses: no vowels, nothing that looks like another.
    pub fn suffix(&self) -> String {
        const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut bits = self.next();
        let mut suffix = String::with_capacity(5);
        for _ in 0..5 {
            suffix.push(char::from(ALPHABET[usize::try_from(bits % 27).unwrap_or_default()]));
            bits /= 27;
        }
        suffix
    }
}

/// splitmix64: every bit of the input reaches every bit of the output.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_seed_decides_every_identity() {
        let (a, b, other) = (Identities::new(7), Identities::new(7), Identities::new(8));
        let uids: Vec<String> = (0..1_000).map(|_| a.uid()).collect();
        assert!(uids.iter().all(|uid| *uid == b.uid()));
        assert_ne!(uids[0], other.uid());
        assert_eq!(uids.iter().collect::<BTreeSet<_>>().len(), uids.len());
        assert!(uids.iter().all(|uid| uid.len() == 36 && &uid[14..15] == "4" && "89ab".contains(&uid[19..20])));
        assert_eq!(a.suffix(), b.suffix());
    }

    #[test]
    fn a_fork_does_not_repeat_what_was_given() {
        let a = Identities::new(7);
        let first = a.uid();
        let fork = a.fork(7);
        assert_ne!(fork.uid(), first);
    }
}
