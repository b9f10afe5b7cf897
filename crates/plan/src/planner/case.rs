//! The question that a plan answers: where the cluster is on which course.

use windlass_api::kind::cluster_update::UpdateEnd;
use windlass_api::kind::tanzu::Machines;
use windlass_api::name::{Uid, UpdateId};

use super::{PlanningInput, control_plane, workers};
use crate::envelope::Envelope;
use crate::gate::{self, Blocked, Gate, Gates};
use crate::inventory::{ClusterState, Inventory, JobState, Pool, UpdateRecord, UpdateRecordState};
use crate::render::Scope;
use crate::resolve;
use crate::target::Target;

/// An input, and what it is about.
pub(crate) struct Case<'a> {
    pub target: &'a Target,
    pub inventory: &'a Inventory,
    pub gates: &'a Gates,
    pub course: Course,
    /// The update that names what is made now.
    pub update: UpdateId,
    /// What the cluster was when that update began; `None` while it is being created.
    pub from: Option<UpdateEnd>,
    /// What keeps every machine of the cluster as it is, whatever the stage.
    pub held: Vec<Blocked>,
}

/// What a cluster is in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Course {
    /// No update: it is being created, or it is as it was asked to be and is kept so.
    Steady,
    /// What is there differs from what it should be: an update has to be put on record before anything is done.
    Begin {
        /// Which update it will be.
        ordinal: u64,
    },
    /// The update that failed is to be tried again.
    Resume,
    /// An update runs.
    Running,
    /// An update failed, and nobody has said yet that it should be tried again.
    Failed,
}

impl<'a> Case<'a> {
    pub(crate) fn of(input: &'a PlanningInput) -> Self {
        let PlanningInput { target, inventory, gates, .. } = input;
        let creation = UpdateId::new(&target.cluster.uid, 0);
        let last = inventory.update.as_ref();
        let scope = Scope { target, update: last.map_or(creation, |record| record.id) };
        let course = course(&scope, inventory);
        let (update, from) = match (course, last) {
            (Course::Begin { ordinal }, _) => (UpdateId::new(&target.cluster.uid, ordinal), observed_end(inventory)),
            (Course::Running | Course::Failed | Course::Resume, Some(record)) => (record.id, Some(record.from.clone())),
            _ => (scope.update, observed_end(inventory)),
        };
        let mut case = Self { target, inventory, gates, course, update, from, held: Vec::new() };
        case.held = case.holds();
        case
    }

    /// What objects are rendered for.
    pub(crate) fn scope(&self) -> Scope<'a> {
        Scope { target: self.target, update: self.update }
    }

    /// The Cluster, if it is there.
    pub(crate) fn cluster_uid(&self) -> Option<&'a Uid> {
        match &self.inventory.cluster {
            ClusterState::Absent => None,
            ClusterState::Present { uid, .. } => Some(uid),
        }
    }

    /// Whether its API has ever answered.
    pub(crate) fn is_initialized(&self) -> bool {
        matches!(self.inventory.cluster, ClusterState::Present { initialized: true, .. })
    }

    /// The refusals of the gates that hold every machine of the cluster, and of the rules that nobody can switch off.
    fn holds(&self) -> Vec<Blocked> {
        let failed = self.gates.ask(Gate::OneControlPlaneUpdate, || gate::one_control_plane_update(self.inventory));
        let failed = failed.filter(|blocked| matches!(blocked, Blocked::ControlPlaneUpdateFailed { .. }));
        [
            self.gates.ask(Gate::NotPaused, || gate::not_paused(self.inventory)),
            self.gates.ask(Gate::NoGaps, || gate::no_gaps(self.inventory)),
            self.version_refused(),
            control_plane::too_large(&self.scope(), self.inventory),
            failed,
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Whether machines will join the control plane before the target is reached.
    pub(crate) fn joins_are_coming(&self) -> bool {
        let scope = self.scope();
        control_plane::differs(&scope, self.inventory)
            || control_plane::missing(&scope, self.inventory).any(|ordinal| ordinal > 0)
    }

    /// Whether something in the cluster has a version from which the target cannot be reached. Admission refuses this before
    /// it is stored; whoever got past it is refused here.
    pub(crate) fn version_refused(&self) -> Option<Blocked> {
        let release = &self.target.release;
        let machines = self.inventory.control_plane.machines.iter().map(|machine| &machine.version);
        let pools = self.inventory.pools.values().map(|pool| &pool.version);
        let nodes = self.inventory.reachable().map(|workload| workload.nodes).unwrap_or_default();
        let distributions = nodes.iter().filter_map(|node| node.distribution.as_ref());
        let refusal = machines
            .chain(pools)
            .map(|from| resolve::change(from, &release.kubernetes))
            .chain(distributions.map(|from| resolve::change(from, &release.distribution)))
            .find_map(Result::err)?;
        Some(Blocked::VersionRefused { why: refusal.to_string() })
    }
}

fn course(scope: &Scope<'_>, inventory: &Inventory) -> Course {
    let differs = control_plane::differs(scope, inventory) || workers::differs(scope, inventory);
    let Some(last) = &inventory.update else {
        return if differs { Course::Begin { ordinal: 1 } } else { Course::Steady };
    };
    let next = Course::Begin { ordinal: last.ordinal.saturating_add(1) };
    let gave_up = inventory.control_plane.job.as_ref().is_some_and(|job| matches!(job.state, JobState::Failed { .. }));
    match last.state {
        UpdateRecordState::Running => Course::Running,
        UpdateRecordState::Failed if gave_up => Course::Failed,
        // Also where nothing differs any more: an update ends with its success, and not by being forgotten. A target that is
        // not what was agreed on is another update.
        UpdateRecordState::Failed if is_same_update(scope.target, last) => Course::Resume,
        UpdateRecordState::Succeeded | UpdateRecordState::Failed if differs => next,
        UpdateRecordState::Succeeded | UpdateRecordState::Failed => Course::Steady,
    }
}

fn is_same_update(target: &Target, record: &UpdateRecord) -> bool {
    Envelope::of(target, Some(&record.from)).digest() == record.envelope_digest
}

/// What the cluster is now, as one end of an update; `None` while it cannot be told. Where machines differ it is the oldest.
fn observed_end(inventory: &Inventory) -> Option<UpdateEnd> {
    let workload = inventory.reachable()?;
    let distribution = workload.nodes.iter().filter_map(|node| node.distribution.as_ref()).min()?;
    let machines = &inventory.control_plane.machines;
    let oldest = machines.iter().min_by_key(|machine| &machine.version)?;
    let versions = machines.iter().map(|machine| &machine.version);
    let kubernetes = versions.chain(inventory.pools.values().map(|pool| &pool.version)).min()?;
    let text = |name: Option<&str>| name.unwrap_or_default().to_owned();
    Some(UpdateEnd {
        distribution: distribution.to_string(),
        kubernetes: kubernetes.to_string(),
        control_plane: Machines {
            count: control_plane::rows(machines),
            class: text(oldest.class.as_ref().map(AsRef::as_ref)),
            storage_class: text(oldest.storage_class.as_ref().map(AsRef::as_ref)),
        },
        workers: inventory.pools.values().next().map(observed_workers).unwrap_or_default(),
    })
}

fn observed_workers(pool: &Pool) -> Machines {
    let field = |name: &str| {
        let spec = pool.infrastructure_template.spec.as_ref();
        spec.and_then(|spec| spec[name].as_str()).unwrap_or_default().to_owned()
    };
    Machines { count: pool.replicas, class: field("className"), storage_class: field("storageClass") }
}
