//! Classic clusters in a World with Windlass: a label is changed, and the objects of the cluster follow it, and nothing else does.

mod abort;
mod bad;
mod consent;
mod fields;
pub mod infrastructure;
mod reviewed;
mod templates;

use std::sync::OnceLock;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Client, Resource};
use serde_json::{Value, json};
use windlass_api::condition::ConditionType;
use windlass_api::kind::Condition;
use windlass_api::kind::cluster_api::{Cluster, MachineDeployment};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::wcp::WCPMachineTemplate;
use windlass_api::name::NamespacedName;
use windlass_plan::diff::{Ownership, merged};
use windlass_plan::planner::Record;
use windlass_plan::render::{FIELD_MANAGER, Scope, classic};
use windlass_plan::step::Stage;
use windlass_rehearse::drive::Manifest;
use windlass_rehearse::preview::{Foreseen, preview};
use windlass_rehearse::rehearsal::{self, Ended, Request, Verdict, hold};
use windlass_sim::fault::Scenario;
use windlass_sim::world::World;

use crate::start::{SEED, empty, founded, later};

const EXAMPLE: &str = include_str!("../../../../deploy/examples/release-by-label.yaml");

pub fn shop() -> NamespacedName {
    "default/shop".parse().unwrap()
}

/// The objects of the example, as its owner has changed them.
pub fn objects(change: impl Fn(&mut Value)) -> Vec<DynamicObject> {
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(EXAMPLE).unwrap();
    objects.iter_mut().for_each(change);
    objects.into_iter().map(|object| serde_json::from_value(object).unwrap()).collect()
}

/// A cluster of one and one, with fields of its owner in its objects.
pub fn start() -> &'static Ended {
    static MADE: OnceLock<Ended> = OnceLock::new();
    MADE.get_or_init(|| {
        let objects = objects(|object| match object["kind"].as_str() {
            Some("KubeadmControlPlane") => {
                object["spec"]["replicas"] = json!(1);
                object["spec"]["kubeadmConfigSpec"]["files"] = json!([{"path": "/etc/motd", "content": "ours"}]);
                object["spec"]["kubeadmConfigSpec"]["joinConfiguration"] = json!({"nodeRegistration": {
                    "kubeletExtraArgs": [{"name": "node-labels", "value": "example.com/tier=shop"}],
                }});
            }
            Some("MachineDeployment") => {
                object["spec"]["replicas"] = json!(1);
                object["metadata"]["annotations"] = json!({"example.com/owner": "us"});
                object["spec"]["template"]["metadata"] = json!({"labels": {"example.com/pool": "a"}});
            }
            _ => {}
        });
        let request = Request::new(shop(), "35.2.0", SEED, founded());
        let ended = rehearsal::create(&empty(), &request, Manifest::Label(objects)).unwrap();
        let reached = Verdict::Reached { distribution: "v35.2.0".into() };
        assert_eq!(ended.rehearsal.verdict, reached, "{}\n{}", ended.rehearsal, ended.traffic.text());
        ended
    })
}

fn to(release: &str) -> Request {
    Request::new(shop(), release, SEED, later())
}

/// The objects of a kind, whole.
fn all<K: Resource<DynamicType = ()>>(world: &World) -> Vec<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let listed = runtime.block_on(async {
        let api: Api<DynamicObject> = Api::namespaced_with(world.client(), "default", &ApiResource::erase::<K>(&()));
        api.list(&kube::api::ListParams::default()).await.unwrap()
    });
    let whole = |object: DynamicObject| {
        let mut object = serde_json::to_value(object).unwrap();
        object["apiVersion"] = K::api_version(&()).into();
        object["kind"] = K::kind(&()).into();
        object
    };
    listed.items.into_iter().map(whole).collect()
}

fn one<K: Resource<DynamicType = ()>>(world: &World) -> Value {
    let found = all::<K>(world);
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

#[test]
fn a_label_leads_a_cluster_to_its_release_machine_by_machine() {
    let ended = hold(&start().world, &to("36.1.0"), rehearse_crashes()).unwrap();
    let rehearsal = &ended.rehearsal;
    assert_eq!(rehearsal.verdict, Verdict::Reached { distribution: "v36.1.0".into() }, "{rehearsal}");
    assert!(rehearsal.violations.is_empty(), "{:?}", rehearsal.violations);
    let stages: Vec<(&str, bool)> =
        rehearsal.stages.iter().map(|stage| (stage.stage.as_str(), stage.finished_at.is_some())).collect();
    assert!(stages.contains(&(Stage::ControlPlane.as_str(), true)), "{stages:?}");
    assert!(stages.contains(&(Stage::Workers.as_str(), true)), "{stages:?}");
    let client = ended.world.clone();
    assert_eq!(one::<KubeadmControlPlane>(&client)["spec"]["version"], "v1.36.1+vmware.1");
    assert_eq!(one::<MachineDeployment>(&client)["spec"]["template"]["spec"]["version"], "v1.36.1+vmware.1");
    let cluster = one::<Cluster>(&client);
    assert_eq!(cluster["metadata"]["annotations"]["release.giantswarm.io/last-deployed-version"], "36.1.0");
    // Asked for the same again, nothing is written.
    let again = Request::new(shop(), "36.1.0", SEED, "2026-01-03T00:00:00Z".parse().unwrap());
    let again = hold(&ended.world, &again, rehearse_crashes()).unwrap();
    assert!(again.writes.is_empty(), "{:?}", again.writes);
}

fn rehearse_crashes() -> windlass_rehearse::crash::Crashes {
    windlass_rehearse::crash::Crashes::none()
}

#[test]
fn what_is_shown_before_is_what_is_written_and_the_rest_is_its_owners() {
    let before = start().world.clone();
    let Foreseen::Planned(seen) = preview(&start().world, &to("36.1.0")).unwrap() else { panic!() };
    let Some(Record::Begin { id, .. }) = &seen.planned.record else { panic!("{:?}", seen.planned.report) };
    let rendered = classic::all(&Scope { target: &seen.input.target, update: *id }, &seen.input.inventory);
    let kinds: Vec<&str> = rendered.iter().map(|it| it.object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["WCPMachineTemplate", "KubeadmControlPlane", "WCPMachineTemplate", "MachineDeployment"]);

    let ended = hold(&start().world, &to("36.1.0"), rehearse_crashes()).unwrap();
    let after = ended.world.clone();
    let live = |client: &World, object: &Value| {
        let found = match object["kind"].as_str().unwrap() {
            "KubeadmControlPlane" => all::<KubeadmControlPlane>(client),
            "MachineDeployment" => all::<MachineDeployment>(client),
            _ => all::<WCPMachineTemplate>(client),
        };
        found.into_iter().find(|found| found["metadata"]["name"] == object["metadata"]["name"])
    };
    for it in &rendered {
        let was = live(&before, &it.object);
        assert_eq!(was.is_some(), it.live.is_some(), "{}", it.role);
        let wanted = merged(&it.object, was.as_ref(), &Ownership::default(), FIELD_MANAGER);
        let is = live(&after, &it.object).unwrap();
        assert_eq!(is["spec"], wanted["spec"], "{}", it.role);
    }
    // Somebody else's fields, byte for byte.
    let (was, is) = (one::<KubeadmControlPlane>(&before), one::<KubeadmControlPlane>(&after));
    for place in ["/spec/replicas", "/spec/kubeadmConfigSpec/files", "/spec/kubeadmConfigSpec/joinConfiguration"] {
        assert_eq!(was.pointer(place), is.pointer(place), "{place}");
    }
    let (was, is) = (one::<MachineDeployment>(&before), one::<MachineDeployment>(&after));
    for place in ["/spec/replicas", "/spec/template/metadata", "/metadata/annotations/example.com~1owner"] {
        assert_eq!(was.pointer(place), is.pointer(place), "{place}");
    }
    let digest = seen.planned.envelope.digest();
    let updates = all::<windlass_api::kind::cluster_update::ClusterUpdate>(&after);
    assert!(updates.iter().any(|update| update["spec"]["envelopeDigest"] == digest.as_str()), "{updates:?}");
}

#[test]
fn the_beginning_of_a_version_is_asked_for_as_the_release_that_it_means() {
    let Foreseen::Planned(seen) = preview(&start().world, &to("36")).unwrap() else { panic!() };
    assert_eq!(seen.input.target.release.distribution.to_string(), "v36.1.0");
    let refused = |asked: &str, words: &str| match preview(&start().world, &to(asked)).unwrap() {
        Foreseen::Refused { why } => assert_eq!(why, words),
        other => panic!("{asked}: {other:?}"),
    };
    refused("36.2", "no release that begins with v36.2 is for new clusters: v36.2.0 is preview");
    refused("38", "no release begins with v38; there are v35.1.0, v35.2.0, v36.1.0, v36.2.0, v37.0.0");
    let ended = hold(&start().world, &to("36.1"), rehearse_crashes()).unwrap();
    assert_eq!(ended.rehearsal.verdict, Verdict::Reached { distribution: "v36.1.0".into() }, "{}", ended.rehearsal);
}

#[test]
fn a_release_that_replaces_nothing_is_there_at_once() {
    let request = Request::new(shop(), "36.2.0", SEED, "2026-01-03T00:00:00Z".parse().unwrap());
    let ended = hold(upgraded(), &request, rehearse_crashes()).unwrap();
    assert_eq!(ended.rehearsal.verdict, Verdict::Reached { distribution: "v36.2.0".into() });
    assert!(ended.rehearsal.machines.is_empty(), "{:?}", ended.rehearsal.machines);
    let control_plane = one::<KubeadmControlPlane>(&ended.world);
    let drain = control_plane.pointer("/spec/machineTemplate/spec/deletion/nodeDrainTimeoutSeconds");
    assert_eq!(drain, Some(&json!(1800)));
}

#[test]
fn what_drifts_is_undone_and_what_is_its_owners_stays() {
    let ended = played(|client| async move {
        let patch = |kind: ApiResource, name: &'static str, patch: Value| {
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &kind);
            async move { api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap() }
        };
        let kcp = || ApiResource::erase::<KubeadmControlPlane>(&());
        let found = kube::Api::<KubeadmControlPlane>::default_namespaced(client.clone());
        let filled_in = found.get("shop-control-plane").await.unwrap().spec.remediation.and_then(|it| it.max_retry);
        assert_eq!(filled_in, Some(5), "also what does nothing to machines");
        // In place, and by a replacement of the machine.
        patch(kcp(), "shop-control-plane", json!({"spec": {"remediation": {"maxRetry": 9}}})).await;
        let mirror = json!({"clusterConfiguration": {"imageRepository": "mirror.example.com"}});
        patch(kcp(), "shop-control-plane", json!({"spec": {"kubeadmConfigSpec": mirror}})).await;
        for _ in 0..600 {
            tokio::time::sleep(std::time::Duration::from_secs(10)).await;
            let found = kube::Api::<KubeadmControlPlane>::default_namespaced(client.clone());
            let found = found.get("shop-control-plane").await.unwrap();
            let repository =
                found.spec.kubeadm_config_spec.clone().cluster_configuration.and_then(|it| it.image_repository);
            let status = found.status.unwrap_or_default();
            let is_calm = status.observed_generation == found.metadata.generation && status.up_to_date_replicas == 1;
            if repository.as_deref() == Some("projects.registry.vmware.com/tkg") && is_calm {
                let retries = found.spec.remediation.and_then(|it| it.max_retry);
                assert_eq!(retries, Some(9), "the release only sets it where it is empty");
                return;
            }
        }
        panic!("it was never undone");
    });
    assert!(ended.recorder().violations().is_empty(), "{:?}", ended.recorder().violations());
}

/// Runs everything on a fork until the script is done.
pub fn played<F: Future<Output = ()>>(script: impl FnOnce(Client) -> F) -> World {
    played_on(&start().world, |world| script(world.client()))
}

/// The same, on a fork of another World.
pub fn played_on<F: Future<Output = ()>>(start: &World, script: impl FnOnce(World) -> F) -> World {
    played_through(start, &start.settings().faults, script)
}

/// The same, while things go wrong.
pub fn played_through<F: Future<Output = ()>>(
    start: &World,
    faults: &Scenario,
    script: impl FnOnce(World) -> F,
) -> World {
    use windlass_rehearse::assembly::{Assembly, Settings};
    windlass_runtime::virtual_time::run_virtual(SEED, later(), |time| async move {
        let faults = faults.clone();
        let settings = windlass_sim::world::Settings { clock: time.clock, faults, ..start.settings().clone() };
        let world = start.fork(settings);
        let settings = Settings { labels: true, ..Settings::rehearsal(&world) };
        let assembly = Assembly::new(world.clone(), settings);
        assembly.run(script(world.clone())).await;
        world
    })
    .unwrap()
}

/// The cluster, upgraded to 36.1.0.
fn upgraded() -> &'static World {
    static MADE: OnceLock<World> = OnceLock::new();
    MADE.get_or_init(|| hold(&start().world, &to("36.1.0"), rehearse_crashes()).unwrap().world)
}

/// Changes an object of the cluster as a person does.
async fn patch<K: Resource<DynamicType = ()>>(
    client: &Client,
    name: &str,
    patch: Value,
) -> Result<DynamicObject, String> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &ApiResource::erase::<K>(&()));
    let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.map_err(|error| match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    })
}

/// What is said of whether the cluster has its release.
async fn applied(client: &Client) -> Condition {
    let cluster = Api::<Cluster>::default_namespaced(client.clone()).get("shop").await.unwrap();
    let conditions = cluster.status.unwrap_or_default().conditions;
    ConditionType::ReleaseApplied.among(&conditions).cloned().unwrap()
}

/// Looks every ten seconds, for two hours at most.
async fn until_told(client: &Client, what: &str, is_so: impl Fn(&Condition) -> bool) -> Condition {
    for _ in 0..720 {
        let told = applied(client).await;
        if is_so(&told) {
            return told;
        }
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    }
    panic!("never {what}: {:#?}", applied(client).await);
}

#[test]
fn controllers_that_come_anew_and_releases_that_are_added_change_nothing() {
    let rv = |client: &World| {
        let kinds = [all::<Cluster>(client), all::<KubeadmControlPlane>(client), all::<MachineDeployment>(client)];
        let state = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        kinds.iter().flatten().map(state).collect::<Vec<String>>()
    };
    let before = rv(&start().world);
    // These controllers have never seen the cluster.
    let world = played(|client| async move {
        tokio::time::sleep(std::time::Duration::from_secs(1200)).await;
        let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(client.clone(), "giantswarm");
        for kind in ["kubeadmcontrolplane", "machinedeployment", "wcpmachinetemplate"] {
            let mut map = maps.get(&format!("{kind}-36-1-0")).await.unwrap();
            map.metadata = kube::api::ObjectMeta {
                name: Some(format!("{kind}-36-9-0")),
                labels: Some([("release.giantswarm.io/version".to_owned(), "36.9.0".to_owned())].into()),
                ..Default::default()
            };
            maps.create(&kube::api::PostParams::default(), &map).await.unwrap();
        }
        tokio::time::sleep(std::time::Duration::from_secs(1200)).await;
    });
    assert_eq!(rv(&world), before);
}
