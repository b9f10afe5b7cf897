//! The words of refusals: in one word, about which object, in a sentence, and what a person can do.

use std::fmt;

use windlass_api::name::{ClusterName, MachineName};
use windlass_api::{annotation, label};

use super::Blocked;
use crate::render::job::NAMESPACE;
use crate::target::ClusterKind;

/// What stands before the digest in the way out of a refusal that asks for somebody's agreement.
const AGREEMENT: char = '=';

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
            Self::FieldRefused { .. } => "FieldRefused",
            Self::TemplateTaken { .. } => "TemplateTaken",
            Self::ControlPlaneMachineNotReady { .. } => "ControlPlaneMachineNotReady",
            Self::EtcdUnhealthy { .. } => "EtcdUnhealthy",
            Self::ControlPlaneBehind { .. } => "ControlPlaneBehind",
            Self::CertificateMissing { .. } => "CertificateMissing",
            Self::Paused { .. } => "Paused",
            Self::Gap { .. } => "Gap",
            Self::InfrastructureNotReady => "InfrastructureNotReady",
            Self::ClusterAbsent => "ClusterAbsent",
            Self::ControlPlaneRolling { .. } => "ControlPlaneRolling",
            Self::ControlPlaneUnwell { .. } => "ControlPlaneUnwell",
            Self::ControlPlaneUnowned { .. } => "ControlPlaneUnowned",
            Self::EtcdElsewhere { .. } => "EtcdElsewhere",
            Self::TopologyPending { .. } => "TopologyPending",
            Self::PoolAbsent { .. } => "PoolAbsent",
            Self::PoolRolling { .. } => "PoolRolling",
            Self::TooOld { .. } => "TooOld",
            Self::ProxyUnbound { .. } => "ProxyUnbound",
            Self::ProxyAhead { .. } => "ProxyAhead",
            Self::JoinsOtherMinor { .. } => "JoinsOtherMinor",
            Self::EtcdStepRefused { .. } => "EtcdStepRefused",
            Self::EtcdQuorumAtRisk { .. } => "EtcdQuorumAtRisk",
            Self::EtcdChanging { .. } => "EtcdChanging",
            Self::EtcdLeaderLeaves { .. } => "EtcdLeaderLeaves",
            Self::EtcdCannotLead { .. } => "EtcdCannotLead",
            Self::EtcdMemberStays { .. } => "EtcdMemberStays",
            Self::EtcdMemberUnknown { .. } => "EtcdMemberUnknown",
            Self::EtcdMemberMissing { .. } => "EtcdMemberMissing",
            Self::EtcdMembershipUnknown { .. } => "EtcdMembershipUnknown",
            Self::EtcdLastVoter { .. } => "EtcdLastVoter",
            Self::EtcdAlarm { .. } => "EtcdAlarm",
            Self::NoWholeNode { .. } => "NoWholeNode",
            Self::SuccessorNotReady { .. } => "SuccessorNotReady",
            Self::ForeignAttempt { .. } => "ForeignAttempt",
            Self::AttemptOfAnotherVersion { .. } => "AttemptOfAnotherVersion",
            Self::Retargeted { .. } => "Retargeted",
            Self::DrainBlocked { .. } => "DrainBlocked",
            Self::MachineFailed { .. } => "MachineFailed",
            Self::PoolStalled { .. } => "PoolStalled",
            Self::ConsentNeeded { .. } => "ConsentNeeded",
            Self::ApprovalNeeded { .. } => "ApprovalNeeded",
            Self::Rejected { .. } => "Rejected",
            Self::Aborting { .. } => "Aborting",
            Self::AbortFailed { .. } => "AbortFailed",
            Self::AbortTooLate { .. } => "AbortTooLate",
            Self::Aborted { .. } => "Aborted",
        }
    }

    /// The object that it is about, as `Kind/name`, or only `Kind` where the cluster has one.
    pub fn object(&self) -> String {
        match self {
            Self::NoWorkloadApi
            | Self::WorkloadUnreachable { .. }
            | Self::Paused { .. }
            | Self::ClusterAbsent
            | Self::TopologyPending { .. } => "Cluster".to_owned(),
            Self::ControlPlaneRolling { control_plane, .. }
            | Self::ControlPlaneUnwell { control_plane, .. }
            | Self::EtcdElsewhere { control_plane } => format!("KubeadmControlPlane/{control_plane}"),
            Self::ControlPlaneTooLarge { .. } | Self::ControlPlaneLost | Self::VersionRefused { .. } => {
                "TanzuKubernetesCluster".to_owned()
            }
            Self::PackageNotReady { addon, .. } => format!("Addon/{addon}"),
            Self::ControlPlaneUpdateRunning { job }
            | Self::ControlPlaneUpdateFailed { job, .. }
            | Self::ControlPlaneUpdateIncomplete { job, .. }
            | Self::AbortFailed { job, .. } => format!("Job/{job}"),
            Self::FieldRefused { kind, .. } => kind.clone(),
            Self::TemplateTaken { template } => template.clone(),
            Self::ControlPlaneMachineNotReady { machine, .. }
            | Self::ControlPlaneBehind { machine, .. }
            | Self::EtcdMemberMissing { machine }
            | Self::EtcdMembershipUnknown { machine }
            | Self::EtcdMemberStays { machine, .. }
            | Self::NoWholeNode { machine }
            | Self::SuccessorNotReady { machine, .. }
            | Self::ForeignAttempt { machine, .. }
            | Self::AttemptOfAnotherVersion { machine, .. }
            | Self::ControlPlaneUnowned { machine }
            | Self::DrainBlocked { machine, .. }
            | Self::MachineFailed { machine, .. } => format!("Machine/{machine}"),
            Self::EtcdUnhealthy { member }
            | Self::EtcdStepRefused { member, .. }
            | Self::EtcdChanging { member, .. }
            | Self::EtcdLeaderLeaves { member }
            | Self::EtcdCannotLead { member }
            | Self::EtcdMemberUnknown { member }
            | Self::EtcdLastVoter { member }
            | Self::EtcdAlarm { member, .. } => format!("Member/{member}"),
            Self::CertificateMissing { secret } => format!("Secret/{secret}"),
            Self::Gap { object, .. } | Self::TooOld { object, .. } | Self::ProxyUnbound { object } => object.clone(),
            Self::InfrastructureNotReady => "WCPCluster".to_owned(),
            Self::PoolRolling { pool, .. } | Self::PoolAbsent { pool } | Self::PoolStalled { pool, .. } => {
                format!("Pool/{pool}")
            }
            Self::ProxyAhead { node, .. } => format!("Node/{node}"),
            Self::JoinsOtherMinor { .. } => "ControlPlane".to_owned(),
            Self::EtcdQuorumAtRisk { .. } => "Etcd".to_owned(),
            Self::Retargeted { update }
            | Self::Aborting { update }
            | Self::AbortTooLate { update, .. }
            | Self::Aborted { update } => format!("ClusterUpdate/{update}"),
            Self::ConsentNeeded { cluster, .. } => format!("TanzuKubernetesCluster/{cluster}"),
            Self::ApprovalNeeded { kind, cluster, .. } | Self::Rejected { kind, cluster, .. } => {
                format!("{}/{cluster}", kind.as_str())
            }
        }
    }

    /// The next thing that a person can do about it, or `wait`.
    #[allow(clippy::too_many_lines, reason = "one way out for each refusal, and none forgotten")]
    pub fn way_out(&self) -> String {
        match self {
            Self::NoWorkloadApi
            | Self::ControlPlaneUpdateRunning { .. }
            | Self::ControlPlaneBehind { .. }
            | Self::InfrastructureNotReady
            | Self::EtcdLeaderLeaves { .. }
            | Self::EtcdCannotLead { .. }
            | Self::EtcdMemberStays { .. }
            | Self::EtcdMembershipUnknown { .. }
            | Self::JoinsOtherMinor { .. }
            | Self::ControlPlaneRolling { .. }
            | Self::PoolRolling { .. }
            | Self::Aborting { .. } => "wait".to_owned(),
            Self::ClusterAbsent => "create the Cluster again, or delete what was made for it".to_owned(),
            Self::ControlPlaneUnwell { control_plane, .. } => {
                format!("wait; if it lasts, look at KubeadmControlPlane {control_plane} and its conditions")
            }
            Self::ControlPlaneUnowned { .. } => "restore its KubeadmControlPlane from a backup".to_owned(),
            Self::EtcdElsewhere { .. } => "update this cluster by hand".to_owned(),
            Self::TopologyPending { .. } => {
                "wait; if it lasts, look at the condition TopologyReconciled of the Cluster".to_owned()
            }
            Self::PoolAbsent { pool } => format!("put the pool {pool} back until the update is done"),
            Self::WorkloadUnreachable { .. } => {
                "wait; if it lasts, look at the machines of the control plane".to_owned()
            }
            Self::PackageNotReady { addon, .. } => {
                format!("wait; if it lasts, look at the pods of the add-on {addon} in the workload cluster")
            }
            Self::ControlPlaneUpdateFailed { cluster, job, .. } => format!(
                "windlass logs {cluster} says why; when that is repaired, windlass retry {cluster} \
                 (or kubectl -n {NAMESPACE} delete job {job})"
            ),
            Self::ControlPlaneUpdateIncomplete { job, .. } => {
                format!("run it again: kubectl -n {NAMESPACE} delete job {job}")
            }
            Self::ControlPlaneTooLarge { have, .. } => format!("set spec.topology.controlPlane.count back to {have}"),
            Self::ControlPlaneLost => "restore the cluster from a backup, or delete it and create it again".to_owned(),
            Self::VersionRefused { .. } => "ask for another version".to_owned(),
            Self::FieldRefused { field, from, .. } => format!("set {field} back to {from}"),
            Self::TemplateTaken { template } => format!("delete {template}"),
            Self::ControlPlaneMachineNotReady { machine, .. } => {
                format!("wait; if it lasts, look at Machine {machine} and its conditions")
            }
            Self::EtcdUnhealthy { member } if member.is_empty() => {
                "wait; if it lasts, remove it from etcd once its machine is gone".to_owned()
            }
            Self::EtcdUnhealthy { member } => format!("wait; if it lasts, look at the pod etcd-{member}"),
            Self::CertificateMissing { secret } => {
                // It is called after its cluster, and after what is in it.
                let cluster = secret.as_str().rsplit_once('-').map_or(secret.as_str(), |(cluster, _)| cluster);
                format!("windlass secrets recover {cluster}; a new one would not fit")
            }
            Self::Paused { .. } => "unpause the cluster".to_owned(),
            Self::Gap { object, .. } => format!("wait; if it lasts, see why {object} cannot be read"),
            Self::TooOld { object, .. } => {
                format!("update or remove what {object} stands for before the control plane")
            }
            Self::ProxyUnbound { object } => format!("bind {object} to the nodes of one distribution, or delete it"),
            Self::ProxyAhead { node, .. } => format!("correct the distribution in the labels of node {node}"),
            Self::EtcdStepRefused { .. } => "ask for a release with an etcd in between".to_owned(),
            Self::EtcdQuorumAtRisk { .. } => {
                "wait; if it lasts, bring back the members of etcd that do not answer".to_owned()
            }
            Self::EtcdChanging { member, .. } => {
                format!("wait; if it lasts, remove the member {member} from etcd once its machine is gone")
            }
            Self::EtcdMemberUnknown { member } => {
                format!("remove the member {member} from etcd if its machine is gone for good")
            }
            Self::EtcdMemberMissing { machine } => {
                format!("wait; if it lasts, look at the etcd of Machine {machine}, or delete that machine")
            }
            Self::EtcdLastVoter { .. } => {
                "bring back the other members of etcd, or restore it from a snapshot".to_owned()
            }
            Self::EtcdAlarm { member, .. } => format!("free or restore the member {member}, then disarm the alarm"),
            Self::NoWholeNode { .. } => "wait; if it lasts, repair a machine of the control plane".to_owned(),
            Self::SuccessorNotReady { .. } => "wait; if it lasts, look at the machine that is to stay".to_owned(),
            Self::ForeignAttempt { theirs, .. } => format!(
                "let the update {theirs} end; if nobody leads it any more, go on with it (windlass retry --adopt) or undo it (windlass abort --adopt)"
            ),
            Self::AttemptOfAnotherVersion { made, .. } => {
                format!("undo it (windlass abort), or ask for {made} first")
            }
            Self::Retargeted { update } => format!("restore the release that {update} was begun with"),
            Self::DrainBlocked { machine, why } => drain_way_out(machine, why),
            Self::MachineFailed { machine, .. } => {
                format!("repair what it names, or have another made in its place: kubectl delete machine {machine}")
            }
            Self::PoolStalled { pool, .. } => format!(
                "repair what keeps its machines (kubectl get machines); the update goes on when the pool {pool} moves"
            ),
            Self::ConsentNeeded { cluster, digest, .. } => {
                let by_kubectl = by_kubectl(ClusterKind::TanzuKubernetesCluster, cluster, digest);
                format!("agree to it: windlass update {cluster} --accept-defaults {by_kubectl}")
            }
            Self::ApprovalNeeded { kind, cluster, digest, .. } => {
                format!("agree to it: windlass approve {cluster} {}", by_kubectl(*kind, cluster, digest))
            }
            Self::Rejected { kind, cluster, digest, .. } => format!(
                "ask for something else, or agree to it after all: windlass approve {cluster} {}",
                by_kubectl(*kind, cluster, digest)
            ),
            Self::AbortFailed { job, .. } => {
                format!("read the logs of its pods, repair what they name, then delete Job {job} to try again")
            }
            Self::AbortTooLate { update, .. } => format!(
                "let it end, and change the cluster then; take back what ordered it: the annotation {} of ClusterUpdate {update}, or an older release in the label {} of its Cluster",
                annotation::ABORT,
                label::RELEASE_VERSION
            ),
            Self::Aborted { update } => format!(
                "ask for what the cluster was before ClusterUpdate {update}, or remove its annotation {} to try again",
                annotation::ABORT
            ),
        }
    }

    /// The envelope that somebody would agree to, out of a text with the way out of a refusal that asks for it.
    pub fn asked_to_agree_to(text: &str) -> Option<&str> {
        let (_, after) = text.split_once(&format!("{}{AGREEMENT}", annotation::APPROVED))?;
        after.split([' ', ')']).next().filter(|digest| !digest.is_empty())
    }

    /// What such a text is about, without its way out.
    pub fn without_agreement(text: &str) -> &str {
        let before = |way_out: &str| text.split_once(way_out).map(|(what, _)| what);
        before("; agree to it").or_else(|| before("; ask for something else")).unwrap_or(text)
    }
}

/// How to agree to something without our command.
pub(crate) fn by_kubectl(kind: ClusterKind, cluster: &ClusterName, digest: &str) -> String {
    let (resource, approved) = (kind.as_str().to_lowercase(), annotation::APPROVED);
    format!("(or kubectl annotate --overwrite {resource} {cluster} {approved}{AGREEMENT}{digest})")
}

/// What a person can do about pods that stay. A refusal of a budget names it, and the pod that is in the same namespace.
fn drain_way_out(machine: &MachineName, why: &str) -> String {
    let budget = why.split_once("The disruption budget ").and_then(|(_, rest)| rest.split([' ', ',', ';']).next());
    let named = why.split_once("Pod ").or_else(|| why.split_once("Pods "));
    let namespace = named.and_then(|(_, pods)| pods.split_once('/')).map(|(namespace, _)| namespace);
    match budget.zip(namespace) {
        Some((budget, namespace)) => format!(
            "in the workload cluster, run more of its pods elsewhere or relax the budget: kubectl -n {namespace} edit \
             poddisruptionbudget {budget}"
        ),
        None => format!("see to the pods that it names in the workload cluster: kubectl describe machine {machine}"),
    }
}

impl fmt::Display for Blocked {
    #[allow(clippy::too_many_lines, reason = "one sentence for each refusal, and none forgotten")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoWorkloadApi => write!(f, "the workload cluster has no API yet"),
            Self::WorkloadUnreachable { why } => write!(f, "the workload cluster does not answer: {why}"),
            Self::PackageNotReady { addon, why } => write!(f, "the add-on {addon} is not ready: {why}"),
            Self::ControlPlaneUpdateRunning { job } => write!(f, "Job {job} is replacing the control plane"),
            Self::ControlPlaneUpdateFailed { job, message, .. } => {
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
            Self::FieldRefused { field, from, to, why, .. } => {
                write!(f, "{field} is {from} and cannot be made {to}: {why}")
            }
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
            Self::ClusterAbsent => write!(f, "the Cluster is not there"),
            Self::ControlPlaneRolling { up_to_date, replicas, .. } if up_to_date >= replicas => {
                write!(f, "all machines of the control plane are up to date, and Cluster API is not done with them")
            }
            Self::ControlPlaneRolling { up_to_date, replicas, .. } => {
                write!(f, "Cluster API is rolling the control plane: {up_to_date} of {replicas} machines up to date")
            }
            Self::ControlPlaneUnwell { control_plane, why } => {
                write!(f, "KubeadmControlPlane {control_plane} is not well: {why}")
            }
            Self::ControlPlaneUnowned { machine } => {
                write!(f, "Machine {machine} of the control plane belongs to no KubeadmControlPlane")
            }
            Self::EtcdElsewhere { .. } => {
                write!(f, "etcd is not on the machines of the control plane, and it never moves there")
            }
            Self::TopologyPending { why } => write!(f, "Cluster API has not done yet what the topology says: {why}"),
            Self::PoolAbsent { pool } => write!(f, "the pool {pool} is no longer in the topology"),
            Self::PoolRolling { pool, up_to_date, replicas } if up_to_date >= replicas => {
                write!(f, "all machines of the pool {pool} are as they should be, and others are still to leave")
            }
            Self::PoolRolling { pool, up_to_date, replicas } => {
                write!(f, "{up_to_date} of {replicas} machines of the pool {pool} are as they should be")
            }
            Self::TooOld { object, at, to } => write!(f, "{object} has {at}, which API servers of {to} do not support"),
            Self::ProxyUnbound { object } => {
                write!(f, "{object} is bound to no distribution: on an old node it would run ahead of the API servers")
            }
            Self::ProxyAhead { node, to, machine, at } => {
                write!(f, "node {node} would get kube-proxy {to} while the API server of Machine {machine} has {at}")
            }
            Self::JoinsOtherMinor { version, why } => write!(f, "workers of {version} cannot join yet: {why}"),
            Self::Aborting { update } => write!(f, "{update} is being given up"),
            Self::AbortFailed { job, message } => write!(f, "Job {job} gave up giving up: {message}"),
            Self::AbortTooLate { update, why } => write!(f, "{update} cannot be given up any more: {why}"),
            Self::Aborted { update } => {
                write!(f, "{update} was given up, and the cluster is still asked to be the same")
            }
            Self::Retargeted { update } => {
                write!(
                    f,
                    "{update} was begun for another target than there is now, and no update is changed on its way"
                )
            }
            Self::ForeignAttempt { machine, theirs } => write!(f, "Machine {machine} is marked by the update {theirs}"),
            Self::AttemptOfAnotherVersion { machine, made, by } => {
                write!(
                    f,
                    "Machine {machine} was made by the update {by} for {made}, and that is not where this one goes"
                )
            }
            Self::NoWholeNode { machine } => {
                write!(f, "without Machine {machine} no machine of the control plane would be well")
            }
            Self::SuccessorNotReady { machine, why } => write!(f, "Machine {machine} stays for now: {why}"),
            Self::EtcdStepRefused { member, why } | Self::EtcdChanging { member, why } => {
                write!(f, "the member {member} of etcd {why}")
            }
            Self::EtcdQuorumAtRisk { voters, unhealthy } => {
                write!(
                    f,
                    "of the {voters} voters that etcd would have, {unhealthy} may not answer: it could lose its quorum"
                )
            }
            Self::EtcdLeaderLeaves { member } => {
                write!(f, "the member {member} leads etcd, and another has to lead first")
            }
            Self::EtcdCannotLead { member } => {
                write!(f, "the member {member} of etcd cannot lead: it is not a healthy voter that stays")
            }
            Self::EtcdMemberStays { machine, member } => {
                write!(f, "Machine {machine} still is the member {member} of etcd")
            }
            Self::EtcdMemberUnknown { member } => write!(f, "the member {member} of etcd belongs to no machine"),
            Self::EtcdMemberMissing { machine } => write!(f, "Machine {machine} is no member of etcd"),
            Self::EtcdMembershipUnknown { machine } => {
                write!(f, "Machine {machine} may still start the member of etcd that has not started")
            }
            Self::EtcdLastVoter { member } => {
                write!(f, "without the member {member}, etcd would have no voter, or one that may not answer")
            }
            Self::EtcdAlarm { member, alarm } => write!(f, "the member {member} of etcd warns: {alarm}"),
            Self::DrainBlocked { machine, why } => write!(f, "Machine {machine} cannot be drained: {why}"),
            Self::MachineFailed { machine, why } => write!(f, "Machine {machine} has failed: {why}"),
            Self::PoolStalled { pool, since } => write!(f, "the pool {pool} has not moved since {since:.0}"),
            Self::ConsentNeeded { first, changes, roles, .. } => {
                let more = if *changes > 1 { format!(" and {} more", changes - 1) } else { String::new() };
                let roles = roles.join(", ");
                write!(f, "this Windlass would replace machines for defaults of its own: {first}{more}, on {roles}")
            }
            Self::ApprovalNeeded { to, .. } => write!(f, "the update to {to} is not approved, and has to be here"),
            Self::Rejected { by, because, .. } if because.is_empty() => write!(f, "{by} has rejected the update"),
            Self::Rejected { by, because, .. } => write!(f, "{by} has rejected the update: {because}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_api::name::{ClusterName, MachineName, ObjectName};

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
        let cluster = ClusterName::new("my-tkc").unwrap();
        let job = ObjectName::new("update-7").unwrap();
        let machine = MachineName::new("cp-0").unwrap();
        check(
            &Blocked::ControlPlaneUpdateFailed { cluster, job, message: "timed out".to_owned() },
            [
                "ControlPlaneUpdateFailed",
                "Job/update-7",
                "Job update-7 gave up replacing the control plane: timed out",
                "windlass logs my-tkc says why; when that is repaired, windlass retry my-tkc \
                 (or kubectl -n vmware-system-tkg delete job update-7)",
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
        let machine = || MachineName::new("workers-1").unwrap();
        let why = "Pod shop/web-1: cannot evict pod as it would violate the pod's disruption budget. The disruption budget web \
                   needs 2 healthy pods and has 2 currently";
        check(
            &Blocked::DrainBlocked { machine: machine(), why: why.to_owned() },
            [
                "DrainBlocked",
                "Machine/workers-1",
                &format!("Machine workers-1 cannot be drained: {why}"),
                "in the workload cluster, run more of its pods elsewhere or relax the budget: kubectl -n shop edit \
                 poddisruptionbudget web",
            ],
        );
        check(
            &Blocked::MachineFailed { machine: machine(), why: "it has no disk".to_owned() },
            [
                "MachineFailed",
                "Machine/workers-1",
                "Machine workers-1 has failed: it has no disk",
                "repair what it names, or have another made in its place: kubectl delete machine workers-1",
            ],
        );
        check(&Blocked::NoWorkloadApi, ["NoWorkloadApi", "Cluster", "the workload cluster has no API yet", "wait"]);
    }

    #[test]
    fn what_is_agreed_to_can_be_read_from_the_way_out() {
        let consent = Blocked::ConsentNeeded {
            cluster: ClusterName::new("my-tkc").unwrap(),
            digest: "sha256:7".to_owned(),
            first: "imagePullPolicy nothing -> Always".to_owned(),
            changes: 2,
            roles: vec!["control-plane/0".to_owned(), "workers/default".to_owned()],
        };
        check(
            &consent,
            [
                "ConsentNeeded",
                "TanzuKubernetesCluster/my-tkc",
                "this Windlass would replace machines for defaults of its own: imagePullPolicy nothing -> Always and 1 more, \
                 on control-plane/0, workers/default",
                "agree to it: windlass update my-tkc --accept-defaults (or kubectl annotate --overwrite \
                 tanzukubernetescluster my-tkc windlass.dev/approved=sha256:7)",
            ],
        );
        let told = format!("{consent}; {}", consent.way_out());
        assert_eq!(Blocked::asked_to_agree_to(&told), Some("sha256:7"));
        assert_eq!(Blocked::asked_to_agree_to("windlass.dev/approved="), None);
        assert_eq!(Blocked::asked_to_agree_to("wait"), None);
    }
}
