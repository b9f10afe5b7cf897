//! C9: who joins finds the certificates.

use windlass_api::name::ClusterSecret;

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "C9",
    demands: "When a member joins etcd, or a node its cluster, all four certificates are there.",
    topics: &[Topic::Etcd, Topic::Nodes],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let (Fact::MemberAdded { node, .. } | Fact::NodeRegistered { node, .. }) = fact else { return };
    // A cluster that nobody asked the management cluster for has its certificates elsewhere.
    if cluster.object.is_none() || cluster.is_ending() {
        return;
    }
    for secret in ClusterSecret::CERTIFICATES {
        if !cluster.secrets.contains_key(&secret) {
            findings.breach(secret.to_string(), format!("{node} joins, and the Secret of {secret} is not there"));
        }
    }
}
