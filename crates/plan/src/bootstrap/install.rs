//! What a cluster has for its packages, as objects.

use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::packaging::PackageInstall;
use windlass_api::name::{ClusterSecret, PackagePart};
use windlass_api::version::KubernetesVersion;

use super::{Listed, SYSTEM_NAMESPACE, Subject};
use crate::render;

/// Whose rights packages are installed with in a workload cluster.
const ACCOUNT: &str = "tanzu-cluster-bootstrap-sa";
const ROLE: &str = "tanzu-cluster-bootstrap-clusterrole";
const BINDING: &str = "tanzu-cluster-bootstrap-clusterrolebinding";
/// How often a package is applied anew.
const SYNC_PERIOD: &str = "10m0s";

/// What a workload cluster has before its first package: a namespace for packages, and an account with all rights.
pub fn prerequisites() -> Vec<Value> {
    let rbac = "rbac.authorization.k8s.io";
    let api_version = format!("{rbac}/v1");
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": SYSTEM_NAMESPACE},
        }),
        json!({
            "apiVersion": api_version, "kind": "ClusterRole", "metadata": {"name": ROLE},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
        }),
        json!({
            "apiVersion": api_version, "kind": "ClusterRoleBinding", "metadata": {"name": BINDING},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM_NAMESPACE}],
        }),
    ]
}

/// A Package as a workload cluster gets it.
pub(super) fn package(source: &Value) -> Value {
    json!({
        "apiVersion": source["apiVersion"], "kind": "Package",
        "metadata": {"name": source["metadata"]["name"], "namespace": SYSTEM_NAMESPACE},
        "spec": source["spec"],
    })
}

/// The Secret with a package's values, without them.
pub(super) fn values(cluster: &Subject, listed: &Listed, namespace: &str) -> Value {
    let name = listed.child(&cluster.name, PackagePart::DataValues);
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": name.as_str(), "namespace": namespace,
            "labels": {
                (windlass_api::label::PACKAGE_CLUSTER_NAME.name): cluster.name.as_str(),
                (windlass_api::label::PACKAGE_NAME.name): listed.package.label(),
            },
        },
    })
}

/// The `PackageInstall` of kapp-controller: in the cluster's namespace of the management cluster, for the workload cluster. What
/// it installed stays when it goes: the cluster goes with it.
pub(super) fn of_kapp(
    cluster: &Subject,
    listed: &Listed,
    secret: Option<&str>,
    live: Option<&PackageInstall>,
) -> Value {
    let mut install = install(cluster, listed, cluster.namespace.as_str(), secret, live);
    let kubeconfig = ClusterSecret::Kubeconfig.object_name(&cluster.name);
    install["spec"]["cluster"] = json!({"kubeconfigSecretRef": {"name": kubeconfig.as_str(), "key": "value"}});
    install["spec"]["noopDelete"] = true.into();
    install["metadata"]["ownerReferences"] = owners(cluster);
    install
}

/// What is in the management cluster for a cluster goes with it.
pub(super) fn owners(cluster: &Subject) -> Value {
    let object = cluster.object();
    json!([{
        "apiVersion": object.api_version, "kind": object.kind, "name": object.name, "uid": cluster.revision.uid.as_str(),
    }])
}

/// The `PackageInstall` of any other package, in the workload cluster.
pub(super) fn of_package(
    cluster: &Subject,
    listed: &Listed,
    secret: Option<&str>,
    live: Option<&PackageInstall>,
) -> Value {
    let mut install = install(cluster, listed, SYSTEM_NAMESPACE, secret, live);
    install["spec"]["serviceAccountName"] = ACCOUNT.into();
    install
}

/// Whether a newer version was tried before: a cluster goes back to the release before. kapp-controller wants to be told that this
/// is meant.
fn goes_back(listed: &Listed, live: Option<&PackageInstall>) -> bool {
    let tried = live.and_then(|live| live.status.as_ref()?.last_attempted_version.as_ref());
    let tried = tried.and_then(|tried| format!("v{tried}").parse::<KubernetesVersion>().ok());
    tried.is_some_and(|tried| tried > listed.package.version)
}

fn install(
    cluster: &Subject,
    listed: &Listed,
    namespace: &str,
    secret: Option<&str>,
    live: Option<&PackageInstall>,
) -> Value {
    let mut install = json!({
        "apiVersion": "packaging.carvel.dev/v1alpha1", "kind": "PackageInstall",
        "metadata": {
            "name": listed.child(&cluster.name, PackagePart::Install).as_str(), "namespace": namespace,
            "annotations": {
                (annotation::PACKAGE_CLUSTER_NAME.name): cluster.name.as_str(),
                (annotation::PACKAGE_CLUSTER_NAMESPACE.name): cluster.namespace.as_str(),
            },
        },
        "spec": {
            "syncPeriod": SYNC_PERIOD,
            "packageRef": {
                "refName": listed.package.ref_name.as_str(),
                "versionSelection": {"constraints": listed.version(), "prereleases": {}},
            },
        },
    });
    if goes_back(listed, live) {
        install["metadata"]["annotations"][annotation::DOWNGRADABLE.name] = "".into();
    }
    if let Some(secret) = secret {
        install["spec"]["values"] = json!([{"secretRef": {"name": secret}}]);
    }
    install
}

/// Whether a `PackageInstall` is as it should be.
pub(super) fn is_as_wanted(wanted: &Value, live: Option<&PackageInstall>) -> bool {
    let Some(live) = live else { return false };
    let has_values = wanted["spec"].get("values").is_some();
    let Ok(shown) = serde_json::to_value(live) else { return false };
    render::covers(wanted, &shown) && has_values != live.spec.values.is_empty()
}
