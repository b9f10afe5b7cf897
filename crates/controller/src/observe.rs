//! The only reader: fills an [`Inventory`] from the caches, the management cluster and the workload cluster.
//!
//! What cannot be read is a gap, and never something that is silently missing. No Secret's data is read, except the kubeconfig
//! that is needed to talk to the workload cluster.

pub(crate) mod attempts;
pub(crate) mod earlier;
pub(crate) mod management;
pub(crate) mod orders;
pub(crate) mod secrets;
pub(crate) mod workload;

use std::ops::Deref;

use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::{ClusterName, Namespace, NamespacedName, ObjectName};
use windlass_plan::inventory::{ClusterState, Gap, Inventory, Machine, Pool, Workload};
use windlass_plan::target::Target;
use windlass_runtime::key::Key;

use crate::access::WorkloadCluster;
use crate::reconcile::context::Context;
use crate::resolve;

/// What was observed, and the way to the workload cluster that it was observed through.
pub(crate) struct Observed {
    pub inventory: Inventory,
    pub workload: Option<WorkloadCluster>,
}

/// Which cluster is observed: the same thing as the objects, the caches and people call it.
pub(crate) struct Subject<'a> {
    pub tkc: &'a TanzuKubernetesCluster,
    which: Which<'a>,
}

/// A cluster of whichever sort, by its names.
pub(crate) struct Which<'a> {
    pub namespace: &'a Namespace,
    pub name: &'a ClusterName,
    pub key: Key,
}

impl<'a> Deref for Subject<'a> {
    type Target = Which<'a>;

    fn deref(&self) -> &Which<'a> {
        &self.which
    }
}

impl<'a> Subject<'a> {
    pub(crate) fn new(tkc: &'a TanzuKubernetesCluster, target: &'a Target) -> Self {
        Self { tkc, which: Which::of(target) }
    }
}

impl<'a> Which<'a> {
    pub(crate) fn of(target: &'a Target) -> Self {
        let (namespace, name) = (&target.cluster.namespace, &target.cluster.name);
        Self { namespace, name, key: Key::namespaced(namespace.as_str(), name.as_str()) }
    }

    pub(crate) fn namespaced_name(&self) -> NamespacedName {
        NamespacedName { namespace: self.namespace.clone(), name: ObjectName::from(self.name.clone()) }
    }
}

/// What could not be observed so far.
#[derive(Default)]
pub(crate) struct Gaps(pub(crate) Vec<Gap>);

impl Gaps {
    pub(crate) fn note(&mut self, object: impl Into<String>, why: impl Into<String>) {
        self.0.push(Gap { object: object.into(), why: why.into() });
    }

    /// All of them, in words.
    pub(crate) fn told(&self) -> String {
        let told: Vec<String> = self.0.iter().map(|gap| gap.why.clone()).collect();
        told.join("; ")
    }

    /// The value, or a gap in its place.
    pub(crate) fn take<T, E: ToString>(&mut self, object: &str, value: Result<T, E>) -> Option<T> {
        value.map_err(|why| self.note(object, why.to_string())).ok()
    }
}

/// What can be observed of a cluster that is to be this.
pub(crate) async fn inventory(ctx: &Context, tkc: &TanzuKubernetesCluster, target: &Target) -> Observed {
    let subject = Subject::new(tkc, target);
    let mut gaps = Gaps::default();
    management::unreadable(ctx, &subject, &mut gaps);

    let cluster = management::cluster(ctx, &subject, &mut gaps);
    let update = management::update(ctx, &subject, &mut gaps);
    let machines = management::machines(ctx, &subject, &mut gaps).await;
    let job = match &update {
        Some(update) => management::job(ctx, &subject, update).await,
        None => None,
    };
    let earlier_jobs =
        update.as_ref().map(|update| earlier::jobs(ctx, &target.cluster.uid, update)).unwrap_or_default();
    let mut orders = orders::find(ctx, &subject, update.as_ref(), &mut gaps).await;
    orders.approval = orders::approval(&tkc.metadata);
    let pools = management::pools(ctx, &subject, target, update.as_ref(), &mut gaps).await;
    let secrets = match &cluster {
        ClusterState::Absent => secrets::Found::default(),
        ClusterState::Present { uid, .. } => secrets::find(ctx, &subject, &[uid.to_string()].into(), &mut gaps).await,
    };
    let (mut workload, connection) = match &cluster {
        ClusterState::Present { initialized: true, .. } => {
            workload::observe(ctx, &subject, target, secrets.kubeconfig.as_deref(), &mut gaps).await
        }
        ClusterState::Present { .. } | ClusterState::Absent => (Workload::NotYet, None),
    };
    know_by_machines(&mut workload, &machines);
    let releases = resolve::kept::observe(ctx, tkc, target);
    let is_over = update.as_ref().is_none_or(|update| update.state.is_over());
    let earlier_templates = match &cluster {
        ClusterState::Present { uid, .. } if is_over && pools.values().all(Pool::is_at_rest) => {
            earlier::templates(ctx, &subject, uid).await
        }
        ClusterState::Present { .. } | ClusterState::Absent => Vec::new(),
    };
    let inventory = Inventory {
        as_of: ctx.access.clock.now(),
        cluster,
        secrets: secrets.present,
        control_plane: windlass_plan::inventory::ControlPlane { machines, job, earlier_jobs, kubeadm: None },
        pools,
        topology: None,
        workload,
        update,
        orders,
        gaps: gaps.0,
        consent: orders::consent(&tkc.metadata),
        releases,
        earlier_templates,
        deployed: None,
    };
    Observed { inventory, workload: connection }
}

/// A node is one of the control plane also by its machine: the label of its role comes only after it has registered, and may
/// never come.
pub(crate) fn know_by_machines(workload: &mut Workload, machines: &[Machine]) {
    let Workload::Reachable { nodes, .. } = workload else { return };
    for node in nodes {
        node.control_plane |= machines.iter().any(|machine| machine.node() == node.name.as_str());
    }
}
