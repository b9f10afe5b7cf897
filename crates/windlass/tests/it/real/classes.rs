//! Clusters of a class on a real API server: the packages of a new release come before its machines, whoever is killed.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::packaging::PackageInstall;
use windlass_api::kind::release::ClusterBootstrap;
use windlass_plan::bootstrap::course::Course;
use windlass_plan::resolve::hold::HoldBy;
use windlass_rehearse::crash::Crashes;
use windlass_sim::actor::Caller;
use windlass_sim::fault::Moment;

use super::stage::{How, Ran, Stage, really, rehearsed};
use super::{tier, writes};

const OLD: &str = "v1.24.9---vmware.1-tkg.1";
const NEW: &str = "v1.25.7---vmware.2-tkg.1";
const KUBERNETES: [&str; 2] = ["v1.24.9+vmware.1", "v1.25.7+vmware.2"];

/// What an update came to.
#[derive(Debug, Clone, PartialEq)]
struct Came {
    /// Whether the cluster was paused by the answer to the write that asked for the release.
    paused: bool,
    /// Whatever became of packages and machines, in order, as far as it is for Windlass to say.
    order: Vec<String>,
    /// The version of each package at the end.
    packages: BTreeMap<String, String>,
    /// The machines at its end, by their version.
    machines: BTreeMap<String, usize>,
    /// How many writes the controllers had made when it was asked for.
    before: u64,
}

async fn found(client: &Client) -> Option<(Cluster, Option<ClusterBootstrap>)> {
    let cluster = Api::default_namespaced(client.clone()).get("wl").await.ok()?;
    Some((cluster, Api::default_namespaced(client.clone()).get_opt("wl").await.ok()?))
}

/// The installs of the management cluster and of the cluster itself, by name.
async fn installs(stage: &Stage) -> BTreeMap<String, PackageInstall> {
    let mut all = BTreeMap::new();
    let inside = stage.world.workload(&"default/wl".parse().unwrap()).map(|workload| workload.client());
    for (client, namespace) in [(Some(stage.client.clone()), "default"), (inside, "tkg-system")] {
        let Some(client) = client else { continue };
        let listed = Api::<PackageInstall>::namespaced(client, namespace).list(&ListParams::default()).await;
        all.extend(listed.into_iter().flatten().map(|install| (install.name_any(), install)));
    }
    all
}

async fn machines(client: &Client) -> Vec<Machine> {
    let listed = Api::<Machine>::default_namespaced(client.clone()).list(&ListParams::default()).await;
    listed.map(|listed| listed.items).unwrap_or_default()
}

/// Looks until the cluster has this release and these machines, and takes note of what it sees for the first time.
async fn until(stage: &Stage, release: &str, kubernetes: &str, order: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for _ in 0..2_000 {
        let all = machines(&stage.client).await;
        let installs = installs(stage).await;
        // Machines are looked at before packages: one that is new has been made before any package that is seen now.
        if all.iter().any(|machine| machine.spec.version.as_deref() == Some(kubernetes)) && seen.insert("machines") {
            order.push("a new machine".to_owned());
        }
        for (name, stage_of) in [("wl-kapp-controller", "kapp-controller"), ("wl-antrea", "antrea")] {
            let status = installs.get(name).and_then(|install| install.status.clone()).unwrap_or_default();
            let is_well = status.conditions.iter().any(|it| it.type_ == "ReconcileSucceeded" && it.status == "True");
            let asked = installs
                .get(name)
                .and_then(|it| it.spec.package_ref.version_selection.as_ref().map(|it| it.constraints.clone()));
            if is_well
                && asked.is_some()
                && status.version == asked
                && is_of(release, stage_of, status.version.as_deref())
                && seen.insert(stage_of)
            {
                order.push(format!("{stage_of} is at its version"));
            }
        }
        let at = all.iter().filter(|machine| machine.spec.version.as_deref() == Some(kubernetes)).count();
        if let Some((cluster, bootstrap)) = found(&stage.client).await {
            let course = Course { cluster: &cluster, bootstrap: bootstrap.as_ref() };
            if course.reached() == Some(release) && at == 2 && all.len() == 2 {
                return;
            }
        }
        tokio::time::sleep(stage.look).await;
    }
    let (cluster, bootstrap) = found(&stage.client).await.unwrap();
    panic!("never at {release}: {:#?} {:#?} {:#?}", cluster.spec, cluster.status, bootstrap.map(|it| it.status));
}

/// Whether a version of a package is that of the release.
fn is_of(release: &str, package: &str, version: Option<&str>) -> bool {
    let wanted = match (release, package) {
        (OLD, "antrea") => "1.7.2",
        (NEW, "antrea") => "1.9.0",
        // Both releases may have the same.
        _ => "",
    };
    version.is_some_and(|version| version.starts_with(wanted))
}

fn script(stage: Stage) -> LocalBoxFuture<'static, Came> {
    play(stage).boxed_local()
}

async fn play(stage: Stage) -> Came {
    let clusters: Api<Cluster> = Api::default_namespaced(stage.client.clone());
    let cluster: Cluster = serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "wl"},
        "spec": {
            "clusterNetwork": {"services": {"cidrBlocks": ["198.51.100.0/12"]}, "pods": {"cidrBlocks": ["192.0.2.0/16"]}},
            "topology": {
                "classRef": {"name": "tkg-vsphere-default-v1.0.0", "namespace": "tkg-system"}, "version": "v1.24",
                "controlPlane": {"replicas": 1},
                "workers": {"machineDeployments": [{"class": "tkg-worker", "name": "a", "replicas": 1}]},
            },
        },
    }))
    .unwrap();
    // Releases are judged before clusters may have them.
    let mut created = clusters.create(&PostParams::default(), &cluster).await;
    for _ in 0..100 {
        if created.is_ok() {
            break;
        }
        tokio::time::sleep(stage.look).await;
        created = clusters.create(&PostParams::default(), &cluster).await;
    }
    created.unwrap();
    until(&stage, OLD, KUBERNETES[0], &mut Vec::new()).await;
    let before = writes(&stage.crashes);
    let patch = json!({"metadata": {"labels": {"run.tanzu.vmware.com/tkr": NEW}}});
    let asked = clusters.patch("wl", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    let mut order = Vec::new();
    until(&stage, NEW, KUBERNETES[1], &mut order).await;
    let versions = installs(&stage).await.into_iter();
    let packages = versions.map(|(name, it)| (name, it.status.and_then(|it| it.version).unwrap_or_default())).collect();
    let mut at = BTreeMap::new();
    for machine in machines(&stage.client).await {
        *at.entry(machine.spec.version.unwrap_or_default()).or_default() += 1;
    }
    Came { paused: asked.spec.paused == Some(true), order, packages, machines: at, before }
}

fn check(ran: &Ran<Came>, mut expected: Ran<Came>) {
    expected.came.before = ran.came.before;
    assert_eq!(*ran, expected);
}

fn rehearsal(how: &How, by: HoldBy) -> Ran<Came> {
    let expected = rehearsed(how, &script);
    assert_eq!(expected.came.machines, BTreeMap::from([(KUBERNETES[1].to_owned(), 2)]), "{expected:#?}");
    assert_eq!(expected.came.paused, by == HoldBy::Pause);
    let place = |what: &str| expected.came.order.iter().position(|it| it.contains(what));
    assert!(place("antrea").is_some() && place("antrea") < place("a new machine"), "{:?}", expected.came.order);
    assert_eq!(expected.complaints, Vec::<String>::new());
    expected
}

#[test]
fn packages_come_first_by_a_pause_on_a_real_api_server_as_they_were_rehearsed() {
    let Some(assets) = tier("packages first, by a pause") else { return };
    let how = How { classes: Some(HoldBy::Pause), ..How::default() };
    let expected = rehearsal(&how, HoldBy::Pause);
    check(&really(assets, &How { crashes: Crashes::none(), ..how }, &script), expected);
}

#[test]
fn packages_come_first_by_hooks_on_a_real_api_server_as_they_were_rehearsed() {
    let Some(assets) = tier("packages first, by hooks") else { return };
    let how = How { classes: Some(HoldBy::Hooks), ..How::default() };
    let expected = rehearsal(&how, HoldBy::Hooks);
    check(&really(assets, &How { crashes: Crashes::none(), ..how }, &script), expected);
}

#[test]
fn packages_come_first_also_when_the_leader_is_killed() {
    let Some(assets) = tier("packages first, with kills") else { return };
    let how = How { classes: Some(HoldBy::Pause), ..How::default() };
    let expected = rehearsal(&how, HoldBy::Pause);
    let (first, made) = (expected.came.before, writes(&how.crashes) - expected.came.before);
    let kills =
        [(first + made / 4, Moment::After), (first + made / 2, Moment::Before), (first + 3 * made / 4, Moment::After)];
    let how = How { crashes: Crashes::of(Caller::Controllers, kills.to_vec()), ..how };
    let ran = really(assets, &how, &script);
    assert!(how.crashes.left() < kills.len(), "nobody was killed");
    check(&ran, expected);
}
