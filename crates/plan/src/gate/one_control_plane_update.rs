//! One update of a control plane at a time, and none after one that failed.
//!
//! A Job that gave up leaves a control plane that somebody has to look at: it is unclear whether it would survive another
//! attempt. Deleting the Job is how a person says that it would.

use windlass_api::name::ClusterName;

use super::Blocked;
use crate::inventory::{Inventory, JobState};

/// Refuses to begin while a Job runs, whichever update it is of, and after it gave up.
pub fn one_control_plane_update(cluster: &ClusterName, inventory: &Inventory) -> Option<Blocked> {
    let job = inventory.control_plane.job.as_ref()?;
    match &job.state {
        JobState::Active { .. } => Some(Blocked::ControlPlaneUpdateRunning { job: job.name.clone() }),
        JobState::Failed { message } => Some(Blocked::ControlPlaneUpdateFailed {
            cluster: cluster.clone(),
            job: job.name.clone(),
            message: message.clone(),
        }),
        JobState::Complete => None,
    }
}
