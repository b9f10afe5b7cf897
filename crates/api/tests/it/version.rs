//! Versions: total order, spellings that lead back, prefixes, distance.

use std::cmp::Ordering;

use proptest::prelude::*;
use windlass_api::version::{KubernetesVersion, MinorDistance, VersionPrefix};

/// Few and similar tokens, so that versions are often equal up to one of them.
fn token() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["0", "1", "2", "9", "10", "a", "2z", "rc", "tkg", "vmware", "00ab", "0ab", "ab"])
            .prop_map(str::to_owned),
        "[a-z0-9]{1,4}",
    ]
}

fn tokens() -> impl Strategy<Value = String> {
    (token(), prop::collection::vec((prop::sample::select(vec!['.', '-']), token()), 0..4)).prop_map(|(first, rest)| {
        rest.into_iter().fold(first, |mut text, (delimiter, token)| {
            text.push(delimiter);
            text.push_str(&token);
            text
        })
    })
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..3_u64, 1 => 9..12_u64, 1 => Just(u64::MAX)]
}

fn version() -> impl Strategy<Value = KubernetesVersion> {
    (number(), number(), number(), prop::option::of(tokens()), prop::option::of(tokens())).prop_filter_map(
        "a numeric token of a pre-release with a leading zero, or too long",
        |(major, minor, patch, pre_release, build)| {
            let pre_release = pre_release.map(|text| format!("-{text}")).unwrap_or_default();
            let build = build.map(|text| format!("+{text}")).unwrap_or_default();
            format!("v{major}.{minor}.{patch}{pre_release}{build}").parse().ok()
        },
    )
}

/// Versions that differ after their numbers only, if at all, by tokens that are easily put in a wrong order.
fn sibling() -> impl Strategy<Value = KubernetesVersion> {
    let token = || prop::sample::select(vec!["1", "01", "9", "10", "a", "2z", "rc", "tkg"]);
    let pre_release =
        prop::option::weighted(0.2, prop::sample::select(vec!["1", "10", "9", "a", "2z", "rc.1", "rc-1"]));
    (pre_release, prop::collection::vec(token(), 1..3)).prop_map(|(pre_release, build)| {
        let pre_release = pre_release.map(|text| format!("-{text}")).unwrap_or_default();
        format!("v1.24.9{pre_release}+{}", build.join(".")).parse().unwrap()
    })
}

fn is_label_value(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let edges = |edge: &[char]| !text.starts_with(edge) && !text.ends_with(edge);
    (1..=63).contains(&text.len()) && text.bytes().all(fits) && edges(&['-', '_', '.'])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_order_is_total_and_antisymmetric(versions in prop_oneof![1 => [version(), version()], 4 => [sibling(), sibling()]]) {
        let [left, right] = versions;
        prop_assert_eq!(left.cmp(&right), right.cmp(&left).reverse());
        prop_assert_eq!(left.cmp(&right) == Ordering::Equal, left == right);
        prop_assert_eq!(left == right, left.as_str() == right.as_str());
    }

    #[test]
    fn the_order_is_transitive(versions in [sibling(), sibling(), sibling()]) {
        for [low, middle, high] in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let [low, middle, high] = [&versions[low], &versions[middle], &versions[high]];
            prop_assert!(low > middle || middle > high || low <= high, "{} <= {} <= {}", low, middle, high);
        }
    }

    #[test]
    fn every_spelling_leads_back(version in version()) {
        let spellings = [
            version.to_string(),
            version.bare().to_string(),
            version.label().to_string(),
            version.tag().to_string(),
        ];
        for text in spellings {
            prop_assert_eq!(&text.parse::<KubernetesVersion>().unwrap(), &version, "{}", text);
        }
        let dashed = version.dashed().to_string();
        prop_assert_eq!(&KubernetesVersion::from_dashed(&dashed).unwrap(), &version, "{}", dashed);
    }

    #[test]
    fn every_version_can_be_a_label_a_tag_and_a_name(version in version()) {
        prop_assert!(is_label_value(&version.label().to_string()));
        prop_assert!(is_label_value(&version.tag().to_string()));
        prop_assert!(version.label().to_string().parse::<windlass_api::name::ReleaseName>().is_ok());
        prop_assert!(version.dashed().to_string().parse::<windlass_api::name::ObjectName>().is_ok());
    }

    #[test]
    fn different_versions_have_different_spellings(left in version(), right in version()) {
        if left != right {
            prop_assert_ne!(left.label().to_string(), right.label().to_string());
            prop_assert_ne!(left.tag().to_string(), right.tag().to_string());
            prop_assert_ne!(left.dashed().to_string(), right.dashed().to_string());
        }
    }

    #[test]
    fn a_version_matches_its_own_prefixes_and_no_others(version in version(), other in version()) {
        let own: Vec<VersionPrefix> = version.prefixes().collect();
        for prefix in &own {
            prop_assert!(prefix.matches(&version), "{}", prefix);
            prop_assert_eq!(&prefix.to_string().parse::<VersionPrefix>().unwrap(), prefix);
            prop_assert_eq!(&prefix.label().to_string().parse::<VersionPrefix>().unwrap(), prefix);
        }
        for prefix in other.prefixes() {
            prop_assert_eq!(prefix.matches(&version), own.contains(&prefix), "{} and {}", prefix, version);
        }
    }

    #[test]
    fn only_the_whole_version_is_all_of_it(version in version()) {
        let whole = version.prefixes().filter(|prefix| prefix.is_all_of(&version)).count();
        prop_assert_eq!(whole, 1);
        prop_assert!(VersionPrefix::from(version.clone()).is_all_of(&version));
    }

    #[test]
    fn distance_is_the_same_both_ways_and_agrees_with_the_order(left in version(), right in version()) {
        let distance = left.distance_from(&right);
        prop_assert_eq!(distance, right.distance_from(&left).reversed());
        match distance {
            MinorDistance::Same => prop_assert_eq!(left.minor(), right.minor()),
            MinorDistance::Ahead(_) => prop_assert!(left > right),
            MinorDistance::Behind(_) => prop_assert!(left < right),
            MinorDistance::OtherMajor => prop_assert_ne!(left.major(), right.major()),
        }
        prop_assert_eq!(distance.is_within(u64::MAX, u64::MAX), left.major() == right.major());
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in any::<String>()) {
        drop(text.parse::<KubernetesVersion>());
        drop(text.parse::<VersionPrefix>());
        drop(KubernetesVersion::from_dashed(&text));
    }

    #[test]
    fn whatever_parses_is_well_formed(text in "v?[0-9]{1,2}[.][0-9]{1,3}[.][0-9]{1,2}[-+_.a-zA-Z0-9]{0,12}") {
        match text.parse::<KubernetesVersion>() {
            Ok(version) => {
                prop_assert_eq!(&version.as_str().parse::<KubernetesVersion>().unwrap(), &version);
                prop_assert!(is_label_value(&version.label().to_string()));
            }
            Err(refusal) => {
                let refusal = refusal.to_string();
                prop_assert!(refusal.contains(&text) && refusal.contains("accepted"), "{}", refusal);
            }
        }
    }
}
