//! Whether something is wrong with a Machine.

use std::time::Duration;

use jiff::Timestamp;
use windlass_api::annotation;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::machine_health::{MachineHealthCheck, UnhealthyCondition};
use windlass_api::kind::{Condition, condition, is_true};

use crate::management::conditions::Fact;
use crate::management::context::is_control_plane;
use crate::management::machine::{Seen, Sight};

const CONDITION: &str = "HealthCheckSucceeded";
/// How long a Machine may be without a node, unless its check says otherwise.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(600);
/// It is looked a little after a time has passed.
const SLACK: Duration = Duration::from_secs(1);

/// A Machine that a check looks at.
pub(super) struct Target<'a> {
    pub(super) check: &'a MachineHealthCheck,
    pub(super) machine: &'a Machine,
    pub(super) cluster: &'a Cluster,
    /// What was seen of its node, if it ever had one.
    pub(super) node: Option<&'a Sight>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Health {
    /// Nothing is wrong.
    Well,
    /// It cannot be told yet; perhaps after so long.
    Pending(Option<Duration>),
    /// This is wrong.
    Ill(Fact),
}

impl Health {
    /// How long it is until more is known.
    pub(super) fn judged_in(&self) -> Option<Duration> {
        match self {
            Self::Pending(wait) => *wait,
            Self::Well | Self::Ill(_) => None,
        }
    }
}

impl Target<'_> {
    pub(super) fn health(&self, now: Timestamp) -> Health {
        let annotations = self.machine.metadata.annotations.as_ref();
        if annotations.is_some_and(|annotations| annotation::REMEDIATE_MACHINE.is_in(annotations)) {
            let why = format!("marked for remediation via {} annotation", annotation::REMEDIATE_MACHINE);
            return ill("HasRemediateAnnotation", &why);
        }
        if self.node == Some(&Sight::None) {
            let node = self.machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
            let name = node.map(|node| node.name.as_str()).unwrap_or_default();
            return ill("NodeDeleted", &format!("Node {name} has been deleted"));
        }
        let cluster = self.cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let begun = is_true(cluster, "ControlPlaneInitialized") || is_control_plane(&self.machine.metadata);
        if !begun || !is_true(cluster, "InfrastructureReady") {
            return Health::Pending(None);
        }
        let own = self.machine.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let found = [self.by_own_conditions(own, now), self.by_node(own, cluster, now)];
        // What is wrong comes first, then what may soon be.
        let mut soonest: Option<Option<Duration>> = None;
        for health in found {
            match health {
                Health::Ill(_) => return health,
                Health::Pending(wait) => {
                    soonest = Some(soonest.flatten().into_iter().chain(wait).min());
                }
                Health::Well => {}
            }
        }
        soonest.map_or(Health::Well, Health::Pending)
    }

    fn by_node(&self, own: &[Condition], cluster: &[Condition], now: Timestamp) -> Health {
        match self.node {
            Some(Sight::Node(seen)) => self.by_node_conditions(seen, now),
            _ => self.by_startup(own, cluster, now),
        }
    }

    /// Without a node it counts how long all has been there that a node needs.
    fn by_startup(&self, own: &[Condition], cluster: &[Condition], now: Timestamp) -> Health {
        let limit = self.check.spec.checks.as_ref().and_then(|checks| checks.node_startup_timeout_seconds);
        let limit = limit.map_or(STARTUP_TIMEOUT, |seconds| Duration::from_secs(seconds.into()));
        if limit.is_zero() {
            return Health::Pending(None);
        }
        let since = |conditions: &[Condition], type_: &str| -> Option<Timestamp> {
            condition(conditions, type_).filter(|condition| condition.status == "True").and_then(at)
        };
        let created = self.machine.metadata.creation_timestamp.as_ref().map(|created| created.0);
        let began = [
            created,
            since(cluster, "ControlPlaneInitialized"),
            since(cluster, "InfrastructureReady"),
            since(own, "InfrastructureReady"),
        ];
        let Some(began) = began.into_iter().flatten().max() else { return Health::Pending(None) };
        match remaining(began, limit, now) {
            Some(left) => Health::Pending(Some(left + SLACK)),
            None => ill("NodeStartupTimeout", &format!("Node failed to report startup in {}", shown(limit))),
        }
    }

    fn by_node_conditions(&self, node: &Seen, now: Timestamp) -> Health {
        let limits = self.check.spec.checks.iter().flat_map(|checks| &checks.unhealthy_node_conditions);
        let found = limits.filter_map(|limit| {
            let found = node.condition(&limit.type_).filter(|found| found.status == limit.status)?;
            Some((limit, found.since?))
        });
        too_long("UnhealthyNode", "Node", found, now)
    }

    fn by_own_conditions(&self, own: &[Condition], now: Timestamp) -> Health {
        let limits = self.check.spec.checks.iter().flat_map(|checks| &checks.unhealthy_machine_conditions);
        let found = limits.filter_map(|limit| {
            let found = condition(own, &limit.type_).filter(|found| found.status == limit.status)?;
            Some((limit, at(found)?))
        });
        too_long("UnhealthyMachine", "Machine", found, now)
    }
}

/// What follows from conditions that are as they should not be, since when.
fn too_long<'a>(
    reason: &'static str,
    whose: &str,
    found: impl Iterator<Item = (&'a UnhealthyCondition, Timestamp)>,
    now: Timestamp,
) -> Health {
    let mut soonest = None;
    for (limit, since) in found {
        let allowed = Duration::from_secs(limit.timeout_seconds.into());
        let Some(left) = remaining(since, allowed, now) else {
            let UnhealthyCondition { type_, status, .. } = limit;
            let allowed = shown(allowed);
            return ill(
                reason,
                &format!("Condition {type_} on {whose} is reporting status {status} for more than {allowed}"),
            );
        };
        soonest = Some(soonest.map_or(left, |soonest: Duration| soonest.min(left)));
    }
    soonest.map_or(Health::Well, |left| Health::Pending(Some(left + SLACK)))
}

fn ill(reason: &'static str, why: &str) -> Health {
    Health::Ill(Fact::no(CONDITION, reason, format!("Health check failed: {why}")))
}

fn at(condition: &Condition) -> Option<Timestamp> {
    condition.last_transition_time.parse().ok()
}

/// How long it still is until more time than this has passed; `None` if it has.
fn remaining(since: Timestamp, limit: Duration, now: Timestamp) -> Option<Duration> {
    let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    (passed <= limit).then(|| limit.saturating_sub(passed))
}

/// A duration as Go writes it.
fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn condition_at(type_: &str, status: &str, at: &str) -> Value {
        json!({"type": type_, "status": status, "lastTransitionTime": format!("2026-01-01T{at}Z"), "reason": "", "message": ""})
    }

    fn machine(conditions: &[Value], annotation: Option<&str>) -> Machine {
        let annotations: serde_json::Map<String, Value> =
            annotation.iter().map(|key| ((*key).to_owned(), json!(""))).collect();
        serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": "m", "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations},
            "spec": {}, "status": {"nodeRef": {"name": "m"}, "conditions": conditions},
        }))
        .unwrap()
    }

    fn cluster(initialized: &str) -> Cluster {
        let conditions = [
            condition_at("InfrastructureReady", "True", "00:00:00"),
            condition_at("ControlPlaneInitialized", initialized, "00:05:00"),
        ];
        serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {}, "spec": {},
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    fn node(status: &str) -> Sight {
        let node = json!({"metadata": {}, "status": {"conditions": [condition_at("Ready", status, "01:00:00")]}});
        Sight::Node(Arc::new(crate::management::machine::seen(serde_json::from_value(node).unwrap())))
    }

    fn check_of(checks: &Value) -> MachineHealthCheck {
        serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck", "metadata": {},
            "spec": {"clusterName": "c", "selector": {}, "checks": checks},
        }))
        .unwrap()
    }

    #[track_caller]
    fn check(
        target: (&Value, &Machine, &Cluster, Option<&Sight>),
        now: &str,
        expected: Result<Option<u64>, (&str, &str)>,
    ) {
        let (checks, machine, cluster, node) = target;
        let check = check_of(checks);
        let target = Target { check: &check, machine, cluster, node };
        let health = target.health(format!("2026-01-01T{now}Z").parse().unwrap());
        let found = match &health {
            Health::Well => Ok(None),
            Health::Pending(wait) => Ok(Some(wait.map_or(0, |wait| wait.as_secs()))),
            Health::Ill(fact) => Err((fact.reason, fact.message.as_str())),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_machine_without_a_node_is_ill_when_it_had_time_enough() {
        let (young, started) =
            (machine(&[], None), machine(&[condition_at("InfrastructureReady", "True", "00:08:00")], None));
        let (yes, no) = (cluster("True"), cluster("False"));
        let slow = Err(("NodeStartupTimeout", "Health check failed: Node failed to report startup in 10m0s"));
        let (default, minute, never) =
            (json!({}), json!({"nodeStartupTimeoutSeconds": 60}), json!({"nodeStartupTimeoutSeconds": 0}));
        check((&default, &young, &no, None), "03:00:00", Ok(Some(0)));
        check((&default, &young, &yes, None), "00:15:00", Ok(Some(1)));
        check((&default, &young, &yes, None), "00:15:01", slow);
        check((&default, &started, &yes, None), "00:15:01", Ok(Some(180)));
        check((&default, &started, &yes, None), "00:18:01", slow);
        check((&minute, &started, &yes, None), "00:08:30", Ok(Some(31)));
        check((&never, &started, &yes, None), "09:00:00", Ok(Some(0)));
    }

    #[test]
    fn a_node_is_ill_that_has_been_in_a_bad_way_for_too_long() {
        let (machine, cluster) = (machine(&[], None), cluster("True"));
        let checks = json!({"unhealthyNodeConditions": [
            {"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}, {"type": "Ready", "status": "False", "timeoutSeconds": 60},
        ]});
        let (well, silent, broken) = (node("True"), node("Unknown"), node("False"));
        let on = |node| (&checks, &machine, &cluster, Some(node));
        let ill = |status: &str, time: &str| {
            format!("Health check failed: Condition Ready on Node is reporting status {status} for more than {time}")
        };
        check(on(&well), "09:00:00", Ok(None));
        check(on(&silent), "01:04:00", Ok(Some(61)));
        check(on(&silent), "01:05:01", Err(("UnhealthyNode", &ill("Unknown", "5m0s"))));
        check(on(&broken), "01:01:01", Err(("UnhealthyNode", &ill("False", "1m0s"))));
        check(on(&Sight::None), "01:00:00", Err(("NodeDeleted", "Health check failed: Node m has been deleted")));
    }

    #[test]
    fn people_and_the_conditions_of_a_machine_can_make_it_ill() {
        let (cluster, well) = (cluster("True"), node("True"));
        let marked = machine(&[], Some("cluster.x-k8s.io/remediate-machine"));
        let said = "Health check failed: marked for remediation via cluster.x-k8s.io/remediate-machine annotation";
        check((&json!({}), &marked, &cluster, Some(&well)), "00:00:00", Err(("HasRemediateAnnotation", said)));

        let checks =
            json!({"unhealthyMachineConditions": [{"type": "NodeReady", "status": "False", "timeoutSeconds": 30}]});
        let bad = machine(&[condition_at("NodeReady", "False", "02:00:00")], None);
        let said = "Health check failed: Condition NodeReady on Machine is reporting status False for more than 30s";
        check((&checks, &bad, &cluster, Some(&well)), "02:00:10", Ok(Some(21)));
        check((&checks, &bad, &cluster, Some(&well)), "02:00:31", Err(("UnhealthyMachine", said)));
    }
}
