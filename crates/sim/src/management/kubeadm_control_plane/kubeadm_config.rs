//! What kubeadm finds in a cluster when a machine joins: brought up to the new version before the first machine is replaced.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::version::{KubernetesVersion, facts};

use super::view::View;
use crate::management::context::{Error, Turn, workload_name};

const NAMESPACE: &str = "kube-system";
const KUBEADM_CONFIG: &str = "kubeadm-config";
const CLUSTER_CONFIGURATION: &str = "ClusterConfiguration";
const RBAC: &str = "rbac.authorization.k8s.io";
/// The kubelets that are about to join, and those that are nodes.
const JOINING: &str = "system:bootstrappers:kubeadm:default-node-token";
const NODES: &str = "system:nodes";

/// The parts of the `clusterConfiguration` that people may change in a cluster that runs.
const PARTS: [&str; 7] =
    ["apiServer", "controllerManager", "scheduler", "etcd", "imageRepository", "featureGates", "encryptionAlgorithm"];

/// The API of a cluster whose machines are replaced.
struct Place {
    cluster: String,
    client: Client,
}

/// Writes what new machines are to find. The `kubeadm-config` comes last: where it is as it should be, all else is.
pub(super) async fn prepare(turn: &Turn, view: &View<'_>) -> Result<(), Error> {
    let Some(workload) = turn.workloads.get(&workload_name(view.cluster)?) else { return Ok(()) };
    let place = Place { cluster: workload.name().to_string(), client: workload.client() };
    let api: Api<ConfigMap> = Api::namespaced(place.client.clone(), NAMESPACE);
    let map = api.get(KUBEADM_CONFIG).await.map_err(|source| place.failed("read", KUBEADM_CONFIG, source))?;
    let text = map.data.as_ref().and_then(|data| data.get(CLUSTER_CONFIGURATION)).map(String::as_str);
    let Some(changed) = changed(view, &place, text.unwrap_or_default())? else { return Ok(()) };
    if let Ok(wanted) = view.object.spec.version.parse::<KubernetesVersion>() {
        copy_kubelet_config(view, &place, &wanted).await?;
        allow(&place, &wanted).await?;
    }
    let patch = Patch::Merge(json!({"data": {CLUSTER_CONFIGURATION: changed}}));
    let written = api.patch(KUBEADM_CONFIG, &PatchParams::default(), &patch).await;
    written.map(drop).map_err(|source| place.failed("change", KUBEADM_CONFIG, source))
}

/// The configuration of the cluster as it should be; `None` if it is.
fn changed(view: &View<'_>, place: &Place, text: &str) -> Result<Option<String>, Error> {
    let failed = |what: &str, why: String| Error::Text {
        what: format!("{what} the {CLUSTER_CONFIGURATION} of {}", place.cluster),
        why,
    };
    let before: Value = serde_saphyr::from_str(text).map_err(|error| failed("read", error.to_string()))?;
    let mut after = before.clone();
    after["kubernetesVersion"] = view.object.spec.version.as_str().into();
    let wish = &view.wish["clusterConfiguration"];
    for part in PARTS.into_iter().filter(|part| !wish[*part].is_null()) {
        after[part] = wish[part].clone();
    }
    if after == before {
        return Ok(None);
    }
    serde_saphyr::to_string(&after).map(Some).map_err(|error| failed("write", error.to_string()))
}

/// Before 1.24 each minor has a configuration of kubelets of its own: the next one begins as a copy.
async fn copy_kubelet_config(view: &View<'_>, place: &Place, wanted: &KubernetesVersion) -> Result<(), Error> {
    let versions = view.replicas.iter().filter_map(|replica| replica.machine.spec.version.as_ref());
    let Some(oldest) = versions.filter_map(|version| version.parse::<KubernetesVersion>().ok()).min() else {
        return Ok(());
    };
    let (old, new) = (facts::kubelet_config_name(&oldest), facts::kubelet_config_name(wanted));
    if old == new {
        return Ok(());
    }
    let api: Api<ConfigMap> = Api::namespaced(place.client.clone(), NAMESPACE);
    let Some(before) = api.get_opt(&old).await.map_err(|source| place.failed("read", &old, source))? else {
        return Ok(());
    };
    place.ensure(&api, &json!({"metadata": {"name": new}, "data": before.data})).await
}

/// Whoever joins may read what it reads at this version.
async fn allow(place: &Place, wanted: &KubernetesVersion) -> Result<(), Error> {
    let kubelet_config = facts::kubelet_config_name(wanted);
    let name = format!("kubeadm:{kubelet_config}");
    let group = |name: &str| json!({"apiGroup": RBAC, "kind": "Group", "name": name});
    let rules =
        json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [kubelet_config], "verbs": ["get"]}]);
    let permitted: Api<Role> = Api::namespaced(place.client.clone(), NAMESPACE);
    place.ensure(&permitted, &json!({"metadata": {"name": name}, "rules": rules})).await?;
    let bindings: Api<RoleBinding> = Api::namespaced(place.client.clone(), NAMESPACE);
    let reference = json!({"apiGroup": RBAC, "kind": "Role", "name": name});
    let subjects = json!([group(JOINING), group(NODES)]);
    place.ensure(&bindings, &json!({"metadata": {"name": name}, "roleRef": reference, "subjects": subjects})).await?;
    if !facts::join_gets_nodes(wanted) {
        return Ok(());
    }
    let name = "kubeadm:get-nodes";
    let rules = json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]);
    place
        .ensure(&Api::<ClusterRole>::all(place.client.clone()), &json!({"metadata": {"name": name}, "rules": rules}))
        .await?;
    let reference = json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": name});
    let binding = json!({"metadata": {"name": name}, "roleRef": reference, "subjects": [group(JOINING)]});
    place.ensure(&Api::<ClusterRoleBinding>::all(place.client.clone()), &binding).await
}

impl Place {
    /// Creates an object, unless there is one of its name.
    async fn ensure<K>(&self, api: &Api<K>, object: &Value) -> Result<(), Error>
    where
        K: Clone + DeserializeOwned + Serialize + std::fmt::Debug,
    {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let object: K = serde_json::from_value(object.clone()).map_err(|error| Error::Text {
            what: format!("write {name} for {}", self.cluster),
            why: error.to_string(),
        })?;
        match api.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
            result => result.map(drop).map_err(|source| self.failed("create", name, source)),
        }
    }

    fn failed(&self, verb: &'static str, name: &str, source: kube::Error) -> Error {
        Error::Api { verb, object: format!("{name} in {}", self.cluster), source: Box::new(source) }
    }
}
