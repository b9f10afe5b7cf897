//! Why something may not be done now.

mod words;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use windlass_api::name::{AddonName, ClusterName, MachineName, NodeName, ObjectName, PoolName, UpdateId};
use windlass_api::version::KubernetesVersion;

use crate::inventory::Alarm;
use crate::target::ClusterKind;

pub(crate) use words::by_kubectl;

/// The refusal of a gate. `Display` says why in a sentence; [`Blocked::way_out`] says what would open it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason")]
pub enum Blocked {
    /// The workload cluster has no API yet.
    NoWorkloadApi,
    /// The workload cluster did not answer.
    WorkloadUnreachable {
        /// What went wrong.
        why: String,
    },
    /// A package is not at the target, or not well.
    PackageNotReady {
        /// Which.
        addon: AddonName,
        /// What is missing.
        why: String,
    },
    /// The Job of an update is at work.
    ControlPlaneUpdateRunning {
        /// The Job.
        job: ObjectName,
    },
    /// The Job of an update used up its attempts.
    ControlPlaneUpdateFailed {
        /// The cluster.
        cluster: ClusterName,
        /// The Job.
        job: ObjectName,
        /// What it said.
        message: String,
    },
    /// The Job of an update has done its work, and yet a machine is not as it should be.
    ControlPlaneUpdateIncomplete {
        /// The Job.
        job: ObjectName,
        /// The machine.
        machine: MachineName,
    },
    /// The control plane has machines that it was not asked to have, and none is ever removed.
    ControlPlaneTooLarge {
        /// How many there are.
        have: u32,
        /// How many were asked for.
        want: u32,
    },
    /// The cluster had a control plane, and no machine of it is left. A new one would begin with an empty etcd.
    ControlPlaneLost,
    /// The version that was asked for cannot be reached in one update.
    VersionRefused {
        /// Why not.
        why: String,
    },
    /// Something was asked for that belongs to a cluster for as long as it lives.
    FieldRefused {
        /// The kind of the object that asks for it.
        kind: String,
        /// The field.
        field: String,
        /// What it is.
        from: String,
        /// What was asked for.
        to: String,
        /// Why that cannot be.
        why: String,
    },
    /// A template has the name that this update gives it, and is not what this update would make.
    TemplateTaken {
        /// The template, as `Kind/name`.
        template: String,
    },
    /// A machine of the control plane is not well, or not yet.
    ControlPlaneMachineNotReady {
        /// Which.
        machine: MachineName,
        /// What is missing.
        why: String,
    },
    /// A member of etcd is not well.
    EtcdUnhealthy {
        /// Which.
        member: String,
    },
    /// A machine of the control plane is older than the workers would be.
    ControlPlaneBehind {
        /// Which.
        machine: MachineName,
        /// What it has.
        at: KubernetesVersion,
        /// What it needs.
        need: KubernetesVersion,
    },
    /// A certificate is not there.
    CertificateMissing {
        /// The name of its Secret.
        secret: ObjectName,
    },
    /// Somebody paused the cluster.
    Paused {
        /// Who or what says so.
        by: String,
    },
    /// Something could not be observed.
    Gap {
        /// What.
        object: String,
        /// Why not.
        why: String,
    },
    /// The infrastructure that the cluster needs once is not there yet.
    InfrastructureNotReady,
    /// There is no Cluster, and it is not ours to make.
    ClusterAbsent,
    /// Cluster API rolls the control plane.
    ControlPlaneRolling {
        /// The `KubeadmControlPlane`.
        control_plane: ObjectName,
        /// How many of its machines are as they should be.
        up_to_date: u32,
        /// How many there should be.
        replicas: u32,
    },
    /// Cluster API says that the control plane is not well.
    ControlPlaneUnwell {
        /// The `KubeadmControlPlane`.
        control_plane: ObjectName,
        /// What it says.
        why: String,
    },
    /// A machine of the control plane belongs to no `KubeadmControlPlane`. A new one would take it over, or begin another etcd.
    ControlPlaneUnowned {
        /// The machine.
        machine: MachineName,
    },
    /// etcd is not on the machines of the control plane, and it never moves there.
    EtcdElsewhere {
        /// The `KubeadmControlPlane`.
        control_plane: ObjectName,
    },
    /// Cluster API has not done yet what the topology says.
    TopologyPending {
        /// What it says about it.
        why: String,
    },
    /// A pool that the update is for is no longer in the topology.
    PoolAbsent {
        /// Which.
        pool: PoolName,
    },
    /// A pool is being rolled.
    PoolRolling {
        /// Which.
        pool: PoolName,
        /// How many of its machines are as they should be.
        up_to_date: u32,
        /// How many there should be.
        replicas: u32,
    },
    /// A kubelet or kube-proxy is so old that API servers of the target would not know it any more.
    TooOld {
        /// What runs it, as `Kind/name`.
        object: String,
        /// What it has.
        at: KubernetesVersion,
        /// What the API servers are to have.
        to: KubernetesVersion,
    },
    /// A kube-proxy is bound to no distribution: one pod lost on an old node would come back newer than an API server.
    ProxyUnbound {
        /// Its object, as `Kind/name`.
        object: String,
    },
    /// A node would get a kube-proxy that is newer than an API server.
    ProxyAhead {
        /// The node.
        node: NodeName,
        /// What its kube-proxy would have.
        to: KubernetesVersion,
        /// The machine whose API server is older.
        machine: MachineName,
        /// What that has.
        at: KubernetesVersion,
    },
    /// Workers would join a control plane of another minor, or one that is changing.
    JoinsOtherMinor {
        /// What they would have.
        version: KubernetesVersion,
        /// What the control plane is.
        why: String,
    },
    /// etcd cannot go from the version of a member to that of the target in one step.
    EtcdStepRefused {
        /// Which member.
        member: String,
        /// Why not.
        why: String,
    },
    /// etcd could lose its quorum by the change.
    EtcdQuorumAtRisk {
        /// How many would vote.
        voters: usize,
        /// How many of them might not answer.
        unhealthy: usize,
    },
    /// A member of etcd is on its way in, and one change at a time is enough.
    EtcdChanging {
        /// Which.
        member: String,
        /// How far it is.
        why: String,
    },
    /// The member that leads etcd would be removed.
    EtcdLeaderLeaves {
        /// Which.
        member: String,
    },
    /// A member of etcd cannot lead.
    EtcdCannotLead {
        /// Which.
        member: String,
    },
    /// The machine of a member of etcd would be deleted while the member still counts.
    EtcdMemberStays {
        /// The machine.
        machine: MachineName,
        /// Its member.
        member: String,
    },
    /// A member of etcd belongs to no machine.
    EtcdMemberUnknown {
        /// Which.
        member: String,
    },
    /// A machine of the control plane has no member of etcd.
    EtcdMemberMissing {
        /// The machine.
        machine: MachineName,
    },
    /// A member of etcd that has not started may still be that of a machine.
    EtcdMembershipUnknown {
        /// The machine.
        machine: MachineName,
    },
    /// etcd would be left without a voter, or with one that may not answer.
    EtcdLastVoter {
        /// Who would be removed.
        member: String,
    },
    /// etcd raised an alarm.
    EtcdAlarm {
        /// Whose it is.
        member: String,
        /// Which.
        alarm: Alarm,
    },
    /// No machine of the control plane would be left that is well.
    NoWholeNode {
        /// The machine that would go.
        machine: MachineName,
    },
    /// The machine that stays in the place of another is not there, or not well.
    SuccessorNotReady {
        /// The machine that would go.
        machine: MachineName,
        /// What is missing.
        why: String,
    },
    /// A machine carries the mark of another update.
    ForeignAttempt {
        /// Which.
        machine: MachineName,
        /// Whose.
        theirs: UpdateId,
    },
    /// A machine of the update that was taken over was made for another version than this one leads to.
    AttemptOfAnotherVersion {
        /// Which.
        machine: MachineName,
        /// The version that it was made for.
        made: KubernetesVersion,
        /// The update that made it.
        by: UpdateId,
    },
    /// What the running update leads to is not what was agreed on when it began.
    Retargeted {
        /// The record of the update.
        update: ObjectName,
    },
    /// The pods of a worker that is on its way out do not leave it.
    DrainBlocked {
        /// The machine.
        machine: MachineName,
        /// Which pods, and what keeps them.
        why: String,
    },
    /// A worker does not become a node, is not well, or does not go.
    MachineFailed {
        /// The machine.
        machine: MachineName,
        /// What is wrong.
        why: String,
    },
    /// A pool that is being rolled has not moved for long.
    PoolStalled {
        /// Which.
        pool: PoolName,
        /// Since when.
        since: Timestamp,
    },
    /// Machines would be replaced for nothing but what Windlass decides otherwise now, and nobody has agreed to that.
    ConsentNeeded {
        /// The cluster.
        cluster: ClusterName,
        /// What would be agreed to.
        digest: String,
        /// The first thing that is decided otherwise.
        first: String,
        /// How many things are.
        changes: usize,
        /// Whose machines would be replaced.
        roles: Vec<String>,
    },
    /// An update has to be approved before it begins, and is not.
    ApprovalNeeded {
        /// What stands for the cluster.
        kind: ClusterKind,
        /// The cluster.
        cluster: ClusterName,
        /// What would be approved: the envelope.
        digest: String,
        /// Where it leads.
        to: KubernetesVersion,
    },
    /// Somebody who was asked to agree to an update does not want it.
    Rejected {
        /// What stands for the cluster.
        kind: ClusterKind,
        /// The cluster.
        cluster: ClusterName,
        /// What was rejected: the envelope.
        digest: String,
        /// Who did.
        by: String,
        /// Why, if that was said.
        because: String,
    },
    /// The update is being given up.
    Aborting {
        /// The record of the update.
        update: ObjectName,
    },
    /// The Job that gives an update up used up its attempts.
    AbortFailed {
        /// The Job.
        job: ObjectName,
        /// What it said.
        message: String,
    },
    /// Somebody wants the update to be given up, and it cannot be any more.
    AbortTooLate {
        /// The record of the update.
        update: ObjectName,
        /// Why not.
        why: String,
    },
    /// The update to what the cluster is asked to be was given up.
    Aborted {
        /// The record of the update.
        update: ObjectName,
    },
}

impl Blocked {
    /// How long it may be waited for before it is said that waiting will not help; `None` for what is only a matter of time, or
    /// says so itself.
    pub fn patience(&self) -> Option<SignedDuration> {
        // A budget lets a pod go as soon as another one runs elsewhere; the others have been waited for already.
        let drains = matches!(self, Self::DrainBlocked { .. });
        let is_stuck = drains || matches!(self, Self::MachineFailed { .. } | Self::PoolStalled { .. });
        is_stuck.then(|| if drains { SignedDuration::from_mins(5) } else { SignedDuration::ZERO })
    }
}
