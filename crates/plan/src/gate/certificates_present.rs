//! The four certificates are there before any machine joins.
//!
//! A machine that finds none would be given new ones, which nothing else in the cluster trusts.

use windlass_api::name::{ClusterName, ClusterSecret};

use super::Blocked;
use crate::inventory::Inventory;

/// Refuses to make a machine while a certificate of the cluster is missing.
pub fn certificates_present(cluster: &ClusterName, inventory: &Inventory) -> Option<Blocked> {
    let missing = ClusterSecret::CERTIFICATES.into_iter().find(|secret| !inventory.secrets.contains(secret))?;
    Some(Blocked::CertificateMissing { secret: missing.object_name(cluster) })
}
