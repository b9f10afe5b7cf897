//! O1: the Secrets of a cluster are there as long as the cluster.

use windlass_api::name::ClusterSecret;

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "O1",
    demands: "From the first machine of the control plane on, each certificate is there; from its first ready node on, the kubeconfig too.",
    topics: &[Topic::Secrets, Topic::Machines],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    if cluster.object.is_none() || cluster.is_ending() {
        return;
    }
    let mut machines = cluster.machines_of(Role::ControlPlane).peekable();
    if machines.peek().is_none() {
        return;
    }
    for secret in ClusterSecret::CERTIFICATES.into_iter().filter(|secret| !cluster.secrets.contains_key(secret)) {
        findings.breach(secret.to_string(), format!("the Secret of {secret} is not there"));
    }
    // When it is made depends on who makes it; that it does not go again is what matters.
    if let Fact::SecretGone { secret } = fact
        && secret.ends_with("-kubeconfig")
        && machines.any(|(_, machine)| machine.settled)
    {
        findings.breach("kubeconfig", format!("the Secret {secret} is gone"));
    }
}
