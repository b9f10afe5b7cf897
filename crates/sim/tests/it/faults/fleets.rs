//! A fleet of which a few clusters have a fault each: the others do not notice.
//!
//! `WINDLASS_FLEET=1000 cargo test --release -p windlass-sim --test it fleets` has a thousand clusters, every twentieth with a
//! fault. Without that there are twenty, every fourth with one.

use std::collections::BTreeMap;

use kube::Api;
use kube::api::ListParams;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::name::NamespacedName;
use windlass_runtime::chance::Seed;
use windlass_sim::fault::{Fault, MachineFault, Scenario, Whom};

use super::{is_available, marks};
use crate::management::stage::{Stage, stage_with};

/// How many clusters there are, and which share of them has a fault.
#[allow(clippy::disallowed_methods, reason = "how many clusters there are is said from outside")]
fn size() -> (usize, f64) {
    let count = std::env::var("WINDLASS_FLEET").ok().map(|count| count.parse().unwrap());
    count.map_or((20, 0.25), |count| (count, 0.05))
}

fn name(number: usize) -> String {
    format!("c{number}")
}

/// When the machine of each cluster was available, in seconds since the start, of those that are after half an hour.
async fn available(stage: &Stage, clusters: usize) -> BTreeMap<String, i64> {
    for number in 0..clusters {
        stage.cluster(&name(number)).await;
        stage.control_plane_machine(&name(number), 0).await;
    }
    stage.pass(30 * 60).await;
    let all = Api::<Machine>::default_namespaced(stage.client()).list(&ListParams::default()).await.unwrap();
    let start: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let since = |machine: &Machine| {
        let conditions = machine.status.clone().unwrap().conditions;
        let found = conditions.into_iter().find(|condition| condition.type_ == "Available").unwrap();
        found.last_transition_time.parse::<jiff::Timestamp>().unwrap().duration_since(start).as_secs()
    };
    let there = all.items.iter().filter(|machine| is_available(machine));
    there.map(|machine| (machine.spec.cluster_name.clone(), since(machine))).collect()
}

#[test]
fn in_a_fleet_those_without_a_fault_are_as_fast_as_ever() {
    let (count, share) = size();
    let reference = stage_with(Scenario::default(), |stage| async move { available(&stage, count).await });
    assert_eq!(reference.len(), count);
    let clusters: Vec<NamespacedName> = (0..count).map(|n| format!("default/{}", name(n)).parse().unwrap()).collect();
    let mut fleet = Scenario::fleet(Seed(7), &clusters, share);
    // Whatever was drawn, one of them never boots.
    let never = Fault::Machine { of: Whom::of("default/c3"), how: MachineFault::NeverBoots };
    fleet = fleet.and(never, windlass_sim::fault::When::default());
    let text = fleet.to_yaml();
    let meant = |cluster: &str| {
        text.contains(&format!("default/{cluster}\n")) || text.contains(&format!("default/{cluster}\""))
    };
    let others: Vec<String> = (0..count).map(name).filter(|cluster| !meant(cluster)).collect();
    assert!(others.len() < count - 2 && others.len() > count / 2, "{text}");
    let (found, said) =
        stage_with(fleet.clone(), |stage| async move { (available(&stage, count).await, marks(&stage.world)) });
    for cluster in &others {
        assert_eq!(found.get(cluster), reference.get(cluster), "{cluster} has no fault, and is late");
    }
    assert_eq!(found.get("c3"), None);
    assert!(said.len() > 2, "{said:?}");
}
