//! kubeadm's record of the cluster: `kubeadm-config` in `kube-system`. A machine that joins takes from it the version of the
//! programs that it runs, and the addresses of its peers.

use std::collections::BTreeSet;

use json_patch::Patch;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{ListParams, Patch as ApiPatch};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::text;
use crate::upgrader::attempt::Attempt;
use crate::upgrader::health::KUBE_SYSTEM;
use crate::upgrader::wait::Patience;
use crate::upgrader::{Arguments, Error, write};

const NAME: &str = "kubeadm-config";
const CLUSTER_CONFIGURATION: &str = "ClusterConfiguration";
/// Where the API servers are. kubeadm keeps it up to 1.21; who is gone and still in it breaks the next join.
const CLUSTER_STATUS: &str = "ClusterStatus";

/// Makes the record that of the new version, without nodes that no longer are.
pub async fn configure(attempt: &Attempt<'_>) -> Result<(), Error> {
    write_record(attempt, None).await
}

/// Takes a node out of the record whose machine is gone. (It may be gone later than its machine.)
pub async fn forget(attempt: &Attempt<'_>, node: &str) -> Result<(), Error> {
    write_record(attempt, Some(node)).await
}

async fn write_record(attempt: &Attempt<'_>, gone: Option<&str>) -> Result<(), Error> {
    let patience =
        Patience::of(attempt.arguments.machine_timeout, format!("the API of the workload cluster {}", attempt.cluster));
    patience.retry(|| try_write_record(attempt, gone)).await
}

async fn try_write_record(attempt: &Attempt<'_>, gone: Option<&str>) -> Result<(), Error> {
    let client = attempt.workload.client.clone();
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), KUBE_SYSTEM);
    let doing = || format!("change the ConfigMap {NAME} of {}", attempt.cluster);
    let map = api.get(NAME).await.map_err(Error::api(doing()))?;
    let mut data = serde_json::Map::new();
    if let Some(text) = cluster_configuration(&map, attempt.arguments)? {
        data.insert(CLUSTER_CONFIGURATION.to_owned(), json!(text));
    }
    if map.data.as_ref().is_some_and(|data| data.contains_key(CLUSTER_STATUS)) {
        let nodes: Api<Node> = Api::all(client);
        let nodes = nodes.list_metadata(&ListParams::default()).await;
        let nodes = nodes.map_err(Error::api(format!("list the nodes of {}", attempt.cluster)))?;
        let live = nodes.iter().map(ResourceExt::name_any).filter(|node| Some(node.as_str()) != gone).collect();
        if let Some(text) = cluster_status(&map, &live)? {
            data.insert(CLUSTER_STATUS.to_owned(), json!(text));
        }
    }
    if data.is_empty() {
        return Ok(());
    }
    let patch = json!({ "metadata": { "resourceVersion": map.resource_version() }, "data": data });
    api.patch(NAME, &write::patch(), &ApiPatch::Merge(patch)).await.map_err(Error::api(doing()))?;
    Ok(())
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

fn cluster_status(map: &ConfigMap, live: &BTreeSet<String>) -> Result<Option<String>, Error> {
    text::edited(map, CLUSTER_STATUS, |status| {
        if let Some(endpoints) = status.get_mut("apiEndpoints").and_then(Value::as_object_mut) {
            endpoints.retain(|node, _| live.contains(node));
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

    fn check_status(live: &[&str], left: Option<&[&str]>) {
        let live = live.iter().map(ToString::to_string).collect();
        let written = cluster_status(&map(CLUSTER_STATUS, STATUS), &live).unwrap();
        let names = written.map(|text| {
            let read: Value = serde_saphyr::from_str(&text).unwrap();
            read["apiEndpoints"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        });
        assert_eq!(names, left.map(|names| names.iter().map(ToString::to_string).collect()), "{live:?}");
    }

    #[test]
    fn nodes_that_are_gone_are_not_kept_as_endpoints() {
        check_status(&["cp-1", "cp-2", "worker"], None);
        check_status(&["cp-2", "worker"], Some(&["cp-2"]));
        check_status(&[], Some(&[]));
    }
}
