//! How often a Cluster says what all that belongs to it says.
//!
//! Much of that changes at once: a machine is available, so another one goes. As Cluster API looks at an object once a second at
//! most, changes of one second are said together. What others wait for is said at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use windlass_api::kind::cluster_api::ClusterStatus;
use windlass_runtime::key::Key;

/// How long changes are gathered.
const GATHERED: Duration = Duration::from_secs(1);

/// When Clusters that have something to say will say it. Whoever goes on without it gathers anew.
#[derive(Clone, Default)]
pub(in crate::management) struct Pace(Arc<Mutex<BTreeMap<Key, Instant>>>);

impl Pace {
    /// How long a Cluster still gathers what it has to say; `None` if it is time to say it.
    pub(super) fn wait(&self, cluster: &Key) -> Option<Duration> {
        let now = Instant::now();
        let mut all = self.lock();
        let due = *all.entry(cluster.clone()).or_insert(now + GATHERED);
        if now < due {
            return Some(due - now);
        }
        all.remove(cluster);
        None
    }

    /// There is nothing to say, or it has been said.
    pub(super) fn settle(&self, cluster: &Key) {
        self.lock().remove(cluster);
    }

    // The map is whole after every statement, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether others wait for what a Cluster has to say, rather than read it.
pub(super) fn is_urgent(before: Option<&ClusterStatus>, after: &ClusterStatus) -> bool {
    before.is_none_or(|before| {
        (&before.phase, &before.initialization, &before.failure_domains)
            != (&after.phase, &after.initialization, &after.failure_domains)
    })
}
