//! A classic cluster: a condition of it says whether it has the release that its label names, and its update how far that is.

use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::name::NamespacedName;
use windlass_api::version::KubernetesVersion;
use windlass_plan::resolve::labelled::course::Course;
use windlass_sim::world::World;

use super::{Look, Waits, read, update_by_label};
use crate::rehearsal::Verdict;

pub(super) fn look(world: &World, name: &NamespacedName) -> Look {
    let Some(cluster) = read::<Cluster>(world, name.namespace.as_str(), name.name.as_str()) else {
        return Look { end: Some(Verdict::Gone), waits: Waits::default() };
    };
    let update = update_by_label(world, name);
    let course = Course { cluster: &cluster, update: update.as_ref() };
    let end = match (course.reached(), course.failure()) {
        (_, Some(why)) => Some(Verdict::Failed { why: why.to_owned() }),
        (Some(release), _) if keeps(update.as_ref(), &release) => {
            Some(Verdict::GivenUp { distribution: release.to_string() })
        }
        (Some(release), _) => Some(Verdict::Reached { distribution: release.to_string() }),
        (None, _) => None,
    };
    let short = course.short_of().map(|it| format!("{}: {}", it.reason, it.message));
    let on = update.and_then(|update| update.status).map(|status| status.waiting_for).unwrap_or_default();
    Look { end, waits: Waits { short, on } }
}

/// Whether a cluster has this release because its last update was given up.
fn keeps(update: Option<&ClusterUpdate>, release: &KubernetesVersion) -> bool {
    let given_up =
        |update: &&ClusterUpdate| update.status.as_ref().and_then(|status| status.state) == Some(UpdateState::Aborted);
    update.filter(given_up).is_some_and(|update| update.spec.from.distribution == release.to_string())
}
