//! One cluster's trouble never delays another's (G13): its API hangs, sends an answer without an end, or refuses, and a neighbour is
//! upgraded in the time that it takes alone.

use std::sync::OnceLock;
use std::time::Duration;

use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::tanzu::{Phase, TanzuKubernetesCluster};
use windlass_plan::render::Defaults;
use windlass_sim::fault::{Fault, Pattern, Requests, Scenario, Silence, Span, When};
use windlass_sim::world::World;

use crate::play::{now, played, until, update};
use crate::start::{self, cluster_name, empty, manifest};

/// More than there are looks at once: if each were in trouble for as long as it may be, nothing would be left for others.
const TROUBLED: usize = 24;

fn name(number: usize) -> String {
    format!("troubled-{number}")
}

/// Many clusters, all of which run. Made once.
fn many() -> &'static World {
    static MADE: OnceLock<World> = OnceLock::new();
    MADE.get_or_init(|| {
        let made = played(&empty(), start::founded(), (Scenario::default(), Defaults::default()), |world| async move {
            let tkcs: Api<TanzuKubernetesCluster> = Api::default_namespaced(world.client());
            let names = (0..TROUBLED).map(name).chain([cluster_name().name.to_string()]);
            let names: Vec<String> = names.collect();
            for name in &names {
                let mut cluster = manifest(1, 1);
                cluster.metadata.name = Some(name.clone());
                tkcs.create(&PostParams::default(), &cluster).await.unwrap();
            }
            for name in &names {
                let mut runs = false;
                for _ in 0..720 {
                    let found = tkcs.get(name).await.unwrap().status.unwrap_or_default();
                    runs = found.phase == Some(Phase::Running);
                    if runs {
                        break;
                    }
                    tokio::time::sleep(Duration::from_secs(10)).await;
                }
                assert!(runs, "{name}");
            }
        });
        made.0
    })
}

/// What became of an upgrade beside others.
#[derive(Debug)]
struct Upgraded {
    took: Duration,
    /// The states of the updates of those in trouble.
    others: Vec<Option<UpdateState>>,
}

/// Upgrades one cluster, and all the others too if they are in trouble.
fn upgraded(count: usize, trouble: &[Silence]) -> Upgraded {
    let mut faults = Scenario::default();
    for (number, how) in (0..count).zip(trouble.iter().cycle()) {
        let clusters = Pattern::new(format!("default/{}", name(number)));
        let fault = Fault::Unreachable { clusters, on: Requests::default(), how: *how };
        faults = faults.and(fault, When::from(Span::seconds(1)));
    }
    let (seen, took) = (std::cell::RefCell::new(Vec::new()), std::cell::Cell::new(Duration::ZERO));
    played(many(), start::later(), (faults, Defaults::default()), |world| {
        let (seen, took) = (&seen, &took);
        async move {
            let tkcs: Api<TanzuKubernetesCluster> = Api::default_namespaced(world.client());
            tokio::time::sleep(Duration::from_secs(5)).await;
            let to = Patch::Merge(json!({"spec": {"distribution": {"version": "v1.16.7", "fullVersion": null}}}));
            // Those in trouble first, so that they are at it.
            for number in 0..count {
                tkcs.patch(&name(number), &PatchParams::default(), &to).await.unwrap();
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
            let began = now(&world);
            tkcs.patch("my-tkc", &PatchParams::default(), &to).await.unwrap();
            until(&world, "upgraded", |world| update(world).state == Some(UpdateState::Succeeded)).await;
            took.set(now(&world).duration_since(began).unsigned_abs());
            let updates: Api<ClusterUpdate> = Api::default_namespaced(world.client());
            for number in 0..count {
                let found = updates.get_opt(&format!("{}-1", name(number))).await.unwrap();
                seen.borrow_mut().push(found.and_then(|update| update.status).and_then(|status| status.state));
            }
        }
    });
    Upgraded { took: took.get(), others: seen.into_inner() }
}

fn check(count: usize, trouble: &[Silence], longer: Duration) {
    let alone = upgraded(0, &[]);
    let beside = upgraded(count, trouble);
    let words = format!("{count} {trouble:?}: {:?} beside them, and {:?} alone", beside.took, alone.took);
    assert!(beside.took <= alone.took + longer, "{words}");
    assert!(beside.others.len() == count && !beside.others.contains(&Some(UpdateState::Succeeded)), "{beside:?}");
}

#[test]
fn who_is_in_trouble_does_not_delay_a_neighbour() {
    check(9, &[Silence::Timeout, Silence::Endless, Silence::Refused], Duration::ZERO);
}

/// Each look has ten seconds for a cluster that does not answer. With more of them than there are looks at once somebody waits for one
/// of these to be at its end, once: those in trouble come again later and later.
#[test]
fn if_all_others_hang_a_neighbour_waits_for_one_look_at_most() {
    check(TROUBLED, &[Silence::Timeout, Silence::Endless], Duration::from_secs(10));
}
