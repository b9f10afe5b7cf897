//! Add-ons, end to end: what is kept, what is removed, and what is somebody else's.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::{annotation, label};
use windlass_apiserver::store::Key;
use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{Ended, Request, Verdict, hold};
use windlass_sim::fault::{Action, Scenario, Scheduled, Span};
use windlass_sim::world::World;

use crate::start::{self, TO};

const AUTH: (&str, &str) = ("vmware-system-auth", "guest-cluster-auth-svc");

fn updated(start: &World, faults: Scenario) -> Ended {
    let ended = hold(start, &Request { faults, ..start::update() }, Crashes::none()).unwrap();
    let rehearsal = &ended.rehearsal;
    assert_eq!(rehearsal.verdict, Verdict::Reached { distribution: TO.into() }, "{rehearsal}");
    assert!(rehearsal.violations.is_empty(), "{rehearsal}");
    ended
}

/// An object of the workload cluster, whoever could see it.
fn found(world: &World, resource: &str, (namespace, name): (&str, &str)) -> Option<Value> {
    let workload = world.workloads().get(&start::cluster_name()).unwrap();
    let entry = workload.server().store().get(resource, &Key::new(namespace, name));
    entry.map(|entry| entry.to_value("", ""))
}

/// What the record of what was applied has of these names.
fn on_record(world: &World, name: &str) -> bool {
    let record = found(world, "configmaps", ("kube-system", "windlass-addons")).unwrap();
    record["data"]["objects"].as_str().unwrap().contains(&format!("{name:?}"))
}

/// A World whose next release comes without the authentication service.
fn without_authsvc() -> World {
    start::changed(start::one_and_one(), |world| async move {
        let images: Api<VirtualMachineImage> = Api::all(world.client());
        let key = annotation::addon_key(&"authsvc".parse().unwrap());
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: null}}}));
        let image = "photon-k8sd-v1.16.7-vmware.1-guest.1";
        images.patch(image, &PatchParams::default(), &patch).await.unwrap();
    })
}

#[test]
fn what_a_release_has_no_more_is_removed_and_what_others_may_use_stays() {
    let start = without_authsvc();
    assert!(found(&start, "deployments.apps", AUTH).is_some() && on_record(&start, AUTH.1));
    let ended = updated(&start, Scenario::default());
    assert!(found(&ended.world, "deployments.apps", AUTH).is_none());
    assert!(found(&ended.world, "namespaces", ("", AUTH.0)).is_some());
    assert!(!on_record(&ended.world, AUTH.1) && on_record(&ended.world, "coredns"));
}

/// A World in which somebody else has put the authentication service into the cluster.
fn with_authsvc_of_another() -> World {
    start::changed(start::one_and_one(), |world| async move {
        let client = world.workloads().get(&start::cluster_name()).unwrap().client();
        let deployments: Api<Deployment> = Api::namespaced(client, AUTH.0);
        deployments.delete(AUTH.1, &DeleteParams::default()).await.unwrap();
        let labels = json!({"app": "auth"});
        let theirs: Deployment = serde_json::from_value(json!({
            "metadata": {"name": AUTH.1, "labels": labels},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "auth", "image": "registry.example.com/auth:1"}]},
            }},
        }))
        .unwrap();
        deployments.create(&PostParams::default(), &theirs).await.unwrap();
    })
}

#[test]
fn an_extension_of_somebody_else_is_left_to_them_and_nobody_waits_for_it() {
    let ended = updated(&with_authsvc_of_another(), Scenario::default());
    let theirs = found(&ended.world, "deployments.apps", AUTH).unwrap();
    let container = &theirs["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "registry.example.com/auth:1");
    assert_eq!(theirs["metadata"]["labels"][label::ADDON.name], Value::Null);
    let store = ended.world.management().store();
    let tkc = store.get("tanzukubernetesclusters.run.tanzu.vmware.com", &Key::new("default", "my-tkc")).unwrap();
    let tkc: TanzuKubernetesCluster = serde_json::from_value(tkc.to_value("", "")).unwrap();
    let addons = tkc.status.unwrap().addons;
    let told: Vec<String> = addons.iter().map(|(slot, addon)| format!("{slot} {:?}", addon.status)).collect();
    let applied = ["cloudprovider", "cni", "csi", "dns", "proxy", "psp"].map(|slot| format!("{slot} Applied"));
    assert_eq!(told, [&["authsvc Unmanaged".to_owned()][..], &applied].concat());
}

#[test]
fn what_people_change_about_add_ons_is_undone_also_in_the_middle_of_an_update() {
    let cluster = Some(start::cluster_name());
    let action = |at, action| Scheduled { at: Span::seconds(at), action };
    let (api_version, kind) = ("apps/v1".to_owned(), "Deployment".to_owned());
    let (name, patch) = ("kube-system/coredns".into(), json!({"spec": {"replicas": 9}}));
    let scale = Action::Patch { cluster: cluster.clone(), api_version, kind, name, patch };
    let (api_version, kind) = ("v1".to_owned(), "ConfigMap".to_owned());
    let name = "kube-system/calico-config".into();
    let delete = Action::Delete { cluster, api_version, kind, name };
    let actions = vec![action(30, scale), action(40, delete)];
    let ended = updated(&start::one_and_one().world, Scenario { actions, ..Scenario::default() });
    let coredns = found(&ended.world, "deployments.apps", ("kube-system", "coredns")).unwrap();
    assert_eq!(coredns["spec"]["replicas"], 2);
    assert!(found(&ended.world, "configmaps", ("kube-system", "calico-config")).is_some());
}
