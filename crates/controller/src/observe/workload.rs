//! What the workload cluster says.
//!
//! A few lists, within a time: a cluster that hangs must not hold up its status, which says that it hangs.

mod foreign;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Node as LiveNode, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;
use windlass_api::condition::ConditionType;
use windlass_api::label;
use windlass_api::name::{AddonName, ClusterSecret, NodeName};
use windlass_plan::inventory::{AddonObject, AppliedAddons, EtcdMember, Node, Workload, applied};
use windlass_plan::step::Place;
use windlass_plan::target::Target;
use windlass_runtime::trimmed;

use super::management::revision;
use super::{Gaps, Which};
use crate::access::WorkloadCluster;
use crate::execute::Kinds;
use crate::reconcile::context::Reach;
use crate::said::{is_not_found, said, with_causes};

/// How long the workload cluster has for all its answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// The key of a kubeconfig in its Secret.
const KUBECONFIG_KEY: &str = "value";

type Addons = BTreeMap<AddonName, Vec<AddonObject>>;

/// Asks the workload cluster, if there is a kubeconfig for it.
pub(crate) async fn observe(
    ctx: &Reach,
    subject: &Which<'_>,
    target: &Target,
    kubeconfig: Option<&str>,
    gaps: &mut Gaps,
) -> (Workload, Option<WorkloadCluster>) {
    let Some(kubeconfig) = kubeconfig else { return (Workload::NotYet, None) };
    let asked = async {
        let connection = connect(ctx, subject, kubeconfig).await?;
        let workload = ask(ctx, &connection, target, gaps).await?;
        Ok((workload, connection))
    };
    let answer = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    match answer {
        Ok((workload, connection)) => (workload, Some(connection)),
        Err(why) => {
            ctx.memory.drop_connection(&subject.key);
            (Workload::Unreachable { why }, None)
        }
    }
}

async fn connect(ctx: &Reach, subject: &Which<'_>, revision: &str) -> Result<WorkloadCluster, String> {
    if let Some(connection) = ctx.memory.connection(&subject.key, revision) {
        return Ok(connection);
    }
    let api: Api<Secret> = Api::namespaced(ctx.access.client.clone(), subject.namespace.as_str());
    let name = ClusterSecret::Kubeconfig.object_name(subject.name);
    let secret = api.get(name.as_str()).await.map_err(|error| format!("read Secret/{name}: {}", said(&error)))?;
    let data = secret.data.unwrap_or_default();
    let kubeconfig = data.get(KUBECONFIG_KEY).ok_or_else(|| format!("Secret/{name} has no key {KUBECONFIG_KEY}"))?;
    let connected = ctx.access.workloads.connect(&subject.namespaced_name(), &kubeconfig.0).await;
    let connection = connected.map_err(|error| error.to_string())?;
    ctx.memory.keep_connection(&subject.key, revision.to_owned(), connection.clone());
    Ok(connection)
}

async fn ask(ctx: &Reach, connection: &WorkloadCluster, target: &Target, gaps: &mut Gaps) -> Result<Workload, String> {
    let nodes = nodes(&connection.client, gaps).await?;
    let applied = applied(&connection.client).await?;
    let mut addons = Addons::new();
    for (api_version, kind) in kinds_of_addons(target, applied.as_ref()) {
        list_addons(&ctx.kinds, &connection.client, &api_version, &kind, &mut addons, gaps).await?;
    }
    let foreign = foreign::addons(&ctx.kinds, &connection.client, target, &addons, applied.as_ref()).await?;
    let members = connection.etcd.members().await;
    let members = gaps.take("etcd", members).unwrap_or_default();
    let etcd = members.into_iter().map(member).collect();
    Ok(Workload::Reachable { nodes, addons, etcd, foreign, applied })
}

/// A member of etcd, in the words of whoever plans.
pub(crate) fn member(member: crate::access::Member) -> EtcdMember {
    let crate::access::Member { id, name, learner, healthy, leader, version, alarms } = member;
    EtcdMember { id, name, healthy, learner, leader, version, alarms }
}

async fn nodes(client: &Client, gaps: &mut Gaps) -> Result<Vec<Node>, String> {
    let api: Api<LiveNode> = Api::all(client.clone());
    let listed = trimmed::list(&api, &ListParams::default()).await;
    let listed = listed.map_err(|error| format!("list Nodes: {}", said(&error)))?;
    Ok(listed.into_iter().filter_map(|live| node(&live, gaps)).collect())
}

fn node(live: &LiveNode, gaps: &mut Gaps) -> Option<Node> {
    let name = live.metadata.name.as_deref().unwrap_or_default();
    let object = format!("Node/{name}");
    let labels = live.metadata.labels.clone().unwrap_or_default();
    let status = live.status.clone().unwrap_or_default();
    let kubelet = status.node_info.map(|info| info.kubelet_version).unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let distribution = label::DISTRIBUTION_VERSION.get(&labels).map_err(|error| with_causes(&error));
    let labelled = label::NODE_CONTROL_PLANE.is_in(&labels) || label::NODE_MASTER.is_in(&labels);
    Some(Node {
        name: gaps.take(&object, NodeName::new(name))?,
        control_plane: labelled,
        labelled,
        kubelet: gaps.take(&object, kubelet.parse())?,
        distribution: gaps.take(&object, distribution).flatten(),
        ready: conditions.iter().any(|c| c.type_ == ConditionType::Ready.as_str() && c.status == "True"),
    })
}

/// The record of what was applied. One that cannot be read is as good as empty: then nothing is removed, and it is written anew.
async fn applied(client: &Client) -> Result<Option<AppliedAddons>, String> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), applied::NAMESPACE);
    let found = api.get_opt(applied::NAME).await;
    let Some(found) = found.map_err(|error| format!("read ConfigMap/{}: {}", applied::NAME, said(&error)))? else {
        return Ok(None);
    };
    let text = found.data.as_ref().and_then(|data| data.get(applied::KEY)).map(String::as_str).unwrap_or_default();
    let objects = applied::read(text).unwrap_or_else(|error| {
        tracing::warn!(%error, "the record of what was applied cannot be read: nothing is removed by it");
        BTreeSet::new()
    });
    Ok(Some(AppliedAddons { revision: revision(&found.metadata)?, objects }))
}

/// The kinds that add-ons can be of: those of this release, those on record, and those that an earlier one surely had.
fn kinds_of_addons(target: &Target, applied: Option<&AppliedAddons>) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let objects = target.release.addons.values().flat_map(|addon| &addon.objects);
    let of_release = objects.map(|object| (text(&object["apiVersion"]), text(&object["kind"])));
    let always = ["DaemonSet", "Deployment"].map(|kind| ("apps/v1".to_owned(), kind.to_owned()));
    let on_record = applied.into_iter().flat_map(|applied| &applied.objects);
    let on_record = on_record.map(|object| (object.api_version.clone(), object.kind.clone()));
    of_release.chain(always).chain(on_record).collect()
}

async fn list_addons(
    kinds: &Kinds,
    client: &Client,
    api_version: &str,
    kind: &str,
    addons: &mut Addons,
    gaps: &mut Gaps,
) -> Result<(), String> {
    let of_addons = ListParams::default().labels(label::ADDON.name);
    let api = match kinds.api_of_all(client, Place::Workload, api_version, kind).await {
        Ok(api) => api,
        // A kind that comes with an add-on is not there before the add-on is, and neither is any object of it.
        Err(error) if error.is_no_such_kind() => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let listed = match trimmed::list_values(&api, &of_addons).await {
        Ok(listed) => listed,
        Err(error) if is_not_found(&error) => return Ok(()),
        Err(error) => return Err(format!("list {kind} of {api_version}: {}", said(&error))),
    };
    for live in listed {
        let object = format!("{kind}/{}", live["metadata"]["name"].as_str().unwrap_or_default());
        if let Some((addon, found)) = gaps.take(&object, addon_object(live, api_version, kind)) {
            addons.entry(addon).or_default().push(found);
        }
    }
    Ok(())
}

/// Objects come sorted: kinds are asked for in order, and each list is by namespace and name.
fn addon_object(mut live: Value, api_version: &str, kind: &str) -> Result<(AddonName, AddonObject), String> {
    let metadata = &live["metadata"];
    let text = |field: &str| metadata[field].as_str().map(str::to_owned);
    let labels = metadata["labels"].as_object().into_iter().flatten();
    let labels: BTreeMap<String, String> =
        labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
    let addon = label::ADDON.get(&labels).map_err(|error| with_causes(&error))?;
    let addon = addon.ok_or("it lost its label while it was listed")?;
    let meta = ObjectMeta { uid: text("uid"), resource_version: text("resourceVersion"), ..ObjectMeta::default() };
    let revision = revision(&meta)?;
    // Items of a list of a built-in kind do not say what they are.
    if let Some(fields) = live.as_object_mut() {
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), kind.into());
    }
    Ok((addon, AddonObject { revision, live }))
}
