//! Clusters whose machines are made by another provider than the built-in one: Cluster API's development provider, by the profile that
//! comes with Windlass.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Resource};
use serde_json::{Value, json};
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::wcp::{WCPMachine, WCPMachineTemplate};
use windlass_plan::change::classify;
use windlass_plan::profile::SHIPPED;
use windlass_rehearse::preview::{Foreseen, preview};
use windlass_rehearse::rehearsal::{self, Ended, Request, Verdict, hold, rehearse};
use windlass_rehearse::snapshot::Snapshot;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::world::{self, World};

use super::{all, objects, rehearse_crashes, shop, to};
use crate::start::{SEED, empty, founded, later};

const GROUP: &str = "infrastructure.cluster.x-k8s.io";

/// The objects of the example, on machines of the development provider.
fn on_dev(object: &mut Value) {
    let kind = match object["kind"].as_str() {
        Some("WCPCluster") => Some("DevCluster"),
        Some("WCPMachineTemplate") => {
            let image = json!({"customImage": "kindest/node:v1.35.2"});
            object["spec"]["template"]["spec"] = json!({"backend": {"docker": image}});
            Some("DevMachineTemplate")
        }
        Some("KubeadmControlPlane" | "MachineDeployment") => {
            object["spec"]["replicas"] = json!(1);
            None
        }
        _ => None,
    };
    if let Some(kind) = kind {
        object["apiVersion"] = json!(format!("{GROUP}/v1beta2"));
        object["kind"] = json!(kind);
    }
    for place in [
        "/spec/infrastructureRef",
        "/spec/machineTemplate/spec/infrastructureRef",
        "/spec/template/spec/infrastructureRef",
    ] {
        if let Some(reference) = object.pointer_mut(place) {
            let kind = reference["kind"].as_str().unwrap().replace("WCP", "Dev");
            *reference = json!({"apiGroup": GROUP, "kind": kind, "name": reference["name"]});
        }
    }
}

async fn create<K>(api: Api<K>, object: Value)
where
    K: Resource + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// What the releases say about machines of the development provider.
async fn publish(client: &Client, releases: &[(&str, &str)]) {
    for (release, image) in releases {
        let map = json!({
            "metadata": {
                "name": format!("devmachinetemplate-{}", release.replace('.', "-")),
                "namespace": "giantswarm",
                "labels": {"release.giantswarm.io/version": release},
            },
            "data": {
                "state": "active",
                "spec": format!("template: {{spec: {{backend: {{docker: {{customImage: {image}}}}}}}}}"),
            },
        });
        create::<ConfigMap>(Api::namespaced(client.clone(), "giantswarm"), map).await;
    }
}

/// The profile as it is installed.
async fn describe(client: &Client, profile: &str) {
    create::<Namespace>(Api::all(client.clone()), json!({"metadata": {"name": "windlass-system"}})).await;
    let map = json!({
        "metadata": {"name": "dev", "namespace": "windlass-system", "labels": {"windlass.dev/infrastructure-profile": ""}},
        "data": {"profile": profile},
    });
    create::<ConfigMap>(Api::namespaced(client.clone(), "windlass-system"), map).await;
}

/// A World that has the development provider, after something was put into it.
fn world<F: Future<Output = ()>>(put: impl FnOnce(Client) -> F) -> World {
    let start = empty();
    run_virtual(SEED, founded(), |time| async move {
        let world = start.fork(world::Settings { clock: time.clock, ..start.settings().clone() });
        let template = "DevMachineTemplate";
        world.offer_infrastructure(GROUP, "v1beta2", template, Some("DevCluster")).await.unwrap();
        put(world.client()).await;
        world
    })
    .unwrap()
}

const IMAGES: [(&str, &str); 2] = [("35.2.0", "kindest/node:v1.35.2"), ("36.1.0", "kindest/node:v1.36.1")];

pub fn started() -> Ended {
    let world = world(|client| async move {
        describe(&client, SHIPPED[0].1).await;
        publish(&client, &IMAGES).await;
    });
    created(&world)
}

fn created(world: &World) -> Ended {
    let request = Request::new(shop(), "35.2.0", SEED, founded());
    let manifest = windlass_rehearse::drive::Manifest::Label(objects(on_dev));
    let ended = rehearsal::create(world, &request, manifest).unwrap();
    let reached = Verdict::Reached { distribution: "v35.2.0".into() };
    assert_eq!(ended.rehearsal.verdict, reached, "{}\n{}", ended.rehearsal, ended.traffic.text());
    ended
}

/// The objects of a kind of the provider.
fn of_dev(world: &World, kind: &str) -> Vec<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, "v1beta2", kind));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let api: Api<DynamicObject> = Api::namespaced_with(world.client(), "default", &resource);
        api.list(&ListParams::default()).await.unwrap().items
    })
}

#[test]
fn a_cluster_on_another_provider_is_led_to_its_release_machine_by_machine() {
    let start = started();
    let Foreseen::Planned(seen) = preview(&start.world, &to("36.1.0")).unwrap() else { panic!() };
    let lines = classify(&seen.input.target, &seen.input.inventory).lines();
    let image = "customImage kindest/node:v1.35.2 -> kindest/node:v1.36.1";
    for role in ["control-plane: ", "workers/shop-workers: "] {
        let line = lines.iter().find(|line| line.starts_with(role) && line.contains("forces replacement"));
        let line = line.unwrap_or_else(|| panic!("{lines:?}"));
        assert!(line.contains(image) && line.contains("customImage"), "{line}");
    }

    let ended = hold(&start.world, &to("36.1.0"), rehearse_crashes()).unwrap();
    let rehearsal = &ended.rehearsal;
    assert_eq!(rehearsal.verdict, Verdict::Reached { distribution: "v36.1.0".into() }, "{rehearsal}");
    assert!(rehearsal.violations.is_empty(), "{:?}", rehearsal.violations);
    let machines = all::<Machine>(&ended.world);
    assert_eq!(machines.len(), 2, "{machines:?}");
    for machine in &machines {
        assert_eq!(machine["spec"]["version"], "v1.36.1+vmware.1");
        assert_eq!(machine["spec"]["infrastructureRef"]["kind"], "DevMachine");
        assert_eq!(machine["status"]["nodeInfo"]["kubeletVersion"], "v1.36.1+vmware.1", "{machine}");
    }
    let of_dev = of_dev(&ended.world, "DevMachine");
    assert_eq!(of_dev.len(), 2);
    for machine in &of_dev {
        assert_eq!(machine.data["spec"]["backend"]["docker"]["customImage"], "kindest/node:v1.36.1");
        assert_eq!(machine.data["status"]["initialization"]["provisioned"], true);
    }
    assert!(all::<WCPMachineTemplate>(&ended.world).is_empty() && all::<WCPMachine>(&ended.world).is_empty());
    // Asked for the same again, nothing is written.
    let again = Request::new(shop(), "36.1.0", SEED, "2026-01-03T00:00:00Z".parse().unwrap());
    let again = hold(&ended.world, &again, rehearse_crashes()).unwrap();
    assert!(again.writes.is_empty(), "{:?}", again.writes);
}

#[test]
fn where_releases_say_no_image_the_version_alone_replaces_machines() {
    let world = world(|client| async move { describe(&client, SHIPPED[0].1).await });
    let ended = hold(&created(&world).world, &to("36.1.0"), rehearse_crashes()).unwrap();
    assert_eq!(ended.rehearsal.verdict, Verdict::Reached { distribution: "v36.1.0".into() }, "{}", ended.rehearsal);
    let kinds = ["DevMachine", "DevMachineTemplate"].map(|kind| of_dev(&ended.world, kind).len());
    assert_eq!(kinds, [2, 2], "the templates are those that there were");
}

#[test]
fn a_rehearsal_from_a_snapshot_has_the_same_machines() {
    let start = started();
    let taken = run_virtual(SEED, later(), |time| {
        let world = start.world.fork(world::Settings { clock: time.clock, ..start.world.settings().clone() });
        async move { Snapshot::of(&world).await.unwrap() }
    });
    let snapshot = taken.unwrap();
    let only_data: Vec<_> = snapshot.only_data().map(|(_, object)| object["kind"].clone()).collect();
    assert!(only_data.iter().all(|kind| !kind.as_str().unwrap().starts_with("Dev")), "{only_data:?}");
    let settings = start.world.settings().clone();
    let restored = run_virtual(SEED, later(), |time| async move {
        snapshot.world(world::Settings { clock: time.clock, ..settings }).await.unwrap()
    });
    let (live, kept) =
        (rehearse(&start.world, &to("36.1.0")).unwrap(), rehearse(&restored.unwrap(), &to("36.1.0")).unwrap());
    assert_eq!(kept.verdict, Verdict::Reached { distribution: "v36.1.0".into() }, "{kept}");
    assert_eq!(kept.to_string(), live.to_string());
}

/// What the condition of the cluster says about its release.
fn told(world: &World) -> (String, String) {
    let cluster = all::<Cluster>(world).into_iter().next().unwrap();
    let cluster: Cluster = serde_json::from_value(cluster).unwrap();
    let status = cluster.status.unwrap();
    let applied = ConditionType::ReleaseApplied.among(&status.conditions).unwrap();
    (applied.reason.clone(), applied.message.clone())
}

#[test]
fn a_cluster_whose_templates_no_profile_is_about_is_told_what_adds_one() {
    let check = |profile: Option<&'static str>, words: &[&str]| {
        let world = world(|client| async move {
            if let Some(profile) = profile {
                describe(&client, profile).await;
            }
        });
        let request = Request::new(shop(), "35.2.0", SEED, founded());
        let manifest = windlass_rehearse::drive::Manifest::Label(objects(on_dev));
        let ended = rehearsal::create(&world, &request, manifest).unwrap();
        assert!(!matches!(ended.rehearsal.verdict, Verdict::Reached { .. }), "{}", ended.rehearsal);
        let (reason, message) = told(&ended.world);
        assert_eq!(reason, "NoInfrastructureProfile", "{message}");
        for word in words {
            assert!(message.contains(word), "{word:?} is not in {message}");
        }
    };
    let named =
        "KubeadmControlPlane/shop-control-plane refers to a DevMachineTemplate of infrastructure.cluster.x-k8s.io";
    let way_out = "windlass install --profile FILE adds one";
    check(None, &[named, r#"there are profiles for "WCPMachineTemplate""#, way_out]);
    check(
        Some("template: DevMachineTemplate"),
        &[named, way_out, "one cannot be read: ConfigMap windlass-system/dev: data: profile cannot be read"],
    );
}
