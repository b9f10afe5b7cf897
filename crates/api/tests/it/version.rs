//! Versions: total order, spellings that lead back, prefixes, distance.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};

use proptest::prelude::*;
use windlass_api::name::ReleaseName;
use windlass_api::version::{KubernetesVersion, MinorDistance, MinorVersion, VersionPrefix};

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

/// All spellings that are read as a version without being asked for.
fn spellings(version: &KubernetesVersion) -> [String; 6] {
    let unprefixed = |text: String| text.trim_start_matches('v').to_owned();
    [
        version.to_string(),
        version.bare().to_string(),
        version.label().to_string(),
        unprefixed(version.label().to_string()),
        version.tag().to_string(),
        unprefixed(version.tag().to_string()),
    ]
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Runs of letters and digits, and what is between them.
fn tokens_of(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = vec![];
    for character in text.chars() {
        match tokens.last_mut() {
            Some(last) if character.is_ascii_alphanumeric() && last.ends_with(|c: char| c.is_ascii_alphanumeric()) => {
                last.push(character);
            }
            _ => tokens.push(character.to_string()),
        }
    }
    tokens
}

/// The order of build metadata as the resolver of Tanzu releases has it, where it is one: `None` where it compares a number
/// with a text, which is where it turns in circles, and where two numbers are the same and their texts are not.
fn reference(left: &str, right: &str) -> Option<Ordering> {
    let [left, right] = [left, right].map(tokens_of);
    for (left, right) in left.iter().zip(&right) {
        if left == right {
            continue;
        }
        let [number, other] = [left, right].map(|token| u64::from_str_radix(token, 16).ok());
        return match (number, other) {
            (Some(number), Some(other)) if number != other => Some(number.cmp(&other)),
            (None, None) => Some(left.cmp(right)),
            _ => None,
        };
    }
    Some(left.len().cmp(&right.len()))
}

/// A version with a character put in, taken out, or put in the place of another: nearly right, or just right.
fn misspelled() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        prop::sample::select(vec!['v', '.', '-', '+', '_', '0', '1', 'A', ' ', 'é', '\n', '\0']),
        any::<char>(),
    ];
    (version(), 0..6_usize, any::<prop::sample::Index>(), 0..3_u8, character).prop_map(
        |(version, at, place, how, new)| {
            let mut text: Vec<char> = spellings(&version)[at].chars().collect();
            let place = place.index(text.len());
            match how {
                0 => text.insert(place, new),
                1 => drop(text.remove(place)),
                _ => text[place] = new,
            }
            text.into_iter().collect()
        },
    )
}

#[test]
fn every_spelling_that_the_sources_have_is_read() {
    // The version as it is written here, and how it is written there.
    for (canonical, spelled) in [
        ("v1.15.5+vmware.1-guest.1", "v1.15.5+vmware.1-guest.1"),
        ("v1.16.7+vmware.1-guest.1", "v1.16.7+vmware.1-guest.1"),
        ("v1.16.7+vmware.1-guest.1", "v1.16.7_vmware.1-guest.1"),
        ("v1.16.7+vmware.1", "v1.16.7+vmware.1"),
        ("v3.3.15+vmware.6", "v3.3.15_vmware.6"),
        ("v1.6.2+vmware.6", "v1.6.2_vmware.6"),
        ("v3.5.6+vmware.3", "v3.5.6_vmware.3"),
        ("v1.8.6+vmware.15", "v1.8.6_vmware.15"),
        ("v0.5.7+vmware.1", "v0.5.7_vmware.1"),
        ("v1.24.9+vmware.1-tkg.1-rc.2", "v1.24.9---vmware.1-tkg.1-rc.2"),
        ("v1.24.9+vmware.1-tkg.1", "v1.24.9---vmware.1-tkg.1"),
        (
            "v1.24.9+vmware.1-tkg.1-b030088fe71fea7ff1ecb87a4d425c93",
            "v1.24.9---vmware.1-tkg.1-b030088fe71fea7ff1ecb87a4d425c93",
        ),
        ("v1.22.0+vmware.1-tkg.3", "v1.22.0---vmware.1-tkg.3"),
        ("v1.25.7+vmware.2-tkg.1", "v1.25.7+vmware.2-tkg.1"),
        ("v1.24.9-rc.2", "v1.24.9-rc.2"),
        ("v2.6.2+vmware.2-tkg.1-rc.2", "2.6.2+vmware.2-tkg.1-rc.2"),
        ("v1.7.2+vmware.1-tkg.1-advanced-rc.2", "1.7.2+vmware.1-tkg.1-advanced-rc.2"),
        ("v0.41.5+vmware.1-tkg.1-rc.2", "0.41.5+vmware.1-tkg.1-rc.2"),
        ("v1.1.0-rc.1", "1.1.0-rc.1"),
        ("v34.5.0", "34.5.0"),
        ("v4593.2.4", "4593.2.4"),
        ("v21.0.0", "v21.0.0"),
    ] {
        assert_eq!(spelled.parse::<KubernetesVersion>().unwrap().as_str(), canonical, "{spelled}");
    }
    for (canonical, spelled) in
        [("v1", "v1"), ("v1.24", "1.24"), ("v1.24.9+vmware.1", "v1.24.9---vmware.1"), ("v1.15.1", "v1.15.1")]
    {
        assert_eq!(spelled.parse::<VersionPrefix>().unwrap().as_str(), canonical, "{spelled}");
    }
}

#[test]
fn the_order_is_that_of_the_resolver_where_it_has_one() {
    for (low, high) in [
        ("vmware.1-tkg.2.ab123fed", "vmware.2-tkg.1"),
        ("vmware", "vmware.1"),
        ("vmware-1", "vmware.1"),
        ("9", "a"),
        ("a", "10"),
        ("vmware.1-tkg.2", "vmware.1-tkg.10"),
    ] {
        assert_eq!(reference(low, high), Some(Ordering::Less), "{low} and {high}");
        let [low, high] = [low, high].map(|build| format!("v1.24.9+{build}").parse::<KubernetesVersion>().unwrap());
        assert!(low < high, "{low} and {high}");
        assert!("v1.24.9".parse::<KubernetesVersion>().unwrap() < low);
        assert!("v1.24.9-rc.2".parse::<KubernetesVersion>().unwrap() < "v1.24.9".parse().unwrap());
    }
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
        prop_assert_eq!(left.partial_cmp(&right), Some(left.cmp(&right)));
        if left == right {
            prop_assert_eq!(hash_of(&left), hash_of(&right));
        }
    }

    #[test]
    fn a_sorted_row_is_in_order_from_each_to_each(
        versions in prop::collection::vec(prop_oneof![1 => version(), 4 => sibling()], 3..12),
    ) {
        let mut sorted = versions;
        sorted.sort();
        for (at, low) in sorted.iter().enumerate() {
            for high in &sorted[at..] {
                prop_assert!(low <= high, "{} and {}", low, high);
            }
        }
    }

    #[test]
    fn build_metadata_is_ordered_as_by_the_resolver_where_that_has_an_order(left in tokens(), right in tokens()) {
        let [left, right] = [left, right].map(|build| format!("v1.24.9+{build}").parse::<KubernetesVersion>().unwrap());
        if let Some(order) = reference(left.build().unwrap(), right.build().unwrap()) {
            prop_assert_eq!(left.cmp(&right), order, "{} and {}", left, right);
        }
    }

    #[test]
    fn no_spelling_changes_what_a_version_is(version in version()) {
        for text in spellings(&version) {
            let read: KubernetesVersion = text.parse().unwrap();
            prop_assert_eq!(&read, &version, "{}", text);
            prop_assert_eq!(read.cmp(&version), Ordering::Equal);
            prop_assert_eq!(hash_of(&read), hash_of(&version));
        }
        let name = ReleaseName::from(&version);
        prop_assert_eq!(&ReleaseName::new(name.as_str()).unwrap(), &name);
        prop_assert_eq!(name.version().unwrap(), version);
    }

    #[test]
    fn a_prefix_matches_where_its_tokens_are_the_first_ones(
        version in prop_oneof![version(), sibling()], other in prop_oneof![version(), sibling()], cut in any::<prop::sample::Index>(),
    ) {
        let prefixes: Vec<VersionPrefix> = other.prefixes().collect();
        let prefix = cut.get(&prefixes);
        let begins = tokens_of(version.as_str()).starts_with(&tokens_of(prefix.as_str()));
        prop_assert_eq!(prefix.matches(&version), begins, "{} and {}", prefix, version);
        // A longer number or word never matches a shorter one.
        if let Ok(longer) = format!("{version}0").parse::<KubernetesVersion>() {
            prop_assert!(!VersionPrefix::from(version).matches(&longer));
        }
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
    fn distance_is_the_difference_for_all_numbers(
        numbers in [any::<u64>(), any::<u64>()], majors in [number(), number()], near in 0..5_u64, both in any::<bool>(),
    ) {
        let [a, b] = numbers;
        let b = if both { a.saturating_add(near) } else { b };
        let [left, right] = [MinorVersion { major: majors[0], minor: a }, MinorVersion { major: majors[1], minor: b }];
        let difference = i128::from(a) - i128::from(b);
        let distance = left.distance_from(right);
        match distance {
            MinorDistance::OtherMajor => prop_assert_ne!(left.major, right.major),
            MinorDistance::Same => prop_assert_eq!(difference, 0),
            MinorDistance::Ahead(minors) => prop_assert_eq!(i128::from(minors.get()), difference),
            MinorDistance::Behind(minors) => prop_assert_eq!(-i128::from(minors.get()), difference),
        }
        let within = left.major == right.major && (-i128::from(near)..=0).contains(&difference);
        prop_assert_eq!(distance.is_within(near, 0), within);
        prop_assert_eq!(left.next().map(|next| next.distance_from(left).to_string()), (a < u64::MAX).then(|| "1 minor ahead".to_owned()));
        prop_assert_eq!(left.previous().and_then(MinorVersion::next), (a > 0).then_some(left));
    }

    #[test]
    fn a_misspelled_version_is_refused_or_is_another_one(text in misspelled()) {
        match text.parse::<KubernetesVersion>() {
            Ok(version) => {
                prop_assert!(spellings(&version).contains(&text), "{:?} is read as {}", text, version);
            }
            Err(refusal) => prop_assert!(refusal.to_string().contains("accepted are for example"), "{}", refusal),
        }
        if let Ok(prefix) = text.parse::<VersionPrefix>() {
            prop_assert_eq!(&prefix.to_string().parse::<VersionPrefix>().unwrap(), &prefix);
        }
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
