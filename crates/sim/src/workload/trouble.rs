//! What goes wrong in a workload cluster by itself, as a scenario has it. What is no object in reality is a record, as machines
//! and members are.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windlass_api::name::NodeName;
use windlass_apiserver::store::{Key, Range, Store};

use super::record::{self, Machine, Record, Stage};
use super::seen::Truth;
use super::write::{NODES, PODS, set_condition};
use super::{Begins, Workload, lifecycle, pod, volumes};

/// The resource of [`Trouble`].
pub const TROUBLES: &str = "troubles.sim.windlass.dev";

/// Why a member of etcd must not be touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Alarm {
    /// It has no more space.
    NoSpace,
    /// Its data is not what the others have.
    Corrupt,
}

/// What is wrong with the member of etcd on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// The node.
    pub name: NodeName,
    /// It does not reach the others.
    #[serde(default)]
    pub cut_off: bool,
    /// What it has raised.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub alarms: BTreeSet<Alarm>,
}

impl Record for Trouble {
    const RESOURCE: &str = TROUBLES;

    fn node(&self) -> &NodeName {
        &self.name
    }
}

/// The nodes whose members of etcd do not reach the others.
pub(super) fn cut_off(store: &Store) -> BTreeSet<NodeName> {
    if store.count(TROUBLES) == 0 {
        return BTreeSet::new();
    }
    let all = record::all::<Trouble>(store).into_iter().filter(|trouble| trouble.cut_off);
    all.map(|trouble| trouble.name).collect()
}

/// The pod of a member. Its probe asks for a value, which takes a quorum: one that does not reach the others is not ready.
fn etcd_pod(node: &NodeName) -> Key {
    Key::new("kube-system", &format!("etcd-{node}"))
}

impl Workload {
    /// The alarms that members of etcd have raised, by the id of the member.
    pub fn alarms(&self) -> BTreeMap<u64, BTreeSet<Alarm>> {
        let store = self.0.server.store();
        let alarms = |trouble: Trouble| {
            let member = record::of::<record::Member>(store, &trouble.name)?;
            Some((member.id, trouble.alarms)).filter(|(_, alarms)| !alarms.is_empty())
        };
        record::all::<Trouble>(store).into_iter().filter_map(alarms).collect()
    }

    /// Whether etcd takes no more writes.
    pub(crate) fn is_out_of_space(&self) -> bool {
        self.0.server.store().count(TROUBLES) > 0
            && self.alarms().values().any(|alarms| alarms.contains(&Alarm::NoSpace))
    }

    /// The machines that the load balancer of the API leads to, and whether they are there.
    pub fn backends(&self) -> BTreeMap<NodeName, bool> {
        let is_backend = |machine: &Machine| machine.begins != Begins::Join && machine.stage == Stage::Done;
        let machines = record::all::<Machine>(self.0.server.store()).into_iter().filter(is_backend);
        machines.map(|machine| (machine.name, machine.on)).collect()
    }

    /// Those behind the load balancer that are gone.
    pub(crate) fn dead_backends(&self) -> Vec<NodeName> {
        self.backends().into_iter().filter(|(_, on)| !on).map(|(node, _)| node).collect()
    }

    /// A member of etcd more, which does not start.
    pub(crate) fn add_member(&self, node: &NodeName) {
        let _lock = self.lock();
        self.put(&self.new_member(node, false, false));
        self.settle();
    }

    /// The first member of etcd whose node is chosen, by its id. One that has not started is found, too.
    pub(crate) fn member(&self, chosen: impl Fn(&str) -> bool) -> Option<(u64, NodeName)> {
        let mut members = record::all::<record::Member>(self.0.server.store()).into_iter();
        members.find(|member| chosen(member.name.as_str())).map(|member| (member.id, member.name))
    }

    /// The member of etcd on a node does not reach the others.
    pub(crate) fn cut_off(&self, node: &NodeName) {
        self.trouble(node, |trouble| trouble.cut_off = true);
        self.change(PODS, &etcd_pod(node), |pod| pod::unready(pod, self.now()));
    }

    /// The member of etcd on a node raises an alarm.
    pub(crate) fn raise_alarm(&self, node: &NodeName, alarm: Alarm) {
        self.trouble(node, |trouble| {
            trouble.alarms.insert(alarm);
        });
    }

    /// All is well with the member of etcd on a node.
    pub(crate) fn clear_trouble(&self, node: &NodeName) {
        let lock = self.lock();
        let was_cut_off = cut_off(self.0.server.store()).contains(node);
        record::remove::<Trouble>(self.0.server.store(), node, self.0.clock.now());
        self.settle();
        drop(lock);
        if was_cut_off && self.running().contains_key(node) {
            self.change(PODS, &etcd_pod(node), |pod| pod::ready(pod, self.now()));
        }
    }

    fn trouble(&self, node: &NodeName, change: impl FnOnce(&mut Trouble)) {
        let _lock = self.lock();
        let store = self.0.server.store();
        if record::of::<record::Member>(store, node).is_none() {
            return;
        }
        let well = || Trouble { name: node.clone(), cut_off: false, alarms: BTreeSet::new() };
        let mut trouble = record::of::<Trouble>(store, node).unwrap_or_else(well);
        change(&mut trouble);
        self.put(&trouble);
        self.settle();
    }

    /// Another member leads than before, if there is one that can: the next by name.
    pub(crate) fn elect_another(&self) -> Option<NodeName> {
        let members = self.members().ok()?;
        let able = |member: &&super::Member| !member.learner && member.healthy;
        let leader = members.iter().find(|member| member.leader).map(|member| member.name.clone())?;
        let mut others: Vec<_> = members.iter().filter(able).filter(|member| !member.leader).collect();
        others.sort_by(|a, b| (a.name <= leader, &a.name).cmp(&(b.name <= leader, &b.name)));
        let next = others.first()?;
        let _lock = self.lock();
        for member in self.etcd().led_by(next.id).ok()? {
            self.put(&member);
        }
        NodeName::new(&next.name).ok()
    }

    /// A node is heard of, or is not any more.
    pub(crate) fn hear_of_node(&self, node: &NodeName, heard: bool) {
        let now = self.now();
        let key = Key::new("", node.as_str());
        let stored = self.0.server.store().get(NODES, &key);
        let stored = stored.and_then(|entry| serde_json::from_slice::<super::seen::Node>(&entry.json).ok());
        // One that is not ready yet, or is off, becomes ready or lost by itself.
        let changes = match stored.and_then(|node| node.heard()) {
            Some(Truth::True) => !heard,
            Some(Truth::Unknown) => heard && self.running().contains_key(node),
            Some(Truth::False) | None => false,
        };
        if changes {
            let (truth, status, reason, message) = if heard {
                (Truth::True, "True", "KubeletReady", "kubelet is posting ready status")
            } else {
                (Truth::Unknown, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
            };
            self.change(NODES, &key, |object| {
                set_condition(object, "Ready", status, reason, message, now);
                lifecycle::taint(object, truth, now);
            });
        }
    }

    /// The volumes that were not detached from nodes can be.
    pub(crate) fn let_volumes_go(&self, nodes: impl Fn(&str) -> bool) {
        volumes::retry(self, nodes);
    }

    /// A node has these labels too.
    pub(crate) fn label_node(&self, node: &NodeName, labels: &BTreeMap<String, String>) {
        self.change(NODES, &Key::new("", node.as_str()), |object| {
            for (key, value) in labels {
                object["metadata"]["labels"][key] = value.as_str().into();
            }
        });
    }

    /// Ends the pods that are chosen by name, as `namespace/name`, and node. They are.
    pub(crate) fn restart_pods(&self, chosen: impl Fn(&str, &str) -> bool) -> Vec<String> {
        let all = Range { namespace: None, after: None, limit: 0 };
        let mut restarted = Vec::new();
        for entry in self.0.server.store().list(PODS, all, |entry| !entry.deleting).entries {
            let object = entry.look();
            let node = object["spec"]["nodeName"].as_str().unwrap_or_default();
            let name = entry.key.to_string();
            if chosen(&name, node) {
                self.delete_pod(&entry.key);
                restarted.push(name);
            }
        }
        restarted
    }
}
