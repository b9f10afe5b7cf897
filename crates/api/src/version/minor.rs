//! Minor versions, and how far apart they are.

use std::fmt;
use std::num::NonZeroU64;

/// `1.24`: what the rules of skew speak about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MinorVersion {
    /// The first number.
    pub major: u64,
    /// The second number.
    pub minor: u64,
}

impl MinorVersion {
    /// The minor after this one; after the largest number there is none.
    pub fn next(self) -> Option<Self> {
        Some(Self { minor: self.minor.checked_add(1)?, ..self })
    }

    /// The minor before this one; before `.0` there is none.
    pub fn previous(self) -> Option<Self> {
        Some(Self { minor: self.minor.checked_sub(1)?, ..self })
    }

    /// How many minors this version is from another.
    pub fn distance_from(self, base: Self) -> MinorDistance {
        if self.major != base.major {
            return MinorDistance::OtherMajor;
        }
        match (
            NonZeroU64::new(self.minor.saturating_sub(base.minor)),
            NonZeroU64::new(base.minor.saturating_sub(self.minor)),
        ) {
            (Some(minors), _) => MinorDistance::Ahead(minors),
            (None, Some(minors)) => MinorDistance::Behind(minors),
            (None, None) => MinorDistance::Same,
        }
    }
}

impl fmt::Display for MinorVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// How many minors a version is ahead of another or behind it.
///
/// A type of its own, because the difference of two numbers is where version skew goes wrong: 1.2 is three minors behind
/// 1.5, not 2^64 - 3 ahead of it, and no number of minors leads from 1.36 to 2.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinorDistance {
    /// The same minor.
    Same,
    /// Newer by this many minors.
    Ahead(NonZeroU64),
    /// Older by this many minors.
    Behind(NonZeroU64),
    /// Another major, to which there is no distance.
    OtherMajor,
}

impl MinorDistance {
    /// Whether it is at most `behind_max` minors behind and at most `ahead_max` ahead. Another major never is.
    pub fn is_within(self, behind_max: u64, ahead_max: u64) -> bool {
        match self {
            Self::Same => true,
            Self::Ahead(minors) => minors.get() <= ahead_max,
            Self::Behind(minors) => minors.get() <= behind_max,
            Self::OtherMajor => false,
        }
    }

    /// The distance the other way.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Ahead(minors) => Self::Behind(minors),
            Self::Behind(minors) => Self::Ahead(minors),
            Self::Same | Self::OtherMajor => self,
        }
    }
}

impl fmt::Display for MinorDistance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |minors: NonZeroU64| if minors.get() == 1 { "" } else { "s" };
        match self {
            Self::Same => f.write_str("the same minor"),
            Self::Ahead(minors) => write!(f, "{minors} minor{} ahead", plural(*minors)),
            Self::Behind(minors) => write!(f, "{minors} minor{} behind", plural(*minors)),
            Self::OtherMajor => f.write_str("another major"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::KubernetesVersion;

    fn check(version: &str, base: &str, distance: &str) {
        let (version, base): (KubernetesVersion, KubernetesVersion) = (version.parse().unwrap(), base.parse().unwrap());
        assert_eq!(version.distance_from(&base).to_string(), distance, "{version} from {base}");
        assert_eq!(base.distance_from(&version), version.distance_from(&base).reversed());
    }

    #[test]
    fn distance_neither_underflows_nor_crosses_majors() {
        check("v1.24.9", "v1.24.0+vmware.1", "the same minor");
        check("v1.25.0", "v1.24.9", "1 minor ahead");
        check("v1.2.0", "v1.5.0", "3 minors behind");
        check("v2.0.0", "v1.36.0", "another major");
        check("v1.0.0", "v1.18446744073709551615.0", "18446744073709551615 minors behind");
    }

    #[test]
    fn skew_is_bounded_on_both_sides() {
        let distance = |minor: u64| MinorVersion { major: 1, minor }.distance_from(MinorVersion { major: 1, minor: 2 });
        // A kubelet may be up to three minors behind the API server, even where there are not so many.
        let within: Vec<bool> = (0..=3).map(|minor| distance(minor).is_within(3, 0)).collect();
        assert_eq!(within, [true, true, true, false]);
        assert!(!distance(0).is_within(1, 9));
        assert!(!MinorDistance::OtherMajor.is_within(u64::MAX, u64::MAX));
    }

    #[test]
    fn minors_have_neighbours_except_at_the_ends() {
        let minor = MinorVersion { major: 1, minor: 0 };
        assert_eq!(minor.previous(), None);
        assert_eq!(minor.next(), Some(MinorVersion { major: 1, minor: 1 }));
        assert_eq!(MinorVersion { major: 1, minor: u64::MAX }.next(), None);
    }
}
