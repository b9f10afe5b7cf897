//! What the workload cluster says about its nodes, its etcd, and what its objects are written in.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_api::label;
use windlass_api::name::NamespacedName;
use windlass_plan::inventory;
use windlass_plan::risk::Known;
use windlass_plan::risk::evidence::{
    ApiUse, Client, Definition, DefinitionVersion, Evidence, Gap, Member, Node, Selection, Volume,
};
use windlass_sim::workload::Alarm;

use super::lists::{Lists, taken_over};
use super::object::{self, condition, full_name, is_true, list, name_of, said, shown, some_text, text};
use crate::snapshot::{EtcdMember, Snapshot};

/// What `kubectl apply` leaves behind.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// What a node may be short of.
const PRESSURES: [&str; 4] = ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"];
/// What makes pods of a template.
const TEMPLATES: [&str; 3] = ["DaemonSet", "Deployment", "StatefulSet"];

pub(super) fn fill(evidence: &mut Evidence, lists: &Lists<'_>) {
    evidence.nodes = lists.kind("Node").map(|nodes| nodes.into_iter().map(node).collect());
    evidence.volumes = lists.kind("PersistentVolume").map(|volumes| volumes.into_iter().map(volume).collect());
    let definitions = lists.kind("CustomResourceDefinition");
    evidence.definitions = definitions.map(|found| found.into_iter().map(definition).collect());
    evidence.objects = lists.kind("PodSecurityPolicy").map(|found| foreign(found).map(api_use).collect());
    evidence.manifests = manifests(lists);
    evidence.clients = clients(lists);
    evidence.selections = lists.kinds(&TEMPLATES).map(|found| foreign(found).flat_map(selections).collect());
}

/// Those that are of no package of Windlass, which sees to its own.
fn foreign(found: Vec<&Value>) -> impl Iterator<Item = &Value> + use<'_> {
    found.into_iter().filter(|object| object::label(object, label::ADDON.name).is_none())
}

fn node(node: &Value) -> Node {
    let is_true = |type_: &&&str| condition(node, type_).is_some_and(|condition| condition["status"] == "True");
    let short = PRESSURES.iter().filter(is_true).map(|type_| format!("it says {type_}"));
    let ready = condition(node, "Ready");
    let not_ready = match ready {
        Some(ready) if ready["status"] == "True" => None,
        Some(ready) => Some(format!("it is not ready: {}", said(ready))),
        None => Some("it is not ready: it has never said so".to_owned()),
    };
    let roles = [label::NODE_CONTROL_PLANE.name, label::NODE_MASTER.name];
    Node {
        name: name_of(node).to_owned(),
        control_plane: roles.iter().any(|role| object::label(node, role).is_some()),
        kubelet: text(node, "/status/nodeInfo/kubeletVersion").parse().ok(),
        unwell: not_ready.into_iter().chain(short).collect(),
        cordoned: object::is_true(node, "/spec/unschedulable"),
        drain_timeout_seconds: None,
    }
}

/// The members of etcd; `None` where the whole cluster is not known.
pub(super) fn members(snapshot: &Snapshot, lists: &Lists<'_>, cluster: &NamespacedName) -> Option<Known<Vec<Member>>> {
    let Some(found) = snapshot.workloads.get(cluster) else {
        return lists.missing().map(|gap| Known::Unread(gap.clone()));
    };
    let what = format!("the members of etcd of {cluster}");
    let gap = snapshot.gaps.iter().find(|gap| gap.what == what);
    Some(match gap {
        Some(gap) => Known::Unread(taken_over(gap)),
        // A cluster with an API has an etcd.
        None if found.members.is_empty() => Known::unread(&what, "none was seen"),
        None => Known::Read(found.members.iter().map(member).collect()),
    })
}

fn member(member: &EtcdMember) -> Member {
    let EtcdMember { id, name, learner, healthy, version, alarms, .. } = member.clone();
    let alarm = |alarm: Alarm| match alarm {
        Alarm::NoSpace => inventory::Alarm::NoSpace,
        Alarm::Corrupt => inventory::Alarm::Corrupt,
    };
    Member { id, name, healthy, learner, version, alarms: Known::Read(alarms.into_iter().map(alarm).collect()) }
}

fn volume(volume: &Value) -> Volume {
    let claim = some_text(volume, "/spec/claimRef/name");
    let namespace = text(volume, "/spec/claimRef/namespace");
    let parts = ["local", "hostPath"];
    Volume {
        name: name_of(volume).to_owned(),
        claim: claim.map(|claim| format!("{namespace}/{claim}")),
        on_node: parts.iter().find(|part| volume["spec"][**part].is_object()).map(|part| (*part).to_owned()),
    }
}

fn definition(definition: &Value) -> Definition {
    let version = |version: &Value| DefinitionVersion {
        name: text(version, "/name").to_owned(),
        served: is_true(version, "/served"),
        storage: is_true(version, "/storage"),
    };
    let stored = list(definition, "/status/storedVersions").filter_map(Value::as_str);
    Definition {
        name: name_of(definition).to_owned(),
        stored: stored.map(str::to_owned).collect(),
        versions: list(definition, "/spec/versions").map(version).collect(),
    }
}

fn api_use(object: &Value) -> ApiUse {
    let (api_version, kind) = (text(object, "/apiVersion").to_owned(), text(object, "/kind").to_owned());
    ApiUse { object: shown(object), api_version, kind }
}

/// The manifests that were applied, where their copies are left. Without any of them nobody can say.
fn manifests(lists: &Lists<'_>) -> Known<Vec<ApiUse>> {
    let applied = foreign(lists.all().iter().collect()).filter_map(|object| {
        let manifest: Value = serde_json::from_str(object::annotation(object, LAST_APPLIED)?).ok()?;
        Some(ApiUse { object: shown(object), ..api_use(&manifest) })
    });
    let applied: Vec<ApiUse> = applied.collect();
    let way_out = "kubectl get -A all,ing,pdb,cronjobs -o yaml | grep -A1 last-applied-configuration".to_owned();
    known(lists, applied, "the manifests that were applied", way_out)
}

/// Who wrote what, as far as managed fields are there.
fn clients(lists: &Lists<'_>) -> Known<Vec<Client>> {
    let mut found: BTreeMap<(String, String, String), Client> = BTreeMap::new();
    for object in foreign(lists.all().iter().collect()) {
        for entry in list(object, "/metadata/managedFields") {
            let (name, api_version) = (text(entry, "/manager").to_owned(), text(entry, "/apiVersion").to_owned());
            let kind = text(object, "/kind").to_owned();
            let client = Client {
                name: name.clone(),
                api_version: api_version.clone(),
                kind: kind.clone(),
                object: shown(object),
                last: text(entry, "/time").parse().ok(),
            };
            let known = found.entry((name, api_version, kind)).or_insert_with(|| client.clone());
            if known.last < client.last {
                *known = client;
            }
        }
    }
    let way_out = "kubectl get --show-managed-fields -A all,ing,pdb,cronjobs -o yaml".to_owned();
    known(lists, found.into_values().collect(), "metadata.managedFields", way_out)
}

/// What was found; where that is nothing, it was left out and not missing.
fn known<T>(lists: &Lists<'_>, found: Vec<T>, what: &str, way_out: String) -> Known<Vec<T>> {
    match lists.missing() {
        Some(gap) => Known::Unread(gap.clone()),
        None if found.is_empty() => {
            let why = "snapshots leave them out".to_owned();
            Known::Unread(Gap { what: what.to_owned(), why, way_out })
        }
        None => Known::Read(found),
    }
}

/// The labels that the pods of an object select nodes by, and the taints that they tolerate.
fn selections(object: &Value) -> Vec<Selection> {
    let pod = &object["spec"]["template"]["spec"];
    let selector = pod["nodeSelector"].as_object().into_iter().flatten().map(|(key, _)| key.clone());
    let required = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let terms = list(pod, required).flat_map(|term| list(term, "/matchExpressions"));
    let affinity = terms.filter_map(|expression| some_text(expression, "/key"));
    let selection = |key: String, tolerates| Selection { object: shown(object), key, tolerates };
    let tolerated: Vec<&str> = list(pod, "/tolerations").map(|toleration| text(toleration, "/key")).collect();
    // Who tolerates everything, or the taint that has taken its place, does not depend on the old one.
    let depends = !tolerated.iter().any(|key| key.is_empty() || *key == label::NODE_CONTROL_PLANE.name);
    let tolerations = tolerated.iter().filter(|key| depends && **key == label::NODE_MASTER.name);
    let tolerations = tolerations.map(|key| selection((*key).to_owned(), true));
    selector.chain(affinity).map(|key| selection(key, false)).chain(tolerations).collect()
}

/// The name of an object for those who look for it.
pub(super) fn named<'s>(lists: &Lists<'s>, kind: &str, name: &str) -> Option<&'s Value> {
    lists.of(kind).find(|object| full_name(object) == name)
}
