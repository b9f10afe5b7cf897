//! What Cluster API and those beside it say of a cluster that we hold by pausing it. Read only while we do.

use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Resource};
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::kind::{Condition, ContractReference};
use windlass_api::label;
use windlass_plan::bootstrap::quiet::Watched;
use windlass_plan::bootstrap::{Reference, Subject};
use windlass_runtime::runner::Ctx;

use super::{Context, Error, observe};
use crate::said::is_forbidden;

/// The group of the control planes that always say whether they are paused.
const CONTROL_PLANES: &str = "controlplane.cluster.x-k8s.io";

/// What a held cluster is made of, and what is said of it. Nothing where it is not held.
pub(super) async fn watched(ctx: &Ctx<Context>, cluster: &Cluster, subject: &Subject) -> Result<Vec<Watched>, Error> {
    if subject.held_for.is_none() {
        return Ok(Vec::new());
    }
    let status = cluster.status.clone().unwrap_or_default();
    let mut watched = vec![Watched {
        object: format!("Cluster {}", subject.namespaced_name()),
        generation: cluster.metadata.generation,
        conditions: status.conditions,
        of_cluster_api: true,
    }];
    watched.extend(Watched::topology(cluster));
    for reference in [&cluster.spec.control_plane_ref, &cluster.spec.infrastructure_ref].into_iter().flatten() {
        watched.extend(referred(ctx, subject, reference).await?);
    }
    let kinds = [
        ApiResource::erase::<MachineDeployment>(&()),
        ApiResource::erase::<MachineSet>(&()),
        ApiResource::erase::<Machine>(&()),
    ];
    let labels = ListParams::default().labels(&format!("{}={}", label::CLUSTER_NAME, subject.name));
    for kind in kinds {
        let api: Api<DynamicObject> = api(ctx, subject, &kind);
        let listed = api.list(&labels).await.map_err(observe::unread(format!("{}s", kind.kind)))?;
        watched.extend(listed.items.iter().map(|found| of(&kind.kind, found, true)));
    }
    Ok(watched)
}

/// What a Cluster refers to. What is not there has nothing to say.
async fn referred(
    ctx: &Ctx<Context>,
    subject: &Subject,
    reference: &ContractReference,
) -> Result<Option<Watched>, Error> {
    let ContractReference { api_group, kind, name } = reference;
    let asked = Reference { api_group: api_group.clone(), kind: kind.clone(), name: name.clone() };
    let api_version = observe::api_version(&ctx.access.client, &asked).await?;
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(api_group, version, kind));
    match observe::find(&api(ctx, subject, &resource), name).await {
        // Which kinds there are is for whoever provides machines to say, and no role can know them all. It is waited for, and told.
        Err(Error::Read { source, .. }) if is_forbidden(&source) => {
            let object = format!("{kind} {}/{name}", subject.namespace.as_str());
            let right = format!("the right to get {}.{api_group}", resource.plural);
            Ok(Some(Watched::unread(format!("{object}, which cannot be read: windlass-controllers lacks {right}"))))
        }
        found => Ok(found?.map(|found| of(kind, &found, api_group == CONTROL_PLANES))),
    }
}

fn api(ctx: &Ctx<Context>, subject: &Subject, kind: &ApiResource) -> Api<DynamicObject> {
    Api::namespaced_with(ctx.access.client.clone(), subject.namespace.as_str(), kind)
}

fn of(kind: &str, found: &DynamicObject, of_cluster_api: bool) -> Watched {
    let meta = found.meta();
    let conditions = found.data.pointer("/status/conditions").cloned().unwrap_or_default();
    Watched {
        object: format!(
            "{kind} {}/{}",
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default()
        ),
        generation: meta.generation,
        // What is no list of conditions says nothing.
        conditions: serde_json::from_value::<Vec<Condition>>(conditions).unwrap_or_default(),
        of_cluster_api,
    }
}
