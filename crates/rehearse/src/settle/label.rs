//! A classic cluster: a condition of it says whether it has the release that its label names, and its update how far that is.

use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::UpdateState;
use windlass_api::name::NamespacedName;
use windlass_api::{annotation, label};
use windlass_sim::world::World;

use super::{Look, Waits, read, update_by_label};
use crate::rehearsal::Verdict;

pub(super) fn look(world: &World, name: &NamespacedName) -> Look {
    let Some(cluster) = read::<Cluster>(world, name.namespace.as_str(), name.name.as_str()) else {
        return Look { end: Some(Verdict::Gone), waits: Waits::default() };
    };
    let update = update_by_label(world, name).and_then(|update| update.status).unwrap_or_default();
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let applied = ConditionType::ReleaseApplied.among(conditions);
    let asked = cluster.metadata.labels.as_ref().and_then(|labels| label::RELEASE_VERSION.get(labels).ok().flatten());
    let has = cluster.metadata.annotations.as_ref();
    let has = has.and_then(|annotations| annotation::LAST_DEPLOYED_VERSION.get(annotations).ok().flatten());
    // The condition names the release that it is about.
    let is_said = |release: &str| applied.is_some_and(|it| it.status == "True" && it.message == release);
    let reached = asked.filter(|asked| has.as_ref() == Some(asked) && is_said(&asked.bare().to_string()));
    let end = match (reached, update.state) {
        (_, Some(UpdateState::Failed)) => {
            let why = update.failure.clone().unwrap_or_else(|| "no reason is given".to_owned());
            Some(Verdict::Failed { why })
        }
        (Some(release), _) => Some(Verdict::Reached { distribution: release.to_string() }),
        (None, _) => None,
    };
    let short = applied.filter(|it| it.status != "True").map(|it| format!("{}: {}", it.reason, it.message));
    Look { end, waits: Waits { short, on: update.waiting_for } }
}
