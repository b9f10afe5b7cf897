//! Why something may not be done now.

use std::fmt;

use serde::Serialize;
use windlass_api::name::{AddonName, MachineName, ObjectName, PoolName};
use windlass_api::version::KubernetesVersion;

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
    /// A pool is being rolled.
    PoolRolling {
        /// Which.
        pool: PoolName,
        /// How many of its machines are as they should be.
        up_to_date: u32,
        /// How many there should be.
        replicas: u32,
    },
}

impl Blocked {
    /// The refusal in one word, the same everywhere.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoWorkloadApi => "NoWorkloadApi",
            Self::WorkloadUnreachable { .. } => "WorkloadUnreachable",
            Self::PackageNotReady { .. } => "PackageNotReady",
            Self::ControlPlaneUpdateRunning { .. } => "ControlPlaneUpdateRunning",
            Self::ControlPlaneUpdateFailed { .. } => "ControlPlaneUpdateFailed",
            Self::ControlPlaneUpdateIncomplete { .. } => "ControlPlaneUpdateIncomplete",
            Self::ControlPlaneTooLarge { .. } => "ControlPlaneTooLarge",
            Self::ControlPlaneLost => "ControlPlaneLost",
            Self::VersionRefused { .. } => "VersionRefused",
            Self::TemplateTaken { .. } => "TemplateTaken",
            Self::ControlPlaneMachineNotReady { .. } => "ControlPlaneMachineNotReady",
            Self::EtcdUnhealthy { .. } => "EtcdUnhealthy",
            Self::ControlPlaneBehind { .. } => "ControlPlaneBehind",
            Self::CertificateMissing { .. } => "CertificateMissing",
            Self::Paused { .. } => "Paused",
            Self::Gap { .. } => "Gap",
            Self::InfrastructureNotReady => "InfrastructureNotReady",
            Self::PoolRolling { .. } => "PoolRolling",
        }
    }

    /// The object that it is about, as `Kind/name`, or only `Kind` where the cluster has one.
    pub fn object(&self) -> String {
        match self {
            Self::NoWorkloadApi | Self::WorkloadUnreachable { .. } | Self::Paused { .. } => "Cluster".to_owned(),
            Self::ControlPlaneTooLarge { .. } | Self::ControlPlaneLost | Self::VersionRefused { .. } => {
                "TanzuKubernetesCluster".to_owned()
            }
            Self::PackageNotReady { addon, .. } => format!("Addon/{addon}"),
            Self::ControlPlaneUpdateRunning { job }
            | Self::ControlPlaneUpdateFailed { job, .. }
            | Self::ControlPlaneUpdateIncomplete { job, .. } => format!("Job/{job}"),
            Self::TemplateTaken { template } => template.clone(),
            Self::ControlPlaneMachineNotReady { machine, .. } | Self::ControlPlaneBehind { machine, .. } => {
                format!("Machine/{machine}")
            }
            Self::EtcdUnhealthy { member } => format!("Member/{member}"),
            Self::CertificateMissing { secret } => format!("Secret/{secret}"),
            Self::Gap { object, .. } => object.clone(),
            Self::InfrastructureNotReady => "WCPCluster".to_owned(),
            Self::PoolRolling { pool, .. } => format!("Pool/{pool}"),
        }
    }

    /// The next thing that a person can do about it, or `wait`.
    pub fn way_out(&self) -> String {
        match self {
            Self::NoWorkloadApi
            | Self::ControlPlaneUpdateRunning { .. }
            | Self::ControlPlaneBehind { .. }
            | Self::InfrastructureNotReady
            | Self::PoolRolling { .. } => "wait".to_owned(),
            Self::WorkloadUnreachable { .. } => {
                "wait; if it lasts, look at the machines of the control plane".to_owned()
            }
            Self::PackageNotReady { addon, .. } => {
                format!("wait; if it lasts, look at the pods of the add-on {addon} in the workload cluster")
            }
            Self::ControlPlaneUpdateFailed { job, .. } => {
                format!("read the logs of its pods, repair what they name, then delete Job {job} to try again")
            }
            Self::ControlPlaneUpdateIncomplete { job, .. } => format!("delete Job {job} to run it again"),
            Self::ControlPlaneTooLarge { have, .. } => format!("set spec.topology.controlPlane.count back to {have}"),
            Self::ControlPlaneLost => "restore the cluster from a backup, or delete it and create it again".to_owned(),
            Self::VersionRefused { .. } => "ask for another version".to_owned(),
            Self::TemplateTaken { template } => format!("delete {template}"),
            Self::ControlPlaneMachineNotReady { machine, .. } => {
                format!("wait; if it lasts, look at Machine {machine} and its conditions")
            }
            Self::EtcdUnhealthy { member } => format!("wait; if it lasts, look at the pod etcd-{member}"),
            Self::CertificateMissing { secret } => {
                format!("restore Secret {secret} from a backup or from a machine's disk; a new one would not fit")
            }
            Self::Paused { .. } => "unpause the cluster".to_owned(),
            Self::Gap { object, .. } => format!("wait; if it lasts, see why {object} cannot be read"),
        }
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoWorkloadApi => write!(f, "the workload cluster has no API yet"),
            Self::WorkloadUnreachable { why } => write!(f, "the workload cluster does not answer: {why}"),
            Self::PackageNotReady { addon, why } => write!(f, "the add-on {addon} is not ready: {why}"),
            Self::ControlPlaneUpdateRunning { job } => write!(f, "Job {job} is replacing the control plane"),
            Self::ControlPlaneUpdateFailed { job, message } => {
                write!(f, "Job {job} gave up replacing the control plane: {message}")
            }
            Self::ControlPlaneUpdateIncomplete { job, machine } => {
                write!(f, "Job {job} has completed, and Machine {machine} is still not as it should be")
            }
            Self::ControlPlaneTooLarge { have, want } => write!(
                f,
                "the control plane has {have} machines and should have {want}; machines of a control plane are never removed"
            ),
            Self::ControlPlaneLost => write!(
                f,
                "no machine of the control plane is left; a new one would begin with an empty etcd, so none is made"
            ),
            Self::VersionRefused { why } => f.write_str(why),
            Self::TemplateTaken { template } => {
                write!(f, "{template} has the name that this update gives it, and is not what it would make")
            }
            Self::ControlPlaneMachineNotReady { machine, why } => write!(f, "Machine {machine} is not ready: {why}"),
            Self::EtcdUnhealthy { member } if member.is_empty() => {
                write!(f, "a member of etcd has been added and has not started")
            }
            Self::EtcdUnhealthy { member } => write!(f, "the member {member} of etcd is not healthy"),
            Self::ControlPlaneBehind { machine, at, need } => {
                write!(f, "Machine {machine} of the control plane has {at}, and workers are to have {need}")
            }
            Self::CertificateMissing { secret } => write!(f, "Secret {secret} is missing"),
            Self::Paused { by } => write!(f, "the cluster is paused: {by}"),
            Self::Gap { object, why } => write!(f, "{object} could not be observed: {why}"),
            Self::InfrastructureNotReady => write!(f, "the infrastructure of the cluster is not ready yet"),
            Self::PoolRolling { pool, up_to_date, replicas } if up_to_date >= replicas => {
                write!(f, "all machines of the pool {pool} are as they should be, and others are still to leave")
            }
            Self::PoolRolling { pool, up_to_date, replicas } => {
                write!(f, "{up_to_date} of {replicas} machines of the pool {pool} are as they should be")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(blocked: &Blocked, [reason, object, sentence, way_out]: [&str; 4]) {
        assert_eq!(
            [blocked.reason(), &blocked.object(), &blocked.to_string(), &blocked.way_out()],
            [reason, object, sentence, way_out]
        );
        let wire = serde_json::to_value(blocked).unwrap();
        assert_eq!(wire["reason"], reason, "the word is the same on the wire");
    }

    #[test]
    fn a_refusal_names_its_object_and_the_way_out() {
        let job = ObjectName::new("update-7").unwrap();
        let machine = MachineName::new("cp-0").unwrap();
        check(
            &Blocked::ControlPlaneUpdateFailed { job, message: "timed out".to_owned() },
            [
                "ControlPlaneUpdateFailed",
                "Job/update-7",
                "Job update-7 gave up replacing the control plane: timed out",
                "read the logs of its pods, repair what they name, then delete Job update-7 to try again",
            ],
        );
        let [at, need] = ["v1.15.5", "v1.16.7"].map(|text| text.parse().unwrap());
        check(
            &Blocked::ControlPlaneBehind { machine, at, need },
            [
                "ControlPlaneBehind",
                "Machine/cp-0",
                "Machine cp-0 of the control plane has v1.15.5, and workers are to have v1.16.7",
                "wait",
            ],
        );
        check(&Blocked::NoWorkloadApi, ["NoWorkloadApi", "Cluster", "the workload cluster has no API yet", "wait"]);
    }
}
