//! What goes wrong inside of a workload cluster: kubeadm, kubelets, etcd, volumes.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use windlass_api::name::{NamespacedName, NodeName};
use windlass_apiserver::store::Key;

use super::deed::Deed;
use super::kind::{EtcdFault, Fault, NodeFault};
use super::pattern::Whom;
use super::{Bite, Faults, Span};

impl Faults {
    /// The provider id that a node registers with, if it is not its own.
    pub(crate) fn provider_id(&self, cluster: &NamespacedName, node: &NodeName) -> Option<String> {
        let wrong = |fault: &Fault| matches!(fault, Fault::Node { how: NodeFault::WrongProviderId, .. });
        let index = self.bites_node(cluster, node, wrong, "registers with the provider id of another machine")?;
        let id = self.live()?.stream(index, &format!("provider id {cluster}/{node}")).uuid();
        Some(format!("vsphere://{id}"))
    }

    /// Whether a node gets the labels of its kubelet late: then they are given to it at their time.
    pub(crate) fn labels_late(
        &self,
        cluster: &NamespacedName,
        node: &NodeName,
        labels: &BTreeMap<String, String>,
    ) -> bool {
        let late = |fault: &Fault| match fault {
            Fault::Node { how: NodeFault::LateLabels { by }, .. } => Some(*by),
            _ => None,
        };
        self.labelled_late(cluster, node, labels, late, "registers without its labels")
    }

    /// Whether a node gets the labels of its role late: then they are given to it at their time.
    pub(crate) fn role_late(
        &self,
        cluster: &NamespacedName,
        node: &NodeName,
        labels: &BTreeMap<String, String>,
    ) -> bool {
        let late = |fault: &Fault| match fault {
            Fault::Node { how: NodeFault::LateRole { by }, .. } => Some(*by),
            _ => None,
        };
        self.labelled_late(cluster, node, labels, late, "registers without the label of its role")
    }

    fn labelled_late(
        &self,
        cluster: &NamespacedName,
        node: &NodeName,
        labels: &BTreeMap<String, String>,
        late: impl Fn(&Fault) -> Option<Span>,
        text: &str,
    ) -> bool {
        let bitten = self.bites_node(cluster, node, |fault| late(fault).is_some(), text);
        let (Some(index), Some(live)) = (bitten, self.live()) else { return false };
        if let Some(by) = live.scenario.faults.get(index).and_then(|injection| late(&injection.fault)) {
            let at = live.clock.now().checked_add(by.0).unwrap_or(Timestamp::MAX);
            let (cluster, node, labels) = (cluster.clone(), node.clone(), labels.clone());
            live.later(at, Deed::Labels { index, cluster, node, labels });
        }
        true
    }

    /// Whether kubeadm fails on a machine that has added its member to etcd. One that is made anew under the same name is another.
    pub(crate) fn join_fails(&self, cluster: &NamespacedName, node: &NodeName, provider_id: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let fails = |fault: &Fault| matches!(fault, Fault::JoinFails { .. });
        let who = Bitten { cluster: &cluster.to_string(), name: node.as_str(), kind: "Node", made_as: provider_id };
        self.bitten(&who, fails, "fails to join after it has added a member to etcd").is_some()
    }

    /// Whether the volumes of a node are not detached.
    pub(crate) fn volume_stays(&self, cluster: &NamespacedName, node: &NodeName) -> bool {
        let stays = |fault: &Fault| matches!(fault, Fault::VolumeStays { .. });
        self.bites_node(cluster, node, stays, "keeps its volumes").is_some()
    }

    /// Whether the containers of a pod end as soon as they have started.
    pub(crate) fn crash_loops(&self, cluster: &NamespacedName, pod: &Key) -> bool {
        if self.is_empty() {
            return false;
        }
        let crashes = |fault: &Fault| matches!(fault, Fault::CrashLoop { .. });
        let who = Bitten { cluster: &cluster.to_string(), name: &pod.to_string(), kind: "Pod", made_as: "" };
        self.bitten(&who, crashes, "ends as soon as it has started").is_some()
    }

    /// Why nobody else can be made to lead, if that is so.
    pub(crate) fn move_refused(&self, cluster: &NamespacedName) -> Option<String> {
        self.strikes_etcd(cluster, |how| *how == EtcdFault::MoveRefused, "refuses to move its leadership")?;
        Some("etcdserver: request timed out, leader transfer took too long".to_owned())
    }

    /// What is heard of a removal that was done, if it is not that.
    pub(crate) fn removal_unanswered(&self, cluster: &NamespacedName) -> Option<String> {
        self.strikes_etcd(cluster, |how| *how == EtcdFault::RemovalUnanswered, "removes a member and does not say so")?;
        Some("etcdserver: request timed out".to_owned())
    }

    /// By how much etcd answers late.
    pub fn etcd_delay(&self, cluster: &NamespacedName) -> Duration {
        let slow = |how: &EtcdFault| matches!(how, EtcdFault::Slow { .. });
        let Some(index) = self.strikes_etcd(cluster, slow, "answers late") else { return Duration::ZERO };
        match self.live().and_then(|live| live.scenario.faults.get(index)).map(|injection| &injection.fault) {
            Some(Fault::Etcd { how: EtcdFault::Slow { by }, .. }) => by.0,
            _ => Duration::ZERO,
        }
    }

    fn strikes_etcd(&self, cluster: &NamespacedName, wanted: impl Fn(&EtcdFault) -> bool, text: &str) -> Option<usize> {
        let live = self.live()?;
        let cluster = cluster.to_string();
        let meant = |fault: &Fault| match fault {
            Fault::Etcd { of, how } => of.clusters.matches(&cluster) && wanted(how),
            _ => false,
        };
        let mut meant = live.open().filter(|(_, injection)| meant(&injection.fault));
        let (index, _) = meant.find(|(index, injection)| live.strikes(*index, &injection.when))?;
        let text = format!("etcd of {cluster} {text}");
        live.say(index, &Bite { place: &cluster, cluster: &cluster, object: "etcd", text: &text });
        Some(index)
    }

    fn bites_node(
        &self,
        cluster: &NamespacedName,
        node: &NodeName,
        wanted: impl Fn(&Fault) -> bool,
        text: &str,
    ) -> Option<usize> {
        self.live()?;
        let who = Bitten { cluster: &cluster.to_string(), name: node.as_str(), kind: "Node", made_as: "" };
        self.bitten(&who, wanted, text)
    }

    /// The fault that bites something of a cluster now.
    fn bitten(&self, who: &Bitten<'_>, wanted: impl Fn(&Fault) -> bool, text: &str) -> Option<usize> {
        let live = self.live()?;
        let Bitten { cluster, name, kind, made_as } = *who;
        let meant = |fault: &Fault| wanted(fault) && whom(fault).is_some_and(|of| of.matches(cluster, name));
        let mut meant = live.open().filter(|(_, injection)| meant(&injection.fault));
        let object = format!("{cluster}/{name} {made_as}");
        let (index, _) = meant.find(|(index, injection)| live.holds(*index, &injection.when, &object))?;
        let (object, text) = (format!("{kind}/{name}"), format!("{name} {text}"));
        live.say_once(index, &Bite { place: cluster, cluster, object: &object, text: &text });
        Some(index)
    }
}

/// Something of a cluster that may be bitten.
struct Bitten<'a> {
    cluster: &'a str,
    name: &'a str,
    kind: &'a str,
    /// What tells it from others that had its name before; nothing where they count as one.
    made_as: &'a str,
}

/// Whom a fault is for, where it is for things of a cluster.
pub(super) fn whom(fault: &Fault) -> Option<&Whom> {
    match fault {
        Fault::Machine { of, .. }
        | Fault::Node { of, .. }
        | Fault::JoinFails { of }
        | Fault::Etcd { of, .. }
        | Fault::PodRestart { of, .. }
        | Fault::CrashLoop { of }
        | Fault::VolumeStays { of }
        | Fault::FinalizerStays { of }
        | Fault::Infrastructure { of, .. } => Some(of),
        Fault::Crash { .. }
        | Fault::Refusal { .. }
        | Fault::LostAnswer { .. }
        | Fault::Repetition { .. }
        | Fault::Delay { .. }
        | Fault::WatchEnds { .. }
        | Fault::BookmarksLost { .. }
        | Fault::Coalescing { .. }
        | Fault::StaleReplica { .. }
        | Fault::Lag { .. }
        | Fault::SplitLeadership { .. }
        | Fault::LeaseLost {}
        | Fault::WrongClock { .. }
        | Fault::AnyOrder {}
        | Fault::Disk { .. }
        | Fault::SlowDisk { .. }
        | Fault::Unreachable { .. }
        | Fault::LoadBalancer { .. }
        | Fault::Webhook { .. } => None,
    }
}
