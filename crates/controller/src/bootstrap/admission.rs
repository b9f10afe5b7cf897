//! Admission of `ClusterBootstrap`s: what they may say, and how they may change.
//!
//! It reads and answers. Of an object that is being deleted, or whose cluster is, nothing is judged: its finalizers have to be
//! removable, whatever it says.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use kube::discovery::ApiResource;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::packaging::Package;
use windlass_api::kind::release::{ClusterBootstrap, TanzuKubernetesRelease};
use windlass_api::{annotation, label};
use windlass_plan::bootstrap::validate::{Known, refusals};
use windlass_plan::bootstrap::{Reference, SYSTEM_NAMESPACE, references};
use windlass_plan::resolve::copy;

use crate::said::{is_not_found, said};

/// The name by which refusals mention this webhook.
pub const NAME: &str = "clusterbootstraps.windlass.dev";
/// The group of the objects that it is to be asked about.
pub const GROUP: &str = "run.tanzu.vmware.com";
/// The version of them.
pub const VERSION: &str = "v1alpha3";
/// The resource of them. Subresources need not be asked about.
pub const RESOURCE: &str = "clusterbootstraps";
/// What is done to them.
pub const OPERATIONS: [&str; 2] = ["CREATE", "UPDATE"];

/// Whether a write changes anything that needs judging; the match condition of the webhook.
pub fn concerns(object: Option<&Value>, old: Option<&Value>) -> bool {
    let (Some(object), Some(old)) = (object, old) else { return true };
    let deleting = !object["metadata"]["deletionTimestamp"].is_null();
    !deleting && (object["spec"] != old["spec"] || object["metadata"]["annotations"] != old["metadata"]["annotations"])
}

/// Answers an `AdmissionReview` of a validating webhook. An error means that no answer is to be had.
pub async fn review(client: &Client, review: Value) -> Result<Value, String> {
    let request = &review["request"];
    let Some(uid) = request["uid"].as_str() else {
        return Err("not an AdmissionReview: it has no request.uid".to_owned());
    };
    let why = match subject(request) {
        None => Vec::new(),
        Some((asked, before)) => judge(client, &asked, before.as_ref()).await?,
    };
    let response = if why.is_empty() {
        json!({"uid": uid, "allowed": true})
    } else {
        let status = json!({"code": 422, "reason": "Invalid", "message": why.join("; ")});
        json!({"uid": uid, "allowed": false, "status": status})
    };
    Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

/// The object to judge, and what it was before; `None` if there is nothing to judge.
fn subject(request: &Value) -> Option<(ClusterBootstrap, Option<ClusterBootstrap>)> {
    if !concerns(Some(&request["object"]), Some(&request["oldObject"]).filter(|old| !old.is_null())) {
        return None;
    }
    // What cannot be read is refused by the schema, in words that fit better than ours.
    let asked: ClusterBootstrap = serde_json::from_value(request["object"].clone()).ok()?;
    let before: Option<ClusterBootstrap> = serde_json::from_value(request["oldObject"].clone()).ok()?;
    Some((asked, before))
}

async fn judge(
    client: &Client,
    asked: &ClusterBootstrap,
    before: Option<&ClusterBootstrap>,
) -> Result<Vec<String>, String> {
    let namespace = asked.metadata.namespace.clone().unwrap_or_default();
    let clusters: Api<Cluster> = Api::namespaced(client.clone(), &namespace);
    let name = asked.name_any();
    let cluster =
        clusters.get_metadata_opt(&name).await.map_err(|error| format!("read Cluster {name}: {}", said(&error)))?;
    if cluster.as_ref().is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_some()) {
        return Ok(Vec::new());
    }
    let of_release = match &cluster {
        Some(cluster) => of_release(client, &cluster.metadata).await?,
        None => BTreeSet::new(),
    };
    let packages: Api<Package> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let packages = packages.list_metadata(&ListParams::default()).await;
    let packages = packages.map_err(|error| format!("list Packages: {}", said(&error)))?;
    let packages = packages.items.iter().map(PartialObjectMeta::name_any).collect();
    let mut values = BTreeSet::new();
    for (_, reference) in references(&asked.spec.packages) {
        if is_there(client, &namespace, &reference).await? {
            values.insert(reference);
        }
    }
    let refused = refusals(asked, before, &Known { packages, of_release, values });
    Ok(refused.iter().map(ToString::to_string).collect())
}

/// The packages of the release that a Cluster is asked to have: of the object, or of the copy that the Cluster has of it.
async fn of_release(client: &Client, cluster: &ObjectMeta) -> Result<BTreeSet<String>, String> {
    let Some(name) = cluster.labels.as_ref().and_then(|labels| labels.get(label::RELEASE.name)) else {
        return Ok(BTreeSet::new());
    };
    let releases: Api<TanzuKubernetesRelease> = Api::all(client.clone());
    let found = releases.get_opt(name).await;
    let found = found.map_err(|error| format!("read TanzuKubernetesRelease {name}: {}", said(&error)))?;
    let text = cluster.annotations.as_ref().and_then(|annotations| annotations.get(annotation::RELEASE_COPY.name));
    let kept = || text.and_then(|text| copy::read(text).ok()).filter(|kept| kept.metadata.name.as_ref() == Some(name));
    let listed = found.or_else(kept).and_then(|release| release.spec.bootstrap_packages).unwrap_or_default();
    Ok(listed.into_iter().map(|listed| listed.name).collect())
}

async fn is_there(client: &Client, namespace: &str, reference: &Reference) -> Result<bool, String> {
    let unread = |error: kube::Error| format!("read {reference}: {}", said(&error));
    if reference.is_secret() {
        let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
        return Ok(api.get_metadata_opt(&reference.name).await.map_err(unread)?.is_some());
    }
    let group = match kube::discovery::group(client, &reference.api_group).await {
        Ok(group) => group,
        // No such group, so no such object.
        Err(kube::Error::Discovery(_)) => return Ok(false),
        Err(error) if is_not_found(&error) => return Ok(false),
        Err(error) => return Err(unread(error)),
    };
    let Some((resource, _)): Option<(ApiResource, _)> = group.recommended_kind(&reference.kind) else {
        return Ok(false);
    };
    let api: Api<kube::api::DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    Ok(api.get_metadata_opt(&reference.name).await.map_err(unread)?.is_some())
}
