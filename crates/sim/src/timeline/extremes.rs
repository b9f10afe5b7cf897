//! How far things went: the most machines, the widest skew, the thinnest quorum, API servers that were away, pods that stayed.
//!
//! It is taken from what is true after each write, not from sentences, and counted from the fork of a World on.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::invariant::quorum;
use crate::truth::{Cluster, Fact};

/// How far things went in a cluster, from the fork of its World on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Extremes {
    /// How many machines there were at first.
    pub machines_before: u64,
    /// How many there were at most.
    pub machines_max: u64,
    /// The kubelet that was furthest behind an API server, where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<Skewed>,
    /// etcd when it had the least to spare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<Quorum>,
    /// How many API servers ended.
    pub api_servers_ended: u64,
    /// When no API server ran, though one had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Pods that a budget did not let go at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
}

/// A kubelet and an API server that are of different minors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skewed {
    /// When that began.
    pub at: Timestamp,
    /// By how many minors.
    pub minors: u64,
    /// Whose kubelet.
    pub node: String,
    /// Its version.
    pub kubelet: String,
    /// The version of the API server.
    pub api_server: String,
}

/// How many members of etcd count, answer and are needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quorum {
    /// When that began.
    pub at: Timestamp,
    /// Members that count.
    pub voters: u64,
    /// Those of them that answer.
    pub healthy: u64,
    /// How many have to.
    pub needed: u64,
}

/// A time without an API server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outage {
    /// When it began.
    pub from: Timestamp,
    /// When it was over; nothing if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
}

/// A pod that a budget did not let go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// The machine that had to wait for it.
    pub machine: String,
    /// The pod, as `namespace/name`.
    pub pod: String,
    /// The budget, as `namespace/name`.
    pub budget: String,
    /// Why, in the words of the API.
    pub why: String,
    /// From when on.
    pub from: Timestamp,
    /// Until when; nothing if it stayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
}

impl Quorum {
    /// How many members could be lost beside those that are.
    pub fn spare(&self) -> i64 {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        number(self.healthy) - number(self.needed)
    }
}

impl Held {
    /// How long it stayed, where it went at last.
    pub fn lasted(&self) -> Option<SignedDuration> {
        Some(self.to?.duration_since(self.from))
    }
}

/// What is measured, of one cluster.
#[derive(Debug, Clone, Default)]
pub(super) struct Gauge {
    extremes: Extremes,
    serving: BTreeSet<Box<str>>,
}

/// The gauges of all clusters, by `namespace/name`.
#[derive(Debug, Clone, Default)]
pub(super) struct Gauges(BTreeMap<Box<str>, Gauge>);

impl Gauges {
    /// They begin anew, from what is true now.
    pub(super) fn anew<'t>(clusters: impl Iterator<Item = (&'t str, &'t Cluster)>) -> Self {
        Self(clusters.map(|(name, cluster)| (name.into(), Gauge::new(cluster))).collect())
    }

    /// Takes note of a fact, after it became true.
    pub(super) fn take(&mut self, name: &str, cluster: &Cluster, fact: &Fact, at: Timestamp) {
        match self.0.get_mut(name) {
            Some(gauge) => gauge.take(cluster, fact, at),
            None => drop(self.0.insert(name.into(), Gauge::new(cluster))),
        }
    }

    /// How far things went in a cluster.
    pub(super) fn of(&self, name: &str) -> Extremes {
        self.0.get(name).map(|gauge| gauge.extremes.clone()).unwrap_or_default()
    }
}

impl Gauge {
    fn new(cluster: &Cluster) -> Self {
        let mut gauge = Self::default();
        gauge.extremes.machines_before = cluster.machines.len() as u64;
        gauge.extremes.machines_max = gauge.extremes.machines_before;
        gauge.extremes.quorum = measured(cluster, cluster.now);
        gauge.extremes.skew = skewed(cluster, cluster.now);
        gauge.serving = serving(cluster);
        gauge
    }

    fn take(&mut self, cluster: &Cluster, fact: &Fact, at: Timestamp) {
        match fact {
            Fact::MachineCreated { .. } => {
                self.extremes.machines_max = self.extremes.machines_max.max(cluster.machines.len() as u64);
            }
            Fact::MachineWaits { machine, message, .. } => self.waits(machine, message, at),
            Fact::MachineDeleted { machine, .. } => self.waits(machine, "", at),
            Fact::NodeRegistered { .. } | Fact::NodeGone { .. } | Fact::ComponentsChanged => {
                self.skews(cluster, at);
                self.serves(cluster, at);
            }
            Fact::PoweredOn { .. } | Fact::PoweredOff { .. } => {
                self.serves(cluster, at);
                self.votes(cluster, at);
            }
            Fact::MemberAdded { .. }
            | Fact::MemberStarted { .. }
            | Fact::MemberPromoted { .. }
            | Fact::MemberRemoved { .. }
            | Fact::MemberAlarmed { .. }
            | Fact::LeaderMoved { .. } => self.votes(cluster, at),
            _ => {}
        }
    }

    fn skews(&mut self, cluster: &Cluster, at: Timestamp) {
        let Some(now) = skewed(cluster, at) else { return };
        if self.extremes.skew.as_ref().is_none_or(|worst| now.minors > worst.minors) {
            self.extremes.skew = Some(now);
        }
    }

    fn votes(&mut self, cluster: &Cluster, at: Timestamp) {
        let Some(now) = measured(cluster, at).filter(|_| !cluster.is_ending()) else { return };
        if self.extremes.quorum.as_ref().is_none_or(|worst| now.spare() < worst.spare()) {
            self.extremes.quorum = Some(now);
        }
    }

    fn serves(&mut self, cluster: &Cluster, at: Timestamp) {
        let now = serving(cluster);
        self.extremes.api_servers_ended += self.serving.difference(&now).count() as u64;
        match (self.serving.is_empty(), now.is_empty()) {
            (false, true) if !cluster.is_ending() => self.extremes.outages.push(Outage { from: at, to: None }),
            (true, false) => {
                if let Some(open) = self.extremes.outages.last_mut().filter(|outage| outage.to.is_none()) {
                    open.to = Some(at);
                }
            }
            _ => {}
        }
        self.serving = now;
    }

    /// A machine that goes says which pods it waits for: those that are new in the list, and those that are not in it any more.
    fn waits(&mut self, machine: &str, message: &str, at: Timestamp) {
        let now: Vec<[String; 3]> = message.lines().flat_map(refusals).collect();
        let held = &mut self.extremes.held;
        for one in held.iter_mut().filter(|one| one.machine == machine && one.to.is_none()) {
            if now.iter().all(|[pod, ..]| *pod != one.pod) {
                one.to = Some(at);
            }
        }
        for [pod, budget, why] in now {
            let is_known = |one: &Held| one.machine == machine && one.pod == pod && one.to.is_none();
            if !held.iter().any(is_known) {
                held.push(Held { machine: machine.to_owned(), pod, budget, why, from: at, to: None });
            }
        }
    }
}

/// The pods that a line of Cluster API says were not let go, their budget, and why:
/// `* Pods shop/a, shop/b: cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs …`.
fn refusals(line: &str) -> Vec<[String; 3]> {
    let line = line.trim_start_matches(['*', ' ']);
    let pods = line.strip_prefix("Pods ").or_else(|| line.strip_prefix("Pod "));
    let Some((pods, why)) = pods.and_then(|rest| rest.split_once(": ")) else { return Vec::new() };
    let Some((_, detail)) = why.split_once("The disruption budget ") else { return Vec::new() };
    let name = detail.split([' ', ',', ';']).next().unwrap_or_default();
    let of = |pod: &str| {
        let namespace = pod.split_once('/').map_or("", |(namespace, _)| namespace);
        [pod.to_owned(), format!("{namespace}/{name}"), format!("the disruption budget {detail}")]
    };
    pods.split(", ").filter(|pod| pod.contains('/')).map(of).collect()
}

/// The API servers that run, by node.
fn serving(cluster: &Cluster) -> BTreeSet<Box<str>> {
    cluster.workload.serving().map(|(node, _)| node.into()).collect()
}

/// etcd as it is, once it has begun.
fn measured(cluster: &Cluster, at: Timestamp) -> Option<Quorum> {
    let workload = &cluster.workload;
    workload.voters().find(|(_, member)| member.started)?;
    let healthy = workload.voters().filter(|(node, member)| workload.is_healthy(node, member)).count();
    let voters = workload.voters().count();
    Some(Quorum { at, voters: voters as u64, healthy: healthy as u64, needed: quorum(voters) as u64 })
}

/// The kubelet that is furthest from an API server, in minors, where one is of another minor.
fn skewed(cluster: &Cluster, at: Timestamp) -> Option<Skewed> {
    let workload = &cluster.workload;
    let mut worst: Option<Skewed> = None;
    for (_, server) in workload.serving() {
        for (name, node) in &workload.nodes {
            let Some(kubelet) = node.kubelet.as_ref().filter(|_| workload.runs(name)) else { continue };
            let minors = server.minor().minor.abs_diff(kubelet.minor().minor);
            if minors > worst.as_ref().map_or(0, |worst| worst.minors) {
                let (node, kubelet, api_server) = (name.to_string(), kubelet.to_string(), server.to_string());
                worst = Some(Skewed { at, minors, node, kubelet, api_server });
            }
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_drain_names_pods_and_their_budget() {
        let line = "* Pods shop/web-1, shop/web-2: cannot evict pod as it would violate the pod's disruption budget. The \
                    disruption budget web needs 2 healthy pods and has 2 currently";
        let found = refusals(line);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1][..2], ["shop/web-2".to_owned(), "shop/web".to_owned()]);
        assert_eq!(found[0][2], "the disruption budget web needs 2 healthy pods and has 2 currently");
        assert_eq!(
            refusals("* Pod shop/web-1: deletionTimestamp set, but still not removed"),
            Vec::<[String; 3]>::new()
        );
        assert_eq!(refusals("Drain not completed yet"), Vec::<[String; 3]>::new());
    }

    #[test]
    fn a_pod_is_held_from_the_first_line_that_names_it_to_the_first_that_does_not() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let line = "* Pod shop/web-1: cannot evict pod as it would violate the pod's disruption budget. The disruption \
                    budget web needs 1 healthy pods and has 1 currently";
        let mut gauge = Gauge::default();
        for (second, message) in [(1, line), (2, line), (5, "Drain not completed yet"), (9, line)] {
            gauge.waits("m", message, at(second));
        }
        let lasted: Vec<_> = gauge.extremes.held.iter().map(Held::lasted).collect();
        assert_eq!(lasted, [Some(SignedDuration::from_secs(4)), None]);
        gauge.waits("m", "", at(10));
        assert!(gauge.extremes.held.iter().all(|held| held.to.is_some()));
    }
}
