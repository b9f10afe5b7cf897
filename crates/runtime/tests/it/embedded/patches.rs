//! kube's `Api`: patches of every kind, and server-side apply.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{Cluster, cluster, config_map, refusal};

async fn create(world: &Cluster) -> ConfigMap {
    let maps = world.api::<ConfigMap>();
    maps.create(&PostParams::default(), &config_map("a", &[("keep", "1"), ("drop", "1")])).await.unwrap()
}

fn data(map: &ConfigMap) -> Value {
    json!(map.data.clone().unwrap_or_default())
}

fn by(manager: &str) -> PatchParams {
    PatchParams::apply(manager)
}

fn configuration(data: &Value) -> Patch<Value> {
    Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}))
}

#[test]
fn a_merge_patch_and_a_json_patch_and_a_strategic_patch_do_the_same() {
    let json_patch = json!([
        {"op": "test", "path": "/data/drop", "value": "1"},
        {"op": "remove", "path": "/data/drop"},
        {"op": "add", "path": "/data/new", "value": "1"},
    ]);
    let patches: [Patch<Value>; 3] = [
        Patch::Merge(json!({"data": {"drop": null, "new": "1"}})),
        Patch::Strategic(json!({"data": {"drop": null, "new": "1"}})),
        Patch::Json(serde_json::from_value(json_patch).unwrap()),
    ];
    for patch in patches {
        cluster(|world| async move {
            create(&world).await;
            let after = world.api::<ConfigMap>().patch("a", &PatchParams::default(), &patch).await.unwrap();
            assert_eq!(data(&after), json!({"keep": "1", "new": "1"}), "{patch:?}");
        });
    }
}

#[test]
fn a_json_patch_whose_test_fails_changes_nothing() {
    cluster(|world| async move {
        let created = create(&world).await;
        let maps = world.api::<ConfigMap>();
        let patch = json!([
            {"op": "remove", "path": "/data/drop"},
            {"op": "test", "path": "/data/keep", "value": "another"},
        ]);
        let patch: Patch<()> = Patch::Json(serde_json::from_value(patch).unwrap());
        assert_eq!(refusal(maps.patch("a", &PatchParams::default(), &patch).await).code, 422);
        assert_eq!(maps.get("a").await.unwrap(), created);
    });
}

#[test]
fn a_strategic_patch_merges_containers_by_name() {
    cluster(|world| async move {
        let deployment: Deployment = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "nginx:1"}, {"name": "side", "image": "side:1"}]},
                },
            },
        }))
        .unwrap();
        let deployments = world.api::<Deployment>();
        deployments.create(&PostParams::default(), &deployment).await.unwrap();
        let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:2"}]}}}});
        let patched = deployments.patch("web", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
        let containers = patched.spec.unwrap().template.spec.unwrap().containers;
        let mut images: Vec<String> = containers.into_iter().filter_map(|container| container.image).collect();
        images.sort();
        assert_eq!(images, ["nginx:1", "side:2"]);
    });
}

#[test]
fn an_apply_creates_then_owns_and_lets_go() {
    cluster(|world| async move {
        let maps = world.api::<ConfigMap>();
        maps.patch("a", &by("one"), &configuration(&json!({"x": "1", "y": "1"}))).await.unwrap();
        maps.patch("a", &by("two"), &configuration(&json!({"z": "2"}))).await.unwrap();
        // What `one` no longer names goes; what `two` owns stays.
        let applied = maps.patch("a", &by("one"), &configuration(&json!({"x": "1"}))).await.unwrap();
        assert_eq!(data(&applied), json!({"x": "1", "z": "2"}));
        let mut managers: Vec<_> = applied.managed_fields().iter().filter_map(|entry| entry.manager.clone()).collect();
        managers.sort();
        assert_eq!(managers, ["one", "two"]);
    });
}

#[test]
fn an_apply_of_what_another_owns_is_a_conflict_until_it_is_forced() {
    cluster(|world| async move {
        let maps = world.api::<ConfigMap>();
        maps.patch("a", &by("one"), &configuration(&json!({"x": "1"}))).await.unwrap();
        let conflict = refusal(maps.patch("a", &by("two"), &configuration(&json!({"x": "2"}))).await);
        assert!(conflict.is_conflict(), "{conflict:?}");
        assert_eq!(conflict.message, "Apply failed with 1 conflict: conflict with \"one\": .data.x");
        assert_eq!(conflict.details.unwrap().causes[0].field, ".data.x");

        let forced = maps.patch("a", &by("two").force(), &configuration(&json!({"x": "2"}))).await.unwrap();
        assert_eq!(data(&forced), json!({"x": "2"}));
        let lost = refusal(maps.patch("a", &by("one"), &configuration(&json!({"x": "1"}))).await);
        assert_eq!(lost.message, "Apply failed with 1 conflict: conflict with \"two\": .data.x");
    });
}

#[test]
fn an_apply_that_says_the_same_again_is_no_write() {
    cluster(|world| async move {
        let maps = world.api::<ConfigMap>();
        let first = maps.patch("a", &by("one"), &configuration(&json!({"x": "1"}))).await.unwrap();
        super::super::world::sleep(60).await;
        let second = maps.patch("a", &by("one"), &configuration(&json!({"x": "1"}))).await.unwrap();
        assert_eq!(first, second);
        assert_eq!(Some(world.server.store().revision().to_string()), second.resource_version());
    });
}
