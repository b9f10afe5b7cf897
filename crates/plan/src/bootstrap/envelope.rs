//! What an upgrade of a cluster of a class may do: the thing that is reviewed and approved.
//!
//! It is a function of the Cluster as it is asked to be, of its release, and of the packages that it would have. Nothing that changes
//! while the upgrade waits, or while its packages are chosen, is part of it: whoever admits, rehearses or acts comes to the same
//! digest. How many machines there are, and what else the class is told, is the owner's, who may change it at any time; it is no part
//! of a release, and of no envelope.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::release::{ClusterBootstrap, ClusterBootstrapTemplate, TanzuKubernetesRelease};
use windlass_api::kind::topology::{MachineDeploymentTopology, Topology};
use windlass_api::name::{ClusterSecret, PackagePart};
use windlass_api::version::KubernetesVersion;
use windlass_api::{annotation, label};

use super::settle::{is_unmanaged, resolved};
use super::step::{Step, Write};
use super::{Blocked, Listed, Merging, SYSTEM_NAMESPACE, Subject, cloned, install, listed, reference};
use crate::digest;
use crate::envelope::Allowed;
use crate::planner::role;
use crate::release::PackageSlot;
use crate::resolve::cluster::{ReleaseData, told};
use crate::resolve::query::Part;
use crate::step::Place;

/// Stands for every kind: values can be of any.
const ANY_KIND: &str = "*";

/// What an upgrade may do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassEnvelope {
    /// The drive, and the cluster with its uid.
    cluster: Value,
    /// What it has.
    from: End,
    /// What it would have.
    to: End,
    /// The digest of what the release says.
    pub release_digest: String,
    /// The class from which everything is derived.
    class: Value,
    /// What the class is told of the release, by the role of the machines: their image, and those of what runs on them.
    parts: BTreeMap<String, Value>,
    /// The packages that it would have, in the order in which they come in.
    packages: Vec<Value>,
    /// The machines that may be replaced, by role.
    pub replaced: BTreeSet<String>,
    /// The writes that are allowed to Windlass. Those of Cluster API follow from the rest.
    pub allowed: BTreeSet<Allowed>,
}

/// One end of an upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct End {
    release: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kubernetes: Option<KubernetesVersion>,
}

/// What an envelope is made of.
#[derive(Debug, Clone, Copy)]
pub struct Enclosing<'a> {
    /// The Cluster as it is asked to be.
    pub cluster: &'a Cluster,
    /// The same, read.
    pub subject: &'a Subject,
    /// The release that it is asked to have.
    pub release: Option<&'a TanzuKubernetesRelease>,
    /// The templates that were found, by name: that of the release, and that of the release before.
    pub templates: &'a BTreeMap<String, ClusterBootstrapTemplate>,
    /// What packages it has.
    pub bootstrap: Option<&'a ClusterBootstrap>,
}

impl ClassEnvelope {
    /// What may be done; or why that cannot be said. Then nothing can be done either.
    pub fn of(seen: &Enclosing<'_>) -> Result<Self, Blocked> {
        let subject = seen.subject;
        let name = subject.release.as_str();
        let release = seen.release.ok_or_else(|| Blocked::ReleaseMissing { release: name.to_owned() })?;
        let topology = seen.cluster.spec.topology.clone().unwrap_or_default();
        let told = told(seen.cluster).map_err(|malformed| Blocked::Malformed { why: malformed.to_string() })?;
        let from = seen.bootstrap.and_then(resolved).unwrap_or_default().to_owned();
        let kubernetes = topology.version.parse().ok();
        let packages = seen.packages(release)?;
        let namespace = subject.namespace.as_str();
        let uid = subject.revision.uid.as_str();
        Ok(Self {
            cluster: json!({"drive": "topology", "namespace": namespace, "name": subject.name.as_str(), "uid": uid}),
            from: End { kubernetes: of_release(&told, &from), release: from },
            to: End { release: name.to_owned(), kubernetes: kubernetes.clone() },
            release_digest: digest::of(&json!(release.spec)),
            class: json!(topology.class_ref),
            parts: parts(&told, kubernetes.as_ref()),
            packages: packages.iter().map(written).collect(),
            replaced: replaced(&topology),
            allowed: allowed(subject, &packages),
        })
    }

    /// What the envelope is named by: `sha256:…`.
    pub fn digest(&self) -> String {
        digest::of(&json!(self))
    }

    /// Whether a write lies inside.
    pub fn allows(&self, step: &Step) -> bool {
        let is = |verb: &str, kind: &str, role: &str| {
            let (verb, kind, role) = (verb.to_owned(), kind.to_owned(), role.to_owned());
            self.allowed.contains(&Allowed { verb, kind, role })
        };
        let place = step.place;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let whole = |verb: &str, object: &Value| {
            let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
            let version = &object["spec"]["packageRef"]["versionSelection"]["constraints"];
            let version = (kind == "PackageInstall").then(|| text(version));
            is(verb, &kind, &role_of(place, &name, version.as_deref())) || is(verb, ANY_KIND, &values_role(object))
        };
        match &step.write {
            Write::Create { object } => whole("create", object),
            Write::Apply { object } => whole("apply", object),
            Write::CopySecret { object, .. } => whole("apply", object) || whole("create", object),
            Write::Patch { object, patch, .. } => {
                is("patch", &object.kind, &role_of(place, &object.name, None))
                    || is("create", ANY_KIND, &values_role(patch))
            }
            Write::PatchStatus { object, .. } => is("patch", &object.kind, &role_of(place, &object.name, None)),
            Write::Delete { .. } => false,
        }
    }
}

impl Enclosing<'_> {
    /// The packages that the cluster would have. Merged once more they are the same, so that it does not matter whether they were
    /// chosen already.
    fn packages(&self, release: &TanzuKubernetesRelease) -> Result<Vec<Listed>, Blocked> {
        if release.metadata.labels.as_ref().is_some_and(|labels| label::LEGACY_RELEASE.is_in(labels)) {
            return Ok(Vec::new());
        }
        let name = self.subject.release.as_str();
        let template = |name: &str| self.templates.get(name).map(|template| &template.spec.packages);
        let of_release = template(name).ok_or_else(|| Blocked::TemplateMissing { release: name.to_owned() })?;
        let Some(bootstrap) = self.bootstrap else { return listed(&cloned(self.subject, of_release)?.packages) };
        if resolved(bootstrap) == Some(name) {
            return listed(&bootstrap.spec.packages);
        }
        let merging = Merging {
            cluster: self.subject,
            current: &bootstrap.spec.packages,
            earlier: resolved(bootstrap).and_then(template),
            template: of_release,
            release: name,
            listed: release.spec.bootstrap_packages.as_deref().unwrap_or_default(),
            unmanaged_cni: is_unmanaged(bootstrap),
        };
        listed(&merging.merged()?.packages)
    }
}

/// The Kubernetes of a release that the control plane was told of.
fn of_release(told: &BTreeMap<Part, ReleaseData>, release: &str) -> Option<KubernetesVersion> {
    let data = told.get(&Part::ControlPlane)?;
    data.of(&release.parse().ok()?).map(|entry| entry.kubernetes.clone())
}

/// What each part is told of a version.
fn parts(told: &BTreeMap<Part, ReleaseData>, kubernetes: Option<&KubernetesVersion>) -> BTreeMap<String, Value> {
    let of =
        |data: &ReleaseData| kubernetes.and_then(|version| data.written().remove(version.as_str())).unwrap_or_default();
    let named = told.iter().map(|(part, data)| match part {
        Part::ControlPlane => (role::CONTROL_PLANE.to_owned(), of(data)),
        Part::Pool(pool) => (role::pool(pool), of(data)),
    });
    named.collect()
}

/// A package as an envelope has it. What its values are is its owner's, and may be secret; where they are is not.
fn written(package: &Listed) -> Value {
    let values = package.values.as_ref().map(|values| match reference(values) {
        Some(reference) => reference.to_string(),
        None => "inline".to_owned(),
    });
    json!({"field": package.slot.field(), "package": package.package.to_string(), "values": values})
}

/// The control plane, and all pools that are not held back: Cluster API replaces their machines one after the other.
fn replaced(topology: &Topology) -> BTreeSet<String> {
    let has = |pool: &MachineDeploymentTopology, key: &str| {
        pool.metadata.as_ref().is_some_and(|metadata| metadata.annotations.contains_key(key))
    };
    let pools = topology.workers.machine_deployments.iter();
    let goes = pools.take_while(|pool| !has(pool, annotation::HOLD_UPGRADE_SEQUENCE.name));
    let goes = goes.filter(|pool| !has(pool, annotation::DEFER_UPGRADE.name));
    let pools = goes.filter_map(|pool| Some(role::pool(&pool.name.parse().ok()?)));
    pools.chain([role::CONTROL_PLANE.to_owned()]).collect()
}

/// What Windlass may write, in the management cluster and in the workload cluster.
fn allowed(cluster: &Subject, packages: &[Listed]) -> BTreeSet<Allowed> {
    let mut allowed = BTreeSet::new();
    let mut allow = |verb: &str, kind: &str, role: String| {
        allowed.insert(Allowed { verb: verb.to_owned(), kind: kind.to_owned(), role });
    };
    let own = role_of(Place::Management, cluster.name.as_str(), None);
    allow("patch", "Cluster", own.clone());
    allow("patch", "ClusterBootstrap", own.clone());
    allow("create", "ClusterBootstrap", own);
    let kubeconfig = ClusterSecret::Kubeconfig.object_name(&cluster.name);
    allow("patch", "Secret", role_of(Place::Management, kubeconfig.as_str(), None));
    for object in install::prerequisites() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        allow("apply", &text(&object["kind"]), role_of(Place::Workload, &text(&object["metadata"]["name"]), None));
    }
    for package in packages {
        let place = if package.slot == PackageSlot::Kapp { Place::Management } else { Place::Workload };
        let install = package.child(&cluster.name, PackagePart::Install);
        allow("apply", "PackageInstall", role_of(place, install.as_str(), Some(&package.version())));
        let values = package.child(&cluster.name, PackagePart::DataValues);
        allow("apply", "Secret", role_of(place, values.as_str(), None));
        allow("apply", "Package", role_of(Place::Workload, &package.package.to_string(), None));
        // What values are made of, and what is named inside of that.
        allow("create", ANY_KIND, format!("values of {}", package.package.label()));
        if let Some(reference) = package.values.as_ref().and_then(reference) {
            allow("patch", &reference.kind, role_of(Place::Management, &reference.name, None));
        }
    }
    allowed
}

/// What an object is to an upgrade: its name, which follows from that of the cluster, and the version that it asks for.
fn role_of(place: Place, name: &str, version: Option<&str>) -> String {
    let place = match place {
        Place::Management => "management",
        Place::Workload => SYSTEM_NAMESPACE,
    };
    match version {
        Some(version) => format!("{place}/{name} at {version}"),
        None => format!("{place}/{name}"),
    }
}

/// The same of what is copied for the values of a package, which says for which.
fn values_role(object: &Value) -> String {
    let package = object["metadata"]["labels"][label::PACKAGE_NAME.name].as_str().unwrap_or_default();
    format!("values of {package}")
}
