//! A workload cluster: machines join, etcd keeps its quorum, pods find their nodes.

mod controllers;
mod disruption;
mod fork;
mod instances;
mod leaves;
mod packages;
mod pods;
mod quorum;
mod scheduling;

use std::collections::BTreeMap;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use windlass_api::name::{NamespacedName, NodeName};
use windlass_apiserver::store::Range;
use windlass_sim::workload::{Alarm, Begins, Boot, Capacity, Member, Seen, Workload};
use windlass_sim::world::World;

use crate::world::{in_world, minutes};

const ALL: Range<'_> = Range { namespace: None, after: None, limit: 0 };
const VERSION: &str = "v1.16.7+vmware.1";

fn cluster() -> NamespacedName {
    "default/my-tkc".parse().unwrap()
}

fn cloud_config(path: &str, documents: &[Value]) -> String {
    let content: Vec<String> = documents.iter().map(|document| serde_saphyr::to_string(document).unwrap()).collect();
    let config = json!({"write_files": [{"path": path, "content": content.join("---\n")}], "runcmd": ["kubeadm"]});
    format!("## template: jinja\n#cloud-config\n{}", serde_saphyr::to_string(&config).unwrap())
}

fn registration(zone: &str) -> Value {
    json!({"kubeletExtraArgs": [{"name": "node-labels", "value": format!("zone={zone}")}]})
}

/// A small machine, with nothing on its disk but a kubelet.
fn machine(name: &str, user_data: String) -> Boot {
    Boot {
        node: NodeName::new(name).unwrap(),
        provider_id: format!("vsphere://{name}"),
        address: "10.0.0.1".to_owned(),
        kubelet: VERSION.parse().unwrap(),
        images: Vec::new(),
        capacity: Capacity::default(),
        zone: None,
        user_data,
    }
}

/// One that joins as a worker.
fn worker(name: &str) -> Boot {
    let document = json!({"kind": "JoinConfiguration", "nodeRegistration": registration("w")});
    machine(name, cloud_config("/run/kubeadm/kubeadm-join-config.yaml", &[document]))
}

fn boot(workload: &Workload, name: &str, user_data: String) -> Begins {
    let boot = machine(name, user_data);
    let begins = workload.boot(&boot).unwrap();
    assert_eq!(workload.boot(&boot).unwrap(), begins, "saying so again changes nothing");
    begins
}

/// Begins a cluster without kubeadm's add-ons, whose pods would take part in what tests count.
fn init(workload: &Workload, name: &str) {
    init_without(workload, name, &["addon/kube-proxy", "addon/coredns"]);
}

/// Begins a cluster, but for these phases of kubeadm.
fn init_without(workload: &Workload, name: &str, phases: &[&str]) {
    let configuration = json!({
        "apiVersion": "kubeadm.k8s.io/v1beta2", "kind": "ClusterConfiguration", "kubernetesVersion": VERSION,
        "imageRepository": "vmware", "etcd": {"local": {"imageRepository": "vmware", "imageTag": "v3.3.15_vmware.6"}},
    });
    let init = json!({"kind": "InitConfiguration", "nodeRegistration": registration("a"), "skipPhases": phases});
    assert_eq!(boot(workload, name, cloud_config("/run/kubeadm/kubeadm.yaml", &[configuration, init])), Begins::Init);
}

fn join(workload: &Workload, name: &str, zone: &str) {
    let document = json!({"kind": "JoinConfiguration", "nodeRegistration": registration(zone)});
    let user_data = cloud_config("/run/kubeadm/kubeadm-join-config.yaml", &[document]);
    assert_eq!(boot(workload, name, user_data), Begins::Join);
}

fn join_control_plane(workload: &Workload, name: &str) {
    join_control_plane_at(workload, name, VERSION);
}

/// The same from a disk of another version.
fn join_control_plane_at(workload: &Workload, name: &str, version: &str) {
    let document = json!({"kind": "JoinConfiguration", "controlPlane": {}, "nodeRegistration": registration("a")});
    let user_data = cloud_config("/run/kubeadm/kubeadm-join-config.yaml", &[document]);
    let boot = Boot { kubelet: version.parse().unwrap(), ..machine(name, user_data) };
    assert_eq!(workload.boot(&boot).unwrap(), Begins::JoinControlPlane);
}

/// A control plane of so many machines, `cp-0` and on, and workers `w-0` and on.
pub async fn grown(world: &World, control_plane: usize, workers: usize) -> Workload {
    let workload = world.workloads().ensure(&cluster());
    init(&workload, "cp-0");
    for ordinal in 1..control_plane {
        minutes(2).await;
        join_control_plane(&workload, &format!("cp-{ordinal}"));
    }
    for ordinal in 0..workers {
        join(&workload, &format!("w-{ordinal}"), "w");
    }
    minutes(3).await;
    workload
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

pub fn power_off(workload: &Workload, name: &str) {
    workload.power_off(&node(name));
}

pub fn member(workload: &Workload, name: &str) -> u64 {
    workload.members().unwrap().iter().find(|member| member.name == name).unwrap().id
}

/// Each node, and its Ready condition.
async fn nodes(client: &Client) -> BTreeMap<String, String> {
    let list = Api::<Node>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    let ready = |node: &Node| {
        let conditions = node.status.clone().unwrap().conditions.unwrap();
        conditions.into_iter().find(|condition| condition.type_ == "Ready").unwrap().status
    };
    list.items.iter().map(|node| (node.name_any(), ready(node))).collect()
}

/// The pods with a label, as node and readiness.
pub async fn pods(client: &Client, label: &str) -> Vec<(String, bool)> {
    let api = Api::<Pod>::all(client.clone());
    let list = api.list(&ListParams::default().labels(label)).await.unwrap();
    let mut pods: Vec<(String, bool)> = list.items.iter().map(seen).collect();
    pods.sort();
    pods
}

fn seen(pod: &Pod) -> (String, bool) {
    let conditions = pod.status.clone().unwrap_or_default().conditions.unwrap_or_default();
    let ready = conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    (pod.spec.clone().unwrap().node_name.unwrap_or_default(), ready)
}

pub async fn answers(client: &Client) -> bool {
    Api::<Node>::all(client.clone()).list(&ListParams::default()).await.is_ok()
}

#[test]
fn the_api_answers_once_the_first_machine_has_begun_the_cluster() {
    in_world(|world| async move {
        let workload = world.workloads().ensure(&cluster());
        let client = workload.client();
        let refused = Api::<Node>::all(client.clone()).list(&ListParams::default()).await.unwrap_err();
        assert!(format!("{refused:?}").contains("connection refused"), "{refused:?}");
        init(&workload, "cp-0");
        assert!(!answers(&client).await, "kubeadm takes a while");
        minutes(3).await;
        assert_eq!(nodes(&client).await, BTreeMap::from([("cp-0".to_owned(), "True".to_owned())]));

        let node = Api::<Node>::all(client.clone()).get("cp-0").await.unwrap();
        assert_eq!(node.labels()["zone"], "a");
        assert!(node.labels().contains_key("node-role.kubernetes.io/master"));
        assert_eq!(node.spec.unwrap().provider_id.as_deref(), Some("vsphere://cp-0"));
        assert_eq!(node.status.unwrap().node_info.unwrap().kubelet_version, VERSION);

        let maps = Api::<ConfigMap>::namespaced(client.clone(), "kube-system");
        let config = maps.get("kubeadm-config").await.unwrap().data.unwrap();
        assert!(config["ClusterConfiguration"].contains(VERSION), "{config:?}");
        assert!(config["ClusterStatus"].contains("cp-0"), "{config:?}");
        assert!(maps.get_opt("kubelet-config-1.16").await.unwrap().is_some());

        let system = Api::<Pod>::namespaced(client.clone(), "kube-system");
        let api_server = system.get("kube-apiserver-cp-0").await.unwrap();
        assert_eq!(seen(&api_server), ("cp-0".to_owned(), true));
        let image = api_server.spec.unwrap().containers[0].image.clone();
        assert_eq!(image.as_deref(), Some("vmware/kube-apiserver:v1.16.7_vmware.1"));
        assert_eq!(pods(&client, "tier=control-plane").await.len(), 4);
        assert_eq!(workload.running().len(), 1);
    });
}

#[test]
fn a_second_control_plane_machine_joins_etcd_and_the_list_of_api_servers() {
    in_world(|world| async move {
        let workload = grown(&world, 2, 1).await;
        let members = workload.members().unwrap();
        assert_eq!(members.len(), 2);
        assert!(members.iter().all(|member| member.healthy && !member.learner));
        assert_eq!(members.iter().filter(|member| member.leader).count(), 1);
        let client = workload.client();
        assert_eq!(nodes(&client).await.len(), 3);
        let config = Api::<ConfigMap>::namespaced(client.clone(), "kube-system").get("kubeadm-config").await.unwrap();
        let status = &config.data.unwrap()["ClusterStatus"];
        assert!(status.contains("cp-0") && status.contains("cp-1") && !status.contains("w-0"), "{status}");
    });
}

#[test]
fn a_machine_that_joins_waits_for_the_api() {
    in_world(|world| async move {
        let workload = world.workloads().ensure(&cluster());
        join(&workload, "w-0", "w");
        minutes(10).await;
        assert_eq!(workload.server().store().count("nodes"), 0);
        init(&workload, "cp-0");
        minutes(3).await;
        assert_eq!(nodes(&workload.client()).await.len(), 2);
    });
}

#[test]
fn a_silent_kubelet_is_noticed_and_its_pods_do_not_count() {
    in_world(|world| async move {
        let workload = grown(&world, 3, 1).await;
        let client = workload.client();
        power_off(&workload, "cp-2");
        minutes(1).await;
        assert_eq!(nodes(&client).await["cp-2"], "Unknown");
        let lost: Vec<_> = pods(&client, "tier=control-plane").await.into_iter().filter(|(_, ready)| !ready).collect();
        assert_eq!(lost, vec![("cp-2".to_owned(), false); 4]);
        Api::<Node>::all(client.clone()).delete("cp-2", &DeleteParams::default()).await.unwrap();
        minutes(1).await;
        assert_eq!(pods(&client, "tier=control-plane").await.len(), 8, "nobody will hear of the others again");
        assert_eq!(workload.running().into_keys().collect::<Vec<_>>(), [node("cp-0"), node("cp-1"), node("w-0")]);
    });
}

fn template(app: &str, image: &str, selector: &Value) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {
            "containers": [{"name": app, "image": image}], "nodeSelector": selector,
            "tolerations": [{"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}],
        },
    })
}

pub fn daemon_set(image: &str, strategy: &str, selector: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "proxy", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"app": "proxy"}}, "updateStrategy": {"type": strategy},
            "template": template("proxy", image, selector),
        },
    })
}

pub fn deployment(image: &str, replicas: i32, selector: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "dns", "namespace": "kube-system"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "dns"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": template("dns", image, selector),
        },
    })
}

pub async fn apply(client: &Client, object: Value) {
    let apply = PatchParams::apply("test").force();
    if object["kind"] == "DaemonSet" {
        let api = Api::<DaemonSet>::namespaced(client.clone(), "kube-system");
        api.patch("proxy", &apply, &Patch::Apply(object)).await.unwrap();
    } else {
        let api = Api::<Deployment>::namespaced(client.clone(), "kube-system");
        api.patch("dns", &apply, &Patch::Apply(object)).await.unwrap();
    }
}

fn on(nodes: &[&str]) -> Vec<(String, bool)> {
    nodes.iter().map(|node| ((*node).to_owned(), true)).collect()
}

#[test]
fn whoever_waits_for_nodes_is_told_of_those_of_later_clusters_too() {
    in_world(|world| async move {
        let mut changes = world.workloads().node_changes();
        let workload = world.workloads().ensure(&cluster());
        init(&workload, "cp-0");
        assert_eq!(changes.next().await, Some((cluster(), node("cp-0"))));
        let registered = world.settings().clock.now();
        assert_eq!(changes.next().await, Some((cluster(), node("cp-0"))));
        assert!(world.settings().clock.now() > registered, "ready after a while");
    });
}

/// A node as another API server had it, of the control plane or not, ready or not.
async fn register(client: &Client, name: &str, control_plane: bool, ready: &str) {
    let labels = if control_plane { json!({"node-role.kubernetes.io/master": ""}) } else { json!({}) };
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": format!("vsphere://{name}")},
        "status": {"conditions": [{"type": "Ready", "status": ready}], "nodeInfo": {
            "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
            "kubeletVersion": VERSION, "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": "",
        }},
    });
    let node: Node = serde_json::from_value(node).unwrap();
    Api::<Node>::all(client.clone()).create(&PostParams::default(), &node).await.unwrap();
}

#[test]
fn a_cluster_made_from_nodes_alone_has_their_machines_and_members() {
    in_world(|world| async move {
        let workload = world.workloads().ensure(&cluster());
        let server = workload.server();
        let direct = Client::new(server.clone(), "default");
        register(&direct, "cp-0", true, "True").await;
        register(&direct, "w-0", false, "True").await;
        assert!(!workload.answers());
        workload.adopt(&[]);
        assert!(answers(&workload.client()).await);
        assert_eq!(workload.running().len(), 2);
        let members = workload.members().unwrap();
        assert!(members.len() == 1 && members[0].leader && members[0].name == "cp-0", "{members:?}");
        let revision = server.store().revision();
        workload.adopt(&[]);
        assert_eq!(server.store().revision(), revision, "once is enough");
    });
}

/// A cluster made from four nodes of a control plane, of which two are not heard of.
async fn of_four(world: &World) -> Workload {
    let workload = world.workloads().ensure(&cluster());
    let direct = Client::new(workload.server().clone(), "default");
    for (name, ready) in [("cp-0", "True"), ("cp-1", "Unknown"), ("cp-2", "True"), ("cp-3", "Unknown")] {
        register(&direct, name, true, ready).await;
    }
    workload
}

#[test]
fn members_that_were_seen_are_as_they_were_seen() {
    let seen = |name: &str, healthy, learner, alarms: &[Alarm]| Seen {
        member: Member { id: 7, name: name.to_owned(), learner, healthy, leader: name == "cp-2", version: None },
        alarms: alarms.iter().copied().collect(),
    };
    let ids = |seen: Vec<Seen>| -> Vec<Seen> {
        let id = |(id, seen): (u64, Seen)| Seen { member: Member { id, ..seen.member }, ..seen };
        (1..).zip(seen).map(id).collect()
    };
    in_world(|world| async move {
        let workload = of_four(&world).await;
        let all = ids(vec![
            seen("cp-0", false, false, &[]),
            seen("cp-1", false, false, &[]),
            seen("cp-2", true, false, &[Alarm::Corrupt]),
            seen("cp-3", true, false, &[]),
        ]);
        // Of four voters two answer: that is no quorum, and an API that was read had one.
        workload.adopt(&all);
        assert!(workload.members().unwrap().iter().all(|member| member.healthy));
        assert_eq!(workload.alarms().keys().collect::<Vec<_>>(), [&3]);
    });
    in_world(|world| async move {
        let workload = of_four(&world).await;
        let all = ids(vec![
            seen("cp-0", false, false, &[]),
            seen("cp-2", true, false, &[]),
            seen("cp-3", true, false, &[]),
            seen("", false, true, &[]),
        ]);
        workload.adopt(&all);
        assert_eq!(workload.members().unwrap(), all.into_iter().map(|seen| seen.member).collect::<Vec<_>>());
        let running: Vec<String> = workload.running().keys().map(ToString::to_string).collect();
        assert_eq!(running, ["cp-0", "cp-2", "cp-3"], "whose member answers is on, whose kubelet is silent is off");
    });
}
