//! Admission of `TanzuKubernetesCluster`s: resolves the version that was asked for, and refuses what could never be done. That of
//! clusters of a class is in [`cluster`].
//!
//! It reads and answers, and changes nothing but the object in question: so a dry run is told the truth. It keeps out of the
//! way of what needs no judging (status, deletion, finalizers), also when what it would have to read is not there.

pub(crate) mod approval;
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

use approval::Asking;
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
    let settled = resolved && object["spec"] == old["spec"] && !approval::concerns(object, old);
    !(deleting || settled)
}

/// Answers an `AdmissionReview` of a mutating webhook. An error means that no answer is to be had.
pub async fn review(client: &Client, review: Value) -> Result<Value, String> {
    let request = &review["request"];
    let Some(uid) = request["uid"].as_str() else { return Err(format!("not a {KIND}: it has no request.uid")) };
    let response = match subject(request) {
        None => json!({"uid": uid, "allowed": true}),
        Some(subject) => answer(uid, judge(client, request, subject).await.map_err(|error| error.to_string())?),
    };
    Ok(json!({"apiVersion": API_VERSION, "kind": KIND, "response": response}))
}

/// What is chosen is judged first, then whether it has to be approved.
async fn judge(
    client: &Client,
    request: &Value,
    subject: Subject,
) -> Result<Result<Accepted, String>, choice::Unknown> {
    let Subject { asked, before, is_chosen } = subject;
    let mut accepted = Accepted::default();
    if is_chosen {
        match choice::judge(client, &asked, before.as_ref()).await? {
            Verdict::Refused(why) => return Ok(Err(why)),
            Verdict::Accepted { full_version, warnings } => {
                accepted.warnings = warnings;
                // `add` also replaces what is there.
                let resolve =
                    |version| json!({"op": "add", "path": "/spec/distribution/fullVersion", "value": version});
                accepted.patch.extend(full_version.map(resolve));
            }
        }
    }
    let stamped = match approval::stamp(client, Asking::BySpec, request).await? {
        Ok(stamped) => stamped,
        Err(why) => return Ok(Err(why)),
    };
    if stamped.is_required && !accepted.warnings.is_empty() {
        let name = asked.metadata.name.unwrap_or_default();
        accepted.warnings.push(approval::notice(&name));
    }
    accepted.patch.extend(stamped.patch);
    Ok(Ok(accepted))
}

/// What becomes of an object that may be written.
#[derive(Default)]
struct Accepted {
    patch: Vec<Value>,
    warnings: Vec<String>,
}

/// The object to judge.
struct Subject {
    asked: TanzuKubernetesCluster,
    before: Option<TanzuKubernetesCluster>,
    /// Something else is chosen than before.
    is_chosen: bool,
}

/// The object to judge, and what it was before; `None` if there is nothing to judge.
fn subject(request: &Value) -> Option<Subject> {
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
    let is_chosen = !(unchanged && resolved);
    let concerns = is_chosen || approval::concerns(&request["object"], &request["oldObject"]);
    (concerns && !deleting).then_some(Subject { asked, before, is_chosen })
}

fn answer(uid: &str, judged: Result<Accepted, String>) -> Value {
    match judged {
        Err(why) => {
            let status = json!({"code": 422, "reason": "Invalid", "message": why});
            json!({"uid": uid, "allowed": false, "status": status})
        }
        Ok(Accepted { patch, warnings }) => {
            let mut response = json!({"uid": uid, "allowed": true});
            if !warnings.is_empty() {
                response["warnings"] = json!(warnings);
            }
            if !patch.is_empty() {
                response["patchType"] = json!("JSONPatch");
                response["patch"] = json!(STANDARD.encode(json!(patch).to_string()));
            }
            response
        }
    }
}
