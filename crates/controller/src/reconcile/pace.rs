//! When to look at a cluster, and when not to.
//!
//! To look costs requests, to the workload cluster too. Most of what wakes us is not worth that: our own writes of a status come
//! back as changes, and the changes of others come in bursts. So a cluster of which the caches say what they said at the last
//! look is left alone until it is due, and one that changes is given a moment to finish changing.
//!
//! What is kept here only saves work. Whoever loses it looks at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use windlass_runtime::key::Key;

/// How long a burst of changes is given. It is added to the time that any change needs to have an effect.
const BURST: Duration = Duration::from_millis(100);

/// What the caches say about a cluster: which states of which objects. Not in it are the parts that only we write.
pub(crate) type Seen = Vec<(&'static str, String)>;

/// When each cluster was looked at.
#[derive(Default)]
pub(crate) struct Pace(Mutex<BTreeMap<Key, Look>>);

/// The last look at a cluster.
struct Look {
    seen: Seen,
    /// When to look again, even if nothing changes.
    due: Instant,
    /// When the burst of changes since then will have been given its time.
    settled: Option<Instant>,
}

impl Pace {
    /// How long to wait before looking; `None` to look now.
    pub(crate) fn wait(&self, cluster: &Key, seen: &Seen) -> Option<Duration> {
        let now = Instant::now();
        let mut looks = self.looks();
        let look = looks.get_mut(cluster)?;
        let until = if look.seen == *seen { look.due } else { *look.settled.get_or_insert(now + BURST) }.min(look.due);
        (until > now).then(|| until - now)
    }

    /// A look came to nothing more to do until something changes, or until this time has passed.
    pub(crate) fn looked(&self, cluster: &Key, seen: Seen, again_after: Duration) {
        let due = Instant::now() + again_after;
        self.looks().insert(cluster.clone(), Look { seen, due, settled: None });
    }

    /// The next look is to be at once.
    pub(crate) fn hurry(&self, cluster: &Key) {
        self.looks().remove(cluster);
    }

    // Whoever panicked cannot have left the map half changed.
    fn looks(&self) -> MutexGuard<'_, BTreeMap<Key, Look>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(version: &str) -> Seen {
        vec![("Machine", version.to_owned())]
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_is_looked_at_when_it_is_due_or_has_changed_and_settled() {
        let (pace, cluster) = (Pace::default(), Key::namespaced("default", "my-tkc"));
        let wait = |version: &str| pace.wait(&cluster, &seen(version)).map(|wait| wait.as_millis());
        assert_eq!(wait("1"), None, "nobody has looked yet");

        pace.looked(&cluster, seen("1"), Duration::from_secs(10));
        assert_eq!(wait("1"), Some(10_000), "nothing has changed");
        assert_eq!(wait("2"), Some(100), "a burst begins");
        tokio::time::advance(Duration::from_millis(60)).await;
        assert_eq!(wait("3"), Some(40), "and is not prolonged");
        tokio::time::advance(Duration::from_millis(40)).await;
        assert_eq!(wait("4"), None);

        pace.looked(&cluster, seen("4"), Duration::from_millis(50));
        assert_eq!(wait("5"), Some(50), "what is due is not put off");
        tokio::time::advance(Duration::from_millis(50)).await;
        assert_eq!(wait("4"), None);

        pace.looked(&cluster, seen("4"), Duration::from_secs(10));
        pace.hurry(&cluster);
        assert_eq!(wait("4"), None);
    }
}
