//! An update that somebody wants to be given up: before anything is replaced it is, and the cluster is what it was; afterwards it
//! goes on to its end, and says so.

use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::tanzu::{Phase, TanzuKubernetesCluster};
use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{Ended, Request, Verdict, hold};
use windlass_rehearse::sweep::Pick;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::fault::{Action, Scenario, Span};
use windlass_sim::world::{Settings, World};

use crate::start::{self, FROM, SEED, TO};
use crate::sweeps;

/// The update, and somebody who wants it to be given up after a while.
pub fn request(after: u64) -> Request {
    let action = Action::Patch {
        cluster: None,
        api_version: "windlass.dev/v1alpha1".into(),
        kind: "ClusterUpdate".into(),
        name: "default/my-tkc-1".into(),
        patch: json!({ "metadata": { "annotations": { "windlass.dev/abort": "ann" } } }),
    };
    let faults = Scenario::default().then(Span::seconds(after), action);
    let deadline = std::time::Duration::from_secs(60 * 60);
    Request { faults, deadline, ..start::update() }
}

/// Reads something from a World whose clock has stopped.
fn read<T, F: Future<Output = T>>(world: &World, body: impl FnOnce(World) -> F) -> T {
    run_virtual(SEED, start::later(), |time| {
        body(world.fork(Settings { clock: time.clock, ..world.settings().clone() }))
    })
    .unwrap()
}

/// The machines of a World, by name.
fn machines(world: &World) -> Vec<String> {
    read(world, |world| async move {
        let machines: Api<Machine> = Api::namespaced(world.client(), "default");
        machines.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
    })
}

/// What a World says of the update, and of the cluster.
fn end(world: &World) -> (ClusterUpdate, TanzuKubernetesCluster) {
    read(world, |world| async move {
        let updates: Api<ClusterUpdate> = Api::namespaced(world.client(), "default");
        let clusters: Api<TanzuKubernetesCluster> = Api::namespaced(world.client(), "default");
        (updates.get("my-tkc-1").await.unwrap(), clusters.get("my-tkc").await.unwrap())
    })
}

fn check_given_up(start: &Ended, after: u64) {
    let Ended { rehearsal, world, .. } = hold(&start.world, &request(after), Crashes::none()).unwrap();
    assert_eq!(rehearsal.verdict, Verdict::GivenUp { distribution: FROM.into() }, "{after} s\n{rehearsal}");
    assert!(rehearsal.violations.is_empty(), "{rehearsal}");
    let (update, cluster) = end(&world);
    assert_eq!(machines(&world), machines(&start.world), "{after} s\n{rehearsal}");
    assert_eq!(update.status.unwrap().state, Some(UpdateState::Aborted), "{after} s\n{rehearsal}");
    let status = cluster.status.unwrap();
    assert_eq!(status.phase, Some(Phase::Running), "{after} s\n{rehearsal}");
    assert_eq!(status.version.as_deref(), Some(FROM), "{after} s\n{rehearsal}");
}

#[test]
fn an_update_is_given_up_before_its_first_machine_is_replaced() {
    // Its Job is there, its machine boots, and joins: then etcd cannot do without it, and it goes when it has joined.
    for after in [1, 60, 156, 170] {
        check_given_up(start::one_and_one(), after);
    }
    check_given_up(start::three_and_one(), 100);
}

#[test]
fn an_update_that_has_replaced_a_machine_goes_on_to_its_end() {
    let Ended { rehearsal, world, .. } = hold(&start::three_and_one().world, &request(300), Crashes::none()).unwrap();
    assert_eq!(rehearsal.verdict, Verdict::Reached { distribution: TO.into() }, "{rehearsal}");
    assert!(rehearsal.violations.is_empty(), "{rehearsal}");
    let (update, _) = end(&world);
    assert_eq!(update.status.unwrap().state, Some(UpdateState::Succeeded));
}

#[test]
fn what_was_given_up_can_be_asked_for_again() {
    let asked = |version: &str| Action::Patch {
        cluster: None,
        api_version: "run.tanzu.vmware.com/v1alpha1".into(),
        kind: "TanzuKubernetesCluster".into(),
        name: "default/my-tkc".into(),
        patch: json!({ "spec": { "distribution": { "version": version, "fullVersion": version } } }),
    };
    let request = request(60);
    let faults = request.faults.then(Span::seconds(900), asked(FROM)).then(Span::seconds(1200), asked(TO));
    let request = Request { faults, ..request };
    let Ended { rehearsal, world, .. } = hold(&start::one_and_one().world, &request, Crashes::none()).unwrap();
    assert!(rehearsal.violations.is_empty(), "{rehearsal}");
    let (first, cluster) = end(&world);
    assert_eq!(first.status.as_ref().unwrap().state, Some(UpdateState::Aborted), "{rehearsal}");
    assert!(first.annotations().is_empty(), "the order was answered: {:?}", first.annotations());
    let status = cluster.status.unwrap();
    assert_eq!((status.phase, status.version.as_deref()), (Some(Phase::Running), Some(TO)), "{rehearsal}");
    assert_eq!(status.update.as_deref(), Some("my-tkc-2"));
}

#[test]
fn giving_up_survives_a_crash_after_any_of_its_writes() {
    let sweep = sweeps::swept(&start::one_and_one().world, request(60));
    assert_eq!(sweep.reference().verdict, Verdict::GivenUp { distribution: FROM.into() });
    let tried = sweeps::check(&sweep, "F01", &Pick::all(usize::MAX));
    assert!(tried.len() > 20, "{tried:?}");
}

/// Another update has marked the machine of the control plane; after a while somebody has ours adopt it, and may order more.
fn adopted(start: &Ended, orders: &serde_json::Value) -> Request {
    let machine = machines(&start.world).into_iter().find(|name| name.contains("-control-plane-0-")).unwrap();
    let mark = Action::Patch {
        cluster: None,
        api_version: "cluster.x-k8s.io/v1beta2".into(),
        kind: "Machine".into(),
        name: format!("default/{machine}").as_str().into(),
        patch: json!({ "metadata": { "annotations": { "upgrade.cluster-api.vmware.com/id": "99" } } }),
    };
    let adopt = Action::Patch {
        cluster: None,
        api_version: "windlass.dev/v1alpha1".into(),
        kind: "ClusterUpdate".into(),
        name: "default/my-tkc-1".into(),
        patch: json!({ "metadata": { "annotations": orders } }),
    };
    let faults = Scenario::default().then(Span::seconds(0), mark).then(Span::seconds(900), adopt);
    Request { faults, deadline: std::time::Duration::from_secs(2 * 60 * 60), ..start::update() }
}

#[test]
fn what_nobody_leads_any_more_is_adopted_and_ends_or_is_adopted_and_undone() {
    let start = start::one_and_one();
    let hold = |orders| hold(&start.world, &adopted(start, &orders), Crashes::none()).unwrap();

    let Ended { rehearsal, world, .. } = hold(json!({ "windlass.dev/adopt": "99" }));
    assert_eq!(rehearsal.verdict, Verdict::Reached { distribution: TO.into() }, "{rehearsal}");
    assert!(rehearsal.violations.is_empty(), "{rehearsal}");
    assert!(machines(&world).contains(&"my-tkc-control-plane-0-99".to_owned()), "{:?}", machines(&world));

    let Ended { rehearsal, world, .. } = hold(json!({ "windlass.dev/adopt": "99", "windlass.dev/abort": "ann" }));
    assert_eq!(rehearsal.verdict, Verdict::GivenUp { distribution: FROM.into() }, "{rehearsal}");
    assert!(rehearsal.violations.is_empty(), "{rehearsal}");
    assert_eq!(machines(&world), machines(&start.world), "{rehearsal}");
}
