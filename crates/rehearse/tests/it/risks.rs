//! Risks of a cluster as a snapshot shows it: none of one that is well, and each by what makes it so.

pub mod decided;

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_plan::risk::{Risk, RiskId, Severity, assess};
use windlass_rehearse::evidence::evidence;
use windlass_rehearse::rehearsal::{Request, Verdict, Wish, rehearse};
use windlass_rehearse::snapshot::{Gap, Snapshot};
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::world::{self, World};

use crate::start::{self, SEED, cluster_name, later};

/// A cluster of one and one, long after it is there.
static WELL: LazyLock<Snapshot> = LazyLock::new(|| taken(&start::one_and_one().world));

fn taken(world: &World) -> Snapshot {
    run_virtual(SEED, later(), |time| async move {
        let settings = world::Settings { clock: time.clock, ..world.settings().clone() };
        Snapshot::of(&world.fork(settings)).await.unwrap()
    })
    .unwrap()
}

fn risks(snapshot: &Snapshot, wish: &Wish) -> Vec<Risk> {
    assess(&evidence(snapshot, &cluster_name(), wish))
}

fn upgrade() -> Wish {
    Wish::release("v1.16.7")
}

#[test]
fn a_cluster_that_is_well_has_no_risk_and_what_was_not_read_is_said() {
    let found = risks(&WELL, &upgrade());
    let alarms: Vec<&Risk> = found.iter().filter(|risk| !matches!(risk.severity, Severity::Unknown)).collect();
    assert!(alarms.iter().all(|risk| risk.severity == Severity::Info), "{alarms:#?}");
    let unknown: Vec<RiskId> =
        found.iter().filter(|risk| risk.severity == Severity::Unknown).map(|risk| risk.id).collect();
    assert_eq!(unknown, [RiskId::CertExpiring, RiskId::IpPool], "{found:#?}");
    assert_eq!(risks(&WELL, &Wish::Nothing), [], "where nothing is asked for");
    assert_eq!(risks(&WELL, &Wish::release("v1.15.5")), [], "nor where it is that already");
}

/// What is said of the cluster once its snapshot is changed, and was not said before.
fn check(change: impl FnOnce(&mut Snapshot), id: RiskId, severity: Severity, words: &[&str]) {
    let mut snapshot = WELL.clone();
    change(&mut snapshot);
    let found = risks(&snapshot, &upgrade());
    let text = |risk: &Risk| format!("{risk} {:?} {}", risk.because, risk.way_out);
    let told = |risk: &&Risk| {
        let text = text(risk);
        (risk.id, risk.severity) == (id, severity) && words.iter().all(|words| text.contains(words))
    };
    let Some(risk) = found.iter().find(told) else { panic!("{id} with {words:?} is not in {found:#?}") };
    assert!(!risks(&WELL, &upgrade()).contains(risk), "{risk} was said before");
}

fn workload(snapshot: &mut Snapshot) -> &mut Vec<Value> {
    &mut snapshot.workloads.get_mut(&cluster_name()).unwrap().objects
}

fn first<'o>(objects: &'o mut [Value], kind: &str) -> &'o mut Value {
    objects.iter_mut().find(|object| object["kind"] == kind).unwrap()
}

/// A pod of an application on the worker.
fn app(snapshot: &mut Snapshot) -> &mut Value {
    let objects = workload(snapshot);
    let is_worker = |object: &&Value| {
        object["kind"] == "Node" && object["metadata"]["labels"]["node-role.kubernetes.io/master"].is_null()
    };
    let node = objects.iter().find(is_worker).unwrap()["metadata"]["name"].clone();
    objects.push(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "web", "name": "web-0", "labels": {"app": "web"}, "ownerReferences":
            [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "1", "controller": true}]},
        "spec": {"nodeName": node, "containers": [{"name": "web", "image": "web:1"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }));
    objects.last_mut().unwrap()
}

fn budget(name: &str, fields: &Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}});
    spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"namespace": "web", "name": name}, "spec": spec, "status": {"expectedPods": 1}})
}

#[test]
fn the_four_causes_that_stop_an_update_are_named_before_it_begins() {
    let never = |snapshot: &mut Snapshot| {
        app(snapshot);
        workload(snapshot).push(budget("web", &json!({"minAvailable": 1})));
    };
    let words = ["PodDisruptionBudget web/web", "Pod web/web-0", "minAvailable 1", "1 of 1 pods", "patch pdb web"];
    check(never, RiskId::PdbNever, Severity::Blocks, &words);

    let full = |snapshot: &mut Snapshot| {
        let hard = json!({"count/machines.cluster.x-k8s.io": "2"});
        snapshot.management.push(json!({"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"namespace": "default", "name": "few"}, "spec": {"hard": hard}}));
    };
    let words = ["ResourceQuota default/few", "the pool my-tkc", "used 2 of 2", "1 more", r#""3""#];
    check(full, RiskId::Quota, Severity::Blocks, &words);

    // The disk has all but one of the images that the release before had under other tags.
    let no_image = |snapshot: &mut Snapshot| {
        let named = |object: &&mut Value| object["metadata"]["name"] == "photon-k8sd-v1.16.7-vmware.1-guest.1";
        let image = snapshot.management.iter_mut().find(named).unwrap();
        let listed = json!(["vmware/kube-proxy:v1.16.7_vmware.1"]).to_string();
        image["metadata"]["annotations"]["windlass.dev/container-images"] = listed.into();
    };
    let words =
        ["Package coredns", "vmware/coredns:v1.6.2_vmware.6 is missing", "photon-k8sd-v1.16.7-vmware.1-guest.1"];
    check(no_image, RiskId::ImageMissing, Severity::Blocks, &words);

    let dead = |snapshot: &mut Snapshot| {
        let members = &mut snapshot.workloads.get_mut(&cluster_name()).unwrap().members;
        let mut dead = members[0].clone();
        (dead.id, dead.name, dead.healthy, dead.leader) = (7, "gone".to_owned(), false, false);
        members.push(dead);
    };
    let words = ["Member gone", "does not answer", "would lose the quorum", "1 of 2 voters", "member remove 7"];
    check(dead, RiskId::EtcdUnhealthy, Severity::Blocks, &words);
}

/// The image of the release says what is on its disk: all of Kubernetes, and no add-on.
async fn without_addons(world: World) {
    let components = ["kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler"];
    let components = components.map(|component| format!("{component}:v1.16.7_vmware.1"));
    let others = ["etcd:v3.3.15_vmware.6", "coredns:v1.6.2_vmware.6"].map(str::to_owned);
    let listed: Vec<String> = components.into_iter().chain(others).map(|image| format!("vmware/{image}")).collect();
    let images: Api<VirtualMachineImage> = Api::all(world.client());
    let patch = json!({"metadata": {"annotations": {"windlass.dev/container-images": json!(listed).to_string()}}});
    let name = "photon-k8sd-v1.16.7-vmware.1-guest.1";
    images.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[test]
fn what_is_not_on_a_disk_stops_the_rehearsal_as_the_risk_says() {
    let world = start::changed(start::one_and_one(), without_addons);
    let snapshot = taken(&world);
    let found = risks(&snapshot, &upgrade());
    assert!(found.iter().any(|risk| risk.blocks() && risk.object == "Package calico"), "{found:#?}");
    // Long enough for the first machine to come.
    let request = Request { deadline: Duration::from_secs(15 * 60), ..start::update() };
    let rehearsal = rehearse(&world, &request).unwrap();
    let Verdict::Stuck { waiting_for } = &rehearsal.verdict else { panic!("{rehearsal}") };
    assert!(waiting_for.starts_with("the add-on calico is not ready"), "{waiting_for}");
}

#[test]
fn a_pool_that_grows_needs_quota_though_nothing_is_replaced() {
    let mut snapshot = WELL.clone();
    let hard = json!({"requests.cpu": "10"});
    snapshot.management.push(json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"namespace": "default", "name": "few"}, "spec": {"hard": hard}}));
    let grow = |to: u32| Wish::Patch(json!({"spec": {"topology": {"workers": {"count": to}}}}));
    // Two machines of four processors each.
    let found = risks(&snapshot, &grow(3));
    let said: Vec<&str> = found.iter().filter(|risk| risk.id == RiskId::Quota).map(|risk| &*risk.message).collect();
    let told = "the pool my-tkc-workers-default has no room: requests.cpu is used 8 of 10, and 8 more are needed";
    assert_eq!(said, [told]);
    assert_eq!(risks(&snapshot, &grow(1)), []);
}

#[test]
fn what_pods_say_is_read_from_all_of_their_containers_volumes_and_budgets() {
    use Severity::{Blocks, Info, Risky};
    let bare = |snapshot: &mut Snapshot| drop(app(snapshot)["metadata"]["ownerReferences"].take());
    check(bare, RiskId::DrainBarePod, Risky, &["Pod web/web-0"]);
    let scratch = |snapshot: &mut Snapshot| {
        app(snapshot)["spec"]["volumes"] = json!([{"name": "cache", "emptyDir": {}}]);
    };
    check(scratch, RiskId::DrainLocalData, Info, &["cache"]);
    let local = |snapshot: &mut Snapshot| {
        app(snapshot)["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
        workload(snapshot).push(json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-1"},
            "spec": {"local": {"path": "/data"}, "claimRef": {"namespace": "web", "name": "data"}}}));
    };
    check(local, RiskId::DrainLocalData, Risky, &["pv-1", "local", "web/data"]);
    for statuses in ["initContainerStatuses", "containerStatuses"] {
        let waits = |snapshot: &mut Snapshot| {
            let waiting = json!({"reason": "ImagePullBackOff", "message": "no such tag"});
            app(snapshot)["status"][statuses] = json!([{"image": "web:1", "state": {"waiting": waiting}}]);
        };
        check(waits, RiskId::ImageMissing, Risky, &["Pod web/web-0", "web:1", "ImagePullBackOff: no such tag"]);
    }
    let of_package = |snapshot: &mut Snapshot| {
        let is_dns = |object: &&mut Value| {
            let owner = &object["metadata"]["ownerReferences"][0];
            object["kind"] == "Pod" && owner["kind"] == "ReplicaSet" && object["metadata"]["namespace"] == "kube-system"
        };
        let pod = workload(snapshot).iter_mut().find(is_dns).unwrap();
        let waiting = json!({"reason": "ErrImagePull"});
        pod["status"]["containerStatuses"] = json!([{"image": "vmware/x:1", "state": {"waiting": waiting}}]);
    };
    check(of_package, RiskId::ImageMissing, Blocks, &["vmware/x:1", "is not well"]);
    let unready = |snapshot: &mut Snapshot| {
        app(snapshot);
        let mut second = app(snapshot).clone();
        second["metadata"]["name"] = json!("web-1");
        second["status"]["conditions"] = json!([{"type": "Ready", "status": "False", "reason": "Crashing"}]);
        let mut both = budget("web", &json!({"minAvailable": "50%"}));
        both["status"]["expectedPods"] = json!(2);
        let objects = workload(snapshot);
        objects.pop();
        objects.extend([second, both]);
    };
    check(unready, RiskId::PdbAtLimit, Risky, &["minAvailable 50%", "needs 1", "web/web-1 is not ready: Crashing"]);
    let limited = |snapshot: &mut Snapshot| {
        app(snapshot);
        workload(snapshot).push(budget("web", &json!({"maxUnavailable": 0})));
        for machine in snapshot.management.iter_mut().filter(|object| object["kind"] == "Machine") {
            machine["spec"]["deletion"] = json!({"nodeDrainTimeoutSeconds": 300});
        }
    };
    check(limited, RiskId::PdbNever, Risky, &["maxUnavailable 0", "300 s"]);
}

#[test]
fn what_others_run_in_the_cluster_is_read_and_never_called() {
    use Severity::{Info, Risky};
    let hook = |timeout: u64, resources: Value| {
        move |snapshot: &mut Snapshot| {
            let rules = json!([{"apiGroups": ["*"], "resources": resources, "operations": ["*"]}]);
            let service = json!({"namespace": "policy", "name": "webhook"});
            let webhook = json!({"name": "policy.example.dev", "rules": rules, "failurePolicy": "Fail",
                "timeoutSeconds": timeout, "clientConfig": {"service": service}});
            workload(snapshot).push(json!({"apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "policy"}, "webhooks": [webhook]}));
            let kind = "MutatingWebhookConfiguration";
            workload(snapshot).push(json!({"kind": kind, "metadata": {"name": "none"}, "webhooks": []}));
        }
    };
    let words = ["policy.example.dev", "nodes", "the service policy/webhook has 0 ready pods"];
    check(hook(10, json!(["nodes"])), RiskId::WebhookBlocksNodes, Severity::Blocks, &words);
    check(hook(30, json!(["*"])), RiskId::WebhookSlow, Risky, &["30 s", "nodes"]);
    let service = |snapshot: &mut Snapshot| {
        let available = json!([{"type": "Available", "status": "False", "reason": "MissingEndpoints"}]);
        workload(snapshot).push(json!({"kind": "APIService", "metadata": {"name": "v1beta1.metrics.k8s.io"},
            "spec": {"service": {"name": "metrics"}}, "status": {"conditions": available}}));
    };
    check(service, RiskId::WebhookSlow, Risky, &["v1beta1.metrics.k8s.io", "MissingEndpoints"]);
    let definition = |snapshot: &mut Snapshot| {
        let versions = json!([{"name": "v1", "served": true, "storage": true}, {"name": "v1beta1", "served": true}]);
        workload(snapshot)
            .push(json!({"kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.dev"},
            "spec": {"versions": versions}, "status": {"storedVersions": ["v1beta1", "v1"]}}));
    };
    check(definition, RiskId::CrdStoredOld, Info, &["widgets.example.dev", "v1beta1"]);
    let manifest = |snapshot: &mut Snapshot| {
        let manifest = json!({"apiVersion": "apps/v1beta1", "kind": "StatefulSet"}).to_string();
        app(snapshot)["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = manifest.into();
    };
    check(manifest, RiskId::ApiRemoved, Risky, &["apps/v1beta1", "apps/v1"]);
    let client = |snapshot: &mut Snapshot| {
        let pod = app(snapshot);
        pod["kind"] = json!("Deployment");
        pod["metadata"]["managedFields"] = json!([{"manager": "helm", "apiVersion": "extensions/v1beta1",
            "time": "2026-01-01T00:00:00Z"}]);
    };
    check(client, RiskId::ApiClientOld, Risky, &["helm", "extensions/v1beta1", "2026-01-01T00:00:00Z"]);
}

#[test]
fn what_is_not_well_is_read_from_both_sides() {
    use Severity::{Blocks, Info, Risky};
    let node = |snapshot: &mut Snapshot| {
        let masters = workload(snapshot).iter_mut().filter(|object| object["kind"] == "Node");
        for node in masters {
            node["status"]["conditions"] =
                json!([{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]);
        }
    };
    check(node, RiskId::NodeUnhealthy, Blocks, &["NodeStatusUnknown"]);
    check(node, RiskId::NodeUnhealthy, Risky, &["delete machine my-tkc"]);
    let old = |snapshot: &mut Snapshot| {
        first(workload(snapshot), "Node")["status"]["nodeInfo"]["kubeletVersion"] = json!("v1.13.2");
    };
    check(old, RiskId::SkewKubelet, Blocks, &["v1.13.2", "3 minors behind"]);
    let etcd = |snapshot: &mut Snapshot| {
        let members = &mut snapshot.workloads.get_mut(&cluster_name()).unwrap().members;
        members[0].version = Some("3.1.2".parse().unwrap());
    };
    check(etcd, RiskId::SkewEtcd, Blocks, &["v3.1.2"]);
    let expires = |date: &'static str| {
        move |snapshot: &mut Snapshot| {
            let machine = first(&mut snapshot.management, "Machine");
            machine["metadata"]["annotations"]["machine.cluster.x-k8s.io/certificates-expiry"] = json!(date);
        }
    };
    check(expires("2026-01-12T00:00:00Z"), RiskId::CertExpiring, Info, &["in 10 days"]);
    check(expires("2026-01-01T00:00:00Z"), RiskId::CertExpiring, Blocks, &["expired 1 day ago"]);
    let lost = |snapshot: &mut Snapshot| {
        snapshot.management.retain(|object| object["metadata"]["name"] != "my-tkc-etcd");
    };
    check(lost, RiskId::SecretOwner, Blocks, &["Secret default/my-tkc-etcd", "windlass secrets recover my-tkc"]);
}

#[test]
fn who_has_a_say_in_the_cluster_is_read_from_its_objects() {
    use Severity::{Blocks, Risky};
    let paused = |snapshot: &mut Snapshot| first(&mut snapshot.management, "Cluster")["spec"]["paused"] = json!(true);
    check(paused, RiskId::Hold, Blocks, &["Cluster default/my-tkc", "spec.paused", "patch cluster"]);
    let wish = |snapshot: &mut Snapshot| {
        let own = first(&mut snapshot.management, "TanzuKubernetesCluster");
        own["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = json!("");
    };
    check(wish, RiskId::Hold, Blocks, &["TanzuKubernetesCluster default/my-tkc", "cluster.x-k8s.io/paused-"]);
    let pool = |snapshot: &mut Snapshot| {
        first(&mut snapshot.management, "MachineDeployment")["spec"]["paused"] = json!(true);
    };
    check(pool, RiskId::Hold, Blocks, &["MachineDeployment default/my-tkc"]);
    let hook = |snapshot: &mut Snapshot| {
        let machine = first(&mut snapshot.management, "Machine");
        machine["metadata"]["annotations"]["pre-drain.delete.hook.machine.cluster.x-k8s.io/backup"] = json!("");
    };
    check(hook, RiskId::Hold, Risky, &["pre-drain.delete.hook.machine.cluster.x-k8s.io/backup"]);
    let record = |state: &'static str, to: &'static str| {
        move |snapshot: &mut Snapshot| {
            snapshot.management.push(json!({"kind": "ClusterUpdate",
                "metadata": {"namespace": "default", "name": "my-tkc-9"},
                "spec": {"cluster": "my-tkc", "ordinal": 9, "to": {"distribution": to}},
                "status": {"state": state, "failure": "it gave up"}}));
        }
    };
    check(record("Running", "v1.15.6"), RiskId::UpdateInProgress, Risky, &["my-tkc-9", "v1.15.6"]);
    check(record("Failed", "v1.15.6"), RiskId::UpdateFailedBefore, Blocks, &["it gave up", "windlass retry my-tkc"]);
    let kept = |snapshot: &mut Snapshot| {
        let own = first(&mut snapshot.management, "TanzuKubernetesCluster");
        own["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!("fleet:run.tanzu.vmware.com/x:y/z");
        own["status"]["addons"]["cni"] = json!({"name": "calico", "status": "unmanaged"});
        own["spec"]["settings"]["network"]["cni"]["name"] = json!("cilium");
    };
    check(kept, RiskId::GitopsDrift, Risky, &["the Application fleet of Argo CD"]);
    check(kept, RiskId::PkgUnmanaged, Risky, &["calico (cni)"]);
    check(kept, RiskId::PkgIncompatible, Blocks, &["cilium", "calico"]);
}

#[test]
fn ranges_of_pods_are_read_from_nodes() {
    let ranges = |snapshot: &mut Snapshot| {
        let own = first(&mut snapshot.management, "TanzuKubernetesCluster");
        own["spec"]["settings"]["network"]["pods"]["cidrBlocks"] = json!(["192.0.2.0/23"]);
        for node in workload(snapshot).iter_mut().filter(|object| object["kind"] == "Node") {
            node["spec"]["podCIDR"] = json!("192.0.2.0/24");
        }
    };
    check(ranges, RiskId::IpPool, Severity::Blocks, &["2 of 2 ranges of pods (a /24 for each node, of a /23)"]);
}

#[test]
fn what_later_minors_take_away_is_read_from_objects_that_are_not_our_own() {
    let mut snapshot = WELL.clone();
    let terms = json!([{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]);
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": terms}}});
    let master = "node-role.kubernetes.io/master";
    let pod = json!({"nodeSelector": {master: ""}, "affinity": affinity, "tolerations": [{"key": master}]});
    let agent = json!({"kind": "DaemonSet", "metadata": {"namespace": "web", "name": "agent"},
        "spec": {"template": {"spec": pod}}});
    let mut both = agent.clone();
    both["metadata"]["name"] = json!("both");
    both["spec"]["template"]["spec"] =
        json!({"tolerations": [{"key": master}, {"key": "node-role.kubernetes.io/control-plane"}]});
    let policy = |name: &str, labels: Value| {
        json!({"apiVersion": "policy/v1beta1", "kind": "PodSecurityPolicy",
            "metadata": {"name": name, "labels": labels}})
    };
    let policies = [policy("theirs", json!({})), policy("ours", json!({"windlass.dev/addon": "defaultpsp"}))];
    workload(&mut snapshot).extend([agent, both]);
    workload(&mut snapshot).extend(policies);
    let evidence = evidence(&snapshot, &cluster_name(), &upgrade());
    let selections = evidence.selections.read().unwrap();
    let selections: Vec<(&str, &str, bool)> =
        selections.iter().map(|it| (it.object.as_str(), it.key.as_str(), it.tolerates)).collect();
    let agent = "DaemonSet web/agent";
    assert_eq!(selections, [(agent, master, false), (agent, "disk", false), (agent, master, true)]);
    let objects: Vec<&str> = evidence.objects.read().unwrap().iter().map(|it| it.object.as_str()).collect();
    // The World's own are of the add-on for it.
    assert_eq!(objects, ["PodSecurityPolicy theirs"]);
}

#[test]
fn what_could_not_be_read_is_a_gap_of_the_evidence() {
    let gap = |what: &'static str| {
        move |snapshot: &mut Snapshot| {
            let (why, way_out) = ("forbidden".to_owned(), "a role".to_owned());
            snapshot.gaps.push(Gap { what: what.to_owned(), why, way_out });
        }
    };
    let check = |what, id| check(gap(what), id, Severity::Unknown, &[what, "forbidden"]);
    check("pods of default/my-tkc", RiskId::PdbNever);
    check("machinedeployments.cluster.x-k8s.io of the management cluster", RiskId::IpPool);
    check("secrets of the management cluster", RiskId::SecretOwner);
    check("the members of etcd of default/my-tkc", RiskId::EtcdUnhealthy);
    let unreachable = |snapshot: &mut Snapshot| {
        gap("the workload cluster default/my-tkc")(snapshot);
        snapshot.workloads.clear();
    };
    let mut snapshot = WELL.clone();
    unreachable(&mut snapshot);
    let unknown = risks(&snapshot, &upgrade());
    assert!(unknown.iter().all(|risk| risk.severity == Severity::Unknown), "{unknown:#?}");
    let ids: BTreeSet<RiskId> = unknown.iter().map(|risk| risk.id).collect();
    let wanted = [RiskId::PdbNever, RiskId::EtcdUnhealthy, RiskId::NodeUnhealthy, RiskId::WebhookSlow];
    assert!(wanted.iter().all(|id| ids.contains(id)), "{unknown:#?}");
}
