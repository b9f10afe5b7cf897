//! Whose a field is, over any sequence of releases and of what its owner does: what somebody else has set survives byte for byte, and
//! what a release owns is as it says. On a real server, which keeps the books.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use serde_json::{Value, json};
use windlass_plan::release::{FieldDefault, FieldOwner, KindDefaults};
use windlass_plan::render::FIELD_MANAGER;

use super::start;

const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const SEQUENCES: u64 = 60;
const RELEASES: u64 = 8;

/// Numbers that look like chance, and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A release that speaks of some of the fields.
fn release(dice: &mut Dice, number: u64) -> KindDefaults {
    let mut fields = BTreeMap::new();
    for key in KEYS {
        let owner = match dice.roll(4) {
            0 => continue,
            1 => FieldOwner::Release,
            2 => FieldOwner::SetIfEmpty,
            _ => FieldOwner::User,
        };
        let value = json!(format!("release {number}"));
        fields.insert(format!("data.{key}").parse().unwrap(), FieldDefault { value, owner });
    }
    KindDefaults { fields }
}

async fn sequence(api: &Api<DynamicObject>, seed: u64) {
    let (mut dice, name) = (Dice(seed), format!("fields-{seed}"));
    let by = |manager: &str| PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    let header = |fields: Value| {
        let mut object = fields;
        object["apiVersion"] = json!("v1");
        object["kind"] = json!("ConfigMap");
        object["metadata"] = json!({"name": name});
        object
    };
    let first = header(json!({"data": {"a": "theirs", "b": "theirs"}}));
    api.patch(&name, &PatchParams::apply("theirs"), &Patch::Apply(&first)).await.unwrap();
    let mut theirs: BTreeMap<String, String> = ["a", "b"].map(|key| (key.to_owned(), "theirs".to_owned())).into();
    for number in 0..RELEASES {
        let release = release(&mut dice, number);
        let before = serde_json::to_value(api.get(&name).await.unwrap()).unwrap();
        let applied = header(release.applied(&before, FIELD_MANAGER));
        let after =
            api.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(&applied)).await.unwrap();
        let after = serde_json::to_value(after).unwrap();
        let mut spoken = BTreeSet::new();
        for (path, field) in &release.fields {
            let key = path.parts().last().unwrap().to_owned();
            let (was, is) = (path.get(&before), path.get(&after));
            match field.owner {
                FieldOwner::Release => {
                    assert_eq!(is, Some(&field.value), "{seed}.{number} {key}");
                    theirs.remove(&key);
                }
                FieldOwner::SetIfEmpty => assert_eq!(is, was.or(Some(&field.value)), "{seed}.{number} {key}"),
                FieldOwner::User => assert_eq!(is, was, "{seed}.{number} {key}"),
            }
            spoken.insert(key);
        }
        for (key, value) in &theirs {
            assert_eq!(after["data"][key].as_str(), Some(value.as_str()), "{seed}.{number} {key}, of {spoken:?}");
        }
        // Applied once more, nothing is written.
        let again = header(release.applied(&after, FIELD_MANAGER));
        let again = api.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(&again)).await.unwrap();
        let again = serde_json::to_value(again).unwrap();
        assert_eq!(again["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"], "{seed}.{number}");

        let key = KEYS[usize::try_from(dice.roll(6)).unwrap()];
        let value = (dice.roll(3) > 0).then(|| format!("theirs {number}"));
        let edit = json!({"data": {key: value}});
        api.patch(&name, &by("kubectl-edit"), &Patch::Merge(&edit)).await.unwrap();
        match value {
            Some(value) => drop(theirs.insert(key.to_owned(), value)),
            None => drop(theirs.remove(key)),
        }
    }
}

#[test]
fn what_somebody_else_has_set_survives_any_sequence_of_releases() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let api = Api::namespaced_with(start().world.client(), "default", &ApiResource::erase::<ConfigMap>(&()));
        for seed in 0..SEQUENCES {
            sequence(&api, seed).await;
        }
    });
}
