//! What is paused is left alone.

use super::Blocked;
use crate::inventory::{ClusterState, Inventory};

/// Refuses to write anything while somebody holds the cluster.
pub fn not_paused(inventory: &Inventory) -> Option<Blocked> {
    match &inventory.cluster {
        ClusterState::Absent | ClusterState::Present { paused: None, .. } => None,
        ClusterState::Present { paused: Some(by), .. } => Some(Blocked::Paused { by: by.clone() }),
    }
}
