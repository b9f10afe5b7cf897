//! D: whether the packages of a release are in a cluster and well, found out in another way than the planner does: each field
//! is looked up by its path.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_api::label;
use windlass_api::name::Uid;
use windlass_api::version::MinorVersion;

use super::version::version_written;
use super::{Finding, fatal, finding, managing, release, replaces, written};
use crate::gate::Gate;
use crate::inventory::{AddonObject, Inventory, Node, Reachable};
use crate::planner::{Planned, PlanningInput};
use crate::release::Release;
use crate::step::{Action, Place, Revision, Step};
use crate::target::Target;

/// D1, D8: the Job is created, and a control plane that Cluster API rolls gets another version, only when every package is at
/// the target, and well.
pub(super) fn packages_before_control_plane(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let inventory = &input.inventory;
    let kubeadm = inventory.control_plane.kubeadm.as_ref().map(|kubeadm| &kubeadm.version);
    let topology = inventory.topology.as_ref().map(|topology| &topology.version);
    let is_raised = |step: &&Step| match step.action.kind() {
        "Job" => replaces(step),
        "KubeadmControlPlane" => kubeadm.is_some() && version_written(step).as_ref() != kubeadm,
        "Cluster" => topology.is_some() && version_written(step).as_ref() != topology,
        _ => false,
    };
    let complain = |step: &Step| {
        let message = trouble(&input.target, inventory)?;
        Some(finding(input, Gate::PackagesFirst, "D1", step, message))
    };
    managing(planned).filter(is_raised).filter_map(complain).collect()
}

/// D6: no pod is started where its image is not, and none is stopped before another runs.
pub(super) fn pods_start_where_their_images_are(_: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let is_package = |step: &&Step| step.place == Place::Workload;
    let complain = |step: &Step| {
        let object = written(step)?;
        let text = |path: &str| object.pointer(path).and_then(Value::as_str);
        let safe = match step.action.kind() {
            "DaemonSet" => text("/spec/updateStrategy/type") == Some("OnDelete"),
            "Deployment" => {
                let number = |field: &str| object["spec"]["strategy"]["rollingUpdate"][field].as_u64();
                text("/spec/strategy/type") == Some("RollingUpdate")
                    && (number("maxUnavailable"), number("maxSurge")) == (Some(0), Some(1))
            }
            _ => return None,
        };
        let selector = &object["spec"]["template"]["spec"]["nodeSelector"];
        let selects = selector[label::DISTRIBUTION_VERSION.name].is_string();
        (!safe || !selects).then(|| fatal("D6", step, "its pods could start where their image is not".to_owned()))
    };
    planned.steps.iter().filter(is_package).filter_map(complain).collect()
}

/// D10: what is deleted is ours, in the state that was seen, and for nodes that are no more, or on record and of no use to any.
pub(super) fn only_ours_is_deleted(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let is_ours = |step: &Step| {
        let Action::Delete { kind, name, expect, .. } = &step.action else { return true };
        if kind == "Job" && step.place == Place::Management {
            return is_job_to_stop(input, name, expect) || is_job_of_the_past(input, name, expect);
        }
        if kind == "ConfigMap" && step.place == Place::Management {
            return release::is_of_the_past(input, name, expect);
        }
        if step.place == Place::Management {
            return is_template_of_the_past(input, (kind, name), expect);
        }
        let Some(workload) = input.inventory.reachable() else { return false };
        let is_it = |found: &&AddonObject| found.revision == *expect && found.live["metadata"]["name"] == name.as_str();
        let seen = workload.addons.values().flatten().find(is_it);
        seen.is_some_and(|found| {
            let labels = &found.live["metadata"]["labels"];
            let bound = labels[label::DISTRIBUTION_VERSION.name].as_str();
            let is_needed = |version: &dyn Fn() -> String| bound == Some(version().as_str());
            let used = workload.nodes.iter().filter_map(|node| node.distribution.as_ref());
            let mut used = used.chain([&input.target.release.distribution]);
            let outlived = bound.is_some() && !used.any(|version| is_needed(&|| version.tag().to_string()));
            labels[label::ADDON.name].is_string() && (outlived || bound.is_none() && is_left_over(input, found))
        })
    };
    let complain = |step: &&Step| !is_ours(step);
    let message = || "it is not ours to delete, or still needed".to_owned();
    planned.steps.iter().filter(complain).map(|step| fatal("D10", step, message())).collect()
}

/// Whether an object is on record with its uid, wanted by nobody, and needed by no node: all of them are of the release, or it
/// is of a kind that the release's version has no more. What holds objects of others is needed always.
fn is_left_over(input: &PlanningInput, found: &AddonObject) -> bool {
    let Some(workload) = input.inventory.reachable() else { return false };
    let release = &input.target.release;
    let live = &found.live;
    let is_recorded = workload.applied.is_some_and(|record| {
        let mut entries = record.objects.iter().filter(|entry| entry.uid.as_ref() == Some(&found.revision.uid));
        entries.any(|entry| live["kind"] == entry.kind.as_str() && live["metadata"]["name"] == entry.name.as_str())
    });
    let is_wanted = release.addons.values().flat_map(|addon| &addon.objects).any(|wanted| is_same(wanted, live));
    let holds_others = live["kind"] == "Namespace" || live["kind"] == "CustomResourceDefinition";
    let is_new = |node: &Node| node.distribution.as_ref() == Some(&release.distribution);
    is_recorded && !is_wanted && !holds_others && (workload.nodes.iter().all(is_new) || is_dropped(release, live))
}

/// Whether Kubernetes has dropped the kind of an object by the release's version.
fn is_dropped(release: &Release, live: &Value) -> bool {
    live["kind"] == "PodSecurityPolicy" && release.kubernetes.minor() >= MinorVersion { major: 1, minor: 25 }
}

/// An object on record that nobody could remove once there are machines of the release.
fn dropped(target: &Target, workload: &Reachable<'_>) -> Option<String> {
    let uids: BTreeSet<&Uid> = workload.applied?.objects.iter().filter_map(|entry| entry.uid.as_ref()).collect();
    let mut ours = workload.addons.values().flatten().filter(|found| uids.contains(&found.revision.uid));
    let found = ours.find(|found| is_dropped(&target.release, &found.live))?;
    let name = found.live.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    Some(format!("{name} is of a kind that the release has no more"))
}

/// Whether a Job is that of the update which somebody wants to be given up, as it was seen.
fn is_job_to_stop(input: &PlanningInput, name: &str, expect: &Revision) -> bool {
    let inventory = &input.inventory;
    let seen = inventory.orders.abort.as_ref().and_then(|order| order.upgrading.as_ref());
    let of_update = inventory.update.as_ref().is_some_and(|update| update.id.job_name().as_str() == name);
    of_update && seen == Some(expect)
}

/// Whether a Job was seen as one of an earlier update, and is none of this one.
fn is_job_of_the_past(input: &PlanningInput, name: &str, expect: &Revision) -> bool {
    let inventory = &input.inventory;
    let current = inventory.update.as_ref().is_some_and(|update| {
        [update.id.job_name(), update.id.abort_job_name()].iter().any(|current| current.as_str() == name)
    });
    let mut earlier = inventory.control_plane.earlier_jobs.iter();
    !current && earlier.any(|job| job.name.as_str() == name && job.revision == *expect)
}

/// Whether a template was seen as one that nobody refers to, no pool has it, and no update is on its way.
fn is_template_of_the_past(input: &PlanningInput, (kind, name): (&str, &str), expect: &Revision) -> bool {
    let inventory = &input.inventory;
    let under_way = inventory.update.as_ref().is_some_and(|update| !update.state.is_over());
    let mut pools = inventory.pools.values();
    let control_plane = inventory.control_plane.kubeadm.as_ref();
    let has_it = control_plane.is_some_and(|it| it.infrastructure_template.name.as_str() == name)
        || pools.any(|pool| {
            pool.infrastructure_template.name.as_str() == name || pool.bootstrap_template.name.as_str() == name
        });
    let mut seen = inventory.earlier_templates.iter();
    let was_seen = seen.any(|it| (it.kind, it.name.as_str()) == (kind, name) && it.revision == *expect);
    was_seen && !has_it && !under_way
}

/// What is wrong with the packages of the target; `None` if nothing is. Those of others are theirs.
fn trouble(target: &Target, inventory: &Inventory) -> Option<String> {
    let Some(workload) = inventory.reachable() else { return Some("the packages cannot be seen".to_owned()) };
    let found: Vec<&Value> = workload.addons.values().flatten().map(|object| &object.live).collect();
    let ours = target.release.addons.iter().filter(|(name, _)| !workload.foreign.contains_key(*name));
    let wanted = ours.flat_map(|(_, addon)| &addon.objects);
    let mut troubles = wanted.filter_map(|wanted| {
        let name = wanted.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let Some(live) = found.iter().find(|live| is_same(wanted, live)) else {
            return Some(format!("{name} is not there"));
        };
        let mut leaves = Vec::new();
        leaves_of(wanted, String::new(), &mut leaves);
        let wrong = leaves.iter().find(|(path, value)| live.pointer(path) != Some(*value));
        wrong
            .map(|(path, _)| format!("{name} is another at {path}"))
            .or_else(|| unwell(live).map(|why| format!("{name} {why}")))
    });
    troubles.next().or_else(|| dropped(target, &workload))
}

fn is_same(wanted: &Value, live: &Value) -> bool {
    ["/kind", "/metadata/name", "/metadata/namespace"].iter().all(|path| wanted.pointer(path) == live.pointer(path))
}

/// The scalars in a value, by their JSON pointers.
fn leaves_of<'v>(value: &'v Value, path: String, leaves: &mut Vec<(String, &'v Value)>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                leaves_of(field, format!("{path}/{key}"), leaves);
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                leaves_of(element, format!("{path}/{index}"), leaves);
            }
        }
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => leaves.push((path, value)),
    }
}

fn unwell(live: &Value) -> Option<String> {
    let number = |path: &str| live.pointer(path).and_then(Value::as_i64);
    let status = |field: &str| number(&format!("/status/{field}")).unwrap_or(0);
    let (wanted, there) = match live["kind"].as_str()? {
        "DaemonSet" => (status("desiredNumberScheduled"), status("numberReady")),
        "Deployment" => (number("/spec/replicas").unwrap_or(1), status("availableReplicas")),
        _ => return None,
    };
    if number("/metadata/generation").unwrap_or(0) > status("observedGeneration") {
        return Some("has not been looked at since it was changed".to_owned());
    }
    (there < wanted).then(|| format!("has {there} of {wanted} pods"))
}
