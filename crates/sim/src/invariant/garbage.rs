//! O3: garbage collection reaches no certificate before the cluster goes.

use windlass_api::name::ClusterSecret;

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Live, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "O3",
    demands: "What owns a certificate is itself owned by nothing, or by what lives as long: no other deletion leads to a certificate.",
    topics: &[Topic::Secrets, Topic::Machines],
    check,
};

/// Garbage collection follows owners that are gone. A certificate survives the end of x if it has an owner that does: the
/// Cluster, which belongs to nobody or to the object that asked for it; or its control plane, which belongs to the Cluster.
/// Who owns a Cluster is not known here, so it may have one owner, and that is taken for whoever asked for it.
fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    let Some(object) = &cluster.object else { return };
    if cluster.is_ending() || cluster.machines_of(Role::ControlPlane).next().is_none() {
        return;
    }
    let is_safe = |uid: &str| {
        let is = |live: &Live| *live.uid == *uid;
        let of_cluster = |live: &Live| live.owners.is_empty() || live.owners.contains(&object.uid);
        let control_plane = cluster.control_plane.as_ref().map(|control_plane| &control_plane.live);
        (is(object) && object.owners.len() <= 1) || control_plane.is_some_and(|live| is(live) && of_cluster(live))
    };
    let known =
        |uid: &str| object.uid.as_ref() == uid || cluster.control_plane.as_ref().is_some_and(|c| &*c.live.uid == uid);
    for secret in ClusterSecret::CERTIFICATES {
        let Some(owners) = cluster.secrets.get(&secret) else { continue };
        // Without a lasting owner it is already told by another rule.
        if owners.iter().any(|uid| known(uid)) && !owners.iter().any(|uid| is_safe(uid)) {
            findings
                .breach(secret.to_string(), format!("the Secret of {secret} would go with what its owner belongs to"));
        }
    }
}
