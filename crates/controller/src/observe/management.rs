//! What the management cluster says: mostly from the caches.

pub(crate) mod pool;

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job as BatchJob;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::ListParams;
use windlass_api::condition::ConditionType;
use windlass_api::kind::bootstrap::KubeadmConfig;
use windlass_api::kind::cluster_api::{Cluster, Machine as LiveMachine};
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::wcp::{WCPMachine, WCPMachineSpec};
use windlass_api::kind::{condition, is_true};
use windlass_api::name::{MachineName, NodeName, ObjectName, Uid, UpdateId};
use windlass_api::{annotation, label};
use windlass_plan::inventory::{
    ClusterState, Job, JobState, Machine, MachineState, Milestone, UpdateRecord, UpdateRecordState, Waited,
};
use windlass_plan::step::Revision;
use windlass_plan::target::NetworkTarget;
use windlass_runtime::key::Key;

pub(super) use pool::pools;

use super::{Gaps, Subject};
use crate::reconcile::context::{Context, MadeFrom};
use crate::reconcile::{JOB_NAMESPACE, belongs_to};
use crate::said::{said, with_causes};

/// Objects that could not be read are gaps, if by their names they can be of this cluster.
pub(super) fn unreadable(ctx: &Context, subject: &Subject<'_>, gaps: &mut Gaps) {
    let caches = &ctx.caches;
    let mut note = |kind: &str, unreadable: BTreeMap<Key, String>| {
        for (key, why) in unreadable {
            let rest = key.name.strip_prefix(subject.name.as_str());
            if key.namespace == subject.key.namespace && rest.is_some_and(|r| r.is_empty() || r.starts_with('-')) {
                gaps.note(format!("{kind}/{}", key.name), why);
            }
        }
    };
    note("Cluster", caches.clusters.unreadable());
    note("Machine", caches.machines.unreadable());
    note("MachineDeployment", caches.deployments.unreadable());
    note("WCPMachineTemplate", caches.machine_templates.unreadable());
    note("KubeadmConfigTemplate", caches.config_templates.unreadable());
    note("ClusterUpdate", caches.updates.unreadable());
}

pub(super) fn cluster(ctx: &Context, subject: &Subject<'_>, gaps: &mut Gaps) -> ClusterState {
    let Some(live) = ctx.caches.clusters.get(&subject.key) else { return ClusterState::Absent };
    let object = format!("Cluster/{}", subject.name);
    let tkc = subject.tkc.metadata.uid.as_deref().unwrap_or_default();
    let owners = live.metadata.owner_references.as_deref().unwrap_or_default();
    if !owners.iter().any(|owner| owner.uid == tkc) {
        gaps.note(object.as_str(), "it belongs to somebody else, or to an earlier cluster of the same name");
    } else if live.metadata.deletion_timestamp.is_some() {
        gaps.note(object.as_str(), "it is being deleted");
    }
    let Some(uid) = gaps.take(&object, uid(&live.metadata)) else { return ClusterState::Absent };
    let reached = live.status.as_ref().and_then(|status| status.initialization.clone()).unwrap_or_default();
    ClusterState::Present {
        uid,
        infrastructure_ready: reached.infrastructure_provisioned,
        initialized: reached.control_plane_initialized,
        paused: paused(&live, Some(&subject.tkc.metadata)),
        network: network(&live),
    }
}

/// The network inside of the cluster, if all of it is said.
pub(crate) fn network(live: &Cluster) -> Option<NetworkTarget> {
    let said = live.spec.cluster_network.as_ref()?;
    let blocks = |of: &str| {
        let blocks = said[of]["cidrBlocks"].as_array()?;
        blocks.iter().map(|block| block.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
    };
    Some(NetworkTarget {
        pods: blocks("pods")?,
        services: blocks("services")?,
        service_domain: said["serviceDomain"].as_str()?.to_owned(),
    })
}

/// Who says that nobody may touch the cluster.
pub(crate) fn paused(live: &Cluster, tkc: Option<&ObjectMeta>) -> Option<String> {
    let has = |meta: &ObjectMeta| meta.annotations.as_ref().is_some_and(|all| annotation::PAUSED.is_in(all));
    let name = live.metadata.name.as_deref().unwrap_or_default();
    if live.spec.paused == Some(true) {
        Some(format!("spec.paused of Cluster/{name}"))
    } else if has(&live.metadata) {
        Some(format!("the annotation {} of Cluster/{name}", annotation::PAUSED))
    } else if tkc.is_some_and(has) {
        Some(format!("the annotation {} of TanzuKubernetesCluster/{name}", annotation::PAUSED))
    } else {
        None
    }
}

/// The latest update of this very cluster.
pub(crate) fn latest_update(
    ctx: &Context,
    tkc: &windlass_api::kind::tanzu::TanzuKubernetesCluster,
) -> Option<std::sync::Arc<ClusterUpdate>> {
    let namespace = tkc.metadata.namespace.as_deref().unwrap_or_default();
    let updates = ctx.caches.updates.list_in(namespace);
    let of_cluster = updates.into_iter().filter(|update| belongs_to(&update.metadata, tkc));
    of_cluster.max_by_key(|update| update.spec.ordinal)
}

pub(super) fn update(ctx: &Context, subject: &Subject<'_>, gaps: &mut Gaps) -> Option<UpdateRecord> {
    update_record(&*latest_update(ctx, subject.tkc)?, gaps)
}

/// What the record of an update says.
pub(crate) fn update_record(live: &ClusterUpdate, gaps: &mut Gaps) -> Option<UpdateRecord> {
    let name = live.metadata.name.clone().unwrap_or_default();
    let object = format!("ClusterUpdate/{name}");
    // The state comes with a second write; an update is running from the first on.
    let state = live.status.as_ref().and_then(|status| status.state).unwrap_or(UpdateState::Running);
    Some(UpdateRecord {
        name: gaps.take(&object, ObjectName::new(&name))?,
        ordinal: live.spec.ordinal,
        id: gaps.take(&object, live.id())?,
        from: live.spec.from.clone(),
        envelope_digest: live.spec.envelope_digest.clone(),
        state: match state {
            UpdateState::Running => UpdateRecordState::Running,
            UpdateState::Succeeded => UpdateRecordState::Succeeded,
            UpdateState::Failed => UpdateRecordState::Failed,
            UpdateState::Aborted => UpdateRecordState::Aborted,
        },
        waiting: waited(live),
        progress: pool::moved(live),
    })
}

/// What the update waited for when it was last looked at. A moment that cannot be read is as good as none: the next look
/// writes it anew.
fn waited(live: &ClusterUpdate) -> Vec<Waited> {
    let waiting = live.status.iter().flat_map(|status| &status.waiting_for);
    let known = waiting.filter_map(|waiting| {
        let since = waiting.since.as_deref()?.parse().ok()?;
        Some(Waited { reason: waiting.reason.clone(), object: waiting.object.clone(), since })
    });
    known.collect()
}

/// The machines of the control plane. What each is made from, and was told, is read once: it never changes.
pub(super) async fn machines(ctx: &Context, subject: &Subject<'_>, gaps: &mut Gaps) -> Vec<Machine> {
    let known = ctx.memory.machines(&subject.key);
    let mut still = BTreeMap::new();
    let mut machines = Vec::new();
    for live in ctx.caches.machines.list_in(subject.namespace.as_str()) {
        if live.spec.cluster_name != subject.name.as_str() {
            continue;
        }
        let uid = live.metadata.uid.clone().unwrap_or_default();
        let made_from = match known.get(&uid) {
            Some(made_from) => Some(made_from.clone()),
            None => made_from(ctx, subject, &live, gaps).await,
        };
        let infrastructure = made_from.as_ref().map(|made_from| &made_from.infrastructure);
        let registration = made_from.as_ref().and_then(|made_from| made_from.registration.clone());
        machines.extend(machine(&live, infrastructure, gaps).map(|machine| Machine { registration, ..machine }));
        still.extend(made_from.map(|made_from| (uid, made_from)));
    }
    if still != known {
        ctx.memory.keep_machines(&subject.key, still);
    }
    machines
}

/// What a machine is made from; nothing while its infrastructure is not there.
async fn made_from(ctx: &Context, subject: &Subject<'_>, live: &LiveMachine, gaps: &mut Gaps) -> Option<MadeFrom> {
    let client = &ctx.access.client;
    let api: Api<WCPMachine> = Api::namespaced(client.clone(), subject.namespace.as_str());
    let name = &live.spec.infrastructure_ref.name;
    let read = api.get_opt(name).await.map_err(|error| said(&error));
    let infrastructure = gaps.take(&format!("WCPMachine/{name}"), read).flatten()?.spec;
    // Whoever decides nothing has nothing to compare.
    if ctx.access.defaults.is_empty() {
        return Some(MadeFrom { infrastructure, registration: None });
    }
    let Some(config) = &live.spec.bootstrap.config_ref else {
        return Some(MadeFrom { infrastructure, registration: None });
    };
    let api: Api<KubeadmConfig> = Api::namespaced(client.clone(), subject.namespace.as_str());
    let read = api.get_opt(&config.name).await.map_err(|error| said(&error));
    let config = gaps.take(&format!("KubeadmConfig/{}", config.name), read)?;
    Some(MadeFrom { infrastructure, registration: config.and_then(|config| registration(&config)) })
}

/// How a machine registers, whether it begins a cluster or joins one.
fn registration(config: &KubeadmConfig) -> Option<serde_json::Value> {
    let init = config.spec.init_configuration.as_ref().map(|init| &init.node_registration);
    let join = config.spec.join_configuration.as_ref().map(|join| &join.node_registration);
    init.or(join).and_then(|registration| serde_json::to_value(registration).ok())
}

/// A machine, as far as it can be read.
pub(crate) fn machine(live: &LiveMachine, made_from: Option<&WCPMachineSpec>, gaps: &mut Gaps) -> Option<Machine> {
    let meta = &live.metadata;
    let object = format!("Machine/{}", meta.name.as_deref().unwrap_or_default());
    let base = meta.annotations.as_ref().map_or(Ok(None), |all| annotation::MACHINE_NAME_BASE.get(all));
    let base = base.map_err(|error| with_causes(&error));
    let update = meta.annotations.as_ref().map_or(Ok(None), |all| annotation::MACHINE_UPDATE_ID.get(all));
    let update = update.map_err(|error| with_causes(&error));
    let made_from = made_from.map(|spec| {
        let made = (spec.image_name.parse(), spec.class_name.parse(), spec.storage_class.parse());
        (gaps.take(&object, made.0), gaps.take(&object, made.1), gaps.take(&object, made.2))
    });
    let (image, class, storage_class) = made_from.unwrap_or_default();
    Some(Machine {
        name: gaps.take(&object, MachineName::new(meta.name.as_deref().unwrap_or_default()))?,
        revision: gaps.take(&object, revision(meta))?,
        base: gaps.take(&object, base)?,
        update: gaps.take(&object, update)?,
        created: meta.creation_timestamp.as_ref().map_or(jiff::Timestamp::UNIX_EPOCH, |time| time.0),
        version: gaps.take(&object, live.spec.version.as_deref().unwrap_or_default().parse())?,
        image,
        class,
        storage_class,
        registration: None,
        state: gaps.take(&object, machine_state(live))?,
    })
}

fn machine_state(live: &LiveMachine) -> Result<MachineState, String> {
    if live.metadata.deletion_timestamp.is_some() {
        let node = live.status.as_ref().and_then(|status| status.node_ref.as_ref());
        return Ok(MachineState::Deleting { node: node.and_then(|node| NodeName::new(&node.name).ok()) });
    }
    let status = live.status.as_ref();
    let Some(node) = status.and_then(|status| status.node_ref.as_ref()) else {
        let awaits = if live.spec.provider_id.is_none() { Milestone::ProviderId } else { Milestone::Node };
        return Ok(MachineState::Joining { awaits });
    };
    let node = NodeName::new(&node.name).map_err(|error| error.to_string())?;
    let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    let ready = ConditionType::Ready.as_str();
    if is_true(conditions, ready) {
        return Ok(MachineState::Ready { node });
    }
    let why = condition(conditions, ready).map(|ready| ready.message.as_str()).filter(|message| !message.is_empty());
    Ok(MachineState::Unhealthy { node, why: why.unwrap_or("its Machine is not Ready").to_owned() })
}

/// The Job of the latest update.
pub(super) async fn job(ctx: &Context, subject: &Subject<'_>, update: &UpdateRecord) -> Option<Job> {
    job_named(ctx, subject, update.id.job_name(), update.id).await
}

/// A Job of an update, by its name.
pub(super) async fn job_named(ctx: &Context, subject: &Subject<'_>, name: ObjectName, update: UpdateId) -> Option<Job> {
    let live = ctx.caches.jobs.get(&Key::namespaced(JOB_NAMESPACE, name.as_str()))?;
    let of = |key: &str| live.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    if of(label::CLUSTER_NAME.name) != Some(subject.name.as_str()) {
        return None;
    }
    let state = match ended(&live) {
        None => JobState::Active {
            failed_attempts: live.status.as_ref().and_then(|s| s.failed).and_then(|n| n.try_into().ok()).unwrap_or(0),
        },
        Some((ConditionType::Complete, _)) => JobState::Complete,
        Some((_, message)) => {
            let last_words = last_words(ctx, name.as_str()).await;
            let said = last_words.map(|words| format!("{message}; its last attempt said: {words}"));
            JobState::Failed { message: said.unwrap_or(message) }
        }
    };
    Some(Job { name, update, state })
}

/// How a Job ended, and what it says about that.
pub(super) fn ended(job: &BatchJob) -> Option<(ConditionType, String)> {
    let conditions = job.status.as_ref()?.conditions.as_deref().unwrap_or_default();
    [ConditionType::Complete, ConditionType::Failed].into_iter().find_map(|end| {
        let found = conditions.iter().find(|c| c.type_ == end.as_str() && c.status == "True")?;
        Some((end, found.message.clone().unwrap_or_default()))
    })
}

/// What the last Pod of a Job left in its termination message. Read only after a failure, and only if it is to be had: the
/// Job's own message is enough to go by.
async fn last_words(ctx: &Context, job: &str) -> Option<String> {
    let api: Api<Pod> = Api::namespaced(ctx.access.client.clone(), JOB_NAMESPACE);
    let of_job = ListParams::default().labels(&format!("{}={job}", label::JOB_NAME));
    let pods = match api.list(&of_job).await {
        Ok(pods) => pods.items,
        Err(error) => {
            tracing::warn!(job, error = said(&error), "the Pods of a failed Job cannot be read");
            return None;
        }
    };
    let last = pods.into_iter().max_by_key(|pod| pod.metadata.creation_timestamp.clone().map(|time| time.0))?;
    let containers = last.status?.container_statuses?;
    containers.into_iter().find_map(|container| container.state?.terminated?.message).filter(|words| !words.is_empty())
}

/// Which state of which object this is.
pub(crate) fn revision(meta: &ObjectMeta) -> Result<Revision, String> {
    let resource_version = meta.resource_version.clone().ok_or("it has no resource version")?;
    Ok(Revision { uid: uid(meta)?, resource_version })
}

pub(crate) fn uid(meta: &ObjectMeta) -> Result<Uid, String> {
    Uid::new(meta.uid.as_deref().unwrap_or_default()).map_err(|error| error.to_string())
}
