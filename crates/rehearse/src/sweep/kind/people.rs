//! What people do in the middle: while a write waits that was decided before they did it.

use serde_json::{Value, json};
use windlass_sim::fault::{Action, Span};

use super::{Course, Kind, at};
use crate::sweep::plan::{At, Expect, Plan};

/// A release after the one that is swept to.
const LATER_RELEASE: &str = "v1.17.4";
const TANZU: &str = "run.tanzu.vmware.com/v1alpha1";
const CLUSTER_API: &str = "cluster.x-k8s.io/v1beta2";
/// What somebody breaks who deletes a machine of the control plane: nobody asked Windlass, and one of one is all there is. Where no
/// update is under way, the member that the machine leaves behind is for people to remove: what comes next is held, and names it.
const OF_A_DELETED_MACHINE: [&str; 6] = ["C1", "C2", "C3", "E1", "E7", "E8"];

/// The kinds.
pub(super) const ALL: [Kind; 11] = [
    at("F23", "reverted", "what was asked for is taken back", |course, numbers| {
        wished(course, numbers, At::Once, json!({"spec": course.subject.spec()}))
    }),
    at("F24", "retargeted", "another release is asked for", |course, numbers| {
        let release = json!({"fullVersion": null, "version": LATER_RELEASE});
        wished(course, numbers, At::End, json!({"spec": {"distribution": release}}))
    }),
    at("F24", "scaled", "one worker more is asked for", |course, numbers| {
        let workers = course.subject.spec()["topology"]["workers"]["count"].as_u64().unwrap_or_default();
        wished(course, numbers, At::End, json!({"spec": {"topology": {"workers": {"count": workers + 2}}}}))
    }),
    at("F24", "reclassed", "other workers are asked for", |course, numbers| {
        wished(course, numbers, At::End, json!({"spec": {"topology": {"workers": {"class": "best-effort-large"}}}}))
    }),
    at("F24", "deleted", "the cluster is deleted", |course, numbers| {
        let name = course.subject.request.cluster.to_string();
        let action = delete(TANZU, "TanzuKubernetesCluster", &name);
        Some(Plan::edit(Expect::Wished(At::Once), *numbers.first()?, action))
    }),
    at("F25", "machine-deleted", "a Machine of the control plane is deleted", |course, numbers| {
        let action = delete(CLUSTER_API, "Machine", &format!("{}-control-plane-*", course.subject.request.cluster));
        Some(Plan::edit(Expect::Explained, *numbers.first()?, action).tolerating(&OF_A_DELETED_MACHINE))
    }),
    at("F25", "worker-deleted", "a Machine of a pool is deleted", |course, numbers| {
        let action = delete(CLUSTER_API, "Machine", &format!("{}-workers-*", course.subject.request.cluster));
        Some(Plan::edit(Expect::Alike, *numbers.first()?, action))
    }),
    at("F25", "job-deleted", "the Job that replaces the control plane is deleted", |_, numbers| {
        let action = delete("batch/v1", "Job", "vmware-system-tkg/update-*");
        Some(Plan::edit(Expect::Alike, *numbers.first()?, action))
    }),
    at("F25", "paused", "the Cluster is paused for ten minutes", |course, numbers| {
        let begins = course.at(*numbers.first()?)?;
        let pause = |paused| patch(course, CLUSTER_API, "Cluster", json!({"spec": {"paused": paused}}));
        let plan = Plan::edit(Expect::Alike, *numbers.first()?, pause(Some(true)));
        Some(plan.then(begins.and(Span::minutes(10)), pause(None)))
    }),
    at("F25", "annotated", "somebody writes a note on the cluster", |course, numbers| {
        let note = json!({"metadata": {"annotations": {"example.dev/note": "hands off"}}});
        let action = patch(course, TANZU, "TanzuKubernetesCluster", note);
        Some(Plan::edit(Expect::Alike, *numbers.first()?, action))
    }),
    at("F25", "node-deleted", "a Node of a worker is deleted", |course, numbers| {
        let cluster = course.subject.request.cluster.clone();
        let name = format!("{}-workers-*", cluster.name).as_str().into();
        let (api_version, kind) = ("v1".to_owned(), "Node".to_owned());
        let action = Action::Delete { cluster: Some(cluster), api_version, kind, name };
        Some(Plan::edit(Expect::Explained, *numbers.first()?, action).tolerating(&["W7"]))
    }),
];

/// Something else is asked of the cluster.
fn wished(course: &Course<'_>, numbers: &[u64], calm: At, change: Value) -> Option<Plan> {
    let action = patch(course, TANZU, "TanzuKubernetesCluster", change);
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
