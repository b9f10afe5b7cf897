//! Admission of classic clusters: the release that a label names is looked up, refused if it cannot be, and applied to the Cluster in
//! the same write. What it will do to the other objects of the cluster is told as warnings.
//!
//! It reads, and writes nothing: so a dry run is told the truth. What becomes of the other objects is for the controller, which
//! renders them by the same functions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use serde_json::{Value, json};
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::label;
use windlass_api::version::KubernetesVersion;
use windlass_plan::change::{Classification, Effect, Kind, classify};
use windlass_plan::release::{Release, ReleaseState};
use windlass_plan::resolve::labelled::{Unlabelled, abort, asked, may_go};
use windlass_plan::step::Stage;
use windlass_plan::target::{ClassicParts, Target, TargetError};

use super::choice::Unknown;
use super::{API_VERSION, KIND, approval};
use crate::classic::observe::{deployed, said_by};
use crate::classic::parts::{PartsError, parts, published};
use crate::record::classic::{UPDATE_FAILED, UPDATING};

/// The name by which refusals mention this webhook.
pub const NAME: &str = "labels.clusters.windlass.dev";
/// The group of the objects that it is to be asked about.
pub const GROUP: &str = "cluster.x-k8s.io";
/// The version of them.
pub const VERSION: &str = "v1beta2";
/// The resource of them. Subresources need not be asked about.
pub const RESOURCE: &str = "clusters";
/// What is done to them.
pub const OPERATIONS: [&str; 2] = ["CREATE", "UPDATE"];

/// Whether a write changes anything that needs judging; the match condition of the webhook.
pub fn concerns(object: Option<&Value>, old: Option<&Value>) -> bool {
    let Some(object) = object else { return false };
    let label = |object: &Value| object["metadata"]["labels"][label::RELEASE_VERSION.name].clone();
    if !object["metadata"]["deletionTimestamp"].is_null() || label(object).is_null() {
        return false;
    }
    old.is_none_or(|old| label(old) != label(object) || old["spec"] != object["spec"])
}

/// Answers an `AdmissionReview` of a mutating webhook. An error means that no answer is to be had.
pub async fn review(client: &Client, review: Value) -> Result<Value, String> {
    let request = &review["request"];
    let Some(uid) = request["uid"].as_str() else { return Err(format!("not a {KIND}: it has no request.uid")) };
    let mut response = json!({"uid": uid, "allowed": true});
    if let Some((cluster, before)) = subject(request) {
        match judge(client, request, &cluster, before.as_ref()).await {
            Ok(Judged { spec, warnings }) => {
                if !warnings.is_empty() {
                    response["warnings"] = json!(warnings);
                }
                if spec != request["object"]["spec"] {
                    let patch = json!([{"op": "add", "path": "/spec", "value": spec}]);
                    response["patchType"] = json!("JSONPatch");
                    response["patch"] = json!(STANDARD.encode(patch.to_string()));
                }
            }
            Err(NotJudged::Refused(why)) => {
                response["allowed"] = json!(false);
                response["status"] = json!({"code": 422, "reason": "Invalid", "message": why});
            }
            Err(NotJudged::Unknown(why)) => return Err(why),
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
    if !concerns(request.get("object"), request.get("oldObject").filter(|old| !old.is_null())) {
        return None;
    }
    // What cannot be read is refused by the schema, in words that fit better than ours.
    let cluster: Cluster = serde_json::from_value(request["object"].clone()).ok()?;
    let before: Option<Cluster> = serde_json::from_value(request["oldObject"].clone()).ok()?;
    Some((cluster, before))
}

/// What becomes of the Cluster, and what people are told.
struct Judged {
    spec: Value,
    warnings: Vec<String>,
}

/// There is no such thing.
enum NotJudged {
    /// A rule forbids it.
    Refused(String),
    /// What the answer depends on could not be read.
    Unknown(String),
}

impl From<Unlabelled> for NotJudged {
    fn from(why: Unlabelled) -> Self {
        Self::Refused(format!("{why}; {}", why.way_out()))
    }
}

impl From<Unknown> for NotJudged {
    fn from(why: Unknown) -> Self {
        Self::Unknown(why.to_string())
    }
}

impl From<PartsError> for NotJudged {
    fn from(why: PartsError) -> Self {
        if why.is_read() { Self::Unknown(why.to_string()) } else { Self::Refused(why.to_string()) }
    }
}

impl From<TargetError> for NotJudged {
    fn from(why: TargetError) -> Self {
        Self::Refused(why.to_string())
    }
}

async fn judge(
    client: &Client,
    request: &Value,
    cluster: &Cluster,
    before: Option<&Cluster>,
) -> Result<Judged, NotJudged> {
    if let Some(why) = approval::refused(client, request, approval::Unapproved::ByLabel).await? {
        return Err(NotJudged::Refused(why));
    }
    let object = &request["object"];
    let same = |warnings| Judged { spec: object["spec"].clone(), warnings };
    let Some(version) = asked(cluster)? else { return Ok(same(Vec::new())) };
    let old = before.and_then(|before| asked(before).ok().flatten());
    let is_new = old.as_ref() != Some(&version);
    let published = published(client).await?;
    let release = match published.find(&version) {
        Ok(release) => release,
        Err(why) if is_new => return Err(why.into()),
        // What became of a release since keeps nobody from changing something else.
        Err(why) => return Ok(same(vec![why.to_string()])),
    };
    // An object that is being made may not have been told yet which namespace it is in: it has no parts.
    let parts = match before {
        Some(_) => parts(client, cluster).await?,
        None => None,
    };
    let mut warnings = Vec::new();
    if is_new {
        let deployed = deployed(cluster);
        if let (Some(old), Some(before)) = (&old, before) {
            let back = parts.as_ref().filter(|_| deployed.as_ref() == Some(&version));
            may_change_their_mind(before, old, release, back)?;
        }
        let known = deployed.as_ref().or(old.as_ref());
        may_go(release, known, parts.as_ref().and_then(kubernetes).as_ref())?;
        if release.state != ReleaseState::Active {
            warnings.push(format!("release {} is {}", version.bare(), release.state));
        }
        if let Some(parts) = &parts {
            warnings.extend(summary(parts, release.clone(), old.as_ref())?);
        }
    }
    let mut written = object.clone();
    if let Some(defaults) = release.defaults_of("cluster") {
        if before.is_none() { defaults.at_creation(&mut written) } else { defaults.at_update(&mut written) }
    }
    Ok(Judged { spec: written["spec"].clone(), warnings })
}

/// Refuses to go back while an update is under way: it is brought to its end. Before it has begun, anybody may; and to what the
/// cluster has, which gives the update up, for as long as Cluster API has not been told of it. `back` is what the cluster is made of,
/// where it has the release already.
fn may_change_their_mind(
    before: &Cluster,
    old: &KubernetesVersion,
    release: &Release,
    back: Option<&ClassicParts>,
) -> Result<(), NotJudged> {
    let new = &release.distribution;
    let conditions = before.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let applied = ConditionType::ReleaseApplied.among(conditions);
    let under_way = applied.filter(|applied| [UPDATING, UPDATE_FAILED].contains(&applied.reason.as_str()));
    match (under_way.filter(|_| new < old), back) {
        (None, _) => Ok(()),
        (Some(_), Some(parts)) => {
            let target = Target::of_classic(parts, release.clone())?;
            let too_late = abort::too_late(&target, &said_by(parts, None, jiff::Timestamp::UNIX_EPOCH));
            let refused = |why| {
                NotJudged::Refused(format!(
                    "the update to {} goes on: {why}, and from there on there is only forward",
                    old.bare()
                ))
            };
            too_late.map_or(Ok(()), |why| Err(refused(why)))
        }
        (Some(applied), None) => Err(NotJudged::Refused(format!(
            "release {} is older than {}, and an update is under way ({}): it is brought to its end, and no cluster is taken back",
            new.bare(),
            old.bare(),
            applied.message
        ))),
    }
}

/// The version that the control plane of a cluster is told to have.
fn kubernetes(parts: &ClassicParts) -> Option<KubernetesVersion> {
    parts.control_plane["spec"]["version"].as_str()?.parse().ok()
}

/// What the release will do to the objects of a cluster, a line for each.
fn summary(parts: &ClassicParts, release: Release, old: Option<&KubernetesVersion>) -> Result<Vec<String>, NotJudged> {
    let target = Target::of_classic(parts, release)?;
    let change = classify(&target, &said_by(parts, None, jiff::Timestamp::UNIX_EPOCH));
    let name = &target.cluster.name;
    let from = old.map(|old| format!("{} -> ", old.bare())).unwrap_or_default();
    let to = target.release.distribution.bare();
    let lines = change.lines();
    let first = format!("{name}: {from}{to}: {}", told(&change, lines.len()));
    Ok([first].into_iter().chain(lines).collect())
}

fn told(change: &Classification, lines: usize) -> String {
    let replaces = |stage: Stage| {
        change.changes.iter().any(|it| it.stage == stage && matches!(it.effect, Effect::Replaces | Effect::Refused))
    };
    match (change.kind, replaces(Stage::ControlPlane), replaces(Stage::Workers)) {
        (Kind::Nothing, ..) => "nothing changes".to_owned(),
        (_, true, true) => "the machines of the control plane are replaced, then the workers".to_owned(),
        (_, true, false) => "the machines of the control plane are replaced".to_owned(),
        (_, false, true) => "workers are replaced".to_owned(),
        (_, false, false) if lines == 1 => "one change in place, no machine is replaced".to_owned(),
        (_, false, false) => format!("{lines} changes in place, no machine is replaced"),
    }
}
