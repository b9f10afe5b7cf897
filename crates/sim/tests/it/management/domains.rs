//! Failure domains: who is told of them, and where machines go.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment};
use windlass_api::kind::condition;
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::wcp::{FailureDomain, WCPCluster, WCPMachine};
use windlass_sim::fault::Scenario;
use windlass_sim::management::{Infrastructure, Zone};

use super::control_plane::{change, cluster, is_at_rest, machine_template, machines, template, version};
use super::stage::{NEW, OLD, Stage, stage, stage_with};
use super::{is_available, is_rolled_out};

const ZONE: &str = "topology.kubernetes.io/zone";

/// How many machines are where, as all that tell of it agree: each Machine, its infrastructure and its node.
async fn places(stage: &Stage, concerned: impl Fn(&Machine) -> bool) -> BTreeMap<String, usize> {
    let mut places = BTreeMap::new();
    for machine in machines(stage).await.into_iter().filter(concerned) {
        let name = machine.name_any();
        let place = machine.status.unwrap().failure_domain.unwrap();
        let infrastructure: WCPMachine = stage.get(&name).await;
        assert_eq!(infrastructure.status.unwrap().failure_domain.as_ref(), Some(&place), "{name}");
        let node: Node = Api::all(stage.workload("c").client()).get(&name).await.unwrap();
        assert_eq!(node.labels().get(ZONE), Some(&place), "{name}");
        assert!(machine.spec.failure_domain.is_none_or(|wish| wish == place), "{name}");
        *places.entry(place).or_default() += 1;
    }
    places
}

fn counted<const N: usize>(places: [(&str, usize); N]) -> BTreeMap<String, usize> {
    places.map(|(zone, count)| (zone.to_owned(), count)).into()
}

fn is_worker(machine: &Machine) -> bool {
    machine.labels().contains_key("cluster.x-k8s.io/deployment-name")
}

/// A cluster with a control plane that stands for itself, and a pool whose machines go where this says.
async fn with_pool(stage: &Stage, replicas: u32, domain: Option<&str>) {
    stage.cluster("c").await;
    stage.control_plane_machine("c", 0).await;
    stage.until::<Machine>("c-control-plane-0", is_available).await;
    stage.pool("c", replicas, OLD).await;
    move_pool(stage, domain).await;
}

async fn move_pool(stage: &Stage, domain: Option<&str>) {
    let api: Api<MachineDeployment> = Api::default_namespaced(stage.client());
    let patch = json!({"spec": {"template": {"spec": {"failureDomain": domain}}}});
    api.patch("c-workers", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// What the infrastructure says of a machine that it does not make.
async fn refusals(stage: &Stage) -> Vec<String> {
    let all = Api::<WCPMachine>::default_namespaced(stage.client()).list(&ListParams::default()).await.unwrap();
    let statuses = all.items.into_iter().filter_map(|machine| machine.status);
    let refused = statuses.filter_map(|status| {
        let said = condition(&status.conditions, "VirtualMachineCreated").filter(|said| said.status == "False")?;
        Some(format!("{}: {}", said.reason, said.message))
    });
    refused.collect()
}

fn zones(zones: [(&str, Option<u64>); 2]) -> Scenario {
    let zones = zones.map(|(name, machines)| Zone { name: name.to_owned(), machines });
    let infrastructure = Infrastructure { zones: zones.into(), ..Infrastructure::default() };
    Scenario { infrastructure, ..Scenario::default() }
}

#[test]
fn a_control_plane_is_spread_over_the_failure_domains_before_and_after_it_is_rolled() {
    stage(|stage| async move {
        cluster(&stage, 3).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        let domain =
            |name: &str| FailureDomain { name: name.to_owned(), control_plane: Some(true), ..FailureDomain::default() };
        let told = ["zone-1", "zone-2", "zone-3"].map(domain);
        let infrastructure: WCPCluster = stage.get("c").await;
        assert_eq!(infrastructure.status.unwrap().failure_domains, told);
        let object: Cluster = stage.get("c").await;
        assert_eq!(object.status.unwrap().failure_domains, told);
        let spread = counted([("zone-1", 1), ("zone-2", 1), ("zone-3", 1)]);
        assert_eq!(places(&stage, |machine| machine.spec.failure_domain.is_some()).await, spread);

        template(&stage, NEW).await;
        change(&stage, json!({"version": version(NEW), "machineTemplate": machine_template(NEW)})).await;
        stage.pass(5).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        let new = Some(version(NEW));
        assert_eq!(places(&stage, |machine| machine.spec.version == new).await, spread);
    });
}

#[test]
fn machines_that_name_no_failure_domain_are_spread_by_the_infrastructure() {
    stage(|stage| async move {
        with_pool(&stage, 6, None).await;
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
        let spread = counted([("zone-1", 2), ("zone-2", 2), ("zone-3", 2)]);
        assert_eq!(places(&stage, is_worker).await, spread);
    });
}

#[test]
fn a_pool_follows_the_failure_domain_of_its_template() {
    stage(|stage| async move {
        with_pool(&stage, 2, Some("zone-2")).await;
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
        assert_eq!(places(&stage, is_worker).await, counted([("zone-2", 2)]));
        move_pool(&stage, Some("zone-3")).await;
        stage.pass(5).await;
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
        assert_eq!(places(&stage, is_worker).await, counted([("zone-3", 2)]));
    });
}

#[test]
fn a_failure_domain_that_is_full_or_unknown_is_waited_for_and_named() {
    stage_with(zones([("a", Some(1)), ("b", None)]), |stage| async move {
        with_pool(&stage, 1, Some("a")).await;
        stage.pass(300).await;
        let full = "InsufficientCapacity: the failure domain a has no room for another machine";
        assert_eq!(refusals(&stage).await, [full], "the control plane has its only place");
        move_pool(&stage, Some("c")).await;
        stage.pass(300).await;
        assert!(
            refusals(&stage).await.contains(&"FailureDomainNotFound: there is no failure domain c, but a, b".into())
        );
        move_pool(&stage, Some("b")).await;
        stage.pass(5).await;
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
        assert_eq!(places(&stage, is_worker).await, counted([("b", 1)]));
    });
}

#[test]
fn where_there_are_no_zones_nobody_is_told_of_failure_domains() {
    let infrastructure = Infrastructure { zones: Vec::new(), ..Infrastructure::default() };
    stage_with(Scenario { infrastructure, ..Scenario::default() }, |stage| async move {
        cluster(&stage, 1).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        let object: Cluster = stage.get("c").await;
        assert!(object.status.unwrap().failure_domains.is_empty());
        let machine = machines(&stage).await.remove(0);
        assert_eq!((machine.spec.failure_domain, machine.status.unwrap().failure_domain), (None, None));
        let node: Node =
            Api::all(stage.workload("c").client()).get(machine.metadata.name.as_ref().unwrap()).await.unwrap();
        assert!(!node.labels().contains_key(ZONE));
    });
}
