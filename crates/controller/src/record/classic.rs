//! What is written down of a classic cluster: its updates as those of all others, and on the Cluster itself one condition and the
//! release that it was last brought to.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde_json::{Value, json};
use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_api::kind::Condition;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::{
    ClusterUpdate, ClusterUpdateSpec, ClusterUpdateStatus, UpdateState, WaitingFor,
};
use windlass_api::{annotation, label};
use windlass_plan::change::classify;
use windlass_plan::check::Severity;
use windlass_plan::gate::Blocked;
use windlass_plan::planner::{Planned, PlanningInput, Record};
use windlass_plan::report::Assessment;
use windlass_plan::resolve::labelled::asked;
use windlass_plan::resolve::labelled::course::{DRIFTED, Said, WAITING, goes_on};
pub(crate) use windlass_plan::resolve::labelled::course::{REPLACING, UPDATE_FAILED, UPDATING};
use windlass_runtime::events::{Kind, Notice};
use windlass_runtime::trimmed::Trimmed;

use super::begin::approval;
use super::condition::{dated, moment, of};
use super::{RecordError, Recorded, notice, update};
use crate::classic::{Context, Unplanned};
use crate::execute::FIELD_MANAGER;
use crate::said::{is_already_exists, is_conflict, is_not_found, is_other_object, with_causes};

/// Whose these fields of the Cluster are. Apart from those of the other controllers: who applies a part of an object gives up what
/// they leave out of it.
const MANAGER: &str = "windlass-classic";

/// What stands in the condition of a cluster.
struct Told {
    status: ConditionStatus,
    reason: String,
    message: String,
}

impl Told {
    fn not(reason: &str, message: String) -> Self {
        Self { status: ConditionStatus::False, reason: reason.to_owned(), message }
    }
}

/// Why nothing is begun: something else was reviewed for the release that the label names.
pub(crate) fn reviewed_otherwise(cluster: &Cluster, input: &PlanningInput, planned: &Planned) -> Option<String> {
    let annotations = cluster.metadata.annotations.as_ref()?;
    let mut reviewed = annotations.get(annotation::REVIEWED_ENVELOPE.name)?.split(' ');
    let (release, digest, says) = (reviewed.next()?, reviewed.next()?, reviewed.next());
    let now = &input.target.release;
    let to = now.distribution.bare().to_string();
    // What is drift afterwards was never reviewed.
    let is_about_this = release == to && input.inventory.deployed.as_ref() != Some(&now.distribution);
    let found = planned.envelope.digest();
    (is_about_this && digest != found).then(|| {
        let moved = match says {
            Some(says) if says != now.digest() => "the release says something else since then",
            Some(_) => "the objects of the cluster are others since then",
            None => "the release or the objects of the cluster are others since then",
        };
        let would = first_of(&classify(&input.target, &input.inventory).lines());
        format!(
            "what was reviewed for {to} has the envelope {digest}, and what would be done has {found}: {moved}. It would be: \
             {would}"
        )
    })
}

/// The first of several, and how many more there are.
fn first_of(lines: &[String]) -> String {
    match lines {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [first, more @ ..] => format!("{first}, and {} more", more.len()),
    }
}

/// Makes the record of an update that begins. Before, the Cluster says that it begins, only if it is still what was looked at: whoever
/// changes the label meanwhile was first, or is told by admission that an update is under way.
pub(crate) async fn begin(ctx: &Context, cluster: &Cluster, begin: &Record) -> Result<(), RecordError> {
    let Record::Begin { name, ordinal, id, from, to, envelope_digest, cause } = begin else { return Ok(()) };
    let release = to.distribution.trim_start_matches('v');
    let told = Told::not(UPDATING, format!("to {release}; {name} begins"));
    if !announce(ctx, cluster, &told).await? {
        return Ok(());
    }
    let of_cluster = cluster.metadata.name.clone().unwrap_or_default();
    let spec = ClusterUpdateSpec {
        cluster: of_cluster.clone(),
        ordinal: *ordinal,
        id: id.to_string(),
        from: from.clone(),
        to: to.clone(),
        envelope_digest: envelope_digest.clone(),
        cause: cause.clone(),
        approval: approval(&cluster.metadata, envelope_digest, ctx.reach.access.clock.now()),
    };
    let mut record = ClusterUpdate::new(name.as_str(), spec);
    record.metadata.labels =
        Some([(label::CLUSTER_NAME.name.to_owned(), of_cluster), label::UPDATE_ID.entry(id)].into());
    let owner = OwnerReference {
        api_version: Cluster::api_version(&()).into_owned(),
        kind: Cluster::kind(&()).into_owned(),
        name: cluster.metadata.name.clone().unwrap_or_default(),
        uid: cluster.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    };
    record.metadata.owner_references = Some(vec![owner]);
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<ClusterUpdate> = Api::namespaced(ctx.reach.access.client.clone(), namespace);
    let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
    let object = format!("ClusterUpdate/{name}");
    let live = match api.create(&params, &record).await {
        Ok(created) => created,
        Err(error) if is_already_exists(&error) => {
            api.get(name.as_str()).await.map_err(RecordError::api("read", object))?
        }
        Err(error) => return Err(RecordError::api("create", object)(error)),
    };
    let uid = cluster.metadata.uid.as_deref();
    let is_its_own = live.metadata.owner_references.iter().flatten().any(|owner| Some(owner.uid.as_str()) == uid);
    if !is_its_own || live.spec.id != record.spec.id {
        return Err(RecordError::Foreign { name: name.to_string() });
    }
    Ok(())
}

/// Says on the Cluster that Cluster API is told to replace machines, only if it is still what was looked at: whoever takes the label back
/// meanwhile was first, or is refused by admission.
pub(crate) async fn replacing(ctx: &Context, cluster: &Cluster, input: &PlanningInput) -> Result<bool, RecordError> {
    let release = input.target.release.distribution.bare();
    let told = Told::not(REPLACING, format!("to {release}; Cluster API is told to replace machines"));
    announce(ctx, cluster, &told).await
}

/// Says something of a cluster; not if it has changed since it was looked at.
async fn announce(ctx: &Context, cluster: &Cluster, told: &Told) -> Result<bool, RecordError> {
    let now = ctx.reach.access.clock.now();
    let fields = json!({
        "metadata": {"resourceVersion": cluster.metadata.resource_version},
        "status": {"conditions": conditions(cluster, told, now)},
    });
    apply(ctx, cluster, fields, true).await
}

/// Writes down what came of a look, failures included.
pub(crate) async fn outcome(
    ctx: &Context,
    cluster: &Cluster,
    latest: Option<&ClusterUpdate>,
    recorded: &Recorded<'_>,
) -> Result<(), RecordError> {
    if let Some(latest) = latest {
        let before = latest.status.clone().unwrap_or_default();
        let status = update::status(&before, latest, recorded);
        if status != before {
            write_update(ctx, latest, &status).await?;
            for notice in notice::of_update(latest, &before, &status) {
                publish(ctx, cluster, &notice).await;
            }
        }
    }
    let told = told(cluster, latest, recorded);
    let is_pending = recorded.planned.report.pending.is_some();
    let event = match told.reason.as_str() {
        DRIFTED => Some((Kind::Warning, DRIFTED, "Adhere")),
        _ if is_pending => Some((Kind::Normal, ConditionType::UpdatePending.as_str(), "Reconcile")),
        _ => None,
    };
    if let Some((kind, reason, action)) = event.filter(|_| !has(cluster, &told)) {
        let (reason, action) = (reason.to_owned(), action.to_owned());
        publish(ctx, cluster, &Notice { kind, reason, action, note: told.message.clone(), related: None }).await;
    }
    write_cluster(ctx, cluster, &told, recorded.input.now).await?;
    deployed(ctx, cluster, recorded).await
}

/// Writes down that an update does not begin.
pub(crate) async fn held(ctx: &Context, cluster: &Cluster, why: &str) -> Result<(), RecordError> {
    let release = asked(cluster).ok().flatten().map(|release| release.bare().to_string()).unwrap_or_default();
    let way_out =
        format!("review it again with windlass plan --to {release} --out FILE, and windlass upgrade --plan FILE");
    let told = Told::not("ReviewedOtherwise", Said { what: why, way_out: Some(&way_out) }.to_string());
    write_cluster(ctx, cluster, &told, ctx.reach.access.clock.now()).await
}

/// Writes down why a cluster cannot even be planned for. An update that goes on waits for that, too.
pub(crate) async fn unplanned(
    ctx: &Context,
    cluster: &Cluster,
    latest: Option<&ClusterUpdate>,
    why: &Unplanned,
) -> Result<(), RecordError> {
    let (now, message) = (ctx.reach.access.clock.now(), with_causes(why));
    if let Some(latest) = latest.filter(|latest| goes_on(latest)) {
        let before = latest.status.clone().unwrap_or_default();
        let object = format!("Cluster/{}", latest.spec.cluster);
        let known = before.waiting_for.iter().find(|wait| wait.reason == why.reason() && wait.object == object);
        let waiting = WaitingFor {
            stage: before.stage.clone().unwrap_or_default(),
            reason: why.reason().to_owned(),
            object,
            message: message.clone(),
            since: known.and_then(|known| known.since.clone()).or_else(|| Some(moment(now))),
            way_out: why.way_out(),
            because: vec![message.clone()],
            deadline: None,
        };
        let state = before.state.or(Some(UpdateState::Running));
        let status = ClusterUpdateStatus { state, waiting_for: vec![waiting], ..before.clone() };
        if status != before {
            write_update(ctx, latest, &status).await?;
        }
    }
    let said = Said { what: &message, way_out: why.way_out().as_deref() }.to_string();
    write_cluster(ctx, cluster, &Told::not(why.reason(), said), now).await
}

/// What is to be said of a cluster: that it is as its release says, or the first of what keeps it from that.
fn told(cluster: &Cluster, latest: Option<&ClusterUpdate>, recorded: &Recorded<'_>) -> Told {
    let Recorded { input, planned, findings, executed, .. } = recorded;
    let release = input.target.release.distribution.bare().to_string();
    if let Some(finding) = findings.iter().find(|finding| finding.severity == Severity::Fatal) {
        return Told::not("PlanRefused", format!("{} {}: {}", finding.id, finding.object, finding.message));
    }
    if let Some(failure) = executed.failures.first() {
        return Told::not(failure.error.category(), format!("{}: {}", failure.role, failure.error));
    }
    let lines = classify(&input.target, &input.inventory).lines();
    let is_deployed = input.inventory.deployed.as_ref() == Some(&input.target.release.distribution);
    let blocked = planned.report.stages.iter().find_map(|stage| stage.blocked.first());
    let waits = blocked.map(|blocked| format!("; {blocked}")).unwrap_or_default();
    let way_out = blocked.map(Blocked::way_out);
    let said = |what: String| Said { what: &what, way_out: way_out.as_deref() }.to_string();
    let is_asked = asked(cluster).is_ok_and(|asked| asked.as_ref() == Some(&input.target.release.distribution));
    let later = if is_asked { "" } else { ", and to another release after it" };
    let drifts = !lines.is_empty() && is_deployed;
    if let Some(pending) = planned.report.pending.as_ref().filter(|_| !drifts) {
        // As in the conditions of the other clusters: what is asked of somebody comes after what it is about.
        return Told::not(pending.reason(), format!("{pending}; {}", pending.way_out()));
    }
    match planned.report.assessment {
        _ if drifts => Told::not(DRIFTED, said(format!("{}{waits}", first_of(&lines)))),
        Assessment::UpdateFailed => {
            let name = latest.and_then(|latest| latest.metadata.name.clone()).unwrap_or_default();
            Told::not(UPDATE_FAILED, said(format!("ClusterUpdate/{name} has failed{waits}")))
        }
        Assessment::Running if lines.is_empty() && blocked.is_none() => {
            Told { status: ConditionStatus::True, reason: "Applied".to_owned(), message: release }
        }
        Assessment::Creating | Assessment::Running | Assessment::Updating => {
            let reason = if latest.is_some_and(goes_on) { UPDATING } else { WAITING };
            Told::not(reason, said(format!("to {release}{later}{waits}")))
        }
    }
}

fn has(cluster: &Cluster, told: &Told) -> bool {
    let before = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let known = ConditionType::ReleaseApplied.among(before);
    known.is_some_and(|known| (&known.reason, &known.message) == (&told.reason, &told.message))
}

async fn write_cluster(ctx: &Context, cluster: &Cluster, told: &Told, now: Timestamp) -> Result<(), RecordError> {
    let before = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let conditions = conditions(cluster, told, now);
    if conditions.first() == ConditionType::ReleaseApplied.among(before) {
        return Ok(());
    }
    apply(ctx, cluster, json!({"status": {"conditions": conditions}}), true).await.map(drop)
}

/// What is said, with the time since when that is so.
fn conditions(cluster: &Cluster, told: &Told, now: Timestamp) -> Vec<Condition> {
    let before = cluster.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    let generation = cluster.metadata.generation;
    let condition = of(ConditionType::ReleaseApplied, told.status, generation, (&told.reason, &told.message));
    dated(&before, vec![condition], now)
}

/// Writes down that a cluster has its release, when all of it is done.
async fn deployed(ctx: &Context, cluster: &Cluster, recorded: &Recorded<'_>) -> Result<(), RecordError> {
    let Recorded { input, planned, executed, .. } = recorded;
    let release = &input.target.release.distribution;
    let at_rest = planned.report.assessment == Assessment::Running
        && executed.steps.is_empty()
        && planned.report.stages.iter().all(|stage| stage.changes.is_empty() && stage.blocked.is_empty());
    if !at_rest || input.inventory.deployed.as_ref() == Some(release) {
        return Ok(());
    }
    let (key, value) = annotation::LAST_DEPLOYED_VERSION.entry(release);
    apply(ctx, cluster, json!({"metadata": {"annotations": {key: value}}}), false).await.map(drop)
}

/// Applies fields of a Cluster that is there; whether it was. One that is another by now, or gone, is looked at again when that is
/// seen.
async fn apply(ctx: &Context, cluster: &Cluster, mut fields: Value, is_status: bool) -> Result<bool, RecordError> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<Trimmed<Cluster>> = Api::namespaced(ctx.reach.access.client.clone(), namespace);
    fields["apiVersion"] = Cluster::api_version(&()).into();
    fields["kind"] = Cluster::kind(&()).into();
    fields["metadata"]["name"] = name.into();
    fields["metadata"]["uid"] = cluster.metadata.uid.clone().into();
    let params = PatchParams::apply(MANAGER).force();
    let written = if is_status {
        api.patch_status(name, &params, &Patch::Apply(&fields)).await
    } else {
        api.patch(name, &params, &Patch::Apply(&fields)).await
    };
    match written {
        Ok(_) => Ok(true),
        Err(error) if is_conflict(&error) || is_other_object(&error) || is_not_found(&error) => Ok(false),
        Err(error) => Err(RecordError::api("write down", format!("Cluster/{name}"))(error)),
    }
}

async fn write_update(ctx: &Context, update: &ClusterUpdate, status: &ClusterUpdateStatus) -> Result<(), RecordError> {
    super::apply_update(&ctx.reach.access.client, update, status).await.map(drop)
}

async fn publish(ctx: &Context, cluster: &Cluster, notice: &Notice) {
    if let Err(error) = ctx.recorder.publish(&cluster.object_ref(&()), notice).await {
        tracing::warn!(reason = notice.reason, error = with_causes(&error), "an Event was not published");
    }
}
