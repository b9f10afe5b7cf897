//! What earlier updates of a cluster have left. What is whose follows from the uid of the cluster: no label is relied on.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::{Api, Resource};
use windlass_api::kind::cluster_api::{MachineSet, MachineSpec};
use windlass_api::label;
use windlass_api::name::{ObjectName, Uid, UpdateId};
use windlass_plan::inventory::{EarlierJob, EarlierTemplate, UpdateRecord};
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;

use super::{Subject, management};
use crate::reconcile::JOB_NAMESPACE;
use crate::reconcile::context::Context;
use crate::said::said;

/// The Jobs of all updates before this one but for the last that had any, as far as they have ended.
pub(super) fn jobs(ctx: &Context, cluster: &Uid, update: &UpdateRecord) -> Vec<EarlierJob> {
    let of = |ordinal: u64| {
        let id = UpdateId::new(cluster, ordinal);
        let found = |name: ObjectName| {
            let live = ctx.caches.jobs.get(&Key::namespaced(JOB_NAMESPACE, name.as_str()))?;
            Some((name, live))
        };
        [id.job_name(), id.abort_job_name()].into_iter().filter_map(found).collect::<Vec<(ObjectName, Arc<Job>)>>()
    };
    let had_any = (1..update.ordinal).rev().map(of).filter(|jobs| !jobs.is_empty());
    let earlier = had_any.skip(1).flatten().filter(|(_, live)| has_ended(live));
    let job = |(name, live): (ObjectName, Arc<Job>)| {
        Some(EarlierJob { name, revision: management::revision(&live.metadata).ok()? })
    };
    earlier.filter_map(job).collect()
}

/// The templates that were made for the pools of a cluster, and that no pool and no set of machines refers to. Sets are asked for
/// only if there is such a template; where they cannot be, all of them count as needed.
pub(super) async fn templates(ctx: &Context, subject: &Subject<'_>, cluster: &Uid) -> Vec<EarlierTemplate> {
    let (namespace, caches) = (subject.namespace.as_str(), &ctx.caches);
    let mut found = of_kind(&caches.machine_templates, subject, cluster);
    found.extend(of_kind(&caches.config_templates, subject, cluster));
    let pools = caches.deployments.list_in(namespace);
    let in_pools: BTreeSet<String> = pools.iter().flat_map(|pool| refers_to(&pool.spec.template.spec)).collect();
    found.retain(|template| !in_pools.contains(template.name.as_str()));
    if found.is_empty() {
        return found;
    }
    let api: Api<MachineSet> = Api::namespaced(ctx.access.client.clone(), namespace);
    match api.list(&ListParams::default()).await {
        Ok(sets) => {
            let in_sets: BTreeSet<String> =
                sets.items.iter().flat_map(|set| refers_to(&set.spec.template.spec)).collect();
            found.retain(|template| !in_sets.contains(template.name.as_str()));
            found
        }
        Err(error) => {
            tracing::warn!(cluster = %subject.key, error = said(&error), "the sets of machines cannot be read");
            Vec::new()
        }
    }
}

/// What machines are made from, by name.
fn refers_to(machine: &MachineSpec) -> impl Iterator<Item = String> + use<> {
    let bootstrap = machine.bootstrap.config_ref.as_ref().map(|config| config.name.clone());
    [machine.infrastructure_ref.name.clone()].into_iter().chain(bootstrap)
}

/// Those of a kind that an update of ours has made for a cluster.
fn of_kind<K>(templates: &Cache<K>, subject: &Subject<'_>, cluster: &Uid) -> Vec<EarlierTemplate>
where
    K: Resource<DynamicType = ()>,
{
    let is_ours = |meta: &ObjectMeta| {
        let owners = meta.owner_references.as_deref().unwrap_or_default();
        let is_made = meta.labels.as_ref().is_some_and(|labels| label::UPDATE_ID.is_in(labels));
        is_made && meta.deletion_timestamp.is_none() && owners.iter().any(|owner| owner.uid == cluster.as_str())
    };
    let kind = if K::kind(&()) == "WCPMachineTemplate" { "WCPMachineTemplate" } else { "KubeadmConfigTemplate" };
    let template = |template: Arc<K>| {
        let meta = template.meta();
        Some(EarlierTemplate {
            api_version: K::api_version(&()).into_owned(),
            kind,
            name: ObjectName::new(meta.name.as_deref()?).ok()?,
            revision: management::revision(meta).ok()?,
        })
    };
    let listed = templates.list_in(subject.namespace.as_str()).into_iter();
    listed.filter(|template| is_ours(template.meta())).filter_map(template).collect()
}

fn has_ended(job: &Job) -> bool {
    management::ended(job).is_some() && job.metadata.deletion_timestamp.is_none()
}
