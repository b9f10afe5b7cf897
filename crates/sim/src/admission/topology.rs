//! Clusters of a class: their version goes up, by one minor at most, and only from one that all their parts have reached.

use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_api::kind::cluster_api::{Machine, MachineDeployment};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::topology::ClusterClass;
use windlass_api::version::KubernetesVersion;
use windlass_api::{annotation, label};
use windlass_apiserver::field::FieldError;
use windlass_apiserver::store::{Entry, Key, Range, Store};

use super::{Asked, Verdict, read, readable, resource, text};
use crate::management::contract::{self, ControlPlaneState};

const VERSION: &str = "spec.topology.version";
/// The hook that is asked when an upgrade is over: as long as it is, the upgrade is not.
const AFTER_CLUSTER_UPGRADE: &str = "AfterClusterUpgrade";

pub(super) fn judge(asked: &Asked<'_>) -> Verdict {
    let spec = &asked.object["spec"];
    let was = |part: &str| asked.before.map(|before| &before["spec"][part]).filter(|part| !part.is_null());
    let mut verdict = Verdict::default();
    for part in ["infrastructureRef", "controlPlaneRef"] {
        if was(part).is_some() && spec[part].is_null() {
            verdict.errors.push(FieldError::forbidden(format!("spec.{part}"), "cannot be removed"));
        }
    }
    let topology = &spec["topology"];
    if topology.is_null() {
        let removed = was("topology").map(|_| "cannot be removed from an existing Cluster");
        verdict.errors.extend(removed.map(|why| FieldError::forbidden("spec.topology", why)));
        return verdict;
    }
    let invalid = |why: String| FieldError::invalid(VERSION, text(&topology["version"]), why);
    let unreadable = "version must be a valid semantic version";
    verdict.errors.extend(readable(VERSION, text(&topology["version"]), unreadable));
    let Ok(to) = text(&topology["version"]).parse::<KubernetesVersion>() else { return verdict };
    let Some(from) = was("topology").and_then(|was| text(&was["version"]).parse::<KubernetesVersion>().ok()) else {
        return verdict;
    };
    let bypass = annotation::DISABLE_VERSION_CHECK.name;
    if asked.object["metadata"]["annotations"].get(bypass).is_some() {
        let warning = format!("Skipping version validation for Cluster because annotation {bypass:?} is set.");
        verdict.warnings.push(warning);
    } else {
        verdict.errors.extend(step(asked, topology, &from, &to).map(invalid));
    }
    verdict
}

/// What is wrong with a change of version.
fn step(asked: &Asked<'_>, topology: &Value, from: &KubernetesVersion, to: &KubernetesVersion) -> Option<String> {
    if from == to {
        return None;
    }
    let quoted = [from, to].map(|version| format!("{:?}", version.bare().to_string()));
    let [was, wanted] = quoted;
    let numbers = |version: &KubernetesVersion| (version.minor(), version.patch());
    if numbers(to) < numbers(from) {
        return Some(format!("version cannot be decreased from {was} to {wanted}"));
    }
    let parts = Parts::of(asked);
    let is_next = from.minor().next().is_some_and(|next| to.minor() <= next);
    if !is_next && !parts.offers_versions(topology) {
        return Some(format!("version cannot be increased from {was} to {wanted}"));
    }
    let hooks = text(&asked.object["metadata"]["annotations"][annotation::PENDING_HOOKS.name]);
    if hooks.split(',').any(|hook| hook == AFTER_CLUSTER_UPGRADE) {
        return Some(format!("version cannot be changed when the {AFTER_CLUSTER_UPGRADE:?} hook is still blocking"));
    }
    let waits: Vec<String> = [parts.control_plane(asked, from), parts.pools(from)].into_iter().flatten().collect();
    match waits.as_slice() {
        [] => None,
        [one] => Some(format!("version cannot be changed: {one}")),
        several => Some(format!("version cannot be changed: [{}]", several.join(", "))),
    }
}

/// What a Cluster is made of, as it is stored.
struct Parts<'a> {
    store: &'a Store,
    namespace: &'a str,
    cluster: &'a str,
}

impl<'a> Parts<'a> {
    fn of(asked: &Asked<'a>) -> Self {
        let metadata = &asked.object["metadata"];
        Self { store: asked.store, namespace: text(&metadata["namespace"]), cluster: text(&metadata["name"]) }
    }

    fn get<K: kube::Resource<DynamicType = ()> + DeserializeOwned>(&self, namespace: &str, name: &str) -> Option<K> {
        read(&*self.store.get(&resource::<K>(), &Key::new(namespace, name))?)
    }

    /// The objects of a kind that belong to the cluster and have a label.
    fn list<K: kube::Resource<DynamicType = ()> + DeserializeOwned>(&self, key: &str, value: &str) -> Vec<K> {
        let range = Range { namespace: Some(self.namespace), after: None, limit: 0 };
        let has =
            |entry: &Entry, key: &str, value: &str| entry.labels.iter().any(|(k, v)| (&**k, &**v) == (key, value));
        let wanted = |entry: &Entry| has(entry, label::CLUSTER_NAME.name, self.cluster) && has(entry, key, value);
        let page = self.store.list(&resource::<K>(), range, wanted);
        page.entries.iter().filter_map(|entry| read(entry)).collect()
    }

    /// Whether the class knows the versions in between, so that it can be asked for one several minors ahead.
    fn offers_versions(&self, topology: &Value) -> bool {
        let class = &topology["classRef"];
        let namespace = class["namespace"].as_str().unwrap_or(self.namespace);
        let class = self.get::<ClusterClass>(namespace, text(&class["name"]));
        class.is_some_and(|class| {
            let external = class.spec.upgrade.and_then(|upgrade| upgrade.external);
            let plans = external.is_some_and(|external| external.generate_upgrade_plan_extension.is_some());
            plans || !class.spec.kubernetes_versions.is_empty()
        })
    }

    /// What the control plane is not done with.
    fn control_plane(&self, asked: &Asked<'_>, from: &KubernetesVersion) -> Option<String> {
        let name = text(&asked.before?["spec"]["controlPlaneRef"]["name"]);
        let Some(control_plane) = self.get::<KubeadmControlPlane>(self.namespace, name) else {
            let why = "failed to check if control plane is upgrading: failed to get control plane object";
            return Some(why.to_owned());
        };
        let at = control_plane.spec.version.parse::<KubernetesVersion>().ok();
        if let Some(at) = at.filter(|at| at != from) {
            let (from, at) = (from.bare(), at.bare());
            return Some(format!(
                "Cluster.spec.topology.version {from} was not propagated to control plane yet (control plane version {at})"
            ));
        }
        match contract::state(&control_plane) {
            ControlPlaneState::Provisioning => Some("control plane is currently provisioning".to_owned()),
            ControlPlaneState::Upgrading => Some("control plane is still completing a previous upgrade".to_owned()),
            ControlPlaneState::Stable => None,
        }
    }

    /// The pools that are not done.
    fn pools(&self, from: &KubernetesVersion) -> Option<String> {
        let is_behind = |pool: &MachineDeployment| {
            let version = &pool.spec.template.spec.version;
            let at = version.as_deref().and_then(|version| version.parse::<KubernetesVersion>().ok());
            let name = pool.metadata.name.as_deref().unwrap_or_default();
            at.is_some_and(|at| at != *from)
                || self.list::<Machine>(label::DEPLOYMENT_NAME.name, name).iter().any(|m| m.spec.version != *version)
        };
        let pools = self.list::<MachineDeployment>(label::TOPOLOGY_OWNED.name, "");
        let behind: Vec<String> = pools.into_iter().filter(is_behind).filter_map(|pool| pool.metadata.name).collect();
        let names = behind.join(", ");
        (!names.is_empty())
            .then(|| format!("there are still MachineDeployments completing a previous upgrade: [{names}]"))
    }
}
