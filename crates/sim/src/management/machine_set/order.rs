//! Which machines go first when a set has too many, in the order of Cluster API.

use std::sync::Arc;

use jiff::Timestamp;
use windlass_api::annotation;
use windlass_api::kind::cluster_api::{Machine, MachineSet};
use windlass_api::kind::condition;

use crate::management::context::deleting;

/// Which of the machines that nothing is wrong with go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Any; in truth the first by name.
    Random,
    /// Those that were made last.
    Newest,
    /// Those that were made first.
    Oldest,
}

/// How much a machine would be missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    /// It goes already.
    Deleting,
    /// Somebody has chosen it.
    Marked,
    /// Nobody can rely on it.
    Unhealthy,
    /// It is as good as any other; less is missed first. Under Cluster API's weights a machine that was made this very
    /// moment is worth no more than a broken one where the newest go first.
    Useful(i64),
}

/// The machines that are too many, the most dispensable first, without those that go already.
pub(super) fn surplus<'a>(
    set: &MachineSet,
    machines: &'a [Arc<Machine>],
    wanted: usize,
    now: Timestamp,
) -> Vec<&'a Arc<Machine>> {
    let order = match set.spec.deletion.as_ref().and_then(|deletion| deletion.order.as_deref()) {
        Some("Newest") => Order::Newest,
        Some("Oldest") => Order::Oldest,
        _ => Order::Random,
    };
    let mut candidates: Vec<&Arc<Machine>> = machines.iter().collect();
    candidates.sort_by_cached_key(|machine| (value(machine, order, now), machine.metadata.name.clone()));
    let many = machines.len().saturating_sub(wanted);
    candidates.into_iter().take(many).filter(|machine| !deleting(&machine.metadata)).collect()
}

fn value(machine: &Machine, order: Order, now: Timestamp) -> Value {
    let marked = machine.metadata.annotations.as_ref().is_some_and(|all| annotation::DELETE_MACHINE.is_in(all));
    let made = machine.metadata.creation_timestamp.as_ref().map_or(now, |at| at.0);
    let age_seconds = now.duration_since(made).as_secs().max(0);
    match () {
        () if deleting(&machine.metadata) => Value::Deleting,
        () if marked => Value::Marked,
        () if !is_healthy(machine) => Value::Unhealthy,
        () => match order {
            Order::Random => Value::Useful(0),
            Order::Newest if age_seconds == 0 => Value::Unhealthy,
            Order::Newest => Value::Useful(age_seconds),
            Order::Oldest => Value::Useful(-age_seconds),
        },
    }
}

fn is_healthy(machine: &Machine) -> bool {
    machine.status.as_ref().is_some_and(|status| {
        let is_false = |type_: &str| condition(&status.conditions, type_).is_some_and(|said| said.status == "False");
        status.node_ref.is_some() && !is_false("NodeHealthy") && !is_false("HealthCheckSucceeded")
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;
    use windlass_api::kind::cluster_api::SetDeletion;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T00:00:00Z".parse().unwrap()
    }

    /// A machine of some hours, and what is the matter with it.
    fn machine(name: &str, hours: i64, state: &str) -> Arc<Machine> {
        let healthy = json!([{"type": "NodeHealthy", "status": "True", "lastTransitionTime": ""}]);
        let ill = json!([{"type": "HealthCheckSucceeded", "status": "False", "lastTransitionTime": ""}]);
        let unready = json!([{"type": "NodeHealthy", "status": "False", "lastTransitionTime": ""}]);
        let mut machine = json!({"metadata": {"name": name}, "spec": {}, "status": {"nodeRef": {"name": name}, "conditions": healthy}});
        match state {
            "" => {}
            "deleting" => machine["metadata"]["deletionTimestamp"] = json!("2026-01-01T23:59:00Z"),
            "marked" => machine["metadata"]["annotations"] = json!({"cluster.x-k8s.io/delete-machine": ""}),
            "unready" => machine["status"]["conditions"] = unready,
            "ill" => machine["status"]["conditions"] = ill,
            "new" => machine["status"] = json!({}),
            other => panic!("{other}?"),
        }
        let mut machine: Machine = serde_json::from_value(machine).unwrap();
        machine.metadata.creation_timestamp = Some(Time(now() - jiff::SignedDuration::from_hours(hours)));
        Arc::new(machine)
    }

    fn check(order: Option<&str>, wanted: usize, machines: &[(&str, i64, &str)], expected: &[&str]) {
        let deletion = order.map(|order| SetDeletion { order: Some(order.to_owned()) });
        let mut set = MachineSet::default();
        set.spec.deletion = deletion;
        let all: Vec<_> = machines.iter().map(|(name, hours, state)| machine(name, *hours, state)).collect();
        let gone: Vec<&str> =
            surplus(&set, &all, wanted, now()).iter().filter_map(|machine| machine.metadata.name.as_deref()).collect();
        assert_eq!(gone, expected, "{order:?} {wanted} of {machines:?}");
    }

    #[test]
    fn machines_go_in_the_order_of_how_little_they_are_missed() {
        let all = [("a", 5, ""), ("b", 4, "ill"), ("c", 3, "unready"), ("d", 2, "marked"), ("e", 1, "new")];
        check(None, 4, &all, &["d"]);
        check(None, 1, &all, &["d", "b", "c", "e"]);
        check(None, 0, &all, &["d", "b", "c", "e", "a"]);
        check(None, 5, &all, &[]);
    }

    #[test]
    fn what_goes_already_counts_and_is_not_deleted_twice() {
        check(None, 1, &[("a", 5, ""), ("b", 4, "deleting"), ("c", 3, "")], &["a"]);
        check(None, 2, &[("a", 5, ""), ("b", 4, "deleting"), ("c", 3, "")], &[]);
    }

    #[test]
    fn of_machines_that_are_alike_the_order_decides_and_then_the_name() {
        let all = [("a", 2, ""), ("b", 3, ""), ("c", 1, ""), ("d", 3, "")];
        check(None, 2, &all, &["a", "b"]);
        check(Some("Random"), 2, &all, &["a", "b"]);
        check(Some("Oldest"), 1, &all, &["b", "d", "a"]);
        check(Some("Newest"), 1, &all, &["c", "a", "b"]);
        // Made this moment, and broken for a week: alike where the newest go first.
        check(Some("Newest"), 1, &[("a", 0, ""), ("b", 168, "ill")], &["a"]);
    }
}
