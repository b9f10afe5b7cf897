//! The four certificates are there before any machine joins.
//!
//! A machine that finds none would be given new ones, which nothing else in the cluster trusts.

use std::collections::BTreeSet;

use windlass_api::name::{ClusterName, ClusterSecret};

use super::Blocked;

/// Refuses to make a machine while a certificate of the cluster is missing.
pub fn certificates_present(cluster: &ClusterName, there: &BTreeSet<ClusterSecret>) -> Option<Blocked> {
    let missing = ClusterSecret::CERTIFICATES.into_iter().find(|secret| !there.contains(secret))?;
    Some(Blocked::CertificateMissing { secret: missing.object_name(cluster) })
}
