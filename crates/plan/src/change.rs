//! What a change comes to: what sort of update it is, which stages it touches, and what each field does.
//!
//! One table ([`rule`]) says of every field of every kind that we write whether a change of it replaces machines, is made
//! where the object is, does nothing, or is refused, who it is to be blamed on, and why. [`classify`] compares what a
//! cluster is asked to be with what was observed and asks the table; planners and reports are its users, so that what is
//! told is what is done.

mod classic;
pub(crate) mod kubeadm_control_plane;
mod line;
mod machines;
mod packages;
mod rule;
pub(crate) mod topology;

use std::collections::BTreeSet;

use serde::Serialize;
use windlass_api::kind::cluster_update::UpdateEnd;
use windlass_api::name::UpdateId;
use windlass_api::version::KubernetesVersion;

use crate::gate::Blocked;
use crate::inventory::{ClusterState, Inventory, UpdateRecordState};
use crate::render::Scope;
use crate::step::Stage;
use crate::target::{Drive, NetworkTarget, PoolVersion, Target};

pub(crate) use rule::IMAGE;
pub use rule::{Rule, rule};

pub(crate) use line::lines;
pub(crate) use machines::{differing_templates, machine, new_pool, pool};

/// What a change comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[must_use = "whoever asks for a change wants to know what it comes to"]
pub struct Classification {
    /// What sort of update it is.
    pub kind: Kind,
    /// The stages that have something to do.
    pub stages: BTreeSet<Stage>,
    /// The fields that differ, object by object.
    pub changes: Vec<FieldChange>,
}

impl Classification {
    /// It as lines for people: what is replaced and which field is guilty, and what is changed in place.
    pub fn lines(&self) -> Vec<String> {
        lines(&self.changes)
    }
}

/// What sort of update a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// None: nothing differs.
    Nothing,
    /// Versions stay what they are.
    Update,
    /// Versions are raised.
    Upgrade,
    /// A version would be lowered.
    Downgrade,
}

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// The stage in which it would be changed.
    pub stage: Stage,
    /// What the object is to the cluster: `control-plane/0`, `workers/default`.
    pub role: String,
    /// The kind of the object.
    pub kind: String,
    /// The field.
    pub field: String,
    /// What it is; nothing if it is not there, or not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it should be; nothing if it should not be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What the change does.
    pub effect: Effect,
    /// Who asks for it.
    pub origin: Origin,
    /// Why it does that.
    pub why: &'static str,
}

/// What a change of a field does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// Nothing happens to what is there.
    Nothing,
    /// Objects are changed where they are; no machine is replaced.
    InPlace,
    /// Something new is made.
    Adds,
    /// Machines are replaced.
    Replaces,
    /// It is never made.
    Refused,
}

/// Who asks for a change of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// Whoever owns the cluster.
    Owner,
    /// The release.
    Release,
    /// Nobody but this version of Windlass, which renders the field otherwise than the one that made the object.
    Windlass,
}

impl Origin {
    /// Who it is, for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "the cluster's owner",
            Self::Release => "the release",
            Self::Windlass => "default of this Windlass",
        }
    }
}

/// What the change from what was observed to the target comes to. While an update goes on, what it began from is part of
/// the answer: an upgrade stays one when only its last worker is left.
pub fn classify(target: &Target, inventory: &Inventory) -> Classification {
    // Names depend on the update; what is compared does not.
    let scope = Scope { target, update: UpdateId::new(&target.cluster.uid, 0) };
    let mut changes: Vec<FieldChange> = network(target, given(inventory)).collect();
    changes.extend(packages::choice(target, inventory));
    changes.extend(packages::objects(target, inventory));
    changes.extend(machines::all(&scope, inventory));
    let acts = |change: &&FieldChange| !matches!(change.effect, Effect::Nothing | Effect::Refused);
    let stages = changes.iter().filter(acts).map(|change| change.stage).collect();
    let kind = kind(target, inventory, &changes);
    Classification { kind, stages, changes }
}

/// Refuses what would change something that belongs to a cluster for as long as it lives. Versions and the size of the
/// control plane are refused by rules of their own.
pub(crate) fn refused_for_life(target: &Target, inventory: &Inventory) -> Option<Blocked> {
    network(target, given(inventory)).chain(packages::choice(target, inventory)).next().map(refusal)
}

/// Refuses another network than the one that a cluster has been given. Admission asks before anything is stored.
pub fn refused_network(target: &Target, given: &NetworkTarget) -> Option<Blocked> {
    network(target, Some(given)).next().map(refusal)
}

/// Refuses another network add-on than the one that the same cluster was to have before. Admission asks before anything is
/// stored.
pub fn refused_choice(before: &Target, target: &Target) -> Option<Blocked> {
    packages::other_choice(before, target).map(refusal)
}

fn refusal(change: FieldChange) -> Blocked {
    Blocked::FieldRefused {
        kind: change.kind,
        field: change.field,
        from: change.from.unwrap_or_default(),
        to: change.to.unwrap_or_default(),
        why: change.why.to_owned(),
    }
}

/// The network that a cluster has been given, if it says so.
fn given(inventory: &Inventory) -> Option<&NetworkTarget> {
    match &inventory.cluster {
        ClusterState::Present { network, .. } => network.as_ref(),
        ClusterState::Absent => None,
    }
}

/// The network inside of a cluster, which is given once.
fn network(target: &Target, observed: Option<&NetworkTarget>) -> impl Iterator<Item = FieldChange> {
    let (kind, parent) = match target.drive {
        Drive::Machines => ("TanzuKubernetesCluster", "spec.settings.network"),
        Drive::KubeadmControlPlane | Drive::Topology => ("Cluster", "spec.clusterNetwork"),
    };
    let fields = observed.into_iter().flat_map(|observed| {
        let wanted = &target.network;
        [
            ("pods.cidrBlocks", observed.pods.join(", "), wanted.pods.join(", ")),
            ("services.cidrBlocks", observed.services.join(", "), wanted.services.join(", ")),
            ("serviceDomain", observed.service_domain.clone(), wanted.service_domain.clone()),
        ]
    });
    fields.filter(|(_, from, to)| from != to).map(move |(field, from, to)| {
        let field = format!("{parent}.{field}");
        FieldChange::of(Stage::ControlPlane, "cluster", rule(kind, &field), &field, Some(from), Some(to))
    })
}

fn kind(target: &Target, inventory: &Inventory, changes: &[FieldChange]) -> Kind {
    if changes.iter().all(|change| change.effect == Effect::Nothing) {
        return Kind::Nothing;
    }
    let to = &target.release;
    let kubernetes = versions(target, inventory).map(|from| from.cmp(&to.kubernetes));
    let nodes = inventory.reachable().map(|workload| workload.nodes).unwrap_or_default();
    let distributions = nodes.iter().filter_map(|node| node.distribution.as_ref());
    let distributions = distributions.map(|from| from.cmp(&to.distribution));
    let began = began(inventory).map(|from| from.cmp(&to.kubernetes));
    let orders: Vec<_> = kubernetes.chain(distributions).chain(began).collect();
    if orders.iter().any(|order| order.is_gt()) {
        Kind::Downgrade
    } else if orders.iter().any(|order| order.is_lt()) {
        Kind::Upgrade
    } else {
        Kind::Update
    }
}

/// The versions of all that the target's version is meant for.
fn versions<'a>(target: &'a Target, inventory: &'a Inventory) -> impl Iterator<Item = &'a KubernetesVersion> {
    let machines = inventory.control_plane.machines.iter().map(|machine| &machine.version);
    let kubeadm = inventory.control_plane.kubeadm.iter().map(|kubeadm| &kubeadm.version);
    let topology = inventory.topology.iter().map(|topology| &topology.version);
    let rolled = target.pools.iter().filter(|pool| pool.version == PoolVersion::Release);
    let pools = rolled.filter_map(|pool| inventory.pools.get(&pool.name)).map(|pool| &pool.version);
    machines.chain(kubeadm).chain(topology).chain(pools)
}

/// What the update began from that goes on. One that cannot be read says nothing.
fn began(inventory: &Inventory) -> Option<KubernetesVersion> {
    let goes_on = |state| matches!(state, UpdateRecordState::Running | UpdateRecordState::Failed);
    let record = inventory.update.as_ref().filter(|record| goes_on(record.state))?;
    let UpdateEnd { kubernetes, .. } = &record.from;
    kubernetes.parse().ok()
}

impl FieldChange {
    /// A change, as the table has it.
    fn of(stage: Stage, role: &str, row: &Rule, field: &str, from: Option<String>, to: Option<String>) -> Self {
        Self {
            stage,
            role: role.to_owned(),
            kind: row.kind.to_owned(),
            field: field.to_owned(),
            from,
            to,
            effect: row.effect,
            origin: row.origin,
            why: row.why,
        }
    }

    /// The change of a version or a number, which may be another matter when it is lowered.
    fn ordered<T: Ord + ToString>(stage: Stage, role: &str, of: (&str, &str), from: &T, to: &T) -> Option<Self> {
        let row = rule(of.0, of.1);
        let mut change = Self::of(stage, role, row, of.1, Some(from.to_string()), Some(to.to_string()));
        if to < from {
            (change.effect, change.why) = (row.lowered, row.lowered_why);
        }
        (from != to).then_some(change)
    }
}

#[cfg(test)]
mod tests;
