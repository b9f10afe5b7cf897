//! Names: different inputs, different names, whatever the limit.

use std::collections::BTreeMap;

use proptest::prelude::*;
use windlass_api::name::{
    Child, ClusterName, ClusterSecret, MachineName, NameLimit, NamespacedName, ObjectName, PackageChild, PackageName,
    PackagePart, PackageRefName, PoolName, ReleaseName, Role, Uid, UpdateId, replacement_name,
};
use windlass_api::version::KubernetesVersion;

/// Names that are made of the very words that a child's name is made of, so that they nearly collide, and long ones that
/// differ only where a name is cut.
fn label() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec!["a", "b", "0", "1", "workers", "control-plane", "control", "plane", "x"]);
    prop_oneof![
        4 => prop::collection::vec(word, 1..4).prop_map(|words| words.join("-")),
        2 => (30..=62_usize, "[a-b0-1]").prop_map(|(length, end)| format!("{}{end}", "m".repeat(length))),
        1 => "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
    ]
}

fn cluster() -> impl Strategy<Value = ClusterName> {
    label().prop_map(|text| ClusterName::new(&text).unwrap())
}

fn role() -> impl Strategy<Value = Role> {
    let workers = label().prop_map(|text| Role::Workers(PoolName::new(&text).unwrap()));
    prop_oneof![1 => Just(Role::ControlPlane), 3 => workers]
}

fn update() -> impl Strategy<Value = UpdateId> {
    let id = prop_oneof![0..3_u64, Just(u64::MAX), any::<u64>()];
    id.prop_map(|id| id.to_string().parse().unwrap())
}

fn ordinal() -> impl Strategy<Value = u32> {
    prop_oneof![0..3_u32, Just(u32::MAX)]
}

fn limit() -> impl Strategy<Value = NameLimit> {
    prop::sample::select(vec![NameLimit::LabelValue, NameLimit::Object])
}

/// Long bases that differ in their last characters only, with dots and dashes where they are cut.
fn base() -> impl Strategy<Value = MachineName> {
    let long = (20..=240_usize, prop::sample::select(vec!["", "-", "."]), "[a-b0-1]{1,12}");
    prop_oneof![label(), long.prop_map(|(length, delimiter, end)| format!("{}{delimiter}{end}", "m".repeat(length))),]
        .prop_map(|text| MachineName::new(&text).unwrap())
}

/// Bases that begin alike and are as long as they may be, give or take: around the places where a name with an id of 1 to 20
/// digits is cut (253 - 21 = 232, 253 - 2 = 251), and around that for a label. They end like ids and like hashes.
fn bases_with_one_beginning() -> impl Strategy<Value = Vec<MachineName>> {
    let length = prop_oneof![30..=64_usize, 200..=252_usize];
    let end = prop_oneof![
        "[ab]{1,2}",
        Just("-1".to_owned()),
        Just("-10".to_owned()),
        Just(".1".to_owned()),
        "-x[01]{25}",
        "-18446744073709551615",
    ];
    let beginning = prop::sample::select(vec!["m", "m-", "m.", "mm1-"]);
    (beginning, prop::collection::vec((length, end), 2..40)).prop_map(|(beginning, ends)| {
        let base = |(length, end): (usize, String)| {
            let kept: String = beginning.chars().cycle().take(length.min(253 - end.len())).collect();
            MachineName::new(&format!("{}{end}", kept.trim_end_matches(['-', '.']))).unwrap()
        };
        ends.into_iter().map(base).collect()
    })
}

/// Names of packages whose short names are made of the words that names of clusters and objects are made of.
fn package() -> impl Strategy<Value = PackageRefName> {
    let known =
        prop::sample::select(vec!["kapp-controller", "vsphere-csi", "vsphere-pv-csi", "metrics-server", "antrea"]);
    let word =
        prop::sample::select(vec!["a", "b", "csi", "kapp", "controller", "package", "data", "values", "vsphere", "pv"]);
    let own = prop::collection::vec(word, 1..4).prop_map(|words| words.join("-"));
    prop_oneof![known.prop_map(str::to_owned), own, label()]
        .prop_map(|short| PackageRefName::new(&format!("{short}.example.com")).unwrap())
}

/// Clusters whose names are made of the same words.
fn cluster_like_a_package() -> impl Strategy<Value = ClusterName> {
    let word = prop::sample::select(vec!["a", "b", "kapp", "vsphere", "pv", "metrics", "data-values", "x"]);
    let own = prop::collection::vec(word, 1..4).prop_map(|words| words.join("-"));
    prop_oneof![own, label()].prop_map(|text| ClusterName::new(&text).unwrap())
}

/// Words as reference names have them, some of which could begin or end a version.
fn ref_name_text() -> impl Strategy<Value = String> {
    let word = prop_oneof!["[a-z]{1,3}", "[0-9]{1,2}", "[0-9]-rc", "[a-z]-[0-9]"];
    prop::collection::vec(word, 1..8).prop_map(|words| words.join("."))
}

fn package_version() -> impl Strategy<Value = KubernetesVersion> {
    let rest = prop_oneof![Just(""), Just("-rc.1.2.3"), Just("+vmware.1-tkg.1"), Just("-1.2.3+4.5.6"), Just("-rc")];
    ([0..3_u32, 0..3_u32, 0..3_u32], rest).prop_map(|([a, b, c], rest)| format!("{a}.{b}.{c}{rest}").parse().unwrap())
}

/// Every input with a name of its own.
fn check<I: Ord + std::fmt::Debug>(named: Vec<(I, String)>) -> Result<(), TestCaseError> {
    let mut inputs: BTreeMap<String, I> = BTreeMap::new();
    for (input, name) in named {
        if let Some(earlier) = inputs.get(&name) {
            prop_assert_eq!(earlier, &input, "both are named {}", name);
        }
        inputs.insert(name, input);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn different_children_have_different_names(
        children in prop::collection::vec((cluster(), update(), role(), ordinal()), 2..40),
        limit in limit(),
    ) {
        check(children.into_iter().map(|(cluster, update, role, ordinal)| {
            let name = Child { cluster: &cluster, update, role: &role, ordinal }.name(limit).to_string();
            ((cluster, update, role, ordinal), name)
        }).collect())?;
    }

    #[test]
    fn different_roles_have_different_names(
        roles in prop::collection::vec((cluster(), role()), 2..40),
        limit in limit(),
    ) {
        check(roles.into_iter().map(|(cluster, role)| {
            let name = role.object_name(&cluster, limit).to_string();
            ((cluster, role), name)
        }).collect())?;
    }

    #[test]
    fn different_machines_have_different_replacements(
        machines in prop::collection::vec((base(), update()), 2..40),
        limit in limit(),
    ) {
        check(machines.into_iter().map(|(base, update)| {
            let name = replacement_name(&base, update, limit).to_string();
            ((base, update), name)
        }).collect())?;
    }

    #[test]
    fn machines_whose_bases_begin_alike_have_different_replacements(
        bases in bases_with_one_beginning(),
        updates in prop::collection::vec(update(), 1..4),
        limit in limit(),
    ) {
        let pairs = bases.iter().flat_map(|base| updates.iter().map(move |update| (base.clone(), *update)));
        check(pairs.map(|(base, update)| {
            let name = replacement_name(&base, update, limit);
            assert!(name.as_str().len() <= limit.max_bytes() && MachineName::new(name.as_str()).is_ok(), "{name}");
            ((base, update), name.to_string())
        }).collect())?;
    }

    #[test]
    fn a_machine_without_a_base_is_its_own_and_still_has_a_replacement_of_its_own(
        base in base(), updates in prop::collection::vec(update(), 1..6), limit in limit(),
    ) {
        // What happens where the annotation with the base is lost each time: names grow, and are cut.
        let mut named = vec![];
        let mut at = base;
        for update in updates {
            let next = replacement_name(&at, update, limit);
            prop_assert_ne!(&next, &at);
            named.push(((at.clone(), update), next.to_string()));
            at = next;
        }
        check(named)?;
    }

    #[test]
    fn different_packages_of_different_clusters_have_different_values(
        children in prop::collection::vec((cluster_like_a_package(), package()), 2..40),
    ) {
        let mut named = vec![];
        for (cluster, package) in children {
            for part in [PackagePart::DataValues, PackagePart::Values] {
                let name = PackageChild { cluster: &cluster, package: &package, part }.name().to_string();
                named.push((format!("{part:?} of {} of {cluster}", package.short()), name));
            }
            for secret in ClusterSecret::CERTIFICATES {
                named.push((format!("{secret} of {cluster}"), secret.object_name(&cluster).to_string()));
            }
        }
        check(named)?;
    }

    #[test]
    fn different_packages_of_a_cluster_have_different_installs(
        cluster in cluster_like_a_package(), packages in prop::collection::vec(package(), 2..40),
    ) {
        check(packages.into_iter().map(|package| {
            let part = PackagePart::Install;
            let name = PackageChild { cluster: &cluster, package: &package, part }.name().to_string();
            (package, name)
        }).collect())?;
    }

    #[test]
    fn the_name_of_a_package_reads_back_as_its_parts(ref_name in ref_name_text(), version in package_version()) {
        if let Ok(ref_name) = PackageRefName::new(&ref_name) {
            let name = PackageName { ref_name, version };
            prop_assert_eq!(&name.to_string().parse::<PackageName>().unwrap(), &name, "{}", name);
            prop_assert!(ReleaseName::new(&name.label()).is_ok(), "{}", name.label());
        } else if let Ok(name) = ref_name.parse::<PackageName>() {
            prop_assert_eq!(name.to_string(), ref_name);
        }
    }

    #[test]
    fn a_pool_that_is_named_to_look_like_a_hashed_name_does_not_get_it(
        cluster in cluster(), role in role(), limit in limit(),
    ) {
        let name = role.object_name(&cluster, limit).to_string();
        for (at, found) in name.match_indices("-workers-") {
            let look_alike = (ClusterName::new(&name[..at]), PoolName::new(&name[at + found.len()..]));
            if let (Ok(other), Ok(pool)) = look_alike {
                let other_role = Role::Workers(pool);
                let same = (&other, &other_role) == (&cluster, &role);
                prop_assert_eq!(other_role.object_name(&other, limit).as_str() == name, same, "{}", name);
            }
        }
    }

    #[test]
    fn every_name_made_is_a_name_and_fits(
        cluster in cluster(), update in update(), role in role(), ordinal in ordinal(), base in base(), limit in limit(),
    ) {
        let names = [
            Child { cluster: &cluster, update, role: &role, ordinal }.name(limit).to_string(),
            replacement_name(&base, update, limit).to_string(),
            role.object_name(&cluster, limit).to_string(),
            update.job_name().to_string(),
        ];
        for name in names {
            prop_assert!(name.len() <= limit.max_bytes(), "{}", name);
            prop_assert!(ObjectName::new(&name).is_ok(), "{}", name);
        }
    }

    #[test]
    fn updates_of_all_clusters_have_different_ids(
        updates in prop::collection::btree_set(("[0-9a-f]{8}-[0-9a-f]{4}", 0..9_u64), 2..40),
    ) {
        check(updates.into_iter().map(|(uid, ordinal)| {
            let id = UpdateId::new(&Uid::new(&uid).unwrap(), ordinal).to_string();
            ((uid, ordinal), id)
        }).collect())?;
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in any::<String>()) {
        let refused = [
            text.parse::<ClusterName>().err(),
            text.parse::<ObjectName>().err(),
            text.parse::<Uid>().err(),
            text.parse::<NamespacedName>().err(),
        ];
        for refusal in refused.into_iter().flatten() {
            prop_assert!(refusal.to_string().contains("accepted"), "{}", refusal);
        }
        if let Err(refusal) = text.parse::<PackageName>() {
            prop_assert!(refusal.to_string().contains("accepted"), "{}", refusal);
        }
        if let Ok(id) = text.parse::<UpdateId>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }
}
