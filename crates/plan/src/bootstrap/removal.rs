//! The end of a cluster: packages that were added to it go first, then the finalizers that kept it for them.
//!
//! Packages may have made something outside of the cluster (load balancers, records of names), which nobody would remove after
//! it. It is waited for them, for a time: an API that does not answer must not keep a cluster for ever. Before anything else our hold
//! ends, which would keep its machines.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::condition::ConditionType;
use windlass_api::kind::Condition;
use windlass_api::kind::packaging::{PackageInstall, is_true};
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::name::{ClusterSecret, PackagePart};

use super::bring::Workload;
use super::condition::{self, Gate};
use super::hold::release;
use super::step::{Object, Step, Write};
use super::{Blocked, FINALIZER, SYSTEM_NAMESPACE, Subject, clone, listed, settle};
use crate::step::{Place, Revision};

/// How long it is waited for packages to go.
pub const DELETE_TIMEOUT: SignedDuration = SignedDuration::from_mins(10);

/// What was observed of a cluster that is to go.
#[derive(Debug, Clone, Copy)]
pub struct Leaving<'a> {
    /// The cluster.
    pub cluster: &'a Subject,
    /// Since when it is to go.
    pub since: Timestamp,
    /// Its packages.
    pub bootstrap: Option<&'a ClusterBootstrap>,
    /// The metadata of the Secret with its kubeconfig.
    pub kubeconfig: Option<&'a Value>,
    /// What it has.
    pub workload: &'a Workload,
    /// The time.
    pub now: Timestamp,
}

/// What comes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Left {
    /// What is written, in order.
    pub steps: Vec<Step>,
    /// What it is waited for.
    pub waits_for: Option<Blocked>,
    /// What it is not waited for any more: its time is over.
    pub given_up: Option<String>,
}

/// One step towards the end.
pub fn leave(seen: &Leaving<'_>) -> Left {
    // Cluster API lets nothing go that is paused, and nobody waits for packages any more.
    if let Some(step) = release(seen.cluster, "the cluster is to go") {
        return Left { steps: vec![step], waits_for: None, given_up: None };
    }
    let expired = seen.now.duration_since(seen.since) >= DELETE_TIMEOUT;
    match packages(seen) {
        (steps, Some(why)) if !expired => {
            Left { steps, waits_for: Some(Blocked::PackagesGoFirst { why }), given_up: None }
        }
        (_, given_up) => Left { steps: finalizers(seen), waits_for: None, given_up },
    }
}

/// The conditions of a `ClusterBootstrap` whose cluster waits for packages to go.
pub fn leaving(bootstrap: &ClusterBootstrap, blocked: &Blocked, now: Timestamp) -> Vec<Condition> {
    let before = bootstrap.status.clone().unwrap_or_default().conditions;
    condition::with_gate(&before, &Gate { blocked: Some(blocked), stalled: None, outside: Vec::new() }, now)
}

/// Deletes packages that were added, and says which of them is still there.
fn packages(seen: &Leaving<'_>) -> (Vec<Step>, Option<String>) {
    let nothing = (Vec::new(), None);
    // Only what was kept for its packages is waited for.
    let kept = seen.cluster.finalizers.iter().any(|known| known == FINALIZER);
    let Some(bootstrap) = seen.bootstrap.filter(|_| kept) else { return nothing };
    let annotations = bootstrap.metadata.annotations.clone().unwrap_or_default();
    let stay: Vec<&str> = annotations
        .get(annotation::KEEP_PACKAGES.name)
        .map(|names| names.split(',').map(str::trim).collect())
        .unwrap_or_default();
    let installs = match seen.workload {
        Workload::NotYet | Workload::WithoutKinds => return nothing,
        Workload::Unreachable { why } => {
            return (Vec::new(), Some(format!("the workload cluster does not answer: {why}")));
        }
        Workload::Reachable { installs, .. } => installs,
    };
    let (mut steps, mut waits_for) = nothing;
    // What cannot be read was never installed.
    for package in listed(&bootstrap.spec.packages).unwrap_or_default() {
        let name = package.child(&seen.cluster.name, PackagePart::Install).to_string();
        if package.slot.is_core() || stay.contains(&package.short()) || stay.contains(&name.as_str()) {
            continue;
        }
        let Some(install) = installs.get(&name).and_then(|installed| installed.install.as_ref()) else { continue };
        if is_given_up(install) {
            continue;
        }
        waits_for = waits_for.or_else(|| Some(format!("PackageInstall {SYSTEM_NAMESPACE}/{name} is still there")));
        if install.metadata.deletion_timestamp.is_none() {
            steps.extend(deletion(install, &name));
        }
    }
    (steps, waits_for)
}

/// Whether kapp-controller could not delete it.
fn is_given_up(install: &PackageInstall) -> bool {
    let conditions = install.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    is_true(conditions, ConditionType::DeleteFailed.as_str())
}

fn deletion(install: &PackageInstall, name: &str) -> Option<Step> {
    let metadata = json!({"uid": install.metadata.uid, "resourceVersion": install.metadata.resource_version});
    let object = Object {
        api_version: "packaging.carvel.dev/v1alpha1".to_owned(),
        kind: "PackageInstall".to_owned(),
        namespace: Some(SYSTEM_NAMESPACE.to_owned()),
        name: name.to_owned(),
    };
    let expect = clone::revision(&metadata)?;
    let step = Step::new(Place::Workload, Write::Delete { object, expect }, "its cluster goes, and it goes first");
    Some(step.of(Some(name)))
}

/// Lets go of everything that was kept, the cluster last.
fn finalizers(seen: &Leaving<'_>) -> Vec<Step> {
    let texts = |value: &Value| {
        let all = value.as_array().cloned().unwrap_or_default();
        all.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect::<Vec<String>>()
    };
    let mut held: Vec<(Object, Option<Revision>, Vec<String>)> = Vec::new();
    if let Some(bootstrap) = seen.bootstrap {
        let known = bootstrap.metadata.finalizers.clone().unwrap_or_default();
        held.push((settle::object(seen.cluster), settle::state(bootstrap).ok(), known));
    }
    if let Some(metadata) = seen.kubeconfig {
        let object = Object {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: Some(seen.cluster.namespace.to_string()),
            name: ClusterSecret::Kubeconfig.object_name(&seen.cluster.name).to_string(),
        };
        held.push((object, clone::revision(metadata), texts(&metadata["finalizers"])));
    }
    let cluster = seen.cluster;
    held.push((cluster.object(), Some(cluster.revision.clone()), cluster.finalizers.clone()));
    let release = |(object, expect, known): (Object, Option<Revision>, Vec<String>)| {
        let expect = expect.filter(|_| known.iter().any(|known| known == FINALIZER))?;
        let finalizers: Vec<String> = known.into_iter().filter(|known| known != FINALIZER).collect();
        let patch = json!({"metadata": {"finalizers": finalizers}});
        Some(Step::new(Place::Management, Write::Patch { object, patch, expect }, "its packages are gone"))
    };
    held.into_iter().filter_map(release).collect()
}
