//! O2: the certificates of a cluster belong to what lives as long as the cluster.

use windlass_api::name::ClusterSecret;

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "O2",
    demands: "From the first machine of the control plane on, each certificate belongs to the live Cluster or its live \
              KubeadmControlPlane.",
    topics: &[Topic::Secrets, Topic::Machines],
    check,
};

/// Owned is what names the owner's uid: a name alone would be taken for an owner that is gone.
fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    let Some(owner) = &cluster.object else { return };
    if cluster.is_ending() || cluster.machines_of(Role::ControlPlane).next().is_none() {
        return;
    }
    let rolled = cluster.control_plane.as_ref().map(|control_plane| &control_plane.live);
    let lasting = |uid: &&str| {
        owner.uid.as_ref() == *uid || rolled.is_some_and(|live| !live.deleting && live.uid.as_ref() == *uid)
    };
    for secret in ClusterSecret::CERTIFICATES {
        let Some(owners) = cluster.secrets.get(&secret) else { continue };
        if !owners.iter().any(|uid| lasting(&&**uid)) {
            findings.breach(secret.to_string(), format!("the Secret of {secret} does not belong to the Cluster"));
        }
    }
}
