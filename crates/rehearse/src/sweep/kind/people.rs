//! What people do in the middle: while a write waits that was decided before they did it.

use serde_json::{Value, json};
use windlass_sim::fault::{Action, Span};

use super::{Course, Kind, at};
use crate::drive::Drive;
use crate::sweep::plan::{At, Expect, Plan};
use crate::sweep::subject::NETWORK_IMAGE;

const CLUSTER_API: &str = "cluster.x-k8s.io/v1beta2";
/// What somebody breaks who deletes a machine of the control plane: nobody asked Windlass, and one of one is all there is. Where no
/// update is under way, the member that the machine leaves behind is for people to remove: what comes next is held, and names it.
const OF_A_DELETED_MACHINE: [&str; 6] = ["C1", "C2", "C3", "E1", "E7", "E8"];

/// The kinds.
pub(super) const ALL: [Kind; 13] = [
    at("F23", "reverted", "what was asked for is taken back", |course, numbers| {
        wished(course, numbers, At::Once, course.subject.reverted())
    }),
    at("F24", "retargeted", "another release is asked for", |course, numbers| {
        wished(course, numbers, At::End, course.subject.retargeted())
    }),
    at("F24", "scaled", "one worker more is asked for", |course, numbers| {
        wished(course, numbers, At::End, course.subject.scaled(2))
    }),
    at("F24", "reclassed", "other workers are asked for", |course, numbers| {
        wished(course, numbers, At::End, course.subject.reclassed(false))
    }),
    at("F24", "deleted", "the cluster is deleted", |course, numbers| {
        let (api_version, kind) = course.subject.drive.kind();
        let action = delete(api_version, kind, &course.subject.request.cluster.to_string());
        Some(Plan::edit(Expect::Wished(At::Once), *numbers.first()?, action))
    }),
    at("F25", "machine-deleted", "a Machine of the control plane is deleted", |course, numbers| {
        let namespace = &course.subject.request.cluster.namespace;
        let action = delete(CLUSTER_API, "Machine", &format!("{namespace}/{}-*", course.subject.control_plane()));
        let plan = Plan::edit(Expect::Explained, *numbers.first()?, action).tolerating(&OF_A_DELETED_MACHINE);
        // Cluster API makes a new control plane then, with a new etcd: there is nothing of the cluster left to look after.
        course.subject.survives_a_machine().then_some(plan)
    }),
    at("F25", "worker-deleted", "a Machine of a pool is deleted", |course, numbers| {
        let namespace = &course.subject.request.cluster.namespace;
        let action = delete(CLUSTER_API, "Machine", &format!("{namespace}/{}-*", course.subject.workers()));
        Some(Plan::edit(Expect::Alike, *numbers.first()?, action))
    }),
    at("F25", "job-deleted", "the Job that replaces the control plane is deleted", |course, numbers| {
        let action = delete("batch/v1", "Job", "vmware-system-tkg/update-*");
        let has_one = course.subject.drive == Drive::Machines;
        has_one.then_some(Plan::edit(Expect::Alike, *numbers.first()?, action))
    }),
    at("F25", "paused", "the Cluster is paused for ten minutes", |course, numbers| {
        let begins = course.at(*numbers.first()?)?;
        let pause = |paused| patch(course, CLUSTER_API, "Cluster", json!({"spec": {"paused": paused}}));
        let plan = Plan::edit(Expect::Alike, *numbers.first()?, pause(Some(true)));
        Some(plan.then(begins.and(Span::minutes(10)), pause(None)))
    }),
    at("F25", "annotated", "somebody writes a note on the cluster", |course, numbers| {
        let note = json!({"metadata": {"annotations": {"example.dev/note": "hands off"}}});
        let (api_version, kind) = course.subject.drive.kind();
        let action = patch(course, api_version, kind, note);
        Some(Plan::edit(Expect::Alike, *numbers.first()?, action))
    }),
    at("F25", "node-deleted", "a Node of a worker is deleted", |course, numbers| {
        let cluster = course.subject.request.cluster.clone();
        let name = format!("{}-*", course.subject.workers()).as_str().into();
        let (api_version, kind) = ("v1".to_owned(), "Node".to_owned());
        let action = Action::Delete { cluster: Some(cluster), api_version, kind, name };
        Some(Plan::edit(Expect::Explained, *numbers.first()?, action).tolerating(&["W7"]))
    }),
    at("F25", "image-missing", "the image of the new network is not there for ten minutes", |course, numbers| {
        let begins = course.at(*numbers.first()?)?;
        let (missing, there) = (course.subject.network("v9.9.9")?, course.subject.network(NETWORK_IMAGE)?);
        Some(Plan::edit(Expect::Alike, *numbers.first()?, missing).then(begins.and(Span::minutes(10)), there))
    }),
    at("F25", "package-paused", "the package of the network is paused for ten minutes", |course, numbers| {
        let begins = course.at(*numbers.first()?)?;
        let pause = |paused: bool| {
            let cluster = course.subject.request.cluster.clone();
            let name = format!("tkg-system/{}-antrea", cluster.name).as_str().into();
            let (api_version, kind) = ("packaging.carvel.dev/v1alpha1".to_owned(), "PackageInstall".to_owned());
            let patch = json!({"spec": {"paused": paused}});
            Action::Patch { cluster: Some(cluster), api_version, kind, name, patch }
        };
        let plan = Plan::edit(Expect::Alike, *numbers.first()?, pause(true));
        let has_packages = course.subject.drive.classes().is_some();
        has_packages.then(|| plan.then(begins.and(Span::minutes(10)), pause(false)))
    }),
];

/// Something else is asked of the cluster, where that can be asked of its own object.
fn wished(course: &Course<'_>, numbers: &[u64], calm: At, change: Value) -> Option<Plan> {
    if change.is_null() {
        return None;
    }
    let (api_version, kind) = course.subject.drive.kind();
    let action = patch(course, api_version, kind, change);
    Some(Plan::edit(Expect::Wished(calm), *numbers.first()?, action))
}

/// Changes the object of this kind that has the name of the cluster.
fn patch(course: &Course<'_>, api_version: &str, kind: &str, patch: Value) -> Action {
    let name = course.subject.request.cluster.to_string().as_str().into();
    Action::Patch { cluster: None, api_version: api_version.to_owned(), kind: kind.to_owned(), name, patch }
}

fn delete(api_version: &str, kind: &str, name: &str) -> Action {
    Action::Delete { cluster: None, api_version: api_version.to_owned(), kind: kind.to_owned(), name: name.into() }
}
