//! A cluster of a class: what it is asked to be once admission has resolved it, and the packages that Windlass chooses then.
//!
//! Its controllers are let to work in the fork until the packages are chosen. No machine follows before they are in.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::release::{ClusterBootstrap, ClusterBootstrapTemplate, TanzuKubernetesRelease};
use windlass_api::kind::topology::{MachineDeploymentTopology, Topology};
use windlass_api::name::NamespacedName;
use windlass_plan::bootstrap::envelope::{ClassEnvelope, Enclosing};
use windlass_plan::bootstrap::{SYSTEM_NAMESPACE, Settling, Subject, listed};
use windlass_plan::hook;
use windlass_plan::resolve::hold::HoldBy;
use windlass_plan::step::Stage;
use windlass_sim::world::World;

use super::{Error, Foreseen};
use crate::assembly::Assembly;
use crate::drive::Drive;
use crate::rehearsal::ask::{Answer, Ask, ask};
use crate::rehearsal::{self, Request, Wish};
use crate::settle;

/// How long packages may take to be chosen, and how often it is looked whether they are.
const CHOSEN: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_secs(1);

/// What would become of a cluster of a class.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassPreview {
    /// The release that it has.
    pub from: String,
    /// The release that it would have.
    pub to: String,
    /// Its packages that would be others, in the order in which they come.
    pub packages: Vec<PackageChange>,
    /// What would become of its control plane.
    pub control_plane: Vec<String>,
    /// What would become of its pools.
    pub workers: Vec<String>,
    /// What may be done, and is reviewed and approved; nothing where that cannot be said.
    #[serde(skip)]
    pub envelope: Option<ClassEnvelope>,
    /// How its machines would be held until the packages are in.
    #[serde(skip)]
    pub hold_by: HoldBy,
}

/// A package that would be in another version, come or go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageChange {
    /// What people call it.
    pub name: String,
    /// Machines wait for it.
    pub core: bool,
    /// The version that it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The version that it would have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl ClassPreview {
    /// What a stage would change, in words.
    pub fn changes(&self, stage: Stage) -> Vec<String> {
        match stage {
            Stage::Packages => self.packages.iter().map(PackageChange::words).collect(),
            Stage::ControlPlane => self.control_plane.clone(),
            Stage::Workers => self.workers.clone(),
        }
    }

    /// What machines would wait for.
    pub fn waits(&self) -> Option<String> {
        let how = match self.hold_by {
            HoldBy::Pause => "the cluster is paused until then",
            HoldBy::Hooks => "Cluster API asks, and is told to wait",
        };
        let waits = self.packages.iter().any(|package| package.core) && self.from != self.to;
        waits.then(|| format!("the packages of {} come first: {how}", self.to))
    }
}

impl PackageChange {
    fn words(&self) -> String {
        let note = if self.core { "" } else { " (no machine waits for it)" };
        match (&self.from, &self.to) {
            (Some(from), Some(to)) => format!("{} {from} -> {to}{note}", self.name),
            (None, Some(to)) => format!("{} {to} is new{note}", self.name),
            (Some(from), None) => format!("{} {from} goes{note}", self.name),
            (None, None) => self.name.clone(),
        }
    }
}

/// A cluster and its packages.
struct Seen {
    cluster: Cluster,
    bootstrap: Option<ClusterBootstrap>,
}

impl Seen {
    fn of(world: &World, NamespacedName { namespace, name }: &NamespacedName) -> Option<Self> {
        let (namespace, name) = (namespace.as_str(), name.as_str());
        Some(Self { cluster: settle::read(world, namespace, name)?, bootstrap: settle::read(world, namespace, name) })
    }

    fn release(&self) -> &str {
        hook::release(&self.cluster).unwrap_or_default()
    }

    fn topology(&self) -> Topology {
        self.cluster.spec.topology.clone().unwrap_or_default()
    }

    /// Its packages in order: name, whether machines wait for it, and version.
    fn packages(&self) -> Vec<(String, bool, String)> {
        let packages = self.bootstrap.as_ref().map(|bootstrap| listed(&bootstrap.spec.packages).unwrap_or_default());
        let read = packages.into_iter().flatten();
        read.map(|package| (package.short().to_owned(), package.slot.is_core(), package.version())).collect()
    }

    fn is_chosen(&self) -> bool {
        let resolved = self.bootstrap.as_ref().and_then(|bootstrap| bootstrap.status.as_ref()?.resolved_tkr.as_deref());
        resolved == Some(self.release())
    }
}

/// Asks, and lets the controllers choose.
pub(super) async fn preview(assembly: &Assembly, request: &Request, drive: Drive) -> Result<Foreseen, Error> {
    let world = assembly.world();
    let gone = || Error::World(rehearsal::Error::Broken(request.cluster.clone()));
    let before = Seen::of(world, &request.cluster).ok_or_else(gone)?;
    let hold_by = drive.classes().unwrap_or_default();
    if request.ask == Wish::Delete {
        return Ok(Foreseen::OfClass(Box::new(deleted(&before, hold_by))));
    }
    let mut asked = None;
    let asking = async {
        if let Answer::Refused { why } = ask(world, &request.cluster, drive, &Ask::Change(&request.ask)).await? {
            return Ok(Some(why));
        }
        asked = Seen::of(world, &request.cluster).map(|asked| asked.cluster);
        let mut left = CHOSEN.as_secs() / LOOK.as_secs();
        while left > 0 && Seen::of(world, &request.cluster).is_some_and(|seen| !seen.is_chosen()) {
            tokio::time::sleep(LOOK).await;
            left -= 1;
        }
        Ok::<Option<String>, rehearsal::Error>(None)
    };
    let refused = tokio::select! {
        biased;
        asked = asking => asked?,
        () = assembly.run(std::future::pending()) => return Err(gone()),
    };
    if let Some(why) = refused {
        return Ok(Foreseen::Refused { why });
    }
    let after = Seen::of(world, &request.cluster).ok_or_else(gone)?;
    let envelope = asked.and_then(|asked| enclosed(world, &asked, before.bootstrap.as_ref()));
    Ok(Foreseen::OfClass(Box::new(ClassPreview { envelope, ..compared(&before, &after, hold_by) })))
}

/// What may be done: as admission and the controllers find it, before anything is written.
fn enclosed(world: &World, cluster: &Cluster, bootstrap: Option<&ClusterBootstrap>) -> Option<ClassEnvelope> {
    let subject = Subject::of(cluster).ok().flatten()?;
    let names = Settling::templates(&subject, bootstrap).into_iter();
    let found = |name: String| {
        let template: ClusterBootstrapTemplate = settle::read(world, SYSTEM_NAMESPACE, &name)?;
        Some((name, template))
    };
    let templates: BTreeMap<String, ClusterBootstrapTemplate> = names.filter_map(found).collect();
    let release: Option<TanzuKubernetesRelease> = settle::read(world, "", subject.release.as_str());
    let enclosing =
        Enclosing { cluster, subject: &subject, release: release.as_ref(), templates: &templates, bootstrap };
    ClassEnvelope::of(&enclosing).ok()
}

fn compared(before: &Seen, after: &Seen, hold_by: HoldBy) -> ClassPreview {
    let had: BTreeMap<String, String> = before.packages().into_iter().map(|(name, _, has)| (name, has)).collect();
    let wanted = after.packages();
    let mut packages: Vec<PackageChange> = Vec::new();
    for (name, core, to) in &wanted {
        let from = had.get(name).cloned();
        if from.as_ref() != Some(to) {
            packages.push(PackageChange { name: name.clone(), core: *core, from, to: Some(to.clone()) });
        }
    }
    let gone = before.packages().into_iter().filter(|(name, ..)| !wanted.iter().any(|(known, ..)| known == name));
    packages.extend(gone.map(|(name, core, from)| PackageChange { name, core, from: Some(from), to: None }));
    let (old, new) = (before.topology(), after.topology());
    let machines = old.control_plane.replicas.unwrap_or(1);
    let mut control_plane = Vec::new();
    if old.version != new.version {
        control_plane.push(format!("{}: {} -> {}", replaced(machines), old.version, new.version));
    } else if values(&old) != values(&new) {
        control_plane.push(format!("{}: other values of the class", replaced(machines)));
    }
    control_plane.extend(resized(old.control_plane.replicas, new.control_plane.replicas));
    let pools = new.workers.machine_deployments.iter().flat_map(|pool| {
        let known = old.workers.machine_deployments.iter().find(|known| known.name == pool.name);
        pool_changes(known, pool, (&old, &new))
    });
    let removed = old.workers.machine_deployments.iter().filter(|known| {
        let stays = |pool: &MachineDeploymentTopology| pool.name == known.name;
        !new.workers.machine_deployments.iter().any(stays)
    });
    let workers = pools.chain(removed.map(|pool| format!("pool {}: goes", pool.name))).collect();
    let (from, to) = (before.release().to_owned(), after.release().to_owned());
    ClassPreview { from, to, packages, control_plane, workers, envelope: None, hold_by }
}

/// What the class is told, without what Windlass tells it of releases.
fn values(topology: &Topology) -> Vec<(&str, &serde_json::Value)> {
    let variables = topology.variables.iter().map(|variable| (variable.name.as_str(), &variable.value));
    variables.filter(|(name, _)| *name != windlass_plan::resolve::cluster::VARIABLE).collect()
}

fn pool_changes(
    known: Option<&MachineDeploymentTopology>,
    pool: &MachineDeploymentTopology,
    (old, new): (&Topology, &Topology),
) -> Vec<String> {
    let name = &pool.name;
    let Some(known) = known else {
        return vec![format!("pool {name}: is new, {} machines of {}", pool.replicas.unwrap_or(1), new.version)];
    };
    let machines = known.replicas.unwrap_or(1);
    let own = |pool: &MachineDeploymentTopology| {
        let variables = pool.variables.clone().map(|variables| variables.overrides).unwrap_or_default();
        let is_ours = |name: &str| name == windlass_plan::resolve::cluster::VARIABLE;
        variables.into_iter().filter(|variable| !is_ours(&variable.name)).collect::<Vec<_>>()
    };
    let mut changes = Vec::new();
    if old.version != new.version {
        changes.push(format!("pool {name}: {}: {} -> {}", replaced(machines), old.version, new.version));
    } else if values(old) != values(new) || own(known) != own(pool) {
        changes.push(format!("pool {name}: {}: other values of the class", replaced(machines)));
    }
    changes.extend(resized(known.replicas, pool.replicas).map(|sizes| format!("pool {name}: {sizes}")));
    changes
}

fn replaced(machines: u32) -> String {
    if machines == 1 { "1 machine is replaced".to_owned() } else { format!("{machines} machines are replaced") }
}

fn resized(old: Option<u32>, new: Option<u32>) -> Option<String> {
    let (old, new) = (old.unwrap_or(1), new.unwrap_or(1));
    (old != new).then(|| format!("{old} -> {new} machines"))
}

/// The end of a cluster: packages that were added go first, workers next, and the control plane last.
fn deleted(seen: &Seen, hold_by: HoldBy) -> ClassPreview {
    let added = seen.packages().into_iter().filter(|(_, core, _)| !core);
    let topology = seen.topology();
    let goes = |machines: Option<u32>| format!("{} of its machines go", machines.unwrap_or(1));
    ClassPreview {
        from: seen.release().to_owned(),
        to: seen.release().to_owned(),
        packages: added.map(|(name, core, from)| PackageChange { name, core, from: Some(from), to: None }).collect(),
        control_plane: vec![goes(topology.control_plane.replicas)],
        workers: topology
            .workers
            .machine_deployments
            .iter()
            .map(|pool| format!("pool {}: {}", pool.name, goes(pool.replicas)))
            .collect(),
        envelope: None,
        hold_by,
    }
}
