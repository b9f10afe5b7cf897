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
use windlass_api::kind::Condition;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::version::KubernetesVersion;
use windlass_api::{annotation, label};
use windlass_plan::change::{Classification, Effect, Kind, classify};
use windlass_plan::envelope::Envelope;
use windlass_plan::inventory::ClusterState;
use windlass_plan::release::{Release, ReleaseState};
use windlass_plan::resolve::labelled::course::goes_on;
use windlass_plan::resolve::labelled::{Published, Unlabelled, abort, asked, may_go};
use windlass_plan::step::Stage;
use windlass_plan::target::{ClassicParts, Target, TargetError};

use super::approval::{Asking, Stamped};
use super::choice::Unknown;
use super::{API_VERSION, KIND, approval};
use crate::classic::latest;
use crate::classic::observe::{deployed, said_by};
use crate::classic::parts::{PartsError, parts, published};
use crate::record::classic::{REPLACING, UPDATE_FAILED, UPDATING};

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
    old.is_none_or(|old| {
        let is_moved = label(old) != label(object) || last_deployed(old) != last_deployed(object);
        is_moved || old["spec"] != object["spec"] || approval::concerns(object, old)
    })
}

/// What an object says it was last brought to.
fn last_deployed(object: &Value) -> &Value {
    &object["metadata"]["annotations"][annotation::LAST_DEPLOYED_VERSION.name]
}

/// Answers an `AdmissionReview` of a mutating webhook. An error means that no answer is to be had.
pub async fn review(client: &Client, review: Value) -> Result<Value, String> {
    let request = &review["request"];
    let Some(uid) = request["uid"].as_str() else { return Err(format!("not a {KIND}: it has no request.uid")) };
    let mut response = json!({"uid": uid, "allowed": true});
    if let Some((cluster, before)) = subject(request) {
        match judge(client, request, &cluster, before.as_ref()).await {
            Ok(Judged { patch, warnings }) => {
                if !warnings.is_empty() {
                    response["warnings"] = json!(warnings);
                }
                if !patch.is_empty() {
                    response["patchType"] = json!("JSONPatch");
                    response["patch"] = json!(STANDARD.encode(json!(patch).to_string()));
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
    patch: Vec<Value>,
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
    let Some(version) = asked(cluster)? else { return Ok(Judged { patch: Vec::new(), warnings: Vec::new() }) };
    let published = published(client).await?;
    // An object that is being made may not have been told yet which namespace it is in: it has no parts. Without a release they are
    // not asked for.
    let parts = match (before, published.find(&version)) {
        (Some(_), Ok(_)) => parts(client, cluster, published.profiles()).await?,
        (Some(_) | None, _) => None,
    };
    let Chosen { release, mut warnings, is_new } = choose(&version, &published, cluster, before, parts.as_ref())?;
    let stamped = approval::stamp(client, Asking::ByLabel, request).await?.map_err(NotJudged::Refused)?;
    let mut written = request["object"].clone();
    let (mut bringing, mut patch) = (release, stamped.patch.clone());
    if let (Some(release), Some(parts)) = (release, &parts)
        && waits(client, parts, before, release, &stamped).await?
    {
        patch.extend(not_yet(request));
        if is_new {
            let name = request["object"]["metadata"]["name"].as_str().unwrap_or_default();
            warnings.push(approval::notice(name));
        }
        // Until then the Cluster is kept as the release has it that was approved before.
        bringing = before.and_then(deployed).and_then(|before| published.find(&before).ok());
    }
    if let Some(defaults) = bringing.and_then(|release| release.defaults_of("cluster")) {
        if before.is_none() { defaults.at_creation(&mut written) } else { defaults.at_update(&mut written) }
    }
    let (spec, of) = (&written["spec"], &request["object"]["spec"]);
    patch.extend((spec != of).then(|| json!({"op": "add", "path": "/spec", "value": spec})));
    Ok(Judged { patch, warnings })
}

/// The release that a label names, if it is to be had, and what is said about it.
struct Chosen<'a> {
    release: Option<&'a Release>,
    warnings: Vec<String>,
    /// It is another than before.
    is_new: bool,
}

fn choose<'a>(
    version: &KubernetesVersion,
    published: &'a Published,
    cluster: &Cluster,
    before: Option<&Cluster>,
    parts: Option<&ClassicParts>,
) -> Result<Chosen<'a>, NotJudged> {
    let old = before.and_then(|before| asked(before).ok().flatten());
    let is_new = old.as_ref() != Some(version);
    let release = match published.find(version) {
        Ok(release) => release,
        Err(why) if is_new => return Err(why.into()),
        // What became of a release since keeps nobody from changing something else.
        Err(why) => return Ok(Chosen { release: None, warnings: vec![why.to_string()], is_new }),
    };
    let mut warnings = Vec::new();
    if is_new {
        let deployed = deployed(cluster);
        if let (Some(old), Some(before)) = (&old, before) {
            let back = parts.filter(|_| deployed.as_ref() == Some(version));
            may_change_their_mind(before, old, release, back)?;
        }
        let known = deployed.as_ref().or(old.as_ref());
        may_go(release, known, parts.and_then(kubernetes).as_ref())?;
        if release.state != ReleaseState::Active {
            warnings.push(format!("release {} is {}", version.bare(), release.state));
        }
        if let Some(parts) = parts {
            warnings.extend(summary(parts, release.clone(), old.as_ref())?);
        }
    }
    Ok(Chosen { release: Some(release), warnings, is_new })
}

/// Keeps an object from saying that it was brought to a release that has not been approved. The stamps have seen to it that there are
/// annotations.
fn not_yet(request: &Value) -> Option<Value> {
    let [is, was] = ["object", "oldObject"].map(|side| last_deployed(&request[side]));
    let path = format!("/metadata/annotations/{}", annotation::LAST_DEPLOYED_VERSION.name.replace('/', "~1"));
    (is != was).then(|| match was {
        Value::Null => json!({"op": "remove", "path": path}),
        was => json!({"op": "add", "path": path, "value": was}),
    })
}

/// Whether a release waits for somebody to approve what it would do. What makes a cluster in the first place is no update, what has begun
/// was approved, and where nothing differs there is nothing to approve.
async fn waits(
    client: &Client,
    parts: &ClassicParts,
    before: Option<&Cluster>,
    release: &Release,
    stamped: &Stamped,
) -> Result<bool, NotJudged> {
    let inventory = said_by(parts, None, jiff::Timestamp::UNIX_EPOCH);
    let is_made = matches!(inventory.cluster, ClusterState::Present { initialized: true, .. });
    if !stamped.is_required || !is_made || before.and_then(deployed).as_ref() == Some(&release.distribution) {
        return Ok(false);
    }
    let target = Target::of_classic(parts, release.clone())?;
    if classify(&target, &inventory).kind == Kind::Nothing {
        return Ok(false);
    }
    if stamped.agreed_to == Some(Envelope::proposed(&target, &inventory).digest()) {
        return Ok(false);
    }
    let latest = latest(client, &parts.cluster).await.map_err(|error| NotJudged::Unknown(error.to_string()))?;
    Ok(!latest.is_some_and(|latest| goes_on(&latest)))
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
    let is_under_way = |applied: &&Condition| [UPDATING, REPLACING, UPDATE_FAILED].contains(&applied.reason.as_str());
    let under_way = applied.filter(is_under_way);
    match (under_way.filter(|_| new < old), back) {
        (None, _) => Ok(()),
        (Some(applied), Some(parts)) => {
            let target = Target::of_classic(parts, release.clone())?;
            let being_told = || (applied.reason == REPLACING).then(|| "Cluster API is being told of it".to_owned());
            let told = abort::too_late(&target, &said_by(parts, None, jiff::Timestamp::UNIX_EPOCH));
            let too_late = told.or_else(being_told);
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
