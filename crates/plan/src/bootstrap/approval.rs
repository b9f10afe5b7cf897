//! Whether an upgrade of a cluster of a class may begin: where that has to be approved, or something was reviewed, nothing of its
//! packages is written before, and machines wait for packages.
//!
//! What is approved is an [envelope](ClassEnvelope), so that an agreement to another one is worth nothing. When it begins, that is put on
//! record, with who agreed. An upgrade that is given up needs nobody's approval.

use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::{Cause, ClusterUpdate, ClusterUpdateSpec, PoolEnd, UpdateEnd, UpdateState};
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::kind::tanzu::Machines;
use windlass_api::kind::topology::Topology;
use windlass_api::name::{ReleaseName, UpdateId};
use windlass_api::version::KubernetesVersion;
use windlass_api::{annotation, label};

use super::Blocked;
use super::course::Course;
use super::envelope::{ClassEnvelope, Enclosing};
use super::settle::resolved;
use crate::hook;
use crate::resolve::cluster::of_control_plane;
use crate::resolve::labelled::course::goes_on;

/// Whether upgrades of a cluster have to be approved before they begin.
pub fn is_required(cluster: &Cluster) -> bool {
    cluster.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(annotation::APPROVAL.name))
}

/// The envelope that was reviewed for the release that a cluster is asked to have.
pub fn reviewed(cluster: &Cluster) -> Option<&str> {
    let text = cluster.metadata.annotations.as_ref()?.get(annotation::REVIEWED_ENVELOPE.name)?;
    let (release, envelope) = text.split_once(' ')?;
    (hook::release(cluster) == Some(release)).then(|| envelope.split(' ').next().unwrap_or_default())
}

/// Whether nothing has been written yet for the release that a cluster is asked to have: its packages are those of another.
pub fn is_ahead(
    cluster: &Cluster,
    bootstrap: Option<&ClusterBootstrap>,
    control_plane: Option<&KubernetesVersion>,
) -> bool {
    let initialization = cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
    // What makes a cluster in the first place is no upgrade.
    if !initialization.is_some_and(|reached| reached.control_plane_initialized) {
        return false;
    }
    match bootstrap.and_then(resolved) {
        Some(resolved) => hook::release(cluster) != Some(resolved),
        None => is_held(cluster) || version(cluster).is_some_and(|version| Some(&version) != control_plane),
    }
}

fn is_held(cluster: &Cluster) -> bool {
    let annotations = cluster.metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(annotation::HELD_FOR_RELEASE.name))
}

/// What was observed.
#[derive(Debug, Clone, Copy)]
pub struct Considering<'a> {
    /// What its envelope is made of.
    pub enclosing: Enclosing<'a>,
    /// The version of Kubernetes that its control plane is told to have, where that is known.
    pub control_plane: Option<&'a KubernetesVersion>,
    /// The last of its updates that is on record.
    pub latest: Option<&'a ClusterUpdate>,
}

/// What comes of it.
#[derive(Debug, Clone, PartialEq)]
pub enum May {
    /// Nothing keeps it.
    GoOn,
    /// Somebody has agreed to just this. It is put on record, and then it begins.
    Begin(Box<ClusterUpdateSpec>),
    /// It has to be waited.
    Wait(Blocked),
}

/// Whether an upgrade may begin.
pub fn may_begin(seen: &Considering<'_>) -> May {
    let Enclosing { cluster, subject, bootstrap, .. } = seen.enclosing;
    let (is_required, reviewed) = (is_required(cluster), reviewed(cluster));
    let is_kept = !is_required && reviewed.is_none();
    if is_kept || !is_ahead(cluster, bootstrap, seen.control_plane) || seen.goes_back() {
        return May::GoOn;
    }
    let envelope = match ClassEnvelope::of(&seen.enclosing) {
        Ok(envelope) => envelope,
        Err(blocked) => return May::Wait(blocked),
    };
    let digest = envelope.digest();
    if is_begun(cluster, seen.latest) && seen.latest.is_some_and(|latest| latest.spec.envelope_digest == digest) {
        return May::GoOn;
    }
    let release = subject.release.to_string();
    if let Some(reviewed) = reviewed.filter(|reviewed| **reviewed != digest) {
        let (cluster, reviewed) = (subject.name.clone(), reviewed.to_owned());
        return May::Wait(Blocked::ReviewedOtherwise { cluster, release, reviewed, found: digest });
    }
    if !is_required {
        return May::GoOn;
    }
    let text = |key: &str| cluster.metadata.annotations.as_ref()?.get(key).cloned();
    if text(annotation::APPROVED.name).as_ref() == Some(&digest) {
        return May::Begin(Box::new(seen.record(digest)));
    }
    let name = subject.name.clone();
    May::Wait(if text(annotation::REJECTED.name).as_ref() == Some(&digest) {
        let by = text(annotation::DECIDED_BY.name).unwrap_or_else(|| "somebody".to_owned());
        let because = text(annotation::DECIDED_BECAUSE.name).unwrap_or_default();
        Blocked::Rejected { cluster: name, digest, by, because }
    } else {
        Blocked::ApprovalNeeded { cluster: name, digest, release }
    })
}

/// Whether the upgrade to the release that a cluster is asked to have is on record, and has not ended.
pub fn is_begun(cluster: &Cluster, latest: Option<&ClusterUpdate>) -> bool {
    let asked = hook::release(cluster).map(distribution);
    latest.is_some_and(|latest| goes_on(latest) && Some(&latest.spec.to.distribution) == asked.as_ref())
}

/// Whether the last upgrade on record is being given up: the cluster is asked to have the release again that it had before.
pub fn is_given_up(cluster: &Cluster, latest: Option<&ClusterUpdate>) -> bool {
    let asked = hook::release(cluster).map(distribution);
    latest.is_some_and(|latest| goes_on(latest) && Some(&latest.spec.from.distribution) == asked.as_ref())
}

impl Considering<'_> {
    /// Whether an upgrade that has begun is given up: the packages of what the machines have are brought in again. What its control plane
    /// is told to have, nobody can make up.
    fn goes_back(&self) -> bool {
        let Enclosing { cluster, bootstrap, .. } = self.enclosing;
        let Some(version) = version(cluster).filter(|version| Some(version) == self.control_plane) else {
            return false;
        };
        let from = bootstrap.and_then(resolved).and_then(|from| from.parse::<ReleaseName>().ok());
        let told = of_control_plane(cluster).ok().zip(from);
        let had = told.and_then(|(told, from)| told.of(&from).map(|entry| entry.kubernetes.clone()));
        is_given_up(cluster, self.latest) || had.is_some_and(|had| had != version)
    }

    /// The record of an upgrade that begins.
    fn record(&self, envelope_digest: String) -> ClusterUpdateSpec {
        let Enclosing { cluster, subject, bootstrap, .. } = self.enclosing;
        let topology = cluster.spec.topology.clone().unwrap_or_default();
        let ordinal = self.latest.map_or(1, |latest| latest.spec.ordinal + 1);
        let from = bootstrap.and_then(resolved).unwrap_or_default();
        let had = of_control_plane(cluster).ok().zip(from.parse::<ReleaseName>().ok());
        let had = had.and_then(|(told, from)| told.of(&from).map(|entry| entry.kubernetes.to_string()));
        let had = had.or_else(|| self.control_plane.map(ToString::to_string)).unwrap_or_default();
        let (from, to) =
            (end(&topology, from, had), end(&topology, subject.release.as_str(), topology.version.clone()));
        let summary = format!("release {} -> {}: packages, then machines", from.distribution, to.distribution);
        ClusterUpdateSpec {
            cluster: subject.name.to_string(),
            ordinal,
            id: UpdateId::new(&subject.revision.uid, ordinal).to_string(),
            from,
            to,
            envelope_digest,
            cause: Cause { summary, changes: Vec::new() },
            approval: None,
        }
    }
}

/// One end of an upgrade. What machines are like is the owner's.
fn end(topology: &Topology, release: &str, kubernetes: String) -> UpdateEnd {
    let machines = |count: Option<u32>| Machines { count: count.unwrap_or(1), ..Machines::default() };
    let pools = topology.workers.machine_deployments.iter();
    UpdateEnd {
        distribution: distribution(release),
        kubernetes,
        control_plane: machines(topology.control_plane.replicas),
        pools: pools.map(|pool| PoolEnd { name: pool.name.clone(), machines: machines(pool.replicas) }).collect(),
        ..UpdateEnd::default()
    }
}

/// A release as records have it: its version, where it is named after that.
fn distribution(release: &str) -> String {
    let version = release.parse::<ReleaseName>().ok().and_then(|name| name.version().ok());
    version.map_or_else(|| release.to_owned(), |version| version.to_string())
}

fn version(cluster: &Cluster) -> Option<KubernetesVersion> {
    cluster.spec.topology.as_ref()?.version.parse().ok()
}

/// How an upgrade on record has ended, if it has, and why, where nobody wanted that.
pub fn ended(course: &Course<'_>, latest: &ClusterUpdate) -> Option<(UpdateState, Option<String>)> {
    let asked = hook::release(course.cluster).filter(|_| goes_on(latest))?;
    let is = |end: &UpdateEnd| end.distribution == distribution(asked);
    if is(&latest.spec.to) {
        return course.reached().map(|_| (UpdateState::Succeeded, None));
    }
    if is(&latest.spec.from) {
        return course.is_back(asked).then_some((UpdateState::Aborted, None));
    }
    Some((UpdateState::Aborted, Some(format!("{asked} was asked for before it was done"))))
}

/// Whether only a record tells whether machines may go on without packages: their upgrade has to be approved, and its packages are not
/// chosen yet. Whoever wants to go on without packages has not approved anything.
pub fn needs_record(cluster: &Cluster, bootstrap: Option<&ClusterBootstrap>) -> bool {
    is_required(cluster) && bootstrap.and_then(resolved) != hook::release(cluster)
}

/// The label by which the updates of a cluster are found.
pub fn of_cluster(name: &str) -> String {
    format!("{}={name}", label::CLUSTER_NAME)
}
