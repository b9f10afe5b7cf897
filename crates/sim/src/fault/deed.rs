//! What happens at its time: faults that begin and end by themselves, and what people do.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::kind::Condition;
use windlass_api::kind::wcp::WCPMachine;
use windlass_api::name::{NamespacedName, NodeName};

use super::kind::{EtcdFault, Fault, MachineFault, NodeFault};
use super::node::whom;
use super::{Action, Bite, Faults, Live, Pattern, Span};
use crate::actor::Caller;
use crate::workload::{Alarm, Workload};
use crate::world::World;

/// Something that is done at its time.
#[derive(Debug, Clone)]
pub(crate) enum Deed {
    /// People do something: the action of this number.
    Act(usize),
    /// A fault begins.
    Begin(usize),
    /// A fault ends.
    End(usize),
    /// A node is lost, or found again; and so on.
    Flap { index: usize, cluster: NamespacedName, node: NodeName, lost: bool },
    /// Another member of etcd leads; and so on.
    Lead { index: usize, cluster: NamespacedName },
    /// A node gets its labels.
    Labels { index: usize, cluster: NamespacedName, node: NodeName, labels: BTreeMap<String, String> },
    /// A machine is gone.
    Vanish { index: usize, cluster: NamespacedName, node: NodeName, infrastructure: String },
}

impl Faults {
    /// Takes note of all that the scenario has a time for.
    pub(super) fn schedule(&self) {
        let Some(live) = self.live() else { return };
        for (index, injection) in live.scenario.faults.iter().enumerate() {
            if begins_by_itself(&injection.fault) {
                live.later(live.at(injection.when.after), Deed::Begin(index));
                if let Some(length) = injection.when.length() {
                    live.later(live.at(injection.when.after.and(Span(length))), Deed::End(index));
                }
            }
        }
        for (number, scheduled) in live.scenario.actions.iter().enumerate() {
            live.later(live.at(scheduled.at), Deed::Act(number));
        }
    }
}

/// Whether a fault happens at its time; others happen to whoever comes by.
fn begins_by_itself(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::StaleReplica { .. }
            | Fault::PodRestart { .. }
            | Fault::VolumeStays { .. }
            | Fault::Machine { how: MachineFault::Unlisted, .. }
            | Fault::Node { how: NodeFault::NotReady | NodeFault::Flaps { .. }, .. }
            | Fault::Etcd {
                how: EtcdFault::CutOff | EtcdFault::LeaderFlaps { .. } | EtcdFault::NoSpace | EtcdFault::Corrupt,
                ..
            }
    )
}

impl Live {
    /// Something is to be done.
    pub(super) fn later(&self, at: Timestamp, deed: Deed) {
        let mut state = self.state();
        state.deeds_ever += 1;
        let number = state.deeds_ever;
        state.deeds.insert((at, number), deed);
        drop(state);
        self.woken.notify_one();
    }

    fn fault(&self, index: usize) -> Option<&Fault> {
        self.scenario.faults.get(index).map(|injection| &injection.fault)
    }

    /// Whether a fault is over.
    fn is_over(&self, index: usize) -> bool {
        !self.is_open(index)
    }

    /// After this time, from now.
    fn soon(&self, span: Span) -> Timestamp {
        // A World in which something happens all the time would never come to its next moment.
        self.clock.now().checked_add(span.0.max(Duration::from_secs(1))).unwrap_or(Timestamp::MAX)
    }
}

/// Does everything at its time. Does not end.
pub(crate) async fn run(world: &World) {
    let Some(live) = world.faults().live() else { return std::future::pending().await };
    loop {
        let now = live.clock.now();
        let next = live.state().deeds.first_key_value().map(|(key, _)| *key);
        match next {
            Some(key) if key.0 <= now => {
                let deed = live.state().deeds.remove(&key);
                if let Some(deed) = deed {
                    perform(world, live, deed).await;
                }
            }
            Some((at, _)) => {
                let left = Duration::try_from(at.duration_since(now)).unwrap_or_default();
                // Woken or not: what is first now is looked for again.
                drop(tokio::time::timeout(left, live.woken.notified()).await);
            }
            None => live.woken.notified().await,
        }
    }
}

async fn perform(world: &World, live: &Live, deed: Deed) {
    match deed {
        Deed::Act(number) => act(world, live, number).await,
        Deed::Begin(index) => begin(world, live, index).await,
        Deed::End(index) => end(world, live, index).await,
        Deed::Flap { index, cluster, node, lost } => {
            let Some(workload) = world.workload(&cluster).filter(|_| !live.is_over(index)) else { return };
            lose(live, index, &workload, &node, lost);
            if let Some(Fault::Node { how: NodeFault::Flaps { every }, .. }) = live.fault(index) {
                live.later(live.soon(*every), Deed::Flap { index, cluster, node, lost: !lost });
            }
        }
        Deed::Lead { index, cluster } => {
            let Some(workload) = world.workload(&cluster).filter(|_| !live.is_over(index)) else { return };
            if let Some(node) = workload.elect_another() {
                live.count(index);
                say(live, index, &cluster, "Member", node.as_str(), "leads etcd now, and nobody asked for it");
            }
            if let Some(Fault::Etcd { how: EtcdFault::LeaderFlaps { every }, .. }) = live.fault(index) {
                live.later(live.soon(*every), Deed::Lead { index, cluster });
            }
        }
        Deed::Labels { index, cluster, node, labels } => {
            if let Some(workload) = world.workload(&cluster) {
                workload.label_node(&node, &labels);
                say(live, index, &cluster, "Node", node.as_str(), "has its labels now");
            }
        }
        Deed::Vanish { index, cluster, node, infrastructure } => {
            if let Some(workload) = world.workload(&cluster) {
                say(live, index, &cluster, "Node", node.as_str(), "is gone: its machine has vanished");
                workload.power_off(&node);
                list(world, &infrastructure, false).await;
            }
        }
    }
}

async fn act(world: &World, live: &Live, number: usize) {
    let Some(scheduled) = live.scenario.actions.get(number) else { return };
    let action = &scheduled.action;
    if let Action::AddMember { cluster, .. } | Action::RemoveMember { cluster, .. } = action {
        return change_members(world, live, cluster, action);
    }
    let (place, client) = match action.cluster() {
        None => ("management".to_owned(), Some(world.client_of(Caller::User))),
        Some(cluster) => (cluster.to_string(), world.workload(cluster).map(|workload| workload.client())),
    };
    let (object, text) = match client {
        None => (String::new(), format!("a user cannot do it: {action}: there is no cluster {place}")),
        Some(client) => match action.perform(client).await {
            Ok(object) => (object.clone(), format!("a user {action}: {object}")),
            Err(error) => (String::new(), format!("a user {action}, which is refused: {error}")),
        },
    };
    let cluster = action.cluster().map(ToString::to_string).unwrap_or_default();
    live.recorder.mark(live.clock.now(), &place, &cluster, &object, &text);
}

/// People change who is a member of etcd, which has no object.
fn change_members(world: &World, live: &Live, cluster: &NamespacedName, action: &Action) {
    let changed = match (world.workload(cluster), action) {
        (None, _) => Err(format!("there is no cluster {cluster}")),
        (Some(workload), Action::AddMember { name, .. }) => {
            workload.add_member(name);
            Ok(name.to_string())
        }
        (Some(workload), Action::RemoveMember { name, .. }) => remove_member(&workload, name),
        (Some(_), Action::Patch { .. } | Action::Delete { .. } | Action::Create { .. }) => return,
    };
    let (object, text) = match changed {
        Ok(node) => (format!("Member/{node}"), format!("a user {action}: {node}")),
        Err(why) => (String::new(), format!("a user {action}, which is refused: {why}")),
    };
    let place = cluster.to_string();
    live.recorder.mark(live.clock.now(), &place, &place, &object, &text);
}

fn remove_member(workload: &Workload, name: &Pattern) -> Result<String, String> {
    let (id, node) = workload.member(|node| name.matches(node)).ok_or_else(|| format!("there is no member {name}"))?;
    workload.remove_member(id).map_err(|error| error.to_string())?;
    Ok(node.to_string())
}

async fn begin(world: &World, live: &Live, index: usize) {
    let Some(fault) = live.fault(index) else { return };
    match fault {
        Fault::StaleReplica { caller, .. } => {
            live.replicas().insert(index, world.replica());
            let text = &format!("a replica of the management API stands still, from which the {caller} will read");
            live.say(index, &Bite { place: "management", cluster: "", object: caller.as_str(), text });
        }
        Fault::Node { how: NodeFault::Flaps { .. }, .. } => {
            for (workload, node) in chosen(world, live, index) {
                let cluster = workload.name().clone();
                live.later(live.clock.now(), Deed::Flap { index, cluster, node, lost: true });
            }
        }
        Fault::Node { .. } => {
            for (workload, node) in chosen(world, live, index) {
                lose(live, index, &workload, &node, true);
            }
        }
        Fault::Etcd { how: EtcdFault::LeaderFlaps { .. }, of } => {
            for cluster in clusters(world, &of.clusters) {
                live.later(live.clock.now(), Deed::Lead { index, cluster });
            }
        }
        Fault::Etcd { how, .. } => {
            for (workload, node) in chosen(world, live, index) {
                trouble(live, index, *how, &workload, &node);
            }
        }
        Fault::PodRestart { of, nodes } => {
            for cluster in clusters(world, &of.clusters) {
                let Some(workload) = world.workload(&cluster) else { continue };
                for pod in workload.restart_pods(|pod, node| of.names.matches(pod) && nodes.matches(node)) {
                    live.count(index);
                    say(live, index, &cluster, "Pod", &pod, "is restarted");
                }
            }
        }
        Fault::Machine { .. } => {
            for (workload, node) in chosen(world, live, index) {
                let text = "runs, and the provider says that there is no such machine";
                say(live, index, workload.name(), "Node", node.as_str(), text);
                list(world, &format!("{}/{node}", workload.name().namespace), false).await;
            }
        }
        _ => {}
    }
}

async fn end(world: &World, live: &Live, index: usize) {
    let Some(fault) = live.fault(index) else { return };
    match fault {
        Fault::StaleReplica { .. } => drop(live.replicas().remove(&index)),
        Fault::Node { .. } => {
            for (workload, node) in chosen(world, live, index) {
                lose(live, index, &workload, &node, false);
            }
        }
        Fault::Etcd { .. } => {
            for (workload, node) in chosen(world, live, index) {
                workload.clear_trouble(&node);
            }
        }
        Fault::VolumeStays { of } => {
            for cluster in clusters(world, &of.clusters) {
                if let Some(workload) = world.workload(&cluster) {
                    workload.let_volumes_go(|node| of.names.matches(node));
                }
            }
        }
        Fault::Machine { .. } => {
            for (workload, node) in chosen(world, live, index) {
                list(world, &format!("{}/{node}", workload.name().namespace), true).await;
            }
        }
        _ => {}
    }
}

/// The machines of workload clusters that a fault is for and bites.
fn chosen(world: &World, live: &Live, index: usize) -> Vec<(Workload, NodeName)> {
    let Some(injection) = live.scenario.faults.get(index) else { return Vec::new() };
    let Some(of) = whom(&injection.fault) else { return Vec::new() };
    let mut chosen = Vec::new();
    for cluster in clusters(world, &of.clusters) {
        let Some(workload) = world.workload(&cluster) else { continue };
        let nodes = workload.running().into_keys().filter(|node| of.names.matches(node.as_str()));
        let nodes: Vec<NodeName> =
            nodes.filter(|node| live.holds(index, &injection.when, &format!("{cluster}/{node}"))).collect();
        chosen.extend(nodes.into_iter().map(|node| (workload.clone(), node)));
    }
    chosen
}

fn clusters(world: &World, pattern: &Pattern) -> Vec<NamespacedName> {
    world.workloads().names().into_iter().filter(|cluster| pattern.matches(&cluster.to_string())).collect()
}

fn say(live: &Live, index: usize, cluster: &NamespacedName, kind: &str, name: &str, text: &str) {
    let cluster = &cluster.to_string();
    let (object, text) = (&format!("{kind}/{name}"), &format!("{name} {text}"));
    live.say(index, &Bite { place: cluster, cluster, object, text });
}

fn lose(live: &Live, index: usize, workload: &Workload, node: &NodeName, lost: bool) {
    let text = if lost { "is not heard of" } else { "is heard of again" };
    say(live, index, workload.name(), "Node", node.as_str(), text);
    workload.hear_of_node(node, !lost);
}

fn trouble(live: &Live, index: usize, how: EtcdFault, workload: &Workload, node: &NodeName) {
    // It is said before it is so: what follows from it comes after.
    let say = |text| say(live, index, workload.name(), "Member", node.as_str(), text);
    match how {
        EtcdFault::CutOff => {
            say("does not reach the other members of etcd");
            workload.cut_off(node);
        }
        EtcdFault::NoSpace => {
            say("has no space left for etcd");
            workload.raise_alarm(node, Alarm::NoSpace);
        }
        EtcdFault::Corrupt => {
            say("has other data in etcd than the others");
            workload.raise_alarm(node, Alarm::Corrupt);
        }
        EtcdFault::Slow { .. }
        | EtcdFault::LeaderFlaps { .. }
        | EtcdFault::MoveRefused
        | EtcdFault::RemovalUnanswered => {}
    }
}

/// The provider says that a machine is there, or that it is not.
async fn list(world: &World, machine: &str, is_there: bool) {
    let Some((namespace, name)) = machine.split_once('/') else { return };
    let api: Api<WCPMachine> = Api::namespaced(world.client(), namespace);
    let Ok(Some(found)) = api.get_opt(name).await else { return };
    let mut conditions: Vec<Condition> = found.status.map(|status| status.conditions).unwrap_or_default();
    let now = windlass_apiserver::time::format(world.settings().clock.now());
    let (status, reason, message) = if is_there {
        ("True", "Booted", "")
    } else {
        ("False", "VirtualMachineNotFound", "the provider has no such virtual machine")
    };
    for ready in conditions.iter_mut().filter(|condition| condition.type_ == "Ready") {
        (ready.status, ready.reason, ready.message) = (status.into(), reason.into(), message.into());
        ready.last_transition_time.clone_from(&now);
    }
    let patch: Value = json!({"status": {"conditions": conditions}});
    if let Err(error) = api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await {
        tracing::warn!(machine, %error, "what the provider says of a machine could not be written");
    }
}
