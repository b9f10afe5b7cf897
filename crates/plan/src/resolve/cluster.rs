//! What is written into a cluster of a class once its release is known.
//!
//! What a part has on record stays as long as it is still what is asked for: neither a newer patch nor the end of a release
//! changes a cluster that nobody touched. The control plane decides for all: where it keeps its release, pools that are new
//! or were changed get that release and no other.

mod data;

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::topology::{ClusterClass, MachineDeploymentTopology, Topology, Variable};
use windlass_api::kind::wcp::TemplateMetadata;
use windlass_api::name::{ObjectName, PoolName, ReleaseName};
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_api::{annotation, label};

use super::catalogue::{Catalogue, Malformed, Problem, Subject};
use super::query::{self, Part, PartQuery, Query, Unresolved};
use super::selector::{Selector, SelectorError};

pub use data::{Entry, ReleaseData, VARIABLE};

/// What a cluster of a class asks for, and what it has on record.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// What its version begins with.
    pub version: VersionPrefix,
    /// The labels of its release.
    pub releases: Selector,
    /// The release that it was resolved to before.
    pub current: Option<ReleaseName>,
    /// The control plane.
    pub control_plane: PartAsked,
    /// The pools of workers.
    pub pools: BTreeMap<PoolName, PartAsked>,
    /// Where all images come from, in place of where the release says.
    pub image_repository: Option<String>,
}

/// What a part of a cluster asks for, and what it has on record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PartAsked {
    /// The labels of its image.
    pub os_images: Selector,
    /// What it was told before.
    pub recorded: ReleaseData,
}

/// What is to be written into a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The label with the release.
    pub release: ReleaseName,
    /// `spec.topology.version`, whatever was typed.
    pub kubernetes: KubernetesVersion,
    /// What each part is told.
    pub parts: BTreeMap<Part, ResolvedPart>,
}

/// What a part of a cluster is told.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedPart {
    /// Its image.
    pub os_image: ObjectName,
    /// The variable: an entry for each version that machines of the part may have while it is rolled, the new beside the old.
    pub data: Map<String, Value>,
}

impl Asked {
    /// Reads what a cluster asks for. `None` if there is nothing to resolve: it has no topology, or neither it nor its class has
    /// asked for it.
    pub fn read(cluster: &Cluster, class: &ClusterClass) -> Result<Option<Self>, Malformed> {
        let Some(topology) = cluster.spec.topology.as_ref() else { return Ok(None) };
        let own = wanted_releases(cluster.metadata.annotations.as_ref());
        let releases = own.or_else(|| wanted_releases(class.metadata.annotations.as_ref()));
        let Some(releases) = releases.map(str::to_owned) else { return Ok(None) };
        let subject = Subject { kind: "Cluster", name: cluster.metadata.name.as_deref().unwrap_or_default() };
        let current = cluster.metadata.labels.as_ref().and_then(|labels| labels.get(label::RELEASE.name));
        let current = current.map(|text| subject.name(&format!("metadata.labels[{}]", label::RELEASE), text));
        let version = topology.version.parse();
        let key = format!("metadata.annotations[{}]", annotation::RESOLVE_RELEASE);
        Ok(Some(Self {
            version: version
                .map_err(|error| subject.malformed("spec.topology.version", Problem::Version(Box::new(error))))?,
            releases: selector(subject, &key, &releases)?,
            current: current.transpose()?,
            control_plane: control_plane(subject, topology, class)?,
            pools: pools(subject, topology, class)?,
            image_repository: repository(topology),
        }))
    }

    /// Every part of it, as a query about releases of this version.
    pub fn whole(&self, version: &VersionPrefix) -> Query {
        let pools = self.pools.iter().map(|(name, pool)| (name.clone(), self.query(pool, version)));
        Query {
            control_plane: Some(self.query(&self.control_plane, version)),
            pools: pools.collect(),
            in_use: self.current.clone(),
        }
    }

    /// What a part has on record, if that is still what is asked for.
    fn settled<'a>(&'a self, part: &'a PartAsked, catalogue: &Catalogue) -> Option<&'a Entry> {
        let current = self.current.as_ref()?;
        let entry = part.recorded.of(current)?;
        // A release that is gone has no labels to ask; what it was chosen by is what it still has.
        let chosen = catalogue.release(current).is_none_or(|release| self.releases.matches(&release.labels));
        let same = self.version.matches(&version_of(current)?) && part.os_images.matches(&entry.labels);
        (same && chosen).then_some(entry)
    }

    fn part(&self, part: &Part) -> Option<&PartAsked> {
        match part {
            Part::ControlPlane => Some(&self.control_plane),
            Part::Pool(pool) => self.pools.get(pool),
        }
    }

    fn query(&self, part: &PartAsked, version: &VersionPrefix) -> PartQuery {
        PartQuery { version: version.clone(), releases: self.releases.clone(), os_images: part.os_images.clone() }
    }
}

/// Resolves what a cluster asks for.
pub fn resolve(asked: &Asked, catalogue: &Catalogue) -> Result<Resolved, Unresolved> {
    let mut query = Query { in_use: asked.current.clone(), ..Query::default() };
    let mut parts = BTreeMap::new();
    let mut kept = None;
    let keep = |part: &PartAsked, entry: &Entry| ResolvedPart {
        os_image: entry.os_image.clone(),
        data: part.recorded.written(),
    };
    if let Some(entry) = asked.settled(&asked.control_plane, catalogue) {
        parts.insert(Part::ControlPlane, keep(&asked.control_plane, entry));
        kept = Some(entry);
    } else {
        query.control_plane = Some(asked.query(&asked.control_plane, &asked.version));
    }
    // In full, so that it is the control plane's release and no other.
    let decided = kept.and_then(|entry| version_of(&entry.release)).map(VersionPrefix::from);
    for (name, pool) in &asked.pools {
        if let Some(entry) = asked.settled(pool, catalogue).filter(|_| kept.is_some()) {
            parts.insert(Part::Pool(name.clone()), keep(pool, entry));
        } else {
            let version = decided.as_ref().unwrap_or(&asked.version);
            query.pools.insert(name.clone(), asked.query(pool, version));
        }
    }
    let resolution = query::resolve(&query, catalogue)?;
    let chosen = resolution.as_ref().map(|found| (found.release.name.clone(), found.release.kubernetes.clone()));
    let Some((release, kubernetes)) =
        chosen.or_else(|| kept.map(|entry| (entry.release.clone(), entry.kubernetes.clone())))
    else {
        // Without a control plane on record there is a query, and an answer to it.
        return Err(Unresolved { parts: BTreeMap::new(), known: catalogue.versions(), malformed: Vec::new() });
    };
    for (found, (part, image)) in resolution.iter().flat_map(|found| found.os_images.iter().map(move |it| (found, it)))
    {
        let mut data = asked.part(part).map(|part| part.recorded.written()).unwrap_or_default();
        let entry = data::entry(found.release, image, asked.image_repository.as_deref());
        data.insert(found.release.kubernetes.to_string(), entry);
        parts.insert(part.clone(), ResolvedPart { os_image: image.name.clone(), data });
    }
    Ok(Resolved { release, kubernetes, parts })
}

/// Which releases clusters may have, by the annotations of a cluster or of its class. Nothing is resolved where neither says.
pub fn wanted_releases(annotations: Option<&BTreeMap<String, String>>) -> Option<&str> {
    annotations?.get(annotation::RESOLVE_RELEASE.name).map(String::as_str)
}

/// The version that is the name of a release.
fn version_of(release: &ReleaseName) -> Option<KubernetesVersion> {
    release.as_str().parse().ok()
}

fn selector(subject: Subject<'_>, key: &str, text: &str) -> Result<Selector, Malformed> {
    text.parse().map_err(|error: SelectorError| subject.malformed(key, Problem::Text(error.to_string())))
}

/// The selector of images in the annotations of a part, or of its class. Without one, every image fits.
fn os_images(
    subject: Subject<'_>,
    key: &str,
    own: Option<&TemplateMetadata>,
    class: Option<&TemplateMetadata>,
) -> Result<Selector, Malformed> {
    let annotated = |metadata: Option<&TemplateMetadata>| {
        metadata.and_then(|metadata| metadata.annotations.get(annotation::RESOLVE_OS_IMAGE.name).cloned())
    };
    let text = annotated(own).or_else(|| annotated(class)).unwrap_or_default();
    let key = format!("{key}.metadata.annotations[{}]", annotation::RESOLVE_OS_IMAGE);
    selector(subject, &key, &text)
}

fn control_plane(subject: Subject<'_>, topology: &Topology, class: &ClusterClass) -> Result<PartAsked, Malformed> {
    let (own, of_class) = (topology.control_plane.metadata.as_ref(), class.spec.control_plane.metadata.as_ref());
    Ok(PartAsked {
        os_images: os_images(subject, "spec.topology.controlPlane", own, of_class)?,
        recorded: recorded(subject, "spec.topology", topology, overrides(topology.control_plane.variables.as_ref()))?,
    })
}

fn pools(
    subject: Subject<'_>,
    topology: &Topology,
    class: &ClusterClass,
) -> Result<BTreeMap<PoolName, PartAsked>, Malformed> {
    let read = |pool: &MachineDeploymentTopology| {
        let key = format!("spec.topology.workers.machineDeployments[{}]", pool.name);
        let name = subject.name(&format!("{key}.name"), &pool.name)?;
        let of_class = class.spec.workers.machine_deployments.iter().find(|class| class.class == pool.class);
        let part = PartAsked {
            os_images: os_images(
                subject,
                &key,
                pool.metadata.as_ref(),
                of_class.and_then(|class| class.metadata.as_ref()),
            )?,
            recorded: recorded(subject, &key, topology, overrides(pool.variables.as_ref()))?,
        };
        Ok((name, part))
    };
    topology.workers.machine_deployments.iter().map(read).collect()
}

fn overrides(variables: Option<&windlass_api::kind::topology::VariableOverrides>) -> &[Variable] {
    variables.map(|variables| variables.overrides.as_slice()).unwrap_or_default()
}

/// What the control plane of a cluster was told of releases.
pub fn of_control_plane(cluster: &Cluster) -> Result<ReleaseData, Malformed> {
    let Some(topology) = cluster.spec.topology.as_ref() else { return Ok(ReleaseData::default()) };
    let subject = Subject { kind: "Cluster", name: cluster.metadata.name.as_deref().unwrap_or_default() };
    recorded(subject, "spec.topology", topology, overrides(topology.control_plane.variables.as_ref()))
}

/// What each part of a cluster was told of releases.
pub fn told(cluster: &Cluster) -> Result<BTreeMap<Part, ReleaseData>, Malformed> {
    let mut told = BTreeMap::from([(Part::ControlPlane, of_control_plane(cluster)?)]);
    let Some(topology) = cluster.spec.topology.as_ref() else { return Ok(told) };
    let subject = Subject { kind: "Cluster", name: cluster.metadata.name.as_deref().unwrap_or_default() };
    for pool in &topology.workers.machine_deployments {
        let key = format!("spec.topology.workers.machineDeployments[{}]", pool.name);
        let name = subject.name(&format!("{key}.name"), &pool.name)?;
        let recorded = recorded(subject, &key, topology, overrides(pool.variables.as_ref()))?;
        told.insert(Part::Pool(name), recorded);
    }
    Ok(told)
}

/// What a part was told: by itself, or with the whole.
fn recorded(subject: Subject<'_>, key: &str, topology: &Topology, own: &[Variable]) -> Result<ReleaseData, Malformed> {
    let own = own.iter().find(|variable| variable.name == VARIABLE).map(|variable| &variable.value);
    let Some(value) = own.or_else(|| topology.variable(VARIABLE)) else { return Ok(ReleaseData::default()) };
    ReleaseData::read(subject, &format!("{key}.variables[{VARIABLE}]"), value)
}

fn repository(topology: &Topology) -> Option<String> {
    topology.variable("imageRepository")?.get("host")?.as_str().filter(|host| !host.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests;
