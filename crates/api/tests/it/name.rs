//! Names: different inputs, different names, whatever the limit.

use std::collections::BTreeMap;

use proptest::prelude::*;
use windlass_api::name::{
    Child, ClusterName, MachineName, NameLimit, NamespacedName, ObjectName, PoolName, Role, Uid, UpdateId,
    replacement_name,
};

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
        if let Ok(id) = text.parse::<UpdateId>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }
}
