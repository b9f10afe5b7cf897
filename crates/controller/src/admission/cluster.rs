//! Admission of clusters of a class: resolves the release that was asked for, by version or by label, and holds the cluster until
//! the packages of a new one are in.
//!
//! Where upgrades have to be approved, what is asked for is held until that is done (`cluster/consent.rs`).
//!
//! What becomes of a cluster is decided in [`windlass_plan::resolve::admit`]; here is read what that needs. As for the other
//! clusters: nothing but the object in question is changed, so a dry run is told the truth, and who only lets an object go or
//! changes what is none of our business is not asked.

mod consent;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::extension::ExtensionConfig;
use windlass_api::kind::release::{OSImage, TanzuKubernetesRelease};
use windlass_api::kind::topology::ClusterClass;
use windlass_api::{annotation, label};
use windlass_plan::hook::{Unasked, unasked};
use windlass_plan::resolve::admit::{self, Request, admit, class_of};
use windlass_plan::resolve::hold::HoldBy;

use super::approval::{Asking, Stamped};
use super::choice::Unknown;
use super::{API_VERSION, KIND, approval};
use crate::{control_plane, hooks};

/// The name by which refusals mention this webhook.
pub const NAME: &str = "releases.clusters.windlass.dev";
/// The group of the objects that it is to be asked about.
pub const GROUP: &str = "cluster.x-k8s.io";
/// The version of them.
pub const VERSION: &str = "v1beta2";
/// The resource of them. Subresources need not be asked about.
pub const RESOURCE: &str = "clusters";
/// What is done to them.
pub const OPERATIONS: [&str; 2] = ["CREATE", "UPDATE"];

/// The annotations that say something about a release or a hold.
pub(crate) const ANNOTATIONS: [&str; 4] = [
    annotation::RESOLVE_RELEASE.name,
    annotation::HELD_FOR_RELEASE.name,
    annotation::KEEP_PAUSED.name,
    annotation::REVIEWED_ENVELOPE.name,
];

/// The fields that are changed, each as a whole.
const CHANGED: [&str; 4] = ["/metadata/labels", "/metadata/annotations", "/spec/paused", "/spec/topology"];

/// Whether a write changes anything that needs judging; the match condition of the webhook.
pub fn concerns(object: Option<&Value>, old: Option<&Value>) -> bool {
    let Some(object) = object else { return false };
    let deleting = !object["metadata"]["deletionTimestamp"].is_null();
    if deleting || object["spec"]["topology"].is_null() {
        return false;
    }
    let Some(old) = old else { return true };
    let annotated = |key: &&str| object["metadata"]["annotations"][*key] != old["metadata"]["annotations"][*key];
    let release = |object: &Value| object["metadata"]["labels"][label::RELEASE.name].clone();
    let is_other = object["spec"] != old["spec"] || release(object) != release(old);
    is_other || ANNOTATIONS.iter().any(annotated) || approval::concerns(object, old)
}

/// Answers an `AdmissionReview` of a mutating webhook. An error means that no answer is to be had.
pub async fn review(client: &Client, hold_by: HoldBy, review: Value) -> Result<Value, String> {
    let request = &review["request"];
    let Some(uid) = request["uid"].as_str() else { return Err(format!("not a {KIND}: it has no request.uid")) };
    let mut response = json!({"uid": uid, "allowed": true});
    if let Some((cluster, before)) = subject(request) {
        let judged = judge(client, hold_by, request, &cluster, before.as_ref()).await;
        match judged.map_err(|error| error.to_string())? {
            Err(why) => {
                response["allowed"] = json!(false);
                response["status"] = json!({"code": 422, "reason": "Invalid", "message": why});
            }
            Ok((patch, warnings)) => {
                if !warnings.is_empty() {
                    response["warnings"] = json!(warnings);
                }
                if !patch.is_empty() {
                    response["patchType"] = json!("JSONPatch");
                    response["patch"] = json!(STANDARD.encode(json!(patch).to_string()));
                }
            }
        }
    }
    Ok(json!({"apiVersion": API_VERSION, "kind": KIND, "response": response}))
}

/// The cluster to judge, and what it was before; `None` if there is nothing to judge.
fn subject(request: &Value) -> Option<(Cluster, Option<Cluster>)> {
    let operation = request["operation"].as_str().unwrap_or_default();
    let whole = request["subResource"].as_str().unwrap_or_default().is_empty();
    if !whole || !OPERATIONS.contains(&operation) || request["resource"]["resource"] != RESOURCE {
        return None;
    }
    // What cannot be read is refused by the schema, in words that fit better than ours.
    let cluster: Cluster = serde_json::from_value(request["object"].clone()).ok()?;
    let before: Option<Cluster> = serde_json::from_value(request["oldObject"].clone()).ok()?;
    admit::concerns(&cluster).then_some((cluster, before))
}

/// The patch and the warnings; or why it may not be written.
type Judged = Result<(Vec<Value>, Vec<String>), String>;

async fn judge(
    client: &Client,
    hold_by: HoldBy,
    request: &Value,
    cluster: &Cluster,
    before: Option<&Cluster>,
) -> Result<Judged, Unknown> {
    let class = class(client, cluster, request).await?;
    let releases: Vec<TanzuKubernetesRelease> = all(client, "TanzuKubernetesReleases").await?;
    let os_images: Vec<OSImage> = all(client, "OSImages").await?;
    let waits = |before: &&Cluster| admit::may_go_back(before, hold_by);
    let control_plane = match before.filter(waits) {
        Some(before) => {
            let version = control_plane::version(client, before).await;
            version.map_err(|source| Unknown::new("control planes", source))?
        }
        None => None,
    };
    let unasked = match hold_by {
        HoldBy::Hooks => hooks_hold_nothing(client).await?,
        HoldBy::Pause => None,
    };
    let judging = Request {
        cluster,
        before,
        class: class.as_ref(),
        releases: &releases,
        os_images: &os_images,
        control_plane: control_plane.as_ref(),
        hold_by,
        unasked,
    };
    let object = &request["object"];
    let (mut written, mut warnings) = match admitted(&judging, object) {
        Ok(admitted) => admitted,
        Err(why) => return Ok(Err(why)),
    };
    let Stamped { patch: stamps, is_required, .. } = match stamp(client, request, &written).await? {
        Ok(stamped) => stamped,
        Err(why) => return Ok(Err(why)),
    };
    if let Some(before) = before {
        // Nobody would be told to wait who does not ask.
        let hold_by = if unasked.is_some() { HoldBy::Pause } else { hold_by };
        if is_required && consent::needs_pause(before, &written, hold_by) {
            match admitted(&Request { hold_by: HoldBy::Pause, ..judging }, object) {
                Ok(paused) => (written, warnings) = paused,
                Err(why) => return Ok(Err(why)),
            }
        }
        let asked = consent::Asked { client, before, written: &written, releases: &releases, hold_by };
        if let Some(why) = asked.refused(is_required).await? {
            return Ok(Err(why));
        }
        if is_required && asked.is_upgrade() {
            warnings.push(approval::notice(cluster.metadata.name.as_deref().unwrap_or_default()));
        }
    }
    Ok(Ok((patch(object, &written).into_iter().chain(stamps).collect(), warnings)))
}

/// The object as it would be stored, and what people are told of that.
fn admitted(judging: &Request<'_>, object: &Value) -> Result<(Value, Vec<String>), String> {
    let admitted = admit(judging).map_err(|refused| refused.to_string())?;
    let mut written = object.clone();
    admitted.write(&mut written);
    Ok((written, admitted.warnings))
}

/// Who asks and who decides, of the object as it would be stored: what is resolved to the same is not asked for anew.
async fn stamp(client: &Client, request: &Value, written: &Value) -> Result<Result<Stamped, String>, Unknown> {
    let mut request = request.clone();
    request["object"] = written.clone();
    approval::stamp(client, Asking::OfClass, &request).await
}

/// The changes from one object to another.
fn patch(object: &Value, written: &Value) -> Vec<Value> {
    let changed = CHANGED.iter().filter(|path| object.pointer(path) != written.pointer(path));
    // `add` also replaces what is there. Nothing of these is ever taken away as a whole.
    changed.map(|path| json!({"op": "add", "path": path, "value": written.pointer(path)})).collect()
}

/// Why Cluster API does not ask us: in the first minute after an installation, and whenever somebody has changed what it was told.
async fn hooks_hold_nothing(client: &Client) -> Result<Option<Unasked>, Unknown> {
    let config = Api::<ExtensionConfig>::all(client.clone()).get_opt(hooks::CONFIG).await;
    Ok(unasked(config.map_err(|source| Unknown::new("ExtensionConfigs", source))?.as_ref()))
}

/// The class of a cluster, if it is there.
async fn class(client: &Client, cluster: &Cluster, request: &Value) -> Result<Option<ClusterClass>, Unknown> {
    let Some((namespace, name)) = class_of(cluster).filter(|(_, name)| !name.is_empty()) else { return Ok(None) };
    // An object that is being made may not have been told yet which namespace it is in.
    let of_request = request["namespace"].as_str().unwrap_or_default();
    let namespace = if namespace.is_empty() { of_request } else { namespace.as_str() };
    let api: Api<ClusterClass> = Api::namespaced(client.clone(), namespace);
    api.get_opt(&name).await.map_err(|source| Unknown::new("ClusterClasses", source))
}

async fn all<K>(client: &Client, what: &'static str) -> Result<Vec<K>, Unknown>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let listed = Api::<K>::all(client.clone()).list(&ListParams::default()).await;
    listed.map(|listed| listed.items).map_err(|source| Unknown::new(what, source))
}
