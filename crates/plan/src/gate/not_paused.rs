//! What is paused is left alone.

use super::Blocked;

/// Refuses to write anything while somebody holds the cluster.
pub fn not_paused(by: Option<&str>) -> Option<Blocked> {
    by.map(|by| Blocked::Paused { by: by.to_owned() })
}
