//! The packages and the pods of a management cluster, as `catalogue/management.yaml` lists them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource, ResourceExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::kind::packaging::{Package, PackageInstall};

use super::create;
use crate::world::Error;

const MANAGEMENT: &str = include_str!("../../catalogue/management.yaml");
/// Where packages are.
const NAMESPACE: &str = "tkg-system";
/// Whose rights they are installed with.
const SERVICE_ACCOUNT: &str = "tkg-pkg-sa";
/// How often they are applied anew. A day, as nothing else changes in a World that nobody touches.
const SYNC_PERIOD: &str = "24h0m0s";
/// What says that a package is for management clusters.
const PACKAGE_TYPE: (&str, &str) = ("tkg.tanzu.vmware.com/package-type", "management");
/// Whom an image is from; nobody pulls it.
const REPOSITORY: &str = "projects.registry.vmware.com/tkg";

#[derive(Deserialize)]
struct Listed {
    version: String,
    packages: Vec<ListedPackage>,
    pods: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct ListedPackage {
    name: String,
    #[serde(default)]
    parts: Vec<String>,
}

/// Puts them into a management cluster. kapp-controller installs the packages when the World runs.
pub(crate) async fn furnish(client: &Client) -> Result<(), Error> {
    let listed: Listed = serde_saphyr::from_str(MANAGEMENT).map_err(|source| Error::Catalogue(Box::new(source)))?;
    furnish_pods(client, &listed).await?;
    furnish_packages(client, &listed, &listed.version).await?;
    let Some(first) = listed.packages.first() else { return Ok(()) };
    let install: PackageInstall = object(install(&first.name, &listed.version))?;
    create(&Api::namespaced(client.clone(), NAMESPACE), &install).await
}

/// Puts the packages of a version beside those that there are. Nothing is installed by that: `tkg` is asked for, and brings the others.
pub(crate) async fn offer(client: &Client, version: &str) -> Result<(), Error> {
    let listed: Listed = serde_saphyr::from_str(MANAGEMENT).map_err(|source| Error::Catalogue(Box::new(source)))?;
    furnish_packages(client, &listed, version).await
}

async fn furnish_packages(client: &Client, listed: &Listed, version: &str) -> Result<(), Error> {
    let account = object(json!({"metadata": {"name": SERVICE_ACCOUNT, "namespace": NAMESPACE}}))?;
    create(&Api::<ServiceAccount>::namespaced(client.clone(), NAMESPACE), &account).await?;
    for listed_package in &listed.packages {
        let package: Package = object(package(listed_package, version))?;
        create(&Api::namespaced(client.clone(), NAMESPACE), &package).await?;
    }
    Ok(())
}

/// What asks for the management packages of a version.
pub(crate) fn asked_for(version: &str) -> Result<PackageInstall, Error> {
    object(install("tkg", version))
}

async fn furnish_pods(client: &Client, listed: &Listed) -> Result<(), Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for (namespace, names) in &listed.pods {
        let found = namespaces.get_opt(namespace).await;
        if found.map_err(|source| Error::Furnish { object: namespace.clone(), source: Box::new(source) })?.is_none() {
            create(&namespaces, &object(json!({"metadata": {"name": namespace}}))?).await?;
        }
        let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
        for name in names {
            let pod: Pod = object(pod(namespace, name))?;
            create(&api, &pod).await?;
            let conditions = json!([{"type": "Ready", "status": "True"}]);
            let patch = Patch::Merge(json!({"status": {"phase": "Running", "conditions": conditions}}));
            let written = api.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await;
            written.map_err(|source| Error::Furnish { object: pod.name_any(), source: Box::new(source) })?;
        }
    }
    Ok(())
}

fn pod(namespace: &str, name: &str) -> Value {
    json!({
        "metadata": {"name": format!("{name}-0"), "namespace": namespace, "labels": {"app": name}},
        "spec": {"containers": [{"name": name, "image": format!("{REPOSITORY}/{name}")}]},
    })
}

fn package(listed: &ListedPackage, version: &str) -> Value {
    let ListedPackage { name, parts } = listed;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": format!("{name}-sa"), "namespace": NAMESPACE},
    });
    let documents = std::iter::once(account).chain(parts.iter().map(|part| install(part, version)));
    // Each is JSON, which is YAML, too.
    let text: Vec<String> = documents.map(|document| document.to_string()).collect();
    let spec = json!({
        "fetch": [{"inline": {"paths": {"config.yaml": text.join("\n---\n")}}}],
        "template": [{"ytt": {}}],
        "deploy": [{"kapp": {}}],
    });
    let reference = reference(name);
    json!({
        "metadata": {
            "name": format!("{reference}.{version}"), "namespace": NAMESPACE,
            "labels": {PACKAGE_TYPE.0: PACKAGE_TYPE.1},
        },
        "spec": {"refName": reference, "version": version, "template": {"spec": spec}},
    })
}

fn install(name: &str, version: &str) -> Value {
    json!({
        "apiVersion": "packaging.carvel.dev/v1alpha1", "kind": "PackageInstall",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {PACKAGE_TYPE.0: PACKAGE_TYPE.1}},
        "spec": {
            "serviceAccountName": SERVICE_ACCOUNT,
            "syncPeriod": SYNC_PERIOD,
            "packageRef": {
                "refName": reference(name), "versionSelection": {"constraints": version, "prereleases": {}},
            },
        },
    })
}

fn reference(name: &str) -> String {
    format!("{name}.tanzu.vmware.com")
}

fn object<K: Resource<DynamicType = ()> + DeserializeOwned>(value: Value) -> Result<K, Error> {
    let wrong = |source| Error::Object { kind: K::kind(&()).into_owned(), source: Box::new(source) };
    serde_json::from_value(value).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_package_but_the_first_is_a_part_of_one_and_no_part_is_without_a_package() {
        let listed: Listed = serde_saphyr::from_str(MANAGEMENT).unwrap();
        let names: BTreeSet<&String> = listed.packages.iter().skip(1).map(|package| &package.name).collect();
        let parts: Vec<&String> = listed.packages.iter().flat_map(|package| &package.parts).collect();
        assert_eq!(parts.iter().copied().collect::<BTreeSet<_>>(), names);
        assert_eq!(parts.len(), names.len(), "nothing is brought in twice");
    }
}
