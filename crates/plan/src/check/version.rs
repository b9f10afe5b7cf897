//! V: what may be how much newer or older than what.

use serde_json::Value;
use windlass_api::label;
use windlass_api::version::KubernetesVersion;

use super::{Finding, finding, joins, of_kind, replaces, severity, written};
use crate::gate::Gate;
use crate::planner::{Planned, PlanningInput, Record};
use crate::step::Step;
use crate::target::Drive;

/// The version of Kubernetes that a write would give to machines.
pub(super) fn version_written(step: &Step) -> Option<KubernetesVersion> {
    let pointer = match step.action.kind() {
        "Machine" | "KubeadmControlPlane" => "/spec/version",
        "MachineDeployment" => "/spec/template/spec/version",
        "Cluster" => "/spec/topology/version",
        _ => return None,
    };
    written(step)?.pointer(pointer)?.as_str()?.parse().ok()
}

/// The first numbers of a text such as `v3.3.15_vmware.6`.
fn numbers(text: &str) -> Option<[u64; 3]> {
    let mut numbers = text.trim_start_matches('v').splitn(3, '.');
    let mut next = || numbers.next().map(|part| part.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
    Some([next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?])
}

/// V1, D2: no worker is ever newer than a machine of the control plane, and none is raised while one of those goes.
pub(super) fn workers_behind_control_plane(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let complain = |step: &Step| {
        let version = version_written(step)?;
        let machines = &input.inventory.control_plane.machines;
        let older = machines.iter().find(|machine| machine.version < version)?;
        let id = if older.version.minor() < version.minor() { "V1" } else { "D2" };
        let message = format!("workers would have {version} while {} has {}", older.name, older.version);
        Some(finding(input, Gate::WorkerOrder, id, step, message))
    };
    of_kind(planned, "MachineDeployment").filter_map(complain).collect()
}

/// V2, V7: API servers are never raised beyond what is there in kubelets.
pub(super) fn nothing_is_left_too_far_behind(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let Some(workload) = input.inventory.reachable() else { return Vec::new() };
    let to = input.target.release.kubernetes.minor();
    // Two minors before 1.25, three since.
    let reach = |minor: u64| minor + if minor < 25 { 2 } else { 3 };
    let left_behind = workload.nodes.iter().find(|node| {
        let minor = node.kubelet.minor();
        minor.major != to.major || reach(minor.minor) < to.minor
    });
    let Some(node) = left_behind else { return Vec::new() };
    let message = || format!("the kubelet of {} has {}, which {to} does not know any more", node.name, node.kubelet);
    let raises = joins(input, planned).filter(|step| step.action.kind() != "Machine");
    raises.map(|step| finding(input, Gate::KubeletsNotTooOld, "V7", step, message())).collect()
}

/// V5, D7: a kube-proxy is bound to nodes of one distribution, and those are no workers while an API server is older.
pub(super) fn proxies_behind_control_plane(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let complain = |step: &Step| {
        let object = written(step).filter(|object| object["metadata"]["labels"][label::ADDON.name] == "kube-proxy")?;
        let refuse = |message: String| Some(finding(input, Gate::ProxyNotAhead, "V5", step, message));
        let Some(bound) = bound_to(object) else { return refuse("it is bound to no distribution".to_owned()) };
        let workload = input.inventory.reachable()?;
        let proxies = workload.addons.iter().filter(|(addon, _)| addon.as_str() == "kube-proxy");
        let unbound = proxies.flat_map(|(_, found)| found).find(|found| bound_to(&found.live).is_none());
        if unbound.is_some() {
            return refuse("beside it there is a kube-proxy that is bound to no distribution".to_owned());
        }
        let image = object.pointer("/spec/template/spec/containers/0/image")?.as_str()?;
        let [_, minor, _] = numbers(image.rsplit(':').next()?)?;
        let machines = &input.inventory.control_plane.machines;
        let older = machines.iter().find(|machine| machine.version.minor().minor < minor)?;
        let on = workload.nodes.iter().filter(|node| !node.control_plane).find(|node| {
            node.distribution.as_ref().is_some_and(|distribution| distribution.tag().to_string() == bound)
        })?;
        refuse(format!("it would run on {} while {} has {}", on.name, older.name, older.version))
    };
    planned.steps.iter().filter(|step| step.action.kind() == "DaemonSet").filter_map(complain).collect()
}

/// The distribution whose nodes its pods are for.
fn bound_to(object: &Value) -> Option<&str> {
    let key = label::DISTRIBUTION_VERSION.name;
    object["metadata"]["labels"][key].as_str()?;
    object["spec"]["template"]["spec"]["nodeSelector"][key].as_str()
}

/// V3, V6, V8: no version is lowered, no minor is skipped, and API servers are never of three minors.
pub(super) fn versions_go_up_by_one_minor(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let inventory = &input.inventory;
    let machines = inventory.control_plane.machines.iter().map(|machine| (&machine.version, true));
    let kubeadm = inventory.control_plane.kubeadm.iter().map(|kubeadm| (&kubeadm.version, true));
    let topology = inventory.topology.iter().map(|topology| (&topology.version, true));
    // A pool that waited for a later hop goes up by several minors at once: its machines are made anew.
    let pools = inventory.pools.values().map(|pool| (&pool.version, false));
    let there: Vec<(&KubernetesVersion, bool)> = machines.chain(kubeadm).chain(topology).chain(pools).collect();
    let target = &input.target.release.kubernetes;
    let wrong = |to: &KubernetesVersion| {
        there.iter().find_map(|(from, strict)| {
            let (ours, theirs) = (to.minor(), from.minor());
            let skipped = ours.major != theirs.major || ours.minor > theirs.minor.saturating_add(1);
            match (to < *from, skipped && *strict) {
                (true, _) => Some(("V8", format!("{from} would be lowered to {to}"))),
                (false, true) => Some(("V6", format!("a minor would be skipped from {from} to {to}"))),
                (false, false) => None,
            }
        })
    };
    let mut findings = Vec::new();
    for step in super::managing(planned) {
        let to = if step.action.kind() == "Job" { Some(target.clone()) } else { version_written(step) };
        // A pool that is only scaled keeps its version, whatever the control plane has by now.
        let kept = |to: &KubernetesVersion| inventory.pools.values().any(|pool| pool.version == *to) && to != target;
        let found = to.filter(|to| !kept(to)).and_then(|to| wrong(&to));
        findings.extend(found.map(|(id, message)| finding(input, Gate::VersionPath, id, step, message)));
    }
    if let Some(Record::Begin { name, .. }) = &planned.record {
        findings.extend(wrong(target).map(|(id, message)| Finding {
            id: id.to_owned(),
            severity: severity(input.gates.has(Gate::VersionPath)),
            object: format!("ClusterUpdate/{name}"),
            message,
        }));
    }
    findings
}

/// V9: where Cluster API makes workers, they have the minor of the control plane.
pub(super) fn workers_join_their_own_minor(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    if input.target.drive == Drive::Machines {
        return Vec::new();
    }
    let control_plane = &input.inventory.control_plane;
    let machines = control_plane.machines.iter().map(|machine| &machine.version);
    let all: Vec<_> = machines.chain(control_plane.kubeadm.iter().map(|kubeadm| &kubeadm.version)).collect();
    let complain = |step: &Step| {
        let version = version_written(step)?;
        let other = all.iter().find(|other| other.minor() != version.minor())?;
        let message = format!("workers of {version} would join a control plane of {other}");
        Some(finding(input, Gate::JoinAtControlPlaneVersion, "V9", step, message))
    };
    of_kind(planned, "MachineDeployment").filter_map(complain).collect()
}

/// V10: etcd goes up by one minor, from a patch that can.
pub(super) fn etcd_goes_up_by_one_minor(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let to = input.target.release.etcd_tag().and_then(numbers);
    let (Some(workload), Some(to)) = (input.inventory.reachable(), to) else { return Vec::new() };
    let wrong = workload.etcd.iter().find_map(|member| {
        let at = numbers(member.version.as_ref()?.as_str())?;
        let steps = [[at[0], at[1]], [at[0], at[1] + 1]];
        let fits = steps.contains(&[to[0], to[1]]) && to >= at && !(at[..2] == [3, 5] && to[1] == 6 && at[2] < 32);
        (!fits).then(|| format!("etcd cannot go from {at:?}, which {} has, to {to:?}", member.name))
    });
    let Some(message) = wrong else { return Vec::new() };
    of_kind(planned, "Job")
        .filter(|step| replaces(step))
        .map(|step| finding(input, Gate::EtcdStep, "V10", step, message.clone()))
        .collect()
}
