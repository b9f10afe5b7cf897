//! Facts in the words of people.

use super::What;
use crate::truth::{Fact, OwnerChange};

/// A fact that people care about: what sort, the object as `Kind/name`, and the whole in a sentence. `None` for what only
/// rules ask about. `cluster` is the `namespace/name` of the cluster that it is about.
pub(super) fn of(fact: &Fact, cluster: &str) -> Option<(What, String, String)> {
    let name = cluster.rsplit_once('/').map_or(cluster, |(_, name)| name);
    of_cluster(fact, name)
        .or_else(|| of_control_plane(fact))
        .or_else(|| of_update(fact))
        .or_else(|| of_machine(fact))
        .or_else(|| of_job(fact))
        .or_else(|| of_secret(fact))
        .or_else(|| of_node(fact))
        .or_else(|| of_pod(fact))
        .or_else(|| of_addon(fact))
        .or_else(|| of_member(fact))
}

fn of_cluster(fact: &Fact, name: &str) -> Option<(What, String, String)> {
    let (what, text) = match fact {
        Fact::Requested { distribution: Some(distribution) } => {
            (What::ClusterRequested, format!("TanzuKubernetesCluster {name} is asked to be {distribution}"))
        }
        Fact::PhaseChanged { phase } => (What::ClusterPhase, format!("TanzuKubernetesCluster {name} is {phase}")),
        Fact::VersionReached { distribution } => {
            (What::ClusterVersion, format!("TanzuKubernetesCluster {name} has {distribution} on all machines"))
        }
        Fact::DeletionRequested => (What::ClusterDeleting, format!("TanzuKubernetesCluster {name} is to be deleted")),
        Fact::ClusterGone => (What::ClusterGone, format!("TanzuKubernetesCluster {name} is gone")),
        Fact::OwnerChanged { change } => {
            let (what, text) = match change {
                OwnerChange::Came => (What::ClusterCreated, "is created"),
                OwnerChange::Goes => (What::ClusterDeleting, "is to be deleted"),
                OwnerChange::Went => (What::ClusterGone, "is gone"),
                OwnerChange::Other => return None,
            };
            return Some((what, format!("Cluster/{name}"), format!("Cluster {name} {text}")));
        }
        Fact::Unreadable { object, why } => {
            return Some((What::Unreadable, object.clone(), format!("{object} cannot be read: {why}")));
        }
        _ => return None,
    };
    Some((what, format!("TanzuKubernetesCluster/{name}"), text))
}

fn of_control_plane(fact: &Fact) -> Option<(What, String, String)> {
    let (what, name, text) = match fact {
        Fact::ControlPlaneRequested { name, version, replicas } => {
            let machines = if *replicas == 1 { "1 machine".to_owned() } else { format!("{replicas} machines") };
            (What::ControlPlaneRequested, name, format!("is asked to be {version} on {machines}"))
        }
        Fact::ControlPlaneReached { name, version } => {
            (What::ControlPlaneVersion, name, format!("has {version} on all machines"))
        }
        Fact::ControlPlaneGoes { name, gone: false } => {
            (What::ControlPlaneDeleting, name, "is to be deleted".to_owned())
        }
        Fact::ControlPlaneGoes { name, gone: true } => (What::ControlPlaneGone, name, "is gone".to_owned()),
        _ => return None,
    };
    Some((what, format!("KubeadmControlPlane/{name}"), format!("KubeadmControlPlane {name} {text}")))
}

fn of_update(fact: &Fact) -> Option<(What, String, String)> {
    let (what, update, text) = match fact {
        Fact::UpdateBegan { update, from, to } => {
            (What::UpdateBegan, update, format!("ClusterUpdate {update} begins, from {from} to {to}"))
        }
        Fact::UpdateStage { update, stage } => {
            (What::UpdateStage, update, format!("ClusterUpdate {update} is at stage {stage}"))
        }
        Fact::UpdateResumed { update } => (What::UpdateResumed, update, format!("ClusterUpdate {update} goes on")),
        Fact::UpdateSucceeded { update } => {
            (What::UpdateSucceeded, update, format!("ClusterUpdate {update} succeeded"))
        }
        Fact::UpdateAborted { update } => (What::UpdateAborted, update, format!("ClusterUpdate {update} was given up")),
        Fact::UpdateFailed { update, why: Some(why) } => {
            (What::UpdateFailed, update, format!("ClusterUpdate {update} failed: {why}"))
        }
        Fact::UpdateFailed { update, why: None } => {
            (What::UpdateFailed, update, format!("ClusterUpdate {update} failed"))
        }
        _ => return None,
    };
    Some((what, format!("ClusterUpdate/{update}"), text))
}

fn of_machine(fact: &Fact) -> Option<(What, String, String)> {
    let told =
        |what, kind, name: &str, text: String| Some((what, format!("{kind}/{name}"), format!("{kind} {name} {text}")));
    match fact {
        Fact::MachineCreated { machine, role, version } => {
            told(What::MachineCreated, "Machine", machine, format!("is created at {version} ({})", role.as_str()))
        }
        Fact::MachineRunning { machine } => told(What::MachineRunning, "Machine", machine, "runs".to_owned()),
        Fact::MachineDeleting { machine } => {
            told(What::MachineDeleting, "Machine", machine, "is to be deleted".to_owned())
        }
        Fact::MachineWaits { machine, reason, message } => {
            let why = if message.is_empty() { reason } else { message };
            told(What::MachineWaits, "Machine", machine, format!("waits before it goes: {}", one_line(why)))
        }
        Fact::MachineRemediated { machine } => {
            told(What::MachineRemediated, "Machine", machine, "is to be replaced, as it is not well".to_owned())
        }
        Fact::MachineDeleted { machine, role, version, .. } => {
            told(What::MachineDeleted, "Machine", machine, format!("is gone; it was at {version} ({})", role.as_str()))
        }
        Fact::PoolCreated { pool, version } => {
            told(What::PoolCreated, "MachineDeployment", pool, format!("is created at {version}"))
        }
        Fact::PoolSwitched { pool, version, template } => told(
            What::PoolSwitched,
            "MachineDeployment",
            pool,
            format!("is switched to {version}, template {template}"),
        ),
        Fact::PoolGone { pool } => told(What::PoolGone, "MachineDeployment", pool, "is gone".to_owned()),
        _ => None,
    }
}

fn of_job(fact: &Fact) -> Option<(What, String, String)> {
    let (what, job, text) = match fact {
        Fact::JobCreated { job } => (What::JobCreated, job, format!("Job {job} is created")),
        Fact::JobAttemptFailed { job, failed } => {
            (What::JobAttemptFailed, job, format!("Job {job} failed in attempt {failed}"))
        }
        Fact::JobComplete { job } => (What::JobComplete, job, format!("Job {job} is complete")),
        Fact::JobFailed { job } => (What::JobFailed, job, format!("Job {job} failed for good")),
        _ => return None,
    };
    Some((what, format!("Job/{job}"), text))
}

fn of_secret(fact: &Fact) -> Option<(What, String, String)> {
    let (what, secret, text) = match fact {
        Fact::SecretOwned { secret, owners } if owners.is_empty() => {
            (What::SecretOwned, secret, format!("Secret {secret} belongs to nobody"))
        }
        Fact::SecretOwned { secret, owners } => {
            (What::SecretOwned, secret, format!("Secret {secret} belongs to {}", owners.join(" and ")))
        }
        Fact::SecretGone { secret } => (What::SecretGone, secret, format!("Secret {secret} is gone")),
        _ => return None,
    };
    Some((what, format!("Secret/{secret}"), text))
}

fn of_node(fact: &Fact) -> Option<(What, String, String)> {
    let (what, node, text) = match fact {
        Fact::KubeadmFailed { node, why } => (What::KubeadmFailed, node, format!("kubeadm gives up on {node}: {why}")),
        Fact::NodeRegistered { node, kubelet } => {
            (What::NodeRegistered, node, format!("Node {node} registers, its kubelet is {kubelet}"))
        }
        Fact::NodeReady { node } => (What::NodeReady, node, format!("Node {node} is ready")),
        Fact::NodeNotReady { node, .. } => (What::NodeNotReady, node, format!("Node {node} is not ready")),
        Fact::NodeCordoned { node } => (What::NodeCordoned, node, format!("Node {node} takes no new pods")),
        Fact::NodeUncordoned { node } => (What::NodeUncordoned, node, format!("Node {node} takes new pods again")),
        Fact::NodeGone { node, .. } => (What::NodeGone, node, format!("Node {node} is gone")),
        _ => return None,
    };
    Some((what, format!("Node/{node}"), text))
}

fn of_pod(fact: &Fact) -> Option<(What, String, String)> {
    let Fact::PodEvicted { pod, node } = fact else { return None };
    Some((What::PodEvicted, format!("Pod/{pod}"), format!("Pod {pod} is evicted from {node}")))
}

/// The first line of a message, which may list a pod on each of the others.
fn one_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_end_matches(':')
}

fn of_addon(fact: &Fact) -> Option<(What, String, String)> {
    match fact {
        Fact::AddonApplied { addon, object, distribution, .. } => {
            let of = distribution.as_ref().map(|distribution| format!(", for nodes of {distribution}"));
            let text = format!("Add-on {addon}: {object} is applied{}", of.unwrap_or_default());
            Some((What::AddonApplied, object.clone(), text))
        }
        Fact::AddonRemoved { addon, object } => {
            Some((What::AddonRemoved, object.clone(), format!("Add-on {addon}: {object} is gone")))
        }
        _ => None,
    }
}

fn of_member(fact: &Fact) -> Option<(What, String, String)> {
    let (what, node, text) = match fact {
        Fact::MemberAdded { node, learner: true } => {
            (What::MemberAdded, node, format!("etcd has a new member on {node}, a learner"))
        }
        Fact::MemberAdded { node, learner: false } => {
            (What::MemberAdded, node, format!("etcd has a new member on {node}"))
        }
        Fact::MemberStarted { node } => (What::MemberStarted, node, format!("etcd on {node} has started")),
        Fact::MemberPromoted { node } => (What::MemberPromoted, node, format!("etcd on {node} counts in the quorum")),
        Fact::MemberRemoved { node, .. } => (What::MemberRemoved, node, format!("etcd on {node} is a member no more")),
        Fact::MemberAlarmed { node, alarms } if alarms.is_empty() => {
            (What::MemberAlarmed, node, format!("etcd on {node} complains no more"))
        }
        Fact::MemberAlarmed { node, alarms } => {
            (What::MemberAlarmed, node, format!("etcd on {node} complains: {}", alarms.join(", ")))
        }
        Fact::LeaderMoved { node } => (What::LeaderMoved, node, format!("etcd on {node} leads")),
        _ => return None,
    };
    Some((what, format!("Member/{node}"), text))
}
