//! Whether everybody has let go of a cluster that is held: a pause holds nobody who has not seen it yet.
//!
//! Every controller of Cluster API says `Paused` on what it looks after, for the generation that it has seen, and writes nothing
//! from then on. Packages are touched when all have said so: what was begun before the hold has come to its end.

use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_api::kind::Condition;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::reason::TopologyReason;

/// What is known of an object that its controller should have let go of.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// The object, for people.
    pub object: String,
    /// Its generation.
    pub generation: Option<i64>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// It is of Cluster API itself, which always says so. Of others only those count that ever say anything about it.
    pub of_cluster_api: bool,
}

impl Watched {
    /// Whoever derives objects from the topology of a Cluster. They say it in a condition of their own.
    pub fn topology(cluster: &Cluster) -> Option<Self> {
        cluster.spec.topology.as_ref()?;
        let (meta, status) = (&cluster.metadata, cluster.status.clone().unwrap_or_default());
        let said = ConditionType::TopologyReconciled.among(&status.conditions).cloned().unwrap_or_default();
        let paused = said.reason == TopologyReason::Paused.as_str();
        let status = if paused { ConditionStatus::True } else { ConditionStatus::False };
        let (namespace, name) =
            (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
        Some(Self {
            object: format!("the topology of Cluster {namespace}/{name}"),
            generation: meta.generation,
            conditions: vec![Condition {
                type_: ConditionType::Paused.as_str().to_owned(),
                status: status.as_str().to_owned(),
                ..said
            }],
            of_cluster_api: true,
        })
    }

    /// Something of which nobody can tell us whether it was let go of.
    pub fn unread(object: String) -> Self {
        Self { object, generation: None, conditions: Vec::new(), of_cluster_api: true }
    }

    /// Whether its controller has let go of it, as it is now.
    pub fn is_let_go(&self) -> bool {
        match ConditionType::Paused.among(&self.conditions) {
            Some(paused) => {
                paused.status == ConditionStatus::True.as_str() && paused.observed_generation == self.generation
            }
            None => !self.of_cluster_api,
        }
    }
}

/// The first that nobody has let go of yet.
pub fn moving(watched: &[Watched]) -> Option<&str> {
    watched.iter().find(|watched| !watched.is_let_go()).map(|watched| watched.object.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(said: Option<(&str, i64)>, of_cluster_api: bool, let_go: bool) {
        let condition = |(status, generation): (&str, i64)| Condition {
            type_: "Paused".to_owned(),
            status: status.to_owned(),
            observed_generation: Some(generation),
            ..Condition::default()
        };
        let conditions = said.map(condition).into_iter().collect();
        let watched = Watched { object: "Machine dev/a".to_owned(), generation: Some(2), conditions, of_cluster_api };
        assert_eq!(moving(&[watched]), (!let_go).then_some("Machine dev/a"), "{said:?} {of_cluster_api}");
    }

    #[test]
    fn an_object_is_let_go_of_when_its_controller_says_so_of_what_it_is_now() {
        check(Some(("True", 2)), true, true);
        check(Some(("True", 1)), true, false);
        check(Some(("False", 2)), true, false);
        check(None, true, false);
        check(None, false, true);
        check(Some(("False", 2)), false, false);
        assert_eq!(moving(&[]), None);
        assert_eq!(moving(&[Watched::unread("DevCluster dev/a".to_owned())]), Some("DevCluster dev/a"));
    }
}
