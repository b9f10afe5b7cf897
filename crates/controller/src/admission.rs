//! Admission of `TanzuKubernetesCluster`s: resolves the version that was asked for, and refuses what could never be done. That of
//! clusters of a class is in [`cluster`].
//!
//! It reads and answers, and changes nothing but the object in question: so a dry run is told the truth. It keeps out of the
//! way of what needs no judging (status, deletion, finalizers), also when what it would have to read is not there.

mod back;
mod choice;
pub mod classic;
pub mod cluster;
mod lifetime;
mod warning;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use serde_json::{Value, json};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;

use choice::Verdict;

/// The name by which refusals mention this webhook.
pub const NAME: &str = "clusters.windlass.dev";
/// The group of the objects that it is to be asked about.
pub const GROUP: &str = "run.tanzu.vmware.com";
/// The version of them.
pub const VERSION: &str = "v1alpha1";
/// The resource of them. Subresources need not be asked about.
pub const RESOURCE: &str = "tanzukubernetesclusters";
/// What is done to them.
pub const OPERATIONS: [&str; 2] = ["CREATE", "UPDATE"];

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Whether a write changes anything that needs judging; the match condition of the webhook. Finalizers, labels and owners can so
/// be changed, and an object can end, while nobody answers reviews.
pub fn concerns(object: Option<&Value>, old: Option<&Value>) -> bool {
    let (Some(object), Some(old)) = (object, old) else { return true };
    let deleting = !object["metadata"]["deletionTimestamp"].is_null();
    let resolved = object["spec"]["distribution"]["fullVersion"].is_string();
    let settled = resolved && object["spec"] == old["spec"];
    !(deleting || settled)
}

/// Answers an `AdmissionReview` of a mutating webhook. An error means that no answer is to be had.
pub async fn review(client: &Client, review: Value) -> Result<Value, String> {
    let request = &review["request"];
    let Some(uid) = request["uid"].as_str() else { return Err(format!("not a {KIND}: it has no request.uid")) };
    let response = match subject(request) {
        None => json!({"uid": uid, "allowed": true}),
        Some((asked, before)) => {
            answer(uid, choice::judge(client, &asked, before.as_ref()).await.map_err(|error| error.to_string())?)
        }
    };
    Ok(json!({"apiVersion": API_VERSION, "kind": KIND, "response": response}))
}

/// The object to judge, and what it was before; `None` if there is nothing to judge.
fn subject(request: &Value) -> Option<(TanzuKubernetesCluster, Option<TanzuKubernetesCluster>)> {
    let operation = request["operation"].as_str().unwrap_or_default();
    let whole = request["subResource"].as_str().unwrap_or_default().is_empty();
    if !whole || !OPERATIONS.contains(&operation) || request["resource"]["resource"] != RESOURCE {
        return None;
    }
    // What cannot be read is refused by the schema, in words that fit better than ours.
    let asked: TanzuKubernetesCluster = serde_json::from_value(request["object"].clone()).ok()?;
    let before: Option<TanzuKubernetesCluster> = serde_json::from_value(request["oldObject"].clone()).ok()?;
    let unchanged = before.as_ref().is_some_and(|before| before.spec == asked.spec);
    let resolved = asked.spec.distribution.full_version.is_some();
    let deleting = asked.metadata.deletion_timestamp.is_some();
    let settled = deleting || (unchanged && resolved);
    (!settled).then_some((asked, before))
}

fn answer(uid: &str, verdict: Verdict) -> Value {
    match verdict {
        Verdict::Refused(why) => {
            let status = json!({"code": 422, "reason": "Invalid", "message": why});
            json!({"uid": uid, "allowed": false, "status": status})
        }
        Verdict::Accepted { full_version, warnings } => {
            let mut response = json!({"uid": uid, "allowed": true});
            if !warnings.is_empty() {
                response["warnings"] = json!(warnings);
            }
            if let Some(full_version) = full_version {
                // `add` also replaces what is there.
                let patch = json!([{"op": "add", "path": "/spec/distribution/fullVersion", "value": full_version}]);
                response["patchType"] = json!("JSONPatch");
                response["patch"] = json!(STANDARD.encode(patch.to_string()));
            }
            response
        }
    }
}
