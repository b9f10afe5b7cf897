//! The hook by which machines outlive the packages of their cluster: set and released as `windlass-plan` decides.
//!
//! Only machines of clusters of a class are watched. Which cluster is kept for its packages, its finalizer says.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::{annotation, label};
use windlass_plan::bootstrap::{Hook, is_kept, outlive};
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;
use windlass_runtime::runner::{Ctx, Options, Outcome, Runner};
use windlass_runtime::watch::{Change, Watch};

use super::Error;
use crate::access::Access;
use crate::execute::{FIELD_MANAGER, WriteError};
use crate::said::{is_conflict, is_not_found, is_other_object};

struct Context {
    access: Access,
    clusters: Cache<Cluster>,
}

/// Looks after the hooks until `stop`.
pub(super) async fn run(access: Access, stop: impl Future<Output = ()>) {
    let mut options = Options::new(access.clock.clone(), access.seed);
    options.trace.clone_from(&access.trace);
    let labelled = |key: &str| watcher::Config::default().labels(key);
    let machines = Watch::<Machine>::all(access.client.clone()).configured(labelled(label::TOPOLOGY_OWNED.name));
    let clusters = Watch::<Cluster>::all(access.client.clone()).configured(labelled(label::RELEASE.name));
    let known = machines.cache();
    let context = Context { clusters: clusters.cache(), access };
    let runner = Runner::new("bootstrap-machines", machines, options)
        .watches_changes(clusters, move |change: &Change<'_, Cluster>| concerned(change, &known));
    let summary = runner.run(Arc::new(context), reconcile, stop).await;
    tracing::debug!(?summary, "the controller of the hooks of machines has stopped");
}

/// The machines of a cluster that is kept from now on, is no more, or goes.
fn concerned(change: &Change<'_, Cluster>, machines: &Cache<Machine>) -> Vec<Key> {
    let state = |cluster: &Cluster| (is_kept(cluster), cluster.metadata.deletion_timestamp.is_some());
    let Some(cluster) = change.after.or(change.before) else { return Vec::new() };
    if change.before.map(state) == change.after.map(state) {
        return Vec::new();
    }
    let (name, namespace) = (cluster.name_any(), cluster.namespace().unwrap_or_default());
    let all = machines.list_in(&namespace);
    all.iter().filter(|machine| machine.spec.cluster_name == name).map(|machine| Key::of(&**machine)).collect()
}

async fn reconcile(machine: Arc<Machine>, ctx: Ctx<Context>) -> Result<Outcome, Error> {
    let key = Key { namespace: machine.namespace(), name: machine.spec.cluster_name.clone() };
    let cluster = ctx.clusters.get(&key);
    let value = match outlive(&machine, cluster.as_deref()) {
        None => return Ok(Outcome::done()),
        Some(Hook::Set) => json!(windlass_plan::bootstrap::WAITS),
        Some(Hook::Release) => json!(null),
    };
    let annotations = json!({(annotation::OUTLIVES_PACKAGES.name): value});
    let patch = json!({"metadata": {"uid": machine.metadata.uid, "annotations": annotations}});
    let api: Api<Machine> = Api::namespaced(ctx.access.client.clone(), key.namespace.as_deref().unwrap_or_default());
    let name = machine.name_any();
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    match api.patch(&name, &params, &Patch::Merge(&patch)).await {
        Ok(_) => Ok(Outcome::done()),
        // Another one by now, or none: its watch will tell.
        Err(error) if is_conflict(&error) || is_other_object(&error) || is_not_found(&error) => Ok(Outcome::done()),
        Err(error) => {
            let source = WriteError::api("change", format!("Machine {}", Key::of(&*machine)))(error);
            Err(Error::Steps { count: 1, why: "it outlives the packages of its cluster".to_owned(), source })
        }
    }
}
