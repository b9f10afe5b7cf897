//! The question that a plan answers: where the cluster is on which course.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use windlass_api::kind::cluster_update::UpdateEnd;
use windlass_api::name::{Uid, UpdateId};

use super::{PlanningInput, abort, control_plane, kubeadm_control_plane, observed, release, role, topology, workers};
use crate::change::{self, Effect};
use crate::envelope::Envelope;
use crate::gate::{self, Blocked, Gate, Gates};
use crate::inventory::{ClusterState, Inventory, JobState, Pool, UpdateRecord, UpdateRecordState};
use crate::render::Scope;
use crate::target::{Drive, Target};

/// An input, and what it is about.
pub(crate) struct Case<'a> {
    pub target: &'a Target,
    pub inventory: &'a Inventory,
    pub gates: &'a Gates,
    /// The time, which decides when something has taken too long.
    pub now: Timestamp,
    pub course: Course,
    /// The update that names what is made now.
    pub update: UpdateId,
    /// What the cluster was when that update began; `None` while it is being created.
    pub from: Option<UpdateEnd>,
    /// What the update may do in all.
    pub envelope: Arc<Envelope>,
    /// What keeps the whole cluster as it is, packages included.
    pub forbidden: Vec<Blocked>,
    /// What keeps every machine of the cluster as it is, whatever the stage.
    pub held: Vec<Blocked>,
    /// Why an update does not begin: nobody has asked for it or agreed to it, or it was given up.
    pub pending: Option<Blocked>,
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
    /// As steady as can be: machines would be made otherwise now, for nobody but Windlass, and nobody has agreed to that.
    Pending,
    /// An update failed, and nobody has said yet that it should be tried again.
    Failed,
    /// An update is being given up.
    Aborting,
    /// An update was given up, and what it was for is not begun again by itself.
    GivenUp,
}

impl<'a> Case<'a> {
    pub(crate) fn of(input: &'a PlanningInput) -> Self {
        let PlanningInput { target, inventory, gates, now } = input;
        let creation = UpdateId::new(&target.cluster.uid, 0);
        let last = inventory.update.as_ref();
        let scope = Scope { target, update: last.map_or(creation, |record| record.id) };
        // What would be agreed to, if that is needed.
        let envelope = || Envelope::proposed(target, inventory).digest();
        let (course, pending) = match course(&scope, inventory, *now) {
            course @ (Course::Begin { .. } | Course::GivenUp) => {
                match gates.ask(Gate::Consent, || gate::consent(target, inventory, envelope)) {
                    Some(pending) => (Course::Pending, Some(pending)),
                    None => (course, None),
                }
            }
            course => (course, None),
        };
        let begins = matches!(course, Course::Begin { .. });
        let unapproved = begins.then(|| gates.ask(Gate::Consent, || gate::approval(target, inventory, envelope)));
        let unapproved = unapproved.flatten();
        let pending = pending.or_else(|| unapproved.clone()).or_else(|| given_up(target, inventory));
        let (update, from) = match (course, last) {
            (Course::Begin { ordinal }, _) => {
                (UpdateId::new(&target.cluster.uid, ordinal), beginning(target, inventory))
            }
            (Course::Running | Course::Failed | Course::Resume | Course::Aborting, Some(record)) => {
                (record.id, Some(record.from.clone()))
            }
            _ => (scope.update, observed::end(target, inventory)),
        };
        let envelope = match course {
            Course::Begin { .. } => Envelope::proposed(target, inventory),
            _ => Envelope::of(target, from.as_ref()),
        };
        let envelope = Arc::new(envelope);
        let (forbidden, held) = (Vec::new(), Vec::new());
        let now = *now;
        let mut case = Self { target, inventory, gates, now, course, update, from, envelope, forbidden, held, pending };
        case.forbidden = case.forbids();
        // Its packages come with it.
        case.forbidden.extend(unapproved);
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

    /// The refusals of the gates that forbid any write, and of the rule that nobody can switch off.
    fn forbids(&self) -> Vec<Blocked> {
        let Self { target, inventory, gates, .. } = self;
        let retargeted =
            |record: &UpdateRecord| gates.ask(Gate::NoRetarget, || gate::no_retarget(&self.envelope, record));
        let refusals = [
            gates.ask(Gate::NotPaused, || gate::not_paused(inventory.paused())),
            gates.ask(Gate::VersionPath, || gate::version_path(target, inventory)),
            inventory.update.as_ref().and_then(retargeted),
            change::refused_for_life(target, inventory),
            self.cannot_begin(),
        ];
        refusals.into_iter().flatten().collect()
    }

    /// Refuses to begin an update that would stop half-way: its machines could not be made.
    fn cannot_begin(&self) -> Option<Blocked> {
        let Self { target, inventory, gates, .. } = self;
        let begins = matches!(self.course, Course::Begin { .. });
        // Where Cluster API rolls the machines, it also sees to their certificates.
        if !begins || !self.is_initialized() || target.drive != Drive::Machines {
            return None;
        }
        gates.ask(Gate::CertificatesPresent, || gate::certificates_present(&target.cluster.name, &inventory.secrets))
    }

    /// The refusals of the gates that hold every machine of the cluster, and of the rule that nobody can switch off.
    fn holds(&self) -> Vec<Blocked> {
        let name = &self.target.cluster.name;
        let failed =
            self.gates.ask(Gate::OneControlPlaneUpdate, || gate::one_control_plane_update(name, self.inventory));
        let failed = failed.filter(|blocked| matches!(blocked, Blocked::ControlPlaneUpdateFailed { .. }));
        let more = [
            self.gates.ask(Gate::NoGaps, || gate::no_gaps(self.inventory)),
            self.too_large(),
            failed,
            self.gates.ask(Gate::PoolMoves, || gate::pool_moves(self.inventory, self.now)),
            given_up(self.target, self.inventory).filter(|_| self.course == Course::GivenUp),
        ];
        self.forbidden.iter().cloned().chain(more.into_iter().flatten()).collect()
    }

    /// Whether machines may be made otherwise than they are.
    pub(crate) fn may_replace(&self) -> bool {
        self.course != Course::Pending
    }

    /// Whether machines will join the control plane before the target is reached.
    pub(crate) fn joins_are_coming(&self) -> bool {
        let scope = self.scope();
        match self.target.drive {
            Drive::Machines => {
                control_plane::differs(&scope, self.inventory)
                    || control_plane::missing(&scope, self.inventory).any(|ordinal| ordinal > 0)
            }
            Drive::KubeadmControlPlane => kubeadm_control_plane::joins_are_coming(&scope, self.inventory),
            Drive::Topology => topology::joins_are_coming(&scope, self.inventory),
        }
    }

    /// Whether every machine is what it should be, so that none of another distribution can still join.
    pub(crate) fn is_settled(&self) -> bool {
        let scope = self.scope();
        let pools = || self.target.pools.iter().all(|pool| workers::is_rolled(&scope, pool, self.inventory));
        if !self.may_replace() {
            return self.inventory.gaps.is_empty() && self.rests_as_it_is();
        }
        self.inventory.gaps.is_empty()
            && match self.target.drive {
                Drive::Machines => {
                    !control_plane::differs(&scope, self.inventory)
                        && control_plane::missing(&scope, self.inventory).next().is_none()
                        && pools()
                }
                Drive::KubeadmControlPlane => kubeadm_control_plane::is_rolled(&scope, self.inventory) && pools(),
                Drive::Topology => topology::is_settled(self),
            }
    }

    /// Whether nothing is on its way, of machines that stay as they are for now.
    fn rests_as_it_is(&self) -> bool {
        control_plane::missing(&self.scope(), self.inventory).next().is_none()
            && self.inventory.pools.values().all(Pool::is_at_rest)
    }

    /// Refuses to go on while the control plane is larger than it should be: no machine of it is ever removed.
    fn too_large(&self) -> Option<Blocked> {
        let want = self.target.control_plane.count;
        let have = match self.target.drive {
            Drive::Machines => return control_plane::too_large(&self.scope(), self.inventory),
            Drive::KubeadmControlPlane => self.inventory.control_plane.kubeadm.as_ref().map(|it| it.replicas),
            Drive::Topology => topology::replicas(self.inventory),
        };
        have.filter(|have| *have > want).map(|have| Blocked::ControlPlaneTooLarge { have, want })
    }
}

impl Envelope {
    /// What an update might do that began now.
    pub fn proposed(target: &Target, inventory: &Inventory) -> Self {
        let from = beginning(target, inventory);
        // Where objects are their owner's, all that counts of the beginning is what is replaced, and those objects say that: also
        // while nobody can look into the cluster.
        let said = || target.fields.is_some().then(|| with_outdated(UpdateEnd::default(), target, inventory));
        Self::of(target, from.or_else(said).as_ref())
    }
}

/// What the cluster is now, with what has to be replaced of it.
fn beginning(target: &Target, inventory: &Inventory) -> Option<UpdateEnd> {
    observed::end(target, inventory).map(|end| with_outdated(end, target, inventory))
}

/// Whether something has to be put on record: that makes an update.
fn differs(scope: &Scope<'_>, inventory: &Inventory) -> bool {
    is_replaced(scope, inventory) || has_to_be_approved(scope, inventory)
}

/// Whether a release has to be approved that replaces nothing. Without that it would just be there: what nobody has to agree to needs
/// no record of who did. What makes a cluster in the first place is no update.
fn has_to_be_approved(scope: &Scope<'_>, inventory: &Inventory) -> bool {
    let Scope { target, .. } = scope;
    let is_made = matches!(inventory.cluster, ClusterState::Present { initialized: true, .. });
    let is_other = inventory.deployed.as_ref() != Some(&target.release.distribution);
    inventory.orders.approval.is_required
        && target.fields.is_some()
        && is_made
        && is_other
        && change::classify(target, inventory).kind != change::Kind::Nothing
}

/// Whether machines have to be replaced.
fn is_replaced(scope: &Scope<'_>, inventory: &Inventory) -> bool {
    match scope.target.drive {
        Drive::Machines => control_plane::differs(scope, inventory) || workers::differs(scope, inventory),
        Drive::KubeadmControlPlane => {
            kubeadm_control_plane::differs(scope, inventory) || workers::differs(scope, inventory)
        }
        Drive::Topology => topology::differs(scope, inventory),
    }
}

fn course(scope: &Scope<'_>, inventory: &Inventory, now: Timestamp) -> Course {
    let differs = differs(scope, inventory) || release::differs(scope, inventory);
    let Some(last) = &inventory.update else {
        return if differs { Course::Begin { ordinal: 1 } } else { Course::Steady };
    };
    let next = Course::Begin { ordinal: last.ordinal.saturating_add(1) };
    let job = inventory.control_plane.job.as_ref();
    // Of the two, the pool may move again by itself.
    let gave_up = job.is_some_and(|job| matches!(job.state, JobState::Failed { .. }))
        || inventory.pools.values().any(|pool| gate::gave_up(pool, now).is_some());
    let is_ordered = inventory.orders.abort.is_some();
    let can_be_given_up = || is_ordered && abort::too_late(scope, inventory, last).is_none();
    match last.state {
        UpdateRecordState::Running | UpdateRecordState::Failed if can_be_given_up() => Course::Aborting,
        UpdateRecordState::Aborted if !differs => Course::Steady,
        UpdateRecordState::Aborted if given_up(scope.target, inventory).is_some() => Course::GivenUp,
        UpdateRecordState::Aborted => next,
        UpdateRecordState::Running => Course::Running,
        UpdateRecordState::Failed if gave_up => Course::Failed,
        // Also where nothing differs any more: an update ends with its success, and not by being forgotten. A target that is
        // not what was agreed on is another update.
        UpdateRecordState::Failed if is_same_update(scope.target, last) => Course::Resume,
        UpdateRecordState::Succeeded | UpdateRecordState::Failed if differs => next,
        UpdateRecordState::Succeeded | UpdateRecordState::Failed => Course::Steady,
    }
}

/// What has to be replaced although the ends are alike in all that they say: it is agreed on with them.
fn with_outdated(mut end: UpdateEnd, target: &Target, inventory: &Inventory) -> UpdateEnd {
    let mut foreseen = Envelope::of(target, Some(&end)).replaced;
    // Where Cluster API rolls it, the control plane is one thing.
    if foreseen.iter().any(|role| role.starts_with(role::CONTROL_PLANE)) {
        foreseen.insert(role::CONTROL_PLANE.to_owned());
    }
    let changes = change::classify(target, inventory).changes.into_iter();
    let replaced = changes.filter(|change| change.effect == Effect::Replaces).map(|change| change.role);
    let outdated: BTreeSet<String> = replaced.filter(|role| !foreseen.contains(role)).collect();
    end.outdated = outdated.into_iter().collect();
    end
}

/// That the cluster is still asked to be what somebody had given up, and kept as it was.
fn given_up(target: &Target, inventory: &Inventory) -> Option<Blocked> {
    inventory.orders.abort.as_ref()?;
    let record = inventory.update.as_ref().filter(|record| record.state == UpdateRecordState::Aborted)?;
    is_back(target, record).then(|| Blocked::Aborted { update: record.name.clone() })
}

/// Whether a target is what the cluster was when an update began, but for what Windlass decides.
fn is_back(target: &Target, record: &UpdateRecord) -> bool {
    let without = |end: UpdateEnd| UpdateEnd { outdated: Vec::new(), defaults: BTreeMap::new(), release: None, ..end };
    without(target.end()) == without(record.from.clone())
}

fn is_same_update(target: &Target, record: &UpdateRecord) -> bool {
    Envelope::of(target, Some(&record.from)).digest() == record.envelope_digest
}
