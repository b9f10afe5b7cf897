//! Whatever follows from a cluster's objects follows from them again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::workload::Workload;
use windlass_sim::world::World;

use super::{ALL, apply, cluster, daemon_set, deployment, grown, join, join_control_plane, power_off};
use crate::world::{in_world, living, minutes, settings};

const NONE: [&str; 0] = [];

/// Everything in a cluster's store, without revisions.
fn content(workload: &Workload) -> BTreeMap<String, Value> {
    let store = workload.server().store();
    let objects = store.resources().into_iter().flat_map(|resource| {
        let entries = store.list(&resource, ALL, |_| true).entries;
        entries.into_iter().map(move |entry| {
            let mut object = entry.to_value("", "");
            object["metadata"]["resourceVersion"].take();
            (format!("{resource} {}", entry.key), object)
        })
    });
    objects.collect()
}

/// The objects that are not the same in both.
fn differences(a: &BTreeMap<String, Value>, b: &BTreeMap<String, Value>) -> Vec<String> {
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differs = keys.into_iter().filter(|key| a.get(*key) != b.get(*key));
    differs.map(|key| format!("{key}: {:?} and {:?}", a.get(key), b.get(key))).collect()
}

/// A cluster grows and takes in two add-ons; one of them changes.
async fn story(world: &World) -> Workload {
    let workload = grown(world, 2, 1).await;
    let client = workload.client();
    apply(&client, daemon_set("proxy:1", "OnDelete", &json!({}))).await;
    apply(&client, deployment("dns:1", 2, &json!({}))).await;
    minutes(1).await;
    join(&workload, "w-1", "w");
    join_control_plane(&workload, "cp-2");
    power_off(&workload, "w-0");
    apply(&client, deployment("dns:2", 2, &json!({"zone": "w"}))).await;
    workload
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let tell = || {
        in_world(|world| async move {
            let workload = story(&world).await;
            minutes(10).await;
            (world.recorder().timeline(), content(&workload))
        })
    };
    let (first, again) = (tell(), tell());
    assert!(!first.0.events.is_empty());
    let updated = &first.1["deployments.apps kube-system/dns"]["status"];
    assert_eq!((updated["updatedReplicas"].as_i64(), updated["availableReplicas"].as_i64()), (Some(2), Some(2)));
    assert_eq!(serde_json::to_string(&first.0).unwrap(), serde_json::to_string(&again.0).unwrap());
    assert_eq!(differences(&first.1, &again.1), NONE);
}

#[test]
fn a_fork_at_any_moment_goes_on_in_the_same_way() {
    for seconds in [0, 5, 20, 33, 47, 61, 90] {
        let (moment, at, end) = in_world(|world| async move {
            story(&world).await;
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            let moment = world.fork(world.settings().clone());
            let now = world.settings().clock.now();
            minutes(10).await;
            (moment, now, content(&world.workload(&cluster()).unwrap()))
        });
        let again = run_virtual(Seed(7), at, |virtual_run| async move {
            let fork = moment.fork(settings(virtual_run.clock));
            let workload = fork.workload(&cluster()).unwrap();
            assert!(
                !differences(&content(&workload), &end).is_empty(),
                "something is left to happen after {seconds} s"
            );
            living(&fork, minutes(10)).await;
            assert_eq!(differences(&content(&workload), &end), NONE, "forked after {seconds} s");
        });
        again.unwrap();
    }
}
