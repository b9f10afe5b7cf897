//! A fleet of which a few clusters have a fault each: the others do not notice.

use std::collections::BTreeMap;

use kube::Api;
use kube::api::ListParams;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::name::NamespacedName;
use windlass_runtime::chance::Seed;
use windlass_sim::fault::{Fault, MachineFault, Scenario, Whom};

use super::{is_available, marks};
use crate::management::stage::{Stage, stage_with};

const CLUSTERS: usize = 20;

fn name(number: usize) -> String {
    format!("c{number}")
}

/// When the machine of each cluster was available, in seconds since the start, of those that are after half an hour.
async fn available(stage: &Stage) -> BTreeMap<String, i64> {
    for number in 0..CLUSTERS {
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
    let reference = stage_with(Scenario::default(), |stage| async move { available(&stage).await });
    assert_eq!(reference.len(), CLUSTERS);
    let clusters: Vec<NamespacedName> =
        (0..CLUSTERS).map(|n| format!("default/{}", name(n)).parse().unwrap()).collect();
    let mut fleet = Scenario::fleet(Seed(7), &clusters, 0.25);
    // Whatever was drawn, one of them never boots.
    let never = Fault::Machine { of: Whom::of("default/c3"), how: MachineFault::NeverBoots };
    fleet = fleet.and(never, windlass_sim::fault::When::default());
    let meant = |cluster: &str| {
        let text = fleet.to_yaml();
        text.contains(&format!("default/{cluster}\n")) || text.contains(&format!("default/{cluster}\""))
    };
    let others: Vec<String> = (0..CLUSTERS).map(name).filter(|cluster| !meant(cluster)).collect();
    assert!(others.len() < CLUSTERS - 2 && others.len() > CLUSTERS / 2, "{}", fleet.to_yaml());
    let (found, said) =
        stage_with(fleet.clone(), |stage| async move { (available(&stage).await, marks(&stage.world)) });
    for cluster in &others {
        assert_eq!(found.get(cluster), reference.get(cluster), "{cluster} has no fault, and is late");
    }
    assert_eq!(found.get("c3"), None);
    assert!(said.len() > 2, "{said:?}");
}
