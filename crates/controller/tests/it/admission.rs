//! What is resolved, what is refused, and what a change is said to mean.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::cluster_update::{ClusterUpdate, ClusterUpdateSpec, UpdateEnd};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_apiserver::admission::Handler;
use windlass_controller::admission::{GROUP, NAME, OPERATIONS, RESOURCE, VERSION, concerns, review};
use windlass_sim::world::World;

use crate::world::{api, create, in_world, read, tkc, webhook};

const V15: &str = "v1.15.5+vmware.1-guest.1";
const V16: &str = "v1.16.7+vmware.1-guest.1";

struct Reviewer(Client);

impl Handler for Reviewer {
    fn review(&self, question: Value) -> BoxFuture<'_, Result<Value, String>> {
        review(&self.0, question).boxed()
    }

    fn concerns(&self, object: Option<&Value>, old: Option<&Value>) -> bool {
        concerns(object, old)
    }
}

/// A webhook that nobody answers for.
struct Down;

impl Handler for Down {
    fn review(&self, _: Value) -> BoxFuture<'_, Result<Value, String>> {
        async { Err("connection refused".to_owned()) }.boxed()
    }

    fn concerns(&self, object: Option<&Value>, old: Option<&Value>) -> bool {
        concerns(object, old)
    }
}

/// Puts our webhook in front of the management API.
fn guard(world: &World) -> Client {
    answered_by(world, Arc::new(Reviewer(world.client())))
}

fn answered_by(world: &World, handler: Arc<dyn Handler>) -> Client {
    let webhook = webhook(NAME, &OPERATIONS, [GROUP, VERSION, RESOURCE], handler);
    world.management().admission().add_mutating(webhook);
    world.client()
}

async fn created(client: &Client, cluster: &TanzuKubernetesCluster) -> Result<TanzuKubernetesCluster, String> {
    let answer = api(client).create(&PostParams::default(), cluster).await;
    answer.map_err(|error| refusal(&error))
}

async fn patched(client: &Client, patch: Value) -> Result<TanzuKubernetesCluster, String> {
    let answer = api(client).patch("my-tkc", &PatchParams::default(), &Patch::Merge(patch)).await;
    answer.map_err(|error| refusal(&error))
}

/// What a person would read, without the name of the webhook.
fn refusal(error: &kube::Error) -> String {
    let kube::Error::Api(status) = error else { panic!("{error}") };
    let said = status.message.strip_prefix(&format!("admission webhook {NAME:?} denied the request: "));
    said.unwrap_or(&status.message).to_owned()
}

fn full_version(cluster: Result<TanzuKubernetesCluster, String>) -> Result<String, String> {
    cluster.map(|cluster| cluster.spec.distribution.full_version.unwrap_or_default())
}

fn version(version: &str) -> Value {
    json!({"spec": {"distribution": {"version": version, "fullVersion": null}}})
}

#[test]
fn the_hint_of_a_new_cluster_is_resolved() {
    in_world(|world| async move {
        let client = guard(&world);
        let made = created(&client, &tkc(Some("v1.16"), None)).await;
        assert_eq!(full_version(made).unwrap(), "v1.16.8+vmware.1-guest.1");
    });
}

#[test]
fn the_patch_of_the_seed_is_resolved_and_dry_run_tells_the_truth() {
    in_world(|world| async move {
        let client = guard(&world);
        created(&client, &tkc(Some("v1.15.5"), Some(V15))).await.unwrap();
        let clusters = api::<TanzuKubernetesCluster>(&client);
        let dry = PatchParams { dry_run: true, ..PatchParams::default() };
        let tried = clusters.patch("my-tkc", &dry, &Patch::Merge(version("v1.16.7"))).await.unwrap();
        assert_eq!(tried.spec.distribution.full_version.as_deref(), Some(V16));
        let stored = clusters.get("my-tkc").await.unwrap();
        assert_eq!(stored.spec.distribution.full_version.as_deref(), Some(V15));
        assert_eq!(full_version(patched(&client, version("v1.16.7")).await).unwrap(), V16);
    });
}

#[test]
fn what_could_never_be_done_is_refused_with_what_could() {
    const KNOWN: &str = "v1.15.5+vmware.1-guest.1, v1.16.7+vmware.1-guest.1, v1.16.8+vmware.1-guest.1, \
                         v1.17.4+vmware.1-guest.1, v1.24.9+vmware.1-tkg.1, v1.25.7+vmware.2-tkg.1, \
                         v1.26.5+vmware.2-tkg.1, v1.35.2+vmware.1-tkg.1, v1.36.1+vmware.1-tkg.1";
    in_world(|world| async move {
        let client = guard(&world);
        created(&client, &tkc(None, Some(V16))).await.unwrap();
        let part = |part: &str, field: &str, name: &str| json!({"spec": {"topology": {part: {field: name}}}});
        for (patch, complaint) in [
            (version("v1.15"), format!("{V15} is older than {V16}: a cluster is never taken back to an older version")),
            (version("v1.16.9"), format!("no release begins with v1.16.9; there are {KNOWN}")),
            (
                json!({"spec": {"distribution": {"version": "v1.17"}}}),
                format!(
                    "spec.distribution.version v1.17 does not match fullVersion {V16}; set fullVersion to null to \
                     resolve it again (to v1.17.4+vmware.1-guest.1)"
                ),
            ),
            (
                part("workers", "class", "huge"),
                "spec.topology.workers.class: there is no VirtualMachineClass \"huge\"; there are best-effort-large, \
                 best-effort-small, best-effort-xlarge, guaranteed-small"
                    .into(),
            ),
            (
                part("controlPlane", "storageClass", "tape"),
                "spec.topology.controlPlane.storageClass: there is no StorageClass \"tape\"; there are \
                 gc-storage-profile, gc-storage-profile-fast"
                    .into(),
            ),
        ] {
            assert_eq!(patched(&client, patch).await.map(drop).unwrap_err(), complaint);
        }
    });
}

/// A machine of the control plane of `my-tkc`, in the place of another if that has another name.
fn machine(name: &str, base: &str) -> Machine {
    read(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {
            "name": name, "namespace": "default",
            "labels": {"cluster.x-k8s.io/cluster-name": "my-tkc", "cluster.x-k8s.io/control-plane": ""},
            "annotations": {annotation::MACHINE_NAME_BASE.name: base},
        },
        "spec": {"clusterName": "my-tkc", "bootstrap": {"dataSecretName": "none"}, "infrastructureRef": {
            "apiGroup": "infrastructure.cluster.vmware.com", "kind": "WCPMachine", "name": name,
        }},
    }))
}

#[test]
fn what_belongs_to_a_cluster_for_life_is_refused_once_it_has_it() {
    in_world(|world| async move {
        let client = guard(&world);
        created(&client, &tkc(None, Some(V16))).await.unwrap();
        let count = |count: u32| json!({"spec": {"topology": {"controlPlane": {"count": count}}}});
        let pods = |range: &str| json!({"spec": {"settings": {"network": {"pods": {"cidrBlocks": [range]}}}}});
        // Nothing has been made yet.
        patched(&client, count(1)).await.unwrap();
        patched(&client, count(3)).await.unwrap();
        patched(&client, pods("10.1.0.0/16")).await.unwrap();
        let cluster: Cluster = read(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "my-tkc", "namespace": "default"},
            "spec": {"clusterNetwork": {
                "pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.96.0.0/12"]},
                "serviceDomain": "cluster.local",
            }},
        }));
        create(&client, &cluster).await;
        for (name, base) in [("a", "a"), ("b", "b"), ("c", "c"), ("c-7", "c")] {
            create(&client, &machine(name, base)).await;
        }
        for (patch, complaint) in [
            (
                count(1),
                "the control plane has 3 machines and should have 1; machines of a control plane are never removed; set \
                 spec.topology.controlPlane.count back to 3",
            ),
            (
                pods("10.2.0.0/16"),
                "spec.settings.network.pods.cidrBlocks is 192.168.0.0/16 and cannot be made 10.2.0.0/16: the addresses of \
                 a cluster are in its certificates, its Services and its pods; set spec.settings.network.pods.cidrBlocks \
                 back to 192.168.0.0/16",
            ),
        ] {
            assert_eq!(patched(&client, patch).await.map(drop).unwrap_err(), complaint);
        }
        // What it has is what it may be set back to, whatever was asked for since.
        patched(&client, pods("192.168.0.0/16")).await.unwrap();
        patched(&client, json!({"spec": {"settings": null}})).await.unwrap();
        patched(&client, count(5)).await.unwrap();
        patched(&client, count(3)).await.unwrap();
    });
}

#[test]
fn a_version_of_two_images_is_refused_to_whoever_does_not_have_it() {
    in_world(|world| async move {
        let client = guard(&world);
        created(&client, &tkc(None, Some(V15))).await.unwrap();
        let images: Api<VirtualMachineImage> = Api::all(client.clone());
        for version in ["v1.15.5", "v1.16.7"] {
            let mut copy = images.get(&format!("photon-k8sd-{version}-vmware.1-guest.1")).await.unwrap();
            copy.metadata = ObjectMeta {
                name: Some(format!("copy-of-{version}")),
                annotations: copy.metadata.annotations,
                ..ObjectMeta::default()
            };
            images.create(&PostParams::default(), &copy).await.unwrap();
        }
        let complaint = patched(&client, version("v1.16.7")).await.map(drop).unwrap_err();
        assert_eq!(
            complaint,
            format!(
                "spec.distribution: the distribution {V16} is that of several VirtualMachineImages, copy-of-v1.16.7 and \
                 photon-k8sd-v1.16.7-vmware.1-guest.1; delete all but one"
            )
        );
        patched(&client, json!({"spec": {"topology": {"workers": {"count": 5}}}})).await.unwrap();
        images.delete("copy-of-v1.16.7", &DeleteParams::default()).await.unwrap();
        assert_eq!(full_version(patched(&client, version("v1.16.7")).await).unwrap(), V16);
    });
}

#[test]
fn what_has_not_begun_can_be_taken_back() {
    in_world(|world| async move {
        let client = guard(&world);
        created(&client, &tkc(None, Some(V15))).await.unwrap();
        let clusters = api::<TanzuKubernetesCluster>(&client);
        let has = Patch::Merge(json!({"status": {"version": V15}}));
        clusters.patch_status("my-tkc", &PatchParams::default(), &has).await.unwrap();
        patched(&client, version("v1.16.7")).await.unwrap();
        let two_minors = patched(&client, version("v1.17")).await.map(drop).unwrap_err();
        assert!(two_minors.contains(&format!("is 2 minors ahead of {V15}")), "what was only asked for: {two_minors}");
        assert_eq!(full_version(patched(&client, version("v1.15.5")).await).unwrap(), V15, "nothing has begun");

        patched(&client, version("v1.16.7")).await.unwrap();
        let refused = format!(
            "{V15} is older than {V16}: a cluster is never taken back to an older version; my-tkc-1 has begun and has to be \
             given up first: windlass abort my-tkc"
        );
        let announced = Patch::Merge(json!({"status": {"update": "my-tkc-1"}}));
        clusters.patch_status("my-tkc", &PatchParams::default(), &announced).await.unwrap();
        assert_eq!(patched(&client, version("v1.15.5")).await.map(drop).unwrap_err(), refused, "its record comes next");

        let end = |version: &str| UpdateEnd { distribution: version.into(), ..UpdateEnd::default() };
        let spec = ClusterUpdateSpec {
            cluster: "my-tkc".into(),
            ordinal: 1,
            from: end(V15),
            to: end(V16),
            ..ClusterUpdateSpec::default()
        };
        let mut update = ClusterUpdate::new("my-tkc-1", spec);
        update.metadata.labels = Some([("cluster.x-k8s.io/cluster-name".into(), "my-tkc".into())].into());
        create(&client, &update).await;
        assert_eq!(patched(&client, version("v1.15.5")).await.map(drop).unwrap_err(), refused);
        let aborted = Patch::Merge(json!({"status": {"state": "Aborted"}}));
        api::<ClusterUpdate>(&client).patch_status("my-tkc-1", &PatchParams::default(), &aborted).await.unwrap();
        assert_eq!(full_version(patched(&client, version("v1.15.5")).await).unwrap(), V15);

        // One that is done is not taken back, though a worker that waits for a later hop still has what was before.
        patched(&client, version("v1.16.7")).await.unwrap();
        let done = Patch::Merge(json!({"status": {"state": "Succeeded"}}));
        api::<ClusterUpdate>(&client).patch_status("my-tkc-1", &PatchParams::default(), &done).await.unwrap();
        let older = format!("{V15} is older than {V16}: a cluster is never taken back to an older version");
        assert_eq!(patched(&client, version("v1.15.5")).await.map(drop).unwrap_err(), older);
        patched(&client, version("v1.17")).await.unwrap();
        assert_eq!(full_version(patched(&client, version("v1.16.7")).await).unwrap(), V16, "to where it was led");
    });
}

#[test]
fn no_minor_is_skipped() {
    in_world(|world| async move {
        let client = guard(&world);
        created(&client, &tkc(None, Some(V15))).await.unwrap();
        let complaint = patched(&client, version("v1.17")).await.map(drop).unwrap_err();
        assert_eq!(
            complaint,
            "v1.17.4+vmware.1-guest.1 is 2 minors ahead of v1.15.5+vmware.1-guest.1: go there one minor at a time, \
             1.16 next"
        );
    });
}

#[test]
fn what_needs_no_judging_is_not_held_up() {
    in_world(|world| async move {
        let client = world.client();
        // Stored before there was a webhook, with a class that has since gone.
        let mut cluster = tkc(None, Some("v1.2.3"));
        cluster.spec.topology.workers.class = "gone".into();
        cluster.metadata.finalizers = Some(vec!["example.com/hold".into()]);
        created(&client, &cluster).await.unwrap();
        let client = guard(&world);
        patched(&client, json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
        let clusters = api::<TanzuKubernetesCluster>(&client);
        let status = Patch::Merge(json!({"status": {"phase": "running"}}));
        clusters.patch_status("my-tkc", &PatchParams::default(), &status).await.unwrap();
        clusters.delete("my-tkc", &DeleteParams::default()).await.unwrap();
        patched(&client, json!({"spec": {"distribution": {"fullVersion": null}}})).await.unwrap();
        patched(&client, json!({"metadata": {"finalizers": null}})).await.unwrap();
        assert!(clusters.get_opt("my-tkc").await.unwrap().is_none());
    });
}

#[test]
fn what_needs_no_judging_goes_on_while_nobody_judges() {
    in_world(|world| async move {
        let mut cluster = tkc(None, Some(V15));
        cluster.metadata.finalizers = Some(vec!["example.com/hold".into()]);
        created(&world.client(), &cluster).await.unwrap();
        let client = answered_by(&world, Arc::new(Down));
        let refused = patched(&client, version("v1.16.7")).await.map(drop).unwrap_err();
        assert!(refused.contains("connection refused"), "{refused}");
        patched(&client, json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
        let clusters = api::<TanzuKubernetesCluster>(&client);
        clusters.delete("my-tkc", &DeleteParams::default()).await.unwrap();
        patched(&client, json!({"metadata": {"finalizers": null}})).await.unwrap();
        assert!(clusters.get_opt("my-tkc").await.unwrap().is_none());
    });
}

/// What is said to a change of a cluster of three machines and one.
async fn check_warning(client: &Client, change: impl FnOnce(&mut TanzuKubernetesCluster), warnings: Value) {
    let before = tkc(None, Some(V15));
    let mut after = before.clone();
    change(&mut after);
    let question = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "operation": "UPDATE", "resource": {"resource": RESOURCE}, "namespace": "default",
        "object": after, "oldObject": before,
    }});
    let answer = review(client, question).await.unwrap();
    assert_eq!(answer["response"]["allowed"], true, "{answer}");
    assert_eq!(answer["response"]["warnings"], warnings);
}

#[test]
fn a_change_is_said_to_mean_what_it_means() {
    in_world(|world| async move {
        let client = world.client();
        let large = || "best-effort-large".to_owned();
        check_warning(
            &client,
            |after| after.spec.distribution.full_version = Some(V16.into()),
            json!([format!(
                "my-tkc: {V15} -> {V16}: packages, then 3 control-plane machines, then 1 worker are replaced"
            )]),
        )
        .await;
        check_warning(
            &client,
            |after| after.spec.topology.workers.class = large(),
            json!(["my-tkc: 1 worker is replaced"]),
        )
        .await;
        check_warning(
            &client,
            |after| after.spec.topology.control_plane.class = large(),
            json!(["my-tkc: 3 control-plane machines are replaced"]),
        )
        .await;
        check_warning(
            &client,
            |after| {
                after.spec.topology.control_plane.class = large();
                after.spec.topology.workers.class = large();
            },
            json!(["my-tkc: 3 control-plane machines and 1 worker are replaced"]),
        )
        .await;
        check_warning(&client, |after| after.spec.topology.workers.count = 5, Value::Null).await;
    });
}
