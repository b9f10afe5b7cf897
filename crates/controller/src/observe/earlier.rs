//! What earlier updates of a cluster have left. What is whose follows from the uid of the cluster: no label is relied on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use windlass_api::kind::bootstrap::KubeadmConfigTemplate;
use windlass_api::kind::cluster_api::{MachineDeployment, MachineSet, MachineSpec};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::wcp::WCPMachineTemplate;
use windlass_api::label;
use windlass_api::name::{ObjectName, Uid, UpdateId};
use windlass_plan::inventory::{EarlierJob, EarlierTemplate, UpdateRecord};
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;
use windlass_runtime::trimmed;

use super::{Subject, Which, management};
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
    match in_sets(&ctx.access.client, namespace).await {
        Ok(in_sets) => {
            found.retain(|template| !in_sets.contains(template.name.as_str()));
            found
        }
        Err(error) => {
            tracing::warn!(cluster = %subject.key, error = said(&error), "the sets of machines cannot be read");
            Vec::new()
        }
    }
}

/// The same of a classic cluster, whose control plane is made from a template, too. Its owner's templates are beside them, and may be
/// copies of ours with all their labels: ours have the name that their update gave them. Who else of the namespace refers to one is
/// asked as well. What cannot be read is needed.
pub(crate) async fn templates_of_classic(client: &Client, which: &Which<'_>, cluster: &Uid) -> Vec<EarlierTemplate> {
    match unused_of_classic(client, which, cluster).await {
        Ok(found) => found,
        Err(error) => {
            let (cluster, error) = (which.namespaced_name(), said(&error));
            tracing::warn!(%cluster, error, "what the templates of earlier updates are needed for cannot be read");
            Vec::new()
        }
    }
}

async fn unused_of_classic(client: &Client, which: &Which<'_>, cluster: &Uid) -> kube::Result<Vec<EarlierTemplate>> {
    let mut found = made_for::<WCPMachineTemplate>(client, which, cluster).await?;
    found.extend(made_for::<KubeadmConfigTemplate>(client, which, cluster).await?);
    if found.is_empty() {
        return Ok(found);
    }
    let namespace = which.namespace.as_str();
    let pools: Api<MachineDeployment> = Api::namespaced(client.clone(), namespace);
    let pools = trimmed::list(&pools, &ListParams::default()).await?;
    let control_planes: Api<KubeadmControlPlane> = Api::namespaced(client.clone(), namespace);
    let control_planes = trimmed::list(&control_planes, &ListParams::default()).await?;
    let mut needed = in_sets(client, namespace).await?;
    needed.extend(pools.iter().flat_map(|pool| refers_to(&pool.spec.template.spec)));
    needed.extend(control_planes.into_iter().map(|it| it.spec.machine_template.spec.infrastructure_ref.name));
    found.retain(|template| !needed.contains(template.name.as_str()));
    Ok(found)
}

/// Those of a kind that updates of ours have made for a classic cluster.
async fn made_for<K>(client: &Client, which: &Which<'_>, cluster: &Uid) -> kube::Result<Vec<EarlierTemplate>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), which.namespace.as_str());
    let made = format!("{}={},{}", label::CLUSTER_NAME, which.name, label::UPDATE_ID);
    let listed = trimmed::list(&api, &ListParams::default().labels(&made)).await?;
    let is_named_so = |meta: &ObjectMeta| {
        let none = BTreeMap::new();
        let id = label::UPDATE_ID.get(meta.labels.as_ref().unwrap_or(&none)).ok().flatten();
        id.is_some_and(|id| meta.name.as_deref().is_some_and(|name| name.contains(&id.to_string())))
    };
    let ours = listed.iter().map(Resource::meta).filter(|meta| is_ours(meta, cluster) && is_named_so(meta));
    Ok(ours.filter_map(template::<K>).collect())
}

/// What the sets of machines of a namespace are made from, by name.
async fn in_sets(client: &Client, namespace: &str) -> kube::Result<BTreeSet<String>> {
    let api: Api<MachineSet> = Api::namespaced(client.clone(), namespace);
    let sets = api.list(&ListParams::default()).await?;
    Ok(sets.items.iter().flat_map(|set| refers_to(&set.spec.template.spec)).collect())
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
    let listed = templates.list_in(subject.namespace.as_str()).into_iter();
    listed.filter(|found| is_ours(found.meta(), cluster)).filter_map(|found| template::<K>(found.meta())).collect()
}

/// Whether an update of ours has made a template for a cluster.
fn is_ours(meta: &ObjectMeta, cluster: &Uid) -> bool {
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    let is_made = meta.labels.as_ref().is_some_and(|labels| label::UPDATE_ID.is_in(labels));
    is_made && meta.deletion_timestamp.is_none() && owners.iter().any(|owner| owner.uid == cluster.as_str())
}

fn template<K: Resource<DynamicType = ()>>(meta: &ObjectMeta) -> Option<EarlierTemplate> {
    Some(EarlierTemplate {
        api_version: K::api_version(&()).into_owned(),
        kind: if K::kind(&()) == "WCPMachineTemplate" { "WCPMachineTemplate" } else { "KubeadmConfigTemplate" },
        name: ObjectName::new(meta.name.as_deref()?).ok()?,
        revision: management::revision(meta).ok()?,
    })
}

fn has_ended(job: &Job) -> bool {
    management::ended(job).is_some() && job.metadata.deletion_timestamp.is_none()
}
