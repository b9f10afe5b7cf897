//! What must be so before a machine at the new version can join, and before any machine is deleted: certificates that outlive
//! machines, and a workload cluster whose configuration of kubeadm and of the kubelets is that of the new version.

use windlass_api::name::{ClusterSecret, NodeName};
use windlass_api::version::facts::has_cluster_status;

use super::row::node;
use super::{Failure, Next, Ownership, RollInput, RollStep};
use crate::gate::Gate;

/// The first thing that is not as it should be.
pub fn next(input: &RollInput) -> Option<Next> {
    certificates(input).or_else(|| workload(input)).or_else(|| endpoints(input))
}

/// A Secret that belongs to nothing but the configuration of a machine is gone with that machine, and with it goes every later
/// join.
fn certificates(input: &RollInput) -> Option<Next> {
    let owners = |secret| input.observed.certificates.get(&secret);
    let missing = ClusterSecret::CERTIFICATES.into_iter().find(|secret| owners(*secret).is_none());
    if let Some(secret) = missing.filter(|_| input.gates.has(Gate::CertificatesPresent)) {
        return Some(Next::Failed(Failure::CertificateMissing { secret }));
    }
    let of_others = |secret: &ClusterSecret| owners(*secret) == Some(&Ownership::Others);
    let secret = ClusterSecret::CERTIFICATES.into_iter().find(of_others)?;
    Some(Next::Do(RollStep::OwnCertificate { secret }))
}

fn workload(input: &RollInput) -> Option<Next> {
    let preparation = *input.observed.unprepared.first()?;
    Some(Next::Do(RollStep::Prepare { preparation }))
}

/// Who is gone and still among the API servers breaks the next join. While a machine has no node, the node that nobody has may
/// be its own.
pub(super) fn endpoints(input: &RollInput) -> Option<Next> {
    if !has_cluster_status(&input.attempt.version) {
        return None;
    }
    let nodes: Option<Vec<&NodeName>> = input.observed.machines.iter().map(node).collect();
    let nodes = nodes?;
    let stale = input.observed.endpoints.iter().find(|endpoint| !nodes.contains(endpoint))?;
    Some(Next::Do(RollStep::ForgetEndpoint { node: stale.clone() }))
}
