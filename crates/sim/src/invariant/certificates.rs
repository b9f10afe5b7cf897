//! O1 and O2: the certificates of a cluster live as long as the cluster.

use windlass_api::name::ClusterSecret;

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "O2",
    demands: "From the first machine of the control plane on, each certificate is there and belongs to the live Cluster.",
    topics: &[Topic::Secrets, Topic::Machines],
    check,
};

/// Owned is what names the Cluster's uid: a name alone would be taken for an owner that is gone.
fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    let Some(owner) = &cluster.object else { return };
    if owner.deleting || cluster.machines_of(Role::ControlPlane).next().is_none() {
        return;
    }
    for secret in ClusterSecret::CERTIFICATES {
        match cluster.secrets.get(&secret) {
            None => findings.breach(secret.to_string(), format!("the Secret of {secret} is not there")),
            Some(owners) if !owners.contains(&owner.uid) => {
                findings.breach(secret.to_string(), format!("the Secret of {secret} does not belong to the Cluster"));
            }
            Some(_) => {}
        }
    }
}
