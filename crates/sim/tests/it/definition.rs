//! The definitions that a World has, ours and those of others, and one object of each kind.
//!
//! `WINDLASS_UPDATE=1 cargo test -p windlass-sim --test it definition` writes `crds/` anew: read the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use windlass_api::kind::definition::ours;
use windlass_api::kind::{
    bootstrap, cluster_api, cluster_update, control_plane, extension, machine_health, package_values, packaging,
    release, tanzu, topology, virtual_machine, wcp,
};
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::catalogue::definition::foreign;
use windlass_sim::world::World;

use crate::world::{base, settings};

/// One object of each kind, as people or their controllers write it.
const EXAMPLES: &str = include_str!("example.yaml");

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crds")
}

#[test]
fn the_files_of_foreign_definitions_are_those_of_the_table() {
    let file = |definition: CustomResourceDefinition| {
        (format!("{}.yaml", definition.name_any()), serde_saphyr::to_string(&definition).unwrap())
    };
    let made: BTreeMap<String, String> = foreign().into_iter().map(file).collect();
    if std::env::var_os("WINDLASS_UPDATE").is_some() {
        for (name, text) in &made {
            std::fs::write(folder().join(name), text).unwrap();
        }
    }
    let written: BTreeMap<String, String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(path).unwrap()))
        .collect();
    assert_eq!(written.keys().collect::<Vec<_>>(), made.keys().collect::<Vec<_>>());
    for (name, text) in &made {
        assert!(
            &written[name] == text,
            "{name} is stale: WINDLASS_UPDATE=1 cargo test -p windlass-sim --test it definition"
        );
    }
}

#[test]
fn definitions_are_named_after_their_plural_and_group_and_say_which_contract_they_keep() {
    for definition in foreign().into_iter().chain(ours()) {
        let spec = &definition.spec;
        assert_eq!(definition.name_any(), format!("{}.{}", spec.names.plural, spec.group));
        let provided = spec.group.ends_with("cluster.x-k8s.io") || spec.group == wcp::GROUP;
        let contract = definition.labels().get("cluster.x-k8s.io/v1beta2");
        assert_eq!(contract, provided.then_some(&spec.versions[0].name), "{}", definition.name_any());
    }
}

#[test]
fn nobody_is_the_controller_of_a_kind_that_somebody_else_defines() {
    let names = |all: Vec<CustomResourceDefinition>| all.iter().map(ResourceExt::name_any).collect::<BTreeSet<_>>();
    assert!(names(foreign()).is_disjoint(&names(ours())));
}

#[test]
fn a_world_takes_an_object_of_each_kind_and_keeps_all_of_it() {
    let examples: Vec<Value> = serde_saphyr::from_multiple(EXAMPLES).unwrap();
    let shown: BTreeSet<String> = examples.iter().map(|example| example["kind"].as_str().unwrap().to_owned()).collect();
    let kinds: BTreeSet<String> =
        foreign().into_iter().chain(ours()).map(|definition| definition.spec.names.kind).collect();
    assert_eq!(shown, kinds, "there is an example of each kind");

    run_virtual(Seed(7), base(), |virtual_run| async move {
        let client = World::new(settings(virtual_run.clock)).await.unwrap().client();
        for example in examples {
            let stored = keeps(&client, &example).await;
            is_readable(&stored);
        }
    })
    .unwrap();
}

/// Applies an object and its status, twice: nothing of it is lost, and the second time nothing changes. Answers with what is
/// stored.
async fn keeps(client: &Client, example: &Value) -> Value {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (kind, name) = (text(&example["kind"]), text(&example["metadata"]["name"]));
    let definition = foreign().into_iter().chain(ours()).find(|definition| definition.spec.names.kind == kind).unwrap();
    let spec = &definition.spec;
    let gvk = GroupVersionKind::gvk(&spec.group, &spec.versions[0].name, &kind);
    assert_eq!(gvk.api_version(), text(&example["apiVersion"]), "{kind}");
    let resource = ApiResource::from_gvk_with_plural(&gvk, &spec.names.plural);
    let api: Api<DynamicObject> = match spec.scope.as_str() {
        "Cluster" => Api::all_with(client.clone(), &resource),
        _ => Api::namespaced_with(client.clone(), "default", &resource),
    };
    let params = PatchParams { field_validation: Some(ValidationDirective::Strict), ..PatchParams::apply("test") };
    let mut before = None;
    for _ in 0..2 {
        api.patch(&name, &params, &Patch::Apply(example))
            .await
            .unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
        if example.get("status").is_some() {
            api.patch_status(&name, &params, &Patch::Apply(example))
                .await
                .unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
        }
        let stored = api.get(&name).await.unwrap();
        if let Some(before) = before.replace(stored.resource_version()) {
            assert_eq!(stored.resource_version(), before, "{kind} {name} is written again");
        }
    }
    let stored = serde_json::to_value(api.get(&name).await.unwrap()).unwrap();
    for part in ["spec", "status"] {
        assert!(
            contains(&stored[part], &example[part]),
            "{kind} {name}: {:#} was stored as {:#}",
            example[part],
            stored[part]
        );
    }
    stored
}

/// Whether all that is in `part` is in `whole`.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|found| contains(found, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        _ => whole == part,
    }
}

/// The type of the kind reads the object, and what it writes is in the object.
fn is_readable(stored: &Value) {
    macro_rules! by_kind {
        ($kind:expr, $($module:ident: $($type:ident),+;)+) => {
            match $kind {
                $($(stringify!($type) => reads::<$module::$type>(stored),)+)+
                other => panic!("{other} has no type"),
            }
        };
    }
    by_kind! { stored["kind"].as_str().unwrap(),
        bootstrap: KubeadmConfig, KubeadmConfigTemplate;
        cluster_api: Cluster, Machine, MachineSet, MachineDeployment;
        cluster_update: ClusterUpdate;
        control_plane: KubeadmControlPlane, KubeadmControlPlaneTemplate;
        extension: ExtensionConfig;
        machine_health: MachineHealthCheck, MachineDrainRule;
        package_values: AntreaConfig, CalicoConfig, VSphereCPIConfig, VSphereCSIConfig, KappControllerConfig;
        packaging: App, Package, PackageMetadata, PackageInstall, PackageRepository;
        release: TanzuKubernetesRelease, OSImage, ClusterBootstrap, ClusterBootstrapTemplate;
        tanzu: TanzuKubernetesCluster;
        topology: ClusterClass;
        virtual_machine: VirtualMachineClass, VirtualMachineImage;
        wcp: WCPCluster, WCPClusterTemplate, WCPMachine, WCPMachineTemplate;
    }
}

fn reads<K: serde::Serialize + serde::de::DeserializeOwned>(stored: &Value) {
    let object: K = serde_json::from_value(stored.clone()).unwrap_or_else(|error| panic!("{stored:#}: {error}"));
    let written = serde_json::to_value(&object).unwrap();
    for part in ["spec", "status"] {
        let is_there = written[part].is_null() || contains(&stored[part], &written[part]);
        assert!(is_there, "{:#} was read as {:#}", stored[part], written[part]);
    }
}
