//! What the `ClusterBootstrap` of a cluster is to say, and whether it says that.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::release::{
    BootstrapPackages, ClusterBootstrap, ClusterBootstrapTemplate, LocalReference, TanzuKubernetesRelease,
};
use windlass_api::label;

use super::clone::{CopyOrder, copy_of, local_references};
use super::merge::{Draft, Merging, cloned, filled};
use super::step::{Object, Step, Write};
use super::{Blocked, SYSTEM_NAMESPACE, Subject, clone};
use crate::step::{Place, Revision};

/// What was observed.
#[derive(Debug, Clone, Copy)]
pub struct Settling<'a> {
    /// The cluster.
    pub cluster: &'a Subject,
    /// Its release.
    pub release: Option<&'a TanzuKubernetesRelease>,
    /// The templates that were found, by name: that of the release, that of the release before, and one that somebody wants
    /// gaps to be filled from.
    pub templates: &'a BTreeMap<String, ClusterBootstrapTemplate>,
    /// What there is.
    pub bootstrap: Option<&'a ClusterBootstrap>,
    /// What was found of the copies that were asked for so far.
    pub copies: &'a Copies,
}

/// What was found of what is to be copied: the original, and the metadata of the copy.
pub type Copies = BTreeMap<CopyOrder, (Option<Value>, Option<Value>)>;

/// What comes of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    /// Nothing is to be done for this cluster.
    Nothing,
    /// It has to be known what there is of these before anything is decided.
    Look(Vec<CopyOrder>),
    /// It has to be waited.
    Wait(Blocked),
    /// These are written, in order; then it is looked at again.
    Write(Vec<Step>),
    /// The `ClusterBootstrap` says what it should.
    Done,
}

/// Which templates are needed to settle a cluster.
pub(crate) fn templates(cluster: &Subject, bootstrap: Option<&ClusterBootstrap>) -> Vec<String> {
    let resolved = bootstrap.and_then(resolved).map(str::to_owned);
    let filled_from = bootstrap.and_then(filled_from);
    let mut names = vec![cluster.release.to_string()];
    names.extend(resolved.into_iter().chain(filled_from));
    names.sort();
    names.dedup();
    names
}

impl Settling<'_> {
    /// Which templates are needed to settle a cluster.
    pub fn templates(cluster: &Subject, bootstrap: Option<&ClusterBootstrap>) -> Vec<String> {
        templates(cluster, bootstrap)
    }
}

/// The release whose packages these are.
pub(super) fn resolved(bootstrap: &ClusterBootstrap) -> Option<&str> {
    bootstrap.status.as_ref()?.resolved_tkr.as_deref().filter(|resolved| !resolved.is_empty())
}

/// The release that somebody wants gaps to be filled from.
fn filled_from(bootstrap: &ClusterBootstrap) -> Option<String> {
    bootstrap.metadata.annotations.as_ref()?.get(annotation::ADD_MISSING_FIELDS.name).cloned()
}

fn has_annotation(bootstrap: &ClusterBootstrap, key: &str) -> bool {
    bootstrap.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(key))
}

/// Whether somebody else looks after the network of the cluster.
pub(super) fn is_unmanaged(bootstrap: &ClusterBootstrap) -> bool {
    has_annotation(bootstrap, annotation::UNMANAGED_CNI.name)
}

/// What the `ClusterBootstrap` of a cluster is to say, and what has to be written for it to say that.
pub fn settle(seen: &Settling<'_>) -> Settled {
    match decide(seen) {
        Ok(settled) => settled,
        Err(blocked) => Settled::Wait(blocked),
    }
}

fn decide(seen: &Settling<'_>) -> Result<Settled, Blocked> {
    let (cluster, name) = (seen.cluster, seen.cluster.release.as_str());
    // What a cluster has of a release stays as it is when the release goes.
    if seen.release.is_none() && seen.bootstrap.and_then(resolved) == Some(name) {
        return Ok(Settled::Done);
    }
    let release = seen.release.ok_or_else(|| Blocked::ReleaseMissing { release: name.to_owned() })?;
    let is_legacy = release.metadata.labels.as_ref().is_some_and(|labels| label::LEGACY_RELEASE.is_in(labels));
    if is_legacy {
        return Ok(Settled::Nothing);
    }
    let listed = release.spec.bootstrap_packages.as_deref().unwrap_or_default();
    let Some(bootstrap) = seen.bootstrap else {
        if cluster.custom_bootstrap {
            return Err(Blocked::BootstrapAwaited { namespace: cluster.namespace.clone(), name: cluster.name.clone() });
        }
        let draft = cloned(cluster, seen.template(name)?)?;
        return seen.with_copies(draft, |packages| create(cluster, packages));
    };
    if bootstrap.spec.packages.paused == Some(true) {
        return Err(Blocked::BootstrapPaused { namespace: cluster.namespace.clone(), name: cluster.name.clone() });
    }
    match resolved(bootstrap) {
        Some(resolved) if resolved == name => Ok(Settled::Done),
        Some(resolved) => seen.upgraded(bootstrap, resolved, (name, listed)),
        None => seen.begun(bootstrap, listed),
    }
}

impl Settling<'_> {
    fn template(&self, name: &str) -> Result<&BootstrapPackages, Blocked> {
        let found = self.templates.get(name).map(|template| &template.spec.packages);
        found.ok_or_else(|| Blocked::TemplateMissing { release: name.to_owned() })
    }

    /// After a change of release.
    fn upgraded(
        &self,
        bootstrap: &ClusterBootstrap,
        from: &str,
        (name, listed): (&str, &[LocalReference]),
    ) -> Result<Settled, Blocked> {
        let merging = Merging {
            cluster: self.cluster,
            current: &bootstrap.spec.packages,
            earlier: self.template(from).ok(),
            template: self.template(name)?,
            release: name,
            listed,
            unmanaged_cni: is_unmanaged(bootstrap),
        };
        self.changed(bootstrap, merging.merged()?, name)
    }

    /// One that somebody else made, or that we had no time to finish.
    fn begun(&self, bootstrap: &ClusterBootstrap, listed: &[LocalReference]) -> Result<Settled, Blocked> {
        let current = &bootstrap.spec.packages;
        let Some(from) = filled_from(bootstrap) else {
            let draft = Draft { packages: current.clone(), copies: Vec::new() };
            return self.changed(bootstrap, draft, self.cluster.release.as_str());
        };
        let template = self.template(&from)?;
        // What a release has beside its template is known only of the one that the cluster is asked to have.
        let names = if self.cluster.release.as_str() == from {
            listed.to_vec()
        } else {
            let packages = super::listed::slots(template).into_iter();
            packages.map(|(_, package)| LocalReference { name: package.ref_name.clone() }).collect()
        };
        let draft = filled(self.cluster, current, template, (&from, &names), is_unmanaged(bootstrap))?;
        self.changed(bootstrap, draft, &from)
    }

    /// First what it says, and only then, with another look in between, for which release it says that.
    fn changed(&self, bootstrap: &ClusterBootstrap, draft: Draft, release: &str) -> Result<Settled, Blocked> {
        let expect = state(bootstrap)?;
        if draft.packages != bootstrap.spec.packages {
            let object = object(self.cluster);
            return self.with_copies(draft, |packages| {
                let patch = json!({"spec": spec(packages)});
                let write = Write::Patch { object, patch, expect };
                Step::new(Place::Management, write, format!("its packages are those of {release}"))
            });
        }
        let status = bootstrap.status.clone().unwrap_or_default();
        let conditions = super::condition::of_packages_only(&status.conditions);
        let patch = json!({"status": {"resolvedTKR": release, "conditions": conditions}});
        let write = Write::PatchStatus { object: object(self.cluster), patch, expect };
        let why = format!("what it says is for {release}");
        Ok(Settled::Write(vec![Step::new(Place::Management, write, why)]))
    }

    /// The copies that are missing, and then what is made of them.
    fn with_copies(&self, draft: Draft, last: impl FnOnce(&BootstrapPackages) -> Step) -> Result<Settled, Blocked> {
        let (mut unknown, mut steps) = (Vec::new(), Vec::new());
        let mut orders = draft.copies;
        while let Some(order) = orders.pop() {
            let Some((source, existing)) = self.copies.get(&order) else {
                unknown.push(order);
                continue;
            };
            let Some(source) = source else {
                let object = format!("{} {SYSTEM_NAMESPACE}/{}", order.from.kind, order.from.name);
                return Err(Blocked::SourceMissing { object });
            };
            let inside = if order.from.is_secret() { Vec::new() } else { local_references(&source["spec"]) };
            orders.extend(inside.into_iter().map(|from| CopyOrder {
                to: from.name.clone(),
                from,
                package: order.package.clone(),
            }));
            let write = copy_of(self.cluster, &order, source, existing.as_ref());
            let why = format!("{} has values of its own", self.cluster.name);
            steps.extend(write.map(|write| Step::new(Place::Management, write, why)));
        }
        if !unknown.is_empty() {
            return Ok(Settled::Look(unknown));
        }
        steps.push(last(&draft.packages));
        Ok(Settled::Write(steps))
    }
}

/// The `ClusterBootstrap` of a cluster, as an object that is written.
pub(super) fn object(cluster: &Subject) -> Object {
    Object {
        api_version: "run.tanzu.vmware.com/v1alpha3".to_owned(),
        kind: "ClusterBootstrap".to_owned(),
        namespace: Some(cluster.namespace.to_string()),
        name: cluster.name.to_string(),
    }
}

/// Which state of a `ClusterBootstrap` was seen.
pub(super) fn state(bootstrap: &ClusterBootstrap) -> Result<Revision, Blocked> {
    let metadata = json!({"uid": bootstrap.metadata.uid, "resourceVersion": bootstrap.metadata.resource_version});
    let unreadable = || Blocked::Unreadable { field: "metadata.uid".to_owned(), why: "it is missing".to_owned() };
    clone::revision(&metadata).ok_or_else(unreadable)
}

fn create(cluster: &Subject, packages: &BootstrapPackages) -> Step {
    let object = object(cluster);
    let body = json!({
        "apiVersion": object.api_version, "kind": object.kind,
        "metadata": {
            "name": object.name, "namespace": object.namespace,
            "ownerReferences": [{
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": object.name,
                "uid": cluster.revision.uid.as_str(), "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": spec(packages),
    });
    let why = format!("{} has the packages of {}", cluster.name, cluster.release);
    Step::new(Place::Management, Write::Create { object: body }, why)
}

fn spec(packages: &BootstrapPackages) -> Value {
    serde_json::to_value(packages).unwrap_or_default()
}
