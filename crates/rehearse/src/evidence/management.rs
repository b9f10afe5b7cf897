//! What the management cluster says: machines, updates, and who holds what.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_api::{annotation, label};
use windlass_plan::risk::Known;
use windlass_plan::risk::evidence::{Evidence, HealthCheck, Hold, HoldOn, Keeper, Machine, Update, UpdateState};

use super::lists::Lists;
use super::object::{self, is_true, list, name_of, namespace_of, selects, shown, some_text, text};

/// The two objects that are the cluster: as people ask for it, and as Cluster API has it.
const WISH: &str = "TanzuKubernetesCluster";
pub(super) const CLUSTER: &str = "Cluster";
/// What Cluster API itself holds machines by: it lets go by itself.
const OF_CLUSTER_API: &str = "kcp-cleanup";

pub(super) fn fill(evidence: &mut Evidence, lists: &Lists<'_>, own: Option<&Value>) {
    let own = own.map_or_else(
        || Known::unread("the object of the cluster", "there is no TanzuKubernetesCluster of this name"),
        Known::Read,
    );
    evidence.unmanaged = own.as_ref().map(|own| unmanaged(own));
    evidence.keepers = own.map(|own| keeper(own).into_iter().collect());
    evidence.machines = lists.kind("Machine").map(|found| its_own(found, evidence).map(machine).collect());
    evidence.health_checks = health_checks(lists, evidence);
    evidence.updates = lists.kind("ClusterUpdate").map(|found| updates(&found, evidence));
    evidence.holds = lists.kinds(&[WISH, CLUSTER, "MachineDeployment", "Machine"]).map(|found| holds(found, evidence));
}

/// The objects that belong to the cluster, by the label that Cluster API gives them.
pub(super) fn its_own<'s>(found: Vec<&'s Value>, evidence: &Evidence) -> impl Iterator<Item = &'s Value> + use<'s> {
    let (namespace, name) = (evidence.cluster.namespace.to_string(), evidence.cluster.name.to_string());
    found.into_iter().filter(move |object| {
        let of = object::label(object, label::CLUSTER_NAME.name).unwrap_or(text(object, "/spec/clusterName"));
        namespace_of(object) == namespace && of == name
    })
}

fn is_control_plane(machine: &Value) -> bool {
    object::label(machine, label::CONTROL_PLANE.name).is_some()
}

fn machine(machine: &Value) -> Machine {
    Machine {
        name: name_of(machine).to_owned(),
        control_plane: is_control_plane(machine),
        node: some_text(machine, "/status/nodeRef/name"),
        deleting: some_text(machine, "/metadata/deletionTimestamp").is_some(),
        phase: some_text(machine, "/status/phase").unwrap_or_else(|| "without a phase".to_owned()),
    }
}

/// How long machines wait for their pods to leave, told to their nodes. Nothing and zero are for ever.
pub(super) fn drain_timeouts(evidence: &mut Evidence, lists: &Lists<'_>) {
    let machines = its_own(lists.of("Machine").collect(), evidence);
    let timeouts: BTreeMap<String, u64> = machines
        .filter_map(|machine| {
            let seconds = machine.pointer("/spec/deletion/nodeDrainTimeoutSeconds")?.as_u64()?;
            Some((some_text(machine, "/status/nodeRef/name")?, seconds)).filter(|_| seconds > 0)
        })
        .collect();
    if let Known::Read(nodes) = &mut evidence.nodes {
        for node in nodes {
            node.drain_timeout_seconds = timeouts.get(&node.name).copied();
        }
    }
}

fn health_checks(lists: &Lists<'_>, evidence: &Evidence) -> Known<Vec<HealthCheck>> {
    let machines: Vec<&Value> = its_own(lists.of("Machine").collect(), evidence).collect();
    let check = |check: &Value| {
        let selected =
            machines.iter().filter(|machine| selects(check.pointer("/spec/selector"), &object::labels(machine)));
        let machines = selected.map(|machine| name_of(machine).to_owned()).collect();
        HealthCheck { name: object::full_name(check), machines }
    };
    lists.kind("MachineHealthCheck").map(|found| its_own(found, evidence).map(check).collect())
}

fn updates(found: &[&Value], evidence: &Evidence) -> Vec<Update> {
    let cluster = &evidence.cluster;
    let is_its_own = |update: &&&Value| {
        namespace_of(update) == cluster.namespace.as_str() && text(update, "/spec/cluster") == cluster.name.as_str()
    };
    let mut own: Vec<&Value> = found.iter().filter(is_its_own).copied().collect();
    own.sort_by_key(|update| update["spec"]["ordinal"].as_u64());
    own.into_iter().map(update).collect()
}

fn update(update: &Value) -> Update {
    let waits = list(update, "/status/waitingFor").filter_map(|wait| some_text(wait, "/message"));
    Update {
        name: name_of(update).to_owned(),
        to: text(update, "/spec/to/distribution").to_owned(),
        state: match text(update, "/status/state") {
            "Succeeded" => UpdateState::Succeeded,
            "Failed" => UpdateState::Failed,
            "Aborted" => UpdateState::Aborted,
            _ => UpdateState::Running,
        },
        because: some_text(update, "/status/failure").into_iter().chain(waits).collect(),
    }
}

fn holds(found: Vec<&Value>, evidence: &Evidence) -> Vec<Hold> {
    let is_cluster = |object: &&Value| object["kind"] == WISH || object["kind"] == CLUSTER;
    let (clusters, others): (Vec<&Value>, Vec<&Value>) = found.into_iter().partition(is_cluster);
    let (namespace, name) = (evidence.cluster.namespace.as_str(), evidence.cluster.name.as_str());
    let is_it = |object: &&Value| namespace_of(object) == namespace && name_of(object) == name;
    clusters.into_iter().filter(is_it).chain(its_own(others, evidence)).flat_map(holds_of).collect()
}

fn holds_of(object: &Value) -> Vec<Hold> {
    let (namespace, name) = (namespace_of(object), name_of(object));
    let kind = text(object, "/kind");
    let (on, plural) = match kind {
        WISH => (HoldOn::Cluster, "tanzukubernetescluster"),
        CLUSTER => (HoldOn::Cluster, "cluster.cluster.x-k8s.io"),
        "MachineDeployment" => (HoldOn::Pool, "machinedeployment"),
        _ => (HoldOn::Machine, "machine"),
    };
    let hold = |how: String, way_out: String| Hold { object: shown(object), how, on, way_out };
    let mut holds = Vec::new();
    // Ours is let go by us.
    let is_ours = object::annotation(object, annotation::HELD_FOR_RELEASE.name).is_some();
    if is_true(object, "/spec/paused") && !is_ours {
        let patch = r#"{"spec":{"paused":false}}"#;
        let way_out = format!("kubectl -n {namespace} patch {plural} {name} --type=merge -p '{patch}'");
        holds.push(hold("spec.paused is true".to_owned(), way_out));
    }
    let none = serde_json::Map::new();
    let annotations = object["metadata"]["annotations"].as_object().unwrap_or(&none);
    let prefixes = [annotation::PRE_DRAIN_HOLD_PREFIX, annotation::PRE_TERMINATE_HOLD_PREFIX];
    let is_hold = |key: &&String| {
        *key == annotation::PAUSED.name || (prefixes.iter().any(|prefix| key.starts_with(prefix)) && !is_let_go_of(key))
    };
    for key in annotations.keys().filter(is_hold) {
        let way_out = format!("kubectl -n {namespace} annotate {plural} {name} {key}-");
        holds.push(hold(format!("it has the annotation {key}"), way_out));
    }
    holds
}

/// Whether whoever set a hook takes it away by itself: the control plane, and we.
fn is_let_go_of(key: &str) -> bool {
    key.ends_with(OF_CLUSTER_API) || key == annotation::OUTLIVES_PACKAGES.name
}

/// The add-ons that somebody else has brought in.
fn unmanaged(own: &Value) -> Vec<String> {
    let addons = own.pointer("/status/addons").and_then(Value::as_object).into_iter().flatten();
    let unmanaged = addons.filter(|(_, addon)| text(addon, "/status") == "unmanaged");
    unmanaged.map(|(slot, addon)| format!("{} ({slot})", text(addon, "/name"))).collect()
}

/// What keeps the cluster's own object as a repository has it.
fn keeper(own: &Value) -> Option<Keeper> {
    let kept_by = |tool: &str, of: String| Keeper { object: shown(own), tool: tool.to_owned(), of };
    let flux = |group: &str, kind: &str| {
        let name = object::label(own, &format!("{group}.toolkit.fluxcd.io/name"))?;
        Some(kept_by("Flux", format!("the {kind} {name}")))
    };
    let argo = || {
        let label = object::label(own, "argocd.argoproj.io/instance").map(str::to_owned);
        let tracked = object::annotation(own, "argocd.argoproj.io/tracking-id");
        let name = label.or_else(|| tracked?.split(':').next().map(str::to_owned))?;
        Some(kept_by("Argo CD", format!("the Application {name}")))
    };
    argo().or_else(|| flux("kustomize", "Kustomization")).or_else(|| flux("helm", "HelmRelease"))
}
