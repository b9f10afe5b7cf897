//! kubeadm's record of the cluster: `kubeadm-config` in `kube-system`. A machine that joins takes from it the version of the
//! programs that it runs, and the addresses of its peers.

use std::collections::BTreeSet;

use json_patch::Patch;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Patch as ApiPatch;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_api::name::NodeName;

use super::{of_workload, text};
use crate::upgrader::attempt::Attempt;
use crate::upgrader::health::KUBE_SYSTEM;
use crate::upgrader::{Arguments, Error, write};

const NAME: &str = "kubeadm-config";
const CLUSTER_CONFIGURATION: &str = "ClusterConfiguration";
/// Where the API servers are. kubeadm keeps it up to 1.21; who is gone and still in it breaks the next join.
const CLUSTER_STATUS: &str = "ClusterStatus";

/// As much of the record as matters here.
pub struct Record {
    /// It names the version and the images of the release.
    pub is_configured: bool,
    /// The nodes that are API servers, as far as it keeps them.
    pub endpoints: BTreeSet<NodeName>,
}

/// Reads the record.
pub async fn read(attempt: &Attempt<'_>) -> Result<Record, Error> {
    let map = of_workload(attempt).retry(|| get(attempt)).await?;
    let is_configured = cluster_configuration(&map, attempt.arguments)?.is_none();
    Ok(Record { is_configured, endpoints: endpoints(&map)? })
}

/// Makes the record that of the new version.
pub async fn configure(attempt: &Attempt<'_>) -> Result<(), Error> {
    let map = get(attempt).await?;
    let text = cluster_configuration(&map, attempt.arguments)?;
    write(attempt, &map, CLUSTER_CONFIGURATION, text).await
}

/// Takes a node out of the record whose machine is gone. (It may be gone later than its machine.)
pub async fn forget(attempt: &Attempt<'_>, node: &NodeName) -> Result<(), Error> {
    let forget_once = || async {
        let map = get(attempt).await?;
        write(attempt, &map, CLUSTER_STATUS, cluster_status(&map, node)?).await
    };
    of_workload(attempt).retry(forget_once).await
}

fn doing(attempt: &Attempt<'_>, verb: &str) -> String {
    format!("{verb} the ConfigMap {NAME} of {}", attempt.cluster)
}

fn maps(attempt: &Attempt<'_>) -> Api<ConfigMap> {
    Api::namespaced(attempt.workload.client.clone(), KUBE_SYSTEM)
}

async fn get(attempt: &Attempt<'_>) -> Result<ConfigMap, Error> {
    maps(attempt).get(NAME).await.map_err(Error::api(doing(attempt, "read")))
}

/// Writes one entry, in the state in which the record was read.
async fn write(attempt: &Attempt<'_>, map: &ConfigMap, key: &str, text: Option<String>) -> Result<(), Error> {
    let Some(text) = text else { return Ok(()) };
    let patch = json!({ "metadata": { "resourceVersion": map.resource_version() }, "data": { key: text } });
    let written = maps(attempt).patch(NAME, &write::patch(), &ApiPatch::Merge(patch)).await;
    written.map(drop).map_err(Error::api(doing(attempt, "change")))
}

fn cluster_configuration(map: &ConfigMap, arguments: &Arguments) -> Result<Option<String>, Error> {
    let has_it = map.data.as_ref().is_some_and(|data| data.contains_key(CLUSTER_CONFIGURATION));
    if !has_it {
        let why = format!("it has no {CLUSTER_CONFIGURATION}");
        return Err(Error::Unusable { kind: "ConfigMap", name: NAME.to_owned(), why });
    }
    text::edited(map, CLUSTER_CONFIGURATION, |configuration| {
        configuration["kubernetesVersion"] = json!(arguments.kubernetes_version.as_str());
        apply_repeatable(configuration, &arguments.kubeadm_configmap_patches)
    })
}

/// Each run applies the patch to what the last one has left, so it may only say how things should be: one that appends or
/// removes would do so again and again, or fail.
fn apply_repeatable(configuration: &mut Value, patch: &Patch) -> Result<(), Error> {
    let refused = |why: String| Error::Patch {
        flag: "--kubeadm-configmap-patches",
        kind: "ConfigMap",
        name: NAME.to_owned(),
        why,
    };
    json_patch::patch(configuration, patch).map_err(|error| refused(error.to_string()))?;
    let mut again = configuration.clone();
    match json_patch::patch(&mut again, patch) {
        Ok(()) if again == *configuration => Ok(()),
        _ => Err(refused("it cannot be applied twice, which a run that is carried on has to do".to_owned())),
    }
}

fn endpoints(map: &ConfigMap) -> Result<BTreeSet<NodeName>, Error> {
    let Some(status) = text::read(map, CLUSTER_STATUS)? else { return Ok(BTreeSet::new()) };
    let names = status.get("apiEndpoints").and_then(Value::as_object).into_iter().flat_map(|all| all.keys());
    let unusable = |why: String| Error::Unusable { kind: "ConfigMap", name: NAME.to_owned(), why };
    names.map(|name| NodeName::new(name).map_err(|error| unusable(error.to_string()))).collect()
}

fn cluster_status(map: &ConfigMap, gone: &NodeName) -> Result<Option<String>, Error> {
    text::edited(map, CLUSTER_STATUS, |status| {
        if let Some(endpoints) = status.get_mut("apiEndpoints").and_then(Value::as_object_mut) {
            endpoints.remove(gone.as_str());
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIGURATION: &str = "apiVersion: kubeadm.k8s.io/v1beta2
dns:
  imageRepository: vmware
  imageTag: '1.6'
kind: ClusterConfiguration
kubernetesVersion: v1.15.5+vmware.1
networking: {}
";
    const STATUS: &str = "apiEndpoints:
  cp-1:
    advertiseAddress: 10.0.0.1
    bindPort: 6443
  cp-2:
    advertiseAddress: 10.0.0.2
    bindPort: 6443
apiVersion: kubeadm.k8s.io/v1beta2
kind: ClusterStatus
";

    fn map(key: &str, text: &str) -> ConfigMap {
        let data = [(key.to_owned(), text.to_owned())].into();
        ConfigMap { data: Some(data), ..ConfigMap::default() }
    }

    fn configured(text: &str, patches: &str) -> Result<Option<String>, String> {
        let command = [
            "windlass",
            "control-plane",
            "upgrade",
            "--kubernetes-version=v1.16.7+vmware.1",
            "--upgrade-id=7",
            "--cluster-name=my-tkc",
            "--cluster-namespace=default",
            &format!("--kubeadm-configmap-patches={patches}"),
        ];
        let arguments = Arguments::parse(&command.map(ToOwned::to_owned)).unwrap();
        cluster_configuration(&map(CLUSTER_CONFIGURATION, text), &arguments).map_err(|error| error.report())
    }

    #[test]
    fn the_version_and_the_patches_are_written_and_the_rest_stays() {
        let patches = r#"[{"op":"replace","path":"/dns/imageTag","value":"v1.6.2_vmware.6"}]"#;
        let written = configured(CONFIGURATION, patches).unwrap().unwrap();
        let read: Value = serde_saphyr::from_str(&written).unwrap();
        assert_eq!(
            read,
            json!({
                "apiVersion": "kubeadm.k8s.io/v1beta2",
                "dns": { "imageRepository": "vmware", "imageTag": "v1.6.2_vmware.6" },
                "kind": "ClusterConfiguration",
                "kubernetesVersion": "v1.16.7+vmware.1",
                "networking": {},
            })
        );
        assert_eq!(configured(&written, patches).unwrap(), None, "done again, it changes nothing");
    }

    #[test]
    fn a_text_that_looks_like_a_number_stays_a_text() {
        let written = configured(CONFIGURATION, "[]").unwrap().unwrap();
        let read: Value = serde_saphyr::from_str(&written).unwrap();
        assert_eq!(read["dns"]["imageTag"], json!("1.6"), "{written}");
    }

    fn check_refused(text: &str, patches: &str, complaint: &str) {
        let refusal = configured(text, patches).unwrap_err();
        assert!(refusal.contains(complaint), "{refusal}");
    }

    #[test]
    fn a_patch_that_could_not_be_applied_again_is_refused() {
        check_refused(CONFIGURATION, r#"[{"op":"remove","path":"/dns"}]"#, "cannot be applied twice");
        let append = r#"[{"op":"add","path":"/apiServer","value":{"certSANs":[]}},{"op":"add","path":"/apiServer/certSANs/-","value":"a"}]"#;
        assert!(configured(CONFIGURATION, append).is_ok(), "it begins by replacing what it appends to");
        check_refused(
            "apiServer: {certSANs: []}\n",
            r#"[{"op":"add","path":"/apiServer/certSANs/-","value":"a"}]"#,
            "cannot be applied twice",
        );
        check_refused(
            CONFIGURATION,
            r#"[{"op":"replace","path":"/etcd/local","value":{}}]"#,
            "--kubeadm-configmap-patches",
        );
        check_refused("a: [", "[]", "is not YAML");
    }

    fn check_status(gone: &str, left: Option<&[&str]>) {
        let written = cluster_status(&map(CLUSTER_STATUS, STATUS), &gone.parse().unwrap()).unwrap();
        let names = written.map(|text| endpoints(&map(CLUSTER_STATUS, &text)).unwrap());
        let left = left.map(|names| names.iter().map(|name| name.parse().unwrap()).collect());
        assert_eq!(names, left, "{gone}");
    }

    #[test]
    fn a_node_that_is_gone_is_not_kept_as_an_endpoint() {
        check_status("worker", None);
        check_status("cp-1", Some(&["cp-2"]));
    }

    #[test]
    fn a_record_without_endpoints_names_none() {
        assert!(endpoints(&map(CLUSTER_CONFIGURATION, CONFIGURATION)).unwrap().is_empty());
        let refusal = endpoints(&map(CLUSTER_STATUS, "apiEndpoints: {UPPER: {}}")).unwrap_err().report();
        assert!(refusal.starts_with("the ConfigMap kubeadm-config cannot be used: "), "{refusal}");
    }
}
