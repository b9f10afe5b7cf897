//! What the workload cluster says about its nodes, its etcd, and what its objects are written in.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_api::label;
use windlass_api::name::NamespacedName;
use windlass_plan::inventory;
use windlass_plan::risk::evidence::{
    ApiUse, Client, Definition, DefinitionVersion, Evidence, Gap, Member, Node, Selection, UnreadKind, Volume,
};
use windlass_plan::risk::{Known, kinds_that_lose_versions};
use windlass_sim::workload::Alarm;

use super::lists::{Lists, taken_over};
use super::object::{self, condition, full_name, is_true, list, name_of, said, shown, some_text, text};
use crate::snapshot::{EtcdMember, MANIFESTS, Snapshot};

/// Parts of Kubernetes that write objects: they are replaced with the rest of it.
const OWN_CLIENTS: [&str; 4] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"];
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
    evidence.unread_kinds = unread_kinds(lists);
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

/// The manifests that were applied, where their versions are left.
fn manifests(lists: &Lists<'_>) -> Known<Vec<ApiUse>> {
    let applied = foreign(lists.all().iter().collect()).flat_map(|object| {
        let texts = MANIFESTS.iter().filter_map(|name| object::annotation(object, name));
        let manifests = texts.filter_map(|text| serde_json::from_str::<Value>(text).ok());
        manifests.map(|manifest| ApiUse { object: shown(object), ..api_use(&manifest) })
    });
    match lists.missing() {
        Some(gap) => Known::Unread(gap.clone()),
        None => Known::Read(applied.collect()),
    }
}

/// Who wrote what, as far as managed fields are there: clusters before 1.18 have none.
fn clients(lists: &Lists<'_>) -> Known<Vec<Client>> {
    let mut found: BTreeMap<(String, String, String), Client> = BTreeMap::new();
    for object in foreign(lists.all().iter().collect()) {
        for client in writers(object) {
            let key = (client.name.clone(), client.api_version.clone(), client.kind.clone());
            let known = found.entry(key).or_insert_with(|| client.clone());
            if known.last < client.last {
                *known = client;
            }
        }
    }
    match lists.missing() {
        Some(gap) => Known::Unread(gap.clone()),
        None if !lists.all().iter().any(|object| list(object, MANAGED).next().is_some()) => Known::Unread(Gap {
            what: "metadata.managedFields".to_owned(),
            why: "no object has any: clusters keep them since 1.18".to_owned(),
            way_out: "look for the programs that write to the cluster, and for their versions".to_owned(),
        }),
        None => Known::Read(found.into_values().collect()),
    }
}

const MANAGED: &str = "/metadata/managedFields";

/// Who wrote an object, each in the version in which it did so last.
fn writers(object: &Value) -> impl Iterator<Item = Client> {
    let mut last: BTreeMap<&str, Client> = BTreeMap::new();
    for entry in list(object, MANAGED).filter(|entry| !OWN_CLIENTS.contains(&text(entry, "/manager"))) {
        let name = text(entry, "/manager");
        let client = Client {
            name: name.to_owned(),
            api_version: text(entry, "/apiVersion").to_owned(),
            kind: text(object, "/kind").to_owned(),
            object: shown(object),
            last: text(entry, "/time").parse().ok(),
        };
        let known = last.entry(name).or_insert_with(|| client.clone());
        if known.last < client.last {
            *known = client;
        }
    }
    last.into_values()
}

/// The kinds that lose a version some day and could not be read, or are in no snapshot.
fn unread_kinds(lists: &Lists<'_>) -> Vec<UnreadKind> {
    let unread = |kind: &str| match lists.kind(kind) {
        Known::Read(_) => None,
        Known::Unread(gap) => Some(UnreadKind { kind: kind.to_owned(), gap }),
    };
    kinds_that_lose_versions().into_iter().filter_map(unread).collect()
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
