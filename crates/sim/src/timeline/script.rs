//! Changes made by hand, in the order of a story: for tests of timelines and invariants.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_api::name::ClusterSecret;
use windlass_api::version::facts::joins_etcd_as_learner;
use windlass_api::{annotation, label};
use windlass_apiserver::store::{Expect, Key, Retention, Store};

use super::Recorder;

/// The cluster that the story is about.
pub(crate) const CLUSTER: &str = "default/my-tkc";
pub(crate) const OLD: &str = "v1.16.7+vmware.1";
pub(crate) const NEW: &str = "v1.17.4+vmware.1";

/// What runs a control plane.
const PROGRAMS: [&str; 4] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"];

/// Two stores, and who observes both.
pub(crate) struct Script {
    pub(crate) recorder: Recorder,
    management: Store,
    workload: Store,
    now: Timestamp,
}

/// The distribution that has a version of Kubernetes.
pub(crate) fn distribution(kubernetes: &str) -> String {
    format!("{kubernetes}-guest.1")
}

/// The image tag of a version.
fn tag(version: &str) -> String {
    version.replace('+', "_")
}

impl Script {
    /// Nothing has happened yet.
    pub(crate) fn new() -> Self {
        let recorder = Recorder::new();
        let store = |place| Store::with_seams(Retention::default(), None, Some(recorder.observer(place)));
        let (management, workload) = (store("management"), store(CLUSTER));
        Self { recorder, management, workload, now: "2026-01-01T00:00:00Z".parse().unwrap() }
    }

    /// A cluster of so many control-plane machines and one worker runs.
    pub(crate) fn running(control_plane_count: u32) -> Self {
        let mut script = Self::new();
        script.image(NEW);
        script.wish(control_plane_count, OLD, &json!({"phase": "creating"}));
        script.owner("uid-1");
        script.secrets("uid-1");
        for ordinal in 0..control_plane_count {
            script.control_plane_machine(&format!("cp-{ordinal}"), &format!("cp-{ordinal}"), OLD, "0");
            script.join_control_plane(&format!("cp-{ordinal}"), OLD);
        }
        script.addons(OLD);
        script.pool(OLD);
        script.worker("w-0", OLD);
        script.join("w-0", OLD);
        script.wish(control_plane_count, OLD, &json!({"phase": "running", "version": distribution(OLD)}));
        script
    }

    /// The same, but nobody asked Windlass for it: Cluster API rolls it.
    pub(crate) fn rolled_by_cluster_api(control_plane_count: u32, version: &str) -> Self {
        let mut script = Self::new();
        script.owner("uid-1");
        script.control_plane(control_plane_count, version, None);
        script.secrets("uid-of-control-plane");
        for ordinal in 0..control_plane_count {
            script.rolled_machine(&format!("cp-{ordinal}"), version);
            script.join_control_plane(&format!("cp-{ordinal}"), version);
        }
        script.control_plane(control_plane_count, version, version.into());
        script.pool(version);
        script.worker("w-0", version);
        script.join("w-0", version);
        script
    }

    fn store(&self, resource: &str) -> &Store {
        let of_workload = [
            "nodes",
            "pods",
            "daemonsets.apps",
            "deployments.apps",
            "configmaps",
            "poddisruptionbudgets.policy",
            "podsecuritypolicies.policy",
            "volumeattachments.storage.k8s.io",
            "customresourcedefinitions.apiextensions.k8s.io",
        ];
        let is_record = resource.ends_with(".sim.windlass.dev");
        if is_record || of_workload.contains(&resource) { &self.workload } else { &self.management }
    }

    /// Writes an object over the one of its name; a second passes.
    pub(crate) fn put(&mut self, resource: &str, key: &str, mut object: Value) {
        self.now += SignedDuration::from_secs(1);
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let key = Key::new(namespace, name);
        let store = self.store(resource);
        let current = store.get(resource, &key);
        let expect = current.as_ref().map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
        if object["metadata"].is_null() {
            object["metadata"] = json!({});
        }
        store.put(&Arc::from(resource), &key, expect, object, self.now).unwrap();
    }

    /// Changes an object.
    pub(crate) fn edit(&mut self, resource: &str, key: &str, edit: impl FnOnce(&mut Value)) {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let mut object = self.store(resource).get(resource, &Key::new(namespace, name)).unwrap().to_value("", "");
        edit(&mut object);
        self.put(resource, key, object);
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, resource: &str, key: &str) {
        self.now += SignedDuration::from_secs(1);
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let key = Key::new(namespace, name);
        let store = self.store(resource);
        let entry = store.get(resource, &key).unwrap();
        store.remove(&Arc::from(resource), &key, entry.revision, entry.to_value("", ""), self.now).unwrap();
    }

    pub(crate) fn wish(&mut self, count: u32, version: &str, status: &Value) {
        let spec = json!({
            "topology": {"controlPlane": {"count": count}, "workers": {"count": 1}},
            "distribution": {"fullVersion": distribution(version)},
        });
        self.put("tanzukubernetesclusters.run.tanzu.vmware.com", CLUSTER, json!({"spec": spec, "status": status}));
    }

    pub(crate) fn owner(&mut self, uid: &str) {
        self.put("clusters.cluster.x-k8s.io", CLUSTER, json!({"metadata": {"uid": uid}}));
    }

    /// Whatever it is, it is to be removed.
    pub(crate) fn delete(&mut self, resource: &str, key: &str) {
        self.edit(resource, key, |object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    }

    fn secrets(&mut self, owner: &str) {
        for secret in ClusterSecret::CERTIFICATES.into_iter().chain([ClusterSecret::Kubeconfig]) {
            self.secret(&secret.to_string(), owner);
        }
    }

    pub(crate) fn secret(&mut self, secret: &str, owner: &str) {
        let metadata = json!({
            "labels": {label::CLUSTER_NAME.name: "my-tkc"},
            "ownerReferences": [{"kind": "Cluster", "name": "my-tkc", "uid": owner}],
        });
        let data = json!({"tls.key": format!("key of {secret}")});
        self.put("secrets", &format!("{CLUSTER}-{secret}"), json!({"metadata": metadata, "data": data}));
    }

    /// A control plane that Cluster API rolls, and the version that it says to have reached.
    pub(crate) fn control_plane(&mut self, replicas: u32, version: &str, reached: Option<&str>) {
        let metadata = json!({
            "uid": "uid-of-control-plane",
            "labels": {label::CLUSTER_NAME.name: "my-tkc"},
            "ownerReferences": [{"kind": "Cluster", "name": "my-tkc", "uid": "uid-1"}],
        });
        let object = json!({
            "metadata": metadata,
            "spec": {"replicas": replicas, "version": version},
            "status": {"version": reached},
        });
        self.put("kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", "default/my-tkc-control-plane", object);
    }

    /// A machine of such a control plane.
    pub(crate) fn rolled_machine(&mut self, name: &str, version: &str) {
        let labels = json!({label::CLUSTER_NAME.name: "my-tkc", label::CONTROL_PLANE.name: ""});
        let metadata = json!({"labels": labels, "finalizers": ["machine.cluster.x-k8s.io"]});
        let object = json!({"metadata": metadata, "spec": {"version": version}});
        self.put("machines.cluster.x-k8s.io", &format!("default/{name}"), object);
    }

    /// kubeadm's record: a version, and the nodes whose API servers it names.
    pub(crate) fn kubeadm_config(&mut self, version: &str, nodes: &[&str]) {
        let endpoints: Vec<String> = nodes.iter().map(|node| format!("  {node}:\n    bindPort: 6443\n")).collect();
        let endpoints = endpoints.concat();
        let data = json!({
            "ClusterConfiguration": format!("kubernetesVersion: {version}\n"),
            "ClusterStatus": format!("apiEndpoints:\n{endpoints}"),
        });
        self.put("configmaps", "kube-system/kubeadm-config", json!({"data": data}));
    }

    /// A pod that nobody but its maker cares for, on a node.
    pub(crate) fn pod(&mut self, name: &str, node: &str) {
        let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        let object = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"nodeName": node}, "status": status});
        self.put("pods", &format!("default/{name}"), object);
    }

    /// A pod that may run on nodes of a distribution only, on a node.
    pub(crate) fn bound_pod(&mut self, name: &str, node: &str, version: &str) {
        let selector = json!({label::DISTRIBUTION_VERSION.name: tag(&distribution(version))});
        self.put("pods", &format!("default/{name}"), json!({"spec": {"nodeName": node, "nodeSelector": selector}}));
    }

    /// The Eviction API lets a pod go.
    pub(crate) fn evict(&mut self, name: &str) {
        let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"});
        self.edit("pods", &format!("default/{name}"), |pod| pod["status"]["conditions"] = json!([condition]));
    }

    /// A budget for such pods, which allows so many to go and has let these go.
    pub(crate) fn budget(&mut self, allowed: i64, letting_go: &[&str]) {
        let pods: serde_json::Map<String, Value> =
            letting_go.iter().map(|pod| ((*pod).to_owned(), json!("2026-01-01T00:00:00Z"))).collect();
        let status = json!({"disruptionsAllowed": allowed, "disruptedPods": pods});
        let object = json!({"spec": {"selector": {"matchLabels": {"app": "web"}}}, "status": status});
        self.put("poddisruptionbudgets.policy", "default/web", object);
    }

    /// Time passes.
    pub(crate) fn wait(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    fn image(&mut self, version: &str) {
        let annotations = json!({
            annotation::DISTRIBUTION.name: json!({"distribution": {"version": distribution(version)}}).to_string(),
            format!("{}pvcsi", annotation::ADDON_PREFIX): "{}",
        });
        let resource = "virtualmachineimages.vmoperator.vmware.com";
        self.put(resource, "photon", json!({"metadata": {"annotations": annotations}}));
    }

    pub(crate) fn control_plane_machine(&mut self, name: &str, base: &str, version: &str, update: &str) {
        let metadata = json!({
            "labels": {
                label::CLUSTER_NAME.name: "my-tkc", label::CONTROL_PLANE.name: "", label::UPDATE_ID.name: update,
            },
            "annotations": {annotation::MACHINE_NAME_BASE.name: base},
            "finalizers": ["machine.cluster.x-k8s.io"],
        });
        let object = json!({"metadata": metadata, "spec": {"version": version}});
        self.put("machines.cluster.x-k8s.io", &format!("default/{name}"), object);
    }

    pub(crate) fn worker(&mut self, name: &str, version: &str) {
        let labels = json!({label::CLUSTER_NAME.name: "my-tkc", label::DEPLOYMENT_NAME.name: "pool"});
        let metadata = json!({"labels": labels, "finalizers": ["machine.cluster.x-k8s.io"]});
        let object = json!({"metadata": metadata, "spec": {"version": version}});
        self.put("machines.cluster.x-k8s.io", &format!("default/{name}"), object);
    }

    pub(crate) fn pool(&mut self, version: &str) {
        let template = json!({"version": version, "infrastructureRef": {"name": format!("template-{version}")}});
        let metadata = json!({"labels": {label::CLUSTER_NAME.name: "my-tkc"}});
        let object = json!({"metadata": metadata, "spec": {"template": {"spec": template}}});
        self.put("machinedeployments.cluster.x-k8s.io", "default/pool", object);
    }

    pub(crate) fn update(&mut self, to: &str, state: &str) {
        let end = |version: &str| json!({"distribution": distribution(version), "kubernetes": version});
        let spec = json!({"cluster": "my-tkc", "ordinal": 1, "id": "1", "from": end(OLD), "to": end(to)});
        let status = json!({"state": state, "stage": "controlPlane"});
        self.put("clusterupdates.windlass.dev", "default/my-tkc-1", json!({"spec": spec, "status": status}));
    }

    /// All add-ons of a release: two with pods, one without.
    pub(crate) fn addons(&mut self, version: &str) {
        self.addon("coredns", version);
        self.addon("kube-proxy", version);
        let metadata = json!({"labels": {label::ADDON.name: "pvcsi"}});
        self.put("configmaps", "kube-system/pvcsi", json!({"metadata": metadata}));
    }

    pub(crate) fn addon(&mut self, addon: &str, version: &str) {
        let selector = json!({label::DISTRIBUTION_VERSION.name: tag(&distribution(version))});
        let spec = json!({"template": {"spec": {"nodeSelector": selector}}, "updateStrategy": {"type": "OnDelete"}});
        let metadata = json!({"generation": 1, "labels": {label::ADDON.name: addon}});
        let object = json!({"metadata": metadata, "spec": spec, "status": {"observedGeneration": 1}});
        let suffix = version.split('+').next().unwrap();
        self.put("daemonsets.apps", &format!("kube-system/{addon}-{suffix}"), object);
    }

    /// The Job that updates the control plane.
    pub(crate) fn job(&mut self, failed: u32, complete: bool) {
        let labels = json!({label::CLUSTER_NAME.name: "my-tkc", label::CLUSTER_NAMESPACE.name: "default"});
        let condition = json!({"type": "Complete", "status": if complete { "True" } else { "False" }});
        let status = json!({"failed": failed, "conditions": [condition]});
        let object = json!({"metadata": {"labels": labels}, "status": status});
        self.put("jobs.batch", "vmware-system-tkg/update-1", object);
    }

    pub(crate) fn power(&mut self, node: &str, version: &str, on: bool) {
        self.put("machines.sim.windlass.dev", node, json!({"record": {"on": on, "kubelet": version}}));
    }

    pub(crate) fn member(&mut self, node: &str, started: bool) {
        self.member_as(node, &json!({"learner": false, "started": started, "leader": false}));
    }

    pub(crate) fn member_as(&mut self, node: &str, record: &Value) {
        let record = json!({"record": record});
        self.put("members.etcd.sim.windlass.dev", node, record);
    }

    pub(crate) fn node(&mut self, name: &str, kubelet: &str, control_plane: bool, ready: bool) {
        let mut labels = json!({label::DISTRIBUTION_VERSION.name: tag(&distribution(kubelet))});
        if control_plane {
            labels[label::NODE_CONTROL_PLANE.name] = "".into();
        }
        let ready = json!({"type": "Ready", "status": if ready { "True" } else { "False" }});
        let status = json!({"nodeInfo": {"kubeletVersion": kubelet}, "conditions": [ready]});
        self.put("nodes", name, json!({"metadata": {"labels": labels}, "status": status}));
    }

    pub(crate) fn component(&mut self, component: &str, node: &str, version: &str) {
        let containers = json!([{"image": format!("vmware/{component}:{}", tag(version))}]);
        let object = json!({"spec": {"nodeName": node, "containers": containers}});
        self.put("pods", &format!("kube-system/{component}-{node}"), object);
    }

    /// A machine of the control plane boots, joins, and gets ready.
    pub(crate) fn join_control_plane(&mut self, name: &str, version: &str) {
        self.power(name, version, true);
        if joins_etcd_as_learner(&version.parse().unwrap()) {
            self.member_as(name, &json!({"learner": true, "started": false, "leader": false}));
        } else {
            self.member(name, false);
        }
        self.member(name, true);
        for program in PROGRAMS {
            self.component(program, name, version);
        }
        self.node(name, version, true, false);
        self.component("kube-proxy", name, version);
        self.node(name, version, true, true);
    }

    /// A worker boots, joins, and gets ready.
    pub(crate) fn join(&mut self, name: &str, version: &str) {
        self.power(name, version, true);
        self.node(name, version, false, false);
        self.component("kube-proxy", name, version);
        self.node(name, version, false, true);
    }

    /// A machine is removed, in the right order.
    pub(crate) fn retire(&mut self, name: &str, version: &str, control_plane: bool) {
        if control_plane {
            self.remove("members.etcd.sim.windlass.dev", name);
        }
        self.delete("machines.cluster.x-k8s.io", &format!("default/{name}"));
        self.power(name, version, false);
        if control_plane {
            for program in PROGRAMS {
                self.remove("pods", &format!("kube-system/{program}-{name}"));
            }
        }
        self.remove("pods", &format!("kube-system/kube-proxy-{name}"));
        self.remove("nodes", name);
        self.remove("machines.cluster.x-k8s.io", &format!("default/{name}"));
    }

    /// The whole update, in the right order.
    pub(crate) fn upgrade(&mut self, control_plane_count: u32) {
        self.upgrade_control_plane(control_plane_count);
        self.pool(NEW);
        self.worker("w-1", NEW);
        self.join("w-1", NEW);
        self.retire("w-0", OLD, false);
        self.update(NEW, "Succeeded");
    }

    /// The update as far as to the workers.
    pub(crate) fn upgrade_control_plane(&mut self, control_plane_count: u32) {
        self.update(NEW, "Running");
        self.addons(NEW);
        self.job(0, false);
        for ordinal in 0..control_plane_count {
            let (old, new) = (format!("cp-{ordinal}"), format!("cp-{ordinal}-1"));
            self.control_plane_machine(&new, &old, NEW, "1");
            self.join_control_plane(&new, NEW);
            self.retire(&old, OLD, true);
        }
        self.job(0, true);
    }

    /// The ids of the rules that were violated, each time.
    pub(crate) fn violated(&self) -> Vec<String> {
        self.recorder.violations().into_iter().map(|violation| violation.id).collect()
    }

    /// The ids of the rules to which an exception was made.
    pub(crate) fn exempted(&self) -> Vec<String> {
        self.recorder.exempted().into_iter().map(|exempted| exempted.id).collect()
    }
}
