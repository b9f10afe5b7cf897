//! What is swept: a cluster of a size, and what is asked of it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::{Cluster, MachineDeployment};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::label;
use windlass_api::name::{NameError, NamespacedName};
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::durations::Durations;
use windlass_sim::fault::{Action, Scenario};
use windlass_sim::world::{self, World};

use crate::drive::{Drive, Manifest};
use crate::rehearsal::ask;
use crate::rehearsal::{self, Request, Verdict, Wish};
use crate::settle;

/// The releases of a sweep: what clusters are made with, what they are upgraded to, and one after that.
struct Releases {
    from: &'static str,
    to: &'static str,
    later: &'static str,
}

const OF_MACHINES: Releases = Releases { from: "v1.15.5", to: "v1.16.7", later: "v1.17.4" };
/// By their labels, as people ask a Cluster of a class for one.
const OF_CLASSES: Releases =
    Releases { from: "v1.24.9---vmware.1-tkg.1", to: "v1.25.7---vmware.2-tkg.1", later: "v1.26.5---vmware.2-tkg.1" };
/// By their labels.
const OF_LABELS: Releases = Releases { from: "35.2.0", to: "36.1.0", later: "36.2.0" };
/// The version of Kubernetes that clusters of a class are made with.
const FROM_KUBERNETES: &str = "v1.24";
/// Other machines than clusters are made with.
const OTHER_CLASS: &str = "best-effort-large";
/// The Package of the network in the release that clusters of a class are upgraded to, and its image.
const NETWORK: &str = "tkg-system/antrea.tanzu.vmware.com.1.9.0+vmware.2-tkg.1-advanced";
const NETWORK_REPOSITORY: &str = "projects.registry.vmware.com/tkg/packages/core/antrea";
pub(super) const NETWORK_IMAGE: &str = "v1.9.0_vmware.2-tkg.1-advanced";
/// The cluster that everything is about.
const CLUSTER: &str = "my-tkc";
/// The one of a class.
const CLUSTER_OF_CLASS: &str = "wl";
/// The classic one.
const CLASSIC_CLUSTER: &str = "shop";
/// What it is made of.
const CLASSIC: &str = include_str!("../../../../deploy/examples/release-by-label.yaml");
/// When it is made: 2026 begins.
const FOUNDED: Timestamp = Timestamp::constant(1_767_225_600, 0);
/// When something is asked of it: a day later, when nothing moves any more.
const LATER: Timestamp = Timestamp::constant(1_767_225_600 + 24 * 60 * 60, 0);
/// Four attempts of a quarter of an hour, twice, and what goes wrong before.
const DEADLINE: Duration = Duration::from_secs(4 * 60 * 60);

/// How many machines a cluster has: `3+3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct Size {
    /// In the control plane.
    pub control_plane: u32,
    /// Beside it.
    pub workers: u32,
}

/// A text that is no size.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is no size: write it as 3+3, machines of the control plane and workers")]
pub struct SizeError(String);

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let sides = text.split_once('+').map(|(left, right)| (left.parse().ok(), right.parse().ok()));
        match sides {
            Some((Some(control_plane @ 1..), Some(workers))) => Ok(Self { control_plane, workers }),
            _ => Err(SizeError(text.to_owned())),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.control_plane, self.workers)
    }
}

impl From<Size> for String {
    fn from(size: Size) -> Self {
        size.to_string()
    }
}

/// What is asked of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// The next release.
    Upgrade,
    /// That it is made.
    Create,
    /// One worker more.
    Scale,
    /// Other machines.
    Class,
    /// That it goes.
    Delete,
}

impl Change {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Upgrade, Self::Create, Self::Scale, Self::Class, Self::Delete];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upgrade => "upgrade",
            Self::Create => "create",
            Self::Scale => "scale",
            Self::Class => "class",
            Self::Delete => "delete",
        }
    }
}

/// A text that is no change.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("nothing is called {0:?} that can be asked of a cluster: try upgrade, create, scale, class or delete")]
pub struct ChangeError(String);

impl FromStr for Change {
    type Err = ChangeError;

    fn from_str(text: &str) -> Result<Self, ChangeError> {
        Self::ALL.into_iter().find(|change| change.as_str() == text).ok_or_else(|| ChangeError(text.to_owned()))
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// There is nothing to sweep.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// There is no runtime.
    #[error("make a World to sweep")]
    Begin(#[source] std::io::Error),
    /// There is no World.
    #[error("make a World to sweep")]
    World(#[source] Box<world::Error>),
    /// Its cluster has no name.
    #[error("name the cluster that is to be swept")]
    Name(#[source] NameError),
    /// Its cluster is written wrongly.
    #[error("write down the cluster that is to be swept")]
    Manifest(#[source] serde_json::Error),
    /// The example is not to be read.
    #[error("read the example of a classic cluster: {0}")]
    Example(String),
    /// There is no cluster.
    #[error("make the cluster of {size} that is to be swept")]
    Rehearse {
        /// Its size.
        size: Size,
        /// Why.
        #[source]
        source: Box<rehearsal::Error>,
    },
    /// There is none that works.
    #[error("the cluster of {size} that is to be swept was not made: {verdict}")]
    NotThere {
        /// Its size.
        size: Size,
        /// What became of it.
        verdict: Verdict,
    },
}

/// A World, and what is asked of a cluster in it.
pub struct Subject {
    /// Where every run starts.
    pub start: World,
    /// What is asked.
    pub request: Request,
    /// The sort of cluster.
    pub drive: Drive,
    /// The cluster that is to be made; nothing where it is there already.
    pub create: Option<Manifest>,
}

impl Subject {
    /// Something that is asked of a cluster that is there.
    pub fn new(start: World, request: Request) -> Self {
        let drive = Drive::of(&start, &request.cluster, request.hold_by);
        Self { start, request, drive, create: None }
    }

    /// A cluster of a size, made for this, and what is asked of it.
    pub fn make(drive: Drive, change: Change, size: Size, seed: Seed) -> Result<Self, SubjectError> {
        let name = match drive {
            Drive::Machines => CLUSTER,
            Drive::Topology(_) => CLUSTER_OF_CLASS,
            Drive::Label => CLASSIC_CLUSTER,
        };
        let cluster: NamespacedName = format!("default/{name}").parse().map_err(SubjectError::Name)?;
        let empty = empty(seed)?;
        let wanted = manifest(drive, &cluster, size)?;
        let asking = |wish: Wish, at: Timestamp| Request {
            deadline: DEADLINE,
            hold_by: drive.classes().unwrap_or_default(),
            ..Request::asking(cluster.clone(), wish, seed, at)
        };
        if change == Change::Create {
            let request = asking(Wish::Nothing, FOUNDED);
            return Ok(Self { drive, create: Some(wanted), ..Self::new(empty, request) });
        }
        let created = rehearsal::create(&empty, &asking(Wish::Nothing, FOUNDED), wanted);
        let created = created.map_err(|source| SubjectError::Rehearse { size, source: Box::new(source) })?;
        match created.rehearsal.verdict {
            Verdict::Reached { .. } => {
                let mut subject = Self::new(created.world, asking(Wish::Nothing, LATER));
                subject.request.ask = subject.wish(change);
                Ok(subject)
            }
            verdict => Err(SubjectError::NotThere { size, verdict }),
        }
    }

    fn wish(&self, change: Change) -> Wish {
        match change {
            Change::Upgrade => Wish::release(self.releases().to),
            Change::Create => Wish::Nothing,
            Change::Scale => Wish::Patch(self.scaled(1)),
            Change::Class => Wish::Patch(self.reclassed(true)),
            Change::Delete => Wish::Delete,
        }
    }

    fn releases(&self) -> Releases {
        match self.drive {
            Drive::Machines => OF_MACHINES,
            Drive::Topology(_) => OF_CLASSES,
            Drive::Label => OF_LABELS,
        }
    }

    /// What the cluster was asked to be before.
    fn spec(&self) -> Value {
        let NamespacedName { namespace, name } = &self.request.cluster;
        let found = match self.drive {
            Drive::Machines => settle::cluster(&self.start, &self.request.cluster)
                .and_then(|cluster| serde_json::to_value(cluster.spec).ok()),
            Drive::Topology(_) | Drive::Label => {
                settle::read::<Cluster>(&self.start, namespace.as_str(), name.as_str())
                    .and_then(|cluster| serde_json::to_value(cluster.spec).ok())
            }
        };
        found.unwrap_or_default()
    }

    /// What takes a wish back. Of a cluster of a class only its release: the rest is filled in by others.
    pub(super) fn reverted(&self) -> Value {
        match self.drive {
            Drive::Machines => json!({"spec": self.spec()}),
            Drive::Topology(_) => {
                let (label, version) = (label::RELEASE.name, &self.spec()["topology"]["version"]);
                json!({"metadata": {"labels": {label: self.releases().from}}, "spec": {"topology": {"version": version}}})
            }
            Drive::Label => ask::release(self.drive, self.releases().from),
        }
    }

    /// What asks for a release after the one that is swept to.
    pub(super) fn retargeted(&self) -> Value {
        ask::release(self.drive, self.releases().later)
    }

    /// What asks for so many workers more.
    pub(super) fn scaled(&self, more: u64) -> Value {
        let topology = &self.spec()["topology"];
        match self.drive {
            Drive::Machines => {
                let workers = topology["workers"]["count"].as_u64().unwrap_or_default();
                json!({"spec": {"topology": {"workers": {"count": workers + more}}}})
            }
            Drive::Topology(_) => self.pools(|pool| {
                let replicas = pool["replicas"].as_u64().unwrap_or_default();
                pool["replicas"] = json!(replicas + more);
            }),
            // How many machines there are is in other objects.
            Drive::Label => Value::Null,
        }
    }

    /// What asks for other workers, and perhaps for another control plane.
    pub(super) fn reclassed(&self, also_control_plane: bool) -> Value {
        let other = json!([{"name": "vmClass", "value": OTHER_CLASS}]);
        match self.drive {
            Drive::Machines => {
                let class = json!({"class": OTHER_CLASS});
                let mut patch = json!({"spec": {"topology": {"workers": class}}});
                if also_control_plane {
                    patch["spec"]["topology"]["controlPlane"] = class;
                }
                patch
            }
            Drive::Topology(_) => {
                let mut patch = self.pools(|pool| {
                    let known = pool["variables"]["overrides"].as_array().cloned().unwrap_or_default();
                    let others = known.into_iter().filter(|known| known["name"] != "vmClass");
                    let all = others.chain(other.as_array().cloned().into_iter().flatten());
                    pool["variables"]["overrides"] = all.collect();
                });
                if also_control_plane {
                    let known = self.spec()["topology"]["variables"].as_array().cloned().unwrap_or_default();
                    let others = known.into_iter().filter(|known| known["name"] != "vmClass");
                    let all = others.chain(other.as_array().cloned().into_iter().flatten());
                    patch["spec"]["topology"]["variables"] = all.collect();
                }
                patch
            }
            Drive::Label => Value::Null,
        }
    }

    /// All pools as they were, each changed: a list is written as a whole.
    fn pools(&self, change: impl Fn(&mut Value)) -> Value {
        let mut pools = self.spec()["topology"]["workers"]["machineDeployments"].clone();
        pools.as_array_mut().into_iter().flatten().for_each(change);
        json!({"spec": {"topology": {"workers": {"machineDeployments": pools}}}})
    }

    /// Whether there is something left of the control plane when one of its machines is gone: of one that Cluster API looks after
    /// nothing is.
    pub(super) fn survives_a_machine(&self) -> bool {
        let NamespacedName { namespace, .. } = &self.request.cluster;
        match self.drive {
            Drive::Machines => true,
            Drive::Topology(_) => self.spec()["topology"]["controlPlane"]["replicas"].as_u64() > Some(1),
            Drive::Label => {
                let found: Vec<KubeadmControlPlane> = settle::all(&self.start, namespace.as_str());
                found.iter().any(|found| found.spec.replicas > Some(1))
            }
        }
    }

    /// What has the new network come from this image; nothing where there are no such packages.
    pub(super) fn network(&self, image: &str) -> Option<Action> {
        let fetch = json!([{"imgpkgBundle": {"image": format!("{NETWORK_REPOSITORY}:{image}")}}]);
        let action = Action::Patch {
            cluster: None,
            api_version: "data.packaging.carvel.dev/v1alpha1".to_owned(),
            kind: "Package".to_owned(),
            name: NETWORK.into(),
            patch: json!({"spec": {"template": {"spec": {"fetch": fetch}}}}),
        };
        Some(action).filter(|_| self.drive.classes().is_some())
    }

    /// What the names of machines of the control plane begin with.
    pub(super) fn control_plane(&self) -> String {
        let NamespacedName { namespace, name } = &self.request.cluster;
        let found: Vec<KubeadmControlPlane> = match self.drive {
            Drive::Machines => Vec::new(),
            Drive::Topology(_) | Drive::Label => settle::all(&self.start, namespace.as_str()),
        };
        let found = found.into_iter().find_map(|found| found.metadata.name);
        found.unwrap_or_else(|| format!("{name}-control-plane"))
    }

    /// What those of workers begin with.
    pub(super) fn workers(&self) -> String {
        let NamespacedName { namespace, name } = &self.request.cluster;
        let found: Vec<MachineDeployment> = match self.drive {
            Drive::Machines => Vec::new(),
            Drive::Topology(_) | Drive::Label => settle::all(&self.start, namespace.as_str()),
        };
        let found = found.into_iter().find_map(|found| found.metadata.name);
        found.unwrap_or_else(|| format!("{name}-workers"))
    }
}

/// A World without clusters.
fn empty(seed: Seed) -> Result<World, SubjectError> {
    let made = run_virtual(seed, FOUNDED, |time| async move {
        let durations = Durations::default();
        World::new(world::Settings { clock: time.clock, seed: time.seed, durations, faults: Scenario::default() }).await
    });
    made.map_err(SubjectError::Begin)?.map_err(|source| SubjectError::World(Box::new(source)))
}

/// A cluster as people write it.
fn manifest(drive: Drive, cluster: &NamespacedName, size: Size) -> Result<Manifest, SubjectError> {
    let metadata = json!({"name": cluster.name.as_str(), "namespace": cluster.namespace.as_str()});
    let (api_version, kind) = drive.kind();
    let written = |spec: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec});
    match drive {
        Drive::Machines => {
            let machines =
                |count| json!({"count": count, "class": "best-effort-xlarge", "storageClass": "gc-storage-profile"});
            let spec = json!({
                "topology": {"controlPlane": machines(size.control_plane), "workers": machines(size.workers)},
                "distribution": {"version": OF_MACHINES.from},
            });
            serde_json::from_value(written(spec)).map(|written| Manifest::Machines(Box::new(written)))
        }
        Drive::Topology(_) => {
            let network =
                json!({"services": {"cidrBlocks": ["198.51.100.0/12"]}, "pods": {"cidrBlocks": ["192.0.2.0/16"]}});
            let pool = json!({"class": "tkg-worker", "name": "md-0", "replicas": size.workers});
            let topology = json!({
                "classRef": {"name": "tkg-vsphere-default-v1.0.0", "namespace": "tkg-system"},
                "version": FROM_KUBERNETES,
                "controlPlane": {"replicas": size.control_plane},
                "workers": {"machineDeployments": [pool]},
            });
            let spec = json!({"clusterNetwork": network, "topology": topology});
            serde_json::from_value(written(spec)).map(|written| Manifest::Topology(Box::new(written)))
        }
        Drive::Label => return classic(size),
    }
    .map_err(SubjectError::Manifest)
}

/// The objects of the example, with so many machines.
fn classic(size: Size) -> Result<Manifest, SubjectError> {
    let read: Result<Vec<Value>, _> = serde_saphyr::from_multiple(CLASSIC);
    let mut objects = read.map_err(|error| SubjectError::Example(error.to_string()))?;
    for object in &mut objects {
        let replicas = match object["kind"].as_str() {
            Some("KubeadmControlPlane") => size.control_plane,
            Some("MachineDeployment") => size.workers,
            _ => continue,
        };
        object["spec"]["replicas"] = json!(replicas);
    }
    let objects = objects.into_iter().map(serde_json::from_value).collect::<Result<_, _>>();
    objects.map(Manifest::Label).map_err(SubjectError::Manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_changes_are_read_as_they_are_written() {
        for text in ["1+1", "3+3", "5+0"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        for text in ["", "3", "0+1", "3+", "three+3"] {
            assert!(text.parse::<Size>().unwrap_err().to_string().contains("write it as 3+3"), "{text}");
        }
        for change in Change::ALL {
            assert_eq!(change.as_str().parse(), Ok(change));
        }
        assert!("up".parse::<Change>().unwrap_err().to_string().contains("upgrade, create, scale, class or delete"));
    }
}
