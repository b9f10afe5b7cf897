//! What is read for the packages of a cluster: in the management cluster, and in the workload cluster.
//!
//! Of Secrets with values only a digest leaves this file.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::packaging::{App, Package, PackageInstall};
use windlass_api::kind::release::{ClusterBootstrap, ClusterBootstrapTemplate, LocalReference, TanzuKubernetesRelease};
use windlass_api::name::{ClusterSecret, PackagePart};
use windlass_plan::bootstrap::values::{self, Found, FoundValues};
use windlass_plan::bootstrap::{
    Bringing, Copies, CopyOrder, Installed, Installs, Listed, Reference, SYSTEM_NAMESPACE, Settling, Subject, Workload,
    listed, prerequisites, references,
};
use windlass_plan::release::PackageSlot;
use windlass_plan::resolve::copy;
use windlass_plan::step::Place;
use windlass_runtime::runner::Ctx;

use super::{Context, Error};
use crate::said::{is_not_found, said};

/// How long the workload cluster has for all its answers.
const PATIENCE: Duration = Duration::from_secs(10);
/// The key of a kubeconfig in its Secret.
const KUBECONFIG_KEY: &str = "value";
/// What kapp marks objects of an App with, unless its record says otherwise.
const APP_LABEL: &str = "kapp.k14s.io/app";

/// What it is decided by which packages a cluster should have.
pub(super) struct Basis {
    pub release: Option<TanzuKubernetesRelease>,
    pub templates: BTreeMap<String, ClusterBootstrapTemplate>,
    pub bootstrap: Option<ClusterBootstrap>,
}

/// What there is of the packages.
pub(super) struct Sight {
    packages: BTreeMap<String, Value>,
    values: FoundValues,
    digests: BTreeMap<String, String>,
    kapp: Installed,
    kubeconfig: Option<Value>,
    workload: Workload,
}

impl Sight {
    /// The same, for whoever plans.
    pub(super) fn bringing<'a>(
        &'a self,
        cluster: &'a Subject,
        bootstrap: &'a ClusterBootstrap,
        listed: Option<&'a [LocalReference]>,
        now: Timestamp,
    ) -> Bringing<'a> {
        Bringing {
            cluster,
            bootstrap,
            listed,
            packages: &self.packages,
            values: &self.values,
            digests: &self.digests,
            kapp: &self.kapp,
            kubeconfig: self.kubeconfig.as_ref(),
            workload: &self.workload,
            moving: None,
            now,
        }
    }
}

pub(super) fn unread(object: impl Into<String>) -> impl FnOnce(kube::Error) -> Error {
    let object = object.into();
    move |source| Error::Read { object, source: Box::new(source) }
}

/// An object; nothing where there is none, or no such kind.
pub(super) async fn find<K: DeserializeOwned + Clone + std::fmt::Debug>(
    api: &Api<K>,
    name: &str,
) -> Result<Option<K>, Error> {
    match api.get_opt(name).await {
        Err(error) if is_not_found(&error) => Ok(None),
        found => found.map_err(unread(name)),
    }
}

/// The release of a cluster: the object, or where that is gone the copy that the cluster has of it.
async fn release(
    ctx: &Ctx<Context>,
    cluster: &Cluster,
    subject: &Subject,
) -> Result<Option<TanzuKubernetesRelease>, Error> {
    let found = find(&Api::all(ctx.access.client.clone()), subject.release.as_str()).await?;
    let text = cluster.annotations().get(annotation::RELEASE_COPY.name);
    let kept = || text.filter(|text| copy::is_of(Some(text), &subject.release)).and_then(|text| copy::read(text).ok());
    Ok(found.or_else(kept))
}

/// The release of a cluster, the templates that it needs, and its `ClusterBootstrap`.
pub(super) async fn basis(ctx: &Ctx<Context>, cluster: &Cluster, subject: &Subject) -> Result<Basis, Error> {
    let client = &ctx.access.client;
    let release = release(ctx, cluster, subject).await?;
    let bootstrap = bootstrap(ctx, subject).await?;
    let mut templates = BTreeMap::new();
    let api: Api<ClusterBootstrapTemplate> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    for name in Settling::templates(subject, bootstrap.as_ref()) {
        templates.extend(find(&api, &name).await?.map(|template| (name, template)));
    }
    Ok(Basis { release, templates, bootstrap })
}

/// The `ClusterBootstrap` of a cluster.
pub(super) async fn bootstrap(ctx: &Ctx<Context>, subject: &Subject) -> Result<Option<ClusterBootstrap>, Error> {
    find(&Api::namespaced(ctx.access.client.clone(), subject.namespace.as_str()), subject.name.as_str()).await
}

/// Nothing was asked for yet.
pub(super) fn none_copied() -> Copies {
    Copies::new()
}

/// What there is of what is to be copied.
pub(super) async fn copies(ctx: &Ctx<Context>, subject: &Subject, orders: &[CopyOrder]) -> Result<Copies, Error> {
    let mut copies = Copies::new();
    for order in orders {
        let source = object(ctx, SYSTEM_NAMESPACE, &order.from, &order.from.name).await?;
        let copy = object(ctx, subject.namespace.as_str(), &order.from, &order.to).await?;
        let existing = copy.map(|mut copy| copy["metadata"].take());
        copies.insert(order.clone(), (source, existing));
    }
    Ok(copies)
}

/// An object that values are made of. Of a Secret no data.
async fn object(
    ctx: &Ctx<Context>,
    namespace: &str,
    reference: &Reference,
    name: &str,
) -> Result<Option<Value>, Error> {
    if reference.is_secret() {
        let api: Api<Secret> = Api::namespaced(ctx.access.client.clone(), namespace);
        let found = api.get_metadata_opt(name).await.map_err(unread(format!("Secret {namespace}/{name}")))?;
        return Ok(found.map(|found| json!({"apiVersion": "v1", "kind": "Secret", "metadata": found.metadata})));
    }
    let client = &ctx.access.client;
    let api_version = api_version(client, reference).await?;
    let api = ctx.kinds.api(client, Place::Management, &api_version, &reference.kind, Some(namespace)).await;
    let api = match api {
        Err(error) if error.is_no_such_kind() => return Ok(None),
        api => api.map_err(Error::Kind)?,
    };
    let found = find::<DynamicObject>(&api, name).await?;
    Ok(found.map(|found| {
        let mut value = json!({"apiVersion": api_version, "kind": reference.kind, "metadata": found.metadata});
        for field in ["spec", "status"] {
            value[field] = found.data.get(field).cloned().unwrap_or_default();
        }
        value
    }))
}

/// The version of a kind that values are made of: of ours it is known, of others it is asked.
pub(super) async fn api_version(client: &Client, reference: &Reference) -> Result<String, Error> {
    let group = reference.api_group.as_str();
    Ok(match group {
        "" => "v1".to_owned(),
        "run.tanzu.vmware.com" => format!("{group}/v1alpha3"),
        "cni.tanzu.vmware.com" | "cpi.tanzu.vmware.com" | "csi.tanzu.vmware.com" => format!("{group}/v1alpha1"),
        other => {
            let found = kube::discovery::group(client, other).await.map_err(unread(format!("the group {other}")))?;
            let kind = found.recommended_kind(&reference.kind).map(|(resource, _)| resource.api_version);
            kind.unwrap_or_else(|| format!("{other}/v1"))
        }
    })
}

/// All that there is of the packages of a cluster, and the way to its API.
pub(super) async fn packages(
    ctx: &Ctx<Context>,
    subject: &Subject,
    bootstrap: &ClusterBootstrap,
) -> Result<(Sight, Option<Client>), Error> {
    // What cannot be read is told by whoever plans.
    let wanted = listed(&bootstrap.spec.packages).unwrap_or_default();
    let mut packages = BTreeMap::new();
    let api: Api<DynamicObject> = Api::namespaced_with(
        ctx.access.client.clone(),
        SYSTEM_NAMESPACE,
        &kube::core::ApiResource::erase::<Package>(&()),
    );
    for listed in &wanted {
        let name = listed.package.to_string();
        let found = find(&api, &name).await?;
        packages.extend(found.map(|found| (name, of_package(&found))));
    }
    let values = values_of(ctx, subject, bootstrap).await?;
    let kapp = wanted.iter().find(|listed| listed.slot == PackageSlot::Kapp);
    let (kapp, digests) = match kapp {
        Some(kapp) => of_kapp(ctx, subject, kapp).await?,
        None => (Installed::default(), BTreeMap::new()),
    };
    let may_wait = |listed: &&Listed| {
        let package = packages.get(&listed.package.to_string());
        package.is_some_and(|it| !it["metadata"]["annotations"][annotation::WAITS_FOR_NEW_NODES.name].is_null())
    };
    let may_wait = wanted.iter().filter(may_wait);
    let may_wait: Vec<String> =
        may_wait.map(|listed| listed.child(&subject.name, PackagePart::Install).to_string()).collect();
    let (workload, connection) = workload(ctx, subject, &may_wait).await;
    let kubeconfig = kubeconfig(ctx, subject).await?;
    Ok((Sight { packages, values, digests, kapp, kubeconfig, workload }, connection))
}

/// A Package, with all fields of its spec.
fn of_package(found: &DynamicObject) -> Value {
    json!({
        "apiVersion": "data.packaging.carvel.dev/v1alpha1", "kind": "Package",
        "metadata": {
            "name": found.metadata.name, "namespace": found.metadata.namespace, "annotations": found.metadata.annotations,
        },
        "spec": found.data.get("spec"),
    })
}

/// What the values of the packages are made of.
async fn values_of(ctx: &Ctx<Context>, subject: &Subject, bootstrap: &ClusterBootstrap) -> Result<FoundValues, Error> {
    let namespace = subject.namespace.as_str();
    let secrets: Api<Secret> = Api::namespaced(ctx.access.client.clone(), namespace);
    let mut values = FoundValues::new();
    for (_, reference) in references(&bootstrap.spec.packages) {
        let Some(object) = object(ctx, namespace, &reference, &reference.name).await? else { continue };
        let name = if reference.is_secret() {
            Some(reference.name.clone())
        } else {
            object["status"]["secretRef"].as_str().map(str::to_owned)
        };
        let secret = match name {
            None => Err(format!("{reference} has no status.secretRef yet: its controller has not made a Secret of it")),
            Some(name) => match find(&secrets, &name).await? {
                Some(secret) => Ok((name, digest(&secret))),
                None => Err(format!("there is no Secret {namespace}/{name}")),
            },
        };
        let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        values.insert(reference, Found { api_version, metadata: object["metadata"].clone(), secret });
    }
    Ok(values)
}

fn digest(secret: &Secret) -> String {
    let data = secret.data.iter().flatten();
    values::digest(data.map(|(key, value)| (key.as_str(), value.0.as_slice())))
}

/// kapp-controller's own, in the cluster's namespace.
async fn of_kapp(
    ctx: &Ctx<Context>,
    subject: &Subject,
    kapp: &Listed,
) -> Result<(Installed, BTreeMap<String, String>), Error> {
    let (client, namespace) = (&ctx.access.client, subject.namespace.as_str());
    let name = kapp.child(&subject.name, PackagePart::Install);
    let install: Option<PackageInstall> = find(&Api::namespaced(client.clone(), namespace), name.as_str()).await?;
    let app: Option<App> = find(&Api::namespaced(client.clone(), namespace), name.as_str()).await?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = kapp.child(&subject.name, PackagePart::DataValues).to_string();
    let found = find(&secrets, &secret).await?;
    let digests = found.map(|found| (secret, digest(&found))).into_iter().collect();
    Ok((Installed { install, app, pods: Vec::new() }, digests))
}

/// The metadata of the Secret with the kubeconfig.
pub(super) async fn kubeconfig(ctx: &Ctx<Context>, subject: &Subject) -> Result<Option<Value>, Error> {
    let api: Api<Secret> = Api::namespaced(ctx.access.client.clone(), subject.namespace.as_str());
    let name = ClusterSecret::Kubeconfig.object_name(&subject.name);
    let found = api.get_metadata_opt(name.as_str()).await.map_err(unread(format!("Secret {name}")))?;
    Ok(found.map(|found| json!(found.metadata)))
}

/// What the workload cluster has, and the way to it. That it does not answer is an answer.
pub(super) async fn workload(ctx: &Ctx<Context>, subject: &Subject, may_wait: &[String]) -> (Workload, Option<Client>) {
    if !subject.provisioned {
        return (Workload::NotYet, None);
    }
    let asked = async {
        let client = connect(ctx, subject).await?;
        let seen = ask(&client, may_wait).await?;
        Ok((seen, client))
    };
    let answer = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    match answer {
        Ok((seen, client)) => (seen, Some(client)),
        Err(why) => {
            ctx.memory.drop_connection(ctx.key());
            (Workload::Unreachable { why }, None)
        }
    }
}

async fn connect(ctx: &Ctx<Context>, subject: &Subject) -> Result<Client, String> {
    let api: Api<Secret> = Api::namespaced(ctx.access.client.clone(), subject.namespace.as_str());
    let name = ClusterSecret::Kubeconfig.object_name(&subject.name);
    let secret = api.get(name.as_str()).await.map_err(|error| format!("read Secret/{name}: {}", said(&error)))?;
    let revision = secret.resource_version().unwrap_or_default();
    if let Some(connection) = ctx.memory.connection(ctx.key(), &revision) {
        return Ok(connection.client);
    }
    let data = secret.data.unwrap_or_default();
    let kubeconfig = data.get(KUBECONFIG_KEY).ok_or_else(|| format!("Secret/{name} has no key {KUBECONFIG_KEY}"))?;
    let connected = ctx.access.workloads.connect(&subject.namespaced_name(), &kubeconfig.0).await;
    let connection = connected.map_err(|error| error.to_string())?;
    ctx.memory.keep_connection(ctx.key(), revision, connection.clone());
    Ok(connection.client)
}

/// Everything of a kind in the system namespace; nothing where there is no such kind.
async fn all<K>(client: &Client) -> Result<Option<Vec<K>>, String>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    K: DeserializeOwned + Clone + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    match api.list(&ListParams::default()).await {
        Ok(listed) => Ok(Some(listed.items)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(format!("list {}s: {}", K::kind(&()), said(&error))),
    }
}

async fn ask(client: &Client, may_wait: &[String]) -> Result<Workload, String> {
    let Some(listed) = all::<PackageInstall>(client).await? else { return Ok(Workload::WithoutKinds) };
    let apps = all::<App>(client).await?.unwrap_or_default();
    let mut apps: BTreeMap<String, App> = apps.into_iter().map(|app| (app.name_any(), app)).collect();
    let mut installs = Installs::new();
    for install in listed {
        let name = install.name_any();
        let pods = if may_wait.contains(&name) { pods(client, &name).await? } else { Vec::new() };
        installs.insert(name.clone(), Installed { install: Some(install), app: apps.remove(&name), pods });
    }
    let package = kube::core::ApiResource::erase::<Package>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), SYSTEM_NAMESPACE, &package);
    let packages = api.list(&ListParams::default()).await;
    let packages = packages.map_err(|error| format!("list Packages: {}", said(&error)))?;
    let packages = packages.items.into_iter().map(|found| (found.name_any(), of_package(&found))).collect();
    let secrets = all::<Secret>(client).await?.unwrap_or_default();
    let digests = secrets.iter().map(|secret| (secret.name_any(), digest(secret))).collect();
    let mut found = Vec::new();
    for wanted in prerequisites() {
        found.extend(prerequisite(client, &wanted).await?);
    }
    Ok(Workload::Reachable { prerequisites: found, packages, installs, digests })
}

/// What there is of something that a workload cluster has before its first package.
async fn prerequisite(client: &Client, wanted: &Value) -> Result<Option<Value>, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&wanted["kind"]), text(&wanted["metadata"]["name"]));
    let found = match wanted["metadata"]["namespace"].as_str() {
        Some(namespace) => {
            let api: Api<k8s_openapi::api::core::v1::ServiceAccount> = Api::namespaced(client.clone(), namespace);
            api.get_opt(&name).await.map(|found| found.map(|found| json!(found)))
        }
        None if kind == "Namespace" => {
            let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
            api.get_opt(&name).await.map(|found| found.map(|found| json!(found)))
        }
        None if kind == "ClusterRole" => {
            let api: Api<k8s_openapi::api::rbac::v1::ClusterRole> = Api::all(client.clone());
            api.get_opt(&name).await.map(|found| found.map(|found| json!(found)))
        }
        None => {
            let api: Api<k8s_openapi::api::rbac::v1::ClusterRoleBinding> = Api::all(client.clone());
            api.get_opt(&name).await.map(|found| found.map(|found| json!(found)))
        }
    };
    let found = found.map_err(|error| format!("read {kind}/{name}: {}", said(&error)))?;
    Ok(found.map(|mut found| {
        found["apiVersion"] = wanted["apiVersion"].clone();
        found["kind"] = wanted["kind"].clone();
        found
    }))
}

/// What an App deployed that runs pods, by the mark that kapp's record says.
async fn pods(client: &Client, app: &str) -> Result<Vec<Value>, String> {
    let records: Api<ConfigMap> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let record = records.get_opt(&format!("{app}.app")).await;
    let record = record.map_err(|error| format!("read ConfigMap/{app}.app: {}", said(&error)))?;
    let text = record.and_then(|record| record.data?.remove("spec")).unwrap_or_default();
    let spec: Value = serde_json::from_str(&text).unwrap_or_default();
    let Some(value) = spec["labelValue"].as_str() else { return Ok(Vec::new()) };
    let labelled = ListParams::default().labels(&format!("{}={value}", spec["labelKey"].as_str().unwrap_or(APP_LABEL)));
    let mut pods = Vec::new();
    for kind in ["Deployment", "DaemonSet", "StatefulSet"] {
        let resource = kube::core::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("apps", "v1", kind));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let listed = api.list(&labelled).await.map_err(|error| format!("list {kind}s: {}", said(&error)))?;
        pods.extend(listed.items.into_iter().map(|found| {
            json!({
                "kind": kind, "metadata": {"generation": found.metadata.generation},
                "spec": found.data.get("spec"), "status": found.data.get("status"),
            })
        }));
    }
    Ok(pods)
}
