//! The order of versions.
//!
//! The reference is the order by which Tanzu releases are resolved: numbers, pre-release, then build metadata as tokens.
//! It compares two tokens as hexadecimal numbers when both are, and as text otherwise, which is no order: `10` < `2z` < `9`
//! as text, and `9` < `10` as numbers. Here the two classes are kept apart, numbers below text, as Semantic Versioning
//! does it for pre-releases.

use std::cmp::Ordering;

use super::KubernetesVersion;

impl Ord for KubernetesVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.minor, self.patch)
            .cmp(&(other.minor, other.patch))
            .then_with(|| pre_releases(self.pre_release(), other.pre_release()))
            .then_with(|| builds(self.build(), other.build()))
            // `+01` and `+1` are the same number, but not the same version.
            .then_with(|| self.text.cmp(&other.text))
    }
}

impl PartialOrd for KubernetesVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// As in Semantic Versioning: identifiers between dots, numbers below text, and a version without a pre-release last.
fn pre_releases(left: Option<&str>, right: Option<&str>) -> Ordering {
    match (left, right) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(left), Some(right)) => {
            let [left, right] =
                [left, right].map(|text| text.split('.').map(|token| Token::new(token, u8::is_ascii_digit)));
            left.cmp(right)
        }
    }
}

/// Pairwise, token by token: runs of letters and digits, and the delimiters between them (`-` is before `.`). Where one is
/// the beginning of the other, it comes first, and so does a version without build metadata.
fn builds(left: Option<&str>, right: Option<&str>) -> Ordering {
    tokens(left.unwrap_or_default()).cmp(tokens(right.unwrap_or_default()))
}

/// A run of letters and digits with the delimiter before it: as the runs and the delimiters alternate, comparing pairs is
/// comparing one by one.
fn tokens(text: &str) -> impl Iterator<Item = (Option<char>, Token<'_>)> {
    let mut before = None;
    text.split_inclusive(['.', '-']).map(move |piece| {
        let run = piece.trim_end_matches(['.', '-']);
        let token = Token::new(run, u8::is_ascii_hexdigit);
        (std::mem::replace(&mut before, piece.chars().next_back()), token)
    })
}

/// One token as it is compared. The order of the variants and of their fields is the order of tokens.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Token<'a> {
    /// Without its leading zeros, a longer number is a larger one, of any base and of any size.
    Number {
        digits: usize,
        text: &'a str,
    },
    Text(&'a str),
}

impl<'a> Token<'a> {
    fn new(text: &'a str, is_digit: fn(&u8) -> bool) -> Self {
        if text.as_bytes().iter().all(is_digit) {
            let text = text.trim_start_matches('0');
            Self::Number { digits: text.len(), text }
        } else {
            Self::Text(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The versions are in ascending order, each pair of them, both ways round.
    fn check(ascending: &[&str]) {
        let versions: Vec<KubernetesVersion> = ascending.iter().map(|text| text.parse().unwrap()).collect();
        for (at, low) in versions.iter().enumerate() {
            for high in &versions[at + 1..] {
                assert_eq!(low.cmp(high), Ordering::Less, "{low} and {high}");
                assert_eq!(high.cmp(low), Ordering::Greater, "{high} and {low}");
            }
        }
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        check(&["v1.9.10", "v1.10.9", "v1.16.7", "v1.16.10", "v2.0.0", "v18446744073709551615.0.0"]);
    }

    #[test]
    fn a_pre_release_is_before_its_release() {
        check(&[
            "v1.24.8",
            "v1.24.9-2",
            "v1.24.9-10",
            "v1.24.9-alpha",
            "v1.24.9-alpha.1",
            "v1.24.9-alpha.beta",
            "v1.24.9-beta.2",
            "v1.24.9-beta.11",
            "v1.24.9-rc.2",
            "v1.24.9",
        ]);
    }

    #[test]
    fn build_metadata_is_compared_token_by_token() {
        check(&[
            "v1.24.9",
            "v1.24.9+vmware",
            "v1.24.9+vmware.1",
            "v1.24.9+vmware.1-guest.1",
            "v1.24.9+vmware.1-tkg.1",
            "v1.24.9+vmware.1-tkg.1-rc.2",
            "v1.24.9+vmware.1-tkg.1.ab123fed",
            "v1.24.9+vmware.1-tkg.2",
            "v1.24.9+vmware.1-tkg.9",
            "v1.24.9+vmware.1-tkg.a",
            "v1.24.9+vmware.1-tkg.10",
            "v1.24.9+vmware.2-tkg.1",
            "v1.24.9+vmware.10",
        ]);
    }

    #[test]
    fn what_has_no_build_metadata_is_before_all_that_has_and_a_dash_before_a_dot() {
        check(&["v1.24.9-rc.2", "v1.24.9", "v1.24.9+0", "v1.24.9+vmware", "v1.24.9+vmware-1", "v1.24.9+vmware.1"]);
        check(&["v1.24.9+vmware.1-tkg.2", "v1.24.9+vmware.1-tkg.10", "v1.24.9+vmware.2-tkg.1"]);
        check(&["v1.24.9+9", "v1.24.9+a"]);
        check(&["v1.24.9+a", "v1.24.9+10"]);
    }

    #[test]
    fn what_the_reference_puts_in_a_circle_is_in_a_row() {
        check(&["v1.24.9+9", "v1.24.9+a", "v1.24.9+10", "v1.24.9+2z"]);
    }

    #[test]
    fn leading_zeros_in_a_commit_do_not_make_two_versions_one() {
        check(&["v1.24.9+00ab", "v1.24.9+0ab", "v1.24.9+ab", "v1.24.9+ac"]);
    }

    #[test]
    fn numbers_of_any_size_are_compared() {
        check(&["v1.24.9+99999999999999999999", "v1.24.9+100000000000000000000", "v1.24.9+100000000000000000001"]);
    }
}
