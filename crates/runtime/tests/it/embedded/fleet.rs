//! A small controller of the usual kind: a custom resource, objects that it owns, a status, a finalizer, events.
//!
//! A Fleet of `count` has the config maps `NAME-0` to `NAME-(count-1)`. They come and go two at a time; some take a while.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::ApiServer;
use windlass_apiserver::store::{ChangeKind, Range};
use windlass_runtime::cache::Cache;
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;
use windlass_runtime::events::{Kind, Notice, Recorder};
use windlass_runtime::runner::{Ctx, Options, Order, Outcome, Runner, Summary};
use windlass_runtime::trace::TraceLog;
use windlass_runtime::watch::Watch;

use crate::world::sleep;

#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "test.windlass.dev", version = "v1", kind = "Fleet", namespaced)]
#[kube(status = "FleetStatus", shortname = "fl", category = "all", derive = "PartialEq", selectable = ".spec.port")]
#[kube(printcolumn = r#"{"name": "Made", "type": "integer", "jsonPath": ".status.made"}"#)]
#[kube(scale(spec_replicas_path = ".spec.count", status_replicas_path = ".status.made"))]
#[serde(rename_all = "camelCase")]
pub struct FleetSpec {
    /// How many members there are.
    #[schemars(range(min = 0, max = 100))]
    pub count: u32,
    /// Where they lie.
    #[serde(default = "home")]
    pub port: String,
}

fn home() -> String {
    "home".into()
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetStatus {
    /// How many members there are by now.
    pub made: u32,
    /// The generation that this was seen at.
    pub observed_generation: i64,
}

const FINALIZER: &str = "test.windlass.dev/fleet";
const MANAGER: &str = "fleet";
/// How many members come or go in one reconcile.
const STRIDE: usize = 2;

pub fn fleet(name: &str, count: u32) -> Fleet {
    Fleet::new(name, FleetSpec { count, port: home() })
}

/// Defines the kind, and waits until it is served.
pub async fn define(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = Patch::Apply(Fleet::crd());
    definitions.patch(Fleet::crd_name(), &PatchParams::apply("test"), &definition).await.unwrap();
    await_condition(definitions, Fleet::crd_name(), conditions::is_crd_established()).await.unwrap();
}

pub async fn create(client: &Client, fleet: &Fleet) {
    let fleets: Api<Fleet> = Api::default_namespaced(client.clone());
    fleets.create(&PostParams::default(), fleet).await.unwrap();
}

pub struct Context {
    client: Client,
    fleets: Cache<Fleet>,
    members: Cache<ConfigMap>,
    recorder: Recorder,
    seed: Seed,
}

impl Context {
    fn fleets(&self) -> Api<Fleet> {
        Api::default_namespaced(self.client.clone())
    }

    fn members(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.client.clone())
    }

    /// What there is of a fleet, in the order of its members' names.
    fn members_of(&self, fleet: &Fleet) -> Vec<Arc<ConfigMap>> {
        let uid = fleet.uid().unwrap();
        let ours = |member: &Arc<ConfigMap>| member.owner_references().iter().any(|owner| owner.uid == uid);
        self.members.list().into_iter().filter(ours).collect()
    }
}

async fn reconcile(fleet: Arc<Fleet>, ctx: Ctx<Context>) -> Result<Outcome, kube::Error> {
    let members = ctx.members_of(&fleet);
    let deleting = fleet.metadata.deletion_timestamp.is_some();
    if !deleting && !fleet.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
        set_finalizers(&fleet, &ctx, &json!([FINALIZER])).await?;
        return Ok(Outcome::done());
    }
    let wanted = if deleting { 0 } else { fleet.spec.count };
    let wanted: Vec<String> = (0..wanted).map(|n| format!("{}-{n}", fleet.name_any())).collect();
    let missing = wanted.iter().filter(|name| !members.iter().any(|member| member.name_any() == **name));
    let surplus = members.iter().map(|member| member.name_any()).filter(|name| !wanted.contains(name));
    let (missing, surplus): (Vec<&String>, Vec<String>) = (missing.collect(), surplus.collect());
    if missing.is_empty() && surplus.is_empty() && deleting {
        set_finalizers(&fleet, &ctx, &Value::Null).await?;
        return Ok(Outcome::done());
    }
    for name in missing.iter().take(STRIDE) {
        work(&ctx, name).await;
        make(&fleet, &ctx, name).await?;
    }
    for name in surplus.iter().take(STRIDE) {
        work(&ctx, name).await;
        ignore_missing(ctx.members().delete(name, &DeleteParams::default()).await)?;
    }
    report(&fleet, &ctx, members.len()).await?;
    let settled = missing.is_empty() && surplus.is_empty();
    Ok(if settled {
        Outcome::requeue_after(Duration::from_secs(600))
    } else {
        Outcome::requeue_after(Duration::from_secs(5))
    })
}

/// Some members take a while, so that reconciles overlap.
async fn work(ctx: &Ctx<Context>, member: &str) {
    let delay = ctx.seed.child("work").stream(member).below(900);
    tokio::time::sleep(Duration::from_millis(delay)).await;
}

async fn make(fleet: &Fleet, ctx: &Ctx<Context>, name: &str) -> Result<(), kube::Error> {
    let mut member = super::config_map(name, &[("port", &fleet.spec.port)]);
    member.metadata.owner_references = fleet.controller_owner_ref(&()).map(|owner| vec![owner]);
    match ctx.members().create(&PostParams::default(), &member).await {
        Ok(made) => ctx.wrote(&ctx.members, &made),
        // Made by a predecessor that did not live to see it.
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(error) => return Err(error),
    }
    let note = format!("{name} is new");
    let notice = Notice { kind: Kind::Normal, reason: "Grown".into(), action: "Make".into(), note, related: None };
    // An event that is lost is no reason to stop.
    drop(ctx.recorder.publish(&fleet.object_ref(&()), &notice).await);
    Ok(())
}

async fn set_finalizers(fleet: &Fleet, ctx: &Ctx<Context>, finalizers: &Value) -> Result<(), kube::Error> {
    let metadata = json!({"resourceVersion": fleet.resource_version(), "finalizers": finalizers});
    let patch = Patch::Merge(json!({"metadata": metadata}));
    let written = ctx.fleets().patch(&fleet.name_any(), &PatchParams::default(), &patch).await?;
    ctx.wrote(&ctx.fleets, &written);
    Ok(())
}

async fn report(fleet: &Fleet, ctx: &Ctx<Context>, made: usize) -> Result<(), kube::Error> {
    let status = FleetStatus {
        made: u32::try_from(made).unwrap(),
        observed_generation: fleet.metadata.generation.unwrap_or_default(),
    };
    let patch = json!({"apiVersion": "test.windlass.dev/v1", "kind": "Fleet", "status": status});
    let params = PatchParams::apply(MANAGER).force();
    let written = ctx.fleets().patch_status(&fleet.name_any(), &params, &Patch::Apply(patch)).await?;
    ctx.wrote(&ctx.fleets, &written);
    Ok(())
}

fn ignore_missing<T>(result: kube::Result<T>) -> Result<(), kube::Error> {
    match result {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}

/// How the controller runs.
pub struct Run<'a> {
    pub client: Client,
    pub clock: &'a Clock,
    pub seed: Seed,
    pub order: Order,
    pub trace: &'a Arc<TraceLog>,
}

impl Run<'_> {
    /// Runs the controller until every fleet is as it should be.
    pub async fn until_settled(self) -> Summary {
        let client = self.client.clone();
        self.until(settled(client)).await
    }

    pub async fn until(self, stop: impl Future<Output = ()>) -> Summary {
        let (fleets, members) =
            (Watch::<Fleet>::all(self.client.clone()), Watch::<ConfigMap>::all(self.client.clone()));
        let recorder = Recorder::new(self.client.clone(), self.clock.clone(), "windlass.dev/fleet", "replica-0");
        let context = Context {
            client: self.client,
            fleets: fleets.cache(),
            members: members.cache(),
            recorder,
            seed: self.seed,
        };
        let trace = Some(Arc::clone(self.trace) as _);
        let options = Options { order: self.order, slots: 8, trace, ..Options::new(self.clock.clone(), self.seed) };
        Runner::new("fleet", fleets, options).owns(members).run(Arc::new(context), reconcile, stop).await
    }
}

/// Ends when every fleet has what it wants, and has said so.
pub async fn settled(client: Client) {
    let (fleets, members): (Api<Fleet>, Api<ConfigMap>) =
        (Api::default_namespaced(client.clone()), Api::default_namespaced(client));
    for _ in 0..1000 {
        sleep(1).await;
        let wanted = fleets.list(&ListParams::default()).await.unwrap();
        let total: u32 = wanted.iter().map(|fleet| fleet.spec.count).sum();
        let members = members.list(&ListParams::default()).await.unwrap().items.len();
        let said = wanted.iter().all(|fleet| {
            let expected = FleetStatus {
                made: fleet.spec.count,
                observed_generation: fleet.metadata.generation.unwrap_or_default(),
            };
            fleet.metadata.deletion_timestamp.is_none() && fleet.status.as_ref() == Some(&expected)
        });
        if said && members == total as usize {
            return;
        }
    }
    panic!("the fleets do not settle");
}

/// Every change of the store from now on, as text: revision, time, verb, resource, key, and a digest of the bytes.
pub struct ChangeLog(Arc<std::sync::Mutex<Vec<String>>>);

impl ChangeLog {
    pub fn of(server: &ApiServer) -> Self {
        let lines = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (sink, mut changes) = (Arc::clone(&lines), server.store().subscribe_all());
        tokio::spawn(async move {
            while let Some(change) = changes.next().await {
                let (resource, change) = change.unwrap();
                let verb = match change.kind {
                    ChangeKind::Added => "added",
                    ChangeKind::Modified => "modified",
                    ChangeKind::Deleted => "deleted",
                };
                let (revision, at, key) = (change.revision, change.at, &change.object.key);
                let digest = fnv1a(&change.object.json);
                sink.lock().unwrap().push(format!("{revision} {at} {verb} {resource} {key} {digest:016x}"));
            }
        });
        Self(lines)
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Everything but events, without what depends on who came first: ids, versions and times.
pub fn state(server: &ApiServer) -> Vec<String> {
    let everything = Range { namespace: None, after: None, limit: 0 };
    let mut lines = Vec::new();
    for resource in server.store().resources().into_iter().filter(|resource| !resource.starts_with("events")) {
        for entry in server.store().list(&resource, everything, |_| true).entries {
            let mut object = entry.to_value("", "");
            let metadata = object["metadata"].as_object_mut().unwrap();
            for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
                metadata.remove(field);
            }
            for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
                owner["uid"].take();
            }
            for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
                condition["lastTransitionTime"].take();
            }
            lines.push(format!("{resource} {} {object}", entry.key));
        }
    }
    lines
}

/// The keys whose reconciles began, in that order.
pub fn starts(trace: &TraceLog) -> Vec<String> {
    let lines = trace.lines().into_iter();
    lines.filter_map(|line| line.split_once(" started ").map(|(_, key)| key.to_owned())).collect()
}
