//! What a cluster is, whatever its parts are called: two ways to the same wish are compared by it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::label;
use windlass_api::name::NamespacedName;
use windlass_apiserver::ApiServer;
use windlass_apiserver::store::Range;
use windlass_sim::world::World;

const EVERYTHING: Range<'static> = Range { namespace: None, after: None, limit: 0 };

/// The Secrets that are there for as long as a cluster is, by the ends of their names.
const LASTING: [&str; 5] = ["ca", "etcd", "proxy", "sa", "kubeconfig"];

/// What is installed, in the management cluster and in the workload cluster.
const INSTALLS: &str = "packageinstalls.packaging.carvel.dev";

/// The parts of a cluster, by what they are. Parts that are alike are told apart by their number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape(BTreeMap<String, Value>);

impl Shape {
    /// The shape of a cluster in a World.
    pub(super) fn of(world: &World, cluster: &NamespacedName) -> Self {
        let mut parts = Vec::new();
        let management = world.management();
        for object in all(management, "tanzukubernetesclusters.run.tanzu.vmware.com") {
            parts.push(("the cluster".to_owned(), asked(&object)));
        }
        for object in all(management, "clusters.cluster.x-k8s.io") {
            if !object["spec"]["topology"].is_null() {
                parts.push(("the cluster of a class".to_owned(), asked_of_class(&object)));
            }
        }
        for object in all(management, "clusterbootstraps.run.tanzu.vmware.com") {
            let shape = json!({"packages": object["spec"], "for": object["status"]["resolvedTKR"]});
            parts.push((format!("the packages of {}", name(&object)), shape));
        }
        for object in all(management, INSTALLS) {
            parts.push((format!("the package {}", name(&object)), installed(&object)));
        }
        for object in all(management, "wcpmachines.infrastructure.cluster.vmware.com") {
            let of = |field: &str| object["spec"][field].clone();
            let shape = json!({"class": of("className"), "storage": of("storageClass"), "image": of("imageName")});
            parts.push((format!("a virtual machine of the {}", role(&object)), shape));
        }
        for object in all(management, "machines.cluster.x-k8s.io") {
            let (spec, status) = (&object["spec"], &object["status"]);
            let shape = json!({"version": spec["version"], "phase": status["phase"]});
            parts.push((format!("a machine of the {}", role(&object)), shape));
        }
        for object in all(management, "machinedeployments.cluster.x-k8s.io") {
            let spec = &object["spec"];
            let shape = json!({"replicas": spec["replicas"], "version": spec["template"]["spec"]["version"]});
            parts.push((format!("the pool {}", name(&object)), shape));
        }
        for object in all(management, "secrets") {
            let is_lasting = LASTING.iter().any(|part| name(&object) == format!("{}-{part}", cluster.name));
            if is_lasting && object["metadata"]["namespace"] == cluster.namespace.as_str() {
                parts.push((format!("the Secret {}", name(&object)), object["type"].clone()));
            }
        }
        if let Some(workload) = world.workload(cluster) {
            let server = workload.server();
            for object in all(server, "nodes") {
                let version = &object["status"]["nodeInfo"]["kubeletVersion"];
                let cordoned = object["spec"]["unschedulable"].as_bool().unwrap_or_default();
                parts.push((
                    "a node".to_owned(),
                    json!({"version": version, "ready": ready(&object), "cordoned": cordoned}),
                ));
            }
            for resource in ["daemonsets.apps", "deployments.apps"] {
                for object in all(server, resource) {
                    parts.push((format!("{resource} {}", name(&object)), object["spec"]["template"]["spec"].clone()));
                }
            }
            for object in all(server, INSTALLS) {
                parts.push((format!("the package {}", name(&object)), installed(&object)));
            }
            for member in workload.members().unwrap_or_default() {
                let shape =
                    json!({"learner": member.learner, "healthy": member.healthy, "named": !member.name.is_empty()});
                parts.push(("a member of etcd".to_owned(), shape));
            }
        }
        Self::numbered(parts)
    }

    fn numbered(mut parts: Vec<(String, Value)>) -> Self {
        parts.sort_by_cached_key(|(name, shape)| (name.clone(), shape.to_string()));
        let (mut shapes, mut counts) = (BTreeMap::new(), BTreeMap::<String, usize>::new());
        for (name, shape) in parts {
            let number = counts.entry(name.clone()).or_default();
            *number += 1;
            shapes.insert(format!("{name} #{number}"), shape);
        }
        Self(shapes)
    }

    /// In what another one differs from this.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, expected) in &self.0 {
            match other.0.get(name) {
                None => lines.push(format!("{name} is missing")),
                Some(found) if found != expected => lines.push(format!("{name} is {found} instead of {expected}")),
                Some(_) => {}
            }
        }
        lines.extend(other.0.keys().filter(|name| !self.0.contains_key(*name)).map(|name| format!("{name} is extra")));
        lines
    }
}

fn all(server: &ApiServer, resource: &str) -> Vec<Value> {
    let entries = server.store().list(resource, EVERYTHING, |_| true).entries;
    entries.iter().map(|entry| entry.to_value("", "")).collect()
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// What is asked of a cluster, and what it says of it.
fn asked(cluster: &Value) -> Value {
    let status = &cluster["status"];
    json!({"spec": cluster["spec"], "phase": status["phase"], "version": status["version"], "waits": status["waitingFor"]})
}

/// What is asked of a cluster of a class. What its release is made of is told to it by others, for each version that it had.
fn asked_of_class(cluster: &Value) -> Value {
    let (topology, labels) = (&cluster["spec"]["topology"], &cluster["metadata"]["labels"]);
    let replicas = |part: &Value| json!({"name": part["name"], "replicas": part["replicas"]});
    let pools: Vec<Value> =
        topology["workers"]["machineDeployments"].as_array().into_iter().flatten().map(replicas).collect();
    json!({
        "version": topology["version"], "release": labels[label::RELEASE.name], "paused": cluster["spec"]["paused"] == true,
        "controlPlane": topology["controlPlane"]["replicas"], "pools": pools,
    })
}

/// The version that a package has, and how it is.
fn installed(install: &Value) -> Value {
    let is_true = |it: &&Value| it["status"] == "True";
    let state = install["status"]["conditions"].as_array().into_iter().flatten().find(is_true);
    json!({"version": install["status"]["version"], "state": state.map(|it| &it["type"])})
}

fn role(object: &Value) -> &'static str {
    let is_control_plane = !object["metadata"]["labels"][label::CONTROL_PLANE.name].is_null();
    if is_control_plane { "control plane" } else { "workers" }
}

fn ready(node: &Value) -> Value {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter(|condition| condition["type"] == "Ready").map(|ready| ready["status"].clone()).collect()
}
