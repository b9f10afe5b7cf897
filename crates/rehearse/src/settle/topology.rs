//! A Cluster of a class: Cluster API says how far its machines are, and its `ClusterBootstrap` how far its packages.

use windlass_api::name::NamespacedName;
use windlass_plan::bootstrap::course::Course;
use windlass_sim::world::World;

use super::{Look, Waits, read};
use crate::rehearsal::Verdict;

pub(super) fn look(world: &World, name: &NamespacedName) -> Look {
    let (namespace, name) = (name.namespace.as_str(), name.name.as_str());
    let Some(cluster) = read(world, namespace, name) else {
        return Look { end: Some(Verdict::Gone), waits: Waits::default() };
    };
    let bootstrap = read(world, namespace, name);
    let course = Course { cluster: &cluster, bootstrap: bootstrap.as_ref() };
    let on = course.waits();
    Look {
        end: course.reached().map(|release| Verdict::Reached { distribution: release.to_owned() }),
        waits: Waits { short: on.first().map(|wait| wait.message.clone()), on },
    }
}
