//! What is done next with a control plane: one thing at a time, and only while all else is well.

use super::view::{Replica, View};
use super::{domain, remediation};

/// What is done next.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// Nothing: all is as it should be.
    Rest,
    /// The first machine is made.
    Begin,
    /// A machine is added.
    Grow,
    /// A machine is deleted.
    Shrink(&'a Replica),
    /// Something should be done, and must wait for this.
    Wait(Vec<String>),
}

/// What is done next. Machines are replaced before anything else; where one more than asked for is allowed, the new one comes
/// first.
pub(super) fn next<'a>(view: &'a View<'_>) -> Step<'a> {
    let (present, desired) = (view.replicas.len(), view.desired());
    if view.outdated().next().is_some() {
        return if present < desired.saturating_add(view.surge()) { grow(view) } else { shrink(view) };
    }
    match present {
        0 if desired > 0 => Step::Begin,
        _ if present < desired => grow(view),
        _ if present > desired => shrink(view),
        _ => Step::Rest,
    }
}

fn grow<'a>(view: &'a View<'_>) -> Step<'a> {
    if view.replicas.is_empty() {
        return Step::Begin;
    }
    match preflight(view, None) {
        blocking if blocking.is_empty() => Step::Grow,
        blocking => Step::Wait(blocking),
    }
}

fn shrink<'a>(view: &'a View<'_>) -> Step<'a> {
    let Some(chosen) = dispensable(view) else { return Step::Rest };
    match preflight(view, Some(chosen)) {
        blocking if blocking.is_empty() => Step::Shrink(chosen),
        blocking => Step::Wait(blocking),
    }
}

/// The machine that is missed least: one that somebody marked, else one that is not as it should be, of these one that is
/// unwell; and of those the oldest in the failure domain with the most of them.
fn dispensable<'a>(view: &'a View<'_>) -> Option<&'a Replica> {
    let ill = |replica: &&Replica| replica.unhealthy().next().is_some();
    let groups: [Vec<&Replica>; 5] = [
        view.outdated().filter(|replica| replica.is_marked()).collect(),
        view.replicas.iter().filter(|replica| replica.is_marked()).collect(),
        view.outdated().filter(ill).collect(),
        view.outdated().collect(),
        view.replicas.iter().collect(),
    ];
    let candidates = groups.into_iter().find(|group| !group.is_empty())?;
    domain::to_leave(view, &candidates)
}

/// What has to be over before a machine is added or deleted. The machine that goes need not be well.
fn preflight(view: &View<'_>, leaving: Option<&Replica>) -> Vec<String> {
    if let Some(version) = view.pending_version() {
        return vec![format!("waiting for a version upgrade to {version} to be propagated")];
    }
    if let Some(replica) = view.replicas.iter().find(|replica| replica.leaves()) {
        return vec![format!("waiting for Machine {} to be deleted", replica.name())];
    }
    if leaving.is_none() && remediation::in_progress(view.object).is_some() {
        return short_of_quorum(view).into_iter().collect();
    }
    let others = view.replicas.iter().filter(|replica| leaving.is_none_or(|leaving| leaving.name() != replica.name()));
    others.filter_map(unwell).collect()
}

/// Why the machine that takes the place of an ill one may not be made. Others may be ill, too: it is enough that etcd goes on.
fn short_of_quorum(view: &View<'_>) -> Option<String> {
    let Some(members) = view.sight.members() else {
        return view.initialized().then(|| "the members of etcd are not known".to_owned());
    };
    let healthy = members.iter().filter(|member| member.healthy && !member.learner).count();
    // The new member counts as soon as it is there, and may never start.
    let needed = members.len().div_ceil(2) + 1;
    (healthy < needed).then(|| format!("etcd has {healthy} healthy members, and {needed} are needed to add another"))
}

/// Why nothing may be done beside a machine.
fn unwell(replica: &Replica) -> Option<String> {
    let name = replica.name();
    if replica.node().is_none() {
        return Some(format!("Machine {name} does not have a corresponding Node yet (Machine.status.nodeRef not set)"));
    }
    let fact = replica.unhealthy().next()?;
    Some(format!("Machine {name} reports {} condition is {} ({})", fact.type_, fact.status, fact.message))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::{Value, json};
    use windlass_api::kind::cluster_api::{Cluster, ClusterStatus, Machine, MachineStatus, NodeReference};
    use windlass_api::kind::control_plane::KubeadmControlPlane;

    use super::super::health::Sight;
    use super::*;
    use crate::management::conditions::Fact;

    /// A machine by its name and what is said of it, with spaces between.
    fn replica(text: &str) -> Replica {
        let mut words = text.split(' ');
        let name = words.next().unwrap().to_owned();
        let mut machine = Machine::default();
        machine.metadata.name = Some(name.clone());
        let node = NodeReference { name };
        machine.status = Some(MachineStatus { node_ref: Some(node), ..MachineStatus::default() });
        let (mut outdated, mut component) = (Vec::new(), Fact::yes("EtcdMemberHealthy", "Healthy"));
        for word in words {
            match word {
                "old" => outdated.push("Version v1, v2 required".to_owned()),
                "ill" => component = Fact::no("EtcdMemberHealthy", "NotHealthy", "it is ill"),
                "new" => machine.status = None,
                "leaves" => {
                    machine.metadata.deletion_timestamp =
                        Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
                }
                "marked" => {
                    let mark = ("cluster.x-k8s.io/delete-machine".to_owned(), String::new());
                    machine.metadata.annotations = Some(BTreeMap::from([mark]));
                }
                domain => machine.spec.failure_domain = Some(domain.to_owned()),
            }
        }
        Replica { machine: Arc::new(machine), outdated, components: vec![component] }
    }

    #[track_caller]
    fn check(replicas: u32, surge: u32, machines: &[&str], expected: &str) {
        check_in(&json!({}), replicas, surge, machines, expected);
    }

    /// The failure domains of the cluster of all tests.
    fn domains() -> ClusterStatus {
        let domain = |name: &str| json!({"name": name, "controlPlane": name != "edge"});
        let domains = ["east", "edge", "north", "west"].map(domain);
        serde_json::from_value(json!({"failureDomains": domains})).unwrap()
    }

    #[track_caller]
    fn check_in(cluster: &Value, replicas: u32, surge: u32, machines: &[&str], expected: &str) {
        let mut object = KubeadmControlPlane::default();
        let strategy = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}});
        object.spec.replicas = Some(replicas);
        object.spec.version = "v2".to_owned();
        object.spec.rollout = serde_json::from_value(strategy).unwrap();
        let spec = serde_json::from_value(cluster.clone()).unwrap();
        let of = Cluster { spec, status: Some(domains()), ..Cluster::default() };
        let view = View {
            object: &object,
            cluster: &of,
            wish: Arc::new(Value::Null),
            replicas: machines.iter().map(|text| replica(text)).collect(),
            sight: Sight::Unreachable,
        };
        let step = match next(&view) {
            Step::Grow => format!("grow in {}", domain::of_next(&view).unwrap_or_default()),
            Step::Shrink(replica) => format!("delete {}", replica.name()),
            Step::Wait(why) => why.join("; "),
            other => format!("{other:?}").to_lowercase(),
        };
        assert_eq!(step, expected, "{machines:?}, {replicas} asked for");
    }

    #[test]
    fn machines_are_made_one_after_the_other() {
        check(3, 1, &[], "begin");
        check(3, 1, &["a east"], "grow in north");
        check(
            3,
            1,
            &["a", "b new"],
            "Machine b does not have a corresponding Node yet (Machine.status.nodeRef not set)",
        );
        check(3, 1, &["a", "b ill"], "Machine b reports EtcdMemberHealthy condition is False (it is ill)");
        check(3, 1, &["a", "b", "c"], "rest");
        check(0, 1, &[], "rest");
    }

    #[test]
    fn a_machine_is_replaced_after_its_replacement_has_come_or_before() {
        check(3, 1, &["a old", "b old", "c old"], "grow in east");
        check(3, 1, &["a old", "b old", "c old", "d"], "delete a");
        check(
            3,
            1,
            &["a old", "b old", "c old", "d new"],
            "Machine d does not have a corresponding Node yet (Machine.status.nodeRef not set)",
        );
        check(3, 1, &["a old leaves", "b old", "c old", "d"], "waiting for Machine a to be deleted");
        check(3, 0, &["a old", "b old", "c old"], "delete a");
        check(3, 0, &["b old", "c old"], "grow in east");
        check(1, 1, &["a old"], "grow in east");
        check(3, 1, &["a old leaves", "b", "c", "d"], "waiting for Machine a to be deleted");
    }

    #[test]
    fn what_is_missed_least_goes_first() {
        check(1, 1, &["a", "b", "c"], "delete a");
        check(1, 1, &["a", "b marked", "c"], "delete b");
        check(3, 1, &["a", "b old", "c old marked", "d"], "delete c");
        check(3, 1, &["a marked", "b old", "c old", "d"], "delete a");
        check(3, 1, &["a", "b old", "c old ill", "d"], "delete c");
        check(
            3,
            1,
            &["a", "b old", "c old ill", "d ill"],
            "Machine d reports EtcdMemberHealthy condition is False (it is ill)",
        );
        check(3, 1, &["a east old", "b west old", "c west old", "d east", "e west"], "delete b");
    }

    #[test]
    fn machines_are_made_where_the_fewest_are_that_stay() {
        check(5, 1, &["a east", "b north", "c west"], "grow in east");
        check(5, 1, &["a east", "b north", "c west", "d east"], "grow in north");
        // While they are replaced, the new ones are spread, and the old ones matter only among equals.
        check(3, 1, &["a east old", "b north old", "c west old"], "grow in east");
        check(3, 1, &["b north old", "c west old", "d east"], "grow in north");
        check(3, 1, &["a east old", "b east old", "c north old"], "grow in west");
    }

    #[test]
    fn machines_go_from_where_the_most_of_those_are_that_may_go() {
        check(3, 1, &["a east old", "b north old", "c west old", "d north"], "delete b");
        check(3, 1, &["a east old", "b west old", "c west old", "d east"], "delete b");
        // Those that are in no domain that there is, or in one that is not for control planes, go first.
        check(3, 1, &["a east old", "b south old", "c east old", "d east"], "delete b");
        check(3, 1, &["a east old", "b edge old", "c east old", "d east"], "delete b");
        check(1, 1, &["a east", "b", "c west"], "delete b");
    }

    #[test]
    fn nothing_is_done_before_the_version_of_a_topology_has_come() {
        let topology = json!({"topology": {"classRef": {"name": "c"}, "version": "v3"}});
        check_in(&topology, 3, 1, &["a old"], "waiting for a version upgrade to v3 to be propagated");
    }
}
